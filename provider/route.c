/* SPDX-License-Identifier: Apache-2.0 */
#include "route.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../afalg/catalogue.h"
#include "cost.h"
#include "counters.h"
#include "learn.h"
#include "log.h"
#include "meter.h"

/* Where hardware has been found to win on the boards measured so far; below, two system calls cost more than they save.
 */
#define SPEED_THRESHOLD 16384u
/* A device that gives the CPU back is worth a longer wait. */
#define CPU_THRESHOLD 4096u

/* A rest after a passing failure, and its double after each further one, up to the longest. Nanoseconds. */
#define REST_FIRST 10000000u
#define REST_LONGEST 10000000000u

enum trust { TRUST_UNKNOWN, TRUST_ASKING, TRUST_EARNED };

/* What is known of the driver; the later, the more may go to it. */
enum hardware { HARDWARE_UNKNOWN, HARDWARE_ASKING, HARDWARE_NO, HARDWARE_UNSURE, HARDWARE_YES };

/* The kernel lane of an algorithm. Lock-free: every field stands for itself. */
struct lane {
	atomic_int closed; /* negative errno that closed it for good; 0: not closed */
	atomic_int hardware;
	atomic_int trust;
	atomic_uint failures;        /* passing ones in a row */
	_Atomic uint64_t rest_until; /* 0: does not rest */
	_Atomic uint64_t passed;     /* bytes of calls below the threshold, before the kernel was asked */
};

static struct lane lanes[ALGORITHM_COUNT];

/* Only so much work below the threshold is worth finding out whether the kernel could have done it. Bytes. */
#define PASSED_MUCH (1u << 19)

void route_init(struct route *r, enum policy policy)
{
	static const size_t defaults[] = {
		[POLICY_SPEED] = SPEED_THRESHOLD,
		[POLICY_CPU] = CPU_THRESHOLD,
		[POLICY_KERNEL] = 1,
		[POLICY_SOFTWARE] = ROUTE_NEVER,
	};

	r->policy = policy;
	r->clock = meter_clock;
	r->meter = policy == POLICY_CPU ? meter_processor : meter_time;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (!r->set_by_user[id])
			r->thresholds[id] = algorithms[id].kind == KIND_RNG ? 1 : defaults[policy];
}

void route_set_threshold(struct route *r, enum algorithm_id id, size_t bytes)
{
	r->thresholds[id] = bytes;
	r->set_by_user[id] = true;
}

/* Whether the threshold holds as it is, and nothing is learnt. Who names a random generator wants that, not speed. */
static bool fixed(const struct route *r, enum algorithm_id id)
{
	return r->policy == POLICY_KERNEL || r->set_by_user[id] || algorithms[id].kind == KIND_RNG;
}

static enum drivers drivers(const struct route *r, enum algorithm_id id)
{
	if (algorithms[id].kind == KIND_RNG)
		return DRIVERS_ANY;
	if (r->drivers[id] != DRIVERS_BY_POLICY)
		return r->drivers[id];
	return fixed(r, id) ? DRIVERS_ANY : DRIVERS_HARDWARE;
}

static bool any_driver(const struct route *r, enum algorithm_id id)
{
	return drivers(r, id) == DRIVERS_ANY;
}

/* Whether calls may go to a driver of which so much is known. */
static bool may_serve(const struct route *r, enum algorithm_id id, int hardware)
{
	return any_driver(r, id) || hardware == HARDWARE_YES ||
	       (hardware == HARDWARE_UNSURE && drivers(r, id) == DRIVERS_NOT_SOFTWARE);
}

static bool is_asked(int hardware)
{
	return hardware != HARDWARE_UNKNOWN && hardware != HARDWARE_ASKING;
}

static size_t threshold(const struct route *r, enum algorithm_id id)
{
	if (r->policy == POLICY_SOFTWARE || r->thresholds[id] == ROUTE_NEVER)
		return ROUTE_NEVER;
	return r->policy == POLICY_KERNEL ? 1 : r->thresholds[id];
}

bool route_possible(const struct route *r, enum algorithm_id id)
{
	const struct algorithm *a = &algorithms[id];

	if (threshold(r, id) == ROUTE_NEVER || afalg_catalogue_support() != 0)
		return false;
	return any_driver(r, id) || afalg_catalogue_hints_hardware(algorithm_type(a->kind), a->kernel);
}

size_t route_floor(const struct route *r, enum algorithm_id id)
{
	struct lane *lane = &lanes[id];
	const int hardware = atomic_load_explicit(&lane->hardware, memory_order_relaxed);

	if (atomic_load_explicit(&lane->closed, memory_order_relaxed) != 0)
		return ROUTE_NEVER;
	if (is_asked(hardware) && !may_serve(r, id, hardware))
		return ROUTE_NEVER;
	if (fixed(r, id) || !may_serve(r, id, hardware))
		return threshold(r, id);
	return learn_floor(id, threshold(r, id));
}

