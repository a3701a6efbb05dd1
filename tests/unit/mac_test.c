/* SPDX-License-Identifier: Apache-2.0 */
/* MACs: known answers, and the default provider's behaviour at all moments, whatever lane a message takes. */
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

static const char *const settings[] = {
	"policy = kernel\ncounters = off\n",
	"policy = software\ncounters = off\n",
	"policy = speed\ncounters = off\nthresholds = HMAC:100,CMAC:100\n",
	"policy = speed\ncounters = off\nthresholds = HMAC:40000,CMAC:40000\n",
};

static struct lib lib;

/*** Known answers ***/

#define AA20 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define AA131 AA20 AA20 AA20 AA20 AA20 AA20 "aaaaaaaaaaaaaaaaaaaaaa"
#define DD50                                                                                               \
	"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd" \
	"dddd"
#define CD50                                                                                               \
	"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd" \
	"cdcd"
#define KEY25 "0102030405060708090a0b0c0d0e0f10111213141516171819"
#define LARGER \
	"54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374"
#define JEFE "4a656665"
#define WHAT "7768617420646f2079612077616e7420666f72206e6f7468696e673f"
#define HI "4869205468657265"
#define K0B "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"

/* The message of the NIST examples for AES: 64 bytes, of which the cases take the beginning. */
#define NIST                                                               \
	"6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51" \
	"30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
#define K128 "2b7e151628aed2a6abf7158809cf4f3c"
#define K192 "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b"
#define K256 "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
#define K3DES "8aa83bf8cbda10620bc1bf19fbb6cd58bc313d4a371ca8b5"

