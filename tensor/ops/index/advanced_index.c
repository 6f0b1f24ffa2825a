/* Indexing by several tensors at once and by masks, as NumPy's advanced indexing; and ops whose
 * results are indices: nonzero, bincount, searchsorted. */
#include "tensor/ops/index/indexing.h"
#include "tensor/ops/support.h"

#include <string.h>

/* ---- nonzero: the coordinates of the elements that are not 0, in row-major order.
 *
 * A first pass counts the nonzero elements of each chunk. The sums of the counts are the offsets of
 * the chunks' coordinates in the result. ---- */

typedef struct nonzero_work {
    const uint8_t *truth;
    const wg_spec *spec;
    int64_t *counts; /* by chunk; later the number of nonzero elements before the chunk */
    int64_t *found;
} nonzero_work;

static void count_chunk(int64_t begin, int64_t end, void *context) {
    nonzero_work *work = context;
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++)
        count += work->truth[i];
    work->counts[begin / WG__GRAIN] = count;
}

/* Collects the positions of a block without a branch on the data. */
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

/* The number of nonzero elements is known only after counting. */
static int nonzero_infer(wg_call *call) {
    const int64_t shape[] = {0, call->input_specs[0].ndim};
    return wg__spec_make(&call->output_specs[0], WG_I64, 2, shape, call->op->name);
}

static int nonzero_forward(wg_call *call) {
    wg_tensor *truth = wg_contiguous(wg_cast(call->inputs[0], WG_BOOL));
    if (truth == NULL)
        return -1;
    const int64_t size = wg__spec_count(&truth->spec);
    const int64_t chunks = wg__ceil_divide(size, WG__GRAIN);
    nonzero_work work = {.truth = wg__tensor_address(truth),
                         .spec = &truth->spec,
                         .counts = wg__alloc_array(chunks + 1, sizeof(int64_t))};
    if (work.counts == NULL)
        return -1;
    wg__parallel_for(size, WG__GRAIN, count_chunk, &work);
    int64_t found = 0;
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t count = work.counts[i];
        work.counts[i] = found;
        found += count;
    }
    call->output_specs[0].shape[0] = found;
    call->outputs[0] = wg__tensor_new(&call->output_specs[0]);
    if (call->outputs[0] != NULL) {
        work.found = wg__tensor_address(call->outputs[0]);
        wg__parallel_for(size, WG__GRAIN, write_chunk, &work);
    }
    wg__free(work.counts);
    return call->outputs[0] == NULL ? -1 : 0;
}

WG__SHAPES(nonzero, (wg__sample_coarse), "3 4", "", "3", "3 4 2")

static int nonzero_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_cast(wg_randint(generator, 0, 2, 2, (int64_t[]){2048, 2048}), WG_F32);
    return wg__sample_status(sample, 1);
}

static const wg_op nonzero = {
    WG__OP("nonzero", 1,
           "x (...) -> (count, rank of x), i64: the coordinates of each element that is not 0, in "
           "row-major order."),
    .no_gradient = "its results are indices",
    .places_outputs = true,
    .infer = nonzero_infer,
    .forward = nonzero_forward,
    .sample = nonzero_sample,
    .bench = nonzero_bench};

wg_tensor *wg_nonzero(wg_tensor *x) {
    return wg_apply_one(&nonzero, 1, &x, NULL);
}

/* Counts even and odd positions in two arrays: equal neighbours then do not wait for each other's
 * store. */
static int count_numbers(const wg_tensor *x, wg_tensor *counts) {
    enum { MOST_BINS = 1 << 14 };
    const int64_t *number = wg__tensor_address(x), n = x->spec.shape[0];
    const int64_t bins = counts->spec.shape[0];
    int64_t *count = wg__tensor_address(counts), i = 0;
    if (n > bins && bins <= MOST_BINS) {
        int64_t *other = wg__alloc_array(bins, sizeof *other);
        if (other == NULL)
            return -1;
        memset(other, 0, (size_t)bins * sizeof *other);
        for (; i + 1 < n; i += 2) {
            count[number[i]]++;
            other[number[i + 1]]++;
        }
        for (int64_t k = 0; k < bins; k++)
            count[k] += other[k];
        wg__free(other);
    }
    for (; i < n; i++)
        count[number[i]]++;
    return 0;
}

