/* wengert eval: measures a checkpoint on text. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/decoding.h"
#include "cli/output.h"
#include "cli/suite.h"
#include "cli/trained.h"

enum {
    KEY_CORPUS = WG__KEY_OWN,
    KEY_BATCH,
    KEY_SEQ,
    KEY_SEED,
    KEY_DTYPE,
    KEY_THREADS,
    KEY_BY_DOCUMENT,
    KEY_PREDICTIONS,
    KEY_LOWERCASE,
    KEY_TOKENIZE,
    KEY_SUITE,
    KEY_COLUMN /* and those after it: a name of `columns` each */
};

/* Seconds that a rank waits for the others when all have the model and the text. */
enum { TIMEOUT = 600 };

/* Settings of fine-tuning that say which columns of a file are read. */
static const char *const columns[] = {"text-column", "text-pair-column", "label-column",
                                      "token-column", "tag-column"};
enum { COLUMNS = sizeof columns / sizeof *columns };

typedef struct arguments {
    const char *run;
    const char *suite;   /* NULL: none */
    const char **corpus; /* room for as many as there are arguments */
    int corpus_count;
    int64_t batch, sequence; /* 0: the objective's usual numbers */
    uint64_t seed;
    bool seed_given;
    int quantization;            /* of the weights; -1: f32 */
    int threads;                 /* 0: as the library finds it */
    const char *column[COLUMNS]; /* NULL: not given */
    wg_evaluation_options how;
    bool tokenize; /* --tokenize was given */
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"corpus", KEY_CORPUS, "FILE...", 0,
     "Measure on these text files; of a fine-tuned model, on one file of the form that it was "
     "trained on; of a model that translates, on a source and its target, line by line",
     0},
    {"suite", KEY_SUITE, "FOLDER", 0,
     "Measure a pretrained model on the tasks of this folder, each a folder of its own: pairs of "
     "sentences (*.jsonl), or task.json, which has the settings of `wengert finetune'",
     0},
    {"batch", KEY_BATCH, "N", 0,
     "Sequences or sentences in a batch (32; causal-lm: as many as have 2048 tokens)", 0},
    {"seq", KEY_SEQ, "N", 0,
     "Tokens in a sequence (128; squad 384; causal-lm 1024, or all that the model takes)", 0},
    {"by-document", KEY_BY_DOCUMENT, NULL, 0,
     "causal-lm: measure on the first sequence of each document, instead of on all of the text "
     "cut into sequences",
     0},
    {"predictions", KEY_PREDICTIONS, "FILE", 0,
     "Write what the model predicts: of classify and cloze one label a line, of regression one "
     "number, of tokens CoNLL's columns of words, their tags and those predicted, of squad a JSON "
     "object of answers by question, as its official script reads it, of translation the "
     "translations, line by line",
     0},
    {"lowercase", KEY_LOWERCASE, NULL, 0, "BLEU without regard to case, sacreBLEU's -lc", 0},
    {"tokenize", KEY_TOKENIZE, "NAME", 0,
     "Tokens of BLEU, by sacreBLEU's names: 13a (the default), zh (each Chinese character and the "
     "words beside them) or char (each character)",
     0},
    {"text-column", KEY_COLUMN, "NAME", 0,
     "Of a fine-tuned model: the columns of FILE, as `finetune' takes them", 0},
    {"text-pair-column", KEY_COLUMN + 1, "NAME", 0, NULL, 0},
    {"label-column", KEY_COLUMN + 2, "NAME", 0, NULL, 0},
    {"token-column", KEY_COLUMN + 3, "N", 0, NULL, 0},
    {"tag-column", KEY_COLUMN + 4, "N", 0, NULL, 0},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "Keep the weights as bf16, q8_0 or q4_0, as `generate --dtype' does (f32)", 0},
    {"seed", KEY_SEED, "N", 0,
     "Seed of the masks and pairs of masked-lm (0); with --suite, of fine-tuning", 0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    WG__OPTION_JSON,
    {0},
};

