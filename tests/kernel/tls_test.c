/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_test POLICY DEPTH [cbc]: TLS and DTLS with the module at one end or both and the default provider at the other.
 * At the end of policy "kernel" the counters must show that the kernel did the records of every cipher that it serves.
 *
 * DEPTH  suites: every suite that the default provider offers, in every version, with records of many sizes; and for
 *                each mode of protection a flipped bit in every byte of a record
 *        full:   also records of every size in each mode
 *        short:  every fifth way to protect records
 * cbc: suites of AES-CBC only. Where OPENSSL_ia32cap hides the processor's AES instructions, libssl takes AES-CBC from
 * the module for records with the MAC inside too; else it takes a cipher of the default provider that has the MAC in
 * it.
 */
#include <err.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider/algorithms.h"
#include "support.h"
#include "tls.h"

#define SECONDS_MAX 880u
#define OUR_CLIENT 1u
#define OUR_SERVER 2u

static const char *const arrangements[] = {"no module", "our client", "our server", "ours at both ends"};

static const struct {
	int version;
	const char *name;
} versions[] = {
	{TLS1_VERSION, "TLS 1.0"},   {TLS1_1_VERSION, "TLS 1.1"}, {TLS1_2_VERSION, "TLS 1.2"},
	{TLS1_3_VERSION, "TLS 1.3"}, {DTLS1_VERSION, "DTLS 1.0"}, {DTLS1_2_VERSION, "DTLS 1.2"},
};

#define VERSIONS (sizeof(versions) / sizeof(*versions))

/* A way to protect records. libssl has one with the MAC inside and one with the MAC outside for each but AEAD. */
struct protection {
	int version, cipher, digest, mac_inside;
};

/* What to test: a suite in a version, and who has the module. */
struct how {
	struct protection protection;
	const char *suite;
	unsigned ours;
};

struct connection {
	struct tls_pair pair;
	const struct how *how;
	int row; /* of the algorithms: the cipher of the records; -1: none of ours */
	int alive;
	uint64_t nonces[2]; /* explicit ones of GCM, of the last record that each end has sent */
};

static SSL_CTX *contexts[2][2]; /* by whether it has the module, whether it is for datagrams */
static uint8_t data[2 * TLS_RECORD_MAX];
static uint64_t seed = 20261130;
static enum depth { DEPTH_SHORT, DEPTH_SUITES, DEPTH_FULL } depth;
static int cbc_only;
static OSSL_LIB_CTX *reference_libctx;

/* Bytes of records that ends with the module have sealed and opened, and bits flipped in them, by algorithm. */
static uint64_t given[ALGORITHM_COUNT], flipped[ALGORITHM_COUNT];
static unsigned connections, records;

static const char *version_name(int version)
{
	for (size_t i = 0; i < VERSIONS; i++)
		if (versions[i].version == version)
			return versions[i].name;
	return "?";
}

/* CBC, or no encryption at all; the others are AEAD. */
static int has_mac(const struct protection *p)
{
	return p->digest != NID_undef && p->version != TLS1_3_VERSION;
}

/* The row of the module's algorithms that seals the records; libssl looks for ciphers by these names too. */
static int cipher_row(const struct protection *p)
{
	EVP_CIPHER *c;
	int row = -1;

	if (p->cipher == NID_undef)
		return -1;
	c = EVP_CIPHER_fetch(reference_libctx, OBJ_nid2sn(p->cipher), NULL);
	if (c != NULL)
		row = algorithm_find(EVP_CIPHER_get0_name(c), strlen(EVP_CIPHER_get0_name(c)));
	EVP_CIPHER_free(c);
	ERR_clear_error();
	return row;
}

static void open_connection(struct connection *c, const struct how *how)
{
	const struct protection *p = &how->protection;
	const int datagram = tls_is_datagram(p->version);

	tls_current("%s %s%s, %s", version_name(p->version), how->suite,
		    !has_mac(p)     ? ""
		    : p->mac_inside ? " with the MAC inside"
				    : " with the MAC outside",
		    arrangements[how->ours]);
	*c = (struct connection){.how = how};
	c->row = cipher_row(p);
	tls_open(&c->pair, contexts[(how->ours & OUR_CLIENT) != 0][datagram],
		 contexts[(how->ours & OUR_SERVER) != 0][datagram], p->version, how->suite);
	if (p->mac_inside)
		SSL_set_options(c->pair.end[TLS_CLIENT], SSL_OP_NO_ENCRYPT_THEN_MAC);
	tls_handshake(&c->pair);
	tls_check(strcmp(SSL_get_cipher_name(c->pair.end[TLS_CLIENT]), how->suite) == 0, "another suite was chosen");
	c->alive = 1;
	connections++;
}

