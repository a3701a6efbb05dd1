/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of afalgctl share. */
#ifndef TOOLS_AFALGCTL_H
#define TOOLS_AFALGCTL_H

enum { EXIT_USAGE = 2 };

/* A command: `argv` begins with the program's name, what follows are the command's own. Returns the exit status. */
int command_check(int argc, char **argv);
int command_list(int argc, char **argv);
int command_measure(int argc, char **argv);
int command_stats(int argc, char **argv);
int command_top(int argc, char **argv);
int command_tune(int argc, char **argv);

/* Runs a command and prints what it did; the exit status. */
int stats_command(char **argv);

/* Prints the help on stdout; EXIT_SUCCESS. */
int help(void);

/* Says on stderr, in one line, what is wrong with the command line; EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
