/* Models of every type whose vocabulary is extended: old rows, means, rows that move, refusals. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer/tokenizer.h"
#include "models/model.h"
#include "tests/support/testing.h"
#include "data/internal.h"

static const char old_text[] = "low low lower newest newest wide wide widest , . low newest";
static const char new_text[] = "slowest slowest slowest widower widower newest , newest .";

typedef struct world {
    wg_tokenizer *tokenizer;
    wg_vocabulary_extension extension;
    wg_model model;
    int64_t size, rows; /* of the tokenizer and of the model, before */
} world;

static const char *name_of(int type) {
    return wg_model_type_at(type)->name;
}

/* Encoders and prefix decoders learn WordPiece, the others byte-level BPE. */
static void begin(world *w, int number) {
    const wg_model_type *type = wg_model_type_at(number);
    const bool words = type->shape & (WG_ENCODER | WG_PREFIX_DECODER);
    *w = (world){0};
    w->tokenizer = words ? wg__wordpiece_train(old_text, -1, NULL)
                         : wg__bpe_train(old_text, -1, &(wg_bpe_training){.vocabulary_size = 262});
    const char *path = write_text("domain.txt", new_text);
    ck_assert_int_eq(wg_tokenizer_extend(w->tokenizer, 1, &path, 5, &w->extension), 0);
    ck_assert_int_ge(w->extension.count, 2);
    void *config = wg__calloc(1, type->settings.size);
    wg_model_fit fit = {.tokenizer = w->tokenizer, .sequence = 16};
    wg_model_preset_config(type, NULL, config);
    ck_assert_int_eq(wg_model_config_fit(type, config, &fit), 0);
    wg_model_from_config(type, config, 1, &w->model);
    wg__free(config);
    assert_no_error();
    w->size = wg_tokenizer_size(w->tokenizer);
    w->rows = wg_model_sizes_of(&w->model).vocabulary;
}

static void end(world *w) {
    wg_model_free(&w->model);
    wg_vocabulary_extension_clear(&w->extension);
    wg_tokenizer_free(w->tokenizer);
}

/* The value that element c of row i has to have. */
static double wanted(const world *w, const float *old, int64_t width, int64_t i, int64_t c) {
    const wg_vocabulary_extension *x = &w->extension;
    if (i < w->size)
        return old[i * width + c];
    if (i >= w->size + x->count)
        return old[(i - x->count) * width + c];
    double sum = 0;
    for (int64_t p = x->starts[i - w->size]; p < x->starts[i - w->size + 1]; p++)
        sum += old[x->pieces[p] * width + c];
    return sum / (double)(x->starts[i - w->size + 1] - x->starts[i - w->size]);
}

/* Every parameter of the extended model beside that of the old one. */
START_TEST(rows_stay_move_and_are_means_of_their_pieces) {
    world w, old;
    begin(&w, _i);
    begin(&old, _i);
    ck_assert_int_eq(wg_model_extend_vocabulary(&w.model, w.tokenizer, &w.extension), 0);
    assert_no_error();
    ck_assert_int_eq(wg_model_sizes_of(&w.model).vocabulary, w.rows + w.extension.count);
    wg_state_dict *state = wg_module_state(w.model.module);
    int64_t grown = 0;
    for (int64_t s = 0; s < state->count; s++) {
        const wg_tensor *x = state->entries[s].slot->tensor;
        const wg_tensor *before = wg_module_find(old.model.module, state->entries[s].path)->tensor;
        const float *values = wg_tensor_data(x), *old_values = wg_tensor_data(before);
        if (wg_tensor_count(x) == wg_tensor_count(before)) {
            ck_assert_mem_eq(values, old_values,
                             (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x)));
            continue;
        }
        const int64_t rows = wg_tensor_size(x, 0), width = wg_tensor_count(x) / rows;
        ck_assert_int_eq(rows, w.rows + w.extension.count);
        grown++;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t c = 0; c < width; c++)
                ck_assert_double_eq_tol(values[i * width + c],
                                        wanted(&old, old_values, width, i, c), 1e-6);
    }
    ck_assert_int_ge(grown, 1);
    wg_state_dict_free(state);
    end(&w);
    end(&old);
}
END_TEST

START_TEST(a_model_of_another_vocabulary_is_refused) {
    world w;
    begin(&w, _i);
    wg_tokenizer *other = wg__wordpiece_train("ab ac ad", -1, NULL);
    wg_vocabulary_extension x;
    const char *path = write_text("other.txt", "cab cab");
    ck_assert_int_eq(wg_tokenizer_extend(other, 1, &path, 5, &x), 0);
    assert_fails(wg_model_extend_vocabulary(&w.model, other, &x), WG_ERROR_STATE,
                 "tokens and its tokenizer");
    ck_assert_int_eq(wg_model_sizes_of(&w.model).vocabulary, w.rows);
    wg_vocabulary_extension_clear(&x);
    wg_tokenizer_free(other);
    end(&w);
}
END_TEST

SUITES {
    int types = 0;
    while (wg_model_type_at(types))
        types++;
    const TTest *const each[] = {rows_stay_move_and_are_means_of_their_pieces};
    add_suite_of_each("vocabulary", each, types, name_of);
    const TTest *const first[] = {a_model_of_another_vocabulary_is_refused};
    add_suite_of_range("vocabulary_refusals", WG_COUNT(first), first, 0, 1, name_of);
}