/* How many ends have the module: one sends, the other receives. */
static unsigned our_ends(const struct how *how)
{
	return (how->ours & 1) + (how->ours >> 1);
}

/* The other end does not mind, but GCM must never use a nonce twice: OpenSSL counts them from a random one on. */
static void check_nonce(struct connection *c, enum tls_end from)
{
	const int version = c->how->protection.version;
	const size_t header = tls_is_datagram(version) ? DTLS1_RT_HEADER_LENGTH : SSL3_RT_HEADER_LENGTH;
	uint64_t nonce = 0;
	const uint8_t *sent;

	if (version == TLS1_3_VERSION || strstr(c->how->suite, "GCM") == NULL ||
	    BIO_get_mem_data(c->pair.wire[from], &sent) < (long)header + 8)
		return;
	for (int i = 0; i < 8; i++)
		nonce = nonce << 8 | sent[header + (size_t)i];
	tls_check(c->nonces[from] == 0 || nonce == c->nonces[from] + 1, "nonce");
	c->nonces[from] = nonce;
}

static void pass(struct connection *c, enum tls_end from, size_t n)
{
	tls_send(&c->pair, from, data + n % 251, n);
	check_nonce(c, from);
	tls_receive(&c->pair, !from, data + n % 251, n);
	records++;
	if (c->row >= 0)
		given[c->row] += our_ends(c->how) * n;
}

/*
 * Returns how many bytes follow the header of the record. TLS ends with a bad record. DTLS drops it, but for
 * OpenSSL 3.0 where the MAC is outside.
 */
static size_t flip(struct connection *c, enum tls_end from, size_t n, size_t at)
{
	const struct protection *p = &c->how->protection;
	const int datagram = tls_is_datagram(p->version);
	size_t bytes;

	if (c->row >= 0)
		flipped[c->row]++;
	c->alive = tls_flip(&c->pair, from, data, n, at, &bytes);
	tls_check(c->alive ? datagram : !datagram || (has_mac(p) && !p->mac_inside), "effect of a flipped bit");
	return bytes;
}

static void pass_range(struct connection *c, size_t first, size_t last)
{
	for (size_t n = first; n <= last; n++) {
		pass(c, TLS_CLIENT, n);
		pass(c, TLS_SERVER, n);
	}
}

