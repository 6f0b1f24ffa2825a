/* Classification: a label of a text, or of two, by an encoder with a head on its first token
 * (Devlin et al. 2019, section 4.1).
 *
 *     labelled text --> shuffled examples --> encoder, pooler, dropout, classifier -->
 *     cross-entropy
 *
 * The labels are those of the training file, in the order of wg__labels_sort. Metric of a step,
 * beside its loss: accuracy. Of an evaluation: `loss`, `accuracy`, `majority` (the accuracy of
 * always predicting the commonest label) and, of two labels, `f1` (of the second) and `mcc`
 * (Matthews' correlation, 0 where it is not defined). */
#include <string.h>

#include "models/heads.h"
#include "objectives/labelling.h"
#include "tensor/internal.h"

#define WHERE "classify"

typedef struct classification {
    wg__labelling labelling;
    wg_pair_frame frame;
} classification;

/* ---- The model ---- */

static wg__headed_encoder *classifier_of(const wg_model *model) {
    return (wg__headed_encoder *)model->module;
}

static int adapt(const wg_training_setup *setup, void (*note)(const char *message, void *context),
                 void *note_context, wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    const wg__labelled_text_options reading = wg__labelling_reading(setup);
    return wg__labelling_adapt(&origin, WG_HEAD_LABELS, setup->training_path, &reading, model,
                               tokenizer);
}

static int load(const char *path, wg_model *model, wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, WG_HEAD_LABELS, model, tokenizer);
}

static char *config(const wg_training *t) {
    return wg__headed_encoder_config(classifier_of(t->setup.model));
}

/* ---- Training ---- */

static wg__labelled_text *read_text(const wg_training *t, const char *path) {
    const wg__labelled_text_options reading = wg__labelling_reading(&t->setup);
    return wg__labelled_text_load(path, t->setup.tokenizer, &classifier_of(t->setup.model)->labels,
                                  &reading);
}

static int score(const wg_training *t, const wg__labelled_text *text, int64_t count,
                 const int64_t *examples, wg__scores *scores) {
    const classification *mine = t->context;
    wg__labelled_batch batch;
    if (wg__labelled_batch_read(text, &mine->frame, count, examples, &batch) < 0)
        return -1;
    const wg_model_inputs inputs = wg__pair_inputs(&batch.inputs);
    *scores =
        (wg__scores){.logits = wg__headed_encoder_classify(classifier_of(t->setup.model), &inputs),
                     .labels = batch.labels,
                     .tokens = batch.inputs.tokens};
    return scores->logits ? 0 : -1;
}

static int begin(wg_training *t) {
    classification *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine || wg_pair_frame_of(t->setup.tokenizer, t->setup.sequence, &mine->frame) < 0)
        return -1;
    mine->labelling = (wg__labelling){
        .labels = &classifier_of(t->setup.model)->labels, .read = read_text, .score = score};
    return wg__labelling_begin(t);
}

static void end(wg_training *t) {
    wg__labelling_end(t);
    wg__free(t->context);
}

const wg_objective wg_classification = {
    .name = "classify",
    .title = "labels texts, or pairs of them, by a head on the first token (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"problem_type=single_label_classification"},
    .settings = WG__COLUMN_SETTINGS,
    .training = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500}",
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .adapt = adapt,
    .load = load,
    .config = config,
    .begin = begin,
    .end = end,
    .loss = wg__labelling_loss,
    .evaluate = wg__labelling_evaluate,
    .describe = wg__labelling_describe,
    .metrics = wg__labelling_metrics,
    .headline = "accuracy",
    .print = wg__labelling_print,
};
