/* Positions: rotary, sinusoidal, relative, and in two dimensions; and which positions are seen. */
#include "nn/positions.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

/* Tables up to this size are allocated without checking the free memory. */
#define SMALL_TABLE 0x1p26

static int check_first(const char *where, int64_t first, int64_t positions) {
    if (first < 0)
        return wg_fail(WG_ERROR_ARGUMENT, where, "position %lld is negative", (long long)first);
    return first <= INT64_MAX - positions
               ? 0
               : wg_fail(WG_ERROR_ARGUMENT, where, "%lld positions from %lld on cannot be counted",
                         (long long)positions, (long long)first);
}

/* The spec of a table. -1 with SHAPE if the table has more than 2^62 bytes, with MEMORY if the free
 * memory does not hold it. Two tables of f32, or one of f64, take 8 bytes an element. */
static int check_table(const char *where, wg_spec *spec, wg_dtype dtype, int64_t positions,
                       int64_t columns) {
    if (wg__spec_make(spec, dtype, WG_DIMS(positions, columns), where) < 0)
        return -1;
    const double wanted = (double)positions * (double)columns * sizeof(double);
    if (wg__meta_init || wanted <= SMALL_TABLE)
        return 0;
    const double there = (double)wg__memory_available();
    if (wanted <= there)
        return 0;
    return wg_fail(WG_ERROR_MEMORY, where,
                   "a table of %lld positions wants %.3g GiB, and %.3g are there; take fewer",
                   (long long)positions, wanted / 0x1p30, there / 0x1p30);
}

/* The angle between two neighbouring positions. */
static double step_of(double frequency, const wg_rotary_options *options) {
    const double factor = options->factor == 0 ? 1 : options->factor;
    if (options->original_positions == 0)
        return frequency / factor;
    const double turns = (double)options->original_positions * frequency / (2 * M_PI);
    const double low = options->low_frequency_factor, high = options->high_frequency_factor;
    const double fast = fmin(fmax((turns - low) / (high - low), 0), 1);
    return fast * frequency + (1 - fast) * frequency / factor;
}

int wg__rotary_tables(int64_t width, int64_t first, int64_t positions,
                      const wg_rotary_options *options, wg_tensor **cosines, wg_tensor **sines) {
    *cosines = *sines = NULL;
    options = options ? options : &(const wg_rotary_options){0};
    if (wg__check_size("rotary", "positions", positions) < 0)
        return -1;
    if (width < 2 || width % 2 != 0)
        return wg_fail(WG_ERROR_ARGUMENT, "rotary", "width %lld; wanted an even one, of pairs",
                       (long long)width);
    if (check_first("rotary", first, positions) < 0)
        return -1;
    if (options->base < 0 || options->factor < 0 || !isfinite(options->base) ||
        !isfinite(options->factor))
        return wg_fail(WG_ERROR_ARGUMENT, "rotary", "base %g, factor %g; wanted positive numbers",
                       options->base, options->factor);
    if (options->original_positions < 0 ||
        (options->original_positions > 0 &&
         !(options->high_frequency_factor > options->low_frequency_factor)))
        return wg_fail(WG_ERROR_ARGUMENT, "rotary",
                       "wanted original_positions from 0 on, and high_frequency_factor above "
                       "low_frequency_factor");
    const int64_t pairs = width / 2;
    wg_spec spec;
    if (check_table("rotary", &spec, WG_F32, positions, pairs) < 0)
        return -1;
    wg_tensor *tables[2];
    for (int i = 0; i < 2; i++)
        if (!(tables[i] = wg__tensor_make(&spec, wg__meta_init)))
            return -1;
    *cosines = tables[0];
    *sines = tables[1];
    if (wg__meta_init)
        return 0;
    const double base = options->base == 0 ? 10000 : options->base;
    float *c = wg_tensor_data(tables[0]), *s = wg_tensor_data(tables[1]);
    for (int64_t i = 0; i < pairs; i++) {
        const double step = step_of(pow(base, -(double)i / (double)pairs), options);
        for (int64_t t = 0; t < positions; t++) {
            c[t * pairs + i] = (float)cos((double)(first + t) * step);
            s[t * pairs + i] = (float)sin((double)(first + t) * step);
        }
    }
    return 0;
}

wg_tensor *wg__sinusoidal_table(wg_dtype dtype, int64_t width, int64_t first, int64_t positions,
                                const wg_sinusoidal_options *options) {
    double base = options ? options->base : 0;
    if (wg__check_size("sinusoidal", "width", width) < 0 ||
        wg__check_size("sinusoidal", "positions", positions) < 0 ||
        check_first("sinusoidal", first, positions) < 0)
        return NULL;
    if (base < 0 || !isfinite(base))
        return wg__fail_null(WG_ERROR_ARGUMENT, "sinusoidal", "base %g; wanted a positive number",
                             base);
    if (!wg_dtype_is_float(dtype))
        return wg__fail_null(WG_ERROR_DTYPE, "sinusoidal", "%s; wanted a floating dtype",
                             wg_dtype_name(dtype));
    wg_spec spec;
    if (check_table("sinusoidal", &spec, dtype, positions, width) < 0)
        return NULL;
    if (base == 0)
        base = 10000;
    if (wg__meta_init)
        return wg__tensor_make(&spec, true);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *table = wg_empty(WG_F64, WG_DIMS(positions, width));
    double *p = table ? wg_tensor_data(table) : NULL;
    for (int64_t c = 0; p && c < width; c++) {
        const double step = pow(base, -(double)(c - c % 2) / (double)width);
        for (int64_t t = 0; t < positions; t++) {
            const double angle = (double)(first + t) * step;
            p[t * width + c] = c % 2 == 0 ? sin(angle) : cos(angle);
        }
    }
    return wg_scope_end(&scope, wg_cast(table, dtype));
}

