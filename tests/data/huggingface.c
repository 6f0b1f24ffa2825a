/* Hugging Face's tokenizer.json: what is refused, with the names in the messages.
 * tokenizer_reference.c compares ids with those of its own library. */
#include <jansson.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"

static json_t *load_fixture(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "tokenizers/%s.tokenizer.json", name);
    json_t *root = owned(json_load_file(fixture(path), 0, NULL));
    ck_assert_ptr_nonnull(root);
    return root;
}

/* The fixture with one member replaced by that JSON: `part` is the path of an object of it, or
 * "". */
static void assert_refused(const char *name, const char *part, const char *key, const char *value,
                           const char *message) {
    json_t *root = load_fixture(name);
    json_t *object = *part ? json_object_get(root, part) : root;
    ck_assert_int_eq(json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL)), 0);
    assert_fails(wg__huggingface_read(root, "x"), WG_ERROR_FORMAT, message);
}

TEST(what_is_not_understood_is_refused_by_name) {
    assert_refused("hf_gpt2", "", "normalizer", "{\"type\": \"NFC\"}", "normalizer \"NFC\"");
    assert_refused("hf_gpt2", "", "pre_tokenizer", "{\"type\": \"Digits\"}",
                   "pre_tokenizer \"Digits\"");
    assert_refused("hf_gpt2", "", "decoder", "{\"type\": \"CTC\"}", "decoder \"CTC\"");
    assert_refused("hf_gpt2", "", "normalizer", "{\"type\": \"Prepend\", \"prepend\": \"\\u2581\"}",
                   "normalizer \"Sequence\"");
    assert_refused("hf_gpt2", "model", "dropout", "0.1", "dropout");
    assert_refused("hf_gpt2", "model", "end_of_word_suffix", "\"</w>\"", "end_of_word_suffix");
    assert_refused("hf_gpt2", "model", "type", "\"WordLevel\"", "\"WordLevel\"");
    assert_refused("hf_llama", "model", "unk_token", "null", "without an unknown token");
    assert_refused("hf_llama", "", "pre_tokenizer",
                   "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": "
                   "\"Isolated\"}",
                   "\"Split\"");
    assert_refused("hf_llama3", "", "pre_tokenizer",
                   "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\"}, \"behavior\": "
                   "\"Removed\"}",
                   "\"Split\"");
    assert_refused("hf_t5", "", "pre_tokenizer",
                   "{\"type\": \"Metaspace\", \"replacement\": \"_\"}", "U+2581");
    assert_refused("hf_t5", "model", "unk_id", "100000", "without an unknown token");
    assert_refused("hf_t5", "", "normalizer",
                   "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"!!!!\"}", "base64");
    assert_refused("hf_bert", "model", "unk_token", "\"<unk>\"", "\"[UNK]\"");
    assert_refused("hf_bert", "", "normalizer",
                   "{\"type\": \"BertNormalizer\", \"lowercase\": true, \"strip_accents\": false}",
                   "accents");
    assert_refused("hf_bert", "", "pre_tokenizer", "null", "without BertPreTokenizer");
}

TEST(a_key_that_is_not_known_is_refused_by_name) {
    assert_refused("hf_bert", "", "something_new", "1", "\"something_new\" is not known");
    assert_refused("hf_bert", "model", "something_new", "1", "\"something_new\" of the model");
    assert_refused("hf_bert", "normalizer", "something_new", "1",
                   "\"something_new\" of the normalizer \"BertNormalizer\"");
    assert_refused("hf_bert", "pre_tokenizer", "something_new", "1",
                   "\"something_new\" of the pre_tokenizer \"BertPreTokenizer\"");
    assert_refused("hf_bert", "", "added_tokens",
                   "[{\"id\": 0, \"content\": \"[PAD]\", \"special\": true, \"something_new\": 1}]",
                   "\"something_new\" of the added token \"[PAD]\"");
}

/* The fixture with its added tokens "normalized" or not, and one more, which is not special. */
static json_t *with_added(const char *name, bool normalized, bool special) {
    json_t *root = load_fixture(name), *tokens = json_object_get(root, "added_tokens"), *token;
    size_t i;
    json_array_foreach(tokens, i, token)
        json_object_set_new(token, "normalized", json_boolean(normalized));
    if (!special)
        json_object_set_new(json_array_get(tokens, json_array_size(tokens) - 1), "special",
                            json_false());
    return root;
}

/* What is normalized is found in the normalized text, so that "Covid-19" is the token "COVID-19" of
 * a lower-casing tokenizer. */
TEST(an_added_token_that_is_normalized_is_refused_where_that_matters) {
    static const wg_encode_options special = {.special_tokens = true};
    static const struct {
        const char *fixture;
        bool normalized, special, loads, finds;
    } cases[] = {
        {"hf_bert", false, true, true, true},   {"hf_bert", false, false, true, true},
        {"hf_bert", true, false, false, false}, {"hf_bert", true, true, true, false},
        {"hf_gpt2", true, true, true, true}, /* nothing is normalized */
        {"hf_gpt2", true, false, true, true},   {"hf_llama", true, true, true, false},
        {"hf_t5", true, false, false, false},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        json_t *root = with_added(cases[i].fixture, cases[i].normalized, cases[i].special);
        wg_tokenizer *tokenizer = owned(wg__huggingface_read(root, "x"));
        ck_assert_msg(!tokenizer == !cases[i].loads, "case %zu", i);
        if (!tokenizer)
            assert_error(WG_ERROR_FORMAT, "\"normalized\" of the added token");
        const char *json = owned(wg_tokenizer_to_json(tokenizer));
        wg_tokenizer *kept = json ? owned(wg_tokenizer_from_json(json)) : NULL;
        wg_token_list list = {0};
        ck_assert_int_eq(kept ? wg_tokenizer_encode(kept, "the", -1, NULL, &list) : 0, 0);
        if (kept && wg_tokenizer_encode(kept, "the", -1, &special, &list) < 0) {
            ck_assert(!cases[i].finds);
            assert_error(WG_ERROR_FORMAT, "is \"normalized\" in its tokenizer.json");
        } else
            ck_assert(!kept || cases[i].finds);
        wg_token_list_free(&list);
    }
}

