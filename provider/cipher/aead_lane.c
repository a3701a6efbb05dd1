/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of an AEAD: what the kernel can do, one request, and how software catches up with it. */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../counters.h"
#include "../provider.h"
#include "aead_ctx.h"

const struct aead_mode aead_modes[] = {
	[MODE_GCM] = {.fixed_iv = 4, .explicit_iv = 8},
	[MODE_CCM] = {.one_update = true, .fixed_iv = 4, .explicit_iv = 8},
	[MODE_CHACHA_POLY] = {.restarts = true, .fixed_iv = 12},
};

static bool kernel_knows_taglen(enum cipher_mode mode, size_t taglen)
{
	switch (mode) {
	case MODE_GCM: /* crypto/gcm.c, crypto_gcm_setauthsize */
		return taglen == 4 || taglen == 8 || (taglen >= 12 && taglen <= 16);
	case MODE_CCM:
		return taglen >= 4 && taglen <= 16 && taglen % 2 == 0;
	default:
		return taglen == 16;
	}
}

size_t aead_kernel_taglen(const struct aead_ctx *c)
{
	const enum cipher_mode mode = algorithms[c->id].mode;
	size_t taglen = AEAD_TAG; /* a program may ask for less of it */

	if (mode == MODE_CCM)
		taglen = c->taglen == c->keyed_taglen ? c->taglen : 0;
	else if (!c->encrypt && !c->record)
		taglen = c->expectedlen;
	return kernel_knows_taglen(mode, taglen) ? taglen : 0;
}

bool aead_kernel_able(struct aead_ctx *c, size_t bytes, size_t aadlen)
{
	const size_t taglen = aead_kernel_taglen(c);

	if (c->keylen == 0 || taglen == 0 || bytes == 0 || bytes > AFALG_REQUEST_MAX - aadlen - taglen)
		return false;
	counters_sampled(c->id);
	c->use.id = c->id;
	c->use.decrypt = !c->encrypt;
	c->use.open = c->session.slot != NULL && c->session_taglen == taglen;
	return route_take(&c->provider->route, &c->use, bytes);
}

void aead_set_fast_path(struct aead_ctx *c)
{
	if (c->record || c->record_software || c->message > AEAD_FRESH)
		c->fast_below = 0;
	else if (c->message == AEAD_SOFTWARE || c->keylen == 0)
		c->fast_below = ROUTE_NEVER;
	else if (counters_sample(c->id) != 0 && route_learns(&c->provider->route, c->id))
		c->fast_below = 0;
	else
		c->fast_below = route_floor(&c->provider->route, c->id);
}

void aead_forget_kept(struct aead_ctx *c)
{
	if (c->kept == NULL)
		return;
	explicit_bzero(c->kept, c->keptlen); /* four times as fast as OPENSSL_cleanse() */
	free(c->kept);
	c->kept = NULL;
}

/* By copy: OpenSSL hands out no pointer for these modes. CCM gives as many bytes as one asks for. */
bool aead_fetch_iv(const struct aead_ctx *c, uint8_t iv[AEAD_IV])
{
	OSSL_PARAM params[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_IV, iv, AEAD_IV), OSSL_PARAM_END};
	int ok;

	ERR_set_mark();
	ok = c->software->get_ctx_params(c->soft, params);
	ERR_pop_to_mark();
	return ok && params[0].return_size == AEAD_IV;
}

static atomic_int cipher_ends; /* 0: not known; 1: it does; -1: it does not */

/* Has software encrypt nothing: the tag is there if that was an end. */
static int ask_cipher_ends(const struct aead_ctx *c)
{
	static const uint8_t key[AEAD_KEY_MAX], nothing[AEAD_TAG];
	uint8_t tag[AEAD_TAG] = {0}, out;
	OSSL_PARAM params[] = {OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, AEAD_TAG), OSSL_PARAM_END};
	void *soft = c->software->newctx(software_provctx(c->provider, c->id));
	size_t outl;
	bool ok;

	if (soft == NULL)
		return 0;
	ERR_set_mark();
	ok = c->software->encrypt_init(soft, key, sizeof(key), key, AEAD_IV, NULL) &&
	     c->software->cipher(soft, &out, &outl, sizeof(out), NULL, 0) && c->software->get_ctx_params(soft, params);
	ERR_pop_to_mark();
	c->software->freectx(soft);
	return !ok ? 0 : memcmp(tag, nothing, sizeof(tag)) != 0 ? 1 : -1;
}