/* Sums integer weights in f64, as NumPy does. Compares the size of the counts with the available
 * memory: the system may grant an allocation that it cannot back once it is written. */
static int bincount_decompose(wg_call *call) {
    enum { FEW = 1 << 24 };
    const int64_t min_length = *(const int64_t *)call->options;
    wg_tensor *weights = call->input_count > 1 ? call->inputs[1] : NULL;
    if (wg__check_is_index(call, 0) < 0)
        return -1;
    if (call->input_specs[0].ndim != 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted x of rank 1; flatten it");
    if (weights && !wg__same_shape(&call->input_specs[0], &call->input_specs[1]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "x and its weights must have one shape");
    if (min_length < 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "min_length is negative");
    wg_tensor *x = wg_contiguous(call->inputs[0]);
    if (x == NULL || wg__check_memory(x, "bincount") < 0)
        return -1;
    const int64_t *number = wg__tensor_address(x);
    int64_t low = 0, high = min_length - 1;
    for (int64_t i = 0; i < x->spec.shape[0]; i++) {
        low = wg__smaller(low, number[i]);
        high = wg__larger(high, number[i]);
    }
    if (low < 0)
        return wg__op_fail(call, WG_ERROR_INDEX, "%lld is negative; wanted numbers from 0 on",
                           (long long)low);
    const double needed = 16.0 * ((double)high + 1); /* zeros, and their sums with the weights */
    const double available = high < FEW ? needed : (double)wg__memory_available();
    if (high == INT64_MAX || needed > available)
        return wg__op_fail(call, WG_ERROR_MEMORY,
                           "the largest number is %lld, and counts up to it want %.3g bytes, where "
                           "%.3g are there",
                           (long long)high, needed, available);
    const int64_t length = high + 1;
    const wg_dtype dtype = !weights                                 ? WG_I64
                           : wg_dtype_is_float(weights->spec.dtype) ? weights->spec.dtype
                                                                    : WG_F64;
    wg_tensor *sums = wg_zeros(dtype, 1, &length);
    if (weights)
        return wg__set_output(call, wg_scatter_add(sums, 0, x, wg_cast(weights, dtype)));
    return sums == NULL || count_numbers(x, sums) < 0 ? -1 : wg__set_output(call, sums);
}

WG__EXAMPLES(bincount, int64_t, (wg__sample_normal), {0, "7 <4, 7"}, {9, "5 <4, 5"}, {0, "0 <4, 0"})

static const wg_op bincount = {
    WG__OP_OF("bincount", 1, 2, 1,
              "x (n) -> (max(x) + 1, or min_length if that is more): how often each number is in x "
              "(i64), or the sum of its weights (n). x has no gradient."),
    .options_size = sizeof(int64_t), .differentiable = 2, WG__COMPOSED(bincount)};

wg_tensor *wg_bincount(wg_tensor *x, wg_tensor *weights, int64_t min_length) {
    if (wg_error_pending() != NULL) /* NULL weights may come from a failed call */
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *const inputs[] = {wg__index_as_i64(x), weights};
    return wg_scope_end(&scope, wg_apply_one(&bincount, 2, inputs, &min_length));
}

typedef struct search_work {
    const char *sorted, *values;
    int64_t *found;
    int64_t length;         /* of a sorted row */
    int64_t values_per_row; /* 0: one row serves all */
    bool right;
} search_work;

/* NaN comes after all numbers, as in sort. */
#define SEARCH(NAME, TYPE)                                                                         \
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const search_work *w = context;                                                            \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const int64_t row = w->values_per_row ? i / w->values_per_row : 0;                     \
            const TYPE *sorted = (const TYPE *)w->sorted + row * w->length, *from = sorted;        \
            const TYPE value = ((const TYPE *)w->values)[i];                                       \
            for (int64_t rest = w->length; rest > 0;) { /* without a branch on the data */         \
                const int64_t half = (rest + 1) / 2;                                               \
                const TYPE at = from[half - 1];                                                    \
                const bool behind = w->right ? !((value < at) | ((at != at) & (value == value)))   \
                                             : (at < value) | ((value != value) & (at == at));     \
                from += half * behind;                                                             \
                rest = rest == 1 ? 0 : rest - half;                                                \
            }                                                                                      \
            w->found[i] = from - sorted;                                                           \
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
                        .right = *(const bool *)call->options};
    wg__parallel_for(wg__spec_count(v), WG__GRAIN / 16, bodies[s->dtype], &work);
    return 0;
}

