/* The settings of a training run: see settings.h. */
#include "cli/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/settings_table.h"
#include "optim/optimizer.h"

static const wg__setting settings[] = {
    {WG__SET_PRESET, "preset", WG__SETTING_TEXT, 0, 0, false},
    {WG__SET_CONFIG, "config", WG__SETTING_FILE, 0, 0, false},
    {WG__SET_INIT, "init", WG__SETTING_FILE, 0, 0, true},
    {WG__SET_TOKENIZER, "tokenizer", WG__SETTING_TEXT, 0, 0, false},
    {WG__SET_VOCAB_SIZE, "vocab-size", WG__SETTING_INTEGER, 1, INT32_MAX, false},
    {WG__SET_MODEL, "model", WG__SETTING_FILE, 0, 0, true},
    {WG__SET_TRAIN, "train", WG__SETTING_FILE, 0, 0, true},
    {WG__SET_MASKED_SHARE, "masked-share", WG__SETTING_NUMBER, 0.001, 1, false},
    {WG__SET_SPAN_MEAN, "span-mean", WG__SETTING_NUMBER, 0.1, 38, false},
    {WG__SET_SENTENCE_SHARE, "sentence-share", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_DOCUMENT_SHARE, "document-share", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_PATTERN, "pattern", WG__SETTING_TEXT, 0, 0, false},
    {WG__SET_VERBALIZER, "verbalizer", WG__SETTING_PAIRS, 0, 0, false},
    {WG__SET_EVAL, "eval", WG__SETTING_FILE, 0, 0, true},
    {WG__SET_CORPUS, "corpus", WG__SETTING_FILES, 0, 0, true}, /* it is checked by its tokens */
    {WG__SET_CORPUS_WEIGHTS, "corpus-weights", WG__SETTING_NUMBERS, 1e-9, 1e9, false},
    {WG__SET_TOKENS, "tokens", WG__SETTING_FILE, 0, 0, true},
    {WG__SET_EVAL_TARGET, "eval-target", WG__SETTING_FILE, 0, 0, true},
    {WG__SET_STEPS, "steps", WG__SETTING_INTEGER, 1, INFINITY, true},
    {WG__SET_EPOCHS, "epochs", WG__SETTING_NUMBER, 0, 1e9, true},
    {WG__SET_BATCH, "batch", WG__SETTING_INTEGER, 1, INT32_MAX, false},
    {WG__SET_SEQ, "seq", WG__SETTING_INTEGER, 8, INT32_MAX, false},
    {WG__SET_LR, "lr", WG__SETTING_NUMBER, 0, 1000, false},
    {WG__SET_SCHEDULE, "schedule", WG__SETTING_TEXT, 0, 0, false},
    {WG__SET_WARMUP, "warmup", WG__SETTING_INTEGER, 0, INFINITY, false},
    {WG__SET_FINAL, "final", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_DECAY_STEPS, "decay-steps", WG__SETTING_INTEGER, 1, INFINITY, false},
    {WG__SET_OPTIMIZER, "optimizer", WG__SETTING_TEXT, 0, 0, false},
    {WG__SET_MOMENTUM, "momentum", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_BETA1, "beta1", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_BETA2, "beta2", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_WEIGHT_DECAY, "weight-decay", WG__SETTING_NUMBER, 0, 1000, false},
    {WG__SET_CLIP, "clip", WG__SETTING_NUMBER, 0, 1e9, false},
    {WG__SET_SEED, "seed", WG__SETTING_INTEGER, 0, INFINITY, false},
    {WG__SET_EVAL_EVERY, "eval-every", WG__SETTING_INTEGER, 1, INFINITY, true},
    {WG__SET_SAVE_EVERY, "save-every", WG__SETTING_INTEGER, 1, INFINITY, true},
    {WG__SET_ACCUMULATE, "accumulate", WG__SETTING_INTEGER, 1, INT32_MAX, false},
    {WG__SET_EMA, "ema", WG__SETTING_NUMBER, 0, 1, false},
    {WG__SET_PATIENCE, "patience", WG__SETTING_INTEGER, 0, INFINITY, true},
    {WG__SET_KEEP_BEST, "keep-best", WG__SETTING_FLAG, 0, 0, true},
    {WG__SET_KEEP_EVERY, "keep-every", WG__SETTING_INTEGER, 1, INFINITY, true},
    {WG__SET_RECOMPUTE, "recompute", WG__SETTING_FLAG, 0, 0, true}, /* it changes no bit */
};

