/* BERT with its heads from checkpoints: a fine-tuned one as it is, or the encoder of any. */

#include <stdio.h>
#include <string.h>

#include "io/checkpoint/checkpoint.h"
#include "io/differences.h"
#include "models/bert_heads_config.h"
#include "models/load.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "bert"

/* ---- By configuration ---- */

static wg_bert_for_sequence_classification *make_classifier(const char *json,
                                                            const wg_labels *labels,
                                                            uint64_t seed) {
    wg_bert_config config;
    if (wg_bert_config_from_json(&config, json) < 0)
        return NULL;
    wg_bert_for_sequence_classification *model =
        wg_bert_for_sequence_classification_new(&config, labels, seed);
    if (model && wg__bert_config_classifier_dropout(json, &model->dropout) < 0) {
        wg_module_free(&model->module);
        return NULL;
    }
    return model;
}

static wg_module *make_saved_classifier(const char *json, void *context) {
    (void)context;
    wg_labels labels;
    if (wg_bert_config_labels(json, &labels) < 0)
        return NULL;
    wg_bert_for_sequence_classification *model = make_classifier(json, &labels, 0);
    wg_labels_free(&labels);
    return model ? &model->module : NULL;
}

static wg_bert_for_question_answering *make_answerer(const char *json, uint64_t seed) {
    wg_bert_config config;
    return wg_bert_config_from_json(&config, json) < 0
               ? NULL
               : wg_bert_for_question_answering_new(&config, seed);
}

static wg_module *make_saved_answerer(const char *json, void *context) {
    (void)context;
    wg_bert_for_question_answering *model = make_answerer(json, 0);
    return model ? &model->module : NULL;
}

int wg_bert_for_sequence_classification_load(const char *path,
                                             wg_bert_for_sequence_classification **model,
                                             wg_tokenizer **tokenizer) {
    wg_module *module = wg__model_load(path, make_saved_classifier, NULL, tokenizer);
    *model = (wg_bert_for_sequence_classification *)module;
    return module ? 0 : -1;
}

int wg_bert_for_question_answering_load(const char *path, wg_bert_for_question_answering **model,
                                        wg_tokenizer **tokenizer) {
    wg_module *module = wg__model_load(path, make_saved_answerer, NULL, tokenizer);
    *model = (wg_bert_for_question_answering *)module;
    return module ? 0 : -1;
}

/* ---- From an encoder ---- */

/* What a file with an encoder need not have. */
static bool may_miss(const char *path) {
    static const char pooler[] = "bert.pooler.", encoder[] = "bert.";
    return strncmp(path, pooler, strlen(pooler)) == 0 ||
           strncmp(path, encoder, strlen(encoder)) != 0;
}

/* A tensor's dataset: /model/bert/pooler/dense/weight. */
static void dataset_name(char *name, size_t size, const char *path) {
    snprintf(name, size, "/model/%s", path);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '/';
}

typedef struct taking {
    wg_checkpoint *file;
    bool keeps_head; /* the file's head is of the same labels */
    wg__differences differences;
    wg__difference new_names; /* what begins anew */
} taking;

static int take_slot(taking *t, const wg_state_entry *entry) {
    char name[256];
    wg_tensor *wanted = entry->slot->tensor;
    dataset_name(name, sizeof name, entry->path);
    const bool is_head = strncmp(entry->path, "bert.", 5) != 0;
    if (!wg_checkpoint_has(t->file, name) || (is_head && !t->keeps_head)) {
        wg__note_difference(may_miss(entry->path) ? &t->new_names : &t->differences.missing,
                            entry->path);
        return 0;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *found = wg_checkpoint_get_tensor(t->file, name);
    const int64_t misshapen = t->differences.misshapen.count;
    if (found) {
        wg__note_spec(&t->differences, entry->path, &found->spec, &wanted->spec);
        if (t->differences.misshapen.count == misshapen)
            wg_copy_(wanted, wg_cast(found, wg_tensor_dtype(wanted)));
    }
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? -1 : 0;
}

/* Fills a new model with what the file has of it. */
static int take_weights(taking *t, wg_module *module, const wg_bert_origin *origin) {
    wg_state_dict *state = wg_module_state(module);
    const bool recording = wg_set_grad_enabled(false);
    int status = state ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < state->count; i++)
        status = take_slot(t, &state->entries[i]);
    wg_set_grad_enabled(recording);
    wg_state_dict_free(state);
    if (status < 0 || wg__check_differences(&t->differences, origin->path, WHERE) < 0)
        return -1;
    if (t->new_names.count > 0 && origin->note) {
        char text[1024];
        snprintf(text, sizeof text, "not in %s, begun anew: %s", origin->path, t->new_names.names);
        origin->note(text, origin->context);
    }
    return 0;
}

/* Reads /config and /tokenizer. */
static int read_texts(wg_checkpoint *file, char **config, wg_tokenizer **tokenizer) {
    *config = file ? wg_checkpoint_get_text(file, "/config") : NULL;
    char *json = *config ? wg_checkpoint_get_text(file, "/tokenizer") : NULL;
    *tokenizer = json ? wg_tokenizer_from_json(json) : NULL;
    wg_text_free(json);
    return *tokenizer ? 0 : -1;
}

/* Ends what both kinds begin: the model goes if its weights could not be had. */
static wg_module *finish(taking *t, wg_module *module, char *config, const wg_bert_origin *origin,
                         wg_tokenizer **tokenizer) {
    if (module && take_weights(t, module, origin) < 0) {
        wg_module_free(module);
        module = NULL;
    }
    wg_text_free(config);
    wg_checkpoint_close(t->file);
    if (!module) {
        wg_tokenizer_free(*tokenizer);
        *tokenizer = NULL;
    }
    return module;
}

static bool has_labels(const char *config, const wg_labels *labels) {
    wg_labels saved;
    if (wg_bert_config_labels(config, &saved) < 0)
        return false;
    const bool equal = wg_labels_equal(&saved, labels);
    wg_labels_free(&saved);
    return equal;
}

int wg_bert_for_sequence_classification_begin(const wg_bert_origin *origin, const wg_labels *labels,
                                              wg_bert_for_sequence_classification **model,
                                              wg_tokenizer **tokenizer) {
    taking t = {.file = wg_checkpoint_open(origin->path)};
    char *config;
    if (read_texts(t.file, &config, tokenizer) == 0)
        *model = make_classifier(config, labels, origin->seed);
    else
        *model = NULL;
    if (*model && wg_checkpoint_has(t.file, "/model/classifier/weight"))
        t.keeps_head = has_labels(config, labels);
    wg_module *module = *model ? &(*model)->module : NULL;
    *model = (wg_bert_for_sequence_classification *)finish(&t, module, config, origin, tokenizer);
    return *model ? 0 : -1;
}

int wg_bert_for_question_answering_begin(const wg_bert_origin *origin,
                                         wg_bert_for_question_answering **model,
                                         wg_tokenizer **tokenizer) {
    taking t = {.file = wg_checkpoint_open(origin->path), .keeps_head = true};
    char *config;
    *model =
        read_texts(t.file, &config, tokenizer) == 0 ? make_answerer(config, origin->seed) : NULL;
    wg_module *module = *model ? &(*model)->module : NULL;
    *model = (wg_bert_for_question_answering *)finish(&t, module, config, origin, tokenizer);
    return *model ? 0 : -1;
}
