/* The rules of corpus.h by which a text becomes documents of sentences. */
#ifndef WG_DATA_DATASET_CORPUS_TEXT_H
#define WG_DATA_DATASET_CORPUS_TEXT_H

#include "data/dataset/corpus.h"
#include "data/dataset/token_sources.h"

wg_corpus_format wg__corpus_text_detect(wg__text_map *text);

/* Adds the documents of a text. [FORMAT for one without words; as encoding] */
int wg__corpus_text_read(const wg__token_request *request, wg__text_map *text,
                         const char *const *name, wg__token_file *file);

#endif
