/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MACs: what can be fetched, what can be named, by whom it is then computed; parameters equal the default provider's at
 * every moment.
 */
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#include "../../afalg/hash.h"
#include "../../provider/software.h"

#define LARGE 50000u

static struct lib lib;

/* Whether the kernel may have messages: the tests run with two lanes and with software only. */
static bool two_lanes(void)
{
	return lib.provider->route.policy == POLICY_KERNEL;
}

/*** Names and properties ***/

static void test_fetch(void **state)
{
	static const char *const queries[] = {"?provider=afalgprov", "provider=afalgprov", "afalg.kernel=yes"};

	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (size_t q = 0; algorithms[id].kind == KIND_MAC && q < sizeof(queries) / sizeof(*queries); q++) {
			EVP_MAC *mac = EVP_MAC_fetch(lib.context, algorithms[id].offered, queries[q]);

			assert_non_null(mac);
			assert_string_equal(OSSL_PROVIDER_get0_name(EVP_MAC_get0_provider(mac)), "afalgprov");
			EVP_MAC_free(mac);
		}
	assert_int_equal(ERR_peek_error(), 0);
}

static void note_name(const char *name, void *trace)
{
	fprintf(((struct trace *)trace)->file, "name %s\n", name);
}

static void test_names(void **state)
{
	static const enum algorithm_id ids[] = {ALG_HMAC_MD5, ALG_CMAC_AES_128};
	static const char *const providers[] = {"default", "afalgprov"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct trace traces[2];

		for (int side = 0; side < 2; side++) {
			EVP_MAC *mac = mac_of(&lib, ids[i], providers[side]);

			trace_open(&traces[side]);
			EVP_MAC_names_do_all(mac, note_name, &traces[side]);
			fprintf(traces[side].file, "%s\n", EVP_MAC_get0_name(mac));
			trace_close(&traces[side]);
			EVP_MAC_free(mac);
		}
		trace_compare(&traces[0], &traces[1], "names of %s", algorithms[ids[i]].offered);
	}
}

/* The numbers of the rows are those of what they are made of. */
static void test_rows(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];

		if (a->kind != KIND_MAC)
			continue;
		assert_int_not_equal(algorithm_find(a->over, strlen(a->over)), -1);
		if (strcmp(a->offered, "HMAC") == 0) {
			EVP_MD *md = EVP_MD_fetch(lib.context, a->over, "provider=default");

			assert_int_equal(EVP_MD_get_size(md), a->size);
			assert_int_equal(EVP_MD_get_block_size(md), a->block);
			assert_true(a->block <= AFALG_HASH_KEY_MAX);
			EVP_MD_free(md);
		} else {
			EVP_CIPHER *cipher = EVP_CIPHER_fetch(lib.context, a->over, "provider=default");

			assert_int_equal(EVP_CIPHER_get_block_size(cipher), a->size);
			assert_int_equal(a->block, 0);
			EVP_CIPHER_free(cipher);
		}
	}
}

/*** Who computes it ***/

/* What a MAC is told, and its length and value over LARGE bytes; false where the provider refuses. */
static bool compute(const char *provider, const char *mac_name, const char *over, const char *properties, size_t keylen,
		    uint8_t out[EVP_MAX_MD_SIZE], size_t *outl)
{
	char query[64];
	OSSL_PARAM params[3], *p = params;
	EVP_MAC *mac;
	EVP_MAC_CTX *c;
	bool ok;

	snprintf(query, sizeof(query), "provider=%s", provider);
	mac = EVP_MAC_fetch(lib.context, mac_name, query);
	assert_non_null(mac);
	*p++ = OSSL_PARAM_construct_utf8_string(strcmp(mac_name, "HMAC") == 0 ? OSSL_MAC_PARAM_DIGEST
									      : OSSL_MAC_PARAM_CIPHER,
						(char *)(uintptr_t)over, 0);
	if (properties != NULL)
		*p++ = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_PROPERTIES, (char *)(uintptr_t)properties, 0);
	*p = OSSL_PARAM_construct_end();
	c = EVP_MAC_CTX_new(mac);
	ok = EVP_MAC_CTX_set_params(c, params) && EVP_MAC_init(c, pattern(), keylen, NULL);
	if (ok) {
		EVP_MAC_CTX *copy;

		assert_true(EVP_MAC_update(c, pattern(), LARGE - 1));
		copy = EVP_MAC_CTX_dup(c);
		EVP_MAC_CTX_free(c);
		c = copy;
		assert_non_null(c);
		assert_true(EVP_MAC_update(c, pattern() + LARGE - 1, 1));
		assert_true(EVP_MAC_final(c, out, outl, EVP_MAX_MD_SIZE));
	}
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
	return ok;
}

