/* Scaled dot-product attention: the fused op, and the step that extends cached keys and values.
 * tiles.c has the kernels. */
#include "tensor/internal.h"
#include "tensor/ops/attention/attention.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"
#include "tensor/span.h"

#include <math.h>
#include <string.h>

/* ---- Shapes ---- */

static bool has_mask(const wg_call *call) {
    return call->input_count > 3 && call->input_specs[3].ndim >= 0;
}

static int check_mask(wg_call *call) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    const wg_spec *mask = &call->input_specs[3];
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

static int attention_infer(wg_call *call) {
    const wg_attention_options *options = call->options;
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtype(call, 0, 1) < 0 ||
        wg__check_same_dtype(call, 0, 2) < 0)
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
    return has_mask(call) ? check_mask(call) : 0;
}

static wg__heads heads_of(const wg_tensor *x) {
    int64_t size = (int64_t)wg_dtype_size(x->spec.dtype);
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

/* The op of mixed precision, whose queries, keys and values are rounded to bf16 and saved so. Its
 * products are those of f32. */
static const wg_op attention_bf16;

/* A query, key or value as the kernels read it: in mixed precision forward rounds it, and backward
 * finds it rounded. */
static wg_tensor *operand_of(const wg_call *call, int i, bool rounds) {
    wg_tensor *x = call->inputs[i];
    if (rounds) {
        const bool recording = wg_set_grad_enabled(false);
        x = wg_cast(wg_cast(x, WG_BF16), WG_F32);
        wg_set_grad_enabled(recording);
    }
    return x ? wg__gemm_operand(x) : NULL;
}

static int set_job(wg__attention *job, const wg_call *call, bool rounds) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    memset(job, 0, sizeof *job);
    job->dtype = q->dtype;
    job->size = (int64_t)wg_dtype_size(q->dtype);
    job->options = *(const wg_attention_options *)call->options;
    job->batch = q->shape[0];
    job->query_heads = q->shape[1];
    job->key_heads = k->shape[1];
    job->queries = q->shape[2];
    job->keys = k->shape[2];
    job->width = q->shape[3];
    wg__heads *operands[] = {&job->q, &job->k, &job->v};
    for (int i = 0; i < 3; i++) {
        wg_tensor *x = operand_of(call, i, rounds);
        if (!x)
            return -1;
        *operands[i] = heads_of(x);
    }
    if (has_mask(call)) {
        wg_spec scores = *q;
        scores.shape[3] = job->keys;
        job->mask = wg__tensor_address(call->inputs[3]);
        wg__broadcast_strides(call->inputs[3], &scores, job->mask_strides);
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

/* Query i stands at position i + Tk - Tq of the keys. */
wg_tensor *wg__attention_visible(const wg_attention_options *options, int64_t queries,
                                 int64_t keys) {
    const bool windowed = options->window > 0 && options->window < queries + keys;
    if (!options->causal && !windowed)
        return NULL;
    const int64_t own = keys - queries, ahead = options->causal ? 0 : options->window;
    wg_tensor *seen = wg_tri(WG_BOOL, queries, keys, own + ahead);
    return windowed ? wg_triu(seen, own - options->window) : seen;
}

/* The dropout factors of the weights, the same as those of the kernels. */
static wg_tensor *dropout_factors(const wg__attention *job) {
    int64_t shape[] = {job->batch, job->query_heads, job->queries, job->keys};
    wg_tensor *factors = wg_empty(job->dtype, 4, shape);
    if (!factors)
        return NULL;
    char *data = wg__tensor_address(factors);
    for (int64_t query = 0; query < shape[0] * shape[1] * shape[2]; query++)
        wg__attention_draw(job, query, 0, job->keys, data + query * job->keys * job->size);
    return factors;
}

static int attention_decompose(wg_call *call) {
    wg__attention job;
    if (set_job(&job, call, false) < 0)
        return -1;
    wg_tensor *k = repeat_heads(call->inputs[1], job.query_heads);
    wg_tensor *v = repeat_heads(call->inputs[2], job.query_heads);
    wg_tensor *scores = wg_matmul(call->inputs[0], wg_transpose(k, -2, -1));
    scores = wg_mul_scalar(scores, job.options.scale);
    if (has_mask(call))
        scores = wg_masked_fill(scores, wg_logical_not(call->inputs[3]), -INFINITY);
    if (job.options.causal || job.options.window > 0) {
        wg_tensor *seen = wg__attention_visible(&job.options, job.queries, job.keys);
        if (seen)
            scores = wg_masked_fill(scores, wg_logical_not(seen), -INFINITY);
    }
    wg_tensor *weights = wg_softmax(scores, -1);
    if (job.options.dropout > 0)
        weights = wg_mul(weights, dropout_factors(&job));
    return wg__set_output(call, wg_matmul(weights, v));
}

/* ---- The record ---- */

static double attention_flops(const wg_call *call) {
    const wg_spec *q = &call->input_specs[0], *k = &call->input_specs[1];
    return 4 * (double)wg__spec_count(q) * (double)k->shape[2];
}

static int attention_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const struct {
        int64_t b, h, hkv, tq, tk, d;
        int mask_ndim;
        int64_t mask_shape[4];
        wg_attention_options options;
    } cases[] = {
        {2, 2, 2, 3, 3, 2, 0, {0}, {.scale = 0.7}},
        {2, 2, 2, 2, 3, 2, 4, {2, 1, 1, 3}, {.scale = 0.7}},
        {1, 4, 2, 3, 3, 2, 0, {0}, {.scale = 0.7, .causal = true}},
        {1, 2, 1, 3, 4, 2, 2, {3, 4}, {.scale = 0.5, .causal = true}},
        {1, 2, 2, 3, 4, 2, 0, {0}, {.scale = 0.5, .dropout = 0.4, .seed = 3, .offset = 1}},
        {1, 1, 1, 4, 2, 2, 0, {0}, {.scale = 0.5, .causal = true}}, /* two queries see no key */
        {1, 2, 1, 5, 5, 2, 0, {0}, {.scale = 0.2, .window = 1}},
        {1, 2, 2, 3, 6, 2, 4, {1, 1, 3, 6}, {.scale = 0.2, .causal = true, .window = 2}},
        {1, 1, 1, 4, 70, 2, 0, {0}, {.scale = 0.2, .dropout = 0.4, .seed = 3, .window = 2}},
    };
    if (index >= (int)(sizeof cases / sizeof *cases))
        return 0;
    sample->options = &cases[index].options;
    int64_t q[] = {cases[index].b, cases[index].h, cases[index].tq, cases[index].d};
    int64_t k[] = {cases[index].b, cases[index].hkv, cases[index].tk, cases[index].d};
    sample->inputs[0] = wg__sample_normal(generator, 4, q);
    sample->inputs[1] = wg__sample_normal(generator, 4, k);
    sample->inputs[2] = wg__sample_normal(generator, 4, k);
    if (cases[index].mask_ndim == 0)
        return wg__sample_status(sample, 3);
    wg_tensor *noise = wg_rand(generator, WG_F64, cases[index].mask_ndim, cases[index].mask_shape);
    sample->inputs[3] = wg_gt(noise, wg_scalar(WG_F64, 0.3));
    return wg__sample_status(sample, 4);
}

static int attention_bench(wg_generator *generator, wg_sample *sample) {
    static const wg_attention_options options = {.scale = 0.125};
    for (int i = 0; i < 3; i++)
        sample->inputs[i] = wg_randn(generator, WG_F32, 4, (int64_t[]){4, 8, 512, 64});
    sample->options = &options;
    return wg__sample_status(sample, 3);
}

#define ATTENTION(NAME)                                                                            \
    WG__OP_OF(                                                                                     \
        NAME, 3, 4, 1,                                                                             \
        "softmax(scale q k^T) v for each head: (B, H, Tq, D) x (B, Hkv, Tk, D) x (B, Hkv, Tk, "    \
        "D), and a bool mask -> (B, H, Tq, D). Rows that may attend to nothing give zeros. "       \
        "Fused."),                                                                                 \
        .options_size = sizeof(wg_attention_options), .saves_inputs = 15, .differentiable = 7,     \
        .places_outputs = true, .infer = attention_infer, .forward = attention_forward,            \
        .vjp = attention_vjp, .decompose = attention_decompose, .sample = attention_sample,        \
        .bench = attention_bench, .flops = attention_flops

static const wg_op attention = {ATTENTION("attention")};
static const wg_op attention_bf16 = {ATTENTION("attention_bf16"), .saves_rounded = 7};

wg_tensor *wg_attention(wg_tensor *q, wg_tensor *k, wg_tensor *v, wg_tensor *mask,
                        const wg_attention_options *options) {
    wg_tensor *inputs[] = {q, k, v, mask};
    if (!k || !v || !wg__promote_all(3, inputs))
        return NULL;
    wg_dtype dtype = inputs[0]->spec.dtype;
    for (int i = 0; i < 3; i++)
        inputs[i] = wg__widen(inputs[i]);
    wg_attention_options resolved = options ? *options : (wg_attention_options){0};
    if (resolved.scale == 0 && q->spec.ndim > 0)
        resolved.scale = 1 / sqrt((double)q->spec.shape[q->spec.ndim - 1]);
    wg_tensor *y;
    const bool rounds =
        inputs[0] && inputs[0]->spec.dtype == WG_F32 && wg__matmul_dtype() == WG_BF16;
    wg_apply(rounds ? &attention_bf16 : &attention, mask ? 4 : 3, inputs, &resolved, &y);
    return wg__narrow(y, dtype);
}

/* ==== The step ==== */

/* ---- What the step supports ---- */

static bool is_plain(const wg_tensor *x, wg_dtype dtype) {
    return x && x->spec.dtype == dtype && !x->node && !x->tangents;
}

static bool is_dense_table(const wg_tensor *table, const wg_spec *q, int64_t head_width) {
    const wg_spec *spec = &table->spec;
    const bool of_all = spec->ndim == 2 && spec->shape[0] == q->shape[1],
               of_each = spec->ndim == 4 && spec->shape[0] == q->shape[0] && spec->shape[1] == 1 &&
                         spec->shape[2] == q->shape[1];
    return (of_all || of_each) && 2 * spec->shape[spec->ndim - 1] <= head_width &&
           wg_tensor_is_contiguous(table);
}

static bool tables_suit(const wg__attention_step *step, int64_t head_width) {
    const wg_spec *q = &step->q->spec;
    if (!step->cos)
        return !step->sin;
    return is_plain(step->cos, q->dtype) && is_plain(step->sin, q->dtype) &&
           wg__same_shape(&step->cos->spec, &step->sin->spec) &&
           is_dense_table(step->cos, q, head_width) && is_dense_table(step->sin, q, head_width) &&
           (step->pairing == WG_ROTARY_HALVES || step->pairing == WG_ROTARY_ADJACENT);
}

static wg_spec scores_of(const wg__attention_step *step, int64_t seen) {
    const wg_spec *q = &step->q->spec;
    return (wg_spec){q->dtype, 4, {q->shape[0], step->heads, q->shape[1], seen + q->shape[1]}};
}

static bool mask_suits(const wg__attention_step *step, int64_t seen) {
    if (!step->mask)
        return true;
    const wg_spec scores = scores_of(step, seen);
    wg_spec both;
    return step->mask->spec.dtype == WG_BOOL && wg__broadcast(&scores, &step->mask->spec, &both) &&
           wg__same_shape(&scores, &both);
}

/* Whether x has the shape (B, T, width) of a projection, with contiguous rows. */
static bool is_projection(const wg_tensor *x, const wg_spec *q, int64_t width) {
    return is_plain(x, q->dtype) && x->spec.ndim == 3 && x->spec.shape[0] == q->shape[0] &&
           x->spec.shape[1] == q->shape[1] && x->spec.shape[2] == width && x->strides[2] == 1 &&
           x->strides[0] >= 0 && x->strides[1] >= 0;
}

bool wg__attention_step_suits(const wg__attention_step *step, int64_t seen) {
    if (!step->q || step->q->spec.ndim != 3 ||
        (step->q->spec.dtype != WG_F32 && step->q->spec.dtype != WG_F64))
        return false;
    const wg_spec *q = &step->q->spec;
    const int64_t head_width = q->shape[2] / step->heads;
    return wg__spec_count(q) > 0 && is_projection(step->q, q, step->heads * head_width) &&
           is_projection(step->k, q, step->key_heads * head_width) &&
           is_projection(step->v, q, step->key_heads * head_width) &&
           step->heads % step->key_heads == 0 && tables_suit(step, head_width) &&
           mask_suits(step, seen) && step->options.dropout >= 0 && step->options.dropout < 1;
}

/* ---- Storing the new keys and values ---- */

typedef struct step_job {
    const wg__attention_step *step;
    wg__rotation rotation; /* without pairs: no rotation */
    int64_t size, positions, seen;
    int64_t table_strides[2]; /* of a sequence, and of a position */
    wg_tensor *keys, *values;
    char *rotated; /* (B, T, H D), the rotated queries */
} step_job;

static char *row_at(const wg_tensor *x, int64_t size, int64_t b, int64_t t) {
    return (char *)wg__tensor_address(x) + (b * x->strides[0] + t * x->strides[1]) * size;
}

static char *place_in(const wg_tensor *room, const step_job *j, int64_t b, int64_t h, int64_t t) {
    return (char *)wg__tensor_address(room) +
           (b * room->strides[0] + h * room->strides[1] + (j->seen + t) * room->strides[2]) *
               j->size;
}

static void rotate_row(const step_job *j, int64_t b, int64_t t, const char *from, char *to) {
    const int64_t table = (b * j->table_strides[0] + t * j->table_strides[1]) * j->size;
    wg__rotate_row(&j->rotation, from, (char *)wg__tensor_address(j->step->cos) + table,
                   (char *)wg__tensor_address(j->step->sin) + table, to);
}

static void place_position(const step_job *j, int64_t b, int64_t t) {
    const wg__attention_step *step = j->step;
    const int64_t bytes = j->rotation.width * j->size;
    const char *q = row_at(step->q, j->size, b, t), *k = row_at(step->k, j->size, b, t),
               *v = row_at(step->v, j->size, b, t);
    char *rotated = j->rotated + (b * j->positions + t) * step->heads * bytes;
    for (int64_t h = 0; h < step->key_heads; h++) {
        char *key = place_in(j->keys, j, b, h, t);
        memcpy(place_in(j->values, j, b, h, t), v + h * bytes, (size_t)bytes);
        if (step->cos)
            rotate_row(j, b, t, k + h * bytes, key);
        else
            memcpy(key, k + h * bytes, (size_t)bytes);
    }
    for (int64_t h = 0; step->cos && h < step->heads; h++)
        rotate_row(j, b, t, q + h * bytes, rotated + h * bytes);
}

static void place_positions(int64_t begin, int64_t end, void *context) {
    const step_job *j = context;
    for (int64_t i = begin; i < end; i++)
        place_position(j, i / j->positions, i % j->positions);
}

static step_job job_of(const wg__attention_step *step, wg_tensor *keys, wg_tensor *values,
                       int64_t seen) {
    const wg_spec *q = &step->q->spec;
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
    }
    return j;
}

