/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a cipher whose state is an IV, shared by the files that implement it: skcipher.c, skcipher_tls.c. */
#ifndef PROVIDER_CIPHER_SKCIPHER_CTX_H
#define PROVIDER_CIPHER_SKCIPHER_CTX_H

#include <openssl/core_dispatch.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../afalg/session.h"
#include "../algorithms.h"
#include "../route.h"
#include "../software.h"
#include "mode.h"

#define SKCIPHER_KEY_MAX 64
#define SKCIPHER_UNCOUNTED_MAX 63u

struct skcipher_ctx {
	/* First what the fast path needs: an update below this many bytes goes straight to software. */
	size_t fast_below;
	uint32_t uncounted_left; /* calls that may go uncounted before the counters are told; 1 to the maximum + 1 */
	enum algorithm_id id;
	uint64_t fed; /* bytes given to software */
	OSSL_FUNC_cipher_update_fn *forward;
	void *soft; /* the software lane's context */

	const struct software_cipher *software;
	struct provider *provider;
	uint64_t fed_base;    /* of those, how many when its buffer was last empty: tells what it holds back */
	uint64_t fed_counted; /* of those, how many the counters know */
	size_t keylen;        /* bytes of key; 0: none set, or the last init failed */
	uint8_t key[SKCIPHER_KEY_MAX];
	uint8_t iv[MODE_IV_MAX];       /* of the next block, where iv_ahead */
	uint8_t original[MODE_IV_MAX]; /* the IV of the last init */
	bool encrypt, padding;
	bool iv_set;
	bool lost;           /* nobody knows what software holds back: until the next init the kernel is out */
	bool generator;      /* looks like OpenSSL 3.0's random generator, which must not end in the kernel */
	bool iv_ahead;       /* software has yet to be told c->iv; it holds nothing back then */
	bool original_lost;  /* software's idea of the original IV is wrong: it was told a later one as such */
	unsigned int tls;    /* updates are records of this version of TLS; 0: they are not; or SKCIPHER_TLS_UNKNOWN */
	size_t tls_mac_size; /* bytes */
	struct route_use use;
	struct afalg_session session;
};

/* The program has set something about TLS, and only software knows what. */
#define SKCIPHER_TLS_UNKNOWN UINT_MAX

static inline size_t skcipher_block(const struct skcipher_ctx *c)
{
	return algorithms[c->id].block;
}

/* Decides how far the fast path reaches, from the state of the context. */
void skcipher_set_fast_path(struct skcipher_ctx *c);

/* Has the software lane do an update. */
int skcipher_software_update(struct skcipher_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			     const unsigned char *in, size_t inl);

/* After a failure of the software lane nobody knows what it holds: it stays alone until the next init. Returns 0. */
int skcipher_software_failed(struct skcipher_ctx *c);

/* Tells software the IV that the kernel has reached, if it is behind. 0: it failed. */
int skcipher_catch_up(struct skcipher_ctx *c);

/* Whether the kernel is to have a call of so many bytes. */
bool skcipher_take(struct skcipher_ctx *c, size_t bytes);

/* Learns the IV of the next block, where software has begun none. 0: it does not tell. */
int skcipher_fetch_iv(struct skcipher_ctx *c);

/*
 * Has the kernel do whole blocks, or a message, from c->iv on, in requests of at most AFALG_REQUEST_MAX bytes. Returns
 * how many bytes it did; software is then behind by the IV, if there is one. What failed has left no trace in `out`
 * that software will not write over.
 */
size_t skcipher_kernel(struct skcipher_ctx *c, unsigned char *out, const unsigned char *in, size_t bytes);

/* TLS records. Whether the kernel may do its part of them, and an update that is one. */
bool skcipher_tls_able(const struct skcipher_ctx *c);
int skcipher_tls_record(struct skcipher_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			const unsigned char *in, size_t inl);

#endif
