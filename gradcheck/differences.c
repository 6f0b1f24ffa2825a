/* Compares central differences with the gradients of backward, coordinate by coordinate or in
 * random directions. Where they disagree, searches the Jacobian for the pattern of a known mistake.
 */
#include "gradcheck/check.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/ops.h"

/* Entries of a Jacobian beyond which only its product with the random cotangent is compared. */
#define MAX_ENTRIES ((int64_t)1 << 22)

/* ---- Moving inputs ---- */

/* Adds `step` to an element, and returns the step after rounding. */
static double move_element(const wg_tensor *x, int64_t number, double step) {
    void *address = wg__element_address(x, number);
    const double before = wg__element(x->spec.dtype, address);
    wg__set_element(x->spec.dtype, address, before + step);
    return wg__element(x->spec.dtype, address) - before;
}

int wg__gradcheck_evaluate_moved(wg__gradcheck *c, const double *direction, int64_t at, double step,
                                 double *made, double *values) {
    *made = step;
    for (int w = 0; w < c->wanted.count; w++) {
        int64_t begin = c->wanted.at[w], count = wg_tensor_count(c->wanted.tensors[w]);
        if (!direction && (at < begin || at >= begin + count))
            continue;
        for (int64_t i = 0; direction && i < count; i++)
            move_element(c->wanted.tensors[w], i, step * direction[begin + i]);
        if (!direction)
            *made = move_element(c->wanted.tensors[w], at - begin, step);
        wg_tensor_touch(c->wanted.tensors[w]);
    }
    int status = wg__gradcheck_evaluate(c, values, NULL);
    wg__gradcheck_restore(c);
    return status;
}

int wg__gradcheck_slope(wg__gradcheck *c, const double *direction, int64_t at, double eps) {
    double up, down;
    if (wg__gradcheck_evaluate_moved(c, direction, at, eps, &up, c->plus) < 0 ||
        wg__gradcheck_evaluate_moved(c, direction, at, -eps, &down, c->minus) < 0)
        return -1;
    for (int64_t i = 0; i < c->weighted.elements; i++) {
        /* divided by the step after rounding, which keeps digits */
        c->slopes[i] = (c->plus[i] - c->minus[i]) / (up - down);
        c->spreads[i] =
            fabs((c->plus[i] - c->values[i]) / up - (c->minus[i] - c->values[i]) / down) / 2;
    }
    return 0;
}

/* The current slopes, weighted by the cotangents and summed. */
static double weighted_slope(const wg__gradcheck *c) {
    double sum = 0;
    for (int64_t i = 0; i < c->weighted.elements; i++)
        sum += c->weight_values[i] * c->slopes[i];
    return sum;
}

/* ---- Kinks ---- */

static double tolerance(const wg__gradcheck *c, double numeric) {
    return c->options.atol + c->options.rtol * fabs(numeric);
}

bool wg__gradcheck_agrees(const wg__gradcheck *c, double numeric, double analytic, double radius) {
    return fabs(numeric - analytic) <= tolerance(c, numeric) + radius; /* false for NaN */
}

/* Compares one-sided slopes of two step sizes. With a smaller step their difference stays at a
 * kink, shrinks on a curve and grows at a jump. Leaves only the spreads of kinks in c->spreads. */
static int settle_kinks(wg__gradcheck *c, int64_t at) {
    bool any = false;
    for (int64_t i = 0; i < c->weighted.elements; i++) {
        any |= c->spreads[i] > tolerance(c, c->slopes[i]);
        if (!(c->spreads[i] > tolerance(c, c->slopes[i])))
            c->spreads[i] = 0;
    }
    if (!any)
        return 0;
    size_t bytes = (size_t)c->weighted.elements * sizeof(double);
    double *slopes = c->first, *spreads = c->far;
    memcpy(slopes, c->slopes, bytes);
    memcpy(spreads, c->spreads, bytes);
    const double nearer = c->dtype == WG_F64 ? 1e-3 : 0.125;
    int status = wg__gradcheck_slope(c, NULL, at, nearer * c->options.eps);
    for (int64_t i = 0; i < c->weighted.elements && status == 0; i++) {
        double near_slope = c->slopes[i], near_spread = c->spreads[i];
        c->slopes[i] = slopes[i];
        c->spreads[i] = spreads[i];
        if (spreads[i] == 0)
            continue;
        bool is_jump = near_spread > 3 * spreads[i];
        bool is_kink = !is_jump && near_spread >= spreads[i] / 2;
        c->found.jumps |= is_jump;
        c->kinks_at[at] += is_kink;
        if (!is_kink)
            c->spreads[i] = 0;
        if (!is_kink && !is_jump && c->dtype == WG_F64) /* the kink is within eps, not at x */
            c->slopes[i] = near_slope;
    }
    return status;
}

