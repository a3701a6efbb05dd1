/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../afalg/hash.h"
#include "../afalg/session.h"
#include "counters.h"
#include "provider.h"
#include "software.h"

#define MESSAGE 256u
#define AAD 20u
#define TAG 16u
#define NONCE 12u

/* A check under way. It stays whole as long as the kernel may write to it, which may be for ever. */
struct check {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool done, abandoned; /* under the lock: the kernel has answered; nobody waits for it any more */
	int err;

	enum algorithm_id id;
	size_t keylen, compare; /* bytes of key, and of result that must be right */
	uint8_t key[64], iv[16], aad[AAD];
	uint8_t in[MESSAGE], expected[MESSAGE + TAG], out[MESSAGE + TAG], back[MESSAGE];
};

static void prepare(struct check *c, enum algorithm_id id)
{
	c->id = id;
	c->compare = algorithms[id].size;
	for (size_t i = 0; i < MESSAGE; i++)
		c->in[i] = (uint8_t)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(c->key); i++)
		c->key[i] = (uint8_t)(i * 5 + 3);
	memcpy(c->iv, c->in + 5, sizeof(c->iv));
	memcpy(c->aad, c->in + 33, sizeof(c->aad));
}

/*** What is right ***/

static bool begin_aead(struct check *c, EVP_CIPHER_CTX *ctx)
{
	const bool ccm = algorithms[c->id].mode == MODE_CCM;
	int n;

	return EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, NONCE, NULL) > 0 &&
	       (!ccm || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, NULL) > 0) &&
	       EVP_EncryptInit_ex2(ctx, NULL, c->key, c->iv, NULL) &&
	       (!ccm || EVP_EncryptUpdate(ctx, NULL, &n, NULL, MESSAGE)) &&
	       EVP_EncryptUpdate(ctx, NULL, &n, c->aad, AAD);
}

static bool expect_cipher(struct check *c, OSSL_LIB_CTX *context)
{
	const struct algorithm *a = &algorithms[c->id];
	const bool aead = a->kind == KIND_AEAD;
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(context, a->name, NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	bool ok = cipher != NULL && ctx != NULL;
	int n;

	c->keylen = cipher == NULL ? 0 : (size_t)EVP_CIPHER_get_key_length(cipher);
	c->compare = MESSAGE + (aead ? TAG : 0) - (a->mode == MODE_CTS ? 2 * a->block : 0);
	ok = ok && c->keylen <= sizeof(c->key) && EVP_EncryptInit_ex2(ctx, cipher, NULL, NULL, NULL) &&
	     (aead ? begin_aead(c, ctx) : EVP_EncryptInit_ex2(ctx, NULL, c->key, c->iv, NULL)) &&
	     EVP_EncryptUpdate(ctx, c->expected, &n, c->in, MESSAGE) && n == MESSAGE;
	if (ok && aead)
		ok = EVP_EncryptFinal_ex(ctx, c->back, &n) &&
		     EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, c->expected + MESSAGE) > 0;
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cipher);
	return ok;
}

static bool expect_mac(struct check *c, OSSL_LIB_CTX *context)
{
	const struct algorithm *a = &algorithms[c->id];
	const bool hmac = a->block != 0;
	EVP_CIPHER *cipher = hmac ? NULL : EVP_CIPHER_fetch(context, a->over, NULL);
	const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(hmac ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER,
							    (void *)(uintptr_t)a->over, 0),
				     OSSL_PARAM_END};

	c->keylen = hmac ? 32 : cipher == NULL ? 0 : (size_t)EVP_CIPHER_get_key_length(cipher);
	EVP_CIPHER_free(cipher);
	return EVP_Q_mac(context, a->offered, NULL, NULL, params, c->key, c->keylen, c->in, MESSAGE, c->expected,
			 sizeof(c->expected), NULL) != NULL;
}

static bool expect(struct check *c, OSSL_LIB_CTX *context)
{
	bool ok;

	ERR_set_mark();
	switch (algorithms[c->id].kind) {
	case KIND_HASH:
		ok = EVP_Q_digest(context, algorithms[c->id].name, NULL, c->in, MESSAGE, c->expected, NULL);
		break;
	case KIND_MAC:
		ok = expect_mac(c, context);
		break;
	default:
		ok = expect_cipher(c, context);
	}
	ERR_pop_to_mark();
	return ok;
}

/*** What the kernel says ***/

