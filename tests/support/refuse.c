/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse FAMILY PROTOCOL ERRNO COMMAND [ARG...]: runs a command under a seccomp filter, as containers and service
 * managers have them, that answers socket(2) for the family, and for the protocol unless that is -1, with an errno.
 */
#include <err.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENT(n) \
	((unsigned)offsetof(struct seccomp_data, args[n]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4u : 0u))

int main(int argc, char **argv)
{
	if (argc < 5)
		errx(1, "usage: refuse FAMILY PROTOCOL ERRNO COMMAND [ARG...]");
	const unsigned family = (unsigned)atoi(argv[1]), error = (unsigned)atoi(argv[3]);
	const int protocol = atoi(argv[2]);
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(0)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(2)),
		BPF_JUMP(BPF_JMP | (protocol < 0 ? BPF_JGE : BPF_JEQ) | BPF_K, protocol < 0 ? 0 : (unsigned)protocol, 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		warn("no seccomp filter");
		return 77;
	}
	execvp(argv[4], argv + 4);
	err(127, "%s", argv[4]);
}
