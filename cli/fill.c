/* wengert fill: what stands in the blanks of a text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/filling.h"
#include "cli/results.h"
#include "cli/stopping.h"

static const wg__filler *const fillers[] = {&wg__bert_filler, &wg__glm_filler, &wg__t5_filler,
                                            NULL};

enum { KEY_TOP = WG__KEY_OWN, KEY_BEAM };

typedef struct arguments {
    const char *run;
    char **texts; /* NULL: the lines of stdin */
    int text_count;
    wg__filling how;
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"top", KEY_TOP, "N", 0, "BERT: show the N likeliest tokens for each [MASK] (5)", 0},
    {"beam", KEY_BEAM, "N", 0,
     "Search with N hypotheses for the likeliest text of each blank, instead of drawing it", 0},
    WG__OPTION_JSON,
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->how.drawing;
        return 0;
    case KEY_TOP:
        a->how.top = wg__cli_integer(state, "top", text, 1, INT32_MAX);
        return 0;
    case KEY_BEAM:
        a->how.beam = wg__cli_integer(state, "beam", text, 1, 1024);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->run)
            return ARGP_ERR_UNKNOWN; /* what follows comes as ARGP_KEY_ARGS */
        a->run = text;
        return 0;
    case ARGP_KEY_ARGS:
        a->texts = state->argv + state->next;
        a->text_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (!a->run)
            argp_error(state, "RUN.h5 is missing: which model?");
        if (a->how.beam && a->how.drawing.given)
            argp_error(state, "--beam searches, and does not draw: it takes no option of drawing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The model ---- */

static const wg__filler *find_filler(const char *run) {
    const wg__model_kind *kind = wg__model_kind_of(run);
    for (const wg__filler *const *f = fillers; kind && *f; f++)
        if ((*f)->kind == kind)
            return *f;
    if (kind)
        wg__model_kind_refuse(run, kind, "fill", "bert, glm and t5");
    return NULL;
}

/* What does not apply to the kind of model is not to be passed over in silence. */
static int check_options(const wg__filler *filler, const wg__filling *how) {
    if (filler->writes && how->top)
        return wg_fail(WG_ERROR_ARGUMENT, "fill", "--top is for bert; %s writes text",
                       filler->kind->name);
    if (!filler->writes && (how->beam || how->drawing.given || how->drawing.max_tokens))
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "%s shows the likeliest tokens of each blank, and writes no text; --beam, "
                       "--max-tokens and the options of drawing are for glm and t5",
                       filler->kind->name);
    return 0;
}

/* ---- The texts ---- */

static int fill_lines(const wg__filler *filler, void *model, const wg__filling *how) {
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    int result = 0;
    bool any = false;
    while (result == 0 && !*wg__stop_signal() && (length = getline(&line, &size, stdin)) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        any |= line[0] != '\0';
        if (line[0])
            result = filler->fill(model, how, line);
    }
    free(line);
    return any || *wg__stop_signal()
               ? result
               : wg_fail(WG_ERROR_ARGUMENT, "fill", "standard input has no text to fill");
}

static int fill_all(const wg__filler *filler, void *model, const arguments *a) {
    if (!a->texts)
        return fill_lines(filler, model, &a->how);
    int result = 0;
    for (int i = 0; result == 0 && i < a->text_count && !*wg__stop_signal(); i++)
        result = filler->fill(model, &a->how, a->texts[i]);
    return result;
}

static int run(arguments *a) {
    enum { USUAL_MAX_TOKENS = 64 };
    const wg__filler *filler = find_filler(a->run);
    if (!filler || check_options(filler, &a->how) < 0)
        return -1;
    if (a->how.drawing.max_tokens == 0)
        a->how.drawing.max_tokens = USUAL_MAX_TOKENS;
    void *model = filler->begin(a->run);
    if (!model)
        return -1;
    if (filler->writes)
        wg__listen_for_stop();
    a->how.texts = a->json ? json_array() : NULL;
    int result = fill_all(filler, model, a);
    if (result == 0 && a->json)
        wg__print_json(json_pack("{s:O}", "texts", a->how.texts));
    json_decref(a->how.texts);
    filler->end(model);
    return result;
}

int wg__verb_fill(int argc, char **argv) {
    static const struct argp_child children[] = {{&wg__sampling_options, 0, "How GLM writes:", 1},
                                                 {0}};
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 [\"A text with [MASK] in it\"...]",
        .doc = "Fills the blanks of a text: BERT with the tokens that it holds for likeliest, one "
               "for each [MASK], whose probabilities are printed; GLM with text of any length, for "
               "each [MASK] (some words), [sMASK] (sentences) and [gMASK] (the rest of a text); T5 "
               "with the likeliest text for each [MASK], or <extra_id_0>, <extra_id_1>... in this "
               "order, by greedy search or --beam.\v"
               "Without a text, every line of standard input is one. Blanks are filled in their "
               "order, and each is written with those before it in view.",
        .children = children,
    };
    arguments a = {0};
    wg__cli_parse(&parser, argc, argv, &a);
    if (run(&a) < 0)
        return wg__cli_fail_pending();
    return *wg__stop_signal() ? 128 + *wg__stop_signal() : 0;
}
