/* WordPiece: vocab.txt, encoding by longest match, decoding, JSON and training. See tokenizer.h.
 *
 * Training merges the most frequent pair. WordPiece's first description (Schuster & Nakajima 2012)
 * scores a pair by the gain in likelihood, count(ab) / (count(a) count(b)). With a small
 * vocabulary, this score prefers rare characters that always occur together: on the shipped books,
 * words have 3.1 pieces with 2000 tokens chosen by likelihood, and 1.3 with 2000 tokens chosen by
 * count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/replacement.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/tokenizer.h"
#include "data/internal.h"
#include "io/config.h"
#include "tensor/easy.h"

#define DEFAULT_WORD_CHARACTERS 200 /* WordpieceTokenizer of google-research/bert */
#define LARGEST_WORD_CHARACTERS 1000
#define LARGEST_VOCABULARY INT64_C(10000000)
#define SPECIAL_COUNT 5

/* The default alphabet: the characters that make up 99.95 % of the text, and at least this number
 * if the text has them. A Chinese text needs far more characters, an English text with foreign
 * names far fewer than it has. */
#define LEAST_ALPHABET 1000

typedef struct wordpiece {
    wg_tokenizer base;
    wg_wordpiece_options options;
    uint64_t continuation_hash; /* the hash of "##", the prefix of pieces within a word */
} wordpiece;

static const char *const special_names[SPECIAL_COUNT] = {
    [WG_TOKEN_PAD] = "[PAD]",       [WG_TOKEN_UNKNOWN] = "[UNK]", [WG_TOKEN_CLASS] = "[CLS]",
    [WG_TOKEN_SEPARATOR] = "[SEP]", [WG_TOKEN_MASK] = "[MASK]",
};

static wg_tokenizer *new_wordpiece(int64_t count, const char *const *tokens,
                                   const wg_wordpiece_options *options, const char *entry) {
    wordpiece *w = wg__tokenizer_new(&wg__wordpiece_kind, sizeof *w);
    if (!w)
        return NULL;
    w->continuation_hash = wg__hash_step(wg__hash_step(WG__HASH_BEGIN, '#'), '#');
    if (options)
        w->options = *options;
    int *longest = &w->options.max_word_characters;
    if (*longest == 0)
        *longest = DEFAULT_WORD_CHARACTERS;
    int status = 0;
    if (*longest < 1 || *longest > LARGEST_WORD_CHARACTERS)
        status =
            wg_fail(WG_ERROR_ARGUMENT, "wordpiece", "max_word_characters is %d; it must be 1 to %d",
                    *longest, LARGEST_WORD_CHARACTERS);
    if (status == 0)
        status = wg__tokenizer_set_vocabulary(&w->base, count, tokens, entry);
    for (int i = 0; status == 0 && i < SPECIAL_COUNT; i++)
        status = wg__tokenizer_name_special(&w->base, i, special_names[i]);
    if (status == 0 && w->base.special[WG_TOKEN_UNKNOWN] < 0)
        status = wg_fail(WG_ERROR_FORMAT, "wordpiece",
                         "%s 1 to %lld: [UNK], the token for unknown words, is missing", entry,
                         (long long)count);
    return wg__tokenizer_checked(&w->base, status);
}

wg_tokenizer *wg__wordpiece_new(int64_t count, const char *const *tokens,
                                const wg_wordpiece_options *options) {
    return new_wordpiece(count, tokens, options, "token");
}

/* Splits a text in place into lines without blanks at their ends, like the published reader. Skips
 * an empty last line. Returns the number of lines, or -1; *lines is freed with wg__free. */
static int64_t split_lines(char *text, int64_t length, const char ***lines) {
    int64_t count = 0, capacity = 0;
    char *end = text + length;
    for (char *line = text; line < end;) {
        if (wg__reserve(lines, count, &capacity, count + 1, sizeof **lines) < 0)
            return -1;
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *stop = newline ? newline : end;
        char *next = stop + 1;
        while (stop > line && strchr(" \t\r\v\f", stop[-1]))
            stop--;
        while (line < stop && strchr(" \t\r\v\f", *line))
            line++;
        *stop = '\0';
        (*lines)[count++] = line;
        line = next;
    }
    return count;
}

