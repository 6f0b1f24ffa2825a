/* Sentences and their translations: see sentence_pairs.h. */
#include "data/sentence_pairs.h"

#include <string.h>

#include "data/growth.h"
#include "data/space.h"
#include "data/strings.h"
#include "data/text_file.h"
#include "tensor/internal.h"

#define WHERE "sentence_pairs"

/* A row of numbers that grows. */
typedef struct numbers {
    int64_t *values;
    int64_t count, capacity;
} numbers;

/* One side of all pairs: line i is text from starts[i] on, closed by a NUL, and its tokens are
 * those from token_starts[i] to token_starts[i + 1] - 1. */
typedef struct side {
    wg__text text;
    numbers starts, token_starts;
    wg_token_list tokens;
} side;

struct wg_sentence_pairs {
    side sides[2];
    int64_t vocabulary;
};

/* A file while it is read. */
typedef struct lines {
    const char *name; /* for messages */
    const char *text;
    int64_t length, count;
} lines;

static int append(numbers *list, int64_t value) {
    int64_t *values =
        wg__grow(list->values, list->count, &list->capacity, list->count + 1, sizeof *values);
    if (!values)
        return -1;
    list->values = values;
    values[list->count++] = value;
    return 0;
}

/* ---- Lines ---- */

static int64_t count_lines(const char *text, int64_t length) {
    int64_t count = length > 0 && text[length - 1] != '\n';
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + length - at))); at++)
        count++;
    return count;
}

static int check_lines(lines *file) {
    if (wg__utf8_check(file->text, file->length, file->name, WHERE) < 0)
        return -1;
    if (memchr(file->text, '\0', (size_t)file->length))
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds a NUL; it is no text", file->name);
    file->count = count_lines(file->text, file->length);
    return file->count > 0 ? 0 : wg_fail(WG_ERROR_FORMAT, WHERE, "%s is empty", file->name);
}

/* The line that begins at `at`, without its line break; *next is where the next one begins. */
static int64_t line_length(const lines *file, int64_t at, int64_t *next) {
    const char *begin = file->text + at;
    const char *end = memchr(begin, '\n', (size_t)(file->length - at));
    int64_t length = end ? end - begin : file->length - at;
    *next = at + length + 1;
    return length > 0 && begin[length - 1] == '\r' ? length - 1 : length;
}

static bool is_blank(const char *text, int64_t length) {
    int64_t at = 0;
    for (int64_t space; at < length && (space = wg__space_length(text + at, length - at)) > 0;)
        at += space;
    return at == length;
}

static int add_line(side *s, const char *line, int64_t length, const wg_tokenizer *tokenizer) {
    if (append(&s->starts, s->text.length) < 0 || wg__text_append(&s->text, line, length) < 0 ||
        wg__text_append(&s->text, "", 1) < 0 ||
        wg_tokenizer_encode(tokenizer, line, length, NULL, &s->tokens) < 0)
        return -1;
    return append(&s->token_starts, s->tokens.count);
}

/* Adds the lines `first` to `end` - 1 of a file; the others are only looked at. */
static int add_lines(side *s, const lines *file, int64_t first, int64_t end,
                     const wg_tokenizer *tokenizer) {
    int64_t next;
    for (int64_t i = 0, at = 0; i < file->count; i++, at = next) {
        const int64_t length = line_length(file, at, &next), before = s->tokens.count;
        const bool blank = is_blank(file->text + at, length), kept = i >= first && i < end;
        if (!blank && kept && add_line(s, file->text + at, length, tokenizer) < 0)
            return -1;
        if (blank || (kept && s->tokens.count == before))
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: line %lld is empty; each line must be a sentence, and the same "
                           "line of the other file its translation",
                           file->name, (long long)i + 1);
    }
    return 0;
}

/* ---- Pairs ---- */

static int check_options(const wg_sentence_pairs_options *options) {
    if (options->begin >= 0 && options->begin < options->end && options->end <= 1)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a part from %g to %g; wanted 0 <= begin < end <= 1",
                   options->begin, options->end);
}

/* Adds the part of two files that is wanted, if they belong together. */
static int add_files(wg_sentence_pairs *pairs, lines files[2], const wg_tokenizer *tokenizer,
                     const wg_sentence_pairs_options *options) {
    if (check_lines(&files[0]) < 0 || check_lines(&files[1]) < 0)
        return -1;
    if (files[0].count != files[1].count)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s has %lld lines and %s has %lld; each line must be the translation of "
                       "the same line of the other file",
                       files[0].name, (long long)files[0].count, files[1].name,
                       (long long)files[1].count);
    const int64_t first = (int64_t)(options->begin * (double)files[0].count);
    const int64_t end = (int64_t)(options->end * (double)files[0].count);
    for (int i = 0; i < 2; i++)
        if (add_lines(&pairs->sides[i], &files[i], first, end, tokenizer) < 0)
            return -1;
    return 0;
}

static int load_files(wg_sentence_pairs *pairs, const char *const *paths,
                      const wg_tokenizer *tokenizer, const wg_sentence_pairs_options *options) {
    lines files[2] = {{.name = paths[0]}, {.name = paths[1]}};
    char *texts[2];
    for (int i = 0; i < 2; i++)
        files[i].text = texts[i] = wg__text_file_read(paths[i], &files[i].length, WHERE);
    const int result = texts[0] && texts[1] ? add_files(pairs, files, tokenizer, options) : -1;
    wg__free(texts[0]);
    wg__free(texts[1]);
    return result;
}

