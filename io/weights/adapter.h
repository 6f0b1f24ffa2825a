/* LoRA adapters (nn/lora.h) in separate files, as the PEFT library writes and reads them: a folder
 * of
 *
 *     adapter_config.json         {"peft_type": "LORA", "r": 8, "lora_alpha": 16,
 *                                  "target_modules": ["query", "value"], ...}
 *     adapter_model.safetensors   base_model.model.PATH.lora_A.weight (r, I), lora_B.weight (O, r),
 *                                 and base_model.model.PATH for modules that are trained whole
 *
 * PATH is a path in the published model. A checkpoint of Wengert has the configuration in the text
 * /lora, and the adapters below /model beside the weights that they adapt. */
#ifndef WG_IO_WEIGHTS_ADAPTER_H
#define WG_IO_WEIGHTS_ADAPTER_H

#include "../../nn/lora.h"

WG_BEGIN_DECLS

/* Writes the trained parameters below the root `module` as an adapter into a folder, which is
 * created if it does not exist. `outer` is the prefix of published names before the module's
 * ("glm."); NULL: none. [STATE for a module without adapters; IO, NOT_FOUND, MEMORY] */
WG_API int wg_lora_save(wg_module *module, const char *outer, const char *folder);

/* Writes the adapters in the checkpoint `path` likewise. [STATE for a checkpoint without; IO,
 * NOT_FOUND, FORMAT, MEMORY] */
WG_API int wg_lora_export(const char *path, const char *outer, const char *folder);

/* Attaches the adapters of a folder to the root `module` and reads them. Returns the number of
 * layers with adapters; after an error no layer has one. [as wg__lora_attach_config; NOT_FOUND, IO,
 * FORMAT for names that are missing, unexpected or misshapen] */
WG_API int64_t wg_lora_load(wg_module *module, const char *outer, const char *folder);

WG_END_DECLS

#endif