enum { SETTINGS = sizeof settings / sizeof settings[0] };

enum { KEY_OUT = WG__SET_END, KEY_RESUME, KEY_OVERWRITE, KEY_LOG, KEY_THREADS, KEY_SETTINGS };

/* Of every run: how it is trained, and the run itself. */
static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Training:", 3},
    {"steps", WG__SET_STEPS, "N", 0, "Train for N steps (1000; finetune: as --epochs says)", 0},
    {"batch", WG__SET_BATCH, "N", 0,
     "Sequences in a batch (32); for the Transformer, tokens of a side with their padding (4096)",
     0},
    {"accumulate", WG__SET_ACCUMULATE, "N", 0,
     "Batches whose gradients are averaged for a step (1)", 0},
    {"seq", WG__SET_SEQ, "N", 0,
     "Tokens in a sequence (128; squad 384); a GPT, LLaMA or GLM of a preset has as many "
     "positions, "
     "a Transformer is not trained on longer sentences",
     0},
    {"lr", WG__SET_LR, "X", 0,
     "Learning rate at its peak (0.001; T5 0.02; Transformer 0.0007; finetune 0.00005)", 0},
    {"schedule", WG__SET_SCHEDULE, "NAME", 0,
     "How the rate goes on after the warm-up: linear (the default for BERT) and cosine (for "
     "GLM, GPT, LLaMA and T5) fall to the last step, "
     "constant stays, wsd stays and falls in the last steps, noam (for the Transformer) falls as "
     "1 / sqrt(step), "
     "inverse-sqrt too, but is at its peak from the first step",
     0},
    {"warmup", WG__SET_WARMUP, "N", 0,
     "Steps in which the rate rises (a tenth of all; GPT and LLaMA 2000 at most, the Transformer "
     "4000)",
     0},
    {"final", WG__SET_FINAL, "X", 0,
     "Where linear, cosine and wsd end, as a fraction of the peak (0; GLM, GPT, LLaMA and T5 0.1)",
     0},
    {"decay-steps", WG__SET_DECAY_STEPS, "N", 0, "Steps in which wsd falls (a tenth of all)", 0},
    {"optimizer", WG__SET_OPTIMIZER, "NAME", 0,
     "adamw (the default), adam (for the Transformer), adafactor (for T5), sgd, lion, or muon: "
     "matrices but embeddings by Muon, "
     "scaled to the rate of AdamW, which takes the rest",
     0},
    {"momentum", WG__SET_MOMENTUM, "X", 0, "Momentum of sgd (0.9, Nesterov's) and muon (0.95)", 0},
    {"beta1", WG__SET_BETA1, "X", 0, "First decay of adam, adamw, muon's AdamW and lion (0.9)", 0},
    {"beta2", WG__SET_BETA2, "X", 0,
     "The second (0.999; lion 0.99; GPT and LLaMA 0.95; GLM and Transformer 0.98)", 0},
    {"weight-decay", WG__SET_WEIGHT_DECAY, "X", 0,
     "Weight decay (0.01; GLM, GPT and LLaMA 0.1; T5 and Transformer 0)", 0},
    {"clip", WG__SET_CLIP, "X", 0, "Greatest norm of the gradient (1); 0 does not clip", 0},
    {"seed", WG__SET_SEED, "N", 0, "Seed of weights, dropout and batches (0)", 0},
    {"ema", WG__SET_EMA, "X", 0,
     "Measure and keep as the model the exponential average of the weights, of decay X (0.999 "
     "looks back about 1000 steps); 0 keeps the weights themselves",
     0},
    {"recompute", WG__SET_RECOMPUTE, NULL, 0,
     "Keep of each layer what goes into it alone, and run it once more in backward: less memory, "
     "more time, the same run bit for bit",
     0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    {"settings", KEY_SETTINGS, "FILE.json", 0,
     "Read options from this file, {\"steps\": 200, \"lr\": 0.001}; what is said here rules", 0},
    {NULL, 0, NULL, 0, "The run:", 4},
    {"out", KEY_OUT, "RUN.h5", 0, "The checkpoint to write", 0},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on with the run that RUN.h5 holds; what is not said again stays as it was", 0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "Begin anew though RUN.h5 exists, which is lost", 0},
    {"save-every", WG__SET_SAVE_EVERY, "N", 0, "Save every N steps, beside once a minute", 0},
    {"eval-every", WG__SET_EVAL_EVERY, "N", 0, "Measure on held-out text every N steps (100)", 0},
    {"patience", WG__SET_PATIENCE, "N", 0,
     "Stop after N measurements on held-out text without a new lowest loss (0: never)", 0},
    {"keep-best", WG__SET_KEEP_BEST, NULL, 0,
     "Keep the run as it was at the lowest loss on held-out text, too, in RUN.best.h5", 0},
    {"keep-every", WG__SET_KEEP_EVERY, "N", 0,
     "Keep the run as it was after every N steps, too, in RUN.STEP.h5, as `wengert average' takes "
     "them",
     0},
    {"log", KEY_LOG, "FILE", 0, "Append one JSON object for each step", 0},
    WG__OPTIONS_PROFILE,
    WG__OPTION_JSON,
    {0},
};