wg_tokenizer *wg__wordpiece_load(const char *path, const wg_wordpiece_options *options) {
    int64_t length, count = -1;
    char *text = wg__text_file_read(path, &length, "wordpiece"), entry[512];
    const char **lines = NULL;
    if (!text)
        return NULL;
    snprintf(entry, sizeof entry, "%s: line", path);
    if (wg__utf8_check(text, length, path, "wordpiece") == 0) {
        if (memchr(text, '\0', (size_t)length))
            wg_fail(WG_ERROR_FORMAT, "wordpiece", "%s has a NUL byte: not a vocabulary", path);
        else
            count = split_lines(text, length, &lines);
    }
    wg_tokenizer *tokenizer = count < 0 ? NULL : new_wordpiece(count, lines, options, entry);
    wg__free(lines);
    wg__free(text);
    return tokenizer;
}

int wg__wordpiece_save(const wg_tokenizer *tokenizer, const char *path) {
    if (!tokenizer)
        return -1;
    if (tokenizer->kind != &wg__wordpiece_kind)
        return wg_fail(WG_ERROR_ARGUMENT, "wordpiece",
                       "a %s tokenizer has no vocab.txt; wg_tokenizer_save writes any kind",
                       tokenizer->kind->name);
    wg__text text = {0};
    int status = 0;
    for (int64_t i = 0; status == 0 && i < tokenizer->vocabulary.count; i++) {
        status = wg__text_append(&text, wg__strings_text(&tokenizer->vocabulary, i),
                                 wg__strings_length(&tokenizer->vocabulary, i));
        if (status == 0)
            status = wg__text_append(&text, "\n", 1);
    }
    if (status == 0)
        status = wg__replace_file(path, text.bytes, text.length, "wordpiece");
    wg__free(text.bytes);
    return status;
}

typedef struct encoding {
    const wordpiece *tokenizer;
    wg__token_sink *sink;
} encoding;

/* The id of the longest piece at the beginning of `text`, or -1; *matched is its length.
 * `continues`: only pieces with "##". One pass hashes all beginnings; then they are looked up, the
 * longest first. */
static int64_t longest_piece(const wordpiece *w, bool continues, const char *text, int64_t length,
                             int64_t *matched) {
    uint64_t hashes[LARGEST_WORD_CHARACTERS * 4];
    const wg__strings *vocabulary = &w->base.vocabulary;
    int64_t head_length = continues ? 2 : 0;
    if (length > vocabulary->longest - head_length)
        length = vocabulary->longest - head_length;
    uint64_t hash = continues ? w->continuation_hash : WG__HASH_BEGIN;
    for (int64_t i = 0; i < length; i++)
        hashes[i] = hash = wg__hash_step(hash, text[i]);
    for (int64_t i = length; i > 0; i--) {
        int64_t id = wg__strings_find_joined(vocabulary, hashes[i - 1], "##", head_length, text, i);
        if (id >= 0) {
            *matched = i;
            return id;
        }
    }
    return -1;
}

/* Appends the pieces of a word, or [UNK] if the word is too long or no pieces spell it. */
static int encode_word(void *context, const char *word, int64_t length, int64_t characters) {
    const encoding *e = context;
    wg_token_list *list = &e->sink->list;
    int64_t before = list->count, at = 0;
    bool known = characters <= e->tokenizer->options.max_word_characters;
    while (known && at < length) {
        int64_t matched = 0;
        int64_t id = longest_piece(e->tokenizer, at > 0, word + at, length - at, &matched);
        known = id >= 0;
        if (known && wg_token_list_append(list, (int32_t)id) < 0)
            return -1;
        at += matched;
    }
    if (!known) {
        list->count = before;
        if (wg_token_list_append(list, e->tokenizer->base.special[WG_TOKEN_UNKNOWN]) < 0)
            return -1;
    }
    return wg__token_sink_flush(e->sink);
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    (void)first;
    encoding e = {(const wordpiece *)tokenizer, sink};
    wg__basic_rules rules = {e.tokenizer->options.cased, e.tokenizer->options.huggingface};
    return wg__basic_tokenize(text, length, rules, encode_word, &e);
}

/* Scripts by their spacing. */
enum script {
    SPACED,          /* Latin and other scripts with spaces between words */
    CJK,             /* ideographs, kana, bopomofo */
    CJK_PUNCTUATION, /* full-width characters, which include their space */
    QUOTATION        /* curly quotes, dashes and dots, which English and Chinese share */
};

