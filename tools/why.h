/* SPDX-License-Identifier: Apache-2.0 */
/* Explains an algorithm's kernel lane to people who have never heard of one. */
#ifndef TOOLS_WHY_H
#define TOOLS_WHY_H

#include "../provider/algorithms.h"

/* Prints it on stdout: what serves the algorithm, why so, and what one can do. */
void why_print(enum algorithm_id id);

#endif
