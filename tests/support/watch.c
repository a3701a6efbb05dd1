/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#pragma GCC visibility push(default)

#define NUMBERS 65536
#define TAG_MAX 16u
/* Of the kernel's default, 212992 bytes, as the last page may be in use. */
#define SEND_BUFFER (212992u - 4096u)

/* What waits: a hash answers at any time, and so does a random generator. */
enum kind { NONE, WAITS, AEAD, ANSWERS };

/* By descriptor. A thread that uses a socket of another at the same time is none of ours. */
static _Atomic int transforms[NUMBERS], operations[NUMBERS];
static _Atomic size_t owed[NUMBERS]; /* bytes sent and not yet fetched */
static _Atomic bool sent[NUMBERS];   /* so was a message, of perhaps no bytes */
static atomic_ulong receives;

/* The C library's function of that name, looked up once. */
#define NEXT(name)                                                                                    \
	({                                                                                            \
		static _Atomic(void *) found;                                                         \
                                                                                                      \
		if (atomic_load_explicit(&found, memory_order_relaxed) == NULL)                       \
			atomic_store_explicit(&found, dlsym(RTLD_NEXT, #name), memory_order_relaxed); \
		(__typeof__(name) *)atomic_load_explicit(&found, memory_order_relaxed);               \
	})

unsigned long watch_receives(void)
{
	return atomic_load(&receives);
}

static bool known(const _Atomic int *table, int fd)
{
	return fd >= 0 && fd < NUMBERS && table[fd] != NONE;
}

/* The number may have come into other use past us. */
static bool is_afalg(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_ALG;
}

static bool may_wait(int fd, int flags)
{
	return (flags & MSG_DONTWAIT) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

static void complain(int fd, const char *what, size_t bytes)
{
	char line[160];
	int n;

	if (!is_afalg(fd))
		return;
	n = snprintf(line, sizeof(line), "watch: descriptor %d %s: %zu bytes, %zu owed\n", fd, what, bytes, owed[fd]);
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) == n)
		abort();
	abort();
}

static void forget(int fd)
{
	if (fd < 0 || fd >= NUMBERS)
		return;
	transforms[fd] = operations[fd] = NONE;
	owed[fd] = 0;
	sent[fd] = false;
}

static void before_send(int fd, size_t bytes, int flags)
{
	if (known(operations, fd) && operations[fd] != ANSWERS && owed[fd] + bytes > SEND_BUFFER && may_wait(fd, flags))
		complain(fd, "may wait for room", bytes);
}

static ssize_t after_send(int fd, ssize_t n)
{
	if (n >= 0 && known(operations, fd)) {
		owed[fd] += (size_t)n;
		sent[fd] = true;
	}
	return n;
}

static void before_receive(int fd, size_t bytes, int flags)
{
	if (!known(operations, fd) || operations[fd] == ANSWERS)
		return;
	if (!sent[fd])
		complain(fd, "is asked for what nobody sent", bytes);
	if (bytes > owed[fd] + (operations[fd] == AEAD ? TAG_MAX : 0) && may_wait(fd, flags))
		complain(fd, "may wait for more", bytes);
}

static ssize_t after_receive(int fd, ssize_t n)
{
	const int error = errno;

	if (!known(operations, fd))
		return n;
	if (n >= 0)
		receives++;
	/* An AEAD gives a message whole, and of another length than what was sent. */
	owed[fd] = operations[fd] == AEAD || n < 0 || (size_t)n > owed[fd] ? 0 : owed[fd] - (size_t)n;
	sent[fd] = owed[fd] > 0;
	errno = error;
	return n;
}

static size_t total(const struct iovec *iov, size_t parts)
{
	size_t bytes = 0;

	for (size_t i = 0; i < parts; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	const int rc = NEXT(bind)(fd, address, len);

	forget(fd);
	if (rc == 0 && fd < NUMBERS && address->sa_family == AF_ALG) {
		const char *type = (const char *)((const struct sockaddr_alg *)(const void *)address)->salg_type;

		transforms[fd] = strcmp(type, "skcipher") == 0 ? WAITS : strcmp(type, "aead") == 0 ? AEAD : ANSWERS;
	}
	return rc;
}

static int accepted(int from, int fd)
{
	const int kind = known(transforms, from) ? transforms[from] : known(operations, from) ? operations[from] : NONE;

	forget(fd);
	if (fd >= 0 && fd < NUMBERS)
		operations[fd] = kind;
	return fd;
}

int accept(int fd, struct sockaddr *address, socklen_t *len)
{
	return accepted(fd, NEXT(accept)(fd, address, len));
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	return accepted(fd, NEXT(accept4)(fd, address, len, flags));
}

int close(int fd)
{
	forget(fd);
	return NEXT(close)(fd);
}

ssize_t send(int fd, const void *data, size_t n, int flags)
{
	before_send(fd, n, flags);
	return after_send(fd, NEXT(send)(fd, data, n, flags));
}

ssize_t sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
	before_send(fd, n, flags);
	return after_send(fd, NEXT(sendto)(fd, data, n, flags, to, len));
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	before_send(fd, total(msg->msg_iov, msg->msg_iovlen), flags);
	return after_send(fd, NEXT(sendmsg)(fd, msg, flags));
}

ssize_t write(int fd, const void *data, size_t n)
{
	before_send(fd, n, 0);
	return after_send(fd, NEXT(write)(fd, data, n));
}

ssize_t writev(int fd, const struct iovec *iov, int parts)
{
	before_send(fd, total(iov, (size_t)parts), 0);
	return after_send(fd, NEXT(writev)(fd, iov, parts));
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags)
{
	return after_send(to, NEXT(splice)(from, from_at, to, to_at, n, flags));
}

ssize_t recv(int fd, void *data, size_t n, int flags)
{
	before_receive(fd, n, flags);
	return after_receive(fd, NEXT(recv)(fd, data, n, flags));
}

ssize_t recvfrom(int fd, void *data, size_t n, int flags, struct sockaddr *from, socklen_t *len)
{
	before_receive(fd, n, flags);
	return after_receive(fd, NEXT(recvfrom)(fd, data, n, flags, from, len));
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	before_receive(fd, total(msg->msg_iov, msg->msg_iovlen), flags);
	return after_receive(fd, NEXT(recvmsg)(fd, msg, flags));
}

ssize_t read(int fd, void *data, size_t n)
{
	before_receive(fd, n, 0);
	return after_receive(fd, NEXT(read)(fd, data, n));
}

ssize_t readv(int fd, const struct iovec *iov, int parts)
{
	before_receive(fd, total(iov, (size_t)parts), 0);
	return after_receive(fd, NEXT(readv)(fd, iov, parts));
}