static int search_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const bool sides[] = {false, true};
    static const int ndims[][2] = {{1, 2}, {1, 0}, {2, 2}};
    if (index >= 6)
        return 0;
    const int *ndim = ndims[index / 2];
    sample->options = &sides[index % 2];
    const int64_t sorted[] = {3, 4};
    wg_tensor *line = wg_arange(WG_F64, -2, 2, 1);
    sample->inputs[0] = wg_contiguous(wg_expand(line, ndim[0], sorted + 2 - ndim[0]));
    sample->inputs[1] = wg__sample_normal(generator, ndim[1], (int64_t[]){3, 2});
    return wg__sample_status(sample, 2);
}

static int search_bench(wg_generator *generator, wg_sample *sample) {
    static const bool left = false;
    sample->options = &left;
    sample->inputs[0] = wg_arange(WG_F32, 0, 1, 0x1p-16);
    sample->inputs[1] = wg_rand(generator, WG_F32, 1, (int64_t[]){1 << 22});
    return wg__sample_status(sample, 2);
}

static const wg_op searchsorted = {
    WG__OP("searchsorted", 2,
           "sorted (n), or (..., n), and values (...) -> i64 like values: how many elements of the "
           "sorted row are less than the value, or (right) not greater."),
    .options_size = sizeof(bool),
    .no_gradient = "its results are indices",
    .infer = search_infer,
    .forward = search_forward,
    .sample = search_sample,
    .bench = search_bench};

wg_tensor *wg_searchsorted(wg_tensor *sorted, wg_tensor *values, bool right) {
    wg_tensor *const inputs[] = {sorted, values};
    return values ? wg__apply_wide_one(&searchsorted, 2, inputs, false, &right) : NULL;
}

/* ==== Advanced indexing, composed of other ops:
 *
 *     x  --permute-->  (indexed axes, rest)  --reshape-->  (P, R)  --rows at (N)-->  (N, R)
 *
 * The index tensors are broadcast against each other to N elements. Each element is one of the P
 * row numbers. ==== */

#define MAX_INDICES 6 /* index tensors of a call; a mask may cover several axes */

/* The index tensors of a call, resolved. */
typedef struct plan {
    int ndim;                   /* of x */
    wg_tensor *at[WG_MAX_DIMS]; /* the index of each axis of x, not negative; NULL: all */
    int64_t order[WG_MAX_DIMS]; /* the axes of x, indexed axes first */
    int indexed;                /* the number of indexed axes */
    int front;                  /* the number of unindexed axes before the result of the indices */
    wg_spec places;             /* the broadcast shape of the indices */
    int64_t place_count, row_count, row; /* N, P and R */
} plan;

