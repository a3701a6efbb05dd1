/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of algorithms. To add an algorithm, add a row. */
#ifndef PROVIDER_ALGORITHMS_H
#define PROVIDER_ALGORITHMS_H

#include <stddef.h>

enum cipher_mode { MODE_ECB, MODE_CBC, MODE_CTR, MODE_OFB, MODE_CFB, MODE_XTS };

/*
 * CIPHER(identifier, OpenSSL name, kernel name, mode, block bytes, IV bytes)
 * DIGEST(identifier, OpenSSL name, kernel name, digest bytes)
 *
 * The OpenSSL name is the first of the default provider's; its aliases and object identifiers are taken over from
 * there, and so are all other properties. A row that the installed OpenSSL lacks is not offered.
 */
#define ALGORITHMS(CIPHER, DIGEST)                                                      \
	CIPHER(AES_128_ECB, "AES-128-ECB", "ecb(aes)", MODE_ECB, 16, 0)                 \
	CIPHER(AES_128_CBC, "AES-128-CBC", "cbc(aes)", MODE_CBC, 16, 16)                \
	CIPHER(AES_128_CTR, "AES-128-CTR", "ctr(aes)", MODE_CTR, 16, 16)                \
	CIPHER(AES_128_OFB, "AES-128-OFB", "ofb(aes)", MODE_OFB, 16, 16)                \
	CIPHER(AES_128_CFB, "AES-128-CFB", "cfb(aes)", MODE_CFB, 16, 16)                \
	CIPHER(AES_192_ECB, "AES-192-ECB", "ecb(aes)", MODE_ECB, 16, 0)                 \
	CIPHER(AES_192_CBC, "AES-192-CBC", "cbc(aes)", MODE_CBC, 16, 16)                \
	CIPHER(AES_192_CTR, "AES-192-CTR", "ctr(aes)", MODE_CTR, 16, 16)                \
	CIPHER(AES_192_OFB, "AES-192-OFB", "ofb(aes)", MODE_OFB, 16, 16)                \
	CIPHER(AES_192_CFB, "AES-192-CFB", "cfb(aes)", MODE_CFB, 16, 16)                \
	CIPHER(AES_256_ECB, "AES-256-ECB", "ecb(aes)", MODE_ECB, 16, 0)                 \
	CIPHER(AES_256_CBC, "AES-256-CBC", "cbc(aes)", MODE_CBC, 16, 16)                \
	CIPHER(AES_256_CTR, "AES-256-CTR", "ctr(aes)", MODE_CTR, 16, 16)                \
	CIPHER(AES_256_OFB, "AES-256-OFB", "ofb(aes)", MODE_OFB, 16, 16)                \
	CIPHER(AES_256_CFB, "AES-256-CFB", "cfb(aes)", MODE_CFB, 16, 16)                \
	CIPHER(AES_128_XTS, "AES-128-XTS", "xts(aes)", MODE_XTS, 16, 16)                \
	CIPHER(AES_256_XTS, "AES-256-XTS", "xts(aes)", MODE_XTS, 16, 16)                \
	CIPHER(DES_EDE3_ECB, "DES-EDE3-ECB", "ecb(des3_ede)", MODE_ECB, 8, 0)           \
	CIPHER(DES_EDE3_CBC, "DES-EDE3-CBC", "cbc(des3_ede)", MODE_CBC, 8, 8)           \
	CIPHER(CAMELLIA_128_ECB, "CAMELLIA-128-ECB", "ecb(camellia)", MODE_ECB, 16, 0)  \
	CIPHER(CAMELLIA_128_CBC, "CAMELLIA-128-CBC", "cbc(camellia)", MODE_CBC, 16, 16) \
	CIPHER(CAMELLIA_128_CTR, "CAMELLIA-128-CTR", "ctr(camellia)", MODE_CTR, 16, 16) \
	CIPHER(CAMELLIA_192_ECB, "CAMELLIA-192-ECB", "ecb(camellia)", MODE_ECB, 16, 0)  \
	CIPHER(CAMELLIA_192_CBC, "CAMELLIA-192-CBC", "cbc(camellia)", MODE_CBC, 16, 16) \
	CIPHER(CAMELLIA_192_CTR, "CAMELLIA-192-CTR", "ctr(camellia)", MODE_CTR, 16, 16) \
	CIPHER(CAMELLIA_256_ECB, "CAMELLIA-256-ECB", "ecb(camellia)", MODE_ECB, 16, 0)  \
	CIPHER(CAMELLIA_256_CBC, "CAMELLIA-256-CBC", "cbc(camellia)", MODE_CBC, 16, 16) \
	CIPHER(CAMELLIA_256_CTR, "CAMELLIA-256-CTR", "ctr(camellia)", MODE_CTR, 16, 16) \
	CIPHER(ARIA_128_ECB, "ARIA-128-ECB", "ecb(aria)", MODE_ECB, 16, 0)              \
	CIPHER(ARIA_128_CBC, "ARIA-128-CBC", "cbc(aria)", MODE_CBC, 16, 16)             \
	CIPHER(ARIA_128_CTR, "ARIA-128-CTR", "ctr(aria)", MODE_CTR, 16, 16)             \
	CIPHER(ARIA_192_ECB, "ARIA-192-ECB", "ecb(aria)", MODE_ECB, 16, 0)              \
	CIPHER(ARIA_192_CBC, "ARIA-192-CBC", "cbc(aria)", MODE_CBC, 16, 16)             \
	CIPHER(ARIA_192_CTR, "ARIA-192-CTR", "ctr(aria)", MODE_CTR, 16, 16)             \
	CIPHER(ARIA_256_ECB, "ARIA-256-ECB", "ecb(aria)", MODE_ECB, 16, 0)              \
	CIPHER(ARIA_256_CBC, "ARIA-256-CBC", "cbc(aria)", MODE_CBC, 16, 16)             \
	CIPHER(ARIA_256_CTR, "ARIA-256-CTR", "ctr(aria)", MODE_CTR, 16, 16)             \
	CIPHER(SM4_ECB, "SM4-ECB", "ecb(sm4)", MODE_ECB, 16, 0)                         \
	CIPHER(SM4_CBC, "SM4-CBC", "cbc(sm4)", MODE_CBC, 16, 16)                        \
	CIPHER(SM4_CTR, "SM4-CTR", "ctr(sm4)", MODE_CTR, 16, 16)                        \
	CIPHER(SM4_OFB, "SM4-OFB", "ofb(sm4)", MODE_OFB, 16, 16)                        \
	CIPHER(SM4_CFB, "SM4-CFB", "cfb(sm4)", MODE_CFB, 16, 16)                        \
	DIGEST(MD5, "MD5", "md5", 16)                                                   \
	DIGEST(SHA1, "SHA1", "sha1", 20)                                                \
	DIGEST(SHA2_224, "SHA2-224", "sha224", 28)                                      \
	DIGEST(SHA2_256, "SHA2-256", "sha256", 32)                                      \
	DIGEST(SHA2_384, "SHA2-384", "sha384", 48)                                      \
	DIGEST(SHA2_512, "SHA2-512", "sha512", 64)                                      \
	DIGEST(SHA3_224, "SHA3-224", "sha3-224", 28)                                    \
	DIGEST(SHA3_256, "SHA3-256", "sha3-256", 32)                                    \
	DIGEST(SHA3_384, "SHA3-384", "sha3-384", 48)                                    \
	DIGEST(SHA3_512, "SHA3-512", "sha3-512", 64)                                    \
	DIGEST(RIPEMD_160, "RIPEMD-160", "rmd160", 20)                                  \
	DIGEST(SM3, "SM3", "sm3", 32)                                                   \
	DIGEST(BLAKE2B_512, "BLAKE2B-512", "blake2b-512", 64)

#define ALGORITHM_ENUM_CIPHER(id, name, kernel, mode, block, ivlen) ALG_##id,
#define ALGORITHM_ENUM_DIGEST(id, name, kernel, size) ALG_##id,
enum algorithm_id { ALGORITHMS(ALGORITHM_ENUM_CIPHER, ALGORITHM_ENUM_DIGEST) ALGORITHM_COUNT };
#undef ALGORITHM_ENUM_CIPHER
#undef ALGORITHM_ENUM_DIGEST

enum algorithm_kind { KIND_SKCIPHER, KIND_HASH };

struct algorithm {
	enum algorithm_kind kind;
	const char *name;
	const char *kernel;
	enum cipher_mode mode; /* skcipher */
	size_t block;          /* skcipher: bytes; requests are made of whole ones */
	size_t ivlen;          /* skcipher: bytes */
	size_t size;           /* hash: bytes of the digest */
};

extern const struct algorithm algorithms[ALGORITHM_COUNT];

/* The AF_ALG socket type of a kind: "skcipher", "hash". */
const char *algorithm_type(enum algorithm_kind kind);

/* The row of an OpenSSL name, any case; -1: none. */
int algorithm_find(const char *name, size_t length);

#endif
