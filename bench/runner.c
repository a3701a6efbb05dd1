/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <err.h>
#include <linux/if_alg.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "afalg/socket.h"
#include "afalg/transport.h"
#include "engine.h"

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define AAD 13u /* as a TLS record has */
#define TAG 16u

static uint8_t input[RUNNER_SIZE_MAX + TAG], output[RUNNER_SIZE_MAX + 64], aad[AAD];
static const uint8_t iv[16] = {4, 5, 6};
/* Without repetition: the parts of keys of DES-EDE3 and XTS must differ. */
static const uint8_t key[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/";

static bool is_aead(const struct runner *r)
{
	return r->algorithm->kind == KIND_AEAD;
}

static void must(int ok, const struct runner *r)
{
	if (!ok)
		errx(1, "%s failed", r->algorithm->name);
}

/*** Through EVP ***/

static void cipher_begin(struct runner *r)
{
	r->cipher_ctx = EVP_CIPHER_CTX_new();
	must(EVP_EncryptInit_ex(r->cipher_ctx, r->cipher, r->side->engine, key, iv), r);
}

static bool is_hmac(const struct algorithm *a)
{
	return a->kind == KIND_MAC && strcmp(a->offered, "HMAC") == 0;
}

static void mac_begin(struct runner *r)
{
	char *over = (char *)(uintptr_t)r->algorithm->over;
	const char *name = is_hmac(r->algorithm) ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER;
	const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(name, over, 0), OSSL_PARAM_END};

	r->mac_ctx = EVP_MAC_CTX_new(r->mac);
	must(EVP_MAC_init(r->mac_ctx, key, r->key_length, params), r);
}

/* Zero: there is no such cipher. */
static size_t key_length(OSSL_LIB_CTX *context, const char *cipher)
{
	EVP_CIPHER *c = EVP_CIPHER_fetch(context, cipher, NULL);
	const size_t length = c == NULL ? 0 : (size_t)EVP_CIPHER_get_key_length(c);

	EVP_CIPHER_free(c);
	return length;
}

static bool fetch(struct runner *r)
{
	const struct algorithm *a = r->algorithm;
	const char *name = algorithm_offered((enum algorithm_id)(a - algorithms));
	OSSL_LIB_CTX *context = r->side->context;

	switch (a->kind) {
	case KIND_SKCIPHER:
	case KIND_AEAD:
		r->cipher = EVP_CIPHER_fetch(context, name, NULL);
		r->key_length = key_length(context, name);
		return r->cipher != NULL;
	case KIND_HASH:
		r->md = EVP_MD_fetch(context, name, NULL);
		return r->md != NULL;
	case KIND_MAC:
		r->mac = EVP_MAC_fetch(context, name, NULL);
		r->key_length = is_hmac(a) ? 32 : key_length(context, a->over);
		return r->mac != NULL && r->key_length != 0;
	case KIND_RNG:
		break;
	}
	return false;
}

static bool evp_open(struct runner *r)
{
	const int nid = r->cipher != NULL ? EVP_CIPHER_get_nid(r->cipher)
			: r->md != NULL   ? EVP_MD_get_type(r->md)
					  : NID_undef;

	if (r->side->engine != NULL && (is_aead(r) || !engine_has(r->side->engine, nid)))
		return false;
	if (r->cipher != NULL && !r->anew)
		cipher_begin(r);
	if (r->mac != NULL && !r->anew)
		mac_begin(r);
	return true;
}

/* A message with another nonce each time, as a connection has it. */
static void aead_message(struct runner *r, size_t size, unsigned long number)
{
	const bool ccm = r->algorithm->mode == MODE_CCM;
	uint8_t nonce[16] = {0}, tag[TAG];
	int n;

	memcpy(nonce, &number, sizeof(number));
	must(EVP_EncryptInit_ex2(r->cipher_ctx, NULL, NULL, nonce, NULL) &&
		     (!ccm || EVP_EncryptUpdate(r->cipher_ctx, NULL, &n, NULL, (int)size)) &&
		     EVP_EncryptUpdate(r->cipher_ctx, NULL, &n, aad, AAD) &&
		     EVP_EncryptUpdate(r->cipher_ctx, output, &n, input, (int)size) &&
		     EVP_EncryptFinal_ex(r->cipher_ctx, output, &n) &&
		     EVP_CIPHER_CTX_ctrl(r->cipher_ctx, EVP_CTRL_AEAD_GET_TAG, ccm ? 12 : TAG, tag),
	     r);
}

static void mac_message(struct runner *r, size_t size)
{
	size_t n;

	must(EVP_MAC_init(r->mac_ctx, NULL, 0, NULL) && EVP_MAC_update(r->mac_ctx, input, size) &&
		     EVP_MAC_final(r->mac_ctx, output, &n, 64),
	     r);
}

/* Ciphertext stealing takes a whole message in one call, and the next one needs an IV. */
static void cipher_call(struct runner *r, size_t size)
{
	int n;

	must((r->algorithm->mode != MODE_CTS || r->anew || EVP_EncryptInit_ex(r->cipher_ctx, NULL, NULL, NULL, iv)) &&
		     EVP_EncryptUpdate(r->cipher_ctx, output, &n, input, (int)size),
	     r);
}

static void evp_call(struct runner *r, size_t size, unsigned long number)
{
	if (r->md != NULL)
		must(EVP_Digest(input, size, output, NULL, r->md, r->side->engine), r);
	else if (r->mac != NULL)
		mac_message(r, size);
	else if (is_aead(r))
		aead_message(r, size, number);
	else
		cipher_call(r, size);
}

