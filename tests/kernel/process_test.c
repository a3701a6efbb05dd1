/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, execs, threads, descriptor limits, with the kernel at work: right results, and nothing left behind. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>

#include "support.h"

#define HALF 40000u
#define WHOLE (2 * HALF)

extern char **environ;
static OSSL_LIB_CTX *ours, *reference;
static const char *program;
static bool through_libkcapi;
static uint8_t input[WHOLE], other[WHOLE];
static const uint8_t key[32] = {7}, iv[16] = {9};

/* What the default provider makes of `first` and then `second`, each HALF bytes. */
static void reference_digest(const uint8_t *first, const uint8_t *second, uint8_t md[32])
{
	EVP_MD *sha = EVP_MD_fetch(reference, "SHA2-256", NULL);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	assert_true(EVP_DigestInit_ex(ctx, sha, NULL) && EVP_DigestUpdate(ctx, first, HALF) &&
		    EVP_DigestUpdate(ctx, second, HALF) && EVP_DigestFinal_ex(ctx, md, NULL));
	EVP_MD_CTX_free(ctx);
	EVP_MD_free(sha);
}

static void reference_cbc(const uint8_t *first, const uint8_t *second, uint8_t *out)
{
	EVP_CIPHER *aes = EVP_CIPHER_fetch(reference, "AES-256-CBC", NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	assert_true(EVP_EncryptInit_ex(ctx, aes, NULL, key, iv) && EVP_EncryptUpdate(ctx, out, &n, first, HALF) &&
		    EVP_EncryptUpdate(ctx, out + HALF, &n, second, HALF));
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(aes);
}

static EVP_MAC_CTX *new_hmac(OSSL_LIB_CTX *context)
{
	static char digest[] = "SHA2-256";
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
				     OSSL_PARAM_END};
	EVP_MAC *hmac = EVP_MAC_fetch(context, "HMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);

	if (ctx == NULL || !EVP_MAC_CTX_set_params(ctx, params))
		errx(1, "no HMAC");
	EVP_MAC_free(hmac);
	return ctx;
}

static void reference_hmac(const uint8_t *first, const uint8_t *second, uint8_t mac[32])
{
	EVP_MAC_CTX *ctx = new_hmac(reference);
	size_t n;

	assert_true(EVP_MAC_init(ctx, key, sizeof(key), NULL) && EVP_MAC_update(ctx, first, HALF) &&
		    EVP_MAC_update(ctx, second, HALF) && EVP_MAC_final(ctx, mac, &n, 32));
	EVP_MAC_CTX_free(ctx);
}

/* A message half hashed, with and without a key, and half encrypted by the kernel. */
struct half {
	EVP_MD_CTX *md;
	EVP_MAC_CTX *mac;
	EVP_CIPHER_CTX *cipher;
	uint8_t out[WHOLE + 16];
};

static struct half *half_begin(void)
{
	struct half *h = malloc(sizeof(*h));
	EVP_MD *sha = EVP_MD_fetch(ours, "SHA2-256", NULL);
	EVP_CIPHER *aes = EVP_CIPHER_fetch(ours, "AES-256-CBC", NULL);
	int n;

	h->md = EVP_MD_CTX_new();
	h->mac = new_hmac(ours);
	h->cipher = EVP_CIPHER_CTX_new();
	if (!EVP_DigestInit_ex(h->md, sha, NULL) || !EVP_DigestUpdate(h->md, input, HALF) ||
	    !EVP_MAC_init(h->mac, key, sizeof(key), NULL) || !EVP_MAC_update(h->mac, input, HALF) ||
	    !EVP_EncryptInit_ex(h->cipher, aes, NULL, key, iv) ||
	    !EVP_EncryptUpdate(h->cipher, h->out, &n, input, HALF))
		errx(1, "first half");
	EVP_MD_free(sha);
	EVP_CIPHER_free(aes);
	return h;
}

static void half_free(struct half *h)
{
	EVP_MD_CTX_free(h->md);
	EVP_MAC_CTX_free(h->mac);
	EVP_CIPHER_CTX_free(h->cipher);
	free(h);
}

struct expected {
	uint8_t md[32], mac[32], ciphertext[WHOLE + 16];
};

static int mac_finish(EVP_MAC_CTX *ctx, const uint8_t *second, const uint8_t mac[32])
{
	uint8_t got[32];
	size_t n;

	return EVP_MAC_update(ctx, second, HALF) && EVP_MAC_final(ctx, got, &n, sizeof(got)) &&
	       memcmp(got, mac, sizeof(got)) == 0;
}

/* A whole message under the same key. */
static int mac_again(EVP_MAC_CTX *ctx, const uint8_t *second, const uint8_t mac[32])
{
	return EVP_MAC_init(ctx, NULL, 0, NULL) && EVP_MAC_update(ctx, input, HALF) && mac_finish(ctx, second, mac);
}

/* Goes on with `second`; 1: all is right. Usable where cmocka's assertions are not. */
static int half_finish(struct half *h, const uint8_t *second, const struct expected *e)
{
	uint8_t got[32];
	int n;

	return EVP_DigestUpdate(h->md, second, HALF) && EVP_DigestFinal_ex(h->md, got, NULL) &&
	       memcmp(got, e->md, 32) == 0 && mac_finish(h->mac, second, e->mac) &&
	       EVP_EncryptUpdate(h->cipher, h->out + HALF, &n, second, HALF) && n == HALF &&
	       memcmp(h->out, e->ciphertext, WHOLE) == 0 && ERR_peek_error() == 0;
}

static struct expected expect(const uint8_t *second)
{
	struct expected e;

	reference_digest(input, second, e.md);
	reference_hmac(input, second, e.mac);
	reference_cbc(input, second, e.ciphertext);
	return e;
}

static int child_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Each generation goes on by itself from the state at its fork. */
static void fork_midway(void **unused)
{
	const struct expected here = expect(input + HALF), there = expect(other + HALF);
	const struct support_counts before = support_count("SHA2-256"), mac_before = support_count("HMAC-SHA2-256");

	(void)unused;
	for (int parent_first = 0; parent_first < 2; parent_first++) {
		struct half *h = half_begin();
		pid_t pid = fork();

		if (pid == 0) {
			pid_t grandchild;

			if (parent_first)
				usleep(50000);
			grandchild = fork();
			if (grandchild == 0)
				_exit(half_finish(h, input + HALF, &here) ? 0 : 1);
			_exit(half_finish(h, other + HALF, &there) && child_status(grandchild) == 0 ? 0 : 1);
		}
		if (!parent_first)
			usleep(50000);
		assert_true(half_finish(h, input + HALF, &here));
		assert_int_equal(child_status(pid), 0);
		half_free(h);
	}
	assert_true(support_count("SHA2-256").kernel_bytes >= before.kernel_bytes + 8 * HALF);
	assert_true(support_count("HMAC-SHA2-256").kernel_bytes >= mac_before.kernel_bytes + 8 * HALF);
	assert_int_equal(support_count("SHA2-256").errors + support_count("HMAC-SHA2-256").errors, 0);
}

static atomic_bool stop, thread_failed;

static void *work(void *unused)
{
	const struct expected e = expect(input + HALF);

	(void)unused;
	while (!stop) {
		struct half *h = half_begin();

		if (!half_finish(h, input + HALF, &e))
			thread_failed = true;
		half_free(h);
	}
	return NULL;
}

#define THREADS 8

/* Forking while other threads are inside the kernel: the child can use what the forking thread had, and begin anew. */
__attribute__((unused)) static void fork_under_load(void **unused)
{
	const struct expected e = expect(other + HALF);
	pthread_t threads[THREADS];
	const int descriptors = support_descriptors();

	(void)unused;
	stop = thread_failed = false;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	for (int i = 0; i < 60; i++) {
		struct half *h = half_begin();
		pid_t pid = fork();

		if (pid == 0) {
			struct half *fresh;

			alarm(60);
			fresh = half_begin();
			_exit(half_finish(h, other + HALF, &e) && half_finish(fresh, other + HALF, &e) ? 0 : 1);
		}
		assert_int_equal(child_status(pid), 0);
		assert_true(half_finish(h, other + HALF, &e));
		half_free(h);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_false(thread_failed);
	/* What may stay are operations that wait for the next message, a bounded number. */
	assert_true(support_descriptors() <= descriptors + 9);
}

/* Descriptors from 3 on that a program finds open when it starts. */
static int count_inherited(void)
{
	int n = 0;

	for (int fd = 3; fd < 1024; fd++) {
		int domain = 0;
		socklen_t len = sizeof(domain);
		struct stat st;

		n += getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_ALG;
		n += fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
	}
	return n;
}

/* No descriptor of ours survives an exec, by whichever way. */
static void exec_inherits_nothing(void **unused)
{
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t) "--inherited", NULL};
	struct half *h = half_begin();
	pid_t pid;

	(void)unused;
	assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
	assert_int_equal(child_status(pid), 0);
	pid = vfork();
	if (pid == 0) {
		execv(program, argv);
		_exit(127);
	}
	assert_int_equal(child_status(pid), 0);
	pid = fork();
	if (pid == 0) {
		half_begin();
		execv(program, argv);
		_exit(127);
	}
	assert_int_equal(child_status(pid), 0);
	half_free(h);
}

