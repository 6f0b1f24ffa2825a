/* Multi-head attention. */
#include "nn/attention.h"

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

static const char *or_else(const char *name, const char *otherwise) {
    return name ? name : otherwise;
}

static int check(int64_t width, int64_t heads, const wg_multi_head_attention_options *options) {
    if (wg__check_size("attention", "width", width) < 0 ||
        wg__check_size("attention", "heads", heads) < 0 ||
        wg__check_probability("attention", "dropout", options->dropout) < 0)
        return -1;
    if (width % heads != 0)
        return wg_fail(WG_ERROR_ARGUMENT, "attention",
                       "%lld heads do not divide width %lld; each head takes an equal part of it",
                       (long long)heads, (long long)width);
    return 0;
}

wg_multi_head_attention *wg_multi_head_attention_new(
    wg_module *parent, const char *name, int64_t width, int64_t heads,
    const wg_multi_head_attention_options *options) {
    static const wg_multi_head_attention_options defaults;
    if (!options)
        options = &defaults;
    if (check(width, heads, options) < 0)
        return NULL;
    wg_multi_head_attention *attention = wg_module_new(parent, name, sizeof *attention);
    if (!attention)
        return NULL;
    attention->heads = heads;
    attention->dropout = options->dropout;
    attention->causal = options->causal;

    wg_linear_options linear = {.no_bias = options->no_bias, .init = options->init};
    if (linear.init.kind == WG_INIT_DEFAULT)
        linear.init.kind = WG_INIT_XAVIER_UNIFORM;
    int64_t memory = options->memory_width ? options->memory_width : width;
    wg_module *module = &attention->module;
    attention->query =
        wg_linear_new(module, or_else(options->query_name, "query"), width, width, &linear);
    attention->key =
        wg_linear_new(module, or_else(options->key_name, "key"), memory, width, &linear);
    attention->value =
        wg_linear_new(module, or_else(options->value_name, "value"), memory, width, &linear);
    attention->output =
        wg_linear_new(module, or_else(options->output_name, "output"), width, width, &linear);
    return wg_module_finish(module);
}

/* (B, T, H D)   ->   (B, H, T, D), a view. */
static wg_tensor *split_heads(wg_tensor *x, int64_t heads) {
    if (!x)
        return NULL;
    int64_t b = wg_tensor_size(x, 0), t = wg_tensor_size(x, 1), c = wg_tensor_size(x, 2);
    return wg_transpose(wg_reshape(x, WG_DIMS(b, t, heads, c / heads)), 1, 2);
}

/* (B, H, T, D)   ->   (B, T, H D), a view of what wg_attention gives. */
static wg_tensor *merge_heads(wg_tensor *x) {
    if (!x)
        return NULL;
    int64_t b = wg_tensor_size(x, 0), h = wg_tensor_size(x, 1), t = wg_tensor_size(x, 2);
    return wg_reshape(wg_transpose(x, 1, 2), WG_DIMS(b, t, h * wg_tensor_size(x, 3)));
}

static int check_rank(const char *what, const wg_tensor *x) {
    if (wg_tensor_ndim(x) == 3)
        return 0;
    return wg_fail(WG_ERROR_SHAPE, "attention", "%s has rank %d; wanted (B, T, C)", what,
                   wg_tensor_ndim(x));
}

wg_tensor *wg_multi_head_attention_forward(wg_multi_head_attention *attention, wg_tensor *x,
                                           wg_tensor *memory, wg_tensor *mask) {
    if (!x || check_rank("x", x) < 0 || (memory && check_rank("memory", memory) < 0))
        return NULL;
    if (!memory)
        memory = x;
    wg_attention_options options = {.causal = attention->causal};
    if (attention->dropout > 0 && wg_module_is_training(&attention->module)) {
        wg_generator *generator = wg_module_generator(&attention->module);
        options.dropout = attention->dropout;
        options.seed = generator->seed;
        options.offset = generator->offset++;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *q = split_heads(wg_linear_forward(attention->query, x), attention->heads);
    wg_tensor *k = split_heads(wg_linear_forward(attention->key, memory), attention->heads);
    wg_tensor *v = split_heads(wg_linear_forward(attention->value, memory), attention->heads);
    wg_tensor *heads = merge_heads(wg_attention(q, k, v, mask, &options));
    return wg_scope_end(&scope, wg_linear_forward(attention->output, heads));
}

wg_tensor *wg_padding_mask(wg_tensor *keep) {
    if (!keep)
        return NULL;
    if (wg_tensor_ndim(keep) != 2 || wg_tensor_dtype(keep) != WG_BOOL) {
        wg_fail(wg_tensor_ndim(keep) != 2 ? WG_ERROR_SHAPE : WG_ERROR_DTYPE, "padding_mask",
                "rank %d %s; wanted (B, T) bool", wg_tensor_ndim(keep),
                wg_dtype_name(wg_tensor_dtype(keep)));
        return NULL;
    }
    return wg_reshape(keep, WG_DIMS(wg_tensor_size(keep, 0), 1, 1, wg_tensor_size(keep, 1)));
}
