/* The engine of reductions over axes.
 *
 * A reduction sees its operand as kept axes by reduced axes, each group sorted and merged so that
 * the smallest stride comes last. The work is cut into items:
 *
 *               reduced axes -->
 *     kept    +--------+--------+--------+
 *     axes    | item 0 | item 1 | item 2 |   a block of kept places by a part of the reduced axes;
 *       |     +--------+--------+--------+   there are several parts only where blocks are few
 *       v     | item 3 | item 4 | item 5 |
 *             +--------+--------+--------+
 *
 * and the parts of a block are joined from left to right. The cut depends on the shape alone, so
 * any number of threads gives the same bits. Sums of f32 and bf16 accumulate in f64, which keeps up
 * with memory and leaves one rounding, at the end. */
#include "tensor/ops/reduce/reduction.h"
#include "base/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Axes and blocks ---- */

/* Inserts an axis; larger strides in the operand come first. */
static void insert_axis(wg__axes *axes, wg__stepped_axis added) {
    int place = axes->count++;
    for (; place > 0 && llabs(axes->axis[place - 1].in) < llabs(added.in); place--)
        axes->axis[place] = axes->axis[place - 1];
    axes->axis[place] = added;
}

/* Merges neighbours that one stride can walk. At least one axis remains, possibly of size 1. */
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

/* Runs of fewer elements are not worth a call each. */
#define SHORT_RUN 16

/* ---- The plan ---- */

typedef struct plan {
    const wg__reduction *kernels;
    wg__blocks blocks; /* of kept places */
    wg__axes reduced;
    const char *x;
    size_t x_size; /* bytes of an element */
    char *y;
    size_t y_size;
    bool by_rows; /* rows of kept places are added up, rather than runs of reduced ones */
    int64_t parts;
    int split;      /* the reduced axis that is cut into parts */
    char *partials; /* the accumulators of every item, where there are several parts */
} plan;

/* The inner loop runs along the smaller stride, unless it would be too short. */
static bool prefers_rows(const wg__stepped_axis *kept, const wg__stepped_axis *reduced) {
    if (kept->size < WG__SHORT_ROW)
        return false;
    return llabs(kept->in) < llabs(reduced->in) || reduced->size < SHORT_RUN;
}

/* Cuts blocks: whole rows if rows are added up, else enough runs for an item to be worth
 * scheduling. If there are few blocks, the longest reduced axis is cut, too. */
static void plan_items(plan *plan) {
    const wg__stepped_axis *last = wg__axes_last(&plan->blocks.kept);
    const int64_t work = wg__axes_count(&plan->reduced); /* for one kept place */
    int64_t width = wg__smaller(last->size, WG__BLOCK_WIDTH);
    plan->by_rows = prefers_rows(last, wg__axes_last(&plan->reduced));
    if (!plan->by_rows)
        width = wg__smaller(width, WG__GRAIN / (work + 1) + 1);
    wg__blocks_cut(&plan->blocks, width);
    for (int i = 1; i < plan->reduced.count; i++)
        if (plan->reduced.axis[i].size > plan->reduced.axis[plan->split].size)
            plan->split = i;
    plan->parts = wg__smaller(work * width / WG__GRAIN, WG__MAX_ITEMS / plan->blocks.count);
    plan->parts = wg__smaller(plan->parts, plan->reduced.axis[plan->split].size);
    if (plan->parts < 1)
        plan->parts = 1;
}

/* ---- The work ---- */

/* Reduces `count` elements along the last reduced axis, from x on, into each accumulator. */
static void reduce_last(const plan *plan, int64_t width, int64_t count, const char *x,
                        char *accumulators) {
    const int64_t kept = wg__axes_last(&plan->blocks.kept)->in;
    const int64_t reduced = wg__axes_last(&plan->reduced)->in;
    const int64_t size = (int64_t)plan->x_size;
    if (plan->by_rows)
        for (int64_t i = 0; i < count; i++)
            plan->kernels->add_row(width, accumulators, x + i * reduced * size, kept);
    else
        for (int64_t i = 0; i < width; i++)
            plan->kernels->add_run(count, accumulators + i * (int64_t)plan->kernels->size,
                                   x + i * kept * size, reduced);
}

