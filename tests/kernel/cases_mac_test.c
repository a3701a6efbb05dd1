/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC over every digest and CMAC over every cipher, and what OpenSSL makes of them: key derivation, signing keys. */
#include "cases.h"

#include <err.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GROWN 32640u
#define MACS_MAX 48

struct mac {
	const char *name, *below;
	size_t keylen; /* a usual one */
};
static struct mac macs[MACS_MAX];
static size_t count;

static const struct pieces sixteen = {"16", 1, {16}, false};
static const struct pieces mixed = {"100+20000+0+64", 4, {100, 20000, 0, 64}, false};

static void add(const char *name, const char *below, size_t keylen)
{
	if (count == MACS_MAX)
		errx(1, "more than %d MACs", MACS_MAX);
	macs[count++] = (struct mac){name, below, keylen};
}

static void list_macs(void)
{
	/* The last has no row of its own anywhere: the default provider makes it of a cipher that may be the module's.
	 */
	static const struct mac block_ciphers[] = {
		{"CMAC", "AES-128-CBC", 16},      {"CMAC", "DES-EDE3-CBC", 24},     {"CMAC", "AES-192-CBC", 24},
		{"CMAC", "AES-256-CBC", 32},      {"CMAC", "CAMELLIA-128-CBC", 16}, {"CMAC", "CAMELLIA-192-CBC", 24},
		{"CMAC", "CAMELLIA-256-CBC", 32}, {"CMAC", "ARIA-128-CBC", 16},
	};
	const size_t ciphers = few ? 2 : sizeof(block_ciphers) / sizeof(*block_ciphers);

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		EVP_MD *md = NULL;

		if (algorithms[id].kind == KIND_HASH && row_chosen(id))
			md = EVP_MD_fetch(reference, algorithms[id].name, NULL);
		if (md != NULL)
			add("HMAC", algorithms[id].name, 32);
		EVP_MD_free(md);
	}
	for (size_t i = 0; i < ciphers; i++)
		add(block_ciphers[i].name, block_ciphers[i].below, block_ciphers[i].keylen);
}

/* Where several rows serve one MAC, the one over this digest or cipher. */
static const char *row_name(const char *mac, const char *below)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (algorithms[id].kind == KIND_MAC && strcasecmp(algorithm_offered((enum algorithm_id)id), mac) == 0 &&
		    strcasecmp(algorithms[id].over, below) == 0)
			return algorithms[id].name;
	return "";
}

static struct share share_of(const char *mac, const char *below)
{
	EVP_MAC *m = EVP_MAC_fetch(ours, mac, NULL);
	struct share s;

	assert_non_null(m);
	s = share_begin(row_name(mac, below), EVP_MAC_get0_provider(m));
	EVP_MAC_free(m);
	return s;
}

static EVP_MAC_CTX *new_mac(OSSL_LIB_CTX *lib, const char *name)
{
	EVP_MAC *m = EVP_MAC_fetch(lib, name, NULL);
	EVP_MAC_CTX *ctx = m != NULL ? EVP_MAC_CTX_new(m) : NULL;

	if (ctx == NULL)
		errx(1, "no %s", name);
	EVP_MAC_free(m);
	return ctx;
}

static int start(EVP_MAC_CTX *ctx, const struct mac *m, const uint8_t *key, size_t keylen)
{
	const char *what = strcmp(m->name, "HMAC") == 0 ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(what, (char *)(uintptr_t)m->below, 0), OSSL_PARAM_END};

	return EVP_MAC_init(ctx, key, keylen, params);
}

struct result {
	int ok;
	size_t len;
	uint8_t mac[EVP_MAX_MD_SIZE];
};

static struct result finish(EVP_MAC_CTX *ctx, const struct pieces *p, const uint8_t *in, size_t len)
{
	struct result r;
	size_t at = 0;
	int ok = 1;

	memset(&r, 0, sizeof(r));
	for (unsigned step = 0; at < len; step++) {
		const size_t n = piece(p, step, len - at);

		ok = ok && EVP_MAC_update(ctx, n == 0 && step % 4 == 0 ? NULL : in + at, n);
		at += n;
	}
	if (p->ends_empty)
		ok = ok && EVP_MAC_update(ctx, in, 0) && EVP_MAC_update(ctx, NULL, 0);
	r.ok = ok && EVP_MAC_final(ctx, r.mac, &r.len, sizeof(r.mac));
	return r;
}

