/* BERT with the heads of fine-tuning: see bert_heads.h.
 *
 * Letters: B sequences, T positions, C = hidden_size, K labels. */
#include "models/bert_heads.h"

#include "nn/module.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

static wg_linear *head_new(wg_module *parent, const char *name, int64_t out,
                           const wg_bert_config *config) {
    const wg_linear_options options = {
        .init = {WG_INIT_TRUNCATED_NORMAL, config->initializer_range}};
    return wg_linear_new(parent, name, config->hidden_size, out, &options);
}

/* ---- Sequence classification ---- */

static void classification_destroy(wg_module *module) {
    wg_labels_free(&((wg_bert_for_sequence_classification *)module)->labels);
}

wg_bert_for_sequence_classification *wg_bert_for_sequence_classification_new(
    const wg_bert_config *config, const wg_labels *labels, uint64_t seed) {
    if (labels->count < 2) {
        wg_fail(WG_ERROR_ARGUMENT, "bert", "%lld labels; a classification has two or more",
                (long long)labels->count);
        return NULL;
    }
    wg_bert_for_sequence_classification *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->module.destroy = classification_destroy;
    model->module.generator = (wg_generator){.seed = seed};
    model->dropout = config->hidden_dropout_prob;
    model->bert = wg_bert_new(&model->module, "bert", config, NULL);
    model->classifier = head_new(&model->module, "classifier", labels->count, config);
    wg_labels_copy(&model->labels, labels);
    return wg_module_finish(&model->module);
}

wg_tensor *wg_bert_classify(wg_bert_for_sequence_classification *model,
                            const wg_pair_batch *inputs) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sequence = wg_bert_forward(model->bert, inputs->input_ids, inputs->token_type_ids,
                                          inputs->attention_mask);
    wg_tensor *pooled =
        wg_dropout(&model->module, wg_bert_pool(model->bert, sequence), model->dropout);
    return wg_scope_end(&scope, wg_linear_forward(model->classifier, pooled));
}

/* ---- Question answering ---- */

wg_bert_for_question_answering *wg_bert_for_question_answering_new(const wg_bert_config *config,
                                                                   uint64_t seed) {
    wg_bert_for_question_answering *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    const wg_bert_options options = {.no_pooler = true};
    model->module.generator = (wg_generator){.seed = seed};
    model->bert = wg_bert_new(&model->module, "bert", config, &options);
    model->qa_outputs = head_new(&model->module, "qa_outputs", 2, config);
    return wg_module_finish(&model->module);
}

int wg_bert_answer(wg_bert_for_question_answering *model, const wg_pair_batch *inputs,
                   wg_tensor **start, wg_tensor **end) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sequence = wg_bert_forward(model->bert, inputs->input_ids, inputs->token_type_ids,
                                          inputs->attention_mask);
    wg_tensor *logits = wg_linear_forward(model->qa_outputs, sequence); /* (B, T, 2) */
    *start = wg_select(logits, 2, 0);
    *end = wg_select(logits, 2, 1);
    const bool failed = !*start || !*end || wg_error_pending();
    *start = failed ? NULL : wg_scope_escape(*start);
    *end = failed ? NULL : wg_scope_escape(*end);
    wg_scope_end(&scope, NULL);
    return failed ? -1 : 0;
}

wg_tensor *wg_bert_answer_loss(wg_tensor *start, wg_tensor *end, wg_tensor *starts,
                               wg_tensor *ends) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sum = wg_add(wg_cross_entropy(start, starts, WG_IGNORE_INDEX, NULL),
                            wg_cross_entropy(end, ends, WG_IGNORE_INDEX, NULL));
    return wg_scope_end(&scope, wg_mul_scalar(sum, 0.5));
}
