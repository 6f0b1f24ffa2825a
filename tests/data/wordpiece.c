/* WordPiece: equality with the published tokenizer, vocabularies read and kept. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/text_file.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/tokenizer.h"
#include "io/checkpoint/checkpoint.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- Helpers ---- */

static const char *const few[] = {
    "[PAD]", "[UNK]", "[CLS]", "[SEP]",     "[MASK]", "un",   "##aff",  "##able", "the", "dog",
    "'",     "s",     ".",     ",",         "\"",     "said", "he",     "-",      "(",   ")",
    "[",     "]",     "mask",  "caf\u00e9", "cafe",   "The",  "\u2019", "t",      "don"};

static wg_tokenizer *few_tokens(const wg_wordpiece_options *options) {
    return owned(wg__wordpiece_new(WG_COUNT(few), few, options));
}

static json_t *load_fixture(void) {
    json_error_t error;
    json_t *root = json_load_file(fixture("wordpiece.json"), JSON_ALLOW_NUL, &error);
    ck_assert_msg(root != NULL, "%s", error.text);
    return root;
}

static const char **fixture_tokens(const json_t *root, size_t *count) {
    const json_t *vocabulary = json_object_get(root, "vocabulary");
    *count = json_array_size(vocabulary);
    const char **tokens = malloc(*count * sizeof *tokens);
    for (size_t i = 0; i < *count; i++)
        tokens[i] = json_string_value(json_array_get(vocabulary, i));
    return tokens;
}

static void assert_decodes(const char *tokens, const wg_decode_options *options,
                           const char *expected) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    wg_token_list list = {0};
    char copy[512];
    snprintf(copy, sizeof copy, "%s", tokens);
    for (char *token = strtok(copy, " "); token; token = strtok(NULL, " ")) {
        int32_t id = wg_tokenizer_id(tokenizer, token);
        ck_assert_msg(id >= 0, "no token %s", token);
        ck_assert_int_eq(wg_token_list_append(&list, id), 0);
    }
    ck_assert_str_eq(text_of_ids(tokenizer, list.count, list.ids, options), expected);
    wg_token_list_free(&list);
}

/* ---- Equality with the published tokenizer ---- */

static void assert_case(const wg_tokenizer *tokenizer, const json_t *one, const char *which) {
    const json_t *text = json_object_get(one, "text"), *ids = json_object_get(one, which);
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, json_string_value(text),
                                         (int64_t)json_string_length(text), NULL, &list),
                     0);
    for (int64_t i = 0; i < list.count && i < (int64_t)json_array_size(ids); i++)
        ck_assert_msg(list.ids[i] == json_integer_value(json_array_get(ids, (size_t)i)),
                      "%s, %s: token %d is %s", json_string_value(text), which, (int)i,
                      wg_tokenizer_token(tokenizer, list.ids[i]));
    ck_assert_msg(list.count == (int64_t)json_array_size(ids), "%s, %s: %d tokens, wanted %d",
                  json_string_value(text), which, (int)list.count, (int)json_array_size(ids));
    wg_token_list_free(&list);
}

TEST(hostile_texts_give_the_published_ids) {
    json_t *root = owned(load_fixture());
    size_t count;
    const char **tokens = fixture_tokens(root, &count);
    wg_tokenizer *uncased = owned(wg__wordpiece_new((int64_t)count, tokens, NULL));
    wg_tokenizer *cased =
        owned(wg__wordpiece_new((int64_t)count, tokens, &(wg_wordpiece_options){.cased = true}));
    assert_no_error();
    const json_t *cases = json_object_get(root, "cases"), *one;
    ck_assert_uint_gt(json_array_size(cases), 20);
    size_t i;
    json_array_foreach((json_t *)cases, i, one) {
        assert_case(uncased, one, "uncased");
        assert_case(cased, one, "cased");
    }
    free(tokens);
}

