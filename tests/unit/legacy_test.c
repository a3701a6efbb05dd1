/* SPDX-License-Identifier: Apache-2.0 */
/* What the legacy provider has is offered beside it only, whatever order providers come and go in. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper.h"

#include "../../provider/software.h"

static const char *const legacy_names[] = {"DES-CBC", "BF-CBC", "CAST5-CBC", "SEED-CBC"};

#define NAMES (sizeof(legacy_names) / sizeof(*legacy_names))

/* A library context in which our provider can be loaded by its name. */
static OSSL_LIB_CTX *new_context(void)
{
	OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();

	fake_install();
	assert_non_null(context);
	assert_int_equal(OSSL_PROVIDER_add_builtin(context, "afalgprov", OSSL_provider_init), 1);
	return context;
}

static void load_and_unload(OSSL_LIB_CTX *context, const char *name)
{
	OSSL_PROVIDER *p = OSSL_PROVIDER_load(context, name);

	assert_non_null(p);
	assert_true(OSSL_PROVIDER_unload(p));
}

/* What load() has loaded, of one context at a time. */
static OSSL_PROVIDER *loaded[4];

static void load(OSSL_LIB_CTX *context, const char *name)
{
	size_t i = 0;

	while (loaded[i] != NULL)
		i++;
	loaded[i] = OSSL_PROVIDER_load(context, name);
	assert_non_null(loaded[i]);
}

/* A context that is configured with these providers, in this order. */
static OSSL_LIB_CTX *configured(const char *providers)
{
	OSSL_LIB_CTX *context = new_context();
	char path[] = "/tmp/afalgprov-unit-XXXXXX", list[64], *save, *name;
	FILE *f = fdopen(mkstemp(path), "w");

	assert_non_null(f);
	fprintf(f, "openssl_conf = init\n[init]\nproviders = list\n[one]\nactivate = 1\n[list]\n");
	snprintf(list, sizeof(list), "%s", providers);
	for (name = strtok_r(list, " ", &save); name != NULL; name = strtok_r(NULL, " ", &save))
		fprintf(f, "%s = one\n", name);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(OSSL_LIB_CTX_load_config(context, path), 1);
	unlink(path);
	return context;
}

static void free_context(OSSL_LIB_CTX *context)
{
	for (size_t i = 0; i < sizeof(loaded) / sizeof(*loaded); i++)
		OSSL_PROVIDER_unload(loaded[i]);
	memset(loaded, 0, sizeof(loaded));
	OSSL_LIB_CTX_free(context);
	fake_close_idle();
	assert_int_equal(fake_violations(), 0);
}

/* Whether the query leads to an algorithm, and to whose. */
static bool leads_to(OSSL_LIB_CTX *context, const char *name, const char *query, const char *provider)
{
	EVP_CIPHER *c;
	bool good;

	ERR_set_mark();
	c = EVP_CIPHER_fetch(context, name, query);
	ERR_pop_to_mark();
	if (c == NULL)
		return provider == NULL;
	good = provider != NULL && strcmp(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(c)), provider) == 0;
	EVP_CIPHER_free(c);
	return good;
}

/* All of them are there, ours and theirs, beside those that are always there. */
static void check_offered(OSSL_LIB_CTX *context)
{
	for (size_t i = 0; i < NAMES; i++) {
		assert_true(leads_to(context, legacy_names[i], "provider=afalgprov", "afalgprov"));
		assert_true(leads_to(context, legacy_names[i], "?provider=afalgprov", "afalgprov"));
		assert_true(leads_to(context, legacy_names[i], "?provider=legacy", "legacy"));
		assert_true(leads_to(context, legacy_names[i], "provider=legacy", "legacy"));
	}
	assert_true(leads_to(context, "AES-128-CBC", "?provider=afalgprov", "afalgprov"));
	assert_true(leads_to(context, "AES-128-CBC", "?provider=default", "default"));
	assert_int_equal(ERR_peek_error(), 0);
}

