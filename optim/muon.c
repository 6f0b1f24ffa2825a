/* Muon   (Jordan et al. 2024): a matrix moves along the orthogonal factor of its momentum, which
 * the Newton-Schulz iteration
 *
 *     X = X / |X|;   five times: A = X X^T,  X = a X + (b A + c A^2) X
 *
 * finds roughly: a, b and c are chosen to bring singular values near 1 quickly, not exactly.
 * Products are taken over the shorter side. Whatever is no hidden matrix is AdamW's. */
#include "optim/internal.h"

#include <math.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/iter.h"

enum { ITERATIONS = 5 };
static const double coefficients[] = {3.4445, -4.7750, 2.0315};

/* Added to the norm that a matrix is divided by: one of zeros stays so. */
#define NORM_EPS 1e-7

/* ---- Parameters ---- */

/* Embeddings and output layers are matrices by their shape alone. */
static const char *const default_adamw_names[] = {"embed", "wte",  "wpe", "shared",
                                                  "head",  "cls.", NULL};

static bool is_named(const char *const *parts, const char *name) {
    for (; *parts; parts++)
        if (strstr(name, *parts))
            return true;
    return false;
}

/* A matrix with its shorter side first, and how to read it so. */
typedef struct sides {
    int64_t shorter, longer;
    int64_t row_stride, column_stride;
} sides;

static sides sides_of(const wg_tensor *parameter) {
    const int64_t *shape = wg_tensor_shape(parameter);
    if (shape[0] <= shape[1])
        return (sides){shape[0], shape[1], shape[1], 1};
    return (sides){shape[1], shape[0], 1, shape[1]};
}

static int64_t chunks_of(int64_t count) {
    return (count + WG__GRAIN - 1) / WG__GRAIN;
}

/* In the scratch: sums of the chunks, X and the next X, A and b A + c A^2. */
static size_t scratch_size(const wg_tensor *parameter) {
    int64_t count = wg_tensor_count(parameter), shorter = sides_of(parameter).shorter;
    size_t numbers = 2 * (size_t)count + 2 * (size_t)(shorter * shorter);
    return (size_t)chunks_of(count) * sizeof(double) +
           numbers * wg_dtype_size(wg_tensor_dtype(parameter));
}

static int prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    const char *const *names = optimizer->options.muon.adamw_names;
    entry->as_matrix = wg_tensor_ndim(entry->parameter) == 2 && !is_named(names, entry->name);
    if (!entry->as_matrix)
        return wg__adam_prepare(optimizer, entry);
    if (wg__optimizer_add_state_like(entry, "momentum_buffer") < 0)
        return -1;
    return wg__optimizer_reserve_scratch(optimizer, scratch_size(entry->parameter));
}

/* ---- One matrix ---- */

typedef struct matrix_step {
    const wg_optimizer *optimizer;
    const wg__optimizer_entry *entry;
    const wg__optimizer_loops *loops;
    int64_t count;
    double *sums;
    char *x, *next, *a, *b;
    double factor;          /* what X is multiplied by before the iteration */
    double keep, step_size; /* of the update */
} matrix_step;

static void divide_scratch(matrix_step *step) {
    size_t size = wg_dtype_size(step->entry->dtype);
    int64_t shorter = sides_of(step->entry->parameter).shorter;
    step->sums = step->optimizer->scratch;
    step->x = (char *)(step->sums + chunks_of(step->count));
    step->next = step->x + (size_t)step->count * size;
    step->a = step->next + (size_t)step->count * size;
    step->b = step->a + (size_t)(shorter * shorter) * size;
}

static void *element(const matrix_step *step, char *numbers, int64_t at) {
    return numbers + (size_t)at * wg_dtype_size(step->entry->dtype);
}

static void take_momentum(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    step->sums[begin / WG__GRAIN] = step->loops->nesterov(
        end - begin, step->optimizer->gradient_scale, step->optimizer->options.muon.momentum,
        wg__entry_gradient(step->entry, begin), wg__entry_state(step->entry, 0, begin),
        element(step, step->x, begin));
}

static void scale(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    step->loops->scale(end - begin, step->factor, element(step, step->x, begin));
}

static void apply(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    step->loops->apply(end - begin, step->keep, step->step_size, element(step, step->x, begin),
                       wg__entry_weight(step->entry, begin));
}

static void normalise(matrix_step *step) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < chunks_of(step->count); chunk++)
        sum += step->sums[chunk];
    step->factor = 1 / (sqrt(sum) + NORM_EPS);
    wg__parallel_for(step->count, WG__GRAIN, scale, step);
}

static void add_to_diagonal(const matrix_step *step, int64_t size, double number) {
    for (int64_t i = 0; i < size; i++) {
        if (step->entry->dtype == WG_F64)
            ((double *)step->b)[i * (size + 1)] += number;
        else
            ((float *)step->b)[i * (size + 1)] += (float)number;
    }
}

