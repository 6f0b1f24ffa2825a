/* Tables of rotary positions   (Su et al. 2021, arXiv:2104.09864, eq. 34): position t turns pair i
 * by the angle t base^(-2 i / D), i = 0 .. D/2 - 1. */
#ifndef WG_NN_ROTARY_H
#define WG_NN_ROTARY_H

#include "../tensor/ops.h"

WG_BEGIN_DECLS

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

WG_END_DECLS

#endif
