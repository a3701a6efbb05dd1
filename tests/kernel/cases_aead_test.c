/* SPDX-License-Identifier: Apache-2.0 */
/* GCM, CCM and ChaCha20-Poly1305: what users of kernel crypto ran into, for every such cipher of the default provider.
 */
#include "cases.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROWN 32640u
#define TAG 16u

static struct aead {
	const char *name;
	bool in_few, ccm;
} aeads[] = {
	{"AES-128-GCM", true, false},   {"AES-192-GCM", false, false},  {"AES-256-GCM", false, false},
	{"ARIA-128-GCM", false, false}, {"ARIA-256-GCM", false, false}, {"SM4-GCM", false, false},
	{"AES-128-CCM", true, true},    {"AES-192-CCM", false, true},   {"AES-256-CCM", false, true},
	{"ARIA-128-CCM", false, true},  {"SM4-CCM", false, true},       {"ChaCha20-Poly1305", true, false},
};
static size_t count;

static const struct pieces five_eight = {"5+8", 2, {5, 8}, false};

/* Leaves those that are to be tested in the table. */
static void list_aeads(void)
{
	for (size_t i = 0; i < sizeof(aeads) / sizeof(*aeads); i++) {
		EVP_CIPHER *c = few && !aeads[i].in_few ? NULL : EVP_CIPHER_fetch(reference, aeads[i].name, NULL);

		if (c != NULL)
			aeads[count++] = aeads[i];
		EVP_CIPHER_free(c);
	}
	ERR_clear_error();
}

static struct job job_of(const struct aead *a)
{
	return (struct job){.cipher = a->name,
			    .key = key_a,
			    .iv = zero_iv,
			    .encrypt = 1,
			    .ivlen = 12,
			    .taglen = TAG,
			    .aad = pattern,
			    .aadlen = 13};
}

static struct share share_of(const char *cipher)
{
	EVP_CIPHER *c = fetch_cipher(ours, cipher);
	struct share s = share_begin(cipher, EVP_CIPHER_get0_provider(c));

	EVP_CIPHER_free(c);
	return s;
}

static bool is_ccm(const char *cipher)
{
	return strstr(cipher, "CCM") != NULL;
}

/* One published vector, encrypted whole and in pieces, decrypted in place with the tag first and last. */
static void vector_holds(const struct vector *v)
{
	struct vector_bytes key = vector_bytes(v->key), iv = vector_bytes(v->iv), aad = vector_bytes(v->aad),
			    in = vector_bytes(v->in), tag = vector_bytes(v->tag);
	struct job j = {.cipher = v->algorithm,
			.key = key.data,
			.iv = iv.data,
			.encrypt = 1,
			.ivlen = iv.len,
			.taglen = tag.len,
			.aad = aad.data,
			.aadlen = aad.len,
			.tag = tag.data};
	struct outcome there, back;

	for (int cut = 0; cut < (is_ccm(v->algorithm) ? 1 : 2); cut++) {
		j.encrypt = 1;
		j.in_place = false;
		j.pieces = cut ? &chunks : NULL;
		j.aad_pieces = !cut ? NULL : aad.len < 1000 ? &five_eight : &chunks;
		job_run(ours, &j, in.data, in.len, &there);
		if (!there.good || !vector_equals(reference, v->out, there.out, there.len) ||
		    memcmp(there.tag, tag.data, tag.len) != 0)
			fail_msg("%s: wrong %s", v->id, cut ? "in pieces" : "as a whole");
		j.encrypt = 0;
		j.in_place = true;
		j.tag_time = cut ? TAG_AFTER_DATA : TAG_BEFORE_DATA;
		job_run(ours, &j, there.out, there.len, &back);
		if (!back.good || back.len != in.len || memcmp(back.out, in.data, in.len) != 0)
			fail_msg("%s: not decrypted %s", v->id, cut ? "in pieces" : "as a whole");
		outcome_free(&there);
		outcome_free(&back);
	}
	free(key.data);
	free(iv.data);
	free(aad.data);
	free(in.data);
	free(tag.data);
}

static void vectors_hold(void **unused)
{
	(void)unused;
	for (const struct vector *v = vectors; v < vectors + vector_count; v++) {
		EVP_CIPHER *c = NULL;

		if (v->kind != VECTOR_AEAD || !vector_chosen(v))
			continue;
		c = EVP_CIPHER_fetch(reference, v->algorithm, NULL);
		if (c != NULL)
			vector_holds(v);
		else
			print_message("%s: OpenSSL has no %s\n", v->id, v->algorithm);
		EVP_CIPHER_free(c);
	}
	ERR_clear_error();
}

