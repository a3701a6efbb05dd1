/* SPDX-License-Identifier: Apache-2.0 */
#include "offer.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../provider/route.h"

static struct offer offers[ALGORITHM_COUNT];
static bool asked[ALGORITHM_COUNT];

const struct offer *offer_of(enum algorithm_id id)
{
	const struct algorithm *a = &algorithms[id];
	struct offer *o = &offers[id];

	if (asked[id])
		return o;
	asked[id] = true;
	for (int i = 0; i < ALGORITHM_COUNT; i++) {
		if (i != (int)id && asked[i] && algorithms[i].kind == a->kind &&
		    strcmp(algorithms[i].kernel, a->kernel) == 0) {
			*o = offers[i];
			return o;
		}
	}
	o->error = afalg_catalogue_support();
	if (o->error == 0)
		o->error = afalg_catalogue_find(algorithm_type(a->kind), a->kernel, true, &o->driver);
	if (o->error != 0 && afalg_catalogue_support() == 0 && access("/proc/crypto", R_OK) != 0) {
		o->unreadable = true;
		o->error = -errno;
	}
	return o;
}

/*** Lanes ***/

static const char opens[] = "policy=kernel or a threshold opens it";

static enum lane_cause cause_of(const struct offer *o, enum algorithm_kind kind)
{
	if (afalg_catalogue_support() != 0)
		return CAUSE_NO_AFALG;
	if (o->unreadable)
		return CAUSE_UNREADABLE;
	if (o->error != 0)
		return o->error == -ENOENT ? CAUSE_NOT_SERVED : CAUSE_REFUSED;
	if (kind == KIND_RNG)
		return CAUSE_CHOSEN;
	if (o->driver.class == AFALG_HARDWARE)
		return CAUSE_HARDWARE;
	if (o->driver.out_of_reach[0] != '\0')
		return CAUSE_OUT_OF_REACH;
	return o->driver.class == AFALG_SOFTWARE ? CAUSE_SOFTWARE : CAUSE_UNKNOWN_DRIVER;
}

static void give_reason(struct lane *lane, const struct offer *o, enum algorithm_kind kind)
{
	const char *evidence = o->driver.evidence;
	const char *instead = kind == KIND_RNG ? "; getrandom(2) gives the bytes" : "";
	char *to = lane->reason;
	const size_t size = sizeof(lane->reason);

	switch (lane->cause) {
	case CAUSE_HARDWARE:
		snprintf(to, size, "hardware (%s)", evidence);
		break;
	case CAUSE_CHOSEN:
		snprintf(to, size, "%s", evidence);
		break;
	case CAUSE_NO_AFALG:
		snprintf(to, size, "no AF_ALG%s", instead);
		break;
	case CAUSE_UNREADABLE:
		if (kind == KIND_RNG)
			snprintf(to, size, "/proc/crypto cannot be read (%s)", strerror(-o->error));
		else
			snprintf(to, size, "/proc/crypto cannot be read (%s), so the driver is not known; %s",
				 strerror(-o->error), opens);
		break;
	case CAUSE_NOT_SERVED:
	case CAUSE_REFUSED:
		snprintf(to, size, "%s (%s)%s", afalg_explain(o->error), strerror(-o->error), instead);
		break;
	case CAUSE_OUT_OF_REACH:
		snprintf(to, size,
			 "this kernel keeps %s from AF_ALG (Linux 7.2 and later); "
			 "AF_ALG reaches software drivers only (%s)",
			 o->driver.out_of_reach, evidence);
		break;
	case CAUSE_SOFTWARE:
		snprintf(to, size, "software driver (%s), not faster than OpenSSL; %s", evidence, opens);
		break;
	case CAUSE_UNKNOWN_DRIVER:
		snprintf(to, size, "not known to be hardware (%s); %s", evidence, opens);
		break;
	}
}

void lane_of(enum algorithm_id id, struct lane *lane)
{
	const enum algorithm_kind kind = algorithms[id].kind;
	const struct offer *o = offer_of(id);
	struct route route = {.policy = POLICY_SPEED};

	route_init(&route, POLICY_SPEED);
	lane->cause = cause_of(o, kind);
	lane->least = route.thresholds[id];
	lane->state = lane->cause == CAUSE_HARDWARE || lane->cause == CAUSE_CHOSEN ? LANE_OPEN : LANE_CLOSED;
	/* Who asks for a generator by its name needs no knowledge of the driver. */
	if (lane->cause == CAUSE_UNREADABLE && kind == KIND_RNG)
		lane->state = LANE_UNKNOWN;
	give_reason(lane, o, kind);
}

const char *lane_state_name(enum lane_state state)
{
	static const char *const names[] = {"closed", "open", "unknown"};

	return names[state];
}

const char *lane_cause_name(enum lane_cause cause)
{
	static const char *const names[] = {"hardware", "chosen",       "no_af_alg", "unreadable",    "not_served",
					    "refused",  "out_of_reach", "software",  "unknown_driver"};

	return names[cause];
}

const char *offer_kind_name(enum algorithm_kind kind)
{
	static const char *const names[] = {"cipher", "aead", "digest", "mac", "random"};

	return names[kind];
}

/*** Names ***/

/* OpenSSL knows by how many names an algorithm goes: asked in a context of its own, since no configuration matters. */
static bool choose_alias(const char *name, bool *chosen)
{
	OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();
	const bool hmac = strncasecmp(name, "HMAC-", strlen("HMAC-")) == 0; /* HMAC-SHA256 is HMAC-SHA2-256 */
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(ctx, name, NULL);
	EVP_MD *md = EVP_MD_fetch(ctx, hmac ? name + strlen("HMAC-") : name, NULL);
	bool found = false;

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];

		if ((a->kind == (hmac ? KIND_MAC : KIND_HASH) && md != NULL &&
		     EVP_MD_is_a(md, hmac ? a->over : a->name)) ||
		    ((a->kind == KIND_SKCIPHER || a->kind == KIND_AEAD) && cipher != NULL &&
		     EVP_CIPHER_is_a(cipher, a->name)))
			found = chosen[id] = true;
	}
	EVP_MD_free(md);
	EVP_CIPHER_free(cipher);
	OSSL_LIB_CTX_free(ctx);
	return found;
}

bool offer_choose(const char *name, bool chosen[ALGORITHM_COUNT])
{
	bool found = false;

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];

		if (strcasecmp(a->name, name) == 0 || strcasecmp(a->kernel, name) == 0 ||
		    (a->offered != NULL && strcasecmp(a->offered, name) == 0))
			found = chosen[id] = true;
	}
	return found || choose_alias(name, chosen);
}
