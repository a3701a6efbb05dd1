/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MACs. The software lane is told everything: parameters, keys, each beginning. The kernel lane has the messages over
 * those digests and ciphers that are rows. Which one that is follows from the parameters: what is named counts from the
 * next key on.
 */
#include "mac.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../message.h"
#include "../software.h"
#include "over.h"

#define NO_ROW (-1)  /* a digest or cipher that only software has, or none yet */
#define UNNAMED (-2) /* none since the last key */

struct mac_ctx {
	struct message message; /* never out of the software lane without a row */
	const struct software_mac *software;
	enum algorithm_id first; /* of the rows of this MAC */
	int row;                 /* what the key in use is for */
	int named;               /* what the next key is for */
	bool flagged;            /* hashes as the kernel does not (digest-noinit, digest-oneshot), for good */
	bool tls;                /* the message is a TLS record of secret length, to be hashed in constant time */
};

/* The parameters that mean something here. */
struct given {
	const OSSL_PARAM *name, *properties, *engine, *key, *tls, *flag;
};

static struct given look(enum algorithm_id first, const OSSL_PARAM params[])
{
	static const struct {
		const char *key;
		size_t to;
	} known[] = {
		{OSSL_MAC_PARAM_PROPERTIES, offsetof(struct given, properties)},
		{"engine", offsetof(struct given, engine)}, /* OSSL_ALG_PARAM_ENGINE; OpenSSL 4.0 has no such name */
		{OSSL_MAC_PARAM_KEY, offsetof(struct given, key)},
		{OSSL_MAC_PARAM_TLS_DATA_SIZE, offsetof(struct given, tls)},
		{OSSL_MAC_PARAM_DIGEST_NOINIT, offsetof(struct given, flag)},
		{OSSL_MAC_PARAM_DIGEST_ONESHOT, offsetof(struct given, flag)},
	};
	const char *const over = over_parameter(first);
	struct given g = {0};

	for (const OSSL_PARAM *p = params; p != NULL && p->key != NULL; p++) {
		const OSSL_PARAM **to = strcmp(p->key, over) == 0 ? &g.name : NULL;

		for (size_t i = 0; to == NULL && i < sizeof(known) / sizeof(*known); i++)
			if (strcmp(p->key, known[i].key) == 0)
				to = (const OSSL_PARAM **)(void *)((char *)&g + known[i].to);
		if (to != NULL && *to == NULL)
			*to = p; /* the first, as OSSL_PARAM_locate() */
	}
	return g;
}

/*** Contexts ***/

/* The software lane's context is still to be set. */
static struct mac_ctx *new_ctx(struct provider *p, enum algorithm_id first, const struct software_mac *software)
{
	struct mac_ctx *c = malloc(sizeof(*c));

	if (c == NULL)
		return NULL;
	c->software = software;
	c->first = first;
	c->row = NO_ROW;
	c->named = UNNAMED;
	c->flagged = c->tls = false;
	message_init(&c->message, p, first, software->update, software->final);
	return c;
}

