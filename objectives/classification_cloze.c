/* Labels by GLM with a cloze. */
#include <string.h>

#include "tensor/internal.h"
#include "objectives/classification_parts.h"
#include "objectives/glm_task.h"
#include "objectives/task_checkpoint.h"

#define WHERE "cloze"

typedef struct cloze_labeller {
    wg__labeller base;
    wg_glm *model;
    const wg_cloze *cloze;
    const wg_tokenizer *tokenizer;
    int64_t sequence;
} cloze_labeller;

static int score(const wg__labeller *labeller, const wg_labelled_text *text, int64_t count,
                 const int64_t *examples, wg__scores *scores) {
    const cloze_labeller *c = (const cloze_labeller *)labeller;
    wg_cloze_batch batch;
    if (wg_cloze_batch_read(c->cloze, text, c->sequence, count, examples, &batch) < 0)
        return -1;
    *scores = (wg__scores){.logits = wg_glm_cloze_scores(c->model, &batch),
                           .labels = batch.labels,
                           .tokens = batch.blanks.tokens};
    return scores->logits ? 0 : -1;
}

/* ---- Checkpoints ---- */

static int save(const wg__labeller *labeller, wg_checkpoint *file, const wg_batches *batches,
                int64_t fingerprint) {
    const cloze_labeller *c = (const cloze_labeller *)labeller;
    return wg__task_save(file, wg_glm_cloze_config(c->model, c->cloze), c->tokenizer, batches,
                         fingerprint);
}

static int check(const wg__labeller *labeller, wg_checkpoint *file) {
    const cloze_labeller *c = (const cloze_labeller *)labeller;
    char *mine = wg_glm_cloze_config(c->model, c->cloze);
    char *saved = wg_checkpoint_get_text(file, "/config");
    int status = mine && saved ? 0 : -1;
    if (status == 0 && strcmp(mine, saved) != 0)
        status = wg_fail(
            WG_ERROR_STATE, WHERE,
            "the model, the pattern or the verbalizers are not those that the run was begun "
            "with");
    wg_text_free(mine);
    wg_text_free(saved);
    return status;
}

/* ---- Making one ---- */

static int check_model(const wg_glm_config *config, const wg_cloze *cloze,
                       const wg_tokenizer *tokenizer, int64_t sequence) {
    wg_glm_tokens tokens;
    if (wg_glm_tokens_of(tokenizer, &tokens) < 0 ||
        wg__glm_task_check(WHERE, config, &tokens, sequence) < 0)
        return -1;
    if (wg_cloze_longest(cloze) > config->max_sequence_length)
        return wg_fail(
            WG_ERROR_ARGUMENT, WHERE,
            "a verbalizer of %lld tokens, its start among them, is too long; the model has "
            "%lld positions",
            (long long)wg_cloze_longest(cloze), (long long)config->max_sequence_length);
    return wg_cloze_check_sequence(cloze, sequence);
}

wg_classification *wg_cloze_classification_new(wg_glm *model, const wg_cloze *cloze,
                                               const wg_tokenizer *tokenizer,
                                               const wg_labelled_text *training,
                                               const wg_labelled_text *held_out,
                                               const wg_classification_options *options) {
    wg_classification_options completed;
    if (wg__classification_complete(options, &completed) < 0 ||
        check_model(&model->config, cloze, tokenizer, completed.sequence) < 0)
        return NULL;
    cloze_labeller *c = wg__calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (cloze_labeller){.base = {.module = &model->module,
                                   .labels = wg_cloze_labels(cloze),
                                   .score = score,
                                   .save = save,
                                   .check = check},
                          .model = model,
                          .cloze = cloze,
                          .tokenizer = tokenizer,
                          .sequence = completed.sequence};
    return wg__classification_new(&c->base, training, held_out, &completed);
}
