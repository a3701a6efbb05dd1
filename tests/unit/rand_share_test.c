/* SPDX-License-Identifier: Apache-2.0 */
/* One random generator for all threads and processes: no two of them get the same, and none waits for ever. */
#include <openssl/rand.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper.h"

#include "../../provider/counters.h"

static struct lib lib;

static EVP_RAND_CTX *open_context(void)
{
	EVP_RAND *rand = EVP_RAND_fetch(lib.context, "AFALG-DRBG", NULL);
	EVP_RAND_CTX *c = EVP_RAND_CTX_new(rand, NULL);

	assert_non_null(c);
	assert_true(EVP_RAND_instantiate(c, 256, 0, NULL, 0, NULL));
	EVP_RAND_free(rand);
	return c;
}

static int generate(EVP_RAND_CTX *c, void *out, size_t n)
{
	return EVP_RAND_generate(c, out, n, 0, 0, NULL, 0);
}

#define DRAWN 32u

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, DRAWN);
}

/* No two pieces of DRAWN bytes are the same. */
static void assert_all_different(uint8_t (*drawn)[DRAWN], size_t count)
{
	qsort(drawn, count, DRAWN, compare);
	for (size_t i = 1; i < count; i++)
		assert_memory_not_equal(drawn[i - 1], drawn[i], DRAWN);
}

#define EACH 200u

/* Parent, child and grandchild read on from what the parent opened, and none sees what another has seen. */
static void test_fork(void **state)
{
	static uint8_t drawn[4 * EACH][DRAWN];
	EVP_RAND_CTX *c = open_context();
	int pipes[2], status;
	pid_t pid;

	(void)state;
	for (size_t i = 0; i < EACH; i++)
		assert_true(generate(c, drawn[i], DRAWN));
	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		const pid_t grandchild = fork();
		bool ok = true;

		alarm(60);
		fake_reset();
		for (size_t i = 0; i < EACH; i++)
			ok = ok && generate(c, drawn[i], DRAWN);
		ok = ok && fake_calls(FAKE_RNG_READ) == EACH && fake_calls(FAKE_RNG_OPEN) == 0;
		ok = ok &&
		     write(pipes[1], drawn, EACH * DRAWN) == EACH * DRAWN; /* at once: at most PIPE_BUF, or 64 KiB */
		if (grandchild > 0)
			ok = waitpid(grandchild, &status, 0) == grandchild && status == 0 && ok;
		_exit(ok ? 0 : 1);
	}
	for (size_t i = EACH; i < 2 * EACH; i++)
		assert_true(generate(c, drawn[i], DRAWN));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(pipes[0], drawn + 2 * EACH, 2 * EACH * DRAWN), 2 * EACH * DRAWN);
	assert_all_different(drawn, 4 * EACH);
	close(pipes[0]);
	close(pipes[1]);
	EVP_RAND_CTX_free(c);
}

/* A child that no fork handler has seen may find a lock taken: it has the system's bytes. */
static void test_fork_unseen(void **state)
{
	EVP_RAND_CTX *c = open_context();
	uint8_t bytes[32] = {0};
	int status;
	pid_t pid;

	(void)state;
	assert_true(generate(c, bytes, sizeof(bytes)));
	pid = _Fork();
	if (pid == 0) {
		unsigned zeros = 0;

		alarm(60);
		memset(bytes, 0, sizeof(bytes));
		if (!EVP_RAND_generate(c, bytes, sizeof(bytes), 0, 1, NULL, 0))
			_exit(1);
		for (size_t i = 0; i < sizeof(bytes); i++)
			zeros += bytes[i] == 0;
		_exit(zeros > 8 ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	EVP_RAND_CTX_free(c);
}

#define THREADS 8u

static uint8_t threads_drawn[THREADS * EACH][DRAWN];
static EVP_RAND_CTX *shared_context;
static atomic_bool thread_failed;

/* Every other thread has a context of its own; one in four reseeds all the time. */
static void *draw(void *number)
{
	const size_t thread = (size_t)(uintptr_t)number;
	EVP_RAND_CTX *c = thread % 2 == 0 ? shared_context : open_context();
	const int reseeds = thread % 4 == 1;

	for (size_t i = 0; i < EACH; i++)
		if (!EVP_RAND_generate(c, threads_drawn[thread * EACH + i], DRAWN, 256, reseeds, NULL, 0))
			thread_failed = true;
	if (c != shared_context)
		EVP_RAND_CTX_free(c);
	return NULL;
}

/* Sanitizers cannot go on in the child of a process with threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FORKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FORKS 0
#endif
#endif
#ifndef FORKS
#define FORKS 20
#endif

/* Another thread may be anywhere at this moment. */
static void fork_and_generate(void)
{
	uint8_t bytes[16];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		_exit(generate(shared_context, bytes, sizeof(bytes)) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_threads(void **state)
{
	const struct counts *c = counters_of(ALG_AFALG_DRBG);
	const uint64_t before = atomic_load(&c->kernel_bytes);
	pthread_t threads[THREADS];

	(void)state;
	shared_context = open_context();
	assert_true(EVP_RAND_enable_locking(shared_context));
	thread_failed = false;
	fake_close_idle();
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, draw, (void *)(uintptr_t)i), 0);
	for (int i = 0; i < FORKS; i++)
		fork_and_generate();
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_false(thread_failed);
	assert_int_equal(atomic_load(&c->kernel_bytes) - before, THREADS * EACH * DRAWN);
	assert_int_equal(atomic_load(&c->fallbacks) + atomic_load(&c->errors), 0);
	assert_int_equal(fake_ops(), 1);
	assert_all_different(threads_drawn, THREADS * EACH);
	EVP_RAND_CTX_free(shared_context);
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, "counters = off\n");
	return 0;
}

static int back_to_normal(void **state)
{
	(void)state;
	fake_install();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	return 0;
}

#define TEST(f) cmocka_unit_test_teardown(f, back_to_normal)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_fork), TEST(test_fork_unseen), TEST(test_threads)};

	return cmocka_run_group_tests_name("random generators shared", tests, setup, teardown);
}
