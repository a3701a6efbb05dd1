/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include <err.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch.h"

/* No case comes near it, in the slowest guest either. */
#define LIMIT_SECONDS 240
#define GUARD 64u
#define GUARD_BYTE 0xa5

OSSL_LIB_CTX *ours, *reference;
uint8_t pattern[PATTERN_MAX];
const uint8_t key_a[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
			   22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
			   44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
const uint8_t key_b[64] = {0xf0, 0x0f, 0x5a, 0xa5, 0x33, 0xcc, 0x99, 0x66, 0x12, 0x34, 0x56,
			   0x78, 0x9a, 0xbc, 0xde, 0xf1, 0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb,
			   0xed, 0x0e, 0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88};
const uint8_t zero_iv[16];
struct offered offered[OFFERED_MAX];
size_t offered_count;

const struct pieces whole = {"whole", 1, {WHOLE}, false};
const struct pieces chunks = {"1+7+4096+12280", 4, {1, 7, 4096, 12280}, false};
const struct pieces growing = {"growing", 0, {0}, false};
const struct pieces with_empty = {"with empty ones", 5, {0, 16, 0, 4097, 31}, true};

static unsigned proofs;
bool few;

int case_begin(void **state)
{
	(void)state;
	alarm(LIMIT_SECONDS);
	return 0;
}

int case_end(void **state)
{
	const unsigned long error = ERR_peek_error();

	(void)state;
	alarm(0);
	ERR_clear_error();
	if (error != 0)
		print_error("left in the error queue: %s\n", ERR_error_string(error, NULL));
	return error == 0 ? 0 : -1;
}

static enum shape shape_of(const EVP_CIPHER *c)
{
	if ((EVP_CIPHER_get_flags(c) & EVP_CIPH_FLAG_CTS) != 0)
		return ONE_MESSAGE;
	if (EVP_CIPHER_get_mode(c) == EVP_CIPH_XTS_MODE)
		return MESSAGES;
	return EVP_CIPHER_get_block_size(c) > 1 ? BLOCKS : STREAM;
}

/* The first row of the same algorithm in the kernel, which knows no key sizes. */
static int first_of_kernel(int id)
{
	int i = 0;

	while (algorithms[i].kind != algorithms[id].kind || strcmp(algorithms[i].kernel, algorithms[id].kernel) != 0)
		i++;
	return i;
}

/* Asked once: where the kernel has to look for a module, an answer can take a second. */
static bool served(int id)
{
	static enum { UNKNOWN, NO, YES } known[ALGORITHM_COUNT];
	const struct algorithm *a = &algorithms[id];

	id = first_of_kernel(id);
	if (known[id] == UNKNOWN)
		known[id] = support_kernel_serves(algorithm_type(a->kind), a->kernel) ? YES : NO;
	return known[id] == YES;
}

bool row_chosen(int id)
{
	return !few || (first_of_kernel(id) == id && served(id));
}

bool vector_chosen(const struct vector *v)
{
	const int id = algorithm_find(v->algorithm, strlen(v->algorithm));

	return !few || id < 0 || served(id);
}

void list_offered(void)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];
		EVP_CIPHER *c;

		if (a->kind != KIND_SKCIPHER || !row_chosen(id))
			continue;
		c = EVP_CIPHER_fetch(ours, a->name, NULL);
		if (c != NULL && is_ours(EVP_CIPHER_get0_provider(c)) && offered_count < OFFERED_MAX)
			offered[offered_count++] = (struct offered){.name = a->name,
								    .mode = EVP_CIPHER_get_mode(c),
								    .shape = shape_of(c),
								    .block = (size_t)EVP_CIPHER_get_block_size(c),
								    .ivlen = (size_t)EVP_CIPHER_get_iv_length(c)};
		EVP_CIPHER_free(c);
	}
	ERR_clear_error();
}

static OSSL_PROVIDER *providers[3]; /* loaded beside the contexts' own */

