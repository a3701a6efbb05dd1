/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl check: the parts of the chain from the configuration file to the kernel's drivers. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include <openssl/conf.h>
#include <stdbool.h>

#include "../provider/algorithms.h"

/* What the configuration file says. */
struct configuration {
	char path[512];                       /* of the file; empty: none */
	CONF *conf;                           /* null: it cannot be read */
	char name[64];                        /* by which OpenSSL knows afalgprov */
	char module[512];                     /* the path of the module, to the best of what one can tell */
	const STACK_OF(CONF_VALUE) * section; /* of afalgprov; null: none */
	bool activated;
};

/* Reads the configuration file as OpenSSL would, and reports what is wrong with it. */
void check_configuration(struct configuration *c);
void check_configuration_free(struct configuration *c);

/* A setting of afalgprov's section; null: not set. */
const char *configuration_value(const struct configuration *c, const char *key);

/* Loads it into a library context of its own and reports who serves what; `scratch` is a directory for files. */
void check_provider(const struct configuration *c, const char *scratch);

/*
 * A library context that knows afalgprov's section, with `policy` in place of its own (null: as it is), but has not
 * loaded it yet. Null: it cannot be made; OpenSSL's error queue tells why.
 */
OSSL_LIB_CTX *check_context(const struct configuration *c, const char *scratch, const char *policy);

/* The first error of OpenSSL's queue in words, "" if there is none; clears the queue. */
const char *check_error(char *text, size_t size);

/* Where processes count. */
void check_counters(const struct configuration *c);

/* Reports what the kernel gives, and who keeps what it does not. */
void check_kernel(const struct configuration *c, const bool chosen[ALGORITHM_COUNT]);

/* Runs every algorithm that the kernel serves through it, and compares with the default provider. */
void check_answers(const struct configuration *c, const char *scratch, const bool chosen[ALGORITHM_COUNT]);

/*
 * Compares the algorithm's results in the kernel with OpenSSL's. Null: they are right; "": this OpenSSL does not have
 * it, or only with a provider that is not there; else what is wrong.
 */
const char *answer_check(OSSL_LIB_CTX *ours, OSSL_LIB_CTX *reference, enum algorithm_id id);

#endif
