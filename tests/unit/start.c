/* SPDX-License-Identifier: Apache-2.0 */
#include "start.h"

#include <openssl/core_dispatch.h>
#include <openssl/params.h>
#include <string.h>

#include "helper.h"

#define SETTINGS_MAX 8

struct started started;

static struct {
	const char *key, *value;
} settings[SETTINGS_MAX];

static OSSL_FUNC_core_get_params_fn core_get_params;
static int core_get_params(const OSSL_CORE_HANDLE *handle, OSSL_PARAM params[])
{
	(void)handle;
	for (unsigned i = 0; i < SETTINGS_MAX && settings[i].key != NULL; i++) {
		OSSL_PARAM *p = OSSL_PARAM_locate(params, settings[i].key);

		if (p != NULL && !OSSL_PARAM_set_utf8_ptr(p, settings[i].value))
			return 0;
	}
	return 1;
}

static OSSL_FUNC_core_new_error_fn core_new_error;
static void core_new_error(const OSSL_CORE_HANDLE *handle)
{
	(void)handle;
	started.errors++;
}

static OSSL_FUNC_core_set_error_debug_fn core_set_error_debug;
static void core_set_error_debug(const OSSL_CORE_HANDLE *handle, const char *file, int line, const char *func)
{
	(void)handle;
	(void)line;
	assert_non_null(file);
	assert_non_null(func);
}

static OSSL_FUNC_core_vset_error_fn core_vset_error;
static void core_vset_error(const OSSL_CORE_HANDLE *handle, uint32_t reason, const char *format, va_list args)
{
	(void)handle;
	started.reason = reason;
	vsnprintf(started.text, sizeof(started.text), format, args);
}

static void note_settings(const char *key, va_list args)
{
	memset(settings, 0, sizeof(settings));
	for (unsigned i = 0; i < SETTINGS_MAX && key != NULL; i++, key = va_arg(args, const char *)) {
		settings[i].key = key;
		settings[i].value = va_arg(args, const char *);
	}
}

bool starts(const char *key, ...)
{
	static const OSSL_DISPATCH in[] = {
		{OSSL_FUNC_CORE_GET_PARAMS, (void (*)(void))core_get_params},
		{OSSL_FUNC_CORE_NEW_ERROR, (void (*)(void))core_new_error},
		{OSSL_FUNC_CORE_SET_ERROR_DEBUG, (void (*)(void))core_set_error_debug},
		{OSSL_FUNC_CORE_VSET_ERROR, (void (*)(void))core_vset_error},
		{0, NULL},
	};
	const OSSL_DISPATCH *out = NULL;
	void *provctx = NULL;
	va_list args;

	va_start(args, key);
	note_settings(key, args);
	va_end(args);
	memset(&started, 0, sizeof(started));
	if (!OSSL_provider_init(NULL, in, &out, &provctx))
		return false;
	for (; out->function_id != 0; out++)
		if (out->function_id == OSSL_FUNC_PROVIDER_TEARDOWN)
			OSSL_FUNC_provider_teardown(out)(provctx);
	return true;
}
