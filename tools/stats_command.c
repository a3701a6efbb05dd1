/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl stats -- COMMAND: what a command and all its processes did in which lane. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "afalgctl.h"
#include "lanes.h"
#include "numbers.h"
#include "scratch.h"

/* Waits for the command. Signals that ask us to end are for the command; the directory must be removed after it. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
	siginfo_t info;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		/* What the terminal sends has reached the command already. */
		if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD && info.si_code != SI_KERNEL)
			kill(pid, info.si_signo);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Runs the command to its end; `ran`: whether it could be run. Returns the exit status. */
static int run(char **argv, bool *ran)
{
	static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t signals, before;
	posix_spawnattr_t attributes;
	pid_t pid;
	int error;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
		sigaddset(&signals, passed_on[i]);
	signal(SIGCHLD, SIG_DFL); /* ignored by our parent it would leave nothing to wait for */
	sigprocmask(SIG_BLOCK, &signals, &before);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &before);
	error = posix_spawnp(&pid, argv[0], NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	*ran = error == 0;
	if (error != 0) {
		fprintf(stderr, "afalgctl: %s: %s\n", argv[0], strerror(error));
		return error == ENOENT ? 127 : 126; /* as shells do */
	}
	return wait_for(pid, &signals);
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(((const struct counters_line *)a)->algorithm, ((const struct counters_line *)b)->algorithm);
}

static void print_table(struct counters_sum *sum)
{
	static const char *const no_prefix[] = {NULL};
	struct table t = {.align = NUMBERS_ALIGN};
	unsigned direct;

	qsort(sum->lines, sum->count, sizeof(*sum->lines), by_name);
	numbers_head(&t);
	direct = numbers_rows(&t, no_prefix, sum->lines, sum->count);
	table_print(&t, stderr);
	numbers_causes(stderr, sum->lines, sum->count);
	if (direct > 0)
		numbers_explain_direct(stderr);
}

static void add_lanes(const struct counters_of_slot *slot, void *table)
{
	const char *const prefix[] = {slot->command, lanes_policy(slot->policy), NULL};

	if (slot->kind == COUNTERS_OF_PROCESS)
		lanes_rows(table, prefix, slot->lines, slot->algorithms);
}

/* What its processes knew when they ended. */
static void print_lanes(const char *directory)
{
	static const char *const head[] = {"COMMAND", "POLICY", NULL};
	struct table t = {.align = "ll" LANES_ALIGN};

	numbers_cells(&t, head);
	lanes_head(&t);
	counters_read(directory, COUNTERS_ALL, add_lanes, &t);
	if (table_rows(&t) > 1) {
		fputc('\n', stderr);
		table_print(&t, stderr);
		lanes_explain(stderr);
	} else {
		table_free(&t);
	}
}

static void print_sums(const char *directory)
{
	static struct counters_sum sum;
	int files = counters_sum_directory(&sum, directory);

	fputc('\n', stderr);
	if (files < 0)
		fprintf(stderr, "afalgctl: %s: %s\n", directory, strerror(-files));
	else if (files == 0)
		fputs("afalgctl: no process loaded afalgprov, or none could count\n", stderr);
	else if (sum.count == 0)
		fputs("afalgctl: afalgprov was loaded, but no call reached it\n", stderr);
	else {
		print_table(&sum);
		print_lanes(directory);
	}
}

int stats_command(char **argv)
{
	char directory[200]; /* short enough for the writer's path of a file in it */
	bool ran;
	int status;

	if (!scratch_make(directory, sizeof(directory)))
		return EXIT_FAILURE;
	setenv("AFALGPROV_COUNTERS", directory, 1);
	status = run(argv, &ran);
	if (ran)
		print_sums(directory);
	scratch_remove(directory);
	return status;
}
