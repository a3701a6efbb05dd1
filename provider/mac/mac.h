/* SPDX-License-Identifier: Apache-2.0 */
/* MACs: HMAC and CMAC over the digests and ciphers that have rows, with two lanes; over all others in software. */
#ifndef PROVIDER_MAC_H
#define PROVIDER_MAC_H

#include <openssl/core_dispatch.h>

#include "../algorithms.h"

struct provider;

/* A context of the MAC whose first row is `first`; null: out of memory. */
void *mac_newctx(struct provider *p, enum algorithm_id first);

/* The functions on it. */
extern const OSSL_DISPATCH mac_functions[];

#endif
