/* A model that is in no paper: letters are predicted from running means of those before them, which
 * fade at rates that are learnt, behind a gate that the newest sets. Trained, saved, read back.
 *
 *     cc new_model.c $(pkg-config --cflags --libs wengert) -lm -o new_model
 *     ./new_model corpus/books/alice-in-wonderland.txt */
#include <stdio.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

enum { BATCH = 16, LENGTH = 48, WIDTH = 48, LAYERS = 2, STEPS = 240 };

/* mean_t = fade mean_(t-1) + (1 - fade) x_t, for each channel; the output is gated. */
typedef struct memory {
    wg_module module;
    wg_tensor *fade; /* (C), before the sigmoid */
    wg_rms_norm *norm;
    wg_linear *gate, *out;
} memory;

typedef struct reader {
    wg_module module;
    wg_embedding *letters;
    memory *layers[LAYERS];
    wg_linear *head;
} reader;

static memory *memory_new(wg_module *parent, const char *name) {
    memory *m = wg_module_new(parent, name, sizeof *m);
    if (!m)
        return NULL;
    m->fade = wg_module_parameter(&m->module, "fade", WG_DIMS(WIDTH));
    /* Some channels forget at once, others after many letters. */
    wg_initialize(m->fade, &(wg_initializer){WG_INIT_NORMAL, 2}, wg_module_generator(parent));
    m->norm = wg_rms_norm_new(&m->module, "norm", WIDTH, NULL);
    m->gate = wg_linear_new(&m->module, "gate", WIDTH, WIDTH, NULL);
    m->out = wg_linear_new(&m->module, "out", WIDTH, WIDTH, NULL);
    return wg_module_finish(&m->module);
}

static reader *reader_new(int64_t letters, uint64_t seed) {
    reader *r = wg_module_new(NULL, "", sizeof *r);
    if (!r)
        return NULL;
    r->module.generator.seed = seed;
    r->letters = wg_embedding_new(&r->module, "letters", letters, WIDTH, NULL);
    for (int i = 0; i < LAYERS; i++)
        r->layers[i] = memory_new(&r->module, i == 0 ? "layer.0" : "layer.1");
    r->head = wg_linear_new(&r->module, "head", WIDTH, letters, NULL);
    return wg_module_finish(&r->module);
}

/* x: (B, T, C)   ->   (B, T, C). The means of all places at once: a (C, T, T) matrix of weights
 * (1 - fade) fade^(t - s) for s <= t, whose logarithms are a ramp times log fade. */
static wg_tensor *memory_forward(memory *m, wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *place = wg_arange(WG_F32, 0, (double)wg_tensor_size(x, 1), 1);
    wg_tensor *age = wg_sub(wg_unsqueeze(place, 1), place); /* (T, T) */
    wg_tensor *logs = wg_reshape(wg_log_sigmoid(m->fade), WG_DIMS(WIDTH, 1, 1));
    wg_tensor *weights = wg_tril(wg_exp(wg_mul(logs, wg_abs(age))), 0);
    weights = wg_mul(weights, wg_reshape(wg_sigmoid(wg_neg(m->fade)), WG_DIMS(WIDTH, 1, 1)));
    wg_tensor *normal = wg_rms_norm_forward(m->norm, x);
    wg_tensor *means = wg_matmul(weights, wg_permute(normal, WG_DIMS(2, 1, 0))); /* (C, T, B) */
    means = wg_permute(means, WG_DIMS(2, 1, 0));
    wg_tensor *open = wg_sigmoid(wg_linear_forward(m->gate, normal));
    wg_tensor *written = wg_linear_forward(m->out, wg_gelu(wg_mul(open, means)));
    return wg_scope_end(&scope, wg_add(x, written));
}

/* ids: (B, T)   ->   logits of the next letter: (B, T, letters) */
static wg_tensor *reader_forward(reader *r, wg_tensor *ids) {
    wg_tensor *x = wg_embedding_forward(r->letters, ids);
    for (int i = 0; i < LAYERS; i++)
        x = memory_forward(r->layers[i], x);
    return wg_linear_forward(r->head, x);
}

/* ---- Training: the trainer asks for losses, and saves the model ---- */

typedef struct lesson {
    reader *reader;
    wg_batches *batches;
    double loss; /* of the last steps */
} lesson;

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    lesson *l = context;
    wg_causal_batch batch;
    if (wg_batches_next(l->batches, &batch) < 0)
        return NULL;
    metrics->tokens += batch.tokens;
    wg_tensor *logits = reader_forward(l->reader, batch.ids);
    wg_tensor *rows = wg_reshape(logits, WG_DIMS(-1, wg_tensor_size(logits, 2)));
    return wg_cross_entropy(rows, wg_reshape(batch.labels, WG_DIMS(-1)), WG_IGNORE_INDEX, NULL);
}

static void tell(const wg_train_report *report, void *context) {
    lesson *l = context;
    l->loss = report->step == 1 ? report->loss : 0.95 * l->loss + 0.05 * report->loss;
}

static double train(reader *r, const wg_dataset *text, const char *path) {
    const wg_causal_batch_options batching = {.batch = BATCH, .sequence = LENGTH};
    lesson l = {.reader = r, .batches = wg_causal_batches_new(text, &batching)};
    const wg_task task = {.context = &l, .module = &r->module, .loss = next_loss};
    wg_trainer_options options = {.steps = STEPS, .path = path, .schedule.peak = 8e-3};
    options.schedule.total_steps = STEPS;
    options.listener = tell, options.listener_context = &l;
    wg_trainer *trainer = wg_trainer_new(&task, wg_adamw_new(NULL), &options);
    wg_trainer_run(trainer);
    wg_trainer_free(trainer);
    wg_batches_free(l.batches);
    return l.loss;
}

/* The largest difference between what two models say. */
static double compare(reader *a, reader *b) {
    wg_tensor *ids = wg_reshape(wg_arange(WG_I64, 0, 40, 1), WG_DIMS(2, 20));
    wg_tensor *difference = wg_sub(reader_forward(a, ids), reader_forward(b, ids));
    return wg_item(wg_max(wg_abs(difference), WG_ALL, false));
}

int main(int argc, char **argv) {
    const char *book = argc > 1 ? argv[1] : "corpus/books/alice-in-wonderland.txt";
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tokenizer *letters = wg_char_train_files(1, &book, NULL);
    wg_dataset *text =
        wg_dataset_load(1, &book, letters, &(wg_dataset_options){.kind = WG_TEXT_STREAM});
    const int64_t count = wg_tokenizer_size(letters);
    reader *trained = reader_new(count, 1), *read = reader_new(count, 2);
    if (text && trained && read) {
        printf("by frequency: %.3f\n", wg_dataset_unigram_loss(text, NULL, text));
        printf("trained: %.3f\n", train(trained, text, "new_model.h5"));
        wg_checkpoint *file = wg_checkpoint_open("new_model.h5");
        wg_checkpoint_get_module(file, "/model", &read->module);
        wg_checkpoint_close(file);
        printf("difference of the model read back: %g\n", compare(trained, read));
        wg_module_free(&trained->module);
        wg_module_free(&read->module);
    }
    wg_dataset_free(text);
    wg_tokenizer_free(letters);
    wg_scope_end(&scope, NULL);
    if (!wg_error_pending())
        return 0;
    fprintf(stderr, "%s\n", wg_error_pending()->message);
    return 1;
}
