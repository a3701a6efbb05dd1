/* SPDX-License-Identifier: Apache-2.0 */
#include "running.h"

#include <stdio.h>
#include <string.h>

#include "lanes.h"
#include "snapshot.h"

/* Read once: what `afalgctl list` shows is of one moment. Where it cannot be read nobody runs. */
static const struct snapshot *snapshot(void)
{
	static const struct snapshot_filter all = {0, NULL};
	static struct snapshot s;
	static bool taken;

	if (!taken)
		snapshot_take(&s, COUNTERS_DIRECTORY, &all);
	taken = true;
	return &s;
}

/* What the process knows of the algorithm; null: nothing. */
static const struct counters_numbers *known(const struct snapshot_process *p, const char *algorithm)
{
	for (uint32_t i = 0; i < p->algorithms; i++)
		if (strcmp(p->lines[i].algorithm, algorithm) == 0)
			return counters_lane_known(&p->lines[i].n) ? &p->lines[i].n : NULL;
	return NULL;
}

void running_text(const char *algorithm, char *text, size_t size)
{
	const struct snapshot *s = snapshot();
	unsigned win = 0, lose = 0;
	uint32_t least = UINT32_MAX, most = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct counters_numbers *n = known(&s->processes[i], algorithm);
		uint32_t from = 0; /* the lesser of both directions */

		for (int way = 0; n != NULL && way < 2; way++)
			if (n->way[way].crossover != 0 && (from == 0 || n->way[way].crossover < from))
				from = n->way[way].crossover;
		if (from == COUNTERS_NEVER)
			lose++;
		if (from == 0 || from == COUNTERS_NEVER)
			continue;
		win++;
		least = from < least ? from : least;
		most = from > most ? from : most;
	}
	text[0] = '\0';
	if (win > 0 && least != most)
		snprintf(text, size, "running programs where the kernel wins: %u, from %u to %u bytes on", win, least,
			 most);
	else if (win > 0)
		snprintf(text, size, "running programs where the kernel wins: %u, from %u bytes on", win, least);
	if (lose > 0)
		snprintf(text + strlen(text), size - strlen(text), "%s: %u",
			 win > 0 ? "; where it loses at every size"
				 : "running programs where the kernel loses at every size",
			 lose);
}

void running_json(struct json *j, const char *algorithm)
{
	const struct snapshot *s = snapshot();

	json_open_array(j, "processes");
	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_process *p = &s->processes[i];
		const struct counters_numbers *n = known(p, algorithm);

		if (n == NULL)
			continue;
		json_open_object(j, NULL);
		json_signed(j, "pid", p->pid);
		json_text(j, "command", p->command);
		json_text(j, "policy", p->policy != 0 ? lanes_policy(p->policy) : NULL);
		lanes_json(j, n);
		json_close(j);
	}
	json_close(j);
}
