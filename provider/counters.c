/* SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Thread_local struct pending *counters_mine COUNTERS_TLS;

static struct counters_file unshared; /* until a file is mapped, or for good without one */
static struct counters_file *file = &unshared;
static struct counters_slot *slot = &unshared.slot[1];
static char path[256];           /* empty: no file */
static bool keep;                /* the file outlives the process */
static pthread_key_t thread_key; /* valid if thread_key_made: a process may have used up all keys */
static bool thread_key_made;
static uint32_t policy_known; /* of struct counters_slot */

/*** Slots ***/

static void slot_name(struct counters_slot *s)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	memcpy(s->command, name, sizeof(name));
	s->policy = policy_known;
}

static bool alive(int32_t pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

/* Adds the counts of a slot to those of the ended processes. What held for its process stays, to be seen in kept files.
 */
static void slot_fold(struct counters_slot *s)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		struct counts *from = &s->counts[id], *to = &file->slot[COUNTERS_ENDED].counts[id];
		_Atomic uint64_t *count = &from->software_calls, *sum = &to->software_calls;

		for (size_t i = 0; i < offsetof(struct counts, causes) / sizeof(*count); i++)
			atomic_fetch_add(&sum[i], atomic_exchange(&count[i], 0));
		for (size_t i = 0; i < COUNTERS_CAUSES; i++)
			atomic_fetch_add(&to->causes[i], atomic_exchange(&from->causes[i], 0));
		if (atomic_load(&from->direct) != 0)
			atomic_store(&to->direct, 1);
	}
}

/* What holds for a process holds for its child. */
static void slot_inherit(struct counters_slot *to, const struct counters_slot *from)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct counts *f = &from->counts[id];
		struct counts *t = &to->counts[id];

		atomic_store(&t->direct, atomic_load(&f->direct));
		atomic_store(&t->rest_until, atomic_load(&f->rest_until));
		atomic_store(&t->lane_errno, atomic_load(&f->lane_errno));
		atomic_store(&t->lane, atomic_load(&f->lane));
		for (int way = 0; way < 2; way++) {
			atomic_store(&t->way[way].crossover, atomic_load(&f->way[way].crossover));
			atomic_store(&t->way[way].bytes, atomic_load(&f->way[way].bytes));
			atomic_store(&t->way[way].software, atomic_load(&f->way[way].software));
			atomic_store(&t->way[way].kernel, atomic_load(&f->way[way].kernel));
		}
	}
}

/* Takes a free slot, else one whose process has died unseen, else the shared one. */
static struct counters_slot *slot_take(void)
{
	const int32_t self = getpid();

	for (int dead = 0; dead < 2; dead++) {
		for (int i = 1; i < COUNTERS_SHARED; i++) {
			struct counters_slot *s = &file->slot[i];
			int32_t pid = atomic_load(&s->pid);

			if (dead ? pid != 0 && !alive(pid) : pid == 0)
				if (atomic_compare_exchange_strong(&s->pid, &pid, self)) {
					slot_fold(s);
					slot_name(s);
					return s;
				}
		}
	}
	atomic_fetch_add(&file->sharers, 1);
	atomic_store(&file->slot[COUNTERS_SHARED].pid, COUNTERS_SHARED_PID);
	return &file->slot[COUNTERS_SHARED];
}

static void slot_give_back(void)
{
	if (slot == &file->slot[COUNTERS_SHARED]) {
		if (atomic_fetch_sub(&file->sharers, 1) > 1)
			return;
	}
	slot_fold(slot);
	atomic_store(&slot->pid, 0);
}

static int64_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec;
}

/* Whether a living process has a slot of this file, or has just been born. */
static bool file_has_process(const struct counters_file *f)
{
	for (int i = 1; i < COUNTERS_SHARED; i++) {
		int32_t pid = atomic_load(&f->slot[i].pid);

		if (pid != 0 && alive(pid))
			return true;
	}
	return atomic_load(&f->births) > 0 && seconds() - atomic_load(&f->birth) < COUNTERS_BIRTH_SECONDS;
}

/*** The file ***/

static void head_write(struct counters_file *f)
{
	f->head_size = offsetof(struct counters_file, slot);
	f->slot_size = sizeof(struct counters_slot);
	f->slots = COUNTERS_SLOTS;
	f->algorithms = ALGORITHM_COUNT;
	f->counts_size = sizeof(struct counts);
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		snprintf(f->names[id], sizeof(f->names[id]), "%s", algorithms[id].name);
	f->magic = COUNTERS_MAGIC;
}

