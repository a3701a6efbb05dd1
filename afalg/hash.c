/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "session.h"

/* Operations that wait for their next message: enough for the threads that hash at the same time. */
#define IDLE_MAX 8
/* With a key, which is most often one context's: so many that they and the transform are KEY_DESCRIPTORS. */
#define IDLE_MAX_KEYED 3
#define KEY_DESCRIPTORS 4

/*
 * What hashes in progress are operations of: a transform. It has no state but its key, so it serves all hashes at the
 * same time, in parent and child alike. Operations that have done a message are kept: opening one costs more than a
 * short request.
 */
struct afalg_hash_parent {
	const char *algorithm;
	void *_Atomic transform;    /* null: not open */
	struct afalg_hash_key *key; /* whose it is; null: the algorithm's own, open until the process ends */
	struct afalg_op idle[IDLE_MAX];
	int idle_count;
};

struct afalg_hash_key {
	struct afalg_hash_parent parent;
	atomic_uint holders;
	bool opened;                            /* once at least: only then can others have it in hand */
	unsigned used;                          /* hashes in progress */
	struct afalg_hash_key *previous, *next; /* while it is open */
	size_t length;
	uint8_t bytes[AFALG_HASH_KEY_MAX];
};

#define PARENTS_MAX 32

static struct {
	pthread_mutex_t lock; /* short: never held over a system call, but for the fork handlers */
	const struct afalg_transport *transport;
	unsigned limit, count, keys;
	unsigned room, key_room; /* what the limit and the descriptors allow; counted anew with each transform opened */
	struct afalg_hash *first;
	struct afalg_hash_key *first_key, *last_key; /* those open, the last used first */
	struct afalg_hash_parent parents[PARENTS_MAX];
} hashes = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.transport = &afalg_socket,
	.limit = AFALG_SESSIONS_DEFAULT,
};

/*** Transforms ***/

static void close_idle(struct afalg_hash_parent *p)
{
	while (p->idle_count > 0)
		hashes.transport->hash_end(&p->idle[--p->idle_count]);
}

/* Takes what is open from a parent that no hash uses, to be closed without the lock. Under the lock. */
static struct afalg_hash_parent take_away(struct afalg_hash_parent *p)
{
	struct afalg_hash_parent taken = *p;

	p->transform = NULL;
	p->idle_count = 0;
	return taken;
}

static void close_taken(struct afalg_hash_parent *taken)
{
	close_idle(taken);
	if (taken->transform != NULL)
		hashes.transport->close(taken->transform);
}

