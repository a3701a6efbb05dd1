/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AFALG-DRBG and AFALG-JITTER. A context has next to no state: the generator is in the kernel, one for all contexts
 * (afalg/rng.h). Where that cannot be had the bytes are those of getrandom(2); bytes of neither are never made up.
 * Nothing here may use OpenSSL's own random functions, which may be served by this code.
 */
#include "rand.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdatomic.h>
#include <string.h>

#include "../../afalg/rng.h"
#include "../counters.h"
#include "../provider.h"

/* Bits. Both kinds, and getrandom(2) in their place, rest on 256 bits of the kernel's entropy. */
#define STRENGTH 256u

/* Bytes of one generate, as for OpenSSL's own; EVP cuts what is longer. */
#define REQUEST_MAX 65536u

/* Atomic members in place of a lock: the generator takes care of itself. */
struct rand_ctx {
	struct provider *provider;
	enum algorithm_id id;
	atomic_int state;
	atomic_bool reseed; /* before the next bytes */
};

static struct rand_ctx *new_context(struct provider *p, enum algorithm_id id)
{
	struct rand_ctx *c = OPENSSL_zalloc(sizeof(*c));

	if (c == NULL) {
		error_raise(&p->errors, ERROR_MEMORY, "%s", algorithms[id].name);
		return NULL;
	}
	c->provider = p;
	c->id = id;
	atomic_init(&c->state, EVP_RAND_STATE_UNINITIALISED);
	return c;
}

/* A parent is for generators that need a seed of others. The kernel's have their own. */
static OSSL_FUNC_rand_newctx_fn newctx_drbg, newctx_jitter;
static void *newctx_drbg(void *provctx, void *parent, const OSSL_DISPATCH *parent_calls)
{
	(void)parent;
	(void)parent_calls;
	return new_context(provctx, ALG_AFALG_DRBG);
}

static void *newctx_jitter(void *provctx, void *parent, const OSSL_DISPATCH *parent_calls)
{
	(void)parent;
	(void)parent_calls;
	return new_context(provctx, ALG_AFALG_JITTER);
}

static OSSL_FUNC_rand_freectx_fn freectx;
static void freectx(void *ctx)
{
	OPENSSL_free(ctx);
}

/* Has the next bytes of this context come from a new seed. Jitter has a fresh one for all that it gives. */
static void want_reseed(struct rand_ctx *c)
{
	if (c->id == ALG_AFALG_DRBG)
		atomic_store(&c->reseed, true);
}

/* Fills `out` from AF_ALG. 0: the caller must do so otherwise. */
static int fill_from_kernel(struct rand_ctx *c, uint8_t *out, size_t len)
{
	const struct route *route = &c->provider->route;
	const char *kernel = algorithms[c->id].kernel;
	struct route_use use = {.id = c->id};
	unsigned requests;
	bool opened;
	int err;

	if (atomic_exchange(&c->reseed, false))
		afalg_rng_reseed(kernel);
	if (!route_take(route, &use, len))
		return 0;
	err = afalg_rng_read(kernel, out, len, &opened, &requests);
	route_outcome(route, &use, opened, err);
	if (err != 0)
		counters_fallback(c->id, len, err);
	else
		counters_kernel(c->id, requests, len);
	return err == 0;
}

/* Fills `out` with `len` random bytes, or clears it and raises an error. */
static int fill(struct rand_ctx *c, uint8_t *out, size_t len)
{
	int err;

	if (len == 0 || fill_from_kernel(c, out, len))
		return 1;
	err = afalg_rng_system(out, len);
	if (err == 0) {
		counters_software(c->id, 1, len);
		return 1;
	}
	OPENSSL_cleanse(out, len);
	counters_error(c->id, len, err);
	error_raise(&c->provider->errors, ERROR_RAND, "%s; getrandom: %s", algorithms[c->id].name, strerror(-err));
	return 0;
}

