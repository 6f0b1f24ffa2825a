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
    return wg__wordpiece_new(WG_COUNT(few), few, options);
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
    char *text = wg_tokenizer_decode(tokenizer, list.ids, list.count, options);
    ck_assert_str_eq(text, expected);
    wg_text_free(text);
    wg_token_list_free(&list);
    wg_tokenizer_free(tokenizer);
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

START_TEST(hostile_texts_give_the_published_ids) {
    json_t *root = load_fixture();
    size_t count;
    const char **tokens = fixture_tokens(root, &count);
    wg_tokenizer *uncased = wg__wordpiece_new((int64_t)count, tokens, NULL);
    wg_tokenizer *cased =
        wg__wordpiece_new((int64_t)count, tokens, &(wg_wordpiece_options){.cased = true});
    assert_no_error();
    const json_t *cases = json_object_get(root, "cases"), *one;
    ck_assert_uint_gt(json_array_size(cases), 20);
    size_t i;
    json_array_foreach((json_t *)cases, i, one) {
        assert_case(uncased, one, "uncased");
        assert_case(cased, one, "cased");
    }
    wg_tokenizer_free(uncased);
    wg_tokenizer_free(cased);
    free(tokens);
    json_decref(root);
}
END_TEST

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

START_TEST(real_text_gives_the_published_ids) {
    const char *vocabulary = real_data("tokenizers/bert/vocab.txt");
    if (!vocabulary)
        return;
    wg_tokenizer *uncased = wg__wordpiece_load(vocabulary, NULL);
    wg_tokenizer *cased = wg__wordpiece_load(vocabulary, &(wg_wordpiece_options){.cased = true});
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
    wg_tokenizer_free(uncased);
    wg_tokenizer_free(cased);
}
END_TEST

/* ---- Encoding ---- */

START_TEST(special_tokens_in_text_are_read_only_when_asked) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    const char *text = "The [MASK]dog[SEP]. [mask]";
    ck_assert_str_eq(tokens_of(tokenizer, text, NULL), "the [ mask ] dog [ [UNK] ] . [ mask ]");
    wg_encode_options options = {.special_tokens = true};
    ck_assert_str_eq(tokens_of(tokenizer, text, &options), "the [MASK] dog [SEP] . [ mask ]");
    ck_assert_str_eq(tokens_of(tokenizer, "[MASK", &options), "[ mask");
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_cased_tokenizer_keeps_capitals_and_accents) {
    wg_tokenizer *uncased = few_tokens(NULL);
    wg_tokenizer *cased = few_tokens(&(wg_wordpiece_options){.cased = true});
    ck_assert_str_eq(tokens_of(uncased, "The Caf\u00e9", NULL), "the cafe");
    ck_assert_str_eq(tokens_of(cased, "The caf\u00e9", NULL), "The caf\u00e9");
    wg_tokenizer_free(uncased);
    wg_tokenizer_free(cased);
}
END_TEST

START_TEST(a_word_beyond_the_limit_is_unknown) {
    wg_tokenizer *tokenizer = few_tokens(&(wg_wordpiece_options){.max_word_characters = 9});
    ck_assert_str_eq(tokens_of(tokenizer, "unaffable", NULL), "un ##aff ##able");
    wg_tokenizer_free(tokenizer);
    tokenizer = few_tokens(&(wg_wordpiece_options){.max_word_characters = 8});
    ck_assert_str_eq(tokens_of(tokenizer, "unaffable", NULL), "[UNK]");
    wg_tokenizer_free(tokenizer);
    ck_assert_ptr_null(few_tokens(&(wg_wordpiece_options){.max_word_characters = -1}));
    assert_error(WG_ERROR_ARGUMENT, "max_word_characters is -1");
}
END_TEST

START_TEST(text_that_is_not_utf8_is_refused_and_leaves_the_list_alone) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "the dog", -1, NULL, &list), 0);
    const char *const bad[] = {"the \xff", "the \xc3", "the \xed\xa0\x80", "the \xc0\x80",
                               "the \xf4\x90\x80\x80"};
    for (size_t i = 0; i < WG_COUNT(bad); i++) {
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, bad[i], -1, NULL, &list), -1);
        assert_error(WG_ERROR_FORMAT, "not UTF-8 at byte 4");
        ck_assert_int_eq(list.count, 2);
    }
    wg_encode_options options = {.special_tokens = true};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "[MASK] \xff", -1, &options, &list), -1);
    assert_error(WG_ERROR_FORMAT, "not UTF-8 at byte 7");
    wg_token_list_free(&list);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(a_null_tokenizer_passes_through) {
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(NULL, "x", -1, NULL, &list), -1);
    ck_assert_ptr_null(wg_tokenizer_decode(NULL, NULL, 0, NULL));
    ck_assert_ptr_null(wg_tokenizer_to_json(NULL));
    ck_assert_int_eq(wg_tokenizer_size(NULL), 0);
    ck_assert_int_eq(wg_tokenizer_special(NULL, WG_TOKEN_MASK), -1);
    wg_tokenizer_free(NULL);
}
END_TEST

