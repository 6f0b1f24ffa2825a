/* Compares the kernels in f64 and the vjp of an op with its decomposition, jvp and f32 kernels:
 *
 *     decompose    the same values and, differentiated, the same gradients
 *     jvp          w^T (J t) from the jvp equals (w^T J) t from the vjp, to rounding
 *     f32          kernels and vjp in f32 and in f64, on the same rounded inputs
 *
 * They need no differences, so they run on every sample and every variant. */
#include "gradcheck/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/ops.h"

/* Whether the op has kernels and a decomposition. False for inputs without elements: a
 * decomposition may refuse them. */
static bool has_both(const wg__gradcheck *c) {
    for (int i = 0; i < c->input_count; i++)
        if (c->inputs[i] && wg_tensor_count(c->inputs[i]) == 0)
            return false;
    return c->op && c->op->forward && c->op->decompose;
}

/* A check of the op without its kernels: a composite op that records its decomposition. */
typedef struct decomposed {
    wg__gradcheck check;
    wg_op op;
    wg__sampled_op sampled;
} decomposed;

static void decompose(decomposed *d, const wg__gradcheck *c) {
    d->op = *c->op;
    d->op.forward = NULL;
    d->op.vjp = NULL;
    d->op.is_view = d->op.places_outputs = false;
    d->sampled = (wg__sampled_op){&d->op, ((const wg__sampled_op *)c->context)->options};
    d->check = *c;
    d->check.context = &d->sampled;
}

/* The place of the largest error above `limit` times the largest expected number; -1: none. Pairs
 * that are not finite are left out: a formula may overflow where a kernel does not. */
static int64_t worst_of(int64_t count, const double *numbers, const double *expected,
                        double limit) {
    double largest = 0, worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i]) && isfinite(numbers[i]))
            largest = fmax(largest, fabs(expected[i]));
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(numbers[i] - expected[i]);
        if (isfinite(error) && error > limit * fmax(largest, 1e-3) && error > worst) {
            worst = error;
            at = i;
        }
    }
    return at;
}

/* "output 0 at (1, 2)". Returns buffer. */
static const char *value_text(char *buffer, size_t size, const wg__gradcheck *c, int64_t value) {
    int k = wg__selection_find(&c->weighted, value);
    const wg_gradcheck_index index =
        wg__index_of(value - c->weighted.at[k], &c->output_specs[c->weighted.index[k]]);
    char at[128];
    snprintf(buffer, size, "output %d at %s", c->weighted.index[k],
             wg__index_text(at, sizeof at, &index));
    return buffer;
}

static double limit_of(const wg__gradcheck *c) {
    return c->dtype == WG_F64 ? 1e-8 : 1e-3;
}

/* Forward and decompose give different values: compares the vjp with differences of forward along a
 * random direction, and with the gradient of decompose. If it agrees with just one of them, the
 * verdict is against the second. Sets c->found.blames, and returns a clause for the message. */
static const char *vote_of_vjp(wg__gradcheck *c, wg__gradcheck *composite) {
    const int64_t count = c->wanted.elements;
    bool with_forward = false, with_decompose = false;
    double *gradient = wg__alloc_array(wg__times(3, count) + 1, sizeof *gradient);
    double *direction = gradient ? gradient + 2 * count : NULL;
    wg_gradcheck_report kept = *c->report;
    bool votes = gradient && count > 0 && wg__gradcheck_evaluate(c, NULL, gradient) == 0 &&
                 wg__gradcheck_evaluate(composite, NULL, gradient + count) == 0;
    if (votes) {
        wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)8 << 40};
        double numeric = 0, analytic = 0, scale = 1e-3;
        with_decompose = worst_of(count, gradient, gradient + count, 1e-5) < 0;
        for (int64_t at = 0; at < count; at++) {
            direction[at] = wg_random_normal(&generator) / sqrt((double)count);
            analytic += gradient[at] * direction[at];
            scale += fabs(gradient[at] * direction[at]);
        }
        const bool runs = wg__gradcheck_slope(c, direction, -1, c->options.eps) == 0;
        for (int64_t i = 0; runs && i < c->weighted.elements; i++)
            numeric += c->weight_values[i] * c->slopes[i];
        with_forward =
            runs && fabs(numeric - analytic) <= (c->dtype == WG_F64 ? 1e-5 : 1e-2) * scale;
    }
    wg__free(gradient);
    wg_error_clear();
    *c->report = kept;
    c->found.blames = with_forward == with_decompose ? "forward or decompose"
                      : with_forward                 ? "decompose"
                                                     : "forward";
    return !votes ? ""
           : with_forward != with_decompose
               ? with_forward ? "; the vjp agrees with forward" : "; the vjp agrees with decompose"
           : with_forward ? "; the vjp agrees with both, which differ by a constant"
                          : "; the vjp agrees with neither";
}

