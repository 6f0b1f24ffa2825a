/* Generation by models of a program's own, with states of their own kinds. */
#include "models/generate/decode.h"

#include <string.h>

#include "nn/recurrent.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

enum { VOCABULARY = 7, WIDTH = 5, HIDDEN = 6, MOST = 5 };

typedef struct writer {
    wg_module module;
    wg_embedding *table;
    wg_gru *gru;
    wg_linear *head;
    int states;      /* that were begun and have not ended */
    int64_t longest; /* tokens that were read at once */
    bool broken;     /* it gives logits of another shape */
} writer;

static writer *make(void) {
    writer *w = wg_module_new(NULL, "", sizeof *w);
    w->module.generator.seed = 3;
    w->table = wg_embedding_new(&w->module, "table", VOCABULARY, WIDTH, NULL);
    w->gru = wg_gru_new(&w->module, "gru", WIDTH, HIDDEN,
                        &(wg_recurrent_options){.layers = 2, .batch_first = true, .dropout = 0.5});
    w->head = wg_linear_new(&w->module, "head", HIDDEN, VOCABULARY, NULL);
    const wg_initializer wide = {WG_INIT_NORMAL, 2}; /* so that choices depend on what was read */
    wg_initialize(w->head->weight, &wide, wg_module_generator(&w->module));
    return wg_module_finish(&w->module);
}

typedef struct memory {
    wg_tensor *h;
} memory;

static void *begin(void *context, int64_t texts, int64_t length) {
    writer *w = context;
    ck_assert_int_gt(texts, 0);
    ck_assert_int_gt(length, 0);
    w->states++;
    return wg__calloc(1, sizeof(memory));
}

static wg_tensor *logits_of(writer *w, wg_tensor *ids, wg_tensor **h) {
    wg_tensor *hidden = wg_gru_forward(w->gru, wg_embedding_forward(w->table, ids), h);
    return wg_linear_forward(w->head, wg_select(hidden, 1, -1));
}

static wg_tensor *read_on(void *context, void *state, const wg_new_tokens *tokens) {
    writer *w = context;
    memory *m = state;
    wg_tensor *h = m->h;
    ck_assert_ptr_null(tokens->keep);
    ck_assert(!wg_module_is_training(&w->module) && !wg_grad_enabled());
    if (wg_tensor_size(tokens->ids, 1) > w->longest)
        w->longest = wg_tensor_size(tokens->ids, 1);
    wg_tensor *logits = logits_of(w, tokens->ids, &h);
    wg_release(m->h);
    m->h = wg_keep(h);
    return w->broken ? wg_slice(logits, 1, 0, 2, 1) : logits;
}

static int reorder(void *context, void *state, wg_tensor *index) {
    memory *m = state;
    (void)context;
    wg_tensor *h = wg_keep(wg_index_select(m->h, 1, index));
    wg_release(m->h);
    m->h = h;
    return h ? 0 : -1;
}

static void end(void *context, void *state) {
    memory *m = state;
    ((writer *)context)->states--;
    wg_release(m->h);
    wg__free(m);
}

static wg_language_model model_of(writer *w) {
    return (wg_language_model){.context = w,
                               .module = &w->module,
                               .vocabulary = VOCABULARY,
                               .begin = begin,
                               .read = read_on,
                               .reorder = reorder,
                               .end = end};
}

static const int32_t prompts[3][6] = {{1, 2}, {3, 0, 5, 4, 6, 1}, {6, 4, 4}};
static const int64_t lengths[3] = {2, 6, 3};

static void set_prompt(wg_generation *text, int i) {
    *text = (wg_generation){.generator = {.seed = (uint64_t)i + 1}};
    for (int64_t k = 0; k < lengths[i]; k++)
        ck_assert_int_eq(wg_token_list_append(&text->tokens, prompts[i][k]), 0);
}

/* The likeliest tokens, each by reading the whole text anew. */
static void continue_slowly(writer *w, wg_generation *text) {
    const bool recorded = wg_set_grad_enabled(false);
    wg_module_train(&w->module, false);
    for (int i = 0; i < MOST; i++) {
        int64_t ids[16];
        for (int64_t k = 0; k < text->tokens.count; k++)
            ids[k] = text->tokens.ids[k];
        wg_tensor *x = wg_from_array(WG_I64, WG_DIMS(1, text->tokens.count), ids);
        const double best = wg_item(wg_argmax(logits_of(w, x, NULL), 1, false));
        wg_token_list_append(&text->tokens, (int32_t)best);
    }
    wg_module_train(&w->module, true);
    wg_set_grad_enabled(recorded);
}