/* `theirs`: "legacy" where that one is there, else null. */
static void check_not_offered(OSSL_LIB_CTX *context, const char *theirs)
{
	for (size_t i = 0; i < NAMES; i++) {
		assert_true(leads_to(context, legacy_names[i], "provider=afalgprov", NULL));
		assert_true(leads_to(context, legacy_names[i], "?provider=afalgprov", theirs));
		assert_true(leads_to(context, legacy_names[i], NULL, theirs));
	}
	assert_true(leads_to(context, "AES-128-CBC", "?provider=afalgprov", "afalgprov"));
	assert_int_equal(ERR_peek_error(), 0);
}

/*** Without the module ***/

static int stub_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out, void **provctx)
{
	static const OSSL_DISPATCH none[] = {{0, NULL}};

	(void)in;
	*provctx = (void *)(uintptr_t)handle;
	*out = none;
	return 1;
}

/* The application has a provider of that name, and we find no such module: all else goes on. First of all tests. */
static void test_missing(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fake_install();
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		OSSL_LIB_CTX *context = new_context();

		setenv("OPENSSL_MODULES", "/nonexistent", 1);
		assert_int_equal(OSSL_PROVIDER_add_builtin(context, "legacy", stub_init), 1);
		load(context, "default");
		load(context, "afalgprov");
		load(context, "legacy");
		EVP_CIPHER_free(EVP_CIPHER_fetch(context, "AES-128-CBC", "provider=afalgprov"));
		assert_int_equal(ERR_peek_error(), 0);
		assert_false(software_legacy());
		check_not_offered(context, NULL);
		free_context(context);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*** Orders ***/

static void test_without(void **state)
{
	OSSL_LIB_CTX *context = configured("default afalgprov");

	(void)state;
	check_not_offered(context, NULL);
	free_context(context);
}

static void test_configured(void **state)
{
	static const char *const orders[] = {"default legacy afalgprov", "default afalgprov legacy",
					     "legacy default afalgprov", "legacy afalgprov default",
					     "afalgprov legacy default", "afalgprov default legacy"};

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		OSSL_LIB_CTX *context = configured(orders[i]);

		check_offered(context);
		free_context(context);
	}
}

static void test_ours_later(void **state)
{
	OSSL_LIB_CTX *context = configured("default legacy");

	(void)state;
	assert_true(leads_to(context, "DES-CBC", NULL, "legacy"));
	load(context, "afalgprov");
	check_offered(context);
	free_context(context);
}

/* Before any cipher was asked for it is early enough; then the core knows what we have, and leaves it to legacy. */
static void test_legacy_later(void **state)
{
	OSSL_LIB_CTX *context = configured("default afalgprov");

	(void)state;
	load(context, "legacy");
	check_offered(context);
	free_context(context);
	context = configured("default afalgprov");
	check_not_offered(context, NULL);
	load(context, "legacy");
	check_not_offered(context, "legacy");
	free_context(context);
}

/* It is gone again before anybody asked. */
static void test_in_between(void **state)
{
	OSSL_LIB_CTX *context = configured("default afalgprov");

	(void)state;
	load_and_unload(context, "legacy");
	check_not_offered(context, NULL);
	free_context(context);
}

/* What was fetched goes on without the legacy provider, as its own algorithms do; and comes with it again. */
static void test_unloaded(void **state)
{
	OSSL_LIB_CTX *context = configured("default afalgprov");
	OSSL_PROVIDER *legacy = OSSL_PROVIDER_load(context, "legacy");
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(context, "DES-CBC", "provider=afalgprov");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t before[64], after[64];
	int outl;

	(void)state;
	assert_non_null(cipher);
	assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern(), NULL));
	assert_true(EVP_EncryptUpdate(c, before, &outl, pattern(), 64));
	OSSL_PROVIDER_unload(legacy);
	assert_true(leads_to(context, "BF-ECB", NULL, NULL));
	assert_true(leads_to(context, "DES-CBC", NULL, "afalgprov")); /* the core keeps what it has from us */
	assert_true(EVP_EncryptInit_ex2(c, NULL, NULL, NULL, NULL));
	assert_true(EVP_EncryptUpdate(c, after, &outl, pattern(), 64));
	assert_memory_equal(before, after, 64);
	assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern(), NULL));
	assert_true(EVP_EncryptUpdate(c, after, &outl, pattern(), 64));
	assert_memory_equal(before, after, 64);
	load(context, "legacy");
	check_offered(context);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
	free_context(context);
}