int wg__gradcheck_decomposed_values(wg__gradcheck *c) {
    if (!has_both(c))
        return 0;
    decomposed d;
    wg_gradcheck_report ignored = *c->report;
    decompose(&d, c);
    d.check.report = &ignored;
    d.check.found.blames = "decompose";
    if (wg__gradcheck_evaluate(&d.check, c->plus, NULL) < 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_DECOMPOSITION, -1, "decompose fails: %.300s",
                                  ignored.message);
    int64_t at = worst_of(c->weighted.elements, c->values, c->plus, limit_of(c));
    if (at < 0)
        return 0;
    char what[192], values[128];
    snprintf(values, sizeof values, "forward gives %.9g, decompose %.9g", c->values[at],
             c->plus[at]);
    const char *vote = vote_of_vjp(c, &d.check);
    return wg__gradcheck_fail(c, WG_DIAGNOSIS_DECOMPOSITION, -1, "%s: %s%s",
                              value_text(what, sizeof what, c, at), values, vote);
}

int wg__gradcheck_decomposed_gradient(wg__gradcheck *c) {
    if (!has_both(c) || c->wanted.elements == 0)
        return 0;
    decomposed d;
    decompose(&d, c);
    double *gradient = c->gradient;
    int status = wg__gradcheck_evaluate(&d.check, NULL, gradient);
    int64_t at =
        status < 0 ? -1 : worst_of(c->wanted.elements, c->sums.analytic, gradient, limit_of(c));
    if (at >= 0)
        status = wg__gradcheck_fail_at(c, WG_DIAGNOSIS_RECORDED, at, "",
                                       " is %.9g by the vjp, %.9g by differentiating decompose",
                                       c->sums.analytic[at], gradient[at]);
    return status;
}

/* Rounding an input changes a result in proportion to its condition number; a kernel may lose this
 * much several times. */
enum { LOST = 64, CONDITIONED = 32 };

/* Beyond, squares and products inside a kernel may overflow in f32. */
#define F32_LARGEST 1e15

typedef struct f32_check {
    wg__gradcheck *c;
    wg_tensor **inputs;  /* 3 times input_count: rounded, in f32, moved; then the wanted ones */
    wg_tensor **weights; /* in f32, and rounded */
    wg_spec *specs;      /* of the outputs in f32 */
    bool only_finite;
    wg__results wide, narrow, moved;
    double *value_radius, *gradient_radius;
} f32_check;

