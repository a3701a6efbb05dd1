/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AFALG_KCAPI_H
#define AFALG_KCAPI_H

#include "fork.h"

/* Keeps a fork from happening between the opening of libkcapi's descriptors and their marking as close-on-exec. */
void afalg_kcapi_fork(enum afalg_fork_phase phase);

#endif
