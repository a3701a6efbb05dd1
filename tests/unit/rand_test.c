/* SPDX-License-Identifier: Apache-2.0 */
/* Random generators: who gives the bytes, and that whatever fails no caller is told that he has some when he has none.
 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#include "../../provider/counters.h"

static struct lib lib;

static EVP_RAND_CTX *context_of(const char *name, EVP_RAND_CTX *parent)
{
	EVP_RAND *rand = EVP_RAND_fetch(lib.context, name, NULL);
	EVP_RAND_CTX *c;

	assert_non_null(rand);
	c = EVP_RAND_CTX_new(rand, parent);
	assert_non_null(c);
	EVP_RAND_free(rand);
	return c;
}

static EVP_RAND_CTX *open_context(enum algorithm_id id)
{
	EVP_RAND_CTX *c = context_of(algorithms[id].name, NULL);

	assert_true(EVP_RAND_instantiate(c, 256, 0, NULL, 0, NULL));
	return c;
}

static int generate(EVP_RAND_CTX *c, void *out, size_t n)
{
	return EVP_RAND_generate(c, out, n, 0, 0, NULL, 0);
}

/* What was counted since the last call. */
static struct support {
	uint64_t requests, kernel, calls, software, fallbacks, errors;
} counted(enum algorithm_id id)
{
	static struct support last[ALGORITHM_COUNT];
	const struct counts *c = counters_of(id);
	struct support now, difference;

	counters_flush();
	now = (struct support){atomic_load(&c->kernel_requests), atomic_load(&c->kernel_bytes),
			       atomic_load(&c->software_calls),  atomic_load(&c->software_bytes),
			       atomic_load(&c->fallbacks),       atomic_load(&c->errors)};
	difference = (struct support){now.requests - last[id].requests,   now.kernel - last[id].kernel,
				      now.calls - last[id].calls,         now.software - last[id].software,
				      now.fallbacks - last[id].fallbacks, now.errors - last[id].errors};
	last[id] = now;
	return difference;
}

static const enum algorithm_id both[] = {ALG_AFALG_DRBG, ALG_AFALG_JITTER};
#define BOTH (sizeof(both) / sizeof(*both))

/*** What is offered ***/

