/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The most descriptors of a session: libkcapi's two sockets and its pipe. */
#define DESCRIPTORS 4

/* A place for an open transform. Slots are never freed, so a stale claim can always look at its slot. */
struct slot {
	uint64_t ticket; /* 0: free */
	void *transform;
	const struct afalg_transport *transport;
	unsigned generation;
	struct slot *older, *newer; /* idle sessions, by last use; `older` also links free slots */
};

static struct {
	pthread_mutex_t lock; /* short: never held over a system call, but for the fork handlers */
	const struct afalg_transport *transports[2];
	unsigned limit, open;
	unsigned generation;
	uint64_t tickets;
	struct slot *oldest, *newest; /* idle */
	struct slot *free;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.transports = {&afalg_kcapi, &afalg_socket},
	.limit = AFALG_SESSIONS_DEFAULT,
};

/* What is left to close once the lock is given back. */
struct closing {
	void *transform;
	const struct afalg_transport *transport;
};

static void close_now(const struct closing *c)
{
	if (c->transform != NULL)
		c->transport->close(c->transform);
}

void afalg_session_set_transports(const struct afalg_transport *const transports[2])
{
	pthread_mutex_lock(&pool.lock);
	pool.transports[0] = transports[0];
	pool.transports[1] = transports[1];
	pthread_mutex_unlock(&pool.lock);
}

void afalg_session_set_limit(unsigned sessions)
{
	pthread_mutex_lock(&pool.lock);
	pool.limit = sessions;
	pthread_mutex_unlock(&pool.lock);
}

unsigned afalg_session_count(void)
{
	unsigned n;

	pthread_mutex_lock(&pool.lock);
	n = pool.open;
	pthread_mutex_unlock(&pool.lock);
	return n;
}

static void idle_remove(struct slot *s)
{
	*(s->older != NULL ? &s->older->newer : &pool.oldest) = s->newer;
	*(s->newer != NULL ? &s->newer->older : &pool.newest) = s->older;
	s->older = s->newer = NULL;
}

static void idle_add(struct slot *s)
{
	s->older = pool.newest;
	s->newer = NULL;
	*(pool.newest != NULL ? &pool.newest->newer : &pool.oldest) = s;
	pool.newest = s;
}

/* Frees the slot, which is in no list, and hands its transform over for closing. */
static struct closing slot_release(struct slot *s)
{
	const struct closing c = {s->transform, s->transport};

	s->ticket = 0;
	s->transform = NULL;
	s->older = pool.free;
	s->newer = NULL;
	pool.free = s;
	pool.open--;
	return c;
}

/* The most sessions that leave three quarters of the descriptors to the program. */
static unsigned descriptor_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
		return AFALG_SESSIONS_MAX;
	r.rlim_cur /= 4 * DESCRIPTORS;
	return r.rlim_cur == 0 ? 1 : r.rlim_cur > AFALG_SESSIONS_MAX ? AFALG_SESSIONS_MAX : (unsigned)r.rlim_cur;
}

/*
 * Takes a slot for a new session, under the lock. Above `limit` the least recently used idle session gives way and
 * is handed out for closing. Null: all are in use, or no memory.
 */
static struct slot *slot_take(unsigned limit, struct closing *victim)
{
	struct slot *s;

	if (pool.open >= limit) {
		s = pool.oldest;
		if (s == NULL)
			return NULL;
		idle_remove(s);
		*victim = slot_release(s);
	}
	s = pool.free;
	if (s != NULL)
		pool.free = s->older;
	else if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->older = NULL;
	s->ticket = ++pool.tickets;
	s->generation = pool.generation;
	pool.open++;
	return s;
}

static int open_keyed(const struct afalg_transport *t, const char *algorithm, const uint8_t *key, size_t keylen,
		      void **transform)
{
	int err = t->open("skcipher", algorithm, transform);

	if (err != 0)
		return err;
	err = t->set_key(*transform, key, keylen);
	if (err != 0)
		t->close(*transform);
	return err;
}

/* Fills the slot, which is in no list and so this thread's alone. */
static int slot_open(struct slot *s, const struct afalg_transport *const transports[2], const char *algorithm,
		     const uint8_t *key, size_t keylen)
{
	int err = -EAFNOSUPPORT;

	for (int i = 0; i < 2 && transports[i] != NULL; i++) {
		err = open_keyed(transports[i], algorithm, key, keylen, &s->transform);
		if (err == 0) {
			s->transport = transports[i];
			/* The first does not work here: do not try it again for every session. */
			if (i == 1)
				afalg_session_set_transports((const struct afalg_transport *const[2]){transports[1]});
			return 0;
		}
	}
	s->transform = NULL;
	return err;
}

