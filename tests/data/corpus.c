/* Corpora: sentences, documents, formats, bad files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "data/dataset/token_file.h"
#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- Helpers ---- */

/* A tokenizer of single letters and digits. */
static wg_tokenizer *letters(void) {
    return owned(
        wg__wordpiece_train("abcdefghijklmnopqrstuvwxyz 0123456789 . , ? ! ' \" * ( ) : ; -", -1,
                            &(wg_wordpiece_training){.min_frequency = 1000}));
}

static wg_dataset *corpus_of(const char *text, wg_sentence_format format) {
    return owned(
        wg_dataset_from_text(text, -1, NULL, letters(), &(wg_dataset_options){.format = format}));
}

/* Writes the corpus as text: sentences end in " / ", documents in " // ". */
static const char *text_of(const wg_dataset *corpus) {
    static char text[8192];
    wg_tokenizer *tokenizer = letters();
    size_t used = 0;
    text[0] = '\0';
    for (int64_t d = 0; d < wg__dataset_documents(corpus); d++) {
        for (int64_t s = wg__dataset_document_start(corpus, d);
             s < wg__dataset_document_start(corpus, d + 1); s++) {
            int32_t ids[512];
            int64_t first = wg__dataset_sentence_start(corpus, s);
            int64_t count = wg__dataset_sentence_start(corpus, s + 1) - first;
            ck_assert_int_eq(wg__dataset_read(corpus, first, count, ids), 0);
            char *sentence = wg_tokenizer_decode(tokenizer, ids, count, NULL);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s / ", sentence);
            wg_text_free(sentence);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "/ ");
    }
    return text;
}

static void assert_corpus(const char *text, wg_sentence_format format, const char *expected) {
    wg_dataset *corpus = corpus_of(text, format);
    assert_no_error();
    ck_assert_str_eq(text_of(corpus), expected);
}

/* Fails unless the sentences end where `marked` has a |, after the space that follows each but the
 * last. */
static void assert_sentences(const char *marked) {
    char text[1024];
    int64_t ends[64], count = 0, length = 0;
    for (const char *c = marked; *c; c++) {
        if (*c == '|')
            ends[count++] = length;
        else
            text[length++] = *c;
    }
    ends[count++] = length;
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        at = wg__sentence_end(text, at, length);
        ck_assert_msg(at == ends[i], "%s: sentence %d ends at %d, wanted %d: %.*s", marked, (int)i,
                      (int)at, (int)ends[i], (int)at, text);
    }
}

/* ---- Sentences ---- */

TEST(sentences_end_at_full_stops_questions_and_exclamations) {
    static const char *const marked[] = {
        "It was late.| Was it?| It was!| 3.5 is a number.| He said no",
        "What?!| Really...| Yes",
        "Wait\u2026| Now",
        "A wrapped\nline.|\nAnother one",
        "One .| Two .| Three .",
        /* closing quotes belong to the sentence */
        "\"It is.\"| She went.| \"Is it?\"| (Yes.)| No",
        "\u201cIt is.\u201d| \u201cNo\u201d",
        /* a small letter goes on with the sentence */
        "\"What?\" said he.| \"No!\" cried she... and left",
        /* titles, initials and abbreviations end none */
        "Mr. Bennet and Mrs. Long saw Dr. J. R. Smith of St. Ives.| He left",
        "Use e.g. Newton's, i.e. Opticks, in the U.S. Navy.| End",
        "See Fig. 3 and No. 7.| He said no.| She said yes",
        "It was I.| The end",
        "1. The first.| 2. The second",
        /* ideographic stops need no space */
        "\u4f60\u597d\u3002|\u518d\u89c1\uff01|\u597d",
        "\u4f60\u597d\u3002| \u518d\u89c1\uff1f\uff01|\u597d",
    };
    for (size_t i = 0; i < WG_COUNT(marked); i++)
        assert_sentences(marked[i]);
}

/* Lu Xun, Diary of a Madman (1918) and Kong Yiji (1919), in the quotes of Taiwan and of the
 * mainland. */