static const struct {
	const char *over, *key, *text;
	size_t length; /* bytes of text */
	const char *hex;
} answers[] = {
	/* RFC 4231 */
	{"SHA2-224", K0B, HI, 8, "896fb1128abbdf196832107cd49df33f47b4b1169912ba4f53684b22"},
	{"SHA2-256", K0B, HI, 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	{"SHA2-384", K0B, HI, 8,
	 "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6"},
	{"SHA2-512", K0B, HI, 8,
	 "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f"
	 "1702e696c203a126854"},
	{"SHA2-224", JEFE, WHAT, 28, "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44"},
	{"SHA2-256", JEFE, WHAT, 28, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	{"SHA2-256", AA20, DD50, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
	{"SHA2-256", KEY25, CD50, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
	{"SHA2-256", AA131, LARGER, 54, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	{"SHA2-512", AA131, LARGER, 54,
	 "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0"
	 "aec8b915a985d786598"},
	/* RFC 4493, NIST SP 800-38B */
	{"AES-128-CBC", K128, NIST, 0, "bb1d6929e95937287fa37d129b756746"},
	{"AES-128-CBC", K128, NIST, 16, "070a16b46b4d4144f79bdd9dd04a287c"},
	{"AES-128-CBC", K128, NIST, 40, "dfa66747de9ae63030ca32611497c827"},
	{"AES-128-CBC", K128, NIST, 64, "51f0bebf7e3b9d92fc49741779363cfe"},
	{"AES-192-CBC", K192, NIST, 0, "d17ddf46adaacde531cac483de7a9367"},
	{"AES-192-CBC", K192, NIST, 16, "9e99a7bf31e710900662f65e617c5184"},
	{"AES-192-CBC", K192, NIST, 40, "8a1de5be2eb31aad089a82e6ee908b0e"},
	{"AES-192-CBC", K192, NIST, 64, "a1d5df0eed790f794d77589659f39a11"},
	{"AES-256-CBC", K256, NIST, 0, "028962f61b7bf89efc6b551f4667d983"},
	{"AES-256-CBC", K256, NIST, 16, "28a7023f452e8f82bd4bf28d8c37c35c"},
	{"AES-256-CBC", K256, NIST, 40, "aaf3d8f1de5640c232f5b169b9c911e6"},
	{"AES-256-CBC", K256, NIST, 64, "e1992190549f6ed5696a2c056c315410"},
	{"DES-EDE3-CBC", K3DES, NIST, 0, "b7a688e122ffaf95"},
	{"DES-EDE3-CBC", K3DES, NIST, 8, "8e8f293136283797"},
	{"DES-EDE3-CBC", K3DES, NIST, 20, "743ddbe0ce2dc2ed"},
	{"DES-EDE3-CBC", K3DES, NIST, 32, "33e6b1092400eae5"},
};

static void test_known_answers(void **state)
{
	static const size_t pieces[] = {SIZE_MAX, 1, 7, 16};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		const bool cmac = strstr(answers[i].over, "CBC") != NULL;
		EVP_MAC *mac = mac_of(&lib, cmac ? ALG_CMAC_AES_128 : ALG_HMAC_SHA2_256, "afalgprov");
		EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);
		const OSSL_PARAM params[] = {
			OSSL_PARAM_construct_utf8_string(cmac ? OSSL_MAC_PARAM_CIPHER : OSSL_MAC_PARAM_DIGEST,
							 (char *)(uintptr_t)answers[i].over, 0),
			OSSL_PARAM_END};
		long keylen, length;
		uint8_t *key = OPENSSL_hexstr2buf(answers[i].key, &keylen), out[EVP_MAX_MD_SIZE];
		uint8_t *text = OPENSSL_hexstr2buf(answers[i].text, &length);
		size_t outl;

		assert_true((size_t)length >= answers[i].length);
		for (size_t p = 0; p < sizeof(pieces) / sizeof(*pieces); p++) {
			assert_true(EVP_MAC_init(c, key, (size_t)keylen, params));
			for (size_t done = 0, n; done < answers[i].length; done += n) {
				n = answers[i].length - done < pieces[p] ? answers[i].length - done : pieces[p];
				assert_true(EVP_MAC_update(c, text + done, n));
			}
			assert_true(EVP_MAC_final(c, out, &outl, sizeof(out)));
			assert_hex(out, outl, answers[i].hex);
		}
		OPENSSL_free(key);
		OPENSSL_free(text);
		EVP_MAC_CTX_free(c);
		EVP_MAC_free(mac);
	}
}

/*** The default provider's behaviour ***/

struct scene {
	EVP_MAC *mac;
	enum algorithm_id id;
	struct trace trace;
	size_t a, b, c;
};

typedef void scenario(struct scene *s);

static void same(scenario *run, const char *what, enum algorithm_id id, size_t a, size_t b, size_t c)
{
	EVP_MAC *ours = mac_of(&lib, id, "afalgprov"), *theirs = mac_of(&lib, id, "default");
	struct scene s = {.mac = theirs, .id = id, .a = a, .b = b, .c = c};
	struct trace expected;

	trace_open(&s.trace);
	run(&s);
	trace_close(&s.trace);
	expected = s.trace;
	s.mac = ours;
	trace_open(&s.trace);
	run(&s);
	trace_close(&s.trace);
	trace_compare(&expected, &s.trace, "%s, %s, %zu %zu %zu", what, algorithms[id].name, a, b, c);
	EVP_MAC_free(ours);
	EVP_MAC_free(theirs);
	fake_close_idle();
	assert_int_equal(fake_ops(), 0);
	assert_int_equal(fake_transforms(), 0);
}

static void update(struct scene *s, EVP_MAC_CTX *c, size_t from, size_t n)
{
	trace_number(&s->trace, "update", EVP_MAC_update(c, pattern() + from, n));
	trace_errors(&s->trace);
}

static void final(struct scene *s, EVP_MAC_CTX *c)
{
	uint8_t out[EVP_MAX_MD_SIZE];
	size_t outl = 0;
	int ok = EVP_MAC_final(c, out, &outl, sizeof(out));

	trace_number(&s->trace, "final", ok);
	trace_bytes(&s->trace, "MAC", out, ok ? outl : 0);
	trace_number(&s->trace, "size", (long long)EVP_MAC_CTX_get_mac_size(c));
	trace_errors(&s->trace);
}

/* Names what the MAC is over and gives it a key, which begins a message. */
static void begin(struct scene *s, EVP_MAC_CTX *c, size_t key)
{
	const OSSL_PARAM params[] = {mac_over(s->id), OSSL_PARAM_END};

	trace_number(&s->trace, "init", EVP_MAC_init(c, pattern() + key, mac_key_length(s->id), params));
	trace_errors(&s->trace);
}

/* Begins a message with the same key. */
static void restart(struct scene *s, EVP_MAC_CTX *c)
{
	trace_number(&s->trace, "restart", EVP_MAC_init(c, NULL, 0, NULL));
	trace_errors(&s->trace);
}

static int rekey(struct scene *s, EVP_MAC_CTX *c, size_t key, size_t length)
{
	int ok = EVP_MAC_init(c, pattern() + key, length, NULL);

	trace_number(&s->trace, "rekey", ok);
	trace_errors(&s->trace);
	return ok;
}

static void set_text(struct scene *s, EVP_MAC_CTX *c, const char *key, const char *text)
{
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(key, (char *)(uintptr_t)text, 0), OSSL_PARAM_END};

	trace_number(&s->trace, key, EVP_MAC_CTX_set_params(c, params));
	trace_errors(&s->trace);
}

static void set_key(struct scene *s, EVP_MAC_CTX *c, size_t key, size_t length)
{
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(uintptr_t)(pattern() + key), length),
		OSSL_PARAM_END};

	trace_number(&s->trace, "key", EVP_MAC_CTX_set_params(c, params));
	trace_errors(&s->trace);
}

