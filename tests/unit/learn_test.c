/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the router learns, with devices that exist only as numbers: each call moves the clock by what its lane costs. The
 * measure is the lane that would have been right, known by the one who wrote the numbers.
 */
#include <stdlib.h>

#include "../../provider/cost.h"
#include "../../provider/counters.h"
#include "../../provider/learn.h"
#include "helper.h"

#define MIB (1u << 20)
#define ID ALG_AES_128_CBC

/* What calls cost: nanoseconds, and picoseconds a byte. */
struct world {
	uint64_t software_fixed, software_byte, kernel_fixed, kernel_byte, opening;
	unsigned noise; /* one call in so many takes a hundred times as long; 0: none */
};

static struct lib lib;
static uint64_t time_now;
static uint32_t dice;

static uint64_t driven(void)
{
	return time_now;
}

static uint64_t driven_meter(bool kernel)
{
	(void)kernel;
	return time_now;
}

static uint32_t roll(uint32_t n)
{
	dice = dice * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)dice * n) >> 32);
}

static uint64_t software_cost(const struct world *w, size_t bytes)
{
	return w->software_fixed + w->software_byte * bytes / 1000;
}

static uint64_t kernel_cost(const struct world *w, size_t bytes)
{
	return w->kernel_fixed + w->kernel_byte * bytes / 1000;
}

/* What became of a run. */
struct tally {
	uint64_t spent, best;         /* nanoseconds; the second without noise and with perfect choice */
	unsigned long kernel, probes; /* calls in the kernel, and those of them that were dearer than software */
};

static void call(const struct world *w, struct route_use *use, size_t bytes, struct tally *t)
{
	const struct route *r = &lib.provider->route;
	const uint64_t software = software_cost(w, bytes), kernel = kernel_cost(w, bytes), begun = time_now;
	const bool noisy = w->noise > 0 && roll(w->noise) == 0;

	if (route_take(r, use, bytes)) {
		if (!use->open)
			time_now += w->opening;
		route_opened(r, use);
		use->open = true;
		time_now += noisy ? kernel * 100 : kernel;
		route_outcome(r, use, true, 0);
		t->kernel++;
		t->probes += kernel > software;
	} else {
		time_now += noisy ? software * 100 : software;
		route_done(r, use);
	}
	t->spent += noisy ? (kernel < software ? kernel : software) : time_now - begun;
	t->best += kernel < software ? kernel : software;
}

/* Calls of one size, all with the same key. */
static struct tally run(const struct world *w, size_t bytes, size_t total)
{
	struct route_use use = {.id = ID};
	struct tally t = {0};

	for (size_t done = 0; done < total; done += bytes)
		call(w, &use, bytes, &t);
	return t;
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, "policy = speed\ncounters = off\n");
	lib.provider->route.clock = driven;
	lib.provider->route.meter = driven_meter;
	time_now = 1000000;
	dice = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	return 0;
}

/* Software at 1 GB/s; a device that needs 100 microseconds a request, and loses everywhere. */
#define SLOW_DEVICE                             \
	{                                       \
		50, 1000, 100000, 500, 60000, 0 \
	}
static const struct world slow_device = SLOW_DEVICE;

/* Software at 100 MB/s, as a small board has it; a device that wins from 4 KiB on. */
#define BOARD                                     \
	{                                         \
		300, 10000, 30000, 2000, 60000, 0 \
	}
static const struct world board = BOARD;

static void test_small_calls_never_try(void **state)
{
	struct tally t;

	(void)state;
	run(&slow_device, 16384, 16 * MIB); /* the device is known */
	for (size_t bytes = 16; bytes <= 1024; bytes *= 4) {
		t = run(&slow_device, bytes, 4 * MIB);
		assert_int_equal(t.kernel, 0);
	}
}

static void within(const struct tally *t, unsigned percent, uint64_t ns)
{
	if (t->spent > t->best + t->best * percent / 100 + ns)
		fail_msg("%llu ns where %llu would do, %lu of the calls in the kernel, %lu of them dearer",
			 (unsigned long long)t->spent, (unsigned long long)t->best, t->kernel, t->probes);
}

