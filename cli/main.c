/* wengert VERB ARGUMENT...: finds the verb and runs it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "config.h"

/* In the order of `wengert --help`. */
static const wg__verb verbs[] = {
    {"pretrain", "train a model on plain text", wg__verb_pretrain},
    {"finetune", "train a pretrained model for a task", wg__verb_finetune},
    {"eval", "measure a trained model on text", wg__verb_eval},
    {"score", "measure how likely a model finds texts", wg__verb_score},
    {"embed", "turn each line of a text into a vector", wg__verb_embed},
    {"fill", "fill each [MASK] of a text", wg__verb_fill},
    {"generate", "continue a text", wg__verb_generate},
    {"translate", "translate sentences", wg__verb_translate},
    {"average", "average the weights of checkpoints", wg__verb_average},
    {"convert", "turn a model into another published format", wg__verb_convert},
    {"info", "tell what a checkpoint holds", wg__verb_info},
    {"plot", "draw the history of a training", wg__verb_plot},
    {"tokenizer", "learn a vocabulary, text to ids and back", wg__verb_tokenizer},
    {"corpus", "check a training text", wg__verb_corpus},
    {"gradcheck", "check the gradients of ops", wg__verb_gradcheck},
    {"doctor", "tell what this machine gives, and what to change", wg__verb_doctor},
    {"bench", "time the library beside the machine's own speed", wg__verb_bench},
    {NULL, NULL, NULL},
};

/* Read by argp, so it is not hidden. */
WG_API const char *argp_program_version = PACKAGE_STRING;

/* Results that could not be written are a failure: a full disk, a closed pipe. */
static int finish_output(int code) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    int failed = wg__cli_fail("cannot write the results: %s", strerror(errno));
    return code ? code : failed;
}

int main(int argc, char **argv) {
    static const wg__verb_table table = {
        .prefix = "wengert",
        .noun = "verb",
        .title = "Verbs",
        .args_doc = "VERB [ARGUMENT...]",
        .doc = "Trains and runs transformers on the CPU, and checks gradients.\v",
        .verbs = verbs,
    };
    argv[0] = "wengert"; /* also under the name of a build's wrapper */
    wg__cli_begin_completion(&argc, &argv);
    const wg__verb *verb = wg__cli_verb(&argc, &argv, &table);
    return finish_output(verb->run(argc, argv));
}
