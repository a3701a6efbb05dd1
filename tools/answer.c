/* SPDX-License-Identifier: Apache-2.0 */
/* One algorithm: the results through the kernel beside those of the default provider. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

#define LENGTH 4096
#define OURS "provider=afalgprov"

static unsigned char key[64], iv[16], aad[20], input[LENGTH];

/* Neither secret nor random: who reads the report can do the same. */
static void fill(void)
{
	for (size_t i = 0; i < sizeof(input); i++)
		input[i] = (unsigned char)(i % 251);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (unsigned char)(i * 7 + 1);
	for (size_t i = 0; i < sizeof(iv); i++)
		iv[i] = (unsigned char)(i + 100);
	memcpy(aad, input, sizeof(aad));
}

/*** Ciphers ***/

/* A message; `tag` is null unless it is an AEAD. Returns the bytes of output, negative where it fails. */
static int message(const EVP_CIPHER *cipher, int encrypt, const unsigned char *in, int length, unsigned char *out,
		   unsigned char *tag)
{
	const int ccm = EVP_CIPHER_get_mode(cipher) == EVP_CIPH_CCM_MODE;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0, rest = 0, ok;

	ok = ctx != NULL && EVP_CipherInit_ex2(ctx, cipher, NULL, NULL, encrypt, NULL);
	if (tag != NULL) {
		ok = ok && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL) > 0;
		if (ok && (ccm || !encrypt))
			ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 16, encrypt ? NULL : tag) > 0;
	}
	ok = ok && EVP_CipherInit_ex2(ctx, NULL, key, iv, encrypt, NULL);
	if (tag != NULL) {
		if (ccm)
			ok = ok && EVP_CipherUpdate(ctx, NULL, &n, NULL, length);
		ok = ok && EVP_CipherUpdate(ctx, NULL, &n, aad, sizeof(aad));
	}
	ok = ok && EVP_CipherUpdate(ctx, out, &n, in, length);
	if (!ccm)
		ok = ok && EVP_CipherFinal_ex(ctx, out + n, &rest);
	if (tag != NULL && encrypt)
		ok = ok && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, 16, tag) > 0;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? n + rest : -1;
}

static const char *compare_cipher(const EVP_CIPHER *ours, const EVP_CIPHER *theirs, bool aead)
{
	static unsigned char a[LENGTH + 32], b[LENGTH + 32], back[LENGTH + 64];
	unsigned char tag_a[16], tag_b[16];
	const int n = message(ours, 1, input, LENGTH, a, aead ? tag_a : NULL);

	if (n < 0)
		return "encryption fails";
	if (message(theirs, 1, input, LENGTH, b, aead ? tag_b : NULL) != n || memcmp(a, b, (size_t)n) != 0)
		return "the ciphertext is wrong";
	if (aead && memcmp(tag_a, tag_b, sizeof(tag_a)) != 0)
		return "the tag is wrong";
	if (message(ours, 0, a, n, back, aead ? tag_a : NULL) != LENGTH || memcmp(back, input, LENGTH) != 0)
		return "decryption fails or is wrong";
	return NULL;
}

static const char *check_cipher(OSSL_LIB_CTX *ctx, OSSL_LIB_CTX *reference, enum algorithm_id id)
{
	EVP_CIPHER *ours = EVP_CIPHER_fetch(ctx, algorithms[id].name, OURS);
	EVP_CIPHER *theirs = EVP_CIPHER_fetch(reference, algorithms[id].name, NULL);
	const char *wrong = NULL;

	if (ours == NULL && theirs != NULL)
		wrong = "afalgprov does not offer it";
	else if (ours != NULL && theirs != NULL)
		wrong = compare_cipher(ours, theirs, algorithms[id].kind == KIND_AEAD);
	EVP_CIPHER_free(ours);
	EVP_CIPHER_free(theirs);
	return theirs == NULL ? "" : wrong;
}

/*** Digests, MACs ***/

