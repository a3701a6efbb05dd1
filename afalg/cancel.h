/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread cancellation. Our system calls are cancellation points, and nothing in OpenSSL is: a thread must not vanish
 * with a lock, a session or a buffer in hand.
 */
#ifndef AFALG_CANCEL_H
#define AFALG_CANCEL_H

#include <pthread.h>

/* Returns the former state, for cancel_restore(). */
static inline int cancel_disable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_restore(int state)
{
	pthread_setcancelstate(state, &state);
}

#endif
