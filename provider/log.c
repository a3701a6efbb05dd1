/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#define PATH_SIZE 256

enum log_level log_level = LOG_LEVEL_ERROR;
static bool from_environment;

/*
 * Each line opens its target and closes it again: a program that daemonises closes what it did not open, and the number
 * would soon be something else's. syslog(3) keeps its descriptor, and takes a lock that a fork may leave taken.
 */
struct target {
	const char *name;
	int (*open)(void); /* a descriptor, or negative */
	bool kept;         /* it is not ours to close */
};

/*** Targets ***/

static char file_path[PATH_SIZE];

static int open_stderr(void)
{
	return STDERR_FILENO;
}

/* As syslog(3) does, but that neither this nor a line ever waits. */
static int open_syslog(void)
{
	static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A pipe without a reader must not hold us, nor a terminal become ours. */
static int open_file(void)
{
	return open(file_path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
}

static const struct target to_stderr = {"stderr", open_stderr, true};
static const struct target to_syslog = {"syslog", open_syslog, false};
static const struct target to_file = {"file", open_file, false};
static const struct target *target = &to_stderr;

/*** Settings ***/

static int level_of(const char *name, size_t length)
{
	static const char *const names[] = {"off", "error", "info", "debug"};

	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0)
			return i;
	return -1;
}

static void set_file(const char *path)
{
	int fd;

	snprintf(file_path, sizeof(file_path), "%s", path);
	target = &to_file;
	fd = open_file();
	if (fd >= 0) {
		close(fd);
		return;
	}
	target = &to_stderr;
	log_error("the log goes to standard error: %s: %s", path, strerror(errno));
}

int log_set(const char *value, char *reason, size_t size)
{
	const size_t length = strcspn(value, ",");
	const char *where = value[length] == ',' ? value + length + 1 : to_stderr.name;
	const int level = level_of(value, length);
	const char *wrong = NULL;

	where += strspn(where, " ");
	if (level < 0)
		snprintf(reason, size, "'%.*s' is no level; ", length < 40 ? (int)length : 40, value);
	else if (where[0] == '/')
		wrong = strlen(where) < sizeof(file_path) ? NULL : "is too long";
	else if (strcmp(where, to_stderr.name) != 0 && strcmp(where, to_syslog.name) != 0)
		wrong = "is no target";
	if (wrong != NULL)
		snprintf(reason, size, "'%.40s' %s; ", where, wrong);
	if (level < 0 || wrong != NULL)
		return 0;
	if (from_environment)
		return 1;
	log_level = (enum log_level)level;
	if (where[0] == '/')
		set_file(where);
	else
		target = strcmp(where, to_syslog.name) == 0 ? &to_syslog : &to_stderr;
	return 1;
}

void log_init(void)
{
	const char *value = secure_getenv("AFALGPROV_LOG");
	char reason[96] = "";

	if (value == NULL || value[0] == '\0')
		return;
	if (log_set(value, reason, sizeof(reason)))
		from_environment = true;
	else if (!from_environment)
		log_error("AFALGPROV_LOG=%s: %sallowed is " LOG_ALLOWED, value, reason);
}

/*** Lines ***/

/* One write, so that the lines of several threads and processes do not mix. A lost line is no reason to fail. */
static void put(const char *line, size_t length)
{
	const struct target *to = target;
	const int before = errno, fd = to->open();

	ssize_t written = 0;

	if (fd >= 0)
		written = to == &to_syslog ? send(fd, line, length, MSG_NOSIGNAL) : write(fd, line, length);
	(void)written;
	if (fd >= 0 && !to->kept)
		close(fd);
	errno = before;
}

void log_write(enum log_level level, const char *format, ...)
{
	const int priority = level == LOG_LEVEL_ERROR ? LOG_ERR : level == LOG_LEVEL_INFO ? LOG_INFO : LOG_DEBUG;
	const bool syslogged = target == &to_syslog;
	char line[640];
	size_t size = sizeof(line) - 1; /* a newline comes behind */
	va_list args;
	int n = 0;

	if (syslogged)
		n = snprintf(line, size, "<%d>%.64s[%d]: ", LOG_USER | priority, program_invocation_short_name,
			     (int)getpid());
	else if (target == &to_file)
		n = snprintf(line, size, "%.64s[%d] ", program_invocation_short_name, (int)getpid());
	n += snprintf(line + n, size - (size_t)n, "afalgprov: ");
	va_start(args, format);
	n += vsnprintf(line + n, size - (size_t)n, format, args);
	va_end(args);
	if (n > (int)size - 1)
		n = (int)size - 1;
	if (!syslogged)
		line[n++] = '\n';
	put(line, (size_t)n);
}
