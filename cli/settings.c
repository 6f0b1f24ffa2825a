/* The settings of a pre-training run: see settings.h. */
#include "cli/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

enum {
    KEY_CORPUS = WG__KEY_OWN,
    KEY_OUT,
    KEY_RESUME,
    KEY_OVERWRITE,
    KEY_LOG,
    KEY_THREADS,
    KEY_PRESET,
    KEY_CONFIG,
    KEY_TOKENIZER,
    KEY_VOCAB_SIZE,
    KEY_EVAL,
    KEY_STEPS,
    KEY_BATCH,
    KEY_SEQ,
    KEY_LR,
    KEY_SCHEDULE,
    KEY_WARMUP,
    KEY_FINAL,
    KEY_DECAY_STEPS,
    KEY_OPTIMIZER,
    KEY_MOMENTUM,
    KEY_BETA1,
    KEY_BETA2,
    KEY_WEIGHT_DECAY,
    KEY_CLIP,
    KEY_SEED,
    KEY_EVAL_EVERY,
    KEY_SAVE_EVERY,
    KEY_ACCUMULATE,
    KEY_EMA,
    KEY_PATIENCE,
    KEY_KEEP_BEST,
};

typedef enum setting_kind { TEXT, FILE_NAME, INTEGER, NUMBER, FLAG } setting_kind;

/* What is kept with the run. */
static const struct setting {
    int key;
    const char *name;
    setting_kind kind;
    double low, high;
    bool changeable; /* may differ when the run is resumed */
} settings[] = {
    {KEY_PRESET, "preset", TEXT, 0, 0, false},
    {KEY_CONFIG, "config", FILE_NAME, 0, 0, false},
    {KEY_TOKENIZER, "tokenizer", TEXT, 0, 0, false},
    {KEY_VOCAB_SIZE, "vocab-size", INTEGER, 1, INT32_MAX, false},
    {KEY_EVAL, "eval", FILE_NAME, 0, 0, true},
    {KEY_STEPS, "steps", INTEGER, 1, INFINITY, true},
    {KEY_BATCH, "batch", INTEGER, 1, INT32_MAX, false},
    {KEY_SEQ, "seq", INTEGER, 8, INT32_MAX, false},
    {KEY_LR, "lr", NUMBER, 0, 1000, false},
    {KEY_SCHEDULE, "schedule", TEXT, 0, 0, false},
    {KEY_WARMUP, "warmup", INTEGER, 0, INFINITY, false},
    {KEY_FINAL, "final", NUMBER, 0, 1, false},
    {KEY_DECAY_STEPS, "decay-steps", INTEGER, 1, INFINITY, false},
    {KEY_OPTIMIZER, "optimizer", TEXT, 0, 0, false},
    {KEY_MOMENTUM, "momentum", NUMBER, 0, 1, false},
    {KEY_BETA1, "beta1", NUMBER, 0, 1, false},
    {KEY_BETA2, "beta2", NUMBER, 0, 1, false},
    {KEY_WEIGHT_DECAY, "weight-decay", NUMBER, 0, 1000, false},
    {KEY_CLIP, "clip", NUMBER, 0, 1e9, false},
    {KEY_SEED, "seed", INTEGER, 0, INFINITY, false},
    {KEY_EVAL_EVERY, "eval-every", INTEGER, 1, INFINITY, true},
    {KEY_SAVE_EVERY, "save-every", INTEGER, 1, INFINITY, true},
    {KEY_ACCUMULATE, "accumulate", INTEGER, 1, INT32_MAX, false},
    {KEY_EMA, "ema", NUMBER, 0, 1, false},
    {KEY_PATIENCE, "patience", INTEGER, 0, INFINITY, true},
    {KEY_KEEP_BEST, "keep-best", FLAG, 0, 0, true},
};

enum { SETTINGS = sizeof settings / sizeof settings[0] };

