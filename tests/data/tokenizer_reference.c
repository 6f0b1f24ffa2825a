/* Every tokenizer against the published program of its kind: hostile texts, and the real texts on
 * this machine. tests/fixtures/tokenizers.py made the ids. A test runs once for each tokenizer;
 * CK_RUN_CASE=gpt2 picks one. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/text_file.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"

typedef struct thing {
    const char *name;
    const char *path; /* its fixture; NULL: it is in the real data */
    const char *data;
    bool lossless; /* decoding restores the text exactly */
    bool special;  /* special tokens are read in texts */
    int64_t lines; /* longest line of real text in bytes; 0: a file is one text */
} thing;

static const thing things[] = {
    {"bpe", "tokenizers/bpe", NULL, true, false, 0},
    {"glm", NULL, "tokenizers/glm_chinese/cog-pretrain.model", false, false, 0},
    {"gpt2", NULL, "tokenizers/gpt2", true, false, 0},
    {"hf_bert", "tokenizers/hf_bert.tokenizer.json", NULL, false, true, 0},
    {"hf_bert_cased", "tokenizers/hf_bert_cased.tokenizer.json", NULL, false, true, 0},
    {"hf_gpt2", "tokenizers/hf_gpt2.tokenizer.json", NULL, true, true, 0},
    {"hf_llama", "tokenizers/hf_llama.tokenizer.json", NULL, false, true, 0},
    {"hf_llama3", "tokenizers/hf_llama3.tokenizer.json", NULL, false, true, 0},
    {"hf_llama_first", "tokenizers/hf_llama_first.tokenizer.json", NULL, false, true, 0},
    {"hf_t5", "tokenizers/hf_t5.tokenizer.json", NULL, false, true, 0},
    {"llama2c", NULL, "stories260K/tok512.bin", false, false, 400},
    {"sp_across", "tokenizers/sp_across.model", NULL, false, false, 0},
    {"sp_bpe", "tokenizers/sp_bpe.model", NULL, false, false, 0},
    {"sp_bpe_rules", "tokenizers/sp_bpe_rules.model", NULL, false, false, 0},
    {"sp_suffix", "tokenizers/sp_suffix.model", NULL, false, false, 0},
    {"sp_unigram", "tokenizers/sp_unigram.model", NULL, false, false, 0},
};

static const char *name_of(int i) {
    return things[i].name;
}

/* NULL if it is not on this machine. */
static wg_tokenizer *load(const thing *thing) {
    const char *path = thing->path ? fixture(thing->path) : real_data(thing->data);
    wg_tokenizer *tokenizer = path ? wg_tokenizer_load(path) : NULL;
    assert_no_error();
    return tokenizer;
}

static json_t *load_json(const char *format, const char *name) {
    char path[256];
    snprintf(path, sizeof path, format, name);
    json_error_t error;
    json_t *root = json_load_file(fixture(path), JSON_ALLOW_NUL, &error);
    ck_assert_msg(root != NULL, "%s: %s", path, error.text);
    return root;
}

static void encode(const thing *thing, const wg_tokenizer *tokenizer, const char *text,
                   int64_t length, wg_token_list *list) {
    wg_encode_options options = {.special_tokens = thing->special};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, &options, list), 0);
}

static void assert_ids(const wg_tokenizer *tokenizer, size_t text, const wg_token_list *list,
                       const json_t *ids) {
    for (size_t i = 0; i < json_array_size(ids) && (int64_t)i < list->count; i++) {
        int32_t wanted = (int32_t)json_integer_value(json_array_get(ids, i));
        ck_assert_msg(list->ids[i] == wanted, "text %zu, token %zu: %d \"%s\", wanted %d \"%s\"",
                      text, i, list->ids[i], wg_tokenizer_token(tokenizer, list->ids[i]), wanted,
                      wg_tokenizer_token(tokenizer, wanted));
    }
    ck_assert_msg(list->count == (int64_t)json_array_size(ids), "text %zu: %d tokens, wanted %d",
                  text, (int)list->count, (int)json_array_size(ids));
}