/* Reduces one part of the reduced axes into the accumulators of a block. */
static void reduce_part(const plan *plan, const wg__block *block, int64_t part,
                        char *accumulators) {
    const wg__axes *reduced = &plan->reduced;
    const int last = reduced->count - 1;
    int64_t begin[WG_MAX_DIMS] = {0}, end[WG_MAX_DIMS], index[WG_MAX_DIMS];
    if (wg__axes_count(reduced) == 0)
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
        reduce_last(plan, block->width, end[last] - begin[last],
                    plan->x + offset * (int64_t)plan->x_size, accumulators);
        for (i = last - 1; i >= 0 && ++index[i] == end[i]; i--)
            index[i] = begin[i];
    }
}

static void finish_block(const plan *plan, const wg__block *block, const void *accumulators) {
    const int64_t stride = wg__axes_last(&plan->blocks.kept)->out;
    plan->kernels->finish(block->width, accumulators, plan->y + block->out * (int64_t)plan->y_size,
                          stride);
}

static char *partials_of(const plan *plan, int64_t item) {
    return plan->partials + item * plan->blocks.width * (int64_t)sizeof(double);
}

static void run_items(int64_t begin, int64_t end, void *context) {
    const plan *plan = context;
    for (int64_t item = begin; item < end; item++) {
        const wg__block block = wg__block_at(&plan->blocks, item / plan->parts);
        double room[WG__BLOCK_WIDTH];
        char *accumulators = plan->parts > 1 ? partials_of(plan, item) : (char *)room;
        plan->kernels->start(block.width, accumulators);
        reduce_part(plan, &block, item % plan->parts, accumulators);
        if (plan->parts == 1)
            finish_block(plan, &block, accumulators);
    }
}

static void join_parts(const plan *plan) {
    for (int64_t i = 0; i < plan->blocks.count; i++) {
        const wg__block block = wg__block_at(&plan->blocks, i);
        char *total = partials_of(plan, i * plan->parts);
        for (int64_t part = 1; part < plan->parts; part++)
            plan->kernels->join(block.width, total, partials_of(plan, i * plan->parts + part));
        finish_block(plan, &block, total);
    }
}

int wg__reduce(const wg__reduction *kernels, const wg_tensor *x, int64_t mask, wg_tensor *y) {
    plan plan = {.kernels = kernels,
                 .blocks.kept = wg__axes_kept(x, mask),
                 .reduced = wg__axes_reduced(x, mask),
                 .x = wg__tensor_address(x),
                 .x_size = wg_dtype_size(x->spec.dtype),
                 .y = wg__tensor_address(y),
                 .y_size = wg_dtype_size(y->spec.dtype)};
    if (wg__spec_count(&y->spec) == 0)
        return 0;
    plan_items(&plan);
    if (plan.parts > 1) {
        plan.partials = wg__alloc_array(
            wg__times(wg__times(plan.blocks.count, plan.parts), plan.blocks.width), sizeof(double));
        if (plan.partials == NULL)
            return -1;
    }
    const int64_t item_work = wg__axes_count(&plan.reduced) * plan.blocks.width / plan.parts + 1;
    wg__parallel_for(plan.blocks.count * plan.parts, WG__GRAIN / item_work + 1, run_items, &plan);
    if (plan.parts > 1)
        join_parts(&plan);
    wg__free(plan.partials);
    return 0;
}

/* ---- What the records share ---- */

bool wg__reduce_options_make(wg__reduce_options *options, const wg_tensor *x, int axis_count,
                             const int64_t *axes, bool keepdim, const char *where) {
    if (x == NULL)
        return false;
    options->mask = wg__axis_mask(axis_count, axis_count == 0 ? NULL : axes, x->spec.ndim, where);
    options->keepdim = keepdim;
    return options->mask >= 0;
}

wg_tensor *wg__reduce_apply(const wg_op *op, wg_tensor *x, int axis_count, const int64_t *axes,
                            bool keepdim) {
    wg__reduce_options options;
    if (!wg__reduce_options_make(&options, x, axis_count, axes, keepdim, op->name))
        return NULL;
    return wg_apply_one(op, 1, &x, &options);
}

const wg__reduce_options *wg__reduce_options_of(const wg_call *call) {
    return call->options;
}

