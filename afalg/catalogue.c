/* SPDX-License-Identifier: Apache-2.0 */
#include "catalogue.h"

#include <ctype.h>
#include <errno.h>
#include <linux/cryptouser.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "socket.h"

/* Kernel include/linux/crypto.h */
#define CRYPTO_ALG_KERN_DRIVER_ONLY 0x1000u

#define CANDIDATES_MAX 16
#define HINTS_MAX 128

/* Words in the names of drivers that compute on the CPU: portable code, CPU instructions, and wrappers of either. */
static const char *const cpu_words[] = {
	"generic", "lib",    "asm",     "fixed",     "ti",      "cryptd", "pcrypt", "simd", "aesni",
	"vaes",    "avx",    "avx2",    "avx512",    "avx10",   "sse2",   "ssse3",  "ni",   "neon",
	"neonbs",  "ce",     "arm",     "arm64",     "x86",     "x86_64", "i586",   "s390", "ppc",
	"p8",      "p10",    "spe",     "power8",    "riscv64", "zvkned", "zvkb",   "zvbb", "zvkg",
	"sparc64", "octeon", "padlock", "loongarch", "mips",
};

/* How the names of the kernel's own random generators begin: drbg_nopr_hmac_sha512 and two dozen more; the jitter. */
static const char *const cpu_prefixes[] = {"drbg_", "jitterentropy"};

/* The drivers of one algorithm. */
struct candidates {
	const char *type, *algorithm;
	struct afalg_driver drivers[CANDIDATES_MAX];
	int count;
};

const char *afalg_class_name(enum afalg_class class)
{
	static const char *const names[] = {"unknown", "software", "hardware"};

	return names[class];
}

const char *afalg_explain(int error)
{
	switch (error < 0 ? -error : error) {
	case EAFNOSUPPORT:
		return "the kernel has no AF_ALG (CONFIG_CRYPTO_USER_API off, or the module af_alg is missing or "
		       "barred)";
	case EPERM:
	case EACCES:
		return "AF_ALG is blocked by a sandbox or security policy (seccomp, SELinux, AppArmor)";
	case ENOENT:
		return "the kernel does not serve this algorithm, or the module it needs is missing or barred";
	case ELIBBAD:
		return "the driver failed the kernel's own self-test";
	case EINVAL:
	case EOPNOTSUPP:
		return "the kernel refuses this algorithm over AF_ALG";
	case EILSEQ:
		return "the driver's results are wrong";
	case ETIMEDOUT:
		return "the device does not answer";
	case EMFILE:
	case ENFILE:
		return "no file descriptor is left";
	default:
		return strerror(error < 0 ? -error : error);
	}
}

static int support;

static void ask_support(void)
{
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		support = -errno;
	} else {
		support = 0;
		close(fd);
	}
}

int afalg_catalogue_support(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, ask_support);
	return support;
}

/* The word of a CPU driver in `name`, or null. Words are runs of letters, digits and underscores between other signs.
 */
static const char *cpu_word(const char *name)
{
	for (size_t i = 0; i < sizeof(cpu_prefixes) / sizeof(*cpu_prefixes); i++)
		if (strncmp(name, cpu_prefixes[i], strlen(cpu_prefixes[i])) == 0)
			return cpu_prefixes[i];
	while (*name != '\0') {
		size_t n = 0;

		while (isalnum((unsigned char)name[n]) || (n > 0 && name[n] == '_'))
			n++;
		for (size_t i = 0; n > 0 && i < sizeof(cpu_words) / sizeof(*cpu_words); i++)
			if (strlen(cpu_words[i]) == n && strncmp(cpu_words[i], name, n) == 0)
				return cpu_words[i];
		name += n > 0 ? n : 1;
	}
	return NULL;
}

/* Whether the running kernel's module lies among the drivers of crypto hardware. */
static bool module_of_hardware(const char *module)
{
	char path[128], line[512];
	struct utsname u;
	bool found = false;
	FILE *f;

	if (strcmp(module, "kernel") == 0 || uname(&u) != 0)
		return false;
	snprintf(path, sizeof(path), "/lib/modules/%.64s/modules.dep", u.release);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL) {
		const char *base;

		line[strcspn(line, ":")] = '\0';
		base = strrchr(line, '/');
		if (base == NULL || strstr(line, "drivers/crypto/") == NULL)
			continue;
		for (char *c = line; *c != '\0'; c++) /* file names may have dashes where module names never do */
			*c = *c == '-' ? '_' : *c;
		found = strncmp(base + 1, module, strlen(module)) == 0 && base[1 + strlen(module)] == '.';
	}
	fclose(f);
	return found;
}

