/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random walks: AEAD contexts are told what comes to mind, in any order, with a kernel that fails now and then. What a
 * program sees must be what it sees of the default provider; so no nonce is used that the default provider would not
 * use, and none of software's makeshift tags comes out. And the walks that once went wrong.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* random bytes that are the same for both sides */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"

#define ROOM 1024
#define WALKS 2000
#define STEPS 24

static struct lib lib;
static const char *settings;

enum step {
	/* In words that programs know: init, ctrl, update, final. */
	INIT_IV,
	INIT_KEY,
	INIT_BOTH,
	TURN, /* the other direction, and nothing else */
	FIXED,
	IV_LENGTH,
	TAG,
	TAG_LENGTH,
	HEADER,
	RECORD,
	RECORD_ELSEWHERE, /* not in place */
	DATA,
	ONESHOT, /* EVP_Cipher() */
	AAD,
	NOTHING, /* neither input nor output: a length for CCM */
	EMPTY,
	FINAL,
	ONESHOT_FINAL,
	GET_TAG,
	GET_IV,
	NEXT_IV,
	RECEIVED_IV,
	COPY,
	PADDING,
	FAULT,
	STEP_COUNT
};

struct walk {
	enum algorithm_id id;
	struct trace *trace;
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *c;
	bool ours, encrypt;
	bool failed; /* CCM: the last update; else any */
	int payload; /* of the record whose header was given last */
	uint8_t data[ROOM];
};

static int fixed_bytes(unsigned char *bytes, int n)
{
	memset(bytes, 0x42, (size_t)n);
	return 1;
}

static int ready(void)
{
	return 1;
}

static RAND_METHOD fixed_random = {.bytes = fixed_bytes, .pseudorand = fixed_bytes, .status = ready};

static enum cipher_mode mode_of(const struct walk *w)
{
	return algorithms[w->id].mode;
}

static void *bytes(unsigned which)
{
	return (void *)(uintptr_t)(pattern() + 20 * (which % 4 == 0));
}

/* What the default provider makes of 100 bytes, with the first key and IV: there is something to decrypt, then. */
struct sealed {
	uint8_t message[100], tag[16];
	uint8_t record[8 + 64 + 16]; /* with the header that `header` makes of 0 */
	int record_length;
};

static struct sealed sealed[ALGORITHM_COUNT];

static const enum algorithm_id rows[] = {ALG_AES_128_GCM, ALG_AES_128_CCM, ALG_CHACHA20_POLY1305};
#define ROWS (sizeof(rows) / sizeof(*rows))

static int header(EVP_CIPHER_CTX *c, int length, unsigned sequence)
{
	uint8_t aad[13] = {1, 2, 3, 4, 5, 6, 7, (uint8_t)sequence, 23, 3, 3, (uint8_t)(length >> 8), (uint8_t)length};

	return EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_TLS1_AAD, sizeof(aad), aad);
}

static EVP_CIPHER_CTX *sealer(const EVP_CIPHER *cipher, bool ccm)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

	assert_true(EVP_EncryptInit_ex2(c, cipher, NULL, NULL, NULL));
	assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL));
	assert_true(!ccm || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, 16, NULL));
	assert_true(EVP_EncryptInit_ex2(c, NULL, bytes(1), bytes(1), NULL));
	return c;
}

static void seal(enum algorithm_id id)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, "default");
	const bool ccm = algorithms[id].mode == MODE_CCM;
	const int explicit_iv = algorithms[id].mode == MODE_CHACHA_POLY ? 0 : 8;
	struct sealed *s = &sealed[id];
	EVP_CIPHER_CTX *c = sealer(cipher, ccm);
	int n;

	assert_true(!ccm || EVP_EncryptUpdate(c, NULL, &n, NULL, 100));
	assert_true(EVP_EncryptUpdate(c, NULL, &n, pattern(), 13));
	assert_true(EVP_EncryptUpdate(c, s->message, &n, pattern(), 100) && EVP_EncryptFinal_ex(c, s->tag, &n));
	assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, s->tag));
	EVP_CIPHER_CTX_free(c);
	c = sealer(cipher, ccm);
	if (explicit_iv > 0)
		assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IV_FIXED, 4, bytes(1)));
	s->record_length = explicit_iv + 64 + 16;
	memcpy(s->record + explicit_iv, pattern(), 64);
	assert_int_equal(header(c, explicit_iv + 64, 0), 16);
	assert_true(EVP_EncryptUpdate(c, s->record, &n, s->record, s->record_length));
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
}

