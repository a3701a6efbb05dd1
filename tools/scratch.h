/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for the counters of one command, gone after it. */
#ifndef TOOLS_SCRATCH_H
#define TOOLS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Makes it, and says on stderr if that fails. The path must be short enough for the writer's path of a file in it. */
bool scratch_make(char *path, size_t size);

/* Removes it with all files in it. */
void scratch_remove(const char *path);

#endif
