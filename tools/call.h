/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of one algorithm through EVP, over and over: what is measured. */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../provider/algorithms.h"

#define CALL_SIZE_MAX 1048576u /* bytes of a call */
#define CALL_AAD 13u           /* of an AEAD's message, as a TLS record has */
#define CALL_TAG 16u

/* What the calls work on, for those who measure other ways beside. Of the key as much as the algorithm takes. */
extern uint8_t call_input[CALL_SIZE_MAX + CALL_TAG], call_output[CALL_SIZE_MAX + 64], call_aad[CALL_AAD];
extern const uint8_t call_iv[16], call_key[65];

/* Where an implementation comes from. */
struct call_source {
	OSSL_LIB_CTX *context;
	const char *query; /* of properties, or null */
	ENGINE *engine;    /* in place of the context's implementation; else null */
};

struct call {
	const struct algorithm *algorithm;
	const struct call_source *source;
	bool anew; /* a new context for each call */
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *cipher_ctx;
	EVP_MD *md;
	EVP_MAC *mac;
	EVP_MAC_CTX *mac_ctx;
	size_t key_length;
};

/* Fetches what the calls need, and no more; false: the source does not have it. To be closed in either case. */
bool call_fetch(struct call *c, const struct call_source *source, enum algorithm_id id, bool anew);

/* Makes the contexts, with a key in them; false: it failed, OpenSSL's error queue tells why. */
bool call_begin(struct call *c);
void call_close(struct call *c);

/*
 * Does `n` calls of `size` bytes: updates of a cipher; whole messages of an AEAD, a digest or a MAC. False: one failed,
 * OpenSSL's error queue tells why.
 */
bool call_run(struct call *c, size_t size, unsigned long n);

#endif