/* The corpus is checked by its tokens when the run is resumed, so its files may have moved. */
static const char corpus_name[] = "corpus";

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Text:", 1},
    {"corpus", KEY_CORPUS, "FILE...", 0, "Train on these text files", 0},
    {"eval", KEY_EVAL, "FILE", 0,
     "Measure on this text (default: hold out a twentieth of the documents for BERT, the last "
     "tenth of each file for others)",
     0},
    {"tokenizer", KEY_TOKENIZER, "KIND|FILE", 0,
     "Learn a vocabulary from the corpus: wordpiece (the default for BERT), bpe (for others), char "
     "or byte; or read one: what `wengert tokenizer train' wrote, or a published file",
     0},
    {"vocab-size", KEY_VOCAB_SIZE, "N", 0, "Size of the vocabulary to learn (4096)", 0},
    {NULL, 0, NULL, 0, "Model:", 2},
    {"preset", KEY_PRESET, "NAME", 0,
     "bert-tiny (the default), bert-mini, bert-small, bert-base; gpt2-tiny (the default), "
     "gpt2-mini, gpt2-124m, gpt2-medium, gpt2-large, gpt2-xl; llama-260k (the default), llama-15m, "
     "llama-42m, "
     "llama-110m, llama-7b",
     0},
    {"config", KEY_CONFIG, "FILE.json", 0, "A published configuration instead of a preset", 0},
    {NULL, 0, NULL, 0, "Training:", 3},
    {"steps", KEY_STEPS, "N", 0, "Train for N steps (1000)", 0},
    {"batch", KEY_BATCH, "N", 0, "Sequences in a batch (32)", 0},
    {"accumulate", KEY_ACCUMULATE, "N", 0, "Batches whose gradients are averaged for a step (1)",
     0},
    {"seq", KEY_SEQ, "N", 0,
     "Tokens in a sequence (128); a GPT or LLaMA of a preset has as many positions", 0},
    {"lr", KEY_LR, "X", 0, "Learning rate at its peak (0.001)", 0},
    {"schedule", KEY_SCHEDULE, "NAME", 0,
     "How the rate goes on after the warm-up: linear (the default for BERT) and cosine (for "
     "others) fall to the last step, "
     "constant stays, wsd stays and falls in the last steps, noam falls as 1 / sqrt(step), "
     "inverse-sqrt too, but is at its peak from the first step",
     0},
    {"warmup", KEY_WARMUP, "N", 0, "Steps in which the rate rises (a tenth of all)", 0},
    {"final", KEY_FINAL, "X", 0,
     "Where linear, cosine and wsd end, as a fraction of the peak (0; GPT and LLaMA 0.1)", 0},
    {"decay-steps", KEY_DECAY_STEPS, "N", 0, "Steps in which wsd falls (a tenth of all)", 0},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0,
     "adamw (the default), adam, sgd, adafactor, lion, or muon: matrices but embeddings by Muon, "
     "scaled to the rate of AdamW, which takes the rest",
     0},
    {"momentum", KEY_MOMENTUM, "X", 0, "Momentum of sgd (0.9, Nesterov's) and muon (0.95)", 0},
    {"beta1", KEY_BETA1, "X", 0, "First decay of adam, adamw, muon's AdamW and lion (0.9)", 0},
    {"beta2", KEY_BETA2, "X", 0, "The second (0.999; lion 0.99; GPT and LLaMA 0.95)", 0},
    {"weight-decay", KEY_WEIGHT_DECAY, "X", 0, "Weight decay (0.01; GPT and LLaMA 0.1)", 0},
    {"clip", KEY_CLIP, "X", 0, "Greatest norm of the gradient (1); 0 does not clip", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of weights, dropout and batches (0)", 0},
    {"ema", KEY_EMA, "X", 0,
     "Measure and keep as the model the exponential average of the weights, of decay X (0.999 "
     "looks back about 1000 steps); 0 keeps the weights themselves",
     0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    {NULL, 0, NULL, 0, "The run:", 4},
    {"out", KEY_OUT, "RUN.h5", 0, "The checkpoint to write", 0},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on with the run that RUN.h5 holds; what is not said again stays as it was", 0},
    {"overwrite", KEY_OVERWRITE, NULL, 0, "Begin anew though RUN.h5 exists, which is lost", 0},
    {"save-every", KEY_SAVE_EVERY, "N", 0, "Save every N steps, beside once a minute", 0},
    {"eval-every", KEY_EVAL_EVERY, "N", 0, "Measure on held-out text every N steps (100)", 0},
    {"patience", KEY_PATIENCE, "N", 0,
     "Stop after N measurements on held-out text without a new lowest loss (0: never)", 0},
    {"keep-best", KEY_KEEP_BEST, NULL, 0,
     "Keep the run as it was at the lowest loss on held-out text, too, in RUN.best.h5", 0},
    {"log", KEY_LOG, "FILE", 0, "Append one JSON object for each step", 0},
    WG__OPTION_JSON,
    {0},
};

/* ---- The command line ---- */

static const struct setting *find_setting(int key) {
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].key == key)
            return &settings[i];
    return NULL;
}

/* The name by which a file is found from any folder; itself if it is not there at all. */
static json_t *file_name(const char *path) {
    char *absolute = realpath(path, NULL);
    json_t *name = json_string(absolute ? absolute : path);
    free(absolute);
    return name;
}

static int64_t whole(double limit) {
    return limit >= 0x1p63 ? INT64_MAX : (int64_t)limit;
}

static json_t *setting_value(const struct argp_state *state, const struct setting *setting,
                             const char *text) {
    switch (setting->kind) {
    case INTEGER:
        return json_integer(
            wg__cli_integer(state, setting->name, text, whole(setting->low), whole(setting->high)));
    case NUMBER:
        return json_real(wg__cli_number(state, setting->name, text, setting->low, setting->high));
    case FILE_NAME:
        return file_name(text);
    case TEXT:
        return json_string(text);
    case FLAG:
        return json_true();
    }
    return NULL;
}

static void add_corpus(wg__pretrain_arguments *arguments, const char *path) {
    json_t *corpus = json_object_get(arguments->given, corpus_name);
    if (!corpus) {
        corpus = json_array();
        json_object_set_new(arguments->given, corpus_name, corpus);
    }
    json_array_append_new(corpus, file_name(path));
}

