/* SPDX-License-Identifier: Apache-2.0 */
#include "learn.h"

#include <stdatomic.h>

#include "cost.h"
#include "counters.h"
#include "log.h"
#include "meter.h"

/* The parts of the work that tries and clock may take, and the time that tries may in the first bytes. Nanoseconds. */
#define WORK_SHARE 150
#define CLOCK_SHARE 300
#define START_CREDIT 4000000
#define START_BYTES (64u << 20)
#define CREDIT_MOST 1000000

/* A request whose cost nobody knows is expected to take so long, and opening a lane too. Nanoseconds. */
#define GUESS_FIXED 20000u
#define GUESS_OPEN 100000u

/*
 * The lane that loses is tried once in so many calls at most, the more seldom the longer it has lost, and only if it
 * takes less than so many times as long.
 */
#define PROBE_CALLS 8u
#define PROBE_CALLS_KERNEL 32u    /* at most: a device may be free again at any moment */
#define PROBE_CALLS_SOFTWARE 128u /* the processor changes little */
#define PROBE_RATIO 8u

/* Where both lanes are known, so many calls like the last one follow it without asking. */
#define FOLLOWERS 7u

/*
 * A device that has been idle wakes up first. So a try that takes less than so many times as long as software is the
 * first of a few calls in a row, of which only the last counts.
 */
#define COLD_RATIO 3u
#define PROBE_BURST 4u

/* The first requests of a device may take any time, and are no measure of it. */
#define KERNEL_FIRST 4u

/* What is learnt of one algorithm in one direction. */
struct learning {
	struct cost_table cost;
	_Atomic uint32_t opening; /* mean cost of opening the kernel lane for a key; 0: unknown */
	_Atomic int64_t credit;   /* nanoseconds that learning may take now */
	_Atomic uint64_t bytes;
	atomic_uint requests;     /* whose time was taken, up to KERNEL_FIRST */
	atomic_uint calls;        /* since the last try of the other lane */
	atomic_uint interval;     /* between two tries; 0: PROBE_CALLS */
	atomic_bool won;          /* by the kernel, when the other lane was last tried */
	atomic_uint again;        /* so many more calls try the kernel as the last one did */
	atomic_uint untimed;      /* calls that may still pass before another one's time is taken */
	_Atomic size_t crossover; /* when others were last told of it; 0: not known then */
	atomic_uint said;         /* log lines at info: that the kernel loses, then that it wins after all */
};

static struct learning learnings[ALGORITHM_COUNT][2];

static struct learning *learning_of(const struct route_use *use)
{
	return &learnings[use->id][use->decrypt];
}

static _Atomic uint64_t prices[2]; /* of taking a call's time, by lane, nanoseconds and one more; 0: not measured */

static uint64_t measure_price(const struct route *r, bool kernel)
{
	static struct cost_table unused;
	uint64_t price = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		const uint64_t begin = r->clock();
		uint64_t end;

		r->meter(kernel);
		r->meter(kernel);
		cost_note(&unused, COST_KERNEL, COST_MOST, 1, false);
		end = r->clock();
		if (end - begin < price)
			price = end - begin;
	}
	return price + 1;
}

/* So that the clock takes no more than its share of calls that are expected to take so long. */
static unsigned calls_untimed(const struct route *r, bool kernel, uint64_t expected)
{
	_Atomic uint64_t *price = &prices[kernel];
	uint64_t calls;

	if (atomic_load_explicit(price, memory_order_relaxed) == 0)
		atomic_store_explicit(price, measure_price(r, kernel), memory_order_relaxed);
	calls = atomic_load_explicit(price, memory_order_relaxed) - 1;
	calls = expected == 0 ? 0 : calls * CLOCK_SHARE / expected;
	return calls > 1000 ? 1000 : (unsigned)calls;
}

static bool time_is_due(const struct route *r, struct learning *l, bool kernel, uint64_t expected)
{
	const unsigned left = atomic_load_explicit(&l->untimed, memory_order_relaxed);

	if (left > 0 && expected != 0) {
		atomic_store_explicit(&l->untimed, left - 1, memory_order_relaxed);
		return false;
	}
	atomic_store_explicit(&l->untimed, calls_untimed(r, kernel, expected) / (1 + FOLLOWERS), memory_order_relaxed);
	return true;
}

