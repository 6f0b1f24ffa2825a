/* Variants of an op's samples with special values: 0, -0, ties, subnormal and large values, and
 * kinks that the op declares. At most three of the special elements are compared:
 *
 *     s+ = (y(x + h) - y(x)) / h        s- = (y(x) - y(x - h)) / h        h, h / 16, extrapolated
 *
 * The gradient must lie between s- and s+, which are equal if the function is smooth. So any
 * subgradient is accepted. If s- or s+ does not converge (a jump, a cusp, a pole, the edge of the
 * domain), nothing is compared. */
#include "gradcheck/check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/ops.h"

/* Which elements of an input get the value. */
typedef enum where { FIRST, LAST, ALL } where;

/* Values that depend on the sample. */
typedef enum tie { NO_TIE, AT_LARGEST, AT_SMALLEST, ALL_EQUAL, OF_INPUTS } tie;

typedef struct point {
    const char *name;
    double value;
    where where;
    wg_diagnosis diagnosis;
    unsigned undefined; /* the bits of wg_op_exceptions.undefined_at */
    tie tie;            /* in place of `value` */
} point;

static const point points[] = {
    {"its largest value twice", 0, FIRST, WG_DIAGNOSIS_AT_TIES, WG_AT_TIES, AT_LARGEST},
    {"its smallest value twice", 0, FIRST, WG_DIAGNOSIS_AT_TIES, WG_AT_TIES, AT_SMALLEST},
    {"all elements equal", 0, ALL, WG_DIAGNOSIS_AT_TIES, WG_AT_TIES, ALL_EQUAL},
    {"elements of the next input", 0, ALL, WG_DIAGNOSIS_AT_TIES, WG_AT_TIES, OF_INPUTS},
    {"0 in its first element", 0, FIRST, WG_DIAGNOSIS_AT_ZERO, WG_AT_ZERO, NO_TIE},
    {"0 in its last element", 0, LAST, WG_DIAGNOSIS_AT_ZERO, WG_AT_ZERO, NO_TIE},
    {"-0 in its first element", -0.0, FIRST, WG_DIAGNOSIS_AT_NEGATIVE_ZERO, WG_AT_ZERO, NO_TIE},
    {"0 everywhere", 0, ALL, WG_DIAGNOSIS_AT_ZERO, WG_AT_ZERO | WG_AT_TIES, NO_TIE},
    {"-0 everywhere", -0.0, ALL, WG_DIAGNOSIS_AT_NEGATIVE_ZERO, WG_AT_ZERO | WG_AT_TIES, NO_TIE},
    {"5e-310 in its first element", 5e-310, FIRST, WG_DIAGNOSIS_AT_TINY, WG_AT_ZERO, NO_TIE},
    {"1e-40 in its first element", 1e-40, FIRST, WG_DIAGNOSIS_AT_TINY, WG_AT_ZERO, NO_TIE},
    {"-1e-40 in its last element", -1e-40, LAST, WG_DIAGNOSIS_AT_TINY, WG_AT_ZERO, NO_TIE},
    {"100 in its first element", 100, FIRST, WG_DIAGNOSIS_AT_LARGE, WG_AT_LARGE, NO_TIE},
    {"-100 in its last element", -100, LAST, WG_DIAGNOSIS_AT_LARGE, WG_AT_LARGE, NO_TIE},
    {"1000 in its last element", 1000, LAST, WG_DIAGNOSIS_AT_LARGE, WG_AT_LARGE, NO_TIE},
    {"-1000 in its first element", -1000, FIRST, WG_DIAGNOSIS_AT_LARGE, WG_AT_LARGE, NO_TIE},
    {"1e15 in its first element", 1e15, FIRST, WG_DIAGNOSIS_AT_LARGE, WG_AT_LARGE, NO_TIE},
    {"-1e15 in its last element", -1e15, LAST, WG_DIAGNOSIS_AT_LARGE, WG_AT_LARGE, NO_TIE}};

enum { POINTS = sizeof points / sizeof *points, KINKS = 8 };

