/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over a plain AF_ALG socket (Linux Documentation/crypto/userspace-if.rst). */
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_alg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport.h"

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define IV_MAX 16u

struct transform {
	struct afalg_op tfm; /* bound; holds algorithm and key */
	struct afalg_op op;  /* accepted from tfm at the first request */
};

/*
 * A program may close our descriptors (daemon(3), closefrom(3)), and their numbers come into other use. Three guards,
 * none of which costs a system call in a request:
 *  - A number that we get anew has a new serial, and the former holder of the number sees that it lost it.
 *  - Requests carry an address and flags that AF_ALG does not look at and that other sockets refuse, so nothing is sent
 *    to a stranger, and nothing taken from one: MSG_FASTOPEN and AF_UNSPEC by TCP (tcp_sendmsg_fastopen), an address by
 *    connected UNIX sockets, netlink and others; MSG_ERRQUEUE by TCP and UDP, MSG_OOB by UNIX, netlink and others.
 *  - Before it is closed or accepted from, a descriptor is looked at.
 */
#define NUMBERS 65536
static _Atomic uint32_t serials[NUMBERS];

#define SEND_FLAGS (MSG_DONTWAIT | MSG_FASTOPEN)
#define RECEIVE_FLAGS (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE)

static struct sockaddr no_address = {.sa_family = AF_UNSPEC};

static uint64_t socket_inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? (uint64_t)st.st_ino : 0;
}

/* Makes a new descriptor ours; a negative one is the errno of what should have made it. */
static int own(struct afalg_op *op, int fd)
{
	*op = (struct afalg_op){-1, 0, 0};
	if (fd < 0)
		return fd;
	if (fd >= NUMBERS) {
		close(fd);
		return -EMFILE;
	}
	*op = (struct afalg_op){fd, atomic_fetch_add(&serials[fd], 1) + 1, socket_inode(fd)};
	return 0;
}

/* Not taken by another of ours; a stranger may have it. */
static bool not_lost(const struct afalg_op *op)
{
	return op->fd >= 0 && atomic_load_explicit(&serials[op->fd], memory_order_relaxed) == op->serial;
}

static bool still_ours(const struct afalg_op *op)
{
	return not_lost(op) && socket_inode(op->fd) == op->inode;
}

static void let_go(struct afalg_op *op)
{
	if (still_ours(op))
		close(op->fd);
	op->fd = -1;
}

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
static int accept_op(const struct afalg_op *from, struct afalg_op *op)
{
	int fd;

	*op = (struct afalg_op){-1, 0, 0};
	if (!still_ours(from))
		return -EBADF;
	do {
		fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return own(op, fd < 0 ? -errno : fd);
}

static int socket_open(const char *type, const char *algorithm, void **transform)
{
	struct transform *t = malloc(sizeof(*t));
	int err;

	if (t == NULL)
		return -ENOMEM;
	err = own(&t->tfm, afalg_socket_bind(type, algorithm));
	if (err != 0) {
		free(t);
		return err;
	}
	t->op.fd = -1;
	*transform = t;
	return 0;
}

static int socket_set_key(void *transform, const uint8_t *key, size_t keylen)
{
	struct transform *t = transform;

	let_go(&t->op); /* a key cannot be set while a keyed operation is open (EBUSY) */
	if (!still_ours(&t->tfm))
		return -EBADF;
	return setsockopt(t->tfm.fd, SOL_ALG, ALG_SET_KEY, key, (socklen_t)keylen) == 0 ? 0 : -errno;
}

/* The tag length is the length of the option; there is no value (af_alg.c, alg_setsockopt). */
static int socket_set_taglen(void *transform, size_t taglen)
{
	struct transform *t = transform;

	let_go(&t->op);
	if (!still_ours(&t->tfm))
		return -EBADF;
	return setsockopt(t->tfm.fd, SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, (socklen_t)taglen) == 0 ? 0 : -errno;
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

/*
 * Sends direction, IV and the length of AAD with the data: always together, since a message without a direction
 * decrypts. An AEAD's input is AAD, data and, in decryption, the tag.
 */
static ssize_t send_request(int fd, const struct afalg_request *r)
{
	union {
		struct cmsghdr align;
		char bytes[2 * CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint32_t) + IV_MAX)];
	} control;
	const struct iovec iov[] = {
		{r->aad, r->aadlen}, {(void *)(uintptr_t)r->in, r->len}, {r->tag, r->encrypt ? 0 : r->taglen}};
	const bool aead = r->taglen != 0;
	struct msghdr msg = {.msg_name = &no_address,
			     .msg_namelen = sizeof(no_address),
			     .msg_iov = (struct iovec *)(uintptr_t)(aead ? iov : iov + 1),
			     .msg_iovlen = aead ? 3 : 1,
			     .msg_control = control.bytes};
	const uint32_t direction = r->encrypt ? ALG_OP_ENCRYPT : ALG_OP_DECRYPT, ivlen = (uint32_t)r->ivlen,
		       aadlen = (uint32_t)r->aadlen;
	uint8_t iv[sizeof(ivlen) + IV_MAX];
	struct cmsghdr *c = NULL;

	memset(&control, 0, sizeof(control));
	msg.msg_controllen = CMSG_SPACE(sizeof(direction)) + (ivlen == 0 ? 0 : CMSG_SPACE(sizeof(ivlen) + ivlen)) +
			     (aead ? CMSG_SPACE(sizeof(aadlen)) : 0);
	put_control(&msg, &c, ALG_SET_OP, &direction, sizeof(direction));
	if (ivlen != 0) {
		memcpy(iv, &ivlen, sizeof(ivlen));
		memcpy(iv + sizeof(ivlen), r->iv, ivlen);
		put_control(&msg, &c, ALG_SET_IV, iv, sizeof(ivlen) + ivlen);
	}
	if (aead)
		put_control(&msg, &c, ALG_SET_AEAD_ASSOCLEN, &aadlen, sizeof(aadlen));
	return sendmsg(fd, &msg, SEND_FLAGS);
}

