/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who did what: calls and bytes by algorithm and lane, in a file that others map while the process runs.
 *
 * One file a family of processes, <directory>/<pid of the process that loaded the provider>; forked children count in
 * slots of the same mapping, so they need no system call, no /run and no rights for it (workers after chroot, setuid or
 * a seccomp filter). Without a file the same memory is private. Nothing secret is in it: names and numbers.
 */
#ifndef PROVIDER_COUNTERS_H
#define PROVIDER_COUNTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "algorithms.h"

#define COUNTERS_DIRECTORY "/run/afalgprov"

/* The errnos that fallbacks and errors are told apart by. What is not among them counts as the last, "other". */
#define COUNTERS_CAUSE_LIST(CAUSE) \
	CAUSE(EACCES)              \
	CAUSE(EAFNOSUPPORT)        \
	CAUSE(EAGAIN)              \
	CAUSE(EBADF)               \
	CAUSE(EBUSY)               \
	CAUSE(EILSEQ)              \
	CAUSE(EINVAL)              \
	CAUSE(EIO)                 \
	CAUSE(EMFILE)              \
	CAUSE(ENFILE)              \
	CAUSE(ENOENT)              \
	CAUSE(ENOMEM)              \
	CAUSE(EPERM)               \
	CAUSE(ESTALE)              \
	CAUSE(ETIMEDOUT)
#define COUNTERS_CAUSES 16

/* The kernel lane of an algorithm. */
enum counters_lane {
	COUNTERS_LANE_UNASKED,      /* no call so far that was worth asking the kernel */
	COUNTERS_LANE_OPEN,         /* calls go there where it wins */
	COUNTERS_LANE_RESTS,        /* after a passing failure, up to a time */
	COUNTERS_LANE_NO_HARDWARE,  /* closed: the driver is software, or not known for an errno */
	COUNTERS_LANE_OUT_OF_REACH, /* closed: the kernel keeps the hardware from AF_ALG */
	COUNTERS_LANE_BLOCKED,      /* closed by an errno */
	COUNTERS_LANE_BROKEN,       /* closed: EILSEQ, its results are wrong; ETIMEDOUT, it does not answer */
	COUNTERS_LANES
};

#define COUNTERS_NEVER UINT32_MAX

/* What was learnt of one direction (0: encryption, digests, MACs; 1: decryption). 0: not known. */
struct counts_way {
	_Atomic uint32_t crossover;        /* bytes from which on the kernel is the better lane; COUNTERS_NEVER */
	_Atomic uint32_t bytes;            /* the size whose time is taken most often, and what a call of it costs */
	_Atomic uint32_t software, kernel; /* mean of the samples, nanoseconds */
};

/* Counters of one algorithm in one process. */
struct counts {
	_Atomic uint64_t software_calls; /* calls served by the software lane */
	_Atomic uint64_t software_bytes;
	_Atomic uint64_t kernel_requests; /* requests that the kernel completed */
	_Atomic uint64_t kernel_bytes;
	_Atomic uint64_t fallbacks;               /* kernel requests that failed and were redone in software */
	_Atomic uint64_t errors;                  /* kernel failures that reached the caller */
	_Atomic uint32_t causes[COUNTERS_CAUSES]; /* of both */
	/* From here on no counts, but what holds for the process. */
	_Atomic uint64_t direct; /* 1: only software is possible, served by OpenSSL's own functions and not counted */
	_Atomic uint64_t rest_until; /* CLOCK_MONOTONIC nanoseconds */
	_Atomic uint32_t lane;       /* enum counters_lane */
	_Atomic uint32_t lane_errno; /* 0: none */
	struct counts_way way[2];
};

/* Slot 0 sums up the processes that have ended; the last slot serves all that found no other. */
#define COUNTERS_SLOTS 16
#define COUNTERS_ENDED 0
#define COUNTERS_SHARED (COUNTERS_SLOTS - 1)
#define COUNTERS_SHARED_PID (-1)

struct counters_slot {
	_Atomic int32_t pid; /* 0: free */
	char command[28];    /* the process's name when it took the slot */
	uint32_t policy;     /* enum policy and one more, of the instance that was loaded last; 0: not known */
	uint32_t unused;
	struct counts counts[ALGORITHM_COUNT];
};

#define COUNTERS_MAGIC 0x32746e6367666c61u /* "alfgcnt2" */
#define COUNTERS_NAME_SIZE 32
#define COUNTERS_DRIVER_SIZE 64
#define COUNTERS_BIRTH_SECONDS 5

