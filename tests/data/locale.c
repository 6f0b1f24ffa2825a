/* A program with a decimal comma: numbers in texts, JSON and tokenizers are the same. */
#include <string.h>

#include "data/dataset/examples.h"
#include "data/tokenizer/tokenizer.h"
#include "io/config.h"
#include "tests/support/testing.h"
#include "data/internal.h"

START_TEST(labels_that_are_numbers_have_a_point) {
    if (!take_decimal_comma())
        return;
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
    wg_tokenizer *tokenizer = wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL);
    wg__labelled_text *text =
        wg__labelled_text_load(write_text("text.tsv", "sentence\tlabel\na\t0.25\na\t-1.5e2\n"),
                               tokenizer, NULL, &(wg__labelled_text_options){0});
    assert_no_error();
    ck_assert_double_eq(text->examples[0].value, 0.25);
    ck_assert_double_eq(text->examples[1].value, -150);
    wg__examples_free((wg__examples *)text);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(configurations_are_read_and_written_alike) {
    static const char json[] = "{\"eps\": 1e-05, \"rate\": 0.1, \"width\": 768}";
    if (!take_decimal_comma())
        return;
    wg_config *config = wg__config_parse(json, "test");
    double eps = 0, rate = 0;
    ck_assert_int_eq(wg__config_number(config, "eps", &eps), 0);
    ck_assert_int_eq(wg__config_number(config, "rate", &rate), 0);
    ck_assert_double_eq(eps, 1e-5);
    ck_assert_double_eq(rate, 0.1);
    char *written = wg__config_to_json(config);
    ck_assert_ptr_nonnull(strstr(written, "0.1"));
    ck_assert_ptr_null(strstr(written, "0,1"));
    wg_text_free(written);
    wg__config_free(config);
}
END_TEST

START_TEST(tokenizers_are_written_alike) {
    const wg_sentencepiece_training training = {.unigram = true};
    static const char text[] = "low low low lower lower newest newest widest";
    wg_tokenizer *before = wg__sentencepiece_train(text, -1, &training);
    char *plain = wg_tokenizer_to_json(before);
    if (take_decimal_comma()) {
        char *written = wg_tokenizer_to_json(before);
        ck_assert_str_eq(written, plain);
        wg_tokenizer *read = wg_tokenizer_from_json(written);
        assert_no_error();
        char *again = wg_tokenizer_to_json(read);
        ck_assert_str_eq(again, plain);
        wg_tokenizer_free(read);
        wg_text_free(written);
        wg_text_free(again);
    }
    wg_text_free(plain);
    wg_tokenizer_free(before);
}
END_TEST

SUITES {
    const TTest *const tests[] = {labels_that_are_numbers_have_a_point,
                                  configurations_are_read_and_written_alike,
                                  tokenizers_are_written_alike};
    add_suite("locale", tests);
}
