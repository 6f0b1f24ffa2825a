/* Functions for all kinds of tokenizers: properties, added tokens, encoding, decoding, and helpers
 * for training and JSON. See tokenizer.h and kind.h. */
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"

int wg_token_list_append(wg_token_list *list, int32_t id) {
    return wg__append(&list->ids, &list->count, &list->capacity, &id, sizeof id);
}

int wg__token_sink_flush(wg__token_sink *sink) {
    enum { MANY = 1 << 14 };
    return sink->drain && sink->list.count >= MANY ? sink->drain(sink->context) : 0;
}

void wg_token_list_free(wg_token_list *list) {
    wg__free(list->ids);
    *list = (wg_token_list){0};
}

const char *wg_tokenizer_kind(const wg_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->kind->name : NULL;
}

int64_t wg_tokenizer_size(const wg_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->vocabulary.count : 0;
}

const char *wg_tokenizer_token(const wg_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= wg_tokenizer_size(tokenizer))
        return NULL;
    return wg__strings_text(&tokenizer->vocabulary, id);
}

int32_t wg_tokenizer_id(const wg_tokenizer *tokenizer, const char *token) {
    if (!tokenizer || !token)
        return -1;
    return (int32_t)wg__strings_find(&tokenizer->vocabulary, token, (int64_t)strlen(token));
}

int32_t wg_tokenizer_special(const wg_tokenizer *tokenizer, wg_special_token which) {
    if (!tokenizer || (int)which < 0 || which >= WG_TOKEN_SPECIAL_COUNT)
        return -1;
    return tokenizer->special[which];
}

static const wg__added_token *added_of_id(const wg_tokenizer *tokenizer, int32_t id) {
    if (!tokenizer || !tokenizer->added_by_id || id < 0 || id >= tokenizer->vocabulary.count)
        return NULL;
    int32_t number = tokenizer->added_by_id[id];
    return number < 0 ? NULL : &tokenizer->added[number];
}

bool wg__tokenizer_is_special(const wg_tokenizer *tokenizer, int32_t id) {
    const wg__added_token *token = added_of_id(tokenizer, id);
    return token && token->special;
}

const char *wg__tokenizer_added_text(const wg_tokenizer *tokenizer, int32_t id) {
    const wg__added_token *token = added_of_id(tokenizer, id);
    return token ? wg__strings_text(&tokenizer->added_texts, token - tokenizer->added)
                 : wg_tokenizer_token(tokenizer, id);
}

/* Decodes the token within a text: the first token of a word then begins with a space. */
bool wg__token_begins_word(const wg_tokenizer *tokenizer, int32_t id) {
    static const wg_decode_options options = {.plain = true};
    wg__decode_state inside = {.begun = true, .space = true};
    wg__text text = {0};
    const bool begins = wg_tokenizer_token(tokenizer, id) &&
                        tokenizer->kind->decode(tokenizer, id, &options, &inside, &text) == 0 &&
                        wg__space_length(text.bytes, text.length) > 0;
    wg__free(text.bytes);
    return begins;
}

void *wg__tokenizer_new(const wg__tokenizer_kind *kind, size_t size) {
    wg_tokenizer *tokenizer = wg__calloc(1, size);
    if (!tokenizer)
        return NULL;
    tokenizer->kind = kind;
    memset(tokenizer->special, 0xff, sizeof tokenizer->special);
    return tokenizer;
}

void wg__tokenizer_clear_added(wg_tokenizer *tokenizer) {
    memset(tokenizer->special, 0xff, sizeof tokenizer->special);
    wg__strings_clear(&tokenizer->added_texts);
    wg__free(tokenizer->added);
    wg__free(tokenizer->added_by_id);
    tokenizer->added = NULL;
    tokenizer->added_by_id = NULL;
    tokenizer->added_capacity = 0;
}

void wg_tokenizer_free(wg_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    if (tokenizer->kind->clear)
        tokenizer->kind->clear(tokenizer);
    wg__tokenizer_clear_added(tokenizer);
    wg__strings_clear(&tokenizer->vocabulary);
    wg__free(tokenizer);
}

wg_tokenizer *wg__tokenizer_checked(wg_tokenizer *tokenizer, int status) {
    if (status == 0)
        return tokenizer;
    wg_tokenizer_free(tokenizer);
    return NULL;
}

