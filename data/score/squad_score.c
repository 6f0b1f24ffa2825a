/* Compares answers like SQuAD's official evaluate-v1.1.py, and like CMRC 2018's script. See
 * score.h.
 */
#include "data/score/score.h"

#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/tokenizer.h"

static bool is_space(int32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
           utf8proc_category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

/* Python's \w without the underscore: letters and numbers, not marks. */
static bool is_of_word(int32_t c) {
    const utf8proc_category_t category = utf8proc_category(c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

static bool is_punctuation(int32_t c) {
    return c > 0 && c < 128 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c);
}

/* Writes the code points of a text, and returns their number. Skips invalid bytes. */
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

/* Lower-cases and drops characters. Returns the new count, at most 2 * count. */
static int64_t fold(const int32_t *characters, int64_t count, bool (*is_dropped)(int32_t c),
                    int32_t *lower) {
    enum { CAPITAL_I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };
    int64_t length = 0;
    for (int64_t i = 0; i < count; i++) {
        if (is_dropped(characters[i]))
            continue;
        lower[length++] = wg__basic_lower(characters, count, i);
        if (characters[i] == CAPITAL_I_WITH_DOT)
            lower[length++] = DOT_ABOVE;
    }
    return length;
}

char *wg__squad_normalize(const char *text) {
    const int64_t length = (int64_t)strlen(text);
    int32_t *characters = wg__alloc_array(wg__times(3, length) + 1, sizeof *characters);
    char *normal =
        wg__alloc_array(wg__times(8, length) + 1, 1); /* a space and four bytes a character */
    if (characters && normal) {
        int32_t *lower = characters + length;
        const int64_t count =
            fold(characters, decode(text, length, characters), is_punctuation, lower);
        /* Replaces articles (a, an, the) by spaces. */
        for (int64_t first = 0, end; first < count; first = end) {
            for (end = first; end < count && is_of_word(lower[end]);)
                end++;
            const int32_t *word = lower + first;
            const int64_t letters = end - first;
            const bool article =
                (letters == 1 && word[0] == 'a') ||
                (letters == 2 && word[0] == 'a' && word[1] == 'n') ||
                (letters == 3 && word[0] == 't' && word[1] == 'h' && word[2] == 'e');
            for (int64_t i = first; article && i < end; i++)
                lower[i] = ' ';
            end += end == first;
        }
        int64_t written = 0; /* the words, with one space between them */
        for (int64_t i = 0; i < count; i++) {
            if (is_space(lower[i]))
                continue;
            if (i > 0 && is_space(lower[i - 1]) && written > 0)
                normal[written++] = ' ';
            written += utf8proc_encode_char(lower[i], (utf8proc_uint8_t *)normal + written);
        }
        normal[written] = '\0';
    } else {
        wg__free(normal);
        normal = NULL;
    }
    wg__free(characters);
    return normal;
}

static int64_t count_words(const char *text) {
    int64_t count = *text != '\0';
    for (; *text; text++)
        count += *text == ' ';
    return count;
}

int wg__squad_score(const char *answer, const char *wanted, double *exact, double *f1) {
    char *mine = wg__squad_normalize(answer), *theirs = wg__squad_normalize(wanted);
    const int status = mine && theirs ? 0 : -1;
    if (status == 0) {
        const double said = (double)count_words(mine), asked = (double)count_words(theirs);
        *exact = strcmp(mine, theirs) == 0;
        /* Overwrites each common word with dots, so that it counts only once; normalized words have
         * no dots. */
        double common = 0;
        for (const char *word = mine; *word; word += strspn(word, " ")) {
            const size_t length = strcspn(word, " ");
            char *at = theirs;
            size_t here;
            while ((here = strcspn(at, " ")) > 0 &&
                   (here != length || memcmp(at, word, length) != 0))
                at += here + (at[here] == ' ');
            if (here > 0)
                memset(at, '.', here);
            common += here > 0;
            word += length;
        }
        *f1 = common > 0 ? 2 * common / (said + asked) : 0;
    }
    wg__free(mine);
    wg__free(theirs);
    return status;
}

/* ---- Chinese, by the rules of CMRC 2018 ----
 *
 *     "NHK 的「劇」2.5"     nhk  的  劇  2.5 */

/* Characters that CMRC's script removes. */
static bool is_ignored(int32_t c) {
    static const int32_t list[] = {'-',    ':',    '_',    '*',    '^',    '/',    '\\',   '~',
                                   '`',    '+',    '=',    0xFF0C, 0x3002, 0xFF1A, 0xFF1F, 0xFF01,
                                   0x201C, 0x201D, 0xFF1B, 0x2019, 0x300A, 0x300B, 0xB7,   0x3001,
                                   0x300C, 0x300D, 0xFF08, 0xFF09, 0xFF0D, 0xFF5E, 0x300E, 0x300F};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (c == list[i])
            return true;
    return false;
}

/* Ideographs that CMRC's script makes tokens. */
static bool is_ideograph(int32_t c) {
    return c >= 0x4E00 && c <= 0x9FA5;
}

/* A folded text, without white space at its ends. */
typedef struct folded_text {
    int32_t *characters; /* the first `first` characters are scratch */
    int64_t first, count;
} folded_text;

static int fold_mixed(const char *text, folded_text *folded) {
    const int64_t length = (int64_t)strlen(text);
    int32_t *characters = wg__alloc_array(wg__times(3, length) + 1, sizeof *characters);
    *folded = (folded_text){.characters = characters, .first = length};
    if (!characters)
        return -1;
    int64_t count = decode(text, length, characters), first = 0;
    while (count > 0 && is_space(characters[count - 1]))
        count--;
    while (first < count && is_space(characters[first]))
        first++;
    folded->count = fold(characters + first, count - first, is_ignored, characters + length);
    return 0;
}

/* The end of the token that begins at `at`: an ideograph, a punctuation character, or a word with
 * the punctuation between its letters and digits. */
static int64_t token_end(const int32_t *c, int64_t count, int64_t at) {
    if (is_ideograph(c[at]) || is_punctuation(c[at]))
        return at + 1;
    for (at++; at < count && !is_space(c[at]) && !is_ideograph(c[at]); at++) {
        const bool joins = is_of_word(c[at - 1]) && at + 1 < count && is_of_word(c[at + 1]) &&
                           !is_ideograph(c[at + 1]);
        if (is_punctuation(c[at]) && !joins)
            break;
    }
    return at;
}

/* Appends the tokens as their numbers in `words`. */
static int add_tokens(const folded_text *text, wg__strings *words, wg_token_list *tokens) {
    const int32_t *c = text->characters + text->first;
    for (int64_t at = 0, end; at < text->count; at = end) {
        end = at + 1;
        if (is_space(c[at]))
            continue;
        end = token_end(c, text->count, at);
        const int64_t id =
            wg__strings_add(words, (const char *)(c + at), (end - at) * (int64_t)sizeof *c);
        if (id < 0 || wg_token_list_append(tokens, (int32_t)id) < 0)
            return -1;
    }
    return 0;
}

int wg__squad_score_mixed(const char *answer, const char *wanted, double *exact, double *f1) {
    folded_text mine = {0}, theirs = {0};
    wg__strings words = {0};
    wg_token_list said = {0}, asked = {0};
    int status = fold_mixed(answer, &mine) < 0 || fold_mixed(wanted, &theirs) < 0 ? -1 : 0;
    if (status == 0 &&
        (add_tokens(&mine, &words, &said) < 0 || add_tokens(&theirs, &words, &asked) < 0))
        status = -1;
    if (status == 0) {
        const int32_t *a = mine.characters + mine.first, *b = theirs.characters + theirs.first;
        int64_t common = 0; /* the length of the longest common run of tokens */
        for (int64_t i = 0; i < said.count; i++)
            for (int64_t j = 0; j < asked.count; j++) {
                int64_t run = 0;
                while (i + run < said.count && j + run < asked.count &&
                       said.ids[i + run] == asked.ids[j + run])
                    run++;
                common = wg__larger(common, run);
            }
        *exact = mine.count == theirs.count && memcmp(a, b, (size_t)mine.count * sizeof *a) == 0;
        *f1 = common > 0 ? 2 * (double)common / (double)(said.count + asked.count) : 0;
    }
    wg_token_list_free(&said);
    wg_token_list_free(&asked);
    wg__strings_clear(&words);
    wg__free(mine.characters);
    wg__free(theirs.characters);
    return status;
}

bool wg__squad_is_chinese(const char *text, int64_t *ideographs, int64_t *letters) {
    int32_t c;
    for (const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text; *at;) {
        const utf8proc_ssize_t size = utf8proc_iterate(at, -1, &c);
        at += size > 0 ? size : 1;
        *ideographs += size > 0 && wg__is_ideograph(c);
        *letters += size > 0 && is_of_word(c);
    }
    return 2 * *ideographs >= *letters && *ideographs > 0;
}
