/* SPDX-License-Identifier: Apache-2.0 */
#include "selection.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config.h"
#include "software.h"

static bool is_cipher(enum algorithm_id id)
{
	return algorithms[id].kind == KIND_SKCIPHER || algorithms[id].kind == KIND_AEAD;
}

static bool is_of(enum algorithm_id id, bool ciphers)
{
	return ciphers ? is_cipher(id) : algorithms[id].kind == KIND_HASH;
}

static bool is_ecb(enum algorithm_id id)
{
	return algorithms[id].kind == KIND_SKCIPHER && algorithms[id].mode == MODE_ECB;
}

static void choose_all(struct selection *s, bool ciphers, bool ecb)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		s->chosen[id] = is_of((enum algorithm_id)id, ciphers) && (ecb || !is_ecb((enum algorithm_id)id));
}

static bool bad(const char *item, size_t length, const char *why, char *reason, size_t size)
{
	snprintf(reason, size, "'%.*s' %s; ", length < 60 ? (int)length : 60, item, why);
	return false;
}

/* What follows the colon of an item. A negative minimum stands for the engine's own: here for none. */
static bool read_minimum(const char *text, size_t length, unsigned long *bytes)
{
	const bool negative = length > 1 && text[0] == '-';

	if (!config_number(text + negative, length - negative, ROUTE_THRESHOLD_MAX, bytes))
		return false;
	if (negative)
		*bytes = 0;
	else if (*bytes == 0)
		*bytes = 1;
	return true;
}

static bool choose(struct selection *s, bool ciphers, const char *item, size_t length, char *reason, size_t size)
{
	const char *colon = memchr(item, ':', length);
	const size_t name = colon == NULL ? length : (size_t)(colon - item);
	unsigned long bytes = 0;
	bool known = false;

	if (colon != NULL && !read_minimum(colon + 1, length - name - 1, &bytes))
		return bad(item, length, "has no number of bytes, or one too large", reason, size);
	for (int i = 0; i < ALGORITHM_COUNT; i++) {
		const enum algorithm_id id = (enum algorithm_id)i;

		if (!is_of(id, ciphers) || !software_is(id, item, name))
			continue;
		if (s->named[id] && s->least[id] != bytes)
			return bad(item, length, "is there already, with another number of bytes", reason, size);
		s->chosen[id] = s->named[id] = known = true;
		s->least[id] = bytes;
	}
	return known || bad(item, name, ciphers ? "is no cipher that afalgprov has" : "is no digest that afalgprov has",
			    reason, size);
}

bool selection_read(struct selection *s, bool ciphers, const char *value, char *reason, size_t size)
{
	static const char separators[] = ", \t";

	if (s->given)
		return bad(ciphers ? "ciphers" : "digests", 7, "is set already", reason, size);
	s->given = true;
	if (strcasecmp(value, "NONE") == 0)
		return true;
	if (strcasecmp(value, "ALL") == 0 || (ciphers && strcasecmp(value, "NO_ECB") == 0)) {
		choose_all(s, ciphers, strcasecmp(value, "ALL") == 0);
		return true;
	}
	value += strspn(value, separators);
	if (*value == '\0')
		return bad("", 0, "is no list", reason, size);
	for (; *value != '\0'; value += strspn(value, separators)) {
		const size_t length = strcspn(value, separators);

		if (!choose(s, ciphers, value, length, reason, size))
			return false;
		value += length;
	}
	return true;
}

/*** What they make of the router ***/

/* The row that a list must name for this one: a MAC's is what it is over. */
static enum algorithm_id subject(enum algorithm_id id)
{
	const char *over = algorithms[id].over;

	return over != NULL ? (enum algorithm_id)algorithm_find(over, strlen(over)) : id;
}

/* The threshold that the user has set, as he wrote it. */
static const char *written(size_t bytes, char *text, size_t size)
{
	if (bytes == ROUTE_NEVER)
		snprintf(text, size, "never");
	else
		snprintf(text, size, "%zu", bytes);
	return text;
}

static bool contradiction(const struct route *r, enum algorithm_id id, const char *list, const char *what, char *reason,
			  size_t size)
{
	char text[24];

	snprintf(reason, size, "'thresholds' has %s:%s, but '%s' %s", algorithms[id].name,
		 written(r->thresholds[id], text, sizeof(text)), list, what);
	return false;
}

static bool apply(struct route *r, enum algorithm_id id, const struct selection *s, const char *list, char *reason,
		  size_t size)
{
	const enum algorithm_id of = subject(id);
	const bool by_user = r->set_by_user[id];
	char what[48];

	if (!s->chosen[of]) {
		if (by_user && r->thresholds[id] != ROUTE_NEVER)
			return contradiction(r, id, list, "leaves it out", reason, size);
		route_set_threshold(r, id, ROUTE_NEVER);
		return true;
	}
	if (by_user && of != id) /* more is said of the MAC than of what it is over */
		return true;
	if (by_user && s->named[of] && r->thresholds[id] == ROUTE_NEVER)
		return contradiction(r, id, list, "names it", reason, size);
	if (s->least[of] == 0)
		return true;
	if (by_user && r->thresholds[id] != s->least[of]) {
		snprintf(what, sizeof(what), "has %zu", s->least[of]);
		return contradiction(r, id, list, what, reason, size);
	}
	if (by_user || r->policy == POLICY_KERNEL || r->policy == POLICY_SOFTWARE)
		return true;
	route_set_threshold(r, id, s->least[of]);
	r->drivers[id] = DRIVERS_NOT_SOFTWARE; /* as the engines have it, unless use_softdrivers is set */
	return true;
}

bool selection_apply(struct route *r, const struct selection *ciphers, const struct selection *digests,
		     enum drivers drivers, char *reason, size_t size)
{
	for (int i = 0; i < ALGORITHM_COUNT; i++) {
		const enum algorithm_id id = (enum algorithm_id)i;
		const bool cipher = algorithms[id].kind != KIND_RNG && is_cipher(subject(id));
		const struct selection *s = cipher ? ciphers : digests;

		if (algorithms[id].kind == KIND_RNG)
			continue;
		if (s->given && !apply(r, id, s, cipher ? "ciphers" : "digests", reason, size))
			return false;
		if (drivers != DRIVERS_BY_POLICY)
			r->drivers[id] = drivers;
	}
	return true;
}
