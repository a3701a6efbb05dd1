/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AEADs. The kernel takes a message in one request: AAD, data and tag. OpenSSL's messages are streams, so the first
 * update goes to the kernel as if it were the only one; should another follow, software does the first one again and
 * goes on. Software has all inits, parameters and AAD from the start, so that it can take over at any moment.
 */
#include "aead.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>
#include <stdlib.h>
#include <string.h>

#include "../counters.h"
#include "../provider.h"
#include "aead_ctx.h"

static const struct aead_mode *mode(const struct aead_ctx *c)
{
	return &aead_modes[algorithms[c->id].mode];
}

void *aead_newctx(struct provider *p, enum algorithm_id id)
{
	struct aead_ctx *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->fast_below = ROUTE_NEVER;
	c->id = id;
	c->provider = p;
	c->software = &software_ciphers[id];
	c->forward = c->software->update;
	c->taglen = 12; /* ossl_ccm_initctx */
	c->ivlen = 7;
	c->soft = c->software->newctx(p->soft_provctx);
	if (c->soft == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

static OSSL_FUNC_cipher_freectx_fn freectx;
static void freectx(void *ctx)
{
	struct aead_ctx *c = ctx;

	if (c == NULL)
		return;
	afalg_session_drop(&c->session);
	aead_forget_kept(c);
	c->software->freectx(c->soft);
	OPENSSL_cleanse(c, sizeof(*c));
	free(c);
}

static OSSL_FUNC_cipher_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	const struct aead_ctx *from = ctx; /* others may be copying it too */
	struct aead_ctx *to = malloc(sizeof(*to));

	if (to == NULL)
		return NULL;
	*to = *from;
	to->session = (struct afalg_session){.slot = NULL}; /* opens its own if it needs one */
	to->soft = from->software->dupctx(from->soft);
	if (from->kept != NULL) {
		to->kept = malloc(from->keptlen);
		if (to->kept != NULL)
			memcpy(to->kept, from->kept, from->keptlen);
	}
	if (to->soft == NULL || (from->kept != NULL && to->kept == NULL)) {
		freectx(to);
		return NULL;
	}
	return to;
}

/*** Keys, nonces, parameters ***/

static void note_key(struct aead_ctx *c, const unsigned char *key, size_t keylen)
{
	c->keyed_taglen = c->taglen;
	c->keyed_ivlen = c->ivlen;
	if (keylen == c->keylen && CRYPTO_memcmp(key, c->key, keylen) == 0)
		return;
	afalg_session_drop(&c->session);
	route_new_key(&c->use);
	if (keylen > sizeof(c->key))
		keylen = 0;
	memcpy(c->key, key, keylen);
	c->keylen = keylen;
}

/* A new nonce begins a new message; null: one that only software knows. */
static void note_nonce(struct aead_ctx *c, const unsigned char *nonce, size_t noncelen)
{
	c->noncelen = noncelen <= sizeof(c->nonce) ? noncelen : 0;
	if (nonce != NULL && c->noncelen > 0)
		memcpy(c->nonce, nonce, c->noncelen);
	c->message = AEAD_FRESH;
	c->generated = false;
	c->aadlen = 0;
}

static void note_tag(struct aead_ctx *c, const OSSL_PARAM *p)
{
	if (algorithms[c->id].mode == MODE_CCM)
		c->taglen = p->data_size;
	if (p->data == NULL || c->encrypt || p->data_size > sizeof(c->expected))
		return;
	memcpy(c->expected, p->data, p->data_size);
	c->expectedlen = p->data_size;
	if (algorithms[c->id].mode == MODE_CHACHA_POLY) /* it has one place for both */
		memcpy(c->tag, p->data, p->data_size);
}

/* The part of a record's nonce that comes from the key block. GCM starts a generated nonce with it. */
static void note_fixed(struct aead_ctx *c, const OSSL_PARAM *p)
{
	c->fixedlen = p->data != NULL && p->data_size == mode(c)->fixed_iv ? p->data_size : 0;
	if (c->fixedlen > 0)
		memcpy(c->fixed, p->data, c->fixedlen);
	if (algorithms[c->id].mode == MODE_GCM) {
		note_nonce(c, NULL, 0);
		return;
	}
	c->message = AEAD_SOFTWARE;
	c->noncelen = 0;
}

/* Keeps track of the parameters that decide what the kernel may do. Software has taken them. */
static void note_params(struct aead_ctx *c, const OSSL_PARAM params[])
{
	const OSSL_PARAM *p;
	size_t ivlen;

	if (params == NULL || params[0].key == NULL)
		return;
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TAG);
	if (p != NULL)
		note_tag(c, p);
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_IVLEN);
	if (p != NULL && OSSL_PARAM_get_size_t(p, &ivlen)) {
		c->ivlen = ivlen;
		if (ivlen != c->noncelen) {
			c->message = AEAD_SOFTWARE;
			c->noncelen = 0;
		}
	}
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED);
	if (p != NULL)
		note_fixed(c, p);
	if (OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TLS1_SET_IV_INV) != NULL)
		note_nonce(c, NULL, 0);
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD);
	if (p != NULL)
		aead_tls_software(c, p->data, p->data_size);
}

