/* Internal interface of the scores: BLEU's tokens, and SQuAD's comparison of answers. */
#ifndef WG_DATA_SCORE_SCORE_H
#define WG_DATA_SCORE_SCORE_H

#include <stdbool.h>

#include "base/string_table.h"
#include "data/tokenizer/tokenizer.h"

/* ---- BLEU: the tokens of mteval-v13a, as in sacreBLEU. bleu.c ----
 *
 *     He said: &quot;1,000.5 km.&quot;
 *       entities replaced, then lower case if asked for
 *       punctuation separated, except within numbers
 *     He said : " 1,000.5 km . "
 *       white space separates tokens
 */

/* Appends the tokens of a UTF-8 text as their numbers in `words`; new ones are added to it.
 * [FORMAT if the text is not UTF-8; MEMORY] */
int wg__bleu_tokenize(const char *text, bool lowercase, wg__strings *words, wg_token_list *tokens);

/* ---- SQuAD: answers compared as by the official evaluate-v1.1.py. squad_score.c ---- */

/* An answer as it is compared: lower case, without punctuation and articles, one space between
 * words. Freed with wg__free. NULL with MEMORY. */
char *wg__squad_normalize(const char *text);

/* Compares normalised answers: *exact is 1 if they are equal, else 0; *f1 is the F1 of their words.
 * [MEMORY] */
int wg__squad_score(const char *answer, const char *wanted, double *exact, double *f1);

#endif
