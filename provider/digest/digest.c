/* SPDX-License-Identifier: Apache-2.0 */
/* Digests: the default provider's, with messages that may go to the kernel. */
#include "digest.h"

#include <openssl/params.h>
#include <stdlib.h>

#include "../message.h"
#include "../software.h"

struct digest_ctx {
	struct message message;
	const struct software_digest *software;
};

/* The software lane's context is still to be set. */
static struct digest_ctx *new_ctx(struct provider *p, enum algorithm_id id)
{
	struct digest_ctx *c = malloc(sizeof(*c));

	if (c == NULL)
		return NULL;
	c->software = &software_digests[id];
	message_init(&c->message, p, id, c->software->update, c->software->final);
	return c;
}

void *digest_newctx(struct provider *p, enum algorithm_id id)
{
	struct digest_ctx *c = new_ctx(p, id);

	if (c == NULL)
		return NULL;
	c->message.soft = c->software->newctx(p->soft_provctx);
	if (c->message.soft == NULL) {
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
	message_free(&c->message);
	c->software->freectx(c->message.soft);
	free(c);
}

static OSSL_FUNC_digest_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	struct digest_ctx *from = ctx, *to = new_ctx(from->message.provider, from->message.id);

	if (to == NULL)
		return NULL;
	to->message.soft = from->software->dupctx(from->message.soft);
	if (to->message.soft == NULL) {
		free(to);
		return NULL;
	}
	if (from->message.lane != MESSAGE_SOFTWARE && !message_copy(&to->message, &from->message)) {
		freectx(to);
		return NULL;
	}
	return to;
}

/* Whether some parameter goes into the state: SHA1 takes the SSL 3.0 master secret. What is not settable is ignored. */
static bool go_into_state(const struct digest_ctx *c, const OSSL_PARAM params[])
{
	const OSSL_PARAM *settable =
		c->software->settable_ctx_params == NULL
			? NULL
			: c->software->settable_ctx_params(NULL, c->message.provider->soft_provctx);

	for (; settable != NULL && settable->key != NULL; settable++)
		if (OSSL_PARAM_locate_const(params, settable->key) != NULL)
			return true;
	return false;
}

static OSSL_FUNC_digest_init_fn init;
static int init(void *ctx, const OSSL_PARAM params[])
{
	struct digest_ctx *c = ctx;

	message_begin(&c->message, params == NULL || params[0].key == NULL || !go_into_state(c, params));
	return c->software->init(c->message.soft, params);
}

static OSSL_FUNC_digest_update_fn update;
static int update(void *ctx, const unsigned char *in, size_t inl)
{
	return message_update(&((struct digest_ctx *)ctx)->message, in, inl);
}

static OSSL_FUNC_digest_final_fn final;
static int final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	return message_final(&((struct digest_ctx *)ctx)->message, out, outl, outsize);
}

static OSSL_FUNC_digest_set_ctx_params_fn set_ctx_params;
static int set_ctx_params(void *ctx, const OSSL_PARAM params[])
{
	struct digest_ctx *c = ctx;

	if (params != NULL && params[0].key != NULL && go_into_state(c, params) && !message_to_software(&c->message))
		return 0;
	return c->software->set_ctx_params(c->message.soft, params);
}

static OSSL_FUNC_digest_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	struct digest_ctx *c = ctx;

	return c->software->get_ctx_params(c->message.soft, params);
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