/* A new key closes the session of the old one: 20,000 of them leave nothing behind. */
static void reinit_leaves_nothing(void **unused)
{
	EVP_CIPHER *aes = EVP_CIPHER_fetch(ours, "AES-128-CBC", NULL);
	EVP_MD *sha = EVP_MD_fetch(ours, "SHA1", NULL);
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	EVP_MAC_CTX *mac = new_hmac(ours);
	const struct support_counts before = support_count("AES-128-CBC"), mac_before = support_count("HMAC-SHA2-256");
	uint8_t k[16] = {0}, out[64], digest[20];
	int descriptors = -1, n;
	size_t length;

	(void)unused;
	for (unsigned i = 0; i < 20000; i++) {
		memcpy(k, &i, sizeof(i));
		assert_true(EVP_EncryptInit_ex(cipher, aes, NULL, k, iv) &&
			    EVP_EncryptUpdate(cipher, out, &n, input, 32));
		assert_true(EVP_DigestInit_ex(md, sha, NULL) && EVP_DigestUpdate(md, input, 64));
		if (i % 2 == 0) /* every other message is left unfinished */
			assert_true(EVP_DigestFinal_ex(md, digest, NULL));
		if (i % 5 == 0)
			assert_true(EVP_MAC_init(mac, k, sizeof(k), NULL) && EVP_MAC_update(mac, input, 2000));
		if (i % 10 == 0)
			assert_true(EVP_MAC_final(mac, out, &length, sizeof(out)));
		if (i == 10)
			descriptors = support_descriptors();
	}
	assert_int_equal(support_descriptors(), descriptors);
	assert_int_equal(support_count("AES-128-CBC").kernel_bytes - before.kernel_bytes, 20000 * 32);
	assert_int_equal(support_count("HMAC-SHA2-256").kernel_bytes - mac_before.kernel_bytes, 4000 * 2000);
	EVP_CIPHER_CTX_free(cipher);
	EVP_MD_CTX_free(md);
	EVP_MAC_CTX_free(mac);
	EVP_CIPHER_free(aes);
	EVP_MD_free(sha);
}

