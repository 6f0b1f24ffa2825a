/* Fine-tuning of an encoder with a head: see head.h. */
#include "objectives/head.h"

#include <math.h>

#include "data/dataset/examples.h"
#include "data/score/score.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* A new model has the labels of its training text. Reading that text needs the tokenizer of the
 * checkpoint, so the tokenizer is loaded first. */
int wg__head_adapt(const wg_objective *objective, const wg_training_setup *setup,
                   void (*note)(const char *message, void *context), void *note_context,
                   wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_task *task = objective->head;
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    if (!task->learns_labels)
        return wg__headed_encoder_adapt(&origin, task->kind, NULL, model, tokenizer);
    wg__labels labels = {0};
    wg_tokenizer *own = wg_tokenizer_load(setup->checkpoint);
    wg__examples *text =
        own ? task->read(task->kind, setup, NULL, setup->training_path, own, &labels) : NULL;
    const int status =
        text ? wg__headed_encoder_adapt(&origin, task->kind, &labels, model, tokenizer) : -1;
    wg__examples_free(text);
    wg_tokenizer_free(own);
    wg__labels_free(&labels);
    return status;
}

int wg__head_load(const wg_objective *objective, const char *path, wg_model *model,
                  wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, objective->head->kind, model, tokenizer);
}

char *wg__head_config(const wg_training *t) {
    return wg__headed_encoder_config((wg__headed_encoder *)t->setup.model->module);
}

int wg__head_outputs(const wg_training *t, const wg__example_batch *batch, wg_tensor *outputs[2]) {
    const wg_model_inputs inputs = wg__pair_inputs(&batch->inputs);
    wg__headed_encoder *encoder = (wg__headed_encoder *)t->setup.model->module;
    return wg__headed_encoder_forward(encoder, &inputs, outputs);
}

/* ---- Training ---- */

/* Fills a batch with the examples of run->chosen. */
static int read_batch(const wg_training *t, const wg__examples *examples, int64_t count,
                      wg__example_batch *batch) {
    const wg__head_run *run = t->context;
    const wg__head_task *task = t->objective->head;
    return task->batch ? task->batch(t, examples, count, batch)
                       : wg__example_batch_read(examples, &run->frame, count, run->chosen, batch);
}

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    const wg_training *t = context;
    const wg__head_run *run = t->context;
    for (int64_t i = 0; i < count; i++)
        run->chosen[i] = examples[i].index;
    return read_batch(t, run->training, count, batch);
}

int wg__head_begin_as(wg_training *t, void *own, wg__labels *labels) {
    const wg_training_setup *setup = &t->setup;
    const wg__head_task *task = t->objective->head;
    wg__head_run *run = t->context = wg__calloc(1, sizeof *run);
    if (!run)
        return -1;
    run->own = own;
    run->labels = labels;
    run->chosen = wg__alloc_array(setup->batch, sizeof *run->chosen);
    if (!run->chosen ||
        (!task->batch && wg__pair_frame_of(setup->tokenizer, setup->sequence, &run->frame) < 0))
        return -1;
    const char *const paths[2] = {setup->training_path, setup->held_out_path};
    wg__examples **const texts[2] = {&run->training, &run->held_out};
    for (int i = 0; i < 2; i++)
        if (paths[i] &&
            !(*texts[i] = task->read(task->kind, setup, own, paths[i], setup->tokenizer, labels)))
            return -1;
    if (!run->training)
        return 0;
    t->fingerprint = (int64_t)run->training->kind->fingerprint(run->training);
    t->examples = run->training->count;
    t->batches = wg_batches_new(
        &(wg_batch_source){.context = t, .build = build},
        &(wg_batches_options){.batch = setup->batch, .examples = t->examples, .seed = setup->seed});
    return t->batches ? 0 : -1;
}

int wg__head_begin(wg_training *t) {
    return wg__head_begin_as(t, NULL, &((wg__headed_encoder *)t->setup.model->module)->labels);
}

