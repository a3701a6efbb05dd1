/* SPDX-License-Identifier: Apache-2.0 */
/* What MACs are made of: the digest or cipher that a program names leads to a row. */
#ifndef PROVIDER_MAC_OVER_H
#define PROVIDER_MAC_OVER_H

#include <stdbool.h>

#include "../algorithms.h"

/* The parameter by which the digest or cipher of the MAC is named. */
const char *over_parameter(enum algorithm_id first);

/* The row of the MAC, one of those from `first` on, over what has this name (any of OpenSSL's, any case); -1: none. */
int over_find(enum algorithm_id first, const char *name);

/* The row of the digest or cipher that a MAC's row is made of. */
enum algorithm_id over_base(enum algorithm_id row);

#endif
