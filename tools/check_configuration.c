/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration file with OpenSSL's own functions, and looks for what OpenSSL passes over in silence. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "report.h"

#define EXAMPLE "afalgprov(7) has a complete configuration"

/* What OpenSSL, of any version, knows in the section that `openssl_conf` names, and in those of providers. */
static const char *const init_keys[] = {"oid_section", "stbl_section", "engines", "providers",
					"alg_section", "ssl_conf",     "random",  NULL};
static const char *const algorithm_keys[] = {"default_properties", "fips_mode", NULL};
static const char *const provider_keys[] = {"identity", "module", "activate", "soft_load",
#define KEY(name, values) #name,
#define KEY_AS(name, as, values) #name,
#include "../provider/config_keys.def"
#undef KEY
#undef KEY_AS
					    NULL};

static const char *without_prefix(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot != NULL ? dot + 1 : name;
}

/* How many letters differ, are missing or too many. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], n = strlen(b);

	if (n >= sizeof(row) / sizeof(*row))
		return n;
	for (size_t k = 0; k <= n; k++)
		row[k] = k;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t corner = row[0];

		row[0] = i + 1;
		for (size_t k = 1; k <= n; k++) {
			const size_t above = row[k], replaced = corner + (a[i] != b[k - 1]);
			const size_t least = above < row[k - 1] ? above : row[k - 1];

			row[k] = replaced < least + 1 ? replaced : least + 1;
			corner = above;
		}
	}
	return row[n];
}

/* Whether `key` is one of `known`; else *like is the one that may have been meant, or null. */
static bool is_known(const char *key, const char *const *known, const char **like)
{
	size_t best = 3;

	*like = NULL;
	for (; *known != NULL; known++) {
		const size_t d = distance(key, *known);

		if (d == 0)
			return true;
		if (d < best) {
			best = d;
			*like = *known;
		}
	}
	return false;
}

/* Reports the keys of a section that are not known, and what comes of that. */
static void check_keys(const STACK_OF(CONF_VALUE) * values, const char *section, const char *const *known,
		       const char *effect)
{
	for (int i = 0; i < sk_CONF_VALUE_num(values); i++) {
		const char *key = without_prefix(sk_CONF_VALUE_value(values, i)->name), *like;
		char remedy[128] = "remove it, or correct it";

		if (is_known(key, known, &like))
			continue;
		if (like != NULL)
			snprintf(remedy, sizeof(remedy), "did you mean '%s'?", like);
		report(FINDING_PROBLEM, "key", remedy, "'%s' in [%s] is not known; %s", key, section, effect);
	}
}

static const char *value_in(const STACK_OF(CONF_VALUE) * values, const char *key)
{
	const char *found = NULL; /* of several the last counts */

	for (int i = 0; values != NULL && i < sk_CONF_VALUE_num(values); i++) {
		const CONF_VALUE *v = sk_CONF_VALUE_value(values, i);

		if (strcmp(without_prefix(v->name), key) == 0)
			found = v->value;
	}
	return found;
}

const char *configuration_value(const struct configuration *c, const char *key)
{
	return value_in(c->section, key);
}

/*** The file ***/

static bool read_file(struct configuration *c)
{
	const char *variable = secure_getenv("OPENSSL_CONF");
	char *path = CONF_get1_default_config_file();
	long line = 0;
	char text[256];

	snprintf(c->path, sizeof(c->path), "%s", path != NULL ? path : "");
	OPENSSL_free(path);
	if (c->path[0] == '\0') {
		report(FINDING_PROBLEM, "file", "set OPENSSL_CONF to a file, or unset it",
		       "OPENSSL_CONF is empty, so OpenSSL reads no configuration");
		return false;
	}
	if (access(c->path, R_OK) != 0) {
		report(FINDING_PROBLEM, "file", EXAMPLE,
		       "%s cannot be read: %s; OpenSSL goes on without a configuration", c->path, strerror(errno));
		return false;
	}
	c->conf = NCONF_new(NULL);
	if (c->conf == NULL || NCONF_load(c->conf, c->path, &line) <= 0) {
		report(FINDING_PROBLEM, "syntax", "correct it; until then OpenSSL goes on without a configuration",
		       "%s, line %ld: %s", c->path, line, check_error(text, sizeof(text)));
		NCONF_free(c->conf);
		c->conf = NULL;
		return false;
	}
	report(FINDING_OK, "file", NULL, "%s (%s)", c->path,
	       variable != NULL ? "OPENSSL_CONF" : "OpenSSL's own, as OPENSSL_CONF is not set");
	return true;
}

