/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOLS_MEDIAN_H
#define TOOLS_MEDIAN_H

#include <stdlib.h>

static inline int median_ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of n values, which are sorted. */
static inline double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), median_ascending);
	return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#endif
