/* SPDX-License-Identifier: Apache-2.0 */
/* Records of TLS with CBC: what libssl sees is what the default provider gives, whatever the kernel has of them. */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/dtls1.h>
#include <openssl/params.h>
#include <openssl/ssl3.h>
#include <openssl/tls1.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

static const unsigned int versions[] = {TLS1_VERSION,    TLS1_1_VERSION, TLS1_2_VERSION, DTLS1_VERSION,
					DTLS1_2_VERSION, DTLS1_BAD_VER,  SSL3_VERSION,   TLS1_3_VERSION};

#define VERSIONS (sizeof(versions) / sizeof(*versions))

/* What the third number of a scene says. */
#define CASE(version, padding, flags) ((size_t)(version) | (size_t)(padding) << 8 | (size_t)(flags) << 16)
#define BAD_PADDING 1u   /* a byte of the padding is wrong */
#define BEGUN 2u         /* something else was begun before */
#define PLAIN_AFTER 4u   /* then plain updates */
#define BY_INIT 8u       /* the version is told with the key */
#define HALF_REFUSED 16u /* or together with something that is refused */

static unsigned version_of(const struct scene *s)
{
	return versions[s->c & 0xff];
}

static size_t padding_of(const struct scene *s)
{
	return s->c >> 8 & 0xff;
}

static bool flag(const struct scene *s, unsigned f)
{
	return s->c >> 16 & f;
}

static bool tell(EVP_CIPHER_CTX *c, unsigned int version, size_t mac_size)
{
	const OSSL_PARAM params[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &version),
				     OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &mac_size), OSSL_PARAM_END};

	return EVP_CIPHER_CTX_set_params(c, params);
}

/* The record's plaintext: perhaps an IV, n bytes of payload, a MAC; in decryption padding. Returns its length. */
static size_t plaintext(const struct scene *s, uint8_t *record, size_t n, size_t seed)
{
	const size_t b = (size_t)EVP_CIPHER_get_block_size(s->cipher);
	size_t pad;

	n += s->b + (version_of(s) != TLS1_VERSION && version_of(s) != SSL3_VERSION ? b : 0);
	memcpy(record, pattern() + seed, n);
	if (s->encrypt)
		return n;
	pad = padding_of(s) - (n + padding_of(s) + 1) % b;
	pad += pad > 255 ? b : 0; /* less than none */
	memset(record + n, (int)pad, pad + 1);
	if (flag(s, BAD_PADDING))
		record[n + pad / 2] ^= 0x40;
	return n + pad + 1;
}

static void do_record(struct scene *s, EVP_CIPHER_CTX *c, uint8_t *record, size_t n)
{
	void *mac = NULL;
	OSSL_PARAM get[] = {OSSL_PARAM_octet_ptr(OSSL_CIPHER_PARAM_TLS_MAC, &mac, 0), OSSL_PARAM_END};
	int outl = -1, ok = EVP_CipherUpdate(c, record, &outl, record, (int)n);

	trace_number(&s->trace, "record", ok);
	trace_number(&s->trace, "length", outl);
	if (!s->encrypt || ok) /* all of it, not only the payload */
		trace_bytes(&s->trace, "record", record, s->encrypt ? (size_t)outl : n);
	if (!s->encrypt && s->b > 0) {
		trace_number(&s->trace, "get MAC", EVP_CIPHER_CTX_get_params(c, get));
		trace_number(&s->trace, "MAC size", (long long)get[0].return_size);
		if (ok && mac != NULL && !flag(s, BAD_PADDING)) /* else it is random */
			trace_bytes(&s->trace, "MAC", mac, s->b);
	}
	trace_errors(&s->trace);
	ivs(s, c);
}