int wg__tokenizer_set_vocabulary(wg_tokenizer *tokenizer, int64_t count, const char *const *tokens,
                                 const char *entry) {
    for (int64_t i = 0; i < count; i++) {
        wg__strings *vocabulary = &tokenizer->vocabulary;
        const char *where = tokenizer->kind->name;
        int64_t number = vocabulary->count, length = (int64_t)strlen(tokens[i]);
        if (length == 0)
            return wg_fail(WG_ERROR_FORMAT, where, "%s %lld is empty", entry,
                           (long long)number + 1);
        if (wg__utf8_invalid(tokens[i], length) >= 0)
            return wg_fail(WG_ERROR_FORMAT, where, "%s %lld is not UTF-8", entry,
                           (long long)number + 1);
        int64_t id = wg__strings_add(vocabulary, tokens[i], length);
        if (id >= 0 && id != number)
            return wg_fail(WG_ERROR_FORMAT, where,
                           "%s %lld is \"%.100s\" as %lld is; each token must stand once", entry,
                           (long long)number + 1, tokens[i], (long long)id + 1);
        if (id < 0)
            return -1;
    }
    return 0;
}

int wg__tokenizer_add(wg_tokenizer *tokenizer, const char *text, const wg__added_token *token) {
    const char *where = tokenizer->kind->name;
    if (token->id < 0 || token->id >= tokenizer->vocabulary.count)
        return wg_fail(WG_ERROR_FORMAT, where,
                       "the added token %d is outside the vocabulary of %lld", token->id,
                       (long long)tokenizer->vocabulary.count);
    if (!text)
        text = wg__strings_text(&tokenizer->vocabulary, token->id);
    int64_t length = (int64_t)strlen(text);
    if (length == 0 || wg__utf8_invalid(text, length) >= 0)
        return wg_fail(WG_ERROR_FORMAT, where, "the added token %d is empty or not UTF-8",
                       token->id);
    int64_t known = tokenizer->added_texts.count;
    int64_t number = wg__strings_add(&tokenizer->added_texts, text, length);
    const size_t bytes = (size_t)tokenizer->vocabulary.count * sizeof *tokenizer->added_by_id;
    if (number >= 0 && !tokenizer->added_by_id) {
        tokenizer->added_by_id = wg__alloc(bytes);
        if (tokenizer->added_by_id)
            memset(tokenizer->added_by_id, 0xff, bytes); /* every number -1 */
    }
    if (number < 0 || !tokenizer->added_by_id)
        return -1;
    if (wg__reserve(&tokenizer->added, known, &tokenizer->added_capacity,
                    tokenizer->added_texts.count, sizeof *tokenizer->added) < 0)
        return -1;
    wg__added_token *added = tokenizer->added;
    if (number < known && added[number].id != token->id)
        return wg_fail(WG_ERROR_FORMAT, where, "the added tokens %d and %d are both \"%.100s\"",
                       added[number].id, token->id, text);
    added[number] = *token;
    tokenizer->added_by_id[token->id] = (int32_t)number;
    return 0;
}

int wg__tokenizer_set_special(wg_tokenizer *tokenizer, wg_special_token which, int32_t id) {
    tokenizer->special[which] = id;
    if (added_of_id(tokenizer, id)) /* keeps a text that differs from the vocabulary's */
        return 0;
    return wg__tokenizer_add(tokenizer, NULL, &(wg__added_token){.id = id, .special = true});
}

int wg__tokenizer_name_special(wg_tokenizer *tokenizer, wg_special_token which, const char *name) {
    int32_t id = wg_tokenizer_id(tokenizer, name);
    return id < 0 ? 0 : wg__tokenizer_set_special(tokenizer, which, id);
}