/*
 * After a failure of the software lane the kernel is out until the next key. What else was set before, with it or half
 * way, is not certain either until it is set again.
 */
static int software_failed(struct aead_ctx *c, const OSSL_PARAM params[])
{
	c->keylen = c->noncelen = c->fixedlen = c->expectedlen = 0;
	c->taglen = c->ivlen = 0;
	c->keyed = true;
	c->message = AEAD_SOFTWARE;
	if (params != NULL && OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD) != NULL)
		aead_tls_software(c, NULL, 0);
	aead_set_fast_path(c);
	return 0;
}

/* ChaCha20-Poly1305: in decryption software would look for the tag that it has, which may be of its makeshift message.
 */
static int correct_tag(struct aead_ctx *c)
{
	size_t taglen = 0; /* to be looked for */
	OSSL_PARAM get[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, &taglen), OSSL_PARAM_END};
	const OSSL_PARAM whole[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, c->tag, AEAD_TAG),
				    OSSL_PARAM_END};
	OSSL_PARAM length[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, NULL, 0), OSSL_PARAM_END};

	if (c->encrypt || !c->tag_ours || !mode(c)->restarts)
		return 1;
	if (!c->software->get_ctx_params(c->soft, get))
		return 0;
	length[0].data_size = taglen;
	c->tag_ours = taglen == 0;
	return taglen == 0 ||
	       (c->software->set_ctx_params(c->soft, whole) && c->software->set_ctx_params(c->soft, length));
}

static int init(struct aead_ctx *c, bool encrypt, const unsigned char *key, size_t keylen, const unsigned char *iv,
		size_t ivlen, const OSSL_PARAM params[])
{
	OSSL_FUNC_cipher_encrypt_init_fn *software = encrypt ? c->software->encrypt_init : c->software->decrypt_init;

	if ((c->message > AEAD_FRESH || c->record) && !aead_catch_up(c))
		return 0;
	if (!software(c->soft, key, keylen, iv, ivlen, params))
		return software_failed(c, params);
	/* A message goes on over an init without IV, in ways that the kernel's cannot. */
	if (iv == NULL && c->message == AEAD_FRESH && (c->aadlen > 0 || encrypt != c->encrypt))
		c->message = AEAD_SOFTWARE;
	/* With another key GCM forgets the IV, if it has begun to use it. */
	if (iv == NULL && key != NULL && c->keyed && algorithms[c->id].mode == MODE_GCM)
		c->message = AEAD_SOFTWARE;
	c->keyed = c->keyed || key != NULL;
	/* Turning round without a key leaves CCM with the other direction's code (ccm->str), whose tags are others. */
	if (mode(c)->one_update && key == NULL && encrypt != c->encrypt)
		c->keylen = 0;
	c->encrypt = encrypt;
	if (encrypt)
		c->expectedlen = 0;
	c->record_length = 0;
	if (algorithms[c->id].mode == MODE_CHACHA_POLY && (key != NULL || iv != NULL))
		c->record_software = false; /* others keep the header that they were told */
	if (iv != NULL) {
		note_nonce(c, iv, ivlen);
		if (algorithms[c->id].mode == MODE_CHACHA_POLY && ivlen == mode(c)->fixed_iv) {
			memcpy(c->fixed, iv, ivlen); /* the base of the nonces of TLS records, too */
			c->fixedlen = ivlen;
		}
	}
	if (key != NULL) /* before the parameters, as software does */
		note_key(c, key, keylen);
	note_params(c, params);
	aead_set_fast_path(c);
	return correct_tag(c);
}

