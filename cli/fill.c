/* wengert fill: fills the blanks of a text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/decoding.h"
#include "cli/output.h"

typedef struct arguments {
    const char *run;
    wg_setting_list texts; /* none: the lines of stdin */
    int64_t top;           /* number of likeliest tokens to show; 0: the objective's usual number */
    int64_t beam;          /* hypotheses of the search; 0: draw */
    wg__drawing drawing;
    bool json;
} arguments;

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true,
     .missing = "RUN.h5 is missing: which model?", .argument = "RUN.h5"},
    {"texts", WG_SETTING_TEXTS, WG__AT(texts), .word = true},
    {"top", WG_SETTING_INTEGER, WG__AT(top), .low = 1, .high = INT32_MAX, .argument = "N",
     .help = "masked-lm: show the N likeliest tokens for each [MASK] (5)"},
    {"beam", WG_SETTING_INTEGER, WG__AT(beam), .low = 1, .high = 1024, .argument = "N",
     .help =
         "Search with N hypotheses for the likeliest text of each blank, instead of drawing it"},
    WG__ROW_JSON(arguments),
};

static void check(const void *values) {
    const arguments *a = values;
    if (a->beam && wg__drawing_given(&a->drawing))
        wg__cli_misuse("--beam searches, and does not draw: it takes no option of drawing");
}

/* Options that the objective does not take are refused, not passed over in silence. */
static int check_options(const wg__trained *trained, const arguments *a) {
    const unsigned fills = trained->objective->use.fills;
    const char *name = trained->model.type->name;
    const bool draws = wg__drawing_given(&a->drawing);
    if (a->top && !(fills & WG_FILLS_BY_RANK))
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "--top is for models that rank tokens; %s writes text", name);
    if (!(fills & (WG_FILLS_BY_BEAM | WG_FILLS_BY_DRAWING)) &&
        (a->beam || draws || a->drawing.max_tokens))
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "%s shows the likeliest tokens of each blank, and writes no text; --beam, "
                       "--max-tokens and the options of drawing are for models that write",
                       name);
    if (draws && !(fills & WG_FILLS_BY_DRAWING))
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "%s searches for the likeliest text, and does not draw: of the options, "
                       "--beam and --max-tokens are for it",
                       name);
    return 0;
}

static json_t *filled_json(const char *text, const wg_filled *filled) {
    json_t *object = json_pack("{s:s}", "text", text), *list = json_array();
    bool ranked = false;
    for (int64_t i = 0; i < filled->blank_count; i++) {
        const wg_filled_blank *blank = &filled->blanks[i];
        ranked |= blank->candidates != NULL;
        json_t *item = blank->candidates ? json_array()
                                         : json_pack("{s:s, s:I}", "text", blank->text, "tokens",
                                                     (json_int_t)blank->tokens);
        for (int64_t c = 0; blank->candidates && c < blank->candidate_count; c++)
            json_array_append_new(item, json_pack("{s:s, s:f}", "token", blank->candidates[c].text,
                                                  "probability", blank->candidates[c].probability));
        if (filled->text)
            json_object_set_new(item, "end", json_string(wg__generation_ends[blank->end]));
        json_array_append_new(list, item);
    }
    if (filled->text)
        json_object_set_new(object, "filled", json_string(filled->text));
    json_object_set_new(object, ranked ? "masks" : "blanks", list);
    return object;
}

typedef struct job {
    wg__trained trained;
    wg_use_options how;
    json_t *texts; /* the filled texts, for --json; NULL: they are printed */
} job;

/* A ranked blank is printed as "    colours 0.114   rays 0.110". */
static int fill(const job *j, const char *text) {
    const wg__trained *t = &j->trained;
    wg_filled filled = {0};
    const int status = t->objective->use.fill(&t->model, t->tokenizer, &j->how, text, &filled);
    if (status == 0 && j->texts)
        json_array_append_new(j->texts, filled_json(text, &filled));
    else if (status == 0)
        puts(filled.text ? filled.text : text);
    const bool lists = status == 0 && !j->texts && !filled.text;
    for (int64_t b = 0; lists && b < filled.blank_count; b++) {
        const wg_filled_blank *blank = &filled.blanks[b];
        if (!blank->candidates)
            printf("    %s %s", blank->name, blank->text + (blank->text[0] == ' '));
        for (int64_t i = 0; blank->candidates && i < blank->candidate_count; i++)
            printf("%s%s %.3f", i ? "   " : "    ", blank->candidates[i].text,
                   blank->candidates[i].probability);
        putchar('\n');
    }
    wg_filled_clear(&filled);
    return status;
}

static int fill_lines(const job *j) {
    char *line = NULL;
    size_t size = 0;
    int status = 0;
    bool any = false;
    while (status == 0 && !wg__stop_signal && getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        any |= line[0] != '\0';
        if (line[0])
            status = fill(j, line);
    }
    const int reason = ferror(stdin) ? errno : 0;
    free(line);
    if (status == 0 && reason)
        return wg_fail(WG_ERROR_IO, "fill", "cannot read standard input: %s", strerror(reason));
    return any || wg__stop_signal
               ? status
               : wg_fail(WG_ERROR_ARGUMENT, "fill", "standard input has no text to fill");
}

int wg__verb_fill(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 [\"A text with [MASK] in it\"...]",
        .doc = "Fills the blanks of a text. A model of masked-lm ranks the tokens for each [MASK] "
               "and prints their probabilities; one of blank-infilling writes text of any length "
               "into each [MASK] (some words), [sMASK] (sentences) and [gMASK] (a text to its "
               "end); one of span-corruption writes the likeliest text into each [MASK], or "
               "<extra_id_0>, <extra_id_1>... in this order, by greedy search or --beam.\v"
               "Without a text, every line of standard input is one. Blanks are filled in their "
               "order; the model sees the blanks that are filled already.",
        .parts = {WG__PART(options, a), {&wg__sampling_options, &a.drawing}},
        .check = check,
    };
    wg__cli_read(&usage, argc, argv);
    enum { USUAL_MAX_TOKENS = 64 };
    const wg_objective *objective = wg__trained_objective(a.run, WG__USE_FILL);
    job j = {.how = {.top = a.top,
                     .beam = a.beam,
                     .draws = wg__drawing_given(&a.drawing),
                     .generator = a.drawing.generator,
                     .generation = {.sampling = a.drawing.sampling,
                                    .max_tokens = a.drawing.max_tokens ? a.drawing.max_tokens
                                                                       : USUAL_MAX_TOKENS,
                                    .stop = &wg__stop_signal}}};
    int status = objective ? wg__trained_load(&j.trained, objective, a.run) : -1;
    if (status == 0)
        status = check_options(&j.trained, &a);
    if (status == 0) {
        wg_set_grad_enabled(false);
        wg_module_train(j.trained.model.module, false);
        if (!(objective->use.fills & WG_FILLS_BY_RANK))
            wg__listen_for_stop();
        j.texts = a.json ? json_array() : NULL;
        for (int64_t i = 0; status == 0 && i < a.texts.count && !wg__stop_signal; i++)
            status = fill(&j, a.texts.items[i]);
        if (a.texts.count == 0)
            status = fill_lines(&j);
    }
    if (status == 0 && a.json)
        wg__print_json(JSON_INDENT(2), json_pack("{s:O}", "texts", j.texts));
    json_decref(j.texts);
    wg__trained_clear(&j.trained);
    return wg__cli_end(status);
}
