/* SPDX-License-Identifier: Apache-2.0 */
/* Our reasons in OpenSSL's error queue. Only what reaches the caller is raised: a recovered failure leaves no trace. */
#ifndef PROVIDER_ERROR_H
#define PROVIDER_ERROR_H

#include <openssl/core.h>
#include <openssl/core_dispatch.h>

enum error_reason {
	ERROR_CONFIG = 1, /* a configuration value is not allowed */
	ERROR_SOFTWARE,   /* OpenSSL's default provider is not to be had */
	ERROR_MEMORY,
	ERROR_KERNEL_HASH, /* a hash in progress in the kernel failed: its state is lost */
	ERROR_KERNEL_COPY, /* a hash in progress in the kernel could not be copied */
	ERROR_PARAMETER,   /* a parameter cannot be set at this moment */
	ERROR_RAND,        /* neither AF_ALG nor getrandom(2) gives random bytes */
	ERROR_RAND_USE,    /* a random generator is asked for what it cannot give */
	ERROR_END
};

/* The core's functions for raising errors. */
struct core_errors {
	const OSSL_CORE_HANDLE *handle;
	OSSL_FUNC_core_new_error_fn *new_error;
	OSSL_FUNC_core_set_error_debug_fn *set_debug;
	OSSL_FUNC_core_vset_error_fn *set;
};

/* Notes the core's function `f` if it is one of those. */
void error_note_core(struct core_errors *errors, const OSSL_DISPATCH *f);

/* Reason texts, for the core. */
extern const OSSL_ITEM error_reasons[];

/* Raises a reason with details; use the macro. */
void error_raise_at(const struct core_errors *errors, const char *file, int line, const char *function, int reason,
		    const char *format, ...) __attribute__((format(printf, 6, 7)));

#define error_raise(errors, reason, ...) error_raise_at(errors, __FILE__, __LINE__, __func__, reason, __VA_ARGS__)

#endif
