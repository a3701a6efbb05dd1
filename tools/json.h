/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON, indented, one value after the other. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 8

struct json {
	FILE *out;
	unsigned depth;
	bool filled; /* the object or array that is open has a member already */
	char closing[JSON_DEPTH_MAX];
};

/* `key` is null in arrays and for the outermost value. */
void json_open_object(struct json *j, const char *key);
void json_open_array(struct json *j, const char *key);

/* Closes what was opened last; a newline ends the outermost value. */
void json_close(struct json *j);

/* A null text is written as null. Bytes that are no UTF-8 are replaced. */
void json_text(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, uint64_t number);
void json_signed(struct json *j, const char *key, int64_t number);
void json_real(struct json *j, const char *key, double number); /* with three digits behind the point */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