/* An update in whatever way, and all that it leaves behind. */
static void feed(struct walk *w, bool oneshot, uint8_t *out, const uint8_t *in, int inl)
{
	int n = -1, ok = oneshot ? EVP_Cipher(w->c, out, in, (unsigned)inl) : EVP_CipherUpdate(w->c, out, &n, in, inl);

	w->failed = ok <= 0 || (w->failed && mode_of(w) != MODE_CCM);
	trace_number(w->trace, "fed", ok);
	if (!oneshot && ok)
		trace_number(w->trace, "length", n);
	if (out != NULL && ok > 0)
		trace_bytes(w->trace, "output", out, (size_t)inl);
}

static void tell_header(struct walk *w, unsigned r)
{
	const int explicit_iv = mode_of(w) == MODE_CHACHA_POLY ? 0 : 8;

	w->payload = r % 3 == 0 ? 0 : 64;
	trace_number(w->trace, "header",
		     header(w->c, r % 9 == 5 ? 3 : explicit_iv + w->payload + (w->encrypt ? 0 : 16), r / 64 % 2));
}

static void record(struct walk *w, unsigned r, bool oneshot)
{
	const int length = sealed[w->id].record_length - 64 + w->payload - (r % 11 == 0);

	if (w->encrypt)
		memcpy(w->data, pattern() + 7, ROOM);
	else
		memcpy(w->data, sealed[w->id].record, sizeof(sealed->record));
	if (!w->encrypt && w->payload == 64)
		w->data[length - 1] ^= (uint8_t)(r % 5 == 0);
	feed(w, oneshot, w->data, w->data, length);
}

static void data(struct walk *w, unsigned r, bool oneshot)
{
	static const int lengths[] = {100, 100, 100, 20, 300};
	uint8_t out[ROOM] = {0};

	memcpy(w->data, w->encrypt ? pattern() : sealed[w->id].message, 100);
	feed(w, oneshot, out, w->data, lengths[r % 5]);
}

static void tags(struct walk *w, enum step step, unsigned r)
{
	uint8_t tag[16] = {0};

	if (step == TAG)
		trace_number(w->trace, "tag",
			     EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_SET_TAG, r % 8 == 0 ? 12 : 16, sealed[w->id].tag));
	else if (step == TAG_LENGTH)
		trace_number(w->trace, "tag length",
			     EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_SET_TAG, r % 3 == 0 ? 8 : 16, NULL));
	else
		trace_number(w->trace, "tag", EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_GET_TAG, 16, tag));
	/* Of messages and records that were refused half way, software alone knows whether there is a tag. */
	if (mode_of(w) == MODE_GCM || !w->failed)
		trace_bytes(w->trace, "tag", tag, sizeof(tag));
}

