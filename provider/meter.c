/* SPDX-License-Identifier: Apache-2.0 */
#include "meter.h"

#include <stdatomic.h>
#include <time.h>

/* So much use is remembered, in nanoseconds: some twenty turns of a scheduler. */
#define REMEMBERED 100000000u

static _Atomic uint64_t used_lately, passed_lately;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t meter_clock(void)
{
	return now(CLOCK_MONOTONIC);
}

uint64_t meter_time(bool kernel)
{
	return now(kernel ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);
}

uint64_t meter_processor(bool kernel)
{
	(void)kernel;
	return now(CLOCK_THREAD_CPUTIME_ID);
}

void meter_note(uint64_t passed, uint64_t used)
{
	const uint64_t u = atomic_load_explicit(&used_lately, memory_order_relaxed) + used;
	const uint64_t p = atomic_load_explicit(&passed_lately, memory_order_relaxed) + (passed > used ? passed : used);
	const unsigned share = u > REMEMBERED ? 2 : 1;

	atomic_store_explicit(&used_lately, u / share, memory_order_relaxed);
	atomic_store_explicit(&passed_lately, p / share, memory_order_relaxed);
}

uint64_t meter_by_clock(uint64_t used)
{
	/* Less than a few turns of a scheduler tells nothing: one interruption may have been longer than all of it. */
	const uint64_t u = atomic_load_explicit(&used_lately, memory_order_relaxed) / 1024;
	const uint64_t p = atomic_load_explicit(&passed_lately, memory_order_relaxed) / 1024;

	return u < REMEMBERED / 4 / 1024 || p <= u ? used : used * p / u;
}

void meter_forget(void)
{
	atomic_store(&used_lately, 0);
	atomic_store(&passed_lately, 0);
}
