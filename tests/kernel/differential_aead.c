/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases of AEADs: messages in every shape that EVP allows, and TLS records. */
#include <openssl/err.h>
#include <stdbool.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differential.h"
#include "support.h"

#define ROOM (LENGTH_MAX + 64)
#define RECORD_MAX 16384u

/* One side of a case: a context, and data in place. */
struct side {
	EVP_CIPHER_CTX *ctx;
	uint8_t *data;
	int ok, outl;
	unsigned long error;
	bool refused; /* something of this context: then it may stay in software until it is keyed anew */
};

/* What a message is made of. */
struct message {
	enum algorithm_id id;
	const uint8_t *aad;
	size_t aadlen, length, taglen;
	uint8_t tag[16];
	int encrypt, ccm, late_tag, oneshot;
	int kernel; /* IV, tag and its time are such that the kernel can do the message */
};

/* Notes the error of a step, and empties the queue. */
static void note(struct side *s, int ok)
{
	const unsigned long e = ERR_get_error();

	s->ok = ok;
	s->refused = s->refused || ok <= 0;
	s->error = e == 0 ? 0 : ERR_PACK(ERR_GET_LIB(e), 0, ERR_GET_REASON(e));
	ERR_clear_error();
}

static void same(const struct side sides[2], const char *what)
{
	check(sides[0].ok == sides[1].ok, what);
	check(sides[0].error == sides[1].error, what);
	check(sides[0].ok <= 0 || sides[0].outl == sides[1].outl, what);
}

/* An update of both sides; `out` tells whether it has an output. By EVP_Cipher() if the case wants it. */
static void update(struct side sides[2], const struct message *m, int out, size_t at, const uint8_t *in, size_t n,
		   const char *what)
{
	for (int i = 0; i < 2; i++) {
		struct side *s = &sides[i];
		uint8_t *to = out ? s->data + at : NULL;
		const uint8_t *from = out ? s->data + at : in;

		s->outl = 0;
		if (m->oneshot && from != NULL)
			note(s, EVP_Cipher(s->ctx, to, from, (unsigned)n));
		else
			note(s, EVP_CipherUpdate(s->ctx, to, &s->outl, from, (int)n));
	}
	same(sides, what);
	check(!out || memcmp(sides[0].data, sides[1].data, m->length) == 0, "output of update");
}

static void finish(struct side sides[2], const struct message *m)
{
	uint8_t rest[64];

	for (int i = 0; i < 2; i++) {
		sides[i].outl = 0;
		if (m->oneshot)
			note(&sides[i], EVP_Cipher(sides[i].ctx, rest, NULL, 0));
		else
			note(&sides[i], EVP_CipherFinal_ex(sides[i].ctx, rest, &sides[i].outl));
	}
	same(sides, "final");
}

static void compare_tags(struct side sides[2], size_t taglen, const char *what)
{
	uint8_t tags[2][16] = {{0}, {0}};

	for (int i = 0; i < 2; i++) {
		sides[i].outl = 0;
		note(&sides[i], EVP_CIPHER_CTX_ctrl(sides[i].ctx, EVP_CTRL_AEAD_GET_TAG, (int)taglen, tags[i]));
	}
	same(sides, what);
	check(memcmp(tags[0], tags[1], 16) == 0, what);
}

static void compare_ivs(struct side sides[2])
{
	uint8_t ivs[2][2][128] = {{{0}}};

	for (int i = 0; i < 2; i++) {
		const size_t n = (size_t)EVP_CIPHER_CTX_get_iv_length(sides[i].ctx); /* CCM gives as much as one asks */

		sides[i].outl = EVP_CIPHER_CTX_get_updated_iv(sides[i].ctx, ivs[i][0], n);
		note(&sides[i], EVP_CIPHER_CTX_get_original_iv(sides[i].ctx, ivs[i][1], n));
	}
	same(sides, "IVs");
	check(memcmp(ivs[0][0], ivs[1][0], 128) == 0, "updated IV");
	check(memcmp(ivs[0][1], ivs[1][1], 128) == 0, "original IV");
}