/* The kernel does a message of one update, as a TLS record is, there and back. */
static void kernel_works(void **unused)
{
	static const size_t lengths[] = {64, 1400, 16384};

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const struct share s = share_of(a->name);
			struct job j = job_of(a);

			job_compare(&j, pattern, lengths[i], true);
			j.encrypt = 0;
			job_compare_back(j, pattern, lengths[i]);
			share_end(&s, 2 * lengths[i]);
		}
	}
}

/* D03, C04: data and header in pieces of any kind, empty ones too. */
static void any_pieces(void **unused)
{
	static const struct pieces *const data[] = {&whole, &chunks, &growing, &with_empty}, *const header[] = {
												     &whole,
												     &five_eight,
												     &with_empty,
												     &growing};

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (unsigned i = 0; i < 16 && !a->ccm; i++) {
			struct job j = job_of(a);

			j.pieces = data[i % 4];
			j.aad_pieces = header[i / 4];
			j.aadlen = 1000;
			job_compare(&j, pattern, GROWN, true);
			j.encrypt = 0;
			j.tag_time = (enum tag_time)(i % 3);
			job_compare_back(j, pattern, GROWN);
		}
	}
}

/* E13, C06: no data, no header, one block and a header of every length. */
static void short_messages(void **unused)
{
	static const size_t lengths[] = {0, 1, 15, 16, 17, 64};

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (size_t aadlen = 0; aadlen <= 33; aadlen++) {
			for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
				struct job j = job_of(a);

				j.aadlen = aadlen;
				job_compare(&j, pattern, lengths[i], true);
				j.encrypt = 0;
				job_compare_back(j, pattern, lengths[i]);
			}
		}
	}
}

/* D03: headers and messages beyond a request. */
static void long_messages(void **unused)
{
	static const struct {
		size_t aadlen, len;
	} sizes[] = {{70000, 16}, {70000, 0}, {70000, 100000}, {13, 65536}, {13, 300001}, {65535, 65535}};

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct job j = job_of(a);

			j.aadlen = sizes[i].aadlen;
			job_compare(&j, pattern, sizes[i].len, true);
			j.encrypt = 0;
			j.in_place = i % 2;
			job_compare_back(j, pattern, sizes[i].len);
		}
	}
}

/* Nonces and tags of other lengths. */
static void other_lengths(void **unused)
{
	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (size_t ivlen = 1; ivlen <= 16; ivlen++) {
			struct job j = job_of(a);

			j.ivlen = ivlen;
			if (!job_compare(&j, pattern, 4096, false))
				continue;
			j.encrypt = 0;
			job_compare_back(j, pattern, 4096);
		}
		for (size_t taglen = 1; taglen <= TAG; taglen++) {
			struct job j = job_of(a);

			j.taglen = taglen;
			if (!job_compare(&j, pattern, 4096, false))
				continue;
			j.encrypt = 0;
			job_compare_back(j, pattern, 4096);
		}
	}
}

/* A message is refused, where the reference refuses it, when any of its parts has been changed. */
static void check_refused(const struct job *j, const uint8_t *in, size_t len, const char *what)
{
	if (job_compare(j, in, len, false))
		fail_msg("%s: %s was not noticed", j->cipher, what);
}

/* D03: a changed tag, message, header or nonce. */
static void forgeries(void **unused)
{
	static const size_t lengths[] = {0, 1, 100, 16384};
	static uint8_t aad[13], iv[16];

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const size_t len = lengths[i];
			struct job j = job_of(a);
			struct outcome o;

			job_run(reference, &j, pattern, len, &o);
			j.encrypt = 0;
			j.tag = o.tag;
			for (size_t bit = 0; bit < 8 * TAG; bit += len <= 1 ? 1 : 31) {
				o.tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
				j.tag_time = a->ccm ? (enum tag_time)(bit % 2) : (enum tag_time)(bit % 3);
				check_refused(&j, o.out, len, "a changed tag");
				o.tag[bit / 8] ^= (uint8_t)(1 << bit % 8);
			}
			if (len > 0) {
				o.out[len / 2] ^= 1;
				check_refused(&j, o.out, len, "a changed message");
				j.in_place = true;
				check_refused(&j, o.out, len, "a changed message");
				o.out[len / 2] ^= 1;
				check_refused(&j, o.out, len - 1, "a message cut short");
			}
			memcpy(aad, pattern, sizeof(aad));
			aad[12] ^= 0x80;
			j.aad = aad;
			check_refused(&j, o.out, len, "a changed header");
			j.aad = pattern;
			j.tag_time = TAG_BEFORE_DATA;
			iv[11] = 1;
			j.iv = iv;
			check_refused(&j, o.out, len, "another nonce");
			j.iv = zero_iv;
			if (!job_compare(&j, o.out, len, false))
				fail_msg("%s: the message itself was refused", a->name);
			outcome_free(&o);
		}
	}
}

