/* SPDX-License-Identifier: Apache-2.0 */
/* What only some ciphers have: messages of one update, a counter that runs over, keys of many lengths. */
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <string.h>

#include "scene.h"

/*** Ciphertext stealing ***/

static const char *const cts_modes[] = {NULL, "CS1", "CS2", "CS3", "cs3", "CS4"};

static void set_cts_mode(struct scene *s, EVP_CIPHER_CTX *c, const char *mode)
{
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, (char *)mode, 0),
				     OSSL_PARAM_END};

	if (mode != NULL)
		trace_number(&s->trace, "mode", EVP_CIPHER_CTX_set_params(c, params));
	trace_errors(&s->trace);
}

static void get_cts_mode(struct scene *s, EVP_CIPHER_CTX *c)
{
	char mode[8] = "";
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, mode, sizeof(mode)),
			       OSSL_PARAM_END};

	trace_number(&s->trace, "get mode", EVP_CIPHER_CTX_get_params(c, params));
	fprintf(s->trace.file, "mode %s\n", mode);
}

/* A message of a bytes in the variant b, again with what c tells (1: key, 2: IV), and on without an init. */
static void steal(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);
	int outl = -1;

	set_cts_mode(s, c, cts_modes[s->b]);
	get_cts_mode(s, c);
	trace_number(&s->trace, "length", EVP_CipherUpdate(c, NULL, &outl, pattern(), (int)s->a));
	trace_number(&s->trace, "length", outl);
	for (int i = 0; i < 3; i++) {
		update(s, c, pattern() + i, s->a);
		ivs(s, c);
		update(s, c, pattern(), s->a); /* one too many */
		if (i == 1)
			final(s, c);
		get_cts_mode(s, c);
		trace_number(&s->trace, "init",
			     EVP_CipherInit_ex2(c, NULL, s->c & 1 ? pattern() + 3 : NULL, s->c & 2 ? IV + 5 : NULL, -1,
						NULL));
		ivs(s, c);
	}
	EVP_CIPHER_CTX_free(c);
}

static void test_steal(void **state)
{
	static const size_t large[] = {4096, 65535, 65568, 65569, 65584, 131104, 200001};

	(void)state;
	for (size_t a = 0; a < 100; a++)
		for (size_t b = 0; b < 6; b++)
			same_everywhere(steal, "stealing", ALG_AES_128_CBC_CTS, a, b, a % 4);
	for (size_t i = 0; i < sizeof(large) / sizeof(*large); i++)
		for (size_t b = 1; b < 4; b++) {
			same_everywhere(steal, "stealing", ALG_AES_192_CBC_CTS, large[i], b, 2);
			same_everywhere(steal, "stealing", ALG_AES_256_CBC_CTS, large[i], b, 3);
		}
}

/* A variant chosen at init, EVP_Cipher() before and after the message (plain CBC), copies before and after. */
static void steal_mixed(struct scene *s)
{
	char mode[] = "CS3";
	const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, mode, 3), OSSL_PARAM_END};
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();

	trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, s->cipher, pattern(), IV, s->encrypt, params));
	if (s->b & 1)
		trace_number(&s->trace, "at once", EVP_Cipher(c, scratch, pattern(), 4096));
	if (s->b & 2)
		ivs(s, c);
	trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
	update(s, c, pattern(), s->a);
	if (s->b & 4)
		trace_number(&s->trace, "at once", EVP_Cipher(c, scratch, pattern(), 4096));
	update(s, c, pattern(), s->a);
	ivs(s, c);
	update(s, copy, pattern() + 1, s->a);
	get_cts_mode(s, copy);
	trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
	update(s, copy, pattern() + 1, s->a);
	trace_number(&s->trace, "at once", EVP_Cipher(copy, scratch, pattern(), 4096));
	trace_bytes(&s->trace, "at once", scratch, 4096);
	ivs(s, copy);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_CTX_free(copy);
}

