/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of former engines: what they take and refuse, what they contradict, and where calls go. */
#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "start.h"

#define SOFTWARE ROUTE_NEVER

static struct lib lib;

static const struct {
	const char *keys[5]; /* and values, in turn */
	const char *text;    /* a part of the error; null: it is taken */
} settings[] = {
	{{"use_softdrivers", "0"}, NULL},
	{{"use_softdrivers", "1"}, NULL},
	{{"USE_SOFTDRIVERS", "2"}, NULL},
	{{"use_softdrivers", "3"}, "use_softdrivers = 3: allowed is 0 for hardware"},
	{{"use_softdrivers", "yes"}, "allowed is "},
	{{"use_softdrivers", "0", "USE_SOFTDRIVERS", "0"}, "'use_softdrivers' is set already; "},
	{{"ciphers", "ALL"}, NULL},
	{{"CIPHERS", "none"}, NULL},
	{{"ciphers", "No_Ecb"}, NULL},
	{{"ciphers", "AES-128-CBC:1024, AES-256-CBC:768, DES-EDE3-CBC:0"}, NULL},
	{{"ciphers", "id-aes128-GCM AES-192-CBC:-1"}, NULL},
	{{"ciphers", ""}, "is no list; "},
	{{"ciphers", " , "}, "is no list; "},
	{{"ciphers", "ALL,AES-128-CBC"}, "'ALL' is no cipher that afalgprov has; "},
	{{"ciphers", "AES-128-CBC,RC4"}, "'RC4' is no cipher that afalgprov has; "},
	{{"ciphers", "SHA256"}, "'SHA256' is no cipher that afalgprov has; "},
	{{"ciphers", "AFALG-DRBG"}, "'AFALG-DRBG' is no cipher that afalgprov has; "},
	{{"ciphers", "AES-128-CBC:"}, "'AES-128-CBC:' has no number of bytes, or one too large; "},
	{{"ciphers", "AES-128-CBC:1k"}, "'AES-128-CBC:1k' has no number"},
	{{"ciphers", "AES-128-CBC:-"}, "'AES-128-CBC:-' has no number"},
	{{"ciphers", "AES-128-CBC:1048577"}, "'AES-128-CBC:1048577' has no number"},
	{{"ciphers", "AES-128-CBC:1024,AES128:2048"}, "'AES128:2048' is there already, with another number of bytes; "},
	{{"ciphers", "AES-128-CBC", "CIPHERS", "ALL"}, "'ciphers' is set already; "},
	{{"digests", "ALL"}, NULL},
	{{"DIGESTS", "SHA256:16384,sha1"}, NULL},
	{{"digests", "NO_ECB"}, "'NO_ECB' is no digest that afalgprov has; "},
	{{"digests", "HMAC-SHA256"}, "'HMAC-SHA256' is no digest that afalgprov has; "},
	{{"digests", "AES-128-CBC"}, "'AES-128-CBC' is no digest that afalgprov has; "},
	/* Together with thresholds. */
	{{"thresholds", "AES-128-CBC:4096", "ciphers", "AES-128-CBC"}, NULL},
	{{"thresholds", "AES-128-CBC:4096", "ciphers", "AES-128-CBC:4096"}, NULL},
	{{"thresholds", "AES-128-CBC:never", "ciphers", "ALL"}, NULL},
	{{"thresholds", "AES-128-CBC:never", "ciphers", "AES-256-CBC"}, NULL},
	{{"thresholds", "AES-128-CBC:4096", "digests", "NONE"}, NULL},
	{{"thresholds", "HMAC-SHA256:4096", "digests", "SHA256:16384"}, NULL},
	{{"thresholds", "AES-128-CBC:4096", "ciphers", "AES-128-CBC:1024"},
	 "'thresholds' has AES-128-CBC:4096, but 'ciphers' has 1024"},
	{{"thresholds", "AES-128-CBC:4096", "ciphers", "AES-256-CBC"},
	 "'thresholds' has AES-128-CBC:4096, but 'ciphers' leaves it out"},
	{{"thresholds", "AES-128-ECB:4096", "ciphers", "NO_ECB"},
	 "'thresholds' has AES-128-ECB:4096, but 'ciphers' leaves it out"},
	{{"thresholds", "AES-128-CBC:never", "ciphers", "AES-128-CBC:1024"},
	 "'thresholds' has AES-128-CBC:never, but 'ciphers' names it"},
	{{"thresholds", "SHA256:4096", "digests", "NONE"},
	 "'thresholds' has SHA2-256:4096, but 'digests' leaves it out"},
	{{"thresholds", "HMAC-SHA256:4096", "digests", "SHA1"},
	 "'thresholds' has HMAC-SHA2-256:4096, but 'digests' leaves it out"},
};

/* What is refused is named, and so is what is wrong with it. */
static void test_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		const char *const *k = settings[i].keys;
		const bool taken = starts(k[0], k[1], k[2], k[3], NULL);

		if (taken != (settings[i].text == NULL))
			fail_msg("%s = %s is %s", k[0], k[1], taken ? "taken" : started.text);
		assert_int_equal(started.errors, taken ? 0 : 1);
		if (!taken && strstr(started.text, settings[i].text) == NULL)
			fail_msg("%s = %s: %s", k[0], k[1], started.text);
	}
}