/* FNV-1a over 32-bit ids, as in the fixture's script. */
static uint64_t hash_of(const wg_token_list *list) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < list->count; i++)
        hash = (hash ^ (uint32_t)list->ids[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void assert_hash(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                        const char *path, int64_t count, uint64_t hash) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, NULL, &list), 0);
    ck_assert_msg(list.count == count, "%s: %" PRId64 " tokens, wanted %" PRId64, path, list.count,
                  count);
    ck_assert_msg(hash_of(&list) == hash, "%s: other tokens than the published ones", path);
    wg_token_list_free(&list);
}

TEST(real_text_gives_the_published_ids) {
    const char *vocabulary = real_data("tokenizers/bert/vocab.txt");
    if (!vocabulary)
        return;
    wg_tokenizer *uncased = owned(wg__wordpiece_load(vocabulary, NULL));
    wg_tokenizer *cased =
        owned(wg__wordpiece_load(vocabulary, &(wg_wordpiece_options){.cased = true}));
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(uncased), 30522);
    ck_assert_int_eq(wg_tokenizer_special(uncased, WG_TOKEN_MASK), 103);
    FILE *list = fopen(fixture("wordpiece_corpora.txt"), "r");
    int64_t count, cased_count;
    uint64_t hash, cased_hash;
    char path[256];
    int files = 0;
    while (fscanf(list, "%" SCNd64 " %" SCNx64 " %" SCNd64 " %" SCNx64 " %255s", &count, &hash,
                  &cased_count, &cased_hash, path) == 5) {
        files++;
        const char *full = real_data(path);
        if (!full)
            continue;
        int64_t length;
        char *text = wg__text_file_read(full, &length, "test");
        assert_hash(uncased, text, length, path, count, hash);
        assert_hash(cased, text, length, path, cased_count, cased_hash);
        wg__free(text);
    }
    fclose(list);
    ck_assert_int_gt(files, 20);
}

/* ---- Encoding ---- */

TEST(special_tokens_in_text_are_read_only_when_asked) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    const char *text = "The [MASK]dog[SEP]. [mask]";
    ck_assert_str_eq(tokens_of(tokenizer, text, NULL), "the [ mask ] dog [ [UNK] ] . [ mask ]");
    wg_encode_options options = {.special_tokens = true};
    ck_assert_str_eq(tokens_of(tokenizer, text, &options), "the [MASK] dog [SEP] . [ mask ]");
    ck_assert_str_eq(tokens_of(tokenizer, "[MASK", &options), "[ mask");
}

TEST(a_cased_tokenizer_keeps_capitals_and_accents) {
    wg_tokenizer *uncased = few_tokens(NULL);
    wg_tokenizer *cased = few_tokens(&(wg_wordpiece_options){.cased = true});
    ck_assert_str_eq(tokens_of(uncased, "The Caf\u00e9", NULL), "the cafe");
    ck_assert_str_eq(tokens_of(cased, "The caf\u00e9", NULL), "The caf\u00e9");
}

TEST(a_word_beyond_the_limit_is_unknown) {
    static const char *const wanted[] = {"[UNK]", "un ##aff ##able"};
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(
            tokens_of(few_tokens(&(wg_wordpiece_options){.max_word_characters = 8 + i}),
                      "unaffable", NULL),
            wanted[i]);
    assert_fails(few_tokens(&(wg_wordpiece_options){.max_word_characters = -1}), WG_ERROR_ARGUMENT,
                 "max_word_characters is -1");
}

