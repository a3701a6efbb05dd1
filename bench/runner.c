/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <err.h>
#include <linux/if_alg.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "afalg/catalogue.h"
#include "afalg/socket.h"

#ifndef SOL_ALG
#define SOL_ALG 279
#endif

#define AAD 13u /* as a TLS record has */
#define TAG 16u

static uint8_t input[RUNNER_SIZE_MAX + TAG], output[RUNNER_SIZE_MAX + 64], aad[AAD];
static const uint8_t key[64] = {1, 2, 3}, iv[16] = {4, 5, 6};

static size_t key_bytes(const struct algorithm *a)
{
	const char *digits = strpbrk(a->over != NULL ? a->over : a->name, "123");

	if (a->offered != NULL && strcasecmp(a->offered, "HMAC") == 0)
		return 32;
	if (a->mode == MODE_CHACHA_POLY)
		return 32;
	return digits == NULL ? 0 : (size_t)strtoul(digits, NULL, 10) / 8 * (a->mode == MODE_XTS ? 2 : 1);
}

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
	must(EVP_EncryptInit_ex2(r->cipher_ctx, r->cipher, key, iv, NULL), r);
}

static void mac_begin(struct runner *r)
{
	char *over = (char *)(uintptr_t)r->algorithm->over;
	const bool hmac = strcmp(r->algorithm->offered, "HMAC") == 0;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_utf8_string(hmac ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER, over, 0), OSSL_PARAM_END};

	r->mac_ctx = EVP_MAC_CTX_new(r->mac);
	must(EVP_MAC_init(r->mac_ctx, key, key_bytes(r->algorithm), params), r);
}

static void evp_open(struct runner *r)
{
	const char *name = algorithm_offered((enum algorithm_id)(r->algorithm - algorithms));

	if (r->algorithm->kind == KIND_HASH)
		r->md = EVP_MD_fetch(r->context, name, NULL);
	else if (r->algorithm->kind == KIND_MAC)
		r->mac = EVP_MAC_fetch(r->context, name, NULL);
	else
		r->cipher = EVP_CIPHER_fetch(r->context, name, NULL);
	if (r->md == NULL && r->mac == NULL && r->cipher == NULL)
		errx(1, "no %s", name);
	if (r->cipher != NULL && !r->anew)
		cipher_begin(r);
	if (r->mac != NULL && !r->anew)
		mac_begin(r);
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

static void evp_call(struct runner *r, size_t size, unsigned long number)
{
	int n;

	if (r->md != NULL)
		must(EVP_Digest(input, size, output, NULL, r->md, NULL), r);
	else if (r->mac != NULL)
		mac_message(r, size);
	else if (is_aead(r))
		aead_message(r, size, number);
	else
		must(EVP_EncryptUpdate(r->cipher_ctx, output, &n, input, (int)size), r);
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

static void bare_open(struct runner *r)
{
	const struct algorithm *a = r->algorithm;

	r->tfm = afalg_socket_bind(algorithm_type(a->kind), a->kernel);
	if (r->tfm < 0)
		errx(1, "%s: %s", a->kernel, afalg_explain(r->tfm));
	if (keyed(r) && setsockopt(r->tfm, SOL_ALG, ALG_SET_KEY, key, (socklen_t)key_bytes(a)) != 0)
		err(1, "set key");
	if (is_aead(r) && setsockopt(r->tfm, SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, TAG) != 0)
		err(1, "set tag length");
	r->op = accept(r->tfm, NULL, NULL);
	if (r->op < 0)
		err(1, "accept");
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

/* The least that a request costs: one send, one receive. */
static void bare_run(struct runner *r, size_t size, unsigned long n)
{
	struct iovec in[] = {{input, size}, {NULL, 0}}, out[] = {{aad, AAD}, {output, size + TAG}};
	struct msghdr send = {.msg_iov = in, .msg_iovlen = 1}, receive = {.msg_iov = out, .msg_iovlen = 2};
	const size_t sent = size + (is_aead(r) ? AAD : 0);
	const size_t expected = is_aead(r) ? sent + TAG : is_cipher(r) ? size : r->algorithm->size;
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
			err(1, "bare request of %zu bytes", size);
}

void runner_open(struct runner *r, const struct algorithm *a, OSSL_LIB_CTX *context, bool anew)
{
	*r = (struct runner){.algorithm = a, .context = context, .anew = anew, .tfm = -1, .op = -1};
	if (context == NULL)
		bare_open(r);
	else
		evp_open(r);
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
	if (r->context == NULL)
		bare_run(r, size, n);
	else
		evp_run(r, size, n);
}