void wg__head_end(wg_training *t) {
    wg__head_run *run = t->context;
    if (!run)
        return;
    wg__examples_free(run->training);
    wg__examples_free(run->held_out);
    wg__free(run->chosen);
    wg__free(run);
}

wg_tensor *wg__head_loss(wg_training *t, const void *batch, wg_metrics *metrics) {
    const wg__head_task *task = t->objective->head;
    wg_tensor *outputs[2] = {NULL, NULL};
    if ((task->outputs ? task->outputs : wg__head_outputs)(t, batch, outputs) < 0 ||
        (task->measure_step && task->measure_step(outputs, batch, metrics) < 0))
        return NULL;
    return task->loss(outputs, batch);
}

/* ---- Evaluation ---- */

static int predict(const wg_training *t, int64_t first, int64_t count, void *context,
                   wg_metrics *metrics) {
    const wg__head_run *run = context;
    const wg__head_task *task = t->objective->head;
    wg_tensor *outputs[2] = {NULL, NULL};
    for (int64_t i = 0; i < count; i++)
        run->chosen[i] = first + i;
    if (read_batch(t, run->held_out, count, t->batch) < 0 ||
        (task->outputs ? task->outputs : wg__head_outputs)(t, t->batch, outputs) < 0)
        return -1;
    return task->predict(t, first, count, outputs, t->batch, metrics);
}

/* All of the held-out text, also during training. Ranks share their predictions: one prediction per
 * example is sent by batches; predictions of words, which only the rank of their example sets, are
 * summed. */
int wg__head_evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    wg__head_run *run = t->context;
    const wg__head_task *task = t->objective->head;
    const wg__examples *text = run->held_out;
    const size_t size = task->prediction ? task->prediction : (size_t)run->labels->count;
    run->loss = 0;
    run->predictions = wg__calloc((size_t)text->predictions, size);
    int status =
        wg__evaluate_examples(t, run->predictions ? 0 : -1, text->count, predict, run, metrics);
    if (status == 0)
        status = wg_group_sum(t->setup.group, WG_GROUP_F64, 1, &run->loss);
    if (status == 0)
        status =
            text->predictions == text->count
                ? wg__share_results(t, text->count, t->setup.batch, size, run->predictions)
                : wg_group_sum(t->setup.group, WG_GROUP_I64, text->predictions, run->predictions);
    if (status == 0)
        status = task->measure(run, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status = task->write(run, t->setup.evaluation->predictions);
    wg__free(run->predictions);
    return status;
}

const wg_objective_training wg__head_training = {.adapt = wg__head_adapt,
                                                 .load = wg__head_load,
                                                 .config = wg__head_config,
                                                 .begin = wg__head_begin,
                                                 .end = wg__head_end,
                                                 .loss = wg__head_loss,
                                                 .evaluate = wg__head_evaluate};

/* ---- Labels and numbers of texts, or of pairs of them, by an encoder with a head on its first
 * token (Devlin et al. 2019, section 4.1).
 *
 *     text with labels --> shuffled examples --> encoder, pooler, dropout, classifier -->
 *
 *     classify       one label             cross-entropy
 *     multi-label    any number of them    binary cross-entropy of sigmoids, the mean over labels
 *     regression     a number              mean squared error
 *
 * The labels come from the training file, in the order of wg__labels_sort. A number says, for
 * instance, how similar two texts are (the STS-B of GLUE).
 *
 * A step of classify also has the metric `accuracy`. Metrics of evaluations:
 *
 *     classify       loss, accuracy
 *                    majority   the accuracy of always predicting the commonest label
 *                    f1, mcc    two labels only: F1 of the second label, and Matthews' correlation,
 *                               0 where it is not defined
 *     multi-label    a label is predicted if its probability is above 1/2
 *                    loss
 *                    f1         micro: over all pairs of a text and a label
 *                    macro_f1   the mean of the F1 of each label, 0 for a label that neither occurs
 *                               nor is predicted
 *                    exact      the share of texts without a wrong or missing label
 *                    majority   the f1 of always predicting only the commonest label
 *     regression     loss       the mean squared error
 *                    pearson, spearman   correlations of predicted and wanted numbers
 *                    variance   the mean squared error of always predicting the mean */

