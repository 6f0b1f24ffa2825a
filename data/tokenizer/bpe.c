/* Byte-level byte-pair encoding: making a tokenizer, encoding, decoding. See bpe.h; bpe_files.c
 * reads and writes the published files. */
#include <string.h>

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/merges.h"
#include "tensor/internal.h"

/* ---- Making one ---- */

static int find_bytes(wg__bpe *bpe) {
    for (int byte = 0; byte < 256; byte++) {
        char letter[2];
        int64_t length = wg__byte_to_letter((unsigned char)byte, letter);
        int64_t id = wg__strings_find(&bpe->base.vocabulary, letter, length);
        if (id < 0)
            return wg_fail(WG_ERROR_FORMAT, "bpe",
                           "no token is \"%.*s\", which stands for the byte 0x%02x", (int)length,
                           letter, byte);
        bpe->bytes[byte] = (int32_t)id;
    }
    return 0;
}

static int64_t find_joined(const wg__strings *vocabulary, int32_t left, int32_t right) {
    const char *head = wg__strings_text(vocabulary, left);
    const char *tail = wg__strings_text(vocabulary, right);
    int64_t head_length = wg__strings_length(vocabulary, left);
    int64_t tail_length = wg__strings_length(vocabulary, right);
    uint64_t hash = WG__HASH_EMPTY;
    for (int64_t i = 0; i < head_length; i++)
        hash = wg__hash_step(hash, head[i]);
    for (int64_t i = 0; i < tail_length; i++)
        hash = wg__hash_step(hash, tail[i]);
    return wg__strings_find_joined(vocabulary, hash, head, head_length, tail, tail_length);
}

int wg__add_merge(wg__pairs *pairs, const wg__strings *vocabulary, int64_t number,
                  const int32_t merge[2], const char *where) {
    int32_t left = merge[0], right = merge[1];
    if (left < 0 || left >= vocabulary->count || right < 0 || right >= vocabulary->count)
        return wg_fail(WG_ERROR_FORMAT, where,
                       "merge %lld is of %d and %d; the vocabulary has %lld", (long long)number + 1,
                       left, right, (long long)vocabulary->count);
    int64_t joined = find_joined(vocabulary, left, right);
    if (joined < 0)
        return wg_fail(WG_ERROR_FORMAT, where,
                       "merge %lld of \"%.100s\" and \"%.100s\" is no token", (long long)number + 1,
                       wg__strings_text(vocabulary, left), wg__strings_text(vocabulary, right));
    wg__pair *pair = wg__pairs_add(pairs, left, right);
    if (!pair)
        return -1;
    if (pair->first >= 0)
        return wg_fail(WG_ERROR_FORMAT, where,
                       "merge %lld of \"%.100s\" and \"%.100s\" stands there twice",
                       (long long)number + 1, wg__strings_text(vocabulary, left),
                       wg__strings_text(vocabulary, right));
    pair->first = (int32_t)number;
    pair->second = (int32_t)joined;
    return 0;
}

static int set_merges(wg__bpe *bpe, int64_t count, const int32_t (*merges)[2]) {
    bpe->merge_list = wg__alloc((size_t)(count + 1) * sizeof *bpe->merge_list);
    if (!bpe->merge_list)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        if (wg__add_merge(&bpe->merges, &bpe->base.vocabulary, i, merges[i], "bpe") < 0)
            return -1;
        memcpy(bpe->merge_list[i], merges[i], sizeof merges[i]);
    }
    bpe->merge_count = count;
    return 0;
}

static int fill(wg__bpe *bpe, int64_t count, const char *const *tokens, int64_t merge_count,
                const int32_t (*merges)[2], const wg_bpe_options *options) {
    bpe->prefix_space = options && options->prefix_space;
    bpe->whole_words = options && options->whole_words;
    bpe->pattern = wg__strdup(options && options->pattern ? options->pattern : WG__GPT2_PATTERN);
    if (!bpe->pattern)
        return -1;
    bpe->splitter = wg__splitter_new(bpe->pattern);
    if (!bpe->splitter || wg__tokenizer_set_vocabulary(&bpe->base, count, tokens, "token") < 0 ||
        find_bytes(bpe) < 0 || set_merges(bpe, merge_count, merges) < 0)
        return -1;
    return wg__tokenizer_find_special(&bpe->base);
}

wg_tokenizer *wg_bpe_new(int64_t count, const char *const *tokens, int64_t merge_count,
                         const int32_t (*merges)[2], const wg_bpe_options *options) {
    wg__bpe *bpe = wg__tokenizer_new(&wg__bpe_kind, sizeof *bpe);
    if (bpe && fill(bpe, count, tokens, merge_count, merges, options) < 0) {
        wg_tokenizer_free(&bpe->base);
        return NULL;
    }
    return bpe ? &bpe->base : NULL;
}

static void clear(wg_tokenizer *tokenizer) {
    wg__bpe *bpe = (wg__bpe *)tokenizer;
    wg__pairs_clear(&bpe->merges);
    wg__free(bpe->merge_list);
    wg__splitter_free(bpe->splitter);
    wg__free(bpe->pattern);
}

/* ---- Encoding ---- */

typedef struct encoding {
    const wg__bpe *bpe;
    wg__token_sink *sink;
    wg__merge_space space;
    wg__text letters; /* of a part, when whole words are looked up */
} encoding;

