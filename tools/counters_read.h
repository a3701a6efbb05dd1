/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files that provider/counters.c writes, of this build or another. Every user may put files into the
 * directory, so nothing in them is believed: each is copied into memory of our own, bounded and checked, and what is
 * text is made printable. What a file says is still only what its owner says.
 */
#ifndef TOOLS_COUNTERS_READ_H
#define TOOLS_COUNTERS_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../provider/counters.h"

/* As struct counts, field by field. */
struct counters_numbers {
	uint64_t software_calls, software_bytes, kernel_requests, kernel_bytes, fallbacks, errors;
	uint32_t causes[COUNTERS_CAUSES];
	uint64_t direct; /* not 0: of some processes the software calls are not counted */
	/* Of a process, not of sums. */
	uint64_t rest_until;
	uint32_t lane, lane_errno; /* not believed either: the first may be no enum counters_lane */
	struct {
		uint32_t crossover, bytes, software, kernel;
	} way[2];
};

struct counters_line {
	char algorithm[COUNTERS_NAME_SIZE];
	char driver[COUNTERS_DRIVER_SIZE]; /* of hardware, where some process of the file has found it; else empty */
	struct counters_numbers n;
};

enum counters_kind {
	COUNTERS_OF_PROCESS,
	COUNTERS_OF_ENDED,  /* all processes of the file that have ended */
	COUNTERS_OF_OTHERS, /* all that found no slot of their own */
};

struct counters_of_slot {
	enum counters_kind kind;
	pid_t pid; /* of a process; 0: the slot is free */
	char command[sizeof(((struct counters_slot *)0)->command) + 1];
	uid_t owner;     /* of the file */
	uint32_t policy; /* as in struct counters_slot */
	uint32_t algorithms;
	const struct counters_line *lines; /* one for each algorithm; valid during the call */
};

typedef void counters_slot_fn(const struct counters_of_slot *slot, void *arg);

enum counters_which {
	COUNTERS_ALL, /* every slot */
	/* Files and slots of running processes; a file without any is removed, where that is permitted. */
	COUNTERS_LIVE,
};

/*
 * Calls `fn` for the slots of all files in `directory`, in the order of the files' names. A file that is not sound is
 * skipped with a line on stderr. Returns how many files were read, or the negative errno of opening the directory.
 */
int counters_read(const char *directory, enum counters_which which, counters_slot_fn *fn, void *arg);

/* Sums by algorithm; all zero to begin with. Names beyond the first COUNTERS_SUM_MAX are left out. */
#define COUNTERS_SUM_MAX 128
struct counters_sum {
	uint32_t count;
	struct counters_line lines[COUNTERS_SUM_MAX];
};

/* Whether nothing was counted; `direct` is no count, nor is what holds for a process. */
bool counters_idle(const struct counters_numbers *n);

/* Whether something is known of the kernel lane, or of what calls cost. */
bool counters_lane_known(const struct counters_numbers *n);

/* Adds the algorithms of a slot that have a number other than zero. */
void counters_sum_add(struct counters_sum *sum, const struct counters_of_slot *slot);

/* Adds every slot in `directory`; returns what counters_read() does. */
int counters_sum_directory(struct counters_sum *sum, const char *directory);

/* What all slots in `directory` have counted of one algorithm. Not for several threads. */
struct counters_numbers counters_of_algorithm(const char *directory, const char *algorithm);

#endif