#define OPTION(member) offsetof(wg_labelled_text_options, member)

static const wg_setting column_rows[] = {
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

static wg__examples *read_text(wg__head_kind kind, const wg_training_setup *setup, const void *own,
                               const char *path, const wg_tokenizer *tokenizer,
                               wg__labels *labels) {
    const wg_labelled_text_options *options = setup->options;
    const bool several = kind == WG_HEAD_SEVERAL_LABELS;
    (void)own;
    wg__labelled_text_options reading = {.several = several, .columns.lists = several};
    if (options) {
        reading.columns.text = options->text_column;
        reading.columns.text_pair = options->text_pair_column;
        reading.columns.label = options->label_column;
    }
    return (wg__examples *)wg__labelled_text_load(path, tokenizer,
                                                  kind == WG_HEAD_SCORE ? NULL : labels, &reading);
}

/* ---- One label ---- */

wg_tensor *wg__label_loss(wg_tensor *const outputs[2], const wg__example_batch *batch) {
    return wg_cross_entropy(outputs[0], batch->targets[0], WG_IGNORE_INDEX, NULL);
}

int wg__label_measure_step(wg_tensor *const outputs[2], const wg__example_batch *batch,
                           wg_metrics *metrics) {
    wg_tensor *right = wg_eq(wg_argmax(outputs[0], 1, false), batch->targets[0]);
    return wg_metrics_add(metrics, "accuracy",
                          wg_item(wg_mean(wg_cast(right, WG_F64), WG_ALL, false)),
                          (double)wg_tensor_count(batch->targets[0]));
}

int wg__label_predict(const wg_training *t, int64_t first, int64_t count,
                      wg_tensor *const outputs[2], const wg__example_batch *batch,
                      wg_metrics *metrics) {
    wg__head_run *run = t->context;
    int64_t *predictions = run->predictions;
    wg_tensor *best = wg_argmax(outputs[0], 1, false);
    (void)metrics; /* of all examples */
    run->loss += (double)count * wg_item(wg__label_loss(outputs, batch));
    for (int64_t i = 0; best && i < count; i++)
        predictions[first + i] = (int64_t)wg_at(best, &i);
    return wg_error_pending() ? -1 : 0;
}

int wg__label_measure(const wg__head_run *run, wg_metrics *metrics) {
    const wg__labelled_text *text = (const wg__labelled_text *)run->held_out;
    const int64_t *predictions = run->predictions, count = text->base.count;
    int64_t *counts = wg__calloc((size_t)run->labels->count, sizeof *counts), most = 0, right = 0;
    double table[2][2] = {{0}}; /* of two labels: how often one was there and another predicted */
    for (int64_t i = 0; counts && i < count; i++) {
        const int64_t label = text->examples[i].label;
        most = wg__larger(most, ++counts[label]);
        right += predictions[i] == label;
        if (run->labels->count == 2)
            table[label][predictions[i]]++;
    }
    wg__free(counts);
    const double weight = (double)count;
    metrics->tokens += text->tokens.count;
    if (!counts || wg_metrics_add(metrics, "loss", run->loss / weight, weight) < 0 ||
        wg_metrics_add(metrics, "accuracy", (double)right / weight, weight) < 0 ||
        wg_metrics_add(metrics, "majority", (double)most / weight, weight) < 0)
        return -1;
    if (run->labels->count != 2)
        return 0;
    const double tp = table[1][1], fp = table[0][1], fn = table[1][0], tn = table[0][0];
    const double f1 = 2 * tp + fp + fn > 0 ? 2 * tp / (2 * tp + fp + fn) : 0;
    const double scale = sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn));
    if (wg_metrics_add(metrics, "f1", f1, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "mcc", scale > 0 ? (tp * tn - fp * fn) / scale : 0, weight);
}

