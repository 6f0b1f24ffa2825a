/* Axes in the order of memory, and blocks of places along them: see axes.h. */
#include "tensor/ops/shape/axes.h"

#include <stdlib.h>

#include "base/counts.h"

/* Puts an axis into its place: the larger the stride in the operand, the further out. */
static void insert_axis(wg__axes *axes, wg__stepped_axis added) {
    int place = axes->count++;
    for (; place > 0 && llabs(axes->axis[place - 1].in) < llabs(added.in); place--)
        axes->axis[place] = axes->axis[place - 1];
    axes->axis[place] = added;
}

/* Joins neighbours that step as one. There is an axis afterwards, be it of size 1. */
static void merge_axes(wg__axes *axes) {
    if (axes->count == 0)
        insert_axis(axes, (wg__stepped_axis){.size = 1, .out = 1});
    int last = 0;
    for (int i = 1; i < axes->count; i++) {
        wg__stepped_axis *outer = &axes->axis[last], inner = axes->axis[i];
        if (outer->in == inner.in * inner.size && outer->out == inner.out * inner.size) {
            inner.size *= outer->size;
            *outer = inner;
        } else {
            axes->axis[++last] = inner;
        }
    }
    axes->count = last + 1;
}

wg__axes wg__axes_kept(const wg_tensor *x, int64_t mask) {
    wg__axes axes = {0};
    int64_t out = 1;
    for (int i = x->spec.ndim - 1; i >= 0; i--) {
        const int64_t size = x->spec.shape[i];
        if (mask >> i & 1)
            continue;
        if (size != 1)
            insert_axis(&axes, (wg__stepped_axis){size, x->strides[i], out});
        out *= size;
    }
    merge_axes(&axes);
    return axes;
}

wg__axes wg__axes_reduced(const wg_tensor *x, int64_t mask) {
    wg__axes axes = {0};
    for (int i = x->spec.ndim - 1; i >= 0; i--)
        if ((mask >> i & 1) && x->spec.shape[i] != 1)
            insert_axis(&axes, (wg__stepped_axis){x->spec.shape[i], x->strides[i], 0});
    merge_axes(&axes);
    return axes;
}

int64_t wg__axes_count(const wg__axes *axes) {
    int64_t count = 1;
    for (int i = 0; i < axes->count; i++)
        count *= axes->axis[i].size;
    return count;
}

void wg__blocks_cut(wg__blocks *blocks, int64_t width) {
    const int64_t row = wg__axes_last(&blocks->kept)->size;
    blocks->width = width;
    blocks->per_row = wg__ceil_divide(row, width);
    blocks->count = wg__axes_count(&blocks->kept) / row * blocks->per_row;
}

wg__block wg__block_at(const wg__blocks *blocks, int64_t index) {
    const wg__axes *kept = &blocks->kept;
    const wg__stepped_axis *last = wg__axes_last(kept);
    const int64_t begin = index % blocks->per_row * blocks->width;
    wg__block block = {wg__smaller(last->size - begin, blocks->width), begin * last->in,
                       begin * last->out};
    int64_t rest = index / blocks->per_row;
    for (int i = kept->count - 2; i >= 0; i--) {
        const int64_t place = rest % kept->axis[i].size;
        rest /= kept->axis[i].size;
        block.in += place * kept->axis[i].in;
        block.out += place * kept->axis[i].out;
    }
    return block;
}
