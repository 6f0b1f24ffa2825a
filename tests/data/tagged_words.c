/* Sentences of tagged words: the reader of CoNLL's columns, windows, and batches. */
#include "data/dataset/examples.h"

#include "base/alloc.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { PAD, UNK, CLS, SEP, MASK, A, B, C, D, MORE_A, MORE_B };

static wg_tokenizer *letters(void) {
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
                                         "b",     "c",     "d",     "##a",   "##b"};
    return owned(wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL));
}

static wg__tagged_words *load(const char *text, const wg__tagged_words_options *options,
                              wg__labels *labels) {
    return owned(
        wg__tagged_words_load(write_text("words.conll", text), letters(), labels, options));
}

/* Sentences "a b" and "c", with the tags X Y and X. */
static void check_words(const char *text, const wg__tagged_words_options *options) {
    wg__labels labels = {0};
    wg__tagged_words *words = load(text, options, &labels);
    assert_no_error();
    ck_assert_int_eq(words->sentence_count, 2);
    ck_assert_int_eq(words->count, 3);
    ck_assert_int_eq(words->sentences[1], 2);
    ck_assert_str_eq(words->texts.bytes + words->words[1].text, "b");
    ck_assert_str_eq(words->texts.bytes + words->words[2].text, "c");
    ck_assert_str_eq(labels.names[0], "X");
    ck_assert_int_eq(words->words[1].tag, 1);
    ck_assert_int_eq(words->words[2].tag, 0);
    wg__labels_free(&labels);
}

#define REST "\t_\t_\t_\t_\t_\t_\n"

TEST(columns_of_conll_are_read) {
    check_words("a\tX\nb\tY\n\nc\tX\n", NULL);
    check_words("a X\nb Y\n\nc X", NULL);
    check_words("\n\na\tX\r\nb\tY\r\n\t\r\n \nc\tX\r\n\n\n", NULL);
    check_words("# about\n-DOCSTART- -X-\n\na  X\nb   Y\n\n# c\nc X\n", NULL);
    check_words("a\tn\tX\nb\tn\tY\n#text\n\nc\tn\tX\n", NULL);
    check_words("a\tX\tn\nb\tY\tn\n\nc\tX\tn\n", &(wg__tagged_words_options){.tag_column = "2"});
    check_words("X a\nY b\n\nX c\n",
                &(wg__tagged_words_options){.token_column = "2", .tag_column = "1"});
}

/* Ranges and empty nodes are no words; the columns may be named. */
TEST(conllu_is_read_by_its_columns) {
    check_words("# text = ab c\n1-2\tab\t_\t_" REST "1\ta\tl\tX" REST "2\tb\tl\tY" REST
                "2.1\td\tl\tZ" REST "\n1\tc\tl\tX" REST,
                NULL);
    check_words("1\td\ta\tN\tX\t_\t_\t_\t_\t_\n2\td\tb\tN\tY\t_\t_\t_\t_\t_\n\n"
                "1\td\tc\tN\tX\t_\t_\t_\t_\t_\n",
                &(wg__tagged_words_options){.token_column = "LEMMA", .tag_column = "XPOS"});
}

TEST(words_may_begin_with_a_hash) {
    wg__labels labels = {0};
    wg__tagged_words *words = load("#a\tX\n#\tY\nb\tX\n", NULL, &labels);
    assert_no_error();
    ck_assert_int_eq(words->count, 3);
    ck_assert_str_eq(words->texts.bytes + words->words[0].text, "#a");
    wg__labels_free(&labels);
}

