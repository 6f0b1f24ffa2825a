/* A custom training loop: a small network learns a table from shuffled batches. The program brings
 * its update rule and its schedule, and parameter groups with different learning rates. The run is
 * saved half way; the resumed run ends with the same bits.
 *
 *     cc own_training.c $(pkg-config --cflags --libs wengert) -lm -o own_training && ./own_training
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

enum { ROWS = 512, HELD_OUT = 64, COLUMNS = 3, WIDTH = 32, BATCH = 32, STEPS = 400 };

/* ---- The data: a table of three columns, and a column that depends on them ---- */

typedef struct table {
    wg_tensor *features; /* (N, COLUMNS) f32 */
    wg_tensor *target;   /* (N, 1) f32 */
} table;

static table make_table(int64_t rows, uint64_t seed) {
    wg_generator random = {.seed = seed};
    table t = {.features = wg_randn(&random, WG_F32, WG_DIMS(rows, COLUMNS))};
    wg_tensor *a = wg_slice(t.features, 1, 0, 1, 1), *b = wg_slice(t.features, 1, 1, 2, 1);
    t.target = wg_add(wg_sin(a), wg_mul_scalar(wg_mul(b, b), 0.5));
    return t;
}

/* ---- The network ---- */

typedef struct network {
    wg_module module;
    wg_linear *layers[2], *head;
} network;

static network *network_new(void) {
    network *net = wg_module_new(NULL, "", sizeof *net);
    if (!net)
        return NULL;
    net->layers[0] = wg_linear_new(&net->module, "layer.0", COLUMNS, WIDTH, NULL);
    net->layers[1] = wg_linear_new(&net->module, "layer.1", WIDTH, WIDTH, NULL);
    net->head = wg_linear_new(&net->module, "head", WIDTH, 1, NULL);
    return wg_module_finish(&net->module);
}

static wg_tensor *squared_error(network *net, const table *t) {
    wg_tensor *x = t->features;
    for (int i = 0; i < 2; i++)
        x = wg_tanh(wg_linear_forward(net->layers[i], x));
    wg_tensor *error = wg_sub(wg_linear_forward(net->head, x), t->target);
    return wg_mean(wg_mul(error, error), WG_ALL, false);
}

/* ---- The update rule: the sign of the momentum (Bernstein et al. 2018, "signSGD") ---- */

static int sign_step(void *context, const wg_parameter_step *s) {
    const double momentum = *(const double *)context;
    wg_tensor *mean = s->states[0];
    wg_scale_(mean, momentum);
    wg_add_(mean, s->gradient, 1 - momentum);
    wg_scale_(s->parameter, 1 - s->learning_rate * s->weight_decay);
    return wg_add_(s->parameter, wg_sign(mean), -s->learning_rate);
}

static wg_optimizer *optimizer_new(double *momentum) {
    const wg_update_rule rule = {.states = {"mean"}, .step = sign_step, .weight_decay = 0.01};
    wg_optimizer *optimizer = wg_optimizer_from_rule(&rule, momentum);
    wg_optimizer_layer_decay(optimizer, "layer", 2, NULL, 0.7);
    wg_optimizer_add_group(optimizer, &(wg_parameter_group){.names = "*.bias", .no_decay = true});
    return optimizer;
}

/* ---- The schedule: down and up again in cycles that become lower (Smith 2017) ---- */

static double cycles(const wg_schedule *schedule, int64_t step) {
    const double length = 100, cycle = floor((double)step / length);
    const double place = fabs(2 * ((double)step / length - cycle) - 1); /* 1, 0 half way, 1 */
    return schedule->peak * pow(0.5, cycle) * (0.05 + 0.95 * place);
}

/* ---- The callbacks of the trainer ---- */

typedef struct run {
    network *net;
    wg_batches *batches;
    table held_out;
    int64_t fingerprint;
    double loss; /* of the last evaluation */
} run;

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    run *r = context;
    wg_tensor *batch[2];
    (void)metrics;
    if (wg_batches_next(r->batches, batch) < 0)
        return NULL;
    return squared_error(r->net, &(table){batch[0], batch[1]});
}

static int evaluate(void *context, wg_metrics *metrics) {
    run *r = context;
    r->loss = wg_item(squared_error(r->net, &r->held_out));
    return wg_metrics_add(metrics, "loss", r->loss, HELD_OUT);
}

static int save(void *context, wg_checkpoint *file) {
    run *r = context;
    return wg_batches_save(r->batches, file, r->fingerprint);
}

static int restore(void *context, wg_checkpoint *file) {
    run *r = context;
    return wg_batches_restore(r->batches, file, r->fingerprint);
}

/* Trains a new network, from the beginning or from a checkpoint on. */
static network *train(const table *data, const char *resumed, double *loss) {
    double momentum = 0.9;
    run r = {.net = network_new(), .held_out = make_table(HELD_OUT, 2)};
    r.batches = wg_tensor_batches_new(WG_TENSORS(data->features, data->target),
                                      &(wg_batches_options){.batch = BATCH, .seed = 3});
    r.fingerprint = wg_tensors_fingerprint(WG_TENSORS(data->features, data->target));
    const wg_task task = {.context = &r,
                          .module = &r.net->module,
                          .loss = next_loss,
                          .evaluate = evaluate,
                          .save = save,
                          .restore = restore,
                          .batches = r.batches};
    const wg_trainer_options options = {
        .steps = STEPS,
        .schedule = {.kind = WG_SCHEDULE_OWN, .rate = cycles, .peak = 0.02, .total_steps = STEPS},
        .evaluate_every = 100,
        .path = "own_training.h5",
        .keep_every = resumed ? 0 : STEPS / 2,
        .keep_stem = "own_training"};
    wg_trainer *trainer = r.net ? wg_trainer_new(&task, optimizer_new(&momentum), &options) : NULL;
    if (trainer && (!resumed || wg_trainer_resume(trainer, resumed) == 0))
        wg_trainer_run(trainer);
    wg_trainer_free(trainer);
    wg_batches_free(r.batches);
    *loss = r.loss;
    return r.net;
}

static bool same_bits(const wg_tensor *a, const wg_tensor *b) {
    return memcmp(wg_tensor_data(a), wg_tensor_data(b),
                  (size_t)wg_tensor_count(a) * sizeof(float)) == 0;
}

int main(void) {
    double loss = 0, resumed_loss = 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    const table data = make_table(ROWS, 1);
    network *whole = train(&data, NULL, &loss);
    network *resumed = train(&data, "own_training.200.h5", &resumed_loss);
    if (wg_error_pending()) {
        fprintf(stderr, "own_training: %s\n", wg_error_pending()->message);
        return 1;
    }
    printf("held-out error: %.4f\n", loss);
    printf("resumed: %s\n",
           loss == resumed_loss && same_bits(whole->head->weight, resumed->head->weight)
               ? "the same bits"
               : "other bits");
    wg_module_free(&whole->module);
    wg_module_free(&resumed->module);
    wg_scope_end(&scope, NULL);
    return 0;
}