static void test_steal_mixed(void **state)
{
	(void)state;
	for (size_t a = 16; a < 200; a += 7)
		for (size_t b = 0; b < 8; b++)
			same_everywhere(steal_mixed, "stealing, mixed", ALG_AES_128_CBC_CTS, a, b, 0);
}

/* The kernel has all but the last two blocks, whatever was asked before. */
static void test_who_steals(void **state)
{
	static const size_t lengths[][2] = {{16, 0},    {32, 0},        {33, 16},        {48, 16},
					    {49, 32},   {4096, 4064},   {4097, 4080},    {65568, 65536},
					    {131, 112}, {65569, 65552}, {200000, 199968}};
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC_CTS, "afalgprov");

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		for (int encrypt = 0; encrypt < 2; encrypt++) {
			EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
			int outl;

			assert_true(EVP_CipherInit_ex2(c, cipher, pattern(), IV, encrypt, NULL));
			fake_reset();
			assert_true(EVP_CipherUpdate(c, NULL, &outl, pattern(), (int)lengths[i][0]));
			assert_true(EVP_CipherUpdate(c, scratch, &outl, pattern(), (int)lengths[i][0]));
			assert_int_equal(fake_bytes(FAKE_CRYPT), lengths[i][1]);
			assert_false(EVP_CipherUpdate(c, scratch, &outl, pattern(), 4096));
			assert_int_equal(fake_bytes(FAKE_CRYPT), lengths[i][1]);
			EVP_CIPHER_CTX_free(c);
		}
	EVP_CIPHER_free(cipher);
}

/*** ChaCha20 ***/

static void counter_iv(uint8_t *iv, uint32_t low, uint32_t high)
{
	memcpy(iv, IV, 16);
	for (int i = 0; i < 4; i++) {
		iv[i] = (uint8_t)(low >> 8 * i);
		iv[4 + i] = (uint8_t)(high >> 8 * i);
	}
}

/* a bytes, b bytes and a rest, from c blocks before the counter runs over; its upper half does so too in decryption. */
static void run_over(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);
	uint8_t iv[16];

	counter_iv(iv, (uint32_t)(0 - s->c), s->encrypt ? 7 : UINT32_MAX);
	trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, NULL, NULL, iv, -1, NULL));
	update(s, c, pattern(), s->a);
	ivs(s, c);
	update(s, c, pattern() + 1, s->b);
	ivs(s, c);
	update(s, c, pattern() + 2, 1000);
	trace_number(&s->trace, "at once", EVP_Cipher(c, scratch, pattern(), 4096));
	trace_bytes(&s->trace, "at once", scratch, 4096);
	update(s, c, pattern() + 2, 70);
	EVP_CIPHER_CTX_free(c);
}

static void test_run_over(void **state)
{
	static const size_t sizes[] = {0, 1, 63, 64, 65, 128, 500, 65536, 131072 + 64};

	(void)state;
	for (size_t a = 0; a < sizeof(sizes) / sizeof(*sizes); a++)
		for (size_t b = 0; b < sizeof(sizes) / sizeof(*sizes); b++)
			for (size_t c = 0; c < 6; c++)
				same_everywhere(run_over, "the counter runs over", ALG_CHACHA20, sizes[a], sizes[b],
						c < 3 ? c : 1022 + c);
}

/* A request ends where the counter runs over. */
static void test_requests_run_over(void **state)
{
	static const struct {
		uint32_t blocks; /* until it runs over */
		size_t n;
		unsigned requests;
	} cases[] = {{0, 65536, 1},     {1, 65536, 2}, {1023, 65536, 2}, {1024, 65536, 1},
		     {1024, 131072, 2}, {1, 64, 1},    {1, 128, 2},      {10, 131072, 3}};
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_CHACHA20, "afalgprov");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
		uint8_t iv[16];
		int outl;

		counter_iv(iv, 0 - cases[i].blocks, 0);
		assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), iv, NULL));
		fake_reset();
		assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), (int)cases[i].n));
		assert_int_equal(fake_calls(FAKE_CRYPT), cases[i].requests);
		assert_int_equal(fake_bytes(FAKE_CRYPT), cases[i].n);
		EVP_CIPHER_CTX_free(c);
	}
	EVP_CIPHER_free(cipher);
}

