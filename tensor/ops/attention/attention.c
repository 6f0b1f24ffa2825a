/* Rotary positions, scaled dot-product attention, and the step that extends cached keys and values.
 * tiles.c has the kernels of attention. */
#include "tensor/ops/attention/attention.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/support.h"
#include "tensor/span.h"

#include <math.h>
#include <string.h>

/* ==== Rotary positions, RoPE   (Su, Lu, Pan, Murtadha, Wen & Liu 2021, arXiv:2104.09864, eq. 34)
 * ==== */

/* ---- rotary: each pair (a, b) of the last axis becomes (a cos - b sin, a sin + b cos).
 *
 *     halves      | a0 a1 .. | b0 b1 .. | copied |      GPT-NeoX, Hugging Face's LLaMA
 *     adjacent    | a0 b0 a1 b1 ..      | copied |      the paper, Meta's LLaMA
 *
 * The vjp rotates g by the negative angle: dx = rotary(g, cos, -sin). The options are the pairing,
 * an int. ---- */

enum { X, COS, SIN };

typedef struct rotation {
    wg_dtype dtype; /* f32 or f64 */
    wg_rotary_pairing pairing;
    int64_t pairs, width; /* P and D; elements beyond 2 P are copied */
} rotation;

#define ROTATE_ROW(NAME, TYPE)                                                                     \
    static void NAME(const rotation *by, const TYPE *restrict x, const TYPE *restrict cos,         \
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

/* y = x rotated by a row of each table. x and y are (D) and do not overlap; cos and sin are (P). */
static void rotate_row(const rotation *by, const void *x, const void *cos, const void *sin,
                       void *y) {
    if (by->dtype == WG_F32)
        rotate_f32(by, x, cos, sin, y);
    else
        rotate_f64(by, x, cos, sin, y);
}

typedef struct rotary_job {
    rotation by;
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
        rotate_row(&job->by, job->x + from * size, job->cos + table * size, job->sin + table * size,
                   job->y + row * job->by.width * size);
    }
}

static int rotary_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[X], *cos = &call->input_specs[COS];
    const int pairing = *(const int *)call->options;
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtypes(call, 3) < 0)
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

