/* Splits texts into sentences and documents, and tokenizes them: see dataset.h. */
#include "data/dataset/token_file.h"

#include <string.h>
#include <utf8proc.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"
#include "io/config.h"

#define WHERE "dataset"

/* A text being read into a token file. */
typedef struct reading {
    wg__token_file *file;
    const wg_tokenizer *tokenizer;
    wg__text_map *text;
    wg_token_list ids; /* of the current sentence */

    /* Of sentences. */
    bool cut;      /* the text has no ends of documents, and is cut by the number of sentences */
    int64_t bytes; /* of the open document's sentences */

    /* Of streams. */
    int32_t begin, end;  /* ids around a document; -1: none */
    wg__token_sink sink; /* tokens not yet written to the file */
} reading;

/* ---- Where sentences end ----
 *
 *     "It is a truth." said Mr. J. Smith. "No!" cried he. He left...  And so on.
 *                    ^ small letter follows    ^ small       ^ end   ^ end      ^ end
 *                            ^ title
 *                               ^ initial  ^ end */

#define LONGEST_ABBREVIATION 16

/* A paragraph from `start` on. */
typedef struct paragraph {
    const char *text;
    int64_t start, length;
} paragraph;

/* The length of the mark of a list at the beginning or the end of a text, or 0. */
static int64_t length_of_mark(const char *text, int64_t length, bool at_end,
                              const char *const *marks) {
    for (; *marks; marks++) {
        const int64_t size = (int64_t)strlen(*marks), at = at_end ? length - size : 0;
        if (size <= length && memcmp(text + at, *marks, (size_t)size) == 0)
            return size;
    }
    return 0;
}

static int64_t mark_at(const paragraph *l, int64_t at, const char *const *marks) {
    return length_of_mark(l->text + at, l->length - at, false, marks);
}

static int64_t skip_marks(const paragraph *l, int64_t at, const char *const *marks) {
    for (int64_t size; (size = mark_at(l, at, marks)) > 0;)
        at += size;
    return at;
}

static const char *const stops[] = {".", "?", "!", "\u2026", NULL};
static const char *const ideographic_stops[] = {"\u3002", "\uff01", "\uff1f", "\uff61", NULL};
/* After a closing quote, these continue the sentence around the quotation. */
static const char *const ideographic_commas[] = {"\uff0c", "\u3001", "\uff1b", "\uff1a", NULL};

static const char *const closers[] = {"\"",     "'",      ")",      "]",      "}",      "*",
                                      "_",      "\u201d", "\u2019", "\u00bb", "\u300d", "\u300f",
                                      "\uff09", "\u300b", "\u3009", "\u3011", NULL};
static const char *const openers[] = {"\"",     "'",      "(",      "[", "{",      "*",      "_",
                                      "\u201c", "\u2018", "\u00ab", "-", "\u2014", "\u2013", NULL};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_ascii_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool begins_small(const paragraph *l, int64_t at) {
    at = skip_marks(l, at, openers);
    if (at >= l->length)
        return false;
    int32_t c;
    if (utf8proc_iterate((const utf8proc_uint8_t *)l->text + at, l->length - at, &c) <= 0)
        return false;
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LL;
}

/* Abbreviations before names. They never end a sentence. */
static const char *const titles[] = {
    "mr",  "mrs", "ms",  "messrs", "dr",   "prof", "rev", "hon",  "st", "capt", "col", "gen", "lt",
    "sgt", "maj", "adm", "gov",    "pres", "sen",  "mme", "mlle", "mt", "ft",   "vs",  "viz", "cf"};

/* Abbreviations before numbers. Without a number they may end a sentence ("No."). */
static const char *const counters[] = {
    "no",  "nos", "vol",   "vols", "p",   "pp",  "ch",  "chap", "fig", "figs", "sec", "art", "prop",
    "obs", "exp", "exper", "ax",   "def", "jan", "feb", "apr",  "aug", "sept", "oct", "nov", "dec"};