/* Whether the claim holds: the slot was not given to another, and the session is this process's own. Under the lock. */
static bool holds(const struct afalg_session *s)
{
	return s->slot->ticket == s->ticket && s->slot->generation == pool.generation;
}

/* Takes the session, idle so far, for the caller. */
static bool claim(const struct afalg_session *s)
{
	bool held;

	if (s->slot == NULL)
		return false;
	pthread_mutex_lock(&pool.lock);
	held = holds(s);
	if (held)
		idle_remove(s->slot);
	pthread_mutex_unlock(&pool.lock);
	return held;
}

int afalg_session_begin(struct afalg_session *s, const char *algorithm, const uint8_t *key, size_t keylen)
{
	const struct afalg_transport *transports[2];
	struct closing victim = {NULL, NULL};
	unsigned limit;
	struct slot *slot;
	int err;

	if (claim(s))
		return 0;
	afalg_fork_init();
	limit = descriptor_limit();
	pthread_mutex_lock(&pool.lock);
	memcpy(transports, pool.transports, sizeof(transports));
	slot = slot_take(limit < pool.limit ? limit : pool.limit, &victim);
	pthread_mutex_unlock(&pool.lock);
	close_now(&victim);
	if (slot == NULL)
		return -EBUSY;

	err = slot_open(slot, transports, algorithm, key, keylen);
	if (err != 0) {
		pthread_mutex_lock(&pool.lock);
		slot_release(slot);
		pthread_mutex_unlock(&pool.lock);
		return err;
	}
	s->slot = slot;
	s->ticket = slot->ticket;
	return 0;
}

static bool overlap(const struct afalg_request *r)
{
	const uintptr_t in = (uintptr_t)r->in, out = (uintptr_t)r->out;

	return in < out + r->len && out < in + r->len;
}

int afalg_session_crypt(struct afalg_session *s, const struct afalg_request *r)
{
	const struct slot *slot = s->slot;
	struct afalg_request bounced = *r;
	int err;

	if (!overlap(r))
		return slot->transport->crypt(slot->transform, r);
	/* A driver that fails half way has written over its input: keep it whole until the request has succeeded. */
	bounced.out = malloc(r->len);
	if (bounced.out == NULL)
		return -ENOMEM;
	err = slot->transport->crypt(slot->transform, &bounced);
	if (err == 0)
		memcpy(r->out, bounced.out, r->len);
	explicit_bzero(bounced.out, r->len);
	free(bounced.out);
	return err;
}

void afalg_session_end(struct afalg_session *s, bool sound)
{
	struct closing c = {NULL, NULL};

	pthread_mutex_lock(&pool.lock);
	if (sound)
		idle_add(s->slot);
	else
		c = slot_release(s->slot);
	pthread_mutex_unlock(&pool.lock);
	close_now(&c);
}

void afalg_session_drop(struct afalg_session *s)
{
	struct closing c = {NULL, NULL};

	if (s->slot == NULL)
		return;
	pthread_mutex_lock(&pool.lock);
	if (holds(s)) {
		idle_remove(s->slot);
		c = slot_release(s->slot);
	}
	pthread_mutex_unlock(&pool.lock);
	close_now(&c);
	*s = (struct afalg_session){NULL, 0};
}

/*
 * The child closes the sessions that were idle: the parent still uses them. It never sees those that another thread had
 * in use at that moment again: their descriptors stay until it execs or ends.
 */
static void child_drop_idle(void)
{
	while (pool.oldest != NULL) {
		struct slot *s = pool.oldest;
		struct closing c;

		idle_remove(s);
		c = slot_release(s);
		close_now(&c);
	}
	pool.open = 0;
	pool.generation++;
}

void afalg_session_fork(enum afalg_fork_phase phase)
{
	if (phase == AFALG_FORK_PREPARE) {
		pthread_mutex_lock(&pool.lock);
		return;
	}
	if (phase == AFALG_FORK_CHILD)
		child_drop_idle();
	pthread_mutex_unlock(&pool.lock);
}