/* The rounding error of a difference of that value; in f64 it is far below the tolerances. */
static double rounding(const wg__gradcheck *c, int64_t value) {
    return c->dtype == WG_F64 ? 0 : 4 * FLT_EPSILON * fabs(c->values[value]) / (2 * c->options.eps);
}

/* ---- Slow: every coordinate ---- */

/* Whether c->slopes agree with the gradients of backward at a coordinate. */
static bool slopes_agree(const wg__gradcheck *c, int64_t at) {
    double numeric = 0, radius = 0;
    for (int64_t i = 0; i < c->weighted.elements; i++) {
        double spread = c->spreads[i] + rounding(c, i);
        numeric += c->weight_values[i] * c->slopes[i];
        radius += fabs(c->weight_values[i]) * spread;
        if (c->entries.analytic &&
            !wg__gradcheck_agrees(c, c->slopes[i],
                                  c->entries.analytic[at * c->weighted.elements + i], spread))
            return false;
    }
    return wg__gradcheck_agrees(c, numeric, c->sums.analytic[at], radius);
}

/* If the slopes disagree with backward, repeats them with less rounding error: a larger step,
 * extrapolated, (4 s(h / 2) - s(h)) / 3. */
static int refine(wg__gradcheck *c, int64_t at) {
    if (c->dtype != WG_F64 || c->kinks_at[at] > 0 || c->found.jumps || slopes_agree(c, at))
        return 0;
    size_t bytes = (size_t)c->weighted.elements * sizeof(double);
    const double h = 1e3 * c->options.eps;
    memcpy(c->first, c->slopes, bytes);
    int status = wg__gradcheck_slope(c, NULL, at, h);
    memcpy(c->far, c->slopes, bytes);
    if (status == 0)
        status = wg__gradcheck_slope(c, NULL, at, h / 2);
    for (int64_t i = 0; i < c->weighted.elements && status == 0; i++) {
        c->slopes[i] = (4 * c->slopes[i] - c->far[i]) / 3;
        c->spreads[i] = 0;
    }
    if (status == 0 && !slopes_agree(c, at))
        memcpy(c->slopes, c->first, bytes);
    return status;
}

static int difference_rows(wg__gradcheck *c) {
    for (int64_t at = 0; at < c->wanted.elements; at++) {
        if (wg__gradcheck_slope(c, NULL, at, c->options.eps) < 0 || settle_kinks(c, at) < 0 ||
            refine(c, at) < 0)
            return -1;
        c->sums.numeric[at] = c->sums.radius[at] = 0;
        for (int64_t i = 0; i < c->weighted.elements; i++) {
            c->spreads[i] += rounding(c, i);
            c->sums.numeric[at] += c->weight_values[i] * c->slopes[i];
            c->sums.radius[at] += fabs(c->weight_values[i]) * c->spreads[i];
        }
        if (!c->entries.analytic)
            continue;
        size_t bytes = (size_t)c->weighted.elements * sizeof(double);
        memcpy(c->entries.numeric + at * c->weighted.elements, c->slopes, bytes);
        memcpy(c->entries.radius + at * c->weighted.elements, c->spreads, bytes);
    }
    return 0;
}

/* Makes the whole Jacobian if it is small enough: a backward pass through one graph for the unit
 * cotangent of each value. In order 2 only the random cotangent is used, since every evaluation is
 * itself a backward pass. */
