/* From texts, or token files of them, to rows of tokens. */
#ifndef WG_DATA_TOKEN_SOURCES_H
#define WG_DATA_TOKEN_SOURCES_H

#include "data/token_view.h"
#include "data/tokens.h"

typedef struct wg__token_request wg__token_request;

struct wg__token_request {
    wg__token_rules rules;
    const wg_tokenizer *tokenizer;
    const wg_token_storage *storage; /* NULL: nothing is kept */
    const char *where;               /* the caller, in errors */

    /* Adds a text, which is UTF-8, to a token file. `name` is for messages. */
    int (*read)(const wg__token_request *request, wg__text_map *text, const char *name,
                wg__token_file *file);
};

/* Fills a view for each part of the rules, {0} before, from texts and token files; each of them is
 * a source. After a failure the views are empty.
 * [NOT_FOUND, IO, FORMAT, MEMORY; ARGUMENT for no file, or a token file that does not have what is
 * asked for] */
int wg__token_sources_load(const wg__token_request *request, int count, const char *const *paths,
                           wg__token_view views[WG__TOKEN_PARTS]);

/* The same from a text in memory; length -1: up to the first NUL. */
int wg__token_sources_of_text(const wg__token_request *request, const char *text, int64_t length,
                              wg__token_view views[WG__TOKEN_PARTS]);

#endif