static int rotary_forward(wg_call *call) {
    wg_tensor *x = call->inputs[X];
    if (x->strides[x->spec.ndim - 1] != 1)
        x = wg_contiguous(x);
    wg_tensor *cos = wg_contiguous(call->inputs[COS]), *sin = wg_contiguous(call->inputs[SIN]);
    if (!x || !cos || !sin)
        return -1;
    const wg_spec *tables = &cos->spec;
    rotary_job job = {.by = {.dtype = x->spec.dtype,
                             .pairing = *(const int *)call->options,
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

WG__VJP(rotary,
        wg_apply_one(call->op, 3, (wg_tensor *[]){g, call->inputs[COS], wg_neg(call->inputs[SIN])},
                     call->options))

WG__EXAMPLES(rotary, int, (wg__sample_normal), {WG_ROTARY_HALVES, "2 3 4 6, 2 1 4 3, 2 1 4 3"},
             {WG_ROTARY_ADJACENT, "2 3 4 6, 2 1 4 3, 2 1 4 3"},
             {WG_ROTARY_HALVES, "1 2 3 7, 1 1 3 2, 1 1 3 2"},
             {WG_ROTARY_ADJACENT, "1 2 3 7, 1 1 3 2, 1 1 3 2"})
WG__LARGE(rotary, int, "8 8 1024 64, 1024 32, 1024 32", WG_ROTARY_HALVES)

static double rotary_flops(const wg_call *call) {
    return 3 * (double)wg__spec_count(&call->input_specs[X]);
}

static const wg_op rotary = {
    WG__OP("rotary", 3,
           "Pairs (a, b) of the last axis become (a cos - b sin, a sin + b cos). x: (..., T, D); "
           "cos, sin: (..., T, P), 2 P <= D, broadcast; elements beyond 2 P are copied. The tables "
           "have no gradient."),
    .options_size = sizeof(int),
    .saves_inputs = 1 << COS | 1 << SIN,
    .differentiable = 1 << X,
    WG__FUNCTIONS(rotary),
    .jvp = wg_jvp_linear,
    .flops = rotary_flops,
    .batch = wg__batch_first_alone};

/* bf16 is rotated in f32. */
wg_tensor *wg_rotary(wg_tensor *x, wg_tensor *cos, wg_tensor *sin, wg_rotary_pairing pairing) {
    const wg_dtype dtype = wg_tensor_dtype(x);
    wg_tensor *inputs[] = {x, cos, sin};
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < 3 && dtype == WG_BF16; i++)
        inputs[i] = wg__widen(inputs[i]);
    wg_tensor *y = wg_apply_one(&rotary, 3, inputs, &(int){pairing});
    return wg_scope_end(&scope, wg__narrow(y, dtype));
}

/* ==== Attention ==== */

static int attention_infer(wg_call *call) {
    const wg_attention_options *options = call->options;
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtypes(call, 3) < 0)
        return -1;
    if (q->ndim != 4 || k->ndim != 4 || !wg__same_shape(k, &call->input_specs[2]))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted (B, H, Tq, D) x (B, Hkv, Tk, D) x (B, Hkv, Tk, D)");
    if (q->shape[0] != k->shape[0] || q->shape[3] != k->shape[3])
        return wg__op_fail(call, WG_ERROR_SHAPE, "queries and keys differ in B or D");
    if (q->shape[1] != k->shape[1] && (k->shape[1] == 0 || q->shape[1] % k->shape[1] != 0))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "%lld query heads are not a multiple of %lld key heads",
                           (long long)q->shape[1], (long long)k->shape[1]);
    if (!(options->dropout >= 0 && options->dropout < 1))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "dropout %g; wanted 0 <= dropout < 1",
                           options->dropout);
    if (options->window < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "a window of %lld positions; wanted 1 or more, or 0 for no window",
                           (long long)options->window);
    call->output_specs[0] = *q;
    const wg_spec *mask = &call->input_specs[3];
    if (call->input_count < 4 || mask->ndim < 0)
        return 0;
    wg_spec scores = *q, both;
    scores.shape[3] = k->shape[2];
    if (mask->dtype != WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "the mask must be bool");
    if (!wg__broadcast(&scores, mask, &both) || !wg__same_shape(&scores, &both))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the mask does not broadcast to the scores (%lld, %lld, %lld, %lld)",
                           (long long)scores.shape[0], (long long)scores.shape[1],
                           (long long)scores.shape[2], (long long)scores.shape[3]);
    return 0;
}

static wg__heads heads_of(const wg_tensor *x) {
    const int64_t size = (int64_t)wg_dtype_size(x->spec.dtype);
    return (wg__heads){wg__tensor_address(x), x->strides[0] * size, x->strides[1] * size,
                       x->strides[2], x->strides[3]};
}

/* A tensor (B, H, T, D) whose memory is (B, T, H, D), so that merging its heads copies nothing. */
static wg_tensor *new_heads(const wg_spec *spec) {
    wg_spec memory = *spec;
    memory.shape[1] = spec->shape[2];
    memory.shape[2] = spec->shape[1];
    wg_tensor *x = wg__tensor_new(&memory);
    if (!x)
        return NULL;
    int64_t strides[] = {x->strides[0], x->strides[2], x->strides[1], x->strides[3]};
    return wg__tensor_view(x, spec, strides, 0);
}

/* Attention in mixed precision: queries, keys and values are rounded to bf16 and saved in bf16.
 * Products are computed in f32. */
static const wg_op attention_bf16;

/* Describes a call to the kernels. `rounds` rounds queries, keys and values to bf16: forward does
 * so in mixed precision; the inputs that backward reads were rounded when they were saved. */
