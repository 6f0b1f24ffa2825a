/* Checking indices, and the walks of gather and scatter: see indexing.h. */
#include "tensor/ops/index/indexing.h"

#include "tensor/ops/support.h"

#include <string.h>

int wg__check_is_index(const wg_call *call, int i) {
    const wg_dtype dtype = call->input_specs[i].dtype;
    if (dtype == WG_I64)
        return 0;
    return wg__op_fail(call, WG_ERROR_DTYPE, "indices are i64 or i32, not %s; cast operand %d",
                       wg_dtype_name(dtype), i);
}

wg_tensor *wg__index_as_i64(wg_tensor *index) {
    return index != NULL && index->spec.dtype == WG_I32 ? wg_cast(index, WG_I64) : index;
}

typedef struct range {
    int64_t low, high;
    atomic_bool has_outside;
    atomic_llong outside; /* one of the indices outside */
} range;

/* Whether n indices, `stride` elements apart, are in range. Stores one of those outside. */
static bool check_indices(range *range, int64_t n, const int64_t *index, int64_t stride) {
    /* An index out of range makes one of two differences negative. The loop compares no i64:
     * before SSE4, vectors have no instruction for it. */
    if (stride == 1) {
        const uint64_t low = (uint64_t)range->low, last = (uint64_t)range->high - 1;
        uint64_t sign = 0;
        for (int64_t i = 0; i < n; i++)
            sign |= ((uint64_t)index[i] - low) | (last - (uint64_t)index[i]);
        if (sign >> 63 == 0)
            return true;
    }
    bool inside = true;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = index[i * stride];
        if (at < range->low || at >= range->high) {
            atomic_store(&range->outside, at);
            atomic_store(&range->has_outside, true);
            inside = false;
        }
    }
    return inside;
}

static void find_outside(int64_t n, char *const *data, const int64_t *strides,
                         const void *context) {
    check_indices((range *)context, n, (const int64_t *)data[0],
                  strides[0] / (int64_t)sizeof(int64_t));
}

/* Reads repeated axes (of stride 0) once. */
bool wg__index_outside(const wg_tensor *index, int64_t low, int64_t high, long long *found) {
    wg_tensor once = *wg__all_values((wg_tensor *)index);
    for (int i = 0; i < once.spec.ndim; i++)
        if (once.strides[i] == 0 && once.spec.shape[i] > 1)
            once.spec.shape[i] = 1;
    range range = {.low = low, .high = high};
    wg__iterate(1, (wg_tensor *[]){&once}, find_outside, &range);
    *found = atomic_load(&range.outside);
    return atomic_load(&range.has_outside);
}

int wg__fail_index_range(const wg_call *call, long long found, int64_t size) {
    return wg__op_fail(call, WG_ERROR_INDEX, "index %lld is out of range; wanted 0 to %lld", found,
                       (long long)size - 1);
}

int wg__check_index_range(const wg_call *call, int i, int64_t size) {
    long long found;
    return wg__index_outside(call->inputs[i], 0, size, &found)
               ? wg__fail_index_range(call, found, size)
               : 0;
}

wg_tensor *wg__index_from_front(const wg_call *call, wg_tensor *index, int axis, int64_t size) {
    long long found;
    index = wg__index_as_i64(index);
    if (index == NULL)
        return NULL;
    if (!wg__index_outside(index, 0, size, &found))
        return index;
    if (wg__index_outside(index, -size, size, &found)) {
        wg__op_fail(call, WG_ERROR_INDEX,
                    "index %lld is out of range of axis %d; wanted %lld to %lld", found, axis,
                    (long long)-size, (long long)size - 1);
        return NULL;
    }
    wg_tensor *is_negative = wg_lt(index, wg_scalar(WG_I64, 0));
    return wg_where(is_negative, wg_add_scalar(index, (double)size), index);
}

/* ---- The walk of gather and scatter ----
 *
 * `indexed` is the tensor that a gather reads or a scatter writes: indices address it along `axis`,
 * positions along all other axes. `index` and `values` have the same shape. A row is a stretch of
 * the inner axis. The inner axis is the last axis but `axis`; a gather takes the axis along which
 * values lie closest. */

/* The offsets of a position in the three tensors, in elements. */
typedef struct place {
    int64_t indexed, index, value;
} place;

