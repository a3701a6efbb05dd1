/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the transport fails with every error, at several moments of every algorithm. The caller must never
 * notice, but for a hash whose beginning is in the kernel already: then a clear error is right, a wrong digest never.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#include "../../provider/counters.h"

/* In requests: 65536 x 3 and a rest. */
#define LARGE 200000u

static const struct fault {
	int error;
	bool passing; /* says nothing about the next try */
} faults[] = {
	{EAFNOSUPPORT, false}, {EPERM, false},    {EACCES, false}, {ENOENT, false}, {ELIBBAD, false},
	{EINVAL, false},       {EMFILE, true},    {ENFILE, true},  {ENOMEM, true},  {EIO, true},
	{EBUSY, true},         {EAGAIN, true},    {EINTR, true},   {ENOKEY, false}, {EBADMSG, false},
	{ECANCELED, false},    {ETIMEDOUT, true},
};

#define FAULTS (sizeof(faults) / sizeof(*faults))

static struct lib lib;
static uint8_t *input, *expected, *buffer;

/*** Ciphers ***/

/* One message in two updates, if it may have two, and a final; `in` may be `out`. Returns its length. */
static size_t run_cipher(const EVP_CIPHER *cipher, bool encrypt, const uint8_t *key, const uint8_t *in, uint8_t *out,
			 size_t n)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	const size_t first = one_update(cipher) ? n : n / 2;
	size_t total = 0;
	int outl;

	assert_true(EVP_CipherInit_ex2(c, cipher, key, pattern() + 7, encrypt, NULL));
	assert_true(EVP_CIPHER_CTX_set_padding(c, 0));
	assert_true(EVP_CipherUpdate(c, out, &outl, in, (int)first));
	total += (size_t)outl;
	if (first < n) {
		assert_true(EVP_CipherUpdate(c, out + total, &outl, in + first, (int)(n - first)));
		total += (size_t)outl;
	}
	assert_true(EVP_CipherFinal_ex(c, out + total, &outl));
	EVP_CIPHER_CTX_free(c);
	return total + (size_t)outl;
}

/* Two messages, each with a key of its own; both must be right whatever the script. */
static void check_messages(const EVP_CIPHER *cipher, const EVP_CIPHER *reference, bool encrypt, bool in_place)
{
	for (size_t message = 0; message < 2; message++) {
		const uint8_t *key = pattern() + 16 * message;
		uint8_t *in = in_place ? buffer : input;

		run_cipher(reference, encrypt, key, pattern(), expected, LARGE);
		memcpy(in, pattern(), LARGE);
		assert_int_equal(run_cipher(cipher, encrypt, key, in, buffer, LARGE), LARGE);
		assert_memory_equal(buffer, expected, LARGE);
	}
}

/* Whether the kernel lane has learnt the right thing: closed for good, or resting until its time has come. */
static void check_lane(const EVP_CIPHER *cipher, const EVP_CIPHER *reference, int error, bool passing)
{
	const char *name = EVP_CIPHER_get0_name(reference);
	const struct counts *c = counters_of((enum algorithm_id)algorithm_find(name, strlen(name)));

	assert_int_equal(c->lane, passing ? COUNTERS_LANE_RESTS : COUNTERS_LANE_BLOCKED);
	assert_int_equal(c->lane_errno, error);
	assert_true(!passing || c->rest_until > clock_now);
	fake_reset();
	check_messages(cipher, reference, true, false);
	assert_int_equal(fake_calls(FAKE_OPEN), 0);
	assert_int_equal(fake_calls(FAKE_CRYPT), 0);
	clock_now += 20000000000;
	check_messages(cipher, reference, true, false);
	assert_int_equal(fake_calls(FAKE_OPEN), passing ? 2 : 0);
	assert_int_equal(fake_calls(FAKE_CRYPT), passing ? 8 : 0);
}

static const struct {
	enum fake_call call;
	unsigned nth;
} cipher_moments[] = {
	{FAKE_OPEN, 1},  {FAKE_OPEN, 2},  {FAKE_SET_KEY, 1}, {FAKE_SET_KEY, 2}, {FAKE_CRYPT, 1},
	{FAKE_CRYPT, 2}, {FAKE_CRYPT, 3}, {FAKE_CRYPT, 4},   {FAKE_CRYPT, 6},
};

