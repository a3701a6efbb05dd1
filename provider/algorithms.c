/* SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

#include <string.h>
#include <strings.h>

#define ROW(id, knd, openssl, kern, ...) \
	[ALG_##id] = {.kind = KIND_##knd, .name = openssl, .kernel = kern, __VA_ARGS__},
const struct algorithm algorithms[ALGORITHM_COUNT] = {
#include "algorithms.def"
};
#undef ROW

const char *algorithm_type(enum algorithm_kind kind)
{
	static const char *const types[] = {
		[KIND_SKCIPHER] = "skcipher", [KIND_AEAD] = "aead", [KIND_HASH] = "hash",
		[KIND_MAC] = "hash",          [KIND_RNG] = "rng",
	};

	return types[kind];
}

int algorithm_find(const char *name, size_t length)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (strlen(algorithms[id].name) == length && strncasecmp(algorithms[id].name, name, length) == 0)
			return id;
	return -1;
}

const char *algorithm_offered(enum algorithm_id id)
{
	return algorithms[id].offered != NULL ? algorithms[id].offered : algorithms[id].name;
}

enum algorithm_id algorithm_first(enum algorithm_id id)
{
	while (id > 0 && algorithms[id].offered != NULL && algorithms[id - 1].offered != NULL &&
	       strcmp(algorithms[id].offered, algorithms[id - 1].offered) == 0)
		id--;
	return id;
}
