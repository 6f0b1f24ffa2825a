/* The time that long lines and long words take grows as their length: in every tokenizer, in
 * learning each kind, and in the readers of texts. bench/long_text.sh measures larger ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/internal.h"
#include "data/dataset/dataset.h"
#include "data/tokenizer/tokenizer.h"
#include "tests/support/testing.h"

/* ---- Texts: lines of one pattern, repeated; all parts that rules may look ahead or back over ----
 */

typedef struct shape {
    const char *name;
    const char *begin, *pattern, *end;
} shape;

static const shape shapes[] = {
    {"words", "", "It is a truth that Mr. J. Smith left, e.g. at no. 5. \"No!\" he said. ", ""},
    {"one letter", "", "a", ""},
    {"one word", "", "ofthemanythingsthatapersonmaysay", ""},
    {"Han characters", "", "天地玄黃宇宙洪荒", ""},
    {"spaces", "a", " ", "b"},
    {"wide spaces", "a", "\u3000", "b"},
    {"digits", "", "1234567890", ""},
    {"full stops", "a", ".", " b"},
    {"stops and spaces", "a", ". ", "b"},
    {"ideographic stops", "a", "。", "，b"},
    {"closing quotes", "a.", "」", "，b"},
    {"quoted stops", "a", "。」", "，b"},
    {"opening quotes", "a. ", "(", "b"},
    {"commas", "a. ", "，", "b"},
    {"accents", "e", "\u0301", "b"},
    {"marks with a class", "\u0915", "\u093e\u302e", "b"},
    {"sigmas", "a", "\u03a3'", "b"},
    {"apostrophes", "\u03a3", "'", "\u03a3"},
    {"joined emoji", "", "\U0001F468\u200D", "\U0001F468"},
    {"underscores", "a", "\u2581", "b"},
    {"almost marks", "", "<|endoftext", ""},
    {"marks within a line", "", "<|endoftext|>", "b"},
};

/* The number of bytes of a text of about `length` bytes. */
static int64_t fill(const shape *s, int64_t length, char *text) {
    const size_t size = strlen(s->pattern);
    char *at = text + strlen(strcpy(text, s->begin));
    while (at + size < text + length) {
        memcpy(at, s->pattern, size);
        at += size;
    }
    strcpy(at, s->end);
    return (int64_t)strlen(text);
}

/* ---- Time: the ratio of two lengths, the least of some tries ---- */

enum { SMALL = 1 << 15, LARGE = 8 * SMALL, TRIES = 5, MOST = 32 };

/* Does what is measured with a text of that many bytes; returns 0, or -1 with an error. */
typedef int work(const void *subject, const char *text, int64_t length);

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The time of one run: of so many that they take 2 ms together. */
static double time_of(work *run, const void *subject, const char *text, int64_t length) {
    int count = 0;
    const double begun = seconds();
    double passed;
    do {
        ck_assert_msg(run(subject, text, length) == 0, "%s",
                      wg_error_pending() ? wg_error_pending()->message : "?");
        count++;
        passed = seconds() - begun;
    } while (passed < 2e-3);
    return passed / count;
}

/* Eight times the text takes eight times as long, and 64 times where time is quadratic. Factors
 * that grow as a logarithm, and caches, are allowed for up to MOST. */
static void try_shape(const char *what, const shape *s, work run, const void *subject,
                      char *found_slow, size_t size) {
    static char small[SMALL + 64], large[LARGE + 64];
    const int64_t small_length = fill(s, SMALL, small), large_length = fill(s, LARGE, large);
    double ratio = 0;
    for (int i = 0; i < TRIES && (i == 0 || ratio > MOST); i++) {
        const double little = time_of(run, subject, small, small_length);
        const double found = time_of(run, subject, large, large_length) / little;
        ratio = i == 0 || found < ratio ? found : ratio;
    }
    const size_t used = strlen(found_slow);
    if (ratio > MOST)
        snprintf(found_slow + used, size - used, " %s: %.1f;", s->name, ratio);
    if (getenv("WENGERT_PRINT_TIMES"))
        printf("# %s, %s: %.1f\n", what, s->name, ratio);
}

