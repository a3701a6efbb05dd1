/* SPDX-License-Identifier: Apache-2.0 */
#include "over.h"

#include <openssl/core_names.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "../software.h"

#define NAMES_MAX 160

/*
 * The names of what MACs are made of. A MAC is told one for every new context, so looking it up must take next to no
 * time beside hashing a few bytes: lengths and last characters tell nearly all of them apart.
 */
static struct name {
	const char *text;
	unsigned mark; /* length and last character */
	enum algorithm_id row;
} names[NAMES_MAX];

/* Which of them are those of a MAC: they stand together, as its rows do. By its first row. */
static struct {
	unsigned char begin, end;
} ranges[ALGORITHM_COUNT];

static size_t name_count;

static unsigned mark_of(const char *text, size_t length)
{
	return (unsigned)length << 8 | (unsigned char)(text[length - 1] | 0x20);
}

static void take_names(enum algorithm_id row)
{
	const char *text = software_names[over_base(row)];
	const enum algorithm_id first = algorithm_first(row);

	if (row == first)
		ranges[first].begin = (unsigned char)name_count;
	for (size_t n; text != NULL && *text != '\0' && name_count < NAMES_MAX; text += n + (text[n] == ':')) {
		n = strcspn(text, ":");
		if (n > 0)
			names[name_count++] = (struct name){text, mark_of(text, n), row};
	}
	ranges[first].end = (unsigned char)name_count;
}

static void take_all(void)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (algorithms[id].kind == KIND_MAC && software_names[id] != NULL)
			take_names((enum algorithm_id)id);
}

int over_find(enum algorithm_id first, const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const size_t length = strlen(name);
	const unsigned mark = length == 0 ? 0 : mark_of(name, length);

	pthread_once(&once, take_all);
	for (size_t i = ranges[first].begin; i < ranges[first].end; i++)
		if (names[i].mark == mark && strncasecmp(names[i].text, name, length) == 0)
			return (int)names[i].row;
	return -1;
}

enum algorithm_id over_base(enum algorithm_id row)
{
	return (enum algorithm_id)algorithm_find(algorithms[row].over, strlen(algorithms[row].over));
}

const char *over_parameter(enum algorithm_id first)
{
	return algorithms[first].block != 0 ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER;
}
