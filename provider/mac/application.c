/* SPDX-License-Identifier: Apache-2.0 */
#include "application.h"

#include <openssl/err.h>
#include <openssl/evp.h>

static OSSL_FUNC_mac_freectx_fn freectx;
static void freectx(void *ctx)
{
	EVP_MAC_CTX_free(ctx);
}

static OSSL_FUNC_mac_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	return EVP_MAC_CTX_dup(ctx);
}

static OSSL_FUNC_mac_init_fn init;
static int init(void *ctx, const unsigned char *key, size_t keylen, const OSSL_PARAM params[])
{
	return EVP_MAC_init(ctx, key, keylen, params);
}

static OSSL_FUNC_mac_update_fn update;
static int update(void *ctx, const unsigned char *in, size_t inl)
{
	return EVP_MAC_update(ctx, in, inl);
}

static OSSL_FUNC_mac_final_fn final;
static int final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	return EVP_MAC_final(ctx, out, outl, outsize);
}

static OSSL_FUNC_mac_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	return EVP_MAC_CTX_get_params(ctx, params);
}

static OSSL_FUNC_mac_set_ctx_params_fn set_ctx_params;
static int set_ctx_params(void *ctx, const OSSL_PARAM params[])
{
	return EVP_MAC_CTX_set_params(ctx, params);
}

const struct software_mac application_mac = {
	.freectx = freectx,
	.dupctx = dupctx,
	.init = init,
	.update = update,
	.final = final,
	.get_ctx_params = get_ctx_params,
	.set_ctx_params = set_ctx_params,
};

void *application_mac_newctx(struct provider *p, const char *name)
{
	OSSL_LIB_CTX *application;
	EVP_MAC_CTX *ctx = NULL;
	EVP_MAC *mac;

	ERR_set_mark();
	application = software_application(p);
	mac = application == NULL ? NULL : EVP_MAC_fetch(application, name, "provider=default");
	if (mac != NULL)
		ctx = EVP_MAC_CTX_new(mac);
	ERR_pop_to_mark();
	EVP_MAC_free(mac);
	return ctx;
}
