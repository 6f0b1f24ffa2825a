/* GLM: its attention mask, caches, and errors. */
#include <string.h>

#include "objectives/blank_infilling.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "models/glm.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "models/internal.h"

/* The sizes of the fixture. */
enum { B = 3, T = 16, VOCAB = 48, POSITIONS = 16, LAYERS = 2 };

static wg_tensor *load(const char *name) {
    return fixture_tensor("glm/%s", name);
}

static wg_tensor *forward(const wg_model *model, wg_tensor *ids, const wg_model_inputs *inputs) {
    wg_model_inputs all = inputs ? *inputs : (wg_model_inputs){0};
    all.ids = ids;
    return wg_model_forward(model, &all);
}

static wg_model_inputs load_inputs(void) {
    return (wg_model_inputs){.position_ids = load("position_ids"),
                             .block_position_ids = load("block_position_ids"),
                             .part_a = load("part_a")};
}

/* ---- Who sees whom ---- */

/* The change of the hidden state at each position of a sequence of 6, of which 3 are Part A, when
 * the token at `changed` changes. */
static void changes(const wg_model *model, int64_t changed, double out[6]) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_model_inputs inputs = {.part_a = wg_full(WG_I64, WG_DIMS(1), 3)};
    wg_tensor *before = wg_zeros(WG_I64, WG_DIMS(1, 6)), *after = wg_zeros(WG_I64, WG_DIMS(1, 6));
    ((int64_t *)wg_tensor_data(after))[changed] = 7;
    wg_tensor *difference = wg_sub(forward(model, after, &inputs), forward(model, before, &inputs));
    wg_tensor *most = wg_max(wg_abs(difference), WG_DIMS(-1), false);
    for (int64_t i = 0; i < 6; i++)
        out[i] = wg_at(most, (int64_t[]){0, i});
    wg_scope_end(&scope, NULL);
}

