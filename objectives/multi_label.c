/* Several labels of a text, or of two, each there or not, by an encoder with a head on its first
 * token: what Hugging Face calls multi_label_classification.
 *
 *     texts with any number of labels --> shuffled examples --> encoder, pooler, dropout,
 *     classifier --> sigmoid of each label --> binary cross-entropy, the mean over all labels
 *
 * A label is predicted where its probability is above 1/2. Metrics of an evaluation, over N texts
 * and K labels: `loss`; `f1`, micro: of all labels together; `macro_f1`: the mean of those of each
 * label, 0 where it is neither there nor predicted; `exact`, the share of texts all of whose labels
 * are right; and `majority`, the f1 of always predicting the commonest label alone. */
#include "models/heads.h"
#include "objectives/labelling.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "multi-label"

typedef struct multi_label {
    wg__labelling labelling;
    wg_pair_frame frame;
} multi_label;

/* ---- The model ---- */

static wg__headed_encoder *classifier_of(const wg_model *model) {
    return (wg__headed_encoder *)model->module;
}

static wg__labelled_text_options reading_of(const wg_training_setup *setup) {
    wg__labelled_text_options reading = wg__labelling_reading(setup);
    reading.several = reading.columns.lists = true;
    return reading;
}

static int adapt(const wg_training_setup *setup, void (*note)(const char *message, void *context),
                 void *note_context, wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    const wg__labelled_text_options reading = reading_of(setup);
    return wg__labelling_adapt(&origin, WG_HEAD_MULTI_LABEL, setup->training_path, &reading, model,
                               tokenizer);
}

static int load(const char *path, wg_model *model, wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, WG_HEAD_MULTI_LABEL, model, tokenizer);
}

static char *config(const wg_training *t) {
    return wg__headed_encoder_config(classifier_of(t->setup.model));
}

/* ---- Training ---- */

static wg__labelled_text *read_text(const wg_training *t, const char *path) {
    const wg__labelled_text_options reading = reading_of(&t->setup);
    return wg__labelled_text_load(path, t->setup.tokenizer, &classifier_of(t->setup.model)->labels,
                                  &reading);
}

static int begin(wg_training *t) {
    multi_label *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine || wg_pair_frame_of(t->setup.tokenizer, t->setup.sequence, &mine->frame) < 0)
        return -1;
    mine->labelling =
        (wg__labelling){.labels = &classifier_of(t->setup.model)->labels, .read = read_text};
    return wg__labelling_begin(t);
}

static void end(wg_training *t) {
    wg__labelling_end(t);
    wg__free(t->context);
}

/* Logits and labels of the chosen examples, (B, K) each, and how many tokens they have. */
static wg_tensor *classify(const wg_training *t, const wg__labelled_text *text, int64_t count,
                           wg_tensor **labels, int64_t *tokens) {
    const multi_label *mine = t->context;
    wg__labelled_batch batch;
    if (wg__labelled_batch_read(text, &mine->frame, count, mine->labelling.chosen, &batch) < 0)
        return NULL;
    const wg_model_inputs inputs = wg__pair_inputs(&batch.inputs);
    *labels = batch.labels;
    *tokens += batch.inputs.tokens;
    return wg__headed_encoder_classify(classifier_of(t->setup.model), &inputs);
}

static wg_tensor *next_loss(void *training, wg_metrics *metrics) {
    wg_training *t = training;
    const multi_label *mine = t->context;
    wg_tensor *labels = NULL, *logits;
    if (wg_batches_next(t->batches, mine->labelling.chosen) < 0 ||
        !(logits = classify(t, mine->labelling.text, t->setup.batch, &labels, &metrics->tokens)))
        return NULL;
    return wg_bce_with_logits(logits, labels, NULL, NULL, WG_REDUCTION_MEAN);
}

/* ---- Evaluation ---- */

/* Of a label: how often it was there and predicted, predicted alone, there alone. */
typedef struct counts {
    int64_t both, predicted, wanted;
} counts;

typedef struct totals {
    counts *labels;    /* (K) */
    bool *predictions; /* (N, K) */
    double loss;       /* summed over the texts */
    int64_t exact;
} totals;

/* The totals of all ranks on each of them; `counts` has three numbers. */
static int share_totals(const wg_training *t, int64_t examples, int64_t kinds, totals *all) {
    wg_group *group = t->setup.group;
    if (wg_group_sum(group, WG_GROUP_I64, kinds * 3, all->labels) < 0 ||
        wg_group_sum(group, WG_GROUP_I64, 1, &all->exact) < 0 ||
        wg_group_sum(group, WG_GROUP_F64, 1, &all->loss) < 0)
        return -1;
    return wg__share_results(t, examples, t->setup.batch, (size_t)kinds, all->predictions);
}

