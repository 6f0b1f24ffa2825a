/* A program with a decimal comma: numbers in texts, JSON and tokenizers are the same. */
#include <string.h>

#include "data/dataset/examples.h"
#include "data/tokenizer/tokenizer.h"
#include "io/config.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

TEST(labels_that_are_numbers_have_a_point) {
    if (!take_decimal_comma())
        return;
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
    wg_tokenizer *tokenizer = owned(wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL));
    wg__labelled_text *text = owned(
        wg__labelled_text_load(write_text("text.tsv", "sentence\tlabel\na\t0.25\na\t-1.5e2\n"),
                               tokenizer, NULL, &(wg__labelled_text_options){0}));
    assert_no_error();
    ck_assert_double_eq(text->examples[0].value, 0.25);
    ck_assert_double_eq(text->examples[1].value, -150);
}

TEST(configurations_are_read_and_written_alike) {
    static const char json[] = "{\"eps\": 1e-05, \"rate\": 0.1, \"width\": 768}";
    if (!take_decimal_comma())
        return;
    wg_config *config = owned(wg__config_parse(json, "test"));
    double eps = 0, rate = 0;
    ck_assert_int_eq(wg__config_number(config, "eps", &eps), 0);
    ck_assert_int_eq(wg__config_number(config, "rate", &rate), 0);
    ck_assert_double_eq(eps, 1e-5);
    ck_assert_double_eq(rate, 0.1);
    char *written = owned(wg__config_to_json(config));
    ck_assert_ptr_nonnull(strstr(written, "0.1"));
    ck_assert_ptr_null(strstr(written, "0,1"));
}

TEST(tokenizers_are_written_alike) {
    const wg_sentencepiece_training training = {.unigram = true};
    static const char text[] = "low low low lower lower newest newest widest";
    wg_tokenizer *before = owned(wg__sentencepiece_train(text, -1, &training));
    const char *plain = json_of(before);
    if (take_decimal_comma()) {
        ck_assert_str_eq(json_of(before), plain);
        ck_assert_str_eq(json_of(owned(wg_tokenizer_from_json(plain))), plain);
    }
}