/* True if the full stop at `stop` belongs to an abbreviation; the next word begins at `next`. */
static bool is_abbreviation(const paragraph *l, int64_t stop, int64_t next) {
    const char *text = l->text;
    int64_t begin = stop, digits = l->start;
    while (begin > l->start && (is_ascii_letter(text[begin - 1]) || text[begin - 1] == '.'))
        begin--;
    while (digits < stop && is_digit(text[digits]))
        digits++;
    if (digits == stop && stop > l->start) /* "1.": the number of a list item */
        return true;
    /* The letters and full stops before `stop`, in lower case. */
    char word[LONGEST_ABBREVIATION] = "";
    const int64_t length = stop - begin;
    const bool whole = begin == l->start || (unsigned char)text[begin - 1] < 0x80;
    if (!whole || length == 0 || length >= LONGEST_ABBREVIATION)
        return false;
    bool dotted = length >= 3 && length % 2 == 1; /* "e.g", "u.s.a" */
    for (int64_t i = 0; i < length; i++) {
        const char c = text[begin + i];
        word[i] = (char)(is_ascii_letter(c) ? c | 0x20 : c);
        dotted &= (c == '.') == (i % 2 == 1);
    }
    if (dotted || (length == 1 && text[begin] != 'I' && text[begin] < 'a')) /* J. Smith */
        return true;
    const bool numbered = next < l->length && (is_digit(text[next]) || strchr("IVXLC", text[next]));
    return wg__is_among(word, sizeof titles / sizeof *titles, titles) ||
           (numbered && wg__is_among(word, sizeof counters / sizeof *counters, counters));
}

int64_t wg__sentence_end(const char *text, int64_t start, int64_t length) {
    while (start < length && wg__is_blank(text[start]))
        start++;
    paragraph l = {text, start, length};
    for (int64_t i = start; i < length; i++) {
        /* The first bytes of all stops; skips other characters quickly. */
        const char c = text[i];
        if (c != '.' && c != '?' && c != '!' && c != '\xe2' && c != '\xe3' && c != '\xef')
            continue;
        if (mark_at(&l, i, ideographic_stops)) {
            /* Stops and closing quotes in any order are one end of a sentence. */
            int64_t end = i, before;
            do {
                before = end;
                end = skip_marks(&l, skip_marks(&l, end, ideographic_stops), closers);
            } while (end > before);
            if (mark_at(&l, end, ideographic_commas) == 0)
                return end;
            i = end - 1;
            continue;
        }
        int64_t after = skip_marks(&l, i, stops);
        if (after == i)
            continue;
        int64_t end = skip_marks(&l, after, closers), next = end;
        while (next < length && wg__is_blank(text[next]))
            next++;
        if (next == length)
            return end;
        bool single = c == '.' && after == i + 1;
        if (next > end && !begins_small(&l, next) && !(single && is_abbreviation(&l, i, next)))
            return end;
        i = end - 1;
    }
    return length;
}

/* A text without ends of documents is cut at the first end of a paragraph after CUT_AFTER
 * sentences, or at CUT_AT_LATEST sentences. */
#define CUT_AFTER 64
#define CUT_AT_LATEST 128

#define DOCUMENT_BLANK_LINES 3

wg_sentence_format wg__detect_sentence_format(wg__text_map *text) {
    static const char *const closing[] = {"\"",     "'",      ")",      "]",
                                          "\u201d", "\u2019", "\u00bb", "\u300d",
                                          "\u300f", "\uff09", "\u300b", NULL};
    int64_t lines = 0, ended = 0, sentences = 0;
    for (int64_t at = 0; at < text->length;) {
        wg__trimmed_line l = wg__next_line(text, &at);
        if (l.length == 0)
            continue;
        lines++;
        for (int64_t end = 0; end < l.length; sentences++)
            end = wg__sentence_end(l.text, end, l.length);
        for (int64_t size; (size = length_of_mark(l.text, l.length, true, closing)) > 0;)
            l.length -= size;
        ended += length_of_mark(l.text, l.length, true, stops) > 0 ||
                 length_of_mark(l.text, l.length, true, ideographic_stops) > 0;
    }
    /* Wrapped lines rarely end like sentences; a paragraph on one line has several sentences. */
    bool one_each = ended * 10 >= lines * 7 && sentences * 2 <= lines * 3;
    return one_each ? WG_SENTENCES_BY_LINE : WG_SENTENCES_PLAIN;
}

