/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and hashes in progress: how many are open, whose they are, and what becomes of them in threads and forks. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper.h"

#include "../../afalg/hash.h"
#include "../../afalg/session.h"

#define CHUNK 1024
#define IV (pattern() + 100)

static struct lib lib;
static EVP_CIPHER *cipher, *reference;
static EVP_MD *digest;

/* A message of several chunks under a key of its own, by our provider and by the default one side by side. */
struct stream {
	EVP_CIPHER_CTX *ours, *theirs;
};

static bool stream_open(struct stream *s, size_t key)
{
	s->ours = EVP_CIPHER_CTX_new();
	s->theirs = EVP_CIPHER_CTX_new();
	return EVP_EncryptInit_ex2(s->ours, cipher, pattern() + key, IV, NULL) &&
	       EVP_EncryptInit_ex2(s->theirs, reference, pattern() + key, IV, NULL);
}

/* The next chunk; whether it is right. */
static bool stream_next(struct stream *s)
{
	uint8_t got[CHUNK + 16], right[CHUNK + 16];
	int n = 0, m = 0;

	return EVP_EncryptUpdate(s->ours, got, &n, pattern(), CHUNK) &&
	       EVP_EncryptUpdate(s->theirs, right, &m, pattern(), CHUNK) && n == CHUNK && m == CHUNK &&
	       memcmp(got, right, CHUNK) == 0;
}

static bool stream_rekey(struct stream *s, size_t key)
{
	return EVP_EncryptInit_ex2(s->ours, NULL, pattern() + key, IV, NULL) &&
	       EVP_EncryptInit_ex2(s->theirs, NULL, pattern() + key, IV, NULL);
}

static void stream_close(struct stream *s)
{
	EVP_CIPHER_CTX_free(s->ours);
	EVP_CIPHER_CTX_free(s->theirs);
}

/*** How many ***/

static void test_bound(void **state)
{
	struct stream s[5];

	(void)state;
	afalg_session_set_limit(2);
	fake_reset();
	for (size_t i = 0; i < 5; i++)
		assert_true(stream_open(&s[i], i));
	for (int round = 0; round < 10; round++)
		for (size_t i = 0; i < 5; i++) {
			assert_true(stream_next(&s[i]));
			assert_true(afalg_session_count() <= 2);
		}
	assert_int_equal(fake_keyed_most(), 2);
	assert_int_equal(fake_calls(FAKE_CRYPT), 50);
	for (size_t i = 0; i < 5; i++)
		stream_close(&s[i]);
	assert_int_equal(fake_keyed(), 0);
}

/* The least recently used goes, the others stay. */
static void test_least_recently_used(void **state)
{
	struct stream s[3];

	(void)state;
	afalg_session_set_limit(2);
	fake_reset();
	for (size_t i = 0; i < 3; i++)
		assert_true(stream_open(&s[i], i));
	assert_true(stream_next(&s[0]) && stream_next(&s[1]) && stream_next(&s[0]));
	assert_int_equal(fake_calls(FAKE_OPEN), 2);
	assert_true(stream_next(&s[2])); /* takes the place of 1 */
	assert_int_equal(fake_calls(FAKE_OPEN), 3);
	assert_true(stream_next(&s[0]) && stream_next(&s[2]));
	assert_int_equal(fake_calls(FAKE_OPEN), 3);
	assert_true(stream_next(&s[1]));
	assert_int_equal(fake_calls(FAKE_OPEN), 4);
	for (size_t i = 0; i < 3; i++)
		stream_close(&s[i]);
	assert_int_equal(fake_keyed(), 0);
}

/* FAILS: one session gives way to one, however many are too many (session.c, slot_take). */
static void test_limit_lowered(void **state)
{
	struct stream s[6];
	unsigned before, after;

	(void)state;
	afalg_session_set_limit(5);
	for (size_t i = 0; i < 6; i++)
		assert_true(stream_open(&s[i], i));
	for (size_t i = 0; i < 5; i++)
		assert_true(stream_next(&s[i]));
	before = afalg_session_count();
	afalg_session_set_limit(2);
	assert_true(stream_next(&s[5]));
	after = afalg_session_count();
	for (size_t i = 0; i < 6; i++)
		assert_true(stream_next(&s[i]));
	for (size_t i = 0; i < 6; i++)
		stream_close(&s[i]);
	assert_int_equal(before, 5);
	assert_int_equal(after, 2);
}