TEST(text_that_is_not_utf8_is_refused_and_leaves_the_list_alone) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "the dog", -1, NULL, &list), 0);
    const char *const bad[] = {"the \xff", "the \xc3", "the \xed\xa0\x80", "the \xc0\x80",
                               "the \xf4\x90\x80\x80"};
    for (size_t i = 0; i < WG_COUNT(bad); i++) {
        assert_fails(wg_tokenizer_encode(tokenizer, bad[i], -1, NULL, &list), WG_ERROR_FORMAT,
                     "not UTF-8 at byte 4");
        ck_assert_int_eq(list.count, 2);
    }
    wg_encode_options options = {.special_tokens = true};
    assert_fails(wg_tokenizer_encode(tokenizer, "[MASK] \xff", -1, &options, &list),
                 WG_ERROR_FORMAT, "not UTF-8 at byte 7");
    wg_token_list_free(&list);
}

TEST(a_null_tokenizer_passes_through) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(NULL, "x", -1, NULL, &list), -1);
    ck_assert_ptr_null(wg_tokenizer_decode(NULL, NULL, 0, NULL));
    ck_assert_ptr_null(wg_tokenizer_to_json(NULL));
    ck_assert_int_eq(wg_tokenizer_size(NULL), 0);
    ck_assert_int_eq(wg_tokenizer_special(NULL, WG_TOKEN_MASK), -1);
    wg_tokenizer_free(NULL);
}

/* ---- Decoding ---- */

TEST(decoding_joins_pieces_and_spaces_punctuation) {
    assert_decodes("the un ##aff ##able dog .", NULL, "the unaffable dog.");
    assert_decodes("\" the dog ' s , \" he said .", NULL, "\"the dog's,\" he said.");
    assert_decodes("don \u2019 t ( the - dog )", NULL, "don\u2019t (the-dog)");
    assert_decodes("", NULL, "");
}

/* Decodes tokens between spaces, at once and as a stream. */
static void assert_joins(const char *tokens, const char *expected) {
    const char *list[64] = {"[UNK]"};
    int32_t ids[64];
    int64_t count = 0, distinct = 1;
    char copy[512], streamed[512] = "";
    snprintf(copy, sizeof copy, "%s", tokens);
    for (char *token = strtok(copy, " "); token; token = strtok(NULL, " ")) {
        int64_t id = 0;
        while (id < distinct && strcmp(list[id], token) != 0)
            id++;
        list[id] = token;
        distinct += id == distinct;
        ids[count++] = (int32_t)id;
    }
    wg_tokenizer *tokenizer = owned(wg__wordpiece_new(distinct, list, NULL));
    ck_assert_str_eq(text_of_ids(tokenizer, count, ids, NULL), expected);
    wg_decode_stream *stream = owned(wg_decode_stream_new(tokenizer, NULL));
    for (int64_t i = 0; i < count; i++)
        strcat(streamed, wg_decode_stream_next(stream, ids[i], NULL));
    ck_assert_str_eq(streamed, expected);
}

