/* SQuAD: the reader, windows, answers by their characters, and the scores of the official script
 * (tests/fixtures/squad_score.py). */
#include "data/dataset/examples.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/score/score.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { PAD, UNK, CLS, SEP, MASK, A, B, C, D };

static wg_tokenizer *letters(void) {
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
                                         "b",     "c",     "d",     "##d",   ",",      "e"};
    return owned(wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL));
}

/* One question about one context. */
static const char *one_question(const char *context, const char *question, const char *answers) {
    static char text[2048];
    snprintf(text, sizeof text,
             "{\"data\": [{\"paragraphs\": [{\"context\": \"%s\", \"qas\": [{\"id\": \"q1\", "
             "\"question\": \"%s\", \"answers\": [%s]}]}]}]}",
             context, question, answers);
    return text;
}

static wg__squad *load(const char *text, const wg__squad_options *options) {
    return owned(wg__squad_load(write_text("squad.json", text), letters(), options));
}

static void assert_text(const wg__squad *squad, int64_t first, int64_t last, const char *wanted) {
    ck_assert_str_eq(owned(wg__squad_text(squad, 0, first, last)), wanted);
}

/* ---- Reading ---- */

/* answer_start counts characters: é has two bytes. */
TEST(answers_are_found_by_characters) {
    wg__squad *squad = load(one_question("\xc3\xa9 A, bd  c", "d a",
                                         "{\"text\": \"bd\", \"answer_start\": 5}, "
                                         "{\"text\": \"A\", \"answer_start\": 2}"),
                            NULL);
    assert_no_error();
    ck_assert_int_eq(wg__squad_questions(squad), 1);
    ck_assert_int_eq(((wg__examples *)squad)->count, 1);
    ck_assert_str_eq(wg__squad_id(squad, 0), "q1");
    ck_assert_int_eq(wg__squad_answers(squad, 0), 2);
    ck_assert_str_eq(wg__squad_answer(squad, 0, 1), "A");
    /* é(e) a , b ##d c: the answer is the tokens 3 and 4, behind [CLS] d a [SEP]. */
    const wg__squad_window w = wg__squad_window_at(squad, 0);
    ck_assert_int_eq(w.count, 6);
    ck_assert_int_eq(w.offset, 4);
    ck_assert_int_eq(w.start, 4 + 3);
    ck_assert_int_eq(w.end, 4 + 4);
    assert_text(squad, 3, 4, "bd");
    assert_text(squad, 1, 3, "A, bd");
    assert_text(squad, 0, 5, "\xc3\xa9 A, bd  c");
}

TEST(an_answer_within_a_word_becomes_the_word) {
    wg__squad *squad =
        load(one_question("a bdd c", "d", "{\"text\": \"dd\", \"answer_start\": 3}"), NULL);
    const wg__squad_window w = wg__squad_window_at(squad, 0);
    ck_assert_int_eq(w.start, 3 + 1);
    ck_assert_int_eq(w.end, 3 + 3);
    assert_text(squad, 1, 3, "bdd");
}

/* The vocabulary has the 256 bytes and learns " bo" ("\u0120bo"), a word with the space before it.
 */
TEST(tokens_of_bpe_have_the_space_of_their_word_and_bytes_of_their_own) {
    static const char learnt[] = "a bo bo bo bo bo bo bo bo";
    wg_tokenizer *bpe =
        owned(wg__bpe_train(learnt, -1, &(wg_bpe_training){.vocabulary_size = 260}));
    const char *path =
        write_text("squad.json", one_question("o bo, \\n bo\xc3\xa9.", "a",
                                              "{\"text\": \"bo\", \"answer_start\": 2}"));
    wg__squad *squad = owned(wg__squad_load(path, bpe, NULL));
    assert_no_error();
    const int32_t whole = wg_tokenizer_id(bpe, "\u0120bo");
    ck_assert_int_ge(whole, 0);
    const wg__squad_window w = wg__squad_window_at(squad, 0);
    ck_assert_int_eq(w.count, 7); /* o, " bo", the comma, " bo", two bytes of e', the dot */
    ck_assert_int_eq(w.start, w.offset + 1);
    ck_assert_int_eq(w.end, w.offset + 1);
    assert_text(squad, 0, 0, "o");
    assert_text(squad, 1, 1, "bo");
    assert_text(squad, 1, 2, "bo,");
    assert_text(squad, 3, 3, "bo");
    assert_text(squad, 4, 4, "\xc3\xa9");
    assert_text(squad, 3, 5, "bo\xc3\xa9");
    assert_text(squad, 6, 6, ".");
}

