/* Contractions, by views, matrix products and elementwise ones.
 *
 *     each operand     diagonals of labels that come twice, axes of size 1 dropped, labels summed
 *                      that nobody else has
 *     each product     a: (batch, left, summed)   b: (batch, summed, right)
 *                      -> (batch, left, right), by one wg_matmul; without `summed`, by wg_mul
 *     the result       permuted; axes of size 1 come back
 *
 * Within a group of axes that are seen as one, the order is free, and is that of the memory, so
 * that few operands have to be copied. */
#include "tensor/ops/linalg/contraction.h"

#include "tensor/ops.h"

#include <math.h>
#include <string.h>

/* An ordered list of labels. */
typedef struct label_list {
    int count;
    int labels[2 * WG_MAX_DIMS];
} label_list;

static wg__labels set_of(const wg__labelled *x) {
    wg__labels set = 0;
    for (int axis = 0; axis < x->tensor->spec.ndim; axis++)
        set |= (wg__labels)1 << x->labels[axis];
    return set;
}

static bool has(wg__labels set, int label) {
    return set >> label & 1;
}

static int axis_of(const wg__labelled *x, int label) {
    int axis = 0;
    while (x->labels[axis] != label)
        axis++;
    return axis;
}

static int64_t product_of(const label_list *list, const int64_t *sizes) {
    int64_t product = 1;
    for (int i = 0; i < list->count; i++)
        product *= sizes[list->labels[i]];
    return product;
}

static void append(label_list *list, const label_list *more) {
    for (int i = 0; i < more->count; i++)
        list->labels[list->count++] = more->labels[i];
}

/* The labels of a set in the order in which x has them in memory, the longest stride first. */
static label_list in_order_of_memory(const wg__labelled *x, wg__labels set) {
    label_list list = {0};
    const wg_tensor *tensor = x->tensor;
    for (int axis = 0; axis < tensor->spec.ndim; axis++) {
        if (!has(set, x->labels[axis]))
            continue;
        int place = list.count++;
        for (; place > 0; place--) {
            const int before = axis_of(x, list.labels[place - 1]);
            if (tensor->strides[before] >= tensor->strides[axis])
                break;
            list.labels[place] = list.labels[place - 1];
        }
        list.labels[place] = x->labels[axis];
    }
    return list;
}

/* The labels of a set in the order that the output has, and behind them those that it lacks. */
static label_list in_order_of_output(const wg__contraction *c, wg__labels set) {
    label_list list = {0};
    for (int i = 0; i < c->output_ndim; i++)
        if (has(set, c->output[i])) {
            list.labels[list.count++] = c->output[i];
            set &= ~((wg__labels)1 << c->output[i]);
        }
    for (int label = 0; label < WG__MAX_LABELS; label++)
        if (has(set, label))
            list.labels[list.count++] = label;
    return list;
}

/* x with its axes in the order of a list, which names each of them. */
static wg_tensor *permuted(const wg__labelled *x, const label_list *order) {
    int64_t axes[WG_MAX_DIMS];
    bool moves = false;
    for (int i = 0; i < order->count; i++) {
        axes[i] = axis_of(x, order->labels[i]);
        moves |= axes[i] != i;
    }
    return moves ? wg_permute(x->tensor, order->count, axes) : x->tensor;
}

static wg_tensor *reshaped(wg_tensor *x, int ndim, const int64_t *shape) {
    if (x && x->spec.ndim == ndim &&
        memcmp(x->spec.shape, shape, (size_t)ndim * sizeof *shape) == 0)
        return x;
    return wg_reshape(x, ndim, shape);
}

/* ---- One operand ---- */

static void remove_axis(wg__labelled *x, int axis, int ndim) {
    for (int i = axis; i + 1 < ndim; i++)
        x->labels[i] = x->labels[i + 1];
}

/* A label that comes twice becomes one axis, the last. */
static void take_diagonals(wg__labelled *x) {
    for (int i = 0; x->tensor && i < x->tensor->spec.ndim; i++)
        for (int j = i + 1; x->tensor && j < x->tensor->spec.ndim; j++) {
            if (x->labels[i] != x->labels[j])
                continue;
            const int label = x->labels[i], ndim = x->tensor->spec.ndim;
            x->tensor = wg_diagonal(x->tensor, 0, i, j);
            remove_axis(x, j, ndim);
            remove_axis(x, i, ndim - 1);
            x->labels[ndim - 2] = label;
            j = i;
        }
}

