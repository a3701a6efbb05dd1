/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum log_level log_level = LOG_LEVEL_ERROR;
static bool from_environment;

static int level_of(const char *name)
{
	static const char *const names[] = {"off", "error", "info", "debug"};

	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
}

int log_set_level(const char *name)
{
	int level = level_of(name);

	if (level >= 0 && !from_environment)
		log_level = (enum log_level)level;
	return level >= 0;
}

void log_init(void)
{
	const char *name = secure_getenv("AFALGPROV_LOG");

	if (name == NULL || name[0] == '\0')
		return;
	if (log_set_level(name))
		from_environment = true;
	else
		log_error("AFALGPROV_LOG=%s is not allowed: use off, error, info or debug", name);
}

void log_write(enum log_level level, const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	(void)level;
	n = snprintf(line, sizeof(line), "afalgprov: ");
	va_start(args, format);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	/* One write, so that the lines of several threads do not mix. A lost line is no reason to fail. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}
