/* wengert pretrain: text in, a trained model out. */
#include <stdio.h>

#include "cli/run.h"
#include "data/dataset/dataset.h"

enum { KEY_SHOW_BATCH = WG__KEY_VERB };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Text:", 1},
    {"corpus", WG__SET_CORPUS, "FILE...", 0,
     "Train on these text files, or token files of `wengert tokenizer pack'; the Transformer on a "
     "source and its target, line by line (or several such pairs of files)",
     0},
    {"corpus-weights", WG__SET_CORPUS_WEIGHTS, "X,X...", 0,
     "How much to take from each of these files, for the Transformer each two, in proportion, "
     "whatever their sizes",
     0},
    {"tokens", WG__SET_TOKENS, "FILE.h5", 0,
     "Keep the corpus's tokens here, and use them again while texts and tokenizer are the same "
     "(default: a temporary file in $TMPDIR)",
     0},
    {"eval", WG__SET_EVAL, "FILE", 0,
     "Measure on this text, for the Transformer SOURCE TARGET (default: hold out a twentieth of "
     "the documents for BERT and GLM, the last twentieth of the pairs for the Transformer, the "
     "last "
     "tenth of each file for others)",
     0},
    {"tokenizer", WG__SET_TOKENIZER, "KIND|FILE", 0,
     "Learn a vocabulary from the corpus: wordpiece (the default for BERT and GLM), bpe (for "
     "others), char "
     "or byte; or read one: what `wengert tokenizer train' wrote, or a published file",
     0},
    {"vocab-size", WG__SET_VOCAB_SIZE, "N", 0, "Size of the vocabulary to learn (4096)", 0},
    {"masked-share", WG__SET_MASKED_SHARE, "X", 0, "GLM: the share of a text that is blank (0.15)",
     0},
    {"span-mean", WG__SET_SPAN_MEAN, "X", 0,
     "GLM: the mean of the Poisson distribution of the lengths of spans (3)", 0},
    {"sentence-share", WG__SET_SENTENCE_SHARE, "X", 0,
     "GLM: the share of texts in which whole sentences are blank, [sMASK] (0.25)", 0},
    {"document-share", WG__SET_DOCUMENT_SHARE, "X", 0,
     "GLM: the share of texts whose end is one blank, [gMASK], from which it learns to continue; "
     "what is left has spans, [MASK] (0.25)",
     0},
    {"show-batch", KEY_SHOW_BATCH, NULL, 0,
     "GLM: print the first batch as tables of tokens, both their positions, what they predict and "
     "whom they see, and stop",
     0},
    {NULL, 0, NULL, 0, "Model:", 2},
    {"preset", WG__SET_PRESET, "NAME", 0,
     "bert-tiny (the default), bert-mini, bert-small, bert-base; glm-tiny (the default), "
     "glm-small, glm-base, glm-large; gpt2-tiny (the default), "
     "gpt2-mini, gpt2-124m, gpt2-medium, gpt2-large, gpt2-xl; llama-260k (the default), llama-15m, "
     "llama-42m, "
     "llama-110m, llama-7b; t5-tiny (the default), t5-mini, t5-small, t5-base, and t5-v1_1-tiny, "
     "t5-v1_1-mini, t5-v1_1-small with GeGLU and a head of its own; transformer-tiny (the "
     "default), "
     "transformer-mini, transformer-base, transformer-big",
     0},
    {"config", WG__SET_CONFIG, "FILE.json", 0, "A published configuration instead of a preset", 0},
    {"init", WG__SET_INIT, "FILE.h5", 0,
     "Begin with the weights, the sizes and the tokenizer of a checkpoint, such as `wengert "
     "convert' makes of a published model",
     0},
    {0},
};

typedef struct arguments {
    wg__run_arguments run;
    bool target_due; /* what comes next is the target of --eval SOURCE */
} arguments;

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

