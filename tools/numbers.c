/* SPDX-License-Identifier: Apache-2.0 */
#include "numbers.h"

#include <inttypes.h>

#include "lanes.h"

void numbers_cells(struct table *t, const char *const *cells)
{
	for (; *cells != NULL; cells++)
		table_add(t, "%s", *cells);
}

void numbers_head(struct table *t)
{
	static const char *const cells[] = {"ALGORITHM",       "SOFTWARE CALLS", "SOFTWARE BYTES",
					    "KERNEL REQUESTS", "KERNEL BYTES",   "FALLBACKS",
					    "ERRORS",          "IN KERNEL",      NULL};

	numbers_cells(t, cells);
}

double numbers_share(const struct counters_numbers *n)
{
	const double kernel = (double)n->kernel_bytes, bytes = kernel + (double)n->software_bytes;

	return bytes > 0 ? kernel / bytes : -1;
}

static void add_line(struct table *t, const char *const *prefix, const struct counters_line *line)
{
	const struct counters_numbers *n = &line->n;

	numbers_cells(t, prefix);
	table_add(t, "%s", line->algorithm);
	table_add(t, "%" PRIu64, n->software_calls);
	table_add(t, "%" PRIu64, n->software_bytes);
	table_add(t, "%" PRIu64, n->kernel_requests);
	table_add(t, "%" PRIu64, n->kernel_bytes);
	table_add(t, "%" PRIu64, n->fallbacks);
	table_add(t, "%" PRIu64, n->errors);
	if (numbers_share(n) >= 0)
		table_add(t, "%.1f%%", 100 * numbers_share(n));
	else
		table_add(t, "-");
}

/* One row for all algorithms without a kernel lane: their calls go to OpenSSL's own functions, past the counters. */
static void add_direct(struct table *t, const char *const *prefix, unsigned count)
{
	static const char *const cells[] = {"not counted", "not counted", "0", "0", "0", "0", "0.0%", NULL};

	numbers_cells(t, prefix);
	table_add(t, "(%u direct)", count);
	numbers_cells(t, cells);
}

unsigned numbers_rows(struct table *t, const char *const *prefix, const struct counters_line *lines, uint32_t count)
{
	unsigned direct = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!counters_idle(&lines[i].n))
			add_line(t, prefix, &lines[i]);
		else if (lines[i].n.direct != 0)
			direct++;
	}
	if (direct > 0)
		add_direct(t, prefix, direct);
	return direct;
}

void numbers_none(struct table *t, const char *const *prefix)
{
	static const struct counters_line none = {.algorithm = "-"};

	add_line(t, prefix, &none);
}

void numbers_causes(FILE *out, const struct counters_line *lines, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (lines[i].n.fallbacks + lines[i].n.errors > 0)
			fprintf(out, "%s: the kernel failed by %s\n", lines[i].algorithm, lanes_causes(&lines[i].n));
}

void numbers_explain_direct(FILE *out)
{
	fputs("direct: no call can go to the kernel, for want of a driver that wins (see afalgctl list) or by\n"
	      "configuration; OpenSSL's own functions serve them and nobody counts\n",
	      out);
}

void numbers_json(struct json *j, const char *key, const struct counters_line *lines, uint32_t count, bool process)
{
	json_open_array(j, key);
	for (uint32_t i = 0; i < count; i++) {
		const struct counters_numbers *n = &lines[i].n;

		if (counters_idle(n) && n->direct == 0 && !(process && counters_lane_known(n)))
			continue;
		json_open_object(j, NULL);
		json_text(j, "algorithm", lines[i].algorithm);
		json_bool(j, "direct", n->direct != 0);
		json_number(j, "software_calls", n->software_calls);
		json_number(j, "software_bytes", n->software_bytes);
		json_number(j, "kernel_requests", n->kernel_requests);
		json_number(j, "kernel_bytes", n->kernel_bytes);
		json_number(j, "fallbacks", n->fallbacks);
		json_number(j, "errors", n->errors);
		if (numbers_share(n) >= 0)
			json_real(j, "kernel_share", numbers_share(n));
		else
			json_null(j, "kernel_share");
		lanes_causes_json(j, n);
		if (process) {
			json_text(j, "driver", lines[i].driver[0] != '\0' ? lines[i].driver : NULL);
			lanes_json(j, n);
		}
		json_close(j);
	}
	json_close(j);
}
