/* GLM continues texts: it writes into a [gMASK] at their end. */
#include <stdlib.h>

#include "cli/generating.h"
#include "cli/stopping.h"
#include "objectives/glm_fill.h"

typedef struct glm {
    wg_glm *model;
    wg_glm_tokens tokens;
} glm;

static int begin(wg__continuing *c, const char *run) {
    glm *g = c->model = calloc(1, sizeof *g);
    if (!g || wg_glm_load(run, &g->model, &c->tokenizer) < 0)
        return -1;
    c->module = &g->model->module;
    c->max_positions = g->model->config.max_sequence_length;
    c->most_read = c->max_positions;
    return wg_glm_tokens_of(c->tokenizer, &g->tokens);
}

static void end(wg__continuing *c) {
    const glm *g = c->model;
    if (g && g->model)
        wg_module_free(&g->model->module);
    free(c->model);
    wg_tokenizer_free(c->tokenizer);
    wg_token_list_free(&c->text.tokens);
}

/* What is written has positions of its own, of which the start token takes one. */
static int read_prompt(wg__continuing *c, const char *prompt) {
    const glm *g = c->model;
    wg_token_list *list = &c->text.tokens;
    c->most_written = c->max_positions - 1;
    if (wg_token_list_append(list, g->tokens.beginning) < 0 ||
        (prompt && wg_tokenizer_encode(c->tokenizer, prompt, -1, NULL, list) < 0))
        return -1;
    return wg_token_list_append(list, g->tokens.document_mask);
}

static int write_text(wg__continuing *c, const wg__drawing *how) {
    const glm *g = c->model;
    const wg_glm_fill_options options = {.sampling = how->sampling,
                                         .max_tokens = how->max_tokens,
                                         .generator = how->generator,
                                         .listener = c->listener,
                                         .listener_context = c->listener_context,
                                         .stop = wg__stop_signal()};
    wg_glm_blank blank = {0};
    int result = wg_glm_fill(g->model, &g->tokens, &c->text.tokens, &options, &blank);
    for (int64_t i = 0; result == 0 && i < blank.tokens.count; i++)
        result = wg_token_list_append(&c->text.tokens, blank.tokens.ids[i]);
    c->text.generated = blank.tokens.count;
    c->text.end = blank.end;
    wg_token_list_free(&blank.tokens);
    return result;
}

const wg__continuer wg__glm_continuer = {.kind = &wg__glm_kind,
                                         .begin = begin,
                                         .end = end,
                                         .read_prompt = read_prompt,
                                         .write_text = write_text};
