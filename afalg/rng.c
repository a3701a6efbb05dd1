/* SPDX-License-Identifier: Apache-2.0 */
#include "rng.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "cancel.h"

/* Fewer bytes than this cannot be judged, so no fewer are ever asked for. */
#define LEAST 16u

/* How often a read begins again since its operation was closed or replaced meanwhile. */
#define TRIES 8

/*
 * A generator, opened anew where `renewed` is behind `wanted`. A request needs no lock: it takes a copy of `op`, and is
 * told if that is no longer true (-EBADF).
 */
struct generator {
	const char *algorithm; /* null: a free place */
	struct afalg_op op;
	uint64_t wanted, renewed;
};

#define GENERATORS_MAX 4

static struct {
	pthread_mutex_t lock; /* short: never held while a generator is opened or read */
	const struct afalg_transport *transport;
	struct generator generators[GENERATORS_MAX];
} rngs = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.transport = &afalg_socket,
};

void afalg_rng_set_transport(const struct afalg_transport *transport)
{
	pthread_mutex_lock(&rngs.lock);
	for (int i = 0; i < GENERATORS_MAX && rngs.generators[i].algorithm != NULL; i++)
		if (rngs.generators[i].op.fd >= 0)
			rngs.transport->rng_close(&rngs.generators[i].op);
	memset(rngs.generators, 0, sizeof(rngs.generators));
	rngs.transport = transport;
	pthread_mutex_unlock(&rngs.lock);
}

/* The algorithm's generator, at first one that has yet to be opened; null when all places are taken. Under the lock. */
static struct generator *find(const char *algorithm)
{
	for (int i = 0; i < GENERATORS_MAX; i++) {
		struct generator *g = &rngs.generators[i];

		if (g->algorithm == NULL)
			*g = (struct generator){.algorithm = algorithm, .op.fd = -1, .wanted = 1};
		if (strcmp(g->algorithm, algorithm) == 0)
			return g;
	}
	return NULL;
}

/* Gives the generator's operation in *op, opened first where need be. */
static int ready(struct generator *g, struct afalg_op *op)
{
	struct afalg_op fresh;
	uint64_t wanted;
	bool behind;
	int err;

	pthread_mutex_lock(&rngs.lock);
	*op = g->op;
	wanted = g->wanted;
	behind = g->renewed < wanted;
	pthread_mutex_unlock(&rngs.lock);
	if (!behind)
		return 0;
	err = rngs.transport->rng_open(g->algorithm, &fresh);
	if (err != 0)
		return err;
	pthread_mutex_lock(&rngs.lock);
	rngs.transport->rng_replace(&g->op, &fresh);
	if (g->renewed < wanted)
		g->renewed = wanted;
	*op = g->op;
	pthread_mutex_unlock(&rngs.lock);
	return 0;
}

/* Has an operation that failed replaced before the next request, unless another thread has done so already. */
static void distrust(struct generator *g, const struct afalg_op *op)
{
	pthread_mutex_lock(&rngs.lock);
	if (g->op.fd == op->fd && g->op.serial == op->serial && g->op.inode == op->inode)
		g->wanted++;
	pthread_mutex_unlock(&rngs.lock);
}

/* What drivers give for random bytes that have none, or whose device is gone: zeros, or all bits set. */
static bool stuck(const uint8_t *bytes, size_t n)
{
	return memcmp(bytes, bytes + 1, n - 1) == 0;
}

static int request(const struct afalg_op *op, uint8_t *out, size_t len)
{
	uint8_t bytes[AFALG_RNG_MAX];
	const size_t n = len < LEAST ? LEAST : len;
	int err = rngs.transport->rng_read(op, bytes, n);

	if (err == 0 && stuck(bytes, n))
		err = -EIO;
	if (err == 0)
		memcpy(out, bytes, len);
	explicit_bzero(bytes, sizeof(bytes));
	return err;
}

static int request_all(const struct afalg_op *op, uint8_t *out, size_t len, unsigned *requests)
{
	int err = 0;

	*requests = 0;
	for (size_t n; err == 0 && len > 0; out += n, len -= n) {
		n = len < AFALG_RNG_MAX ? len : AFALG_RNG_MAX;
		err = request(op, out, n);
		++*requests;
	}
	return err;
}

static int read_all(const char *algorithm, uint8_t *out, size_t len, bool *opened, unsigned *requests)
{
	struct generator *g;
	struct afalg_op op;
	int err, tries = 0;

	pthread_mutex_lock(&rngs.lock);
	g = find(algorithm);
	pthread_mutex_unlock(&rngs.lock);
	if (g == NULL)
		return -ENOSPC;
	do {
		err = ready(g, &op);
		*opened = err == 0;
		if (err != 0)
			return err;
		err = request_all(&op, out, len, requests);
		if (err != 0)
			distrust(g, &op);
	} while (err == -EBADF && ++tries < TRIES);
	return err;
}

int afalg_rng_read(const char *algorithm, uint8_t *out, size_t len, bool *opened, unsigned *requests)
{
	const int cancel = cancel_disable();
	int err;

	*opened = false;
	afalg_fork_init();
	err = afalg_fork_unseen() ? -ESTALE : read_all(algorithm, out, len, opened, requests);
	cancel_restore(cancel);
	return err;
}

void afalg_rng_reseed(const char *algorithm)
{
	struct generator *g;

	afalg_fork_init();
	if (afalg_fork_unseen())
		return;
	pthread_mutex_lock(&rngs.lock);
	g = find(algorithm);
	if (g != NULL)
		g->wanted++;
	pthread_mutex_unlock(&rngs.lock);
}

int afalg_rng_system(uint8_t *out, size_t len)
{
	const int cancel = cancel_disable();
	int err = 0;

	while (err == 0 && len > 0) {
		const ssize_t n = getrandom(out, len, 0);

		if (n > 0) {
			out += n;
			len -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			err = n == 0 ? -EIO : -errno;
		}
	}
	cancel_restore(cancel);
	return err;
}

void afalg_rng_fork(enum afalg_fork_phase phase)
{
	if (phase == AFALG_FORK_PREPARE)
		pthread_mutex_lock(&rngs.lock);
	else
		pthread_mutex_unlock(&rngs.lock);
}
