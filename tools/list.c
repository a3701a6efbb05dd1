/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl list: what the running kernel offers, and what afalgprov makes of it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../afalg/catalogue.h"
#include "../provider/route.h"
#include "afalgctl.h"
#include "table.h"

/* What the kernel answered about an algorithm. */
struct offer {
	int error; /* 0: the driver is known; else a negative errno */
	struct afalg_driver driver;
};

static struct offer offers[ALGORITHM_COUNT];

/* Key sizes share a kernel name, and a bind may load modules: each name is asked once. */
static void ask(int id, const bool *asked)
{
	const struct algorithm *a = &algorithms[id];
	struct offer *o = &offers[id];

	for (int i = 0; i < id; i++) {
		if (asked[i] && algorithms[i].kind == a->kind && strcmp(algorithms[i].kernel, a->kernel) == 0) {
			*o = offers[i];
			return;
		}
	}
	o->error = afalg_catalogue_support();
	if (o->error == 0)
		o->error = afalg_catalogue_find(algorithm_type(a->kind), a->kernel, true, &o->driver);
}

/* A random generator works whatever the kernel has: who asks for it by name gets bytes of AF_ALG or of getrandom(2). */
static void add_lane_rng(struct table *t, const struct offer *o)
{
	if (o->error == 0)
		table_add(t, "open to programs that choose it (%s)", o->driver.evidence);
	else if (afalg_catalogue_support() != 0)
		table_add(t, "closed: no AF_ALG; getrandom(2) gives the bytes");
	else if (access("/proc/crypto", R_OK) != 0)
		table_add(t, "not known: /proc/crypto cannot be read (%s)", strerror(errno));
	else
		table_add(t, "closed: %s (%s); getrandom(2) gives the bytes", afalg_explain(o->error),
			  strerror(-o->error));
}

/* The state of the kernel lane under the default policy, and why. */
static void add_lane(struct table *t, const struct route *r, int id)
{
	static const char opens[] = "policy=kernel or a threshold opens it";
	const struct offer *o = &offers[id];
	const struct afalg_driver *d = &o->driver;

	if (afalg_catalogue_support() != 0)
		table_add(t, "closed: no AF_ALG");
	else if (o->error != 0 && access("/proc/crypto", R_OK) != 0)
		table_add(t, "closed: /proc/crypto cannot be read (%s), so the driver is not known; %s",
			  strerror(errno), opens);
	else if (o->error != 0)
		table_add(t, "closed: %s (%s)", afalg_explain(o->error), strerror(-o->error));
	else if (d->class == AFALG_HARDWARE)
		table_add(t, "open from %zu bytes: hardware (%s)", r->thresholds[id], d->evidence);
	else if (d->out_of_reach[0] != '\0')
		table_add(t,
			  "closed: this kernel keeps %s from AF_ALG (Linux 7.2 and later); "
			  "AF_ALG reaches software drivers only (%s)",
			  d->out_of_reach, d->evidence);
	else if (d->class == AFALG_SOFTWARE)
		table_add(t, "closed: software driver (%s), not faster than OpenSSL; %s", d->evidence, opens);
	else
		table_add(t, "closed: not known to be hardware (%s); %s", d->evidence, opens);
}

static void add_row(struct table *t, const struct route *r, int id)
{
	const struct offer *o = &offers[id];

	table_add(t, "%s", algorithms[id].name);
	table_add(t, "%s", algorithms[id].kernel);
	table_add(t, "%s", o->error == 0 ? o->driver.name : "-");
	table_add(t, "%s", afalg_class_name(o->error == 0 ? o->driver.class : AFALG_UNKNOWN));
	if (algorithms[id].kind == KIND_RNG)
		add_lane_rng(t, o);
	else
		add_lane(t, r, id);
}

static int list(const bool *chosen)
{
	static const char *const head[] = {"ALGORITHM", "KERNEL NAME", "DRIVER", "CLASS", "KERNEL LANE"};
	const int error = afalg_catalogue_support();
	struct table t = {.align = "lllll"};
	struct route r = {.policy = POLICY_SPEED};

	route_init(&r, POLICY_SPEED);
	if (error != 0)
		printf("Everything stays in software: %s (%s)\n\n", afalg_explain(error), strerror(-error));
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		table_add(&t, "%s", head[i]);
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (!chosen[id])
			continue;
		ask(id, chosen);
		add_row(&t, &r, id);
	}
	table_print(&t, stdout);
	return EXIT_SUCCESS;
}

static int unknown_algorithm(const char *name)
{
	fprintf(stderr, "afalgctl: unknown algorithm '%s'; afalgprov has", name);
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		fprintf(stderr, "%s %s", id == 0 ? "" : ",", algorithms[id].name);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int command_list(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	bool chosen[ALGORITHM_COUNT];
	int c = getopt_long(argc, argv, "h", options, NULL);

	if (c != -1)
		return c == 'h' ? help() : EXIT_USAGE;
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		chosen[id] = optind == argc;
	for (; optind < argc; optind++) {
		int id = algorithm_find(argv[optind], strlen(argv[optind]));

		if (id < 0)
			return unknown_algorithm(argv[optind]);
		chosen[id] = true;
	}
	return list(chosen);
}