/* Fails with all the shapes whose time is not linear. */
static void assert_linear(const char *what, size_t count, work run, const void *subject) {
    char slow[4096] = "";
    for (size_t i = 0; i < count; i++)
        try_shape(what, &shapes[i], run, subject, slow, sizeof slow);
    ck_assert_msg(!*slow, "%s: %d times the text takes so many times as long:%s", what,
                  LARGE / SMALL, slow);
}

/* ---- Tokenizers ---- */

static const char learnt_from[] =
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife. 天地玄黃宇宙洪荒 1234567890 ofthemanythingsthatapersonmaysay "
    "e\u0301 aa aaa aaaa <|endoftext";

/* Those without a file learn from that text. */
static const struct {
    const char *name, *file;
} tokenizers[] = {
    {"wordpiece", NULL},
    {"bpe", NULL},
    {"sentencepiece-bpe", NULL},
    {"sentencepiece-unigram", NULL},
    {"char", NULL},
    {"byte", NULL},
    {"hf_bert", "hf_bert.tokenizer.json"},
    {"hf_bert_cased", "hf_bert_cased.tokenizer.json"},
    {"hf_gpt2", "hf_gpt2.tokenizer.json"},
    {"hf_llama", "hf_llama.tokenizer.json"},
    {"hf_llama3", "hf_llama3.tokenizer.json"},
    {"hf_t5", "hf_t5.tokenizer.json"},
    {"sp_across", "sp_across.model"},
    {"sp_bpe_rules", "sp_bpe_rules.model"},
    {"sp_unigram", "sp_unigram.model"},
};

static wg_tokenizer *make(int which) {
    char path[128];
    switch (which) {
    case 0:
        return wg__wordpiece_train(learnt_from, -1,
                                   &(wg_wordpiece_training){.vocabulary_size = 200});
    case 1:
        return wg__bpe_train(learnt_from, -1, &(wg_bpe_training){.vocabulary_size = 320});
    case 2:
    case 3:
        return wg__sentencepiece_train(learnt_from, -1,
                                       &(wg_sentencepiece_training){.vocabulary_size = 400,
                                                                    .byte_fallback = true,
                                                                    .unigram = which == 3});
    case 4:
        return wg__char_train(learnt_from, -1, &(wg_char_training){.unknown = true});
    case 5:
        return wg_byte_new();
    default:
        snprintf(path, sizeof path, "tokenizers/%s", tokenizers[which].file);
        return wg_tokenizer_load(fixture(path));
    }
}

static const char *tokenizer_name(int i) {
    return tokenizers[i].name;
}

static int encode(const void *subject, const char *text, int64_t length) {
    wg_token_list list = {0};
    const int status = wg_tokenizer_encode(subject, text, length, NULL, &list);
    wg_token_list_free(&list);
    return status;
}

TEST_OF_EACH(encoding_takes_linear_time, WG_COUNT(tokenizers), tokenizer_name) {
    wg_tokenizer *tokenizer = owned(make(_i));
    assert_no_error();
    assert_linear(tokenizers[_i].name, WG_COUNT(shapes), encode, tokenizer);
}

static int encode_and_decode(const void *subject, const char *text, int64_t length) {
    wg_token_list list = {0};
    char *decoded = NULL;
    if (wg_tokenizer_encode(subject, text, length, NULL, &list) == 0)
        decoded = wg_tokenizer_decode(subject, list.ids, list.count, NULL);
    wg_token_list_free(&list);
    wg_text_free(decoded);
    return decoded ? 0 : -1;
}