/* Another key ends the session, the same one keeps it. */
static void test_keys(void **state)
{
	struct stream s;

	(void)state;
	fake_reset();
	assert_true(stream_open(&s, 0) && stream_next(&s));
	assert_int_equal(fake_calls(FAKE_OPEN), 1);
	assert_true(stream_rekey(&s, 0) && stream_next(&s));
	assert_int_equal(fake_calls(FAKE_OPEN), 1);
	assert_true(stream_rekey(&s, 1));
	assert_int_equal(fake_keyed(), 0); /* the old key is nowhere any longer */
	assert_true(stream_next(&s));
	assert_int_equal(fake_calls(FAKE_OPEN), 2);
	stream_close(&s);
	assert_int_equal(fake_keyed(), 0);
}

static void test_many_inits(void **state)
{
	struct stream s;

	(void)state;
	fake_reset();
	assert_true(stream_open(&s, 0));
	for (size_t i = 0; i < 20000; i++)
		assert_true(stream_rekey(&s, i % 5) && (i % 10 != 0 || stream_next(&s)));
	assert_int_equal(fake_keyed_most(), 1);
	stream_close(&s);
	assert_int_equal(fake_keyed(), 0);
}

/* A request that failed costs its session; contexts that only wait cost none. */
static void test_failed_request(void **state)
{
	struct stream s;

	(void)state;
	fake_install();
	assert_true(stream_open(&s, 0));
	assert_int_equal(fake_calls(FAKE_OPEN), 0);
	assert_true(stream_next(&s));
	fake_fail(FAKE_CRYPT, 1, 5, 1);
	assert_true(stream_next(&s));
	assert_int_equal(fake_keyed(), 0);
	assert_int_equal(afalg_session_count(), 0);
	clock_now += 20000000000;
	assert_true(stream_next(&s));
	assert_int_equal(fake_keyed(), 1);
	stream_close(&s);
}

/* Where all hashes allowed are in progress a further one is software's. */
static void test_hash_bound(void **state)
{
	EVP_MD_CTX *c[4];
	uint8_t out[EVP_MAX_MD_SIZE];

	(void)state;
	fake_install();
	afalg_hash_set_limit(2);
	for (int i = 0; i < 4; i++) {
		c[i] = EVP_MD_CTX_new();
		assert_true(EVP_DigestInit_ex2(c[i], digest, NULL));
		assert_true(EVP_DigestUpdate(c[i], pattern(), 65536));
		assert_true(fake_ops() <= 2); /* none waits: all are in progress */
	}
	for (int i = 0; i < 4; i++) {
		assert_true(EVP_DigestFinal_ex(c[i], out, NULL));
		assert_hex(out, 32, "4b640d85ab3ba30fd02c9fc9db4a8928f416322ad27022ea58a65aaee68a4df2");
		EVP_MD_CTX_free(c[i]);
	}
	fake_close_idle();
	assert_int_equal(fake_ops(), 0);
	assert_int_equal(ERR_peek_error(), 0);
}

/*** Threads ***/

static atomic_int wrong;
static atomic_bool stop;

static bool hash_right(void)
{
	static const uint8_t right[] = {0x4b, 0x64, 0x0d, 0x85, 0xab, 0x3b, 0xa3, 0x0f};
	EVP_MD_CTX *c = EVP_MD_CTX_new(), *copy = EVP_MD_CTX_new();
	uint8_t out[EVP_MAX_MD_SIZE];
	bool ok;

	ok = EVP_DigestInit_ex2(c, digest, NULL) && EVP_DigestUpdate(c, pattern(), 20000) &&
	     EVP_MD_CTX_copy_ex(copy, c) && EVP_DigestUpdate(c, pattern(), 1) &&
	     EVP_DigestUpdate(copy, pattern() + 20000, 45536) && EVP_DigestFinal_ex(copy, out, NULL) &&
	     memcmp(out, right, sizeof(right)) == 0;
	EVP_MD_CTX_free(c);
	EVP_MD_CTX_free(copy);
	return ok;
}