START_TEST(texts_of_different_lengths_are_continued_as_by_reading_them_anew) {
    writer *w = make();
    const wg_language_model model = model_of(w);
    wg_generation texts[3], slow[3];
    for (int i = 0; i < 3; i++) {
        set_prompt(&texts[i], i);
        set_prompt(&slow[i], i);
        continue_slowly(w, &slow[i]);
    }
    const wg_generation_options options = {.max_tokens = MOST};
    ck_assert_int_eq(wg_language_model_generate(&model, 3, texts, &options), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(texts[i].generated, MOST);
        ck_assert_int_eq(texts[i].end, WG_END_LENGTH);
        ck_assert_int_eq(texts[i].tokens.count, slow[i].tokens.count);
        ck_assert_mem_eq(texts[i].tokens.ids, slow[i].tokens.ids,
                         (size_t)slow[i].tokens.count * sizeof(int32_t));
        wg_token_list_free(&texts[i].tokens);
        wg_token_list_free(&slow[i].tokens);
    }
    ck_assert_int_eq(w->longest, 2); /* what all prompts have is read at once */
    ck_assert_int_eq(w->states, 0);
    ck_assert(wg_module_is_training(&w->module));
    wg_module_free(&w->module);
}
END_TEST

START_TEST(texts_that_end_leave_the_others_as_they_are) {
    writer *w = make();
    const wg_language_model model = model_of(w);
    const int32_t stops[] = {0, 3};
    const wg_generation_options options = {
        .sampling = {.temperature = 1}, .max_tokens = 12, .stop_ids = stops, .stop_count = 2};
    wg_generation together[3], alone;
    for (int i = 0; i < 3; i++)
        set_prompt(&together[i], i);
    ck_assert_int_eq(wg_language_model_generate(&model, 3, together, &options), 0);
    int64_t ended = 0;
    for (int i = 0; i < 3; i++) {
        set_prompt(&alone, i);
        ck_assert_int_eq(wg_language_model_generate(&model, 1, &alone, &options), 0);
        ck_assert_int_eq(alone.tokens.count, together[i].tokens.count);
        ck_assert_mem_eq(alone.tokens.ids, together[i].tokens.ids,
                         (size_t)alone.tokens.count * sizeof(int32_t));
        ended += together[i].end == WG_END_STOP;
        wg_token_list_free(&alone.tokens);
        wg_token_list_free(&together[i].tokens);
    }
    ck_assert_int_gt(ended, 0);
    wg_module_free(&w->module);
}
END_TEST

START_TEST(a_model_that_cannot_be_used_is_refused_and_its_state_freed) {
    writer *w = make();
    wg_language_model model = model_of(w);
    wg_generation text;
    set_prompt(&text, 0);
    assert_fails(wg_language_model_generate(&model, 1, &text, NULL), WG_ERROR_ARGUMENT,
                 "max_tokens is 0");
    w->broken = true;
    const wg_generation_options options = {.max_tokens = 3};
    assert_fails(wg_language_model_generate(&model, 1, &text, &options), WG_ERROR_SHAPE,
                 "the logits are (1, 2) f32; wanted (1, 7)");
    ck_assert_int_eq(w->states, 0);
    model.positions = 2;
    assert_fails(wg_language_model_generate(&model, 1, &text, &options), WG_ERROR_ARGUMENT,
                 "2 positions");
    model.read = NULL;
    assert_fails(wg_language_model_generate(&model, 1, &text, &options), WG_ERROR_ARGUMENT,
                 "begin, read, reorder and end");
    wg_token_list_free(&text.tokens);
    wg_module_free(&w->module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        texts_of_different_lengths_are_continued_as_by_reading_them_anew,
        texts_that_end_leave_the_others_as_they_are,
        a_model_that_cannot_be_used_is_refused_and_its_state_freed,
    };
    add_suite("language_model", tests);
}