static int end_sentences(reading *r) {
    const int64_t bytes = r->bytes;
    r->bytes = 0;
    return wg__token_file_end_document(r->file, bytes);
}

static int read_sentence(reading *r, const char *text, int64_t length, int64_t cut_at) {
    r->ids.count = 0;
    if (wg_tokenizer_encode(r->tokenizer, text, length, NULL, &r->ids) < 0 ||
        wg__token_file_add(r->file, r->ids.count, r->ids.ids) < 0 ||
        wg__token_file_end_sentence(r->file) < 0)
        return -1;
    r->bytes += length;
    wg__text_map_pass(r->text, text - r->text->bytes);
    if (r->cut && r->file->sentence_count - r->file->document >= cut_at)
        return end_sentences(r);
    return 0;
}

static int read_paragraph(reading *r, const char *text, int64_t length) {
    bool words = false; /* false for a row of stars */
    for (int64_t i = 0; i < length && !words; i++)
        words = is_digit(text[i]) || is_ascii_letter(text[i]) || (unsigned char)text[i] >= 0x80;
    if (!words)
        return 0;
    for (int64_t at = 0; at < length;) {
        int64_t end = wg__sentence_end(text, at, length);
        if (read_sentence(r, text + at, end - at, CUT_AT_LATEST) < 0)
            return -1;
        at = end;
    }
    if (r->cut && r->file->sentence_count - r->file->document >= CUT_AFTER)
        return end_sentences(r);
    return 0;
}

/* True if a document ends before the last line of text. */
static bool has_document_ends(wg__text_map *text, int64_t blank_lines) {
    int64_t blank = 0;
    bool begun = false, marked = false;
    for (int64_t at = 0; at < text->length;) {
        wg__trimmed_line l = wg__next_line(text, &at);
        if (l.length > 0 && !l.ends_document) {
            if (begun && (blank >= blank_lines || marked))
                return true;
            begun = true;
            marked = false;
            blank = 0;
        } else {
            marked |= l.ends_document;
            blank++;
        }
    }
    return false;
}

static int read_plain(reading *r) {
    wg__text_map *text = r->text;
    r->cut = !has_document_ends(text, DOCUMENT_BLANK_LINES);
    const char *paragraph = NULL, *end = NULL;
    int64_t blank = 0;
    for (int64_t at = 0; at < text->length;) {
        wg__trimmed_line l = wg__next_line(text, &at);
        if (l.length > 0 && !l.ends_document) {
            if (!paragraph)
                paragraph = l.text;
            end = l.text + l.length;
            blank = 0;
            continue;
        }
        if (paragraph && read_paragraph(r, paragraph, end - paragraph) < 0)
            return -1;
        paragraph = NULL;
        if ((l.ends_document || ++blank == DOCUMENT_BLANK_LINES) && end_sentences(r) < 0)
            return -1;
    }
    if (paragraph && read_paragraph(r, paragraph, end - paragraph) < 0)
        return -1;
    return end_sentences(r);
}

static int read_by_line(reading *r) {
    wg__text_map *text = r->text;
    r->cut = !has_document_ends(text, 1);
    for (int64_t at = 0; at < text->length;) {
        wg__trimmed_line l = wg__next_line(text, &at);
        int status = l.length == 0 || l.ends_document
                         ? end_sentences(r)
                         : read_sentence(r, l.text, l.length, CUT_AFTER);
        if (status < 0)
            return -1;
    }
    return end_sentences(r);
}

/* ---- Streams: lines that end documents ---- */

enum { SEARCH_STEP = 1 << 20 };

/* Bytes first .. end - 1 of a text. */
typedef struct span {
    int64_t first, end;
} span;