/* D07, and in place. */
static void any_alignment(void **unused)
{
	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (size_t offsets = 0; offsets < 20; offsets++) {
			struct job j = job_of(a);

			j.in_offset = offsets % 4;
			j.out_offset = offsets % 16 / 4;
			j.in_place = offsets >= 16;
			job_compare(&j, pattern, 4096 + 3, true);
			j.encrypt = 0;
			job_compare_back(j, pattern, 4096 + 3);
		}
	}
}

/* Data after what a context has been given; the tag. 0: a call failed. */
static int finish(EVP_CIPHER_CTX *ctx, const uint8_t *in, size_t len, uint8_t *out, uint8_t *tag)
{
	int n;

	return EVP_EncryptUpdate(ctx, out, &n, in, (int)len) && EVP_EncryptFinal_ex(ctx, out + n, &n) &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag) > 0;
}

static int give_aad(EVP_CIPHER_CTX *ctx, const struct aead *a, const struct job *j, size_t len)
{
	int n;

	return (!a->ccm || EVP_EncryptUpdate(ctx, NULL, &n, NULL, (int)len)) &&
	       EVP_EncryptUpdate(ctx, NULL, &n, j->aad, (int)j->aadlen);
}

static void check_message(EVP_CIPHER_CTX *ctx, size_t head, const struct outcome *expected, uint8_t *out)
{
	uint8_t tag[TAG];

	assert_true(finish(ctx, pattern + head, expected->len - head, out, tag));
	assert_memory_equal(out, expected->out + head, expected->len - head);
	assert_memory_equal(tag, expected->tag, TAG);
}

/* B07, B10: copies at every stage of a message; one of the two gets another key and IV, the other must not notice. */
static void rekey_beside_copy(void **unused)
{
	enum { LEN = 16384, HEAD = 5000 };
	static uint8_t out[LEN + 16], scratch[LEN + 16];

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		const struct job with_a = job_of(a);
		struct job with_b = with_a;
		struct outcome expected_a, expected_b;
		EVP_CIPHER *cipher = fetch_cipher(ours, a->name);

		with_b.key = key_b;
		with_b.iv = key_b;
		job_run(reference, &with_a, pattern, LEN, &expected_a);
		job_run(reference, &with_b, pattern, LEN, &expected_b);
		for (unsigned i = 0; i < (a->ccm ? 4 : 6); i++) {
			const unsigned stage = i / 2; /* keyed, header given, data begun */
			EVP_CIPHER_CTX *first = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();
			EVP_CIPHER_CTX *rekeyed = i % 2 ? copy : first, *kept = i % 2 ? first : copy;
			int n;

			assert_true(job_init(first, cipher, &with_a));
			assert_true(stage < 1 || give_aad(first, a, &with_a, LEN));
			assert_true(stage < 2 || EVP_EncryptUpdate(first, scratch, &n, pattern, HEAD));
			assert_true(EVP_CIPHER_CTX_copy(copy, first));
			assert_true(EVP_EncryptInit_ex(rekeyed, NULL, NULL, key_b, key_b));
			assert_true(stage >= 1 || give_aad(kept, a, &with_a, LEN));
			check_message(kept, stage < 2 ? 0 : HEAD, &expected_a, out);
			assert_true(give_aad(rekeyed, a, &with_b, LEN));
			check_message(rekeyed, 0, &expected_b, out);
			EVP_CIPHER_CTX_free(first);
			EVP_CIPHER_CTX_free(copy);
		}
		outcome_free(&expected_a);
		outcome_free(&expected_b);
		EVP_CIPHER_free(cipher);
	}
}

/* B07: message after message in one context by a new IV alone, and never two with one IV. */
static void next_iv(void **unused)
{
	static uint8_t out[20000];

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		EVP_CIPHER *cipher = fetch_cipher(ours, a->name);
		EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
		struct job j = job_of(a);
		int n;

		assert_true(job_init(ctx, cipher, &j));
		for (unsigned message = 0; message < 6; message++) {
			const size_t len = message % 2 ? 16384 : 3;
			struct outcome expected;

			j.iv = pattern + message;
			assert_true(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, j.iv));
			assert_true(give_aad(ctx, a, &j, len));
			job_run(reference, &j, pattern, len, &expected);
			check_message(ctx, 0, &expected, out);
			outcome_free(&expected);
		}
		if (strstr(a->name, "GCM") != NULL) {
			assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, pattern, 3), 0);
			assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, pattern, 16384), 0);
		}
		ERR_clear_error();
		EVP_CIPHER_CTX_free(ctx);
		EVP_CIPHER_free(cipher);
	}
}

