/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct taking {
	struct snapshot *s;
	const struct snapshot_filter *filter;
};

static bool wanted(const struct snapshot_filter *f, const struct counters_of_slot *slot)
{
	return (f->pid == 0 || slot->pid == f->pid) && (f->name == NULL || strcmp(slot->command, f->name) == 0);
}

static void *need(void *memory)
{
	if (memory != NULL)
		return memory;
	fputs("afalgctl: out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

static void add_process(struct snapshot *s, const struct counters_of_slot *slot)
{
	struct snapshot_process *p;

	s->processes = need(reallocarray(s->processes, s->count + 1, sizeof(*s->processes)));
	p = &s->processes[s->count++];
	p->pid = slot->pid;
	p->owner = slot->owner;
	p->algorithms = slot->algorithms;
	p->policy = slot->policy;
	memcpy(p->command, slot->command, sizeof(p->command));
	p->lines = need(calloc(slot->algorithms, sizeof(*p->lines)));
	memcpy(p->lines, slot->lines, slot->algorithms * sizeof(*p->lines));
}

static void take(const struct counters_of_slot *slot, void *arg)
{
	const struct taking *t = arg;

	if (slot->kind == COUNTERS_OF_PROCESS) {
		if (wanted(t->filter, slot))
			add_process(t->s, slot);
	} else if (t->filter->pid == 0 && t->filter->name == NULL) {
		counters_sum_add(slot->kind == COUNTERS_OF_ENDED ? &t->s->ended : &t->s->others, slot);
	}
}

bool snapshot_take(struct snapshot *s, const char *directory, const struct snapshot_filter *filter)
{
	struct taking t = {s, filter};
	int files;

	memset(s, 0, sizeof(*s));
	files = counters_read(directory, COUNTERS_LIVE, take, &t);
	if (files >= 0 || files == -ENOENT)
		return true;
	fprintf(stderr, "afalgctl: %s: %s\n", directory, strerror(-files));
	return false;
}

void snapshot_free(struct snapshot *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->processes[i].lines);
	free(s->processes);
	s->processes = NULL;
	s->count = 0;
}

const char *snapshot_user(uid_t uid)
{
	static char number[16];
	const struct passwd *user = getpwuid(uid);

	if (user != NULL)
		return user->pw_name;
	snprintf(number, sizeof(number), "%u", (unsigned)uid);
	return number;
}
