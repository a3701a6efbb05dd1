/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` and `tune` share: their command lines, the choice of algorithms, sentences. */
#ifndef TOOLS_MEASURING_H
#define TOOLS_MEASURING_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "measure.h"

struct measuring {
	struct measure_options options;
	bool named;                   /* algorithms are named on the command line */
	bool wanted[ALGORITHM_COUNT]; /* by the user, or, where he named none, all that hardware does */
	bool chosen[ALGORITHM_COUNT]; /* of these, what can be measured */
	struct measurement results[ALGORITHM_COUNT];
	int count; /* of results */
};

/* The options of both, for getopt_long(). */
#define MEASURING_SHORT "hub:r:t:"
#define MEASURING_LONG                                                                                              \
	{"help", no_argument, NULL, 'h'}, {"cpu", no_argument, NULL, 'u'}, {"bytes", required_argument, NULL, 'b'}, \
		{"rounds", required_argument, NULL, 'r'},                                                           \
	{                                                                                                           \
		"milliseconds", required_argument, NULL, 't'                                                        \
	}

/* Takes one of them; EXIT_SUCCESS, or what the command ends with after it has said what is wrong. */
int measuring_option(struct measuring *m, int option, const char *argument);

/* Takes the rest of the command line, names of algorithms; as above. */
int measuring_names(struct measuring *m, int argc, char **argv);

/* Measures what is chosen, with a bar on a terminal. False: nothing could be begun; stderr says why. */
bool measuring_run(struct measuring *m);

/* Says of all that is wanted what came of it, a sentence each; or that there is nothing that hardware does. */
void measuring_sentences(const struct measuring *m, FILE *out);

/* The machine, its processor and its kernel, each in a line without an end. */
void measuring_machine(char *machine, size_t machine_size, char *kernel, size_t kernel_size);

#endif
