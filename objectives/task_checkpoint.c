/* What tasks keep in a checkpoint beside the weights: see task_checkpoint.h. */
#include "objectives/task_checkpoint.h"

#include "tensor/internal.h"

static int put_owned_text(wg_checkpoint *file, const char *name, char *text) {
    int result = text ? wg_checkpoint_put_text(file, name, text) : -1;
    wg_text_free(text);
    return result;
}

int wg__task_save(wg_checkpoint *file, char *config, const wg_tokenizer *tokenizer,
                  const wg_batches *batches, int64_t fingerprint) {
    if (put_owned_text(file, "/config", config) < 0 ||
        put_owned_text(file, "/tokenizer", wg_tokenizer_to_json(tokenizer)) < 0)
        return -1;
    return wg_batches_save(batches, file, fingerprint);
}
