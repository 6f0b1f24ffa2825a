/* SentencePiece's normalization of a text, its character rules, and base64. See sentencepiece.h. */
#include <string.h>

#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/text_file.h"

#define SYMBOL_LENGTH 3
#define LONG_GRAPHEME 6 /* bytes; Hugging Face looks up each character of longer graphemes */

/* A unit of the trie, and the offset of its children (darts-clone). */
static uint32_t unit_at(const wg__charsmap *map, uint64_t i) {
    const unsigned char *b = map->units + 4 * i;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t offset_of(uint32_t unit) {
    return (uint64_t)(unit >> 10) << ((unit & 0x200) >> 6);
}

int wg__charsmap_set(wg__charsmap *map, const char *blob, int64_t length) {
    const unsigned char *b = (const unsigned char *)blob;
    if (length < 4)
        return wg_fail(WG_ERROR_FORMAT, "charsmap", "the character rules are cut short");
    int64_t trie = b[0] | (int64_t)b[1] << 8 | (int64_t)b[2] << 16 | (int64_t)b[3] << 24;
    if (trie % 4 != 0 || trie == 0 || trie >= length - 4)
        return wg_fail(WG_ERROR_FORMAT, "charsmap",
                       "the character rules say that their trie has %lld bytes, of %lld in all",
                       (long long)trie, (long long)length);
    const char *texts = blob + 4 + trie;
    int64_t texts_length = length - 4 - trie;
    if (texts[texts_length - 1] != '\0' || wg__utf8_invalid(texts, texts_length) >= 0)
        return wg_fail(WG_ERROR_FORMAT, "charsmap",
                       "the replacements of the character rules are not UTF-8 closed by NUL");
    map->blob = wg__alloc((size_t)length);
    if (!map->blob)
        return -1;
    memcpy(map->blob, blob, (size_t)length);
    map->length = length;
    map->units = (const unsigned char *)map->blob + 4;
    map->unit_count = trie / 4;
    map->texts = map->blob + 4 + trie;
    map->texts_length = texts_length;
    return 0;
}

/* The NUL-terminated replacement of the longest beginning of `text` that is a key, or of the
 * shortest one; *matched is the length of this beginning. NULL without a key. A beginning never
 * ends within a character. */
static const char *charsmap_find(const wg__charsmap *map, const char *text, int64_t length,
                                 bool shortest, int64_t *matched) {
    const char *found = NULL;
    if (map->unit_count == 0)
        return NULL;
    uint64_t node = offset_of(unit_at(map, 0));
    for (int64_t i = 0; i < length && !(found && shortest); i++) {
        unsigned char byte = (unsigned char)text[i];
        node ^= byte;
        if (node >= (uint64_t)map->unit_count)
            break;
        uint32_t unit = unit_at(map, node);
        if ((unit & 0x800000FF) != byte)
            break;
        node ^= offset_of(unit);
        if (!(unit >> 8 & 1) || (i + 1 < length && ((unsigned char)text[i + 1] & 0xC0) == 0x80))
            continue;
        /* Reads the leaf below the node; a damaged table has none. */
        const uint32_t value =
            node < (uint64_t)map->unit_count ? unit_at(map, node) & 0x7FFFFFFF : UINT32_MAX;
        if (value < map->texts_length && ((unsigned char)map->texts[value] & 0xC0) != 0x80) {
            found = map->texts + value;
            *matched = i + 1;
        }
    }
    return found;
}

int64_t wg__normalize_kept(const wg__normalizer *normalizer, const char *text, int64_t length,
                           int64_t *number) {
    const wg__strings *kept = &normalizer->kept;
    int64_t found = 0;
    if (length == 0 || !normalizer->kept_begins[(unsigned char)*text])
        return 0;
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t n = 1; n <= kept->longest && n <= length; n++) {
        hash = wg__hash_step(hash, text[n - 1]);
        int64_t at = wg__strings_find_joined(kept, hash, "", 0, text, n);
        if (at >= 0) {
            found = n;
            *number = at;
        }
    }
    return found;
}

typedef struct step {
    const char *text;
    int64_t length;
    int64_t consumed;
} step;

static step next_step(const wg__normalizer *n, const char *text, int64_t length) {
    int64_t consumed, number;
    if ((consumed = wg__normalize_kept(n, text, length, &number)) > 0)
        return (step){text, consumed, consumed};
    const char *replacement = n->settings->by_grapheme
                                  ? NULL
                                  : charsmap_find(&n->charsmap, text, length, false, &consumed);
    if (replacement)
        return (step){replacement, (int64_t)strlen(replacement), consumed};
    consumed = wg__utf8_length(text);
    return (step){text, consumed, consumed};
}

static int replace_grapheme(const wg__normalizer *n, const char *text, int64_t length,
                            wg__text *out) {
    int64_t matched, size;
    const char *replacement = NULL;
    if (length < LONG_GRAPHEME)
        replacement = charsmap_find(&n->charsmap, text, length, true, &matched);
    if (replacement)
        return wg__text_append(out, replacement, (int64_t)strlen(replacement));
    for (int64_t at = 0; at < length; at += size) {
        size = wg__utf8_length(text + at);
        replacement = charsmap_find(&n->charsmap, text + at, size, true, &matched);
        if ((replacement ? wg__text_append(out, replacement, (int64_t)strlen(replacement))
                         : wg__text_append(out, text + at, size)) < 0)
            return -1;
    }
    return 0;
}

