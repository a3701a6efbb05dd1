/* SPDX-License-Identifier: Apache-2.0 */
/* The scripted kernel's random generators, and what they need of the rest of it. */
#ifndef TESTS_UNIT_FAKE_RNG_H
#define TESTS_UNIT_FAKE_RNG_H

#include "fake.h"

/* Once, and with each fake_reset(). */
void fake_rng_setup(void);
void fake_rng_reset(void);

/* How many are open in this process. */
unsigned fake_rng_ops(void);

/* For the transport. */
int fake_rng_open(const char *algorithm, struct afalg_op *op);
int fake_rng_read(const struct afalg_op *op, uint8_t *out, size_t len);
void fake_rng_replace(struct afalg_op *op, struct afalg_op *fresh);
void fake_rng_close(struct afalg_op *op);

/* In fake.c: notes that a rule is broken; counts a call and says what the script wants of it: 0 or a negative errno. */
void violation(const char *what);
int scripted(enum fake_call call, size_t bytes);

/* Zeros that parent and child share. */
void *shared_memory(size_t size);

#endif
