/* Positions: rotary, sinusoidal, relative, and in two dimensions. */
#ifndef WG_NN_POSITIONS_H
#define WG_NN_POSITIONS_H

#include "linear.h"

WG_BEGIN_DECLS

/* ---- Rotary positions   (Su et al. 2021, arXiv:2104.09864, eq. 34): position t rotates pair i by
 * the angle t base^(-2 i / D), i = 0 .. D/2 - 1 ---- */

typedef struct wg_rotary_options {
    double base;   /* 0: 10000 */
    double factor; /* positions are divided by it, to stretch a trained length (Chen et al. 2023,
                      arXiv:2306.15595); 0: 1 */

    /* LLaMA 3.1's scaling, if original_positions is not 0: slow angles, of wavelengths beyond
     * original_positions / low_frequency_factor, are divided by `factor`, fast ones, below
     * original_positions / high_frequency_factor, are not, and those between in part. */
    double low_frequency_factor, high_frequency_factor;
    int64_t original_positions;
} wg_rotary_options;

/* Cosines and sines of the angles of `positions` positions, from `first` on, for heads of width D =
 * `width`, which is even: (positions, D/2) each, f32. Angles are computed in f64. 0, or -1 with
 * both NULL. [scope; ARGUMENT] */
WG_API int wg_rotary_tables(int64_t width, int64_t first, int64_t positions,
                            const wg_rotary_options *options, wg_tensor **cos, wg_tensor **sin);

/* ---- Sinusoidal positions   (Vaswani et al. 2017, arXiv:1706.03762, section 3.5):
 *
 *     P(t, 2 i)     = sin(t / base^(2 i / C))
 *     P(t, 2 i + 1) = cos(t / base^(2 i / C))
 *
 * Sines and cosines alternate, as the paper writes them. tensor2tensor, fairseq and Marian put all
 * sines before all cosines: the same numbers in another order of the channels. ---- */

typedef struct wg_sinusoidal_options {
    double base; /* 0: 10000 */
} wg_sinusoidal_options;

/* The table of `positions` positions, from `first` on, for vectors of C = `width` numbers:
 * (positions, C), computed in f64 and rounded to `dtype`. [scope; ARGUMENT; DTYPE unless floating]
 */
WG_API wg_tensor *wg_sinusoidal_table(wg_dtype dtype, int64_t width, int64_t first,
                                      int64_t positions, const wg_sinusoidal_options *options);

/* ---- Relative positions in buckets   (Raffel et al. 2020, arXiv:1910.10683, section 2.1): near
 * distances have a bucket each, farther ones share logarithmically wider ones, and all beyond
 * `max_distance` the last. A learned number a head and bucket is added to the scores of attention.
 * ---- */

typedef struct wg_relative_position {
    wg_module module;
    wg_tensor *weight; /* (buckets, H) */
    int64_t max_distance;
    bool bidirectional;
} wg_relative_position;

typedef struct wg_relative_position_options {
    int64_t buckets;      /* 0: 32 */
    int64_t max_distance; /* 0: 128 */
    bool bidirectional;   /* half of the buckets are for keys behind the query; else those count as
                             distance 0 */
    wg_initializer init;  /* default: standard normal */
} wg_relative_position_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_relative_position *wg_relative_position_new(wg_module *parent, const char *name,
                                                      int64_t heads,
                                                      const wg_relative_position_options *options);

/* The bias of queries at positions first .. first + queries - 1 and keys at 0 .. keys - 1: (1, H,
 * queries, keys). [scope] */
WG_API wg_tensor *wg_relative_position_forward(wg_relative_position *positions, int64_t first,
                                               int64_t queries, int64_t keys);

/* ---- Positions in two dimensions   (Du et al. 2022, "GLM", arXiv:2103.10360, section 2.2): the
 * position of a token is its place in the text, or the place of the blank that it fills; its block
 * position is its place within the blank, 0 in the text itself. Each has a learned vector, and both
 * are added onto the token's. ---- */

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
