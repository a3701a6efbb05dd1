/* SPDX-License-Identifier: Apache-2.0 */
/* Counters as columns of a table, and as JSON. */
#ifndef TOOLS_NUMBERS_H
#define TOOLS_NUMBERS_H

#include "counters_read.h"
#include "json.h"
#include "table.h"

#define NUMBERS_ALIGN "lrrrrrrr" /* of numbers_head() and the rows */

/* Adds the cells of a list that a null ends. */
void numbers_cells(struct table *t, const char *const *cells);

void numbers_head(struct table *t);

/*
 * Adds a row, begun by `prefix`, for each algorithm that has counts, and one for all that are direct and have none.
 * Returns how many those are.
 */
unsigned numbers_rows(struct table *t, const char *const *prefix, const struct counters_line *lines, uint32_t count);

/* Adds a row without counts. */
void numbers_none(struct table *t, const char *const *prefix);

/* Says, in a line each, by what the algorithms failed that did. */
void numbers_causes(FILE *out, const struct counters_line *lines, uint32_t count);

/* Says what "direct" means. */
void numbers_explain_direct(FILE *out);

/* The part of the bytes that the kernel did; negative where there were none. */
double numbers_share(const struct counters_numbers *n);

/*
 * An array of the algorithms that have counts or are direct, or of whose kernel lane something is known. `process`: of
 * one process, which has lanes; sums have none.
 */
void numbers_json(struct json *j, const char *key, const struct counters_line *lines, uint32_t count, bool process);

#endif
