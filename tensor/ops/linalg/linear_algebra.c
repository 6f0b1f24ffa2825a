/* Other products: tensordot, outer, dot, addmm. */
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/linalg/einsum.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

/* ---- tensordot: the sum over pairs of axes, one of a and one of b; the other axes of a, then
 * those of b, are left. ---- */

typedef struct tensordot_options {
    int count;
    int64_t axes_a[WG_MAX_DIMS], axes_b[WG_MAX_DIMS];
} tensordot_options;

/* The mask of a list of axes, where an empty list means none (for wg__axis_mask it means all). */
static int64_t mask_of(int count, const int64_t *axes, int ndim, const char *where) {
    return count == 0 ? 0 : wg__axis_mask(count, axes, ndim, where);
}

static int tensordot_infer(wg_call *call) {
    const tensordot_options *options = call->options;
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const char *name = call->op->name;
    const int64_t in_a = mask_of(options->count, options->axes_a, a->ndim, name);
    const int64_t in_b = mask_of(options->count, options->axes_b, b->ndim, name);
    if (in_a < 0 || in_b < 0)
        return -1;
    for (int i = 0; i < options->count; i++) {
        const int axis_a = wg__axis(options->axes_a[i], a->ndim, name);
        const int axis_b = wg__axis(options->axes_b[i], b->ndim, name);
        if (a->shape[axis_a] != b->shape[axis_b])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "axis %d of a has size %lld, axis %d of b has %lld; they are to be "
                               "summed over together",
                               axis_a, (long long)a->shape[axis_a], axis_b,
                               (long long)b->shape[axis_b]);
    }
    wg_spec *out = &call->output_specs[0];
    const int ndim = a->ndim + b->ndim - 2 * options->count;
    if (ndim > WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the result has %d axes; there are at most %d",
                           ndim, WG_MAX_DIMS);
    *out = (wg_spec){.dtype = wg__dtype_promote(a->dtype, b->dtype)};
    for (int axis = 0; axis < a->ndim; axis++)
        if (!(in_a >> axis & 1))
            out->shape[out->ndim++] = a->shape[axis];
    for (int axis = 0; axis < b->ndim; axis++)
        if (!(in_b >> axis & 1))
            out->shape[out->ndim++] = b->shape[axis];
    return 0;
}

/* Axis i of a has label i, axis i of b has 8 + i, or the label of the axis of a that is its
 * partner. */
static int tensordot_decompose(wg_call *call) {
    const tensordot_options *options = call->options;
    wg__contraction c = {.count = 2};
    wg_tensor *operands[] = {call->inputs[0], call->inputs[1]};
    int64_t summed = 0;
    if (!wg__promote_all(2, operands))
        return -1;
    const wg_dtype dtype = operands[0]->spec.dtype;
    for (int i = 0; i < 2; i++) {
        for (int axis = 0; axis < operands[i]->spec.ndim; axis++) {
            c.operands[i].labels[axis] = i * WG_MAX_DIMS + axis;
            c.sizes[i * WG_MAX_DIMS + axis] = operands[i]->spec.shape[axis];
        }
        c.operands[i].tensor = wg__widen(operands[i]);
    }
    for (int i = 0; i < options->count; i++) {
        const int axis_a = wg__axis(options->axes_a[i], operands[0]->spec.ndim, call->op->name);
        const int axis_b = wg__axis(options->axes_b[i], operands[1]->spec.ndim, call->op->name);
        c.operands[1].labels[axis_b] = axis_a;
        summed |= (int64_t)1 << axis_a;
    }
    for (int i = 0; i < 2; i++)
        for (int axis = 0; axis < operands[i]->spec.ndim; axis++)
            if (!(summed >> c.operands[i].labels[axis] & 1))
                c.output[c.output_ndim++] = c.operands[i].labels[axis];
    return wg__set_output(call, wg_cast(wg__contract(call, &c), dtype));
}

static double tensordot_flops(const wg_call *call) {
    const tensordot_options *options = call->options;
    double flops = 2 * (double)wg__spec_count(&call->output_specs[0]);
    for (int i = 0; i < options->count; i++) {
        const wg_spec *a = &call->input_specs[0];
        flops *= (double)a->shape[wg__axis(options->axes_a[i], a->ndim, call->op->name)];
    }
    return flops;
}

WG__EXAMPLES(tensordot, tensordot_options, (wg__sample_normal), {{1, {1}, {0}}, "2 3, 3 4"},
             {{2, {-1, 0}, {0, 2}}, "2 3 4, 4 3 2"}, {{0, {0}, {0}}, "2, 3 2"})

/* 2^31 operations. */
WG__LARGE(tensordot, tensordot_options, "32 32 1024, 1024 32 32", 2, {0, 1}, {2, 1})

