/* Checks a training text: see data/internal.h.
 *
 *     file -> lines -> faults, length, hash -> set of lines
 *                 '-> hash of the document  -> set of documents */
#include "data/internal.h"

#include <utf8proc.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"

#define WHERE "corpus_check"

enum { BLANK_LINES = 3 }; /* end a document */

/* ---- A set of hashes: open addressing; 0 is a free slot ---- */

typedef struct hash_set {
    uint64_t *slots;
    uint64_t mask; /* the number of slots, a power of two, less one */
    int64_t count;
} hash_set;

/* Mixes the upper half of a hash of FNV-1a into its low bits. */
static uint64_t finish_hash(uint64_t hash) {
    hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

static uint64_t *find_slot(const hash_set *set, uint64_t hash) {
    uint64_t i = hash & set->mask;
    while (set->slots[i] && set->slots[i] != hash)
        i = (i + 1) & set->mask;
    return &set->slots[i];
}

/* 1 if the set had the hash already, 0 if it is new, -1 with MEMORY. */
static int add_hash(hash_set *set, uint64_t hash) {
    if (!set->slots || 2 * (uint64_t)(set->count + 1) > set->mask + 1) {
        const uint64_t size = set->slots ? 2 * (set->mask + 1) : 1024;
        hash_set larger = {.mask = size - 1, .count = set->count};
        larger.slots = wg__calloc(size, sizeof *larger.slots);
        if (!larger.slots)
            return -1;
        for (uint64_t i = 0; set->slots && i <= set->mask; i++)
            if (set->slots[i])
                *find_slot(&larger, set->slots[i]) = set->slots[i];
        wg__free(set->slots);
        *set = larger;
    }
    uint64_t *slot = find_slot(set, hash);
    if (*slot)
        return 1;
    *slot = hash;
    set->count++;
    return 0;
}

/* A histogram of lengths: exact up to 2047, then 1024 steps for each doubling. */
enum { EXACT = 2048, STEP_BITS = 10, BUCKETS = EXACT + (63 - 11) * (1 << STEP_BITS) };

/* The smallest length that at least a share of all lengths do not exceed. */
static int64_t quantile(const int64_t *buckets, int64_t count, double share) {
    int64_t seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((seen += buckets[i]) > 0 && (double)seen >= share * (double)count) {
            if (i < EXACT)
                return i;
            const int bits = (i - EXACT) / (1 << STEP_BITS) + 11;
            const int64_t step = (i - EXACT) % (1 << STEP_BITS);
            return ((INT64_C(1) << STEP_BITS) + step) << (bits - STEP_BITS);
        }
    return 0;
}

/* The lines that end documents. */
typedef enum ending { BY_MARK, BY_BLANK_LINES, BY_BLANK_LINE } ending;

typedef struct check {
    const wg_tokenizer *tokenizer;
    wg_corpus_report *report;
    hash_set lines, documents;
    int64_t *line_lengths, *document_lengths; /* histograms */
    wg__token_sink sink;
    int32_t unknown;

    /* Of the open file and document. */
    int file;
    int64_t line;
    ending ending;
    int64_t blank; /* blank lines in a row */
    uint64_t document;
    int64_t document_characters, document_line;
} check;

static void find(const check *c, wg_corpus_finding *finding, int64_t count) {
    if (count > 0 && finding->count == 0) {
        finding->file = c->file;
        finding->line = c->line;
    }
    finding->count += count;
}

static void measure(const check *c, wg_corpus_lengths *lengths, int64_t *buckets, int64_t length,
                    int64_t line) {
    int64_t bucket = length;
    if (length >= EXACT) {
        int bits = 11;
        while (length >> (bits + 1))
            bits++;
        const int64_t step = (length >> (bits - STEP_BITS)) & ((1 << STEP_BITS) - 1);
        bucket = EXACT + (bits - 11) * (1 << STEP_BITS) + step;
    }
    buckets[bucket]++;
    lengths->count++;
    if (length <= lengths->longest)
        return;
    lengths->longest = length;
    lengths->file = c->file;
    lengths->line = line;
}

/* ---- Lines, documents and files ---- */

static ending find_ending(wg__text_map *text) {
    ending found = BY_BLANK_LINE;
    int64_t blank = 0;
    bool begun = false;
    for (int64_t at = 0; at < text->length;) {
        const wg__trimmed_line l = wg__next_line(text, &at);
        if (l.ends_document)
            return BY_MARK;
        if (l.length > 0 && begun && blank >= BLANK_LINES)
            found = BY_BLANK_LINES;
        begun |= l.length > 0;
        blank = l.length > 0 ? 0 : blank + 1;
    }
    return found;
}

/* Counts a line's faults, words and characters. Returns the number of characters; *valid: the line
 * is UTF-8. */
static int64_t scan(check *c, wg__trimmed_line l, bool *valid) {
    wg_corpus_finding *faults = c->report->faults;
    int64_t characters = 0;
    bool within = false;
    *valid = true;
    find(c, &faults[WG_CORPUS_CRLF], l.carriage_return);
    for (int64_t at = 0, size; at < l.whole_length; at += size) {
        const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)l.whole + at;
        int32_t character = *bytes;
        size = character < 0x80 ? 1 : utf8proc_iterate(bytes, l.whole_length - at, &character);
        if (size <= 0) {
            find(c, &faults[WG_CORPUS_INVALID], 1);
            *valid = false;
            size = 1;
            continue;
        }
        characters++;
        find(c, &faults[WG_CORPUS_BOM], character == 0xFEFF);
        find(c, &faults[WG_CORPUS_NUL], character == 0);
        find(c, &faults[WG_CORPUS_REPLACEMENT], character == 0xFFFD);
        const bool line_break = character == '\t' || character == '\r';
        find(c, &faults[WG_CORPUS_CONTROL],
             character != 0 && !line_break &&
                 (character < 0x20 || (character >= 0x7F && character < 0xA0)));
        const bool ideograph = wg__is_ideograph(character);
        const bool space = wg__space_length((const char *)bytes, size) > 0;
        c->report->words += ideograph || (!space && !within);
        within = !space && !ideograph;
    }
    c->report->characters += characters;
    return characters;
}

