/* Classification of texts as a task: see classification.h. */
#include "train/classification.h"

#include <math.h>

#include "data/batch_options.h"
#include "data/epochs.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "train/bert_task.h"
#include "train/task_checkpoint.h"

#define WHERE "classification"

struct wg_classification {
    wg_bert_for_sequence_classification *model;
    const wg_tokenizer *tokenizer;
    const wg_labelled_text *training, *held_out;
    wg_classification_options options;
    wg_pair_frame frame;
    wg__epochs epochs; /* of the training text */
    int64_t *chosen;   /* (batch) scratch */
};

/* ---- Making one ---- */

static int prepare(wg_classification *c) {
    wg_classification_options *o = &c->options;
    if (wg__batch_options_sizes(WHERE, &o->batch, &o->sequence) < 0 ||
        wg__bert_task_frame(WHERE, &c->model->bert->config, c->tokenizer, o->sequence, &c->frame) <
            0)
        return -1;
    c->chosen = wg__alloc((size_t)o->batch * sizeof *c->chosen);
    if (!c->chosen || !c->training)
        return c->chosen ? 0 : -1;
    return wg__epochs_begin(&c->epochs, wg_labelled_text_examples(c->training), o->seed);
}

wg_classification *wg_classification_new(wg_bert_for_sequence_classification *model,
                                         const wg_tokenizer *tokenizer,
                                         const wg_labelled_text *training,
                                         const wg_labelled_text *held_out,
                                         const wg_classification_options *options) {
    wg_classification *c = wg__calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (wg_classification){
        .model = model, .tokenizer = tokenizer, .training = training, .held_out = held_out};
    if (options)
        c->options = *options;
    if (prepare(c) == 0)
        return c;
    wg_classification_free(c);
    return NULL;
}

void wg_classification_free(wg_classification *c) {
    if (!c)
        return;
    wg__epochs_clear(&c->epochs);
    wg__free(c->chosen);
    wg__free(c);
}

/* ---- Losses ---- */

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_classification *c = context;
    wg_labelled_batch batch;
    wg__bert_task_choose(&c->epochs, c->options.batch, c->chosen);
    if (wg_labelled_batch_read(c->training, &c->frame, c->options.batch, c->chosen, &batch) < 0)
        return NULL;
    wg_tensor *logits = wg_bert_classify(c->model, &batch.inputs);
    wg_tensor *right = wg_eq(wg_argmax(logits, 1, false), batch.labels);
    const double accuracy = wg_item(wg_mean(wg_cast(right, WG_F64), WG_ALL, false));
    metrics->tokens += batch.inputs.tokens;
    if (wg_metrics_add(metrics, "accuracy", accuracy, (double)c->options.batch) < 0)
        return NULL;
    return wg_cross_entropy(logits, batch.labels, -100, NULL);
}

/* ---- Evaluation ---- */

/* How often label i was there and label j predicted, of two labels: counts[i][j]; beside it, what
 * is counted of any number of labels. */
typedef struct tally {
    double counts[2][2];
    double right, loss;
} tally;

static int evaluate_batch(const wg_classification *c, int64_t first, int64_t count, tally *t,
                          int64_t *predictions) {
    wg_labelled_batch batch;
    for (int64_t i = 0; i < count; i++)
        c->chosen[i] = first + i;
    if (wg_labelled_batch_read(c->held_out, &c->frame, count, c->chosen, &batch) < 0)
        return -1;
    wg_tensor *logits = wg_bert_classify(c->model, &batch.inputs);
    wg_tensor *best = wg_argmax(logits, 1, false);
    t->loss += (double)count * wg_item(wg_cross_entropy(logits, batch.labels, -100, NULL));
    if (!best || wg_error_pending())
        return -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t predicted = (int64_t)wg_at(best, &i);
        const int64_t label = wg_labelled_text_label(c->held_out, first + i);
        t->right += predicted == label;
        if (c->model->labels.count == 2)
            t->counts[label][predicted]++;
        if (predictions)
            predictions[first + i] = predicted;
    }
    return 0;
}