/* The work done so far pays for what is to be learnt. */
static void earn(struct learning *l, const struct route_use *use, uint64_t expected)
{
	const uint64_t bytes = use->bytes + use->passed;
	int64_t more = (int64_t)(expected * (bytes / 64 + 1) / (use->bytes / 64 + 1) / WORK_SHARE);

	if (atomic_fetch_add_explicit(&l->bytes, bytes, memory_order_relaxed) < START_BYTES)
		more += (int64_t)(bytes * START_CREDIT / START_BYTES);
	if (atomic_load_explicit(&l->credit, memory_order_relaxed) < CREDIT_MOST)
		atomic_fetch_add_explicit(&l->credit, more, memory_order_relaxed);
}

/* One price is not more than what may be saved up: the thread may just have lost the processor. */
static void pay(struct learning *l, uint64_t price)
{
	atomic_fetch_sub_explicit(&l->credit, price < CREDIT_MOST ? (int64_t)price : CREDIT_MOST, memory_order_relaxed);
}

static uint64_t opening_cost(const struct learning *l, uint64_t unknown)
{
	const uint64_t cost = atomic_load_explicit(&l->opening, memory_order_relaxed);

	return cost == 0 ? unknown : cost;
}

/* What the kernel may take for the call, if all is well. */
static uint64_t kernel_hoped(const struct learning *l, const struct route_use *use)
{
	if (atomic_load_explicit(&l->requests, memory_order_relaxed) < KERNEL_FIRST)
		return GUESS_FIXED + use->bytes / 4;
	return cost_at_best(&l->cost, COST_KERNEL, use->bytes);
}

/* What trying the kernel costs more than software, as far as is known; -1: it is not worth a thought. */
static int64_t kernel_loss(const struct learning *l, const struct route_use *use, uint64_t software)
{
	const uint64_t opening = opening_cost(l, GUESS_OPEN);
	uint64_t cost = kernel_hoped(l, use);

	if (cost > PROBE_RATIO * software)
		return -1;
	if (!use->open && use->forgone < opening)
		cost += opening;
	return cost > software ? (int64_t)(cost - software) : 0;
}

/* Adds up what has been lost with this key by staying in software, calls that did not ask included. */
static void forgo(struct route_use *use, uint64_t software, uint64_t kernel, size_t passed)
{
	const uint64_t gain = software > kernel ? (software - kernel) * (passed / use->bytes + 1) : 0;

	use->forgone = gain > UINT32_MAX - use->forgone ? UINT32_MAX : use->forgone + (uint32_t)gain;
}

/* Whether a try of the other lane is worth its price, which may be less by now, and can be paid. */
static bool probe_pays(struct learning *l, const struct route_use *use, bool wins, uint64_t software, uint64_t kernel)
{
	const uint64_t hoped = cost_at_best(&l->cost, COST_SOFTWARE, use->bytes);
	int64_t loss = kernel_loss(l, use, software);

	if (wins)
		loss = hoped > kernel ? (int64_t)(hoped - kernel) : 0;
	return loss >= 0 && atomic_load_explicit(&l->credit, memory_order_relaxed) >= loss;
}

static unsigned tries_interval(struct learning *l, bool wins)
{
	const unsigned interval = atomic_load_explicit(&l->interval, memory_order_relaxed);
	const unsigned most = wins ? PROBE_CALLS_SOFTWARE : PROBE_CALLS_KERNEL;

	return interval < PROBE_CALLS ? PROBE_CALLS : interval > most ? most : interval;
}

/*
 * Whether this call goes to the lane that it would not go to. What it costs in truth is paid by those that follow.
 */
static bool probe_is_due(struct learning *l, struct route_use *use, bool wins, uint64_t software, uint64_t kernel)
{
	unsigned interval = PROBE_CALLS, again;

	if ((wins ? kernel : software) == 0)
		return false; /* first that one */
	if (wins && software == 0)
		return true; /* costs little on any machine */
	again = atomic_exchange_explicit(&l->again, 0, memory_order_relaxed);
	if (again > 0 && !wins) {
		use->again = again - 1;
		return kernel_loss(l, use, software) >= 0;
	}
	if (wins || cost_seen(&l->cost, COST_KERNEL, use->bytes))
		interval = tries_interval(l, wins);
	if (atomic_fetch_add_explicit(&l->calls, 1, memory_order_relaxed) + 1 < interval ||
	    !probe_pays(l, use, wins, software, kernel))
		return false;
	atomic_store_explicit(&l->calls, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&l->won, wins, memory_order_relaxed) != wins)
		interval = PROBE_CALLS / 2;
	atomic_store_explicit(&l->interval, interval * 2, memory_order_relaxed);
	use->again = wins ? 0 : PROBE_BURST - 1;
	return true;
}

