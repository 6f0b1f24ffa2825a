/* Learning a WordPiece vocabulary: pair merges over the distinct words of a text.
 *
 *     word      low x 5    lowest x 2    newer x 6
 *     pieces    l ##o ##w  l ##o ##w ##e ##s ##t   n ##e ##w ##e ##r
 *     pairs     (##o, ##w) 7   (##w, ##e) 8   (##e, ##r) 6 ...   each with the words it occurs in
 *     merge     ##we from ##w and ##e, the commonest pair; only its words are counted anew
 *
 * Pairs are scored by their count. WordPiece's first description (Schuster & Nakajima 2012) scores
 * by the gain in likelihood, count(ab) / (count(a) count(b)); that spends a small vocabulary on
 * rare characters that always stand together: of the shipped books, 2000 tokens so chosen need 3.1
 * pieces a word, and by count 1.3.
 *
 * A heap holds (count, pair) entries. A pair's count only falls until a merge makes it rise again,
 * which pushes a new entry; an entry that turns out to be too high is put back with the true count
 * (so the work goes with what changes, not with the size of the text). */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "data/basic_tokenizer.h"
#include "data/growth.h"
#include "data/strings.h"
#include "data/text_file.h"
#include "data/wordpiece.h"
#include "tensor/internal.h"

#define WHERE "wordpiece_train"
#define LARGEST_VOCABULARY INT64_C(10000000)

static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
#define SPECIAL_COUNT ((int64_t)(sizeof specials / sizeof specials[0]))

typedef struct pair {
    int32_t left, right; /* pieces */
    int64_t count;
    int64_t last_place; /* in trainer.places, -1: none */
} pair;

/* That a pair occurs, or once occurred, in a word. */
typedef struct place {
    int32_t word;
    int64_t previous; /* place of the same pair, or -1 */
} place;

typedef struct heap_entry {
    int64_t count;
    int64_t pair;
} heap_entry;

typedef struct trainer {
    wg_wordpiece_training settings;
    const char *source; /* what the text is, for messages */

    wg__strings words;
    int64_t *word_counts;
    int64_t word_count_capacity;

    wg__strings pieces; /* the vocabulary without the specials */
    int32_t *symbols;   /* the pieces of word w: word_lengths[w] from word_starts[w] on */
    int64_t *word_starts;
    int32_t *word_lengths; /* 0 for words with a character outside the alphabet */

    wg__strings pair_keys; /* 8 bytes, left and right; the number is that of the pair */
    pair *pairs;
    int64_t pair_capacity;
    place *places;
    int64_t place_count, place_capacity;

    heap_entry *heap;
    int64_t heap_count, heap_capacity;
} trainer;

/* ---- Counting words ---- */

static int count_word(void *context, const char *word, int64_t length, int64_t characters) {
    trainer *t = context;
    if (characters > t->settings.options.max_word_characters)
        return 0;
    int64_t known = t->words.count;
    int64_t number = wg__strings_add(&t->words, word, length);
    if (number < 0)
        return -1;
    if (number == known) {
        int64_t *counts =
            wg__grow(t->word_counts, known, &t->word_count_capacity, known + 1, sizeof *counts);
        if (!counts)
            return -1;
        t->word_counts = counts;
        counts[number] = 0;
    }
    t->word_counts[number]++;
    return 0;
}

/* ---- The alphabet ---- */

typedef struct letter {
    const char *text;
    int64_t count;
    bool within; /* occurs in words of several characters */
} letter;

typedef struct alphabet {
    wg__strings texts;
    letter *letters; /* by number in texts, then sorted */
    int64_t capacity;
} alphabet;

static int64_t character_length(const char *text) {
    return utf8proc_utf8class[(unsigned char)*text];
}

static int count_letter(alphabet *a, const char *text, int64_t length, int64_t count, bool within) {
    int64_t known = a->texts.count;
    int64_t number = wg__strings_add(&a->texts, text, length);
    letter *letters =
        number < 0 ? NULL
                   : wg__grow(a->letters, known, &a->capacity, a->texts.count, sizeof *letters);
    if (!letters)
        return -1;
    a->letters = letters;
    if (number == known)
        letters[number] = (letter){0};
    letters[number].count += count;
    letters[number].within |= within;
    return 0;
}

static int count_letters(const trainer *t, alphabet *a) {
    for (int64_t w = 0; w < t->words.count; w++) {
        const char *word = wg__strings_text(&t->words, w);
        const char *end = word + wg__strings_length(&t->words, w);
        bool within = word + character_length(word) < end;
        for (const char *at = word; at < end; at += character_length(at))
            if (count_letter(a, at, character_length(at), t->word_counts[w], within) < 0)
                return -1;
    }
    for (int64_t i = 0; i < a->texts.count; i++)
        a->letters[i].text = wg__strings_text(&a->texts, i);
    return 0;
}