static void set_setting(struct argp_state *state, int key, const char *text) {
    wg__pretrain_arguments *arguments = state->input;
    const struct setting *setting = find_setting(key);
    if (key == KEY_SCHEDULE && wg_schedule_find(text) < 0)
        argp_error(state,
                   "--schedule: there is no '%s'; linear, cosine, constant, wsd, noam and "
                   "inverse-sqrt are there",
                   text);
    if (key == KEY_OPTIMIZER && !wg_optimizer_known(text))
        argp_error(state,
                   "--optimizer: there is no '%s'; sgd, adam, adamw, adafactor, lion and muon are "
                   "there",
                   text);
    json_t *value = setting_value(state, setting, text);
    if (!value)
        argp_error(state, "--%s: '%s' is not UTF-8", setting->name, text);
    json_object_set_new(arguments->given, setting->name, value);
}

enum { MODELS_SIZE = 128 };

/* "bert, gpt, llama are there" */
static const char *list_models(char *list) {
    size_t length = 0;
    for (int i = 0; wg__model_kind_name(i); i++)
        length += (size_t)snprintf(list + length, MODELS_SIZE - length, "%s%s", i ? ", " : "",
                                   wg__model_kind_name(i));
    snprintf(list + length, MODELS_SIZE - length, " are there");
    return list;
}

static void check_arguments(struct argp_state *state, const wg__pretrain_arguments *arguments) {
    const json_t *given = arguments->given;
    char models[MODELS_SIZE];
    if (!arguments->kind)
        argp_error(state, "which model? %s", list_models(models));
    if (!arguments->out)
        argp_error(state, "--out RUN.h5 is missing: where shall the checkpoint go?");
    if (!arguments->resume && !json_object_get(given, corpus_name))
        argp_error(state, "--corpus FILE is missing: what shall the model read?");
    if (arguments->resume && arguments->overwrite)
        argp_error(state, "--resume and --overwrite exclude each other");
    if (json_object_get(given, "preset") && json_object_get(given, "config"))
        argp_error(state, "--preset and --config exclude each other");
}

static error_t parse(int key, char *text, struct argp_state *state) {
    wg__pretrain_arguments *arguments = state->input;
    char models[MODELS_SIZE];
    switch (key) {
    case KEY_CORPUS:
        add_corpus(arguments, text);
        return 0;
    case KEY_OUT:
        arguments->out = text;
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
    case ARGP_KEY_ARG: /* the model, then what a shell made of --corpus *.txt */
        if (arguments->kind)
            add_corpus(arguments, text);
        else if (!(arguments->kind = wg__model_kind_find(text)))
            argp_error(state, "there is no model '%s'; %s", text, list_models(models));
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, arguments);
        return 0;
    default:
        if (!find_setting(key))
            return ARGP_ERR_UNKNOWN;
        set_setting(state, key, text);
        return 0;
    }
}

void wg__settings_parse(int argc, char **argv, wg__pretrain_arguments *arguments) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL --corpus FILE... --out RUN.h5\nMODEL --resume --out RUN.h5",
        .doc =
            "Pretrains a model, which is bert, gpt or llama, on plain text and saves it, with all "
            "that is needed to go on.\v"
            "The text for BERT is prose as in a book, or one sentence a line with blank lines "
            "between documents. GPT and LLaMA take any text as it is, with lines \"<|endoftext|>\" "
            "between documents where it has several. Ctrl-C finishes the step and saves; --resume "
            "goes on, bit for bit as if "
            "nothing had happened.\n\n"
            "At the end the loss on held-out text is printed beside that of predicting each word "
            "or token by its frequency.",
    };
    arguments->given = json_object();
    wg__cli_parse(&parser, argc, argv, arguments);
}

/* ---- Merging ---- */

/* The defaults of all kinds of models. */
static json_t *defaults(void) {
    return json_pack("{s:i, s:i, s:i, s:f, s:s, s:f, s:i, s:i}", "steps", 1000, "batch", 32, "seq",
                     128, "lr", 1e-3, "optimizer", "adamw", "clip", 1.0, "seed", 0, "eval-every",
                     100);
}

/* Adds the defaults, and what the rest of the settings decides where nothing was said. */
static void complete(json_t *merged, const char *kind_defaults) {
    json_t *common = defaults(), *own = json_loads(kind_defaults, 0, NULL);
    if (json_object_get(merged, "config"))
        json_object_del(own, "preset");
    json_object_update_missing(merged, own);
    json_object_update_missing(merged, common);
    json_decref(common);
    json_decref(own);
    if (!json_object_get(merged, "warmup"))
        json_object_set_new(merged, "warmup",
                            json_integer(wg__setting_integer(merged, "steps") / 10));
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
            wg__cli_fail("%s: /train/note is not what `wengert pretrain' writes", path);
        else if (check_unchanged(given, kept, path) < 0)
            good = false;
        else
            json_object_update_missing(merged, kept);
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
