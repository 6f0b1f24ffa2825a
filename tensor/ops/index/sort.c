/* Sorting and choosing by rank, along one axis: each line becomes a row, whose order order.c finds.
 * Rows are shared out to threads, each of which has room for one. */
#include "tensor/convert.h"
#include "tensor/iter.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/index/order.h"

#include <math.h>
#include <string.h>

/* Elements that are worth a thread. */
#define GRAIN 2048

/* ---- Rows ---- */

typedef struct rows {
    wg_dtype dtype;
    int64_t count, n, k; /* rows, elements of each, and how many of them are wanted */
    bool descending;
    const char *x;
    char *values;
    int64_t *indices;
    bool median; /* the middle one alone is kept of each order of all */
    int64_t tasks;
    char *room; /* of each task: for wg__order, then for an order */
    size_t room_size;
} rows;

static void copy_elements(size_t size, const void *x, int64_t count, const int64_t *index,
                          void *y) {
    for (int64_t i = 0; i < count; i++)
        switch (size) {
        case 1:
            ((uint8_t *)y)[i] = ((const uint8_t *)x)[index[i]];
            break;
        case 2:
            ((uint16_t *)y)[i] = ((const uint16_t *)x)[index[i]];
            break;
        case 4:
            ((uint32_t *)y)[i] = ((const uint32_t *)x)[index[i]];
            break;
        default:
            ((uint64_t *)y)[i] = ((const uint64_t *)x)[index[i]];
        }
}

/* The lower of the two in the middle; the first NaN, if there is one: it comes after all numbers.
 */
static int64_t middle(const rows *rows, const char *x, const int64_t *order) {
    const size_t size = wg_dtype_size(rows->dtype);
    int64_t at = (rows->n - 1) / 2;
    for (int64_t i = rows->n - 1; i >= 0; i--) {
        if (!isnan(wg__element(rows->dtype, x + (size_t)order[i] * size)))
            break;
        at = i;
    }
    return order[at];
}

static void run_row(const rows *rows, int64_t row, char *room) {
    const size_t size = wg_dtype_size(rows->dtype);
    const char *x = rows->x + (size_t)(row * rows->n) * size;
    int64_t *own = (int64_t *)(room + wg__order_room(rows->dtype, rows->n));
    int64_t *order = rows->median ? own : rows->indices + row * rows->k;
    wg__order(rows->dtype, rows->descending, rows->n, x, rows->k, room, order);
    if (rows->median) {
        rows->indices[row] = middle(rows, x, order);
        copy_elements(size, x, 1, &rows->indices[row], rows->values + (size_t)row * size);
    } else {
        copy_elements(size, x, rows->k, order, rows->values + (size_t)(row * rows->k) * size);
    }
}

static void run_tasks(int64_t begin, int64_t end, void *context) {
    const rows *rows = context;
    for (int64_t task = begin; task < end; task++)
        for (int64_t row = task * rows->count / rows->tasks;
             row < (task + 1) * rows->count / rows->tasks; row++)
            run_row(rows, row, rows->room + (size_t)task * rows->room_size);
}

/* Rows know nothing of each other, so the number of tasks changes no bits. */
static int run_rows(rows *rows) {
    if (rows->count == 0 || rows->k == 0)
        return 0;
    rows->tasks = rows->count * rows->n / GRAIN + 1;
    if (rows->tasks > wg_threads())
        rows->tasks = wg_threads();
    if (rows->tasks > rows->count)
        rows->tasks = rows->count;
    rows->room_size = wg__order_room(rows->dtype, rows->n) +
                      (rows->median ? (size_t)rows->n * sizeof(int64_t) : 0);
    rows->room = wg__alloc((size_t)rows->tasks * rows->room_size);
    if (rows->room == NULL)
        return -1;
    wg__parallel_for(rows->tasks, 1, run_tasks, rows);
    wg__free(rows->room);
    return 0;
}

/* The lines of x along an axis as contiguous rows. */
static wg_tensor *as_rows(wg_tensor *x, int64_t axis) {
    return wg_contiguous(wg_movedim(x, 1, &axis, (int64_t[]){-1}));
}

/* The first k of each line's order, and where they stand: into outputs 0 and 1. */
static int order_lines(wg_call *call, int64_t axis, int64_t k, bool descending) {
    const wg_tensor *x = as_rows(call->inputs[0], axis);
    if (x == NULL)
        return -1;
    wg_spec spec = x->spec;
    const int64_t n = spec.shape[spec.ndim - 1];
    spec.shape[spec.ndim - 1] = k;
    wg_tensor *values = wg__tensor_new(&spec);
    spec.dtype = WG_I64;
    wg_tensor *indices = wg__tensor_new(&spec);
    if (values == NULL || indices == NULL)
        return -1;
    rows rows = {.dtype = x->spec.dtype,
                 .count = n == 0 ? 0 : wg__spec_count(&x->spec) / n,
                 .n = n,
                 .k = k,
                 .descending = descending,
                 .x = wg__tensor_address(x),
                 .values = wg__tensor_address(values),
                 .indices = wg__tensor_address(indices)};
    if (run_rows(&rows) < 0)
        return -1;
    call->outputs[0] = wg_movedim(values, 1, (int64_t[]){-1}, &axis);
    call->outputs[1] = wg_movedim(indices, 1, (int64_t[]){-1}, &axis);
    return 0;
}

