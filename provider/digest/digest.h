/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVIDER_DIGEST_DIGEST_H
#define PROVIDER_DIGEST_DIGEST_H

#include <openssl/core.h>

#include "../algorithms.h"

struct provider;

/* A context of a digest with two lanes, for digest_functions; null: no memory. */
void *digest_newctx(struct provider *p, enum algorithm_id id);

/* The functions that take such a context. */
extern const OSSL_DISPATCH digest_functions[];

#endif