/* Streams that start, go on, change their key and end, until told to stop or `rounds` are done. */
static void *work(void *rounds)
{
	const size_t most = (size_t)(uintptr_t)rounds;

	for (size_t round = 0; !atomic_load(&stop) && round < most; round++) {
		struct stream s[3];

		for (size_t i = 0; i < 3; i++)
			if (!stream_open(&s[i], round % 50 + i))
				atomic_fetch_add(&wrong, 1);
		for (size_t i = 0; i < 12; i++)
			if (!stream_next(&s[i % 3]) || (i % 5 == 4 && !stream_rekey(&s[i % 3], i)))
				atomic_fetch_add(&wrong, 1);
		for (size_t i = 0; i < 3; i++)
			stream_close(&s[i]);
		if (!hash_right())
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

#define THREADS 8

static void threads_start(pthread_t threads[THREADS], size_t rounds)
{
	atomic_store(&wrong, 0);
	atomic_store(&stop, false);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)rounds), 0);
}

static void threads_join(pthread_t threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_int_equal(fake_keyed(), 0);
	fake_close_idle();
	assert_int_equal(fake_ops(), 0);
	assert_int_equal(afalg_session_count(), 0);
}

static void threads_with_limit(unsigned sessions)
{
	pthread_t threads[THREADS];

	fake_install();
	afalg_session_set_limit(sessions);
	threads_start(threads, 100);
	threads_join(threads);
	assert_true(fake_calls(FAKE_CRYPT) > 0);
	assert_true(fake_keyed_most() <= sessions + THREADS); /* those being closed are no longer counted */
}

static void test_threads(void **state)
{
	(void)state;
	threads_with_limit(256);
}

/* Fewer sessions than threads: some find none and stay in software; nobody gets another's. */
static void test_threads_few_sessions(void **state)
{
	(void)state;
	threads_with_limit(3);
}

static void test_threads_failing(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	fake_install();
	fake_spoil(50);
	fake_fail(FAKE_CRYPT, 20, 5, FAKE_ALWAYS);
	threads_start(threads, 50);
	threads_join(threads);
}

/*** Forks ***/

/* Forks. A crash must end the child: cmocka's own handlers would run the other tests on in it. */
static pid_t start_child(void)
{
	static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	return fork();
}

/* In the child: ends it, with 0 where all is well. A sanitizer's report of a child would count what the parent holds.
 */
static void child_ends(bool ok)
{
	_exit(ok && fake_violations() == 0 ? 0 : 1);
}

/* Whether the child ended well; the parent need not. */
static bool ended_well(pid_t child)
{
	int status = -1;

	if (waitpid(child, &status, 0) != child)
		return false;
	if (status != 0)
		print_message("the child ended with status %#x\n", (unsigned)status);
	return status == 0 && fake_violations() == 0;
}

static void wait_for(pid_t child)
{
	assert_true(ended_well(child));
}

/* A cipher in the middle of a message goes on in both, and the child has nothing of the parent's open. */
static void test_fork_cipher(void **state)
{
	struct stream s;
	pid_t child;

	(void)state;
	fake_install();
	assert_true(stream_open(&s, 3) && stream_next(&s) && stream_next(&s));
	assert_int_equal(afalg_session_count(), 1);
	child = start_child();
	if (child == 0) {
		bool ok = afalg_session_count() == 0 && fake_keyed() == 0;

		ok = ok && stream_next(&s) && stream_next(&s) && fake_keyed() == 1 && fake_calls(FAKE_OPEN) == 2;
		ok = ok && stream_rekey(&s, 9) && stream_next(&s);
		stream_close(&s);
		child_ends(ok && fake_keyed() == 0);
	}
	assert_true(stream_next(&s));
	wait_for(child);
	assert_true(stream_next(&s));
	assert_int_equal(fake_calls(FAKE_OPEN), 1);
	stream_close(&s);
}