static void nonces(struct walk *w, enum step step, unsigned r)
{
	uint8_t iv[16] = {0};

	switch (step) {
	case FIXED:
		trace_number(w->trace, "fixed",
			     EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_SET_IV_FIXED,
						 mode_of(w) == MODE_CHACHA_POLY ? 12
						 : r % 8 == 0                   ? -1
										: 4,
						 bytes(r)));
		return;
	case IV_LENGTH:
		trace_number(w->trace, "IV length",
			     EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_SET_IVLEN,
						 r % 3 != 0 ? 12
						 : r % 2    ? 8
							    : 13,
						 NULL));
		return;
	case NEXT_IV:
		trace_number(w->trace, "next IV", EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_GCM_IV_GEN, 8, iv));
		break;
	case RECEIVED_IV:
		trace_number(w->trace, "received IV", EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_GCM_SET_IV_INV, 8, bytes(r)));
		return;
	default:
		/* CCM gives bytes beyond its IV. */
		trace_number(w->trace, "IV",
			     EVP_CIPHER_CTX_get_updated_iv(w->c, iv, mode_of(w) == MODE_CCM ? 13 : sizeof(iv)));
	}
	trace_bytes(w->trace, "IV", iv, sizeof(iv));
}

static void turn(struct walk *w, enum step step, unsigned r)
{
	uint8_t *key = step == INIT_KEY || step == INIT_BOTH ? bytes(r / 4) : NULL;
	uint8_t *iv = step == INIT_IV || step == INIT_BOTH ? bytes(r) : NULL;

	if (step == TURN)
		w->encrypt = !w->encrypt;
	trace_number(w->trace, "init", EVP_CipherInit_ex2(w->c, NULL, key, iv, w->encrypt, NULL));
}

static void copy(struct walk *w)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

	trace_number(w->trace, "copy", EVP_CIPHER_CTX_copy(c, w->c));
	EVP_CIPHER_CTX_free(w->c);
	w->c = c;
}

static void take(struct walk *w, enum step step, unsigned r)
{
	uint8_t rest[32];
	int n = -1;

	fprintf(w->trace->file, "step %d\n", (int)step);
	if (step <= TURN) {
		turn(w, step, r);
	} else if (step == TAG || step == TAG_LENGTH || step == GET_TAG) {
		tags(w, step, r);
	} else if (step == FIXED || step == IV_LENGTH || step == GET_IV || step == NEXT_IV || step == RECEIVED_IV) {
		nonces(w, step, r);
	} else if (step == HEADER) {
		tell_header(w, r);
	} else if (step == RECORD) {
		record(w, r, r / 16 % 4 == 0);
	} else if (step == RECORD_ELSEWHERE) {
		feed(w, false, w->data + 300, w->data, 88);
	} else if (step == DATA || step == ONESHOT) {
		data(w, r, step == ONESHOT);
	} else if (step == AAD) {
		feed(w, false, NULL, pattern(), r % 4 == 0 ? 30 : 13);
	} else if (step == NOTHING) {
		/* More, where a record is due, and GCM in the default provider writes to where there is nothing. */
		feed(w, false, NULL, NULL, mode_of(w) == MODE_CCM ? 100 : 10);
	} else if (step == EMPTY) {
		feed(w, r % 2, w->data, w->data, 0);
	} else if (step == COPY) {
		copy(w);
	} else if (step == PADDING) {
		trace_number(w->trace, "padding", EVP_CIPHER_CTX_set_padding(w->c, 0));
	} else if (step == FAULT && w->ours) {
		fake_fail(FAKE_CRYPT, 1, EIO, 1);
		route_forget();
	} else if (step == FINAL) {
		trace_number(w->trace, "final", EVP_CipherFinal_ex(w->c, rest, &n));
	} else if (step == ONESHOT_FINAL) {
		trace_number(w->trace, "final", EVP_Cipher(w->c, rest, NULL, 0));
	}
	trace_errors(w->trace);
}

static void set_out(struct walk *w, enum algorithm_id id, const char *provider, bool encrypt, struct trace *t)
{
	*w = (struct walk){.id = id, .trace = t, .ours = strcmp(provider, "default") != 0, .encrypt = encrypt};
	w->cipher = cipher_of(&lib, id, provider);
	w->payload = 64;
	w->c = EVP_CIPHER_CTX_new();
	trace_open(t);
	trace_number(t, "init", EVP_CipherInit_ex2(w->c, w->cipher, NULL, NULL, encrypt, NULL));
	trace_number(t, "IV length", EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL));
	trace_number(t, "tag length",
		     algorithms[id].mode == MODE_CCM ? EVP_CIPHER_CTX_ctrl(w->c, EVP_CTRL_AEAD_SET_TAG, 16, NULL) : 1);
	trace_number(t, "key", EVP_CipherInit_ex2(w->c, NULL, bytes(1), bytes(1), encrypt, NULL));
}

