/* Checking a module: a function whose parameters the checker finds in the module. */
#include "gradcheck/module.h"

#include "tensor/internal.h"

/* The user's function, with the same random numbers each time. */
typedef struct replayed {
    wg_function function;
    void *context;
    wg_module *module;
    wg_generator generator;
} replayed;

static int replay(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    replayed *r = context;
    *wg_module_generator(r->module) = r->generator;
    return r->function(input_count, inputs, output_count, outputs, r->context);
}

/* The dtype of its parameters; f32 for none. */
static wg_dtype dtype_of(const wg_state_dict *state) {
    for (int64_t i = 0; i < state->count; i++)
        if (state->entries[i].slot->kind == WG_SLOT_PARAMETER)
            return wg_tensor_dtype(state->entries[i].slot->tensor);
    return WG_F32;
}

static int check(replayed *r, const wg_state_dict *state, int input_count, wg_tensor *const *inputs,
                 int output_count, wg_gradcheck_options options, wg_gradcheck_report *report) {
    wg_tensor **parameters = wg__calloc((size_t)state->count + 1, sizeof *parameters);
    const char **names = wg__calloc((size_t)state->count + 1, sizeof *names);
    int status = parameters && names ? 0 : -1;
    for (int64_t i = 0; i < state->count && status == 0; i++) {
        const wg_slot *slot = state->entries[i].slot;
        if (slot->kind != WG_SLOT_PARAMETER || slot->tied)
            continue;
        names[options.parameter_count] = state->entries[i].path;
        parameters[options.parameter_count++] = slot->tensor;
    }
    options.parameters = parameters;
    options.parameter_names = names;
    if (status == 0)
        status = wg_gradcheck(replay, r, input_count, inputs, output_count, &options, report);
    wg__free(parameters);
    wg__free(names);
    return status;
}

/* Also after a failure, whose error has to stay. */
static int cast_back(wg_module *module, wg_dtype dtype, int status,
                     const wg_gradcheck_report *report) {
    if (status == 0)
        return wg_module_to(module, dtype);
    wg_error_clear();
    return wg_module_to(module, dtype) < 0
               ? -1
               : wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
}

int wg_gradcheck_module(wg_module *module, wg_function function, void *context, int input_count,
                        wg_tensor *const *inputs, int output_count,
                        const wg_gradcheck_options *options, wg_gradcheck_report *report) {
    wg_gradcheck_options given = options ? *options : (wg_gradcheck_options){0};
    wg_gradcheck_report own;
    report = report ? report : &own;
    *report = (wg_gradcheck_report){.seed = given.seed, .diagnosis = WG_DIAGNOSIS_FAILED};
    if (!module || wg_error_pending())
        return -1;
    if (given.parameter_count > 0)
        return wg_fail(WG_ERROR_ARGUMENT, "gradcheck_module",
                       "options list %d parameters; the module has its own", given.parameter_count);
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    replayed r = {function, context, module, *wg_module_generator(module)};
    wg_dtype before = dtype_of(state);
    int status = wg_module_to(module, given.f32 ? WG_F32 : WG_F64);
    if (status == 0) {
        status = check(&r, state, input_count, inputs, output_count, given, report);
        status = cast_back(module, before, status, report);
    }
    *wg_module_generator(module) = r.generator;
    wg_state_dict_free(state);
    return status;
}
