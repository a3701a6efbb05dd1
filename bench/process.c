/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_process [-r ROUNDS] [-s SETTING;...] COMMAND [ARGUMENT]...: how long a whole process takes with the module
 * configured, beside the same configuration without it. Both take turns, and medians are compared.
 */
#include <err.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../tools/median.h"

#define ROUNDS_MAX 1001u

enum side { SIDE_DEFAULT, SIDE_PROVIDER, SIDES };

extern char **environ;

static char directory[] = "/tmp/afalgprov-bench.XXXXXX";
static const char *const names[SIDES] = {"default", "provider"};

static const char *config_name(enum side side)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s/%s", directory, names[side]);
	return name;
}

static void write_config(enum side side, const char *settings)
{
	const char *module = getenv("AFALGPROV_MODULE");
	FILE *f = fopen(config_name(side), "w");

	if (f == NULL)
		err(1, "%s", config_name(side));
	if (module == NULL)
		errx(1, "AFALGPROV_MODULE does not name the module");
	fprintf(f, "openssl_conf = o\n[o]\nproviders = p\nalg_section = e\n[d]\nactivate = 1\n[p]\ndefault = d\n");
	if (side == SIDE_PROVIDER) {
		fprintf(f,
			"afalgprov = a\n[e]\ndefault_properties = ?provider=afalgprov\n[a]\nactivate = 1\nmodule = "
			"%s\n",
			module);
		for (; *settings != '\0'; settings++)
			fputc(*settings == ';' ? '\n' : *settings, f);
		fprintf(f, "\n");
	} else {
		fprintf(f, "[e]\n");
	}
	if (fclose(f) != 0)
		err(1, "%s", config_name(side));
}

/* A module that does not load is skipped without a word, and then both sides are the same. */
static void check_config(void)
{
	OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();

	if (ctx == NULL || !OSSL_LIB_CTX_load_config(ctx, config_name(SIDE_PROVIDER)) ||
	    !OSSL_PROVIDER_available(ctx, "afalgprov"))
		errx(1, "the module is not loaded");
	OSSL_LIB_CTX_free(ctx);
}

static void remove_configs(void)
{
	for (int s = 0; s < SIDES; s++)
		unlink(config_name((enum side)s));
	rmdir(directory);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds from the start of the process to its end. */
static double run(enum side side, char **command)
{
	posix_spawn_file_actions_t actions;
	int status, error;
	double start;
	pid_t pid;

	setenv("OPENSSL_CONF", config_name(side), 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	start = now();
	error = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
	if (error != 0)
		errx(1, "%s: %s", command[0], strerror(error));
	if (waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "%s failed", command[0]);
	posix_spawn_file_actions_destroy(&actions);
	return now() - start;
}

static void measure(unsigned rounds, char **command)
{
	static double times[SIDES][ROUNDS_MAX], ratios[ROUNDS_MAX];

	run(SIDE_DEFAULT, command); /* fills caches */
	run(SIDE_PROVIDER, command);
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < SIDES; k++) {
			const enum side side = (enum side)((i + k) % SIDES);

			times[side][i] = run(side, command);
		}
		ratios[i] = times[SIDE_PROVIDER][i] / times[SIDE_DEFAULT][i];
	}
	printf("%9s %9s %8s   (milliseconds of a process, %u rounds)\n", names[SIDE_DEFAULT], names[SIDE_PROVIDER],
	       "ratio", rounds);
	printf("%9.3f %9.3f %8.3f  ", median(times[SIDE_DEFAULT], rounds) * 1e3,
	       median(times[SIDE_PROVIDER], rounds) * 1e3, median(ratios, rounds));
	for (; *command != NULL; command++)
		printf(" %s", *command);
	printf("\n");
}

int main(int argc, char **argv)
{
	const char *settings = "";
	unsigned rounds = 101;
	int c;

	while ((c = getopt(argc, argv, "+r:s:")) != -1) {
		if (c == 'r')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 's')
			settings = optarg;
		else
			return 2;
	}
	if (optind == argc || rounds == 0 || rounds > ROUNDS_MAX)
		errx(2, "bench_process [-r ROUNDS] [-s SETTING;...] COMMAND [ARGUMENT]...; at most %u rounds",
		     ROUNDS_MAX);
	if (mkdtemp(directory) == NULL)
		err(1, "mkdtemp");
	atexit(remove_configs);
	for (int s = 0; s < SIDES; s++)
		write_config((enum side)s, settings);
	check_config();
	measure(rounds, argv + optind);
	return 0;
}
