/* SPDX-License-Identifier: Apache-2.0 */
/* Ciphers without authentication: what users of kernel crypto ran into, for every cipher that the module offers. */
#include "cases.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whole blocks of every cipher, more than a request takes (64 KiB); and a length that growing pieces add up to. */
#define LONG 65552u
#define GROWN 32640u

static const struct pieces seventeen = {"17 of 3856", 1, {3856}, false};
static const struct pieces odd = {"4097+15+16", 3, {4097, 15, 16}, false};

static struct job job_of(const struct offered *c)
{
	return (struct job){.cipher = c->name, .key = key_a, .iv = zero_iv, .encrypt = 1};
}

static bool by_blocks(const struct offered *c)
{
	return c->shape == BLOCKS;
}

/* What a message must be made of so that it needs no padding. */
static size_t fitting(const struct offered *c, size_t len)
{
	return by_blocks(c) ? len / c->block * c->block : len;
}

/* Bytes that the kernel must do of a message in one update: all but what may be the padding, or is no whole block. */
static uint64_t kernel_part(size_t len)
{
	return len < 256 ? 0 : len - 64;
}

static struct share share_of(const char *cipher)
{
	EVP_CIPHER *c = fetch_cipher(ours, cipher);
	struct share s = share_begin(cipher, EVP_CIPHER_get0_provider(c));

	EVP_CIPHER_free(c);
	return s;
}

/* One published vector: encrypted, cut to pieces, and decrypted in place. */
static void vector_holds(const struct vector *v)
{
	struct vector_bytes key = vector_bytes(v->key), iv = vector_bytes(v->iv), in = vector_bytes(v->in);
	struct job j = {.cipher = v->algorithm,
			.cts = v->cts,
			.key = key.data,
			.iv = iv.data,
			.encrypt = 1,
			.padding = v->padding};
	const struct share s = share_of(v->algorithm);
	struct outcome there, back;

	for (int cut = 0; cut < 2; cut++) {
		if (cut && (v->cts != NULL || strstr(v->algorithm, "XTS") != NULL))
			break;
		j.pieces = cut ? &chunks : NULL;
		job_run(ours, &j, in.data, in.len, &there);
		if (!there.good || !vector_equals(reference, v->out, there.out, there.len))
			fail_msg("%s: wrong %s", v->id, cut ? "in pieces" : "as a whole");
		j.encrypt = 0;
		j.in_place = true;
		job_run(ours, &j, there.out, there.len, &back);
		if (!back.good || back.len != in.len || memcmp(back.out, in.data, in.len) != 0)
			fail_msg("%s: not decrypted %s", v->id, cut ? "in pieces" : "as a whole");
		j.encrypt = 1;
		j.in_place = false;
		outcome_free(&there);
		outcome_free(&back);
	}
	share_end(&s, kernel_part(in.len));
	free(key.data);
	free(iv.data);
	free(in.data);
}

static void vectors_hold(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < vector_count; i++)
		if (vectors[i].kind == VECTOR_CIPHER && vector_chosen(&vectors[i]))
			vector_holds(&vectors[i]);
}

/* The kernel does a message of one update, there and back, whatever its lengths. */
static void kernel_works(void **unused)
{
	static const size_t lengths[] = {256, 4096, 22528, 65536};

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const struct share s = share_of(c->name);
			struct job j = job_of(c);

			job_compare(&j, pattern, lengths[i], true);
			j.encrypt = 0;
			job_compare_back(j, pattern, lengths[i]);
			share_end(&s, 2 * kernel_part(lengths[i]));
		}
	}
}

/* C04, D08: updates of growing, odd, tiny and huge sizes; padded and not; C03: with empty ones between them. */
static void any_pieces(void **unused)
{
	static const struct pieces *const all[] = {&whole, &chunks, &growing, &seventeen, &odd, &with_empty};

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (unsigned i = 0; i < 2 * sizeof(all) / sizeof(*all); i++) {
			struct job j = job_of(c);

			j.padding = i % 2 == 0;
			if (j.padding && !by_blocks(c))
				continue;
			j.pieces = all[i / 2];
			job_compare(&j, pattern, GROWN, by_blocks(c) || c->shape == STREAM);
			j.encrypt = 0;
			if (by_blocks(c) || c->shape == STREAM)
				job_compare_back(j, pattern, fitting(c, GROWN));
			else
				job_compare(&j, pattern, GROWN, false);
		}
	}
}

