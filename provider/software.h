/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software lane: the default provider's own functions, called directly. A library context of our own has the
 * default provider loaded and nothing else, so nothing that it fetches can come back to us (openssl provider(7)). What
 * only the legacy provider has comes from another such context, made when the first application has that provider.
 */
#ifndef PROVIDER_SOFTWARE_H
#define PROVIDER_SOFTWARE_H

#include <openssl/core_dispatch.h>
#include <openssl/types.h>
#include <stdbool.h>

#include "algorithms.h"

struct provider;

/* The default provider's functions of one algorithm; null where this OpenSSL has none. */
struct software_cipher {
	OSSL_FUNC_cipher_newctx_fn *newctx;
	OSSL_FUNC_cipher_freectx_fn *freectx;
	OSSL_FUNC_cipher_dupctx_fn *dupctx;
	OSSL_FUNC_cipher_encrypt_init_fn *encrypt_init;
	OSSL_FUNC_cipher_decrypt_init_fn *decrypt_init;
	OSSL_FUNC_cipher_update_fn *update;
	OSSL_FUNC_cipher_final_fn *final;
	OSSL_FUNC_cipher_cipher_fn *cipher;
	OSSL_FUNC_cipher_get_ctx_params_fn *get_ctx_params;
	OSSL_FUNC_cipher_set_ctx_params_fn *set_ctx_params;
};

struct software_digest {
	OSSL_FUNC_digest_newctx_fn *newctx;
	OSSL_FUNC_digest_freectx_fn *freectx;
	OSSL_FUNC_digest_dupctx_fn *dupctx;
	OSSL_FUNC_digest_init_fn *init;
	OSSL_FUNC_digest_update_fn *update;
	OSSL_FUNC_digest_final_fn *final;
	OSSL_FUNC_digest_get_ctx_params_fn *get_ctx_params;
	OSSL_FUNC_digest_set_ctx_params_fn *set_ctx_params;
	OSSL_FUNC_digest_settable_ctx_params_fn *settable_ctx_params; /* null, too, where there is nothing to set */
};

struct software_mac {
	OSSL_FUNC_mac_newctx_fn *newctx;
	OSSL_FUNC_mac_freectx_fn *freectx;
	OSSL_FUNC_mac_dupctx_fn *dupctx;
	OSSL_FUNC_mac_init_fn *init;
	OSSL_FUNC_mac_update_fn *update;
	OSSL_FUNC_mac_final_fn *final;
	OSSL_FUNC_mac_get_ctx_params_fn *get_ctx_params;
	OSSL_FUNC_mac_set_ctx_params_fn *set_ctx_params;
};

/* The functions of an algorithm; the same for all instances, since they are libcrypto's own. */
extern struct software_cipher software_ciphers[ALGORITHM_COUNT];
extern struct software_digest software_digests[ALGORITHM_COUNT];
extern struct software_mac software_macs[ALGORITHM_COUNT];

/*
 * All names of an algorithm as the default provider spells them, with OIDs; null: this OpenSSL does not have it. A
 * random generator has only its own.
 */
extern const char *software_names[ALGORITHM_COUNT];

/* The default provider's dispatch table of an algorithm; null: it has none. */
extern const OSSL_DISPATCH *software_dispatch[ALGORITHM_COUNT];

/*
 * Whether the user means this row: by its name, or any of OpenSSL's names or the OID of what it belongs to; a MAC's also
 * as HMAC- and any name of the digest. In any case. Rows that this OpenSSL lacks are known by their own names.
 */
bool software_is(enum algorithm_id id, const char *name, size_t length);

/* The library context that has the software lane's own of an algorithm. */
OSSL_LIB_CTX *software_context(const struct provider *p, enum algorithm_id id);

/* What the functions of an algorithm take for the provider's context. */
void *software_provctx(const struct provider *p, enum algorithm_id id);

/* Loads the legacy provider's share of the software lane, once a process. False: it is not to be had. */
bool software_legacy(void);

/* Loads the software lane of an instance. 0: there is no default provider. */
int software_init(struct provider *p);

/* Unloads it; all contexts made with it must be gone. */
void software_cleanup(struct provider *p);

#endif
