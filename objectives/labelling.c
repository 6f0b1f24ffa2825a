/* Predicting a label of a text: see labelling.h. */
#include "objectives/labelling.h"

#include <math.h>

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* ---- Examples ---- */

#define OPTION(member) offsetof(wg_labelled_text_options, member)

const wg_setting wg__column_rows[] = {
    {"text-column", WG_SETTING_TEXT, OPTION(text_column), .fixed = true, .standard = "\"\"",
     .argument = "NAME",
     .help = "The column of FILE that holds the text, or the key where its lines are JSON objects; "
             "left out, well-known names are looked for (sentence, sentence1, question, premise, "
             "text...), else the columns are a text, or two, and the label"},
    {"text-pair-column", WG_SETTING_TEXT, OPTION(text_pair_column), .fixed = true,
     .standard = "\"\"", .argument = "NAME", .help = "The column that holds a second text"},
    {"label-column", WG_SETTING_TEXT, OPTION(label_column), .fixed = true, .standard = "\"\"",
     .argument = "NAME", .help = "The column that holds the label (label, gold_label, score...)"},
};

wg__labelled_text_options wg__labelling_reading(const wg_training_setup *setup) {
    const wg_labelled_text_options *options = setup->options;
    wg__labelled_text_options reading = {0};
    if (options)
        reading.columns = (wg__table_columns){.text = options->text_column,
                                              .text_pair = options->text_pair_column,
                                              .label = options->label_column};
    return reading;
}

int wg__labelling_adapt(const wg__head_origin *origin, wg__head_kind kind,
                        const char *training_path, const wg__labelled_text_options *reading,
                        wg_model *model, wg_tokenizer **tokenizer) {
    wg__labels labels = {0};
    wg_tokenizer *own = wg_tokenizer_load(origin->path);
    wg__labelled_text *text =
        own ? wg__labelled_text_load(training_path, own, &labels, reading) : NULL;
    const int status =
        text ? wg__headed_encoder_adapt(origin, kind, &labels, model, tokenizer) : -1;
    wg__labelled_text_free(text);
    wg_tokenizer_free(own);
    wg__labels_free(&labels);
    return status;
}

int wg__labelling_begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    wg__labelling *mine = t->context;
    mine->chosen = wg__alloc_array(setup->batch, sizeof *mine->chosen);
    if (!mine->chosen ||
        (setup->training_path && !(mine->text = mine->read(t, setup->training_path))) ||
        (setup->held_out_path && !(mine->held_out = mine->read(t, setup->held_out_path))))
        return -1;
    if (!mine->text)
        return 0;
    t->fingerprint = (int64_t)wg__labelled_text_fingerprint(mine->text);
    t->examples = wg__labelled_text_examples(mine->text);
    return wg__begin_numbered_batches(t);
}

void wg__labelling_end(wg_training *t) {
    wg__labelling *mine = t->context;
    if (!mine)
        return;
    wg__labelled_text_free(mine->text);
    wg__labelled_text_free(mine->held_out);
    wg__free(mine->chosen);
}

/* ---- Training ---- */

wg_tensor *wg__labelling_loss(void *training, wg_metrics *metrics) {
    wg_training *t = training;
    wg__labelling *mine = t->context;
    wg__scores s;
    if (wg_batches_next(t->batches, mine->chosen) < 0 ||
        mine->score(t, mine->text, t->setup.batch, mine->chosen, &s) < 0)
        return NULL;
    wg_tensor *right = wg_eq(wg_argmax(s.logits, 1, false), s.labels);
    const double accuracy = wg_item(wg_mean(wg_cast(right, WG_F64), WG_ALL, false));
    metrics->tokens += s.tokens;
    if (wg_metrics_add(metrics, "accuracy", accuracy, (double)t->setup.batch) < 0)
        return NULL;
    return wg_cross_entropy(s.logits, s.labels, WG_IGNORE_INDEX, NULL);
}

/* ---- Evaluation ---- */

/* Numbers of type double alone, which ranks add up: sums over the examples, and of two labels how
 * often label i was there and label j predicted. */
typedef struct totals {
    double counts[2][2];
    double right, loss;
} totals;

typedef struct evaluation {
    totals totals;
    int64_t *predictions; /* the number of the label of each example */
} evaluation;

static int evaluate_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                          wg_metrics *metrics) {
    (void)metrics; /* of all examples */
    const wg__labelling *mine = t->context;
    evaluation *e = context;
    totals *all = &e->totals;
    wg__scores s;
    for (int64_t i = 0; i < count; i++)
        mine->chosen[i] = first + i;
    if (mine->score(t, mine->held_out, count, mine->chosen, &s) < 0)
        return -1;
    wg_tensor *best = wg_argmax(s.logits, 1, false);
    all->loss +=
        (double)count * wg_item(wg_cross_entropy(s.logits, s.labels, WG_IGNORE_INDEX, NULL));
    if (!best || wg_error_pending())
        return -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t predicted = (int64_t)wg_at(best, &i);
        const int64_t label = wg__labelled_text_label(mine->held_out, first + i);
        all->right += predicted == label;
        if (mine->labels->count == 2)
            all->counts[label][predicted]++;
        e->predictions[first + i] = predicted;
    }
    return 0;
}