/* One label a line, in the order of the examples. */
int wg__label_write(const wg__head_run *run, const char *path) {
    const int64_t *predictions = run->predictions;
    FILE *file = wg__predictions_open(path);
    for (int64_t i = 0; file && i < run->held_out->count; i++)
        fprintf(file, "%s\n", run->labels->names[predictions[i]]);
    return file ? wg__predictions_close(file, path) : -1;
}

void wg__label_describe(const wg_training *t, FILE *stream) {
    const wg__head_run *run = t->context;
    fprintf(stream, "text   %lld examples", (long long)run->training->count);
    if (run->labels->count > 0) /* regression has none */
        fprintf(stream, " of %lld labels", (long long)run->labels->count);
    fprintf(stream, ", %lld tokens; %lld examples to measure on\n",
            (long long)((const wg__labelled_text *)run->training)->tokens.count,
            (long long)(run->held_out ? run->held_out->count : 0));
}

void wg__label_print(const wg_metrics *metrics, FILE *stream) {
    fprintf(stream, "labels           loss %.4f, accuracy %.2f %% of %.0f\n",
            wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "accuracy"),
            wg_metrics_weight(metrics, "accuracy"));
    if (wg_metrics_weight(metrics, "f1") > 0)
        fprintf(stream, "of two labels    F1 %.2f %%, Matthews' correlation %.4f\n",
                100 * wg_metrics_get(metrics, "f1"), wg_metrics_get(metrics, "mcc"));
    fprintf(stream, "commonest label       accuracy %.2f %%\n",
            100 * wg_metrics_get(metrics, "majority"));
}

const wg_metric_row wg__label_metrics[] = {
    {.name = "loss", .optional = true},
    {.name = "accuracy", .weight = "examples", .optional = true},
    {.name = "majority", .optional = true},
    {.name = "f1", .optional = true},
    {.name = "mcc", .optional = true},
    {0},
};

const wg_objective wg_classification = {
    .name = "classify",
    .title = "labels texts, or pairs of them, by a head on the first token (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"problem_type=single_label_classification"},
    .settings = WG__SETTING_TABLE(wg_labelled_text_options, column_rows),
    .defaults = WG__HEAD_DEFAULTS,
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {WG__BATCH_OF(wg__example_batch, inputs.tokens), .describe = wg__label_describe},
    .training = &wg__head_training,
    .head =
        &(const wg__head_task){
            .kind = WG_HEAD_LABELS, .learns_labels = true, .read = read_text, WG__LABEL_TASK},
    .metrics = wg__label_metrics,
    .headline = "accuracy",
    .print = wg__label_print,
};

/* ---- Several labels ---- */

static wg_tensor *set_loss(wg_tensor *const outputs[2], const wg__example_batch *batch) {
    return wg_bce_with_logits(outputs[0], batch->targets[0], NULL, NULL, WG_REDUCTION_MEAN);
}

static int predict_sets(const wg_training *t, int64_t first, int64_t count,
                        wg_tensor *const outputs[2], const wg__example_batch *batch,
                        wg_metrics *metrics) {
    wg__head_run *run = t->context;
    const int64_t kinds = run->labels->count;
    bool *predictions = (bool *)run->predictions + first * kinds;
    wg_tensor *loss = set_loss(outputs, batch);
    wg_tensor *logits = wg_contiguous(wg_cast(outputs[0], WG_F32));
    metrics->tokens += batch->inputs.tokens;
    run->loss += (double)count * wg_item(loss);
    if (!logits || wg_error_pending())
        return -1;
    for (int64_t i = 0; i < count * kinds; i++)
        predictions[i] = ((const float *)wg_tensor_data(logits))[i] > 0;
    return 0;
}

/* F1 = 2 TP / (2 TP + FP + FN). */
static double f1_of(int64_t both, int64_t predicted, int64_t wanted) {
    const int64_t sum = 2 * both + predicted + wanted;
    return sum > 0 ? 2 * (double)both / (double)sum : 0;
}