static struct result run(OSSL_LIB_CTX *lib, const struct mac *m, const uint8_t *key, const struct pieces *p,
			 const uint8_t *in, size_t len)
{
	EVP_MAC_CTX *ctx = new_mac(lib, m->name);
	struct result r;

	memset(&r, 0, sizeof(r));
	if (start(ctx, m, key, m->keylen))
		r = finish(ctx, p, in, len);
	EVP_MAC_CTX_free(ctx);
	return r;
}

static struct result expect(const struct mac *m, const uint8_t *key, size_t len)
{
	const struct result r = run(reference, m, key, &whole, pattern, len);

	if (!r.ok)
		fail_msg("the reference has no %s over %s", m->name, m->below);
	return r;
}

static void check(const struct mac *m, const struct pieces *p, const uint8_t *in, size_t len)
{
	const struct result got = run(ours, m, key_a, p, in, len), expected = run(reference, m, key_a, &whole, in, len);

	if (!expected.ok || memcmp(&got, &expected, sizeof(got)) != 0)
		fail_msg("%s over %s, %zu bytes, %s", m->name, m->below, len, p->name);
}

static void vectors_hold(void **unused)
{
	(void)unused;
	for (const struct vector *v = vectors; v < vectors + vector_count; v++) {
		struct vector_bytes key = vector_bytes(v->key), in = vector_bytes(v->in);
		const struct mac m = {v->algorithm, v->of, key.len};

		if (v->kind == VECTOR_MAC) {
			const struct share s = share_of(m.name, m.below);
			struct result r = run(ours, &m, key.data, &whole, in.data, in.len);

			if (!r.ok || !vector_equals(reference, v->out, r.mac, r.len))
				fail_msg("%s", v->id);
			r = run(ours, &m, key.data, &with_empty, in.data, in.len);
			if (!r.ok || !vector_equals(reference, v->out, r.mac, r.len))
				fail_msg("%s, with empty updates", v->id);
			share_end(&s, 0);
		}
		free(key.data);
		free(in.data);
	}
}

/* C04: growing, odd, tiny and empty updates; the kernel does them all. */
static void any_pieces(void **unused)
{
	static const struct pieces *const all[] = {&whole, &chunks, &growing, &sixteen, &mixed, &with_empty};

	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++) {
		const struct share s = share_of(m->name, m->below);

		for (size_t p = 0; p < sizeof(all) / sizeof(*all); p++)
			check(m, all[p], pattern, GROWN);
		share_end(&s, sizeof(all) / sizeof(*all) * GROWN);
	}
}

/* Nothing, and what is around blocks, pages and pieces of 64 KiB. */
static void any_length(void **unused)
{
	static const size_t around[] = {8, 16, 64, 128, 16384, 65536};

	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++) {
		check(m, &whole, pattern, 0);
		check(m, &with_empty, pattern, 0);
		for (size_t a = 0; a < sizeof(around) / sizeof(*around); a++)
			for (size_t len = around[a] - 1; len <= around[a] + 1; len++)
				check(m, &whole, pattern, len);
	}
}

/* D07. */
static void any_alignment(void **unused)
{
	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++)
		for (size_t offset = 0; offset < 4; offset++)
			check(m, &whole, pattern + offset, 22528);
}

/* C07, D09: keys of no byte, of what is around a block, and beyond what a socket option may carry. */
static void any_key_length(void **unused)
{
	static const size_t lengths[] = {0,   1,   13,  14,  63,  64,  65,  71,   72,    73,    127,   128,   129,
					 131, 135, 136, 137, 143, 144, 145, 4096, 20480, 25000, 65536, 140000};

	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const struct mac keyed = {m->name, m->below, lengths[i]};
			const struct result got = run(ours, &keyed, pattern, &whole, pattern, 5000),
					    expected = run(reference, &keyed, pattern, &whole, pattern, 5000);

			if (memcmp(&got, &expected, sizeof(got)) != 0)
				fail_msg("%s over %s, a key of %zu bytes", m->name, m->below, lengths[i]);
			if (strcmp(m->name, "HMAC") == 0)
				assert_true(got.ok);
		}
	}
	ERR_clear_error();
}

