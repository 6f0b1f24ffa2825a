/* Rotary positions, RoPE   (Su, Lu, Pan, Murtadha, Wen & Liu 2021, arXiv:2104.09864, eq. 34). */
#include "tensor/internal.h"
#include "tensor/ops/attention/attention.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

/* ---- rotary: each pair (a, b) of the last axis becomes (a cos - b sin, a sin + b cos).
 *
 *     halves      | a0 a1 .. | b0 b1 .. | rest |      GPT-NeoX, LLaMA as published by Hugging Face
 *     adjacent    | a0 b0 a1 b1 ..      | rest |      the paper, LLaMA as published by Meta
 *
 * dx = g rotated back, which is rotary of g with -sin. ---- */

enum { X, COS, SIN };

typedef struct rotary_options {
    int pairing;
} rotary_options;

#define ROTATE_ROW(NAME, TYPE)                                                                     \
    static void NAME(const wg__rotation *by, const TYPE *restrict x, const TYPE *restrict cos,     \
                     const TYPE *restrict sin, TYPE *restrict y) {                                 \
        const int64_t n = by->pairs;                                                               \
        if (by->pairing == WG_ROTARY_HALVES)                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                y[i] = x[i] * cos[i] - x[i + n] * sin[i];                                          \
                y[i + n] = x[i] * sin[i] + x[i + n] * cos[i];                                      \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                y[2 * i] = x[2 * i] * cos[i] - x[2 * i + 1] * sin[i];                              \
                y[2 * i + 1] = x[2 * i] * sin[i] + x[2 * i + 1] * cos[i];                          \
            }                                                                                      \
        memcpy(y + 2 * n, x + 2 * n, (size_t)(by->width - 2 * n) * sizeof(TYPE));                  \
    }

ROTATE_ROW(rotate_f32, float)
ROTATE_ROW(rotate_f64, double)

void wg__rotate_row(const wg__rotation *rotation, const void *x, const void *cos, const void *sin,
                    void *y) {
    if (rotation->dtype == WG_F32)
        rotate_f32(rotation, x, cos, sin, y);
    else
        rotate_f64(rotation, x, cos, sin, y);
}

typedef struct rotary_job {
    wg__rotation by;
    wg_spec rows; /* the axes of x but the last */
    const char *x, *cos, *sin;
    char *y;
    int64_t x_strides[WG_MAX_DIMS], table_strides[WG_MAX_DIMS]; /* in elements */
} rotary_job;

static void rotate_rows(int64_t begin, int64_t end, void *context) {
    const rotary_job *job = context;
    const int64_t size = (int64_t)wg_dtype_size(job->by.dtype);
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, from = 0, table = 0;
        for (int i = job->rows.ndim - 1; i >= 0; rest /= job->rows.shape[i], i--) {
            from += rest % job->rows.shape[i] * job->x_strides[i];
            table += rest % job->rows.shape[i] * job->table_strides[i];
        }
        wg__rotate_row(&job->by, job->x + from * size, job->cos + table * size,
                       job->sin + table * size, job->y + row * job->by.width * size);
    }
}

static int rotary_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[X], *cos = &call->input_specs[COS];
    const int pairing = ((const rotary_options *)call->options)->pairing;
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtype(call, X, COS) < 0 ||
        wg__check_same_dtype(call, X, SIN) < 0)
        return -1;
    if (pairing != WG_ROTARY_HALVES && pairing != WG_ROTARY_ADJACENT)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "pairing %d; wanted WG_ROTARY_HALVES or WG_ROTARY_ADJACENT", pairing);
    if (!wg__same_shape(cos, &call->input_specs[SIN]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "cos and sin must have the same shape");
    if (x->ndim < 1 || cos->ndim < 1 || 2 * cos->shape[cos->ndim - 1] > x->shape[x->ndim - 1])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted x (..., T, D) and tables (..., T, P) with 2 P <= D");
    wg_spec rows = *x, tables = *cos, both;
    rows.ndim--;
    tables.ndim--;
    if (!wg__broadcast(&rows, &tables, &both) || !wg__same_shape(&rows, &both))
        return wg__op_fail(call, WG_ERROR_SHAPE, "the tables do not broadcast to x");
    return wg__infer_like(call);
}

/* x, or a copy of it, whose last axis is contiguous. */
static wg_tensor *with_dense_rows(wg_tensor *x) {
    return x->strides[x->spec.ndim - 1] == 1 ? x : wg_contiguous(x);
}