typedef struct walk {
    char *indexed;
    char *values;
    const int64_t *index;
    size_t size; /* bytes of an element */
    int ndim, axis, inner;
    int64_t shape[WG_MAX_DIMS];
    int64_t indexed_strides[WG_MAX_DIMS], index_strides[WG_MAX_DIMS], value_strides[WG_MAX_DIMS];
    int64_t indexed_size; /* of the indexed tensor along the axis */
    range *range;         /* the range of a gather's indices; NULL: already checked */
    int64_t skip;         /* an index that a sum skips, or -1 */
    bool from_zeros;      /* `indexed` is all 0 before a scatter */
    /* Scatters n positions along the inner axis. */
    void (*scatter_item)(const struct walk *walk, place at, int64_t n);
} walk;

static walk walk_make(const wg_tensor *indexed, int axis, const wg_tensor *index,
                      const wg_tensor *values) {
    walk walk = {.indexed = wg__tensor_address(indexed),
                 .values = wg__tensor_address(values),
                 .index = wg__tensor_address(index),
                 .size = wg_dtype_size(values->spec.dtype),
                 .ndim = index->spec.ndim,
                 .axis = axis,
                 .skip = -1,
                 .indexed_size = indexed->spec.ndim ? indexed->spec.shape[axis] : 1};
    const size_t bytes = (size_t)walk.ndim * sizeof(int64_t);
    memcpy(walk.shape, index->spec.shape, bytes);
    memcpy(walk.indexed_strides, indexed->strides, bytes);
    memcpy(walk.index_strides, index->strides, bytes);
    memcpy(walk.value_strides, values->strides, bytes);
    if (walk.ndim == 1) /* adds an axis of size 1 as the inner one */
        walk.shape[walk.ndim++] = 1;
    walk.inner = axis == walk.ndim - 1 ? walk.ndim - 2 : walk.ndim - 1;
    return walk;
}

/* Position number `rest` in the box of all axes but `a` and `b`. */
static place place_at(const walk *walk, int64_t rest, int a, int b) {
    place place = {0};
    for (int i = walk->ndim - 1; i >= 0; i--) {
        if (i == a || i == b)
            continue;
        const int64_t at = rest % walk->shape[i];
        rest /= walk->shape[i];
        place.index += at * walk->index_strides[i];
        place.value += at * walk->value_strides[i];
        if (i != walk->axis)
            place.indexed += at * walk->indexed_strides[i];
    }
    return place;
}

static int64_t count_without(const walk *walk, int a, int b) {
    int64_t count = 1;
    for (int i = 0; i < walk->ndim; i++)
        count *= i == a || i == b ? 1 : walk->shape[i];
    return count;
}

/* Elements are copied as bits, so that one function serves all dtypes of a size. */
#define GATHER_ROW(NAME, TYPE)                                                                     \
    static void NAME(const walk *walk, place at, int64_t n) {                                      \
        const int64_t sx = walk->inner == walk->axis ? 0 : walk->indexed_strides[walk->inner];     \
        const int64_t si = walk->index_strides[walk->inner];                                       \
        const int64_t sy = walk->value_strides[walk->inner];                                       \
        const int64_t along = walk->indexed_strides[walk->axis];                                   \
        const TYPE *x = (const TYPE *)walk->indexed + at.indexed;                                  \
        const int64_t *index = walk->index + at.index;                                             \
        TYPE *y = (TYPE *)walk->values + at.value;                                                 \
        if (si == 0 && sx == 1 && sy == 1) {                                                       \
            memcpy(y, x + *index * along, (size_t)n * sizeof(TYPE));                               \
            return;                                                                                \
        }                                                                                          \
        if (si == 1 && sx == 0 && sy == 1 && along == 1) {                                         \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[index[i]];                                                                \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * sy] = x[index[i * si] * along + i * sx];                                         \
    }

GATHER_ROW(gather_row_1, uint8_t)
GATHER_ROW(gather_row_2, uint16_t)
GATHER_ROW(gather_row_4, uint32_t)
GATHER_ROW(gather_row_8, uint64_t)

static void gather_row(const walk *walk, place at, int64_t n) {
    if (walk->size == 1)
        gather_row_1(walk, at, n);
    else if (walk->size == 2)
        gather_row_2(walk, at, n);
    else if (walk->size == 4)
        gather_row_4(walk, at, n);
    else
        gather_row_8(walk, at, n);
}

enum { LINE_BYTES = 64 };

/* Checks and gathers a stretch at a time, so that its indices are still in the first-level cache
 * when they are used. Meanwhile prefetches the indices of later stretches, and for the next row
 * `lines` cache lines from `next` on. */