static enum script script_of(int32_t c) {
    if (wg__is_ideograph(c) || wg__is_within(c, 0x3005, 0x3007) ||
        wg__is_within(c, 0x3021, 0x3029) || wg__is_within(c, 0x3031, 0x3035) ||
        wg__is_within(c, 0x3041, 0x312F) || wg__is_within(c, 0x31A0, 0x31FF) ||
        wg__is_within(c, 0xFF66, 0xFF9F) || wg__is_within(c, 0x1B000, 0x1B16F))
        return CJK;
    if (wg__is_within(c, 0x3001, 0x303F) || wg__is_within(c, 0xFE10, 0xFE1F) ||
        wg__is_within(c, 0xFE30, 0xFE4F) || wg__is_within(c, 0xFF01, 0xFF0F) ||
        wg__is_within(c, 0xFF1A, 0xFF20) || wg__is_within(c, 0xFF3B, 0xFF40) ||
        wg__is_within(c, 0xFF5B, 0xFF65))
        return CJK_PUNCTUATION;
    if (wg__is_within(c, 0x2014, 0x201F) || wg__is_within(c, 0x2025, 0x2027) || c == 0xB7 ||
        c == 0x22EF)
        return QUOTATION;
    return SPACED;
}

static int decode(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text) {
    const char *token = wg__strings_text(&tokenizer->vocabulary, id);
    const bool spaces = !options->plain && !wg__tokenizer_is_special(tokenizer, id);
    bool no_space_before = false, no_space_after = false;
    if (strncmp(token, "##", 2) == 0 && token[2] != '\0') {
        token += 2;
        no_space_before = true;
    } else if (spaces && strcmp(token, "\"") == 0) {
        no_space_before = state->open;
        no_space_after = state->open = !state->open;
    } else if (spaces) {
        /* English punctuation. */
        const bool joins =
            wg__is_among(token, WG_NAMES("'", "-", "/", "\u2019", "\u2013", "\u2014"));
        const bool closes = wg__is_among(
            token, WG_NAMES(".", ",", ";", ":", "!", "?", ")", "]", "}", "%", "\u201d", "\u2026"));
        const bool opens = wg__is_among(token, WG_NAMES("(", "[", "{", "\u201c", "\u2018", "$"));
        no_space_before = joins || closes;
        no_space_after = joins || opens;
    }

    enum script first = SPACED, last = SPACED;
    if (spaces) {
        const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)token;
        const utf8proc_ssize_t length = (utf8proc_ssize_t)strlen(token);
        utf8proc_ssize_t end = length - 1;
        utf8proc_int32_t c;
        while (end > 0 && (bytes[end] & 0xC0) == 0x80)
            end--;
        if (utf8proc_iterate(bytes, length, &c) > 0)
            first = script_of(c);
        if (length > 0 && utf8proc_iterate(bytes + end, length - end, &c) > 0)
            last = script_of(c);
    }

    /* Chinese and Japanese characters have no space between them. */
    const enum script before = (enum script)state->script;
    no_space_before |= before == CJK_PUNCTUATION || first == CJK_PUNCTUATION ||
                       (before != SPACED && first != SPACED && (before == CJK || first == CJK));
    state->script = last;
    if (state->space && !no_space_before && wg__text_append(text, " ", 1) < 0)
        return -1;
    state->space = !no_space_after;
    return wg__text_append(text, token, (int64_t)strlen(token));
}

static json_t *options_to_json(const wg_tokenizer *tokenizer) {
    const wordpiece *w = (const wordpiece *)tokenizer;
    return json_pack("{s:b, s:i, s:b}", "lower_case", !w->options.cased, "max_word_characters",
                     w->options.max_word_characters, "huggingface", w->options.huggingface);
}

static wg_tokenizer *from_json(const json_t *json, int64_t count, const char *const *tokens) {
    int lower_case = true, huggingface = false;
    wg_wordpiece_options options = {0};
    json_error_t error;
    if (json_unpack_ex((json_t *)json, &error, 0, "{s:b, s?i, s?b}", "lower_case", &lower_case,
                       "max_word_characters", &options.max_word_characters, "huggingface",
                       &huggingface) < 0)
        return wg__fail_null(WG_ERROR_FORMAT, "wordpiece", "bad options: %s", error.text);
    options.cased = !lower_case;
    options.huggingface = huggingface;
    return wg__wordpiece_new(count, tokens, &options);
}

typedef struct counting {
    wg__merge_training *words;
    int64_t most_characters;
    int64_t long_words; /* words with more characters, which become [UNK] */
} counting;

