/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork. Parent and child share open descriptions, so one kernel operation would mix the data of both. Transforms and
 * operations belong to the process generation that opened them: the child reopens transforms, and hashes in progress
 * are copied before the fork, one for each side.
 */
#ifndef AFALG_FORK_H
#define AFALG_FORK_H

#include <stdbool.h>

enum afalg_fork_phase { AFALG_FORK_PREPARE, AFALG_FORK_PARENT, AFALG_FORK_CHILD };

/*
 * Whether this is a child that no handler has seen (_Fork, a bare clone system call): what it inherited is still the
 * parent's too, and must not be used.
 */
bool afalg_fork_unseen(void);

/* Registers the handlers, once a process; call before anything is opened. They stay until the process ends. */
void afalg_fork_init(void);

#endif
