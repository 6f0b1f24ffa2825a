/* Answering questions about paragraphs as a task for the trainer: BERT with a head, fine-tuned.
 *
 *     SQuAD --> shuffled windows --> BERT for question answering --> cross-entropy of first and
 * last
 *
 * Metric of a step, beside its loss: right (the share of windows whose first and last token are
 * both the likeliest). Of an evaluation: `loss` (the mean over windows), `exact_match` and `f1`,
 * in percent, as the official script counts them over questions. */
#ifndef WG_OBJECTIVES_QUESTION_ANSWERING_H
#define WG_OBJECTIVES_QUESTION_ANSWERING_H

#include "../data/dataset/squad.h"
#include "../models/bert_heads.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_question_answering wg_question_answering;

typedef struct wg_question_answering_options {
    int64_t batch; /* windows; 0: 32 */
    uint64_t seed; /* of their order */
} wg_question_answering_options;

/* All of these are borrowed and must outlive it. `training` may be NULL, if nothing but an
 * evaluation is wanted, and so may held_out; both are read in windows of one length. Freed with
 * wg_question_answering_free. [ARGUMENT, also for windows beyond the model's positions, a
 * vocabulary beyond the model's or a tokenizer without [CLS], [SEP] and [PAD]; MEMORY] */
WG_API wg_question_answering *wg_question_answering_new(
    wg_bert_for_question_answering *model, const wg_tokenizer *tokenizer, const wg_squad *training,
    const wg_squad *held_out, const wg_question_answering_options *options);
WG_API void wg_question_answering_free(wg_question_answering *answering);

/* The task, whose functions use `answering`. It saves /config, /tokenizer and /train/data, and
 * refuses to go on with another file, or other windows, than it was begun with. There must be a
 * training file. */
WG_API wg_task wg_question_answering_task(wg_question_answering *answering);

/* Tokens of a context, as wg_squad_text takes them; first -1: there is no answer. */
typedef struct wg_answer_span {
    int64_t first, last;
    double score; /* logit of the first and of the last */
} wg_answer_span;

/* Measures the model on the held-out file. An answer has at most 30 tokens, begins with one of the
 * 20 likeliest first tokens of a window, in the window that has most context around it, and ends
 * with one of the 20 likeliest last ones. `answers`, unless it is NULL, gets one for each question.
 * [STATE if there is no such file] */
WG_API int wg_question_answering_evaluate(wg_question_answering *answering, wg_metrics *metrics,
                                          wg_answer_span *answers);

WG_END_DECLS

#endif
