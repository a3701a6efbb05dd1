/* SPDX-License-Identifier: Apache-2.0 */
/* What can be fetched and under which names; parameters equal the default provider's at every moment. */
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

static struct lib lib;
static const char *const queries[] = {"?provider=afalgprov", "provider=afalgprov", "afalg.kernel=yes",
				      "provider=afalgprov,afalg.kernel=yes"};

/* For MACs see params_mac_test.c. */
static bool is_covered(int id)
{
	return has_row(id) && algorithms[id].kind != KIND_MAC;
}

/*** Names and properties ***/

static void test_fetch(void **state)
{
	EVP_MD *md;

	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		for (size_t q = 0; is_covered(id) && q < sizeof(queries) / sizeof(*queries); q++) {
			const OSSL_PROVIDER *from;

			if (algorithms[id].kind == KIND_HASH) {
				md = EVP_MD_fetch(lib.context, algorithms[id].name, queries[q]);
				assert_non_null(md);
				from = EVP_MD_get0_provider(md);
				assert_int_equal(EVP_MD_get_size(md), algorithms[id].size);
				EVP_MD_free(md);
			} else {
				EVP_CIPHER *c = EVP_CIPHER_fetch(lib.context, algorithms[id].name, queries[q]);

				assert_non_null(c);
				from = EVP_CIPHER_get0_provider(c);
				if (algorithms[id].mode != MODE_CCM) /* the kernel's is a whole block */
					assert_int_equal(EVP_CIPHER_get_iv_length(c), algorithms[id].ivlen);
				EVP_CIPHER_free(c);
			}
			assert_string_equal(OSSL_PROVIDER_get0_name(from), "afalgprov");
		}
	md = EVP_MD_fetch(lib.context, "SHA2-256", "afalg.kernel=no"); /* what others leave unsaid is a no */
	assert_string_equal(OSSL_PROVIDER_get0_name(EVP_MD_get0_provider(md)), "default");
	EVP_MD_free(md);
	assert_int_equal(ERR_peek_error(), 0);
}

static void note_name(const char *name, void *trace)
{
	fprintf(((struct trace *)trace)->file, "name %s\n", name);
}

static void trace_names(struct trace *t, enum algorithm_id id, const char *provider)
{
	trace_open(t);
	if (algorithms[id].kind == KIND_HASH) {
		EVP_MD *md = digest_of(&lib, id, provider);

		EVP_MD_names_do_all(md, note_name, t);
		fprintf(t->file, "type %d, %s\n", EVP_MD_get_type(md), EVP_MD_get0_name(md));
		EVP_MD_free(md);
	} else {
		EVP_CIPHER *c = cipher_of(&lib, id, provider);

		EVP_CIPHER_names_do_all(c, note_name, t);
		fprintf(t->file, "type %d, %s\n", EVP_CIPHER_get_type(c), EVP_CIPHER_get0_name(c));
		EVP_CIPHER_free(c);
	}
	trace_close(t);
}

static void test_names(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		struct trace theirs, ours;

		if (!is_covered(id))
			continue;
		trace_names(&theirs, (enum algorithm_id)id, "default");
		trace_names(&ours, (enum algorithm_id)id, "afalgprov");
		trace_compare(&theirs, &ours, "names of %s", algorithms[id].name);
	}
}

/* Every alias and object identifier leads to ours. */
static void fetch_by_name(const char *name, void *unused)
{
	EVP_MD *md = EVP_MD_fetch(lib.context, name, "provider=afalgprov");
	EVP_CIPHER *c = EVP_CIPHER_fetch(lib.context, name, "provider=afalgprov");

	(void)unused;
	assert_true(md != NULL || c != NULL);
	EVP_MD_free(md);
	EVP_CIPHER_free(c);
	ERR_clear_error();
}

static void test_aliases(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (!is_covered(id))
			continue;
		else if (algorithms[id].kind == KIND_HASH) {
			EVP_MD *md = digest_of(&lib, (enum algorithm_id)id, "default");

			EVP_MD_names_do_all(md, fetch_by_name, NULL);
			EVP_MD_free(md);
		} else {
			EVP_CIPHER *c = cipher_of(&lib, (enum algorithm_id)id, "default");

			EVP_CIPHER_names_do_all(c, fetch_by_name, NULL);
			EVP_CIPHER_free(c);
		}
}

/* The fake kernel serves every row: else the other tests would prove nothing of it. */
static void test_rows_are_served(void **state)
{
	(void)state;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		assert_true(!has_row(id) || fake_serves(algorithm_type(algorithms[id].kind), algorithms[id].kernel));
		assert_int_equal(algorithm_find(algorithms[id].name, strlen(algorithms[id].name)), id);
	}
	assert_int_equal(algorithm_find("aes-256-cbc", 11), ALG_AES_256_CBC);
	assert_int_equal(algorithm_find("AES-256-CBC", 10), -1);
	assert_int_equal(algorithm_find("", 0), -1);
}