/* The first WG__END_OF_TEXT, also within a line, from `at` on; `end` if there is none. */
static int64_t find_bytes(wg__text_map *text, int64_t at, int64_t end) {
    while (at < end) {
        wg__text_map_pass(text, at);
        const int64_t left = end - at, length = wg__smaller(left, SEARCH_STEP);
        const char *found =
            memmem(text->bytes + at, (size_t)length, WG__END_OF_TEXT, WG__END_OF_TEXT_LENGTH);
        if (found)
            return found - text->bytes;
        at += length == left ? length : length - WG__END_OF_TEXT_LENGTH + 1;
    }
    return end;
}

/* The first line, with its line break, that is WG__END_OF_TEXT. A line begins at `begin`. If
 * there is none, the span is empty, at `end`. */
static span find_mark(wg__text_map *text, int64_t begin, int64_t end) {
    const char *bytes = text->bytes;
    for (int64_t found = begin; (found = find_bytes(text, found, end)) < end;) {
        int64_t line = found + WG__END_OF_TEXT_LENGTH;
        const bool begins = found == begin || bytes[found - 1] == '\n';
        if (begins && line < end && bytes[line] == '\r')
            line++;
        if (begins && (line == end || bytes[line] == '\n'))
            return (span){found, line < end ? line + 1 : line};
        found = line;
    }
    return (span){end, end};
}

/* The end of a share of a text: see wg_dataset_options. */
static int64_t cut(wg__text_map *text, double share, bool marked) {
    const char *bytes = text->bytes;
    if (share >= 1)
        return text->length;
    int64_t at = (int64_t)(share * (double)text->length);
    while (at > 0 && at < text->length && ((unsigned char)bytes[at] & 0xC0) == 0x80)
        at++;
    if (at == 0 || !marked)
        return at;
    while (at < text->length && bytes[at - 1] != '\n')
        at++;
    return find_mark(text, at, text->length).end;
}

static int flush(reading *r) {
    const int64_t count = r->sink.list.count;
    r->sink.list.count = 0;
    return wg__token_file_add(r->file, count, r->sink.list.ids);
}

/* Writes tokens before the document ends: a document need not fit into memory. */
static int drain(void *context) {
    reading *r = context;
    wg__text_map_release(r->text);
    return flush(r);
}

static int read_stream(reading *r, const char *name) {
    r->begin = wg_tokenizer_special(r->tokenizer, WG_TOKEN_BEGIN);
    r->end = r->begin >= 0 ? -1 : wg_tokenizer_special(r->tokenizer, WG_TOKEN_END);
    r->sink = (wg__token_sink){.drain = drain, .context = r};
    const wg__token_rules *rules = &r->file->rules;
    const bool marked = find_mark(r->text, 0, r->text->length).first < r->text->length;
    const int64_t cuts[] = {cut(r->text, rules->begin, marked), cut(r->text, rules->cut, marked),
                            cut(r->text, rules->end, marked)};
    const bool strips = (r->begin >= 0 || r->end >= 0) && marked;
    for (int part = 0; part < WG__TOKEN_PARTS; part++) {
        const int64_t before = r->file->document_count;
        if (part > 0 && rules->cut == rules->end)
            break;
        r->file->part = part;
        int64_t at = cuts[part];
        const int64_t last = cuts[part + 1];
        while (at < last) {
            const span next = find_mark(r->text, at, last);
            const char *begin = r->text->bytes + at, *stop = r->text->bytes + next.first;
            at = next.end;
            while (strips && begin < stop && memchr(" \t\r\n", *begin, 4))
                begin++;
            while (strips && begin < stop && memchr(" \t\r\n", stop[-1], 4))
                stop--;
            if (begin == stop)
                continue;
            if ((r->begin >= 0 && wg_token_list_append(&r->sink.list, r->begin) < 0) ||
                wg__tokenizer_encode(r->tokenizer, begin, stop - begin, NULL, &r->sink) < 0 ||
                (r->end >= 0 && wg_token_list_append(&r->sink.list, r->end) < 0) || flush(r) < 0 ||
                wg__token_file_end_document(r->file, stop - begin) < 0)
                return -1;
        }
        if (r->file->document_count == before)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no text in the part that is to be read",
                           name);
    }
    return 0;
}

