/* Where, how often, and in front of what: ops whose results are indices. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/index/indexing.h"

#include <string.h>

/* ---- nonzero: the coordinates of the elements that are not 0, in row-major order.
 *
 * The elements are cut into chunks; these count first, so that each knows where its own begin. ----
 */

typedef struct nonzero_work {
    const uint8_t *truth;
    const wg_spec *spec;
    int64_t *counts; /* by chunk; then the sums before them */
    int64_t *found;
} nonzero_work;

static void count_chunk(int64_t begin, int64_t end, void *context) {
    nonzero_work *work = context;
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++)
        count += work->truth[i];
    work->counts[begin / WG__GRAIN] = count;
}

/* Places are gathered some at a time, without a branch on what is random. */
static void write_chunk(int64_t begin, int64_t end, void *context) {
    enum { BLOCK = 256 };
    const nonzero_work *work = context;
    const int ndim = work->spec->ndim;
    int64_t *to = work->found + work->counts[begin / WG__GRAIN] * ndim;
    for (; begin < end; begin += BLOCK) {
        int64_t places[BLOCK], count = 0;
        for (int64_t i = begin; i < end && i < begin + BLOCK; i++) {
            places[count] = i;
            count += work->truth[i];
        }
        for (int64_t k = 0; k < count; k++, to += ndim)
            for (int d = ndim - 1; d >= 0; places[k] /= work->spec->shape[d], d--)
                to[d] = d > 0 ? places[k] % work->spec->shape[d] : places[k];
    }
}

/* Counts become sums of those before; returns the sum of all. */
static int64_t sum_up(int64_t count, int64_t *counts) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t own = counts[i];
        counts[i] = sum;
        sum += own;
    }
    return sum;
}

/* How many there are is not known before they are counted. */
static int nonzero_infer(wg_call *call) {
    const int64_t shape[] = {0, call->input_specs[0].ndim};
    return wg__spec_make(&call->output_specs[0], WG_I64, 2, shape, call->op->name);
}

static int nonzero_forward(wg_call *call) {
    wg_tensor *truth = wg_contiguous(wg_cast(call->inputs[0], WG_BOOL));
    if (truth == NULL)
        return -1;
    const int64_t size = wg__spec_count(&truth->spec);
    const int64_t chunks = (size + WG__GRAIN - 1) / WG__GRAIN;
    nonzero_work work = {.truth = wg__tensor_address(truth),
                         .spec = &truth->spec,
                         .counts = wg__alloc((size_t)(chunks + 1) * sizeof(int64_t))};
    if (work.counts == NULL)
        return -1;
    wg__parallel_for(size, WG__GRAIN, count_chunk, &work);
    call->output_specs[0].shape[0] = sum_up(chunks, work.counts);
    call->outputs[0] = wg__tensor_new(&call->output_specs[0]);
    if (call->outputs[0] != NULL) {
        work.found = wg__tensor_address(call->outputs[0]);
        wg__parallel_for(size, WG__GRAIN, write_chunk, &work);
    }
    wg__free(work.counts);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int nonzero_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const int ndims[] = {2, 0, 1, 3};
    if (index >= 4)
        return 0;
    wg_tensor *x = wg_randint(generator, -1, 2, ndims[index], (int64_t[]){3, 4, 2});
    sample->inputs[0] = wg_cast(x, WG_F64);
    return wg__sample_status(sample, 1);
}

static int nonzero_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_cast(wg_randint(generator, 0, 2, 2, (int64_t[]){2048, 2048}), WG_F32);
    return wg__sample_status(sample, 1);
}

static const wg_op nonzero = {
    .name = "nonzero",
    .doc = "x (...) -> (count, rank of x), i64: the coordinates of each element that is not 0, in "
           "row-major order.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .no_gradient = "its results are indices",
    .places_outputs = true,
    .infer = nonzero_infer,
    .forward = nonzero_forward,
    .sample = nonzero_sample,
    .bench = nonzero_bench,
};

wg_tensor *wg_nonzero(wg_tensor *x) {
    return wg_apply_one(&nonzero, 1, &x, NULL);
}

/* ---- bincount: how often each number from 0 on is there, or the sum of its weights. ---- */

typedef struct bincount_options {
    int64_t min_length;
} bincount_options;

