/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of algorithms. To add an algorithm, add a row. */
#ifndef PROVIDER_ALGORITHMS_H
#define PROVIDER_ALGORITHMS_H

#include <stddef.h>

/*
 * CIPHER(identifier, OpenSSL name, kernel name, block bytes, IV bytes)
 * DIGEST(identifier, OpenSSL name, kernel name, digest bytes)
 *
 * The OpenSSL name is the first of the default provider's; its aliases and object identifiers are taken over from
 * there, and so are all other properties. A row that the installed OpenSSL lacks is not offered.
 */
#define ALGORITHMS(CIPHER, DIGEST)                             \
	CIPHER(AES_128_CBC, "AES-128-CBC", "cbc(aes)", 16, 16) \
	CIPHER(AES_192_CBC, "AES-192-CBC", "cbc(aes)", 16, 16) \
	CIPHER(AES_256_CBC, "AES-256-CBC", "cbc(aes)", 16, 16) \
	DIGEST(SHA1, "SHA1", "sha1", 20)                       \
	DIGEST(SHA2_224, "SHA2-224", "sha224", 28)             \
	DIGEST(SHA2_256, "SHA2-256", "sha256", 32)             \
	DIGEST(SHA2_384, "SHA2-384", "sha384", 48)             \
	DIGEST(SHA2_512, "SHA2-512", "sha512", 64)

#define ALGORITHM_ENUM_CIPHER(id, name, kernel, block, ivlen) ALG_##id,
#define ALGORITHM_ENUM_DIGEST(id, name, kernel, size) ALG_##id,
enum algorithm_id { ALGORITHMS(ALGORITHM_ENUM_CIPHER, ALGORITHM_ENUM_DIGEST) ALGORITHM_COUNT };
#undef ALGORITHM_ENUM_CIPHER
#undef ALGORITHM_ENUM_DIGEST

enum algorithm_kind { KIND_SKCIPHER, KIND_HASH };

struct algorithm {
	enum algorithm_kind kind;
	const char *name;
	const char *kernel;
	size_t block; /* skcipher: bytes that a request is made of */
	size_t ivlen; /* skcipher: bytes */
	size_t size;  /* hash: bytes of the digest */
};

extern const struct algorithm algorithms[ALGORITHM_COUNT];

/* The AF_ALG socket type of a kind: "skcipher", "hash". */
const char *algorithm_type(enum algorithm_kind kind);

/* The row of an OpenSSL name, any case; -1: none. */
int algorithm_find(const char *name, size_t length);

#endif