static void cipher_faults(enum algorithm_id id, bool encrypt, bool in_place, unsigned spoil)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, "afalgprov"), *reference = cipher_of(&lib, id, "default");

	for (size_t i = 0; i < sizeof(cipher_moments) / sizeof(*cipher_moments); i++)
		for (size_t f = 0; f < FAULTS; f++) {
			struct counts *counts = counters_of(id);
			uint64_t fallbacks = atomic_load(&counts->fallbacks), errors = atomic_load(&counts->errors);

			fake_install();
			fake_spoil(spoil);
			fake_fail(cipher_moments[i].call, cipher_moments[i].nth, faults[f].error, 1);
			check_messages(cipher, reference, encrypt, in_place);
			assert_int_equal(atomic_load(&counts->fallbacks) - fallbacks, 1);
			assert_int_equal(atomic_load(&counts->errors), errors);
			assert_int_equal(ERR_peek_error(), 0);
			assert_int_equal(fake_transforms(), 0);
			check_lane(cipher, reference, faults[f].error,
				   cipher_moments[i].call == FAKE_CRYPT || faults[f].passing);
		}
	EVP_CIPHER_free(cipher);
	EVP_CIPHER_free(reference);
}

static void test_cipher(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		/* XTS takes no message that is longer than a request. */
		if (!first_of_mode(id) || algorithms[id].mode == MODE_XTS)
			continue;
		for (unsigned i = 0; i < 4; i++)
			cipher_faults((enum algorithm_id)id, i & 1, i & 2, i == 0 ? 100 : 50);
	}
}

/* EVP_Cipher() takes a way of its own. */
static void test_cipher_at_once(void **state)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");
	EVP_CIPHER *reference = cipher_of(&lib, ALG_AES_128_CBC, "default");

	(void)state;
	run_cipher(reference, true, pattern(), pattern(), expected, LARGE);
	for (unsigned nth = 1; nth <= 4; nth++)
		for (int in_place = 0; in_place < 2; in_place++) {
			EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

			fake_install();
			fake_spoil(50);
			fake_fail(FAKE_CRYPT, nth, EIO, 1);
			memcpy(buffer, pattern(), LARGE);
			assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern() + 7, NULL));
			assert_int_equal(EVP_Cipher(c, buffer, in_place ? buffer : pattern(), LARGE), LARGE);
			assert_memory_equal(buffer, expected, LARGE);
			assert_int_equal(ERR_peek_error(), 0);
			EVP_CIPHER_CTX_free(c);
		}
	EVP_CIPHER_free(cipher);
	EVP_CIPHER_free(reference);
}

/* Padding and the last block survive a failure in the middle. */
static void test_padding(void **state)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_256_CBC, "afalgprov");
	EVP_CIPHER *reference = cipher_of(&lib, ALG_AES_256_CBC, "default");

	(void)state;
	for (unsigned nth = 1; nth <= 5; nth++)
		for (size_t n = LARGE - 17; n <= LARGE; n++) {
			EVP_CIPHER_CTX *e = EVP_CIPHER_CTX_new(), *d = EVP_CIPHER_CTX_new();
			int total, outl;

			fake_install();
			fake_spoil(70);
			assert_true(EVP_EncryptInit_ex2(e, reference, pattern(), pattern() + 7, NULL));
			assert_true(EVP_EncryptUpdate(e, expected, &total, pattern(), (int)n));
			assert_true(EVP_EncryptFinal_ex(e, expected + total, &outl));
			fake_fail(FAKE_CRYPT, nth, EIO, 1);
			assert_true(EVP_DecryptInit_ex2(d, cipher, pattern(), pattern() + 7, NULL));
			total += outl;
			assert_true(EVP_DecryptUpdate(d, buffer, &outl, expected, 100001));
			assert_true(EVP_DecryptUpdate(d, buffer + outl, &total, expected + 100001, total - 100001));
			total += outl;
			assert_true(EVP_DecryptFinal_ex(d, buffer + total, &outl));
			assert_int_equal(total + outl, n);
			assert_memory_equal(buffer, pattern(), n);
			EVP_CIPHER_CTX_free(e);
			EVP_CIPHER_CTX_free(d);
		}
	EVP_CIPHER_free(cipher);
	EVP_CIPHER_free(reference);
}