bool aead_cipher_ends(const struct aead_ctx *c)
{
	int ends = atomic_load_explicit(&cipher_ends, memory_order_relaxed);

	if (ends == 0) {
		ends = ask_cipher_ends(c);
		atomic_store_explicit(&cipher_ends, ends, memory_order_relaxed);
	}
	return ends > 0;
}

/* CCM's B0 (RFC 3610, 2.2; crypto/ccm.c) for the kernel; for others the nonce itself. Returns its length. */
static size_t kernel_iv(const struct aead_ctx *c, const struct aead_request *m, uint8_t iv[AEAD_NONCE_MAX])
{
	if (algorithms[c->id].mode != MODE_CCM) {
		memcpy(iv, m->nonce, m->noncelen);
		return m->noncelen;
	}
	memset(iv, 0, AEAD_NONCE_MAX);
	iv[0] = (uint8_t)(14 - m->noncelen); /* bytes of the length field, less one */
	memcpy(iv + 1, m->nonce, m->noncelen);
	return AEAD_NONCE_MAX;
}

int aead_kernel(struct aead_ctx *c, const struct aead_request *m)
{
	const struct algorithm *a = &algorithms[c->id];
	const struct afalg_keyed keyed = {.type = algorithm_type(a->kind),
					  .algorithm = a->kernel,
					  .key = c->key,
					  .keylen = c->keylen,
					  .taglen = aead_kernel_taglen(c)};
	uint8_t iv[AEAD_NONCE_MAX];
	const struct afalg_request r = {.encrypt = c->encrypt,
					.iv = iv,
					.ivlen = kernel_iv(c, m, iv),
					.in = m->in,
					.out = m->out,
					.len = m->len,
					.aad = m->aad,
					.aadlen = m->aadlen,
					.tag = m->tag,
					.taglen = keyed.taglen};
	bool opened;
	int err;

	if (c->session_taglen != keyed.taglen)
		afalg_session_drop(&c->session);
	c->session_taglen = keyed.taglen;
	err = afalg_session_begin(&c->session, &keyed);
	opened = err == 0;
	if (opened) {
		route_opened(&c->provider->route, &c->use);
		err = afalg_session_crypt(&c->session, &r);
		afalg_session_end(&c->session, err == 0 || err == -EBADMSG);
	}
	route_outcome(&c->provider->route, &c->use, opened, err == -EBADMSG ? 0 : err);
	if (err == 0 || err == -EBADMSG)
		counters_kernel(c->id, 1, m->len);
	else
		counters_fallback(c->id, m->len, err);
	return err;
}

/* CCM: tells software the length and the AAD that were held back. */
static int tell_held(struct aead_ctx *c)
{
	size_t outl;

	c->length_told = true;
	c->tag_ours = c->tag_ours && c->aadlen == 0;
	return c->software->update(c->soft, NULL, &outl, c->declared, NULL, c->declared) &&
	       (c->aadlen == 0 || c->software->update(c->soft, NULL, &outl, c->aadlen, c->aad, c->aadlen));
}

/* Has software do the update that the kernel has done, whose result is known. */
static int redo_update(struct aead_ctx *c)
{
	size_t outl;
	int ok = c->software->update(c->soft, c->kept, &outl, c->keptlen, c->kept, c->keptlen);

	aead_forget_kept(c);
	return ok;
}

static int tell_record(struct aead_ctx *c)
{
	const OSSL_PARAM params[] = {
		OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_AAD, c->record_aad, sizeof(c->record_aad)),
		OSSL_PARAM_END};

	aead_tls_software(c, c->record_aad, sizeof(c->record_aad));
	return c->software->set_ctx_params(c->soft, params);
}

int aead_catch_up(struct aead_ctx *c)
{
	const enum aead_message message = c->message;
	int ok = 1;

	if (c->record)
		ok = tell_record(c);
	if (message == AEAD_HELD || message == AEAD_DATA) {
		c->message = AEAD_SOFTWARE;
		ok = (message == AEAD_HELD ? tell_held(c) : redo_update(c)) && ok;
	}
	aead_set_fast_path(c);
	return ok;
}
