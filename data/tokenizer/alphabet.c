/* Counting the characters of words. See alphabet.h. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/alphabet.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define COVERAGE 0.9995

static int count_letter(wg__alphabet *a, const char *text, int64_t occurrences, bool within) {
    const int64_t number = wg__strings_add(&a->texts, text, wg__utf8_length(text));
    if (number < 0 ||
        wg__reserve(&a->letters, a->count, &a->capacity, a->texts.count, sizeof *a->letters) < 0)
        return -1;
    if (number == a->count)
        a->letters[a->count++] = (wg__letter){0};
    a->letters[number].count += occurrences;
    a->letters[number].within |= within;
    return 0;
}

static int compare(const void *left, const void *right) {
    const wg__letter *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return strcmp(a->text, b->text);
}

int wg__alphabet_count(wg__alphabet *a, const wg__merge_training *words) {
    for (int64_t w = 0; w < words->words.count; w++) {
        const char *word = wg__strings_text(&words->words, w);
        const char *end = word + wg__strings_length(&words->words, w);
        const bool within = word + wg__utf8_length(word) < end;
        for (const char *at = word; at < end; at += wg__utf8_length(at))
            if (count_letter(a, at, words->word_counts[w], within) < 0)
                return -1;
    }
    for (int64_t i = 0; i < a->count; i++)
        a->letters[i].text = wg__strings_text(&a->texts, i);
    if (a->count > 0)
        qsort(a->letters, (size_t)a->count, sizeof *a->letters, compare);
    return 0;
}

int64_t wg__alphabet_covering(const wg__alphabet *a) {
    int64_t total = 0, covered = 0, count = 0;
    for (int64_t i = 0; i < a->count; i++)
        total += a->letters[i].count;
    while (count < a->count && (double)covered < COVERAGE * (double)total)
        covered += a->letters[count++].count;
    return count;
}

void wg__alphabet_clear(wg__alphabet *a) {
    wg__strings_clear(&a->texts);
    wg__free(a->letters);
    *a = (wg__alphabet){0};
}