static void test_names(void **state)
{
	static const char *const others[] = {"CTR-DRBG", "HASH-DRBG", "HMAC-DRBG", "SEED-SRC", "TEST-RAND", "JITTER"};

	(void)state;
	for (size_t i = 0; i < BOTH; i++) {
		EVP_RAND *rand = EVP_RAND_fetch(lib.context, algorithms[both[i]].name, "afalg.kernel=yes");

		assert_string_equal(OSSL_PROVIDER_get0_name(EVP_RAND_get0_provider(rand)), "afalgprov");
		EVP_RAND_free(rand);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_null(EVP_RAND_fetch(lib.context, others[i], "provider=afalgprov"));
	ERR_clear_error();
}

/* Nobody who has not asked for them by name meets them. */
static void test_not_asked_for(void **state)
{
	uint8_t bytes[100];

	(void)state;
	assert_int_equal(RAND_bytes_ex(lib.context, bytes, sizeof(bytes), 0), 1);
	assert_int_equal(RAND_priv_bytes_ex(lib.context, bytes, sizeof(bytes), 0), 1);
	assert_int_equal(fake_calls(FAKE_RNG_OPEN) + fake_calls(FAKE_GETRANDOM), 0);
}

/*** Contexts ***/

static void assert_reason(int reason)
{
	bool found = false;

	for (unsigned long e; (e = ERR_get_error()) != 0;)
		found = found || ERR_GET_REASON(e) == reason;
	assert_true(found);
}

static void test_states(void **state)
{
	(void)state;
	for (size_t i = 0; i < BOTH; i++) {
		EVP_RAND_CTX *c = context_of(algorithms[both[i]].name, NULL);
		uint8_t bytes[16] = {0};

		assert_int_equal(EVP_RAND_get_state(c), EVP_RAND_STATE_UNINITIALISED);
		assert_int_equal(EVP_RAND_get_strength(c), 256);
		assert_false(generate(c, bytes, sizeof(bytes)));
		assert_reason(ERROR_RAND_USE);
		assert_false(EVP_RAND_reseed(c, 0, NULL, 0, NULL, 0));
		assert_false(EVP_RAND_nonce(c, bytes, sizeof(bytes)));
		assert_false(EVP_RAND_instantiate(c, 257, 0, NULL, 0, NULL));
		assert_int_equal(EVP_RAND_get_state(c), EVP_RAND_STATE_UNINITIALISED);
		assert_true(EVP_RAND_instantiate(c, 256, 0, pattern(), 100, NULL));
		assert_int_equal(EVP_RAND_get_state(c), EVP_RAND_STATE_READY);
		assert_true(EVP_RAND_enable_locking(c));
		ERR_clear_error();
		assert_false(EVP_RAND_generate(c, bytes, sizeof(bytes), 257, 0, NULL, 0));
		assert_reason(ERROR_RAND_USE);
		assert_true(EVP_RAND_generate(c, bytes, sizeof(bytes), 256, 0, pattern(), 1000));
		assert_true(EVP_RAND_nonce(c, bytes, sizeof(bytes)));
		assert_true(EVP_RAND_reseed(c, 0, pattern(), 48, pattern(), 48));
		assert_true(EVP_RAND_uninstantiate(c));
		assert_true(EVP_RAND_verify_zeroization(c));
		assert_int_equal(EVP_RAND_get_state(c), EVP_RAND_STATE_UNINITIALISED);
		assert_false(generate(c, bytes, sizeof(bytes)));
		assert_true(EVP_RAND_instantiate(c, 0, 1, NULL, 0, NULL));
		assert_true(generate(c, bytes, sizeof(bytes)));
		EVP_RAND_CTX_free(c);
		ERR_clear_error();
	}
}

/* Every parameter that is said to be there is there, in the type that is said, and nothing can be set. */
static void test_params(void **state)
{
	(void)state;
	for (size_t i = 0; i < BOTH; i++) {
		EVP_RAND_CTX *c = open_context(both[i]);
		const OSSL_PARAM *list = EVP_RAND_CTX_gettable_params(c);
		unsigned count = 0;

		assert_ptr_equal(list, EVP_RAND_gettable_ctx_params(EVP_RAND_CTX_get0_rand(c)));
		assert_null(EVP_RAND_CTX_settable_params(c));
		for (; list->key != NULL; list++, count++) {
			uint64_t value = 0;
			OSSL_PARAM params[2] = {*list, OSSL_PARAM_construct_end()};

			params[0].data = &value;
			assert_true(EVP_RAND_CTX_get_params(c, params));
			assert_int_equal(params[0].return_size, list->data_size);
			assert_true(value != 0);
		}
		assert_int_equal(count, 3);
		EVP_RAND_CTX_free(c);
	}
}

/* Whatever the length: exactly those bytes are written, by the kernel, in requests of at most 128 bytes. */
static void test_sizes(void **state)
{
	static const size_t sizes[] = {1,   2,   15,  16,  17,   127,   128,   129,   130,    143,      144,
				       145, 255, 256, 257, 1000, 65535, 65536, 65537, 131073, 1u << 20, (1u << 20) + 1};
	static uint8_t bytes[(1u << 20) + 64];

	(void)state;
	for (size_t i = 0; i < BOTH; i++) {
		EVP_RAND_CTX *c = open_context(both[i]);

		for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
			const size_t n = sizes[s], whole = n / 65536, rest = n % 65536;
			struct support d;
			size_t zeros = 0;

			memset(bytes, 0, sizeof(bytes));
			fake_reset();
			counted(both[i]);
			assert_true(generate(c, bytes + 16, n));
			for (size_t b = 0; b < sizeof(bytes); b++)
				if (b < 16 || b >= 16 + n)
					assert_int_equal(bytes[b], 0);
				else
					zeros += bytes[b] == 0;
			assert_true(zeros <= n / 64 + 3);
			d = counted(both[i]);
			assert_int_equal(d.kernel, n);
			assert_int_equal(d.requests, whole * 512 + (rest + 127) / 128);
			assert_int_equal(fake_calls(FAKE_RNG_READ), d.requests);
			assert_int_equal(d.software + d.calls + d.fallbacks + d.errors, 0);
		}
		EVP_RAND_CTX_free(c);
	}
}