TEST(bad_files_are_refused_with_the_place) {
    static const char *const texts[][2] = {
        {"{\"data\": [", "line 1"},
        {"[]", "has no list \"data\""},
        {"{\"data\": []}", "holds no question"},
        {"{\"data\": [{}]}", "data[0] has no list \"paragraphs\""},
        {"{\"data\": [{\"paragraphs\": [{\"qas\": []}]}]}",
         "data[0].paragraphs[0] has no text \"context\""},
        {"{\"data\": [{\"paragraphs\": [{\"context\": \" \", \"qas\": []}]}]}",
         "data[0].paragraphs[0].context has no words"},
        {"\xff", "not UTF-8"},
    };
    static const char *const answers[][2] = {
        {"", "data[0].paragraphs[0].qas[0].answers is empty"},
        {"{\"text\": \"b\"}", "qas[0].answers[0] has no number \"answer_start\""},
        {"{\"answer_start\": 1}", "qas[0].answers[0] has no text \"text\""},
        {"{\"text\": \"b\", \"answer_start\": 1}",
         "answers[0].answer_start is 1, where the context has \" \" and not \"b\""},
        {"{\"text\": \"b\", \"answer_start\": 99}", "answer_start is 99"},
        {"{\"text\": \"b\", \"answer_start\": -1}", "answer_start"},
        {"{\"text\": \" \", \"answer_start\": 1}", "answers[0].text has no words"},
    };
    for (size_t i = 0; i < WG_COUNT(texts); i++)
        assert_fails(load(texts[i][0], NULL), WG_ERROR_FORMAT, texts[i][1]);
    for (size_t i = 0; i < WG_COUNT(answers); i++)
        assert_fails(load(one_question("a b", "c", answers[i][0]), NULL), WG_ERROR_FORMAT,
                     answers[i][1]);
    ck_assert_ptr_nonnull(
        load(one_question("a b", "c", "{\"text\": \"b\", \"answer_start\": 2}"), NULL));
}

static bool load_squad(const void *tokenizer) {
    wg__squad *squad = wg__squad_load(in_scratch("squad.json"), tokenizer, NULL);
    const bool done = squad != NULL;
    wg__examples_free((wg__examples *)squad);
    return done;
}

TEST(a_file_that_finds_no_memory_leaves_nothing) {
    write_text("squad.json", one_question("a b, c", "d", "{\"text\": \"b\", \"answer_start\": 2}"));
    ck_assert_int_gt(fail_every_allocation(load_squad, letters()), 5);
}

/* ---- Windows ---- */

/* Ten tokens, six of which fit beside a question of one, in strides of two: 0-5, 2-7, 4-9. */
static wg__squad *load_windows(const char *answers) {
    const wg__squad_options options = {.sequence = 10, .stride = 2, .query = 1};
    wg__squad *squad = load(one_question("a b c d a b c d a b", "c d", answers), &options);
    assert_no_error();
    ck_assert_int_eq(((wg__examples *)squad)->count, 3);
    return squad;
}

TEST(a_long_context_is_read_through_windows) {
    wg__squad *squad = load_windows("{\"text\": \"a b\", \"answer_start\": 8}"); /* tokens 4, 5 */
    static const wg__squad_window wanted[] = {
        {0, 0, 6, 3, 3 + 4, 3 + 5}, {0, 2, 6, 3, 3 + 2, 3 + 3}, {0, 4, 6, 3, 3 + 0, 3 + 1}};
    for (int64_t i = 0; i < 3; i++) {
        const wg__squad_window w = wg__squad_window_at(squad, i);
        ck_assert(memcmp(&w, &wanted[i], sizeof w) == 0);
    }
    squad = load_windows("{\"text\": \"a b\", \"answer_start\": 16}"); /* 8, 9: in the last alone */
    ck_assert_int_eq(wg__squad_window_at(squad, 1).start, 0);
    ck_assert_int_eq(wg__squad_window_at(squad, 1).end, 0);
    ck_assert_int_eq(wg__squad_window_at(squad, 2).end, 3 + 5);
}

