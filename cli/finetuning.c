/* What the tasks of `wengert finetune' share: see finetuning.h. */
#include "cli/finetuning.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/settings.h"

static void tell_note(const char *message, void *context) {
    (void)context;
    wg__cli_note("%s", message);
}

const char *wg__finetuning_model(const wg__training *t) {
    const char *path = wg__setting_text(t->settings, "model");
    const wg__model_kind *kind = wg__model_kind_of(path);
    if (!kind || strcmp(kind->type, t->kind->type) == 0)
        return kind ? path : NULL;
    char verb[64];
    wg__model_kind_command(t->kind, verb, sizeof verb);
    wg__model_kind_refuse(path, kind, verb, t->kind->type);
    return NULL;
}

int wg__finetuning_origin(const wg__training *t, wg_bert_origin *origin) {
    *origin = (wg_bert_origin){.path = wg__finetuning_model(t),
                               .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
                               .note = tell_note};
    return origin->path ? 0 : -1;
}

const char *wg__finetuning_file(const wg__measuring *m) {
    if (m->corpus_count == 1)
        return m->corpus[0];
    wg_fail(WG_ERROR_ARGUMENT, "eval",
            "%s is fine-tuned and measured on one file at a time; %d are given", m->run,
            m->corpus_count);
    return NULL;
}
