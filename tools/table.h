/* SPDX-License-Identifier: Apache-2.0 */
/* A table of text with aligned columns, for people and for grep. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stddef.h>
#include <stdio.h>

struct table {
	const char *align; /* a letter for each column: l or r */
	char **cells;      /* row by row; the first row is the head */
	size_t count, capacity;
};

/* Adds a cell, the next of its row. Ends the program where memory is short. */
void table_add(struct table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How many rows there are, the head included. */
size_t table_rows(const struct table *t);

/* Frees the cells. */
void table_free(struct table *t);

/*
 * Prints the table and frees its cells. On a terminal the last column, if it is text, is folded at blanks to the
 * terminal's width; elsewhere a row is always a line.
 */
void table_print(struct table *t, FILE *out);

#endif
