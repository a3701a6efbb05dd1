/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../afalg/transport.h"
#include "call.h"
#include "check.h"
#include "counters_read.h"
#include "median.h"
#include "report.h"
#include "scratch.h"

#define WIN 1.05       /* as the router wants it */
#define PATIENCE 30000 /* milliseconds, beside what the spans take: modules to load, self-tests */

enum lane { SOFTWARE, KERNEL, LANES };

static const char *const policies[] = {[SOFTWARE] = "software", [KERNEL] = "kernel"};

struct measure_options measure_defaults(void)
{
	struct measure_options o = {.rounds = 15, .milliseconds = 10};

	for (size_t size = 16; size <= AFALG_REQUEST_MAX; size *= 2)
		o.sizes[o.size_count++] = size;
	return o;
}

bool measure_kernel_wins(const struct measure_point *p)
{
	return p->ratio >= WIN && p->low > 1;
}

bool measure_software_wins(const struct measure_point *p)
{
	return p->ratio <= 1 / WIN && p->high < 1;
}

void measure_judge(struct measurement *m)
{
	m->crossover = 0;
	for (unsigned i = m->count; i > 0 && measure_kernel_wins(&m->points[i - 1]); i--)
		m->crossover = m->points[i - 1].bytes;
}

/*** The child ***/

/* What it says. */
struct message {
	enum { BEGUN, POINT, ENDED, NOT_LOADED } what;
	enum algorithm_id id;
	size_t bytes;
	struct measure_point point;
	struct measure_proof proof;
	char failed[400];
};

/* Of the child. */
static struct {
	const struct measure_options *options;
	const char *scratch;
	int pipe;
	OSSL_LIB_CTX *contexts[LANES];
	struct call_source sources[LANES];
	struct call calls[LANES];
	unsigned long batch[LANES]; /* calls of a span */
	double seconds[LANES][MEASURE_ROUNDS_MAX];
	struct message message;
} self;

static void tell(int what)
{
	self.message.what = (__typeof__(self.message.what))what;
	if (write(self.pipe, &self.message, sizeof(self.message)) != (ssize_t)sizeof(self.message))
		_exit(EXIT_FAILURE); /* nobody listens */
}

