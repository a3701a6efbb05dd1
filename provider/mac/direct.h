/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MACs that the kernel cannot have at all: the default provider's own contexts and functions. But what they are over
 * may be what only the application has (borrow.h), so the calls that can name it are ours.
 */
#ifndef PROVIDER_MAC_DIRECT_H
#define PROVIDER_MAC_DIRECT_H

#include <openssl/core_dispatch.h>
#include <stdbool.h>

#include "../algorithms.h"

struct provider;

/* Whether direct MACs are this instance's. They can be one's at a time; others make do with routed ones. */
bool mac_direct_take(struct provider *p);

/* The instance ends; nothing if they are not its own. */
void mac_direct_release(struct provider *p);

/* What stands in the place of the default provider's functions. */
const OSSL_DISPATCH *mac_direct_functions(enum algorithm_id first);

#endif
