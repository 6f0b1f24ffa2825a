/* Answers compared as by SQuAD's official evaluate-v1.1.py. See score.h. */
#include "data/score/score.h"

#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/basic_tokenizer.h"
#include "tensor/internal.h"

/* ---- Characters, as Python classifies them ---- */

static bool is_space(int32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
           utf8proc_category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

/* Python's \w without the underscore: letters and numbers, no marks. */
static bool is_of_word(int32_t c) {
    const utf8proc_category_t category = utf8proc_category(c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

static bool is_punctuation(int32_t c) {
    return c > 0 && c < 128 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c);
}

/* ---- Normalising ---- */

/* The code points of a text of `length` bytes, without invalid bytes. Returns how many. */
static int64_t decode(const char *text, int64_t length, int32_t *characters) {
    int64_t count = 0;
    for (int64_t at = 0; at < length;) {
        int32_t c;
        const utf8proc_ssize_t size =
            utf8proc_iterate((const utf8proc_uint8_t *)text + at, length - at, &c);
        at += size > 0 ? size : 1;
        if (size > 0)
            characters[count++] = c;
    }
    return count;
}

/* Lower-cases and drops punctuation; `lower` has room for twice as many characters. */
static int64_t fold(const int32_t *characters, int64_t count, int32_t *lower) {
    enum { CAPITAL_I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };
    int64_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        if (is_punctuation(characters[i]))
            continue;
        lower[length++] = wg__basic_lower(characters, count, i);
        if (characters[i] == CAPITAL_I_WITH_DOT)
            lower[length++] = DOT_ABOVE;
    }
    return length;
}

static bool is_article(const int32_t *word, int64_t length) {
    return (length == 1 && word[0] == 'a') || (length == 2 && word[0] == 'a' && word[1] == 'n') ||
           (length == 3 && word[0] == 't' && word[1] == 'h' && word[2] == 'e');
}

/* Replaces each run of letters and numbers that is an article by spaces. */
static void drop_articles(int32_t *characters, int64_t count) {
    for (int64_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && is_of_word(characters[end]);)
            end++;
        if (is_article(characters + first, end - first))
            for (int64_t i = first; i < end; i++)
                characters[i] = ' ';
        end += end == first;
    }
}

/* Writes the words, with one space between them. */
static void encode(const int32_t *characters, int64_t count, char *text) {
    int64_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        if (is_space(characters[i]))
            continue;
        if (i > 0 && is_space(characters[i - 1]) && length > 0)
            text[length++] = ' ';
        length += utf8proc_encode_char(characters[i], (utf8proc_uint8_t *)text + length);
    }
    text[length] = '\0';
}

char *wg__squad_normalize(const char *text) {
    const int64_t length = (int64_t)strlen(text);
    int32_t *characters = wg__alloc((size_t)(3 * length + 1) * sizeof *characters);
    char *normal = wg__alloc((size_t)(8 * length + 1)); /* a space and four bytes for each */
    if (characters && normal) {
        int32_t *lower = characters + length;
        const int64_t count = fold(characters, decode(text, length, characters), lower);
        drop_articles(lower, count);
        encode(lower, count, normal);
    } else {
        wg__free(normal);
        normal = NULL;
    }
    wg__free(characters);
    return normal;
}

/* ---- Scores ---- */

static int64_t count_words(const char *text) {
    int64_t count = *text != '\0';
    for (; *text; text++)
        count += *text == ' ';
    return count;
}

/* Finds a word in a normalised text and overwrites it with dots, so that it is found only once. */
static bool take_word(char *words, const char *word, int64_t length) {
    for (char *at = words; *at;) {
        const int64_t here = (int64_t)strcspn(at, " ");
        if (here == length && memcmp(at, word, (size_t)length) == 0) {
            memset(at, '.', (size_t)here); /* no normalised word has punctuation */
            return true;
        }
        at += here;
        at += *at == ' ';
    }
    return false;
}

/* How many words both have in common; each counts as often as it is in both. `wanted` is
 * overwritten. */
static int64_t count_common(const char *answer, char *wanted) {
    int64_t common = 0;
    for (const char *at = answer; *at;) {
        const int64_t length = (int64_t)strcspn(at, " ");
        common += take_word(wanted, at, length);
        at += length;
        at += *at == ' ';
    }
    return common;
}

int wg__squad_score(const char *answer, const char *wanted, double *exact, double *f1) {
    char *mine = wg__squad_normalize(answer), *theirs = wg__squad_normalize(wanted);
    const int status = mine && theirs ? 0 : -1;
    if (status == 0) {
        const double said = (double)count_words(mine), asked = (double)count_words(theirs);
        *exact = strcmp(mine, theirs) == 0;
        const double common = (double)count_common(mine, theirs);
        *f1 = common > 0 ? 2 * common / (said + asked) : 0;
    }
    wg__free(mine);
    wg__free(theirs);
    return status;
}