int wg__tokenizer_find_special(wg_tokenizer *tokenizer) {
    static const struct {
        wg_special_token which;
        const char *name;
    } published[] = {
        {WG_TOKEN_PAD, "<pad>"},           {WG_TOKEN_PAD, "[PAD]"},
        {WG_TOKEN_UNKNOWN, "<unk>"},       {WG_TOKEN_UNKNOWN, "[UNK]"},
        {WG_TOKEN_CLASS, "[CLS]"},         {WG_TOKEN_SEPARATOR, "[SEP]"},
        {WG_TOKEN_MASK, "<mask>"},         {WG_TOKEN_MASK, "[MASK]"},
        {WG_TOKEN_BEGIN, "<s>"},           {WG_TOKEN_BEGIN, "<|begin_of_text|>"},
        {WG_TOKEN_BEGIN, "<|endoftext|>"}, {WG_TOKEN_END, "</s>"},
        {WG_TOKEN_END, "<|end_of_text|>"}, {WG_TOKEN_END, "<|endoftext|>"},
    };
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        if (tokenizer->special[published[i].which] < 0 &&
            wg__tokenizer_name_special(tokenizer, published[i].which, published[i].name) < 0)
            return -1;
    return 0;
}

/* ---- Encoding ---- */

typedef struct encoding {
    const wg_tokenizer *tokenizer;
    bool special; /* find special tokens, too */
    const char *text;
    int64_t length;
    bool begins[256]; /* begins[b]: an added token begins with byte b */
    wg__token_sink *sink;
} encoding;

/* The longest added token at `at`, or NULL. */
static const wg__added_token *added_at(const encoding *e, int64_t at, int64_t *length) {
    const wg__strings *texts = &e->tokenizer->added_texts;
    const wg__added_token *found = NULL;
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t n = 1; n <= texts->longest && at + n <= e->length; n++) {
        hash = wg__hash_step(hash, e->text[at + n - 1]);
        int64_t number = wg__strings_find_joined(texts, hash, "", 0, e->text + at, n);
        if (number < 0 || (e->tokenizer->added[number].special && !e->special))
            continue;
        found = &e->tokenizer->added[number];
        *length = n;
    }
    return found;
}

static int encode_stretch(const encoding *e, int64_t start, int64_t end) {
    if (start >= end)
        return 0;
    return e->tokenizer->kind->encode(e->tokenizer, e->text + start, end - start, start == 0,
                                      e->sink);
}

static int encode_around_added(encoding *e) {
    /* Fills `begins`; `any`: there are added tokens to find. */
    bool any = false;
    for (int64_t i = 0; i < e->tokenizer->added_texts.count; i++) {
        const char *text = wg__strings_text(&e->tokenizer->added_texts, i);
        if (e->tokenizer->added[i].special && !e->special)
            continue;
        if (e->tokenizer->added[i].normalized)
            return wg_fail(
                WG_ERROR_FORMAT, "tokenizer",
                "the special token \"%.64s\" is \"normalized\" in its tokenizer.json, "
                "which is not supported; encode without special tokens, or make it false "
                "there",
                text);
        any = e->begins[(unsigned char)*text] = true;
    }

    /* Encodes the stretches between the added tokens. */
    int64_t start = 0, at = 0;
    while (any && at < e->length) {
        int64_t length = 0;
        const wg__added_token *token =
            e->begins[(unsigned char)e->text[at]] ? added_at(e, at, &length) : NULL;
        if (!token) {
            at++;
            continue;
        }
        int64_t end = at;
        for (int64_t last = end - 1; token->strip_left && last >= start; last = end - 1) {
            while (last > start && ((unsigned char)e->text[last] & 0xc0) == 0x80)
                last--;
            if (wg__space_length(e->text + last, end - last) != end - last)
                break;
            end = last;
        }
        if (encode_stretch(e, start, end) < 0 ||
            wg_token_list_append(&e->sink->list, token->id) < 0 ||
            wg__token_sink_flush(e->sink) < 0)
            return -1;
        at += length;
        while (token->strip_right && (length = wg__space_length(e->text + at, e->length - at)) > 0)
            at += length;
        start = at;
    }
    return encode_stretch(e, start, e->length);
}

int wg__tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                         const wg_encode_options *options, wg__token_sink *sink) {
    encoding e = {.tokenizer = tokenizer,
                  .special = options && options->special_tokens,
                  .text = text,
                  .length = length,
                  .sink = sink};
    const int64_t count = sink->list.count;
    if (encode_around_added(&e) == 0)
        return 0;
    sink->list.count = wg__smaller(count, sink->list.count);
    return -1;
}

