/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the algorithms through the kernel. A driver that never answers holds its caller for good, beyond the reach of
 * any signal; so a child does the work, and tells through a pipe how far it has come.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "counters_read.h"
#include "offer.h"
#include "report.h"

#define PATIENCE 30000 /* milliseconds for one algorithm: slow processors, modules to load, self-tests */

/* What the child says. */
struct answer {
	int id;     /* of an algorithm; ALGORITHM_COUNT: the provider cannot be loaded; -1: the end */
	bool begun; /* and no more yet */
	uint64_t kernel, fallbacks, errors;
	char wrong[300]; /* as answer_check(); "-" for null */
	char said[300];  /* afalgprov's log, its last line */
};

/*** The child ***/

/* A child that hangs must not keep open what others read to its end. */
static void redirect(void)
{
	if (freopen("/dev/null", "r", stdin) == NULL || freopen("/dev/null", "w", stdout) == NULL)
		_exit(EXIT_FAILURE);
}

/* The last line of the log since `from`, without the name at its beginning; "" if there is none. */
static void last_said(off_t from, char *line, size_t size)
{
	char text[2048];
	ssize_t n = pread(STDERR_FILENO, text, sizeof(text) - 1, from);
	const char *last;

	text[n > 0 ? n : 0] = '\0';
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	last = strrchr(text, '\n');
	last = last != NULL ? last + 1 : text;
	if (strncmp(last, "afalgprov: ", strlen("afalgprov: ")) == 0)
		last += strlen("afalgprov: ");
	snprintf(line, size, "%.*s", (int)size - 1, last);
}

static void tell(int pipe, const struct answer *a)
{
	if (write(pipe, a, sizeof(*a)) != (ssize_t)sizeof(*a))
		_exit(EXIT_FAILURE); /* nobody listens */
}

static void answer(int pipe, OSSL_LIB_CTX *ours, OSSL_LIB_CTX *reference, int id, const char *scratch)
{
	const char *name = algorithms[id].name, *wrong;
	struct counters_numbers before = counters_of_algorithm(scratch, name), after;
	struct answer a = {.id = id, .begun = true};
	off_t said;

	tell(pipe, &a);
	said = lseek(STDERR_FILENO, 0, SEEK_END);
	wrong = answer_check(ours, reference, (enum algorithm_id)id);
	after = counters_of_algorithm(scratch, name);
	a.begun = false;
	a.kernel = after.kernel_requests - before.kernel_requests;
	a.fallbacks = after.fallbacks - before.fallbacks;
	a.errors = after.errors - before.errors;
	snprintf(a.wrong, sizeof(a.wrong), "%s", wrong != NULL ? wrong : "-");
	last_said(said, a.said, sizeof(a.said));
	tell(pipe, &a);
}

static void child(int pipe, const struct configuration *c, const char *scratch, const bool *chosen)
{
	OSSL_LIB_CTX *ours = check_context(c, scratch, "kernel"), *reference = OSSL_LIB_CTX_new();
	struct answer failed = {.id = ALGORITHM_COUNT};

	/* The legacy provider first: afalgprov has its algorithms only beside it. Many systems do without. */
	OSSL_PROVIDER_try_load(reference, "legacy", 1);
	OSSL_PROVIDER_load(reference, "default");
	if (ours != NULL) {
		OSSL_PROVIDER_try_load(ours, "legacy", 1);
		OSSL_PROVIDER_load(ours, "default");
	}
	ERR_clear_error();
	if (ours == NULL || OSSL_PROVIDER_load(ours, c->name) == NULL) {
		check_error(failed.wrong, sizeof(failed.wrong));
		tell(pipe, &failed);
		return;
	}
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (chosen[id] && offer_of((enum algorithm_id)id)->error == 0)
			answer(pipe, ours, reference, id, scratch);
}

/*** The parent ***/

struct tally {
	unsigned right, problems, not_ours;
	int busy; /* the algorithm that the child has begun; -1: none */
};

