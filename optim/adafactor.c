/* Adafactor   (Shazeer & Stern 2018, algorithms 4 and 5, without momentum, as T5 was trained). The
 * state of a matrix is the means of its second moments along rows and columns,
 *
 *              C 0 1 2 3
 *          R    +-------+
 *          0    |       |      V = R C^T / mean(R)
 *          1    |   V   |
 *          2    |       |
 *               +-------+
 *
 * A tensor with more than two axes is a stack of matrices in its last two axes. The update is
 * clipped by its root mean square, so the gradient is read three times. */
#include "optim/internal.h"

#include <math.h>
#include <string.h>

/* A tensor as `matrices` of rows x columns. The units of parallel work are blocks of whole rows,
 * the same at any number of threads. */
typedef struct layout {
    int64_t matrices, rows, columns;
    int64_t blocks;     /* in a matrix */
    int64_t block_rows; /* in each block but the last */
} layout;

/* Blocks of a matrix; each of them has an array of column sums. */
enum { MAX_BLOCKS = 64 };

static layout layout_of(const wg_tensor *parameter) {
    int ndim = wg_tensor_ndim(parameter);
    const int64_t *shape = wg_tensor_shape(parameter);
    layout l = {.rows = shape[ndim - 2], .columns = shape[ndim - 1]};
    l.matrices = wg_tensor_count(parameter) / (l.rows * l.columns);
    l.block_rows = wg__ceil_divide(WG__GRAIN, l.columns);
    if (l.block_rows < wg__ceil_divide(l.rows, MAX_BLOCKS))
        l.block_rows = wg__ceil_divide(l.rows, MAX_BLOCKS);
    l.blocks = wg__ceil_divide(l.rows, l.block_rows);
    return l;
}

/* ---- State ---- */

static int prepare(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    int64_t count = wg_tensor_count(entry->parameter);
    entry->as_matrix = wg_tensor_ndim(entry->parameter) >= 2 && count > 0;
    if (entry->as_matrix) {
        int ndim = wg_tensor_ndim(entry->parameter);
        const int64_t *shape = wg_tensor_shape(entry->parameter);
        int64_t column_shape[WG_MAX_DIMS];
        memcpy(column_shape, shape, (size_t)ndim * sizeof *shape);
        column_shape[ndim - 2] = shape[ndim - 1];
        if (wg__optimizer_add_state(entry, "exp_avg_sq_row", ndim - 1, shape) < 0 ||
            wg__optimizer_add_state(entry, "exp_avg_sq_col", ndim - 1, column_shape) < 0)
            return -1;
        /* For each block the sums of its update and its weights, the sums of its rows and columns;
         * then the factors of the columns, in the parameter's dtype. */
        const layout l = layout_of(entry->parameter);
        const int64_t blocks = l.matrices * l.blocks;
        const int64_t doubles =
            2 * blocks + l.matrices * l.rows + blocks * l.columns + l.matrices * l.columns;
        return wg__optimizer_reserve_scratch(optimizer, (size_t)doubles * sizeof(double));
    }
    if (wg__optimizer_add_states(entry, (const char *const[]){"exp_avg_sq", NULL}) < 0)
        return -1;
    return wg__optimizer_reserve_scratch(optimizer, 2 * (size_t)wg__ceil_divide(count, WG__GRAIN) *
                                                        sizeof(double));
}

/* ---- Shared by matrices and vectors ---- */

typedef struct tensor_step {
    const wg_optimizer *optimizer;
    const wg__optimizer_entry *entry;
    double beta2;
    layout layout;        /* of a matrix */
    double *update_sums;  /* of a block or chunk: sum U^2 */
    double *weight_sums;  /* sum X^2 */
    double *row_sums;     /* of a matrix; then the factor of each row in U */
    double *column_sums;  /* for each block */
    void *column_factors; /* 1 / sqrt(C) */
    double keep, step_size;
} tensor_step;

static double sum_of(const double *sums, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += sums[i];
    return sum;
}

/* alpha / max(1, RMS(U) / d), and the decay. */
static void set_step_size(tensor_step *step, int64_t parts, double learning_rate) {
    const wg_adafactor_options *options = &step->optimizer->options.adafactor;
    double count = (double)wg_tensor_count(step->entry->parameter);
    double update_rms = sqrt(sum_of(step->update_sums, parts) / count);
    double weight_rms = sqrt(sum_of(step->weight_sums, parts) / count);
    learning_rate *= step->entry->rate;
    double rate = learning_rate;
    if (!options->absolute_rate)
        rate *= fmax(options->eps2, weight_rms);
    const double decay = wg__entry_decay(step->entry, options->weight_decay);
    step->keep = 1 - rate * decay;
    step->step_size =
        rate * step->optimizer->gradient_scale / fmax(1, update_rms / options->clip_threshold);
}

