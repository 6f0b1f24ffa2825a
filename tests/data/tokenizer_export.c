/* Tokenizers exported to the formats of other programs: read again here, by those programs' rules
 * (tokenizer_reference.c compares our readers with them), they give the same ids. A test runs once
 * for each tokenizer; CK_RUN_CASE=gpt2 picks one. */
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replacement.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/kind.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "data/internal.h"

typedef struct thing {
    const char *name;
    const char *path;  /* its fixture; NULL: it is trained, or in the real data */
    const char *data;  /* in the real data */
    const char *files; /* the files that its kind has */
} thing;

/* The words of these tests; at the end no two merges are equally frequent. */
static const char corpus[] =
    "<unk> the lower, the newer, the wider; the lowest \xC3\xA9t\xC3\xA9 was newest. The <s> "
    "wider tower of flowers? \xE4\xB8\xAD\xE6\x96\x87 towers the flower 2024, 1234 (low) [new]!\n";

static const thing things[] = {
    {"bpe", "tokenizers/bpe", NULL, "vocab.json tokenizer.json"},
    {"byte", NULL, NULL, "tokenizer.json"},
    {"char", NULL, NULL, "tokenizer.json"},
    {"gpt2", NULL, "tokenizers/gpt2", "vocab.json tokenizer.json"},
    {"hf_bert_cased", "tokenizers/hf_bert_cased.tokenizer.json", NULL, "vocab.txt tokenizer.json"},
    {"hf_gpt2", "tokenizers/hf_gpt2.tokenizer.json", NULL, "vocab.json tokenizer.json"},
    {"hf_llama", "tokenizers/hf_llama.tokenizer.json", NULL, "tokenizer.json"},
    {"hf_llama3", "tokenizers/hf_llama3.tokenizer.json", NULL, "tokenizer.json"},
    {"hf_llama_first", "tokenizers/hf_llama_first.tokenizer.json", NULL, "tokenizer.json"},
    {"hf_t5", "tokenizers/hf_t5.tokenizer.json", NULL, "tokenizer.json"},
    {"llama2c", NULL, "stories260K/tok512.bin", "tokenizer.bin tokenizer.model tokenizer.json"},
    {"sp_across", "tokenizers/sp_across.model", NULL, "tokenizer.model"},
    {"sp_bpe", "tokenizers/sp_bpe.model", NULL, "tokenizer.model"},
    {"sp_bpe_rules", "tokenizers/sp_bpe_rules.model", NULL, "tokenizer.model"},
    {"sp_suffix", "tokenizers/sp_suffix.model", NULL, "tokenizer.model"},
    {"sp_unigram", "tokenizers/sp_unigram.model", NULL, "tokenizer.model"},
    {"wordpiece", NULL, NULL, "vocab.txt tokenizer.json"},
};

static const char *name_of(int i) {
    return things[i].name;
}

static wg_tokenizer *make(const thing *thing) {
    const int64_t length = (int64_t)strlen(corpus);
    if (strcmp(thing->name, "byte") == 0)
        return wg_byte_new();
    if (strcmp(thing->name, "char") == 0)
        return wg__char_train(corpus, length, &(wg_char_training){.unknown = true});
    if (strcmp(thing->name, "wordpiece") == 0)
        return wg__wordpiece_train(corpus, length, &(wg_wordpiece_training){.vocabulary_size = 90});
    const char *path = thing->path ? fixture(thing->path) : real_data(thing->data);
    return path ? wg_tokenizer_load(path) : NULL;
}

static const char *const published[] = {"vocab.txt", "vocab.json", "tokenizer.json",
                                        "tokenizer.model", "tokenizer.bin"};

static json_t *load_texts(void) {
    json_t *texts = json_load_file(fixture("tokenizers/texts.json"), JSON_ALLOW_NUL, NULL);
    ck_assert_uint_gt(json_array_size(texts), 40);
    return texts;
}

/* Only llama2c has U+2581 as a character; others read it as a space. */
static bool is_comparable(const wg_tokenizer *a, const char *text) {
    return strcmp(wg_tokenizer_kind(a), "llama2c") != 0 || !strstr(text, "\xE2\x96\x81");
}

static void assert_same_ids(const wg_tokenizer *a, const wg_tokenizer *b, const json_t *texts,
                            bool special, const char *file) {
    size_t i;
    json_t *text;
    const wg_encode_options options = {.special_tokens = special};
    json_array_foreach((json_t *)texts, i, text) {
        wg_token_list x = {0}, y = {0};
        const char *bytes = json_string_value(text);
        const int64_t length = (int64_t)json_string_length(text);
        if (!is_comparable(a, bytes))
            continue;
        ck_assert_int_eq(wg_tokenizer_encode(a, bytes, length, &options, &x), 0);
        ck_assert_int_eq(wg_tokenizer_encode(b, bytes, length, &options, &y), 0);
        ck_assert_msg(x.count == y.count, "%s, text %zu: %lld ids, then %lld", file, i,
                      (long long)x.count, (long long)y.count);
        for (int64_t k = 0; k < x.count; k++)
            ck_assert_msg(x.ids[k] == y.ids[k], "%s, text %zu: id %lld differs", file, i,
                          (long long)k);
        wg_token_list_free(&x);
        wg_token_list_free(&y);
    }
}

/* A vocab.txt is read by BERT's rules, a tokenizer.json by those of the library, which differ in
 * rare characters. */
