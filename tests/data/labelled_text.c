/* Texts with labels: the reader, orders of labels, and batches of one or two texts. */
#include "data/dataset/examples.h"

#include <stdio.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { PAD, UNK, CLS, SEP, MASK, A, B, C, D };

static wg_tokenizer *letters(void) {
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                         "a",     "b",     "c",     "d"};
    return owned(wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL));
}

/* The columns of the options are named. */
static wg__labelled_text *load_columns(const char *text, const wg__table_columns *columns,
                                       wg__labels *labels) {
    const wg__labelled_text_options options = {.columns = *columns};
    return owned(wg__labelled_text_load(write_text("text.tsv", text), letters(), labels, &options));
}

static wg__labelled_text *load(const char *text, wg__labels *labels) {
    return load_columns(text, &(wg__table_columns){0}, labels);
}

TEST(examples_are_read_and_labels_ordered) {
    wg__labels labels = {0};
    wg__labelled_text *text = load("sentence\tlabel\na b\tyes\r\n\nc\tno\nd a b\tyes", &labels);
    assert_no_error();
    ck_assert_int_eq(text->base.count, 3);
    ck_assert_int_eq(text->tokens.count, 6);
    ck_assert_int_eq(labels.count, 2);
    ck_assert_str_eq(labels.names[0], "no");
    ck_assert_int_eq(text->examples[0].label, 1);
    ck_assert_int_eq(text->examples[1].label, 0);
    const wg_token_pair pair = wg__labelled_text_pair(text, 2);
    ck_assert_int_eq(pair.first_count, 3);
    ck_assert_int_eq(pair.first[0], D);
    ck_assert_ptr_null(pair.second);
    wg__labels_free(&labels);
}

TEST(numbers_are_ordered_by_value_and_need_no_header) {
    wg__labels labels = {0};
    wg__labelled_text *text = load("a\td\t10\nb\tc\t9\nc\tb\t-1\n", &labels);
    assert_no_error();
    ck_assert_str_eq(labels.names[0], "-1");
    ck_assert_str_eq(labels.names[1], "9");
    ck_assert_int_eq(text->examples[0].label, 2);
    ck_assert_int_eq(text->base.count, 3);
    ck_assert_int_eq(wg__labelled_text_pair(text, 1).second[0], C);
    wg__labels_free(&labels);
}

TEST(bad_files_are_refused_by_line) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "no example"},
        {"sentence\tlabel\n", "no example"},
        {"a\tyes\nb\n", "line 2: 1 tab-separated columns"},
        {"a\tb\tc\tyes\n", "line 1: 4 tab-separated columns"},
        {"a\tyes\nb\tc\tno\n", "line 2: 3 columns"},
        {"a\tyes\n \tno\n", "line 2: a text is empty"},
        {"a\tyes\nb\t\n", "line 2: the label is empty"},
        {"a\tyes\nb\tyes\n", "every label is \"yes\""},
        {"a\tyes\n\xff\tno\n", "not UTF-8: line 2"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__labels labels = {0};
        assert_fails(load(cases[i].text, &labels), WG_ERROR_FORMAT, cases[i].part);
        ck_assert_int_eq(labels.count, 0);
    }
}

TEST(labels_that_are_given_are_all_there_are) {
    wg__labels labels = {0};
    wg__labels_add(&labels, "yes");
    wg__labels_add(&labels, "no");
    wg__labelled_text *text = load("a\tno\n", &labels);
    ck_assert_int_eq(text->examples[0].label, 1);
    assert_fails(load("a\tno\nb\tmaybe\n", &labels), WG_ERROR_FORMAT,
                 "line 2: the label \"maybe\" is unknown");
    ck_assert_int_eq(labels.count, 2);
    wg__labels_free(&labels);
}

/* ---- Named columns ---- */

/* One example, of the texts "a b" and "c" (0: none) and the label "no", then one with "yes". */
static void check_examples(wg__labelled_text *text, wg__labels *labels, int32_t second) {
    assert_no_error();
    ck_assert_int_eq(text->base.count, 2);
    const wg_token_pair pair = wg__labelled_text_pair(text, 0);
    ck_assert_int_eq(pair.first_count, 2);
    ck_assert_int_eq(pair.first[0], A);
    ck_assert_int_eq(pair.second ? pair.second[0] : 0, second);
    ck_assert_str_eq(labels->names[text->examples[0].label], "no");
    wg__labels_free(labels);
}