static void check_arguments(struct argp_state *state, const wg__run_arguments *arguments) {
    const json_t *given = arguments->given;
    char models[MODELS_SIZE];
    if (!arguments->kind)
        argp_error(state, "which model? %s", list_models(models));
    if (!arguments->resume && !json_object_get(given, "corpus"))
        argp_error(state, "--corpus FILE is missing: what shall the model read?");
    if (json_object_get(given, "preset") && json_object_get(given, "config"))
        argp_error(state, "--preset and --config exclude each other");
    static const char *const said_by_init[] = {"preset", "config", "tokenizer", "vocab-size"};
    for (size_t i = 0; i < sizeof said_by_init / sizeof said_by_init[0]; i++)
        if (json_object_get(given, "init") && json_object_get(given, said_by_init[i]))
            argp_error(state, "--init and --%s exclude each other", said_by_init[i]);
    const char *eval = json_string_value(json_object_get(given, "eval"));
    if (arguments->kind->takes_pairs && eval && !json_object_get(given, "eval-target") &&
        !wg_dataset_is_token_file(eval))
        argp_error(state, "--eval takes SOURCE and TARGET, or a token file, for %s",
                   arguments->kind->name);
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    wg__run_arguments *run = &a->run;
    char models[MODELS_SIZE];
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = run;
        return 0;
    case KEY_SHOW_BATCH:
        run->show_batch = true;
        return 0;
    case WG__SET_CORPUS:
        a->target_due = false;
        wg__setting_give(state, key, text, run);
        return 0;
    case WG__SET_EVAL:
        a->target_due = run->kind && run->kind->takes_pairs && !wg_dataset_is_token_file(text);
        wg__setting_give(state, key, text, run);
        return 0;
    case WG__SET_CORPUS_WEIGHTS:
    case WG__SET_TOKENS:
    case WG__SET_MASKED_SHARE:
    case WG__SET_SPAN_MEAN:
    case WG__SET_SENTENCE_SHARE:
    case WG__SET_DOCUMENT_SHARE:
    case WG__SET_TOKENIZER:
    case WG__SET_VOCAB_SIZE:
    case WG__SET_PRESET:
    case WG__SET_CONFIG:
    case WG__SET_INIT:
        wg__setting_give(state, key, text, run);
        return 0;
    case ARGP_KEY_ARG: /* the model, then what a shell made of --corpus *.txt */
        if (a->target_due)
            wg__setting_give(state, WG__SET_EVAL_TARGET, text, run);
        else if (run->kind)
            wg__setting_give(state, WG__SET_CORPUS, text, run);
        else if (!(run->kind = wg__model_kind_find(text)))
            argp_error(state, "there is no model '%s'; %s", text, list_models(models));
        a->target_due = false;
        return 0;
    case ARGP_KEY_END:
        check_arguments(state, run);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int wg__verb_pretrain(int argc, char **argv) {
    static const struct argp_child children[] = {{&wg__run_options, 0, NULL, 0}, {0}};
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL --corpus FILE... --out RUN.h5\nMODEL --resume --out RUN.h5",
        .doc =
            "Pretrains a model, which is bert, glm, gpt, llama, t5 or transformer, on plain text "
            "and saves it, with all that is needed to go on.\v"
            "The text for BERT and GLM is prose as in a book, or one sentence a line with blank "
            "lines between documents. GPT, LLaMA and T5 take any text as it is, with lines "
            "\"<|endoftext|>\" between documents where it has several. The Transformer learns to "
            "translate from two files, of which each line has its translation in the same line of "
            "the other; one vocabulary is learnt from both. Ctrl-C finishes the step and saves; "
            "--resume "
            "goes on, bit for bit as if "
            "nothing had happened.\n\n"
            "At the end the loss on held-out text is printed beside that of predicting each word "
            "or token by its frequency.",
        .children = children,
    };
    arguments a = {.run = {.given = json_object()}};
    wg__cli_parse_in_order(&parser, argc, argv, &a);
    int code = wg__run(&a.run);
    wg__run_arguments_clear(&a.run);
    return code;
}
