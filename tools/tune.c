/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl tune: measures, and writes what it found as configuration. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "afalgctl.h"
#include "measuring.h"
#include "offer.h"

/* A driver that is software stays so, whatever one measures: OpenSSL's own code does without the system calls. */
static void leave_out_software(struct measuring *m)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (m->chosen[id] && offer_of((enum algorithm_id)id)->driver.class == AFALG_SOFTWARE)
			m->chosen[id] = false;
}

/* What failed is left to what the policy makes of it. */
static bool failed(const struct measuring *m, enum algorithm_id id)
{
	for (int i = 0; i < m->count; i++)
		if (m->results[i].id == id)
			return m->results[i].failed[0] != '\0';
	return algorithms[id].kind == KIND_RNG;
}

static size_t crossover(const struct measuring *m, enum algorithm_id id)
{
	for (int i = 0; i < m->count; i++)
		if (m->results[i].id == id)
			return m->results[i].crossover;
	return 0;
}

static void write_comment(const struct measuring *m, FILE *f)
{
	char machine[300], kernel[300], date[32];
	const time_t now = time(NULL);
	struct tm utc;

	measuring_machine(machine, sizeof(machine), kernel, sizeof(kernel));
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
	fprintf(f,
		"# From how many bytes on the kernel is %s, as measured by 'afalgctl tune' " AFALGPROV_VERSION ".\n"
		"# For the section of afalgprov in openssl.cnf: .include THIS-FILE\n"
		"# date:    %s\n"
		"# machine: %s\n"
		"# kernel:  %s\n",
		m->options.processor ? "less work for the processor than software" : "faster than software", date,
		machine, kernel);
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct offer *o = m->wanted[id] ? offer_of((enum algorithm_id)id) : NULL;

		if (o != NULL && o->error == 0)
			fprintf(f, "# driver:  %s, %s (%s)\n", algorithms[id].name, o->driver.name,
				afalg_class_name(o->driver.class));
	}
}

static void write_lines(const struct measuring *m, FILE *f)
{
	const char *before = "thresholds = ";

	write_comment(m, f);
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const size_t bytes = crossover(m, (enum algorithm_id)id);

		if (!m->wanted[id] || failed(m, (enum algorithm_id)id))
			continue;
		fprintf(f, "%s%s:", before, algorithms[id].name);
		if (bytes > 0)
			fprintf(f, "%zu", bytes);
		else
			fputs("never", f);
		before = ",";
	}
	fputs(before[0] == ',' ? "\n" : "# nothing: no hardware driver, and no algorithm was named\n", f);
}

/* Programs may read the file at any moment: it is there as a whole, or as it was. */
static bool write_file(const struct measuring *m, const char *path)
{
	char temporary[512];
	const mode_t mask = umask(0);
	FILE *f = NULL;
	int fd = -1;

	umask(mask);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) < (int)sizeof(temporary))
		fd = mkstemp(temporary);
	else
		errno = ENAMETOOLONG;
	if (fd >= 0 && (f = fdopen(fd, "w")) == NULL)
		close(fd);
	if (f != NULL) {
		write_lines(m, f);
		fchmod(fd, 0666 & ~mask);
		if (ferror(f) == 0 && fclose(f) == 0 && rename(temporary, path) == 0)
			return true;
	}
	fprintf(stderr, "afalgctl: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		unlink(temporary);
	return false;
}

int command_tune(int argc, char **argv)
{
	static const struct option options[] = {
		MEASURING_LONG, {"output", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0}};
	static struct measuring m;
	const char *file = NULL;
	int c, status;

	m.options = measure_defaults();
	while ((c = getopt_long(argc, argv, MEASURING_SHORT "o:", options, NULL)) != -1) {
		if (c == 'h')
			return help();
		file = c == 'o' ? optarg : file;
		if (c != 'o' && (status = measuring_option(&m, c, optarg)) != EXIT_SUCCESS)
			return status;
	}
	status = measuring_names(&m, argc - optind, argv + optind);
	if (status != EXIT_SUCCESS)
		return status;
	leave_out_software(&m);
	if (!measuring_run(&m))
		return EXIT_FAILURE;
	measuring_sentences(&m, file != NULL ? stdout : stderr);
	if (file == NULL)
		write_lines(&m, stdout);
	else if (!write_file(&m, file))
		return EXIT_FAILURE;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (m.chosen[id] && failed(&m, (enum algorithm_id)id))
			return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