bool route_learns(const struct route *r, enum algorithm_id id)
{
	const struct lane *lane = &lanes[id];
	const int hardware = atomic_load_explicit(&lane->hardware, memory_order_relaxed);

	return !fixed(r, id) && threshold(r, id) != ROUTE_NEVER &&
	       atomic_load_explicit(&lane->closed, memory_order_relaxed) == 0 &&
	       (!is_asked(hardware) || may_serve(r, id, hardware));
}

static void close_lane(struct lane *lane, enum algorithm_id id, int error)
{
	const bool broken = error == -EILSEQ || error == -ETIMEDOUT;
	int open = 0;

	if (!atomic_compare_exchange_strong(&lane->closed, &open, error))
		return;
	counters_lane(id, broken ? COUNTERS_LANE_BROKEN : COUNTERS_LANE_BLOCKED, error);
	if (broken)
		log_error("%s stays in software: %s", algorithms[id].name, afalg_explain(error));
	else
		log_info("%s stays in software: %s (%s)", algorithms[id].name, afalg_explain(error), strerror(-error));
}

/* Tells others what the kernel has, and whether calls go there. */
static void tell_driver(enum algorithm_id id, const struct afalg_driver *driver, bool serves, int error)
{
	const bool out_of_reach = driver->out_of_reach[0] != '\0';
	const char *name = algorithms[id].name;

	counters_lane(id,
		      serves         ? COUNTERS_LANE_OPEN
		      : out_of_reach ? COUNTERS_LANE_OUT_OF_REACH
				     : COUNTERS_LANE_NO_HARDWARE,
		      error);
	if (serves)
		counters_driver(id, driver->name);
	if (driver->class == AFALG_HARDWARE)
		log_info("%s goes to %s: hardware (%s)", name, driver->name, driver->evidence);
	else if (out_of_reach)
		log_info("%s stays in software: this kernel keeps %s from AF_ALG", name, driver->out_of_reach);
	else if (serves)
		log_info("%s goes to %s: not known to be software (%s)", name, driver->name, driver->evidence);
	else
		log_info("%s stays in software: the kernel has no hardware driver for it", name);
}

/* Asks the kernel, once, whether hardware serves the algorithm. Other threads stay in software meanwhile. */
static void ask_hardware(const struct route *r, struct lane *lane, enum algorithm_id id)
{
	static const enum hardware known[] = {
		[AFALG_UNKNOWN] = HARDWARE_UNSURE, [AFALG_SOFTWARE] = HARDWARE_NO, [AFALG_HARDWARE] = HARDWARE_YES};
	const struct algorithm *a = &algorithms[id];
	struct afalg_driver driver = {.class = AFALG_UNKNOWN};
	int unknown = HARDWARE_UNKNOWN, err;

	if (!atomic_compare_exchange_strong(&lane->hardware, &unknown, HARDWARE_ASKING))
		return;
	err = afalg_catalogue_find(algorithm_type(a->kind), a->kernel, false, &driver);
	if (err != 0)
		driver.class = AFALG_SOFTWARE; /* none that could be used */
	atomic_store(&lane->hardware, (int)known[driver.class]);
	tell_driver(id, &driver, may_serve(r, id, (int)known[driver.class]), err);
}

/* Whether the lane exists and is none of those that lose by construction. */
static bool lane_open(const struct route *r, enum algorithm_id id)
{
	struct lane *lane = &lanes[id];

	if (atomic_load_explicit(&lane->closed, memory_order_relaxed) != 0)
		return false;
	if (any_driver(r, id))
		return true;
	if (atomic_load(&lane->hardware) == HARDWARE_UNKNOWN)
		ask_hardware(r, lane, id);
	return may_serve(r, id, atomic_load(&lane->hardware));
}

static bool rests(const struct route *r, struct lane *lane)
{
	uint64_t until = atomic_load_explicit(&lane->rest_until, memory_order_relaxed);

	return until != 0 && r->clock() < until;
}

/* Whoever was asking is not in the child. */
static void child_asks_anew(void)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		int asking = HARDWARE_ASKING;

		atomic_compare_exchange_strong(&lanes[id].hardware, &asking, HARDWARE_UNKNOWN);
		asking = TRUST_ASKING;
		atomic_compare_exchange_strong(&lanes[id].trust, &asking, TRUST_UNKNOWN);
	}
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, child_asks_anew);
}

/* Who wants the kernel, not speed, waits while another thread asks; but not for ever. */
static bool await_trust(struct lane *lane)
{
	const struct timespec moment = {0, 100000};

	for (unsigned i = 0; i < 30000 && atomic_load(&lane->trust) == TRUST_ASKING; i++)
		nanosleep(&moment, NULL);
	return atomic_load(&lane->trust) == TRUST_EARNED;
}

/* By whatever driver, which nobody has asked for. */
static void open_lane(const struct route *r, enum algorithm_id id)
{
	counters_lane(id, COUNTERS_LANE_OPEN, 0);
	log_info("%s goes to the kernel by whatever driver: %s", algorithms[id].name,
		 r->policy == POLICY_KERNEL ? "policy=kernel"
		 : r->set_by_user[id]       ? "a threshold is set"
					    : "it was asked for by name");
}

