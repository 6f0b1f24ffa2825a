/* What tasks keep in a checkpoint beside the weights: see task_checkpoint.h. */
#include "objectives/task_checkpoint.h"

#include "tensor/internal.h"

#define SEED "/train/data/seed"
#define EPOCH "/train/data/epoch"
#define NEXT "/train/data/next"
#define FINGERPRINT "/train/data/fingerprint"

static int put_owned_text(wg_checkpoint *file, const char *name, char *text) {
    int result = text ? wg_checkpoint_put_text(file, name, text) : -1;
    wg_text_free(text);
    return result;
}

int wg__task_save(wg_checkpoint *file, char *config, const wg_tokenizer *tokenizer,
                  const wg_data_position *position, int64_t fingerprint) {
    if (put_owned_text(file, "/config", config) < 0 ||
        put_owned_text(file, "/tokenizer", wg_tokenizer_to_json(tokenizer)) < 0 ||
        wg_checkpoint_put_integer(file, SEED, (int64_t)position->seed) < 0 ||
        wg_checkpoint_put_integer(file, EPOCH, position->epoch) < 0 ||
        wg_checkpoint_put_integer(file, NEXT, position->next) < 0)
        return -1;
    return wg_checkpoint_put_integer(file, FINGERPRINT, fingerprint);
}

int wg__task_restore(wg_checkpoint *file, const char *where, int64_t fingerprint,
                     wg_data_position *position) {
    int64_t seed, epoch, next, saved;
    if (wg_checkpoint_get_integer(file, SEED, &seed) < 0 ||
        wg_checkpoint_get_integer(file, EPOCH, &epoch) < 0 ||
        wg_checkpoint_get_integer(file, NEXT, &next) < 0 ||
        wg_checkpoint_get_integer(file, FINGERPRINT, &saved) < 0)
        return -1;
    if (saved != fingerprint)
        return wg_fail(WG_ERROR_STATE, where,
                       "the corpus or its tokens are not those that the run was begun with");
    *position = (wg_data_position){.seed = (uint64_t)seed, .epoch = epoch, .next = next};
    return 0;
}
