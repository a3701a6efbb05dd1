/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of MACs in the kernel: how many are open and when, what copies share, forks, threads; and every call of the
 * transport that fails. The caller must never notice, but for a MAC whose beginning is in the kernel already: then a
 * clear error is right, a wrong MAC never.
 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
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
#include "../../provider/counters.h"

#define LARGE 50000u
#define ID ALG_HMAC_SHA2_256

static struct lib lib;

/* A context with a key of its own, beside that of the default provider: both are told the same. */
struct pair {
	EVP_MAC_CTX *ours, *theirs;
	size_t size;
};

static struct pair pair_new(enum algorithm_id id)
{
	EVP_MAC *ours = mac_of(&lib, id, "afalgprov"), *theirs = mac_of(&lib, id, "default");
	struct pair p = {EVP_MAC_CTX_new(ours), EVP_MAC_CTX_new(theirs), algorithms[id].size};
	const OSSL_PARAM params[] = {mac_over(id), OSSL_PARAM_END};

	EVP_MAC_free(ours);
	EVP_MAC_free(theirs);
	assert_true(EVP_MAC_CTX_set_params(p.ours, params) && EVP_MAC_CTX_set_params(p.theirs, params));
	return p;
}

static bool pair_init(struct pair *p, const uint8_t *key, size_t keylen)
{
	return EVP_MAC_init(p->ours, key, keylen, NULL) && EVP_MAC_init(p->theirs, key, keylen, NULL);
}

static struct pair pair_dup(const struct pair *p)
{
	return (struct pair){EVP_MAC_CTX_dup(p->ours), EVP_MAC_CTX_dup(p->theirs), p->size};
}

static bool pair_update(struct pair *p, size_t n)
{
	return EVP_MAC_update(p->theirs, pattern() + n % 7, n) && EVP_MAC_update(p->ours, pattern() + n % 7, n);
}

/* Whether both give the same. */
static bool pair_final(struct pair *p)
{
	uint8_t right[EVP_MAX_MD_SIZE], got[EVP_MAX_MD_SIZE];
	size_t outl = 0;

	return EVP_MAC_final(p->theirs, right, &outl, sizeof(right)) &&
	       EVP_MAC_final(p->ours, got, &outl, sizeof(got)) && outl == p->size && memcmp(got, right, outl) == 0;
}

static void pair_free(struct pair *p)
{
	EVP_MAC_CTX_free(p->ours);
	EVP_MAC_CTX_free(p->theirs);
}

/* One more message of `n` bytes under the same key; whether it is right. */
static bool pair_message(struct pair *p, size_t n)
{
	return pair_init(p, NULL, 0) && pair_update(p, n) && pair_final(p);
}

/*** What is open ***/

