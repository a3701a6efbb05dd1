/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../afalg/session.h"
#include "../../provider/software.h"

uint64_t clock_now;

static uint64_t driven_clock(void)
{
	return clock_now;
}

void lib_drive_clock(struct lib *l)
{
	clock_now = 1000000000;
	l->provider->route.clock = driven_clock;
}

const char *config_file(const char *settings)
{
	static char path[] = "/tmp/afalgprov-unit-XXXXXX";
	FILE *f;
	int fd;

	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	assert_non_null(f);
	fprintf(f,
		"openssl_conf = init\n[init]\nproviders = list\n[list]\ndefault = theirs\nafalgprov = ours\n"
		"legacy = theirs\n[theirs]\nactivate = 1\n[ours]\nactivate = 1\n%s\n",
		settings);
	assert_int_equal(fclose(f), 0);
	return path;
}

void lib_open_with(struct lib *l, const char *settings, int support)
{
	const char *path;

	fake_install();
	if (support != 0)
		fake_catalogue(support, -ENOENT, AFALG_UNKNOWN);
	l->context = OSSL_LIB_CTX_new();
	assert_non_null(l->context);
	assert_int_equal(OSSL_PROVIDER_add_builtin(l->context, "afalgprov", OSSL_provider_init), 1);
	path = config_file(settings);
	assert_int_equal(OSSL_LIB_CTX_load_config(l->context, path), 1);
	unlink(path);
	l->ours = OSSL_PROVIDER_load(l->context, "afalgprov");
	assert_non_null(l->ours);
	l->provider = OSSL_PROVIDER_get0_provider_ctx(l->ours);
	l->provider->route.check = NULL; /* its requests would count */
	fake_install(); /* the settings may have chosen another transport */
	ERR_clear_error();
}

void lib_open(struct lib *l, const char *settings)
{
	lib_open_with(l, settings, 0);
}

void lib_close(struct lib *l)
{
	OSSL_PROVIDER_unload(l->ours);
	OSSL_LIB_CTX_free(l->context);
	fake_close_idle();
	assert_int_equal(fake_transforms(), 0);
	assert_int_equal(fake_ops(), 0);
	assert_int_equal(afalg_session_count(), 0);
	assert_int_equal(fake_violations(), 0);
}

EVP_CIPHER *cipher_of(const struct lib *l, enum algorithm_id id, const char *provider)
{
	char query[64];
	EVP_CIPHER *c;

	if (strcmp(provider, "default") == 0 && algorithms[id].legacy)
		provider = "legacy";
	snprintf(query, sizeof(query), "provider=%s", provider);
	c = EVP_CIPHER_fetch(l->context, algorithms[id].name, query);
	assert_non_null(c);
	return c;
}

EVP_MD *digest_of(const struct lib *l, enum algorithm_id id, const char *provider)
{
	char query[64];
	EVP_MD *md;

	snprintf(query, sizeof(query), "provider=%s", provider);
	md = EVP_MD_fetch(l->context, algorithms[id].name, query);
	assert_non_null(md);
	return md;
}

/* A library context in which our digests and ciphers cannot become a part of the default provider's MACs. */
static OSSL_LIB_CTX *default_alone(void)
{
	static OSSL_LIB_CTX *context;

	if (context == NULL)
		context = OSSL_LIB_CTX_new();
	assert_non_null(context);
	return context;
}

EVP_MAC *mac_of(const struct lib *l, enum algorithm_id id, const char *provider)
{
	char query[64];
	EVP_MAC *mac;

	snprintf(query, sizeof(query), "provider=%s", provider);
	mac = EVP_MAC_fetch(strcmp(provider, "default") == 0 ? default_alone() : l->context, algorithms[id].offered,
			    query);
	assert_non_null(mac);
	return mac;
}

OSSL_PARAM mac_over(enum algorithm_id id)
{
	const char *parameter =
		strcmp(algorithms[id].offered, "HMAC") == 0 ? OSSL_MAC_PARAM_DIGEST : OSSL_MAC_PARAM_CIPHER;

	return OSSL_PARAM_construct_utf8_string(parameter, (char *)(uintptr_t)algorithms[id].over, 0);
}

size_t mac_key_length(enum algorithm_id id)
{
	const EVP_CIPHER *cipher = EVP_get_cipherbyname(algorithms[id].over);

	return cipher == NULL ? 32 : (size_t)EVP_CIPHER_get_key_length(cipher);
}

const uint8_t *pattern(void)
{
	static uint8_t bytes[PATTERN_MAX];

	if (bytes[1] == 0)
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(i % 251);
	return bytes;
}

void assert_hex(const uint8_t *bytes, size_t n, const char *hex)
{
	char text[2 * EVP_MAX_MD_SIZE + 1] = "";

	assert_true(n <= EVP_MAX_MD_SIZE);
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

void trace_open(struct trace *t)
{
	t->file = open_memstream(&t->text, &t->size);
	assert_non_null(t->file);
}

void trace_close(struct trace *t)
{
	assert_int_equal(fclose(t->file), 0);
}

void trace_number(struct trace *t, const char *what, long long value)
{
	fprintf(t->file, "%s %lld\n", what, value);
}

/* Long data as a checksum; where it differs the length and the first bytes are told. */
void trace_bytes(struct trace *t, const char *what, const void *bytes, size_t n)
{
	const uint8_t *b = bytes;
	uint64_t sum = 14695981039346656037u;

	fprintf(t->file, "%s of %zu: ", what, n);
	for (size_t i = 0; i < n; i++) {
		if (i < 48)
			fprintf(t->file, "%02x", b[i]);
		sum = (sum ^ b[i]) * 1099511628211u;
	}
	fprintf(t->file, " %llx\n", (unsigned long long)sum);
}

void trace_errors(struct trace *t)
{
	unsigned long e;

	while ((e = ERR_get_error()) != 0)
		fprintf(t->file, "error %d %d\n", ERR_GET_LIB(e), ERR_GET_REASON(e));
}

void trace_compare(struct trace *expected, struct trace *got, const char *what, ...)
{
	va_list args;

	if (strcmp(expected->text, got->text) != 0) {
		char scenario[256];

		va_start(args, what);
		vsnprintf(scenario, sizeof(scenario), what, args);
		va_end(args);
		/* cmocka's own messages end after a kilobyte. */
		fprintf(stderr, "%s\n--- default\n%s--- afalgprov\n%s", scenario, expected->text, got->text);
		fail_msg("the traces differ: %s", scenario);
	}
	free(expected->text);
	free(got->text);
}

bool has_row(int id)
{
	return software_dispatch[id] != NULL;
}

bool one_update(const EVP_CIPHER *cipher)
{
	return EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_CTS;
}

bool first_of_mode(int id)
{
	for (int other = 0; other < id; other++)
		if (algorithms[other].kind == KIND_SKCIPHER && algorithms[other].mode == algorithms[id].mode)
			return false;
	return algorithms[id].kind == KIND_SKCIPHER;
}
