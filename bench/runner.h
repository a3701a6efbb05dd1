/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a measurement: an algorithm through EVP, or a bare loop over AF_ALG. */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>

#include "provider/algorithms.h"

#define RUNNER_SIZE_MAX 1048576u

struct runner {
	const struct algorithm *algorithm;
	OSSL_LIB_CTX *context; /* null: bare */
	bool anew;             /* a new context for each call */
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *cipher_ctx;
	EVP_MD *md;
	EVP_MAC *mac;
	EVP_MAC_CTX *mac_ctx;
	int tfm, op; /* bare */
};

/* Ends the program where the side does not have the algorithm. */
void runner_open(struct runner *r, const struct algorithm *a, OSSL_LIB_CTX *context, bool anew);
void runner_close(struct runner *r);

/* Does `n` calls of `size` bytes: updates of a cipher; whole messages of an AEAD, a digest or a MAC. */
void runner_run(struct runner *r, size_t size, unsigned long n);

#endif