static bool fail(const char *what)
{
	char text[300];

	check_error(text, sizeof(text));
	snprintf(self.message.failed, sizeof(self.message.failed), "%s%s%s", what, text[0] != '\0' ? ": " : "", text);
	return false;
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds that `n` calls take; negative where one fails. */
static double span(enum lane lane, size_t size, unsigned long n, clockid_t clock)
{
	const double start = seconds_of(clock);

	if (!call_run(&self.calls[lane], size, n)) {
		fail(lane == KERNEL ? "a call with policy=kernel failed" : "a call with policy=software failed");
		return -1;
	}
	return seconds_of(clock) - start;
}

/* How many calls make a span. The first of them open things, and wake up the device. */
static bool calibrate(enum lane lane, size_t size)
{
	const double wish = self.options->milliseconds * 1e-3;
	unsigned long n = 1;
	double seconds = span(lane, size, 4, CLOCK_MONOTONIC);

	while (seconds >= 0 && (seconds = span(lane, size, n, CLOCK_MONOTONIC)) < wish / 4 && seconds >= 0)
		n *= 2;
	if (seconds < 0)
		return false;
	n = (unsigned long)((double)n * wish / seconds);
	self.batch[lane] = n == 0 ? 1 : n;
	return true;
}

/* A span that counts, between two looks at the counters. */
static bool prove(enum lane lane, size_t size, double *seconds)
{
	const clockid_t clock = self.options->processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
	const char *name = algorithms[self.message.id].name;
	const struct counters_numbers before = counters_of_algorithm(self.scratch, name);
	const unsigned long n = self.batch[lane];
	struct measure_proof *p = &self.message.proof;
	struct counters_numbers after;

	*seconds = span(lane, size, n, clock) / (double)n;
	if (*seconds < 0)
		return false;
	if (*seconds == 0)
		return fail("this kernel does not account the time of the processor");
	after = counters_of_algorithm(self.scratch, name);
	if (lane == SOFTWARE) {
		p->software_calls += n;
		p->software_requests += after.kernel_requests - before.kernel_requests;
		return p->software_requests == 0 || fail("calls with policy=software went to the kernel");
	}
	p->kernel_calls += n;
	p->kernel_requests += after.kernel_requests - before.kernel_requests;
	p->fallbacks += after.fallbacks - before.fallbacks;
	if (p->fallbacks > 0)
		return fail("the kernel failed, and software did the calls again; AFALGPROV_LOG=debug tells why");
	return after.kernel_requests - before.kernel_requests >= n ||
	       fail("calls with policy=kernel did not go to the kernel; 'afalgctl check' tells why");
}

static int ascending(const void *a, const void *b)
{
	return median_ascending(a, b);
}

static void summarize(struct measure_point *p)
{
	const unsigned n = self.options->rounds;
	static double ratios[MEASURE_ROUNDS_MAX];

	for (unsigned i = 0; i < n; i++)
		ratios[i] = self.seconds[SOFTWARE][i] / self.seconds[KERNEL][i];
	qsort(ratios, n, sizeof(*ratios), ascending);
	p->low = ratios[n / 4];
	p->high = ratios[n - 1 - n / 4];
	p->ratio = median(ratios, n);
	p->software = median(self.seconds[SOFTWARE], n);
	p->kernel = median(self.seconds[KERNEL], n);
}

/* The lanes take turns, and in turn come first: what slows the machine for a while meets both. */
static bool measure_size(size_t size)
{
	self.message.point = (struct measure_point){.bytes = size};
	for (int lane = 0; lane < LANES; lane++)
		if (!calibrate((enum lane)lane, size))
			return false;
	for (unsigned round = 0; round < self.options->rounds; round++)
		for (unsigned i = 0; i < LANES; i++) {
			const enum lane lane = (enum lane)((i + round) % LANES);

			if (!prove(lane, size, &self.seconds[lane][round]))
				return false;
		}
	summarize(&self.message.point);
	return true;
}

/*
 * Whether calls of this size are the kernel's at all under policy=kernel: a message of ciphertext stealing that is too
 * short is not, and AAD and tag count for the most that a request may have.
 */
static bool goes_to_kernel(enum algorithm_id id, size_t size)
{
	const uint64_t before = counters_of_algorithm(self.scratch, algorithms[id].name).kernel_requests;

	return span(KERNEL, size, 1, CLOCK_MONOTONIC) >= 0 &&
	       counters_of_algorithm(self.scratch, algorithms[id].name).kernel_requests > before;
}

static bool begin(enum algorithm_id id)
{
	for (int lane = 0; lane < LANES; lane++)
		if (!call_fetch(&self.calls[lane], &self.sources[lane], id, false))
			return fail(
				"this OpenSSL does not have it, or only with its legacy provider, which is not here");
	for (int lane = 0; lane < LANES; lane++)
		if (!call_begin(&self.calls[lane]))
			return fail("it cannot be begun");
	return true;
}

static void measure_algorithm(enum algorithm_id id)
{
	bool ok, any = false;

	memset(&self.message, 0, sizeof(self.message));
	memset(self.calls, 0, sizeof(self.calls));
	self.message.id = id;
	ok = begin(id);
	for (unsigned i = 0; ok && i < self.options->size_count; i++) {
		const size_t size = self.options->sizes[i];

		self.message.bytes = size;
		tell(BEGUN);
		if (goes_to_kernel(id, size) && measure_size(size)) {
			tell(POINT);
			any = true;
		}
		ok = self.message.failed[0] == '\0';
	}
	if (ok && !any)
		fail("no call with policy=kernel went to the kernel; 'afalgctl check' tells why");
	for (int lane = 0; lane < LANES; lane++)
		call_close(&self.calls[lane]);
	tell(ENDED);
}

static bool load(const struct configuration *c, enum lane lane)
{
	self.contexts[lane] = check_context(c, self.scratch, policies[lane]);
	self.sources[lane] = (struct call_source){.context = self.contexts[lane], .query = "provider=afalgprov"};
	if (self.contexts[lane] == NULL)
		return false;
	/* The legacy provider first: afalgprov has its algorithms only beside it. Many systems do without. */
	OSSL_PROVIDER_try_load(self.contexts[lane], "legacy", 1);
	OSSL_PROVIDER_load(self.contexts[lane], "default");
	ERR_clear_error();
	return OSSL_PROVIDER_load(self.contexts[lane], c->name) != NULL;
}

static _Noreturn void child(const bool *chosen)
{
	static struct configuration c;
	char text[300];

	report_silence();
	check_configuration(&c);
	if (load(&c, SOFTWARE) && load(&c, KERNEL)) {
		for (int id = 0; id < ALGORITHM_COUNT; id++)
			if (chosen[id])
				measure_algorithm((enum algorithm_id)id);
	} else {
		check_error(text, sizeof(text));
		snprintf(self.message.failed, sizeof(self.message.failed), "%s cannot be loaded from %.150s: %.150s",
			 c.name, c.module, text);
		tell(NOT_LOADED);
	}
	check_configuration_free(&c);
	_exit(EXIT_SUCCESS);
}

/*** The parent ***/

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* So that what was made is removed: the wait for the child ends with EINTR. */
static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = interrupt};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
}

