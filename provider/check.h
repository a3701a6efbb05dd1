/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A known-answer check: before the first use of an algorithm in the kernel a short message goes through it, and
 * must come out as the software lane has it. A driver that computes nonsense, or never answers, is found here.
 */
#ifndef PROVIDER_CHECK_H
#define PROVIDER_CHECK_H

#include "algorithms.h"

struct route;

/* How long the kernel may take, unless the configuration says otherwise; 0: as long as it likes. Milliseconds. */
#define HANG_LIMIT_DEFAULT 2000u
#define HANG_LIMIT_MAX 600000u

/*
 * 0: the kernel's algorithm can be trusted. -EILSEQ: its results are wrong. -ETIMEDOUT: it does not answer. Other
 * negative errno: it could not be opened or failed. `r` is part of a struct provider. Counts what is not 0.
 */
int check_for_route(const struct route *r, enum algorithm_id id);

#endif