/* Resolves the indices of a call. A mask becomes the coordinates of its true elements. */
static int resolve_indices(const wg_call *call, plan *plan, int first, int count) {
    const wg_spec *x = &call->input_specs[0];
    int axis = 0;
    for (int k = 0; k < count; k++) {
        wg_tensor *index = call->inputs[first + k];
        const bool is_mask = index != NULL && index->spec.dtype == WG_BOOL;
        const int covered = is_mask ? index->spec.ndim : 1;
        if (is_mask && covered == 0)
            return wg__op_fail(call, WG_ERROR_SHAPE, "a mask of rank 0 chooses no axis");
        if (axis + covered > plan->ndim)
            return wg__op_fail(call, WG_ERROR_SHAPE, "indices of more axes than x has, which is %d",
                               plan->ndim);
        for (int i = 0; is_mask && i < covered; i++)
            if (index->spec.shape[i] != x->shape[axis + i])
                return wg__op_fail(
                    call, WG_ERROR_SHAPE,
                    "a mask has size %lld where axis %d of x has %lld; wanted the same",
                    (long long)index->spec.shape[i], axis + i, (long long)x->shape[axis + i]);
        wg_tensor *coordinates = is_mask ? wg_nonzero(index) : NULL;
        if (index != NULL && !is_mask && index->spec.dtype != WG_I64 && index->spec.dtype != WG_I32)
            return wg__op_fail(call, WG_ERROR_DTYPE, "indices are i64, i32 or bool, not %s",
                               wg_dtype_name(index->spec.dtype));
        for (int i = 0; index != NULL && i < covered; i++, axis++) {
            plan->at[axis] = is_mask ? wg_select(coordinates, 1, i)
                                     : wg__index_from_front(call, index, axis, x->shape[axis]);
            if (!plan->at[axis])
                return -1;
        }
        axis += index == NULL;
    }
    return 0;
}

/* The result of adjacent indices replaces the indexed axes. If a full slice separates the indices,
 * their result comes first, as in NumPy. */
static int plan_make(const wg_call *call, int first, int count, plan *plan) {
    const wg_spec *x = &call->input_specs[0];
    *plan = (struct plan){.ndim = x->ndim, .places = {.dtype = WG_I64}, .row_count = 1, .row = 1};
    if (resolve_indices(call, plan, first, count) < 0)
        return -1;
    int last = -1, unindexed = 0;
    bool adjacent = true;
    for (int i = 0; i < plan->ndim; i++) {
        const wg_spec so_far = plan->places;
        if (plan->at[i] == NULL)
            continue;
        if (!wg__broadcast(&so_far, &plan->at[i]->spec, &plan->places)) {
            char a[160], b[160];
            return wg__op_fail(call, WG_ERROR_SHAPE, "indices of %s and %s do not broadcast",
                               wg_spec_text(a, sizeof a, &so_far),
                               wg_spec_text(b, sizeof b, &plan->at[i]->spec));
        }
        adjacent &= last < 0 || last == i - 1;
        last = i;
        plan->order[plan->indexed++] = i;
    }
    for (int i = 0; i < plan->ndim; i++)
        if (plan->at[i] == NULL)
            plan->order[plan->indexed + unindexed++] = i;
    plan->front = adjacent && plan->indexed > 0 ? (int)plan->order[0] : 0;
    if (plan->places.ndim + plan->ndim - plan->indexed > WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the result would have rank %d; at most %d",
                           plan->places.ndim + plan->ndim - plan->indexed, WG_MAX_DIMS);
    for (int i = 0; i < plan->ndim; i++)
        *(i < plan->indexed ? &plan->row_count : &plan->row) *= x->shape[plan->order[i]];
    plan->place_count = wg__spec_count(&plan->places);
    return 0;
}

