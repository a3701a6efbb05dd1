/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../afalg/hash.h"
#include "../../afalg/rng.h"
#include "../../afalg/session.h"
#include "../../provider/algorithms.h"
#include "../../provider/route.h"

#include "fake_rng.h"

#define OPS 512
#define FIRST_OP 100000 /* no real descriptor */
#define MESSAGE_MAX (4u << 20)

/*
 * What the kernel serves: all that we know, done by the default provider. Its algorithm depends on the key's length
 * too. Of the rows that share a kernel name the first is the kernel's own algorithm.
 */
static struct served {
	const struct algorithm *row;
	const char *type, *kernel;
	size_t keylen; /* bytes; 0: any, or none */
	EVP_CIPHER *cipher;
	EVP_MD *md;
} served[ALGORITHM_COUNT];

static OSSL_LIB_CTX *context;

#define SERVED ((size_t)ALGORITHM_COUNT)

struct transform {
	const char *type, *kernel;
	const struct served *keyed; /* by set_key, or a hash's own; null before */
	bool needs_key;
	uint8_t key[AFALG_HASH_KEY_MAX];
	size_t keylen, taglen;
	pid_t owner;
};

/* The state of a hash; in shared memory. */
struct message {
	const struct served *hash;
	uint8_t key[AFALG_HASH_KEY_MAX];
	size_t keylen;
	size_t bytes;
	bool ended, finished;
	uint8_t data[MESSAGE_MAX];
};

static struct {
	pthread_mutex_t lock;
	unsigned calls[FAKE_CALLS];
	uint64_t bytes[FAKE_CALLS];
	struct {
		unsigned first, end;
		int error;
	} script[FAKE_CALLS];
	unsigned spoil, delay;
	unsigned transforms, keyed, keyed_most, ops;
	struct message *op[OPS];
	atomic_uint *violations; /* shared across fork */
	int support, found;
	enum afalg_class class;
	unsigned asked;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

void violation(const char *what)
{
	fprintf(stderr, "fake kernel: %s\n", what);
	atomic_fetch_add(fake.violations, 1);
}

/*** Setting up ***/

void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&fake.lock);
}

static void fork_done(void)
{
	pthread_mutex_unlock(&fake.lock);
}

/* The length of the key that a MAC takes: that of its cipher, or any. */
static size_t mac_key_length(const struct algorithm *a)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(context, a->over, NULL);
	size_t length = cipher == NULL ? 0 : (size_t)EVP_CIPHER_get_key_length(cipher);

	EVP_CIPHER_free(cipher);
	return length;
}

static void setup(void)
{
	context = OSSL_LIB_CTX_new();
	if (context == NULL || OSSL_PROVIDER_load(context, "default") == NULL ||
	    OSSL_PROVIDER_load(context, "legacy") == NULL)
		abort();
	for (size_t i = 0; i < SERVED; i++) {
		struct served *s = &served[i];
		const struct algorithm *a = &algorithms[i];

		*s = (struct served){.row = a, .type = algorithm_type(a->kind), .kernel = a->kernel};
		if (a->kind == KIND_RNG)
			continue;
		if (a->kind == KIND_MAC)
			s->keylen = mac_key_length(a);
		else if (a->kind == KIND_HASH)
			s->md = EVP_MD_fetch(context, a->name, NULL);
		else if ((s->cipher = EVP_CIPHER_fetch(context, a->name, NULL)) != NULL)
			s->keylen = (size_t)EVP_CIPHER_get_key_length(s->cipher);
	}
	ERR_clear_error(); /* of rows that this OpenSSL lacks */
	fake.violations = shared_memory(sizeof(*fake.violations));
	/* Before those of afalg/, so that the lock is the last to be taken: their handlers call the fake kernel. */
	pthread_atfork(fork_prepare, fork_done, fork_done);
	fake_rng_setup();
	fake.class = AFALG_HARDWARE;
}

void fake_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, setup);
	afalg_session_set_transport(&fake_transport);
	afalg_hash_set_transport(&fake_transport);
	afalg_rng_set_transport(&fake_transport);
	fake_catalogue(0, 0, AFALG_HARDWARE);
	fake_reset();
	route_forget();
}

void fake_close_idle(void)
{
	afalg_hash_set_transport(&fake_transport);
	afalg_rng_set_transport(&fake_transport);
}

