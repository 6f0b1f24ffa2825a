/* Text of any length in each <extra_id_0>, <extra_id_1>.. or [MASK], written by a T5. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/filling.h"
#include "tensor/easy.h"
#include "models/t5.h"

typedef struct t5 {
    wg_t5 *model;
    wg_tokenizer *tokenizer;
    wg_t5_tokens tokens;
} t5;

static void end(void *model) {
    t5 *t = model;
    wg_tokenizer_free(t->tokenizer);
    if (t->model)
        wg_module_free(&t->model->module);
    free(t);
}

static void *begin(const char *run) {
    t5 *t = calloc(1, sizeof *t);
    if (t && wg_t5_load(run, &t->model, &t->tokenizer) == 0 &&
        wg_t5_tokens_of(t->tokenizer, &t->tokens) == 0)
        return t;
    if (t)
        end(t);
    return NULL;
}

/* ---- Telling it ---- */

/* Prints the text of a blank, or adds it to `list`. */
static int tell_blank(const t5 *t, const wg_token_list *target, int blank, json_t *list) {
    const wg_token_window part = wg_t5_answer(&t->tokens, target, blank);
    char *text = wg_tokenizer_decode(t->tokenizer, target->ids + part.start, part.end - part.start,
                                     &(wg_decode_options){.skip_special = true});
    if (!text)
        return -1;
    if (list)
        json_array_append_new(list, json_pack("{s:s, s:I}", "text", text, "tokens",
                                              (json_int_t)(part.end - part.start)));
    else
        printf("    <extra_id_%d> %s\n", blank, text + (text[0] == ' '));
    wg_text_free(text);
    return 0;
}

static int tell(const t5 *t, const wg__filling *how, const char *text, int blanks,
                const wg_token_list *target) {
    json_t *list = how->texts ? json_array() : NULL;
    if (!list)
        printf("%s\n", text);
    for (int i = 0; i < blanks; i++)
        if (tell_blank(t, target, i, list) < 0) {
            json_decref(list);
            return -1;
        }
    if (list)
        json_array_append_new(how->texts, json_pack("{s:s, s:o}", "text", text, "blanks", list));
    return 0;
}

/* ---- One text ---- */

static int fill_blanks(const t5 *t, const wg__filling *how, const char *text, int blanks,
                       const wg_token_list *source) {
    const wg_beam_options options = {.beam = how->beam ? how->beam : 1};
    wg_beam_result result = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, source->count), source->ids);
    int status =
        wg_t5_fill(t->model, &t->tokens, ids, NULL, how->drawing.max_tokens, &options, &result);
    if (status == 0)
        status = tell(t, how, text, blanks, &result.tokens);
    wg_token_list_free(&result.tokens);
    wg_scope_end(&scope, NULL);
    return status;
}

static int fill(void *model, const wg__filling *how, const char *text) {
    const t5 *t = model;
    if (how->drawing.given)
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "t5 searches for the likeliest text, and does not draw: of the options, "
                       "--beam and --max-tokens are for it");
    wg_token_list source = {0};
    const int blanks = wg_t5_encode_blanks(t->tokenizer, &t->tokens, text, &source);
    int result = blanks < 0 ? -1 : 0;
    if (blanks == 0)
        result = wg_fail(WG_ERROR_ARGUMENT, "fill",
                         "there is no <extra_id_0> and no [MASK] in '%.200s'; write one where text "
                         "is wanted",
                         text);
    else if (blanks > 0)
        result = fill_blanks(t, how, text, blanks, &source);
    wg_token_list_free(&source);
    return result;
}

const wg__filler wg__t5_filler = {
    .kind = &wg__t5_kind, .writes = true, .begin = begin, .end = end, .fill = fill};