void cases_begin(int argc, char **argv)
{
	few = argc > 1 && strcmp(argv[1], "few") == 0;
	support_init();
	ours = support_load("policy = kernel");
	reference = support_reference();
	/* Beside it the module has more ciphers. A reference that loads one provider loads no other by itself. */
	providers[0] = OSSL_PROVIDER_load(ours, "legacy");
	providers[1] = OSSL_PROVIDER_load(reference, "legacy");
	providers[2] = OSSL_PROVIDER_load(reference, "default");
	if (providers[0] == NULL || providers[1] == NULL)
		printf("without OpenSSL's legacy provider\n");
	support_pattern(pattern, sizeof(pattern));
}

int cases_end(int failed, enum algorithm_kind kind)
{
	int rows = 0;

	for (int id = 0; id < ALGORITHM_COUNT; id++)
		rows += algorithms[id].kind == kind;
	printf("%u times the kernel's work was proven; %lu receives from AF_ALG sockets, none without a send\n", proofs,
	       watch_receives());
	if (proofs > 0 && watch_receives() == 0) {
		printf("but nobody watched\n");
		failed++;
	}
	if (proofs == 0 && rows > 0 && support_kernel_serves("hash", "sha256")) {
		printf("but the kernel has AF_ALG\n");
		failed++;
	}
	for (int i = 0; i < 3; i++)
		if (providers[i] != NULL)
			OSSL_PROVIDER_unload(providers[i]);
	OSSL_LIB_CTX_free(ours);
	OSSL_LIB_CTX_free(reference);
	return failed;
}

bool is_ours(const OSSL_PROVIDER *provider)
{
	return provider != NULL && strcmp(OSSL_PROVIDER_get0_name(provider), "afalgprov") == 0;
}

struct share share_begin(const char *algorithm, const OSSL_PROVIDER *provider)
{
	const int id = is_ours(provider) ? algorithm_find(algorithm, strlen(algorithm)) : -1;
	struct share s = {.id = -1};

	if (id >= 0 && served(id)) {
		s.id = id;
		s.before = support_count(algorithm);
	}
	return s;
}

void share_end(const struct share *s, uint64_t least)
{
	struct support_counts now;
	uint64_t bytes, failures;

	if (s->id < 0)
		return;
	now = support_count(algorithms[s->id].name);
	bytes = now.kernel_bytes - s->before.kernel_bytes;
	failures = now.errors + now.fallbacks - s->before.errors - s->before.fallbacks;
	if (bytes < least || failures != 0)
		fail_msg("%s: the kernel did %llu bytes, not %llu, and failed %llu times", algorithms[s->id].name,
			 (unsigned long long)bytes, (unsigned long long)least, (unsigned long long)failures);
	proofs++;
}

size_t piece(const struct pieces *p, unsigned step, size_t left)
{
	const size_t n = p->count > 0 ? p->sizes[step % p->count] : step % 256;

	return n < left ? n : left;
}

EVP_CIPHER *fetch_cipher(OSSL_LIB_CTX *lib, const char *name)
{
	EVP_CIPHER *c = EVP_CIPHER_fetch(lib, name, NULL);

	if (c == NULL)
		errx(1, "no cipher %s", name);
	return c;
}

EVP_MD *fetch_digest(OSSL_LIB_CTX *lib, const char *name)
{
	EVP_MD *md = EVP_MD_fetch(lib, name, NULL);

	if (md == NULL)
		errx(1, "no digest %s", name);
	return md;
}

/* Notes a call; false ends the job. */
static bool note(struct outcome *o, int returned, int length)
{
	if (o->calls == CALLS_MAX)
		errx(1, "more than %d calls", CALLS_MAX);
	o->returned[o->calls] = returned;
	o->lengths[o->calls++] = returned > 0 ? length : -1;
	o->good = returned > 0;
	return o->good;
}

static int set_tag(EVP_CIPHER_CTX *ctx, const struct job *j, const uint8_t *tag)
{
	return EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, (int)j->taglen, (void *)(uintptr_t)tag) > 0;
}

