/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches every AF_ALG socket of the process, whoever uses it, and aborts at the first call that could wait for ever: a
 * receive from a cipher that was sent nothing, one that wants more than was sent, a send beyond the socket's buffer.
 * A library that takes the place of the C library's functions: tests are linked with it, programs preload it.
 */
#ifndef TESTS_WATCH_H
#define TESTS_WATCH_H

/* How many times this process has received from AF_ALG sockets so far. */
unsigned long watch_receives(void);

#endif
