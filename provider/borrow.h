/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the default provider's MACs are made of is fetched from the library context of the software lane. It may be that
 * only the application has it: a digest or cipher of another provider, or one that a property query asks for. Then the
 * provider that has it is borrowed: its digests and ciphers are to be had in that library context too, after those of
 * the default provider.
 */
#ifndef PROVIDER_BORROW_H
#define PROVIDER_BORROW_H

#include <stdbool.h>

struct provider;

/*
 * Whether the software lane's own providers have a digest, or a cipher, of this name with these properties (null:
 * none). If not, what the application's have is borrowed, for as long as we are loaded.
 */
bool borrow_digest(struct provider *p, const char *name, const char *properties);
bool borrow_cipher(struct provider *p, const char *name, const char *properties);

/* Gives back all that was borrowed, when nothing of the software lane is left but its library context, which it frees.
 */
void borrow_cleanup(struct provider *p);

#endif
