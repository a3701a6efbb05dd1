/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the built module: loading it as a program does, and proving by its counters who did the work. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>

/* Puts the counters of this process and its children into a directory of their own. Call first in main(). */
void support_init(void);

/*
 * A library context that has loaded the module named by AFALGPROV_MODULE, with `settings` (lines of its section in
 * openssl.cnf, or ""), beside the default provider, and prefers it. Ends the test with a message where that fails.
 */
OSSL_LIB_CTX *support_load(const char *settings);

/* A library context with the default provider alone. */
OSSL_LIB_CTX *support_reference(void);

struct support_counts {
	uint64_t software_calls, software_bytes, kernel_requests, kernel_bytes, fallbacks, errors;
};

/* The counters of an algorithm, this process and all its children together. */
struct support_counts support_count(const char *algorithm);

/* Whether the running kernel has AF_ALG and serves `algorithm` of `type` there. */
int support_kernel_serves(const char *type, const char *algorithm);

/* How many descriptors this process has open. */
int support_descriptors(void);

/* A pseudo-random sequence (splitmix64) that the same seed repeats everywhere. */
uint64_t support_random(uint64_t *state);
size_t support_below(uint64_t *state, size_t limit);
void support_fill(uint64_t *state, uint8_t *bytes, size_t n);

/* P(n) of the shared vectors: byte i is i mod 251. */
void support_pattern(uint8_t *bytes, size_t n);

#endif