/* ---- The command line ---- */

static const wg__setting *find_setting(int key) {
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].key == key)
            return &settings[i];
    return NULL;
}

const wg__setting *wg__setting_named(const char *name) {
    for (size_t i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    return NULL;
}

json_t *wg__setting_file(const char *path) {
    char *absolute = realpath(path, NULL);
    json_t *name = json_string(absolute ? absolute : path);
    free(absolute);
    return name;
}

static int64_t whole(double limit) {
    return limit >= 0x1p63 ? INT64_MAX : (int64_t)limit;
}

static json_t *number_list(const struct argp_state *state, const wg__setting *setting,
                           const char *text) {
    json_t *list = json_array();
    char *copy = strdup(text), *rest = copy;
    for (char *part; copy && (part = strsep(&rest, ","));)
        json_array_append_new(list, json_real(wg__cli_number(state, setting->name, part,
                                                             setting->low, setting->high)));
    free(copy);
    return list;
}

json_t *wg__setting_add_file(const json_t *list, const char *path) {
    json_t *longer = list ? json_copy((json_t *)list) : json_array();
    if (json_array_append_new(longer, wg__setting_file(path)) == 0)
        return longer;
    json_decref(longer);
    return NULL;
}

/* An object and one member more, as a new one. NULL for text that is not UTF-8. */
static json_t *add_pair(const struct argp_state *state, const wg__setting *setting,
                        const json_t *object, const char *text) {
    const char *middle = strchr(text, '=');
    if (!middle || middle == text || !middle[1])
        argp_error(state, "--%s: '%s' is not LABEL=TEXT", setting->name, text);
    json_t *longer = object ? json_copy((json_t *)object) : json_object();
    char *name = strndup(text, (size_t)(middle - text));
    if (name && json_object_get(longer, name))
        argp_error(state, "--%s: '%s' is said twice", setting->name, name);
    const int status = name ? json_object_set_new(longer, name, json_string(middle + 1)) : -1;
    free(name);
    if (status == 0)
        return longer;
    json_decref(longer);
    return NULL;
}

static json_t *setting_value(const struct argp_state *state, const wg__setting *setting,
                             const json_t *given, const char *text) {
    switch (setting->kind) {
    case WG__SETTING_INTEGER:
        return json_integer(
            wg__cli_integer(state, setting->name, text, whole(setting->low), whole(setting->high)));
    case WG__SETTING_NUMBER:
        return json_real(wg__cli_number(state, setting->name, text, setting->low, setting->high));
    case WG__SETTING_FILE:
        return wg__setting_file(text);
    case WG__SETTING_TEXT:
        return json_string(text);
    case WG__SETTING_NUMBERS:
        return number_list(state, setting, text);
    case WG__SETTING_FILES:
        return wg__setting_add_file(json_object_get(given, setting->name), text);
    case WG__SETTING_PAIRS:
        return add_pair(state, setting, json_object_get(given, setting->name), text);
    case WG__SETTING_FLAG:
        return json_true();
    }
    return NULL;
}

/* What excludes each other. */
static const char *const rivals[][2] = {{"steps", "epochs"}, {"preset", "config"}};
enum { RIVALS = sizeof rivals / sizeof rivals[0] };

const char *wg__setting_rival(const char *name) {
    for (int i = 0; i < RIVALS; i++)
        for (int side = 0; side < 2; side++)
            if (strcmp(name, rivals[i][side]) == 0)
                return rivals[i][1 - side];
    return NULL;
}

/* What the file of settings said of it, or of what it excludes, is of no account any more. */
static void overrule(wg__run_arguments *arguments, const char *name) {
    const char *names[] = {name, wg__setting_rival(name)};
    for (int i = 0; arguments->in_file && i < 2; i++)
        if (names[i] && json_object_del(arguments->in_file, names[i]) == 0)
            json_object_del(arguments->given, names[i]);
}

void wg__setting_give(struct argp_state *state, int key, const char *text,
                      wg__run_arguments *arguments) {
    const wg__setting *setting = find_setting(key);
    if (key == WG__SET_SCHEDULE && wg_schedule_find(text) < 0)
        argp_error(state,
                   "--schedule: there is no '%s'; linear, cosine, constant, wsd, noam and "
                   "inverse-sqrt are there",
                   text);
    if (key == WG__SET_OPTIMIZER && !wg_optimizer_known(text))
        argp_error(state,
                   "--optimizer: there is no '%s'; sgd, adam, adamw, adafactor, lion and muon are "
                   "there",
                   text);
    overrule(arguments, setting->name);
    json_t *value = setting_value(state, setting, arguments->given, text);
    if (!value)
        argp_error(state, "--%s: '%s' is not UTF-8", setting->name, text);
    json_object_set_new(arguments->given, setting->name, value);
}

/* What only one of the verbs takes. */
static const char *const of_pretrain[] = {"preset",         "config",     "init",
                                          "tokenizer",      "vocab-size", "corpus",
                                          "corpus-weights", "tokens",     "eval-target"};
static const char *const of_finetune[] = {"model", "train", "epochs"};

/* A file of settings has no options that the parser of the verb would not know. */
static void check_file(const wg__run_arguments *arguments) {
    const bool tunes = arguments->kind->mark;
    const char *const *others = tunes ? of_pretrain : of_finetune;
    const size_t count = tunes ? sizeof of_pretrain : sizeof of_finetune;
    for (size_t i = 0; i < count / sizeof *others; i++)
        if (json_object_get(arguments->in_file, others[i]))
            exit(wg__cli_fail("%s: \"%s\" is a setting of `wengert %s', not of `wengert %s'",
                              arguments->file, others[i], tunes ? "pretrain" : "finetune",
                              tunes ? "finetune" : "pretrain"));
}

/* What only some kinds of models take is not to be passed over in silence by the others. */
static void check_own(struct argp_state *state, const wg__run_arguments *arguments) {
    json_t *own = json_loads(arguments->kind->defaults, 0, NULL);
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].key >= WG__SET_OWN && json_object_get(arguments->given, settings[i].name) &&
            !json_object_get(own, settings[i].name))
            argp_error(state, "--%s is not for %s", settings[i].name, arguments->kind->name);
    json_decref(own);
}

