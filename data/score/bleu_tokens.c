/* A segment as BLEU counts it: see bleu_tokens.h. Each step is one of sacreBLEU's replacements, in
 * its order; the bytes of a character beyond ASCII are neither digits nor punctuation, so that
 * bytes do where it looks at characters. */
#include "data/score/bleu_tokens.h"

#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/basic_tokenizer.h"
#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

/* A text and what a step makes of it, which take turns. */
typedef struct texts {
    wg__text now, next;
} texts;

static void turn(texts *t) {
    const wg__text made = t->next;
    t->next = t->now;
    t->now = made;
    t->next.length = 0;
}

static int append(texts *t, const char *bytes, int64_t length) {
    return wg__text_append(&t->next, bytes, length);
}

/* ---- Characters ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_point(char c) {
    return c == '.' || c == ',';
}

/* [\{-\~\[-\` -\&\(-\+\:-\@\/]: ASCII's punctuation but ' , - . and the space as well. */
static bool stands_apart(char c) {
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/* What Python's split() parts at: White_Space and four more separators. */
static int64_t space_length(const char *text, int64_t length) {
    return *text >= 0x1c && *text <= 0x1f ? 1 : wg__space_length(text, length);
}

/* ---- Steps ---- */

static int append_character(texts *t, int32_t character) {
    utf8proc_uint8_t bytes[4];
    return append(t, (const char *)bytes, utf8proc_encode_char(character, bytes));
}

/* Unicode's lower case as Python's lower() has it; `characters` are those of the text. */
static int lower(texts *t, const int32_t *characters, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const bool dotted = characters[i] == 0x130; /* I with a dot becomes i and the dot */
        if (append_character(t, dotted ? 'i' : wg__basic_lower(characters, count, i)) < 0 ||
            (dotted && append_character(t, 0x307) < 0))
            return -1;
    }
    turn(t);
    return 0;
}

static int make_lower(texts *t) {
    int32_t *characters = wg__alloc((size_t)(t->now.length + 1) * sizeof *characters);
    if (!characters)
        return -1;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)t->now.bytes;
    int64_t count = 0;
    for (int64_t at = 0; at < t->now.length;)
        at += utf8proc_iterate(bytes + at, t->now.length - at, &characters[count++]);
    const int result = lower(t, characters, count);
    wg__free(characters);
    return result;
}

/* rstrip(), which is known from its first space on. */
static void strip_end(wg__text *text) {
    int64_t end = 0;
    for (int64_t at = 0; at < text->length;) {
        const int64_t space = space_length(text->bytes + at, text->length - at);
        at += space > 0 ? space : 1;
        end = space > 0 ? end : at;
    }
    text->length = end;
    text->bytes[end] = '\0';
}

static int replace(texts *t, const char *from, const char *to) {
    const char *rest = t->now.bytes, *end = rest + t->now.length;
    const size_t length = strlen(from);
    for (const char *found; (found = memmem(rest, (size_t)(end - rest), from, length));
         rest = found + length)
        if (append(t, rest, found - rest) < 0 || append(t, to, (int64_t)strlen(to)) < 0)
            return -1;
    if (append(t, rest, end - rest) < 0)
        return -1;
    turn(t);
    return 0;
}

static int replace_marks(texts *t) {
    static const char *const marks[][2] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                           {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                           {"&gt;", ">"}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (replace(t, marks[i][0], marks[i][1]) < 0)
            return -1;
    return 0;
}

/* Punctuation stands apart, between two spaces of its own. */
static int part_punctuation(texts *t) {
    for (int64_t i = 0; i < t->now.length; i++) {
        const char spaced[] = {' ', t->now.bytes[i], ' '};
        const bool apart = stands_apart(spaced[1]);
        if (append(t, apart ? spaced : spaced + 1, apart ? 3 : 1) < 0)
            return -1;
    }
    turn(t);
    return 0;
}

/* Two neighbours that a step looks for, and what becomes of them. */
typedef struct rule {
    bool (*matches)(char first, char second);
    bool space_before, space_after; /* of both */
} rule;

static bool point_after_no_digit(char first, char second) {
    return !is_digit(first) && is_point(second);
}

static bool point_before_no_digit(char first, char second) {
    return is_point(first) && !is_digit(second);
}

static bool dash_after_digit(char first, char second) {
    return is_digit(first) && second == '-';
}

/* Parts every two neighbours that match, none of them twice. */
static int part_neighbours(texts *t, const rule *rule) {
    const char *bytes = t->now.bytes;
    for (int64_t i = 0; i < t->now.length;) {
        const bool matches = i + 1 < t->now.length && rule->matches(bytes[i], bytes[i + 1]);
        const char parted[] = {' ', bytes[i], ' ', bytes[i + 1], ' '};
        const int64_t first = matches && rule->space_before ? 0 : 1;
        const int64_t end = !matches ? 2 : rule->space_after ? 5 : 4;
        if (append(t, parted + first, end - first) < 0)
            return -1;
        i += matches ? 2 : 1;
    }
    turn(t);
    return 0;
}

/* Every step but lower case; the text stands between spaces while it is parted. */
static int part(texts *t) {
    static const rule rules[] = {{point_after_no_digit, false, true},
                                 {point_before_no_digit, true, false},
                                 {dash_after_digit, false, true}};
    strip_end(&t->now);
    if (replace_marks(t) < 0 || append(t, " ", 1) < 0 ||
        append(t, t->now.bytes, t->now.length) < 0 || append(t, " ", 1) < 0)
        return -1;
    turn(t);
    if (part_punctuation(t) < 0)
        return -1;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (part_neighbours(t, &rules[i]) < 0)
            return -1;
    return 0;
}

/* ---- Tokens ---- */

static int add_token(wg__strings *words, const char *word, int64_t length,
                     wg__bleu_tokens *tokens) {
    const int64_t id = wg__strings_add(words, word, length);
    int32_t *ids = id < 0 ? NULL
                          : wg__grow(tokens->ids, tokens->count, &tokens->capacity,
                                     tokens->count + 1, sizeof *ids);
    if (!ids)
        return -1;
    tokens->ids = ids;
    ids[tokens->count++] = (int32_t)id;
    return 0;
}

static int split(const wg__text *text, wg__strings *words, wg__bleu_tokens *tokens) {
    int64_t begin = 0;
    for (int64_t at = 0; at <= text->length;) {
        const int64_t space =
            at == text->length ? 1 : space_length(text->bytes + at, text->length - at);
        if (space > 0 && at > begin &&
            add_token(words, text->bytes + begin, at - begin, tokens) < 0)
            return -1;
        at += space > 0 ? space : 1;
        begin = space > 0 ? at : begin;
    }
    return 0;
}

int wg__bleu_tokenize(const char *text, bool lowercase, wg__strings *words,
                      wg__bleu_tokens *tokens) {
    const int64_t length = (int64_t)strlen(text);
    if (wg__utf8_check(text, length, "a segment", "bleu") < 0)
        return -1;
    texts t = {0};
    int result = wg__text_append(&t.now, text, length);
    if (result == 0)
        result = append(&t, "", 0); /* no step makes NULL of an empty text */
    if (result == 0 && lowercase)
        result = make_lower(&t);
    if (result == 0)
        result = part(&t);
    if (result == 0)
        result = split(&t.now, words, tokens);
    wg__free(t.now.bytes);
    wg__free(t.next.bytes);
    return result;
}