static OSSL_FUNC_cipher_encrypt_init_fn encrypt_init;
static int encrypt_init(void *ctx, const unsigned char *key, size_t keylen, const unsigned char *iv, size_t ivlen,
			const OSSL_PARAM params[])
{
	return init(ctx, true, key, keylen, iv, ivlen, params);
}

static OSSL_FUNC_cipher_decrypt_init_fn decrypt_init;
static int decrypt_init(void *ctx, const unsigned char *key, size_t keylen, const unsigned char *iv, size_t ivlen,
			const OSSL_PARAM params[])
{
	return init(ctx, false, key, keylen, iv, ivlen, params);
}

/* Programs switch padding off for every cipher, at any moment; here it means nothing. */
static bool only_padding(const OSSL_PARAM params[])
{
	return params != NULL && params[0].key != NULL && params[1].key == NULL &&
	       strcmp(params[0].key, OSSL_CIPHER_PARAM_PADDING) == 0;
}

static OSSL_FUNC_cipher_set_ctx_params_fn set_ctx_params;
static int set_ctx_params(void *ctx, const OSSL_PARAM params[])
{
	struct aead_ctx *c = ctx;

	if (params != NULL && params[0].key != NULL && params[1].key == NULL &&
	    strcmp(params[0].key, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD) == 0 &&
	    params[0].data_type == OSSL_PARAM_OCTET_STRING && params[0].data != NULL &&
	    aead_tls_aad(c, params[0].data, params[0].data_size))
		return 1;
	if ((c->message > AEAD_FRESH || c->record) && !only_padding(params) && !aead_catch_up(c))
		return 0;
	if (!c->software->set_ctx_params(c->soft, params))
		return software_failed(c, params);
	note_params(c, params);
	aead_set_fast_path(c);
	return correct_tag(c);
}

/* Software has checked the request, and has given the tag of what it knows; CCM forgets tag, IV and length with that.
 */
static int give_tag(struct aead_ctx *c, OSSL_PARAM *p)
{
	const int ok = !c->tag_ours || OSSL_PARAM_set_octet_string(p, c->tag, p->data_size);

	c->length_told = false;
	if (mode(c)->one_update) {
		c->tag_ours = false;
		c->message = AEAD_SOFTWARE;
		aead_set_fast_path(c);
	}
	return ok;
}

static OSSL_FUNC_cipher_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	struct aead_ctx *c = ctx;
	const bool counts = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TLS1_GET_IV_GEN) != NULL &&
			    algorithms[c->id].mode == MODE_GCM;
	OSSL_PARAM *p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TAG);

	if (((counts && c->message > AEAD_FRESH) || (p != NULL && (c->message == AEAD_HELD || c->record))) &&
	    !aead_catch_up(c))
		return 0;
	if (!c->software->get_ctx_params(c->soft, params))
		return 0;
	if (counts) {
		note_nonce(c, NULL, 0);
		c->generated = true;
		aead_set_fast_path(c);
	}
	p = c->record_pad ? OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TLS1_AAD_PAD) : NULL;
	if (p != NULL && !OSSL_PARAM_set_size_t(p, algorithms[c->id].mode == MODE_CCM ? c->taglen : AEAD_TAG))
		return 0;
	p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TAG);
	return p == NULL || give_tag(c, p);
}

/*** Messages ***/

/* The nonce of a message that GCM has generated. */
static bool fetch_nonce(struct aead_ctx *c)
{
	if (!aead_fetch_iv(c, c->nonce))
		return false;
	c->noncelen = AEAD_IV;
	for (size_t i = c->noncelen; c->generated && i > c->noncelen - 8;)
		if (c->nonce[--i]-- != 0)
			break;
	c->generated = false;
	return true;
}

static bool nonce_fits(struct aead_ctx *c)
{
	if (algorithms[c->id].mode == MODE_CCM)
		return c->noncelen >= 7 && c->noncelen <= 13 && c->noncelen == c->keyed_ivlen;
	if (c->noncelen == 0 && algorithms[c->id].mode == MODE_GCM && !fetch_nonce(c))
		return false;
	return c->noncelen == algorithms[c->id].ivlen;
}