static void test_who_did_it(void **state)
{
	static const struct {
		size_t updates[4];
		unsigned requests;
	} cases[] = {
		{{1, 0}, 1},     {{1000, 20, 1, 0}, 1},  {{1, 1, 1, 0}, 1},     {{65536, 0}, 1},
		{{65537, 0}, 2}, {{20000, 20000, 0}, 2}, {{20000, 1, 1, 0}, 2}, {{200000, 0}, 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pair p = pair_new(ID);
		size_t total = 0;

		fake_reset();
		assert_true(pair_init(&p, pattern(), 32));
		for (size_t u = 0; cases[i].updates[u] != 0; total += cases[i].updates[u++])
			assert_true(pair_update(&p, cases[i].updates[u]));
		assert_true(pair_final(&p));
		assert_int_equal(fake_calls(FAKE_HASH_SEND), cases[i].requests);
		assert_int_equal(fake_bytes(FAKE_HASH_SEND), total);
		pair_free(&p);
	}
}

/* One key is one transform and one operation: for all messages, for copies made before it was open, and given again. */
static void test_one_transform(void **state)
{
	struct pair p = pair_new(ID), copy;

	(void)state;
	fake_reset();
	assert_true(pair_init(&p, pattern(), 32));
	for (size_t i = 0; i < 10; i++) {
		copy = pair_dup(&p);
		assert_true(pair_update(&copy, 13) && pair_update(&copy, 16384) && pair_final(&copy));
		pair_free(&copy);
	}
	for (size_t i = 1; i < 10; i++)
		assert_true(pair_message(&p, 1000 * i));
	for (size_t i = 0; i < 10; i++)
		assert_true(pair_init(&p, pattern(), 32) && pair_update(&p, 777) && pair_final(&p));
	assert_int_equal(fake_calls(FAKE_OPEN), 1);
	assert_int_equal(fake_calls(FAKE_SET_KEY), 1);
	assert_int_equal(fake_calls(FAKE_HASH_START), 1);
	assert_int_equal(fake_calls(FAKE_HASH_FINISH), 29);
	assert_int_equal(afalg_hash_key_count(), 1);
	pair_free(&p);
	assert_int_equal(afalg_hash_key_count(), 0);
	assert_int_equal(fake_transforms(), 0);
	assert_int_equal(fake_ops(), 0);
}

/* Another key, or the same over another digest, is another transform; the one before is closed with its last holder. */
static void test_new_key(void **state)
{
	struct pair p = pair_new(ID), copy;
	char other[] = "SHA512";
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, other, 0), OSSL_PARAM_END};

	(void)state;
	fake_reset();
	assert_true(pair_init(&p, pattern(), 32) && pair_update(&p, LARGE));
	copy = pair_dup(&p);
	assert_true(pair_init(&p, pattern() + 1, 32) && pair_update(&p, LARGE));
	assert_int_equal(fake_transforms(), 2);
	assert_true(pair_update(&copy, 5) && pair_final(&copy));
	assert_true(pair_final(&p));
	pair_free(&copy);
	assert_int_equal(fake_transforms(), 1);
	assert_true(EVP_MAC_CTX_set_params(p.ours, params) && EVP_MAC_CTX_set_params(p.theirs, params));
	p.size = 64;
	assert_true(pair_init(&p, pattern() + 1, 32) && pair_update(&p, LARGE) && pair_final(&p));
	assert_int_equal(fake_transforms(), 1);
	assert_int_equal(fake_calls(FAKE_SET_KEY), 3);
	pair_free(&p);
	assert_int_equal(fake_transforms(), 0);
}

/* Keys longer than a block go to the kernel as their digest. A key that no message needs is never open. */
static void test_key_lengths(void **state)
{
	static const size_t cases[][2] = {{0, 0}, {1, 1}, {64, 64}, {65, 32}, {300, 32}, {70000, 32}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pair p = pair_new(ID);

		fake_reset();
		assert_true(pair_init(&p, pattern(), cases[i][0]));
		assert_int_equal(fake_calls(FAKE_OPEN), 0);
		assert_true(pair_final(&p)); /* nothing to hash */
		assert_int_equal(fake_calls(FAKE_OPEN), 0);
		assert_true(pair_message(&p, LARGE));
		assert_int_equal(fake_calls(FAKE_SET_KEY), 1);
		assert_int_equal(fake_bytes(FAKE_SET_KEY), cases[i][1]);
		pair_free(&p);
	}
}

/*** How many ***/

/* At the bound the key least recently used gives way, and comes back when it is needed. */
static void test_bound(void **state)
{
	struct pair p[5];

	(void)state;
	fake_install();
	afalg_hash_set_limit(2);
	for (size_t i = 0; i < 5; i++) {
		p[i] = pair_new(ID);
		assert_true(pair_init(&p[i], pattern() + i, 32));
	}
	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < 5; i++) {
			assert_true(pair_message(&p[i], LARGE));
			assert_true(afalg_hash_key_count() <= 2);
			assert_int_equal(fake_transforms(), afalg_hash_key_count());
		}
	assert_int_equal(fake_calls(FAKE_OPEN), 15);
	assert_true(pair_message(&p[4], 5) && pair_message(&p[3], 5)); /* these are still open */
	assert_int_equal(fake_calls(FAKE_OPEN), 15);
	assert_true(pair_message(&p[0], 5) && pair_message(&p[3], 5)); /* 4 has given way */
	assert_int_equal(fake_calls(FAKE_OPEN), 16);
	assert_int_equal(fake_bytes(FAKE_HASH_SEND), 15 * LARGE + 20);
	for (size_t i = 0; i < 5; i++)
		pair_free(&p[i]);
	assert_int_equal(fake_transforms(), 0);
	afalg_hash_set_limit(AFALG_SESSIONS_DEFAULT);
}

