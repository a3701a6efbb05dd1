/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl top: who uses which lane at this moment, refreshed until one has seen enough. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "afalgctl.h"
#include "lanes.h"
#include "numbers.h"
#include "snapshot.h"

/* What a process did with an algorithm since the last look. */
struct row {
	const struct snapshot_process *process;
	const struct counters_line *line;
	double kernel, software, requests; /* a second; the first two in bytes */
	struct counters_numbers since;
};

struct screen {
	bool terminal;
	struct termios before;
	size_t rows; /* that fit */
};

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/*** Rates ***/

static const struct counters_line *earlier(const struct snapshot *before, const struct snapshot_process *p, uint32_t i)
{
	for (size_t n = 0; n < before->count; n++) {
		const struct snapshot_process *b = &before->processes[n];

		/* Another process may have got the number meanwhile: its counters begin anew. */
		if (b->pid == p->pid && b->algorithms == p->algorithms && strcmp(b->command, p->command) == 0 &&
		    b->lines[i].n.software_calls <= p->lines[i].n.software_calls &&
		    b->lines[i].n.kernel_requests <= p->lines[i].n.kernel_requests)
			return &b->lines[i];
	}
	return NULL;
}

static void fill(struct row *r, const struct snapshot *before, const struct snapshot_process *p, uint32_t i,
		 double seconds)
{
	static const struct counters_line none = {.algorithm = ""};
	const struct counters_line *was = earlier(before, p, i);
	const struct counters_numbers *n = &p->lines[i].n, *b = was != NULL ? &was->n : &none.n;

	*r = (struct row){.process = p, .line = &p->lines[i]};
	r->since.kernel_bytes = n->kernel_bytes - b->kernel_bytes;
	r->since.software_bytes = n->software_bytes - b->software_bytes;
	r->since.kernel_requests = n->kernel_requests - b->kernel_requests;
	r->kernel = (double)r->since.kernel_bytes / seconds;
	r->software = (double)r->since.software_bytes / seconds;
	r->requests = (double)r->since.kernel_requests / seconds;
}

static int falling(double a, double b)
{
	return (a < b) - (a > b);
}

static int by_rate(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = falling(x->kernel, y->kernel);

	if (order == 0)
		order = falling(x->software, y->software);
	if (order == 0)
		order = falling((double)x->line->n.kernel_bytes, (double)y->line->n.kernel_bytes);
	return order != 0 ? order : (x->process->pid > y->process->pid) - (x->process->pid < y->process->pid);
}

/* Rows of all algorithms that have counts, the busiest first; the caller frees them. */
static struct row *rows_make(const struct snapshot *now, const struct snapshot *before, double seconds, size_t *count)
{
	size_t most = 1;
	struct row *rows;

	for (size_t i = 0; i < now->count; i++)
		most += now->processes[i].algorithms;
	rows = calloc(most, sizeof(*rows));
	*count = 0;
	for (size_t i = 0; rows != NULL && i < now->count; i++)
		for (uint32_t a = 0; a < now->processes[i].algorithms; a++)
			if (!counters_idle(&now->processes[i].lines[a].n))
				fill(&rows[(*count)++], before, &now->processes[i], a, seconds);
	if (rows != NULL)
		qsort(rows, *count, sizeof(*rows), by_rate);
	return rows;
}

/*** Output ***/

static void add_rate(struct table *t, double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	size_t u = 0;

	for (; bytes >= 1024 && u + 1 < sizeof(units) / sizeof(*units); u++)
		bytes /= 1024;
	table_add(t, "%.*f %s", u == 0 || bytes >= 100 ? 0 : 1, bytes, units[u]);
}

static void add_row(struct table *t, const struct row *r)
{
	const struct counters_numbers *n = &r->line->n;

	table_add(t, "%d", (int)r->process->pid);
	table_add(t, "%s", snapshot_user(r->process->owner));
	table_add(t, "%s", r->process->command);
	table_add(t, "%s", r->line->algorithm);
	add_rate(t, r->kernel);
	add_rate(t, r->software);
	table_add(t, "%.0f", r->requests);
	if (numbers_share(&r->since) >= 0)
		table_add(t, "%.1f%%", 100 * numbers_share(&r->since));
	else
		table_add(t, "-");
	table_add(t, "%" PRIu64, n->fallbacks);
	table_add(t, "%" PRIu64, n->errors);
	table_add(t, "%s", lanes_state(n));
}