/* Removes files whose processes died without a chance to do so. A file is named for its first process. */
static void remove_stale(const char *directory)
{
	DIR *d = opendir(directory);
	const struct dirent *e;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		struct counters_file *f;
		struct stat st;
		char *end;
		long pid = strtol(e->d_name, &end, 10);
		int fd;

		if (pid <= 0 || pid > INT32_MAX || *end != '\0' || alive((int32_t)pid))
			continue;
		fd = openat(dirfd(d), e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		    st.st_size == (off_t)sizeof(*f)) {
			f = mmap(NULL, sizeof(*f), PROT_READ, MAP_SHARED, fd, 0);
			if (f != MAP_FAILED) {
				if (f->magic != COUNTERS_MAGIC || f->slots != COUNTERS_SLOTS || !file_has_process(f))
					unlinkat(dirfd(d), e->d_name, 0);
				munmap(f, sizeof(*f));
			}
		}
		close(fd);
	}
	closedir(d);
}

/* Names the file, which is unique while we live; kept files may be of earlier processes, or of ours before an exec. */
static bool file_name(const char *directory, int attempt)
{
	char suffix[16] = "";

	if (attempt > 0)
		snprintf(suffix, sizeof(suffix), ".%d", attempt);
	return snprintf(path, sizeof(path), "%s/%d%s", directory, (int)getpid(), suffix) < (int)sizeof(path);
}

/* A new file: never one that somebody else has put there. */
static int file_create(const char *directory)
{
	const int attempts = keep ? 1000 : 2;

	for (int attempt = 0; attempt < attempts && file_name(directory, keep ? attempt : 0); attempt++) {
		int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

		if (fd >= 0 || errno != EEXIST)
			return fd;
		if (!keep)
			unlink(path); /* of an earlier process with our number, or of ours before an exec */
	}
	return -1;
}

/* A file above the limit of file sizes would not fail: it would kill the process (SIGXFSZ). */
static bool size_allowed(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= sizeof(struct counters_file);
}

static void file_map(const char *directory)
{
	struct counters_file *f = MAP_FAILED;
	int fd;

	/* Every user's processes may count here, so it is like /tmp: sticky. */
	if (geteuid() == 0 && mkdir(directory, 0755) == 0)
		chmod(directory, 01777);
	if (!keep)
		remove_stale(directory);
	fd = file_create(directory);
	if (fd < 0) {
		path[0] = '\0';
		return;
	}
	/* Reserved now, so that no full file system can make a later write to the mapping fail. */
	if (fchmod(fd, 0644) == 0 && posix_fallocate(fd, 0, sizeof(*f)) == 0)
		f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (f == MAP_FAILED) {
		unlink(path);
		path[0] = '\0';
		return;
	}
	file = f;
}

/*** Threads ***/

static void row_flush(struct pending *p, enum algorithm_id id)
{
	struct counts *c = &slot->counts[id];

	if (p->calls == 0)
		return;
	atomic_fetch_add_explicit(&c->software_calls, p->calls, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->software_bytes, p->bytes, memory_order_relaxed);
	p->calls = 0;
	p->bytes = 0;
	p->flushes++;
}

static void flush_and_free(void *mine)
{
	counters_flush();
	counters_mine = NULL;
	free(mine);
}

void counters_software_slow(enum algorithm_id id, uint32_t calls, uint64_t bytes)
{
	struct pending *mine = counters_mine;
	struct pending single = {.bytes = bytes, .calls = calls};

	if (mine == NULL) {
		/* Without memory for gathering, or for its end with the thread, the call is counted by itself. */
		mine = thread_key_made ? calloc(ALGORITHM_COUNT, sizeof(*mine)) : NULL;
		if (mine != NULL && pthread_setspecific(thread_key, mine) == 0)
			counters_mine = mine;
		else
			free(mine);
		row_flush(&single, id);
		return;
	}
	row_flush(&mine[id], id);
}

void counters_flush(void)
{
	for (int id = 0; counters_mine != NULL && id < ALGORITHM_COUNT; id++)
		row_flush(&counters_mine[id], (enum algorithm_id)id);
}

/*** Processes ***/

static void fork_prepare(void)
{
	atomic_store(&file->birth, seconds());
	atomic_fetch_add(&file->births, 1);
}