static int drain(void *context) {
    check *c = context;
    c->report->tokens += c->sink.list.count;
    for (int64_t i = 0; i < c->sink.list.count; i++)
        c->report->unknown += c->sink.list.ids[i] == c->unknown;
    c->sink.list.count = 0;
    return 0;
}

static int end_document(check *c) {
    if (c->document_characters == 0)
        return 0;
    const int known = add_hash(&c->documents, finish_hash(c->document));
    const int64_t here = c->line;
    c->line = c->document_line;
    find(c, &c->report->repeated_documents, known > 0);
    c->line = here;
    measure(c, &c->report->documents, c->document_lengths, c->document_characters,
            c->document_line);
    c->document_characters = 0;
    return known < 0 ? -1 : 0;
}

static int add_line(check *c, wg__trimmed_line l) {
    bool valid;
    c->line++;
    const int64_t characters = scan(c, l, &valid);
    c->blank = l.length > 0 ? 0 : c->blank + 1;
    const bool ends = c->ending == BY_MARK          ? l.ends_document
                      : c->ending == BY_BLANK_LINES ? c->blank == BLANK_LINES
                                                    : c->blank > 0;
    if (ends && end_document(c) < 0)
        return -1;
    if (l.length == 0 || l.ends_document)
        return 0;
    if (c->document_characters == 0) {
        c->document = WG__HASH_BEGIN;
        c->document_line = c->line;
    }
    c->document = wg__hash_step(wg__hash(c->document, l.text, (size_t)l.length), '\n');
    c->document_characters += characters > 0 ? characters : 1;
    const int known =
        add_hash(&c->lines, finish_hash(wg__hash(WG__HASH_BEGIN, l.text, (size_t)l.length)));
    if (known < 0)
        return -1;
    find(c, &c->report->repeated_lines, known);
    c->report->repeated_characters += known ? characters : 0;
    measure(c, &c->report->lines, c->line_lengths, characters, c->line);
    if (!c->tokenizer || !valid)
        return 0;
    return wg__tokenizer_encode(c->tokenizer, l.text, l.length, NULL, &c->sink) < 0 ? -1 : drain(c);
}

