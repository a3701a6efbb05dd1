/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

/* How many bytes at `s` make one character of UTF-8 beyond ASCII; 0: they make none. */
static size_t sequence(const unsigned char *s)
{
	const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Longer than need be, halves of UTF-16 pairs, beyond the last character. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void string(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	while (*s != '\0') {
		size_t n = *s < 0x80 ? 1 : sequence(s);

		if (n == 0)
			fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < ' ' || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else
			fwrite(s, 1, n, out);
		s += n == 0 ? 1 : n;
	}
	fputc('"', out);
}

static void indent(const struct json *j)
{
	fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
}

/* What stands before a value: the comma, the line, the key. */
static void lead(struct json *j, const char *key)
{
	if (j->filled)
		fputc(',', j->out);
	if (j->depth > 0)
		indent(j);
	j->filled = true;
	if (key != NULL) {
		string(j->out, key);
		fputs(": ", j->out);
	}
}

static void open(struct json *j, const char *key, char opening, char closing)
{
	lead(j, key);
	assert(j->depth < JSON_DEPTH_MAX);
	j->closing[j->depth++] = closing;
	j->filled = false;
	fputc(opening, j->out);
}

void json_open_object(struct json *j, const char *key)
{
	open(j, key, '{', '}');
}

void json_open_array(struct json *j, const char *key)
{
	open(j, key, '[', ']');
}

void json_close(struct json *j)
{
	j->depth--;
	if (j->filled)
		indent(j);
	fputc(j->closing[j->depth], j->out);
	j->filled = true;
	if (j->depth == 0)
		fputc('\n', j->out);
}

void json_text(struct json *j, const char *key, const char *text)
{
	if (text == NULL) {
		json_null(j, key);
		return;
	}
	lead(j, key);
	string(j->out, text);
}

void json_number(struct json *j, const char *key, uint64_t number)
{
	lead(j, key);
	fprintf(j->out, "%" PRIu64, number);
}

void json_signed(struct json *j, const char *key, int64_t number)
{
	lead(j, key);
	fprintf(j->out, "%" PRId64, number);
}

void json_real(struct json *j, const char *key, double number)
{
	lead(j, key);
	fprintf(j->out, "%.3f", number);
}

void json_bool(struct json *j, const char *key, bool value)
{
	lead(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	lead(j, key);
	fputs("null", j->out);
}
