/* What a token file says about itself: /about, as token_file.h has it. */
#ifndef WG_DATA_DATASET_TOKEN_ABOUT_H
#define WG_DATA_DATASET_TOKEN_ABOUT_H

#include "data/dataset/token_file.h"

/* Writes it. [IO, MEMORY] */
int wg__token_about_put(wg__token_file *file);

/* Reads rules, vocabulary and sources. [FORMAT for a file that is no token file; MEMORY] */
int wg__token_about_get(wg__token_file *file);

/* Why a file is not what tokenising these texts anew would give: a phrase such as "books.txt has
 * changed", or NULL if it is. */
const char *wg__token_about_differs(const wg__token_file *file, const wg__token_rules *rules,
                                    const wg_tokenizer *tokenizer, int count,
                                    const char *const *paths);

/* Whether a text is there as it was: size and time tell, so that it may be moved. */
bool wg__token_source_found(const wg__token_source *source, const char *path);

#endif
