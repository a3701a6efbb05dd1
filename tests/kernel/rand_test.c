/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers of the running kernel: no two alike, whatever threads and processes do, and no pattern in them. Where
 * the kernel does not serve a generator the same must hold of what stands in for it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "support.h"

static const char *const names[] = {"AFALG-DRBG", "AFALG-JITTER"};
static bool served[2];

/* One that nobody told about random numbers; RAND_bytes() from AFALG-DRBG; its seeds from AFALG-JITTER. */
static OSSL_LIB_CTX *plain, *configured, *seeded;

/* The contexts are those of one module, which counts for all of them. */
static struct support_counts since(const struct support_counts *before, int which)
{
	struct support_counts now = support_count(names[which]);

	now.software_calls -= before->software_calls;
	now.software_bytes -= before->software_bytes;
	now.kernel_requests -= before->kernel_requests;
	now.kernel_bytes -= before->kernel_bytes;
	now.fallbacks -= before->fallbacks;
	now.errors -= before->errors;
	return now;
}

/* The kernel gave all `bytes` if it can, and else nothing, and was asked no more than once. */
static void assert_share(const struct support_counts *before, int which, uint64_t bytes)
{
	const struct support_counts d = since(before, which);

	assert_int_equal(d.kernel_bytes, served[which] ? bytes : 0);
	assert_int_equal(d.errors, 0);
	if (served[which])
		assert_int_equal(d.software_bytes + d.fallbacks, 0);
	else
		assert_true(d.fallbacks <= 1);
}

static EVP_RAND_CTX *open_context(int which)
{
	EVP_RAND *rand = EVP_RAND_fetch(plain, names[which], NULL);
	EVP_RAND_CTX *c = EVP_RAND_CTX_new(rand, NULL);

	assert_true(EVP_RAND_instantiate(c, 256, 0, NULL, 0, NULL));
	EVP_RAND_free(rand);
	return c;
}

static int child_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/*** Who asks ***/

static void only_by_name(void **unused)
{
	const struct support_counts before[] = {support_count(names[0]), support_count(names[1])};
	uint8_t bytes[1000];

	(void)unused;
	assert_int_equal(RAND_bytes_ex(plain, bytes, sizeof(bytes), 0), 1);
	assert_int_equal(RAND_priv_bytes_ex(plain, bytes, sizeof(bytes), 0), 1);
	for (int i = 0; i < 2; i++) {
		const struct support_counts d = since(&before[i], i);

		assert_int_equal(d.kernel_requests + d.fallbacks + d.software_calls, 0);
	}
}

/* All from the kernel's generator. OpenSSL's own, which would draw AES from us, has nothing to do. */
static void by_configuration(void **unused)
{
	const struct support_counts before = support_count(names[0]), aes = support_count("AES-256-CTR");
	uint8_t bytes[5000];

	(void)unused;
	assert_int_equal(RAND_bytes_ex(configured, bytes, sizeof(bytes), 256), 1);
	assert_int_equal(RAND_priv_bytes_ex(configured, bytes, sizeof(bytes), 256), 1);
	assert_share(&before, 0, 2 * sizeof(bytes));
	assert_int_equal(support_count("AES-256-CTR").software_calls, aes.software_calls);
	assert_int_equal(ERR_peek_error(), 0);
}

static void as_seed(void **unused)
{
	const struct support_counts before = support_count(names[1]);
	uint8_t bytes[5000];
	struct support_counts d;

	(void)unused;
	assert_int_equal(RAND_bytes_ex(seeded, bytes, sizeof(bytes), 256), 1);
	d = since(&before, 1);
	if (served[1])
		assert_in_range(d.kernel_bytes, 32, 1000);
	assert_true(d.fallbacks <= 1 && d.errors == 0);
	assert_int_equal(ERR_peek_error(), 0);
}

/*** How much ***/

