/* What the tasks that fine-tune BERT share: see bert_task.h. */
#include "cli/bert_task.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/settings.h"

static void tell_note(const char *message, void *context) {
    (void)context;
    wg__cli_note("%s", message);
}

int wg__bert_task_origin(const wg__training *t, wg_bert_origin *origin) {
    const char *path = wg__setting_text(t->settings, "model");
    const wg__model_kind *kind = wg__model_kind_of(path);
    if (!kind)
        return -1;
    if (strcmp(kind->type, t->kind->type) != 0)
        return wg_fail(WG_ERROR_STATE, path,
                       "it holds a %s model; `wengert finetune --task %s' takes bert", kind->name,
                       t->kind->name);
    *origin = (wg_bert_origin){.path = path,
                               .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
                               .note = tell_note};
    return 0;
}

int wg__bert_task_one_file(const wg__measuring *m) {
    return m->corpus_count == 1
               ? 0
               : wg_fail(WG_ERROR_ARGUMENT, "eval",
                         "%s is fine-tuned and measured on one file at a time; %d are given",
                         m->run, m->corpus_count);
}

int64_t wg__bert_sequence(int64_t asked, int64_t usual, const wg_bert_config *config) {
    if (asked > 0)
        return asked;
    return config->max_position_embeddings < usual ? config->max_position_embeddings : usual;
}
