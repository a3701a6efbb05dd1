/* SPDX-License-Identifier: Apache-2.0 */
/* MACs over what only the application's providers have, asked for by many threads at once, in fresh library contexts.
 */
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "helper.h"

#define THREADS 6
#define ROUNDS 150
#define MACS 12

/* What each is over, and with which properties. The first two are the legacy provider's, if there is one. */
static const struct {
	const char *mac, *over, *properties;
	int keylen;
} asked[MACS] = {
	{"HMAC", "MD4", NULL, 20},
	{"HMAC", "WHIRLPOOL", "provider=legacy", 20},
	{"HMAC", "SHA2-256", NULL, 20},
	{"HMAC", "SHA1", "provider=afalgprov", 20},
	{"HMAC", "SHA2-512/256", NULL, 20},
	{"HMAC", "SHA2-384", "provider!=default", 20},
	{"CMAC", "AES-128-CBC", "provider!=default", 16},
	{"CMAC", "ARIA-128-CBC", NULL, 16},
	{"HMAC", "MINE-0", NULL, 20},
	{"HMAC", "MINE-1", NULL, 20},
	{"HMAC", "MINE-2", NULL, 20},
	{"HMAC", "MINE-3", NULL, 20},
};

static struct lib lib;
static uint8_t expected[MACS][EVP_MAX_MD_SIZE];
static size_t lengths[MACS]; /* 0: nobody has it */
static pthread_barrier_t barrier;
static atomic_uint wrong;

/*** Providers of the application, with a digest each, which adds up ***/

#define PROVIDERS 4

static OSSL_FUNC_digest_newctx_fn newctx;
static void *newctx(void *provctx)
{
	(void)provctx;
	return OPENSSL_zalloc(16);
}

static OSSL_FUNC_digest_freectx_fn freectx;
static void freectx(void *ctx)
{
	OPENSSL_free(ctx);
}

static OSSL_FUNC_digest_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	return OPENSSL_memdup(ctx, 16);
}

static OSSL_FUNC_digest_init_fn digest_init;
static int digest_init(void *ctx, const OSSL_PARAM params[])
{
	(void)params;
	memset(ctx, 0, 16);
	return 1;
}

static OSSL_FUNC_digest_update_fn digest_update;
static int digest_update(void *ctx, const unsigned char *in, size_t inl)
{
	for (size_t i = 0; i < inl; i++)
		((uint8_t *)ctx)[i % 16] = (uint8_t)(((uint8_t *)ctx)[i % 16] + 3 * in[i] + 1);
	return 1;
}

static OSSL_FUNC_digest_final_fn digest_final;
static int digest_final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	(void)outsize;
	memcpy(out, ctx, 16);
	*outl = 16;
	return 1;
}

static OSSL_FUNC_digest_get_params_fn get_params;
static int get_params(OSSL_PARAM params[])
{
	OSSL_PARAM *size = OSSL_PARAM_locate(params, OSSL_DIGEST_PARAM_SIZE);
	OSSL_PARAM *block = OSSL_PARAM_locate(params, OSSL_DIGEST_PARAM_BLOCK_SIZE);

	return (size == NULL || OSSL_PARAM_set_size_t(size, 16)) && (block == NULL || OSSL_PARAM_set_size_t(block, 64));
}

static const OSSL_DISPATCH digest_functions[] = {
	{OSSL_FUNC_DIGEST_NEWCTX, (void (*)(void))newctx},
	{OSSL_FUNC_DIGEST_FREECTX, (void (*)(void))freectx},
	{OSSL_FUNC_DIGEST_DUPCTX, (void (*)(void))dupctx},
	{OSSL_FUNC_DIGEST_INIT, (void (*)(void))digest_init},
	{OSSL_FUNC_DIGEST_UPDATE, (void (*)(void))digest_update},
	{OSSL_FUNC_DIGEST_FINAL, (void (*)(void))digest_final},
	{OSSL_FUNC_DIGEST_GET_PARAMS, (void (*)(void))get_params},
	{0, NULL},
};

static const OSSL_ALGORITHM digests[PROVIDERS][2] = {
	{{"MINE-0", "provider=mine0", digest_functions, NULL}},
	{{"MINE-1", "provider=mine1", digest_functions, NULL}},
	{{"MINE-2", "provider=mine2", digest_functions, NULL}},
	{{"MINE-3", "provider=mine3", digest_functions, NULL}},
};

