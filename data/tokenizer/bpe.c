/* Byte-level byte-pair encoding (GPT-2): the alphabet of bytes, encoding, decoding, JSON, the files
 * vocab.json and merges.txt, and training. See tokenizer.h and kind.h. */
#include <string.h>

#include "base/array.h"
#include "base/replacement.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/text_file.h"
#include "data/internal.h"

#define LARGEST_VOCABULARY INT64_C(10000000)
#define LONGEST_PART 4096 /* bytes; longer parts are not words, and would take quadratic time */
#define SPECIAL_COUNT 1

/* The bytes that do not print, in order: 0 to 0x20, 0x7F to 0xA0, 0xAD. */
#define LOW 0x21             /* the number of bytes from 0 to 0x20 */
#define MIDDLE (0xA0 - 0x7E) /* the number of bytes from 0x7F to 0xA0 */

static int character_of(unsigned char byte) {
    if (byte < LOW)
        return 0x100 + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return 0x100 + LOW + byte - 0x7F;
    return byte == 0xAD ? 0x100 + LOW + MIDDLE : byte;
}

static int byte_of(int character) {
    if (character < 0x100)
        return character_of((unsigned char)character) == character ? character : -1;
    int number = character - 0x100;
    return number < LOW             ? number
           : number < LOW + MIDDLE  ? number - LOW + 0x7F
           : number == LOW + MIDDLE ? 0xAD
                                    : -1;
}

int64_t wg__byte_to_letter(unsigned char byte, char letter[2]) {
    int character = character_of(byte);
    if (character < 0x80) {
        letter[0] = (char)character;
        return 1;
    }
    letter[0] = (char)(0xC0 | character >> 6);
    letter[1] = (char)(0x80 | (character & 0x3F));
    return 2;
}

int wg__set_merges(wg__merge_list *list, const wg__strings *vocabulary, int64_t count,
                   const int32_t (*merges)[2], const char *where) {
    list->pairs = wg__alloc_array(count + 1, sizeof *list->pairs);
    if (!list->pairs)
        return -1;
    list->count = count;
    for (int64_t i = 0; i < count; i++) {
        memcpy(list->pairs[i], merges[i], sizeof merges[i]);
        /* Finds the id of the joined text, and adds the merge to the table. */
        int32_t left = merges[i][0], right = merges[i][1];
        if (left < 0 || left >= vocabulary->count || right < 0 || right >= vocabulary->count)
            return wg_fail(WG_ERROR_FORMAT, where,
                           "merge %lld is of %d and %d; the vocabulary has %lld", (long long)i + 1,
                           left, right, (long long)vocabulary->count);
        const char *head = wg__strings_text(vocabulary, left);
        const char *tail = wg__strings_text(vocabulary, right);
        int64_t head_length = wg__strings_length(vocabulary, left);
        int64_t tail_length = wg__strings_length(vocabulary, right);
        const uint64_t hash = wg__hash(wg__hash(WG__HASH_BEGIN, head, (size_t)head_length), tail,
                                       (size_t)tail_length);
        int64_t joined =
            wg__strings_find_joined(vocabulary, hash, head, head_length, tail, tail_length);
        if (joined < 0)
            return wg_fail(WG_ERROR_FORMAT, where,
                           "merge %lld of \"%.100s\" and \"%.100s\" is not a token",
                           (long long)i + 1, wg__strings_text(vocabulary, left),
                           wg__strings_text(vocabulary, right));
        wg__pair *pair = wg__pair_table_add(&list->table, left, right);
        if (!pair)
            return -1;
        if (pair->first >= 0)
            return wg_fail(WG_ERROR_FORMAT, where,
                           "merge %lld of \"%.100s\" and \"%.100s\" occurs twice", (long long)i + 1,
                           wg__strings_text(vocabulary, left), wg__strings_text(vocabulary, right));
        pair->first = (int32_t)i;
        pair->second = (int32_t)joined;
    }
    return 0;
}