START_TEST(part_a_is_seen_by_all_and_part_b_by_what_follows) {
    wg_model model = load_fixture_model("glm", WG_F64);
    wg_set_grad_enabled(false);
    for (int64_t j = 0; j < 6; j++) {
        double change[6];
        changes(&model, j, change);
        for (int64_t i = 0; i < 6; i++)
            ck_assert_msg((change[i] > 0) == (j < 3 || j <= i), "%d of %d", (int)i, (int)j);
    }
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

START_TEST(a_mask_says_the_same_as_part_a_does) {
    wg_model model = load_fixture_model("glm", WG_F32);
    wg_set_grad_enabled(false);
    wg_model_inputs inputs = load_inputs();
    wg_tensor *ids = load("ids");
    wg_tensor *wanted = forward(&model, ids, &inputs);
    wg_tensor *row = wg_reshape(wg_arange(WG_I64, 0, T, 1), WG_DIMS(T, 1));
    wg_tensor *column = wg_arange(WG_I64, 0, T, 1);
    wg_tensor *part_a = wg_reshape(inputs.part_a, WG_DIMS(B, 1, 1, 1));
    inputs.mask = wg_logical_or(wg_le(column, row), wg_lt(column, part_a));
    assert_fails(forward(&model, ids, &inputs), WG_ERROR_ARGUMENT, "part_a and a mask");
    inputs.part_a = NULL;
    assert_close(forward(&model, ids, &inputs), wanted, 0, 0);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

START_TEST(without_inputs_all_is_part_a_and_none_of_it_in_a_block) {
    wg_model model = load_fixture_model("glm", WG_F32);
    wg_set_grad_enabled(false);
    wg_tensor *ids = load("ids");
    wg_tensor *positions = wg_arange(WG_I64, 0, T, 1);
    wg_model_inputs inputs = {.position_ids =
                                  wg_cat(WG_TENSORS(wg_reshape(positions, WG_DIMS(1, T)),
                                                    wg_reshape(positions, WG_DIMS(1, T)),
                                                    wg_reshape(positions, WG_DIMS(1, T))),
                                         0),
                              .block_position_ids = wg_zeros(WG_I64, WG_DIMS(B, T)),
                              .part_a = wg_full(WG_I64, WG_DIMS(B), T)};
    assert_close(forward(&model, ids, NULL), forward(&model, ids, &inputs), 0, 0);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

/* ---- Generation ---- */

/* Part A at once and Part B token by token give the results of the whole sequence at once. */
START_TEST(a_cache_gives_part_b_token_by_token) {
    enum { ROW = 1, PART_A = 4, LENGTH = 11 };
    wg_model model = load_fixture_model("glm", WG_F32);
    wg_set_grad_enabled(false);
    wg_kv_cache caches[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_init(&caches[i], LENGTH);
    wg_tensor *ids = wg_slice(load("ids"), 0, ROW, ROW + 1, 1);
    wg_model_inputs all = load_inputs();
    wg_tensor *positions = wg_slice(all.position_ids, 0, ROW, ROW + 1, 1);
    wg_tensor *blocks = wg_slice(all.block_position_ids, 0, ROW, ROW + 1, 1);
    wg_tensor *wanted = wg_slice(load("logits"), 0, ROW, ROW + 1, 1);
    for (int64_t at = 0, end = PART_A + 2; at < LENGTH; at = end++) {
        wg_model_inputs inputs = {.position_ids = wg_slice(positions, 1, at, end, 1),
                                  .block_position_ids = wg_slice(blocks, 1, at, end, 1),
                                  .part_a = wg_full(WG_I64, WG_DIMS(1), PART_A),
                                  .caches = caches};
        wg_tensor *hidden = forward(&model, wg_slice(ids, 1, at, end, 1), &inputs);
        assert_relative(wg_model_logits(&model, hidden, NULL), wg_slice(wanted, 1, at, end, 1),
                        1e-5);
    }
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

/* Texts with Parts A of different lengths in one batch: the shorter ones begin with padding, which
 * is masked. (B, 1, T, seen + T): `end` is where Parts A end and Parts B begin. */
static wg_tensor *padded_mask(const int64_t *part_a, int64_t end, int64_t seen, int64_t count) {
    static bool sees[B * T * 2 * T];
    bool *next = sees;
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = seen; i < seen + count; i++)
            for (int64_t key = 0; key < seen + count; key++)
                *next++ = key >= end - part_a[b] && (key < end || key <= i);
    return wg_from_array(WG_BOOL, WG_DIMS(B, 1, count, seen + count), sees);
}

/* Columns of a fixture (B, T): row b from part_a[b] + first on; 0 in front of it. */
static wg_tensor *columns(const char *name, const int64_t *part_a, int64_t first, int64_t count) {
    const int64_t *from = wg_tensor_data(load(name));
    int64_t rows[B * T];
    for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < count; i++) {
            const int64_t at = part_a[b] + first + i;
            rows[b * count + i] = at < 0 ? 0 : from[b * T + at];
        }
    return wg_from_array(WG_I64, WG_DIMS(B, count), rows);
}

START_TEST(a_batch_of_texts_of_other_lengths_has_by_caches_the_logits_of_full_forwards) {
    wg_model model = load_fixture_model("glm", WG_F32);
    const int64_t *part_a = wg_tensor_data(load("part_a"));
    int64_t end = 0, shortest = T;
    for (int b = 0; b < B; b++) {
        end = part_a[b] > end ? part_a[b] : end;
        shortest = part_a[b] < shortest ? part_a[b] : shortest;
    }
    ck_assert_int_lt(shortest, end);
    wg_set_grad_enabled(false);
    wg_kv_cache caches[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_init(&caches[i], 2 * T);
    for (int64_t seen = 0, count = end; seen < T; seen += count, count = 1) {
        const int64_t first = seen - end; /* of Part B */
        const wg_model_inputs inputs = {
            .position_ids = columns("position_ids", part_a, first, count),
            .block_position_ids = columns("block_position_ids", part_a, first, count),
            .mask = padded_mask(part_a, end, seen, count),
            .caches = caches,
        };
        wg_tensor *ids = columns("ids", part_a, first, count);
        wg_tensor *logits = wg_model_logits(&model, forward(&model, ids, &inputs), NULL);
        for (int64_t b = 0; b < B; b++) {
            wg_tensor *wanted =
                wg_select(wg_select(load("logits"), 0, b), 0, part_a[b] + first + count - 1);
            assert_relative(wg_select(wg_select(logits, 0, b), 0, count - 1), wanted, 1e-4);
        }
    }
    for (int i = 0; i < LAYERS; i++)
        wg_kv_cache_clear(&caches[i]);
    wg_set_grad_enabled(true);
    free_model(&model);
}
END_TEST

/* ---- Errors ---- */

START_TEST(inputs_that_do_not_fit_are_refused) {
    wg_model model = new_fixture_model("glm");
    wg_tensor *ids = wg_zeros(WG_I64, WG_DIMS(2, 3));
    wg_model_inputs inputs = {.part_a = wg_zeros(WG_I64, WG_DIMS(3))};
    assert_fails(forward(&model, ids, &inputs), WG_ERROR_SHAPE, "part_a has rank 1 and 3 elements");
    assert_fails(forward(&model, wg_zeros(WG_I64, WG_DIMS(1, POSITIONS + 2)), NULL), WG_ERROR_INDEX,
                 "17");
    assert_fails(forward(&model, wg_full(WG_I64, WG_DIMS(1, 2), VOCAB), NULL), WG_ERROR_INDEX,
                 "48");
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        part_a_is_seen_by_all_and_part_b_by_what_follows,
        a_mask_says_the_same_as_part_a_does,
        without_inputs_all_is_part_a_and_none_of_it_in_a_block,
        a_cache_gives_part_b_token_by_token,
        a_batch_of_texts_of_other_lengths_has_by_caches_the_logits_of_full_forwards,
        inputs_that_do_not_fit_are_refused,
    };
    add_suite("glm", tests);
}