static bool has_other_rules(const thing *thing, const char *file) {
    return (strcmp(thing->name, "wordpiece") == 0 && strcmp(file, "tokenizer.json") == 0) ||
           (strcmp(thing->name, "hf_bert_cased") == 0 && strcmp(file, "vocab.txt") == 0);
}

static void assert_file(const thing *thing, const wg_tokenizer *tokenizer, const char *file,
                        const json_t *texts) {
    wg_tokenizer *again = wg_tokenizer_load(in_scratch(file));
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(again), wg_tokenizer_size(tokenizer));
    if (!has_other_rules(thing, file)) {
        assert_same_ids(tokenizer, again, texts, false, file);
        assert_same_ids(tokenizer, again, texts, true, file);
    }
    wg_tokenizer_free(again);
}

START_TEST(every_file_gives_the_same_ids) {
    const thing *thing = &things[_i];
    wg_tokenizer *tokenizer = make(thing);
    assert_no_error();
    if (!tokenizer)
        return;
    bool other = false;
    ck_assert_int_eq(wg_tokenizer_export(tokenizer, scratch(), &other), 0);
    ck_assert(other);
    json_t *texts = load_texts();
    struct stat status;
    for (size_t i = 0; i < WG_COUNT(published); i++) {
        const bool wanted = strstr(thing->files, published[i]);
        ck_assert_msg((stat(in_scratch(published[i]), &status) == 0) == wanted, "%s", published[i]);
        if (wanted)
            assert_file(thing, tokenizer, published[i], texts);
    }
    assert_file(thing, tokenizer, "wengert.json", texts);
    json_decref(texts);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(special_tokens_come_of_text_only_if_asked_for) {
    wg_tokenizer *tokenizer = make(&things[_i]);
    if (!tokenizer)
        return;
    for (int32_t id = 0; id < wg_tokenizer_size(tokenizer); id++) {
        if (!wg__tokenizer_is_special(tokenizer, id))
            continue;
        char text[256];
        const int length =
            snprintf(text, sizeof text, "the %s the", wg__tokenizer_added_text(tokenizer, id));
        wg_token_list plain = {0}, asked = {0};
        const wg_encode_options options = {.special_tokens = true};
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, NULL, &plain), 0);
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, &options, &asked), 0);
        bool found = false;
        for (int64_t i = 0; i < plain.count; i++)
            ck_assert_msg(!wg__tokenizer_is_special(tokenizer, plain.ids[i]) ||
                              plain.ids[i] == wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN),
                          "\"%s\" gives the special token %d", text, plain.ids[i]);
        for (int64_t i = 0; i < asked.count; i++)
            found |= asked.ids[i] == id;
        ck_assert_msg(found, "\"%s\" does not give %d", text, id);
        wg_token_list_free(&plain);
        wg_token_list_free(&asked);
    }
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* A file whose format has an end is refused when it is cut at any byte. */
START_TEST(a_file_cut_short_is_refused) {
    const thing *thing = &things[_i];
    if (thing->path || (thing->data && strcmp(thing->name, "llama2c") != 0))
        return;
    wg_tokenizer *tokenizer = make(thing);
    bool other;
    if (!tokenizer)
        return;
    ck_assert_int_eq(wg_tokenizer_export(tokenizer, scratch(), &other), 0);
    wg_tokenizer_free(tokenizer);
    static const char *const files[] = {"vocab.json", "tokenizer.json", "tokenizer.model",
                                        "wengert.json"};
    for (size_t i = 0; i < WG_COUNT(files); i++) {
        int64_t length;
        char *bytes = wg__text_file_read(in_scratch(files[i]), &length, "test");
        wg_error_clear();
        if (!bytes)
            continue;
        const int64_t step = length < 2000 ? 1 : length / 499;
        ck_assert_int_eq(wg__replace_file(in_scratch("cut"), bytes, length, "test"), 0);
        for (int64_t cut = length - 3; cut >= 0; cut -= step) {
            ck_assert_int_eq(truncate(in_scratch("cut"), cut), 0);
            tokenizer = wg_tokenizer_load(in_scratch("cut"));
            ck_assert_msg(!tokenizer, "%s of %lld bytes is read up to %lld", files[i],
                          (long long)length, (long long)cut);
            ck_assert(wg_error_pending());
            wg_error_clear();
        }
        wg__free(bytes);
    }
}
END_TEST

/* Fails all allocations from the n-th on, for every n, until the export succeeds. Published
 * vocabularies would take too long. */
START_TEST(an_export_without_memory_says_so_and_leaks_nothing) {
    const thing *thing = &things[_i];
    if (thing->path || (thing->data && strcmp(thing->name, "llama2c") != 0))
        return;
    wg_tokenizer *tokenizer = make(thing);
    if (!tokenizer)
        return;
    bool other;
    int64_t n = 0;
    for (int status = -1; status < 0; n++) {
        wg__alloc_fail_after(n);
        status = wg_tokenizer_export(tokenizer, scratch(), &other);
        wg__alloc_fail_after(-1);
        if (status < 0)
            assert_error(WG_ERROR_MEMORY, "");
    }
    assert_no_error();
    ck_assert_int_gt(n, 5);
    wg_tokenizer_free(tokenizer);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        every_file_gives_the_same_ids,
        special_tokens_come_of_text_only_if_asked_for,
        a_file_cut_short_is_refused,
        an_export_without_memory_says_so_and_leaks_nothing,
    };
    add_suite_of_each("tokenizer_export", tests, WG_COUNT(things), name_of);
}