/* Opened once, when bytes are first wanted, and for all contexts together. */
static void test_opened_late(void **state)
{
	EVP_RAND_CTX *first, *second;
	uint8_t bytes[16];

	(void)state;
	fake_close_idle();
	fake_reset();
	first = open_context(ALG_AFALG_DRBG);
	second = open_context(ALG_AFALG_DRBG);
	assert_int_equal(fake_calls(FAKE_RNG_OPEN), 0);
	for (int i = 0; i < 10; i++) {
		assert_true(generate(first, bytes, sizeof(bytes)));
		assert_true(generate(second, bytes, sizeof(bytes)));
	}
	assert_int_equal(fake_calls(FAKE_RNG_OPEN), 1);
	assert_int_equal(fake_ops(), 1);
	EVP_RAND_CTX_free(first);
	EVP_RAND_CTX_free(second);
	assert_int_equal(fake_asked(), 0); /* the catalogue: it is of no matter who the driver is */
}

/* A new seed is a new generator in the kernel, but only when bytes are wanted: RAND_add() reseeds what nobody reads. */
static void test_reseed(void **state)
{
	EVP_RAND_CTX *drbg = open_context(ALG_AFALG_DRBG), *jitter = open_context(ALG_AFALG_JITTER);
	uint8_t bytes[16];

	(void)state;
	assert_true(generate(drbg, bytes, sizeof(bytes)) && generate(jitter, bytes, sizeof(bytes)));
	fake_reset();
	for (int i = 0; i < 10; i++)
		assert_true(EVP_RAND_reseed(drbg, 0, NULL, 0, pattern(), 20));
	assert_int_equal(fake_calls(FAKE_RNG_OPEN), 0);
	assert_true(generate(drbg, bytes, sizeof(bytes)) && generate(drbg, bytes, sizeof(bytes)));
	assert_int_equal(fake_calls(FAKE_RNG_OPEN), 1);
	assert_true(EVP_RAND_generate(drbg, bytes, sizeof(bytes), 256, 1, NULL, 0));
	assert_true(EVP_RAND_generate(drbg, bytes, sizeof(bytes), 256, 1, NULL, 0));
	assert_int_equal(fake_calls(FAKE_RNG_OPEN), 3);
	assert_true(EVP_RAND_reseed(jitter, 1, NULL, 0, NULL, 0)); /* it has a fresh one at all times */
	assert_true(EVP_RAND_generate(jitter, bytes, sizeof(bytes), 256, 1, NULL, 0));
	assert_int_equal(fake_calls(FAKE_RNG_OPEN), 3);
	assert_int_equal(fake_ops(), 2); /* none was left open */
	EVP_RAND_CTX_free(drbg);
	EVP_RAND_CTX_free(jitter);
}

/*** Failures ***/

/* The bytes are those of getrandom(2), all of them, and only they. */
static void assert_from_system(EVP_RAND_CTX *c, enum algorithm_id id, size_t n, unsigned fallbacks)
{
	static uint8_t bytes[1000];
	struct support d;
	size_t alike = 0;

	memset(bytes, 0, sizeof(bytes));
	counted(id);
	assert_true(generate(c, bytes, n));
	d = counted(id);
	assert_int_equal(d.software, n);
	assert_int_equal(d.calls, 1);
	assert_int_equal(d.fallbacks, fallbacks);
	assert_int_equal(d.kernel + d.requests + d.errors, 0);
	assert_int_equal(ERR_peek_error(), 0);
	for (size_t i = 0; i < n; i++)
		alike += bytes[i] == 0 || bytes[i] == 0xa5; /* what a read that fails leaves behind */
	assert_true(alike <= n / 16 + 3);
}

static void assert_from_kernel(EVP_RAND_CTX *c, enum algorithm_id id, size_t n)
{
	static uint8_t bytes[1000];
	struct support d;

	counted(id);
	assert_true(generate(c, bytes, n));
	d = counted(id);
	assert_int_equal(d.kernel, n);
	assert_int_equal(d.software + d.fallbacks + d.errors, 0);
}

static const struct {
	int error;
	bool passing; /* says nothing about the next try */
} faults[] = {
	{EAFNOSUPPORT, false}, {EPERM, false},  {EACCES, false}, {ENOENT, false},   {ELIBBAD, false}, {EINVAL, false},
	{ENODATA, false},      {EFAULT, false}, {EMFILE, true},  {ENFILE, true},    {ENOMEM, true},   {EIO, true},
	{EBUSY, true},         {EAGAIN, true},  {EINTR, true},   {ETIMEDOUT, true},
};

