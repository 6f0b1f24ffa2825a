/* What causal language models have in common. */
#include "models/language_model.h"

#include "tensor/tensor.h"

wg_tensor *wg_language_model_loss(const wg_language_model *model, wg_tensor *ids,
                                  wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = model->forward(model->model, ids, NULL);
    return wg_scope_end(&scope, model->loss(model->model, hidden, labels, WG_IGNORE_INDEX));
}
