/* SPDX-License-Identifier: Apache-2.0 */
#define OPENSSL_SUPPRESS_DEPRECATED /* SRP */
#include "tls.h"

#include <err.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/srp.h>
#include <openssl/x509.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char current[160];

void tls_current(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(current, sizeof(current), format, ap);
	va_end(ap);
}

void tls_check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", current, what);
	ERR_print_errors_fp(stderr);
	exit(1);
}

static void check_queue(const char *what)
{
	tls_check(ERR_peek_error() == 0, what);
}

/* A key and a certificate that it has signed itself, encoded, so that each library context reads its own. */
struct identity {
	const char *algorithm;
	int type;
	uint8_t *key, *certificate;
	int key_len, certificate_len;
};

static struct identity identities[] = {
	{"RSA", EVP_PKEY_RSA, NULL, NULL, 0, 0},
	{"EC", EVP_PKEY_EC, NULL, NULL, 0, 0},
	{"DSA", EVP_PKEY_DSA, NULL, NULL, 0, 0},
};

#define IDENTITIES (sizeof(identities) / sizeof(*identities))

/* Of the least size that all suites can do with: they are the default provider's work anyway. */
static EVP_PKEY *dsa_key(void)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "DSA", NULL);
	EVP_PKEY *params = NULL, *key = NULL;
	size_t p = 1024, q = 160;
	OSSL_PARAM sizes[] = {OSSL_PARAM_size_t(OSSL_PKEY_PARAM_FFC_PBITS, &p),
			      OSSL_PARAM_size_t(OSSL_PKEY_PARAM_FFC_QBITS, &q), OSSL_PARAM_END};

	tls_check(EVP_PKEY_paramgen_init(ctx) == 1 && EVP_PKEY_CTX_set_params(ctx, sizes) == 1 &&
			  EVP_PKEY_paramgen(ctx, &params) == 1,
		  "DSA parameters");
	EVP_PKEY_CTX_free(ctx);
	ctx = EVP_PKEY_CTX_new_from_pkey(NULL, params, NULL);
	tls_check(EVP_PKEY_keygen_init(ctx) == 1 && EVP_PKEY_keygen(ctx, &key) == 1, "DSA key");
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(params);
	return key;
}

static EVP_PKEY *new_key(int type)
{
	switch (type) {
	case EVP_PKEY_RSA:
		return EVP_RSA_gen(2048);
	case EVP_PKEY_EC:
		return EVP_EC_gen("P-256");
	default:
		return dsa_key();
	}
}

static void identity_make(struct identity *id)
{
	EVP_PKEY *key = new_key(id->type);
	X509 *x = X509_new();
	X509_NAME *name = X509_get_subject_name(x);

	tls_check(key != NULL &&
			  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)id->algorithm, -1,
						     -1, 0) &&
			  X509_set_issuer_name(x, name) && X509_set_version(x, X509_VERSION_3) &&
			  ASN1_INTEGER_set(X509_get_serialNumber(x), 1) && X509_set_pubkey(x, key) &&
			  X509_gmtime_adj(X509_getm_notBefore(x), -86400) != NULL &&
			  X509_gmtime_adj(X509_getm_notAfter(x), 86400) != NULL && X509_sign(x, key, EVP_sha256()) > 0,
		  "certificate");
	id->key_len = i2d_PrivateKey(key, &id->key);
	id->certificate_len = i2d_X509(x, &id->certificate);
	tls_check(id->key_len > 0 && id->certificate_len > 0, "encoding");
	X509_free(x);
	EVP_PKEY_free(key);
}

static void identity_use(struct identity *id, SSL_CTX *ctx)
{
	if (id->key == NULL)
		identity_make(id);
	tls_check(SSL_CTX_use_certificate_ASN1(ctx, id->certificate_len, id->certificate) == 1 &&
			  SSL_CTX_use_PrivateKey_ASN1(id->type, ctx, id->key, id->key_len) == 1 &&
			  X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), SSL_CTX_get0_certificate(ctx)),
		  id->algorithm);
}

static const char psk_identity[] = "identity";
static const unsigned char psk[32] = {1, 2, 3};

static unsigned int psk_client(SSL *ssl, const char *hint, char *identity, unsigned int identity_size,
			       unsigned char *key, unsigned int key_size)
{
	(void)ssl;
	(void)hint;
	snprintf(identity, identity_size, "%s", psk_identity);
	memcpy(key, psk, key_size < sizeof(psk) ? key_size : sizeof(psk));
	return sizeof(psk);
}

static unsigned int psk_server(SSL *ssl, const char *identity, unsigned char *key, unsigned int key_size)
{
	(void)ssl;
	memcpy(key, psk, key_size < sizeof(psk) ? key_size : sizeof(psk));
	return strcmp(identity, psk_identity) == 0 ? sizeof(psk) : 0;
}

#ifndef OPENSSL_NO_SRP
static char user[] = "user", password[] = "password";

