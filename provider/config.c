/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../afalg/hash.h"
#include "../afalg/session.h"
#include "check.h"
#include "counters.h"
#include "log.h"
#include "selection.h"
#include "software.h"

/* What the keys set, before it is applied: a value that is not allowed leaves the process as it was. */
struct settings {
	struct provider *provider;
	enum policy policy;
	const char *counters;
	const struct afalg_transport *transport;
	unsigned sessions, hang_limit;
	enum drivers drivers;
	struct selection ciphers, digests;
	char reason[128]; /* why a value is not allowed, if there is more to say than what is */
};

static int index_of(const char *value, const char *const names[], int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(value, names[i]) == 0)
			return i;
	return -1;
}

static int set_policy(struct settings *s, const char *value)
{
	static const char *const names[] = {"speed", "cpu", "kernel", "software"};
	int i = index_of(value, names, 4);

	s->policy = (enum policy)i;
	return i >= 0;
}

int config_number(const char *text, size_t length, unsigned long max, unsigned long *number)
{
	*number = 0;
	if (length == 0 || length > 9)
		return 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		*number = *number * 10 + (unsigned long)(text[i] - '0');
	}
	return *number <= max;
}

/* Names one item of a list that is not allowed. */
static void bad_item(struct settings *s, const char *item, size_t length, const char *why)
{
	snprintf(s->reason, sizeof(s->reason), "'%.*s' %s; ", length < 60 ? (int)length : 60, item, why);
}

static int set_threshold(struct settings *s, const char *item, size_t length)
{
	const char *colon = memchr(item, ':', length);
	const size_t name = colon == NULL ? 0 : (size_t)(colon - item);
	unsigned long bytes;
	int known = 0;

	if (colon == NULL) {
		bad_item(s, item, length, "lacks a colon");
		return 0;
	}
	length -= name + 1;
	if (length == strlen("never") && strncmp(colon + 1, "never", length) == 0)
		bytes = ROUTE_NEVER;
	else if (!config_number(colon + 1, length, ROUTE_THRESHOLD_MAX, &bytes)) {
		bad_item(s, item, name + 1 + length, "has no number of bytes, or one too large");
		return 0;
	}
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (!software_is((enum algorithm_id)id, item, name))
			continue;
		route_set_threshold(&s->provider->route, (enum algorithm_id)id, bytes == 0 ? 1 : bytes);
		known = 1;
	}
	if (!known)
		bad_item(s, item, name, "is no algorithm");
	return known;
}

static int set_thresholds(struct settings *s, const char *value)
{
	static const char separators[] = ", \t";

	for (value += strspn(value, separators); *value != '\0'; value += strspn(value, separators)) {
		size_t length = strcspn(value, separators);

		if (!set_threshold(s, value, length))
			return 0;
		value += length;
	}
	return 1;
}

static int set_use_softdrivers(struct settings *s, const char *value)
{
	static const char *const names[] = {"0", "1", "2"};
	static const enum drivers drivers[] = {DRIVERS_HARDWARE, DRIVERS_ANY, DRIVERS_NOT_SOFTWARE};
	int i = index_of(value, names, 3);

	if (s->drivers != DRIVERS_BY_POLICY) {
		bad_item(s, "use_softdrivers", strlen("use_softdrivers"), "is set already");
		return 0;
	}
	if (i >= 0)
		s->drivers = drivers[i];
	return i >= 0;
}

static int set_ciphers(struct settings *s, const char *value)
{
	return selection_read(&s->ciphers, true, value, s->reason, sizeof(s->reason));
}

static int set_digests(struct settings *s, const char *value)
{
	return selection_read(&s->digests, false, value, s->reason, sizeof(s->reason));
}

static int set_transport(struct settings *s, const char *value)
{
	static const char *const names[] = {"auto", "kcapi", "socket"};
	/* The plain socket is the better of the two wherever both work: docs/architecture.md has the figures. */
	static const struct afalg_transport *const transports[] = {&afalg_socket, &afalg_kcapi, &afalg_socket};
	int i = index_of(value, names, 3);

	if (i < 0)
		return 0;
	s->transport = transports[i];
	return 1;
}

static int set_sessions(struct settings *s, const char *value)
{
	unsigned long n;

	if (!config_number(value, strlen(value), AFALG_SESSIONS_MAX, &n) || n == 0)
		return 0;
	s->sessions = (unsigned)n;
	return 1;
}

static int set_hang_limit(struct settings *s, const char *value)
{
	unsigned long n;

	if (!config_number(value, strlen(value), HANG_LIMIT_MAX, &n))
		return 0;
	s->hang_limit = (unsigned)n;
	return 1;
}

static int set_counters(struct settings *s, const char *value)
{
	if (strcmp(value, "off") == 0)
		s->counters = NULL;
	else if (value[0] == '/')
		s->counters = value;
	else
		return 0;
	return 1;
}

static int set_log(struct settings *s, const char *value)
{
	return log_set(value, s->reason, sizeof(s->reason));
}

static const struct key {
	const char *name;
	int (*set)(struct settings *s, const char *value); /* 0: not allowed */
	const char *allowed;
	bool alias;
} keys[] = {
#define KEY(key, values) {#key, set_##key, values, false},
#define KEY_AS(key, as, values) {#key, set_##as, values, true},
#include "config_keys.def"
#undef KEY
#undef KEY_AS
};

#define KEYS (sizeof(keys) / sizeof(*keys))

/* OpenSSL drops the errors of a provider that its configuration file names, so they are logged too. */
static int refuse(const struct provider *p, const char *text)
{
	error_raise(&p->errors, ERROR_CONFIG, "%s", text);
	log_error("not loaded: configuration %s", text);
	return 0;
}

int config_apply(struct provider *p, OSSL_FUNC_core_get_params_fn *get_params)
{
	struct settings s = {.provider = p,
			     .policy = POLICY_SPEED,
			     .counters = COUNTERS_DIRECTORY,
			     .hang_limit = HANG_LIMIT_DEFAULT};
	const char *values[KEYS] = {NULL};
	OSSL_PARAM params[KEYS + 1];
	char text[512];

	for (size_t i = 0; i < KEYS; i++)
		params[i] = OSSL_PARAM_construct_utf8_ptr(keys[i].name, (char **)&values[i], 0);
	params[KEYS] = OSSL_PARAM_construct_end();
	if (!get_params(p->handle, params))
		return 0;
	for (size_t i = 0; i < KEYS; i++) {
		if (values[i] == NULL || keys[i].set(&s, values[i]))
			continue;
		/* A long list must not push the reason out of the line. */
		snprintf(text, sizeof(text), "%s = %.120s%s: %sallowed is %s", keys[i].name, values[i],
			 strlen(values[i]) > 120 ? "..." : "", s.reason, keys[i].allowed);
		return refuse(p, text);
	}
	route_init(&p->route, s.policy);
	if (!selection_apply(&p->route, &s.ciphers, &s.digests, s.drivers, s.reason, sizeof(s.reason)))
		return refuse(p, s.reason);
	p->route.check = check_for_route;
	p->hang_limit = s.hang_limit;
	if (s.transport != NULL)
		afalg_session_set_transport(s.transport);
	if (s.sessions > 0) {
		afalg_session_set_limit(s.sessions);
		afalg_hash_set_limit(s.sessions);
	}
	counters_init(s.counters);
	counters_policy(s.policy);
	for (size_t i = 0; i < KEYS; i++)
		if (values[i] != NULL || !keys[i].alias)
			log_debug("setting %s = %s", keys[i].name, values[i] == NULL ? "(default)" : values[i]);
	return 1;
}
