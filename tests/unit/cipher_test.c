/* SPDX-License-Identifier: Apache-2.0 */
/* Ciphers behave as the default provider's, whatever lane a call takes. */
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <string.h>

#include "scene.h"

/* a bytes, b bytes, and the rest of c. */
static void split(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s);

	update(s, c, in, s->a);
	update(s, c, in + s->a, s->b);
	update(s, c, in + s->a + s->b, s->c - s->a - s->b);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_splits(void **state)
{
	static const size_t second[] = {0, 1, 15, 16, 17, 31, 32, 63, 64, 65, 79, 80, 81};

	(void)state;
	for (size_t a = 0; a <= 98; a++)
		for (size_t i = 0; i < sizeof(second) / sizeof(*second); i++)
			same_everywhere(split, "split", ALG_AES_128_CBC, a, second[i], 288);
}

static void test_splits_large(void **state)
{
	static const size_t first[] = {0, 1, 16, 65519, 65535, 65536, 65537, 65552, 65553, 131071, 131072, 131073};

	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (size_t i = 0; first_of_mode(id) && i < sizeof(first) / sizeof(*first); i++) {
			same_everywhere(split, "split", (enum algorithm_id)id, first[i], 65537, 200000);
			same_everywhere(split, "split", (enum algorithm_id)id, first[i], 0, first[i] + 65536);
		}
}

/* Every total length around the threshold, with a final that fits or fails. */
static void test_lengths(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 144; n++) {
		same_everywhere(split, "length", ALG_AES_128_CBC, 0, 0, n);
		same_everywhere(split, "length", ALG_AES_256_CBC, n, 0, n);
		same_everywhere(split, "length", ALG_AES_192_CBC, n / 2, 0, n);
	}
}

/* Many updates of a bytes: what is held back is right all the way. */
static void steps(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s);

	for (size_t n = 0; n < s->c; n += s->a)
		update(s, c, in + n, s->c - n < s->a ? s->c - n : s->a);
	final(s, c);
	ivs(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_steps(void **state)
{
	(void)state;
	for (size_t a = 1; a <= 130; a++)
		same_in_each_mode(steps, "steps", a, 0, 1024);
}

/* Nothing in, at every place; and no input pointer either. */
static void nothing(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s);

	update(s, c, in, 0);
	update(s, c, in, s->a);
	update(s, c, in, 0);
	update(s, c, in + s->a, s->c - s->a);
	update(s, c, NULL, 0);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
	c = begin(s);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_nothing(void **state)
{
	(void)state;
	for (size_t a = 0; a <= 144; a += 8)
		same_in_each_mode(nothing, "nothing", a, 0, 144);
}

/* IVs as they are seen between updates; reading them must not disturb. */
static void read_ivs(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s);

	ivs(s, c);
	update(s, c, in, s->a);
	ivs(s, c);
	update(s, c, in + s->a, s->b);
	ivs(s, c);
	update(s, c, in + s->a + s->b, s->c - s->a - s->b);
	ivs(s, c);
	final(s, c);
	ivs(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_ivs(void **state)
{
	(void)state;
	for (size_t a = 0; a <= 96; a += 4)
		for (size_t b = 0; b <= 96; b += 16)
			same_in_each_mode(read_ivs, "IVs", a, b, 256);
}

/* Inits in the middle of a message: a tells what is given again, b how much came before. */
static void again(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s);
	const uint8_t *key = s->a & 1 ? pattern() + 31 : NULL, *iv = s->a & 2 ? pattern() + 77 : NULL;
	const EVP_CIPHER *cipher = s->a & 4 ? s->cipher : NULL;

	/* The default provider would crash for want of a key. */
	if (cipher != NULL && key == NULL && one_update(cipher)) {
		EVP_CIPHER_CTX_free(c);
		return;
	}
	update(s, c, in, s->b);
	for (int i = 0; i < 2; i++) {
		trace_number(&s->trace, "again", EVP_CipherInit_ex2(c, cipher, key, iv, -1, NULL));
		ivs(s, c);
		update(s, c, in, s->c);
		ivs(s, c);
	}
	final(s, c);
	trace_number(&s->trace, "reset", EVP_CIPHER_CTX_reset(c));
	trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, s->cipher, pattern(), IV, s->encrypt, NULL));
	update(s, c, in, s->c);
	EVP_CIPHER_CTX_free(c);
}

static void test_again(void **state)
{
	static const size_t before[] = {0, 5, 16, 63, 64, 65, 80, 96, 128, 200};

	(void)state;
	for (size_t a = 0; a < 8; a++)
		for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
			same_in_each_mode(again, "init again", a, before[i], 256);
}