int64_t wg__text_line(const wg__text_map *text, int64_t at, int64_t *next) {
    const char *begin = text->bytes + at;
    const char *end = memchr(begin, '\n', (size_t)(text->length - at));
    const int64_t length = end ? end - begin : text->length - at;
    *next = at + length + (end ? 1 : 0);
    return length > 0 && begin[length - 1] == '\r' ? length - 1 : length;
}

static int refuse_line(const char *name, int64_t number, const char *what) {
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "%s: line %lld %s; each line must be a sentence, and the same line of the other "
                   "file its translation",
                   name, (long long)number, what);
}

static int read_pairs(reading *r, wg__text_map *texts, const char *const *names) {
    int64_t at[WG__TOKEN_SIDES] = {0}, counts[WG__TOKEN_SIDES] = {0}, next;
    /* The counts of lines must agree before anything is tokenized. */
    for (int side = 0; side < WG__TOKEN_SIDES; side++) {
        for (int64_t line = 0; line < texts[side].length; line = next, counts[side]++) {
            wg__text_line(&texts[side], line, &next);
            wg__text_map_pass(&texts[side], next);
        }
        if (counts[side] == 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is empty", names[side]);
    }
    if (counts[0] != counts[1])
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s has %lld lines and %s has %lld; each line must be the translation of "
                       "the same line of the other file, and line %lld has none",
                       names[0], (long long)counts[0], names[1], (long long)counts[1],
                       (long long)wg__smaller(counts[0], counts[1]) + 1);
    for (int64_t number = 1; at[0] < texts[0].length; number++) {
        int64_t bytes = 0;
        for (int side = 0; side < WG__TOKEN_SIDES; side++) {
            wg__text_map *text = &texts[side];
            const char *line = text->bytes + at[side];
            const int64_t length = wg__text_line(text, at[side], &at[side]);
            if (memchr(line, '\0', (size_t)length))
                return refuse_line(names[side], number, "holds a NUL");
            int64_t blank = 0;
            for (int64_t space; (space = wg__space_length(line + blank, length - blank)) > 0;)
                blank += space;
            if (blank == length)
                return refuse_line(names[side], number, "is empty");
            r->ids.count = 0;
            if (wg_tokenizer_encode(r->tokenizer, line, length, NULL, &r->ids) < 0)
                return -1;
            if (r->ids.count == 0)
                return refuse_line(names[side], number, "has no token");
            if (wg__token_file_add(r->file, r->ids.count, r->ids.ids) < 0 ||
                wg__token_file_end_sentence(r->file) < 0)
                return -1;
            wg__text_map_pass(text, at[side]);
            bytes += length;
        }
        if (wg__token_file_end_document(r->file, bytes) < 0)
            return -1;
    }
    return 0;
}

int wg__read_text(wg__token_file *file, const wg_tokenizer *tokenizer, wg__text_map *texts,
                  const char *const *names) {
    reading r = {.file = file, .tokenizer = tokenizer, .text = texts};
    int status = -1;
    wg_sentence_format format = file->rules.format;
    const int64_t before = file->token_count;
    switch (file->rules.kind) {
    case WG_TEXT_SENTENCES:
        if (format == WG_SENTENCES_DETECT)
            format = wg__detect_sentence_format(texts);
        status = format == WG_SENTENCES_BY_LINE ? read_by_line(&r) : read_plain(&r);
        if (status == 0 && file->token_count == before)
            status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s has no words", *names);
        break;
    case WG_TEXT_STREAM:
        status = read_stream(&r, *names);
        break;
    case WG_TEXT_PAIRS:
        status = read_pairs(&r, texts, names);
        break;
    }
    wg_token_list_free(&r.ids);
    wg_token_list_free(&r.sink.list);
    return status;
}