/* All sizes and devices: what learning costs at first, and later. */
static void test_price(void **state)
{
	static const struct world worlds[] = {
		SLOW_DEVICE,
		BOARD,
		{50, 1000, 20000, 300, 60000, 0},       /* wins from 32 KiB on */
		{300, 10000, 3000, 2000, 10000, 0},     /* wins from 512 bytes on */
		{300, 10000, 400000, 50000, 100000, 0}, /* hopeless */
		{300, 10000, 30000, 9000, 60000, 0},    /* wins by little, far out */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++)
		for (size_t bytes = 16; bytes <= 65536; bytes *= 2) {
			struct tally t;

			route_forget();
			t = run(&worlds[i], bytes, 64 * MIB);
			within(&t, 1, 12000000); /* what ignorance costs at first, too */
			t = run(&worlds[i], bytes, 64 * MIB);
			within(&t, bytes < COST_LEAST ? 0 : 1, bytes < COST_LEAST ? 0 : 1000000);
		}
}

/* The sizes of a program that does all sorts of things. */
static void test_mixed(void **state)
{
	struct route_use use = {.id = ID};
	struct tally t = {0};

	(void)state;
	for (int round = 0; round < 2; round++) {
		t = (struct tally){0};
		for (int i = 0; i < 20000; i++)
			call(&board, &use, (size_t)16 << roll(13), &t);
	}
	within(&t, 2, 0);
	assert_in_range(route_floor(&lib.provider->route, ID), 3072, 6144); /* true: 3712 */
}

/* Where no call reaches the threshold that the router begins with. */
static void test_below_start(void **state)
{
	struct tally t;

	(void)state;
	run(&board, 8192, 64 * MIB);
	t = run(&board, 8192, 64 * MIB);
	within(&t, 2, 0);
	assert_true(t.kernel > 64 * MIB / 8192 * 9 / 10);
}

/* A program whose calls grow: that the kernel loses with the small ones says nothing of the large ones. */
static void test_growing(void **state)
{
	static const struct world emulated = {100, 30000, 300000, 5500, 500000, 0}; /* wins from 16 KiB on */
	struct route_use use = {.id = ID};
	struct tally t = {0};

	(void)state;
	for (size_t bytes = 16; bytes <= 65536; bytes *= 2)
		for (int i = 0; i < 400; i++) {
			if (i == 100)
				t = (struct tally){0};
			call(&emulated, &use, bytes, &t);
			if (i == 399)
				within(&t, 5, 2000000);
		}
}

/* The device gets ten times as slow when others use it too, and comes back. */
static void test_load(void **state)
{
	struct world loaded = board;

	(void)state;
	loaded.kernel_fixed *= 10;
	loaded.kernel_byte *= 10;
	for (int round = 0; round < 3; round++) {
		struct tally t;

		run(&board, 16384, 32 * MIB);
		t = run(&board, 16384, 32 * MIB);
		within(&t, 2, 0);
		run(&loaded, 16384, 32 * MIB);
		t = run(&loaded, 16384, 32 * MIB);
		within(&t, 2, 0);
	}
}

/* A call that was interrupted says nothing of its lane. */
static void test_noise(void **state)
{
	struct world noisy = board;

	(void)state;
	noisy.noise = 50;
	for (size_t bytes = 1024; bytes <= 65536; bytes *= 8) {
		struct tally t;

		run(&noisy, bytes, 64 * MIB);
		t = run(&noisy, bytes, 64 * MIB);
		within(&t, 5, 0);
	}
}

/* Keys that serve for a few calls only: opening the lane for each may cost more than it brings. */
static void test_short_lived_keys(void **state)
{
	static const int calls[] = {1, 2, 5, 100};

	(void)state;
	run(&board, 8192, 64 * MIB);
	for (size_t c = 0; c < sizeof(calls) / sizeof(*calls); c++) {
		const uint64_t software = software_cost(&board, 8192) * (uint64_t)calls[c];
		const uint64_t kernel = kernel_cost(&board, 8192) * (uint64_t)calls[c] + board.opening;
		struct tally t = {0};

		for (int key = 0; key < 1000; key++) {
			struct route_use use = {.id = ID};

			for (int i = 0; i < calls[c]; i++)
				call(&board, &use, 8192, &t);
		}
		t.best = (software < kernel ? software : kernel) * 1000;
		within(&t, 100, 0); /* nobody can promise less */
		if (calls[c] == 1)
			within(&t, 2, 0);
	}
}

