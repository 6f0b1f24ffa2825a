/* Derivatives in all the ways of docs/autodiff.md, which quotes this file.
 *
 *     cc autodiff.c $(pkg-config --cflags --libs wengert) -lm -o autodiff && ./autodiff */
#include <stdio.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

static wg_tensor *vector(double a, double b) {
    return wg_from_array(WG_F64, WG_DIMS(2), (double[]){a, b});
}

static void show(const char *what, const wg_tensor *x) {
    printf("%-26s", what);
    for (int64_t i = 0; i < wg_tensor_count(x); i++)
        printf(" %8.4f", ((const double *)wg_tensor_data(x))[i]);
    printf("\n");
}

static void recording(void) {
    wg_tensor *w = vector(1, 2);
    wg_set_requires_grad(w, true);
    wg_tensor *loss = wg_sum(wg_exp(wg_mul(w, w)), WG_ALL, false);
    wg_backward(loss, NULL);
    show("backward", wg_gradient(w));
}

static void higher_orders(void) {
    wg_tensor *x = vector(1, 2), *first, *second;
    wg_set_requires_grad(x, true);
    wg_tensor *y = wg_sum(wg_pow_scalar(x, 3), WG_ALL, false);
    wg_grad(1, &y, NULL, 1, &x, &(wg_backward_options){.create_graph = true}, &first);
    wg_tensor *slope = wg_sum(first, WG_ALL, false);
    wg_grad(1, &slope, NULL, 1, &x, NULL, &second);
    show("6 x by create_graph", second);
}

/* x0^2 x1 */
static int energy(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    wg_tensor *x0 = wg_select(inputs[0], 0, 0), *x1 = wg_select(inputs[0], 0, 1);
    outputs[0] = wg_mul(wg_mul(x0, x0), x1);
    (void)input_count, (void)output_count, (void)context;
    return outputs[0] ? 0 : -1;
}

static void transforms(void) {
    wg_tensor *x = vector(1, 2), *v = vector(1, 0), *slope, *gradient, *product, *hessian;
    wg_jvp(energy, NULL, 1, &x, &v, 1, NULL, &slope);
    wg_vjp(energy, NULL, 1, &x, 1, NULL, NULL, NULL, &gradient);
    wg_hvp(energy, NULL, 1, &x, &v, NULL, NULL, &product);
    wg_hessian(energy, NULL, 1, &x, NULL, &hessian);
    show("slope along v", slope);
    show("gradient", gradient);
    show("Hessian times v", product);
    show("Hessian", hessian);
}

/* The gradient at one x. */
static int energy_slope(int input_count, wg_tensor *const *inputs, int output_count,
                        wg_tensor **outputs, void *context) {
    (void)output_count;
    return wg_vjp(energy, context, input_count, inputs, 1, NULL, NULL, NULL, outputs);
}

static void samples(void) {
    wg_tensor *rows = wg_from_array(WG_F64, WG_DIMS(2, 2), (double[]){1, 2, 3, 1}), *gradients;
    wg_vmap(energy_slope, NULL, 1, &rows, NULL, 1, &gradients);
    show("gradient of each row", gradients);
}

static wg_tensor *clip(wg_tensor *gradient, void *context) {
    const double *most = context;
    return wg_clamp(gradient, -*most, *most);
}

static void hooks(void) {
    double most = 0.5;
    wg_tensor *x = vector(0.1, 2);
    wg_set_requires_grad(x, true);
    int id = wg_register_hook(x, clip, &most);
    wg_backward(wg_sum(wg_mul(x, x), WG_ALL, false), NULL);
    wg_remove_hook(x, id);
    show("clipped", wg_gradient(x));
}

static void anomalies(void) {
    wg_tensor *x = vector(4, 0);
    wg_set_requires_grad(x, true);
    bool before = wg_set_anomaly_mode(true);
    wg_tensor *y = wg_mul_scalar(wg_sqrt(x), 0); /* its slope at 0: 0 times infinity */
    wg_backward(wg_sum(y, WG_ALL, false), NULL);
    wg_set_anomaly_mode(before);
    printf("anomaly in %s\n", wg_error_pending()->where);
    wg_error_clear();
}

static int noisy_layer(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    wg_generator *generator = wg_default_generator();
    wg_tensor *hidden = wg_gelu(wg_linear_op(inputs[0], context, NULL));
    outputs[0] = wg_dropout_op(hidden, 0.1, generator->seed, generator->offset++);
    (void)input_count, (void)output_count;
    return outputs[0] ? 0 : -1;
}

static void recomputation(void) {
    wg_tensor *weight = wg_full(WG_F64, WG_DIMS(2, 2), 0.5), *x = vector(1, 2);
    wg_set_requires_grad(weight, true);
    for (int layer = 0; layer < 3; layer++)
        wg_activation_checkpoint(noisy_layer, weight, 1, &x, 1, &x, NULL);
    wg_backward(wg_sum(x, WG_ALL, false), NULL);
    show("through recomputed layers", wg_gradient(weight));
}

int main(void) {
    recording();
    higher_orders();
    transforms();
    samples();
    hooks();
    anomalies();
    recomputation();
    wg_scope_clear_root();
    return wg_error_pending() ? 1 : 0;
}
