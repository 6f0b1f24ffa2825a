/* BERT with the heads of fine-tuning   (Devlin et al. 2019, sections 3.2, 4.1 and 4.2).
 *
 *     sequence classification                     question answering
 *
 *     [CLS] a [SEP] b [SEP]                       [CLS] question [SEP] context [SEP]
 *        | encoder                                   | encoder
 *     pooled (B, C)                               sequence (B, T, C)
 *        | dropout, classifier                       | qa_outputs
 *     logits (B, K) of K labels                   start logits (B, T), end logits (B, T)
 *
 * Parameter paths are those of the published BertForSequenceClassification (bert.*, classifier.*)
 * and BertForQuestionAnswering (bert.* without a pooler, qa_outputs.*); so are the keys of the
 * configuration: architectures, problem_type, id2label, label2id. */
#ifndef WG_MODELS_BERT_HEADS_H
#define WG_MODELS_BERT_HEADS_H

#include "../data/dataset/labels.h"
#include "../data/batches/pair_batch.h"
#include "bert.h"

WG_BEGIN_DECLS

/* ---- Sequence classification ---- */

typedef struct wg_bert_for_sequence_classification {
    wg_module module;
    wg_bert *bert;
    wg_linear *classifier;
    wg_labels labels; /* K of them */
    double dropout;   /* classifier_dropout, else hidden_dropout_prob */
} wg_bert_for_sequence_classification;

/* A root, freed with wg_module_free(&model->module); its generator begins at `seed`. Labels are
 * copied. NULL with [ARGUMENT, also for fewer than two labels; MEMORY] */
WG_API wg_bert_for_sequence_classification *wg_bert_for_sequence_classification_new(
    const wg_bert_config *config, const wg_labels *labels, uint64_t seed);

/* (B, T)   ->   logits (B, K). [scope; as wg_bert_forward] */
WG_API wg_tensor *wg_bert_classify(wg_bert_for_sequence_classification *model,
                                   const wg_pair_batch *inputs);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_bert_for_sequence_classification_config(
    const wg_bert_for_sequence_classification *model);

/* The labels of a published configuration: id2label, else LABEL_0, LABEL_1... as many as num_labels
 * says, which is two unless it is there. *labels is {0} after an error. [FORMAT, also for another
 * problem_type than single_label_classification; MEMORY] */
WG_API int wg_bert_config_labels(const char *json, wg_labels *labels);

/* ---- Question answering ---- */

typedef struct wg_bert_for_question_answering {
    wg_module module;
    wg_bert *bert; /* without a pooler */
    wg_linear *qa_outputs;
} wg_bert_for_question_answering;

/* The same. [ARGUMENT, MEMORY] */
WG_API wg_bert_for_question_answering *wg_bert_for_question_answering_new(
    const wg_bert_config *config, uint64_t seed);

/* Logits of the answer's first and last token, (B, T) each. 0, or -1 with both NULL.
 * [scope; as wg_bert_forward] */
WG_API int wg_bert_answer(wg_bert_for_question_answering *model, const wg_pair_batch *inputs,
                          wg_tensor **start, wg_tensor **end);

/* The mean of the cross-entropies of the first and the last token, as published.
 * logits (B, T), labels (B) i64   ->   rank 0. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_bert_answer_loss(wg_tensor *start, wg_tensor *end, wg_tensor *starts,
                                      wg_tensor *ends);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
WG_API char *wg_bert_for_question_answering_config(const wg_bert_for_question_answering *model);

/* ---- From checkpoints ---- */

/* Reads a fine-tuned model and its tokenizer. Both are NULL after an error.
 * [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of something else] */
WG_API int wg_bert_for_sequence_classification_load(const char *path,
                                                    wg_bert_for_sequence_classification **model,
                                                    wg_tokenizer **tokenizer);
WG_API int wg_bert_for_question_answering_load(const char *path,
                                               wg_bert_for_question_answering **model,
                                               wg_tokenizer **tokenizer);

/* What a new model to be fine-tuned takes from a checkpoint. */
typedef struct wg_bert_origin {
    const char *path; /* of any BERT: pre-trained, converted, or fine-tuned already */
    uint64_t seed;    /* of what begins anew, and of dropout */

    /* Told which tensors are not in the file and begin anew; NULL: nobody is. */
    void (*note)(const char *message, void *context);
    void *context;
} wg_bert_origin;

/* Makes a model with the encoder and the tokenizer of a checkpoint. Its head is the checkpoint's if
 * that is of the same kind (and labels), else new; so is a pooler that is missing. Both are NULL
 * after an error. [as above; NOT_FOUND if the encoder is not whole] */
WG_API int wg_bert_for_sequence_classification_begin(const wg_bert_origin *origin,
                                                     const wg_labels *labels,
                                                     wg_bert_for_sequence_classification **model,
                                                     wg_tokenizer **tokenizer);
WG_API int wg_bert_for_question_answering_begin(const wg_bert_origin *origin,
                                                wg_bert_for_question_answering **model,
                                                wg_tokenizer **tokenizer);

WG_END_DECLS

#endif