void fake_reset(void)
{
	pthread_mutex_lock(&fake.lock);
	memset(fake.calls, 0, sizeof(fake.calls));
	memset(fake.bytes, 0, sizeof(fake.bytes));
	memset(fake.script, 0, sizeof(fake.script));
	fake.spoil = fake.delay = fake.asked = 0;
	fake.keyed_most = fake.keyed;
	pthread_mutex_unlock(&fake.lock);
	fake_rng_reset();
}

void fake_fail(enum fake_call call, unsigned nth, int error, unsigned times)
{
	pthread_mutex_lock(&fake.lock);
	fake.script[call].first = fake.calls[call] + nth;
	fake.script[call].end = fake.calls[call] + nth + times;
	fake.script[call].error = error;
	pthread_mutex_unlock(&fake.lock);
}

/* Reads one number of the fake kernel. */
static unsigned number(const unsigned *n)
{
	unsigned value;

	pthread_mutex_lock(&fake.lock);
	value = *n;
	pthread_mutex_unlock(&fake.lock);
	return value;
}

static void set_number(unsigned *n, unsigned value)
{
	pthread_mutex_lock(&fake.lock);
	*n = value;
	pthread_mutex_unlock(&fake.lock);
}

void fake_spoil(unsigned percent)
{
	set_number(&fake.spoil, percent);
}

void fake_delay(unsigned microseconds)
{
	set_number(&fake.delay, microseconds);
}

unsigned fake_calls(enum fake_call call)
{
	return number(&fake.calls[call]);
}

uint64_t fake_bytes(enum fake_call call)
{
	uint64_t value;

	pthread_mutex_lock(&fake.lock);
	value = fake.bytes[call];
	pthread_mutex_unlock(&fake.lock);
	return value;
}

unsigned fake_transforms(void)
{
	return number(&fake.transforms);
}

unsigned fake_keyed(void)
{
	return number(&fake.keyed);
}

unsigned fake_keyed_most(void)
{
	return number(&fake.keyed_most);
}

unsigned fake_ops(void)
{
	return number(&fake.ops) + fake_rng_ops();
}

unsigned fake_asked(void)
{
	return number(&fake.asked);
}

unsigned fake_violations(void)
{
	return atomic_load(fake.violations);
}

/* Counts a call and says what the script wants of it: 0 or a negative errno. */
int scripted(enum fake_call call, size_t bytes)
{
	unsigned n, delay;
	int err = 0;

	pthread_mutex_lock(&fake.lock);
	n = ++fake.calls[call];
	if (n >= fake.script[call].first && n < fake.script[call].end)
		err = -fake.script[call].error;
	if (err == 0)
		fake.bytes[call] += bytes;
	delay = fake.delay;
	pthread_mutex_unlock(&fake.lock);
	if (delay != 0 && (call == FAKE_CRYPT || call == FAKE_HASH_SEND))
		usleep(delay);
	return err;
}

/*** The catalogue ***/

void fake_catalogue(int support, int found, enum afalg_class class)
{
	pthread_mutex_lock(&fake.lock);
	fake.support = support;
	fake.found = found;
	fake.class = class;
	pthread_mutex_unlock(&fake.lock);
}

int __wrap_afalg_catalogue_support(void);
int __wrap_afalg_catalogue_support(void)
{
	int support;

	pthread_mutex_lock(&fake.lock);
	support = fake.support;
	pthread_mutex_unlock(&fake.lock);
	return support;
}

int __wrap_afalg_catalogue_find(const char *type, const char *algorithm, bool bind, struct afalg_driver *driver);
int __wrap_afalg_catalogue_find(const char *type, const char *algorithm, bool bind, struct afalg_driver *driver)
{
	int err;

	(void)bind;
	pthread_mutex_lock(&fake.lock);
	fake.asked++;
	err = fake.found;
	*driver = (struct afalg_driver){.class = fake.class, .priority = 300};
	pthread_mutex_unlock(&fake.lock);
	snprintf(driver->name, sizeof(driver->name), "fake-%s", algorithm);
	snprintf(driver->evidence, sizeof(driver->evidence), "a %s of the tests", type);
	return err;
}

bool __wrap_afalg_catalogue_hints_hardware(const char *type, const char *algorithm);
bool __wrap_afalg_catalogue_hints_hardware(const char *type, const char *algorithm)
{
	bool hardware;

	(void)type;
	(void)algorithm;
	pthread_mutex_lock(&fake.lock);
	hardware = fake.class == AFALG_HARDWARE;
	pthread_mutex_unlock(&fake.lock);
	return hardware;
}

