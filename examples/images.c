/* Training on images: a small network classifies 8 x 8 pictures of a disc, a square or a cross,
 * drawn at a random place with noise. The program's `build` function makes the batches. The run is
 * saved half way, and one that is resumed from there ends with the same bits.
 *
 *     cc images.c $(pkg-config --cflags --libs wengert) -o images && ./images */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, SHAPES = 3, IMAGES = 600, BATCH = 32, STEPS = 240 };
enum { HIDDEN = 32, DATA = 1 /* identifies the pictures */ };

/* ---- The data ---- */

typedef struct batch {
    wg_tensor *images; /* (B, PIXELS) f32 */
    wg_tensor *labels; /* (B) i64 */
} batch;

/* Whether a shape covers the point (x, y), seen from its centre. */
static bool covers(int shape, int x, int y) {
    if (shape == 0)
        return x * x + y * y <= 5;
    return shape == 1 ? abs(x) <= 2 && abs(y) <= 2 : abs(x) <= 2 && (x == 0 || y == 0);
}

/* Picture `index` has shape index mod SHAPES; where it stands, and the noise, are another in each
 * epoch. */
static void draw(const wg_example *example, float *pixels) {
    wg_generator random = example->generator;
    const int left = 3 + (int)wg_random_below(&random, 2),
              top = 3 + (int)wg_random_below(&random, 2);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            *pixels++ = (float)(covers((int)(example->index % SHAPES), x - left, y - top) +
                                0.3 * wg_random_normal(&random));
}

static int build(void *context, int64_t count, const wg_example *examples, void *built) {
    static float pixels[BATCH][PIXELS];
    static int64_t labels[BATCH];
    batch *b = built;
    (void)context;
    for (int64_t i = 0; i < count; i++) {
        draw(&examples[i], pixels[i]);
        labels[i] = examples[i].index % SHAPES;
    }
    *b = (batch){wg_from_array(WG_F32, WG_DIMS(count, PIXELS), pixels),
                 wg_from_array(WG_I64, WG_DIMS(count), labels)};
    return b->images && b->labels ? 0 : -1;
}

/* ---- The network, and the callbacks of the trainer ---- */

typedef struct network {
    wg_module module;
    wg_linear *hidden, *out;
} network;

static network *network_new(void) {
    network *net = wg_module_new(NULL, "", sizeof *net);
    if (!net)
        return NULL;
    net->hidden = wg_linear_new(&net->module, "hidden", PIXELS, HIDDEN, NULL);
    net->out = wg_linear_new(&net->module, "out", HIDDEN, SHAPES, NULL);
    return wg_module_finish(&net->module);
}

typedef struct run {
    network *net;
    wg_batches *batches;
} run;

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    run *r = context;
    batch b;
    if (wg_batches_next(r->batches, &b) < 0)
        return NULL;
    wg_tensor *logits =
        wg_linear_forward(r->net->out, wg_gelu(wg_linear_forward(r->net->hidden, b.images)));
    wg_tensor *right = wg_cast(wg_eq(wg_argmax(logits, 1, false), b.labels), WG_F32);
    wg_metrics_add(metrics, "right", wg_item(wg_mean(right, WG_ALL, false)), BATCH);
    return wg_cross_entropy(logits, b.labels, WG_IGNORE_INDEX, NULL);
}

static int save(void *context, wg_checkpoint *file) {
    return wg_batches_save(((run *)context)->batches, file, DATA);
}

static int restore(void *context, wg_checkpoint *file) {
    return wg_batches_restore(((run *)context)->batches, file, DATA);
}

static void remember(const wg_train_report *report, void *context) {
    *(double *)context = wg_metrics_get(report->metrics, "right");
}

/* Trains a new network, from the beginning or from a checkpoint on. Returns the network, and in
 * *right the share of right answers of the last step. */
static network *train(const char *resumed, double *right) {
    const wg_batch_source source = {.build = build};
    run r = {network_new(),
             wg_batches_new(&source, &(wg_batches_options){.batch = BATCH, .examples = IMAGES})};
    const wg_task task = {&r, &r.net->module, .loss = next_loss, .save = save, .restore = restore};
    const wg_trainer_options options = {.steps = STEPS,
                                        .schedule = {.peak = 3e-3, .total_steps = STEPS},
                                        .keep_every = resumed ? 0 : STEPS / 2,
                                        .keep_stem = "images",
                                        .listener = remember,
                                        .listener_context = right};
    wg_trainer *trainer = r.net ? wg_trainer_new(&task, wg_adamw_new(NULL), &options) : NULL;
    if (trainer && (!resumed || wg_trainer_resume(trainer, resumed) == 0))
        wg_trainer_run(trainer);
    wg_trainer_free(trainer);
    wg_batches_free(r.batches);
    return r.net;
}

static bool same_bits(const wg_tensor *a, const wg_tensor *b) {
    return memcmp(wg_tensor_data(a), wg_tensor_data(b),
                  (size_t)wg_tensor_count(a) * sizeof(float)) == 0;
}

int main(void) {
    double right = 0, resumed_right = 0;
    network *whole = train(NULL, &right), *resumed = train("images.120.h5", &resumed_right);
    if (wg_error_pending()) {
        fprintf(stderr, "images: %s\n", wg_error_pending()->message);
        return 1;
    }
    printf("right: %.0f %%\n", 100 * right);
    printf("resumed: %s\n", right == resumed_right &&
                                    same_bits(whole->hidden->weight, resumed->hidden->weight) &&
                                    same_bits(whole->out->weight, resumed->out->weight)
                                ? "the same bits"
                                : "other bits");
    wg_module_free(&whole->module);
    wg_module_free(&resumed->module);
    return 0;
}
