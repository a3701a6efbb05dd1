/* SPDX-License-Identifier: Apache-2.0 */
#include "provider.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../afalg/catalogue.h"
#include "config.h"
#include "counters.h"
#include "dispatch.h"
#include "log.h"
#include "mac/direct.h"
#include "software.h"

/* A property without a dot would make all our algorithms vanish (OpenSSL's property_parse.c, predefined names). */
#define PROPERTIES "provider=afalgprov,afalg.kernel=yes"

/* Says once what is left to software from the start, for those who ask why. */
static void log_direct(const char *names)
{
	const int support = afalg_catalogue_support();

	if (support != 0)
		log_info("everything stays in software: %s (%s)", afalg_explain(support), strerror(-support));
	else if (names[0] != '\0')
		log_info("in software, by policy or since the kernel lists no hardware driver:%s", names);
}

static OSSL_ALGORITHM *end_of(OSSL_ALGORITHM *list)
{
	while (list->algorithm_names != NULL)
		list++;
	return list;
}

/* Whether none of the rows that serve the same OpenSSL algorithm as this one can go to the kernel. */
static bool is_direct(struct provider *p, enum algorithm_id first)
{
	for (int id = (int)first; id < ALGORITHM_COUNT && algorithm_first((enum algorithm_id)id) == first; id++)
		if (software_dispatch[id] == NULL || route_possible(&p->route, (enum algorithm_id)id))
			return false;
	return algorithms[first].kind != KIND_MAC || mac_direct_take(p);
}

/*
 * Fills the lists that the core asks for, with the rows that are not the legacy provider's; or with those that are,
 * behind a copy of the others. An algorithm that can only be software costs nothing on the way there.
 */
static void offer(struct provider *p, bool legacy)
{
	char names[400] = "";
	size_t length = 0;

	if (legacy)
		memcpy(p->offers[legacy], p->offers[0], sizeof(p->offers[0]));
	for (int i = 0; i < ALGORITHM_COUNT; i++) {
		const enum algorithm_id id = (enum algorithm_id)i, first = algorithm_first(id);
		const int operation = dispatch_operation(algorithms[id].kind);
		/* Without functions of the default provider there is nothing else to offer. */
		const bool possible = software_dispatch[id] == NULL || route_possible(&p->route, id);

		if (software_names[id] == NULL || algorithms[id].legacy != legacy)
			continue;
		if (id == first)
			*end_of(p->offers[legacy][operation]) =
				(OSSL_ALGORITHM){software_names[id], PROPERTIES,
						 is_direct(p, id) ? dispatch_direct(id) : dispatch_routed(id), NULL};
		if (possible)
			continue;
		route_exclude(&p->route, id);
		counters_direct(id);
		if (length < sizeof(names))
			length += (size_t)snprintf(names + length, sizeof(names) - length, " %s", algorithms[id].name);
	}
	log_direct(names);
}

/* Whether the legacy provider's rows are to be offered at this moment. Makes their list when it is first needed. */
static bool with_legacy(struct provider *p)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool offered;

	if (!atomic_load(&p->legacy.active))
		return false;
	pthread_mutex_lock(&lock);
	if (!p->legacy_asked && software_legacy()) {
		dispatch_init(true);
		offer(p, true);
		p->legacy_offered = true;
	}
	p->legacy_asked = true;
	offered = p->legacy_offered;
	pthread_mutex_unlock(&lock);
	return offered;
}

/* The core keeps what it was told at its first question about an operation, until we are unloaded. */
static OSSL_FUNC_provider_query_operation_fn query;
static const OSSL_ALGORITHM *query(void *provctx, int operation, int *no_cache)
{
	struct provider *p = provctx;
	const OSSL_ALGORITHM *list;

	*no_cache = 0;
	if (operation < 0 || operation >= OPERATIONS)
		return NULL;
	list = p->offers[with_legacy(p)][operation];
	return list[0].algorithm_names == NULL ? NULL : list;
}

