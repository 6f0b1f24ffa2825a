/* Labels by GLM: see glm_cloze.h.
 *
 * Letters: B examples, K labels, S targets of an example, over all labels, V = vocab_size. */
#include "objectives/glm_cloze_config.h"

#include "io/checkpoint/checkpoint.h"
#include "io/config_json.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

wg_tensor *wg_glm_cloze_scores(wg_glm *model, const wg_cloze_batch *batch) {
    static const wg_cross_entropy_options each = {.reduction = WG_REDUCTION_NONE};
    const wg_glm_batch *blanks = &batch->blanks;
    const wg_glm_inputs inputs = {.position_ids = blanks->position_ids,
                                  .block_position_ids = blanks->block_position_ids,
                                  .mask = batch->mask};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = wg_glm_forward(model, blanks->input_ids, &inputs);
    wg_tensor *logits = wg_glm_logits(model, hidden, blanks->target_positions); /* (B S, V) */
    wg_tensor *losses = wg_cross_entropy(logits, blanks->labels, WG_IGNORE_INDEX, &each);
    const int64_t examples = wg_tensor_size(batch->verbalized, 0);
    wg_tensor *none =
        wg_zeros(losses ? wg_tensor_dtype(losses) : WG_F32, WG_DIMS(examples, batch->label_count));
    wg_tensor *summed =
        wg_scatter_add(none, 1, batch->verbalized, wg_reshape(losses, WG_DIMS(examples, -1)));
    return wg_scope_end(&scope, wg_neg(summed));
}

/* ---- In checkpoints ---- */

/* The configuration with that object under "cloze", unless it is NULL. */
static char *config_with(const wg_glm_config *config, const wg_config *cloze) {
    char *sizes = wg_glm_config_to_json(config);
    wg_config *object = sizes ? wg_config_parse(sizes, "config") : NULL;
    char *text = NULL;
    if (object && (!cloze || wg__config_set_part(object, "cloze", cloze) == 0))
        text = wg_config_to_json(object);
    wg_config_free(object);
    wg_text_free(sizes);
    return text;
}

char *wg_glm_cloze_config(const wg_glm *model, const wg_cloze *cloze) {
    char *json = wg_cloze_to_json(cloze);
    wg_config *part = json ? wg_config_parse(json, "cloze") : NULL;
    char *text = part ? config_with(&model->config, part) : NULL;
    wg_config_free(part);
    wg_text_free(json);
    return text;
}

char *wg__glm_config_keep_cloze(const wg_glm_config *config, const char *json) {
    wg_config *object = wg_config_parse(json, "config.json");
    wg_config *part = object ? wg__config_part(object, "cloze") : NULL;
    char *text = wg_error_pending() ? NULL : config_with(config, part);
    wg_config_free(part);
    wg_config_free(object);
    return text;
}

/* What a configuration says under "cloze". */
static wg_cloze *cloze_of(const char *config, const wg_tokenizer *tokenizer) {
    static const char *const key[] = {"cloze"};
    wg_config *object = wg_config_parse(config, "/config");
    wg_config *part =
        object && wg_config_require(object, 1, key) == 0 ? wg__config_part(object, key[0]) : NULL;
    char *json = part ? wg_config_to_json(part) : NULL;
    wg_cloze *cloze = json ? wg_cloze_from_json(json, tokenizer) : NULL;
    wg_text_free(json);
    wg_config_free(part);
    wg_config_free(object);
    return cloze;
}

static wg_cloze *read_cloze(const char *path, const wg_tokenizer *tokenizer) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *config = file ? wg_checkpoint_get_text(file, "/config") : NULL;
    wg_cloze *cloze = config ? cloze_of(config, tokenizer) : NULL;
    wg_text_free(config);
    wg_checkpoint_close(file);
    return cloze;
}

int wg_glm_cloze_load(const char *path, wg_glm **model, wg_tokenizer **tokenizer,
                      wg_cloze **cloze) {
    *cloze = NULL;
    if (wg_glm_load(path, model, tokenizer) < 0)
        return -1;
    *cloze = read_cloze(path, *tokenizer);
    if (*cloze)
        return 0;
    wg_tokenizer_free(*tokenizer);
    wg_module_free(&(*model)->module);
    *tokenizer = NULL;
    *model = NULL;
    return -1;
}
