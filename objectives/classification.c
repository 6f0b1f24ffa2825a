/* Classification of texts as a task: see classification.h. */
#include "objectives/classification_parts.h"

#include <math.h>

#include "data/batches/builder.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/task_checkpoint.h"

#define WHERE "classification"

struct wg_classification {
    wg__labeller *labeller;
    const wg_labelled_text *training, *held_out;
    int64_t batch;
    wg_batches *batches; /* of the training text; NULL without */
    int64_t *chosen;     /* (batch) the examples of a batch */
};

/* ---- Making one ---- */

int wg__classification_complete(const wg_classification_options *options,
                                wg_classification_options *completed) {
    *completed = options ? *options : (wg_classification_options){0};
    return wg__batch_sizes(WHERE, &completed->batch, &completed->sequence);
}

static int choose(void *context, int64_t count, const wg_example *examples, void *batch) {
    int64_t *chosen = batch;
    (void)context;
    for (int64_t i = 0; i < count; i++)
        chosen[i] = examples[i].index;
    return 0;
}

static int prepare(wg_classification *c, uint64_t seed) {
    const wg_batch_source source = {.context = c, .build = choose};
    c->chosen = wg__alloc((size_t)c->batch * sizeof *c->chosen);
    if (!c->chosen || !c->training)
        return c->chosen ? 0 : -1;
    c->batches = wg_batches_new(
        &source, &(wg_batches_options){.batch = c->batch,
                                       .examples = wg_labelled_text_examples(c->training),
                                       .seed = seed});
    return c->batches ? 0 : -1;
}

wg_classification *wg__classification_new(wg__labeller *labeller, const wg_labelled_text *training,
                                          const wg_labelled_text *held_out,
                                          const wg_classification_options *options) {
    wg_classification *c = labeller ? wg__calloc(1, sizeof *c) : NULL;
    if (!c) {
        wg__free(labeller);
        return NULL;
    }
    *c = (wg_classification){
        .labeller = labeller, .training = training, .held_out = held_out, .batch = options->batch};
    if (prepare(c, options->seed) == 0)
        return c;
    wg_classification_free(c);
    return NULL;
}

void wg_classification_free(wg_classification *c) {
    if (!c)
        return;
    wg_batches_free(c->batches);
    wg__free(c->chosen);
    wg__free(c->labeller);
    wg__free(c);
}

/* ---- Losses ---- */

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_classification *c = context;
    wg__scores s;
    if (wg_batches_next(c->batches, c->chosen) < 0 ||
        c->labeller->score(c->labeller, c->training, c->batch, c->chosen, &s) < 0)
        return NULL;
    wg_tensor *right = wg_eq(wg_argmax(s.logits, 1, false), s.labels);
    const double accuracy = wg_item(wg_mean(wg_cast(right, WG_F64), WG_ALL, false));
    metrics->tokens += s.tokens;
    if (wg_metrics_add(metrics, "accuracy", accuracy, (double)c->batch) < 0)
        return NULL;
    return wg_cross_entropy(s.logits, s.labels, WG_IGNORE_INDEX, NULL);
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
    wg__scores s;
    for (int64_t i = 0; i < count; i++)
        c->chosen[i] = first + i;
    if (c->labeller->score(c->labeller, c->held_out, count, c->chosen, &s) < 0)
        return -1;
    wg_tensor *best = wg_argmax(s.logits, 1, false);
    t->loss += (double)count * wg_item(wg_cross_entropy(s.logits, s.labels, WG_IGNORE_INDEX, NULL));
    if (!best || wg_error_pending())
        return -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t predicted = (int64_t)wg_at(best, &i);
        const int64_t label = wg_labelled_text_label(c->held_out, first + i);
        t->right += predicted == label;
        if (c->labeller->labels->count == 2)
            t->counts[label][predicted]++;
        if (predictions)
            predictions[first + i] = predicted;
    }
    return 0;
}

/* The share of the commonest label; -1 without memory. */
static double majority(const wg_classification *c) {
    int64_t *counts = wg__calloc((size_t)c->labeller->labels->count, sizeof *counts), most = 0;
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
    const int64_t examples = wg_labelled_text_examples(c->held_out), batch = c->batch;
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
    return c->labeller->labels->count == 2 ? add_binary(&t, weight, metrics) : 0;
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
    const wg_task task = {.context = &e, .module = c->labeller->module, .evaluate = evaluate_whole};
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_classification *c = context;
    return c->labeller->save(c->labeller, file, c->batches,
                             (int64_t)wg_labelled_text_fingerprint(c->training));
}

static int restore(void *context, wg_checkpoint *file) {
    wg_classification *c = context;
    const int64_t fingerprint = (int64_t)wg_labelled_text_fingerprint(c->training);
    if (wg_batches_restore(c->batches, file, fingerprint) < 0)
        return -1;
    return c->labeller->check ? c->labeller->check(c->labeller, file) : 0;
}

wg_task wg_classification_task(wg_classification *c) {
    return (wg_task){
        .context = c,
        .module = c->labeller->module,
        .loss = next_loss,
        .evaluate = c->held_out ? evaluate_during_training : NULL,
        .save = save,
        .restore = restore,
    };
}
