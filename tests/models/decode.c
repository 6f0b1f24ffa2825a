/* Generation with GPT-2 and LLaMA: the logits of a full forward, batches equal single texts,
 * limits, cancellation. A case is a model. */
#include <math.h>
#include <string.h>

#include "models/generate/decode.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

enum { VOCAB = 40, POSITIONS = 24 };

/* The weights are large, so that the next token depends on all before it. */
static wg_model gpt_new(void) {
    return preset_model("gpt2-tiny",
                        "'vocab_size': 40, 'n_positions': 24, 'n_embd': 16, 'n_head': 4, "
                        "'n_inner': 24, 'initializer_range': 0.4, 'bos_token_id': 0, "
                        "'eos_token_id': 0",
                        1);
}

#define LLAMA                                                                                      \
    "'vocab_size': 40, 'hidden_size': 16, 'intermediate_size': 24, 'num_hidden_layers': 2, "       \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'max_position_embeddings': 24, "          \
    "'initializer_range': 0.4"

static wg_model llama_new(void) {
    return preset_model("llama-260k", LLAMA, 1);
}

/* The table of bigrams, which begins at 0, is as large as the other weights. */
static wg_model llama_bigrams_new(void) {
    wg_model model = preset_model("llama-260k", LLAMA ", 'bigram_vocab_size': 100", 1);
    wg_generator generator = {.seed = 3};
    wg_set_grad_enabled(false);
    const wg_initializer large = {WG_INIT_NORMAL, 0.4};
    ck_assert_int_eq(wg_initialize(((wg_llama *)model.module)->bigrams->weight, &large, &generator),
                     0);
    wg_set_grad_enabled(true);
    return model;
}

static const struct {
    const char *name;
    wg_model (*make)(void);
} models[] = {{"gpt", gpt_new}, {"llama", llama_new}, {"llama-bigrams", llama_bigrams_new}};

static const char *model_name(int index) {
    return models[index].name;
}

/* Prompts of these lengths; each has a generator of its own. */
static const int lengths[] = {5, 1, 9, 5};
enum { TEXTS = sizeof lengths / sizeof lengths[0] };

static wg_generation make_text(int number) {
    wg_generation text = {.generator = {.seed = 100 + (uint64_t)number}};
    for (int i = 0; i < lengths[number]; i++)
        wg_token_list_append(&text.tokens, (7 * number + 11 * i + i * i) % VOCAB);
    return text;
}

static void make_texts(wg_generation *texts) {
    for (int i = 0; i < TEXTS; i++)
        texts[i] = make_text(i);
}

static void free_texts(int count, wg_generation *texts) {
    for (int i = 0; i < count; i++)
        wg_token_list_free(&texts[i].tokens);
}

static void assert_same_tokens(const wg_generation *a, const wg_generation *b) {
    ck_assert_int_eq(a->tokens.count, b->tokens.count);
    ck_assert_mem_eq(a->tokens.ids, b->tokens.ids, (size_t)a->tokens.count * sizeof(int32_t));
}

/* ---- Logits ---- */

/* The logits of every token that a listener was called with. */
typedef struct heard {
    int64_t count[TEXTS];
    float logits[TEXTS][POSITIONS][VOCAB];
    int32_t ids[TEXTS][POSITIONS];
} heard;

static void listen(const wg_generated_token *token, void *context) {
    heard *h = context;
    int64_t at = h->count[token->text]++;
    memcpy(h->logits[token->text][at], token->logits, sizeof h->logits[0][0]);
    h->ids[token->text][at] = token->id;
}

START_TEST(every_step_has_the_logits_of_a_full_forward) {
    wg_model model = models[_i].make();
    static heard h;
    memset(&h, 0, sizeof h);
    wg_generation texts[TEXTS];
    make_texts(texts);
    const wg_generation_options options = {
        .sampling = {.temperature = 1}, .listener = listen, .listener_context = &h};
    ck_assert_int_eq(wg_generate(&model, TEXTS, texts, &options), 0);
    wg_set_grad_enabled(false);
    wg_module_train(model.module, false);
    for (int n = 0; n < TEXTS; n++) {
        ck_assert_int_eq(h.count[n], POSITIONS - lengths[n]);
        ck_assert_int_eq(h.count[n], texts[n].generated);
        ck_assert_mem_eq(h.ids[n], texts[n].tokens.ids + lengths[n],
                         (size_t)h.count[n] * sizeof(int32_t));
        wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, POSITIONS), texts[n].tokens.ids);
        wg_tensor *all = logits_of_ids(&model, ids);
        wg_tensor *wanted = wg_slice(wg_select(all, 0, 0), 0, lengths[n] - 1, POSITIONS - 1, 1);
        wg_tensor *found = wg_from_array(WG_F32, WG_DIMS(h.count[n], VOCAB), h.logits[n]);
        assert_close(found, wanted, 1e-5, 1e-5);
    }
    wg_set_grad_enabled(true);
    free_texts(TEXTS, texts);
    wg_module_free(model.module);
}
END_TEST

