/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of ciphers. A scenario is run with the default provider and with ours and must leave the same trace: return
 * values, lengths, data, error reasons.
 */
#ifndef TESTS_UNIT_SCENE_H
#define TESTS_UNIT_SCENE_H

#include "helper.h"

#define IV (pattern() + 100)

extern struct lib lib;
extern uint8_t *scratch, *ciphertext; /* 300000 bytes each */

struct scene {
	const EVP_CIPHER *cipher;
	struct trace trace;
	bool encrypt, padding;
	size_t a, b, c; /* what a scenario makes of them */
};

typedef void scenario(struct scene *s);

/* Runs the scenario with both providers, in both directions, with and without padding. */
void same_everywhere(scenario *run, const char *what, enum algorithm_id id, size_t a, size_t b, size_t c);

/* The same with one algorithm of each mode. */
void same_in_each_mode(scenario *run, const char *what, size_t a, size_t b, size_t c);

/* Steps that note what they see. */
EVP_CIPHER_CTX *begin(struct scene *s);
void update(struct scene *s, EVP_CIPHER_CTX *c, const uint8_t *in, size_t n);
void final(struct scene *s, EVP_CIPHER_CTX *c);
void ivs(struct scene *s, EVP_CIPHER_CTX *c);

/* Input of `n` bytes; in decryption such that it has a right padding, if `n` is whole blocks. */
const uint8_t *input(const struct scene *s, size_t n);

/*
 * Groups of tests: the kernel always, never, and from 64 bytes on, so that the updates of one message are on either
 * side of the threshold.
 */
int setup_kernel(void **state);
int setup_software(void **state);
int setup_threshold(void **state);
int teardown(void **state);

#endif
