/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests. A message takes one lane as a whole, since software and kernel cannot exchange a hash in progress. While the
 * kernel may still win, the first bytes are held back; a message that ends before the threshold never opens anything.
 * In the kernel small updates are gathered, so that a system call carries enough.
 */
#include "digest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../afalg/hash.h"
#include "../counters.h"
#include "../provider.h"
#include "../software.h"

/* Updates below PIECE bytes are gathered, up to GATHER_MIN bytes, so that a system call carries enough. */
#define PIECE 1024u
#define GATHER_MIN 16384u

enum lane {
	LANE_SOFTWARE,
	LANE_UNDECIDED, /* nothing hashed yet */
	LANE_HELD,      /* bytes are held back, the lane is not chosen */
	LANE_KERNEL,
	LANE_LOST, /* the kernel failed mid-way */
};

struct digest_ctx {
	enum lane lane;
	enum algorithm_id id;
	struct provider *provider;
	const struct software_digest *software;
	void *soft; /* the software lane's context */
	uint8_t *held;
	size_t held_bytes, held_room;
	struct afalg_hash hash; /* LANE_KERNEL */
};

static void forget_held(struct digest_ctx *c)
{
	if (c->held_bytes > 0)
		OPENSSL_cleanse(c->held, c->held_bytes);
	c->held_bytes = 0;
}

static void free_held(struct digest_ctx *c)
{
	forget_held(c);
	free(c->held);
	c->held = NULL;
	c->held_room = 0;
}

static void end_message(struct digest_ctx *c)
{
	if (c->lane == LANE_KERNEL || c->lane == LANE_LOST)
		afalg_hash_end(&c->hash);
	forget_held(c);
	c->lane = LANE_SOFTWARE;
}

