/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of TLS up to 1.2 and DTLS with CBC, as libssl has them done: one update in place, in which the default
 * provider pads (encryption), or removes explicit IV, padding and MAC in constant time (decryption). It stays so:
 * software ends every record. In encryption it pads behind the blocks that the kernel has done. In decryption it is
 * given the end of the record as if that were all of it; it looks at no more than this (tls_pad.c).
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "../provider.h"
#include "skcipher_ctx.h"

/* The longest padding, its length byte included. */
#define PADDING_MAX 256

bool skcipher_tls_able(const struct skcipher_ctx *c)
{
	return algorithms[c->id].mode == MODE_CBC && c->tls != SKCIPHER_TLS_UNKNOWN &&
	       c->tls_mac_size <= EVP_MAX_MD_SIZE && c->padding;
}

/* The bytes of a record that are for the kernel: whole blocks, and in decryption none where padding or MAC may be. */
static size_t kernel_share(const struct skcipher_ctx *c, size_t len)
{
	const size_t end = c->encrypt ? 0 : PADDING_MAX + c->tls_mac_size;

	return len <= end ? 0 : (len - end) / skcipher_block(c) * skcipher_block(c);
}

static int end_encryption(struct skcipher_ctx *c, unsigned char *rest, size_t *outl, size_t outsize, size_t len)
{
	return skcipher_catch_up(c) && skcipher_software_update(c, rest, outl, outsize, rest, len);
}

/*
 * The last block of ciphertext before the rest goes with it and stands for the explicit IV. If the version has none,
 * the block counts as payload; either way the rest is decrypted right and the length is less by what is not payload.
 */
static int end_decryption(struct skcipher_ctx *c, unsigned char *rest, size_t *outl, size_t outsize, size_t len)
{
	const size_t b = skcipher_block(c);
	uint8_t plain[MODE_BLOCK_MAX];
	int ok;

	memcpy(plain, rest - b, b);
	memcpy(rest - b, c->iv, b);
	c->iv_ahead = false; /* software need not be told */
	skcipher_set_fast_path(c);
	ok = skcipher_software_update(c, rest - b, outl, outsize + b, rest - b, len + b);
	memcpy(rest - b, plain, b);
	OPENSSL_cleanse(plain, sizeof(plain));
	if (ok)
		*outl -= b;
	return ok;
}

int skcipher_tls_record(struct skcipher_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			const unsigned char *in, size_t inl)
{
	const size_t b = skcipher_block(c), whole = inl / b * b, share = kernel_share(c, inl);
	const bool good =
		in != NULL && in == out && (c->encrypt ? outsize >= whole + b : outsize >= inl && inl == whole);
	size_t begun = 0;

	if (good && share > 0 && skcipher_take(c, inl)) {
		if (!skcipher_fetch_iv(c))
			return skcipher_software_failed(c);
		begun = skcipher_kernel(c, out, in, share);
	}
	if (begun == 0) {
		skcipher_set_fast_path(c); /* the lane may have been closed since */
		if (!skcipher_software_update(c, out, outl, outsize, in, inl))
			return 0;
		route_done(&c->provider->route, &c->use);
		return 1;
	}
	if (!(c->encrypt ? end_encryption : end_decryption)(c, out + begun, outl, outsize - begun, inl - begun))
		return 0;
	*outl += begun;
	return 1;
}
