/* SPDX-License-Identifier: Apache-2.0 */
/* cases_thread_test [ROUNDS]: many threads, each with contexts of its own; and copies in use while others are keyed. */
#include "cases.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 16
#define HASHED 65537u

static unsigned rounds = 2000;

/* What every thread makes, again and again. */
static const struct {
	const char *cipher, *vector; /* the vector that the outcome must be */
	size_t len;
} messages[] = {
	{"AES-128-XTS", "V30 4112", 4112},
	{"AES-256-CBC", "V14 22528", 22528},
	{"AES-128-GCM", "V24", 16384},
};
#define MESSAGES (sizeof(messages) / sizeof(*messages))

static struct job jobs[MESSAGES];
static struct outcome expected[MESSAGES];
static uint8_t expected_md[32], expected_mac[32];

static void prepare(void)
{
	for (size_t i = 0; i < MESSAGES; i++) {
		const struct vector *v = vector_find(messages[i].vector);
		const bool aead = v->kind == VECTOR_AEAD;

		jobs[i] = (struct job){.cipher = messages[i].cipher,
				       .key = key_a,
				       .iv = zero_iv,
				       .encrypt = 1,
				       .ivlen = aead ? 12 : 0,
				       .taglen = aead ? TAG_MAX : 0,
				       .aad = pattern,
				       .aadlen = aead ? 13 : 0};
		job_run(reference, &jobs[i], pattern, messages[i].len, &expected[i]);
		assert_true(vector_equals(reference, v->out, expected[i].out, expected[i].len));
	}
	assert_true(EVP_Q_digest(reference, "SHA2-256", NULL, pattern, HASHED, expected_md, NULL));
	assert_true(vector_equals(reference, vector_find("V6 65537")->out, expected_md, 32));
	assert_non_null(EVP_Q_mac(reference, "HMAC", NULL, "SHA2-256", NULL, key_a, 32, pattern, 22528, expected_mac,
				  sizeof(expected_mac), NULL));
}

/* What a thread owns. Assertions are for the main thread: here is only true or false. */
struct own {
	EVP_CIPHER_CTX *ctx[MESSAGES];
	EVP_MD *md;
	EVP_MD_CTX *md_ctx;
	EVP_MAC_CTX *mac_ctx;
	uint8_t out[22528 + 32];
};

static bool message_right(struct own *o, size_t i)
{
	uint8_t tag[TAG_MAX];
	int n = 0;
	bool ok = EVP_EncryptInit_ex(o->ctx[i], NULL, NULL, NULL, jobs[i].iv) &&
		  (jobs[i].taglen == 0 || EVP_EncryptUpdate(o->ctx[i], NULL, &n, jobs[i].aad, (int)jobs[i].aadlen)) &&
		  EVP_EncryptUpdate(o->ctx[i], o->out, &n, pattern, (int)messages[i].len) &&
		  (size_t)n == expected[i].len && memcmp(o->out, expected[i].out, expected[i].len) == 0;

	if (ok && jobs[i].taglen > 0)
		ok = EVP_EncryptFinal_ex(o->ctx[i], o->out, &n) &&
		     EVP_CIPHER_CTX_ctrl(o->ctx[i], EVP_CTRL_AEAD_GET_TAG, TAG_MAX, tag) > 0 &&
		     memcmp(tag, expected[i].tag, TAG_MAX) == 0;
	return ok;
}

static bool digest_right(struct own *o)
{
	uint8_t md[32];

	return EVP_DigestInit_ex(o->md_ctx, o->md, NULL) && EVP_DigestUpdate(o->md_ctx, pattern, HASHED) &&
	       EVP_DigestFinal_ex(o->md_ctx, md, NULL) && memcmp(md, expected_md, 32) == 0;
}

static bool mac_right(struct own *o)
{
	uint8_t mac[32];
	size_t len;

	return EVP_MAC_init(o->mac_ctx, NULL, 0, NULL) && EVP_MAC_update(o->mac_ctx, pattern, 22528) &&
	       EVP_MAC_final(o->mac_ctx, mac, &len, sizeof(mac)) && memcmp(mac, expected_mac, 32) == 0;
}

static bool own_init(struct own *o)
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t) "SHA2-256", 0),
		OSSL_PARAM_END};
	EVP_MAC *mac = EVP_MAC_fetch(ours, "HMAC", NULL);
	bool ok = true;

	for (size_t i = 0; i < MESSAGES; i++) {
		EVP_CIPHER *c = fetch_cipher(ours, messages[i].cipher);

		o->ctx[i] = EVP_CIPHER_CTX_new();
		ok = ok && job_init(o->ctx[i], c, &jobs[i]);
		EVP_CIPHER_free(c);
	}
	o->md = fetch_digest(ours, "SHA2-256");
	o->md_ctx = EVP_MD_CTX_new();
	o->mac_ctx = EVP_MAC_CTX_new(mac);
	EVP_MAC_free(mac);
	return ok && EVP_MAC_init(o->mac_ctx, key_a, 32, params);
}

static void own_free(struct own *o)
{
	for (size_t i = 0; i < MESSAGES; i++)
		EVP_CIPHER_CTX_free(o->ctx[i]);
	EVP_MD_free(o->md);
	EVP_MD_CTX_free(o->md_ctx);
	EVP_MAC_CTX_free(o->mac_ctx);
}

static atomic_uint wrong;

