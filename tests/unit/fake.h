/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scripted kernel in memory: the transport of the unit tests. It computes with OpenSSL's default provider, so that
 * results can be right; it counts what it is asked, fails where the script says, and watches the rules of the seam
 * (afalg/transport.h). Hash state lives in memory shared across fork, as that of a real descriptor does: parent and
 * child that both use one operation spoil each other's digest here too. Random generators never repeat themselves, in
 * any process.
 *
 * The catalogue (afalg/catalogue.h) and getrandom(2) are replaced at link time, by --wrap, by what is set here.
 */
#ifndef TESTS_UNIT_FAKE_H
#define TESTS_UNIT_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../afalg/catalogue.h"
#include "../../afalg/transport.h"

enum fake_call {
	FAKE_OPEN,
	FAKE_SET_KEY,
	FAKE_SET_TAGLEN,
	FAKE_CRYPT,
	FAKE_HASH_START,
	FAKE_HASH_SEND,
	FAKE_HASH_FINISH,
	FAKE_HASH_COPY,
	FAKE_RNG_OPEN,
	FAKE_RNG_READ,
	FAKE_GETRANDOM, /* getrandom(2), which is really asked */
	FAKE_CALLS
};

#define FAKE_ALWAYS 0x40000000u

extern const struct afalg_transport fake_transport;

/* Makes the fake kernel the only transport, with no script and all counts 0; forgets all lanes. No hash in progress. */
void fake_install(void);

/* Closes the operations that wait for their next message, and the unkeyed transforms. No hash in progress. */
void fake_close_idle(void);

/* Sets all counts to 0 and removes the script; what is open stays open. */
void fake_reset(void);

/* From the nth call of a kind on (1: the next one), `times` calls fail with `error` (positive errno). */
void fake_fail(enum fake_call call, unsigned nth, int error, unsigned times);

/* A crypt that fails writes rubbish over this share of its output first, in percent. */
void fake_spoil(unsigned percent);

/* Random generators give nothing but this byte; negative: random bytes again. */
void fake_repeat(int byte);

/* getrandom(2) gives at most that many bytes at a time. */
void fake_getrandom_most(size_t bytes);

/* Closes all random generators, as a program may that daemonises. */
void fake_close_generators(void);

/* Each crypt, send and close takes at least this long. */
void fake_delay(unsigned microseconds);

/* Calls of a kind and bytes that went with them since the last reset; failed calls count as calls, without bytes. */
unsigned fake_calls(enum fake_call call);
uint64_t fake_bytes(enum fake_call call);

/* What is open in this process, and the most transforms that were at once since the last reset. */
unsigned fake_transforms(void);
unsigned fake_keyed(void);
unsigned fake_keyed_most(void);
unsigned fake_ops(void);

/* Rules of the seam broken so far, by this process and its children; what was broken goes to stderr. */
unsigned fake_violations(void);

/* What the catalogue answers: support 0 or a negative errno; find `found` (0 or negative errno) and a driver. */
void fake_catalogue(int support, int found, enum afalg_class class);

/* How often the catalogue was asked for a driver since the last reset. */
unsigned fake_asked(void);

/* Whether the fake kernel serves the algorithm. */
bool fake_serves(const char *type, const char *algorithm);

#endif
