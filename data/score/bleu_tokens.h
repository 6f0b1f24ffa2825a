/* A segment as BLEU counts it: mteval-v13a's tokens, as sacreBLEU has them.
 *
 *     He said: &quot;1,000.5 km.&quot;
 *       entities, then lower case if asked
 *       punctuation stands apart, but for what joins digits
 *     He said : " 1,000.5 km . "
 *       white space parts tokens
 */
#ifndef WG_DATA_SCORE_BLEU_TOKENS_H
#define WG_DATA_SCORE_BLEU_TOKENS_H

#include <stdbool.h>

#include "base/string_table.h"

/* Numbers of tokens in a table of words. {0} is none; `ids` is freed with wg__free. */
typedef struct wg__bleu_tokens {
    int32_t *ids;
    int64_t count, capacity;
} wg__bleu_tokens;

/* Appends the tokens of a UTF-8 text, numbered by `words`, which takes in what it has not yet.
 * [FORMAT if it is not UTF-8; MEMORY] */
int wg__bleu_tokenize(const char *text, bool lowercase, wg__strings *words,
                      wg__bleu_tokens *tokens);

#endif
