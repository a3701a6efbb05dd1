/* SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

#include <string.h>
#include <strings.h>

#define ROW_CIPHER(id, openssl, kern, md, blk, iv) \
	[ALG_##id] = {.kind = KIND_SKCIPHER, .name = openssl, .kernel = kern, .mode = md, .block = blk, .ivlen = iv},
#define ROW_DIGEST(id, openssl, kern, bytes) \
	[ALG_##id] = {.kind = KIND_HASH, .name = openssl, .kernel = kern, .size = bytes},

const struct algorithm algorithms[ALGORITHM_COUNT] = {ALGORITHMS(ROW_CIPHER, ROW_DIGEST)};

const char *algorithm_type(enum algorithm_kind kind)
{
	return kind == KIND_HASH ? "hash" : "skcipher";
}

int algorithm_find(const char *name, size_t length)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (strlen(algorithms[id].name) == length && strncasecmp(algorithms[id].name, name, length) == 0)
			return id;
	return -1;
}
