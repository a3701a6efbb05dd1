/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_session_test POLICY: what happens to a connection of TLS besides its records: resumption by ticket, by session
 * and by PSK, early data, renegotiation, new keys; with the module at either end and at both. Tickets that one provider
 * has sealed are opened by the other.
 */
#include <err.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider/algorithms.h"
#include "support.h"
#include "tls.h"

#define SECONDS_MAX 240u

static SSL_CTX *contexts[2][2]; /* by whether it has the module, whether it is for datagrams */
static uint8_t data[TLS_RECORD_MAX + 251];

/* Who has the module: bit 0 the client, bit 1 the server. */
static const char *const arrangements[] = {"no module", "our client", "our server", "ours at both ends"};
#define ARRANGEMENTS 4u

static SSL_CTX *context(unsigned ours, enum tls_end end, int version)
{
	return contexts[ours >> end & 1][tls_is_datagram(version)];
}

static void talk(struct tls_pair *p)
{
	static const size_t sizes[] = {1, 16, 100, 1000, 16000, TLS_RECORD_MAX};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		tls_pass(p, TLS_CLIENT, data + i, sizes[i]);
		tls_pass(p, TLS_SERVER, data + i, sizes[i]);
	}
}

static const struct resumption {
	const char *name;
	int version;
	const char *suite;
	int ticket; /* else the server keeps the session */
	uint32_t early_data;
} resumptions[] = {
	{"TLS 1.0 ticket", TLS1_VERSION, "ECDHE-RSA-AES256-SHA", 1, 0},
	{"TLS 1.2 ticket", TLS1_2_VERSION, "ECDHE-RSA-AES128-GCM-SHA256", 1, 0},
	{"TLS 1.2 session", TLS1_2_VERSION, "ECDHE-RSA-AES256-SHA384", 0, 0},
	{"TLS 1.3 ticket", TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384", 1, 0},
	{"TLS 1.3 session", TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256", 0, 0},
	{"DTLS 1.2 ticket", DTLS1_2_VERSION, "ECDHE-ECDSA-AES128-CCM", 1, 0},
	{"DTLS 1.2 session", DTLS1_2_VERSION, "ECDHE-RSA-CAMELLIA128-SHA256", 0, 0},
};

#define RESUMPTIONS (sizeof(resumptions) / sizeof(*resumptions))

static void open_session(struct tls_pair *p, const struct resumption *r, unsigned ours, SSL_SESSION *session)
{
	tls_open(p, context(ours, TLS_CLIENT, r->version), context(ours, TLS_SERVER, r->version), r->version, r->suite);
	SSL_set_max_early_data(p->end[TLS_SERVER],
			       r->early_data); /* with it the server keeps the session in any case */
	if (!r->ticket)
		SSL_set_options(p->end[TLS_SERVER], SSL_OP_NO_TICKET);
	tls_check(session == NULL || SSL_set_session(p->end[TLS_CLIENT], session), "session");
}

/* An end in good order; else the session may not be resumed. */
static void finish(struct tls_pair *p)
{
	tls_settle(p);
	SSL_shutdown(p->end[TLS_CLIENT]);
	SSL_shutdown(p->end[TLS_SERVER]);
	tls_check(SSL_shutdown(p->end[TLS_CLIENT]) == 1 && ERR_peek_error() == 0, "end");
	tls_close(p);
}

static SSL_SESSION *first_connection(const struct resumption *r, unsigned ours)
{
	SSL_SESSION *session;
	struct tls_pair p;

	open_session(&p, r, ours, NULL);
	tls_handshake(&p);
	talk(&p);
	session = SSL_get1_session(p.end[TLS_CLIENT]);
	tls_check(session != NULL && SSL_SESSION_is_resumable(session), "no session to resume");
	finish(&p);
	return session;
}

static void resume(const struct resumption *r, unsigned ours, SSL_SESSION *session)
{
	struct tls_pair p;

	open_session(&p, r, ours, session);
	tls_handshake(&p);
	tls_check(SSL_session_reused(p.end[TLS_CLIENT]) && SSL_session_reused(p.end[TLS_SERVER]), "not resumed");
	talk(&p);
	finish(&p);
}

/* All servers have the keys of tickets in common, while a server's sessions are its own. */
static void resumption_cases(const struct resumption *r)
{
	for (unsigned first = 0; first < ARRANGEMENTS; first++)
		for (unsigned then = 0; then < ARRANGEMENTS; then++) {
			SSL_SESSION *session;

			if (!r->ticket && first >> TLS_SERVER != then >> TLS_SERVER)
				continue;
			tls_current("%s, %s, then %s", r->name, arrangements[first], arrangements[then]);
			session = first_connection(r, first);
			resume(r, then, session);
			SSL_SESSION_free(session);
		}
}

/* Data in the client's first flight has a key of its own. */
static void early_data(unsigned ours)
{
	static const struct resumption r = {"early data", TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256", 1, TLS_RECORD_MAX};
	SSL_SESSION *session;
	struct tls_pair p;
	uint8_t got[sizeof(data)];
	size_t n = 0, total = 0;

	tls_current("early data, %s", arrangements[ours]);
	session = first_connection(&r, ours);
	open_session(&p, &r, ours, session);
	tls_check(SSL_write_early_data(p.end[TLS_CLIENT], data, 10000, &n) == 1 && n == 10000, "write of early data");
	while (SSL_read_early_data(p.end[TLS_SERVER], got + total, sizeof(got) - total, &n) ==
	       SSL_READ_EARLY_DATA_SUCCESS)
		total += n;
	tls_check(total == 10000 && memcmp(got, data, total) == 0, "early data");
	ERR_clear_error();
	tls_handshake(&p);
	tls_check(SSL_get_early_data_status(p.end[TLS_CLIENT]) == SSL_EARLY_DATA_ACCEPTED, "early data not accepted");
	talk(&p);
	finish(&p);
	SSL_SESSION_free(session);
}

/* Either end asks for it; the client then offers one suite only, so that the records are protected anew each time. */
static void renegotiation(unsigned ours)
{
	static const char *const suites[] = {"AES128-SHA",         "ECDHE-RSA-AES256-GCM-SHA384",
					     "CAMELLIA256-SHA256", "ECDHE-RSA-CHACHA20-POLY1305",
					     "DHE-RSA-AES128-CCM", "ECDHE-ECDSA-AES256-SHA384"};
	struct tls_pair p;

	tls_current("renegotiation, %s", arrangements[ours]);
	tls_open(&p, context(ours, TLS_CLIENT, TLS1_2_VERSION), context(ours, TLS_SERVER, TLS1_2_VERSION),
		 TLS1_2_VERSION, NULL);
	SSL_set_options(p.end[TLS_SERVER],
			SSL_OP_ALLOW_CLIENT_RENEGOTIATION | SSL_OP_NO_SESSION_RESUMPTION_ON_RENEGOTIATION);
	tls_handshake(&p);
	for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++) {
		SSL *asks = p.end[i % 2];

		talk(&p);
		tls_check(SSL_set_cipher_list(p.end[TLS_CLIENT], suites[i]), "suite");
		tls_check(SSL_renegotiate(asks), "renegotiation is not possible");
		SSL_do_handshake(asks);
		tls_settle(&p);
		for (int e = 0; e < 2; e++)
			tls_check(SSL_is_init_finished(p.end[e]) &&
					  strcmp(SSL_get_cipher_name(p.end[e]), suites[i]) == 0,
				  "not renegotiated");
	}
	talk(&p);
	finish(&p);
}

static void key_updates(unsigned ours, const char *suite)
{
	struct tls_pair p;

	tls_current("key update of %s, %s", suite, arrangements[ours]);
	tls_open(&p, context(ours, TLS_CLIENT, TLS1_3_VERSION), context(ours, TLS_SERVER, TLS1_3_VERSION),
		 TLS1_3_VERSION, suite);
	tls_handshake(&p);
	for (int i = 0; i < 8; i++) {
		SSL *end = p.end[i % 2];

		talk(&p);
		tls_check(SSL_key_update(end, i < 4 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) &&
				  SSL_do_handshake(end) == 1,
			  "key update");
		tls_settle(&p);
	}
	talk(&p);
	finish(&p);
}

static void share_ticket_keys(SSL_CTX *ctx)
{
	unsigned char keys[80];

	support_pattern(keys, sizeof(keys));
	tls_check(SSL_CTX_set_tlsext_ticket_keys(ctx, keys, sizeof(keys)) == 1, "keys of tickets");
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
}

static void load(const char *policy)
{
	OSSL_LIB_CTX *libctx[2];
	char settings[64];

	support_init();
	support_pattern(data, sizeof(data));
	snprintf(settings, sizeof(settings), "policy = %s", policy);
	libctx[0] = support_reference();
	libctx[1] = support_load(settings);
	for (int i = 0; i < 2; i++) {
		contexts[i][0] = tls_context(libctx[i], TLS_method());
		contexts[i][1] = tls_context(libctx[i], DTLS_method());
		share_ticket_keys(contexts[i][0]);
		share_ticket_keys(contexts[i][1]);
	}
}

/* Tickets are sealed with AES-256-CBC and sessions are known by digests, whatever protects the records. */
static int kernel_was_used(void)
{
	static const char *const used[] = {"AES-256-CBC", "SHA2-256", "SHA2-384"};
	int bad = 0;

	for (size_t i = 0; i < sizeof(used) / sizeof(*used); i++) {
		const struct support_counts c = support_count(used[i]);

		printf("%s: %llu requests and %llu bytes by the kernel, %llu failures\n", used[i],
		       (unsigned long long)c.kernel_requests, (unsigned long long)c.kernel_bytes,
		       (unsigned long long)(c.errors + c.fallbacks));
		bad += c.kernel_requests == 0 || c.errors + c.fallbacks > 0;
	}
	return bad;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		errx(2, "usage: tls_session_test POLICY");
	alarm(SECONDS_MAX);
	load(argv[1]);
	for (size_t i = 0; i < RESUMPTIONS; i++)
		resumption_cases(&resumptions[i]);
	for (unsigned ours = 0; ours < ARRANGEMENTS; ours++) {
		early_data(ours);
		renegotiation(ours);
		key_updates(ours, "TLS_AES_256_GCM_SHA384");
		key_updates(ours, "TLS_CHACHA20_POLY1305_SHA256");
		key_updates(ours, "TLS_AES_128_CCM_8_SHA256");
	}
	printf("all connections as they should be\n");
	return strcmp(argv[1], "kernel") == 0 && kernel_was_used() > 0;
}
