/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served_test KERNEL: prints which of our algorithms the guest kernel does not serve over AF_ALG, and checks that these
 * are the ones known: a kernel that lost one, or a name of ours that is wrong, would else pass as "software".
 */
#include <err.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/algorithms.h"
#include "support.h"

/* The kernels' configurations: Debian builds no SM3, SM4, ARIA and SEED; CFB and OFB are gone from Linux 6.8 on. */
static const struct {
	const char *kernel;
	const char *unserved[10];
} known[] = {
	{"uml", {NULL}},
	{"uml-7.2", {"*-OFB", "*-CFB", "HMAC-BLAKE2B-512"}}, /* hashes that hmac() cannot take */
	{"6.1", {"ARIA-*", "SM4-*", "SEED-*", "*SM3"}},
	{"6.12", {"ARIA-*", "SM4-*", "SEED-*", "*SM3", "AES-*-OFB", "AES-*-CFB"}},
	{"7.2", {"ARIA-*", "SM4-*", "SEED-*", "*SM3", "AES-*-OFB", "AES-*-CFB", "*BLAKE2B-512", "AFALG-DRBG"}},
};

static bool is_known(size_t kernel, const char *name)
{
	for (size_t i = 0; known[kernel].unserved[i] != NULL; i++)
		if (fnmatch(known[kernel].unserved[i], name, 0) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	size_t kernel = 0;
	int bad = 0;

	while (argc == 2 && kernel < sizeof(known) / sizeof(*known) && strcmp(known[kernel].kernel, argv[1]) != 0)
		kernel++;
	if (argc != 2 || kernel == sizeof(known) / sizeof(*known))
		errx(2, "which kernel?");
	printf("not served by %s:", argv[1]);
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];
		const bool served = support_kernel_serves(algorithm_type(a->kind), a->kernel);

		if (!served)
			printf(" %s", a->name);
		if (id == ALG_AFALG_JITTER) /* its start-up test fails in some boots of User Mode Linux */
			continue;
		if (served == is_known(kernel, a->name)) {
			printf(" (%s: UNEXPECTEDLY %s)", a->name, served ? "SERVED" : "NOT SERVED");
			bad++;
		}
	}
	printf("\n");
	return bad > 0;
}
