/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "session.h"

/* Operations that wait for their next message: enough for the threads that hash at the same time. */
#define IDLE_MAX 8

/*
 * An algorithm's transform, opened once. It has no key and so serves all hashes, in parent and child alike, until the
 * process ends. Operations that have done a message are kept: opening one costs more than a short request.
 */
struct afalg_hash_parent {
	const char *algorithm;
	void *transform;
	int idle[IDLE_MAX], idle_count;
};

#define PARENTS_MAX 32

static struct {
	pthread_mutex_t lock; /* short: never held over a system call, but for the fork handlers */
	const struct afalg_transport *transport;
	unsigned limit, room,
		count; /* room: what the limit and the descriptors allow; counted anew with each algorithm */
	struct afalg_hash *first;
	struct afalg_hash_parent parents[PARENTS_MAX];
} hashes = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.transport = &afalg_socket,
	.limit = AFALG_SESSIONS_DEFAULT,
};

static void close_idle(struct afalg_hash_parent *p)
{
	while (p->idle_count > 0)
		hashes.transport->hash_end(p->idle[--p->idle_count]);
}

void afalg_hash_set_transport(const struct afalg_transport *transport)
{
	pthread_mutex_lock(&hashes.lock);
	for (int i = 0; i < PARENTS_MAX && hashes.parents[i].algorithm != NULL; i++) {
		close_idle(&hashes.parents[i]);
		hashes.transport->close(hashes.parents[i].transform);
	}
	memset(hashes.parents, 0, sizeof(hashes.parents));
	hashes.transport = transport;
	pthread_mutex_unlock(&hashes.lock);
}

void afalg_hash_set_limit(unsigned limit)
{
	pthread_mutex_lock(&hashes.lock);
	hashes.limit = limit;
	pthread_mutex_unlock(&hashes.lock);
}

/* The algorithm's place, or the first free one; null when all are taken by others. Under the lock. */
static struct afalg_hash_parent *find_place(const char *algorithm)
{
	for (int i = 0; i < PARENTS_MAX; i++) {
		struct afalg_hash_parent *p = &hashes.parents[i];

		if (p->algorithm == NULL || strcmp(p->algorithm, algorithm) == 0)
			return p;
	}
	return NULL;
}

/* Opens an algorithm's transform and puts it into its place, unless another thread was faster. */
static int open_parent(const char *algorithm)
{
	struct afalg_hash_parent *place;
	bool placed = false;
	unsigned limit;
	void *transform;
	int err = hashes.transport->open("hash", algorithm, &transform);

	if (err != 0)
		return err;
	limit = afalg_descriptor_limit(1);
	pthread_mutex_lock(&hashes.lock);
	hashes.room = limit < hashes.limit ? limit : hashes.limit;
	place = find_place(algorithm);
	if (place != NULL && place->algorithm == NULL) {
		*place = (struct afalg_hash_parent){.algorithm = algorithm, .transform = transform};
		placed = true;
	}
	pthread_mutex_unlock(&hashes.lock);
	if (!placed)
		hashes.transport->close(transform);
	return place != NULL ? 0 : -ENOSPC;
}

/* Takes a place among the hashes that may be in progress. Under the lock. */
static bool list_add(struct afalg_hash *h, struct afalg_hash_parent *parent)
{
	if (hashes.count >= hashes.room)
		return false;
	hashes.count++;
	h->op = h->fork_copy = -1;
	h->parent = parent;
	h->finished = false;
	atomic_init(&h->busy, true); /* until it has its operation */
	h->previous = NULL;
	h->next = hashes.first;
	if (h->next != NULL)
		h->next->previous = h;
	hashes.first = h;
	return true;
}

/* Lists the hash with an operation that waits for a message, or -1 in *op. -ENXIO: the transform is not open yet. */
static int list_start(struct afalg_hash *h, const char *algorithm, int *op)
{
	struct afalg_hash_parent *p;
	int err = 0;

	*op = -1;
	pthread_mutex_lock(&hashes.lock);
	p = find_place(algorithm);
	if (p == NULL || p->algorithm == NULL)
		err = -ENXIO;
	else if (!list_add(h, p))
		err = -EBUSY;
	else if (p->idle_count > 0)
		*op = p->idle[--p->idle_count];
	pthread_mutex_unlock(&hashes.lock);
	return err;
}

/* Takes a hash off the list; its operation, if sound and there is room, waits for another message. */
static void list_remove(struct afalg_hash *h)
{
	struct afalg_hash_parent *p = h->parent;

	pthread_mutex_lock(&hashes.lock);
	hashes.count--;
	*(h->previous != NULL ? &h->previous->next : &hashes.first) = h->next;
	if (h->next != NULL)
		h->next->previous = h->previous;
	if (h->op >= 0 && h->finished && p->idle_count < IDLE_MAX) {
		p->idle[p->idle_count++] = h->op;
		h->op = -1;
	}
	pthread_mutex_unlock(&hashes.lock);
	if (h->op >= 0)
		hashes.transport->hash_end(h->op);
	h->op = -1;
}

