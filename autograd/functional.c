/* The transforms of functions. */
#include "autograd/functional.h"

#include <string.h>

#include "autograd/forward.h"
#include "tensor/ops.h"

/* Runs the function, which must set all its outputs. */
static int call_function(wg_function function, void *context, int input_count,
                         wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                         const char *where) {
    memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (function(input_count, inputs, output_count, outputs, context) < 0)
        return wg_error_pending()
                   ? -1
                   : wg_fail(WG_ERROR_ARGUMENT, where, "the function failed without an error");
    for (int j = 0; j < output_count; j++)
        if (!outputs[j])
            return wg_error_pending() ? -1
                                      : wg_fail(WG_ERROR_ARGUMENT, where,
                                                "the function left its output %d NULL", j);
    return 0;
}

/* ---- Forward mode ---- */

static int check_tangent(int input, const wg_tensor *x, const wg_tensor *tangent) {
    char is[128], should[128];
    if (!wg_dtype_is_float(x->spec.dtype))
        return wg_fail(WG_ERROR_DTYPE, "jvp", "input %d is %s, which has no tangent; wanted NULL",
                       input, wg_spec_text(is, sizeof is, &x->spec));
    if (wg__same_shape(&x->spec, &tangent->spec) && x->spec.dtype == tangent->spec.dtype)
        return 0;
    return wg_fail(x->spec.dtype == tangent->spec.dtype ? WG_ERROR_SHAPE : WG_ERROR_DTYPE, "jvp",
                   "a tangent of %s for input %d of %s",
                   wg_spec_text(is, sizeof is, &tangent->spec), input,
                   wg_spec_text(should, sizeof should, &x->spec));
}

static int make_duals(wg__level *level, int count, wg_tensor *const *inputs,
                      wg_tensor *const *tangents, wg_tensor **duals) {
    for (int i = 0; i < count; i++) {
        duals[i] = wg_alias(inputs[i]);
        if (!duals[i] && inputs[i])
            return -1;
        if (!tangents[i])
            continue;
        if (!inputs[i])
            return wg_fail(WG_ERROR_ARGUMENT, "jvp", "a tangent for input %d, which is NULL", i);
        if (check_tangent(i, inputs[i], tangents[i]) < 0 ||
            wg__tangent_push(duals[i], level, tangents[i]) < 0)
            return -1;
    }
    return 0;
}

/* Takes each output apart into its value and its tangent of that level, owned one scope out. */
static int split_outputs(const wg__level *level, int count, wg_tensor **outputs,
                         wg_tensor **output_tangents) {
    for (int j = 0; j < count; j++) {
        wg_tensor *y = outputs[j], *tangent = wg__tangent_of(y, level);
        outputs[j] = wg__primal(y, level);
        if (!outputs[j])
            return -1;
        if (!wg_dtype_is_float(y->spec.dtype))
            continue;
        output_tangents[j] = tangent ? wg_alias(tangent) : wg_zeros_like(y);
        if (!output_tangents[j])
            return -1;
    }
    return 0;
}

int wg_jvp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
           wg_tensor *const *tangents, int output_count, wg_tensor **outputs,
           wg_tensor **output_tangents) {
    memset(output_tangents, 0, (size_t)output_count * sizeof *output_tangents);
    if (outputs)
        memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (wg_error_pending())
        return -1;
    wg_tensor **room = wg__calloc((size_t)(input_count + output_count) + 1, sizeof *room);
    if (!room)
        return -1;
    wg_tensor **duals = room, **values = room + input_count;
    wg__autograd_start();
    wg__level level;
    wg_scope scope;
    wg__level_begin(&level);
    wg_scope_begin(&scope);
    int status = make_duals(&level, input_count, inputs, tangents, duals);
    if (status == 0)
        status = call_function(function, context, input_count, duals, output_count, values, "jvp");
    if (status == 0)
        status = split_outputs(&level, output_count, values, output_tangents);
    for (int j = 0; j < output_count; j++) {
        output_tangents[j] = status == 0 ? wg_scope_escape(output_tangents[j]) : NULL;
        if (outputs)
            outputs[j] = status == 0 ? wg_scope_escape(values[j]) : NULL;
    }
    wg_scope_end(&scope, NULL);
    wg__level_end(&level);
    wg__free(room);
    return status;
}