/* Both providers give the same. Returns how many bytes went to the kernel. */
static uint64_t compare(const char *mac, const char *over, const char *properties, size_t keylen)
{
	uint8_t out[2][EVP_MAX_MD_SIZE];
	size_t outl[2] = {0, 0};
	unsigned long errors[2];
	bool ok[2];
	uint64_t bytes;

	ok[1] = compute("default", mac, over, properties, keylen, out[1], &outl[1]);
	errors[1] = ERR_peek_last_error();
	ERR_clear_error();
	fake_reset();
	ok[0] = compute("afalgprov", mac, over, properties, keylen, out[0], &outl[0]);
	errors[0] = ERR_peek_last_error();
	ERR_clear_error();
	bytes = fake_bytes(FAKE_HASH_SEND);
	assert_int_equal(ok[0], ok[1]);
	assert_int_equal(errors[0], errors[1]);
	assert_int_equal(outl[0], outl[1]);
	assert_memory_equal(out[0], out[1], outl[0]);
	return bytes;
}

/* Every name of what a row is over leads to that row's kernel lane. */
static void test_aliases(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];
		const char *names;
		char name[80];

		if (a->kind != KIND_MAC)
			continue;
		names = software_names[algorithm_find(a->over, strlen(a->over))];
		for (size_t n; *names != '\0'; names += n + (names[n] == ':')) {
			n = strcspn(names, ":");
			for (int lower = 0; lower < 2; lower++) {
				snprintf(name, sizeof(name), "%.*s", (int)n, names);
				for (char *c = name; lower && *c != '\0'; c++)
					*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
				assert_int_equal(compare(a->offered, name, NULL, mac_key_length((enum algorithm_id)id)),
						 two_lanes() ? LARGE : 0);
			}
		}
	}
}

/* Digests and ciphers without a row, and names of none: as the default provider says. */
static void test_others(void **state)
{
	(void)state;
	assert_int_equal(compare("HMAC", "SHA2-512/256", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "SHA512-224", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "BLAKE2S-256", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "MD5-SHA1", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "SHAKE256", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "nonsense", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "", NULL, 32), 0);
	assert_int_equal(compare("HMAC", "AES-128-CBC", NULL, 16), 0);
	assert_int_equal(compare("CMAC", "ARIA-128-CBC", NULL, 16), 0);
	assert_int_equal(compare("CMAC", "AES-128-CTR", NULL, 16), 0);
	assert_int_equal(compare("CMAC", "SHA2-256", NULL, 16), 0);
}

/*
 * What a property query asks for. A wish does not matter. What only the application's providers can satisfy is theirs:
 * where our own digest is asked for, that does the work, as a digest.
 */
static void test_properties(void **state)
{
	const uint64_t ours = two_lanes() ? LARGE : 0;

	(void)state;
	assert_int_equal(compare("HMAC", "SHA256", "?provider=afalgprov", 32), ours);
	assert_int_equal(compare("HMAC", "SHA256", "?provider=nobody,?fips=yes", 32), ours);
	assert_int_equal(compare("HMAC", "SHA256", "provider=default", 32), ours);
	assert_int_equal(compare("HMAC", "SHA256", "fips=yes", 32), 0);
	assert_int_equal(compare("HMAC", "SHA256", "provider=nobody", 32), 0);
	assert_int_equal(compare("HMAC", "SHA256", "provider=no=thing", 32), 0);
	assert_in_range(compare("HMAC", "SHA256", "provider=afalgprov", 32), ours / 2, LARGE + 1000);
	assert_in_range(compare("HMAC", "SHA256", "provider!=default", 32), ours / 2, LARGE + 1000);
	compare("CMAC", "AES-256-CBC", "provider=afalgprov", 32);
	assert_int_equal(compare("CMAC", "AES-256-CBC", "?provider=afalgprov", 32), ours);
}

