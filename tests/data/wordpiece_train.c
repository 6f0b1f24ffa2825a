/* Training WordPiece: the pieces, training on files, refusals, and lack of memory. */
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- Training ---- */

static wg_tokenizer *train(const char *text, const wg_wordpiece_training *training) {
    return owned(wg__wordpiece_train(text, -1, training));
}

static const char training_text[] =
    "low low low low low lower lower newest newest newest newest newest newest widest widest "
    "widest aaaa aaa aa aaaaa banana bandana ananas Low, lowest! (newer) caf\u00e9 \u4e2d\u6587 "
    "don't can't won't abcabc abcab cabcab 1999 1998 1899";

/* A vocabulary that is too small for them is refused with the size that would do. */
TEST(a_trained_vocabulary_begins_with_specials_and_alphabet) {
    wg_wordpiece_training training = {.vocabulary_size = 11};
    assert_fails(train("ba ab, \u4e2d b!", &training), WG_ERROR_ARGUMENT,
                 "a vocabulary of 11 cannot hold the 5 special tokens and the 7 "
                 "pieces of one character that this text needs; ask for 12");
    training.vocabulary_size = 12;
    ck_assert_int_eq(wg_tokenizer_size(train("ba ab, \u4e2d b!", &training)), 12);
    training.vocabulary_size = 70;
    wg_tokenizer *tokenizer = train("ba ab, \u4e2d b!", &training);
    assert_no_error();
    const char *const expected[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",  "[MASK]", "!",
                                    ",",     "a",     "b",     "\u4e2d", "##a",    "##b"};
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), WG_COUNT(expected));
    for (size_t i = 0; i < WG_COUNT(expected); i++)
        ck_assert_str_eq(wg_tokenizer_token(tokenizer, (int32_t)i), expected[i]);
}

/* The same training by a naive algorithm: all pairs of all words are counted again before each
 * merge. */

#define SLOW_WORDS 64
#define SLOW_PIECES 64
#define SLOW_SIZE 64

typedef struct slow_word {
    char pieces[SLOW_PIECES][SLOW_SIZE];
    int count;
} slow_word;

static int slow_pair_count(const slow_word *words, int count, const char *left, const char *right) {
    int found = 0;
    for (int w = 0; w < count; w++)
        for (int i = 0; i + 1 < words[w].count; i++)
            found +=
                strcmp(words[w].pieces[i], left) == 0 && strcmp(words[w].pieces[i + 1], right) == 0;
    return found;
}

/* Finds the best pair; returns its count. */
static int slow_best(const slow_word *words, int count, char *left, char *right) {
    int best = 0;
    for (int w = 0; w < count; w++)
        for (int i = 0; i + 1 < words[w].count; i++) {
            const char *a = words[w].pieces[i], *b = words[w].pieces[i + 1];
            int found = slow_pair_count(words, count, a, b);
            int order = best == 0 ? -1 : strcmp(a, left);
            if (best > 0 && order == 0)
                order = strcmp(b, right);
            if (found > best || (found == best && order < 0)) {
                best = found;
                memcpy(left, a, SLOW_SIZE);
                memcpy(right, b, SLOW_SIZE);
            }
        }
    return best;
}

static void slow_merge(slow_word *word, const char *left, const char *right) {
    for (int i = 0; i + 1 < word->count; i++) {
        if (strcmp(word->pieces[i], left) != 0 || strcmp(word->pieces[i + 1], right) != 0)
            continue;
        strcat(word->pieces[i], right + 2);
        memmove(word->pieces[i + 1], word->pieces[i + 2],
                sizeof word->pieces[0] * (size_t)(word->count - i - 2));
        word->count--;
    }
}

/* Splits words of ASCII letters between blanks into single letters. */
static int slow_words(const char *text, slow_word *words) {
    int count = 0;
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        words[count].count = (int)strlen(word);
        for (int i = 0; word[i]; i++)
            snprintf(words[count].pieces[i], SLOW_SIZE, "%s%c", i ? "##" : "", word[i]);
        count++;
    }
    return count;
}

TEST(training_equals_counting_all_pairs_before_each_merge) {
    static slow_word words[SLOW_WORDS];
    const char *text = "low low low low lower newest newest newest newest widest widest aaaa aaa "
                       "aa aaaaa banana bandana ananas abcabc abcab cabcab cab lowlow newlow aab "
                       "aaba baab ababab bababa abab";
    int word_count = slow_words(text, words);
    wg_tokenizer *tokenizer = train(text, &(wg_wordpiece_training){0});
    assert_no_error();
    int32_t next = wg_tokenizer_id(tokenizer, "##w") + 1; /* the last of the alphabet */
    char left[SLOW_SIZE], right[SLOW_SIZE], joined[2 * SLOW_SIZE];
    int merges = 0;
    while (slow_best(words, word_count, left, right) >= 2) {
        snprintf(joined, sizeof joined, "%s%s", left, right + 2);
        int32_t id = wg_tokenizer_id(tokenizer, joined);
        ck_assert_msg(id == next || (id >= 0 && id < next), "%s is %d, wanted %d", joined, id,
                      next);
        next += id == next; /* two merges may give one piece */
        merges++;
        for (int w = 0; w < word_count; w++)
            slow_merge(&words[w], left, right);
    }
    ck_assert_int_gt(merges, 20);
    ck_assert_int_eq(next, wg_tokenizer_size(tokenizer));
}