/* The indices (N) of rows of the (P, R): row-major numbers over the indexed axes. */
static wg_tensor *row_numbers(const wg_call *call, const plan *plan) {
    wg_tensor *sum = NULL;
    for (int i = 0; i < plan->indexed; i++) {
        const int axis = (int)plan->order[i];
        if (sum != NULL)
            sum = wg_mul_scalar(sum, (double)call->input_specs[0].shape[axis]);
        sum = sum == NULL ? plan->at[axis] : wg_add(sum, plan->at[axis]);
        if (sum == NULL)
            return NULL;
    }
    sum = wg_expand(sum, plan->places.ndim, plan->places.shape);
    return wg_reshape(sum, 1, &plan->place_count);
}

/* The shape (places, rest), and the permutation from it to a result, (front, places, rest).
 * Returns the rank. */
static int placed_shape(const wg_call *call, const plan *plan, int64_t *shape, int64_t *order) {
    const int places = plan->places.ndim;
    int ndim = places;
    memcpy(shape, plan->places.shape, (size_t)ndim * sizeof *shape);
    for (int i = plan->indexed; i < plan->ndim; i++)
        shape[ndim++] = call->input_specs[0].shape[plan->order[i]];
    for (int i = 0; i < ndim; i++)
        order[i] = i < plan->front ? places + i : i < plan->front + places ? i - plan->front : i;
    return ndim;
}

/* ---- index: y = x[indices].   dx = g, added at the indices. ---- */

static int index_decompose(wg_call *call) {
    plan plan;
    if (plan_make(call, 1, call->input_count - 1, &plan) < 0)
        return -1;
    if (plan.indexed == 0)
        return wg__set_output(call, wg_alias(call->inputs[0]));
    int64_t shape[2 * WG_MAX_DIMS], order[2 * WG_MAX_DIMS];
    const int ndim = placed_shape(call, &plan, shape, order);
    wg_tensor *rows = wg_reshape(wg_permute(call->inputs[0], plan.ndim, plan.order), 2,
                                 (int64_t[]){plan.row_count, plan.row});
    rows = wg_index_select(rows, 0, row_numbers(call, &plan));
    return wg__set_output(call, wg_permute(wg_reshape(rows, ndim, shape), ndim, order));
}

/* Broadcast pairs of indices, masks over two axes and one axis, a slice between indices, a scalar,
 * an empty index. */
static int index_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const int counts[] = {3, 2, 2, 4, 3, 2};
    if (index >= 6)
        return 0;
    wg_tensor **in = sample->inputs;
    in[0] = wg__sample_normal(generator, 3, (int64_t[]){3, 4, 2});
    wg_tensor *mask = wg__sample_truth(generator, 2, (int64_t[]){3, 4});
    if (index == 0) {
        in[1] = wg_randint(generator, -3, 3, 2, (int64_t[]){2, 1});
        in[2] = wg_randint(generator, 0, 4, 1, (int64_t[]){3});
    } else if (index == 3) {
        in[1] = wg_randint(generator, 0, 3, 1, (int64_t[]){5});
        in[3] = wg_randint(generator, 0, 2, 1, (int64_t[]){5});
    } else if (index == 4) {
        in[2] = wg_scalar(WG_I64, -1);
    } else {
        in[1] = index == 1   ? mask
                : index == 2 ? wg_select(mask, 1, 0)
                             : wg_empty(WG_I64, 1, (int64_t[]){0});
    }
    sample->input_count = counts[index];
    return in[0] && (in[1] || index == 4) && in[counts[index] - 1] ? 1 : -1;
}

WG__LARGE(index, int, "256 256 64, 65536 <256, 65536 <256", 0)

static const wg_op index_op = {
    WG__OP_OF(
        "index", 1, 1 + MAX_INDICES, 1,
        "y = x[i, j, ...] as NumPy's advanced indexing: i, j, ... are integers (negative ones "
        "count from the end), masks or absent (all of the axis). Indices have no gradient."),
    .differentiable = 1, WG__COMPOSED(index), .bench = index_bench};

/* Runs an op of x, of values if there are some, and of indices. A NULL index means the whole axis,
 * so a NULL from a failed call must be detected: its error is pending. */
