/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seam between this project and the kernel crypto API. Three implementations: libkcapi (kcapi.c), a plain AF_ALG
 * socket (socket.c) and the scripted kernel of the unit tests (tests/unit/fake.c).
 *
 * All functions return 0 or a descriptor where they succeed, a negative errno where they fail. None blocks on a
 * condition that only the caller could bring about: requests are whole, at most AFALG_REQUEST_MAX bytes, and asked for
 * with their exact length. A transform or operation whose request failed is in an unknown state: close it.
 */
#ifndef AFALG_TRANSPORT_H
#define AFALG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Most bytes of one request. Above 64 KiB libkcapi restarts the IV and reports success, and virtio-crypto hangs for
 * good from 128 KiB on; it also stays well below the send buffer of a socket, beyond which a send waits for ever.
 */
#define AFALG_REQUEST_MAX 65536u

/* Most bytes that a random generator gives in one request (crypto/algif_rng.c, MAXSIZE). */
#define AFALG_RNG_MAX 128u

/* The longest algorithm name that the address of an AF_ALG socket holds (struct sockaddr_alg, salg_name). */
#define AFALG_NAME_MAX 63u

/*
 * One request of a cipher or an AEAD. The IV is the caller's and goes with every request: no driver's own IV is
 * trusted. aadlen, len and taglen together are at most AFALG_REQUEST_MAX.
 */
struct afalg_request {
	bool encrypt;
	const uint8_t *iv;
	size_t ivlen; /* bytes; 0 for a mode without IV */
	const uint8_t *in;
	uint8_t *out; /* equal to `in` or disjoint from it */
	size_t len;   /* bytes of in and out, at least 1; of a block mode whole blocks */
	uint8_t *aad; /* AEAD: the kernel writes it back as it was */
	size_t aadlen;
	uint8_t *tag;  /* AEAD: written in encryption, read in decryption */
	size_t taglen; /* bytes, as told by set_taglen; 0: no AEAD */
};

/* A descriptor of ours, and how to know whether it still is: programs that daemonise close what they did not open. */
struct afalg_op {
	int fd; /* -1: none */
	uint32_t serial;
	uint64_t inode;
};

struct afalg_transport {
	const char *name;

	/*
	 * Binds `algorithm` (a generic name or a driver's) of `type` ("skcipher", "aead", "hash"). The caller owns
	 * *transform. -EOPNOTSUPP: not over this transport.
	 */
	int (*open)(const char *type, const char *algorithm, void **transform);
	int (*set_key)(void *transform, const uint8_t *key, size_t keylen);
	/* AEAD: the bytes of tag of all requests, before the first of them. */
	int (*set_taglen)(void *transform, size_t taglen);
	/* -EBADMSG: the tag is wrong; `out` may hold the plaintext all the same, and the transform is sound. */
	int (*crypt)(void *transform, const struct afalg_request *request);
	void (*close)(void *transform);

	/*
	 * A hash in progress is an operation: a descriptor of its own on a transform that may serve many. Null in a
	 * transport that cannot copy hash state. -EBADF: the program has closed the transform.
	 */
	int (*hash_start)(void *transform, struct afalg_op *op);
	/* Hashes all bytes of `iov`, at most AFALG_REQUEST_MAX; `more`: further data or an empty finish follows. */
	int (*hash_send)(const struct afalg_op *op, const struct iovec *iov, int parts, bool more);
	/* Takes the digest of `mdlen` bytes; the operation is then ready for another message. */
	int (*hash_finish)(const struct afalg_op *op, uint8_t *md, size_t mdlen);
	/* A second operation that continues from the same state (accept(2) on one: algif_hash.c, hash_accept). */
	int (*hash_copy)(const struct afalg_op *op, struct afalg_op *copy);
	void (*hash_end)(struct afalg_op *op);

	/*
	 * A random generator is an operation too. Its state is in the kernel, which moves it with each request:
	 * threads, and parent and child of a fork, may share one, and get different bytes. Null in a transport without.
	 */
	/* Opens a generator that takes its seed from the kernel's own entropy. */
	int (*rng_open)(const char *algorithm, struct afalg_op *op);
	/* Takes exactly `len` bytes, 1 to AFALG_RNG_MAX. -EBADF: the program has closed the operation, or it was
	 * replaced. */
	int (*rng_read)(const struct afalg_op *op, uint8_t *out, size_t len);
	/* Closes what `op` was, if anything, and makes it `fresh`. Requests of other threads meet either of them. */
	void (*rng_replace)(struct afalg_op *op, struct afalg_op *fresh);
	void (*rng_close)(struct afalg_op *op);
};

/* Over libkcapi: skcipher only (its AEAD calls want AAD, data and tag in one buffer). Fails with -ENOENT or -EAGAIN
 * where NETLINK_CRYPTO is missing, even if AF_ALG works. */
extern const struct afalg_transport afalg_kcapi;

/* Over a plain AF_ALG socket: everything. */
extern const struct afalg_transport afalg_socket;

#endif