int wg__replace_graphemes(const wg__normalizer *n, const char *text, int64_t length,
                          wg__text *out) {
    int64_t size;
    for (int64_t at = 0; at < length; at += size) {
        utf8proc_int32_t previous, next, state = 0;
        const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text + at;
        size = utf8proc_iterate(bytes, length - at, &previous);
        while (at + size < length) {
            const int64_t more = utf8proc_iterate(bytes + size, length - at - size, &next);
            if (utf8proc_grapheme_break_stateful(previous, next, &state))
                break;
            previous = next;
            size += more;
        }
        if (replace_grapheme(n, text + at, size, out) < 0)
            return -1;
    }
    return 0;
}

static int append_space(const wg__normalizer *n, wg__text *out) {
    return n->settings->plain_spaces ? wg__text_append(out, " ", 1)
                                     : wg__text_append(out, WG__SPACE_SYMBOL, SYMBOL_LENGTH);
}

static int append_escaped(const wg__normalizer *n, const char *text, int64_t length,
                          wg__text *out) {
    int64_t start = 0;
    for (int64_t i = 0; i < length; i++) {
        if (text[i] != ' ' || n->settings->plain_spaces)
            continue;
        if (wg__text_append(out, text + start, i - start) < 0 || append_space(n, out) < 0)
            return -1;
        start = i + 1;
    }
    return wg__text_append(out, text + start, length - start);
}

int wg__normalize(const wg__normalizer *n, const char *text, int64_t length, bool first,
                  wg__text *out) {
    const wg__piece_settings *rules = n->settings;
    const char *end = text + length;
    while (rules->remove_spaces && text < end) {
        step s = next_step(n, text, end - text);
        if (!(s.length == 1 && *s.text == ' '))
            break;
        text += s.consumed;
    }
    if (text == end)
        return 0;
    const bool spaced = *text == ' ' || (end - text >= SYMBOL_LENGTH &&
                                         memcmp(text, WG__SPACE_SYMBOL, SYMBOL_LENGTH) == 0);
    bool prefix =
        rules->prefix == WG__PREFIX_ALWAYS || (rules->prefix == WG__PREFIX_MISSING && !spaced);
    prefix = prefix && (first || !rules->prefix_first);
    int64_t start = out->length;
    if (prefix && !rules->space_suffix && append_space(n, out) < 0)
        return -1;
    bool after_space = rules->remove_spaces;
    while (text < end) {
        step s = next_step(n, text, end - text);
        for (; after_space && s.length > 0 && *s.text == ' '; s.length--)
            s.text++;
        if (s.length > 0) {
            if (append_escaped(n, s.text, s.length, out) < 0)
                return -1;
            after_space = rules->remove_spaces && s.text[s.length - 1] == ' ';
        }
        text += s.consumed;
    }
    if (rules->remove_spaces) {
        const char *space = rules->plain_spaces ? " " : WG__SPACE_SYMBOL;
        int64_t size = rules->plain_spaces ? 1 : SYMBOL_LENGTH;
        while (out->length - start >= size &&
               memcmp(out->bytes + out->length - size, space, (size_t)size) == 0)
            out->length -= size;
        out->bytes[out->length] = '\0';
    }
    return prefix && rules->space_suffix ? append_space(n, out) : 0;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int wg__base64_encode(const char *bytes, int64_t length, wg__text *text) {
    const unsigned char *b = (const unsigned char *)bytes;
    for (int64_t i = 0; i < length; i += 3) {
        unsigned word = (unsigned)b[i] << 16 | (i + 1 < length ? (unsigned)b[i + 1] << 8 : 0) |
                        (i + 2 < length ? b[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63],
                        i + 1 < length ? digits[word >> 6 & 63] : '=',
                        i + 2 < length ? digits[word & 63] : '='};
        if (wg__text_append(text, four, 4) < 0)
            return -1;
    }
    return wg__text_append(text, "", 0);
}

int wg__base64_decode(const char *text, int64_t length, wg__text *bytes, const char *where) {
    for (int64_t i = 0; i < length; i += 4) {
        int padding = length - i < 4 || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
        unsigned word = 0;
        bool good = length - i >= 4 && (padding == 0 || i + 4 == length);
        for (int64_t j = 0; good && j < 4 - padding; j++) {
            const char c = text[i + j];
            const char *at = c ? strchr(digits, c) : NULL;
            int digit = at ? (int)(at - digits) : -1;
            good = digit >= 0;
            word |= (unsigned)digit << (18 - 6 * j);
        }
        if (!good)
            return wg_fail(WG_ERROR_FORMAT, where, "not base64 at byte %lld", (long long)i);
        char three[3] = {(char)(word >> 16), (char)(word >> 8), (char)word};
        if (wg__text_append(bytes, three, 3 - padding) < 0)
            return -1;
    }
    return wg__text_append(bytes, "", 0);
}
