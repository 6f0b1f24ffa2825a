/* The engine of reductions: see reduction.h. An item of work is a block of the kept axes and a part
 * of the reduced axes. There are several parts only if there are few blocks; the parts of a block
 * are joined from left to right. */
#include "tensor/ops/reduce/reduction.h"

#include <stdlib.h>
#include <string.h>

/* Inserts an axis; larger strides in the operand come first. */
static void insert_axis(wg__axes *axes, wg__stepped_axis added) {
    int place = axes->count++;
    for (; place > 0 && llabs(axes->axis[place - 1].in) < llabs(added.in); place--)
        axes->axis[place] = axes->axis[place - 1];
    axes->axis[place] = added;
}

wg__axes wg__axes_of(const wg_tensor *x, int64_t mask, bool reduced) {
    wg__axes axes = {0};
    int64_t out = 1;
    for (int i = x->spec.ndim - 1; i >= 0; i--) {
        const int64_t size = x->spec.shape[i];
        if ((mask >> i & 1) != reduced)
            continue;
        if (size != 1)
            insert_axis(&axes, (wg__stepped_axis){size, x->strides[i], reduced ? 0 : out});
        out *= size;
    }
    if (axes.count == 0)
        insert_axis(&axes, (wg__stepped_axis){.size = 1, .out = 1});

    /* Merge neighbours that one stride can walk. */
    int last = 0;
    for (int i = 1; i < axes.count; i++) {
        wg__stepped_axis *outer = &axes.axis[last], inner = axes.axis[i];
        if (outer->in == inner.in * inner.size && outer->out == inner.out * inner.size) {
            inner.size *= outer->size;
            *outer = inner;
        } else {
            axes.axis[++last] = inner;
        }
    }
    axes.count = last + 1;
    return axes;
}

static int64_t count_of(const wg__axes *axes) {
    int64_t count = 1;
    for (int i = 0; i < axes->count; i++)
        count *= axes->axis[i].size;
    return count;
}

