/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases of ciphers whose state is an IV, or nothing. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "differential.h"
#include "support.h"

#define LAG 32u /* room by which an in-place output lags behind its input */

static enum cipher_mode mode; /* of the case */

static size_t piece(size_t left)
{
	if (mode == MODE_CTS) /* the first update is the message */
		return left;
	if (mode == MODE_XTS) /* each update is one: most of a length that may be one */
		return left < 48 || below(20) == 0 ? left : 16 + below(left - 32);
	return random_piece(left);
}

/* One side of a cipher case: a context and its buffers. */
struct side {
	EVP_CIPHER_CTX *ctx;
	uint8_t *buffer, *in, *out;
	size_t written;
};

/* In place: the input lies LAG bytes above the output, so that output never runs into what is still to be read. */
static void side_init(struct side *s, EVP_CIPHER_CTX *ctx, const uint8_t *input, size_t length, int in_place)
{
	s->ctx = ctx;
	s->buffer = malloc(2 * (length + 2 * LAG));
	check(s->buffer != NULL, "memory");
	s->out = s->buffer;
	s->in = in_place ? s->buffer + LAG : s->buffer + length + 2 * LAG;
	memcpy(s->in, input, length);
	s->written = 0;
}

static void side_free(struct side *s)
{
	EVP_CIPHER_CTX_free(s->ctx);
	free(s->buffer);
}

static void compare_ivs(struct side *a, struct side *b)
{
	uint8_t iv[2][16] = {{0}, {0}}; /* what there is of them */

	check(EVP_CIPHER_CTX_get_updated_iv(a->ctx, iv[0], 16) && EVP_CIPHER_CTX_get_updated_iv(b->ctx, iv[1], 16) &&
		      memcmp(iv[0], iv[1], 16) == 0,
	      "updated IV");
	check(EVP_CIPHER_CTX_get_original_iv(a->ctx, iv[0], 16) && EVP_CIPHER_CTX_get_original_iv(b->ctx, iv[1], 16) &&
		      memcmp(iv[0], iv[1], 16) == 0,
	      "original IV");
}

static void step(struct side sides[2], size_t at, size_t n)
{
	int outl[2] = {-1, -1}, ok[2];

	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];

		ok[i] = EVP_CipherUpdate(s->ctx, s->out + s->written, &outl[i], s->in + at, (int)n);
	}
	check(ok[0] == ok[1], "return value of update");
	check(outl[0] == outl[1], "length of update");
	check(outl[0] <= 0 ||
		      memcmp(sides[0].out + sides[0].written, sides[1].out + sides[1].written, (size_t)outl[0]) == 0,
	      "output of update");
	sides[0].written += (size_t)outl[0];
	sides[1].written += (size_t)outl[1];
}

static void finish(struct side sides[2])
{
	int outl[2] = {-1, -1}, ok[2];

	for (int i = 0; i < 2; i++)
		ok[i] = EVP_CipherFinal_ex(sides[i].ctx, sides[i].out + sides[i].written, &outl[i]);
	check(ok[0] == ok[1], "return value of final");
	if (ok[0]) {
		check(outl[0] == outl[1], "length of final");
		check(memcmp(sides[0].out, sides[1].out, sides[0].written + (size_t)outl[0]) == 0, "whole output");
	}
	ERR_clear_error();
}

/* Runs both sides from `at` to the end, now and then on copies that must give the same. */
static void run_sides(struct side sides[2], const uint8_t *input, size_t at, size_t length, int in_place, int copies)
{
	while (at < length) {
		size_t n = piece(length - at);

		if (copies > 0 && below(4) == 0) {
			struct side twins[2];

			for (int i = 0; i < 2; i++) {
				side_init(&twins[i], EVP_CIPHER_CTX_new(), input, length, in_place);
				check(EVP_CIPHER_CTX_copy(twins[i].ctx, sides[i].ctx), "copy");
				memcpy(twins[i].out, sides[i].out, sides[i].written);
				twins[i].written = sides[i].written;
			}
			copies--;
			run_sides(twins, input, at, length, in_place, 0);
			side_free(&twins[0]);
			side_free(&twins[1]);
		}
		if (below(8) == 0)
			compare_ivs(&sides[0], &sides[1]);
		step(sides, at, n);
		at += n;
	}
	compare_ivs(&sides[0], &sides[1]);
	finish(sides);
}

