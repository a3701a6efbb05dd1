/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's random generators. Each is opened once a process, when it is first needed, and serves all threads and
 * forked children: its state is in the kernel, and no two requests get the same bytes.
 */
#ifndef AFALG_RNG_H
#define AFALG_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fork.h"
#include "transport.h"

/*
 * Fills `out` with `len` bytes of the generator with that kernel name (kept by the caller). All of them or none: after
 * an error, a negative errno, nothing in `out` is to be used. *opened: the generator was open by then, so that the
 * error is of a request. *requests counts those of a success. Bytes that are all alike are an error of the driver
 * (-EIO). -ESTALE: a fork that no handler has seen.
 */
int afalg_rng_read(const char *algorithm, uint8_t *out, size_t len, bool *opened, unsigned *requests);

/* What is read from now on comes from a generator that has been seeded anew. */
void afalg_rng_reseed(const char *algorithm);

/* Fills `out` without AF_ALG, by getrandom(2). 0 or a negative errno; then nothing in `out` is to be used. */
int afalg_rng_system(uint8_t *out, size_t len);

/* The transport of generators; `afalg_socket` unless set. Closes those that are open; none may be in use. */
void afalg_rng_set_transport(const struct afalg_transport *transport);

/* Called by the fork handlers. */
void afalg_rng_fork(enum afalg_fork_phase phase);

#endif
