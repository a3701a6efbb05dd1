/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 300000

/* The settings that matter: always the kernel, never, and where single updates are on either side of a threshold. */
static const char *const settings[] = {
	"policy = kernel\ncounters = off\n",
	"policy = software\ncounters = off\n",
	"policy = speed\ncounters = off\nthresholds = AES-128-CBC:64,AES-192-CBC:64,AES-256-CBC:64,"
	"AES-128-ECB:64,AES-128-CTR:64,AES-128-OFB:64,AES-128-CFB:64,AES-128-XTS:64,AES-128-CBC-CTS:64,ChaCha20:64,"
	"DES-CBC:64,BF-CBC:64,CAST5-CBC:64,SEED-CBC:64\n",
};

struct lib lib;
uint8_t *scratch, *ciphertext;

static void same(scenario *run, const char *what, enum algorithm_id id, struct scene s)
{
	EVP_CIPHER *ours = cipher_of(&lib, id, "afalgprov"), *theirs = cipher_of(&lib, id, "default");
	struct trace expected;

	s.cipher = theirs;
	trace_open(&s.trace);
	run(&s);
	trace_close(&s.trace);
	expected = s.trace;
	s.cipher = ours;
	trace_open(&s.trace);
	run(&s);
	trace_close(&s.trace);
	trace_compare(&expected, &s.trace, "%s, %s, %s, padding %d, %zu %zu %zu", what, algorithms[id].name,
		      s.encrypt ? "encrypt" : "decrypt", s.padding, s.a, s.b, s.c);
	EVP_CIPHER_free(ours);
	EVP_CIPHER_free(theirs);
}

void same_everywhere(scenario *run, const char *what, enum algorithm_id id, size_t a, size_t b, size_t c)
{
	for (unsigned i = 0; i < 4; i++)
		same(run, what, id, (struct scene){.encrypt = i & 1, .padding = i & 2, .a = a, .b = b, .c = c});
}

void same_in_each_mode(scenario *run, const char *what, size_t a, size_t b, size_t c)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (first_of_mode(id))
			same_everywhere(run, what, (enum algorithm_id)id, a, b, c);
}

EVP_CIPHER_CTX *begin(struct scene *s)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

	trace_number(&s->trace, "init", EVP_CipherInit_ex2(c, s->cipher, pattern(), IV, s->encrypt, NULL));
	trace_number(&s->trace, "padding", EVP_CIPHER_CTX_set_padding(c, s->padding));
	return c;
}

void update(struct scene *s, EVP_CIPHER_CTX *c, const uint8_t *in, size_t n)
{
	int outl = -1;
	int ok = EVP_CipherUpdate(c, scratch, &outl, in, (int)n);

	trace_number(&s->trace, "update", ok);
	trace_number(&s->trace, "length", outl);
	if (!ok || outl < 0)
		outl = 0;
	trace_bytes(&s->trace, "output", scratch, (size_t)outl);
	trace_errors(&s->trace);
}

void final(struct scene *s, EVP_CIPHER_CTX *c)
{
	int outl = -1, ok = EVP_CipherFinal_ex(c, scratch, &outl);

	trace_number(&s->trace, "final", ok);
	trace_bytes(&s->trace, "output", scratch, ok ? (size_t)outl : 0);
	trace_errors(&s->trace);
}

void ivs(struct scene *s, EVP_CIPHER_CTX *c)
{
	uint8_t iv[EVP_MAX_IV_LENGTH] = {0};

	trace_number(&s->trace, "original", EVP_CIPHER_CTX_get_original_iv(c, iv, sizeof(iv)));
	trace_bytes(&s->trace, "original", iv, sizeof(iv));
	trace_number(&s->trace, "updated", EVP_CIPHER_CTX_get_updated_iv(c, iv, sizeof(iv)));
	trace_bytes(&s->trace, "updated", iv, sizeof(iv));
	trace_errors(&s->trace);
}

/* Input that decrypts to something with a right padding: `n` bytes, whole blocks, of the default provider. */
const uint8_t *input(const struct scene *s, size_t n)
{
	EVP_CIPHER *theirs = EVP_CIPHER_fetch(lib.context, EVP_CIPHER_get0_name(s->cipher), "provider!=afalgprov");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int outl, rest;

	if (s->encrypt || n == 0 || n % 16 != 0 || EVP_CIPHER_get_block_size(s->cipher) == 1 || one_update(s->cipher)) {
		memcpy(ciphertext, pattern(), n);
	} else {
		assert_true(EVP_EncryptInit_ex2(c, theirs, pattern(), IV, NULL));
		EVP_CIPHER_CTX_set_padding(c, s->padding);
		assert_true(EVP_EncryptUpdate(c, ciphertext, &outl, pattern(), (int)(n - (s->padding ? 5 : 0))));
		assert_true(EVP_EncryptFinal_ex(c, ciphertext + outl, &rest));
		assert_int_equal(outl + rest, n);
	}
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(theirs);
	return ciphertext;
}

static int setup(void **state)
{
	(void)state;
	scratch = malloc(ROOM);
	ciphertext = malloc(ROOM);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	lib_close(&lib);
	free(scratch);
	free(ciphertext);
	return 0;
}

static int setup_with(unsigned which)
{
	lib_open(&lib, settings[which]);
	return setup(NULL);
}

int setup_kernel(void **state)
{
	(void)state;
	return setup_with(0);
}

int setup_software(void **state)
{
	(void)state;
	return setup_with(1);
}

int setup_threshold(void **state)
{
	(void)state;
	return setup_with(2);
}