int wg_tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                        const wg_encode_options *options, wg_token_list *list) {
    if (!tokenizer || !text || !list)
        return -1;
    if (length < 0)
        length = (int64_t)strlen(text);
    const int64_t invalid = wg__utf8_invalid(text, length);
    if (invalid >= 0)
        return wg_fail(WG_ERROR_FORMAT, "tokenizer", "the text is not UTF-8 at byte %lld",
                       (long long)invalid);
    wg__token_sink sink = {.list = *list};
    const int status = wg__tokenizer_encode(tokenizer, text, length, options, &sink);
    *list = sink.list;
    return status;
}

/* ---- Decoding: bytes to characters ----
 * The kinds decode ids to bytes. These functions join the bytes to whole characters.
 *
 *     ids     |  a  |  b  |   c   |
 *     bytes   | E2  | 82  | AC 20 |      from the kind
 *     text    |     |     | "€ "  |      the bytes of an unfinished character wait
 *
 * Each maximal subpart of an invalid character becomes U+FFFD (The Unicode Standard, section 3.9),
 * as in Python and most browsers. */

typedef enum subpart { WHOLE, UNFINISHED, INVALID } subpart;

/* The length of the next subpart: a whole character, a character that `length` cuts off, or an
 * invalid subpart. */
static int64_t next_subpart(const unsigned char *bytes, int64_t length, subpart *what) {
    /* The length of a character with this first byte, and the range of its second byte (RFC 3629,
     * section 4); 0: no character has this first byte. */
    const unsigned char first = bytes[0];
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    const int64_t wanted = first < 0x80    ? 1
                           : first < 0xC2  ? 0
                           : first < 0xE0  ? 2
                           : first < 0xF0  ? 3
                           : first <= 0xF4 ? 4
                                           : 0;
    int64_t n = 1;
    while (n < wanted && n < length && bytes[n] >= low && bytes[n] <= high) {
        low = 0x80;
        high = 0xBF;
        n++;
    }
    *what = n == wanted ? WHOLE : n == length && n < wanted ? UNFINISHED : INVALID;
    return n;
}

/* Moves the characters of `bytes` to `text`. Without `end`, an unfinished character stays. */
static int move_characters(wg__text *bytes, bool end, wg__text *text) {
    const unsigned char *data = (const unsigned char *)bytes->bytes;
    int64_t at = 0, start = 0, length = bytes->length;
    while (at < length) {
        subpart what;
        int64_t n = next_subpart(data + at, length - at, &what);
        if (what == UNFINISHED && !end)
            break;
        if (what != WHOLE) {
            if (wg__text_append(text, bytes->bytes + start, at - start) < 0 ||
                wg__text_append(text, "\xEF\xBF\xBD", 3) < 0)
                return -1;
            start = at + n;
        }
        at += n;
    }
    if (wg__text_append(text, bytes->bytes + start, at - start) < 0)
        return -1;
    memmove(bytes->bytes, bytes->bytes + at, (size_t)(length - at));
    bytes->length = length - at;
    return 0;
}

static int decode_id(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                     wg__decode_state *state, wg__text *bytes) {
    if (id < 0 || id >= tokenizer->vocabulary.count)
        return wg_fail(WG_ERROR_INDEX, "wg_tokenizer_decode",
                       "id %d is outside the vocabulary of %lld tokens", id,
                       (long long)tokenizer->vocabulary.count);
    if (options->skip_special && wg__tokenizer_is_special(tokenizer, id))
        return 0;
    return tokenizer->kind->decode(tokenizer, id, options, state, bytes);
}

char *wg_tokenizer_decode(const wg_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                          const wg_decode_options *options) {
    static const wg_decode_options defaults;
    if (!tokenizer)
        return NULL;
    wg__decode_state state = {0};
    wg__text bytes = {0}, text = {0};
    int status = wg__text_append(&bytes, "", 0);
    for (int64_t i = 0; status == 0 && i < count; i++)
        status = decode_id(tokenizer, ids[i], options ? options : &defaults, &state, &bytes);
    const bool decoded = status == 0 && move_characters(&bytes, true, &text) == 0;
    wg__free(bytes.bytes);
    if (decoded)
        return text.bytes;
    wg__free(text.bytes);
    return NULL;
}

