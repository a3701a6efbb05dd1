/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between a program and the kernel's crypto, and who keeps it shut: a kernel option, a rule of modprobe, a
 * seccomp filter, a security module. From an errno alone one cannot tell; what is written on the system helps.
 */
#ifndef TOOLS_GATE_H
#define TOOLS_GATE_H

#include <stdbool.h>
#include <stddef.h>

struct gate {
	const char *what;     /* for a sentence: "AF_ALG sockets" */
	const char *module;   /* the module behind it */
	const char *alias;    /* what the kernel asks modprobe for */
	const char *option;   /* the kernel's option, without CONFIG_ */
	const char *protocol; /* its line in /proc/net/protocols once the module is there; null: none */
};

extern const struct gate gate_af_alg, gate_netlink;

/* The gate of an AF_ALG type: "skcipher", "aead", "hash" or "rng". */
const struct gate *gate_of_type(const char *type);

/* Who it is. `code` is for scripts: "kernel", "modprobe", "modules_disabled", "not_loaded", "seccomp", "lsm",
 * "unknown". */
struct blame {
	const char *code;
	char cause[640];
	char remedy[480];
};

/* Why a gate answers with `error` (a positive errno; ENOENT where a type is not known). */
void gate_blame(const struct gate *g, int error, struct blame *b);

/* Why the kernel finds no algorithm of that name (ENOENT) though it serves the type. */
void gate_blame_algorithm(const char *kernel_name, struct blame *b);

/* Whether AF_ALG gives no hardware drivers at all: the rule of Linux 7.2, which others have taken over. */
bool gate_software_only(void);

/* Whether a seccomp filter watches this process. */
bool gate_seccomp(void);

/* The security module that confines this process, with the name of the confinement; false: none is known. */
bool gate_confinement(char *text, size_t size);

#endif
