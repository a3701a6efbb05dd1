/* SPDX-License-Identifier: Apache-2.0 */
/* What files tell about the running kernel and its modules. Names of modules: '-' and '_' are the same. */
#ifndef TOOLS_SYSTEM_H
#define TOOLS_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

/* The first line of a file, without its end; false: there is none. */
bool system_line(const char *path, char *line, size_t size);

/* What follows `key` and blanks in the first line of a file that begins with it; false: no line does. */
bool system_value(const char *path, const char *key, char *value, size_t size);

/* Whether the running kernel has this module, built in or as a file. */
enum answer system_has_module(const char *module);

/*
 * A rule that keeps a module from being loaded, as it is written and where; false: none was found. `alias` is the name
 * by which the kernel asks for it.
 */
bool system_barred(const char *module, const char *alias, char *rule, size_t size);

/* The module that implements `alias`, such as "crypto-aes". */
enum answer system_module_of(const char *alias, char *module, size_t size);

/* What the kernel's configuration says of an option (name without CONFIG_). */
enum answer system_option(const char *option);

#endif