/*
 * Opening a lane pays only if more calls follow with the same key, and nobody knows. So it is opened once it would have
 * paid already: that costs no more than twice what knowing would have saved.
 */
static bool worth_opening(struct learning *l, struct route_use *use, uint64_t software, uint64_t kernel)
{
	const uint64_t price = opening_cost(l, 0);

	if (use->open || !cost_known(&l->cost) || price == 0)
		return true;
	forgo(use, software, kernel, 0);
	if (use->forgone < price)
		return false;
	use->forgone = 0;
	return true;
}

/* Whether the next calls may do as this one does. */
static unsigned followers(const struct learning *l, const struct route_use *use, bool wins)
{
	return !use->rare && cost_known(&l->cost) && (use->kernel ? use->open : !wins) ? FOLLOWERS : 0;
}

static bool follows(struct route_use *use, size_t bytes)
{
	if (use->followers == 0 || bytes != use->bytes)
		return false;
	use->followers--;
	use->passed += bytes;
	use->kernel = use->lead;
	return true;
}

void learn_choose(const struct route *r, struct route_use *use, size_t bytes, size_t threshold)
{
	struct learning *l = learning_of(use);
	uint64_t software, kernel;
	bool wins;

	if (bytes < COST_LEAST || follows(use, bytes))
		return;
	software = cost_expected(&l->cost, COST_SOFTWARE, bytes);
	kernel = cost_expected(&l->cost, COST_KERNEL, bytes);
	wins = cost_known(&l->cost) ? cost_kernel_wins(&l->cost, bytes) : bytes >= threshold;
	use->bytes = bytes;
	earn(l, use, wins ? kernel : software);
	if (!wins && !use->open)
		forgo(use, software, kernel_hoped(l, use), use->passed);
	use->passed = 0;
	use->again = 0;
	use->rare = probe_is_due(l, use, wins, software, kernel);
	use->kernel = use->rare ? !wins : wins && worth_opening(l, use, software, kernel);
	use->lead = use->kernel;
	use->followers = followers(l, use, wins);
	use->timed = time_is_due(r, l, use->kernel, use->kernel ? kernel : software) || use->rare;
	use->spent = 0;
	if (!use->timed)
		return;
	use->begun = use->kernel ? 0 : r->clock();
	use->start = r->meter(use->kernel);
}

/* Said when it is first so, and when it is first so no longer; what comes and goes after that is for debugging. */
static void log_crossover(struct learning *l, const struct route_use *use, size_t crossover)
{
	static const char *const directions[] = {"", ", encryption", ", decryption"};
	const enum algorithm_kind kind = algorithms[use->id].kind;
	const char *name = algorithms[use->id].name;
	const char *direction = directions[kind == KIND_SKCIPHER || kind == KIND_AEAD ? 1 + use->decrypt : 0];
	const bool loses = crossover == SIZE_MAX;
	const unsigned said = atomic_load_explicit(&l->said, memory_order_relaxed);
	const enum log_level level = said == (loses ? 0u : 1u) ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;

	if (level == LOG_LEVEL_INFO)
		atomic_store_explicit(&l->said, said + 1, memory_order_relaxed);
	if (loses)
		log_at(level, "%s%s stays in software: as measured so far the kernel loses at every size", name,
		       direction);
	else
		log_at(level, "%s%s goes to the kernel from %zu bytes on, as measured so far", name, direction,
		       crossover);
}

/* Lets others see what was learnt. */
static void publish(struct learning *l, const struct route_use *use)
{
	struct counters_learnt learnt = {0};
	uint32_t mean[COST_LANES];

	learnt.crossover = cost_known(&l->cost) ? cost_crossover(&l->cost) : 0;
	learnt.bytes = cost_usual(&l->cost, mean);
	learnt.software = mean[COST_SOFTWARE];
	learnt.kernel = mean[COST_KERNEL];
	counters_learnt(use->id, use->decrypt, &learnt);
	if (atomic_exchange_explicit(&l->crossover, learnt.crossover, memory_order_relaxed) != learnt.crossover)
		log_crossover(l, use, learnt.crossover);
}

