/* Sums of products in Einstein's notation, "bqhd,bkhd->bhqk", and the contractions that einsum and
 * tensordot come down to.
 *
 *     wg_einsum              the text into tokens, which needs no operands
 *     read_equation          tokens and operands into a contraction: which axis has which label
 *     wg__contraction_order  which two operands are multiplied next; sees sets of labels only
 *     contract               the products: views, wg_matmul, wg_mul */
#include "tensor/ops/linalg/einsum.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

/* ==== The order of the products. For example a b c with (10, 1000), (1000, 10) and (10, 1000)
 * elements costs 200 thousand multiply-adds from the left and 20 million from the right.
 *
 * For few operands, dynamic programming over subsets finds the cheapest order (Held & Karp 1962);
 * for many, the first steps are greedy   (Smith & Gray 2018, opt_einsum). ==== */

/* The largest number of operands for the search over subsets: 3^8 pairs of subsets take some tens
 * of microseconds. */
enum { FEW = 8, SUBSETS = 1 << FEW, MAX_LABELS = 60 };

/* The cost of writing and reading an element of a result, in multiply-adds. */
static const double traffic = 8;

static double count_of(wg__index_set labels, const int64_t *sizes) {
    double count = 1;
    for (int label = 0; labels >> label != 0; label++)
        if (labels >> label & 1)
            count *= (double)sizes[label];
    return count;
}

/* The labels of the output and of all operands but `left` and `right`. */
static wg__index_set labels_beside(int count, const wg__index_set *operands, wg__index_set output,
                                   int left, int right) {
    for (int i = 0; i < count; i++)
        if (i != left && i != right)
            output |= operands[i];
    return output;
}

/* Picks the pair whose product has the fewest elements more than its factors; false if no product
 * fits. */
static bool greedy_pair(int count, const wg__index_set *operands, wg__index_set output,
                        const int64_t *sizes, wg__contraction_step *best) {
    double least = INFINITY;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            wg__index_set kept =
                (operands[i] | operands[j]) & labels_beside(count, operands, output, i, j);
            double growth =
                count_of(kept, sizes) - count_of(operands[i], sizes) - count_of(operands[j], sizes);
            if (growth < least && __builtin_popcountll(kept) <= WG_MAX_DIMS) {
                least = growth;
                *best = (wg__contraction_step){i, j};
            }
        }
    return least < INFINITY;
}

typedef struct subset {
    double cost, multiply_adds; /* of all products; a cost of INFINITY: no order fits */
    wg__index_set labels;       /* of the result */
    int part;                   /* the last product: the result of `part` times its complement's */
} subset;

static void find_last_product(int which, subset *all, const int64_t *sizes) {
    subset *whole = &all[which];
    whole->cost = INFINITY;
    if (__builtin_popcountll(whole->labels) > WG_MAX_DIMS)
        return;
    const double written = traffic * count_of(whole->labels, sizes);
    for (int part = (which - 1) & which; part > (which ^ part); part = (part - 1) & which) {
        const subset *a = &all[part], *b = &all[which ^ part];
        const double multiply_adds = count_of(a->labels | b->labels, sizes);
        const double cost = a->cost + b->cost + multiply_adds + written;
        if (cost < whole->cost) {
            whole->cost = cost;
            whole->multiply_adds = a->multiply_adds + b->multiply_adds + multiply_adds;
            whole->part = part;
        }
    }
}

/* Writes the steps of a subset; `numbers` are the operands of its bits. Returns the operand that
 * its result replaces. */
static int emit(int which, const subset *all, const int *numbers, wg__contraction_step **next) {
    if ((which & (which - 1)) == 0) {
        int bit = 0;
        while (which >> bit != 1)
            bit++;
        return numbers[bit];
    }
    const int left = emit(which ^ all[which].part, all, numbers, next);
    const int right = emit(all[which].part, all, numbers, next);
    *(*next)++ = (wg__contraction_step){left, right};
    return left;
}

