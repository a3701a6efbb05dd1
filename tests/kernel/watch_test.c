/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over AF_ALG sockets (support/watch.h) sees what could wait for ever, and lets pass what does not. */
#include <linux/if_alg.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "afalg/socket.h"
#include "support.h"

static int receive_unsent(int op)
{
	uint8_t bytes[16];

	return recv(op, bytes, sizeof(bytes), MSG_DONTWAIT) == 0;
}

static int receive_twice(int op)
{
	uint8_t bytes[16] = {0};

	return send(op, bytes, 16, 0) == 16 && recv(op, bytes, 16, 0) == 16 && recv(op, bytes, 16, MSG_DONTWAIT) == 0;
}

static int wait_for_more(int op)
{
	uint8_t bytes[32] = {0};

	return send(op, bytes, 16, 0) == 16 && recv(op, bytes, sizeof(bytes), 0) == 16;
}

static int send_too_much(int op)
{
	static const uint8_t bytes[300000];

	return send(op, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes);
}

static int send_and_receive(int op)
{
	uint8_t bytes[32] = {0};

	return send(op, bytes, 32, 0) == 32 && recv(op, bytes, 16, 0) == 16 && recv(op, bytes, 16, 0) == 16;
}

/* Whether the watch ends a child that does this with a keyed operation; a child that only fails counts as neither. */
static int ended(int (*program)(int op))
{
	static const struct rlimit no_core = {0, 0};
	static const uint8_t key[16];
	int status, tfm, op;
	const pid_t pid = fork();

	if (pid == 0) {
		alarm(20);
		setrlimit(RLIMIT_CORE, &no_core);
		tfm = afalg_socket_bind("skcipher", "cbc(aes)");
		setsockopt(tfm, SOL_ALG, ALG_SET_KEY, key, sizeof(key));
		op = accept4(tfm, NULL, NULL, 0);
		_exit(op >= 0 && program(op) ? 0 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 1 : status == 0 ? 0 : -1;
}

int main(void)
{
	static const struct {
		const char *name;
		int (*program)(int op);
		int ended;
	} tests[] = {
		{"receive unsent", receive_unsent, 1},     {"receive twice", receive_twice, 1},
		{"wait for more", wait_for_more, 1},       {"send too much", send_too_much, 1},
		{"send and receive", send_and_receive, 0},
	};
	int bad = 0;

	if (!support_kernel_serves("skcipher", "cbc(aes)")) {
		printf("the kernel has no AF_ALG\n");
		return 77;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		const int got = ended(tests[i].program);

		printf("%s: %s\n", tests[i].name, got == tests[i].ended ? "ok" : "FAILED");
		bad += got != tests[i].ended;
	}
	return bad > 0;
}
