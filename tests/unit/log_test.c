/* SPDX-License-Identifier: Apache-2.0 */
/* Where log lines go, and that they get there from forked children and from daemons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../provider/log.h"

#define CHILDREN 8
#define LINES 200

static char directory[64], path[80], value[120], reason[96];
static char text[1 << 18];

static int setup(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/log_test.XXXXXX");
	if (mkdtemp(directory) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/log", directory);
	snprintf(value, sizeof(value), "info,%s", path);
	reason[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return log_set("off", reason, sizeof(reason)) == 1 ? rmdir(directory) : -1;
}

/* What a file holds; "" if it is not there. */
static const char *content(const char *name)
{
	const int fd = open(name, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* A child that does `work`, its standard error in the file at `path`, if `caught`. */
static void in_child(void (*work)(void), bool caught)
{
	int status;
	const pid_t pid = fork();

	if (pid == 0) {
		if (caught && freopen(path, "a", stderr) == NULL)
			_exit(1);
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*** Files ***/

static void test_file(void **state)
{
	char expected[200];
	struct stat st;

	(void)state;
	assert_true(log_set(value, reason, sizeof(reason)));
	log_info("one %d", 1);
	log_debug("below the level");
	log_error("two");
	snprintf(expected, sizeof(expected), "%s[%d] afalgprov: one 1\n%s[%d] afalgprov: two\n",
		 program_invocation_short_name, (int)getpid(), program_invocation_short_name, (int)getpid());
	assert_string_equal(content(path), expected);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 037, 0); /* not for everybody */
	unlink(path);
	log_info("%0999d", 7); /* too long: cut, and still a line */
	assert_true(strlen(content(path)) > 500 && strlen(text) < 1000);
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void many_lines(void)
{
	for (int i = 0; i < LINES; i++)
		log_info("line %d of many", i);
}

/* Several processes at once: every line is whole. */
static void test_processes(void **state)
{
	unsigned lines = 0;

	(void)state;
	assert_true(log_set(value, reason, sizeof(reason)));
	for (int i = 0; i < CHILDREN; i++)
		if (fork() == 0) {
			many_lines();
			_exit(0);
		}
	while (wait(NULL) > 0)
		continue;
	content(path);
	for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		int number, pid, end = 0;

		line = strchr(line, '[');
		assert_non_null(line);
		assert_int_equal(sscanf(line, "[%d] afalgprov: line %d of many%n", &pid, &number, &end), 2);
		assert_true(end > 0 && line[end] == '\0');
		lines++;
	}
	assert_int_equal(lines, CHILDREN * LINES);
}

static void as_daemon(void)
{
	for (int fd = 0; fd < 256; fd++)
		close(fd);
	if (open("/dev/null", O_RDWR) != 0) /* what was a descriptor is another file now */
		_exit(1);
	log_info("from a daemon");
	if (lseek(0, 0, SEEK_CUR) != 0 || open("/dev/null", O_RDWR) != 1) /* and none has been left open */
		_exit(1);
}

static void test_daemon(void **state)
{
	(void)state;
	assert_true(log_set(value, reason, sizeof(reason)));
	log_info("before");
	in_child(as_daemon, false);
	assert_non_null(strstr(content(path), "from a daemon\n"));
}

/*** What cannot be ***/

static void set_missing(void)
{
	if (!log_set("info,/nonexistent/log", reason, sizeof(reason)))
		_exit(1);
	log_info("all the same");
}

static void test_no_file(void **state)
{
	(void)state;
	in_child(set_missing, true);
	assert_string_equal(content(path),
			    "afalgprov: the log goes to standard error: /nonexistent/log: No such file or directory\n"
			    "afalgprov: all the same\n");
}

/* Neither through a link of somebody else's nor into a pipe that nobody reads. */
static void test_traps(void **state)
{
	char link[100];

	(void)state;
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink(path, link), 0);
	snprintf(value, sizeof(value), "error,%s", link);
	assert_true(log_set(value, reason, sizeof(reason)));
	log_error("through a link");
	assert_string_equal(content(path), "");
	unlink(link);
	assert_int_equal(mkfifo(link, 0600), 0);
	assert_true(log_set(value, reason, sizeof(reason)));
	log_error("into a pipe");
	unlink(link);
}

static void test_refused(void **state)
{
	static const struct {
		const char *value, *reason;
	} bad[] = {
		{"", "'' is no level; "},
		{"loud", "'loud' is no level; "},
		{"info ", "'info ' is no level; "},
		{"loud,syslog", "'loud' is no level; "},
		{"info,", "'' is no target; "},
		{"info,syslogd", "'syslogd' is no target; "},
		{"info,log/file", "'log/file' is no target; "},
	};
	char longest[400];

	(void)state;
	assert_true(log_set("error", reason, sizeof(reason)));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_false(log_set(bad[i].value, reason, sizeof(reason)));
		assert_string_equal(reason, bad[i].reason);
		assert_int_equal(log_level, LOG_LEVEL_ERROR);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "info,/", 6);
	assert_false(log_set(longest, reason, sizeof(reason)));
	assert_non_null(strstr(reason, "is too long; "));
}

/*** Syslog ***/

/* Listens as a daemon of syslog does; negative: there is one, or it is not permitted. */
static int listen_as_syslog(void)
{
	static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static void test_syslog(void **state)
{
	const int fd = listen_as_syslog();
	char got[700] = "", expected[200];

	(void)state;
	if (fd < 0)
		skip();
	assert_true(log_set("info, syslog", reason, sizeof(reason)));
	log_error("a line");
	snprintf(expected, sizeof(expected), "<11>%s[%d]: afalgprov: a line", program_invocation_short_name,
		 (int)getpid());
	assert_true(recv(fd, got, sizeof(got) - 1, 0) > 0);
	assert_string_equal(got, expected);
	for (int i = 0; i < 5000; i++)
		log_error("a daemon that reads nothing must not hold us");
	close(fd);
	log_error("nor one that is gone kill us");
	unlink("/dev/log");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define LOG_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		LOG_TEST(test_file),  LOG_TEST(test_processes), LOG_TEST(test_daemon), LOG_TEST(test_no_file),
		LOG_TEST(test_traps), LOG_TEST(test_refused),   LOG_TEST(test_syslog),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