/* The section that a key names. Reports if there is no such key or section; null then. */
static const STACK_OF(CONF_VALUE) *
	follow(struct configuration *c, const char *in, const char *key, const char **name, const char *what)
{
	const STACK_OF(CONF_VALUE) * values;

	*name = NCONF_get_string(c->conf, in, key);
	ERR_clear_error();
	if (*name == NULL) {
		if (in == NULL)
			report(FINDING_PROBLEM, "section", EXAMPLE,
			       "there is no '%s = SECTION' before the first section: OpenSSL %s", key, what);
		else
			report(FINDING_PROBLEM, "section", EXAMPLE, "there is no '%s = SECTION' in [%s]: OpenSSL %s",
			       key, in, what);
		return NULL;
	}
	values = NCONF_get_section(c->conf, *name);
	ERR_clear_error();
	if (values == NULL)
		report(FINDING_PROBLEM, "section", EXAMPLE, "'%s = %s', but there is no section [%s]: OpenSSL %s", key,
		       *name, *name, what);
	return values;
}

/*** Providers ***/

static bool is_ours(const char *name, const STACK_OF(CONF_VALUE) * section)
{
	const char *module = value_in(section, "module");
	const char *file = module == NULL ? NULL : strrchr(module, '/');

	file = file != NULL ? file + 1 : module;
	return strcmp(name, "afalgprov") == 0 || (file != NULL && strncmp(file, "afalgprov", strlen("afalgprov")) == 0);
}

static void module_path(char *path, size_t size, const char *name, const STACK_OF(CONF_VALUE) * section)
{
	const char *module = value_in(section, "module"), *directory = secure_getenv("OPENSSL_MODULES");

	if (directory == NULL)
		directory = OPENSSL_info(OPENSSL_INFO_MODULES_DIR);
	if (module != NULL && strchr(module, '/') != NULL)
		snprintf(path, size, "%s", module);
	else if (module != NULL)
		snprintf(path, size, "%s/%s", directory, module);
	else
		snprintf(path, size, "%s/%s.so", directory, name);
}

static bool is_builtin(const char *name)
{
	return strcmp(name, "default") == 0 || strcmp(name, "base") == 0 || strcmp(name, "null") == 0;
}

static void check_activation(const char *section, const char *value, const char *name)
{
	if (value == NULL)
		report(FINDING_PROBLEM, "activate", "add 'activate = 1' there",
		       "[%s] has no 'activate': %s is not loaded", section, name);
	else if (strcmp(value, "1") != 0 && strcmp(value, "yes") != 0 && strcmp(value, "true") != 0 &&
		 strcmp(value, "on") != 0)
		report(FINDING_NOTE, "activate", "remove the line where it is not to be loaded, else write 1",
		       "'activate = %s' in [%s]: OpenSSL 3.0 and 3.1 activate it all the same, later ones look at the "
		       "value",
		       value, section);
}

static void check_ours(struct configuration *c, const char *section)
{
	module_path(c->module, sizeof(c->module), c->name, c->section);
	c->activated = configuration_value(c, "activate") != NULL;
	check_activation(section, configuration_value(c, "activate"), "afalgprov");
	check_keys(c->section, section, provider_keys, "afalgprov does not see it");
}

