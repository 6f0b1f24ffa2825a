/* A custom op: defined, checked against central differences, and used in training.
 *
 *     snake(x, a) = x + sin^2(a x) / a       (Ziyin et al. 2020), with a frequency for each channel
 *
 * Networks with it extrapolate periodic functions; networks of ReLU and tanh do not.
 *     cc custom_op.c $(pkg-config --cflags --libs wengert) -lm -o custom_op && ./custom_op */
#include <math.h>
#include <stdio.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

/* ---- The op ---- */

static int snake_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *a = &call->input_specs[1];
    if (x->dtype != a->dtype || (x->dtype != WG_F32 && x->dtype != WG_F64))
        return wg_fail(WG_ERROR_DTYPE, call->op->name, "wanted two tensors of f32, or of f64");
    if (x->ndim < 1 || a->ndim != 1 || x->shape[x->ndim - 1] != a->shape[0])
        return wg_fail(WG_ERROR_SHAPE, call->op->name, "wanted x (..., C) and frequencies (C)");
    call->output_specs[0] = *x;
    return 0;
}

#define LOOP(NAME, TYPE, SIN)                                                                      \
    static void NAME(int64_t n, int64_t channels, const TYPE *x, const TYPE *a, TYPE *y) {         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const TYPE frequency = a[i % channels], wave = SIN(frequency * x[i]);                  \
            y[i] = x[i] + wave * wave / frequency;                                                 \
        }                                                                                          \
    }
LOOP(snake_f32, float, sinf)
LOOP(snake_f64, double, sin)

static int snake_forward(wg_call *call) {
    wg_tensor *x = wg_contiguous(call->inputs[0]), *a = wg_contiguous(call->inputs[1]);
    if (x == NULL || a == NULL)
        return -1;
    const int64_t n = wg_tensor_count(x), channels = wg_tensor_count(a);
    void *y = wg_tensor_data(call->outputs[0]);
    if (wg_tensor_dtype(x) == WG_F32)
        snake_f32(n, channels, wg_tensor_data(x), wg_tensor_data(a), y);
    else
        snake_f64(n, channels, wg_tensor_data(x), wg_tensor_data(a), y);
    return 0;
}

/* d/dx = 1 + sin(2 a x)     d/da = (x sin(2 a x) - sin^2(a x) / a) / a */
static int snake_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0], *x = call->inputs[0], *a = call->inputs[1];
    wg_tensor *phase = wg_mul(a, x), *twice = wg_sin(wg_mul_scalar(phase, 2));
    if (call->wants & 1)
        gradients[0] = wg_mul(g, wg_add_scalar(twice, 1));
    if (call->wants & 2) {
        wg_tensor *wave = wg_sin(phase);
        wg_tensor *slope = wg_div(wg_sub(wg_mul(x, twice), wg_div(wg_mul(wave, wave), a)), a);
        gradients[1] = wg_sum_to(wg_mul(g, slope), 1, call->input_specs[1].shape);
    }
    return wg_error_pending() ? -1 : 0;
}

static int snake_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index == 2)
        return 0;
    sample->input_count = 2;
    sample->inputs[0] = wg_randn(generator, WG_F64, 3 - index, (int64_t[]){2, 3, 3});
    sample->inputs[1] = wg_add_scalar(wg_rand(generator, WG_F64, WG_DIMS(3)), 0.5);
    return 1;
}

static const wg_op snake_op = {
    .name = "snake",
    .doc = "y = x + sin^2(a x) / a with a frequency for each channel",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .saves_inputs = 3,
    .differentiable = 3,
    .infer = snake_infer,
    .forward = snake_forward,
    .vjp = snake_vjp,
    .sample = snake_sample,
};

static wg_tensor *snake(wg_tensor *x, wg_tensor *a) {
    return wg_apply_one(&snake_op, 2, (wg_tensor *[]){x, a}, NULL);
}

/* ---- A network with a hidden layer of snake ---- */

enum { POINTS = 128, WIDTH = 16, STEPS = 500 };

typedef struct network {
    wg_module module;
    wg_linear *first, *last;
    wg_tensor *frequency; /* (WIDTH) */
} network;

static network *network_new(void) {
    network *net = wg_module_new(NULL, "", sizeof *net);
    if (net == NULL)
        return NULL;
    net->first = wg_linear_new(&net->module, "first", 1, WIDTH, NULL);
    net->last = wg_linear_new(&net->module, "last", WIDTH, 1, NULL);
    net->frequency = wg_module_parameter(&net->module, "frequency", WG_DIMS(WIDTH));
    bool recording = wg_set_grad_enabled(false);
    wg_fill_(net->frequency, 2);
    wg_set_grad_enabled(recording);
    return wg_module_finish(&net->module);
}

/* The mean squared distance from sin x, for x from -8 to 8. */
static double train_step(network *net, wg_optimizer *optimizer) {
    wg_scope step;
    wg_scope_begin(&step);
    wg_tensor *x = wg_reshape(wg_arange(WG_F32, -8, 8, 16.0 / POINTS), WG_DIMS(POINTS, 1));
    wg_tensor *hidden = snake(wg_linear_forward(net->first, x), net->frequency);
    wg_tensor *error = wg_sub(wg_linear_forward(net->last, hidden), wg_sin(x));
    wg_tensor *loss = wg_mean(wg_mul(error, error), WG_ALL, false);
    wg_backward(loss, NULL);
    wg_optimizer_step(optimizer, 0.01);
    double value = wg_item(loss);
    wg_scope_end(&step, NULL);
    return value;
}

int main(void) {
    wg_gradcheck_report report;
    wg_gradcheck_op(&snake_op, &(wg_gradcheck_options){.order = 2, .forward = true}, &report);
    printf("snake: %s\n", report.message);
    wg_manual_seed(1);
    network *net = report.passed ? network_new() : NULL;
    if (net == NULL)
        return 1;
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_optimizer_add_module(optimizer, &net->module);
    double loss = 0;
    for (int step = 0; step < STEPS && !wg_error_pending(); step++)
        loss = train_step(net, optimizer);
    printf("mean squared error: %.5f\n", loss);
    if (wg_error_pending())
        fprintf(stderr, "%s\n", wg_error_pending()->message);
    wg_optimizer_free(optimizer);
    wg_module_free(&net->module);
    return wg_error_pending() ? 1 : 0;
}
