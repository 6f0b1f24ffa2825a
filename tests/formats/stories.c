/* A published LLaMA, karpathy's stories260K in llama2.c's format, against llama2.c's own logits, on
 * machines with the real data. */
#include <stdio.h>
#include <stdlib.h>

#include "formats/weights_files.h"
#include "models/generate/decode.h"
#include "models/model.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "io/internal.h"

enum { STEPS = 200, VOCAB = 512, BEGIN = 1 };

/* Without the data its module is NULL. */
static wg_model load_stories(void) {
    wg_model model = {0};
    const char *path = real_data("stories260K/stories260K.bin");
    if (!path)
        return model;
    wg_weights *file = owned(wg_weights_open(path));
    ck_assert_int_eq(wg_model_from_json(wg__weights_config(file), 0, &model), 0);
    owned(model.module);
    ck_assert_int_eq(wg_weights_get_module(file, model.module), 0);
    return model;
}

/* llama2.c's logits at each greedy step, (STEPS, VOCAB). */
static wg_tensor *reference_logits(void) {
    const bytes file = read_bytes(real_data("stories260K/ref_greedy_logits_f32.bin"));
    ck_assert_uint_eq(file.count, STEPS * VOCAB * sizeof(float));
    wg_tensor *logits = wg_from_array(WG_F32, WG_DIMS(STEPS, VOCAB), (float *)file.data);
    free(file.data);
    return logits;
}

typedef struct heard {
    int64_t count;
    float logits[STEPS][VOCAB];
} heard;

static void listen(const wg_generated_token *token, void *context) {
    heard *h = context;
    for (int i = 0; i < VOCAB; i++)
        h->logits[h->count][i] = token->logits[i];
    h->count++;
}

/* And the tokens: "pos input_token argmax_token max_logit" a line. */
TEST(stories260k_has_the_logits_of_llama2c_at_every_greedy_step) {
    const wg_model model = load_stories();
    if (!model.module)
        return;
    static heard h;
    wg_generation text = {0};
    wg_token_list_append(&text.tokens, BEGIN);
    const wg_generation_options options = {
        .max_tokens = STEPS, .listener = listen, .listener_context = &h};
    ck_assert_int_eq(wg_generate(&model, 1, &text, &options), 0);
    ck_assert_int_eq(h.count, STEPS);

    wg_tensor *wanted = reference_logits();
    assert_close(wg_from_array(WG_F32, WG_DIMS(STEPS, VOCAB), h.logits), wanted, 0, 1e-4);
    wg_set_grad_enabled(false);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, STEPS), text.tokens.ids);
    assert_close(wg_select(logits_of_ids(&model, ids), 0, 0), wanted, 0, 1e-4);
    wg_set_grad_enabled(true);

    FILE *file = fopen(real_data("stories260K/ref_greedy_tokens.txt"), "r");
    ck_assert_ptr_nonnull(file);
    int position, input, next;
    float logit;
    int64_t count = 0;
    for (; fscanf(file, "%d %d %d %f", &position, &input, &next, &logit) == 4; count++) {
        ck_assert_int_eq(text.tokens.ids[position], input);
        ck_assert_int_eq(text.tokens.ids[position + 1], next);
    }
    fclose(file);
    ck_assert_int_eq(count, STEPS);
    wg_token_list_free(&text.tokens);
}