static int run_as(wg__gradcheck *c, wg_dtype dtype, wg_tensor **inputs, wg_tensor **wanted,
                  wg_tensor **weights, wg_spec *specs, wg__results *r) {
    wg__gradcheck again = *c;
    wg_gradcheck_report ignored = *c->report;
    again.report = &ignored;
    again.dtype = dtype;
    again.inputs = inputs;
    again.wanted.tensors = wanted;
    again.output_specs = specs;
    again.weighted.tensors = weights;
    for (int w = 0; w < c->wanted.count; w++) {
        wanted[w] = inputs[c->wanted.index[w]];
        wg_set_requires_grad(wanted[w], true);
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    int status =
        wg__gradcheck_evaluate(&again, r->values, c->wanted.count > 0 ? r->gradients : NULL);
    wg_scope_end(&scope, NULL);
    if (status < 0)
        memcpy(c->report->message, ignored.message, sizeof ignored.message);
    return status;
}

static void widen(int64_t count, const double *moved, const double *values, double *radius) {
    for (int64_t i = 0; i < count; i++) {
        double by = fabs(moved[i] - values[i]);
        radius[i] = isnan(by) ? INFINITY : fmax(radius[i], by);
    }
}

/* The place of the worst error that rounding does not explain; -1: none. The limit is relative to
 * the largest number, because results of a block (a row of a softmax) share its error. */
static int64_t worst_narrow(int64_t count, const double *narrow, const double *wide,
                            const double *radius, bool only_finite) {
    double largest = 0, moved = 0, worst = 1;
    int64_t at = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(wide[i]) || fabs(wide[i]) > F32_LARGEST || isinf(radius[i]))
            return -1; /* all numbers come from the same intermediate results */
        largest = fmax(largest, fabs(wide[i]));
        moved = fmax(moved, radius[i]);
    }
    /* Intermediate results are about 1, and the error of long sums grows with their length. */
    double lost = LOST * (double)FLT_EPSILON * (1 + sqrt((double)count) / 16);
    double limit = only_finite ? INFINITY : lost * fmax(largest, 1) + CONDITIONED * moved;
    for (int64_t i = 0; i < count; i++) {
        double share = isfinite(narrow[i]) ? fabs(narrow[i] - wide[i]) / limit : INFINITY;
        if (share > worst) {
            worst = share;
            at = i;
        }
    }
    return at;
}

static int judge_f32(f32_check *f) {
    wg__gradcheck *c = f->c;
    wg_diagnosis diagnosis = f->only_finite ? WG_DIAGNOSIS_AT_LARGE : WG_DIAGNOSIS_F32;
    char what[192];
    for (int k = 0; k < c->weighted.count; k++) {
        int64_t begin = c->weighted.at[k];
        int64_t count = wg__spec_count(&c->output_specs[c->weighted.index[k]]);
        int64_t at = worst_narrow(count, f->narrow.values + begin, f->wide.values + begin,
                                  f->value_radius + begin, f->only_finite);
        c->found.blames = "forward";
        if (at >= 0)
            return wg__gradcheck_fail(c, diagnosis, -1, "%s is %.9g in f32, %.9g in f64",
                                      value_text(what, sizeof what, c, begin + at),
                                      f->narrow.values[begin + at], f->wide.values[begin + at]);
    }
    c->found.blames = "vjp";
    for (int w = 0; w < c->wanted.count; w++) {
        int64_t begin = c->wanted.at[w], count = wg_tensor_count(c->wanted.tensors[w]);
        int64_t at = worst_narrow(count, f->narrow.gradients + begin, f->wide.gradients + begin,
                                  f->gradient_radius + begin, f->only_finite);
        if (at >= 0)
            return wg__gradcheck_fail_at(
                c, diagnosis, begin + at, "", " is %.9g in f32, %.9g in f64",
                f->narrow.gradients[begin + at], f->wide.gradients[begin + at]);
    }
    c->found.blames = NULL;
    return 0;
}

/* The inputs rounded to f32, as f64 and as f32; integers as they are. */
static void make_inputs(f32_check *f, wg_tensor **rounded, wg_tensor **narrow) {
    wg__gradcheck *c = f->c;
    for (int i = 0; i < c->input_count; i++) {
        wg_tensor *x = c->inputs[i] ? wg_detach(c->inputs[i]) : NULL;
        bool is_wide = x && wg_tensor_dtype(x) == WG_F64;
        narrow[i] = is_wide ? wg_cast(x, WG_F32) : x;
        rounded[i] = is_wide ? wg_cast(narrow[i], WG_F64) : x;
    }
    for (int k = 0; k < c->weighted.count; k++) {
        bool is_wide = c->output_specs[c->weighted.index[k]].dtype == WG_F64;
        f->weights[k] = is_wide ? wg_cast(c->weighted.tensors[k], WG_F32) : c->weighted.tensors[k];
        f->weights[c->weighted.count + k] =
            is_wide ? wg_cast(f->weights[k], WG_F64) : c->weighted.tensors[k];
    }
    for (int j = 0; j < c->output_count; j++) {
        f->specs[j] = c->output_specs[j];
        f->specs[j].dtype = f->specs[j].dtype == WG_F64 ? WG_F32 : f->specs[j].dtype;
    }
}