/* The key first and the IV later, and the other way round; or one of them never. */
static void piecemeal(struct scene *s)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

	for (size_t i = 0; i < 2; i++) {
		const bool key = (s->a >> i) & 1, iv = (s->b >> i) & 1;

		trace_number(&s->trace, "init",
			     EVP_CipherInit_ex2(c, i == 0 ? s->cipher : NULL, key ? pattern() : NULL, iv ? IV : NULL,
						s->encrypt, NULL));
	}
	if (s->a != 0) { /* without a key there is nothing to compare */
		update(s, c, pattern(), 128);
		update(s, c, pattern(), 128);
		ivs(s, c);
	}
	trace_errors(&s->trace);
	EVP_CIPHER_CTX_free(c);
}

static void test_piecemeal(void **state)
{
	(void)state;
	for (size_t a = 0; a < 4; a++)
		for (size_t b = 0; b < 4; b++)
			same_in_each_mode(piecemeal, "piecemeal", a, b, 0);
}

/* The direction is turned with a new key, with the same, and back. */
static void turn(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	for (int i = 0; i < 4; i++) {
		update(s, c, pattern(), s->a);
		trace_number(&s->trace, "turn",
			     EVP_CipherInit_ex2(c, NULL, pattern() + (i & 2), i & 1 ? IV : NULL, i & 1, NULL));
		update(s, c, pattern(), s->a);
		ivs(s, c);
	}
	EVP_CIPHER_CTX_free(c);
}

static void test_turn(void **state)
{
	(void)state;
	for (size_t a = 16; a <= 160; a += 16)
		same_in_each_mode(turn, "turn", a, 0, 0);
}

/*
 * The direction is turned without a key: the default provider then goes on with a key schedule of the other direction,
 * whose result is of no use. It is so at every size or at none.
 */
static void turn_keyless(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	update(s, c, pattern(), s->a);
	trace_number(&s->trace, "turn", EVP_CipherInit_ex2(c, NULL, NULL, IV, !s->encrypt, NULL));
	update(s, c, pattern(), s->b);
	update(s, c, pattern(), s->b);
	trace_number(&s->trace, "key", EVP_CipherInit_ex2(c, NULL, pattern() + 1, IV, -1, NULL));
	update(s, c, pattern(), s->b);
	EVP_CIPHER_CTX_free(c);
}

/* FAILS: the kernel lane decrypts properly, so that the result depends on the size (skcipher.c, init). */
static void test_turn_keyless(void **state)
{
	(void)state;
	for (size_t a = 0; a <= 64; a += 16)
		for (size_t b = 16; b <= 160; b += 16)
			same_in_each_mode(turn_keyless, "turn without key", a, b, 0);
}

/* A copy after a bytes; then both go on with different data, and one of them is gone first. */
static void copies(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s), *copy = EVP_CIPHER_CTX_new();

	if (s->b == 1) /* into a context that has had a life */
		EVP_CipherInit_ex2(copy, s->cipher, pattern() + 3, IV, 1, NULL);
	update(s, c, in, s->a);
	trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
	update(s, copy, in + s->a, s->c - s->a);
	update(s, c, pattern() + 9, 96);
	ivs(s, c);
	ivs(s, copy);
	if (s->b == 2) /* the sibling gets another key; the copy must keep its own */
		trace_number(&s->trace, "key", EVP_CipherInit_ex2(c, NULL, pattern() + 50, NULL, -1, NULL));
	update(s, c, pattern() + 1, 128);
	EVP_CIPHER_CTX_free(c);
	update(s, copy, pattern() + 2, 128);
	final(s, copy);
	EVP_CIPHER_CTX_free(copy);
}

static void test_copies(void **state)
{
	(void)state;
	for (size_t a = 0; a <= 144; a += 1)
		for (size_t b = 0; b < 3; b++)
			same_in_each_mode(copies, "copy", a, b, 144);
}

/* Copies of contexts that never saw a key, or not even a cipher. */
static void empty_copies(struct scene *s)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();

	trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
	trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, s->cipher, NULL, NULL, s->encrypt, NULL));
	trace_number(&s->trace, "copy", EVP_CIPHER_CTX_copy(copy, c));
	trace_number(&s->trace, "init", EVP_CipherInit_ex2(copy, NULL, pattern(), IV, -1, NULL));
	trace_errors(&s->trace);
	update(s, copy, pattern(), 128);
	final(s, copy);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_CTX_free(copy);
}