struct listener {
	struct measurement *results;
	int count;
	unsigned done, of; /* sizes */
	unsigned sizes;    /* of an algorithm */
	measure_progress_fn *progress;
	bool not_loaded;
};

static void take(struct listener *l, const struct message *m)
{
	struct measurement *r = &l->results[l->count];

	switch (m->what) {
	case BEGUN:
		r->id = m->id;
		l->progress(l->done++, l->of, m->id, m->bytes);
		return;
	case POINT:
		r->points[r->count++] = m->point;
		r->proof = m->proof;
		return;
	case ENDED:
		r->id = m->id;
		memcpy(r->failed, m->failed, sizeof(r->failed));
		measure_judge(r);
		l->count++;
		l->done = (unsigned)l->count * l->sizes;
		return;
	case NOT_LOADED:
		fprintf(stderr, "afalgctl: %s\n", m->failed);
		l->not_loaded = true;
		return;
	}
}

/* The child is not waited for where it hangs: no signal may reach it. */
static void listen_to(struct listener *l, int pipe, pid_t pid, int patience)
{
	struct pollfd p = {.fd = pipe, .events = POLLIN};
	static struct message m;
	const unsigned algorithms_in_all = l->of / l->sizes;
	struct measurement *r;
	int ready;

	while ((ready = poll(&p, 1, patience)) > 0 && read(pipe, &m, sizeof(m)) == (ssize_t)sizeof(m))
		take(l, &m);
	if (ready > 0)
		waitpid(pid, NULL, 0);
	if (l->not_loaded || l->count == (int)algorithms_in_all)
		return;
	if (interrupted) {
		kill(pid, SIGKILL);
		return;
	}
	r = &l->results[l->count++];
	r->crossover = 0;
	if (ready > 0) {
		snprintf(r->failed, sizeof(r->failed), "the process that measured died; no more was measured");
		return;
	}
	kill(pid, SIGKILL);
	snprintf(r->failed, sizeof(r->failed), "no answer in %d s; no more was measured", patience / 1000);
}

static int run(const bool *chosen, struct listener *l)
{
	const int patience = PATIENCE + (int)(4 * self.options->rounds * self.options->milliseconds);
	int ends[2];
	pid_t pid;

	fflush(NULL);
	catch_signals();
	if (pipe(ends) != 0 || (pid = fork()) < 0) {
		perror("afalgctl: a process to measure in");
		return -1;
	}
	if (pid == 0) {
		close(ends[0]);
		self.pipe = ends[1];
		child(chosen);
	}
	close(ends[1]);
	listen_to(l, ends[0], pid, patience);
	close(ends[0]);
	return l->not_loaded || interrupted ? -1 : l->count;
}

int measure(const bool chosen[ALGORITHM_COUNT], const struct measure_options *o, struct measurement *results,
	    measure_progress_fn *progress)
{
	struct listener l = {.results = results, .sizes = o->size_count, .progress = progress};
	char scratch[200];
	int count;

	for (int id = 0; id < ALGORITHM_COUNT; id++)
		l.of += chosen[id] ? o->size_count : 0;
	if (l.of == 0)
		return 0;
	if (!scratch_make(scratch, sizeof(scratch)))
		return -1;
	setenv("AFALGPROV_COUNTERS", scratch, 1);
	self.options = o;
	self.scratch = scratch;
	memset(results, 0, l.of / o->size_count * sizeof(*results));
	count = run(chosen, &l);
	scratch_remove(scratch);
	return count;
}