/* A child of the child too. */
static void test_fork_twice(void **state)
{
	struct stream s;
	pid_t child;

	(void)state;
	fake_install();
	assert_true(stream_open(&s, 3) && stream_next(&s));
	child = start_child();
	if (child == 0) {
		bool ok = stream_next(&s);
		int status = -1;
		pid_t grandchild = start_child();

		if (grandchild == 0)
			child_ends(fake_keyed() == 0 && stream_next(&s) && fake_keyed() == 1);
		ok = ok && stream_next(&s) && waitpid(grandchild, &status, 0) == grandchild && status == 0;
		child_ends(ok);
	}
	wait_for(child);
	assert_true(stream_next(&s));
	stream_close(&s);
}

/* Hashes `in` bytes before the fork and what is missing to P(65536) after it, on both sides at once. */
static bool finish_hash(EVP_MD_CTX *c, size_t in)
{
	static const uint8_t right[] = {0x4b, 0x64, 0x0d, 0x85, 0xab, 0x3b, 0xa3, 0x0f};
	uint8_t out[EVP_MAX_MD_SIZE];

	for (size_t n; in < 65536; in += n) {
		n = 65536 - in < 17000 ? 65536 - in : 17000;
		if (!EVP_DigestUpdate(c, pattern() + in, n))
			return false;
	}
	return EVP_DigestFinal_ex(c, out, NULL) && memcmp(out, right, sizeof(right)) == 0;
}

static void test_fork_hash(void **state)
{
	static const size_t moments[] = {0, 1, 100, 4096, 16383, 16384, 20000, 20001, 65535, 65536};

	(void)state;
	fake_install();
	for (size_t i = 0; i < 2 * sizeof(moments) / sizeof(*moments); i++) {
		const size_t in = moments[i / 2];
		EVP_MD_CTX *c = EVP_MD_CTX_new();
		unsigned in_progress;
		pid_t child;

		fake_close_idle();
		assert_true(EVP_DigestInit_ex2(c, digest, NULL));
		assert_true(EVP_DigestUpdate(c, pattern(), in));
		in_progress = fake_ops();
		assert_true(i % 2 == 0 || hash_right()); /* leaves operations that wait for a message */
		child = start_child();
		if (child == 0) {
			bool ok = fake_ops() == in_progress && finish_hash(c, in) && hash_right();

			EVP_MD_CTX_free(c);
			fake_close_idle();
			child_ends(ok && fake_ops() == 0);
		}
		assert_true(finish_hash(c, in));
		assert_true(hash_right());
		wait_for(child);
		EVP_MD_CTX_free(c);
	}
	fake_close_idle();
	assert_int_equal(fake_ops(), 0);
}

/* Where no copy can be had the child says so, the parent does not notice, and both are sound afterwards. */
static void test_fork_hash_no_copy(void **state)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	pid_t child;

	(void)state;
	fake_install();
	assert_true(EVP_DigestInit_ex2(c, digest, NULL));
	assert_true(EVP_DigestUpdate(c, pattern(), 20000));
	fake_fail(FAKE_HASH_COPY, 1, 24, 1);
	child = start_child();
	if (child == 0) {
		bool ok = !finish_hash(c, 20000) && ERR_GET_REASON(ERR_peek_error()) == ERROR_KERNEL_HASH;
		int status = -1;
		pid_t grandchild = start_child(); /* with a hash that has no operation */

		if (grandchild == 0)
			child_ends(!finish_hash(c, 20000));
		ok = ok && waitpid(grandchild, &status, 0) == grandchild && status == 0;
		clock_now += 20000000000;
		ok = ok && EVP_DigestInit_ex2(c, digest, NULL) && finish_hash(c, 0);
		EVP_MD_CTX_free(c);
		fake_close_idle();
		child_ends(ok && fake_ops() == 0);
	}
	assert_true(finish_hash(c, 20000));
	wait_for(child);
	EVP_MD_CTX_free(c);
}