static int fill(wg__bpe *bpe, int64_t count, const char *const *tokens, int64_t merge_count,
                const int32_t (*merges)[2], const wg_bpe_options *options) {
    bpe->prefix_space = options && options->prefix_space;
    bpe->whole_words = options && options->whole_words;
    bpe->pattern = wg__strdup(options && options->pattern ? options->pattern : WG__GPT2_PATTERN);
    if (!bpe->pattern)
        return -1;
    bpe->splitter = wg__splitter_new(bpe->pattern);
    if (!bpe->splitter || wg__tokenizer_set_vocabulary(&bpe->base, count, tokens, "token") < 0)
        return -1;
    for (int byte = 0; byte < 256; byte++) {
        char letter[2];
        int64_t length = wg__byte_to_letter((unsigned char)byte, letter);
        int64_t id = wg__strings_find(&bpe->base.vocabulary, letter, length);
        if (id < 0)
            return wg_fail(WG_ERROR_FORMAT, "bpe",
                           "the token \"%.*s\" for the byte 0x%02x is missing", (int)length, letter,
                           byte);
        bpe->bytes[byte] = (int32_t)id;
    }
    if (wg__set_merges(&bpe->merges, &bpe->base.vocabulary, merge_count, merges, "bpe") < 0)
        return -1;
    return wg__tokenizer_find_special(&bpe->base);
}

wg_tokenizer *wg__bpe_new(int64_t count, const char *const *tokens, int64_t merge_count,
                          const int32_t (*merges)[2], const wg_bpe_options *options) {
    wg__bpe *bpe = wg__tokenizer_new(&wg__bpe_kind, sizeof *bpe);
    if (!bpe)
        return NULL;
    return wg__tokenizer_checked(&bpe->base,
                                 fill(bpe, count, tokens, merge_count, merges, options));
}

static void clear(wg_tokenizer *tokenizer) {
    wg__bpe *bpe = (wg__bpe *)tokenizer;
    wg__pair_table_clear(&bpe->merges.table);
    wg__free(bpe->merges.pairs);
    wg__splitter_free(bpe->splitter);
    wg__free(bpe->pattern);
}

typedef struct encoding {
    const wg__bpe *bpe;
    wg__token_sink *sink;
    wg__merge_buffer buffer;
    wg__text letters; /* of the current part; only for whole_words */
} encoding;

/* Appends the bytes of the part to the list of ids and merges them there. */
static int encode_part(void *context, const char *part, int64_t length) {
    encoding *e = context;
    wg_token_list *list = &e->sink->list;
    if (e->bpe->whole_words) {
        e->letters.length = 0;
        for (int64_t i = 0; i < length; i++) {
            char letter[2];
            int64_t size = wg__byte_to_letter((unsigned char)part[i], letter);
            if (wg__text_append(&e->letters, letter, size) < 0)
                return -1;
        }
        int64_t id =
            wg__strings_find(&e->bpe->base.vocabulary, e->letters.bytes, e->letters.length);
        if (id >= 0)
            return wg_token_list_append(list, (int32_t)id) < 0 ? -1 : wg__token_sink_flush(e->sink);
    }
    if (wg__reserve(&list->ids, list->count, &list->capacity, list->count + length,
                    sizeof *list->ids) < 0)
        return -1;
    int32_t *ids = list->ids + list->count;
    for (int64_t i = 0; i < length; i++)
        ids[i] = e->bpe->bytes[(unsigned char)part[i]];
    int64_t count = wg__merge(&e->bpe->merges.table, ids, length, &e->buffer);
    if (count < 0)
        return -1;
    list->count += count;
    return wg__token_sink_flush(e->sink);
}