static int tokens_of(struct argp_state *state, const char *name) {
    const int tokens = wg_bleu_tokens_find(name);
    if (tokens < 0)
        argp_error(state, "--tokenize is '%s'; it must be 13a, zh or char", name);
    return tokens;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->how.beam;
        return 0;
    case KEY_CORPUS:
        a->corpus[a->corpus_count++] = text;
        return 0;
    case KEY_BATCH:
        a->batch = wg__cli_integer(state, "batch", text, 1, INT32_MAX);
        return 0;
    case KEY_SEQ:
        a->sequence = wg__cli_integer(state, "seq", text, 8, INT32_MAX);
        return 0;
    case KEY_BY_DOCUMENT:
        a->how.by_document = true;
        return 0;
    case KEY_PREDICTIONS:
        a->how.predictions = text;
        return 0;
    case KEY_LOWERCASE:
        a->how.lowercase = true;
        return 0;
    case KEY_TOKENIZE:
        a->how.bleu_tokens = tokens_of(state, text);
        a->tokenize = true;
        return 0;
    case KEY_DTYPE:
        a->quantization = wg__cli_quantization(state, text);
        return 0;
    case KEY_SUITE:
        a->suite = text;
        return 0;
    case KEY_SEED:
        a->seed_given = true;
        a->seed = (uint64_t)wg__cli_integer(state, "seed", text, 0, INT64_MAX);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG: /* the checkpoint, then the files that a shell made of --corpus *.txt */
        if (a->run)
            a->corpus[a->corpus_count++] = text;
        else
            a->run = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->run)
            argp_error(state, "RUN.h5 is missing: what shall be measured?");
        if (a->corpus_count == 0 && !a->suite)
            argp_error(state, "--corpus FILE is missing: on what text?");
        if (a->corpus_count > 0 && a->suite)
            argp_error(state, "--corpus and --suite exclude each other");
        return 0;
    default:
        if (key < KEY_COLUMN || key >= KEY_COLUMN + COLUMNS)
            return ARGP_ERR_UNKNOWN;
        a->column[key - KEY_COLUMN] = text;
        return 0;
    }
}

/* The objective's row for columns[i]; NULL: it has none. */
static const wg_setting *column_row(const wg_objective *objective, int i) {
    for (int r = 0; r < objective->settings.count; r++)
        if (strcmp(objective->settings.rows[r].name, columns[i]) == 0)
            return &objective->settings.rows[r];
    return NULL;
}

/* Options that the objective does not take are refused, not passed over in silence. */
static int check_options(const wg_objective *objective, const arguments *a) {
    const wg_beam_options *beam = &a->how.beam;
    const bool translates =
        a->how.lowercase || a->tokenize || beam->beam || beam->alpha || beam->max_length;
    const wg_model_type *type = wg_model_type_of(a->run);
    if (!type)
        return -1;
    if (a->how.predictions && !(objective->evaluation & WG_EVALUATES_PREDICTIONS))
        return wg_fail(WG_ERROR_STATE, a->run,
                       "--predictions are of fine-tuned models and of those that translate; it "
                       "holds a %s model",
                       type->name);
    if (translates && !(objective->evaluation & WG_EVALUATES_TRANSLATIONS))
        return wg_fail(WG_ERROR_STATE, a->run,
                       "it holds a %s model, which does not translate; --beam, --length-penalty, "
                       "--max-length, --lowercase and --tokenize are for one that does",
                       type->name);
    if (a->how.by_document && !(objective->evaluation & WG_EVALUATES_BY_DOCUMENT))
        return wg_fail(WG_ERROR_STATE, a->run,
                       "it holds a %s model; --by-document is for one that predicts the next token",
                       type->name);
    for (int i = 0; i < COLUMNS; i++)
        if (a->column[i] && !column_row(objective, i))
            return wg_fail(WG_ERROR_STATE, a->run, "--%s is not for %s", columns[i],
                           objective->name);
    return 0;
}

/* The objective's options with the columns that were named, freed by free; NULL where it has no
 * such columns, and takes its standard values. */
static void *column_options(const wg_objective *objective, const arguments *a) {
    void *values = NULL;
    for (int i = 0; i < COLUMNS; i++) {
        const wg_setting *row = column_row(objective, i);
        if (row && !values && !(values = wg__cli_calloc(1, objective->settings.size)))
            wg_fail(WG_ERROR_MEMORY, "eval", "no memory for options");
        if (row && values)
            *(const char **)((char *)values + row->offset) = a->column[i];
    }
    return values;
}

/* Objectives that read files of their own measure on one; others on a dataset of all. */
static int evaluate_text(const arguments *a, const wg__trained *trained, wg_metrics *metrics) {
    const wg_objective *objective = trained->objective;
    void *own = column_options(objective, a);
    wg_training_setup setup = {
        .options = own,
        .model = &trained->model,
        .tokenizer = trained->tokenizer,
        .checkpoint = a->run,
        .batch = a->batch,
        .sequence = a->sequence,
        .seed = a->seed,
        .evaluation = &a->how,
        .group = wg__cli_group(),
    };
    wg_dataset *text = NULL;
    if (objective->finetunes && a->corpus_count != 1)
        wg_fail(WG_ERROR_ARGUMENT, "eval",
                "%s is fine-tuned and measured on one file at a time; %d are given", a->run,
                a->corpus_count);
    else if (objective->finetunes)
        setup.held_out_path = a->corpus[0];
    else
        setup.held_out = text = wg_dataset_load(a->corpus_count, a->corpus, trained->tokenizer,
                                                &(wg_dataset_options){.kind = objective->text});
    wg_training *training = text || setup.held_out_path ? wg_training_new(objective, &setup) : NULL;
    int status = wg_group_check(setup.group, training ? 0 : -1);
    if (status == 0) {
        wg_group_set_timeout(setup.group, TIMEOUT);
        status = wg_training_evaluate(training, metrics);
    }
    wg_training_free(training);
    wg_dataset_free(text);
    free(own);
    return status;
}

