/* SPDX-License-Identifier: Apache-2.0 */
/* The settings: keys of the provider's section in openssl.cnf. One table, config.c. */
#ifndef PROVIDER_CONFIG_H
#define PROVIDER_CONFIG_H

#include <openssl/core_dispatch.h>

#include "provider.h"

/*
 * Reads the settings from the core, after software_init(), which knows all names of the algorithms and applies them:
 * the route to `p`, what concerns the whole process (log, counters, transport, sessions) to the process. 0: a value is
 * not allowed; key, value and what is allowed have been raised and logged, since OpenSSL itself says nothing when a
 * provider in its configuration file fails to load.
 */
int config_apply(struct provider *p, OSSL_FUNC_core_get_params_fn *get_params);

/* One number without sign or space, at most `max`. 0: it is none. */
int config_number(const char *text, size_t length, unsigned long max, unsigned long *number);

#endif