/* Splits a text, with a space before it if the options say so, and visits its parts. */
static int split(const wg__bpe *bpe, const char *text, int64_t length, wg__part_visitor visit,
                 void *context) {
    if (!bpe->prefix_space || *text == ' ')
        return wg__split(bpe->splitter, text, length, visit, context);
    wg__text spaced = {0};
    int status = -1;
    if (wg__text_append(&spaced, " ", 1) == 0 && wg__text_append(&spaced, text, length) == 0)
        status = wg__split(bpe->splitter, spaced.bytes, spaced.length, visit, context);
    wg__free(spaced.bytes);
    return status;
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    (void)first;
    encoding e = {.bpe = (const wg__bpe *)tokenizer, .sink = sink};
    int status = split(e.bpe, text, length, encode_part, &e);
    wg__free(e.buffer.block);
    wg__free(e.letters.bytes);
    return status;
}

int wg__letters_to_bytes(const char *letters, int64_t length, wg__text *text) {
    const int64_t before = text->length;
    for (int64_t at = 0; at < length;) {
        const unsigned char *b = (const unsigned char *)letters + at;
        const int64_t size = b[0] < 0x80 ? 1 : 2;
        int byte = -1;
        if (size == 1)
            byte = byte_of(b[0]);
        else if (length - at >= 2 && (b[0] & 0xE0) == 0xC0)
            byte = byte_of((b[0] & 0x1F) << 6 | (b[1] & 0x3F));
        if (byte < 0) { /* not in the alphabet */
            text->length = before;
            return wg__text_append(text, letters, length);
        }
        if (wg__text_append(text, &(char){(char)byte}, 1) < 0)
            return -1;
        at += size;
    }
    return 0;
}

static int decode(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text) {
    (void)options, (void)state;
    const char *token = wg__strings_text(&tokenizer->vocabulary, id);
    int64_t length = wg__strings_length(&tokenizer->vocabulary, id);
    if (tokenizer->added_by_id && tokenizer->added_by_id[id] >= 0)
        return wg__text_append(text, token, length);
    return wg__letters_to_bytes(token, length, text);
}

json_t *wg__merges_to_json(const wg__merge_list *merges) {
    json_t *list = json_array();
    for (int64_t i = 0; i < 2 * merges->count; i++)
        wg__json_append(&list, json_integer(merges->pairs[i / 2][i % 2]));
    return list;
}

static json_t *options_to_json(const wg_tokenizer *tokenizer) {
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    return json_pack("{s:s, s:b, s:b, s:o}", "pattern", bpe->pattern, "prefix_space",
                     bpe->prefix_space, "whole_words", bpe->whole_words, "merges",
                     wg__merges_to_json(&bpe->merges));
}

int32_t (*wg__merges_of_json(const json_t *json, int64_t *count, const char *where))[2] {
    int64_t numbers = (int64_t)json_array_size(json);
    int32_t(*merges)[2] = wg__alloc_array(numbers + 2, sizeof(int32_t));
    bool good = json_is_array(json) && numbers % 2 == 0;
    for (int64_t i = 0; merges && good && i < numbers; i++) {
        const json_t *id = json_array_get(json, (size_t)i);
        json_int_t value = json_integer_value(id);
        good = json_is_integer(id) && value >= 0 && value <= INT32_MAX;
        merges[i / 2][i % 2] = (int32_t)value;
    }
    if (merges && !good) {
        wg_fail(WG_ERROR_FORMAT, where, "\"merges\" is no list of pairs of ids");
        wg__free(merges);
        return NULL;
    }
    *count = numbers / 2;
    return merges;
}

static wg_tokenizer *from_json(const json_t *json, int64_t count, const char *const *tokens) {
    int prefix_space = false, whole_words = false;
    const char *pattern;
    json_t *list;
    json_error_t error;
    if (json_unpack_ex((json_t *)json, &error, 0, "{s:s, s:b, s:b, s:o}", "pattern", &pattern,
                       "prefix_space", &prefix_space, "whole_words", &whole_words, "merges",
                       &list) < 0)
        return wg__fail_null(WG_ERROR_FORMAT, "bpe", "bad options: %s", error.text);
    int64_t merge_count;
    int32_t(*merges)[2] = wg__merges_of_json(list, &merge_count, "bpe");
    if (!merges)
        return NULL;
    wg_bpe_options options = {pattern, prefix_space, whole_words};
    wg_tokenizer *tokenizer =
        wg__bpe_new(count, tokens, merge_count, (const int32_t(*)[2])merges, &options);
    wg__free(merges);
    return tokenizer;
}