static void check_arguments(struct argp_state *state, const wg__run_arguments *arguments) {
    const json_t *given = arguments->given;
    if (arguments->kind) {
        check_file(arguments);
        check_own(state, arguments);
    }
    if (arguments->show_batch && arguments->resume)
        argp_error(state,
                   "--show-batch shows the first batch of a run that begins, not of one that "
                   "is resumed");
    if (!arguments->out && !arguments->show_batch)
        argp_error(state, "--out RUN.h5 is missing: where shall the checkpoint go?");
    if (arguments->resume && arguments->overwrite)
        argp_error(state, "--resume and --overwrite exclude each other");
    if (json_object_get(given, "steps") && json_object_get(given, "epochs"))
        argp_error(state, "--steps and --epochs exclude each other");
}

static error_t parse(int key, char *text, struct argp_state *state) {
    wg__run_arguments *arguments = state->input;
    switch (key) {
    case KEY_OUT:
        arguments->out = text;
        return 0;
    case KEY_SETTINGS:
        wg__settings_read(text, arguments);
        return 0;
    case KEY_RESUME:
        arguments->resume = true;
        return 0;
    case KEY_OVERWRITE:
        arguments->overwrite = true;
        return 0;
    case KEY_LOG:
        arguments->log = text;
        return 0;
    case KEY_THREADS:
        arguments->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case WG__KEY_JSON:
        arguments->json = true;
        return 0;
    case WG__KEY_PROFILE:
        arguments->profiling.table = true;
        return 0;
    case WG__KEY_TRACE:
        arguments->profiling.trace = text;
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, arguments);
        return 0;
    default:
        if (!find_setting(key))
            return ARGP_ERR_UNKNOWN;
        wg__setting_give(state, key, text, arguments);
        return 0;
    }
}