static int set_job(wg__attention *job, const wg_call *call, bool rounds) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    *job = (wg__attention){.dtype = q->dtype,
                           .size = (int64_t)wg_dtype_size(q->dtype),
                           .options = *(const wg_attention_options *)call->options,
                           .batch = q->shape[0],
                           .query_heads = q->shape[1],
                           .key_heads = k->shape[1],
                           .queries = q->shape[2],
                           .keys = k->shape[2],
                           .width = q->shape[3]};
    wg__heads *operands[] = {&job->q, &job->k, &job->v};
    for (int i = 0; i < 3; i++) {
        wg_tensor *x = call->inputs[i];
        if (rounds) {
            const bool recording = wg_set_grad_enabled(false);
            x = wg_cast(wg_cast(x, WG_BF16), WG_F32);
            wg_set_grad_enabled(recording);
        }
        if (!x || !(x = wg__gemm_operand(x)))
            return -1;
        *operands[i] = heads_of(x);
    }
    const wg_tensor *mask = wg__input_at(call, 3);
    if (mask) {
        wg_spec scores = *q;
        scores.shape[3] = job->keys;
        job->mask = wg__tensor_address(mask);
        wg__broadcast_strides(mask, &scores, job->mask_strides);
    }
    return 0;
}

static int attention_forward(wg_call *call) {
    wg__attention job;
    call->outputs[0] = new_heads(&call->output_specs[0]);
    if (!call->outputs[0] || set_job(&job, call, call->op == &attention_bf16) < 0)
        return -1;
    job.out = heads_of(call->outputs[0]);
    if (call->wants) {
        call->saved[0] = wg_empty(job.dtype, 3, call->input_specs[0].shape);
        if (!call->saved[0])
            return -1;
        job.log_sums = wg__tensor_address(call->saved[0]);
    }
    return wg__attention_run(&job);
}

static int attention_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg__attention job;
    wg_tensor *g = wg__gemm_operand(cotangents[0]);
    if (!g || set_job(&job, call, false) < 0)
        return -1;
    job.out = heads_of(g);
    job.log_sums = wg__tensor_address(call->saved[0]);
    wg__heads *targets[] = {&job.dq, &job.dk, &job.dv};
    for (int i = 0; i < 3; i++) {
        if (!wg__wants(call, i))
            continue;
        gradients[i] = new_heads(&call->input_specs[i]);
        if (!gradients[i])
            return -1;
        *targets[i] = heads_of(gradients[i]);
    }
    return wg__attention_differentiate(&job);
}

/* ---- The decomposition into primitives ---- */

/* Repeats each head of keys or values for the query heads that share it. */
static wg_tensor *repeat_heads(wg_tensor *x, int64_t query_heads) {
    const int64_t *shape = x->spec.shape;
    if (shape[1] == query_heads)
        return x;
    int64_t group = query_heads / shape[1];
    int64_t wide[] = {shape[0], shape[1], group, shape[2], shape[3]};
    int64_t flat[] = {shape[0], query_heads, shape[2], shape[3]};
    return wg_reshape(wg_expand(wg_unsqueeze(x, 2), 5, wide), 4, flat);
}

/* Query i has the position i + Tk - Tq, as the last Tq keys do. */
wg_tensor *wg__attention_visible(const wg_attention_options *options, int64_t queries,
                                 int64_t keys) {
    const bool windowed = options->window > 0 && options->window < queries + keys;
    if (!options->causal && !windowed)
        return NULL;
    const int64_t diagonal = keys - queries;
    wg_tensor *seen =
        wg_tri(WG_BOOL, queries, keys, diagonal + (options->causal ? 0 : options->window));
    return windowed ? wg_triu(seen, diagonal - options->window) : seen;
}

static int attention_decompose(wg_call *call) {
    wg__attention job;
    if (set_job(&job, call, false) < 0)
        return -1;
    wg_tensor *k = repeat_heads(call->inputs[1], job.query_heads);
    wg_tensor *v = repeat_heads(call->inputs[2], job.query_heads);
    wg_tensor *scores = wg_matmul(call->inputs[0], wg_transpose(k, -2, -1));
    scores = wg_mul_scalar(scores, job.options.scale);
    wg_tensor *mask = wg__input_at(call, 3);
    if (mask)
        scores = wg_masked_fill(scores, wg_logical_not(mask), -INFINITY);
    wg_tensor *seen = wg__attention_visible(&job.options, job.queries, job.keys);
    if (seen)
        scores = wg_masked_fill(scores, wg_logical_not(seen), -INFINITY);
    wg_tensor *weights = wg_softmax(scores, -1);
    if (job.options.dropout > 0) { /* the factors of the kernels */
        const int64_t shape[] = {job.batch, job.query_heads, job.queries, job.keys};
        wg_tensor *factors = wg_empty(job.dtype, 4, shape);
        char *data = wg_tensor_data(factors);
        for (int64_t i = 0; factors && i < shape[0] * shape[1] * shape[2]; i++)
            wg__attention_draw(&job, i, 0, job.keys, data + i * job.keys * job.size);
        weights = wg_mul(weights, factors);
    }
    return wg__set_output(call, wg_matmul(weights, v));
}