/* The legacy provider's, which the application has loaded and the software lane has not. */
static void test_legacy(void **state)
{
	OSSL_PROVIDER *legacy = OSSL_PROVIDER_load(lib.context, "legacy");

	(void)state;
	if (legacy == NULL) {
		print_message("there is no legacy provider\n");
		ERR_clear_error();
		skip();
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(compare("HMAC", "MD4", NULL, 300), 0);
		assert_int_equal(compare("HMAC", "WHIRLPOOL", NULL, 0), 0);
		assert_int_equal(compare("HMAC", "MD4", "provider=legacy", 3), 0);
		assert_int_equal(compare("HMAC", "MD4", "provider=default", 3), 0);
		assert_int_equal(compare("CMAC", "SEED-CBC", NULL, 16), 0);
		assert_int_equal(compare("CMAC", "DES-CBC", "provider=legacy", 8), 0);
	}
	OSSL_PROVIDER_unload(legacy);
}

/* HMAC of LARGE bytes by the default provider. */
static void reference(const char *digest, const uint8_t *key, uint8_t right[EVP_MAX_MD_SIZE])
{
	size_t outl;

	assert_non_null(EVP_Q_mac(lib.context, "HMAC", "provider=default", digest, NULL, key, 20, pattern(), LARGE,
				  right, EVP_MAX_MD_SIZE, &outl));
}

/* What only another provider has is named in the middle of a message, which goes on; it counts from the next key on. */
static void test_named_midway(void **state)
{
	char before[] = "SHA2-256", after[] = "SHA2-384", query[] = "provider=afalgprov";
	const OSSL_PARAM first[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, before, 0), OSSL_PARAM_END};
	const OSSL_PARAM then[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, after, 0),
				   OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_PROPERTIES, query, 0),
				   OSSL_PARAM_END};
	EVP_MAC *mac = mac_of(&lib, ALG_HMAC_SHA2_256, "afalgprov");
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);
	uint8_t out[EVP_MAX_MD_SIZE], right[2][EVP_MAX_MD_SIZE];
	size_t outl;

	(void)state;
	reference(before, pattern(), right[0]);
	reference(after, pattern() + 1, right[1]);
	for (int i = 0; i < 2; i++) {
		assert_true(EVP_MAC_init(c, pattern(), 20, first));
		assert_true(EVP_MAC_update(c, pattern(), LARGE - 100));
		assert_true(EVP_MAC_CTX_set_params(c, then));
		assert_true(EVP_MAC_update(c, pattern() + LARGE - 100, 100));
		assert_true(EVP_MAC_final(c, out, &outl, sizeof(out)));
		assert_int_equal(outl, 32);
		assert_memory_equal(out, right[0], 32);
		assert_true(EVP_MAC_init(c, pattern() + 1, 20, NULL));
		assert_true(EVP_MAC_update(c, pattern(), LARGE));
		assert_true(EVP_MAC_final(c, out, &outl, sizeof(out)));
		assert_int_equal(outl, 48);
		assert_memory_equal(out, right[1], 48);
	}
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
	assert_int_equal(ERR_peek_error(), 0);
}

/* Each library context has the digests of its own providers, whichever of them came first. */
static void test_two_contexts(void **state)
{
	const struct lib first = lib;
	struct lib second;
	OSSL_PROVIDER *legacy;

	(void)state;
	lib_open(&second, two_lanes() ? "policy = kernel\ncounters = off\n" : "policy = software\ncounters = off\n");
	legacy = OSSL_PROVIDER_load(second.context, "legacy");
	ERR_clear_error();
	for (int i = 0; i < 4; i++) {
		lib = i % 2 == 0 ? second : first;
		compare("HMAC", "MD4", NULL, 20);
		compare("HMAC", "SHA1", "provider=afalgprov", 20);
		compare("CMAC", "AES-128-CBC", "provider!=default", 16);
		assert_int_equal(compare("HMAC", "SHA1", NULL, 20), two_lanes() ? LARGE : 0);
	}
	if (legacy != NULL)
		OSSL_PROVIDER_unload(legacy);
	OSSL_PROVIDER_unload(second.ours);
	OSSL_LIB_CTX_free(second.context);
	compare("HMAC", "SHA1", "provider=afalgprov", 20);
}

