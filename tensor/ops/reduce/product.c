/* The product over axes; it accumulates in f64, as sums do. */
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/reduction.h"

#include <math.h>

/* ---- prod: y = the product over the axes; integers and bools in i64, wrapping around.   dx_i = g
 * times the product of all others. ---- */

WG__REDUCTION(prod_f32, float, , double, 1, a *b, float, )
WG__REDUCTION(prod_f64, double, , double, 1, a *b, double, )
WG__REDUCTION(prod_bf16, uint16_t, wg__bf16_to_f32, double, 1, a *b, uint16_t, wg__f64_to_bf16)
WG__REDUCTION(prod_i32, int32_t, , uint64_t, 1, a *b, int64_t, )
WG__REDUCTION(prod_i64, int64_t, , uint64_t, 1, a *b, int64_t, )
WG__REDUCTION(prod_u8, uint8_t, , uint64_t, 1, a *b, int64_t, )

static int prod_forward(wg_call *call) {
    static const wg__reduction kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = WG__KERNELS(prod_f32, double),   [WG_F64] = WG__KERNELS(prod_f64, double),
        [WG_BF16] = WG__KERNELS(prod_bf16, double), [WG_I32] = WG__KERNELS(prod_i32, uint64_t),
        [WG_I64] = WG__KERNELS(prod_i64, uint64_t), [WG_U8] = WG__KERNELS(prod_u8, uint64_t),
        [WG_BOOL] = WG__KERNELS(prod_u8, uint64_t)};
    return wg__reduce_call(call, kernels);
}

/* Products of all before each element of a line, which is the last axis: 1 at the first. */
static wg_tensor *products_before(wg_tensor *lines) {
    wg_tensor *first = wg_ones_like(wg_slice(lines, -1, 0, 1, 1));
    wg_tensor *rest = wg_cumprod(wg_slice(lines, -1, 0, -1, 1), -1);
    return wg_cat(2, (wg_tensor *[]){first, rest}, -1);
}

/* x with the reduced axes joined into a last one, by way of `order`, the axes with those last. */
static wg_tensor *as_lines(wg_tensor *x, const int64_t *order, int kept) {
    wg_tensor *moved = wg_permute(x, x->spec.ndim, order);
    int64_t shape[WG_MAX_DIMS], n = 1;
    for (int i = 0; i < x->spec.ndim; i++) {
        shape[i < kept ? i : kept] = x->spec.shape[order[i]];
        n *= i < kept ? 1 : x->spec.shape[order[i]];
    }
    shape[kept] = n;
    return wg_reshape(moved, kept + 1, shape);
}

static wg_tensor *from_lines(wg_tensor *lines, const int64_t *order, const wg_spec *x) {
    int64_t moved[WG_MAX_DIMS], back[WG_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        moved[i] = x->shape[order[i]];
        back[order[i]] = i;
    }
    return wg_permute(wg_reshape(lines, x->ndim, moved), x->ndim, back);
}

/* For each element the product of the others over the axes, without a division: those before it by
 * those after it. */
static wg_tensor *products_of_others(const wg_call *call) {
    wg_tensor *x = call->inputs[0];
    int64_t order[WG_MAX_DIMS], last = -1;
    const int kept = wg__reduced_last(x->spec.ndim, wg__reduce_options_of(call)->mask, order);
    wg_tensor *lines = as_lines(x, order, kept);
    wg_tensor *after = wg_flip(products_before(wg_flip(lines, 1, &last)), 1, &last);
    return from_lines(wg_mul(products_before(lines), after), order, &x->spec);
}

/* Whether y / x is what the others multiply to: not where a zero, an infinity or a NaN has
 * swallowed them. */
static bool is_regular(wg_tensor *y) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool recording = wg_set_grad_enabled(false);
    wg_tensor *size = wg_abs(y);
    const bool regular =
        wg__spec_count(&y->spec) == 0 || (wg_item(wg_min(size, 0, NULL, false)) > 0 &&
                                          wg_item(wg_max(size, 0, NULL, false)) < INFINITY);
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return regular;
}

/* dy/dx. */
static wg_tensor *prod_derivative(const wg_call *call) {
    if (!is_regular(call->outputs[0]))
        return products_of_others(call);
    return wg_div(wg__with_axes(call->outputs[0], call), call->inputs[0]);
}

static int prod_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    return wg__vjp_by_derivative(call, prod_derivative(call), cotangents, gradients);
}

static int prod_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    return wg__jvp_by_derivative(call, prod_derivative(call), tangents, output_tangents);
}

/* After those of all reductions (one of which has a 0, in all axes): lines with no, one and two
 * zeros, along one axis and along two. */
static int prod_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const wg__reduce_options options[] = {{2, false}, {5, true}, {1, false}};
    static const int64_t shape[] = {2, 2, 3};
    const double values[] = {1.5, 0, -2, 0.5, 2, 1.25, 0, -0.75, 3, 1, 0, 0};
    if (wg__reduction_case_at(index) != NULL)
        return wg__sample_reduction(index, generator, sample);
    for (int i = 0; wg__reduction_case_at(i) != NULL; i++)
        index--;
    if (index >= 3)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg_from_array(WG_F64, 3, shape, values);
    return wg__sample_status(sample, 1);
}

static const wg_op prod = {
    .name = "prod",
    .doc = "y = the product over the given axes; integers and bools in i64. The gradient is right "
           "beside zeros, too.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__reduce_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = wg__infer_total,
    .forward = prod_forward,
    .vjp = prod_vjp,
    .jvp = prod_jvp,
    .sample = prod_sample,
    .bench = wg__bench_reduction,
    .flops = wg__reduce_flops,
};

wg_tensor *wg_prod(wg_tensor *x, int axis_count, const int64_t *axes, bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, "prod"))
        return NULL;
    return wg_apply_one(&prod, 1, &x, &options);
}

static const wg_op *const ops[] = {&prod};

const wg__op_family wg__family_product = {ops, sizeof ops / sizeof *ops};
