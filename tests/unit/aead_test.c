/* SPDX-License-Identifier: Apache-2.0 */
/* AEADs: messages in one request and in several, tags, copies, TLS records, and a kernel that fails at any call. */
#include <errno.h>
#include <openssl/core_names.h>
#include <stdlib.h>
#include <string.h>

#include "../../provider/counters.h"
#include "helper.h"

#define LENGTH 20000

static struct lib lib;
static uint8_t out[LENGTH + 64], kept[LENGTH + 64];
static bool
	early; /* the tag comes before the IV, and padding is turned off before the data: both as evp_test does it */

static bool is_ccm(enum algorithm_id id)
{
	return algorithms[id].mode == MODE_CCM;
}

/* A context after the init of key and IV, and AAD; CCM is told the length. */
static EVP_CIPHER_CTX *begin(enum algorithm_id id, const char *provider, int encrypt, const uint8_t *tag)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, provider);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n;

	assert_true(EVP_CipherInit_ex2(c, cipher, NULL, NULL, encrypt, NULL));
	assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL));
	if (is_ccm(id) || tag != NULL)
		assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, (void *)(uintptr_t)tag));
	assert_true(EVP_CipherInit_ex2(c, NULL, pattern(), pattern() + 9, encrypt, NULL));
	if (tag != NULL && !early)
		assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, (void *)(uintptr_t)tag));
	assert_true(!is_ccm(id) || EVP_CipherUpdate(c, NULL, &n, NULL, LENGTH));
	assert_true(EVP_CipherUpdate(c, NULL, &n, pattern(), 13));
	assert_true(!early || EVP_CIPHER_CTX_set_padding(c, 0));
	EVP_CIPHER_free(cipher);
	return c;
}

/* Updates of `first` bytes and the rest, in place in `data`. */
static int updates(EVP_CIPHER_CTX *c, uint8_t *data, int first)
{
	int n, ok = EVP_CipherUpdate(c, data, &n, data, first);

	return ok && n == first &&
	       (first == LENGTH ||
		(EVP_CipherUpdate(c, data + first, &n, data + first, LENGTH - first) && n == LENGTH - first));
}

/* The default provider's ciphertext and tag. */
static void expected(enum algorithm_id id, uint8_t *data, uint8_t tag[16])
{
	EVP_CIPHER_CTX *c = begin(id, "default", 1, NULL);
	uint8_t rest[16];
	int n;

	memcpy(data, pattern() + 50, LENGTH);
	assert_true(updates(c, data, LENGTH) && EVP_CipherFinal_ex(c, rest, &n));
	assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, tag));
	EVP_CIPHER_CTX_free(c);
}

static bool row(int id)
{
	return algorithms[id].kind == KIND_AEAD && has_row(id);
}

/* Both directions, whatever happens on the way. */
static void round_trip(enum algorithm_id id, int first, bool copy)
{
	uint8_t tag[16], got[16], rest[16];
	EVP_CIPHER_CTX *c, *d;
	int n;

	expected(id, kept, tag);
	for (int encrypt = 1; encrypt >= 0; encrypt--) {
		c = begin(id, "afalgprov", encrypt, encrypt ? NULL : tag);
		memcpy(out, encrypt ? pattern() + 50 : kept, LENGTH);
		assert_true(updates(c, out, first));
		assert_memory_equal(out, encrypt ? kept : pattern() + 50, LENGTH);
		if (copy) {
			d = EVP_CIPHER_CTX_new();
			assert_true(EVP_CIPHER_CTX_copy(d, c));
			EVP_CIPHER_CTX_free(c);
			c = d;
		}
		assert_true(EVP_CipherFinal_ex(c, rest, &n));
		assert_int_equal(n, 0);
		if (encrypt) {
			assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, got));
			assert_memory_equal(got, tag, 16);
		}
		EVP_CIPHER_CTX_free(c);
	}
	assert_int_equal(ERR_peek_error(), 0);
}

static void test_one_update(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (!row(id))
			continue;
		fake_reset();
		round_trip((enum algorithm_id)id, LENGTH, false);
		assert_int_equal(fake_calls(FAKE_CRYPT), 2);
		assert_int_equal(fake_bytes(FAKE_CRYPT), 2 * LENGTH);
		round_trip((enum algorithm_id)id, LENGTH, true);
	}
}

static void test_early_tag(void **state)
{
	early = true;
	test_one_update(state);
	early = false;
}

