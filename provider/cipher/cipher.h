/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVIDER_CIPHER_CIPHER_H
#define PROVIDER_CIPHER_CIPHER_H

#include <openssl/core.h>

#include "../algorithms.h"

/* The dispatch table of a cipher; software_init() must have succeeded. */
const OSSL_DISPATCH *cipher_dispatch(enum algorithm_id id);

#endif
