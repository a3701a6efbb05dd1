/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context that never reaches the kernel lane makes no system call: checked by a filter that kills the process at the
 * first one, but for those of the memory allocator. Loading binds nothing: no AF_ALG socket is bound up to there.
 *
 * A handshake of TLS 1.3 makes calls for random numbers and the time, but none that AF_ALG is made of.
 */
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/err.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provider/algorithms.h"
#include "support.h"
#include "tls.h"

static const char *const names[] = {"AES-128-CBC", "AES-256-CBC", "SHA1", "SHA2-256", "SHA2-512"};
#define NAMES (sizeof(names) / sizeof(*names))

static EVP_CIPHER *ciphers[2];
static EVP_MD *digests[3];

/* Contexts of all kinds, small calls only. */
static int small_work(void)
{
	static uint8_t in[4096], out[sizeof(in) + 32], key[32], iv[16];
	int ok = 1, n;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 2; i++) {
			EVP_CIPHER_CTX *a = EVP_CIPHER_CTX_new(), *b = EVP_CIPHER_CTX_new();

			ok = ok && EVP_EncryptInit_ex(a, ciphers[i], NULL, key, iv) &&
			     EVP_EncryptUpdate(a, out, &n, in, 1000) && EVP_CIPHER_CTX_copy(b, a) &&
			     EVP_EncryptUpdate(b, out, &n, in, 2000) && EVP_EncryptFinal_ex(b, out, &n);
			EVP_CIPHER_CTX_free(a);
			EVP_CIPHER_CTX_free(b);
		}
		for (int i = 0; i < 3; i++)
			ok = ok && EVP_Digest(in, 1000, out, NULL, digests[i], NULL);
	}
	return ok;
}

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ALLOW_MEMORY ALLOW(SYS_brk), ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_exit_group)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter memory_only[] = {LOAD_NUMBER, ALLOW_MEMORY, KILL};

/* A kernel without a vDSO (User Mode Linux) is asked for the time. */
static struct sock_filter no_sockets[] = {LOAD_NUMBER,
					  ALLOW_MEMORY,
					  ALLOW(SYS_mremap),
					  ALLOW(SYS_getpid),
					  ALLOW(SYS_getrandom),
					  ALLOW(SYS_gettimeofday),
					  ALLOW(SYS_time),
					  ALLOW(SYS_clock_gettime),
					  KILL};

static void allow(struct sock_filter *filter, size_t n)
{
	const struct sock_fprog program = {(unsigned short)n, filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		err(1, "seccomp");
}

/* Does the work in a child behind a filter. Returns its status of wait(2). */
static int filtered(struct sock_filter *filter, size_t n, int (*work)(void))
{
	int status;
	pid_t pid;

	if (!work()) /* what libcrypto does once is not meant */
		errx(1, "work");
	pid = fork();
	if (pid == 0) {
		allow(filter, n);
		_exit(work() ? 0 : 1);
	}
	if (waitpid(pid, &status, 0) != pid)
		err(1, "waitpid");
	return status;
}

static const char *verdict(int status)
{
	return status == 0 ? "quiet" : WIFSIGNALED(status) ? "A SYSTEM CALL" : "failed";
}

static int run(const char *settings)
{
	OSSL_LIB_CTX *ctx = support_load(settings);
	int status;

	for (size_t i = 0; i < NAMES; i++) {
		if (i < 2)
			ciphers[i] = EVP_CIPHER_fetch(ctx, names[i], NULL);
		else
			digests[i - 2] = EVP_MD_fetch(ctx, names[i], NULL);
	}
	status = filtered(memory_only, sizeof(memory_only) / sizeof(*memory_only), small_work);
	for (size_t i = 0; i < NAMES; i++) {
		if (i < 2)
			EVP_CIPHER_free(ciphers[i]);
		else
			EVP_MD_free(digests[i - 2]);
	}
	OSSL_LIB_CTX_free(ctx);
	printf("%s: %s\n", settings, verdict(status));
	return status != 0;
}

static SSL_CTX *tls;

/* Handshakes of both digests, with tickets, and a bit of data. */
static int handshake(void)
{
	static const char *const suites[] = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"};
	static const uint8_t data[1000];

	for (int i = 0; i < 20; i++) {
		struct tls_pair p;

		tls_open(&p, tls, tls, TLS1_3_VERSION, suites[i % 2]);
		tls_handshake(&p);
		tls_pass(&p, TLS_CLIENT, data, sizeof(data));
		tls_pass(&p, TLS_SERVER, data, sizeof(data));
		tls_close(&p);
	}
	return 1;
}

static int run_handshake(const char *settings)
{
	OSSL_LIB_CTX *ctx = support_load(settings);
	int status;

	tls = tls_context(ctx, TLS_method());
	status = filtered(no_sockets, sizeof(no_sockets) / sizeof(*no_sockets), handshake);
	SSL_CTX_free(tls);
	OSSL_LIB_CTX_free(ctx);
	printf("handshake of TLS 1.3, %.40s: %s\n", settings, verdict(status));
	return status;
}

/* Some versions of OpenSSL lack some algorithms, and a setting with these is refused. */
static int offered(const char *name)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
	EVP_MD *md = cipher != NULL ? NULL : EVP_MD_fetch(NULL, name, NULL);
	const int found = cipher != NULL || md != NULL;

	EVP_CIPHER_free(cipher);
	EVP_MD_free(md);
	ERR_clear_error();
	return found;
}

/* As if hardware served every cipher and digest: the thresholds of policy "speed" for drivers of any kind. */
static const char *as_if_hardware(void)
{
	static char settings[ALGORITHM_COUNT * 32] = "thresholds = ";

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const size_t used = strlen(settings);

		if (offered(algorithms[id].name))
			snprintf(settings + used, sizeof(settings) - used, "%s:16384 ", algorithms[id].name);
	}
	return settings;
}

int main(void)
{
	static const char *const settings[] = {"policy = speed", "policy = software", "policy = cpu",
					       "thresholds = AES-128-CBC:4096,AES-256-CBC:4096,SHA1:never,SHA256:8192"};
	int bad = 0;

	support_init();
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		bad += run(settings[i]);
	bad += run_handshake("") != 0;
	bad += run_handshake(as_if_hardware()) != 0;
	/* The filter does its work: under this policy the digests of a handshake go to the kernel, if it has AF_ALG. */
	if (support_kernel_serves("hash", "sha256"))
		bad += !WIFSIGNALED(run_handshake("policy = kernel"));
	return bad > 0;
}