const struct argp wg__run_options = {.options = options, .parser = parse};

void wg__run_arguments_clear(wg__run_arguments *arguments) {
    json_decref(arguments->given);
    json_decref(arguments->in_file);
}

/* ---- Merging ---- */

/* The defaults of all kinds of models. */
static json_t *defaults(void) {
    return json_pack("{s:i, s:i, s:i, s:f, s:s, s:f, s:i, s:i}", "steps", 1000, "batch", 32, "seq",
                     128, "lr", 1e-3, "optimizer", "adamw", "clip", 1.0, "seed", 0, "eval-every",
                     100);
}

/* Adds the defaults. How long a run is, is said in steps or in epochs: what was said rules. */
static void complete(json_t *merged, const char *kind_defaults) {
    json_t *common = defaults(), *own = json_loads(kind_defaults, 0, NULL);
    if (json_object_get(merged, "config"))
        json_object_del(own, "preset");
    if (json_object_get(merged, "steps"))
        json_object_del(own, "epochs");
    else if (json_object_get(merged, "epochs") || json_object_get(own, "epochs"))
        json_object_del(common, "steps");
    json_object_update_missing(merged, own);
    json_object_update_missing(merged, common);
    json_decref(common);
    json_decref(own);
}

void wg__settings_decide_steps(json_t *values, int64_t examples) {
    if (!json_object_get(values, "steps")) {
        const int64_t accumulate = wg__setting_integer(values, "accumulate");
        const double step_examples = (double)wg__setting_integer(values, "batch") *
                                     (double)(accumulate > 0 ? accumulate : 1);
        const double steps =
            ceil(wg__setting_number(values, "epochs") * (double)examples / step_examples);
        json_object_set_new(values, "steps",
                            json_integer((json_int_t)fmin(fmax(steps, 1), INT32_MAX)));
    }
    if (json_object_get(values, "warmup"))
        return;
    const int64_t tenth = wg__setting_integer(values, "steps") / 10;
    const int64_t longest =
        wg__setting_integer(values, "longest-warmup"); /* of this kind; 0: any */
    json_object_set_new(values, "warmup",
                        json_integer(longest > 0 && longest < tenth ? longest : tenth));
}

/* What was kept is no longer asked for where the other way to say it is used. */
static void forget_length(json_t *kept, const json_t *given) {
    if (json_object_get(given, "epochs"))
        json_object_del(kept, "steps");
    if (json_object_get(given, "steps"))
        json_object_del(kept, "epochs");
}

static int check_unchanged(const json_t *given, const json_t *kept, const char *path) {
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *name = settings[i].name;
        const json_t *new_value = json_object_get(given, name);
        const json_t *old_value = json_object_get(kept, name);
        if (settings[i].changeable || !new_value || json_equal(new_value, old_value))
            continue;
        char *text =
            old_value ? json_dumps(old_value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) : NULL;
        wg__cli_fail("--%s cannot change while a run goes on: %s was begun with %s", name, path,
                     text ? text : "another choice");
        free(text);
        return -1;
    }
    return 0;
}

json_t *wg__settings_merge(const json_t *given, const char *note, const char *path,
                           const char *kind_defaults) {
    json_t *merged = json_deep_copy(given);
    if (note) {
        json_t *kept = json_loads(note, 0, NULL);
        bool good = json_is_object(kept);
        if (!good)
            wg__cli_fail("%s: /train/note holds no settings of a run", path);
        else if (check_unchanged(given, kept, path) < 0)
            good = false;
        else {
            forget_length(kept, given);
            json_object_update_missing(merged, kept);
        }
        json_decref(kept);
        if (!good) {
            json_decref(merged);
            return NULL;
        }
    }
    complete(merged, kind_defaults);
    return merged;
}

const char *wg__setting_text(const json_t *values, const char *name) {
    return json_string_value(json_object_get(values, name));
}

int64_t wg__setting_integer(const json_t *values, const char *name) {
    return json_integer_value(json_object_get(values, name));
}

double wg__setting_number(const json_t *values, const char *name) {
    return json_number_value(json_object_get(values, name));
}

bool wg__setting_flag(const json_t *values, const char *name) {
    return json_is_true(json_object_get(values, name));
}