void route_learn(const struct route *r, struct route_use *use)
{
	struct learning *l = learning_of(use);
	uint64_t ns = use->spent + r->meter(use->kernel) - use->start;
	const uint64_t other = cost_expected(&l->cost, use->kernel ? COST_SOFTWARE : COST_KERNEL, use->bytes);
	const unsigned requests = atomic_load_explicit(&l->requests, memory_order_relaxed);

	use->timed = false;
	if (use->begun != 0)
		meter_note(r->clock() - use->begun, ns);
	if (!use->kernel && r->policy == POLICY_SPEED)
		ns = meter_by_clock(ns);
	if (use->kernel && requests < KERNEL_FIRST)
		atomic_store_explicit(&l->requests, requests + 1, memory_order_relaxed);
	if (use->rare && other != 0 && ns > other)
		pay(l, ns - other);
	if (use->again > 0 && ns < COLD_RATIO * other)
		atomic_store_explicit(&l->again, use->again, memory_order_relaxed);
	else {
		cost_note(&l->cost, use->kernel ? COST_KERNEL : COST_SOFTWARE, use->bytes, ns,
			  use->rare || requests < KERNEL_FIRST);
		publish(l, use);
	}
}

void route_opened(const struct route *r, struct route_use *use)
{
	struct learning *l = learning_of(use);
	uint64_t now, mean;

	if (!use->timed || use->open)
		return;
	now = r->meter(true);
	if (use->rare)
		pay(l, now - use->start);
	mean = opening_cost(l, now - use->start);
	mean = (mean * 7 + (now - use->start)) / 8;
	atomic_store_explicit(&l->opening, mean > UINT32_MAX ? UINT32_MAX : (uint32_t)mean + 1, memory_order_relaxed);
	use->start = now;
}

void route_pause(const struct route *r, struct route_use *use)
{
	if (use->timed)
		use->spent += r->meter(use->kernel) - use->start;
	use->begun = 0;
}

void route_resume(const struct route *r, struct route_use *use)
{
	if (use->timed)
		use->start = r->meter(use->kernel);
}

size_t learn_floor(enum algorithm_id id, size_t threshold)
{
	size_t floor = ROUTE_NEVER;

	for (int way = 0; way < 2; way++) {
		const struct cost_table *t = &learnings[id][way].cost;
		const size_t one = cost_known(t) ? cost_crossover(t) : threshold;

		if (one < floor)
			floor = one;
	}
	return floor;
}

/* After so many short messages in a row a long one is not expected. */
#define SHORT_ONES 16u

static atomic_uint short_ones[ALGORITHM_COUNT];

void learn_message(enum algorithm_id id, bool reached_floor)
{
	const unsigned n = atomic_load_explicit(&short_ones[id], memory_order_relaxed);

	if (reached_floor ? n > 0 : n < SHORT_ONES)
		atomic_store_explicit(&short_ones[id], reached_floor ? 0 : n + 1, memory_order_relaxed);
}

bool learn_expects_long(enum algorithm_id id)
{
	return atomic_load_explicit(&short_ones[id], memory_order_relaxed) < SHORT_ONES;
}

void learn_forget(void)
{
	for (size_t i = 0; i < sizeof(prices) / sizeof(*prices); i++)
		atomic_store(&prices[i], 0);
	meter_forget();
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		atomic_store(&short_ones[id], 0);
		for (int way = 0; way < 2; way++) {
			struct learning *l = &learnings[id][way];

			cost_forget(&l->cost);
			atomic_store(&l->opening, 0);
			atomic_store(&l->credit, 0);
			atomic_store(&l->bytes, 0);
			atomic_store(&l->requests, 0);
			atomic_store(&l->calls, 0);
			atomic_store(&l->interval, 0);
			atomic_store(&l->won, false);
			atomic_store(&l->again, 0);
			atomic_store(&l->untimed, 0);
			atomic_store(&l->crossover, 0);
			atomic_store(&l->said, 0);
		}
	}
}