static const wg_op tensordot = {
    WG__OP("tensordot", 2,
           "y = the sum over pairs of axes, one of a and one of b, of the product of a and b; the "
           "other axes of a and then those of b are left."),
    .options_size = sizeof(tensordot_options),
    .differentiable = 3,
    .infer = tensordot_infer,
    .decompose = tensordot_decompose,
    .sample = tensordot_sample,
    .bench = tensordot_bench,
    .flops = tensordot_flops,
};

wg_tensor *wg_tensordot(wg_tensor *a, wg_tensor *b, int count, const int64_t *axes_a,
                        const int64_t *axes_b) {
    tensordot_options options = {.count = count};
    if (count < 0 || count > WG_MAX_DIMS) {
        wg_fail(WG_ERROR_ARGUMENT, tensordot.name, "%d pairs of axes; there are 0 to %d", count,
                WG_MAX_DIMS);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        options.axes_a[i] = axes_a[i];
        options.axes_b[i] = axes_b[i];
    }
    return wg_apply_one(&tensordot, 2, (wg_tensor *[]){a, b}, &options);
}

/* ---- outer: y[i, j] = a[i] b[j]. ---- */

static int outer_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const int64_t shape[] = {wg__spec_count(a), wg__spec_count(b)};
    return wg__spec_make(&call->output_specs[0], wg__dtype_promote(a->dtype, b->dtype), 2, shape,
                         call->op->name);
}

static int outer_decompose(wg_call *call) {
    wg_tensor *column = wg_reshape(call->inputs[0], 2, (int64_t[]){-1, 1});
    wg_tensor *row = wg_reshape(call->inputs[1], 2, (int64_t[]){1, -1});
    return wg__set_output(call, wg_mul(column, row));
}

WG__SHAPES(outer, (wg__sample_normal), "3, 4", "2 3,")

WG__LARGE(outer, int, "2048, 2048", 0)

static const wg_op outer = {
    WG__OP("outer", 2, "y[i, j] = a[i] b[j], for all elements of a and of b in row-major order."),
    .differentiable = 3,
    .infer = outer_infer,
    .decompose = outer_decompose,
    .sample = outer_sample,
    .bench = outer_bench,
};

wg_tensor *wg_outer(wg_tensor *a, wg_tensor *b) {
    return wg_apply_one(&outer, 2, (wg_tensor *[]){a, b}, NULL);
}

/* ---- dot: y = the sum of a[i] b[i]. ---- */

static int dot_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    if (a->ndim != 1 || b->ndim != 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted two vectors; matmul takes other ranks");
    if (a->shape[0] != b->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE, "sizes %lld and %lld differ",
                           (long long)a->shape[0], (long long)b->shape[0]);
    call->output_specs[0] = (wg_spec){.dtype = wg__dtype_promote(a->dtype, b->dtype)};
    return 0;
}

static int dot_decompose(wg_call *call) {
    return wg__set_output(call, wg_matmul(call->inputs[0], call->inputs[1]));
}

static double dot_flops(const wg_call *call) {
    return 2 * (double)wg__spec_count(&call->input_specs[0]);
}

WG__SHAPES(dot, (wg__sample_normal), "5, 5")

WG__LARGE(dot, int, "4194304, 4194304", 0)

static const wg_op dot = {
    WG__OP("dot", 2, "y = the sum of a[i] b[i], of two vectors."),
    .differentiable = 3,
    .infer = dot_infer,
    .decompose = dot_decompose,
    .sample = dot_sample,
    .bench = dot_bench,
    .flops = dot_flops,
};

wg_tensor *wg_dot(wg_tensor *a, wg_tensor *b) {
    return wg_apply_one(&dot, 2, (wg_tensor *[]){a, b}, NULL);
}

/* ---- addmm: y = beta c + alpha A B.   dc = beta g, dA = alpha g B^T, dB = alpha A^T g. ---- */

typedef struct addmm_options {
    double beta, alpha;
} addmm_options;

static int addmm_infer(wg_call *call) {
    const wg_spec *c = &call->input_specs[0], *a = &call->input_specs[1],
                  *b = &call->input_specs[2];
    const addmm_options *options = call->options;
    if (wg__check_same_dtype(call, 0, 1) < 0 || wg__check_same_dtype(call, 0, 2) < 0)
        return -1;
    if (c->dtype == WG_BOOL || c->dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s is not multiplied; cast the operands",
                           wg_dtype_name(c->dtype));
    if (!wg_dtype_is_float(c->dtype) &&
        (options->alpha != trunc(options->alpha) || options->beta != trunc(options->beta)))
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "factors of integers are whole numbers, not %g and %g", options->beta,
                           options->alpha);
    if (a->ndim != 2 || b->ndim != 2 || a->shape[1] != b->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted C + A B of matrices A (M, K) and B (K, N)");
    wg_spec *out = &call->output_specs[0], broadcast;
    *out = (wg_spec){c->dtype, 2, {a->shape[0], b->shape[1]}};
    if (!wg__broadcast(c, out, &broadcast) || !wg__same_shape(&broadcast, out))
        return wg__op_fail(call, WG_ERROR_SHAPE, "C does not broadcast to (%lld, %lld)",
                           (long long)out->shape[0], (long long)out->shape[1]);
    return 0;
}