TEST(chinese_prose_is_split_into_its_sentences) {
    assert_sentences("\u4eca\u5929\u665a\u4e0a\uff0c\u5f88\u597d\u7684\u6708\u5149\u3002|"
                     "\u6211\u4e0d\u898b\u4ed6\uff0c\u5df2\u662f\u4e09\u5341\u591a\u5e74\uff1b"
                     "\u4eca\u5929\u898b\u4e86\uff0c\u7cbe\u795e\u5206\u5916\u723d\u5feb\u3002|"
                     "\u624d\u77e5\u9053\u4ee5\u524d\u7684\u4e09\u5341\u591a\u5e74\uff0c\u5168"
                     "\u662f\u767c\u660f\uff1b\u7136\u800c\u9808\u5341\u5206\u5c0f\u5fc3\u3002|"
                     "\u4e0d\u7136\uff0c\u90a3\u8d99\u5bb6\u7684\u72d7\uff0c\u4f55\u4ee5\u770b"
                     "\u6211\u5169\u773c\u5462\uff1f|\u6211\u6015\u5f97\u6709\u7406\u3002");
    assert_sentences("\u6709\u7684\u53eb\u9053\uff0c\u300c\u5b54\u4e59\u5df1\uff0c\u4f60\u81c9"
                     "\u4e0a\u53c8\u6dfb\u4e0a\u65b0\u50b7\u75a4\u4e86\uff01\u300d|"
                     "\u4ed6\u4e0d\u56de\u7b54\uff0c\u5c0d\u6ac3\u88cf\u8aaa\uff0c"
                     "\u300c\u6eab\u5169\u7897\u9152\uff0c\u8981\u4e00\u789f\u8334\u9999\u8c46"
                     "\u3002\u300d|\u4fbf\u6392\u51fa\u4e5d\u6587\u5927\u9322\u3002|");
    assert_sentences("\u4ed6\u4eec\u53c8\u6545\u610f\u7684\u9ad8\u58f0\u56b7\u9053\uff0c\u201c"
                     "\u4f60\u4e00\u5b9a\u53c8\u5077\u4e86\u4eba\u5bb6\u7684\u4e1c\u897f\u4e86"
                     "\uff01\u201d|\u5b54\u4e59\u5df1\u7741\u5927\u773c\u775b\u8bf4\uff0c"
                     "\u201c\u4f60\u600e\u4e48\u8fd9\u6837\u51ed\u7a7a\u6c61\u4eba\u6e05\u767d"
                     "\u2026\u2026\u201d\u201c\u4ec0\u4e48\u6e05\u767d\uff1f|"
                     "\u6211\u524d\u5929\u4eb2\u773c\u89c1\u4f60\u5077\u4e86\u4f55\u5bb6\u7684"
                     "\u4e66\uff0c\u540a\u7740\u6253\u3002\u201d|");
}

TEST(quotes_within_a_chinese_sentence_do_not_end_it) {
    assert_sentences(
        "\u4ed6\u554f\u300c\u662f\u55ce\uff1f\u300d\u3001\u300c\u597d\u55ce\uff1f\u300d\uff0c\u6211"
        "\u8aaa\u300e\u662f\u3002\u300f\u3002|\u6211\u8d70\u4e86\u3002|");
    assert_sentences("\uff08\u898b\u4e0a\u3002\uff09|\u300e\u597d\uff01\u300f\u300d|\u518d\u898b");
}

/* ---- Formats ---- */

TEST(formats_have_their_sentences_and_documents) {
    assert_corpus("One two\nthree. Four\nfive.\n\nSix.\n\n\n\nSeven\n \t\n  * * *\n\neight.\n",
                  WG_SENTENCES_PLAIN, "one two three. / four five. / six. / / seven / eight. / / ");
    assert_corpus("One two. Three.\r\nfour\r\n\r\n\r\nFive.\r\n", WG_SENTENCES_BY_LINE,
                  "one two. three. / four / / five. / / ");
    assert_corpus("One.\n<|endoftext|>\nTwo.\n<|endoftext|>\n", WG_SENTENCES_PLAIN,
                  "one. / / two. / / ");
}

