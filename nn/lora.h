/* LoRA, low-rank adaptation   (Hu et al. 2021): the weights of a trained model are frozen,
 * and linear layers learn a low-rank change of them.
 *
 *     y = W x + b + alpha/r B A dropout(x)          x --+-- W (O, I), frozen --(+)-- y
 *                                                       `-- A (r, I) -- B (O, r) --'
 *
 * A is initialized as PyTorch's linear layers, B with 0, so the model is unchanged at first. A
 * layer's adapter is its children lora_A and lora_B, each with a weight and no bias. Paths of the
 * weights are the names in PEFT's files, without "base_model.model.".
 *
 *     const char *const targets[] = {"query", "value"};
 *     wg_lora_attach(model, &(wg_lora_options){.rank = 8, .target_count = 2, .targets = targets});
 *     ... train: optimizers and trainers that are made now only train the adapters ...
 *     wg_lora_merge(model);
 *
 * wg_lora_save and wg_lora_load (io/weights/adapter.h) keep adapters in files of their own. */
#ifndef WG_NN_LORA_H
#define WG_NN_LORA_H

#include "module.h"

WG_BEGIN_DECLS

/* A target that means all linear layers except those below `spared`. */
#define WG_LORA_ALL_LINEAR "all-linear"

typedef struct wg_lora_options {
    int64_t rank;   /* r, at least 1 */
    double alpha;   /* the change is scaled by alpha / r; 0: r, which scales by 1 */
    double dropout; /* of x on its way to A, in training; 0 <= p < 1 */

    /* The layers to adapt: a path is a target or ends with one after a dot ("query" is
     * "encoder.layer.0.attention.self.query", and so on). */
    int target_count;
    const char *const *targets;

    /* Modules that are trained whole besides the adapters, for example a new head: their paths, or
     * ends of their paths. PEFT's modules_to_save. */
    int whole_count;
    const char *const *whole;

    /* Prefixes of paths that WG_LORA_ALL_LINEAR leaves out: "lm_head". */
    int spared_count;
    const char *const *spared;
} wg_lora_options;

/* Freezes the tree of the root `module`, adds adapters to the targets, initialized from the root's
 * generator, and keeps the modules of `whole` trainable. Returns the number of layers adapted.
 * After an error the module is as it was. -1 with [ARGUMENT for a rank, an alpha or a dropout out
 * of range, and for a module that has adapters already; NOT_FOUND for a target or a whole module
 * that is not there, with the names of the linear layers that are; MEMORY] */
WG_API int64_t wg_lora_attach(wg_module *module, const wg_lora_options *options);

/* Adds each adapter to its weight, W + alpha/r B A, removes the adapters, and makes all parameters
 * of the root `module` trainable again. The layers compute the same, up to rounding. The handles of
 * the adapters are freed: free optimizers and trainers that have them first. Returns the number of
 * layers. After an error some are merged and others not. -1 with [MEMORY; STATE for a quantized
 * weight] */
WG_API int64_t wg_lora_merge(wg_module *module);

WG_END_DECLS

#endif
