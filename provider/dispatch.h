/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatch tables of all algorithms, made from those of the default provider. */
#ifndef PROVIDER_DISPATCH_H
#define PROVIDER_DISPATCH_H

#include <openssl/core.h>

#include "algorithms.h"

/*
 * Makes the tables of the rows that are the legacy provider's, or of those that are not, once a process;
 * software_legacy() or software_init() must have succeeded.
 */
void dispatch_init(bool legacy);

/* An algorithm with two lanes: our functions, each of which forwards to software what the kernel does not do. */
const OSSL_DISPATCH *dispatch_routed(enum algorithm_id id);

/*
 * An algorithm whose kernel lane can never be taken: the default provider's own functions on its own contexts, so that
 * not a single call is slower. Calls are not counted then.
 */
const OSSL_DISPATCH *dispatch_direct(enum algorithm_id id);

/* The OpenSSL operation (OSSL_OP_...) of a kind. */
int dispatch_operation(enum algorithm_kind kind);

#endif