/* C06, C09: nothing at all, one byte, and what is around a block. */
static void short_messages(void **unused)
{
	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (size_t len = 0; len <= 2 * c->block + 17; len++) {
			struct job j = job_of(c);

			for (j.padding = 0; j.padding <= by_blocks(c); j.padding++) {
				for (j.encrypt = 0; j.encrypt <= 1; j.encrypt++) {
					j.pieces = NULL;
					job_compare(&j, pattern, len, false);
					j.pieces = len == 0 ? &with_empty : &odd;
					job_compare(&j, pattern, len, false);
				}
			}
		}
	}
}

/* C03, with the values themselves. */
static void empty_updates_of_cbc(void **unused)
{
	const struct vector *nothing = vector_find("V13 empty"), *abc = vector_find("V13 abc");
	EVP_CIPHER *cbc = fetch_cipher(ours, "AES-128-CBC");
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t out[48];
	int n = -1, total = 0;

	(void)unused;
	assert_true(EVP_EncryptInit_ex(ctx, cbc, NULL, key_a, zero_iv));
	assert_true(EVP_EncryptUpdate(ctx, out, &n, NULL, 0));
	assert_int_equal(n, 0);
	assert_true(EVP_EncryptUpdate(ctx, out, &total, (const uint8_t *)"abc", 3));
	n = -1;
	assert_true(EVP_EncryptUpdate(ctx, out + total, &n, pattern, 0));
	assert_int_equal(n, 0);
	assert_true(EVP_EncryptFinal_ex(ctx, out + total, &n));
	assert_true(vector_equals(reference, abc->out, out, (size_t)(total + n)));

	assert_true(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, zero_iv) && EVP_EncryptFinal_ex(ctx, out, &n));
	assert_true(vector_equals(reference, nothing->out, out, (size_t)n));
	assert_true(EVP_EncryptInit_ex(ctx, NULL, NULL, NULL, zero_iv) && EVP_CIPHER_CTX_set_padding(ctx, 0) &&
		    EVP_EncryptFinal_ex(ctx, out, &n));
	assert_int_equal(n, 0);
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cbc);
}

/* C09: what is too short for XTS fails, and the context lives on. */
static void short_xts(void **unused)
{
	static const size_t refused[] = {0, 1, 15};
	EVP_CIPHER *xts = fetch_cipher(ours, "AES-128-XTS");
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t out[32];
	int n;

	(void)unused;
	assert_true(EVP_EncryptInit_ex(ctx, xts, NULL, key_a, zero_iv));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(EVP_EncryptUpdate(ctx, out, &n, pattern, (int)refused[i]), 0);
	ERR_clear_error();
	assert_true(EVP_EncryptUpdate(ctx, out, &n, pattern, 16));
	assert_true(vector_equals(reference, vector_find("V29 16")->out, out, 16));
	assert_true(EVP_EncryptUpdate(ctx, out, &n, pattern, 17));
	assert_true(vector_equals(reference, vector_find("V29 17")->out, out, 17));
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(xts);
}

/* D07: every alignment of input and output to each other. */
static void any_alignment(void **unused)
{
	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (size_t offsets = 0; offsets < 16; offsets++) {
			struct job j = job_of(c);

			j.in_offset = offsets % 4;
			j.out_offset = offsets / 4;
			job_compare(&j, pattern, 4112, true);
			j.encrypt = 0;
			job_compare_back(j, pattern, 4112);
		}
	}
}

/* D07, with the values themselves, at the size where it was seen. */
static void alignment_of_cbc(void **unused)
{
	const struct vector *v = vector_find("V14 22528");
	struct job j = {.cipher = "AES-256-CBC", .key = key_a, .iv = zero_iv, .encrypt = 1};
	struct outcome o;

	(void)unused;
	for (size_t offsets = 0; offsets < 16; offsets++) {
		j.in_offset = offsets % 4;
		j.out_offset = offsets / 4;
		job_run(ours, &j, pattern, 22528, &o);
		assert_true(o.good && vector_equals(reference, v->out, o.out, o.len));
		outcome_free(&o);
	}
}

/* E02: in place, over several pages and requests. */
static void in_place(void **unused)
{
	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (int cut = 0; cut < (by_blocks(c) || c->shape == STREAM ? 2 : 1); cut++) {
			struct job j = job_of(c);

			j.in_place = true;
			j.pieces = cut ? &seventeen : NULL;
			job_compare(&j, pattern, LONG, true);
			j.encrypt = 0;
			job_compare_back(j, pattern, LONG);
			j.padding = by_blocks(c);
			job_compare_back(j, pattern, LONG);
		}
	}
}

