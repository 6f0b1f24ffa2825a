/* Forward mode against differences, and against reverse mode:
 *
 *     J t  from wg_jvp       against  J t  by differences
 *     w^T (J t)              against  (w^T J) t, which is exact but for rounding
 *
 * for random tangents t of all inputs together, and of each alone, where the others' are missing.
 * Parameters are constants in forward mode. */
#include <math.h>
#include <string.h>

#include "autograd/functional.h"
#include "gradcheck/check.h"
#include "tensor/ops.h"

typedef struct forward {
    wg__gradcheck *c;
    double *direction; /* coordinate_count: t */
    double *tangent;   /* value_count: J t of wg_jvp */
    double *numeric, *radius;
} forward;

static bool takes_part(const wg__gradcheck *c, int w, int only) {
    return c->wanted[w] < c->user_count && (only < 0 || w == only);
}

/* Random tangents for the wanted inputs, or for one of them. */
static void make_tangents(forward *f, int only, wg_tensor **tangents) {
    const wg__gradcheck *c = f->c;
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)(only + 2) << 48};
    memset(f->direction, 0, (size_t)c->coordinate_count * sizeof(double));
    for (int w = 0; w < c->wanted_count; w++) {
        const wg_spec *spec = &c->wanted_inputs[w]->spec;
        if (!takes_part(c, w, only))
            continue;
        wg_tensor *t = wg_cast(wg_randn(&generator, WG_F64, spec->ndim, spec->shape), spec->dtype);
        tangents[c->wanted[w]] = t;
        wg__read_doubles(t, f->direction + c->wanted_at[w]);
    }
}

static int read_tangents(forward *f, wg_tensor *const *found) {
    const wg__gradcheck *c = f->c;
    for (int k = 0; k < c->weighted_count; k++) {
        const wg_tensor *t = found[c->weighted[k]];
        const wg_spec *spec = &c->output_specs[c->weighted[k]];
        if (!t || !wg__same_shape(&t->spec, spec) || t->spec.dtype != spec->dtype)
            return wg__gradcheck_fail(
                f->c, WG_DIAGNOSIS_FORWARD_MODE, -1,
                "the tangent of output %d is missing, or of another shape or dtype",
                c->weighted[k]);
        wg__read_doubles(found[c->weighted[k]], f->tangent + c->weighted_at[k]);
    }
    return 0;
}

/* Beside the tangents run the same values as without them. */
static int compare_values(forward *f, wg_tensor *const *outputs) {
    wg__gradcheck *c = f->c;
    for (int k = 0; k < c->weighted_count; k++) {
        int64_t count = wg_tensor_count(outputs[c->weighted[k]]);
        wg__read_doubles(wg_detach(outputs[c->weighted[k]]), c->plus);
        if (wg__gradcheck_unlike(c, count, c->plus, c->values + c->weighted_at[k], 1) >= 0)
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_FORWARD_MODE, -1,
                                      "under forward mode output %d has other values",
                                      c->weighted[k]);
    }
    return 0;
}

static int run_forward_mode(forward *f, int only) {
    wg__gradcheck *c = f->c;
    wg_tensor **tangents =
        wg__calloc((size_t)(c->argument_count + 2 * c->output_count) + 1, sizeof *tangents);
    if (!tangents)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    wg_tensor **found = tangents + c->argument_count, **outputs = found + c->output_count;
    wg_scope scope;
    wg_scope_begin(&scope);
    make_tangents(f, only, tangents);
    int status = wg_jvp(c->function, c->context, c->argument_count, c->inputs, tangents,
                        c->output_count, outputs, found);
    if (status < 0 || wg_error_pending())
        status = wg__gradcheck_fail(c, WG_DIAGNOSIS_FORWARD_MODE, -1, "forward mode failed");
    else
        status = compare_values(f, outputs) < 0 ? -1 : read_tangents(f, found);
    wg_scope_end(&scope, NULL);
    wg__free(tangents);
    return status;
}