int job_init(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher, const struct job *j)
{
	const bool wants_tag = j->taglen > 0 && !j->encrypt, before_key = wants_tag && j->tag_time == TAG_BEFORE_KEY;
	/* CCM wants to know its length with the key. */
	const bool sized = j->taglen > 0 && EVP_CIPHER_get_mode(cipher) == EVP_CIPH_CCM_MODE;
	OSSL_PARAM params[] = {OSSL_PARAM_END, OSSL_PARAM_END};

	if (j->cts != NULL)
		params[0] = OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, (char *)(uintptr_t)j->cts, 0);
	return EVP_CipherInit_ex2(ctx, cipher, NULL, NULL, j->encrypt, params) &&
	       (j->ivlen == 0 || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, (int)j->ivlen, NULL) > 0) &&
	       (!sized || set_tag(ctx, j, NULL)) && (!before_key || set_tag(ctx, j, j->tag)) &&
	       EVP_CipherInit_ex2(ctx, NULL, j->key, j->iv, j->encrypt, NULL) &&
	       (!wants_tag || j->tag_time != TAG_BEFORE_DATA || set_tag(ctx, j, j->tag)) &&
	       (j->taglen > 0 || EVP_CIPHER_CTX_set_padding(ctx, j->padding));
}

/* Every empty piece is an update of nothing, in turn with and without a pointer. */
static const uint8_t *empty_or(const uint8_t *in, size_t n, unsigned step)
{
	return n == 0 && step % 2 == 0 ? NULL : in;
}

static void run_aad(EVP_CIPHER_CTX *ctx, const struct job *j, size_t len, struct outcome *o)
{
	const struct pieces *p = j->aad_pieces != NULL ? j->aad_pieces : &whole;
	size_t at = 0;
	int outl = -1;

	/* CCM wants to know the length first. */
	if (EVP_CIPHER_CTX_get_mode(ctx) == EVP_CIPH_CCM_MODE)
		note(o, EVP_CipherUpdate(ctx, NULL, &outl, NULL, (int)len), outl);
	for (unsigned step = 0; at < j->aadlen; step++) {
		const size_t n = piece(p, step, j->aadlen - at);

		outl = -1;
		note(o, EVP_CipherUpdate(ctx, NULL, &outl, empty_or(j->aad + at, n, step), (int)n), outl);
		at += n;
	}
}

static void run_data(EVP_CIPHER_CTX *ctx, const struct job *j, const uint8_t *in, size_t len, struct outcome *o)
{
	const struct pieces *p = j->pieces != NULL ? j->pieces : &whole;
	/* A message of CCM is one update with input, even of nothing: before 3.0.22 its end made no tag. */
	const bool ccm = EVP_CIPHER_CTX_get_mode(ctx) == EVP_CIPH_CCM_MODE;
	bool last = len == 0 && j->pieces == NULL && !ccm; /* no update at all */
	size_t at = 0;

	for (unsigned step = ccm; !last; step++) {
		const size_t n = piece(p, step, len - at);
		int outl = -1;

		last = at == len || (at + n == len && !p->ends_empty);

		if (note(o, EVP_CipherUpdate(ctx, o->out + o->len, &outl, empty_or(in + at, n, step), (int)n), outl))
			o->len += (size_t)outl;
		at += n;
	}
}

static void run_final(EVP_CIPHER_CTX *ctx, const struct job *j, struct outcome *o)
{
	int outl = -1;

	if (j->taglen > 0 && j->tag_time == TAG_AFTER_DATA && !j->encrypt)
		note(o, set_tag(ctx, j, j->tag), 0);
	/* A CCM message that was not verified by its update has no final. */
	if (!o->good && j->taglen > 0)
		return;
	if (note(o, EVP_CipherFinal_ex(ctx, o->out + o->len, &outl), outl))
		o->len += (size_t)outl;
	if (o->good && j->taglen > 0 && j->encrypt)
		note(o, EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, (int)j->taglen, o->tag), 0);
}

static bool guards_stand(const struct outcome *o, size_t room)
{
	for (const uint8_t *b = o->room; b < o->out; b++)
		if (*b != GUARD_BYTE)
			return false;
	for (const uint8_t *b = o->out + room; b < o->out + room + GUARD; b++)
		if (*b != GUARD_BYTE)
			return false;
	return true;
}

