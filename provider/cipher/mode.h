/* SPDX-License-Identifier: Apache-2.0 */
/* What the modes of a block cipher have in common, and what not: one row a mode. */
#ifndef PROVIDER_CIPHER_MODE_H
#define PROVIDER_CIPHER_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../algorithms.h"

#define MODE_IV_MAX 16
#define MODE_BLOCK_MAX 64

/* A run of whole blocks that the kernel has done. */
struct mode_run {
	bool encrypt;
	size_t block;                      /* bytes */
	size_t bytes;                      /* of the run, at least a block */
	const uint8_t *last_in, *last_out; /* its last block; in a copy, if the output may have taken its place */
};

/* What an update makes of its bytes. */
enum mode_update {
	UPDATE_STREAM,  /* each byte comes out at once */
	UPDATE_BLOCKS,  /* what is not a whole block is held back; the end is padded */
	UPDATE_UNIT,    /* an update is a message of its own, with the same IV each time, and one request */
	UPDATE_MESSAGE, /* the first update is the whole message; its last two blocks are for software alone */
};

struct mode {
	enum mode_update update;
	/* An init without IV starts from the original IV again. */
	bool restores_iv;
	/* Software does not tell how far a stream has come: that is its last IV and the bytes since. */
	bool counts;
	/* Fewer bytes are never for the kernel, whatever the policy. */
	size_t least;
	/* Turns the IV of a run into that of the block after it; null: there is none, or it does not change. */
	void (*next_iv)(uint8_t *iv, const struct mode_run *run);
	/* The most blocks of a request that begins with this IV; null: any number. */
	uint64_t (*room)(const uint8_t *iv);
};

extern const struct mode modes[];

#endif
