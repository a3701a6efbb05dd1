/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "learn.h"

/* Updates below PIECE bytes are gathered, up to GATHER_MIN bytes, so that a system call carries enough. */
#define PIECE 1024u
#define GATHER_MIN 16384u

static void forget_held(struct message *m)
{
	if (m->held_bytes > 0)
		OPENSSL_cleanse(m->held, m->held_bytes);
	m->held_bytes = 0;
}

static void free_held(struct message *m)
{
	forget_held(m);
	if (m->held != m->small)
		free(m->held);
}

void message_init(struct message *m, struct provider *p, enum algorithm_id id, software_update_fn *update,
		  software_final_fn *final)
{
	m->lane = MESSAGE_SOFTWARE;
	m->id = id;
	m->provider = p;
	m->soft = NULL;
	m->update = update;
	m->final = final;
	m->key = NULL;
	m->use = (struct route_use){.id = id};
	m->held = m->small;
	m->held_bytes = 0;
	m->held_room = sizeof(m->small);
}

void message_end(struct message *m)
{
	if (m->lane == MESSAGE_KERNEL)
		afalg_hash_end(&m->hash);
	forget_held(m);
	m->lane = MESSAGE_SOFTWARE;
}

void message_free(struct message *m)
{
	if (m->lane != MESSAGE_SOFTWARE)
		message_end(m);
	free_held(m);
}

/* Makes room for `total` bytes, twice as much each time. */
static bool held_room(struct message *m, size_t total)
{
	size_t room = m->held_room > PIECE ? m->held_room : PIECE;
	const size_t held = m->held_bytes;
	uint8_t *larger;

	if (total <= m->held_room)
		return true;
	while (room < total)
		room *= 2;
	larger = malloc(room);
	if (larger == NULL)
		return false;
	if (held > 0)
		memcpy(larger, m->held, held);
	free_held(m);
	m->held = larger;
	m->held_room = room;
	m->held_bytes = held;
	return true;
}

int message_copy(struct message *to, struct message *from)
{
	const struct core_errors *errors = &from->provider->errors;
	int err = 0;

	if (from->lane == MESSAGE_LOST) {
		error_raise(errors, ERROR_KERNEL_COPY, "%s: its hash is lost", algorithms[from->id].name);
		return 0;
	}
	if (from->held_bytes > 0) {
		if (!held_room(to, from->held_bytes))
			return 0;
		memcpy(to->held, from->held, from->held_bytes);
		to->held_bytes = from->held_bytes;
	}
	if (from->lane == MESSAGE_KERNEL)
		err = afalg_hash_copy(&to->hash, &from->hash);
	if (err != 0) {
		counters_error(from->id, 0, err);
		error_raise(errors, ERROR_KERNEL_COPY, "%s: %s", algorithms[from->id].name, strerror(-err));
		return 0;
	}
	to->floor = from->floor;
	to->use = from->use;
	to->use.timed = false;
	to->lane = from->lane;
	return 1;
}

/* Hands what is held back to the software lane, which then has the whole message. */
static int choose_software(struct message *m)
{
	int ok = m->held_bytes == 0 || message_update_software(m, m->held, m->held_bytes);

	forget_held(m);
	m->lane = MESSAGE_SOFTWARE;
	return ok;
}

/* Brings the software lane to the end of its message too, so that it answers further calls as it always would. */
static void finish_software(struct message *m)
{
	unsigned char unused[EVP_MAX_MD_SIZE];
	size_t length;

	m->final(m->soft, unused, &length, sizeof(unused));
	m->lane = MESSAGE_SOFTWARE;
}

int message_to_software(struct message *m)
{
	switch (m->lane) {
	case MESSAGE_SOFTWARE:
		return 1;
	case MESSAGE_UNDECIDED:
	case MESSAGE_HELD:
		return choose_software(m);
	case MESSAGE_DONE:
		finish_software(m);
		return 1;
	default:
		error_raise(&m->provider->errors, ERROR_PARAMETER, "%s: the message is in the kernel",
			    algorithms[m->id].name);
		return 0;
	}
}

/* What the kernel has cannot be had any more. */
static void forsake(struct message *m)
{
	message_end(m);
	m->lane = MESSAGE_LOST;
}

static int lose(struct message *m, int err)
{
	counters_error(m->id, m->use.bytes, err);
	error_raise(&m->provider->errors, ERROR_KERNEL_HASH, "%s: %s", algorithms[m->id].name, strerror(-err));
	forsake(m);
	return 0;
}

void message_not_begun(struct message *m)
{
	if (m->lane == MESSAGE_KERNEL)
		forsake(m);
	else if (m->lane != MESSAGE_LOST)
		message_to_software(m);
}

/* Sends what is held and `in` to the kernel as the next part of the message, or its last. What is held stays. */
static int kernel_send(struct message *m, const unsigned char *in, size_t inl, bool more)
{
	const struct iovec iov[] = {{m->held, m->held_bytes}, {(void *)(uintptr_t)in, inl}};
	unsigned requests = 0;
	int err = afalg_hash_send(&m->hash, iov, 2, more, &requests);

	if (err != 0)
		route_outcome(&m->provider->route, &m->use, true, err);
	else
		counters_kernel(m->id, requests, m->held_bytes + inl);
	return err;
}

/* The whole message is still here: back to software, as if nothing had been. */
static void abandon_kernel(struct message *m, size_t bytes, int err)
{
	afalg_hash_end(&m->hash);
	counters_fallback(m->id, bytes, err);
	m->lane = MESSAGE_HELD;
}