static int compare_f32(f32_check *f) {
    wg__gradcheck *c = f->c;
    wg_tensor **rounded = f->inputs, **narrow = rounded + c->input_count;
    wg_tensor **moved = narrow + c->input_count, **wanted = moved + c->input_count;
    wg_tensor **wide_weights = f->weights + c->weighted.count;
    make_inputs(f, rounded, narrow);
    if (wg_error_pending())
        return wg__gradcheck_no_memory(c);
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    wg_scope scope;
    wg_scope_begin(&scope);
    bool refused = wg_apply(c->op, c->input_count, narrow,
                            ((const wg__sampled_op *)c->context)->options, outputs) < 0;
    for (int j = 0; !refused && j < c->output_count; j++)
        refused = wg_tensor_dtype(outputs[j]) != f->specs[j].dtype;
    wg_error_clear();
    wg_scope_end(&scope, NULL);
    if (refused) /* the op does not take f32, or has outputs of other dtypes */
        return 0;
    if (run_as(c, WG_F64, rounded, wanted, wide_weights, c->output_specs, &f->wide) < 0) {
        wg_error_clear();
        return 0; /* the op refuses the rounded values */
    }
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)5 << 40};
    for (int times = 0; times < 3; times++) {
        /* x (1 + 4 u r), with u the rounding of f32 and r = +-1 at random; in the last pass r = 1,
         * like the errors in a sum of equal terms. */
        for (int i = 0; i < c->input_count; i++) {
            const bool moves = rounded[i] && wg_tensor_dtype(rounded[i]) == WG_F64;
            moved[i] = moves ? wg_clone(wg_detach(rounded[i])) : rounded[i];
            double *data = moves && moved[i] ? wg_tensor_data(moved[i]) : NULL;
            for (int64_t k = 0; data && k < wg_tensor_count(moved[i]); k++)
                data[k] *= 1 + (times == 2 || wg_random_uniform(&generator) < 0.5 ? 2 : -2) *
                                   (double)FLT_EPSILON;
        }
        if (run_as(c, WG_F64, moved, wanted, wide_weights, c->output_specs, &f->moved) < 0) {
            wg_error_clear();
            return 0;
        }
        widen(c->weighted.elements, f->moved.values, f->wide.values, f->value_radius);
        widen(c->wanted.elements, f->moved.gradients, f->wide.gradients, f->gradient_radius);
    }
    if (run_as(c, WG_F32, narrow, wanted, f->weights, f->specs, &f->narrow) < 0) {
        if (c->derived) { /* a long matrix may be singular in f32 */
            wg_error_clear();
            return 0;
        }
        char why[256];
        snprintf(why, sizeof why, "%.255s", c->report->message);
        c->found.blames = "vjp";
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_F32, -1, "it fails in f32: %s", why);
    }
    return judge_f32(f);
}

