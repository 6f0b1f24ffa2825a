/* Model cards and generation_config.json: see internal.h. */
#include "formats/internal.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/system.h"
#include "io/checkpoint/checkpoint.h"
#include "io/internal.h"
#include "io/weights/weights.h"
#include "io/weights/binary_file.h"
#include "models/heads.h"
#include "objectives/objective.h"
#include "tensor/internal.h"
#include "train/trainer.h"
#include "train/internal.h"

#define WHERE "model card"
#define GENERATION "generation_config.json"
#define CARD "README.md"

enum { MOST_CONFIG = 1 << 20, MOST_CARD = 1 << 24 };

static char *read_of_folder(const char *folder, const char *name, int64_t most) {
    char *path = wg__is_folder(folder) ? wg__path_in(folder, name) : NULL;
    char *text = wg__is_file(path) ? wg__read_whole(path, most, NULL) : NULL;
    wg__free(path);
    return text;
}

char *wg__find_generation_config(const char *in) {
    char *text = NULL;
    if (wg__is_hdf5_file(in)) {
        wg_checkpoint *file = wg_checkpoint_open(in);
        char *kept = file && wg_checkpoint_has(file, WG_GENERATION_CONFIG)
                         ? wg_checkpoint_get_text(file, WG_GENERATION_CONFIG)
                         : NULL;
        wg_checkpoint_close(file);
        text = kept ? wg__strdup(kept) : NULL;
        wg_text_free(kept);
    } else
        text = read_of_folder(in, GENERATION, MOST_CONFIG);
    json_error_t error;
    json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;
    const bool good = json_is_object(json);
    if (text && !good)
        wg_fail(WG_ERROR_FORMAT, in, GENERATION " is no JSON object%s%s", json ? "" : ": ",
                json ? "" : error.text);
    json_decref(json);
    if (good)
        return text;
    wg__free(text);
    return NULL;
}

int wg__write_generation_config(const wg__card *card) {
    if (card->generation)
        return wg__write_in(card->folder, GENERATION, card->generation, -1);
    if (card->type->shape == WG_ENCODER)
        return 0;
    json_t *config = json_object();
    if (!config)
        return wg_fail(WG_ERROR_MEMORY, WHERE, "no memory");
    const bool two = card->type->shape == WG_ENCODER_DECODER;
    const struct {
        const char *key;
        int64_t id;
    } tokens[] = {{two ? "decoder_start_token_id" : "bos_token_id", card->sizes.start_id},
                  {"eos_token_id", card->sizes.end_id},
                  {"pad_token_id", card->sizes.pad_id}};
    for (int i = 0; i < 3; i++)
        if (tokens[i].id >= 0)
            wg__json_set(config, tokens[i].key, json_integer(tokens[i].id), WHERE);
    if (!two) { /* other programs' defaults: the likeliest token, or top_k 50 */
        wg__json_set(config, "do_sample", json_true(), WHERE);
        wg__json_set(config, "temperature", json_real(1), WHERE);
        wg__json_set(config, "top_k", json_integer(0), WHERE);
        wg__json_set(config, "top_p", json_real(1), WHERE);
    }
    char *text = wg_error_pending() ? NULL : wg__json_text(config, "{\n  ", ",\n  ", "\n}\n");
    json_decref(config);
    const int status = text ? wg__write_in(card->folder, GENERATION, text, -1) : -1;
    wg__free(text);
    return status;
}

static void add(wg__text *card, const char *format, ...) WG_PRINTF(2, 3);
static void add(wg__text *card, const char *format, ...) {
    char line[1024];
    va_list arguments;
    void *before = wg__begin_plain_numbers();
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    wg__end_plain_numbers(before);
    if (length > 0)
        wg__text_append(card, line, length < (int)sizeof line ? length : (int)sizeof line - 1);
}

/* The last part of a path: a card does not publish the folders of a machine. */
static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* A word of a command line, in quotes if it needs them: names in a checkpoint may be anything. */
static void add_word(wg__text *card, const char *word) {
    const bool plain = *word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-.,/:=+@%") == strlen(word);
    if (plain) {
        add(card, " %s", word);
        return;
    }
    add(card, " '");
    for (const char *c = word; *c; c++)
        add(card, *c == '\'' ? "'\\''" : "%c", (unsigned char)*c < ' ' ? '?' : *c);
    add(card, "'");
}

