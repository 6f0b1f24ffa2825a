/* Options of generated texts, and trained models: see decoding.h. */
#include "cli/decoding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/weights/weights.h"
#include "models/internal.h"

#define DRAWING(member) offsetof(wg__drawing, member)

static const wg_setting sampling_rows[] = {
    {"max-tokens", WG_SETTING_INTEGER, DRAWING(max_tokens), .low = 1, .high = INT32_MAX,
     .heading = "Drawing:", .argument = "N",
     .help = "Write N tokens at most (200, as far as there are positions; into each blank 64)"},
    {"temperature", WG_SETTING_NUMBER, DRAWING(sampling.temperature), .high = 1000, .argument = "X",
     .help = "Divide logits by X: below 1 likely tokens become likelier (generate 1); 0 always "
             "takes the likeliest (fill)"},
    {"top-k", WG_SETTING_INTEGER, DRAWING(sampling.top_k), .high = INT32_MAX, .standard = "0",
     .argument = "N", .help = "Choose among the N likeliest tokens only; 0: all"},
    {"top-p", WG_SETTING_NUMBER, DRAWING(sampling.top_p), .high = 1, .optional = true,
     .argument = "X",
     .help = "Choose among the likeliest tokens that together have probability X; 0: the likeliest "
             "alone; 1: all (1)"},
    {"min-p", WG_SETTING_NUMBER, DRAWING(sampling.min_p), .high = 1, .standard = "0",
     .argument = "X",
     .help = "Choose among tokens with X of the likeliest one's probability or more; 0: all"},
    {"repetition-penalty", WG_SETTING_NUMBER, DRAWING(sampling.repetition_penalty), .low = 0.001,
     .high = 1000, .argument = "X",
     .help = "Divide the logits of tokens that the text has already by X, multiply them if below 0 "
             "(1)"},
    {"seed", WG_SETTING_INTEGER, DRAWING(generator.seed), .high = INFINITY, .standard = "0",
     .argument = "N", .help = "Seed of all choices: the same one gives the same text"},
};

const wg_setting_table wg__sampling_options = WG__OPTIONS(sampling_rows, wg__drawing);

bool wg__drawing_given(const wg__drawing *d) {
    const wg_sampling *s = &d->sampling;
    const void *const members[] = {&s->temperature,        &s->top_k,         &s->top_p, &s->min_p,
                                   &s->repetition_penalty, &d->generator.seed};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (wg__cli_given(members[i]))
            return true;
    return false;
}

static int read_number(wg__drawing *d, wg_config *config, const char *name, double *value,
                       const void *member) {
    if (wg__cli_given(member) || !wg__config_has(config, name))
        return 0;
    d->published = true;
    return wg__config_number(config, name, value);
}

/* Refuses a setting of the file that is 0 or less, as Hugging Face's `generate` does. Without this
 * check a 0 would count as not given. */
static int check_above_zero(wg_config *config, const char *name) {
    double value = 1;
    if (wg__config_number(config, name, &value) < 0)
        return -1;
    return value > 0 ? 0
                     : wg_fail(WG_ERROR_ARGUMENT, "generation_config.json",
                               "%s is %g; it must be above 0", name, value);
}

/* A model that is to take the likeliest token has a temperature of 0 here; its other members then
 * say nothing. */
static int read_config(wg__drawing *d, wg_config *config) {
    wg_sampling *s = &d->sampling;
    bool samples = true;
    double top_k = (double)s->top_k;
    if (check_above_zero(config, "repetition_penalty") < 0 ||
        check_above_zero(config, "max_new_tokens") < 0 ||
        wg__config_boolean(config, "do_sample", &samples) < 0 ||
        read_number(d, config, "repetition_penalty", &s->repetition_penalty,
                    &s->repetition_penalty) < 0 ||
        wg__config_integer(config, "max_new_tokens", &d->usual_tokens) < 0)
        return -1;
    if (!samples) {
        d->published = true;
        if (!wg__cli_given(&s->temperature))
            s->temperature = 0;
        return 0;
    }
    if (read_number(d, config, "temperature", &s->temperature, &s->temperature) < 0 ||
        read_number(d, config, "top_k", &top_k, &s->top_k) < 0 ||
        read_number(d, config, "top_p", &s->top_p, &s->top_p) < 0 ||
        read_number(d, config, "min_p", &s->min_p, &s->min_p) < 0)
        return -1;
    if (s->top_p == 0 && wg__config_has(config, "top_p"))
        s->top_p = WG_ZERO;
    s->top_k = top_k >= 0 && top_k <= INT32_MAX ? (int64_t)top_k : 0;
    return wg__sampling_validate(s);
}