static int measure_sets(const wg__head_run *run, wg_metrics *metrics) {
    const wg__labelled_text *text = (const wg__labelled_text *)run->held_out;
    const bool *predictions = run->predictions;
    const int64_t kinds = run->labels->count, examples = text->base.count;
    int64_t all_both = 0, all_predicted = 0, all_wanted = 0, commonest = 0, exact = 0;
    double macro = 0;
    for (int64_t label = 0; label < kinds; label++) {
        int64_t both = 0, predicted = 0, wanted = 0;
        for (int64_t i = 0; i < examples; i++) {
            const bool there = wg__labelled_text_has(text, i, label);
            both += there && predictions[i * kinds + label];
            predicted += !there && predictions[i * kinds + label];
            wanted += there && !predictions[i * kinds + label];
        }
        all_both += both;
        all_predicted += predicted;
        all_wanted += wanted;
        macro += f1_of(both, predicted, wanted) / (double)kinds;
        commonest = wg__larger(commonest, both + wanted);
    }
    for (int64_t i = 0; i < examples; i++) {
        int64_t label = 0;
        while (label < kinds &&
               wg__labelled_text_has(text, i, label) == predictions[i * kinds + label])
            label++;
        exact += label == kinds;
    }
    const double weight = (double)examples;
    const double majority =
        f1_of(commonest, examples - commonest, all_both + all_wanted - commonest);
    if (wg_metrics_add(metrics, "loss", run->loss / weight, weight) < 0 ||
        wg_metrics_add(metrics, "f1", f1_of(all_both, all_predicted, all_wanted), weight) < 0 ||
        wg_metrics_add(metrics, "macro_f1", macro, weight) < 0 ||
        wg_metrics_add(metrics, "exact", (double)exact / weight, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "majority", majority, weight);
}

/* One text a line: its labels, with commas between them. */
static int write_sets(const wg__head_run *run, const char *path) {
    const bool *predictions = run->predictions;
    const wg__labels *labels = run->labels;
    FILE *file = wg__predictions_open(path);
    for (int64_t i = 0; file && i < run->held_out->count; i++) {
        const char *comma = "";
        for (int64_t label = 0; label < labels->count; label++)
            if (predictions[i * labels->count + label]) {
                fprintf(file, "%s%s", comma, labels->names[label]);
                comma = ",";
            }
        putc('\n', file);
    }
    return file ? wg__predictions_close(file, path) : -1;
}

static const wg_metric_row set_metrics[] = {
    {.name = "loss", .weight = "examples"},
    {.name = "f1"},
    {.name = "macro_f1"},
    {.name = "exact"},
    {.name = "majority"},
    {0},
};

static void print_sets(const wg_metrics *metrics, FILE *stream) {
    fprintf(
        stream,
        "labels           loss %.4f, F1 %.2f %% (micro), %.2f %% (macro), all labels right %.2f "
        "%% of %.0f\n",
        wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "f1"),
        100 * wg_metrics_get(metrics, "macro_f1"), 100 * wg_metrics_get(metrics, "exact"),
        wg_metrics_weight(metrics, "loss"));
    fprintf(stream, "commonest label       F1 %.2f %% (micro)\n",
            100 * wg_metrics_get(metrics, "majority"));
}

const wg_objective wg_multi_label = {
    .name = "multi-label",
    .title = "gives any number of labels to texts, or pairs of them, by one sigmoid a label",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"problem_type=multi_label_classification"},
    .settings = WG__SETTING_TABLE(wg_labelled_text_options, column_rows),
    .defaults = WG__HEAD_DEFAULTS,
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {WG__BATCH_OF(wg__example_batch, inputs.tokens), .describe = wg__label_describe},
    .training = &wg__head_training,
    .head = &(const wg__head_task){.kind = WG_HEAD_SEVERAL_LABELS,
                                   .learns_labels = true,
                                   .read = read_text,
                                   .loss = set_loss,
                                   .predict = predict_sets,
                                   .measure = measure_sets,
                                   .write = write_sets},
    .metrics = set_metrics,
    .headline = "f1",
    .print = print_sets,
};

/* ---- Numbers ---- */

