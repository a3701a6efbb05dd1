/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench [OPTION]...: how fast the module is, beside the default provider and a bare loop over AF_ALG, on this machine
 * and kernel. All sides take turns in one run, many times, and medians are compared: that a machine is busy or
 * throttled for a while meets all sides alike.
 */
#include <err.h>
#include <getopt.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "median.h"
#include "provider/algorithms.h"
#include "runner.h"
#include "support.h"

#define ROUNDS_MAX 101

enum side { SIDE_DEFAULT, SIDE_PROVIDER, SIDE_BARE, SIDES };
static const char *const side_names[SIDES] = {"default", "provider", "bare"};

static struct {
	const char *settings;
	const char *algorithms, *sizes;
	const char *csv;
	unsigned rounds, milliseconds;
	bool sides[SIDES];
	bool anew;
} options = {
	.settings = "",
	.algorithms = "AES-128-CBC,SHA2-256",
	.sizes = "16,64,256,1024,8192,16384",
	.rounds = 15,
	.milliseconds = 20,
	.sides = {true, true, false},
};

static OSSL_LIB_CTX *contexts[SIDES]; /* null for the bare one */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(struct runner *r, size_t size, unsigned long n)
{
	const double start = now();

	runner_run(r, size, n);
	return now() - start;
}

/* How many calls take about the wished time. */
static unsigned long calibrate(struct runner *r, size_t size)
{
	const double wish = options.milliseconds * 1e-3;
	unsigned long n = 1;

	for (;;) {
		double t = seconds(r, size, n);

		if (t > wish / 4)
			return (unsigned long)((double)n * wish / t) + 1;
		n *= 4;
	}
}

/* Measures all sides in turn. rates: MB/s, medians. ratios: of the provider to the side, the median over the rounds. */
static void measure(const struct algorithm *a, size_t size, double rates[SIDES], double ratios[SIDES])
{
	static double rate[SIDES][ROUNDS_MAX], ratio[SIDES][ROUNDS_MAX];
	struct runner runners[SIDES];
	unsigned long n[SIDES];

	for (int s = 0; s < SIDES; s++)
		if (options.sides[s]) {
			runner_open(&runners[s], a, contexts[s], options.anew);
			calibrate(&runners[s], size); /* warms up */
		}
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s])
			n[s] = calibrate(&runners[s], size);
	for (unsigned round = 0; round < options.rounds; round++) {
		for (int i = 0; i < SIDES; i++) {
			int s = (int)((unsigned)i + round) % SIDES; /* each side comes first in turn */

			if (options.sides[s])
				rate[s][round] = (double)size * (double)n[s] / seconds(&runners[s], size, n[s]) / 1e6;
		}
		for (int s = 0; s < SIDES; s++)
			if (options.sides[s])
				ratio[s][round] = rate[SIDE_PROVIDER][round] / rate[s][round];
	}
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s]) {
			rates[s] = median(rate[s], options.rounds);
			ratios[s] = median(ratio[s], options.rounds);
			runner_close(&runners[s]);
		}
}

static void print_head(FILE *csv)
{
	printf("%-17s %8s", "algorithm", "bytes");
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s])
			printf(" %11s", side_names[s]);
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s] && s != SIDE_PROVIDER)
			printf("  /%-8s", side_names[s]);
	printf("   (MB/s; provider divided by the others)\n");
	if (csv != NULL)
		fprintf(csv, "algorithm,bytes,side,megabytes_per_second,provider_ratio\n");
}

static void bench_cell(const struct algorithm *a, size_t size, FILE *csv)
{
	double rates[SIDES] = {0}, ratios[SIDES] = {0};

	measure(a, size, rates, ratios);
	printf("%-17s %8zu", a->name, size);
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s])
			printf(" %11.2f", rates[s]);
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s] && s != SIDE_PROVIDER)
			printf("  %9.3f", ratios[s]);
	printf("\n");
	fflush(stdout);
	for (int s = 0; csv != NULL && s < SIDES; s++)
		if (options.sides[s])
			fprintf(csv, "%s,%zu,%s,%.3f,%.4f\n", a->name, size, side_names[s], rates[s], ratios[s]);
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

