/* Training of a SentencePiece vocabulary. See tokenizer.h. */
#include <stdio.h>
#include <string.h>

#include "base/replacement.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/text_file.h"
#include "data/internal.h"

#define WHERE "sentencepiece_train"
#define SPACE "\xE2\x96\x81" /* U+2581 */
#define SPACE_LENGTH 3
#define USUAL_SIZE 4096
#define USUAL_FREQUENCY 2
#define LONGEST_PART 4096 /* bytes; each merge reads the whole part that it changes */

static const char *const special_texts[] = {"<unk>", "<s>", "</s>"};
enum { SPECIAL_COUNT = 3, BYTE_COUNT = 256 };

typedef struct trainer {
    wg_sentencepiece_training settings;
    wg__merge_training words; /* the pieces are the characters, then, for BPE, the merges */
    wg__unigram_training unigram;
    wg__alphabet alphabet;
    int64_t kept;        /* letters that become pieces */
    int64_t first_piece; /* after the special pieces and the bytes */
    const char *source;  /* the name of the text in messages */
} trainer;

enum script { LETTERS, DIGITS, OTHERS };

/* Marks belong to the letters before them. */
static enum script script_of(utf8proc_int32_t character) {
    const utf8proc_category_t category = utf8proc_category(character);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME)
        return LETTERS;
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO ? DIGITS : OTHERS;
}

/* The length in bytes of a word separator at the beginning of a text, or 0. Separators are a space,
 * a line break, U+2581, "<|endoftext|>", and NUL, which no piece can have. */
static int64_t separator_length(const char *text, int64_t length) {
    if (*text == '<' && length >= WG__END_OF_TEXT_LENGTH &&
        memcmp(text, WG__END_OF_TEXT, WG__END_OF_TEXT_LENGTH) == 0)
        return WG__END_OF_TEXT_LENGTH;
    if (length >= SPACE_LENGTH && memcmp(text, SPACE, SPACE_LENGTH) == 0)
        return SPACE_LENGTH;
    return *text == ' ' || *text == '\n' || *text == '\r' || *text == '\0';
}

int wg__sentencepiece_count(wg__merge_training *words, const char *word, int64_t length) {
    int64_t start = 0, size;
    enum script before = OTHERS;
    bool first = true;
    for (int64_t at = 0; at < length; at += size) {
        utf8proc_int32_t character;
        size = utf8proc_iterate((const utf8proc_uint8_t *)word + at, length - at, &character);
        if (first && character == 0x2581)
            continue;
        const enum script script = script_of(character);
        if (!first && (script != before || at + size - start > LONGEST_PART)) {
            if (wg__count_word(words, word + start, at - start) < 0)
                return -1;
            start = at;
        }
        before = script;
        first = false;
    }
    return wg__count_word(words, word + start, length - start);
}

static int add_text(void *context, const char *text, int64_t length) {
    trainer *t = context;
    wg__text word = {0};
    int status = 0;
    for (int64_t at = 0; status == 0 && at < length;) {
        const int64_t skipped = separator_length(text + at, length - at);
        int64_t end = at;
        while (end < length && separator_length(text + end, length - end) == 0)
            end += wg__utf8_length(text + end);
        word.length = 0;
        if (end > at && (wg__text_append(&word, SPACE, SPACE_LENGTH) < 0 ||
                         wg__text_append(&word, text + at, end - at) < 0 ||
                         wg__sentencepiece_count(&t->words, word.bytes, word.length) < 0))
            status = -1;
        at = skipped ? at + skipped : end;
    }
    wg__free(word.bytes);
    return status;
}

static int add_alphabet(trainer *t) {
    if (wg__alphabet_count(&t->alphabet, &t->words) < 0)
        return -1;
    if (t->alphabet.count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no words to learn from", t->source);
    t->kept = t->settings.alphabet_limit
                  ? wg__smaller(t->settings.alphabet_limit, t->alphabet.count)
                  : wg__alphabet_covering(&t->alphabet);
    const int64_t least = t->first_piece + t->kept;
    if (t->settings.vocabulary_size < least)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a vocabulary of %lld cannot hold the %lld special pieces and bytes and the "
                       "%lld characters that this text needs; ask for %lld or more",
                       (long long)t->settings.vocabulary_size, (long long)t->first_piece,
                       (long long)t->kept, (long long)least);
    t->words.most_pieces = t->settings.vocabulary_size - t->first_piece;
    for (int64_t i = 0; i < t->kept; i++)
        if (wg__strings_add(&t->words.pieces, t->alphabet.letters[i].text,
                            (int64_t)strlen(t->alphabet.letters[i].text)) < 0)
            return -1;
    return 0;
}

/* Skips words with a character that is no piece. */
static int32_t split_word(const wg__merge_training *words, const char *word, int64_t length,
                          int32_t *symbols) {
    int32_t count = 0;
    for (int64_t at = 0; at < length; at += wg__utf8_length(word + at)) {
        const int64_t piece =
            wg__strings_find(&words->pieces, word + at, wg__utf8_length(word + at));
        if (piece < 0)
            return 0;
        symbols[count++] = (int32_t)piece;
    }
    return count;
}