static void set_number(const wg__optimizer_entry *entry, void *numbers, int64_t at, double value) {
    if (entry->dtype == WG_F64)
        ((double *)numbers)[at] = value;
    else
        ((float *)numbers)[at] = (float)value;
}

/* Moves number `at` of a state towards `value` by the factor 1 - beta2, and returns it. */
static double blend_state(const tensor_step *step, int state, int64_t at, double value) {
    void *numbers = wg__entry_state(step->entry, state, 0);
    const double before =
        step->entry->dtype == WG_F64 ? ((double *)numbers)[at] : ((float *)numbers)[at];
    double moved = step->beta2 * before + (1 - step->beta2) * value;
    set_number(step->entry, numbers, at, moved);
    return moved;
}

/* ---- Matrices ---- */

/* The rows of a block: rows of the whole tensor, all within one matrix. */
typedef struct block {
    int64_t first_row, last_row;
    const void *column_factors; /* of the matrix */
} block;

static block block_at(const tensor_step *step, int64_t number) {
    const layout *l = &step->layout;
    const int64_t matrix = number / l->blocks, first = number % l->blocks * l->block_rows;
    const int64_t last = wg__smaller(first + l->block_rows, l->rows);
    const size_t size = wg_dtype_size(step->entry->dtype);
    return (block){matrix * l->rows + first, matrix * l->rows + last,
                   (const char *)step->column_factors + (size_t)(matrix * l->columns) * size};
}

static void sum_squares(int64_t first, int64_t last, void *context) {
    const tensor_step *step = context;
    const wg_adafactor_options *options = &step->optimizer->options.adafactor;
    int64_t columns = step->layout.columns;
    for (int64_t number = first; number < last; number++) {
        block b = block_at(step, number);
        double *column_sums = step->column_sums + number * columns;
        memset(column_sums, 0, (size_t)columns * sizeof *column_sums);
        for (int64_t row = b.first_row; row < b.last_row; row++)
            step->row_sums[row] = step->entry->loops->add_squares(
                columns, step->optimizer->gradient_scale, options->eps1,
                wg__entry_gradient(step->entry, row * columns), column_sums);
        step->weight_sums[number] =
            step->entry->loops->square_sum((b.last_row - b.first_row) * columns,
                                           wg__entry_weight(step->entry, b.first_row * columns));
    }
}

static void update_columns(int64_t first, int64_t last, void *context) {
    const tensor_step *step = context;
    const layout *l = &step->layout;
    for (int64_t i = first; i < last; i++) {
        int64_t matrix = i / l->columns, column = i % l->columns;
        const double *sums = step->column_sums + matrix * l->blocks * l->columns + column;
        double sum = 0;
        for (int64_t k = 0; k < l->blocks; k++)
            sum += sums[k * l->columns];
        double mean = blend_state(step, 1, i, sum / (double)l->rows);
        set_number(step->entry, step->column_factors, i, 1 / sqrt(mean));
    }
}

/* The factor of a row in U is sqrt(mean(R) / R). */
static void update_rows(tensor_step *step) {
    const layout *l = &step->layout;
    for (int64_t matrix = 0; matrix < l->matrices; matrix++) {
        double *rows = step->row_sums + matrix * l->rows;
        double sum = 0;
        for (int64_t row = 0; row < l->rows; row++) {
            rows[row] =
                blend_state(step, 0, matrix * l->rows + row, rows[row] / (double)l->columns);
            sum += rows[row];
        }
        for (int64_t row = 0; row < l->rows; row++)
            rows[row] = sqrt(sum / (double)l->rows / rows[row]);
    }
}

static void measure_update(int64_t first, int64_t last, void *context) {
    const tensor_step *step = context;
    int64_t columns = step->layout.columns;
    for (int64_t number = first; number < last; number++) {
        block b = block_at(step, number);
        double sum = 0;
        for (int64_t row = b.first_row; row < b.last_row; row++)
            sum += step->entry->loops->factored_sum(
                columns, step->optimizer->gradient_scale * step->row_sums[row],
                wg__entry_gradient(step->entry, row * columns), b.column_factors);
        step->update_sums[number] = sum;
    }
}

