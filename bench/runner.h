/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a measurement at work on one algorithm. */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>

#include "provider/algorithms.h"

#define RUNNER_SIZE_MAX 1048576u

/* All but the bare loop over AF_ALG go through EVP. */
struct side {
	OSSL_LIB_CTX *context; /* what is not fetched from it is not measured */
	ENGINE *engine;        /* in place of the context's implementation; else null */
	bool bare;
};

struct runner {
	const struct algorithm *algorithm;
	const struct side *side;
	bool anew; /* a new context for each call */
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *cipher_ctx;
	EVP_MD *md;
	EVP_MAC *mac;
	EVP_MAC_CTX *mac_ctx;
	size_t key_length;
	int tfm, op; /* bare */
};

/* False: the side does not have the algorithm, or cannot have so many bytes in one call. */
bool runner_open(struct runner *r, const struct side *side, const struct algorithm *a, size_t size, bool anew);
void runner_close(struct runner *r);

/* Does `n` calls of `size` bytes: updates of a cipher; whole messages of an AEAD, a digest or a MAC. */
void runner_run(struct runner *r, size_t size, unsigned long n);

#endif