static double attention_flops(const wg_call *call) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    return 4 * (double)wg__spec_count(q) * (double)k->shape[2];
}

static wg_tensor *sample_mask(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_gt(wg_rand(generator, WG_F64, ndim, shape), wg_scalar(WG_F64, 0.3));
}

WG__EXAMPLES(attention, wg_attention_options,
             (wg__sample_normal, wg__sample_normal, wg__sample_normal, sample_mask),
             {{.scale = 0.7}, "2 2 3 2, 2 2 3 2, 2 2 3 2"},
             {{.scale = 0.7}, "2 2 2 2, 2 2 3 2, 2 2 3 2, 2 1 1 3"},
             {{.scale = 0.7, .causal = true}, "1 4 3 2, 1 2 3 2, 1 2 3 2"},
             {{.scale = 0.5, .causal = true}, "1 2 3 2, 1 1 4 2, 1 1 4 2, 3 4"},
             {{.scale = 0.5, .dropout = 0.4, .seed = 3, .offset = 1}, "1 2 3 2, 1 2 4 2, 1 2 4 2"},
             {{.scale = 0.5, .causal = true}, "1 1 4 2, 1 1 2 2, 1 1 2 2"}, /* two see no key */
             {{.scale = 0.2, .window = 1}, "1 2 5 2, 1 1 5 2, 1 1 5 2"},
             {{.scale = 0.2, .causal = true, .window = 2}, "1 2 3 2, 1 2 6 2, 1 2 6 2, 1 1 3 6"},
             {{.scale = 0.2, .dropout = 0.4, .seed = 3, .window = 2},
              "1 1 4 2, 1 1 70 2, 1 1 70 2"})
WG__LARGE_BY(attention, wg_attention_options, (wg__sample_normal_f32),
             "4 8 512 64, 4 8 512 64, 4 8 512 64", .scale = 0.125)

#define ATTENTION(NAME)                                                                            \
    WG__OP_OF(                                                                                     \
        NAME, 3, 4, 1,                                                                             \
        "softmax(scale q k^T) v for each head: (B, H, Tq, D) x (B, Hkv, Tk, D) x (B, Hkv, Tk, "    \
        "D), and a bool mask -> (B, H, Tq, D). Rows that may attend to nothing give zeros. "       \
        "Fused."),                                                                                 \
        .options_size = sizeof(wg_attention_options), .saves_inputs = 15, .differentiable = 7,     \
        .places_outputs = true, WG__FUNCTIONS(attention), .decompose = attention_decompose,        \
        .flops = attention_flops

static const wg_op attention = {ATTENTION("attention")};
static const wg_op attention_bf16 = {ATTENTION("attention_bf16"), .saves_rounded = 7};

wg_tensor *wg_attention(wg_tensor *q, wg_tensor *k, wg_tensor *v, wg_tensor *mask,
                        const wg_attention_options *options) {
    wg_tensor *inputs[] = {q, k, v, mask};
    wg_dtype dtype;
    if (!k || !v || !wg__widen_all(3, inputs, &dtype))
        return NULL;
    wg_attention_options resolved = options ? *options : (wg_attention_options){0};
    if (q->spec.ndim > 0)
        resolved.scale =
            wg__option(resolved.scale, 1 / sqrt((double)q->spec.shape[q->spec.ndim - 1]));
    wg_tensor *y;
    const bool rounds = inputs[0]->spec.dtype == WG_F32 && wg__matmul_dtype() == WG_BF16;
    wg_apply(rounds ? &attention_bf16 : &attention, mask ? 4 : 3, inputs, &resolved, &y);
    return wg__narrow(y, dtype);
}

/* ==== The step ==== */