static int count_word(void *context, const char *word, int64_t length, int64_t characters) {
    counting *c = context;
    const bool is_long = characters > c->most_characters;
    c->long_words += is_long;
    return is_long ? 0 : wg__count_word(c->words, word, length);
}

static int count_words(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                       wg__merge_training *words) {
    const wg_wordpiece_options *options = &((const wordpiece *)tokenizer)->options;
    const wg__basic_rules rules = {options->cased, options->huggingface};
    counting c = {words, options->max_word_characters, 0};
    return wg__basic_tokenize(text, length, rules, count_word, &c);
}

const wg__tokenizer_kind wg__wordpiece_kind = {
    .name = "wordpiece",
    .encode = encode,
    .decode = decode,
    .options_to_json = options_to_json,
    .from_json = from_json,
    .count_words = count_words,
};

/* ---- Training ---- */

typedef struct trainer {
    wg_wordpiece_training settings;
    const char *source;       /* the name of the text in messages */
    wg__merge_training words; /* the pieces are the vocabulary without the special tokens */
    counting counting;
    wg_wordpiece_report report;
} trainer;

static int compare_text(const void *a, const void *b) {
    return strcmp(((const wg__letter *)a)->text, ((const wg__letter *)b)->text);
}

static int add_piece(trainer *t, const char *head, const char *tail, int64_t tail_length) {
    char text[8];
    int64_t head_length = (int64_t)strlen(head);
    memcpy(text, head, (size_t)head_length);
    memcpy(text + head_length, tail, (size_t)tail_length);
    return wg__strings_add(&t->words.pieces, text, head_length + tail_length) < 0 ? -1 : 0;
}

/* Adds the initial pieces: the letters in byte order, then the letters that continue words. */
static int add_alphabet(trainer *t, wg__alphabet *a) {
    if (a->count == 0)
        return wg_fail(WG_ERROR_FORMAT, "wordpiece_train", "%s has no words to learn from",
                       t->source);

    /* The number of letters, fewer than wanted if the vocabulary is too small, and of their tokens:
     * a letter within words has two. */
    const int64_t limit = t->settings.alphabet_limit ? t->settings.alphabet_limit : LEAST_ALPHABET;
    const int64_t least = wg__smaller(limit, a->count);
    const int64_t covering = t->settings.alphabet_limit ? least : wg__alphabet_covering(a);
    int64_t count = wg__larger(covering, least), tokens = SPECIAL_COUNT + count;
    for (int64_t i = 0; i < count; i++)
        tokens += a->letters[i].within;
    t->report.wanted_alphabet = count;
    t->report.wanted_vocabulary = tokens;
    for (; count > least && tokens > t->settings.vocabulary_size; count--)
        tokens -= 1 + a->letters[count - 1].within;
    t->report.alphabet = count;
    if (t->settings.vocabulary_size < tokens)
        return wg_fail(WG_ERROR_ARGUMENT, "wordpiece_train",
                       "a vocabulary of %lld cannot hold the %d special tokens and the %lld "
                       "pieces of one character that this text needs; ask for %lld or more",
                       (long long)t->settings.vocabulary_size, SPECIAL_COUNT,
                       (long long)(tokens - SPECIAL_COUNT), (long long)tokens);
    qsort(a->letters, (size_t)count, sizeof *a->letters, compare_text);
    for (int64_t i = 0; i < count; i++)
        if (add_piece(t, "", a->letters[i].text, (int64_t)strlen(a->letters[i].text)) < 0)
            return -1;
    for (int64_t i = 0; i < count; i++)
        if (a->letters[i].within &&
            add_piece(t, "##", a->letters[i].text, (int64_t)strlen(a->letters[i].text)) < 0)
            return -1;
    return 0;
}

/* Splits a word into characters; skips a word with a character outside the alphabet. */
static int32_t split_word(const wg__merge_training *words, const char *word, int64_t length,
                          int32_t *symbols) {
    int32_t count = 0;
    for (const char *at = word; at < word + length; at += wg__utf8_length(at)) {
        char piece[8] = "##";
        int64_t head = at == word ? 0 : 2, size = wg__utf8_length(at);
        memcpy(piece + head, at, (size_t)size);
        int64_t number = wg__strings_find(&words->pieces, piece, head + size);
        if (number < 0)
            return 0;
        symbols[count++] = (int32_t)number;
    }
    return count;
}

