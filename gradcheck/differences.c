/* Central differences against what backward gives, coordinate by coordinate or in random
 * directions. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"

/* Entries of a Jacobian beyond which only its product with the random cotangent is compared. */
#define MAX_ENTRIES ((int64_t)1 << 22)

/* How much nearer the differences are taken that tell a kink, a curve and a jump apart. */
static double refinement(const wg__gradcheck *c) {
    return c->dtype == WG_F64 ? 1e-3 : 0.125;
}

/* ---- Moving inputs ---- */

/* Adds `step` to an element, and returns what was really added. */
static double move_element(const wg_tensor *x, int64_t number, double step) {
    void *address = wg__element_address(x, number);
    if (wg_tensor_dtype(x) == WG_F64) {
        double before = *(double *)address;
        *(double *)address = before + step;
        return *(double *)address - before;
    }
    float before = *(float *)address;
    *(float *)address = (float)((double)before + step);
    return (double)*(float *)address - (double)before;
}

/* Moves the coordinate `at`, or all along a direction, from where the snapshots say, and evaluates.
 * Gives the step that a single coordinate really made. */
static int evaluate_moved(wg__gradcheck *c, const double *direction, int64_t at, double step,
                          double *made, double *values) {
    *made = step;
    for (int w = 0; w < c->wanted_count; w++) {
        int64_t begin = c->wanted_at[w], count = wg_tensor_count(c->wanted_inputs[w]);
        if (!direction && (at < begin || at >= begin + count))
            continue;
        for (int64_t i = 0; direction && i < count; i++)
            move_element(c->wanted_inputs[w], i, step * direction[begin + i]);
        if (!direction)
            *made = move_element(c->wanted_inputs[w], at - begin, step);
        wg_tensor_touch(c->wanted_inputs[w]);
    }
    int status = wg__gradcheck_evaluate(c, values);
    wg__gradcheck_put_back(c);
    return status;
}

int wg__gradcheck_slope(wg__gradcheck *c, const double *direction, int64_t at, double eps) {
    double up, down;
    if (evaluate_moved(c, direction, at, eps, &up, c->plus) < 0 ||
        evaluate_moved(c, direction, at, -eps, &down, c->minus) < 0)
        return -1;
    for (int64_t i = 0; i < c->value_count; i++) {
        /* divided by the step that was really made: that keeps digits */
        c->slopes[i] = (c->plus[i] - c->minus[i]) / (up - down);
        c->spreads[i] =
            fabs((c->plus[i] - c->values[i]) / up - (c->minus[i] - c->values[i]) / down) / 2;
    }
    return 0;
}

/* ---- Kinks ---- */

static double tolerance(const wg__gradcheck *c, double numeric) {
    return c->options.atol + c->options.rtol * fabs(numeric);
}

bool wg__gradcheck_agrees(const wg__gradcheck *c, double numeric, double analytic, double radius) {
    return fabs(numeric - analytic) <= tolerance(c, numeric) + radius; /* false for NaN */
}

/* One-sided slopes differ at a kink however near they are taken, on a curve by less the nearer, and
 * at a jump by more. Leaves in c->spreads only what is a kink's. */
static int settle_kinks(wg__gradcheck *c, int64_t at) {
    bool any = false;
    for (int64_t i = 0; i < c->value_count; i++) {
        any |= c->spreads[i] > tolerance(c, c->slopes[i]);
        if (!(c->spreads[i] > tolerance(c, c->slopes[i])))
            c->spreads[i] = 0;
    }
    if (!any)
        return 0;
    size_t bytes = (size_t)c->value_count * sizeof(double);
    double *slopes = wg__alloc(2 * bytes), *spreads = slopes + c->value_count;
    if (!slopes)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    memcpy(slopes, c->slopes, bytes);
    memcpy(spreads, c->spreads, bytes);
    int status = wg__gradcheck_slope(c, NULL, at, c->options.eps * refinement(c));
    for (int64_t i = 0; i < c->value_count && status == 0; i++) {
        double near_slope = c->slopes[i], near_spread = c->spreads[i];
        c->slopes[i] = slopes[i];
        c->spreads[i] = spreads[i];
        if (spreads[i] == 0)
            continue;
        bool is_jump = near_spread > 3 * spreads[i];
        bool is_kink = !is_jump && near_spread >= spreads[i] / 2;
        c->jumps |= is_jump;
        c->kinks_at[at] += is_kink;
        if (!is_kink)
            c->spreads[i] = 0;
        if (!is_kink && !is_jump && c->dtype == WG_F64) /* a kink is within eps, but not here */
            c->slopes[i] = near_slope;
    }
    wg__free(slopes);
    return status;
}

