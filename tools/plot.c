/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"

/* bench/plot.gp, so that it is there wherever afalgctl is. */
static const char script[] =
#include "plot.inc"
	;

/* Runs gnuplot to its end. Returns its status, or the negative errno of running it. */
static int gnuplot(const char *const *argv, bool quiet)
{
	posix_spawn_file_actions_t actions;
	int error, status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error != 0)
		return -error;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

bool plot_possible(const char *file)
{
	static const char *const argv[] = {"gnuplot", "--version", NULL};
	const char *end = strrchr(file, '.');
	int error;

	if (end == NULL || (strcmp(end, ".png") != 0 && strcmp(end, ".svg") != 0)) {
		fprintf(stderr, "afalgctl: %s: the name of a plot ends in .png or .svg\n", file);
		return false;
	}
	error = gnuplot(argv, true);
	if (error == -ENOENT)
		fputs("afalgctl: plots are drawn by gnuplot, which is not installed: it is in the package gnuplot-nox "
		      "of Debian and Ubuntu, elsewhere gnuplot\n",
		      stderr);
	else if (error < 0)
		fprintf(stderr, "afalgctl: gnuplot: %s\n", strerror(-error));
	else if (error != 0)
		fputs("afalgctl: gnuplot does not work\n", stderr);
	return error == 0;
}

static bool put_csv(const struct measurement *m, const char *path)
{
	const char *name = algorithms[m->id].name;
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return false;
	fputs("algorithm,bytes,processes,side,megabytes_per_second,ratio\n", f);
	for (unsigned i = 0; i < m->count; i++) {
		const struct measure_point *p = &m->points[i];
		const double megabytes = (double)p->bytes / 1e6;

		fprintf(f, "%s,%zu,1,software,%.6f,1\n", name, p->bytes, megabytes / p->software);
		fprintf(f, "%s,%zu,1,kernel,%.6f,%.4f\n", name, p->bytes, megabytes / p->kernel, p->ratio);
	}
	return fclose(f) == 0;
}

static bool put_script(const char *path)
{
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return false;
	fputs(script, f);
	return fclose(f) == 0;
}

bool plot_draw(const struct measurement *m, const char *file, const char *title, bool processor)
{
	char directory[200], csv[256], program[256], crossover[32];
	const char *argv[] = {"gnuplot", "-d",
			      "-c",      program,
			      csv,       algorithms[m->id].name,
			      title,     file,
			      crossover, processor ? "MB a second of processor time" : "MB/s",
			      NULL};
	int status = -1;

	if (!scratch_make(directory, sizeof(directory)))
		return false;
	snprintf(csv, sizeof(csv), "%s/csv", directory);
	snprintf(program, sizeof(program), "%s/plot.gp", directory);
	snprintf(crossover, sizeof(crossover), "%zu", m->crossover);
	if (!put_csv(m, csv) || !put_script(program))
		perror("afalgctl: files for gnuplot");
	else if ((status = gnuplot(argv, false)) != 0)
		fprintf(stderr, "afalgctl: %s: gnuplot failed\n", file);
	scratch_remove(directory);
	return status == 0;
}
