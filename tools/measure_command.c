/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl measure: what calls cost in software and in the kernel, by their size. */
#include <stdlib.h>
#include <string.h>

#include "afalgctl.h"
#include "json.h"
#include "measuring.h"
#include "offer.h"
#include "plot.h"
#include "table.h"

/*** Text ***/

static void add_point(struct table *t, const char *name, const struct measure_point *p)
{
	const double megabytes = (double)p->bytes / 1e6;

	table_add(t, "%s", name);
	table_add(t, "%zu", p->bytes);
	table_add(t, "%.2f", megabytes / p->software);
	table_add(t, "%.2f", megabytes / p->kernel);
	table_add(t, "%.2f", p->software * 1e6);
	table_add(t, "%.2f", p->kernel * 1e6);
	table_add(t, "%.3f", p->ratio);
	table_add(t, "%s", measure_kernel_wins(p) ? "kernel" : measure_software_wins(p) ? "software" : "even");
}

static void print_text(const struct measuring *m)
{
	static const char *const head[] = {"ALGORITHM",   "BYTES",     "SOFTWARE MB/S",   "KERNEL MB/S",
					   "SOFTWARE US", "KERNEL US", "KERNEL/SOFTWARE", "BETTER"};
	struct table t = {.align = "lrrrrrrl"};

	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		table_add(&t, "%s", head[i]);
	for (int i = 0; i < m->count; i++)
		for (unsigned k = 0; k < m->results[i].count; k++)
			add_point(&t, algorithms[m->results[i].id].name, &m->results[i].points[k]);
	if (table_rows(&t) > 1) {
		table_print(&t, stdout);
		puts(m->options.processor
			     ? "US: microseconds of the caller's processor time a call; MB/S: of a second of it"
			     : "US: microseconds a call, by the clock");
		putchar('\n');
	} else {
		table_free(&t);
	}
	measuring_sentences(m, stdout);
}

/*** JSON ***/

static void point_json(struct json *j, const struct measure_point *p)
{
	json_open_object(j, NULL);
	json_number(j, "bytes", p->bytes);
	json_real(j, "software_ns", p->software * 1e9);
	json_real(j, "kernel_ns", p->kernel * 1e9);
	json_real(j, "ratio", p->ratio);
	json_real(j, "ratio_low", p->low);
	json_real(j, "ratio_high", p->high);
	json_text(j, "better", measure_kernel_wins(p) ? "kernel" : measure_software_wins(p) ? "software" : "even");
	json_close(j);
}

static void proof_json(struct json *j, const struct measure_proof *p)
{
	json_open_object(j, "counters");
	json_number(j, "software_calls", p->software_calls);
	json_number(j, "software_requests", p->software_requests);
	json_number(j, "kernel_calls", p->kernel_calls);
	json_number(j, "kernel_requests", p->kernel_requests);
	json_number(j, "fallbacks", p->fallbacks);
	json_close(j);
}

static void result_json(struct json *j, const struct measurement *r)
{
	const struct afalg_driver *d = &offer_of(r->id)->driver;

	json_open_object(j, NULL);
	json_text(j, "name", algorithms[r->id].name);
	json_text(j, "driver", d->name);
	json_text(j, "class", afalg_class_name(d->class));
	json_text(j, "failed", r->failed[0] != '\0' ? r->failed : NULL);
	if (r->crossover > 0)
		json_number(j, "crossover", r->crossover);
	else
		json_null(j, "crossover");
	proof_json(j, &r->proof);
	json_open_array(j, "sizes");
	for (unsigned i = 0; i < r->count; i++)
		point_json(j, &r->points[i]);
	json_close(j);
	json_close(j);
}

static void print_json(const struct measuring *m)
{
	struct json j = {.out = stdout};
	char machine[300], kernel[300];

	measuring_machine(machine, sizeof(machine), kernel, sizeof(kernel));
	json_open_object(&j, NULL);
	json_text(&j, "afalgctl", AFALGPROV_VERSION);
	json_text(&j, "kernel", kernel);
	json_text(&j, "machine", machine);
	json_text(&j, "time", m->options.processor ? "processor" : "clock");
	json_number(&j, "rounds", m->options.rounds);
	json_number(&j, "milliseconds", m->options.milliseconds);
	json_open_array(&j, "algorithms");
	for (int i = 0; i < m->count; i++)
		result_json(&j, &m->results[i]);
	json_close(&j);
	json_close(&j);
}

/*** Plots ***/

/* One algorithm has the file to itself; of several each has its own, NAME-ALGORITHM.EXTENSION. */
static bool draw(const struct measuring *m, const char *file)
{
	const char *dot = strrchr(file, '.');
	char name[512], title[256], machine[8], kernel[128];
	bool fine = true;

	measuring_machine(machine, sizeof(machine), kernel, sizeof(kernel));
	for (int i = 0; i < m->count; i++) {
		const struct measurement *r = &m->results[i];

		if (r->count == 0)
			continue;
		snprintf(title, sizeof(title), "%s: software and %s, %s", algorithms[r->id].name,
			 offer_of(r->id)->driver.name, kernel);
		if (m->count == 1)
			snprintf(name, sizeof(name), "%s", file);
		else
			snprintf(name, sizeof(name), "%.*s-%s%s", (int)(dot - file), file, algorithms[r->id].name, dot);
		fine = plot_draw(r, name, title, m->options.processor) && fine;
	}
	return fine;
}

/*** The command ***/

/* Whether something was measured, to its end. */
static bool whole(const struct measuring *m)
{
	for (int i = 0; i < m->count; i++)
		if (m->results[i].failed[0] != '\0')
			return false;
	return m->count > 0;
}

int command_measure(int argc, char **argv)
{
	static const struct option options[] = {MEASURING_LONG,
						{"json", no_argument, NULL, 'j'},
						{"plot", required_argument, NULL, 'p'},
						{NULL, 0, NULL, 0}};
	static struct measuring m;
	const char *plot = NULL;
	bool json = false;
	int c, status;

	m.options = measure_defaults();
	while ((c = getopt_long(argc, argv, MEASURING_SHORT, options, NULL)) != -1) {
		if (c == 'h')
			return help();
		json = json || c == 'j';
		plot = c == 'p' ? optarg : plot;
		if (c != 'j' && c != 'p' && (status = measuring_option(&m, c, optarg)) != EXIT_SUCCESS)
			return status;
	}
	status = measuring_names(&m, argc - optind, argv + optind);
	if (status != EXIT_SUCCESS)
		return status;
	if (plot != NULL && !plot_possible(plot))
		return EXIT_FAILURE;
	if (!measuring_run(&m))
		return EXIT_FAILURE;
	(json ? print_json : print_text)(&m);
	fflush(stdout);
	if (plot != NULL && !draw(&m, plot))
		return EXIT_FAILURE;
	return whole(&m) ? EXIT_SUCCESS : EXIT_FAILURE;
}
