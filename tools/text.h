/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for people. */
#ifndef TOOLS_TEXT_H
#define TOOLS_TEXT_H

#include <stdio.h>

/*
 * Prints words after `lead`, folded at blanks, later lines indented by as many columns. On a terminal they are as long
 * as it is wide, but not beyond what reads well; elsewhere nothing is folded, for grep.
 */
void text_print(FILE *out, const char *lead, const char *text);

/* As text_print(), formatted. */
void text_printf(FILE *out, const char *lead, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