static void set_tag(struct side sides[2], const struct message *m)
{
	for (int i = 0; i < 2; i++) {
		sides[i].outl = 0;
		note(&sides[i], EVP_CIPHER_CTX_ctrl(sides[i].ctx, EVP_CTRL_AEAD_SET_TAG, (int)m->taglen,
						    (void *)(uintptr_t)m->tag));
	}
	same(sides, "set tag");
}

/* Goes on with copies, now and then: the originals' tails must not matter. */
static void copy_sides(struct side sides[2])
{
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();

		check(EVP_CIPHER_CTX_copy(copy, sides[i].ctx), "copy");
		EVP_CIPHER_CTX_free(sides[i].ctx);
		sides[i].ctx = copy;
	}
}

/* A message from after the init of its IV to the tag, and a little beyond. */
static void run_message(struct side sides[2], const struct message *m)
{
	size_t at = 0, n;

	if (!m->encrypt && !m->late_tag)
		set_tag(sides, m);
	if (m->ccm && (m->aadlen > 0 || below(2) == 0))
		update(sides, m, 0, 0, NULL, below(30) == 0 ? m->length + 1 : m->length, "length");
	for (size_t done = 0; done < m->aadlen; done += n) {
		n = m->ccm || below(2) == 0 ? m->aadlen - done : 1 + below(m->aadlen - done);
		update(sides, m, 0, 0, m->aad + done, n, "AAD");
	}
	if (below(10) == 0)
		copy_sides(sides);
	while (at < m->length) {
		n = m->ccm || below(4) != 0 ? m->length - at : random_piece(m->length - at);
		update(sides, m, 1, at, NULL, n, "data");
		if (at == 0 && m->kernel && !sides[0].refused && n + m->aadlen + 16 <= 65536)
			given[m->id] += n;
		at += n;
		if (below(20) == 0)
			copy_sides(sides);
		if (below(40) == 0)
			compare_ivs(sides);
	}
	if (!m->encrypt && m->late_tag)
		set_tag(sides, m);
	if (below(30) == 0)
		compare_tags(sides, m->taglen, "tag before the final");
	if (below(30) != 0)
		finish(sides, m);
	if (below(10) == 0)
		copy_sides(sides);
	compare_tags(sides, m->taglen, "tag");
	if (below(10) == 0) {
		compare_ivs(sides);
		update(sides, m, (int)below(2), 0, m->aad, below(2) * 16, "update after the end");
		finish(sides, m);
		compare_tags(sides, m->taglen, "tag after all");
	}
}

/* Makes the ciphertext and the tag that a decryption is to find. */
static void encrypt_reference(const EVP_CIPHER *cipher, const uint8_t *key, const uint8_t *iv, size_t ivlen,
			      struct message *m, uint8_t *data)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n, ok = EVP_EncryptInit_ex(c, cipher, NULL, NULL, NULL) &&
		    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, (int)ivlen, NULL);

	if (m->ccm)
		ok = ok && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, (int)m->taglen, NULL);
	ok = ok && EVP_EncryptInit_ex(c, NULL, NULL, key, iv);
	if (m->ccm)
		ok = ok && EVP_EncryptUpdate(c, NULL, &n, NULL, (int)m->length);
	if (m->aadlen > 0)
		ok = ok && EVP_EncryptUpdate(c, NULL, &n, m->aad, (int)m->aadlen);
	check(ok && EVP_EncryptUpdate(c, data, &n, data, (int)m->length) && EVP_EncryptFinal_ex(c, data, &n) &&
		      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, (int)m->taglen, m->tag),
	      "reference encryption");
	EVP_CIPHER_CTX_free(c);
}

static size_t random_ivlen(enum cipher_mode mode)
{
	if (mode == MODE_CHACHA_POLY || below(4) != 0)
		return 12;
	return mode == MODE_CCM ? 7 + below(7) : 1 + below(below(2) ? 16 : 64);
}

