/* SPDX-License-Identifier: Apache-2.0 */
#include "borrow.h"

#include <openssl/core_dispatch.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

/* A provider of the application's, and what stands for it in the software lane's library context. */
struct borrowed {
	EVP_MD *md; /* one of these keeps it from going away */
	EVP_CIPHER *cipher;
	const OSSL_PROVIDER *theirs;
	OSSL_PROVIDER *ours;
	OSSL_DISPATCH dispatch[2]; /* its answers to queries, and no teardown */
	struct borrowed *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct borrowed *current; /* under the lock */

static OSSL_provider_init_fn stand_in_init;
static int stand_in_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
			 void **provctx)
{
	(void)handle;
	(void)in;
	*out = current->dispatch;
	*provctx = OSSL_PROVIDER_get0_provider_ctx(current->theirs);
	return 1;
}

/* Loads the stand-in. Under the lock. */
static bool stand_in(struct provider *p, struct borrowed *b)
{
	const char *name = OSSL_PROVIDER_get0_name(b->theirs);
	const OSSL_DISPATCH *f = OSSL_PROVIDER_get0_dispatch(b->theirs);

	while (f != NULL && f->function_id != 0 && f->function_id != OSSL_FUNC_PROVIDER_QUERY_OPERATION)
		f++;
	if (f == NULL || f->function_id == 0)
		return false;
	b->dispatch[0] = *f;
	b->dispatch[1] = (OSSL_DISPATCH){0, NULL};
	current = b;
	if (!OSSL_PROVIDER_add_builtin(p->soft_context, name, stand_in_init))
		return false;
	b->ours = OSSL_PROVIDER_load(p->soft_context, name);
	return b->ours != NULL;
}

static void give_back(struct borrowed *b)
{
	EVP_MD_free(b->md);
	EVP_CIPHER_free(b->cipher);
	free(b);
}

static bool is_borrowed(const struct provider *p, const OSSL_PROVIDER *theirs)
{
	for (const struct borrowed *b = p->borrowed; b != NULL; b = b->next)
		if (strcmp(OSSL_PROVIDER_get0_name(b->theirs), OSSL_PROVIDER_get0_name(theirs)) == 0)
			return true;
	return false;
}

/* Borrows the provider of one of the two, which are given away. */
static void borrow(struct provider *p, EVP_MD *md, EVP_CIPHER *cipher)
{
	struct borrowed *b = calloc(1, sizeof(*b));

	if (b == NULL) {
		EVP_MD_free(md);
		EVP_CIPHER_free(cipher);
		return;
	}
	b->md = md;
	b->cipher = cipher;
	b->theirs = md != NULL ? EVP_MD_get0_provider(md) : EVP_CIPHER_get0_provider(cipher);
	pthread_mutex_lock(&lock);
	if (!is_borrowed(p, b->theirs) && stand_in(p, b)) {
		b->next = p->borrowed;
		p->borrowed = b;
		b = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (b != NULL)
		give_back(b);
}

/* A library context with the application's providers. Null: the core does not help with that. */
static OSSL_LIB_CTX *application(struct provider *p)
{
	OSSL_LIB_CTX *context;

	pthread_mutex_lock(&lock);
	if (p->application == NULL)
		p->application = OSSL_LIB_CTX_new_child(p->handle, p->core);
	context = p->application;
	pthread_mutex_unlock(&lock);
	return context;
}

bool borrow_digest(struct provider *p, const char *name, const char *properties)
{
	OSSL_LIB_CTX *context;
	EVP_MD *md, *theirs = NULL;

	ERR_set_mark();
	md = EVP_MD_fetch(p->soft_context, name, properties);
	context = md == NULL ? application(p) : NULL;
	if (context != NULL)
		theirs = EVP_MD_fetch(context, name, properties);
	if (theirs != NULL)
		borrow(p, theirs, NULL);
	ERR_pop_to_mark();
	EVP_MD_free(md);
	return md != NULL;
}

bool borrow_cipher(struct provider *p, const char *name, const char *properties)
{
	OSSL_LIB_CTX *context;
	EVP_CIPHER *cipher, *theirs = NULL;

	ERR_set_mark();
	cipher = EVP_CIPHER_fetch(p->soft_context, name, properties);
	context = cipher == NULL ? application(p) : NULL;
	if (context != NULL)
		theirs = EVP_CIPHER_fetch(context, name, properties);
	if (theirs != NULL)
		borrow(p, NULL, theirs);
	ERR_pop_to_mark();
	EVP_CIPHER_free(cipher);
	return cipher != NULL;
}

void borrow_cleanup(struct provider *p)
{
	for (struct borrowed *b = p->borrowed; b != NULL; b = b->next)
		OSSL_PROVIDER_unload(b->ours);
	OSSL_LIB_CTX_free(p->soft_context);
	for (struct borrowed *b = p->borrowed, *next; b != NULL; b = next) {
		next = b->next;
		give_back(b);
	}
	OSSL_LIB_CTX_free(p->application);
}
