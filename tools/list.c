/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl list: what the running kernel offers, and what afalgprov makes of it. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "afalgctl.h"
#include "gate.h"
#include "json.h"
#include "offer.h"
#include "running.h"
#include "table.h"
#include "why.h"

/*** Text ***/

static void add_row(struct table *t, enum algorithm_id id)
{
	const struct offer *o = offer_of(id);
	char running[200];
	const char *and;
	struct lane lane;

	lane_of(id, &lane);
	running_text(algorithms[id].name, running, sizeof(running));
	and = running[0] != '\0' ? "; " : "";
	table_add(t, "%s", algorithms[id].name);
	table_add(t, "%s", algorithms[id].kernel);
	table_add(t, "%s", o->error == 0 ? o->driver.name : "-");
	table_add(t, "%s", afalg_class_name(o->error == 0 ? o->driver.class : AFALG_UNKNOWN));
	if (lane.cause == CAUSE_CHOSEN)
		table_add(t, "open to programs that choose it (%s)%s%s", lane.reason, and, running);
	else if (lane.state == LANE_OPEN)
		table_add(t, "open from %zu bytes: %s%s%s", lane.least, lane.reason, and, running);
	else
		table_add(t, "%s: %s%s%s", lane.state == LANE_CLOSED ? "closed" : "not known", lane.reason, and,
			  running);
}

static void list_text(const bool *chosen)
{
	static const char *const head[] = {"ALGORITHM", "KERNEL NAME", "DRIVER", "CLASS", "KERNEL LANE"};
	const int error = afalg_catalogue_support();
	struct table t = {.align = "lllll"};

	if (error != 0)
		printf("Everything stays in software: %s (%s)\n\n", afalg_explain(error), strerror(-error));
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		table_add(&t, "%s", head[i]);
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (chosen[id])
			add_row(&t, (enum algorithm_id)id);
	table_print(&t, stdout);
}

static void list_why(const bool *chosen)
{
	bool first = true;

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (!chosen[id])
			continue;
		if (!first)
			putchar('\n');
		first = false;
		why_print((enum algorithm_id)id);
	}
}

/*** JSON ***/

static void driver_json(struct json *j, const struct offer *o)
{
	const struct afalg_driver *d = &o->driver;

	if (o->error != 0) {
		json_null(j, "driver");
		return;
	}
	json_open_object(j, "driver");
	json_text(j, "name", d->name);
	json_text(j, "module", d->module);
	json_signed(j, "priority", d->priority);
	json_bool(j, "asynchronous", d->async);
	json_text(j, "class", afalg_class_name(d->class));
	json_text(j, "evidence", d->evidence);
	json_text(j, "out_of_reach", d->out_of_reach[0] != '\0' ? d->out_of_reach : NULL);
	json_close(j);
}

static void algorithm_json(struct json *j, enum algorithm_id id)
{
	const struct offer *o = offer_of(id);
	struct lane lane;

	lane_of(id, &lane);
	json_open_object(j, NULL);
	json_text(j, "name", algorithms[id].name);
	json_text(j, "kind", offer_kind_name(algorithms[id].kind));
	json_text(j, "kernel_name", algorithms[id].kernel);
	driver_json(j, o);
	json_open_object(j, "lane");
	json_text(j, "state", lane_state_name(lane.state));
	json_text(j, "cause", lane_cause_name(lane.cause));
	if (lane.state == LANE_OPEN)
		json_number(j, "least_bytes", lane.least);
	else
		json_null(j, "least_bytes");
	json_number(j, "errno", (uint64_t)-o->error);
	json_text(j, "reason", lane.reason);
	json_close(j);
	running_json(j, algorithms[id].name);
	json_close(j);
}

static void list_json(const bool *chosen)
{
	const int error = afalg_catalogue_support();
	struct json j = {.out = stdout};
	struct utsname u;

	json_open_object(&j, NULL);
	json_text(&j, "afalgctl", AFALGPROV_VERSION);
	json_text(&j, "kernel", uname(&u) == 0 ? u.release : NULL);
	json_open_object(&j, "af_alg");
	json_bool(&j, "available", error == 0);
	json_number(&j, "errno", (uint64_t)-error);
	json_text(&j, "reason", error != 0 ? afalg_explain(error) : NULL);
	json_bool(&j, "software_only", gate_software_only());
	json_close(&j);
	json_open_array(&j, "algorithms");
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (chosen[id])
			algorithm_json(&j, (enum algorithm_id)id);
	json_close(&j);
	json_close(&j);
}

/*** The command line ***/

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
	static const struct option options[] = {{"help", no_argument, NULL, 'h'},
						{"json", no_argument, NULL, 'j'},
						{"why", no_argument, NULL, 'w'},
						{NULL, 0, NULL, 0}};
	bool chosen[ALGORITHM_COUNT], json = false, why = false;
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c != 'j' && c != 'w')
			return c == 'h' ? help() : EXIT_USAGE;
		json = json || c == 'j';
		why = why || c == 'w';
	}
	if (why && (json || optind == argc))
		return usage_error(json ? "--why explains in words; --json gives the same facts without them"
					: "--why wants the name of an algorithm");
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		chosen[id] = optind == argc;
	for (; optind < argc; optind++)
		if (!offer_choose(argv[optind], chosen))
			return unknown_algorithm(argv[optind]);
	(json ? list_json : why ? list_why : list_text)(chosen);
	return EXIT_SUCCESS;
}