/* E02: where the output begins within the input, whatever comes of it stays within the output. */
static void overlap(void **unused)
{
	enum { LEN = 8192, DISTANCE = 64, BLOCK = 32, GUARD = 64 };
	static uint8_t buffer[LEN + DISTANCE + BLOCK + GUARD], guard[GUARD];
	int n;

	(void)unused;
	memset(guard, 0xa5, sizeof(guard));
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (size_t distance = 1; distance < DISTANCE; distance += 7) {
			EVP_CIPHER *cipher = fetch_cipher(ours, c->name);
			EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

			memcpy(buffer, pattern, LEN);
			memset(buffer + LEN + distance + BLOCK, 0xa5, GUARD);
			assert_true(EVP_DecryptInit_ex(ctx, cipher, NULL, key_a, zero_iv));
			EVP_DecryptUpdate(ctx, buffer + distance, &n, buffer, LEN);
			assert_memory_equal(buffer, pattern, distance);
			assert_memory_equal(buffer + LEN + distance + BLOCK, guard, GUARD);
			EVP_CIPHER_CTX_free(ctx);
			EVP_CIPHER_free(cipher);
		}
	}
	ERR_clear_error();
}

/* B09: the IV that a context has reached, given to a new context, goes on with the message. */
static void iv_hand_over(void **unused)
{
	static const size_t splits[] = {32, 4096, LONG};
	static uint8_t out[2 * LONG], ivs[2][16];
	int n;

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		if (c->mode != EVP_CIPH_CBC_MODE && c->mode != EVP_CIPH_CTR_MODE && c->mode != EVP_CIPH_OFB_MODE &&
		    c->mode != EVP_CIPH_CFB_MODE)
			continue;
		if (c->shape == ONE_MESSAGE)
			continue;
		for (unsigned i = 0; i < 2 * sizeof(splits) / sizeof(*splits); i++) {
			const size_t at = splits[i / 2];
			struct job j = job_of(c);
			EVP_CIPHER *cipher = fetch_cipher(ours, c->name);
			EVP_CIPHER_CTX *first = EVP_CIPHER_CTX_new(), *second = EVP_CIPHER_CTX_new();
			struct outcome o;

			j.encrypt = i % 2;
			job_run(reference, &j, pattern, 2 * at, &o);
			assert_true(job_init(first, cipher, &j) && EVP_CipherUpdate(first, out, &n, pattern, (int)at));
			assert_true(EVP_CIPHER_CTX_get_updated_iv(first, ivs[0], 16));
			assert_true(EVP_CIPHER_CTX_get_original_iv(first, ivs[1], 16));
			assert_memory_equal(ivs[1], zero_iv, c->ivlen);
			j.iv = ivs[0];
			assert_true(job_init(second, cipher, &j) &&
				    EVP_CipherUpdate(second, out + at, &n, pattern + at, (int)at));
			assert_memory_equal(out, o.out, 2 * at);
			outcome_free(&o);
			EVP_CIPHER_CTX_free(first);
			EVP_CIPHER_CTX_free(second);
			EVP_CIPHER_free(cipher);
		}
	}
}

/* B09, with the values themselves. */
static void updated_iv_values(void **unused)
{
	static const uint8_t counter[16] = {[15] = 2};
	struct vector_bytes cbc = vector_bytes("c7182b21a37880301ca79a01dc7d6d3d");
	struct job j = {.cipher = "AES-128-CBC", .key = key_a, .iv = zero_iv, .encrypt = 1};
	EVP_CIPHER *ctr = fetch_cipher(ours, "AES-128-CTR");
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	struct outcome o;
	uint8_t out[32], iv[16];
	int n;

	(void)unused;
	job_run(ours, &j, (const uint8_t *)"0123456789ABCDEF0123456789ABCDEF", 32, &o);
	assert_memory_equal(o.updated_iv, cbc.data, 16);
	outcome_free(&o);
	free(cbc.data);

	j.cipher = "AES-128-CTR";
	assert_true(job_init(ctx, ctr, &j) && EVP_EncryptUpdate(ctx, out, &n, pattern, 20));
	assert_true(EVP_CIPHER_CTX_get_updated_iv(ctx, iv, 16));
	assert_memory_equal(iv, counter, 16);
	assert_int_equal(EVP_CIPHER_CTX_get_num(ctx), 4);
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(ctr);
}