/* Sizes around blocks, around the lengths where the padding of a MAC takes another block, and the largest. */
static void pass_sizes(struct connection *c)
{
	static const struct {
		size_t first, last;
	} ranges[] = {
		{0, 1},     {15, 17},     {31, 33},     {47, 49},     {63, 65},     {100, 100},     {255, 257},
		{511, 513}, {1000, 1000}, {1007, 1025}, {2031, 2049}, {4096, 4096}, {16383, 16384},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		pass_range(c, ranges[i].first, ranges[i].last);
}

static void connection_case(const struct how *how)
{
	struct connection c;

	open_connection(&c, how);
	pass_sizes(&c);
	flip(&c, (enum tls_end)support_below(&seed, 2), 1 + support_below(&seed, 100), support_below(&seed, 20000));
	tls_close(&c.pair);
}

/* How often each protection was met. */
static unsigned *times_met(const struct protection *p)
{
	static struct {
		struct protection protection;
		unsigned times;
	} met[512];
	size_t i = 0;

	while (met[i].times > 0 && memcmp(&met[i].protection, p, sizeof(*p)) != 0)
		if (++i == sizeof(met) / sizeof(*met))
			errx(1, "too many ways to protect records");
	met[i].protection = *p;
	return &met[i].times;
}

/*
 * A protection that is met for the first time is tried with the module at either end and at both; another suite that
 * differs only in the exchange of keys, with these in turn.
 */
static void protection_case(struct how *how)
{
	unsigned *times = times_met(&how->protection), met = (*times)++, turn = 1 + connections % 3;
	static unsigned ways;

	if (cbc_only && (!has_mac(&how->protection) || strstr(how->suite, "AES") == NULL))
		return;
	if (depth == DEPTH_SHORT && (met > 0 || ways++ % 5 != 0))
		return;
	for (unsigned ours = 1; ours <= 3; ours++) {
		how->ours = ours;
		if ((depth > DEPTH_SHORT && met == 0) || ours == turn)
			connection_case(how);
	}
}

static struct protection protection_of(int version, const SSL_CIPHER *suite)
{
	/* With AEAD, libssl says NID_undef for the digest, and without encryption NID_undef for the cipher. */
	return (struct protection){
		.version = version,
		.cipher = SSL_CIPHER_get_cipher_nid(suite),
		.digest = SSL_CIPHER_get_digest_nid(suite),
	};
}

static void suite_cases(int version, const SSL_CIPHER *suite)
{
	struct how how = {.protection = protection_of(version, suite), .suite = SSL_CIPHER_get_name(suite)};

	protection_case(&how);
	how.protection.mac_inside = has_mac(&how.protection);
	if (how.protection.mac_inside)
		protection_case(&how);
}

static STACK_OF(SSL_CIPHER) * offered(int with_module, int version)
{
	SSL_CTX *ctx = contexts[with_module][tls_is_datagram(version)];
	STACK_OF(SSL_CIPHER) * list;
	struct tls_pair p;

	tls_open(&p, ctx, ctx, version, NULL);
	list = SSL_get1_supported_ciphers(p.end[TLS_CLIENT]);
	tls_close(&p);
	tls_check(list != NULL, "offers nothing");
	return list;
}

/* The module must neither add a suite nor lose one. Returns how many there are. */
static int version_cases(int version)
{
	STACK_OF(SSL_CIPHER) *ours = offered(1, version), *list = offered(0, version);
	const int n = sk_SSL_CIPHER_num(list);

	tls_current("%s", version_name(version));
	tls_check(n == sk_SSL_CIPHER_num(ours), "not the default provider's suites");
	for (int i = 0; i < n; i++)
		tls_check(sk_SSL_CIPHER_value(list, i) == sk_SSL_CIPHER_value(ours, i), "another suite");
	for (int i = 0; i < n; i++)
		suite_cases(version, sk_SSL_CIPHER_value(list, i));
	sk_SSL_CIPHER_free(ours);
	sk_SSL_CIPHER_free(list);
	return n;
}

/* A suite of TLS 1.0 is one of TLS 1.2 too, so that these and those of TLS 1.3 must be all. */
static void every_version(void)
{
	int left = sk_SSL_CIPHER_num(SSL_CTX_get_ciphers(contexts[0][0]));

	for (size_t i = 0; i < VERSIONS; i++) {
		const int n = version_cases(versions[i].version);

		printf("%s: %d suites\n", versions[i].name, n);
		if (versions[i].version == TLS1_2_VERSION || versions[i].version == TLS1_3_VERSION)
			left -= n;
	}
	tls_check(left == 0, "suites that have no test");
}

/* For each mode of protection, one that gets records of every size and a bit flipped in every byte. */
static const struct {
	int version;
	const char *suite;
	int mac_inside;
} modes[] = {
	{TLS1_VERSION, "AES256-SHA", 1}, /* with an empty record before each */
	{TLS1_2_VERSION, "AES128-SHA", 1},
	{TLS1_2_VERSION, "AES128-SHA256", 1},
	{TLS1_2_VERSION, "ECDHE-RSA-AES256-SHA384", 1},
	{TLS1_2_VERSION, "AES128-SHA256", 0},
	{TLS1_2_VERSION, "AES128-GCM-SHA256", 0},
	{TLS1_2_VERSION, "AES256-CCM", 0},
	{TLS1_2_VERSION, "ECDHE-RSA-CHACHA20-POLY1305", 0},
	{TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384", 0},
	{TLS1_3_VERSION, "TLS_AES_128_CCM_SHA256", 0},
	{TLS1_3_VERSION, "TLS_CHACHA20_POLY1305_SHA256", 0},
};

static struct how mode_how(size_t i, int version)
{
	SSL_CTX *ctx = contexts[0][tls_is_datagram(version)];
	STACK_OF(SSL_CIPHER) *list = SSL_CTX_get_ciphers(ctx);
	struct how how = {.suite = modes[i].suite, .ours = OUR_CLIENT};

	for (int k = 0; k < sk_SSL_CIPHER_num(list); k++)
		if (strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(list, k)), how.suite) == 0)
			how.protection = protection_of(version, sk_SSL_CIPHER_value(list, k));
	how.protection.mac_inside = modes[i].mac_inside;
	return how;
}

static void every_size(size_t mode)
{
	const struct how how = mode_how(mode, modes[mode].version);
	struct connection c;

	open_connection(&c, &how);
	pass_range(&c, 0, TLS_RECORD_MAX);
	tls_close(&c.pair);
}