/*
 * The file. A reader of another build finds its way by the sizes and names in the head: what precedes `names`, what
 * precedes `counts` in a slot, and the sizes and beginnings of names, drivers and struct counts stay as they are as
 * long as the magic does. Fields may come behind those of struct counts. A magic of 0: the file is being made.
 */
struct counters_file {
	uint64_t magic; /* written last */
	uint32_t head_size, slot_size, slots, algorithms, counts_size, unused;
	_Atomic int32_t births;  /* forks whose child has not yet taken a slot; a failed fork counts for ever */
	_Atomic int32_t sharers; /* processes that use the shared slot; one that was killed counts for ever */
	_Atomic int64_t birth;   /* CLOCK_MONOTONIC seconds of the last fork */
	char names[ALGORITHM_COUNT][COUNTERS_NAME_SIZE];
	char drivers[ALGORITHM_COUNT][COUNTERS_DRIVER_SIZE]; /* of hardware, once the kernel was asked; else empty */
	struct counters_slot slot[COUNTERS_SLOTS];
};

/*
 * Begins counting, once a process. `directory` null: privately. Where the file cannot be made counting is private too,
 * and nobody is told. AFALGPROV_COUNTERS names another directory, whose files also outlive their processes, for
 * `afalgctl stats -- COMMAND`; it is ignored in set-user-ID programs.
 */
void counters_init(const char *directory);

/* The running process's counters of an algorithm, valid until it ends. */
struct counts *counters_of(enum algorithm_id id);

/* Adds a completed run of kernel requests. */
void counters_kernel(enum algorithm_id id, unsigned requests, size_t bytes);

/* Adds a failure of the kernel (`error`: negative errno), after which software did the bytes, or the caller was told.
 */
void counters_fallback(enum algorithm_id id, size_t bytes, int error);
void counters_error(enum algorithm_id id, size_t bytes, int error);
void counters_direct(enum algorithm_id id);

/* What the router knows, for others to see: each is told when it changes, and not by the calls between. */
void counters_policy(unsigned policy);                                        /* enum policy */
void counters_driver(enum algorithm_id id, const char *driver);               /* of hardware */
void counters_lane(enum algorithm_id id, enum counters_lane lane, int error); /* negative errno, 0: none */
void counters_lane_rests(enum algorithm_id id, int error, uint64_t until);    /* CLOCK_MONOTONIC nanoseconds */

/* What was learnt: as struct counts_way, sizes as in cost.h. */
struct counters_learnt {
	size_t crossover; /* SIZE_MAX: never; 0: not known */
	size_t bytes;
	uint32_t software, kernel;
};
void counters_learnt(enum algorithm_id id, bool decrypt, const struct counters_learnt *learnt);

/* Software calls are many and small: each thread gathers its own and hands them over now and then. */
struct pending {
	uint64_t bytes;
	uint32_t calls;
	uint8_t flushes, seen; /* how often, and up to which of them the router has looked at a call */
};

#define COUNTERS_PENDING_CALLS 64u
#define COUNTERS_PENDING_BYTES (1u << 20)

/* The dynamic model costs a call per access; glibc keeps room for a few early pointers, other libraries do not. */
#ifdef __GLIBC__
#define COUNTERS_TLS __attribute__((tls_model("initial-exec")))
#else
#define COUNTERS_TLS
#endif
extern _Thread_local struct pending *counters_mine COUNTERS_TLS; /* null until this thread's first call */

void counters_software_slow(enum algorithm_id id, uint32_t calls, uint64_t bytes);

/* Adds software calls. */
static inline void counters_software(enum algorithm_id id, uint32_t calls, uint64_t bytes)
{
	struct pending *p = counters_mine;

	if (p != NULL) {
		p += id;
		p->bytes += bytes;
		p->calls += calls;
		if (p->calls < COUNTERS_PENDING_CALLS && p->bytes < COUNTERS_PENDING_BYTES)
			return;
		calls = 0;
		bytes = 0;
	}
	counters_software_slow(id, calls, bytes);
}

/*
 * Whether the router may look at a call of this thread that would not come by it: once each time that something was
 * handed over. Not 0: that is due, and odd or even in turn. It is until counters_sampled().
 */
static inline unsigned counters_sample(enum algorithm_id id)
{
	const struct pending *p = counters_mine == NULL ? NULL : counters_mine + id;

	return p == NULL || p->flushes == p->seen ? 0 : 2u + (p->flushes & 1u);
}

static inline void counters_sampled(enum algorithm_id id)
{
	if (counters_mine != NULL)
		counters_mine[id].seen = counters_mine[id].flushes;
}

/* Hands over what the calling thread has gathered. */
void counters_flush(void);

#endif
