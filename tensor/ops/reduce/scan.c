/* The engine of scans, and what their records share: see scan.h. */
#include "tensor/ops/reduce/scan.h"

typedef struct plan {
    wg__scan_kernel kernel;
    int input_count, output_count;
    const char *x[2];
    char *y[2];
    int64_t x_size, y_size[2]; /* bytes of an element */
    int64_t n, inner;          /* places along the axis, and behind it */
    int64_t width, blocks;     /* of lines, and how many of them lie side by side */
    bool reverse;
} plan;

static void run_blocks(int64_t begin, int64_t end, void *context) {
    const plan *plan = context;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block % plan->blocks * plan->width, rest = plan->inner - first;
        const int64_t start = block / plan->blocks * plan->n * plan->inner + first +
                              (plan->reverse ? (plan->n - 1) * plan->inner : 0);
        wg__scan_lines lines = {.n = plan->n,
                                .step = plan->reverse ? -plan->inner : plan->inner,
                                .width = rest < plan->width ? rest : plan->width};
        for (int i = 0; i < plan->input_count; i++)
            lines.x[i] = plan->x[i] + start * plan->x_size;
        for (int j = 0; j < plan->output_count; j++)
            lines.y[j] = plan->y[j] + start * plan->y_size[j];
        plan->kernel(&lines);
    }
}

int wg__scan(wg_call *call, const wg__scan_kernel *kernels) {
    const wg__scan_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    plan plan = {.kernel = kernels[x->dtype],
                 .input_count = call->input_count,
                 .output_count = call->output_count,
                 .x_size = (int64_t)wg_dtype_size(x->dtype),
                 .n = x->shape[options->axis],
                 .inner = 1,
                 .reverse = options->reverse};
    for (int i = 0; i < call->input_count; i++) {
        const wg_tensor *dense = wg_contiguous(call->inputs[i]);
        if (dense == NULL)
            return -1;
        plan.x[i] = wg__tensor_address(dense);
    }
    for (int j = 0; j < call->output_count; j++) {
        plan.y[j] = wg__tensor_address(call->outputs[j]);
        plan.y_size[j] = (int64_t)wg_dtype_size(call->output_specs[j].dtype);
    }
    const int64_t count = wg__spec_count(x);
    if (count == 0)
        return 0;
    for (int i = options->axis + 1; i < x->ndim; i++)
        plan.inner *= x->shape[i];
    plan.width = plan.inner < WG__SCAN_WIDTH ? plan.inner : WG__SCAN_WIDTH;
    plan.blocks = (plan.inner + plan.width - 1) / plan.width;
    wg__parallel_for(count / plan.n / plan.inner * plan.blocks,
                     WG__GRAIN / (plan.n * plan.width) + 1, run_blocks, &plan);
    return 0;
}

double wg__scan_flops(const wg_call *call) {
    return (double)wg__spec_count(&call->input_specs[0]);
}

int wg__sample_scan(int index, wg_generator *generator, wg_sample *sample, wg__sampler make) {
    static const wg__scan_options options[] = {{1, false}, {1, true}, {0, true}, {0, false}};
    static const struct {
        int ndim;
        int64_t shape[3];
    } shapes[] = {{3, {2, 4, 2}}, {2, {2, 3}}, {2, {3, 2}}, {1, {1}}};
    if (index >= 4)
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = make(generator, shapes[index].ndim, shapes[index].shape);
    return wg__sample_status(sample, 1);
}

int wg__bench_scan(wg_generator *generator, wg_sample *sample) {
    static const wg__scan_options options = {1, false};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){4096, 1024});
    return wg__sample_status(sample, 1);
}

wg_tensor *wg__shifted(wg_tensor *x, const wg__scan_options *options, bool next, double fill) {
    const int axis = options->axis;
    const bool to_right = options->reverse == next;
    wg_tensor *first = wg_slice(x, axis, 0, 1, 1);
    if (first == NULL || wg_tensor_count(first) == 0)
        return x;
    wg_tensor *end = wg_full(x->spec.dtype, x->spec.ndim, first->spec.shape, fill);
    wg_tensor *rest = to_right ? wg_slice(x, axis, 0, -1, 1) : wg_slice(x, axis, 1, WG_END, 1);
    return to_right ? wg_cat(2, (wg_tensor *[]){end, rest}, axis)
                    : wg_cat(2, (wg_tensor *[]){rest, end}, axis);
}
