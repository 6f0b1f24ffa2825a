/* A table of learned vectors. */
#include "nn/embedding.h"

#include "nn/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* The padding token means nothing: its vector is 0. */
static int clear_row(wg_tensor *weight, int64_t row) {
    if (!weight)
        return -1;
    if (row < 0 || row >= wg_tensor_size(weight, 0))
        return wg_fail(WG_ERROR_INDEX, "embedding", "padding index %lld is outside 0..%lld",
                       (long long)row, (long long)wg_tensor_size(weight, 0) - 1);
    if (wg__meta_init())
        return 0;
    wg_scope scope;
    wg_scope_begin(&scope);
    bool recording = wg_set_grad_enabled(false);
    int status = wg_fill_(wg_select(weight, 0, row), 0);
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return status;
}

/* Whether a table is a head is known when it is first used as one. */
static int embedding_quantize(wg_module *module, wg_quantization quantization) {
    wg_embedding *embedding = (wg_embedding *)module;
    embedding->quantizes = true;
    embedding->quantization = wg__quantization_for(embedding->weight, quantization);
    return 0;
}

static void embedding_destroy(wg_module *module) {
    wg_release(((wg_embedding *)module)->head);
}

wg_embedding *wg_embedding_new(wg_module *parent, const char *name, int64_t count, int64_t width,
                               const wg_embedding_options *options) {
    static const wg_embedding_options defaults;
    if (!options)
        options = &defaults;
    if (wg__check_size("embedding", "count", count) < 0 ||
        wg__check_size("embedding", "width", width) < 0)
        return NULL;
    wg_embedding *embedding = wg_module_new(parent, name, sizeof *embedding);
    if (!embedding)
        return NULL;
    embedding->module.quantize = embedding_quantize;
    embedding->module.destroy = embedding_destroy;
    const int64_t shape[] = {count, width};
    const wg_initializer normal = {WG_INIT_NORMAL, 1};
    embedding->weight =
        wg__parameter(&embedding->module, "weight", 2, shape, &options->init, &normal);
    embedding->padding_index = options->has_padding ? options->padding_index : -1;
    if (options->has_padding)
        clear_row(embedding->weight, options->padding_index);
    return wg_module_finish(&embedding->module);
}

wg_tensor *wg_embedding_forward(wg_embedding *embedding, wg_tensor *index) {
    return wg_embedding_op(embedding->weight, index, embedding->padding_index);
}

wg_tensor *wg_embedding_logits(wg_embedding *embedding, wg_tensor *x) {
    if (!embedding->quantizes)
        return wg_linear_op(x, embedding->weight, NULL);
    if (!embedding->head)
        embedding->head = wg_keep(wg_quantize(embedding->weight, embedding->quantization));
    return wg_quantized_linear(x, embedding->head, embedding->quantization, NULL);
}

wg_tensor *wg_embedding_loss(wg_embedding *embedding, wg_tensor *x, wg_tensor *target,
                             int64_t ignore_index, const wg_cross_entropy_options *options) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *rows = wg_flatten(x, 0, -2), *loss;
    target = wg_flatten(target, 0, -1);
    if (embedding->quantizes)
        loss =
            wg_cross_entropy(wg_embedding_logits(embedding, rows), target, ignore_index, options);
    else
        loss =
            wg_linear_cross_entropy(rows, embedding->weight, target, NULL, ignore_index, options);
    return wg_scope_end(&scope, loss);
}
