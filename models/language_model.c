/* What causal language models have in common. */
#include "models/language_model.h"

#include "tensor/easy.h"
#include "tensor/ops.h"

/* The label that counts for nothing, as in the published models. */
enum { IGNORED = -100 };

wg_tensor *wg_language_model_loss(const wg_language_model *model, wg_tensor *ids,
                                  wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *logits = model->logits(model->model, model->forward(model->model, ids, NULL));
    wg_tensor *rows = wg_reshape(logits, WG_DIMS(-1, model->vocab_size));
    wg_tensor *targets = wg_reshape(labels, WG_DIMS(-1));
    return wg_scope_end(&scope, wg_cross_entropy(rows, targets, IGNORED, NULL));
}