int wg__drawing_read_published(wg__drawing *drawing, const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *text = file && wg_checkpoint_has(file, WG_GENERATION_CONFIG)
                     ? wg_checkpoint_get_text(file, WG_GENERATION_CONFIG)
                     : NULL;
    wg_checkpoint_close(file);
    wg_config *config = text ? wg__config_parse(text, "generation_config.json") : NULL;
    const int status = config ? read_config(drawing, config) : wg_error_pending() ? -1 : 0;
    wg__config_free(config);
    wg_text_free(text);
    return status;
}

const char *const wg__generation_ends[] = {"stop", "length", "positions", "cancelled"};

#define BEAM(member) offsetof(wg_beam_options, member)

static const wg_setting beam_rows[] = {
    {"beam", WG_SETTING_INTEGER, BEAM(beam), .low = 1, .high = 1024, .heading = "Translating:",
     .argument = "N", .help = "Follow the N likeliest translations (4); 1 is greedy"},
    {"length-penalty", WG_SETTING_NUMBER, BEAM(alpha), .high = 100, .optional = true,
     .argument = "X",
     .help = "Divide the log probability of a translation Y by ((5 + |Y|) / 6)^X (0.6); 0: by "
             "nothing"},
    {"max-length", WG_SETTING_INTEGER, BEAM(max_length), .low = 1, .high = INT32_MAX,
     .argument = "N", .help = "Tokens of a translation at most (50 more than its source has)"},
};

const wg_setting_table wg__beam_options = WG__OPTIONS(beam_rows, wg_beam_options);

int wg__text_list_append(wg__text_list *list, const char *text, const char *file, int64_t line) {
    if (list->count == list->capacity) {
        const int64_t capacity = 2 * list->capacity + 64;
        wg_text_source *items = reallocarray(list->items, (size_t)capacity, sizeof *items);
        if (!items)
            return wg_fail(WG_ERROR_MEMORY, "texts", "there is no memory for the texts");
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = (wg_text_source){text, file, line};
    return 0;
}

void wg__training_command(const wg_objective *objective, const wg_model_type *type, char *text,
                          size_t size) {
    if (objective->finetunes)
        snprintf(text, size, "finetune --task %s", objective->name);
    else
        snprintf(text, size, "pretrain %s", type->name);
}

int wg__trained_refuse(const char *path, const char *verb, const char *takes) {
    const wg_objective *objective = wg_objective_of(path);
    const wg_model_type *type = objective ? wg_model_type_of(path) : NULL;
    if (!type)
        return -1;
    if (!objective->finetunes)
        return wg_fail(WG_ERROR_STATE, path, "it holds a %s model; `wengert %s' takes %s",
                       type->name, verb, takes);
    return wg_fail(WG_ERROR_STATE, path,
                   "it holds a model of `wengert finetune --task %s'; `wengert %s' takes %s",
                   objective->name, verb, takes);
}

static bool supports(const wg_objective *objective, wg__trained_use use) {
    switch (use) {
    case WG__USE_EMBED:
        return !objective->head;
    case WG__USE_FILL:
        return objective->use.fill;
    case WG__USE_GENERATE:
        return objective->use.generate;
    case WG__USE_SCORE:
        return objective->use.score;
    case WG__USE_TRANSLATE:
        return objective->data.text == WG_TEXT_PAIRS;
    }
    return false;
}

const wg_objective *wg__trained_objective(const char *path, wg__trained_use use) {
    static const char *const verbs[] = {"embed", "fill", "generate", "score", "translate"};
    const wg_objective *own = wg_objective_of(path), *objective;
    if (!own || supports(own, use))
        return own;
    /* "bert, glm and t5": the models of pretraining objectives, and the fine-tuned tasks. */
    const char *names[32];
    int count = 0;
    const wg_model_type *type;
    for (int i = 0; (type = wg_model_type_at(i)) && count < 32; i++)
        if (supports(wg_objective_find(type->objectives), use))
            names[count++] = type->name;
    for (int i = 0; (objective = wg_objective_at(i)) && count < 32; i++)
        if (objective->finetunes && supports(objective, use))
            names[count++] = objective->name;
    char takes[256] = "";
    for (int i = 0; i < count; i++)
        snprintf(takes + strlen(takes), sizeof takes - strlen(takes), "%s%s",
                 i == 0           ? ""
                 : i == count - 1 ? " and "
                                  : ", ",
                 names[i]);
    wg__trained_refuse(path, verbs[use], takes);
    return NULL;
}

int wg__trained_load(wg__trained *trained, const wg_objective *objective, const char *path) {
    *trained = (wg__trained){.objective = objective};
    return objective->training->load
               ? objective->training->load(objective, path, &trained->model, &trained->tokenizer)
               : wg_model_load(path, &trained->model, &trained->tokenizer);
}

int wg__trained_quantize(const wg_model *model, int dtype) {
    return dtype == 0 ? 0 : wg_module_quantize(model->module, (wg_quantization)(dtype - 1));
}

void wg__trained_clear(wg__trained *trained) {
    wg_model_free(&trained->model);
    wg_tokenizer_free(trained->tokenizer);
    *trained = (wg__trained){0};
}