static void fault(enum algorithm_id id, enum fake_call call, unsigned nth, int error, bool passing)
{
	EVP_RAND_CTX *c = open_context(id);

	fake_install();
	fake_fail(call, nth, error, 1);
	assert_from_system(c, id, 1000, 1);
	/* Left alone for a while, or for good. */
	fake_reset();
	assert_from_system(c, id, 500, 0);
	assert_int_equal(fake_calls(FAKE_RNG_OPEN) + fake_calls(FAKE_RNG_READ), 0);
	clock_now += 20000000000;
	if (passing) {
		assert_from_kernel(c, id, 500);
		assert_int_equal(fake_calls(FAKE_RNG_OPEN), 1); /* what has failed is not used again */
		assert_int_equal(fake_ops(), 1);
	} else {
		assert_from_system(c, id, 500, 0);
	}
	EVP_RAND_CTX_free(c);
}

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < BOTH; i++)
		for (size_t f = 0; f < sizeof(faults) / sizeof(*faults); f++) {
			fault(both[i], FAKE_RNG_OPEN, 1, faults[f].error, faults[f].passing);
			for (unsigned nth = 1; nth <= 8; nth += 7)
				fault(both[i], FAKE_RNG_READ, nth, faults[f].error, true);
		}
	fake_install();
}

/* A driver that gives the same byte for ever gives nothing, also where a caller wants too few to tell. */
static void test_stuck(void **state)
{
	static const int bytes[] = {0, 0xff, 0x5a};
	static const size_t sizes[] = {1, 4, 15, 16, 32, 128, 129, 1000};

	(void)state;
	for (size_t i = 0; i < BOTH; i++)
		for (size_t b = 0; b < sizeof(bytes) / sizeof(*bytes); b++)
			for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
				EVP_RAND_CTX *c = open_context(both[i]);

				fake_install();
				fake_repeat(bytes[b]);
				assert_from_system(c, both[i], sizes[s], 1);
				fake_repeat(-1);
				clock_now += 20000000000;
				assert_from_kernel(c, both[i], sizes[s]);
				EVP_RAND_CTX_free(c);
			}
}

/* Where getrandom(2) fails too the caller is told, and his buffer holds nothing that looks like random bytes. */
static void no_bytes(EVP_RAND_CTX *c, enum algorithm_id id)
{
	uint8_t bytes[300];
	struct support d;

	memset(bytes, 0x11, sizeof(bytes));
	counted(id);
	assert_false(generate(c, bytes, sizeof(bytes)));
	assert_reason(ERROR_RAND);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
	assert_false(EVP_RAND_nonce(c, bytes, sizeof(bytes)));
	assert_reason(ERROR_RAND);
	d = counted(id);
	assert_int_equal(d.errors, 2);
	assert_int_equal(d.kernel + d.software, 0);
}

static void test_nothing_left(void **state)
{
	static const int errors[] = {ENOSYS, EPERM, EAGAIN, EFAULT};

	(void)state;
	for (size_t i = 0; i < BOTH; i++) {
		EVP_RAND_CTX *c = open_context(both[i]), *child = context_of("CTR-DRBG", c);
		OSSL_PARAM params[] = {
			OSSL_PARAM_utf8_string(OSSL_DRBG_PARAM_CIPHER, (char *)(uintptr_t) "AES-256-CTR", 11),
			OSSL_PARAM_END};

		for (size_t e = 0; e < sizeof(errors) / sizeof(*errors); e++) {
			fake_install();
			fake_fail(FAKE_RNG_OPEN, 1, ENOENT, FAKE_ALWAYS);
			fake_fail(FAKE_GETRANDOM, 1, errors[e], FAKE_ALWAYS);
			no_bytes(c, both[i]);
			assert_false(EVP_RAND_instantiate(child, 0, 0, NULL, 0, params));
			ERR_clear_error();
		}
		fake_install();
		fake_fail(FAKE_RNG_READ, 1, EIO, FAKE_ALWAYS);
		fake_getrandom_most(0);
		no_bytes(c, both[i]);
		/* It is not lost for good. */
		fake_install();
		assert_from_kernel(c, both[i], 100);
		EVP_RAND_CTX_free(child);
		EVP_RAND_CTX_free(c);
	}
}

