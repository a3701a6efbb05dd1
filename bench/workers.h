/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that do the measured work. They load OpenSSL and the module by themselves, live for many measurements,
 * so that what the module has learnt stays, and all work in the same span of time.
 */
#ifndef BENCH_WORKERS_H
#define BENCH_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/algorithms.h"

#define WORKERS_MAX 64
#define SIDES_MAX 8

struct workers_setup {
	const char *sides[SIDES_MAX]; /* "provider", "default", "bare", else the id of an engine; null ends it */
	const char *settings;         /* of the provider: lines of its section */
	bool legacy;                  /* with the legacy provider */
	bool anew;                    /* a new context for each call */
	double seconds;               /* of a span */
};

/* What all processes together did in a span. */
struct work {
	double bytes_per_second;
	double processor_seconds_per_byte;
};

/* Starts `n` processes; loaded: whether each side can be had here. */
void workers_start(unsigned n, const struct workers_setup *setup, bool loaded[SIDES_MAX]);
void workers_stop(void);

/* Opens and warms up a side for calls of `size` bytes; false: it does not have the algorithm. */
bool workers_prepare(enum algorithm_id algorithm, size_t size, unsigned side);

/* One span of the side's work. */
struct work workers_run(enum algorithm_id algorithm, size_t size, unsigned side);

#endif