/*** Keys of EVP_PKEY ***/

static EVP_PKEY *cmac_key(void)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(lib.context, "CMAC", NULL);
	EVP_PKEY *key = NULL;
	char cipher[] = "AES-256-CBC";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_CIPHER, cipher, 0),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, (void *)(uintptr_t)pattern(), 32),
		OSSL_PARAM_END};

	assert_true(EVP_PKEY_keygen_init(c) && EVP_PKEY_CTX_set_params(c, params) && EVP_PKEY_generate(c, &key));
	EVP_PKEY_CTX_free(c);
	return key;
}

/* Signs a large message, with a copy in the middle as TLS makes one of each record's MAC. */
static void sign(EVP_PKEY *key, const char *digest, const char *query, uint8_t out[EVP_MAX_MD_SIZE], size_t *outl)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();

	assert_true(EVP_DigestSignInit_ex(c, NULL, digest, lib.context, query, key, NULL));
	assert_true(EVP_DigestSignUpdate(c, pattern(), 13));
	assert_true(EVP_MD_CTX_copy_ex(copy, c));
	assert_true(EVP_DigestSignUpdate(copy, pattern() + 13, LARGE - 13));
	*outl = EVP_MAX_MD_SIZE;
	assert_true(EVP_DigestSignFinal(copy, out, outl));
	EVP_MD_CTX_free(c);
	EVP_MD_CTX_free(copy);
}

/* Through the default provider's key management the keys reach these MACs, and the kernel. */
static void test_pkey(void **state)
{
	EVP_PKEY *keys[] = {
		EVP_PKEY_new_raw_private_key_ex(lib.context, "HMAC", NULL, pattern(), 32),
		cmac_key(),
	};
	static const char *const digests[] = {"SHA256", NULL};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint8_t out[2][EVP_MAX_MD_SIZE];
		size_t outl[2];

		fake_reset();
		sign(keys[i], digests[i], "?provider=afalgprov", out[0], &outl[0]);
		assert_int_equal(fake_bytes(FAKE_HASH_SEND), two_lanes() ? LARGE : 0);
		sign(keys[i], digests[i], "provider=default", out[1], &outl[1]);
		assert_int_equal(outl[0], outl[1]);
		assert_memory_equal(out[0], out[1], outl[0]);
		EVP_PKEY_free(keys[i]);
	}
	assert_int_equal(ERR_peek_error(), 0);
}

/*** Parameters ***/

static void trace_final(struct trace *t, EVP_MAC_CTX *c)
{
	uint8_t out[EVP_MAX_MD_SIZE];
	size_t outl = 0;
	int ok = EVP_MAC_final(c, out, &outl, sizeof(out));

	trace_number(t, "final", ok);
	trace_bytes(t, "MAC", out, ok ? outl : 0);
}

/* Asks for every parameter by itself, and in a type that is not its own. */
static void trace_gettable(struct trace *t, EVP_MAC_CTX *c, const char *when)
{
	fprintf(t->file, "--- %s\n", when);
	for (const OSSL_PARAM *p = EVP_MAC_CTX_gettable_params(c); p != NULL && p->key != NULL; p++) {
		size_t number = 77;
		char text[16] = "";
		OSSL_PARAM params[2] = {*p, OSSL_PARAM_construct_end()};

		params[0].data = &number;
		params[0].data_size = sizeof(number);
		params[0].return_size = OSSL_PARAM_UNMODIFIED;
		trace_number(t, p->key, EVP_MAC_CTX_get_params(c, params));
		trace_number(t, "  value", (long long)number);
		trace_number(t, "  size", (long long)params[0].return_size);
		params[0] = OSSL_PARAM_construct_utf8_string(p->key, text, sizeof(text));
		trace_number(t, "  as text", EVP_MAC_CTX_get_params(c, params));
	}
	trace_number(t, "MAC size", (long long)EVP_MAC_CTX_get_mac_size(c));
	trace_number(t, "block size", (long long)EVP_MAC_CTX_get_block_size(c));
	trace_errors(t);
}