void afalg_classify(struct afalg_driver *d, uint32_t flags)
{
	const char *word = cpu_word(d->name);

	d->class = AFALG_HARDWARE;
	if ((flags & CRYPTO_ALG_KERN_DRIVER_ONLY) != 0)
		snprintf(d->evidence, sizeof(d->evidence), "the driver says that only it can reach its engine");
	else if (word != NULL) {
		d->class = AFALG_SOFTWARE;
		snprintf(d->evidence, sizeof(d->evidence), "'%s' in the driver's name: runs on the CPU", word);
	} else if (module_of_hardware(d->module))
		snprintf(d->evidence, sizeof(d->evidence), "module %s is one of drivers/crypto", d->module);
	else if (d->async && strchr(d->name, '(') == NULL)
		snprintf(d->evidence, sizeof(d->evidence), "asynchronous, and no CPU code by its name");
	else {
		d->class = AFALG_UNKNOWN;
		snprintf(d->evidence, sizeof(d->evidence), "neither its name nor its module tells");
	}
}

/* The flags of a driver, asked by its exact name: a query by generic name may answer for another driver. 0: unknown. */
static uint32_t driver_flags(const char *name)
{
	struct {
		struct nlmsghdr header;
		struct crypto_user_alg alg;
	} query = {
		.header = {.nlmsg_len = sizeof(query), .nlmsg_type = CRYPTO_MSG_GETALG, .nlmsg_flags = NLM_F_REQUEST}};
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;
	const struct crypto_user_alg *alg = NLMSG_DATA(&answer.header);
	uint32_t flags = 0;
	ssize_t n;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_CRYPTO);

	if (fd < 0)
		return 0;
	memcpy(query.alg.cru_driver_name, name, strnlen(name, sizeof(query.alg.cru_driver_name) - 1));
	if (send(fd, &query, sizeof(query), MSG_DONTWAIT) == (ssize_t)sizeof(query)) {
		n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT); /* the kernel answers during the send */
		if (n >= (ssize_t)NLMSG_LENGTH(sizeof(*alg)) && answer.header.nlmsg_type == CRYPTO_MSG_GETALG)
			flags = alg->cru_flags;
	}
	close(fd);
	return flags;
}

/* One entry of /proc/crypto. */
struct entry {
	struct afalg_driver driver;
	char name[AFALG_NAME_MAX + 1], type[16];
	bool usable;
};

static void entry_line(struct entry *e, char *line)
{
	char *value = strchr(line, ':');
	size_t n;

	if (value == NULL)
		return;
	for (n = (size_t)(value - line); n > 0 && line[n - 1] == ' '; n--)
		;
	line[n] = '\0';
	value += strspn(value, ": ");
	value[strcspn(value, "\n")] = '\0';
	if (strcmp(line, "name") == 0) {
		*e = (struct entry){.usable = true};
		snprintf(e->name, sizeof(e->name), "%s", value);
	} else if (strcmp(line, "driver") == 0) {
		snprintf(e->driver.name, sizeof(e->driver.name), "%s", value);
	} else if (strcmp(line, "module") == 0) {
		snprintf(e->driver.module, sizeof(e->driver.module), "%s", value);
	} else if (strcmp(line, "priority") == 0) {
		e->driver.priority = (int)strtol(value, NULL, 10);
	} else if (strcmp(line, "type") == 0) {
		snprintf(e->type, sizeof(e->type), "%s", value);
	} else if (strcmp(line, "async") == 0) {
		e->driver.async = strcmp(value, "yes") == 0;
	} else if (strcmp(line, "selftest") == 0) {
		e->usable = e->usable && strcmp(value, "passed") == 0;
	} else if (strcmp(line, "internal") == 0) {
		e->usable = e->usable && strcmp(value, "yes") != 0;
	}
}

