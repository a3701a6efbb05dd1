/* SPDX-License-Identifier: Apache-2.0 */
/* The context of an AEAD, shared by the files that implement it: aead.c, aead_lane.c, aead_tls.c. */
#ifndef PROVIDER_CIPHER_AEAD_CTX_H
#define PROVIDER_CIPHER_AEAD_CTX_H

#include <openssl/core_dispatch.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../afalg/session.h"
#include "../algorithms.h"
#include "../route.h"
#include "../software.h"

#define AEAD_KEY_MAX 32
#define AEAD_NONCE_MAX 16
#define AEAD_AAD_MAX 512 /* a message with more AAD stays in software */
#define AEAD_TAG 16
#define AEAD_TLS_AAD 13 /* EVP_AEAD_TLS1_AAD_LEN: sequence number, type, version, length */
#define AEAD_TLS_FIXED_MAX 12

/* What differs between the modes. */
struct aead_mode {
	/* CCM: a message is one update; its length is told before its AAD, and the tag is there after the update. */
	bool one_update;
	/* The next message may follow the last with the same IV (ChaCha20-Poly1305), instead of being refused. */
	bool restarts;
	/* TLS 1.2 records: bytes of the nonce that come from the key block, and that stand in the record. */
	size_t fixed_iv, explicit_iv;
};

extern const struct aead_mode aead_modes[];

/* How far software is with the message. */
enum aead_message {
	AEAD_SOFTWARE, /* it does the message, and knows all of it */
	AEAD_FRESH,    /* it knows the IV and the AAD; there was no data yet, so the kernel may do the message */
	AEAD_HELD,     /* CCM: so too, but it has yet to be told the length and the AAD */
	AEAD_DATA,     /* the kernel has done an update (kept), of which it knows nothing */
};

struct aead_ctx {
	/* Updates below this many bytes go straight to software; that decides the lane of the message. */
	size_t fast_below;
	enum algorithm_id id;
	enum aead_message message;
	OSSL_FUNC_cipher_update_fn *forward;
	void *soft; /* the software lane's context */
	const struct software_cipher *software;
	struct provider *provider;
	bool encrypt;

	size_t keylen; /* bytes of key; 0: none set, or the last init failed */
	uint8_t key[AEAD_KEY_MAX];
	bool keyed; /* software may have had a key at some time */
	uint8_t nonce[AEAD_NONCE_MAX];
	size_t noncelen; /* bytes; 0: not known to us */
	bool generated;  /* GCM: the nonce is the one before software's, which counts it up */

	uint8_t aad[AEAD_AAD_MAX];
	size_t aadlen;
	size_t declared; /* CCM, held: bytes of the message */

	/* CCM: bytes as set now, and as set when the key was, which is when software takes them (CRYPTO_ccm128_init).
	 */
	size_t taglen, ivlen, keyed_taglen, keyed_ivlen;
	bool length_told;           /* software may still go by the length of an earlier message (ctx->len_set) */
	uint8_t expected[AEAD_TAG]; /* decryption: the tag to be found */
	size_t expectedlen;         /* bytes; 0: none given since the last message */

	uint8_t *kept; /* AEAD_DATA: the input of the update */
	size_t keptlen;
	uint8_t computed[AEAD_TAG]; /* encryption: the kernel's tag of this message */
	/*
	 * What a program gets in place of software's tag, if `tag_ours`: that one is of the same nonce but of no data,
	 * and nobody may ever see it. So it is ours until software has certainly made another.
	 */
	uint8_t tag[AEAD_TAG];
	bool tag_ours;

	uint8_t fixed[AEAD_TLS_FIXED_MAX]; /* ChaCha20-Poly1305; the others' is in software's IV */
	size_t fixedlen;                   /* bytes; 0: it is not certain that software would make nonces of records */
	uint8_t record_aad[AEAD_TLS_AAD];  /* as given */
	bool record;                       /* the next update is a TLS record of which software knows nothing yet */
	bool record_software;              /* so too, or it may be, but software knows */
	size_t record_length;              /* bytes of an update that certainly is that record; 0: not known */
	bool record_pad;                   /* a program gets our answer to how much a record grows */

	struct route_use use;
	struct afalg_session session;
	size_t session_taglen;
};

/* Decides how far the fast path reaches, from the state of the context. */
void aead_set_fast_path(struct aead_ctx *c);

/* Tells software everything that it does not know of the message, which is its own from then on. 0: it failed. */
int aead_catch_up(struct aead_ctx *c);

/* Software's IV, whose length must be that of records and, where it knows no other, of messages. False: it is not. */
#define AEAD_IV 12
bool aead_fetch_iv(const struct aead_ctx *c, uint8_t iv[AEAD_IV]);

/*
 * ChaCha20-Poly1305: whether EVP_Cipher() without input ends a message. It does so since 3.0.22 and
 * the other branches' releases of that time; before it did nothing at all, so software is asked.
 */
bool aead_cipher_ends(const struct aead_ctx *c);

/* Cleanses and frees the input kept. */
void aead_forget_kept(struct aead_ctx *c);

/* Bytes of tag that the kernel is asked for in this direction; 0: it cannot do it. */
size_t aead_kernel_taglen(const struct aead_ctx *c);

/* Whether the kernel could do a message of `bytes` with `aadlen` bytes of AAD, as far as nonce and data do not matter.
 */
bool aead_kernel_able(struct aead_ctx *c, size_t bytes, size_t aadlen);

/* What a request consists of beyond key and direction. */
struct aead_request {
	const uint8_t *nonce; /* bytes: noncelen */
	size_t noncelen;
	uint8_t *aad;
	size_t aadlen;
	const uint8_t *in;
	uint8_t *out;
	size_t len;
	uint8_t *tag; /* aead_kernel_taglen() bytes */
};

/*
 * Has the kernel do a message, and tells the router and the counters. 0; -EBADMSG: the tag is wrong; other negative
 * errno: it failed, which has been counted. `out` is undefined then, `in` as it was.
 */
int aead_kernel(struct aead_ctx *c, const struct aead_request *message);

/*
 * TLS records (EVP_CTRL_AEAD_TLS1_AAD and one update). aead_tls_aad takes the AAD of a record that may be the kernel's;
 * false: software is to have it, which aead_tls_software notes beforehand. aead_tls_record does the record, in either
 * lane.
 */
bool aead_tls_aad(struct aead_ctx *c, const uint8_t *aad, size_t aadlen);
void aead_tls_software(struct aead_ctx *c, const uint8_t *aad, size_t aadlen);
int aead_tls_record(struct aead_ctx *c, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in,
		    size_t inl);

#endif
