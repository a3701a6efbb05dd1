/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tls [-r ROUNDS] [SETTING;...]: what a handshake of TLS 1.3 costs in processor time with the module at both
 * ends, beside the default provider at both ends. Both take turns in short rounds, and medians are compared.
 */
#include <err.h>
#include <getopt.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "../tools/median.h"
#include "support.h"
#include "tls.h"

#define ROUNDS_MAX 101u
#define ROUND_SECONDS 0.02

enum side { SIDE_DEFAULT, SIDE_PROVIDER, SIDES };

/* A resumption does the least that software must do in both, and no signature. */
static const struct handshake {
	const char *name, *suite, *signature;
	int resumed;
} handshakes[] = {
	{"ECDSA P-256", "TLS_AES_256_GCM_SHA384", "ECDSA+SHA256", 0},
	{"ECDSA P-256", "TLS_AES_128_GCM_SHA256", "ECDSA+SHA256", 0},
	{"RSA 2048", "TLS_AES_256_GCM_SHA384", "RSA-PSS+SHA256", 0},
	{"resumed", "TLS_AES_256_GCM_SHA384", "ECDSA+SHA256", 1},
	{"resumed", "TLS_CHACHA20_POLY1305_SHA256", "ECDSA+SHA256", 1},
};

#define HANDSHAKES (sizeof(handshakes) / sizeof(*handshakes))

static SSL_CTX *contexts[SIDES];
static unsigned rounds = ROUNDS_MAX;

static double processor_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the session for the next handshake. */
static SSL_SESSION *shake(const struct handshake *h, enum side side, SSL_SESSION *session)
{
	static const uint8_t data[1];
	struct tls_pair p;

	tls_open(&p, contexts[side], contexts[side], TLS1_3_VERSION, h->suite);
	tls_check(SSL_set1_sigalgs_list(p.end[TLS_CLIENT], h->signature) == 1, "signature");
	tls_check(session == NULL || SSL_set_session(p.end[TLS_CLIENT], session), "session");
	SSL_SESSION_free(session);
	tls_handshake(&p);
	tls_check(SSL_session_reused(p.end[TLS_SERVER]) == (session != NULL), "resumption");
	tls_pass(&p, TLS_SERVER, data, sizeof(data)); /* brings the tickets too */
	session = h->resumed ? SSL_get1_session(p.end[TLS_CLIENT]) : NULL;
	SSL_set_shutdown(p.end[TLS_CLIENT], SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* else it is not resumable */
	tls_close(&p);
	return session;
}

static double run(const struct handshake *h, enum side side, unsigned n)
{
	SSL_SESSION *session = h->resumed ? shake(h, side, NULL) : NULL;
	const double start = processor_time();

	for (unsigned i = 0; i < n; i++)
		session = shake(h, side, session);
	SSL_SESSION_free(session);
	return (processor_time() - start) / n;
}

static void measure(const struct handshake *h)
{
	static double cost[SIDES][ROUNDS_MAX], ratio[ROUNDS_MAX];
	const double one = run(h, SIDE_PROVIDER, 10) + run(h, SIDE_DEFAULT, 10);
	const unsigned n = 1 + (unsigned)(2 * ROUND_SECONDS / one);

	if (one <= 0)
		errx(1, "this kernel does not account processor time");
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < SIDES; k++) {
			const enum side side = (enum side)((i + k) % SIDES);

			cost[side][i] = run(h, side, n);
		}
		ratio[i] = cost[SIDE_PROVIDER][i] / cost[SIDE_DEFAULT][i];
	}
	printf("%-12s %-30s %9.1f %9.1f %8.3f\n", h->name, h->suite, median(cost[SIDE_DEFAULT], rounds) * 1e6,
	       median(cost[SIDE_PROVIDER], rounds) * 1e6, median(ratio, rounds));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char settings[4096];
	struct utsname u;
	int c;

	while ((c = getopt(argc, argv, "r:")) != -1)
		if (c != 'r' || (rounds = (unsigned)strtoul(optarg, NULL, 10)) == 0 || rounds > ROUNDS_MAX)
			errx(2, "bench_tls [-r ROUNDS] [SETTING;...]; 1 to %u rounds", ROUNDS_MAX);
	snprintf(settings, sizeof(settings), "%s", optind < argc ? argv[optind] : "");
	uname(&u);
	printf("TLS 1.3 handshakes, %s %s %s, %u rounds of %.0f ms, settings: %s\n", u.sysname, u.release, u.machine,
	       rounds, ROUND_SECONDS * 1e3, settings[0] == '\0' ? "none" : settings);
	for (char *s = settings; *s != '\0'; s++)
		*s = *s == ';' ? '\n' : *s;
	support_init();
	contexts[SIDE_DEFAULT] = tls_context(support_reference(), TLS_method());
	contexts[SIDE_PROVIDER] = tls_context(support_load(settings), TLS_method());
	printf("%-12s %-30s %9s %9s %8s   (microseconds of both ends)\n", "", "", "default", "provider", "ratio");
	for (size_t i = 0; i < HANDSHAKES; i++)
		measure(&handshakes[i]);
	return 0;
}
