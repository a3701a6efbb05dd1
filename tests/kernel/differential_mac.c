/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases of MACs, by EVP_MAC and by keys of EVP_PKEY. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "differential.h"
#include "support.h"

#define KEY_MAX 70000u

static uint8_t key[KEY_MAX + 8];

/* A random key of the case's length: that of the cipher, or anything, now and then more than the kernel would take. */
static size_t random_key(enum algorithm_id id)
{
	size_t length = algorithms[id].block == 0 ? 0 : below(50) == 0 ? KEY_MAX : below(301);

	if (algorithms[id].block == 0) {
		EVP_CIPHER *cipher = EVP_CIPHER_fetch(reference, algorithms[id].over, NULL);

		length = (size_t)EVP_CIPHER_get_key_length(cipher);
		EVP_CIPHER_free(cipher);
	}
	support_fill(&state, key, length);
	return length;
}

static OSSL_PARAM over(enum algorithm_id id)
{
	return OSSL_PARAM_construct_utf8_string(algorithms[id].block == 0 ? OSSL_MAC_PARAM_CIPHER
									  : OSSL_MAC_PARAM_DIGEST,
						(char *)(uintptr_t)algorithms[id].over, 0);
}

static void mac_init(EVP_MAC_CTX *const ctx[2], const uint8_t *with, size_t keylen)
{
	check(EVP_MAC_init(ctx[0], with, keylen, NULL) && EVP_MAC_init(ctx[1], with, keylen, NULL), "MAC init");
}

static void mac_run(enum algorithm_id id, EVP_MAC_CTX *const ctx[2], const uint8_t *input, size_t length, int copies)
{
	uint8_t mac[2][EVP_MAX_MD_SIZE];
	size_t size[2] = {0, 0};

	given[id] += length;
	while (length > 0) {
		size_t n = random_piece(length);

		if (copies > 0 && below(4) == 0) {
			EVP_MAC_CTX *twins[2] = {EVP_MAC_CTX_dup(ctx[0]), EVP_MAC_CTX_dup(ctx[1])};

			check(twins[0] != NULL && twins[1] != NULL, "MAC copy");
			copies--;
			mac_run(id, twins, input, length, 0);
			if (below(2) == 0) { /* another key is not the original's */
				mac_init(twins, key, random_key(id));
				mac_run(id, twins, input, length, 0);
			}
			EVP_MAC_CTX_free(twins[0]);
			EVP_MAC_CTX_free(twins[1]);
		}
		for (int i = 0; i < 2; i++)
			check(EVP_MAC_update(ctx[i], input, n), "MAC update");
		input += n;
		length -= n;
	}
	for (int i = 0; i < 2; i++)
		check(EVP_MAC_final(ctx[i], mac[i], &size[i], sizeof(mac[i])), "MAC final");
	check(size[0] == size[1] && memcmp(mac[0], mac[1], size[0]) == 0, "MAC");
}

/* Several messages: with the first key, the same again, others; some are abandoned in the middle. */
static void by_mac(enum algorithm_id id, const uint8_t *input)
{
	const OSSL_PARAM params[] = {over(id), OSSL_PARAM_END};
	OSSL_LIB_CTX *const contexts[2] = {ours, reference};
	EVP_MAC_CTX *ctx[2];

	for (int i = 0; i < 2; i++) {
		EVP_MAC *mac = EVP_MAC_fetch(contexts[i], algorithms[id].offered, NULL);

		check(mac != NULL, "fetch");
		ctx[i] = EVP_MAC_CTX_new(mac);
		check(EVP_MAC_CTX_set_params(ctx[i], params), "MAC name");
		EVP_MAC_free(mac);
	}
	mac_init(ctx, key, random_key(id));
	do {
		if (below(3) == 0) {
			const size_t abandoned = random_length();

			check(EVP_MAC_update(ctx[0], input, abandoned) && EVP_MAC_update(ctx[1], input, abandoned),
			      "MAC update");
			mac_init(ctx, NULL, 0);
		}
		mac_run(id, ctx, input, random_length(), 1);
		if (below(2) == 0)
			mac_init(ctx, NULL, 0);
		else
			mac_init(ctx, key, random_key(id));
	} while (below(2) != 0);
	EVP_MAC_CTX_free(ctx[0]);
	EVP_MAC_CTX_free(ctx[1]);
}

static EVP_PKEY *make_pkey(OSSL_LIB_CTX *context, enum algorithm_id id, size_t keylen)
{
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(context, algorithms[id].offered, NULL);
	const OSSL_PARAM secret = OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PRIV_KEY, key, keylen);
	const OSSL_PARAM params[] = {secret, over(id), OSSL_PARAM_END}, hmac[] = {secret, OSSL_PARAM_END};
	EVP_PKEY *pkey = NULL;

	check(EVP_PKEY_keygen_init(c) && EVP_PKEY_CTX_set_params(c, algorithms[id].block == 0 ? params : hmac) &&
		      EVP_PKEY_generate(c, &pkey),
	      "key of EVP_PKEY");
	EVP_PKEY_CTX_free(c);
	return pkey;
}

/* As TLS does with the MACs of its records: a context with a key, a copy for each message. */
static void by_pkey(enum algorithm_id id, const uint8_t *input)
{
	OSSL_LIB_CTX *const contexts[2] = {ours, reference};
	const size_t random = random_key(id), keylen = random == 0 ? 1 : random; /* EVP_PKEY takes no empty keys */
	const size_t length = random_length(), split = below(length + 1);
	const char *digest = algorithms[id].block == 0 ? NULL : algorithms[id].over;
	uint8_t mac[2][EVP_MAX_MD_SIZE];
	size_t size[2];

	for (int i = 0; i < 2; i++) {
		EVP_PKEY *pkey = make_pkey(contexts[i], id, keylen);
		EVP_MD_CTX *master = EVP_MD_CTX_new();

		check(EVP_DigestSignInit_ex(master, NULL, digest, contexts[i], NULL, pkey, NULL), "sign init");
		for (int record = 0; record < 2; record++) {
			EVP_MD_CTX *c = EVP_MD_CTX_new();

			size[i] = sizeof(mac[i]);
			check(EVP_MD_CTX_copy_ex(c, master) && EVP_DigestSignUpdate(c, input, split) &&
				      EVP_DigestSignUpdate(c, input + split, length - split) &&
				      EVP_DigestSignFinal(c, mac[i], &size[i]),
			      "sign");
			EVP_MD_CTX_free(c);
		}
		EVP_MD_CTX_free(master);
		EVP_PKEY_free(pkey);
	}
	check(size[0] == size[1] && memcmp(mac[0], mac[1], size[0]) == 0, "MAC by EVP_PKEY");
	given[id] += 2 * length;
}

void mac_case(enum algorithm_id id)
{
	uint8_t *input = malloc(LENGTH_MAX + 8);

	check(input != NULL, "memory");
	support_fill(&state, input, LENGTH_MAX);
	if (below(4) == 0)
		by_pkey(id, input);
	else
		by_mac(id, input);
	free(input);
}
