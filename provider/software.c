/* SPDX-License-Identifier: Apache-2.0 */
#include "software.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "borrow.h"
#include "dispatch.h"
#include "mac/over.h"
#include "provider.h"

struct software_cipher software_ciphers[ALGORITHM_COUNT];
struct software_digest software_digests[ALGORITHM_COUNT];
struct software_mac software_macs[ALGORITHM_COUNT];
const char *software_names[ALGORITHM_COUNT];
const OSSL_DISPATCH *software_dispatch[ALGORITHM_COUNT];

static void take_cipher(struct software_cipher *to, const OSSL_DISPATCH *f)
{
	for (; f->function_id != 0; f++) {
		switch (f->function_id) {
#define TAKE(ID, member)                                   \
	case OSSL_FUNC_CIPHER_##ID:                        \
		to->member = OSSL_FUNC_cipher_##member(f); \
		break;
			TAKE(NEWCTX, newctx)
			TAKE(FREECTX, freectx)
			TAKE(DUPCTX, dupctx)
			TAKE(ENCRYPT_INIT, encrypt_init)
			TAKE(DECRYPT_INIT, decrypt_init)
			TAKE(UPDATE, update)
			TAKE(FINAL, final)
			TAKE(CIPHER, cipher)
			TAKE(GET_CTX_PARAMS, get_ctx_params)
			TAKE(SET_CTX_PARAMS, set_ctx_params)
#undef TAKE
		}
	}
}

static void take_digest(struct software_digest *to, const OSSL_DISPATCH *f)
{
	for (; f->function_id != 0; f++) {
		switch (f->function_id) {
#define TAKE(ID, member)                                   \
	case OSSL_FUNC_DIGEST_##ID:                        \
		to->member = OSSL_FUNC_digest_##member(f); \
		break;
			TAKE(NEWCTX, newctx)
			TAKE(FREECTX, freectx)
			TAKE(DUPCTX, dupctx)
			TAKE(INIT, init)
			TAKE(UPDATE, update)
			TAKE(FINAL, final)
			TAKE(GET_CTX_PARAMS, get_ctx_params)
			TAKE(SET_CTX_PARAMS, set_ctx_params)
			TAKE(SETTABLE_CTX_PARAMS, settable_ctx_params)
#undef TAKE
		}
	}
}

static void take_mac(struct software_mac *to, const OSSL_DISPATCH *f)
{
	for (; f->function_id != 0; f++) {
		switch (f->function_id) {
#define TAKE(ID, member)                                \
	case OSSL_FUNC_MAC_##ID:                        \
		to->member = OSSL_FUNC_mac_##member(f); \
		break;
			TAKE(NEWCTX, newctx)
			TAKE(FREECTX, freectx)
			TAKE(DUPCTX, dupctx)
			TAKE(INIT, init)
			TAKE(UPDATE, update)
			TAKE(FINAL, final)
			TAKE(GET_CTX_PARAMS, get_ctx_params)
			TAKE(SET_CTX_PARAMS, set_ctx_params)
#undef TAKE
		}
	}
}

/* The entry whose first name is `name`; the functions of other entries stay unused. */
static const OSSL_ALGORITHM *find(const OSSL_ALGORITHM *list, const char *name)
{
	const size_t n = strlen(name);

	for (; list != NULL && list->algorithm_names != NULL; list++)
		if (strncasecmp(list->algorithm_names, name, n) == 0 &&
		    (list->algorithm_names[n] == ':' || list->algorithm_names[n] == '\0'))
			return list;
	return NULL;
}

/* Whether it is one of the names, which colons separate. */
static bool is_among(const char *names, const char *name, size_t length)
{
	for (size_t n; names != NULL && *names != '\0'; names += n + (names[n] == ':')) {
		n = strcspn(names, ":");
		if (n == length && strncasecmp(names, name, n) == 0)
			return true;
	}
	return false;
}