/* The model as the ranks use it. */
static int load(const wg_objective *objective, const arguments *a, wg__trained *trained) {
    if (!objective || check_options(objective, a) < 0 ||
        wg__trained_load(trained, objective, a->run) < 0)
        return -1;
    return a->quantization >= 0
               ? wg_module_quantize(trained->model.module, (wg_quantization)a->quantization)
               : 0;
}

/* All ranks have the same files. */
static int agree(const arguments *a) {
    int status = wg__cli_agree_on_file(a->run);
    for (int i = 0; status == 0 && i < a->corpus_count; i++)
        status = wg__cli_agree_on_file(a->corpus[i]);
    return status;
}

static int evaluate(const wg_objective *objective, const arguments *a, wg_metrics *metrics) {
    wg__trained trained = {0};
    int status = wg_group_check(wg__cli_group(), load(objective, a, &trained));
    if (status == 0)
        status = agree(a);
    if (status == 0)
        status = evaluate_text(a, &trained, metrics);
    wg__trained_clear(&trained);
    return status;
}

/* The tasks run in other folders, so that the checkpoint is named by its whole path. */
static int evaluate_suite(const arguments *a) {
    char *run = realpath(a->run, NULL);
    const wg_objective *objective = wg_objective_of(a->run);
    int status = -1;
    if (objective && objective->finetunes)
        wg_fail(WG_ERROR_STATE, a->run,
                "it is fine-tuned for --task %s; --suite takes a pretrained model, which each task "
                "fine-tunes",
                objective->name);
    else if (objective && !run)
        wg_fail(WG_ERROR_MEMORY, "eval", "no memory for a path");
    else if (objective)
        status = wg__suite_run(&(wg__suite_options){.run = run,
                                                    .folder = a->suite,
                                                    .threads = a->threads,
                                                    .seed = a->seed_given ? (int64_t)a->seed : -1,
                                                    .json = a->json});
    free(run);
    if (status > 0)
        return 128 + *wg__stop_signal();
    return status < 0 ? wg__cli_fail_pending() : 0;
}

int wg__verb_eval(int argc, char **argv) {
    static const struct argp_child children[] = {{&wg__beam_options, 0, NULL, 0}, {0}};
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --corpus FILE...\nRUN.h5 --corpus SOURCE TARGET\nRUN.h5 --suite FOLDER",
        .doc = "Measures a trained model on text.\v"
               "The loss is printed beside that of predicting each masked word or next token by "
               "its frequency in that very text. Of a model that predicts the next token, bits per "
               "byte can be compared with those of models with other tokenizers. Translations are "
               "scored by BLEU as sacreBLEU computes it, whose signature is printed.",
        .children = children,
    };
    arguments a = {.quantization = -1, .corpus = wg__cli_calloc((size_t)argc, sizeof *a.corpus)};
    wg__cli_parse(&parser, argc, argv, &a);
    wg_group_set_timeout(wg__cli_group(), 0); /* one rank may take long to read its text */
    if (wg__cli_agree(argc, argv) < 0)
        return wg__cli_fail_pending();
    wg__cli_use_threads(a.threads);
    if (a.suite) {
        const int code =
            wg_group_size(wg__cli_group()) > 1
                ? wg__cli_fail("--suite starts a process for each task; run it without "
                               "mpirun")
                : evaluate_suite(&a);
        free(a.corpus);
        return code;
    }
    if (wg__cli_check_apart(a.how.predictions, 1, &a.run) != 0 ||
        wg__cli_check_apart(a.how.predictions, a.corpus_count, a.corpus) != 0) {
        free(a.corpus);
        return EXIT_FAILURE;
    }
    wg_metrics metrics = {0};
    const wg_objective *objective = wg_objective_of(a.run);
    const int status = evaluate(objective, &a, &metrics);
    free(a.corpus);
    if (status < 0)
        return wg__cli_fail_pending();
    if (!wg__cli_leads())
        return 0;
    if (a.json)
        wg__print_json(wg__json_metrics(objective->metrics, &metrics));
    else
        objective->print(&metrics, stdout);
    return 0;
}
