/* Learning a WordPiece vocabulary: pair merges over the distinct words of a text.
 *
 * Pairs are scored by their count. WordPiece's first description (Schuster & Nakajima 2012) scores
 * by the gain in likelihood, count(ab) / (count(a) count(b)); that spends a small vocabulary on
 * rare characters that always stand together: of the shipped books, 2000 tokens so chosen need 3.1
 * pieces a word, and by count 1.3. merge_training.h shows how it is done. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/basic_tokenizer.h"
#include "base/array.h"
#include "data/tokenizer/merge_training.h"
#include "data/tokenizer/text_file.h"
#include "data/dataset/mmap.h"
#include "data/tokenizer/wordpiece.h"
#include "tensor/internal.h"

#define WHERE "wordpiece_train"
#define LARGEST_VOCABULARY INT64_C(10000000)

static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
#define SPECIAL_COUNT ((int64_t)(sizeof specials / sizeof specials[0]))

typedef struct trainer {
    wg_wordpiece_training settings;
    const char *source;       /* what the text is, for messages */
    wg__merge_training words; /* its pieces are the vocabulary without the specials */
} trainer;

/* ---- Counting words ---- */

static int count_word(void *context, const char *word, int64_t length, int64_t characters) {
    trainer *t = context;
    if (characters > t->settings.options.max_word_characters)
        return 0;
    return wg__count_word(&t->words, word, length);
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

static int count_letters(const wg__merge_training *words, alphabet *a) {
    for (int64_t w = 0; w < words->words.count; w++) {
        const char *word = wg__strings_text(&words->words, w);
        const char *end = word + wg__strings_length(&words->words, w);
        bool within = word + character_length(word) < end;
        for (const char *at = word; at < end; at += character_length(at))
            if (count_letter(a, at, character_length(at), words->word_counts[w], within) < 0)
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
    return wg__strings_add(&t->words.pieces, text, head_length + tail_length) < 0 ? -1 : 0;
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
    if (t->settings.vocabulary_size < SPECIAL_COUNT + t->words.pieces.count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a vocabulary of %lld cannot hold the %lld special tokens and the %lld "
                       "pieces of one character that this text needs; ask for %lld or more",
                       (long long)t->settings.vocabulary_size, (long long)SPECIAL_COUNT,
                       (long long)t->words.pieces.count,
                       (long long)(SPECIAL_COUNT + t->words.pieces.count));
    return 0;
}

static int make_alphabet(trainer *t) {
    alphabet a = {0};
    int status = count_letters(&t->words, &a);
    if (status == 0)
        status = add_alphabet(t, &a);
    wg__strings_clear(&a.texts);
    wg__free(a.letters);
    return status;
}

/* ---- Words as pieces ---- */

/* Cuts a word into pieces of one character; to none if one is outside the alphabet. */
static int32_t cut_word(const wg__merge_training *words, const char *word, int64_t length,
                        int32_t *symbols) {
    int32_t count = 0;
    for (const char *at = word; at < word + length; at += character_length(at)) {
        char piece[8] = "##";
        int64_t head = at == word ? 0 : 2, size = character_length(at);
        memcpy(piece + head, at, (size_t)size);
        int64_t number = wg__strings_find(&words->pieces, piece, head + size);
        if (number < 0)
            return 0;
        symbols[count++] = (int32_t)number;
    }
    return count;
}

/* ---- All of it ---- */

static wg_tokenizer *make_tokenizer(const trainer *t) {
    const char **tokens =
        wg__alloc((size_t)(SPECIAL_COUNT + t->words.pieces.count) * sizeof *tokens);
    if (!tokens)
        return NULL;
    memcpy(tokens, specials, sizeof specials);
    for (int64_t i = 0; i < t->words.pieces.count; i++)
        tokens[SPECIAL_COUNT + i] = wg__strings_text(&t->words.pieces, i);
    wg_tokenizer *tokenizer =
        wg_wordpiece_new(SPECIAL_COUNT + t->words.pieces.count, tokens, &t->settings.options);
    wg__free(tokens);
    return tokenizer;
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
    wg__basic_rules rules = {t->settings.options.cased, t->settings.options.huggingface};
    if (wg__utf8_check(text, length, name, WHERE) < 0)
        return -1;
    return wg__basic_tokenize(text, length, rules, count_word, t);
}

/* Learns from the words counted so far, and frees the trainer's memory in every case. */
static wg_tokenizer *finish(trainer *t, int status) {
    wg_tokenizer *tokenizer = NULL;
    t->words.most_pieces = t->settings.vocabulary_size - SPECIAL_COUNT;
    t->words.min_frequency = t->settings.min_frequency;
    t->words.prefix = 2; /* ## */
    if (status == 0 && make_alphabet(t) == 0 && wg__learn_merges(&t->words, cut_word) == 0)
        tokenizer = make_tokenizer(t);
    wg__merge_training_clear(&t->words);
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
        wg__text_map text;
        status = wg__text_map_open(&text, paths[i], WHERE);
        if (status == 0)
            status = add_text(&t, text.bytes, text.length, paths[i]);
        wg__text_map_close(&text);
    }
    return finish(&t, status);
}
