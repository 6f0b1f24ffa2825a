/* GPT and LLaMA continue texts. */
#include <stdlib.h>

#include "cli/generating.h"
#include "cli/stopping.h"
#include "models/language_model.h"

static int begin(wg__continuing *c, const char *run) {
    wg_language_model *model = c->model = calloc(1, sizeof *model);
    if (!model || wg_language_model_load(run, model, &c->tokenizer) < 0)
        return -1;
    c->module = model->module;
    c->max_positions = model->max_positions;
    c->most_read = model->max_positions - 1;
    return 0;
}

static void end(wg__continuing *c) {
    if (c->model)
        wg_language_model_free(c->model);
    free(c->model);
    wg_tokenizer_free(c->tokenizer);
    wg_token_list_free(&c->text.tokens);
}

/* The prompt begins with the token of a text's begin, where that is not also its end (GPT-2's
 * prompts have none in front); without a prompt this token is all. */
static int read_prompt(wg__continuing *c, const char *prompt) {
    const int32_t begin = wg_tokenizer_special(c->tokenizer, WG_TOKEN_BEGIN);
    const int32_t end = wg_tokenizer_special(c->tokenizer, WG_TOKEN_END);
    wg_token_list *list = &c->text.tokens;
    if (!prompt && begin < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "this model's tokenizer has no token that begins a text; give a --prompt");
    if (begin >= 0 && (!prompt || begin != end) && wg_token_list_append(list, begin) < 0)
        return -1;
    if (prompt && wg_tokenizer_encode(c->tokenizer, prompt, -1, NULL, list) < 0)
        return -1;
    c->most_written = c->max_positions - list->count;
    return 0;
}

static int write_text(wg__continuing *c, const wg__drawing *how) {
    const wg_language_model *model = c->model;
    const int32_t specials[] = {wg_tokenizer_special(c->tokenizer, WG_TOKEN_BEGIN),
                                wg_tokenizer_special(c->tokenizer, WG_TOKEN_END)};
    const int64_t known = wg_tokenizer_size(c->tokenizer);
    const wg_generation_options options = {
        .sampling = how->sampling,
        .max_tokens = how->max_tokens,
        .vocabulary = known < model->vocab_size ? known : 0,
        .stop_ids = specials,
        .stop_count = 2,
        .listener = c->listener,
        .listener_context = c->listener_context,
        .stop = wg__stop_signal(),
    };
    c->text.generator = how->generator;
    return wg_generate(model, 1, &c->text, &options);
}

const wg__continuer wg__gpt_continuer = {.kind = &wg__gpt_kind,
                                         .begin = begin,
                                         .end = end,
                                         .read_prompt = read_prompt,
                                         .write_text = write_text};

const wg__continuer wg__llama_continuer = {.kind = &wg__llama_kind,
                                           .begin = begin,
                                           .end = end,
                                           .read_prompt = read_prompt,
                                           .write_text = write_text};