/* DTLS protects its records like TLS up to 1.2, and most of its connections survive a bad one. */
static void every_byte_flipped(size_t mode)
{
	const int version = modes[mode].version == TLS1_3_VERSION ? TLS1_3_VERSION : DTLS1_2_VERSION;
	struct how how = mode_how(mode, version);
	struct connection c = {.alive = 0};
	size_t bytes = 1;

	for (size_t at = 0; at < bytes; at += depth == DEPTH_SHORT ? 5 : 1) {
		if (!c.alive) {
			how.ours = 1 + at % 2;
			open_connection(&c, &how);
		}
		bytes = flip(&c, TLS_CLIENT, 20, at);
		if (!c.alive)
			tls_close(&c.pair);
	}
	if (c.alive)
		tls_close(&c.pair);
}

static uint64_t seen(const struct support_counts *c)
{
	return c->kernel_bytes + c->software_bytes;
}

/* Whether the algorithm had work that the kernel must do if it can. */
static int demanded(int id, const struct support_counts *c)
{
	const struct algorithm *a = &algorithms[id];

	if (a->kind == KIND_HASH) /* transcripts of TLS 1.2 and 1.3 */
		return id == ALG_SHA2_256 || id == ALG_SHA2_384;
	return given[id] > 0 || (a->kind == KIND_MAC && seen(c) > 0);
}

/*
 * The least bytes that the kernel must have done. Of a CBC record that it receives software keeps the end, with padding
 * and MAC, and libssl may have a cipher of its own for those with the MAC inside: so of what the module has seen. A MAC
 * inside is checked by software, in constant time.
 */
static uint64_t least(int id, const struct support_counts *c)
{
	const struct algorithm *a = &algorithms[id];

	if (a->kind == KIND_SKCIPHER && a->mode == MODE_CBC)
		return seen(c) / 100 * 80;
	if (a->kind == KIND_MAC)
		return seen(c) / 100 * 45;
	return given[id] / 100 * 95;
}

static int report(int kernel)
{
	int bad = 0;

	printf("%-18s %12s %12s %10s %12s %6s\n", "algorithm", "records", "kernel", "requests", "software", "failed");
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct algorithm *a = &algorithms[id];
		const struct support_counts c = support_count(a->name);
		/* Asking can take seconds, where the kernel looks for a module. */
		const int demand = kernel && demanded(id, &c),
			  served = demand && support_kernel_serves(algorithm_type(a->kind), a->kernel);
		const int good = c.errors + c.fallbacks <= flipped[id] &&
				 (!served || (c.kernel_requests > 0 && c.kernel_bytes >= least(id, &c)));

		if (given[id] + c.kernel_requests + c.software_calls == 0 && good)
			continue;
		printf("%-18s %12llu %12llu %10llu %12llu %6llu%s\n", a->name, (unsigned long long)given[id],
		       (unsigned long long)c.kernel_bytes, (unsigned long long)c.kernel_requests,
		       (unsigned long long)c.software_bytes, (unsigned long long)(c.errors + c.fallbacks),
		       !good               ? "  BAD"
		       : demand && !served ? "  (not served by this kernel)"
					   : "");
		bad += !good;
	}
	return bad;
}

static void load(const char *policy)
{
	OSSL_LIB_CTX *libctx[2];
	char settings[64];

	support_init();
	support_fill(&seed, data, sizeof(data));
	snprintf(settings, sizeof(settings), "policy = %s", policy);
	libctx[0] = support_reference();
	libctx[1] = support_load(settings);
	reference_libctx = libctx[0];
	for (int i = 0; i < 2; i++) {
		contexts[i][0] = tls_context(libctx[i], TLS_method());
		contexts[i][1] = tls_context(libctx[i], DTLS_method());
	}
}

static enum depth parse_depth(const char *name)
{
	static const char *const names[] = {"short", "suites", "full"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return (enum depth)i;
	errx(2, "no depth %s", name);
}

static void mode_cases(size_t mode)
{
	const struct how how = mode_how(mode, modes[mode].version);

	if (cbc_only && !has_mac(&how.protection))
		return;
	every_byte_flipped(mode);
	if (depth == DEPTH_FULL)
		every_size(mode);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: tls_test POLICY short|suites|full [cbc]");
	alarm(SECONDS_MAX);
	depth = parse_depth(argv[2]);
	cbc_only = argc > 3 && strcmp(argv[3], "cbc") == 0;
	load(argv[1]);
	every_version();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		mode_cases(i);
	printf("%u connections, %u records\n", connections, records);
	return report(strcmp(argv[1], "kernel") == 0) > 0;
}
