/* SPDX-License-Identifier: Apache-2.0 */
#include "cost.h"

/* How fast a mean follows: the newest call is this part of it. */
#define SHARE_OFTEN 8
#define SHARE_RARE 3

/* A single call counts for no more than this many means: the process may just have lost the processor. */
#define OUTLIER 3

/* At least this part of what a request costs is a fixed one, for all that is known. */
#define FIXED_LEAST 4

/* The other lane has to be cheaper by this part before a class changes sides, against going to and fro. */
#define MARGIN 20

static unsigned class_of(size_t bytes)
{
	unsigned octave;

	if (bytes >= COST_MOST)
		return COST_CLASSES - 1;
	octave = 31 - (unsigned)__builtin_clz((unsigned)bytes | COST_LEAST);
	return (octave - 8) * 2 + ((bytes >> (octave - 1)) & 1);
}

/* The least bytes of a class. */
static size_t class_size(unsigned k)
{
	return (size_t)(2 | (k & 1)) << (k / 2 + 7);
}

static uint32_t at(const _Atomic uint32_t *values, unsigned k)
{
	return atomic_load_explicit(&values[k], memory_order_relaxed);
}

/* The next class with a value, from k in the direction of `step`; COST_CLASSES: none. */
static unsigned neighbour(const _Atomic uint32_t *values, unsigned k, int step)
{
	for (int i = (int)k; i >= 0 && i < COST_CLASSES; i += step)
		if (at(values, (unsigned)i) != 0)
			return (unsigned)i;
	return COST_CLASSES;
}

static uint64_t scaled(uint64_t value, unsigned from, unsigned to)
{
	const uint64_t v = value * class_size(to) / class_size(from);

	return v == 0 ? 1 : v;
}

/* The straight line through two classes, at a third. Never falling, never below what the bytes alone would cost. */
static uint64_t on_line(const _Atomic uint32_t *values, unsigned a, unsigned b, unsigned k)
{
	const int64_t va = at(values, a), vb = at(values, b);
	const int64_t rise = vb > va ? vb - va : 0;
	const int64_t v = va + rise * ((int64_t)class_size(k) - (int64_t)class_size(a)) /
				       ((int64_t)class_size(b) - (int64_t)class_size(a));
	const int64_t least = (int64_t)scaled((uint64_t)va, a, k < a ? k : a);

	return (uint64_t)(v > least ? v : least);
}

static uint64_t from_neighbours(const _Atomic uint32_t *values, enum cost_lane lane, unsigned k)
{
	const unsigned above = neighbour(values, k, 1), below = neighbour(values, k, -1);
	unsigned further;

	if (above != COST_CLASSES && below != COST_CLASSES)
		return on_line(values, below, above, k);
	if (below != COST_CLASSES)
		return scaled(at(values, below), below, k);
	if (above == COST_CLASSES)
		return 0;
	if (lane == COST_SOFTWARE)
		return scaled(at(values, above), above, k);
	further = neighbour(values, above + 1, 1);
	return further == COST_CLASSES ? at(values, above) : on_line(values, above, further, k);
}

static uint64_t expected(const _Atomic uint32_t *values, enum cost_lane lane, unsigned k)
{
	const uint32_t value = at(values, k);

	return value != 0 ? value : from_neighbours(values, lane, k);
}

/* Compares the lanes anew in all classes. */
static void settle(struct cost_table *t)
{
	const uint32_t before = atomic_load_explicit(&t->wins, memory_order_relaxed);
	uint32_t wins = 0;

	for (unsigned k = 0; k < COST_CLASSES; k++) {
		const uint64_t software = expected(t->mean[COST_SOFTWARE], COST_SOFTWARE, k);
		const uint64_t kernel = expected(t->mean[COST_KERNEL], COST_KERNEL, k);

		if (software == 0 || kernel == 0)
			return;
		if (before >> k & 1 ? kernel <= software + software / MARGIN : kernel + kernel / MARGIN < software)
			wins |= 1u << k;
	}
	atomic_store_explicit(&t->wins, wins, memory_order_relaxed);
	atomic_store_explicit(&t->both, true, memory_order_relaxed);
}

/* Comparing takes its time too: small changes do not matter. */
static bool moved(uint64_t from, uint64_t to)
{
	return to > from + from / (4 * MARGIN) || from > to + to / (4 * MARGIN);
}

static void count(struct cost_table *t, unsigned k)
{
	const unsigned most = atomic_load_explicit(&t->most, memory_order_relaxed);
	const uint32_t samples = at(t->samples, k) + 1;

	atomic_store_explicit(&t->samples[k], samples, memory_order_relaxed);
	if (k != most && samples > at(t->samples, most))
		atomic_store_explicit(&t->most, k, memory_order_relaxed);
}