/* A key that a message is under way with does not give way. */
static void test_bound_in_use(void **state)
{
	struct pair p[3];

	(void)state;
	fake_install();
	afalg_hash_set_limit(2);
	for (size_t i = 0; i < 3; i++) {
		p[i] = pair_new(ID);
		assert_true(pair_init(&p[i], pattern() + i, 32) && pair_update(&p[i], LARGE));
	}
	assert_int_equal(fake_bytes(FAKE_HASH_SEND), 2 * LARGE);
	for (size_t i = 0; i < 3; i++)
		assert_true(pair_final(&p[i]));
	clock_now += 20000000000;
	assert_true(pair_message(&p[2], LARGE));
	assert_int_equal(fake_bytes(FAKE_HASH_SEND), 3 * LARGE);
	for (size_t i = 0; i < 3; i++)
		pair_free(&p[i]);
	afalg_hash_set_limit(AFALG_SESSIONS_DEFAULT);
}

/* A limit that was lowered holds from the next key on. */
static void test_limit_lowered(void **state)
{
	struct pair p[6];

	(void)state;
	fake_install();
	for (size_t i = 0; i < 6; i++) {
		p[i] = pair_new(ID);
		assert_true(pair_init(&p[i], pattern() + i, 32));
		if (i < 5)
			assert_true(pair_message(&p[i], LARGE));
	}
	assert_int_equal(afalg_hash_key_count(), 5);
	afalg_hash_set_limit(2);
	assert_true(pair_message(&p[5], LARGE));
	assert_int_equal(afalg_hash_key_count(), 2);
	for (size_t i = 0; i < 6; i++)
		pair_free(&p[i]);
	afalg_hash_set_limit(AFALG_SESSIONS_DEFAULT);
}

/*** Faults ***/

static const struct fault {
	int error;
	bool passing; /* says nothing about the next try */
} faults[] = {
	{EAFNOSUPPORT, false}, {EPERM, false},    {EACCES, false}, {ENOENT, false}, {ELIBBAD, false},
	{EINVAL, false},       {EMFILE, true},    {ENFILE, true},  {ENOMEM, true},  {EIO, true},
	{EBUSY, true},         {EAGAIN, true},    {EINTR, true},   {ENOKEY, false}, {EBADMSG, false},
	{EOVERFLOW, false},    {ETIMEDOUT, true},
};

#define FAULTS (sizeof(faults) / sizeof(*faults))

enum outcome { RIGHT, LOST };

/* As those of digests in fault_test.c: a message as a list of updates, 0 ends it, and a moment. */
static const struct fault_case {
	size_t updates[4];
	enum fake_call call;
	unsigned nth;
	enum outcome outcome;
} cases[] = {
	{{100}, FAKE_OPEN, 1, RIGHT},
	{{100}, FAKE_SET_KEY, 1, RIGHT},
	{{100}, FAKE_HASH_START, 1, RIGHT},
	{{100}, FAKE_HASH_SEND, 1, RIGHT},
	{{100}, FAKE_HASH_FINISH, 1, RIGHT},
	{{200000}, FAKE_SET_KEY, 1, RIGHT},
	{{200000}, FAKE_HASH_SEND, 1, RIGHT},
	{{200000}, FAKE_HASH_SEND, 3, RIGHT},
	{{100, 200000}, FAKE_HASH_SEND, 3, RIGHT},
	{{20000, 20000}, FAKE_HASH_SEND, 2, LOST},
	{{20000, 100}, FAKE_HASH_SEND, 2, LOST},
	{{200000}, FAKE_HASH_FINISH, 1, LOST},
};

static void expect_our_error(int reason)
{
	unsigned long e = ERR_peek_error();

	assert_true(ERR_GET_LIB(e) >= ERR_LIB_USER); /* a provider's own */
	assert_int_equal(ERR_GET_REASON(e), reason);
	ERR_clear_error();
}

static bool run(struct pair *p, const struct fault_case *f)
{
	bool ok = true;

	for (int i = 0; ok && i < 4 && f->updates[i] != 0; i++)
		ok = pair_update(p, f->updates[i]);
	return ok && pair_final(p);
}