/* Whether x has this dtype, and neither a gradient nor a tangent. */
static bool is_plain(const wg_tensor *x, wg_dtype dtype) {
    return x && x->spec.dtype == dtype && !x->node && !x->tangents;
}

bool wg__attention_step_suits(const wg__attention_step *step, int64_t seen) {
    const wg_tensor *cos = step->cos, *sin = step->sin, *mask = step->mask;
    if (!step->q || step->q->spec.ndim != 3 ||
        (step->q->spec.dtype != WG_F32 && step->q->spec.dtype != WG_F64))
        return false;
    const wg_spec *q = &step->q->spec;
    const wg_spec scores = {
        q->dtype, 4, {q->shape[0], step->heads, q->shape[1], seen + q->shape[1]}};
    const int64_t head_width = q->shape[2] / step->heads;
    const bool pairs = step->pairing == WG_ROTARY_HALVES || step->pairing == WG_ROTARY_ADJACENT;
    wg_spec both;

    /* Tables are both present or both absent: contiguous (T, P) or (B, 1, T, P). */
    if ((cos == NULL) != (sin == NULL) ||
        (cos && (!pairs || !wg__same_shape(&cos->spec, &sin->spec))))
        return false;
    const wg_tensor *const tables[] = {cos, sin};
    for (int i = 0; i < 2 && cos; i++) {
        const wg_spec *table = &tables[i]->spec;
        const bool shared = table->ndim == 2 && table->shape[0] == q->shape[1];
        const bool batched = table->ndim == 4 && table->shape[0] == q->shape[0] &&
                             table->shape[1] == 1 && table->shape[2] == q->shape[1];
        if (!is_plain(tables[i], q->dtype) || !(shared || batched) ||
            2 * table->shape[table->ndim - 1] > head_width || !wg_tensor_is_contiguous(tables[i]))
            return false;
    }
    if (mask && (mask->spec.dtype != WG_BOOL || !wg__broadcast(&scores, &mask->spec, &both) ||
                 !wg__same_shape(&scores, &both)))
        return false;

    /* Projections have contiguous rows: (B, T, H D) or (B, T, Hkv D). */
    const wg_tensor *const projections[] = {step->q, step->k, step->v};
    for (int i = 0; i < 3; i++) {
        const wg_tensor *x = projections[i];
        const int64_t heads = i == 0 ? step->heads : step->key_heads;
        if (!is_plain(x, q->dtype) || x->spec.ndim != 3 || x->spec.shape[0] != q->shape[0] ||
            x->spec.shape[1] != q->shape[1] || x->spec.shape[2] != heads * head_width ||
            x->strides[2] != 1 || x->strides[0] < 0 || x->strides[1] < 0)
            return false;
    }
    return wg__spec_count(q) > 0 && step->heads % step->key_heads == 0 &&
           step->options.dropout >= 0 && step->options.dropout < 1;
}

typedef struct step_job {
    const wg__attention_step *step;
    rotation rotation; /* without pairs: no rotation */
    int64_t size, positions, seen;
    int64_t table_strides[2]; /* of a sequence, and of a position */
    wg_tensor *keys, *values; /* the cache; both have the same strides */
    char *rotated;            /* (B, T, H D), the rotated queries */
} step_job;

/* Stores the rotated keys and the values of new positions in the cache, and rotates the queries. */
static void store_positions(int64_t begin, int64_t end, void *context) {
    const step_job *j = context;
    const wg__attention_step *step = j->step;
    const wg_tensor *const projections[] = {step->q, step->k, step->v};
    const int64_t bytes = j->rotation.width * j->size, *strides = j->keys->strides;
    char *keys = wg__tensor_address(j->keys), *values = wg__tensor_address(j->values);
    for (int64_t i = begin; i < end; i++) {
        const int64_t b = i / j->positions, t = i % j->positions;
        const int64_t table = (b * j->table_strides[0] + t * j->table_strides[1]) * j->size;
        const char *cos = step->cos ? (char *)wg__tensor_address(step->cos) + table : NULL;
        const char *sin = step->cos ? (char *)wg__tensor_address(step->sin) + table : NULL;
        const char *rows[3]; /* of q, k and v */
        for (int n = 0; n < 3; n++) {
            const wg_tensor *x = projections[n];
            rows[n] =
                (char *)wg__tensor_address(x) + (b * x->strides[0] + t * x->strides[1]) * j->size;
        }
        for (int64_t h = 0; h < step->key_heads; h++) {
            const char *key = rows[1] + h * bytes;
            const int64_t place =
                (b * strides[0] + h * strides[1] + (j->seen + t) * strides[2]) * j->size;
            memcpy(values + place, rows[2] + h * bytes, (size_t)bytes);
            if (cos)
                rotate_row(&j->rotation, key, cos, sin, keys + place);
            else
                memcpy(keys + place, key, (size_t)bytes);
        }
        for (int64_t h = 0; cos && h < step->heads; h++)
            rotate_row(&j->rotation, rows[0] + h * bytes, cos, sin,
                       j->rotated + (i * step->heads + h) * bytes);
    }
}

