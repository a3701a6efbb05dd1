/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVIDER_CIPHER_SKCIPHER_H
#define PROVIDER_CIPHER_SKCIPHER_H

#include <openssl/core.h>

#include "../algorithms.h"

struct provider;

/* A context of a cipher with two lanes, for skcipher_functions; null: no memory. */
void *skcipher_newctx(struct provider *p, enum algorithm_id id);

/* The functions that take such a context. */
extern const OSSL_DISPATCH skcipher_functions[];

#endif