static void test_empty_copies(void **state)
{
	(void)state;
	same_in_each_mode(empty_copies, "empty copy", 0, 0, 0);
}

/* EVP_Cipher(): a bytes, b bytes, between updates of c. */
static void at_once(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	for (int i = 0; i < 2; i++) {
		int n = EVP_Cipher(c, scratch, pattern(), (unsigned int)s->a);

		trace_number(&s->trace, "at once", n);
		trace_bytes(&s->trace, "output", scratch, n > 0 ? (size_t)n : 0);
		trace_errors(&s->trace);
		memcpy(scratch, pattern() + 3, s->b);
		n = EVP_Cipher(c, scratch, scratch, (unsigned int)s->b);
		trace_number(&s->trace, "in place", n);
		trace_bytes(&s->trace, "output", scratch, n > 0 ? (size_t)n : 0);
		ivs(s, c);
		update(s, c, pattern() + 5, s->c);
	}
	EVP_CIPHER_CTX_free(c);
}

static void test_at_once(void **state)
{
	static const size_t lengths[] = {0, 16, 32, 48, 64, 80, 4096, 65536, 65552, 131072, 200000};

	(void)state;
	for (size_t a = 0; a < sizeof(lengths) / sizeof(*lengths); a++)
		for (size_t b = 0; b < sizeof(lengths) / sizeof(*lengths); b += 2)
			for (size_t c = 0; c < 96; c += 32)
				same_everywhere(at_once, "at once", ALG_AES_128_CBC, lengths[a], lengths[b], c);
	for (size_t c = 0; c < 96; c += 32) {
		same_in_each_mode(at_once, "at once", 16, 65552, c);
		same_in_each_mode(at_once, "at once", 131072, 64, c);
	}
}

/* In a stream it may be any number of bytes. */
static void test_at_once_stream(void **state)
{
	static const enum algorithm_id streams[] = {ALG_AES_128_CTR, ALG_AES_128_OFB, ALG_AES_128_CFB, ALG_CHACHA20};
	static const size_t lengths[] = {0, 1, 63, 64, 65, 200, 65537};

	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++)
		for (size_t a = 0; a < sizeof(lengths) / sizeof(*lengths); a++)
			for (size_t b = 0; b < sizeof(lengths) / sizeof(*lengths); b++)
				for (size_t c = 0; c < 200; c += 99)
					same_everywhere(at_once, "at once", streams[i], lengths[a], lengths[b], c);
}

/* Final twice, updates after it. */
static void after_final(struct scene *s)
{
	const uint8_t *in = input(s, s->a);
	EVP_CIPHER_CTX *c = begin(s);

	update(s, c, in, s->a);
	for (int i = 0; i < 3; i++) {
		final(s, c);
		final(s, c);
		ivs(s, c);
		update(s, c, pattern(), s->b);
	}
	EVP_CIPHER_CTX_free(c);
}

static void test_after_final(void **state)
{
	static const size_t lengths[] = {0, 1, 16, 31, 32, 64, 65, 80, 128};

	(void)state;
	for (size_t a = 0; a < 9; a++)
		for (size_t b = 0; b < 9; b++)
			same_in_each_mode(after_final, "after final", lengths[a], lengths[b], 0);
}