TEST(well_known_names_of_columns_are_found) {
    static const struct {
        const char *text;
        int32_t second;
    } cases[] = {
        {"index\tsentence1\tx\tsentence2\tlabel\n0\ta b\td\tc\tno\n1\ta\td\tc\tyes\n", C},
        {"label1\tgold_label\tsentence1\tsentence2\n-\tno\ta b\tc\n-\tyes\ta\tb\n", C},
        {"\xef\xbb\xbfindex\tquestion\tsentence\tlabel\r\n1\ta b\tc\tno\r\n2\ta\tc\tyes\r\n", C},
        {"label\tsentence\nno\ta b\nyes\td\n", 0},
        {"{\"label\": \"no\", \"sentence\": \"a b\"}\n\n{\"sentence\": \"d\", \"label\": "
         "\"yes\"}\n",
         0},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__labels labels = {0};
        check_examples(load(cases[i].text, &labels), &labels, cases[i].second);
    }
}

TEST(columns_are_those_that_are_named) {
    static const struct {
        const char *text;
        wg__table_columns columns;
        int32_t second;
    } cases[] = {
        {"x\ty\tz\nd\ta b\tno\nd\ta\tyes\n", {"y", NULL, "z", false}, 0},
        {"x\ty\tz\nc\ta b\tno\nd\ta\tyes\n", {"y", "x", "z", false}, C},
        {"sentence1\tsentence2\tz\na b\tc\tno\nd\ta\tyes\n", {"", "", "z", false}, C},
        {"sentence1\tsentence2\tlabel\na b\tc\tno\nd\ta\tyes\n", {"sentence1", "", "", false}, 0},
        {"{\"y\": \"a b\", \"z\": \"no\"}\n{\"y\": \"d\", \"z\": \"yes\"}",
         {"y", NULL, "z", false},
         0},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__labels labels = {0};
        check_examples(load_columns(cases[i].text, &cases[i].columns, &labels), &labels,
                       cases[i].second);
    }
}