/* Gives a context its cipher, key and IV; keylen 0: the key is as long as usual. */
static int init(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *c, const uint8_t *key, size_t keylen, const uint8_t *iv,
		int encrypt)
{
	if (keylen == 0)
		return EVP_CipherInit_ex(ctx, c, NULL, key, iv, encrypt);
	return EVP_CipherInit_ex(ctx, c, NULL, NULL, NULL, encrypt) &&
	       EVP_CIPHER_CTX_set_key_length(ctx, (int)keylen) && EVP_CipherInit_ex(ctx, NULL, NULL, key, iv, encrypt);
}

/* Input that a padded decryption accepts. */
static size_t encrypt_reference(const EVP_CIPHER *c, const uint8_t *key, size_t keylen, const uint8_t *iv,
				const uint8_t *in, size_t n, uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int a = 0, b = 0;

	check(init(ctx, c, key, keylen, iv, 1) && EVP_EncryptUpdate(ctx, out, &a, in, (int)n) &&
		      EVP_EncryptFinal_ex(ctx, out + a, &b),
	      "reference encryption");
	EVP_CIPHER_CTX_free(ctx);
	return (size_t)(a + b);
}

void cipher_case(enum algorithm_id id)
{
	EVP_CIPHER *ciphers[2] = {EVP_CIPHER_fetch(ours, algorithms[id].name, NULL),
				  EVP_CIPHER_fetch(reference, algorithms[id].name, NULL)};
	const int encrypt = (int)below(2), padding = below(3) != 0, in_place = (int)below(2), again = (int)below(4);
	uint8_t key[64], iv[16], *input = malloc(LENGTH_MAX + 2 * LAG), *cipher = malloc(LENGTH_MAX + 2 * LAG);
	char cts_mode[] = {'C', 'S', (char)('1' + below(3)), '\0'};
	const OSSL_PARAM variant[] = {OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, cts_mode, 0),
				      OSSL_PARAM_END};
	const struct algorithm *a = &algorithms[id];
	const size_t keylen = a->key_max == 0 ? 0 : a->key_min + below(a->key_max - a->key_min + 1);
	size_t length = random_length();
	struct side sides[2];

	check(ciphers[0] != NULL && ciphers[1] != NULL, "fetch");
	mode = algorithms[id].mode;
	support_fill(&state, key, sizeof(key));
	support_fill(&state, iv, sizeof(iv));
	support_fill(&state, input, length);
	if (!encrypt && padding && mode <= MODE_CBC && below(8) != 0) {
		length = encrypt_reference(ciphers[1], key, keylen, iv, input, length, cipher);
		memcpy(input, cipher, length);
	}
	for (int i = 0; i < 2; i++) {
		side_init(&sides[i], EVP_CIPHER_CTX_new(), input, length, in_place);
		check(init(sides[i].ctx, ciphers[i], key, keylen, iv, encrypt), "init");
		EVP_CIPHER_CTX_set_padding(sides[i].ctx, padding);
		if (mode == MODE_CTS)
			check(EVP_CIPHER_CTX_set_params(sides[i].ctx, variant), "variant of ciphertext stealing");
	}
	run_sides(sides, input, 0, length, in_place, 1);
	given[id] += length;
	/* From the start: with nothing given anew, or with the IV; a stream may also just go on after its final. */
	if (again > 0 && (again < 3 || EVP_CIPHER_get_block_size(ciphers[1]) == 1)) {
		for (int i = 0; i < 2; i++) {
			memcpy(sides[i].in, input, length);
			sides[i].written = 0;
			check(again == 3 || EVP_CipherInit_ex(sides[i].ctx, NULL, NULL, NULL, again == 2 ? iv : NULL,
							      encrypt),
			      "re-init");
		}
		run_sides(sides, input, 0, length, in_place, 0);
		given[id] += length;
	}
	for (int i = 0; i < 2; i++) {
		side_free(&sides[i]);
		EVP_CIPHER_free(ciphers[i]);
	}
	free(input);
	free(cipher);
}
