/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the provider with a core of our own: OpenSSL 3.0 drops the errors of one that its configuration file names. */
#ifndef TESTS_UNIT_START_H
#define TESTS_UNIT_START_H

#include <stdbool.h>
#include <stdint.h>

/* What the last start raised. */
struct started {
	unsigned errors;
	uint32_t reason;
	char text[512];
};

extern struct started started;

/* Whether the provider starts with these settings: keys and values in turn, a null at the end. It is ended at once. */
bool starts(const char *key, ...) __attribute__((sentinel));

#endif
