/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the configuration as a program does, and sees who serves what. */
#include <ctype.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../provider/counters.h"
#include "check.h"
#include "report.h"

const char *check_error(char *text, size_t size)
{
	const char *data = NULL;
	int flags = 0;
	const unsigned long e = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);
	const char *reason = e == 0 ? NULL : ERR_reason_error_string(e);

	snprintf(text, size, "%s%s%s", reason != NULL ? reason : "",
		 reason != NULL && (flags & ERR_TXT_STRING) != 0 && data[0] != '\0' ? ": " : "",
		 (flags & ERR_TXT_STRING) != 0 ? data : "");
	ERR_clear_error();
	return text;
}

/*** A context with our section ***/

/* As the configuration's reader takes it for what it is: everything but letters and digits escaped. */
static void write_value(FILE *f, const char *key, const char *value)
{
	fprintf(f, "%s = ", key);
	for (; *value != '\0'; value++)
		fprintf(f, isalnum((unsigned char)*value) ? "%c" : "\\%c", *value);
	fputc('\n', f);
}

static void write_section(FILE *f, const struct configuration *c, const char *policy)
{
	fprintf(f, "openssl_conf = i\n[i]\nproviders = p\n[p]\n%s = a\n[a]\n", c->name);
	write_value(f, "module", c->module);
	for (int i = 0; c->section != NULL && policy == NULL && i < sk_CONF_VALUE_num(c->section); i++) {
		const CONF_VALUE *v = sk_CONF_VALUE_value(c->section, i);

		if (strcmp(v->name, "module") != 0 && strcmp(v->name, "activate") != 0 &&
		    strcmp(v->name, "identity") != 0)
			write_value(f, v->name, v->value);
	}
	if (policy != NULL)
		write_value(f, "policy", policy);
}

OSSL_LIB_CTX *check_context(const struct configuration *c, const char *scratch, const char *policy)
{
	OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();
	char path[256];
	FILE *f;
	int loaded;

	snprintf(path, sizeof(path), "%s/.configuration", scratch);
	f = fopen(path, "we");
	if (f != NULL) {
		write_section(f, c, policy);
		fclose(f);
	}
	loaded = ctx != NULL && OSSL_LIB_CTX_load_config(ctx, path);
	unlink(path);
	if (loaded)
		return ctx;
	OSSL_LIB_CTX_free(ctx);
	return NULL;
}

/*** Loading ***/

static int note_name(OSSL_PROVIDER *p, void *arg)
{
	char *names = arg;

	/* The core is a provider to itself, and nobody has heard of it. */
	if (strlen(names) + strlen(OSSL_PROVIDER_get0_name(p)) < 200)
		sprintf(names + strlen(names), "%s%s", names[0] != '\0' ? ", " : "", OSSL_PROVIDER_get0_name(p));
	return 1;
}

static void report_version(OSSL_LIB_CTX *ctx, const struct configuration *c)
{
	OSSL_PROVIDER *p = OSSL_PROVIDER_load(ctx, c->name); /* it is: this only counts up */
	const char *version = "?", *build = "?";
	OSSL_PARAM params[] = {OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, (char **)&version, 0),
			       OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_BUILDINFO, (char **)&build, 0), OSSL_PARAM_END};

	if (p == NULL)
		return;
	OSSL_PROVIDER_get_params(p, params);
	report(FINDING_OK, "loaded", NULL, "%s is loaded%s%s: %s", c->name, c->section != NULL ? " from " : "",
	       c->section != NULL ? c->module : "", build);
	if (strcmp(version, AFALGPROV_VERSION) != 0)
		report(FINDING_NOTE, "version", "install both from the same build", "afalgctl is " AFALGPROV_VERSION);
	OSSL_PROVIDER_unload(p);
}

/* Tries alone what the configuration should have loaded: now OpenSSL tells why it does not. */
static void report_not_loaded(const struct configuration *c, const char *scratch)
{
	OSSL_LIB_CTX *ctx = check_context(c, scratch, NULL);
	OSSL_PROVIDER *p = ctx == NULL ? NULL : OSSL_PROVIDER_load(ctx, c->name);
	char text[700];

	if (p == NULL)
		report(FINDING_PROBLEM, "not_loaded",
		       "correct that; OpenSSL goes on without afalgprov, and without a word",
		       "%s is not loaded from %s: %s", c->name, c->module, check_error(text, sizeof(text)));
	else if (c->activated)
		report(FINDING_PROBLEM, "not_loaded", "correct what is wrong with the configuration file",
		       "%s can be loaded from %s, but OpenSSL does not come to that", c->name, c->module);
	else
		report(FINDING_PROBLEM, "not_loaded", "add it to the configuration file",
		       "%s can be loaded from %s, but the configuration does not do so", c->name, c->module);
	if (p != NULL)
		OSSL_PROVIDER_unload(p);
	OSSL_LIB_CTX_free(ctx);
}

/*** Fetching ***/

