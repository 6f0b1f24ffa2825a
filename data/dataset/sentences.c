/* Where sentences end. See sentences.h.
 *
 *     "It is a truth." said Mr. J. Smith. "No!" cried he. He left...  And so on.
 *                    ^ small letter follows    ^ small       ^ end   ^ end      ^ end
 *                            ^ title
 *                               ^ initial  ^ end */
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "data/dataset/sentences.h"

#define LONGEST_ABBREVIATION 16

typedef struct line {
    const char *text;
    int64_t start, length;
} line;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

/* The length of the mark of a list that stands at `at`, or 0. */
static int64_t mark_at(const line *l, int64_t at, const char *const *marks) {
    for (; *marks; marks++) {
        int64_t size = (int64_t)strlen(*marks);
        if (size <= l->length - at && memcmp(l->text + at, *marks, (size_t)size) == 0)
            return size;
    }
    return 0;
}

static int64_t skip_marks(const line *l, int64_t at, const char *const *marks) {
    for (int64_t size; (size = mark_at(l, at, marks)) > 0;)
        at += size;
    return at;
}

static const char *const stops[] = {".", "?", "!", "\u2026", NULL};
static const char *const ideographic_stops[] = {"\u3002", "\uff01", "\uff1f", NULL};
/* The first bytes of stops, so that all others are passed over quickly. */
static bool may_stop(char c) {
    return c == '.' || c == '?' || c == '!' || c == '\xe2' || c == '\xe3' || c == '\xef';
}

static const char *const closers[] = {"\"",     "'",      ")",      "]",      "}",      "*", "_",
                                      "\u201d", "\u2019", "\u00bb", "\u300d", "\u300f", NULL};
static const char *const openers[] = {"\"",     "'",      "(",      "[", "{",      "*",      "_",
                                      "\u201c", "\u2018", "\u00ab", "-", "\u2014", "\u2013", NULL};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_ascii_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool begins_small(const line *l, int64_t at) {
    at = skip_marks(l, at, openers);
    if (at >= l->length)
        return false;
    int32_t c;
    if (utf8proc_iterate((const utf8proc_uint8_t *)l->text + at, l->length - at, &c) <= 0)
        return false;
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LL;
}

/* A number in digits or Roman capitals. */
static bool begins_number(const line *l, int64_t at) {
    return at < l->length && (is_digit(l->text[at]) || strchr("IVXLC", l->text[at]));
}

static bool is_in(const char *word, const char *const *list) {
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* What stands before names, whatever follows. */
static const char *const titles[] = {"mr",  "mrs", "ms",   "messrs", "dr",  "prof", "rev",
                                     "hon", "st",  "capt", "col",    "gen", "lt",   "sgt",
                                     "maj", "adm", "gov",  "pres",   "sen", "mme",  "mlle",
                                     "mt",  "ft",  "vs",   "viz",    "cf",  NULL};

/* What stands before numbers; a sentence may as well end in them ("No."). */
static const char *const counters[] = {"no",   "nos",   "vol",  "vols", "p",   "pp",   "ch",
                                       "chap", "fig",   "figs", "sec",  "art", "prop", "obs",
                                       "exp",  "exper", "ax",   "def",  "jan", "feb",  "apr",
                                       "aug",  "sept",  "oct",  "nov",  "dec", NULL};

/* The letters and full stops before `stop`, in lower case; "" if there are none or too many. */
static void word_before(const line *l, int64_t stop, char word[LONGEST_ABBREVIATION]) {
    int64_t begin = stop;
    while (begin > l->start && (is_ascii_letter(l->text[begin - 1]) || l->text[begin - 1] == '.'))
        begin--;
    word[0] = '\0';
    bool whole = begin == l->start || (unsigned char)l->text[begin - 1] < 0x80;
    if (!whole || stop - begin >= LONGEST_ABBREVIATION)
        return;
    for (int64_t i = begin; i < stop; i++)
        word[i - begin] = (char)(is_ascii_letter(l->text[i]) ? l->text[i] | 0x20 : l->text[i]);
    word[stop - begin] = '\0';
}

/* "e.g", "u.s.a": single letters between full stops. */
static bool is_dotted(const char *word) {
    size_t length = strlen(word);
    if (length < 3 || length % 2 == 0)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((word[i] == '.') != (i % 2 == 1))
            return false;
    return true;
}

/* "1." at the beginning: the number of an item, which belongs to what follows. */
static bool is_item_number(const line *l, int64_t stop) {
    int64_t i = l->start;
    while (i < stop && is_digit(l->text[i]))
        i++;
    return i == stop && stop > l->start;
}

/* Whether the full stop at `stop` is part of an abbreviation, given where the next word begins. */
static bool is_abbreviation(const line *l, int64_t stop, int64_t next) {
    char word[LONGEST_ABBREVIATION];
    word_before(l, stop, word);
    bool initial =
        word[0] != '\0' && word[1] == '\0' && l->text[stop - 1] != 'I' && l->text[stop - 1] < 'a';
    return initial || is_dotted(word) || is_in(word, titles) ||
           (is_in(word, counters) && begins_number(l, next)) || is_item_number(l, stop);
}

int64_t wg__sentence_end(const char *text, int64_t start, int64_t length) {
    while (start < length && is_blank(text[start]))
        start++;
    line l = {text, start, length};
    for (int64_t i = start; i < length; i++) {
        if (!may_stop(text[i]))
            continue;
        if (mark_at(&l, i, ideographic_stops))
            return skip_marks(&l, skip_marks(&l, i, ideographic_stops), closers);
        int64_t after = skip_marks(&l, i, stops);
        if (after == i)
            continue;
        int64_t end = skip_marks(&l, after, closers), next = end;
        while (next < length && is_blank(text[next]))
            next++;
        if (next == length)
            return end;
        bool single = text[i] == '.' && after == i + 1;
        if (next > end && !begins_small(&l, next) && !(single && is_abbreviation(&l, i, next)))
            return end;
        i = end - 1;
    }
    return length;
}
