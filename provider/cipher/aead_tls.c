/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AEAD records of TLS 1.2 and DTLS 1.2 (RFC 5288, 6655, 7905), as libssl has them done: the record's header as
 * EVP_CTRL_AEAD_TLS1_AAD, then one update in place over explicit nonce, payload and tag. The kernel does a record in
 * one request; then software does one without payload in its place, and is where it would be after the record itself:
 * its nonce is used up, and whatever comes next is as it always was.
 */
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/proverr.h>
#include <string.h>

#include "../counters.h"
#include "../provider.h"
#include "aead_ctx.h"

static const struct aead_mode *mode(const struct aead_ctx *c)
{
	return &aead_modes[algorithms[c->id].mode];
}

static size_t record_taglen(const struct aead_ctx *c)
{
	return algorithms[c->id].mode == MODE_CCM ? c->taglen : AEAD_TAG;
}

/* The length that the header tells: explicit nonce, payload and, in decryption, tag. */
static size_t told_length(const uint8_t *aad)
{
	return (size_t)aad[AEAD_TLS_AAD - 2] << 8 | aad[AEAD_TLS_AAD - 1];
}

bool aead_tls_aad(struct aead_ctx *c, const uint8_t *aad, size_t aadlen)
{
	const size_t around = mode(c)->explicit_iv + (c->encrypt ? 0 : record_taglen(c));
	const bool another = c->record;

	if (c->message > AEAD_FRESH) /* software has yet to hear of something before */
		return false;
	if (algorithms[c->id].mode == MODE_CCM && (c->keyed_ivlen != AEAD_IV || c->ivlen != AEAD_IV))
		return false;
	if (aadlen != AEAD_TLS_AAD || told_length(aad) <= around || c->fixedlen != mode(c)->fixed_iv)
		return false;
	if (c->record_software &&
	    algorithms[c->id].mode != MODE_CCM) /* it would take the next update for that record */
		return false;
	c->record = true; /* which says how long the tag is */
	if (!aead_kernel_able(c, told_length(aad) - around, AEAD_TLS_AAD)) {
		c->record = another;
		return false;
	}
	memcpy(c->record_aad, aad, aadlen);
	c->record_pad = true;
	aead_set_fast_path(c);
	return true;
}

void aead_tls_software(struct aead_ctx *c, const uint8_t *aad, size_t aadlen)
{
	c->record = c->record_pad = false;
	c->record_software = true;
	c->record_length = 0;
	if (aad != NULL && aadlen == AEAD_TLS_AAD)
		c->record_length = told_length(aad) + (c->encrypt ? record_taglen(c) : 0);
	c->expectedlen = 0; /* its place is taken */
	if (algorithms[c->id].mode != MODE_CCM) {
		c->message = AEAD_SOFTWARE;
		c->noncelen = 0;
	}
}

/*
 * Makes the nonce, and in encryption the explicit part in the record. That of GCM is software's IV, which counts it,
 * from a random start (getivgen in ciphercommon_gcm.c).
 */
static bool make_nonce(const struct aead_ctx *c, uint8_t nonce[AEAD_IV], uint8_t *record)
{
	const size_t explicit_iv = mode(c)->explicit_iv, fixed_iv = mode(c)->fixed_iv;

	if (explicit_iv == 0) {
		memcpy(nonce, c->fixed, AEAD_IV);
		for (size_t i = 0; i < 8; i++)
			nonce[4 + i] ^= c->record_aad[i]; /* the sequence number */
		return true;
	}
	if (!aead_fetch_iv(c, nonce))
		return false;
	if (!c->encrypt)
		memcpy(nonce + fixed_iv, record, explicit_iv);
	else if (algorithms[c->id].mode == MODE_CCM)
		memcpy(nonce + fixed_iv, c->record_aad, explicit_iv);
	if (c->encrypt)
		memcpy(record, nonce + fixed_iv, explicit_iv);
	return true;
}

/*
 * Software does a record without payload in the place of one that the kernel has done. In decryption it fails by the
 * tag, which leaves the same behind. False: it has another idea of the nonce.
 */
