/* Strided loops over tensors (internal.h): merging axes, and splitting the elements over threads.
 */
#include "tensor/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct loop_plan {
    int operand_count;
    int ndim; /* after merging; the last axis is the inner loop */
    int64_t shape[WG_MAX_DIMS];
    int64_t strides[WG__MAX_OPERANDS][WG_MAX_DIMS]; /* in bytes */
    char *data[WG__MAX_OPERANDS];
    wg__loop loop;
    wg__plane_loop plane; /* or NULL */
    int64_t size;         /* bytes of an element of the output */
    const void *context;
} loop_plan;

enum { SHORT_ROW = 64 };

/* Drops axes of size 1 and sorts the remaining axes by the stride of the output, the smallest last.
 * Joins neighbouring axes where one stride serves both in every operand. */
static void order_axes(loop_plan *plan, const wg_spec *out) {
    int ndim = 0;
    for (int axis = 0; axis < out->ndim; axis++) {
        if (out->shape[axis] == 1)
            continue;
        int place = ndim++;
        while (place > 0 && llabs(plan->strides[0][place - 1]) < llabs(plan->strides[0][axis]))
            place--;
        /* Axes place..ndim-2 move up by one; `axis` is at or beyond ndim-1. */
        int64_t size = out->shape[axis], strides[WG__MAX_OPERANDS];
        for (int i = 0; i < plan->operand_count; i++)
            strides[i] = plan->strides[i][axis];
        for (int to = ndim - 1; to > place; to--) {
            plan->shape[to] = plan->shape[to - 1];
            for (int i = 0; i < plan->operand_count; i++)
                plan->strides[i][to] = plan->strides[i][to - 1];
        }
        plan->shape[place] = size;
        for (int i = 0; i < plan->operand_count; i++)
            /* cppcheck-suppress uninitvar ; the loop above set them */
            plan->strides[i][place] = strides[i];
    }
    int kept = 0;
    for (int axis = 1; axis < ndim; axis++) {
        bool joins = true;
        for (int i = 0; i < plan->operand_count && joins; i++)
            joins = plan->strides[i][kept] == plan->strides[i][axis] * plan->shape[axis];
        if (!joins)
            kept++;
        plan->shape[kept] = joins ? plan->shape[kept] * plan->shape[axis] : plan->shape[axis];
        for (int i = 0; i < plan->operand_count; i++)
            plan->strides[i][kept] = plan->strides[i][axis];
    }
    plan->ndim = ndim > 0 ? kept + 1 : 0;
}

/* Moves data and index from the begin of a row to the begin of the next row. */
static void next_row(const loop_plan *plan, int64_t *index, char **data) {
    for (int axis = plan->ndim - 2; axis >= 0; axis--) {
        bool carries = ++index[axis] == plan->shape[axis];
        for (int i = 0; i < plan->operand_count; i++)
            data[i] += carries ? -(plan->shape[axis] - 1) * plan->strides[i][axis]
                               : plan->strides[i][axis];
        if (!carries)
            break;
        index[axis] = 0;
    }
}

/* Runs the loops on elements [begin, end), counted in the plan's order. */
static void run_range(int64_t begin, int64_t end, void *context) {
    const loop_plan *plan = context;
    int last = plan->ndim - 1;
    int64_t index[WG_MAX_DIMS], strides[WG__MAX_OPERANDS], row_strides[WG__MAX_OPERANDS];
    char *data[WG__MAX_OPERANDS];
    memcpy(data, plan->data, sizeof data);
    int64_t rest = begin;
    for (int axis = last; axis >= 0; axis--) {
        index[axis] = rest % plan->shape[axis];
        rest /= plan->shape[axis];
        for (int i = 0; i < plan->operand_count; i++)
            data[i] += index[axis] * plan->strides[i][axis];
    }
    for (int i = 0; i < plan->operand_count; i++) {
        strides[i] = plan->strides[i][last];
        row_strides[i] = last > 0 ? plan->strides[i][last - 1] : 0;
    }
    const int64_t length = plan->shape[last];
    for (int64_t done = begin; done < end;) {
        if (plan->plane != NULL && index[last] == 0 && end - done >= 2 * length) {
            const int64_t rows =
                wg__smaller(plan->shape[last - 1] - index[last - 1], (end - done) / length);
            plan->plane(plan->size, rows, length, data, row_strides, strides);
            done += rows * length;
            if (done >= end)
                return;
            index[last - 1] += rows - 1;
            for (int i = 0; i < plan->operand_count; i++)
                data[i] += (rows - 1) * row_strides[i];
            next_row(plan, index, data);
            continue;
        }
        const int64_t n = wg__smaller(length - index[last], end - done);
        plan->loop(n, data, strides, plan->context);
        done += n;
        if (done >= end)
            return;
        /* End of a row: back to its begin, and on by one in the axes above. */
        for (int i = 0; i < plan->operand_count; i++)
            data[i] -= index[last] * strides[i];
        index[last] = 0;
        next_row(plan, index, data);
    }
}

void wg__iterate_planes(int operand_count, wg_tensor *const *operands, wg__loop loop,
                        wg__plane_loop plane, const void *context) {
    const wg_spec *out = &operands[0]->spec;
    int64_t count = wg__spec_count(out);
    if (count == 0)
        return;
    /* Few elements that are contiguous in all operands: one call of the loop without a plan. */
    bool is_plain = count <= WG__GRAIN;
    for (int i = 0; i < operand_count && is_plain; i++)
        is_plain = wg__same_shape(&operands[i]->spec, out) && wg_tensor_is_contiguous(operands[i]);
    if (is_plain) {
        char *data[WG__MAX_OPERANDS];
        int64_t strides[WG__MAX_OPERANDS];
        for (int i = 0; i < operand_count; i++) {
            data[i] = wg__tensor_address(operands[i]);
            strides[i] = (int64_t)wg_dtype_size(operands[i]->spec.dtype);
        }
        loop(count, data, strides, context);
        return;
    }
    loop_plan plan = {.operand_count = operand_count,
                      .loop = loop,
                      .size = (int64_t)wg_dtype_size(out->dtype),
                      .context = context};
    for (int i = 0; i < operand_count; i++) {
        int64_t size = (int64_t)wg_dtype_size(operands[i]->spec.dtype);
        wg__broadcast_strides(operands[i], out, plan.strides[i]);
        for (int axis = 0; axis < out->ndim; axis++)
            plan.strides[i][axis] *= size;
        plan.data[i] = wg__tensor_address(operands[i]);
    }
    order_axes(&plan, out);
    if (plan.ndim > 1 && plan.shape[plan.ndim - 1] <= SHORT_ROW)
        plan.plane = plane;
    if (plan.ndim == 0) { /* one element */
        int64_t strides[WG__MAX_OPERANDS] = {0};
        loop(1, plan.data, strides, context);
        return;
    }
    wg__parallel_for(count, WG__GRAIN, run_range, &plan);
}

void wg__iterate(int operand_count, wg_tensor *const *operands, wg__loop loop,
                 const void *context) {
    wg__iterate_planes(operand_count, operands, loop, NULL, context);
}