static int bincount_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *weights = &call->input_specs[1];
    if (wg__check_is_index(call, 0) < 0)
        return -1;
    if (x->ndim != 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted x of rank 1; flatten it");
    if (call->input_count > 1 && weights->ndim >= 0 && !wg__same_shape(x, weights))
        return wg__op_fail(call, WG_ERROR_SHAPE, "x and its weights must have one shape");
    if (((const bincount_options *)call->options)->min_length < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "min_length is negative");
    return 0;
}

/* Weights that are no floats add up in f64, as NumPy's. */
static wg_tensor *bin_weights(wg_tensor *x, wg_tensor *weights) {
    if (weights == NULL)
        return wg_ones_like(x);
    return wg_dtype_is_float(weights->spec.dtype) ? weights : wg_cast(weights, WG_F64);
}

static int bincount_decompose(wg_call *call) {
    const int64_t min_length = ((const bincount_options *)call->options)->min_length;
    wg_tensor *x = call->inputs[0];
    int64_t length = min_length;
    if (wg_tensor_count(x) > 0) {
        wg_tensor *lowest = wg_min(x, 0, NULL, false), *highest = wg_max(x, 0, NULL, false);
        if (lowest == NULL || highest == NULL)
            return -1;
        const int64_t low = *(const int64_t *)wg__tensor_address(lowest);
        const int64_t high = *(const int64_t *)wg__tensor_address(highest);
        if (low < 0)
            return wg__op_fail(call, WG_ERROR_INDEX, "%lld is negative; wanted numbers from 0 on",
                               (long long)low);
        length = high >= min_length ? high + 1 : min_length;
    }
    wg_tensor *weights = bin_weights(x, call->input_count > 1 ? call->inputs[1] : NULL);
    if (weights == NULL)
        return -1;
    call->outputs[0] = wg_scatter_add(wg_zeros(weights->spec.dtype, 1, &length), 0, x, weights);
    return call->outputs[0] == NULL ? -1 : 0;
}

static int bincount_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const bincount_options options[] = {{0}, {9}, {0}};
    static const int64_t sizes[] = {7, 5, 0};
    if (index >= 3)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg_randint(generator, 0, 4, 1, &sizes[index]);
    sample->inputs[1] = wg__sample_normal(generator, 1, &sizes[index]);
    return wg__sample_status(sample, 2);
}

static const wg_op bincount = {
    .name = "bincount",
    .doc = "x (n) -> (max(x) + 1, or min_length if that is more): how often each number is in x "
           "(i64), or the sum of its weights (n). x has no gradient.",
    .min_inputs = 1,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(bincount_options),
    .differentiable = 2,
    .infer = bincount_infer,
    .decompose = bincount_decompose,
    .sample = bincount_sample,
};

wg_tensor *wg_bincount(wg_tensor *x, wg_tensor *weights, int64_t min_length) {
    if (wg_error_pending() != NULL) /* NULL weights may be a failure */
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *const inputs[] = {wg__index_as_i64(x), weights};
    return wg_scope_end(&scope,
                        wg_apply_one(&bincount, 2, inputs, &(bincount_options){min_length}));
}

/* ---- searchsorted: in front of which element of a sorted row a value belongs. ---- */

typedef struct search_options {
    bool right;
} search_options;

typedef struct search_work {
    const char *sorted, *values;
    int64_t *found;
    int64_t length;         /* of a sorted row */
    int64_t values_per_row; /* 0: one row serves all */
    bool right;
} search_work;

/* NaN stands behind all numbers, as sort puts it. */
#define SEARCH(NAME, TYPE)                                                                         \
    static inline int64_t NAME##_in(const TYPE *sorted, int64_t length, TYPE value, bool right) {  \
        const TYPE *from = sorted;                                                                 \
        for (int64_t rest = length; rest > 0;) { /* no branch on what is random */                 \
            const int64_t half = (rest + 1) / 2;                                                   \
            const TYPE at = from[half - 1];                                                        \
            const bool behind = right ? !((value < at) | ((at != at) & (value == value)))          \
                                      : (at < value) | ((value != value) & (at == at));            \
            from += half * behind;                                                                 \
            rest = rest == 1 ? 0 : rest - half;                                                    \
        }                                                                                          \
        return from - sorted;                                                                      \
    }                                                                                              \
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const search_work *w = context;                                                            \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const int64_t row = w->values_per_row ? i / w->values_per_row : 0;                     \
            w->found[i] = NAME##_in((const TYPE *)w->sorted + row * w->length, w->length,          \
                                    ((const TYPE *)w->values)[i], w->right);                       \
        }                                                                                          \
    }