/* Three records of a bytes of payload, a + 1 and a / 2, with a MAC of b bytes (0: encrypt-then-MAC). */
static void records(struct scene *s)
{
	const size_t payloads[] = {s->a, s->a + 1, s->a / 2};
	EVP_CIPHER *theirs = EVP_CIPHER_fetch(lib.context, EVP_CIPHER_get0_name(s->cipher), "provider!=afalgprov");
	EVP_CIPHER_CTX *c = begin(s), *e = EVP_CIPHER_CTX_new();
	unsigned int version = version_of(s);
	const OSSL_PARAM by_init[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &version),
				      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &s->b), OSSL_PARAM_END};
	const OSSL_PARAM refused[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &version),
				      OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &s->b),
				      OSSL_PARAM_utf8_string(OSSL_CIPHER_PARAM_NUM, (char *)"x", 1), OSSL_PARAM_END};
	int outl;

	if (flag(s, BEGUN))
		update(s, c, pattern(), 21);
	if (flag(s, BY_INIT))
		trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, NULL, pattern(), IV, -1, by_init));
	else
		trace_number(&s->trace, "tell", tell(c, flag(s, HALF_REFUSED) ? 0 : version, 0));
	if (flag(s, HALF_REFUSED)) {
		trace_number(&s->trace, "refused", EVP_CIPHER_CTX_set_params(c, refused));
		trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
	} else {
		trace_number(&s->trace, "tell", tell(c, version, s->b));
	}
	assert_true(EVP_EncryptInit_ex2(e, theirs, pattern(), IV, NULL));
	EVP_CIPHER_CTX_set_padding(e, 0);
	for (size_t i = 0; i < 3; i++) {
		size_t n = plaintext(s, ciphertext, payloads[i], i);

		if (!s->encrypt)
			assert_true(EVP_EncryptUpdate(e, ciphertext, &outl, ciphertext, (int)n));
		do_record(s, c, ciphertext, n);
	}
	if (flag(s, PLAIN_AFTER)) {
		trace_number(&s->trace, "tell", tell(c, 0, 0));
		update(s, c, pattern(), 100);
		update(s, c, pattern(), 4096);
		trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
		update(s, c, pattern(), 4096);
		final(s, c);
	}
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_CTX_free(e);
	EVP_CIPHER_free(theirs);
}

static const enum algorithm_id ciphers[] = {ALG_AES_128_CBC, ALG_AES_256_CBC, ALG_DES_EDE3_CBC, ALG_CAMELLIA_256_CBC};

static void test_records(void **state)
{
	static const size_t macs[] = {0, 16, 20, 32, 48, 64, 65}, payloads[] = {0, 1, 15, 16, 100, 300, 1000, 16384};

	(void)state;
	for (size_t p = 0; p < sizeof(payloads) / sizeof(*payloads); p++)
		for (size_t m = 0; m < sizeof(macs) / sizeof(*macs); m++)
			for (size_t v = 0; v < VERSIONS; v++)
				same_everywhere(records, "records", ciphers[(p + m + v) % 4], payloads[p], macs[m],
						CASE(v, 7, 0));
}

/* Lengths about the end that software keeps, and the threshold; with every sort of padding. */
static void test_lengths(void **state)
{
	static const size_t paddings[] = {0, 15, 16, 100, 239, 240, 255};

	(void)state;
	for (size_t a = 200; a < 420; a += 5)
		for (size_t i = 0; i < sizeof(paddings) / sizeof(*paddings); i++) {
			const unsigned flags = a % 2 ? BAD_PADDING : 0;

			same_everywhere(records, "lengths", ALG_AES_128_CBC, a, 20, CASE(2, paddings[i], flags));
			same_everywhere(records, "lengths", ALG_AES_128_CBC, a, 48, CASE(0, paddings[i], flags));
			same_everywhere(records, "lengths", ALG_DES_EDE3_CBC, a, 0, CASE(1, paddings[i], flags));
		}
}

static void test_paddings(void **state)
{
	(void)state;
	for (size_t pad = 0; pad < 256; pad++) {
		same_everywhere(records, "paddings", ALG_AES_128_CBC, 1000, 20, CASE(pad % 6, pad, 0));
		same_everywhere(records, "paddings", ALG_AES_128_CBC, 1000, 32, CASE(pad % 6, pad, BAD_PADDING));
		same_everywhere(records, "paddings", ALG_AES_128_CBC, 1000, 0, CASE(pad % 6, pad, BAD_PADDING));
	}
}

/* Records amid other things. */
static void test_amid(void **state)
{
	(void)state;
	for (size_t a = 0; a < 2000; a += 180)
		for (unsigned flags = 0; flags < 32; flags += 2)
			for (size_t v = 0; v < 3; v++)
				same_everywhere(records, "amid", ALG_AES_128_CBC, a, 20,
						CASE(v, a % 4 == 0 ? 255 : 9, flags));
}

/* Not as libssl does it: to another place, of half a block, with too little room, and nothing at all. */
static void wrong(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	trace_number(&s->trace, "tell", tell(c, TLS1_2_VERSION, 20));
	memcpy(ciphertext, pattern(), s->a);
	do_record(s, c, ciphertext, s->a);
	trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
	update(s, c, pattern(), s->a);
	update(s, c, NULL, 0);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_wrong(void **state)
{
	(void)state;
	for (size_t a = 16; a < 1000; a += 8) /* of nothing at all, the default provider would remove an IV */
		same_everywhere(wrong, "wrong", ALG_AES_128_CBC, a, 0, 0);
}

/*
 * A copy goes on by itself. With encrypt-then-MAC only: OpenSSL 3.0's copies have a MAC that was removed in common, and
 * both free it.
 */
static void copied(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s), *copy = EVP_CIPHER_CTX_new();

	trace_number(&s->trace, "tell", tell(c, versions[s->a], 0));
	for (int i = 0; i < 2; i++) {
		memcpy(ciphertext, pattern() + i, 1600);
		do_record(s, c, ciphertext, 1600);
		trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
		memcpy(ciphertext, pattern() + 3, 1600);
		do_record(s, copy, ciphertext, 1600);
	}
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_CTX_free(copy);
}