/* B10: a key set in the original is not the copy's, nor the other way round; before and in the midst of a message. */
static void rekey_beside_copy(void **unused)
{
	enum { HEAD = 4096, REST = 16384 };
	static const struct pieces head_and_rest = {"head and rest", 2, {HEAD, WHOLE}, false};
	static uint8_t out[2][HEAD + REST + 32];
	int n;

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (unsigned i = 0; i < (c->shape == ONE_MESSAGE ? 2 : 4); i++) {
			const size_t head = i / 2 * HEAD;
			struct job j = job_of(c);
			EVP_CIPHER *cipher = fetch_cipher(ours, c->name);
			EVP_CIPHER_CTX *a = EVP_CIPHER_CTX_new(), *b = EVP_CIPHER_CTX_new();
			EVP_CIPHER_CTX *rekeyed = i % 2 ? b : a, *kept = i % 2 ? a : b;
			struct outcome with_a, with_b;

			j.pieces = head > 0 ? &head_and_rest : NULL;
			job_run(reference, &j, pattern, head + REST, &with_a);
			j.key = key_b;
			job_run(reference, &j, pattern, head + REST, &with_b);
			j.key = key_a;
			assert_true(job_init(a, cipher, &j));
			assert_true(head == 0 || EVP_EncryptUpdate(a, out[0], &n, pattern, (int)head));
			assert_true(EVP_CIPHER_CTX_copy(b, a));
			assert_true(EVP_EncryptInit_ex(rekeyed, NULL, NULL, key_b, zero_iv));
			assert_true(head == 0 || EVP_EncryptUpdate(rekeyed, out[1], &n, pattern, (int)head));
			assert_true(EVP_EncryptUpdate(kept, out[0] + head, &n, pattern + head, REST));
			assert_true(EVP_EncryptUpdate(rekeyed, out[1] + head, &n, pattern + head, REST));
			assert_memory_equal(out[0], with_a.out, head + REST);
			assert_memory_equal(out[1], with_b.out, head + REST);
			outcome_free(&with_a);
			outcome_free(&with_b);
			EVP_CIPHER_CTX_free(a);
			EVP_CIPHER_CTX_free(b);
			EVP_CIPHER_free(cipher);
		}
	}
}

/* B02: a context that has its cipher, or its key, and nothing more, is copied; the copy is as good as new. */
static void copy_before_use(void **unused)
{
	static uint8_t out[2][8192 + 32];
	int n;

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		EVP_CIPHER *cipher = fetch_cipher(ours, c->name);
		struct job j = job_of(c);
		struct outcome o;

		job_run(reference, &j, pattern, 8192, &o);
		for (unsigned keyed = 0; keyed < 2; keyed++) {
			EVP_CIPHER_CTX *ctx[2] = {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new()};

			assert_true(EVP_EncryptInit_ex(ctx[0], cipher, NULL, keyed ? key_a : NULL, NULL));
			assert_true(EVP_CIPHER_CTX_copy(ctx[1], ctx[0]));
			for (unsigned i = 0; i < 2; i++) {
				assert_true(EVP_EncryptInit_ex(ctx[i], NULL, NULL, keyed ? NULL : key_a, zero_iv));
				assert_true(EVP_CIPHER_CTX_set_padding(ctx[i], 0));
				assert_true(EVP_EncryptUpdate(ctx[i], out[i], &n, pattern, 8192));
				assert_memory_equal(out[i], o.out, (size_t)n);
				EVP_CIPHER_CTX_free(ctx[i]);
			}
		}
		outcome_free(&o);
		EVP_CIPHER_free(cipher);
	}
}

/* Keys of other lengths are refused where the reference refuses them. */
static void other_key_lengths(void **unused)
{
	static const int lengths[] = {0, 1, 8, 15, 16, 17, 24, 32, 33, 48, 64};

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			OSSL_LIB_CTX *const libs[] = {ours, reference};
			int got[2][2];

			for (unsigned l = 0; l < 2; l++) {
				EVP_CIPHER *cipher = fetch_cipher(libs[l], c->name);
				EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

				assert_true(EVP_EncryptInit_ex(ctx, cipher, NULL, NULL, NULL));
				got[l][0] = EVP_CIPHER_CTX_set_key_length(ctx, lengths[i]);
				got[l][1] = EVP_EncryptInit_ex(ctx, NULL, NULL, key_a, zero_iv);
				EVP_CIPHER_CTX_free(ctx);
				EVP_CIPHER_free(cipher);
			}
			assert_memory_equal(got[0], got[1], sizeof(got[0]));
		}
	}
	ERR_clear_error();
}

