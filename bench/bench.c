/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench [OPTION]...: how fast the module is, beside the default provider and a bare loop over AF_ALG, on this machine
 * and kernel. All sides take turns in one run, many times, and medians are compared: that a machine is busy or
 * throttled for a while meets all sides alike.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_alg.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "afalg/catalogue.h"
#include "afalg/socket.h"
#include "provider/algorithms.h"
#include "support.h"

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define SIZE_MAX_BYTES 1048576u
#define ROUNDS_MAX 101

enum side { SIDE_DEFAULT, SIDE_PROVIDER, SIDE_BARE, SIDES };
static const char *const side_names[SIDES] = {"default", "provider", "bare"};

static struct {
	const char *settings;
	const char *algorithms, *sizes;
	const char *csv;
	unsigned rounds, milliseconds;
	bool sides[SIDES];
} options = {
	.settings = "",
	.algorithms = "AES-128-CBC,SHA2-256",
	.sizes = "16,64,256,1024,8192,16384",
	.rounds = 15,
	.milliseconds = 20,
	.sides = {true, true, false},
};

static OSSL_LIB_CTX *contexts[2]; /* default, provider */
static uint8_t input[SIZE_MAX_BYTES], output[SIZE_MAX_BYTES + 64];
static const uint8_t key[32] = {1, 2, 3}, iv[16] = {4, 5, 6};

/* One side of one measurement. */
struct runner {
	const struct algorithm *algorithm;
	EVP_CIPHER_CTX *cipher;
	EVP_MD *md;
	int tfm, op;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t key_bytes(const char *name)
{
	const char *digits = strpbrk(name, "123");

	return digits == NULL ? 0 : (size_t)strtoul(digits, NULL, 10) / 8;
}

static void evp_open(struct runner *r, OSSL_LIB_CTX *ctx)
{
	EVP_CIPHER *cipher;

	if (r->algorithm->kind == KIND_HASH) {
		r->md = EVP_MD_fetch(ctx, r->algorithm->name, NULL);
		if (r->md == NULL)
			errx(1, "no %s", r->algorithm->name);
		return;
	}
	cipher = EVP_CIPHER_fetch(ctx, r->algorithm->name, NULL);
	r->cipher = EVP_CIPHER_CTX_new();
	if (cipher == NULL || !EVP_EncryptInit_ex(r->cipher, cipher, NULL, key, iv))
		errx(1, "no %s", r->algorithm->name);
	EVP_CIPHER_free(cipher);
}

/* As `openssl speed` does: updates of one context; whole messages of a digest. */
static void evp_run(struct runner *r, size_t size, unsigned long n)
{
	int outl;

	if (r->md != NULL) {
		while (n-- > 0)
			if (!EVP_Digest(input, size, output, NULL, r->md, NULL))
				errx(1, "digest failed");
		return;
	}
	while (n-- > 0)
		if (!EVP_EncryptUpdate(r->cipher, output, &outl, input, (int)size))
			errx(1, "update failed");
}

static void bare_open(struct runner *r)
{
	const bool hash = r->algorithm->kind == KIND_HASH;

	r->tfm = afalg_socket_bind(algorithm_type(r->algorithm->kind), r->algorithm->kernel);
	if (r->tfm < 0)
		errx(1, "%s: %s", r->algorithm->kernel, afalg_explain(r->tfm));
	if (!hash && setsockopt(r->tfm, SOL_ALG, ALG_SET_KEY, key, (socklen_t)key_bytes(r->algorithm->name)) != 0)
		err(1, "set key");
	r->op = accept(r->tfm, NULL, NULL);
	if (r->op < 0)
		err(1, "accept");
}

/* Direction and IV of a cipher request. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint32_t) + sizeof(iv))];
};

static void put_control(struct msghdr *msg, union control *control)
{
	const uint32_t direction = ALG_OP_ENCRYPT, ivlen = sizeof(iv);
	struct cmsghdr *c;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = sizeof(control->bytes);
	c = CMSG_FIRSTHDR(msg);
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(direction)), .cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_OP};
	memcpy(CMSG_DATA(c), &direction, sizeof(direction));
	c = CMSG_NXTHDR(msg, c);
	*c = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(ivlen) + sizeof(iv)), .cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_IV};
	memcpy(CMSG_DATA(c), &ivlen, sizeof(ivlen));
	memcpy(CMSG_DATA(c) + sizeof(ivlen), iv, sizeof(iv));
}

/* The least that a request costs: one sendmsg, one recv. */
static void bare_run(struct runner *r, size_t size, unsigned long n)
{
	const bool hash = r->algorithm->kind == KIND_HASH;
	const size_t expected = hash ? r->algorithm->size : size;
	struct iovec iov = {input, size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;

	if (!hash)
		put_control(&msg, &control);
	while (n-- > 0)
		if (sendmsg(r->op, &msg, 0) != (ssize_t)size || recv(r->op, output, expected, 0) != (ssize_t)expected)
			err(1, "bare request of %zu bytes", size);
}

static void runner_open(struct runner *r, enum side side, const struct algorithm *a)
{
	*r = (struct runner){.algorithm = a, .tfm = -1, .op = -1};
	if (side == SIDE_BARE)
		bare_open(r);
	else
		evp_open(r, contexts[side]);
}

static void runner_close(struct runner *r)
{
	EVP_CIPHER_CTX_free(r->cipher);
	EVP_MD_free(r->md);
	if (r->op >= 0)
		close(r->op);
	if (r->tfm >= 0)
		close(r->tfm);
}

static double seconds(struct runner *r, enum side side, size_t size, unsigned long n)
{
	const double start = now();

	if (side == SIDE_BARE)
		bare_run(r, size, n);
	else
		evp_run(r, size, n);
	return now() - start;
}

/* How many calls take about the wished time. */
static unsigned long calibrate(struct runner *r, enum side side, size_t size)
{
	const double wish = options.milliseconds * 1e-3;
	unsigned long n = 1;

	for (;;) {
		double t = seconds(r, side, size, n);

		if (t > wish / 4)
			return (unsigned long)((double)n * wish / t) + 1;
		n *= 4;
	}
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
	qsort(values, n, sizeof(*values), ascending);
	return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Measures all sides in turn. rates: MB/s, medians. ratios: of the provider to the side, the median over the rounds. */
static void measure(const struct algorithm *a, size_t size, double rates[SIDES], double ratios[SIDES])
{
	static double rate[SIDES][ROUNDS_MAX], ratio[SIDES][ROUNDS_MAX];
	struct runner runners[SIDES];
	unsigned long n[SIDES];

	for (int s = 0; s < SIDES; s++)
		if (options.sides[s]) {
			runner_open(&runners[s], (enum side)s, a);
			calibrate(&runners[s], (enum side)s, size); /* warms up */
		}
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s])
			n[s] = calibrate(&runners[s], (enum side)s, size);
	for (unsigned round = 0; round < options.rounds; round++) {
		for (int i = 0; i < SIDES; i++) {
			int s = (int)((unsigned)i + round) % SIDES; /* each side comes first in turn */

			if (options.sides[s])
				rate[s][round] = (double)size * (double)n[s] /
						 seconds(&runners[s], (enum side)s, size, n[s]) / 1e6;
		}
		for (int s = 0; s < SIDES; s++)
			if (options.sides[s])
				ratio[s][round] = rate[SIDE_PROVIDER][round] / rate[s][round];
	}
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s]) {
			rates[s] = median(rate[s], options.rounds);
			ratios[s] = median(ratio[s], options.rounds);
			runner_close(&runners[s]);
		}
}

