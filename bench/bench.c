/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench [OPTION]...: how fast the module is, beside the default provider, a bare loop over AF_ALG and OpenSSL's
 * engines, on this machine and kernel. All sides take turns in one run, many times, and medians are compared: that a
 * machine is busy or throttled for a while meets all sides alike.
 */
#include <err.h>
#include <getopt.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "provider/algorithms.h"
#include "runner.h"
#include "support.h"
#include "tools/median.h"
#include "workers.h"

#define ROUNDS_MAX 101
#define PROVIDER 0u /* the side that the others are compared with */

static struct {
	char *settings;
	const char *algorithms, *sizes, *processes;
	const char *csv;
	unsigned rounds, milliseconds;
	bool processor; /* measure the time of the processor, not that of the clock */
	bool anew;
	bool load;
} options = {
	.settings = (char[]){""},
	.algorithms = "AES-128-CBC,SHA2-256",
	.sizes = "16,64,256,1024,8192,16384",
	.processes = "1",
	.rounds = 15,
	.milliseconds = 20,
};

static const char *sides[SIDES_MAX + 1] = {"provider", "default", "bare", "afalg", "devcrypto"};
static bool loaded[SIDES_MAX];

/* What came of a side at one size: medians over the rounds. */
struct outcome {
	bool present;
	double value; /* MB/s, or ns a byte */
	double ratio; /* provider's value divided by this side's */
};

/* The next entry of a list with commas, as a number from 1 to `most`; moves on to the one after it. */
static unsigned long next_number(const char **list, unsigned long most, const char *what)
{
	char *end;
	unsigned long n = strtoul(*list, &end, 10);

	if (n == 0 || n > most || (*end != ',' && *end != '\0'))
		errx(2, "%s: 1 to %lu", what, most);
	*list = end + (*end == ',');
	return n;
}

static enum algorithm_id next_algorithm(const char **list)
{
	const size_t length = strcspn(*list, ",");
	const int id = algorithm_find(*list, length);