static void count_text(const wg__labelled_text *text, int64_t number, int64_t kinds,
                       const float *logits, totals *all) {
    bool exact = true;
    for (int64_t label = 0; label < kinds; label++) {
        const bool wanted = wg__labelled_text_has(text, number, label);
        const bool predicted = logits[label] > 0;
        counts *c = &all->labels[label];
        c->both += wanted && predicted;
        c->predicted += predicted && !wanted;
        c->wanted += wanted && !predicted;
        exact = exact && wanted == predicted;
        all->predictions[number * kinds + label] = predicted;
    }
    all->exact += exact;
}

static int evaluate_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                          wg_metrics *metrics) {
    totals *all = context;
    const multi_label *mine = t->context;
    const wg__labelled_text *text = mine->labelling.held_out;
    const int64_t kinds = mine->labelling.labels->count;
    for (int64_t i = 0; i < count; i++)
        mine->labelling.chosen[i] = first + i;
    wg_tensor *labels = NULL, *logits = classify(t, text, count, &labels, &metrics->tokens);
    wg_tensor *loss = wg_bce_with_logits(logits, labels, NULL, NULL, WG_REDUCTION_MEAN);
    logits = wg_contiguous(wg_cast(logits, WG_F32));
    all->loss += (double)count * wg_item(loss);
    if (!logits || wg_error_pending())
        return -1;
    const float *numbers = wg_tensor_data(logits);
    for (int64_t i = 0; i < count; i++)
        count_text(text, first + i, kinds, numbers + i * kinds, all);
    return 0;
}

static double f1_of(int64_t both, int64_t predicted, int64_t wanted) {
    const int64_t sum = 2 * both + predicted + wanted;
    return sum > 0 ? 2 * (double)both / (double)sum : 0;
}

static int add_metrics(const totals *all, int64_t kinds, int64_t examples, wg_metrics *metrics) {
    counts sum = {0};
    int64_t commonest = 0;
    double macro = 0;
    for (int64_t label = 0; label < kinds; label++) {
        const counts *c = &all->labels[label];
        sum.both += c->both;
        sum.predicted += c->predicted;
        sum.wanted += c->wanted;
        macro += f1_of(c->both, c->predicted, c->wanted) / (double)kinds;
        commonest = c->both + c->wanted > commonest ? c->both + c->wanted : commonest;
    }
    const double weight = (double)examples;
    const double majority =
        f1_of(commonest, examples - commonest, sum.both + sum.wanted - commonest);
    if (wg_metrics_add(metrics, "loss", all->loss / weight, weight) < 0 ||
        wg_metrics_add(metrics, "f1", f1_of(sum.both, sum.predicted, sum.wanted), weight) < 0 ||
        wg_metrics_add(metrics, "macro_f1", macro, weight) < 0 ||
        wg_metrics_add(metrics, "exact", (double)all->exact / weight, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "majority", majority, weight);
}

/* The labels of a text a line, with commas between them. */
static int write_predictions(const char *path, const wg__labels *labels, int64_t examples,
                             const bool *predictions) {
    FILE *file = wg__predictions_open(path);
    for (int64_t i = 0; file && i < examples; i++) {
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

/* All of the held-out text, also during training. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const multi_label *mine = t->context;
    const int64_t examples = wg__labelled_text_examples(mine->labelling.held_out);
    const int64_t kinds = mine->labelling.labels->count;
    totals all = {.labels = wg__calloc((size_t)kinds, sizeof *all.labels),
                  .predictions =
                      wg__calloc((size_t)wg__times(examples, kinds), sizeof *all.predictions)};
    int status = all.labels && all.predictions ? 0 : -1;
    status = wg__evaluate_examples(t, status, examples, evaluate_batch, &all, metrics);
    if (status == 0)
        status = share_totals(t, examples, kinds, &all);
    if (status == 0)
        status = add_metrics(&all, kinds, examples, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status = write_predictions(t->setup.evaluation->predictions, mine->labelling.labels,
                                   examples, all.predictions);
    wg__free(all.labels);
    wg__free(all.predictions);
    return status;
}

/* ---- Results ---- */

static const wg_metric_row rows[] = {
    {.name = "loss", .weight = "examples"},
    {.name = "f1"},
    {.name = "macro_f1"},
    {.name = "exact"},
    {.name = "majority"},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
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
    .name = WHERE,
    .title = "gives any number of labels to texts, or pairs of them, by one sigmoid a label",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"problem_type=multi_label_classification"},
    .settings = WG__COLUMN_SETTINGS,
    .training = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500}",
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .adapt = adapt,
    .load = load,
    .config = config,
    .begin = begin,
    .end = end,
    .loss = next_loss,
    .evaluate = evaluate,
    .describe = wg__labelling_describe,
    .metrics = rows,
    .headline = "f1",
    .print = print,
};
