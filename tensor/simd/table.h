/* All kernels and their table; included by kernels_f32.c and kernels_f64.c. */
#include "tensor/simd/simd.h"
#include "tensor/simd/vector.h"

#include "tensor/simd/functions.h"
#include "tensor/simd/random_words.h"
#include "tensor/simd/rows.h"
#include "tensor/simd/softmax.h"

#include "tensor/simd/attention.h"
#include "tensor/simd/distances.h"
#include "tensor/simd/factor.h"
#include "tensor/simd/fft.h"
#include "tensor/simd/products.h"
#include "tensor/simd/quantized.h"

extern const wg__simd WG__TABLE;

const wg__simd WG__TABLE = {
    .name = WG__TEXT(WG_SIMD),
    .lanes = LANES,
    .map = map_arrays,
    .rows =
        {
            .max = row_max,
            .sum_exp = row_sum_exp,
            .exp = row_exp,
            .softmax = row_softmax,
#if WG__BITS == 32
            .sum = row_sum,
            .round_to_bf16 = round_to_bf16,
            .widen_bf16 = widen_bf16,
            .max_pool_step = max_pool_step,
#endif
            .softmax_vjp = row_softmax_vjp,
            .softmax_columns = softmax_columns,
            .softmax_short = softmax_short,
            .excess = row_excess,
            .subtract = row_subtract,
            .moments = row_moments,
            .normalize = row_normalize,
            .normalize_vjp = row_normalize_vjp,
            .affine = row_affine,
            .centered_sums = row_centered_sums,
            .add_centered = add_centered_row,
            .attention = row_attention,
            .attention_vjp = row_attention_vjp,
            .mask_to_bias = mask_to_bias,
            .add = add_rows,
        },
    .products =
        {
            .panel = panel_product,
            .pack_columns = pack_columns,
            .pack_rows = pack_rows,
            .small = small_product,
            .head_dots = head_dots,
            .head_sums = head_sums,
            .row_products = row_products,
            .add_scaled_rows = add_scaled_rows,
#if WG__BITS == 32
            .bf16 = bf16_product,
            .dequantize = dequantize_row,
#endif
            .tap_sums = tap_sums,
            .tap_dots = tap_dots,
        },
    .matrices =
        {
            .distances = row_distances,
            .distances_vjp = row_distances_vjp,
            .fft_groups = fft_groups,
            .lu_factors = lu_factors,
            .lu_solve = lu_solve,
            .triangular_solve = triangular_solve,
            .cholesky_factor = cholesky_factor,
        },
    .random =
        {
            .words = random_words,
            .drop_below = drop_below,
#if WG__BITS == 64
            .normal_pairs = normal_pairs,
#endif
        },
};
