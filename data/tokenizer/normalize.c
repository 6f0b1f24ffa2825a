/* What SentencePiece does to a text first. See normalize.h. */
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/normalize.h"
#include "tensor/internal.h"

#define SYMBOL_LENGTH 3
#define SHORT_GRAPHEME 6 /* bytes; from so many on Hugging Face looks at its characters */

static int64_t character_length(const char *text) {
    return utf8proc_utf8class[(unsigned char)*text];
}

int64_t wg__normalize_kept(const wg__normalizer *normalizer, const char *text, int64_t length,
                           int64_t *number) {
    const wg__strings *kept = &normalizer->kept;
    int64_t found = 0;
    if (length == 0 || !normalizer->kept_begins[(unsigned char)*text])
        return 0;
    uint64_t hash = WG__HASH_EMPTY;
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

/* ---- Characters: each step takes some bytes of the text and gives what stands for them ---- */

typedef struct step {
    const char *text;
    int64_t length;
    int64_t taken;
} step;

static step next_step(const wg__normalizer *n, const char *text, int64_t length) {
    int64_t taken, number;
    if ((taken = wg__normalize_kept(n, text, length, &number)) > 0)
        return (step){text, taken, taken};
    const char *replacement =
        n->by_grapheme ? NULL : wg__charsmap_find(&n->charsmap, text, length, false, &taken);
    if (replacement)
        return (step){replacement, (int64_t)strlen(replacement), taken};
    taken = character_length(text);
    return (step){text, taken, taken};
}

/* ---- Graphemes ---- */

static int64_t grapheme_length(const char *text, int64_t length) {
    utf8proc_int32_t previous, next, state = 0;
    int64_t at = utf8proc_iterate((const utf8proc_uint8_t *)text, length, &previous);
    while (at < length) {
        int64_t size = utf8proc_iterate((const utf8proc_uint8_t *)text + at, length - at, &next);
        if (utf8proc_grapheme_break_stateful(previous, next, &state))
            break;
        previous = next;
        at += size;
    }
    return at;
}

static int replace_grapheme(const wg__normalizer *n, const char *text, int64_t length,
                            wg__text *out) {
    int64_t matched, size;
    const char *replacement = NULL;
    if (length < SHORT_GRAPHEME)
        replacement = wg__charsmap_find(&n->charsmap, text, length, true, &matched);
    if (replacement)
        return wg__text_append(out, replacement, (int64_t)strlen(replacement));
    for (int64_t at = 0; at < length; at += size) {
        size = character_length(text + at);
        replacement = wg__charsmap_find(&n->charsmap, text + at, size, true, &matched);
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
        size = grapheme_length(text + at, length - at);
        if (replace_grapheme(n, text + at, size, out) < 0)
            return -1;
    }
    return 0;
}

/* ---- Spaces ---- */

static int append_space(const wg__normalizer *n, wg__text *out) {
    return n->plain_spaces ? wg__text_append(out, " ", 1)
                           : wg__text_append(out, WG__SPACE_SYMBOL, SYMBOL_LENGTH);
}

static int append_escaped(const wg__normalizer *n, const char *text, int64_t length,
                          wg__text *out) {
    int64_t start = 0;
    for (int64_t i = 0; i < length; i++) {
        if (text[i] != ' ' || n->plain_spaces)
            continue;
        if (wg__text_append(out, text + start, i - start) < 0 || append_space(n, out) < 0)
            return -1;
        start = i + 1;
    }
    return wg__text_append(out, text + start, length - start);
}

static bool is_space(step s) {
    return s.length == 1 && *s.text == ' ';
}

static void strip_end(const wg__normalizer *n, int64_t start, wg__text *out) {
    const char *space = n->plain_spaces ? " " : WG__SPACE_SYMBOL;
    int64_t size = n->plain_spaces ? 1 : SYMBOL_LENGTH;
    while (out->length - start >= size &&
           memcmp(out->bytes + out->length - size, space, (size_t)size) == 0)
        out->length -= size;
    out->bytes[out->length] = '\0';
}

static bool begins_with_space(const char *text, int64_t length) {
    return (length >= 1 && *text == ' ') ||
           (length >= SYMBOL_LENGTH && memcmp(text, WG__SPACE_SYMBOL, SYMBOL_LENGTH) == 0);
}

int wg__normalize(const wg__normalizer *n, const char *text, int64_t length, bool first,
                  wg__text *out) {
    const char *end = text + length;
    while (n->remove_spaces && text < end) {
        step s = next_step(n, text, end - text);
        if (!is_space(s))
            break;
        text += s.taken;
    }
    if (text == end)
        return 0;
    bool prefix = n->prefix == WG__PREFIX_ALWAYS ||
                  (n->prefix == WG__PREFIX_MISSING && !begins_with_space(text, end - text));
    prefix = prefix && (first || !n->prefix_first);
    int64_t start = out->length;
    if (prefix && !n->space_suffix && append_space(n, out) < 0)
        return -1;
    bool after_space = n->remove_spaces;
    while (text < end) {
        step s = next_step(n, text, end - text);
        for (; after_space && s.length > 0 && *s.text == ' '; s.length--)
            s.text++;
        if (s.length > 0) {
            if (append_escaped(n, s.text, s.length, out) < 0)
                return -1;
            after_space = n->remove_spaces && s.text[s.length - 1] == ' ';
        }
        text += s.taken;
    }
    if (n->remove_spaces)
        strip_end(n, start, out);
    return prefix && n->space_suffix ? append_space(n, out) : 0;
}

void wg__normalizer_clear(wg__normalizer *normalizer) {
    wg__charsmap_clear(&normalizer->charsmap);
    wg__strings_clear(&normalizer->kept);
}
