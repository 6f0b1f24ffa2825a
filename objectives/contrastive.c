/* Contrastive learning of vectors of texts: SimCSE   (Gao et al. 2021, arXiv:2104.08821).
 *
 *     lines of texts     each text goes through the encoder twice, under two dropout masks
 *     pairs of texts     each text of a pair goes through the encoder once
 *
 *     u, v (B, C)  -->  cosine of each u with each v, / temperature (B, B)  -->  cross-entropy,
 *                       the right v of a u being its own
 *
 * The remaining texts of a batch are the wrong answers, so the loss depends on how the texts of a
 * step are cut into batches. The loss of a step is the mean over its batches.
 *
 * A vector is computed as by `wengert embed`: the mean of the hidden states, or the hidden state of
 * [CLS]. The model gets no new head.
 *
 * Metrics of an evaluation: `loss`, and `accuracy`, the share of texts whose own partner is the
 * nearest in the batch. If the held-out file has pairs with a number for their similarity, as STS
 * has: `spearman`, the rank correlation of cosines and numbers, and `loss`, 1 - spearman. */
#include <math.h>
#include <string.h>

#include "data/dataset/examples.h"
#include "data/score/score.h"
#include "io/checkpoint/checkpoint.h"
#include "models/internal.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "contrastive"

typedef struct contrastive {
    wg_contrastive_options options;
    wg_pair_frame frame;
    wg__text_lines text, held_out;
    wg__labelled_text *scored; /* instead of `held_out`: pairs with numbers */
    wg_token_pair *pairs;      /* (2 B) of a batch: the first texts, then the second ones */
} contrastive;

static int make_model(const char *json, const wg_training_setup *setup, double dropout,
                      wg_model *model) {
    const wg_model_type *type = wg_model_type_of(setup->checkpoint);
    void *config = type ? wg__calloc(1, type->settings.size) : NULL;
    int status = config ? wg_model_config_from_json(type, json, config) : -1;
    if (status == 0) {
        /* Without dropout, both vectors of a text would be equal: a model without gets some. */
        for (int i = 0; i < type->settings.count; i++) {
            const wg_setting *row = &type->settings.rows[i];
            double *value = (double *)((char *)config + row->offset);
            if (row->kind == WG_SETTING_NUMBER && strstr(row->name, "dropout") && *value == 0)
                *value = dropout;
        }
        status = wg_model_from_config(type, config, setup->seed, model);
    }
    wg__free(config);
    return status;
}

static int adapt(const wg_objective *objective, const wg_training_setup *setup,
                 void (*note)(const char *message, void *context), void *note_context,
                 wg_model *model, wg_tokenizer **tokenizer) {
    (void)note, (void)note_context;
    const wg_contrastive_options *options = setup->options;
    const wg_objective *before = wg_objective_of(setup->checkpoint);
    *model = (wg_model){0};
    *tokenizer = NULL;
    if (!before)
        return -1;
    if (before->finetunes && before != objective)
        return wg_fail(WG_ERROR_STATE, setup->checkpoint,
                       "it is fine-tuned for --task %s; --task %s begins from a pretrained model",
                       before->name, WHERE);
    wg_checkpoint *file = wg_checkpoint_open(setup->checkpoint);
    char *json = file ? wg_checkpoint_get_text(file, "/config") : NULL;
    char *vocabulary = json ? wg_checkpoint_get_text(file, "/tokenizer") : NULL;
    int status = vocabulary ? make_model(json, setup, options->dropout, model) : -1;
    if (status == 0)
        status = wg__model_read_weights(file, model->module);
    if (status == 0 && !(*tokenizer = wg_tokenizer_from_json(vocabulary)))
        status = -1;
    if (status < 0 && model->module)
        wg_model_free(model);
    wg_text_free(vocabulary);
    wg_text_free(json);
    wg_checkpoint_close(file);
    return status;
}

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    const contrastive *mine = context;
    for (int64_t i = 0; i < 2 * count; i++)
        mine->pairs[i] = wg__text_lines_get(&mine->text, examples[i % count].index, i >= count);
    return wg__pair_batch_make(&mine->frame, 2 * count, mine->pairs, batch);
}

