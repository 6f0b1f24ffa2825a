/* The folder of a published model: config.json, model.safetensors, the tokenizer's files. */
#ifndef WG_FORMATS_CONVERT_FOLDER_H
#define WG_FORMATS_CONVERT_FOLDER_H

#include "data/tokenizer/tokenizer.h"

/* Makes the folder unless it is there, and gives the path of its model.safetensors, freed with
 * wg__free. NULL with IO, NOT_FOUND, MEMORY. */
char *wg__folder_begin(const char *folder);

/* Writes config.json: the configuration, and the class of the published library that loads it
 * (NULL: there is none). */
int wg__folder_config(const char *folder, const char *architecture, const char *json);

/* Writes the tokenizer: copies of the published files that `from`, a folder or a file, has; else
 * the files of its kind. *published is false if its kind has none: then it is wengert.json. */
int wg__folder_tokenizer(const char *folder, const char *from, const wg_tokenizer *tokenizer,
                         bool *published);

#endif