static int compare_text(const void *a, const void *b) {
    return strcmp(((const letter *)a)->text, ((const letter *)b)->text);
}

static int compare_count(const void *a, const void *b) {
    const letter *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return compare_text(a, b);
}

static int add_piece(trainer *t, const char *head, const char *tail, int64_t tail_length) {
    char text[8];
    int64_t head_length = (int64_t)strlen(head);
    memcpy(text, head, (size_t)head_length);
    memcpy(text + head_length, tail, (size_t)tail_length);
    return wg__strings_add(&t->pieces, text, head_length + tail_length) < 0 ? -1 : 0;
}

/* Makes the first pieces: the letters in order of bytes, then those that continue words. */
static int add_alphabet(trainer *t, alphabet *a) {
    int64_t count = a->texts.count;
    if (count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no words to learn from", t->source);
    qsort(a->letters, (size_t)count, sizeof *a->letters, compare_count);
    if (count > t->settings.alphabet_limit)
        count = t->settings.alphabet_limit;
    qsort(a->letters, (size_t)count, sizeof *a->letters, compare_text);
    for (int64_t i = 0; i < count; i++)
        if (add_piece(t, "", a->letters[i].text, (int64_t)strlen(a->letters[i].text)) < 0)
            return -1;
    for (int64_t i = 0; i < count; i++)
        if (a->letters[i].within &&
            add_piece(t, "##", a->letters[i].text, (int64_t)strlen(a->letters[i].text)) < 0)
            return -1;
    if (t->settings.vocabulary_size < SPECIAL_COUNT + t->pieces.count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a vocabulary of %lld cannot hold the %lld special tokens and the %lld "
                       "pieces of one character that this text needs; ask for %lld or more",
                       (long long)t->settings.vocabulary_size, (long long)SPECIAL_COUNT,
                       (long long)t->pieces.count, (long long)(SPECIAL_COUNT + t->pieces.count));
    return 0;
}

static int make_alphabet(trainer *t) {
    alphabet a = {0};
    int status = count_letters(t, &a);
    if (status == 0)
        status = add_alphabet(t, &a);
    wg__strings_clear(&a.texts);
    wg__free(a.letters);
    return status;
}

/* ---- The heap: the greatest count on top, of equals the first in order of bytes ---- */

static bool comes_before(const trainer *t, heap_entry a, heap_entry b) {
    if (a.count != b.count)
        return a.count > b.count;
    const pair *x = &t->pairs[a.pair], *y = &t->pairs[b.pair];
    int order =
        strcmp(wg__strings_text(&t->pieces, x->left), wg__strings_text(&t->pieces, y->left));
    if (order == 0)
        order =
            strcmp(wg__strings_text(&t->pieces, x->right), wg__strings_text(&t->pieces, y->right));
    return order < 0;
}

static int heap_push(trainer *t, int64_t pair_number) {
    heap_entry *heap =
        wg__grow(t->heap, t->heap_count, &t->heap_capacity, t->heap_count + 1, sizeof *heap);
    if (!heap)
        return -1;
    t->heap = heap;
    heap_entry entry = {t->pairs[pair_number].count, pair_number};
    int64_t i = t->heap_count++;
    for (; i > 0 && comes_before(t, entry, heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = entry;
    return 0;
}

static heap_entry heap_pop(trainer *t) {
    heap_entry *heap = t->heap, top = heap[0], last = heap[--t->heap_count];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= t->heap_count)
            break;
        if (child + 1 < t->heap_count && comes_before(t, heap[child + 1], heap[child]))
            child++;
        if (!comes_before(t, heap[child], last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

/* ---- Pairs ---- */

static int64_t pair_number(trainer *t, int32_t left, int32_t right) {
    int32_t key[2] = {left, right};
    int64_t known = t->pair_keys.count;
    int64_t number = wg__strings_add(&t->pair_keys, (const char *)key, sizeof key);
    if (number < known)
        return number;
    pair *pairs = wg__grow(t->pairs, known, &t->pair_capacity, known + 1, sizeof *pairs);
    if (!pairs)
        return -1;
    t->pairs = pairs;
    pairs[number] = (pair){.left = left, .right = right, .last_place = -1};
    return number;
}

static int note_place(trainer *t, int64_t number, int64_t word) {
    place *places =
        wg__grow(t->places, t->place_count, &t->place_capacity, t->place_count + 1, sizeof *places);
    if (!places)
        return -1;
    t->places = places;
    places[t->place_count] = (place){(int32_t)word, t->pairs[number].last_place};
    t->pairs[number].last_place = t->place_count++;
    return 0;
}

/* Adds the pairs of a word to their counts, `sign` times. With `note`, the places of those that
 * have the piece `fresh` in them (any, if it is -1) are noted: the others were there before. */
static int count_pairs(trainer *t, int64_t word, int sign, bool note, int32_t fresh) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++) {
        int64_t number = pair_number(t, symbols[i], symbols[i + 1]);
        if (number < 0)
            return -1;
        t->pairs[number].count += sign * t->word_counts[word];
        if (note && (fresh < 0 || symbols[i] == fresh || symbols[i + 1] == fresh) &&
            note_place(t, number, word) < 0)
            return -1;
    }
    return 0;
}

/* ---- Words as pieces ---- */

/* Cuts a word into pieces of one character; to none if one is outside the alphabet. */
static void cut_word(trainer *t, int64_t word) {
    const char *start = wg__strings_text(&t->words, word);
    const char *end = start + wg__strings_length(&t->words, word);
    int32_t *symbols = t->symbols + t->word_starts[word], count = 0;
    for (const char *at = start; at < end; at += character_length(at)) {
        char piece[8] = "##";
        int64_t head = at == start ? 0 : 2, length = character_length(at);
        memcpy(piece + head, at, (size_t)length);
        int64_t number = wg__strings_find(&t->pieces, piece, head + length);
        if (number < 0) {
            count = 0;
            break;
        }
        symbols[count++] = (int32_t)number;
    }
    t->word_lengths[word] = count;
}

static int cut_words(trainer *t) {
    int64_t words = t->words.count, total = t->words.starts[words];
    t->symbols = wg__alloc((size_t)total * sizeof *t->symbols);
    t->word_starts = wg__alloc((size_t)words * sizeof *t->word_starts);
    t->word_lengths = wg__alloc((size_t)words * sizeof *t->word_lengths);
    if (!t->symbols || !t->word_starts || !t->word_lengths)
        return -1;
    for (int64_t w = 0; w < words; w++) {
        t->word_starts[w] = t->words.starts[w]; /* no more pieces than bytes */
        cut_word(t, w);
        if (count_pairs(t, w, 1, true, -1) < 0)
            return -1;
    }
    for (int64_t p = 0; p < t->pair_keys.count; p++)
        if (heap_push(t, p) < 0)
            return -1;
    return 0;
}

/* ---- Merging ---- */

/* The piece that two neighbours make: their texts, less the ## of the second. */
static int32_t merged_piece(trainer *t, int32_t left, int32_t right) {
    wg__text text = {0};
    int64_t piece = -1;
    if (wg__text_append(&text, wg__strings_text(&t->pieces, left),
                        wg__strings_length(&t->pieces, left)) == 0 &&
        wg__text_append(&text, wg__strings_text(&t->pieces, right) + 2,
                        wg__strings_length(&t->pieces, right) - 2) == 0)
        piece = wg__strings_add(&t->pieces, text.bytes, text.length);
    wg__free(text.bytes);
    return (int32_t)piece;
}

/* Joins every (left, right) of a word. */
static void merge_in_word(trainer *t, int64_t word, int32_t left, int32_t right, int32_t merged) {
    int32_t *symbols = t->symbols + t->word_starts[word];
    int32_t length = t->word_lengths[word], count = 0;
    for (int32_t i = 0; i < length; i++) {
        bool here = i + 1 < length && symbols[i] == left && symbols[i + 1] == right;
        symbols[count++] = here ? merged : symbols[i];
        i += here;
    }
    t->word_lengths[word] = count;
}

static bool has_pair(const trainer *t, int64_t word, int32_t left, int32_t right) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++)
        if (symbols[i] == left && symbols[i + 1] == right)
            return true;
    return false;
}

/* Pushes the pairs of a word that have the piece `fresh` in them: their counts may have risen. */
static int push_pairs(trainer *t, int64_t word, int32_t fresh) {
    const int32_t *symbols = t->symbols + t->word_starts[word];
    for (int32_t i = 0; i + 1 < t->word_lengths[word]; i++)
        if (symbols[i] == fresh || symbols[i + 1] == fresh) {
            int64_t number = pair_number(t, symbols[i], symbols[i + 1]);
            if (number < 0 || heap_push(t, number) < 0)
                return -1;
        }
    return 0;
}

static int merge(trainer *t, int64_t number) {
    int32_t left = t->pairs[number].left, right = t->pairs[number].right;
    int32_t merged = merged_piece(t, left, right);
    if (merged < 0)
        return -1;
    int64_t first = t->pairs[number].last_place;
    t->pairs[number].last_place = -1;
    for (int64_t p = first; p >= 0; p = t->places[p].previous) {
        int64_t word = t->places[p].word;
        if (!has_pair(t, word, left, right))
            continue;
        if (count_pairs(t, word, -1, false, merged) < 0)
            return -1;
        merge_in_word(t, word, left, right, merged);
        if (count_pairs(t, word, 1, true, merged) < 0)
            return -1;
    }
    for (int64_t p = first; p >= 0; p = t->places[p].previous)
        if (push_pairs(t, t->places[p].word, merged) < 0)
            return -1;
    return 0;
}

static int merge_all(trainer *t) {
    while (t->heap_count > 0 && SPECIAL_COUNT + t->pieces.count < t->settings.vocabulary_size) {
        heap_entry top = heap_pop(t);
        int64_t count = t->pairs[top.pair].count;
        if (count < t->settings.min_frequency)
            continue;
        int status = top.count == count ? merge(t, top.pair) : heap_push(t, top.pair);
        if (status < 0)
            return -1;
    }
    return 0;
}

/* ---- All of it ---- */

static wg_tokenizer *make_tokenizer(const trainer *t) {
    const char **tokens = wg__alloc((size_t)(SPECIAL_COUNT + t->pieces.count) * sizeof *tokens);
    if (!tokens)
        return NULL;
    memcpy(tokens, specials, sizeof specials);
    for (int64_t i = 0; i < t->pieces.count; i++)
        tokens[SPECIAL_COUNT + i] = wg__strings_text(&t->pieces, i);
    wg_tokenizer *tokenizer =
        wg_wordpiece_new(SPECIAL_COUNT + t->pieces.count, tokens, &t->settings.options);
    wg__free(tokens);
    return tokenizer;
}

static void clear(trainer *t) {
    wg__strings_clear(&t->words);
    wg__free(t->word_counts);
    wg__strings_clear(&t->pieces);
    wg__free(t->symbols);
    wg__free(t->word_starts);
    wg__free(t->word_lengths);
    wg__strings_clear(&t->pair_keys);
    wg__free(t->pairs);
    wg__free(t->places);
    wg__free(t->heap);
}

static int begin(trainer *t, const wg_wordpiece_training *training) {
    *t = (trainer){.source = "the text"};
    wg_wordpiece_training *s = &t->settings;
    if (training)
        *s = *training;
    if (s->vocabulary_size == 0)
        s->vocabulary_size = 4096;
    if (s->min_frequency == 0)
        s->min_frequency = 2;
    if (s->alphabet_limit == 0)
        s->alphabet_limit = 1000;
    if (s->options.max_word_characters == 0)
        s->options.max_word_characters = 200;
    if (s->vocabulary_size < 1 || s->vocabulary_size > LARGEST_VOCABULARY)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a vocabulary of %lld; it must be 1 to %lld",
                       (long long)s->vocabulary_size, (long long)LARGEST_VOCABULARY);
    if (s->min_frequency < 1 || s->alphabet_limit < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "min_frequency and alphabet_limit must be at least 1");
    return 0;
}

