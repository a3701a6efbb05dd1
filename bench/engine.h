/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's ENGINEs, the predecessors of providers: to compare with those that are installed. OpenSSL 4 has none. */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <openssl/types.h>
#include <stdbool.h>

/* The engine of this id, ready for use; null where it is not installed or does not work here. */
ENGINE *engine_load(const char *id);
void engine_unload(ENGINE *engine);

/* Whether the engine has the cipher or digest of this NID. */
bool engine_has(ENGINE *engine, int nid);

#endif
