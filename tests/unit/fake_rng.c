/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_rng.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>

#include "../../provider/algorithms.h"

#define GENERATORS 64
#define FIRST_GENERATOR 200000 /* no real descriptor */

static struct {
	pthread_mutex_t lock;
	uint64_t open[GENERATORS]; /* which one has this number; 0: none */
	uint64_t seeded;
	int repeated; /* the byte that they give for ever; negative: none */
	size_t getrandom_most;
	_Atomic uint64_t *reads; /* of all processes: what they give depends on it */
} rngs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fork_prepare(void)
{
	pthread_mutex_lock(&rngs.lock);
}

static void fork_done(void)
{
	pthread_mutex_unlock(&rngs.lock);
}

void fake_rng_setup(void)
{
	rngs.reads = shared_memory(sizeof(*rngs.reads));
	pthread_atfork(fork_prepare, fork_done, fork_done);
}

void fake_rng_reset(void)
{
	fake_repeat(-1);
	fake_getrandom_most(SIZE_MAX);
}

void fake_repeat(int byte)
{
	pthread_mutex_lock(&rngs.lock);
	rngs.repeated = byte;
	pthread_mutex_unlock(&rngs.lock);
}

void fake_getrandom_most(size_t bytes)
{
	pthread_mutex_lock(&rngs.lock);
	rngs.getrandom_most = bytes;
	pthread_mutex_unlock(&rngs.lock);
}

unsigned fake_rng_ops(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&rngs.lock);
	for (int i = 0; i < GENERATORS; i++)
		n += rngs.open[i] != 0;
	pthread_mutex_unlock(&rngs.lock);
	return n;
}

void fake_close_generators(void)
{
	pthread_mutex_lock(&rngs.lock);
	memset(rngs.open, 0, sizeof(rngs.open));
	pthread_mutex_unlock(&rngs.lock);
}

static bool served(const char *algorithm)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (algorithms[id].kind == KIND_RNG && strcmp(algorithms[id].kernel, algorithm) == 0)
			return true;
	return false;
}

int fake_rng_open(const char *algorithm, struct afalg_op *op)
{
	int err = scripted(FAKE_RNG_OPEN, 0);

	*op = (struct afalg_op){.fd = -1};
	if (err == 0 && !served(algorithm))
		err = -ENOENT;
	if (err != 0)
		return err;
	pthread_mutex_lock(&rngs.lock);
	for (int i = 0; i < GENERATORS && op->fd < 0; i++)
		if (rngs.open[i] == 0) {
			rngs.open[i] = ++rngs.seeded;
			*op = (struct afalg_op){.fd = FIRST_GENERATOR + i, .inode = rngs.open[i]};
		}
	pthread_mutex_unlock(&rngs.lock);
	return op->fd < 0 ? -EMFILE : 0;
}

/* The place of the generator that `op` means; null: it is closed or replaced. Under the lock. */
static uint64_t *place_of(const struct afalg_op *op)
{
	const int i = op->fd - FIRST_GENERATOR;

	return i >= 0 && i < GENERATORS && rngs.open[i] == op->inode ? &rngs.open[i] : NULL;
}

/* A byte of the one sequence that all generators together go through (splitmix64). */
static uint8_t mixed(uint64_t n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15u;
	n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9u;
	return (uint8_t)(n >> 40);
}

int fake_rng_read(const struct afalg_op *op, uint8_t *out, size_t len)
{
	const uint64_t n = atomic_fetch_add(rngs.reads, 1);
	int err = scripted(FAKE_RNG_READ, len), repeated;
	bool open;

	pthread_mutex_lock(&rngs.lock);
	open = place_of(op) != NULL;
	repeated = rngs.repeated;
	pthread_mutex_unlock(&rngs.lock);
	if (len == 0 || len > AFALG_RNG_MAX) {
		violation("random bytes of a length that is not allowed");
		return -EINVAL;
	}
	memset(out, err == 0 ? 0 : 0xa5, len);
	if (!open)
		return -EBADF;
	for (size_t i = 0; err == 0 && i < len; i++)
		out[i] = repeated >= 0 ? (uint8_t)repeated : mixed(n * AFALG_RNG_MAX + i);
	return err;
}

void fake_rng_close(struct afalg_op *op)
{
	uint64_t *place;

	pthread_mutex_lock(&rngs.lock);
	place = place_of(op);
	if (place != NULL)
		*place = 0;
	pthread_mutex_unlock(&rngs.lock);
	op->fd = -1;
}

void fake_rng_replace(struct afalg_op *op, struct afalg_op *fresh)
{
	uint64_t *place;

	pthread_mutex_lock(&rngs.lock);
	place = place_of(op);
	if (place != NULL)
		*place = fresh->inode;
	pthread_mutex_unlock(&rngs.lock);
	if (place == NULL) {
		*op = *fresh;
		return;
	}
	op->inode = fresh->inode;
	fake_rng_close(fresh); /* the number that it was opened under is free again */
}

/*** The system's own ***/

ssize_t __real_getrandom(void *buffer, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
	size_t n;
	int err;

	pthread_mutex_lock(&rngs.lock);
	n = length < rngs.getrandom_most ? length : rngs.getrandom_most;
	pthread_mutex_unlock(&rngs.lock);
	err = scripted(FAKE_GETRANDOM, n);
	if (err == 0)
		return n == 0 ? 0 : __real_getrandom(buffer, n, flags);
	errno = -err;
	return -1;
}
