/* Texts, or pairs of texts, one example a line: see examples.h. */
#include "data/dataset/examples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define WHERE "text_lines"

/* ---- Reading ---- */

/* A file being read. */
typedef struct reading {
    wg__file_line line;
    const wg_tokenizer *tokenizer;
    wg__text_lines *lines;
    int64_t texts, capacity; /* of lines->ends */
} reading;

static int add_text(reading *r, const char *text) {
    wg_token_list *tokens = &r->lines->tokens;
    const int64_t before = tokens->count;
    if (wg_tokenizer_encode(r->tokenizer, text, -1, NULL, tokens) < 0)
        return -1;
    if (tokens->count == before)
        return wg__fail_line(&r->line, "a text is empty");
    return wg__append(&r->lines->ends, &r->texts, &r->capacity, &tokens->count,
                      sizeof tokens->count);
}

static int add_line(reading *r, char *text, int64_t length) {
    if ((int64_t)strlen(text) < length)
        return wg__fail_line(&r->line, "it has a NUL, and is no text");
    text[strcspn(text, "\r\n")] = '\0';
    if (text[strspn(text, " \t")] == '\0')
        return 0;
    if (wg__utf8_invalid(text, (int64_t)strlen(text)) >= 0)
        return wg__fail_line(&r->line, "it is not UTF-8");
    char *tab = strchr(text, '\t');
    if (r->lines->count == 0)
        r->lines->pairs = tab != NULL;
    if ((tab != NULL) != r->lines->pairs || (tab && strchr(tab + 1, '\t')))
        return wg__fail_line(&r->line, "%s, as in the lines before",
                             r->lines->pairs ? "two texts with a tab between them are wanted"
                                             : "one text without tabs is wanted");
    if (tab)
        *tab = '\0';
    r->lines->count++;
    return add_text(r, text) < 0 || (tab && add_text(r, tab + 1) < 0) ? -1 : 0;
}

int wg__text_lines_load(const char *path, const wg_tokenizer *tokenizer, wg__text_lines *lines) {
    reading r = {.line = {WHERE, path, 0}, .tokenizer = tokenizer, .lines = lines};
    *lines = (wg__text_lines){0};
    FILE *file = fopen(path, "r");
    if (!file)
        return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, WHERE,
                       "cannot read %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    int status = 0;
    while (status == 0 && (length = getline(&text, &size, file)) >= 0) {
        r.line.number++;
        status = add_line(&r, text, length);
    }
    if (status == 0 && ferror(file))
        status = wg_fail(WG_ERROR_IO, WHERE, "cannot read %s: %s", path, strerror(errno));
    if (status == 0 && lines->count == 0)
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no text", path);
    free(text);
    fclose(file);
    return status;
}

void wg__text_lines_free(wg__text_lines *lines) {
    wg_token_list_free(&lines->tokens);
    wg__free(lines->ends);
    *lines = (wg__text_lines){0};
}

bool wg__text_lines_are_scored(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    bool scored = false;
    if (file && getline(&text, &size, file) > 0) {
        const char *tab = strchr(text, '\t');
        scored = text[0] == '{' || (tab && strchr(tab + 1, '\t'));
    }
    free(text);
    if (file)
        fclose(file);
    return scored;
}

/* ---- Contents ---- */

wg_token_pair wg__text_lines_get(const wg__text_lines *lines, int64_t example, int side) {
    const int64_t text = lines->pairs ? 2 * example + side : example;
    const int64_t first = text ? lines->ends[text - 1] : 0;
    return (wg_token_pair){.first = lines->tokens.ids + first,
                           .first_count = lines->ends[text] - first};
}

uint64_t wg__text_lines_fingerprint(const wg__text_lines *lines) {
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t i = 0; i < lines->count; i++)
        for (int side = 0; side < (lines->pairs ? 2 : 1); side++) {
            const wg_token_pair text = wg__text_lines_get(lines, i, side);
            hash = wg__pair_fingerprint(hash, &text);
        }
    return hash;
}