static bool empty_record(struct aead_ctx *c, const uint8_t *record)
{
	const size_t explicit_iv = mode(c)->explicit_iv, taglen = record_taglen(c);
	uint8_t empty[8 + AEAD_TAG] = {0};
	size_t outl;
	bool ok;

	memcpy(empty, record, c->encrypt ? 0 : explicit_iv);
	if (explicit_iv == 0) { /* ChaCha20-Poly1305 goes by the header for the length */
		c->record_aad[AEAD_TLS_AAD - 2] = 0;
		c->record_aad[AEAD_TLS_AAD - 1] = (uint8_t)(c->encrypt ? 0 : taglen);
	}
	ERR_set_mark();
	ok = aead_catch_up(c);
	if (ok)
		ok = c->software->update(c->soft, empty, &outl, sizeof(empty), empty, explicit_iv + taglen) ||
		     !c->encrypt;
	ERR_pop_to_mark();
	ok = ok && memcmp(empty, record, explicit_iv) == 0;
	OPENSSL_cleanse(empty, sizeof(empty));
	return ok;
}

/* The kernel has done the record, whose tag this is: what that leaves behind. */
static bool record_done(struct aead_ctx *c, const uint8_t *record, const uint8_t *tag)
{
	const enum cipher_mode m = algorithms[c->id].mode;
	const bool ok = empty_record(c, record);

	c->record_software = !ok || m == MODE_CCM; /* which does nothing but records from now on */
	if (m == MODE_CCM || (m == MODE_CHACHA_POLY && c->encrypt)) {
		memcpy(c->tag, tag, record_taglen(c));
		c->tag_ours = true;
	}
	return ok;
}

/* Has the kernel do the record. *done tells whether it has; if not, software is to do it, and it is as it was. */
static int kernel_record(struct aead_ctx *c, unsigned char *record, size_t *outl, size_t len, bool *done)
{
	const size_t explicit_iv = mode(c)->explicit_iv, taglen = record_taglen(c);
	const size_t payload = len - explicit_iv - taglen;
	/* EVP_Cipher() tells how long the input was, but for ChaCha20-Poly1305. */
	const bool tells_input = c->forward == c->software->cipher && explicit_iv > 0;
	uint8_t nonce[AEAD_IV], aad[AEAD_TLS_AAD];
	uint8_t *data = record + explicit_iv;
	const struct aead_request m = {.nonce = nonce,
				       .noncelen = sizeof(nonce),
				       .aad = aad,
				       .aadlen = sizeof(aad),
				       .in = data,
				       .out = data,
				       .len = payload,
				       .tag = c->encrypt ? c->computed : data + payload};

	memcpy(aad, c->record_aad, sizeof(aad));
	aad[AEAD_TLS_AAD - 2] = (uint8_t)(payload >> 8);
	aad[AEAD_TLS_AAD - 1] = (uint8_t)payload;
	*done = make_nonce(c, nonce, record) && aead_kernel(c, &m) == 0;
	if (!*done)
		return 0;
	if (c->encrypt)
		memcpy(data + payload, c->computed, taglen);
	if (!record_done(c, record, m.tag)) {
		OPENSSL_cleanse(record, len);
		c->fixedlen = 0;
		ERR_raise(ERR_LIB_PROV, PROV_R_CIPHER_OPERATION_FAILED);
		return 0;
	}
	*outl = c->encrypt || tells_input ? len : payload;
	return 1;
}

/*
 * The next update, in software. It is a record no more if this certainly was one; else nobody knows, and software is on
 * its own until there is another header or what resets it.
 */
static int software_record(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			   const unsigned char *in, size_t inl)
{
	const enum cipher_mode m = algorithms[c->id].mode;
	const bool certain = in != NULL && out == in && outsize >= inl && inl > 0 && inl == c->record_length;
	int ok;

	counters_software(c->id, 1, inl);
	if (m != MODE_CCM) {
		c->record_software = !certain;
		c->record_length = 0;
		c->message = AEAD_SOFTWARE;
		c->noncelen = 0;
	}
	aead_set_fast_path(c);
	ok = c->forward(c->soft, out, outl, outsize, in, inl);
	if (ok && (m == MODE_CCM ? in != NULL : c->encrypt && (certain || (in == NULL && inl > 0))))
		c->tag_ours = false;
	return ok;
}

int aead_tls_record(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in,
		    size_t inl)
{
	const size_t explicit_iv = mode(c)->explicit_iv;
	const size_t told = told_length(c->record_aad) + (c->encrypt ? record_taglen(c) : 0);
	bool done = false;
	int ok;

	if (c->record && out != NULL && out == in && outsize >= inl && inl == told &&
	    aead_kernel_able(c, inl - explicit_iv - record_taglen(c), AEAD_TLS_AAD)) {
		ok = kernel_record(c, out, outl, inl, &done);
		aead_set_fast_path(c);
		if (done)
			return ok;
	}
	if (!aead_catch_up(c) || !software_record(c, out, outl, outsize, in, inl))
		return 0;
	route_done(&c->provider->route, &c->use);
	return 1;
}