static int kernel_cipher(struct check *c, bool open_only)
{
	const struct algorithm *a = &algorithms[c->id];
	const bool aead = a->kind == KIND_AEAD;
	const struct afalg_keyed keyed = {.type = algorithm_type(a->kind),
					  .algorithm = a->kernel,
					  .key = c->key,
					  .keylen = c->keylen,
					  .taglen = aead ? TAG : 0};
	struct afalg_request r = {
		.encrypt = true, .iv = c->iv, .ivlen = a->ivlen, .in = c->in, .out = c->out, .len = MESSAGE};
	struct afalg_session s = {.slot = NULL};
	uint8_t ccm_iv[16] = {14 - NONCE};
	int err;

	if (aead) {
		r.aad = c->aad;
		r.aadlen = AAD;
		r.tag = c->out + MESSAGE;
		r.taglen = TAG;
	}
	if (a->mode == MODE_CCM) {
		memcpy(ccm_iv + 1, c->iv, NONCE);
		r.iv = ccm_iv;
	}
	err = afalg_session_begin(&s, &keyed);
	if (err != 0)
		return err;
	if (!open_only)
		err = afalg_session_crypt(&s, &r);
	if (err == 0 && !open_only) {
		r.encrypt = false;
		r.in = c->out;
		r.out = c->back;
		err = afalg_session_crypt(&s, &r);
	}
	afalg_session_end(&s, err == 0);
	afalg_session_drop(&s);
	if (err == -EBADMSG || (err == 0 && !open_only && memcmp(c->back, c->in, MESSAGE) != 0))
		err = -EILSEQ;
	return err;
}

static int kernel_hash(struct check *c, struct afalg_hash_key *key, bool open_only)
{
	const struct iovec iov = {c->in, MESSAGE};
	struct afalg_hash h;
	unsigned requests;
	int err = afalg_hash_start(&h, algorithms[c->id].kernel, key);

	if (err != 0)
		return err;
	if (!open_only)
		err = afalg_hash_send(&h, &iov, 1, false, &requests);
	if (err == 0 && !open_only)
		err = afalg_hash_finish(&h, c->out, algorithms[c->id].size);
	afalg_hash_end(&h);
	return err;
}

/* `open_only`: nothing that a device has to answer. */
static int ask_kernel(struct check *c, bool open_only)
{
	struct afalg_hash_key *key;
	int err;

	if (algorithms[c->id].kind == KIND_HASH)
		return kernel_hash(c, NULL, open_only);
	if (algorithms[c->id].kind != KIND_MAC)
		return kernel_cipher(c, open_only);
	key = afalg_hash_key_change(NULL, algorithms[c->id].kernel, c->key, c->keylen);
	if (key == NULL)
		return -ENOMEM;
	err = kernel_hash(c, key, open_only);
	afalg_hash_key_free(key);
	return err;
}

/*** With a limit ***/

static void check_free(struct check *c)
{
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *work(void *argument)
{
	struct check *c = argument;
	const int err = ask_kernel(c, false);
	bool abandoned;

	pthread_mutex_lock(&c->lock);
	c->err = err;
	c->done = true;
	abandoned = c->abandoned;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->lock);
	if (abandoned)
		check_free(c);
	return NULL;
}

/* A thread of its own, which gets none of the program's signals. False: there can be none. */
static bool start(struct check *c, pthread_t *thread)
{
	sigset_t all, before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = pthread_create(thread, NULL, work, c) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

/* Waits for the answer, up to the limit in milliseconds. False: it is still to come, and whoever gets it frees all. */
static bool await(struct check *c, unsigned limit)
{
	struct timespec end;
	bool done;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)(limit / 1000);
	end.tv_nsec += (long)(limit % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&c->lock);
	while (!c->done && pthread_cond_timedwait(&c->ended, &c->lock, &end) != ETIMEDOUT)
		continue;
	done = c->done;
	c->abandoned = !done;
	pthread_mutex_unlock(&c->lock);
	return done;
}

/*
 * A request that waits for a device cannot be interrupted, not even by a signal. So another thread makes it, and is
 * left behind if the device does not answer.
 */
static int ask_within(struct check *c, unsigned limit, bool *left_behind)
{
	pthread_t thread;
	int err;

	*left_behind = false;
	if (limit == 0)
		return ask_kernel(c, false);
	/* Opening may load modules, which takes what it takes, and is no matter of the device. */
	err = ask_kernel(c, true);
	if (err != 0)
		return err;
	if (!start(c, &thread))
		return ask_kernel(c, false);
	if (!await(c, limit)) {
		pthread_detach(thread);
		*left_behind = true;
		return -ETIMEDOUT;
	}
	pthread_join(thread, NULL);
	return c->err;
}

int check_for_route(const struct route *r, enum algorithm_id id)
{
	const struct provider *p =
		(const struct provider *)(const void *)((const char *)r - offsetof(struct provider, route));
	struct check *c;
	pthread_condattr_t attributes;
	bool left_behind = false;
	int err = 0;

	if (algorithms[id].kind == KIND_RNG)
		return 0; /* has no known answers */
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&c->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	prepare(c, id);
	if (expect(c, software_context(p, id)))
		err = ask_within(c, p->hang_limit, &left_behind);
	else
		err = -ENOMEM;
	if (err == 0 && memcmp(c->out, c->expected, c->compare) != 0)
		err = -EILSEQ;
	if (!left_behind)
		check_free(c);
	if (err != 0)
		counters_fallback(id, MESSAGE, err);
	return err;
}
