/* SPDX-License-Identifier: Apache-2.0 */
/* OSSL_OP_RAND: the kernel's random generators, for those who ask for them by name. */
#ifndef PROVIDER_RAND_RAND_H
#define PROVIDER_RAND_RAND_H

#include <openssl/core.h>

#include "../algorithms.h"

/* The dispatch table of a row of kind RNG. */
const OSSL_DISPATCH *rand_functions(enum algorithm_id id);

#endif