/* getrandom(2) may be interrupted, and may give less than it was asked for. */
static void test_system_in_pieces(void **state)
{
	EVP_RAND_CTX *c = open_context(ALG_AFALG_DRBG);

	(void)state;
	fake_install();
	fake_fail(FAKE_RNG_OPEN, 1, ENOENT, FAKE_ALWAYS);
	fake_fail(FAKE_GETRANDOM, 3, EINTR, 5);
	fake_getrandom_most(7);
	assert_from_system(c, ALG_AFALG_DRBG, 1000, 1);
	assert_int_equal(fake_calls(FAKE_GETRANDOM), 143 + 5);
	fake_install();
	EVP_RAND_CTX_free(c);
}

/* A program that daemonises has closed the generator: it is opened anew, and no one notices. */
static void test_taken_away(void **state)
{
	EVP_RAND_CTX *c = open_context(ALG_AFALG_DRBG);

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_from_kernel(c, ALG_AFALG_DRBG, 700);
		fake_close_generators();
	}
	assert_from_kernel(c, ALG_AFALG_DRBG, 700);
	assert_int_equal(fake_ops(), 1);
	EVP_RAND_CTX_free(c);
}

/*** Seeds ***/

/* OpenSSL's own generator seeded by ours: it gets its seeds here, and no more than its seeds. */
static void test_seed_source(void **state)
{
	static uint8_t bytes[10000];
	OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(OSSL_DRBG_PARAM_CIPHER, (char *)(uintptr_t) "AES-256-CTR", 11),
			       OSSL_PARAM_END};

	(void)state;
	for (size_t i = 0; i < BOTH; i++) {
		EVP_RAND_CTX *source = open_context(both[i]), *child = context_of("CTR-DRBG", source);
		struct support d;

		assert_true(EVP_RAND_enable_locking(child));
		counted(both[i]);
		assert_true(EVP_RAND_instantiate(child, 256, 0, NULL, 0, params));
		d = counted(both[i]);
		assert_true(d.kernel >= 32 && d.kernel <= 256);
		assert_true(generate(child, bytes, sizeof(bytes)));
		assert_int_equal(counted(both[i]).kernel, 0);
		assert_true(EVP_RAND_reseed(child, 1, NULL, 0, NULL, 0));
		assert_true(counted(both[i]).kernel >= 32);
		assert_int_equal(ERR_peek_error(), 0);
		EVP_RAND_CTX_free(child);
		EVP_RAND_CTX_free(source);
	}
}