static void come_back(struct walk *w)
{
	trace_close(w->trace);
	EVP_CIPHER_CTX_free(w->c);
	EVP_CIPHER_free(w->cipher);
}

/* The same stream of numbers for both sides. */
static unsigned next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*state >> 33);
}

static void walk(enum algorithm_id id, const char *provider, uint64_t seed, struct trace *t)
{
	/* What belongs together comes together more often than chance would have it. */
	static const enum step usual[][4] = {{HEADER, RECORD, HEADER, RECORD},
					     {TAG, AAD, DATA, FINAL},
					     {INIT_BOTH, FIXED, HEADER, RECORD},
					     {AAD, DATA, FINAL, GET_TAG},
					     {INIT_IV, NOTHING, AAD, DATA}};
	struct walk w;

	set_out(&w, id, provider, next(&seed) % 3 != 0, t);
	for (int i = 0; i < STEPS; i++) {
		const unsigned r = next(&seed), pick = next(&seed);

		if (pick % 3 == 0)
			for (size_t k = 0; k < 4; k++)
				take(&w, usual[pick / 3 % 5][k], next(&seed));
		else
			take(&w, (enum step)(pick / 3 % STEP_COUNT), r);
	}
	come_back(&w);
}

static void test_walks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (uint64_t seed = 0; seed < WALKS; seed++) {
			struct trace theirs, ours;

			walk(rows[i], "default", seed * 7919, &theirs);
			fake_install();
			walk(rows[i], "afalgprov", seed * 7919, &ours);
			trace_compare(&theirs, &ours, "walk %u of %s", (unsigned)seed, algorithms[rows[i]].name);
		}
	fake_install();
}