START_TEST(hostile_texts_give_the_published_ids) {
    const thing *thing = &things[_i];
    wg_tokenizer *tokenizer = load(thing);
    if (!tokenizer)
        return;
    json_t *texts = load_json("tokenizers/texts.json", ""), *text;
    json_t *ids = load_json("tokenizers/%s.json", thing->name);
    ck_assert_uint_gt(json_array_size(texts), 40);
    ck_assert_uint_eq(json_array_size(ids), json_array_size(texts));
    size_t i;
    json_array_foreach(texts, i, text) {
        wg_token_list list = {0};
        encode(thing, tokenizer, json_string_value(text), (int64_t)json_string_length(text), &list);
        if (!json_is_null(json_array_get(ids, i))) /* the reference cannot read this text */
            assert_ids(tokenizer, i, &list, json_array_get(ids, i));
        wg_token_list_free(&list);
    }
    json_decref(texts);
    json_decref(ids);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* Where the reference's decoding differs from the text, ours has to equal it. */
START_TEST(decoding_gives_the_published_text) {
    const thing *thing = &things[_i];
    char path[256];
    snprintf(path, sizeof path, "tokenizers/%s_decoded.json", thing->name);
    FILE *file = fopen(fixture(path), "r");
    wg_tokenizer *tokenizer = file ? load(thing) : NULL;
    if (file)
        fclose(file);
    if (!tokenizer)
        return;
    json_t *texts = load_json("tokenizers/texts.json", ""), *text;
    json_t *decoded = load_json("tokenizers/%s_decoded.json", thing->name);
    size_t i;
    json_array_foreach(texts, i, text) {
        wg_token_list list = {0};
        encode(thing, tokenizer, json_string_value(text), (int64_t)json_string_length(text), &list);
        char *ours = wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL);
        /* Up to the first NUL, if there is one. */
        ck_assert_str_eq(ours, json_string_value(json_array_get(decoded, i)));
        wg_text_free(ours);
        wg_token_list_free(&list);
    }
    json_decref(texts);
    json_decref(decoded);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* The output of decoding by a stream, concatenated. */
static char *decode_by_stream(const wg_tokenizer *tokenizer, const wg_token_list *list,
                              int64_t *total) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    wg_decode_stream *stream = wg_decode_stream_new(tokenizer, NULL);
    for (int64_t i = 0; i <= list->count; i++) {
        int64_t length;
        const char *part = i < list->count ? wg_decode_stream_next(stream, list->ids[i], &length)
                                           : wg_decode_stream_end(stream, &length);
        ck_assert_ptr_nonnull(part);
        ck_assert_int_eq(wg__utf8_invalid(part, length), -1);
        fwrite(part, 1, (size_t)length, out);
    }
    wg_decode_stream_free(stream);
    fclose(out);
    *total = (int64_t)size;
    return text;
}