static wg_sentence_pairs *begin(const wg_tokenizer *tokenizer, wg_sentence_pairs_options *options) {
    if (options->end == 0)
        options->end = 1;
    if (check_options(options) < 0)
        return NULL;
    wg_sentence_pairs *pairs = wg__calloc(1, sizeof *pairs);
    if (!pairs)
        return NULL;
    pairs->vocabulary = wg_tokenizer_size(tokenizer);
    if (append(&pairs->sides[0].token_starts, 0) == 0 &&
        append(&pairs->sides[1].token_starts, 0) == 0)
        return pairs;
    wg_sentence_pairs_free(pairs);
    return NULL;
}

static wg_sentence_pairs *finish(wg_sentence_pairs *pairs, int status) {
    if (status == 0 && wg_sentence_pairs_count(pairs) == 0)
        status = wg_fail(WG_ERROR_ARGUMENT, WHERE,
                         "no pair is left of so few; give more pairs, or a text to measure on");
    if (status == 0)
        return pairs;
    wg_sentence_pairs_free(pairs);
    return NULL;
}

wg_sentence_pairs *wg_sentence_pairs_load(int count, const char *const *paths,
                                          const wg_tokenizer *tokenizer,
                                          const wg_sentence_pairs_options *options) {
    if (!tokenizer)
        return NULL;
    if (count < 2 || count % 2 != 0) {
        wg_fail(WG_ERROR_ARGUMENT, WHERE,
                "%d file%s; wanted a source and its target, line by line (or several such pairs, "
                "one after the other)",
                count, count == 1 ? "" : "s");
        return NULL;
    }
    wg_sentence_pairs_options part = options ? *options : (wg_sentence_pairs_options){0};
    wg_sentence_pairs *pairs = begin(tokenizer, &part);
    int status = pairs ? 0 : -1;
    for (int i = 0; status == 0 && i < count; i += 2)
        status = load_files(pairs, paths + i, tokenizer, &part);
    return finish(pairs, status);
}

wg_sentence_pairs *wg_sentence_pairs_from_texts(const char *source, const char *target,
                                                const wg_tokenizer *tokenizer,
                                                const wg_sentence_pairs_options *options) {
    if (!tokenizer || !source || !target)
        return NULL;
    lines files[2] = {{.name = "the source", .text = source, .length = (int64_t)strlen(source)},
                      {.name = "the target", .text = target, .length = (int64_t)strlen(target)}};
    wg_sentence_pairs_options part = options ? *options : (wg_sentence_pairs_options){0};
    wg_sentence_pairs *pairs = begin(tokenizer, &part);
    return finish(pairs, pairs ? add_files(pairs, files, tokenizer, &part) : -1);
}

void wg_sentence_pairs_free(wg_sentence_pairs *pairs) {
    if (!pairs)
        return;
    for (int i = 0; i < 2; i++) {
        wg__free(pairs->sides[i].text.bytes);
        wg__free(pairs->sides[i].starts.values);
        wg__free(pairs->sides[i].token_starts.values);
        wg_token_list_free(&pairs->sides[i].tokens);
    }
    wg__free(pairs);
}

/* ---- What they hold ---- */

int64_t wg_sentence_pairs_count(const wg_sentence_pairs *pairs) {
    return pairs ? pairs->sides[0].starts.count : 0;
}

int64_t wg_sentence_pairs_vocabulary(const wg_sentence_pairs *pairs) {
    return pairs ? pairs->vocabulary : 0;
}

const char *wg_sentence_pairs_text(const wg_sentence_pairs *pairs, wg_side which, int64_t index) {
    if (index < 0 || index >= wg_sentence_pairs_count(pairs))
        return NULL;
    const side *s = &pairs->sides[which];
    return s->text.bytes + s->starts.values[index];
}

const int32_t *wg_sentence_pairs_tokens(const wg_sentence_pairs *pairs, wg_side which,
                                        int64_t index, int64_t *count) {
    *count = 0;
    if (index < 0 || index >= wg_sentence_pairs_count(pairs))
        return NULL;
    const side *s = &pairs->sides[which];
    *count = s->token_starts.values[index + 1] - s->token_starts.values[index];
    return s->tokens.ids + s->token_starts.values[index];
}

int64_t wg_sentence_pairs_total(const wg_sentence_pairs *pairs, wg_side which) {
    return pairs ? pairs->sides[which].tokens.count : 0;
}

static uint64_t mix(uint64_t hash, int64_t value) {
    for (int byte = 0; byte < 8; byte++)
        hash = (hash ^ (uint64_t)(value >> 8 * byte & 0xFF)) * UINT64_C(1099511628211);
    return hash;
}

int64_t wg_sentence_pairs_fingerprint(const wg_sentence_pairs *pairs) {
    uint64_t hash = WG__HASH_EMPTY;
    for (int which = 0; pairs && which < 2; which++) {
        const side *s = &pairs->sides[which];
        for (int64_t i = 0; i < s->token_starts.count; i++)
            hash = mix(hash, s->token_starts.values[i]);
        for (int64_t i = 0; i < s->tokens.count; i++)
            hash = mix(hash, s->tokens.ids[i]);
    }
    return (int64_t)hash;
}