TEST(the_format_is_detected) {
    static const struct {
        wg_sentence_format format;
        const char *text;
    } cases[] = {
        {WG_SENTENCES_PLAIN, "It is a truth universally\nacknowledged, that a single\nman in "
                             "possession of\na good fortune.\n\nHowever little known\nit is.\n"},
        {WG_SENTENCES_BY_LINE, "It is a truth.\nHe is not.\n\"Is he?\"\n\nNo.\n"},
        {WG_SENTENCES_PLAIN, "It is a truth. He is not. It is so. Is he?\n\nNo. Yes. Oh.\n"},
        {WG_SENTENCES_PLAIN,
         "Shall I compare thee\nTo a summer's day?\nThou art more lovely\nAnd more"},
        /* 17 sentences, since a quote that stands alone is one, in 10 lines. */
        {WG_SENTENCES_PLAIN, "A man. A dog.\nA man. A dog.\nA man. A dog.\nA man. A dog.\n\"\n\"\n"
                             "\"\nA man. A dog.\nA man. A dog.\nA man. A dog.\n"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg__text_map map = wg__text_map_of(cases[i].text, -1);
        ck_assert_msg(wg__detect_sentence_format(&map) == cases[i].format, "%s", cases[i].text);
    }
}

TEST(the_published_sample_is_one_sentence_a_line) {
    const char *path = real_data("bert_sample/sample_text.txt");
    if (!path)
        return;
    wg_tokenizer *tokenizer = letters();
    wg_dataset *corpus = owned(wg_dataset_load(1, &path, tokenizer, NULL));
    assert_no_error();
    ck_assert_int_eq(wg__dataset_documents(corpus), 3);
    ck_assert_int_eq(wg__dataset_sentences(corpus), 31);
}

TEST(the_shipped_corpus_is_plain_text_of_many_documents) {
    char paths[2][1024];
    snprintf(paths[0], sizeof paths[0], "%s", fixture("../../corpus/heldout.txt"));
    snprintf(paths[1], sizeof paths[1], "%s",
             fixture("../../corpus/books/alice-in-wonderland.txt"));
    wg_tokenizer *tokenizer = letters();
    wg_dataset *corpus =
        owned(wg_dataset_load(2, (const char *[]){paths[0], paths[1]}, tokenizer, NULL));
    assert_no_error();
    ck_assert_int_eq(wg__dataset_documents(corpus), 10 + 11);
    ck_assert_int_gt(wg__dataset_sentences(corpus), 1500);
    ck_assert_int_lt(wg__dataset_sentences(corpus), 5000);
}

/* ---- Documents of text without marks ---- */

TEST(text_without_marks_is_cut_into_documents) {
    static const struct {
        const char *part;
        int times;
        const char *end;
        wg_sentence_format format;
        int documents, document, start; /* sentence `start` begins that document */
    } cases[] = {
        {"One. Two. Three.\n\n", 50, "", WG_SENTENCES_PLAIN, 3, 1,
         66}, /* 66, 66 and 18 sentences */
        {"One. Two. Three.\n\n", 50, "", WG_SENTENCES_PLAIN, 3, 3, 150},
        {"One. ", 130, "", WG_SENTENCES_PLAIN, 2, 1, 128}, /* one paragraph: cut at 128 */
        {"One.\n", 130, "", WG_SENTENCES_DETECT, 3, 2, 128},
        {"One. ", 200, "\n\n\n\nTwo.\n", WG_SENTENCES_PLAIN, 2, 1, 200}, /* at marks alone */
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        static char text[8192];
        text[0] = '\0';
        for (int k = 0; k < cases[i].times; k++)
            strcat(text, cases[i].part);
        wg_dataset *corpus = corpus_of(strcat(text, cases[i].end), cases[i].format);
        ck_assert_msg(wg__dataset_documents(corpus) == cases[i].documents, "case %zu", i);
        ck_assert_msg(wg__dataset_document_start(corpus, cases[i].document) == cases[i].start,
                      "case %zu", i);
    }
}

/* ---- Tokens ---- */

TEST(tokens_of_large_vocabularies_are_kept_whole) {
    static char tokens[70000][8];
    static const char *list[70000];
    for (int i = 0; i < 70000; i++) {
        snprintf(tokens[i], sizeof tokens[i], i ? "w%d" : "[UNK]", i);
        list[i] = tokens[i];
    }
    wg_tokenizer *tokenizer = owned(wg__wordpiece_new(70000, list, NULL));
    wg_dataset *corpus = owned(wg_dataset_from_text("w69999 w65536 w1", -1, NULL, tokenizer, NULL));
    int32_t ids[3];
    ck_assert_int_eq(wg__dataset_read(corpus, 0, 3, ids), 0);
    ck_assert_int_eq(ids[0], 69999);
    ck_assert_int_eq(ids[1], 65536);
    ck_assert_int_eq(ids[2], 1);
    ck_assert_int_eq(wg_dataset_vocabulary(corpus), 70000);
    assert_fails(wg__dataset_read(corpus, 1, 3, ids), WG_ERROR_INDEX,
                 "tokens 1 to 4 of a text of 3");
    assert_fails(wg__dataset_read(corpus, 1, INT64_MAX, ids), WG_ERROR_INDEX,
                 "tokens 1 to 9223372036854775807 of a text of 3");
}

TEST(a_split_holds_every_nth_document_out) {
    wg_dataset *corpus =
                   corpus_of("a.\n\nb.\n\nc.\n\nd.\n\ne.\n\nf.\n\ng.\n", WG_SENTENCES_BY_LINE),
               *few = corpus_of("a.\n\nb.\n\nc.\n", WG_SENTENCES_BY_LINE), *training, *held_out;
    split_dataset(corpus, 0.34, &training, &held_out);
    ck_assert_str_eq(text_of(training), "a. / / b. / / d. / / e. / / g. / / ");
    ck_assert_str_eq(text_of(held_out), "c. / / f. / / ");
    split_dataset(corpus, 0.01, &training, &held_out);
    ck_assert_str_eq(text_of(held_out), "c. / / f. / / ");
    assert_fails(wg_dataset_split(corpus, 0.6, &training, &held_out), WG_ERROR_ARGUMENT,
                 "a share of 0.6");
    ck_assert_ptr_null(training);
    assert_fails(wg_dataset_split(few, 0.5, &training, &held_out), WG_ERROR_ARGUMENT,
                 "3 documents; four are needed");
}

TEST(unigram_loss_is_the_cross_entropy_of_smoothed_counts) {
    const char *const tokens[] = {"[UNK]", "a", "b", "c"};
    wg_tokenizer *tokenizer = owned(wg__wordpiece_new(4, tokens, NULL));
    wg_dataset *corpus = owned(wg_dataset_from_text("a a a b a b", -1, NULL, tokenizer, NULL));
    /* Counts 0 4 2 0 of 6; with one added to each, 1 5 3 1 of 10. */
    double expected = -(log(0.5) + log(0.3) + log(0.1)) / 3;
    wg_tensor *wide = wg_from_array(WG_I64, WG_DIMS(3), (int64_t[]){1, 2, 3});
    wg_tensor *narrow = wg_from_array(WG_I32, WG_DIMS(3), (int32_t[]){1, 2, 3});
    ck_assert_double_eq_tol(wg_dataset_unigram_loss(corpus, wide, NULL), expected, 1e-12);
    ck_assert_double_eq_tol(wg_dataset_unigram_loss(corpus, narrow, NULL), expected, 1e-12);
    ck_assert(isnan(wg_dataset_unigram_loss(corpus, wg_zeros(WG_I64, WG_DIMS(0)), NULL)));
    assert_no_error();
    ck_assert(isnan(wg_dataset_unigram_loss(corpus, wg_full(WG_I64, WG_DIMS(2), 4), NULL)));
    assert_error(WG_ERROR_INDEX, "label 4");
    ck_assert(isnan(wg_dataset_unigram_loss(corpus, wg_ones(WG_F32, WG_DIMS(2)), NULL)));
    assert_error(WG_ERROR_DTYPE, "f32");
}

/* ---- Bad files ---- */

TEST(a_bad_file_is_refused_with_its_reason) {
    static const struct {
        const char *bytes;
        size_t length;
        const char *message;
    } cases[] = {
        {"", 0, "text.txt has no words"},
        {" \n\n\t\n", 5, "text.txt has no words"},
        {"Good.\nCaf\xe9.\n", 12, "text.txt is not UTF-8: line 2, byte 9 is 0xe9"},
        {"\xff\xfeH\0i\0", 6, "line 1, byte 0"},
        {"Caf\xc3", 4, "byte 3 is 0xc3"},
    };
    wg_tokenizer *tokenizer = letters();
    const char *path = in_scratch("text.txt"), *none = "no/such/file.txt", *folder = scratch();
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        write_file(path, cases[i].bytes, cases[i].length);
        assert_fails(wg_dataset_load(1, &path, tokenizer, NULL), WG_ERROR_FORMAT, cases[i].message);
    }
    assert_fails(wg_dataset_load(1, &none, tokenizer, NULL), WG_ERROR_NOT_FOUND,
                 "cannot read no/such/file.txt: No such");
    assert_fails(wg_dataset_load(1, &folder, tokenizer, NULL), WG_ERROR_IO, "Is a directory");
}

TEST(no_files_and_no_tokenizer_give_no_corpus) {
    wg_tokenizer *tokenizer = letters();
    assert_fails(wg_dataset_load(0, NULL, tokenizer, NULL), WG_ERROR_ARGUMENT, "no file");
    ck_assert_ptr_null(wg_dataset_load(1, (const char *[]){"x"}, NULL, NULL));
    assert_no_error();
    ck_assert_int_eq(wg_dataset_tokens(NULL), 0);
}

/* ---- Memory ---- */

static bool load_and_split(const void *tokenizer) {
    wg_dataset *corpus =
                   wg_dataset_from_text("a b.\n\nc.\n\nd.\n\ne.\n\nf", -1, NULL, tokenizer, NULL),
               *training, *held_out;
    bool done = wg_dataset_split(corpus, 0.5, &training, &held_out) == 0;
    wg_dataset_free(corpus);
    wg_dataset_free(training);
    wg_dataset_free(held_out);
    return done;
}

TEST(every_failed_allocation_is_reported_and_nothing_leaks) {
    ck_assert_int_gt(fail_every_allocation(load_and_split, letters()), 10);
}
