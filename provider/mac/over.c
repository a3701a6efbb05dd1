/* SPDX-License-Identifier: Apache-2.0 */
#include "over.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "../borrow.h"
#include "../software.h"

#define NAMES_MAX 160
#define NAMES_BYTES 4096

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
	const struct name *_Atomic recent; /* the one found last: programs ask for the same again and again */
} ranges[ALGORITHM_COUNT];

static size_t name_count;

static unsigned mark_of(const char *text, size_t length)
{
	return (unsigned)length << 8 | (unsigned char)(text[length - 1] | 0x20);
}

static void take_name(const char *text, size_t length, enum algorithm_id row)
{
	static char texts[NAMES_BYTES];
	static size_t used;

	if (length == 0 || name_count == NAMES_MAX || length >= NAMES_BYTES - used)
		return;
	memcpy(texts + used, text, length);
	names[name_count++] = (struct name){texts + used, mark_of(text, length), row};
	used += length + 1;
}

static void take_names(enum algorithm_id row)
{
	const char *text = software_names[over_base(row)];
	const enum algorithm_id first = algorithm_first(row);

	if (row == first)
		ranges[first].begin = (unsigned char)name_count;
	for (size_t n; text != NULL && *text != '\0'; text += n + (text[n] == ':')) {
		n = strcspn(text, ":");
		take_name(text, n, row);
	}
	ranges[first].end = (unsigned char)name_count;
}

static void take_all(void)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (algorithms[id].kind == KIND_MAC && software_names[id] != NULL)
			take_names((enum algorithm_id)id);
}

static const struct name *search(enum algorithm_id first, const char *text)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const size_t length = strlen(text);
	const unsigned mark = length == 0 ? 0 : mark_of(text, length);

	pthread_once(&once, take_all);
	for (size_t i = ranges[first].begin; i < ranges[first].end; i++)
		if (names[i].mark == mark && strcasecmp(names[i].text, text) == 0)
			return &names[i];
	return NULL;
}

static int find_name(enum algorithm_id first, const char *text)
{
	const struct name *n = atomic_load_explicit(&ranges[first].recent, memory_order_acquire);

	if (n != NULL && strcmp(n->text, text) == 0)
		return (int)n->row;
	n = search(first, text);
	if (n == NULL)
		return -1;
	if (strcmp(n->text, text) == 0)
		atomic_store_explicit(&ranges[first].recent, n, memory_order_release);
	return (int)n->row;
}

static bool is_text(const OSSL_PARAM *p)
{
	return p->data_type == OSSL_PARAM_UTF8_STRING && p->data != NULL;
}

int over_find(struct provider *p, enum algorithm_id first, const OSSL_PARAM *name, const OSSL_PARAM *properties)
{
	int row;

	if (!is_text(name) || (properties != NULL && !is_text(properties)))
		return -1; /* the software lane will refuse it */
	row = find_name(first, name->data);
	if (row >= 0 && properties == NULL)
		return row;
	return (algorithms[first].block != 0 ? borrow_digest : borrow_cipher)(
		       p, name->data, properties == NULL ? NULL : properties->data)
		       ? row
		       : -1;
}

enum algorithm_id over_base(enum algorithm_id row)
{
	return (enum algorithm_id)algorithm_find(algorithms[row].over, strlen(algorithms[row].over));
}

const char *over_parameter(enum algorithm_id first)
{
	return algorithms[first].block != 0 ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER;
}
