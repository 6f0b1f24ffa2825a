/* Positions in two dimensions   (Du et al. 2022, "GLM", arXiv:2103.10360, section 2.2): a token of
 * a text with blanks has the position that it, or the blank it belongs into, has in the text, and a
 * block position, its place within what fills the blank (0 in the text itself). Each has a learned
 * vector, and both are added onto the token's. */
#ifndef WG_NN_BLOCK_POSITION_H
#define WG_NN_BLOCK_POSITION_H

#include "embedding.h"

WG_BEGIN_DECLS

typedef struct wg_block_position {
    wg_module module;
    wg_embedding *positions, *block_positions; /* (count, C) each */
} wg_block_position;

typedef struct wg_block_position_options {
    wg_initializer init; /* of both tables; default: that of wg_embedding */
} wg_block_position_options;

/* Position ids of both kinds go from 0 to count - 1. The tables are "position_embeddings" and
 * "block_position_embeddings". `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY]
 */
WG_API wg_block_position *wg_block_position_new(wg_module *parent, const char *name, int64_t count,
                                                int64_t width,
                                                const wg_block_position_options *options);

/* x + position + block position.   x: (B, T, C)   ids, each: (B, T) or (T), i64 or i32
 * ->   (B, T, C). [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_block_position_forward(wg_block_position *positions, wg_tensor *x,
                                            wg_tensor *position_ids, wg_tensor *block_position_ids);

WG_END_DECLS

#endif