/* A padding that is wrong, then the context is used again. */
static void bad_padding(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	memcpy(ciphertext, input(s, s->a), s->a);
	ciphertext[s->a - 1 - s->b] ^= 0x55;
	update(s, c, ciphertext, s->a);
	final(s, c);
	update(s, c, ciphertext, s->a);
	trace_number(&s->trace, "again", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
	update(s, c, ciphertext, s->a);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_bad_padding(void **state)
{
	(void)state;
	for (size_t a = 32; a <= 160; a += 16)
		for (size_t b = 0; b < 20; b++)
			same_everywhere(bad_padding, "bad padding", ALG_AES_128_CBC, a, b, 0);
}

/* The padding is switched while something may be held back. */
static void padding_switched(struct scene *s)
{
	const uint8_t *in = input(s, s->c);
	EVP_CIPHER_CTX *c = begin(s);

	update(s, c, in, s->a);
	trace_number(&s->trace, "padding", EVP_CIPHER_CTX_set_padding(c, !s->padding));
	update(s, c, in + s->a, s->b);
	trace_number(&s->trace, "padding", EVP_CIPHER_CTX_set_padding(c, s->padding));
	update(s, c, in + s->a + s->b, s->c - s->a - s->b);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_padding_switched(void **state)
{
	(void)state;
	for (size_t a = 0; a <= 144; a += 4)
		for (size_t b = 0; b <= 144; b += 4)
			same_everywhere(padding_switched, "padding switched", ALG_AES_128_CBC, a, b, 288);
}

/* An init that fails: a key of a length that cannot be. Then the old key must not be used by one lane only. */
static void failed_init(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);
	size_t keylen = 8;
	const OSSL_PARAM params[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, &keylen), OSSL_PARAM_END};

	update(s, c, pattern(), s->a);
	trace_number(&s->trace, "bad init", EVP_CipherInit_ex2(c, NULL, pattern() + 40, IV, -1, params));
	trace_errors(&s->trace);
	update(s, c, pattern(), 128);
	trace_number(&s->trace, "again", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
	trace_errors(&s->trace);
	update(s, c, pattern(), 128);
	EVP_CIPHER_CTX_free(c);
}

static void test_failed_init(void **state)
{
	(void)state;
	for (size_t a = 0; a <= 128; a += 16)
		same_everywhere(failed_init, "failed init", ALG_AES_128_CBC, a, 0, 0);
}

/* A parameter that is refused, after others that are not. */
#define REFUSED OSSL_PARAM_utf8_string(OSSL_CIPHER_PARAM_NUM, (char *)"x", 1)

/* An init that fails has given software its IV all the same. */
static void failed_init_iv(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);
	const OSSL_PARAM params[] = {REFUSED, OSSL_PARAM_END};

	update(s, c, pattern(), s->a);
	ivs(s, c);
	trace_number(&s->trace, "bad init", EVP_CipherInit_ex2(c, NULL, pattern(), pattern() + 90, -1, params));
	trace_errors(&s->trace);
	trace_number(&s->trace, "key alone", EVP_CipherInit_ex2(c, NULL, pattern(), NULL, -1, NULL));
	update(s, c, pattern(), 4096);
	ivs(s, c);
	EVP_CIPHER_CTX_free(c);
}

/* Padding is off although setting the parameters failed. */
static void failed_params(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);
	unsigned int off = 0;
	const OSSL_PARAM params[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, &off), REFUSED, OSSL_PARAM_END};

	update(s, c, pattern(), s->a);
	trace_number(&s->trace, "bad params", EVP_CIPHER_CTX_set_params(c, params));
	trace_errors(&s->trace);
	update(s, c, pattern(), 160);
	trace_number(&s->trace, "again", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
	update(s, c, pattern(), 16);
	update(s, c, pattern(), 160);
	final(s, c);
	EVP_CIPHER_CTX_free(c);
}

static void test_failed_halfway(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (size_t a = 80; first_of_mode(id) && a <= 128; a += 16) {
			same_everywhere(failed_init_iv, "failed init with IV", (enum algorithm_id)id, a, 0, 0);
			same_everywhere(failed_params, "failed parameters", (enum algorithm_id)id, a, 0, 0);
		}
}

/* A block mode has no use for it, but remembers the number that it is given. */
static void number(struct scene *s)
{
	EVP_CIPHER_CTX *c = begin(s);

	for (int i = 0; i < 2; i++) {
		trace_number(&s->trace, "set", EVP_CIPHER_CTX_set_num(c, 9));
		update(s, c, pattern(), s->a);
		trace_number(&s->trace, "number", EVP_CIPHER_CTX_get_num(c));
		update(s, c, pattern(), 4096);
		trace_number(&s->trace, "number", EVP_CIPHER_CTX_get_num(c));
		trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, NULL, NULL, IV, -1, NULL));
		update(s, c, pattern(), s->a);
		trace_number(&s->trace, "number", EVP_CIPHER_CTX_get_num(c));
	}
	trace_errors(&s->trace);
	EVP_CIPHER_CTX_free(c);
}

static void test_number(void **state)
{
	(void)state;
	for (size_t a = 16; a <= 160; a += 8)
		same_everywhere(number, "number", ALG_AES_128_CBC, a, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_splits),
		cmocka_unit_test(test_splits_large),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_ivs),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_piecemeal),
		cmocka_unit_test(test_turn),
		cmocka_unit_test(test_turn_keyless),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_empty_copies),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_at_once_stream),
		cmocka_unit_test(test_after_final),
		cmocka_unit_test(test_bad_padding),
		cmocka_unit_test(test_padding_switched),
		cmocka_unit_test(test_failed_init),
		cmocka_unit_test(test_failed_halfway),
		cmocka_unit_test(test_number),
	};

	return cmocka_run_group_tests_name("always the kernel", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("never the kernel", tests, setup_software, teardown) +
	       cmocka_run_group_tests_name("from 64 bytes on", tests, setup_threshold, teardown);
}
