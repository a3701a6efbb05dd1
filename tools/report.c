/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "json.h"
#include "system.h"
#include "text.h"

static const char *const names[] = {"ok", "note", "problem"};
static struct json j;
static bool as_json, silent;
static const char *area_now;
static unsigned counts[3];

static void system_name(char *name, size_t size)
{
	if (!system_value("/etc/os-release", "PRETTY_NAME=", name, size))
		snprintf(name, size, "unknown");
	if (name[0] == '"' && strlen(name) > 1) {
		memmove(name, name + 1, strlen(name));
		name[strcspn(name, "\"")] = '\0';
	}
}

void report_begin(bool json)
{
	struct utsname u;
	char name[100];

	as_json = json;
	system_name(name, sizeof(name));
	if (uname(&u) != 0)
		memset(&u, 0, sizeof(u));
	if (!json) {
		printf("afalgctl " AFALGPROV_VERSION ", %s %s %s, %s, user %u\n", u.sysname, u.release, u.machine, name,
		       (unsigned)getuid());
		return;
	}
	j = (struct json){.out = stdout};
	json_open_object(&j, NULL);
	json_text(&j, "afalgctl", AFALGPROV_VERSION);
	json_text(&j, "kernel", u.release);
	json_text(&j, "machine", u.machine);
	json_text(&j, "system", name);
	json_number(&j, "uid", getuid());
	json_open_array(&j, "findings");
}

void report_silence(void)
{
	silent = true;
}

void report_area(const char *area, const char *title)
{
	area_now = area;
	if (!as_json && !silent)
		printf("\n%s\n", title);
}

void report(enum finding level, const char *code, const char *remedy, const char *format, ...)
{
	static const char *const leads[] = {"  ok       ", "  note     ", "  PROBLEM  "};
	char text[1536];
	va_list args;

	counts[level]++;
	if (silent)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!as_json) {
		text_print(stdout, leads[level], text);
		if (remedy != NULL && remedy[0] != '\0')
			text_print(stdout, "           -> ", remedy);
		fflush(stdout); /* what follows may take long */
		return;
	}
	json_open_object(&j, NULL);
	json_text(&j, "level", names[level]);
	json_text(&j, "area", area_now);
	json_text(&j, "code", code);
	json_text(&j, "text", text);
	json_text(&j, "remedy", remedy != NULL && remedy[0] != '\0' ? remedy : NULL);
	json_close(&j);
}

bool report_end(void)
{
	const unsigned problems = counts[FINDING_PROBLEM], notes = counts[FINDING_NOTE];

	if (as_json) {
		json_close(&j);
		json_number(&j, "problems", problems);
		json_close(&j);
	} else {
		printf("\n%u problem%s, %u note%s\n", problems, problems == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
	}
	return problems == 0;
}
