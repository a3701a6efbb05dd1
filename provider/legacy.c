/* SPDX-License-Identifier: Apache-2.0 */
#include "legacy.h"

#include <string.h>

void legacy_note_core(struct legacy_watch *watch, const OSSL_DISPATCH *f)
{
	switch (f->function_id) {
	case OSSL_FUNC_PROVIDER_REGISTER_CHILD_CB:
		watch->start = OSSL_FUNC_provider_register_child_cb(f);
		break;
	case OSSL_FUNC_PROVIDER_DEREGISTER_CHILD_CB:
		watch->stop = OSSL_FUNC_provider_deregister_child_cb(f);
		break;
	case OSSL_FUNC_PROVIDER_NAME:
		watch->name = OSSL_FUNC_provider_name(f);
		break;
	}
}

static void note(struct legacy_watch *watch, const OSSL_CORE_HANDLE *provider, bool active)
{
	if (strcmp(watch->name(provider), "legacy") == 0)
		atomic_store(&watch->active, active);
}

/*
 * The core tells which providers are activated when the watch begins, and from then on which come and go. It holds
 * locks meanwhile (provider_core.c): nothing may be done here but to take note.
 */
static int comes(const OSSL_CORE_HANDLE *provider, void *watch)
{
	note(watch, provider, true);
	return 1;
}

static int goes(const OSSL_CORE_HANDLE *provider, void *watch)
{
	note(watch, provider, false);
	return 1;
}

/* The core calls it without asking whether it is there. */
static int new_properties(const char *properties, void *watch)
{
	(void)properties;
	(void)watch;
	return 1;
}

int legacy_watch_start(struct legacy_watch *watch, const OSSL_CORE_HANDLE *handle)
{
	if (watch->start == NULL || watch->stop == NULL || watch->name == NULL)
		return 1;
	return watch->start(handle, comes, goes, new_properties, watch);
}

void legacy_watch_stop(struct legacy_watch *watch, const OSSL_CORE_HANDLE *handle)
{
	if (watch->stop != NULL)
		watch->stop(handle);
}