static void drop_ones(wg__labelled *x) {
    if (!x->tensor)
        return;
    int64_t shape[WG_MAX_DIMS];
    int ndim = 0;
    for (int axis = 0; axis < x->tensor->spec.ndim; axis++) {
        if (x->tensor->spec.shape[axis] == 1)
            continue;
        x->labels[ndim] = x->labels[axis];
        shape[ndim++] = x->tensor->spec.shape[axis];
    }
    x->tensor = reshaped(x->tensor, ndim, shape);
}

/* ---- Two operands ---- */

/* Without a label to be summed over: each with axes of size 1 where it lacks a label of the other.
 */
static wg_tensor *spread(const wg__labelled *x, const label_list *all) {
    label_list own = {0};
    int64_t shape[WG_MAX_DIMS];
    const wg__labels set = set_of(x);
    for (int i = 0; i < all->count; i++) {
        const int label = all->labels[i];
        shape[i] = has(set, label) ? x->tensor->spec.shape[axis_of(x, label)] : 1;
        if (has(set, label))
            own.labels[own.count++] = label;
    }
    return reshaped(permuted(x, &own), all->count, shape);
}

static wg_tensor *multiply(const wg__contraction *c, const wg__labelled *a, const wg__labelled *b,
                           label_list *result) {
    *result = in_order_of_output(c, set_of(a) | set_of(b));
    return wg_mul(spread(a, result), spread(b, result));
}

/* x as matrices: the axes of a batch, those of the rows as one, and those of the columns. */
static wg_tensor *as_matrices(const wg__contraction *c, const wg__labelled *x,
                              const label_list *batch, const label_list *rows,
                              const label_list *columns) {
    label_list all = *batch;
    append(&all, rows);
    append(&all, columns);
    int64_t shape[WG_MAX_DIMS] = {product_of(batch, c->sizes)};
    int ndim = 1;
    if (batch->count <= WG_MAX_DIMS - 2)
        for (ndim = 0; ndim < batch->count; ndim++)
            shape[ndim] = c->sizes[batch->labels[ndim]];
    shape[ndim++] = product_of(rows, c->sizes);
    shape[ndim++] = product_of(columns, c->sizes);
    return reshaped(permuted(x, &all), ndim, shape);
}

/* The place in the output of the first of these labels, or one behind its end. */
static int place_in_output(const wg__contraction *c, wg__labels set) {
    int place = 0;
    while (place < c->output_ndim && !has(set, c->output[place]))
        place++;
    return place;
}

/* a is to have what comes first in the output, which then needs no permutation. */
static wg_tensor *matrix_product(const wg__contraction *c, const wg__labelled *a,
                                 const wg__labelled *b, wg__labels kept, label_list *result) {
    wg__labels shared = set_of(a) & set_of(b);
    if (place_in_output(c, set_of(b) & ~shared) < place_in_output(c, set_of(a) & ~shared)) {
        const wg__labelled *other = a;
        a = b;
        b = other;
    }
    const bool a_is_larger = wg_tensor_count(a->tensor) >= wg_tensor_count(b->tensor);
    const label_list batch = in_order_of_output(c, shared & kept);
    const label_list summed = in_order_of_memory(a_is_larger ? a : b, shared & ~kept);
    const label_list left = in_order_of_memory(a, set_of(a) & ~shared);
    const label_list right = in_order_of_memory(b, set_of(b) & ~shared);
    *result = batch;
    append(result, &left);
    append(result, &right);
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < result->count; i++)
        shape[i] = c->sizes[result->labels[i]];
    return reshaped(wg_matmul(as_matrices(c, a, &batch, &left, &summed),
                              as_matrices(c, b, &batch, &summed, &right)),
                    result->count, shape);
}

/* ---- All ---- */