/*** Digests ***/

enum outcome { RIGHT, LOST };

/*
 * A message as a list of updates, 0 ends it, and a moment. What is gathered for one system call is 16384 bytes: an
 * update of 20000 goes to the kernel at once. LOST: the kernel has taken an earlier update by then.
 */
static const struct digest_case {
	size_t updates[5];
	enum fake_call call;
	unsigned nth;
	enum outcome outcome;
} digest_cases[] = {
	/* Whole messages that were held back: free to fail at any moment. */
	{{100}, FAKE_OPEN, 1, RIGHT},
	{{100}, FAKE_HASH_START, 1, RIGHT},
	{{100}, FAKE_HASH_SEND, 1, RIGHT},
	{{100}, FAKE_HASH_FINISH, 1, RIGHT},
	{{100, 200, 300}, FAKE_HASH_FINISH, 1, RIGHT},
	/* A first update large enough is redone, whichever of its requests failed. */
	{{LARGE}, FAKE_OPEN, 1, RIGHT},
	{{LARGE}, FAKE_HASH_START, 1, RIGHT},
	{{LARGE}, FAKE_HASH_SEND, 1, RIGHT},
	{{LARGE}, FAKE_HASH_SEND, 2, RIGHT},
	{{LARGE}, FAKE_HASH_SEND, 4, RIGHT},
	{{100, LARGE}, FAKE_HASH_SEND, 1, RIGHT},
	{{100, LARGE}, FAKE_HASH_SEND, 3, RIGHT},
	/* What came after is in nobody's hands but the kernel's. */
	{{20000, 20000}, FAKE_HASH_SEND, 2, LOST},
	{{20000, LARGE}, FAKE_HASH_SEND, 4, LOST},
	{{20000, 100}, FAKE_HASH_SEND, 2, LOST},
	{{20000, 100, 20000, 5}, FAKE_HASH_SEND, 3, LOST},
	{{LARGE}, FAKE_HASH_FINISH, 1, LOST},
	{{20000, 100}, FAKE_HASH_FINISH, 1, LOST},
};

/* Hashes the case's message; 1 where every call succeeded. */
static int run_digest(const EVP_MD *md, const struct digest_case *d, uint8_t *out)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	const uint8_t *p = pattern();
	int ok = EVP_DigestInit_ex2(c, md, NULL);

	assert_true(ok);
	for (int i = 0; ok && d->updates[i] != 0; i++) {
		ok = EVP_DigestUpdate(c, p, d->updates[i]);
		p += d->updates[i];
	}
	ok = ok && EVP_DigestFinal_ex(c, out, NULL);
	EVP_MD_CTX_free(c);
	return ok;
}

static void expect_our_error(int reason)
{
	unsigned long e = ERR_peek_error(); /* EVP may add its own */

	assert_true(ERR_GET_LIB(e) >= ERR_LIB_USER); /* a provider's own */
	assert_int_equal(ERR_GET_REASON(e), reason);
	assert_non_null(ERR_reason_error_string(e));
	ERR_clear_error();
}

/* Whether an open algorithm has failed, which always passes; otherwise it could not be opened. */
static bool of_request(enum fake_call call)
{
	return call == FAKE_HASH_SEND || call == FAKE_HASH_FINISH;
}

static void digest_fault(enum algorithm_id id, const struct digest_case *d, const struct fault *f)
{
	EVP_MD *md = digest_of(&lib, id, "afalgprov"), *reference = digest_of(&lib, id, "default");
	struct counts *counts = counters_of(id);
	uint64_t fallbacks = atomic_load(&counts->fallbacks), errors = atomic_load(&counts->errors);
	uint8_t right[EVP_MAX_MD_SIZE], got[EVP_MAX_MD_SIZE];
	const size_t size = algorithms[id].size;

	fake_install();
	assert_true(run_digest(reference, d, right));
	fake_fail(d->call, d->nth, f->error, 1);
	if (d->outcome == RIGHT) {
		assert_true(run_digest(md, d, got));
		assert_memory_equal(got, right, size);
		assert_int_equal(ERR_peek_error(), 0);
		assert_int_equal(atomic_load(&counts->fallbacks) - fallbacks, 1);
		assert_int_equal(atomic_load(&counts->errors), errors);
	} else {
		assert_false(run_digest(md, d, got));
		expect_our_error(ERROR_KERNEL_HASH);
		assert_int_equal(atomic_load(&counts->errors) - errors, 1);
	}
	fake_close_idle();
	assert_int_equal(fake_ops(), 0);

	/* The lane is closed, or rests; what follows is right at once. */
	fake_reset();
	assert_true(run_digest(md, d, got));
	assert_memory_equal(got, right, size);
	assert_int_equal(fake_calls(FAKE_OPEN), 0);
	assert_int_equal(fake_calls(FAKE_HASH_SEND), 0);
	clock_now += 20000000000;
	assert_true(run_digest(md, d, got));
	assert_memory_equal(got, right, size);
	assert_int_equal(fake_calls(FAKE_HASH_FINISH), f->passing || of_request(d->call) ? 1 : 0);
	assert_int_equal(ERR_peek_error(), 0);
	EVP_MD_free(md);
	EVP_MD_free(reference);
}