	if (id < 0 || algorithms[id].kind == KIND_RNG)
		errx(2, "cannot measure %.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	return (enum algorithm_id)id;
}

static double value(struct work w)
{
	if (!options.processor)
		return w.bytes_per_second / 1e6;
	if (w.processor_seconds_per_byte <= 0)
		errx(1, "this kernel does not account processor time");
	return w.processor_seconds_per_byte * 1e9;
}

static void measure(enum algorithm_id id, size_t size, struct outcome outcomes[SIDES_MAX])
{
	static double values[SIDES_MAX][ROUNDS_MAX], ratios[SIDES_MAX][ROUNDS_MAX];
	unsigned count = 0;

	for (; sides[count] != NULL; count++)
		outcomes[count].present = workers_prepare(id, size, count);
	for (unsigned round = 0; round < options.rounds; round++) {
		for (unsigned i = 0; i < count; i++) {
			const unsigned s = (i + round) % count; /* each side comes first in turn */

			if (outcomes[s].present)
				values[s][round] = value(workers_run(id, size, s));
		}
		for (unsigned s = 0; s < count; s++)
			if (outcomes[s].present)
				ratios[s][round] = values[PROVIDER][round] / values[s][round];
	}
	for (unsigned s = 0; s < count; s++) {
		outcomes[s].value = median(values[s], options.rounds);
		outcomes[s].ratio = outcomes[PROVIDER].present ? median(ratios[s], options.rounds) : 0;
	}
}

static void print_head(FILE *csv)
{
	printf("%-17s %8s %9s", "algorithm", "bytes", "processes");
	for (unsigned s = 0; sides[s] != NULL; s++)
		if (loaded[s])
			printf(" %10s", sides[s]);
	for (unsigned s = 1; sides[s] != NULL; s++)
		if (loaded[s])
			printf("  /%-9s", sides[s]);
	printf("  (%s; provider divided by the others)\n", options.processor ? "ns of processor time a byte" : "MB/s");
	if (csv != NULL)
		fprintf(csv, "algorithm,bytes,processes,side,%s,provider_ratio\n",
			options.processor ? "processor_nanoseconds_per_byte" : "megabytes_per_second");
}

static void print_number(int width, int digits, bool present, double number)
{
	if (present)
		printf(" %*.*f", width, digits, number);
	else
		printf(" %*s", width, "-");
}

static void bench_cell(enum algorithm_id id, size_t size, unsigned processes, FILE *csv)
{
	struct outcome outcomes[SIDES_MAX] = {0};
	const char *name = algorithms[id].name;

	measure(id, size, outcomes);
	printf("%-17s %8zu %9u", name, size, processes);
	for (unsigned s = 0; sides[s] != NULL; s++)
		if (loaded[s])
			print_number(10, 2, outcomes[s].present, outcomes[s].value);
	for (unsigned s = 1; sides[s] != NULL; s++)
		if (loaded[s])
			print_number(11, 3, outcomes[s].present && outcomes[PROVIDER].present, outcomes[s].ratio);
	printf("\n");
	fflush(stdout);
	for (unsigned s = 0; csv != NULL && sides[s] != NULL; s++)
		if (outcomes[s].present)
			fprintf(csv, "%s,%zu,%u,%s,%.4f,%.4f\n", name, size, processes, sides[s], outcomes[s].value,
				outcomes[s].ratio);
}

/* A guest that has just started is slow for a second or two: its emulator still translates, caches are empty. */
static void warm_up(enum algorithm_id id)
{
	const time_t end = time(NULL) + 2;

	while (time(NULL) <= end)
		for (unsigned s = 0; sides[s] != NULL; s++)
			if (workers_prepare(id, 1024, s))
				workers_run(id, 1024, s);
}

static void bench_all(unsigned processes, FILE *csv)
{
	for (const char *a = options.algorithms; *a != '\0';) {
		const enum algorithm_id id = next_algorithm(&a);

		for (const char *b = options.sizes; *b != '\0';)
			bench_cell(id, next_number(&b, CALL_SIZE_MAX, "bytes"), processes, csv);
	}
}

static void print_missing(void)
{
	const char *before = "not here: ";

	for (unsigned s = 0; sides[s] != NULL; s++)
		if (!loaded[s]) {
			printf("%s%s", before, sides[s]);
			before = ", ";
		}
	if (before[0] == ',')
		printf("\n");
}

static bool any_legacy(void)
{
	bool legacy = false;

	for (const char *a = options.algorithms; *a != '\0';)
		legacy = algorithms[next_algorithm(&a)].legacy || legacy;
	return legacy;
}

static void bench(FILE *csv)
{
	const char *first = options.algorithms;
	const enum algorithm_id id = next_algorithm(&first);
	struct workers_setup setup = {.settings = options.settings,
				      .legacy = any_legacy(),
				      .anew = options.anew,
				      .seconds = options.milliseconds * 1e-3};

	memcpy(setup.sides, sides, sizeof(setup.sides));
	for (const char *p = options.processes; *p != '\0';) {
		const bool begin = p == options.processes;
		const unsigned n = (unsigned)next_number(&p, WORKERS_MAX, "processes");

		workers_start(n, &setup, loaded);
		if (begin) {
			print_missing();
			print_head(csv);
			warm_up(id);
		}
		bench_all(n, csv);
		workers_stop();
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void reference_load(void)
{
	OSSL_LIB_CTX *ctx = support_reference();
	OSSL_PROVIDER *provider = OSSL_PROVIDER_load(ctx, "default");

	if (provider == NULL)
		errx(1, "no default provider");
	OSSL_PROVIDER_unload(provider);
	OSSL_LIB_CTX_free(ctx);
}

/* Time to load the provider and to unload it, beside the time for the default provider alone. */
static void bench_load(void)
{
	static double load[ROUNDS_MAX], reference[ROUNDS_MAX];

	support_init();
	for (unsigned i = 0; i < options.rounds; i++) {
		double start = now();

		reference_load();
		reference[i] = now() - start;
		start = now();
		OSSL_LIB_CTX_free(support_load(options.settings));
		load[i] = now() - start;
	}
	printf("load and unload: default provider alone %.3f ms, with afalgprov from a configuration file %.3f ms\n",
	       median(reference, options.rounds) * 1e3, median(load, options.rounds) * 1e3);
}

static void usage(FILE *f)
{
	fprintf(f, "usage: bench [-a ALGORITHM,...] [-b BYTES,...] [-s SETTING;...] [-w SIDE,...] [-p PROCESSES,...]\n"
		   "             [-r ROUNDS] [-t MILLISECONDS] [-c CSV-FILE] [-n] [-u] [-l]\n"
		   "  -s  settings of the provider, such as 'policy=kernel;transport=socket'\n"
		   "  -w  what to compare the provider with: default, bare, or ids of engines; all but those that are\n"
		   "      not here if not given (default,bare,afalg,devcrypto)\n"
		   "  -p  so many processes at once; the sum of what they do is shown\n"
		   "  -r  rounds; the medians are shown\n"
		   "  -t  how long each side works in a round\n"
		   "  -n  a new context for each call\n"
		   "  -u  the processor time of the caller, in place of speed\n"
		   "  -l  measure loading instead\n");
}

static void set_sides(char *list)
{
	unsigned count = PROVIDER + 1;

	for (char *save, *name = strtok_r(list, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save)) {
		if (strcmp(name, sides[PROVIDER]) == 0)
			continue;
		if (count == SIDES_MAX)
			errx(2, "too many sides");
		sides[count++] = name;
	}
	sides[count] = NULL;
}

static void set_settings(char *list)
{
	for (char *c = list; *c != '\0'; c++)
		*c = *c == ';' ? '\n' : *c;
	options.settings = list;
}

static void set_option(int option, char *argument)
{
	switch (option) {
	case 'a':
		options.algorithms = argument;
		break;
	case 'b':
		options.sizes = argument;
		break;
	case 'p':
		options.processes = argument;
		break;
	case 's':
		set_settings(argument);
		break;
	case 'w':
		set_sides(argument);
		break;
	case 'r':
		options.rounds = (unsigned)strtoul(argument, NULL, 10);
		break;
	case 't':
		options.milliseconds = (unsigned)strtoul(argument, NULL, 10);
		break;
	case 'c':
		options.csv = argument;
		break;
	case 'n':
		options.anew = true;
		break;
	case 'u':
		options.processor = true;
		break;
	case 'l':
		options.load = true;
		break;
	default:
		usage(option == 'h' ? stdout : stderr);
		exit(option == 'h' ? 0 : 2);
	}
}

static void print_title(void)
{
	struct utsname u;

	uname(&u);
	printf("Linux %s %s, OpenSSL %s, %u rounds of %u ms, settings: ", u.release, u.machine,
	       OpenSSL_version(OPENSSL_FULL_VERSION_STRING), options.rounds, options.milliseconds);
	for (const char *c = options.settings; *c != '\0'; c++)
		putchar(*c == '\n' ? ';' : *c);
	printf("%s%s\n", options.settings[0] == '\0' ? "none" : "",
	       options.anew ? ", a new context for each call" : "");
}

int main(int argc, char **argv)
{
	FILE *csv = NULL;
	int c;

	while ((c = getopt(argc, argv, "a:b:p:s:w:r:t:c:nulh")) != -1)
		set_option(c, optarg);
	if (options.rounds == 0 || options.rounds > ROUNDS_MAX || options.milliseconds == 0)
		errx(2, "1 to %d rounds of at least 1 ms", ROUNDS_MAX);
	if (options.csv != NULL && (csv = fopen(options.csv, "w")) == NULL)
		err(1, "%s", options.csv);
	print_title();
	if (options.load)
		bench_load();
	else
		bench(csv);
	if (csv != NULL && fclose(csv) != 0)
		err(1, "%s", options.csv);
	return 0;
}