static void print_summary(const struct snapshot *now, const struct row *rows, size_t count, double seconds)
{
	struct table sum = {.align = "rr"};
	double kernel = 0, software = 0;
	char clock[16];
	time_t t = time(NULL);
	struct tm local;

	for (size_t i = 0; i < count; i++) {
		kernel += rows[i].kernel;
		software += rows[i].software;
	}
	localtime_r(&t, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	add_rate(&sum, kernel);
	add_rate(&sum, software);
	printf("afalgctl top, %s, the last %.1f s: processes %zu, kernel %s/s, software %s/s\n", clock, seconds,
	       now->count, sum.cells[0], sum.cells[1]);
	table_free(&sum);
}

static void print_rows(const struct screen *s, const struct row *rows, size_t count)
{
	static const char *const head[] = {"PID",       "USER",       "COMMAND",     "ALGORITHM",
					   "KERNEL/S",  "SOFTWARE/S", "REQUESTS/S",  "IN KERNEL",
					   "FALLBACKS", "ERRORS",     "KERNEL LANE", NULL};
	struct table t = {.align = "rlllrrrrrrl"};
	const size_t shown = count < s->rows ? count : s->rows;

	numbers_cells(&t, head);
	for (size_t i = 0; i < shown; i++)
		add_row(&t, &rows[i]);
	table_print(&t, stdout);
	if (shown < count)
		printf("and %zu more\n", count - shown);
}

static void print(const struct screen *s, const struct snapshot *now, const struct snapshot *before, double seconds)
{
	size_t count;
	struct row *rows = rows_make(now, before, seconds, &count);

	if (rows == NULL)
		return;
	if (s->terminal)
		fputs("\033[H\033[2J", stdout);
	print_summary(now, rows, count, seconds);
	print_rows(s, rows, count);
	if (!s->terminal)
		putchar('\n');
	fflush(stdout);
	free(rows);
}

/*** The terminal ***/

static void screen_open(struct screen *s)
{
	struct termios raw;

	s->terminal =
		isatty(STDOUT_FILENO) != 0 && isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &s->before) == 0;
	if (!s->terminal)
		return;
	raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?7l", stdout); /* a screen of its own, whose lines end at the edge */
}

static void screen_close(const struct screen *s)
{
	if (!s->terminal)
		return;
	fputs("\033[?7h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
}

static void screen_measure(struct screen *s)
{
	struct winsize size;

	s->rows = SIZE_MAX;
	if (s->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
		s->rows = size.ws_row > 6 ? size.ws_row - 4u : 2;
}

/* Waits for the next look; false: the user has seen enough. */
static bool wait_for(const struct screen *s, double seconds)
{
	struct pollfd input = {.fd = s->terminal ? STDIN_FILENO : -1, .events = POLLIN};
	char key = '\0';

	if (poll(&input, 1, (int)(seconds * 1000)) > 0 && read(STDIN_FILENO, &key, 1) <= 0)
		return false;
	return !ended && key != 'q' && key != 'Q';
}

static double monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*** The command ***/

static int watch(const char *directory, double interval, unsigned long iterations)
{
	static const struct snapshot_filter all = {0, NULL};
	static struct snapshot before, now;
	struct screen s = {.terminal = false};
	double then, seconds = 0;

	if (!snapshot_take(&before, directory, &all))
		return EXIT_FAILURE;
	then = monotonic();
	screen_open(&s);
	for (unsigned long i = 0; (iterations == 0 || i < iterations) && wait_for(&s, interval); i++) {
		if (!snapshot_take(&now, directory, &all))
			break;
		seconds = monotonic() - then;
		then += seconds;
		screen_measure(&s);
		print(&s, &now, &before, seconds);
		snapshot_free(&before);
		before = now;
		if (ferror(stdout))
			break;
	}
	screen_close(&s);
	snapshot_free(&before);
	return EXIT_SUCCESS;
}

static bool parse_number(const char *text, double least, double most, double *number)
{
	char *tail;

	errno = 0;
	*number = strtod(text, &tail);
	return tail != text && *tail == '\0' && errno == 0 && *number >= least && *number <= most;
}

int command_top(int argc, char **argv)
{
	static const struct option options[] = {{"delay", required_argument, NULL, 'd'},
						{"directory", required_argument, NULL, 'D'},
						{"help", no_argument, NULL, 'h'},
						{"iterations", required_argument, NULL, 'n'},
						{NULL, 0, NULL, 0}};
	const struct sigaction action = {.sa_handler = end};
	const char *directory = COUNTERS_DIRECTORY;
	double interval = 2, iterations = 0;
	int c;

	while ((c = getopt_long(argc, argv, "d:hn:", options, NULL)) != -1) {
		if (c == 'D')
			directory = optarg;
		else if (c == 'd' && !parse_number(optarg, 0.1, 3600, &interval))
			return usage_error("-d wants seconds, from 0.1 to 3600");
		else if (c == 'n' && !parse_number(optarg, 1, 1e9, &iterations))
			return usage_error("-n wants a number from 1 on");
		else if (c != 'd' && c != 'n')
			return c == 'h' ? help() : EXIT_USAGE;
	}
	if (optind < argc)
		return usage_error("top takes no argument");
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return watch(directory, interval, (unsigned long)iterations);
}
