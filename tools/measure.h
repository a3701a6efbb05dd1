/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls cost in either lane, measured through the module as a program uses it: one instance with policy=software,
 * one with policy=kernel, which take turns. The counters prove which lane a call took.
 */
#ifndef TOOLS_MEASURE_H
#define TOOLS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../provider/algorithms.h"

#define MEASURE_SIZES_MAX 32
#define MEASURE_ROUNDS_MAX 101

struct measure_options {
	bool processor; /* the caller's processor time in place of the time by the clock */
	unsigned rounds;
	unsigned milliseconds; /* of work in a lane in a round */
	size_t sizes[MEASURE_SIZES_MAX];
	unsigned size_count;
};

/* The lanes at one size. Seconds are medians over the rounds, of one call. */
struct measure_point {
	size_t bytes;
	double software, kernel;
	double ratio;     /* how many times as fast the kernel is: the median of the rounds' ratios */
	double low, high; /* a quarter of the rounds' ratios is below, or above */
};

/* By the counters. */
struct measure_proof {
	uint64_t software_calls;    /* that were made */
	uint64_t software_requests; /* of the kernel, meanwhile: 0, or the measurement fails */
	uint64_t kernel_calls;
	uint64_t kernel_requests; /* one a call at least, or the measurement fails */
	uint64_t fallbacks;       /* likewise 0 */
};

struct measurement {
	enum algorithm_id id;
	unsigned count; /* of points */
	struct measure_point points[MEASURE_SIZES_MAX];
	struct measure_proof proof;
	size_t crossover; /* the least size from which on the kernel wins at every size; 0: none */
	char failed[400]; /* why nothing was measured, or no more; "" */
};

/* The best options for most: 16 bytes to 64 KiB. */
struct measure_options measure_defaults(void);

/* Whether one lane is better by more than chance: a twentieth, and in three rounds of four. */
bool measure_kernel_wins(const struct measure_point *p);
bool measure_software_wins(const struct measure_point *p);

/* Notes the crossover of the points. */
void measure_judge(struct measurement *m);

/* Told before each size. */
typedef void measure_progress_fn(unsigned done, unsigned of, enum algorithm_id id, size_t bytes);

/*
 * Measures the algorithms that are marked, in the order of their rows, in a child process, since a driver may hang.
 * `results` has room for all of them. Returns how many there are, or -1: nothing could be begun, which
 * stderr explains, or a signal asked to end.
 */
int measure(const bool chosen[ALGORITHM_COUNT], const struct measure_options *o, struct measurement *results,
	    measure_progress_fn *progress);

#endif