static int srp_server(SSL *ssl, int *alert, void *arg)
{
	(void)arg;
	*alert = SSL_AD_INTERNAL_ERROR;
	return SSL_set_srp_server_param_pw(ssl, user, password, "1536") == 1 ? SSL_ERROR_NONE : SSL3_AL_FATAL;
}

static void use_srp(SSL_CTX *ctx)
{
	tls_check(SSL_CTX_set_srp_username(ctx, user) == 1 && SSL_CTX_set_srp_password(ctx, password) == 1 &&
			  SSL_CTX_set_srp_username_callback(ctx, srp_server) == 1,
		  "SRP");
}
#else
static void use_srp(SSL_CTX *ctx)
{
	(void)ctx;
}
#endif

static void use_dh(SSL_CTX *ctx, OSSL_LIB_CTX *libctx)
{
	char group[] = "modp_1536";
	OSSL_PARAM params[] = {OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group) - 1),
			       OSSL_PARAM_END};
	EVP_PKEY_CTX *make = EVP_PKEY_CTX_new_from_name(libctx, "DH", NULL);
	EVP_PKEY *dh = NULL;

	tls_check(EVP_PKEY_fromdata_init(make) == 1 &&
			  EVP_PKEY_fromdata(make, &dh, EVP_PKEY_KEY_PARAMETERS, params) == 1 &&
			  SSL_CTX_set0_tmp_dh_pkey(ctx, dh),
		  "Diffie-Hellman group");
	EVP_PKEY_CTX_free(make);
}

/* Each is known to some versions of OpenSSL only, and a list with an unknown one is refused. */
static void allow_tls13_suites(SSL_CTX *ctx)
{
	static const char *const suites[] = {
		"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",   "TLS_CHACHA20_POLY1305_SHA256",
		"TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256", "TLS_SHA256_SHA256",
		"TLS_SHA384_SHA384"};
	char list[256] = "";

	for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++) {
		const size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ":" : "", suites[i]);
		if (!SSL_CTX_set_ciphersuites(ctx, list))
			list[used] = '\0';
	}
	tls_check(SSL_CTX_set_ciphersuites(ctx, list), "suites of TLS 1.3");
	ERR_clear_error();
}

SSL_CTX *tls_context(OSSL_LIB_CTX *libctx, const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new_ex(libctx, NULL, method);

	tls_check(ctx != NULL, "context of libssl");
	SSL_CTX_set_security_level(ctx, 0);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"tls", 3);
	SSL_CTX_set_psk_client_callback(ctx, psk_client);
	SSL_CTX_set_psk_server_callback(ctx, psk_server);
	tls_check(SSL_CTX_set_cipher_list(ctx, "ALL:COMPLEMENTOFALL"), "all suites");
	for (size_t i = 0; i < IDENTITIES; i++)
		identity_use(&identities[i], ctx);
	allow_tls13_suites(ctx);
	use_dh(ctx, libctx);
	use_srp(ctx);
	check_queue("context of libssl");
	return ctx;
}

int tls_is_datagram(int version)
{
	return version >> 8 == DTLS1_VERSION_MAJOR;
}

/* No datagram is lost here: nothing must be sent again, however slow the machine is. */
static unsigned int no_timeout(SSL *ssl, unsigned int microseconds)
{
	(void)ssl;
	(void)microseconds;
	return 1000000000;
}

static void limit(SSL *ssl, int version, const char *suite)
{
	const int tls13 = version == TLS1_3_VERSION;

	tls_check(SSL_set_min_proto_version(ssl, version) && SSL_set_max_proto_version(ssl, version), "version");
	if (suite != NULL)
		tls_check(tls13 ? SSL_set_ciphersuites(ssl, suite) : SSL_set_cipher_list(ssl, suite), "suite");
	if (tls13) { /* there a PSK would take the place of the certificate in every suite */
		SSL_set_psk_client_callback(ssl, NULL);
		SSL_set_psk_server_callback(ssl, NULL);
	}
	if (tls_is_datagram(version)) {
		SSL_set_options(ssl, SSL_OP_NO_QUERY_MTU);
		SSL_set_mtu(ssl, 1400);
		DTLS_set_timer_cb(ssl, no_timeout);
	}
}

void tls_open(struct tls_pair *p, SSL_CTX *client, SSL_CTX *server, int version, const char *suite)
{
	for (int i = 0; i < 2; i++) {
		p->end[i] = SSL_new(i == TLS_CLIENT ? client : server);
		p->wire[i] = BIO_new(BIO_s_mem());
		tls_check(p->end[i] != NULL && p->wire[i] != NULL, "memory");
		limit(p->end[i], version, suite);
	}
	for (int i = 0; i < 2; i++) {
		BIO_up_ref(p->wire[0]);
		BIO_up_ref(p->wire[1]);
		SSL_set_bio(p->end[i], p->wire[!i], p->wire[i]);
	}
	SSL_set_verify(p->end[TLS_CLIENT], SSL_VERIFY_PEER, NULL);
	SSL_set_connect_state(p->end[TLS_CLIENT]);
	SSL_set_accept_state(p->end[TLS_SERVER]);
}

