/* Texts in, translations out: a Transformer with its tokenizer.
 *
 *     texts --> tokens --> batches of like length --> beam search --> texts, in the order given
 */
#ifndef WG_OBJECTIVES_TRANSLATOR_H
#define WG_OBJECTIVES_TRANSLATOR_H

#include "../models/transformer.h"

WG_BEGIN_DECLS

typedef struct wg_translator_options {
    int64_t batch;        /* texts that are translated at a time; 0: 32 */
    wg_beam_options beam; /* its start and end are the model's, whatever stands there */
    int64_t first_number; /* how messages count the first text; 0: 1 */
} wg_translator_options;

/* Translates `count` UTF-8 texts, each a sentence by itself. translations[i], one line, is that of
 * texts[i], and empty where there is no word in it; the caller frees each with wg_text_free. After
 * a failure all of them are NULL. Returns 0 or -1. [FORMAT for text that is not UTF-8; ARGUMENT for
 * one that is longer than the model takes; MEMORY; as wg_transformer_translate] */
WG_API int wg_translate_texts(wg_transformer *model, const wg_tokenizer *tokenizer, int64_t count,
                              const char *const *texts, const wg_translator_options *options,
                              char **translations);

WG_END_DECLS

#endif