/* Receives exactly what the request yields: AAD as it was, data and, in encryption, the tag. */
static ssize_t receive_request(int fd, const struct afalg_request *r)
{
	struct iovec iov[] = {{r->aad, r->aadlen}, {r->out, r->len}, {r->tag, r->encrypt ? r->taglen : 0}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 3};

	return r->taglen == 0 ? recv(fd, r->out, r->len, RECEIVE_FLAGS) : recvmsg(fd, &msg, RECEIVE_FLAGS);
}

/* Any outcome but the exact length leaves data queued or a message half described, so the operation is dropped. */
static int request(const struct afalg_op *op, const struct afalg_request *r)
{
	const size_t bytes = r->aadlen + r->len;
	ssize_t n = not_lost(op) ? send_request(op->fd, r) : (errno = EBADF, -1);

	if (n < 0)
		return -errno;
	if ((size_t)n != bytes + (r->encrypt ? 0 : r->taglen))
		return -EIO;
	n = receive_request(op->fd, r);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes + (r->encrypt ? r->taglen : 0) ? 0 : -EIO;
}

static int socket_crypt(void *transform, const struct afalg_request *r)
{
	struct transform *t = transform;
	int err;

	if (r->len == 0 || r->aadlen + r->len + r->taglen > AFALG_REQUEST_MAX || r->ivlen > IV_MAX)
		return -EINVAL;
	if (t->op.fd < 0) {
		err = accept_op(&t->tfm, &t->op);
		if (err != 0)
			return err;
	}
	err = request(&t->op, r);
	if (err != 0 && err != -EBADMSG)
		let_go(&t->op);
	return err;
}

static void socket_close(void *transform)
{
	struct transform *t = transform;

	let_go(&t->op);
	let_go(&t->tfm);
	free(t);
}

static int hash_start(void *transform, struct afalg_op *op)
{
	return accept_op(&((struct transform *)transform)->tfm, op);
}

static int hash_send(const struct afalg_op *op, const struct iovec *iov, int parts, bool more)
{
	struct iovec rest[2];
	struct msghdr msg = {.msg_name = &no_address,
			     .msg_namelen = sizeof(no_address),
			     .msg_iov = rest,
			     .msg_iovlen = (size_t)parts};
	ssize_t n;

	if (parts < 0 || parts > 2)
		return -EINVAL;
	if (!not_lost(op))
		return -EBADF;
	memcpy(rest, iov, (size_t)parts * sizeof(*iov));
	for (;;) {
		/* A hash takes its data during the send itself: there is no queue that could be full. */
		n = sendmsg(op->fd, &msg, SEND_FLAGS | (more ? MSG_MORE : 0));
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

static int hash_finish(const struct afalg_op *op, uint8_t *md, size_t mdlen)
{
	ssize_t n;

	if (!not_lost(op))
		return -EBADF;
	/* Fewer bytes than the digest has would cut it and lose the state. */
	n = recv(op->fd, md, mdlen, RECEIVE_FLAGS);
	if (n < 0)
		return -errno;
	return (size_t)n == mdlen ? 0 : -EIO;
}

static int hash_copy(const struct afalg_op *op, struct afalg_op *copy)
{
	return accept_op(op, copy);
}

static void hash_end(struct afalg_op *op)
{
	let_go(op);
}

static int rng_open(const char *algorithm, struct afalg_op *op)
{
	struct afalg_op tfm;
	int err = own(&tfm, afalg_socket_bind("rng", algorithm));

	*op = (struct afalg_op){-1, 0, 0};
	if (err != 0)
		return err;
	/* A seed of no bytes has the generator seed itself; a DRBG without that call refuses to work. */
	err = setsockopt(tfm.fd, SOL_ALG, ALG_SET_KEY, "", 0) == 0 ? accept_op(&tfm, op) : -errno;
	/* The operation keeps the transform, and without this descriptor nobody can give that another seed. */
	let_go(&tfm);
	return err;
}

static int rng_read(const struct afalg_op *op, uint8_t *out, size_t len)
{
	ssize_t n;

	/* A stranger's bytes would pass for random ones: no request without a look at the descriptor. */
	if (!still_ours(op))
		return -EBADF;
	do {
		n = recv(op->fd, out, len, RECEIVE_FLAGS);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

static void rng_replace(struct afalg_op *op, struct afalg_op *fresh)
{
	/* In one step under the same number: a request under way keeps the old operation, the next has the new one. */
	if (still_ours(op) && dup3(fresh->fd, op->fd, O_CLOEXEC) >= 0) {
		op->inode = fresh->inode;
		let_go(fresh);
	} else {
		let_go(op);
		*op = *fresh;
	}
}

static void rng_close(struct afalg_op *op)
{
	let_go(op);
}

const struct afalg_transport afalg_socket = {
	.name = "socket",
	.open = socket_open,
	.set_key = socket_set_key,
	.set_taglen = socket_set_taglen,
	.crypt = socket_crypt,
	.close = socket_close,
	.hash_start = hash_start,
	.hash_send = hash_send,
	.hash_finish = hash_finish,
	.hash_copy = hash_copy,
	.hash_end = hash_end,
	.rng_open = rng_open,
	.rng_read = rng_read,
	.rng_replace = rng_replace,
	.rng_close = rng_close,
};
