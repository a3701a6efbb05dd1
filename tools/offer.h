/* SPDX-License-Identifier: Apache-2.0 */
/* What the running kernel offers for each algorithm, and what afalgprov makes of it with its default settings. */
#ifndef TOOLS_OFFER_H
#define TOOLS_OFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "../afalg/catalogue.h"
#include "../provider/algorithms.h"

/* What the kernel answered. */
struct offer {
	int error;       /* 0: the driver is known; else a negative errno */
	bool unreadable; /* /proc/crypto cannot be read, so that the driver is not known; errno in `error` */
	struct afalg_driver driver;
};

/* Asks the kernel, once for each of its names, which may load modules. */
const struct offer *offer_of(enum algorithm_id id);

enum lane_state { LANE_CLOSED, LANE_OPEN, LANE_UNKNOWN };

enum lane_cause {
	CAUSE_HARDWARE,
	CAUSE_CHOSEN, /* a random generator, for those who name it */
	CAUSE_NO_AFALG,
	CAUSE_UNREADABLE,
	CAUSE_NOT_SERVED,
	CAUSE_REFUSED,
	CAUSE_OUT_OF_REACH,
	CAUSE_SOFTWARE,
	CAUSE_UNKNOWN_DRIVER,
};

/* The kernel lane under the default policy. */
struct lane {
	enum lane_state state;
	enum lane_cause cause;
	size_t least;     /* LANE_OPEN: the bytes of a call from which on it is taken */
	char reason[400]; /* in words */
};

void lane_of(enum algorithm_id id, struct lane *lane);

/* "open" and so on; "hardware", "no_af_alg" and so on. */
const char *lane_state_name(enum lane_state state);
const char *lane_cause_name(enum lane_cause cause);

/* "cipher", "aead", "digest", "mac" or "random". */
const char *offer_kind_name(enum algorithm_kind kind);

/*
 * Marks the rows that a name stands for: ours, the kernel's, the name of a whole family such as HMAC, or any other of
 * OpenSSL's. false: there is none.
 */
bool offer_choose(const char *name, bool chosen[ALGORITHM_COUNT]);

#endif