static void one_fault(enum algorithm_id id, const struct fault_case *f, const struct fault *fault)
{
	const bool opening = f->call == FAKE_OPEN || f->call == FAKE_SET_KEY || f->call == FAKE_HASH_START;
	struct counts *counts = counters_of(id);
	uint64_t fallbacks = atomic_load(&counts->fallbacks), errors = atomic_load(&counts->errors);
	struct pair p = pair_new(id);

	fake_install();
	assert_true(pair_init(&p, pattern(), mac_key_length(id)));
	fake_fail(f->call, f->nth, fault->error, 1);
	assert_int_equal(run(&p, f), f->outcome == RIGHT);
	if (f->outcome == LOST) {
		expect_our_error(ERROR_KERNEL_HASH);
		assert_int_equal(fake_ops(), 0); /* given up at once */
		assert_null(EVP_MAC_CTX_dup(p.ours));
		expect_our_error(ERROR_KERNEL_COPY);
		assert_false(EVP_MAC_update(p.ours, pattern(), 1));
		expect_our_error(ERROR_KERNEL_HASH);
	}
	assert_int_equal(ERR_peek_error(), 0);
	assert_int_equal(atomic_load(&counts->fallbacks) - fallbacks, f->outcome == RIGHT);
	assert_true((atomic_load(&counts->errors) > errors) == (f->outcome == LOST));

	/* The lane is closed, or rests; what follows is right at once. */
	fake_reset();
	assert_true(pair_init(&p, NULL, 0) && run(&p, f));
	assert_int_equal(fake_calls(FAKE_HASH_SEND), 0);
	clock_now += 20000000000;
	assert_true(pair_init(&p, NULL, 0) && run(&p, f));
	assert_int_equal(fake_calls(FAKE_HASH_FINISH), !opening || fault->passing);
	assert_int_equal(ERR_peek_error(), 0);
	pair_free(&p);
	assert_int_equal(fake_transforms(), 0);
	assert_int_equal(fake_ops(), 0);
}

static void test_faults(void **state)
{
	static const enum algorithm_id ids[] = {ID, ALG_CMAC_DES_EDE3};

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
			for (size_t f = 0; f < FAULTS; f++)
				one_fault(ids[i], &cases[c], &faults[f]);
}

/* A copy that fails leaves the original as it was. */
static void test_copy_fails(void **state)
{
	struct pair p = pair_new(ID);

	(void)state;
	for (size_t f = 0; f < FAULTS; f++) {
		fake_install();
		assert_true(pair_init(&p, pattern(), 32) && pair_update(&p, LARGE));
		fake_fail(FAKE_HASH_COPY, 1, faults[f].error, 1);
		assert_null(EVP_MAC_CTX_dup(p.ours));
		expect_our_error(ERROR_KERNEL_COPY);
		assert_true(pair_update(&p, 1) && pair_final(&p));
	}
	pair_free(&p);
}

/* A device that has gone in the middle of everything: each message is right or an error. */
static void test_always_failing(void **state)
{
	struct pair p = pair_new(ID);

	(void)state;
	for (enum fake_call call = FAKE_OPEN; call < FAKE_CALLS; call++) {
		fake_install();
		assert_true(pair_init(&p, pattern() + call, 32));
		fake_fail(call, 1, EIO, FAKE_ALWAYS);
		for (int i = 0; i < 20; i++) {
			clock_now += 20000000000;
			if (pair_message(&p, 100) && pair_message(&p, LARGE))
				continue;
			assert_int_equal(call, FAKE_HASH_FINISH);
			expect_our_error(ERROR_KERNEL_HASH);
		}
	}
	pair_free(&p);
}

/*** Forks ***/

