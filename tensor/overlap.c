/* Whether tensors share memory (internal.h).
 *
 * The address of an element is the sum of strides times indices. Two elements have the same address
 * if this equation has a solution in integers:
 *
 *     a[0] i[0] + a[1] i[1] + ... = target,    0 <= i[k] <= most[k],    a[k] > 0
 *
 * The search tries the term with the largest a first. In a layout with nested axes, the remaining
 * terms can reach the target for only one or two values of i[0]. */
#include "tensor/internal.h"

#include <stdlib.h>

typedef struct term {
    int64_t a, most;
} term;

/* Axes of two tensors, and the bytes within an element. */
enum { MOST_TERMS = 2 * WG_MAX_DIMS + 1 };

typedef struct equation {
    int count;
    term terms[MOST_TERMS]; /* the largest a first, each a once */
} equation;

/* The bound of the search. */
enum { MOST_STEPS = 10000 };

static void add_term(equation *e, int64_t a, int64_t most) {
    int at = e->count;
    if (most == 0)
        return;
    while (at > 0 && e->terms[at - 1].a < a)
        at--;
    if (at > 0 && e->terms[at - 1].a == a) {
        e->terms[at - 1].most += most;
        return;
    }
    for (int i = e->count++; i > at; i--)
        e->terms[i] = e->terms[i - 1];
    e->terms[at] = (term){a, most};
}

/* Whether the terms from `first` on reach the target. Also true if no steps are left. */
static bool has_solution(const equation *e, int first, int64_t target, int *steps) {
    if (target == 0 || --*steps < 0)
        return true;
    int64_t rest = 0;
    for (int i = first + 1; i < e->count; i++)
        rest += e->terms[i].a * e->terms[i].most;
    if (first == e->count || target < 0)
        return false;
    const term *t = &e->terms[first];
    const int64_t least = target > rest ? (target - rest + t->a - 1) / t->a : 0;
    for (int64_t i = wg__smaller(t->most, target / t->a); i >= least; i--)
        if (has_solution(e, first + 1, target - i * t->a, steps))
            return true;
    return false;
}

/* ---- Two tensors ---- */

/* Adds the axes of x to the equation. Returns the distance in bytes from the first element of x to
 * the element with the lowest address (`sign` is -1) or with the highest address (1). */
static int64_t add_axes(equation *e, const wg_tensor *x, int sign) {
    const int64_t size = (int64_t)wg_dtype_size(x->spec.dtype);
    int64_t distance = 0;
    for (int i = 0; i < x->spec.ndim; i++) {
        const int64_t stride = x->strides[i] * size, most = x->spec.shape[i] - 1;
        if (stride == 0)
            continue;
        add_term(e, llabs(stride), most);
        distance += sign * stride > 0 ? stride * most : 0;
    }
    return distance;
}

wg__overlap wg__overlap_of(const wg_tensor *x, const wg_tensor *y) {
    if (x->storage != y->storage && !x->storage->release && !y->storage->release)
        return WG__OVERLAP_NONE;
    if (wg__spec_count(&x->spec) == 0 || wg__spec_count(&y->spec) == 0)
        return WG__OVERLAP_NONE;
    const int64_t x_size = (int64_t)wg_dtype_size(x->spec.dtype),
                  y_size = (int64_t)wg_dtype_size(y->spec.dtype);
    /* Addresses of the first elements as numbers; without memory, offsets in the storage. */
    const int64_t x_first = (int64_t)(uintptr_t)x->storage->data + x->offset * x_size,
                  y_first = (int64_t)(uintptr_t)y->storage->data + y->offset * y_size;
    bool is_same =
        x_first == y_first && x->spec.dtype == y->spec.dtype && wg__same_shape(&x->spec, &y->spec);
    for (int i = 0; i < x->spec.ndim && is_same; i++)
        is_same = x->strides[i] == y->strides[i] || x->spec.shape[i] == 1;
    if (is_same)
        return WG__OVERLAP_SAME;
    /* A byte of x lies `up` bytes above the lowest byte of x, and a byte of y lies `down` bytes
     * below the highest byte of y. Both are the same byte if up + down = highest of y - lowest of
     * x. */
    equation e = {0};
    int steps = MOST_STEPS;
    const int64_t lowest = x_first + add_axes(&e, x, -1),
                  highest = y_first + add_axes(&e, y, 1) + y_size - 1;
    add_term(&e, 1, x_size + y_size - 2);
    return has_solution(&e, 0, highest - lowest, &steps) ? WG__OVERLAP_PARTIAL : WG__OVERLAP_NONE;
}

bool wg__overlaps_itself(const wg_tensor *x) {
    bool is_nested = true; /* every stride leads beyond the axes after it, as in most tensors */
    int64_t extent = 1;
    for (int i = x->spec.ndim - 1; i >= 0 && is_nested; i--) {
        const int64_t stride = x->spec.shape[i] == 1 ? extent : llabs(x->strides[i]);
        is_nested = stride >= extent;
        extent += stride * (x->spec.shape[i] - 1);
    }
    if (is_nested || wg__spec_count(&x->spec) == 0)
        return false;
    equation axes = {0};
    int steps = MOST_STEPS, long_axes = 0;
    for (int i = 0; i < x->spec.ndim; i++) {
        if (x->spec.shape[i] > 1 && x->strides[i] == 0)
            return true;
        long_axes += x->spec.shape[i] > 1;
        add_term(&axes, llabs(x->strides[i]), x->spec.shape[i] - 1);
    }
    bool meets = axes.count < long_axes; /* two axes have one stride */
    /* Whether two elements whose indices are equal on the axes before `first` (the axes are sorted
     * by stride) and differ on `first` have the same address. The differences of the indices are
     * the unknowns: 1 to `most` on the axis `first`, -most to most on the axes after it, each
     * counted from its least value. */
    for (int first = 0; first < axes.count && !meets; first++) {
        const term *t = &axes.terms[first];
        equation e = {0};
        int64_t target = -t->a;
        add_term(&e, t->a, t->most - 1);
        for (int i = first + 1; i < axes.count; i++) {
            add_term(&e, axes.terms[i].a, 2 * axes.terms[i].most);
            target += axes.terms[i].a * axes.terms[i].most;
        }
        meets = has_solution(&e, 0, target, &steps);
    }
    return meets;
}