/*** Transforms ***/

/* Whether the length of the key is one of the algorithm's; 0: any will do. */
static bool fits(const struct served *s, size_t keylen)
{
	const struct algorithm *a = &algorithms[s - served];

	if (a->key_max > 0 && keylen > 0)
		return keylen >= a->key_min && keylen <= a->key_max;
	return keylen == 0 || s->keylen == 0 || keylen == s->keylen;
}

static const struct served *find(const char *type, const char *algorithm, size_t keylen)
{
	for (size_t i = 0; i < SERVED; i++)
		if ((served[i].row->kind == KIND_MAC || served[i].cipher != NULL || served[i].md != NULL) &&
		    strcmp(served[i].type, type) == 0 && strcmp(served[i].kernel, algorithm) == 0 &&
		    fits(&served[i], keylen))
			return &served[i];
	return NULL;
}

bool fake_serves(const char *type, const char *algorithm)
{
	return find(type, algorithm, 0) != NULL;
}

static int fake_open(const char *type, const char *algorithm, void **transform)
{
	const struct served *s = find(type, algorithm, 0);
	int err = scripted(FAKE_OPEN, 0);
	struct transform *t;

	if (err != 0)
		return err;
	if (s == NULL)
		return -ENOENT;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->type = s->type;
	t->kernel = s->kernel;
	t->needs_key = s->md == NULL;
	t->keyed = t->needs_key ? NULL : s;
	t->owner = getpid();
	pthread_mutex_lock(&fake.lock);
	fake.transforms++;
	if (t->needs_key && ++fake.keyed > fake.keyed_most)
		fake.keyed_most = fake.keyed;
	pthread_mutex_unlock(&fake.lock);
	*transform = t;
	return 0;
}

static void fake_close(void *transform)
{
	struct transform *t = transform;

	unsigned delay;

	pthread_mutex_lock(&fake.lock);
	fake.transforms--;
	fake.keyed -= t->needs_key;
	delay = fake.delay;
	pthread_mutex_unlock(&fake.lock);
	free(t);
	if (delay != 0)
		usleep(delay); /* a fork now finds it closed, and must not close it again */
}

static int fake_set_key(void *transform, const uint8_t *key, size_t keylen)
{
	struct transform *t = transform;
	int err = scripted(FAKE_SET_KEY, keylen);

	if (err != 0)
		return err;
	if (t->keyed != NULL)
		violation("a transform is given a second key");
	t->keyed = find(t->type, t->kernel, keylen);
	if (t->keyed == NULL || keylen > sizeof(t->key))
		return -EINVAL;
	memcpy(t->key, key, keylen);
	t->keylen = keylen;
	return 0;
}

static int fake_set_taglen(void *transform, size_t taglen)
{
	struct transform *t = transform;
	int err = scripted(FAKE_SET_TAGLEN, taglen);

	if (err != 0)
		return err;
	if (strcmp(t->type, "aead") != 0 || taglen == 0 || taglen > 16)
		violation("a tag length that cannot be");
	t->taglen = taglen;
	return 0;
}

/* CCM's is a whole block (crypto/ccm.c). */
static size_t kernel_ivlen(const struct served *s)
{
	return EVP_CIPHER_get_mode(s->cipher) == EVP_CIPH_CCM_MODE ? 16 : (size_t)EVP_CIPHER_get_iv_length(s->cipher);
}

/* The kernel counts the blocks of ChaCha20 in 32 bits; the default provider, which computes here, in 64. */
static bool runs_over(const struct algorithm *a, const struct afalg_request *r)
{
	uint64_t counter = 0;

	for (int i = 3; i >= 0; i--)
		counter = counter << 8 | r->iv[i];
	return counter + r->len / a->block > (uint64_t)UINT32_MAX + 1;
}

