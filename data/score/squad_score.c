/* Scores of answers, as the official evaluate-v1.1.py counts them: see squad.h. */
#include "data/dataset/squad.h"

#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/basic_tokenizer.h"
#include "tensor/internal.h"

/* ---- Characters, as Python tells them ---- */

static bool is_space(int32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
           utf8proc_category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

/* \w: letters and numbers; marks are none. */
static bool is_of_word(int32_t c) {
    const utf8proc_category_t category = utf8proc_category(c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

static bool is_punctuation(int32_t c) {
    return c > 0 && c < 128 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c);
}

/* ---- Normalising ---- */

/* Code points of a text, which has `length` bytes; bytes that are not UTF-8 are left out. */
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

/* Lower case without punctuation; `lower` has room for twice as many. */
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

/* Puts a space for each run of letters and numbers that is an article. */
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

/* Writes what is between spaces, one space between. */
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

char *wg_squad_normalize(const char *text) {
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

/* Takes the first word that is the same out of `words`, a normalised text whose words are blotted
 * out as they are taken. */
static bool take_word(char *words, const char *word, int64_t length) {
    for (char *at = words; *at;) {
        const int64_t here = (int64_t)strcspn(at, " ");
        if (here == length && memcmp(at, word, (size_t)length) == 0) {
            memset(at, '.', (size_t)here); /* punctuation is in no normalised word */
            return true;
        }
        at += here;
        at += *at == ' ';
    }
    return false;
}

/* Words that both have, each as often as in both; `wanted` is used up. */
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

int wg_squad_score(const char *answer, const char *wanted, double *exact, double *f1) {
    char *mine = wg_squad_normalize(answer), *theirs = wg_squad_normalize(wanted);
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
