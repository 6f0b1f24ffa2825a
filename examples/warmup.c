/* Why transformers are warmed up   (Xiong et al. 2020, arXiv:2002.04745). With the norm after each
 * sublayer, gradients are at first the larger the nearer a layer is to the loss, and the full rate
 * from the first step on ruins the run; with the norm before it they are alike in all layers, and
 * no warm-up is needed. Trains four stacks and draws losses, and gradients by depth.
 *
 *     cc warmup.c $(pkg-config --cflags --libs wengert) -lm -o warmup
 *     ./warmup corpus/books/alice-in-wonderland.txt [STEPS]        (writes warmup.svg) */
#include <stdio.h>
#include <stdlib.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

#include "svg.h"

enum { LAYERS = 8, WIDTH = 48, HEADS = 4, BATCH = 8, LENGTH = 24, STEPS = 400, RUNS = 4 };
static const double rate = 1.5e-3;
static const char *names[] = {"post-norm", "post-norm, warm-up", "pre-norm", "pre-norm, warm-up"};

typedef struct stack {
    wg_module module;
    wg_embedding *letters, *places;
    wg_multi_head_attention *attention[LAYERS];
    wg_feed_forward *net[LAYERS];
    wg_add_norm *norms[LAYERS][2]; /* of the two sublayers */
    wg_layer_norm *last;           /* where norms come before sublayers */
    wg_linear *head;
} stack;

static stack *stack_new(int64_t letters, bool pre) {
    const wg_initializer xavier = {WG_INIT_XAVIER_UNIFORM, 1};
    const wg_multi_head_attention_options causal = {.causal = true};
    const wg_feed_forward_options net = {.activation = WG_ACTIVATION_RELU, .init = xavier};
    const wg_add_norm_options where = {.pre = pre};
    stack *s = wg_module_new(NULL, "", sizeof *s);
    if (!s)
        return NULL;
    wg_module *m = &s->module;
    m->generator.seed = 5; /* all begin with the same weights */
    s->letters = wg_embedding_new(m, "letters", letters, WIDTH, NULL);
    s->places = wg_embedding_new(m, "places", LENGTH, WIDTH, NULL);
    for (int i = 0; i < LAYERS; i++) {
        char names[4][32];
        for (int k = 0; k < 4; k++)
            snprintf(names[k], sizeof names[k], "layer.%d.%d", i, k);
        s->attention[i] = wg_multi_head_attention_new(m, names[0], WIDTH, HEADS, &causal);
        s->norms[i][0] = wg_add_norm_new(m, names[1], WIDTH, &where);
        s->net[i] = wg_feed_forward_new(m, names[2], WIDTH, 4 * WIDTH, &net);
        s->norms[i][1] = wg_add_norm_new(m, names[3], WIDTH, &where);
    }
    s->last = pre ? wg_layer_norm_new(m, "last", WIDTH, NULL) : NULL;
    s->head = wg_linear_new(m, "head", WIDTH, letters, &(wg_linear_options){.init = xavier});
    return wg_module_finish(m);
}

static wg_tensor *stack_loss(stack *s, const wg_causal_batch *batch) {
    wg_tensor *places = wg_embedding_forward(s->places, wg_arange(WG_I64, 0, LENGTH, 1));
    wg_tensor *x = wg_add(wg_embedding_forward(s->letters, batch->ids), places);
    for (int i = 0; i < LAYERS; i++) {
        wg_add_norm *norm = s->norms[i][0];
        wg_tensor *y = wg_add_norm_before(norm, x);
        x = wg_add_norm_after(norm, x, wg_multi_head_attention_forward(s->attention[i], y, NULL));
        norm = s->norms[i][1];
        y = wg_add_norm_before(norm, x);
        x = wg_add_norm_after(norm, x, wg_feed_forward_forward(s->net[i], y));
    }
    x = wg_reshape(s->last ? wg_layer_norm_forward(s->last, x) : x, WG_DIMS(-1, WIDTH));
    wg_tensor *labels = wg_reshape(batch->labels, WG_DIMS(-1));
    return wg_cross_entropy(wg_linear_forward(s->head, x), labels, WG_IGNORE_INDEX, NULL);
}

