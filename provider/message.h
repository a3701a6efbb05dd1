/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of a digest or a MAC. It takes one lane as a whole, since software and kernel cannot exchange a hash in
 * progress. While the kernel may still win, the first bytes are held back; a message that ends before the threshold
 * never opens anything. In the kernel small updates are gathered, so that a system call carries enough.
 */
#ifndef PROVIDER_MESSAGE_H
#define PROVIDER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../afalg/hash.h"
#include "algorithms.h"
#include "counters.h"
#include "cost.h"
#include "provider.h"

enum message_lane {
	MESSAGE_SOFTWARE,
	MESSAGE_UNDECIDED, /* nothing hashed yet */
	MESSAGE_HELD,      /* bytes are held back, the lane is not chosen */
	MESSAGE_KERNEL,
	MESSAGE_LOST, /* the kernel failed mid-way */
	MESSAGE_DONE, /* by the kernel: the software lane does not know that the message is at its end */
};

/* Bytes that are held back without an allocation: small messages often are one of many. */
#define MESSAGE_SMALL 192u

typedef int software_update_fn(void *soft, const unsigned char *in, size_t inl);
typedef int software_final_fn(void *soft, unsigned char *out, size_t *outl, size_t outsize);

/* Must not move in memory. */
struct message {
	enum message_lane lane;
	enum algorithm_id id;
	struct provider *provider;
	void *soft; /* the software lane's context, the owner's */
	software_update_fn *update;
	software_final_fn *final;
	struct afalg_hash_key *key; /* of a MAC, the owner's; null: a hash without a key */
	size_t floor;               /* the least bytes for the kernel, asked at the beginning */
	uint8_t *held;              /* `small`, or allocated */
	size_t held_bytes, held_room;
	struct route_use use;
	struct afalg_hash hash; /* in MESSAGE_KERNEL */
	uint8_t small[MESSAGE_SMALL];
};

/* Sets up a message that is software's; `soft` and `key` are to be set by the owner. */
void message_init(struct message *m, struct provider *p, enum algorithm_id id, software_update_fn *update,
		  software_final_fn *final);

/* Ends what is under way and frees what is held; not the software lane's context. */
void message_free(struct message *m);

/* Abandons the message that is under way, for another lane than software's. */
void message_end(struct message *m);

/* Begins a message, in software if the kernel may not have it. The owner begins it in the software lane too. */
static inline void message_begin(struct message *m, bool kernel)
{
	if (m->lane != MESSAGE_SOFTWARE)
		message_end(m);
	if (!kernel)
		return;
	m->floor = route_floor(&m->provider->route, m->id);
	if (counters_sample(m->id) == 3 && m->floor > COST_LEAST && route_learns(&m->provider->route, m->id))
		m->floor = COST_LEAST; /* to learn what smaller ones cost */
	if (m->floor != ROUTE_NEVER)
		m->lane = MESSAGE_UNDECIDED;
}

static inline int message_update_software(struct message *m, const unsigned char *in, size_t inl)
{
	counters_software(m->id, 1, inl);
	return m->update(m->soft, in, inl);
}

int message_update_elsewhere(struct message *m, const unsigned char *in, size_t inl);

/* 1, or 0 and perhaps an error. */
static inline int message_update(struct message *m, const unsigned char *in, size_t inl)
{
	if (m->lane == MESSAGE_SOFTWARE)
		return message_update_software(m, in, inl);
	return message_update_elsewhere(m, in, inl);
}

/* As the software lane's function. */
int message_final(struct message *m, unsigned char *out, size_t *outl, size_t outsize);

/*
 * Copies the state of a message, if it is not in software alone, to one that is set up and whose `soft` is a copy too.
 * 0 and an error where the kernel's cannot be copied.
 */
int message_copy(struct message *to, struct message *from);

/* Gives the message so far to the software lane. 0 and an error where the kernel has it already. */
int message_to_software(struct message *m);

/*
 * The software lane failed to begin another message. It may then go on with the one before, and has what was held
 * back; what the kernel has is lost.
 */
void message_not_begun(struct message *m);

#endif
