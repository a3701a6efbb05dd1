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

/* Which drivers of the kernel a call may go to: USE_SOFTDRIVERS of the engines devcrypto and afalg_engine. */
enum drivers {
	DRIVERS_BY_POLICY, /* hardware; any where the user has set a threshold, or the policy is kernel */
	DRIVERS_HARDWARE,
	DRIVERS_NOT_SOFTWARE, /* what is not known to be software */
	DRIVERS_ANY,
};

/* A threshold that no call reaches. */
#define ROUTE_NEVER SIZE_MAX

/* The largest threshold that can be set, in bytes: a digest holds back that much. */
#define ROUTE_THRESHOLD_MAX 1048576u

struct route {
	/* Checks an algorithm before its first use in the kernel (check.h); null: they are all trusted. */
	int (*check)(const struct route *r, enum algorithm_id id);
	enum policy policy;
	size_t thresholds[ALGORITHM_COUNT]; /* bytes from which on a call may take the kernel lane */
	bool set_by_user[ALGORITHM_COUNT];  /* then nothing is learnt */
	enum drivers drivers[ALGORITHM_COUNT];
	uint64_t (*clock)(void);        /* nanoseconds; a parameter so that tests can drive it */
	uint64_t (*meter)(bool kernel); /* what costs are counted in, nanoseconds, by lane (meter.h) */
};

/*
 * One user of an algorithm: a context, or a message. The owner sets the first three before a call asks for its lane;
 * the rest is the router's, to learn from the call.
 */
struct route_use {
	enum algorithm_id id;
	bool decrypt;
	bool open;          /* the kernel has its key already */
	bool kernel;        /* the lane of the call under way */
	bool timed, rare;   /* whether its time is taken, and whether it is a probe */
	unsigned again;     /* so many more probes are to follow at once, since the device may have been idle */
	bool lead;          /* the lane of the last call that asked */
	unsigned followers; /* so many calls of the same size do as that one did */
	uint32_t forgone;   /* nanoseconds lost by not having opened so far */
	size_t bytes;       /* of the call under way */
	size_t passed;      /* bytes that went to software without asking */
	uint64_t start, spent;
	uint64_t begun; /* the call in software: by the clock */
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
 * serves. What is learnt decides, and a few calls are sent the other way to learn more. After false the call may be
 * followed by route_done(), after true it must be by route_outcome().
 */
bool route_take(const struct route *r, struct route_use *use, size_t bytes);

/*
 * Whether a message of `bytes` so far should be held back, since its algorithm may be the kernel's from some size on.
 * Its first ROUTE_ASK bytes in one call are enough to ask the kernel.
 */
bool route_waits(const struct route *r, enum algorithm_id id, size_t bytes);
#define ROUTE_ASK 4096u

/* Whether a call below the floor should be let through to route_take() now and then, since more may be learnt. */
bool route_learns(const struct route *r, enum algorithm_id id);

/* The call has succeeded, and its time was taken. */
void route_learn(const struct route *r, struct route_use *use);

/* The software lane has done the call. */
static inline void route_done(const struct route *r, struct route_use *use)
{
	if (use->timed && !use->kernel)
		route_learn(r, use);
}

/* There is another key, for which the kernel lane has yet to be opened. */
static inline void route_new_key(struct route_use *use)
{
	use->forgone = 0;
	use->followers = 0;
}

/* The kernel lane has been opened for the call, which costs something by itself. */
void route_opened(const struct route *r, struct route_use *use);

/* A message in the kernel waits for more bytes, and goes on: its time does not count meanwhile. */
void route_pause(const struct route *r, struct route_use *use);
void route_resume(const struct route *r, struct route_use *use);

/*
 * Notes what became of the kernel lane's work: 0 or a negative errno. An algorithm that cannot be opened (`opened`
 * false) for a reason that lasts closes the lane; all else passes, and the lane rests, longer after each failure in a
 * row.
 */
void route_outcome(const struct route *r, struct route_use *use, bool opened, int error);

/* Forgets what is known of all lanes; for tests. */
void route_forget(void);

#endif