static void *work(void *argument)
{
	struct own *o = calloc(1, sizeof(*o));

	(void)argument;
	if (o == NULL || !own_init(o)) {
		wrong++;
		return NULL;
	}
	for (unsigned round = 0; round < rounds && wrong == 0; round++) {
		for (size_t i = 0; i < MESSAGES; i++)
			wrong += !message_right(o, i);
		wrong += !digest_right(o) || !mac_right(o);
	}
	own_free(o);
	free(o);
	return NULL;
}

/* D06. */
static void own_contexts(void **unused)
{
	EVP_CIPHER *cbc = fetch_cipher(ours, "AES-256-CBC");
	EVP_MD *sha = fetch_digest(ours, "SHA2-256");
	const struct share ciphers = share_begin("AES-256-CBC", EVP_CIPHER_get0_provider(cbc)),
			   digests = share_begin("SHA2-256", EVP_MD_get0_provider(sha));
	pthread_t threads[THREADS];

	(void)unused;
	prepare();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(wrong, 0);
	share_end(&ciphers, (uint64_t)THREADS * rounds * 22528);
	share_end(&digests, (uint64_t)THREADS * rounds * HASHED);
	for (size_t i = 0; i < MESSAGES; i++)
		outcome_free(&expected[i]);
	EVP_CIPHER_free(cbc);
	EVP_MD_free(sha);
}

#define LEN 8192

/* A copy that goes on in another thread while its original gets keys. */
struct copy {
	EVP_CIPHER_CTX *cipher;
	EVP_MAC_CTX *mac;
	uint8_t ciphertext[LEN], tag[32];
	unsigned rounds;
};

static void *use_copy(void *argument)
{
	const struct copy *c = argument;
	uint8_t out[LEN + 32], mac[32];
	size_t len;
	int n;

	for (unsigned i = 0; i < c->rounds; i++) {
		wrong += !EVP_EncryptInit_ex(c->cipher, NULL, NULL, NULL, zero_iv) ||
			 !EVP_EncryptUpdate(c->cipher, out, &n, pattern, LEN) || memcmp(out, c->ciphertext, LEN) != 0;
		wrong += !EVP_MAC_init(c->mac, NULL, 0, NULL) || !EVP_MAC_update(c->mac, pattern, LEN) ||
			 !EVP_MAC_final(c->mac, mac, &len, sizeof(mac)) || memcmp(mac, c->tag, 32) != 0;
	}
	return NULL;
}

/* B10. */
static void rekey_while_copy_works(void **unused)
{
	static const char *const names[] = {"AES-128-CBC", "AES-256-CTR", "AES-128-GCM"};
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)(uintptr_t) "SHA2-256", 0),
		OSSL_PARAM_END};
	static struct copy c;

	(void)unused;
	c.rounds = rounds < 300 ? rounds : 300;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct job j = {.cipher = names[i], .key = key_a, .iv = zero_iv, .encrypt = 1};
		EVP_CIPHER *cipher = fetch_cipher(ours, names[i]);
		EVP_MAC *hmac = EVP_MAC_fetch(ours, "HMAC", NULL);
		EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
		EVP_MAC_CTX *mac = EVP_MAC_CTX_new(hmac);
		static uint8_t out[LEN + 32];
		struct outcome o;
		pthread_t thread;
		int n;

		job_run(reference, &j, pattern, LEN, &o);
		memcpy(c.ciphertext, o.out, LEN);
		outcome_free(&o);
		assert_non_null(
			EVP_Q_mac(reference, "HMAC", NULL, "SHA2-256", NULL, key_a, 32, pattern, LEN, c.tag, 32, NULL));
		c.cipher = EVP_CIPHER_CTX_new();
		assert_true(job_init(ctx, cipher, &j) && EVP_EncryptUpdate(ctx, out, &n, pattern, LEN) &&
			    EVP_CIPHER_CTX_copy(c.cipher, ctx));
		assert_true(EVP_MAC_init(mac, key_a, 32, params) && EVP_MAC_update(mac, pattern, LEN));
		c.mac = EVP_MAC_CTX_dup(mac);
		assert_non_null(c.mac);
		assert_int_equal(pthread_create(&thread, NULL, use_copy, &c), 0);
		for (unsigned round = 0; round < c.rounds; round++) {
			assert_true(EVP_EncryptInit_ex(ctx, NULL, NULL, round % 2 ? key_a : key_b, zero_iv) &&
				    EVP_EncryptUpdate(ctx, out, &n, pattern, LEN));
			assert_int_equal(memcmp(out, c.ciphertext, LEN) == 0, round % 2);
			assert_true(EVP_MAC_init(mac, round % 2 ? key_a : key_b, 32, NULL) &&
				    EVP_MAC_update(mac, pattern, LEN));
		}
		pthread_join(thread, NULL);
		assert_int_equal(wrong, 0);
		EVP_CIPHER_CTX_free(c.cipher);
		EVP_CIPHER_CTX_free(ctx);
		EVP_MAC_CTX_free(c.mac);
		EVP_MAC_CTX_free(mac);
		EVP_CIPHER_free(cipher);
		EVP_MAC_free(hmac);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(own_contexts),
		CASE(rekey_while_copy_works),
	};

	cases_begin(argc, argv);
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	return cases_end(cmocka_run_group_tests(tests, NULL, NULL), KIND_SKCIPHER);
}