void tls_close(struct tls_pair *p)
{
	for (int i = 0; i < 2; i++) {
		SSL_free(p->end[i]);
		BIO_free(p->wire[i]);
	}
}

void tls_handshake(struct tls_pair *p)
{
	int done = 0;

	for (int i = 0; i < 50 && done < 2; i++) {
		done = 0;
		for (int e = 0; e < 2; e++) {
			const int r = SSL_do_handshake(p->end[e]);

			tls_check(r == 1 || SSL_get_error(p->end[e], r) == SSL_ERROR_WANT_READ,
				  e == TLS_CLIENT ? "handshake of the client" : "handshake of the server");
			done += r == 1;
		}
	}
	tls_check(done == 2, "handshake without an end");
	check_queue("the handshake has left an error in the queue");
}

void tls_settle(struct tls_pair *p)
{
	for (int i = 0; i < 20 && (i == 0 || BIO_pending(p->wire[0]) > 0 || BIO_pending(p->wire[1]) > 0); i++)
		for (int e = 0; e < 2; e++) {
			uint8_t byte;
			const int r = SSL_read(p->end[e], &byte, 1);

			tls_check(r <= 0 && SSL_get_error(p->end[e], r) == SSL_ERROR_WANT_READ, "no data was sent");
		}
	tls_check(BIO_pending(p->wire[0]) == 0 && BIO_pending(p->wire[1]) == 0, "messages without an end");
	check_queue("a message has left an error in the queue");
}

void tls_send(struct tls_pair *p, enum tls_end from, const uint8_t *data, size_t n)
{
	size_t written = 0;

	if (n == 0 && SSL_is_dtls(p->end[from])) /* libssl refuses that */
		return;
	tls_check(SSL_write_ex(p->end[from], data, n, &written) && written == n, "write");
}

void tls_receive(struct tls_pair *p, enum tls_end to, const uint8_t *data, size_t n)
{
	static uint8_t got[TLS_RECORD_MAX + 1];
	size_t have = 0;
	const int ok = SSL_read_ex(p->end[to], got, sizeof(got), &have);

	if (n == 0)
		tls_check(!ok && SSL_get_error(p->end[to], 0) == SSL_ERROR_WANT_READ, "an empty write was noticed");
	else
		tls_check(ok && have == n && memcmp(got, data, n) == 0, "data has not arrived as it was sent");
	check_queue("a record has left an error in the queue");
}

void tls_pass(struct tls_pair *p, enum tls_end from, const uint8_t *data, size_t n)
{
	tls_send(p, from, data, n);
	tls_receive(p, !from, data, n);
}

/* Where the last record of what was sent begins; before it may be the empty one of TLS 1.0. */
static size_t last_record(const uint8_t *sent, size_t n, size_t header)
{
	size_t at = 0;

	for (;;) {
		const size_t next = at + header + (size_t)sent[at + header - 2] * 256 + sent[at + header - 1];

		tls_check(next <= n, "record");
		if (next == n)
			return at;
		at = next;
	}
}

/* The read must fail for this reason. */
static void found_bad(SSL *ssl, int result, int reason, const char *what)
{
	tls_check(result <= 0 && SSL_get_error(ssl, result) == SSL_ERROR_SSL, what);
	tls_check(ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_SSL && ERR_GET_REASON(ERR_peek_last_error()) == reason,
		  what);
	ERR_clear_error();
}

int tls_flip(struct tls_pair *p, enum tls_end from, const uint8_t *data, size_t n, size_t at, size_t *bytes)
{
	static uint8_t sent[2 * TLS_RECORD_MAX];
	SSL *to = p->end[!from];
	const size_t header = SSL_is_dtls(to) ? DTLS1_RT_HEADER_LENGTH : SSL3_RT_HEADER_LENGTH;
	size_t start;
	uint8_t byte;
	int length, r;

	tls_send(p, from, data, n);
	length = BIO_read(p->wire[from], sent, sizeof(sent));
	start = last_record(sent, (size_t)length, header) + header;
	*bytes = (size_t)length - start;
	at = start + at % *bytes;
	sent[at] ^= (uint8_t)(1 << at % 8);
	BIO_write(p->wire[from], sent, length);
	r = SSL_read(to, &byte, 1);
	if (SSL_is_dtls(to) && r <= 0 && SSL_get_error(to, r) == SSL_ERROR_WANT_READ) {
		check_queue("a bad datagram has left an error in the queue");
		sent[at] ^= (uint8_t)(1 << at % 8);
		BIO_write(p->wire[from], sent, length);
		tls_receive(p, !from, data, n);
		return 1;
	}
	found_bad(to, r, SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, "the flipped bit");
	r = SSL_read(p->end[from], &byte, 1);
	found_bad(p->end[from], r, SSL_R_SSLV3_ALERT_BAD_RECORD_MAC, "the alert of the flipped bit");
	return 0;
}
