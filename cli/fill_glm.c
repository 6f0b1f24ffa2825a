/* Text of any length in each [MASK], [sMASK] and [gMASK], written by a GLM. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/filling.h"
#include "cli/stopping.h"
#include "objectives/glm_fill.h"

typedef struct glm {
    wg_glm *model;
    wg_tokenizer *tokenizer;
    wg_glm_tokens tokens;
} glm;

static void end(void *model) {
    glm *g = model;
    wg_tokenizer_free(g->tokenizer);
    if (g->model)
        wg_module_free(&g->model->module);
    free(g);
}

static void *begin(const char *run) {
    glm *g = calloc(1, sizeof *g);
    if (g && wg_glm_load(run, &g->model, &g->tokenizer) == 0 &&
        wg_glm_tokens_of(g->tokenizer, &g->tokens) == 0)
        return g;
    if (g)
        end(g);
    return NULL;
}

/* ---- Telling it ---- */

static json_t *describe(const wg_tokenizer *tokenizer, const wg_glm_blank *blank) {
    static const wg_decode_options options = {.skip_special = true};
    char *words = wg_tokenizer_decode(tokenizer, blank->tokens.ids, blank->tokens.count, &options);
    json_t *object = words ? json_pack("{s:s, s:I, s:s}", "text", words, "tokens",
                                       (json_int_t)blank->tokens.count, "end",
                                       wg__generation_end_name(blank->end))
                           : NULL;
    wg_text_free(words);
    return object;
}

/* Takes the text with its blanks filled. */
static void tell(const glm *g, const wg__filling *how, const char *text, const char *filled,
                 const wg_glm_blank *blanks, int64_t count) {
    if (!how->texts) {
        puts(filled);
        return;
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, describe(g->tokenizer, &blanks[i]));
    json_array_append_new(
        how->texts, json_pack("{s:s, s:s, s:o}", "text", text, "filled", filled, "blanks", list));
}

/* ---- One text ---- */

static char *filled_text(const glm *g, const char *text, const wg_glm_blank *blanks,
                         int64_t count) {
    wg_token_list *lists = calloc((size_t)count, sizeof *lists);
    for (int64_t i = 0; lists && i < count; i++)
        lists[i] = blanks[i].tokens;
    char *filled = lists ? wg_glm_filled_text(g->tokenizer, text, lists) : NULL;
    free(lists);
    return filled;
}

static int fill_blanks(const glm *g, const wg__filling *how, const char *text,
                       const wg_token_list *part_a) {
    const wg_glm_fill_options options = {.sampling = how->drawing.sampling,
                                         .beam = how->beam,
                                         .max_tokens = how->drawing.max_tokens,
                                         .generator = how->drawing.generator,
                                         .stop = wg__stop_signal()};
    const int64_t count = wg_glm_blank_count(&g->tokens, part_a);
    wg_glm_blank *blanks = calloc((size_t)count + 1, sizeof *blanks);
    int result = blanks ? wg_glm_fill(g->model, &g->tokens, part_a, &options, blanks) : -1;
    char *filled = result == 0 ? filled_text(g, text, blanks, count) : NULL;
    if (filled)
        tell(g, how, text, filled, blanks, count);
    wg_text_free(filled);
    for (int64_t i = 0; blanks && i < count; i++)
        wg_token_list_free(&blanks[i].tokens);
    free(blanks);
    return filled ? 0 : -1;
}

static int fill(void *model, const wg__filling *how, const char *text) {
    const glm *g = model;
    wg_token_list part_a = {0};
    int result = wg_glm_encode(&g->tokens, g->tokenizer, text, &part_a);
    if (result == 0)
        result = fill_blanks(g, how, text, &part_a);
    wg_token_list_free(&part_a);
    return result;
}

const wg__filler wg__glm_filler = {
    .kind = &wg__glm_kind, .writes = true, .begin = begin, .end = end, .fill = fill};
