/* The largest and the smallest element over axes, and where it stands along one axis. */
#include "base/array.h"
#include "base/internal.h"
#include "tensor/ops/reduce/reduction.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- max, min: y = the largest, the smallest over the axes; NaN if there is one.
 * dx = g shared evenly among the elements equal to y. Kinks where there are ties. ---- */

static int minmax_infer(wg_call *call) {
    if (wg__reduced_count(&call->input_specs[0], wg__reduce_options_of(call)->mask) == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no elements to choose from");
    return wg__infer_reduced(call, call->input_specs[0].dtype);
}

/* dy/dx, shared among the elements that are equal to y; all NaN where y is NaN, as PyTorch. */
static wg_tensor *tie_shares(wg_call *call) {
    return wg__shares_of(wg_eq(call->inputs[0], wg__with_axes(call->outputs[0], call)), call);
}

WG__DERIVATIVES_BY(minmax, tie_shares(call))

/* The op NAME, which takes b instead of a where b OVER a, from the neutral values LOWEST,
 * LOWEST_I32 and so on. NaN is the only value that differs from itself; no comparison replaces an
 * accumulator that is NaN. */
#define EXTREMUM(NAME, OVER, LOWEST, LOWEST_I32, LOWEST_I64, LOWEST_U8, ADJECTIVE)                 \
    WG__REDUCTION(NAME##_f32, float, , float, LOWEST, ((b OVER a) | (b != b)) ? b : a, float, )    \
    WG__REDUCTION(NAME##_f64, double, , double, LOWEST, ((b OVER a) | (b != b)) ? b : a, double, ) \
    WG__REDUCTION(NAME##_bf16, uint16_t, wg__bf16_to_f32, float, LOWEST,                           \
                  ((b OVER a) | (b != b)) ? b : a, uint16_t, wg__f32_to_bf16)                      \
    WG__REDUCTION(NAME##_i32, int32_t, , int32_t, LOWEST_I32, b OVER a ? b : a, int32_t, )         \
    WG__REDUCTION(NAME##_i64, int64_t, , int64_t, LOWEST_I64, b OVER a ? b : a, int64_t, )         \
    WG__REDUCTION(NAME##_u8, uint8_t, , uint8_t, LOWEST_U8, b OVER a ? b : a, uint8_t, )           \
    WG__REDUCE_FORWARD(NAME, float, double, int32_t, int64_t, uint8_t)                             \
    static const wg_op NAME##_op = {                                                               \
        WG__REDUCTION_OP(#NAME, "y = the " ADJECTIVE " over the given axes; NaN if there is one. " \
                                "Kinks at ties, which share the gradient evenly."),                \
        .sample = wg__sample_reduction,                                                            \
        .saves_inputs = 1,                                                                         \
        .saves_outputs = 1,                                                                        \
        .differentiable = 1,                                                                       \
        .infer = minmax_infer,                                                                     \
        .forward = NAME##_forward,                                                                 \
        .vjp = minmax_vjp,                                                                         \
        .jvp = minmax_jvp};                                                                        \
    WG__REDUCTION_FUNCTION(NAME, NAME##_op)

EXTREMUM(max, >, -INFINITY, INT32_MIN, INT64_MIN, 0, "largest")
EXTREMUM(min, <, INFINITY, INT32_MAX, INT64_MAX, UINT8_MAX, "smallest")

/* ---- argmax, argmin: y = the index of the first largest, the first smallest element along one
 * axis; of the first NaN, if there is one.
 *
 * The work is cut as in reductions: a block of kept places by a part of the searched axis. ---- */

#define RUN 512 /* elements whose extremum is computed first and located afterwards */

/* Searches `width` lines that start `apart` elements from each other; a line has n places, `along`
 * elements from each other, fewer than 2^31. Writes one place for each line to `found`. */
typedef void (*search_kernel)(const void *x, int64_t n, int64_t along, int64_t width, int64_t apart,
                              int64_t *found);

typedef struct searcher {
    search_kernel lines; /* line by line */
    search_kernel rows;  /* all lines together */
    bool (*takes)(const void *a, const void *b);
} searcher;

/* The kernels NAME on elements of TYPE, which READ reads as AS. The reduction NAME gives the
 * extremum of a run; b replaces a if TAKES. INDEX has the size of AS, so that loops over rows
 * vectorize. */
#define SEARCH(NAME, TYPE, READ, AS, INDEX, TAKES)                                                 \
    static inline bool NAME##_exceeds(AS a, AS b) {                                                \
        return TAKES;                                                                              \
    }                                                                                              \
    static bool NAME##_takes(const void *x, const void *y) {                                       \
        return NAME##_exceeds(READ(*(const TYPE *)x), READ(*(const TYPE *)y));                     \
    }                                                                                              \
    static inline int64_t NAME##_line(const TYPE *x, int64_t n, int64_t along) {                   \
        AS best = READ(x[0]);                                                                      \
        int64_t at = 0;                                                                            \
        for (int64_t i = 0; i < n; i += RUN) {                                                     \
            const AS b = NAME##_run_at(x + i * along, n - i < RUN ? n - i : RUN, along);           \
            if (NAME##_exceeds(best, b)) {                                                         \
                best = b;                                                                          \
                at = i;                                                                            \
            }                                                                                      \
        }                                                                                          \
        while (READ(x[at * along]) != best && best == best)                                        \
            at++;                                                                                  \
        while (best != best && READ(x[at * along]) == READ(x[at * along]))                         \
            at++;                                                                                  \
        return at;                                                                                 \
    }                                                                                              \
    static void NAME##_lines(const void *x, int64_t n, int64_t along, int64_t width,               \
                             int64_t apart, int64_t *found) {                                      \
        for (int64_t l = 0; l < width; l++)                                                        \
            found[l] = along == 1 ? NAME##_line((const TYPE *)x + l * apart, n, 1)                 \
                                  : NAME##_line((const TYPE *)x + l * apart, n, along);            \
    }                                                                                              \
    static inline void NAME##_rows_at(const TYPE *x, int64_t n, int64_t along, int64_t width,      \
                                      int64_t apart, int64_t *found) {                             \
        AS best[WG__BLOCK_WIDTH];                                                                  \
        INDEX at[WG__BLOCK_WIDTH] = {0};                                                           \
        for (int64_t l = 0; l < width; l++)                                                        \
            best[l] = READ(x[l * apart]);                                                          \
        for (int64_t i = 1; i < n; i++)                                                            \
            for (int64_t l = 0; l < width; l++) {                                                  \
                const AS a = best[l], b = READ(x[i * along + l * apart]);                          \
                const bool takes = TAKES;                                                          \
                best[l] = takes ? b : a;                                                           \
                at[l] = takes ? (INDEX)i : at[l];                                                  \
            }                                                                                      \
        for (int64_t l = 0; l < width; l++)                                                        \
            found[l] = at[l];                                                                      \
    }                                                                                              \
    static void NAME##_rows(const void *x, int64_t n, int64_t along, int64_t width, int64_t apart, \
                            int64_t *found) {                                                      \
        if (apart == 1)                                                                            \
            NAME##_rows_at(x, n, along, width, 1, found);                                          \
        else                                                                                       \
            NAME##_rows_at(x, n, along, width, apart, found);                                      \
    }