static int count_part(void *words, const char *part, int64_t length) {
    return length > LONGEST_PART ? 0 : wg__count_word(words, part, length);
}

/* The special token separates documents and is not counted. */
static int count_words(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                       wg__merge_training *words) {
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    const char *end = text + length;
    while (text < end) {
        const char *found =
            memmem(text, (size_t)(end - text), WG__END_OF_TEXT, WG__END_OF_TEXT_LENGTH);
        const char *stop = found ? found : end;
        if (stop > text && split(bpe, text, stop - text, count_part, words) < 0)
            return -1;
        text = found ? found + WG__END_OF_TEXT_LENGTH : end;
    }
    return 0;
}

const wg__tokenizer_kind wg__bpe_kind = {
    .name = "bpe",
    .encode = encode,
    .decode = decode,
    .options_to_json = options_to_json,
    .from_json = from_json,
    .count_words = count_words,
    .clear = clear,
};

const char **wg__tokens_by_id(const json_t *object, int64_t *count, const char *name) {
    *count = (int64_t)json_object_size(object);
    if (*count > INT32_MAX || *count == 0)
        return wg__fail_null(WG_ERROR_FORMAT, "bpe", "%s is not an object of tokens and their ids",
                             name);
    const char **tokens = wg__calloc((size_t)*count, sizeof *tokens), *token;
    json_t *id;
    int status = tokens ? 0 : -1;
    json_object_foreach((json_t *)object, token, id) {
        json_int_t value = json_integer_value(id);
        if (status < 0)
            break;
        if (!json_is_integer(id) || value < 0 || value >= *count)
            status = wg_fail(WG_ERROR_FORMAT, "bpe", "%s: the id of \"%.100s\" is not 0 to %lld",
                             name, token, (long long)*count - 1);
        else if (tokens[value])
            status = wg_fail(WG_ERROR_FORMAT, "bpe", "%s: \"%.100s\" and \"%.100s\" are both %lld",
                             name, tokens[value], token, (long long)value);
        else
            tokens[value] = token;
    }
    if (status == 0)
        return tokens;
    wg__free(tokens);
    return NULL;
}

/* Reads each line "left right" as two ids; skips a first line "#version...". Returns the number of
 * merges, or -1. */
static int64_t read_merges(char *text, int64_t length, const wg__strings *vocabulary,
                           const char *name, int32_t (**merges)[2]) {
    int64_t count = 0, capacity = 0, number = 1;
    char *end = text + length, *next;
    for (char *line = text; line < end; line = next, number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        next = stop + 1;
        if (stop > line && stop[-1] == '\r')
            stop--;
        *stop = '\0';
        if ((number == 1 && strncmp(line, "#version", 8) == 0) || (stop == line && next >= end))
            continue;
        char *blank = strchr(line, ' ');
        if (!blank || blank == line || blank[1] == '\0' || strchr(blank + 1, ' '))
            return wg_fail(WG_ERROR_FORMAT, "bpe",
                           "%s: line %lld is not two tokens with a space between", name,
                           (long long)number);
        if (wg__reserve(merges, count, &capacity, count + 1, sizeof **merges) < 0)
            return -1;
        const char *parts[] = {line, blank + 1};
        const int64_t lengths[] = {blank - line, (int64_t)strlen(blank + 1)};
        for (int i = 0; i < 2; i++) {
            (*merges)[count][i] = (int32_t)wg__strings_find(vocabulary, parts[i], lengths[i]);
            if ((*merges)[count][i] < 0)
                return wg_fail(WG_ERROR_FORMAT, "bpe",
                               "%s: line %lld: the vocabulary has no token \"%.*s\"", name,
                               (long long)number, (int)wg__smaller(lengths[i], 100), parts[i]);
        }
        count++;
    }
    return count;
}