int64_t wg__reduced_count(const wg_spec *x, int64_t mask) {
    int64_t count = 1;
    for (int i = 0; i < x->ndim; i++)
        if (mask >> i & 1)
            count *= x->shape[i];
    return count;
}

int wg__reduced_last(int ndim, int64_t mask, int64_t *order) {
    int count = 0, kept = 0;
    for (int reduced = 0; reduced < 2; reduced++) {
        for (int i = 0; i < ndim; i++)
            if ((int)(mask >> i & 1) == reduced)
                order[count++] = i;
        kept = reduced ? kept : count;
    }
    return kept;
}

int wg__infer_reduced(wg_call *call, wg_dtype dtype) {
    const wg__reduce_options *options = call->options;
    wg__reduced_spec(&call->input_specs[0], options->mask, options->keepdim,
                     &call->output_specs[0]);
    call->output_specs[0].dtype = dtype;
    return 0;
}

int wg__infer_total(wg_call *call) {
    const wg_dtype dtype = call->input_specs[0].dtype;
    return wg__infer_reduced(call, wg_dtype_is_float(dtype) ? dtype : WG_I64);
}

int wg__reduce_call(wg_call *call, const wg__reduction *kernels) {
    return wg__reduce(&kernels[call->input_specs[0].dtype], call->inputs[0],
                      wg__reduce_options_of(call)->mask, call->outputs[0]);
}

wg_tensor *wg__with_axes(wg_tensor *reduced, const wg_call *call) {
    wg_spec spec;
    wg__reduced_spec(&call->input_specs[0], wg__reduce_options_of(call)->mask, true, &spec);
    return wg_reshape(reduced, spec.ndim, spec.shape);
}

wg_tensor *wg__sum_over(wg_tensor *x, const wg_call *call) {
    const wg__reduce_options *options = call->options;
    int64_t axes[WG_MAX_DIMS];
    int count = 0;
    for (int i = 0; i < call->input_specs[0].ndim; i++)
        if (options->mask >> i & 1)
            axes[count++] = i;
    return count == 0 ? x : wg_sum(x, count, axes, options->keepdim);
}

int wg__vjp_by_derivative(const wg_call *call, wg_tensor *derivative, wg_tensor *const *cotangents,
                          wg_tensor **gradients) {
    gradients[0] = wg_mul(derivative, wg__with_axes(cotangents[0], call));
    return wg__vjp_status();
}

int wg__jvp_by_derivative(const wg_call *call, wg_tensor *derivative, wg_tensor *const *tangents,
                          wg_tensor **output_tangents) {
    output_tangents[0] = wg__sum_over(wg_mul(derivative, tangents[0]), call);
    return wg__vjp_status();
}

wg_tensor *wg__shares_of(wg_tensor *chosen, const wg_call *call) {
    chosen = wg_cast(chosen, call->input_specs[0].dtype);
    return wg_div(chosen, wg__with_axes(wg__sum_over(chosen, call), call));
}

double wg__reduce_flops(const wg_call *call) {
    return (double)wg__spec_count(&call->input_specs[0]);
}

const wg__reduction_case *wg__reduction_case_at(int index) {
    static const wg__reduction_case cases[] = {
        {{3, false}, 2, {2, 3}},    {{2, false}, 2, {2, 3}}, {{5, true}, 3, {2, 3, 2}},
        {{1, false}, 3, {3, 1, 2}}, {{0, false}, 0, {0}},    {{1, true}, 1, {1}},
    };
    return index < (int)(sizeof cases / sizeof *cases) ? &cases[index] : NULL;
}

int wg__sample_reduction(int index, wg_generator *generator, wg_sample *sample) {
    const wg__reduction_case *c = wg__reduction_case_at(index);
    if (c == NULL)
        return 0;
    sample->options = &c->options;
    sample->inputs[0] = wg__sample_distinct(generator, c->ndim, c->shape);
    return wg__sample_status(sample, 1);
}

int wg__bench_reduction(wg_generator *generator, wg_sample *sample) {
    static const wg__reduce_options options = {2, false};
    return wg__bench_inputs(generator, sample, &options, 1, 2, (int64_t[]){4096, 1024});
}