static int make_jacobians(wg__gradcheck *c) {
    int64_t entries = c->wanted.elements * c->weighted.elements;
    if (c->order > 1 || c->entries.analytic || entries == 0 || entries > MAX_ENTRIES)
        return 0;
    for (int k = 0; k < c->weighted.count; k++)
        if (c->output_specs[c->weighted.index[k]].dtype == WG_BF16)
            return 0;
    c->entries.analytic = wg__calloc((size_t)entries, sizeof(double));
    c->entries.numeric = wg__calloc((size_t)entries, sizeof(double));
    c->entries.radius = wg__calloc((size_t)entries, sizeof(double));
    if (wg_error_pending())
        return wg__gradcheck_no_memory(c);
    wg_tensor **units = wg__calloc((size_t)c->weighted.count + 1, sizeof *units);
    wg__gradcheck again = *c;
    again.weighted.tensors = units;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = units ? wg__gradcheck_run(c) : -1;
    for (int64_t i = 0; i < c->weighted.elements && status == 0; i++) {
        int k = wg__selection_find(&c->weighted, i);
        const wg_spec *spec = &c->output_specs[c->weighted.index[k]];
        wg_scope inner;
        wg_scope_begin(&inner);
        memset(units, 0, (size_t)c->weighted.count * sizeof *units);
        units[k] = wg_zeros(spec->dtype, spec->ndim, spec->shape);
        if (units[k])
            move_element(units[k], i - c->weighted.at[k], 1);
        status = wg__gradcheck_pull(&again, true, c->gradient);
        for (int64_t at = 0; at < c->wanted.elements && status == 0; at++)
            c->entries.analytic[at * c->weighted.elements + i] = c->gradient[at];
        wg_scope_end(&inner, NULL);
    }
    wg_scope_end(&scope, NULL);
    wg__free(units);
    return status;
}

/* ---- Diagnosis: patterns that the usual mistakes leave in the Jacobian.
 *
 * Only the rows of the input that disagrees most are searched. Without a Jacobian (a large one,
 * second order) there is a single column, the sum under the random weights. ---- */

/* The rows of a wanted input. */
typedef struct block {
    wg__gradcheck *c;
    int w;            /* which wanted input */
    int64_t at, rows; /* its coordinates */
    int64_t columns;  /* values, or 1 */
    int64_t entries;  /* rows * columns */
    const double *numeric, *analytic, *radius;
    char where[256]; /* "input 0 at (0, 1): numeric 2, analytic 1 (...)" */
} block;

static block block_of(wg__gradcheck *c, int w) {
    const wg__comparison *all = c->entries.analytic ? &c->entries : &c->sums;
    block b = {.c = c, .w = w, .at = c->wanted.at[w], .columns = 1};
    if (c->entries.analytic)
        b.columns = c->weighted.elements;
    b.rows = wg_tensor_count(c->wanted.tensors[w]);
    b.entries = b.rows * b.columns;
    b.numeric = all->numeric + b.at * b.columns;
    b.analytic = all->analytic + b.at * b.columns;
    b.radius = all->radius + b.at * b.columns;
    return b;
}

/* The last entry of a row that disagrees; -1: none. */
static int64_t wrong_entry(const block *b, int64_t row) {
    int64_t i = (row + 1) * b->columns - 1;
    while (i >= row * b->columns &&
           wg__gradcheck_agrees(b->c, b->numeric[i], b->analytic[i], b->radius[i]))
        i--;
    return i >= row * b->columns ? i : -1;
}

static bool row_agrees(const block *b, int64_t row) {
    const wg__comparison *sums = &b->c->sums;
    const int64_t at = b->at + row;
    return wg__gradcheck_agrees(b->c, sums->numeric[at], sums->analytic[at], sums->radius[at]) &&
           wrong_entry(b, row) < 0;
}

