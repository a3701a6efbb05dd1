/* SPDX-License-Identifier: Apache-2.0 */
/* Ciphers: buffers that overlap or lie anywhere, known answers, and who computed what. */
#include <stdlib.h>
#include <string.h>

#include "scene.h"

/*** Buffers ***/

/* A message streamed within one buffer, the output `lag` bytes behind the input, in three updates. */
static void stream_in_place(EVP_CIPHER *cipher, bool encrypt, bool padding, size_t lag, size_t a, size_t n)
{
	const struct scene s = {.cipher = cipher, .encrypt = encrypt, .padding = padding};
	const size_t cuts[] = {0, a, a + 70000 < n ? a + 70000 : n, n};
	uint8_t *base = malloc(n + lag + 64), *right = malloc(n + 64);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	EVP_CIPHER *theirs = EVP_CIPHER_fetch(lib.context, EVP_CIPHER_get0_name(cipher), "provider=default");
	size_t total = 0;
	int outl, rest;

	memcpy(base + lag, input(&s, n), n);
	assert_true(EVP_CipherInit_ex2(c, theirs, pattern(), IV, encrypt, NULL));
	EVP_CIPHER_CTX_set_padding(c, padding);
	assert_true(EVP_CipherUpdate(c, right, &outl, base + lag, (int)n));
	assert_true(EVP_CipherFinal_ex(c, right + outl, &rest));
	EVP_CIPHER_CTX_reset(c);

	assert_true(EVP_CipherInit_ex2(c, cipher, pattern(), IV, encrypt, NULL));
	EVP_CIPHER_CTX_set_padding(c, padding);
	outl += rest;
	for (int i = 0; i < 3; i++) {
		assert_true(
			EVP_CipherUpdate(c, base + total, &rest, base + lag + cuts[i], (int)(cuts[i + 1] - cuts[i])));
		total += (size_t)rest;
	}
	assert_true(EVP_CipherFinal_ex(c, base + total, &rest));
	assert_int_equal(total + (size_t)rest, outl);
	assert_memory_equal(base, right, (size_t)outl);
	free(base);
	free(right);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(theirs);
}

static void test_in_place(void **state)
{
	static const size_t lags[] = {0, 16, 32, 48, 4096, 65536, 70000, 7, 1},
			    firsts[] = {0, 1, 15, 16, 17, 64, 65536, 65543};
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");

	(void)state;
	for (size_t i = 0; i < sizeof(lags) / sizeof(*lags); i++)
		for (size_t a = 0; a < sizeof(firsts) / sizeof(*firsts); a++)
			for (unsigned k = 0; k < 4; k++)
				stream_in_place(cipher, k & 1, k & 2, lags[i], firsts[a], 160000);
	EVP_CIPHER_free(cipher);
}

/* Any alignment of input and output. */
static void test_alignment(void **state)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");
	EVP_CIPHER *theirs = cipher_of(&lib, ALG_AES_128_CBC, "default");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t right[1024];
	int outl;

	(void)state;
	for (size_t in = 0; in < 16; in++) {
		assert_true(EVP_EncryptInit_ex2(c, theirs, pattern(), IV, NULL));
		assert_true(EVP_EncryptUpdate(c, right, &outl, pattern() + in, 1024));
		for (size_t out = 0; out < 16; out++) {
			assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), IV, NULL));
			assert_true(EVP_EncryptUpdate(c, scratch + out, &outl, pattern() + in, 1024));
			assert_int_equal(outl, 1024);
			assert_memory_equal(scratch + out, right, 1024);
		}
	}
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
	EVP_CIPHER_free(theirs);
}

/*** Known answers, and who computed them ***/

static void test_known_answers(void **state)
{
	static const uint8_t zero[16], text[] = "0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF";
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t iv[16];
	int outl;

	(void)state;
	assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), zero, NULL));
	EVP_CIPHER_CTX_set_padding(c, 0);
	assert_true(EVP_EncryptUpdate(c, scratch, &outl, text, 32));
	assert_true(EVP_CIPHER_CTX_get_updated_iv(c, iv, sizeof(iv)));
	assert_hex(iv, 16, "c7182b21a37880301ca79a01dc7d6d3d");
	assert_true(EVP_EncryptUpdate(c, scratch + 32, &outl, text + 32, 16));
	assert_hex(scratch, 48,
		   "a5ba2b6280d433bccfe6a0461cb88c4ec7182b21a37880301ca79a01dc7d6d3d8363483daa99ad41a61ab190e33c8402");
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
}

/* Requests and bytes are exactly what an update must make of itself. */
static void test_who_did_it(void **state)
{
	static const struct {
		size_t before, n; /* bytes held back, bytes of the update */
		bool encrypt, padding;
		unsigned requests;
		size_t bytes;
	} cases[] = {
		{0, 65536, true, true, 1, 65536},
		{0, 65536, false, false, 1, 65536},
		{0, 65536, false, true, 1, 65520},
		{0, 65537, true, true, 1, 65536},
		{0, 65552, true, false, 2, 65552},
		{5, 65536, true, true, 1, 65520},
		{16, 65536, false, true, 1, 65504},
		{0, 200000, true, true, 4, 200000},
		{0, 262144, false, false, 4, 262144},
		{0, 16, true, true, 1, 16},
		{0, 15, true, true, 0, 0},
		{0, 32, false, true, 1, 16},
		{1, 15, true, true, 0, 0},
		{1, 31, true, true, 1, 16},
	};
	const bool kernel = lib.provider->route.policy == POLICY_KERNEL;
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_256_CBC, "afalgprov");

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
		int outl;

		(void)state;
		assert_true(EVP_CipherInit_ex2(c, cipher, pattern(), IV, cases[i].encrypt, NULL));
		EVP_CIPHER_CTX_set_padding(c, cases[i].padding);
		lib.provider->route.policy = POLICY_SOFTWARE;
		if (cases[i].before > 0)
			assert_true(EVP_CipherUpdate(c, scratch, &outl, pattern(), (int)cases[i].before));
		lib.provider->route.policy = kernel ? POLICY_KERNEL : POLICY_SOFTWARE;
		EVP_CIPHER_CTX_set_padding(c, cases[i].padding); /* looks at the policy anew */
		fake_reset();
		assert_true(EVP_CipherUpdate(c, scratch, &outl, pattern(), (int)cases[i].n));
		assert_int_equal(fake_calls(FAKE_CRYPT), kernel ? cases[i].requests : 0);
		assert_int_equal(fake_bytes(FAKE_CRYPT), kernel ? cases[i].bytes : 0);
		EVP_CIPHER_CTX_free(c);
	}
	EVP_CIPHER_free(cipher);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_who_did_it),
	};

	return cmocka_run_group_tests_name("always the kernel", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("never the kernel", tests, setup_software, teardown) +
	       cmocka_run_group_tests_name("from 64 bytes on", tests, setup_threshold, teardown);
}
