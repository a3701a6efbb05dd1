/* SPDX-License-Identifier: Apache-2.0 */
/* What the router of a running process knows of its kernel lanes, in words and as JSON. */
#ifndef TOOLS_LANES_H
#define TOOLS_LANES_H

#include "counters_read.h"
#include "json.h"
#include "table.h"

/* The state in a few words: "open", "rests 20 ms: EIO", "closed: slower"; valid until the next call. */
const char *lanes_state(const struct counters_numbers *n);

/* The name of a policy as struct counters_slot has it; "-": not known. */
const char *lanes_policy(uint32_t policy);

/* "EIO 3, other 1"; "-" where nothing has failed. Valid until the next call. */
const char *lanes_causes(const struct counters_numbers *n);

#define LANES_ALIGN "llrrrrll" /* of lanes_head() and the rows */
void lanes_head(struct table *t);

/*
 * Adds rows, begun by `prefix`, for each algorithm of which something is known: one, or one a direction if something
 * was learnt of both.
 */
void lanes_rows(struct table *t, const char *const *prefix, const struct counters_line *lines, uint32_t count);

/* Says what the columns mean. */
void lanes_explain(FILE *out);

/* The object "lane", and the object "causes" with what has failed by errno. */
void lanes_json(struct json *j, const struct counters_numbers *n);
void lanes_causes_json(struct json *j, const struct counters_numbers *n);

#endif
