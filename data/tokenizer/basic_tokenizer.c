/* BERT's BasicTokenizer. See kind.h.
 *
 * ASCII words take a fast path with a table of 128 character classes. Other words are decoded to
 * code points and processed in the steps of the published tokenizer, including its oddities, since
 * published models were trained with them. */
#include <utf8proc.h>

#include "data/tokenizer/kind.h"
#include "base/array.h"

/* order_marks sorts at most this number of consecutive marks; no vocabulary has longer words. */
#define MARKS_ORDERED 1024

enum ascii_class { DROPPED, SPACE, LETTER, PUNCTUATION };

typedef struct walk {
    wg__basic_rules rules;
    wg__word_visitor visit;
    void *context;
    char *word; /* the bytes of the current word */
    int64_t word_capacity;
    int32_t *characters; /* the code points since the last space */
    int64_t character_count, character_capacity;
    int32_t *folded; /* the code points after folding */
    int64_t folded_capacity;
} walk;

static enum ascii_class class_of_ascii(unsigned char c) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        return SPACE;
    if (c < ' ' || c == 127)
        return DROPPED;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter ? LETTER : PUNCTUATION;
}

bool wg__is_ideograph(int32_t c) {
    return wg__is_within(c, 0x4E00, 0x9FFF) || wg__is_within(c, 0x3400, 0x4DBF) ||
           wg__is_within(c, 0x20000, 0x2A6DF) || wg__is_within(c, 0x2A700, 0x2B73F) ||
           wg__is_within(c, 0x2B740, 0x2B81F) || wg__is_within(c, 0x2B820, 0x2CEAF) ||
           wg__is_within(c, 0xF900, 0xFAFF) || wg__is_within(c, 0x2F800, 0x2FA1F);
}

/* Zs by the published rule; also Zl and Zp, since Python's split() splits there. */
static bool is_space(int32_t c, utf8proc_category_t category) {
    return c == '\t' || c == '\n' || c == '\r' || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

static bool is_punctuation(int32_t c) {
    if (c < 128)
        return class_of_ascii((unsigned char)c) == PUNCTUATION;
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

wg__basic_class wg__basic_class_of(int32_t c) {
    if (is_space(c, utf8proc_category(c)))
        return WG__BASIC_SPACE;
    return is_punctuation(c) || wg__is_ideograph(c) ? WG__BASIC_ALONE : WG__BASIC_WITHIN;
}

/* Unicode's Cased without Case_Ignorable. */
static bool is_cased(int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT || c == 0xAA || c == 0xBA ||
           wg__is_within(c, 0x2160, 0x217F) || wg__is_within(c, 0x24B6, 0x24E9) ||
           wg__is_within(c, 0x1F130, 0x1F149) || wg__is_within(c, 0x1F150, 0x1F169) ||
           wg__is_within(c, 0x1F170, 0x1F189);
}

/* Unicode's Case_Ignorable: marks, modifiers, and punctuation within words (the apostrophe). */
static bool is_case_ignorable(int32_t c) {
    static const int32_t within_words[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,
                                           0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                           0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof within_words / sizeof within_words[0]; i++)
        if (c == within_words[i])
            return true;
    utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
           category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
           category == UTF8PROC_CATEGORY_SK;
}

int32_t wg__basic_lower(const int32_t *characters, int64_t count, int64_t at) {
    enum { CAPITAL_SIGMA = 0x3A3, SIGMA = 0x3C3, FINAL_SIGMA = 0x3C2 };
    if (characters[at] != CAPITAL_SIGMA)
        return utf8proc_tolower(characters[at]);
    /* A sigma ends a word if, ignoring case-ignorable characters, a cased letter precedes it and
     * none follows (The Unicode Standard, table 3-17). */
    int64_t before = at - 1, after = at + 1;
    while (before >= 0 && is_case_ignorable(characters[before]))
        before--;
    while (after < count && is_case_ignorable(characters[after]))
        after++;
    return before >= 0 && is_cased(characters[before]) &&
                   (after == count || !is_cased(characters[after]))
               ? FINAL_SIGMA
               : SIGMA;
}

/* Canonical ordering: a stable sort of a run of marks by combining class. Accents (Mn) are removed
 * already, and spacing marks with a class are rare, so insertion sort is enough. */
static void order_marks(int32_t *marks, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        int32_t mark = marks[i];
        int class = utf8proc_get_property(mark)->combining_class;
        int64_t j = i;
        for (; j > 0 && utf8proc_get_property(marks[j - 1])->combining_class > class; j--)
            marks[j] = marks[j - 1];
        marks[j] = mark;
    }
}

/* Lower-cases, decomposes (NFD) and drops accents: `characters` to `folded`. Returns the number of
 * code points, or -1. */
static int64_t fold(walk *w) {
    if (wg__reserve(&w->folded, 0, &w->folded_capacity, w->character_count * 4, sizeof *w->folded) <
        0)
        return -1;
    int32_t *folded = w->folded;
    int64_t count = 0, run = 0;
    for (int64_t i = 0; i < w->character_count; i++) {
        int32_t c = w->characters[i];
        /* huggingface/tokenizers lower-cases after dropping accents (below). The full mapping of
         * U+0130 is i and an accent, which is dropped. */
        if (!w->rules.huggingface)
            c = wg__basic_lower(w->characters, w->character_count, i);
        int32_t parts[4] = {c}; /* the canonical decomposition */
        const int64_t part_count =
            c < 0xC0 ? 1 : utf8proc_decompose_char(c, parts, 4, UTF8PROC_DECOMPOSE, NULL);
        for (int64_t k = 0; k < part_count; k++) {
            const utf8proc_property_t *property = utf8proc_get_property(parts[k]);
            if (property->combining_class == 0 || count - run == MARKS_ORDERED) {
                order_marks(folded + run, count - run);
                run = count;
            }
            if (property->category == UTF8PROC_CATEGORY_MN)
                continue;
            folded[count++] = parts[k];
            if (property->combining_class == 0)
                run = count;
        }
    }
    order_marks(folded + run, count - run);
    for (int64_t i = 0; w->rules.huggingface && i < count; i++)
        folded[i] = utf8proc_tolower(folded[i]);
    return count;
}

/* Visits the words in the characters since the last space. */
static int flush(walk *w) {
    if (w->character_count == 0)
        return 0;
    const int32_t *characters = w->characters;
    int64_t count = w->character_count;
    if (!w->rules.cased) {
        count = fold(w);
        characters = w->folded;
    }
    w->character_count = 0;
    /* Splits at punctuation. */
    if (count < 0 || wg__reserve(&w->word, 0, &w->word_capacity, count * 4, 1) < 0)
        return -1;
    int64_t length = 0, in_word = 0;
    int status = 0;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        bool punctuation = is_punctuation(characters[i]);
        if (punctuation && in_word > 0) {
            status = w->visit(w->context, w->word, length, in_word);
            length = in_word = 0;
        }
        length += utf8proc_encode_char(characters[i], (utf8proc_uint8_t *)w->word + length);
        in_word++;
        if (punctuation && status >= 0) {
            status = w->visit(w->context, w->word, length, 1);
            length = in_word = 0;
        }
    }
    if (in_word > 0 && status >= 0)
        status = w->visit(w->context, w->word, length, in_word);
    return status;
}