double wg__contraction_order(int count, const wg__index_set *operands, wg__index_set output,
                             const int64_t *sizes, wg__contraction_step *steps) {
    wg__index_set rest[WG_MAX_INPUTS];
    int numbers[WG_MAX_INPUTS];
    double multiply_adds = 0;
    for (int i = 0; i < count; i++) {
        rest[i] = operands[i];
        numbers[i] = i;
    }
    for (; count > FEW; count--) {
        wg__contraction_step pair = {0, 1};
        if (!greedy_pair(count, rest, output, sizes, &pair))
            return INFINITY;
        multiply_adds += count_of(rest[pair.left] | rest[pair.right], sizes);
        rest[pair.left] = (rest[pair.left] | rest[pair.right]) &
                          labels_beside(count, rest, output, pair.left, pair.right);
        *steps++ = (wg__contraction_step){numbers[pair.left], numbers[pair.right]};
        rest[pair.right] = rest[count - 1];
        numbers[pair.right] = numbers[count - 1];
    }
    subset all[SUBSETS] = {{0}};
    const int full = (1 << count) - 1;
    for (int which = 1; which <= full; which++) {
        wg__index_set inside = 0, outside = output;
        for (int i = 0; i < count; i++)
            *(which >> i & 1 ? &inside : &outside) |= rest[i];
        all[which] = (subset){.labels = inside & outside};
        if ((which & (which - 1)) != 0)
            find_last_product(which, all, sizes);
    }
    if (all[full].cost == INFINITY)
        return INFINITY;
    emit(full, all, numbers, &steps);
    return multiply_adds + all[full].multiply_adds;
}

/* ==== Contractions, by views, matrix products and elementwise products.
 *
 *     each operand     take diagonals of labels that occur twice, drop axes of size 1, sum over
 *                      labels that neither the output nor another operand has
 *     each product     a: (batch, left, summed)   b: (batch, summed, right)
 *                      -> (batch, left, right), by one wg_matmul; without `summed`, by wg_mul
 *     the result       permute; restore axes of size 1
 *
 * A group of axes that is merged into one axis may have any order. It takes the order in memory, to
 * copy few operands. ==== */

typedef struct labelled {
    wg_tensor *tensor;
    int labels[WG_MAX_DIMS]; /* 0 to MAX_LABELS - 1 */
} labelled;

/* The axes of a label have the size of the label, or size 1, which is repeated. A label that occurs
 * twice in an operand selects the diagonal of two axes of equal size. */
typedef struct contraction {
    int count;
    labelled operands[WG_MAX_INPUTS]; /* all of the same dtype */
    int64_t sizes[MAX_LABELS];
    int output_ndim;
    int output[WG_MAX_DIMS]; /* labels of operands, each once */
} contraction;

typedef struct label_list {
    int count;
    int labels[2 * WG_MAX_DIMS];
} label_list;

static wg__index_set set_of(const labelled *x) {
    wg__index_set set = 0;
    for (int axis = 0; axis < x->tensor->spec.ndim; axis++)
        set |= (wg__index_set)1 << x->labels[axis];
    return set;
}

static wg__index_set output_set(const contraction *c) {
    wg__index_set set = 0;
    for (int i = 0; i < c->output_ndim; i++)
        set |= (wg__index_set)1 << c->output[i];
    return set;
}

