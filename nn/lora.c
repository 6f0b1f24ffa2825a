/* LoRA: see lora.h. */
#include "nn/lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/internal.h"

#define WHERE "lora"

/* Whether a path is `name`, or ends with it after a dot. */
static bool is_named(const char *path, const char *name) {
    const size_t length = strlen(path), end = strlen(name);
    return end <= length && strcmp(path + length - end, name) == 0 &&
           (end == length || path[length - end - 1] == '.');
}

/* Whether a module is trained as a whole, itself or by a module above it. */
static bool is_whole(const wg_module *module, const wg_lora_options *options) {
    char path[WG__MODULE_PATH];
    for (; module->parent; module = module->parent) {
        wg__module_path(module, path, sizeof path);
        for (int i = 0; i < options->whole_count; i++)
            if (is_named(path, options->whole[i]))
                return true;
    }
    return false;
}

static bool is_target(const wg_linear *linear, const char *path, const char *target,
                      const wg_lora_options *options) {
    if (strcmp(target, WG_LORA_ALL_LINEAR) != 0)
        return is_named(path, target);
    for (int i = 0; i < options->spared_count; i++)
        if (strncmp(path, options->spared[i], strlen(options->spared[i])) == 0)
            return false;
    /* A weight that is shared with another module is no target: a head tied to the word table. */
    for (const wg_slot *slot = linear->module.first_slot; slot; slot = slot->next)
        if (slot->tensor == linear->weight && slot->tied)
            return false;
    return !is_whole(&linear->module, options);
}

/* Adapters are added while the tree is walked, and must not be adapted themselves. */
static bool is_adapter(const wg_module *module) {
    return module->parent &&
           (strcmp(module->name, "lora_A") == 0 || strcmp(module->name, "lora_B") == 0);
}

/* Lists the last parts of the paths of linear layers: "query, key, value". */
static const char *list_linears(wg_module *root, char *text, size_t size) {
    text[0] = '\0';
    for (wg_module *m = root; m; m = wg__module_next(root, m)) {
        if (!wg__module_as_linear(m) || m == root || is_adapter(m))
            continue;
        char path[WG__MODULE_PATH];
        wg__module_path(m, path, sizeof path);
        const char *dot = strrchr(path, '.'), *part = dot ? dot + 1 : path;
        char quoted[80];
        snprintf(quoted, sizeof quoted, ", %.70s,", part);
        char padded[512];
        snprintf(padded, sizeof padded, ", %.500s,", text);
        if (!strstr(padded, quoted))
            snprintf(text + strlen(text), size - strlen(text), "%s%.70s", *text ? ", " : "", part);
    }
    return text;
}

/* y + s B A dropout(x), with s on the narrow side. */
static wg_tensor *forward(wg_linear *linear, const wg__linear_stand_in *own, wg_tensor *x) {
    const wg__lora_adapter *adapter = (const wg__lora_adapter *)own;
    const wg__linear_stand_in *below = own->below;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *kept = wg_dropout(&linear->module, x, adapter->dropout);
    wg_tensor *low = wg_mul_scalar(wg_linear_forward(adapter->a, kept), adapter->scale);
    wg_tensor *change = wg_linear_forward(adapter->b, low);
    wg_tensor *y = below ? below->forward(linear, below, x)
                         : wg_linear_op(x, wg__linear_weight(linear), linear->bias);
    return wg_scope_end(&scope, wg_add(y, change));
}

const wg__lora_adapter *wg__lora_of(const wg_linear *linear) {
    const wg__linear_stand_in *own = linear ? linear->stand_in : NULL;
    return own && own->forward == forward ? (const wg__lora_adapter *)own : NULL;
}

static int adapt(wg_linear *linear, const wg_lora_options *options) {
    const int64_t first = wg_tensor_size(linear->weight, 0),
                  second = wg_tensor_size(linear->weight, 1),
                  in = linear->transposed ? first : second,
                  out = linear->transposed ? second : first;
    if (wg__linear_quantization(linear) >= 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "\"%s\" is quantized; adapt the model before",
                       linear->module.name);
    wg_linear *a = wg_linear_new(&linear->module, "lora_A", in, options->rank,
                                 &(wg_linear_options){.no_bias = true});
    wg_linear *b =
        wg_linear_new(&linear->module, "lora_B", options->rank, out,
                      &(wg_linear_options){.no_bias = true, .init = {.kind = WG_INIT_ZEROS}});
    wg__lora_adapter *adapter = a && b ? wg__calloc(1, sizeof *adapter) : NULL;
    if (!adapter)
        return -1;
    *adapter = (wg__lora_adapter){
        .base.forward = forward,
        .a = a,
        .b = b,
        .scale = options->alpha == 0 ? 1 : options->alpha / (double)options->rank,
        .dropout = options->dropout};
    linear->stand_in = &adapter->base;
    return 0;
}

