/* SPDX-License-Identifier: Apache-2.0 */
/* What MACs are made of: the digest or cipher that a program names leads to a row. */
#ifndef PROVIDER_MAC_OVER_H
#define PROVIDER_MAC_OVER_H

#include <openssl/core.h>

#include "../algorithms.h"

struct provider;

/* The parameter by which the digest or cipher of the MAC is named. */
const char *over_parameter(enum algorithm_id first);

/*
 * The row of the MAC, one of those from `first` on, that is over what the parameter names (any name of OpenSSL's, any
 * case), with these properties (null: none asked for); -1: none. Sees to it that the software lane finds what has no
 * row, if the application would.
 */
int over_find(struct provider *p, enum algorithm_id first, const OSSL_PARAM *name, const OSSL_PARAM *properties);

/* The row of the digest or cipher that a MAC's row is made of. */
enum algorithm_id over_base(enum algorithm_id row);

#endif
