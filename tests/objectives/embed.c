/* Embeddings of texts: beside the hidden states of one text at a time; batches; lengths; errors. */
#include <math.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/tokenizer.h"
#include "objectives/objective.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { TOKENS = 12, POSITIONS = 12, WIDTH = 16 };

static const char *const vocabulary[TOKENS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun",
                                               "moon",  "sea",   "##s",   "the",   "is",     "."};

enum { ENCODER, DECODER, SHAPES };

static const char *const configs[SHAPES] = {
    "{\"model_type\": \"bert\", \"vocab_size\": 20, \"hidden_size\": 16, \"num_hidden_layers\": 2,"
    " \"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 12,"
    " \"initializer_range\": 0.5}",
    "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 2,"
    " \"n_positions\": 12, \"bos_token_id\": 2, \"eos_token_id\": 2, \"initializer_range\": 0.5}"};

typedef struct world {
    int shape;
    wg_model model;
    wg_tokenizer *tokenizer;
} world;

static world world_of(int shape) {
    world w = {.shape = shape, .tokenizer = wg__wordpiece_new(TOKENS, vocabulary, NULL)};
    ck_assert_int_eq(wg_model_from_json(configs[shape], 5, &w.model), 0);
    wg_module_train(w.model.module, false);
    return w;
}

static void free_world(world *w) {
    wg_scope_clear_root();
    wg_model_free(&w->model);
    wg_tokenizer_free(w->tokenizer);
}

static const char *const texts[] = {"the suns is .", "moon",          "sea is the sun",
                                    "moons sea",     "the suns is .", "sun moon sea moons ."};

enum { TEXTS = WG_COUNT(texts) };

