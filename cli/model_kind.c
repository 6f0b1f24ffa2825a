/* The kinds of models: see model_kind.h. */
#include "cli/model_kind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/settings.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/characters.h"
#include "data/dataset/dataset.h"
#include "data/tokenizer/wordpiece.h"
#include "io/config.h"

/* Of `pretrain', and of `finetune'. */
static const wg__model_kind *const kinds[] = {
    &wg__bert_kind, &wg__glm_kind,         &wg__gpt_kind, &wg__llama_kind,
    &wg__t5_kind,   &wg__transformer_kind, NULL,
};
static const wg__model_kind *const tasks[] = {&wg__classify_task, &wg__squad_task, &wg__cloze_task,
                                              NULL};

static const wg__model_kind *find(const wg__model_kind *const *table, const char *name) {
    while (*table && strcmp(name, (*table)->name) != 0)
        table++;
    return *table;
}

/* The caller counts from 0 up to the first NULL. */
static const char *name_at(const wg__model_kind *const *table, int index) {
    return table[index] ? table[index]->name : NULL;
}

const wg__model_kind *wg__model_kind_find(const char *name) {
    return find(kinds, name);
}

const char *wg__model_kind_name(int index) {
    return name_at(kinds, index);
}

const wg__model_kind *wg__task_kind_find(const char *name) {
    return find(tasks, name);
}

const char *wg__task_kind_name(int index) {
    return name_at(tasks, index);
}

void wg__model_kind_command(const wg__model_kind *kind, char *text, size_t size) {
    snprintf(text, size, "%s %s", kind->mark ? "finetune --task" : "pretrain", kind->name);
}

/* ---- Of a checkpoint ---- */

static const wg__model_kind *find_type(const char *path, const char *type) {
    for (int i = 0; kinds[i]; i++)
        if (strcmp(type, kinds[i]->type) == 0)
            return kinds[i];
    wg_fail(WG_ERROR_STATE, path, "it holds a model of type \"%s\", which is not known", type);
    return NULL;
}

/* The task whose mark a checkpoint has, or NULL. */
static const wg__model_kind *find_task(wg_checkpoint *file, const wg_config *config) {
    for (int i = 0; tasks[i]; i++) {
        const char *mark = tasks[i]->mark;
        if (*mark == '/' ? wg_checkpoint_has(file, mark) : wg_config_has(config, mark))
            return tasks[i];
    }
    return NULL;
}

static const wg__model_kind *read_kind(wg_checkpoint *file, const char *path) {
    char *json = wg_checkpoint_get_text(file, "/config");
    wg_config *config = json ? wg_config_parse(json, "/config") : NULL;
    const char *type = NULL;
    const wg__model_kind *kind = config ? find_task(file, config) : NULL;
    if (!kind && config && wg_config_require(config, 1, (const char *const[]){"model_type"}) == 0 &&
        wg_config_text(config, "model_type", &type) == 0)
        kind = find_type(path, type);
    wg_config_free(config);
    wg_text_free(json);
    return kind;
}

const wg__model_kind *wg__model_kind_of(const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    const wg__model_kind *kind = file ? read_kind(file, path) : NULL;
    wg_checkpoint_close(file);
    return kind;
}

int wg__model_kind_refuse(const char *path, const wg__model_kind *found, const char *verb,
                          const char *takes) {
    if (!found->mark)
        return wg_fail(WG_ERROR_STATE, path, "it holds a %s model; `wengert %s' takes %s",
                       found->name, verb, takes);
    return wg_fail(WG_ERROR_STATE, path,
                   "it holds a model of `wengert finetune --task %s'; `wengert %s' takes %s",
                   found->name, verb, takes);
}

int wg__model_kind_require(const char *path, const wg__model_kind *kind, const char *verb) {
    const wg__model_kind *found = wg__model_kind_of(path);
    if (!found)
        return -1;
    if (found == kind)
        return 0;
    return wg__model_kind_refuse(path, found, verb, kind->mark ? "its own" : kind->name);
}

/* ---- Beginning and ending ---- */

static int make_parts(wg__training *t) {
    t->parts = calloc(1, t->kind->parts_size);
    return t->parts ? 0 : wg_fail(WG_ERROR_MEMORY, t->kind->name, "no memory for a model");
}

static int load_resumed(wg__training *t) {
    char verb[64];
    wg__model_kind_command(t->kind, verb, sizeof verb);
    if (wg__model_kind_require(t->resumed, t->kind, verb) < 0)
        return -1;
    return t->kind->load(t, t->resumed);
}

/* What is quickly found wrong comes before the text is read. */
int wg__training_begin(wg__training *t) {
    if (make_parts(t) < 0 || (t->resumed ? load_resumed(t) : t->kind->create(t)) < 0)
        return -1;
    return t->kind->pose(t);
}

void wg__training_end(wg__training *t) {
    if (t->parts)
        t->kind->clear(t->parts);
    wg_tokenizer_free(t->tokenizer);
    free(t->parts);
}

static int quantize(const wg__training *t, const wg__measuring *measuring) {
    return measuring->quantization < 0
               ? 0
               : wg_module_quantize(t->kind->module(t->parts),
                                    (wg_quantization)measuring->quantization);
}

