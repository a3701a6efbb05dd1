/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keyed transforms of ciphers and AEADs. A context asks for its session when it has a large request; the session is
 * opened then, kept while the number of sessions allows, and opened anew when it was dropped meanwhile. At most
 * afalg_session_set_limit() are open, and they hold at most a quarter of the descriptors that the process may have;
 * beyond that the least recently used goes.
 */
#ifndef AFALG_SESSION_H
#define AFALG_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fork.h"
#include "transport.h"

#define AFALG_SESSIONS_DEFAULT 256u
#define AFALG_SESSIONS_MAX 4096u

struct slot;

/* What a session is opened for. */
struct afalg_keyed {
	const char *type;      /* "skcipher", "aead" */
	const char *algorithm; /* a kernel name */
	const uint8_t *key;    /* not kept */
	size_t keylen;         /* bytes */
	size_t taglen;         /* bytes; AEAD */
};

/* A context's claim on a session; all zero means none. Its owner is one thread at a time. */
struct afalg_session {
	struct slot *slot;
	uint64_t ticket; /* the claim holds while the slot bears the same number */
	int cancel;      /* the thread's cancellation state, between begin and end */
};

/* Which transport opens sessions from now on; `afalg_socket` unless set. */
void afalg_session_set_transport(const struct afalg_transport *transport);

/* At most this many sessions (1 to AFALG_SESSIONS_MAX) from now on; idle ones above that are closed. */
void afalg_session_set_limit(unsigned sessions);

/*
 * Opens the session, or finds it still open, for the calling thread alone until afalg_session_end(), up to which the
 * thread cannot be cancelled. A claim is good for what it was opened with: drop it before it is opened for anything
 * else. -EBUSY: as many sessions as allowed are in use at this moment. Other errors are those of socket, bind,
 * setsockopt and accept.
 */
int afalg_session_begin(struct afalg_session *s, const struct afalg_keyed *keyed);

/* One request between begin and end. Writes r->out only on success where it overlaps r->in. -EBADMSG: a wrong tag. */
int afalg_session_crypt(struct afalg_session *s, const struct afalg_request *r);

/* Gives the session back to the pool; a session with a failed request (`sound` false) is closed. */
void afalg_session_end(struct afalg_session *s, bool sound);

/* Closes the session if it is still open: the context ends, or has another key. */
void afalg_session_drop(struct afalg_session *s);

/* How many sessions are open in this process. */
unsigned afalg_session_count(void);

/* How many things of `each` descriptors take a quarter of those that the process may have; at least 1. */
unsigned afalg_descriptor_limit(unsigned each);

/* Called by the fork handlers. */
void afalg_session_fork(enum afalg_fork_phase phase);

#endif