/* One side of an sshd connection (OpenSSH's cipher.c). */
static EVP_CIPHER_CTX *ssh_new(OSSL_LIB_CTX *lib, const char *name, int encrypt)
{
	EVP_CIPHER *cipher = fetch_cipher(lib, name);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	assert_true(EVP_CipherInit(ctx, cipher, NULL, pattern, encrypt));
	assert_true(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_IV_FIXED, -1, (void *)pattern) > 0);
	assert_true(EVP_CipherInit(ctx, NULL, key_a, NULL, -1));
	EVP_CIPHER_free(cipher);
	return ctx;
}

/* A packet of a header of 4 bytes, `len` bytes and the tag. */
static int ssh_crypt(EVP_CIPHER_CTX *ctx, const uint8_t *in, uint8_t *out, size_t len)
{
	const int encrypt = EVP_CIPHER_CTX_is_encrypting(ctx);
	uint8_t last_iv[1];

	if (EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_IV_GEN, 1, last_iv) <= 0 ||
	    (!encrypt && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG, (void *)(uintptr_t)(in + 4 + len)) <= 0) ||
	    EVP_Cipher(ctx, NULL, in, 4) < 0)
		return 0;
	memcpy(out, in, 4);
	return EVP_Cipher(ctx, out + 4, in + 4, (unsigned)len) >= 0 && EVP_Cipher(ctx, NULL, NULL, 0) >= 0 &&
	       (!encrypt || EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG, out + 4 + len) > 0);
}

/* B07: packets as sshd makes them, between the module and the default provider both ways; a changed one is noticed. */
static void ssh_packets(void **unused)
{
	static const char *const names[] = {"AES-128-GCM", "AES-256-GCM"};
	static const size_t lengths[] = {16, 32, 1024, 32768};
	static uint8_t sent[2][33000], got[33000];

	(void)unused;
	for (size_t i = 0; i < 2; i++) {
		EVP_CIPHER_CTX *out[2] = {ssh_new(ours, names[i], 1), ssh_new(reference, names[i], 1)};
		EVP_CIPHER_CTX *in[2] = {ssh_new(ours, names[i], 0), ssh_new(reference, names[i], 0)};
		const struct share s = share_of(names[i]);

		for (size_t packet = 0; packet < 20; packet++) {
			const size_t len = lengths[packet % 4];

			for (unsigned side = 0; side < 2; side++) {
				assert_true(ssh_crypt(out[side], pattern, sent[side], len));
				sent[side][4 + len / 2] ^= packet == 19;
			}
			assert_memory_equal(sent[0], sent[1], 4 + len + TAG);
			for (unsigned side = 0; side < 2; side++) {
				assert_int_equal(ssh_crypt(in[side], sent[side], got, len), packet < 19);
				if (packet < 19)
					assert_memory_equal(got, pattern, 4 + len);
			}
		}
		share_end(&s, 4 * 2 * (16 + 32 + 1024 + 32768)); /* all rounds but the last, both ways */
		for (unsigned side = 0; side < 2; side++) {
			EVP_CIPHER_CTX_free(out[side]);
			EVP_CIPHER_CTX_free(in[side]);
		}
	}
	ERR_clear_error();
}

/* C03, with the values themselves: an empty header first, nothing in the midst of the data. */
static void empty_updates_of_gcm(void **unused)
{
	const struct vector *nothing = vector_find("V21"), *header = vector_find("V22 header"),
			    *data = vector_find("V22 data");
	EVP_CIPHER *gcm = fetch_cipher(ours, "AES-128-GCM");
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t out[16], tag[TAG];
	int n = -1, total = 0;

	(void)unused;
	assert_true(EVP_EncryptInit_ex(ctx, gcm, NULL, key_a, zero_iv));
	assert_true(EVP_EncryptUpdate(ctx, NULL, &n, NULL, 0));
	assert_int_equal(n, 0);
	assert_true(EVP_EncryptUpdate(ctx, out, &total, (const uint8_t *)"a", 1));
	n = -1;
	assert_true(EVP_EncryptUpdate(ctx, out + 1, &n, pattern, 0));
	assert_int_equal(n, 0);
	assert_true(finish(ctx, (const uint8_t *)"bc", 2, out + total, tag));
	assert_true(vector_equals(reference, data->out, out, 3) && vector_equals(reference, data->tag, tag, TAG));

	assert_true(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, zero_iv) &&
		    EVP_EncryptUpdate(ctx, NULL, &n, (const uint8_t *)"abc", 3) && finish(ctx, pattern, 0, out, tag));
	assert_true(vector_equals(reference, header->tag, tag, TAG));

	assert_true(EVP_EncryptInit_ex(ctx, NULL, NULL, (const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", zero_iv) &&
		    EVP_EncryptFinal_ex(ctx, out, &n));
	assert_int_equal(n, 0);
	assert_true(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag) > 0);
	assert_true(vector_equals(reference, nothing->tag, tag, TAG));
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(gcm);
}

