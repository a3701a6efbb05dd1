/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "afalg/socket.h"
#include "provider/counters.h"

static char counters[] = "/tmp/afalgprov-test.XXXXXX";
static pid_t owner;

static void remove_counters(void)
{
	char name[64];

	if (getpid() != owner)
		return;
	snprintf(name, sizeof(name), "%s/%d", counters, (int)owner);
	unlink(name);
	rmdir(counters);
}

void support_init(void)
{
	owner = getpid();
	if (mkdtemp(counters) == NULL)
		err(1, "mkdtemp");
	setenv("AFALGPROV_COUNTERS", counters, 1);
	atexit(remove_counters);
}

/* Writes a configuration file and returns its name, for the caller to remove. */
static const char *write_config(const char *settings)
{
	static char name[64];
	const char *module = getenv("AFALGPROV_MODULE");
	FILE *f;

	if (module == NULL)
		errx(1, "AFALGPROV_MODULE does not name the module");
	snprintf(name, sizeof(name), "%s/config", counters);
	f = fopen(name, "w");
	if (f == NULL)
		err(1, "%s", name);
	fprintf(f,
		"openssl_conf = o\n[o]\nproviders = p\nalg_section = e\n[e]\ndefault_properties = ?provider=afalgprov\n"
		"[p]\nafalgprov = a\ndefault = d\n[d]\nactivate = 1\n[a]\nmodule = %s\nactivate = 1\n%s\n",
		module, settings);
	fclose(f);
	return name;
}

OSSL_LIB_CTX *support_load(const char *settings)
{
	OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();
	const char *config = write_config(settings);

	if (ctx == NULL || !OSSL_LIB_CTX_load_config(ctx, config) || !OSSL_PROVIDER_available(ctx, "afalgprov")) {
		ERR_print_errors_fp(stderr);
		errx(1, "the module is not loaded");
	}
	unlink(config);
	return ctx;
}

OSSL_LIB_CTX *support_reference(void)
{
	OSSL_LIB_CTX *ctx = OSSL_LIB_CTX_new();

	/* A context of its own that is told nothing uses the default provider. */
	if (ctx == NULL)
		errx(1, "no library context");
	return ctx;
}

struct support_counts support_count(const char *algorithm)
{
	static struct counters_file file;
	struct support_counts sum = {0};
	char name[64];
	int fd, id = algorithm_find(algorithm, strlen(algorithm));

	if (id < 0)
		errx(1, "no algorithm %s", algorithm);
	snprintf(name, sizeof(name), "%s/%d", counters, (int)owner);
	fd = open(name, O_RDONLY);
	if (fd < 0 || read(fd, &file, sizeof(file)) != (ssize_t)sizeof(file) || file.magic != COUNTERS_MAGIC)
		err(1, "counters %s", name);
	close(fd);
	for (int i = 0; i < COUNTERS_SLOTS; i++) {
		const struct counts *c = &file.slot[i].counts[id];

		sum.software_calls += c->software_calls;
		sum.software_bytes += c->software_bytes;
		sum.kernel_requests += c->kernel_requests;
		sum.kernel_bytes += c->kernel_bytes;
		sum.fallbacks += c->fallbacks;
		sum.errors += c->errors;
	}
	return sum;
}

int support_kernel_serves(const char *type, const char *algorithm)
{
	int fd = afalg_socket_bind(type, algorithm);

	if (fd < 0)
		return 0;
	close(fd);
	return 1;
}

int support_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -3; /* ".", ".." and the directory itself */

	if (d == NULL)
		err(1, "/proc/self/fd");
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

uint64_t support_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

size_t support_below(uint64_t *state, size_t limit)
{
	return (size_t)(support_random(state) % limit);
}

void support_fill(uint64_t *state, uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t r = support_random(state);

		memcpy(bytes + i, &r, n - i < sizeof(r) ? n - i : sizeof(r));
	}
}

void support_pattern(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i % 251);
}