wg_tokenizer *wg__bpe_read(const json_t *vocabulary, const char *vocabulary_name, char *merges,
                           int64_t length, const char *merges_name) {
    if (wg__utf8_check(merges, length, merges_name, "bpe") < 0)
        return NULL;
    if (memchr(merges, '\0', (size_t)length))
        return wg__fail_null(WG_ERROR_FORMAT, "bpe", "%s has a NUL byte: no list of merges",
                             merges_name);
    int64_t count, merge_count = -1;
    const char **tokens = wg__tokens_by_id(vocabulary, &count, vocabulary_name);
    wg__strings known = {0};
    int32_t(*list)[2] = NULL;
    int status = tokens ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < count; i++)
        status = wg__strings_add(&known, tokens[i], (int64_t)strlen(tokens[i])) < 0 ? -1 : 0;
    if (status == 0)
        merge_count = read_merges(merges, length, &known, merges_name, &list);
    wg__strings_clear(&known);
    wg_tokenizer *tokenizer = NULL;
    if (merge_count >= 0)
        tokenizer = wg__bpe_new(count, tokens, merge_count, (const int32_t(*)[2])list, NULL);
    wg__free(list);
    wg__free(tokens);
    return tokenizer;
}

wg_tokenizer *wg__bpe_load(const char *vocabulary_path, const char *merges_path) {
    int64_t length, merges_length;
    char *bytes = wg__text_file_read(vocabulary_path, &length, "bpe");
    json_t *vocabulary = bytes ? wg__json_parse(bytes, length, vocabulary_path) : NULL;
    wg__free(bytes);
    char *merges = vocabulary ? wg__text_file_read(merges_path, &merges_length, "bpe") : NULL;
    wg_tokenizer *tokenizer = NULL;
    if (merges)
        tokenizer = wg__bpe_read(vocabulary, vocabulary_path, merges, merges_length, merges_path);
    wg__free(merges);
    json_decref(vocabulary);
    return tokenizer;
}

int wg__bpe_save(const wg_tokenizer *tokenizer, const char *vocabulary_path,
                 const char *merges_path) {
    if (!tokenizer)
        return -1;
    if (tokenizer->kind != &wg__bpe_kind)
        return wg_fail(WG_ERROR_ARGUMENT, "bpe",
                       "a %s tokenizer has no vocab.json and merges.txt; wg_tokenizer_save writes "
                       "any kind",
                       tokenizer->kind->name);
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    const wg__strings *tokens = &tokenizer->vocabulary;
    wg__text vocabulary = {0}, merges = {0};
    json_t *object = json_object();
    for (int64_t i = 0; i < tokens->count; i++)
        wg__json_put(&object, wg__strings_text(tokens, i), json_integer(i));
    int status = wg__json_dump(object, JSON_ENSURE_ASCII, &vocabulary);
    json_decref(object);
    if (status == 0)
        status = wg__text_append(&merges, "#version: 0.2\n", 14);
    for (int64_t i = 0; status == 0 && i < 2 * bpe->merges.count; i++) {
        const int32_t id = bpe->merges.pairs[i / 2][i % 2];
        if (wg__text_append(&merges, wg__strings_text(tokens, id), wg__strings_length(tokens, id)) <
                0 ||
            wg__text_append(&merges, i % 2 ? "\n" : " ", 1) < 0)
            status = -1;
    }
    if (status == 0)
        status = wg__replace_file(vocabulary_path, vocabulary.bytes, vocabulary.length, "bpe");
    if (status == 0)
        status = wg__replace_file(merges_path, merges.bytes, merges.length, "bpe");
    wg__free(vocabulary.bytes);
    wg__free(merges.bytes);
    return status;
}