/*
 * a bytes, then an init with what b tells (1: key, 2: IV, 8: and one with neither), twice, and c bytes after each.
 * Without an IV the stream goes on from somewhere, which depends on how the bytes before came.
 */
static void go_on(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	for (int i = 0; i < 2; i++) {
		update(s, c, pattern(), s->a / 3);
		update(s, c, pattern(), s->a - s->a / 3);
		trace_number(&s->trace, "init",
			     EVP_CipherInit_ex2(c, NULL, s->b & 1 ? pattern() + 9 : NULL, s->b & 2 ? IV + i : NULL,
						s->b & 4 ? !s->encrypt : -1, NULL));
		if (s->b & 8)
			trace_number(&s->trace, "again", EVP_CipherInit_ex2(c, NULL, NULL, NULL, -1, NULL));
		ivs(s, c);
		update(s, c, pattern() + 3, s->c);
		update(s, c, pattern() + 4, 192);
		ivs(s, c);
	}
	EVP_CIPHER_CTX_free(c);
}

static void test_go_on(void **state)
{
	(void)state;
	for (size_t a = 0; a < 200; a += 3)
		for (size_t b = 0; b < 16; b++)
			for (size_t c = 0; c < 140; c += 64)
				same_everywhere(go_on, "init in a stream", ALG_CHACHA20, a, b, c);
}

/* After an init with a key alone the kernel is out where nobody knows the place, and until an IV comes. */
static void test_who_goes_on(void **state)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_CHACHA20, "afalgprov");

	(void)state;
	for (int known = 0; known < 2; known++) {
		EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
		int outl;

		assert_true(EVP_EncryptInit_ex2(c, cipher, NULL, IV, NULL));
		assert_true(EVP_EncryptInit_ex2(c, NULL, pattern(), NULL, NULL));
		fake_reset();
		assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), known ? 64 : 70));
		assert_true(EVP_EncryptInit_ex2(c, NULL, pattern() + 1, NULL, NULL));
		assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), 4096));
		assert_int_equal(fake_bytes(FAKE_CRYPT), 64 + (known ? 4096 : 0));
		assert_true(EVP_EncryptInit_ex2(c, NULL, NULL, NULL, NULL));
		assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), 4090));
		assert_true(EVP_EncryptInit_ex2(c, NULL, NULL, NULL, NULL)); /* goes on within the block */
		assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), 4102));
		assert_int_equal(fake_bytes(FAKE_CRYPT), 64 + (known ? 4096 + 4032 + 4096 : 0));
		assert_true(EVP_EncryptInit_ex2(c, NULL, NULL, IV, NULL));
		assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), 4096));
		assert_int_equal(fake_bytes(FAKE_CRYPT), 64 + (known ? 4096 + 4032 + 4096 : 0) + 4096);
		EVP_CIPHER_CTX_free(c);
	}
	EVP_CIPHER_free(cipher);
}

/*** Keys of many lengths ***/

static const enum algorithm_id variable[] = {ALG_BF_CBC, ALG_CAST5_CBC}, legacy[] = {ALG_DES_CBC, ALG_SEED_CBC};