/* Each direction is learnt for itself. */
static void test_directions(void **state)
{
	struct route_use encrypt = {.id = ID}, decrypt = {.id = ID, .decrypt = true};
	struct tally e = {0}, d = {0};

	(void)state;
	for (int round = 0; round < 2; round++) {
		e = d = (struct tally){0};
		for (int i = 0; i < 10000; i++) {
			call(&board, &encrypt, 16384, &e);
			call(&slow_device, &decrypt, 16384, &d);
		}
	}
	within(&e, 2, 0);
	within(&d, 2, 0);
}

/* What is learnt can be seen by others, for each direction. */
static void test_published(void **state)
{
	const struct counts *c = counters_of(ID);
	struct route_use decrypt = {.id = ID, .decrypt = true};
	struct tally d = {0};

	(void)state;
	run(&board, 4096, 16 * MIB);
	run(&board, 16384, 64 * MIB);
	for (int i = 0; i < 2000; i++)
		call(&slow_device, &decrypt, 32768, &d);
	assert_int_equal(c->lane, COUNTERS_LANE_OPEN);
	assert_in_range(c->way[0].crossover, 2048, 8192);
	assert_int_equal(c->way[0].bytes, 16384);
	assert_in_range(c->way[0].software, 160000, 170000); /* true: 164140 */
	assert_in_range(c->way[0].kernel, 60000, 66000);     /* true: 62768 */
	assert_int_equal(c->way[1].crossover, COUNTERS_NEVER);
	assert_int_equal(c->way[1].bytes, 32768);
	assert_in_range(c->way[1].software, 32000, 34000);
}

/* The clock is read for so few calls that it takes a hundredth of them. */
static uint64_t reads;

static uint64_t slow_clock(void)
{
	reads++;
	return time_now += 500;
}

static uint64_t slow_meter(bool kernel)
{
	(void)kernel;
	return slow_clock();
}

static void test_clock(void **state)
{
	struct tally t;

	(void)state;
	lib.provider->route.clock = slow_clock;
	lib.provider->route.meter = slow_meter;
	run(&slow_device, 16384, 16 * MIB);
	run(&slow_device, 512, 4 * MIB);
	reads = 0;
	t = run(&slow_device, 512, 4 * MIB);
	assert_true(reads * 500 <= t.best / 50);
	assert_true(reads > 0);
}

/* What neighbours tell about classes that no call has hit. */
static void test_model(void **state)
{
	static struct cost_table t;

	(void)state;
	assert_false(cost_known(&t));
	assert_int_equal(cost_expected(&t, COST_SOFTWARE, 1024), 0);
	cost_note(&t, COST_SOFTWARE, 16384, 16000, false);
	assert_int_equal(cost_expected(&t, COST_SOFTWARE, 1024), 1000);
	assert_int_equal(cost_expected(&t, COST_SOFTWARE, 1u << 20), 1024000);
	cost_note(&t, COST_KERNEL, 16384, 12000, false);
	assert_int_equal(cost_expected(&t, COST_KERNEL, 1024), 12000); /* all of it may be the fixed part */
	assert_true(cost_known(&t));
	assert_true(cost_kernel_wins(&t, 16384) && cost_kernel_wins(&t, 65536));
	assert_false(cost_kernel_wins(&t, 8192));
	assert_int_equal(cost_crossover(&t), 16384);
	cost_note(&t, COST_KERNEL, 65536, 36000, false);
	assert_in_range(cost_expected(&t, COST_KERNEL, 1024), 4400, 4600); /* 4 us and 0.5 ns a byte */
	assert_in_range(cost_expected(&t, COST_KERNEL, 32768), 19900, 20100);
	assert_int_equal(cost_crossover(&t), 12288); /* true: 8000, with nothing in hand */
	cost_forget(&t);
	assert_false(cost_known(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define LEARN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		LEARN(test_small_calls_never_try),
		LEARN(test_price),
		LEARN(test_mixed),
		LEARN(test_below_start),
		LEARN(test_growing),
		LEARN(test_load),
		LEARN(test_noise),
		LEARN(test_short_lived_keys),
		LEARN(test_directions),
		LEARN(test_published),
		LEARN(test_clock),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests_name("learn", tests, NULL, NULL);
}