void cost_note(struct cost_table *t, enum cost_lane lane, size_t bytes, uint64_t ns, bool rare)
{
	const unsigned k = class_of(bytes);
	const uint64_t mean = at(t->mean[lane], k);
	const uint64_t share = rare ? SHARE_RARE : SHARE_OFTEN;
	uint64_t one = bytes > COST_MOST ? ns * COST_MOST / bytes : ns;

	if (mean != 0)
		one = (mean * (share - 1) + (one < mean * OUTLIER ? one : mean * OUTLIER)) / share;
	if (one == 0)
		one = 1;
	if (one > UINT32_MAX)
		one = UINT32_MAX;
	atomic_store_explicit(&t->mean[lane][k], (uint32_t)one, memory_order_relaxed);
	count(t, k);
	if (at(t->best[lane], k) == 0 || one < at(t->best[lane], k))
		atomic_store_explicit(&t->best[lane][k], (uint32_t)one, memory_order_relaxed);
	if (moved(at(t->settled[lane], k), one)) {
		atomic_store_explicit(&t->settled[lane][k], (uint32_t)one, memory_order_relaxed);
		settle(t);
	}
}

/* What a call of so many bytes costs if one of its class costs so much. */
static uint64_t for_bytes(uint64_t one, size_t bytes)
{
	return bytes > COST_MOST ? one * (bytes / 1024) / (COST_MOST / 1024) : one;
}

uint64_t cost_expected(const struct cost_table *t, enum cost_lane lane, size_t bytes)
{
	return for_bytes(expected(t->mean[lane], lane, class_of(bytes)), bytes);
}

/* Where only one side is known, what is best for the kernel: nothing but a fixed part, or hardly any. */
static uint64_t hoped(const _Atomic uint32_t *values, unsigned k)
{
	const unsigned above = neighbour(values, k, 1), below = neighbour(values, k, -1);
	uint64_t in_proportion;

	if (above == COST_CLASSES && below != COST_CLASSES)
		return at(values, below);
	if (below != COST_CLASSES || above == COST_CLASSES || neighbour(values, above + 1, 1) != COST_CLASSES)
		return expected(values, COST_KERNEL, k);
	in_proportion = scaled(at(values, above), above, k);
	return in_proportion > at(values, above) / FIXED_LEAST ? in_proportion : at(values, above) / FIXED_LEAST;
}

uint64_t cost_at_best(const struct cost_table *t, enum cost_lane lane, size_t bytes)
{
	const unsigned k = class_of(bytes);

	return for_bytes(lane == COST_KERNEL ? hoped(t->best[lane], k) : expected(t->best[lane], lane, k), bytes);
}

bool cost_seen(const struct cost_table *t, enum cost_lane lane, size_t bytes)
{
	return at(t->mean[lane], class_of(bytes)) != 0;
}

bool cost_kernel_wins(const struct cost_table *t, size_t bytes)
{
	return bytes >= COST_LEAST &&
	       (atomic_load_explicit(&t->wins, memory_order_relaxed) >> class_of(bytes) & 1) != 0;
}

size_t cost_crossover(const struct cost_table *t)
{
	const uint32_t wins = atomic_load_explicit(&t->wins, memory_order_relaxed);

	return wins == 0 ? SIZE_MAX : class_size((unsigned)__builtin_ctz(wins));
}

size_t cost_usual(const struct cost_table *t, uint32_t mean[COST_LANES])
{
	const unsigned k = atomic_load_explicit(&t->most, memory_order_relaxed);

	mean[COST_SOFTWARE] = at(t->mean[COST_SOFTWARE], k);
	mean[COST_KERNEL] = at(t->mean[COST_KERNEL], k);
	return at(t->samples, k) == 0 ? 0 : class_size(k);
}

void cost_forget(struct cost_table *t)
{
	for (unsigned k = 0; k < COST_CLASSES; k++) {
		atomic_store(&t->mean[COST_SOFTWARE][k], 0);
		atomic_store(&t->mean[COST_KERNEL][k], 0);
		atomic_store(&t->settled[COST_SOFTWARE][k], 0);
		atomic_store(&t->settled[COST_KERNEL][k], 0);
		atomic_store(&t->best[COST_SOFTWARE][k], 0);
		atomic_store(&t->best[COST_KERNEL][k], 0);
		atomic_store(&t->samples[k], 0);
	}
	atomic_store(&t->wins, 0);
	atomic_store(&t->most, 0);
	atomic_store(&t->both, false);
}
