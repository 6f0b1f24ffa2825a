/* The rules of sentence_pairs.h by which two texts become pairs of sentences. */
#ifndef WG_DATA_DATASET_PAIRS_TEXT_H
#define WG_DATA_DATASET_PAIRS_TEXT_H

#include "data/dataset/token_sources.h"

/* Adds the lines of two texts, a document each two. [FORMAT for texts that are no pairs; as
 * encoding] */
int wg__pairs_text_read(const wg__token_request *request, wg__text_map *texts,
                        const char *const *names, wg__token_file *file);

/* The length of the line that begins at `at`, without its line break; *next is where the next one
 * begins. */
int64_t wg__pairs_text_line(const wg__text_map *text, int64_t at, int64_t *next);

#endif