static void apply_update(int64_t first, int64_t last, void *context) {
    const tensor_step *step = context;
    int64_t columns = step->layout.columns;
    for (int64_t number = first; number < last; number++) {
        block b = block_at(step, number);
        for (int64_t row = b.first_row; row < b.last_row; row++)
            step->entry->loops->factored_apply(
                columns, step->keep, step->step_size * step->row_sums[row],
                wg__entry_gradient(step->entry, row * columns), b.column_factors,
                wg__entry_weight(step->entry, row * columns));
    }
}

/* ---- Vectors and numbers ---- */

static void update_moments(int64_t begin, int64_t end, void *context) {
    const tensor_step *step = context;
    const wg_optimizer *optimizer = step->optimizer;
    int64_t chunk = begin / WG__GRAIN;
    step->update_sums[chunk] = step->entry->loops->second_moment(
        end - begin, optimizer->gradient_scale, step->beta2, optimizer->options.adafactor.eps1,
        wg__entry_gradient(step->entry, begin), wg__entry_state(step->entry, 0, begin));
    step->weight_sums[chunk] =
        step->entry->loops->square_sum(end - begin, wg__entry_weight(step->entry, begin));
}

static void apply_moments(int64_t begin, int64_t end, void *context) {
    const tensor_step *step = context;
    step->entry->loops->second_moment_apply(
        end - begin, step->keep, step->step_size, wg__entry_gradient(step->entry, begin),
        wg__entry_state(step->entry, 0, begin), wg__entry_weight(step->entry, begin));
}

/* ---- All of them ---- */

static int step(wg_optimizer *optimizer, double learning_rate) {
    double decay_rate = optimizer->options.adafactor.decay_rate;
    for (int64_t i = optimizer->first; i < optimizer->last; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        if (!entry->gradient || wg_tensor_count(entry->parameter) == 0)
            continue;
        tensor_step step = {
            .optimizer = optimizer,
            .entry = entry,
            .beta2 = 1 - pow((double)optimizer->steps, -decay_rate),
        };
        if (entry->as_matrix) {
            step.layout = layout_of(step.entry->parameter);
            const layout *l = &step.layout;
            const int64_t blocks = l->matrices * l->blocks;
            step.update_sums = step.optimizer->scratch;
            step.weight_sums = step.update_sums + blocks;
            step.row_sums = step.weight_sums + blocks;
            step.column_sums = step.row_sums + l->matrices * l->rows;
            step.column_factors = step.column_sums + blocks * l->columns;
            wg__parallel_for(blocks, 1, sum_squares, &step);
            wg__parallel_for(l->matrices * l->columns, 256, update_columns, &step);
            update_rows(&step);
            wg__parallel_for(blocks, 1, measure_update, &step);
            set_step_size(&step, blocks, learning_rate);
            wg__parallel_for(blocks, 1, apply_update, &step);
        } else {
            const int64_t count = wg_tensor_count(step.entry->parameter),
                          chunks = wg__ceil_divide(count, WG__GRAIN);
            step.update_sums = step.optimizer->scratch;
            step.weight_sums = step.update_sums + chunks;
            wg__parallel_for(count, WG__GRAIN, update_moments, &step);
            set_step_size(&step, chunks, learning_rate);
            wg__parallel_for(count, WG__GRAIN, apply_moments, &step);
        }
    }
    return 0;
}

/* A parameter is stepped whole: the root mean squares of its update and weights cover all of it. */
static const wg__optimizer_rule adafactor = {.prepare = prepare, .step = step, .steps_whole = true};

wg_optimizer *wg_adafactor_new(const wg_adafactor_options *options) {
    static const char where[] = "adafactor_new";
    wg_adafactor_options chosen = options ? *options : (wg_adafactor_options){0};
    chosen.eps1 = wg__option(chosen.eps1, 1e-30);
    chosen.eps2 = wg__option(chosen.eps2, 1e-3);
    chosen.clip_threshold = wg__option(chosen.clip_threshold, 1);
    chosen.decay_rate = wg__option(chosen.decay_rate, 0.8);
    if (wg__check_option(where, "eps1", chosen.eps1, WG__RANGE_POSITIVE) < 0 ||
        wg__check_option(where, "eps2", chosen.eps2, WG__RANGE_POSITIVE) < 0 ||
        wg__check_option(where, "clip_threshold", chosen.clip_threshold, WG__RANGE_POSITIVE) < 0 ||
        wg__check_option(where, "decay_rate", chosen.decay_rate, WG__RANGE_POSITIVE) < 0 ||
        wg__check_option(where, "weight_decay", chosen.weight_decay, WG__RANGE_NOT_NEGATIVE) < 0)
        return NULL;
    return wg__optimizer_new(&adafactor, &chosen, sizeof chosen);
}