static int attend(const step_job *j, wg_tensor *out) {
    const wg__attention_step *step = j->step;
    const wg_spec *q = &step->q->spec;
    const int64_t width = j->rotation.width;
    wg__attention at = {.dtype = q->dtype,
                        .size = j->size,
                        .options = step->options,
                        .batch = q->shape[0],
                        .query_heads = step->heads,
                        .key_heads = step->key_heads,
                        .queries = j->positions,
                        .keys = j->seen + j->positions,
                        .width = width,
                        .q = {wg__tensor_address(step->q), step->q->strides[0] * j->size,
                              width * j->size, step->q->strides[1], 1},
                        .k = heads_of(j->keys),
                        .v = heads_of(j->values),
                        .out = {wg__tensor_address(out), out->strides[0] * j->size, width * j->size,
                                out->strides[1], 1}};
    if (step->cos) {
        at.q = at.out;
        at.q.data = j->rotated;
    }
    at.options.scale = wg__option(at.options.scale, 1 / sqrt((double)width));
    if (step->mask) {
        const wg_spec scores = {q->dtype, 4, {at.batch, at.query_heads, at.queries, at.keys}};
        at.mask = wg__tensor_address(step->mask);
        wg__broadcast_strides(step->mask, &scores, at.mask_strides);
    }
    return wg__attention_run(&at);
}

wg_tensor *wg__attention_step_run(const wg__attention_step *step, wg_tensor *keys,
                                  wg_tensor *values, int64_t seen) {
    const wg_spec *q = &step->q->spec;
    wg_tensor *out = wg__tensor_new(q);
    if (!out)
        return NULL;
    wg__span span;
    wg__span_begin(&span, "attention", WG_PROFILE_FORWARD);
    step_job j = {.step = step,
                  .rotation = {q->dtype, step->pairing, 0, q->shape[2] / step->heads},
                  .size = (int64_t)wg_dtype_size(q->dtype),
                  .positions = q->shape[1],
                  .seen = seen,
                  .keys = keys,
                  .values = values};
    if (step->cos) {
        const wg_spec *table = &step->cos->spec;
        j.rotation.pairs = table->shape[table->ndim - 1];
        j.table_strides[0] = table->ndim == 4 ? step->cos->strides[0] : 0;
        j.table_strides[1] = step->cos->strides[table->ndim - 2];
        j.rotated = wg__alloc_array(wg__spec_count(q), (size_t)j.size);
    }
    int status = step->cos && !j.rotated ? -1 : 0;
    if (status == 0) {
        const int64_t numbers = (step->heads + 2 * step->key_heads) * j.rotation.width;
        wg__parallel_for(q->shape[0] * j.positions, 1 + WG__GRAIN / numbers, store_positions, &j);
        wg_tensor_touch(keys);
        wg_tensor_touch(values);
        status = attend(&j, out);
    }
    wg__free(j.rotated);
    if (span.taken) {
        const double part = (double)(seen + j.positions) / (double)keys->spec.shape[2];
        wg_tensor *const rooms[] = {keys, values};
        wg__span_close(&span, 2 * wg__bytes_of(1, &step->q) + part * wg__bytes_of(2, rooms), 1, q);
    }
    return status < 0 ? NULL : out;
}

const wg__op_table wg__ops_attention = WG__OP_TABLE(&attention, &rotary);