static void sizes(void **unused)
{
	static const size_t lengths[] = {1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 257, 65535, 65536, 65537, 1u << 20};
	static uint8_t bytes[(1u << 20) + 64];

	(void)unused;
	for (int which = 0; which < 2; which++) {
		EVP_RAND_CTX *c = open_context(which);

		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const struct support_counts before = support_count(names[which]);
			const size_t n = lengths[i];
			size_t seen[256] = {0};

			if (which == 1 && n > 257)
				break; /* jitter is slow */
			memset(bytes, 0, n + 64);
			assert_true(EVP_RAND_generate(c, bytes + 32, n, 256, 0, NULL, 0));
			assert_share(&before, which, n);
			for (size_t b = 0; b < 32; b++)
				assert_int_equal(bytes[b] + bytes[32 + n + b], 0);
			for (size_t b = 32; b < 32 + n; b++)
				seen[bytes[b]]++;
			/* A piece of 16 bytes left out would show: as many zeros are less likely than 1 in 10^15. */
			assert_true(seen[0] < 14 + n / 128);
		}
		EVP_RAND_CTX_free(c);
	}
}

/* A new seed each time, by either way; nothing is left open. */
static void reseeds(void **unused)
{
	EVP_RAND_CTX *c = open_context(0);
	const struct support_counts before = support_count(names[0]);
	uint8_t bytes[2][32];
	int descriptors;

	(void)unused;
	assert_true(EVP_RAND_generate(c, bytes[0], 32, 256, 0, NULL, 0));
	descriptors = support_descriptors();
	for (int i = 0; i < 20; i++) {
		if (i % 2 == 0)
			assert_true(EVP_RAND_reseed(c, 0, NULL, 0, bytes[0], 32));
		assert_true(EVP_RAND_generate(c, bytes[1], 32, 256, i % 2, NULL, 0));
		assert_memory_not_equal(bytes[0], bytes[1], 32);
		memcpy(bytes[0], bytes[1], 32);
	}
	assert_share(&before, 0, 21 * 32);
	assert_int_equal(support_descriptors(), descriptors);
	EVP_RAND_CTX_free(c);
}

/*** Threads and processes ***/

#define THREADS 16u
#define EACH 1000u
#define DRAWN 32u

static uint8_t drawn[THREADS * EACH][DRAWN];
static atomic_bool thread_failed;

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, DRAWN);
}

static void assert_all_different(size_t count)
{
	qsort(drawn, count, DRAWN, compare);
	for (size_t i = 1; i < count; i++)
		assert_memory_not_equal(drawn[i - 1], drawn[i], DRAWN);
}

static void *draw(void *number)
{
	const size_t thread = (size_t)(uintptr_t)number;

	for (size_t i = 0; i < EACH; i++)
		if (RAND_bytes_ex(configured, drawn[thread * EACH + i], DRAWN, 0) != 1)
			thread_failed = true;
	return NULL;
}

static void threads_draw_no_two_alike(void **unused)
{
	const struct support_counts before = support_count(names[0]);
	pthread_t threads[THREADS];

	(void)unused;
	thread_failed = false;
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, draw, (void *)(uintptr_t)i), 0);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_false(thread_failed);
	assert_share(&before, 0, sizeof(drawn));
	assert_all_different(THREADS * EACH);
}

#define CHILDREN 4u
#define OF_CHILD 100u

/* The parent and its children go on from the same generator at the same time. */
static void forks_draw_no_two_alike(void **unused)
{
	const struct support_counts before = support_count(names[0]);
	pid_t children[CHILDREN];
	int pipes[2];

	(void)unused;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(RAND_bytes_ex(configured, drawn[0], DRAWN, 0), 1);
	for (size_t c = 0; c < CHILDREN; c++) {
		children[c] = fork();
		if (children[c] != 0)
			continue;
		alarm(120);
		for (size_t i = 0; i < OF_CHILD; i++)
			if (RAND_bytes_ex(configured, drawn[i], DRAWN, 0) != 1)
				_exit(1);
		/* No more than PIPE_BUF bytes at a time, so that those of the children do not mix. */
		_exit(write(pipes[1], drawn, OF_CHILD * DRAWN) == OF_CHILD * DRAWN ? 0 : 1);
	}
	for (size_t i = 0; i < OF_CHILD; i++)
		assert_int_equal(RAND_bytes_ex(configured, drawn[i], DRAWN, 0), 1);
	for (size_t c = 0; c < CHILDREN; c++) {
		assert_int_equal(child_status(children[c]), 0);
		assert_int_equal(read(pipes[0], drawn + OF_CHILD * (1 + c), OF_CHILD * DRAWN), OF_CHILD * DRAWN);
	}
	assert_share(&before, 0, DRAWN + (1 + CHILDREN) * OF_CHILD * DRAWN);
	assert_all_different((1 + CHILDREN) * OF_CHILD);
	close(pipes[0]);
	close(pipes[1]);
}