/* Whether the kernel could do the message, if this update is all its data. */
static bool message_able(struct aead_ctx *c, size_t bytes)
{
	if (c->message == AEAD_HELD && bytes != c->declared)
		return false;
	return (c->message == AEAD_FRESH || c->message == AEAD_HELD) &&
	       (c->encrypt || c->expectedlen == aead_kernel_taglen(c)) && aead_kernel_able(c, bytes, c->aadlen) &&
	       nonce_fits(c);
}

/*
 * Software has done an update or, without input, ended a message: whether it has a tag of its own now. CCM keeps what
 * it had until there is AAD or data.
 */
static void note_made_tag(struct aead_ctx *c, const unsigned char *out, const unsigned char *in, size_t inl)
{
	if (mode(c)->one_update ? in != NULL && (out != NULL || inl > 0) : in == NULL && c->encrypt)
		c->tag_ours = false;
}

/* CCM's state may be spoilt up to the next key (CRYPTO_ccm128_decrypt, of a length not as told). */
static int software_refused(struct aead_ctx *c)
{
	c->keyed_taglen = 0;
	return 0;
}

/* An update that only software sees. */
static int software_update(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			   const unsigned char *in, size_t inl)
{
	if (!aead_catch_up(c))
		return 0;
	/* Without input it ends the message. */
	if (c->message == AEAD_FRESH && (out != NULL || in == NULL) && (inl > 0 || mode(c)->one_update))
		c->message = AEAD_SOFTWARE;
	if (out != NULL) {
		c->expectedlen = 0;
		counters_software(c->id, 1, inl);
	}
	aead_set_fast_path(c);
	if (!c->forward(c->soft, out, outl, outsize, in, inl)) {
		c->length_told = mode(c)->one_update;
		return software_refused(c);
	}
	if (out != NULL)
		route_done(&c->provider->route, &c->use);
	if (inl > 0 || mode(c)->one_update)
		note_made_tag(c, out, in, inl);
	if (mode(c)->one_update) /* a decryption is over with its data, an encryption with its tag */
		c->length_told = out == NULL || c->encrypt;
	return 1;
}

/*
 * CCM: software forgets tag, IV and length, as it does at the end of a decryption. Of all that it does without data,
 * only handing out the tag of an encryption has that effect (ossl_ccm_get_ctx_params).
 */
static void forget_message(struct aead_ctx *c)
{
	uint8_t tag[AEAD_TAG];
	OSSL_PARAM params[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, c->taglen), OSSL_PARAM_END};

	ERR_set_mark();
	c->software->encrypt_init(c->soft, NULL, 0, NULL, 0, NULL);
	c->software->get_ctx_params(c->soft, params);
	c->software->decrypt_init(c->soft, NULL, 0, NULL, 0, NULL);
	ERR_pop_to_mark();
}

/*
 * CCM's message is complete. In encryption, software is given an empty one in its place, after which it answers for
 * the tag and all else as it would after this one, but for the tag itself.
 */
static int settle_ccm(struct aead_ctx *c)
{
	uint8_t nothing = 0;
	size_t outl;

	c->message = AEAD_SOFTWARE;
	c->expectedlen = 0;
	if (!c->encrypt) {
		forget_message(c);
		c->length_told = false;
		return 1;
	}
	c->length_told = true;
	memcpy(c->tag, c->computed, sizeof(c->tag));
	c->tag_ours = true;
	return c->software->update(c->soft, NULL, &outl, 0, NULL, 0) &&
	       c->software->update(c->soft, &nothing, &outl, 0, &nothing, 0);
}

/* Has the kernel do the message. The input is kept: software may have to do the update, now or later. */
static int kernel_update(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize, size_t inl)
{
	const struct aead_request m = {.nonce = c->nonce,
				       .noncelen = c->noncelen,
				       .aad = c->aad,
				       .aadlen = c->aadlen,
				       .in = c->kept,
				       .out = out,
				       .len = inl,
				       .tag = c->encrypt ? c->computed : c->expected};
	int ok;

	if (aead_kernel(c, &m) != 0) {
		ok = software_update(c, out, outl, outsize, c->kept, inl);
		aead_forget_kept(c);
		return ok;
	}
	*outl = inl;
	ok = 1;
	c->message = AEAD_DATA;
	if (mode(c)->one_update) {
		aead_forget_kept(c);
		ok = settle_ccm(c);
	}
	aead_set_fast_path(c);
	return ok;
}

