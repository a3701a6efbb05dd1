/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of cases share: the module loaded with policy = kernel beside the default provider alone, jobs that
 * run in both, step by step, and the proof that the kernel did its part.
 */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>

#include "provider/algorithms.h"
#include "support.h"
#include "vectors.h"

extern OSSL_LIB_CTX *ours, *reference;

/* P(n), for as many bytes as any case needs, and keys made of other bytes. */
#define PATTERN_MAX 1048577u
extern uint8_t pattern[PATTERN_MAX];
extern const uint8_t key_a[64], key_b[64], zero_iv[16];

/* A test with an alarm, which must leave no error in the queue. */
#define CASE(test) cmocka_unit_test_setup_teardown(test, case_begin, case_end)
int case_begin(void **state);
int case_end(void **state);

/*
 * First and last in main(). An argument "few" is for slow guests: of the algorithms only those that this kernel serves,
 * and of each kernel algorithm one, whatever its key sizes. At the end the kernel must have worked, if it has AF_ALG
 * and the module has rows of the kind that was tested.
 */
void cases_begin(int argc, char **argv);
int cases_end(int failed, enum algorithm_kind kind);

/* Whether `provider` is the module. */
bool is_ours(const OSSL_PROVIDER *provider);

/*
 * The kernel's share of what an algorithm does from here on, if the module offers it and this kernel serves it: then it
 * must have done at least `least` bytes, and failed at nothing. `algorithm` is the name of its counters.
 */
struct share {
	int id; /* -1: nothing is demanded */
	struct support_counts before;
};
struct share share_begin(const char *algorithm, const OSSL_PROVIDER *provider);
void share_end(const struct share *s, uint64_t least);

/* In how many bytes an input is handed over: sizes that repeat, or 0, 1, ... 255 where there are none. */
struct pieces {
	const char *name;
	unsigned count;
	size_t sizes[6];
	bool ends_empty;
};
#define WHOLE SIZE_MAX
extern const struct pieces whole, chunks, growing, with_empty;

/* Bytes of step `step`, of `left`. */
size_t piece(const struct pieces *p, unsigned step, size_t left);

/* When a decryption is given the tag. */
enum tag_time { TAG_BEFORE_DATA, TAG_BEFORE_KEY, TAG_AFTER_DATA };

/* A message for a cipher or an AEAD. What is null or 0 is not given, or is the default. */
struct job {
	const char *cipher, *cts;
	const uint8_t *key, *iv;
	int encrypt, padding;
	const struct pieces *pieces; /* null: whole */
	size_t in_offset, out_offset;
	bool in_place;

	size_t ivlen, taglen; /* an AEAD, where taglen is not 0 */
	const uint8_t *aad, *tag;
	size_t aadlen;
	const struct pieces *aad_pieces;
	enum tag_time tag_time;
};

#define CALLS_MAX 600
#define TAG_MAX 16

/* What became of a job: every return value and every length. */
struct outcome {
	uint8_t *room, *out;
	size_t len;
	unsigned calls;
	int returned[CALLS_MAX], lengths[CALLS_MAX]; /* length -1 where a call failed */
	uint8_t updated_iv[16], original_iv[16], tag[TAG_MAX];
	bool good; /* the last call succeeded, and nothing was written beside the output */
};

/* Runs a job. Safe in threads. The outcome is to be freed. */
void job_run(OSSL_LIB_CTX *lib, const struct job *j, const uint8_t *in, size_t len, struct outcome *o);
void outcome_free(struct outcome *o);

/* Initialises a context for a job, as far as the first byte. */
int job_init(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, const struct job *j);

/* Runs a job in both libraries, which must agree on all. `good`: it must succeed as well. Returns whether it did. */
bool job_compare(const struct job *j, const uint8_t *in, size_t len, bool good);

/* Like job_compare, with what the reference makes of `in` as the input of the way back. */
void job_compare_back(struct job j, const uint8_t *in, size_t len);

extern bool few;

/* Whether a row of the algorithms is among those to be tested. */
bool row_chosen(int id);

/* So for a vector: in few, one of an algorithm that this kernel does not serve is left out. */
bool vector_chosen(const struct vector *v);

/* The ciphers that the module offers, without AEAD, once list_offered() was called. */
enum shape {
	BLOCKS,      /* by blocks, with padding */
	STREAM,      /* bytes come out at once */
	MESSAGES,    /* each update is a message (XTS) */
	ONE_MESSAGE, /* the only update is the message (ciphertext stealing) */
};
struct offered {
	const char *name;
	int mode;
	enum shape shape;
	size_t block, ivlen;
};
#define OFFERED_MAX 128
extern struct offered offered[OFFERED_MAX];
extern size_t offered_count;
void list_offered(void);

/* Fetches that end the test where they fail. */
EVP_CIPHER *fetch_cipher(OSSL_LIB_CTX *lib, const char *name);
EVP_MD *fetch_digest(OSSL_LIB_CTX *lib, const char *name);

#endif
