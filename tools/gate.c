/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <ctype.h>
#include <errno.h>
#include <linux/if_alg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system.h"

/* Kernel include/linux/crypto.h */
#define CRYPTO_ALG_KERN_DRIVER_ONLY 0x1000u

const struct gate gate_af_alg = {"AF_ALG sockets", "af_alg", "net-pf-38", "CRYPTO_USER_API", "ALG"};
const struct gate gate_netlink = {"NETLINK_CRYPTO", "crypto_user", "net-pf-16-proto-21", "CRYPTO_USER", NULL};

const struct gate *gate_of_type(const char *type)
{
	static const struct gate gates[] = {
		{"skcipher", "algif_skcipher", "algif-skcipher", "CRYPTO_USER_API_SKCIPHER", NULL},
		{"aead", "algif_aead", "algif-aead", "CRYPTO_USER_API_AEAD", NULL},
		{"hash", "algif_hash", "algif-hash", "CRYPTO_USER_API_HASH", NULL},
		{"rng", "algif_rng", "algif-rng", "CRYPTO_USER_API_RNG", NULL},
	};
	size_t i = 0;

	while (strcmp(gates[i].what, type) != 0)
		i++;
	return &gates[i];
}

static void set(struct blame *b, const char *code, const char *cause, const char *remedy)
{
	b->code = code;
	snprintf(b->cause, sizeof(b->cause), "%s", cause);
	snprintf(b->remedy, sizeof(b->remedy), "%s", remedy);
}

/*** Sandboxes ***/

bool gate_seccomp(void)
{
	char value[16];

	return system_value("/proc/self/status", "Seccomp:", value, sizeof(value)) && strcmp(value, "0") != 0;
}

bool gate_confinement(char *text, size_t size)
{
	const bool selinux = access("/sys/fs/selinux/enforce", F_OK) == 0;
	char label[200], modules[200];

	if (!system_line("/proc/self/attr/apparmor/current", label, sizeof(label)) &&
	    !system_line("/proc/self/attr/current", label, sizeof(label)))
		return false;
	if (label[0] == '\0' || strcmp(label, "unconfined") == 0 || strcmp(label, "kernel") == 0)
		return false;
	if (!system_line("/sys/kernel/security/lsm", modules, sizeof(modules)))
		snprintf(modules, sizeof(modules), "security modules not known");
	snprintf(text, size, "%s '%.150s' (%.150s)",
		 selinux                               ? "SELinux context"
		 : strstr(modules, "apparmor") != NULL ? "AppArmor profile"
						       : "security label",
		 label, modules);
	return true;
}

static void blame_seccomp(const char *what, struct blame *b)
{
	b->code = "seccomp";
	snprintf(b->cause, sizeof(b->cause),
		 "a seccomp filter refuses %s (a filter is active: Seccomp in /proc/self/status)", what);
	snprintf(
		b->remedy, sizeof(b->remedy),
		"allow it in the sandbox: Docker and Podman, --security-opt seccomp=PROFILE with a profile that allows "
		"socket() for family 38 (AF_ALG) and 16 (netlink); systemd, RestrictAddressFamilies= with AF_ALG and "
		"AF_NETLINK");
}

static void blame_lsm(const char *what, const char *label, struct blame *b)
{
	b->code = "lsm";
	snprintf(b->cause, sizeof(b->cause), "a security module refuses %s: %s", what, label);
	snprintf(b->remedy, sizeof(b->remedy),
		 "look for the denial in the audit log (ausearch -m avc, journalctl -k) and allow it: SELinux, class "
		 "alg_socket; AppArmor, a rule 'network alg'");
}

/* EPERM and EACCES: SELinux and AppArmor answer EACCES, filters nearly always EPERM. */
static void blame_sandbox(const struct gate *g, int error, struct blame *b)
{
	char label[400];
	const bool confined = gate_confinement(label, sizeof(label));

	if (confined && (error == EACCES || !gate_seccomp()))
		blame_lsm(g->what, label, b);
	else if (gate_seccomp())
		blame_seccomp(g->what, b);
	else {
		b->code = "unknown";
		snprintf(b->cause, sizeof(b->cause),
			 "%s is refused, but neither a seccomp filter nor a confinement is to be seen: it may be a "
			 "security module without labels (BPF), or a sandbox that emulates the kernel",
			 g->what);
		snprintf(b->remedy, sizeof(b->remedy), "try it outside the container or sandbox");
	}
}

/*** Modules and kernel options ***/