static void fill(wg_tensor *x, where where, double value) {
    double *data = wg_tensor_data(x);
    int64_t count = wg_tensor_count(x);
    for (int64_t i = where == LAST ? count - 1 : 0; i < (where == FIRST ? 1 : count); i++)
        data[i] = value;
}

/* Makes elements of x equal; false if that is impossible. `pair` receives the two equal elements.
 */
static bool tie_elements(wg_tensor *x, wg_tensor *next, tie tie, int64_t *pair) {
    double *data = wg_tensor_data(x);
    int64_t count = wg_tensor_count(x), at = 0;
    if (tie == OF_INPUTS) {
        if (!next || wg_tensor_dtype(next) != WG_F64 || !wg__same_shape(&next->spec, &x->spec))
            return false;
        return wg_to_array(next, data) == 0;
    }
    for (int64_t i = 1; i < count; i++)
        if (tie == AT_LARGEST ? data[i] > data[at] : data[i] < data[at])
            at = i;
    pair[0] = at;
    pair[1] = at > 0 ? at - 1 : count > 1 ? 1 : -1;
    if (tie == ALL_EQUAL)
        fill(x, ALL, data[0]);
    else if (count > 1)
        data[pair[1]] = data[at];
    return count > 1;
}

int wg__variant_of_value(const wg_op *op, int number, const wg_sample *sample, bool first,
                         wg__variant *variant) {
    (void)first;
    wg__point *made = &variant->point;
    const wg_op_exceptions *exceptions = wg__op_exceptions(op);
    double kinks[KINKS];
    int kink_count = exceptions->kinks ? exceptions->kinks(sample->options, kinks) : 0;
    int each = POINTS + kink_count, input = number / each, kind = number % each;
    if (input >= sample->input_count)
        return 0;
    wg_tensor *x = sample->inputs[input];
    if (!x || wg_tensor_dtype(x) != WG_F64 || wg_tensor_count(x) == 0)
        return -1;
    variant->sample = *sample;
    variant->sample.inputs[input] = x = wg_clone(wg_detach(x));
    if (!x)
        return -1;
    char text[64];
    point p = {.name = text, .where = FIRST, .diagnosis = WG_DIAGNOSIS_KINK};
    if (kind < POINTS) {
        p = points[kind];
    } else {
        p.value = kinks[kind - POINTS];
        snprintf(text, sizeof text, "%g in its first element", p.value);
    }
    bool is_made = true;
    int64_t pair[2] = {-1, -1};
    wg_tensor *next = input + 1 < sample->input_count ? sample->inputs[input + 1] : NULL;
    if (p.tie != NO_TIE)
        is_made = tie_elements(x, next, p.tie, pair);
    else
        fill(x, p.where, p.value);
    int64_t last = wg_tensor_count(x) - 1;
    *made = (wg__point){.input = input,
                        .diagnosis = p.diagnosis,
                        .undefined = (exceptions->undefined_at & p.undefined) != 0,
                        .only = {p.where == LAST ? last : 0, -1, -1}};
    if (p.where == ALL) {
        made->only[1] = last > 1 ? last / 2 : -1;
        made->only[2] = last > 0 ? last : -1;
    } else if (pair[1] >= 0) {
        made->only[0] = pair[0];
        made->only[1] = pair[1];
    }
    snprintf(variant->name, sizeof variant->name, "input %d with %s", input, p.name);
    return is_made ? 1 : -1;
}

#define HUGE_STEP 1e6

/* Slopes to one side at one coordinate: weighted.elements of each step. */
typedef struct side {
    double *far, *near;
} side;

/* (y(x + h) - y(x)) / h for a step and for a 16th of it: 0 if the slopes converge, with the
 * extrapolated ones in s->near; 1 if they do not. */
