/* A small network classifies the points of two interleaved spirals: a custom model, a training loop
 * and an evaluation.
 *
 *     cc spiral.c $(pkg-config --cflags --libs wengert) -lm -o spiral && ./spiral */
#include <math.h>
#include <stdio.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

enum { POINTS = 400, WIDTH = 32, STEPS = 400 };

/* ---- The model: two hidden layers. Its first member is the module, which owns all layers. ---- */

typedef struct network {
    wg_module module;
    wg_linear *first, *second, *last;
} network;

static network *network_new(void) {
    network *net = wg_module_new(NULL, "", sizeof *net);
    if (net == NULL)
        return NULL;
    net->first = wg_linear_new(&net->module, "first", 2, WIDTH, NULL);
    net->second = wg_linear_new(&net->module, "second", WIDTH, WIDTH, NULL);
    net->last = wg_linear_new(&net->module, "last", WIDTH, 2, NULL);
    return wg_module_finish(&net->module);
}

/* points: (N, 2)   ->   logits: (N, 2) */
static wg_tensor *network_forward(network *net, wg_tensor *points) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = wg_gelu(wg_linear_forward(net->first, points));
    hidden = wg_gelu(wg_linear_forward(net->second, hidden));
    return wg_scope_end(&scope, wg_linear_forward(net->last, hidden));
}

/* ---- The data: point i belongs to spiral i % 2; spiral 1 is spiral 0 rotated by pi ---- */

typedef struct data {
    wg_tensor *points; /* (N, 2) f32 */
    wg_tensor *labels; /* (N) i64 */
} data;

static data make_data(wg_generator *generator) {
    float points[POINTS][2];
    int64_t labels[POINTS];
    for (int i = 0; i < POINTS; i++) {
        double radius = sqrt(wg_random_uniform(generator));
        double angle = 9 * radius + 3.14159265 * (i % 2);
        points[i][0] = (float)(radius * cos(angle) + 0.01 * wg_random_normal(generator));
        points[i][1] = (float)(radius * sin(angle) + 0.01 * wg_random_normal(generator));
        labels[i] = i % 2;
    }
    return (data){wg_from_array(WG_F32, WG_DIMS(POINTS, 2), points),
                  wg_from_array(WG_I64, WG_DIMS(POINTS), labels)};
}

/* ---- Training and evaluation ---- */

static wg_optimizer *optimizer_new(network *net) {
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01});
    wg_optimizer_add_module(optimizer, &net->module);
    return optimizer;
}

/* Tensors of a step belong to its scope and go with it; no call is checked by itself, because after
 * an error the later ones do nothing. */
static double train_step(network *net, wg_optimizer *optimizer, const data *train) {
    wg_scope step;
    wg_scope_begin(&step);
    wg_tensor *loss =
        wg_cross_entropy(network_forward(net, train->points), train->labels, WG_IGNORE_INDEX, NULL);
    wg_backward(loss, NULL);
    wg_optimizer_step(optimizer, 0.01);
    double value = wg_item(loss);
    wg_scope_end(&step, NULL);
    return value;
}

static double accuracy(network *net, const data *test) {
    wg_scope scope;
    wg_scope_begin(&scope);
    bool recording = wg_set_grad_enabled(false);
    wg_tensor *predicted = wg_argmax(network_forward(net, test->points), 1, false);
    wg_tensor *right = wg_cast(wg_eq(predicted, test->labels), WG_F32);
    double share = wg_item(wg_mean(right, WG_ALL, false));
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return share;
}

static void print_error(const wg_error *error, void *context) {
    (void)context;
    fprintf(stderr, "spiral: %s\n", error->message);
}

int main(void) {
    wg_error_set_handler(print_error, NULL);
    wg_manual_seed(1);
    wg_generator generator = {.seed = 2};
    data train = make_data(&generator), test = make_data(&generator);
    network *net = network_new();
    if (net == NULL)
        return 1;
    wg_optimizer *optimizer = optimizer_new(net);
    for (int step = 1; step <= STEPS && !wg_error_pending(); step++) {
        double loss = train_step(net, optimizer, &train);
        if (step % 50 == 0)
            printf("step %3d   loss %.4f\n", step, loss);
    }
    printf("right on new points: %.1f %%\n", 100 * accuracy(net, &test));
    wg_optimizer_free(optimizer);
    wg_module_free(&net->module);
    return wg_error_pending() ? 1 : 0;
}
