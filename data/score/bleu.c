/* BLEU: tokens, n-grams and the score. See score.h.
 *
 * Tokenizing applies sacreBLEU's replacements in sacreBLEU's order. The replacements are defined on
 * characters. This code works on bytes, with the same results: the bytes of a character beyond
 * ASCII are neither digits nor punctuation. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/array.h"
#include "data/score/score.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"

/* The current text, and the buffer for the result of the next step. */
typedef struct texts {
    wg__text current, next;
} texts;

static void swap(texts *t) {
    const wg__text result = t->next;
    t->next = t->current;
    t->current = result;
    t->next.length = 0;
}

/* The length of a character of white space for Python's split(), or 0: White_Space and four more
 * separators. */
static int64_t space_length(const char *text, int64_t length) {
    return *text >= 0x1c && *text <= 0x1f ? 1 : wg__space_length(text, length);
}

/* ---- Tokens: steps ---- */

/* The characters that "zh" separates, as in sacreBLEU's table: most of CJK up to U+FFFF. The first
 * range is an error of that table, but published scores include it. */
static bool is_chinese(int32_t c) {
    static const int32_t ranges[][2] = {
        {0x2001, 0x2A6D}, {0x2E80, 0x2FDF}, {0x2FF0, 0x303F}, {0x3100, 0x312F}, {0x31A0, 0x31BF},
        {0x31C0, 0x31EF}, {0x3200, 0x33FF}, {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D},
        {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

/* Unicode's lower case as Python's lower(). */
static int make_lower(texts *t) {
    int32_t *characters = wg__alloc_array(t->current.length + 1, sizeof *characters);
    if (!characters)
        return -1;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)t->current.bytes;
    int64_t count = 0;
    for (int64_t at = 0; at < t->current.length;)
        at += utf8proc_iterate(bytes + at, t->current.length - at, &characters[count++]);
    int result = 0;
    for (int64_t i = 0; result == 0 && i < count; i++) {
        /* I with a dot becomes i and the dot. */
        const int32_t c = characters[i] == 0x130 ? 'i' : wg__basic_lower(characters, count, i);
        utf8proc_uint8_t letter[4];
        result = wg__text_append(&t->next, (const char *)letter, utf8proc_encode_char(c, letter));
        if (result == 0 && characters[i] == 0x130)
            result = wg__text_append(&t->next, "\u0307", 2);
    }
    swap(t);
    wg__free(characters);
    return result;
}

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

static int replace_entities(texts *t) {
    static const char *const entities[][2] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                              {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                              {"&gt;", ">"}};
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        const char *from = entities[i][0];
        const char *to = entities[i][1];
        const char *rest = t->current.bytes, *end = rest + t->current.length;
        const size_t length = strlen(from);
        for (const char *found; (found = memmem(rest, (size_t)(end - rest), from, length));
             rest = found + length)
            if (wg__text_append(&t->next, rest, found - rest) < 0 ||
                wg__text_append(&t->next, to, (int64_t)strlen(to)) < 0)
                return -1;
        if (wg__text_append(&t->next, rest, end - rest) < 0)
            return -1;
        swap(t);
    }
    return 0;
}

/* Puts a space before and after each Chinese character, or, if `all`, each character. */
static int separate(texts *t, bool all) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)t->current.bytes;
    for (int64_t at = 0; at < t->current.length;) {
        int32_t c;
        const int64_t size = utf8proc_iterate(bytes + at, t->current.length - at, &c);
        const bool separates = all || is_chinese(c);
        if ((separates && wg__text_append(&t->next, " ", 1) < 0) ||
            wg__text_append(&t->next, t->current.bytes + at, size) < 0 ||
            (separates && wg__text_append(&t->next, " ", 1) < 0))
            return -1;
        at += size;
    }
    swap(t);
    return 0;
}

