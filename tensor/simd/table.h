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

    .exp = map_exp,
    .exp2 = map_exp2,
    .expm1 = map_expm1,
    .log = map_log,
    .log2 = map_log2,
    .log10 = map_log10,
    .log1p = map_log1p,
    .sin = map_sin,
    .cos = map_cos,
    .tan = map_tan,
    .asin = map_asin,
    .acos = map_acos,
    .atan = map_atan,
    .sinh = map_sinh,
    .cosh = map_cosh,
    .tanh = map_tanh,
    .asinh = map_asinh,
    .acosh = map_acosh,
    .atanh = map_atanh,
    .cbrt = map_cbrt,
    .erf = map_erf,
    .erfc = map_erfc,
    .lgamma = map_lgamma,
    .rsqrt = map_rsqrt,
    .floor = map_floor,
    .ceil = map_ceil,
    .rint = map_rint,
    .trunc = map_trunc,

    .pow = pair_pow,
    .atan2 = pair_atan2,
    .hypot = pair_hypot,
    .logaddexp = pair_logaddexp,
    .xlogy = pair_xlogy,
    .fmod = pair_fmod,
    .remainder = pair_remainder,
#if WG__BITS == 64
    .digamma = map_digamma,
    .polygamma = map_polygamma,
    .gamma_slope_series = pair_gamma_slope_series,
    .gamma_slope_fraction = pair_gamma_slope_fraction,
#endif

    .sigmoid = map_sigmoid,
    .gelu = map_gelu,
    .gelu_tanh = map_gelu_tanh,

    .tanh_vjp = vjp_tanh,
    .sigmoid_vjp = vjp_sigmoid,
    .erf_vjp = vjp_erf,
    .gelu_vjp = vjp_gelu,
    .gelu_tanh_vjp = vjp_gelu_tanh,

    .silu = map_silu,
    .mish = map_mish,
    .log_sigmoid = map_log_sigmoid,
    .hardsigmoid = map_hardsigmoid,
    .hardswish = map_hardswish,
    .leaky_relu = map_leaky_relu,
    .elu = map_elu,
    .softplus = map_softplus,

    .silu_vjp = vjp_silu,
    .mish_vjp = vjp_mish,
    .log_sigmoid_vjp = vjp_log_sigmoid,
    .hardsigmoid_vjp = vjp_hardsigmoid,
    .hardswish_vjp = vjp_hardswish,
    .leaky_relu_vjp = vjp_leaky_relu,
    .elu_vjp = vjp_elu,
    .softplus_vjp = vjp_softplus,

    .glu = gate_glu,
    .glu_vjp = gate_vjp_glu,
    .swiglu = gate_swiglu,
    .swiglu_vjp = gate_vjp_swiglu,
    .geglu = gate_geglu,
    .geglu_vjp = gate_vjp_geglu,
    .reglu = gate_reglu,
    .reglu_vjp = gate_vjp_reglu,
    .bce = gate_bce,
    .bce_vjp = gate_vjp_bce,

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
            .keep_larger = keep_larger,
#endif
            .softmax_vjp = row_softmax_vjp,
            .softmax_columns = softmax_columns,
            .softmax_columns_vjp = softmax_columns_vjp,
            .softmax_short = softmax_short,
            .softmax_short_vjp = softmax_short_vjp,
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
            .dequantize = {dequantize_bf16, dequantize_q8_0, dequantize_q4_0},
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