/*** The provider itself ***/

static void test_provider(void **state)
{
	const char *name = NULL, *version = NULL, *build = NULL;
	int status = -1;
	OSSL_PARAM params[] = {OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, (char **)&name, 0),
			       OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, (char **)&version, 0),
			       OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_BUILDINFO, (char **)&build, 0),
			       OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, &status), OSSL_PARAM_END};

	(void)state;
	assert_true(OSSL_PROVIDER_get_params(lib.ours, params));
	assert_non_null(strstr(name, "AF_ALG"));
	assert_non_null(version);
	assert_non_null(strstr(build, version));
	assert_int_equal(status, 1);
	for (const OSSL_PARAM *p = params; p->key != NULL; p++)
		assert_non_null(OSSL_PARAM_locate_const(OSSL_PROVIDER_gettable_params(lib.ours), p->key));
	assert_int_equal(OSSL_PROVIDER_self_test(lib.ours), 1);
}

static void test_reasons(void **state)
{
	const OSSL_ITEM *r = error_reasons;
	unsigned count = 0;

	(void)state;
	for (; r->id != 0; r++, count++) {
		assert_non_null(r->ptr);
		assert_true(strlen(r->ptr) > 5);
	}
	assert_int_equal(count, ERROR_END - 1); /* none is without a text */
}

/*** Parameters ***/

/* Asks for every parameter of the list, each by itself, in the type it is declared with. */
static void trace_params(struct trace *t, const OSSL_PARAM *list, int (*get)(const void *from, OSSL_PARAM *params),
			 const void *from)
{
	for (; list != NULL && list->key != NULL; list++) {
		union {
			uint8_t bytes[256];
			void *pointer;
			uint64_t number;
		} value = {{0}};
		OSSL_PARAM params[2] = {*list, OSSL_PARAM_construct_end()};
		int ok;

		params[0].data = &value;
		params[0].return_size = OSSL_PARAM_UNMODIFIED;
		params[0].data_size = sizeof(value.bytes);
		if (list->data_type == OSSL_PARAM_INTEGER || list->data_type == OSSL_PARAM_UNSIGNED_INTEGER)
			params[0].data_size = sizeof(value.number);
		if (strstr(list->key, "iv") != NULL && list->data_type == OSSL_PARAM_OCTET_STRING)
			params[0].data_size = 16; /* CCM gives as much as one asks for, beyond its end */
		ok = get(from, params);
		fprintf(t->file, "%s type %u: %d, %zu\n", list->key, list->data_type, ok, params[0].return_size);
		if (ok && list->data_type == OSSL_PARAM_OCTET_PTR)
			fprintf(t->file, "  %s\n", value.pointer == NULL ? "null" : "set");
		else if (ok && params[0].return_size <= sizeof(value.bytes))
			trace_bytes(t, "  value", value.bytes, params[0].return_size);
		trace_errors(t);
	}
}

static void trace_settable(struct trace *t, const OSSL_PARAM *list)
{
	for (; list != NULL && list->key != NULL; list++)
		fprintf(t->file, "settable %s type %u\n", list->key, list->data_type);
}

static int get_cipher(const void *from, OSSL_PARAM *params)
{
	return EVP_CIPHER_get_params((EVP_CIPHER *)(uintptr_t)from, params);
}

static int get_cipher_ctx(const void *from, OSSL_PARAM *params)
{
	return EVP_CIPHER_CTX_get_params((EVP_CIPHER_CTX *)(uintptr_t)from, params);
}

static int get_digest(const void *from, OSSL_PARAM *params)
{
	return EVP_MD_get_params(from, params);
}

static int get_digest_ctx(const void *from, OSSL_PARAM *params)
{
	return EVP_MD_CTX_get_params((EVP_MD_CTX *)(uintptr_t)from, params);
}

static void moment(struct trace *t, const EVP_CIPHER *cipher, EVP_CIPHER_CTX *c, const char *when)
{
	fprintf(t->file, "--- %s\n", when);
	trace_params(t, EVP_CIPHER_gettable_ctx_params(cipher), get_cipher_ctx, c);
	trace_params(t, EVP_CIPHER_CTX_gettable_params(c), get_cipher_ctx, c);
	trace_number(t, "block", EVP_CIPHER_CTX_get_block_size(c));
	trace_number(t, "key length", EVP_CIPHER_CTX_get_key_length(c));
	trace_number(t, "IV length", EVP_CIPHER_CTX_get_iv_length(c));
	trace_number(t, "num", EVP_CIPHER_CTX_get_num(c));
	trace_errors(t);
}

