/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random generator of the plain socket (afalg/socket.c) between its system calls: these are replaced at link time,
 * by --wrap. The descriptors are real sockets, of another family.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../afalg/rng.h"

#define NAME "stdrng"

static struct {
	unsigned sockets, binds, seeds, accepts, receives; /* calls so far */
	int bind_error, seed_error, accept_error;
	int results[8]; /* what the receives to come return: a negative errno, a number of bytes, WHOLE */
	size_t next;
	int accepted; /* the operation's descriptor */
} kernel;

#define WHOLE 1000

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	if (domain != AF_ALG)
		return __real_socket(domain, type, protocol);
	assert_int_equal(type, SOCK_SEQPACKET | SOCK_CLOEXEC);
	kernel.sockets++;
	return __real_socket(AF_UNIX, type, protocol);
}

static int outcome(int error)
{
	errno = error;
	return error == 0 ? 0 : -1;
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_alg alg;

	(void)fd;
	assert_int_equal(length, sizeof(alg));
	memcpy(&alg, address, sizeof(alg));
	assert_int_equal(alg.salg_family, AF_ALG);
	assert_string_equal((const char *)alg.salg_type, "rng");
	assert_string_equal((const char *)alg.salg_name, NAME);
	kernel.binds++;
	return outcome(kernel.bind_error);
}

/* The generator seeds itself: nothing of ours goes to it. */
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	(void)fd;
	(void)value;
	assert_int_equal(level, SOL_ALG);
	assert_int_equal(name, ALG_SET_KEY);
	assert_int_equal(length, 0);
	kernel.seeds++;
	return outcome(kernel.seed_error);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	(void)fd;
	assert_null(address);
	assert_null(length);
	assert_int_equal(flags, SOCK_CLOEXEC);
	assert_int_equal(kernel.seeds, kernel.accepts + 1);
	kernel.accepts++;
	if (outcome(kernel.accept_error) == 0)
		return kernel.accepted = __real_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return -1;
}

ssize_t __real_recv(int fd, void *buffer, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t length, int flags)
{
	int n = kernel.next < sizeof(kernel.results) / sizeof(*kernel.results) ? kernel.results[kernel.next++] : 0;

	(void)fd;
	assert_int_equal(flags, MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE);
	assert_true(length >= 16 && length <= AFALG_RNG_MAX);
	kernel.receives++;
	if (n < 0)
		return outcome(-n);
	n = n == WHOLE ? (int)length : n;
	return n == 0 ? 0 : getrandom(buffer, (size_t)n, 0);
}

/* How many descriptors are open. */
static unsigned descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static uint8_t bytes[300];

static int read_bytes(size_t n, bool *opened)
{
	unsigned requests;

	memset(bytes, 0, sizeof(bytes));
	return afalg_rng_read(NAME, bytes, n, opened, &requests);
}

/* One descriptor in the end, and the kernel asked for what is wanted. */
static void test_opens(void **state)
{
	const unsigned before = descriptors();
	bool opened;

	(void)state;
	kernel.results[0] = kernel.results[1] = kernel.results[2] = WHOLE;
	assert_int_equal(read_bytes(sizeof(bytes), &opened), 0);
	assert_int_equal(kernel.sockets + kernel.binds + kernel.seeds + kernel.accepts, 4);
	assert_int_equal(kernel.receives, 3);
	assert_int_equal(descriptors(), before + 1);
}

static void test_does_not_open(void **state)
{
	const unsigned before = descriptors();

	(void)state;
	for (int i = 0; i < 3; i++) {
		bool opened;

		memset(&kernel, 0, sizeof(kernel));
		*(i == 0 ? &kernel.bind_error : i == 1 ? &kernel.seed_error : &kernel.accept_error) = EINVAL;
		assert_int_equal(read_bytes(16, &opened), -EINVAL);
		assert_false(opened);
		assert_int_equal(kernel.receives, 0);
		assert_int_equal(descriptors(), before);
	}
}

/* Anything but all the bytes is an error; interrupted receives are made again. */
static void test_receives(void **state)
{
	static const struct {
		int results[4], expected;
		unsigned receives;
	} cases[] = {
		{{WHOLE}, 0, 1},         {{-EINTR, -EINTR, WHOLE}, 0, 3}, {{31}, -EIO, 1},         {{0}, -EIO, 1},
		{{1}, -EIO, 1},          {{-ENODATA}, -ENODATA, 1},       {{-EAGAIN}, -EAGAIN, 1}, {{-EIO}, -EIO, 1},
		{{-EINVAL}, -EINVAL, 1}, {{-EINTR, 5}, -EIO, 2},
	};
	const unsigned before = descriptors();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool opened;

		memset(&kernel, 0, sizeof(kernel));
		memcpy(kernel.results, cases[i].results, sizeof(cases[i].results));
		assert_int_equal(read_bytes(32, &opened), cases[i].expected);
		assert_true(opened);
		assert_int_equal(kernel.receives, cases[i].receives);
		for (size_t b = 0; cases[i].expected != 0 && b < sizeof(bytes); b++)
			assert_int_equal(bytes[b], 0);
		assert_int_equal(descriptors(), before + 1);
	}
}

/* Its number has come into other use: nothing is taken from there, and it is not closed. */
static void test_stranger(void **state)
{
	int pair[2], fd;
	char byte;
	bool opened;

	(void)state;
	kernel.results[0] = kernel.results[1] = WHOLE;
	assert_int_equal(read_bytes(32, &opened), 0);
	fd = kernel.accepted;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(write(pair[1], "theirs", 6), 6);
	assert_int_equal(dup2(pair[0], fd), fd);
	assert_int_equal(read_bytes(32, &opened), 0);
	assert_int_equal(kernel.accepts, 2);
	assert_int_equal(kernel.receives, 2);
	assert_int_equal(__real_recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* The new one has the number of the old one, which is closed. */
static void test_reseed(void **state)
{
	const unsigned before = descriptors();
	bool opened;
	int fd;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		kernel.results[i] = WHOLE;
	assert_int_equal(read_bytes(32, &opened), 0);
	fd = kernel.accepted;
	for (unsigned i = 1; i <= 5; i++) {
		afalg_rng_reseed(NAME);
		assert_int_equal(read_bytes(32, &opened), 0);
		assert_int_equal(kernel.accepts, 1 + i);
		assert_int_equal(descriptors(), before + 1);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	}
	/* One that cannot be had leaves all as it was, and is asked for again. */
	kernel.bind_error = ENOMEM;
	afalg_rng_reseed(NAME);
	assert_int_equal(read_bytes(32, &opened), -ENOMEM);
	assert_false(opened);
	assert_int_equal(descriptors(), before + 1);
}

static int fresh(void **state)
{
	(void)state;
	afalg_rng_set_transport(&afalg_socket);
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fresh, fresh)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_opens), TEST(test_does_not_open), TEST(test_receives),
					   TEST(test_stranger), TEST(test_reseed)};

	return cmocka_run_group_tests_name("random generator by a plain socket", tests, NULL, NULL);
}