/* Whether the context can give `bytes` of that strength now; if not an error is raised. */
static int can_give(struct rand_ctx *c, unsigned int strength, size_t bytes)
{
	const char *why = NULL;

	if (strength > STRENGTH)
		why = "strength above 256 bits";
	else if (bytes > REQUEST_MAX)
		why = "request above 65536 bytes";
	else if (atomic_load(&c->state) != EVP_RAND_STATE_READY)
		why = "not instantiated";
	if (why != NULL)
		error_raise(&c->provider->errors, ERROR_RAND_USE, "%s: %s", algorithms[c->id].name, why);
	return why == NULL;
}

/*
 * Personalisation strings and additional input have no way into the kernel: it draws on its own entropy. The standard
 * leaves both optional (SP 800-90A, 8.7). Parameters are for OpenSSL's own generators, and all are given them.
 */
static OSSL_FUNC_rand_instantiate_fn instantiate;
static int instantiate(void *ctx, unsigned int strength, int prediction_resistance, const unsigned char *pstr,
		       size_t pstr_len, const OSSL_PARAM params[])
{
	struct rand_ctx *c = ctx;

	(void)pstr;
	(void)pstr_len;
	(void)params;
	atomic_store(&c->state, EVP_RAND_STATE_READY);
	if (!can_give(c, strength, 0)) {
		atomic_store(&c->state, EVP_RAND_STATE_UNINITIALISED);
		return 0;
	}
	if (prediction_resistance)
		want_reseed(c);
	return 1;
}

static OSSL_FUNC_rand_uninstantiate_fn uninstantiate;
static int uninstantiate(void *ctx)
{
	atomic_store(&((struct rand_ctx *)ctx)->state, EVP_RAND_STATE_UNINITIALISED);
	return 1;
}

static OSSL_FUNC_rand_generate_fn generate;
static int generate(void *ctx, unsigned char *out, size_t outlen, unsigned int strength, int prediction_resistance,
		    const unsigned char *addin, size_t addin_len)
{
	struct rand_ctx *c = ctx;

	(void)addin;
	(void)addin_len;
	if (!can_give(c, strength, outlen))
		return 0;
	if (prediction_resistance)
		want_reseed(c);
	return fill(c, out, outlen);
}

static OSSL_FUNC_rand_reseed_fn reseed;
static int reseed(void *ctx, int prediction_resistance, const unsigned char *ent, size_t ent_len,
		  const unsigned char *addin, size_t addin_len)
{
	struct rand_ctx *c = ctx;

	(void)prediction_resistance;
	(void)ent;
	(void)ent_len;
	(void)addin;
	(void)addin_len;
	if (!can_give(c, 0, 0))
		return 0;
	want_reseed(c);
	return 1;
}

static OSSL_FUNC_rand_nonce_fn nonce;
static size_t nonce(void *ctx, unsigned char *out, unsigned int strength, size_t min_noncelen, size_t max_noncelen)
{
	struct rand_ctx *c = ctx;

	(void)max_noncelen;
	if (out == NULL)
		return min_noncelen;
	return can_give(c, strength, min_noncelen) && fill(c, out, min_noncelen) ? min_noncelen : 0;
}

/* Every byte has eight bits of entropy. */
static OSSL_FUNC_rand_get_seed_fn get_seed;
static size_t get_seed(void *ctx, unsigned char **buffer, int entropy, size_t min_len, size_t max_len,
		       int prediction_resistance, const unsigned char *adin, size_t adin_len)
{
	struct rand_ctx *c = ctx;
	const size_t needed = entropy > 0 ? ((size_t)entropy + 7) / 8 : 0, len = needed < min_len ? min_len : needed;
	unsigned char *seed;

	(void)adin;
	(void)adin_len;
	if (!can_give(c, 0, len))
		return 0;
	if (len > max_len) {
		error_raise(&c->provider->errors, ERROR_RAND_USE, "%s: a seed of %d bits in %zu bytes",
			    algorithms[c->id].name, entropy, max_len);
		return 0;
	}
	seed = OPENSSL_secure_malloc(len);
	if (seed == NULL) {
		error_raise(&c->provider->errors, ERROR_MEMORY, "%s", algorithms[c->id].name);
		return 0;
	}
	if (prediction_resistance)
		want_reseed(c);
	if (!fill(c, seed, len)) {
		OPENSSL_secure_clear_free(seed, len);
		return 0;
	}
	*buffer = seed;
	return len;
}

