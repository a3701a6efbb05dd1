/* SPDX-License-Identifier: Apache-2.0 */
/* What is offered: the rows of algorithms.def, the one list. */
#ifndef PROVIDER_ALGORITHMS_H
#define PROVIDER_ALGORITHMS_H

#include <stdbool.h>
#include <stddef.h>

enum algorithm_kind { KIND_SKCIPHER, KIND_AEAD, KIND_HASH, KIND_MAC, KIND_RNG };

enum cipher_mode {
	MODE_ECB,
	MODE_CBC,
	MODE_CTR,
	MODE_OFB,
	MODE_CFB,
	MODE_XTS,
	MODE_CTS,
	MODE_CHACHA20,
	MODE_GCM,
	MODE_CCM,
	MODE_CHACHA_POLY,
};

struct algorithm {
	enum algorithm_kind kind;
	const char *name;      /* OpenSSL's first name of it, unless `offered` says otherwise */
	const char *kernel;    /* the kernel's generic name */
	enum cipher_mode mode; /* skcipher, AEAD */
	size_t block;          /* skcipher: bytes; requests are made of whole ones. HMAC: the longest key not hashed */
	size_t ivlen;          /* skcipher, AEAD: bytes that the kernel takes */
	size_t size;           /* hash, MAC: bytes of the result */
	size_t key_min;        /* skcipher: bytes of key that the kernel takes, where OpenSSL has no one length */
	size_t key_max;        /* ... and at most; else 0 */
	bool legacy;           /* of OpenSSL's legacy provider, and offered beside it only */
	const char *offered;   /* OpenSSL's name where several rows together serve it (MAC); else null */
	const char *over;      /* MAC: OpenSSL's name of the digest or cipher that it is made of */
};

#define ROW(id, ...) ALG_##id,
enum algorithm_id {
#include "algorithms.def"
	ALGORITHM_COUNT
};
#undef ROW

extern const struct algorithm algorithms[ALGORITHM_COUNT];

/* The AF_ALG socket type of a kind: "skcipher", "aead", "hash", "rng". */
const char *algorithm_type(enum algorithm_kind kind);

/* The row of this name, any case; -1: none. */
int algorithm_find(const char *name, size_t length);

/* OpenSSL's first name of what the row belongs to. */
const char *algorithm_offered(enum algorithm_id id);

/* The first of the rows that serve the same OpenSSL algorithm as this one. */
enum algorithm_id algorithm_first(enum algorithm_id id);

#endif