/* Copies c to the result and adds the product in place; with beta 0, c is not read. */
static int addmm_forward(wg_call *call) {
    const addmm_options *options = call->options;
    wg_tensor *y = call->outputs[0], *a = wg__gemm_operand(call->inputs[1]);
    wg_tensor *b = wg__gemm_operand(call->inputs[2]);
    if (!a || !b || (options->beta != 0 && wg_copy_(y, call->inputs[0]) < 0))
        return -1;
    wg__gemm(&(wg__product){.dtype = y->spec.dtype,
                            .m = y->spec.shape[0],
                            .n = y->spec.shape[1],
                            .k = a->spec.shape[1],
                            .alpha = options->alpha,
                            .beta = options->beta,
                            .a = wg__matrix_of(a),
                            .b = wg__matrix_of(b),
                            .c = wg__matrix_of(y)});
    return 0;
}

/* alpha A B by one GEMM. */
static wg_tensor *scaled_product(const wg_call *call, wg_tensor *a, wg_tensor *b) {
    const addmm_options *options = call->options;
    return wg_addmm(wg_scalar(call->input_specs[0].dtype, 0), a, b, 0, options->alpha);
}

static int addmm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const addmm_options *options = call->options;
    wg_tensor *g = cotangents[0];
    if (wg__wants(call, 0) && options->beta != 0)
        gradients[0] =
            wg__sum_like(options->beta == 1 ? g : wg_mul_scalar(g, options->beta), call, 0);
    if (wg__wants(call, 1))
        gradients[1] = scaled_product(call, g, wg_transpose(call->inputs[2], 0, 1));
    if (wg__wants(call, 2))
        gradients[2] = scaled_product(call, wg_transpose(call->inputs[1], 0, 1), g);
    return wg__vjp_status();
}

static int addmm_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const addmm_options *options = call->options;
    wg_tensor *c = tangents[0] ? tangents[0] : wg_scalar(call->input_specs[0].dtype, 0);
    wg_tensor *y = wg_expand(wg_mul_scalar(c, options->beta), 2, call->output_specs[0].shape);
    if (tangents[1])
        y = wg_addmm(y, tangents[1], call->inputs[2], 1, options->alpha);
    if (tangents[2])
        y = wg_addmm(y, call->inputs[1], tangents[2], 1, options->alpha);
    output_tangents[0] = y;
    return wg__vjp_status();
}

static double addmm_flops(const wg_call *call) {
    return 2 * (double)wg__spec_count(&call->output_specs[0]) *
           ((double)call->input_specs[1].shape[1] + 1);
}

WG__EXAMPLES(addmm, addmm_options, (wg__sample_normal), {{1, 1}, "3 2, 3 4, 4 2"},
             {{-0.5, 2}, "2, 3 4, 4 2"}, {{2, 0.5}, "3 1, 3 4, 4 2"}, {{0, 1.5}, ", 3 4, 4 2"})

WG__LARGE(addmm, addmm_options, "1024 1024, 1024 1024, 1024 1024", 1, 1)

static int addmm_batch(wg_call *call, uint32_t batched, int64_t samples) {
    const addmm_options *options = call->options;
    wg_tensor *c = wg__batch_input(call, batched, 0, 2, samples);
    wg_tensor *product = wg_matmul(call->inputs[1], call->inputs[2]);
    return wg__set_output(
        call, wg_add(wg_mul_scalar(c, options->beta), wg_mul_scalar(product, options->alpha)));
}

static const wg_op addmm = {
    WG__OP("addmm", 3,
           "y = beta C + alpha A B: C, which broadcasts to (M, N), and (M, K) x (K, N)."),
    .options_size = sizeof(addmm_options),
    .saves_inputs = 6,
    .differentiable = 7,
    .infer = addmm_infer,
    .forward = addmm_forward,
    .vjp = addmm_vjp,
    .jvp = addmm_jvp,
    .sample = addmm_sample,
    .bench = addmm_bench,
    .flops = addmm_flops,
    .batch = addmm_batch};

wg_tensor *wg_addmm(wg_tensor *c, wg_tensor *a, wg_tensor *b, double beta, double alpha) {
    return a && b ? wg__apply_wide_one(&addmm, 3, (wg_tensor *[]){c, a, b}, false,
                                       &(addmm_options){beta, alpha})
                  : NULL;
}

static const wg_op *const ops[] = {&tensordot, &outer, &dot, &addmm};

const wg__op_table wg__ops_linear_algebra = {ops, sizeof ops / sizeof *ops};