/* A tag serves one message: the next one without a tag of its own ends as with the default provider. */
static void next_message(enum algorithm_id id, const char *provider, struct trace *t)
{
	uint8_t tag[16], rest[16];
	EVP_CIPHER_CTX *c;
	int n = -1;

	expected(id, kept, tag);
	c = begin(id, provider, 0, tag);
	memcpy(out, kept, LENGTH);
	assert_true(updates(c, out, LENGTH));
	assert_true(is_ccm(id) || EVP_CipherFinal_ex(c, rest, &n)); /* as EVP_EncryptInit(3) tells for CCM */
	assert_true(EVP_CipherInit_ex2(c, NULL, NULL, pattern() + 9, 0, NULL));
	trace_open(t);
	if (is_ccm(id))
		trace_number(t, "length", EVP_CipherUpdate(c, NULL, &n, NULL, LENGTH));
	trace_number(t, "aad", EVP_CipherUpdate(c, NULL, &n, pattern(), 13));
	memcpy(out, kept, LENGTH);
	trace_number(t, "update", EVP_CipherUpdate(c, out, &n, out, LENGTH));
	trace_number(t, "final", EVP_CipherFinal_ex(c, rest, &n));
	trace_errors(t);
	trace_bytes(t, "output", out, LENGTH);
	trace_close(t);
	EVP_CIPHER_CTX_free(c);
}

static void test_next_message(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (int fail = 0; row(id) && fail < 2; fail++) {
			struct trace theirs, ours;

			fake_install();
			next_message((enum algorithm_id)id, "default", &theirs);
			fake_fail(FAKE_CRYPT, 1, EIO, (unsigned)fail);
			next_message((enum algorithm_id)id, "afalgprov", &ours);
			trace_compare(&theirs, &ours, "after a message of %s, kernel %s", algorithms[id].name,
				      fail ? "fails" : "works");
		}
	fake_install();
}

/* A second update: software does the first one again, from what was kept. */
static void test_more_updates(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (!row(id) || is_ccm((enum algorithm_id)id))
			continue;
		for (int first = 1; first < LENGTH; first += 4999)
			round_trip((enum algorithm_id)id, first, first > 9000);
		fake_reset();
		round_trip((enum algorithm_id)id, 64, false);
		assert_int_equal(fake_bytes(FAKE_CRYPT), 2 * 64);
	}
}

/* A call that fails costs nothing but time: same bytes, same tag, no error. */
static void test_faults(void **state)
{
	static const enum fake_call calls[] = {FAKE_OPEN, FAKE_SET_KEY, FAKE_SET_TAGLEN, FAKE_CRYPT};
	static const int errors[] = {EPERM, ENOENT, EMFILE, ENOMEM, EIO, EINVAL, EAGAIN, ENOKEY, EMSGSIZE};

	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (size_t call = 0; row(id) && call < sizeof(calls) / sizeof(*calls); call++)
			for (size_t e = 0; e < sizeof(errors) / sizeof(*errors); e++) {
				uint64_t before = counters_of((enum algorithm_id)id)->fallbacks;

				fake_install();
				fake_spoil(70);
				fake_fail(calls[call], 1, errors[e], FAKE_ALWAYS);
				round_trip((enum algorithm_id)id, LENGTH, false);
				assert_true(counters_of((enum algorithm_id)id)->fallbacks > before);
			}
	fake_install();
}

/* A wrong tag is found where the default provider finds it, which leaves the same behind. */
static void wrong_tag(enum algorithm_id id, const char *provider, struct trace *t)
{
	uint8_t tag[16], rest[16];
	EVP_CIPHER_CTX *c;
	int n = -1;

	expected(id, kept, tag);
	tag[15] ^= 1;
	c = begin(id, provider, 0, tag);
	trace_open(t);
	memcpy(out, kept, LENGTH);
	trace_number(t, "update", EVP_CipherUpdate(c, out, &n, out, LENGTH));
	trace_number(t, "length", n);
	trace_errors(t);
	trace_bytes(t, "output", out, LENGTH);
	trace_number(t, "final", EVP_CipherFinal_ex(c, rest, &n));
	trace_errors(t);
	trace_number(t, "again", EVP_CipherFinal_ex(c, rest, &n));
	trace_errors(t);
	trace_close(t);
	EVP_CIPHER_CTX_free(c);
}

static void test_wrong_tag(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		struct trace theirs, ours;

		if (!row(id))
			continue;
		wrong_tag((enum algorithm_id)id, "default", &theirs);
		wrong_tag((enum algorithm_id)id, "afalgprov", &ours);
		trace_compare(&theirs, &ours, "wrong tag of %s", algorithms[id].name);
	}
}

