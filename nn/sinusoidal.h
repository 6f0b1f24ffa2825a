/* Sinusoidal positions   (Vaswani et al. 2017, arXiv:1706.03762, section 3.5):
 *
 *     P(t, 2 i)     = sin(t / base^(2 i / C))
 *     P(t, 2 i + 1) = cos(t / base^(2 i / C))
 *
 * Sines and cosines alternate, as the paper writes them. tensor2tensor, fairseq and Marian put all
 * sines before all cosines: the same numbers in another order of the channels. */
#ifndef WG_NN_SINUSOIDAL_H
#define WG_NN_SINUSOIDAL_H

#include "../tensor/ops.h"

WG_BEGIN_DECLS

typedef struct wg_sinusoidal_options {
    double base; /* 0: 10000 */
} wg_sinusoidal_options;

/* The table of `positions` positions, from `first` on, for vectors of C = `width` numbers:
 * (positions, C), computed in f64 and rounded to `dtype`. [scope; ARGUMENT; DTYPE unless floating]
 */
WG_API wg_tensor *wg_sinusoidal_table(wg_dtype dtype, int64_t width, int64_t first,
                                      int64_t positions, const wg_sinusoidal_options *options);

WG_END_DECLS

#endif