/* Forks; `child` says whether all was well, in it. A crash must end the child: cmocka's handlers would go on in it. */
static void in_child(bool (*child)(struct pair *), struct pair *p)
{
	static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
	int status = -1;
	pid_t pid;

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], SIG_DFL);
	pid = fork();
	if (pid == 0) {
		alarm(30);
		_exit(child(p) && fake_violations() == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A message goes on, others follow under the same key, and under another; the transform is the parent's still. */
static bool go_on(struct pair *p)
{
	bool ok;

	fake_reset();
	ok = pair_update(p, 20001) && pair_final(p);
	for (size_t i = 1; i < 5; i++)
		ok = ok && pair_message(p, 10000 * i);
	ok = ok && fake_calls(FAKE_OPEN) == 0 && fake_bytes(FAKE_HASH_SEND) >= 20001 + 100000;
	ok = ok && pair_init(p, pattern() + 9, 32) && pair_update(p, LARGE) && pair_final(p);
	ok = ok && fake_calls(FAKE_OPEN) == 1;
	pair_free(p);
	return ok && ERR_peek_error() == 0;
}

static void test_fork(void **state)
{
	static const size_t lengths[] = {0, 5, 300, LARGE};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct pair p = pair_new(ID), idle = pair_new(ID);

		fake_install();
		assert_true(pair_init(&idle, pattern(), 32) && pair_update(&idle, LARGE) && pair_final(&idle));
		assert_true(pair_init(&p, pattern(), 32) && pair_message(&p, LARGE));
		assert_true(pair_init(&p, NULL, 0) && pair_update(&p, lengths[i]));
		in_child(go_on, &p);
		assert_true(pair_message(&idle, LARGE));
		assert_true(go_on(&p));
		pair_free(&idle);
		assert_int_equal(fake_ops(), 0);
		assert_int_equal(fake_transforms(), 0);
	}
}

/* Copies that share a key, one on each side of a fork. */
static void test_fork_copies(void **state)
{
	struct pair p = pair_new(ID), copy;

	(void)state;
	fake_install();
	assert_true(pair_init(&p, pattern(), 32) && pair_update(&p, LARGE));
	copy = pair_dup(&p);
	in_child(go_on, &copy);
	assert_true(go_on(&copy));
	assert_true(go_on(&p));
}

/* Without a copy of its state the child's message is lost, and says so; the parent's is not touched. */
static bool lost(struct pair *p)
{
	bool ok = !EVP_MAC_update(p->ours, pattern(), LARGE);

	ERR_clear_error();
	ok = ok && pair_message(p, LARGE);
	pair_free(p);
	return ok;
}

static void test_fork_fails(void **state)
{
	struct pair p = pair_new(ID);

	(void)state;
	fake_install();
	assert_true(pair_init(&p, pattern(), 32) && pair_update(&p, LARGE));
	fake_fail(FAKE_HASH_COPY, 1, EMFILE, 1);
	in_child(lost, &p);
	assert_true(go_on(&p));
}

/*** Threads ***/

#define THREADS 6

static atomic_int wrong;

/* Copies of one context, and keys of one's own, in turn. */
static void *work(void *shared)
{
	const struct pair *master = shared;

	for (size_t i = 0; i < 40; i++) {
		struct pair p = pair_dup(master), copy;
		bool ok;

		ok = pair_update(&p, 20000) && pair_update(&p, 300);
		copy = pair_dup(&p);
		ok = ok && pair_final(&p) && pair_message(&p, 100);
		ok = ok && pair_init(&p, pattern() + i, 32) && pair_update(&p, 20000) && pair_final(&p);
		ok = ok && pair_update(&copy, 100) && pair_final(&copy);
		pair_free(&p);
		pair_free(&copy);
		if (!ok)
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

static void threads_with_limit(unsigned limit)
{
	struct pair p = pair_new(ID);
	pthread_t threads[THREADS];

	fake_install();
	afalg_hash_set_limit(limit);
	atomic_store(&wrong, 0);
	assert_true(pair_init(&p, pattern() + 99, 32));
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &p), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	assert_true(fake_bytes(FAKE_HASH_SEND) > 0);
	assert_true(pair_message(&p, LARGE));
	pair_free(&p);
	assert_int_equal(fake_transforms(), 0);
	assert_int_equal(fake_ops(), 0);
	afalg_hash_set_limit(AFALG_SESSIONS_DEFAULT);
}

static void test_threads(void **state)
{
	(void)state;
	threads_with_limit(AFALG_SESSIONS_DEFAULT);
}

/* Fewer keys than threads: some find none and stay in software. */
static void test_threads_few_keys(void **state)
{
	(void)state;
	threads_with_limit(3);
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	lib_drive_clock(&lib);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_did_it),
		cmocka_unit_test(test_one_transform),
		cmocka_unit_test(test_new_key),
		cmocka_unit_test(test_key_lengths),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_bound_in_use),
		cmocka_unit_test(test_limit_lowered),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_copy_fails),
		cmocka_unit_test(test_always_failing),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_copies),
		cmocka_unit_test(test_fork_fails),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_threads_few_keys),
	};

	return cmocka_run_group_tests_name("keys of MACs", tests, setup, teardown);
}
