/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that lie or never answer: the check before an algorithm's first use finds them, and nobody sees their
 * results.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../afalg/hash.h"
#include "../../afalg/session.h"
#include "../../provider/check.h"
#include "../../provider/counters.h"
#include "../../provider/software.h"
#include "helper.h"

#define LEN 4096

/* How the kernel of this test departs from the fake one. */
enum lie { HONEST, ZERO_HEAD, FLIP_LAST, DECRYPTS_WRONG, MUTE, FAILS };
static atomic_int lie; /* the one left behind looks at it too */
static struct lib lib;

static void tell(enum lie what, uint8_t *out, size_t len)
{
	if (what == ZERO_HEAD)
		memset(out, 0, len < 16 ? len : 16);
	else if (what == FLIP_LAST)
		out[len - 1] ^= 1;
	else if (what == MUTE)
		usleep(400000);
}

static int lying_crypt(void *transform, const struct afalg_request *r)
{
	int err = lie == FAILS ? -EIO : fake_transport.crypt(transform, r);

	if (err == 0 && lie == DECRYPTS_WRONG && !r->encrypt)
		r->out[0] ^= 1;
	if (err == 0 && (r->encrypt || lie == MUTE))
		tell((enum lie)lie, r->out, r->len);
	return err;
}

static int hash_finish(const struct afalg_op *op, uint8_t *md, size_t mdlen)
{
	int err = fake_transport.hash_finish(op, md, mdlen);

	if (lie == FAILS)
		return -EIO;
	tell((enum lie)lie, md, mdlen);
	return err;
}

/* Does a message with the algorithm. */
static void compute(enum algorithm_id id, const char *provider, uint8_t out[LEN + 64], size_t *outl)
{
	const struct algorithm *a = &algorithms[id];
	int n = 0, last = 0;

	*outl = 0;
	memset(out, 0, LEN + 64);
	if (a->kind == KIND_HASH) {
		EVP_MD *md = digest_of(&lib, id, provider);
		unsigned length;

		assert_true(EVP_Digest(pattern(), LEN, out, &length, md, NULL));
		*outl = length;
		EVP_MD_free(md);
	} else if (a->kind == KIND_MAC) {
		EVP_MAC *mac = mac_of(&lib, id, provider);
		EVP_MAC_CTX *c = EVP_MAC_CTX_new(mac);
		const OSSL_PARAM params[] = {mac_over(id), OSSL_PARAM_END};

		assert_true(EVP_MAC_init(c, pattern(), mac_key_length(id), params) &&
			    EVP_MAC_update(c, pattern(), LEN) && EVP_MAC_final(c, out, outl, 64));
		EVP_MAC_CTX_free(c);
		EVP_MAC_free(mac);
	} else {
		EVP_CIPHER *cipher = cipher_of(&lib, id, provider);
		EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();

		assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern() + 7, NULL));
		assert_true(EVP_EncryptUpdate(c, out, &n, pattern(), LEN));
		if (a->mode != MODE_XTS && a->mode != MODE_CTS)
			assert_true(EVP_EncryptFinal_ex(c, out + n, &last));
		*outl = (size_t)(n + last);
		if (a->kind == KIND_AEAD)
			assert_true(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, a->mode == MODE_CCM ? 12 : 16,
							out + LEN) > 0);
		EVP_CIPHER_CTX_free(c);
		EVP_CIPHER_free(cipher);
	}
}

