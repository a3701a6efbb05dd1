/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cancel.h"

/* The most descriptors of a session: libkcapi's two sockets and its pipe. */
#define DESCRIPTORS 4

/*
 * A place for an open transform. Slots are never freed, so a stale claim can always look at its slot. The state says
 * who may touch the rest: whoever changes it from "idle" owns the slot. That takes no lock, so contexts of several
 * threads do not meet on their way to the kernel.
 */
struct slot {
	_Atomic uint64_t state; /* SLOT_FREE, or a ticket, idle or busy */
	_Atomic uint64_t last_used;
	atomic_bool in_request; /* the kernel may be writing to the process's memory */
	pthread_t requester;    /* meanwhile */
	void *transform;
	const struct afalg_transport *transport;
	struct slot *next_free;
};

#define SLOT_FREE 0u
#define SLOT_IDLE(ticket) ((ticket) << 1)
#define SLOT_BUSY(ticket) ((ticket) << 1 | 1u)

static struct {
	pthread_mutex_t lock; /* of what follows; never held over a system call, but for the fork handlers */
	unsigned limit, open;
	uint64_t tickets;
	struct slot *slots[AFALG_SESSIONS_MAX];
	unsigned slot_count;
	struct slot *free;
	const struct afalg_transport *_Atomic transport;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.limit = AFALG_SESSIONS_DEFAULT,
	.transport = &afalg_socket,
};

/*
 * No fork while the kernel writes to memory of this process: up to Linux 6.x it holds the pages of the output in a way
 * that copy-on-write does not know of. Should another thread write to the same page after the fork, then this process
 * gets a copy of the page, and the kernel goes on with the one that is now the child's alone.
 */
static atomic_bool forking;

/* How long a fork waits for the requests of other threads, in milliseconds: a device that hangs must not stop it. */
#define FORK_WAIT_MS 2000

static _Atomic uint64_t uses; /* a clock that ticks at each use of any session */

void afalg_session_set_transport(const struct afalg_transport *transport)
{
	pthread_mutex_lock(&pool.lock);
	pool.transport = transport;
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

/* Makes an idle session of this ticket the caller's. */
static bool slot_seize(struct slot *s, uint64_t ticket)
{
	uint64_t idle = SLOT_IDLE(ticket);

	return atomic_compare_exchange_strong(&s->state, &idle, SLOT_BUSY(ticket));
}

/* Closes the session in a slot that the caller owns, and gives the slot back. */
static void slot_release(struct slot *s)
{
	if (s->transform != NULL)
		s->transport->close(s->transform);
	s->transform = NULL;
	atomic_store(&s->state, SLOT_FREE);
	pthread_mutex_lock(&pool.lock);
	s->next_free = pool.free;
	pool.free = s;
	pool.open--;
	pthread_mutex_unlock(&pool.lock);
}

/* Seizes the idle session whose last use is longest ago; null: all are in use. Under the lock. */
static struct slot *seize_oldest(void)
{
	for (;;) {
		struct slot *oldest = NULL;
		uint64_t used = UINT64_MAX, state = SLOT_FREE;

		for (unsigned i = 0; i < pool.slot_count; i++) {
			struct slot *s = pool.slots[i];
			const uint64_t now = atomic_load(&s->state);

			if (now != SLOT_FREE && (now & 1) == 0 && atomic_load(&s->last_used) < used) {
				used = atomic_load(&s->last_used);
				state = now;
				oldest = s;
			}
		}
		if (oldest == NULL || slot_seize(oldest, state >> 1))
			return oldest;
	}
}

void afalg_session_set_limit(unsigned sessions)
{
	struct slot *surplus;

	do {
		pthread_mutex_lock(&pool.lock);
		pool.limit = sessions;
		surplus = pool.open > pool.limit ? seize_oldest() : NULL;
		pthread_mutex_unlock(&pool.lock);
		if (surplus != NULL)
			slot_release(surplus);
	} while (surplus != NULL);
}

unsigned afalg_descriptor_limit(unsigned each)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
		return AFALG_SESSIONS_MAX;
	r.rlim_cur /= 4 * each;
	return r.rlim_cur == 0 ? 1 : r.rlim_cur > AFALG_SESSIONS_MAX ? AFALG_SESSIONS_MAX : (unsigned)r.rlim_cur;
}

/* A slot that was free or is new. Under the lock. */
static struct slot *slot_unused(void)
{
	struct slot *s = pool.free;

