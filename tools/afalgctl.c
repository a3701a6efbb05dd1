/* SPDX-License-Identifier: Apache-2.0 */
/* afalgctl: what the kernel offers to afalgprov, and what running programs make of it. */
#include "afalgctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"check", command_check}, {"list", command_list}, {"measure", command_measure},
	{"stats", command_stats}, {"top", command_top},   {"tune", command_tune},
};

int help(void)
{
	fputs("Usage: afalgctl list [--json] [ALGORITHM...]\n"
	      "       afalgctl list --why ALGORITHM...\n"
	      "       afalgctl stats [-d DIR] [--json] [PID|NAME]\n"
	      "       afalgctl stats -- COMMAND [ARG...]\n"
	      "       afalgctl check [--json] [ALGORITHM...]\n"
	      "       afalgctl top [-d SECONDS] [-n TIMES] [--directory DIR]\n"
	      "       afalgctl measure [--json] [--plot FILE.png|.svg] [--cpu] [-b BYTES,...] [-r ROUNDS] [-t MS]\n"
	      "                        [ALGORITHM...]\n"
	      "       afalgctl tune [-o FILE] [--cpu] [-b BYTES,...] [-r ROUNDS] [-t MS] [ALGORITHM...]\n"
	      "\n"
	      "list   which driver of the running kernel serves each algorithm, whether it is hardware and how one\n"
	      "       knows, and whether afalgprov sends calls to it with its default settings, or why not;\n"
	      "       as seen by the calling user, in the calling sandbox; --why explains it in sentences\n"
	      "stats  calls and bytes by lane (OpenSSL's software, the kernel) of the running processes, or of one;\n"
	      "       with COMMAND: runs it and then prints, on standard error, what all its processes did\n"
	      "check  follows the whole chain, from OpenSSL's configuration to the kernel's results, and says what is\n"
	      "       wrong, whose doing it is and what helps; exit status 1 if something is\n"
	      "top    the same as it happens, in bytes a second, the busiest first; q ends it\n"
	      "measure  what calls of each size cost in software and in the kernel, and from how many bytes on the\n"
	      "       kernel wins, for algorithms that hardware serves or those named; a few seconds each\n"
	      "tune   measures, and writes lines that the provider's section of openssl.cnf can .include\n"
	      "\n"
	      "      --json               JSON, described by docs/schema\n"
	      "  -d, --directory DIR      stats: where the processes count (default: /run/afalgprov)\n"
	      "  -d, --delay SECONDS      top: how often to look (default: 2)\n"
	      "  -n, --iterations TIMES   top: how many times (default: for ever)\n"
	      "      --plot FILE          measure: draws it, by gnuplot\n"
	      "      --cpu                measure, tune: the caller's processor time in place of the time by the "
	      "clock\n"
	      "  -b, --bytes BYTES,...    measure, tune: of the calls (default: 16 to 65536, powers of two)\n"
	      "  -r, --rounds ROUNDS      measure, tune: of which the medians count (default: 15)\n"
	      "  -t, --milliseconds MS    measure, tune: of work in a lane in a round (default: 10)\n"
	      "  -o, --output FILE        tune: where to write (default: standard output)\n"
	      "  -h, --help               this text\n"
	      "  -V, --version            the version\n"
	      "\n"
	      "Exit status: 0; 1 it failed, or process PID does not count; 2 wrong usage; that of COMMAND, 128+N "
	      "where\n"
	      "signal N ended it, 127 or 126 where it could not be run.\n",
	      stdout);
	return EXIT_SUCCESS;
}

int usage_error(const char *format, ...)
{
	va_list args;

	fputs("afalgctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs(" (see afalgctl --help)\n", stderr);
	return EXIT_USAGE;
}

/* A full disk or a closed pipe must not pass for success. */
static int finish(int status)
{
	if ((fflush(stdout) == EOF || ferror(stdout)) && status == EXIT_SUCCESS) {
		perror("afalgctl: standard output");
		return EXIT_FAILURE;
	}
	return status;
}

static int run(int argc, char **argv)
{
	const char *name = argv[0];

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		argv[0] = program_invocation_name; /* getopt begins its messages with it */
		optind = 0;                        /* anew, GNU's reordering included */
		return commands[i].run(argc, argv);
	}
	return usage_error("there is no command '%s'", name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};

	switch (getopt_long(argc, argv, "+hV", options, NULL)) {
	case -1:
		break;
	case 'h':
		return finish(help());
	case 'V':
		puts("afalgctl " AFALGPROV_VERSION);
		return finish(EXIT_SUCCESS);
	default:
		return EXIT_USAGE;
	}
	if (optind == argc)
		return usage_error("a command is missing: check, list, measure, stats, top or tune");
	return finish(run(argc - optind, argv + optind));
}
