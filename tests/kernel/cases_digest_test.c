/* SPDX-License-Identifier: Apache-2.0 */
/* Digests: what users of kernel crypto ran into, for every digest that the module offers. */
#include "cases.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROWN 32640u
#define DIGESTS_MAX 32

static const char *names[DIGESTS_MAX];
static size_t count;

static const struct pieces large = {"4096", 1, {4096}, false};
static const struct pieces mixed = {"100+20000+0+64", 4, {100, 20000, 0, 64}, false};

static void list_digests(void)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		EVP_MD *md = NULL;

		if (algorithms[id].kind == KIND_HASH && row_chosen(id))
			md = EVP_MD_fetch(ours, algorithms[id].name, NULL);
		if (md != NULL && is_ours(EVP_MD_get0_provider(md)) && count < DIGESTS_MAX)
			names[count++] = algorithms[id].name;
		EVP_MD_free(md);
	}
	if (count == 0)
		errx(1, "the module offers no digest");
}

struct result {
	uint8_t md[EVP_MAX_MD_SIZE];
	unsigned len;
};

static void update_in_pieces(EVP_MD_CTX *ctx, const struct pieces *p, const uint8_t *in, size_t len)
{
	size_t at = 0;

	for (unsigned step = 0; at < len; step++) {
		const size_t n = piece(p, step, len - at);

		assert_true(EVP_DigestUpdate(ctx, n == 0 && step % 4 == 0 ? NULL : in + at, n));
		at += n;
	}
	if (p->ends_empty)
		assert_true(EVP_DigestUpdate(ctx, in, 0) && EVP_DigestUpdate(ctx, NULL, 0));
}

static struct result digest(OSSL_LIB_CTX *lib, const char *name, const struct pieces *p, const uint8_t *in, size_t len)
{
	EVP_MD *md = fetch_digest(lib, name);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	struct result r;

	memset(&r, 0, sizeof(r));
	assert_true(EVP_DigestInit_ex(ctx, md, NULL));
	update_in_pieces(ctx, p, in, len);
	assert_true(EVP_DigestFinal_ex(ctx, r.md, &r.len));
	EVP_MD_CTX_free(ctx);
	EVP_MD_free(md);
	return r;
}

static void check(const char *name, const struct pieces *p, const uint8_t *in, size_t len)
{
	const struct result got = digest(ours, name, p, in, len), expected = digest(reference, name, &whole, in, len);

	if (memcmp(&got, &expected, sizeof(got)) != 0)
		fail_msg("%s, %zu bytes, %s", name, len, p->name);
}

static struct share share_of(const char *name)
{
	EVP_MD *md = fetch_digest(ours, name);
	struct share s = share_begin(name, EVP_MD_get0_provider(md));

	EVP_MD_free(md);
	return s;
}

static void vectors_hold(void **unused)
{
	(void)unused;
	for (const struct vector *v = vectors; v < vectors + vector_count; v++) {
		struct vector_bytes in = vector_bytes(v->in);

		if (v->kind == VECTOR_DIGEST && vector_chosen(v)) {
			const struct share s = share_of(v->algorithm);
			struct result r = digest(ours, v->algorithm, &whole, in.data, in.len);

			assert_true(vector_equals(reference, v->out, r.md, r.len));
			r = digest(ours, v->algorithm, &large, in.data, in.len);
			assert_true(vector_equals(reference, v->out, r.md, r.len));
			share_end(&s, 2 * in.len);
		}
		free(in.data);
	}
}

/* C04, C05, D03: growing, odd, large and empty updates; the kernel does them all. */
static void any_pieces(void **unused)
{
	static const struct pieces *const all[] = {&whole, &chunks, &growing, &large, &mixed, &with_empty};

	(void)unused;
	for (size_t i = 0; i < count; i++) {
		const struct share s = share_of(names[i]);

		for (size_t p = 0; p < sizeof(all) / sizeof(*all); p++)
			check(names[i], all[p], pattern, GROWN);
		share_end(&s, sizeof(all) / sizeof(*all) * GROWN);
	}
}

/* C05, with the values themselves: nothing in the middle, at the end, and first. */
static void empty_first_and_last(void **unused)
{
	EVP_MD *sha = fetch_digest(ours, "SHA2-256");
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t md[32];

	(void)unused;
	assert_true(EVP_DigestInit_ex(ctx, sha, NULL) && EVP_DigestUpdate(ctx, pattern, 65536) &&
		    EVP_DigestUpdate(ctx, pattern, 0) && EVP_DigestFinal_ex(ctx, md, NULL));
	assert_true(vector_equals(reference, vector_find("V6 65536")->out, md, 32));
	assert_true(EVP_DigestInit_ex(ctx, sha, NULL) && EVP_DigestUpdate(ctx, NULL, 0) &&
		    EVP_DigestUpdate(ctx, pattern, 64) && EVP_DigestFinal_ex(ctx, md, NULL));
	assert_true(vector_equals(reference, vector_find("V5 64")->out, md, 32));
	EVP_MD_CTX_free(ctx);
	EVP_MD_free(sha);
}