static void trace_settable(struct trace *t, const OSSL_PARAM *list)
{
	for (; list != NULL && list->key != NULL; list++)
		fprintf(t->file, "settable %s type %u\n", list->key, list->data_type);
}

/* Sets what changes nothing, what nobody knows, and what is of a wrong type. */
static void set_harmless(struct trace *t, EVP_MAC_CTX *c, enum algorithm_id id)
{
	char text[] = "1", none[] = "?provider=nobody";
	size_t zero = 0;
	int off = 0;
	const OSSL_PARAM over = mac_over(id), wrong = OSSL_PARAM_construct_size_t(over.key, &zero);
	const OSSL_PARAM sets[][2] = {
		{OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_TLS_DATA_SIZE, &zero), OSSL_PARAM_END},
		{OSSL_PARAM_construct_int(OSSL_MAC_PARAM_XOF, &off), OSSL_PARAM_END},
		{OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &zero), OSSL_PARAM_END},
		{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_PROPERTIES, none, 0), OSSL_PARAM_END},
		{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CUSTOM, text, 0), OSSL_PARAM_END},
		{OSSL_PARAM_construct_utf8_string("afalg.nothing", text, 0), OSSL_PARAM_END},
		{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_KEY, text, 0), OSSL_PARAM_END},
		{OSSL_PARAM_construct_utf8_string(OSSL_ALG_PARAM_ENGINE, text, 0), OSSL_PARAM_END},
		{wrong, OSSL_PARAM_END},
		{over, OSSL_PARAM_END},
		{OSSL_PARAM_END, OSSL_PARAM_END},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++) {
		trace_number(t, sets[i][0].key == NULL ? "nothing" : sets[i][0].key,
			     EVP_MAC_CTX_set_params(c, sets[i]));
		trace_errors(t);
	}
	trace_number(t, "null", EVP_MAC_CTX_set_params(c, NULL));
	trace_errors(t);
}

static void trace_mac(struct trace *t, enum algorithm_id id, const char *provider)
{
	const OSSL_PARAM params[] = {mac_over(id), OSSL_PARAM_END};
	EVP_MAC *mac = mac_of(&lib, id, provider);
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);

	trace_open(t);
	trace_settable(t, EVP_MAC_gettable_params(mac));
	trace_settable(t, EVP_MAC_gettable_ctx_params(mac));
	trace_settable(t, EVP_MAC_settable_ctx_params(mac));
	trace_gettable(t, c, "without anything");
	set_harmless(t, c, id);
	trace_number(t, "name", EVP_MAC_CTX_set_params(c, params));
	trace_gettable(t, c, "without a key");
	set_harmless(t, c, id);
	for (int i = 0; i < 3; i++) {
		trace_number(t, "init",
			     i == 2 ? EVP_MAC_init(c, NULL, 0, NULL)
				    : EVP_MAC_init(c, pattern(), mac_key_length(id), params));
		trace_gettable(t, c, "after the init");
		set_harmless(t, c, id);
		trace_number(t, "update", EVP_MAC_update(c, pattern(), 5));
		trace_gettable(t, c, "after an update");
		set_harmless(t, c, id);
		trace_number(t, "update", EVP_MAC_update(c, pattern(), i == 1 ? 7 : 65536));
		trace_gettable(t, c, "after a large update");
		set_harmless(t, c, id);
		trace_final(t, c);
		trace_gettable(t, c, "after the final");
		set_harmless(t, c, id);
	}
	trace_close(t);
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
}

static void test_params(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		struct trace theirs, ours;

		if (algorithms[id].kind != KIND_MAC)
			continue;
		trace_mac(&theirs, (enum algorithm_id)id, "default");
		trace_mac(&ours, (enum algorithm_id)id, "afalgprov");
		trace_compare(&theirs, &ours, "parameters of %s", algorithms[id].name);
	}
}