static int add_text(void *context, const char *text, int64_t length) {
    trainer *t = context;
    wg__basic_rules rules = {t->settings.options.cased, t->settings.options.huggingface};
    return wg__basic_tokenize(text, length, rules, count_word, &t->counting);
}

/* Counts the tokens of the text: the tokens of each distinct word times the count of the word. */
static int count_tokens(trainer *t, const wg_tokenizer *tokenizer) {
    wg__token_sink sink = {.drain = NULL};
    encoding e = {(const wordpiece *)tokenizer, &sink};
    const int32_t unknown = tokenizer->special[WG_TOKEN_UNKNOWN];
    int status = 0;
    t->report.tokens = t->report.unknown = t->counting.long_words;
    for (int64_t w = 0; status == 0 && w < t->words.words.count; w++) {
        sink.list.count = 0;
        status = encode_word(&e, wg__strings_text(&t->words.words, w),
                             wg__strings_length(&t->words.words, w), 0);
        const bool known = status == 0 && sink.list.ids[0] != unknown;
        t->report.tokens += sink.list.count * t->words.word_counts[w];
        t->report.unknown += known ? 0 : t->words.word_counts[w];
    }
    wg_token_list_free(&sink.list);
    return status;
}

static wg_tokenizer *train(const wg__texts *texts, const wg_wordpiece_training *training) {
    trainer t = {.source = texts->text || texts->count != 1 ? "the text" : texts->paths[0]};
    wg_wordpiece_training *s = &t.settings;
    if (training)
        *s = *training;
    if (s->vocabulary_size == 0)
        s->vocabulary_size = 4096;
    if (s->min_frequency == 0)
        s->min_frequency = 2;
    if (s->options.max_word_characters == 0)
        s->options.max_word_characters = 200;
    int status = 0;
    if (s->vocabulary_size < 1 || s->vocabulary_size > LARGEST_VOCABULARY)
        status = wg_fail(WG_ERROR_ARGUMENT, "wordpiece_train",
                         "a vocabulary of %lld; it must be 1 to %lld",
                         (long long)s->vocabulary_size, (long long)LARGEST_VOCABULARY);
    else if (s->min_frequency < 1 || s->alphabet_limit < 0)
        status = wg_fail(WG_ERROR_ARGUMENT, "wordpiece_train",
                         "min_frequency and alphabet_limit must not be negative");
    t.counting = (counting){&t.words, s->options.max_word_characters, 0};
    if (status == 0)
        status = wg__each_text(texts, "wordpiece_train", add_text, &t);
    t.words.most_pieces = s->vocabulary_size - SPECIAL_COUNT;
    t.words.min_frequency = s->min_frequency;
    t.words.prefix = 2; /* ## */
    wg__alphabet alphabet = {0};
    if (status == 0)
        status = wg__alphabet_count(&alphabet, &t.words);
    if (status == 0)
        status = add_alphabet(&t, &alphabet);
    wg__strings_clear(&alphabet.texts);
    wg__free(alphabet.letters);
    if (status == 0)
        status = wg__learn_merges(&t.words, split_word);
    const int64_t learnt = t.words.pieces.count;
    const char **tokens =
        status == 0 ? wg__alloc_array(SPECIAL_COUNT + learnt, sizeof *tokens) : NULL;
    if (tokens)
        memcpy(tokens, special_names, sizeof special_names);
    for (int64_t i = 0; tokens && i < learnt; i++)
        tokens[SPECIAL_COUNT + i] = wg__strings_text(&t.words.pieces, i);
    wg_tokenizer *tokenizer =
        tokens ? wg__wordpiece_new(SPECIAL_COUNT + learnt, tokens, &s->options) : NULL;
    wg__free(tokens);
    if (tokenizer && s->report) {
        tokenizer = wg__tokenizer_checked(tokenizer, count_tokens(&t, tokenizer));
        *s->report = t.report;
    }
    wg__merge_training_clear(&t.words);
    return tokenizer;
}

wg_tokenizer *wg__wordpiece_train(const char *text, int64_t length,
                                  const wg_wordpiece_training *training) {
    return text ? train(&(wg__texts){.text = text, .length = length}, training) : NULL;
}

wg_tokenizer *wg_wordpiece_train_files(int count, const char *const *paths,
                                       const wg_wordpiece_training *training) {
    return train(&(wg__texts){.count = count, .paths = paths}, training);
}
