/* Files of examples, of which a few columns are wanted: one text or two, and what is said of them.
 *
 *     named columns      index  sentence1  sentence2  label      the first line names the columns
 *                        0      A plane.   A bird.    1.250
 *     JSON lines         {"sentence1": "A plane.", "sentence2": "A bird.", "label": 1.25}
 *     columns in order   A plane.  A bird.  1.250                texts first, the label last
 *
 * Columns are separated by tabs, and nothing is quoted, as in GLUE's files. Empty lines are
 * skipped, and a line may end in CR LF. A file holds JSON if its first line is an object. */
#ifndef WG_DATA_DATASET_TABLE_H
#define WG_DATA_DATASET_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* The names of columns, or keys; NULL or "": columns with well-known names are looked for
 * ("sentence", "sentence1" and "sentence2", "label", "score"...), and where there are none, they
 * are in order. A text that is named is the only one unless `text_pair` is named, too. */
typedef struct wg__table_columns {
    const char *text, *text_pair, *label;
    bool lists; /* a label may be a JSON list of texts, which are given with commas between them */
} wg__table_columns;

/* The most fields of a row: two texts and the label, which is the last. */
enum { WG_TABLE_FIELDS = 3 };

/* Calls `row` with the two or three fields of each line; the count is the same in all of them.
 * `fields` may be changed, and are valid until it returns. Lines count from 1. 0; -1 when it gives
 * -1, or with [NOT_FOUND, IO, MEMORY; ARGUMENT for a second text without a first; FORMAT, with the
 * line: not UTF-8, a column that is not there, listing those that are, another number of columns
 * than before, or what is not JSON] */
int wg__table_read(const char *path, const wg__table_columns *columns,
                   int (*row)(void *context, int64_t line, int count, char *const *fields),
                   void *context);

#endif