WG_PRINTF(3, 4)
static int found(const block *b, wg_diagnosis diagnosis, const char *format, ...) {
    char detail[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return wg__gradcheck_fail(b->c, diagnosis, b->c->wanted.index[b->w], "%s%s%s", b->where,
                              *detail ? "; " : "", detail);
}

const char *wg__gradcheck_unsaved(char *buffer, size_t size, const wg__gradcheck *c) {
    buffer[0] = '\0';
    for (int i = 0; i < c->user_count && !buffer[0]; i++)
        if (!(c->op->saves_inputs >> i & 1) && c->inputs[i])
            snprintf(buffer, size, "; input %d is not in saves_inputs, so it is NULL there", i);
    return buffer;
}

/* ---- Patterns. Each returns -1 with a verdict if it fits, 0 if it does not. ---- */

static int not_finite_or_zero(const block *b) {
    const wg__gradcheck *c = b->c;
    for (int64_t i = 0; i < b->entries; i++)
        if (!isfinite(b->analytic[i]) && isfinite(b->numeric[i]))
            return found(b, WG_DIAGNOSIS_NOT_FINITE, "%s", "");
    for (int64_t i = 0; i < b->entries; i++)
        if (b->analytic[i] != 0)
            return 0;
    for (int64_t i = 0; i < b->rows; i++)
        if (c->sums.analytic[b->at + i] != 0)
            return 0;
    if (c->order > 1)
        return found(b, WG_DIAGNOSIS_CUT, "every analytic one is 0");
    if (!c->op)
        return found(b, WG_DIAGNOSIS_DETACHED, "every analytic one is 0");
    char unsaved[96];
    if (c->found.null_gradient[c->wanted.index[b->w]])
        return found(b, WG_DIAGNOSIS_MISSING, "the vjp left it NULL%s",
                     wg__gradcheck_unsaved(unsaved, sizeof unsaved, c));
    return found(b, WG_DIAGNOSIS_ZERO, "all %lld are 0", (long long)b->rows);
}

/* No value changes when the input changes in place, but a changed copy gives other values. */
static int is_remembered(const block *b) {
    wg__gradcheck *c = b->c;
    for (int64_t i = 0; i < b->entries; i++)
        if (b->numeric[i] != 0)
            return 0;
    wg_tensor **copies = wg__calloc((size_t)c->input_count + 1, sizeof *copies);
    bool differs = false;
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; copies && i < c->input_count; i++)
        copies[i] = i == c->wanted.index[b->w] ? wg_affine(wg_detach(c->inputs[i]), 1 - 1.0 / 16, 0)
                                               : c->inputs[i];
    wg__gradcheck again = *c;
    wg_gradcheck_report ignored = *c->report;
    again.report = &ignored;
    again.inputs = copies;
    if (copies && wg__gradcheck_evaluate(&again, c->plus, NULL) == 0)
        for (int64_t i = 0; i < c->weighted.elements; i++)
            differs |= c->plus[i] != c->values[i];
    wg_scope_end(&scope, NULL);
    wg__free(copies);
    wg_error_clear();
    return differs ? found(b, WG_DIAGNOSIS_REMEMBERED, "%s",
                           "no value moves with the input in place, but a copy moves them")
                   : 0;
}

/* Every coordinate that disagrees is a kink. */
static int at_a_kink(const block *b) {
    int64_t worst = -1;
    for (int64_t row = 0; row < b->rows; row++) {
        if (row_agrees(b, row))
            continue;
        if (b->c->kinks_at[b->at + row] == 0)
            return 0;
        if (wrong_entry(b, row) >= 0)
            worst = wrong_entry(b, row);
    }
    if (worst < 0)
        return 0;
    return found(b, WG_DIAGNOSIS_KINK, "the slopes to its sides are %.6g and %.6g",
                 b->numeric[worst] - b->radius[worst], b->numeric[worst] + b->radius[worst]);
}

/* ---- Gradients that do not depend on cotangents or inputs ---- */

/* Whether the gradient of the last run equals the first gradient. */
static bool is_same(const wg__gradcheck *c, int64_t at, int64_t rows) {
    double largest = 0, difference = 0;
    for (int64_t i = at; i < at + rows; i++) {
        largest = fmax(largest, fabs(c->sums.analytic[i]));
        difference = fmax(difference, fabs(c->sums.analytic[i] - c->gradient[i]));
    }
    return difference <= (c->dtype == WG_F64 ? 1e-12 : 1e-6) * largest;
}

/* Sets the wanted inputs to `factor` times `values`. */
static void set_inputs(wg__gradcheck *c, const double *values, double factor) {
    for (int w = 0; w < c->wanted.count; w++) {
        wg_tensor *x = c->wanted.tensors[w];
        for (int64_t i = 0; i < wg_tensor_count(x); i++)
            wg__set_element(c->dtype, wg__element_address(x, i),
                            factor * values[c->wanted.at[w] + i]);
        wg_tensor_touch(x);
    }
}

