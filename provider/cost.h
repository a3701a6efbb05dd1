/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls of one algorithm cost in each lane, by size, as far as it has been learnt. Sizes fall into classes, two to
 * a power of two, each with a mean of its own that follows the newest calls. Classes without calls are judged by their
 * neighbours: software costs as much more as it has more bytes, and a request has a fixed part.
 *
 * Fields stand for themselves and are written without locks. A sample that gets lost does no harm.
 */
#ifndef PROVIDER_COST_H
#define PROVIDER_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cost_lane { COST_SOFTWARE, COST_KERNEL, COST_LANES };

/* Below this many bytes no request can win: nothing is learnt there. */
#define COST_LEAST 256u

/* The last class is that of the longest request; longer calls consist of several. */
#define COST_MOST 65536u
#define COST_CLASSES 17

struct cost_table {
	_Atomic uint32_t mean[COST_LANES][COST_CLASSES];    /* nanoseconds; 0: no call so far */
	_Atomic uint32_t settled[COST_LANES][COST_CLASSES]; /* the mean when the lanes were last compared for it */
	_Atomic uint32_t best[COST_LANES][COST_CLASSES];    /* the least mean so far */
	_Atomic uint32_t wins;                              /* bit k: class k is the kernel's */
	atomic_bool both;                                   /* something is known of both lanes, so `wins` holds */
	_Atomic uint32_t samples[COST_CLASSES];             /* calls noted */
	atomic_uint most;                                   /* the class with the most of them */
};

/* Takes note of a call that took so many nanoseconds. `rare`: the lane has few calls, so this one counts for more. */
void cost_note(struct cost_table *t, enum cost_lane lane, size_t bytes, uint64_t ns, bool rare);

/* What a call is expected to cost, nanoseconds; 0: nothing is known of the lane. */
uint64_t cost_expected(const struct cost_table *t, enum cost_lane lane, size_t bytes);

/* The same at the lane's best so far; the kernel, where little is known, at the best that it might be. */
uint64_t cost_at_best(const struct cost_table *t, enum cost_lane lane, size_t bytes);

/* Whether calls of this size have been seen in the lane. */
bool cost_seen(const struct cost_table *t, enum cost_lane lane, size_t bytes);

/* Whether both lanes are known, and then whether the kernel is the cheaper one. */
static inline bool cost_known(const struct cost_table *t)
{
	return atomic_load_explicit(&t->both, memory_order_relaxed);
}
bool cost_kernel_wins(const struct cost_table *t, size_t bytes);

/* The least bytes from which on some call is the kernel's; SIZE_MAX: none is. Of a table where both lanes are known. */
size_t cost_crossover(const struct cost_table *t);

/* The size that calls were noted of most often, and what one costs in the lane; 0: nothing is known. */
size_t cost_usual(const struct cost_table *t, uint32_t mean[COST_LANES]);

void cost_forget(struct cost_table *t);

#endif