/* Processes characters from the beginning of a word to the next space. Returns the end, or -1. */
static int64_t walk_unicode(walk *w, const char *text, int64_t at, int64_t length) {
    for (;;) {
        if (at == length)
            return flush(w) < 0 ? -1 : at;
        int32_t c;
        utf8proc_ssize_t size =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, length - at, &c);
        if (size <= 0)
            return wg_fail(WG_ERROR_FORMAT, "tokenizer", "the text is not UTF-8 at byte %lld",
                           (long long)at);
        at += size;
        utf8proc_category_t category = utf8proc_category(c);
        if (is_space(c, category))
            return flush(w) < 0 ? -1 : at;
        if (c == 0 || c == 0xFFFD || category == UTF8PROC_CATEGORY_CC ||
            category == UTF8PROC_CATEGORY_CF ||
            (w->rules.huggingface && category == UTF8PROC_CATEGORY_CO))
            continue;
        const bool alone =
            wg__is_ideograph(c) && !(w->rules.huggingface && wg__is_within(c, 0x2B820, 0x2B91F));
        if ((alone && flush(w) < 0) ||
            wg__append(&w->characters, &w->character_count, &w->character_capacity, &c, sizeof c) <
                0 ||
            (alone && flush(w) < 0))
            return -1;
    }
}

/* Processes a stretch of ASCII without spaces. */
static int walk_ascii(walk *w, const unsigned char *classes, const char *text, int64_t length) {
    if (wg__reserve(&w->word, 0, &w->word_capacity, length, 1) < 0)
        return -1;
    char *word = w->word;
    int64_t in_word = 0;
    int status = 0;
    for (int64_t i = 0; i < length && status >= 0; i++) {
        char c = text[i];
        enum ascii_class class = classes[(unsigned char)c];
        if (class == LETTER) {
            word[in_word++] = !w->rules.cased && c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
        } else if (class == PUNCTUATION) {
            if (in_word > 0)
                status = w->visit(w->context, word, in_word, in_word);
            in_word = 0;
            if (status >= 0)
                status = w->visit(w->context, &c, 1, 1);
        }
    }
    if (in_word > 0 && status >= 0)
        status = w->visit(w->context, word, in_word, in_word);
    return status;
}

int wg__basic_tokenize(const char *text, int64_t length, wg__basic_rules rules,
                       wg__word_visitor visit, void *context) {
    walk w = {.rules = rules, .visit = visit, .context = context};
    unsigned char classes[128];
    for (int c = 0; c < 128; c++)
        classes[c] = (unsigned char)class_of_ascii((unsigned char)c);
    int status = 0;
    for (int64_t at = 0; status >= 0 && at < length;) {
        int64_t end = at;
        while (end < length && (unsigned char)text[end] < 128 &&
               classes[(unsigned char)text[end]] != SPACE)
            end++;
        if (end < length && (unsigned char)text[end] >= 128) {
            at = walk_unicode(&w, text, at, length);
            status = at < 0 ? -1 : 0;
        } else {
            status = end > at ? walk_ascii(&w, classes, text + at, end - at) : 0;
            at = end + 1;
        }
    }
    wg__free(w.word);
    wg__free(w.characters);
    wg__free(w.folded);
    return status < 0 ? -1 : 0;
}
