/* Reading and writing elements: one at a time, copies between dtypes and layouts, and writes in
 * place. */

#include <math.h>
#include <string.h>

#include "tensor/internal.h"
#include "tensor/simd/simd.h"

/* Truncates and clamps to the range of the integer, NaN to 0; a C cast leaves these undefined. The
 * upper bounds are compared as the next power of two, which a double holds. */
static int64_t to_i64(double value) {
    if (!(value >= -0x1p63))
        return isnan(value) ? 0 : INT64_MIN;
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static int32_t to_i32(double value) {
    if (!(value >= -0x1p31))
        return isnan(value) ? 0 : INT32_MIN;
    return value < 0x1p31 ? (int32_t)value : INT32_MAX;
}

static uint8_t to_u8(double value) {
    if (!(value >= 0))
        return 0;
    return value < 256 ? (uint8_t)value : 255;
}

double wg__element(wg_dtype dtype, const void *address) {
    switch (dtype) {
    case WG_F32:
        return *(const float *)address;
    case WG_F64:
        return *(const double *)address;
    case WG_BF16:
        return wg__bf16_to_f32(*(const uint16_t *)address);
    case WG_I32:
        return *(const int32_t *)address;
    case WG_I64:
        return (double)*(const int64_t *)address;
    case WG_U8:
    case WG_BOOL:
        return *(const uint8_t *)address;
    case WG_DTYPE_COUNT:
        break;
    }
    return NAN;
}

void wg__set_element(wg_dtype dtype, void *address, double value) {
    switch (dtype) {
    case WG_F32:
        *(float *)address = (float)value;
        break;
    case WG_F64:
        *(double *)address = value;
        break;
    case WG_BF16:
        *(uint16_t *)address = wg__f64_to_bf16(value);
        break;
    case WG_I32:
        *(int32_t *)address = to_i32(value);
        break;
    case WG_I64:
        *(int64_t *)address = to_i64(value);
        break;
    case WG_U8:
        *(uint8_t *)address = to_u8(value);
        break;
    case WG_BOOL:
        *(uint8_t *)address = value != 0;
        break;
    case WG_DTYPE_COUNT:
        break;
    }
}

double wg_item(const wg_tensor *x) {
    if (!x || wg__check_memory(x, "item") < 0)
        return NAN;
    if (wg__spec_count(&x->spec) != 1) {
        wg_fail(WG_ERROR_SHAPE, "item", "a tensor of %lld elements; wanted one element",
                (long long)wg__spec_count(&x->spec));
        return NAN;
    }
    return wg__element(x->spec.dtype, wg__tensor_address(x));
}

double wg_at(const wg_tensor *x, const int64_t *index) {
    if (!x || wg__check_memory(x, "at") < 0)
        return NAN;
    int64_t position = 0;
    for (int i = 0; i < x->spec.ndim; i++) {
        int64_t size = x->spec.shape[i];
        if (index[i] < -size || index[i] >= size) {
            wg_fail(WG_ERROR_INDEX, "at", "index %lld of dimension %d, which has size %lld",
                    (long long)index[i], i, (long long)size);
            return NAN;
        }
        position += (index[i] < 0 ? index[i] + size : index[i]) * x->strides[i];
    }
    size_t element = wg_dtype_size(x->spec.dtype);
    return wg__element(x->spec.dtype,
                       (const char *)wg__tensor_address(x) + position * (int64_t)element);
}

/* ---- Copies from one dtype to another: a loop for each pair ---- */

/* One loop: TO is the stored type of dst, FROM of src, `x` the loaded element. Contiguous elements
 * and a repeated element have separate loops, which the compiler can vectorise. */
#define LOOP(name, TO, FROM, expression)                                                           \
    static void name(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        if (strides[0] == sizeof(TO) && strides[1] == sizeof(FROM)) {                              \
            TO *restrict out = (TO *)data[0];                                                      \
            const FROM *restrict in = (const FROM *)data[1];                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                FROM x = in[i];                                                                    \
                out[i] = (expression);                                                             \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        if (strides[0] == sizeof(TO) && strides[1] == 0) {                                         \
            const FROM x = *(const FROM *)data[1];                                                 \
            const TO repeated = (expression);                                                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                ((TO *)data[0])[i] = repeated;                                                     \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            FROM x = *(const FROM *)(data[1] + i * strides[1]);                                    \
            *(TO *)(data[0] + i * strides[0]) = (expression);                                      \
        }                                                                                          \
    }

/* The loops to one dtype, from each type of storage: VALUE is the expression of x, a number. */
#define LOOPS(to, TO, VALUE)                                                                       \
    LOOP(to##_f32, TO, float, VALUE(x))                                                            \
    LOOP(to##_f64, TO, double, VALUE(x))                                                           \
    LOOP(to##_bf16, TO, uint16_t, VALUE(x))                                                        \
    LOOP(to##_i32, TO, int32_t, VALUE(x))                                                          \
    LOOP(to##_i64, TO, int64_t, VALUE(x))                                                          \
    LOOP(to##_u8, TO, uint8_t, VALUE(x))

static int32_t i64_to_i32(int64_t value) {
    return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static uint8_t i64_to_u8(int64_t value) {
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

/* The stored element x as a number; only bf16 is stored as uint16_t. */
#define NUMBER(x) _Generic((x), uint16_t : wg__bf16_to_f32((uint16_t)(x)), default : (x))

/* Integers are clamped as integers, which a double may not hold. */
#define AS_F32(x) (float)NUMBER(x)
#define AS_F64(x) (double)NUMBER(x)
#define AS_BF16(x) _Generic((x), uint16_t : (x), default : wg__f32_to_bf16((float)(x)))
#define AS_I32(x)                                                                                  \
    _Generic(NUMBER(x), float : to_i32, double : to_i32, default : i64_to_i32)(NUMBER(x))
#define AS_I64(x)                                                                                  \
    _Generic(NUMBER(x), float : to_i64(NUMBER(x)), double : to_i64(NUMBER(x)), default : (x))
#define AS_U8(x) _Generic(NUMBER(x), float : to_u8, double : to_u8, default : i64_to_u8)(NUMBER(x))
#define AS_BOOL(x) (NUMBER(x) != 0)

LOOPS(f32, float, AS_F32)
LOOPS(f64, double, AS_F64)
LOOPS(bf16, uint16_t, AS_BF16)
LOOPS(i32, int32_t, AS_I32)
LOOPS(i64, int64_t, AS_I64)
LOOPS(u8, uint8_t, AS_U8)
LOOPS(bool, uint8_t, AS_BOOL)

/* Mixed precision casts activations back and forth: vector kernels where both are contiguous. */
static void round_numbers(int64_t n, char *const *data, const int64_t *strides,
                          const void *context) {
    if (strides[0] == sizeof(uint16_t) && strides[1] == sizeof(float))
        wg__simd_for(WG_F32)->rows.round_to_bf16(n, data[1], (uint16_t *)data[0]);
    else
        bf16_f32(n, data, strides, context);
}

static void widen_numbers(int64_t n, char *const *data, const int64_t *strides,
                          const void *context) {
    if (strides[0] == sizeof(float) && strides[1] == sizeof(uint16_t))
        wg__simd_for(WG_F32)->rows.widen_bf16(n, (const uint16_t *)data[1], data[0]);
    else
        f32_bf16(n, data, strides, context);
}

static const wg__loop loops[WG_DTYPE_COUNT][WG_DTYPE_COUNT] = {
    [WG_F32] = {f32_f32, f32_f64, widen_numbers, f32_i32, f32_i64, f32_u8, f32_u8},
    [WG_F64] = {f64_f32, f64_f64, f64_bf16, f64_i32, f64_i64, f64_u8, f64_u8},
    [WG_BF16] = {round_numbers, bf16_f64, bf16_bf16, bf16_i32, bf16_i64, bf16_u8, bf16_u8},
    [WG_I32] = {i32_f32, i32_f64, i32_bf16, i32_i32, i32_i64, i32_u8, i32_u8},
    [WG_I64] = {i64_f32, i64_f64, i64_bf16, i64_i32, i64_i64, i64_u8, i64_u8},
    [WG_U8] = {u8_f32, u8_f64, u8_bf16, u8_i32, u8_i64, u8_u8, u8_u8},
    [WG_BOOL] = {bool_f32, bool_f64, bool_bf16, bool_i32, bool_i64, bool_u8, bool_u8},
};

/* ---- Copies of short rows (windows, repeats, heads), without a call for each row ---- */

WG__ALWAYS_INLINE void copy_rows(size_t bytes, int64_t rows, char *to, int64_t to_row,
                                 const char *from, int64_t from_row) {
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * to_row, from + i * from_row, bytes);
}

/* Copies rows that are contiguous in src and in dst. The sizes of the shortest rows are constants,
 * so a row is a few moves. */
static void copy_contiguous_rows(int64_t bytes, int64_t rows, char *to, int64_t to_row,
                                 const char *from, int64_t from_row) {
    switch (bytes) {
#define BYTES(COUNT)                                                                               \
    case COUNT:                                                                                    \
        copy_rows(COUNT, rows, to, to_row, from, from_row);                                        \
        return;
        BYTES(2)
        BYTES(4)
        BYTES(8)
        BYTES(12)
        BYTES(16)
        BYTES(32)
        BYTES(64)
        BYTES(128)
        BYTES(256)
#undef BYTES
    default:
        copy_rows((size_t)bytes, rows, to, to_row, from, from_row);
    }
}

/* Copies an element of `size` bytes, a constant of the caller. */
WG__ALWAYS_INLINE void copy_element(const int64_t size, char *to, const char *from) {
    if (size == 1)
        *to = *from;
    else if (size == 2)
        *(uint16_t *)to = *(const uint16_t *)from;
    else if (size == 4)
        *(uint32_t *)to = *(const uint32_t *)from;
    else
        *(uint64_t *)to = *(const uint64_t *)from;
}

WG__ALWAYS_INLINE void repeat_elements(const int64_t size, int64_t n, int64_t rows, char *to,
                                       int64_t to_row, const char *from, int64_t from_row) {
    for (int64_t i = 0; i < rows; i++) {
        _Alignas(8) char x[8];
        copy_element(size, x, from + i * from_row);
        for (int64_t j = 0; j < n; j++)
            copy_element(size, to + i * to_row + j * size, x);
    }
}

/* Copies `rows` rows of n elements in the order of dst; a separate loop repeats an element. */
WG__ALWAYS_INLINE void copy_plane_of(const int64_t size, int64_t rows, int64_t n, char *const *data,
                                     const int64_t *row_strides, const int64_t *strides) {
    const int64_t to_row = row_strides[0], from_row = row_strides[1];
    char *to = data[0];
    const char *from = data[1];
    if (strides[0] == size && strides[1] == size)
        copy_contiguous_rows(size * n, rows, to, to_row, from, from_row);
    else if (strides[0] == size && strides[1] == 0 && n == 2)
        repeat_elements(size, 2, rows, to, to_row, from, from_row);
    else if (strides[0] == size && strides[1] == 0 && n == 4)
        repeat_elements(size, 4, rows, to, to_row, from, from_row);
    else if (strides[0] == size && strides[1] == 0)
        repeat_elements(size, n, rows, to, to_row, from, from_row);
    else
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < n; j++)
                copy_element(size, to + i * to_row + j * strides[0],
                             from + i * from_row + j * strides[1]);
}

static void copy_plane(int64_t size, int64_t rows, int64_t n, char *const *data,
                       const int64_t *row_strides, const int64_t *strides) {
    if (size == 1)
        copy_plane_of(1, rows, n, data, row_strides, strides);
    else if (size == 2)
        copy_plane_of(2, rows, n, data, row_strides, strides);
    else if (size == 4)
        copy_plane_of(4, rows, n, data, row_strides, strides);
    else
        copy_plane_of(8, rows, n, data, row_strides, strides);
}

/* ---- Copies between tensors whose memory runs along different axes ----
 *
 *                  columns: contiguous in dst
 *                +------+------+---
 *  rows:         | tile | tile |        In the order of dst, each read would touch a new cache
 *  contiguous    +------+------+---     line, which is evicted before its next element is read. A
 *  in src        | tile |      |        tile is so narrow that the lines of all its columns stay in
 *                +------+------+---     the cache. */

enum { TILE_COLUMNS = 16, TILE_ROWS = 64 };

/* Shorter axes and fewer elements are left to the loops of iter.c. */
enum { SHORTEST = 4, FEWEST = 1024 };

typedef struct transposition {
    int64_t rows, columns;
    int64_t row_step, column_step; /* of a row in dst, of a column in src; in elements */
    int64_t tile_rows, tile_columns;
    int64_t tiles_down, tiles_across;
    int outer_count; /* of the axes besides rows and columns */
    int64_t shape[WG_MAX_DIMS], dst_strides[WG_MAX_DIMS], src_strides[WG_MAX_DIMS];
    char *dst;
    const char *src;
    int64_t size; /* bytes of an element */
} transposition;

WG__ALWAYS_INLINE void transpose_tile(const int64_t size, const transposition *job,
                                      char *restrict dst, const char *restrict src, int64_t rows,
                                      int64_t columns) {
    const int64_t row_step = job->row_step, column_step = job->column_step;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            copy_element(size, dst + (i * row_step + j) * size, src + (j * column_step + i) * size);
}

/* Most tiles have TILE_COLUMNS columns. This constant unrolls their loop. */
WG__ALWAYS_INLINE void transpose(const int64_t size, const transposition *job, char *dst,
                                 const char *src, int64_t rows, int64_t columns) {
    if (columns == TILE_COLUMNS)
        transpose_tile(size, job, dst, src, rows, TILE_COLUMNS);
    else
        transpose_tile(size, job, dst, src, rows, columns);
}

static void transpose_tiles(int64_t begin, int64_t end, void *context) {
    const transposition *job = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % job->tiles_down * job->tile_rows;
        const int64_t column = i / job->tiles_down % job->tiles_across * job->tile_columns;
        int64_t rest = i / job->tiles_down / job->tiles_across;
        int64_t dst = row * job->row_step + column, src = column * job->column_step + row;
        for (int axis = job->outer_count - 1; axis >= 0; axis--) {
            const int64_t at = rest % job->shape[axis];
            rest /= job->shape[axis];
            dst += at * job->dst_strides[axis];
            src += at * job->src_strides[axis];
        }
        const int64_t rows = wg__smaller(job->rows - row, job->tile_rows);
        const int64_t columns = wg__smaller(job->columns - column, job->tile_columns);
        char *to = job->dst + dst * job->size;
        const char *from = job->src + src * job->size;
        if (job->size == 1)
            transpose(1, job, to, from, rows, columns);
        else if (job->size == 2)
            transpose(2, job, to, from, rows, columns);
        else if (job->size == 4)
            transpose(4, job, to, from, rows, columns);
        else
            transpose(8, job, to, from, rows, columns);
    }
}

/* The longest axis with stride 1, or -1. */
static int unit_axis(const wg_spec *spec, const int64_t *strides) {
    int found = -1;
    for (int i = 0; i < spec->ndim; i++)
        if (strides[i] == 1 && spec->shape[i] > 1 &&
            (found < 0 || spec->shape[i] > spec->shape[found]))
            found = i;
    return found;
}

/* Copies tile by tile if src has dst's dtype, its memory runs along another axis, and the axes are
 * long enough. Otherwise returns false and does nothing. */
static bool copy_transposed(wg_tensor *dst, const wg_tensor *src) {
    const wg_spec *spec = &dst->spec;
    int64_t strides[WG_MAX_DIMS];
    if (spec->dtype != src->spec.dtype || wg__spec_count(spec) < FEWEST)
        return false;
    wg__broadcast_strides(src, spec, strides);
    const int across = unit_axis(spec, dst->strides), down = unit_axis(spec, strides);
    if (across < 0 || down < 0 || strides[across] == 1 || strides[across] == 0 ||
        spec->shape[across] < SHORTEST || spec->shape[down] < SHORTEST)
        return false;
    transposition job = {.rows = spec->shape[down],
                         .columns = spec->shape[across],
                         .row_step = dst->strides[down],
                         .column_step = strides[across],
                         .dst = wg__tensor_address(dst),
                         .src = wg__tensor_address(src),
                         .size = (int64_t)wg_dtype_size(spec->dtype)};
    /* If one axis is shorter than a tile, the tile is longer along the second axis. */
    job.tile_rows = wg__smaller(job.rows, TILE_ROWS);
    job.tile_columns = TILE_ROWS * TILE_COLUMNS / job.tile_rows;
    if (job.columns < job.tile_columns) {
        job.tile_columns = job.columns;
        job.tile_rows = TILE_ROWS * TILE_COLUMNS / job.tile_columns;
    }
    job.tiles_down = wg__ceil_divide(job.rows, job.tile_rows);
    job.tiles_across = wg__ceil_divide(job.columns, job.tile_columns);
    int64_t tiles = job.tiles_down * job.tiles_across;
    for (int i = 0; i < spec->ndim; i++) {
        if (i == across || i == down)
            continue;
        job.shape[job.outer_count] = spec->shape[i];
        job.dst_strides[job.outer_count] = dst->strides[i];
        job.src_strides[job.outer_count++] = strides[i];
        tiles *= spec->shape[i];
    }
    wg__parallel_for(tiles, WG__GRAIN / (job.tile_rows * job.tile_columns), transpose_tiles, &job);
    return true;
}

void wg__convert(wg_tensor *dst, const wg_tensor *src) {
    wg_tensor *operands[] = {dst, (wg_tensor *)src};
    const wg_dtype to = dst->spec.dtype, from = src->spec.dtype;
    if (!copy_transposed(dst, src))
        wg__iterate_planes(2, operands, loops[to][from], to == from ? copy_plane : NULL, NULL);
}

wg_tensor *wg__copy_of(const wg_tensor *x) {
    wg_tensor *copy = wg__tensor_new(&x->spec);
    if (copy)
        wg__convert(copy, x);
    return copy;
}

int wg_to_array(const wg_tensor *x, void *out) {
    if (!x || wg__check_memory(x, "to_array") < 0)
        return -1;
    size_t bytes = (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype);
    if (wg_tensor_is_contiguous(x)) {
        if (bytes)
            memmove(out, wg_tensor_data(x), bytes);
        return 0;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_tensor *copy = wg__copy_of(x);
    if (copy)
        memcpy(out, wg_tensor_data(copy), bytes);
    wg_scope_end(&scope, NULL);
    return copy ? 0 : -1;
}

/* ---- Writes in place: each one counts as a version of the storage ---- */

/* Replaces a source that overlaps x in part by a copy, since x is written while the source is read.
 * The caller releases the copy, which is NULL if none is needed. [MEMORY] */
static int separate_source(const wg_tensor *x, const wg_tensor **source, wg_tensor **copy) {
    *copy = NULL;
    if (wg__overlap_of(x, *source) != WG__OVERLAP_PARTIAL)
        return 0;
    *source = *copy = wg_keep(wg__copy_of(*source));
    return *copy ? 0 : -1;
}

int wg_fill_(wg_tensor *x, double value) {
    if (!x || wg__check_writable(x, "fill_") < 0)
        return -1;
    if (wg__tensor_is_meta(x))
        return 0;
    uint64_t bits = 0;
    wg__set_element(x->spec.dtype, &bits, value);
    wg_storage storage = {.data = &bits};
    wg__convert(x, &(wg_tensor){.storage = &storage, .spec = {.dtype = x->spec.dtype}});
    wg_tensor_touch(x);
    return 0;
}

int wg_copy_(wg_tensor *x, const wg_tensor *src) {
    if (!x || !src || wg__check_writable(x, "copy_") < 0 ||
        (!wg__tensor_is_meta(x) && wg__check_memory(src, "copy_") < 0))
        return -1;
    int64_t strides[WG_MAX_DIMS];
    if (!wg__broadcast_strides(src, &x->spec, strides)) {
        char to[128], from[128];
        return wg_fail(WG_ERROR_SHAPE, "copy_", "%s does not broadcast to %s",
                       wg_spec_text(from, sizeof from, &src->spec),
                       wg_spec_text(to, sizeof to, &x->spec));
    }
    if (wg__tensor_is_meta(x))
        return 0;
    wg_tensor *copy;
    if (separate_source(x, &src, &copy) < 0)
        return -1;
    if (wg__overlap_of(x, src) != WG__OVERLAP_SAME)
        wg__convert(x, src);
    wg_release(copy);
    wg_tensor_touch(x);
    return 0;
}

/* The loop NAME of x += alpha y. */
#define ADD(NAME, TYPE)                                                                            \
    static void NAME(int64_t n, char *const *data, const int64_t *strides, const void *alpha) {    \
        const TYPE scale = (TYPE) * (const double *)alpha;                                         \
        const int64_t size = (int64_t)sizeof(TYPE);                                                \
        const int64_t sx = strides[0] / size, sy = strides[1] / size;                              \
        TYPE *x = (TYPE *)data[0];                                                                 \
        const TYPE *y = (const TYPE *)data[1];                                                     \
        if (sx == 1 && sy == 1)                                                                    \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i] += scale * y[i];                                                              \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                x[i * sx] += scale * y[i * sy];                                                    \
    }

ADD(add_f32, float)
ADD(add_f64, double)

typedef struct any_add {
    wg_dtype dtype;
    double alpha;
} any_add;

static void add_any(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    const any_add *add = context;
    for (int64_t i = 0; i < n; i++) {
        char *x = data[0] + i * strides[0];
        wg__set_element(add->dtype, x,
                        wg__element(add->dtype, x) +
                            add->alpha * wg__element(add->dtype, data[1] + i * strides[1]));
    }
}

int wg_add_(wg_tensor *x, const wg_tensor *y, double alpha) {
    if (!x || !y || wg__check_writable(x, "add_") < 0 ||
        (!wg__tensor_is_meta(x) && wg__check_memory(y, "add_") < 0))
        return -1;
    if (!wg__same_shape(&x->spec, &y->spec) || x->spec.dtype != y->spec.dtype) {
        char to[128], from[128];
        return wg_fail(x->spec.dtype == y->spec.dtype ? WG_ERROR_SHAPE : WG_ERROR_DTYPE, "add_",
                       "%s += %s; wanted the same shape and dtype",
                       wg_spec_text(to, sizeof to, &x->spec),
                       wg_spec_text(from, sizeof from, &y->spec));
    }
    if (wg__tensor_is_meta(x))
        return 0;
    wg_tensor *copy;
    if (separate_source(x, &y, &copy) < 0)
        return -1;
    wg_tensor *operands[] = {x, (wg_tensor *)y};
    any_add any = {x->spec.dtype, alpha};
    if (x->spec.dtype == WG_F32)
        wg__iterate(2, operands, add_f32, &alpha);
    else if (x->spec.dtype == WG_F64)
        wg__iterate(2, operands, add_f64, &alpha);
    else
        wg__iterate(2, operands, add_any, &any);
    wg_release(copy);
    wg_tensor_touch(x);
    return 0;
}

static void scale_any(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    const any_add *scale = context;
    for (int64_t i = 0; i < n; i++) {
        char *x = data[0] + i * strides[0];
        wg__set_element(scale->dtype, x, scale->alpha * wg__element(scale->dtype, x));
    }
}

int wg_scale_(wg_tensor *x, double alpha) {
    if (!x || wg__check_writable(x, "scale_") < 0)
        return -1;
    if (!wg_dtype_is_float(x->spec.dtype))
        return wg_fail(WG_ERROR_DTYPE, "scale_", "%s; wanted a floating dtype",
                       wg_dtype_name(x->spec.dtype));
    if (wg__tensor_is_meta(x))
        return 0;
    any_add scale = {x->spec.dtype, alpha};
    wg__iterate(1, &x, scale_any, &scale);
    wg_tensor_touch(x);
    return 0;
}
