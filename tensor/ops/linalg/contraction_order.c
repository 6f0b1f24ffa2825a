/* In which order the operands of a contraction are multiplied: a b c of (10, 1000), (1000, 10) and
 * (10, 1000) elements costs 200 thousand multiply-adds from the left and 20 million from the right.
 *
 * For few operands the cheapest order of every subset is found from those of its parts (Held & Karp
 * 1962), for many the first steps are greedy   (Smith & Gray 2018, opt_einsum). */
#include "tensor/ops/linalg/contraction.h"

#include <math.h>

/* Operands of which every subset is looked at: 3^8 pairs of subsets take some tens of
 * microseconds. */
enum { FEW = 8, SUBSETS = 1 << FEW };

/* An element of a result, which is written and read again, takes about the time of so many
 * multiply-adds. */
static const double traffic = 8;

static double count_of(wg__labels labels, const int64_t *sizes) {
    double count = 1;
    for (int label = 0; labels >> label != 0; label++)
        if (labels >> label & 1)
            count *= (double)sizes[label];
    return count;
}

static bool fits(wg__labels labels) {
    int ndim = 0;
    for (; labels; labels &= labels - 1)
        ndim++;
    return ndim <= WG_MAX_DIMS;
}

/* ---- Greedy ---- */

/* What operands other than these two, or the output, have. */
static wg__labels needed_beside(int count, const wg__labels *operands, wg__labels output, int left,
                                int right) {
    for (int i = 0; i < count; i++)
        if (i != left && i != right)
            output |= operands[i];
    return output;
}

/* Picks the pair whose product has least more elements than they have; false if none fits. */
static bool greedy_pair(int count, const wg__labels *operands, wg__labels output,
                        const int64_t *sizes, wg__contraction_step *best) {
    double least = INFINITY;
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            wg__labels kept =
                (operands[i] | operands[j]) & needed_beside(count, operands, output, i, j);
            double growth =
                count_of(kept, sizes) - count_of(operands[i], sizes) - count_of(operands[j], sizes);
            if (growth < least && fits(kept)) {
                least = growth;
                *best = (wg__contraction_step){i, j};
            }
        }
    return least < INFINITY;
}

/* ---- Every subset ---- */

typedef struct subset {
    double cost, multiply_adds; /* of the products in it; a cost of INFINITY: there is no order */
    wg__labels labels;          /* of their result */
    int part;                   /* the last product is of the result of this part and of the rest */
} subset;

/* The labels that the product of the operands of a subset still has. */
static wg__labels labels_of_subset(int which, int count, const wg__labels *operands,
                                   wg__labels output) {
    wg__labels inside = 0, outside = output;
    for (int i = 0; i < count; i++)
        *(which >> i & 1 ? &inside : &outside) |= operands[i];
    return inside & outside;
}

static void find_last_product(int which, subset *all, const int64_t *sizes) {
    subset *whole = &all[which];
    whole->cost = INFINITY;
    if (!fits(whole->labels))
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

static double best_order(int count, const wg__labels *operands, wg__labels output,
                         const int64_t *sizes, const int *numbers, wg__contraction_step *steps) {
    subset all[SUBSETS] = {{0}};
    const int full = (1 << count) - 1;
    for (int which = 1; which <= full; which++) {
        all[which] = (subset){.labels = labels_of_subset(which, count, operands, output)};
        if ((which & (which - 1)) != 0)
            find_last_product(which, all, sizes);
    }
    if (all[full].cost == INFINITY)
        return INFINITY;
    emit(full, all, numbers, &steps);
    return all[full].multiply_adds;
}

double wg__contraction_order(int count, const wg__labels *operands, wg__labels output,
                             const int64_t *sizes, wg__contraction_step *steps) {
    wg__labels rest[WG_MAX_INPUTS];
    int numbers[WG_MAX_INPUTS];
    double multiply_adds = 0;
    for (int i = 0; i < count; i++) {
        rest[i] = operands[i];
        numbers[i] = i;
    }
    for (; count > FEW; count--) {
        wg__contraction_step pair;
        if (!greedy_pair(count, rest, output, sizes, &pair))
            return INFINITY;
        multiply_adds += count_of(rest[pair.left] | rest[pair.right], sizes);
        rest[pair.left] = (rest[pair.left] | rest[pair.right]) &
                          needed_beside(count, rest, output, pair.left, pair.right);
        *steps++ = (wg__contraction_step){numbers[pair.left], numbers[pair.right]};
        rest[pair.right] = rest[count - 1];
        numbers[pair.right] = numbers[count - 1];
    }
    return multiply_adds + best_order(count, rest, output, sizes, numbers, steps);
}
