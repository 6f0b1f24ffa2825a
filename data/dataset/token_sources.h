/* From texts, or token files of them, to rows of tokens. */
#ifndef WG_DATA_DATASET_TOKEN_SOURCES_H
#define WG_DATA_DATASET_TOKEN_SOURCES_H

#include "data/dataset/token_view.h"
#include "data/dataset/tokens.h"

typedef struct wg__token_request wg__token_request;

struct wg__token_request {
    wg__token_rules rules;
    const wg_tokenizer *tokenizer;
    const wg_token_storage *storage; /* NULL: nothing is kept */
    const char *where;               /* the caller, in errors */

    /* Adds a text, which is UTF-8, or the sides of pairs, to a token file. `names` are for
     * messages. */
    int (*read)(const wg__token_request *request, wg__text_map *texts, const char *const *names,
                wg__token_file *file);
};

/* Fills a view for each part of the rules, {0} before, from texts and token files; each of them, or
 * two texts that are the sides of pairs, is a source. After a failure the views are empty.
 * [NOT_FOUND, IO, FORMAT, MEMORY; ARGUMENT for no file, a text without its other side, or a token
 * file that does not have what is asked for] */
int wg__token_sources_load(const wg__token_request *request, int count, const char *const *paths,
                           wg__token_view views[WG__TOKEN_PARTS]);

/* The same from a text in memory, or the sides of pairs. What is of pairs is borrowed as long as
 * the token file is there. */
int wg__token_sources_of_texts(const wg__token_request *request, wg__text_map *texts,
                               wg__token_view views[WG__TOKEN_PARTS]);

#endif