/* Makes each punctuation character, point, comma and dash a token, except within numbers. */
static int split_punctuation(texts *t) {
    /* A space before and after each space and each punctuation character of ASCII except ' , - . in
     * mteval: [\{-\~\[-\` -\&\(-\+\:-\@\/]. */
    for (int64_t i = 0; i < t->current.length; i++) {
        const char c = t->current.bytes[i], spaced[] = {' ', c, ' '};
        const bool separates = (c >= '{' && c <= '~') || (c >= '[' && c <= '`') ||
                               (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
                               (c >= ':' && c <= '@') || c == '/';
        if (wg__text_append(&t->next, separates ? spaced : spaced + 1, separates ? 3 : 1) < 0)
            return -1;
    }
    swap(t);
    /* Three rules for two neighbours, from the left: a point or comma without a digit before it, a
     * point or comma without a digit after it, and a dash after a digit. They get spaces around the
     * point, comma or dash. */
    for (int rule = 0; rule < 3; rule++) {
        const char *bytes = t->current.bytes;
        for (int64_t i = 0; i < t->current.length;) {
            const char a = bytes[i], b = bytes[i + 1]; /* the text is NUL-terminated */
            const bool a_digit = a >= '0' && a <= '9', a_point = a == '.' || a == ',';
            const bool b_digit = b >= '0' && b <= '9', b_point = b == '.' || b == ',';
            const bool rules[] = {!a_digit && b_point, a_point && !b_digit, a_digit && b == '-'};
            const bool matches = i + 1 < t->current.length && rules[rule];
            const char spaced[] = {' ', a, ' ', b, ' '};
            const int64_t first = matches && rule == 1 ? 0 : 1;
            const int64_t end = !matches ? 2 : rule == 1 ? 4 : 5;
            if (wg__text_append(&t->next, spaced + first, end - first) < 0)
                return -1;
            i += matches ? 2 : 1;
        }
        swap(t);
    }
    return 0;
}

static int apply_steps(texts *t, wg_bleu_tokens tokens) {
    switch (tokens) {
    case WG_BLEU_ZH: { /* no space at the ends: a point at an end may stay with its number */
        strip_end(&t->current);
        /* Python's lstrip(). */
        int64_t begin = 0, space;
        while (begin < t->current.length &&
               (space = space_length(t->current.bytes + begin, t->current.length - begin)) > 0)
            begin += space;
        t->current.length -= begin;
        memmove(t->current.bytes, t->current.bytes + begin, (size_t)t->current.length + 1);
        return separate(t, false) < 0 ? -1 : split_punctuation(t);
    }
    case WG_BLEU_CHAR:
        return separate(t, true);
    default: /* 13a: the rules need a space at each end of the text */
        strip_end(&t->current);
        if (replace_entities(t) < 0 || wg__text_append(&t->next, " ", 1) < 0 ||
            wg__text_append(&t->next, t->current.bytes, t->current.length) < 0 ||
            wg__text_append(&t->next, " ", 1) < 0)
            return -1;
        swap(t);
        return split_punctuation(t);
    }
}

static int split(const wg__text *text, wg__strings *words, wg_token_list *tokens) {
    int64_t begin = 0;
    for (int64_t at = 0; at <= text->length;) {
        const int64_t space =
            at == text->length ? 1 : space_length(text->bytes + at, text->length - at);
        if (space > 0 && at > begin) {
            const int64_t id = wg__strings_add(words, text->bytes + begin, at - begin);
            if (id < 0 || wg_token_list_append(tokens, (int32_t)id) < 0)
                return -1;
        }
        at += space > 0 ? space : 1;
        begin = space > 0 ? at : begin;
    }
    return 0;
}

int wg__bleu_tokenize(const char *text, wg_bleu_rules rules, wg__strings *words,
                      wg_token_list *tokens) {
    const int64_t length = (int64_t)strlen(text);
    if (wg__utf8_check(text, length, "a segment", "bleu") < 0)
        return -1;
    texts t = {0};
    /* Appending "" makes `bytes` not NULL, even in an empty text. */
    const bool done = wg__text_append(&t.current, text, length) == 0 &&
                      wg__text_append(&t.next, "", 0) == 0 &&
                      (!rules.lowercase || make_lower(&t) == 0) &&
                      apply_steps(&t, rules.tokens) == 0 && split(&t.current, words, tokens) == 0;
    wg__free(t.current.bytes);
    wg__free(t.next.bytes);
    return done ? 0 : -1;
}

/* An n-gram: `order` consecutive tokens. */
typedef struct gram {
    const int32_t *tokens;
    int order;
} gram;

static int compare(const void *left, const void *right) {
    const gram *a = left, *b = right;
    for (int i = 0; i < a->order; i++)
        if (a->tokens[i] != b->tokens[i])
            return a->tokens[i] < b->tokens[i] ? -1 : 1;
    return 0;
}

/* Writes the sorted n-grams of a text, and returns their number; there is at most one per token. */
static int64_t sort_grams(const wg_token_list *text, int order, gram *grams) {
    const int64_t count = text->count < order ? 0 : text->count - order + 1;
    for (int64_t i = 0; i < count; i++)
        grams[i] = (gram){text->ids + i, order};
    if (count > 0)
        qsort(grams, (size_t)count, sizeof *grams, compare);
    return count;
}

static int count_grams(wg__bleu *bleu, const wg_token_list *hypothesis,
                       const wg_token_list *reference) {
    gram *grams = wg__alloc_array(hypothesis->count + reference->count + 1, sizeof *grams);
    if (!grams)
        return -1;
    gram *others = grams + hypothesis->count;
    for (int order = 1; order <= WG_BLEU_ORDER; order++) {
        const int64_t ours = sort_grams(hypothesis, order, grams);
        const int64_t theirs = sort_grams(reference, order, others);
        bleu->totals[order - 1] += ours;
        /* Counts the n-grams in both sorted lists, with repetitions. */
        for (int64_t i = 0, j = 0; i < ours && j < theirs;) {
            const int comparison = compare(&grams[i], &others[j]);
            bleu->matches[order - 1] += comparison == 0;
            i += comparison <= 0;
            j += comparison >= 0;
        }
    }
    bleu->hypothesis_tokens += hypothesis->count;
    bleu->reference_tokens += reference->count;
    wg__free(grams);
    return 0;
}

int wg__bleu_add(wg__bleu *bleu, const char *hypothesis, const char *reference,
                 wg_bleu_rules rules) {
    if (!hypothesis || !reference)
        return -1;
    wg__strings words = {0};
    wg_token_list ours = {0}, theirs = {0};
    int result = -1;
    if (wg__bleu_tokenize(hypothesis, rules, &words, &ours) == 0 &&
        wg__bleu_tokenize(reference, rules, &words, &theirs) == 0)
        result = count_grams(bleu, &ours, &theirs);
    wg__strings_clear(&words);
    wg_token_list_free(&ours);
    wg_token_list_free(&theirs);
    return result;
}

wg__bleu_score wg__bleu_measure(const wg__bleu *bleu) {
    wg__bleu_score result = {.brevity_penalty = 1};
    const double ours = (double)bleu->hypothesis_tokens, theirs = (double)bleu->reference_tokens;
    if (ours < theirs)
        result.brevity_penalty = ours > 0 ? exp(1 - theirs / ours) : 0;
    if (bleu->matches[0] == 0)
        return result;
    double sum = 0, smoothing = 1;
    for (int n = 0; n < WG_BLEU_ORDER; n++) {
        if (bleu->totals[n] == 0) /* all hypotheses are too short: the mean of logarithms is -inf */
            return result;
        if (bleu->matches[n] == 0)
            smoothing *= 2;
        const double matches = bleu->matches[n] > 0 ? (double)bleu->matches[n] : 1 / smoothing;
        result.precisions[n] = 100 * matches / (double)bleu->totals[n];
        sum += log(result.precisions[n]);
    }
    result.score = result.brevity_penalty * exp(sum / WG_BLEU_ORDER);
    return result;
}

const char *wg__bleu_signature(wg_bleu_rules rules) {
    static const char *const signatures[WG_BLEU_TOKENS_COUNT][2] = {
        [WG_BLEU_13A] = {"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp",
                         "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp"},
        [WG_BLEU_ZH] = {"nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp",
                        "nrefs:1|case:lc|eff:no|tok:zh|smooth:exp"},
        [WG_BLEU_CHAR] = {"nrefs:1|case:mixed|eff:no|tok:char|smooth:exp",
                          "nrefs:1|case:lc|eff:no|tok:char|smooth:exp"},
    };
    return signatures[rules.tokens][rules.lowercase];
}
