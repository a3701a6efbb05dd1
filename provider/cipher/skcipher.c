/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ciphers whose state between requests is an IV, or nothing. The software lane does everything: parameters, padding,
 * partial blocks, the ends of TLS records. The kernel takes the whole blocks in the middle of a large update; then it
 * is ahead of the software lane by an IV, which the software lane is told when it is next needed.
 */
#include "skcipher.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "../counters.h"
#include "../provider.h"
#include "skcipher_ctx.h"

static const struct mode *mode(const struct skcipher_ctx *c)
{
	return &modes[algorithms[c->id].mode];
}

/* Whether the kernel could go on from here, given a large call. */
static bool kernel_able(const struct skcipher_ctx *c)
{
	const bool over = mode(c)->update == UPDATE_MESSAGE && c->fed != c->fed_base;

	return c->keylen > 0 && !c->lost && !over && (c->iv_set || algorithms[c->id].ivlen == 0) &&
	       (c->tls == 0 || skcipher_tls_able(c)) && !c->generator;
}

/* Decides how far the fast path reaches, from the state of the context. */
void skcipher_set_fast_path(struct skcipher_ctx *c)
{
	if (c->iv_ahead)
		c->fast_below = 0;
	else if (!kernel_able(c))
		c->fast_below = ROUTE_NEVER;
	else if (counters_sample(c->id) != 0 && route_learns(&c->provider->route, c->id))
		c->fast_below = 0;
	else
		c->fast_below = route_floor(&c->provider->route, c->id);
}

bool skcipher_take(struct skcipher_ctx *c, size_t bytes)
{
	counters_sampled(c->id);
	c->use.id = c->id;
	c->use.decrypt = !c->encrypt;
	c->use.open = c->session.slot != NULL;
	return route_take(&c->provider->route, &c->use, bytes);
}

/* Tells the counters what the fast path has let through. */
static void count(struct skcipher_ctx *c)
{
	const uint32_t calls = SKCIPHER_UNCOUNTED_MAX + 1 - c->uncounted_left;

	if (calls > 0)
		counters_software(c->id, calls, c->fed - c->fed_counted);
	c->use.passed += c->fed - c->fed_counted;
	c->uncounted_left = SKCIPHER_UNCOUNTED_MAX + 1;
	c->fed_counted = c->fed;
}

/* Software's buffer is empty at this point. */
static void nothing_held(struct skcipher_ctx *c)
{
	c->fed_base = c->fed;
}

/* After a failure of the software lane nobody knows what it holds: it stays alone until the next init. */
int skcipher_software_failed(struct skcipher_ctx *c)
{
	c->lost = mode(c)->update != UPDATE_UNIT;
	skcipher_set_fast_path(c);
	return 0;
}

/* Tells software the IV that the kernel has reached. An init is the only way, and it takes it for the original too. */
int skcipher_catch_up(struct skcipher_ctx *c)
{
	OSSL_FUNC_cipher_encrypt_init_fn *init = c->encrypt ? c->software->encrypt_init : c->software->decrypt_init;

	if (!c->iv_ahead)
		return 1;
	if (!init(c->soft, NULL, 0, c->iv, algorithms[c->id].ivlen, NULL))
		return skcipher_software_failed(c);
	c->iv_ahead = false;
	c->original_lost = true;
	nothing_held(c);
	skcipher_set_fast_path(c);
	return 1;
}

void *skcipher_newctx(struct provider *p, enum algorithm_id id)
{
	struct skcipher_ctx *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->fast_below = ROUTE_NEVER;
	c->id = id;
	c->provider = p;
	c->padding = true;
	c->uncounted_left = SKCIPHER_UNCOUNTED_MAX + 1;
	c->software = &software_ciphers[id];
	c->forward = c->software->update;
	c->soft = c->software->newctx(software_provctx(p, id));
	if (c->soft == NULL) {
		free(c);
		return NULL;
	}
	return c;
}

/* Not by OPENSSL_cleanse() and not the whole context: that alone took a fifth of the life of one for 16 bytes. */
static void forget_secrets(struct skcipher_ctx *c)
{
	explicit_bzero(c->key, sizeof(c->key));
	explicit_bzero(c->iv, sizeof(c->iv));
}

static OSSL_FUNC_cipher_freectx_fn freectx;
static void freectx(void *ctx)
{
	struct skcipher_ctx *c = ctx;

	if (c == NULL)
		return;
	count(c);
	afalg_session_drop(&c->session);
	c->software->freectx(c->soft);
	forget_secrets(c);
	free(c);
}

