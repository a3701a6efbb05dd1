/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"

#include <openssl/core_dispatch.h>
#include <pthread.h>

#include "cipher/aead.h"
#include "cipher/skcipher.h"
#include "digest/digest.h"
#include "mac/direct.h"
#include "mac/mac.h"
#include "provider.h"
#include "rand/rand.h"
#include "software.h"

/* Functions that the core calls without a context of ours: these are alike in all operations. */
typedef void *newctx_fn(void *provctx);
typedef const OSSL_PARAM *known_params_fn(void *ctx, void *provctx);

/* How an operation's functions are replaced. What is named nowhere here (newer functions) is left out of routed tables.
 */
static const struct operation {
	int operation;
	void *(*newctx)(struct provider *p, enum algorithm_id id);
	const OSSL_DISPATCH *functions; /* on our contexts */
	int newctx_id, gettable_id, settable_id;
	int constant_ids[2];                                  /* on no context at all: the default provider's own */
	const OSSL_DISPATCH *(*direct)(enum algorithm_id id); /* what a direct table has in place of functions */
	const OSSL_DISPATCH *(*table)(enum algorithm_id id);  /* in place of all that: nothing is behind these */
} operations[] = {
	[KIND_SKCIPHER] = {.operation = OSSL_OP_CIPHER,
			   .newctx = skcipher_newctx,
			   .functions = skcipher_functions,
			   .newctx_id = OSSL_FUNC_CIPHER_NEWCTX,
			   .gettable_id = OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS,
			   .settable_id = OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS,
			   .constant_ids = {OSSL_FUNC_CIPHER_GET_PARAMS, OSSL_FUNC_CIPHER_GETTABLE_PARAMS}},
	[KIND_AEAD] = {.operation = OSSL_OP_CIPHER,
		       .newctx = aead_newctx,
		       .functions = aead_functions,
		       .newctx_id = OSSL_FUNC_CIPHER_NEWCTX,
		       .gettable_id = OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS,
		       .settable_id = OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS,
		       .constant_ids = {OSSL_FUNC_CIPHER_GET_PARAMS, OSSL_FUNC_CIPHER_GETTABLE_PARAMS}},
	[KIND_HASH] = {.operation = OSSL_OP_DIGEST,
		       .newctx = digest_newctx,
		       .functions = digest_functions,
		       .newctx_id = OSSL_FUNC_DIGEST_NEWCTX,
		       .gettable_id = OSSL_FUNC_DIGEST_GETTABLE_CTX_PARAMS,
		       .settable_id = OSSL_FUNC_DIGEST_SETTABLE_CTX_PARAMS,
		       .constant_ids = {OSSL_FUNC_DIGEST_GET_PARAMS, OSSL_FUNC_DIGEST_GETTABLE_PARAMS}},
	[KIND_RNG] = {.operation = OSSL_OP_RAND, .table = rand_functions},
	[KIND_MAC] = {.operation = OSSL_OP_MAC,
		      .newctx = mac_newctx,
		      .functions = mac_functions,
		      .direct = mac_direct_functions,
		      .newctx_id = OSSL_FUNC_MAC_NEWCTX,
		      .gettable_id = OSSL_FUNC_MAC_GETTABLE_CTX_PARAMS,
		      .settable_id = OSSL_FUNC_MAC_SETTABLE_CTX_PARAMS,
		      .constant_ids = {OSSL_FUNC_MAC_GET_PARAMS, OSSL_FUNC_MAC_GETTABLE_PARAMS}},
};

/* The default provider's functions behind those of a row, which need the row and the default provider's context. */
static struct behind {
	newctx_fn *newctx;
	known_params_fn *gettable, *settable;
} behind[ALGORITHM_COUNT];

/* What the core calls without a context must know its row by itself. */
struct row {
	newctx_fn *routed, *direct;
	known_params_fn *gettable, *settable;
};