#define SEARCHES(NAME, FLOAT, INTEGER)                                                             \
    SEARCH(NAME##_f32, float, , float, int32_t, FLOAT)                                             \
    SEARCH(NAME##_f64, double, , double, int64_t, FLOAT)                                           \
    SEARCH(NAME##_bf16, uint16_t, wg__bf16_to_f32, float, int32_t, FLOAT)                          \
    SEARCH(NAME##_i32, int32_t, , int32_t, int32_t, INTEGER)                                       \
    SEARCH(NAME##_i64, int64_t, , int64_t, int64_t, INTEGER)                                       \
    SEARCH(NAME##_u8, uint8_t, , int32_t, int32_t, INTEGER)

/* The first NaN wins. */
SEARCHES(max, (b > a) | ((b != b) & (a == a)), b > a)
SEARCHES(min, (b < a) | ((b != b) & (a == a)), b < a)

#define SEARCHER(NAME)                                                                             \
    { NAME##_lines, NAME##_rows, NAME##_takes }
#define SEARCHERS(NAME)                                                                            \
    {                                                                                              \
        [WG_F32] = SEARCHER(NAME##_f32), [WG_F64] = SEARCHER(NAME##_f64),                          \
        [WG_BF16] = SEARCHER(NAME##_bf16), [WG_I32] = SEARCHER(NAME##_i32),                        \
        [WG_I64] = SEARCHER(NAME##_i64), [WG_U8] = SEARCHER(NAME##_u8),                            \
        [WG_BOOL] = SEARCHER(NAME##_u8)                                                            \
    }

typedef struct search {
    const searcher *searcher;
    const char *x;
    int64_t size; /* bytes of an element */
    int64_t n, along;
    int64_t count; /* of results */
    wg__blocks blocks;
    bool by_rows;
    int64_t parts;
    int64_t *found; /* the results of each part, one part after the other */
} search;

static void plan_items(search *search) {
    const wg__stepped_axis *last = wg__axes_last(&search->blocks.kept);
    int64_t width = wg__smaller(last->size, WG__BLOCK_WIDTH);
    search->by_rows = last->size >= WG__SHORT_ROW && llabs(last->in) < llabs(search->along);
    if (!search->by_rows)
        width = wg__smaller(width, WG__GRAIN / search->n + 1);
    wg__blocks_cut(&search->blocks, width);
    search->parts =
        wg__smaller(search->n * width / WG__GRAIN, WG__MAX_ITEMS / search->blocks.count);
    search->parts = wg__larger(search->parts, search->n / INT32_MAX + 1);
    search->parts = wg__smaller(search->parts, search->n);
}

static void search_items(int64_t begin, int64_t end, void *context) {
    const search *search = context;
    const wg__stepped_axis *last = wg__axes_last(&search->blocks.kept);
    int64_t found[WG__BLOCK_WIDTH];
    for (int64_t item = begin; item < end; item++) {
        const int64_t part = item % search->parts;
        const int64_t first = part * search->n / search->parts;
        const wg__block block = wg__block_at(&search->blocks, item / search->parts);
        const int64_t in = first * search->along + block.in;
        int64_t *out = search->found + part * search->count + block.out;
        (search->by_rows ? search->searcher->rows : search->searcher->lines)(
            search->x + in * search->size, (part + 1) * search->n / search->parts - first,
            search->along, block.width, last->in, found);
        for (int64_t l = 0; l < block.width; l++)
            /* cppcheck-suppress uninitvar ; the searcher set them */
            out[l * last->out] = first + found[l];
    }
}

/* The address of place `at` of the line that gives result number `out`. */
static const void *element_of(const search *search, int64_t out, int64_t at) {
    const wg__axes *kept = &search->blocks.kept;
    int64_t in = at * search->along;
    for (int i = 0; i < kept->count; i++)
        in += out / kept->axis[i].out % kept->axis[i].size * kept->axis[i].in;
    return search->x + in * search->size;
}

/* Joins the results of the parts, in their order, into those of the first part. */
static void join_found(const search *search) {
    for (int64_t i = 0; i < search->count; i++)
        for (int64_t part = 1; part < search->parts; part++) {
            int64_t *best = &search->found[i];
            const int64_t other = search->found[part * search->count + i];
            if (search->searcher->takes(element_of(search, i, *best), element_of(search, i, other)))
                *best = other;
        }
}

static int search_call(wg_call *call, const searcher *searchers) {
    const wg_tensor *x = call->inputs[0];
    const int64_t mask = wg__reduce_options_of(call)->mask;
    int axis = 0;
    while ((mask >> axis & 1) == 0)
        axis++;
    int64_t *y = wg__tensor_address(call->outputs[0]);
    search search = {.searcher = &searchers[x->spec.dtype],
                     .x = wg__tensor_address(x),
                     .size = (int64_t)wg_dtype_size(x->spec.dtype),
                     .n = x->spec.shape[axis],
                     .along = x->strides[axis],
                     .count = wg__spec_count(&call->outputs[0]->spec),
                     .blocks.kept = wg__axes_kept(x, mask),
                     .found = y};
    if (search.count == 0)
        return 0;
    plan_items(&search);
    const size_t bytes = (size_t)search.count * sizeof *y;
    if (search.parts > 1)
        search.found = wg__alloc_array(search.parts, bytes);
    if (search.found == NULL)
        return -1;
    const int64_t work = search.n * search.blocks.width / search.parts + 1;
    wg__parallel_for(search.blocks.count * search.parts, WG__GRAIN / work + 1, search_items,
                     &search);
    if (search.parts > 1) {
        join_found(&search);
        memcpy(y, search.found, bytes);
        wg__free(search.found);
    }
    return 0;
}

static int search_infer(wg_call *call) {
    if (minmax_infer(call) < 0)
        return -1;
    call->output_specs[0].dtype = WG_I64;
    return 0;
}

static int search_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const wg__reduce_options options[] = {{2, false}, {1, true}, {1, false}};
    static const int64_t shapes[][2] = {{3, 4}, {3, 4}, {2, 9}};
    if (index >= 3)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_distinct(generator, 2, shapes[index]);
    return wg__sample_status(sample, 1);
}

static wg_tensor *searched(const wg_op *op, wg_tensor *x, int axis, bool keepdim) {
    const int along = x == NULL ? -1 : wg__axis(axis, x->spec.ndim, op->name);
    if (along < 0)
        return NULL;
    return wg_apply_one(op, 1, &x, &(wg__reduce_options){(int64_t)1 << along, keepdim});
}

/* The op NAME, which finds the extremum OF. */
#define ARGUMENT(NAME, OF, ADJECTIVE)                                                              \
    static int NAME##_forward(wg_call *call) {                                                     \
        static const searcher searchers[WG_DTYPE_COUNT] = SEARCHERS(OF);                           \
        return search_call(call, searchers);                                                       \
    }                                                                                              \
    static const wg_op NAME = {                                                                    \
        WG__REDUCTION_OP(#NAME, "y = the i64 index of the first " ADJECTIVE                        \
                                " element along one axis; a NaN is the " ADJECTIVE "."),           \
        .no_gradient = "its values are indices: piecewise constant in the operand",                \
        .infer = search_infer, .forward = NAME##_forward, .sample = search_sample};                \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis, bool keepdim) {                                   \
        return searched(&NAME, x, axis, keepdim);                                                  \
    }

ARGUMENT(argmax, max, "largest")
ARGUMENT(argmin, min, "smallest")

static const wg_op *const ops[] = {&max_op, &min_op, &argmax, &argmin};

const wg__op_table wg__ops_minmax = {ops, sizeof ops / sizeof *ops};