static OSSL_FUNC_cipher_dupctx_fn dupctx;
static void *dupctx(void *ctx)
{
	const struct skcipher_ctx *from = ctx; /* others may be copying it too */
	struct skcipher_ctx *to = malloc(sizeof(*to));

	if (to == NULL)
		return NULL;
	*to = *from;
	to->uncounted_left = SKCIPHER_UNCOUNTED_MAX + 1; /* counted by the original */
	to->fed_counted = to->fed;
	to->session = (struct afalg_session){.slot = NULL}; /* opens its own if it needs one */
	to->soft = from->software->dupctx(from->soft);
	if (to->soft == NULL) {
		forget_secrets(to);
		free(to);
		return NULL;
	}
	return to;
}

/* Software takes a record whole: what it holds back is then not what it has been fed. */
static void note_tls(struct skcipher_ctx *c, unsigned int version)
{
	if ((version == 0) != (c->tls == 0) && c->fed != c->fed_base)
		c->lost = true;
	c->tls = version;
}

/* Keeps track of the parameters that decide what the kernel may do. */
static void note_params(struct skcipher_ctx *c, const OSSL_PARAM params[])
{
	const OSSL_PARAM *p;
	unsigned int value;
	size_t size;

	if (params == NULL)
		return;
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_PADDING);
	if (p != NULL && OSSL_PARAM_get_uint(p, &value)) {
		/* A block held back for its padding stays held: only software can tell. */
		if (!c->encrypt && c->fed != c->fed_base && c->padding != (value != 0))
			c->lost = true;
		c->padding = value != 0;
	}
	if (OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_NUM) != NULL)
		c->lost = true; /* not the position in the block that has been fed, or what only software remembers */
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_KEYLEN);
	if (p != NULL && algorithms[c->id].key_max > 0 && OSSL_PARAM_get_size_t(p, &size) && size != c->keylen)
		c->keylen = 0; /* another length, and software forgets its key */
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_TLS_VERSION);
	if (p != NULL && OSSL_PARAM_get_uint(p, &value))
		note_tls(c, value);
	p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_TLS_MAC_SIZE);
	if (p != NULL && OSSL_PARAM_get_size_t(p, &size))
		c->tls_mac_size = size;
}

/* Parameters before the one that failed have been set. */
static int params_failed(struct skcipher_ctx *c, const OSSL_PARAM given[])
{
	unsigned int padding = c->padding;
	OSSL_PARAM params[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, &padding), OSSL_PARAM_END};

	if (c->software->get_ctx_params(c->soft, params))
		c->padding = padding != 0;
	if (OSSL_PARAM_locate_const(given, OSSL_CIPHER_PARAM_TLS_VERSION) != NULL ||
	    OSSL_PARAM_locate_const(given, OSSL_CIPHER_PARAM_TLS_MAC_SIZE) != NULL)
		c->tls = SKCIPHER_TLS_UNKNOWN;
	return skcipher_software_failed(c);
}

/* Whether the kernel takes a key of this length where the default provider does. */
static bool kernel_takes(enum algorithm_id id, size_t keylen)
{
	const struct algorithm *a = &algorithms[id];

	return a->key_max == 0 || (keylen >= a->key_min && keylen <= a->key_max);
}

static void note_key(struct skcipher_ctx *c, const unsigned char *key, size_t keylen)
{
	if (keylen == c->keylen && CRYPTO_memcmp(key, c->key, keylen) == 0)
		return;
	afalg_session_drop(&c->session);
	route_new_key(&c->use);
	if (keylen > sizeof(c->key) || !kernel_takes(c->id, keylen))
		keylen = 0;
	memcpy(c->key, key, keylen);
	c->keylen = keylen;
}