/* One line of the section of providers. *basis: it activates the default provider, or FIPS in its place. */
static void check_one(struct configuration *c, const CONF_VALUE *v, bool *basis)
{
	const STACK_OF(CONF_VALUE) *section = NCONF_get_section(c->conf, v->value);
	const char *name = without_prefix(v->name), *identity = value_in(section, "identity");
	char path[512];

	ERR_clear_error();
	if (section == NULL) {
		report(FINDING_PROBLEM, "section", "add the section, or remove the line",
		       "'%s = %s', but there is no section [%s]: OpenSSL reads no further", name, v->value, v->value);
		return;
	}
	name = identity != NULL ? identity : name;
	if ((strcmp(name, "default") == 0 || strcmp(name, "fips") == 0) && value_in(section, "activate") != NULL)
		*basis = true;
	if (c->section == NULL && is_ours(name, section)) {
		c->section = section;
		snprintf(c->name, sizeof(c->name), "%s", name);
		check_ours(c, v->value);
	}
	module_path(path, sizeof(path), name, section);
	if (!is_builtin(name) && access(path, R_OK) != 0)
		report(FINDING_PROBLEM, "module", "correct the name, or set 'module = PATH' in its section",
		       "provider '%s' in [%s]: %s: %s; OpenSSL goes on without it, and without a word", name, v->value,
		       path, strerror(errno));
}

static void check_providers(struct configuration *c, const STACK_OF(CONF_VALUE) * list, const char *section)
{
	bool basis = false;

	for (int i = 0; i < sk_CONF_VALUE_num(list); i++)
		check_one(c, sk_CONF_VALUE_value(list, i), &basis);
	if (c->section == NULL)
		report(FINDING_PROBLEM, "listed", EXAMPLE, "[%s] has no provider 'afalgprov'", section);
	if (!basis)
		report(FINDING_PROBLEM, "default", "add 'default = SECTION', with 'activate = 1' in that section",
		       "the default provider is not activated; any activated provider ends its implicit load, so RSA, "
		       "TLS "
		       "and whatever else afalgprov does not have are \"unsupported\"");
}

static void check_properties(struct configuration *c, const char *init)
{
	const char *section, *query;
	const STACK_OF(CONF_VALUE) *values = follow(c, init, "alg_section", &section,
						    "has no default properties, and who serves an algorithm that "
						    "several providers have is left to chance");

	if (values == NULL)
		return;
	check_keys(values, section, algorithm_keys, "OpenSSL stops there with an error");
	query = value_in(values, "default_properties");
	if (query == NULL)
		report(FINDING_PROBLEM, "properties", "add 'default_properties = ?provider=afalgprov' there",
		       "[%s] has no default_properties: nothing prefers afalgprov", section);
	else if (strstr(query, "provider=afalgprov") == NULL && strstr(query, "afalg.kernel") == NULL)
		report(FINDING_PROBLEM, "properties", "write 'default_properties = ?provider=afalgprov'",
		       "'default_properties = %s' does not prefer afalgprov", query);
	else if (strchr(query, '?') == NULL)
		report(FINDING_PROBLEM, "properties", "write 'default_properties = ?provider=afalgprov'",
		       "'default_properties = %s' allows afalgprov only: what it lacks is \"unsupported\"", query);
	else
		report(FINDING_OK, "properties", NULL, "default_properties = %s", query);
}

static void check_settings(const struct configuration *c)
{
	for (int i = 0; c->section != NULL && i < sk_CONF_VALUE_num(c->section); i++) {
		const CONF_VALUE *v = sk_CONF_VALUE_value(c->section, i);

		report(FINDING_OK, "setting", NULL, "%s = %s", v->name, v->value);
	}
	if (configuration_value(c, "policy") != NULL && strcmp(configuration_value(c, "policy"), "software") == 0)
		report(FINDING_NOTE, "policy", NULL, "with 'policy = software' nothing goes to the kernel");
}

void check_configuration(struct configuration *c)
{
	const STACK_OF(CONF_VALUE) * init, *list;
	const char *init_name, *list_name;

	report_area("configuration", "Configuration file");
	snprintf(c->name, sizeof(c->name), "afalgprov");
	module_path(c->module, sizeof(c->module), c->name, NULL);
	if (!read_file(c))
		return;
	init = follow(c, NULL, "openssl_conf", &init_name, "takes nothing from this file");
	if (init == NULL)
		return;
	check_keys(init, init_name, init_keys,
		   "OpenSSL stops there with an error, and takes nothing from what follows");
	list = follow(c, init_name, "providers", &list_name, "loads the default provider only");
	if (list != NULL)
		check_providers(c, list, list_name);
	check_properties(c, init_name);
	check_settings(c);
}

void check_configuration_free(struct configuration *c)
{
	NCONF_free(c->conf);
	c->conf = NULL;
	c->section = NULL;
}
