/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of cases of the differential test share. */
#ifndef TESTS_KERNEL_DIFFERENTIAL_H
#define TESTS_KERNEL_DIFFERENTIAL_H

#include <openssl/crypto.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/algorithms.h"

#define LENGTH_MAX 200000u

/* The contexts with the module and without it. */
extern OSSL_LIB_CTX *ours, *reference;

/* The state of the random sequence, and bytes given to each algorithm so far. */
extern uint64_t state;
extern uint64_t given[ALGORITHM_COUNT];

/* Ends the test with the number of the case and its seed unless `good`. */
void check(int good, const char *what);

/* A random number below the limit. */
size_t below(size_t limit);

/* Up to LENGTH_MAX: half of the lengths are spread evenly, half gather at the small ones. */
size_t random_length(void);

/* A piece of what is left: all of it, a small bit, or anything between. */
size_t random_piece(size_t left);

/* One random case each. */
void cipher_case(enum algorithm_id id);
void aead_case(enum algorithm_id id);
void digest_case(enum algorithm_id id);
void mac_case(enum algorithm_id id);

#endif
