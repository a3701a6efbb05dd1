/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl stats: what running processes, or a command and all its processes, did in which lane. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "afalgctl.h"
#include "counters_read.h"
#include "table.h"

static void add_cells(struct table *t, const char *const *cells)
{
	for (; *cells != NULL; cells++)
		table_add(t, "%s", *cells);
}

static void add_head(struct table *t)
{
	static const char *const cells[] = {"ALGORITHM",       "SOFTWARE CALLS", "SOFTWARE BYTES",
					    "KERNEL REQUESTS", "KERNEL BYTES",   "FALLBACKS",
					    "ERRORS",          "IN KERNEL",      NULL};

	add_cells(t, cells);
}

#define NUMBERS_ALIGN "lrrrrrrr" /* of add_head() and add_line() */

static void add_line(struct table *t, const char *const *prefix, const struct counters_line *line)
{
	const struct counters_numbers *n = &line->n;
	const double kernel = (double)n->kernel_bytes, bytes = kernel + (double)n->software_bytes;

	add_cells(t, prefix);
	table_add(t, "%s", line->algorithm);
	table_add(t, "%" PRIu64, n->software_calls);
	table_add(t, "%" PRIu64, n->software_bytes);
	table_add(t, "%" PRIu64, n->kernel_requests);
	table_add(t, "%" PRIu64, n->kernel_bytes);
	table_add(t, "%" PRIu64, n->fallbacks);
	table_add(t, "%" PRIu64, n->errors);
	if (bytes > 0)
		table_add(t, "%.1f%%", 100 * kernel / bytes);
	else
		table_add(t, "-");
}

/* One row for all algorithms without a kernel lane: their calls go to OpenSSL's own functions, past the counters. */
static void add_direct(struct table *t, const char *const *prefix, unsigned count)
{
	static const char *const cells[] = {"not counted", "not counted", "0", "0", "0", "0", "0.0%", NULL};

	add_cells(t, prefix);
	table_add(t, "(%u direct)", count);
	add_cells(t, cells);
}

/* Adds a row, begun by `prefix`, for each algorithm that has counts. Returns how many are direct and have none. */
static unsigned add_lines(struct table *t, const char *const *prefix, const struct counters_line *lines, uint32_t count)
{
	unsigned direct = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!counters_idle(&lines[i].n))
			add_line(t, prefix, &lines[i]);
		else if (lines[i].n.direct != 0)
			direct++;
	}
	return direct;
}

static void explain_direct(FILE *out)
{
	fputs("direct: no call can go to the kernel, for want of a driver that wins (see afalgctl list) or by\n"
	      "configuration; OpenSSL's own functions serve them and nobody counts\n",
	      out);
}

/*** Running processes ***/

struct live {
	struct table table;
	pid_t only; /* 0: all */
	bool direct;
	struct counters_sum ended, others;
};

static void add_process(struct live *live, const struct counters_of_slot *s)
{
	static const struct counters_line none = {.algorithm = "-"};
	const struct passwd *user = getpwuid(s->owner);
	const size_t rows = table_rows(&live->table);
	char pid[16], uid[16];
	const char *const prefix[] = {pid, user != NULL ? user->pw_name : uid, s->command, NULL};
	unsigned direct;

	snprintf(pid, sizeof(pid), "%d", (int)s->pid);
	snprintf(uid, sizeof(uid), "%u", (unsigned)s->owner);
	direct = add_lines(&live->table, prefix, s->lines, s->algorithms);
	if (direct > 0)
		add_direct(&live->table, prefix, direct);
	else if (table_rows(&live->table) == rows)
		add_line(&live->table, prefix, &none);
	live->direct = live->direct || direct > 0;
}

static void add_slot(const struct counters_of_slot *s, void *arg)
{
	struct live *live = arg;

	if (live->only != 0 && s->pid != live->only)
		return;
	if (s->kind == COUNTERS_OF_PROCESS)
		add_process(live, s);
	else
		counters_sum_add(s->kind == COUNTERS_OF_ENDED ? &live->ended : &live->others, s);
}

static void add_sum(struct table *t, const char *what, const struct counters_sum *sum)
{
	const char *const prefix[] = {what, "", "", NULL};

	add_lines(t, prefix, sum->lines, sum->count);
}

