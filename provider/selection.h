/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the engines that came before: `ciphers`, `digests` and `use_softdrivers`, as CIPHERS, DIGESTS and
 * USE_SOFTDRIVERS of devcrypto (OpenSSL's engines/e_devcrypto.c) and of afalg_engine, whose lists may also have
 * NAME:MINLEN.
 */
#ifndef PROVIDER_SELECTION_H
#define PROVIDER_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "algorithms.h"
#include "route.h"

/* One list. */
struct selection {
	bool given;
	bool chosen[ALGORITHM_COUNT];
	bool named[ALGORITHM_COUNT];   /* chosen by its name */
	size_t least[ALGORITHM_COUNT]; /* bytes; 0: none is given */
};

/*
 * Reads ALL, NONE, NO_ECB (of ciphers) or a list of NAME and NAME:BYTES, in any case. False: it is not allowed;
 * `reason` names the item.
 */
bool selection_read(struct selection *s, bool ciphers, const char *value, char *reason, size_t size);

/*
 * Applies the lists, and the drivers that `use_softdrivers` allows (DRIVERS_BY_POLICY: not set), after route_init(). A
 * MAC goes with the digest or the cipher that it is over. False: a threshold says otherwise; `reason` names both.
 */
bool selection_apply(struct route *r, const struct selection *ciphers, const struct selection *digests,
		     enum drivers drivers, char *reason, size_t size);

#endif