void wg__blocks_cut(wg__blocks *blocks, int64_t width) {
    const int64_t row = wg__axes_last(&blocks->kept)->size;
    blocks->width = width;
    blocks->per_row = wg__ceil_divide(row, width);
    blocks->count = count_of(&blocks->kept) / row * blocks->per_row;
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

typedef struct plan {
    const wg__reduction *kernels;
    wg__blocks blocks; /* of the kept axes */
    wg__axes reduced;
    const char *x;
    size_t x_size; /* bytes of an element */
    char *y;
    int64_t y_size; /* bytes of an element */
    bool by_rows;   /* the inner loop runs along the last kept axis, not the last reduced axis */
    int64_t parts;
    int split;      /* the reduced axis that is cut into parts */
    char *partials; /* the accumulators of all items if there are several parts */
} plan;

/* Runs shorter than this are not worth a call of a kernel each. */
#define SHORT_RUN 16

/* Reduces a part of the reduced axes into the accumulators of a block. A step of `by_rows` adds an
 * element to each accumulator; otherwise a step adds a run to a single accumulator. */
static void reduce_part(const plan *plan, const wg__block *block, int64_t part,
                        char *accumulators) {
    const wg__axes *reduced = &plan->reduced;
    const int last = reduced->count - 1;
    const int64_t kept_step = wg__axes_last(&plan->blocks.kept)->in;
    const int64_t step = wg__axes_last(reduced)->in, bytes = (int64_t)plan->x_size;
    int64_t begin[WG_MAX_DIMS] = {0}, end[WG_MAX_DIMS], index[WG_MAX_DIMS];
    if (count_of(reduced) == 0)
        return;
    for (int i = 0; i <= last; i++)
        end[i] = reduced->axis[i].size;
    const int64_t size = end[plan->split];
    begin[plan->split] = part * size / plan->parts;
    end[plan->split] = (part + 1) * size / plan->parts;
    memcpy(index, begin, sizeof index);
    for (int i = 0; i >= 0;) {
        int64_t offset = block->in;
        for (int k = 0; k <= last; k++)
            offset += index[k] * reduced->axis[k].in;
        const char *x = plan->x + offset * bytes;
        const int64_t count = end[last] - begin[last];
        for (int64_t k = 0; plan->by_rows && k < count; k++)
            plan->kernels->add_row(block->width, accumulators, x + k * step * bytes, kept_step);
        for (int64_t k = 0; !plan->by_rows && k < block->width; k++)
            plan->kernels->add_run(count, accumulators + k * (int64_t)plan->kernels->size,
                                   x + k * kept_step * bytes, step);
        for (i = last - 1; i >= 0 && ++index[i] == end[i]; i--)
            index[i] = begin[i];
    }
}

static void run_items(int64_t begin, int64_t end, void *context) {
    const plan *plan = context;
    const int64_t bytes = plan->blocks.width * (int64_t)sizeof(double);
    const int64_t stride = wg__axes_last(&plan->blocks.kept)->out;
    for (int64_t item = begin; item < end; item++) {
        const wg__block block = wg__block_at(&plan->blocks, item / plan->parts);
        double room[WG__BLOCK_WIDTH];
        char *accumulators = plan->parts > 1 ? plan->partials + item * bytes : (char *)room;
        plan->kernels->start(block.width, accumulators);
        reduce_part(plan, &block, item % plan->parts, accumulators);
        if (plan->parts == 1)
            plan->kernels->finish(block.width, accumulators, plan->y + block.out * plan->y_size,
                                  stride);
    }
}

int wg__reduce(const wg__reduction *kernels, const wg_tensor *x, int64_t mask, wg_tensor *y) {
    plan plan = {.kernels = kernels,
                 .blocks.kept = wg__axes_of(x, mask, false),
                 .reduced = wg__axes_of(x, mask, true),
                 .x = wg__tensor_address(x),
                 .x_size = wg_dtype_size(x->spec.dtype),
                 .y = wg__tensor_address(y),
                 .y_size = (int64_t)wg_dtype_size(y->spec.dtype)};
    if (wg__spec_count(&y->spec) == 0)
        return 0;

    /* The inner loop runs along the axis with the smaller stride, unless that axis is too short.
     * Blocks are wide for rows; else an item has enough runs to be worth scheduling. */
    const wg__stepped_axis *kept = wg__axes_last(&plan.blocks.kept);
    const wg__stepped_axis *reduced = wg__axes_last(&plan.reduced);
    const int64_t work = count_of(&plan.reduced); /* for an element of the output */
    int64_t width = wg__smaller(kept->size, WG__BLOCK_WIDTH);
    plan.by_rows = kept->size >= WG__SHORT_ROW &&
                   (llabs(kept->in) < llabs(reduced->in) || reduced->size < SHORT_RUN);
    if (!plan.by_rows)
        width = wg__smaller(width, WG__GRAIN / (work + 1) + 1);
    wg__blocks_cut(&plan.blocks, width);

    /* If there are few blocks, the longest reduced axis is cut into parts. */
    for (int i = 1; i < plan.reduced.count; i++)
        if (plan.reduced.axis[i].size > plan.reduced.axis[plan.split].size)
            plan.split = i;
    plan.parts = wg__smaller(work * width / WG__GRAIN, WG__MAX_ITEMS / plan.blocks.count);
    plan.parts = wg__smaller(plan.parts, plan.reduced.axis[plan.split].size);
    plan.parts = wg__larger(plan.parts, 1);
    if (plan.parts > 1) {
        plan.partials = wg__alloc_array(
            wg__times(wg__times(plan.blocks.count, plan.parts), plan.blocks.width), sizeof(double));
        if (!plan.partials)
            return -1;
    }

    const int64_t item_work = work * width / plan.parts + 1;
    wg__parallel_for(plan.blocks.count * plan.parts, WG__GRAIN / item_work + 1, run_items, &plan);
    for (int64_t i = 0; plan.parts > 1 && i < plan.blocks.count; i++) {
        const wg__block block = wg__block_at(&plan.blocks, i);
        const int64_t bytes = plan.blocks.width * (int64_t)sizeof(double);
        char *total = plan.partials + i * plan.parts * bytes;
        for (int64_t part = 1; part < plan.parts; part++)
            kernels->join(block.width, total, total + part * bytes);
        kernels->finish(block.width, total, plan.y + block.out * plan.y_size, kept->out);
    }
    wg__free(plan.partials);
    return 0;
}
