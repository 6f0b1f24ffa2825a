/* A published LLaMA, karpathy's stories260K in llama2.c's format, against llama2.c's own logits, on
 * machines with the real data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/generate/decode.h"
#include "models/llama.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

enum { STEPS = 200, VOCAB = 512, BEGIN = 1 };

/* ---- Reading llama2.c's "version 0": 7 integers, then floats ---- */

/* The next weight in the file. */
static wg_tensor *read_weight(FILE *file, int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    float *values = malloc((size_t)count * sizeof *values);
    ck_assert_int_eq(fread(values, sizeof *values, (size_t)count, file), count);
    wg_tensor *weight = wg_from_array(WG_F32, ndim, shape, values);
    free(values);
    return weight;
}

/* Permutes the rows of a head from adjacent pairs, (0, 1), (2, 3).., to halves, (0, D/2), (1, D/2 +
 * 1).. */
static wg_tensor *halves(wg_tensor *weight, int64_t heads) {
    const int64_t rows = wg_tensor_size(weight, 0), columns = wg_tensor_size(weight, 1);
    wg_tensor *pairs = wg_reshape(weight, WG_DIMS(heads, rows / heads / 2, 2, columns));
    return wg_reshape(wg_transpose(pairs, 1, 2), WG_DIMS(rows, columns));
}

static void set(wg_llama *model, const char *format, int64_t layer, wg_tensor *value) {
    char path[128];
    snprintf(path, sizeof path, format, (int)layer);
    wg_slot *slot = wg_module_find(&model->module, path);
    ck_assert_msg(slot != NULL, "%s", path);
    ck_assert_int_eq(wg_copy_(slot->tensor, value), 0);
}

/* One kind of weight for all layers, which llama2.c stores together; heads: how many are rotated,
 * or 0. */
static void read_layers(FILE *file, wg_llama *model, const char *format, int64_t rows,
                        int64_t columns, int64_t heads) {
    for (int64_t i = 0; i < model->config.num_hidden_layers; i++) {
        wg_tensor *weight =
            columns ? read_weight(file, WG_DIMS(rows, columns)) : read_weight(file, WG_DIMS(rows));
        set(model, format, i, heads ? halves(weight, heads) : weight);
    }
}

static void read_weights(FILE *file, wg_llama *model) {
    const wg_llama_config *c = &model->config;
    const int64_t width = c->hidden_size, inner = c->intermediate_size;
    const int64_t heads = c->num_attention_heads, kv_heads = c->num_key_value_heads;
    const int64_t kv_width = width / heads * kv_heads;
    set(model, "model.embed_tokens.weight", 0, read_weight(file, WG_DIMS(c->vocab_size, width)));
    read_layers(file, model, "model.layers.%d.input_layernorm.weight", width, 0, 0);
    read_layers(file, model, "model.layers.%d.self_attn.q_proj.weight", width, width, heads);
    read_layers(file, model, "model.layers.%d.self_attn.k_proj.weight", kv_width, width, kv_heads);
    read_layers(file, model, "model.layers.%d.self_attn.v_proj.weight", kv_width, width, 0);
    read_layers(file, model, "model.layers.%d.self_attn.o_proj.weight", width, width, 0);
    read_layers(file, model, "model.layers.%d.post_attention_layernorm.weight", width, 0, 0);
    read_layers(file, model, "model.layers.%d.mlp.gate_proj.weight", inner, width, 0);
    read_layers(file, model, "model.layers.%d.mlp.down_proj.weight", width, inner, 0);
    read_layers(file, model, "model.layers.%d.mlp.up_proj.weight", inner, width, 0);
    set(model, "model.norm.weight", 0, read_weight(file, WG_DIMS(width)));
}