#define NUMBERS 256

/* Puts sockets of others in the place of all our descriptors, each with a word to read. Returns how many. */
static int replace_descriptors(int strangers[NUMBERS])
{
	int count = 0;

	for (int fd = 3; fd < NUMBERS; fd++) {
		int domain = 0, pair[2];
		socklen_t len = sizeof(domain);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_ALG)
			continue;
		assert_int_equal(socketpair(AF_UNIX, count % 2 == 0 ? SOCK_STREAM : SOCK_DGRAM, 0, pair), 0);
		assert_int_equal(dup2(pair[0], fd), fd);
		close(pair[0]);
		assert_int_equal(write(pair[1], "theirs", 6), 6);
		close(pair[1]);
		strangers[count++] = fd;
	}
	return count;
}

/* The bytes still come from the kernel, and none from those who have our numbers now. */
static void descriptors_taken_away(void **unused)
{
	const struct support_counts before = support_count(names[0]);
	int strangers[NUMBERS], count;
	uint8_t bytes[1000];
	char letters[8];

	(void)unused;
	assert_int_equal(RAND_bytes_ex(configured, bytes, sizeof(bytes), 0), 1);
	count = replace_descriptors(strangers);
	assert_int_equal(count, served[0] + served[1]); /* one a generator, whatever has used it so far */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(RAND_bytes_ex(configured, bytes, sizeof(bytes), 0), 1);
		assert_null(memmem(bytes, sizeof(bytes), "theirs", 6));
	}
	assert_share(&before, 0, 4 * sizeof(bytes));
	for (int i = 0; i < count; i++) {
		assert_int_equal(recv(strangers[i], letters, sizeof(letters), MSG_DONTWAIT), 6);
		close(strangers[i]);
	}
}

