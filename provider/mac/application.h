/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MACs over what only the application has: a digest or cipher of another provider, or one that its property query asks
 * for. The default provider's MAC in the application's library context finds them, as it would without us.
 */
#ifndef PROVIDER_MAC_APPLICATION_H
#define PROVIDER_MAC_APPLICATION_H

#include "../software.h"

/* On contexts by application_mac_newctx(); its own newctx is null. */
extern const struct software_mac application_mac;

/* A new context of the MAC with this name. Null, and no error: the application has not loaded the default provider. */
void *application_mac_newctx(struct provider *p, const char *name);

#endif
