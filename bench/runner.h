/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a measurement at work on one algorithm. */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <stdbool.h>
#include <stddef.h>

#include "provider/algorithms.h"
#include "tools/call.h"

/* All but the bare loop over AF_ALG go through EVP. */
struct side {
	struct call_source source; /* what is not fetched from it is not measured */
	bool bare;
};

struct runner {
	const struct algorithm *algorithm;
	const struct side *side;
	struct call call;
	int tfm, op; /* bare */
};

/* False: the side does not have the algorithm, or cannot have so many bytes in one call. */
bool runner_open(struct runner *r, const struct side *side, const struct algorithm *a, size_t size, bool anew);
void runner_close(struct runner *r);

/* Does `n` calls of `size` bytes: updates of a cipher; whole messages of an AEAD, a digest or a MAC. */
void runner_run(struct runner *r, size_t size, unsigned long n);

#endif
