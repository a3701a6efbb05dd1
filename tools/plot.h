/* SPDX-License-Identifier: Apache-2.0 */
/* Draws measurements, by gnuplot. */
#ifndef TOOLS_PLOT_H
#define TOOLS_PLOT_H

#include <stdbool.h>

#include "measure.h"

/* Whether it can be drawn: the file's name ends in .png or .svg, and gnuplot is there. Else stderr says what is wrong.
 */
bool plot_possible(const char *file);

/* Draws a measurement into the file; false: it failed, stderr says why. `title` stands above it. */
bool plot_draw(const struct measurement *m, const char *file, const char *title, bool processor);

#endif