TEST(bad_words_are_refused_by_line) {
    static const struct {
        const char *text;
        wg__tagged_words_options options;
        const char *part;
    } cases[] = {
        {"", {0}, "holds no word"},
        {"# a\n\n", {0}, "holds no word"},
        {"a\n", {0}, "line 1: 1 columns; wanted a word and its tag"},
        {"a\tX\nb\n", {0}, "line 2: 1 columns; the lines before have 2"},
        {"a\tX\n\n\tY\n", {0}, "line 3: the word is empty"},
        {"a\tX\nb\t\n", {0}, "line 2: the tag is empty"},
        {"a\tX\nb\tX\n", {0}, "every tag is \"X\""},
        {"a\tX\nb\tY\n", {.tag_column = "3"}, "line 1: --tag-column 3: the line has 2 columns"},
        {"a\tX\n\xff\tY\n", {0}, "not UTF-8: line 2"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__labels labels = {0};
        assert_fails(load(cases[i].text, &cases[i].options, &labels), WG_ERROR_FORMAT,
                     cases[i].part);
        ck_assert_int_eq(labels.count, 0);
    }
    static const char *const columns[] = {"UPOS", "0", "-1", "2x"};
    for (size_t i = 0; i < WG_COUNT(columns); i++) {
        wg__labels labels = {0};
        assert_fails(load("a\tX\n", &(wg__tagged_words_options){.tag_column = columns[i]}, &labels),
                     WG_ERROR_ARGUMENT, "wanted the number of a column");
    }
    wg__labels labels = {0};
    wg__labels_add(&labels, "X");
    wg__labels_add(&labels, "Y");
    assert_fails(load("a\tX\nb\tZ\n", NULL, &labels), WG_ERROR_FORMAT,
                 "line 2: the tag \"Z\" is unknown");
    wg__labels_free(&labels);
}

/* ---- Windows and batches ---- */

static void assert_row(const wg_tensor *x, int64_t row, const int64_t *wanted) {
    for (int64_t t = 0; t < wg_tensor_size(x, 1); t++)
        ck_assert_int_eq((int64_t)wg_at(x, (int64_t[]){row, t}), wanted[t]);
}

enum { IGNORED = WG_IGNORE_INDEX, X = 0, Y = 1 };

TEST(a_tag_stands_at_the_first_piece) {
    wg__labels labels = {0};
    wg_tokenizer *tokenizer = letters();
    wg__tagged_words *words = load("aab Y\nb X\n\nc Y\n", NULL, &labels);
    wg_pair_frame frame;
    wg__example_batch batch;
    ck_assert_int_eq(wg__pair_frame_of(tokenizer, 16, &frame), 0);
    ck_assert_int_eq(wg__example_batch_read(&words->base, &frame, 2, (int64_t[]){1, 0}, &batch), 0);
    assert_row(batch.inputs.input_ids, 0, (int64_t[]){CLS, C, SEP, PAD, PAD, PAD});
    assert_row(batch.inputs.input_ids, 1, (int64_t[]){CLS, A, MORE_A, MORE_B, B, SEP});
    assert_row(batch.targets[0], 0, (int64_t[]){IGNORED, Y, IGNORED, IGNORED, IGNORED, IGNORED});
    assert_row(batch.targets[0], 1, (int64_t[]){IGNORED, Y, IGNORED, IGNORED, X, IGNORED});
    ck_assert_int_eq(batch.words, 3);
    wg__labels_free(&labels);
}

/* Of at most 3 pieces: "aa b", "aab" cut from "aabb", "c d", and a sentence "a". A word that is no
 * text to the tokenizer is one unknown piece. */
TEST(long_sentences_are_read_in_windows) {
    static const int64_t first[] = {0, 2, 3, 5, 6};
    const wg__tagged_words_options options = {.room = 3};
    wg__labels labels = {0};
    wg__tagged_words *words =
        load("aa X\nb Y\naabb X\nc Y\nd X\n\n\xe2\x80\x8b Y\n", &options, &labels);
    assert_no_error();
    ck_assert_int_eq(words->sentence_count, 2);
    ck_assert_int_eq(words->base.count, 4);
    for (int64_t i = 0; i < 5; i++)
        ck_assert_int_eq(words->windows[i], first[i]);
    wg__labels_free(&labels);
}

TEST(other_words_have_other_fingerprints) {
    static const char *const texts[] = {"a X\nb Y\n", "a X\n\nb Y\n", "a Y\nb X\n"};
    uint64_t prints[WG_COUNT(texts)];
    for (size_t i = 0; i < WG_COUNT(texts); i++) {
        wg__labels labels = {0};
        wg__tagged_words *words = load(texts[i], NULL, &labels);
        prints[i] = words->base.kind->fingerprint(&words->base);
        wg__labels_free(&labels);
    }
    ck_assert(prints[0] != prints[1] && prints[0] != prints[2] && prints[1] != prints[2]);
}

static bool load_words(const void *tokenizer) {
    wg__labels labels = {0};
    wg__tagged_words *words =
        wg__tagged_words_load(in_scratch("words.conll"), tokenizer, &labels, NULL);
    const bool done = words != NULL;
    wg__examples_free((wg__examples *)words);
    wg__labels_free(&labels);
    return done;
}

TEST(words_that_find_no_memory_leave_nothing) {
    write_text("words.conll", "a X\nb Y\n\nc X\n");
    ck_assert_int_gt(fail_every_allocation(load_words, letters()), 5);
}
