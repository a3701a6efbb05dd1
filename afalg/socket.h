/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AFALG_SOCKET_H
#define AFALG_SOCKET_H

/*
 * Opens an AF_ALG socket and binds it to `algorithm` (generic or driver name) of `type` ("skcipher", "hash"). May make
 * the kernel load modules and test itself. Returns a close-on-exec descriptor that the caller owns, or a negative
 * errno: EAFNOSUPPORT, EPERM, EACCES: no AF_ALG here; ENOENT: not served, or a module is missing or barred; ELIBBAD:
 * the driver's self-test failed; ENAMETOOLONG: a name that the kernel would cut short.
 */
int afalg_socket_bind(const char *type, const char *algorithm);

#endif