/* From here on socket(2), and getrandom(2) if `all`, are refused, as a sandbox may. */
static void enter_sandbox(bool all)
{
#define REFUSE(nr, error) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_socket, EPERM),
		REFUSE(all ? SYS_getrandom : SYS_socket, EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(100);
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0;
}

/* What is open may be used on; what has to be opened is replaced; with nothing left at all there is an error. */
static int in_sandbox(EVP_RAND_CTX *c, bool all)
{
	uint8_t bytes[64] = {0};

	alarm(60);
	enter_sandbox(all);
	if (EVP_RAND_generate(c, bytes, sizeof(bytes), 256, 0, NULL, 0) != (served[0] || !all) ||
	    all_zero(bytes, sizeof(bytes)) == (served[0] || !all))
		return 1;
	for (int i = 0; i < 3; i++) {
		const int ok = EVP_RAND_generate(c, bytes, sizeof(bytes), 256, 1, NULL, 0); /* from a new seed */

		if (ok == all || all_zero(bytes, sizeof(bytes)) != all)
			return 2 + i;
		if (!ok && ERR_peek_error() == 0)
			return 10;
	}
	return 0;
}

static void sandboxes(void **unused)
{
	EVP_RAND_CTX *c = open_context(0);
	uint8_t bytes[16];

	(void)unused;
	assert_true(EVP_RAND_generate(c, bytes, sizeof(bytes), 256, 0, NULL, 0));
	for (int all = 0; all < 2; all++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(in_sandbox(c, all));
		assert_int_equal(child_status(pid), 0);
	}
	EVP_RAND_CTX_free(c);
}

/*** What they look like: the tests of FIPS 140-2 (change notice 1) on blocks of 20000 bits ***/

#define BLOCK 2500u

static bool in_bounds(const unsigned runs[7])
{
	static const unsigned least[] = {2315, 1114, 527, 240, 103, 103}, most[] = {2685, 1386, 723, 384, 209, 209};

	for (int i = 0; i < 6; i++)
		if (runs[i] < least[i] || runs[i] > most[i])
			return false;
	return runs[6] == 0; /* of 26 bits and more */
}

static bool fips_good(const uint8_t *block)
{
	unsigned ones = 0, nibbles[16] = {0}, runs[2][7] = {{0}}, length = 0;
	unsigned last = block[0] >> 7;
	double squares = 0, poker;

	for (unsigned i = 0; i <= 8 * BLOCK; i++) {
		const unsigned bit = i == 8 * BLOCK ? !last : (unsigned)block[i / 8] >> (7 - i % 8) & 1u;

		if (bit == last) {
			length++;
		} else {
			runs[last][length >= 6 ? 5 : length - 1]++;
			runs[last][6] += length >= 26;
			length = 1;
		}
		last = bit;
		ones += i < 8 * BLOCK && bit;
	}
	for (unsigned i = 0; i < BLOCK; i++) {
		nibbles[block[i] >> 4]++;
		nibbles[block[i] & 15]++;
	}
	for (int i = 0; i < 16; i++)
		squares += (double)nibbles[i] * nibbles[i];
	poker = squares * 16 / (2 * BLOCK) - 2 * BLOCK;
	return ones > 9725 && ones < 10275 && poker > 2.16 && poker < 46.17 && in_bounds(runs[0]) && in_bounds(runs[1]);
}

/* How many of so many blocks the tests find fault with. */
static unsigned bad_blocks(void (*fill)(uint8_t *block, void *context), void *context, unsigned blocks)
{
	uint8_t block[BLOCK];
	unsigned bad = 0;

	for (unsigned i = 0; i < blocks; i++) {
		fill(block, context);
		bad += !fips_good(block);
	}
	return bad;
}

static void fill_from(uint8_t *block, void *context)
{
	assert_true(EVP_RAND_generate(context, block, BLOCK, 256, 0, NULL, 0));
}

/* A generator that begins again after 32 bytes. */
static void fill_period(uint8_t *block, void *context)
{
	support_fill(context, block, 32);
	for (unsigned i = 32; i < BLOCK; i++)
		block[i] = block[i - 32];
}

static void fill_pseudo(uint8_t *block, void *context)
{
	support_fill(context, block, BLOCK);
}

/* A generator with a bit in 32 stuck at one. */
static void fill_biased(uint8_t *block, void *context)
{
	support_fill(context, block, BLOCK);
	for (unsigned i = 0; i < BLOCK; i++)
		if (support_below(context, 4) == 0)
			block[i] |= (uint8_t)(1u << support_below(context, 8));
}

#define BLOCKS 4000u /* 10 MB */

/*
 * Of good random bytes about 8 blocks in 10000 fail. More than 4 in 1000 of this many are less likely than 1 in 10^6.
 */
static void statistics(void **unused)
{
	uint64_t state = 1;

	(void)unused;
	assert_int_equal(bad_blocks(fill_period, &state, 100), 100);
	assert_true(bad_blocks(fill_biased, &state, 100) > 5);
	assert_true(bad_blocks(fill_pseudo, &state, 1000) <= 4);
	for (int which = 0; which < 2; which++) {
		const struct support_counts before = support_count(names[which]);
		const unsigned blocks = which == 0 ? BLOCKS : 4; /* jitter is slow */
		EVP_RAND_CTX *c = open_context(which);
		const unsigned bad = bad_blocks(fill_from, c, blocks);

		printf("%s: %u of %u blocks fail\n", names[which], bad, blocks);
		assert_true(bad <= (which == 0 ? BLOCKS / 250 : 1));
		assert_share(&before, which, blocks * BLOCK);
		EVP_RAND_CTX_free(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_by_name),
		cmocka_unit_test(by_configuration),
		cmocka_unit_test(as_seed),
		cmocka_unit_test(sizes),
		cmocka_unit_test(reseeds),
		cmocka_unit_test(threads_draw_no_two_alike),
		cmocka_unit_test(forks_draw_no_two_alike),
		cmocka_unit_test(descriptors_taken_away),
		cmocka_unit_test(sandboxes),
		cmocka_unit_test(statistics),
	};
	int failed;

	alarm(600);
	support_init();
	served[0] = support_kernel_serves("rng", "stdrng");
	served[1] = support_kernel_serves("rng", "jitterentropy_rng");
	printf("the kernel serves stdrng: %d, jitterentropy_rng: %d\n", served[0], served[1]);
	plain = support_load("");
	configured = support_load("[o]\nrandom = r\n[r]\nrandom = AFALG-DRBG\nproperties = provider=afalgprov");
	seeded = support_load("[o]\nrandom = r\n[r]\nseed = AFALG-JITTER\nseed_properties = provider=afalgprov");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	OSSL_LIB_CTX_free(plain);
	OSSL_LIB_CTX_free(configured);
	OSSL_LIB_CTX_free(seeded);
	return failed;
}