static void test_digest(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (algorithms[id].kind != KIND_HASH)
			continue;
		for (size_t i = 0; i < sizeof(digest_cases) / sizeof(*digest_cases); i++)
			for (size_t f = 0; f < FAULTS; f++)
				digest_fault((enum algorithm_id)id, &digest_cases[i], &faults[f]);
	}
}

/* While one hash is in progress a second fails to start, or goes wrong in the operation that a third has left. */
static void test_digest_second(void **state)
{
	static const struct digest_case d = {{LARGE}, FAKE_HASH_START, 1, RIGHT};
	EVP_MD *md = digest_of(&lib, ALG_SHA2_256, "afalgprov");
	uint8_t first[EVP_MAX_MD_SIZE], second[EVP_MAX_MD_SIZE];

	(void)state;
	for (size_t f = 0; f < FAULTS; f++)
		for (int left = 0; left < 2; left++) {
			EVP_MD_CTX *c = EVP_MD_CTX_new();

			fake_install();
			assert_true(EVP_DigestInit_ex2(c, md, NULL));
			assert_true(EVP_DigestUpdate(c, pattern(), 65535));
			if (left)
				assert_true(run_digest(md, &d, second));
			fake_fail(left ? FAKE_HASH_SEND : FAKE_HASH_START, 1, faults[f].error, 1);
			assert_true(run_digest(md, &d, first));
			assert_true(run_digest(md, &d, second));
			assert_memory_equal(first, second, 32);
			assert_int_equal(fake_calls(FAKE_OPEN), 1);
			assert_true(EVP_DigestUpdate(c, pattern() + 65535, 1));
			assert_true(EVP_DigestFinal_ex(c, first, NULL));
			assert_hex(first, 32, "4b640d85ab3ba30fd02c9fc9db4a8928f416322ad27022ea58a65aaee68a4df2");
			assert_int_equal(ERR_peek_error(), 0);
			EVP_MD_CTX_free(c);
			fake_close_idle();
			assert_int_equal(fake_ops(), 0);
		}
	EVP_MD_free(md);
}

