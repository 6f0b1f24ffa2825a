/* The rules by which two texts become pairs of sentences: see sentence_pairs.h. */
#include "data/dataset/pairs_text.h"

#include <string.h>

#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define WHERE "sentence_pairs"

/* ---- Lines ---- */

int64_t wg__pairs_text_line(const wg__text_map *text, int64_t at, int64_t *next) {
    const char *begin = text->bytes + at;
    const char *end = memchr(begin, '\n', (size_t)(text->length - at));
    const int64_t length = end ? end - begin : text->length - at;
    *next = at + length + (end ? 1 : 0);
    return length > 0 && begin[length - 1] == '\r' ? length - 1 : length;
}

static int64_t count_lines(wg__text_map *text) {
    int64_t count = 0, next;
    for (int64_t at = 0; at < text->length; at = next, count++) {
        wg__pairs_text_line(text, at, &next);
        wg__text_map_pass(text, next);
    }
    return count;
}

static bool is_blank(const char *text, int64_t length) {
    int64_t at = 0;
    for (int64_t space; at < length && (space = wg__space_length(text + at, length - at)) > 0;)
        at += space;
    return at == length;
}

/* ---- Reading ---- */

/* Texts of different lengths are found before any of them is tokenised. */
static int check_lines(wg__text_map *texts, const char *const *names) {
    int64_t counts[WG__TOKEN_SIDES];
    for (int side = 0; side < WG__TOKEN_SIDES; side++) {
        counts[side] = count_lines(&texts[side]);
        if (counts[side] == 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is empty", names[side]);
    }
    if (counts[0] == counts[1])
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "%s has %lld lines and %s has %lld; each line must be the translation of the "
                   "same line of the other file, and line %lld has none",
                   names[0], (long long)counts[0], names[1], (long long)counts[1],
                   (long long)(counts[0] < counts[1] ? counts[0] : counts[1]) + 1);
}

typedef struct reading {
    wg__token_file *file;
    const wg_tokenizer *tokenizer;
    wg_token_list ids; /* of the sentence at hand */
} reading;

static int refuse_line(const char *name, int64_t number, const char *what) {
    return wg_fail(WG_ERROR_FORMAT, WHERE,
                   "%s: line %lld %s; each line must be a sentence, and the same line of the other "
                   "file its translation",
                   name, (long long)number, what);
}

/* Adds the line of that number as a sentence. */
static int read_line(reading *r, const char *name, int64_t number, const char *line,
                     int64_t length) {
    if (memchr(line, '\0', (size_t)length))
        return refuse_line(name, number, "holds a NUL");
    if (is_blank(line, length))
        return refuse_line(name, number, "is empty");
    r->ids.count = 0;
    if (wg_tokenizer_encode(r->tokenizer, line, length, NULL, &r->ids) < 0)
        return -1;
    if (r->ids.count == 0)
        return refuse_line(name, number, "has no token");
    if (wg__token_file_add(r->file, r->ids.count, r->ids.ids) < 0)
        return -1;
    return wg__token_file_end_sentence(r->file);
}

static int read_lines(reading *r, wg__text_map *texts, const char *const *names) {
    int64_t at[WG__TOKEN_SIDES] = {0};
    for (int64_t number = 1; at[0] < texts[0].length; number++) {
        int64_t bytes = 0;
        for (int side = 0; side < WG__TOKEN_SIDES; side++) {
            wg__text_map *text = &texts[side];
            const char *line = text->bytes + at[side];
            const int64_t length = wg__pairs_text_line(text, at[side], &at[side]);
            if (read_line(r, names[side], number, line, length) < 0)
                return -1;
            wg__text_map_pass(text, at[side]);
            bytes += length;
        }
        if (wg__token_file_end_document(r->file, bytes) < 0)
            return -1;
    }
    return 0;
}

int wg__pairs_text_read(const wg__token_request *request, wg__text_map *texts,
                        const char *const *names, wg__token_file *file) {
    reading r = {.file = file, .tokenizer = request->tokenizer};
    const int status = check_lines(texts, names) < 0 ? -1 : read_lines(&r, texts, names);
    wg_token_list_free(&r.ids);
    return status;
}