/* Computes the gradient with all inputs scaled by 15/16. *differs: whether the numeric derivative
 * differs there. Restores the inputs, but not the snapshots. */
static int pull_elsewhere(const block *b, bool *differs) {
    wg__gradcheck *c = b->c;
    double *before = c->other;
    for (int w = 0; w < c->wanted.count; w++)
        wg__read_doubles(wg_detach(c->wanted.tensors[w]), before + c->wanted.at[w]);
    set_inputs(c, before, 1 - 1.0 / 16);
    int status = 0;
    for (int w = 0; w < c->wanted.count && status == 0; w++) {
        wg__snapshot *snapshot = &c->snapshots[c->wanted.index[w]];
        wg__free(snapshot->bytes);
        status = wg__snapshot_take(snapshot, c->wanted.tensors[w]);
    }
    if (status == 0)
        status = wg__gradcheck_evaluate(c, NULL, c->gradient);
    *differs = false;
    for (int64_t row = 0; row < b->rows && status == 0; row++) {
        status = wg__gradcheck_slope(c, NULL, b->at + row, c->options.eps);
        *differs |= !wg__gradcheck_agrees(c, c->sums.numeric[b->at + row], weighted_slope(c), 0);
    }
    set_inputs(c, before, 1);
    return status;
}

/* Compares the gradient with gradients under other random cotangents and at other inputs. If an
 * evaluation fails, no pattern fits. */
static int does_not_depend(const block *b, bool *ignores_inputs) {
    wg__gradcheck *c = b->c;
    wg_gradcheck_report saved = *c->report;
    bool differs = false, same_inputs = false, same_cotangents = false;
    wg_tensor **others = wg__calloc((size_t)c->weighted.count + 1, sizeof *others);
    wg_generator generator = {.seed = c->options.seed + 1, .offset = 77};
    wg__gradcheck again = *c;
    again.weighted.tensors = others;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (others) {
        for (int k = 0; k < c->weighted.count; k++) {
            const wg_spec *spec = &c->output_specs[c->weighted.index[k]];
            others[k] = wg_cast(wg_randn(&generator, WG_F64, spec->ndim, spec->shape), spec->dtype);
        }
        if (wg__gradcheck_evaluate(&again, NULL, c->gradient) == 0)
            same_cotangents = is_same(c, b->at, b->rows);
        if (pull_elsewhere(b, &differs) == 0)
            same_inputs = is_same(c, b->at, b->rows);
    }
    wg_scope_end(&scope, NULL);
    wg__free(others);
    wg_error_clear();
    *c->report = saved;
    *ignores_inputs = same_inputs && differs;
    if (!same_cotangents)
        return 0;
    return found(b, same_inputs ? WG_DIAGNOSIS_CONSTANT : WG_DIAGNOSIS_IGNORES_COTANGENT, "%s", "");
}

static int has_factor(const block *b) {
    double products = 0, squares = 0;
    int64_t significant = 0;
    for (int64_t i = 0; i < b->entries; i++) {
        products += b->numeric[i] * b->analytic[i];
        squares += b->numeric[i] * b->numeric[i];
        significant += fabs(b->numeric[i]) > 10 * b->c->options.atol;
    }
    double factor = products / squares;
    if (significant == 0 || fabs(factor) < 1e-6)
        return 0;
    for (int64_t i = 0; i < b->entries; i++)
        if (!wg__gradcheck_agrees(b->c, factor * b->numeric[i], b->analytic[i], b->radius[i]))
            return 0;
    if (wg__gradcheck_agrees(b->c, 1, factor, 0))
        return 0;
    b->c->report->factor = factor;
    char why[128] = ""; /* "= 1 / 3, the size of axis 0 of output 0", if the factor is one */
    for (int k = b->c->weighted.count; k >= 0; k--) {
        const bool is_output = k < b->c->weighted.count;
        const wg_spec *spec = is_output ? &b->c->output_specs[b->c->weighted.index[k]]
                                        : &b->c->wanted.tensors[b->w]->spec;
        for (int d = spec->ndim - 1; d >= 0; d--) {
            double n = (double)spec->shape[d];
            if (n >= 3 && (fabs(factor * n - 1) <= 1e-4 || fabs(factor / n - 1) <= 1e-4))
                snprintf(why, sizeof why, ", which is %s%.0f, the size of axis %d of the %s",
                         factor < 1 ? "1 / " : "", n, d, is_output ? "output" : "input");
        }
    }
    bool is_sign = fabs(factor + 1) < 1e-3;
    bool is_small = fabs(factor - 1) < 0.02;
    /* If forward agrees with a decomposition, the vjp is wrong; if the vjp agrees with a jvp,
     * forward is wrong. */
    const char *agrees = "";
    if (b->c->op && b->c->order == 1 && !b->c->op->decompose) {
        wg__gradcheck again = *b->c;
        wg_gradcheck_report ignored = *b->c->report;
        again.report = &ignored;
        again.found.kinks = 0;
        if (b->c->op->jvp && wg__gradcheck_forward_mode(&again, false) == 0)
            agrees = "; the jvp agrees with the vjp";
        b->c->found.blames = *agrees ? "forward" : "vjp or forward";
    }
    return found(b,
                 is_sign    ? WG_DIAGNOSIS_SIGN
                 : is_small ? WG_DIAGNOSIS_SMALL_FACTOR
                            : WG_DIAGNOSIS_FACTOR,
                 "analytic = %.6g * numeric%s in all of its %lld coordinates%s", factor, why,
                 (long long)b->rows, agrees);
}

