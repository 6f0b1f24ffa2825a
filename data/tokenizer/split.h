/* Splitting a text by a regular expression, as the published byte-level tokenizers do before they
 * merge. */
#ifndef WG_DATA_TOKENIZER_SPLIT_H
#define WG_DATA_TOKENIZER_SPLIT_H

#include <stdint.h>

typedef struct wg__splitter wg__splitter;

/* GPT-2's pattern, as encoder.py of openai/gpt-2 has it. */
#define WG__GPT2_PATTERN                                                                           \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/* A splitter by such a pattern. \s is what has White_Space, as in the published tokenizers; classes
 * are Unicode's. Freed with wg__splitter_free. [FORMAT for a pattern that is none, too long, or
 * holds what is not allowed here; MEMORY] */
wg__splitter *wg__splitter_new(const char *pattern);

/* Frees a splitter; NULL is allowed. */
void wg__splitter_free(wg__splitter *splitter);

/* Receives each part. A negative answer stops and is passed on. */
typedef int (*wg__part_visitor)(void *context, const char *part, int64_t length);

/* Hands every match, and what stands between matches, to `visit` in order: together they are the
 * text, and none is empty. The text is UTF-8. [FORMAT if matching takes too long; MEMORY] */
int wg__split(const wg__splitter *splitter, const char *text, int64_t length,
              wg__part_visitor visit, void *context);

#endif