static int axis_of(const labelled *x, int label) {
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

/* The labels of a set in the order of x in memory, the longest stride first. */
static label_list in_order_of_memory(const labelled *x, wg__index_set set) {
    label_list list = {0};
    const wg_tensor *tensor = x->tensor;
    for (int axis = 0; axis < tensor->spec.ndim; axis++) {
        if (!(set >> x->labels[axis] & 1))
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

/* The labels of a set: first the output's, in its order, then the remaining ones. */
static label_list in_order_of_output(const contraction *c, wg__index_set set) {
    label_list list = {0};
    for (int i = 0; i < c->output_ndim; i++)
        if (set >> c->output[i] & 1) {
            list.labels[list.count++] = c->output[i];
            set &= ~((wg__index_set)1 << c->output[i]);
        }
    for (int label = 0; label < MAX_LABELS; label++)
        if (set >> label & 1)
            list.labels[list.count++] = label;
    return list;
}

/* x with its axes in the order of a list of all its labels. */
static wg_tensor *permuted(const labelled *x, const label_list *order) {
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

/* The two axes of a repeated label become one, the last axis. */
static void take_diagonals(labelled *x) {
    for (int i = 0; x->tensor && i < x->tensor->spec.ndim; i++)
        for (int j = i + 1; x->tensor && j < x->tensor->spec.ndim; j++) {
            if (x->labels[i] != x->labels[j])
                continue;
            const int label = x->labels[i], ndim = x->tensor->spec.ndim;
            int kept = i;
            for (int axis = i + 1; axis < ndim; axis++)
                if (axis != j)
                    x->labels[kept++] = x->labels[axis];
            x->labels[kept] = label;
            x->tensor = wg_diagonal(x->tensor, 0, i, j);
            j = i;
        }
}

/* For an elementwise product: x with an axis of size 1 for each label that x lacks. */
static wg_tensor *unsqueezed(const labelled *x, const label_list *all) {
    label_list present = {0};
    int64_t shape[WG_MAX_DIMS];
    const wg__index_set set = set_of(x);
    for (int i = 0; i < all->count; i++) {
        const int label = all->labels[i];
        shape[i] = 1;
        if (set >> label & 1) {
            shape[i] = x->tensor->spec.shape[axis_of(x, label)];
            present.labels[present.count++] = label;
        }
    }
    return reshaped(permuted(x, &present), all->count, shape);
}

/* x as (batch..., rows, columns): all axes of `rows` become one axis, all of `columns` another. */
static wg_tensor *as_matrices(const contraction *c, const labelled *x, const label_list *batch,
                              const label_list *rows, const label_list *columns) {
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

/* The first axis of the output with a label of the set, or output_ndim. */
static int first_output_axis(const contraction *c, wg__index_set set) {
    int axis = 0;
    while (axis < c->output_ndim && !(set >> c->output[axis] & 1))
        axis++;
    return axis;
}

/* Exchanges a and b if the labels of b come first in the output. */
static wg_tensor *matrix_product(const contraction *c, const labelled *a, const labelled *b,
                                 wg__index_set kept, label_list *result) {
    wg__index_set shared = set_of(a) & set_of(b);
    if (first_output_axis(c, set_of(b) & ~shared) < first_output_axis(c, set_of(a) & ~shared)) {
        const labelled *first = b;
        b = a;
        a = first;
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

/* Sums over all axes of x with a label in `summed`. Integers are summed by a product with ones,
 * which keeps their dtype; wg_sum would give i64. */
static void sum_out(const contraction *c, labelled *x, wg__index_set summed) {
    const wg_dtype dtype = x->tensor->spec.dtype;
    int64_t axes[WG_MAX_DIMS], shape[WG_MAX_DIMS];
    int count = 0;
    label_list kept = {0};
    for (int axis = 0; axis < x->tensor->spec.ndim; axis++)
        if (summed >> x->labels[axis] & 1)
            axes[count++] = axis;
        else
            kept.labels[kept.count++] = x->labels[axis];
    if (count == 0)
        return;
    if (wg_dtype_is_float(dtype) || dtype == WG_I64) {
        x->tensor = wg_sum(x->tensor, count, axes, false);
    } else {
        const label_list labels = in_order_of_memory(x, summed);
        labelled ones;
        for (int i = 0; i < labels.count; i++) {
            ones.labels[i] = labels.labels[i];
            shape[i] = c->sizes[labels.labels[i]];
        }
        ones.tensor = wg_ones(dtype, labels.count, shape);
        x->tensor = ones.tensor ? matrix_product(c, x, &ones, ~summed, &kept) : NULL;
    }
    memcpy(x->labels, kept.labels, sizeof x->labels);
}

/* Computes the result by public ops; it is a view of an operand if there is nothing to compute.
 * Overwrites the operands. NULL if out of memory, or if an intermediate result needs more than
 * WG_MAX_DIMS axes; `call` is for messages. */
static wg_tensor *contract(const wg_call *call, contraction *c) {
    for (int i = 0; i < c->count; i++) {
        labelled *x = &c->operands[i];
        take_diagonals(x);
        int64_t shape[WG_MAX_DIMS];
        int ndim = 0;
        for (int axis = 0; x->tensor && axis < x->tensor->spec.ndim; axis++)
            if (x->tensor->spec.shape[axis] != 1) {
                x->labels[ndim] = x->labels[axis];
                shape[ndim++] = x->tensor->spec.shape[axis];
            }
        x->tensor = x->tensor ? reshaped(x->tensor, ndim, shape) : NULL;
        if (!x->tensor)
            return NULL;
    }

    const wg__index_set output = output_set(c);
    wg__index_set operands[WG_MAX_INPUTS];
    wg__contraction_step steps[WG_MAX_INPUTS];
    for (int i = 0; i < c->count; i++)
        operands[i] = set_of(&c->operands[i]);
    for (int i = 0; i < c->count; i++) {
        sum_out(c, &c->operands[i], ~labels_beside(c->count, operands, output, i, i));
        if (!c->operands[i].tensor)
            return NULL;
        operands[i] = set_of(&c->operands[i]);
    }
    if (wg__contraction_order(c->count, operands, output, c->sizes, steps) == INFINITY) {
        wg__op_fail(call, WG_ERROR_SHAPE,
                    "in any order, a product on the way to the result has more than %d axes",
                    WG_MAX_DIMS);
        return NULL;
    }

    /* The product of two operands replaces the left one; the right one has no labels any more. */
    for (int i = 0; i < c->count - 1; i++) {
        const int left = steps[i].left, right = steps[i].right;
        labelled *a = &c->operands[left], *b = &c->operands[right];
        const wg__index_set kept = labels_beside(c->count, operands, output, left, right);
        label_list labels;
        if ((operands[left] & operands[right] & ~kept) == 0) {
            labels = in_order_of_output(c, operands[left] | operands[right]);
            a->tensor = wg_mul(unsqueezed(a, &labels), unsqueezed(b, &labels));
        } else {
            a->tensor = matrix_product(c, a, b, kept, &labels);
        }
        if (!a->tensor)
            return NULL;
        memcpy(a->labels, labels.labels, sizeof a->labels);
        operands[left] = set_of(a);
        operands[right] = 0;
    }

    const labelled *x = &c->operands[c->count > 1 ? steps[c->count - 2].left : 0];
    const label_list order = in_order_of_output(c, set_of(x));
    int64_t shape[WG_MAX_DIMS];
    for (int i = 0; i < c->output_ndim; i++)
        shape[i] = c->sizes[c->output[i]];
    return reshaped(permuted(x, &order), c->output_ndim, shape);
}

/* ==== The equation ==== */

/* Tokens other than letters and the comma. */
enum { ELLIPSIS = '.', ARROW = '>' };

/* Enough for any equation of WG_MAX_INPUTS operands and a result of WG_MAX_DIMS axes. */
enum { MOST_TOKENS = (WG_MAX_INPUTS + 1) * (WG_MAX_DIMS + 2) };

typedef struct einsum_options {
    char tokens[MOST_TOKENS + 1];
} einsum_options;

/* Labels 0 to 51 are letters; the next are the axes of "...", aligned at the last axis. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

enum { LETTERS = sizeof letters - 1 };

/* Splits an equation into tokens. False, with ARGUMENT, for a syntax error. */
static bool read_tokens(const char *text, einsum_options *options) {
    int count = 0;
    bool ellipsis = false, arrow = false; /* in the current term; before the current term */
    *options = (einsum_options){{0}};
    for (const char *rest = text; *rest;) {
        if (*rest == ' ') {
            rest++;
            continue;
        }
        const bool is_arrow = strncmp(rest, "->", 2) == 0;
        const bool is_letter = strchr(letters, *rest) != NULL;
        const int length = is_letter || *rest == ','      ? 1
                           : is_arrow                     ? 2
                           : strncmp(rest, "...", 3) == 0 ? 3
                                                          : 0;
        const char token = length == 1 ? *rest : is_arrow ? ARROW : ELLIPSIS, *wrong = NULL;
        if (length == 0)
            wrong = "it takes letters, ',', '->' and '...'";
        else if (token == ELLIPSIS && ellipsis)
            wrong = "a term has at most one '...'";
        else if (arrow && (token == ',' || token == ARROW))
            wrong = "there is one result";
        else if (count == MOST_TOKENS)
            wrong = "it is longer than any that operands can have";
        if (wrong) {
            wg_fail(WG_ERROR_ARGUMENT, "einsum", "%s; see character %d of \"%.200s\"", wrong,
                    (int)(rest - text) + 1, text);
            return false;
        }
        ellipsis = token == ELLIPSIS || (ellipsis && is_letter);
        arrow = arrow || token == ARROW;
        options->tokens[count++] = token;
        rest += length;
    }
    return true;
}

static const char *label_text(int label, char room[4]) {
    if (label >= LETTERS)
        return "'...'";
    memcpy(room, "' '", 4);
    room[1] = letters[label];
    return room;
}

/* A term: its first token, its length, and the number of its letters. */
typedef struct term {
    const char *tokens;
    int length, letters;
    bool ellipsis;
} term;

static term term_at(const char *tokens) {
    term t = {.tokens = tokens};
    for (; tokens[t.length] && tokens[t.length] != ',' && tokens[t.length] != ARROW; t.length++) {
        t.ellipsis |= tokens[t.length] == ELLIPSIS;
        t.letters += tokens[t.length] != ELLIPSIS;
    }
    return t;
}

/* Writes the labels of a term; its "..." covers ellipsis_ndim axes. */
static int write_labels(const term *t, int ellipsis_ndim, int *labels) {
    int count = 0;
    for (int i = 0; i < t->length; i++)
        if (t->tokens[i] != ELLIPSIS)
            labels[count++] = (int)(strchr(letters, t->tokens[i]) - letters);
        else
            for (int axis = WG_MAX_DIMS - ellipsis_ndim; axis < WG_MAX_DIMS; axis++)
                labels[count++] = LETTERS + axis;
    return count;
}

/* ---- Operands and result ---- */

typedef struct equation {
    contraction contraction;
    int ellipsis_ndim;  /* the largest number of axes that "..." covers */
    int times[LETTERS]; /* how often a letter occurs in the terms of operands */
} equation;

static int read_operand(const wg_call *call, const term *t, int operand, equation *e) {
    const wg_spec *spec = &call->input_specs[operand];
    const int rest = spec->ndim - t->letters;
    if (rest < 0 || (rest > 0 && !t->ellipsis))
        return wg__op_fail(call, WG_ERROR_SHAPE, "operand %d has %d axes, its term has %d labels%s",
                           operand, spec->ndim, t->letters,
                           rest < 0 ? "" : "; '...' stands for the rest");
    const int *labels = e->contraction.operands[operand].labels;
    write_labels(t, rest, e->contraction.operands[operand].labels);
    if (rest > e->ellipsis_ndim)
        e->ellipsis_ndim = rest;
    for (int axis = 0; axis < spec->ndim; axis++) {
        const int64_t size = spec->shape[axis];
        int64_t *known = &e->contraction.sizes[labels[axis]];
        char room[4];
        for (int before = 0; before < axis; before++)
            if (labels[before] == labels[axis] && spec->shape[before] != size)
                return wg__op_fail(call, WG_ERROR_SHAPE,
                                   "%s stands for sizes %lld and %lld in operand %d, which has no "
                                   "such diagonal",
                                   label_text(labels[axis], room), (long long)spec->shape[before],
                                   (long long)size, operand);
        if (*known >= 0 && *known != 1 && size != 1 && *known != size)
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "%s stands for size %lld in operand %d, and for %lld before; make "
                               "them equal, or one of them 1",
                               label_text(labels[axis], room), (long long)size, operand,
                               (long long)*known);
        if (*known < 0 || *known == 1)
            *known = size;
        if (labels[axis] < LETTERS)
            e->times[labels[axis]]++;
    }
    return 0;
}

static int read_equation(const wg_call *call, equation *e) {
    const char *tokens = ((const einsum_options *)call->options)->tokens;
    int terms = 1;
    for (const char *at = tokens; *at && *at != ARROW; at++)
        terms += *at == ',';
    if (terms != call->input_count)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "the equation has terms for %d operands, not %d", terms,
                           call->input_count);
    e->contraction.count = terms;
    memset(e->contraction.sizes, -1, sizeof e->contraction.sizes);
    for (int i = 0; i < terms; i++) {
        const term t = term_at(tokens);
        if (read_operand(call, &t, i, e) < 0)
            return -1;
        tokens += t.length + (i + 1 < terms);
    }
    char implied[LETTERS + 2] = {ELLIPSIS}; /* no arrow: "..." and letters that occur once */
    for (int label = 0, count = 1; label < LETTERS; label++)
        if (e->times[label] == 1)
            implied[count++] = letters[label];
    const term output = term_at(*tokens == ARROW ? tokens + 1 : implied);
    bool seen[LETTERS] = {false};
    for (int i = 0; *tokens == ARROW && i < output.length; i++) {
        if (output.tokens[i] == ELLIPSIS)
            continue;
        const int64_t label = strchr(letters, output.tokens[i]) - letters;
        if (e->times[label] == 0)
            return wg__op_fail(call, WG_ERROR_ARGUMENT, "the result has '%c', which no operand has",
                               output.tokens[i]);
        if (seen[label])
            return wg__op_fail(call, WG_ERROR_ARGUMENT, "the result has '%c' twice",
                               output.tokens[i]);
        seen[label] = true;
    }
    if (!output.ellipsis && e->ellipsis_ndim > 0)
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "'...' stands for %d axes, which the result lacks; label those that are "
                           "to be summed over",
                           e->ellipsis_ndim);
    const int ndim = output.letters + (output.ellipsis ? e->ellipsis_ndim : 0);
    if (ndim > WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the result has %d axes; there are at most %d",
                           ndim, WG_MAX_DIMS);
    e->contraction.output_ndim = write_labels(&output, e->ellipsis_ndim, e->contraction.output);
    return 0;
}

/* ---- einsum: y[output] = the sum over all other labels of the product of all operands. ---- */

static int einsum_infer(wg_call *call) {
    equation e = {0};
    return read_equation(call, &e);
}

static int einsum_decompose(wg_call *call) {
    equation e = {0};
    if (read_equation(call, &e) < 0)
        return -1;
    wg_tensor *operands[WG_MAX_INPUTS];
    memcpy(operands, call->inputs, (size_t)call->input_count * sizeof *operands);
    if (!wg__promote_all(call->input_count, operands))
        return -1;
    const wg_dtype dtype = operands[0]->spec.dtype;
    if (dtype == WG_BOOL)
        return wg__op_fail(call, WG_ERROR_DTYPE, "bools do not add up; cast an operand");
    for (int i = 0; i < call->input_count; i++)
        e.contraction.operands[i].tensor = wg__widen(operands[i]);
    return wg__set_output(call, wg_cast(contract(call, &e.contraction), dtype));
}

WG__EXAMPLES(einsum, einsum_options, (wg__sample_normal), {{"ij,jk>ik"}, "2 3, 3 4"},
             {{"bqhd,bkhd>bhqk"}, "2 2 2 3, 2 3 2 3"}, {{".ij,jk"}, "2 1 2 3, 3 2"},
             {{"iij>j"}, "3 3 2"}, {{"ii"}, "3 3"}, {{"ij>ji"}, "2 3"}, {{"i,j>ji"}, "2, 3"},
             {{"ij,ij,j>"}, "2 3, 2 3, 1"}, {{"ab,bc,cd,da>ca"}, "2 3, 3 2, 2 4, 4 2"},
             {{"b.i,.ji,>b.j"}, "2 1 3, 2 2 3,"})
/* 2^31 operations: the scores of attention, from projections (B, T, H, D). */
WG__LARGE(einsum, einsum_options, "8 512 8 64, 8 512 8 64", "bqhd,bkhd>bhqk")

/* The flops of the products in the chosen order; for a single operand, one addition for each
 * element. */
static double einsum_flops(const wg_call *call) {
    equation e = {0};
    wg__index_set operands[WG_MAX_INPUTS] = {0};
    wg__contraction_step steps[WG_MAX_INPUTS];
    if (call->input_count == 1 || read_equation(call, &e) < 0)
        return (double)wg__spec_count(&call->input_specs[0]);
    for (int i = 0; i < call->input_count; i++)
        for (int axis = 0; axis < call->input_specs[i].ndim; axis++)
            operands[i] |= (wg__index_set)1 << e.contraction.operands[i].labels[axis];
    return 2 * wg__contraction_order(call->input_count, operands, output_set(&e.contraction),
                                     e.contraction.sizes, steps);
}

static const wg_op einsum = {
    WG__OP_OF(
        "einsum", 1, WG_MAX_INPUTS, 1,
        "y = the sum, over the labels that the result lacks, of the product of all operands: "
        "\"ij,jk->ik\" is a matrix product. In the order that costs least, by matrix products."),
    .options_size = sizeof(einsum_options),
    .differentiable = UINT32_MAX,
    .infer = einsum_infer,
    WG__COMPOSED(einsum),
    .bench = einsum_bench,
    .flops = einsum_flops};

wg_tensor *wg_einsum(const char *equation, int count, wg_tensor *const *operands) {
    einsum_options options;
    if (!equation)
        wg_fail(WG_ERROR_ARGUMENT, "einsum", "the equation is NULL");
    if (!equation || !read_tokens(equation, &options))
        return NULL;
    return wg_apply_one(&einsum, count, operands, &options);
}

/* ---- tensordot: the sum over pairs of axes, one of a and one of b. The result has the remaining
 * axes of a, then of b. ---- */

typedef struct tensordot_options {
    int count;
    int64_t axes_a[WG_MAX_DIMS], axes_b[WG_MAX_DIMS];
} tensordot_options;

/* Axis i of a has label i. Axis i of b has label WG_MAX_DIMS + i, or the label of its pair in a. */
static int tensordot_decompose(wg_call *call) {
    const tensordot_options *options = call->options;
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const char *name = call->op->name;
    contraction c = {.count = 2};
    int64_t summed = 0;
    if (options->count > 0 && /* wg__axis_mask takes no axes for all axes */
        (wg__axis_mask(options->count, options->axes_a, a->ndim, name) < 0 ||
         wg__axis_mask(options->count, options->axes_b, b->ndim, name) < 0))
        return -1;
    for (int i = 0; i < 2; i++)
        for (int axis = 0; axis < call->input_specs[i].ndim; axis++) {
            c.operands[i].labels[axis] = i * WG_MAX_DIMS + axis;
            c.sizes[i * WG_MAX_DIMS + axis] = call->input_specs[i].shape[axis];
        }
    for (int i = 0; i < options->count; i++) {
        const int axis_a = wg__axis(options->axes_a[i], a->ndim, name);
        const int axis_b = wg__axis(options->axes_b[i], b->ndim, name);
        if (a->shape[axis_a] != b->shape[axis_b])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "axis %d of a has size %lld, axis %d of b has %lld; they are to be "
                               "summed over together",
                               axis_a, (long long)a->shape[axis_a], axis_b,
                               (long long)b->shape[axis_b]);
        c.operands[1].labels[axis_b] = axis_a;
        summed |= (int64_t)1 << axis_a;
    }
    const int ndim = a->ndim + b->ndim - 2 * options->count;
    if (ndim > WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the result has %d axes; there are at most %d",
                           ndim, WG_MAX_DIMS);
    wg_tensor *operands[] = {call->inputs[0], call->inputs[1]};
    if (!wg__promote_all(2, operands))
        return -1;
    const wg_dtype dtype = operands[0]->spec.dtype;
    for (int i = 0; i < 2; i++) {
        c.operands[i].tensor = wg__widen(operands[i]);
        for (int axis = 0; axis < operands[i]->spec.ndim; axis++)
            if (!(summed >> c.operands[i].labels[axis] & 1))
                c.output[c.output_ndim++] = c.operands[i].labels[axis];
    }
    return wg__set_output(call, wg_cast(contract(call, &c), dtype));
}

static double tensordot_flops(const wg_call *call) {
    const tensordot_options *options = call->options;
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    double flops = 2 * (double)wg__spec_count(a) * (double)wg__spec_count(b);
    for (int i = 0; i < options->count; i++) /* the size of a pair counts once, not twice */
        flops /= (double)wg__larger(a->shape[wg__axis(options->axes_a[i], a->ndim, "flops")], 1);
    return flops;
}

WG__EXAMPLES(tensordot, tensordot_options, (wg__sample_normal), {{1, {1}, {0}}, "2 3, 3 4"},
             {{2, {-1, 0}, {0, 2}}, "2 3 4, 4 3 2"}, {{0, {0}, {0}}, "2, 3 2"})
/* 2^31 operations. */
WG__LARGE(tensordot, tensordot_options, "32 32 1024, 1024 32 32", 2, {0, 1}, {2, 1})

static const wg_op tensordot = {
    WG__OP("tensordot", 2,
           "y = the sum over pairs of axes, one of a and one of b, of the product of a and b; y "
           "has the remaining axes of a, then the remaining axes of b."),
    .options_size = sizeof(tensordot_options),
    .differentiable = 3,
    WG__COMPOSED(tensordot),
    .bench = tensordot_bench,
    .flops = tensordot_flops};

wg_tensor *wg_tensordot(wg_tensor *a, wg_tensor *b, int count, const int64_t *axes_a,
                        const int64_t *axes_b) {
    tensordot_options options = {.count = count};
    if (count < 0 || count > WG_MAX_DIMS)
        return wg__fail_null(WG_ERROR_ARGUMENT, tensordot.name,
                             "%d pairs of axes; there are 0 to %d", count, WG_MAX_DIMS);
    for (int i = 0; i < count; i++) {
        options.axes_a[i] = axes_a[i];
        options.axes_b[i] = axes_b[i];
    }
    return wg_apply_one(&tensordot, 2, (wg_tensor *[]){a, b}, &options);
}

const wg__op_table wg__ops_einsum = WG__OP_TABLE(&einsum, &tensordot);
