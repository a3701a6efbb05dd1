/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVIDER_CIPHER_AEAD_H
#define PROVIDER_CIPHER_AEAD_H

#include <openssl/core.h>

#include "../algorithms.h"

struct provider;

/* A context of an AEAD with two lanes, for aead_functions; null: no memory. */
void *aead_newctx(struct provider *p, enum algorithm_id id);

/* The functions that take such a context. */
extern const OSSL_DISPATCH aead_functions[];

#endif
