/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the application's library context has OpenSSL's legacy provider. What that one has is offered beside it only:
 * else DES would come back into programs that have done without it.
 */
#ifndef PROVIDER_LEGACY_H
#define PROVIDER_LEGACY_H

#include <openssl/core_dispatch.h>
#include <stdatomic.h>
#include <stdbool.h>

/* An instance's watch over the providers of its library context. */
struct legacy_watch {
	OSSL_FUNC_provider_register_child_cb_fn *start;
	OSSL_FUNC_provider_deregister_child_cb_fn *stop;
	OSSL_FUNC_provider_name_fn *name;
	atomic_bool active; /* there is a provider named "legacy", and it is activated */
};

/* Notes the core's function `f` if it is one of those. */
void legacy_note_core(struct legacy_watch *watch, const OSSL_DISPATCH *f);

/* Begins to watch, for the instance with this handle; `watch` must stay where it is. 0: out of memory. */
int legacy_watch_start(struct legacy_watch *watch, const OSSL_CORE_HANDLE *handle);
void legacy_watch_stop(struct legacy_watch *watch, const OSSL_CORE_HANDLE *handle);

#endif