/* Whether the kernel has shown that its results are right. One thread asks, the others stay in software meanwhile. */
static bool trusted(const struct route *r, struct route_use *use)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lane *lane = &lanes[use->id];
	int unknown = TRUST_UNKNOWN, err;

	if (r->check == NULL || atomic_load_explicit(&lane->trust, memory_order_acquire) == TRUST_EARNED)
		return true;
	pthread_once(&once, watch_forks);
	if (!atomic_compare_exchange_strong(&lane->trust, &unknown, TRUST_ASKING))
		return fixed(r, use->id) && await_trust(lane);
	err = r->check(r, use->id);
	if (use->timed) /* the check is no part of the call */
		use->start = r->meter(use->kernel);
	atomic_store_explicit(&lane->trust, err == 0 ? TRUST_EARNED : TRUST_UNKNOWN, memory_order_release);
	if (err == 0 && any_driver(r, use->id))
		open_lane(r, use->id);
	if (err == -EILSEQ || err == -ETIMEDOUT)
		close_lane(lane, use->id, err);
	else if (err != 0)
		route_outcome(r, use, false, err);
	return err == 0;
}

bool route_waits(const struct route *r, enum algorithm_id id, size_t bytes)
{
	if (threshold(r, id) == ROUTE_NEVER)
		return false;
	if (!fixed(r, id) && bytes < ROUTE_ASK && !may_serve(r, id, atomic_load(&lanes[id].hardware)))
		return false;
	return lane_open(r, id) && !rests(r, &lanes[id]);
}

/* Whether a call below the threshold may ask the kernel what it has. */
static bool much_passed(struct lane *lane, struct route_use *use, size_t bytes)
{
	const uint64_t more = bytes + use->passed;

	use->passed = 0;
	return atomic_fetch_add_explicit(&lane->passed, more, memory_order_relaxed) + more >= PASSED_MUCH;
}

/* What the policy, the state of the lane and what was learnt have to say. */
static void choose(const struct route *r, struct route_use *use, size_t bytes)
{
	struct lane *lane = &lanes[use->id];
	const size_t least = threshold(r, use->id);

	if (least == ROUTE_NEVER || atomic_load_explicit(&lane->closed, memory_order_relaxed) != 0)
		return;
	if (fixed(r, use->id)) {
		use->kernel = bytes >= least && lane_open(r, use->id) && !rests(r, lane);
		return;
	}
	if (bytes < COST_LEAST)
		return;
	if (atomic_load_explicit(&lane->hardware, memory_order_relaxed) == HARDWARE_UNKNOWN && bytes < least &&
	    !much_passed(lane, use, bytes))
		return;
	if (lane_open(r, use->id) && !rests(r, lane))
		learn_choose(r, use, bytes, least);
}

bool route_take(const struct route *r, struct route_use *use, size_t bytes)
{
	use->timed = use->kernel = false;
	choose(r, use, bytes);
	if (use->kernel && !trusted(r, use))
		use->timed = use->kernel = false;
	return use->kernel;
}

/* Errors that say nothing about the next try. */
static bool passing(int error)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EIO, EBUSY, EAGAIN, EINTR, ESTALE, ETIMEDOUT};

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i] == -error)
			return true;
	return false;
}

void route_outcome(const struct route *r, struct route_use *use, bool opened, int error)
{
	const enum algorithm_id id = use->id;
	struct lane *lane = &lanes[id];
	uint64_t rest = REST_FIRST, until;

	if (error == 0) {
		if (use->timed)
			route_learn(r, use);
		if (atomic_load_explicit(&lane->failures, memory_order_relaxed) != 0) {
			atomic_store(&lane->failures, 0);
			atomic_store(&lane->rest_until, 0);
			counters_lane(id, COUNTERS_LANE_OPEN, 0);
		}
		return;
	}
	use->timed = false;
	if (!opened && !passing(error)) {
		close_lane(lane, id, error);
		return;
	}
	for (unsigned n = atomic_fetch_add(&lane->failures, 1); n > 0 && rest < REST_LONGEST; n--)
		rest *= 2;
	until = r->clock() + (rest < REST_LONGEST ? rest : REST_LONGEST);
	atomic_store(&lane->rest_until, until);
	counters_lane_rests(id, error, until);
	log_debug("%s rests for %llu ms in software: %s", algorithms[id].name, (unsigned long long)(rest / 1000000),
		  strerror(-error));
}

void route_forget(void)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		atomic_store(&lanes[id].closed, 0);
		atomic_store(&lanes[id].hardware, HARDWARE_UNKNOWN);
		atomic_store(&lanes[id].failures, 0);
		atomic_store(&lanes[id].trust, TRUST_UNKNOWN);
		atomic_store(&lanes[id].rest_until, 0);
		atomic_store(&lanes[id].passed, 0);
	}
	learn_forget();
}
