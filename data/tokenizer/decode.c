/* Decoding, at once and as a stream: the kinds give bytes, here they become whole characters.
 *
 *     ids     |  a  |  b  |   c   |
 *     bytes   | E2  | 82  | AC 20 |      from the kind
 *     text    |     |     | "€ "  |      what is not whole yet is held back
 *
 * Bytes that belong to no character become U+FFFD, one for each stretch that begins as a character
 * does and breaks off (The Unicode Standard, section 3.9, "maximal subpart"), as Python and most
 * browsers have it. */
#include <string.h>

#include "data/tokenizer/kind.h"
#include "tensor/internal.h"

struct wg_decode_stream {
    const wg_tokenizer *tokenizer;
    wg_decode_options options;
    wg__decode_state state;
    wg__text bytes; /* not handed out yet */
    wg__text text;
};

/* ---- Characters out of bytes ---- */

/* How long the character is that begins with the byte `first`, and between which values its second
 * byte must be (RFC 3629, section 4); 0 if none does. */
static int64_t begin_of_character(unsigned char first, unsigned char *low, unsigned char *high) {
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return first < 0x80    ? 1
           : first < 0xC2  ? 0
           : first < 0xE0  ? 2
           : first < 0xF0  ? 3
           : first <= 0xF4 ? 4
                           : 0;
}

typedef enum stretch { WHOLE, UNFINISHED, NONE } stretch;

/* How many bytes stand together: a whole character, the beginning of one that `length` cuts off, or
 * one that breaks off. */
static int64_t next_stretch(const unsigned char *bytes, int64_t length, stretch *what) {
    unsigned char low, high;
    int64_t wanted = begin_of_character(bytes[0], &low, &high), n = 1;
    while (n < wanted && n < length && bytes[n] >= low && bytes[n] <= high) {
        low = 0x80;
        high = 0xBF;
        n++;
    }
    *what = n == wanted ? WHOLE : n == length && n < wanted ? UNFINISHED : NONE;
    return n;
}

/* Moves the characters of `bytes` to `text`; unless `end`, one that is not whole yet stays. */
static int take_characters(wg__text *bytes, bool end, wg__text *text) {
    const unsigned char *data = (const unsigned char *)bytes->bytes;
    int64_t at = 0, start = 0, length = bytes->length;
    while (at < length) {
        stretch what;
        int64_t n = next_stretch(data + at, length - at, &what);
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

/* ---- At once ---- */

static int decode_id(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                     wg__decode_state *state, wg__text *bytes) {
    if (id < 0 || id >= tokenizer->vocabulary.count)
        return wg_fail(WG_ERROR_INDEX, "wg_tokenizer_decode",
                       "id %d is outside the vocabulary of %lld tokens", id,
                       (long long)tokenizer->vocabulary.count);
    if (options->skip_special && wg_tokenizer_is_special(tokenizer, id))
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
    if (status == 0)
        status = take_characters(&bytes, true, &text);
    wg__free(bytes.bytes);
    if (status < 0) {
        wg__free(text.bytes);
        return NULL;
    }
    return text.bytes;
}

/* ---- As a stream ---- */

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

static const char *take_text(wg_decode_stream *stream, bool end, int64_t *length) {
    stream->text.length = 0;
    if (wg__text_append(&stream->bytes, "", 0) < 0 ||
        take_characters(&stream->bytes, end, &stream->text) < 0)
        return NULL;
    if (length)
        *length = stream->text.length;
    return stream->text.bytes;
}

const char *wg_decode_stream_next(wg_decode_stream *stream, int32_t id, int64_t *length) {
    if (!stream ||
        decode_id(stream->tokenizer, id, &stream->options, &stream->state, &stream->bytes) < 0)
        return NULL;
    return take_text(stream, false, length);
}

const char *wg_decode_stream_end(wg_decode_stream *stream, int64_t *length) {
    if (!stream)
        return NULL;
    const char *text = take_text(stream, true, length);
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