/* What rounding may do to a difference of that value; in f64 it is nothing beside the tolerances.
 */
static double rounding(const wg__gradcheck *c, int64_t value) {
    return c->dtype == WG_F64 ? 0 : 4 * FLT_EPSILON * fabs(c->values[value]) / (2 * c->options.eps);
}

/* ---- Slow: every coordinate ---- */

static int difference_rows(wg__gradcheck *c) {
    for (int64_t at = 0; at < c->coordinate_count; at++) {
        if (wg__gradcheck_slope(c, NULL, at, c->options.eps) < 0 || settle_kinks(c, at) < 0)
            return -1;
        c->numeric[at] = c->radius[at] = 0;
        for (int64_t i = 0; i < c->value_count; i++) {
            c->spreads[i] += rounding(c, i);
            c->numeric[at] += c->weight_values[i] * c->slopes[i];
            c->radius[at] += fabs(c->weight_values[i]) * c->spreads[i];
        }
        if (!c->jacobian)
            continue;
        size_t bytes = (size_t)c->value_count * sizeof(double);
        memcpy(c->numeric_jacobian + at * c->value_count, c->slopes, bytes);
        memcpy(c->spread + at * c->value_count, c->spreads, bytes);
    }
    return 0;
}

/* The unit cotangent of each value in turn, through one graph. */
static int pull_columns(wg__gradcheck *c) {
    wg_tensor **units = wg__calloc((size_t)c->weighted_count + 1, sizeof *units);
    double *gradients = wg__alloc((size_t)c->coordinate_count * sizeof *gradients + 1);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = units && gradients ? wg__gradcheck_run(c) : -1;
    for (int64_t i = 0; i < c->value_count && status == 0; i++) {
        int k = wg__gradcheck_output_of(c, i);
        const wg_spec *spec = &c->output_specs[c->weighted[k]];
        wg_scope inner;
        wg_scope_begin(&inner);
        memset(units, 0, (size_t)c->weighted_count * sizeof *units);
        units[k] = wg_zeros(spec->dtype, spec->ndim, spec->shape);
        if (units[k] && spec->dtype != WG_BF16)
            move_element(units[k], i - c->weighted_at[k], 1);
        status = wg__gradcheck_pull(c, &(wg__pull_options){.weights = units, .retain_graph = true},
                                    gradients);
        for (int64_t at = 0; at < c->coordinate_count && status == 0; at++)
            c->jacobian[at * c->value_count + i] = gradients[at];
        wg_scope_end(&inner, NULL);
    }
    wg_scope_end(&scope, NULL);
    wg__free(units);
    wg__free(gradients);
    return status;
}

/* The whole Jacobian where there is room for it; of the second order the random cotangent is asked
 * alone, since every evaluation is itself a backward pass. */
static int make_jacobians(wg__gradcheck *c) {
    int64_t entries = c->coordinate_count * c->value_count;
    if (c->order > 1 || c->jacobian || entries == 0 || entries > MAX_ENTRIES)
        return 0;
    for (int k = 0; k < c->weighted_count; k++)
        if (c->output_specs[c->weighted[k]].dtype == WG_BF16)
            return 0;
    c->jacobian = wg__calloc((size_t)entries, sizeof(double));
    c->numeric_jacobian = wg__calloc((size_t)entries, sizeof(double));
    c->spread = wg__calloc((size_t)entries, sizeof(double));
    if (wg_error_pending())
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    return pull_columns(c);
}

/* ---- Comparing ---- */

/* Notes the worst: `value` is -1 for the sum under the weights. */
static void note(wg__gradcheck *c, int64_t at, int64_t value, double numeric, double analytic,
                 double radius) {
    wg_gradcheck_report *r = c->report;
    double absolute = fmax(fabs(numeric - analytic) - radius, 0);
    double error = absolute / tolerance(c, numeric);
    if (isnan(numeric - analytic))
        absolute = error = INFINITY;
    r->largest_absolute_error = fmax(r->largest_absolute_error, absolute);
    if (r->input >= 0 && error <= r->largest_error)
        return;
    int w = wg__gradcheck_input_of(c, at), k = value < 0 ? -1 : wg__gradcheck_output_of(c, value);
    const wg_tensor *x = c->wanted_inputs[w];
    r->largest_error = error;
    r->at_order = c->order;
    r->input = c->wanted[w];
    r->ndim = wg_tensor_ndim(x);
    wg__unravel(at - c->wanted_at[w], r->ndim, wg_tensor_shape(x), r->coordinate);
    r->output = k < 0 ? -1 : c->weighted[k];
    r->output_ndim = 0;
    if (k >= 0) {
        const wg_spec *y = &c->output_specs[r->output];
        r->output_ndim = y->ndim;
        wg__unravel(value - c->weighted_at[k], y->ndim, y->shape, r->output_coordinate);
    }
    r->numeric = numeric;
    r->analytic = analytic;
    r->absolute_error = fabs(numeric - analytic);
    r->relative_error = r->absolute_error / fabs(numeric);
}

