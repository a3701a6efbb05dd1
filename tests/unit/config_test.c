/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what each key takes and refuses, and what the router makes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "helper.h"
#include "start.h"

/* Whether the provider loads with these lines. */
static bool loads(const char *settings)
{
	OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
	const char *path = config_file(settings);
	bool loaded;

	assert_true(OSSL_PROVIDER_add_builtin(context, "afalgprov", OSSL_provider_init));
	OSSL_LIB_CTX_load_config(context, path);
	unlink(path);
	loaded = OSSL_PROVIDER_available(context, "afalgprov") == 1;
	ERR_clear_error();
	OSSL_LIB_CTX_free(context);
	return loaded;
}

static const char *const good[] = {
	"",
	"policy = speed",
	"policy = cpu",
	"policy = kernel",
	"policy = software",
	"log = error,syslog",
	"log = off, stderr",
	"log = off",
	"thresholds = AES-128-CBC:4096",
	"thresholds = aes-128-cbc:4096, SHA2-256:never",
	"thresholds = AES-128-CBC:0",
	"thresholds = AES-128-CBC:1048576\tSHA1:1",
	"thresholds =",
	"thresholds = HMAC-SHA256:4096,hmac-sha-1:1,HMAC:8192,CMAC-AES-128:1", /* any name of the digest */
	"thresholds = SM4-GCM:4096,DES-CBC:never", /* this OpenSSL may lack the one, and the legacy provider */
	"hang_limit = 0",
	"hang_limit = 600000",
	"transport = auto",
	"transport = kcapi",
	"transport = socket",
	"sessions = 1",
	"sessions = 4096",
	"counters = off",
	"some_other_key = 1", /* of a newer version, or activate and module */
};

static const struct {
	const char *key, *value, *reason;
} bad[] = {
	{"policy", "fast", ""},
	{"policy", "Kernel", ""},
	{"policy", "", ""},
	{"log", "loud", "'loud' is no level; "},
	{"log", "info,syslogd", "'syslogd' is no target; "},
	{"log", "info,relative/path", "'relative/path' is no target; "},
	{"thresholds", "AES-128-CBC", "'AES-128-CBC' lacks a colon; "},
	{"thresholds", "AES-128-CBC:", ""},
	{"thresholds", ":4096", ""},
	{"thresholds", "SHA1:1, AES-129-CBC:4096", "'AES-129-CBC' is no algorithm; "},
	{"thresholds", "AES-128-CBC:4096k", "'AES-128-CBC:4096k' has no number of bytes, or one too large; "},
	{"thresholds", "AES-128-CBC:-1", ""},
	{"thresholds", "AES-128-CBC:1048577", ""},
	{"thresholds", "AES-128-CBC:99999999999999999999", ""},
	{"thresholds", "AES-128-CBC:4096,SHA1", ""},
	{"thresholds", "AES-128-CBC:neverever", ""},
	{"transport", "netlink", ""},
	{"thresholds", "HMAC-SHA9:4096", ""},
	{"thresholds", "HMAC-:4096", ""},
	{"thresholds", "HMACSHA256:4096", ""},
	{"hang_limit", "2s", ""},
	{"hang_limit", "600001", ""},
	{"sessions", "0", ""},
	{"sessions", "4097", ""},
	{"sessions", "many", ""},
	{"sessions", "-1", ""},
	{"sessions", "1 2", ""},
	{"counters", "relative/path", ""},
	{"counters", "on", ""},
};

static void test_good(void **state)
{
	char settings[256];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		/* The file of this process's counters is named once and for all by the first that loads. */
		snprintf(settings, sizeof(settings), "%s%s\n", i == 0 ? "counters = off\n" : "", good[i]);
		if (!loads(settings))
			fail_msg("'%s' is refused", good[i]);
	}
}

/* The load fails, and the error names the key, the value and what is allowed. */
static void test_bad(void **state)
{
	char settings[256], start[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(settings, sizeof(settings), "%s = %s\n", bad[i].key, bad[i].value);
		if (loads(settings) || starts(bad[i].key, bad[i].value, NULL))
			fail_msg("'%s' is taken", settings);
		snprintf(start, sizeof(start), "%s = %s: ", bad[i].key, bad[i].value);
		assert_memory_equal(started.text, start, strlen(start));
		snprintf(start, sizeof(start), "%sallowed is ", bad[i].reason);
		assert_non_null(strstr(started.text, start));
		assert_true(strlen(strstr(started.text, start)) > strlen(start) + 5);
		assert_int_equal(started.errors, 1);
		assert_int_equal(started.reason, ERROR_CONFIG);
	}
	assert_true(starts("policy", "kernel", NULL));
	assert_int_equal(started.errors, 0);
}

/* Any name that `openssl list` shows is a name here too. */
static void test_threshold_alias(void **state)
{
	(void)state;
	assert_true(loads("thresholds = SHA256:4096\n"));
}

/*** What they do ***/

static struct lib lib;

static void test_thresholds(void **state)
{
	const struct route *r;

	(void)state;
	lib_open(&lib, "policy = speed\nthresholds = AES-128-CBC:4096,sha2-256:never SHA1:0\ncounters = off\n");
	r = &lib.provider->route;
	assert_int_equal(route_floor(r, ALG_AES_128_CBC), 4096);
	assert_int_equal(route_floor(r, ALG_SHA2_256), ROUTE_NEVER);
	assert_int_equal(route_floor(r, ALG_SHA1), 1);
	assert_int_equal(route_floor(r, ALG_AES_256_CBC), 16384);
	lib_close(&lib);
	lib_open(&lib, "policy = cpu\ncounters = off\n");
	assert_int_equal(route_floor(&lib.provider->route, ALG_AES_128_CBC), 4096);
	lib_close(&lib);
	lib_open(&lib, "policy = kernel\nthresholds = AES-128-CBC:4096\ncounters = off\n");
	assert_int_equal(route_floor(&lib.provider->route, ALG_AES_128_CBC), 1);
	lib_close(&lib);
	lib_open(&lib, "policy = software\nthresholds = AES-128-CBC:4096\ncounters = off\n");
	assert_int_equal(route_floor(&lib.provider->route, ALG_AES_128_CBC), ROUTE_NEVER);
	lib_close(&lib);
}

