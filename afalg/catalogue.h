/* SPDX-License-Identifier: Apache-2.0 */
/* What the running kernel serves over AF_ALG: whether at all, by which driver, hardware or not, and how one knows. */
#ifndef AFALG_CATALOGUE_H
#define AFALG_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport.h"

enum afalg_class { AFALG_UNKNOWN, AFALG_SOFTWARE, AFALG_HARDWARE };

struct afalg_driver {
	char name[AFALG_NAME_MAX + 1];
	char module[AFALG_NAME_MAX + 1]; /* "kernel" where built in */
	int priority;
	bool async;
	enum afalg_class class;
	char evidence[160]; /* why it is of that class, in words */
	/* A hardware driver that the kernel lists with a higher priority but keeps from AF_ALG (Linux 7.2); empty:
	 * none. */
	char out_of_reach[AFALG_NAME_MAX + 1];
};

/* "unknown", "software" or "hardware". */
const char *afalg_class_name(enum afalg_class class);

/* Whether AF_ALG sockets can be had: 0 or a negative errno. Asked once a process; binds nothing. */
int afalg_catalogue_support(void);

/*
 * Whether the kernel lists a driver of `algorithm` (generic kernel name) of `type` that may be hardware. Reads
 * /proc/crypto once a process and binds nothing: a hint, for deciding whether a closer look can ever be worth it.
 */
bool afalg_catalogue_hints_hardware(const char *type, const char *algorithm);

/*
 * Finds the driver that a bind of `algorithm` (generic kernel name) of `type` ("skcipher", "hash") picks. With `bind`
 * the algorithm is bound first, so that the kernel lists all its drivers; without, it is bound only if some driver
 * listed already looks like hardware. Returns 0; -ENOENT: no driver is listed; -EACCES and the like: /proc/crypto
 * cannot be read; or the error of the bind. Reads files and may load modules: not for the data path.
 */
int afalg_catalogue_find(const char *type, const char *algorithm, bool bind, struct afalg_driver *driver);

/* Classifies a driver by its name, its module and the flags that NETLINK_CRYPTO gives (0 where it gives none). */
void afalg_classify(struct afalg_driver *driver, uint32_t flags);

/* What an errno of socket or bind means here, in words for a user who may not know AF_ALG. */
const char *afalg_explain(int error);

#endif