/* tokenizer_config.json beside a tokenizer.json: the classes of huggingface/transformers follow the
 * former where the two differ. */
TEST(settings_beside_a_tokenizer_are_followed_or_refused) {
    static const struct {
        const char *fixture, *settings, *message;
        bool begins;
    } cases[] = {
        {"hf_llama", "{}", NULL, true},
        {"hf_llama", "{\"add_bos_token\": true, \"add_eos_token\": false}", NULL, true},
        {"hf_llama", "{\"add_bos_token\": false}", NULL, false},
        {"hf_llama", "{\"add_eos_token\": true}", "\"add_eos_token\" is true", false},
        {"hf_llama", "{\"add_prefix_space\": true, \"sp_model_kwargs\": {}}", NULL, true},
        {"hf_llama", "{\"add_prefix_space\": false}", "\"add_prefix_space\" is false", false},
        {"hf_llama", "{\"sp_model_kwargs\": {\"enable_sampling\": true}}", "\"sp_model_kwargs\"",
         false},
        {"hf_gpt2", "{\"add_prefix_space\": false, \"add_bos_token\": false}", NULL, true},
        {"hf_gpt2", "{\"add_prefix_space\": true}", "\"add_prefix_space\" is true", false},
        {"hf_bert", "{\"do_lower_case\": true, \"strip_accents\": null}", NULL, false},
        {"hf_bert", "{\"do_lower_case\": false}", "\"do_lower_case\" is false; only true", false},
        {"hf_bert_cased", "{\"do_lower_case\": true}", "\"do_lower_case\" is true", false},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        json_t *root = load_fixture(cases[i].fixture);
        ck_assert_int_eq(json_dump_file(root, in_scratch("tokenizer.json"), 0), 0);
        write_text("tokenizer_config.json", cases[i].settings);
        wg_tokenizer *tokenizer = owned(wg_tokenizer_load(scratch()));
        ck_assert_msg(!tokenizer == !!cases[i].message, "%s", cases[i].settings);
        if (!tokenizer)
            assert_error(WG_ERROR_FORMAT, cases[i].message);
        ck_assert(cases[i].begins ==
                  (tokenizer && wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN) >= 0));
    }
}

TEST(a_vocabulary_that_contradicts_itself_is_refused) {
    assert_refused("hf_gpt2", "model", "vocab", "{}", "no vocabulary");
    assert_refused("hf_gpt2", "model", "vocab", "{\"a\": 1}", "id of \"a\"");
    assert_refused("hf_gpt2", "model", "merges", "[\"zz q\"]",
                   "merge 1 contains a text that is not a token");
    assert_refused("hf_gpt2", "model", "merges", "[3]", "merge 1 is not of two");
    assert_refused("hf_gpt2", "", "added_tokens", "[{\"id\": 5, \"content\": \"zz\"}]",
                   "is added as \"zz\"");
    assert_refused("hf_gpt2", "", "added_tokens", "[{\"id\": 99999, \"content\": \"zz\"}]",
                   "beyond the vocabulary");
    assert_refused("hf_gpt2", "", "added_tokens", "[{\"id\": -1, \"content\": \"zz\"}]",
                   "beyond the vocabulary");
    assert_refused("hf_gpt2", "", "added_tokens",
                   "[{\"id\": 600, \"content\": \"zz\", \"single_word\": true}]", "single_word");
    assert_refused("hf_t5", "model", "vocab", "[[\"a\"]]", "not a pair of text and score");
}

TEST(sequences_in_sequences_end_somewhere) {
    char nested[2048] = "";
    for (int i = 0; i < 20; i++)
        strcat(nested, "{\"type\": \"Sequence\", \"normalizers\": [");
    for (int i = 0; i < 20; i++)
        strcat(nested, "]}");
    assert_refused("hf_gpt2", "", "normalizer", nested, "so deep");
}

TEST(special_tokens_keep_their_meaning) {
    json_t *root = load_fixture("hf_llama3");
    wg_tokenizer *tokenizer = owned(wg__huggingface_read(root, "x"));
    assert_no_error();
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN)),
                     "<|begin_of_text|>");
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, wg_tokenizer_special(tokenizer, WG_TOKEN_END)),
                     "<|endoftext|>");
    int32_t added = wg_tokenizer_id(tokenizer, "[INST]");
    ck_assert(!wg__tokenizer_is_special(tokenizer, added));
    wg_token_list list = {0};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, "[INST]<|endoftext|>", -1, NULL, &list), 0);
    ck_assert_int_eq(list.ids[0], added);
    ck_assert_int_gt(list.count, 2);
    wg_token_list_free(&list);
}
