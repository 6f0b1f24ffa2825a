/* Sentences of tagged words: see tagged_words.h. */
#include "data/dataset/tagged_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/string_table.h"
#include "data/tokenizer/text_file.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "tagged_words"

enum { MOST_COLUMNS = 64, CONLLU_COLUMNS = 10 };

static const char *const conllu_names[CONLLU_COLUMNS] = {"ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                                         "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};
enum { CONLLU_FORM = 1, CONLLU_UPOS = 3 };

typedef struct word {
    int64_t text;       /* where it begins in the texts */
    int64_t first, end; /* its pieces */
    int64_t tag;
} word;

/* A growing list of numbers. */
typedef struct numbers {
    int64_t *items;
    int64_t count, capacity;
} numbers;

struct wg__tagged_words {
    wg__text texts; /* of the words, a NUL behind each */
    wg_token_list pieces;
    word *words;
    int64_t count, capacity;
    numbers sentences, windows; /* their first words */
};

/* A file being read. */
typedef struct reading {
    const char *path;
    const wg_tokenizer *tokenizer;
    wg__labels *labels;
    wg__tagged_words_options options;
    bool collects;  /* new tags are added */
    bool spaced;    /* tokens have the space before a word in them, as those of bpe */
    bool conllu;    /* the columns are those of CoNLL-U */
    bool tabs;      /* columns are separated by tabs */
    int columns;    /* of all lines; 0: not known yet */
    int token, tag; /* which of them are read */
    int64_t line;   /* from 1 on */
    bool begins;    /* the next word begins a sentence */
    wg__text scratch;
    wg__tagged_words *words;
} reading;

static int append_number(numbers *list, int64_t number) {
    return wg__append(&list->items, &list->count, &list->capacity, &number, sizeof number);
}

/* ---- Columns ---- */

/* Cuts a line at its tabs, or at its spaces if it has no tab. Returns the number of columns. */
static int split(char *line, char *columns[MOST_COLUMNS]) {
    const bool tabs = strchr(line, '\t') != NULL;
    int count = 0;
    for (char *rest = line; rest && count <= MOST_COLUMNS;) {
        if (!tabs)
            rest += strspn(rest, " ");
        if (!tabs && !*rest)
            break;
        if (count < MOST_COLUMNS)
            columns[count] = rest;
        count++;
        rest = strpbrk(rest, tabs ? "\t" : " ");
        if (rest)
            *rest++ = '\0';
    }
    return count;
}

/* "7", "2-3" or "8.1". */
static bool is_conllu_id(const char *text) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0)
        return false;
    text += digits;
    return *text == '\0' || ((*text == '-' || *text == '.') && text[1] &&
                             text[1 + strspn(text + 1, "0123456789")] == '\0');
}

/* Which column an option says, or `standard`. -1 with an error. */
static int choose(const reading *r, const char *option, const char *name, int standard) {
    if (!name || !*name)
        return standard;
    char *end;
    const long number = strtol(name, &end, 10);
    int column = *end == '\0' && number >= 1 && number <= MOST_COLUMNS ? (int)number - 1 : -1;
    for (int i = 0; column < 0 && r->conllu && i < CONLLU_COLUMNS; i++)
        if (strcmp(name, conllu_names[i]) == 0)
            column = i;
    if (column < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "--%s %.80s: wanted the number of a column, from 1 on%s", option, name,
                       r->conllu
                           ? ", or its name: ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, "
                             "DEPS or MISC"
                           : "");
    if (column < r->columns)
        return column;
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: --%s %.80s: the line has %d columns",
                   r->path, (long long)r->line, option, name, r->columns);
}

/* What the first line of a word says of all of them. */
static int read_first(reading *r, int count, char *const *columns, bool tabs) {
    r->columns = count;
    r->tabs = tabs;
    r->conllu = tabs && count == CONLLU_COLUMNS && is_conllu_id(columns[0]);
    if (count < 2 || count > MOST_COLUMNS)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s, line %lld: %d columns; wanted a word and its tag in two or more, with "
                       "tabs or spaces between them",
                       r->path, (long long)r->line, count);
    r->token = choose(r, "token-column", r->options.token_column, r->conllu ? CONLLU_FORM : 0);
    if (r->token < 0)
        return -1;
    r->tag = choose(r, "tag-column", r->options.tag_column, r->conllu ? CONLLU_UPOS : count - 1);
    return r->tag < 0 ? -1 : 0;
}

/* ---- Words ---- */

static int64_t number_tag(reading *r, const char *tag) {
    if (r->collects)
        return wg__labels_add(r->labels, tag);
    const int64_t number = wg__labels_find(r->labels, tag);
    if (number >= 0)
        return number;
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "%s, line %lld: the tag \"%.80s\" is unknown; the model has %lld others, the "
                   "first is \"%.80s\"",
                   r->path, (long long)r->line, tag, (long long)r->labels->count,
                   r->labels->names[0]);
}