/* A module that exists and is not there. */
static void blame_not_loaded(const struct gate *g, struct blame *b)
{
	char value[128];

	if (system_line("/proc/sys/kernel/modules_disabled", value, sizeof(value)) && strcmp(value, "1") == 0) {
		b->code = "modules_disabled";
		snprintf(b->cause, sizeof(b->cause),
			 "module %s is not loaded, and the kernel takes no more modules (sysctl "
			 "kernel.modules_disabled=1)",
			 g->module);
		snprintf(b->remedy, sizeof(b->remedy), "load %s at boot (/etc/modules-load.d)", g->module);
		return;
	}
	if (system_line("/proc/sys/kernel/modprobe", value, sizeof(value)) && value[0] == '\0') {
		b->code = "modules_disabled";
		snprintf(b->cause, sizeof(b->cause),
			 "module %s is not loaded, and the kernel does not ask for modules (sysctl kernel.modprobe is "
			 "empty)",
			 g->module);
		snprintf(b->remedy, sizeof(b->remedy), "as root: modprobe %s; at boot: /etc/modules-load.d", g->module);
		return;
	}
	b->code = "not_loaded";
	snprintf(b->cause, sizeof(b->cause), "module %s exists, but the kernel did not get it loaded", g->module);
	snprintf(b->remedy, sizeof(b->remedy), "as root: modprobe %s; it says what is wrong", g->module);
}

static void blame_module(const struct gate *g, struct blame *b)
{
	const enum answer option = system_option(g->option);
	enum answer there;
	char rule[300];

	if (system_barred(g->module, g->alias, rule, sizeof(rule))) {
		b->code = "modprobe";
		snprintf(b->cause, sizeof(b->cause), "module %s is barred: %s", g->module, rule);
		snprintf(b->remedy, sizeof(b->remedy), "remove that, then as root: modprobe %s", g->module);
		return;
	}
	there = option == ANSWER_NO ? ANSWER_NO : system_has_module(g->module);
	if (there == ANSWER_YES) {
		blame_not_loaded(g, b);
		return;
	}
	b->code = "kernel";
	snprintf(b->cause, sizeof(b->cause), "%s (kernel option CONFIG_%s%s, module %s)",
		 there == ANSWER_NO ? "the kernel is built without it"
				    : "the kernel has no such thing: it is built without it, or a module is missing",
		 g->option, option == ANSWER_NO ? ", which is off" : "", g->module);
	snprintf(b->remedy, sizeof(b->remedy), "use a kernel with CONFIG_%s=m or y; %s", g->option,
		 there == ANSWER_NO
			 ? "until then OpenSSL's own code does the work"
			 : "in a container ask the host (modprobe there), since its modules cannot be seen here");
}

/* Whether the kernel is known to have the family although socket() says that it does not. */
static bool protocol_there(const struct gate *g)
{
	char value[200];

	return g->protocol != NULL && system_value("/proc/net/protocols", g->protocol, value, sizeof(value));
}

void gate_blame(const struct gate *g, int error, struct blame *b)
{
	switch (error) {
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
		/* systemd's filter answers as a kernel without the family does. */
		if (gate_seccomp() && (protocol_there(g) || system_has_module(g->module) == ANSWER_YES))
			blame_seccomp(g->what, b);
		else
			blame_module(g, b);
		if (gate_seccomp() && strcmp(b->code, "kernel") == 0)
			strncat(b->cause, "; or the active seccomp filter feigns that",
				sizeof(b->cause) - strlen(b->cause) - 1);
		break;
	case ENOENT:
		blame_module(g, b);
		break;
	case EPERM:
	case EACCES:
		blame_sandbox(g, error, b);
		break;
	case EMFILE:
	case ENFILE:
		set(b, "limit", "no file descriptor is left", "raise the limit of open files (ulimit -n)");
		break;
	default:
		if (gate_seccomp())
			blame_seccomp(g->what, b);
		else
			set(b, "unknown", strerror(error), "");
	}
}

/*** Algorithms ***/

