/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "../provider/algorithms.h"
#include "numbers.h"

/*** States ***/

static const struct state {
	const char *state, *cause, *text;
} states[COUNTERS_LANES] = {
	[COUNTERS_LANE_UNASKED] = {"unasked", NULL, "not asked yet"},
	[COUNTERS_LANE_OPEN] = {"open", NULL, "open"},
	[COUNTERS_LANE_RESTS] = {"rests", "passing", "rests"},
	[COUNTERS_LANE_NO_HARDWARE] = {"closed", "no_hardware", "closed: slower, no hardware"},
	[COUNTERS_LANE_OUT_OF_REACH] = {"closed", "out_of_reach", "closed: hardware out of reach"},
	[COUNTERS_LANE_BLOCKED] = {"closed", "blocked", "closed: blocked"},
	[COUNTERS_LANE_BROKEN] = {"closed", "broken", "closed: broken"},
};

static const struct state slower = {"closed", "slower", "closed: slower at every size"};
static const struct state unknown = {"unknown", NULL, "unknown"};

static uint64_t rest_left(const struct counters_numbers *n)
{
	struct timespec t;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return n->lane == COUNTERS_LANE_RESTS && n->rest_until > now ? n->rest_until - now : 0;
}

static bool learnt(const struct counters_numbers *n, int way)
{
	return n->way[way].bytes != 0;
}

/* Whether the kernel was measured in some direction, and has lost in each that it was measured in. */
static bool loses(const struct counters_numbers *n)
{
	bool lost = false;

	for (int way = 0; way < 2; way++) {
		if (learnt(n, way) && n->way[way].crossover != COUNTERS_NEVER)
			return false;
		lost = lost || learnt(n, way);
	}
	return lost;
}

static const struct state *state_of(const struct counters_numbers *n)
{
	uint32_t lane = n->lane;

	if (lane >= COUNTERS_LANES)
		return &unknown;
	if (lane == COUNTERS_LANE_RESTS && rest_left(n) == 0)
		lane = COUNTERS_LANE_OPEN; /* tried again by the next call */
	return lane == COUNTERS_LANE_OPEN && loses(n) ? &slower : &states[lane];
}

const char *lanes_state(const struct counters_numbers *n)
{
	static char text[160];
	const struct state *s = state_of(n);
	const int error = n->lane_errno < 4096 ? (int)n->lane_errno : 0;

	if (s == &states[COUNTERS_LANE_RESTS])
		snprintf(text, sizeof(text), "rests %u ms: %s", (unsigned)(rest_left(n) / 1000000),
			 error != 0 ? strerror(error) : "?");
	else if (s == &states[COUNTERS_LANE_BROKEN])
		snprintf(text, sizeof(text), "%s: %s", s->text,
			 error == EILSEQ ? "its results are wrong" : "it does not answer");
	else if (s != &states[COUNTERS_LANE_OPEN] && s != &slower && error != 0)
		snprintf(text, sizeof(text), "%s: %s", s->text, strerror(error));
	else
		snprintf(text, sizeof(text), "%s", s->text);
	return text;
}

const char *lanes_policy(uint32_t policy)
{
	static const char *const names[] = {"-", "speed", "cpu", "kernel", "software"};

	return names[policy < sizeof(names) / sizeof(*names) ? policy : 0];
}

/*** Failures ***/

static const char *const cause_names[COUNTERS_CAUSES] = {
#define CAUSE(name) #name,
	COUNTERS_CAUSE_LIST(CAUSE)
#undef CAUSE
		"other"};

const char *lanes_causes(const struct counters_numbers *n)
{
	static char text[COUNTERS_CAUSES * 28];
	size_t length = 0;

	snprintf(text, sizeof(text), "-");
	for (int i = 0; i < COUNTERS_CAUSES; i++)
		if (n->causes[i] != 0)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %u",
						   length > 0 ? ", " : "", cause_names[i], n->causes[i]);
	return text;
}

/*** Text ***/

