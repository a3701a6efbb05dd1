/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <string.h>

uint8_t call_input[CALL_SIZE_MAX + CALL_TAG], call_output[CALL_SIZE_MAX + 64], call_aad[CALL_AAD];
const uint8_t call_iv[16] = {4, 5, 6};
/* Without repetition: the parts of keys of DES-EDE3 and XTS must differ. */
const uint8_t call_key[65] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/";

static bool cipher_begin(struct call *c)
{
	c->cipher_ctx = EVP_CIPHER_CTX_new();
	return EVP_EncryptInit_ex(c->cipher_ctx, c->cipher, c->source->engine, call_key, call_iv);
}

static bool is_hmac(const struct algorithm *a)
{
	return strcmp(a->offered, "HMAC") == 0;
}

static bool mac_begin(struct call *c)
{
	char *over = (char *)(uintptr_t)c->algorithm->over;
	const char *name = is_hmac(c->algorithm) ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER;
	const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(name, over, 0), OSSL_PARAM_END};

	c->mac_ctx = EVP_MAC_CTX_new(c->mac);
	return EVP_MAC_init(c->mac_ctx, call_key, c->key_length, params);
}

/* Zero: there is no such cipher. */
static size_t key_length(const struct call_source *s, const char *cipher)
{
	EVP_CIPHER *c = EVP_CIPHER_fetch(s->context, cipher, NULL);
	const size_t length = c == NULL ? 0 : (size_t)EVP_CIPHER_get_key_length(c);

	EVP_CIPHER_free(c);
	return length;
}

bool call_fetch(struct call *c, const struct call_source *source, enum algorithm_id id, bool anew)
{
	const struct algorithm *a = &algorithms[id];
	const char *name = algorithm_offered(id);

	*c = (struct call){.algorithm = a, .source = source, .anew = anew};
	switch (a->kind) {
	case KIND_SKCIPHER:
	case KIND_AEAD:
		c->cipher = EVP_CIPHER_fetch(source->context, name, source->query);
		c->key_length = c->cipher == NULL ? 0 : (size_t)EVP_CIPHER_get_key_length(c->cipher);
		return c->cipher != NULL;
	case KIND_HASH:
		c->md = EVP_MD_fetch(source->context, name, source->query);
		return c->md != NULL;
	case KIND_MAC:
		c->mac = EVP_MAC_fetch(source->context, name, source->query);
		c->key_length = is_hmac(a) ? 32 : key_length(source, a->over);
		return c->mac != NULL && c->key_length != 0;
	case KIND_RNG:
		break;
	}
	return false;
}

bool call_begin(struct call *c)
{
	if (c->anew)
		return true;
	return (c->cipher == NULL || cipher_begin(c)) && (c->mac == NULL || mac_begin(c));
}

/* A message with another nonce each time, as a connection has it. */
static bool aead_message(struct call *c, size_t size, unsigned long number)
{
	const bool ccm = c->algorithm->mode == MODE_CCM;
	uint8_t nonce[16] = {0}, tag[CALL_TAG];
	int n;

	memcpy(nonce, &number, sizeof(number));
	return EVP_EncryptInit_ex2(c->cipher_ctx, NULL, NULL, nonce, NULL) &&
	       (!ccm || EVP_EncryptUpdate(c->cipher_ctx, NULL, &n, NULL, (int)size)) &&
	       EVP_EncryptUpdate(c->cipher_ctx, NULL, &n, call_aad, CALL_AAD) &&
	       EVP_EncryptUpdate(c->cipher_ctx, call_output, &n, call_input, (int)size) &&
	       EVP_EncryptFinal_ex(c->cipher_ctx, call_output, &n) &&
	       EVP_CIPHER_CTX_ctrl(c->cipher_ctx, EVP_CTRL_AEAD_GET_TAG, ccm ? 12 : CALL_TAG, tag);
}

static bool mac_message(struct call *c, size_t size)
{
	size_t n;

	return EVP_MAC_init(c->mac_ctx, NULL, 0, NULL) && EVP_MAC_update(c->mac_ctx, call_input, size) &&
	       EVP_MAC_final(c->mac_ctx, call_output, &n, 64);
}

/* Ciphertext stealing takes a whole message in one call, and the next one needs an IV. */
static bool cipher_call(struct call *c, size_t size)
{
	int n;

	return (c->algorithm->mode != MODE_CTS || c->anew ||
		EVP_EncryptInit_ex(c->cipher_ctx, NULL, NULL, NULL, call_iv)) &&
	       EVP_EncryptUpdate(c->cipher_ctx, call_output, &n, call_input, (int)size);
}

static bool one(struct call *c, size_t size, unsigned long number)
{
	if (c->md != NULL)
		return EVP_Digest(call_input, size, call_output, NULL, c->md, c->source->engine);
	if (c->mac != NULL)
		return mac_message(c, size);
	return c->algorithm->kind == KIND_AEAD ? aead_message(c, size, number) : cipher_call(c, size);
}

static void end_contexts(struct call *c)
{
	EVP_CIPHER_CTX_free(c->cipher_ctx);
	EVP_MAC_CTX_free(c->mac_ctx);
	c->cipher_ctx = NULL;
	c->mac_ctx = NULL;
}

bool call_run(struct call *c, size_t size, unsigned long n)
{
	bool ok = true;

	if (!c->anew) {
		while (ok && n-- > 0)
			ok = one(c, size, n);
		return ok;
	}
	while (ok && n-- > 0) {
		ok = (c->cipher == NULL || cipher_begin(c)) && (c->mac == NULL || mac_begin(c)) && one(c, size, n);
		end_contexts(c);
	}
	return ok;
}

void call_close(struct call *c)
{
	end_contexts(c);
	EVP_CIPHER_free(c->cipher);
	EVP_MD_free(c->md);
	EVP_MAC_free(c->mac);
}
