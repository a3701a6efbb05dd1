/* SPDX-License-Identifier: Apache-2.0 */
/* One loaded instance of the provider: what every operation is given as its provider context. */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>

#include "error.h"
#include "legacy.h"
#include "route.h"

#define OPERATIONS (OSSL_OP_RAND + 1)

struct provider {
	const OSSL_CORE_HANDLE *handle;
	const OSSL_DISPATCH *core; /* libcrypto's own table, which does not go away */
	struct core_errors errors;
	struct route route;
	/* What it offers without and with the legacy provider beside it, by OpenSSL's number of the operation. */
	OSSL_ALGORITHM offers[2][OPERATIONS][ALGORITHM_COUNT + 1];
	struct legacy_watch legacy;
	bool legacy_asked, legacy_offered; /* the second of the two has been tried, and made */

	/* The software lane: the default provider in a library context that nothing else shares (software.h). */
	OSSL_LIB_CTX *soft_context;
	OSSL_PROVIDER *soft_provider;
	void *soft_provctx;
	unsigned hang_limit;       /* check.h, milliseconds */
	struct borrowed *borrowed; /* and what it lacked (borrow.h) */
	OSSL_LIB_CTX *application; /* the application's providers; null until they are asked for something */
};

#endif
