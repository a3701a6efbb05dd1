/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AEAD records of TLS 1.2 and DTLS 1.2 (RFC 5288, 6655, 7905), as libssl has them done: the record's header as
 * EVP_CTRL_AEAD_TLS1_AAD, then one update in place over explicit nonce, payload and tag. The kernel does a record in
 * one request.
 */
#include <openssl/core_names.h>
#include <openssl/params.h>
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

	if (algorithms[c->id].mode == MODE_CCM && c->keyed_ivlen != c->fixedlen + mode(c)->explicit_iv)
		return false;
	if (aadlen != AEAD_TLS_AAD || told_length(aad) <= around || c->fixedlen != mode(c)->fixed_iv)
		return false;
	if (c->record_software &&
	    algorithms[c->id].mode != MODE_CCM) /* it would take the next update for that record */
		return false;
	c->record = true; /* which says how long the tag is */
	c->record = aead_kernel_able(c, told_length(aad) - around, AEAD_TLS_AAD);
	if (!c->record)
		return false;
	memcpy(c->record_aad, aad, aadlen);
	c->record_pad = true;
	aead_set_fast_path(c);
	return true;
}

/*
 * Makes the nonce, and in encryption the explicit part in the record. Software counts that of GCM, from a random start;
 * it is asked for one, as a record of its own would do (getivgen in ciphercommon_gcm.c).
 */
static int make_nonce(const struct aead_ctx *c, uint8_t nonce[AEAD_TLS_FIXED_MAX], uint8_t *record)
{
	const size_t explicit_iv = mode(c)->explicit_iv, fixed_iv = mode(c)->fixed_iv;
	OSSL_PARAM counted[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN, record, explicit_iv),
				OSSL_PARAM_END};

	memcpy(nonce, c->fixed, fixed_iv);
	if (explicit_iv == 0) {
		for (size_t i = 0; i < 8; i++)
			nonce[4 + i] ^= c->record_aad[i]; /* the sequence number */
		return 1;
	}
	if (c->encrypt && algorithms[c->id].mode == MODE_CCM)
		memcpy(record, c->record_aad, explicit_iv);
	else if (c->encrypt && !c->software->get_ctx_params(c->soft, counted))
		return 0;
	memcpy(nonce + fixed_iv, record, explicit_iv);
	return 1;
}

/* The kernel has done the record: what that leaves behind. */
static void record_done(struct aead_ctx *c, uint8_t *record)
{
	const enum cipher_mode m = algorithms[c->id].mode;
	const OSSL_PARAM received[] = {
		OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV, record, mode(c)->explicit_iv),
		OSSL_PARAM_END};

	if (m == MODE_CCM) /* an update without another header would be a record with the same one */
		return;
	c->record = false;
	if (m == MODE_GCM) {
		if (!c->encrypt)
			c->software->set_ctx_params(c->soft, received);
		c->message = AEAD_SPENT;
		return;
	}
	c->message = AEAD_SOFTWARE; /* what follows without a new IV has a nonce that software does not know of */
	c->noncelen = 0;
	if (c->encrypt) {
		memcpy(c->tag, c->computed, AEAD_TAG);
		c->tag_ours = true;
	}
}

/* Has the kernel do the record. 0: software is to do it, and it is as it was. */
static int kernel_record(struct aead_ctx *c, unsigned char *record, size_t *outl, size_t len)
{
	const size_t explicit_iv = mode(c)->explicit_iv, taglen = record_taglen(c);
	const size_t payload = len - explicit_iv - taglen;
	uint8_t nonce[AEAD_TLS_FIXED_MAX], aad[AEAD_TLS_AAD];
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
	if (!make_nonce(c, nonce, record) || aead_kernel(c, &m) != 0)
		return 0;
	if (c->encrypt)
		memcpy(data + payload, c->computed, taglen);
	record_done(c, record);
	*outl = c->encrypt ? len : payload;
	return 1;
}

int aead_tls_record(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in,
		    size_t inl)
{
	const size_t explicit_iv = mode(c)->explicit_iv;
	const size_t told = told_length(c->record_aad) + (c->encrypt ? record_taglen(c) : 0);

	if (c->record && out != NULL && out == in && outsize >= inl && inl == told &&
	    aead_kernel_able(c, inl - explicit_iv - record_taglen(c), AEAD_TLS_AAD) &&
	    kernel_record(c, out, outl, inl)) {
		aead_set_fast_path(c);
		return 1;
	}
	if (!aead_catch_up(c))
		return 0;
	counters_software(c->id, 1, inl);
	c->tag_ours = c->tag_ours && !mode(c)->restarts;
	if (algorithms[c->id].mode != MODE_CCM) {
		c->record_software = false;
		c->message = AEAD_SOFTWARE;
		c->noncelen = 0;
	}
	aead_set_fast_path(c);
	if (!c->forward(c->soft, out, outl, outsize, in, inl))
		return 0;
	route_done(&c->provider->route, &c->use);
	return 1;
}
