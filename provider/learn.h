/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the router learns: which calls have their time taken, and which are sent to the other lane to see what it costs
 * by now. All of it together takes at most a hundredth of the work, and five milliseconds of the first 64 MiB.
 */
#ifndef PROVIDER_LEARN_H
#define PROVIDER_LEARN_H

#include "route.h"

/* Chooses the lane of a call, into use->kernel. As long as one lane is unknown, that is so from `threshold` bytes on.
 */
void learn_choose(const struct route *r, struct route_use *use, size_t bytes, size_t threshold);

/* The least bytes that the kernel is the better lane for, in some direction; ROUTE_NEVER: none. */
size_t learn_floor(enum algorithm_id id, size_t threshold);

/*
 * Messages come in pieces, and nobody knows how many. Where the last ones all ended below the floor, the next is not
 * worth holding back.
 */
void learn_message(enum algorithm_id id, bool reached_floor);
bool learn_expects_long(enum algorithm_id id);

void learn_forget(void);

#endif