/* The watch ends with us. */
static void test_ours_unloaded(void **state)
{
	OSSL_LIB_CTX *context = new_context();
	OSSL_PROVIDER *ours = OSSL_PROVIDER_load(context, "afalgprov");

	(void)state;
	assert_non_null(ours);
	load(context, "default");
	load_and_unload(context, "legacy");
	OSSL_PROVIDER_unload(ours);
	load_and_unload(context, "legacy");
	load(context, "afalgprov");
	load(context, "legacy");
	check_offered(context);
	free_context(context);
}

/* A provider that refuses its configuration watches nothing. */
static void test_refused(void **state)
{
	OSSL_LIB_CTX *context = new_context();
	const char *path = config_file("policy = fast\n");

	(void)state;
	OSSL_LIB_CTX_load_config(context, path);
	unlink(path);
	ERR_clear_error();
	assert_false(OSSL_PROVIDER_available(context, "afalgprov"));
	load_and_unload(context, "legacy");
	free_context(context);
}

/* Each context by itself. */
static void test_contexts(void **state)
{
	OSSL_LIB_CTX *with = configured("default afalgprov legacy"), *without = configured("default afalgprov");
	OSSL_LIB_CTX *also = configured("legacy default afalgprov");

	(void)state;
	check_not_offered(without, NULL);
	check_offered(with);
	check_offered(also);
	free_context(with);
	check_not_offered(without, NULL);
	check_offered(also);
	free_context(without);
	free_context(also);
}

/* A threshold may be set before the legacy provider is there; other names of its algorithms are not known then. */
static void test_threshold(void **state)
{
	struct lib lib;

	(void)state;
	lib_open(&lib, "policy = speed\ncounters = off\nthresholds = cast5-cbc:128\n");
	assert_int_equal(lib.provider->route.thresholds[ALG_CAST5_CBC], 128);
	lib_close(&lib);
}

/*** Threads ***/

static atomic_bool stop;

static void *come_and_go(void *context)
{
	while (!atomic_load(&stop)) {
		OSSL_PROVIDER *legacy = OSSL_PROVIDER_load(context, "legacy");

		if (legacy == NULL)
			return context;
		OSSL_PROVIDER_unload(legacy);
	}
	return NULL;
}

/* Providers come and go while others fetch: nobody waits for ever, and nothing but the truth is found. */
static void test_threads(void **state)
{
	pthread_t threads[2];

	(void)state;
	for (int round = 0; round < 50; round++) {
		OSSL_LIB_CTX *context = configured("default afalgprov");

		atomic_store(&stop, false);
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, context), 0);
		for (int i = 0; i < 100; i++) {
			EVP_CIPHER *c = EVP_CIPHER_fetch(context, "DES-CBC", "provider=afalgprov");
			EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

			assert_true(c == NULL || EVP_EncryptInit_ex2(ctx, c, pattern(), pattern(), NULL));
			assert_true(leads_to(context, "AES-128-CBC", "?provider=afalgprov", "afalgprov"));
			EVP_CIPHER_CTX_free(ctx);
			EVP_CIPHER_free(c);
		}
		atomic_store(&stop, true);
		for (int i = 0; i < 2; i++) {
			void *failed;

			pthread_join(threads[i], &failed);
			assert_null(failed);
		}
		ERR_clear_error();
		free_context(context);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing),      cmocka_unit_test(test_without),
		cmocka_unit_test(test_configured),   cmocka_unit_test(test_ours_later),
		cmocka_unit_test(test_legacy_later), cmocka_unit_test(test_in_between),
		cmocka_unit_test(test_unloaded),     cmocka_unit_test(test_ours_unloaded),
		cmocka_unit_test(test_refused),      cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_threshold),    cmocka_unit_test(test_threads),
	};

	alarm(100);
	return cmocka_run_group_tests_name("legacy", tests, NULL, NULL);
}