static int init(struct skcipher_ctx *c, bool encrypt, const unsigned char *key, size_t keylen, const unsigned char *iv,
		size_t ivlen, const OSSL_PARAM params[])
{
	OSSL_FUNC_cipher_encrypt_init_fn *software = encrypt ? c->software->encrypt_init : c->software->decrypt_init;
	const bool goes_on = mode(c)->counts && iv == NULL;

	/* Without an IV the message starts from the original one again, which software may have forgotten. */
	if (iv == NULL && c->original_lost && mode(c)->restores_iv) {
		iv = c->original;
		ivlen = algorithms[c->id].ivlen;
	}
	if (iv == NULL && !mode(c)->restores_iv && !skcipher_catch_up(c))
		return 0;
	c->iv_ahead = false;
	if (!goes_on)
		nothing_held(c);
	if (!software(c->soft, key, keylen, iv, ivlen, params)) {
		c->keylen = 0;
		if (iv != NULL) /* software has it already, and goes back to it: the kernel is out until the next IV */
			c->iv_set = c->original_lost = false;
		return params_failed(c, params);
	}
	/* A new key has a stream go on at the beginning of a block: which one, depends on how the last bytes came. */
	c->lost = goes_on && (c->lost || (key != NULL && c->fed != c->fed_base));
	/* Turning round without a key leaves the default provider with the other direction's key schedule. */
	if (key == NULL && encrypt != c->encrypt)
		c->keylen = 0;
	c->encrypt = encrypt;
	/* It alone gives CTR a key before any IV (drbg_ctr.c); from 3.5 on it no longer takes its AES from us. */
	if (key != NULL && iv == NULL && !c->iv_set && algorithms[c->id].mode == MODE_CTR)
		c->generator = true;
	if (key != NULL)
		note_key(c, key, keylen);
	if (iv != NULL && ivlen <= sizeof(c->original)) {
		memmove(c->original, iv, ivlen);
		memcpy(c->iv, c->original, sizeof(c->iv));
		c->iv_set = true;
		c->original_lost = false;
	}
	note_params(c, params);
	skcipher_set_fast_path(c);
	return 1;
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

/* Has the software lane do an update. */
int skcipher_software_update(struct skcipher_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			     const unsigned char *in, size_t inl)
{
	if (c->uncounted_left == 1)
		count(c);
	c->uncounted_left--;
	if (out != NULL || mode(c)->update != UPDATE_MESSAGE) /* else it is only asked for the length */
		c->fed += inl;
	if (!c->forward(c->soft, out, outl, outsize, in, inl))
		return skcipher_software_failed(c);
	return 1;
}

/* Bytes of a block begun in software: held back, or done in a stream; a whole one if it may be the padding. */
static size_t held_back(const struct skcipher_ctx *c)
{
	const uint64_t fed = c->fed - c->fed_base;
	const size_t partial = mode(c)->update == UPDATE_UNIT ? 0 : (size_t)(fed % skcipher_block(c));

	return partial == 0 && fed > 0 && mode(c)->update == UPDATE_BLOCKS && !c->encrypt && c->padding
		       ? skcipher_block(c)
		       : partial;
}

static int set_padding(struct skcipher_ctx *c, unsigned int on)
{
	const OSSL_PARAM params[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, &on), OSSL_PARAM_END};

	return c->software->set_ctx_params(c->soft, params);
}

/*
 * Empties software's buffer by feeding it up to the next block boundary. It would hold back that block in decryption,
 * so padding is off meanwhile; a block held back already goes out together with the next one.
 */
static int flush_head(struct skcipher_ctx *c, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in,
		      size_t head)
{
	const bool unpad = mode(c)->update == UPDATE_BLOCKS && !c->encrypt && c->padding;
	int ok;

	if (unpad && !set_padding(c, 0))
		return skcipher_software_failed(c);
	ok = skcipher_software_update(c, out, outl, outsize, in, head);
	if (unpad && !set_padding(c, 1))
		ok = skcipher_software_failed(c);
	return ok;
}

/*
 * Learns the IV of the next block, where software has begun none. By pointer: OpenSSL 3.5 raises an error before it
 * tries a copy.
 */
int skcipher_fetch_iv(struct skcipher_ctx *c)
{
	const struct mode_run by_software = {.block = skcipher_block(c), .bytes = (size_t)(c->fed - c->fed_base)};
	void *iv = NULL;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_ptr(OSSL_CIPHER_PARAM_UPDATED_IV, &iv, 0), OSSL_PARAM_END};

	nothing_held(c);
	if (c->iv_ahead || mode(c)->next_iv == NULL)
		return 1;
	if (mode(c)->counts) {
		mode(c)->next_iv(c->iv, &by_software);
		return 1;
	}
	if (!c->software->get_ctx_params(c->soft, params) || iv == NULL)
		return 0;
	memcpy(c->iv, iv, algorithms[c->id].ivlen);
	return 1;
}

/* One request from c->iv on; c->iv is then the IV of what follows. */
static int kernel_request(struct skcipher_ctx *c, uint8_t *out, const uint8_t *in, size_t len)
{
	const size_t b = skcipher_block(c), at = len > b ? len - b : 0;
	const struct afalg_request r = {
		.encrypt = c->encrypt, .iv = c->iv, .ivlen = algorithms[c->id].ivlen, .in = in, .out = out, .len = len};
	uint8_t last_in[MODE_BLOCK_MAX];
	int err;

	memcpy(last_in, in + at, b); /* the output may take its place */
	err = afalg_session_crypt(&c->session, &r);
	if (err == 0 && mode(c)->next_iv != NULL) {
		const struct mode_run run = {
			.encrypt = c->encrypt, .block = b, .bytes = len, .last_in = last_in, .last_out = out + at};

		mode(c)->next_iv(c->iv, &run);
	}
	return err;
}