#define MANY 400

/* More contexts than sessions: all right, in turn, and never too many descriptors. */
static void many_contexts(void **unused)
{
	static struct half *halves[MANY];
	const struct expected e = expect(input + HALF);
	struct rlimit limit;

	(void)unused;
	getrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < MANY; i++)
		halves[i] = half_begin();
	assert_true(support_descriptors() < (int)limit.rlim_cur);
	for (int i = 0; i < MANY; i++) {
		assert_true(half_finish(halves[i], input + HALF, &e));
		half_free(halves[i]);
	}
	assert_int_equal(support_count("SHA2-256").errors, 0);
}

static void no_descriptor_left(void **unused)
{
	const struct expected e = expect(input + HALF);
	const struct rlimit none = {3, 4096};
	const struct support_counts before = support_count("AES-256-CBC");
	struct rlimit old;
	struct half *h;

	(void)unused;
	getrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	h = half_begin();
	assert_true(half_finish(h, input + HALF, &e));
	half_free(h);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(support_count("AES-256-CBC").kernel_bytes, before.kernel_bytes);
	assert_int_equal(support_count("AES-256-CBC").errors, 0);

	/* The lane has only rested. */
	usleep(300000);
	h = half_begin();
	assert_true(half_finish(h, input + HALF, &e));
	half_free(h);
	assert_true(support_count("AES-256-CBC").kernel_bytes >= before.kernel_bytes + WHOLE);
}

