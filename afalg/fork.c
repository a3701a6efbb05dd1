/* SPDX-License-Identifier: Apache-2.0 */
#include "fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "cancel.h"
#include "hash.h"
#include "kcapi.h"
#include "rng.h"
#include "session.h"

static atomic_uchar *_Atomic seen; /* in a page that every fork wipes; null: the system cannot do that */
static int cancel_state;           /* of the thread that forks; under the locks */

/* The locks are taken in one order, which no other code nests, and released by both sides. */
static void prepare(void)
{
	const int state = cancel_disable();

	afalg_kcapi_fork(AFALG_FORK_PREPARE);
	afalg_session_fork(AFALG_FORK_PREPARE);
	afalg_hash_fork(AFALG_FORK_PREPARE);
	afalg_rng_fork(AFALG_FORK_PREPARE);
	cancel_state = state;
}

static void parent(void)
{
	const int state = cancel_state;

	afalg_rng_fork(AFALG_FORK_PARENT);
	afalg_hash_fork(AFALG_FORK_PARENT);
	afalg_session_fork(AFALG_FORK_PARENT);
	afalg_kcapi_fork(AFALG_FORK_PARENT);
	cancel_restore(state);
}

static void child(void)
{
	atomic_uchar *page = atomic_load(&seen);
	const int state = cancel_state;

	if (page != NULL)
		atomic_store(page, 1);
	afalg_rng_fork(AFALG_FORK_CHILD);
	afalg_hash_fork(AFALG_FORK_CHILD);
	afalg_session_fork(AFALG_FORK_CHILD);
	afalg_kcapi_fork(AFALG_FORK_CHILD);
	cancel_restore(state);
}

static void register_handlers(void)
{
	void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && madvise(page, 1, MADV_WIPEONFORK) == 0) {
		atomic_store((atomic_uchar *)page, 1);
		atomic_store(&seen, page);
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
	atomic_uchar *page = atomic_load_explicit(&seen, memory_order_acquire);

	return page != NULL && atomic_load_explicit(page, memory_order_relaxed) == 0;
}
