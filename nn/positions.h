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

    /* LLaMA 3.1's scaling, if original_positions is not 0. Angles with wavelengths above
     * original_positions / low_frequency_factor are divided by `factor`. Angles with wavelengths
     * below original_positions / high_frequency_factor stay. Between the two the scaling is
     * interpolated. */
    double low_frequency_factor, high_frequency_factor;
    int64_t original_positions;
} wg_rotary_options;

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

/* ---- Relative positions in buckets   (Raffel et al. 2020, arXiv:1910.10683, section 2.1): each
 * near distance has a bucket, farther distances share logarithmically wider buckets, and all
 * distances beyond `max_distance` share the last bucket. A learned number a head and bucket is
 * added to the scores of attention.
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
    bool bidirectional;   /* half of the buckets are for keys after the query; else these keys have
                             distance 0 */
    wg_initializer init;  /* default: standard normal */
} wg_relative_position_options;

/* ---- Positions in two dimensions   (Du et al. 2022, "GLM", arXiv:2103.10360, section 2.2): the
 * position of a token is its place in the text, or the place of the blank that it fills; its block
 * position is its place within the blank, 0 in the text itself. Each has a learned vector, and both
 * are added onto the token's. ---- */

typedef struct wg_block_position {
    wg_module module;
    wg_embedding *positions, *block_positions; /* (count, C) each */
} wg_block_position;

typedef struct wg_block_position_options {
    wg_initializer init; /* of both tables; default: wg_embedding's */
} wg_block_position_options;

WG_END_DECLS

#endif