static int open_transform(const char *algorithm, const struct afalg_hash_key *key, void **transform)
{
	int err = hashes.transport->open("hash", algorithm, transform);

	if (err != 0 || key == NULL)
		return err;
	err = hashes.transport->set_key(*transform, key->bytes, key->length);
	if (err != 0)
		hashes.transport->close(*transform);
	return err;
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

/* Puts an algorithm's transform into its place, unless another thread was faster. */
static int place_unkeyed(const char *algorithm, void *transform)
{
	struct afalg_hash_parent *place;
	bool placed = false;

	pthread_mutex_lock(&hashes.lock);
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

/*** Keys ***/

static void key_list(struct afalg_hash_key *k)
{
	k->previous = NULL;
	k->next = hashes.first_key;
	*(k->next != NULL ? &k->next->previous : &hashes.last_key) = k;
	hashes.first_key = k;
}

static void key_unlist(struct afalg_hash_key *k)
{
	*(k->previous != NULL ? &k->previous->next : &hashes.first_key) = k->next;
	*(k->next != NULL ? &k->next->previous : &hashes.last_key) = k->previous;
}

/* The least recently used of those that no hash uses, or null. Under the lock. */
static struct afalg_hash_key *key_unused(void)
{
	struct afalg_hash_key *k = hashes.last_key;

	while (k != NULL && k->used > 0)
		k = k->previous;
	return k;
}

/* Under the lock. */
static struct afalg_hash_parent key_take_away(struct afalg_hash_key *k)
{
	key_unlist(k);
	hashes.keys--;
	return take_away(&k->parent);
}

/* Makes a transform the key's, unless another thread was faster. At the bound others give way. */
static int place_keyed(struct afalg_hash_key *k, void *transform)
{
	for (;;) {
		struct afalg_hash_parent taken = {0};
		struct afalg_hash_key *other;
		bool placed = true;

		pthread_mutex_lock(&hashes.lock);
		other = key_unused();
		if (k->parent.transform != NULL) {
			taken.transform = transform;
		} else if (hashes.keys < hashes.key_room) {
			k->parent.transform = transform;
			k->opened = true;
			key_list(k);
			hashes.keys++;
		} else {
			placed = false;
			if (other != NULL)
				taken = key_take_away(other);
		}
		pthread_mutex_unlock(&hashes.lock);
		close_taken(&taken);
		if (placed)
			return 0;
		if (other == NULL) {
			hashes.transport->close(transform);
			return -EBUSY;
		}
	}
}

/* Opens the transform of an algorithm, or of a key. */
static int open_parent(const char *algorithm, struct afalg_hash_key *key)
{
	unsigned room, key_room;
	void *transform;
	int err = open_transform(algorithm, key, &transform);

	if (err != 0)
		return err;
	room = afalg_descriptor_limit(1);
	key_room = afalg_descriptor_limit(KEY_DESCRIPTORS);
	pthread_mutex_lock(&hashes.lock);
	hashes.room = room < hashes.limit ? room : hashes.limit;
	hashes.key_room = key_room < hashes.limit ? key_room : hashes.limit;
	pthread_mutex_unlock(&hashes.lock);
	return key != NULL ? place_keyed(key, transform) : place_unkeyed(algorithm, transform);
}

/* Takes the same time for all keys of a length. */
static bool same_key(const struct afalg_hash_key *k, const char *algorithm, const uint8_t *key, size_t keylen)
{
	unsigned differ = 0;

	if (k->length != keylen || strcmp(k->parent.algorithm, algorithm) != 0)
		return false;
	for (size_t i = 0; i < keylen; i++)
		differ |= k->bytes[i] ^ key[i];
	return differ == 0;
}

struct afalg_hash_key *afalg_hash_key_change(struct afalg_hash_key *old, const char *algorithm, const uint8_t *key,
					     size_t keylen)
{
	struct afalg_hash_key *k = old;

	if (old != NULL && same_key(old, algorithm, key, keylen))
		return old;
	if (old == NULL || atomic_load(&old->holders) > 1 || old->opened || keylen > AFALG_HASH_KEY_MAX) {
		afalg_hash_key_free(old);
		k = keylen > AFALG_HASH_KEY_MAX ? NULL : malloc(sizeof(*k));
	}
	if (k == NULL)
		return NULL;
	k->parent.algorithm = algorithm;
	k->parent.transform = NULL;
	k->parent.key = k;
	k->parent.idle_count = 0;
	atomic_init(&k->holders, 1);
	k->opened = false;
	k->used = 0;
	k->length = keylen;
	memcpy(k->bytes, key, keylen);
	return k;
}

struct afalg_hash_key *afalg_hash_key_share(struct afalg_hash_key *key)
{
	if (key != NULL)
		atomic_fetch_add_explicit(&key->holders, 1, memory_order_relaxed);
	return key;
}

static void key_close(struct afalg_hash_key *k)
{
	const int cancel = cancel_disable();
	struct afalg_hash_parent taken = {0};

	pthread_mutex_lock(&hashes.lock);
	if (k->parent.transform != NULL)
		taken = key_take_away(k);
	pthread_mutex_unlock(&hashes.lock);
	close_taken(&taken);
	cancel_restore(cancel);
}

void afalg_hash_key_free(struct afalg_hash_key *key)
{
	if (key == NULL || atomic_fetch_sub(&key->holders, 1) > 1)
		return;
	if (key->opened)
		key_close(key);
	explicit_bzero(key->bytes, key->length);
	free(key);
}

unsigned afalg_hash_key_count(void)
{
	unsigned keys;

	pthread_mutex_lock(&hashes.lock);
	keys = hashes.keys;
	pthread_mutex_unlock(&hashes.lock);
	return keys;
}

/*** Settings ***/

void afalg_hash_set_transport(const struct afalg_transport *transport)
{
	struct afalg_hash_parent taken;

	pthread_mutex_lock(&hashes.lock);
	for (int i = 0; i < PARENTS_MAX && hashes.parents[i].algorithm != NULL; i++)
		close_taken(&hashes.parents[i]);
	memset(hashes.parents, 0, sizeof(hashes.parents));
	while (hashes.first_key != NULL) {
		taken = key_take_away(hashes.first_key);
		close_taken(&taken);
	}
	hashes.transport = transport;
	pthread_mutex_unlock(&hashes.lock);
}

void afalg_hash_set_limit(unsigned limit)
{
	pthread_mutex_lock(&hashes.lock);
	hashes.limit = limit;
	pthread_mutex_unlock(&hashes.lock);
}

/*** Hashes in progress ***/

static const struct afalg_op no_op = {-1, 0, 0};

/* Lists a hash. Under the lock. */
static void list_add(struct afalg_hash *h, struct afalg_hash_parent *parent)
{
	hashes.count++;
	h->op = h->fork_copy = no_op;
	h->parent = parent;
	h->finished = false;
	atomic_init(&h->busy, true); /* until it has its operation */
	h->previous = NULL;
	h->next = hashes.first;
	if (h->next != NULL)
		h->next->previous = h;
	hashes.first = h;
	if (parent->key != NULL) {
		parent->key->used++;
		key_unlist(parent->key);
		key_list(parent->key);
	}
}

/* Lists the hash with an operation that waits for a message, or none in *op. -ENXIO: the transform is not open. */
static int list_start(struct afalg_hash *h, const char *algorithm, struct afalg_hash_key *key, struct afalg_op *op)
{
	struct afalg_hash_parent *p;
	int err = 0;

	*op = no_op;
	pthread_mutex_lock(&hashes.lock);
	p = key != NULL ? &key->parent : find_place(algorithm);
	if (p == NULL || p->transform == NULL)
		err = -ENXIO;
	else if (hashes.count >= hashes.room)
		err = -EBUSY;
	else {
		list_add(h, p);
		if (p->idle_count > 0)
			*op = p->idle[--p->idle_count];
	}
	pthread_mutex_unlock(&hashes.lock);
	return err;
}

/* Takes a hash off the list; its operation, if sound and there is room, waits for another message. */
static void list_remove(struct afalg_hash *h)
{
	struct afalg_hash_parent *p = h->parent;
	const int idle_max = p->key != NULL ? IDLE_MAX_KEYED : IDLE_MAX;

	pthread_mutex_lock(&hashes.lock);
	hashes.count--;
	if (p->key != NULL)
		p->key->used--;
	*(h->previous != NULL ? &h->previous->next : &hashes.first) = h->next;
	if (h->next != NULL)
		h->next->previous = h->previous;
	if (h->op.fd >= 0 && h->finished && p->idle_count < idle_max) {
		p->idle[p->idle_count++] = h->op;
		h->op = no_op;
	}
	pthread_mutex_unlock(&hashes.lock);
	if (h->op.fd >= 0)
		hashes.transport->hash_end(&h->op);
	h->op = no_op;
}

/* Gives a listed hash its operation, or takes it off the list. */
static int list_settle(struct afalg_hash *h, int err, const struct afalg_op *op)
{
	if (err != 0) {
		list_remove(h);
		return err;
	}
	h->op = *op;
	atomic_store(&h->busy, false);
	return 0;
}

/*
 * The program has closed the transform: opens it anew, unless another thread has. The lost one is not freed, since a
 * third may be about to use it.
 */
static int reopen_parent(struct afalg_hash_parent *p, void *lost)
{
	void *transform;
	int err = open_transform(p->algorithm, p->key, &transform);

	if (err != 0)
		return err;
	if (!atomic_compare_exchange_strong(&p->transform, &lost, transform))
		hashes.transport->close(transform);
	return 0;
}

static int start(struct afalg_hash *h, const char *algorithm, struct afalg_hash_key *key)
{
	struct afalg_op op;
	void *transform;
	int err = list_start(h, algorithm, key, &op);

	if (err == -ENXIO) {
		err = open_parent(algorithm, key);
		if (err == 0)
			err = list_start(h, algorithm, key, &op);
		if (err == -ENXIO) /* a key that had to give way to another at once */
			err = -EBUSY;
	}
	if (err != 0 || op.fd >= 0)
		return err != 0 ? err : list_settle(h, 0, &op);
	transform = h->parent->transform;
	err = hashes.transport->hash_start(transform, &op);
	if (err == -EBADF) {
		err = reopen_parent(h->parent, transform);
		if (err == 0)
			err = hashes.transport->hash_start(h->parent->transform, &op);
	}
	return list_settle(h, err, &op);
}

int afalg_hash_start(struct afalg_hash *h, const char *algorithm, struct afalg_hash_key *key)
{
	const int cancel = cancel_disable();
	int err;

	afalg_fork_init();
	err = afalg_fork_unseen() ? -ESTALE : start(h, algorithm, key);
	cancel_restore(cancel);
	return err;
}

/* Marks the beginning of a call on the operation. -ESTALE: its state was lost in a fork. */
static int call_begin(struct afalg_hash *h, int *cancel)
{
	if (h->op.fd < 0 || afalg_fork_unseen())
		return -ESTALE;
	*cancel = cancel_disable();
	atomic_store(&h->busy, true);
	return 0;
}

static void call_end(struct afalg_hash *h, int cancel)
{
	atomic_store(&h->busy, false);
	cancel_restore(cancel);
}

int afalg_hash_copy(struct afalg_hash *to, struct afalg_hash *from)
{
	struct afalg_op op;
	int cancel, err = call_begin(from, &cancel);

	if (err != 0)
		return err;
	pthread_mutex_lock(&hashes.lock);
	list_add(to, from->parent);
	pthread_mutex_unlock(&hashes.lock);
	err = list_settle(to, hashes.transport->hash_copy(&from->op, &op), &op);
	call_end(from, cancel);
	return err;
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
	int cancel, err = call_begin(h, &cancel);

	if (err != 0)
		return err;
	memcpy(rest, iov, (size_t)parts * sizeof(*iov));
	do {
		left = cut_request(rest, cut);
		err = hashes.transport->hash_send(&h->op, cut, 2, more || left > 0);
		if (err == 0)
			++*requests;
	} while (err == 0 && left > 0);
	call_end(h, cancel);
	return err;
}

int afalg_hash_finish(struct afalg_hash *h, uint8_t *md, size_t mdlen)
{
	int cancel, err = call_begin(h, &cancel);

	if (err != 0)
		return err;
	err = hashes.transport->hash_finish(&h->op, md, mdlen);
	h->finished = err == 0;
	call_end(h, cancel);
	return err;
}

void afalg_hash_end(struct afalg_hash *h)
{
	const int cancel = cancel_disable();

	list_remove(h);
	cancel_restore(cancel);
}

static void prepare(struct afalg_hash *h)
{
	if (atomic_load(&h->busy) || hashes.transport->hash_copy(&h->op, &h->fork_copy) != 0)
		h->fork_copy = no_op;
}

static void parent_done(struct afalg_hash *h)
{
	if (h->fork_copy.fd >= 0)
		hashes.transport->hash_end(&h->fork_copy);
	h->fork_copy = no_op;
}

/* Where no copy could be made the child's state is lost, and said so at its next use: never shared with the parent. */
static void child_switch(struct afalg_hash *h)
{
	if (h->op.fd >= 0)
		hashes.transport->hash_end(&h->op);
	h->op = h->fork_copy;
	h->fork_copy = no_op;
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
	if (phase == AFALG_FORK_CHILD) { /* the parent will use those that wait */
		for (int i = 0; i < PARENTS_MAX; i++)
			close_idle(&hashes.parents[i]);
		for (struct afalg_hash_key *k = hashes.first_key; k != NULL; k = k->next)
			close_idle(&k->parent);
	}
	if (phase != AFALG_FORK_PREPARE)
		pthread_mutex_unlock(&hashes.lock);
}