/* CCM tells the length of the data ahead: enough to choose the lane. */
static int declare_length(struct aead_ctx *c, size_t *outl, size_t outsize, size_t inl)
{
	if (c->message == AEAD_FRESH && c->aadlen == 0 && outsize >= inl && message_able(c, inl)) {
		c->declared = inl;
		c->message = AEAD_HELD;
		aead_set_fast_path(c);
		*outl = inl;
		return 1;
	}
	c->message = c->message == AEAD_FRESH ? AEAD_SOFTWARE : c->message;
	return software_update(c, NULL, outl, outsize, NULL, inl);
}

static int associated_data(struct aead_ctx *c, size_t *outl, size_t outsize, const unsigned char *in, size_t inl)
{
	const bool fits = c->message != AEAD_SOFTWARE && inl <= sizeof(c->aad) - c->aadlen && outsize >= inl;

	if (mode(c)->one_update && (c->message != AEAD_HELD || c->aadlen > 0 || !fits)) {
		c->message = c->message == AEAD_FRESH ? AEAD_SOFTWARE : c->message;
		return software_update(c, NULL, outl, outsize, in, inl);
	}
	if (fits && inl > 0) {
		memcpy(c->aad + c->aadlen, in, inl);
		c->aadlen += inl;
	}
	if (mode(c)->one_update) {
		*outl = inl;
		return 1;
	}
	if (!fits && c->message == AEAD_FRESH)
		c->message = AEAD_SOFTWARE;
	return software_update(c, NULL, outl, outsize, in, inl);
}

/* Updates that the fast path does not take. */
static int update_slow(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in,
		       size_t inl)
{
	if (c->record || c->record_software)
		return aead_tls_record(c, out, outl, outsize, in, inl);
	if (out == NULL && in == NULL && mode(c)->one_update)
		return declare_length(c, outl, outsize, inl);
	if (out == NULL && in != NULL)
		return associated_data(c, outl, outsize, in, inl);
	if (in != NULL && out != NULL && outsize >= inl && (c->message == AEAD_HELD || !c->length_told) &&
	    message_able(c, inl)) {
		c->kept = malloc(inl);
		if (c->kept != NULL) {
			c->keptlen = inl;
			memcpy(c->kept, in, inl);
			return kernel_update(c, out, outl, outsize, inl);
		}
	}
	return software_update(c, out, outl, outsize, in, inl);
}

static OSSL_FUNC_cipher_update_fn update;
static int update(void *ctx, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in, size_t inl)
{
	struct aead_ctx *c = ctx;

	if (out != NULL && in != NULL && inl > 0 && inl < c->fast_below) {
		c->message = AEAD_SOFTWARE;
		c->fast_below = ROUTE_NEVER;
		c->expectedlen = 0;
		c->length_told = mode(c)->one_update;
		counters_software(c->id, 1, inl);
		if (!c->forward(c->soft, out, outl, outsize, in, inl))
			return software_refused(c);
		note_made_tag(c, out, in, inl);
		return 1;
	}
	return update_slow(c, out, outl, outsize, in, inl);
}

/*
 * GCM ends the message that it knows, which has no data, and its IV is used up. It does so as if it encrypted, since
 * then no tag is wrong, and is given the right one, as if it decrypted.
 */
static bool end_gcm(struct aead_ctx *c)
{
	OSSL_FUNC_cipher_encrypt_init_fn *back = c->encrypt ? c->software->encrypt_init : c->software->decrypt_init;
	uint8_t *tag = c->encrypt ? c->computed : c->expected;
	const OSSL_PARAM whole[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, AEAD_TAG), OSSL_PARAM_END};
	const OSSL_PARAM part[] = {
		OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, c->encrypt ? AEAD_TAG : c->expectedlen),
		OSSL_PARAM_END};
	uint8_t nothing;
	size_t outl;
	bool ok;

	ok = c->software->encrypt_init(c->soft, NULL, 0, NULL, 0, NULL) &&
	     c->software->final(c->soft, &nothing, &outl, 0) &&
	     c->software->decrypt_init(c->soft, NULL, 0, NULL, 0, NULL) &&
	     c->software->set_ctx_params(c->soft, whole) && c->software->set_ctx_params(c->soft, part);
	return back(c->soft, NULL, 0, NULL, 0, NULL) && ok;
}