TEST(bad_columns_are_refused) {
    static const struct {
        const char *text;
        wg__table_columns columns;
        const char *part;
    } cases[] = {
        {"x\tlabel\na\tno\n", {"y", NULL, NULL, false}, "no column \"y\"; it has x, label"},
        {"x\ty\na\tno\n",
         {"x", NULL, NULL, false},
         "--label-column names it; the columns are x, y"},
        {"x\ty\na\tno\n", {NULL, NULL, "y", false}, "--text-column names it"},
        {"sentence\tlabel\tx\na\tno\n", {0}, "line 2: 2 columns; the lines before have 3"},
        {"{\"sentence\": \"a\", \"x\": 1}\n", {0}, "--label-column names it"},
        {"{\"sentence\": \"a\", \"label\": 1}\n{\"sentence\": \"a\"}\n",
         {0},
         "line 2: \"label\" is missing"},
        {"{\"sentence\": \"a\", \"label\": 1}\n{\"sentence\"\n", {0}, "line 2: "},
        {"{\"sentence\": \"a\", \"label\": 1}\na\t1\n", {0}, "line 2: "},
        {"{\"sentence\": \"a\", \"label\": [1]}\n", {0}, "neither a text nor a number"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__labels labels = {0};
        assert_fails(load_columns(cases[i].text, &cases[i].columns, &labels), WG_ERROR_FORMAT,
                     cases[i].part);
    }
    wg__labels labels = {0};
    assert_fails(load_columns("x\ty\n", &(wg__table_columns){NULL, "x", "y", false}, &labels),
                 WG_ERROR_ARGUMENT, "--text-column");
}

TEST(numbers_are_read_instead_of_labels) {
    wg__labelled_text *text = load("sentence\tscore\na\t1.25\nb\t-3\n", NULL);
    assert_no_error();
    ck_assert(text->examples[0].value == 1.25 && text->examples[1].value == -3);
    text = load("{\"sentence\": \"a\", \"score\": 0.1}\n", NULL);
    ck_assert(text->examples[0].value == 0.1);
    static const char *const bad[] = {"a\t1x\n", "a\t\n", "a\tnan\n", "a\tinf\n"};
    for (size_t i = 0; i < WG_COUNT(bad); i++)
        assert_fails(load(bad[i], NULL), WG_ERROR_FORMAT, "is no number");
}

/* ---- Batches ---- */

static void assert_row(const wg_tensor *x, int64_t row, const int64_t *wanted) {
    for (int64_t t = 0; t < wg_tensor_size(x, 1); t++)
        ck_assert_int_eq((int64_t)wg_at(x, (int64_t[]){row, t}), wanted[t]);
}

TEST(a_batch_is_as_long_as_its_longest) {
    wg_tokenizer *tokenizer = letters();
    wg__labels labels = {0};
    wg__labelled_text *text = load("a b\tc\t1\na\tb\t0\n", &labels);
    wg_pair_frame frame;
    wg__example_batch batch;
    ck_assert_int_eq(wg__pair_frame_of(tokenizer, 128, &frame), 0);
    ck_assert_int_eq(wg__example_batch_read(&text->base, &frame, 2, (int64_t[]){1, 0}, &batch), 0);
    ck_assert_int_eq(wg_tensor_size(batch.inputs.input_ids, 1), 6);
    assert_row(batch.inputs.input_ids, 0, (int64_t[]){CLS, A, SEP, B, SEP, PAD});
    assert_row(batch.inputs.input_ids, 1, (int64_t[]){CLS, A, B, SEP, C, SEP});
    assert_row(batch.inputs.token_type_ids, 0, (int64_t[]){0, 0, 0, 1, 1, 0});
    assert_row(batch.inputs.token_type_ids, 1, (int64_t[]){0, 0, 0, 0, 1, 1});
    assert_row(batch.inputs.attention_mask, 0, (int64_t[]){1, 1, 1, 1, 1, 0});
    ck_assert_int_eq((int64_t)wg_at(batch.targets[0], (int64_t[]){1}), 1);
    ck_assert_int_eq(batch.inputs.tokens, 11);
    wg__labels_free(&labels);
}

/* 5 of 5 + 2 tokens may stay: the first text loses two. Of 3 + 4 the longer text is cut each time,
 * the second if they are equal. */
TEST(the_longer_text_is_cut_first) {
    static const int32_t first[] = {A, A, A, A, A}, second[] = {B, B, B, B};
    const wg_pair_frame frame = {
        .pad_id = PAD, .class_id = CLS, .separator_id = SEP, .sequence = 8};
    const wg_token_pair pairs[] = {
        {first, second, 5, 2}, {first, second, 3, 4}, {first, NULL, 5, 0}};
    wg_pair_batch batch;
    ck_assert_int_eq(wg__pair_batch_make(&frame, 3, pairs, &batch), 0);
    assert_row(batch.input_ids, 0, (int64_t[]){CLS, A, A, A, SEP, B, B, SEP});
    assert_row(batch.input_ids, 1, (int64_t[]){CLS, A, A, A, SEP, B, B, SEP});
    assert_row(batch.input_ids, 2, (int64_t[]){CLS, A, A, A, A, A, SEP, PAD});
}

TEST(two_separators_stand_between_texts_of_roberta) {
    static const char *const tokens[] = {"<s>", "<pad>", "</s>", "a", "b", "[UNK]"};
    static const int32_t first[] = {3, 3, 3, 3}, second[] = {4, 4};
    wg_tokenizer *tokenizer = owned(wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL));
    ck_assert_int_eq(wg__tokenizer_set_special(tokenizer, WG_TOKEN_PAD, 1), 0);
    ck_assert_int_eq(wg__tokenizer_set_special(tokenizer, WG_TOKEN_CLASS, 0), 0);
    ck_assert_int_eq(wg__tokenizer_set_special(tokenizer, WG_TOKEN_SEPARATOR, 2), 0);
    wg_pair_frame frame;
    wg_pair_batch batch;
    ck_assert_int_eq(wg__pair_frame_of(tokenizer, 9, &frame), 0);
    const wg_token_pair pairs[] = {
        {first, second, 4, 2}, {first, second, 1, 1}, {first, NULL, 2, 0}};
    ck_assert_int_eq(wg__pair_batch_make(&frame, 3, pairs, &batch), 0);
    assert_row(batch.input_ids, 0, (int64_t[]){0, 3, 3, 3, 2, 2, 4, 4, 2});
    assert_row(batch.input_ids, 1, (int64_t[]){0, 3, 2, 2, 4, 2, 1, 1, 1});
    assert_row(batch.input_ids, 2, (int64_t[]){0, 3, 3, 2, 1, 1, 1, 1, 1});
    ck_assert_int_eq(batch.tokens, 9 + 6 + 4);
}

