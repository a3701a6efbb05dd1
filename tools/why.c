/* SPDX-License-Identifier: Apache-2.0 */
#include "why.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "offer.h"
#include "text.h"

static void say_blame(const struct blame *b)
{
	text_printf(stdout, "Cause:  ", "%s.", b->cause);
	if (b->remedy[0] != '\0')
		text_printf(stdout, "Remedy: ", "%s.", b->remedy);
}

static const char *in_software(enum algorithm_id id)
{
	return algorithms[id].kind == KIND_RNG ? "the bytes come from getrandom(2) instead"
					       : "OpenSSL's own code does all of it, as if afalgprov were not there";
}

/*** The kernel serves it ***/

static void say_driver(enum algorithm_id id)
{
	const struct afalg_driver *d = &offer_of(id)->driver;

	text_printf(stdout, "", "The kernel calls it %s and does it with the driver %s (module %s, priority %d).",
		    algorithms[id].kernel, d->name, d->module, d->priority);
}

static void why_hardware(enum algorithm_id id, const struct lane *lane)
{
	const struct algorithm *a = &algorithms[id];

	say_driver(id);
	text_printf(
		stdout, "",
		"That is hardware: %s. With the default settings %s of %zu bytes or more go there; smaller ones stay "
		"in OpenSSL's own code, which is done with them before the device has begun.",
		offer_of(id)->driver.evidence, a->kind == KIND_HASH || a->kind == KIND_MAC ? "messages" : "calls",
		lane->least);
	text_printf(stdout, "To see:  ", "afalgctl stats -- PROGRAM shows how much of a program's work went there.");
	text_printf(stdout, "To tune: ", "'thresholds = %s:BYTES' in the section of afalgprov changes the limit.",
		    a->name);
}

static void why_software(enum algorithm_id id, const struct lane *lane)
{
	const struct afalg_driver *d = &offer_of(id)->driver;

	say_driver(id);
	if (lane->cause == CAUSE_OUT_OF_REACH) {
		text_printf(
			stdout, "",
			"The machine has hardware for it, the driver %s, but this kernel does not let programs reach "
			"hardware over AF_ALG: Linux 7.2 and later do not offer it there, and some distributions have "
			"taken that change into older kernels. So %s.",
			d->out_of_reach, in_software(id));
		text_print(stdout, "Remedy: ", "none in afalgprov; only an older kernel, without that change.");
		return;
	}
	if (lane->cause == CAUSE_SOFTWARE)
		text_printf(
			stdout, "",
			"That driver is software (%s). It computes on the same processor as OpenSSL, and the way into "
			"the kernel and back comes on top, so it cannot be faster and is not used: %s.",
			d->evidence, in_software(id));
	else
		text_printf(stdout, "", "Whether that is hardware cannot be told (%s), so it is not used: %s.",
			    d->evidence, in_software(id));
	if (gate_software_only())
		text_print(stdout, "Note:   ",
			   "Linux 7.2 and later do not offer hardware here, and this kernel is one of those: AF_ALG "
			   "reaches software drivers only, whatever device the machine has.");
	else
		text_print(stdout, "Remedy: ",
			   "if the machine has a crypto device that does it, load the device's driver (modprobe), and "
			   "see in /proc/crypto whether it has the highest priority under that name.");
	text_printf(stdout, "To try: ", "'policy = kernel', or 'thresholds = %s:BYTES', sends it there all the same.",
		    algorithms[id].name);
}

static void why_chosen(enum algorithm_id id)
{
	say_driver(id);
	text_printf(stdout, "",
		    "Programs whose configuration names %s get their random numbers from there (%s); all others keep "
		    "OpenSSL's own generator. afalgprov(7) shows the configuration.",
		    algorithms[id].name, offer_of(id)->driver.evidence);
}

/*** It does not ***/

static void why_no_afalg(enum algorithm_id id)
{
	struct blame b;

	text_printf(stdout, "",
		    "Programs reach the kernel's crypto through AF_ALG sockets, and here they get none (%s). So %s.",
		    strerror(-afalg_catalogue_support()), in_software(id));
	gate_blame(&gate_af_alg, -afalg_catalogue_support(), &b);
	say_blame(&b);
}

/* Whether some algorithm of this type is served, so that the type is. */
static bool type_served(const char *type)
{
	for (int id = 0; id < ALGORITHM_COUNT; id++)
		if (strcmp(algorithm_type(algorithms[id].kind), type) == 0 &&
		    offer_of((enum algorithm_id)id)->error != -ENOENT)
			return true;
	return false;
}

static void why_not_served(enum algorithm_id id)
{
	const char *type = algorithm_type(algorithms[id].kind);
	struct blame b;

	text_printf(stdout, "", "The kernel calls it %s, and does not serve it over AF_ALG here (%s). So %s.",
		    algorithms[id].kernel, strerror(ENOENT), in_software(id));
	if (type_served(type)) {
		gate_blame_algorithm(algorithms[id].kernel, &b);
	} else {
		text_printf(stdout, "", "It serves nothing of the type %s at all.", type);
		gate_blame(gate_of_type(type), ENOENT, &b);
	}
	say_blame(&b);
}

static void why_refused(enum algorithm_id id)
{
	const struct offer *o = offer_of(id);

	text_printf(stdout, "", "The kernel calls it %s, and refuses it over AF_ALG: %s (%s). So %s.",
		    algorithms[id].kernel, afalg_explain(o->error), strerror(-o->error), in_software(id));
	text_print(stdout, "Remedy: ", "look for the kernel's own message: dmesg | grep -i alg");
}

static void why_unreadable(enum algorithm_id id)
{
	text_printf(stdout, "",
		    "/proc/crypto cannot be read here (%s), so nobody can tell which driver the kernel has for %s and "
		    "whether it is hardware.%s%s.",
		    strerror(-offer_of(id)->error), algorithms[id].kernel,
		    algorithms[id].kind == KIND_RNG ? "" : " So ",
		    algorithms[id].kind == KIND_RNG ? " It is used all the same where it works" : in_software(id));
	text_printf(stdout, "Remedy: ", "make /proc/crypto visible in the sandbox, or set 'thresholds = %s:16384'.",
		    algorithms[id].name);
}

void why_print(enum algorithm_id id)
{
	struct lane lane;

	lane_of(id, &lane);
	text_printf(stdout, "", "%s: the kernel is %s.", algorithms[id].name,
		    lane.cause == CAUSE_HARDWARE ? "used for large calls"
		    : lane.cause == CAUSE_CHOSEN ? "used by programs that choose it"
		    : lane.state == LANE_UNKNOWN ? "used where it works"
						 : "not used");
	switch (lane.cause) {
	case CAUSE_HARDWARE:
		why_hardware(id, &lane);
		break;
	case CAUSE_CHOSEN:
		why_chosen(id);
		break;
	case CAUSE_NO_AFALG:
		why_no_afalg(id);
		break;
	case CAUSE_UNREADABLE:
		why_unreadable(id);
		break;
	case CAUSE_NOT_SERVED:
		why_not_served(id);
		break;
	case CAUSE_REFUSED:
		why_refused(id);
		break;
	case CAUSE_OUT_OF_REACH:
	case CAUSE_SOFTWARE:
	case CAUSE_UNKNOWN_DRIVER:
		why_software(id, &lane);
		break;
	}
}