/* (B, 1) -> (B) */
static int number_outputs(const wg_training *t, const wg__example_batch *batch,
                          wg_tensor *outputs[2]) {
    if (wg__head_outputs(t, batch, outputs) < 0)
        return -1;
    outputs[0] = wg_select(outputs[0], 1, 0);
    return outputs[0] ? 0 : -1;
}

static wg_tensor *number_loss(wg_tensor *const outputs[2], const wg__example_batch *batch) {
    wg_tensor *difference = wg_sub(outputs[0], batch->targets[0]);
    return wg_mean(wg_mul(difference, difference), WG_ALL, false);
}

static int predict_numbers(const wg_training *t, int64_t first, int64_t count,
                           wg_tensor *const outputs[2], const wg__example_batch *batch,
                           wg_metrics *metrics) {
    double *predictions = ((const wg__head_run *)t->context)->predictions;
    metrics->tokens += batch->inputs.tokens;
    for (int64_t i = 0; i < count; i++)
        predictions[first + i] = wg_at(outputs[0], &i);
    return wg_error_pending() ? -1 : 0;
}

static int measure_numbers(const wg__head_run *run, wg_metrics *metrics) {
    const wg__labelled_text *text = (const wg__labelled_text *)run->held_out;
    const int64_t count = text->base.count;
    const double *predicted = run->predictions, examples = (double)count;
    double mean = 0, error = 0, variance = 0, spearman = 0;
    double *wanted = wg__alloc_array(count, sizeof *wanted);
    if (!wanted)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        wanted[i] = text->examples[i].value;
        mean += wanted[i] / examples;
    }
    for (int64_t i = 0; i < count; i++) {
        error += (predicted[i] - wanted[i]) * (predicted[i] - wanted[i]) / examples;
        variance += (wanted[i] - mean) * (wanted[i] - mean) / examples;
    }
    const double pearson = wg__pearson(count, predicted, wanted);
    const int status = wg__spearman(count, predicted, wanted, &spearman);
    wg__free(wanted);
    if (status < 0 || wg_metrics_add(metrics, "loss", error, examples) < 0 ||
        wg_metrics_add(metrics, "pearson", pearson, examples) < 0 ||
        wg_metrics_add(metrics, "spearman", spearman, examples) < 0)
        return -1;
    return wg_metrics_add(metrics, "variance", variance, examples);
}

static int write_numbers(const wg__head_run *run, const char *path) {
    return wg__write_numbers(path, "%.6g\n", run->held_out->count, run->predictions);
}

static const wg_metric_row number_metrics[] = {
    {.name = "loss", .weight = "examples"},
    {.name = "pearson"},
    {.name = "spearman"},
    {.name = "variance"},
    {0},
};

static void print_numbers(const wg_metrics *metrics, FILE *stream) {
    fprintf(stream,
            "numbers          mean squared error %.4f, correlation %.4f (Pearson), %.4f (Spearman) "
            "of %.0f\n",
            wg_metrics_get(metrics, "loss"), wg_metrics_get(metrics, "pearson"),
            wg_metrics_get(metrics, "spearman"), wg_metrics_weight(metrics, "loss"));
    fprintf(stream, "their mean            mean squared error %.4f\n",
            wg_metrics_get(metrics, "variance"));
}

const wg_objective wg_regression = {
    .name = "regression",
    .title = "gives a number to texts, or pairs of them, as STS-B asks (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"problem_type=regression"},
    .settings = WG__SETTING_TABLE(wg_labelled_text_options, column_rows),
    .defaults = WG__HEAD_DEFAULTS,
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {WG__BATCH_OF(wg__example_batch, inputs.tokens), .describe = wg__label_describe},
    .training = &wg__head_training,
    .head = &(const wg__head_task){.kind = WG_HEAD_SCORE,
                                   .prediction = sizeof(double),
                                   .read = read_text,
                                   .outputs = number_outputs,
                                   .loss = number_loss,
                                   .predict = predict_numbers,
                                   .measure = measure_numbers,
                                   .write = write_numbers},
    .metrics = number_metrics,
    .headline = "spearman",
    .print = print_numbers,
};