static void add_value(wg__text *card, const json_t *value) {
    if (json_is_string(value))
        add_word(card, file_name(json_string_value(value)));
    else if (json_is_integer(value))
        add(card, " %lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        add(card, " %.10g", json_real_value(value));
}

static void add_option(wg__text *card, const char *key, const json_t *value) {
    char option[96];
    snprintf(option, sizeof option, "--%s", key);
    /* options that are not set, and longest-warmup, which no option sets */
    if (json_is_false(value) || json_is_null(value) || strcmp(key, "longest-warmup") == 0)
        return;
    if (strcmp(key, "eval-target") == 0) { /* the second argument of the option before it */
        add_value(card, value);
        return;
    }
    if (json_is_object(value)) {
        const char *name;
        json_t *label;
        json_object_foreach((json_t *)value, name, label) {
            char pair[512];
            snprintf(pair, sizeof pair, "%s=%s", name,
                     json_is_string(label) ? json_string_value(label) : "");
            add_word(card, option);
            add_word(card, pair);
        }
        return;
    }
    add_word(card, option);
    for (size_t i = 0; i < json_array_size(value); i++)
        add_value(card, json_array_get(value, i));
    add_value(card, value);
}

static int64_t setting(const json_t *settings, const char *key, int64_t standard) {
    const json_t *value = json_object_get(settings, key);
    const json_int_t number = json_is_integer(value) ? json_integer_value(value) : standard;
    return number >= 0 && number <= INT32_MAX ? number : standard;
}

/* The command of the run, from its settings, which have the names of options. */
static void add_command(wg__text *card, const wg__card *c, const wg_objective *objective,
                        const json_t *settings) {
    const char *key, *model = json_string_value(json_object_get(settings, "model"));
    json_t *value;
    add(card, "\n    wengert %s", objective->finetunes ? "finetune" : "pretrain");
    if (objective->finetunes && model)
        add_word(card, file_name(model));
    else if (!objective->finetunes)
        add(card, " %s", c->type->name);
    add(card, " --%s %s", objective->finetunes ? "task" : "objective", objective->name);
    json_object_foreach((json_t *)settings, key, value) {
        if (strcmp(key, "model") != 0)
            add_option(card, key, value);
    }
    add(card, "\n");
}

static void add_training_of(wg__text *card, const wg__card *c) {
    wg_checkpoint *file = wg__is_hdf5_file(c->in) ? wg_checkpoint_open(c->in) : NULL;
    const bool is_run =
        file && wg_checkpoint_has(file, "/train/step") && wg_checkpoint_has(file, "/objective");
    int64_t steps = 0;
    char *name = is_run ? wg_checkpoint_get_text(file, "/objective") : NULL,
         *note = is_run && wg_checkpoint_has(file, "/train/note")
                     ? wg_checkpoint_get_text(file, "/train/note")
                     : NULL;
    const wg_objective *objective = name ? wg_objective_find(name) : NULL;
    json_t *settings = note ? json_loads(note, 0, NULL) : NULL;
    if (objective && wg_checkpoint_get_integer(file, "/train/step", &steps) == 0) {
        add(card,
            "\n## Training\n\n| | |\n| --- | --- |\n| objective | %s: %s |\n| steps | %lld |\n",
            objective->name, objective->title, (long long)steps);
        /* Tokens in the batches of all steps, padding included. The batch size of pairs counts
         * tokens, of each side. */
        const int64_t accumulate = setting(settings, "accumulate", 1),
                      ramp = setting(settings, "accumulate-ramp", 0),
                      rising = steps < ramp ? steps : ramp;
        double batches = (double)(steps - rising) * (double)wg__trainer_batches(accumulate, 0, 0);
        for (int64_t step = 0; step < rising; step++)
            batches += (double)wg__trainer_batches(accumulate, ramp, step);
        const double batch = (double)setting(settings, "batch", 0);
        const double tokens =
            batches * batch *
            (objective->data.text == WG_TEXT_PAIRS ? 1 : (double)setting(settings, "seq", 0));
        if (tokens > 0)
            add(card, "| tokens seen | %.0f, with padding |\n", tokens);
        /* the last loss of each history */
        static const char *const histories[][2] = {
            {"loss of the last step", WG_HISTORY_TRAINING},
            {"loss on held-out text", WG_HISTORY_EVALUATION}};
        for (int i = 0; i < 2; i++) {
            wg_history history = {0};
            const bool read = wg_history_get(&history, file, histories[i][1]) == 0;
            const double *losses = read ? wg_history_column(&history, "loss") : NULL;
            const int64_t last = history.row_count - 1;
            if (losses && last >= 0 && isfinite(losses[last]))
                add(card, "| %s | %.4f |\n", histories[i][0], losses[last]);
            wg_history_clear(&history);
        }
        if (settings)
            add_command(card, c, objective, settings);
    }
    json_decref(settings);
    wg_text_free(note);
    wg_text_free(name);
    wg_checkpoint_close(file);
}

int wg__write_model_card(const wg__card *card) {
    char *there = wg__path_in(card->folder, CARD);
    const bool exists = wg__is_file(there);
    wg__free(there);
    if (exists || !there)
        return there ? 0 : -1;
    char *published = read_of_folder(card->in, CARD, MOST_CARD);
    wg__text text = {0};
    static const char *const tasks[WG_HEAD_KINDS] = {[WG_HEAD_LABELS] = "text-classification",
                                                     [WG_HEAD_ANSWERS] = "question-answering",
                                                     [WG_HEAD_SCORE] = "text-classification",
                                                     [WG_HEAD_WORDS] = "token-classification",
                                                     [WG_HEAD_SEVERAL_LABELS] =
                                                         "text-classification"};
    const wg_model_shape shape = card->type->shape;
    const char *task = card->head >= 0               ? tasks[card->head]
                       : shape == WG_ENCODER         ? "fill-mask"
                       : shape == WG_ENCODER_DECODER ? "text2text-generation"
                                                     : "text-generation";
    if (!published && !wg_error_pending()) {
        char folder[256];
        snprintf(folder, sizeof folder, "%s", card->folder);
        for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
            folder[end - 1] = '\0';
        add(&text, "---\npipeline_tag: %s\ntags:\n- wengert\n- %s\n---\n\n# %s\n\n", task,
            card->type->model_type, file_name(folder));
        add(&text,
            "%s with %lld parameters and a vocabulary of %lld tokens, written by Wengert %s.\n",
            card->type->title, (long long)card->numbers, (long long)card->sizes.vocabulary,
            wg_version());
        add_training_of(&text, card);
    }
    int status = -1;
    if (!wg_error_pending())
        status = wg__write_in(card->folder, CARD, published ? published : text.bytes, -1);
    wg__free(published);
    wg__free(text.bytes);
    return status;
}