TEST_OF_EACH(decoding_takes_linear_time, WG_COUNT(tokenizers), tokenizer_name) {
    wg_tokenizer *tokenizer = owned(make(_i));
    assert_no_error();
    assert_linear(tokenizers[_i].name, 4, encode_and_decode, tokenizer);
}

/* ---- Learning ---- */

/* 0, and for an error of the format, too: "there are no words" is an answer. */
static int answered(bool done) {
    if (done || !wg_error_pending() || wg_error_pending()->code != WG_ERROR_FORMAT)
        return done ? 0 : -1;
    wg_error_clear();
    return 0;
}

static int accept(wg_tokenizer *tokenizer) {
    wg_tokenizer_free(tokenizer);
    return answered(tokenizer);
}

static int learn_wordpiece(const void *subject, const char *text, int64_t length) {
    (void)subject;
    return accept(wg__wordpiece_train(text, length, &(wg_wordpiece_training){0}));
}

static int learn_bpe(const void *subject, const char *text, int64_t length) {
    (void)subject;
    return accept(wg__bpe_train(text, length, &(wg_bpe_training){0}));
}

static int learn_sentencepiece(const void *subject, const char *text, int64_t length) {
    return accept(wg__sentencepiece_train(
        text, length,
        &(wg_sentencepiece_training){.byte_fallback = true, .unigram = subject != NULL}));
}

static int learn_characters(const void *subject, const char *text, int64_t length) {
    (void)subject;
    return accept(wg__char_train(text, length, NULL));
}

static const struct {
    const char *name;
    work *learn;
    const char *subject;
} learners[] = {
    {"learning wordpiece", learn_wordpiece, NULL},
    {"learning bpe", learn_bpe, NULL},
    {"learning sentencepiece-bpe", learn_sentencepiece, NULL},
    {"learning sentencepiece-unigram", learn_sentencepiece, "unigram"},
    {"learning char", learn_characters, NULL},
};

static const char *learner_name(int i) {
    return learners[i].name;
}

TEST_OF_EACH(learning_takes_linear_time, WG_COUNT(learners), learner_name) {
    assert_linear(learners[_i].name, WG_COUNT(shapes), learners[_i].learn, learners[_i].subject);
}

/* ---- Readers ---- */

typedef struct reader {
    const char *name;
    wg_dataset_options options;
} reader;

static const reader readers[] = {
    {"plain sentences", {.kind = WG_TEXT_SENTENCES, .format = WG_SENTENCES_PLAIN}},
    {"sentences by line", {.kind = WG_TEXT_SENTENCES, .format = WG_SENTENCES_BY_LINE}},
    {"sentences of a format that is detected", {.kind = WG_TEXT_SENTENCES}},
    {"a stream", {.kind = WG_TEXT_STREAM}},
};

static wg_tokenizer *of_readers;

static int read_text(const void *subject, const char *text, int64_t length) {
    const reader *r = subject;
    wg_dataset *dataset = wg_dataset_from_text(text, length, NULL, of_readers, &r->options);
    wg_dataset_free(dataset);
    return answered(dataset);
}

static int check_text(const void *subject, const char *text, int64_t length) {
    (void)subject;
    const char *path = in_scratch("long.txt");
    write_file(path, text, (size_t)length);
    wg_corpus_report report;
    return answered(wg__corpus_check(1, &path, &(wg_corpus_check_options){.tokenizer = of_readers},
                                     &report) == 0);
}

TEST(reading_texts_takes_linear_time) {
    of_readers = wg_byte_new();
    for (size_t r = 0; r < WG_COUNT(readers); r++)
        assert_linear(readers[r].name, WG_COUNT(shapes), read_text, &readers[r]);
    wg_tokenizer_free(of_readers);
}

TEST(checking_a_text_takes_linear_time) {
    of_readers = wg_byte_new();
    assert_linear("corpus check", WG_COUNT(shapes), check_text, NULL);
    wg_tokenizer_free(of_readers);
}
