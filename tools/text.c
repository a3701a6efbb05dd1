/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDEST 100
#define NARROWEST 40

static size_t line_width(FILE *out)
{
	struct winsize size;

	if (isatty(fileno(out)) == 0)
		return SIZE_MAX;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_col > WIDEST)
		return WIDEST;
	return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

void text_print(FILE *out, const char *lead, const char *text)
{
	const size_t width = line_width(out), margin = strlen(lead);
	size_t column = margin;

	fputs(lead, out);
	while (*text != '\0') {
		const size_t n = strcspn(text, " ");

		if (column > margin && column + n >= width) {
			fprintf(out, "\n%*s", (int)margin, "");
			column = margin;
		}
		fprintf(out, "%s%.*s", column > margin ? " " : "", (int)n, text);
		column += n + (column > margin);
		text += n;
		text += *text == ' ';
	}
	fputc('\n', out);
}

void text_printf(FILE *out, const char *lead, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text_print(out, lead, text);
}