static int adapt_targets(wg_module *root, const wg_lora_options *options) {
    char path[WG__MODULE_PATH], names[400];
    for (int i = 0; i < options->target_count; i++) {
        int64_t count = 0; /* layers of this target, adapted now or before */
        for (wg_module *m = root; m; m = wg__module_next(root, m)) {
            wg_linear *linear = wg__module_as_linear(m);
            if (!linear || m == root || is_adapter(m))
                continue;
            wg__module_path(m, path, sizeof path);
            const bool found = is_target(linear, path, options->targets[i], options);
            if (found && !wg__lora_of(linear) && adapt(linear, options) < 0)
                return -1;
            count += found;
        }
        if (count == 0)
            return wg_fail(WG_ERROR_NOT_FOUND, WHERE,
                           "no linear layer is \"%.64s\"; their names end in %s",
                           options->targets[i], list_linears(root, names, sizeof names));
    }
    return 0;
}

void wg__lora_detach(wg_module *root) {
    for (wg_module *m = root; m; m = wg__module_next(root, m)) {
        wg_linear *linear = wg__module_as_linear(m);
        if (!linear || is_adapter(m))
            continue;
        for (wg_module *child = m->first_child, *next; child; child = next) {
            next = child->next_sibling;
            if (is_adapter(child))
                wg__module_drop(child);
        }
        if (wg__lora_of(linear)) {
            wg__linear_stand_in *adapter = linear->stand_in;
            linear->stand_in = adapter->below;
            wg__free(adapter);
        }
    }
}

int64_t wg_lora_attach(wg_module *module, const wg_lora_options *options) {
    if (!module || !options || wg_error_pending() ||
        wg__check_size(WHERE, "rank", options->rank) < 0 ||
        wg__check_probability(WHERE, "dropout", options->dropout) < 0)
        return -1;
    if (!(options->alpha >= 0) || !isfinite(options->alpha))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "alpha is %g; it must be at least 0",
                       options->alpha);
    if (options->target_count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "there are no targets; name linear layers, such as \"query\", or \"%s\"",
                       WG_LORA_ALL_LINEAR);
    if (wg__lora_count(module) > 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the model has adapters already; wg_lora_merge adds them to its weights");
    for (int i = 0; i < options->whole_count; i++) {
        char path[WG__MODULE_PATH];
        bool found = false;
        for (wg_module *m = wg__module_next(module, module); m && !found;
             m = wg__module_next(module, m)) {
            wg__module_path(m, path, sizeof path);
            found = is_named(path, options->whole[i]);
        }
        if (!found)
            return wg_fail(WG_ERROR_NOT_FOUND, WHERE, "there is no module \"%.64s\" to train",
                           options->whole[i]);
    }
    int status = adapt_targets(module, options);
    /* Adapters, and modules that are trained whole, are not frozen. Freezing needs no memory. */
    for (wg_module *m = module; m && status == 0; m = wg__module_next(module, m))
        for (wg_slot *slot = m->first_slot; slot && status == 0; slot = slot->next)
            if (slot->kind == WG_SLOT_PARAMETER && !is_adapter(m) && !is_whole(m, options))
                status = wg_set_requires_grad(slot->tensor, false);
    if (status == 0)
        return wg__lora_count(module);
    wg__lora_detach(module);
    return -1;
}

int64_t wg__lora_count(wg_module *module) {
    int64_t count = 0;
    for (wg_module *m = module; m; m = wg__module_next(module, m))
        count += wg__lora_of(wg__module_as_linear(m)) != NULL;
    return count;
}

wg_tensor *wg__lora_merged(wg_tensor *weight, wg_tensor *a, wg_tensor *b, double scale,
                           bool transposed) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *change = wg_mul_scalar(wg_matmul(b, a), scale);
    return wg_scope_end(&scope, wg_add(weight, transposed ? wg_transpose(change, 0, 1) : change));
}

static int merge(wg_linear *linear, const wg__lora_adapter *adapter) {
    if (wg__linear_quantization(linear) >= 0)
        return wg_fail(WG_ERROR_STATE, WHERE,
                       "\"%s\" is quantized; merge the adapters before quantizing",
                       linear->module.name);
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool recording = wg_set_grad_enabled(false);
    const int status = wg_copy_(linear->weight, wg__lora_merged(linear->weight, adapter->a->weight,
                                                                adapter->b->weight, adapter->scale,
                                                                linear->transposed));
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return status;
}

int64_t wg_lora_merge(wg_module *module) {
    if (!module || wg_error_pending())
        return -1;
    const int64_t count = wg__lora_count(module);
    for (wg_module *m = module; m; m = wg__module_next(module, m)) {
        wg_linear *linear = wg__module_as_linear(m);
        const wg__lora_adapter *adapter = wg__lora_of(linear);
        if (adapter && merge(linear, adapter) < 0)
            return -1;
    }
    wg__lora_detach(module);
    return count == 0 || wg_module_requires_grad(module, true) == 0 ? count : -1;
}