static int begin(wg_training *t) {
    contrastive *mine = t->context = wg__calloc(1, sizeof *mine);
    const int64_t batch = t->setup.batch;
    if (!mine || wg__pair_frame_of(t->setup.tokenizer, t->setup.sequence, &mine->frame) < 0)
        return -1;
    mine->options = *(const wg_contrastive_options *)t->setup.options;
    mine->pairs = wg__alloc_array(wg__times(2, batch), sizeof *mine->pairs);
    if (!mine->pairs)
        return -1;
    const char *path = t->setup.held_out_path;
    if (path && wg__text_lines_are_scored(path)) {
        mine->scored = wg__labelled_text_load(path, t->setup.tokenizer, NULL, NULL);
        if (!mine->scored)
            return -1;
        if (!wg__labelled_text_pair(mine->scored, 0).second)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s has one text a line and a number; two texts and a number are wanted",
                           path);
    } else if (path && wg__text_lines_load(path, t->setup.tokenizer, &mine->held_out) < 0) {
        return -1;
    }
    if (!t->setup.training_path)
        return 0;
    if (batch < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a batch of %lld; a text is compared with the others of its batch: give 2 "
                       "or more",
                       (long long)batch);
    if (wg__text_lines_load(t->setup.training_path, t->setup.tokenizer, &mine->text) < 0)
        return -1;
    t->fingerprint = (int64_t)wg__text_lines_fingerprint(&mine->text);
    t->examples = mine->text.count;
    t->batches = wg_batches_new(
        &(wg_batch_source){.context = mine, .build = build},
        &(wg_batches_options){.batch = batch, .examples = t->examples, .seed = t->setup.seed});
    return t->batches ? 0 : -1;
}

static void end(wg_training *t) {
    contrastive *mine = t->context;
    if (!mine)
        return;
    wg__text_lines_free(&mine->text);
    wg__text_lines_free(&mine->held_out);
    if (mine->scored)
        wg__examples_free(&mine->scored->base);
    wg__free(mine->pairs);
    wg__free(mine);
}

/* The vectors of the texts of a batch, of length 1: (2 B, C). */
static wg_tensor *vectors(const wg_training *t, const wg_pair_batch *batch) {
    const contrastive *mine = t->context;
    const wg_model_inputs inputs = wg__pair_inputs(batch);
    wg_tensor *pooled = wg__pool_texts(wg_model_forward(t->setup.model, &inputs),
                                       batch->attention_mask, mine->options.pooling, 0);
    return wg_div(pooled, wg_clamp(wg_norm(pooled, 2, WG_DIMS(1), true), 1e-12, INFINITY));
}

/* Cosines of the first texts of pairs with all second texts, / temperature: (B, B). */
static wg_tensor *similarities(const wg_training *t, const wg_pair_batch *batch) {
    wg_tensor *all = vectors(t, batch);
    const int64_t count = all ? wg_tensor_size(all, 0) / 2 : 0;
    wg_tensor *first = wg_narrow(all, 0, 0, count), *second = wg_narrow(all, 0, count, count);
    return wg_mul_scalar(wg_matmul(first, wg_transpose(second, 0, 1)),
                         1 / ((const contrastive *)t->context)->options.temperature);
}

wg_tensor *wg__contrastive_loss(wg_tensor *similarities, double *right) {
    const int64_t count = wg_tensor_size(similarities, 0);
    wg_tensor *own = wg_arange(WG_I64, 0, (double)count, 1);
    wg_tensor *found = wg_eq(wg_argmax(similarities, 1, false), own);
    *right = wg_item(wg_sum(wg_cast(found, WG_F64), WG_ALL, false));
    return wg_cross_entropy(similarities, own, WG_IGNORE_INDEX, NULL);
}

static wg_tensor *loss_of(wg_training *t, const void *batch, wg_metrics *metrics) {
    double right;
    wg_tensor *loss = wg__contrastive_loss(similarities(t, batch), &right);
    const double count = (double)t->setup.batch;
    return loss && wg_metrics_add(metrics, "accuracy", right / count, count) == 0 ? loss : NULL;
}

