/* Regression: a number that is said of a text, or of two, such as how similar they are, by an
 * encoder with a head of one output   (Devlin et al. 2019, section 4.1; the STS-B of GLUE).
 *
 *     text with numbers --> shuffled examples --> encoder, pooler, dropout, classifier -->
 *     mean squared error
 *
 * Metric of an evaluation: the `loss`, which is the mean squared error, `pearson` and `spearman`,
 * the correlations of predicted and wanted numbers, and `variance`, the mean squared error of
 * always predicting their mean. */
#include "data/score/score.h"
#include "models/heads.h"
#include "objectives/labelling.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "regression"

typedef struct regression {
    wg__labelling labelling;
    wg_pair_frame frame;
} regression;

/* ---- The model ---- */

static wg__headed_encoder *scorer_of(const wg_model *model) {
    return (wg__headed_encoder *)model->module;
}

static int adapt(const wg_training_setup *setup, void (*note)(const char *message, void *context),
                 void *note_context, wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    return wg__headed_encoder_adapt(&origin, WG_HEAD_SCORE, NULL, model, tokenizer);
}

static int load(const char *path, wg_model *model, wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, WG_HEAD_SCORE, model, tokenizer);
}

static char *config(const wg_training *t) {
    return wg__headed_encoder_config(scorer_of(t->setup.model));
}

/* ---- Training ---- */

static wg__labelled_text *read_text(const wg_training *t, const char *path) {
    const wg__labelled_text_options reading = wg__labelling_reading(&t->setup);
    return wg__labelled_text_load(path, t->setup.tokenizer, NULL, &reading);
}

static int begin(wg_training *t) {
    regression *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine || wg_pair_frame_of(t->setup.tokenizer, t->setup.sequence, &mine->frame) < 0)
        return -1;
    mine->labelling = (wg__labelling){.read = read_text};
    return wg__labelling_begin(t);
}

static void end(wg_training *t) {
    wg__labelling_end(t);
    wg__free(t->context);
}

/* Predicted and wanted numbers of the chosen examples, (B) each, and how many tokens they have. */
static wg_tensor *predict(const wg_training *t, const wg__labelled_text *text, int64_t count,
                          wg_tensor **wanted, int64_t *tokens) {
    const regression *mine = t->context;
    wg__labelled_batch batch;
    if (wg__labelled_batch_read(text, &mine->frame, count, mine->labelling.chosen, &batch) < 0)
        return NULL;
    const wg_model_inputs inputs = wg__pair_inputs(&batch.inputs);
    *wanted = batch.labels;
    *tokens += batch.inputs.tokens;
    return wg_select(wg__headed_encoder_classify(scorer_of(t->setup.model), &inputs), 1, 0);
}

static wg_tensor *mean_squared_error(wg_tensor *predicted, wg_tensor *wanted) {
    wg_tensor *difference = wg_sub(predicted, wanted);
    return wg_mean(wg_mul(difference, difference), WG_ALL, false);
}

static wg_tensor *next_loss(void *training, wg_metrics *metrics) {
    wg_training *t = training;
    const regression *mine = t->context;
    wg_tensor *wanted, *predicted;
    if (wg_batches_next(t->batches, mine->labelling.chosen) < 0 ||
        !(predicted = predict(t, mine->labelling.text, t->setup.batch, &wanted, &metrics->tokens)))
        return NULL;
    return mean_squared_error(predicted, wanted);
}

/* ---- Evaluation ---- */

static int predict_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                         wg_metrics *metrics) {
    double *predictions = context;
    const regression *mine = t->context;
    for (int64_t i = 0; i < count; i++)
        mine->labelling.chosen[i] = first + i;
    wg_tensor *wanted,
        *predicted = predict(t, mine->labelling.held_out, count, &wanted, &metrics->tokens);
    if (!predicted || wg_error_pending())
        return -1;
    for (int64_t i = 0; i < count; i++)
        predictions[first + i] = wg_at(predicted, &i);
    return 0;
}

static int add_metrics(int64_t count, const double *predicted, const double *wanted,
                       wg_metrics *metrics) {
    const double examples = (double)count;
    double mean = 0, error = 0, variance = 0, spearman = 0;
    for (int64_t i = 0; i < count; i++)
        mean += wanted[i] / examples;
    for (int64_t i = 0; i < count; i++) {
        error += (predicted[i] - wanted[i]) * (predicted[i] - wanted[i]) / examples;
        variance += (wanted[i] - mean) * (wanted[i] - mean) / examples;
    }
    if (wg__spearman(count, predicted, wanted, &spearman) < 0 ||
        wg_metrics_add(metrics, "loss", error, examples) < 0 ||
        wg_metrics_add(metrics, "pearson", wg__pearson(count, predicted, wanted), examples) < 0 ||
        wg_metrics_add(metrics, "spearman", spearman, examples) < 0)
        return -1;
    return wg_metrics_add(metrics, "variance", variance, examples);
}

/* All of the held-out text, whose numbers go behind the predictions, also during training. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const regression *mine = t->context;
    const wg__labelled_text *text = mine->labelling.held_out;
    const int64_t examples = wg__labelled_text_examples(text);
    double *predictions = wg__alloc_array(wg__times(examples, 2), sizeof *predictions);
    int status = wg__evaluate_examples(t, predictions ? 0 : -1, examples, predict_batch,
                                       predictions, metrics);
    if (status == 0)
        status = wg__share_results(t, examples, t->setup.batch, sizeof *predictions, predictions);
    for (int64_t i = 0; status == 0 && i < examples; i++)
        predictions[examples + i] = wg__labelled_text_value(text, i);
    if (status == 0)
        status = add_metrics(examples, predictions, predictions + examples, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status =
            wg__write_numbers(t->setup.evaluation->predictions, "%.6g\n", examples, predictions);
    wg__free(predictions);
    return status;
}

/* ---- Results ---- */

static void describe(const wg_training *t, FILE *stream) {
    const regression *mine = t->context;
    fprintf(stream, "text   %lld examples, %lld tokens; %lld examples to measure on\n",
            (long long)wg__labelled_text_examples(mine->labelling.text),
            (long long)wg__labelled_text_tokens(mine->labelling.text),
            (long long)wg__labelled_text_examples(mine->labelling.held_out));
}

static const wg_metric_row rows[] = {
    {.name = "loss", .weight = "examples"},
    {.name = "pearson"},
    {.name = "spearman"},
    {.name = "variance"},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
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
    .describe = describe,
    .metrics = rows,
    .headline = "spearman",
    .print = print,
};