static void test_copied(void **state)
{
	(void)state;
	for (size_t v = 0; v < VERSIONS; v++)
		same_everywhere(copied, "copied", ALG_AES_256_CBC, v, 0, 0);
}

/*** Who did it ***/

static void test_who(void **state)
{
	static const struct {
		size_t n; /* of the record, padding not included when it is sent */
		bool encrypt;
		size_t mac, kernel;
	} cases[] = {
		{16384 + 16 + 20, true, 20, 16416},
		{16384 + 16 + 48, true, 48, 16448},
		{300, true, 20, 288},
		{15, true, 0, 0},
		{288, false, 20, 0},
		{304, false, 20, 16},
		{16432, false, 20, 16144},
		{16448, false, 48, 16144},
		{16400, false, 0, 16144},
		{272, false, 0, 16},
		{256, false, 0, 0},
	};
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (size_t v = 0; v < 6; v++) {
			EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
			int outl;

			assert_true(EVP_CipherInit_ex2(c, cipher, pattern(), IV, cases[i].encrypt, NULL));
			assert_true(tell(c, versions[v], cases[i].mac));
			fake_reset();
			memcpy(ciphertext, pattern(), cases[i].n);
			EVP_CipherUpdate(c, ciphertext, &outl, ciphertext, (int)cases[i].n);
			assert_int_equal(fake_bytes(FAKE_CRYPT), cases[i].kernel);
			EVP_CIPHER_CTX_free(c);
		}
	ERR_clear_error();
	EVP_CIPHER_free(cipher);
}

/* A record is as long as libssl makes it: by that it is judged, not by what is left for the kernel. */
static void test_threshold(void **state)
{
	static uint8_t record[16384 + 64];
	struct lib speed;
	EVP_CIPHER *cipher;

	(void)state;
	lib_open(&speed, "policy = speed\nthresholds = AES-128-CBC:16384\ncounters = off\n");
	cipher = cipher_of(&speed, ALG_AES_128_CBC, "afalgprov");
	for (int encrypt = 0; encrypt < 2; encrypt++)
		for (size_t n = 16384 - 16; n <= 16384 + 48; n += 16) {
			EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
			int outl;

			assert_true(EVP_CipherInit_ex2(c, cipher, pattern(), IV, encrypt, NULL));
			assert_true(tell(c, TLS1_2_VERSION, 20));
			fake_reset();
			memcpy(record, pattern(), n);
			EVP_CipherUpdate(c, record, &outl, record, (int)n);
			assert_int_equal(fake_bytes(FAKE_CRYPT), n < 16384 ? 0 : encrypt ? n : n - 288);
			EVP_CIPHER_CTX_free(c);
		}
	ERR_clear_error();
	EVP_CIPHER_free(cipher);
	lib_close(&speed);
}

/* The kernel fails before, amid and at the end of its share; the records are longer than any of TLS. */
static void test_faults(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth < 8; nth++)
		for (size_t v = 0; v < 3; v++) {
			fake_reset();
			fake_spoil(60);
			lib_drive_clock(&lib);
			fake_fail(FAKE_CRYPT, nth, EIO, 1);
			same_everywhere(records, "faults", ALG_AES_128_CBC, 140000, 20, CASE(v, 33, 0));
			clock_now += 20000000000;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records), cmocka_unit_test(test_lengths), cmocka_unit_test(test_paddings),
		cmocka_unit_test(test_amid),    cmocka_unit_test(test_wrong),   cmocka_unit_test(test_copied),
	};
	const struct CMUnitTest by_kernel[] = {
		cmocka_unit_test(test_who),
		cmocka_unit_test(test_faults),
	};
	const struct CMUnitTest alone[] = {cmocka_unit_test(test_threshold)};

	return cmocka_run_group_tests_name("always the kernel", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("by the kernel", by_kernel, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("never the kernel", tests, setup_software, teardown) +
	       cmocka_run_group_tests_name("from 64 bytes on", tests, setup_threshold, teardown) +
	       cmocka_run_group_tests_name("default policy", alone, NULL, NULL);
}