int wg__gradcheck_f32(wg__gradcheck *c, bool only_finite) {
    if (!c->op || c->dtype != WG_F64 || wg__op_exceptions(c->op)->f32_approximates ||
        c->options.no_variants)
        return 0;
    const size_t inputs = (size_t)c->input_count, all = (size_t)c->all_count;
    const size_t each = all + (size_t)c->wanted.elements;
    f32_check f = {.c = c, .only_finite = only_finite};
    f.inputs = wg__calloc((size_t)(wg__times(3, inputs) + c->wanted.count + 1), sizeof *f.inputs);
    f.weights = wg__calloc((size_t)(wg__times(2, c->weighted.count) + 1), sizeof *f.weights);
    f.specs = wg__calloc((size_t)c->output_count + 1, sizeof *f.specs);
    double *room = wg__calloc((size_t)(wg__times(4, each) + 1), sizeof *room);
    int status = -1;
    if (f.inputs && f.weights && f.specs && room) {
        f.wide = (wg__results){room, room + all};
        f.narrow = (wg__results){room + each, room + each + all};
        f.moved = (wg__results){room + 2 * each, room + 2 * each + all};
        f.value_radius = room + 3 * each;
        f.gradient_radius = f.value_radius + all;
        wg_scope scope;
        wg_scope_begin(&scope);
        status = compare_f32(&f);
        wg_scope_end(&scope, NULL);
    } else {
        wg__gradcheck_no_memory(c);
    }
    wg__free(f.inputs);
    wg__free(f.weights);
    wg__free(f.specs);
    wg__free(room);
    return status;
}

/* Forward mode against differences (if the options ask for it), and against reverse mode:
 *
 *     J t  from wg_jvp       against  J t  by differences
 *     w^T (J t)              against  (w^T J) t, exact to rounding
 *
 * for random tangents t of all inputs together, and of each input alone, with all other tangents
 * NULL. Parameters are constants in forward mode. */

/* The diagnosis of wrong tangents. Tangents come from the op's jvp; without a jvp, from its
 * decomposition or its vjp, and the verdict names these. */
static wg_diagnosis forward_diagnosis(wg__gradcheck *c) {
    if (c->op && !c->op->jvp)
        c->found.blames = c->op->decompose ? "decompose" : "vjp";
    return c->op && c->op->jvp ? WG_DIAGNOSIS_JVP : WG_DIAGNOSIS_FORWARD_MODE;
}

/* Runs the function with random tangents t of the wanted inputs, or of input `only` alone: t into
 * c->gradient, J t into c->first. The values must be equal to the values without tangents. */
static int run_forward_mode(wg__gradcheck *c, int only) {
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)(only + 2) << 48};
    wg_tensor **tangents =
        wg__calloc((size_t)(c->user_count + wg__times(2, c->output_count) + 1), sizeof *tangents);
    if (!tangents)
        return wg__gradcheck_no_memory(c);
    wg_tensor **found = tangents + c->user_count, **outputs = found + c->output_count;
    wg_scope scope;
    wg_scope_begin(&scope);
    memset(c->gradient, 0, (size_t)c->wanted.elements * sizeof(double));
    for (int w = 0; w < c->wanted.count; w++) {
        const wg_spec *spec = &c->wanted.tensors[w]->spec;
        if (c->wanted.index[w] >= c->user_count || (only >= 0 && w != only))
            continue;
        wg_tensor *t = wg_cast(wg_randn(&generator, WG_F64, spec->ndim, spec->shape), spec->dtype);
        tangents[c->wanted.index[w]] = t;
        wg__read_doubles(t, c->gradient + c->wanted.at[w]);
    }
    int status = wg_jvp(c->function, c->context, c->user_count, c->inputs, tangents,
                        c->output_count, outputs, found);
    if (status < 0 || wg_error_pending())
        status = wg__gradcheck_fail(c, forward_diagnosis(c), -1, "forward mode failed");
    for (int k = 0; k < c->weighted.count && status == 0; k++) {
        const int j = c->weighted.index[k];
        const wg_spec *spec = &c->output_specs[j];
        wg__read_doubles(wg_detach(outputs[j]), c->plus);
        if (wg__gradcheck_unlike(c, wg_tensor_count(outputs[j]), c->plus,
                                 c->values + c->weighted.at[k], 1) >= 0)
            status = wg__gradcheck_fail(c, forward_diagnosis(c), -1,
                                        "under forward mode output %d has other values", j);
        else if (!found[j] || !wg__same_shape(&found[j]->spec, spec) ||
                 found[j]->spec.dtype != spec->dtype)
            status = wg__gradcheck_fail(
                c, forward_diagnosis(c), -1,
                "the tangent of output %d is missing, or of another shape or dtype", j);
        else
            wg__read_doubles(found[j], c->first + c->weighted.at[k]);
    }
    wg_scope_end(&scope, NULL);
    wg__free(tangents);
    return status;
}