static EVP_MAC_CTX *copy(struct scene *s, EVP_MAC_CTX *c)
{
	EVP_MAC_CTX *to = EVP_MAC_CTX_dup(c);

	trace_number(&s->trace, "copy", to != NULL);
	trace_errors(&s->trace);
	return to;
}

/* Lengths on either side of all boundaries: blocks, thresholds, what is gathered, requests. */
static const size_t lengths[] = {0,     1,     16,    63,    64,    99,    100,   101,   192,    193,   16283,
				 16384, 39899, 39900, 39999, 40000, 40001, 65536, 65537, 131072, 200000};

#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

/* Where one of a family will do. */
static const enum algorithm_id some[] = {ALG_HMAC_SHA2_256, ALG_HMAC_SHA3_224, ALG_CMAC_AES_128, ALG_CMAC_DES_EDE3};
#define SOME (sizeof(some) / sizeof(*some))

/* a bytes, b bytes, c bytes; the same once more, once again under another key. */
static void split(struct scene *s)
{
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);

	for (size_t i = 0; i < 3; i++) {
		if (i == 1)
			restart(s, c);
		else
			begin(s, c, i);
		update(s, c, 0, s->a);
		update(s, c, s->a, s->b);
		update(s, c, s->a + s->b, s->c);
		final(s, c);
	}
	EVP_MAC_CTX_free(c);
}

static void test_splits(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t b = 0; b < LENGTHS; b += 5)
			for (size_t i = 0; i < LENGTHS; i += 7)
				same(split, "split", some[(a + b + i) % SOME], lengths[a], lengths[b], lengths[i]);
}

static void test_splits_all(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (size_t a = 0; algorithms[id].kind == KIND_MAC && a < LENGTHS; a += 3)
			same(split, "split", (enum algorithm_id)id, lengths[a], 20000, lengths[LENGTHS - 1 - a]);
}

/* A copy after a bytes; both go on, one of them under another key. The copy's copy outlives both. */
static void copies(struct scene *s)
{
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac), *second, *third;

	begin(s, c, 0);
	update(s, c, 0, s->a);
	second = copy(s, c);
	update(s, second, 5, s->c);
	third = copy(s, second);
	if (s->b > 0) {
		begin(s, c, 3);
		update(s, c, 9, s->b);
	}
	update(s, c, 7, s->c);
	final(s, c);
	EVP_MAC_CTX_free(c);
	update(s, third, 11, 70000);
	final(s, second);
	restart(s, second);
	update(s, second, 1, s->c);
	final(s, second);
	EVP_MAC_CTX_free(second);
	final(s, third);
	EVP_MAC_CTX_free(third);
}