/* E15: counters that run over, split at every byte. */
static void counter_split_anywhere(void **unused)
{
	static const char *const ids[] = {"V17", "V18", "V19"};

	(void)unused;
	for (unsigned i = 0; i < 3; i++) {
		const struct vector *v = vector_find(ids[i]);
		struct vector_bytes key = vector_bytes(v->key), iv = vector_bytes(v->iv), in = vector_bytes(v->in);

		for (size_t at = 0; at <= in.len; at++) {
			const struct pieces split = {"split", 2, {at, WHOLE}, false};
			struct job j = {
				.cipher = v->algorithm, .key = key.data, .iv = iv.data, .encrypt = 1, .pieces = &split};
			struct outcome o;

			job_run(ours, &j, in.data, in.len, &o);
			if (!o.good || !vector_equals(reference, v->out, o.out, o.len))
				fail_msg("%s, split at %zu", v->id, at);
			outcome_free(&o);
		}
		free(key.data);
		free(iv.data);
		free(in.data);
	}
}

/* E15: the carry runs over 16, 32, 64 and 128 bits, in either byte order, within a request and between two. */
static void counter_carries(void **unused)
{
	static const size_t lengths[] = {4112, 65536 + 4112};

	(void)unused;
	for (const struct offered *c = offered; c < offered + offered_count; c++) {
		if (c->mode != EVP_CIPH_CTR_MODE && strcmp(c->name, "ChaCha20") != 0)
			continue;
		for (unsigned bytes = 2; bytes <= 16; bytes *= 2) {
			for (unsigned i = 0; i < 8; i++) {
				struct job j = job_of(c);
				uint8_t iv[16] = {0};

				if (i & 1) /* big-endian, or as ChaCha20 has it */
					memset(iv + 16 - bytes, 0xff, bytes);
				else
					memset(iv, 0xff, bytes);
				if (i & 2) /* the carry comes after 4096 bytes, not at once */
					iv[i & 1 ? 14 : 1] = 0xff,
							iv[i & 1 ? 15 : 0] = c->mode == EVP_CIPH_CTR_MODE ? 0 : 192;
				j.iv = iv;
				job_compare(&j, pattern, lengths[i / 4], true);
			}
		}
	}
}

/* D04: one update of 64 MiB ends. */
static void huge_update(void **unused)
{
	enum { SIZE = 64 << 20, PART = 1 << 16 };
	EVP_CIPHER *ciphers[2] = {fetch_cipher(ours, "AES-128-CTR"), fetch_cipher(reference, "AES-128-CTR")};
	EVP_CIPHER_CTX *ctx[2] = {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new()};
	const struct share s = share_of("AES-128-CTR");
	static uint8_t part[PART];
	uint8_t *data = malloc(SIZE);
	int n;

	(void)unused;
	assert_non_null(data);
	support_pattern(data, SIZE);
	for (int i = 0; i < 2; i++)
		assert_true(EVP_EncryptInit_ex(ctx[i], ciphers[i], NULL, key_a, zero_iv));
	assert_true(EVP_EncryptUpdate(ctx[0], data, &n, data, SIZE));
	assert_int_equal(n, SIZE);
	for (size_t at = 0; at < SIZE; at += PART) {
		for (size_t i = 0; i < PART; i++)
			part[i] = (uint8_t)((at + i) % 251);
		assert_true(EVP_EncryptUpdate(ctx[1], part, &n, part, PART));
		assert_memory_equal(data + at, part, PART);
	}
	share_end(&s, SIZE);
	free(data);
	for (int i = 0; i < 2; i++) {
		EVP_CIPHER_CTX_free(ctx[i]);
		EVP_CIPHER_free(ciphers[i]);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		CASE(vectors_hold),
		CASE(kernel_works),
		CASE(any_pieces),
		CASE(short_messages),
		CASE(empty_updates_of_cbc),
		CASE(short_xts),
		CASE(any_alignment),
		CASE(alignment_of_cbc),
		CASE(in_place),
		CASE(overlap),
		CASE(iv_hand_over),
		CASE(updated_iv_values),
		CASE(rekey_beside_copy),
		CASE(copy_before_use),
		CASE(other_key_lengths),
		CASE(counter_split_anywhere),
		CASE(counter_carries),
		CASE(huge_update),
	};

	cases_begin(argc, argv);
	list_offered();
	return cases_end(cmocka_run_group_tests(tests, NULL, NULL), KIND_SKCIPHER);
}