/* The sum under the weights is asked first: where both are wrong it is the one that is told. */
static bool compare_coordinate(wg__gradcheck *c, int64_t at) {
    bool agrees = wg__gradcheck_agrees(c, c->numeric[at], c->analytic[at], c->radius[at]);
    note(c, at, -1, c->numeric[at], c->analytic[at], c->radius[at]);
    for (int64_t i = 0; c->jacobian && i < c->value_count; i++) {
        int64_t entry = at * c->value_count + i;
        double numeric = c->numeric_jacobian[entry], analytic = c->jacobian[entry];
        agrees &= wg__gradcheck_agrees(c, numeric, analytic, c->spread[entry]);
        note(c, at, i, numeric, analytic, c->spread[entry]);
    }
    return agrees;
}

static int compare_slowly(wg__gradcheck *c) {
    c->jumps = false;
    memset(c->kinks_at, 0, (size_t)c->coordinate_count * sizeof *c->kinks_at);
    if (make_jacobians(c) < 0 || difference_rows(c) < 0)
        return -1;
    bool agrees = true;
    if (c->jumps && c->derived) /* the variant put a value there */
        return 0;
    for (int64_t at = 0; at < c->coordinate_count; at++) {
        agrees &= compare_coordinate(c, at);
        c->kinks += c->kinks_at[at] > 0;
        c->nonzero |= c->analytic[at] != 0;
    }
    c->report->compared += c->coordinate_count;
    c->report->kinks += c->kinks;
    return agrees ? 0 : wg__gradcheck_diagnose(c);
}

/* ---- Fast: random directions, one input at a time ---- */

enum { DIRECTIONS = 2 };

/* A direction of length 1 within one input. */
static void make_direction(const wg__gradcheck *c, int w, wg_generator *generator,
                           double *direction) {
    int64_t begin = c->wanted_at[w], count = wg_tensor_count(c->wanted_inputs[w]);
    double square = 0;
    memset(direction, 0, (size_t)c->coordinate_count * sizeof *direction);
    for (int64_t i = begin; i < begin + count; i++) {
        direction[i] = wg_random_normal(generator);
        square += direction[i] * direction[i];
    }
    for (int64_t i = begin; i < begin + count; i++)
        direction[i] /= sqrt(square);
}

/* 1 when the direction agrees, 0 when not, -1 with a verdict. */
static int compare_direction(wg__gradcheck *c, const double *direction) {
    if (wg__gradcheck_slope(c, direction, -1, c->options.eps) < 0)
        return -1;
    double numeric = 0, analytic = 0, radius = 0;
    for (int64_t i = 0; i < c->value_count; i++) {
        numeric += c->weight_values[i] * c->slopes[i];
        radius += fabs(c->weight_values[i]) * rounding(c, i);
    }
    for (int64_t at = 0; at < c->coordinate_count; at++)
        analytic += c->analytic[at] * direction[at];
    if (!wg__gradcheck_agrees(c, numeric, analytic, radius))
        return 0;
    wg_gradcheck_report *r = c->report;
    r->largest_absolute_error = fmax(r->largest_absolute_error, fabs(numeric - analytic));
    r->largest_error = fmax(r->largest_error, fabs(numeric - analytic) / tolerance(c, numeric));
    r->compared++;
    return 1;
}

static int compare_fast(wg__gradcheck *c) {
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)c->order << 40};
    double *direction = wg__alloc((size_t)c->coordinate_count * sizeof *direction + 1);
    int agrees = direction ? 1 : -1;
    for (int w = 0; w < c->wanted_count; w++)
        for (int r = 0; r < DIRECTIONS && agrees > 0 && wg_tensor_count(c->wanted_inputs[w]) > 0;
             r++) {
            make_direction(c, w, &generator, direction);
            agrees = compare_direction(c, direction);
        }
    wg__free(direction);
    for (int64_t at = 0; at < c->coordinate_count; at++)
        c->nonzero |= c->analytic[at] != 0;
    return agrees < 0 ? -1 : agrees ? 0 : compare_slowly(c);
}

int wg__gradcheck_differences(wg__gradcheck *c) {
    return c->options.fast ? compare_fast(c) : compare_slowly(c);
}