/* NULL without the data. */
static wg_llama *load_stories(void) {
    const char *path = real_data("stories260K/stories260K.bin");
    if (!path)
        return NULL;
    FILE *file = fopen(path, "rb");
    int32_t header[7]; /* dim, hidden_dim, layers, heads, kv_heads, vocabulary, positions */
    ck_assert_int_eq(fread(header, sizeof header[0], 7, file), 7);
    wg_llama_config config;
    ck_assert_int_eq(wg_model_preset_config(&wg_llama_type, "llama-260k", &config), 0);
    config.hidden_size = header[0];
    config.intermediate_size = header[1];
    config.num_hidden_layers = header[2];
    config.num_attention_heads = header[3];
    config.num_key_value_heads = header[4];
    config.vocab_size = header[5]; /* above 0: the head is tied */
    config.max_position_embeddings = header[6];
    config.tie_word_embeddings = true;
    config.rms_norm_eps = 1e-5;
    config.rope_theta = 10000;
    wg_llama *model = wg__llama_new(&config, 0);
    assert_no_error();
    wg_set_grad_enabled(false);
    read_weights(file, model);
    wg_set_grad_enabled(true);
    fclose(file);
    return model;
}

/* llama2.c's logits at each greedy step, (STEPS, VOCAB). */
static wg_tensor *reference_logits(void) {
    FILE *file = fopen(real_data("stories260K/ref_greedy_logits_f32.bin"), "rb");
    ck_assert_ptr_nonnull(file);
    wg_tensor *logits = read_weight(file, WG_DIMS(STEPS, VOCAB));
    fclose(file);
    return logits;
}

/* ---- Its logits ---- */

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

START_TEST(stories260k_has_the_logits_of_llama2c_at_every_greedy_step) {
    wg_llama *llama = load_stories();
    if (!llama)
        return;
    wg_model model = (wg_model){.type = &wg_llama_type, .module = &llama->module};
    static heard h;
    wg_generation text = {0};
    wg_token_list_append(&text.tokens, BEGIN);
    const wg_generation_options options = {
        .max_tokens = STEPS, .listener = listen, .listener_context = &h};
    ck_assert_int_eq(wg_generate(&model, 1, &text, &options), 0);
    ck_assert_int_eq(h.count, STEPS);

    wg_tensor *wanted = reference_logits();
    wg_tensor *cached = wg_from_array(WG_F32, WG_DIMS(STEPS, VOCAB), h.logits);
    assert_close(cached, wanted, 0, 1e-4);

    wg_set_grad_enabled(false);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, STEPS), text.tokens.ids);
    wg_tensor *whole = logits_of_ids(&model, ids);
    assert_close(wg_select(whole, 0, 0), wanted, 0, 1e-4);
    wg_set_grad_enabled(true);
    wg_token_list_free(&text.tokens);
    wg_module_free(&llama->module);
}
END_TEST

/* "pos input_token argmax_token max_logit" a line. */
START_TEST(stories260k_writes_the_tokens_of_llama2c) {
    wg_llama *llama = load_stories();
    if (!llama)
        return;
    wg_model model = (wg_model){.type = &wg_llama_type, .module = &llama->module};
    wg_generation text = {0};
    wg_token_list_append(&text.tokens, BEGIN);
    ck_assert_int_eq(wg_generate(&model, 1, &text, &(wg_generation_options){.max_tokens = STEPS}),
                     0);
    FILE *file = fopen(real_data("stories260K/ref_greedy_tokens.txt"), "r");
    ck_assert_ptr_nonnull(file);
    int position, input, next;
    float logit;
    int64_t count = 0;
    while (fscanf(file, "%d %d %d %f", &position, &input, &next, &logit) == 4) {
        ck_assert_int_eq(text.tokens.ids[position], input);
        ck_assert_int_eq(text.tokens.ids[position + 1], next);
        count++;
    }
    fclose(file);
    ck_assert_int_eq(count, STEPS);
    wg_token_list_free(&text.tokens);
    wg_module_free(&llama->module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        stories260k_has_the_logits_of_llama2c_at_every_greedy_step,
        stories260k_writes_the_tokens_of_llama2c,
    };
    add_suite("stories", tests);
}