static wg_tensor *apply_indices(const wg_op *op, wg_tensor *x, wg_tensor *values, int count,
                                wg_tensor *const *indices, const void *options) {
    wg_tensor *inputs[2 + MAX_INDICES] = {x, values};
    if (wg_error_pending() != NULL)
        return NULL;
    if (count < 0 || count > MAX_INDICES)
        return wg__fail_null(WG_ERROR_ARGUMENT, op->name, "%d indices; at most %d", count,
                             MAX_INDICES);
    for (int i = 0; i < count; i++)
        inputs[op->min_inputs + i] = indices[i];
    return wg_apply_one(op, op->min_inputs + count, inputs, options);
}

wg_tensor *wg_index(wg_tensor *x, int count, wg_tensor *const *indices) {
    return apply_indices(&index_op, x, NULL, count, indices, NULL);
}

static int put_decompose(wg_call *call) {
    plan plan;
    wg_tensor *x = call->inputs[0];
    if (plan_make(call, 2, call->input_count - 2, &plan) < 0)
        return -1;
    if (plan.indexed == 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "no index is there; wanted one at least");
    /* The values, broadcast to the result of index, as rows (N, R). */
    int64_t shape[2 * WG_MAX_DIMS], order[2 * WG_MAX_DIMS], result[2 * WG_MAX_DIMS];
    int64_t back[2 * WG_MAX_DIMS];
    const int ndim = placed_shape(call, &plan, shape, order);
    for (int i = 0; i < ndim; i++) {
        result[i] = shape[order[i]];
        back[order[i]] = i;
    }
    const int64_t each_row[] = {plan.place_count, plan.row};
    wg_tensor *rows =
        wg_reshape(wg_permute(x, plan.ndim, plan.order), 2, (int64_t[]){plan.row_count, plan.row});
    wg_tensor *numbers = row_numbers(call, &plan);
    wg_tensor *values = wg_expand(wg_cast(call->inputs[1], x->spec.dtype), ndim, result);
    values = wg_reshape(wg_permute(values, ndim, back), 2, each_row);
    numbers = wg_expand(wg_unsqueeze(numbers, 1), 2, each_row);
    rows = *(const bool *)call->options ? wg_scatter_add(rows, 0, numbers, values)
                                        : wg_scatter(rows, 0, numbers, values);
    for (int i = 0; i < plan.ndim; i++) {
        shape[i] = x->spec.shape[plan.order[i]];
        back[plan.order[i]] = i;
    }
    return wg__set_output(call, wg_permute(wg_reshape(rows, plan.ndim, shape), plan.ndim, back));
}

static int put_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const bool options[] = {false, true};
    wg_sample read = {0};
    const int status = index_sample(index / 2, generator, &read);
    if (status <= 0)
        return status;
    sample->options = &options[index % 2];
    sample->inputs[0] = read.inputs[0];
    sample->inputs[1] = wg__sample_normal(generator, 1, (int64_t[]){1});
    for (int i = 1; i < read.input_count; i++)
        sample->inputs[1 + i] = read.inputs[i];
    sample->input_count = read.input_count + 1;
    return sample->inputs[1] == NULL ? -1 : 1;
}

static const wg_op index_put = {
    WG__OP_OF(
        "index_put", 2, 2 + MAX_INDICES, 1,
        "y = x with values, broadcast, at [i, j, ...], or added to y[i, j, ...]; the indices are "
        "as in index. Of several values for one element the last stays. Indices have no gradient."),
    .options_size = sizeof(bool), .differentiable = 3, WG__COMPOSED(put)};

wg_tensor *wg_index_put(wg_tensor *x, int count, wg_tensor *const *indices, wg_tensor *values,
                        bool accumulate) {
    return apply_indices(&index_put, x, values, count, indices, &accumulate);
}