/* How many of `left` bytes the next request takes. */
static size_t request_length(const struct skcipher_ctx *c, size_t left)
{
	const uint64_t room = mode(c)->room == NULL ? UINT64_MAX : mode(c)->room(c->iv) * skcipher_block(c);
	const size_t most = room < AFALG_REQUEST_MAX ? (size_t)room : AFALG_REQUEST_MAX;

	return left < most ? left : most;
}

/*
 * Has the kernel do whole blocks, or a message, in requests of at most AFALG_REQUEST_MAX bytes. Returns how many bytes
 * it did; software is then behind by the IV, if there is one. What failed has left no trace in `out` that software will
 * not write over.
 */
size_t skcipher_kernel(struct skcipher_ctx *c, unsigned char *out, const unsigned char *in, size_t bytes)
{
	size_t done = 0;
	unsigned requests = 0;
	const struct afalg_keyed keyed = {
		.type = "skcipher", .algorithm = algorithms[c->id].kernel, .key = c->key, .keylen = c->keylen};
	int err = afalg_session_begin(&c->session, &keyed);
	const bool opened = err == 0;

	if (opened)
		route_opened(&c->provider->route, &c->use);
	while (err == 0 && done < bytes) {
		const size_t len = request_length(c, bytes - done);

		err = kernel_request(c, out + done, in + done, len);
		if (err == 0) {
			done += len;
			requests++;
		}
	}
	if (opened)
		afalg_session_end(&c->session, err == 0);
	route_outcome(&c->provider->route, &c->use, opened, err);
	if (err != 0)
		counters_fallback(c->id, bytes - done, err);
	if (done > 0) {
		counters_kernel(c->id, requests, done);
		c->iv_ahead = mode(c)->next_iv != NULL;
		nothing_held(c);
		skcipher_set_fast_path(c);
	}
	return done;
}

/* How a large update falls apart: software ends its block, the kernel does whole blocks, software has the rest. */
struct split {
	size_t head, head_out; /* bytes for software, and what it will put out for them */
	size_t bulk;           /* bytes for the kernel: whole blocks */
};

static struct split split_update(const struct skcipher_ctx *c, size_t inl)
{
	const size_t b = skcipher_block(c), held = held_back(c);
	struct split s = {0, 0, 0};

	if (mode(c)->update == UPDATE_UNIT) {
		s.bulk = inl >= b && inl <= AFALG_REQUEST_MAX ? inl : 0;
		return s;
	}
	if (mode(c)->update == UPDATE_MESSAGE) {
		s.bulk = inl > 2 * b ? (inl - b - 1) / b * b : 0;
		return s;
	}
	if (held > 0) {
		s.head = held < b ? b - held : b;
		s.head_out = mode(c)->update == UPDATE_BLOCKS ? b + held / b * b : s.head;
	}
	if (inl <= s.head)
		return (struct split){0, 0, 0};
	s.bulk = (inl - s.head) / b * b;
	/* The last block of a decryption may be the padding. */
	if (mode(c)->update == UPDATE_BLOCKS && !c->encrypt && c->padding && s.bulk == inl - s.head)
		s.bulk -= b;
	return s;
}

/* An update that was not for the fast path, but is software's. */
static int update_software(struct skcipher_ctx *c, unsigned char *out, size_t *outl, size_t outsize,
			   const unsigned char *in, size_t inl)
{
	int ok;

	if (!skcipher_catch_up(c))
		return 0;
	skcipher_set_fast_path(c); /* what decided it may have changed */
	ok = skcipher_software_update(c, out, outl, outsize, in, inl);
	if (ok)
		route_done(&c->provider->route, &c->use);
	return ok;
}

/*
 * An update that is large, or the first after the kernel has been at work. Not inline, so that the fast path saves no
 * registers.
 */