TEST(decoding_puts_no_space_between_chinese_and_japanese_characters) {
    static const char *const cases[][2] = {
        {"富 士 家 族 。 終", "富士家族。終"},
        {"田 の カ ##ナ を 食", "田のカナを食"},
        {"「 好 」 , 他 说 ！", "「好」, 他说！"},
        {"他 说 ： “ 好 … … ” 说", "他说：“好……”说"},
        /* Latin words stay apart. */
        {"由 nh ##k 播", "由 nhk 播"},
        {"在 2016 年 ， ok ！ yes", "在 2016 年，ok！yes"},
        {"a — b “ c ” d", "a—b “c” d"},
        {"北 [UNK] 京", "北 [UNK] 京"},
        {"안녕 세계", "안녕 세계"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_joins(cases[i][0], cases[i][1]);
}

TEST(decoding_can_skip_specials_and_keep_plain_spaces) {
    const char *tokens = "[CLS] the [MASK] . [SEP] [PAD]";
    assert_decodes(tokens, NULL, "[CLS] the [MASK]. [SEP] [PAD]");
    assert_decodes(tokens, &(wg_decode_options){.skip_special = true}, "the.");
    assert_decodes("the un ##aff .", &(wg_decode_options){.plain = true}, "the unaff .");
}

TEST(decoding_an_id_outside_the_vocabulary_is_an_error) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    assert_fails(wg_tokenizer_decode(tokenizer, (int32_t[]){5, 1000}, 2, NULL), WG_ERROR_INDEX,
                 "id 1000 is outside");
    assert_fails(wg_tokenizer_decode(tokenizer, (int32_t[]){-1}, 1, NULL), WG_ERROR_INDEX, "id -1");
}

/* ---- Vocabulary files ---- */

TEST(a_bad_vocabulary_file_is_refused_with_its_reason) {
    static const struct {
        const char *bytes;
        size_t length;
        const char *message;
    } cases[] = {
        {"", 0, "[UNK]"},
        {"[PAD]\nthe\n", 10, "[UNK]"},
        {"[UNK]\nthe\na\nthe\n", 16, "vocab.txt: line 4 is \"the\" as 2 is"},
        {"[UNK]\n\nthe\n", 11, "vocab.txt: line 2 is empty"},
        {"[UNK]\nth\xe9\n", 10, "line 2"},
        {"[UNK]\nt\0e\n", 10, "NUL"},
    };
    const char *path = in_scratch("vocab.txt");
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        write_file(path, cases[i].bytes, cases[i].length);
        assert_fails(wg__wordpiece_load(path, NULL), WG_ERROR_FORMAT, cases[i].message);
    }
    assert_fails(wg__wordpiece_load("no/such/vocab.txt", NULL), WG_ERROR_NOT_FOUND,
                 "no/such/vocab.txt");
    assert_fails(wg__wordpiece_load(scratch(), NULL), WG_ERROR_IO, "cannot read");
}

TEST(a_vocabulary_file_may_have_windows_lines_and_no_last_newline) {
    const char *path = write_text("vocab.txt", "[UNK]\r\nthe\r\ndog");
    wg_tokenizer *tokenizer = owned(wg__wordpiece_load(path, NULL));
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 3);
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 2), "dog");
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "the"), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_MASK), -1);
    ck_assert(!wg__tokenizer_is_special(tokenizer, -1));
}

/* What huggingface/transformers writes beside a vocab.txt. */
TEST(settings_beside_a_vocabulary_are_followed_or_refused) {
    static const struct {
        const char *settings, *tokens, *message;
    } cases[] = {
        {"{\"do_lower_case\": true}", "ich mochte the", NULL},
        {"{\"do_lower_case\": false}", "[UNK] m\u00f6chte [UNK]", NULL},
        {"{\"strip_accents\": true, \"tokenize_chinese_chars\": true, \"never_split\": []}",
         "ich mochte the", NULL},
        {"{\"strip_accents\": null, \"model_max_length\": 512}", "ich mochte the", NULL},
        {"{\"do_lower_case\": false, \"strip_accents\": false}", "[UNK] m\u00f6chte [UNK]", NULL},
        {"{\"strip_accents\": false}", NULL, "\"strip_accents\" is false; only true"},
        {"{\"do_lower_case\": false, \"strip_accents\": true}", NULL,
         "\"strip_accents\" is true; only false"},
        {"{\"tokenize_chinese_chars\": false}", NULL, "\"tokenize_chinese_chars\" is false"},
        {"{\"do_basic_tokenize\": false}", NULL, "\"do_basic_tokenize\" is false"},
        {"{\"never_split\": [\"covid-19\"]}", NULL, "\"never_split\" is [\"covid-19\"]"},
        {"{\"add_eos_token\": true}", NULL, "\"add_eos_token\" is true"},
        {"{\"added_tokens_decoder\": {\"0\": {\"content\": \"[UNK]\", \"special\": true}}}",
         "ich mochte the", NULL},
        {"{\"added_tokens_decoder\": {\"5\": {\"content\": \"covid-19\", \"special\": false}}}",
         NULL, "the token \"covid-19\" (5)"},
    };
    const char *const ways[] = {write_text("vocab.txt", "[UNK]\nich\nmochte\nm\u00f6chte\nthe\n"),
                                scratch()};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        write_text("tokenizer_config.json", cases[i].settings);
        for (int way = 0; way < 2; way++) {
            wg_tokenizer *tokenizer = owned(wg_tokenizer_load(ways[way]));
            ck_assert_msg(!tokenizer == !cases[i].tokens, "%s of %s", cases[i].settings, ways[way]);
            if (tokenizer)
                ck_assert_str_eq(tokens_of(tokenizer, "Ich m\u00f6chte The", NULL),
                                 cases[i].tokens);
            else
                assert_error(WG_ERROR_FORMAT, cases[i].message);
        }
    }
}

