/* Labels by BERT with a head. */
#include "tensor/internal.h"
#include "objectives/bert_task.h"
#include "objectives/classification_parts.h"
#include "objectives/task_checkpoint.h"

#define WHERE "classification"

typedef struct bert_labeller {
    wg__labeller base;
    wg_bert_for_sequence_classification *model;
    const wg_tokenizer *tokenizer;
    wg_pair_frame frame;
} bert_labeller;

static int score(const wg__labeller *labeller, const wg_labelled_text *text, int64_t count,
                 const int64_t *examples, wg__scores *scores) {
    const bert_labeller *b = (const bert_labeller *)labeller;
    wg_labelled_batch batch;
    if (wg_labelled_batch_read(text, &b->frame, count, examples, &batch) < 0)
        return -1;
    *scores = (wg__scores){.logits = wg_bert_classify(b->model, &batch.inputs),
                           .labels = batch.labels,
                           .tokens = batch.inputs.tokens};
    return scores->logits ? 0 : -1;
}

static int save(const wg__labeller *labeller, wg_checkpoint *file, const wg_batches *batches,
                int64_t fingerprint) {
    const bert_labeller *b = (const bert_labeller *)labeller;
    return wg__task_save(file, wg_bert_for_sequence_classification_config(b->model), b->tokenizer,
                         batches, fingerprint);
}

wg_classification *wg_classification_new(wg_bert_for_sequence_classification *model,
                                         const wg_tokenizer *tokenizer,
                                         const wg_labelled_text *training,
                                         const wg_labelled_text *held_out,
                                         const wg_classification_options *options) {
    wg_classification_options completed;
    wg_pair_frame frame;
    if (wg__classification_complete(options, &completed) < 0 ||
        wg__bert_task_frame(WHERE, &model->bert->config, tokenizer, completed.sequence, &frame) < 0)
        return NULL;
    bert_labeller *b = wg__calloc(1, sizeof *b);
    if (!b)
        return NULL;
    *b = (bert_labeller){
        .base = {.module = &model->module, .labels = &model->labels, .score = score, .save = save},
        .model = model,
        .tokenizer = tokenizer,
        .frame = frame};
    return wg__classification_new(&b->base, training, held_out, &completed);
}