void *digest_newctx(struct provider *p, enum algorithm_id id)
{
	struct digest_ctx *c = malloc(sizeof(*c));

	if (c == NULL)
		return NULL;
	c->lane = LANE_SOFTWARE;
	c->id = id;
	c->provider = p;
	c->software = &software_digests[id];
	c->held = NULL;
	c->held_bytes = c->held_room = 0;
	c->soft = c->software->newctx(p->soft_provctx);
	if (c->soft == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

static OSSL_FUNC_digest_freectx_fn freectx;
static void freectx(void *ctx)
{
	struct digest_ctx *c = ctx;

	if (c == NULL)
		return;
	if (c->lane != LANE_SOFTWARE)
		end_message(c);
	c->software->freectx(c->soft);
	free_held(c);
	free(c);
}

/* Makes room for `total` bytes, twice as much each time. */
static bool held_room(struct digest_ctx *c, size_t total)
{
	size_t room = c->held_room > 0 ? c->held_room : PIECE;
	const size_t held = c->held_bytes;
	uint8_t *larger;

	while (room < total)
		room *= 2;
	if (room == c->held_room)
		return true;
	larger = malloc(room);
	if (larger == NULL)
		return false;
	if (held > 0)
		memcpy(larger, c->held, held);
	free_held(c);
	c->held = larger;
	c->held_room = room;
	c->held_bytes = held;
	return true;
}

/* Copies what is held back, or the kernel's state. */
static int copy_message(struct digest_ctx *to, struct digest_ctx *from)
{
	int err;

	if (from->held_bytes > 0) {
		if (!held_room(to, from->held_bytes))
			return 0;
		memcpy(to->held, from->held, from->held_bytes);
		to->held_bytes = from->held_bytes;
	}
	if (from->lane == LANE_KERNEL) {
		err = afalg_hash_copy(&to->hash, &from->hash);
		if (err != 0) {
			counters_error(from->id);
			error_raise(&from->provider->errors, ERROR_KERNEL_COPY, "%s: %s", algorithms[from->id].name,
				    strerror(-err));
			return 0;
		}
	}
	to->lane = from->lane;
	return 1;
}

static OSSL_FUNC_digest_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	struct digest_ctx *from = ctx, *to;

	if (from->lane == LANE_LOST) {
		error_raise(&from->provider->errors, ERROR_KERNEL_COPY, "%s: its hash is lost",
			    algorithms[from->id].name);
		return NULL;
	}
	to = malloc(sizeof(*to));
	if (to == NULL)
		return NULL;
	*to = (struct digest_ctx){
		.lane = LANE_SOFTWARE, .id = from->id, .provider = from->provider, .software = from->software};
	to->soft = from->software->dupctx(from->soft);
	if (to->soft == NULL) {
		free(to);
		return NULL;
	}
	if (from->lane != LANE_SOFTWARE && !copy_message(to, from)) {
		freectx(to);
		return NULL;
	}
	return to;
}

static OSSL_FUNC_digest_init_fn init;
static int init(void *ctx, const OSSL_PARAM params[])
{
	struct digest_ctx *c = ctx;

	if (c->lane != LANE_SOFTWARE)
		end_message(c);
	/* A parameter that goes into the state (see set_ctx_params) has no place in the kernel's. */
	if ((params == NULL || params[0].key == NULL) && route_floor(&c->provider->route, c->id) != ROUTE_NEVER)
		c->lane = LANE_UNDECIDED;
	return c->software->init(c->soft, params);
}

static int software_update(struct digest_ctx *c, const unsigned char *in, size_t inl)
{
	counters_software(c->id, 1, inl);
	return c->software->update(c->soft, in, inl);
}

/* Hands what is held back to the software lane, which then has the whole message. */
static int choose_software(struct digest_ctx *c)
{
	int ok = c->held_bytes == 0 || software_update(c, c->held, c->held_bytes);

	forget_held(c);
	c->lane = LANE_SOFTWARE;
	return ok;
}

/* Sends what is held and `in` to the kernel as the next part of the message, or its last. What is held stays. */
static int kernel_send(struct digest_ctx *c, const unsigned char *in, size_t inl, bool more)
{
	const struct iovec iov[] = {{c->held, c->held_bytes}, {(void *)(uintptr_t)in, inl}};
	unsigned requests = 0;
	int err = afalg_hash_send(&c->hash, iov, 2, more, &requests);

	route_outcome(&c->provider->route, c->id, true, err);
	if (err == 0)
		counters_kernel(c->id, requests, c->held_bytes + inl);
	return err;
}

/* The whole message is still here: back to software, as if nothing had been. */
static void abandon_kernel(struct digest_ctx *c)
{
	afalg_hash_end(&c->hash);
	counters_fallback(c->id);
	c->lane = LANE_HELD;
}

/* Opens the hash in the kernel and gives it the message so far. Whatever fails: 0, and nothing has changed. */
static int choose_kernel(struct digest_ctx *c, const unsigned char *in, size_t inl, bool more)
{
	int err;

	if (!route_take(&c->provider->route, c->id, c->held_bytes + inl))
		return 0;
	err = afalg_hash_start(&c->hash, algorithms[c->id].kernel, NULL);
	if (err != 0) {
		route_outcome(&c->provider->route, c->id, false, err);
		counters_fallback(c->id);
		return 0;
	}
	c->lane = LANE_KERNEL;
	if (kernel_send(c, in, inl, more) != 0) {
		abandon_kernel(c);
		return 0;
	}
	return 1;
}

static int lose(struct digest_ctx *c, int err)
{
	counters_error(c->id);
	error_raise(&c->provider->errors, ERROR_KERNEL_HASH, "%s: %s", algorithms[c->id].name, strerror(-err));
	c->lane = LANE_LOST;
	return 0;
}

/* Keeps `in` for later if the threshold is not reached or a system call would carry too little; 0: it must go now. */
static int hold(struct digest_ctx *c, const unsigned char *in, size_t inl)
{
	const size_t floor = route_floor(&c->provider->route, c->id), total = c->held_bytes + inl;
	const bool undecided = c->lane == LANE_HELD && total < floor && floor <= ROUTE_THRESHOLD_MAX;

	if (!undecided && (inl >= PIECE || total >= GATHER_MIN))
		return 0;
	if (!held_room(c, total))
		return 0;
	memcpy(c->held + c->held_bytes, in, inl);
	c->held_bytes = total;
	return 1;
}

/* An update of a message that is not software's already. */
static int update_elsewhere(struct digest_ctx *c, const unsigned char *in, size_t inl)
{
	int err;

	if (inl == 0)
		return 1;
	if (c->lane == LANE_LOST)
		return lose(c, -ESTALE);
	if (c->lane == LANE_UNDECIDED) {
		if (!route_take(&c->provider->route, c->id, inl)) {
			c->lane = LANE_SOFTWARE;
			return software_update(c, in, inl);
		}
		c->lane = LANE_HELD;
	}
	if (hold(c, in, inl))
		return 1;
	if (c->lane == LANE_HELD) {
		if (!choose_kernel(c, in, inl, true))
			return choose_software(c) && software_update(c, in, inl);
		forget_held(c);
		return 1;
	}
	err = kernel_send(c, in, inl, true);
	if (err != 0)
		return lose(c, err);
	forget_held(c);
	return 1;
}

static OSSL_FUNC_digest_update_fn update;
static int update(void *ctx, const unsigned char *in, size_t inl)
{
	struct digest_ctx *c = ctx;

	if (c->lane == LANE_SOFTWARE)
		return software_update(c, in, inl);
	return update_elsewhere(c, in, inl);
}

static int kernel_finish(struct digest_ctx *c, unsigned char *out)
{
	int err = afalg_hash_finish(&c->hash, out, algorithms[c->id].size);

	route_outcome(&c->provider->route, c->id, true, err);
	return err;
}

static int kernel_final(struct digest_ctx *c, unsigned char *out)
{
	int err = c->held_bytes == 0 ? 0 : kernel_send(c, NULL, 0, false);

	if (err == 0)
		err = kernel_finish(c, out);
	return err == 0 ? 1 : lose(c, err);
}

/* A message held back as a whole: one request if it is long enough, and free to fail. */
static int held_final(struct digest_ctx *c, unsigned char *out)
{
	if (c->held_bytes < route_floor(&c->provider->route, c->id) || !choose_kernel(c, NULL, 0, false))
		return 0;
	if (kernel_finish(c, out) == 0)
		return 1;
	abandon_kernel(c);
	return 0;
}

static OSSL_FUNC_digest_final_fn final;
static int final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	struct digest_ctx *c = ctx;

	if (c->lane == LANE_SOFTWARE)
		return c->software->final(c->soft, out, outl, outsize);
	if (c->lane == LANE_LOST)
		return lose(c, -ESTALE);
	if (outsize < algorithms[c->id].size)
		return 0; /* as the default provider: without a reason */
	if (c->lane == LANE_KERNEL && !kernel_final(c, out))
		return 0;
	if (c->lane == LANE_KERNEL || (c->lane == LANE_HELD && held_final(c, out))) {
		*outl = algorithms[c->id].size;
		end_message(c);
		return 1;
	}
	return choose_software(c) && c->software->final(c->soft, out, outl, outsize);
}

