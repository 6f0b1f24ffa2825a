/* Quantized weights, for inference only: see wg_module_quantize. */
#include "nn/internal.h"
#include "tensor/internal.h"
#include "tensor/quantize_rows.h"

bool wg__is_tied(wg_module *top, const wg_tensor *tensor) {
    for (wg_module *m = top; m; m = wg__module_next(top, m))
        for (wg_slot *slot = m->first_slot; slot; slot = slot->next)
            if (slot->tensor == tensor && slot->tied)
                return true;
    return false;
}

/* The quantization that products read a matrix (O, I) in: rows side by side, or bf16 if a row is
 * not a whole number of blocks. */
static wg_quantization quantization_for(const wg_tensor *weight, wg_quantization quantization) {
    return wg_tensor_size(weight, 1) % wg__quantization_block(quantization) == 0
               ? wg__quantization_side_by_side(quantization)
               : WG_QUANTIZATION_BF16;
}

/* ---- Linear layers: the quantized weight, (O, bytes) u8, is in the layer's slot ---- */

typedef struct quantized {
    wg__linear_stand_in base; /* first */
    wg_quantization quantization;
} quantized;

static wg_tensor *forward(wg_linear *linear, const wg__linear_stand_in *own, wg_tensor *x) {
    return wg_quantized_linear(x, linear->weight, ((const quantized *)own)->quantization,
                               linear->bias);
}

static const quantized *as_quantized(const wg__linear_stand_in *stand_in) {
    return stand_in && stand_in->forward == forward ? (const quantized *)stand_in : NULL;
}

int wg__linear_quantization(const wg_linear *linear) {
    const wg__linear_stand_in *own = linear->stand_in;
    while (own && own->below)
        own = own->below;
    return as_quantized(own) ? (int)as_quantized(own)->quantization : -1;
}

static int quantize_linear(wg_linear *linear, wg_quantization quantization) {
    wg__linear_stand_in **place = &linear->stand_in;
    wg_slot *slot = linear->module.first_slot;
    while (*place && (*place)->below)
        place = &(*place)->below;
    while (slot && slot->tensor != linear->weight)
        slot = slot->next;
    /* A weight that other slots share stays as it is. */
    if (as_quantized(*place) || !slot ||
        (!slot->tied && wg__is_tied(wg__module_root(&linear->module), linear->weight)))
        return 0;
    quantized *own = wg__calloc(1, sizeof *own);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *weight = own ? wg__linear_weight(linear) : NULL, *packed = NULL, *kept = NULL;
    if (weight) {
        *own = (quantized){{.forward = forward}, quantization_for(weight, quantization)};
        packed = wg_quantize(weight, own->quantization);
    }
    if (packed)
        kept = wg__tensor_reference(packed, true);
    wg_scope_end(&scope, NULL);
    if (!kept) {
        wg__free(own);
        return -1;
    }
    if (!slot->tied)
        wg_release(slot->tensor);
    slot->tied = false;
    slot->kind = WG_SLOT_BUFFER;
    slot->tensor = linear->weight = kept;
    *(*place ? &(*place)->below : place) = &own->base;
    return 0;
}

bool wg__quantized_linears_forward(int count, wg_linear *const *linears, wg_tensor *x,
                                   wg_tensor **y) {
    wg_tensor *weights[WG_MAX_QUANTIZED_WEIGHTS], *biases[WG_MAX_QUANTIZED_WEIGHTS];
    int64_t widths[WG_MAX_QUANTIZED_WEIGHTS];
    const quantized *first = as_quantized(linears[0]->stand_in);
    for (int i = 0; i < count; i++) {
        const quantized *own = as_quantized(linears[i]->stand_in);
        if (!own || own->quantization != first->quantization)
            return false;
        weights[i] = linears[i]->weight;
        biases[i] = linears[i]->bias;
        widths[i] = wg_tensor_size(weights[i], 0);
    }
    wg_error_place place;
    wg_module_enter(&linears[0]->module, &place);
    wg_tensor *all = wg__quantized_linears(x, count, weights, first->quantization, biases);
    wg_module_leave(&place, all);
    wg_split(all, -1, count, widths, y);
    return true;
}

/* ---- Tables: embeddings are read unquantized. The table is quantized when it first computes
 * logits: only then is it known to be a head. ---- */

wg_tensor *wg__quantized_logits(wg_embedding *table, wg_tensor *x) {
    wg__quantized_head *head = table->quantized;
    if (!head->weight)
        head->weight = wg_keep(wg_quantize(table->weight, head->quantization));
    return wg_quantized_linear(x, head->weight, head->quantization, NULL);
}

int wg_module_quantize(wg_module *module, wg_quantization quantization) {
    if (wg__quantization_block(quantization) == 0)
        return wg_fail(WG_ERROR_ARGUMENT, "module_quantize", "there is no quantization %d",
                       (int)quantization);
    for (wg_module *m = module; m; m = wg__module_next(module, m)) {
        wg_linear *linear = wg__module_as_linear(m);
        wg_embedding *table = wg__module_as_embedding(m);
        if (linear && quantize_linear(linear, quantization) < 0)
            return -1;
        if (!table || table->quantized)
            continue;
        table->quantized = wg__calloc(1, sizeof *table->quantized);
        if (!table->quantized)
            return -1;
        table->quantized->quantization = quantization_for(table->weight, quantization);
    }
    return 0;
}
