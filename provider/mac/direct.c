/* SPDX-License-Identifier: Apache-2.0 */
#include "direct.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "../software.h"
#include "over.h"

/* A context of the default provider does not tell whose it is, so there is only one instance whose it can be. */
static struct provider *_Atomic owner;

bool mac_direct_take(struct provider *p)
{
	struct provider *nobody = NULL;

	return atomic_compare_exchange_strong(&owner, &nobody, p) || nobody == p;
}

void mac_direct_release(struct provider *p)
{
	atomic_compare_exchange_strong(&owner, &p, NULL);
}

/* Looks at what is named before the default provider does. */
static inline void look(enum algorithm_id first, const char *over, const OSSL_PARAM params[])
{
	const OSSL_PARAM *name = NULL, *properties = NULL;

	for (const OSSL_PARAM *p = params; p != NULL && p->key != NULL; p++)
		if (name == NULL && strcmp(p->key, over) == 0)
			name = p;
		else if (properties == NULL && strcmp(p->key, OSSL_MAC_PARAM_PROPERTIES) == 0)
			properties = p;
	if (name != NULL)
		over_find(atomic_load(&owner), first, name, properties);
}

#define DIRECT(mac, first, over)                                                                             \
	static OSSL_FUNC_mac_init_fn mac##_init;                                                             \
	static int mac##_init(void *ctx, const unsigned char *key, size_t keylen, const OSSL_PARAM params[]) \
	{                                                                                                    \
		look(first, over, params);                                                                   \
		return software_macs[first].init(ctx, key, keylen, params);                                  \
	}                                                                                                    \
	static OSSL_FUNC_mac_set_ctx_params_fn mac##_set_ctx_params;                                         \
	static int mac##_set_ctx_params(void *ctx, const OSSL_PARAM params[])                                \
	{                                                                                                    \
		look(first, over, params);                                                                   \
		return software_macs[first].set_ctx_params(ctx, params);                                     \
	}                                                                                                    \
	static const OSSL_DISPATCH mac##_functions[] = {                                                     \
		{OSSL_FUNC_MAC_INIT, (void (*)(void))mac##_init},                                            \
		{OSSL_FUNC_MAC_SET_CTX_PARAMS, (void (*)(void))mac##_set_ctx_params},                        \
		{0, NULL},                                                                                   \
	};

DIRECT(hmac, ALG_HMAC_MD5, OSSL_MAC_PARAM_DIGEST)
DIRECT(cmac, ALG_CMAC_AES_128, OSSL_MAC_PARAM_CIPHER)

const OSSL_DISPATCH *mac_direct_functions(enum algorithm_id first)
{
	return first == ALG_HMAC_MD5 ? hmac_functions : cmac_functions;
}