static void take(struct tally *t, const struct answer *a)
{
	const char *name = a->id < ALGORITHM_COUNT ? algorithms[a->id].name : NULL;
	const char *driver = name == NULL ? NULL : offer_of((enum algorithm_id)a->id)->driver.name;

	t->busy = a->begun ? a->id : -1;
	if (a->begun)
		return;
	if (a->wrong[0] == '\0' && name != NULL) {
		t->not_ours++;
		return;
	}
	t->right++;
	if (name == NULL)
		report(FINDING_PROBLEM, "not_loaded", NULL, "no answers: afalgprov is not loaded: %s", a->wrong);
	else if (strcmp(a->wrong, "-") != 0)
		report(FINDING_PROBLEM, "wrong", "set 'thresholds = NAME:never' for it, and report the driver's fault",
		       "%s by %s: %s", name, driver, a->wrong);
	else if (a->fallbacks + a->errors > 0)
		report(FINDING_PROBLEM, "failed",
		       "the kernel may say more: dmesg; AFALGPROV_LOG=debug tells each error",
		       "%s by %s: the kernel failed %llu of %llu requests, and software redid them%s%s", name, driver,
		       (unsigned long long)(a->fallbacks + a->errors),
		       (unsigned long long)(a->fallbacks + a->errors + a->kernel), a->said[0] != '\0' ? ": " : "",
		       a->said);
	else if (a->kernel == 0)
		report(FINDING_PROBLEM, "not_in_kernel", "AFALGPROV_LOG=debug tells why",
		       "%s by %s: the result is right, but the kernel did not do it%s%s", name, driver,
		       a->said[0] != '\0' ? ": " : "", a->said);
	else
		return;
	t->right--;
	t->problems++;
}

/* The child is not waited for: a request that hangs keeps it from ending, even after it has found a way round it. */
static void listen_to(struct tally *t, int pipe, pid_t pid)
{
	struct pollfd p = {.fd = pipe, .events = POLLIN};
	struct answer a = {.id = 0};
	bool silent = false;

	while (a.id >= 0) {
		silent = poll(&p, 1, PATIENCE) == 0;
		if (silent || read(pipe, &a, sizeof(a)) != (ssize_t)sizeof(a))
			break;
		if (a.id >= 0)
			take(t, &a);
	}
	if (t->busy < 0)
		return;
	t->problems++;
	if (silent) {
		kill(pid, SIGKILL);
		report(FINDING_PROBLEM, "hangs", "set 'thresholds = NAME:never' for it, and report the driver's fault",
		       "%s by %s: no answer in %d s; later algorithms were not tried", algorithms[t->busy].name,
		       offer_of((enum algorithm_id)t->busy)->driver.name, PATIENCE / 1000);
	} else {
		report(FINDING_PROBLEM, "crash", "report that", "%s by %s: the process that tried it died",
		       algorithms[t->busy].name, offer_of((enum algorithm_id)t->busy)->driver.name);
	}
}

static void run(struct tally *t, const struct configuration *c, const char *scratch, const bool *chosen)
{
	static const struct answer end = {.id = -1};
	int ends[2];
	pid_t pid;

	if (pipe(ends) != 0 || (pid = fork()) < 0) {
		report(FINDING_PROBLEM, "fork", NULL, "%s", strerror(errno));
		return;
	}
	if (pid == 0) {
		close(ends[0]);
		redirect();
		child(ends[1], c, scratch, chosen);
		tell(ends[1], &end);
		_exit(EXIT_SUCCESS);
	}
	close(ends[1]);
	listen_to(t, ends[0], pid);
	close(ends[0]);
}

void check_answers(const struct configuration *c, const char *scratch, const bool chosen[ALGORITHM_COUNT])
{
	struct tally t = {.busy = -1};
	bool any = false;

	report_area("answers", "Known answers (policy=kernel, beside the default provider)");
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		any = any || (chosen[id] && offer_of((enum algorithm_id)id)->error == 0);
	if (!any) {
		report(FINDING_NOTE, "nothing", NULL, "the kernel serves nothing that could be tried");
		return;
	}
	fflush(stdout);
	run(&t, c, scratch, chosen);
	if (t.right > 0)
		report(FINDING_OK, "right", NULL,
		       "%u algorithms done by the kernel, as the counters show: results right", t.right);
	if (t.not_ours > 0)
		report(FINDING_OK, "not_ours", NULL, "%u algorithms that the kernel has, but this OpenSSL does not",
		       t.not_ours);
}
