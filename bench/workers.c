/* SPDX-License-Identifier: Apache-2.0 */
#include "workers.h"

#include <err.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "afalg/catalogue.h"
#include "engine.h"
#include "runner.h"
#include "support.h"

/* The clock is looked at so many times in a span. */
#define LOOKS 20

struct task {
	enum algorithm_id algorithm;
	size_t size;
	unsigned side;
	bool run;     /* else only prepare */
	double start; /* by the monotonic clock; 0: now */
};

struct result {
	bool present;
	double seconds, processor_seconds;
	unsigned long calls;
};

static struct {
	pid_t pid;
	int fd;
} workers[WORKERS_MAX];
static unsigned worker_count;

static double clock_seconds(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*** In a worker ***/

static struct {
	const struct workers_setup *setup;
	OSSL_LIB_CTX *reference;
	OSSL_PROVIDER *providers[2 * SIDES_MAX];
	unsigned provider_count;
	struct side sides[SIDES_MAX];
	bool loaded[SIDES_MAX];
	struct runner runners[SIDES_MAX];
	bool open[SIDES_MAX];
	unsigned long batch[SIDES_MAX]; /* calls between two looks at the clock */
	enum algorithm_id algorithm;    /* that the runners are open for */
	size_t size;
} self;

static void load_provider(OSSL_LIB_CTX *context, const char *name)
{
	self.providers[self.provider_count] = OSSL_PROVIDER_load(context, name);
	if (self.providers[self.provider_count++] == NULL)
		errx(1, "no %s provider", name);
}

static void load_legacy(OSSL_LIB_CTX *context)
{
	if (!self.setup->legacy)
		return;
	load_provider(context, "default");
	load_provider(context, "legacy");
}

static void load_sides(void)
{
	self.reference = support_reference();
	load_legacy(self.reference);
	for (unsigned s = 0; s < SIDES_MAX && self.setup->sides[s] != NULL; s++) {
		const char *name = self.setup->sides[s];
		struct side *side = &self.sides[s];

		side->source.context = self.reference;
		self.loaded[s] = true;
		if (strcmp(name, "provider") == 0) {
			side->source.context = support_load(self.setup->settings);
			load_legacy(side->source.context);
		} else if (strcmp(name, "bare") == 0) {
			side->bare = true;
			self.loaded[s] = afalg_catalogue_support() == 0;
		} else if (strcmp(name, "default") != 0) {
			side->source.engine = engine_load(name);
			self.loaded[s] = side->source.engine != NULL;
		}
	}
}

static void unload_sides(void)
{
	while (self.provider_count > 0)
		OSSL_PROVIDER_unload(self.providers[--self.provider_count]);
	for (unsigned s = 0; s < SIDES_MAX; s++) {
		engine_unload(self.sides[s].source.engine);
		if (self.sides[s].source.context != self.reference)
			OSSL_LIB_CTX_free(self.sides[s].source.context);
	}
	OSSL_LIB_CTX_free(self.reference);
}

static void close_runners(void)
{
	for (unsigned s = 0; s < SIDES_MAX; s++)
		if (self.open[s])
			runner_close(&self.runners[s]);
	memset(self.open, 0, sizeof(self.open));
}

static unsigned long run_until(unsigned side, double end)
{
	unsigned long calls = 0;

	do {
		runner_run(&self.runners[side], self.size, self.batch[side]);
		calls += self.batch[side];
	} while (clock_seconds(CLOCK_MONOTONIC) < end);
	return calls;
}

/* The least time of some tries: one alone may have met the first call, which opens things, or a busy machine. */
static double least_seconds(unsigned side, unsigned long n)
{
	double least = 0;

	for (int i = 0; i < 3; i++) {
		const double start = clock_seconds(CLOCK_MONOTONIC);
		double seconds;

		runner_run(&self.runners[side], self.size, n);
		seconds = clock_seconds(CLOCK_MONOTONIC) - start;
		if (i == 0 || seconds < least)
			least = seconds;
	}
	return least;
}

/* To look at the clock costs a system call in some guests: as much as a thousand short calls of software. */
static void calibrate(unsigned side)
{
	const double wish = self.setup->seconds / LOOKS;
	unsigned long n = 1;
	double seconds;

	while ((seconds = least_seconds(side, n)) < wish / 4)
		n *= 2;
	self.batch[side] = (unsigned long)((double)n * wish / seconds);
	if (self.batch[side] == 0)
		self.batch[side] = 1;
}

static void prepare(const struct task *t)
{
	if (t->algorithm != self.algorithm || t->size != self.size)
		close_runners();
	self.algorithm = t->algorithm;
	self.size = t->size;
	if (self.open[t->side] || !self.loaded[t->side])
		return;
	self.open[t->side] = runner_open(&self.runners[t->side], &self.sides[t->side], &algorithms[t->algorithm],
					 t->size, self.setup->anew);
	if (!self.open[t->side]) {
		runner_close(&self.runners[t->side]);
		return;
	}
	calibrate(t->side);
	run_until(t->side, clock_seconds(CLOCK_MONOTONIC) + self.setup->seconds / 2); /* warms up */
}

static void sleep_until(double when)
{
	const double left = when - clock_seconds(CLOCK_MONOTONIC);
	const struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};

	if (left > 0)
		nanosleep(&t, NULL);
}