static int add_text(trainer *t, const char *text, int64_t length, const char *name) {
    if (wg__utf8_check(text, length, name, WHERE) < 0)
        return -1;
    return wg__basic_tokenize(text, length, t->settings.options.cased, count_word, t);
}

/* Learns from the words counted so far, and frees the trainer's memory in every case. */
static wg_tokenizer *finish(trainer *t, int status) {
    wg_tokenizer *tokenizer = NULL;
    if (status == 0 && make_alphabet(t) == 0 && cut_words(t) == 0 && merge_all(t) == 0)
        tokenizer = make_tokenizer(t);
    clear(t);
    return tokenizer;
}

wg_tokenizer *wg_wordpiece_train(const char *text, int64_t length,
                                 const wg_wordpiece_training *training) {
    if (!text)
        return NULL;
    trainer t;
    int status = begin(&t, training);
    if (status == 0)
        status = add_text(&t, text, length < 0 ? (int64_t)strlen(text) : length, "the text");
    return finish(&t, status);
}

wg_tokenizer *wg_wordpiece_train_files(int count, const char *const *paths,
                                       const wg_wordpiece_training *training) {
    trainer t;
    int status = begin(&t, training);
    if (count == 1)
        t.source = paths[0];
    for (int i = 0; status == 0 && i < count; i++) {
        int64_t length;
        char *text = wg__text_file_read(paths[i], &length, WHERE);
        status = text ? add_text(&t, text, length, paths[i]) : -1;
        wg__free(text);
    }
    return finish(&t, status);
}