/* ---- Decoding ---- */

START_TEST(decoding_joins_pieces_and_spaces_punctuation) {
    assert_decodes("the un ##aff ##able dog .", NULL, "the unaffable dog.");
    assert_decodes("\" the dog ' s , \" he said .", NULL, "\"the dog's,\" he said.");
    assert_decodes("don \u2019 t ( the - dog )", NULL, "don\u2019t (the-dog)");
    assert_decodes("", NULL, "");
}
END_TEST

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
    wg_tokenizer *tokenizer = wg__wordpiece_new(distinct, list, NULL);
    char *text = wg_tokenizer_decode(tokenizer, ids, count, NULL);
    ck_assert_str_eq(text, expected);
    wg_decode_stream *stream = wg_decode_stream_new(tokenizer, NULL);
    for (int64_t i = 0; i < count; i++)
        strcat(streamed, wg_decode_stream_next(stream, ids[i], NULL));
    ck_assert_str_eq(streamed, expected);
    wg_decode_stream_free(stream);
    wg_text_free(text);
    wg_tokenizer_free(tokenizer);
}

START_TEST(decoding_puts_no_space_between_chinese_and_japanese_characters) {
    assert_joins("富 士 家 族 。 終", "富士家族。終");
    assert_joins("田 の カ ##ナ を 食", "田のカナを食");
    assert_joins("「 好 」 , 他 说 ！", "「好」, 他说！");
    assert_joins("他 说 ： “ 好 … … ” 说", "他说：“好……”说");
}
END_TEST

START_TEST(decoding_spaces_latin_words_from_chinese_ones) {
    assert_joins("由 nh ##k 播", "由 nhk 播");
    assert_joins("在 2016 年 ， ok ！ yes", "在 2016 年，ok！yes");
    assert_joins("a — b “ c ” d", "a—b “c” d");
    assert_joins("北 [UNK] 京", "北 [UNK] 京");
    assert_joins("안녕 세계", "안녕 세계");
}
END_TEST

START_TEST(decoding_can_skip_specials_and_keep_plain_spaces) {
    const char *tokens = "[CLS] the [MASK] . [SEP] [PAD]";
    assert_decodes(tokens, NULL, "[CLS] the [MASK]. [SEP] [PAD]");
    assert_decodes(tokens, &(wg_decode_options){.skip_special = true}, "the.");
    assert_decodes("the un ##aff .", &(wg_decode_options){.plain = true}, "the unaff .");
}
END_TEST

START_TEST(decoding_an_id_outside_the_vocabulary_is_an_error) {
    wg_tokenizer *tokenizer = few_tokens(NULL);
    ck_assert_ptr_null(wg_tokenizer_decode(tokenizer, (int32_t[]){5, 1000}, 2, NULL));
    assert_error(WG_ERROR_INDEX, "id 1000 is outside");
    ck_assert_ptr_null(wg_tokenizer_decode(tokenizer, (int32_t[]){-1}, 1, NULL));
    assert_error(WG_ERROR_INDEX, "id -1");
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Vocabulary files ---- */

static void assert_bad_vocabulary(const char *bytes, size_t length, const char *message) {
    const char *path = in_scratch("vocab.txt");
    write_file(path, bytes, length);
    ck_assert_ptr_null(wg__wordpiece_load(path, NULL));
    assert_error(WG_ERROR_FORMAT, message);
}

START_TEST(a_bad_vocabulary_file_is_refused_with_its_reason) {
    assert_bad_vocabulary("", 0, "[UNK]");
    assert_bad_vocabulary("[PAD]\nthe\n", 10, "[UNK]");
    assert_bad_vocabulary("[UNK]\nthe\na\nthe\n", 16, "vocab.txt: line 4 is \"the\" as 2 is");
    assert_bad_vocabulary("[UNK]\n\nthe\n", 11, "vocab.txt: line 2 is empty");
    assert_bad_vocabulary("[UNK]\nth\xe9\n", 10, "line 2");
    assert_bad_vocabulary("[UNK]\nt\0e\n", 10, "NUL");
    ck_assert_ptr_null(wg__wordpiece_load("no/such/vocab.txt", NULL));
    assert_error(WG_ERROR_NOT_FOUND, "no/such/vocab.txt");
    ck_assert_ptr_null(wg__wordpiece_load(scratch(), NULL));
    assert_error(WG_ERROR_IO, "cannot read");
}
END_TEST

START_TEST(a_vocabulary_file_may_have_windows_lines_and_no_last_newline) {
    const char *path = write_text("vocab.txt", "[UNK]\r\nthe\r\ndog");
    wg_tokenizer *tokenizer = wg__wordpiece_load(path, NULL);
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 3);
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 2), "dog");
    ck_assert_int_eq(wg_tokenizer_id(tokenizer, "the"), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_MASK), -1);
    ck_assert(!wg__tokenizer_is_special(tokenizer, -1));
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* What huggingface/transformers writes beside a vocab.txt. */
START_TEST(settings_beside_a_vocabulary_are_followed_or_refused) {
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
    const char *path = write_text("vocab.txt", "[UNK]\nich\nmochte\nm\u00f6chte\nthe\n");
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        write_text("tokenizer_config.json", cases[i].settings);
        wg_tokenizer *file = wg_tokenizer_load(path);
        ck_assert_msg(!file == !cases[i].tokens, "%s", cases[i].settings);
        if (!file)
            assert_error(WG_ERROR_FORMAT, cases[i].message);
        wg_tokenizer *folder = wg_tokenizer_load(scratch());
        ck_assert_msg(!folder == !cases[i].tokens, "%s in a folder", cases[i].settings);
        if (!folder)
            assert_error(WG_ERROR_FORMAT, cases[i].message);
        else
            ck_assert_str_eq(tokens_of(file, "Ich m\u00f6chte The", NULL), cases[i].tokens);
        wg_tokenizer_free(file);
        wg_tokenizer_free(folder);
    }
}
END_TEST