/* Differences along t into c->slopes, and the widths of their kinks into c->spreads: from the
 * Jacobian, if there is one, since it has the kinks. */
static int difference_along(wg__gradcheck *c) {
    const int64_t values = c->weighted.elements;
    if (!c->entries.analytic) {
        int status = wg__gradcheck_slope(c, c->gradient, -1, c->options.eps);
        memset(c->spreads, 0, (size_t)values * sizeof(double));
        return status;
    }
    for (int64_t i = 0; i < values; i++) {
        c->slopes[i] = c->spreads[i] = 0;
        for (int64_t at = 0; at < c->wanted.elements; at++) {
            c->slopes[i] += c->gradient[at] * c->entries.numeric[at * values + i];
            c->spreads[i] += fabs(c->gradient[at]) * c->entries.radius[at * values + i];
        }
    }
    return 0;
}

static int compare_tangents(wg__gradcheck *c, int only, bool numeric) {
    const int input = only < 0 ? -1 : c->wanted.index[only];
    const int64_t values = c->weighted.elements;
    int64_t wrong = -1;
    double products = 0, squares = 0, forward_sum = 0, reverse_sum = 0, scale = 1e-3;
    for (int64_t i = 0; i < values && numeric; i++) {
        products += c->slopes[i] * c->first[i];
        squares += c->slopes[i] * c->slopes[i];
        if (wrong < 0 && !wg__gradcheck_agrees(c, c->slopes[i], c->first[i], c->spreads[i]))
            wrong = i;
    }
    if (wrong >= 0) {
        char at[192], what[64] = ""; /* whether all tangents differ by one factor */
        const double factor = products / squares;
        bool all = values > 1 && isfinite(factor);
        for (int64_t i = 0; all && i < values; i++)
            all = wg__gradcheck_agrees(c, factor * c->slopes[i], c->first[i], c->spreads[i]);
        if (all)
            snprintf(what, sizeof what, "; forward = %.5g * numeric in all of them", factor);
        return wg__gradcheck_fail(
            c, forward_diagnosis(c), input,
            "along random tangents, the tangent of %s: numeric %.9g, forward %.9g%s",
            value_text(at, sizeof at, c, wrong), c->slopes[wrong], c->first[wrong], what);
    }
    for (int64_t i = 0; i < values; i++) {
        forward_sum += c->weight_values[i] * c->first[i];
        scale += fabs(c->weight_values[i] * c->first[i]);
    }
    for (int64_t at = 0; at < c->wanted.elements; at++) {
        reverse_sum += c->sums.analytic[at] * c->gradient[at];
        scale += fabs(c->sums.analytic[at] * c->gradient[at]);
    }
    if (c->found.kinks > 0 || fabs(forward_sum - reverse_sum) <= limit_of(c) * scale)
        return 0;
    return wg__gradcheck_fail(
        c, forward_diagnosis(c), input,
        "along random tangents, weighted by random cotangents: forward mode gives "
        "%.12g, reverse mode %.12g",
        forward_sum, reverse_sum);
}

int wg__gradcheck_forward_mode(wg__gradcheck *c, bool numeric) {
    int status = 0;
    for (int only = -1; only < (c->wanted.count > 1 ? c->wanted.count : 0) && status == 0; only++) {
        /* Parameters come after the inputs, and have no tangents. */
        if (c->wanted.count == 0 || c->wanted.index[only < 0 ? 0 : only] >= c->user_count)
            continue;
        status = run_forward_mode(c, only);
        if (status == 0 && numeric)
            status = difference_along(c);
        if (status == 0)
            status = compare_tangents(c, only, numeric);
        c->report->forward |= numeric;
    }
    return status;
}
