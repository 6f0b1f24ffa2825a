/* Tables of learned vectors, and the rows of hashed bigrams. */
#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

static void destroy(wg_module *module) {
    wg__quantized_head *head = ((wg_embedding *)module)->quantized;
    if (head)
        wg_release(head->weight);
    wg__free(head);
}

wg_embedding *wg__module_as_embedding(wg_module *module) {
    return module->destroy == destroy ? (wg_embedding *)module : NULL;
}

wg_embedding *wg_embedding_new(wg_module *parent, const char *name, int64_t count, int64_t width,
                               const wg_embedding_options *options) {
    options = options ? options : &(const wg_embedding_options){0};
    if (wg__check_size("embedding", "count", count) < 0 ||
        wg__check_size("embedding", "width", width) < 0)
        return NULL;
    wg_embedding *embedding = wg_module_new(parent, name, sizeof *embedding);
    if (!embedding)
        return NULL;
    embedding->module.destroy = destroy;
    const int64_t shape[] = {count, width};
    const wg_initializer normal = {WG_INIT_NORMAL, 1};
    embedding->weight =
        wg__parameter(&embedding->module, "weight", 2, shape, &options->init, &normal);
    embedding->padding_index = options->has_padding ? options->padding_index : -1;
    const int64_t padding = options->padding_index;
    if (embedding->weight && options->has_padding && (padding < 0 || padding >= count)) {
        wg_fail(WG_ERROR_INDEX, "embedding", "padding index %lld is outside 0..%lld",
                (long long)padding, (long long)count - 1);
    } else if (embedding->weight && options->has_padding && !wg__meta_init) {
        wg_scope scope; /* the vector of the padding token is 0 */
        wg_scope_begin(&scope);
        const bool recording = wg_set_grad_enabled(false);
        wg_fill_(wg_select(embedding->weight, 0, padding), 0);
        wg_set_grad_enabled(recording);
        wg_scope_end(&scope, NULL);
    }
    return wg_module_finish(&embedding->module);
}

wg_tensor *wg_embedding_forward(wg_embedding *embedding, wg_tensor *index) {
    wg_error_place place;
    wg_module_enter(&embedding->module, &place);
    wg_tensor *rows = wg_embedding_op(embedding->weight, index, embedding->padding_index);
    return wg_module_leave(&place, rows);
}

wg_tensor *wg_embedding_logits(wg_embedding *embedding, wg_tensor *x) {
    wg_error_place place;
    wg_module_enter(&embedding->module, &place);
    wg_tensor *logits = embedding->quantized ? wg__quantized_logits(embedding, x)
                                             : wg_linear_op(x, embedding->weight, NULL);
    return wg_module_leave(&place, logits);
}

wg_tensor *wg__embedding_loss(wg_embedding *embedding, wg_tensor *x, wg_tensor *target,
                              int64_t ignore_index, const wg_cross_entropy_options *options) {
    wg_error_place place;
    wg_module_enter(&embedding->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *rows = wg_flatten(x, 0, -2), *loss;
    target = wg_flatten(target, 0, -1);
    if (embedding->quantized)
        loss =
            wg_cross_entropy(wg__quantized_logits(embedding, rows), target, ignore_index, options);
    else
        loss =
            wg_linear_cross_entropy(rows, embedding->weight, target, NULL, ignore_index, options);
    return wg_module_leave(&place, wg_scope_end(&scope, loss));
}

#define NO_TOKEN UINT32_MAX

static uint64_t splitmix64(uint64_t state) {
    uint64_t z = state + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

wg_tensor *wg__bigram_rows(wg_tensor *ids, wg_tensor *previous, wg_tensor *keep, int64_t rows) {
    char text[64];
    if (!ids || wg_error_pending())
        return NULL;
    if (wg_tensor_ndim(ids) != 2)
        return wg__fail_null(WG_ERROR_SHAPE, "bigram_rows", "ids %s; wanted (B, T)",
                             wg_spec_text(text, sizeof text, &ids->spec));
    const int64_t count = wg_tensor_size(ids, 0), length = wg_tensor_size(ids, 1);
    if (previous && (wg_tensor_ndim(previous) != 1 || wg_tensor_size(previous, 0) != count))
        return wg__fail_null(WG_ERROR_SHAPE, "bigram_rows",
                             "previous %s; wanted (%lld), one a sequence",
                             wg_spec_text(text, sizeof text, &previous->spec), (long long)count);
    if (keep && (wg_tensor_ndim(keep) != 2 || wg_tensor_size(keep, 0) != count ||
                 wg_tensor_size(keep, 1) < length))
        return wg__fail_null(
            WG_ERROR_SHAPE, "bigram_rows", "keep %s; wanted (%lld, %lld) or with more columns",
            wg_spec_text(text, sizeof text, &keep->spec), (long long)count, (long long)length);
    if (keep && wg_tensor_dtype(keep) != WG_BOOL)
        return wg__fail_null(WG_ERROR_DTYPE, "bigram_rows", "keep is %s; wanted bool",
                             wg_dtype_name(wg_tensor_dtype(keep)));
    if (wg__check_size("bigram_rows", "rows", rows) < 0)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *tokens = wg_contiguous(wg_cast(ids, WG_I64));
    wg_tensor *before = previous ? wg_contiguous(wg_cast(previous, WG_I64)) : NULL;
    wg_tensor *kept = keep ? wg_contiguous(keep) : NULL;
    wg_tensor *hashed = wg_empty(WG_I64, WG_DIMS(count, length));
    if (wg_error_pending())
        return wg_scope_end(&scope, NULL);
    const int64_t columns = kept ? wg_tensor_size(kept, 1) : 0, *id = wg_tensor_data(tokens);
    const int64_t *first = before ? wg_tensor_data(before) : NULL;
    const bool *real = kept ? (const bool *)wg_tensor_data(kept) + columns - length : NULL;
    int64_t *row = wg_tensor_data(hashed);
    for (int64_t b = 0; b < count; b++)
        for (int64_t t = 0; t < length; t++) {
            int64_t pair = t > 0 ? id[b * length + t - 1] : first ? first[b] : -1;
            if (real && t + columns > length && !real[b * columns + t - 1])
                pair = -1;
            const uint64_t high = pair < 0 ? NO_TOKEN : (uint64_t)pair;
            const uint64_t key = (high << 32) + (uint64_t)id[b * length + t];
            row[b * length + t] = (int64_t)(splitmix64(key) % (uint64_t)rows);
        }
    return wg_scope_end(&scope, hashed);
}