static void gather_checked_row(const walk *walk, place at, const char *next, int64_t lines) {
    enum { STRETCH = 128, INDEX_LINES = STRETCH * sizeof(int64_t) / LINE_BYTES };
    const int inner = walk->inner;
    const int64_t n = walk->shape[inner];
    const int64_t indexed = inner == walk->axis ? 0 : walk->indexed_strides[inner];
    const int64_t index = walk->index_strides[inner], value = walk->value_strides[inner];
    const int64_t most = index == 0 ? n : STRETCH; /* stride 0: one index for the whole row */
    for (int64_t done = 0, count; done < n; done += count) {
        count = wg__smaller(n - done, most);
        if (index == 1 && n - done >= 5 * STRETCH)
            for (int i = 4 * INDEX_LINES; i < 5 * INDEX_LINES; i++)
                __builtin_prefetch((const char *)(walk->index + at.index) + i * LINE_BYTES);
        for (int64_t i = lines * done / n; i < lines * (done + count) / n; i++)
            __builtin_prefetch(next + i * LINE_BYTES);
        if (check_indices(walk->range, index == 0 ? 1 : count, walk->index + at.index, index))
            gather_row(walk, at, count);
        at.indexed += count * indexed, at.index += count * index, at.value += count * value;
    }
}

/* The hardware cannot predict which lines of x the indices of a row select. This prefetches all
 * lines of the next row of x, if they are few and most of their values are likely to be read. */
static void gather_rows(int64_t begin, int64_t end, void *context) {
    enum { MOST = 512 };
    const walk *walk = context;
    const int64_t bytes = walk->indexed_size * (int64_t)walk->size;
    const bool fetches = walk->inner == walk->axis && walk->indexed_strides[walk->axis] == 1 &&
                         walk->indexed_size <= 4 * walk->shape[walk->inner] &&
                         bytes <= MOST * LINE_BYTES;
    const int64_t lines = fetches ? bytes / LINE_BYTES : 0;
    place next = place_at(walk, begin, walk->inner, walk->inner);
    for (int64_t row = begin; row < end; row++) {
        const place at = next;
        if (row + 1 < end)
            next = place_at(walk, row + 1, walk->inner, walk->inner);
        if (walk->range)
            gather_checked_row(walk, at, walk->indexed + next.indexed * (int64_t)walk->size, lines);
        else
            gather_row(walk, at, walk->shape[walk->inner]);
    }
}

/* Copies rows, and prefetches the row that is AHEAD indices later. */
static void copy_rows(int64_t begin, int64_t end, void *context) {
    enum { AHEAD = 8 };
    const walk *walk = context;
    const int64_t size = (int64_t)walk->size, stride = walk->index_strides[0];
    const int64_t from = walk->indexed_strides[0] * size, to = walk->value_strides[0] * size;
    const int64_t bytes = walk->shape[1] * size;
    for (int64_t row = begin; row < end; row++) {
        const int64_t *index = walk->index + row * stride;
        if (row + AHEAD < end) {
            const uintptr_t later =
                (uintptr_t)walk->indexed + (uintptr_t)index[AHEAD * stride] * (uintptr_t)from;
            for (int64_t i = 0; i < bytes && i < 4 * LINE_BYTES; i += LINE_BYTES)
                __builtin_prefetch((const char *)(later + (uintptr_t)i));
        }
        if (!walk->range || check_indices(walk->range, 1, index, 1))
            memcpy(walk->values + row * to, walk->indexed + *index * from, (size_t)bytes);
    }
}

bool wg__gather(const wg_tensor *x, int axis, const wg_tensor *index, const wg_tensor *y,
                long long *found) {
    range range = {.high = x->spec.shape[axis]};
    if (wg__spec_count(&y->spec) == 0)
        return false;
    walk walk = walk_make(x, axis, index, y);
    walk.range = found ? &range : NULL;
    for (int i = 0; i < walk.ndim; i++)
        if (walk.shape[i] > 1 &&
            (walk.shape[walk.inner] == 1 || walk.value_strides[i] < walk.value_strides[walk.inner]))
            walk.inner = i;
    /* index_select on a matrix: one index for each whole row. */
    const bool whole_rows = walk.ndim == 2 && walk.axis == 0 && walk.inner == 1 &&
                            walk.index_strides[1] == 0 && walk.indexed_strides[1] == 1 &&
                            walk.value_strides[1] == 1;
    wg__parallel_for(count_without(&walk, walk.inner, walk.inner),
                     WG__GRAIN / walk.shape[walk.inner] + 1, whole_rows ? copy_rows : gather_rows,
                     &walk);
    if (found)
        *found = atomic_load(&range.outside);
    return atomic_load(&range.has_outside);
}