#define NOTES_MAX 64

/* What calls in a wrong order, or too few of them, return. */
static size_t misuse(OSSL_LIB_CTX *lib, const struct aead *a, int encrypt, int notes[NOTES_MAX])
{
	static uint8_t out[5000];
	EVP_CIPHER *cipher = fetch_cipher(lib, a->name);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	struct job j = job_of(a);
	uint8_t tag[TAG] = {0};
	size_t n = 0;
	int outl = -1;

#define NOTE(call) notes[n++] = (call)
#define UPDATE(to, from, len) NOTE(EVP_CipherUpdate(ctx, to, &outl, from, len))
	j.encrypt = encrypt;
	j.tag = encrypt ? NULL : tag;
	NOTE(EVP_CipherInit_ex(ctx, cipher, NULL, NULL, NULL, encrypt));
	UPDATE(out, pattern, 4096); /* without a key */
	NOTE(EVP_CipherFinal_ex(ctx, out, &outl));
	NOTE(job_init(ctx, cipher, &j));
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag)); /* before the final */
	UPDATE(out, pattern, 4096);
	UPDATE(NULL, pattern, 13); /* a header after the data */
	UPDATE(out, pattern, 4096);
	NOTE(EVP_CipherFinal_ex(ctx, out, &outl));
	NOTE(EVP_CipherFinal_ex(ctx, out, &outl));
	UPDATE(out, pattern, 16); /* after the final */
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag));
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG + 1, out));
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG + 1, out));
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, 0, NULL));
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, 0, NULL));
	NOTE(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_IVLEN, 1000, NULL));
	NOTE(EVP_CIPHER_CTX_set_padding(ctx, 0));
	NOTE(EVP_CIPHER_CTX_set_key_length(ctx, 5));
	NOTE(EVP_CipherInit_ex(ctx, NULL, NULL, NULL, zero_iv, encrypt)); /* a key alone, then an IV alone */
	NOTE(EVP_CipherInit_ex(ctx, NULL, NULL, key_b, NULL, encrypt));
	NOTE(EVP_CipherInit_ex(ctx, NULL, NULL, NULL, zero_iv, encrypt));
	NOTE(EVP_CipherInit_ex(ctx, NULL, NULL, NULL, zero_iv, !encrypt)); /* the other way, by the same key */
	UPDATE(out, pattern, 4096);
	if (!encrypt) { /* a decryption that was told no tag */
		j.tag = NULL;
		j.tag_time = TAG_AFTER_DATA;
		NOTE(job_init(ctx, cipher, &j));
		UPDATE(out, pattern, 4096);
		NOTE(EVP_CipherFinal_ex(ctx, out, &outl));
	}
#undef NOTE
#undef UPDATE
	ERR_clear_error();
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cipher);
	return n;
}

static void misuses(void **unused)
{
	int got[NOTES_MAX], expected[NOTES_MAX];

	(void)unused;
	for (const struct aead *a = aeads; a < aeads + count; a++) {
		for (int encrypt = 0; encrypt <= 1; encrypt++) {
			const size_t n = misuse(reference, a, encrypt, expected);

			assert_int_equal(misuse(ours, a, encrypt, got), n);
			for (size_t i = 0; i < n; i++)
				if (got[i] != expected[i])
					fail_msg("%s %s: call %zu returned %d, not %d", a->name,
						 encrypt ? "encrypts" : "decrypts", i, got[i], expected[i]);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(vectors_hold),      CASE(kernel_works),  CASE(any_pieces),  CASE(short_messages),
		CASE(long_messages),     CASE(other_lengths), CASE(forgeries),   CASE(any_alignment),
		CASE(rekey_beside_copy), CASE(next_iv),       CASE(ssh_packets), CASE(empty_updates_of_gcm),
		CASE(misuses),
	};

	cases_begin(argc, argv);
	list_aeads();
	return cases_end(cmocka_run_group_tests(tests, NULL, NULL), KIND_AEAD);
}
