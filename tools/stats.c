/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl stats: what running processes did in which lane. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "afalgctl.h"
#include "lanes.h"
#include "numbers.h"
#include "snapshot.h"

/*** Text ***/

static void lanes_text(const struct snapshot *s)
{
	static const char *const head[] = {"PID", "COMMAND", "POLICY", NULL};
	struct table t = {.align = "rll" LANES_ALIGN};

	numbers_cells(&t, head);
	lanes_head(&t);
	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_process *p = &s->processes[i];
		char pid[16];
		const char *const prefix[] = {pid, p->command, lanes_policy(p->policy), NULL};

		snprintf(pid, sizeof(pid), "%d", (int)p->pid);
		lanes_rows(&t, prefix, p->lines, p->algorithms);
	}
	if (table_rows(&t) == 1) {
		table_free(&t);
		return;
	}
	putchar('\n');
	table_print(&t, stdout);
	lanes_explain(stdout);
}

static void stats_text(struct snapshot *s)
{
	static const char *const head[] = {"PID", "USER", "COMMAND", NULL};
	static const char *const ended[] = {"ended", "", "", NULL}, *const others[] = {"others", "", "", NULL};
	struct table t = {.align = "rll" NUMBERS_ALIGN};
	unsigned direct = 0;

	numbers_cells(&t, head);
	numbers_head(&t);
	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_process *p = &s->processes[i];
		const size_t rows = table_rows(&t);
		char pid[16];
		const char *const prefix[] = {pid, snapshot_user(p->owner), p->command, NULL};

		snprintf(pid, sizeof(pid), "%d", (int)p->pid);
		direct += numbers_rows(&t, prefix, p->lines, p->algorithms);
		if (table_rows(&t) == rows)
			numbers_none(&t, prefix);
	}
	numbers_rows(&t, ended, s->ended.lines, s->ended.count);
	numbers_rows(&t, others, s->others.lines, s->others.count);
	table_print(&t, stdout);
	for (size_t i = 0; i < s->count; i++)
		numbers_causes(stdout, s->processes[i].lines, s->processes[i].algorithms);
	numbers_causes(stdout, s->ended.lines, s->ended.count);
	numbers_causes(stdout, s->others.lines, s->others.count);
	if (direct > 0)
		numbers_explain_direct(stdout);
	lanes_text(s);
}

/*** JSON ***/

static void stats_json(const struct snapshot *s, const char *directory)
{
	struct json j = {.out = stdout};

	json_open_object(&j, NULL);
	json_text(&j, "afalgctl", AFALGPROV_VERSION);
	json_text(&j, "directory", directory);
	json_open_array(&j, "processes");
	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_process *p = &s->processes[i];

		json_open_object(&j, NULL);
		json_signed(&j, "pid", p->pid);
		json_number(&j, "uid", p->owner);
		json_text(&j, "user", snapshot_user(p->owner));
		json_text(&j, "command", p->command);
		json_text(&j, "policy", p->policy != 0 ? lanes_policy(p->policy) : NULL);
		numbers_json(&j, "algorithms", p->lines, p->algorithms, true);
		json_close(&j);
	}
	json_close(&j);
	numbers_json(&j, "ended", s->ended.lines, s->ended.count, false);
	numbers_json(&j, "others", s->others.lines, s->others.count, false);
	json_close(&j);
}

/*** Running processes ***/

static int stats_live(const char *directory, const struct snapshot_filter *filter, bool json)
{
	static struct snapshot s;
	const bool all = filter->pid == 0 && filter->name == NULL;

	if (!snapshot_take(&s, directory, filter))
		return EXIT_FAILURE;
	if (json)
		stats_json(&s, directory);
	else if (s.count + s.ended.count + s.others.count > 0)
		stats_text(&s);
	else if (all)
		printf("no running process counts in %s\n", directory);
	if (s.count == 0 && filter->pid != 0)
		fprintf(stderr, "afalgctl: no running process %d counts in %s\n", (int)filter->pid, directory);
	else if (s.count == 0 && !all)
		fprintf(stderr, "afalgctl: no running process named '%s' counts in %s\n", filter->name, directory);
	return s.count == 0 && !all ? EXIT_FAILURE : EXIT_SUCCESS;
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

static int parse_command(char **argv, const char *directory, bool json)
{
	if (directory != NULL || json)
		return usage_error(json ? "--json does not go with a command, whose standard error it would mix with"
					: "a directory does not go with a command, which gets one of its own");
	if (argv[0] == NULL)
		return usage_error("a command is missing after --");
	return stats_command(argv);
}

int command_stats(int argc, char **argv)
{
	static const struct option options[] = {{"directory", required_argument, NULL, 'd'},
						{"help", no_argument, NULL, 'h'},
						{"json", no_argument, NULL, 'j'},
						{NULL, 0, NULL, 0}};
	struct snapshot_filter filter = {0, NULL};
	const char *directory = NULL;
	bool json = false;
	int c;

	/* Options may also follow the PID, but what follows -- is the command's. */
	while (optind == 0 || optind < argc) {
		c = getopt_long(argc, argv, "+d:hj", options, NULL);
		if (c == 'h' || c == '?')
			return c == 'h' ? help() : EXIT_USAGE;
		if (c == 'd')
			directory = optarg;
		else if (c == 'j')
			json = true;
		/* The end of the options, and not a directory of that name. */
		else if (strcmp(argv[optind - 1], "--") == 0 && argv[optind - 1] != directory)
			return filter.name != NULL ? usage_error("a PID or a name does not go with a command")
						   : parse_command(argv + optind, directory, json);
		else if (optind < argc && filter.name == NULL)
			filter.name = argv[optind++];
		else if (optind < argc)
			return usage_error("one PID or NAME, or -- and a command");
	}
	if (filter.name != NULL)
		filter.pid = parse_pid(filter.name);
	if (filter.pid != 0)
		filter.name = NULL;
	return stats_live(directory != NULL ? directory : COUNTERS_DIRECTORY, &filter, json);
}