/* Of the parent's threads only the forking one lives on here, and what it had gathered is the parent's. */
static void fork_child(void)
{
	const struct counters_slot *parents = slot;

	if (counters_mine != NULL)
		memset(counters_mine, 0, ALGORITHM_COUNT * sizeof(*counters_mine));
	if (file == &unshared)
		slot_give_back(); /* of this copy: the child counts from 0, in the same slot */
	slot = slot_take();
	slot_inherit(slot, parents);
	atomic_fetch_sub(&file->births, 1);
}

/* The last process out removes the file. Not in teardown, which OpenSSL 4.0 no longer calls at exit. */
__attribute__((destructor)) static void process_end(void)
{
	counters_flush();
	slot_give_back();
	if (path[0] != '\0' && !keep && !file_has_process(file) && atomic_load(&file->sharers) == 0)
		unlink(path);
}

static void begin(const char *directory)
{
	const char *kept = secure_getenv("AFALGPROV_COUNTERS");

	thread_key_made = pthread_key_create(&thread_key, flush_and_free) == 0;
	if (kept != NULL && kept[0] != '\0') {
		keep = true;
		directory = kept;
	}
	if (directory != NULL && size_allowed())
		file_map(directory);
	slot = slot_take();
	head_write(file);
	pthread_atfork(fork_prepare, NULL, fork_child);
}

void counters_init(const char *directory)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool done;

	pthread_mutex_lock(&lock);
	if (!done)
		begin(directory);
	done = true;
	pthread_mutex_unlock(&lock);
}

/*** Counting ***/

struct counts *counters_of(enum algorithm_id id)
{
	return &slot->counts[id];
}

void counters_kernel(enum algorithm_id id, unsigned requests, size_t bytes)
{
	atomic_fetch_add_explicit(&slot->counts[id].kernel_requests, requests, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->counts[id].kernel_bytes, bytes, memory_order_relaxed);
}

/* Where failures with this errno are counted. */
static size_t cause_of(int error)
{
	static const int errors[] = {
#define CAUSE(name) name,
		COUNTERS_CAUSE_LIST(CAUSE)
#undef CAUSE
	};
	const size_t count = sizeof(errors) / sizeof(*errors);
	size_t i = 0;

	_Static_assert(sizeof(errors) / sizeof(*errors) == COUNTERS_CAUSES - 1, "and one for all others");
	while (i < count && errors[i] != -error)
		i++;
	return i;
}

void counters_fallback(enum algorithm_id id, size_t bytes, int error)
{
	(void)bytes;
	atomic_fetch_add_explicit(&slot->counts[id].fallbacks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->counts[id].causes[cause_of(error)], 1, memory_order_relaxed);
}

void counters_error(enum algorithm_id id, size_t bytes, int error)
{
	(void)bytes;
	atomic_fetch_add_explicit(&slot->counts[id].errors, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->counts[id].causes[cause_of(error)], 1, memory_order_relaxed);
}

void counters_direct(enum algorithm_id id)
{
	atomic_store_explicit(&slot->counts[id].direct, 1, memory_order_relaxed);
}

/*** What the router knows ***/

void counters_policy(unsigned policy)
{
	slot->policy = policy_known = policy + 1;
}

void counters_driver(enum algorithm_id id, const char *driver)
{
	snprintf(file->drivers[id], sizeof(file->drivers[id]), "%s", driver);
}

void counters_lane(enum algorithm_id id, enum counters_lane lane, int error)
{
	struct counts *c = &slot->counts[id];

	atomic_store_explicit(&c->lane_errno, (uint32_t)-error, memory_order_relaxed);
	atomic_store_explicit(&c->lane, lane, memory_order_release);
}

void counters_lane_rests(enum algorithm_id id, int error, uint64_t until)
{
	atomic_store_explicit(&slot->counts[id].rest_until, until, memory_order_relaxed);
	counters_lane(id, COUNTERS_LANE_RESTS, error);
}

void counters_learnt(enum algorithm_id id, bool decrypt, const struct counters_learnt *learnt)
{
	struct counts_way *w = &slot->counts[id].way[decrypt];
	const uint32_t crossover = learnt->crossover >= COUNTERS_NEVER ? COUNTERS_NEVER : (uint32_t)learnt->crossover;

	atomic_store_explicit(&w->crossover, crossover, memory_order_relaxed);
	atomic_store_explicit(&w->bytes, (uint32_t)learnt->bytes, memory_order_relaxed);
	atomic_store_explicit(&w->software, learnt->software, memory_order_relaxed);
	atomic_store_explicit(&w->kernel, learnt->kernel, memory_order_relaxed);
}
