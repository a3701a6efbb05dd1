/* SPDX-License-Identifier: Apache-2.0 */
#include "measuring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "../afalg/transport.h"
#include "afalgctl.h"
#include "offer.h"
#include "progress.h"
#include "system.h"
#include "text.h"

/*** The command line ***/

/* A number from 1 to `most` that ends the text, or a part of it before a comma. */
static bool number(const char *text, unsigned long most, unsigned long *n, const char **end)
{
	char *e;

	*n = strtoul(text, &e, 10);
	*end = e;
	return text[0] >= '0' && text[0] <= '9' && *n > 0 && *n <= most && (*e == '\0' || *e == ',');
}

static int compare_sizes(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

static int take_sizes(struct measure_options *o, const char *list)
{
	unsigned long n;

	o->size_count = 0;
	for (const char *item = list; *item != '\0';) {
		const char *end;

		/* Block ciphers take whole blocks only. */
		if (o->size_count == MEASURE_SIZES_MAX || !number(item, AFALG_REQUEST_MAX, &n, &end) || n % 16 != 0)
			return usage_error("--bytes %s: up to %d multiples of 16, at most %u", list, MEASURE_SIZES_MAX,
					   AFALG_REQUEST_MAX);
		o->sizes[o->size_count++] = n;
		item = end + (*end == ',');
	}
	if (o->size_count == 0)
		return usage_error("--bytes wants a size");
	qsort(o->sizes, o->size_count, sizeof(*o->sizes), compare_sizes);
	return EXIT_SUCCESS;
}

int measuring_option(struct measuring *m, int option, const char *argument)
{
	struct measure_options *o = &m->options;
	const char *end;
	unsigned long n = 0;

	switch (option) {
	case 'u':
		o->processor = true;
		return EXIT_SUCCESS;
	case 'b':
		return take_sizes(o, argument);
	case 'r':
		if (!number(argument, MEASURE_ROUNDS_MAX, &n, &end) || *end != '\0')
			return usage_error("--rounds %s: 1 to %d", argument, MEASURE_ROUNDS_MAX);
		o->rounds = (unsigned)n;
		return EXIT_SUCCESS;
	case 't':
		if (!number(argument, 10000, &n, &end) || *end != '\0')
			return usage_error("--milliseconds %s: 1 to 10000", argument);
		o->milliseconds = (unsigned)n;
		return EXIT_SUCCESS;
	default:
		return EXIT_USAGE;
	}
}

int measuring_names(struct measuring *m, int argc, char **argv)
{
	m->named = argc > 0;
	for (int i = 0; i < argc; i++)
		if (!offer_choose(argv[i], m->wanted))
			return usage_error("unknown algorithm '%s'", argv[i]);
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct offer *o = m->named && !m->wanted[id] ? NULL : offer_of((enum algorithm_id)id);

		if (!m->named)
			m->wanted[id] =
				algorithms[id].kind != KIND_RNG && o->error == 0 && o->driver.class == AFALG_HARDWARE;
		m->chosen[id] = m->wanted[id] && algorithms[id].kind != KIND_RNG && o->error == 0;
	}
	return EXIT_SUCCESS;
}

/*** At work ***/

static void show(unsigned done, unsigned of, enum algorithm_id id, size_t bytes)
{
	char now[100];

	snprintf(now, sizeof(now), "%s, %zu bytes", algorithms[id].name, bytes);
	progress_show(done, of, now);
}

bool measuring_run(struct measuring *m)
{
	m->count = measure(m->chosen, &m->options, m->results, show);
	progress_end();
	return m->count >= 0;
}

/*** Sentences ***/

static const struct measurement *result_of(const struct measuring *m, enum algorithm_id id)
{
	for (int i = 0; i < m->count; i++)
		if (m->results[i].id == id)
			return &m->results[i];
	return NULL;
}

static void say_result(const struct measurement *r, bool processor, FILE *out)
{
	const char *name = algorithms[r->id].name, *better = processor ? "takes less of the processor" : "is faster";
	const struct afalg_driver *d = &offer_of(r->id)->driver;
	const struct measure_point *last = r->count > 0 ? &r->points[r->count - 1] : NULL;

	if (last == NULL)
		return;
	if (r->crossover > 0)
		text_printf(out, "",
			    "%s by %s (%s): the kernel %s from %zu bytes on; at %zu bytes by a factor of %.2f.", name,
			    d->name, afalg_class_name(d->class), better, r->crossover, last->bytes, last->ratio);
	else
		text_printf(out, "",
			    "%s by %s (%s): the kernel %s at no size from which on it would stay so; at %zu bytes it "
			    "reaches %.2f of what software does.",
			    name, d->name, afalg_class_name(d->class), better, last->bytes, last->ratio);
	text_printf(out, "  ",
		    "By the counters: %llu calls with policy=kernel were %llu requests of the kernel, and %llu calls "
		    "with policy=software %llu.",
		    (unsigned long long)r->proof.kernel_calls, (unsigned long long)r->proof.kernel_requests,
		    (unsigned long long)r->proof.software_calls, (unsigned long long)r->proof.software_requests);
}

static void say(const struct measuring *m, enum algorithm_id id, FILE *out)
{
	const struct measurement *r = result_of(m, id);
	const struct offer *o = offer_of(id);
	struct lane lane;

	if (r != NULL && r->failed[0] != '\0')
		text_printf(out, "", "%s by %s: the measurement failed: %s.", algorithms[id].name, o->driver.name,
			    r->failed);
	if (r != NULL) {
		say_result(r, m->options.processor, out);
		return;
	}
	if (algorithms[id].kind == KIND_RNG) {
		text_printf(out, "", "%s: not measured: random numbers are never a question of speed.",
			    algorithms[id].name);
		return;
	}
	lane_of(id, &lane);
	text_printf(out, "", "%s: not measured: %s.", algorithms[id].name, lane.reason);
}

void measuring_sentences(const struct measuring *m, FILE *out)
{
	bool any = false;

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		if (!m->wanted[id])
			continue;
		any = true;
		say(m, (enum algorithm_id)id, out);
	}
	if (!any)
		text_print(out, "",
			   "The kernel offers no hardware driver for any algorithm, so there is nothing to measure "
			   "unless it "
			   "is named; 'afalgctl check' tells why.");
}

/*** The machine ***/

void measuring_machine(char *machine, size_t machine_size, char *kernel, size_t kernel_size)
{
	static const char *const keys[] = {"model name", "Model", "cpu model", "Hardware"};
	char processor[128] = "", board[128] = "";
	const char *value, *host;
	struct utsname u;

	if (uname(&u) != 0)
		memset(&u, 0, sizeof(u));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && processor[0] == '\0'; i++)
		system_value("/proc/cpuinfo", keys[i], processor, sizeof(processor));
	if (!system_line("/proc/device-tree/model", board, sizeof(board)))
		system_line("/sys/class/dmi/id/product_name", board, sizeof(board));
	value = processor + strspn(processor, ": \t");
	host = strcmp(u.nodename, "(none)") == 0 ? "no name" : u.nodename;
	snprintf(machine, machine_size, "%s%s%s%s%s", host, board[0] != '\0' ? ", " : "", board,
		 value[0] != '\0' ? ", " : "", value);
	snprintf(kernel, kernel_size, "%s %s %s", u.sysname, u.release, u.machine);
}
