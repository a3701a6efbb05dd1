/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of a family of processes: who counts where, and what becomes of the file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper.h"

#include "../../provider/counters.h"

#define ID ALG_SHA2_256

static char directory[] = "/tmp/afalgprov-unit-XXXXXX";
static int gate[2]; /* children wait until the writing end is closed */

static void file_of(pid_t pid, char *path, size_t size)
{
	snprintf(path, size, "%s/%d", directory, (int)pid);
}

static bool exists(pid_t pid)
{
	char path[128];

	file_of(pid, path, sizeof(path));
	return access(path, F_OK) == 0;
}

static bool gone(pid_t pid)
{
	for (int i = 0; i < 500 && exists(pid); i++)
		usleep(10000);
	return !exists(pid);
}

/* The file of a family, as another process sees it; null: there is none. Never unmapped: the process is short-lived. */
static const struct counters_file *look(pid_t pid)
{
	char path[128];
	void *p;
	int fd;

	file_of(pid, path, sizeof(path));
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, sizeof(struct counters_file), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static const struct counters_slot *slot_of(const struct counters_file *f, pid_t pid)
{
	for (int i = 1; i < COUNTERS_SHARED; i++)
		if (atomic_load(&f->slot[i].pid) == pid)
			return &f->slot[i];
	return NULL;
}

static uint64_t kernel_bytes(const struct counters_slot *s)
{
	return s == NULL ? UINT64_MAX : atomic_load(&s->counts[ID].kernel_bytes);
}

static uint64_t software_calls(const struct counters_slot *s)
{
	return s == NULL ? UINT64_MAX : atomic_load(&s->counts[ID].software_calls);
}

/* Bytes of all slots: those who live, those who have ended, those who found no slot. */
static uint64_t all_bytes(const struct counters_file *f)
{
	uint64_t sum = 0;

	for (int i = 0; i < COUNTERS_SLOTS; i++)
		sum += kernel_bytes(&f->slot[i]);
	return sum;
}

/* Runs a case in a process of its own, since counting begins but once a process. Its result is its exit status. */
static pid_t start(int (*run)(void))
{
	pid_t pid;

	fflush(NULL);
	assert_int_equal(pipe(gate), 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 1; i < NSIG; i++)
			signal(i, SIG_DFL);
		alarm(30);
		exit(run()); /* with destructors, as programs end */
	}
	return pid;
}

static int result(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void close_gate(void)
{
	close(gate[0]);
	close(gate[1]);
}

/* In a child: waits until all writing ends of the gate are closed. */
static void wait_at_gate(void)
{
	char byte;

	close(gate[1]);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
}

/* A process that ends well only when the given condition holds; the number of the line tells which did not. */
#define REQUIRE(condition)                                                                    \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
			return 1;                                                             \
		}                                                                             \
	} while (0)

/*** Parent and children ***/

static int separate(void)
{
	const struct counters_file *f;
	pid_t children[3];

	counters_init(directory);
	f = look(getpid());
	REQUIRE(f != NULL && f->magic == COUNTERS_MAGIC && f->algorithms == ALGORITHM_COUNT);
	for (int i = 0; i < 10; i++)
		counters_software(ID, 1, 5); /* gathered: not the children's */
	counters_kernel(ID, 1, 100);
	for (int i = 0; i < 3; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			counters_kernel(ID, 2, 200);
			counters_software(ID, 1, 7);
			counters_flush();
			wait_at_gate();
			exit(0);
		}
	}
	for (int i = 0; i < 3; i++)
		for (int t = 0; t < 500 && kernel_bytes(slot_of(f, children[i])) != 200; t++)
			usleep(10000);
	for (int i = 0; i < 3; i++) {
		REQUIRE(kernel_bytes(slot_of(f, children[i])) == 200);
		REQUIRE(atomic_load(&slot_of(f, children[i])->counts[ID].kernel_requests) == 2);
	}
	counters_flush();
	REQUIRE(kernel_bytes(slot_of(f, getpid())) == 100);
	REQUIRE(software_calls(slot_of(f, getpid())) == 10);
	close_gate();
	for (int i = 0; i < 3; i++)
		REQUIRE(waitpid(children[i], NULL, 0) == children[i] && slot_of(f, children[i]) == NULL);
	REQUIRE(kernel_bytes(&f->slot[COUNTERS_ENDED]) == 600);
	REQUIRE(software_calls(&f->slot[COUNTERS_ENDED]) == 3);
	REQUIRE(atomic_load(&f->births) == 0);
	return 0;
}

static void test_separate(void **state)
{
	pid_t pid = start(separate);

	(void)state;
	close_gate();
	assert_int_equal(result(pid), 0);
	assert_false(exists(pid));
}

/* The parent ends before its child: the last one out removes the file. */
static int leave_child(void)
{
	counters_init(directory);
	if (fork() == 0) {
		counters_kernel(ID, 1, 1);
		wait_at_gate();
		exit(0);
	}
	return 0;
}

static void test_last_removes(void **state)
{
	pid_t pid = start(leave_child);

	(void)state;
	assert_int_equal(result(pid), 0);
	assert_true(exists(pid));
	close_gate();
	assert_true(gone(pid));
}

/*** Those who die ***/

static int die(void)
{
	counters_init(directory);
	raise(SIGKILL);
	return 1;
}

static int count_once(void)
{
	counters_init(directory);
	counters_kernel(ID, 1, 1);
	return 0;
}

static void test_stale(void **state)
{
	pid_t dead = start(die);

	(void)state;
	close_gate();
	result(dead);
	assert_true(exists(dead));
	assert_int_equal(result(start(count_once)), 0);
	close_gate();
	assert_false(exists(dead));
}

