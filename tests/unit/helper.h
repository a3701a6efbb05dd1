/* SPDX-License-Identifier: Apache-2.0 */
/* What the unit tests share: a library context with the provider in it, the pattern of the test data, traces. */
#ifndef TESTS_UNIT_HELPER_H
#define TESTS_UNIT_HELPER_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include "../../provider/algorithms.h"
#include "../../provider/provider.h"

#include "fake.h"

/* The provider's entry: it is linked in, not loaded from a file. */
OSSL_provider_init_fn OSSL_provider_init;

/* A fresh library context with the default provider, the legacy one and ours, on the fake kernel. */
struct lib {
	OSSL_LIB_CTX *context;
	OSSL_PROVIDER *ours;
	struct provider *provider; /* its inside */
};

/* Writes a configuration with these lines in the provider's section; the path is valid until the next call. */
const char *config_file(const char *settings);

/* Opens with settings such as "policy = kernel\n", closes and checks that nothing of it is left open. */
void lib_open(struct lib *l, const char *settings);

/* The same where asking for AF_ALG gives `support`: 0 or a negative errno. */
void lib_open_with(struct lib *l, const char *settings, int support);
void lib_close(struct lib *l);

/* The algorithm of one provider: "afalgprov" or "default", which here is "legacy" too. The caller frees it. */
EVP_CIPHER *cipher_of(const struct lib *l, enum algorithm_id id, const char *provider);
EVP_MD *digest_of(const struct lib *l, enum algorithm_id id, const char *provider);

/* The MAC that the row belongs to. The caller frees it. */
EVP_MAC *mac_of(const struct lib *l, enum algorithm_id id, const char *provider);

/* The parameter that says what the row's MAC is over; it goes into an array with an end behind it. */
OSSL_PARAM mac_over(enum algorithm_id id);

/* The length of a key that the row's MAC takes, bytes. */
size_t mac_key_length(enum algorithm_id id);

/* The router's clock, when lib_drive_clock() was called: stands still until it is set. Nanoseconds. */
extern uint64_t clock_now;
void lib_drive_clock(struct lib *l);

#define PATTERN_MAX (2u << 20)

/* P(n) for any n up to PATTERN_MAX: bytes i mod 251. Also good as key and IV: 00, 01, 02 ... */
const uint8_t *pattern(void);

/* Compares bytes with hexadecimal digits; fails the test where they differ. */
void assert_hex(const uint8_t *bytes, size_t n, const char *hex);

/*
 * A trace: everything that a scenario saw, in words. The same scenario run with the default provider and with ours must
 * leave the same trace. Errors are noted by library and reason, and taken out of the queue.
 */
struct trace {
	char *text;
	size_t size;
	FILE *file;
};

void trace_open(struct trace *t); /* must not move in memory until it is closed */
void trace_close(struct trace *t);
void trace_number(struct trace *t, const char *what, long long value);
void trace_bytes(struct trace *t, const char *what, const void *bytes, size_t n);
void trace_errors(struct trace *t);

/* Frees both, which are closed, and fails the test if they differ; `what` tells which scenario that was. */
void trace_compare(struct trace *expected, struct trace *got, const char *what, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether the installed OpenSSL has the row: not a random generator. */
bool has_row(int id);

/* Whether a message must come in one update: ciphertext stealing. */
bool one_update(const EVP_CIPHER *cipher);

/* Whether the row is the first cipher of its mode: where one of each will do. */
bool first_of_mode(int id);

#endif