static void test_copies(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t i = 0; i < LENGTHS; i += 3)
			same(copies, "copy", some[(a + i) % SOME], lengths[a],
			     i % 4 == 0 ? 0 : lengths[LENGTHS - 1 - i], lengths[i]);
}

/* Copies of contexts without anything, with a name, with a key, in the middle, at the end, after it. */
static void early_copies(struct scene *s)
{
	const OSSL_PARAM params[] = {mac_over(s->id), OSSL_PARAM_END};
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac), *to;

	for (int moment = 0; moment < 5; moment++) {
		if (moment == 1)
			trace_number(&s->trace, "name", EVP_MAC_CTX_set_params(c, params));
		if (moment == 2)
			rekey(s, c, 1, mac_key_length(s->id));
		if (moment == 3)
			update(s, c, 0, s->a);
		if (moment == 4)
			final(s, c);
		to = copy(s, c);
		if (to == NULL)
			continue;
		if (moment != 3 || s->b == 0)
			rekey(s, to, 2, mac_key_length(s->id));
		update(s, to, 3, s->a);
		final(s, to);
		restart(s, to);
		update(s, to, 4, s->b);
		final(s, to);
		EVP_MAC_CTX_free(to);
	}
	EVP_MAC_CTX_free(c);
}

static void test_early_copies(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t b = 0; b < LENGTHS; b += 11)
			for (size_t i = 0; i < SOME; i++)
				same(early_copies, "early copy", some[i], lengths[a], lengths[b], 0);
}

/* Begun anew in the middle: with the same key, the key by a parameter, another one, over something else. */
static void again(struct scene *s)
{
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);
	const enum algorithm_id was = s->id;

	begin(s, c, 0);
	update(s, c, 0, s->a);
	restart(s, c);
	update(s, c, 1, s->b);
	set_key(s, c, 5, mac_key_length(s->id));
	update(s, c, 2, s->a);
	rekey(s, c, 6, mac_key_length(s->id));
	update(s, c, 3, s->b);
	final(s, c);
	rekey(s, c, 6, mac_key_length(s->id)); /* the same key as before */
	update(s, c, 3, s->a);
	final(s, c);
	s->id = was == ALG_HMAC_SHA2_256 ? ALG_HMAC_SHA1 : was == ALG_CMAC_AES_128 ? ALG_CMAC_CAMELLIA_256 : was;
	begin(s, c, 6);
	update(s, c, 4, s->a);
	final(s, c);
	begin(s, c, 7);
	update(s, c, 5, s->b);
	s->id = was;
	EVP_MAC_CTX_free(c);
}

static void test_again(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t b = 0; b < LENGTHS; b += 4)
			same(again, "init again", some[(a + b) % SOME], lengths[a], lengths[b], 0);
}

/* What a MAC gives after its final is of no meaning, but whether it gives anything is. */
static void after_final(struct scene *s)
{
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);
	uint8_t meaningless[EVP_MAX_MD_SIZE];
	size_t outl;

	for (int i = 0; i < 3; i++) {
		begin(s, c, 0);
		update(s, c, 0, s->a);
		final(s, c);
		if (i != 1)
			update(s, c, 0, s->b);
		if (i != 2)
			trace_number(&s->trace, "final", EVP_MAC_final(c, meaningless, &outl, sizeof(meaningless)));
		trace_errors(&s->trace);
		restart(s, c);
		update(s, c, 1, s->a);
		final(s, c);
	}
	EVP_MAC_CTX_free(c);
}

static void test_after_final(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t i = 0; i < SOME; i++)
			same(after_final, "after final", some[i], lengths[a], lengths[LENGTHS - 1 - a], 0);
}

/*** Errors ***/