/* A key of a bytes; b tells when its length is set: ahead, with the key, or after another key. Then others again. */
static void key_length(struct scene *s)
{
	size_t n = s->a;
	unsigned int padding = 0;
	const OSSL_PARAM params[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, &n), OSSL_PARAM_END},
			 refused[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, &padding),
				      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, &n),
				      OSSL_PARAM_utf8_string(OSSL_CIPHER_PARAM_NUM, (char *)"x", 1), OSSL_PARAM_END};
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();

	trace_number(&s->trace, "init",
		     EVP_CipherInit_ex2(c, s->cipher, s->b == 2 ? pattern() : NULL, IV, s->encrypt, NULL));
	if (s->b == 2)
		update(s, c, pattern(), 200);
	if (s->b == 3)
		trace_number(&s->trace, "refused", EVP_CIPHER_CTX_set_params(c, refused));
	else if (s->b != 1)
		trace_number(&s->trace, "length", EVP_CIPHER_CTX_set_key_length(c, (int)n));
	trace_number(&s->trace, "length", EVP_CIPHER_CTX_get_key_length(c));
	update(s, c, pattern(), 200); /* the key may be forgotten */
	trace_number(&s->trace, "key", EVP_CipherInit_ex2(c, NULL, pattern() + 3, NULL, -1, s->b == 1 ? params : NULL));
	trace_number(&s->trace, "length", EVP_CIPHER_CTX_get_key_length(c));
	update(s, c, pattern(), 200);
	update(s, c, pattern(), 4096);
	ivs(s, c);
	trace_number(&s->trace, "length", EVP_CIPHER_CTX_set_key_length(c, (int)n)); /* no change */
	update(s, c, pattern(), 4096);
	trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
	trace_number(&s->trace, "length", EVP_CIPHER_CTX_set_key_length(c, 16));
	trace_number(&s->trace, "length", EVP_CIPHER_CTX_set_key_length(c, (int)n));
	update(s, c, pattern(), 4096);
	trace_number(&s->trace, "IV", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
	update(s, c, pattern(), 4096);
	trace_number(&s->trace, "refused", EVP_CIPHER_CTX_set_params(copy, refused));
	trace_number(&s->trace, "IV", EVP_CipherInit_ex2(copy, NULL, NULL, IV, -1, NULL));
	update(s, copy, pattern(), 4096);
	final(s, copy);
	trace_errors(&s->trace);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_CTX_free(copy);
}

static void test_key_length(void **state)
{
	(void)state;
	for (size_t a = 1; a < 80; a++)
		for (size_t b = 0; b < 4; b++)
			for (size_t i = 0; i < 2; i++) {
				same_everywhere(key_length, "key length", variable[i], a, b, 0);
				if (a % 8 == 0)
					same_everywhere(key_length, "key length", legacy[i], a, b, 0);
			}
}

/* The kernel is asked only for what it takes: a refusal would close its lane. */
static void test_who_takes_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct algorithm *a = &algorithms[variable[i]];
		EVP_CIPHER *cipher = cipher_of(&lib, variable[i], "afalgprov");
		EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

		assert_true(EVP_EncryptInit_ex2(c, cipher, NULL, IV, NULL));
		for (size_t n = 1; n < 80; n++) {
			int outl;

			assert_true(EVP_CIPHER_CTX_set_key_length(c, (int)n));
			assert_true(EVP_EncryptInit_ex2(c, NULL, pattern(), NULL, NULL));
			fake_reset();
			assert_true(EVP_EncryptUpdate(c, scratch, &outl, pattern(), 4096));
			assert_int_equal(fake_bytes(FAKE_CRYPT), n >= a->key_min && n <= a->key_max ? 4096 : 0);
		}
		EVP_CIPHER_CTX_free(c);
		EVP_CIPHER_free(cipher);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steal), cmocka_unit_test(test_steal_mixed), cmocka_unit_test(test_run_over),
		cmocka_unit_test(test_go_on), cmocka_unit_test(test_key_length),
	};
	const struct CMUnitTest by_kernel[] = {
		cmocka_unit_test(test_who_steals),
		cmocka_unit_test(test_requests_run_over),
		cmocka_unit_test(test_who_goes_on),
		cmocka_unit_test(test_who_takes_keys),
	};

	return cmocka_run_group_tests_name("always the kernel", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("by the kernel", by_kernel, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("never the kernel", tests, setup_software, teardown) +
	       cmocka_run_group_tests_name("from 64 bytes on", tests, setup_threshold, teardown);
}
