/* SPDX-License-Identifier: Apache-2.0 */
/* TLS and DTLS in one process: two ends, each in a library context of its own, joined by memory. */
#ifndef TESTS_SUPPORT_TLS_H
#define TESTS_SUPPORT_TLS_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_RECORD_MAX 16384u /* bytes of data in a record */

enum tls_end { TLS_CLIENT, TLS_SERVER };

/* A connection. What an end has sent lies in its wire until the other end reads it. */
struct tls_pair {
	SSL *end[2]; /* by enum tls_end */
	BIO *wire[2];
};

/* Names what is tested now, for the message of a check that fails. */
void tls_current(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the test with a message unless `good`. */
void tls_check(int good, const char *what);

/*
 * For both ends, with certificates of RSA, ECDSA and DSA, the same in every context of the process, a PSK and an SRP
 * password; everything that is compiled in is allowed. `method` is that of TLS or of DTLS.
 */
SSL_CTX *tls_context(OSSL_LIB_CTX *libctx, const SSL_METHOD *method);

/* Whether one of these is a version of DTLS. */
int tls_is_datagram(int version);

/* The two ends of a new connection, for one version and, unless NULL, one cipher suite; no handshake yet. */
void tls_open(struct tls_pair *p, SSL_CTX *client, SSL_CTX *server, int version, const char *suite);
void tls_close(struct tls_pair *p);

/* Must succeed, and leave nothing in the queue of errors. */
void tls_handshake(struct tls_pair *p);

/* One record of data, which must arrive as it is. TLS, 0 bytes: a write that the other end does not notice. */
void tls_send(struct tls_pair *p, enum tls_end from, const uint8_t *data, size_t n);
void tls_receive(struct tls_pair *p, enum tls_end to, const uint8_t *data, size_t n);
void tls_pass(struct tls_pair *p, enum tls_end from, const uint8_t *data, size_t n);

/* Has both ends take in what they have been sent, which is no data. */
void tls_settle(struct tls_pair *p);

/*
 * Sends a record of n bytes and flips a bit in byte `at`, modulo its length, of what follows its header: *bytes. Either
 * the other end drops it and takes the right one afterwards: returns 1. Or it finds a bad MAC and tells the sender, and
 * the connection is at its end: returns 0.
 */
int tls_flip(struct tls_pair *p, enum tls_end from, const uint8_t *data, size_t n, size_t at, size_t *bytes);

#endif
