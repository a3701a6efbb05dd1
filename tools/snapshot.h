/* SPDX-License-Identifier: Apache-2.0 */
/* All running processes that count, at one moment. */
#ifndef TOOLS_SNAPSHOT_H
#define TOOLS_SNAPSHOT_H

#include "counters_read.h"

struct snapshot_process {
	pid_t pid;
	uid_t owner;
	char command[sizeof(((struct counters_of_slot *)0)->command)];
	uint32_t algorithms, policy;
	struct counters_line *lines;
};

struct snapshot {
	size_t count;
	struct snapshot_process *processes;
	struct counters_sum ended, others; /* of the families that still run */
};

/* What to look for: a process number, a command's name, or all. */
struct snapshot_filter {
	pid_t pid;        /* 0: any */
	const char *name; /* null: any */
};

/* Reads the directory; prints what is wrong on stderr and returns false. No directory: nobody counts. */
bool snapshot_take(struct snapshot *s, const char *directory, const struct snapshot_filter *filter);
void snapshot_free(struct snapshot *s);

/* The name of a user, or the number; valid until the next call. */
const char *snapshot_user(uid_t uid);

#endif