static const char *check_digest(OSSL_LIB_CTX *ctx, OSSL_LIB_CTX *reference, enum algorithm_id id)
{
	unsigned char a[EVP_MAX_MD_SIZE], b[EVP_MAX_MD_SIZE];
	EVP_MD *ours = EVP_MD_fetch(ctx, algorithms[id].name, OURS);
	EVP_MD *theirs = EVP_MD_fetch(reference, algorithms[id].name, NULL);
	const char *wrong = NULL;
	unsigned n = 0;

	if (theirs == NULL || !EVP_Digest(input, LENGTH, b, &n, theirs, NULL))
		wrong = "";
	else if (ours == NULL)
		wrong = "afalgprov does not offer it";
	else if (!EVP_Digest(input, LENGTH, a, &n, ours, NULL))
		wrong = "the digest fails";
	else if (memcmp(a, b, n) != 0)
		wrong = "the digest is wrong";
	EVP_MD_free(ours);
	EVP_MD_free(theirs);
	return wrong;
}

static bool mac(OSSL_LIB_CTX *lib, const char *query, enum algorithm_id id, size_t key_length, unsigned char *out,
		size_t *n)
{
	const bool cmac = strcmp(algorithms[id].offered, "CMAC") == 0;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(cmac ? OSSL_MAC_PARAM_CIPHER : OSSL_MAC_PARAM_DIGEST,
								(char *)algorithms[id].over, 0),
			       OSSL_PARAM_construct_end()};
	EVP_MAC *m = EVP_MAC_fetch(lib, algorithms[id].offered, query);
	EVP_MAC_CTX *ctx = m == NULL ? NULL : EVP_MAC_CTX_new(m);
	const bool ok = ctx != NULL && EVP_MAC_init(ctx, key, key_length, params) &&
			EVP_MAC_update(ctx, input, LENGTH) && EVP_MAC_final(ctx, out, n, EVP_MAX_MD_SIZE);

	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(m);
	return ok;
}

static const char *check_mac(OSSL_LIB_CTX *ctx, OSSL_LIB_CTX *reference, enum algorithm_id id)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(reference, algorithms[id].over, NULL);
	const size_t key_length = cipher != NULL ? (size_t)EVP_CIPHER_get_key_length(cipher) : 32;
	unsigned char a[EVP_MAX_MD_SIZE], b[EVP_MAX_MD_SIZE];
	size_t n = 0, m = 0;

	EVP_CIPHER_free(cipher);
	if (!mac(reference, NULL, id, key_length, b, &m))
		return "";
	if (!mac(ctx, OURS, id, key_length, a, &n))
		return "the MAC fails";
	return n == m && memcmp(a, b, n) == 0 ? NULL : "the MAC is wrong";
}

/*** Random numbers ***/

static const char *check_random(OSSL_LIB_CTX *lib, enum algorithm_id id)
{
	unsigned char a[32] = {0}, b[32] = {0};
	EVP_RAND *rand = EVP_RAND_fetch(lib, algorithms[id].name, OURS);
	EVP_RAND_CTX *ctx = rand == NULL ? NULL : EVP_RAND_CTX_new(rand, NULL);
	const bool ok = ctx != NULL && EVP_RAND_instantiate(ctx, 128, 0, NULL, 0, NULL) &&
			EVP_RAND_generate(ctx, a, sizeof(a), 128, 0, NULL, 0) &&
			EVP_RAND_generate(ctx, b, sizeof(b), 128, 0, NULL, 0);

	EVP_RAND_CTX_free(ctx);
	EVP_RAND_free(rand);
	if (!ok)
		return "it gives no random numbers";
	return memcmp(a, b, sizeof(a)) != 0 ? NULL : "it gives the same bytes twice";
}

const char *answer_check(OSSL_LIB_CTX *ours, OSSL_LIB_CTX *reference, enum algorithm_id id)
{
	const char *wrong = NULL;

	fill();
	switch (algorithms[id].kind) {
	case KIND_SKCIPHER:
	case KIND_AEAD:
		wrong = check_cipher(ours, reference, id);
		break;
	case KIND_HASH:
		wrong = check_digest(ours, reference, id);
		break;
	case KIND_MAC:
		wrong = check_mac(ours, reference, id);
		break;
	case KIND_RNG:
		wrong = check_random(ours, id);
		break;
	}
	ERR_clear_error();
	return wrong;
}