/* ---- Batches ---- */

static void check_batch(wg_model *model, const wg_sampling *sampling) {
    wg_generation texts[TEXTS];
    const int32_t stop[] = {0, 3};
    const wg_generation_options options = {
        .sampling = *sampling, .max_tokens = 17, .stop_ids = stop, .stop_count = 2};
    make_texts(texts);
    ck_assert_int_eq(wg_generate(model, TEXTS, texts, &options), 0);
    for (int n = 0; n < TEXTS; n++) {
        wg_generation alone = make_text(n);
        ck_assert_int_eq(wg_generate(model, 1, &alone, &options), 0);
        assert_same_tokens(&alone, &texts[n]);
        ck_assert_int_eq(alone.end, texts[n].end);
        ck_assert_int_eq(alone.generator.offset, texts[n].generator.offset);
        free_texts(1, &alone);
    }
    free_texts(TEXTS, texts);
}

START_TEST(a_batch_gives_what_its_texts_give_one_by_one) {
    wg_model model = models[_i].make();
    check_batch(&model, &(wg_sampling){0});
    check_batch(&model, &(wg_sampling){.temperature = 1});
    check_batch(&model, &(wg_sampling){.temperature = 1.5, .top_k = 9, .repetition_penalty = 1.3});
    check_batch(&model, &(wg_sampling){.temperature = 1, .top_p = 0.8, .min_p = 0.05});
    wg_module_free(model.module);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_text_and_another_seed_another) {
    wg_model model = models[_i].make();
    const wg_generation_options options = {.sampling = {.temperature = 2}};
    wg_generation texts[3] = {make_text(0), make_text(0), make_text(0)};
    texts[2].generator.seed++;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(wg_generate(&model, 1, &texts[i], &options), 0);
    assert_same_tokens(&texts[0], &texts[1]);
    ck_assert(memcmp(texts[0].tokens.ids, texts[2].tokens.ids, POSITIONS * sizeof(int32_t)) != 0);
    free_texts(3, texts);
    wg_module_free(model.module);
}
END_TEST

/* ---- Ends ---- */

START_TEST(texts_end_at_their_limits) {
    wg_model model = models[_i].make();
    wg_generation text = make_text(0);
    ck_assert_int_eq(wg_generate(&model, 1, &text, &(wg_generation_options){.max_tokens = 3}), 0);
    ck_assert_int_eq(text.end, WG_END_LENGTH);
    ck_assert_int_eq(text.generated, 3);
    ck_assert_int_eq(text.tokens.count, lengths[0] + 3);
    ck_assert_int_eq(wg_generate(&model, 1, &text, NULL), 0);
    ck_assert_int_eq(text.end, WG_END_POSITIONS);
    ck_assert_int_eq(text.generated, POSITIONS - lengths[0] - 3);
    ck_assert_int_eq(text.tokens.count, POSITIONS);
    assert_fails(wg_generate(&model, 1, &text, NULL), WG_ERROR_ARGUMENT,
                 "24 tokens, and the model has 24 positions");
    free_texts(1, &text);
    wg_module_free(model.module);
}
END_TEST

/* The third token of the greedy text is made a stop token. */
START_TEST(a_stop_token_ends_a_text_and_is_no_part_of_it) {
    wg_model model = models[_i].make();
    wg_generation whole = make_text(0), stopped = make_text(0);
    ck_assert_int_eq(wg_generate(&model, 1, &whole, NULL), 0);
    const int32_t stop = whole.tokens.ids[lengths[0] + 2];
    int64_t first = lengths[0];
    while (whole.tokens.ids[first] != stop)
        first++;
    const wg_generation_options options = {.stop_ids = &stop, .stop_count = 1};
    ck_assert_int_eq(wg_generate(&model, 1, &stopped, &options), 0);
    ck_assert_int_eq(stopped.end, WG_END_STOP);
    ck_assert_int_eq(stopped.tokens.count, first);
    free_texts(1, &whole);
    free_texts(1, &stopped);
    wg_module_free(model.module);
}
END_TEST

typedef struct canceller {
    sig_atomic_t stop;
    int heard;
} canceller;

static void cancel_after_four(const wg_generated_token *token, void *context) {
    canceller *c = context;
    (void)token;
    if (++c->heard == 4)
        c->stop = 1;
}

START_TEST(a_listener_can_cancel) {
    wg_model model = models[_i].make();
    wg_generation text = make_text(0);
    canceller c = {0};
    const wg_generation_options options = {
        .listener = cancel_after_four, .listener_context = &c, .stop = &c.stop};
    ck_assert_int_eq(wg_generate(&model, 1, &text, &options), 0);
    ck_assert_int_eq(text.end, WG_END_CANCELLED);
    ck_assert_int_eq(text.generated, 4);
    free_texts(1, &text);
    wg_module_free(model.module);
}
END_TEST