static void trace_cipher(struct trace *t, enum algorithm_id id, const char *provider, int encrypt)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, provider);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t *out = malloc(70000);
	int outl;

	trace_open(t);
	trace_params(t, EVP_CIPHER_gettable_params(cipher), get_cipher, cipher);
	trace_settable(t, EVP_CIPHER_settable_ctx_params(cipher));
	fprintf(t->file, "mode %d flags %lx\n", EVP_CIPHER_get_mode(cipher), EVP_CIPHER_get_flags(cipher));
	EVP_CipherInit_ex2(c, cipher, NULL, NULL, encrypt, NULL);
	moment(t, cipher, c, "without a key");
	EVP_CipherInit_ex2(c, NULL, pattern(), NULL, encrypt, NULL);
	moment(t, cipher, c, "without an IV");
	EVP_CipherInit_ex2(c, NULL, pattern(), pattern() + 9, encrypt, NULL);
	EVP_CIPHER_CTX_set_padding(c, 0);
	moment(t, cipher, c, "after the init");
	if (algorithms[id].kind == KIND_AEAD && !encrypt) /* a wrong one */
		EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, (void *)(uintptr_t)pattern());
	EVP_CipherUpdate(c, out, &outl, pattern(), 65536);
	moment(t, cipher, c, "after an update");
	EVP_CipherUpdate(c, out, &outl, pattern(), 5);
	moment(t, cipher, c, "within a block");
	EVP_CipherUpdate(c, out, &outl, pattern(), 65536 + 11);
	EVP_CipherFinal_ex(c, out, &outl);
	moment(t, cipher, c, "after the final");
	trace_close(t);
	free(out);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
}

static void digest_moment(struct trace *t, EVP_MD_CTX *c, const char *when)
{
	fprintf(t->file, "--- %s\n", when);
	trace_params(t, EVP_MD_CTX_gettable_params(c), get_digest_ctx, c);
	trace_settable(t, EVP_MD_CTX_settable_params(c));
	trace_number(t, "size", EVP_MD_CTX_get_size(c));
	trace_number(t, "block", EVP_MD_CTX_get_block_size(c));
	trace_errors(t);
}

static void trace_digest(struct trace *t, enum algorithm_id id, const char *provider)
{
	EVP_MD *md = digest_of(&lib, id, provider);
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	uint8_t out[EVP_MAX_MD_SIZE];

	trace_open(t);
	trace_params(t, EVP_MD_gettable_params(md), get_digest, md);
	trace_params(t, EVP_MD_gettable_ctx_params(md), get_digest, md);
	trace_settable(t, EVP_MD_settable_ctx_params(md));
	fprintf(t->file, "flags %lx\n", EVP_MD_get_flags(md));
	EVP_DigestInit_ex2(c, md, NULL);
	digest_moment(t, c, "after the init");
	EVP_DigestUpdate(c, pattern(), 5);
	digest_moment(t, c, "after an update");
	EVP_DigestUpdate(c, pattern(), 65536);
	digest_moment(t, c, "after a large update");
	EVP_DigestFinal_ex(c, out, NULL);
	digest_moment(t, c, "after the final");
	trace_close(t);
	EVP_MD_CTX_free(c);
	EVP_MD_free(md);
}

static void test_params(void **state)
{
	(void)state;
	for (int i = 0; i < ALGORITHM_COUNT; i++)
		for (int encrypt = 0; is_covered(i) && encrypt < 2; encrypt++) {
			const enum algorithm_id id = (enum algorithm_id)i;
			struct trace theirs, ours;

			if (algorithms[id].kind == KIND_HASH) {
				trace_digest(&theirs, id, "default");
				trace_digest(&ours, id, "afalgprov");
			} else {
				trace_cipher(&theirs, id, "default", encrypt);
				trace_cipher(&ours, id, "afalgprov", encrypt);
			}
			trace_compare(&theirs, &ours, "parameters of %s", algorithms[id].name);
		}
}

/* The text of the IV can be had as a pointer too; it is the original one, also after the kernel was at work. */
static void test_iv_pointer(void **state)
{
	EVP_CIPHER *cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t out[1024];
	void *iv = NULL;
	OSSL_PARAM params[] = {OSSL_PARAM_octet_ptr(OSSL_CIPHER_PARAM_IV, &iv, 0), OSSL_PARAM_END};
	int outl;

	(void)state;
	assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern() + 9, NULL));
	assert_true(EVP_EncryptUpdate(c, out, &outl, pattern(), 1024));
	assert_true(EVP_CIPHER_CTX_get_params(c, params));
	assert_int_equal(params[0].return_size, 16);
	assert_memory_equal(iv, pattern() + 9, 16);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
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
		cmocka_unit_test(test_fetch),    cmocka_unit_test(test_names),
		cmocka_unit_test(test_aliases),  cmocka_unit_test(test_rows_are_served),
		cmocka_unit_test(test_provider), cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_params),   cmocka_unit_test(test_iv_pointer),
	};

	return cmocka_run_group_tests_name("with two lanes", tests, setup_kernel, teardown) +
	       cmocka_run_group_tests_name("with software only", tests, setup_software, teardown);
}