/* Whose an algorithm is under a property query; "" if nobody has it. */
static void fetch(OSSL_LIB_CTX *ctx, const char *name, char kind, const char *query, char *provider, size_t size)
{
	EVP_CIPHER *cipher = kind == 'c' ? EVP_CIPHER_fetch(ctx, name, query) : NULL;
	EVP_MD *md = kind == 'd' ? EVP_MD_fetch(ctx, name, query) : NULL;
	EVP_MAC *mac = kind == 'm' ? EVP_MAC_fetch(ctx, name, query) : NULL;
	const OSSL_PROVIDER *p = cipher != NULL ? EVP_CIPHER_get0_provider(cipher)
				 : md != NULL   ? EVP_MD_get0_provider(md)
				 : mac != NULL  ? EVP_MAC_get0_provider(mac)
						: NULL;

	snprintf(provider, size, "%s", p != NULL ? OSSL_PROVIDER_get0_name(p) : "");
	EVP_CIPHER_free(cipher);
	EVP_MD_free(md);
	EVP_MAC_free(mac);
	ERR_clear_error();
}

static void check_fetch(OSSL_LIB_CTX *ctx, const struct configuration *c)
{
	static const struct {
		const char *name;
		char kind;
	} samples[] = {{"AES-128-CBC", 'c'}, {"AES-256-GCM", 'c'}, {"SHA2-256", 'd'}, {"HMAC", 'm'}};
	char ours[128] = "", got[64], asked[64];

	for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
		const char *name = samples[i].name;

		fetch(ctx, name, samples[i].kind, NULL, got, sizeof(got));
		if (strcmp(got, c->name) == 0) {
			sprintf(ours + strlen(ours), "%s%s", ours[0] != '\0' ? ", " : "", name);
			continue;
		}
		fetch(ctx, name, samples[i].kind, "provider=afalgprov", asked, sizeof(asked));
		if (asked[0] == '\0')
			report(FINDING_PROBLEM, "fetch", NULL, "%s is not offered by %s", name, c->name);
		else
			report(FINDING_PROBLEM, "fetch", "set 'default_properties = ?provider=afalgprov'",
			       "%s comes from '%s', although %s has it: nothing prefers that", name, got, c->name);
	}
	if (ours[0] != '\0')
		report(FINDING_OK, "fetch", NULL, "programs get from %s: %s", c->name, ours);
	fetch(ctx, "SHAKE256", 'd', NULL, got, sizeof(got));
	if (got[0] == '\0')
		report(FINDING_PROBLEM, "default", "activate the default provider too",
		       "SHAKE256 is \"unsupported\": what %s lacks comes from nowhere", c->name);
	else
		report(FINDING_OK, "fetch", NULL, "what %s lacks comes from '%s' (SHAKE256)", c->name, got);
}

static void check_random(OSSL_LIB_CTX *ctx)
{
	EVP_RAND_CTX *generator = RAND_get0_public(ctx);
	unsigned char bytes[16];
	char text[300];

	if (generator == NULL || RAND_bytes_ex(ctx, bytes, sizeof(bytes), 0) <= 0)
		report(FINDING_PROBLEM, "random", "look at 'random = SECTION' and that section",
		       "there are no random numbers: %s", check_error(text, sizeof(text)));
	else
		report(FINDING_OK, "random", NULL, "random numbers come from %s",
		       EVP_RAND_get0_name(EVP_RAND_CTX_get0_rand(generator)));
}

void check_provider(const struct configuration *c, const char *scratch)
{
	OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();
	char names[256] = "", text[700];

	report_area("provider", "Provider");
	if (ctx == NULL)
		return;
	if (c->conf != NULL && OSSL_LIB_CTX_load_config(ctx, c->path) <= 0)
		report(FINDING_PROBLEM, "load", "correct that; OpenSSL takes nothing from what follows in the file",
		       "OpenSSL stops in the configuration file: %s", check_error(text, sizeof(text)));
	if (!OSSL_PROVIDER_available(ctx, c->name)) {
		report_not_loaded(c, scratch);
		OSSL_LIB_CTX_free(ctx);
		return;
	}
	report_version(ctx, c);
	OSSL_PROVIDER_do_all(ctx, note_name, names);
	report(FINDING_OK, "active", NULL, "active providers: %s", names);
	check_fetch(ctx, c);
	check_random(ctx);
	OSSL_LIB_CTX_free(ctx);
}

/*** Counters ***/

void check_counters(const struct configuration *c)
{
	const char *directory = configuration_value(c, "counters");

	report_area("counters", "Counters");
	if (directory == NULL)
		directory = COUNTERS_DIRECTORY;
	if (strcmp(directory, "off") == 0)
		report(FINDING_NOTE, "counters", "remove 'counters = off' to see programs",
		       "'counters = off': afalgctl stats shows no program");
	else if (access(directory, W_OK | X_OK) == 0)
		report(FINDING_OK, "counters", NULL, "this user's programs count in %s", directory);
	else if (errno == ENOENT && geteuid() == 0)
		report(FINDING_OK, "counters", NULL, "%s is made by the first program that runs as root", directory);
	else
		report(FINDING_NOTE, "counters",
		       "at boot: install -d -m 1777 DIRECTORY, or systemd-tmpfiles (see README); 'afalgctl stats -- "
		       "COMMAND' "
		       "works without",
		       "%s: %s; afalgctl stats does not see this user's programs", directory, strerror(errno));
}
