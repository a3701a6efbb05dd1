/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of the counters: against its writer, against files of another build, and against forged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../provider/counters.h"
#include "../../provider/route.h"
#include "../../tools/counters_read.h"

static char directory[64];

/*** Files ***/

/* A build with one algorithm that this one lacks, a longer head, longer slots and more counters. */
struct other_counts {
	struct counters_numbers n;
	uint64_t more_counts;
};

struct other_file {
	uint64_t magic;
	uint32_t head_size, slot_size, slots, algorithms, counts_size, unused;
	int32_t births;
	int32_t sharers;
	int64_t birth;
	char names[2][COUNTERS_NAME_SIZE];
	char drivers[2][COUNTERS_DRIVER_SIZE];
	uint64_t more_head;
	struct {
		int32_t pid;
		char command[28];
		uint32_t policy, unused;
		struct other_counts counts[2];
		uint32_t more_slot;
	} slot[4];
};

static const struct other_file other = {
	.magic = COUNTERS_MAGIC,
	.head_size = offsetof(struct other_file, slot),
	.slot_size = sizeof(((struct other_file *)0)->slot[0]),
	.slots = 4,
	.algorithms = 2,
	.counts_size = sizeof(struct other_counts),
	.names = {"SM4-CBC", "SHA2-256"},
	.more_head = UINT64_MAX,
	.drivers = {"", "sha256-device"},
	.slot = {{.counts = {{{.software_calls = 1}, 9}, {{.errors = 7, .causes = {[7] = 7}}, 9}}},
		 {.command = "one",
		  .policy = 2,
		  .counts = {{{.software_calls = 2}, 9}, {{.kernel_bytes = 1000, .lane = COUNTERS_LANE_OPEN}, 9}}},
		 {.counts = {{{.software_calls = 4}, 9}}},
		 {.counts = {{{.software_calls = 8}, 9}}}},
};

static void path_of(char *path, size_t size, const char *name)
{
	assert_true(snprintf(path, size, "%s/%s", directory, name) < (int)size);
}