/* Whether the request keeps the rules. */
static bool rules_kept(const struct transform *t, const struct afalg_request *r)
{
	const uintptr_t in = (uintptr_t)r->in, out = (uintptr_t)r->out;
	const struct algorithm *a;

	if (t->owner != getpid()) {
		violation("a transform of the parent process is used");
		return false;
	}
	if (t->keyed == NULL) {
		violation("a request without a key");
		return false;
	}
	a = &algorithms[t->keyed - served];
	if (r->taglen != t->taglen || (t->taglen == 0 && r->aadlen > 0)) {
		violation("a tag of another length than told");
		return false;
	}
	if (r->len == 0 || r->aadlen + r->len + r->taglen > AFALG_REQUEST_MAX ||
	    (a->kind == KIND_SKCIPHER && a->mode != MODE_XTS && r->len % a->block != 0)) {
		violation("a request of a length that is not allowed");
		return false;
	}
	if (r->ivlen != kernel_ivlen(t->keyed)) {
		violation("an IV of another length");
		return false;
	}
	if (a->mode == MODE_CHACHA20 && runs_over(a, r)) {
		violation("the counter of ChaCha20 runs over within a request");
		return false;
	}
	if (in != out && in < out + r->len && out < in + r->len) {
		violation("input and output overlap in part");
		return false;
	}
	return true;
}

static int compute(const struct transform *t, const struct afalg_request *r)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0, ok;

	ok = c != NULL && EVP_CipherInit_ex2(c, t->keyed->cipher, NULL, NULL, r->encrypt, NULL) &&
	     EVP_CIPHER_CTX_set_key_length(c, (int)t->keylen) &&
	     EVP_CipherInit_ex2(c, NULL, t->key, r->iv, r->encrypt, NULL) && EVP_CIPHER_CTX_set_padding(c, 0) &&
	     EVP_CipherUpdate(c, r->out, &n, r->in, (int)r->len);
	EVP_CIPHER_CTX_free(c);
	return ok && (size_t)n == r->len ? 0 : -EIO;
}

/* As the kernel does it: all at once, and with a nonce of CCM's in its first block. */
static int compute_aead(const struct transform *t, const struct afalg_request *r)
{
	const bool ccm = EVP_CIPHER_get_mode(t->keyed->cipher) == EVP_CIPH_CCM_MODE;
	const uint8_t *nonce = ccm ? r->iv + 1 : r->iv;
	const int noncelen = ccm ? 14 - r->iv[0] : (int)r->ivlen, taglen = (int)r->taglen;
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n = 0, ok, good;

	ok = c != NULL && EVP_CipherInit_ex2(c, t->keyed->cipher, NULL, NULL, r->encrypt, NULL) &&
	     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, noncelen, NULL) &&
	     (!(ccm || !r->encrypt) ||
	      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, taglen, r->encrypt ? NULL : r->tag)) &&
	     EVP_CipherInit_ex2(c, NULL, t->key, nonce, r->encrypt, NULL) &&
	     (!ccm || EVP_CipherUpdate(c, NULL, &n, NULL, (int)r->len)) &&
	     (r->aadlen == 0 || EVP_CipherUpdate(c, NULL, &n, r->aad, (int)r->aadlen));
	good = ok && EVP_CipherUpdate(c, r->out, &n, r->in, (int)r->len) && EVP_CipherFinal_ex(c, r->out, &n);
	if (good && r->encrypt)
		ok = EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, taglen, r->tag);
	EVP_CIPHER_CTX_free(c);
	if (ok && !good)
		ERR_clear_error();
	return !ok ? -EIO : good ? 0 : -EBADMSG;
}

static int fake_crypt(void *transform, const struct afalg_request *r)
{
	const struct transform *t = transform;
	int err = scripted(FAKE_CRYPT, r->len);

	if (!rules_kept(t, r))
		return -EINVAL;
	if (err == 0)
		return t->taglen > 0 ? compute_aead(t, r) : compute(t, r);
	memset(r->out, 0xa5, r->len * number(&fake.spoil) / 100);
	return err;
}

/*** Hashes ***/

/* The message of an operation, or null. */
static struct message *message_of(int op)
{
	struct message *m = NULL;

	if (op < 0)
		return NULL; /* a caller may try: accept(2) on -1 just fails */
	pthread_mutex_lock(&fake.lock);
	if (op >= FIRST_OP && op < FIRST_OP + OPS)
		m = fake.op[op - FIRST_OP];
	pthread_mutex_unlock(&fake.lock);
	if (m == NULL)
		violation("an operation is used that is not open");
	return m;
}

static int new_op(const struct served *hash, const uint8_t *key, size_t keylen, struct afalg_op *made)
{
	struct message *m = shared_memory(sizeof(*m));
	int op = -EMFILE;

	m->hash = hash;
	memcpy(m->key, key, keylen);
	m->keylen = keylen;
	pthread_mutex_lock(&fake.lock);
	for (int i = 0; i < OPS && op < 0; i++)
		if (fake.op[i] == NULL) {
			fake.op[i] = m;
			fake.ops++;
			op = FIRST_OP + i;
		}
	pthread_mutex_unlock(&fake.lock);
	*made = (struct afalg_op){.fd = op < 0 ? -1 : op};
	if (op >= 0)
		return 0;
	munmap(m, sizeof(*m));
	return op;
}

