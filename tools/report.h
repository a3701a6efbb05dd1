/* SPDX-License-Identifier: Apache-2.0 */
/* What a check has found: a line each, for people and bug reports, or JSON. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>

enum finding { FINDING_OK, FINDING_NOTE, FINDING_PROBLEM };

/* Begins: who and where. */
void report_begin(bool json);

/* What is reported from now on is only counted, for those who want what a check finds out and not its findings. */
void report_silence(void);

/* What follows belongs to another part of the chain. `area` is for scripts, `title` for people. */
void report_area(const char *area, const char *title);

/* A finding, with a remedy or null. A script may look for `code`. */
void report(enum finding level, const char *code, const char *remedy, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Ends; true: no problem. */
bool report_end(void);

#endif