/* Where walks went wrong. `kernel`: requests that the kernel has of it. */
static const struct {
	const char *what;
	enum algorithm_id id;
	bool encrypt;
	unsigned kernel;
	enum step steps[12];
	unsigned r[12];
} known[] = {
	{"the nonce of a record, after a tag was refused",
	 ALG_AES_128_GCM,
	 true,
	 1,
	 {FIXED, HEADER, RECORD, TAG, DATA, FINAL, GET_TAG, STEP_COUNT},
	 {1, 1, 1, 1}},
	{"and after another parameter",
	 ALG_AES_128_GCM,
	 true,
	 1,
	 {FIXED, HEADER, RECORD, IV_LENGTH, DATA, GET_TAG, STEP_COUNT},
	 {1, 1, 1, 1}},
	{"the end after a record",
	 ALG_AES_128_GCM,
	 true,
	 1,
	 {FIXED, HEADER, RECORD, FINAL, DATA, STEP_COUNT},
	 {1, 1, 1}},
	{"a whole IV after the fixed one",
	 ALG_AES_128_GCM,
	 true,
	 2,
	 {FIXED, INIT_BOTH, HEADER, RECORD, HEADER, RECORD, STEP_COUNT},
	 {1, 0, 1, 1, 1, 1}},
	{"and with CCM", ALG_AES_128_CCM, true, 1, {FIXED, INIT_BOTH, HEADER, RECORD, STEP_COUNT}, {1, 0, 1, 1}},
	{"an IV of another length",
	 ALG_AES_128_GCM,
	 true,
	 0,
	 {IV_LENGTH, FIXED, HEADER, RECORD, STEP_COUNT},
	 {0, 1, 1, 1}},
	{"an end by an update", ALG_AES_128_GCM, true, 0, {NOTHING, GET_TAG, DATA, STEP_COUNT}, {0}},
	{"an end by an update, with AAD",
	 ALG_CHACHA20_POLY1305,
	 true,
	 0,
	 {AAD, NOTHING, GET_TAG, DATA, STEP_COUNT},
	 {0}},
	{"data after a record",
	 ALG_CHACHA20_POLY1305,
	 true,
	 1,
	 {HEADER, RECORD, DATA, FINAL, GET_TAG, STEP_COUNT},
	 {1, 1}},
	{"a record after data without an end",
	 ALG_CHACHA20_POLY1305,
	 true,
	 1,
	 {DATA, HEADER, AAD, FINAL, GET_TAG, STEP_COUNT},
	 {0, 1}},
	{"a message after another fixed IV",
	 ALG_CHACHA20_POLY1305,
	 true,
	 0,
	 {FIXED, DATA, FINAL, DATA, FINAL, GET_TAG, STEP_COUNT},
	 {0}},
	{"the tag after a record", ALG_AES_128_GCM, true, 1, {FIXED, HEADER, RECORD, GET_TAG, STEP_COUNT}, {1, 1, 1}},
	{"a request that fails",
	 ALG_AES_128_GCM,
	 true,
	 2,
	 {FIXED, HEADER, RECORD, FAULT, HEADER, RECORD, HEADER, RECORD, GET_IV, STEP_COUNT},
	 {1, 1, 1, 1, 1, 1, 1, 1}},
	{"a tag refused", ALG_AES_128_GCM, true, 1, {DATA, FINAL, TAG, GET_TAG, STEP_COUNT}, {0}},
	{"a second message with the same IV",
	 ALG_AES_128_GCM,
	 false,
	 1,
	 {TAG, AAD, DATA, FINAL, TAG, AAD, DATA, FINAL, STEP_COUNT},
	 {1, 1, 0, 0, 1, 1, 0, 0}},
	{"and with CCM",
	 ALG_AES_128_CCM,
	 false,
	 1,
	 {TAG, NOTHING, AAD, DATA, TAG, NOTHING, AAD, DATA, FINAL, STEP_COUNT},
	 {1, 0, 1, 0, 1, 0, 1, 0}},
	{"a record received, then data",
	 ALG_AES_128_GCM,
	 false,
	 1,
	 {FIXED, HEADER, RECORD, TAG, DATA, FINAL, STEP_COUNT},
	 {1, 1, 1, 1}},
};

static void test_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct trace traces[2];

		for (int ours = 0; ours < 2; ours++) {
			struct walk w;

			fake_install();
			set_out(&w, known[i].id, ours ? "afalgprov" : "default", known[i].encrypt, &traces[ours]);
			for (size_t k = 0; known[i].steps[k] != STEP_COUNT; k++)
				take(&w, known[i].steps[k], known[i].r[k]);
			come_back(&w);
		}
		if (fake_calls(FAKE_CRYPT) != known[i].kernel)
			fail_msg("%s: %u requests", known[i].what, fake_calls(FAKE_CRYPT));
		trace_compare(&traces[0], &traces[1], "%s, %s", known[i].what, algorithms[known[i].id].name);
	}
	fake_install();
}

static int setup(void **state)
{
	(void)state;
	lib_open(&lib, settings);
	RAND_set_rand_method(&fixed_random);
	for (size_t i = 0; i < ROWS; i++)
		seal(rows[i]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	RAND_set_rand_method(NULL);
	lib_close(&lib);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_walks)};
	const struct CMUnitTest walks[] = {cmocka_unit_test(test_walks)};
	int failed;

	settings = "policy = kernel\ncounters = off\n";
	failed = cmocka_run_group_tests_name("always the kernel", tests, setup, teardown);
	settings = "policy = speed\ncounters = off\n"
		   "thresholds = AES-128-GCM:64,AES-128-CCM:64,ChaCha20-Poly1305:64\n";
	return failed + cmocka_run_group_tests_name("from 64 bytes on", walks, setup, teardown);
}