/* ---- Axes ---- */

/* The axes of a Jacobian's entries: axes of the output, then axes of the input. */
typedef struct axes {
    int output, count;
    int64_t shape[2 * WG_MAX_DIMS];
} axes;

/* False for several outputs. */
static bool axes_of(const block *b, axes *a) {
    const wg__gradcheck *c = b->c;
    const wg_spec *x = &c->wanted.tensors[b->w]->spec;
    *a = (axes){0};
    if (c->entries.analytic && c->weighted.count != 1)
        return false;
    if (c->entries.analytic) {
        const wg_spec *y = &c->output_specs[c->weighted.index[0]];
        a->output = y->ndim;
        memcpy(a->shape, y->shape, (size_t)y->ndim * sizeof(int64_t));
    }
    memcpy(a->shape + a->output, x->shape, (size_t)x->ndim * sizeof(int64_t));
    a->count = a->output + x->ndim;
    return true;
}

static void index_of_entry(const block *b, const axes *a, int64_t entry, int64_t *index) {
    wg__unravel(entry % b->columns, a->output, a->shape, index);
    wg__unravel(entry / b->columns, a->count - a->output, a->shape + a->output, index + a->output);
}

static bool is_swapped(const block *b, const axes *a, int p, int q) {
    for (int64_t i = 0; i < b->entries; i++) {
        int64_t index[2 * WG_MAX_DIMS], held, row = 0, column = 0;
        index_of_entry(b, a, i, index);
        held = index[p];
        index[p] = index[q];
        index[q] = held;
        for (int d = 0; d < a->output; d++)
            column = column * a->shape[d] + index[d];
        for (int d = a->output; d < a->count; d++)
            row = row * a->shape[d] + index[d];
        int64_t other = row * b->columns + column;
        if (!wg__gradcheck_agrees(b->c, b->numeric[other], b->analytic[i], b->radius[other]))
            return false;
    }
    return true;
}

static const char *axis_text(char *buffer, size_t size, const axes *a, int axis) {
    bool of_output = axis < a->output;
    snprintf(buffer, size, "axis %d of the %s", of_output ? axis : axis - a->output,
             of_output ? "cotangent" : "gradient");
    return buffer;
}

static int is_transposed(const block *b) {
    axes a;
    if (!axes_of(b, &a))
        return 0;
    for (int p = 0; p < a.count; p++)
        for (int q = p + 1; q < a.count; q++) {
            char one[48], other[48];
            if (a.shape[p] != a.shape[q] || a.shape[p] < 2 || !is_swapped(b, &a, p, q))
                continue;
            return found(b, WG_DIAGNOSIS_TRANSPOSED, "%s and %s are exchanged",
                         axis_text(one, sizeof one, &a, p), axis_text(other, sizeof other, &a, q));
        }
    return 0;
}