/* A lost hash stays lost, says so each time, and is whole again after an init. */
static void test_lost_stays_lost(void **state)
{
	EVP_MD *md = digest_of(&lib, ALG_SHA2_256, "afalgprov");
	EVP_MD_CTX *c = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();
	uint8_t out[EVP_MAX_MD_SIZE];

	(void)state;
	fake_install();
	assert_true(EVP_DigestInit_ex2(c, md, NULL));
	assert_true(EVP_DigestUpdate(c, pattern(), 20000));
	fake_fail(FAKE_HASH_SEND, 1, EIO, 1);
	assert_false(EVP_DigestUpdate(c, pattern(), 20000));
	expect_our_error(ERROR_KERNEL_HASH);
	assert_false(EVP_DigestUpdate(c, pattern(), 5));
	expect_our_error(ERROR_KERNEL_HASH);
	assert_false(EVP_MD_CTX_copy_ex(copy, c));
	expect_our_error(ERROR_KERNEL_COPY);
	assert_false(EVP_DigestFinal_ex(c, out, NULL));
	expect_our_error(ERROR_KERNEL_HASH);
	assert_true(EVP_DigestInit_ex2(c, md, NULL));
	assert_true(EVP_DigestUpdate(c, "abc", 3));
	assert_true(EVP_DigestFinal_ex(c, out, NULL));
	assert_hex(out, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	EVP_MD_CTX_free(c);
	EVP_MD_CTX_free(copy);
	EVP_MD_free(md);
	fake_close_idle();
	assert_int_equal(fake_ops(), 0);
}

/* A copy that fails leaves the original as it was. */
static void test_copy(void **state)
{
	EVP_MD *md = digest_of(&lib, ALG_SHA2_256, "afalgprov");
	uint8_t out[EVP_MAX_MD_SIZE];

	(void)state;
	for (size_t f = 0; f < FAULTS; f++) {
		EVP_MD_CTX *c = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();

		fake_install();
		assert_true(EVP_DigestInit_ex2(c, md, NULL));
		assert_true(EVP_DigestUpdate(c, pattern(), 65535));
		fake_fail(FAKE_HASH_COPY, 1, faults[f].error, 1);
		assert_false(EVP_MD_CTX_copy_ex(copy, c));
		expect_our_error(ERROR_KERNEL_COPY);
		assert_true(EVP_DigestUpdate(c, pattern() + 65535, 1));
		assert_true(EVP_DigestFinal_ex(c, out, NULL));
		assert_hex(out, 32, "4b640d85ab3ba30fd02c9fc9db4a8928f416322ad27022ea58a65aaee68a4df2");
		EVP_MD_CTX_free(c);
		EVP_MD_CTX_free(copy);
		fake_close_idle();
		assert_int_equal(fake_ops(), 0);
	}
	EVP_MD_free(md);
}

/*** Lanes ***/

/* No AF_ALG at all: nothing is ever opened, and asking costs nothing. */
static void test_no_support(void **state)
{
	struct lib without;
	EVP_CIPHER *cipher, *reference;

	(void)state;
	lib_open_with(&without, "policy = kernel\ncounters = off\n", -EAFNOSUPPORT);
	cipher = cipher_of(&without, ALG_AES_128_CBC, "afalgprov");
	reference = cipher_of(&without, ALG_AES_128_CBC, "default");
	check_messages(cipher, reference, true, false);
	check_messages(cipher, reference, false, true);
	assert_int_equal(fake_calls(FAKE_OPEN), 0);
	assert_int_equal(fake_asked(), 0);
	assert_int_equal(ERR_peek_error(), 0);
	EVP_CIPHER_free(cipher);
	EVP_CIPHER_free(reference);
	lib_close(&without);
}

/* A device that always fails is asked more and more rarely, but at least every ten seconds. */
static void test_rest_grows(void **state)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");
	uint64_t rest = 0, last = 0;

	(void)state;
	fake_install();
	fake_fail(FAKE_CRYPT, 1, EIO, FAKE_ALWAYS);
	for (int tries = 0; tries < 14; tries++) {
		unsigned calls = fake_calls(FAKE_CRYPT);

		run_cipher(cipher, true, pattern(), pattern(), buffer, 1024);
		assert_int_equal(fake_calls(FAKE_CRYPT), calls + 1);
		for (rest = 0; fake_calls(FAKE_CRYPT) == calls + 1; rest += 5000000) {
			assert_true(rest <= 10005000000);
			clock_now += 5000000;
			run_cipher(cipher, true, pattern(), pattern(), buffer, 32);
		}
		assert_true(rest >= last);
		last = rest;
		fake_reset();
		fake_fail(FAKE_CRYPT, 1, EIO, FAKE_ALWAYS);
		clock_now += 20000000000;
	}
	assert_true(last >= 9000000000);
	EVP_CIPHER_free(cipher);
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	lib_drive_clock(&lib);
	input = malloc(LARGE);
	expected = malloc(LARGE + 64);
	buffer = malloc(LARGE + 64);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	free(input);
	free(expected);
	free(buffer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cipher),        cmocka_unit_test(test_cipher_at_once),
		cmocka_unit_test(test_padding),       cmocka_unit_test(test_digest),
		cmocka_unit_test(test_digest_second), cmocka_unit_test(test_lost_stays_lost),
		cmocka_unit_test(test_copy),          cmocka_unit_test(test_no_support),
		cmocka_unit_test(test_rest_grows),
	};

	return cmocka_run_group_tests_name("fault", tests, setup, teardown);
}