/* The loss and the accuracy of a batch of held-out texts from `first` on. */
static int measure_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                         wg_metrics *metrics) {
    (void)context;
    const contrastive *mine = t->context;
    wg_pair_batch batch;
    double right;
    for (int64_t i = 0; i < 2 * count; i++)
        mine->pairs[i] = wg__text_lines_get(&mine->held_out, first + i % count, i >= count);
    if (wg__pair_batch_make(&mine->frame, 2 * count, mine->pairs, &batch) < 0)
        return -1;
    metrics->tokens += batch.tokens;
    wg_tensor *loss = wg__contrastive_loss(similarities(t, &batch), &right);
    const double value = wg_item(loss), weight = (double)count;
    if (wg_error_pending() || wg_metrics_add(metrics, "loss", value, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "accuracy", right / weight, weight);
}

/* The cosines of a batch of held-out pairs from `first` on. */
static int measure_cosines(const wg_training *t, int64_t first, int64_t count, void *context,
                           wg_metrics *metrics) {
    double *cosines = context;
    const contrastive *mine = t->context;
    for (int64_t i = 0; i < count; i++) {
        const wg_token_pair pair = wg__labelled_text_pair(mine->scored, first + i);
        mine->pairs[i] = (wg_token_pair){.first = pair.first, .first_count = pair.first_count};
        mine->pairs[count + i] =
            (wg_token_pair){.first = pair.second, .first_count = pair.second_count};
    }
    wg_pair_batch batch;
    if (wg__pair_batch_make(&mine->frame, 2 * count, mine->pairs, &batch) < 0)
        return -1;
    metrics->tokens += batch.tokens;
    wg_tensor *all = vectors(t, &batch);
    wg_tensor *products = wg_mul(wg_narrow(all, 0, 0, count), wg_narrow(all, 0, count, count));
    return wg_to_array(wg_cast(wg_sum(products, WG_DIMS(1), false), WG_F64), cosines + first);
}

/* The loss is 1 - correlation, so that the checkpoint with the highest correlation is the best. */
static int evaluate_scored(const wg_training *t, int64_t batches, wg_metrics *metrics) {
    const contrastive *mine = t->context;
    const int64_t count = mine->scored->base.count;
    double *cosines = wg__alloc_array(wg__times(2, count), sizeof *cosines), spearman = 0;
    int status =
        wg__evaluate_examples(t, cosines ? 0 : -1, count, measure_cosines, cosines, metrics);
    if (status == 0)
        status = wg__share_results(t, count, t->setup.batch, sizeof *cosines, cosines);
    for (int64_t i = 0; status == 0 && i < count; i++)
        cosines[count + i] = mine->scored->examples[i].value;
    if (status == 0 && (wg__spearman(count, cosines, cosines + count, &spearman) < 0 ||
                        wg_metrics_add(metrics, "loss", 1 - spearman, (double)count) < 0 ||
                        wg_metrics_add(metrics, "spearman", spearman, (double)count) < 0))
        status = -1;
    if (status == 0 && wg__writes_predictions(t, batches))
        status = wg__write_numbers(t->setup.evaluation->predictions, "%.6f\n", count, cosines);
    wg__free(cosines);
    return status;
}

/* All of the held-out text, also during training. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const contrastive *mine = t->context;
    const wg_evaluation_options *how = t->setup.evaluation;
    if (mine->scored)
        return evaluate_scored(t, batches, metrics);
    if (how && how->predictions)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "--predictions are the cosines of pairs with numbers; the text has none");
    return wg__evaluate_examples(t, 0, mine->held_out.count, measure_batch, NULL, metrics);
}

static void describe(const wg_training *t, FILE *stream) {
    const contrastive *mine = t->context;
    fprintf(stream, "text   %lld %s; %lld %s to measure on\n", (long long)mine->text.count,
            mine->text.pairs ? "pairs of texts" : "texts, each its own partner by dropout",
            (long long)(mine->scored ? mine->scored->base.count : mine->held_out.count),
            mine->scored           ? "pairs with numbers"
            : mine->held_out.pairs ? "pairs"
                                   : "texts");
}

static const wg_metric_row metric_rows[] = {
    {.name = "loss", .weight = "examples"},
    {.name = "accuracy", .optional = true},
    {.name = "spearman", .optional = true},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    if (wg_metrics_weight(metrics, "spearman") > 0)
        fprintf(stream, "similarity       correlation %.4f (Spearman) of %.0f pairs\n",
                wg_metrics_get(metrics, "spearman"), wg_metrics_weight(metrics, "spearman"));
    else
        fprintf(stream, "texts            loss %.4f, own partner nearest %.2f %% of %.0f\n",
                wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "accuracy"),
                wg_metrics_weight(metrics, "accuracy"));
}

#define AT(member) offsetof(wg_contrastive_options, member)

static const char *pooling_name(int value) {
    static const char *const names[] = {[WG_POOL_MEAN] = "mean", [WG_POOL_TOKEN] = "cls"};
    return value >= 0 && value <= WG_POOL_TOKEN ? names[value] : NULL;
}

static const wg_setting setting_rows[] = {
    {"temperature", WG_SETTING_NUMBER, AT(temperature), .high = 100, .above = true, .fixed = true,
     .standard = "0.05", .argument = "X", .help = "contrastive: what the cosines are divided by"},
    {"dropout", WG_SETTING_NUMBER, AT(dropout), .high = 1, .below = true, .fixed = true,
     .standard = "0.1", .argument = "X",
     .help = "contrastive: dropout of a model that was pretrained without"},
    {"pooling", WG_SETTING_CHOICE, AT(pooling), .choice = pooling_name, .fixed = true,
     .standard = "\"mean\"", .argument = "NAME",
     .help = "contrastive: the vector of a text, as of `wengert embed': mean or cls"},
};

const wg_objective wg_contrastive = {
    .name = WHERE,
    .title = "vectors of texts, near for similar ones: SimCSE (Gao et al. 2021)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .settings = WG__SETTING_TABLE(wg_contrastive_options, setting_rows),
    .defaults =
        "{\"lr\": 5e-5, \"epochs\": 1, \"batch\": 64, \"seq\": 32, \"schedule\": \"linear\", "
        "\"eval-every\": 250}",
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {.usual_batch = 64,
             .usual_sequence = 64,
             WG__BATCH_OF(wg_pair_batch, tokens),
             .describe = describe},
    .training =
        &(const wg_objective_training){
            .adapt = adapt, .begin = begin, .end = end, .loss = loss_of, .evaluate = evaluate},
    .metrics = metric_rows,
    .headline = "spearman,accuracy",
    .print = print,
};
