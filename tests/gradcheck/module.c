/* Checking the gradients of modules. */
#include "gradcheck/gradcheck.h"

#include <math.h>
#include <string.h>

#include "nn/module.h"
#include "nn/linear.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

/* Two layers with dropout between them; `forgets' detaches the weight of the second. */
typedef struct network {
    wg_module module;
    wg_linear *first, *second;
    bool forgets;
} network;

static network *network_new(void) {
    wg_manual_seed(5);
    network *net = wg_module_new(NULL, "", sizeof *net);
    net->first = wg_linear_new(&net->module, "first", 3, 4, NULL);
    net->second = wg_linear_new(&net->module, "second", 4, 2, NULL);
    return wg_module_finish(&net->module);
}

static int forward(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                   void *context) {
    (void)input_count, (void)output_count;
    network *net = context;
    wg_tensor *hidden = wg_tanh(wg_linear_forward(net->first, inputs[0]));
    hidden = wg_dropout(&net->module, hidden, 0.3);
    wg_tensor *weight = net->second->weight;
    outputs[0] = wg_linear_op(hidden, net->forgets ? wg_detach(weight) : weight, net->second->bias);
    return outputs[0] ? 0 : -1;
}

static wg_tensor *points(wg_dtype dtype) {
    return leaf_of(wg_cast(normal(2, WG_F64, WG_DIMS(5, 3)), dtype));
}

TEST(a_module_passes_with_its_inputs_and_parameters) {
    network *net = network_new();
    wg_tensor *x = points(WG_F64), *before = wg_clone(wg_detach(net->first->weight));
    wg_generator generator = *wg_module_generator(&net->module);
    wg_gradcheck_options options = {.order = 2, .forward = true};
    wg_gradcheck_report report;
    int status = wg_gradcheck_module(&net->module, forward, net, 1, &x, 1, &options, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    int64_t coordinates = 15 + wg_module_parameter_count(&net->module);
    ck_assert_int_eq(report.compared, 2 * coordinates + 10);
    ck_assert(report.forward && report.order == 2);
    assert_close(wg_detach(net->first->weight), before, 0, 0); /* and f32, as before */
    ck_assert(memcmp(&generator, wg_module_generator(&net->module), sizeof generator) == 0);
    wg_module_free(&net->module);
}

TEST(a_module_passes_in_f32) {
    network *net = network_new();
    wg_tensor *x = points(WG_F32);
    wg_gradcheck_options options = {.f32 = true};
    wg_gradcheck_report report;
    int status = wg_gradcheck_module(&net->module, forward, net, 1, &x, 1, &options, &report);
    ck_assert_msg(status == 0, "%s", report.message);
    wg_module_free(&net->module);
}

TEST(the_parameter_that_is_wrong_is_named) {
    network *net = network_new();
    wg_tensor *x = points(WG_F64);
    wg_gradcheck_report report;
    net->forgets = true;
    ck_assert_int_eq(wg_gradcheck_module(&net->module, forward, net, 1, &x, 1, NULL, &report), -1);
    ck_assert_int_eq(report.diagnosis, WG_DIAGNOSIS_DETACHED);
    ck_assert_str_eq(report.name, "second.weight");
    assert_error(WG_ERROR_GRADIENT, "parameter second.weight at (");
    ck_assert_int_eq(wg_tensor_dtype(net->second->weight), WG_F32);
    wg_module_free(&net->module);
}

TEST(a_list_of_parameters_beside_the_module_is_refused) {
    network *net = network_new();
    wg_tensor *x = points(WG_F64);
    wg_gradcheck_options options = {.parameter_count = 1, .parameters = &x};
    failed(wg_gradcheck_module(&net->module, forward, net, 1, &x, 1, &options, NULL), ARGUMENT,
           "the module has its own");
    wg_module_free(&net->module);
}
