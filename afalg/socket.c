/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over a plain AF_ALG socket (Linux Documentation/crypto/userspace-if.rst). */
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport.h"

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define IV_MAX 16u

struct transform {
	int tfm; /* bound; holds algorithm and key */
	int op;  /* accepted from tfm at the first request; -1 before */
};

int afalg_socket_bind(const char *type, const char *algorithm)
{
	struct sockaddr_alg address = {.salg_family = AF_ALG};
	int fd, err;

	/* The kernel ends a name at its last byte: a name cut short might bind to something else. */
	if (strlen(type) >= sizeof(address.salg_type) || strlen(algorithm) > AFALG_NAME_MAX)
		return -ENAMETOOLONG;
	strcpy((char *)address.salg_type, type);
	strcpy((char *)address.salg_name, algorithm);

	fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

/* The address must be NULL: AF_ALG has no peer name, and asking for one fails (ECONNABORTED). */
static int accept_op(int fd)
{
	int op;

	do {
		op = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	} while (op < 0 && errno == EINTR);
	return op < 0 ? -errno : op;
}

static int socket_open(const char *type, const char *algorithm, void **transform)
{
	int fd = afalg_socket_bind(type, algorithm);
	struct transform *t;

	if (fd < 0)
		return fd;
	t = malloc(sizeof(*t));
	if (t == NULL) {
		close(fd);
		return -ENOMEM;
	}
	t->tfm = fd;
	t->op = -1;
	*transform = t;
	return 0;
}

static void drop_op(struct transform *t)
{
	if (t->op >= 0)
		close(t->op);
	t->op = -1;
}

static int socket_set_key(void *transform, const uint8_t *key, size_t keylen)
{
	struct transform *t = transform;

	drop_op(t); /* a key cannot be set while a keyed operation is open (EBUSY) */
	return setsockopt(t->tfm, SOL_ALG, ALG_SET_KEY, key, (socklen_t)keylen) == 0 ? 0 : -errno;
}

static void put_control(struct msghdr *msg, struct cmsghdr **next, int type, const void *data, size_t len)
{
	struct cmsghdr *c = *next == NULL ? CMSG_FIRSTHDR(msg) : CMSG_NXTHDR(msg, *next);

	c->cmsg_level = SOL_ALG;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	*next = c;
}

/* Sends direction, IV and data: always together, since a message without a direction decrypts. */
static ssize_t send_request(int op, const struct afalg_request *r)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint32_t) + IV_MAX)];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)r->in, .iov_len = r->len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes};
	const uint32_t direction = r->encrypt ? ALG_OP_ENCRYPT : ALG_OP_DECRYPT, ivlen = (uint32_t)r->ivlen;
	uint8_t iv[sizeof(ivlen) + IV_MAX];
	struct cmsghdr *c = NULL;

	memset(&control, 0, sizeof(control));
	msg.msg_controllen = CMSG_SPACE(sizeof(direction)) + (ivlen == 0 ? 0 : CMSG_SPACE(sizeof(ivlen) + ivlen));
	put_control(&msg, &c, ALG_SET_OP, &direction, sizeof(direction));
	if (ivlen != 0) {
		memcpy(iv, &ivlen, sizeof(ivlen));
		memcpy(iv + sizeof(ivlen), r->iv, ivlen);
		put_control(&msg, &c, ALG_SET_IV, iv, sizeof(ivlen) + ivlen);
	}
	return sendmsg(op, &msg, MSG_DONTWAIT);
}

/* Any outcome but the exact length leaves data queued or a message half described, so the operation is dropped. */
static int request(int op, const struct afalg_request *r)
{
	ssize_t n = send_request(op, r);

	if (n < 0)
		return -errno;
	if ((size_t)n != r->len)
		return -EIO;
	n = recv(op, r->out, r->len, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	return (size_t)n == r->len ? 0 : -EIO;
}

static int socket_crypt(void *transform, const struct afalg_request *r)
{
	struct transform *t = transform;
	int err;

	if (r->len == 0 || r->len > AFALG_REQUEST_MAX || r->ivlen > IV_MAX)
		return -EINVAL;
	if (t->op < 0) {
		t->op = accept_op(t->tfm);
		if (t->op < 0)
			return t->op;
	}
	err = request(t->op, r);
	if (err != 0)
		drop_op(t);
	return err;
}

static void socket_close(void *transform)
{
	struct transform *t = transform;

	drop_op(t);
	close(t->tfm);
	free(t);
}

static int hash_start(void *transform)
{
	return accept_op(((struct transform *)transform)->tfm);
}

static int hash_send(int op, const struct iovec *iov, int parts, bool more)
{
	struct iovec rest[2];
	struct msghdr msg = {.msg_iov = rest, .msg_iovlen = (size_t)parts};
	ssize_t n;

	if (parts < 0 || parts > 2)
		return -EINVAL;
	memcpy(rest, iov, (size_t)parts * sizeof(*iov));
	for (;;) {
		/* A hash takes its data during the send itself: there is no queue that could be full. */
		n = sendmsg(op, &msg, MSG_DONTWAIT | (more ? MSG_MORE : 0));
		if (n < 0 && errno != EINTR)
			return -errno;
		/* What a short send took is hashed; the state is sound and takes the rest. */
		for (; n > 0 && msg.msg_iovlen > 0 && (size_t)n >= msg.msg_iov->iov_len;
		     msg.msg_iovlen--, msg.msg_iov++)
			n -= (ssize_t)msg.msg_iov->iov_len;
		while (msg.msg_iovlen > 0 && msg.msg_iov->iov_len == 0) {
			msg.msg_iovlen--;
			msg.msg_iov++;
		}
		if (msg.msg_iovlen == 0)
			return 0;
		if (n > 0) {
			msg.msg_iov->iov_base = (uint8_t *)msg.msg_iov->iov_base + n;
			msg.msg_iov->iov_len -= (size_t)n;
		}
	}
}

static int hash_finish(int op, uint8_t *md, size_t mdlen)
{
	/* Fewer bytes than the digest has would cut it and lose the state. */
	ssize_t n = recv(op, md, mdlen, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	return (size_t)n == mdlen ? 0 : -EIO;
}

static int hash_copy(int op)
{
	return accept_op(op);
}

static void hash_end(int op)
{
	close(op);
}

const struct afalg_transport afalg_socket = {
	.name = "socket",
	.open = socket_open,
	.set_key = socket_set_key,
	.crypt = socket_crypt,
	.close = socket_close,
	.hash_start = hash_start,
	.hash_send = hash_send,
	.hash_finish = hash_finish,
	.hash_copy = hash_copy,
	.hash_end = hash_end,
};