typedef struct trainer {
    wg_bpe_training settings;
    wg__bpe splitting;        /* only `splitter` and `prefix_space` */
    wg__merge_training words; /* the pieces are the vocabulary without the special token */
} trainer;

static int add_text(void *context, const char *text, int64_t length) {
    trainer *t = context;
    return count_words(&t->splitting.base, text, length, &t->words);
}

static int32_t split_word(const wg__merge_training *words, const char *word, int64_t length,
                          int32_t *symbols) {
    for (int64_t i = 0; i < length; i++) {
        char letter[2];
        int64_t size = wg__byte_to_letter((unsigned char)word[i], letter);
        symbols[i] = (int32_t)wg__strings_find(&words->pieces, letter, size);
    }
    return (int32_t)length;
}

static wg_tokenizer *train(const wg__texts *texts, const wg_bpe_training *training) {
    trainer t = {.settings = training ? *training : (wg_bpe_training){0}};
    wg_bpe_training *s = &t.settings;
    t.splitting.prefix_space = s->options.prefix_space;
    if (s->vocabulary_size == 0)
        s->vocabulary_size = 4096;
    if (s->min_frequency == 0)
        s->min_frequency = 2;
    int status = 0;
    if (s->vocabulary_size < 256 + SPECIAL_COUNT || s->vocabulary_size > LARGEST_VOCABULARY)
        status = wg_fail(
            WG_ERROR_ARGUMENT, "bpe_train", "a vocabulary of %lld; it must be %d to %lld",
            (long long)s->vocabulary_size, 256 + SPECIAL_COUNT, (long long)LARGEST_VOCABULARY);
    else if (s->min_frequency < 1)
        status = wg_fail(WG_ERROR_ARGUMENT, "bpe_train", "min_frequency must be at least 1");
    else
        t.splitting.splitter =
            wg__splitter_new(s->options.pattern ? s->options.pattern : WG__GPT2_PATTERN);
    if (!t.splitting.splitter)
        status = -1;
    if (status == 0)
        status = wg__each_text(texts, "bpe_train", add_text, &t);
    if (status == 0 && t.words.words.count == 0)
        status = wg__fail_without_text(texts, "bpe_train");
    wg__strings *pieces = &t.words.pieces;
    /* GPT-2's vocabulary begins with the 256 bytes in the order of their letters. */
    for (int character = 0; status == 0 && character < 0x200; character++) {
        char letter[2];
        const int byte = byte_of(character);
        const int64_t length = byte < 0 ? 0 : wg__byte_to_letter((unsigned char)byte, letter);
        if (length > 0 && wg__strings_add(pieces, letter, length) < 0)
            status = -1;
    }
    t.words.most_pieces = s->vocabulary_size - SPECIAL_COUNT;
    t.words.min_frequency = s->min_frequency;
    if (status == 0)
        status = wg__learn_merges(&t.words, split_word);
    const int64_t count = pieces->count + SPECIAL_COUNT;
    const char **tokens = status == 0 ? wg__alloc_array(count, sizeof *tokens) : NULL;
    for (int64_t i = 0; tokens && i < pieces->count; i++)
        tokens[i] = wg__strings_text(pieces, i);
    if (tokens)
        tokens[pieces->count] = WG__END_OF_TEXT;
    wg_tokenizer *tokenizer = tokens ? wg__bpe_new(count, tokens, t.words.merge_count,
                                                   (const int32_t(*)[2])t.words.merges, &s->options)
                                     : NULL;
    wg__free(tokens);
    wg__merge_training_clear(&t.words);
    wg__splitter_free(t.splitting.splitter);
    return tokenizer;
}

wg_tokenizer *wg__bpe_train(const char *text, int64_t length, const wg_bpe_training *training) {
    return text ? train(&(wg__texts){.text = text, .length = length}, training) : NULL;
}

wg_tokenizer *wg_bpe_train_files(int count, const char *const *paths,
                                 const wg_bpe_training *training) {
    return train(&(wg__texts){.count = count, .paths = paths}, training);
}