/* A copy and its original have nothing in common: not the state, and not the key (the key belongs to the transform). */
static void copies_are_independent(void **unused)
{
	const struct expected e = expect(input + HALF), f = expect(other + HALF);
	struct half *a = half_begin(), *b = malloc(sizeof(*b));
	uint8_t new_key[32] = {1, 2, 3}, out[WHOLE + 16];
	int n;

	(void)unused;
	b->md = EVP_MD_CTX_new();
	b->mac = EVP_MAC_CTX_dup(a->mac);
	b->cipher = EVP_CIPHER_CTX_new();
	memcpy(b->out, a->out, sizeof(a->out));
	assert_true(EVP_MD_CTX_copy_ex(b->md, a->md) && EVP_CIPHER_CTX_copy(b->cipher, a->cipher));
	assert_true(EVP_EncryptInit_ex(a->cipher, NULL, NULL, new_key, iv) &&
		    EVP_EncryptUpdate(a->cipher, out, &n, input, WHOLE));
	assert_true(EVP_MAC_init(a->mac, new_key, sizeof(new_key), NULL) && EVP_MAC_update(a->mac, input, WHOLE));
	assert_true(half_finish(b, other + HALF, &f) && mac_again(b->mac, other + HALF, f.mac));
	assert_true(EVP_EncryptInit_ex(a->cipher, NULL, NULL, key, iv) &&
		    EVP_EncryptUpdate(a->cipher, a->out, &n, input, HALF));
	assert_true(EVP_MAC_init(a->mac, key, sizeof(key), NULL) && EVP_MAC_update(a->mac, input, HALF));
	assert_true(half_finish(a, input + HALF, &e));
	half_free(a);
	half_free(b);
}

#define NUMBERS 256

/* Puts one end of a pair of sockets in the place of each of our descriptors, as a program might that daemonises. */
static void replace_descriptors(int peers[NUMBERS])
{
	for (int fd = 3; fd < NUMBERS; fd++) {
		int domain = 0, pair[2];
		socklen_t len = sizeof(domain);

		peers[fd] = -1;
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_ALG)
			continue;
		assert_int_equal(socketpair(AF_UNIX, fd % 2 == 0 ? SOCK_STREAM : SOCK_DGRAM, 0, pair), 0);
		assert_int_equal(dup2(pair[0], fd), fd);
		close(pair[0]);
		peers[fd] = fcntl(pair[1], F_DUPFD, NUMBERS);
		close(pair[1]);
		assert_int_equal(write(peers[fd], "theirs", 6), 6);
	}
}

