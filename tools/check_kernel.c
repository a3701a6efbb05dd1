/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel gives to this process, and who keeps what it does not. */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "gate.h"
#include "offer.h"
#include "report.h"
#include "system.h"

static const char *const types[] = {"skcipher", "aead", "hash", "rng"};

/* For those who read the report elsewhere: what could stand in the way of this process. */
static void report_sandbox(void)
{
	char label[400], modules[200];

	if (gate_seccomp())
		report(FINDING_NOTE, "seccomp", NULL, "a seccomp filter is active in this process");
	if (gate_confinement(label, sizeof(label)))
		report(FINDING_NOTE, "lsm", NULL, "this process is confined: %s", label);
	else if (system_line("/sys/kernel/security/lsm", modules, sizeof(modules)))
		report(FINDING_OK, "lsm", NULL, "security modules: %s; none confines this process", modules);
}

static bool check_socket(void)
{
	const int error = afalg_catalogue_support();
	struct blame b;

	if (error == 0) {
		report(FINDING_OK, "af_alg", NULL, "programs get AF_ALG sockets");
		return true;
	}
	gate_blame(&gate_af_alg, -error, &b);
	report(FINDING_PROBLEM, b.code, b.remedy, "no AF_ALG sockets (%s), so OpenSSL's own code does everything: %s",
	       strerror(-error), b.cause);
	return false;
}

static void check_netlink(const struct configuration *c)
{
	const char *transport = configuration_value(c, "transport");
	const bool needed = transport != NULL && strcmp(transport, "kcapi") == 0;
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_CRYPTO);
	const int error = errno;
	struct blame b;

	if (fd >= 0) {
		close(fd);
		report(FINDING_OK, "netlink", NULL, "NETLINK_CRYPTO answers");
		return;
	}
	gate_blame(&gate_netlink, error, &b);
	if (needed)
		report(FINDING_PROBLEM, b.code, b.remedy,
		       "no NETLINK_CRYPTO (%s), which 'transport = kcapi' cannot do without: %s", strerror(error),
		       b.cause);
	else
		report(FINDING_NOTE, b.code, b.remedy,
		       "no NETLINK_CRYPTO (%s), so hardware is told by names and modules only; all works without: %s",
		       strerror(error), b.cause);
}

static void check_proc(void)
{
	if (access("/proc/crypto", R_OK) == 0)
		report(FINDING_OK, "proc_crypto", NULL, "/proc/crypto can be read");
	else
		report(FINDING_PROBLEM, "proc_crypto", "make it visible in the sandbox, or set thresholds",
		       "/proc/crypto cannot be read (%s): the drivers are not known, and nothing goes to the kernel by "
		       "default",
		       strerror(errno));
}

/*** What is served ***/

static void check_type(const char *type, const bool *chosen)
{
	const struct gate *g = gate_of_type(type);
	unsigned asked = 0, served = 0;
	struct blame b;

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct offer *o;

		if (!chosen[id] || strcmp(algorithm_type(algorithms[id].kind), type) != 0)
			continue;
		o = offer_of((enum algorithm_id)id);
		asked++;
		served += o->error == 0 || o->unreadable;
		if (o->error != 0 && o->error != -ENOENT && !o->unreadable)
			report(FINDING_PROBLEM, "refused", "the kernel may say more: dmesg", "%s: %s (%s)",
			       algorithms[id].name, afalg_explain(o->error), strerror(-o->error));
	}
	if (asked == 0)
		return;
	if (served > 0) {
		report(FINDING_OK, "type", NULL, "%s: serves %u of %u algorithms", type, served, asked);
		return;
	}
	gate_blame(g, ENOENT, &b);
	report(FINDING_PROBLEM, b.code, b.remedy, "%s: serves none of %u algorithms (%s): %s", type, asked,
	       strerror(ENOENT), b.cause);
}

/* What is missing for a reason other than that the kernel was built without it. */
static void check_barred(const bool *chosen)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		struct blame b;

		if (!chosen[id] || offer_of((enum algorithm_id)id)->error != -ENOENT)
			continue;
		gate_blame_algorithm(algorithms[id].kernel, &b);
		if (strcmp(b.code, "modprobe") == 0)
			report(FINDING_PROBLEM, b.code, b.remedy, "%s: %s", algorithms[id].name, b.cause);
	}
}

static void check_hardware(const bool *chosen)
{
	char names[400] = "", unreached[AFALG_NAME_MAX + 1] = "";
	unsigned count = 0;

	for (int id = 0; id < ALGORITHM_COUNT; id++) {
		const struct offer *o = chosen[id] ? offer_of((enum algorithm_id)id) : NULL;

		if (o == NULL || o->error != 0)
			continue;
		if (o->driver.out_of_reach[0] != '\0')
			memcpy(unreached, o->driver.out_of_reach, sizeof(unreached));
		if (o->driver.class != AFALG_HARDWARE || algorithms[id].kind == KIND_RNG)
			continue;
		count++;
		if (strlen(names) < 200)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s (%s)",
				 count > 1 ? ", " : "", algorithms[id].name, o->driver.name);
	}
	if (count > 0)
		report(FINDING_OK, "hardware", NULL, "hardware does %u algorithms: %s", count, names);
	else if (unreached[0] != '\0')
		report(FINDING_NOTE, "software_only", NULL,
		       "the machine has hardware (%s), but Linux 7.2 and later do not offer hardware here: AF_ALG "
		       "reaches "
		       "software drivers only, so by default nothing goes to the kernel",
		       unreached);
	else if (gate_software_only())
		report(FINDING_NOTE, "software_only", NULL,
		       "Linux 7.2 and later do not offer hardware here: AF_ALG reaches software drivers only, so by "
		       "default "
		       "nothing goes to the kernel");
	else
		report(FINDING_NOTE, "no_hardware", "load the driver of the crypto device, if there is one",
		       "the kernel has software drivers only, which are not faster than OpenSSL, so by default nothing "
		       "goes to "
		       "the kernel (afalgctl list --why NAME tells more)");
}

void check_kernel(const struct configuration *c, const bool chosen[ALGORITHM_COUNT])
{
	report_area("kernel", "Kernel");
	report_sandbox();
	if (!check_socket())
		return;
	check_netlink(c);
	check_proc();
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		check_type(types[i], chosen);
	check_barred(chosen);
	check_hardware(chosen);
}