START_TEST(a_stream_decodes_as_decoding_at_once_does) {
    const thing *thing = &things[_i];
    wg_tokenizer *tokenizer = load(thing);
    if (!tokenizer)
        return;
    json_t *texts = load_json("tokenizers/texts.json", ""), *text;
    size_t i;
    json_array_foreach(texts, i, text) {
        wg_token_list list = {0};
        encode(thing, tokenizer, json_string_value(text), (int64_t)json_string_length(text), &list);
        int64_t length;
        char *streamed = decode_by_stream(tokenizer, &list, &length);
        char *decoded = wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL);
        ck_assert_str_eq(decoded, streamed);
        if (thing->lossless)
            ck_assert_msg(length == (int64_t)json_string_length(text) &&
                              memcmp(streamed, json_string_value(text), (size_t)length) == 0,
                          "text %zu: \"%s\" came back as \"%s\"", i, json_string_value(text),
                          streamed);
        free(streamed);
        wg_text_free(decoded);
        wg_token_list_free(&list);
    }
    json_decref(texts);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(our_json_holds_all_of_it) {
    const thing *thing = &things[_i];
    wg_tokenizer *tokenizer = load(thing);
    if (!tokenizer)
        return;
    char *json = wg_tokenizer_to_json(tokenizer);
    wg_tokenizer *again = wg_tokenizer_from_json(json);
    assert_no_error();
    char *json_again = wg_tokenizer_to_json(again);
    ck_assert_msg(strcmp(json, json_again) == 0, "JSON of JSON differs");
    ck_assert_str_eq(wg_tokenizer_kind(again), wg_tokenizer_kind(tokenizer));
    json_t *texts = load_json("tokenizers/texts.json", ""), *text;
    size_t i;
    json_array_foreach(texts, i, text) {
        wg_token_list list = {0}, list_again = {0};
        wg_encode_options options = {.special_tokens = true};
        const char *bytes = json_string_value(text);
        int64_t length = (int64_t)json_string_length(text);
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, bytes, length, &options, &list), 0);
        ck_assert_int_eq(wg_tokenizer_encode(again, bytes, length, &options, &list_again), 0);
        ck_assert_int_eq(list.count, list_again.count);
        if (list.count > 0)
            ck_assert_mem_eq(list.ids, list_again.ids, (size_t)list.count * sizeof *list.ids);
        wg_token_list_free(&list);
        wg_token_list_free(&list_again);
    }
    json_decref(texts);
    wg_text_free(json);
    wg_text_free(json_again);
    wg_tokenizer_free(again);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Real text ---- */

static uint64_t hash_ids(const wg_token_list *list) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < list->count; i++)
        hash = (hash ^ (uint32_t)list->ids[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Each line alone, without its end, if it is at most `limit` bytes. */
static void encode_lines(const thing *thing, const wg_tokenizer *tokenizer, const char *text,
                         int64_t length, wg_token_list *list) {
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        if (stop - text <= thing->lines)
            encode(thing, tokenizer, text, stop - text, list);
        text = stop + 1;
    }
}

static void assert_file(const thing *thing, const wg_tokenizer *tokenizer, const char *path,
                        int64_t count, uint64_t hash) {
    const char *full = real_data(path);
    if (!full)
        return;
    int64_t length;
    char *text = wg__text_file_read(full, &length, "test");
    wg_token_list list = {0};
    if (thing->lines)
        encode_lines(thing, tokenizer, text, length, &list);
    else
        encode(thing, tokenizer, text, length, &list);
    ck_assert_msg(list.count == count && hash_ids(&list) == hash,
                  "%s: %" PRId64 " tokens, hash %016" PRIx64 "; wanted %" PRId64 ", %016" PRIx64,
                  path, list.count, hash_ids(&list), count, hash);
    if (thing->lossless && !thing->lines) {
        char *decoded = wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL);
        ck_assert_msg(strcmp(decoded, text) == 0, "%s does not come back", path);
        wg_text_free(decoded);
    }
    wg_token_list_free(&list);
    wg__free(text);
}

START_TEST(real_text_gives_the_published_ids) {
    const thing *thing = &things[_i];
    char path[256];
    snprintf(path, sizeof path, "tokenizers/corpora_%s.txt", thing->name);
    FILE *list = fopen(fixture(path), "r");
    wg_tokenizer *tokenizer = list && real_data("tinyshakespeare/input.txt") ? load(thing) : NULL;
    int64_t count;
    uint64_t hash;
    int files = 0;
    while (tokenizer && fscanf(list, "%" SCNd64 " %" SCNx64 " %255s", &count, &hash, path) == 3) {
        files++;
        assert_file(thing, tokenizer, path, count, hash);
    }
    ck_assert(!tokenizer || files > 10);
    if (list)
        fclose(list);
    wg_tokenizer_free(tokenizer);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        hostile_texts_give_the_published_ids,      decoding_gives_the_published_text,
        a_stream_decodes_as_decoding_at_once_does, our_json_holds_all_of_it,
        real_text_gives_the_published_ids,
    };
    add_suite_of_each("tokenizer_reference", tests, WG_COUNT(things), name_of);
}