static OSSL_FUNC_provider_gettable_params_fn gettable_params;
static const OSSL_PARAM *gettable_params(void *provctx)
{
	static const OSSL_PARAM params[] = {
		OSSL_PARAM_DEFN(OSSL_PROV_PARAM_NAME, OSSL_PARAM_UTF8_PTR, NULL, 0),
		OSSL_PARAM_DEFN(OSSL_PROV_PARAM_VERSION, OSSL_PARAM_UTF8_PTR, NULL, 0),
		OSSL_PARAM_DEFN(OSSL_PROV_PARAM_BUILDINFO, OSSL_PARAM_UTF8_PTR, NULL, 0),
		OSSL_PARAM_DEFN(OSSL_PROV_PARAM_STATUS, OSSL_PARAM_INTEGER, NULL, 0),
		OSSL_PARAM_END,
	};

	(void)provctx;
	return params;
}

static OSSL_FUNC_provider_get_params_fn get_params;
static int get_params(void *provctx, OSSL_PARAM params[])
{
	static const struct {
		const char *key, *value;
	} texts[] = {
		{OSSL_PROV_PARAM_NAME, "afalgprov: Linux kernel crypto (AF_ALG)"},
		{OSSL_PROV_PARAM_VERSION, AFALGPROV_VERSION},
		{OSSL_PROV_PARAM_BUILDINFO, AFALGPROV_VERSION " for OpenSSL " OPENSSL_VERSION_STR},
	};
	OSSL_PARAM *p;

	(void)provctx;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		p = OSSL_PARAM_locate(params, texts[i].key);
		if (p != NULL && !OSSL_PARAM_set_utf8_ptr(p, texts[i].value))
			return 0;
	}
	/* Running, whatever the kernel serves: the software lane is always there. */
	p = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);
	return p == NULL || OSSL_PARAM_set_int(p, 1);
}

static OSSL_FUNC_provider_get_reason_strings_fn get_reason_strings;
static const OSSL_ITEM *get_reason_strings(void *provctx)
{
	(void)provctx;
	return error_reasons;
}

static OSSL_FUNC_provider_teardown_fn teardown;
static void teardown(void *provctx)
{
	struct provider *p = provctx;

	legacy_watch_stop(&p->legacy, p->handle);
	mac_direct_release(p);
	counters_flush();
	software_cleanup(p);
	OPENSSL_free(p);
}

static const OSSL_DISPATCH dispatch[] = {
	{OSSL_FUNC_PROVIDER_TEARDOWN, (void (*)(void))teardown},
	{OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))gettable_params},
	{OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))get_params},
	{OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
	{OSSL_FUNC_PROVIDER_GET_REASON_STRINGS, (void (*)(void))get_reason_strings},
	{0, NULL},
};

OSSL_provider_init_fn OSSL_provider_init;

__attribute__((visibility("default"))) int OSSL_provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
							      const OSSL_DISPATCH **out, void **provctx)
{
	OSSL_FUNC_core_get_params_fn *core_get_params = NULL;
	struct provider *p = OPENSSL_zalloc(sizeof(*p));

	if (p == NULL)
		return 0;
	p->handle = p->errors.handle = handle;
	p->core = in;
	for (; in->function_id != 0; in++) {
		error_note_core(&p->errors, in);
		legacy_note_core(&p->legacy, in);
		if (in->function_id == OSSL_FUNC_CORE_GET_PARAMS)
			core_get_params = OSSL_FUNC_core_get_params(in);
	}
	log_init();
	if (core_get_params == NULL || !software_init(p) || !config_apply(p, core_get_params) ||
	    !legacy_watch_start(&p->legacy, handle)) {
		software_cleanup(p);
		OPENSSL_free(p);
		return 0;
	}
	dispatch_init(false);
	offer(p, false);
	*out = dispatch;
	*provctx = p;
	return 1;
}
