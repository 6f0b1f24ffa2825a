/* Question answering: the first and the last token of an answer in a text, by an encoder with a
 * head (Rajpurkar et al. 2016; Devlin et al. 2019, section 4.2; run_squad.py).
 *
 *     SQuAD file --> windows, shuffled --> encoder, qa_outputs --> cross-entropy of both ends
 *
 * Metric of a step, beside its loss: `right`, the share of windows whose two ends are both right.
 * Of an evaluation: `exact_match` and `f1`, in percent, the best over the answers of each question,
 * as the official script counts them, and the `loss` of windows. */
#ifndef WG_OBJECTIVES_QUESTION_ANSWERING_H
#define WG_OBJECTIVES_QUESTION_ANSWERING_H

#include "../data/dataset/squad.h"
#include "../models/heads.h"
#include "objective.h"

WG_BEGIN_DECLS

/* Encoders. Reads files of wg_squad_load. */
extern WG_API const wg_objective wg_question_answering;

WG_END_DECLS

#endif