void lanes_head(struct table *t)
{
	static const char *const cells[] = {"ALGORITHM", "WAY",    "KERNEL FROM", "US SOFTWARE", "US KERNEL",
					    "AT BYTES",  "DRIVER", "KERNEL LANE", NULL};

	numbers_cells(t, cells);
}

static void add_microseconds(struct table *t, uint32_t ns)
{
	if (ns == 0)
		table_add(t, "-");
	else
		table_add(t, "%.1f", ns / 1000.0);
}

static const char *way_name(const char *algorithm, int way)
{
	const int id = algorithm_find(algorithm, strlen(algorithm));
	const bool both = id >= 0 && (algorithms[id].kind == KIND_SKCIPHER || algorithms[id].kind == KIND_AEAD);

	return way == 1 ? "decrypt" : both ? "encrypt" : "-";
}

static void add_line(struct table *t, const char *const *prefix, const struct counters_line *line, int way)
{
	const struct counters_numbers *n = &line->n;

	numbers_cells(t, prefix);
	table_add(t, "%s", line->algorithm);
	table_add(t, "%s", learnt(n, way) ? way_name(line->algorithm, way) : "-");
	if (n->way[way].crossover == 0)
		table_add(t, "-");
	else if (n->way[way].crossover == COUNTERS_NEVER)
		table_add(t, "never");
	else
		table_add(t, "%u", n->way[way].crossover);
	add_microseconds(t, n->way[way].software);
	add_microseconds(t, n->way[way].kernel);
	if (learnt(n, way))
		table_add(t, "%u", n->way[way].bytes);
	else
		table_add(t, "-");
	table_add(t, "%s", line->driver[0] != '\0' ? line->driver : "-");
	table_add(t, "%s", lanes_state(n));
}

void lanes_rows(struct table *t, const char *const *prefix, const struct counters_line *lines, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!counters_lane_known(&lines[i].n))
			continue;
		if (learnt(&lines[i].n, 0) || !learnt(&lines[i].n, 1))
			add_line(t, prefix, &lines[i], 0);
		if (learnt(&lines[i].n, 1))
			add_line(t, prefix, &lines[i], 1);
	}
}

void lanes_explain(FILE *out)
{
	fputs("KERNEL FROM: bytes of a call from which on the kernel was found to win; US: mean microseconds of a\n"
	      "call of AT BYTES or somewhat more, of the few calls whose time is taken; -: not measured\n",
	      out);
}

/*** JSON ***/

static void known(struct json *j, const char *key, uint32_t value)
{
	if (value != 0)
		json_number(j, key, value);
	else
		json_null(j, key);
}

static void way_json(struct json *j, const struct counters_numbers *n, const char *key, int way)
{
	const uint32_t crossover = n->way[way].crossover;

	if (!learnt(n, way)) {
		json_null(j, key);
		return;
	}
	json_open_object(j, key);
	json_bool(j, "never", crossover == COUNTERS_NEVER);
	known(j, "kernel_from", crossover == COUNTERS_NEVER ? 0 : crossover);
	json_number(j, "bytes", n->way[way].bytes);
	known(j, "software_ns", n->way[way].software);
	known(j, "kernel_ns", n->way[way].kernel);
	json_close(j);
}

void lanes_json(struct json *j, const struct counters_numbers *n)
{
	const struct state *s = state_of(n);

	json_open_object(j, "lane");
	json_text(j, "state", s->state);
	json_text(j, "cause", s->cause);
	json_number(j, "errno", s->cause == NULL || s == &slower ? 0 : n->lane_errno);
	json_number(j, "rest_ms", rest_left(n) / 1000000);
	way_json(j, n, "encrypt", 0);
	way_json(j, n, "decrypt", 1);
	json_close(j);
}

void lanes_causes_json(struct json *j, const struct counters_numbers *n)
{
	json_open_object(j, "causes");
	for (int i = 0; i < COUNTERS_CAUSES; i++)
		if (n->causes[i] != 0)
			json_number(j, cause_names[i], n->causes[i]);
	json_close(j);
}