/* The allocators of some sanitizers hang in the child of a process that had threads (gcc 12, clang 14). */
static void skip_where_malloc_hangs(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip();
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	skip();
#endif
#endif
}

/* One fork while threads are at work: a cipher and a hash in the middle go on in both. */
static bool fork_among_threads(struct stream *s, EVP_MD_CTX *c)
{
	bool ok = EVP_DigestInit_ex2(c, digest, NULL) && EVP_DigestUpdate(c, pattern(), 20000);
	pid_t child = start_child();

	if (child == 0) {
		alarm(20);
		ok = ok && stream_next(s) && stream_next(s) && finish_hash(c, 20000) && hash_right();
		child_ends(ok && stream_next(s));
	}
	ok = ok && finish_hash(c, 20000) && stream_next(s);
	return ended_well(child) && ok;
}

static void fork_threads(unsigned delay, int forks)
{
	pthread_t threads[THREADS];
	struct stream s;
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	int good = 0;

	fake_install();
	afalg_session_set_limit(64);
	afalg_hash_set_limit(256);
	assert_true(stream_open(&s, 3) && stream_next(&s));
	fake_delay(delay);
	threads_start(threads, SIZE_MAX);
	while (good < forks && fork_among_threads(&s, c))
		good++;
	atomic_store(&stop, true);
	stream_close(&s);
	EVP_MD_CTX_free(c);
	threads_join(threads);
	assert_int_equal(good, forks);
}

static void test_fork_threads(void **state)
{
	(void)state;
	skip_where_malloc_hangs();
	fork_threads(0, 100);
}

/* With a slow kernel most forks find something under way: a request, a session being closed. */
static void test_fork_threads_slow(void **state)
{
	(void)state;
	skip_where_malloc_hangs();
	fork_threads(200, 100);
}

/* The provider is loaded anew in the child, and gone there before the parent goes on. */
static void test_fork_reload(void **state)
{
	struct stream s;
	pid_t child;

	(void)state;
	fake_install();
	assert_true(stream_open(&s, 3) && stream_next(&s));
	child = start_child();
	if (child == 0) {
		struct lib other;
		EVP_MD *md;
		uint8_t out[EVP_MAX_MD_SIZE];
		bool ok;

		stream_close(&s);
		lib_open(&other, "policy = kernel\ncounters = off\n");
		md = digest_of(&other, ALG_SHA2_256, "afalgprov");
		ok = EVP_Digest("abc", 3, out, NULL, md, NULL) && out[0] == 0xba && out[31] == 0xad;
		EVP_MD_free(md);
		lib_close(&other);
		child_ends(ok);
	}
	wait_for(child);
	assert_true(stream_next(&s));
	stream_close(&s);
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	lib_drive_clock(&lib);
	cipher = cipher_of(&lib, ALG_AES_128_CBC, "afalgprov");
	reference = cipher_of(&lib, ALG_AES_128_CBC, "default");
	digest = digest_of(&lib, ALG_SHA2_256, "afalgprov");
	pattern();
	return 0;
}

static int back_to_normal(void **state)
{
	(void)state;
	afalg_session_set_limit(AFALG_SESSIONS_DEFAULT);
	afalg_hash_set_limit(AFALG_SESSIONS_DEFAULT);
	fake_reset();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	EVP_CIPHER_free(cipher);
	EVP_CIPHER_free(reference);
	EVP_MD_free(digest);
	lib_close(&lib);
	return 0;
}

#define TEST(f) cmocka_unit_test_teardown(f, back_to_normal)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_bound),        TEST(test_least_recently_used),  TEST(test_limit_lowered),
		TEST(test_keys),         TEST(test_many_inits),           TEST(test_failed_request),
		TEST(test_hash_bound),   TEST(test_fork_cipher),          TEST(test_fork_twice),
		TEST(test_fork_hash),    TEST(test_fork_hash_no_copy),    TEST(test_fork_reload),
		TEST(test_threads),      TEST(test_threads_few_sessions), TEST(test_threads_failing),
		TEST(test_fork_threads), TEST(test_fork_threads_slow),
	};

	return cmocka_run_group_tests_name("sessions", tests, setup, teardown);
}