static struct result perform(const struct task *t)
{
	struct result r = {0};
	double start;

	prepare(t);
	r.present = self.open[t->side];
	if (!r.present || !t->run)
		return r;
	sleep_until(t->start);
	/* Where several run, a late start is part of the span: others had the processor. */
	start = t->start > 0 ? t->start : clock_seconds(CLOCK_MONOTONIC);
	r.processor_seconds = -clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	r.calls = run_until(t->side, start + self.setup->seconds);
	r.processor_seconds += clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
	r.seconds = clock_seconds(CLOCK_MONOTONIC) - start;
	return r;
}

static _Noreturn void work(const struct workers_setup *setup, int fd)
{
	struct task t;

	self.setup = setup;
	support_init();
	load_sides();
	if (write(fd, self.loaded, sizeof(self.loaded)) != (ssize_t)sizeof(self.loaded))
		err(1, "write");
	while (read(fd, &t, sizeof(t)) == (ssize_t)sizeof(t)) {
		const struct result r = perform(&t);

		if (write(fd, &r, sizeof(r)) != (ssize_t)sizeof(r))
			err(1, "write");
	}
	close_runners();
	unload_sides();
	exit(0);
}

/*** In the program ***/

static void receive(unsigned worker, void *reply, size_t length)
{
	if (recv(workers[worker].fd, reply, length, MSG_WAITALL) != (ssize_t)length)
		errx(1, "a worker has ended");
}

void workers_start(unsigned n, const struct workers_setup *setup, bool loaded[SIDES_MAX])
{
	int pair[2];

	fflush(NULL); /* else the workers' exits write it once more */
	for (worker_count = 0; worker_count < n; worker_count++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
			err(1, "socketpair");
		workers[worker_count].fd = pair[0];
		workers[worker_count].pid = fork();
		if (workers[worker_count].pid < 0)
			err(1, "fork");
		if (workers[worker_count].pid == 0) {
			for (unsigned i = 0; i <= worker_count; i++)
				close(workers[i].fd);
			work(setup, pair[1]);
		}
		close(pair[1]);
	}
	for (unsigned i = 0; i < n; i++)
		receive(i, loaded, SIDES_MAX * sizeof(*loaded));
}

void workers_stop(void)
{
	for (unsigned i = 0; i < worker_count; i++) {
		int status;

		close(workers[i].fd);
		if (waitpid(workers[i].pid, &status, 0) != workers[i].pid || status != 0)
			errx(1, "a worker failed");
	}
	worker_count = 0;
}

static void tell(const struct task *t)
{
	for (unsigned i = 0; i < worker_count; i++)
		if (write(workers[i].fd, t, sizeof(*t)) != (ssize_t)sizeof(*t))
			err(1, "a worker has ended");
}

bool workers_prepare(enum algorithm_id algorithm, size_t size, unsigned side)
{
	const struct task t = {.algorithm = algorithm, .size = size, .side = side};
	bool present = true;
	struct result r;

	tell(&t);
	for (unsigned i = 0; i < worker_count; i++) {
		receive(i, &r, sizeof(r));
		present = present && r.present;
	}
	return present;
}

struct work workers_run(enum algorithm_id algorithm, size_t size, unsigned side)
{
	/* Several start at the same time, when all have heard of it. */
	const double start = worker_count > 1 ? clock_seconds(CLOCK_MONOTONIC) + 5e-3 : 0;
	const struct task t = {.algorithm = algorithm, .size = size, .side = side, .run = true, .start = start};
	double bytes = 0, processor = 0;
	struct work w = {0};
	struct result r;

	tell(&t);
	for (unsigned i = 0; i < worker_count; i++) {
		receive(i, &r, sizeof(r));
		w.bytes_per_second += (double)size * (double)r.calls / r.seconds;
		bytes += (double)size * (double)r.calls;
		processor += r.processor_seconds;
	}
	w.processor_seconds_per_byte = processor / bytes;
	return w;
}