bool software_is(enum algorithm_id id, const char *name, size_t length)
{
	const struct algorithm *a = &algorithms[id];
	const size_t prefix = a->offered == NULL ? 0 : strlen(a->offered) + 1;

	if (is_among(a->name, name, length) || is_among(software_names[id], name, length))
		return true;
	/* HMAC-SHA256 is HMAC-SHA2-256. */
	return a->kind == KIND_MAC && length > prefix && name[prefix - 1] == '-' &&
	       strncasecmp(name, a->offered, prefix - 1) == 0 &&
	       is_among(software_names[over_base(id)], name + prefix, length - prefix);
}

/* Takes the functions of the rows that are the legacy provider's, or of those that are not. */
static void take_all(const OSSL_PROVIDER *from, bool legacy)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const enum algorithm_kind kind = algorithms[id].kind;
		int no_cache;
		const OSSL_ALGORITHM *list = OSSL_PROVIDER_query_operation(from, dispatch_operation(kind), &no_cache);
		const OSSL_ALGORITHM *a = find(list, algorithm_offered((enum algorithm_id)id));

		if (kind == KIND_RNG) /* OpenSSL has nothing of the kind */
			software_names[id] = algorithms[id].name;
		if (a == NULL || algorithms[id].legacy != legacy)
			continue;
		software_names[id] = a->algorithm_names;
		software_dispatch[id] = a->implementation;
		if (kind == KIND_HASH)
			take_digest(&software_digests[id], a->implementation);
		else if (kind == KIND_MAC)
			take_mac(&software_macs[id], a->implementation);
		else
			take_cipher(&software_ciphers[id], a->implementation);
	}
}

/*
 * The legacy provider is a module. Its functions are those of all instances, so it stays loaded to the end of the
 * process, and the context with it.
 */
static OSSL_LIB_CTX *legacy_context;
static void *legacy_provctx;

static void load_legacy(void)
{
	OSSL_PROVIDER *legacy = NULL;

	ERR_set_mark();
	legacy_context = OSSL_LIB_CTX_new();
	/* Its random keys and MACs come from the default provider. */
	if (legacy_context != NULL && OSSL_PROVIDER_load(legacy_context, "default") != NULL)
		legacy = OSSL_PROVIDER_load(legacy_context, "legacy");
	ERR_pop_to_mark();
	if (legacy == NULL) {
		OSSL_LIB_CTX_free(legacy_context);
		legacy_context = NULL;
		return;
	}
	take_all(legacy, true);
	legacy_provctx = OSSL_PROVIDER_get0_provider_ctx(legacy);
}

bool software_legacy(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_legacy);
	return legacy_context != NULL;
}

OSSL_LIB_CTX *software_context(const struct provider *p, enum algorithm_id id)
{
	return algorithms[id].legacy ? legacy_context : p->soft_context;
}

void *software_provctx(const struct provider *p, enum algorithm_id id)
{
	return algorithms[id].legacy ? legacy_provctx : p->soft_provctx;
}

int software_init(struct provider *p)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool taken;

	p->soft_context = OSSL_LIB_CTX_new();
	p->soft_provider = p->soft_context == NULL ? NULL : OSSL_PROVIDER_load(p->soft_context, "default");
	/* What is borrowed later does not displace it. To be said now: while others fetch there it must not be changed.
	 */
	if (p->soft_provider == NULL || !EVP_set_default_properties(p->soft_context, "?provider=default")) {
		error_raise(&p->errors, ERROR_SOFTWARE, "cannot load it into a library context of our own");
		return 0;
	}
	p->soft_provctx = OSSL_PROVIDER_get0_provider_ctx(p->soft_provider);
	pthread_mutex_lock(&lock);
	if (!taken)
		take_all(p->soft_provider, false);
	taken = true;
	pthread_mutex_unlock(&lock);
	return 1;
}

void software_cleanup(struct provider *p)
{
	OSSL_PROVIDER_unload(p->soft_provider);
	borrow_cleanup(p);
}