/* No name, no key, in any order. */
static void unprepared(struct scene *s)
{
	const OSSL_PARAM params[] = {mac_over(s->id), OSSL_PARAM_END};
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);

	update(s, c, 0, s->a);
	final(s, c);
	restart(s, c);
	rekey(s, c, 0, mac_key_length(s->id));
	set_key(s, c, 0, mac_key_length(s->id));
	update(s, c, 0, s->a);
	final(s, c);
	trace_number(&s->trace, "name", EVP_MAC_CTX_set_params(c, params));
	trace_errors(&s->trace);
	restart(s, c);
	update(s, c, 0, s->a);
	final(s, c);
	set_key(s, c, 0, mac_key_length(s->id));
	update(s, c, 0, s->a);
	final(s, c);
	restart(s, c);
	update(s, c, 0, s->a);
	final(s, c);
	EVP_MAC_CTX_free(c);
}

static void test_unprepared(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t i = 0; i < SOME; i++)
			same(unprepared, "unprepared", some[i], lengths[a], 0, 0);
}

/* Names that are none, in the middle of a message that goes on, and before the next. */
static void wrong_names(struct scene *s)
{
	static const char *const names[] = {"nonsense", "", "AES-128-ECB", "SHAKE256", "SHA2-384", "AES-256-CBC"};
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		begin(s, c, i);
		update(s, c, 0, s->a);
		set_text(s, c, mac_over(s->id).key, names[i]);
		update(s, c, 1, s->b);
		final(s, c);
		restart(s, c);
		update(s, c, 2, s->a);
		final(s, c);
		if (!rekey(s, c, 9, mac_key_length(s->id)))
			continue; /* what follows would be of no meaning */
		update(s, c, 3, s->a);
		final(s, c);
	}
	EVP_MAC_CTX_free(c);
}

static void test_wrong_names(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a += 3)
		for (size_t i = 0; i < SOME; i++)
			same(wrong_names, "wrong name", some[i], lengths[a], lengths[LENGTHS - 1 - a], 0);
}

/* Keys of wrong lengths, right after a message (in the middle of one see test_failed_init). */
static void wrong_keys(struct scene *s)
{
	static const size_t key_lengths[] = {0, 1, 15, 17, 32, 33, 300};
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);

	for (size_t i = 0; i < sizeof(key_lengths) / sizeof(*key_lengths); i++) {
		begin(s, c, 0);
		update(s, c, 0, s->a);
		final(s, c);
		rekey(s, c, 1, key_lengths[i]);
		update(s, c, 1, s->b);
		final(s, c);
		restart(s, c);
		update(s, c, 2, s->a);
		final(s, c);
		set_key(s, c, 2, key_lengths[i]);
		update(s, c, 3, s->a);
		final(s, c);
	}
	EVP_MAC_CTX_free(c);
}

static void test_wrong_keys(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a += 3)
		for (size_t i = 0; i < SOME; i++)
			same(wrong_keys, "wrong key", some[i], lengths[a], lengths[LENGTHS - 1 - a], 0);
}

/* Room that is too small, and the question for the size, change nothing. */
static void outsize(struct scene *s)
{
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);
	uint8_t out[EVP_MAX_MD_SIZE];
	size_t outl = 0;

	begin(s, c, 0);
	update(s, c, 0, s->a);
	trace_number(&s->trace, "too small", EVP_MAC_final(c, out, &outl, algorithms[s->id].size - 1));
	trace_errors(&s->trace);
	trace_number(&s->trace, "no room", EVP_MAC_final(c, NULL, &outl, 0));
	trace_number(&s->trace, "size", (long long)outl);
	update(s, c, 1, s->b);
	final(s, c);
	restart(s, c);
	update(s, c, 1, s->a);
	trace_number(&s->trace, "XOF", EVP_MAC_finalXOF(c, out, sizeof(out)));
	trace_bytes(&s->trace, "MAC", out, algorithms[s->id].size);
	trace_errors(&s->trace);
	EVP_MAC_CTX_free(c);
}

static void test_outsize(void **state)
{
	(void)state;
	for (size_t a = 0; a < LENGTHS; a++)
		for (size_t i = 0; i < SOME; i++)
			same(outsize, "room", some[i], lengths[a], lengths[LENGTHS - 1 - a], 0);
}