static int stats_live(const char *directory, pid_t only)
{
	static const char *const head[] = {"PID", "USER", "COMMAND", NULL};
	static struct live live = {.table = {.align = "rll" NUMBERS_ALIGN}};
	int files;

	live.only = only;
	add_cells(&live.table, head);
	add_head(&live.table);
	files = counters_read(directory, COUNTERS_LIVE, add_slot, &live);
	if (files < 0 && files != -ENOENT) {
		fprintf(stderr, "afalgctl: %s: %s\n", directory, strerror(-files));
		return EXIT_FAILURE;
	}
	add_sum(&live.table, "ended", &live.ended);
	add_sum(&live.table, "others", &live.others);
	if (table_rows(&live.table) > 1) {
		table_print(&live.table, stdout);
		if (live.direct)
			explain_direct(stdout);
		return EXIT_SUCCESS;
	}
	if (only != 0) {
		fprintf(stderr, "afalgctl: no running process %d counts in %s\n", (int)only, directory);
		return EXIT_FAILURE;
	}
	printf("no running process counts in %s\n", directory);
	return EXIT_SUCCESS;
}

/*** A command ***/

/*
 * Makes a directory for the counters of one command. Root's command may drop its rights before it loads the provider,
 * so there everyone may create files, though not list or remove others' (sticky); and it lies in /run, since root's
 * TMPDIR is often closed to others. A stranger could add numbers of his own there; the reader believes no file, and the
 * worst is a wrong sum. Anyone else's command keeps its user (set-user-ID programs ignore the variable): private.
 */
static int directory_make(char *path, size_t size)
{
	const bool root = geteuid() == 0;
	const char *temporary = secure_getenv("TMPDIR");
	const char *const parents[] = {root ? "/run" : temporary != NULL ? temporary : "/tmp", "/tmp"};

	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		if (snprintf(path, size, "%s/afalgctl.XXXXXX", parents[i]) >= (int)size || mkdtemp(path) == NULL)
			continue;
		if (!root || chmod(path, 01733) == 0)
			return 0;
		rmdir(path);
	}
	perror("afalgctl: a temporary directory cannot be made");
	return -1;
}

static void directory_remove(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d != NULL)
		closedir(d);
	if (rmdir(path) != 0)
		fprintf(stderr, "afalgctl: %s is left behind: %s\n", path, strerror(errno));
}

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
	add_head(&t);
	direct = add_lines(&t, no_prefix, sum->lines, sum->count);
	if (direct > 0)
		add_direct(&t, no_prefix, direct);
	table_print(&t, stderr);
	if (direct > 0)
		explain_direct(stderr);
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
	else
		print_table(&sum);
}

static int stats_command(char **argv)
{
	char directory[200]; /* short enough for the writer's path of a file in it */
	bool ran;
	int status;

	if (directory_make(directory, sizeof(directory)) != 0)
		return EXIT_FAILURE;
	setenv("AFALGPROV_COUNTERS", directory, 1);
	status = run(argv, &ran);
	if (ran)
		print_sums(directory);
	directory_remove(directory);
	return status;
}

/*** The command line ***/

/* The process number in `text`; 0: it is none. */
static pid_t parse_pid(const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	return *end != '\0' || end == text || errno != 0 || pid <= 0 || pid > INT_MAX ? 0 : (pid_t)pid;
}

static int parse_command(char **argv, const char *directory)
{
	if (directory != NULL)
		return usage_error("a directory does not go with a command, which gets one of its own");
	if (argv[0] == NULL)
		return usage_error("a command is missing after --");
	return stats_command(argv);
}

int command_stats(int argc, char **argv)
{
	static const struct option options[] = {
		{"directory", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *directory = NULL;
	pid_t only = 0;
	int c;

	while ((c = getopt_long(argc, argv, "+d:h", options, NULL)) != -1) {
		if (c != 'd')
			return c == 'h' ? help() : EXIT_USAGE;
		directory = optarg;
	}
	/* The end of the options, and not a directory of that name. */
	if (strcmp(argv[optind - 1], "--") == 0 && argv[optind - 1] != directory)
		return parse_command(argv + optind, directory);
	if (argc - optind > 1)
		return usage_error("one PID, or -- and a command");
	if (optind < argc) {
		only = parse_pid(argv[optind]);
		if (only == 0)
			return usage_error("'%s' is no process number; a command comes after --", argv[optind]);
	}
	return stats_live(directory != NULL ? directory : COUNTERS_DIRECTORY, only);
}