/* Appends the pieces of a word; one of which nothing is left is the unknown token. */
static int add_pieces(reading *r, const char *text) {
    wg_token_list *pieces = &r->words->pieces;
    const int64_t before = pieces->count;
    r->scratch.length = 0;
    if ((r->spaced && wg__text_append(&r->scratch, " ", 1) < 0) ||
        wg__text_append(&r->scratch, text, (int64_t)strlen(text)) < 0 ||
        wg_tokenizer_encode(r->tokenizer, r->scratch.bytes, -1, NULL, pieces) < 0)
        return -1;
    if (pieces->count == before) {
        const int32_t unknown = wg_tokenizer_special(r->tokenizer, WG_TOKEN_UNKNOWN);
        if (unknown < 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s, line %lld: the word \"%.80s\" has no tokens", r->path,
                           (long long)r->line, text);
        return wg_token_list_append(pieces, unknown);
    }
    if (r->options.room > 0 && pieces->count - before > r->options.room)
        pieces->count = before + r->options.room;
    return 0;
}

/* Begins a sentence, and a window where the last one has no room for this word. */
static int place(reading *r, const word *w) {
    wg__tagged_words *words = r->words;
    const numbers *windows = &words->windows;
    if (r->begins && append_number(&words->sentences, words->count) < 0)
        return -1;
    const bool full =
        !r->begins && r->options.room > 0 &&
        w->end - words->words[windows->items[windows->count - 1]].first > r->options.room;
    const bool begins = r->begins || full;
    r->begins = false;
    return begins ? append_number(&words->windows, words->count) : 0;
}

static int add_word(reading *r, const char *text, const char *tag) {
    wg__tagged_words *words = r->words;
    if (!*text || !*tag)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: the %s is empty", r->path,
                       (long long)r->line, *text ? "tag" : "word");
    word w = {.text = words->texts.length, .first = words->pieces.count};
    w.tag = number_tag(r, tag);
    if (w.tag < 0 || wg__text_append(&words->texts, text, (int64_t)strlen(text) + 1) < 0 ||
        add_pieces(r, text) < 0)
        return -1;
    w.end = words->pieces.count;
    if (place(r, &w) < 0)
        return -1;
    return wg__append(&words->words, &words->count, &words->capacity, &w, sizeof w);
}

/* ---- Files ---- */

/* "# text = ..."; "#tag" is a word, except where words have tabs behind them. */
static bool is_comment(const reading *r, const char *line) {
    return *line == '#' &&
           (line[1] == ' ' || line[1] == '\0' || (r->columns && r->tabs && !strchr(line, '\t')));
}

static int read_line(reading *r, char *line) {
    char *columns[MOST_COLUMNS];
    const size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    if (line[strspn(line, " \t")] == '\0') {
        r->begins = true;
        return 0;
    }
    if (is_comment(r, line))
        return 0;
    const bool tabs = strchr(line, '\t') != NULL;
    const int count = split(line, columns);
    if (count == 0 || strcmp(columns[0], "-DOCSTART-") == 0)
        return 0;
    if (r->columns == 0 && read_first(r, count, columns, tabs) < 0)
        return -1;
    if (count != r->columns)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s, line %lld: %d columns; the lines before have %d", r->path,
                       (long long)r->line, count, r->columns);
    if (r->conllu && strpbrk(columns[0], "-."))
        return 0;
    return add_word(r, columns[r->token], columns[r->tag]);
}

static int read_lines(reading *r, char *bytes, int64_t length) {
    for (char *line = bytes, *end = bytes + length; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        *stop = '\0';
        r->line++;
        if (memchr(line, '\0', (size_t)(stop - line)))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %lld: it holds a NUL", r->path,
                           (long long)r->line);
        if (read_line(r, line) < 0)
            return -1;
        line = stop + 1;
    }
    return 0;
}

/* Sorts the tags, which were numbered by first appearance, and renumbers the words. */
static int order_tags(reading *r) {
    wg__labels found;
    if (wg__labels_copy(&found, r->labels) < 0)
        return -1;
    wg__labels_sort(r->labels);
    for (int64_t i = 0; i < r->words->count; i++) {
        int64_t *tag = &r->words->words[i].tag;
        *tag = wg__labels_find(r->labels, found.names[*tag]);
    }
    wg__labels_free(&found);
    return 0;
}

static int check_whole(const reading *r) {
    if (r->words->count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no word", r->path);
    if (r->labels->count < 2)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: every tag is \"%.80s\"; wanted two or more",
                       r->path, r->labels->names[0]);
    return 0;
}

