/* Dropout: a mask that is never stored. Element i is decided by word i of draw `offset` under
 * `seed`, so backward is the same op on the cotangent. */
#include "tensor/iter.h"
#include "tensor/ops.h"
#include "tensor/ops/registry.h"
#include "tensor/simd/simd.h"

typedef struct dropout_options {
    double p;
    uint64_t seed, offset;
} dropout_options;

typedef struct dropout_job {
    const dropout_options *options;
    wg_dtype dtype;
    const char *x;
    char *y;
    int64_t count;
} dropout_job;

enum { GROUPS_AT_ONCE = 16, WORDS_AT_ONCE = GROUPS_AT_ONCE * WG__RANDOM_GROUP };

static void drop_groups(int64_t begin, int64_t end, void *context) {
    const dropout_job *job = context;
    const wg__simd *simd = wg__simd_for(job->dtype);
    uint32_t words[WORDS_AT_ONCE], limit = (uint32_t)(job->options->p * 0x1p32);
    double scale = 1 / (1 - job->options->p);
    for (int64_t group = begin; group < end; group += GROUPS_AT_ONCE) {
        int64_t groups = end - group < GROUPS_AT_ONCE ? end - group : GROUPS_AT_ONCE;
        int64_t first = group * WG__RANDOM_GROUP, n = groups * WG__RANDOM_GROUP;
        if (n > job->count - first)
            n = job->count - first;
        simd->random_words(job->options->seed, job->options->offset, (uint64_t)group, groups,
                           words);
        int64_t at = first * (int64_t)wg_dtype_size(job->dtype);
        simd->drop_below(n, words, limit, scale, job->x + at, job->y + at);
    }
}

static int dropout_infer(wg_call *call) {
    wg_dtype dtype = call->input_specs[0].dtype;
    if (dtype != WG_F32 && dtype != WG_F64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32 or f64; cast it");
    call->output_specs[0] = call->input_specs[0];
    return 0;
}

static int dropout_forward(wg_call *call) {
    wg_tensor *x = wg_contiguous(call->inputs[0]);
    if (!x)
        return -1;
    int64_t count = wg_tensor_count(x);
    dropout_job job = {.options = call->options,
                       .dtype = wg_tensor_dtype(x),
                       .x = wg_tensor_data(x),
                       .y = wg_tensor_data(call->outputs[0]),
                       .count = count};
    wg__parallel_for((count + WG__RANDOM_GROUP - 1) / WG__RANDOM_GROUP,
                     WG__GRAIN / WG__RANDOM_GROUP, drop_groups, &job);
    return 0;
}

static int dropout_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const dropout_options *options = call->options;
    gradients[0] = wg_dropout_op(cotangents[0], options->p, options->seed, options->offset);
    return gradients[0] ? 0 : -1;
}

static int dropout_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const dropout_options options[] = {{0.1, 3, 0}, {0.5, 3, 1}, {0, 3, 2}};
    static const int64_t shapes[][2] = {{3, 5}, {2, 70}, {4, 1}};
    if (index >= 3)
        return 0;
    sample->input_count = 1;
    sample->inputs[0] = wg_randn(generator, WG_F64, 2, shapes[index]);
    sample->options = &options[index];
    return sample->inputs[0] ? 1 : -1;
}

static int dropout_bench(wg_generator *generator, wg_sample *sample) {
    static const dropout_options options = {0.1, 3, 0};
    sample->options = &options;
    sample->input_count = 1;
    sample->inputs[0] = wg_rand(generator, WG_F32, 1, (int64_t[]){1 << 22});
    return sample->inputs[0] ? 1 : -1;
}

static const wg_op dropout = {
    .name = "dropout",
    .doc = "y = 0 with probability p, else x / (1 - p); the mask is a function of (seed, offset)",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(dropout_options),
    .differentiable = 1,
    .infer = dropout_infer,
    .forward = dropout_forward,
    .vjp = dropout_vjp,
    .jvp = wg_jvp_linear,
    .sample = dropout_sample,
    .bench = dropout_bench,
};

wg_tensor *wg_dropout_op(wg_tensor *x, double p, uint64_t seed, uint64_t offset) {
    if (!x)
        return NULL;
    if (!(p >= 0 && p < 1)) {
        wg_fail(WG_ERROR_ARGUMENT, "dropout", "probability %g; wanted 0 <= p < 1", p);
        return NULL;
    }
    if (wg_tensor_dtype(x) == WG_BF16)
        return wg_cast(wg_dropout_op(wg_cast(x, WG_F32), p, seed, offset), WG_BF16);
    dropout_options options = {p, seed, offset};
    return wg_apply_one(&dropout, 1, &x, &options);
}

static const wg_op *const ops[] = {&dropout};
const wg__op_family wg__family_dropout = {ops, sizeof ops / sizeof *ops};
