/* Reads sentences of tagged words: see examples.h. */
#include "data/dataset/examples.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

#define WHERE "tagged_words"

enum { MOST_COLUMNS = 64, CONLLU_COLUMNS = 10 };

static const char *const conllu_names[CONLLU_COLUMNS] = {"ID",    "FORM", "LEMMA",  "UPOS", "XPOS",
                                                         "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};
enum { CONLLU_FORM = 1, CONLLU_UPOS = 3 };

/* A file being read. */
typedef struct reading {
    wg__file_line line;
    const wg_tokenizer *tokenizer;
    wg__labels *labels;
    wg__tagged_words_options options;
    bool collects;  /* new tags are added */
    bool spaced;    /* each word is tokenized with a space before it, for bpe */
    bool conllu;    /* the file is CoNLL-U */
    bool tabs;      /* columns are separated by tabs */
    int columns;    /* the number of columns of a line; 0: not known yet */
    int token, tag; /* the columns of the word and of its tag */
    bool begins;    /* the next word begins a sentence */
    wg__text scratch;
    wg__tagged_words *words;
} reading;

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

/* The column that the option `option` names, or `standard` without a name. -1 with an error. */
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
    return wg__fail_line(&r->line, "--%s %.80s: the line has %d columns", option, name, r->columns);
}

/* Appends the pieces of a word, or the unknown token for a word without pieces. */
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
            return wg__fail_line(&r->line, "the word \"%.80s\" has no tokens", text);
        return wg_token_list_append(pieces, unknown);
    }
    if (r->options.room > 0 && pieces->count - before > r->options.room)
        pieces->count = before + r->options.room;
    return 0;
}

/* The pieces of a window. */
static wg_token_pair pair_of(const wg__examples *examples, int64_t window) {
    const wg__tagged_words *words = (const wg__tagged_words *)examples;
    const int64_t first = words->words[words->windows[window]].first;
    const int64_t end = words->words[words->windows[window + 1] - 1].end;
    return (wg_token_pair){.first = words->pieces.ids + first, .first_count = end - first};
}

/* Row i is [CLS], then the tags of window chosen[i]. */
static int fill_targets(const wg__examples *examples, int64_t count, const int64_t *chosen,
                        wg__example_batch *batch) {
    const wg__tagged_words *words = (const wg__tagged_words *)examples;
    const int64_t length = wg_tensor_size(batch->inputs.input_ids, 1);
    batch->targets[0] = wg_full(WG_I64, WG_DIMS(count, length), WG_IGNORE_INDEX);
    if (!batch->targets[0])
        return -1;
    int64_t *row = wg_tensor_data(batch->targets[0]);
    for (int64_t i = 0; i < count; i++, row += length) {
        const int64_t first = words->windows[chosen[i]], end = words->windows[chosen[i] + 1];
        for (int64_t w = first; w < end; w++)
            row[1 + words->words[w].first - words->words[first].first] = words->words[w].tag;
        batch->words += end - first;
    }
    return 0;
}

static uint64_t fingerprint(const wg__examples *examples) {
    const wg__tagged_words *words = (const wg__tagged_words *)examples;
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t i = 0; i < examples->count; i++) {
        const wg_token_pair pieces = pair_of(examples, i);
        hash = wg__pair_fingerprint(hash, &pieces);
    }
    for (int64_t i = 0; i < words->count; i++)
        hash = wg__hash_step(hash, (char)words->words[i].tag);
    return hash;
}

static void free_words(wg__examples *examples) {
    wg__tagged_words *words = (wg__tagged_words *)examples;
    wg_token_list_free(&words->pieces);
    wg__free(words->texts.bytes);
    wg__free(words->words);
    wg__free(words->sentences);
    wg__free(words->windows);
    wg__free(words);
}

static const wg__examples_kind kind = {pair_of, fill_targets, fingerprint, free_words};

/* Skips comments ("# text = ..."). A line "#tag" has a word, unless the columns have tabs and this
 * line has none. */
