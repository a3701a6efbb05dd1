/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVIDER_DIGEST_DIGEST_H
#define PROVIDER_DIGEST_DIGEST_H

#include <openssl/core.h>

#include "../algorithms.h"

/* The dispatch table of a digest; software_init() must have succeeded. */
const OSSL_DISPATCH *digest_dispatch(enum algorithm_id id);

#endif