static OSSL_FUNC_digest_set_ctx_params_fn set_ctx_params;
static int set_ctx_params(void *ctx, const OSSL_PARAM params[])
{
	struct digest_ctx *c = ctx;

	/* What SHA1 can be told (the SSL 3.0 master secret) goes into its state. */
	if (params != NULL && params[0].key != NULL) {
		if (c->lane == LANE_KERNEL || c->lane == LANE_LOST) {
			error_raise(&c->provider->errors, ERROR_PARAMETER, "%s: the message is in the kernel",
				    algorithms[c->id].name);
			return 0;
		}
		if (c->lane != LANE_SOFTWARE && !choose_software(c))
			return 0;
	}
	return c->software->set_ctx_params(c->soft, params);
}

static OSSL_FUNC_digest_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	struct digest_ctx *c = ctx;

	return c->software->get_ctx_params(c->soft, params);
}

const OSSL_DISPATCH digest_functions[] = {
	{OSSL_FUNC_DIGEST_FREECTX, (void (*)(void))freectx},
	{OSSL_FUNC_DIGEST_DUPCTX, (void (*)(void))dupctx},
	{OSSL_FUNC_DIGEST_INIT, (void (*)(void))init},
	{OSSL_FUNC_DIGEST_UPDATE, (void (*)(void))update},
	{OSSL_FUNC_DIGEST_FINAL, (void (*)(void)) final},
	{OSSL_FUNC_DIGEST_GET_CTX_PARAMS, (void (*)(void))get_ctx_params},
	{OSSL_FUNC_DIGEST_SET_CTX_PARAMS, (void (*)(void))set_ctx_params},
	{0, NULL},
};
