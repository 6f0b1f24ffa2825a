/* Texts, or pairs of texts, one example a line, tokenised once:
 *
 *     A plane is taking off.                       A man plays.	A man is playing a flute.
 *     A man is playing a large flute.              It rains.	The sky is grey.
 *
 * Two texts have a tab between them. Blank lines are skipped, and a line may end in CR LF. */
#ifndef WG_DATA_DATASET_TEXT_LINES_H
#define WG_DATA_DATASET_TEXT_LINES_H

#include "../batches/pair_batch.h"

/* {0} is none. */
typedef struct wg__text_lines {
    wg_token_list tokens;
    int64_t *ends; /* (count (1 + pairs)) behind each text */
    int64_t count, capacity;
    bool pairs;
} wg__text_lines;

/* Reads a file; freed with wg__text_lines_free, also after an error. -1 with [NOT_FOUND, IO,
 * MEMORY; FORMAT, with the line: not UTF-8, a NUL, an empty text, another number of texts than in
 * the lines before, or no example at all] */
int wg__text_lines_load(const char *path, const wg_tokenizer *tokenizer, wg__text_lines *lines);
void wg__text_lines_free(wg__text_lines *lines);

/* True if the first line has two tabs or more, or is a JSON object: two texts and a number, as
 * labelled_text.h reads them. */
bool wg__text_lines_are_scored(const char *path);

/* The tokens of one side, 0 or 1, of an example, as the first text of a pair; borrowed. Where there
 * are no pairs both sides are the text. */
wg_token_pair wg__text_lines_get(const wg__text_lines *lines, int64_t example, int side);

/* Identifies the examples: a resumed run must have the same. */
uint64_t wg__text_lines_fingerprint(const wg__text_lines *lines);

#endif