/* As sshd uses GCM: EVP_Cipher(), the whole IV set as the fixed one, counted up packet by packet. */
static void packets(const char *provider, struct trace *t, int encrypt)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_256_GCM, provider);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t tag[16] = {0}, last[1];

	trace_open(t);
	trace_number(t, "init", EVP_CipherInit(c, cipher, NULL, pattern(), encrypt));
	trace_number(t, "fixed", EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_IV_FIXED, -1, (void *)(uintptr_t)pattern()));
	trace_number(t, "key", EVP_CipherInit(c, NULL, pattern() + 40, NULL, -1));
	for (unsigned packet = 0; packet < 3; packet++) {
		memcpy(out, pattern(), LENGTH);
		trace_number(t, "count", EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_IV_GEN, 1, last));
		if (!encrypt)
			trace_number(t, "tag", EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, 16, tag));
		trace_number(t, "AAD", EVP_Cipher(c, NULL, pattern() + 3, 4));
		trace_number(t, "data", EVP_Cipher(c, out, out, LENGTH));
		trace_bytes(t, "data", out, LENGTH);
		trace_number(t, "final", EVP_Cipher(c, NULL, NULL, 0));
		if (encrypt) {
			trace_number(t, "tag", EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, 16, tag));
			trace_bytes(t, "tag", tag, 16);
		}
		trace_errors(t);
	}
	trace_number(t, "data without a new IV", EVP_Cipher(c, out, out, LENGTH));
	trace_errors(t);
	trace_close(t);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
}

static void test_packets(void **state)
{
	(void)state;
	for (int encrypt = 0; encrypt < 2; encrypt++) {
		struct trace theirs, ours;

		packets("default", &theirs, encrypt);
		fake_reset();
		packets("afalgprov", &ours, encrypt);
		trace_compare(&theirs, &ours, "packets of sshd, encrypt %d", encrypt);
		assert_int_equal(fake_calls(FAKE_CRYPT), 3);
	}
}

static EVP_CIPHER_CTX *begin_records(enum algorithm_id id, const char *provider, int encrypt)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, provider);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	void *fixed = (void *)(uintptr_t)(pattern() + 9);

	assert_true(EVP_CipherInit_ex2(c, cipher, NULL, NULL, encrypt, NULL));
	if (is_ccm(id)) {
		assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL));
		assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, NULL));
	}
	if (algorithms[id].mode == MODE_CHACHA_POLY) {
		assert_true(EVP_CipherInit_ex2(c, NULL, pattern(), fixed, encrypt, NULL));
	} else {
		assert_true(is_ccm(id) || EVP_CipherInit_ex2(c, NULL, pattern(), NULL, encrypt, NULL));
		assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IV_FIXED, 4, fixed));
		assert_true(!is_ccm(id) || EVP_CipherInit_ex2(c, NULL, pattern(), NULL, encrypt, NULL));
	}
	EVP_CIPHER_free(cipher);
	return c;
}

static int record(EVP_CIPHER_CTX *c, uint8_t *data, int length, uint8_t sequence)
{
	uint8_t aad[13] = {0, 0, 0, 0, 0, 0, 0, sequence, 23, 3, 3, (uint8_t)(length >> 8), (uint8_t)length};
	int pad = EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_TLS1_AAD, 13, aad), n = -1;

	assert_int_equal(pad, 16);
	if (EVP_CIPHER_CTX_is_encrypting(c))
		length += pad;
	return EVP_CipherUpdate(c, data, &n, data, length) ? n : -1;
}

/* Records from us to the default provider and back; every second one meets a kernel that fails. */
static void test_records(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const int explicit_iv = algorithms[id].mode == MODE_CHACHA_POLY ? 0 : 8;

		for (int ours = 0; row(id) && ours < 2; ours++) {
			EVP_CIPHER_CTX *from = begin_records((enum algorithm_id)id, ours ? "afalgprov" : "default", 1);
			EVP_CIPHER_CTX *to = begin_records((enum algorithm_id)id, ours ? "default" : "afalgprov", 0);

			fake_install();
			for (uint8_t i = 0; i < 20; i++) {
				const int n = i * 800, spoilt = i % 5 == 4;

				if (i % 2)
					fake_fail(FAKE_CRYPT, 1, EIO, 1);
				fake_spoil(50);
				memcpy(out + explicit_iv, pattern() + i, (size_t)n);
				assert_int_equal(record(from, out, n + explicit_iv, i), n + explicit_iv + 16);
				out[n + explicit_iv] ^= (uint8_t)spoilt;
				assert_int_equal(record(to, out, n + explicit_iv + 16, i), spoilt ? -1 : n);
				if (!spoilt)
					assert_memory_equal(out + explicit_iv, pattern() + i, (size_t)n);
				ERR_clear_error();
				route_forget(); /* the rest after a failure */
			}
			assert_true(fake_calls(FAKE_CRYPT) >= 15);
			EVP_CIPHER_CTX_free(from);
			EVP_CIPHER_CTX_free(to);
		}
	}
	fake_install();
}

static int setup_kernel(void **state)
{
	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_update), cmocka_unit_test(test_more_updates), cmocka_unit_test(test_faults),
		cmocka_unit_test(test_wrong_tag),  cmocka_unit_test(test_packets),      cmocka_unit_test(test_records),
		cmocka_unit_test(test_early_tag),  cmocka_unit_test(test_next_message),
	};

	return cmocka_run_group_tests(tests, setup_kernel, teardown);
}