/* Encrypts n bytes at once; how many went to the kernel. */
static uint64_t kernel_bytes(enum algorithm_id id, size_t n)
{
	EVP_CIPHER *cipher = cipher_of(&lib, id, "afalgprov");
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	uint8_t *out = malloc(n + 16);
	const uint64_t before = fake_bytes(FAKE_CRYPT);
	int outl;

	assert_true(EVP_EncryptInit_ex2(c, cipher, pattern(), pattern(), NULL));
	assert_true(EVP_EncryptUpdate(c, out, &outl, pattern(), (int)n));
	assert_int_equal(outl, n / 16 * 16);
	free(out);
	EVP_CIPHER_CTX_free(c);
	EVP_CIPHER_free(cipher);
	return fake_bytes(FAKE_CRYPT) - before;
}

/* Hardware is taken from the threshold on; whether it is there is asked once. */
static void test_hardware(void **state)
{
	(void)state;
	lib_open(&lib, "policy = speed\ncounters = off\n");
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 16368), 0);
	assert_int_equal(fake_asked(), 0);
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 16384), 16384);
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 65536), 0); /* so that the other lane's cost is known too */
	assert_int_equal(fake_asked(), 1);
	lib_close(&lib);
}

/* A software driver is not worth its system calls, unless the user has set a threshold or wants the kernel. */
static void test_software_driver(void **state)
{
	(void)state;
	lib_open(&lib, "policy = speed\nthresholds = AES-256-CBC:1024\ncounters = off\n");
	fake_catalogue(0, 0, AFALG_SOFTWARE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 65536), 0);
	assert_int_equal(fake_asked(), 1);
	assert_int_equal(kernel_bytes(ALG_AES_256_CBC, 1024), 1024);
	assert_int_equal(kernel_bytes(ALG_AES_256_CBC, 1008), 0);
	assert_int_equal(fake_asked(), 1);
	lib_close(&lib);
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	fake_catalogue(0, -ENOENT, AFALG_UNKNOWN);
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 16), 16);
	assert_int_equal(fake_asked(), 0);
	lib_close(&lib);
}

/* A catalogue that cannot be read is no reason for anything but software. */
static void test_unreadable(void **state)
{
	(void)state;
	lib_open(&lib, "policy = speed\ncounters = off\n");
	fake_catalogue(0, -EACCES, AFALG_HARDWARE);
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 65536), 0);
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 65536), 0);
	assert_int_equal(fake_asked(), 1);
	assert_int_equal(ERR_peek_error(), 0);
	lib_close(&lib);
}

static bool take(const struct route *r, enum algorithm_id id, size_t bytes)
{
	struct route_use use = {.id = id};

	return route_take(r, &use, bytes);
}

static void outcome(const struct route *r, enum algorithm_id id, bool opened, int error)
{
	struct route_use use = {.id = id};

	route_outcome(r, &use, opened, error);
}

/* The router alone, with a clock that is driven: a rest ends when its time has come and doubles with each failure. */
static void test_rest(void **state)
{
	uint64_t rest = 10000000;

	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	lib_drive_clock(&lib);
	for (int i = 0; i < 16; i++) {
		const struct route *r = &lib.provider->route;

		assert_true(take(r, ALG_AES_128_CBC, 16));
		outcome(r, ALG_AES_128_CBC, true, -EIO);
		clock_now += rest - 1;
		assert_false(take(r, ALG_AES_128_CBC, 16));
		assert_true(take(r, ALG_AES_192_CBC, 16)); /* each algorithm for itself */
		clock_now += 1;
		rest = rest * 2 < 10000000000 ? rest * 2 : 10000000000;
	}
	outcome(&lib.provider->route, ALG_AES_128_CBC, true, 0);
	outcome(&lib.provider->route, ALG_AES_128_CBC, true, -EBUSY);
	clock_now += 10000000;
	assert_true(take(&lib.provider->route, ALG_AES_128_CBC, 16));
	outcome(&lib.provider->route, ALG_AES_128_CBC, false, -ENOENT);
	clock_now += 100000000000;
	assert_false(take(&lib.provider->route, ALG_AES_128_CBC, 16));
	assert_int_equal(route_floor(&lib.provider->route, ALG_AES_128_CBC), ROUTE_NEVER);
	lib_close(&lib);
}

/* Two instances in one process, with settings of their own. */
static void test_two_instances(void **state)
{
	struct lib other;

	(void)state;
	lib_open(&lib, "policy = kernel\ncounters = off\n");
	lib_open(&other, "policy = software\ncounters = off\n");
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 1024), 1024);
	assert_int_equal(route_floor(&other.provider->route, ALG_AES_128_CBC), ROUTE_NEVER);
	lib_close(&other);
	assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 1024), 1024);
	lib_close(&lib);
}

/* Loaded and unloaded over and over: nothing stays. */
static void test_reload(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		lib_open(&lib, "policy = kernel\ncounters = off\n");
		assert_int_equal(kernel_bytes(ALG_AES_128_CBC, 1024), 1024);
		lib_close(&lib);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_threshold_alias),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(test_hardware),
		cmocka_unit_test(test_software_driver),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_two_instances),
		cmocka_unit_test(test_reload),
	};

	fake_install();
	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