/* The token that a part is as a whole, -1 for none, -2 without memory. */
static int64_t whole_word(encoding *e, const char *part, int64_t length) {
    e->letters.length = 0;
    for (int64_t i = 0; i < length; i++) {
        char letter[2];
        int64_t size = wg__byte_to_letter((unsigned char)part[i], letter);
        if (wg__text_append(&e->letters, letter, size) < 0)
            return -2;
    }
    return wg__strings_find(&e->bpe->base.vocabulary, e->letters.bytes, e->letters.length);
}

/* Merges where the ids will stand: in the list itself. */
static int encode_part(void *context, const char *part, int64_t length) {
    encoding *e = context;
    wg_token_list *list = &e->sink->list;
    if (e->bpe->whole_words) {
        int64_t id = whole_word(e, part, length);
        if (id != -1)
            return id < 0 || wg_token_list_append(list, (int32_t)id) < 0
                       ? -1
                       : wg__token_sink_settle(e->sink);
    }
    int32_t *ids =
        wg__grow(list->ids, list->count, &list->capacity, list->count + length, sizeof *ids);
    if (!ids)
        return -1;
    list->ids = ids;
    ids += list->count;
    for (int64_t i = 0; i < length; i++)
        ids[i] = e->bpe->bytes[(unsigned char)part[i]];
    int64_t count = wg__merge(&e->bpe->merges, ids, length, &e->space);
    if (count < 0)
        return -1;
    list->count += count;
    return wg__token_sink_settle(e->sink);
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    (void)first;
    encoding e = {.bpe = (const wg__bpe *)tokenizer, .sink = sink};
    wg__text spaced = {0};
    int status = 0;
    if (e.bpe->prefix_space && text[0] != ' ') {
        status = wg__text_append(&spaced, " ", 1);
        if (status == 0)
            status = wg__text_append(&spaced, text, length);
        text = spaced.bytes;
        length = spaced.length;
    }
    if (status == 0)
        status = wg__split(e.bpe->splitter, text, length, encode_part, &e);
    wg__merge_space_clear(&e.space);
    wg__free(e.letters.bytes);
    wg__free(spaced.bytes);
    return status;
}

/* ---- Decoding ---- */

int wg__letters_to_bytes(const char *letters, int64_t length, wg__text *text) {
    int64_t size, before = text->length;
    for (int64_t at = 0; at < length; at += size) {
        int byte = wg__letter_to_byte(letters + at, length - at, &size);
        if (byte < 0) { /* a token of its own alphabet */
            text->length = before;
            return wg__text_append(text, letters, length);
        }
        if (wg__text_append(text, &(char){(char)byte}, 1) < 0)
            return -1;
    }
    return 0;
}

static int decode(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text) {
    (void)options, (void)state;
    const char *token = wg__strings_text(&tokenizer->vocabulary, id);
    int64_t length = wg__strings_length(&tokenizer->vocabulary, id);
    if (tokenizer->added_by_id && tokenizer->added_by_id[id] >= 0)
        return wg__text_append(text, token, length);
    return wg__letters_to_bytes(token, length, text);
}

/* ---- JSON ---- */

json_t *wg__merges_to_json(int64_t count, const int32_t (*merges)[2]) {
    json_t *list = json_array();
    for (int64_t i = 0; list && i < 2 * count; i++)
        if (json_array_append_new(list, json_integer(merges[i / 2][i % 2])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *options_to_json(const wg_tokenizer *tokenizer) {
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    return json_pack("{s:s, s:b, s:b, s:o}", "pattern", bpe->pattern, "prefix_space",
                     bpe->prefix_space, "whole_words", bpe->whole_words, "merges",
                     wg__merges_to_json(bpe->merge_count, (const int32_t(*)[2])bpe->merge_list));
}

int32_t (*wg__merges_of_json(const json_t *json, int64_t *count, const char *where))[2] {
    int64_t numbers = (int64_t)json_array_size(json);
    int32_t(*merges)[2] = wg__alloc((size_t)(numbers + 2) * sizeof(int32_t));
    bool good = json_is_array(json) && numbers % 2 == 0;
    for (int64_t i = 0; merges && good && i < numbers; i++) {
        const json_t *id = json_array_get(json, (size_t)i);
        json_int_t value = json_integer_value(id);
        good = json_is_integer(id) && value >= 0 && value <= INT32_MAX;
        merges[i / 2][i % 2] = (int32_t)value;
    }
    if (merges && !good) {
        wg_fail(WG_ERROR_FORMAT, where, "\"merges\" is no list of pairs of ids");
        wg__free(merges);
        return NULL;
    }
    *count = numbers / 2;
    return merges;
}

static wg_tokenizer *from_json(const json_t *json, int64_t count, const char *const *tokens) {
    int prefix_space = false, whole_words = false;
    const char *pattern;
    json_t *list;
    json_error_t error;
    if (json_unpack_ex((json_t *)json, &error, 0, "{s:s, s:b, s:b, s:o}", "pattern", &pattern,
                       "prefix_space", &prefix_space, "whole_words", &whole_words, "merges",
                       &list) < 0) {
        wg_fail(WG_ERROR_FORMAT, "bpe", "bad options: %s", error.text);
        return NULL;
    }
    int64_t merge_count;
    int32_t(*merges)[2] = wg__merges_of_json(list, &merge_count, "bpe");
    if (!merges)
        return NULL;
    wg_bpe_options options = {pattern, prefix_space, whole_words};
    wg_tokenizer *tokenizer =
        wg_bpe_new(count, tokens, merge_count, (const int32_t(*)[2])merges, &options);
    wg__free(merges);
    return tokenizer;
}

const wg__tokenizer_kind wg__bpe_kind = {
    .name = "bpe",
    .encode = encode,
    .decode = decode,
    .options_to_json = options_to_json,
    .from_json = from_json,
    .clear = clear,
};