/* ChaCha20-Poly1305, too; the tag that is not to be seen stays where it is. In decryption its end fails by the tag. */
static bool end_chacha_poly(struct aead_ctx *c)
{
	uint8_t nothing;
	size_t outl;

	if (c->encrypt) {
		memcpy(c->tag, c->computed, sizeof(c->tag));
		c->tag_ours = true;
	}
	return c->software->final(c->soft, &nothing, &outl, 0) || !c->encrypt;
}

/* The end of a message that the kernel has done. */
static int kernel_final(struct aead_ctx *c, size_t *outl)
{
	uint8_t nothing;
	bool ok;

	ERR_set_mark();
	ok = mode(c)->restarts ? end_chacha_poly(c) : end_gcm(c);
	ERR_pop_to_mark();
	*outl = 0;
	if (!ok) /* then it does the message from the beginning, or nothing any more */
		return aead_catch_up(c) && c->software->final(c->soft, &nothing, outl, 0);
	aead_forget_kept(c);
	c->message = mode(c)->restarts ? AEAD_FRESH : AEAD_SOFTWARE;
	c->aadlen = 0;
	c->expectedlen = 0;
	aead_set_fast_path(c);
	return 1;
}

static OSSL_FUNC_cipher_final_fn final;
static int final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	struct aead_ctx *c = ctx;
	int ok;

	if (c->message == AEAD_DATA)
		return kernel_final(c, outl);
	if ((c->message == AEAD_HELD || c->record) && !aead_catch_up(c))
		return 0;
	c->length_told = mode(c)->one_update;
	c->expectedlen = c->record_length = 0;
	ok = c->software->final(c->soft, out, outl, outsize);
	if (!ok)
		software_refused(c);
	else
		note_made_tag(c, out, NULL, 0);
	/* An end without data is one, too; a message may follow it with the same IV, or none until the next IV. */
	c->message = mode(c)->restarts && c->noncelen > 0 ? AEAD_FRESH : AEAD_SOFTWARE;
	c->aadlen = 0;
	aead_set_fast_path(c);
	return ok;
}

/* EVP_Cipher(): an update, or the end of the message where there is no input. */
static OSSL_FUNC_cipher_cipher_fn cipher;
static int cipher(void *ctx, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in, size_t inl)
{
	struct aead_ctx *c = ctx;
	int ok;

	if (inl == 0 && mode(c)->restarts && !aead_cipher_ends(c))
		return c->software->cipher(c->soft, out, outl, outsize, in, inl);
	if (in == NULL && inl == 0 && c->message == AEAD_DATA && !c->record && !c->record_software)
		return kernel_final(c, outl);
	if (in != NULL && (out == NULL || inl >= c->fast_below)) {
		c->forward = c->software->cipher;
		ok = update_slow(c, out, outl, outsize, in, inl);
		c->forward = c->software->update;
		return ok;
	}
	if (!aead_catch_up(c))
		return 0;
	c->message = AEAD_SOFTWARE;
	c->length_told = mode(c)->one_update;
	c->expectedlen = c->record_length = 0;
	aead_set_fast_path(c);
	ok = c->software->cipher(c->soft, out, outl, outsize, in, inl);
	if (ok <= 0)
		software_refused(c);
	else
		note_made_tag(c, out, in, inl);
	return ok;
}

const OSSL_DISPATCH aead_functions[] = {
	{OSSL_FUNC_CIPHER_FREECTX, (void (*)(void))freectx},
	{OSSL_FUNC_CIPHER_DUPCTX, (void (*)(void))dupctx},
	{OSSL_FUNC_CIPHER_ENCRYPT_INIT, (void (*)(void))encrypt_init},
	{OSSL_FUNC_CIPHER_DECRYPT_INIT, (void (*)(void))decrypt_init},
	{OSSL_FUNC_CIPHER_UPDATE, (void (*)(void))update},
	{OSSL_FUNC_CIPHER_FINAL, (void (*)(void)) final},
	{OSSL_FUNC_CIPHER_CIPHER, (void (*)(void))cipher},
	{OSSL_FUNC_CIPHER_GET_CTX_PARAMS, (void (*)(void))get_ctx_params},
	{OSSL_FUNC_CIPHER_SET_CTX_PARAMS, (void (*)(void))set_ctx_params},
	{0, NULL},
};
