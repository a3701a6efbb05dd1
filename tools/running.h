/* SPDX-License-Identifier: Apache-2.0 */
/* What running programs have learnt of an algorithm, beside what the kernel offers. */
#ifndef TOOLS_RUNNING_H
#define TOOLS_RUNNING_H

#include "json.h"

/* "2 running programs found the kernel to win from 4096 bytes on, 1 at no size"; empty: none has learnt anything. */
void running_text(const char *algorithm, char *text, size_t size);

/* The array "processes": those that know something of the algorithm's kernel lane. */
void running_json(struct json *j, const char *algorithm);

#endif