static void print_head(FILE *csv)
{
	printf("%-14s %8s", "algorithm", "bytes");
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s])
			printf(" %11s", side_names[s]);
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s] && s != SIDE_PROVIDER)
			printf("  /%-8s", side_names[s]);
	printf("   (MB/s; provider divided by the others)\n");
	if (csv != NULL)
		fprintf(csv, "algorithm,bytes,side,megabytes_per_second,provider_ratio\n");
}

static void bench_cell(const struct algorithm *a, size_t size, FILE *csv)
{
	double rates[SIDES] = {0}, ratios[SIDES] = {0};

	measure(a, size, rates, ratios);
	printf("%-14s %8zu", a->name, size);
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s])
			printf(" %11.2f", rates[s]);
	for (int s = 0; s < SIDES; s++)
		if (options.sides[s] && s != SIDE_PROVIDER)
			printf("  %9.3f", ratios[s]);
	printf("\n");
	fflush(stdout);
	for (int s = 0; csv != NULL && s < SIDES; s++)
		if (options.sides[s])
			fprintf(csv, "%s,%zu,%s,%.3f,%.4f\n", a->name, size, side_names[s], rates[s], ratios[s]);
}

static void reference_load(void)
{
	OSSL_LIB_CTX *ctx = support_reference();
	OSSL_PROVIDER *provider = OSSL_PROVIDER_load(ctx, "default");

	if (provider == NULL)
		errx(1, "no default provider");
	OSSL_PROVIDER_unload(provider);
	OSSL_LIB_CTX_free(ctx);
}