TEST(the_text_trained_on_has_no_unknown_words) {
    wg_tokenizer *tokenizer = owned(
        wg__wordpiece_train(training_text, -1, &(wg_wordpiece_training){.vocabulary_size = 65}));
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 65);
    ck_assert_ptr_null(strstr(tokens_of(tokenizer, training_text, NULL), "[UNK]"));
    ck_assert_ptr_null(strstr(tokens_of(tokenizer, "wonderland tale", NULL), "[UNK]"));
}

TEST(training_on_files_equals_training_on_their_text) {
    wg_wordpiece_training training = {.vocabulary_size = 110};
    const char *paths[] = {write_text("second.txt", training_text + 100), in_scratch("first.txt")};
    write_file(paths[1], training_text, 100);
    wg_tokenizer *text = train(training_text, &training);
    wg_tokenizer *files = owned(wg_wordpiece_train_files(2, paths, &training));
    assert_no_error();
    ck_assert_int_eq(training_text[99], ' ');
    assert_same_tokenizer(text, files);
}

TEST(an_alphabet_limit_leaves_rare_characters_unknown) {
    wg_wordpiece_training training = {.alphabet_limit = 2};
    wg_tokenizer *tokenizer = train("ab ab ba \u4e2d", &training);
    ck_assert_str_eq(tokens_of(tokenizer, "ab \u4e2d", NULL), "ab [UNK]");
}

/* Appends the characters first ... first + count - 1, `times` each, as words of their own. */
static char *append_ideographs(char *at, int32_t first, int count, int times) {
    for (int i = 0; i < count * times; i++)
        at += utf8proc_encode_char(first + i / times, (utf8proc_uint8_t *)at);
    *at = '\0';
    return at;
}

/* 1200 characters make up 120,000 of 120,040 characters. */
static const char *text_of_many_characters(void) {
    static char text[400000];
    append_ideographs(append_ideographs(text, 0x4E00, 1200, 100), 0x6000, 40, 1);
    return text;
}

TEST(the_usual_alphabet_covers_the_text) {
    wg_wordpiece_report report;
    wg_tokenizer *tokenizer = owned(wg__wordpiece_train(
        text_of_many_characters(), -1, &(wg_wordpiece_training){.report = &report}));
    assert_no_error();
    ck_assert_int_eq(report.alphabet, 1200);
    ck_assert_int_eq(report.wanted_alphabet, 1200);
    ck_assert_int_eq(report.wanted_vocabulary, 1205);
    ck_assert_int_eq(report.tokens, 120040);
    ck_assert_int_eq(report.unknown, 40);
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 1205);
}

TEST(the_usual_alphabet_is_cut_to_the_vocabulary_but_not_below_1000) {
    wg_wordpiece_report report;
    wg_wordpiece_training training = {.vocabulary_size = 1105, .report = &report};
    train(text_of_many_characters(), &training);
    ck_assert_int_eq(report.alphabet, 1100);
    ck_assert_int_eq(report.wanted_alphabet, 1200);
    ck_assert_int_eq(report.wanted_vocabulary, 1205);
    ck_assert_int_eq(report.unknown, 100 * 100 + 40);
    training.vocabulary_size = 1004;
    assert_fails(train(text_of_many_characters(), &training), WG_ERROR_ARGUMENT,
                 "ask for 1005 or more");
}

TEST(a_report_counts_words_that_are_too_long) {
    wg_wordpiece_report report;
    train("abc ab ab",
          &(wg_wordpiece_training){.options.max_word_characters = 2, .report = &report});
    ck_assert_int_eq(report.tokens, 3); /* [UNK] ab ab */
    ck_assert_int_eq(report.unknown, 1);
}

TEST(training_on_bad_text_is_refused_with_its_reason) {
    assert_fails(train(" \n ", NULL), WG_ERROR_FORMAT, "no words");
    assert_fails(train("good\nb\xe4z", NULL), WG_ERROR_FORMAT, "line 2, byte 6 is 0xe4");
    assert_fails(wg_wordpiece_train_files(1, (const char *[]){"no/such.txt"}, NULL),
                 WG_ERROR_NOT_FOUND, "no/such.txt");
    assert_fails(train("a", &(wg_wordpiece_training){.vocabulary_size = -5}), WG_ERROR_ARGUMENT,
                 "a vocabulary of -5");
}

/* ---- Memory ---- */

/* Trains, saves, reads and uses a tokenizer; false if an allocation failed. */
static bool whole_life(const void *context) {
    (void)context;
    wg_wordpiece_report report;
    const wg_wordpiece_training training = {.vocabulary_size = 100, .report = &report};
    wg_tokenizer *tokenizer = wg__wordpiece_train(training_text, -1, &training);
    char *json = wg_tokenizer_to_json(tokenizer);
    wg_tokenizer *again = wg_tokenizer_from_json(json);
    wg_token_list list = {0};
    int encoded =
        wg_tokenizer_encode(again, "Caf\u00e9 [MASK]", -1, &(wg_encode_options){true}, &list);
    char *text = encoded == 0 ? wg_tokenizer_decode(again, list.ids, list.count, NULL) : NULL;
    bool done = text != NULL;
    wg_text_free(text);
    wg_token_list_free(&list);
    wg_tokenizer_free(again);
    wg_text_free(json);
    wg_tokenizer_free(tokenizer);
    return done;
}

TEST(every_failed_allocation_is_reported_and_nothing_leaks) {
    ck_assert_int_gt(fail_every_allocation(whole_life, NULL), 30);
}
