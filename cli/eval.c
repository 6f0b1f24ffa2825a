/* wengert eval: measures a checkpoint on text. */
#include <math.h>
#include <stdlib.h>

#include "cli/decoding.h"
#include "cli/output.h"
#include "data/score/score.h"
#include "base/internal.h"

/* Seconds that a rank waits for other ranks when all have the model and the text. */
enum { TIMEOUT = 600 };

/* Settings of fine-tuning that say which columns of a file are read. */
static const char *const columns[] = {"text-column", "text-pair-column", "label-column",
                                      "token-column", "tag-column"};
enum { COLUMNS = sizeof columns / sizeof *columns };

typedef struct arguments {
    const char *run;
    const char *suite; /* NULL: none */
    wg_setting_list corpus;
    int64_t batch, sequence; /* 0: the objective's usual numbers */
    int64_t seed;
    int dtype;                   /* of the weights; 0: f32 */
    const char *column[COLUMNS]; /* NULL: not given */
    wg_evaluation_options how;
    bool json;
} arguments;

/* sacreBLEU's names of wg_bleu_tokens. */
static const char *bleu_name(int tokens) {
    static const char *const names[] = {
        [WG_BLEU_13A] = "13a", [WG_BLEU_ZH] = "zh", [WG_BLEU_CHAR] = "char", NULL};
    return names[tokens];
}

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true,
     .missing = "RUN.h5 is missing: what shall be measured?", .argument = "RUN.h5"},
    {"corpus", WG_SETTING_TEXTS, WG__AT(corpus), .word = true, .excludes = "suite",
     .argument = "FILE...",
     .help =
         "Measure on these text files; of a fine-tuned model, on one file of the form that it "
         "was trained on; of a model that translates, on a source and its target, line by line"},
    {"suite", WG_SETTING_TEXT, WG__AT(suite), .excludes = "corpus", .argument = "FOLDER",
     .help = "Measure a pretrained model on the tasks of this folder, each a subfolder: pairs of "
             "sentences (*.jsonl), or task.json, which has the settings of `wengert finetune'"},
    {"batch", WG_SETTING_INTEGER, WG__AT(batch), .low = 1, .high = INT32_MAX, .argument = "N",
     .help = "Sequences or sentences in a batch (32; causal-lm: up to 2048 tokens)"},
    {"seq", WG_SETTING_INTEGER, WG__AT(sequence), .low = 8, .high = INT32_MAX, .argument = "N",
     .help = "Tokens in a sequence (128; squad 384; causal-lm 1024, or all that the model takes)"},
    {"by-document", WG_SETTING_FLAG, WG__AT(how.by_document),
     .help = "causal-lm: measure on the first sequence of each document, instead of on all of the "
             "text cut into sequences"},
    {"predictions", WG_SETTING_TEXT, WG__AT(how.predictions), .argument = "FILE",
     .help = "Write the predictions: of classify and cloze one label a line, of regression one "
             "number, of tokens CoNLL's columns of words, their tags and those predicted, of squad "
             "a JSON object of answers by question, as its official script reads it, of "
             "translation the translations, line by line"},
    {"lowercase", WG_SETTING_FLAG, WG__AT(how.lowercase),
     .help = "BLEU without regard to case, sacreBLEU's -lc"},
    {"tokenize", WG_SETTING_CHOICE, WG__AT(how.bleu_tokens), .choice = bleu_name,
     .argument = "NAME",
     .help = "Tokens of BLEU, by sacreBLEU's names: 13a (the default), zh (each Chinese character "
             "and the words beside them) or char (each character)"},
    {"text-column", WG_SETTING_TEXT, WG__AT(column[0]), .argument = "NAME",
     .help = "Of a fine-tuned model: the columns of FILE, as `finetune' takes them"},
    {"text-pair-column", WG_SETTING_TEXT, WG__AT(column[1]), .argument = "NAME", .help = ""},
    {"label-column", WG_SETTING_TEXT, WG__AT(column[2]), .argument = "NAME", .help = ""},
    {"token-column", WG_SETTING_TEXT, WG__AT(column[3]), .argument = "N", .help = ""},
    {"tag-column", WG_SETTING_TEXT, WG__AT(column[4]), .argument = "N", .help = ""},
    {"dtype", WG_SETTING_CHOICE, WG__AT(dtype), .choice = wg__weights_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE",
     .help = "Keep the weights as bf16, q8_0 or q4_0, as `generate --dtype' does"},
    {"seed", WG_SETTING_INTEGER, WG__AT(seed), .high = INFINITY, .argument = "N",
     .help = "Seed of the masks and pairs of masked-lm (0); with --suite, of fine-tuning"},
    WG__ROW_JSON(arguments),
};

static void check(const void *values) {
    const arguments *a = values;
    if (a->corpus.count == 0 && !a->suite)
        wg__cli_misuse("--corpus FILE is missing: on what text?");
}