	if (s != NULL) {
		pool.free = s->next_free;
		return s;
	}
	if (pool.slot_count == AFALG_SESSIONS_MAX || (s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	pool.slots[pool.slot_count++] = s;
	return s;
}

/*
 * Takes a slot for a new session, the caller's own. At the limit the least recently used idle session gives way; its
 * transform is still in the slot. Null: all are in use, or no memory.
 */
static struct slot *slot_take(uint64_t *ticket)
{
	const unsigned limit = afalg_descriptor_limit(DESCRIPTORS);
	struct slot *s;

	pthread_mutex_lock(&pool.lock);
	if (pool.open < (limit < pool.limit ? limit : pool.limit)) {
		s = slot_unused();
		pool.open += s != NULL;
	} else {
		s = seize_oldest();
	}
	*ticket = ++pool.tickets;
	pthread_mutex_unlock(&pool.lock);
	if (s != NULL)
		atomic_store(&s->state, SLOT_BUSY(*ticket));
	return s;
}

/* Opens a keyed transform in a slot that the caller owns, in place of the one that may still be there. */
static int slot_open(struct slot *s, const struct afalg_keyed *keyed)
{
	int err;

	if (s->transform != NULL)
		s->transport->close(s->transform);
	s->transform = NULL;
	s->transport = pool.transport;
	err = s->transport->open(keyed->type, keyed->algorithm, &s->transform);
	if (err == -EOPNOTSUPP && s->transport != &afalg_socket) {
		s->transport = &afalg_socket; /* which can do everything */
		err = s->transport->open(keyed->type, keyed->algorithm, &s->transform);
	}
	if (err != 0) {
		s->transform = NULL;
		return err;
	}
	err = s->transport->set_key(s->transform, keyed->key, keyed->keylen);
	if (err == 0 && keyed->taglen != 0)
		err = s->transport->set_taglen(s->transform, keyed->taglen);
	return err;
}

static int begin(struct afalg_session *s, const struct afalg_keyed *keyed)
{
	struct slot *slot;
	uint64_t ticket;
	int err;

	if (afalg_fork_unseen())
		return -ESTALE;
	if (s->slot != NULL && slot_seize(s->slot, s->ticket))
		return 0;
	afalg_fork_init();
	slot = slot_take(&ticket);
	if (slot == NULL)
		return -EBUSY;
	err = slot_open(slot, keyed);
	if (err != 0) {
		slot_release(slot);
		return err;
	}
	s->slot = slot;
	s->ticket = ticket;
	return 0;
}

int afalg_session_begin(struct afalg_session *s, const struct afalg_keyed *keyed)
{
	const int cancel = cancel_disable();
	int err = begin(s, keyed);

	if (err != 0)
		cancel_restore(cancel);
	else
		s->cancel = cancel;
	return err;
}

static bool overlap(const struct afalg_request *r)
{
	const uintptr_t in = (uintptr_t)r->in, out = (uintptr_t)r->out;

	return in < out + r->len && out < in + r->len;
}

/* Does the request while no fork is under way. */
static int request(struct slot *slot, const struct afalg_request *r)
{
	int err;

	slot->requester = pthread_self();
	for (;;) {
		atomic_store(&slot->in_request, true);
		if (!atomic_load(&forking))
			break;
		atomic_store(&slot->in_request, false);
		pthread_mutex_lock(&pool.lock); /* free once the fork is done */
		pthread_mutex_unlock(&pool.lock);
	}
	err = slot->transport->crypt(slot->transform, r);
	atomic_store_explicit(&slot->in_request, false, memory_order_release);
	return err;
}

int afalg_session_crypt(struct afalg_session *s, const struct afalg_request *r)
{
	struct slot *slot = s->slot;
	struct afalg_request bounced = *r;
	int err;

	if (!overlap(r))
		return request(slot, r);
	/* A driver that fails half way has written over its input: keep it whole until the request has succeeded. */
	bounced.out = malloc(r->len);
	if (bounced.out == NULL)
		return -ENOMEM;
	err = request(slot, &bounced);
	if (err == 0)
		memcpy(r->out, bounced.out, r->len);
	explicit_bzero(bounced.out, r->len);
	free(bounced.out);
	return err;
}

void afalg_session_end(struct afalg_session *s, bool sound)
{
	const int cancel = s->cancel;

	if (sound) {
		atomic_store_explicit(&s->slot->last_used, atomic_fetch_add_explicit(&uses, 1, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&s->slot->state, SLOT_IDLE(s->ticket), memory_order_release);
	} else {
		slot_release(s->slot);
		*s = (struct afalg_session){.slot = NULL};
	}
	cancel_restore(cancel);
}

void afalg_session_drop(struct afalg_session *s)
{
	int cancel;

	if (s->slot == NULL)
		return;
	cancel = cancel_disable();
	if (slot_seize(s->slot, s->ticket))
		slot_release(s->slot);
	*s = (struct afalg_session){.slot = NULL};
	cancel_restore(cancel);
}

/*
 * The child closes the sessions that were idle: the parent still uses them. Those that another thread had in use at
 * that moment may be half opened or half closed; they are left alone, and their descriptors stay until the child execs
 * or ends.
 */
static void child_close_idle(void)
{
	pool.free = NULL;
	pool.open = 0;
	for (unsigned i = 0; i < pool.slot_count; i++) {
		struct slot *s = pool.slots[i];
		const uint64_t state = atomic_load(&s->state);

		if (state != SLOT_FREE && (state & 1) == 0)
			s->transport->close(s->transform);
		s->transform = NULL;
		atomic_store(&s->in_request, false);
		atomic_store(&s->state, SLOT_FREE);
		s->next_free = pool.free;
		pool.free = s;
	}
}

/* Lets the requests under way end, and no other begin until the fork is done. Under the lock. */
static void await_requests(void)
{
	const struct timespec millisecond = {0, 1000000};
	int waited = 0;

	atomic_store(&forking, true);
	for (unsigned i = 0; i < pool.slot_count; i++) {
		const struct slot *s = pool.slots[i];

		/* Not for itself, if a signal handler forks. */
		while (atomic_load(&s->in_request) && !pthread_equal(s->requester, pthread_self()) &&
		       waited < FORK_WAIT_MS + 100) {
			if (waited++ < 100)
				sched_yield();
			else
				nanosleep(&millisecond, NULL);
		}
	}
}

void afalg_session_fork(enum afalg_fork_phase phase)
{
	if (phase == AFALG_FORK_PREPARE) {
		pthread_mutex_lock(&pool.lock);
		await_requests();
		return;
	}
	if (phase == AFALG_FORK_CHILD)
		child_close_idle();
	atomic_store(&forking, false);
	pthread_mutex_unlock(&pool.lock);
}
