/* SPDX-License-Identifier: Apache-2.0 */
/* A line on stderr where something needs saying: off | error | info | debug. */
#ifndef PROVIDER_LOG_H
#define PROVIDER_LOG_H

enum log_level { LOG_LEVEL_OFF, LOG_LEVEL_ERROR, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

extern enum log_level log_level; /* use log_set_level() to change it */

/* Sets the level of the process by name; 0: there is no such level. */
int log_set_level(const char *name);

/* Takes the level from AFALGPROV_LOG, which outranks the configuration; not in set-user-ID programs. */
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