typedef struct run {
    double losses[STEPS];    /* smoothed */
    double norms[2][LAYERS]; /* of gradients, log10, at the first step and at the last */
} run;

/* Of the second matrix of each feed-forward net, as in figure 3 of the paper. */
static void measure(const stack *s, double *norms) {
    for (int i = 0; i < LAYERS; i++)
        norms[i] = log10(wg_item(wg_norm(wg_gradient(s->net[i]->down->weight), 2, WG_ALL, false)));
}

static void train(run *r, int k, const wg_dataset *text, int steps) {
    const wg_causal_batch_options batching = {.batch = BATCH, .sequence = LENGTH};
    const wg_schedule schedule = {WG_SCHEDULE_CONSTANT, .peak = rate,
                                  .warmup_steps = k % 2 ? steps / 2 : 0};
    wg_batches *batches = wg_causal_batches_new(text, &batching);
    stack *s = stack_new(wg_dataset_vocabulary(text), k >= 2);
    wg_optimizer *adam = wg_adamw_new(&(wg_adamw_options){.beta2 = 0.98});
    if (s)
        wg_optimizer_add_module(adam, &s->module);
    for (int i = 0; i < steps && !wg_error_pending(); i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_causal_batch batch = {0};
        wg_batches_next(batches, &batch);
        wg_tensor *loss = stack_loss(s, &batch);
        wg_backward(loss, NULL);
        if (i == 0 || i == steps - 1)
            measure(s, r->norms[i > 0]);
        wg_optimizer_step(adam, wg_schedule_rate(&schedule, i));
        r->losses[i] = i == 0 ? wg_item(loss) : 0.9 * r->losses[i - 1] + 0.1 * wg_item(loss);
        wg_scope_end(&scope, NULL);
    }
    printf("%-18s loss %.2f, first gradient of the last layer %.2f times that of the first\n",
           names[k], r->losses[steps - 1], pow(10, r->norms[0][LAYERS - 1] - r->norms[0][0]));
    wg_optimizer_free(adam);
    wg_module_free(s ? &s->module : NULL);
    wg_batches_free(batches);
}

static int draw(const run *runs, int steps, const char *path) {
    double x[STEPS];
    for (int i = 0; i < STEPS; i++)
        x[i] = i + 1;
    FILE *file = svg_begin(path, 3, 1, "Norms after or before sublayers: loss and gradients");
    if (!file)
        return -1;
    const svg_range nats = {2, 5}, depth = {1, LAYERS}, few = {-1, 1}, many = {-5, 2};
    svg_panel losses = svg_panel_begin(file, 0, 0, (svg_range){0, steps}, nats, "loss", "step");
    svg_panel first = svg_panel_begin(file, 1, 0, depth, few, "log10 of first gradients", "layer");
    svg_panel last = svg_panel_begin(file, 2, 0, depth, many, "log10 of last gradients", "layer");
    for (int k = 0; k < RUNS; k++) {
        svg_curve(&losses, steps, x, runs[k].losses, k, names[k]);
        if (k % 2 == 0) /* warmed up or not, the first step is the same */
            svg_curve(&first, LAYERS, x, runs[k].norms[0], k, names[k]);
        svg_curve(&last, LAYERS, x, runs[k].norms[1], k, names[k]);
    }
    return svg_end(file);
}

int main(int argc, char **argv) {
    static run runs[RUNS];
    const char *book = argc > 1 ? argv[1] : "corpus/books/alice-in-wonderland.txt";
    const int steps = argc > 2 ? (int)fmax(2, fmin(atoi(argv[2]), STEPS)) : STEPS;
    wg_tokenizer *letters = wg_char_train_files(1, &book, NULL);
    wg_dataset *text =
        wg_dataset_load(1, &book, letters, &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    for (int k = 0; k < RUNS && !wg_error_pending(); k++)
        train(&runs[k], k, text, steps);
    wg_dataset_free(text);
    wg_tokenizer_free(letters);
    const wg_error *error = wg_error_pending();
    if (!error && draw(runs, steps, "warmup.svg") == 0)
        return 0;
    fprintf(stderr, "%s\n", error ? error->message : "warmup.svg cannot be written");
    return 1;
}
