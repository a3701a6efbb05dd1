/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl check: follows the whole chain and says where it breaks. */
#include "check.h"

#include <getopt.h>
#include <openssl/crypto.h>
#include <openssl/opensslv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "afalgctl.h"
#include "offer.h"
#include "report.h"
#include "scratch.h"

static void check_openssl(void)
{
	const char *directory = secure_getenv("OPENSSL_MODULES");

	report_area("openssl", "OpenSSL");
	report(FINDING_OK, "version", NULL, "%s", OpenSSL_version(OPENSSL_VERSION));
	if (directory != NULL)
		report(FINDING_NOTE, "modules", NULL, "modules are looked for in %s (OPENSSL_MODULES)", directory);
	else
		report(FINDING_OK, "modules", NULL, "modules are looked for in %s",
		       OPENSSL_info(OPENSSL_INFO_MODULES_DIR));
	if (OPENSSL_version_major() != OPENSSL_VERSION_MAJOR)
		report(FINDING_PROBLEM, "version", "build afalgprov for this OpenSSL",
		       "afalgctl was built for " OPENSSL_VERSION_TEXT);
}

/* What afalgprov says on standard error is for the report to quote. Returns the descriptor to put back. */
static int keep_log(const char *scratch)
{
	const int before = dup(STDERR_FILENO);
	char path[256];

	snprintf(path, sizeof(path), "%s/.log", scratch);
	if (before < 0 || freopen(path, "a+", stderr) == NULL)
		exit(EXIT_FAILURE);
	return before;
}

static bool check(const char *scratch, const bool *chosen, bool json)
{
	static struct configuration c;

	setenv("AFALGPROV_LOG", "info", 1);
	setenv("AFALGPROV_COUNTERS", scratch, 1);
	report_begin(json);
	check_openssl();
	check_configuration(&c);
	check_provider(&c, scratch);
	check_counters(&c);
	check_kernel(&c, chosen);
	check_answers(&c, scratch, chosen);
	check_configuration_free(&c);
	return report_end();
}

int command_check(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
	bool chosen[ALGORITHM_COUNT], json = false, fine;
	char scratch[200];
	int before, c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c != 'j')
			return c == 'h' ? help() : EXIT_USAGE;
		json = true;
	}
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		chosen[id] = optind == argc;
	for (; optind < argc; optind++)
		if (!offer_choose(argv[optind], chosen))
			return usage_error("unknown algorithm '%s'", argv[optind]);
	if (!scratch_make(scratch, sizeof(scratch)))
		return EXIT_FAILURE;
	before = keep_log(scratch);
	fine = check(scratch, chosen, json);
	dup2(before, STDERR_FILENO);
	scratch_remove(scratch);
	return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