TEST(a_tokenizer_is_read_back_the_same_from_each_of_its_files) {
    wg_tokenizer *tokenizer = few_tokens(NULL),
                 *cased =
                     few_tokens(&(wg_wordpiece_options){.cased = true, .max_word_characters = 9});
    const char *path = in_scratch("vocab.txt");
    ck_assert_int_eq(wg__wordpiece_save(tokenizer, path), 0);
    assert_same_tokenizer(tokenizer, owned(wg_tokenizer_load(path)));
    assert_fails(wg__wordpiece_save(tokenizer, "no/such/vocab.txt"), WG_ERROR_NOT_FOUND,
                 "no/such/vocab.txt");

    wg_tokenizer *again = owned(wg_tokenizer_from_json(json_of(cased)));
    ck_assert_str_eq(wg_tokenizer_kind(again), "wordpiece");
    assert_same_tokenizer(cased, again);
    ck_assert_str_eq(tokens_of(again, "The unaffablest", NULL), "The [UNK]");
    path = in_scratch("tokenizer.json");
    ck_assert_int_eq(wg_tokenizer_save(again, path), 0);
    assert_same_tokenizer(cased, owned(wg_tokenizer_load(path)));

    path = in_scratch("run.h5");
    for (int has = 1; has >= 0; has--) { /* a checkpoint, with a tokenizer and without one */
        wg_checkpoint *file = wg_checkpoint_create(path);
        ck_assert_int_eq(
            wg_checkpoint_put_text(file, has ? "/tokenizer" : "/config", json_of(cased)), 0);
        ck_assert_int_eq(wg_checkpoint_commit(file), 0);
        if (has)
            assert_same_tokenizer(cased, owned(wg_tokenizer_load(path)));
    }
    assert_fails(wg_tokenizer_load(path), WG_ERROR_NOT_FOUND, "/tokenizer");
}

TEST(bad_json_is_refused_with_its_reason) {
    const char *const cases[][2] = {
        {"{\"format\": \"weng", "not JSON"},
        {"[]", "not a tokenizer"},
        {"{\"format\": \"wengert-tokenizer\"}", "kind"},
        {"{\"format\":\"x\",\"kind\":\"wordpiece\",\"options\":{},\"vocabulary\":[]}", "format"},
        {"{\"format\":\"wengert-tokenizer\",\"kind\":\"abc\",\"options\":{},\"vocabulary\":[]}",
         "kind \"abc\""},
        {"{\"format\":\"wengert-tokenizer\",\"kind\":\"wordpiece\",\"options\":{\"lower_case\":"
         "true},\"vocabulary\":[\"[UNK]\",7]}",
         "entry 1"},
        {"{\"format\":\"wengert-tokenizer\",\"kind\":\"wordpiece\",\"options\":{},"
         "\"vocabulary\":[\"[UNK]\"]}",
         "lower_case"},
        {"{\"format\":\"wengert-tokenizer\",\"kind\":\"wordpiece\",\"options\":{\"lower_case\":"
         "true},\"vocabulary\":{}}",
         "list"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(wg_tokenizer_from_json(cases[i][0]), WG_ERROR_FORMAT, cases[i][1]);
}
