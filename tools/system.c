/* SPDX-License-Identifier: Apache-2.0 */
#include "system.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define SPACE " \t\n"

static FILE *of_kernel(const char *file)
{
	struct utsname u;
	char path[160];

	if (uname(&u) != 0)
		return NULL;
	snprintf(path, sizeof(path), "/lib/modules/%.64s/%s", u.release, file);
	return fopen(path, "re");
}

bool system_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	bool got;

	if (f == NULL)
		return false;
	got = fgets(line, (int)size, f) != NULL;
	fclose(f);
	if (got)
		line[strcspn(line, "\n")] = '\0';
	return got;
}

bool system_value(const char *path, const char *key, char *value, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		found = true;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, size, "%s", line + strlen(key) + strspn(line + strlen(key), SPACE));
	}
	fclose(f);
	return found;
}

static bool same(const char *a, const char *b)
{
	for (; *a != '\0' && (*a == *b || (*a == '-' && *b == '_') || (*a == '_' && *b == '-')); a++, b++)
		;
	return *a == *b;
}

/*** Modules that there are ***/

/* Whether a list of paths names the module's file; ANSWER_UNKNOWN: there is no such list. */
static enum answer listed(const char *list, const char *module)
{
	FILE *f = of_kernel(list);
	enum answer answer = ANSWER_NO;
	char line[1024];

	if (f == NULL)
		return ANSWER_UNKNOWN;
	while (answer == ANSWER_NO && fgets(line, sizeof(line), f) != NULL) {
		char *base, *end;

		line[strcspn(line, ":\n")] = '\0';
		base = strrchr(line, '/');
		base = base == NULL ? line : base + 1;
		end = strchr(base, '.');
		if (end != NULL)
			*end = '\0';
		if (same(base, module))
			answer = ANSWER_YES;
	}
	fclose(f);
	return answer;
}

enum answer system_has_module(const char *module)
{
	char path[128];
	enum answer file, builtin;

	snprintf(path, sizeof(path), "/sys/module/%s", module);
	if (access(path, F_OK) == 0)
		return ANSWER_YES;
	file = listed("modules.dep", module);
	builtin = listed("modules.builtin", module);
	if (file == ANSWER_YES || builtin == ANSWER_YES)
		return ANSWER_YES;
	return file == ANSWER_NO && builtin == ANSWER_NO ? ANSWER_NO : ANSWER_UNKNOWN;
}

/* Of the drivers of an algorithm the portable one is the one to name: the others want a certain processor. */
static bool better(const char *module, const char *than)
{
	return than[0] == '\0' || (strstr(module, "generic") != NULL && strstr(than, "generic") == NULL);
}

enum answer system_module_of(const char *alias, char *module, size_t size)
{
	FILE *f = of_kernel("modules.alias");
	char line[512];
	size_t n = 0;

	module[0] = '\0';
	if (f == NULL)
		return ANSWER_UNKNOWN;
	while (fgets(line, sizeof(line), f) != NULL) {
		char *word = strtok(line, SPACE), *name = strtok(NULL, SPACE), *of = strtok(NULL, SPACE);

		if (word != NULL && of != NULL && strcmp(word, "alias") == 0 && same(name, alias) && better(of, module))
			snprintf(module, size, "%s", of);
	}
	fclose(f);
	f = module[0] == '\0' ? of_kernel("modules.builtin.modinfo") : NULL;
	while (f != NULL && module[0] == '\0') {
		int c;

		for (n = 0; (c = fgetc(f)) != EOF && c != '\0';)
			if (n < sizeof(line) - 1)
				line[n++] = (char)c;
		line[n] = '\0';
		if (c == EOF)
			break;
		if (strstr(line, ".alias=") != NULL && same(strstr(line, ".alias=") + 7, alias))
			snprintf(module, size, "%.*s", (int)(strstr(line, ".alias=") - line), line);
	}
	if (f != NULL)
		fclose(f);
	return module[0] != '\0' ? ANSWER_YES : ANSWER_NO;
}

/*** Rules ***/

/* Whether `command`, what modprobe is to run in place of loading the module, loads it after all. */
static bool loads(const char *command)
{
	return strstr(command, "modprobe") != NULL || strstr(command, "insmod") != NULL;
}