static wg_tokenizer *make_tokenizer(const trainer *t) {
    const bool unigram = t->settings.unigram;
    const int64_t first = t->first_piece;
    const int64_t learnt = unigram ? t->unigram.pieces.count : t->words.pieces.count;
    const int64_t count = first + learnt;
    char bytes[BYTE_COUNT][8];
    const char **texts = wg__alloc_array(count, sizeof *texts);
    double *scores = wg__alloc_array(count, sizeof *scores);
    uint8_t *types = wg__alloc((size_t)count);
    wg_tokenizer *tokenizer = NULL;
    if (texts && scores && types) {
        for (int64_t i = 0; i < first; i++) {
            const int64_t byte = i - SPECIAL_COUNT;
            if (byte >= 0)
                snprintf(bytes[byte], sizeof bytes[0], "<0x%02X>", (unsigned)byte & 0xFF);
            texts[i] = byte < 0 ? special_texts[i] : bytes[byte];
            types[i] = i == 0 ? WG__PIECE_UNKNOWN : byte < 0 ? WG__PIECE_CONTROL : WG__PIECE_BYTE;
            scores[i] = 0;
        }
        /* In BPE, piece n has the score -n: merges in order, then characters. */
        for (int64_t i = 0; i < learnt; i++) {
            texts[first + i] = unigram ? wg__strings_text(&t->unigram.pieces, i)
                                       : wg__strings_text(&t->words.pieces, (i + t->kept) % learnt);
            types[first + i] = WG__PIECE_NORMAL;
            scores[first + i] = unigram ? t->unigram.scores[i] : -(double)i;
        }
        tokenizer = wg__sentencepiece_new(
            &(wg__piece_model){.settings = {.unigram = t->settings.unigram,
                                            .byte_fallback = t->settings.byte_fallback,
                                            .prefix = WG__PREFIX_ALWAYS,
                                            .remove_spaces = true,
                                            .strip = WG__STRIP_ALL,
                                            .unknown_text = " \xE2\x81\x87 "},
                               .count = count,
                               .texts = texts,
                               .scores = scores,
                               .types = types});
    }
    wg__free(texts);
    wg__free(scores);
    wg__free(types);
    if (!tokenizer)
        return NULL;
    const bool failed = wg__tokenizer_set_special(tokenizer, WG_TOKEN_BEGIN, 1) < 0 ||
                        wg__tokenizer_set_special(tokenizer, WG_TOKEN_END, 2) < 0;
    return wg__tokenizer_checked(tokenizer, failed ? -1 : 0);
}

static wg_tokenizer *train(const wg__texts *texts, const wg_sentencepiece_training *training) {
    trainer t = {.source = texts->text || texts->count == 0 ? "the text" : texts->paths[0]};
    wg_sentencepiece_training *s = &t.settings;
    if (training)
        *s = *training;
    if (s->vocabulary_size == 0)
        s->vocabulary_size = USUAL_SIZE;
    if (s->min_frequency == 0)
        s->min_frequency = USUAL_FREQUENCY;
    if (s->vocabulary_size < 0 || s->vocabulary_size > INT32_MAX || s->min_frequency < 1 ||
        s->alphabet_limit < 0)
        return wg__fail_null(
            WG_ERROR_ARGUMENT, WHERE,
            "vocabulary_size, min_frequency and alphabet_limit must not be negative, and a "
            "vocabulary has at most 2^31 - 1 pieces");
    t.first_piece = SPECIAL_COUNT + (s->byte_fallback ? BYTE_COUNT : 0);
    t.words.min_frequency = s->min_frequency;
    t.words.most_characters = WG__PIECE_LONGEST;
    int status = wg__each_text(texts, WHERE, add_text, &t);
    if (status == 0)
        status = add_alphabet(&t);
    if (status == 0 && s->unigram) {
        t.unigram = (wg__unigram_training){.words = &t.words.words,
                                           .word_counts = t.words.word_counts,
                                           .letters = &t.words.pieces,
                                           .counted = t.alphabet.letters,
                                           .piece_count = t.words.most_pieces};
        status = wg__learn_unigram(&t.unigram);
    } else if (status == 0) {
        status = wg__learn_merges(&t.words, split_word);
    }
    wg_tokenizer *tokenizer = status == 0 ? make_tokenizer(&t) : NULL;
    wg__merge_training_clear(&t.words);
    wg__strings_clear(&t.unigram.pieces);
    wg__free(t.unigram.scores);
    wg__strings_clear(&t.alphabet.texts);
    wg__free(t.alphabet.letters);
    return tokenizer;
}

wg_tokenizer *wg__sentencepiece_train(const char *text, int64_t length,
                                      const wg_sentencepiece_training *training) {
    return text ? train(&(wg__texts){.text = text, .length = length}, training) : NULL;
}

wg_tokenizer *wg_sentencepiece_train_files(int count, const char *const *paths,
                                           const wg_sentencepiece_training *training) {
    return train(&(wg__texts){.count = count, .paths = paths}, training);
}

int wg__sentencepiece_save(const wg_tokenizer *tokenizer, const char *path) {
    if (!tokenizer)
        return -1;
    wg__text file = {0};
    int status = wg__sentencepiece_write(tokenizer, &file);
    if (status == 0)
        status = wg_fail(WG_ERROR_ARGUMENT, "sentencepiece_save",
                         "a tokenizer.model cannot express this %s tokenizer; wg_tokenizer_save "
                         "writes any kind",
                         tokenizer->kind->name);
    else if (status > 0)
        status = wg__replace_file(path, file.bytes, file.length, "sentencepiece_save");
    wg__free(file.bytes);
    return status;
}