/* ---- What the records share ---- */

/* The options of each begin with its axis. */
static int64_t axis_of(const wg_call *call) {
    return *(const int64_t *)call->options;
}

/* dx = g at the place that each value comes from. */
static int chosen_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] = wg_scatter_add(wg_zeros(x->dtype, x->ndim, x->shape), (int)axis_of(call),
                                  call->outputs[1], cotangents[0]);
    return wg__vjp_status();
}

static int chosen_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    output_tangents[0] = wg_gather(tangents[0], (int)axis_of(call), call->outputs[1]);
    return wg__vjp_status();
}

static double sort_flops(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    return (double)wg__spec_count(x) * log2(2 + (double)x->shape[axis_of(call)]);
}

static int two_outputs(int status, wg_tensor *const *outputs, wg_tensor **first,
                       wg_tensor **second) {
    if (first != NULL)
        *first = outputs[0];
    if (second != NULL)
        *second = outputs[1];
    return status;
}

static int large_rows(wg_generator *generator, wg_sample *sample, const void *options) {
    sample->options = options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){1024, 4096});
    return wg__sample_status(sample, 1);
}

/* ---- sort: y = x in ascending or descending order along one axis, and the places where they come
 * from.   dx = g at those places. ---- */

typedef struct sort_options {
    int64_t axis;
    bool descending;
} sort_options;

static int sort_infer(wg_call *call) {
    call->output_specs[0] = call->output_specs[1] = call->input_specs[0];
    call->output_specs[1].dtype = WG_I64;
    return 0;
}

static int sort_forward(wg_call *call) {
    const sort_options *options = call->options;
    return order_lines(call, options->axis, call->input_specs[0].shape[options->axis],
                       options->descending);
}

static int sort_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const sort_options options[] = {{1, false}, {0, true}, {1, true}, {0, false}};
    static const int64_t shapes[][3] = {{2, 5}, {4, 2}, {2, 3, 2}, {1}};
    static const int ranks[] = {2, 2, 3, 1};
    if (index >= 4)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_distinct(generator, ranks[index], shapes[index]);
    return wg__sample_status(sample, 1);
}

static int sort_bench(wg_generator *generator, wg_sample *sample) {
    static const sort_options options = {1, false};
    return large_rows(generator, sample, &options);
}

static const wg_op sort = {
    .name = "sort",
    .doc = "The elements along one axis in ascending or descending order, and their indices; "
           "stable, NaN after all numbers. Kinks at ties.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 2,
    .options_size = sizeof(sort_options),
    .saves_outputs = 2,
    .differentiable = 1,
    .places_outputs = true,
    .infer = sort_infer,
    .forward = sort_forward,
    .vjp = chosen_vjp,
    .jvp = chosen_jvp,
    .sample = sort_sample,
    .bench = sort_bench,
    .flops = sort_flops,
};

int wg_sort(wg_tensor *x, int axis, bool descending, wg_tensor **values, wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, sort.name);
    const int status =
        along < 0 ? -1 : wg_apply(&sort, 1, &x, &(sort_options){along, descending}, outputs);
    return two_outputs(status, outputs, values, indices);
}

/* ---- argsort: the second output of sort alone. ---- */

static int argsort_decompose(wg_call *call) {
    const sort_options *options = call->options;
    return wg_sort(call->inputs[0], (int)options->axis, options->descending, NULL,
                   &call->outputs[0]);
}

static const wg_op argsort = {
    .name = "argsort",
    .doc = "The i64 indices that sort x along one axis, ascending or descending; stable, NaN after "
           "all numbers.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(sort_options),
    .no_gradient = "its values are indices: piecewise constant in the operand",
    .decompose = argsort_decompose,
    .sample = sort_sample,
};

wg_tensor *wg_argsort(wg_tensor *x, int axis, bool descending) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, argsort.name);
    if (along < 0)
        return NULL;
    return wg_apply_one(&argsort, 1, &x, &(sort_options){along, descending});
}

/* ---- topk: the first k of sort. ---- */

typedef struct topk_options {
    int64_t axis, k;
    bool largest;
} topk_options;

static int topk_infer(wg_call *call) {
    const topk_options *options = call->options;
    const int64_t n = call->input_specs[0].shape[options->axis];
    if (options->k < 0 || options->k > n)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "k is %lld; wanted 0 to %lld, the size of axis %d",
                           (long long)options->k, (long long)n, (int)options->axis);
    sort_infer(call);
    for (int j = 0; j < 2; j++)
        call->output_specs[j].shape[options->axis] = options->k;
    return 0;
}