static bool type_matches(const char *listed, const char *type)
{
	if (strcmp(type, "hash") == 0)
		return strcmp(listed, "shash") == 0 || strcmp(listed, "ahash") == 0;
	/* lskcipher, from Linux 6.7 on: code on the CPU that the kernel wraps into a skcipher. */
	return strcmp(listed, type) == 0 || (strcmp(type, "skcipher") == 0 && strcmp(listed, "lskcipher") == 0);
}

/* Keeps the candidates in falling order of priority; of equals the one listed first, as the kernel does. */
static void add_candidate(struct candidates *c, const struct afalg_driver *d)
{
	int i;

	if (c->count == CANDIDATES_MAX)
		return;
	for (i = c->count++; i > 0 && c->drivers[i - 1].priority < d->priority; i--)
		c->drivers[i] = c->drivers[i - 1];
	c->drivers[i] = *d;
}

/* Calls `take` for every driver that the kernel lists as usable at this moment. */
static int list_drivers(void (*take)(void *context, const struct entry *e), void *context)
{
	FILE *f = fopen("/proc/crypto", "re");
	struct entry e = {.usable = false};
	char line[256];

	if (f == NULL)
		return -errno;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (line[0] != '\n') {
			entry_line(&e, line);
			continue;
		}
		if (e.usable)
			take(context, &e);
		e.usable = false;
	}
	fclose(f);
	return 0;
}

static void take_candidate(void *context, const struct entry *e)
{
	struct candidates *c = context;

	if (strcmp(e->name, c->algorithm) == 0 && type_matches(e->type, c->type))
		add_candidate(c, &e->driver);
}

/* Reads and classifies the drivers of an algorithm. */
static int list_candidates(struct candidates *c)
{
	int err;

	c->count = 0;
	err = list_drivers(take_candidate, c);
	for (int i = 0; i < c->count; i++)
		afalg_classify(&c->drivers[i], driver_flags(c->drivers[i].name));
	return err;
}

/* What the kernel listed, but for drivers that their name gives away as CPU code. */
static struct {
	struct {
		char name[AFALG_NAME_MAX + 1], type[16];
	} entry[HINTS_MAX];
	int count;
} hints;

static void take_hint(void *context, const struct entry *e)
{
	(void)context;
	if (hints.count == HINTS_MAX || cpu_word(e->driver.name) != NULL)
		return;
	memcpy(hints.entry[hints.count].name, e->name, sizeof(e->name));
	memcpy(hints.entry[hints.count].type, e->type, sizeof(e->type));
	hints.count++;
}

static void read_hints(void)
{
	list_drivers(take_hint, NULL);
}

bool afalg_catalogue_hints_hardware(const char *type, const char *algorithm)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_hints);
	for (int i = 0; i < hints.count; i++)
		if (strcmp(hints.entry[i].name, algorithm) == 0 && type_matches(hints.entry[i].type, type))
			return true;
	return hints.count == HINTS_MAX;
}

static int try_bind(const char *type, const char *name)
{
	int fd = afalg_socket_bind(type, name);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* The first candidate that a bind by its own name can reach: Linux 7.2 lists drivers that it keeps from AF_ALG. */
static int pick(const struct candidates *c, struct afalg_driver *driver)
{
	char out_of_reach[sizeof(driver->out_of_reach)] = "";

	for (int i = 0; i < c->count; i++) {
		if (try_bind(c->type, c->drivers[i].name) == 0) {
			*driver = c->drivers[i];
			memcpy(driver->out_of_reach, out_of_reach, sizeof(out_of_reach));
			return 0;
		}
		if (c->drivers[i].class == AFALG_HARDWARE && out_of_reach[0] == '\0')
			memcpy(out_of_reach, c->drivers[i].name, sizeof(out_of_reach));
	}
	return -ENOENT;
}

int afalg_catalogue_find(const char *type, const char *algorithm, bool bind, struct afalg_driver *driver)
{
	struct candidates c = {.type = type, .algorithm = algorithm};
	int err;

	if (!bind) {
		err = list_candidates(&c);
		if (err != 0)
			return err;
		for (int i = 0; i < c.count; i++)
			bind = bind || c.drivers[i].class == AFALG_HARDWARE;
		if (!bind && c.count > 0) {
			*driver = c.drivers[0];
			return 0;
		}
		if (!bind)
			return -ENOENT;
	}
	err = try_bind(type, algorithm);
	if (err == 0)
		err = list_candidates(&c);
	return err != 0 ? err : pick(&c, driver);
}
