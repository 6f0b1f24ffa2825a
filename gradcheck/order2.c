/* The second order is the first order of another function:
 *
 *     (inputs, cotangents of the outputs)  ->  the gradients of the wanted inputs
 *
 * whose backward differentiates the recorded backward of the first. All cotangents are views here,
 * whose elements do not lie one after the other. */
#include <math.h>
#include <string.h>

#include "gradcheck/check.h"
#include "tensor/ops.h"

/* Finds its inputs in `context`, the check of first order: they are moved in place. */
static int gradient_function(int input_count, wg_tensor *const *inputs, int output_count,
                             wg_tensor **outputs, void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    wg__gradcheck again = *(const wg__gradcheck *)context;
    wg_gradcheck_report ignored = *again.report;
    again.report = &ignored;
    again.outputs = wg__calloc((size_t)again.output_count + 1, sizeof *outputs);
    if (!again.outputs)
        return -1;
    int status = again.function(again.argument_count, again.inputs, again.output_count,
                                again.outputs, again.context);
    if (status == 0)
        status =
            wg__gradcheck_pull_tensors(&again, &(wg__pull_options){.create_graph = true}, outputs);
    wg__free(again.outputs);
    return status;
}

/* Recording must not change the gradient: for a fused op the one comes from its decomposition and
 * the other from its kernels. */
static int compare_with_first(wg__gradcheck *second, const wg__gradcheck *first) {
    int64_t at =
        wg__gradcheck_unlike(first, first->coordinate_count, second->values, first->analytic, 1);
    if (at < 0)
        return 0;
    char name[160];
    int input = first->wanted[wg__gradcheck_input_of(first, at)];
    return wg__gradcheck_fail(second, WG_DIAGNOSIS_RECORDED, input,
                              "the gradient of %s is %.9g with create_graph, %.9g without",
                              wg__gradcheck_input_text(name, sizeof name, first, input),
                              second->values[at], first->analytic[at]);
}

static int check_second(wg__gradcheck *second, const wg__gradcheck *first) {
    if (wg__gradcheck_prepare(second) < 0 || wg__gradcheck_measure(second) < 0 ||
        compare_with_first(second, first) < 0 || wg__gradcheck_conduct_before(second) < 0)
        return -1;
    return second->coordinate_count == 0 ? 0 : wg__gradcheck_differences(second);
}

int wg__gradcheck_order2(wg__gradcheck *first) {
    int weights = first->weighted_count, inputs = first->input_count;
    wg_tensor **all = wg__calloc((size_t)(inputs + 2 * weights) + 1, sizeof *all);
    if (!all)
        return wg__gradcheck_fail(first, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    wg_tensor **plain = all + inputs + weights;
    memcpy(all, first->inputs, (size_t)inputs * sizeof *all);
    memcpy(plain, first->weights, (size_t)weights * sizeof *all);
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int k = 0; k < weights; k++) {
        first->weights[k] = wg__layout_strided(plain[k]);
        wg_set_requires_grad(first->weights[k], true);
        all[inputs + k] = first->weights[k];
    }
    wg__gradcheck second = {.function = gradient_function,
                            .context = first,
                            .user_count = first->user_count,
                            .input_count = inputs + weights,
                            .inputs = all,
                            .output_count = first->wanted_count,
                            .order = 2,
                            .derived = first->derived,
                            .dtype = first->dtype,
                            .options = first->options,
                            .report = first->report};
    int status = check_second(&second, first);
    if (second.report->order < 2 && status == 0)
        second.report->order = 2;
    wg__gradcheck_free(&second);
    memcpy(first->weights, plain, (size_t)weights * sizeof *plain);
    wg_scope_end(&scope, NULL);
    wg__free(all);
    return status;
}
