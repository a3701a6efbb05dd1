/* SPDX-License-Identifier: Apache-2.0 */
#include "fork.h"

#include <pthread.h>

#include "hash.h"
#include "kcapi.h"
#include "session.h"

/* The locks are taken in one order, which no other code nests, and released by both sides. */
static void prepare(void)
{
	afalg_kcapi_fork(AFALG_FORK_PREPARE);
	afalg_session_fork(AFALG_FORK_PREPARE);
	afalg_hash_fork(AFALG_FORK_PREPARE);
}

static void parent(void)
{
	afalg_hash_fork(AFALG_FORK_PARENT);
	afalg_session_fork(AFALG_FORK_PARENT);
	afalg_kcapi_fork(AFALG_FORK_PARENT);
}

static void child(void)
{
	afalg_hash_fork(AFALG_FORK_CHILD);
	afalg_session_fork(AFALG_FORK_CHILD);
	afalg_kcapi_fork(AFALG_FORK_CHILD);
}

static void register_handlers(void)
{
	pthread_atfork(prepare, parent, child);
}

void afalg_fork_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_handlers);
}
