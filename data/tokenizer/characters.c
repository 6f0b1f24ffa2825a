/* Tokenizers of characters and of bytes: see tokenizer.h. */
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/kind.h"
#include "data/internal.h"

#define CODE_POINTS 0x110000
#define UNKNOWN "<unk>"
#define NUL_TOKEN "<0x00>"

static int encode_bytes(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                        wg__token_sink *sink) {
    (void)tokenizer, (void)first;
    for (int64_t i = 0; i < length; i++)
        if (wg_token_list_append(&sink->list, (unsigned char)text[i]) < 0 ||
            wg__token_sink_flush(sink) < 0)
            return -1;
    return 0;
}

static int decode_byte(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                       wg__decode_state *state, wg__text *text) {
    (void)tokenizer, (void)options, (void)state;
    return wg__text_append(text, &(char){(char)id}, 1);
}

static wg_tokenizer *bytes_from_json(const json_t *options, int64_t count,
                                     const char *const *tokens) {
    (void)options;
    wg_tokenizer *tokenizer = wg_byte_new();
    bool same = tokenizer && count == 256;
    for (int64_t i = 0; same && i < count; i++)
        same = strcmp(tokens[i], wg_tokenizer_token(tokenizer, (int32_t)i)) == 0;
    if (!same)
        wg_fail(WG_ERROR_FORMAT, "byte", "the vocabulary is not <0x00> to <0xFF>");
    return wg__tokenizer_checked(tokenizer, same ? 0 : -1);
}

const wg__tokenizer_kind wg__byte_kind = {
    .name = "byte",
    .encode = encode_bytes,
    .decode = decode_byte,
    .from_json = bytes_from_json,
};

wg_tokenizer *wg_byte_new(void) {
    char texts[256][8];
    const char *tokens[256];
    for (int i = 0; i < 256; i++) {
        snprintf(texts[i], sizeof texts[i], "<0x%02X>", i);
        tokens[i] = texts[i];
    }
    wg_tokenizer *tokenizer = wg__tokenizer_new(&wg__byte_kind, sizeof *tokenizer);
    if (!tokenizer)
        return NULL;
    return wg__tokenizer_checked(tokenizer,
                                 wg__tokenizer_set_vocabulary(tokenizer, 256, tokens, "token"));
}

static int encode_characters(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                             bool first, wg__token_sink *sink) {
    (void)first;
    int64_t size;
    for (int64_t at = 0; at < length; at += size) {
        size = wg__utf8_length(text + at);
        int32_t id = text[at] ? (int32_t)wg__strings_find(&tokenizer->vocabulary, text + at, size)
                              : wg_tokenizer_id(tokenizer, NUL_TOKEN);
        if (id < 0)
            id = tokenizer->special[WG_TOKEN_UNKNOWN];
        if (id < 0)
            return wg_fail(WG_ERROR_FORMAT, "char",
                           "the character \"%.*s\" is not in the vocabulary, nor is " UNKNOWN,
                           (int)size, text + at);
        if (wg_token_list_append(&sink->list, id) < 0 || wg__token_sink_flush(sink) < 0)
            return -1;
    }
    return 0;
}

static int decode_character(const wg_tokenizer *tokenizer, int32_t id,
                            const wg_decode_options *options, wg__decode_state *state,
                            wg__text *text) {
    (void)options, (void)state;
    const char *token = wg__strings_text(&tokenizer->vocabulary, id);
    return strcmp(token, NUL_TOKEN) == 0 ? wg__text_append(text, "", 1)
                                         : wg__text_append(text, token, (int64_t)strlen(token));
}

static wg_tokenizer *characters_from_json(const json_t *options, int64_t count,
                                          const char *const *tokens) {
    (void)options;
    wg_tokenizer *tokenizer = wg__tokenizer_new(&wg__char_kind, sizeof *tokenizer);
    int status = tokenizer ? wg__tokenizer_set_vocabulary(tokenizer, count, tokens, "token") : -1;
    for (int64_t i = 0; status == 0 && i < count; i++)
        if (tokens[i][wg__utf8_length(tokens[i])] != '\0' && strcmp(tokens[i], NUL_TOKEN) != 0 &&
            strcmp(tokens[i], UNKNOWN) != 0)
            status =
                wg_fail(WG_ERROR_FORMAT, "char", "token %lld, \"%.100s\", is not one character",
                        (long long)i + 1, tokens[i]);
    if (status == 0)
        status = wg__tokenizer_name_special(tokenizer, WG_TOKEN_UNKNOWN, UNKNOWN);
    return tokenizer ? wg__tokenizer_checked(tokenizer, status) : NULL;
}

const wg__tokenizer_kind wg__char_kind = {
    .name = "char",
    .encode = encode_characters,
    .decode = decode_character,
    .from_json = characters_from_json,
};

typedef struct trainer {
    bool *seen; /* by code point */
    int64_t count;
} trainer;

static int add_text(void *context, const char *text, int64_t length) {
    trainer *t = context;
    utf8proc_int32_t character;
    for (int64_t at = 0; at < length;) {
        at += utf8proc_iterate((const utf8proc_uint8_t *)text + at, length - at, &character);
        t->count += !t->seen[character];
        t->seen[character] = true;
    }
    return 0;
}

static wg_tokenizer *train(const wg__texts *source, const wg_char_training *training) {
    trainer t = {.seen = wg__calloc(CODE_POINTS, sizeof *t.seen)};
    int status = t.seen ? wg__each_text(source, "char_train", add_text, &t) : -1;
    if (status == 0 && t.count == 0)
        status = wg__fail_without_text(source, "char_train");
    char(*texts)[8] = status == 0 ? wg__calloc((size_t)t.count + 1, sizeof *texts) : NULL;
    const char **tokens = texts ? wg__alloc_array(t.count + 1, sizeof *tokens) : NULL;
    int64_t count = 0;
    if (tokens && training && training->unknown)
        tokens[count++] = UNKNOWN;
    for (int32_t c = 0; tokens && c < CODE_POINTS; c++) {
        if (!t.seen[c])
            continue;
        if (c == 0)
            strcpy(texts[count], NUL_TOKEN);
        else
            utf8proc_encode_char(c, (utf8proc_uint8_t *)texts[count]);
        tokens[count] = texts[count];
        count++;
    }
    wg_tokenizer *tokenizer = tokens ? characters_from_json(NULL, count, tokens) : NULL;
    wg__free(tokens);
    wg__free(texts);
    wg__free(t.seen);
    return tokenizer;
}

wg_tokenizer *wg__char_train(const char *text, int64_t length, const wg_char_training *training) {
    return text ? train(&(wg__texts){.text = text, .length = length}, training) : NULL;
}

wg_tokenizer *wg_char_train_files(int count, const char *const *paths,
                                  const wg_char_training *training) {
    return train(&(wg__texts){.count = count, .paths = paths}, training);
}