/* Out of the Jacobian where there is one: it knows the kinks. */
static int difference(forward *f) {
    wg__gradcheck *c = f->c;
    if (!c->jacobian) {
        int status = wg__gradcheck_slope(c, f->direction, -1, c->options.eps);
        memcpy(f->numeric, c->slopes, (size_t)c->value_count * sizeof(double));
        memset(f->radius, 0, (size_t)c->value_count * sizeof(double));
        return status;
    }
    for (int64_t i = 0; i < c->value_count; i++) {
        f->numeric[i] = f->radius[i] = 0;
        for (int64_t at = 0; at < c->coordinate_count; at++) {
            f->numeric[i] += f->direction[at] * c->numeric_jacobian[at * c->value_count + i];
            f->radius[i] += fabs(f->direction[at]) * c->spread[at * c->value_count + i];
        }
    }
    return 0;
}

/* ---- Verdicts ---- */

/* "; forward = 0.5 * numeric", if that is so. */
static void explain(const forward *f, char *buffer, size_t size) {
    const wg__gradcheck *c = f->c;
    double products = 0, squares = 0;
    for (int64_t i = 0; i < c->value_count; i++) {
        products += f->numeric[i] * f->tangent[i];
        squares += f->numeric[i] * f->numeric[i];
    }
    double factor = products / squares;
    bool all = c->value_count > 1 && isfinite(factor);
    for (int64_t i = 0; all && i < c->value_count; i++)
        all = wg__gradcheck_agrees(c, factor * f->numeric[i], f->tangent[i], f->radius[i]);
    buffer[0] = '\0';
    if (all)
        snprintf(buffer, size, "; forward = %.5g * numeric in all of them", factor);
}

static int compare(forward *f, int only) {
    wg__gradcheck *c = f->c;
    double forward_sum = 0, reverse_sum = 0, scale = 1;
    for (int64_t i = 0; i < c->value_count; i++) {
        if (!wg__gradcheck_agrees(c, f->numeric[i], f->tangent[i], f->radius[i])) {
            int k = wg__gradcheck_output_of(c, i);
            const wg_spec *y = &c->output_specs[c->weighted[k]];
            int64_t index[WG_MAX_DIMS];
            char at[128], what[64];
            wg__unravel(i - c->weighted_at[k], y->ndim, y->shape, index);
            explain(f, what, sizeof what);
            return wg__gradcheck_fail(
                c, WG_DIAGNOSIS_FORWARD_MODE, only < 0 ? -1 : c->wanted[only],
                "along random tangents, the tangent of output %d at %s: numeric "
                "%.9g, forward %.9g%s",
                c->weighted[k], wg__index_text(at, sizeof at, y->ndim, index), f->numeric[i],
                f->tangent[i], what);
        }
        forward_sum += c->weight_values[i] * f->tangent[i];
        scale += fabs(c->weight_values[i] * f->tangent[i]);
    }
    for (int64_t at = 0; at < c->coordinate_count; at++)
        reverse_sum += c->analytic[at] * f->direction[at];
    if (c->kinks > 0 ||
        fabs(forward_sum - reverse_sum) <= (c->dtype == WG_F64 ? 1e-10 : 1e-4) * scale)
        return 0;
    return wg__gradcheck_fail(
        c, WG_DIAGNOSIS_FORWARD_MODE, only < 0 ? -1 : c->wanted[only],
        "along random tangents, weighted by random cotangents: forward mode gives "
        "%.12g, reverse mode %.12g",
        forward_sum, reverse_sum);
}

int wg__gradcheck_forward_mode(wg__gradcheck *c) {
    size_t values = (size_t)c->value_count, coordinates = (size_t)c->coordinate_count;
    double *room = wg__alloc((coordinates + 3 * values + 1) * sizeof *room);
    if (!room)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    forward f = {c, room, room + coordinates, room + coordinates + values,
                 room + coordinates + 2 * values};
    int status = 0;
    for (int only = -1; only < (c->wanted_count > 1 ? c->wanted_count : 0) && status == 0; only++) {
        bool any = false;
        for (int w = 0; w < c->wanted_count; w++)
            any |= takes_part(c, w, only);
        if (!any)
            continue;
        status = run_forward_mode(&f, only);
        if (status == 0)
            status = difference(&f);
        if (status == 0)
            status = compare(&f, only);
        c->report->forward = true;
    }
    wg__free(room);
    return status;
}