static OSSL_FUNC_provider_query_operation_fn query;
static const OSSL_ALGORITHM *query(void *list, int operation, int *no_cache)
{
	*no_cache = 0;
	return operation == OSSL_OP_DIGEST ? list : NULL;
}

static const OSSL_DISPATCH provider_functions[] = {
	{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
	{0, NULL},
};

static unsigned loaded; /* of our providers, in this library context */

static OSSL_provider_init_fn provider_init;
static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
			 void **provctx)
{
	(void)handle;
	(void)in;
	*out = provider_functions;
	*provctx = (void *)(uintptr_t)digests[loaded++];
	return 1;
}

static void load(OSSL_PROVIDER *providers[PROVIDERS])
{
	static const char *const names[PROVIDERS] = {"mine0", "mine1", "mine2", "mine3"};

	loaded = 0;
	for (int i = 0; i < PROVIDERS; i++) {
		assert_true(OSSL_PROVIDER_add_builtin(lib.context, names[i], provider_init));
		providers[i] = OSSL_PROVIDER_load(lib.context, names[i]);
		assert_non_null(providers[i]);
	}
}

/*** MACs ***/

static size_t compute(const char *provider, size_t i, uint8_t out[EVP_MAX_MD_SIZE])
{
	OSSL_PARAM params[3] = {OSSL_PARAM_END, OSSL_PARAM_END, OSSL_PARAM_END};
	EVP_MAC *mac = EVP_MAC_fetch(lib.context, asked[i].mac, provider);
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);
	size_t outl = 0;

	params[0] =
		OSSL_PARAM_construct_utf8_string(asked[i].mac[0] == 'H' ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER,
						 (char *)(uintptr_t)asked[i].over, 0);
	if (asked[i].properties != NULL)
		params[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_PROPERTIES,
							     (char *)(uintptr_t)asked[i].properties, 0);
	if (!EVP_MAC_init(c, pattern(), (size_t)asked[i].keylen, params) || !EVP_MAC_update(c, pattern(), 5) ||
	    !EVP_MAC_final(c, out, &outl, EVP_MAX_MD_SIZE))
		outl = 0;
	ERR_clear_error();
	EVP_MAC_CTX_free(c);
	EVP_MAC_free(mac);
	return outl;
}

/* Each begins with another one. */
static void *ask(void *first)
{
	uint8_t out[EVP_MAX_MD_SIZE];

	pthread_barrier_wait(&barrier);
	for (size_t n = 0; n < 2 * MACS; n++) {
		const size_t i = (n * 5 + 2 * (uintptr_t)first) % MACS, outl = compute("provider=afalgprov", i, out);

		wrong += outl != lengths[i] || memcmp(out, expected[i], outl) != 0;
	}
	OPENSSL_thread_stop_ex(lib.context);
	return NULL;
}

static void at_once(const char *settings)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		OSSL_PROVIDER *providers[PROVIDERS];
		pthread_t threads[THREADS];

		lib_open(&lib, settings);
		load(providers);
		for (size_t i = 0; round == 0 && i < MACS; i++)
			lengths[i] = compute("provider=default", i, expected[i]);
		pthread_barrier_init(&barrier, NULL, THREADS);
		for (uintptr_t i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, ask, (void *)i), 0);
		for (size_t i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		pthread_barrier_destroy(&barrier);
		for (int i = 0; i < PROVIDERS; i++)
			OSSL_PROVIDER_unload(providers[i]);
		lib_close(&lib);
		assert_int_equal(wrong, 0);
	}
}

static void test_routed(void **state)
{
	(void)state;
	at_once("policy = kernel\ncounters = off\n");
}

static void test_direct(void **state)
{
	(void)state;
	at_once("policy = software\ncounters = off\n");
}

/* What is borrowed has not the first say on what the default provider has too. */
static void test_order(void **state)
{
	uint8_t out[EVP_MAX_MD_SIZE];
	EVP_MD *md;

	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	for (int borrowed = 0; borrowed < 2; borrowed++) {
		md = EVP_MD_fetch(lib.provider->soft_context, "SHA2-384", NULL);
		assert_string_equal(OSSL_PROVIDER_get0_name(EVP_MD_get0_provider(md)), "default");
		EVP_MD_free(md);
		assert_true(compute("provider=afalgprov", 5, out));
	}
	lib_close(&lib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_routed),
		cmocka_unit_test(test_direct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
