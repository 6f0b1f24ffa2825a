/* wengert eval: measures a checkpoint on text. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/beam.h"
#include "cli/model_kind.h"
#include "cli/results.h"

enum {
    KEY_CORPUS = WG__KEY_OWN,
    KEY_BATCH,
    KEY_SEQ,
    KEY_SEED,
    KEY_DTYPE,
    KEY_THREADS,
    KEY_BY_DOCUMENT,
    KEY_PREDICTIONS,
    KEY_LOWERCASE
};

typedef struct arguments {
    wg__measuring asked;
    const char **corpus; /* as many as there are arguments at most */
    int threads;         /* 0: as the library finds it */
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"corpus", KEY_CORPUS, "FILE...", 0,
     "Measure on these text files; of a fine-tuned model, on one file of the form that it was "
     "trained on, of a Transformer on a source and its target, line by line",
     0},
    {"batch", KEY_BATCH, "N", 0,
     "Sequences in a batch (32 of BERT, and sentences of a Transformer, else as many as have 2048 "
     "tokens)",
     0},
    {"seq", KEY_SEQ, "N", 0,
     "Tokens in a sequence (128 of BERT, squad 384, else 1024, or all that the model takes)", 0},
    {"by-document", KEY_BY_DOCUMENT, NULL, 0,
     "Measure GPT or LLaMA on the first sequence of each document, instead of on all of the text "
     "cut into sequences",
     0},
    {"predictions", KEY_PREDICTIONS, "FILE", 0,
     "Write what the model predicts: of classify and cloze one label a line, of squad a JSON "
     "object of answers by question, as its official script reads it, of a Transformer the "
     "translations, line by line",
     0},
    {"lowercase", KEY_LOWERCASE, NULL, 0, "BLEU without regard to case, sacreBLEU's -lc", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "Keep the weights as bf16, q8_0 or q4_0, as `generate --dtype' does (f32)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of what BERT sees masked and paired (0)", 0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    WG__OPTION_JSON,
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->asked.beam;
        return 0;
    case KEY_CORPUS:
        a->corpus[a->asked.corpus_count++] = text;
        return 0;
    case KEY_BATCH:
        a->asked.batch = wg__cli_integer(state, "batch", text, 1, INT32_MAX);
        return 0;
    case KEY_SEQ:
        a->asked.sequence = wg__cli_integer(state, "seq", text, 8, INT32_MAX);
        return 0;
    case KEY_BY_DOCUMENT:
        a->asked.by_document = true;
        return 0;
    case KEY_PREDICTIONS:
        a->asked.predictions = text;
        return 0;
    case KEY_LOWERCASE:
        a->asked.lowercase = true;
        return 0;
    case KEY_DTYPE:
        a->asked.quantization = wg__cli_quantization(state, text);
        return 0;
    case KEY_SEED:
        a->asked.seed = (uint64_t)wg__cli_integer(state, "seed", text, 0, INT64_MAX);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG: /* the checkpoint, then what a shell made of --corpus *.txt */
        if (a->asked.run)
            a->corpus[a->asked.corpus_count++] = text;
        else
            a->asked.run = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->asked.run)
            argp_error(state, "RUN.h5 is missing: what shall be measured?");
        if (a->asked.corpus_count == 0)
            argp_error(state, "--corpus FILE is missing: on what text?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* What is asked of other models is not to be passed over in silence. */
static int measure(const wg__model_kind *kind, const wg__measuring *asked, wg_metrics *metrics) {
    const wg_beam_options *beam = &asked->beam;
    const bool of_translations = asked->lowercase || beam->beam || beam->alpha ||
                                 beam->no_length_penalty || beam->max_length;
    if (asked->predictions && !kind->mark && !kind->takes_pairs)
        return wg_fail(WG_ERROR_STATE, asked->run,
                       "--predictions are of fine-tuned models and of those that translate; it "
                       "holds a %s model",
                       kind->name);
    if (of_translations && !kind->takes_pairs)
        return wg_fail(WG_ERROR_STATE, asked->run,
                       "it holds a %s model, which does not translate; --beam, --length-penalty, "
                       "--max-length and --lowercase are for one that does",
                       kind->name);
    return wg__measure(kind, asked, metrics);
}

int wg__verb_eval(int argc, char **argv) {
    static const struct argp_child children[] = {{&wg__beam_options, 0, NULL, 0}, {0}};
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --corpus FILE...\nRUN.h5 --corpus SOURCE TARGET",
        .doc =
            "Measures a trained model on text.\v"
            "The loss is printed beside that of predicting each masked word or next token by its "
            "frequency in that very text. Of a model that predicts the next token, bits per "
            "byte can be held against those of models with other tokenizers. What a "
            "Transformer translates is scored by BLEU as sacreBLEU has it, whose signature is "
            "printed.",
        .children = children,
    };
    arguments a = {.asked.quantization = -1, .corpus = calloc((size_t)argc, sizeof *a.corpus)};
    wg__cli_parse(&parser, argc, argv, &a);
    if (a.threads)
        wg_set_threads(a.threads);
    a.asked.corpus = a.corpus;
    wg_metrics metrics = {0};
    const wg__model_kind *kind = wg__model_kind_of(a.asked.run);
    int result = kind ? measure(kind, &a.asked, &metrics) : -1;
    free(a.corpus);
    if (result < 0)
        return wg__cli_fail_pending();
    if (a.json)
        wg__print_json(kind->results(&metrics));
    else
        kind->print(&metrics);
    return 0;
}