wg__tagged_words *wg__tagged_words_load(const char *path, const wg_tokenizer *tokenizer,
                                        wg__labels *labels,
                                        const wg__tagged_words_options *options) {
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, WHERE);
    reading r = {.path = path,
                 .tokenizer = tokenizer,
                 .labels = labels,
                 .collects = labels->count == 0,
                 .spaced = strcmp(wg_tokenizer_kind(tokenizer), "bpe") == 0,
                 .begins = true,
                 .words = bytes ? wg__calloc(1, sizeof *r.words) : NULL};
    if (options)
        r.options = *options;
    int status = r.words ? wg__utf8_check(bytes, length, path, WHERE) : -1;
    if (status == 0)
        status = read_lines(&r, bytes, length);
    if (status == 0)
        status = check_whole(&r);
    if (status == 0 && r.collects)
        status = order_tags(&r);
    wg__free(bytes);
    wg__free(r.scratch.bytes);
    if (status == 0)
        return r.words;
    wg__tagged_words_free(r.words);
    if (r.collects)
        wg__labels_free(labels);
    return NULL;
}

void wg__tagged_words_free(wg__tagged_words *words) {
    if (!words)
        return;
    wg_token_list_free(&words->pieces);
    wg__free(words->texts.bytes);
    wg__free(words->words);
    wg__free(words->sentences.items);
    wg__free(words->windows.items);
    wg__free(words);
}

/* ---- What there is ---- */

int64_t wg__tagged_words_sentences(const wg__tagged_words *words) {
    return words ? words->sentences.count : 0;
}

int64_t wg__tagged_words_windows(const wg__tagged_words *words) {
    return words ? words->windows.count : 0;
}

int64_t wg__tagged_words_count(const wg__tagged_words *words) {
    return words ? words->count : 0;
}

int64_t wg__tagged_words_sentence(const wg__tagged_words *words, int64_t sentence) {
    return sentence < words->sentences.count ? words->sentences.items[sentence] : words->count;
}

int64_t wg__tagged_words_window(const wg__tagged_words *words, int64_t window) {
    return window < words->windows.count ? words->windows.items[window] : words->count;
}

const char *wg__tagged_words_text(const wg__tagged_words *words, int64_t index) {
    return words->texts.bytes + words->words[index].text;
}

int64_t wg__tagged_words_tag(const wg__tagged_words *words, int64_t index) {
    return words->words[index].tag;
}

/* The pieces of a window. */
static wg_token_pair window_pieces(const wg__tagged_words *words, int64_t window) {
    const int64_t first = words->words[wg__tagged_words_window(words, window)].first;
    const int64_t end = words->words[wg__tagged_words_window(words, window + 1) - 1].end;
    return (wg_token_pair){.first = words->pieces.ids + first, .first_count = end - first};
}

uint64_t wg__tagged_words_fingerprint(const wg__tagged_words *words) {
    uint64_t hash = WG__HASH_EMPTY;
    for (int64_t i = 0; i < words->windows.count; i++) {
        const wg_token_pair pieces = window_pieces(words, i);
        hash = wg_pair_fingerprint(hash, &pieces);
    }
    for (int64_t i = 0; i < words->count; i++)
        hash = wg__hash_step(hash, (char)words->words[i].tag);
    return hash;
}

/* ---- Batches ---- */

/* The tags of a window, behind [CLS], in a row that is filled with WG_IGNORE_INDEX. */
static void fill_tags(const wg__tagged_words *words, int64_t window, int64_t *row) {
    const int64_t first = wg__tagged_words_window(words, window);
    for (int64_t i = first; i < wg__tagged_words_window(words, window + 1); i++)
        row[1 + words->words[i].first - words->words[first].first] = words->words[i].tag;
}

int wg__tagged_batch_read(const wg__tagged_words *words, const wg_pair_frame *frame, int64_t count,
                          const int64_t *windows, wg__tagged_batch *batch) {
    wg_token_pair *pairs = wg__alloc_array(count, sizeof *pairs);
    *batch = (wg__tagged_batch){0};
    for (int64_t i = 0; pairs && i < count; i++)
        pairs[i] = window_pieces(words, windows[i]);
    if (pairs && wg_pair_batch_make(frame, count, pairs, &batch->inputs) == 0)
        batch->labels = wg_full(WG_I64, WG_DIMS(count, wg_tensor_size(batch->inputs.input_ids, 1)),
                                WG_IGNORE_INDEX);
    wg__free(pairs);
    if (!batch->labels)
        return -1;
    const int64_t length = wg_tensor_size(batch->labels, 1);
    for (int64_t i = 0; i < count; i++) {
        fill_tags(words, windows[i], (int64_t *)wg_tensor_data(batch->labels) + i * length);
        batch->words += wg__tagged_words_window(words, windows[i] + 1) -
                        wg__tagged_words_window(words, windows[i]);
    }
    return 0;
}
