/* SPDX-License-Identifier: Apache-2.0 */
#include "counters_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* More than any build will have; they bound what a forged file can make us do. */
#define SLOTS_MAX 1024u
#define ALGORITHMS_MAX 1024u
#define FILE_MAX (4u << 20)

/* The parts that every build has in the same place. */
#define NAMES_OFFSET offsetof(struct counters_file, names)
#define COUNTS_OFFSET offsetof(struct counters_slot, counts)

_Static_assert(sizeof(struct counts) == sizeof(struct counters_numbers), "one number for each counter");
_Static_assert(offsetof(struct counts, way) == offsetof(struct counters_numbers, way), "in the same order");

/* A file, copied. */
struct image {
	int dir, fd;
	const char *name;
	struct stat st;
	uint8_t *bytes;
	uint32_t head_size, slot_size, slots, algorithms, counts_size;
	struct counters_line *lines; /* the names, and the numbers of the slot at hand */
};

static uint32_t word(const struct image *m, size_t offset)
{
	uint32_t value;

	memcpy(&value, m->bytes + offset, sizeof(value));
	return value;
}

/* Text of others may hold what a terminal obeys. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static bool alive(pid_t pid)
{
	return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

/*** One file ***/

/* Reads the file whole; null or what is wrong with it. An empty text: nothing wrong, but nothing to read either. */
static const char *image_load(struct image *m)
{
	size_t size, got = 0;

	/* Never wait: for the other end of a pipe, or for the holder of a lease. */
	m->fd = openat(m->dir, m->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (m->fd < 0)
		return errno == ENOENT ? "" : strerror(errno);
	if (fstat(m->fd, &m->st) != 0)
		return strerror(errno);
	if (!S_ISREG(m->st.st_mode))
		return "not a regular file";
	if (m->st.st_size == 0)
		return ""; /* being made */
	if (m->st.st_size < (off_t)NAMES_OFFSET || m->st.st_size > (off_t)FILE_MAX)
		return "not the size of a file of counters";
	size = (size_t)m->st.st_size;
	m->bytes = calloc(1, size);
	if (m->bytes == NULL)
		return "out of memory";
	while (got < size) {
		ssize_t n = pread(m->fd, m->bytes + got, size - got, (off_t)got);

		if (n < 0)
			return strerror(errno);
		if (n == 0)
			return "shrank while it was read";
		got += (size_t)n;
	}
	return NULL;
}

/* Checks sizes and names against each other; as image_load(). */
static const char *image_check(struct image *m)
{
	uint64_t magic;

	memcpy(&magic, m->bytes + offsetof(struct counters_file, magic), sizeof(magic));
	if (magic == 0)
		return ""; /* being made: the magic comes last */
	if (magic != COUNTERS_MAGIC)
		return "not a file of counters";
	m->head_size = word(m, offsetof(struct counters_file, head_size));
	m->slot_size = word(m, offsetof(struct counters_file, slot_size));
	m->slots = word(m, offsetof(struct counters_file, slots));
	m->algorithms = word(m, offsetof(struct counters_file, algorithms));
	m->counts_size = word(m, offsetof(struct counters_file, counts_size));
	if (m->slots < 2 || m->slots > SLOTS_MAX || m->algorithms == 0 || m->algorithms > ALGORITHMS_MAX ||
	    m->counts_size < sizeof(struct counts) ||
	    m->head_size < NAMES_OFFSET + (uint64_t)m->algorithms * (COUNTERS_NAME_SIZE + COUNTERS_DRIVER_SIZE) ||
	    m->slot_size < COUNTS_OFFSET + (uint64_t)m->algorithms * m->counts_size ||
	    m->head_size + (uint64_t)m->slots * m->slot_size > (uint64_t)m->st.st_size)
		return "its sizes do not agree";
	m->lines = calloc(m->algorithms, sizeof(*m->lines));
	if (m->lines == NULL)
		return "out of memory";
	for (uint32_t i = 0; i < m->algorithms; i++) {
		const size_t drivers = NAMES_OFFSET + (size_t)m->algorithms * COUNTERS_NAME_SIZE;
		char *name = m->lines[i].algorithm, *driver = m->lines[i].driver;

		memcpy(driver, m->bytes + drivers + (size_t)i * COUNTERS_DRIVER_SIZE, COUNTERS_DRIVER_SIZE - 1);
		make_printable(driver);
		memcpy(name, m->bytes + NAMES_OFFSET + i * COUNTERS_NAME_SIZE, COUNTERS_NAME_SIZE);
		if (name[0] == '\0' || memchr(name, '\0', COUNTERS_NAME_SIZE) == NULL)
			return "an algorithm's name is empty or does not end";
		make_printable(name);
	}
	return NULL;
}

static const uint8_t *slot_at(const struct image *m, uint32_t i)
{
	return m->bytes + m->head_size + (size_t)i * m->slot_size;
}

static pid_t slot_pid(const struct image *m, uint32_t i)
{
	int32_t pid;

	memcpy(&pid, slot_at(m, i) + offsetof(struct counters_slot, pid), sizeof(pid));
	return pid;
}

/* As file_has_process() of the writer: a running process, or one that has just been born. */
static bool image_has_process(const struct image *m)
{
	struct timespec now;
	int64_t birth;

	for (uint32_t i = 1; i < m->slots - 1; i++)
		if (alive(slot_pid(m, i)))
			return true;
	clock_gettime(CLOCK_MONOTONIC, &now);
	memcpy(&birth, m->bytes + offsetof(struct counters_file, birth), sizeof(birth));
	return (int32_t)word(m, offsetof(struct counters_file, births)) > 0 &&
	       now.tv_sec - birth < COUNTERS_BIRTH_SECONDS && birth <= now.tv_sec;
}

/* Removes the file unless another has taken its name meanwhile. Others' files are not ours to remove: no complaint. */
static void image_remove(const struct image *m)
{
	struct stat st;

	if (fstatat(m->dir, m->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == m->st.st_dev &&
	    st.st_ino == m->st.st_ino)
		unlinkat(m->dir, m->name, 0);
}

static void image_report(struct image *m, enum counters_which which, counters_slot_fn *fn, void *arg)
{
	for (uint32_t i = 0; i < m->slots; i++) {
		struct counters_of_slot s = {.kind = i == COUNTERS_ENDED ? COUNTERS_OF_ENDED
						     : i == m->slots - 1 ? COUNTERS_OF_OTHERS
									 : COUNTERS_OF_PROCESS,
					     .owner = m->st.st_uid,
					     .algorithms = m->algorithms,
					     .lines = m->lines};
		const uint8_t *from = slot_at(m, i);

		s.pid = s.kind == COUNTERS_OF_PROCESS ? slot_pid(m, i) : 0;
		if (which == COUNTERS_LIVE && s.kind == COUNTERS_OF_PROCESS && !alive(s.pid))
			continue;
		memcpy(&s.policy, from + offsetof(struct counters_slot, policy), sizeof(s.policy));
		memcpy(s.command, from + offsetof(struct counters_slot, command), sizeof(s.command) - 1);
		make_printable(s.command);
		for (uint32_t a = 0; a < m->algorithms; a++)
			memcpy(&m->lines[a].n, from + COUNTS_OFFSET + (size_t)a * m->counts_size,
			       sizeof(struct counts));
		fn(&s, arg);
	}
}

/* Whether the file could be read. */
static bool read_file(const char *directory, struct image *m, enum counters_which which, counters_slot_fn *fn,
		      void *arg)
{
	const char *wrong = image_load(m);

	if (wrong == NULL)
		wrong = image_check(m);
	if (wrong == NULL) {
		if (which == COUNTERS_ALL || image_has_process(m))
			image_report(m, which, fn, arg);
		else
			image_remove(m);
	} else if (wrong[0] != '\0') {
		char name[NAME_MAX + 1];

		snprintf(name, sizeof(name), "%s", m->name);
		make_printable(name);
		fprintf(stderr, "afalgctl: %s/%s skipped: %s\n", directory, name, wrong);
	}
	free(m->lines);
	free(m->bytes);
	if (m->fd >= 0)
		close(m->fd);
	return wrong == NULL;
}

/*** A directory ***/

static int not_hidden(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int counters_read(const char *directory, enum counters_which which, counters_slot_fn *fn, void *arg)
{
	struct dirent **entries;
	int n, files = 0, dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return -errno;
	n = scandir(directory, &entries, not_hidden, versionsort); /* by number: the names are */
	if (n < 0) {
		n = -errno;
		close(dir);
		return n;
	}
	for (int i = 0; i < n; i++) {
		struct image m = {.dir = dir, .fd = -1, .name = entries[i]->d_name};

		files += read_file(directory, &m, which, fn, arg);
		free(entries[i]);
	}
	free(entries);
	close(dir);
	return files;
}

/*** Sums ***/

bool counters_idle(const struct counters_numbers *n)
{
	return (n->software_calls | n->software_bytes | n->kernel_requests | n->kernel_bytes | n->fallbacks |
		n->errors) == 0;
}

bool counters_lane_known(const struct counters_numbers *n)
{
	return n->lane != COUNTERS_LANE_UNASKED || n->way[0].bytes != 0 || n->way[1].bytes != 0;
}

static struct counters_numbers *numbers_of(struct counters_sum *sum, const char *algorithm)
{
	struct counters_line *line = sum->lines;

	for (uint32_t i = 0; i < sum->count; i++, line++)
		if (strcmp(line->algorithm, algorithm) == 0)
			return &line->n;
	if (sum->count == COUNTERS_SUM_MAX)
		return NULL;
	sum->count++;
	memcpy(line->algorithm, algorithm, sizeof(line->algorithm));
	return &line->n;
}

void counters_sum_add(struct counters_sum *sum, const struct counters_of_slot *slot)
{
	for (uint32_t i = 0; i < slot->algorithms; i++) {
		const struct counters_numbers *n = &slot->lines[i].n;
		struct counters_numbers *to;

		if (counters_idle(n) && n->direct == 0)
			continue;
		to = numbers_of(sum, slot->lines[i].algorithm);
		if (to == NULL)
			continue;
		to->software_calls += n->software_calls;
		to->software_bytes += n->software_bytes;
		to->kernel_requests += n->kernel_requests;
		to->kernel_bytes += n->kernel_bytes;
		to->fallbacks += n->fallbacks;
		to->errors += n->errors;
		for (int cause = 0; cause < COUNTERS_CAUSES; cause++)
			to->causes[cause] += n->causes[cause];
		to->direct |= n->direct;
	}
}

static void add_slot(const struct counters_of_slot *slot, void *sum)
{
	counters_sum_add(sum, slot);
}

int counters_sum_directory(struct counters_sum *sum, const char *directory)
{
	return counters_read(directory, COUNTERS_ALL, add_slot, sum);
}

struct counters_numbers counters_of_algorithm(const char *directory, const char *algorithm)
{
	static const struct counters_numbers none;
	static struct counters_sum sum;

	memset(&sum, 0, sizeof(sum));
	counters_sum_directory(&sum, directory);
	for (uint32_t i = 0; i < sum.count; i++)
		if (strcmp(sum.lines[i].algorithm, algorithm) == 0)
			return sum.lines[i].n;
	return none;
}