/* The share of the commonest label; -1 without memory. */
static double majority(const wg__labelling *mine) {
    int64_t *counts = wg__calloc((size_t)mine->labels->count, sizeof *counts), most = 0;
    if (!counts)
        return -1;
    const int64_t examples = wg__labelled_text_examples(mine->held_out);
    for (int64_t i = 0; i < examples; i++) {
        const int64_t count = ++counts[wg__labelled_text_label(mine->held_out, i)];
        most = count > most ? count : most;
    }
    wg__free(counts);
    return (double)most / (double)examples;
}

/* F1 and Matthews' correlation of two labels, the second being the positive one. */
static int add_binary(const totals *all, double examples, wg_metrics *metrics) {
    const double tp = all->counts[1][1], fp = all->counts[0][1], fn = all->counts[1][0],
                 tn = all->counts[0][0];
    const double f1 = 2 * tp + fp + fn > 0 ? 2 * tp / (2 * tp + fp + fn) : 0;
    const double scale = sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
    const double mcc = scale > 0 ? (tp * tn - fp * fn) / scale : 0;
    if (wg_metrics_add(metrics, "f1", f1, examples) < 0)
        return -1;
    return wg_metrics_add(metrics, "mcc", mcc, examples);
}

static int evaluate_all(const wg_training *t, int64_t *predictions, wg_metrics *metrics) {
    const wg__labelling *mine = t->context;
    const int64_t examples = wg__labelled_text_examples(mine->held_out);
    evaluation e = {.predictions = predictions};
    totals *all = &e.totals;
    if (wg__evaluate_examples(t, predictions ? 0 : -1, examples, evaluate_batch, &e, metrics) < 0 ||
        wg_group_sum(t->setup.group, WG_GROUP_F64, sizeof *all / sizeof(double), all) < 0 ||
        wg__share_results(t, examples, t->setup.batch, sizeof *predictions, predictions) < 0)
        return -1;
    const double weight = (double)examples, most = majority(mine);
    metrics->tokens += wg__labelled_text_tokens(mine->held_out);
    if (most < 0 || wg_metrics_add(metrics, "loss", all->loss / weight, weight) < 0 ||
        wg_metrics_add(metrics, "accuracy", all->right / weight, weight) < 0 ||
        wg_metrics_add(metrics, "majority", most, weight) < 0)
        return -1;
    return mine->labels->count == 2 ? add_binary(all, weight, metrics) : 0;
}

/* One label a line, in the order of the examples. */
static int write_predictions(const wg__labelling *mine, const char *path,
                             const int64_t *predictions) {
    const int64_t count = wg__labelled_text_examples(mine->held_out);
    FILE *file = wg__predictions_open(path);
    for (int64_t i = 0; file && i < count; i++)
        fprintf(file, "%s\n", mine->labels->names[predictions[i]]);
    return file ? wg__predictions_close(file, path) : -1;
}

/* All of the held-out text, also during training. */
int wg__labelling_evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const wg__labelling *mine = t->context;
    const size_t examples = (size_t)wg__labelled_text_examples(mine->held_out);
    int64_t *predictions = wg__alloc_array(examples, sizeof *predictions);
    int status = evaluate_all(t, predictions, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status = write_predictions(mine, t->setup.evaluation->predictions, predictions);
    wg__free(predictions);
    return status;
}

/* ---- Results ---- */

void wg__labelling_describe(const wg_training *t, FILE *stream) {
    const wg__labelling *mine = t->context;
    fprintf(stream,
            "text   %lld examples of %lld labels, %lld tokens; %lld examples to measure on\n",
            (long long)wg__labelled_text_examples(mine->text), (long long)mine->labels->count,
            (long long)wg__labelled_text_tokens(mine->text),
            (long long)wg__labelled_text_examples(mine->held_out));
}

void wg__labelling_print(const wg_metrics *metrics, FILE *stream) {
    fprintf(stream, "labels           loss %.4f, accuracy %.2f %% of %.0f\n",
            wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "accuracy"),
            wg_metrics_weight(metrics, "accuracy"));
    if (wg_metrics_weight(metrics, "f1") > 0)
        fprintf(stream, "of two labels    F1 %.2f %%, Matthews' correlation %.4f\n",
                100 * wg_metrics_get(metrics, "f1"), wg_metrics_get(metrics, "mcc"));
    fprintf(stream, "commonest label       accuracy %.2f %%\n",
            100 * wg_metrics_get(metrics, "majority"));
}

const wg_metric_row wg__labelling_metrics[] = {
    {.name = "loss", .optional = true},
    {.name = "accuracy", .weight = "examples", .optional = true},
    {.name = "majority", .optional = true},
    {.name = "f1", .optional = true},
    {.name = "mcc", .optional = true},
    {0},
};