/* Flags that change how the default provider hashes leave the context in software. */
static void test_flags(void **state)
{
	static const char *const flags[] = {OSSL_MAC_PARAM_DIGEST_ONESHOT, OSSL_MAC_PARAM_DIGEST_NOINIT};
	static const char *const providers[] = {"default", "afalgprov"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct trace traces[2];

		for (int side = 0; side < 2; side++) {
			EVP_MAC *mac = mac_of(&lib, ALG_HMAC_SHA2_256, providers[side]);
			EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);
			int on = 1;
			const OSSL_PARAM params[] = {mac_over(ALG_HMAC_SHA2_256),
						     OSSL_PARAM_construct_int(flags[i], &on), OSSL_PARAM_END};

			fake_reset();
			trace_open(&traces[side]);
			trace_number(&traces[side], "init", EVP_MAC_init(c, pattern(), 32, params));
			trace_number(&traces[side], "update", EVP_MAC_update(c, pattern(), LARGE));
			trace_final(&traces[side], c);
			trace_errors(&traces[side]);
			trace_close(&traces[side]);
			assert_int_equal(fake_bytes(FAKE_HASH_SEND), 0);
			EVP_MAC_CTX_free(c);
			EVP_MAC_free(mac);
		}
		trace_compare(&traces[0], &traces[1], "flag %s", flags[i]);
	}
}

/*
 * An abandoned message is in the kernel, and another begins with what keeps it in software; then one that begins
 * without a key. Afterwards a flag in the midst of a message, which is for the next one.
 */
static void begin_anew(struct trace *t, const char *provider, const char *key, size_t keylen)
{
	static size_t size = 128;
	static int off = 0, on = 1;
	const OSSL_PARAM name[] = {mac_over(ALG_HMAC_SHA2_256), OSSL_PARAM_END};
	const OSSL_PARAM told[][2] = {
		{OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_TLS_DATA_SIZE, &size), OSSL_PARAM_END},
		{OSSL_PARAM_construct_int(OSSL_MAC_PARAM_DIGEST_NOINIT, &off), OSSL_PARAM_END},
		{OSSL_PARAM_construct_int(OSSL_MAC_PARAM_DIGEST_ONESHOT, &on), OSSL_PARAM_END},
	}; /* with digest-noinit on, OpenSSL's second message frees twice */
	EVP_MAC *mac = mac_of(&lib, ALG_HMAC_SHA2_256, provider);

	trace_open(t);
	for (size_t i = 0; i < 2 * sizeof(told) / sizeof(*told); i++) {
		const OSSL_PARAM *params = told[i / 2];
		EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);

		trace_number(t, params->key, EVP_MAC_init(c, pattern(), 32, name));
		trace_number(t, "abandoned", EVP_MAC_update(c, pattern(), LARGE));
		if (i % 2 == 0 || i < 2)
			trace_number(t, "anew", EVP_MAC_init(c, (const void *)key, keylen, params));
		else
			trace_number(t, "midway", EVP_MAC_CTX_set_params(c, params));
		trace_number(t, "data", EVP_MAC_update(c, pattern() + 1, 100));
		trace_final(t, c);
		fake_reset();
		trace_number(t, "again", EVP_MAC_init(c, NULL, 0, NULL));
		trace_number(t, "data", EVP_MAC_update(c, pattern(), i < 2 ? 100 : LARGE));
		trace_final(t, c);
		trace_errors(t);
		assert_int_equal(fake_calls(FAKE_HASH_SEND), 0);
		EVP_MAC_CTX_free(c);
	}
	trace_close(t);
	EVP_MAC_free(mac);
}

static void test_begin_anew(void **state)
{
	struct trace theirs, ours;

	(void)state;
	for (int keyed = 0; keyed < 2; keyed++) {
		begin_anew(&theirs, "default", keyed ? "another key" : NULL, keyed ? 11 : 0);
		begin_anew(&ours, "afalgprov", keyed ? "another key" : NULL, keyed ? 11 : 0);
		trace_compare(&theirs, &ours, "another message, with a key: %d", keyed);
	}
}

/*** TLS records of secret length ***/