/* Token 4 has (4, 1), (2, 3), (0, 5) tokens to its sides: the second window has the most. */
TEST(an_answer_begins_in_the_window_with_most_around_it) {
    wg__squad *squad = load_windows("{\"text\": \"a\", \"answer_start\": 0}");
    static const int best[10] = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2};
    for (int64_t token = 0; token < 10; token++)
        for (int64_t i = 0; i < 3; i++)
            ck_assert_int_eq(wg__squad_is_best_window(squad, i, token), i == best[token]);
}

TEST(a_batch_holds_questions_and_windows) {
    wg__squad *squad = load_windows("{\"text\": \"d a b\", \"answer_start\": 6}"); /* 3, 4, 5 */
    wg_tokenizer *tokenizer = letters();
    wg_pair_frame frame;
    wg__example_batch batch;
    ck_assert_int_eq(wg__pair_frame_of(tokenizer, 10, &frame), 0);
    ck_assert_int_eq(
        wg__example_batch_read((wg__examples *)squad, &frame, 2, (int64_t[]){2, 1}, &batch), 0);
    static const int64_t wanted[2][10] = {{CLS, C, SEP, A, B, C, D, A, B, SEP},
                                          {CLS, C, SEP, C, D, A, B, C, D, SEP}};
    for (int64_t b = 0; b < 2; b++)
        for (int64_t t = 0; t < 10; t++)
            ck_assert_int_eq((int64_t)wg_at(batch.inputs.input_ids, (int64_t[]){b, t}),
                             wanted[b][t]);
    ck_assert_int_eq((int64_t)wg_at(batch.targets[0], (int64_t[]){0}), 0);
    ck_assert_int_eq((int64_t)wg_at(batch.targets[0], (int64_t[]){1}), 3 + 1);
    ck_assert_int_eq((int64_t)wg_at(batch.targets[1], (int64_t[]){1}), 3 + 3);
}

TEST(windows_without_room_are_refused) {
    const wg__squad_options options = {.sequence = 67};
    assert_fails(load("{}", &options), WG_ERROR_ARGUMENT,
                 "67 tokens have no room for questions of up to 64");
}

/* ---- Scores ---- */

TEST(scores_are_those_of_the_official_rules) {
    json_t *cases = owned(json_load_file(fixture("squad_score.json"), 0, NULL));
    ck_assert_int_gt(json_array_size(cases), 25);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *answer = json_string_value(json_array_get(c, 0));
        double exact, f1;
        char *normal = wg__squad_normalize(answer);
        ck_assert_str_eq(normal, json_string_value(json_array_get(c, 2)));
        wg__free(normal);
        ck_assert_int_eq(
            wg__squad_score(answer, json_string_value(json_array_get(c, 1)), &exact, &f1), 0);
        ck_assert_msg(exact == json_real_value(json_array_get(c, 3)), "exact match of \"%s\"",
                      answer);
        ck_assert_double_eq_tol(f1, json_real_value(json_array_get(c, 4)), 1e-15);
    }
}

/* By the rules of CMRC 2018 (tests/fixtures/squad_score_zh.py). */
TEST(chinese_answers_are_scored_by_character) {
    json_t *cases = owned(json_load_file(fixture("squad_score_zh.json"), 0, NULL));
    ck_assert_int_gt(json_array_size(cases), 20);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *answer = json_string_value(json_array_get(c, 0));
        double exact, f1;
        ck_assert_int_eq(
            wg__squad_score_mixed(answer, json_string_value(json_array_get(c, 1)), &exact, &f1), 0);
        ck_assert_msg(exact == json_real_value(json_array_get(c, 2)), "exact match of \"%s\"",
                      answer);
        ck_assert_msg(fabs(f1 - json_real_value(json_array_get(c, 3))) < 1e-15,
                      "F1 of \"%s\" is %g", answer, f1);
    }
}

TEST(texts_are_chinese_if_half_of_their_letters_are) {
    int64_t ideographs = 0, letters = 0;
    ck_assert(!wg__squad_is_chinese("", &ideographs, &letters));
    ck_assert(!wg__squad_is_chinese("NHK \u7684", &ideographs, &letters));
    ck_assert(wg__squad_is_chinese("\u5287\u96c6\uff01", &ideographs, &letters));
    ck_assert_int_eq(ideographs, 3);
    ck_assert_int_eq(letters, 6);
}