START_TEST(a_saved_vocabulary_is_read_back_the_same) {
    char path[512];
    snprintf(path, sizeof path, "%s/vocab.txt", scratch());
    wg_tokenizer *tokenizer = few_tokens(NULL);
    ck_assert_int_eq(wg__wordpiece_save(tokenizer, path), 0);
    wg_tokenizer *again = wg_tokenizer_load(path);
    assert_same_tokenizer(tokenizer, again);
    ck_assert_int_eq(wg__wordpiece_save(tokenizer, "no/such/vocab.txt"), -1);
    assert_error(WG_ERROR_NOT_FOUND, "no/such/vocab.txt");
    wg_tokenizer_free(tokenizer);
    wg_tokenizer_free(again);
}
END_TEST

START_TEST(a_tokenizer_survives_json) {
    wg_tokenizer *tokenizer =
        few_tokens(&(wg_wordpiece_options){.cased = true, .max_word_characters = 9});
    char *json = wg_tokenizer_to_json(tokenizer);
    wg_tokenizer *again = wg_tokenizer_from_json(json);
    assert_no_error();
    ck_assert_str_eq(wg_tokenizer_kind(again), "wordpiece");
    assert_same_tokenizer(tokenizer, again);
    ck_assert_str_eq(tokens_of(again, "The unaffablest", NULL), "The [UNK]");
    char path[512];
    snprintf(path, sizeof path, "%s/tokenizer.json", scratch());
    ck_assert_int_eq(wg_tokenizer_save(again, path), 0);
    wg_tokenizer *loaded = wg_tokenizer_load(path);
    assert_same_tokenizer(tokenizer, loaded);
    wg_text_free(json);
    wg_tokenizer_free(tokenizer);
    wg_tokenizer_free(again);
    wg_tokenizer_free(loaded);
}
END_TEST

START_TEST(a_tokenizer_is_read_from_a_checkpoint) {
    char path[512];
    snprintf(path, sizeof path, "%s/run.h5", scratch());
    wg_tokenizer *tokenizer = few_tokens(&(wg_wordpiece_options){.cased = true});
    char *json = wg_tokenizer_to_json(tokenizer);
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/tokenizer", json), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_tokenizer *again = wg_tokenizer_load(path);
    assert_no_error();
    assert_same_tokenizer(tokenizer, again);
    wg_tokenizer_free(again);
    file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/config", "{}"), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    ck_assert_ptr_null(wg_tokenizer_load(path));
    assert_error(WG_ERROR_NOT_FOUND, "/tokenizer");
    wg_text_free(json);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(bad_json_is_refused_with_its_reason) {
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
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        ck_assert_ptr_null(wg_tokenizer_from_json(cases[i][0]));
        assert_error(WG_ERROR_FORMAT, cases[i][1]);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        hostile_texts_give_the_published_ids,
        real_text_gives_the_published_ids,
        special_tokens_in_text_are_read_only_when_asked,
        a_cased_tokenizer_keeps_capitals_and_accents,
        a_word_beyond_the_limit_is_unknown,
        text_that_is_not_utf8_is_refused_and_leaves_the_list_alone,
        a_null_tokenizer_passes_through,
        decoding_joins_pieces_and_spaces_punctuation,
        decoding_puts_no_space_between_chinese_and_japanese_characters,
        decoding_spaces_latin_words_from_chinese_ones,
        decoding_can_skip_specials_and_keep_plain_spaces,
        decoding_an_id_outside_the_vocabulary_is_an_error,
        a_bad_vocabulary_file_is_refused_with_its_reason,
        a_vocabulary_file_may_have_windows_lines_and_no_last_newline,
        settings_beside_a_vocabulary_are_followed_or_refused,
        a_saved_vocabulary_is_read_back_the_same,
        a_tokenizer_survives_json,
        a_tokenizer_is_read_from_a_checkpoint,
        bad_json_is_refused_with_its_reason,
    };
    add_suite("wordpiece", tests);
}