#define ROW(id, ...)                                                                         \
	static void *routed_##id(void *provctx)                                              \
	{                                                                                    \
		return operations[algorithms[ALG_##id].kind].newctx(provctx, ALG_##id);      \
	}                                                                                    \
	static void *direct_##id(void *provctx)                                              \
	{                                                                                    \
		return behind[ALG_##id].newctx(software_provctx(provctx, ALG_##id));         \
	}                                                                                    \
	static const OSSL_PARAM *gettable_##id(void *ctx, void *provctx)                     \
	{                                                                                    \
		(void)ctx;                                                                   \
		return behind[ALG_##id].gettable(NULL, software_provctx(provctx, ALG_##id)); \
	}                                                                                    \
	static const OSSL_PARAM *settable_##id(void *ctx, void *provctx)                     \
	{                                                                                    \
		(void)ctx;                                                                   \
		return behind[ALG_##id].settable(NULL, software_provctx(provctx, ALG_##id)); \
	}
#include "algorithms.def"
#undef ROW

#define ROW(id, ...) [ALG_##id] = {routed_##id, direct_##id, gettable_##id, settable_##id},
static const struct row rows[ALGORITHM_COUNT] = {
#include "algorithms.def"
};
#undef ROW

/* The most entries of a table, its end included; OpenSSL 4.0 has 21 for a cipher. */
#define TABLE_MAX 32

static OSSL_DISPATCH routed[ALGORITHM_COUNT][TABLE_MAX], direct[ALGORITHM_COUNT][TABLE_MAX];

/* The function with the number `function_id` in a table, or null. */
static void (*find(const OSSL_DISPATCH *table, int function_id))(void)
{
	for (; table->function_id != 0; table++)
		if (table->function_id == function_id)
			return table->function;
	return NULL;
}

/* What a routed table has in the place of the default provider's entry; null: nothing. */
static void (*replacement(const struct operation *o, const struct row *r, const OSSL_DISPATCH *entry))(void)
{
	if (entry->function_id == o->newctx_id)
		return (void (*)(void))r->routed;
	if (entry->function_id == o->gettable_id)
		return (void (*)(void))r->gettable;
	if (entry->function_id == o->settable_id)
		return (void (*)(void))r->settable;
	if (entry->function_id == o->constant_ids[0] || entry->function_id == o->constant_ids[1])
		return entry->function;
	return find(o->functions, entry->function_id);
}

static void make_tables(enum algorithm_id id)
{
	const struct operation *o = &operations[algorithms[id].kind];
	OSSL_DISPATCH *to_routed = routed[id], *to_direct = direct[id];

	behind[id].newctx = (newctx_fn *)find(software_dispatch[id], o->newctx_id);
	behind[id].gettable = (known_params_fn *)find(software_dispatch[id], o->gettable_id);
	behind[id].settable = (known_params_fn *)find(software_dispatch[id], o->settable_id);
	for (const OSSL_DISPATCH *from = software_dispatch[id]; from->function_id != 0; from++) {
		void (*const other)(void) = o->direct == NULL ? NULL : find(o->direct(id), from->function_id);
		OSSL_DISPATCH ours = {from->function_id, replacement(o, &rows[id], from)};

		if (ours.function != NULL && to_routed < &routed[id][TABLE_MAX - 1])
			*to_routed++ = ours;
		if (from->function_id == o->newctx_id)
			ours.function = (void (*)(void))rows[id].direct;
		else if (from->function_id != o->gettable_id && from->function_id != o->settable_id)
			ours.function = other != NULL ? other : from->function;
		if (to_direct < &direct[id][TABLE_MAX - 1])
			*to_direct++ = ours;
	}
}

static void make_all(bool legacy)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (software_dispatch[id] != NULL && algorithms[id].legacy == legacy)
			make_tables((enum algorithm_id)id);
}

static void make_own(void)
{
	make_all(false);
}

static void make_legacy(void)
{
	make_all(true);
}

void dispatch_init(bool legacy)
{
	static pthread_once_t once[] = {PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT};

	pthread_once(&once[legacy], legacy ? make_legacy : make_own);
}

const OSSL_DISPATCH *dispatch_routed(enum algorithm_id id)
{
	const struct operation *o = &operations[algorithms[id].kind];

	return o->table != NULL ? o->table(id) : routed[id];
}

const OSSL_DISPATCH *dispatch_direct(enum algorithm_id id)
{
	return direct[id];
}

int dispatch_operation(enum algorithm_kind kind)
{
	return operations[kind].operation;
}
