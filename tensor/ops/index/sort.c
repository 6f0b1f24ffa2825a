/* sort, argsort, topk, median and unique. The order is stable; NaNs are equal and come after all
 * numbers; -0 equals 0. */
#include "tensor/ops/index/indexing.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

/* ==== The order of a row. Each element becomes an unsigned key of the same order, paired with the
 * element's index.
 *
 *     element --> key, its bits flipped for a descending order
 *     entry       | key, 32 bits | index, 32 bits |  or, for 64-bit elements and very long rows,
 *                 | key, 64 bits | index, 64 bits |
 *
 * A least-significant-digit radix sort orders the entries, with DIGITS buckets in each pass. It
 * skips the pass of a digit that is equal in all keys. ==== */

enum { SHORT = 48, DIGITS = 256 }; /* up to SHORT entries are sorted by insertion */

static inline uint32_t key_f32(float x) {
    uint32_t bits;
    if (x != x)
        return UINT32_MAX;
    x += 0.0F; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
}

static inline uint64_t key_f64(double x) {
    uint64_t bits;
    if (x != x)
        return UINT64_MAX;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

typedef uint64_t narrow;

static inline narrow narrow_entry(uint32_t key, uint32_t flip, int64_t index) {
    return (uint64_t)(key ^ flip) << 32 | (uint64_t)index;
}

static inline bool narrow_before(narrow a, narrow b) {
    return a < b;
}

static inline unsigned narrow_digit(narrow entry, int place) {
    return entry >> 8 * place & (DIGITS - 1);
}

static inline int64_t narrow_index(narrow entry) {
    return (int64_t)(entry & UINT32_MAX);
}

typedef struct wide {
    uint64_t key;
    int64_t index;
} wide;

static inline wide wide_entry(uint64_t key, uint64_t flip, int64_t index) {
    return (wide){key ^ flip, index};
}

static inline bool wide_before(wide a, wide b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

static inline unsigned wide_digit(wide entry, int place) {
    const uint64_t half = place < 8 ? (uint64_t)entry.index : entry.key;
    return half >> 8 * (place % 8) & (DIGITS - 1);
}

static inline int64_t wide_index(wide entry) {
    return entry.index;
}

/* Entries are narrow if both keys and indices fit 32 bits. */
static size_t entry_size(wg_dtype dtype, int64_t n) {
    return wg_dtype_size(dtype) <= 4 && n <= UINT32_MAX ? sizeof(narrow) : sizeof(wide);
}

/* The entries of elements x of TYPE. The lower half of a bf16 key is constant, so that its passes
 * are skipped. */
#define FILL(NAME, ENTRY, UNSIGNED, TYPE, KEY)                                                     \
    static void NAME(int64_t n, const void *from, bool descending, void *to) {                     \
        const UNSIGNED flip = descending ? (UNSIGNED)-1 : 0;                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE x = ((const TYPE *)from)[i];                                                \
            ((ENTRY *)to)[i] = ENTRY##_entry(KEY, flip, i);                                        \
        }                                                                                          \
    }

FILL(narrow_f32, narrow, uint32_t, float, key_f32(x))
FILL(narrow_bf16, narrow, uint32_t, uint16_t, key_f32(wg__bf16_to_f32(x)) | 0xffff)
FILL(narrow_i32, narrow, uint32_t, int32_t, (uint32_t)x ^ (uint32_t)1 << 31)
FILL(narrow_u8, narrow, uint32_t, uint8_t, x)
FILL(wide_f32, wide, uint64_t, float, key_f32(x))
FILL(wide_bf16, wide, uint64_t, uint16_t, key_f32(wg__bf16_to_f32(x)) | 0xffff)
FILL(wide_i32, wide, uint64_t, int32_t, (uint32_t)x ^ (uint32_t)1 << 31)
FILL(wide_u8, wide, uint64_t, uint8_t, x)
FILL(wide_f64, wide, uint64_t, double, key_f64(x))
FILL(wide_i64, wide, uint64_t, int64_t, (uint64_t)x ^ (uint64_t)1 << 63)

typedef void (*fill)(int64_t n, const void *x, bool descending, void *to);

static const fill narrow_fills[WG_DTYPE_COUNT] = {[WG_F32] = narrow_f32,
                                                  [WG_BF16] = narrow_bf16,
                                                  [WG_I32] = narrow_i32,
                                                  [WG_U8] = narrow_u8,
                                                  [WG_BOOL] = narrow_u8};
static const fill wide_fills[WG_DTYPE_COUNT] = {
    [WG_F32] = wide_f32, [WG_F64] = wide_f64, [WG_BF16] = wide_bf16, [WG_I32] = wide_i32,
    [WG_I64] = wide_i64, [WG_U8] = wide_u8,   [WG_BOOL] = wide_u8};

/* For entries of type ENTRY, with BYTES bytes; the lower half is the index.
 *
 * _order selects the first k entries of the order with a heap: its root is the last of them, and
 * each entry that comes before the root replaces it. _sort returns the array with the sorted
 * entries: `entries` or `spare`. It sorts by the digits from `from` on; entries that are already in
 * the order of their indices need no passes over the index. */
#define ORDER(ENTRY, BYTES)                                                                        \
    static void ENTRY##_sift(ENTRY *heap, int64_t k, int64_t at) {                                 \
        const ENTRY moved = heap[at];                                                              \
        for (int64_t child = 2 * at + 1; child < k; child = 2 * at + 1) {                          \
            if (child + 1 < k && ENTRY##_before(heap[child], heap[child + 1]))                     \
                child++;                                                                           \
            if (!ENTRY##_before(moved, heap[child]))                                               \
                break;                                                                             \
            heap[at] = heap[child];                                                                \
            at = child;                                                                            \
        }                                                                                          \
        heap[at] = moved;                                                                          \
    }                                                                                              \
    static void ENTRY##_insert(ENTRY *entries, int64_t n) {                                        \
        for (int64_t i = 1; i < n; i++) {                                                          \
            const ENTRY moved = entries[i];                                                        \
            int64_t at = i;                                                                        \
            for (; at > 0 && ENTRY##_before(moved, entries[at - 1]); at--)                         \
                entries[at] = entries[at - 1];                                                     \
            entries[at] = moved;                                                                   \
        }                                                                                          \
    }                                                                                              \
    static ENTRY *ENTRY##_sort(ENTRY *entries, ENTRY *spare, int64_t n, int from) {                \
        int64_t counts[BYTES][DIGITS];                                                             \
        memset(counts[from], 0, (size_t)(BYTES - from) * sizeof counts[0]);                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int place = from; place < BYTES; place++)                                         \
                counts[place][ENTRY##_digit(entries[i], place)]++;                                 \
        for (int place = from; place < BYTES; place++) {                                           \
            int64_t *next = counts[place], sum = 0;                                                \
            if (next[ENTRY##_digit(entries[0], place)] == n)                                       \
                continue;                                                                          \
            for (int digit = 0; digit < DIGITS; digit++) {                                         \
                const int64_t count = next[digit];                                                 \
                next[digit] = sum;                                                                 \
                sum += count;                                                                      \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                spare[next[ENTRY##_digit(entries[i], place)]++] = entries[i];                      \
            ENTRY *const sorted = spare;                                                           \
            spare = entries;                                                                       \
            entries = sorted;                                                                      \
        }                                                                                          \
        return entries;                                                                            \
    }                                                                                              \
    static void ENTRY##_order(ENTRY *entries, int64_t n, int64_t k, int64_t *order) {              \
        for (int64_t i = k < n ? k / 2 - 1 : -1; i >= 0; i--)                                      \
            ENTRY##_sift(entries, k, i);                                                           \
        for (int64_t i = k; i < n; i++)                                                            \
            if (ENTRY##_before(entries[i], entries[0])) {                                          \
                entries[0] = entries[i];                                                           \
                ENTRY##_sift(entries, k, 0);                                                       \
            }                                                                                      \
        if (k <= SHORT)                                                                            \
            ENTRY##_insert(entries, k);                                                            \
        else                                                                                       \
            entries = ENTRY##_sort(entries, entries + n, k, k < n ? 0 : BYTES / 2);                \
        for (int64_t i = 0; i < k; i++)                                                            \
            order[i] = ENTRY##_index(entries[i]);                                                  \
    }

ORDER(narrow, 8)
ORDER(wide, 16)

/* The indices of the first k of n contiguous elements in ascending or descending order.
 * O(n) for k = n, O(n log k) for smaller k. `room` has memory for 2 n entries. */
static void order_row(wg_dtype dtype, bool descending, int64_t n, const void *x, int64_t k,
                      void *room, int64_t *order) {
    if (entry_size(dtype, n) == sizeof(narrow)) {
        narrow_fills[dtype](n, x, descending, room);
        narrow_order(room, n, k, order);
    } else {
        wide_fills[dtype](n, x, descending, room);
        wide_order(room, n, k, order);
    }
}

/* Whether two elements of a row are equal in the order of sort. */
static bool elements_equal(wg_dtype dtype, const char *x, int64_t i, int64_t j) {
    const int64_t size = (int64_t)wg_dtype_size(dtype);
    if (!wg_dtype_is_float(dtype))
        return memcmp(x + i * size, x + j * size, (size_t)size) == 0;
    const double a = wg__element(dtype, x + i * size), b = wg__element(dtype, x + j * size);
    return a == b || (isnan(a) && isnan(b));
}

/* ==== Lines of a tensor: each becomes a row, and threads share the rows ==== */

enum { GRAIN = 2048 }; /* the minimum number of elements of a task */

typedef struct rows {
    wg_dtype dtype;
    int64_t count, n, k; /* rows, elements of a row, and results of a row */
    bool descending;
    const char *x;
    char *values;
    int64_t *indices;
    bool median; /* only the middle element of each row's order is stored */
    int64_t tasks;
    char *room; /* scratch memory of each task: for order_row, then for an order */
    size_t room_size;
} rows;

static void copy_elements(size_t size, const void *x, int64_t count, const int64_t *index,
                          void *y) {
    for (int64_t i = 0; i < count; i++)
        if (size == 1)
            ((uint8_t *)y)[i] = ((const uint8_t *)x)[index[i]];
        else if (size == 2)
            ((uint16_t *)y)[i] = ((const uint16_t *)x)[index[i]];
        else if (size == 4)
            ((uint32_t *)y)[i] = ((const uint32_t *)x)[index[i]];
        else
            ((uint64_t *)y)[i] = ((const uint64_t *)x)[index[i]];
}

/* The index of the middle element, or of the lower of two; of the first NaN if there is one. */
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

static void run_tasks(int64_t begin, int64_t end, void *context) {
    const rows *rows = context;
    const int64_t size = (int64_t)wg_dtype_size(rows->dtype), n = rows->n, k = rows->k;
    for (int64_t task = begin; task < end; task++) {
        char *room = rows->room + (size_t)task * rows->room_size;
        int64_t *scratch = (int64_t *)(room + 2 * (size_t)n * entry_size(rows->dtype, n));
        for (int64_t row = task * rows->count / rows->tasks;
             row < (task + 1) * rows->count / rows->tasks; row++) {
            const char *x = rows->x + row * n * size;
            int64_t *order = rows->median ? scratch : rows->indices + row * k;
            order_row(rows->dtype, rows->descending, n, x, k, room, order);
            if (rows->median)
                rows->indices[row] = middle(rows, x, order);
            const int64_t kept = rows->median ? 1 : k;
            copy_elements((size_t)size, x, kept, rows->indices + row * kept,
                          rows->values + row * kept * size);
        }
    }
}

/* Rows are independent, so the number of tasks changes no bits. */
static int run_rows(rows *rows) {
    if (rows->count == 0 || rows->k == 0)
        return 0;
    rows->tasks = wg__smaller(rows->count * rows->n / GRAIN + 1, wg_threads());
    rows->tasks = wg__smaller(rows->tasks, rows->count);
    const size_t n = (size_t)rows->n, order_size = rows->median ? n * sizeof(int64_t) : 0;
    rows->room_size = 2 * n * entry_size(rows->dtype, rows->n) + order_size;
    rows->room = wg__alloc_array(rows->tasks, rows->room_size);
    if (rows->room == NULL)
        return -1;
    wg__parallel_for(rows->tasks, 1, run_tasks, rows);
    wg__free(rows->room);
    return 0;
}

#define ALL INT64_MIN

typedef struct order_options {
    int axis;
    int64_t k; /* or ALL */
    bool descending, keepdim;
} order_options;

static int order_infer(wg_call *call) {
    const order_options *options = call->options;
    const int64_t n = call->input_specs[0].shape[options->axis];
    if (options->k != ALL && (options->k < 0 || options->k > n))
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "k is %lld; wanted 0 to %lld, the size of axis %d",
                           (long long)options->k, (long long)n, options->axis);
    call->output_specs[0] = call->input_specs[0];
    call->output_specs[0].shape[options->axis] = options->k == ALL ? n : options->k;
    call->output_specs[1] = call->output_specs[0];
    call->output_specs[1].dtype = WG_I64;
    return 0;
}

/* The first k elements of each line in order, and their indices. */
static int order_forward(wg_call *call) {
    const order_options *options = call->options;
    const int64_t axis = options->axis;
    const wg_tensor *x = wg_contiguous(wg_movedim(call->inputs[0], 1, &axis, (int64_t[]){-1}));
    if (!x)
        return -1;
    wg_spec spec = x->spec;
    const int64_t n = spec.shape[spec.ndim - 1], k = options->k == ALL ? n : options->k;
    spec.shape[spec.ndim - 1] = k;
    wg_tensor *values = wg__tensor_new(&spec);
    spec.dtype = WG_I64;
    wg_tensor *indices = wg__tensor_new(&spec);
    if (!values || !indices)
        return -1;
    rows rows = {.dtype = x->spec.dtype,
                 .count = n == 0 ? 0 : wg__spec_count(&x->spec) / n,
                 .n = n,
                 .k = k,
                 .descending = options->descending,
                 .x = wg__tensor_address(x),
                 .values = wg__tensor_address(values),
                 .indices = wg__tensor_address(indices)};
    if (run_rows(&rows) < 0)
        return -1;
    call->outputs[0] = wg_movedim(values, 1, (int64_t[]){-1}, &axis);
    call->outputs[1] = wg_movedim(indices, 1, (int64_t[]){-1}, &axis);
    return 0;
}

/* dx = g, scattered to the indices of the selected elements. */
WG__VJP(chosen,
        wg__scattered(call, ((const order_options *)call->options)->axis, call->outputs[1], g))

static int chosen_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const order_options *options = call->options;
    output_tangents[0] = wg_gather(tangents[0], options->axis, call->outputs[1]);
    return wg__vjp_status();
}

/* Runs an op along an axis, and stores its outputs unless their pointers are NULL. */
static int apply_order(const wg_op *op, wg_tensor *x, int axis, order_options options,
                       wg_tensor **values, wg_tensor **indices) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    options.axis = wg__axis_of(x, axis, op->name);
    const int status = options.axis < 0 ? -1 : wg_apply(op, 1, &x, &options, outputs);
    return wg__give(status, outputs, values, indices);
}

static double sort_flops(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    const order_options *options = call->options;
    return (double)wg__spec_count(x) * log2(2 + (double)x->shape[options->axis]);
}

/* The common members of sort and topk. Any order of equal elements is right. */
#define CHOICE(NAME, DOC)                                                                          \
    WG__OP_OF(#NAME, 1, 1, 2, DOC),                                                                \
        .options_size = sizeof(order_options), .saves_outputs = 2, .differentiable = 1,            \
        .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_TIES},                       \
        .places_outputs = true, .infer = order_infer, .forward = order_forward, .vjp = chosen_vjp, \
        .jvp = chosen_jvp, .sample = NAME##_sample, .bench = NAME##_bench, .flops = sort_flops

/* ---- sort: y = x in ascending or descending order along one axis, and the index of each element.
 * dx = g, scattered to the indices. ---- */

WG__EXAMPLES(sort, order_options, (wg__sample_distinct), {{1, ALL, false, false}, "2 5"},
             {{0, ALL, true, false}, "4 2"}, {{1, ALL, true, false}, "2 3 2"},
             {{0, ALL, false, false}, "1"})
WG__LARGE(sort, order_options, "1024 4096", 1, ALL, false, false)

static const wg_op sort = {
    CHOICE(sort, "The elements along one axis in ascending or descending order, and their indices; "
                 "stable, NaN after all numbers. Kinks at ties."),
    .batch = wg__batch_axis};

int wg_sort(wg_tensor *x, int axis, bool descending, wg_tensor **values, wg_tensor **indices) {
    return apply_order(&sort, x, axis, (order_options){.k = ALL, .descending = descending}, values,
                       indices);
}

static int argsort_decompose(wg_call *call) {
    const order_options *options = call->options;
    return wg_sort(call->inputs[0], options->axis, options->descending, NULL, &call->outputs[0]);
}

static const wg_op argsort = {
    WG__OP("argsort", 1,
           "The i64 indices that sort x along one axis, ascending or descending; stable, NaN after "
           "all numbers."),
    .options_size = sizeof(order_options),
    .no_gradient = "its values are indices: piecewise constant in the operand",
    .decompose = argsort_decompose, .sample = sort_sample};

wg_tensor *wg_argsort(wg_tensor *x, int axis, bool descending) {
    wg_tensor *y;
    apply_order(&argsort, x, axis, (order_options){.k = ALL, .descending = descending}, &y, NULL);
    return y;
}

WG__EXAMPLES(topk, order_options, (wg__sample_distinct), {{1, 2, true, false}, "2 5"},
             {{0, 3, false, false}, "4 2"}, {{1, 3, true, false}, "2 3 2"},
             {{0, 1, true, false}, "1"})
WG__LARGE(topk, order_options, "1024 4096", 1, 40, true, false)

static const wg_op topk = {
    CHOICE(topk,
           "The k largest or smallest elements along one axis, best first, and their indices; of "
           "ties the first. A NaN is larger than all numbers. Kinks at ties."),
    .batch = wg__batch_axis};

int wg_topk(wg_tensor *x, int64_t k, int axis, bool largest, wg_tensor **values,
            wg_tensor **indices) {
    const order_options options = {.k = wg__larger(k, ALL + 1), .descending = largest};
    return apply_order(&topk, x, axis, options, values, indices);
}

/* ---- median: y = element (n - 1) / 2 of the order along one axis; NaN if there is one.
 * dx = g at the index of the median, the second output. ---- */

static int median_infer(wg_call *call) {
    const order_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    if (x->shape[options->axis] == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no elements to choose from");
    for (int j = 0; j < 2; j++)
        wg__reduced_spec(x, (int64_t)1 << options->axis, options->keepdim, &call->output_specs[j]);
    call->output_specs[1].dtype = WG_I64;
    return 0;
}

static int median_forward(wg_call *call) {
    const int64_t axis = ((const order_options *)call->options)->axis;
    const wg_tensor *x = wg_contiguous(wg_movedim(call->inputs[0], 1, &axis, (int64_t[]){-1}));
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

/* Restores the reduced axis with size 1. */
static wg_tensor *with_axis(wg_tensor *reduced, const wg_call *call) {
    const order_options *options = call->options;
    return options->keepdim ? reduced : wg_unsqueeze(reduced, options->axis);
}

WG__VJP(median, wg__scattered(call, ((const order_options *)call->options)->axis,
                              with_axis(call->outputs[1], call), with_axis(g, call)))

static int median_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const order_options *options = call->options;
    wg_tensor *t = wg_gather(tangents[0], options->axis, with_axis(call->outputs[1], call));
    output_tangents[0] = options->keepdim ? t : wg_squeeze(t, options->axis);
    return wg__vjp_status();
}

WG__EXAMPLES(median, order_options, (wg__sample_distinct), {{1, 0, false, false}, "2 5"},
             {{0, 0, false, true}, "4 2"}, {{1, 0, false, true}, "2 3 2"},
             {{0, 0, false, false}, "1"})
WG__LARGE(median, order_options, "1024 4096", 1, 0, false, false)

static const wg_op median = {
    WG__OP_OF(
        "median", 1, 1, 2,
        "The middle element along one axis, of an even number the lower one, and its index; NaN "
        "if there is one. Kinks at ties."),
    .options_size = sizeof(order_options), .saves_outputs = 2, .differentiable = 1,
    /* Any of several equal elements may be the median. */
    .exceptions = &(const wg_op_exceptions){.undefined_at = WG_AT_TIES}, WG__PRIMITIVE(median),
    .flops = sort_flops, .batch = wg__batch_axis};

wg_tensor *wg_median(wg_tensor *x, int axis, bool keepdim) {
    wg_tensor *y;
    wg_scope scope;
    wg_scope_begin(&scope); /* frees the indices at once */
    apply_order(&median, x, axis, (order_options){.keepdim = keepdim}, &y, NULL);
    return wg_scope_end(&scope, y);
}

/* ---- unique: the distinct values in ascending order, the index of each element's value, and the
 * count of each value. ---- */

/* Upper bounds: forward finds the number of values. */
static int unique_infer(wg_call *call) {
    const int64_t n = wg__spec_count(&call->input_specs[0]);
    call->output_specs[0] = (wg_spec){call->input_specs[0].dtype, 1, {n}};
    call->output_specs[1] = call->input_specs[0];
    call->output_specs[1].dtype = WG_I64;
    call->output_specs[2] = (wg_spec){WG_I64, 1, {n}};
    return 0;
}

static int unique_forward(wg_call *call) {
    const wg_tensor *x = wg_contiguous(call->inputs[0]);
    call->outputs[1] = wg__tensor_new(&call->output_specs[1]);
    if (x == NULL || call->outputs[1] == NULL)
        return -1;
    const wg_dtype dtype = x->spec.dtype;
    const int64_t n = wg__spec_count(&x->spec);
    const size_t room = 2 * (size_t)n * entry_size(dtype, n), size = wg_dtype_size(dtype);
    char *block = wg__alloc_array(wg__times(n, sizeof(int64_t)) + (int64_t)room, 1);
    if (block == NULL)
        return -1;
    const char *elements = wg__tensor_address(x);
    int64_t *order = (int64_t *)(block + room), count = 0;
    int64_t *number = wg__tensor_address(call->outputs[1]); /* of each element's value */
    if (n > 0)
        order_row(dtype, false, n, elements, n, block, order);
    /* The first position of each value in the order; reuses the scratch memory of order_row. */
    int64_t *begin = (int64_t *)block;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || !elements_equal(dtype, elements, order[i - 1], order[i]))
            begin[count++] = i;
        number[order[i]] = count - 1;
    }
    call->outputs[0] = wg_empty(dtype, 1, &count);
    call->outputs[2] = wg_empty(WG_I64, 1, &count);
    const bool ready = call->outputs[0] && call->outputs[2];
    char *values = ready ? wg__tensor_address(call->outputs[0]) : NULL;
    int64_t *counts = ready ? wg__tensor_address(call->outputs[2]) : NULL;
    for (int64_t i = 0; ready && i < count; i++) {
        memcpy(values + (size_t)i * size, elements + (size_t)order[begin[i]] * size, size);
        counts[i] = (i + 1 < count ? begin[i + 1] : n) - begin[i];
    }
    wg__free(block);
    return ready ? 0 : -1;
}

/* Samples with ties. */
static int unique_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_unary(index, generator, sample, wg__sample_distinct);
    if (status <= 0)
        return status;
    wg_tensor *whole = wg_cast(sample->inputs[0], WG_I64);
    sample->inputs[0] = index % 2 ? whole : wg_cast(whole, WG_F64);
    return wg__sample_status(sample, 1);
}

WG__LARGE(unique, int, "1024 1024", 0)

static const wg_op unique = {
    WG__OP_OF(
        "unique", 1, 1, 3,
        "The values of x in ascending order, the i64 index among them of each element, and how "
        "often each comes. All NaNs are one value."),
    .no_gradient = "how many values there are, and so the shape, depends on the operand",
    .places_outputs = true,
    .infer = unique_infer,
    .forward = unique_forward,
    .sample = unique_sample,
    .bench = unique_bench};

int wg_unique(wg_tensor *x, wg_tensor **values, wg_tensor **inverse, wg_tensor **counts) {
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    const int status = wg_apply(&unique, 1, &x, NULL, outputs);
    if (counts)
        *counts = outputs[2];
    return wg__give(status, outputs, values, inverse);
}

const wg__op_table wg__ops_sort = WG__OP_TABLE(&sort, &argsort, &topk, &median, &unique);
