/* The contrastive loss beside a plain computation, and its training: dropout, pairs, pooling. */
#include "objectives/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "data/internal.h"

/* ---- The loss ---- */

START_TEST(the_loss_is_the_cross_entropy_of_the_diagonal) {
    enum { B = 3 };
    const double x[B][B] = {{2, 1, -1}, {4, 3, 0.5}, {0, -2, 0.25}};
    double wanted = 0, right;
    for (int i = 0; i < B; i++) {
        double sum = 0;
        for (int j = 0; j < B; j++)
            sum += exp(x[i][j]);
        wanted -= (x[i][i] - log(sum)) / B;
    }
    wg_tensor *similarities = wg_from_array(WG_F64, WG_DIMS(B, B), x);
    wg_tensor *loss = wg__contrastive_loss(similarities, &right);
    ck_assert_double_eq_tol(wg_item(loss), wanted, 1e-14);
    ck_assert_double_eq(right, 2); /* the second row prefers the first column */
}
END_TEST

/* ---- Vectors ---- */

START_TEST(padding_is_no_part_of_a_mean) {
    static const double hidden[2][3][2] = {{{1, 2}, {3, 6}, {50, 60}}, {{1, 1}, {2, 2}, {6, 0}}};
    static const bool keep[2][3] = {{true, true, false}, {true, true, true}};
    static const double means[2][2] = {{2, 4}, {3, 1}};
    wg_tensor *x = wg_from_array(WG_F64, WG_DIMS(2, 3, 2), hidden);
    wg_tensor *mask = wg_from_array(WG_BOOL, WG_DIMS(2, 3), keep);
    wg_tensor *mean = wg__pool_texts(x, mask, WG_POOL_MEAN, 0);
    wg_tensor *first = wg__pool_texts(x, mask, WG_POOL_TOKEN, 0);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t c = 0; c < 2; c++) {
            const int64_t place[] = {b, c};
            ck_assert_double_eq_tol(wg_at(mean, place), means[b][c], 1e-15);
            ck_assert_double_eq(wg_at(first, place), hidden[b][0][c]);
        }
}
END_TEST

/* ---- Training ---- */

enum { TOKENS = 11 };

static const char *const vocabulary[TOKENS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun",
                                               "moon",  "sea",   "the",   "is",    "."};

/* A training of an encoder of 16 positions on a text; freed with free_training. */
typedef struct world {
    wg_model model;
    wg_tokenizer *tokenizer;
    wg_training *training;
} world;

static world world_of(const char *text, const wg_contrastive_options *options, int64_t batch) {
    world w = {.tokenizer = wg__wordpiece_new(TOKENS, vocabulary, NULL)};
    ck_assert_int_eq(
        wg_model_from_json("{\"model_type\": \"bert\", \"vocab_size\": 20, \"hidden_size\": 16,"
                           " \"num_hidden_layers\": 1, \"num_attention_heads\": 2,"
                           " \"intermediate_size\": 32, \"max_position_embeddings\": 16,"
                           " \"hidden_dropout_prob\": 0, \"attention_probs_dropout_prob\": 0,"
                           " \"initializer_range\": 0.3}",
                           5, &w.model),
        0);
    const char *path = write_text("lines.txt", text);
    w.training = wg_training_new(&wg_contrastive, &(wg_training_setup){.model = &w.model,
                                                                       .tokenizer = w.tokenizer,
                                                                       .training_path = path,
                                                                       .held_out_path = path,
                                                                       .options = options,
                                                                       .batch = batch,
                                                                       .sequence = 16});
    return w;
}

static void free_world(world *w) {
    wg_scope_clear_root();
    wg_training_free(w->training);
    wg_model_free(&w->model);
    wg_tokenizer_free(w->tokenizer);
}

static const wg_contrastive_options usual = {.temperature = 0.05, .dropout = 0.1};

/* Without dropout the two vectors of a text are the same, so that its own partner is the nearest.
 */
START_TEST(a_text_is_its_own_partner) {
    world w = world_of("sun\n\nthe moon is .\r\nsea the sun\n  \nmoon moon\n", &usual, 4);
    wg_metrics metrics = {0};
    ck_assert_int_eq(w.training->examples, 4);
    ck_assert_int_eq(wg_training_evaluate(w.training, &metrics), 0);
    ck_assert_double_eq(wg_metrics_get(&metrics, "accuracy"), 1);
    ck_assert_double_lt(wg_metrics_get(&metrics, "loss"), log(4));
    free_world(&w);
}
END_TEST

