/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential [CASES [SEED [TRANSPORT]]]: random cases, done by the module with policy=kernel and by the default one,
 * step by step: every return value, length and output byte, the IVs on the way, copies that go on by themselves. At the
 * end the counters must show that the kernel did the bulk of every algorithm that it serves.
 */
#include <err.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/algorithms.h"
#include "support.h"

#define LENGTH_MAX 200000u
#define LAG 32u /* room by which an in-place output lags behind its input */

static uint64_t given[ALGORITHM_COUNT]; /* bytes, by algorithm */

static OSSL_LIB_CTX *ours, *reference;
static uint64_t seed, state;
static unsigned long current;
static int whole_messages; /* the mode of the case takes each update for a message (XTS) */

static void fail(const char *what)
{
	ERR_print_errors_fp(stderr);
	errx(1, "case %lu of seed %llu: %s", current, (unsigned long long)seed, what);
}

static void check(int good, const char *what)
{
	if (!good)
		fail(what);
}

static size_t below(size_t limit)
{
	return support_below(&state, limit);
}

/* Half of the lengths are spread evenly, half gather at the small ones. */
static size_t random_length(void)
{
	size_t limit = LENGTH_MAX + 1;

	if (below(2) == 0)
		limit = (size_t)1 << (1 + below(17));
	return below(limit);
}