/* A context begins anew with its key, in the midst of a message too; then with another; then is used for nothing. */
static void restart(void **unused)
{
	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++) {
		const struct result a = expect(m, key_a, GROWN), b = expect(m, key_b, GROWN);
		EVP_MAC_CTX *ctx = new_mac(ours, m->name);
		struct result r;

		assert_true(start(ctx, m, key_a, m->keylen));
		r = finish(ctx, &whole, pattern, GROWN);
		assert_memory_equal(&r, &a, sizeof(r));
		assert_true(EVP_MAC_init(ctx, NULL, 0, NULL) && EVP_MAC_update(ctx, pattern, 20000));
		assert_true(EVP_MAC_init(ctx, NULL, 0, NULL));
		r = finish(ctx, &chunks, pattern, GROWN);
		assert_memory_equal(&r, &a, sizeof(r));
		assert_true(EVP_MAC_init(ctx, key_b, m->keylen, NULL));
		r = finish(ctx, &whole, pattern, GROWN);
		assert_memory_equal(&r, &b, sizeof(r));
		assert_true(EVP_MAC_init(ctx, key_a, m->keylen, NULL));
		EVP_MAC_CTX_free(ctx);
	}
}

/* B02: copied before its key, before its data, and in the midst of them. */
static void copies(void **unused)
{
	static const size_t heads[] = {0, 3, 1000, 20000};

	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++) {
		const struct result expected = expect(m, key_a, GROWN);
		EVP_MAC_CTX *empty[2] = {new_mac(ours, m->name), new_mac(reference, m->name)};
		EVP_MAC_CTX *fresh[2] = {EVP_MAC_CTX_dup(empty[0]), EVP_MAC_CTX_dup(empty[1])};
		struct result r;

		assert_int_equal(fresh[0] != NULL, fresh[1] != NULL);
		if (fresh[0] != NULL) {
			assert_true(start(fresh[0], m, key_a, m->keylen));
			r = finish(fresh[0], &whole, pattern, GROWN);
			assert_memory_equal(&r, &expected, sizeof(r));
		}
		for (size_t h = 0; h < sizeof(heads) / sizeof(*heads); h++) {
			const size_t head = heads[h];
			EVP_MAC_CTX *ctx[2] = {new_mac(ours, m->name), NULL};

			assert_true(start(ctx[0], m, key_a, m->keylen) &&
				    (head == 0 || EVP_MAC_update(ctx[0], pattern, head)));
			ctx[1] = EVP_MAC_CTX_dup(ctx[0]);
			assert_non_null(ctx[1]);
			for (int c = 1; c >= 0; c--) {
				r = finish(ctx[c], &whole, pattern + head, GROWN - head);
				assert_memory_equal(&r, &expected, sizeof(r));
				EVP_MAC_CTX_free(ctx[c]);
			}
		}
		for (unsigned i = 0; i < 2; i++) {
			EVP_MAC_CTX_free(empty[i]);
			EVP_MAC_CTX_free(fresh[i]);
		}
	}
}

/* B10: a key set in the original is not the copy's, nor the other way round. */
static void rekey_beside_copy(void **unused)
{
	static const size_t heads[] = {0, 20000};

	(void)unused;
	for (const struct mac *m = macs; m < macs + count; m++) {
		const struct result with_a = expect(m, key_a, GROWN), with_b = expect(m, key_b, GROWN);

		for (unsigned i = 0; i < 4; i++) {
			const size_t head = heads[i / 2];
			EVP_MAC_CTX *first = new_mac(ours, m->name), *copy, *rekeyed, *kept;
			struct result r;

			assert_true(start(first, m, key_a, m->keylen) &&
				    (head == 0 || EVP_MAC_update(first, pattern, head)));
			copy = EVP_MAC_CTX_dup(first);
			assert_non_null(copy);
			rekeyed = i % 2 ? copy : first;
			kept = i % 2 ? first : copy;
			assert_true(EVP_MAC_init(rekeyed, key_b, m->keylen, NULL));
			r = finish(kept, &whole, pattern + head, GROWN - head);
			assert_memory_equal(&r, &with_a, sizeof(r));
			r = finish(rekeyed, &whole, pattern, GROWN);
			assert_memory_equal(&r, &with_b, sizeof(r));
			EVP_MAC_CTX_free(first);
			EVP_MAC_CTX_free(copy);
		}
	}
}

/* C07: what HKDF makes of a salt that is not there, empty, or long. */
static int hkdf(OSSL_LIB_CTX *lib, const char *digest, const uint8_t *salt, size_t saltlen, uint8_t *out, size_t outlen)
{
	EVP_KDF *kdf = EVP_KDF_fetch(lib, "HKDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	static uint8_t key[22];
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)(uintptr_t)digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key, sizeof(key)),
		OSSL_PARAM_END,
		OSSL_PARAM_END,
	};
	int ok;

	memset(key, 0x0b, sizeof(key));
	if (salt != NULL)
		params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)salt, saltlen);
	ok = EVP_KDF_derive(ctx, out, outlen, params);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok;
}