struct wg_decode_stream {
    const wg_tokenizer *tokenizer;
    wg_decode_options options;
    wg__decode_state state;
    wg__text bytes; /* not returned yet */
    wg__text text;
};

wg_decode_stream *wg_decode_stream_new(const wg_tokenizer *tokenizer,
                                       const wg_decode_options *options) {
    wg_decode_stream *stream = tokenizer ? wg__calloc(1, sizeof *stream) : NULL;
    if (!stream)
        return NULL;
    stream->tokenizer = tokenizer;
    if (options)
        stream->options = *options;
    return stream;
}

static const char *return_text(wg_decode_stream *stream, bool end, int64_t *length) {
    stream->text.length = 0;
    if (wg__text_append(&stream->bytes, "", 0) < 0 ||
        move_characters(&stream->bytes, end, &stream->text) < 0)
        return NULL;
    if (length)
        *length = stream->text.length;
    return stream->text.bytes;
}

const char *wg_decode_stream_next(wg_decode_stream *stream, int32_t id, int64_t *length) {
    if (!stream ||
        decode_id(stream->tokenizer, id, &stream->options, &stream->state, &stream->bytes) < 0)
        return NULL;
    return return_text(stream, false, length);
}

const char *wg_decode_stream_end(wg_decode_stream *stream, int64_t *length) {
    if (!stream)
        return NULL;
    const char *text = return_text(stream, true, length);
    stream->state = (wg__decode_state){0};
    return text;
}

void wg_decode_stream_free(wg_decode_stream *stream) {
    if (!stream)
        return;
    wg__free(stream->bytes.bytes);
    wg__free(stream->text.bytes);
    wg__free(stream);
}

int wg__each_text(const wg__texts *texts, const char *where,
                  int (*add)(void *context, const char *text, int64_t length), void *context) {
    const int count = texts->text ? 1 : texts->count;
    int status = 0;
    for (int i = 0; status == 0 && i < count; i++) {
        const char *name = texts->text ? "the text" : texts->paths[i];
        wg__text_map map = wg__text_map_of(texts->text ? texts->text : "", texts->length);
        if ((!texts->text && wg__text_map_open(&map, name, where) < 0) ||
            wg__utf8_check(map.bytes, map.length, name, where) < 0 ||
            add(context, map.bytes, map.length) < 0)
            status = -1;
        wg__text_map_close(&map);
    }
    return status;
}

int wg__fail_without_text(const wg__texts *texts, const char *where) {
    if (texts->text || texts->count == 0)
        return wg_fail(WG_ERROR_FORMAT, where, "there is no text to learn from");
    return wg_fail(WG_ERROR_FORMAT, where, "there is no text to learn from: %s%s", texts->paths[0],
                   texts->count == 1 ? " is empty" : " and all other files are empty");
}

/* ---- JSON ---- */

static int append_dump(const char *bytes, size_t size, void *context) {
    return wg__text_append(context, bytes, (int64_t)size);
}

int wg__json_dump(const json_t *json, size_t flags, wg__text *out) {
    if (json && json_dump_callback(json, append_dump, out, flags) == 0)
        return 0;
    return wg_error_pending() ? -1 : wg_fail(WG_ERROR_MEMORY, "tokenizer", "no memory for JSON");
}

json_t *wg__json_parse(const char *json, int64_t length, const char *name) {
    json_error_t error;
    json_t *root = json_loadb(json, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "%s is not JSON: line %d: %s", name, error.line,
                error.text);
    return root;
}

json_t *wg__numbers_to_json(int64_t count, const double *numbers) {
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        wg__json_append(&list, json_real(numbers[i]));
    return list;
}

double *wg__numbers_of_json(const json_t *json, int64_t count, const char *key, const char *where) {
    bool good = json_is_array(json) && (int64_t)json_array_size(json) == count;
    double *numbers = good ? wg__alloc_array(count + 1, sizeof *numbers) : NULL;
    for (int64_t i = 0; numbers && good && i < count; i++) {
        const json_t *number = json_array_get(json, (size_t)i);
        good = json_is_number(number);
        numbers[i] = json_number_value(number);
    }
    if (good)
        return numbers;
    wg__free(numbers);
    return wg__fail_null(WG_ERROR_FORMAT, where, "\"%s\" is no list of %lld numbers", key,
                         (long long)count);
}