/* The input was broadcast along an axis of the output, and only one index of the axis arrives. */
static int is_unsummed(const block *b) {
    axes a;
    if (!axes_of(b, &a) || !b->c->entries.analytic)
        return 0;
    int inputs = a.count - a.output;
    int64_t index[2 * WG_MAX_DIMS];
    for (int d = 0; d < a.output; d++) {
        int own = d - (a.output - inputs); /* the axis of the input under it */
        if (a.shape[d] < 2 || (own >= 0 && a.shape[a.output + own] != 1))
            continue;
        for (int64_t at = 0; at < a.shape[d]; at++) {
            bool only = true;
            for (int64_t i = 0; only && i < b->entries; i++) {
                index_of_entry(b, &a, i, index);
                only = wg__gradcheck_agrees(b->c, index[d] == at ? b->numeric[i] : 0,
                                            b->analytic[i], b->radius[i]);
            }
            b->c->report->axis = only ? d : b->c->report->axis;
            if (only)
                return found(b, WG_DIAGNOSIS_UNSUMMED,
                             "only index %lld of axis %d of the cotangent arrives", (long long)at,
                             d);
        }
    }
    return 0;
}

static int is_exchanged(const block *b) {
    wg__gradcheck *c = b->c;
    for (int w = 0; w < c->wanted.count; w++) {
        block other = block_of(c, w);
        bool all = w != b->w && other.rows == b->rows;
        for (int64_t i = 0; all && i < b->entries; i++)
            all = wg__gradcheck_agrees(c, b->numeric[i], other.analytic[i], b->radius[i]) &&
                  wg__gradcheck_agrees(c, other.numeric[i], b->analytic[i], other.radius[i]);
        char name[160];
        if (all)
            return found(b, WG_DIAGNOSIS_EXCHANGED, "it is that of %s",
                         wg__gradcheck_input_text(name, sizeof name, c, c->wanted.index[w]));
    }
    return 0;
}

static int diagnose(wg__gradcheck *c) {
    const wg_gradcheck_report *r = c->report;
    char name[160], at[128], output[128] = "", place[96];
    const double off = fabs(r->numeric - r->analytic);
    int w = 0;
    while (c->wanted.index[w] != r->input)
        w++;
    block b = block_of(c, w);
    if (r->output >= 0)
        snprintf(output, sizeof output, "d output %d at %s / d ", r->output,
                 wg__index_text(place, sizeof place, &r->output_coordinate));
    snprintf(b.where, sizeof b.where,
             "%s%s at %s: numeric %.9g, analytic %.9g (off by %.3g, %.3g of it)", output,
             wg__gradcheck_input_text(name, sizeof name, c, r->input),
             wg__index_text(at, sizeof at, &r->coordinate), r->numeric, r->analytic, off,
             off / fabs(r->numeric));
    bool ignores_inputs;
    if (c->op && is_remembered(&b) < 0)
        return -1;
    if (c->found.jumps)
        return found(&b, WG_DIAGNOSIS_JUMP, "%s", "");
    if (at_a_kink(&b) < 0 || not_finite_or_zero(&b) < 0 ||
        does_not_depend(&b, &ignores_inputs) < 0 || has_factor(&b) < 0 || is_transposed(&b) < 0 ||
        is_exchanged(&b) < 0 || is_unsummed(&b) < 0)
        return -1;
    if (ignores_inputs)
        return found(&b, WG_DIAGNOSIS_IGNORES_INPUTS, "%s", "");
    int64_t wrong = 0;
    for (int64_t row = 0; row < b.rows; row++)
        wrong += !row_agrees(&b, row);
    return 2 * wrong > b.rows ? found(&b, WG_DIAGNOSIS_WRONG, "%s", "")
                              : found(&b, WG_DIAGNOSIS_LOCAL, "%lld of %lld coordinates disagree",
                                      (long long)wrong, (long long)b.rows);
}

/* ---- Comparing ---- */

/* Compares two derivatives and keeps the worst ones in the report. `value` is -1 for the sum under
 * the weights. */