static bool rule_bars(char *line, const char *module, const char *alias)
{
	const char *word = strtok(line, SPACE), *name = strtok(NULL, SPACE), *rest = strtok(NULL, "\n");

	if (word == NULL || name == NULL || word[0] == '#')
		return false;
	if (strcmp(word, "blacklist") == 0)
		return same(name, module);
	if (strcmp(word, "install") == 0)
		return (same(name, module) || same(name, alias)) && rest != NULL && !loads(rest);
	return strcmp(word, "alias") == 0 && same(name, alias) && rest != NULL &&
	       strncmp(rest + strspn(rest, SPACE), "off", 3) == 0;
}

static bool file_bars(const char *path, const char *module, const char *alias, char *rule, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[512], copy[512];
	bool found = false;

	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
		snprintf(copy, sizeof(copy), "%s", line);
		found = rule_bars(copy, module, alias);
		line[strcspn(line, "\n")] = '\0';
		if (found)
			snprintf(rule, size, "\"%s\" in %s", line + strspn(line, SPACE), path);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static bool directory_bars(const char *directory, const char *module, const char *alias, char *rule, size_t size)
{
	DIR *d = opendir(directory);
	const struct dirent *e;
	char path[512];
	bool found = false;

	while (d != NULL && !found && (e = readdir(d)) != NULL) {
		if (fnmatch("*.conf", e->d_name, 0) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		found = file_bars(path, module, alias, rule, size);
	}
	if (d != NULL)
		closedir(d);
	return found;
}

static bool command_line_bars(const char *module, char *rule, size_t size)
{
	static const char *const keys[] = {"module_blacklist=", "modprobe.blacklist=", "initcall_blacklist="};
	char line[4096], initcall[80];
	char *outer, *inner;

	if (!system_line("/proc/cmdline", line, sizeof(line)))
		return false;
	snprintf(initcall, sizeof(initcall), "%s_init", module);
	for (char *word = strtok_r(line, SPACE, &outer); word != NULL; word = strtok_r(NULL, SPACE, &outer)) {
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
			char whole[256];

			if (strncmp(word, keys[i], strlen(keys[i])) != 0)
				continue;
			snprintf(whole, sizeof(whole), "%s", word);
			for (char *name = strtok_r(word + strlen(keys[i]), ",", &inner); name != NULL;
			     name = strtok_r(NULL, ",", &inner)) {
				if (!same(name, module) && !same(name, initcall))
					continue;
				snprintf(rule, size, "\"%s\" on the kernel's command line", whole);
				return true;
			}
		}
	}
	return false;
}

bool system_barred(const char *module, const char *alias, char *rule, size_t size)
{
	static const char *const directories[] = {"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
						  "/lib/modprobe.d"};

	if (command_line_bars(module, rule, size))
		return true;
	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
		if (directory_bars(directories[i], module, alias, rule, size))
			return true;
	return false;
}

/*** The kernel's configuration ***/

/* gzip is on every system that has a /proc/config.gz to look at, and spares us a library. */
static FILE *open_config(bool *piped)
{
	struct utsname u;
	char path[160];
	FILE *f = NULL;

	*piped = access("/proc/config.gz", R_OK) == 0;
	if (*piped)
		return popen("exec gzip -dc /proc/config.gz 2>/dev/null", "re");
	if (uname(&u) == 0) {
		snprintf(path, sizeof(path), "/boot/config-%.64s", u.release);
		f = fopen(path, "re");
	}
	return f != NULL ? f : of_kernel("config");
}

enum answer system_option(const char *option)
{
	bool piped;
	FILE *f = open_config(&piped);
	enum answer answer = ANSWER_UNKNOWN;
	char line[256], yes[80];

	if (f == NULL)
		return ANSWER_UNKNOWN;
	snprintf(yes, sizeof(yes), "CONFIG_%s=", option);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (answer ==
		    ANSWER_UNKNOWN) /* it is a configuration; options of others than this architecture have no line */
			answer = ANSWER_NO;
		if (strncmp(line, yes, strlen(yes)) == 0)
			answer = line[strlen(yes)] == 'y' || line[strlen(yes)] == 'm' ? ANSWER_YES : ANSWER_NO;
	}
	if (piped)
		pclose(f);
	else
		fclose(f);
	return answer;
}