static OSSL_FUNC_rand_clear_seed_fn clear_seed;
static void clear_seed(void *ctx, unsigned char *buffer, size_t b_len)
{
	(void)ctx;
	OPENSSL_secure_clear_free(buffer, b_len);
}

/* Nothing secret is kept here. */
static OSSL_FUNC_rand_verify_zeroization_fn verify_zeroization;
static int verify_zeroization(void *ctx)
{
	(void)ctx;
	return 1;
}

static OSSL_FUNC_rand_enable_locking_fn enable_locking;
static int enable_locking(void *ctx)
{
	(void)ctx;
	return 1;
}

static OSSL_FUNC_rand_lock_fn lock;
static int lock(void *ctx)
{
	(void)ctx;
	return 1;
}

static OSSL_FUNC_rand_unlock_fn unlock;
static void unlock(void *ctx)
{
	(void)ctx;
}

static OSSL_FUNC_rand_gettable_ctx_params_fn gettable_ctx_params;
static const OSSL_PARAM *gettable_ctx_params(void *ctx, void *provctx)
{
	static const OSSL_PARAM params[] = {
		OSSL_PARAM_int(OSSL_RAND_PARAM_STATE, NULL),
		OSSL_PARAM_uint(OSSL_RAND_PARAM_STRENGTH, NULL),
		OSSL_PARAM_size_t(OSSL_RAND_PARAM_MAX_REQUEST, NULL),
		OSSL_PARAM_END,
	};

	(void)ctx;
	(void)provctx;
	return params;
}

static OSSL_FUNC_rand_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	struct rand_ctx *c = ctx;
	OSSL_PARAM *p;

	p = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STATE);
	if (p != NULL && !OSSL_PARAM_set_int(p, atomic_load(&c->state)))
		return 0;
	p = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STRENGTH);
	if (p != NULL && !OSSL_PARAM_set_uint(p, STRENGTH))
		return 0;
	p = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_MAX_REQUEST);
	return p == NULL || OSSL_PARAM_set_size_t(p, REQUEST_MAX);
}

/* Both tables differ in the first function only, which is called without a context that could tell them apart. */
#define TABLE(newctx)                                                                                                 \
	{                                                                                                             \
		{OSSL_FUNC_RAND_NEWCTX, (void (*)(void))newctx}, {OSSL_FUNC_RAND_FREECTX, (void (*)(void))freectx},   \
			{OSSL_FUNC_RAND_INSTANTIATE, (void (*)(void))instantiate},                                    \
			{OSSL_FUNC_RAND_UNINSTANTIATE, (void (*)(void))uninstantiate},                                \
			{OSSL_FUNC_RAND_GENERATE, (void (*)(void))generate},                                          \
			{OSSL_FUNC_RAND_RESEED, (void (*)(void))reseed},                                              \
			{OSSL_FUNC_RAND_NONCE, (void (*)(void))nonce},                                                \
			{OSSL_FUNC_RAND_GET_SEED, (void (*)(void))get_seed},                                          \
			{OSSL_FUNC_RAND_CLEAR_SEED, (void (*)(void))clear_seed},                                      \
			{OSSL_FUNC_RAND_VERIFY_ZEROIZATION, (void (*)(void))verify_zeroization},                      \
			{OSSL_FUNC_RAND_ENABLE_LOCKING, (void (*)(void))enable_locking},                              \
			{OSSL_FUNC_RAND_LOCK, (void (*)(void))lock}, {OSSL_FUNC_RAND_UNLOCK, (void (*)(void))unlock}, \
			{OSSL_FUNC_RAND_GETTABLE_CTX_PARAMS, (void (*)(void))gettable_ctx_params},                    \
			{OSSL_FUNC_RAND_GET_CTX_PARAMS, (void (*)(void))get_ctx_params}, {0, NULL},                   \
	}

const OSSL_DISPATCH *rand_functions(enum algorithm_id id)
{
	static const OSSL_DISPATCH drbg[] = TABLE(newctx_drbg), jitter[] = TABLE(newctx_jitter);

	return id == ALG_AFALG_JITTER ? jitter : drbg;
}