/* Options of what Debian's kernels do not all have, or newer ones have lost. */
static const struct {
	const char *name, *option, *note;
} parts[] = {
	{"aes", "CRYPTO_AES", NULL},
	{"des3_ede", "CRYPTO_DES", NULL},
	{"des", "CRYPTO_DES", NULL},
	{"camellia", "CRYPTO_CAMELLIA", NULL},
	{"aria", "CRYPTO_ARIA", NULL},
	{"sm4", "CRYPTO_SM4_GENERIC", NULL},
	{"seed", "CRYPTO_SEED", NULL},
	{"blowfish", "CRYPTO_BLOWFISH", NULL},
	{"cast5", "CRYPTO_CAST5", NULL},
	{"chacha20", "CRYPTO_CHACHA20", NULL},
	{"poly1305", "CRYPTO_POLY1305", NULL},
	{"rfc7539", "CRYPTO_CHACHA20POLY1305", NULL},
	{"ecb", "CRYPTO_ECB", NULL},
	{"cbc", "CRYPTO_CBC", NULL},
	{"ctr", "CRYPTO_CTR", NULL},
	{"xts", "CRYPTO_XTS", NULL},
	{"gcm", "CRYPTO_GCM", NULL},
	{"ccm", "CRYPTO_CCM", NULL},
	{"ofb", "CRYPTO_OFB", "Linux 6.8 has removed the mode OFB"},
	{"cfb", "CRYPTO_CFB", "Linux 6.8 has removed the mode CFB"},
	{"hmac", "CRYPTO_HMAC", NULL},
	{"cmac", "CRYPTO_CMAC", NULL},
	{"md5", "CRYPTO_MD5", NULL},
	{"sha1", "CRYPTO_SHA1", NULL},
	{"sha224", "CRYPTO_SHA256", NULL},
	{"sha256", "CRYPTO_SHA256", NULL},
	{"sha384", "CRYPTO_SHA512", NULL},
	{"sha512", "CRYPTO_SHA512", NULL},
	{"sha3-224", "CRYPTO_SHA3", NULL},
	{"sha3-256", "CRYPTO_SHA3", NULL},
	{"sha3-384", "CRYPTO_SHA3", NULL},
	{"sha3-512", "CRYPTO_SHA3", NULL},
	{"rmd160", "CRYPTO_RMD160", NULL},
	{"sm3", "CRYPTO_SM3_GENERIC", NULL},
	{"blake2b-512", "CRYPTO_BLAKE2B", NULL},
	{"stdrng", "CRYPTO_DRBG_MENU", NULL},
	{"jitterentropy_rng", "CRYPTO_JITTERENTROPY", NULL},
};

/* One part of a name such as hmac(sm3): is it missing, or barred? true: this is the one. */
static bool blame_part(const char *name, bool sure, struct blame *b)
{
	char alias[96], module[80], rule[300];
	enum answer there;
	size_t i = 0;

	while (i < sizeof(parts) / sizeof(*parts) && strcmp(parts[i].name, name) != 0)
		i++;
	snprintf(alias, sizeof(alias), "crypto-%s", name);
	there = system_module_of(alias, module, sizeof(module));
	if (there == ANSWER_YES && system_barred(module, alias, rule, sizeof(rule))) {
		b->code = "modprobe";
		snprintf(b->cause, sizeof(b->cause), "module %s, which has %s, is barred: %s", module, name, rule);
		snprintf(b->remedy, sizeof(b->remedy), "remove that, then as root: modprobe %s", module);
		return true;
	}
	if (i == sizeof(parts) / sizeof(*parts))
		return false;
	if (there != ANSWER_NO && system_option(parts[i].option) != ANSWER_NO && (sure || parts[i].note == NULL))
		return false;
	b->code = "kernel";
	snprintf(b->cause, sizeof(b->cause), "the kernel is built without %s (CONFIG_%s)%s%s", name, parts[i].option,
		 parts[i].note != NULL ? "; " : "", parts[i].note != NULL ? parts[i].note : "");
	snprintf(b->remedy, sizeof(b->remedy),
		 "none is needed, OpenSSL's own code does it; or use a kernel with CONFIG_%s", parts[i].option);
	return true;
}

void gate_blame_algorithm(const char *kernel_name, struct blame *b)
{
	char module[80];
	const bool sure = system_module_of("crypto-aes", module, sizeof(module)) != ANSWER_UNKNOWN;

	for (const char *p = kernel_name; *p != '\0';) {
		char name[80];
		size_t n = strcspn(p, "(),");

		snprintf(name, sizeof(name), "%.*s", (int)n, p);
		if (n > 0 && blame_part(name, sure, b))
			return;
		p += n + (p[n] != '\0');
	}
	b->code = "unknown";
	snprintf(b->cause, sizeof(b->cause),
		 "the kernel finds no driver for %s: it is built without one, or a module is missing or barred",
		 kernel_name);
	snprintf(b->remedy, sizeof(b->remedy),
		 "none is needed, OpenSSL's own code does it; 'modprobe crypto-%.*s' may help",
		 (int)strcspn(kernel_name, "("), kernel_name);
}

bool gate_software_only(void)
{
	/* md4 is made by no device: who finds a driver "for the kernel only" has not looked for one. */
	const struct sockaddr_alg md4 = {.salg_family = AF_ALG,
					 .salg_type = "hash",
					 .salg_name = "md4",
					 .salg_feat = CRYPTO_ALG_KERN_DRIVER_ONLY,
					 .salg_mask = CRYPTO_ALG_KERN_DRIVER_ONLY};
	const int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool only = false;

	if (fd >= 0) {
		only = bind(fd, (const struct sockaddr *)&md4, sizeof(md4)) == 0;
		close(fd);
	}
	return only;
}