/* Opens the hash in the kernel and gives it the message so far. Whatever fails: 0, and nothing has changed. */
static int choose_kernel(struct message *m, const unsigned char *in, size_t inl, bool more)
{
	const struct route *route = &m->provider->route;
	int err;

	if (m->held_bytes > 0)
		learn_message(m->id, true);
	counters_sampled(m->id);
	m->use.id = m->id;
	m->use.open = true; /* each message has to: that is part of what it costs */
	if (!route_take(route, &m->use, m->held_bytes + inl))
		return 0;
	err = afalg_hash_start(&m->hash, algorithms[m->id].kernel, m->key);
	if (err != 0) {
		route_outcome(route, &m->use, false, err);
		counters_fallback(m->id, m->held_bytes + inl, err);
		return 0;
	}
	m->lane = MESSAGE_KERNEL;
	err = kernel_send(m, in, inl, more);
	if (err != 0) {
		abandon_kernel(m, m->held_bytes + inl, err);
		return 0;
	}
	if (more)
		route_pause(route, &m->use);
	return 1;
}

/* A further part. */
static int kernel_update(struct message *m, const unsigned char *in, size_t inl)
{
	int err;

	route_resume(&m->provider->route, &m->use);
	m->use.bytes += m->held_bytes + inl;
	err = kernel_send(m, in, inl, true);
	if (err != 0)
		return lose(m, err);
	route_pause(&m->provider->route, &m->use);
	forget_held(m);
	return 1;
}

/* Whether bytes may be held back until the floor is reached, if it is. */
static bool may_hold(const struct message *m, size_t inl)
{
	if (inl < m->floor && !learn_expects_long(m->id) && counters_sample(m->id) == 0)
		return false;
	return route_waits(&m->provider->route, m->id, inl);
}

/* Keeps `in` for later if the threshold is not reached or a system call would carry too little; 0: it must go now. */
static int hold(struct message *m, const unsigned char *in, size_t inl)
{
	const size_t total = m->held_bytes + inl;
	const bool undecided = m->lane == MESSAGE_HELD && total < m->floor;

	if (!undecided && (inl >= PIECE || total >= GATHER_MIN))
		return 0;
	if (!held_room(m, total))
		return 0;
	memcpy(m->held + m->held_bytes, in, inl);
	m->held_bytes = total;
	return 1;
}

/* What was held back, and what comes now, is software's after all. */
static int update_in_software(struct message *m, const unsigned char *in, size_t inl)
{
	if (!choose_software(m) || !message_update_software(m, in, inl))
		return 0;
	route_done(&m->provider->route, &m->use);
	return 1;
}

/* An update of a message that is not software's already. */
int message_update_elsewhere(struct message *m, const unsigned char *in, size_t inl)
{
	if (inl == 0)
		return 1;
	if (m->lane == MESSAGE_LOST)
		return lose(m, -ESTALE);
	if (m->lane == MESSAGE_DONE) {
		finish_software(m);
		return message_update_software(m, in, inl);
	}
	if (m->lane == MESSAGE_UNDECIDED) {
		if (!may_hold(m, inl)) {
			m->lane = MESSAGE_SOFTWARE;
			return message_update_software(m, in, inl);
		}
		m->lane = MESSAGE_HELD;
	}
	if (hold(m, in, inl))
		return 1;
	if (m->lane == MESSAGE_HELD) {
		if (!choose_kernel(m, in, inl, true))
			return update_in_software(m, in, inl);
		forget_held(m);
		return 1;
	}
	return kernel_update(m, in, inl);
}

static int kernel_finish(struct message *m, unsigned char *out)
{
	int err = afalg_hash_finish(&m->hash, out, algorithms[m->id].size);

	route_outcome(&m->provider->route, &m->use, true, err);
	return err;
}

static int kernel_final(struct message *m, unsigned char *out)
{
	int err;

	route_resume(&m->provider->route, &m->use);
	m->use.bytes += m->held_bytes;
	err = m->held_bytes == 0 ? 0 : kernel_send(m, NULL, 0, false);
	if (err == 0)
		err = kernel_finish(m, out);
	return err == 0 ? 1 : lose(m, err);
}

/* A message held back as a whole: one request if it is long enough, and free to fail. */
static int held_final(struct message *m, unsigned char *out)
{
	int err;

	if (m->held_bytes < m->floor) {
		learn_message(m->id, false);
		return 0;
	}
	if (!choose_kernel(m, NULL, 0, false))
		return 0;
	err = kernel_finish(m, out);
	if (err == 0)
		return 1;
	abandon_kernel(m, m->held_bytes, err);
	return 0;
}

int message_final(struct message *m, unsigned char *out, size_t *outl, size_t outsize)
{
	if (m->lane == MESSAGE_SOFTWARE)
		return m->final(m->soft, out, outl, outsize);
	if (m->lane == MESSAGE_LOST)
		return lose(m, -ESTALE);
	if (m->lane == MESSAGE_DONE) {
		finish_software(m);
		return m->final(m->soft, out, outl, outsize);
	}
	if (outsize < algorithms[m->id].size)
		return 0; /* as the default provider: without a reason */
	if (m->lane == MESSAGE_KERNEL && !kernel_final(m, out))
		return 0;
	if (m->lane == MESSAGE_KERNEL || (m->lane == MESSAGE_HELD && held_final(m, out))) {
		*outl = algorithms[m->id].size;
		message_end(m);
		m->lane = MESSAGE_DONE;
		return 1;
	}
	if (!choose_software(m) || !m->final(m->soft, out, outl, outsize))
		return 0;
	route_done(&m->provider->route, &m->use);
	return 1;
}