/* A guest that has just started is slow for a second or two: its emulator still translates, caches are empty. */
static void warm_up(void)
{
	const double end = now() + 2;

	while (now() < end)
		for (int s = 0; s < SIDES; s++)
			if (options.sides[s] && s != SIDE_BARE) {
				struct runner r;

				runner_open(&r, &algorithms[0], contexts[s], false);
				seconds(&r, 1024, 100);
				runner_close(&r);
			}
}

static void usage(FILE *f)
{
	fprintf(f, "usage: bench [-a ALGORITHM,...] [-b BYTES,...] [-s SETTING;...] [-w SIDE,...] [-r ROUNDS]\n"
		   "             [-t MILLISECONDS] [-c CSV-FILE] [-n] [-l]\n"
		   "  -s  settings of the provider, such as 'policy=kernel;transport=socket'\n"
		   "  -w  sides: default, provider, bare\n"
		   "  -n  a new context for each call\n"
		   "  -l  measure loading instead\n");
}

static void set_sides(const char *list)
{
	for (int s = 0; s < SIDES; s++)
		options.sides[s] = strstr(list, side_names[s]) != NULL || s == SIDE_PROVIDER;
}

static char *settings_lines(char *list)
{
	for (char *c = list; *c != '\0'; c++)
		*c = *c == ';' ? '\n' : *c;
	return list;
}

static bool parse(int argc, char **argv)
{
	bool load = false;
	int c;

	while ((c = getopt(argc, argv, "a:b:s:w:r:t:c:nlh")) != -1) {
		switch (c) {
		case 'a':
			options.algorithms = optarg;
			break;
		case 'b':
			options.sizes = optarg;
			break;
		case 's':
			options.settings = settings_lines(optarg);
			break;
		case 'w':
			set_sides(optarg);
			break;
		case 'r':
			options.rounds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 't':
			options.milliseconds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			options.csv = optarg;
			break;
		case 'n':
			options.anew = true;
			break;
		case 'l':
			load = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (options.rounds == 0 || options.rounds > ROUNDS_MAX || options.milliseconds == 0)
		errx(2, "1 to %d rounds of at least 1 ms", ROUNDS_MAX);
	return load;
}

int main(int argc, char **argv)
{
	const bool load = parse(argc, argv);
	FILE *csv = options.csv == NULL ? NULL : fopen(options.csv, "w");
	struct utsname u;

	if (options.csv != NULL && csv == NULL)
		err(1, "%s", options.csv);
	uname(&u);
	printf("%s %s %s, %u rounds of %u ms, settings: %s\n", u.sysname, u.release, u.machine, options.rounds,
	       options.milliseconds, options.settings[0] == '\0' ? "none" : options.settings);
	support_init();
	if (load) {
		bench_load();
		return 0;
	}
	contexts[SIDE_DEFAULT] = support_reference();
	contexts[SIDE_PROVIDER] = support_load(options.settings);
	print_head(csv);
	warm_up();
	for (const char *a = options.algorithms; *a != '\0'; a += strcspn(a, ","), a += *a == ',') {
		int id = algorithm_find(a, strcspn(a, ","));

		if (id < 0)
			errx(2, "no algorithm %s", a);
		for (const char *b = options.sizes; *b != '\0'; b += strcspn(b, ","), b += *b == ',') {
			size_t size = strtoul(b, NULL, 10);

			if (size == 0 || size > RUNNER_SIZE_MAX)
				errx(2, "sizes are 1 to %u bytes", RUNNER_SIZE_MAX);
			bench_cell(&algorithms[id], size, csv);
		}
	}
	if (csv != NULL)
		fclose(csv);
	OSSL_LIB_CTX_free(contexts[0]);
	OSSL_LIB_CTX_free(contexts[1]);
	return 0;
}