static bool note(wg__gradcheck *c, int64_t at, int64_t value, double numeric, double analytic,
                 double radius) {
    wg_gradcheck_report *r = c->report;
    const bool agrees = wg__gradcheck_agrees(c, numeric, analytic, radius);
    double absolute = fmax(fabs(numeric - analytic) - radius, 0);
    double error = absolute / tolerance(c, numeric);
    if (isnan(numeric - analytic))
        absolute = error = INFINITY;
    r->largest_absolute_error = fmax(r->largest_absolute_error, absolute);
    if (r->input >= 0 && error <= r->largest_error)
        return agrees;
    int w = wg__selection_find(&c->wanted, at);
    r->largest_error = error;
    r->at_order = c->order;
    r->input = c->wanted.index[w];
    r->coordinate = wg__index_of(at - c->wanted.at[w], &c->wanted.tensors[w]->spec);
    r->output = -1;
    r->output_coordinate.ndim = 0;
    if (value >= 0) {
        int k = wg__selection_find(&c->weighted, value);
        r->output = c->weighted.index[k];
        r->output_coordinate = wg__index_of(value - c->weighted.at[k], &c->output_specs[r->output]);
    }
    r->numeric = numeric;
    r->analytic = analytic;
    return agrees;
}

static int compare_slowly(wg__gradcheck *c) {
    c->found.jumps = false;
    memset(c->kinks_at, 0, (size_t)c->wanted.elements * sizeof *c->kinks_at);
    if (make_jacobians(c) < 0 || difference_rows(c) < 0)
        return -1;
    const wg__comparison *sums = &c->sums, *entries = &c->entries;
    bool agrees = true;
    if (c->found.jumps && c->derived) /* the variant put a value there */
        return 0;
    for (int64_t at = 0; at < c->wanted.elements; at++) {
        /* The sum comes first, so that it is reported if an entry is equally wrong. */
        agrees &= note(c, at, -1, sums->numeric[at], sums->analytic[at], sums->radius[at]);
        for (int64_t i = 0; entries->analytic && i < c->weighted.elements; i++) {
            int64_t e = at * c->weighted.elements + i;
            agrees &= note(c, at, i, entries->numeric[e], entries->analytic[e], entries->radius[e]);
        }
        c->found.kinks += c->kinks_at[at] > 0;
        c->found.nonzero |= sums->analytic[at] != 0;
    }
    c->report->compared += c->wanted.elements;
    c->report->kinks += c->found.kinks;
    return agrees ? 0 : diagnose(c);
}

/* ---- Fast: random directions, one input at a time ---- */

enum { DIRECTIONS = 2 };

int wg__gradcheck_differences(wg__gradcheck *c) {
    if (!c->options.fast)
        return compare_slowly(c);
    wg_gradcheck_report *report = c->report;
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)c->order << 40};
    double *direction = c->gradient;
    int status = 0;
    bool agrees = true;
    for (int r = 0; r < DIRECTIONS * c->wanted.count && status == 0 && agrees; r++) {
        const int w = r / DIRECTIONS;
        const int64_t begin = c->wanted.at[w], end = begin + wg_tensor_count(c->wanted.tensors[w]);
        double square = 0, analytic = 0, radius = 0;
        if (begin == end)
            continue;
        memset(direction, 0, (size_t)c->wanted.elements * sizeof *direction);
        for (int64_t i = begin; i < end; i++) {
            direction[i] = wg_random_normal(&generator);
            square += direction[i] * direction[i];
        }
        for (int64_t i = begin; i < end; i++) { /* of length 1 */
            direction[i] /= sqrt(square);
            analytic += c->sums.analytic[i] * direction[i];
        }
        status = wg__gradcheck_slope(c, direction, -1, c->options.eps);
        for (int64_t i = 0; i < c->weighted.elements; i++)
            radius += fabs(c->weight_values[i]) * rounding(c, i);
        const double numeric = weighted_slope(c), error = fabs(numeric - analytic);
        agrees = status == 0 && wg__gradcheck_agrees(c, numeric, analytic, radius);
        if (!agrees)
            break;
        report->largest_absolute_error = fmax(report->largest_absolute_error, error);
        report->largest_error = fmax(report->largest_error, error / tolerance(c, numeric));
        report->compared++;
    }
    for (int64_t at = 0; at < c->wanted.elements; at++)
        c->found.nonzero |= c->sums.analytic[at] != 0;
    return status < 0 ? -1 : agrees ? 0 : compare_slowly(c);
}
