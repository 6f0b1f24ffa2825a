/* Learning byte-level byte-pair encoding from text. See bpe.h. */
#include <string.h>

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/byte_level.h"
#include "data/tokenizer/merge_training.h"
#include "data/tokenizer/text_file.h"
#include "data/dataset/mmap.h"
#include "tensor/internal.h"

#define WHERE "bpe_train"
#define LARGEST_VOCABULARY INT64_C(10000000)
#define LONGEST_PART 4096 /* bytes; longer ones are no words, and would take quadratic time */
#define END_OF_TEXT "<|endoftext|>"
#define SPECIAL_COUNT 1

typedef struct trainer {
    wg_bpe_training settings;
    wg__splitter *splitter;
    wg__merge_training words; /* its pieces are the vocabulary without the special token */
} trainer;

/* ---- Counting ---- */

static int count_part(void *context, const char *part, int64_t length) {
    trainer *t = context;
    return length > LONGEST_PART ? 0 : wg__count_word(&t->words, part, length);
}

static int count_stretch(trainer *t, const char *text, int64_t length) {
    if (length == 0)
        return 0;
    bool add_space = t->settings.options.prefix_space && *text != ' ';
    wg__text spaced = {0};
    int status = add_space ? wg__text_append(&spaced, " ", 1) : 0;
    if (add_space && status == 0)
        status = wg__text_append(&spaced, text, length);
    if (status == 0)
        status = add_space ? wg__split(t->splitter, spaced.bytes, spaced.length, count_part, t)
                           : wg__split(t->splitter, text, length, count_part, t);
    wg__free(spaced.bytes);
    return status;
}

/* The special token marks where documents end, and is nothing to learn from. */
static int add_text(trainer *t, const char *text, int64_t length, const char *name) {
    if (wg__utf8_check(text, length, name, WHERE) < 0)
        return -1;
    const int64_t mark = (int64_t)strlen(END_OF_TEXT);
    const char *end = text + length;
    while (text < end) {
        const char *found = memmem(text, (size_t)(end - text), END_OF_TEXT, (size_t)mark);
        if (count_stretch(t, text, (found ? found : end) - text) < 0)
            return -1;
        text = found ? found + mark : end;
    }
    return 0;
}

/* ---- Pieces ---- */

/* The 256 bytes in the order of their letters, as GPT-2's vocabulary begins. */
static int add_bytes(trainer *t) {
    for (int character = 0; character < 0x200; character++) {
        char letter[2] = {(char)character, 0};
        int64_t length = 1;
        if (character >= 0x80) {
            letter[0] = (char)(0xC0 | character >> 6);
            letter[1] = (char)(0x80 | (character & 0x3F));
            length = 2;
        }
        if (wg__letter_to_byte(letter, length, &length) >= 0 &&
            wg__strings_add(&t->words.pieces, letter, length) < 0)
            return -1;
    }
    return 0;
}

static int32_t cut_word(const wg__merge_training *words, const char *word, int64_t length,
                        int32_t *symbols) {
    for (int64_t i = 0; i < length; i++) {
        char letter[2];
        int64_t size = wg__byte_to_letter((unsigned char)word[i], letter);
        symbols[i] = (int32_t)wg__strings_find(&words->pieces, letter, size);
    }
    return (int32_t)length;
}

/* ---- All of it ---- */

static wg_tokenizer *make_tokenizer(const trainer *t) {
    int64_t pieces = t->words.pieces.count;
    const char **tokens = wg__alloc((size_t)(pieces + SPECIAL_COUNT) * sizeof *tokens);
    if (!tokens)
        return NULL;
    for (int64_t i = 0; i < pieces; i++)
        tokens[i] = wg__strings_text(&t->words.pieces, i);
    tokens[pieces] = END_OF_TEXT;
    wg_tokenizer *tokenizer =
        wg_bpe_new(pieces + SPECIAL_COUNT, tokens, t->words.merge_count,
                   (const int32_t(*)[2])t->words.merges, &t->settings.options);
    wg__free(tokens);
    return tokenizer;
}

static int begin(trainer *t, const wg_bpe_training *training) {
    *t = (trainer){0};
    wg_bpe_training *s = &t->settings;
    if (training)
        *s = *training;
    if (s->vocabulary_size == 0)
        s->vocabulary_size = 4096;
    if (s->min_frequency == 0)
        s->min_frequency = 2;
    if (s->vocabulary_size < 256 + SPECIAL_COUNT || s->vocabulary_size > LARGEST_VOCABULARY)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a vocabulary of %lld; it must be %d to %lld",
                       (long long)s->vocabulary_size, 256 + SPECIAL_COUNT,
                       (long long)LARGEST_VOCABULARY);
    if (s->min_frequency < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "min_frequency must be at least 1");
    t->splitter = wg__splitter_new(s->options.pattern ? s->options.pattern : WG__GPT2_PATTERN);
    return t->splitter ? 0 : -1;
}

/* Learns from what was counted so far, and frees the trainer's memory in every case. */
static wg_tokenizer *finish(trainer *t, int status) {
    wg_tokenizer *tokenizer = NULL;
    if (status == 0 && t->words.words.count == 0)
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "there is no text to learn from");
    t->words.most_pieces = t->settings.vocabulary_size - SPECIAL_COUNT;
    t->words.min_frequency = t->settings.min_frequency;
    if (status == 0 && add_bytes(t) == 0 && wg__learn_merges(&t->words, cut_word) == 0)
        tokenizer = make_tokenizer(t);
    wg__merge_training_clear(&t->words);
    wg__splitter_free(t->splitter);
    return tokenizer;
}

wg_tokenizer *wg_bpe_train(const char *text, int64_t length, const wg_bpe_training *training) {
    if (!text)
        return NULL;
    trainer t;
    int status = begin(&t, training);
    if (status == 0)
        status = add_text(&t, text, length < 0 ? (int64_t)strlen(text) : length, "the text");
    return finish(&t, status);
}

wg_tokenizer *wg_bpe_train_files(int count, const char *const *paths,
                                 const wg_bpe_training *training) {
    trainer t;
    int status = begin(&t, training);
    for (int i = 0; status == 0 && i < count; i++) {
        wg__text_map text;
        status = wg__text_map_open(&text, paths[i], WHERE);
        if (status == 0)
            status = add_text(&t, text.bytes, text.length, paths[i]);
        wg__text_map_close(&text);
    }
    return finish(&t, status);
}
