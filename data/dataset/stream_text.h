/* The rules of token_stream.h by which a text becomes one row of tokens. */
#ifndef WG_DATA_DATASET_STREAM_TEXT_H
#define WG_DATA_DATASET_STREAM_TEXT_H

#include "data/dataset/token_sources.h"

/* Adds the parts of a text. [FORMAT for one of which nothing is left to read; as encoding] */
int wg__stream_text_read(const wg__token_request *request, wg__text_map *text,
                         const char *const *name, wg__token_file *file);

#endif