static int read_line(void *context, char *line) {
    reading *r = context;
    char *columns[MOST_COLUMNS];
    if (line[strspn(line, " \t")] == '\0') {
        r->begins = true;
        return 0;
    }
    const bool tabs = strchr(line, '\t') != NULL;
    if (*line == '#' && (line[1] == ' ' || line[1] == '\0' || (r->columns && r->tabs && !tabs)))
        return 0;
    const int count = split(line, columns);
    if (count == 0 || strcmp(columns[0], "-DOCSTART-") == 0)
        return 0;
    if (r->columns == 0) {
        r->columns = count;
        r->tabs = tabs;
        r->conllu = tabs && count == CONLLU_COLUMNS && is_conllu_id(columns[0]);
        if (count < 2 || count > MOST_COLUMNS)
            return wg__fail_line(
                &r->line,
                "%d columns; wanted a word and its tag in two or more, with tabs or "
                "spaces between them",
                count);
        r->token = choose(r, "token-column", r->options.token_column, r->conllu ? CONLLU_FORM : 0);
        if (r->token < 0)
            return -1;
        r->tag =
            choose(r, "tag-column", r->options.tag_column, r->conllu ? CONLLU_UPOS : count - 1);
        if (r->tag < 0)
            return -1;
    }
    if (count != r->columns)
        return wg__fail_line(&r->line, "%d columns; the lines before have %d", count, r->columns);
    if (r->conllu && strpbrk(columns[0], "-."))
        return 0;
    /* Adds a word. The first word of a sentence begins a window, and so does a word that does not
     * fit into the current window. */
    const char *text = columns[r->token];
    const char *tag = columns[r->tag];
    wg__tagged_words *words = r->words;
    if (!*text || !*tag)
        return wg__fail_line(&r->line, "the %s is empty", *text ? "tag" : "word");
    wg__tagged_word w = {.text = words->texts.length, .first = words->pieces.count};
    w.tag = wg__label_of_line(&r->line, "tag", r->labels, r->collects, tag);
    if (w.tag < 0 || wg__text_append(&words->texts, text, (int64_t)strlen(text) + 1) < 0 ||
        add_pieces(r, text) < 0)
        return -1;
    w.end = words->pieces.count;
    const int64_t window = words->base.count ? words->windows[words->base.count - 1] : 0;
    if (r->begins && wg__append(&words->sentences, &words->sentence_count,
                                &words->sentence_capacity, &words->count, sizeof words->count) < 0)
        return -1;
    if ((r->begins ||
         (r->options.room > 0 && w.end - words->words[window].first > r->options.room)) &&
        wg__append(&words->windows, &words->base.count, &words->window_capacity, &words->count,
                   sizeof words->count) < 0)
        return -1;
    r->begins = false;
    return wg__append(&words->words, &words->count, &words->capacity, &w, sizeof w);
}

/* Sorts the tags, which were numbered by first appearance, renumbers the words, and closes the
 * lists of sentences and windows. */
static int conclude(reading *r) {
    wg__tagged_words *words = r->words;
    const char *path = r->line.path;
    if (words->count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no word", path);
    if (r->labels->count < 2)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: every tag is \"%.80s\"; wanted two or more",
                       path, r->labels->names[0]);
    int64_t *numbers = r->collects ? wg__labels_renumber(r->labels) : NULL;
    for (int64_t i = 0; numbers && i < words->count; i++)
        words->words[i].tag = numbers[words->words[i].tag];
    wg__free(numbers);
    if ((r->collects && !numbers) ||
        wg__append(&words->sentences, &words->sentence_count, &words->sentence_capacity,
                   &words->count, sizeof words->count) < 0 ||
        wg__append(&words->windows, &words->base.count, &words->window_capacity, &words->count,
                   sizeof words->count) < 0)
        return -1;
    words->sentence_count--;
    words->base.count--;
    words->base.predictions = words->count;
    return 0;
}

wg__tagged_words *wg__tagged_words_load(const char *path, const wg_tokenizer *tokenizer,
                                        wg__labels *labels,
                                        const wg__tagged_words_options *options) {
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, WHERE);
    reading r = {.line = {WHERE, path, 0},
                 .tokenizer = tokenizer,
                 .labels = labels,
                 .options = options ? *options : (wg__tagged_words_options){0},
                 .collects = labels->count == 0,
                 .spaced = strcmp(wg_tokenizer_kind(tokenizer), "bpe") == 0,
                 .begins = true,
                 .words = bytes ? wg__calloc(1, sizeof *r.words) : NULL};
    const bool read = r.words && wg__utf8_check(bytes, length, path, WHERE) == 0 &&
                      wg__each_line(&r.line, bytes, length, read_line, &r) == 0 &&
                      conclude(&r) == 0;
    wg__free(bytes);
    wg__free(r.scratch.bytes);
    if (r.words)
        r.words->base.kind = &kind;
    if (read)
        return r.words;
    if (r.words)
        free_words(&r.words->base);
    if (r.collects)
        wg__labels_free(labels);
    return NULL;
}