static int topk_forward(wg_call *call) {
    const topk_options *options = call->options;
    return order_lines(call, options->axis, options->k, options->largest);
}

static int topk_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const topk_options options[] = {{1, 2, true}, {0, 3, false}, {1, 3, true}, {0, 1, true}};
    const int status = sort_sample(index, generator, sample);
    if (status > 0)
        sample->options = &options[index];
    return status;
}

static int topk_bench(wg_generator *generator, wg_sample *sample) {
    static const topk_options options = {1, 40, true};
    return large_rows(generator, sample, &options);
}

static const wg_op topk = {
    .name = "topk",
    .doc = "The k largest or smallest elements along one axis, best first, and their indices; of "
           "ties the first. A NaN is larger than all numbers. Kinks at ties.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 2,
    .options_size = sizeof(topk_options),
    .saves_outputs = 2,
    .differentiable = 1,
    .places_outputs = true,
    .infer = topk_infer,
    .forward = topk_forward,
    .vjp = chosen_vjp,
    .jvp = chosen_jvp,
    .sample = topk_sample,
    .bench = topk_bench,
    .flops = sort_flops,
};

int wg_topk(wg_tensor *x, int64_t k, int axis, bool largest, wg_tensor **values,
            wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, topk.name);
    const int status =
        along < 0 ? -1 : wg_apply(&topk, 1, &x, &(topk_options){along, k, largest}, outputs);
    return two_outputs(status, outputs, values, indices);
}

/* ---- median: y = element (n - 1) / 2 of the order along one axis; NaN if there is one.   dx = g
 * at its place, which is the second output. ---- */

typedef struct median_options {
    int64_t axis;
    bool keepdim;
} median_options;

static int median_infer(wg_call *call) {
    const median_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    if (x->shape[options->axis] == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no elements to choose from");
    for (int j = 0; j < 2; j++)
        wg__reduced_spec(x, (int64_t)1 << options->axis, options->keepdim, &call->output_specs[j]);
    call->output_specs[1].dtype = WG_I64;
    return 0;
}

static int median_forward(wg_call *call) {
    const wg_tensor *x = as_rows(call->inputs[0], axis_of(call));
    if (x == NULL)
        return -1;
    const int64_t n = x->spec.shape[x->spec.ndim - 1];
    rows rows = {.dtype = x->spec.dtype,
                 .count = wg__spec_count(&call->output_specs[0]),
                 .n = n,
                 .k = n,
                 .x = wg__tensor_address(x),
                 .values = wg__tensor_address(call->outputs[0]),
                 .indices = wg__tensor_address(call->outputs[1]),
                 .median = true};
    return run_rows(&rows);
}

/* With the axis put back as 1. */
static wg_tensor *with_axis(wg_tensor *reduced, const wg_call *call) {
    const median_options *options = call->options;
    return options->keepdim ? reduced : wg_unsqueeze(reduced, (int)options->axis);
}

static int median_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg_spec *x = &call->input_specs[0];
    gradients[0] =
        wg_scatter_add(wg_zeros(x->dtype, x->ndim, x->shape), (int)axis_of(call),
                       with_axis(call->outputs[1], call), with_axis(cotangents[0], call));
    return wg__vjp_status();
}

static int median_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const median_options *options = call->options;
    const int axis = (int)options->axis;
    wg_tensor *t = wg_gather(tangents[0], axis, with_axis(call->outputs[1], call));
    output_tangents[0] = options->keepdim ? t : wg_squeeze(t, axis);
    return wg__vjp_status();
}

static int median_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const median_options options[] = {{1, false}, {0, true}, {1, true}, {0, false}};
    const int status = sort_sample(index, generator, sample);
    if (status > 0)
        sample->options = &options[index];
    return status;
}

static int median_bench(wg_generator *generator, wg_sample *sample) {
    static const median_options options = {1, false};
    return large_rows(generator, sample, &options);
}

static const wg_op median = {
    .name = "median",
    .doc = "The middle element along one axis, of an even number the lower one, and its index; NaN "
           "if there is one. Kinks at ties.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 2,
    .options_size = sizeof(median_options),
    .saves_outputs = 2,
    .differentiable = 1,
    .infer = median_infer,
    .forward = median_forward,
    .vjp = median_vjp,
    .jvp = median_jvp,
    .sample = median_sample,
    .bench = median_bench,
    .flops = sort_flops,
};

wg_tensor *wg_median(wg_tensor *x, int axis, bool keepdim) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, median.name);
    if (along < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope); /* the indices go at once */
    wg_apply(&median, 1, &x, &(median_options){along, keepdim}, outputs);
    return wg_scope_end(&scope, outputs[0]);
}

static const wg_op *const ops[] = {&sort, &argsort, &topk, &median};

const wg__op_family wg__family_sort = {ops, sizeof ops / sizeof *ops};
