/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes in progress in the kernel, with a key (HMAC, CMAC) or without. One descriptor each, bounded in number like
 * sessions. Before a fork each is copied, so that parent and child both go on from the same state.
 */
#ifndef AFALG_HASH_H
#define AFALG_HASH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "fork.h"
#include "transport.h"

/* A hash in progress; one thread at a time. Must not move in memory between start (or copy) and end. */
struct afalg_hash {
	struct afalg_op op;
	struct afalg_op fork_copy; /* for the child, while a fork is under way */
	struct afalg_hash_parent *parent;
	bool finished;    /* the operation can serve another message */
	atomic_bool busy; /* a call is under way, which a fork must not wait for */
	struct afalg_hash *previous, *next;
};

/* The transport of hashes; `afalg_socket` unless set. Not while hashes are in progress. */
void afalg_hash_set_transport(const struct afalg_transport *transport);

/* At most this many hashes in progress in this process, and apart from them at most this many keys open. */
void afalg_hash_set_limit(unsigned hashes);

/* The longest key. A MAC hashes longer ones first: what the kernel takes depends on its net.core.optmem_max. */
#define AFALG_HASH_KEY_MAX 144u

/*
 * A key in the kernel, held by a context and its copies. Its transform is opened when first needed and then kept, while
 * the number of keys allows; beyond that the least recently used that no hash uses is closed, and opened anew when it
 * is needed again. It never gets another key, which hashes in progress would feel.
 */
struct afalg_hash_key;

/*
 * Gives up `old` (null: none) for a key of `keylen` bytes for the kernel's `algorithm` (kept by the caller); the same
 * once more stays as it is. Null: out of memory, or the key is too long.
 */
struct afalg_hash_key *afalg_hash_key_change(struct afalg_hash_key *old, const char *algorithm, const uint8_t *key,
					     size_t keylen);

/* One holder more; null for null. */
struct afalg_hash_key *afalg_hash_key_share(struct afalg_hash_key *key);

/* One holder less; the last closes it. No hash of this holder may be in progress. */
void afalg_hash_key_free(struct afalg_hash_key *key);

/* How many keys are open in this process. */
unsigned afalg_hash_key_count(void);

/*
 * Begins a hash with the kernel's `algorithm`, that of the `key` if there is one. -EBUSY: as many as allowed are in
 * progress, or as many keys in use. The limit is for those begun; copies of them are always tried.
 */
int afalg_hash_start(struct afalg_hash *h, const char *algorithm, struct afalg_hash_key *key);

/*
 * Hashes the `parts` (1 or 2) of iov in requests of at most AFALG_REQUEST_MAX bytes; the last is the end of the message
 * unless `more`. *requests counts those that succeeded. After an error the state is lost and the hash can only be
 * ended. -ESTALE: the state was lost in a fork.
 */
int afalg_hash_send(struct afalg_hash *h, const struct iovec *iov, int parts, bool more, unsigned *requests);

/* Takes the digest, exactly `mdlen` bytes. */
int afalg_hash_finish(struct afalg_hash *h, uint8_t *md, size_t mdlen);

/* Makes `to` a second hash that goes on from the state of `from`. */
int afalg_hash_copy(struct afalg_hash *to, struct afalg_hash *from);

/* Ends a hash that start or copy began, whatever its state. */
void afalg_hash_end(struct afalg_hash *h);

/* Called by the fork handlers. */
void afalg_hash_fork(enum afalg_fork_phase phase);

#endif
