/* Questions out of plain English text, from which a model learns to find answers before it sees
 * questions that people asked: noisy clozes   (Lewis, Denoyer & Riedel 2019, arXiv:1906.04980,
 * section 2.3).
 *
 *     context    ... The abbey was founded by King David in 1128, and lies beside the palace. ...
 *     clause             The abbey was founded by ^^^^^^^^^^ in 1128
 *     question           Who abbey founded was 1128?
 *
 * A paragraph is a line of 300 to 2500 characters. A context is a run of at least two of its whole
 * sentences, of 250 to 950 characters. Contexts are chosen in random order from all files, and one
 * or two sentences of each, of 6 to 60 words, are asked about.
 *
 * An answer is a name or a number: a run of capitalised words and numbers ("Bank of England"), now
 * and then with what a preposition adds to it. The first word of a sentence makes no name alone. An
 * answer has at most seven words, and is at most twice in its context. (Answers of other words
 * taught a model less: docs/small-corpora.md.) The question is the clause around it: words are left
 * out, function words more often, and some neighbours change places. A question word by the form of
 * the answer stands at the begin, or in the answer's place. At least three of the words are no
 * function words.
 *
 * The function words and the question words are English. */
#ifndef WG_DATA_DATASET_QUESTIONS_H
#define WG_DATA_DATASET_QUESTIONS_H

#include <stdint.h>

#include "../../base/api.h"

WG_BEGIN_DECLS

/* How many questions are made where no count is given. */
enum { WG_CORPUS_QUESTIONS_USUAL = 25000 };

typedef struct wg_corpus_questions_options {
    int64_t count; /* questions at most; 0: the usual number */
    uint64_t seed; /* of all choices: the same one gives the same file */
} wg_corpus_questions_options;

typedef struct wg_corpus_questions_report {
    int64_t questions; /* fewer than `count` where the text has no more contexts */
    int64_t contexts;  /* that they are about */
} wg_corpus_questions_report;

/* Reads text files and writes questions about them to `out` as JSON of SQuAD 1.1, with answer_start
 * in code points. An existing file is replaced, and keeps its contents after an error. `options`
 * and `report` may be NULL. [NOT_FOUND, IO; FORMAT for a text that is not UTF-8, with file and
 * line, and for texts of which no question can be made; ARGUMENT for a negative count; MEMORY] */
WG_API int wg_corpus_questions(int count, const char *const *paths, const char *out,
                               const wg_corpus_questions_options *options,
                               wg_corpus_questions_report *report);

WG_END_DECLS

#endif
