/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context that never reaches the kernel lane makes no system call: checked by a filter that kills the process at the
 * first one, but for those of the memory allocator. Loading binds nothing: no AF_ALG socket is bound up to there.
 */
#include <err.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

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

static void allow_memory_only(void)
{
#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_brk),
		ALLOW(SYS_mmap),
		ALLOW(SYS_munmap),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		err(1, "seccomp");
}

static int run(const char *settings)
{
	OSSL_LIB_CTX *ctx = support_load(settings);
	int status;
	pid_t pid;

	for (size_t i = 0; i < NAMES; i++) {
		if (i < 2)
			ciphers[i] = EVP_CIPHER_fetch(ctx, names[i], NULL);
		else
			digests[i - 2] = EVP_MD_fetch(ctx, names[i], NULL);
	}
	if (!small_work()) /* what libcrypto does once is not meant */
		errx(1, "small work");
	pid = fork();
	if (pid == 0) {
		allow_memory_only();
		_exit(small_work() ? 0 : 1);
	}
	if (waitpid(pid, &status, 0) != pid)
		err(1, "waitpid");
	for (size_t i = 0; i < NAMES; i++) {
		if (i < 2)
			EVP_CIPHER_free(ciphers[i]);
		else
			EVP_MD_free(digests[i - 2]);
	}
	OSSL_LIB_CTX_free(ctx);
	printf("%s: %s\n", settings, status == 0 ? "no system call" : WIFSIGNALED(status) ? "A SYSTEM CALL" : "failed");
	return status != 0;
}

int main(void)
{
	static const char *const settings[] = {"policy = speed", "policy = software", "policy = cpu",
					       "thresholds = AES-128-CBC:4096,AES-256-CBC:4096,SHA1:never,SHA256:8192"};
	int bad = 0;

	support_init();
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		bad += run(settings[i]);
	return bad > 0;
}