/*
 * A new beginning that fails in the middle of a message. HMAC then goes on with the one before; what the kernel has of
 * it is lost, so that this must be an error, never a MAC of the rest. CMAC has no key any more.
 */
static void test_failed_init(void **state)
{
	static const enum algorithm_id ids[] = {ALG_HMAC_SHA2_256, ALG_CMAC_AES_128};

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t a = 0; a < LENGTHS; a++) {
			EVP_MAC *ours = mac_of(&lib, ids[i], "afalgprov"), *theirs = mac_of(&lib, ids[i], "default");
			EVP_MAC_CTX *c[2] = {EVP_MAC_CTX_new(ours), EVP_MAC_CTX_new(theirs)};
			uint8_t out[2][EVP_MAX_MD_SIZE];
			size_t outl;
			int ok[2];

			for (int side = 0; side < 2; side++) {
				struct scene s = {.id = ids[i]};
				char name[] = "SHAKE256";
				const OSSL_PARAM params[] = {
					OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
					OSSL_PARAM_END};

				trace_open(&s.trace);
				begin(&s, c[side], 0);
				update(&s, c[side], 0, lengths[a]);
				trace_close(&s.trace);
				free(s.trace.text);
				assert_false(EVP_MAC_init(c[side], pattern(), 3, params));
				ok[side] = EVP_MAC_update(c[side], pattern(), 20000) &&
					   EVP_MAC_final(c[side], out[side], &outl, sizeof(out[side]));
			}
			if (ok[0])
				assert_true(ok[1]);
			if (ok[0])
				assert_memory_equal(out[0], out[1], algorithms[ids[i]].size);
			ERR_clear_error();
			for (int side = 0; side < 2; side++)
				EVP_MAC_CTX_free(c[side]);
			EVP_MAC_free(ours);
			EVP_MAC_free(theirs);
		}
}

/*** Keys ***/

/* Empty keys, and keys around the length of a block and far beyond. */
static void keys(struct scene *s)
{
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(s->mac);
	const OSSL_PARAM params[] = {mac_over(s->id), OSSL_PARAM_END};

	trace_number(&s->trace, "init", EVP_MAC_init(c, pattern() + 1, s->a, params));
	for (int i = 0; i < 2; i++) {
		update(s, c, 0, s->b);
		final(s, c);
		restart(s, c);
	}
	EVP_MAC_CTX_free(c);
}

static void test_keys(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const size_t block = algorithms[id].block;
		const size_t bytes[] = {0, 1, block - 1, block, block + 1, 144, 145, 300, 70000};

		if (algorithms[id].kind != KIND_MAC || block == 0)
			continue;
		for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
			same(keys, "key", (enum algorithm_id)id, bytes[i], 50000, 0);
	}
}

static int setup(unsigned which)
{
	lib_open(&lib, settings[which]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	return 0;
}

static int setup_kernel(void **state)
{
	(void)state;
	return setup(0);
}

static int setup_software(void **state)
{
	(void)state;
	return setup(1);
}

static int setup_low(void **state)
{
	(void)state;
	return setup(2);
}

static int setup_high(void **state)
{
	(void)state;
	return setup(3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers), cmocka_unit_test(test_splits),
		cmocka_unit_test(test_splits_all),    cmocka_unit_test(test_copies),
		cmocka_unit_test(test_early_copies),  cmocka_unit_test(test_again),
		cmocka_unit_test(test_after_final),   cmocka_unit_test(test_unprepared),
		cmocka_unit_test(test_wrong_names),   cmocka_unit_test(test_wrong_keys),
		cmocka_unit_test(test_outsize),       cmocka_unit_test(test_failed_init),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests_name("always the kernel", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("never the kernel", tests, setup_software, teardown) +
	       cmocka_run_group_tests_name("from 100 bytes on", tests, setup_low, teardown) +
	       cmocka_run_group_tests_name("from 40000 bytes on", tests, setup_high, teardown);
}
