/* SPDX-License-Identifier: Apache-2.0 */
#include "runner.h"

#include <err.h>
#include <linux/if_alg.h>
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

static void must(bool ok, const struct runner *r)
{
	if (!ok)
		errx(1, "%s failed", r->algorithm->name);
}

/*** Through EVP ***/

static bool is_aead(const struct runner *r)
{
	return r->algorithm->kind == KIND_AEAD;
}

/* Engines have no AEADs, and some ciphers and digests. */
static bool engine_serves(const struct runner *r)
{
	const struct call *c = &r->call;
	const int nid = c->cipher != NULL ? EVP_CIPHER_get_nid(c->cipher)
			: c->md != NULL   ? EVP_MD_get_type(c->md)
					  : NID_undef;

	return !is_aead(r) && engine_has(r->side->source.engine, nid);
}

static bool evp_open(struct runner *r)
{
	if (r->side->source.engine != NULL && !engine_serves(r))
		return false;
	must(call_begin(&r->call), r);
	return true;
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
	if (keyed(r) && setsockopt(r->tfm, SOL_ALG, ALG_SET_KEY, call_key, (socklen_t)r->call.key_length) != 0)
		err(1, "set key");
	if (is_aead(r) && setsockopt(r->tfm, SOL_ALG, ALG_SET_AEAD_AUTHSIZE, NULL, CALL_TAG) != 0)
		err(1, "set tag length");
	r->op = accept(r->tfm, NULL, NULL);
	if (r->op < 0)
		err(1, "accept");
	return true;
}

/* Direction, IV and the length of AAD. */
union control {
	struct cmsghdr align;
	char bytes[2 * CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(uint32_t) + sizeof(call_iv))];
};

static void put_control(const struct runner *r, struct msghdr *msg, union control *control)
{
	const uint32_t direction = ALG_OP_ENCRYPT, ivlen = (uint32_t)r->algorithm->ivlen, aadlen = CALL_AAD;
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
	memcpy(CMSG_DATA(c) + sizeof(ivlen), call_iv, ivlen);
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
	struct iovec in[] = {{call_input, bytes}, {NULL, 0}},
		     out[] = {{call_aad, CALL_AAD}, {call_output, bytes + CALL_TAG}};
	struct msghdr send = {.msg_iov = in, .msg_iovlen = 1}, receive = {.msg_iov = out, .msg_iovlen = 2};
	const size_t sent = bytes + (is_aead(r) ? CALL_AAD : 0);
	const size_t expected = is_aead(r) ? sent + CALL_TAG : is_cipher(r) ? bytes : r->algorithm->size;
	union control control;

	if (is_aead(r)) {
		in[1] = in[0];
		in[0] = (struct iovec){call_aad, CALL_AAD};
		send.msg_iovlen = 2;
	}
	if (is_cipher(r))
		put_control(r, &send, &control);
	while (n-- > 0)
		if (sendmsg(r->op, &send, 0) != (ssize_t)sent ||
		    (is_aead(r) ? recvmsg(r->op, &receive, 0) : recv(r->op, call_output, expected, 0)) !=
			    (ssize_t)expected)
			err(1, "bare request of %zu bytes", bytes);
}

/* Longer requests than this make some devices hang, and blocking ones wait for ever. */
static bool fits(const struct side *side, size_t size)
{
	return (!side->bare && side->source.engine == NULL) || size <= AFALG_REQUEST_MAX;
}

bool runner_open(struct runner *r, const struct side *side, const struct algorithm *a, size_t size, bool anew)
{
	const enum algorithm_id id = (enum algorithm_id)(a - algorithms);

	*r = (struct runner){.algorithm = a, .side = side, .tfm = -1, .op = -1};
	return fits(side, size) && call_fetch(&r->call, &side->source, id, anew) &&
	       (side->bare ? bare_open(r) : evp_open(r));
}

void runner_close(struct runner *r)
{
	call_close(&r->call);
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
		must(call_run(&r->call, size, n), r);
}