/* Options that the objective does not take are refused, not passed over in silence. */
static int check_options(const wg_objective *objective, const arguments *a) {
    const wg_beam_options *beam = &a->how.beam;
    const bool translates = a->how.lowercase || wg__cli_given(&a->how.bleu_tokens) || beam->beam ||
                            beam->alpha || beam->max_length;
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
        if (a->column[i] && !wg__settings_find(&objective->settings, columns[i]))
            return wg_fail(WG_ERROR_STATE, a->run, "--%s is not for %s", columns[i],
                           objective->name);
    return 0;
}

/* Objectives that read files of their own measure on one; others on a dataset of all. */
static int evaluate_text(const arguments *a, const wg__trained *trained, wg_metrics *metrics) {
    const wg_objective *objective = trained->objective;
    /* The objective's options with the columns that were named; without any, its standard values.
     */
    void *own = NULL;
    for (int i = 0; i < COLUMNS; i++) {
        const wg_setting *row = wg__settings_find(&objective->settings, columns[i]);
        if (row && !own)
            own = wg__cli_calloc(1, objective->settings.size);
        if (row)
            *(const char **)((char *)own + row->offset) = a->column[i];
    }
    wg_training_setup setup = {
        .options = own,
        .model = &trained->model,
        .tokenizer = trained->tokenizer,
        .checkpoint = a->run,
        .batch = a->batch,
        .sequence = a->sequence,
        .seed = (uint64_t)a->seed,
        .evaluation = &a->how,
        .group = wg__cli_group,
    };
    wg_dataset *text = NULL;
    if (objective->finetunes && a->corpus.count != 1)
        wg_fail(WG_ERROR_ARGUMENT, "eval",
                "%s is fine-tuned and measured on one file at a time; %lld are given", a->run,
                (long long)a->corpus.count);
    else if (objective->finetunes)
        setup.held_out_path = a->corpus.items[0];
    else
        setup.held_out = text =
            wg_dataset_load((int)a->corpus.count, a->corpus.items, trained->tokenizer,
                            &(wg_dataset_options){.kind = objective->data.text});
    wg_training *training = text || setup.held_out_path ? wg_training_new(objective, &setup) : NULL;
    int status = wg_group_check(setup.group, training ? 0 : -1);
    if (status == 0) {
        wg__group_set_timeout(setup.group, TIMEOUT);
        status = wg_training_evaluate(training, metrics);
    }
    wg_training_free(training);
    wg_dataset_free(text);
    free(own);
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
                                                    .threads = (int)wg__threads_given,
                                                    .seed = wg__cli_given(&a->seed) ? a->seed : -1,
                                                    .json = a->json});
    free(run);
    if (status > 0)
        return 128 + wg__stop_signal;
    return status < 0 ? wg__cli_fail_pending() : 0;
}

int wg__verb_eval(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 --corpus FILE...\nRUN.h5 --corpus SOURCE TARGET\nRUN.h5 --suite FOLDER",
        .doc = "Measures a trained model on text.\v"
               "The loss is printed beside a baseline: predicting each masked word or next token "
               "by its frequency in the same text. Bits per byte of models that predict the next "
               "token are comparable between tokenizers. Translations are scored by BLEU as "
               "sacreBLEU computes it, with its signature.",
        .parts = {WG__PART(options, a), {&wg__beam_options, &a.how.beam}, WG__PART_THREADS},
        .check = check,
    };
    wg__cli_read(&usage, argc, argv);
    wg__group_set_timeout(wg__cli_group, 0); /* one rank may take long to read its text */
    if (wg__cli_agree(argc, argv) < 0)
        return wg__cli_fail_pending();
    if (a.suite && wg_group_size(wg__cli_group) > 1)
        return wg__cli_fail("--suite starts a process for each task; run it without mpirun");
    if (a.suite)
        return evaluate_suite(&a);
    if (wg__cli_check_distinct(a.how.predictions, 1, &a.run) != 0 ||
        wg__cli_check_distinct(a.how.predictions, a.corpus.count, a.corpus.items) != 0)
        return EXIT_FAILURE;
    wg_metrics metrics = {0};
    wg__trained trained = {0};
    const wg_objective *objective = wg_objective_of(a.run);
    const bool loads = objective && check_options(objective, &a) == 0 &&
                       wg__trained_load(&trained, objective, a.run) == 0 &&
                       wg__trained_quantize(&trained.model, a.dtype) == 0;
    int status = wg_group_check(wg__cli_group, loads ? 0 : -1);
    if (status == 0)
        status = wg__cli_agree_on_files(a.run, &a.corpus);
    if (status == 0)
        status = evaluate_text(&a, &trained, &metrics);
    wg__trained_clear(&trained);
    if (status < 0)
        return wg__cli_fail_pending();
    if (!wg__cli_leads())
        return 0;
    if (a.json)
        wg__print_json(JSON_INDENT(2), wg__json_metrics(objective->metrics, &metrics));
    else
        objective->print(&metrics, stdout);
    return 0;
}