/* A long list does not push what is wrong out of the error. */
static void test_long_list(void **state)
{
	char list[1024] = "";

	(void)state;
	for (int i = 0; i < 60; i++)
		strcat(list, "AES-128-CBC,");
	strcat(list, "AES-129-CBC");
	assert_false(starts("ciphers", list, NULL));
	assert_non_null(strstr(started.text, "...: 'AES-129-CBC' is no cipher that afalgprov has; allowed is "));
}

static size_t floor_of(enum algorithm_id id)
{
	return route_floor(&lib.provider->route, id);
}

/* What is left out stays in software, and a MAC goes with what it is over. */
static void test_lists(void **state)
{
	(void)state;
	lib_open(&lib, "CIPHERS = AES-128-CBC:1024,AES-256-CBC\nDIGESTS = SHA256:8192\ncounters = off\n");
	assert_int_equal(floor_of(ALG_AES_128_CBC), 1024);
	assert_int_equal(floor_of(ALG_AES_256_CBC), 16384);
	assert_int_equal(floor_of(ALG_AES_192_CBC), SOFTWARE);
	assert_int_equal(floor_of(ALG_AES_128_GCM), SOFTWARE);
	assert_int_equal(floor_of(ALG_CMAC_AES_128), 1024);
	assert_int_equal(floor_of(ALG_CMAC_AES_192), SOFTWARE);
	assert_int_equal(floor_of(ALG_SHA2_256), 8192);
	assert_int_equal(floor_of(ALG_HMAC_SHA2_256), 8192);
	assert_int_equal(floor_of(ALG_SHA1), SOFTWARE);
	assert_int_equal(floor_of(ALG_HMAC_SHA1), SOFTWARE);
	lib_close(&lib);
	lib_open(&lib, "ciphers = NO_ECB\ncounters = off\n");
	assert_int_equal(floor_of(ALG_AES_128_ECB), SOFTWARE);
	assert_int_equal(floor_of(ALG_AES_128_CTR), 16384);
	assert_int_equal(floor_of(ALG_SHA1), 16384);
	lib_close(&lib);
	lib_open(&lib, "digests = NONE\npolicy = kernel\ncounters = off\n");
	assert_int_equal(floor_of(ALG_SHA1), SOFTWARE);
	assert_int_equal(floor_of(ALG_HMAC_SHA1), SOFTWARE);
	assert_int_equal(floor_of(ALG_AES_128_ECB), 1);
	lib_close(&lib);
	lib_open(&lib, "ciphers = AES-128-CBC:1024\npolicy = software\ncounters = off\n");
	assert_int_equal(floor_of(ALG_AES_128_CBC), SOFTWARE);
	lib_close(&lib);
}

/* How many bytes of a call went to the kernel. */
static uint64_t kernel_bytes(enum algorithm_id id, size_t n)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, "afalgprov");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t *out = malloc(n + 16);
	const uint64_t before = fake_bytes(FAKE_CRYPT);
	int outl;

	assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern(), NULL));
	assert_true(EVP_EncryptUpdate(c, out, &outl, pattern(), (int)n));
	free(out);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
	return fake_bytes(FAKE_CRYPT) - before;
}

/* Settings, and whether calls go to a driver of each class, in the order of enum afalg_class: unknown, software,
 * hardware. */
static const struct {
	const char *settings;
	bool goes[3];
} drivers[] = {
	{"", {false, false, true}},
	{"use_softdrivers = 0", {false, false, true}},
	{"use_softdrivers = 1", {true, true, true}},
	{"use_softdrivers = 2", {true, false, true}},
	{"thresholds = AES-128-CBC:1024", {true, true, true}},
	{"thresholds = AES-128-CBC:1024\nuse_softdrivers = 0", {false, false, true}},
	{"thresholds = AES-128-CBC:1024\nuse_softdrivers = 2", {true, false, true}},
	{"ciphers = AES-128-CBC", {false, false, true}},
	{"ciphers = AES-128-CBC:1024", {true, false, true}},
	{"ciphers = AES-128-CBC:1024\nuse_softdrivers = 0", {false, false, true}},
	{"ciphers = AES-128-CBC:1024\nuse_softdrivers = 1", {true, true, true}},
	{"policy = kernel", {true, true, true}},
	{"policy = kernel\nuse_softdrivers = 0", {false, false, true}},
	{"policy = kernel\nuse_softdrivers = 2", {true, false, true}},
	{"policy = kernel\nciphers = AES-128-CBC:1024", {true, true, true}},
	{"policy = software\nuse_softdrivers = 1", {false, false, false}},
	{"ciphers = NONE\nuse_softdrivers = 1", {false, false, false}},
};

static void test_drivers(void **state)
{
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++)
		for (int class = 0; class < 3; class ++) {
			uint64_t bytes;

			snprintf(text, sizeof(text), "%s\ncounters = off\n", drivers[i].settings);
			lib_open(&lib, text);
			fake_catalogue(0, 0, (enum afalg_class) class);
			bytes = kernel_bytes(ALG_AES_128_CBC, 65536);
			if ((bytes > 0) != drivers[i].goes[class])
				fail_msg("'%s': %llu bytes to a driver of class %d", drivers[i].settings,
					 (unsigned long long)bytes, class);
			lib_close(&lib);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_drivers),
	};

	fake_install();
	return cmocka_run_group_tests_name("settings of engines", tests, NULL, NULL);
}