/* A piece of what is left: all of it, a small bit, or anything between. */
static size_t random_piece(size_t left)
{
	if (whole_messages) /* each piece is a message: most of a length that may be one */
		return left < 48 || below(20) == 0 ? left : 16 + below(left - 32);
	switch (below(3)) {
	case 0:
		return left;
	case 1:
		return below(left < 100 ? left + 1 : 100);
	default:
		return below(left + 1);
	}
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
		size_t n = random_piece(length - at);

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

/* Input that a padded decryption accepts. */
static size_t encrypt_reference(const EVP_CIPHER *c, const uint8_t *key, const uint8_t *iv, const uint8_t *in, size_t n,
				uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int a = 0, b = 0;

	check(EVP_EncryptInit_ex(ctx, c, NULL, key, iv) && EVP_EncryptUpdate(ctx, out, &a, in, (int)n) &&
		      EVP_EncryptFinal_ex(ctx, out + a, &b),
	      "reference encryption");
	EVP_CIPHER_CTX_free(ctx);
	return (size_t)(a + b);
}

static void cipher_case(enum algorithm_id id)
{
	EVP_CIPHER *ciphers[2] = {EVP_CIPHER_fetch(ours, algorithms[id].name, NULL),
				  EVP_CIPHER_fetch(reference, algorithms[id].name, NULL)};
	const int encrypt = (int)below(2), padding = below(3) != 0, in_place = (int)below(2), again = (int)below(4);
	uint8_t key[64], iv[16], *input = malloc(LENGTH_MAX + 2 * LAG), *cipher = malloc(LENGTH_MAX + 2 * LAG);
	size_t length = random_length();
	struct side sides[2];

	check(ciphers[0] != NULL && ciphers[1] != NULL, "fetch");
	whole_messages = algorithms[id].mode == MODE_XTS;
	support_fill(&state, key, sizeof(key));
	support_fill(&state, iv, sizeof(iv));
	support_fill(&state, input, length);
	if (!encrypt && padding && algorithms[id].mode <= MODE_CBC && below(8) != 0) {
		length = encrypt_reference(ciphers[1], key, iv, input, length, cipher);
		memcpy(input, cipher, length);
	}
	for (int i = 0; i < 2; i++) {
		side_init(&sides[i], EVP_CIPHER_CTX_new(), input, length, in_place);
		check(EVP_CipherInit_ex(sides[i].ctx, ciphers[i], NULL, key, iv, encrypt), "init");
		EVP_CIPHER_CTX_set_padding(sides[i].ctx, padding);
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

static void digest_finish(EVP_MD_CTX *const ctx[2])
{
	uint8_t md[2][EVP_MAX_MD_SIZE];
	unsigned len[2] = {0, 0};

	check(EVP_DigestFinal_ex(ctx[0], md[0], &len[0]) && EVP_DigestFinal_ex(ctx[1], md[1], &len[1]), "digest final");
	check(len[0] == len[1] && memcmp(md[0], md[1], len[0]) == 0, "digest");
}

static void digest_run(EVP_MD_CTX *const ctx[2], const uint8_t *input, size_t length, int copies)
{
	while (length > 0) {
		size_t n = random_piece(length);

		if (copies > 0 && below(4) == 0) {
			EVP_MD_CTX *twins[2] = {EVP_MD_CTX_new(), EVP_MD_CTX_new()};

			copies--;
			for (int i = 0; i < 2; i++)
				check(EVP_MD_CTX_copy_ex(twins[i], ctx[i]), "digest copy");
			digest_run(twins, input, length, 0);
			EVP_MD_CTX_free(twins[0]);
			EVP_MD_CTX_free(twins[1]);
		}
		for (int i = 0; i < 2; i++)
			check(EVP_DigestUpdate(ctx[i], input, n), "digest update");
		input += n;
		length -= n;
	}
	digest_finish(ctx);
}

static void digest_case(enum algorithm_id id)
{
	EVP_MD *mds[2] = {EVP_MD_fetch(ours, algorithms[id].name, NULL),
			  EVP_MD_fetch(reference, algorithms[id].name, NULL)};
	EVP_MD_CTX *ctx[2] = {EVP_MD_CTX_new(), EVP_MD_CTX_new()};
	const size_t length = random_length(), abandoned = below(3) == 0 ? random_length() : 0;
	uint8_t *input = malloc(LENGTH_MAX + 8);

	check(mds[0] != NULL && mds[1] != NULL, "fetch");
	whole_messages = 0;
	support_fill(&state, input, LENGTH_MAX);
	for (int i = 0; i < 2; i++) {
		check(EVP_DigestInit_ex(ctx[i], mds[i], NULL), "digest init");
		if (abandoned > 0) /* a message that is never finished */
			check(EVP_DigestUpdate(ctx[i], input, abandoned) && EVP_DigestInit_ex(ctx[i], mds[i], NULL),
			      "digest re-init");
	}
	digest_run(ctx, input, length, 1);
	given[id] += length;
	for (int i = 0; i < 2; i++) {
		EVP_MD_CTX_free(ctx[i]);
		EVP_MD_free(mds[i]);
	}
	free(input);
}

/*
 * The kernel must have done nearly all: what it leaves is heads and tails of a few bytes, and empty messages; and
 * messages of XTS above 64 KiB, which do not fit into a request.
 */
static int report(void)
{
	int bad = 0;

	printf("%-12s %12s %12s %10s %10s %6s\n", "algorithm", "given", "kernel", "requests", "software", "failed");
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];
		const struct support_counts c = support_count(a->name);
		const int served = support_kernel_serves(algorithm_type(a->kind), a->kernel);
		const int good = !served || (c.kernel_bytes > given[id] / 100 * (a->mode == MODE_XTS ? 20 : 95) &&
					     c.errors + c.fallbacks == 0);

		printf("%-12s %12llu %12llu %10llu %10llu %6llu%s\n", a->name, (unsigned long long)given[id],
		       (unsigned long long)c.kernel_bytes, (unsigned long long)c.kernel_requests,
		       (unsigned long long)c.software_bytes, (unsigned long long)(c.errors + c.fallbacks),
		       served ? (good ? "" : "  NOT THE KERNEL'S WORK") : "  (not served by this kernel)");
		bad += !good;
	}
	return bad;
}

int main(int argc, char **argv)
{
	const unsigned long cases = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
	char settings[128];
	int bad;

	seed = state = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261130;
	support_init();
	snprintf(settings, sizeof(settings), "policy = kernel\ntransport = %s", argc > 3 ? argv[3] : "auto");
	ours = support_load(settings);
	reference = support_reference();
	for (current = 0; current < cases; current++) {
		const enum algorithm_id id = (enum algorithm_id)below(ALGORITHM_COUNT);

		if (algorithms[id].kind == KIND_HASH)
			digest_case(id);
		else
			cipher_case(id);
		check(ERR_peek_error() == 0, "an error was left in the queue");
	}
	printf("%lu cases of seed %llu equal the default provider\n", cases, (unsigned long long)seed);
	bad = report();
	OSSL_LIB_CTX_free(ours);
	OSSL_LIB_CTX_free(reference);
	return bad > 0;
}