/* ---- Scattering
 *
 * An item is the whole indexed axis and a block of the inner axis, at one position of all remaining
 * axes. So no two items write to one element, and each element receives its values in the order of
 * the index. The inner loop runs along the axis with the smaller stride of the index.
 *
 * If the indexed axis runs along the columns of matrices (the gradient of sort along the first
 * axis), LINES columns are copied to rows, scattered there, and copied back. Each cache line is
 * then read and written once:
 *
 *     values (n, LINES) -> rows (LINES, n)  --index-->  sums (LINES, m) -> indexed (m, LINES)  ----
 */

enum {
    LINES = 16,
    LINE_GAP = 16,         /* elements between rows, so that columns lie in several cache sets */
    MOST_IN_LINE = 1 << 16 /* elements of a row */
};

/* Memory for the rows and sums of LINES columns; NULL if this scatter does not copy columns, or out
 * of memory. */
static void *room_for_columns(const walk *walk, int64_t n) {
    const int inner = walk->inner, axis = walk->axis;
    const int64_t length = walk->shape[axis], size = walk->indexed_size;
    if (n < LINES || walk->index_strides[axis] != 1 || walk->value_strides[inner] != 1 ||
        walk->indexed_strides[inner] != 1 || length < LINES || length > MOST_IN_LINE ||
        size > MOST_IN_LINE)
        return NULL;
    const int64_t room = length + size + 2 * LINE_GAP; /* of a column, in elements */
    return wg__try_alloc_array(wg__times(LINES, room), walk->size);
}

#define SCATTER_ITEM(NAME, TYPE, STORE)                                                            \
    static void NAME##_columns(const walk *walk, place at, TYPE *restrict rows) {                  \
        const int64_t n = walk->shape[walk->axis], m = walk->indexed_size;                         \
        const int64_t row = n + LINE_GAP, sum = m + LINE_GAP;                                      \
        const int64_t as = walk->value_strides[walk->axis];                                        \
        const int64_t along = walk->indexed_strides[walk->axis];                                   \
        const TYPE *src = (const TYPE *)walk->values + at.value;                                   \
        TYPE *restrict sums = rows + LINES * row, *y = (TYPE *)walk->indexed + at.indexed;         \
        for (int64_t k = 0; k < n; k++)                                                            \
            for (int64_t i = 0; i < LINES; i++)                                                    \
                rows[i * row + k] = src[k * as + i];                                               \
        if (walk->from_zeros)                                                                      \
            memset(sums, 0, (size_t)(LINES * sum) * sizeof(TYPE));                                 \
        for (int64_t k = 0; !walk->from_zeros && k < m; k++)                                       \
            for (int64_t i = 0; i < LINES; i++)                                                    \
                sums[i * sum + k] = y[k * along + i];                                              \
        for (int64_t i = 0; i < LINES; i++) {                                                      \
            const int64_t *index = walk->index + at.index + i * walk->index_strides[walk->inner];  \
            for (int64_t k = 0; k < n; k++)                                                        \
                STORE(TYPE, sums[i * sum + index[k]], rows[i * row + k]);                          \
        }                                                                                          \
        for (int64_t k = 0; k < m; k++)                                                            \
            for (int64_t i = 0; i < LINES; i++)                                                    \
                y[k * along + i] = sums[i * sum + k];                                              \
    }                                                                                              \
                                                                                                   \
    static void NAME(const walk *walk, place at, int64_t n) {                                      \
        const int64_t sy = walk->indexed_strides[walk->inner];                                     \
        const int64_t si = walk->index_strides[walk->inner];                                       \
        const int64_t ss = walk->value_strides[walk->inner];                                       \
        const int64_t along = walk->indexed_strides[walk->axis];                                   \
        const int64_t ai = walk->index_strides[walk->axis];                                        \
        const int64_t as = walk->value_strides[walk->axis];                                        \
        const bool by_rows = si > ai || (n == 1 && walk->skip < 0);                                \
        TYPE *room = by_rows ? room_for_columns(walk, n) : NULL;                                   \
        for (; room != NULL && n >= LINES; n -= LINES) {                                           \
            NAME##_columns(walk, at, room);                                                        \
            at.index += LINES * si, at.value += LINES * ss, at.indexed += LINES * sy;              \
        }                                                                                          \
        wg__free(room);                                                                            \
        for (int64_t i = 0; by_rows && i < n; i++) {                                               \
            const int64_t *index = walk->index + at.index + i * si;                                \
            const TYPE *restrict src = (const TYPE *)walk->values + at.value + i * ss;             \
            TYPE *restrict y = (TYPE *)walk->indexed + at.indexed + i * sy;                        \
            for (int64_t k = 0; k < walk->shape[walk->axis]; k++)                                  \
                STORE(TYPE, y[index[k * ai] * along], src[k * as]);                                \
        }                                                                                          \
        for (int64_t k = 0; !by_rows && k < walk->shape[walk->axis]; k++) {                        \
            const int64_t *index = walk->index + at.index + k * ai;                                \
            const TYPE *restrict src = (const TYPE *)walk->values + at.value + k * as;             \
            TYPE *restrict y = (TYPE *)walk->indexed + at.indexed;                                 \
            if (si == 0 && *index == walk->skip)                                                   \
                continue;                                                                          \
            if (si == 0 && sy == 1 && ss == 1) {                                                   \
                y += *index * along;                                                               \
                for (int64_t i = 0; i < n; i++)                                                    \
                    STORE(TYPE, y[i], src[i]);                                                     \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const int64_t to = index[i * si] * along + i * sy;                                 \
                STORE(TYPE, y[to], src[i * ss]);                                                   \
            }                                                                                      \
        }                                                                                          \
    }