START_TEST(ids_stay_below_the_vocabulary_of_a_tokenizer) {
    wg_model model = models[_i].make();
    wg_generation text = make_text(1);
    text.tokens.ids[0] = 2;
    const wg_generation_options options = {.sampling = {.temperature = 100}, .vocabulary = 4};
    ck_assert_int_eq(wg_generate(&model, 1, &text, &options), 0);
    for (int64_t i = 0; i < text.tokens.count; i++)
        ck_assert_int_lt(text.tokens.ids[i], 4);
    free_texts(1, &text);
    wg_module_free(model.module);
}
END_TEST

START_TEST(training_and_recording_are_as_they_were) {
    wg_model model = models[_i].make();
    wg_generation text = make_text(0);
    ck_assert_int_eq(wg_generate(&model, 1, &text, NULL), 0);
    ck_assert(wg_module_is_training(model.module));
    ck_assert(wg_set_grad_enabled(true));
    ck_assert_int_eq(wg_module_generator(model.module)->seed, 1);
    free_texts(1, &text);
    wg_module_free(model.module);
}
END_TEST

/* ---- Memory ---- */

enum { WARM = 3 };

static void count_allocations(const wg_generated_token *token, void *context) {
    (void)token;
    int64_t *counts = context; /* the number of tokens, then the allocation counter at each */
    counts[1 + counts[0]++] = wg_alloc_get_stats().system_allocations;
}

START_TEST(once_warm_a_token_asks_the_system_for_no_memory) {
    wg_model model = models[_i].make();
    for (int quantization = -1; quantization < WG_QUANTIZATION_COUNT; quantization++) {
        int64_t counts[1 + POSITIONS] = {0};
        wg_generation text = make_text(0);
        if (quantization >= 0)
            ck_assert_int_eq(wg_module_quantize(model.module, (wg_quantization)quantization), 0);
        const wg_generation_options options = {.listener = count_allocations,
                                               .listener_context = counts};
        ck_assert_int_eq(wg_generate(&model, 1, &text, &options), 0);
        ck_assert_int_eq(counts[0], POSITIONS - lengths[0]);
        for (int64_t i = 1 + WARM; i <= counts[0]; i++)
            ck_assert_int_eq(counts[i], counts[WARM]);
        free_texts(1, &text);
    }
    wg_module_free(model.module);
}
END_TEST

/* ---- Refusals ---- */

START_TEST(what_cannot_be_continued_is_refused) {
    wg_model model = models[_i].make();
    wg_generation empty = {0}, text = make_text(0);
    assert_fails(wg_generate(&model, 1, &empty, NULL), WG_ERROR_ARGUMENT, "empty");
    assert_fails(wg_generate(&model, 1, &text, &(wg_generation_options){.max_tokens = -1}),
                 WG_ERROR_ARGUMENT, "max_tokens");
    const wg_generation_options hot = {.sampling = {.temperature = -1}}, large = {.vocabulary = 41};
    assert_fails(wg_generate(&model, 1, &text, &hot), WG_ERROR_ARGUMENT, "temperature");
    assert_fails(wg_generate(&model, 1, &text, &large), WG_ERROR_ARGUMENT, "vocabulary of 41");
    text.tokens.ids[2] = VOCAB;
    assert_fails(wg_generate(&model, 1, &text, NULL), WG_ERROR_INDEX, "token 40");
    ck_assert_int_eq(text.tokens.count, lengths[0]);
    free_texts(1, &text);
    wg_module_free(model.module);
}
END_TEST

START_TEST(a_broken_model_is_refused) {
    wg_model model = models[_i].make();
    wg_generation text = make_text(0);
    wg_state_dict *state = wg_module_state(model.module);
    wg_set_grad_enabled(false);
    wg_copy_(state->entries[0].slot->tensor, wg_full(WG_F32, WG_DIMS(1), NAN));
    wg_set_grad_enabled(true);
    wg_state_dict_free(state);
    assert_fails(wg_generate(&model, 1, &text, NULL), WG_ERROR_ARGUMENT, "nan");
    free_texts(1, &text);
    wg_module_free(model.module);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        every_step_has_the_logits_of_a_full_forward,
        a_batch_gives_what_its_texts_give_one_by_one,
        the_same_seed_gives_the_same_text_and_another_seed_another,
        texts_end_at_their_limits,
        a_stop_token_ends_a_text_and_is_no_part_of_it,
        a_listener_can_cancel,
        ids_stay_below_the_vocabulary_of_a_tokenizer,
        training_and_recording_are_as_they_were,
        once_warm_a_token_asks_the_system_for_no_memory,
        what_cannot_be_continued_is_refused,
        a_broken_model_is_refused,
    };
    add_suite_of_each("decode", of_each, WG_COUNT(models), model_name);
}
