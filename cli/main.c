/* wengert VERB ARGUMENT...: finds the verb and runs it. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "tensor/kernels.h"

/* In the order of `wengert --help`. */
static const wg__verb verbs[] = {
    {"pretrain", "train a model on plain text", wg__verb_train, true},
    {"finetune", "train a pretrained model for a task", wg__verb_train, true},
    {"eval", "measure a trained model on text", wg__verb_eval, true},
    {"score", "measure how likely a model finds texts", wg__verb_score, true},
    {"embed", "turn each line of a text into a vector", wg__verb_embed, true},
    {"fill", "fill each [MASK] of a text", wg__verb_fill, false},
    {"generate", "continue a text", wg__verb_generate, false},
    {"translate", "translate sentences", wg__verb_translate, true},
    {"average", "average the weights of checkpoints", wg__verb_average, false},
    {"convert", "turn a model into another published format", wg__verb_convert, false},
    {"info", "print the contents of a checkpoint", wg__verb_info, false},
    {"plan", "predict time and memory of a training on several ranks", wg__verb_plan, true},
    {"plot", "draw the history of a training", wg__verb_plot, false},
    {"report", "show a trained model on a page for a browser", wg__verb_report, false},
    {"tokenizer", "learn a vocabulary, text to ids and back", wg__verb_tokenizer, false},
    {"corpus", "check a training text", wg__verb_corpus, false},
    {"gradcheck", "check the gradients of ops", wg__verb_gradcheck, false},
    {"doctor", "tell what this machine gives, and what to change", wg__verb_doctor, false},
    {"bench", "time the library beside the machine's own speed", wg__verb_bench, false},
    {NULL, NULL, NULL, false},
};

/* Results are JSON objects, also where they are printed as text. A part that got no memory is
 * missing from them, and functions of Jansson take the missing part without an error. Settings are
 * JSON, too, and a setting that got no memory would keep its default, whatever the user gave. */
static void *allocate_json(size_t size) {
    void *block = malloc(size);
    if (!block && !wg__cli_work_begun)
        exit(wg__cli_fail("no memory is left to read the options and settings"));
    wg__cli_memory_lacked |= !block;
    return block;
}

/* Results that are not whole are a failure: a full disk, a closed pipe, no memory. */
static int finish_output(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        int failed = wg__cli_fail("cannot write the results: %s", strerror(errno));
        return code ? code : failed;
    }
    if (code == 0 && wg__cli_memory_lacked)
        return wg__cli_fail("no memory was left for some of the results");
    return code;
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
    json_set_alloc_funcs(allocate_json, free);
    argv[0] = "wengert"; /* also under the name of a build's wrapper */
    wg__cli_begin_completion(&argc, &argv);
    const bool advises = argc > 1 && strcmp(argv[1], "doctor") == 0;
    const char *mode = getenv("WENGERT_DETERMINISTIC");
    /* The library itself ignores a mode that this processor does not support. */
    if (!advises && mode && *mode && strcmp(mode, "0") != 0 && wg_set_deterministic(true) < 0)
        return wg__cli_fail_pending();
    if (wg__cli_join() != 0)
        return EXIT_FAILURE;
    const wg__verb *verb = wg__cli_verb(&argc, &argv, &table);
    const int ranks = wg_group_size(wg__cli_group);
    if (!verb->shares && ranks > 1) { /* ranks above 0 leave before the verb begins */
        const bool leads = wg__cli_leads();
        wg__cli_leave();
        if (!leads)
            return 0;
        wg__cli_note("`wengert %s' runs on rank 0 alone; of %d ranks the others have nothing to do",
                     verb->name, ranks);
        return finish_output(verb->run(argc, argv));
    }
    const int code = wg__cli_check(finish_output(verb->run(argc, argv)));
    wg__cli_leave();
    return code;
}