/* The shape that x and a mask broadcast to; -1 with an error. */
static int masked_shape(const wg_call *call, wg_spec *shape) {
    if (call->input_specs[1].dtype != WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "a mask is bool, not %s; cast it",
                           wg_dtype_name(call->input_specs[1].dtype));
    if (!wg__broadcast(&call->input_specs[0], &call->input_specs[1], shape))
        return wg__op_fail(call, WG_ERROR_SHAPE, "x and the mask do not broadcast");
    return 0;
}

static int masked_select_decompose(wg_call *call) {
    wg_spec shape;
    if (masked_shape(call, &shape) < 0)
        return -1;
    const int64_t count = wg__spec_count(&shape);
    wg_tensor *x = wg_expand(call->inputs[0], shape.ndim, shape.shape);
    wg_tensor *mask = wg_expand(call->inputs[1], shape.ndim, shape.shape);
    wg_tensor *places = wg_select(wg_nonzero(wg_reshape(mask, 1, &count)), 1, 0);
    return wg__set_output(call, wg_index_select(wg_reshape(x, 1, &count), 0, places));
}

WG__SHAPES(masked, (wg__sample_normal, wg__sample_truth), "4 4, 4 4", "4 4, 4", ",")
WG__LARGE_BY(masked, int, (wg__sample_f32, wg__sample_truth), "4194304, 4194304", 0)

static const wg_op masked_select = {
    WG__OP("masked_select", 2,
           "y (count) = the elements of x where the bool mask is true, in row-major order; the two "
           "broadcast. The mask has no gradient."),
    .differentiable = 1, .decompose = masked_select_decompose, .sample = masked_sample,
    .bench = masked_bench};

wg_tensor *wg_masked_select(wg_tensor *x, wg_tensor *mask) {
    return wg_apply_one(&masked_select, 2, (wg_tensor *[]){x, mask}, NULL);
}

static int masked_scatter_decompose(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    wg_spec shape;
    if (masked_shape(call, &shape) < 0)
        return -1;
    if (!wg__same_shape(&shape, x))
        return wg__op_fail(call, WG_ERROR_SHAPE, "the mask must broadcast to x");
    const int64_t count = wg__spec_count(x), there = wg__spec_count(&call->input_specs[2]);
    wg_tensor *mask = wg_reshape(wg_expand(call->inputs[1], x->ndim, x->shape), 1, &count);
    wg_tensor *places = wg_select(wg_nonzero(mask), 1, 0);
    wg_tensor *source = wg_reshape(wg_cast(call->inputs[2], x->dtype), 1, &there);
    if (places == NULL || source == NULL)
        return -1;
    const int64_t wanted = wg_tensor_count(places);
    if (there < wanted)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "the source has %lld elements; the mask wants %lld", (long long)there,
                           (long long)wanted);
    wg_tensor *y = wg_reshape(call->inputs[0], 1, &count);
    y = wg_scatter(y, 0, places, wg_slice(source, 0, 0, wanted, 1));
    return wg__set_output(call, wg_reshape(y, x->ndim, x->shape));
}

WG__SHAPES(masked_scatter, (wg__sample_normal, wg__sample_truth, wg__sample_normal),
           "4 4, 4 4, 4 5", "4 4, 4, 4 5", ", , 4 5")

static const wg_op masked_scatter = {
    WG__OP("masked_scatter", 3,
           "y = x with the elements of source, in row-major order, where the bool mask, broadcast "
           "to x, is true. The mask has no gradient."),
    .differentiable = 5, WG__COMPOSED(masked_scatter)};

wg_tensor *wg_masked_scatter(wg_tensor *x, wg_tensor *mask, wg_tensor *source) {
    return wg_apply_one(&masked_scatter, 3, (wg_tensor *[]){x, mask, source}, NULL);
}

const wg__op_table wg__ops_advanced_index = WG__OP_TABLE(
    &nonzero, &bincount, &searchsorted, &index_op, &index_put, &masked_select, &masked_scatter);