static int rotary_forward(wg_call *call) {
    wg_tensor *x = with_dense_rows(call->inputs[X]);
    wg_tensor *cos = wg_contiguous(call->inputs[COS]), *sin = wg_contiguous(call->inputs[SIN]);
    if (x == NULL || cos == NULL || sin == NULL)
        return -1;
    const wg_spec *tables = &cos->spec;
    rotary_job job = {.by = {.dtype = x->spec.dtype,
                             .pairing = ((const rotary_options *)call->options)->pairing,
                             .pairs = tables->shape[tables->ndim - 1],
                             .width = x->spec.shape[x->spec.ndim - 1]},
                      .rows = x->spec,
                      .x = wg__tensor_address(x),
                      .cos = wg__tensor_address(cos),
                      .sin = wg__tensor_address(sin),
                      .y = wg__tensor_address(call->outputs[0])};
    job.rows.ndim--;
    memcpy(job.x_strides, x->strides, sizeof job.x_strides);
    const int missing = x->spec.ndim - tables->ndim; /* axes that the tables do not have */
    for (int i = 0; i < job.rows.ndim; i++)
        job.table_strides[i] =
            i < missing || tables->shape[i - missing] == 1 ? 0 : cos->strides[i - missing];
    if (wg__spec_count(&x->spec) > 0)
        wg__parallel_for(wg__spec_count(&job.rows), WG__GRAIN / 2 / job.by.width + 1, rotate_rows,
                         &job);
    return 0;
}

static wg_tensor *rotate(wg_tensor *x, wg_tensor *cos, wg_tensor *sin, const void *options);

static int rotary_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[X] =
        rotate(cotangents[0], call->inputs[COS], wg_neg(call->inputs[SIN]), call->options);
    return wg__vjp_status();
}

static int rotary_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const rotary_options options[] = {{WG_ROTARY_HALVES}, {WG_ROTARY_ADJACENT}};
    static const int64_t x_shapes[][4] = {{2, 3, 4, 6}, {1, 2, 3, 7}};
    static const int64_t table_shapes[][4] = {{2, 1, 4, 3}, {1, 1, 3, 2}};
    if (index >= 4)
        return 0;
    const int64_t *shape = table_shapes[index / 2];
    wg_tensor *angles = wg_randn(generator, WG_F64, 4, shape);
    sample->options = &options[index % 2];
    sample->inputs[X] = wg_randn(generator, WG_F64, 4, x_shapes[index / 2]);
    sample->inputs[COS] = wg_affine(angles, 0.5, 0.25);
    sample->inputs[SIN] = wg_affine(angles, -0.25, 0.5);
    return wg__sample_status(sample, 3);
}

static int rotary_bench(wg_generator *generator, wg_sample *sample) {
    static const rotary_options halves = {WG_ROTARY_HALVES};
    sample->options = &halves;
    sample->inputs[X] = wg_rand(generator, WG_F32, 4, (int64_t[]){8, 8, 1024, 64});
    sample->inputs[COS] = wg_rand(generator, WG_F32, 2, (int64_t[]){1024, 32});
    sample->inputs[SIN] = wg_rand(generator, WG_F32, 2, (int64_t[]){1024, 32});
    return wg__sample_status(sample, 3);
}

static double rotary_flops(const wg_call *call) {
    return 3 * (double)wg__spec_count(&call->input_specs[X]);
}

static const wg_op rotary = {
    WG__OP("rotary", 3,
           "Pairs (a, b) of the last axis become (a cos - b sin, a sin + b cos). x: (..., T, D); "
           "cos, sin: (..., T, P), 2 P <= D, broadcast; elements beyond 2 P are copied. The tables "
           "have no gradient."),
    .options_size = sizeof(rotary_options),
    .saves_inputs = 1 << COS | 1 << SIN,
    .differentiable = 1 << X,
    .infer = rotary_infer,
    .forward = rotary_forward,
    .vjp = rotary_vjp,
    .jvp = wg_jvp_linear,
    .sample = rotary_sample,
    .bench = rotary_bench,
    .flops = rotary_flops,
    .batch = wg__batch_first_alone};

static wg_tensor *rotate(wg_tensor *x, wg_tensor *cos, wg_tensor *sin, const void *options) {
    return wg_apply_one(&rotary, 3, (wg_tensor *[]){x, cos, sin}, options);
}

/* bf16 is rotated in f32. */
wg_tensor *wg_rotary(wg_tensor *x, wg_tensor *cos, wg_tensor *sin, wg_rotary_pairing pairing) {
    const rotary_options options = {pairing};
    wg_scope scope;
    wg_scope_begin(&scope);
    if (x != NULL && x->spec.dtype == WG_BF16)
        return wg_scope_end(
            &scope,
            wg__narrow(rotate(wg__widen(x), wg__widen(cos), wg__widen(sin), &options), WG_BF16));
    return wg_scope_end(&scope, rotate(x, cos, sin, &options));
}

static const wg_op *const ops[] = {&rotary};

const wg__op_table wg__ops_rotary = {ops, sizeof ops / sizeof *ops};