static size_t random_taglen(enum cipher_mode mode, int encrypt)
{
	if (below(3) != 0)
		return 16;
	return mode == MODE_CCM ? 4 + 2 * below(7) : encrypt || mode == MODE_GCM ? 1 + below(16) : 16;
}

static void random_message(struct message *m, const uint8_t *aad, enum cipher_mode mode, size_t ivlen)
{
	m->ccm = mode == MODE_CCM;
	m->aad = aad;
	m->aadlen = below(3) == 0 ? 0 : below(2) == 0 ? below(32) : below(50) == 0 ? 70000 : below(600);
	m->length = random_length();
	if (below(3) != 0)
		m->length %= 64000;
	m->oneshot = below(5) == 0;
	m->late_tag = below(4) == 0 && !m->ccm;
	m->kernel = (mode != MODE_GCM || ivlen == 12) && (m->encrypt || (m->taglen >= 12 && !m->late_tag)) &&
		    m->aadlen <= 512;
}

static void random_init(struct side sides[2], const uint8_t *key, const uint8_t *iv, int encrypt)
{
	for (int i = 0; i < 2; i++)
		note(&sides[i], EVP_CipherInit_ex(sides[i].ctx, NULL, NULL, key, iv, encrypt));
	same(sides, "init");
}

static void messages_case(enum algorithm_id id, EVP_CIPHER *const ciphers[2], struct side sides[2], const uint8_t *key)
{
	const enum cipher_mode mode = algorithms[id].mode;
	const size_t ivlen = random_ivlen(mode);
	uint8_t iv[64], *aad = malloc(70000), *input = malloc(ROOM);
	struct message m = {.id = id, .encrypt = (int)below(2)};
	int first = 1;

	m.taglen = random_taglen(mode, m.encrypt);
	support_fill(&state, aad, 70000);
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX *c = sides[i].ctx;

		check(EVP_CipherInit_ex(c, ciphers[i], NULL, NULL, NULL, m.encrypt) &&
			      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, (int)ivlen, NULL),
		      "IV length");
		check(mode != MODE_CCM || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, (int)m.taglen, NULL),
		      "tag length");
	}
	for (size_t count = 1 + below(3); count > 0; count--) {
		random_message(&m, aad, mode, ivlen);
		if (m.ccm && ivlen == 13) /* two bytes are left for the length */
			m.length %= 65536;
		support_fill(&state, iv, sizeof(iv));
		support_fill(&state, input, m.length);
		if (!m.encrypt)
			encrypt_reference(ciphers[1], key, iv, ivlen, &m, input);
		if (below(8) == 0)
			(m.length > 0 && below(2) ? input : m.tag)[0] ^= 1;
		if (below(4) == 0)
			random_init(sides, key, NULL, m.encrypt);
		random_init(sides, first || below(2) ? key : NULL, iv, m.encrypt);
		first = 0;
		memcpy(sides[0].data, input, m.length);
		memcpy(sides[1].data, input, m.length);
		run_message(sides, &m);
	}
	free(aad);
	free(input);
}

/* A record as libssl has it done: the header, then an update in place. */
static void record(struct side *s, uint8_t aad[13], size_t told)
{
	int pad;

	aad[11] = (uint8_t)(told >> 8);
	aad[12] = (uint8_t)told;
	pad = EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_TLS1_AAD, 13, aad);
	s->outl = pad;
	if (pad > 0)
		told += EVP_CIPHER_CTX_is_encrypting(s->ctx) ? (size_t)pad : 0;
	note(s, pad <= 0 ? pad : EVP_CipherUpdate(s->ctx, s->data, &s->outl, s->data, (int)told));
}