TEST(a_frame_wants_special_tokens) {
    static const char *const bare[] = {"[UNK]", "a"};
    wg_pair_frame frame;
    assert_fails(wg__pair_frame_of(letters(), 7, &frame), WG_ERROR_ARGUMENT, "7 tokens");
    assert_fails(wg__pair_frame_of(owned(wg__wordpiece_new(2, bare, NULL)), 16, &frame),
                 WG_ERROR_ARGUMENT, "[CLS]");
}

TEST(other_texts_have_other_fingerprints) {
    static const char *const texts[] = {"a b\tc\t1\na\tb\t0\n", "a\tb c\t1\na\tb\t0\n",
                                        "a b\tc\t0\na\tb\t1\n"};
    uint64_t prints[WG_COUNT(texts)];
    for (size_t i = 0; i < WG_COUNT(texts); i++) {
        wg__labels labels = {0};
        wg__labelled_text *text = load(texts[i], &labels);
        prints[i] = text->base.kind->fingerprint(&text->base);
        wg__labels_free(&labels);
    }
    ck_assert(prints[0] != prints[1] && prints[0] != prints[2] && prints[1] != prints[2]);
}

static const wg__labelled_text_options several = {.several = true, .columns.lists = true};

TEST(several_labels_are_a_row_of_zeros_and_ones) {
    static const char *const files[] = {
        "sentence\tlabel\na\tz\nb c\tx , z,\nd\t\na\ty\n",
        "{\"sentence\": \"a\", \"label\": [\"z\"]}\n"
        "{\"sentence\": \"b c\", \"label\": [\"x\", \"z\"]}\n"
        "{\"sentence\": \"d\", \"label\": []}\n{\"sentence\": \"a\", \"label\": \"y\"}\n"};
    static const float rows[4][3] = {{0, 0, 1}, {1, 0, 1}, {0, 0, 0}, {0, 1, 0}};
    static const int64_t all[] = {0, 1, 2, 3};
    wg_tokenizer *tokenizer = letters();
    wg_pair_frame frame;
    ck_assert_int_eq(wg__pair_frame_of(tokenizer, 8, &frame), 0);
    uint64_t prints[WG_COUNT(files)];
    for (size_t i = 0; i < WG_COUNT(files); i++) {
        wg__labels labels = {0};
        wg__labelled_text *text = owned(
            wg__labelled_text_load(write_text("text.tsv", files[i]), tokenizer, &labels, &several));
        assert_no_error();
        ck_assert_int_eq(labels.count, 3);
        ck_assert_str_eq(labels.names[2], "z");
        ck_assert(wg__labelled_text_has(text, 1, 2));
        ck_assert(!wg__labelled_text_has(text, 1, 1));
        wg__example_batch batch;
        ck_assert_int_eq(wg__example_batch_read(&text->base, &frame, 4, all, &batch), 0);
        ck_assert_int_eq(wg_tensor_size(batch.targets[0], 1), 3);
        ck_assert_int_eq(memcmp(wg_tensor_data(batch.targets[0]), rows, sizeof rows), 0);
        prints[i] = text->base.kind->fingerprint(&text->base);
        wg__labels_free(&labels);
        wg_scope_clear_root();
    }
    ck_assert(prints[0] == prints[1]);
}

static wg_tokenizer *reader;

static bool load_text(const void *options) {
    wg__labels labels = {0};
    wg__labelled_text *text =
        wg__labelled_text_load(in_scratch("text.tsv"), reader, &labels, options);
    const bool done = text != NULL;
    wg__examples_free((wg__examples *)text);
    wg__labels_free(&labels);
    return done;
}

TEST(a_file_that_finds_no_memory_leaves_nothing) {
    reader = letters();
    write_text("text.tsv", "sentence\tlabel\na b\tyes\nc\tno\n");
    ck_assert_int_gt(fail_every_allocation(load_text, NULL), 5);
    write_text("text.tsv", "sentence\tlabel\na\tx,y\nb\t\nc\ty\n");
    fail_every_allocation(load_text, &several);
}
