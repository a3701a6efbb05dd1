/* SPDX-License-Identifier: Apache-2.0 */
#include "fork.h"

#include <pthread.h>
#include <sys/mman.h>

#include "cancel.h"
#include "hash.h"
#include "kcapi.h"
#include "rng.h"
#include "session.h"

static volatile unsigned char *seen; /* a page that every fork wipes; null: the system cannot do that */
static int cancel_state;

/* The locks are taken in one order, which no other code nests, and released by both sides. */
static void prepare(void)
{
	cancel_state = cancel_disable();
	afalg_kcapi_fork(AFALG_FORK_PREPARE);
	afalg_session_fork(AFALG_FORK_PREPARE);
	afalg_hash_fork(AFALG_FORK_PREPARE);
	afalg_rng_fork(AFALG_FORK_PREPARE);
}

static void parent(void)
{
	afalg_rng_fork(AFALG_FORK_PARENT);
	afalg_hash_fork(AFALG_FORK_PARENT);
	afalg_session_fork(AFALG_FORK_PARENT);
	afalg_kcapi_fork(AFALG_FORK_PARENT);
	cancel_restore(cancel_state);
}

static void child(void)
{
	if (seen != NULL)
		*seen = 1;
	afalg_rng_fork(AFALG_FORK_CHILD);
	afalg_hash_fork(AFALG_FORK_CHILD);
	afalg_session_fork(AFALG_FORK_CHILD);
	afalg_kcapi_fork(AFALG_FORK_CHILD);
	cancel_restore(cancel_state);
}

static void register_handlers(void)
{
	void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && madvise(page, 1, MADV_WIPEONFORK) == 0) {
		seen = page;
		*seen = 1;
	}
	pthread_atfork(prepare, parent, child);
}

void afalg_fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}

bool afalg_fork_unseen(void)
{
	return seen != NULL && *seen == 0;
}
