/* SPDX-License-Identifier: Apache-2.0 */
/* Published test vectors, and values that several independent implementations agree on, as one table. */
#ifndef TESTS_VECTORS_H
#define TESTS_VECTORS_H

#include <openssl/crypto.h>
#include <stddef.h>
#include <stdint.h>

enum vector_kind { VECTOR_DIGEST, VECTOR_MAC, VECTOR_CIPHER, VECTOR_AEAD };

/*
 * Inputs are written as hexadecimal digits, 'text' in quotes, or a rule and a count of bytes: P(n) is i mod 251, C(n)
 * is i mod 256, XX(n) the byte XX n times. Results are hexadecimal digits, or "S256 " and the SHA-256 of the result.
 * Null is as good as empty.
 */
struct vector {
	const char *id;
	enum vector_kind kind;
	const char *algorithm; /* OpenSSL's name */
	const char *of;        /* MAC: the digest or cipher below it */
	const char *cts;       /* cipher: variant of ciphertext stealing, if it has one */
	int padding;           /* cipher */
	const char *key, *iv, *aad, *in, *out, *tag;
};

extern const struct vector vectors[];
extern const size_t vector_count;

struct vector_bytes {
	uint8_t *data; /* never null; to be freed by the caller */
	size_t len;
};

/* What an input's notation stands for. Ends the test where it is malformed. */
struct vector_bytes vector_bytes(const char *notation);

/* The vector named `id`; ends the test if there is none. */
const struct vector *vector_find(const char *id);

/* Whether `data` is the result written as `expected`; `lib` is the library context that hashes it if need be. */
int vector_equals(OSSL_LIB_CTX *lib, const char *expected, const uint8_t *data, size_t len);

#endif
