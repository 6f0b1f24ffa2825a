/* Questions about paragraphs, whose answers are quotations: SQuAD 1.1   (Rajpurkar et al. 2016).
 *
 *     {"data": [{"paragraphs": [{"context": "...", "qas": [
 *         {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 17}, ...]},
 *         ...]}, ...]}, ...]}
 *
 * A context that is longer than a sequence is read through windows, each a stride behind the one
 * before   (Devlin et al. 2019; run_squad.py):
 *
 *     context    t0 t1 t2 t3 t4 t5 t6 t7 t8 t9
 *     windows    [CLS] question [SEP] t0 t1 t2 t3 t4 t5 [SEP]
 *                [CLS] question [SEP]       t2 t3 t4 t5 t6 t7 [SEP]
 *                [CLS] question [SEP]             t4 t5 t6 t7 t8 t9 [SEP]
 *
 * Each token knows where in the context its word (up to white space or punctuation) is, so that an
 * answer is a piece of the context, from the begin of a word to the end of one. */
#ifndef WG_DATA_DATASET_SQUAD_H
#define WG_DATA_DATASET_SQUAD_H

#include "examples.h"

typedef struct wg__squad wg__squad; /* begins with a wg__examples, of its windows */

typedef struct wg__squad_options {
    int64_t sequence; /* of a window with its question; 0: 384 */
    int64_t stride;   /* 0: 128 */
    int64_t query;    /* tokens of a question at most; 0: 64 */
} wg__squad_options;

/* Reads a file. `answer_start` counts characters (code points). Freed with wg__examples_free.
 * Targets of a batch: the first and the last token of the answers, (B) i64 each. NULL with
 * [NOT_FOUND, IO, MEMORY; FORMAT for what is not UTF-8 or not JSON, with the line, or lacks a
 * field, with its place ("data[0].paragraphs[2].qas[1].answers[0].answer_start"), an answer that is
 * not where `answer_start` says, or no question; ARGUMENT for windows without room] */
wg__squad *wg__squad_load(const char *path, const wg_tokenizer *tokenizer,
                          const wg__squad_options *options);

/* How many questions there are. Given NULL: 0. */
int64_t wg__squad_questions(const wg__squad *squad);

/* The id of a question, 0 .. questions - 1; borrowed. */
const char *wg__squad_id(const wg__squad *squad, int64_t question);

/* How many answers a question has; one at least. */
int64_t wg__squad_answers(const wg__squad *squad, int64_t question);

/* The text of one of them, 0 .. answers - 1; borrowed. */
const char *wg__squad_answer(const wg__squad *squad, int64_t question, int64_t answer);

/* Tokens first .. first + count - 1 of a context, beside its question. Windows of a question follow
 * each other, and questions in the file's order. */
typedef struct wg__squad_window {
    int64_t question;
    int64_t first, count;
    int64_t offset;     /* where the first of them stands in the sequence */
    int64_t start, end; /* of the question's first answer, in the sequence; 0, the [CLS], if it is
                         * not all within */
} wg__squad_window;

/* Window `window`, 0 .. windows - 1. */
wg__squad_window wg__squad_window_at(const wg__squad *squad, int64_t window);

/* True if this window of its question has the most context around the token, counted on the side
 * that has less: an answer that begins with the token is taken from this window alone. */
bool wg__squad_is_best_window(const wg__squad *squad, int64_t window, int64_t token);

/* The context from the word of token `first` to that of token `last`; the caller frees it with
 * wg_text_free. [MEMORY] */
char *wg__squad_text(const wg__squad *squad, int64_t question, int64_t first, int64_t last);

#endif
