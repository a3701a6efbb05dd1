/* SPDX-License-Identifier: Apache-2.0 */
/* Random cases of digests. */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "differential.h"
#include "support.h"

static void digest_finish(EVP_MD_CTX *const ctx[2])
{
	uint8_t md[2][EVP_MAX_MD_SIZE];
	unsigned len[2] = {0, 0};

	check(EVP_DigestFinal_ex(ctx[0], md[0], &len[0]) && EVP_DigestFinal_ex(ctx[1], md[1], &len[1]), "digest final");
	check(len[0] == len[1] && memcmp(md[0], md[1], len[0]) == 0, "digest");
}

static void digest_run(EVP_MD_CTX *const ctx[2], const uint8_t *input, size_t length, int copies)
{
	while (length > 0) {
		size_t n = random_piece(length);

		if (copies > 0 && below(4) == 0) {
			EVP_MD_CTX *twins[2] = {EVP_MD_CTX_new(), EVP_MD_CTX_new()};

			copies--;
			for (int i = 0; i < 2; i++)
				check(EVP_MD_CTX_copy_ex(twins[i], ctx[i]), "digest copy");
			digest_run(twins, input, length, 0);
			EVP_MD_CTX_free(twins[0]);
			EVP_MD_CTX_free(twins[1]);
		}
		for (int i = 0; i < 2; i++)
			check(EVP_DigestUpdate(ctx[i], input, n), "digest update");
		input += n;
		length -= n;
	}
	digest_finish(ctx);
}

void digest_case(enum algorithm_id id)
{
	EVP_MD *mds[2] = {EVP_MD_fetch(ours, algorithms[id].name, NULL),
			  EVP_MD_fetch(reference, algorithms[id].name, NULL)};
	EVP_MD_CTX *ctx[2] = {EVP_MD_CTX_new(), EVP_MD_CTX_new()};
	const size_t length = random_length(), abandoned = below(3) == 0 ? random_length() : 0;
	uint8_t *input = malloc(LENGTH_MAX + 8);

	check(mds[0] != NULL && mds[1] != NULL, "fetch");
	support_fill(&state, input, LENGTH_MAX);
	for (int i = 0; i < 2; i++) {
		check(EVP_DigestInit_ex(ctx[i], mds[i], NULL), "digest init");
		if (abandoned > 0) /* a message that is never finished */
			check(EVP_DigestUpdate(ctx[i], input, abandoned) && EVP_DigestInit_ex(ctx[i], mds[i], NULL),
			      "digest re-init");
	}
	digest_run(ctx, input, length, 1);
	given[id] += length;
	for (int i = 0; i < 2; i++) {
		EVP_MD_CTX_free(ctx[i]);
		EVP_MD_free(mds[i]);
	}
	free(input);
}