/* Nothing, and what is around blocks, pages and pieces of 64 KiB. */
static void any_length(void **unused)
{
	static const size_t around[] = {64, 128, 136, 144, 4096, 16384, 65536};

	(void)unused;
	for (size_t i = 0; i < count; i++) {
		check(names[i], &whole, pattern, 0);
		check(names[i], &with_empty, pattern, 0);
		for (size_t a = 0; a < sizeof(around) / sizeof(*around); a++)
			for (size_t len = around[a] - 1; len <= around[a] + 1; len++)
				check(names[i], &whole, pattern, len);
	}
}

/* D07. */
static void any_alignment(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < count; i++)
		for (size_t offset = 0; offset < 8; offset++)
			check(names[i], offset < 4 ? &whole : &chunks, pattern + offset % 4, 22528);
}

/* B02: a context without digest, without data, and with data on its way is copied; the copy begins or goes on. */
static void copies(void **unused)
{
	static const size_t heads[] = {0, 3, 1000, 20000};

	(void)unused;
	for (size_t i = 0; i < count; i++) {
		EVP_MD *md = fetch_digest(ours, names[i]);
		const struct result expected = digest(reference, names[i], &whole, pattern, GROWN);

		for (size_t h = 0; h < sizeof(heads) / sizeof(*heads); h++) {
			EVP_MD_CTX *ctx[3] = {EVP_MD_CTX_new(), EVP_MD_CTX_new(), EVP_MD_CTX_new()};
			const size_t head = heads[h];

			assert_true(EVP_MD_CTX_copy_ex(ctx[1], ctx[0])); /* neither has a digest */
			assert_true(EVP_DigestInit_ex(ctx[0], md, NULL) &&
				    (head == 0 || EVP_DigestUpdate(ctx[0], pattern, head)));
			assert_true(EVP_MD_CTX_copy_ex(ctx[1], ctx[0]));
			assert_true(EVP_DigestInit_ex(ctx[2], md, NULL) && EVP_DigestUpdate(ctx[2], pattern, 30000));
			assert_true(EVP_MD_CTX_copy_ex(ctx[2], ctx[0])); /* over a message on its way */
			for (int c = 2; c >= 0; c--) {
				struct result r;

				memset(&r, 0, sizeof(r));
				assert_true(EVP_DigestUpdate(ctx[c], pattern + head, GROWN - head) &&
					    EVP_DigestFinal_ex(ctx[c], r.md, &r.len));
				assert_memory_equal(&r, &expected, sizeof(r));
				EVP_MD_CTX_free(ctx[c]);
			}
		}
		EVP_MD_free(md);
	}
}

/* B02, with the value itself. */
static void copy_of_nothing(void **unused)
{
	EVP_MD *sha = fetch_digest(ours, "SHA2-256");
	EVP_MD_CTX *a = EVP_MD_CTX_new(), *b = EVP_MD_CTX_new();
	uint8_t md[32];

	(void)unused;
	assert_int_equal(EVP_MD_CTX_copy_ex(b, a), 1);
	assert_true(EVP_DigestInit_ex(a, sha, NULL));
	assert_int_equal(EVP_MD_CTX_copy_ex(b, a), 1);
	assert_true(EVP_DigestUpdate(b, "abc", 3) && EVP_DigestFinal_ex(b, md, NULL));
	assert_true(vector_equals(reference, vector_find("V3")->out, md, 32));
	EVP_MD_CTX_free(a);
	EVP_MD_CTX_free(b);
	EVP_MD_free(sha);
}

/* A context is used again after its final, after an abandoned message, and for another digest. */
static void reuse(void **unused)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	(void)unused;
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < count; i++) {
			EVP_MD *md = fetch_digest(ours, names[i]);
			const struct result expected = digest(reference, names[i], &whole, pattern, GROWN);
			struct result r;

			memset(&r, 0, sizeof(r));
			if (round == 1) /* abandoned */
				assert_true(EVP_DigestInit_ex(ctx, md, NULL) && EVP_DigestUpdate(ctx, pattern, 5000));
			assert_true(EVP_DigestInit_ex(ctx, md, NULL) && EVP_DigestUpdate(ctx, pattern, GROWN) &&
				    EVP_DigestFinal_ex(ctx, r.md, &r.len));
			assert_memory_equal(&r, &expected, sizeof(r));
			if (round == 2) { /* the same digest again, named no more */
				assert_true(EVP_DigestInit_ex(ctx, NULL, NULL) &&
					    EVP_DigestUpdate(ctx, pattern, GROWN) &&
					    EVP_DigestFinal_ex(ctx, r.md, &r.len));
				assert_memory_equal(&r, &expected, sizeof(r));
			}
			EVP_MD_free(md);
		}
	}
	EVP_MD_CTX_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(vectors_hold),  CASE(any_pieces), CASE(empty_first_and_last), CASE(any_length),
		CASE(any_alignment), CASE(copies),     CASE(copy_of_nothing),      CASE(reuse),
	};

	cases_begin(argc, argv);
	list_digests();
	return cases_end(cmocka_run_group_tests(tests, NULL, NULL), KIND_HASH);
}
