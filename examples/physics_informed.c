/* A network that solves a differential equation: u'' = -pi^2 sin(pi x) on [0, 1], u(0) = u(1) = 0,
 * with the solution sin(pi x). The loss is the error of the network's second derivative   (Raissi
 * et al. 2019, Physics-informed neural networks): two derivatives in x in forward mode, and one in
 * the weights in reverse mode through both.
 *
 *     cc physics_informed.c $(pkg-config --cflags --libs wengert) -lm -o physics && ./physics */
#include <math.h>
#include <stdio.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

enum { POINTS = 32, WIDTH = 16, STEPS = 500 };

static const double pi = 3.14159265358979323846;

typedef struct network {
    wg_module module;
    wg_linear *first, *second, *last;
} network;

static network *network_new(void) {
    network *net = wg_module_new(NULL, "", sizeof *net);
    if (net == NULL)
        return NULL;
    net->first = wg_linear_new(&net->module, "first", 1, WIDTH, NULL);
    net->second = wg_linear_new(&net->module, "second", WIDTH, WIDTH, NULL);
    net->last = wg_linear_new(&net->module, "last", WIDTH, 1, NULL);
    return wg_module_finish(&net->module);
}

/* u, as a wg_function of x: (N, 1) -> (N, 1), each row by itself */
static int u(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
             void *context) {
    network *net = context;
    (void)input_count, (void)output_count;
    wg_tensor *hidden = wg_tanh(wg_linear_forward(net->first, inputs[0]));
    hidden = wg_tanh(wg_linear_forward(net->second, hidden));
    outputs[0] = wg_linear_forward(net->last, hidden);
    return outputs[0] ? 0 : -1;
}

/* Its derivative: along a tangent of ones, every row's at once. */
static int u_x(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
               void *context) {
    wg_tensor *ones = wg_ones_like(inputs[0]);
    return wg_jvp(u, context, input_count, inputs, &ones, output_count, NULL, outputs);
}

static int u_xx(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                void *context) {
    wg_tensor *ones = wg_ones_like(inputs[0]);
    return wg_jvp(u_x, context, input_count, inputs, &ones, output_count, NULL, outputs);
}

typedef struct problem {
    wg_tensor *inside;   /* (N, 1): where the equation is to hold */
    wg_tensor *force;    /* (N, 1): pi^2 sin(pi x) there */
    wg_tensor *boundary; /* (2, 1): 0 and 1 */
} problem;

static problem make_problem(void) {
    float x[POINTS], force[POINTS];
    for (int i = 0; i < POINTS; i++) {
        x[i] = (float)((i + 0.5) / POINTS);
        force[i] = (float)(pi * pi * sin(pi * x[i]));
    }
    return (problem){wg_from_array(WG_F32, WG_DIMS(POINTS, 1), x),
                     wg_from_array(WG_F32, WG_DIMS(POINTS, 1), force),
                     wg_from_array(WG_F32, WG_DIMS(2, 1), (float[]){0, 1})};
}

static wg_tensor *mean_of_squares(wg_tensor *x) {
    return wg_mean(wg_mul(x, x), WG_ALL, false);
}

static double train_step(network *net, wg_optimizer *optimizer, const problem *of, double rate) {
    wg_tensor *second, *edges;
    wg_scope step;
    wg_scope_begin(&step);
    u_xx(1, &of->inside, 1, &second, net);
    u(1, &of->boundary, 1, &edges, net);
    wg_tensor *loss = wg_add(mean_of_squares(wg_add(second, of->force)),
                             wg_mul_scalar(mean_of_squares(edges), 100));
    wg_backward(loss, NULL);
    wg_optimizer_step(optimizer, rate);
    double value = wg_item(loss);
    wg_scope_end(&step, NULL);
    return value;
}

/* The largest |u - sin(pi x)|, on a finer grid than in training. */
static double largest_error(network *net) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_mul_scalar(wg_reshape(wg_arange(WG_F32, 0, 201, 1), WG_DIMS(201, 1)), 0.005);
    wg_tensor *exact = wg_sin(wg_mul_scalar(x, pi)), *found;
    u(1, &x, 1, &found, net);
    double error = wg_item(wg_max(wg_abs(wg_sub(found, exact)), WG_ALL, false));
    wg_scope_end(&scope, NULL);
    return error;
}

static wg_optimizer *optimizer_new(network *net) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_optimizer_add_module(optimizer, &net->module);
    return optimizer;
}

static void print_error(const wg_error *error, void *context) {
    (void)context;
    fprintf(stderr, "physics_informed: %s\n", error->message);
}

int main(void) {
    wg_error_set_handler(print_error, NULL);
    wg_manual_seed(1);
    network *net = network_new();
    if (net == NULL)
        return 1;
    wg_scope run;
    wg_scope_begin(&run);
    problem poisson = make_problem();
    wg_optimizer *optimizer = optimizer_new(net);
    for (int step = 1; step <= STEPS && !wg_error_pending(); step++) {
        double rate = 0.01 * (1 + cos(pi * step / STEPS)) / 2;
        double loss = train_step(net, optimizer, &poisson, rate);
        if (step % 100 == 0)
            printf("step %4d   loss %.6f   largest error %.5f\n", step, loss, largest_error(net));
    }
    printf("largest error: %.5f\n", largest_error(net));
    wg_optimizer_free(optimizer);
    wg_scope_end(&run, NULL);
    wg_module_free(&net->module);
    return wg_error_pending() ? 1 : 0;
}