static void key_derivation(void **unused)
{
	/* RFC 5869, A.3: no salt, no info. */
	static const char expected[] =
		"8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8";
	static const struct {
		const uint8_t *salt;
		size_t len;
	} salts[] = {{NULL, 0}, {pattern, 0}, {pattern, 13}, {pattern, 20000}};
	uint8_t got[64], wanted[64];

	(void)unused;
	assert_true(hkdf(ours, "SHA2-256", NULL, 0, got, 42) && vector_equals(reference, expected, got, 42));
	assert_true(hkdf(ours, "SHA2-256", pattern, 0, got, 42) && vector_equals(reference, expected, got, 42));
	for (const struct mac *m = macs; m < macs + count && strcmp(m->name, "HMAC") == 0; m++) {
		for (size_t i = 0; i < sizeof(salts) / sizeof(*salts); i++) {
			const int ok = hkdf(reference, m->below, salts[i].salt, salts[i].len, wanted, sizeof(wanted));

			assert_true(ok);
			assert_int_equal(hkdf(ours, m->below, salts[i].salt, salts[i].len, got, sizeof(got)), ok);
			assert_memory_equal(got, wanted, sizeof(got));
		}
	}
}

/* Signing with a key of the default provider's reaches the same HMAC. */
static void signing_key(void **unused)
{
	const struct share s = share_of("HMAC", "SHA2-256");
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key_ex(ours, "HMAC", NULL, key_a, 32);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const struct mac m = {"HMAC", "SHA2-256", 32};
	const struct result expected = expect(&m, key_a, GROWN);
	uint8_t mac[32];
	size_t len = sizeof(mac);

	(void)unused;
	assert_non_null(key);
	assert_true(EVP_DigestSignInit_ex(ctx, NULL, "SHA2-256", ours, NULL, key, NULL) &&
		    EVP_DigestSignUpdate(ctx, pattern, GROWN) && EVP_DigestSignFinal(ctx, mac, &len));
	assert_int_equal(len, sizeof(mac));
	assert_memory_equal(mac, expected.mac, sizeof(mac));
	share_end(&s, GROWN);
	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
}

/* GMAC takes its cipher from the application's context: hence from the module. */
static void gmac(void **unused)
{
	struct vector_bytes key = vector_bytes("77be63708971c4e240d1cb79e8d77feb"),
			    iv = vector_bytes("e0e00f19fed7ba0136a797f3"),
			    in = vector_bytes("7a43ec1d9c0a5a78a0b16533a6213cab");
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, (char *)(uintptr_t) "AES-128-GCM", 0),
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_IV, iv.data, iv.len), OSSL_PARAM_END};
	OSSL_LIB_CTX *const libs[] = {ours, reference};
	struct result r[2];

	(void)unused;
	for (unsigned i = 0; i < 2; i++) {
		EVP_MAC_CTX *ctx = new_mac(libs[i], "GMAC");

		assert_true(EVP_MAC_init(ctx, key.data, key.len, params));
		r[i] = finish(ctx, &whole, in.data, in.len);
		assert_true(vector_equals(reference, "209fcc8d3675ed938e9c7166709dd946", r[i].mac, r[i].len));
		EVP_MAC_CTX_free(ctx);
		ctx = new_mac(libs[i], "GMAC");
		assert_true(EVP_MAC_init(ctx, key.data, key.len, params));
		r[i] = finish(ctx, &growing, pattern, GROWN);
		EVP_MAC_CTX_free(ctx);
	}
	assert_true(r[0].ok);
	assert_memory_equal(&r[0], &r[1], sizeof(r[0]));
	free(key.data);
	free(iv.data);
	free(in.data);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(vectors_hold),   CASE(any_pieces),  CASE(any_length), CASE(any_alignment),
		CASE(any_key_length), CASE(restart),     CASE(copies),     CASE(rekey_beside_copy),
		CASE(key_derivation), CASE(signing_key), CASE(gmac),
	};

	cases_begin(argc, argv);
	list_macs();
	return cases_end(cmocka_run_group_tests(tests, NULL, NULL), KIND_MAC);
}
