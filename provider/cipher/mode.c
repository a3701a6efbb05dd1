/* SPDX-License-Identifier: Apache-2.0 */
#include "mode.h"

#include <string.h>

/* CBC, and CFB with a register of a whole block: the last block of ciphertext. */
static void iv_ciphertext(uint8_t *iv, const struct mode_run *run)
{
	memcpy(iv, run->encrypt ? run->last_out : run->last_in, run->block);
}

/* OFB: the last block of key stream. */
static void iv_keystream(uint8_t *iv, const struct mode_run *run)
{
	for (size_t i = 0; i < run->block; i++)
		iv[i] = run->last_in[i] ^ run->last_out[i];
}

/* CTR: the counter is the whole IV, big-endian (NIST SP 800-38A, B.1, as OpenSSL and the kernel do it). */
static void iv_counter(uint8_t *iv, const struct mode_run *run)
{
	uint64_t carry = run->bytes / run->block;

	for (size_t i = run->block; i-- > 0 && carry > 0; carry >>= 8) {
		carry += iv[i];
		iv[i] = (uint8_t)carry;
	}
}

/* ChaCha20: OpenSSL counts in the first 64 bits, little-endian; the rest is the nonce. */
static void iv_chacha(uint8_t *iv, const struct mode_run *run)
{
	uint64_t carry = run->bytes / run->block;

	for (size_t i = 0; i < sizeof(carry) && carry > 0; i++, carry >>= 8) {
		carry += iv[i];
		iv[i] = (uint8_t)carry;
	}
}

/* The kernel counts in the first 32 bits, without a carry: a request ends where they run over. */
static uint64_t room_chacha(const uint8_t *iv)
{
	const uint32_t counter = (uint32_t)iv[3] << 24 | (uint32_t)iv[2] << 16 | (uint32_t)iv[1] << 8 | iv[0];

	return (uint64_t)UINT32_MAX + 1 - counter;
}

const struct mode modes[] = {
	/* OpenSSL 3.0's random generator encrypts up to three blocks at a time with the application's AES (drbg_ctr.c).
	 */
	[MODE_ECB] = {.update = UPDATE_BLOCKS, .least = 64},
	[MODE_CBC] = {.update = UPDATE_BLOCKS, .restores_iv = true, .next_iv = iv_ciphertext},
	[MODE_CTR] = {.next_iv = iv_counter},
	[MODE_OFB] = {.restores_iv = true, .next_iv = iv_keystream},
	[MODE_CFB] = {.restores_iv = true, .next_iv = iv_ciphertext},
	[MODE_XTS] = {.update = UPDATE_UNIT},
	[MODE_CTS] = {.update = UPDATE_MESSAGE, .restores_iv = true, .next_iv = iv_ciphertext},
	[MODE_CHACHA20] = {.counts = true, .next_iv = iv_chacha, .room = room_chacha},
};
