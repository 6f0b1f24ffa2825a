/* Generates texts by a decoder until it is killed, for tests/soak.sh.
 *
 *     soak_generate RUN.h5 LOG
 *
 * One text and four texts in turns, by sampling, from prompts of different lengths, in the one
 * model; after each, a line {"step": TOKENS} is appended to LOG, and the tokens are decoded. */
#include <stdio.h>

#include "models/generate/decode.h"

enum { TEXTS = 4 };

static int generate(const wg_model *model, const wg_tokenizer *tokenizer, int64_t round,
                    int64_t *tokens) {
    const int64_t count = round % 2 == 0 ? 1 : TEXTS;
    wg_generation texts[TEXTS] = {0};
    int status = 0;
    for (int64_t i = 0; i < count; i++) {
        texts[i].generator = (wg_generator){.seed = (uint64_t)(round * TEXTS + i)};
        for (int64_t t = 0; t < 1 + (round + i) % 7; t++)
            if (wg_token_list_append(&texts[i].tokens, (int32_t)(round + t) % 256) < 0)
                status = -1;
    }
    const wg_generation_options options = {
        .sampling = {.temperature = 1, .top_k = 50, .top_p = 0.95},
        .vocabulary = wg_tokenizer_size(tokenizer)};
    if (status == 0)
        status = wg_generate(model, count, texts, &options);
    for (int64_t i = 0; i < count; i++) {
        char *text =
            wg_tokenizer_decode(tokenizer, texts[i].tokens.ids, texts[i].tokens.count, NULL);
        wg_text_free(text);
        *tokens += texts[i].generated;
        wg_token_list_free(&texts[i].tokens);
    }
    return status;
}

int main(int argc, char **argv) {
    wg_model model = {0};
    wg_tokenizer *tokenizer = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: %s RUN.h5 LOG\n", argv[0]);
        return 2;
    }
    FILE *log = fopen(argv[2], "w");
    int status = log ? wg_model_load(argv[1], &model, &tokenizer) : -1;
    int64_t tokens = 0;
    for (int64_t round = 0; status == 0; round++) {
        status = generate(&model, tokenizer, round, &tokens);
        fprintf(log, "{\"step\": %lld}\n", (long long)tokens);
        fflush(log);
    }
    fprintf(stderr, "%s\n", wg_error_pending() ? wg_error_pending()->message : "no log");
    return 1;
}