__attribute__((noinline)) static int update_large(struct skcipher_ctx *c, unsigned char *out, size_t *outl,
						  size_t outsize, const unsigned char *in, size_t inl)
{
	const bool can = kernel_able(c) && in != NULL && out != NULL;
	const struct split s = can ? split_update(c, inl) : (struct split){0, 0, 0};
	size_t head_out = 0, done, rest_out = 0;

	if (c->tls != 0 && kernel_able(c))
		return skcipher_tls_record(c, out, outl, outsize, in, inl);
	if (s.bulk == 0 || s.bulk < mode(c)->least || outsize < s.head_out + s.bulk || !skcipher_take(c, s.bulk))
		return update_software(c, out, outl, outsize, in, inl);
	if (s.head > 0 && !flush_head(c, out, &head_out, outsize, in, s.head))
		return 0;
	if (!skcipher_fetch_iv(c))
		return skcipher_software_failed(c);
	done = skcipher_kernel(c, out + head_out, in + s.head, s.bulk);
	in += s.head + done;
	inl -= s.head + done;
	done += head_out;
	if (inl > 0 &&
	    (!skcipher_catch_up(c) || !skcipher_software_update(c, out + done, &rest_out, outsize - done, in, inl)))
		return 0;
	*outl = done + rest_out;
	return 1;
}

static OSSL_FUNC_cipher_update_fn update;
static int update(void *ctx, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in, size_t inl)
{
	struct skcipher_ctx *c = ctx;

	/* The price of having two lanes. Software fails here for lack of a key or of bytes: nothing hangs on it. */
	if (inl < c->fast_below && c->uncounted_left > 1) {
		c->uncounted_left--;
		c->fed += inl;
		return c->forward(c->soft, out, outl, outsize, in, inl);
	}
	return update_large(c, out, outl, outsize, in, inl);
}

static OSSL_FUNC_cipher_final_fn final;
static int final(void *ctx, unsigned char *out, size_t *outl, size_t outsize)
{
	struct skcipher_ctx *c = ctx;

	if (!skcipher_catch_up(c))
		return 0;
	count(c);
	if (mode(c)->update == UPDATE_BLOCKS) /* a stream may go on after it, in the midst of a block */
		nothing_held(c);
	if (!c->software->final(c->soft, out, outl, outsize))
		return skcipher_software_failed(c);
	return 1;
}

/* EVP_Cipher(): whole blocks at once, past the buffer. A stream has none: there it is an update. */
static OSSL_FUNC_cipher_cipher_fn cipher;
static int cipher(void *ctx, unsigned char *out, size_t *outl, size_t outsize, const unsigned char *in, size_t inl)
{
	struct skcipher_ctx *c = ctx;
	size_t done = 0;

	if (mode(c)->update == UPDATE_STREAM && c->tls == 0)
		return update(ctx, out, outl, outsize, in, inl);
	if (inl >= c->fast_below && inl > 0 && inl % skcipher_block(c) == 0 && outsize >= inl && in != NULL &&
	    held_back(c) == 0 && kernel_able(c) && c->tls == 0 && mode(c)->update != UPDATE_UNIT &&
	    skcipher_take(c, inl)) {
		if (!skcipher_fetch_iv(c))
			return skcipher_software_failed(c);
		done = skcipher_kernel(c, out, in, inl);
		if (done == inl) {
			*outl = inl;
			return 1;
		}
	}
	if (!skcipher_catch_up(c))
		return 0;
	counters_software(c->id, 1, inl - done);
	if (!c->software->cipher(c->soft, out + done, outl, outsize - done, in + done, inl - done))
		return skcipher_software_failed(c);
	if (inl % skcipher_block(c) != 0) /* whatever becomes of a part of a block here */
		c->lost = true;
	skcipher_set_fast_path(c);
	*outl += done;
	return 1;
}

static OSSL_FUNC_cipher_get_ctx_params_fn get_ctx_params;
static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	struct skcipher_ctx *c = ctx;
	const size_t ivlen = algorithms[c->id].ivlen;
	OSSL_PARAM *p;

	if (!skcipher_catch_up(c) || !c->software->get_ctx_params(c->soft, params))
		return 0;
	p = c->original_lost ? OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_IV) : NULL;
	if (p == NULL || !OSSL_PARAM_modified(p)) /* not every cipher tells it */
		return 1;
	return p->data_type == OSSL_PARAM_OCTET_PTR ? OSSL_PARAM_set_octet_ptr(p, c->original, ivlen)
						    : OSSL_PARAM_set_octet_string(p, c->original, ivlen);
}

static OSSL_FUNC_cipher_set_ctx_params_fn set_ctx_params;
static int set_ctx_params(void *ctx, const OSSL_PARAM params[])
{
	struct skcipher_ctx *c = ctx;

	if (!skcipher_catch_up(c))
		return 0;
	if (!c->software->set_ctx_params(c->soft, params))
		return params_failed(c, params);
	note_params(c, params);
	skcipher_set_fast_path(c);
	return 1;
}

const OSSL_DISPATCH skcipher_functions[] = {
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