/* The seed has the entropy and the length that were asked for, or there is none. */
static void test_get_seed(void **state)
{
	static const struct {
		int entropy;
		size_t min, max, expected;
	} cases[] = {
		{256, 32, 64, 32}, {256, 48, 64, 48}, {257, 0, 64, 33}, {0, 20, 20, 20},
		{-1, 20, 30, 20},  {256, 0, 31, 0},   {256, 0, 32, 32}, {8, 1000, 2000, 1000},
	};
	const struct provider *p = lib.provider;
	const OSSL_ALGORITHM *offer = p->offers[0][OSSL_OP_RAND];
	OSSL_FUNC_rand_get_seed_fn *get_seed = NULL;
	OSSL_FUNC_rand_clear_seed_fn *clear_seed = NULL;
	OSSL_FUNC_rand_newctx_fn *newctx = NULL;
	OSSL_FUNC_rand_instantiate_fn *instantiate = NULL;
	OSSL_FUNC_rand_freectx_fn *freectx = NULL;
	void *c;

	(void)state;
	for (const OSSL_DISPATCH *f = offer[0].implementation; f->function_id != 0; f++)
		switch (f->function_id) {
		case OSSL_FUNC_RAND_GET_SEED:
			get_seed = OSSL_FUNC_rand_get_seed(f);
			break;
		case OSSL_FUNC_RAND_CLEAR_SEED:
			clear_seed = OSSL_FUNC_rand_clear_seed(f);
			break;
		case OSSL_FUNC_RAND_NEWCTX:
			newctx = OSSL_FUNC_rand_newctx(f);
			break;
		case OSSL_FUNC_RAND_INSTANTIATE:
			instantiate = OSSL_FUNC_rand_instantiate(f);
			break;
		case OSSL_FUNC_RAND_FREECTX:
			freectx = OSSL_FUNC_rand_freectx(f);
			break;
		}
	c = newctx(lib.provider, NULL, NULL);
	assert_int_equal(get_seed(c, (unsigned char *[]){NULL}, 256, 32, 64, 0, NULL, 0), 0); /* not instantiated */
	assert_true(instantiate(c, 256, 0, NULL, 0, NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned char *seed = NULL;
		const size_t n = get_seed(c, &seed, cases[i].entropy, cases[i].min, cases[i].max, 0, NULL, 0);

		assert_int_equal(n, cases[i].expected);
		assert_true((seed != NULL) == (n != 0));
		if (n != 0)
			clear_seed(c, seed, n);
	}
	freectx(c);
	freectx(NULL);
	ERR_clear_error();
}

/*** Settings ***/

/* Whatever keeps the kernel lane shut, the bytes come. */
static void test_no_kernel(void **state)
{
	static const char *const settings[] = {"policy = software\ncounters = off\n",
					       "counters = off\nthresholds = AFALG-DRBG:never,AFALG-JITTER:never\n",
					       "counters = off\n"};

	(void)state;
	for (int s = 0; s < 3; s++) {
		lib_open_with(&lib, settings[s], s == 2 ? -EAFNOSUPPORT : 0);
		if (s == 2)
			fake_fail(FAKE_RNG_OPEN, 1, EAFNOSUPPORT, FAKE_ALWAYS);
		for (size_t i = 0; i < BOTH; i++) {
			EVP_RAND_CTX *c = open_context(both[i]);

			assert_int_equal(atomic_load(&counters_of(both[i])->direct), 0);
			assert_from_system(c, both[i], 100, s == 2);
			assert_from_system(c, both[i], 1, 0);
			EVP_RAND_CTX_free(c);
		}
		assert_int_equal(fake_calls(FAKE_RNG_OPEN), s == 2 ? 2 : 0);
		lib_close(&lib);
	}
}

/* All of RAND_bytes() from the kernel, or its seed only, by OpenSSL's own configuration. */
static void test_configured(void **state)
{
	static const char *const settings[] = {
		"counters = off\n[init]\nrandom = r\n[r]\nrandom = AFALG-DRBG\nproperties = provider=afalgprov\n",
		"counters = off\n[init]\nrandom = r\n[r]\nseed = AFALG-JITTER\nseed_properties = provider=afalgprov\n",
	};

	(void)state;
	for (int s = 0; s < 2; s++) {
		static uint8_t bytes[100000];

		lib_open(&lib, settings[s]);
		counted(both[s]);
		assert_int_equal(RAND_bytes_ex(lib.context, bytes, sizeof(bytes), 256), 1);
		assert_int_equal(RAND_priv_bytes_ex(lib.context, bytes, 100, 0), 1);
		if (s == 0)
			assert_int_equal(counted(both[s]).kernel, sizeof(bytes) + 100);
		else
			assert_in_range(counted(both[s]).kernel, 32, 1000);
		assert_int_equal(fake_calls(FAKE_CRYPT) + fake_calls(FAKE_GETRANDOM), 0);
		assert_int_equal(ERR_peek_error(), 0);
		lib_close(&lib);
	}
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, "counters = off\n"); /* the default policy, whose thresholds are not for generators */
	lib_drive_clock(&lib);
	return 0;
}

static int back_to_normal(void **state)
{
	(void)state;
	fake_install();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	return 0;
}

#define TEST(f) cmocka_unit_test_teardown(f, back_to_normal)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),       TEST(test_not_asked_for), TEST(test_states),           TEST(test_params),
		TEST(test_sizes),       TEST(test_opened_late),   TEST(test_reseed),           TEST(test_faults),
		TEST(test_stuck),       TEST(test_nothing_left),  TEST(test_system_in_pieces), TEST(test_taken_away),
		TEST(test_seed_source), TEST(test_get_seed),
	};
	const struct CMUnitTest settings[] = {cmocka_unit_test(test_no_kernel), cmocka_unit_test(test_configured)};

	return cmocka_run_group_tests_name("random generators", tests, setup, teardown) +
	       cmocka_run_group_tests_name("settings", settings, NULL, NULL);
}