static void records_init(EVP_CIPHER_CTX *c, const EVP_CIPHER *cipher, enum cipher_mode mode, const uint8_t *key,
			 uint8_t *iv, int taglen, int encrypt)
{
	int ok = EVP_CipherInit_ex(c, cipher, NULL, NULL, NULL, encrypt);

	if (mode == MODE_GCM)
		ok = ok && EVP_CipherInit_ex(c, NULL, NULL, key, NULL, encrypt) &&
		     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IV_FIXED, 4, iv);
	else if (mode == MODE_CCM)
		ok = ok && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL) &&
		     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, taglen, NULL) &&
		     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IV_FIXED, 4, iv) &&
		     EVP_CipherInit_ex(c, NULL, NULL, key, NULL, encrypt);
	else
		ok = ok && EVP_CipherInit_ex(c, NULL, NULL, key, iv, encrypt);
	check(ok, "init for records");
}

/*
 * Records that one side encrypts, either ours or the reference, and that both decrypt. GCM begins its explicit nonces
 * at random, so encryptions cannot be compared.
 */
static void records_case(enum algorithm_id id, EVP_CIPHER *const ciphers[2], struct side sides[2], const uint8_t *key)
{
	const enum cipher_mode mode = algorithms[id].mode;
	const size_t explicit_iv = mode == MODE_CHACHA_POLY ? 0 : 8;
	const int taglen = mode == MODE_CCM && below(2) ? 8 : 16, from = (int)below(2);
	struct side sender = {.ctx = EVP_CIPHER_CTX_new(), .data = calloc(1, ROOM)};
	uint8_t iv[12], aad[13], plain[RECORD_MAX];

	support_fill(&state, iv, sizeof(iv));
	support_fill(&state, aad, sizeof(aad));
	records_init(sender.ctx, ciphers[from], mode, key, iv, taglen, 1);
	for (int i = 0; i < 2; i++)
		records_init(sides[i].ctx, ciphers[i], mode, key, iv, taglen, 0);
	for (size_t count = 1 + below(6); count > 0; count--) {
		const size_t n = below(2) ? below(RECORD_MAX + 1) : below(64);
		const int spoilt = below(10) == 0;
		uint8_t sent[13];

		aad[7]++; /* the sequence number */
		memcpy(sent, aad, 13);
		support_fill(&state, plain, n);
		memcpy(sender.data + explicit_iv, plain, n);
		record(&sender, sent, n + explicit_iv);
		check(sender.ok && (size_t)sender.outl == n + explicit_iv + (size_t)taglen, "record sent");
		for (int i = 0; i < 2; i++) {
			memcpy(sides[i].data, sender.data, (size_t)sender.outl);
			if (spoilt)
				sides[i].data[sender.outl - 1] ^= 1;
			memcpy(sent, aad, 13);
			record(&sides[i], sent, (size_t)sender.outl);
		}
		same(sides, "record received");
		check(spoilt ? sides[0].ok <= 0 : sides[0].ok > 0 && (size_t)sides[0].outl == n, "record received");
		check(memcmp(sides[0].data, sides[1].data, explicit_iv + n) == 0, "plaintext of a record");
		check(spoilt || memcmp(sides[0].data + explicit_iv, plain, n) == 0, "plaintext of a record");
		given[id] += n; /* and more, if ours is the sender */
	}
	EVP_CIPHER_CTX_free(sender.ctx);
	free(sender.data);
}

void aead_case(enum algorithm_id id)
{
	EVP_CIPHER *ciphers[2] = {EVP_CIPHER_fetch(ours, algorithms[id].name, NULL),
				  EVP_CIPHER_fetch(reference, algorithms[id].name, NULL)};
	struct side sides[2];
	uint8_t key[32];

	check((ciphers[0] != NULL) == (ciphers[1] != NULL), "fetch");
	ERR_clear_error();
	if (ciphers[0] == NULL) /* not every OpenSSL has every row */
		return;
	for (int i = 0; i < 2; i++)
		sides[i] = (struct side){.ctx = EVP_CIPHER_CTX_new(), .data = calloc(1, ROOM)};
	support_fill(&state, key, sizeof(key));
	if (below(3) == 0)
		records_case(id, ciphers, sides, key);
	else
		messages_case(id, ciphers, sides, key);
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX_free(sides[i].ctx);
		free(sides[i].data);
		EVP_CIPHER_free(ciphers[i]);
	}
}