int wg__measure(const wg__model_kind *kind, const wg__measuring *measuring, wg_metrics *metrics) {
    wg__training t = {.kind = kind};
    int result = -1;
    if (make_parts(&t) == 0 && kind->load(&t, measuring->run) == 0 &&
        kind->pose_measuring(&t, measuring) == 0 && quantize(&t, measuring) == 0)
        result =
            kind->measure ? kind->measure(&t, measuring, metrics) : kind->evaluate(&t, metrics);
    wg__training_end(&t);
    return result;
}

/* ---- Configurations ---- */

char *wg__config_text(const json_t *settings) {
    wg_config *file = wg_config_load(wg__setting_text(settings, "config"));
    char *text = file ? wg_config_to_json(file) : NULL;
    wg_config_free(file);
    return text;
}

json_t *wg__config_object(char *text) {
    json_t *object = text ? json_loads(text, 0, NULL) : NULL;
    wg_text_free(text);
    return object;
}

/* ---- Text ---- */

const char **wg__corpus_paths(const json_t *settings, int *count) {
    const json_t *corpus = json_object_get(settings, "corpus");
    *count = (int)json_array_size(corpus);
    const char **paths = calloc((size_t)*count + 1, sizeof *paths);
    for (int i = 0; paths && i < *count; i++)
        paths[i] = json_string_value(json_array_get(corpus, (size_t)i));
    return paths;
}

int64_t wg__vocabulary_size(const json_t *settings, int64_t configured) {
    enum { DEFAULT_VOCABULARY = 4096 };
    const int64_t size = wg__setting_integer(settings, "vocab-size");
    if (size > 0)
        return size;
    return configured > 0 ? configured : DEFAULT_VOCABULARY;
}

int64_t wg__sequence_of(int64_t asked, int64_t usual, int64_t positions) {
    if (asked > 0)
        return asked;
    return positions < usual ? positions : usual;
}

static wg_tokenizer *learn_wordpiece(int count, const char *const *paths, int64_t size) {
    return wg_wordpiece_train_files(count, paths,
                                    &(wg_wordpiece_training){.vocabulary_size = size});
}

static wg_tokenizer *learn_bpe(int count, const char *const *paths, int64_t size) {
    return wg_bpe_train_files(count, paths, &(wg_bpe_training){.vocabulary_size = size});
}

static wg_tokenizer *learn_characters(int count, const char *const *paths, int64_t size) {
    (void)size; /* as many as the text has */
    return wg_char_train_files(count, paths, NULL);
}

static wg_tokenizer *learn_bytes(int count, const char *const *paths, int64_t size) {
    (void)count, (void)paths, (void)size; /* there is nothing to learn */
    return wg_byte_new();
}

/* The tokenizer of a token file, with a note where another was to be learnt. */
static wg_tokenizer *take_tokenizer(const char *tokens, const json_t *settings) {
    wg_tokenizer *tokenizer = wg_tokenizer_load(tokens);
    if (!tokenizer)
        return NULL;
    const char *kind = wg_tokenizer_kind(tokenizer);
    const int64_t size = wg_tokenizer_size(tokenizer);
    const int64_t wanted = wg__setting_integer(settings, "vocab-size");
    if (strcmp(kind, wg__setting_text(settings, "tokenizer")) != 0 || (wanted && wanted != size))
        wg__cli_note("no tokenizer is learnt: %s has its own, %s of %lld tokens", tokens, kind,
                     (long long)size);
    return tokenizer;
}

/* The tokenizer of the first token file in the corpus; where there is none, what is learnt. */
static wg_tokenizer *learn_from_corpus(const json_t *settings, int64_t size,
                                       wg_tokenizer *(*learn)(int, const char *const *, int64_t)) {
    int count;
    const char **paths = wg__corpus_paths(settings, &count), *tokens = NULL;
    for (int i = 0; !tokens && i < count; i++)
        if (wg_dataset_is_token_file(paths[i]))
            tokens = paths[i];
    wg_tokenizer *tokenizer = tokens ? take_tokenizer(tokens, settings) : learn(count, paths, size);
    free(paths);
    return tokenizer;
}

/* What can be learnt, by the name that --tokenizer has for it. */
static const struct {
    const char *name;
    wg_tokenizer *(*learn)(int count, const char *const *paths, int64_t size);
} learners[] = {{"wordpiece", learn_wordpiece},
                {"bpe", learn_bpe},
                {"char", learn_characters},
                {"byte", learn_bytes}};

enum { LEARNERS = sizeof learners / sizeof learners[0] };

wg_tokenizer *wg__make_tokenizer(const json_t *settings, int64_t vocabulary_size) {
    const char *name = wg__setting_text(settings, "tokenizer");
    for (int i = 0; i < LEARNERS; i++)
        if (strcmp(name, learners[i].name) == 0)
            return learn_from_corpus(settings, vocabulary_size, learners[i].learn);
    if (access(name, F_OK) == 0)
        return wg_tokenizer_load(name);
    wg_fail(WG_ERROR_NOT_FOUND, "tokenizer",
            "'%s' is neither a file nor a kind that can be learnt; wordpiece, "
            "bpe, char and byte can",
            name);
    return NULL;
}