/* Integers would sum in i64; a product with ones keeps their dtype. */
static wg_tensor *integer_sum(const wg__contraction *c, const wg__labelled *x, wg__labels summed,
                              label_list *result) {
    const label_list labels = in_order_of_memory(x, summed);
    wg__labelled ones;
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < labels.count; i++) {
        ones.labels[i] = labels.labels[i];
        shape[i] = c->sizes[labels.labels[i]];
    }
    ones.tensor = wg_ones(x->tensor->spec.dtype, labels.count, shape);
    return ones.tensor ? matrix_product(c, x, &ones, ~summed, result) : NULL;
}

static void sum_out(const wg__contraction *c, wg__labelled *x, wg__labels summed) {
    const wg_dtype dtype = x->tensor->spec.dtype;
    int64_t axes[WG_MAX_DIMS];
    int count = 0;
    label_list kept = {0};
    for (int axis = 0; axis < x->tensor->spec.ndim; axis++)
        if (has(summed, x->labels[axis]))
            axes[count++] = axis;
        else
            kept.labels[kept.count++] = x->labels[axis];
    if (count == 0)
        return;
    x->tensor = wg_dtype_is_float(dtype) || dtype == WG_I64
                    ? wg_sum(x->tensor, count, axes, false)
                    : integer_sum(c, x, summed & set_of(x), &kept);
    memcpy(x->labels, kept.labels, sizeof x->labels);
}

/* The labels that the output has, or an operand other than these two. */
static wg__labels needed_beside(const wg__contraction *c, int left, int right) {
    wg__labels needed = 0;
    for (int i = 0; i < c->output_ndim; i++)
        needed |= (wg__labels)1 << c->output[i];
    for (int i = 0; i < c->count; i++)
        if (i != left && i != right && c->operands[i].tensor)
            needed |= set_of(&c->operands[i]);
    return needed;
}

/* False when one of them became NULL. */
static bool prepare(wg__contraction *c) {
    for (int i = 0; i < c->count; i++) {
        take_diagonals(&c->operands[i]);
        drop_ones(&c->operands[i]);
        if (!c->operands[i].tensor)
            return false;
    }
    for (int i = 0; i < c->count; i++) {
        sum_out(c, &c->operands[i], ~needed_beside(c, i, i));
        if (!c->operands[i].tensor)
            return false;
    }
    return true;
}

/* Puts the product of the two into `left`, and NULL into `right`. */
static bool contract_pair(wg__contraction *c, int left, int right) {
    wg__labelled *a = &c->operands[left], *b = &c->operands[right];
    const wg__labels kept = needed_beside(c, left, right);
    label_list labels;
    if ((set_of(a) & set_of(b) & ~kept) == 0)
        a->tensor = multiply(c, a, b, &labels);
    else
        a->tensor = matrix_product(c, a, b, kept, &labels);
    b->tensor = NULL;
    if (!a->tensor)
        return false;
    memcpy(a->labels, labels.labels, sizeof a->labels);
    return true;
}

static wg_tensor *in_shape_of_output(const wg__contraction *c, const wg__labelled *x) {
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < c->output_ndim; i++)
        shape[i] = c->sizes[c->output[i]];
    const label_list order = in_order_of_output(c, set_of(x));
    return reshaped(permuted(x, &order), c->output_ndim, shape);
}

wg_tensor *wg__contract(const wg_call *call, wg__contraction *c) {
    if (!prepare(c))
        return NULL;
    wg__labels operands[WG_MAX_INPUTS], output = 0;
    wg__contraction_step steps[WG_MAX_INPUTS];
    for (int i = 0; i < c->count; i++)
        operands[i] = set_of(&c->operands[i]);
    for (int i = 0; i < c->output_ndim; i++)
        output |= (wg__labels)1 << c->output[i];
    if (wg__contraction_order(c->count, operands, output, c->sizes, steps) == INFINITY) {
        wg__op_fail(call, WG_ERROR_SHAPE,
                    "in any order, a product on the way to the result has more than %d axes",
                    WG_MAX_DIMS);
        return NULL;
    }
    for (int i = 0; i < c->count - 1; i++)
        if (!contract_pair(c, steps[i].left, steps[i].right))
            return NULL;
    return in_shape_of_output(c, &c->operands[c->count > 1 ? steps[c->count - 2].left : 0]);
}