/* X = (a + b A + c A^2) X */
static void orthogonalise(matrix_step *step) {
    sides sides = sides_of(step->entry->parameter);
    wg_dtype dtype = step->entry->dtype;
    int64_t m = sides.shorter, n = sides.longer;
    wg__matrix a = {step->a, m, 1}, b = {step->b, m, 1};
    for (int i = 0; i < ITERATIONS; i++) {
        wg__matrix x = {step->x, sides.row_stride, sides.column_stride};
        wg__matrix transposed = {step->x, sides.column_stride, sides.row_stride};
        wg__matrix next = {step->next, sides.row_stride, sides.column_stride};
        wg__gemm(&(wg__product){
            .dtype = dtype, .m = m, .n = m, .k = n, .alpha = 1, .a = x, .b = transposed, .c = a});
        memcpy(step->b, step->a, (size_t)(m * m) * wg_dtype_size(dtype));
        wg__gemm(&(wg__product){.dtype = dtype,
                                .m = m,
                                .n = m,
                                .k = m,
                                .alpha = coefficients[2],
                                .beta = coefficients[1],
                                .a = a,
                                .b = a,
                                .c = b});
        add_to_diagonal(step, m, coefficients[0]);
        wg__gemm(&(wg__product){
            .dtype = dtype, .m = m, .n = n, .k = m, .alpha = 1, .a = b, .b = x, .c = next});
        char *spare = step->x;
        step->x = step->next;
        step->next = spare;
    }
}

/* Jordan's sqrt(max(1, rows / columns)); or 0.2 sqrt(max(rows, columns)), by which the update has
 * about the root mean square of AdamW's (Liu et al. 2025). */
static double shape_factor(const wg_tensor *parameter, bool match_adamw) {
    double rows = (double)wg_tensor_shape(parameter)[0];
    double columns = (double)wg_tensor_shape(parameter)[1];
    return match_adamw ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns));
}

static void step_matrix(const wg_optimizer *optimizer, const wg__optimizer_entry *entry,
                        double learning_rate) {
    const wg_muon_options *options = &optimizer->options.muon;
    double decay = entry->no_decay ? 0 : options->weight_decay;
    matrix_step step = {
        .optimizer = optimizer,
        .entry = entry,
        .loops = wg__optimizer_loops_of(optimizer, entry),
        .count = wg_tensor_count(entry->parameter),
        .keep = 1 - learning_rate * decay,
        .step_size = learning_rate * shape_factor(entry->parameter, options->match_adamw),
    };
    divide_scratch(&step);
    wg__parallel_for(step.count, WG__GRAIN, take_momentum, &step);
    normalise(&step);
    orthogonalise(&step);
    wg__parallel_for(step.count, WG__GRAIN, apply, &step);
}

/* ---- All of them ---- */

typedef struct update {
    const wg_optimizer *optimizer;
    wg__adam_rates rates;
} update;

static void update_rest(const wg__optimizer_chunk *chunk, void *context) {
    const update *step = context;
    if (!chunk->entry->as_matrix)
        wg__adam_update_chunk(step->optimizer, chunk, &step->rates);
}

static void step(wg_optimizer *optimizer, double learning_rate) {
    const wg_muon_options *options = &optimizer->options.muon;
    double rest_rate = learning_rate * options->adamw_rate;
    update rest = {optimizer, wg__adamw_rates(&options->adamw, optimizer, rest_rate)};
    wg__optimizer_walk(optimizer, update_rest, &rest);
    for (int64_t i = optimizer->first; i < optimizer->last; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        if (entry->as_matrix && entry->gradient && wg_tensor_count(entry->parameter) > 0)
            step_matrix(optimizer, entry, learning_rate);
    }
}

static const wg__optimizer_rule muon = {.prepare = prepare, .step = step};

wg_optimizer *wg_muon_new(const wg_muon_options *options) {
    static const char where[] = "muon_new";
    wg_muon_options chosen = options ? *options : (wg_muon_options){0};
    if (chosen.momentum == 0)
        chosen.momentum = 0.95;
    if (chosen.adamw_rate == 0)
        chosen.adamw_rate = 1;
    if (!chosen.adamw_names)
        chosen.adamw_names = default_adamw_names;
    if (wg__check_fraction(where, "momentum", chosen.momentum) < 0 ||
        wg__check_not_negative(where, "weight_decay", chosen.weight_decay) < 0 ||
        wg__check_positive(where, "adamw_rate", chosen.adamw_rate) < 0 ||
        wg__adamw_fill_options(where, &chosen.adamw) < 0)
        return NULL;
    wg_optimizer *optimizer = wg__optimizer_new(&muon);
    if (optimizer)
        optimizer->options.muon = chosen;
    return optimizer;
}
