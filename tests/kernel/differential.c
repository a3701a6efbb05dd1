/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential [CASES [SEED [TRANSPORT [PART]]]]: random cases, done by the module with policy=kernel and by the
 * default one, step by step: every return value, length and output byte, the IVs on the way, copies that go on by
 * themselves. At the end the counters must show that the kernel did the bulk of every algorithm that it serves.
 */
#include <err.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differential.h"
#include "support.h"

uint64_t given[ALGORITHM_COUNT];
OSSL_LIB_CTX *ours, *reference;
uint64_t state;
static uint64_t seed;
static unsigned long current;
static const char *algorithm = ""; /* of the case */

static void fail(const char *what)
{
	ERR_print_errors_fp(stderr);
	errx(1, "case %lu of seed %llu, %s: %s", current, (unsigned long long)seed, algorithm, what);
}

void check(int good, const char *what)
{
	if (!good)
		fail(what);
}

size_t below(size_t limit)
{
	return support_below(&state, limit);
}

size_t random_length(void)
{
	size_t limit = LENGTH_MAX + 1;

	if (below(2) == 0)
		limit = (size_t)1 << (1 + below(17));
	return below(limit);
}

size_t random_piece(size_t left)
{
	switch (below(3)) {
	case 0:
		return left;
	case 1:
		return below(left < 100 ? left + 1 : 100);
	default:
		return below(left + 1);
	}
}

/* Random numbers have none: no two give the same. */
/* What has no cases is random: no two give the same. */
static void (*const cases_of[])(enum algorithm_id id) = {
	[KIND_SKCIPHER] = cipher_case, [KIND_AEAD] = aead_case, [KIND_HASH] = digest_case,
	[KIND_MAC] = mac_case,         [KIND_RNG] = NULL,
};

/*
 * The kernel must have done nearly all: what it leaves is heads and tails of a few bytes, and empty messages; and
 * messages of XTS above 64 KiB, which do not fit into a request.
 */
static int report_row(enum algorithm_id id)
{
	const struct algorithm *a = &algorithms[id];
	const struct support_counts c = support_count(a->name);
	const int served = support_kernel_serves(algorithm_type(a->kind), a->kernel);
	const int good =
		!served || given[id] == 0 ||
		(c.kernel_bytes > given[id] / 100 * (a->mode == MODE_XTS ? 20 : 95) && c.errors + c.fallbacks == 0);

	printf("%-18s %12llu %12llu %10llu %10llu %6llu%s\n", a->name, (unsigned long long)given[id],
	       (unsigned long long)c.kernel_bytes, (unsigned long long)c.kernel_requests,
	       (unsigned long long)c.software_bytes, (unsigned long long)(c.errors + c.fallbacks),
	       served ? (good ? "" : "  NOT THE KERNEL'S WORK") : "  (not served by this kernel)");
	return !good;
}

static int report(void)
{
	int bad = 0;

	printf("%-18s %12s %12s %10s %10s %6s\n", "algorithm", "given", "kernel", "requests", "software", "failed");
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (cases_of[algorithms[id].kind] != NULL)
			bad += report_row((enum algorithm_id)id);
	return bad;
}

int main(int argc, char **argv)
{
	const unsigned long cases = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
	const char *part = argc > 4 ? argv[4] : ""; /* only algorithms with this in their name */
	OSSL_PROVIDER *providers[3];
	char settings[128];
	int bad;

	seed = state = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261130;
	support_init();
	snprintf(settings, sizeof(settings), "policy = kernel\ntransport = %s\nhang_limit = 60000", argc > 3 ? argv[3] : "auto");
	ours = support_load(settings);
	reference = support_reference();
	providers[0] = OSSL_PROVIDER_load(reference, "default");
	providers[1] = OSSL_PROVIDER_load(reference, "legacy");
	providers[2] = OSSL_PROVIDER_load(ours, "legacy");
	check(providers[0] != NULL && providers[1] != NULL && providers[2] != NULL,
	      "the legacy provider cannot be loaded");
	for (current = 0; current < cases; current++) {
		const enum algorithm_id id = (enum algorithm_id)below(ALGORITHM_COUNT);

		if (cases_of[algorithms[id].kind] == NULL || strstr(algorithms[id].name, part) == NULL)
			continue;
		algorithm = algorithms[id].name;
		cases_of[algorithms[id].kind](id);
		check(ERR_peek_error() == 0, "an error was left in the queue");
	}
	printf("%lu cases of seed %llu equal the default provider\n", cases, (unsigned long long)seed);
	bad = report();
	for (int i = 0; i < 3; i++)
		OSSL_PROVIDER_unload(providers[i]);
	OSSL_LIB_CTX_free(ours);
	OSSL_LIB_CTX_free(reference);
	return bad > 0;
}
