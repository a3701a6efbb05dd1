/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2
#define NARROWEST 32 /* characters to which the last column is folded at most */

static void out_of_memory(void)
{
	fputs("afalgctl: out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

void table_add(struct table *t, const char *format, ...)
{
	va_list args;

	if (t->count == t->capacity) {
		t->capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
		t->cells = reallocarray(t->cells, t->capacity, sizeof(*t->cells));
		if (t->cells == NULL)
			out_of_memory();
	}
	va_start(args, format);
	if (vasprintf(&t->cells[t->count++], format, args) < 0)
		out_of_memory();
	va_end(args);
}

size_t table_rows(const struct table *t)
{
	return t->count / strlen(t->align);
}

static size_t column_width(const struct table *t, size_t column)
{
	size_t width = 0;

	for (size_t i = column; i < t->count; i += strlen(t->align)) {
		size_t n = strlen(t->cells[i]);

		width = n > width ? n : width;
	}
	return width;
}

/* How wide the last column may be when it begins at `offset`. */
static size_t room(FILE *out, size_t offset)
{
	struct winsize size;

	if (isatty(fileno(out)) == 0 || ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
		return SIZE_MAX;
	return size.ws_col > offset + NARROWEST ? size.ws_col - offset : NARROWEST;
}

static void print_folded(FILE *out, const char *text, size_t offset)
{
	const size_t width = room(out, offset);

	while (strlen(text) > width) {
		size_t n = width;

		while (n > 0 && text[n] != ' ')
			n--;
		if (n == 0)
			break;
		fprintf(out, "%.*s\n%*s", (int)n, text, (int)offset, "");
		text += n + 1;
	}
	fprintf(out, "%s\n", text);
}

static void print_row(const struct table *t, const size_t *widths, char *const *cells, FILE *out)
{
	const size_t last = strlen(t->align) - 1;
	size_t offset = 0;

	for (size_t i = 0; i <= last; i++) {
		const int width = (int)widths[i];

		if (t->align[i] == 'r')
			fprintf(out, "%*s%s", width, cells[i], i == last ? "\n" : "  ");
		else if (i < last)
			fprintf(out, "%-*s", width + GAP, cells[i]);
		else
			print_folded(out, cells[i], offset);
		offset += widths[i] + GAP;
	}
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){.align = t->align};
}

void table_print(struct table *t, FILE *out)
{
	const size_t columns = strlen(t->align);
	size_t *widths = calloc(columns, sizeof(*widths));

	if (widths == NULL)
		out_of_memory();
	for (size_t i = 0; i < columns; i++)
		widths[i] = column_width(t, i);
	for (size_t i = 0; i + columns <= t->count; i += columns)
		print_row(t, widths, &t->cells[i], out);
	free(widths);
	table_free(t);
}
