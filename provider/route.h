/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lane a call takes: software (the default provider's code) or the kernel (AF_ALG).
 *
 * Each algorithm has a kernel lane, one for the whole process. It is unknown until a call is large enough to need it;
 * it is closed for good when the kernel does not serve the algorithm, rests for a while after a passing failure, and is
 * open otherwise. The policy then says from how many bytes on a call takes it.
 */
#ifndef PROVIDER_ROUTE_H
#define PROVIDER_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "algorithms.h"

enum policy {
	POLICY_SPEED,    /* least wall time */
	POLICY_CPU,      /* least CPU time of the caller */
	POLICY_KERNEL,   /* the kernel wherever it can do the work */
	POLICY_SOFTWARE, /* never the kernel */
};

/* A threshold that no call reaches. */
#define ROUTE_NEVER SIZE_MAX

/* The largest threshold that can be set, in bytes: a digest holds back that much. */
#define ROUTE_THRESHOLD_MAX 1048576u

struct route {
	enum policy policy;
	size_t thresholds[ALGORITHM_COUNT]; /* bytes from which on a call may take the kernel lane */
	bool set_by_user[ALGORITHM_COUNT];  /* then any driver will do, not only hardware */
	uint64_t (*clock)(void);            /* nanoseconds; a parameter so that tests can drive it */
};

/* Sets the policy, and the thresholds that go with it except those set by the user. */
void route_init(struct route *r, enum policy policy);

/* Sets one threshold as the user wishes (bytes, or ROUTE_NEVER). */
void route_set_threshold(struct route *r, enum algorithm_id id, size_t bytes);

/*
 * Whether any call could ever take the kernel lane, as far as can be told without binding anything: AF_ALG is there,
 * the policy and the threshold allow it, and the kernel lists a driver that may win.
 */
bool route_possible(const struct route *r, enum algorithm_id id);

/* Leaves the algorithm to software: what was not possible at load stays so. */
static inline void route_exclude(struct route *r, enum algorithm_id id)
{
	r->thresholds[id] = ROUTE_NEVER;
}

static inline bool route_excluded(const struct route *r, enum algorithm_id id)
{
	return r->thresholds[id] == ROUTE_NEVER;
}

/* The least bytes of a call that could take the kernel lane: what a context compares with before it looks any closer.
 */
size_t route_floor(const struct route *r, enum algorithm_id id);

/*
 * Whether a call of `bytes` takes the kernel lane. The first question about an algorithm may ask the kernel what it
 * serves. A hash asks at its first bytes, since what starts in one lane stays there: yes then means that it may still
 * reach the threshold. Its first ROUTE_ASK bytes in one call are enough to ask the kernel.
 */
bool route_take(const struct route *r, enum algorithm_id id, size_t bytes);
#define ROUTE_ASK 4096u

/*
 * Notes what became of the kernel lane's work: 0 or a negative errno. An algorithm that cannot be opened (`opened`
 * false) for a reason that lasts closes the lane; all else passes, and the lane rests, longer after each failure in a
 * row.
 */
void route_outcome(const struct route *r, enum algorithm_id id, bool opened, int error);

/* Forgets what is known of all lanes; for tests. */
void route_forget(void);

#endif