static int check_held_out(check *c, const char *path) {
    wg__text_map text;
    if (wg__text_map_open(&text, path, WHERE) < 0)
        return -1;
    c->file = 0;
    c->line = 0;
    for (int64_t at = 0; at < text.length;) {
        const wg__trimmed_line l = wg__next_line(&text, &at);
        c->line++;
        if (l.length == 0 || l.ends_document)
            continue;
        const uint64_t hash = finish_hash(wg__hash(WG__HASH_BEGIN, l.text, (size_t)l.length));
        const bool known = c->lines.slots && *find_slot(&c->lines, hash) == hash;
        int64_t characters = 0; /* without the blanks at the ends of the line */
        for (int64_t i = 0; i < l.length; i++)
            characters += ((unsigned char)l.text[i] & 0xC0) != 0x80;
        c->report->held_out_lines++;
        c->report->held_out_characters += characters;
        c->report->overlap_characters += known ? characters : 0;
        find(c, &c->report->overlap, known);
    }
    wg__text_map_close(&text);
    return c->report->held_out_lines > 0 ? 0
                                         : wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no text", path);
}

static int check_files(check *c, int count, const char *const *paths, const char *held_out) {
    wg_corpus_report *report = c->report;
    for (c->file = 0; c->file < count; c->file++) {
        const char *path = paths[c->file];
        wg__text_map text;
        if (wg__text_map_open(&text, path, WHERE) < 0)
            return -1;
        int status = 0;
        c->ending = find_ending(&text);
        c->line = c->blank = 0;
        c->report->bytes += text.length;
        for (int64_t at = 0; status == 0 && at < text.length;)
            status = add_line(c, wg__next_line(&text, &at));
        if (status == 0)
            status = end_document(c);
        wg__text_map_close(&text);
        if (status < 0)
            return -1;
    }
    if (report->lines.count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no text",
                       count == 1 ? paths[0] : "none of the files");
    report->lines.median = quantile(c->line_lengths, report->lines.count, 0.5);
    report->lines.most = quantile(c->line_lengths, report->lines.count, 0.95);
    report->documents.median = quantile(c->document_lengths, report->documents.count, 0.5);
    report->documents.most = quantile(c->document_lengths, report->documents.count, 0.95);
    return held_out ? check_held_out(c, held_out) : 0;
}

int wg__corpus_check(int count, const char *const *paths, const wg_corpus_check_options *options,
                     wg_corpus_report *report) {
    *report = (wg_corpus_report){0};
    check c = {.tokenizer = options->tokenizer, .report = report};
    c.sink = (wg__token_sink){.drain = drain, .context = &c};
    c.unknown =
        options->tokenizer ? wg_tokenizer_special(options->tokenizer, WG_TOKEN_UNKNOWN) : -1;
    c.line_lengths = wg__calloc(BUCKETS, sizeof *c.line_lengths);
    c.document_lengths = wg__calloc(BUCKETS, sizeof *c.document_lengths);
    const int status = c.line_lengths && c.document_lengths
                           ? check_files(&c, count, paths, options->held_out)
                           : -1;
    wg_token_list_free(&c.sink.list);
    wg__free(c.lines.slots);
    wg__free(c.documents.slots);
    wg__free(c.line_lengths);
    wg__free(c.document_lengths);
    return status;
}