/* As libssl checks a record: a copy of a MAC with a key is told the length, then gets header and padded data. */
static void tls_record(struct trace *t, const char *provider, size_t before, size_t data, size_t padded)
{
	const OSSL_PARAM name[] = {mac_over(ALG_HMAC_SHA2_256), OSSL_PARAM_END};
	const OSSL_PARAM size[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_TLS_DATA_SIZE, &padded), OSSL_PARAM_END};
	EVP_MAC *mac = mac_of(&lib, ALG_HMAC_SHA2_256, provider);
	EVP_MAC_CTX *master = EVP_MAC_CTX_new(mac), *c;

	trace_open(t);
	trace_number(t, "init", EVP_MAC_init(master, pattern(), 32, name));
	c = EVP_MAC_CTX_dup(master);
	if (before > 0)
		trace_number(t, "before", EVP_MAC_update(c, pattern(), before));
	trace_number(t, "size", EVP_MAC_CTX_set_params(c, size));
	trace_number(t, "header", EVP_MAC_update(c, pattern(), 13));
	trace_number(t, "data", EVP_MAC_update(c, pattern() + 13, data));
	trace_final(t, c);
	trace_errors(t);
	padded = 0; /* the next message is an ordinary one */
	trace_number(t, "no size", EVP_MAC_CTX_set_params(c, size));
	trace_number(t, "restart", EVP_MAC_init(c, NULL, 0, NULL));
	trace_number(t, "data", EVP_MAC_update(c, pattern() + 13, LARGE));
	trace_final(t, c);
	trace_close(t);
	EVP_MAC_CTX_free(c);
	EVP_MAC_CTX_free(master);
	EVP_MAC_free(mac);
}

static void test_tls_record(void **state)
{
	static const size_t lengths[][3] = {{0, 64, 128}, {0, 4000, 4096}, {0, 16000, 16384}, {5, 64, 128}};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct trace theirs, ours;

		tls_record(&theirs, "default", lengths[i][0], lengths[i][1], lengths[i][2]);
		fake_reset();
		tls_record(&ours, "afalgprov", lengths[i][0], lengths[i][1], lengths[i][2]);
		assert_int_equal(fake_bytes(FAKE_HASH_SEND), two_lanes() ? LARGE : 0);
		trace_compare(&theirs, &ours, "record of %zu in %zu", lengths[i][1], lengths[i][2]);
	}
}

/* Told when the kernel has the message already, it is refused: there is no way back. */
static void test_tls_too_late(void **state)
{
	const OSSL_PARAM name[] = {mac_over(ALG_HMAC_SHA2_256), OSSL_PARAM_END};
	size_t padded = 64;
	const OSSL_PARAM size[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_TLS_DATA_SIZE, &padded), OSSL_PARAM_END};
	uint8_t out[EVP_MAX_MD_SIZE], right[EVP_MAX_MD_SIZE];
	EVP_MAC_CTX *c;
	EVP_MAC *mac;
	size_t outl;

	(void)state;
	if (!two_lanes())
		skip();
	mac = mac_of(&lib, ALG_HMAC_SHA2_256, "afalgprov");
	c = EVP_MAC_CTX_new(mac);
	assert_true(EVP_MAC_init(c, pattern(), 32, name) && EVP_MAC_update(c, pattern(), LARGE));
	assert_false(EVP_MAC_CTX_set_params(c, size));
	assert_int_equal(ERR_GET_REASON(ERR_peek_error()), ERROR_PARAMETER);
	ERR_clear_error();
	assert_true(EVP_MAC_final(c, out, &outl, sizeof(out)));
	assert_non_null(EVP_Q_mac(lib.context, "HMAC", "provider=default", "SHA256", NULL, pattern(), 32, pattern(),
				  LARGE, right, sizeof(right), &outl));
	assert_memory_equal(out, right, 32);
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
}

static int setup_kernel(void **state)
{
	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	return 0;
}

static int setup_software(void **state)
{
	(void)state;
	lib_open(&lib, "policy = software\ncounters = off\n");
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
		cmocka_unit_test(test_fetch),        cmocka_unit_test(test_names),
		cmocka_unit_test(test_rows),         cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_others),       cmocka_unit_test(test_properties),
		cmocka_unit_test(test_legacy),       cmocka_unit_test(test_named_midway),
		cmocka_unit_test(test_two_contexts), cmocka_unit_test(test_pkey),
		cmocka_unit_test(test_params),       cmocka_unit_test(test_flags),
		cmocka_unit_test(test_tls_record),   cmocka_unit_test(test_tls_too_late),
		cmocka_unit_test(test_begin_anew),
	};

	return cmocka_run_group_tests_name("with two lanes", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("with software only", tests, setup_software, teardown);
}