/* Time to load the provider and to unload it, beside the time for the default provider alone. */
static void bench_load(void)
{
	static double load[ROUNDS_MAX], reference[ROUNDS_MAX];

	for (unsigned i = 0; i < options.rounds; i++) {
		double start = now();

		reference_load();
		reference[i] = now() - start;
		start = now();
		OSSL_LIB_CTX_free(support_load(options.settings));
		load[i] = now() - start;
	}
	printf("load and unload: default provider alone %.3f ms, with afalgprov from a configuration file %.3f ms\n",
	       median(reference, options.rounds) * 1e3, median(load, options.rounds) * 1e3);
}

/* A guest that has just started is slow for a second or two: its emulator still translates, caches are empty. */
static void warm_up(void)
{
	const double end = now() + 2;

	while (now() < end)
		for (int s = 0; s < SIDES; s++)
			if (options.sides[s] && s != SIDE_BARE) {
				struct runner r;

				runner_open(&r, (enum side)s, &algorithms[0]);
				seconds(&r, (enum side)s, 1024, 100);
				runner_close(&r);
			}
}

static void usage(FILE *f)
{
	fprintf(f, "usage: bench [-a ALGORITHM,...] [-b BYTES,...] [-s SETTING;...] [-w SIDE,...] [-r ROUNDS]\n"
		   "             [-t MILLISECONDS] [-c CSV-FILE] [-l]\n"
		   "  -s  settings of the provider, such as 'policy=kernel;transport=socket'\n"
		   "  -w  sides: default, provider, bare\n"
		   "  -l  measure loading instead\n");
}

static void set_sides(const char *list)
{
	for (int s = 0; s < SIDES; s++)
		options.sides[s] = strstr(list, side_names[s]) != NULL || s == SIDE_PROVIDER;
}

static char *settings_lines(char *list)
{
	for (char *c = list; *c != '\0'; c++)
		*c = *c == ';' ? '\n' : *c;
	return list;
}

static bool parse(int argc, char **argv)
{
	bool load = false;
	int c;

	while ((c = getopt(argc, argv, "a:b:s:w:r:t:c:lh")) != -1) {
		switch (c) {
		case 'a':
			options.algorithms = optarg;
			break;
		case 'b':
			options.sizes = optarg;
			break;
		case 's':
			options.settings = settings_lines(optarg);
			break;
		case 'w':
			set_sides(optarg);
			break;
		case 'r':
			options.rounds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 't':
			options.milliseconds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			options.csv = optarg;
			break;
		case 'l':
			load = true;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (options.rounds == 0 || options.rounds > ROUNDS_MAX || options.milliseconds == 0)
		errx(2, "1 to %d rounds of at least 1 ms", ROUNDS_MAX);
	return load;
}

int main(int argc, char **argv)
{
	const bool load = parse(argc, argv);
	FILE *csv = options.csv == NULL ? NULL : fopen(options.csv, "w");
	struct utsname u;

	if (options.csv != NULL && csv == NULL)
		err(1, "%s", options.csv);
	uname(&u);
	printf("%s %s %s, %u rounds of %u ms, settings: %s\n", u.sysname, u.release, u.machine, options.rounds,
	       options.milliseconds, options.settings[0] == '\0' ? "none" : options.settings);
	support_init();
	if (load) {
		bench_load();
		return 0;
	}
	contexts[SIDE_DEFAULT] = support_reference();
	contexts[SIDE_PROVIDER] = support_load(options.settings);
	print_head(csv);
	warm_up();
	for (const char *a = options.algorithms; *a != '\0'; a += strcspn(a, ","), a += *a == ',') {
		int id = algorithm_find(a, strcspn(a, ","));

		if (id < 0)
			errx(2, "no algorithm %s", a);
		for (const char *b = options.sizes; *b != '\0'; b += strcspn(b, ","), b += *b == ',') {
			size_t size = strtoul(b, NULL, 10);

			if (size == 0 || size > SIZE_MAX_BYTES)
				errx(2, "sizes are 1 to %u bytes", SIZE_MAX_BYTES);
			bench_cell(&algorithms[id], size, csv);
		}
	}
	if (csv != NULL)
		fclose(csv);
	OSSL_LIB_CTX_free(contexts[0]);
	OSSL_LIB_CTX_free(contexts[1]);
	return 0;
}