void *mac_newctx(struct provider *p, enum algorithm_id first)
{
	struct mac_ctx *c = new_ctx(p, first, &software_macs[first]);

	if (c == NULL)
		return NULL;
	c->message.soft = c->software->newctx(p->soft_provctx);
	if (c->message.soft == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

static OSSL_FUNC_mac_freectx_fn freectx;
static void freectx(void *ctx)
{
	struct mac_ctx *c = ctx;

	if (c == NULL)
		return;
	message_free(&c->message);
	afalg_hash_key_free(c->message.key);
	c->software->freectx(c->message.soft);
	free(c);
}

static OSSL_FUNC_mac_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	struct mac_ctx *from = ctx, *to = new_ctx(from->message.provider, from->first, from->software);

	if (to == NULL)
		return NULL;
	to->message.soft = from->software->dupctx(from->message.soft);
	if (to->message.soft == NULL) {
		free(to);
		return NULL;
	}
	to->row = from->row;
	to->named = from->named;
	to->flagged = from->flagged;
	to->tls = from->tls;
	to->message.id = from->message.id;
	to->message.key = afalg_hash_key_share(from->message.key);
	if (from->message.lane != MESSAGE_SOFTWARE && !message_copy(&to->message, &from->message)) {
		freectx(to);
		return NULL;
	}
	return to;
}

/* The kernel lane is closed until there is another key. No message is in the kernel. */
static void drop_key(struct mac_ctx *c)
{
	afalg_hash_key_free(c->message.key);
	c->message.key = NULL;
}

/*** Parameters ***/

static bool is_set(const OSSL_PARAM *p)
{
	size_t value = 0;

	return p != NULL && (!OSSL_PARAM_get_size_t(p, &value) || value != 0);
}

/*
 * Before the software lane is told of them. *row: what they name. `begins`: another message begins with them, and the
 * one before is abandoned. 0: they cannot be set now.
 */
static int prepare(struct mac_ctx *c, const struct given *g, bool begins, int *row)
{
	const struct provider *p = c->message.provider;
	const enum message_lane lane = c->message.lane;

	*row = g->name != NULL ? over_find(c->message.provider, c->first, g->name, g->properties) : c->named;
	/* Where the kernel cannot have it nobody counts either. */
	if (g->engine != NULL || (*row >= 0 && route_excluded(&p->route, (enum algorithm_id) * row)))
		*row = NO_ROW;
	if (!is_set(g->tls) && g->flag == NULL)
		return 1;
	/* A flag matters to the messages that begin after it. */
	if ((begins || !is_set(g->tls)) && (lane == MESSAGE_KERNEL || lane == MESSAGE_LOST))
		return 1;
	return message_to_software(&c->message);
}

/* After it was told. Where it has failed half way, only that the kernel stays away is safe. */
static void note(struct mac_ctx *c, const struct given *g, int row, int ok)
{
	c->named = ok || g->name == NULL ? row : NO_ROW;
	if (g->tls != NULL)
		c->tls = !ok || is_set(g->tls);
	if (g->flag != NULL)
		c->flagged = true;
}

/* The digest of a key, as long as the digest; 0 where it cannot be had. */
static size_t hash_key(const struct mac_ctx *c, const uint8_t *key, size_t keylen, uint8_t *to, size_t room)
{
	const struct software_digest *d = &software_digests[over_base((enum algorithm_id)c->row)];
	void *ctx = d->newctx(c->message.provider->soft_provctx);
	size_t length = 0;

	if (ctx == NULL)
		return 0;
	if (!d->init(ctx, NULL) || !d->update(ctx, key, keylen) || !d->final(ctx, to, &length, room))
		length = 0;
	d->freectx(ctx);
	return length;
}

/* Notes the key that the software lane has taken. What is not noted stays in software. */
static void take_key(struct mac_ctx *c, const uint8_t *key, size_t keylen)
{
	struct message *m = &c->message;
	uint8_t hashed[EVP_MAX_MD_SIZE];
	bool usable = key != NULL && !c->flagged;

	if (c->named != UNNAMED)
		c->row = c->named;
	c->named = UNNAMED;
	usable = usable && c->row != NO_ROW &&
		 (route_floor(&m->provider->route, (enum algorithm_id)c->row) != ROUTE_NEVER ||
		  route_learns(&m->provider->route, (enum algorithm_id)c->row));
	if (usable && algorithms[c->row].block != 0 && keylen > algorithms[c->row].block) {
		keylen = hash_key(c, key, keylen, hashed, sizeof(hashed));
		key = hashed;
		usable = keylen > 0;
	}
	if (usable)
		m->key = afalg_hash_key_change(m->key, algorithms[c->row].kernel, key, keylen);
	else
		drop_key(c);
	if (key == hashed)
		OPENSSL_cleanse(hashed, sizeof(hashed));
	if (c->row != NO_ROW)
		m->id = (enum algorithm_id)c->row;
}

/* The software lane has begun a message or has failed to, with another key if `keyed`. */
static int begin(struct mac_ctx *c, int ok, bool keyed, const uint8_t *key, size_t keylen)
{
	if (!ok) {
		message_not_begun(&c->message);
		if (keyed)
			drop_key(c);
		return 0;
	}
	if (c->message.lane != MESSAGE_SOFTWARE)
		message_end(&c->message);
	if (keyed)
		take_key(c, key, keylen);
	message_begin(&c->message, c->message.key != NULL && !c->flagged && !c->tls);
	return 1;
}

static OSSL_FUNC_mac_set_ctx_params_fn set_ctx_params;
static int set_ctx_params(void *ctx, const OSSL_PARAM params[])
{
	struct mac_ctx *c = ctx;
	const struct given g = look(c->first, params);
	int row, ok;

	if (!prepare(c, &g, g.key != NULL, &row))
		return 0;
	ok = c->software->set_ctx_params(c->message.soft, params);
	note(c, &g, row, ok);
	if (g.key == NULL)
		return ok;
	return begin(c, ok, true, g.key->data, g.key->data_size); /* a key begins a message, here too */
}

static OSSL_FUNC_mac_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	struct mac_ctx *c = ctx;

	return c->software->get_ctx_params(c->message.soft, params);
}

/*** Messages ***/

static OSSL_FUNC_mac_init_fn init;
static int init(void *ctx, const unsigned char *key, size_t keylen, const OSSL_PARAM params[])
{
	struct mac_ctx *c = ctx;
	struct given g;
	int row, ok;

	if (params == NULL || params->key == NULL) {
		if (c->row == NO_ROW && key == NULL)
			return c->software->init(c->message.soft, NULL, 0, params); /* software's alone */
		return begin(c, c->software->init(c->message.soft, key, keylen, params), key != NULL, key, keylen);
	}
	g = look(c->first, params);
	if (!prepare(c, &g, true, &row))
		return 0;
	ok = c->software->init(c->message.soft, key, keylen, params);
	note(c, &g, row, ok);
	if (key == NULL && g.key != NULL)
		return begin(c, ok, true, g.key->data, g.key->data_size);
	return begin(c, ok, key != NULL, key, keylen);
}

static OSSL_FUNC_mac_update_fn update;
static int update(void *ctx, const unsigned char *in, size_t inl)
{
	struct mac_ctx *c = ctx;

	if (c->row == NO_ROW) /* then nobody counts */
		return c->software->update(c->message.soft, in, inl);
	return message_update(&c->message, in, inl);
}

static OSSL_FUNC_mac_final_fn final;
static int final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	struct mac_ctx *c = ctx;

	if (c->row == NO_ROW)
		return c->software->final(c->message.soft, out, outl, outsize);
	return message_final(&c->message, out, outl, outsize);
}

const OSSL_DISPATCH mac_functions[] = {
	{OSSL_FUNC_MAC_FREECTX, (void (*)(void))freectx},
	{OSSL_FUNC_MAC_DUPCTX, (void (*)(void))dupctx},
	{OSSL_FUNC_MAC_INIT, (void (*)(void))init},
	{OSSL_FUNC_MAC_UPDATE, (void (*)(void))update},
	{OSSL_FUNC_MAC_FINAL, (void (*)(void)) final},
	{OSSL_FUNC_MAC_GET_CTX_PARAMS, (void (*)(void))get_ctx_params},
	{OSSL_FUNC_MAC_SET_CTX_PARAMS, (void (*)(void))set_ctx_params},
	{0, NULL},
};