#define ADD(TYPE, y, x) (y) += (x)
#define ADD_WRAPPING(TYPE, y, x) (y) = (TYPE)((uint64_t)(y) + (uint64_t)(x))
#define SET(TYPE, y, x) (y) = (x)

SCATTER_ITEM(add_f32, float, ADD)
SCATTER_ITEM(add_f64, double, ADD)
SCATTER_ITEM(add_i32, int32_t, ADD_WRAPPING)
SCATTER_ITEM(add_i64, int64_t, ADD_WRAPPING)
SCATTER_ITEM(add_u8, uint8_t, ADD_WRAPPING)
SCATTER_ITEM(set_1, uint8_t, SET)
SCATTER_ITEM(set_2, uint16_t, SET)
SCATTER_ITEM(set_4, uint32_t, SET)
SCATTER_ITEM(set_8, uint64_t, SET)

enum { SCATTER_BLOCK = 64 }; /* elements of an item along the inner axis */

static void scatter_items(int64_t begin, int64_t end, void *context) {
    const walk *walk = context;
    const int64_t size = walk->shape[walk->inner], blocks = wg__ceil_divide(size, SCATTER_BLOCK);
    for (int64_t item = begin; item < end; item++) {
        place at = place_at(walk, item / blocks, walk->axis, walk->inner);
        const int64_t first = item % blocks * SCATTER_BLOCK;
        at.indexed += first * walk->indexed_strides[walk->inner];
        at.index += first * walk->index_strides[walk->inner];
        at.value += first * walk->value_strides[walk->inner];
        walk->scatter_item(walk, at, wg__smaller(size - first, SCATTER_BLOCK));
    }
}

static void run_scatter(walk *walk) {
    const int64_t blocks = wg__ceil_divide(walk->shape[walk->inner], SCATTER_BLOCK);
    wg__parallel_for(blocks * count_without(walk, walk->axis, walk->inner),
                     WG__GRAIN / (SCATTER_BLOCK * walk->shape[walk->axis]) + 1, scatter_items,
                     walk);
}

void wg__scatter_add(wg_tensor *y, int axis, const wg_tensor *index, const wg_tensor *src,
                     int64_t skip, bool from_zeros) {
    if (wg__spec_count(&src->spec) == 0)
        return;
    walk walk = walk_make(y, axis, index, src);
    const wg_dtype dtype = y->spec.dtype;
    walk.scatter_item = dtype == WG_F32   ? add_f32
                        : dtype == WG_F64 ? add_f64
                        : dtype == WG_I32 ? add_i32
                        : dtype == WG_I64 ? add_i64
                                          : add_u8;
    walk.skip = skip;
    walk.from_zeros = from_zeros;
    run_scatter(&walk);
}

void wg__scatter(wg_tensor *y, int axis, const wg_tensor *index, const wg_tensor *src) {
    if (wg__spec_count(&src->spec) == 0)
        return;
    walk walk = walk_make(y, axis, index, src);
    const size_t size = walk.size;
    walk.scatter_item = size == 1 ? set_1 : size == 2 ? set_2 : size == 4 ? set_4 : set_8;
    run_scatter(&walk);
}

/* The op copies its zeros, so it runs only if the gradient is to be differentiated again, or for
 * bf16. */
wg_tensor *wg__scattered(const wg_call *call, int axis, wg_tensor *index, wg_tensor *g) {
    const wg_spec *x = &call->input_specs[0];
    wg_tensor *sum = wg_zeros(x->dtype, x->ndim, x->shape);
    if (call->create_graph || x->dtype == WG_BF16)
        return wg_scatter_add(sum, axis, index, g);
    if (sum == NULL || index == NULL || g == NULL)
        return NULL;
    wg__scatter_add(sum, axis, index, g, -1, true);
    return sum;
}