static void put(const char *name, const void *bytes, size_t size)
{
	char path[256];
	FILE *f;

	path_of(path, sizeof(path), name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static bool there(const char *name)
{
	char path[256];
	struct stat st;

	path_of(path, sizeof(path), name);
	return lstat(path, &st) == 0;
}

/* The number of a process that has ended. */
static pid_t dead_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/*** What was read ***/

struct seen {
	int slots, processes;
	char command[32];
	uint32_t policy;
	struct counters_line line; /* of SHA2-256 */
};

static void see(const struct counters_of_slot *s, void *arg)
{
	struct seen *seen = arg;

	seen->slots++;
	if (s->kind != COUNTERS_OF_PROCESS)
		return;
	seen->processes++;
	snprintf(seen->command, sizeof(seen->command), "%s", s->command);
	seen->policy = s->policy;
	for (uint32_t i = 0; i < s->algorithms; i++)
		if (strcmp(s->lines[i].algorithm, "SHA2-256") == 0)
			seen->line = s->lines[i];
}

static struct counters_sum sum;

static int sum_directory(const char *name)
{
	memset(&sum, 0, sizeof(sum));
	return counters_sum_directory(&sum, name);
}

static const struct counters_numbers *sum_of(const char *name)
{
	for (uint32_t i = 0; i < sum.count; i++)
		if (strcmp(sum.lines[i].algorithm, name) == 0)
			return &sum.lines[i].n;
	fail_msg("%s is not in the sum", name);
	return NULL;
}

/* Reads the directory: `files` are sound and nothing is read of any other. */
static void expect(int files)
{
	struct seen seen = {0};

	assert_int_equal(counters_read(directory, COUNTERS_ALL, see, &seen), files);
	assert_int_equal(seen.slots, files * 4);
	assert_int_equal(sum_directory(directory), files);
	assert_int_equal(sum.count, files == 0 ? 0 : 2);
}

/*** Set-up ***/

static int make_directory(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/counters_test.XXXXXX");
	return mkdtemp(directory) == NULL ? -1 : 0;
}

static int remove_directory(void **state)
{
	DIR *d = opendir(directory);
	struct dirent *e;

	(void)state;
	while (d != NULL && (e = readdir(d)) != NULL)
		unlinkat(dirfd(d), e->d_name, e->d_type == DT_DIR && e->d_name[0] != '.' ? AT_REMOVEDIR : 0);
	if (d != NULL)
		closedir(d);
	return rmdir(directory);
}

/*** Tests ***/

static void no_directory(void **state)
{

	(void)state;
	assert_int_equal(sum_directory("/nonexistent"), -ENOENT);
	expect(0);
}

static void another_build(void **state)
{

	(void)state;
	put("1", &other, sizeof(other));
	put("1.1", &other, sizeof(other));
	expect(2);
	assert_int_equal(sum_directory(directory), 2);
	assert_int_equal(sum_of("SM4-CBC")->software_calls, 2 * (1 + 2 + 4 + 8));
	assert_int_equal(sum_of("SHA2-256")->kernel_bytes, 2000);
	assert_int_equal(sum_of("SHA2-256")->errors, 14);
	assert_int_equal(sum_of("SHA2-256")->causes[7], 14);
}

/* What holds for a process is its own, and does not get into sums. */
static void what_a_process_knows(void **state)
{
	struct other_file f = other;
	struct seen seen = {0};

	(void)state;
	f.slot[1].pid = getpid();
	put("1", &f, sizeof(f));
	assert_int_equal(counters_read(directory, COUNTERS_LIVE, see, &seen), 1);
	assert_int_equal(seen.policy, 2);
	assert_string_equal(seen.line.driver, "sha256-device");
	assert_int_equal(seen.line.n.lane, COUNTERS_LANE_OPEN);
	assert_int_equal(sum_directory(directory), 1);
	assert_int_equal(sum_of("SHA2-256")->lane, 0);
	/* A driver's name without an end, and with what a terminal obeys. */
	memset(f.drivers[1], '\033', sizeof(f.drivers[1]));
	put("1", &f, sizeof(f));
	assert_int_equal(counters_read(directory, COUNTERS_LIVE, see, &seen), 1);
	assert_int_equal(strspn(seen.line.driver, "?"), COUNTERS_DRIVER_SIZE - 1);
	assert_int_equal(strlen(seen.line.driver), COUNTERS_DRIVER_SIZE - 1);
}

static void live_and_stale(void **state)
{
	struct other_file f = other;
	struct seen seen = {0};

	(void)state;
	f.slot[1].pid = getpid();
	f.slot[2].pid = dead_pid();
	memcpy(f.slot[1].command, "\033[2Jlonger than it may be, aa", sizeof(f.slot[1].command)); /* no end */
	put("live", &f, sizeof(f));
	f.slot[1].pid = 0;
	put("stale", &f, sizeof(f));
	/* Killed processes leave the shared slot taken, a failed fork leaves a birth: nobody lives in such a file. */
	f.slot[3].pid = COUNTERS_SHARED_PID;
	f.births = f.sharers = 1;
	put("killed", &f, sizeof(f));

	assert_int_equal(counters_read(directory, COUNTERS_LIVE, see, &seen), 3);
	assert_int_equal(seen.processes, 1);
	assert_string_equal(seen.command, "?[2Jlonger than it may be, a");
	assert_true(there("live"));
	assert_false(there("stale") || there("killed"));
}

/* Sets a 32-bit field of the head to a value that does not fit the rest. */
static void forge(const char *name, size_t offset, uint32_t value)
{
	struct other_file f = other;

	memcpy((char *)&f + offset, &value, sizeof(value));
	put(name, &f, sizeof(f));
}

static void forged_sizes(void **state)
{
	static const uint32_t values[] = {0, 1, 5, 39, 41, 1024, 1025, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
	static const size_t fields[] = {
		offsetof(struct other_file, head_size),   offsetof(struct other_file, slot_size),
		offsetof(struct other_file, slots),       offsetof(struct other_file, algorithms),
		offsetof(struct other_file, counts_size),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
			if (fields[i] == offsetof(struct other_file, algorithms) && values[v] == 1)
				continue; /* a right file of one algorithm */
			forge("forged", fields[i], values[v]);
			expect(0);
		}
	}
	forge("forged", offsetof(struct other_file, magic), 1);
	expect(0);
	for (size_t size = 0; size < sizeof(other); size += 13) {
		put("forged", &other, size);
		expect(0);
	}
	assert_true(there("forged"));
}

static void forged_names(void **state)
{
	struct other_file f = other;

	(void)state;
	memset(f.names[1], 'x', sizeof(f.names[1]));
	put("endless", &f, sizeof(f));
	memset(f.names[1], 0, sizeof(f.names[1]));
	put("empty", &f, sizeof(f));
	expect(0);
	memcpy(f.names[1], "\033[31m", 6);
	put("red", &f, sizeof(f));
	expect(1);
}

static void not_regular(void **state)
{
	char path[256], target[256];
	int fd;

	(void)state;
	path_of(path, sizeof(path), "fifo");
	assert_int_equal(mkfifo(path, 0666), 0);
	path_of(path, sizeof(path), "folder");
	assert_int_equal(mkdir(path, 0777), 0);
	put(".hidden", &other, sizeof(other));
	path_of(target, sizeof(target), ".hidden");
	path_of(path, sizeof(path), "link");
	assert_int_equal(symlink(target, path), 0);
	path_of(path, sizeof(path), "huge");
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	expect(0);
}

/* Names that no build has, in file after file, must not make a sum grow without end. */
static void many_names(void **state)
{
	struct other_file f = other;

	(void)state;
	for (int i = 0; i < COUNTERS_SUM_MAX; i++) {
		char name[16];

		snprintf(f.names[0], sizeof(f.names[0]), "X-%d", i);
		snprintf(name, sizeof(name), "%d", i);
		put(name, &f, sizeof(f));
	}
	assert_int_equal(sum_directory(directory), COUNTERS_SUM_MAX);
	assert_int_equal(sum.count, COUNTERS_SUM_MAX);
	assert_int_equal(sum_of("SHA2-256")->kernel_bytes, COUNTERS_SUM_MAX * 1000);
}

static void write_and_end(int calls)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < calls; i++)
			counters_software(ALG_SHA2_256, 1, 10);
		counters_error(ALG_SHA2_256, 10, -ESTALE);
		exit(0); /* the destructor gives the slot back */
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What the router tells, and that a child has it too. */
static void the_router(struct seen *seen)
{
	const struct counters_learnt learnt = {.crossover = SIZE_MAX, .bytes = 4096, .software = 500, .kernel = 900};
	int status;
	pid_t pid;

	counters_policy(POLICY_CPU);
	counters_driver(ALG_SHA2_256, "sha256-device");
	counters_lane_rests(ALG_SHA2_256, -EIO, 12345);
	counters_learnt(ALG_SHA2_256, true, &learnt);
	pid = fork();
	if (pid == 0) {
		const struct counts *c = counters_of(ALG_SHA2_256);

		exit(c->lane != COUNTERS_LANE_RESTS || c->way[1].kernel != 900 || c->kernel_requests != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(counters_read(directory, COUNTERS_LIVE, see, seen), 1);
	assert_int_equal(seen->policy, 1 + POLICY_CPU);
	assert_string_equal(seen->line.driver, "sha256-device");
	assert_int_equal(seen->line.n.lane, COUNTERS_LANE_RESTS);
	assert_int_equal(seen->line.n.lane_errno, EIO);
	assert_int_equal(seen->line.n.rest_until, 12345);
	assert_int_equal(seen->line.n.way[1].crossover, COUNTERS_NEVER);
	assert_int_equal(seen->line.n.way[1].bytes, 4096);
	assert_int_equal(seen->line.n.way[1].software, 500);
	assert_int_equal(seen->line.n.way[1].kernel, 900);
	assert_int_equal(seen->line.n.way[0].bytes, 0);
}

/* Last, since a process begins to count but once. */
static void the_writer(void **state)
{
	struct seen seen = {0};
	const struct counters_numbers *n;

	(void)state;
	unsetenv("AFALGPROV_COUNTERS");
	counters_init(directory);
	counters_software(ALG_SHA2_256, 1, 5);
	counters_kernel(ALG_SHA2_256, 3, 196608);
	counters_fallback(ALG_SHA2_256, 10, -EIO);
	counters_error(ALG_SHA2_256, 10, -ENODEV); /* one that is told apart from no other */
	counters_flush();
	write_and_end(100);

	assert_int_equal(counters_read(directory, COUNTERS_LIVE, see, &seen), 1);
	assert_int_equal(seen.processes, 1);
	assert_int_equal(strncmp(seen.command, program_invocation_short_name, 15), 0);
	assert_int_equal(sum_directory(directory), 1);
	assert_int_equal(sum.count, 1);
	n = sum_of("SHA2-256");
	assert_int_equal(n->software_calls, 101);
	assert_int_equal(n->software_bytes, 1005);
	assert_int_equal(n->kernel_requests, 3);
	assert_int_equal(n->kernel_bytes, 196608);
	assert_int_equal(n->fallbacks, 1);
	assert_int_equal(n->errors, 2);
	assert_int_equal(n->causes[7], 1);  /* EIO */
	assert_int_equal(n->causes[13], 1); /* ESTALE */
	assert_int_equal(n->causes[COUNTERS_CAUSES - 1], 1);
	the_router(&seen);
}

/* With AFALGPROV_COUNTERS files outlive their processes, also when another process begins, or the same by exec. */
static void kept_files(void **state)
{
	char self[256], name[32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	assert_true(length > 0);
	self[length] = '\0';
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			setenv("AFALGPROV_COUNTERS", directory, 1);
			execl(self, self, "count", "again", (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		snprintf(name, sizeof(name), "%d", (int)pid);
		assert_true(there(name));
		snprintf(name, sizeof(name), "%d.1", (int)pid);
		assert_true(there(name));
	}
	assert_int_equal(sum_directory(directory), 4);
	assert_int_equal(sum_of("SHA1")->kernel_requests, 4);
}

/* What kept_files() runs: counts, and where told to, once more as a new program in the same process. */
static int count(char **argv)
{
	counters_init(NULL);
	counters_kernel(ALG_SHA1, 1, 1);
	if (argv[2] != NULL)
		execl("/proc/self/exe", argv[0], "count", (char *)NULL);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(no_directory), TEST(another_build), TEST(live_and_stale), TEST(forged_sizes),
		TEST(forged_names), TEST(not_regular),   TEST(many_names),     TEST(what_a_process_knows),
		TEST(kept_files),   TEST(the_writer),
	};

	if (argc > 1)
		return count(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