static int converges(wg__gradcheck *c, int64_t at, double h, side *s) {
    const wg_gradcheck_report before = *c->report;
    double made;
    for (int near = 0; near < 2; near++) {
        double *slopes = near ? s->near : s->far;
        if (wg__gradcheck_evaluate_moved(c, NULL, at, near ? h / 16 : h, &made, c->plus) < 0) {
            wg_error_clear();
            *c->report = before;
            return 1; /* the op refuses the value */
        }
        for (int64_t i = 0; i < c->weighted.elements; i++) {
            slopes[i] = (c->plus[i] - c->values[i]) / made;
            if (!isfinite(slopes[i]))
                return 1;
        }
    }
    int status = 0;
    for (int64_t i = 0; i < c->weighted.elements && status == 0; i++) {
        double noise = 64 * DBL_EPSILON * fabs(c->values[i]) / fabs(h / 16);
        double change = fabs(s->far[i] - s->near[i]);
        if (change > 1e-2 * (1e-2 + fabs(s->near[i])) || noise > 1e-4 * (1 + fabs(s->near[i])))
            status = 1;
        s->near[i] = (16 * s->near[i] - s->far[i]) / 15;
    }
    return status;
}

/* 0 if the coordinate agrees, 1 if it cannot be compared, -1 with a verdict. */
static int compare_at(wg__gradcheck *c, const wg__point *p, int64_t at, double x, side *up,
                      side *down) {
    double h = (c->dtype == WG_F64 ? 1e-5 : 1.0 / 64) * fmax(1, fabs(x));
    int status = converges(c, at, h, up);
    if (status == 0)
        status = converges(c, at, -h, down);
    if (status != 0)
        return status;
    double low = 0, high = 0, size = 0;
    bool is_kink = false;
    for (int64_t i = 0; i < c->weighted.elements; i++) {
        double one = c->weight_values[i] * up->near[i], other = c->weight_values[i] * down->near[i];
        low += fmin(one, other);
        high += fmax(one, other);
        size += fabs(one) + fabs(other);
        is_kink |= fabs(one - other) > 1e-4 * (1e-2 + fabs(one));
    }
    double analytic = c->sums.analytic[at], limit = 1e-4 * (1e-2 + size);
    if (fabs(x) > HUGE_STEP && isfinite(analytic)) /* a step is many periods long */
        return 1;
    c->report->compared++;
    c->report->kinks += is_kink;
    c->found.kinks += is_kink;
    if (analytic >= low - limit && analytic <= high + limit)
        return 0;
    wg_gradcheck_report *r = c->report;
    r->numeric = (low + high) / 2;
    r->analytic = analytic;
    return wg__gradcheck_fail_at(
        c, p->diagnosis, at, "",
        ", which is %g, is %.9g; the slopes to its sides are %.9g and %.9g", x, analytic, low,
        high);
}

int wg__gradcheck_point(wg__gradcheck *c, const wg__point *p) {
    if (wg__gradcheck_prepare(c) < 0 || wg__gradcheck_decomposed_values(c) < 0)
        return -1;
    if (p->undefined || c->wanted.count == 0 || c->weighted.elements == 0)
        return 0;
    if (wg__gradcheck_evaluate(c, NULL, c->sums.analytic) < 0)
        return -1;
    int w = 0, status = 0;
    bool smooth = true;
    while (w < c->wanted.count && c->wanted.index[w] != p->input)
        w++;
    const int64_t values = c->weighted.elements;
    double *room = wg__alloc_array(wg__times(4, values) + 1, sizeof *room);
    if (!room)
        return wg__gradcheck_no_memory(c);
    side up = {room, room + values}, down = {room + 2 * values, room + 3 * values};
    for (int k = 0; k < 3 && status >= 0 && w < c->wanted.count; k++) {
        if (p->only[k] < 0)
            continue;
        double x = *(double *)wg__element_address(c->wanted.tensors[w], p->only[k]);
        status = compare_at(c, p, c->wanted.at[w] + p->only[k], x, &up, &down);
        smooth &= status == 0;
    }
    wg__free(room);
    if (status < 0)
        return -1;
    if (!smooth || c->found.kinks > 0)
        return 0;
    return wg__gradcheck_f32(c, p->diagnosis == WG_DIAGNOSIS_AT_LARGE);
}
