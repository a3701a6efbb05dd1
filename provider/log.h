/* SPDX-License-Identifier: Apache-2.0 */
/* A line where something needs saying: off | error | info | debug, on standard error, to syslog or in a file. */
#ifndef PROVIDER_LOG_H
#define PROVIDER_LOG_H

#include <stddef.h>

enum log_level { LOG_LEVEL_OFF, LOG_LEVEL_ERROR, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

extern enum log_level log_level; /* use log_set() to change it */

/*
 * Sets the level and the target of the process: "LEVEL" or "LEVEL,TARGET", where the target is stderr, syslog or a
 * file's absolute path. 0: that is not allowed; `reason` of `size` bytes then says why, if there is more to say than
 * what is allowed ("'loud' is no level; "), and nothing has changed. A file that cannot be opened now is allowed:
 * standard error is told so, and is the target.
 */
int log_set(const char *value, char *reason, size_t size);
#define LOG_ALLOWED "off, error, info or debug, and after a comma stderr, syslog or a file's absolute path"

/* Takes both from AFALGPROV_LOG, which outranks the configuration; not in set-user-ID programs. */
void log_init(void);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Formats nothing when the level is off. */
#define log_at(level, ...)                             \
	do {                                           \
		if ((level) <= log_level)              \
			log_write(level, __VA_ARGS__); \
	} while (0)
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