static int die_with_child(void)
{
	counters_init(directory);
	if (fork() == 0) {
		counters_kernel(ID, 1, 1);
		wait_at_gate();
		exit(0);
	}
	raise(SIGKILL);
	return 1;
}

/* Not stale while a child of the dead still counts there. */
static void test_not_stale(void **state)
{
	int kept[2];
	pid_t dead = start(die_with_child), other;

	(void)state;
	result(dead);
	memcpy(kept, gate, sizeof(kept));
	other = start(count_once);
	close_gate();
	assert_int_equal(result(other), 0);
	assert_true(exists(dead));
	close(kept[0]);
	close(kept[1]);
	assert_true(gone(dead));
}

/* Nothing that is not ours is removed or written over. */
static void test_strange_files(void **state)
{
	static const char *const names[] = {"README", "12x", "0", "-5", "99999999999"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	assert_int_equal(result(start(count_once)), 0);
	close_gate();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		assert_int_equal(unlink(path), 0);
	}
}

/*** Without a file ***/

static int count_privately(const char *where)
{
	int status = -1;
	pid_t child;

	counters_init(where);
	counters_kernel(ID, 3, 300);
	REQUIRE(atomic_load(&counters_of(ID)->kernel_requests) == 3);
	child = fork();
	if (child == 0) {
		counters_kernel(ID, 1, 1);
		exit(atomic_load(&counters_of(ID)->kernel_requests) == 1 ? 0 : 1);
	}
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	REQUIRE(atomic_load(&counters_of(ID)->kernel_bytes) == 300);
	return 0;
}

static int not_writable(void)
{
	return count_privately("/proc/self/none");
}

static int off(void)
{
	return count_privately(NULL);
}

static int too_long(void)
{
	static char path[400];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	return count_privately(path);
}

static void test_private(void **state)
{
	int (*const cases[])(void) = {not_writable, off, too_long};

	(void)state;
	for (int i = 0; i < 3; i++) {
		pid_t pid = start(cases[i]);

		close_gate();
		assert_int_equal(result(pid), 0);
	}
}

/*** More processes than slots ***/

#define MANY 20

static int many(void)
{
	const struct counters_file *f;
	pid_t children[MANY];

	counters_init(directory);
	f = look(getpid());
	REQUIRE(f != NULL);
	for (int i = 0; i < MANY; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			counters_kernel(ID, 1, 1000);
			wait_at_gate();
			exit(0);
		}
	}
	for (int t = 0; t < 500 && all_bytes(f) != MANY * 1000; t++)
		usleep(10000);
	REQUIRE(all_bytes(f) == MANY * 1000);
	REQUIRE(kernel_bytes(&f->slot[COUNTERS_SHARED]) > 0);
	close_gate();
	for (int i = 0; i < MANY; i++)
		REQUIRE(waitpid(children[i], NULL, 0) == children[i]);
	REQUIRE(all_bytes(f) == MANY * 1000);
	return 0;
}

static pid_t crowd;

static void test_many(void **state)
{
	(void)state;
	crowd = start(many);
	close_gate();
	assert_int_equal(result(crowd), 0);
}

/* FAILS: once the shared slot was used, the file counts as in use for ever (counters.c, file_in_use). */
static void test_many_leave_no_file(void **state)
{
	(void)state;
	assert_int_equal(result(start(count_once)), 0);
	close_gate();
	assert_false(exists(crowd));
}

/* Slots of the dead are used again, and what they counted is kept. */
static int reuse(void)
{
	const struct counters_file *f;

	counters_init(directory);
	f = look(getpid());
	REQUIRE(f != NULL);
	for (int i = 0; i < 3 * MANY; i++) {
		pid_t child = fork();

		if (child == 0) {
			counters_kernel(ID, 1, 10);
			if (i % 2 == 0)
				_exit(0); /* without a word */
			exit(0);
		}
		REQUIRE(waitpid(child, NULL, 0) == child);
	}
	REQUIRE(all_bytes(f) == 3 * MANY * 10);
	REQUIRE(kernel_bytes(&f->slot[COUNTERS_SHARED]) == 0);
	return 0;
}

static void test_reuse(void **state)
{
	pid_t pid = start(reuse);

	(void)state;
	close_gate();
	assert_int_equal(result(pid), 0);
	assert_false(exists(pid));
}

/*** Threads ***/

static void *count_in_thread(void *unused)
{
	for (int i = 0; i < 1001; i++)
		counters_software(ID, 1, 3);
	return unused;
}

/* What a thread has gathered is there when it has ended. */
static int threads(void)
{
	pthread_t t[4];

	counters_init(directory);
	for (int i = 0; i < 4; i++)
		REQUIRE(pthread_create(&t[i], NULL, count_in_thread, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	REQUIRE(atomic_load(&counters_of(ID)->software_calls) == 4 * 1001);
	REQUIRE(atomic_load(&counters_of(ID)->software_bytes) == 4 * 1001 * 3);
	return 0;
}

static void test_threads(void **state)
{
	pid_t pid = start(threads);

	(void)state;
	close_gate();
	assert_int_equal(result(pid), 0);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("AFALGPROV_COUNTERS");
	return mkdtemp(directory) == NULL;
}

/* Also a last proof that nothing has been left behind. */
static int teardown(void **state)
{
	char path[128];

	(void)state;
	file_of(crowd, path, sizeof(path));
	unlink(path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_separate),      cmocka_unit_test(test_last_removes),
		cmocka_unit_test(test_stale),         cmocka_unit_test(test_not_stale),
		cmocka_unit_test(test_strange_files), cmocka_unit_test(test_private),
		cmocka_unit_test(test_many),          cmocka_unit_test(test_many_leave_no_file),
		cmocka_unit_test(test_reuse),         cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests_name("family", tests, setup, teardown);
}