static int embed(const world *w, const wg_embed_options *options, float vectors[TEXTS][WIDTH]) {
    wg_text_source sources[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        sources[i] = (wg_text_source){.text = texts[i]};
    return wg_embed_texts(&w->model, w->tokenizer, options, TEXTS, sources, vectors[0]);
}

static void assert_near(const float *found, const double *wanted) {
    for (int i = 0; i < WIDTH; i++)
        ck_assert_double_eq_tol(found[i], wanted[i], 2e-5 * (1 + fabs(wanted[i])));
}

/* ---- The same, one text at a time ---- */

static void plain_vector(const world *w, const char *text, const wg_embed_options *options,
                         double *vector) {
    enum { CLS = 2, SEP = 3 };
    wg_token_list tokens = {0};
    ck_assert_int_eq(wg_tokenizer_encode(w->tokenizer, text, -1, NULL, &tokens), 0);
    int64_t ids[POSITIONS], count = 0;
    if (w->shape == ENCODER)
        ids[count++] = CLS;
    for (int64_t i = 0; i < tokens.count; i++)
        ids[count++] = tokens.ids[i];
    if (w->shape == ENCODER)
        ids[count++] = SEP;
    wg_token_list_free(&tokens);
    const wg_model_inputs inputs = {.ids = wg_from_array(WG_I64, WG_DIMS(1, count), ids)};
    wg_tensor *hidden = wg_model_forward(&w->model, &inputs);
    const bool one = options->pooling == WG_POOL_TOKEN;
    const int64_t first = one && w->shape == DECODER ? count - 1 : 0;
    const int64_t end = one ? first + 1 : count;
    double squares = 0;
    for (int c = 0; c < WIDTH; c++) {
        vector[c] = 0;
        for (int64_t t = first; t < end; t++)
            vector[c] +=
                wg_item(wg_select(wg_select(wg_select(hidden, 0, 0), 0, t), 0, c)) / (end - first);
        squares += vector[c] * vector[c];
    }
    for (int c = 0; !options->not_normalized && c < WIDTH; c++)
        vector[c] /= sqrt(squares);
}

static const wg_embed_options ways[] = {
    {.pooling = WG_POOL_MEAN},
    {.pooling = WG_POOL_TOKEN},
    {.pooling = WG_POOL_MEAN, .not_normalized = true},
};

enum { WAYS = WG_COUNT(ways) };

START_TEST(vectors_are_those_of_one_text_at_a_time) {
    world w = world_of(_i / WAYS);
    float found[TEXTS][WIDTH];
    double wanted[WIDTH];
    ck_assert_int_eq(embed(&w, &ways[_i % WAYS], found), 0);
    for (int i = 0; i < TEXTS; i++) {
        plain_vector(&w, texts[i], &ways[_i % WAYS], wanted);
        assert_near(found[i], wanted);
    }
    free_world(&w);
}
END_TEST

START_TEST(a_decoder_with_a_begin_token_reads_it_first) {
    world w = world_of(DECODER);
    float without[TEXTS][WIDTH], with[TEXTS][WIDTH];
    ck_assert_int_eq(embed(&w, NULL, without), 0);
    ck_assert_int_eq(wg__tokenizer_set_special(w.tokenizer, WG_TOKEN_BEGIN, 2), 0);
    ck_assert_int_eq(embed(&w, NULL, with), 0);
    ck_assert_float_gt(fabsf(with[0][0] - without[0][0]), 1e-4F);
    free_world(&w);
}
END_TEST

/* ---- Batches ---- */

START_TEST(vectors_do_not_depend_on_batches) {
    world w = world_of(_i);
    float usual[TEXTS][WIDTH], small[TEXTS][WIDTH];
    ck_assert_int_eq(embed(&w, NULL, usual), 0);
    ck_assert_int_eq(embed(&w, &(wg_embed_options){.batch_tokens = 1}, small), 0);
    for (int i = 0; i < TEXTS; i++)
        for (int c = 0; c < WIDTH; c++)
            ck_assert_float_eq_tol(small[i][c], usual[i][c], 2e-6F);
    ck_assert_int_eq(memcmp(usual[0], usual[4], sizeof usual[0]), 0);
    free_world(&w);
}
END_TEST

START_TEST(nothing_is_recorded_and_the_mode_stays) {
    world w = world_of(_i);
    float vectors[TEXTS][WIDTH];
    wg_module_train(w.model.module, true);
    ck_assert_int_eq(embed(&w, NULL, vectors), 0);
    ck_assert(wg_module_is_training(w.model.module));
    ck_assert(wg_set_grad_enabled(true));
    free_world(&w);
}
END_TEST

START_TEST(embedding_can_be_stopped) {
    static const volatile sig_atomic_t stop = 2;
    world w = world_of(_i);
    float vectors[TEXTS][WIDTH];
    ck_assert_int_eq(embed(&w, &(wg_embed_options){.stop = &stop}, vectors), 1);
    assert_no_error();
    free_world(&w);
}
END_TEST

/* ---- Errors ---- */

static void assert_refused(const world *w, const wg_text_source *source, wg_error_code code,
                           const char *part) {
    float vector[WIDTH];
    assert_fails(wg_embed_texts(&w->model, w->tokenizer, NULL, 1, source, vector), code, part);
}

START_TEST(what_cannot_be_embedded_is_refused) {
    world w = world_of(_i);
    assert_refused(&w, &(wg_text_source){.text = ""}, WG_ERROR_ARGUMENT,
                   "text 1: the text is empty");
    assert_refused(&w, &(wg_text_source){.text = "", .file = "lines.txt", .line = 7},
                   WG_ERROR_ARGUMENT, "lines.txt, line 7: the text is empty");
    assert_refused(&w, &(wg_text_source){.text = "is is is is is is is is is is is is is"},
                   WG_ERROR_ARGUMENT, "the text has 13 tokens; the model takes 1");
    assert_refused(&w, &(wg_text_source){.text = "\xff"}, WG_ERROR_FORMAT, "UTF-8");
    free_world(&w);
}
END_TEST

START_TEST(a_model_from_one_text_to_another_is_refused) {
    world w = {.tokenizer = wg__wordpiece_new(TOKENS, vocabulary, NULL)};
    ck_assert_int_eq(
        wg_model_from_json(
            "{\"model_type\": \"t5\", \"vocab_size\": 20, \"d_model\": 16, \"d_kv\": 8,"
            " \"d_ff\": 32, \"num_layers\": 1, \"num_heads\": 2}",
            5, &w.model),
        0);
    assert_refused(&w, &(wg_text_source){.text = "sun"}, WG_ERROR_STATE,
                   "a t5 model gives no vectors of texts");
    free_world(&w);
}
END_TEST

static const char *shape_name(int shape) {
    return shape == ENCODER ? "encoder" : "decoder";
}

static const char *way_name(int number) {
    static const char *const names[] = {"encoder mean", "encoder token", "encoder lengths kept",
                                        "decoder mean", "decoder token", "decoder lengths kept"};
    return names[number];
}

SUITES {
    const TTest *const ways_tests[] = {vectors_are_those_of_one_text_at_a_time};
    add_suite_of_range("embed ways", 1, ways_tests, 0, SHAPES * WAYS, way_name);
    const TTest *const of_each[] = {
        vectors_do_not_depend_on_batches,
        nothing_is_recorded_and_the_mode_stays,
        embedding_can_be_stopped,
        what_cannot_be_embedded_is_refused,
    };
    add_suite_of_range("embed", WG_COUNT(of_each), of_each, 0, SHAPES, shape_name);
    const TTest *const tests[] = {
        a_decoder_with_a_begin_token_reads_it_first,
        a_model_from_one_text_to_another_is_refused,
    };
    add_suite("embed details", tests);
}