/* Gives a listed hash its operation, or takes it off the list. */
static int list_settle(struct afalg_hash *h, int op)
{
	if (op < 0) {
		list_remove(h);
		return op;
	}
	h->op = op;
	atomic_store(&h->busy, false);
	return 0;
}

int afalg_hash_start(struct afalg_hash *h, const char *algorithm)
{
	int op, err;

	afalg_fork_init();
	err = list_start(h, algorithm, &op);
	if (err == -ENXIO) {
		err = open_parent(algorithm);
		if (err == 0)
			err = list_start(h, algorithm, &op);
	}
	if (err != 0)
		return err;
	return list_settle(h, op >= 0 ? op : hashes.transport->hash_start(h->parent->transform));
}

int afalg_hash_copy(struct afalg_hash *to, struct afalg_hash *from)
{
	bool room;
	int op;

	if (from->op < 0)
		return -ESTALE;
	pthread_mutex_lock(&hashes.lock);
	room = list_add(to, from->parent);
	pthread_mutex_unlock(&hashes.lock);
	if (!room)
		return -EBUSY;
	atomic_store(&from->busy, true);
	op = hashes.transport->hash_copy(from->op);
	atomic_store(&from->busy, false);
	return list_settle(to, op);
}

/* Cuts the first at most AFALG_REQUEST_MAX bytes off `iov` into `cut`. */
static size_t cut_request(struct iovec iov[2], struct iovec cut[2])
{
	size_t room = AFALG_REQUEST_MAX;

	for (int i = 0; i < 2; i++) {
		cut[i] = iov[i];
		if (cut[i].iov_len > room)
			cut[i].iov_len = room;
		room -= cut[i].iov_len;
		iov[i].iov_len -= cut[i].iov_len;
		if (iov[i].iov_len > 0)
			iov[i].iov_base = (uint8_t *)iov[i].iov_base + cut[i].iov_len;
	}
	return iov[0].iov_len + iov[1].iov_len;
}

int afalg_hash_send(struct afalg_hash *h, const struct iovec *iov, int parts, bool more, unsigned *requests)
{
	struct iovec rest[2] = {{NULL, 0}, {NULL, 0}}, cut[2];
	size_t left;
	int err;

	if (h->op < 0)
		return -ESTALE;
	memcpy(rest, iov, (size_t)parts * sizeof(*iov));
	do {
		left = cut_request(rest, cut);
		atomic_store(&h->busy, true);
		err = hashes.transport->hash_send(h->op, cut, 2, more || left > 0);
		atomic_store(&h->busy, false);
		if (err == 0)
			++*requests;
	} while (err == 0 && left > 0);
	return err;
}

int afalg_hash_finish(struct afalg_hash *h, uint8_t *md, size_t mdlen)
{
	int err;

	if (h->op < 0)
		return -ESTALE;
	atomic_store(&h->busy, true);
	err = hashes.transport->hash_finish(h->op, md, mdlen);
	atomic_store(&h->busy, false);
	h->finished = err == 0;
	return err;
}

void afalg_hash_end(struct afalg_hash *h)
{
	list_remove(h);
}

static void prepare(struct afalg_hash *h)
{
	int op = atomic_load(&h->busy) ? -EBUSY : hashes.transport->hash_copy(h->op);

	h->fork_copy = op < 0 ? -1 : op;
}

static void parent_done(struct afalg_hash *h)
{
	if (h->fork_copy >= 0)
		hashes.transport->hash_end(h->fork_copy);
	h->fork_copy = -1;
}

/* Where no copy could be made the child's state is lost, and said so at its next use: never shared with the parent. */
static void child_switch(struct afalg_hash *h)
{
	if (h->op >= 0)
		hashes.transport->hash_end(h->op);
	h->op = h->fork_copy;
	h->fork_copy = -1;
	atomic_store(&h->busy, false);
}

void afalg_hash_fork(enum afalg_fork_phase phase)
{
	static void (*const actions[])(struct afalg_hash *) = {
		[AFALG_FORK_PREPARE] = prepare,
		[AFALG_FORK_PARENT] = parent_done,
		[AFALG_FORK_CHILD] = child_switch,
	};

	if (phase == AFALG_FORK_PREPARE)
		pthread_mutex_lock(&hashes.lock);
	for (struct afalg_hash *h = hashes.first; h != NULL; h = h->next)
		actions[phase](h);
	if (phase == AFALG_FORK_CHILD) /* the parent will use those that wait */
		for (int i = 0; i < PARENTS_MAX; i++)
			close_idle(&hashes.parents[i]);
	if (phase != AFALG_FORK_PREPARE)
		pthread_mutex_unlock(&hashes.lock);
}
