/* SPDX-License-Identifier: Apache-2.0 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "engine.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/opensslconf.h>
#ifndef OPENSSL_NO_ENGINE
#include <openssl/engine.h>
#endif

#ifdef OPENSSL_NO_ENGINE

ENGINE *engine_load(const char *id)
{
	(void)id;
	return NULL;
}

void engine_unload(ENGINE *engine)
{
	(void)engine;
}

bool engine_has(ENGINE *engine, int nid)
{
	(void)engine;
	(void)nid;
	return false;
}

#else

ENGINE *engine_load(const char *id)
{
	ENGINE *engine = ENGINE_by_id(id);

	if (engine != NULL && !ENGINE_init(engine)) {
		ENGINE_free(engine);
		engine = NULL;
	}
	ERR_clear_error();
	return engine;
}

void engine_unload(ENGINE *engine)
{
	if (engine == NULL)
		return;
	ENGINE_finish(engine);
	ENGINE_free(engine);
}

bool engine_has(ENGINE *engine, int nid)
{
	const bool has =
		nid != NID_undef && (ENGINE_get_cipher(engine, nid) != NULL || ENGINE_get_digest(engine, nid) != NULL);

	ERR_clear_error();
	return has;
}

#endif