/* The share of the commonest label; -1 without memory. */
static double majority(const wg_classification *c) {
    int64_t *counts = wg__calloc((size_t)c->model->labels.count, sizeof *counts), most = 0;
    if (!counts)
        return -1;
    const int64_t examples = wg_labelled_text_examples(c->held_out);
    for (int64_t i = 0; i < examples; i++) {
        const int64_t count = ++counts[wg_labelled_text_label(c->held_out, i)];
        most = count > most ? count : most;
    }
    wg__free(counts);
    return (double)most / (double)examples;
}

/* What two labels have beside accuracy, the second being the positive one. */
static int add_binary(const tally *t, double examples, wg_metrics *metrics) {
    const double tp = t->counts[1][1], fp = t->counts[0][1], fn = t->counts[1][0],
                 tn = t->counts[0][0];
    const double f1 = 2 * tp + fp + fn > 0 ? 2 * tp / (2 * tp + fp + fn) : 0;
    const double scale = sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
    const double mcc = scale > 0 ? (tp * tn - fp * fn) / scale : 0;
    if (wg_metrics_add(metrics, "f1", f1, examples) < 0)
        return -1;
    return wg_metrics_add(metrics, "mcc", mcc, examples);
}

static int evaluate(const wg_classification *c, wg_metrics *metrics, int64_t *predictions) {
    const int64_t examples = wg_labelled_text_examples(c->held_out), batch = c->options.batch;
    tally t = {0};
    for (int64_t first = 0; first < examples; first += batch) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t left = examples - first;
        const int status = evaluate_batch(c, first, left < batch ? left : batch, &t, predictions);
        wg_scope_end(&scope, NULL);
        if (status < 0)
            return -1;
    }
    const double weight = (double)examples, most = majority(c);
    metrics->tokens += wg_labelled_text_tokens(c->held_out);
    if (most < 0 || wg_metrics_add(metrics, "loss", t.loss / weight, weight) < 0 ||
        wg_metrics_add(metrics, "accuracy", t.right / weight, weight) < 0 ||
        wg_metrics_add(metrics, "majority", most, weight) < 0)
        return -1;
    return c->model->labels.count == 2 ? add_binary(&t, weight, metrics) : 0;
}

/* What wg_task_evaluate hands through. */
typedef struct evaluation {
    const wg_classification *classification;
    int64_t *predictions;
} evaluation;

static int evaluate_whole(void *context, wg_metrics *metrics) {
    const evaluation *e = context;
    return evaluate(e->classification, metrics, e->predictions);
}

static int evaluate_during_training(void *context, wg_metrics *metrics) {
    return evaluate(context, metrics, NULL);
}

int wg_classification_evaluate(wg_classification *c, wg_metrics *metrics, int64_t *predictions) {
    if (!c->held_out)
        return wg_fail(WG_ERROR_STATE, WHERE, "there is no text to measure the model on");
    evaluation e = {c, predictions};
    const wg_task task = {.context = &e, .module = &c->model->module, .evaluate = evaluate_whole};
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_classification *c = context;
    return wg__task_save(file, wg_bert_for_sequence_classification_config(c->model), c->tokenizer,
                         &c->epochs.position, (int64_t)wg_labelled_text_fingerprint(c->training));
}

static int restore(void *context, wg_checkpoint *file) {
    wg_classification *c = context;
    wg_data_position position;
    if (wg__task_restore(file, WHERE, (int64_t)wg_labelled_text_fingerprint(c->training),
                         &position) < 0)
        return -1;
    return wg__epochs_seek(&c->epochs, WHERE, &position);
}

wg_task wg_classification_task(wg_classification *c) {
    return (wg_task){
        .context = c,
        .module = &c->model->module,
        .loss = next_loss,
        .evaluate = c->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}