void job_run(OSSL_LIB_CTX *lib, const struct job *j, const uint8_t *in, size_t len, struct outcome *o)
{
	EVP_CIPHER *cipher = fetch_cipher(lib, j->cipher);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	const size_t room = len + 2 * 16;
	uint8_t *copy = malloc(j->in_offset + len + 1);

	memset(o, 0, sizeof(*o));
	o->room = malloc(GUARD + j->out_offset + room + GUARD);
	if (ctx == NULL || copy == NULL || o->room == NULL)
		err(1, "job");
	memset(o->room, GUARD_BYTE, GUARD + j->out_offset + room + GUARD);
	o->out = o->room + GUARD + j->out_offset;
	memcpy(j->in_place ? o->out : copy + j->in_offset, in, len);
	if (note(o, job_init(ctx, cipher, j), 0)) {
		if (j->taglen > 0)
			run_aad(ctx, j, len, o);
		run_data(ctx, j, j->in_place ? o->out : copy + j->in_offset, len, o);
		/* Not all ciphers have them; what there is must be the same. */
		EVP_CIPHER_CTX_get_updated_iv(ctx, o->updated_iv, sizeof(o->updated_iv));
		EVP_CIPHER_CTX_get_original_iv(ctx, o->original_iv, sizeof(o->original_iv));
		run_final(ctx, j, o);
	}
	if (!guards_stand(o, room))
		errx(1, "%s has written beside its output", j->cipher);
	ERR_clear_error();
	free(copy);
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cipher);
}

void outcome_free(struct outcome *o)
{
	free(o->room);
}

static void describe(const struct job *j, size_t len, const char *what, unsigned call)
{
	fail_msg("%s %s, %zu bytes, %s, offsets %zu and %zu%s%s: %s (call %u)", j->cipher,
		 j->encrypt ? "encrypts" : "decrypts", len, j->pieces != NULL ? j->pieces->name : "whole", j->in_offset,
		 j->out_offset, j->in_place ? ", in place" : "", j->padding ? ", padded" : "", what, call);
}

/* The reference's outcome is left to the caller. */
static void compare(const struct job *j, const uint8_t *in, size_t len, struct outcome *expected)
{
	struct outcome got;

	job_run(ours, j, in, len, &got);
	job_run(reference, j, in, len, expected);
	for (unsigned i = 0; i < got.calls && i < expected->calls; i++) {
		if (got.returned[i] != expected->returned[i])
			describe(j, len, "return value", i);
		if (got.lengths[i] != expected->lengths[i])
			describe(j, len, "length", i);
	}
	if (got.calls != expected->calls)
		describe(j, len, "number of calls", got.calls);
	if (memcmp(got.out, expected->out, expected->len) != 0)
		describe(j, len, "output", 0);
	if (memcmp(got.tag, expected->tag, TAG_MAX) != 0)
		describe(j, len, "tag", 0);
	if (memcmp(got.updated_iv, expected->updated_iv, 16) != 0)
		describe(j, len, "updated IV", 0);
	if (memcmp(got.original_iv, expected->original_iv, 16) != 0)
		describe(j, len, "original IV", 0);
	outcome_free(&got);
}

bool job_compare(const struct job *j, const uint8_t *in, size_t len, bool good)
{
	struct outcome expected;
	bool was_good;

	compare(j, in, len, &expected);
	if (good && !expected.good)
		describe(j, len, "failure", expected.calls);
	was_good = expected.good;
	outcome_free(&expected);
	return was_good;
}

void job_compare_back(struct job j, const uint8_t *in, size_t len)
{
	struct job there = {.cipher = j.cipher,
			    .cts = j.cts,
			    .key = j.key,
			    .iv = j.iv,
			    .encrypt = !j.encrypt,
			    .padding = j.padding,
			    .ivlen = j.ivlen,
			    .taglen = j.taglen,
			    .aad = j.aad,
			    .aadlen = j.aadlen};
	struct outcome o, back;

	job_run(reference, &there, in, len, &o);
	if (!o.good)
		describe(&there, len, "failure of the reference", o.calls);
	j.tag = o.tag;
	compare(&j, o.out, o.len, &back);
	if (!back.good || back.len != len || memcmp(back.out, in, len) != 0)
		describe(&j, len, "the way back", back.calls);
	outcome_free(&o);
	outcome_free(&back);
}
