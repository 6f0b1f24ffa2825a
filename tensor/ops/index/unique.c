/* The values of a tensor, by the order of its elements. */
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/index/order.h"

#include <string.h>

/* ---- unique: the values that there are, in ascending order; for each element which it is; and how
 * many there are of each. ---- */

/* The number of values is not known before: these are the largest that there can be. */
static int unique_infer(wg_call *call) {
    const int64_t n = wg__spec_count(&call->input_specs[0]);
    call->output_specs[0] = (wg_spec){call->input_specs[0].dtype, 1, {n}};
    call->output_specs[1] = call->input_specs[0];
    call->output_specs[1].dtype = WG_I64;
    call->output_specs[2] = (wg_spec){WG_I64, 1, {n}};
    return 0;
}

/* Numbers the values in the order of the elements, and notes where in that order each begins.
 * Returns how many there are. */
static int64_t number_values(const wg_tensor *x, const int64_t *order, int64_t *number,
                             int64_t *begin) {
    const int64_t n = wg__spec_count(&x->spec);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || !wg__order_same(x->spec.dtype, wg__tensor_address(x), order[i - 1], order[i]))
            begin[count++] = i;
        number[order[i]] = count - 1;
    }
    return count;
}

/* Makes the values and the counts. */
static int collect_values(wg_call *call, const wg_tensor *x, const int64_t *order,
                          const int64_t *begin, int64_t count) {
    const size_t size = wg_dtype_size(x->spec.dtype);
    call->outputs[0] = wg_empty(x->spec.dtype, 1, &count);
    call->outputs[2] = wg_empty(WG_I64, 1, &count);
    if (call->outputs[0] == NULL || call->outputs[2] == NULL)
        return -1;
    char *values = wg__tensor_address(call->outputs[0]);
    int64_t *counts = wg__tensor_address(call->outputs[2]);
    for (int64_t i = 0; i < count; i++) {
        memcpy(values + (size_t)i * size,
               (const char *)wg__tensor_address(x) + (size_t)order[begin[i]] * size, size);
        counts[i] = (i + 1 < count ? begin[i + 1] : wg__spec_count(&x->spec)) - begin[i];
    }
    return 0;
}

static int unique_forward(wg_call *call) {
    const wg_tensor *x = wg_contiguous(call->inputs[0]);
    call->outputs[1] = wg__tensor_new(&call->output_specs[1]);
    if (x == NULL || call->outputs[1] == NULL)
        return -1;
    const int64_t n = wg__spec_count(&x->spec);
    const size_t room = wg__order_room(x->spec.dtype, n);
    char *block = wg__alloc(room + (size_t)n * sizeof(int64_t));
    if (block == NULL)
        return -1;
    int64_t *order = (int64_t *)(block + room);
    int64_t *begin = (int64_t *)block; /* the room is free again by then */
    if (n > 0)
        wg__order(x->spec.dtype, false, n, wg__tensor_address(x), n, block, order);
    const int64_t count = number_values(x, order, wg__tensor_address(call->outputs[1]), begin);
    const int status = collect_values(call, x, order, begin, count);
    wg__free(block);
    return status;
}

/* With ties, so that some values come more than once. */
static int unique_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_unary(index, generator, sample, wg__sample_distinct);
    if (status <= 0)
        return status;
    wg_tensor *whole = wg_cast(sample->inputs[0], WG_I64);
    sample->inputs[0] = index % 2 ? whole : wg_cast(whole, WG_F64);
    return wg__sample_status(sample, 1);
}

static int unique_bench(wg_generator *generator, wg_sample *sample) {
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){1024, 1024});
    return wg__sample_status(sample, 1);
}

static const wg_op unique = {
    .name = "unique",
    .doc = "The values of x in ascending order, the i64 index among them of each element, and how "
           "often each comes. All NaNs are one value.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 3,
    .no_gradient = "how many values there are, and so the shape, depends on the operand",
    .places_outputs = true,
    .infer = unique_infer,
    .forward = unique_forward,
    .sample = unique_sample,
    .bench = unique_bench,
};

int wg_unique(wg_tensor *x, wg_tensor **values, wg_tensor **inverse, wg_tensor **counts) {
    wg_tensor *outputs[WG_MAX_OUTPUTS] = {NULL};
    wg_tensor **const wanted[] = {values, inverse, counts};
    const int status = wg_apply(&unique, 1, &x, NULL, outputs);
    for (int j = 0; j < 3; j++)
        if (wanted[j] != NULL)
            *wanted[j] = outputs[j];
    return status;
}

static const wg_op *const ops[] = {&unique};

const wg__op_family wg__family_unique = {ops, sizeof ops / sizeof *ops};