wg_relative_position *wg__relative_position_new(wg_module *parent, const char *name, int64_t heads,
                                                const wg_relative_position_options *options) {
    options = options ? options : &(const wg_relative_position_options){0};
    const int64_t buckets = options->buckets ? options->buckets : 32;
    const int64_t farthest = options->max_distance ? options->max_distance : 128;
    if (wg__check_size("relative_position", "heads", heads) < 0)
        return NULL;
    if (buckets < 4 || buckets % 4 != 0 || farthest <= buckets / 2)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, "relative_position",
            "%lld buckets up to distance %lld; wanted a multiple of 4, and a distance above "
            "half of it",
            (long long)buckets, (long long)farthest);
    wg_relative_position *positions = wg_module_new(parent, name, sizeof *positions);
    if (!positions)
        return NULL;
    positions->max_distance = farthest;
    positions->bidirectional = options->bidirectional;
    const wg_initializer normal = {WG_INIT_NORMAL, 1};
    positions->weight = wg__parameter(&positions->module, "weight", 2, (int64_t[]){buckets, heads},
                                      &options->init, &normal);
    return wg_module_finish(&positions->module);
}

/* The bucket of a distance, key - query. */
static int64_t bucket_of(const wg_relative_position *positions, int64_t distance) {
    int64_t buckets = wg_tensor_size(positions->weight, 0), first = 0;
    int64_t far = distance < 0 ? -distance : 0;
    if (positions->bidirectional) {
        buckets /= 2;
        first = distance > 0 ? buckets : 0;
        far = distance < 0 ? -distance : distance;
    }
    const int64_t exact = buckets / 2;
    if (far < exact)
        return first + far;
    const double share =
        log((double)far / (double)exact) / log((double)positions->max_distance / (double)exact);
    const int64_t wide = exact + (int64_t)(share * (double)(buckets - exact));
    return first + (wide < buckets - 1 ? wide : buckets - 1);
}

wg_tensor *wg__relative_position_forward(wg_relative_position *positions, int64_t first,
                                         int64_t queries, int64_t keys) {
    wg_error_place place;
    wg_module_enter(&positions->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *buckets = wg_empty(WG_I64, WG_DIMS(queries, keys)), *bias = NULL;
    if (buckets) {
        int64_t *bucket = wg_tensor_data(buckets);
        for (int64_t i = 0; i < queries; i++)
            for (int64_t j = 0; j < keys; j++)
                *bucket++ = bucket_of(positions, j - (first + i));
        bias = wg_embedding_op(positions->weight, buckets, -1);
        bias = wg_unsqueeze(wg_permute(bias, WG_DIMS(2, 0, 1)), 0);
    }
    return wg_module_leave(&place, wg_scope_end(&scope, bias));
}

wg_block_position *wg__block_position_new(wg_module *parent, const char *name, int64_t count,
                                          int64_t width, const wg_block_position_options *options) {
    options = options ? options : &(const wg_block_position_options){0};
    wg_block_position *positions = wg_module_new(parent, name, sizeof *positions);
    if (!positions)
        return NULL;
    wg_module *module = &positions->module;
    const wg_embedding_options table = {.init = options->init};
    positions->positions = wg_embedding_new(module, "position_embeddings", count, width, &table);
    positions->block_positions =
        wg_embedding_new(module, "block_position_embeddings", count, width, &table);
    return wg_module_finish(module);
}

wg_tensor *wg__block_position_forward(wg_block_position *positions, wg_tensor *x,
                                      wg_tensor *position_ids, wg_tensor *block_position_ids) {
    wg_error_place place;
    wg_module_enter(&positions->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    x = wg_add(x, wg_embedding_forward(positions->positions, position_ids));
    x = wg_add(x, wg_embedding_forward(positions->block_positions, block_position_ids));
    return wg_module_leave(&place, wg_scope_end(&scope, x));
}

wg_tensor *wg_padding_mask(wg_tensor *keep) {
    if (!keep)
        return NULL;
    if (wg_tensor_ndim(keep) != 2 || wg_tensor_dtype(keep) != WG_BOOL)
        return wg__fail_null(wg_tensor_ndim(keep) != 2 ? WG_ERROR_SHAPE : WG_ERROR_DTYPE,
                             "padding_mask", "rank %d %s; wanted (B, T) bool", wg_tensor_ndim(keep),
                             wg_dtype_name(wg_tensor_dtype(keep)));
    return wg_reshape(keep, WG_DIMS(wg_tensor_size(keep, 0), 1, 1, wg_tensor_size(keep, 1)));
}

wg_tensor *wg__prefix_mask(wg_tensor *prefix, int64_t seen, int64_t queries) {
    if (!prefix)
        return NULL;
    const wg_dtype dtype = wg_tensor_dtype(prefix);
    if (wg_tensor_ndim(prefix) != 1)
        return wg__fail_null(WG_ERROR_SHAPE, "prefix_mask", "prefix has rank %d; wanted (B)",
                             wg_tensor_ndim(prefix));
    if (dtype != WG_I64 && dtype != WG_I32)
        return wg__fail_null(WG_ERROR_DTYPE, "prefix_mask", "prefix is %s; wanted i64 or i32",
                             wg_dtype_name(dtype));
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t keys = seen + queries;
    wg_tensor *before = wg_tril(wg_ones(WG_BOOL, WG_DIMS(queries, keys)), seen);
    wg_tensor *position = wg_arange(dtype, 0, (double)keys, 1);
    wg_tensor *in_prefix = wg_lt(position, wg_reshape(prefix, WG_DIMS(-1, 1, 1, 1)));
    return wg_scope_end(&scope, wg_logical_or(before, in_prefix));
}
