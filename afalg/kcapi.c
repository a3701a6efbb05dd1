/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport over libkcapi. Guards around what libkcapi leaves open, without looking into its handles:
 *  - its descriptors are not close-on-exec: they are found and marked, before the key is set;
 *  - after a send cut short by a lack of memory it would wait for ever in read(2): the operation is made non-blocking,
 *    and opened ahead of the first request so that this holds from the start;
 *  - above 64 KiB it restarts the IV: requests are capped (AFALG_REQUEST_MAX);
 *  - its read loop looks at a stale errno: errno is cleared before.
 * What cannot be guarded: a program that closes descriptors which it did not open; libkcapi then uses strangers' ones.
 */
#include "kcapi.h"

#include <errno.h>
#include <fcntl.h>
#include <kcapi.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport.h"

#define IV_MAX 16u

/* libkcapi asks for 17 pages and gets a power of two; over the user's pipe limit the kernel gives one page or two. */
#define KCAPI_PIPE_SIZE 131072
#define SMALL_PIPE_SIZE 8192

/* Held for reading while unmarked descriptors exist, for writing over a fork. */
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#define UNMARKED_INITIALIZER                                                                    \
	PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP /* or threads that open starve a fork \
							   */
#else
#define UNMARKED_INITIALIZER PTHREAD_RWLOCK_INITIALIZER
#endif
static pthread_rwlock_t unmarked = UNMARKED_INITIALIZER;

void afalg_kcapi_fork(enum afalg_fork_phase phase)
{
	if (phase == AFALG_FORK_PREPARE)
		pthread_rwlock_wrlock(&unmarked);
	else if (phase == AFALG_FORK_PARENT)
		pthread_rwlock_unlock(&unmarked);
	else
		unmarked = (pthread_rwlock_t)UNMARKED_INITIALIZER; /* its owner has another thread id here */
}

/* The lowest descriptor that the next call to open anything will get, or a negative errno. */
static int next_descriptor(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return fd;
}

static bool is_alg_socket(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_ALG;
}

static bool is_kcapi_pipe(int fd)
{
	struct stat st;
	int size;

	if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
		return false;
	size = fcntl(fd, F_GETPIPE_SZ);
	return size == KCAPI_PIPE_SIZE || (size > 0 && size <= SMALL_PIPE_SIZE);
}

/* Marks what libkcapi has opened from descriptor `first` on: those are the lowest that were free. */
static void mark(int first)
{
	int end = next_descriptor();

	for (int fd = first; fd < end; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0 || (flags & FD_CLOEXEC) != 0)
			continue;
		if (is_alg_socket(fd)) {
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		} else if (is_kcapi_pipe(fd)) {
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
		}
	}
}

static void kcapi_close(void *transform)
{
	kcapi_cipher_destroy(transform);
}

static int init_marked(const char *algorithm, struct kcapi_handle **handle)
{
	int first, err;

	pthread_rwlock_rdlock(&unmarked);
	first = next_descriptor();
	if (first < 0) {
		pthread_rwlock_unlock(&unmarked);
		return first;
	}
	errno = 0;
	err = kcapi_cipher_init(handle, algorithm, 0);
	if (err == 0)
		mark(first);
	pthread_rwlock_unlock(&unmarked);
	/* 1.4.0 gives a stale errno where netlink refuses, so the code may be 0 or positive on failure. */
	return err > 0 ? -EIO : err;
}

static int kcapi_open(const char *type, const char *algorithm, void **transform)
{
	struct kcapi_handle *handle = NULL;
	int err;

	if (strcmp(type, "skcipher") != 0)
		return -EOPNOTSUPP;
	if (strlen(algorithm) > AFALG_NAME_MAX)
		return -ENAMETOOLONG;
	kcapi_set_verbosity(KCAPI_LOG_NONE); /* 1.4.0 prints its errors to stderr by default */
	err = init_marked(algorithm, &handle);
	if (err != 0)
		return err;
	if (handle == NULL)
		return -EAGAIN;
	if (kcapi_cipher_blocksize(handle) == 0 || kcapi_cipher_ivsize(handle) > IV_MAX) {
		/* 1.4.0 reports success for a failed netlink query and knows no sizes then. */
		kcapi_cipher_destroy(handle);
		return -EAGAIN;
	}
	*transform = handle;
	return 0;
}

/* Opens the operation with an empty first part of a message; a request restates direction and IV. */
static int start_marked(struct kcapi_handle *handle)
{
	static const uint8_t no_iv[IV_MAX];
	int first;
	ssize_t n;

	pthread_rwlock_rdlock(&unmarked);
	first = next_descriptor();
	n = first < 0 ? first : kcapi_cipher_stream_init_enc(handle, no_iv, NULL, 0);
	if (n >= 0)
		mark(first);
	pthread_rwlock_unlock(&unmarked);
	return n < 0 ? (int)n : 0;
}

static int kcapi_set_key(void *transform, const uint8_t *key, size_t keylen)
{
	int err = kcapi_cipher_setkey(transform, key, (uint32_t)keylen);

	return err != 0 ? err : start_marked(transform);
}

static int kcapi_crypt(void *transform, const struct afalg_request *r)
{
	ssize_t n;

	if (r->len == 0 || r->len > AFALG_REQUEST_MAX || r->ivlen != kcapi_cipher_ivsize(transform))
		return -EINVAL;
	errno = 0;
	if (r->encrypt)
		n = kcapi_cipher_encrypt(transform, r->in, r->len, r->iv, r->out, r->len, KCAPI_ACCESS_SENDMSG);
	else
		n = kcapi_cipher_decrypt(transform, r->in, r->len, r->iv, r->out, r->len, KCAPI_ACCESS_SENDMSG);
	if (n < 0)
		return (int)n;
	return (size_t)n == r->len ? 0 : -EIO;
}

static int no_taglen(void *transform, size_t taglen)
{
	(void)transform;
	(void)taglen;
	return -EOPNOTSUPP;
}

const struct afalg_transport afalg_kcapi = {
	.name = "libkcapi",
	.open = kcapi_open,
	.set_key = kcapi_set_key,
	.set_taglen = no_taglen,
	.crypt = kcapi_crypt,
	.close = kcapi_close,
};
