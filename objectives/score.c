/* Scoring texts: how likely a model finds them. An objective scores a batch of one length; see
 * text_batches.c. */
#include "objectives/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "score"

int64_t wg__score_rows(const wg_score_options *options, int64_t length) {
    return wg__texts_in_batch(options->batch_tokens, length);
}

int wg__score_losses(const wg_model *model, const wg_score_options *options,
                     const wg_model_inputs *inputs, wg_tensor *positions, wg_tensor *labels,
                     double *losses) {
    static const wg_cross_entropy_options each = {.reduction = WG_REDUCTION_NONE};
    if (options->stop && *options->stop)
        return -1;
    wg_model_inputs at_positions = *inputs;
    at_positions.output_positions = positions;
    wg_tensor *hidden = wg_model_forward(model, &at_positions);
    wg_tensor *loss = wg_model_loss(model, hidden, NULL, labels, &each);
    return loss ? wg_to_array(wg_cast(loss, WG_F64), losses) : -1;
}

typedef struct scoring {
    const wg_objective *objective;
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    wg_score_options options;
} scoring;

static int run(void *context, const wg_text_batch *batch, void *scores) {
    const scoring *s = context;
    return s->objective->use.score(s->model, s->tokenizer, &s->options, batch, scores);
}

int wg_score_texts(const wg_objective *objective, const wg_model *model,
                   const wg_tokenizer *tokenizer, const wg_score_options *options, int64_t count,
                   const wg_text_source *texts, wg_score *scores) {
    scoring s = {.objective = objective, .model = model, .tokenizer = tokenizer};
    if (options)
        s.options = *options;
    if (!s.objective->use.score)
        return wg_fail(WG_ERROR_STATE, WHERE, "%s does not score texts", s.objective->name);
    if (s.options.within_words && !s.objective->use.scores_within_words)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s masks no tokens: scoring within words is for models that do",
                       s.objective->name);
    if (s.options.causal && !s.objective->use.scores_causally)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s does not predict both masked and next tokens: scoring causally is for "
                       "objectives that do",
                       s.objective->name);
    if (s.options.batch_tokens < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld tokens; wanted 0 or more",
                       (long long)s.options.batch_tokens);
    const wg__text_job job = {.where = WHERE,
                              .model = model,
                              .tokenizer = tokenizer,
                              .frame = objective->use.score_frame,
                              .batch_tokens = s.options.batch_tokens,
                              .run = run,
                              .context = &s,
                              .result_size = sizeof(wg_score),
                              .listener = s.options.listener,
                              .listener_context = s.options.context,
                              .stop = s.options.stop,
                              .group = s.options.group};
    return wg__run_texts(&job, count, texts, scores);
}