/* Nothing was sent to them or taken from them, and none was closed. */
static void check_strangers(const int peers[NUMBERS])
{
	for (int fd = 3; fd < NUMBERS; fd++) {
		char byte[8];

		if (peers[fd] < 0)
			continue;
		assert_int_equal(recv(peers[fd], byte, sizeof(byte), MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(recv(fd, byte, sizeof(byte), MSG_DONTWAIT), 6);
		close(peers[fd]);
		close(fd);
	}
}

/* Descriptors closed under us, their numbers in other use: no stranger sees our data, and we find our way. */
static void descriptors_taken_away(void **unused)
{
	const struct expected e = expect(input + HALF);
	int peers[NUMBERS];
	struct half *h, *fresh;
	uint8_t md[32];
	int n;

	(void)unused;
	if (through_libkcapi) /* which cannot be told that a descriptor is not its own any more */
		return;
	h = half_begin();
	replace_descriptors(peers);
	/* The ciphertext is right; the hashes, half of which are lost, say so. */
	assert_true(EVP_EncryptUpdate(h->cipher, h->out + HALF, &n, input + HALF, HALF));
	assert_memory_equal(h->out, e.ciphertext, WHOLE);
	assert_false(EVP_DigestUpdate(h->md, input + HALF, HALF) && EVP_DigestFinal_ex(h->md, md, NULL));
	assert_false(mac_finish(h->mac, input + HALF, e.mac));
	ERR_clear_error();
	assert_true(mac_again(h->mac, input + HALF, e.mac)); /* its key is opened anew */
	for (int i = 0; i < 3; i++) {
		fresh = half_begin();
		assert_true(half_finish(fresh, input + HALF, &e));
		half_free(fresh);
	}
	half_free(h);
	check_strangers(peers);
}

static void *work_for_ever(void *unused)
{
	static _Thread_local uint8_t out[WHOLE + 16];
	EVP_CIPHER_CTX *ctx = unused;
	int n;

	for (;;) {
		pthread_testcancel();
		EVP_EncryptUpdate(ctx, out, &n, input, WHOLE);
	}
	return NULL;
}

/* A thread that is cancelled leaves nothing half done: forks go on as before. */
static void cancelled_threads(void **unused)
{
	EVP_CIPHER *aes = EVP_CIPHER_fetch(ours, "AES-256-CBC", NULL);
	struct timespec start, end;

	(void)unused;
	for (int i = 0; i < 20; i++) {
		EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
		pthread_t thread;

		assert_true(EVP_EncryptInit_ex(ctx, aes, NULL, key, iv));
		assert_int_equal(pthread_create(&thread, NULL, work_for_ever, ctx), 0);
		usleep((useconds_t)(2000 + 100 * i));
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		EVP_CIPHER_CTX_free(ctx);
	}
	EVP_CIPHER_free(aes);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		assert_int_equal(child_status(pid), 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - start.tv_sec < 2);
}

/* A child that no fork handler has seen never mixes its data with the parent's. */
static void fork_without_handlers(void **unused)
{
	const struct expected here = expect(input + HALF), there = expect(other + HALF);
	struct half *h = half_begin();
	pid_t pid = _Fork();

	(void)unused;
	if (pid == 0) {
		uint8_t md[32], mac[32];
		size_t size;
		int n, hashed = EVP_DigestUpdate(h->md, other + HALF, HALF) && EVP_DigestFinal_ex(h->md, md, NULL);
		int keyed = EVP_MAC_update(h->mac, other + HALF, HALF) && EVP_MAC_final(h->mac, mac, &size, 32);
		int encrypted = EVP_EncryptUpdate(h->cipher, h->out + HALF, &n, other + HALF, HALF);

		_exit((!hashed || memcmp(md, there.md, 32) == 0) && (!keyed || memcmp(mac, there.mac, 32) == 0) &&
				      encrypted && memcmp(h->out, there.ciphertext, WHOLE) == 0
			      ? 0
			      : 1);
	}
	assert_int_equal(child_status(pid), 0);
	assert_true(half_finish(h, input + HALF, &here));
	half_free(h);
}

/* One call of 64 MiB: many requests, no waiting for room that only the caller could make. */
static void one_huge_call(void **unused)
{
	const size_t size = (size_t)64 << 20;
	uint8_t *in = malloc(size), *out[2] = {malloc(size + 16), malloc(size + 16)}, md[2][32];
	OSSL_LIB_CTX *contexts[2] = {ours, reference};

	(void)unused;
	support_pattern(in, size);
	alarm(300);
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER *aes = EVP_CIPHER_fetch(contexts[i], "AES-256-CBC", NULL);
		EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
		EVP_MD *sha = EVP_MD_fetch(contexts[i], "SHA2-256", NULL);
		int n = 0;

		assert_true(EVP_EncryptInit_ex(ctx, aes, NULL, key, iv) &&
			    EVP_EncryptUpdate(ctx, out[i], &n, in, (int)size));
		assert_int_equal(n, size);
		assert_true(EVP_Digest(in, size, md[i], NULL, sha, NULL));
		EVP_CIPHER_CTX_free(ctx);
		EVP_CIPHER_free(aes);
		EVP_MD_free(sha);
	}
	alarm(0);
	assert_memory_equal(out[0], out[1], size);
	assert_memory_equal(md[0], md[1], 32);
	free(in);
	free(out[0]);
	free(out[1]);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork_midway),
#ifndef __SANITIZE_ADDRESS__ /* whose allocator may stay locked in the child of a process with threads */
		cmocka_unit_test(fork_under_load),
#endif
		cmocka_unit_test(exec_inherits_nothing),
		cmocka_unit_test(reinit_leaves_nothing),
		cmocka_unit_test(many_contexts),
		cmocka_unit_test(no_descriptor_left),
		cmocka_unit_test(copies_are_independent),
		cmocka_unit_test(one_huge_call),
		cmocka_unit_test(cancelled_threads),
		cmocka_unit_test(fork_without_handlers),
		cmocka_unit_test(descriptors_taken_away),
	};
	char settings[128];
	int failed;

	if (argc > 1 && strcmp(argv[1], "--inherited") == 0)
		return count_inherited();
	program = argv[0];
	through_libkcapi = argc > 1 && strcmp(argv[1], "kcapi") == 0;
	support_init();
	snprintf(settings, sizeof(settings), "policy = kernel\ntransport = %s", argc > 1 ? argv[1] : "auto");
	ours = support_load(settings);
	reference = support_reference();
	support_pattern(input, sizeof(input));
	memset(other, 0x5a, sizeof(other));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	OSSL_LIB_CTX_free(ours);
	OSSL_LIB_CTX_free(reference);
	return failed;
}