/* ---- Attention ---- */

/* (B, T, H D) as heads. */
static wg__heads side_by_side(const wg_tensor *x, int64_t size, int64_t head_width) {
    return (wg__heads){wg__tensor_address(x), x->strides[0] * size, head_width * size,
                       x->strides[1], 1};
}

static wg__heads heads_in_room(const wg_tensor *room, int64_t size) {
    return (wg__heads){wg__tensor_address(room), room->strides[0] * size, room->strides[1] * size,
                       room->strides[2], 1};
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
                        .q = side_by_side(step->q, j->size, width),
                        .k = heads_in_room(j->keys, j->size),
                        .v = heads_in_room(j->values, j->size),
                        .out = side_by_side(out, j->size, width)};
    if (step->cos) {
        at.q = at.out;
        at.q.data = j->rotated;
    }
    if (at.options.scale == 0)
        at.options.scale = 1 / sqrt((double)width);
    if (step->mask) {
        const wg_spec scores = scores_of(step, j->seen);
        at.mask = wg__tensor_address(step->mask);
        wg__broadcast_strides(step->mask, &scores, at.mask_strides);
    }
    return wg__attention_run(&at);
}

static int run_step(step_job *j, wg_tensor *out) {
    const wg_spec *q = &j->step->q->spec;
    const int64_t bytes = wg__spec_count(q) * j->size, width = j->rotation.width,
                  numbers = (j->step->heads + 2 * j->step->key_heads) * width;
    j->rotated = j->step->cos ? wg__alloc((size_t)bytes) : NULL;
    if (j->step->cos && !j->rotated)
        return -1;
    wg__parallel_for(q->shape[0] * j->positions, 1 + WG__GRAIN / numbers, place_positions, j);
    wg_tensor_touch(j->keys);
    wg_tensor_touch(j->values);
    const int status = attend(j, out);
    wg__free(j->rotated);
    return status;
}

wg_tensor *wg__attention_step_run(const wg__attention_step *step, wg_tensor *keys,
                                  wg_tensor *values, int64_t seen) {
    wg_tensor *out = wg__tensor_new(&step->q->spec);
    if (!out)
        return NULL;
    wg__span span;
    wg__span_begin(&span, "attention", WG_PROFILE_FORWARD);
    step_job j = job_of(step, keys, values, seen);
    const int status = run_step(&j, out);
    if (span.taken) {
        const double part = (double)(seen + j.positions) / (double)keys->spec.shape[2];
        wg_tensor *const rooms[] = {keys, values};
        wg__span_close(&span, 2 * wg__bytes_of(1, &step->q) + part * wg__bytes_of(2, rooms), 1,
                       &step->q->spec);
    }
    return status < 0 ? NULL : out;
}

static const wg_op *const ops[] = {&attention};

const wg__op_table wg__ops_attention = {ops, sizeof ops / sizeof *ops};