SEARCH(search_f32, float)
SEARCH(search_f64, double)
SEARCH(search_i32, int32_t)
SEARCH(search_i64, int64_t)
SEARCH(search_u8, uint8_t)

static int search_infer(wg_call *call) {
    const wg_spec *sorted = &call->input_specs[0], *values = &call->input_specs[1];
    if (sorted->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted sorted elements of rank 1 or more");
    if (sorted->dtype == WG_BOOL || sorted->dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s is not searched; cast the operands",
                           wg_dtype_name(sorted->dtype));
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    bool fits = sorted->ndim == 1 || sorted->ndim == values->ndim;
    for (int i = 0; fits && i < sorted->ndim - 1; i++)
        fits = sorted->shape[i] == values->shape[i];
    if (!fits)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted sorted elements of rank 1, or all axes but the last as those "
                           "of the values");
    call->output_specs[0] = *values;
    call->output_specs[0].dtype = WG_I64;
    return 0;
}

static int search_forward(wg_call *call) {
    static const wg__range_body bodies[WG_DTYPE_COUNT] = {[WG_F32] = search_f32,
                                                          [WG_F64] = search_f64,
                                                          [WG_I32] = search_i32,
                                                          [WG_I64] = search_i64,
                                                          [WG_U8] = search_u8};
    wg_tensor *sorted = wg_contiguous(call->inputs[0]), *values = wg_contiguous(call->inputs[1]);
    if (sorted == NULL || values == NULL)
        return -1;
    const wg_spec *s = &sorted->spec, *v = &values->spec;
    search_work work = {.sorted = wg__tensor_address(sorted),
                        .values = wg__tensor_address(values),
                        .found = wg__tensor_address(call->outputs[0]),
                        .length = s->shape[s->ndim - 1],
                        .values_per_row = s->ndim > 1 ? v->shape[v->ndim - 1] : 0,
                        .right = ((const search_options *)call->options)->right};
    wg__parallel_for(wg__spec_count(v), WG__GRAIN / 16, bodies[s->dtype], &work);
    return 0;
}

static int search_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const search_options sides[] = {{false}, {true}};
    static const int ndims[][2] = {{1, 2}, {1, 0}, {2, 2}};
    if (index >= 6)
        return 0;
    const int *ndim = ndims[index / 2];
    sample->options = &sides[index % 2];
    wg_tensor *line = wg_arange(WG_F64, -2, 2, 1);
    sample->inputs[0] =
        wg_contiguous(wg_expand(line, ndim[0], ndim[0] == 1 ? (int64_t[]){4} : (int64_t[]){3, 4}));
    sample->inputs[1] = wg__sample_normal(generator, ndim[1], (int64_t[]){3, 2});
    return wg__sample_status(sample, 2);
}

static int search_bench(wg_generator *generator, wg_sample *sample) {
    static const search_options left = {false};
    sample->options = &left;
    sample->inputs[0] = wg_arange(WG_F32, 0, 1, 0x1p-16);
    sample->inputs[1] = wg_rand(generator, WG_F32, 1, (int64_t[]){1 << 22});
    return wg__sample_status(sample, 2);
}

static const wg_op searchsorted = {
    .name = "searchsorted",
    .doc = "sorted (n), or (..., n), and values (...) -> i64 like values: how many elements of the "
           "sorted row are less than the value, or (right) not greater.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(search_options),
    .no_gradient = "its results are indices",
    .infer = search_infer,
    .forward = search_forward,
    .sample = search_sample,
    .bench = search_bench,
};

wg_tensor *wg_searchsorted(wg_tensor *sorted, wg_tensor *values, bool right) {
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote(&sorted, &values)) {
        if (sorted->spec.dtype == WG_BF16) {
            sorted = wg_cast(sorted, WG_F32);
            values = wg_cast(values, WG_F32);
        }
        y = wg_apply_one(&searchsorted, 2, (wg_tensor *[]){sorted, values},
                         &(search_options){right});
    }
    return wg_scope_end(&scope, y);
}

static const wg_op *const ops[] = {&nonzero, &bincount, &searchsorted};

const wg__op_family wg__family_nonzero = {ops, sizeof ops / sizeof *ops};