static int fake_hash_start(void *transform, struct afalg_op *op)
{
	const struct transform *t = transform;
	int err = scripted(FAKE_HASH_START, 0);

	if (t->keyed == NULL) {
		violation("a hash is begun before its key is set");
		return -ENOKEY;
	}
	return err != 0 ? err : new_op(t->keyed, t->key, t->keylen, op);
}

static int fake_hash_send(const struct afalg_op *op, const struct iovec *iov, int parts, bool more)
{
	struct message *m = message_of(op->fd);
	size_t bytes = 0;
	int err;

	for (int i = 0; i < parts; i++)
		bytes += iov[i].iov_len;
	err = scripted(FAKE_HASH_SEND, bytes);
	if (m == NULL)
		return -EBADF;
	if (bytes > AFALG_REQUEST_MAX || (m->ended && !m->finished) || m->bytes + bytes > MESSAGE_MAX) {
		violation("a hash is sent too much, or something after its end");
		return -EMSGSIZE;
	}
	if (err != 0)
		return err;
	if (m->finished) { /* its next message */
		m->bytes = 0;
		m->finished = false;
	}
	for (int i = 0; i < parts; i++) {
		if (iov[i].iov_len > 0)
			memcpy(m->data + m->bytes, iov[i].iov_base, iov[i].iov_len);
		m->bytes += iov[i].iov_len;
	}
	m->ended = !more;
	return 0;
}

static int hash_compute(const struct message *m, uint8_t *md)
{
	const struct algorithm *a = m->hash->row;
	size_t length = a->size;
	bool good;

	if (a->kind == KIND_HASH)
		good = EVP_Digest(m->data, m->bytes, md, NULL, m->hash->md, NULL);
	else
		good = EVP_Q_mac(context, a->offered, NULL, a->over, NULL, m->key, m->keylen, m->data, m->bytes, md,
				 a->size, &length) != NULL;
	return good && length == a->size ? 0 : -EIO;
}

static int fake_hash_finish(const struct afalg_op *op, uint8_t *md, size_t mdlen)
{
	struct message *m = message_of(op->fd);
	int err = scripted(FAKE_HASH_FINISH, mdlen);

	if (m == NULL)
		return -EBADF;
	if (m->finished || mdlen != m->hash->row->size) {
		violation("a digest is asked for twice, or with another length");
		return -EINVAL;
	}
	if (err != 0)
		return err;
	m->finished = true;
	return hash_compute(m, md);
}

static int fake_hash_copy(const struct afalg_op *op, struct afalg_op *made)
{
	struct message *m = message_of(op->fd), *copy;
	int err = scripted(FAKE_HASH_COPY, 0);

	if (m == NULL)
		return -EBADF;
	if (err == 0)
		err = new_op(m->hash, m->key, m->keylen, made);
	if (err != 0)
		return err;
	copy = message_of(made->fd);
	memcpy(copy->data, m->data, m->bytes);
	copy->bytes = m->bytes;
	copy->ended = m->ended;
	copy->finished = m->finished;
	return 0;
}

static void fake_hash_end(struct afalg_op *op)
{
	struct message *m = message_of(op->fd);

	if (m == NULL)
		return;
	pthread_mutex_lock(&fake.lock);
	fake.op[op->fd - FIRST_OP] = NULL;
	fake.ops--;
	pthread_mutex_unlock(&fake.lock);
	munmap(m, sizeof(*m));
	op->fd = -1;
}

const struct afalg_transport fake_transport = {
	.name = "fake",
	.open = fake_open,
	.set_key = fake_set_key,
	.set_taglen = fake_set_taglen,
	.crypt = fake_crypt,
	.close = fake_close,
	.hash_start = fake_hash_start,
	.hash_send = fake_hash_send,
	.hash_finish = fake_hash_finish,
	.hash_copy = fake_hash_copy,
	.hash_end = fake_hash_end,
	.rng_open = fake_rng_open,
	.rng_read = fake_rng_read,
	.rng_replace = fake_rng_replace,
	.rng_close = fake_rng_close,
};