/* Any algorithm with a driver that tells this lie: right results. `trusted`: by the kernel. */
static void check_all(enum lie what, bool trusted, const char *settings)
{
	static const struct afalg_transport *const honest = &fake_transport;
	struct afalg_transport transport = *honest;
	static uint8_t ours[LEN + 64], theirs[LEN + 64];

	transport.crypt = lying_crypt;
	transport.hash_finish = hash_finish;
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		size_t ours_length, theirs_length;
		uint64_t kernel, fallbacks;

		if (software_names[id] == NULL || algorithms[id].kind == KIND_RNG || algorithms[id].key_min > 0)
			continue;
		lib_open(&lib, settings);
		lib.provider->route.check = check_for_route;
		afalg_session_set_transport(&transport);
		afalg_hash_set_transport(&transport);
		compute((enum algorithm_id)id, "default", theirs, &theirs_length);
		kernel = counters_of((enum algorithm_id)id)->kernel_bytes;
		fallbacks = counters_of((enum algorithm_id)id)->fallbacks;
		lie = what;
		for (int i = 0; i < 3; i++) {
			compute((enum algorithm_id)id, "afalgprov", ours, &ours_length);
			assert_int_equal(ours_length, theirs_length);
			assert_memory_equal(ours, theirs, LEN + 64);
			assert_int_equal(ERR_peek_error(), 0);
		}
		lie = HONEST;
		kernel = counters_of((enum algorithm_id)id)->kernel_bytes - kernel;
		fallbacks = counters_of((enum algorithm_id)id)->fallbacks - fallbacks;
		if ((kernel > LEN) != trusted || (fallbacks > 0) == trusted)
			fail_msg("%s: %llu bytes by the kernel, %llu fallbacks", algorithms[id].name,
				 (unsigned long long)kernel, (unsigned long long)fallbacks);
		lib_close(&lib);
	}
}

static void test_honest(void **state)
{
	(void)state;
	check_all(HONEST, true, "policy = kernel\ncounters = off\n");
}

static void test_zeroed(void **state)
{
	(void)state;
	check_all(ZERO_HEAD, false, "policy = kernel\ncounters = off\n");
}

static void test_one_bit(void **state)
{
	(void)state;
	check_all(FLIP_LAST, false, "policy = kernel\ncounters = off\n");
}

static void test_fails(void **state)
{
	(void)state;
	check_all(FAILS, false, "policy = kernel\ncounters = off\n");
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One algorithm whose driver does this; returns how long the first message took. */
static double one(enum lie what, const char *settings, enum algorithm_id id)
{
	struct afalg_transport transport = fake_transport;
	static uint8_t ours[LEN + 64], theirs[LEN + 64];
	double begun;
	size_t n;

	transport.crypt = lying_crypt;
	transport.hash_finish = hash_finish;
	lib_open(&lib, settings);
	lib.provider->route.check = check_for_route;
	afalg_session_set_transport(&transport);
	afalg_hash_set_transport(&transport);
	compute(id, "default", theirs, &n);
	lie = what;
	begun = seconds();
	compute(id, "afalgprov", ours, &n);
	begun = seconds() - begun;
	assert_memory_equal(ours, theirs, n);
	assert_int_equal(route_floor(&lib.provider->route, id), what == HONEST ? 1 : ROUTE_NEVER);
	usleep(what == MUTE ? 1500000 : 0); /* the one left behind gets its answers */
	lie = HONEST;
	lib_close(&lib);
	return begun;
}

static void test_decrypts_wrong(void **state)
{
	(void)state;
	one(DECRYPTS_WRONG, "policy = kernel\ncounters = off\n", ALG_AES_128_CBC);
	one(DECRYPTS_WRONG, "policy = kernel\ncounters = off\n", ALG_AES_256_GCM);
}

/* A device that never answers, as far as anyone can wait: software takes over at the limit. */
static void test_mute(void **state)
{
	static const enum algorithm_id ids[] = {ALG_AES_128_CBC, ALG_AES_128_GCM, ALG_SHA2_256, ALG_HMAC_SHA2_256};

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		const double took = one(MUTE, "policy = kernel\ncounters = off\nhang_limit = 50\n", ids[i]);

		assert_true(took >= 0.05 && took < 0.3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest), cmocka_unit_test(test_zeroed),         cmocka_unit_test(test_one_bit),
		cmocka_unit_test(test_fails),  cmocka_unit_test(test_decrypts_wrong), cmocka_unit_test(test_mute),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