START_TEST(the_second_text_of_a_pair_is_the_partner) {
    static const char text[] = "sun\tthe moon is .\nsea the sun\tmoon moon\nis\tthe sea\n";
    world w = world_of(text, &usual, 3);
    wg_metrics metrics = {0};
    ck_assert_int_eq(wg_training_evaluate(w.training, &metrics), 0);
    const double untrained = wg_metrics_get(&metrics, "loss");
    const wg_task task = wg_training_task(w.training);
    wg_trainer *trainer = wg_trainer_new(
        &task, wg_optimizer_new(&(wg_optimizer_choice){.name = "adamw"}),
        &(wg_trainer_options){.steps = 60, .schedule = {.peak = 0.01, .total_steps = 60}});
    ck_assert_int_eq(wg_trainer_run(trainer), WG_TRAIN_FINISHED);
    metrics = (wg_metrics){0};
    ck_assert_int_eq(wg_training_evaluate(w.training, &metrics), 0);
    ck_assert_double_eq(wg_metrics_get(&metrics, "accuracy"), 1);
    ck_assert_double_lt(wg_metrics_get(&metrics, "loss"), untrained / 4);
    wg_trainer_free(trainer);
    free_world(&w);
}
END_TEST

START_TEST(a_lower_temperature_sharpens_the_loss) {
    static const char text[] = "sun\nthe moon is .\nsea the sun\nmoon moon\n";
    double losses[2];
    for (int i = 0; i < 2; i++) {
        world w = world_of(text, &(wg_contrastive_options){.temperature = i ? 0.05 : 1}, 4);
        wg_metrics metrics = {0};
        ck_assert_int_eq(wg_training_evaluate(w.training, &metrics), 0);
        losses[i] = wg_metrics_get(&metrics, "loss");
        free_world(&w);
    }
    ck_assert_double_lt(losses[1], losses[0]);
}
END_TEST

START_TEST(files_that_are_no_texts_are_refused) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "holds no text"},
        {"\n \t\n", "holds no text"},
        {"sun\tmoon\nsea\n", "line 2: wanted two texts"},
        {"sun\nsea\tmoon\n", "line 2: wanted one text"},
        {"sun\tmoon\nsun\t\n", "line 2: a text is empty"},
        {"sun\n\xff\n", "line 2: it is not UTF-8"},
        {"sun\tmoon\t3\nsea\tsun\tx\n", "\"x\" is no number"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        world w = world_of(cases[i].text, &usual, 4);
        assert_fails(w.training, WG_ERROR_FORMAT, cases[i].part);
        free_world(&w);
    }
}
END_TEST

START_TEST(predictions_have_a_decimal_point_in_any_locale) {
    world w = world_of("sun\nmoon\n", &usual, 2);
    const wg_evaluation_options answers = {.predictions = in_scratch("cosines")};
    const char *scored = write_text("scored.tsv", "sun\tmoon\t1.5\nsea\tsun\t0.5\n");
    wg_training *training = wg_training_new(
        &wg_contrastive, &(wg_training_setup){.model = &w.model,
                                              .tokenizer = w.tokenizer,
                                              .training_path = in_scratch("lines.txt"),
                                              .held_out_path = scored,
                                              .options = &usual,
                                              .evaluation = &answers,
                                              .batch = 2,
                                              .sequence = 16});
    wg_metrics metrics = {0};
    assert_no_error();
    if (take_decimal_comma()) {
        ck_assert_int_eq(wg_training_evaluate(training, &metrics), 0);
        bytes text = read_bytes(answers.predictions);
        ck_assert_msg(!strchr((char *)text.data, ',') && strchr((char *)text.data, '.'), "%s",
                      (char *)text.data);
        free(text.data);
    }
    wg_training_free(training);
    free_world(&w);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        the_loss_is_the_cross_entropy_of_the_diagonal,
        padding_is_no_part_of_a_mean,
        a_text_is_its_own_partner,
        the_second_text_of_a_pair_is_the_partner,
        a_lower_temperature_sharpens_the_loss,
        files_that_are_no_texts_are_refused,
        predictions_have_a_decimal_point_in_any_locale,
    };
    add_suite("contrastive", tests);
}
