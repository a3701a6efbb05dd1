/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "session.h"

/* An algorithm's transform. It has no key and so serves all hashes, in parent and child alike, until the process ends.
 */
struct parent {
	const char *algorithm;
	void *transform;
};

#define PARENTS_MAX 32

static struct {
	pthread_mutex_t lock; /* short: never held over a system call, but for the fork handlers */
	const struct afalg_transport *transport;
	unsigned limit, count;
	struct afalg_hash *first;
	struct parent parents[PARENTS_MAX];
} hashes = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.transport = &afalg_socket,
	.limit = AFALG_SESSIONS_DEFAULT,
};

static void forget_parents(void)
{
	for (int i = 0; i < PARENTS_MAX && hashes.parents[i].algorithm != NULL; i++)
		hashes.transport->close(hashes.parents[i].transform);
	memset(hashes.parents, 0, sizeof(hashes.parents));
}

void afalg_hash_set_transport(const struct afalg_transport *transport)
{
	pthread_mutex_lock(&hashes.lock);
	forget_parents();
	hashes.transport = transport;
	pthread_mutex_unlock(&hashes.lock);
}

void afalg_hash_set_limit(unsigned limit)
{
	pthread_mutex_lock(&hashes.lock);
	hashes.limit = limit;
	pthread_mutex_unlock(&hashes.lock);
}

/* The place of the algorithm, free or taken; null when all are taken by others. Under the lock. */
static struct parent *parent_place(const char *algorithm)
{
	for (int i = 0; i < PARENTS_MAX; i++) {
		struct parent *p = &hashes.parents[i];

		if (p->algorithm == NULL || strcmp(p->algorithm, algorithm) == 0)
			return p;
	}
	return NULL;
}

/* Finds the algorithm's transform, or opens it. */
static int parent_transform(const char *algorithm, void **transform)
{
	void *opened = NULL, *surplus = NULL;
	struct parent *p;
	int err;

	pthread_mutex_lock(&hashes.lock);
	p = parent_place(algorithm);
	*transform = p == NULL ? NULL : p->transform;
	pthread_mutex_unlock(&hashes.lock);
	if (*transform != NULL)
		return 0;

	err = hashes.transport->open("hash", algorithm, &opened);
	if (err != 0)
		return err;
	pthread_mutex_lock(&hashes.lock);
	p = parent_place(algorithm);
	if (p == NULL) {
		surplus = opened;
	} else if (p->algorithm != NULL) {
		surplus = opened; /* another thread was faster */
		*transform = p->transform;
	} else {
		*p = (struct parent){algorithm, opened};
		*transform = opened;
	}
	pthread_mutex_unlock(&hashes.lock);
	if (surplus != NULL)
		hashes.transport->close(surplus);
	return *transform != NULL ? 0 : -ENOSPC;
}

/* Takes a place among the hashes that may be in progress. */
static bool list_add(struct afalg_hash *h)
{
	bool room;

	pthread_mutex_lock(&hashes.lock);
	room = hashes.count < hashes.limit;
	if (room) {
		hashes.count++;
		h->op = h->fork_copy = -1;
		atomic_init(&h->busy, true); /* until it has its operation */
		h->previous = NULL;
		h->next = hashes.first;
		if (h->next != NULL)
			h->next->previous = h;
		hashes.first = h;
	}
	pthread_mutex_unlock(&hashes.lock);
	return room;
}

static void list_remove(struct afalg_hash *h)
{
	pthread_mutex_lock(&hashes.lock);
	hashes.count--;
	*(h->previous != NULL ? &h->previous->next : &hashes.first) = h->next;
	if (h->next != NULL)
		h->next->previous = h->previous;
	pthread_mutex_unlock(&hashes.lock);
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
	void *transform;
	int err;

	afalg_fork_init();
	err = parent_transform(algorithm, &transform);
	if (err != 0)
		return err;
	if (!list_add(h))
		return -EBUSY;
	return list_settle(h, hashes.transport->hash_start(transform));
}

int afalg_hash_copy(struct afalg_hash *to, struct afalg_hash *from)
{
	int op;

	if (from->op < 0)
		return -ESTALE;
	if (!list_add(to))
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
	return err;
}

void afalg_hash_end(struct afalg_hash *h)
{
	if (h->op >= 0)
		hashes.transport->hash_end(h->op);
	h->op = -1;
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
	if (phase != AFALG_FORK_PREPARE)
		pthread_mutex_unlock(&hashes.lock);
}