static void evp_run(struct runner *r, size_t size, unsigned long n)
{
	while (n-- > 0) {
		if (r->anew && r->cipher != NULL)
			cipher_begin(r);
		else if (r->anew && r->mac != NULL)
			mac_begin(r);
		evp_call(r, size, n);
		if (!r->anew)
			continue;
		EVP_CIPHER_CTX_free(r->cipher_ctx);
		EVP_MAC_CTX_free(r->mac_ctx);
		r->cipher_ctx = NULL;
		r->mac_ctx = NULL;
	}
}

/*** Bare ***/

static bool keyed(const struct runner *r)
{
	return r->algorithm->kind != KIND_HASH;
}

static bool is_cipher(const struct runner *r)
{
	return r->algorithm->kind == KIND_SKCIPHER || is_aead(r);
}

static bool bare_open(struct runner *r)
{
	const struct algorithm *a = r->algorithm;

	r->tfm = afalg_socket_bind(algorithm_type(a->kind), a->kernel);
	if (r->tfm < 0)
		return false;
	if (keyed(r) && setsockopt(r->tfm, SOL_ALG, ALG_SET_KEY, key, (socklen_t)r->key_length) != 0)
		err(1, "set key");
	if (is_aead(r) && setsockopt(r->tfm, SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, TAG) != 0)
		err(1, "set tag length");
	r->op = accept(r->tfm, NULL, NULL);
	if (r->op < 0)
		err(1, "accept");
	return true;
}

/* Direction, IV and the length of AAD. */
union control {
	struct cmsghdr align;
	char bytes[2 * CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint32_t) + sizeof(iv))];
};

static void put_control(const struct runner *r, struct msghdr *msg, union control *control)
{
	const uint32_t direction = ALG_OP_ENCRYPT, ivlen = (uint32_t)r->algorithm->ivlen, aadlen = AAD;
	struct cmsghdr *c;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(sizeof(direction)) + CMSG_SPACE(sizeof(ivlen) + ivlen) +
			      (is_aead(r) ? CMSG_SPACE(sizeof(aadlen)) : 0);
	c = CMSG_FIRSTHDR(msg);
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(direction)), .cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_OP};
	memcpy(CMSG_DATA(c), &direction, sizeof(direction));
	c = CMSG_NXTHDR(msg, c);
	*c = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(ivlen) + ivlen), .cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_IV};
	memcpy(CMSG_DATA(c), &ivlen, sizeof(ivlen));
	memcpy(CMSG_DATA(c) + sizeof(ivlen), iv, ivlen);
	if (r->algorithm->mode == MODE_CCM)
		CMSG_DATA(c)[sizeof(ivlen)] = 2; /* 3 bytes of length field: nonces of 12 bytes */
	if (!is_aead(r))
		return;
	c = CMSG_NXTHDR(msg, c);
	*c = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(aadlen)), .cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_AEAD_ASSOCLEN};
	memcpy(CMSG_DATA(c), &aadlen, sizeof(aadlen));
}

/*
 * The least that a request costs: one send, one receive. Of ciphertext stealing the kernel has the CBC, and whole
 * blocks of it.
 */
static void bare_run(struct runner *r, size_t size, unsigned long n)
{
	const size_t bytes = r->algorithm->mode == MODE_CTS ? size - size % r->algorithm->block : size;
	struct iovec in[] = {{input, bytes}, {NULL, 0}}, out[] = {{aad, AAD}, {output, bytes + TAG}};
	struct msghdr send = {.msg_iov = in, .msg_iovlen = 1}, receive = {.msg_iov = out, .msg_iovlen = 2};
	const size_t sent = bytes + (is_aead(r) ? AAD : 0);
	const size_t expected = is_aead(r) ? sent + TAG : is_cipher(r) ? bytes : r->algorithm->size;
	union control control;

	if (is_aead(r)) {
		in[1] = in[0];
		in[0] = (struct iovec){aad, AAD};
		send.msg_iovlen = 2;
	}
	if (is_cipher(r))
		put_control(r, &send, &control);
	while (n-- > 0)
		if (sendmsg(r->op, &send, 0) != (ssize_t)sent ||
		    (is_aead(r) ? recvmsg(r->op, &receive, 0) : recv(r->op, output, expected, 0)) != (ssize_t)expected)
			err(1, "bare request of %zu bytes", bytes);
}

/* Longer requests than this make some devices hang, and blocking ones wait for ever. */
static bool fits(const struct side *side, size_t size)
{
	return (!side->bare && side->engine == NULL) || size <= AFALG_REQUEST_MAX;
}

bool runner_open(struct runner *r, const struct side *side, const struct algorithm *a, size_t size, bool anew)
{
	*r = (struct runner){.algorithm = a, .side = side, .anew = anew, .tfm = -1, .op = -1};
	return fits(side, size) && fetch(r) && (side->bare ? bare_open(r) : evp_open(r));
}

void runner_close(struct runner *r)
{
	EVP_CIPHER_CTX_free(r->cipher_ctx);
	EVP_CIPHER_free(r->cipher);
	EVP_MD_free(r->md);
	EVP_MAC_CTX_free(r->mac_ctx);
	EVP_MAC_free(r->mac);
	if (r->op >= 0)
		close(r->op);
	if (r->tfm >= 0)
		close(r->tfm);
}

void runner_run(struct runner *r, size_t size, unsigned long n)
{
	if (r->side->bare)
		bare_run(r, size, n);
	else
		evp_run(r, size, n);
}
