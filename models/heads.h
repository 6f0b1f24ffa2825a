/* Encoders with a fine-tuning head   (Devlin et al. 2019, sections 3.2 and 4), for every
 * model type that is an encoder.
 *
 *     WG_HEAD_LABELS: sequence classification     WG_HEAD_ANSWERS: question answering
 *     WG_HEAD_SCORE: regression                   WG_HEAD_WORDS: token classification
 *     WG_HEAD_SEVERAL_LABELS: any number of labels
 *
 *     [CLS] a [SEP] b [SEP]                       [CLS] question [SEP] context [SEP]
 *        | encoder                                   | encoder, without a pooler
 *     pooled (B, C)                               sequence (B, T, C)
 *        | dropout, classifier                       | qa_outputs; for words dropout, classifier
 *     logits (B, K) of K labels                   start logits (B, T), end logits (B, T)
 *     score (B, 1)                                logits of words (B, T, K)
 *
 * Parameters have the names of the published BertForSequenceClassification (bert.*, classifier.*),
 * BertForQuestionAnswering (bert.*, qa_outputs.*) and BertForTokenClassification (bert.*,
 * classifier.*), with the type's encoder.name for "bert" and names.answers for "qa_outputs". The
 * configuration has the published keys: architectures, problem_type, id2label, label2id. In
 * config.json a score is a sequence classification with a single label and problem_type
 * "regression"; several labels have problem_type "multi_label_classification". A type with
 * encoder.states has a layer and dropout between sequence and qa_outputs, too. */
#ifndef WG_MODELS_HEADS_H
#define WG_MODELS_HEADS_H

#include "../data/dataset/examples.h"
#include "model.h"

typedef enum wg__head_kind {
    WG_HEAD_LABELS,
    WG_HEAD_ANSWERS,
    WG_HEAD_SCORE,
    WG_HEAD_WORDS,
    WG_HEAD_SEVERAL_LABELS
} wg__head_kind;
enum { WG_HEAD_KINDS = WG_HEAD_SEVERAL_LABELS + 1 };

typedef struct wg__headed_encoder {
    wg_module module;
    const wg_model_type *type; /* of the encoder */
    void *config;              /* the encoder's, a struct of the type */
    wg_module *encoder;
    wg__head_kind kind;
    wg_linear *head;   /* classifier or qa_outputs */
    wg__labels labels; /* K of them; of answers and of a score none */
    double dropout;    /* of a classifier's input: classifier_dropout, else the encoder's */
    int fresh_count;   /* paths of the encoder's modules that begin anew: a pooler */
    char *fresh[8];
} wg__headed_encoder;

/* An encoder with a new head of that kind, for labels of texts or words, which are copied; NULL for
 * kinds without labels. A root, freed with wg_module_free(&model->module); its generator begins at
 * `seed`. NULL with [ARGUMENT, also for fewer than two labels; STATE for a type that is no encoder;
 * MEMORY] */
wg__headed_encoder *wg__headed_encoder_new(const wg_model_type *type, wg__head_kind kind,
                                           const void *config, const wg__labels *labels,
                                           uint64_t seed);

/* The wg_model of a headed encoder, which it borrows. */
wg_model wg__headed_encoder_model(wg__headed_encoder *model);

/* The outputs of the head: logits of the labels, (B, K); the score, (B, 1); logits of the labels of
 * words, (B, T, K); or logits of the answer's first and last token, (B, T) each. The second output
 * is NULL except for answers. 0, or -1 with both NULL. [scope; SHAPE, INDEX, DTYPE] */
int wg__headed_encoder_forward(wg__headed_encoder *model, const wg_model_inputs *inputs,
                               wg_tensor *outputs[2]);

/* The mean of the cross-entropies of the first and the last token, as published.
 * logits (B, T), labels (B) i64   ->   rank 0. [scope; SHAPE, INDEX, DTYPE] */
wg_tensor *wg__answer_loss(wg_tensor *start, wg_tensor *end, wg_tensor *starts, wg_tensor *ends);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
char *wg__headed_encoder_config(const wg__headed_encoder *model);

/* The labels of a published configuration: id2label, else LABEL_0, LABEL_1... up to num_labels,
 * by default two. *labels is {0} after an error. [FORMAT, also for a
 * problem_type without labels; MEMORY] */
int wg__labels_of_config(const char *json, wg__labels *labels);

/* Reads a fine-tuned model, whose module is a wg__headed_encoder, and its tokenizer. After an error
 * they are {0} and NULL. [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of something else] */
int wg__headed_encoder_load(const char *path, wg__head_kind kind, wg_model *model,
                            wg_tokenizer **tokenizer);

/* The source of the encoder of a new fine-tuned model. */
typedef struct wg__head_origin {
    const char *path; /* a checkpoint of any encoder: pretrained, converted or fine-tuned already */
    uint64_t seed;    /* of new parameters, and of dropout */

    /* Receives a message that names the tensors that begin anew; NULL: no messages. */
    void (*note)(const char *message, void *context);
    void *context;
} wg__head_origin;

/* Makes a model with the encoder and the tokenizer of a checkpoint, for labels, which are NULL for
 * kinds without. Its head is the checkpoint's if that is of the same kind and labels, else new; so
 * is a pooler that is missing. They are {0} and NULL after an error. [as above; NOT_FOUND if the
 * encoder is not whole] */
int wg__headed_encoder_adapt(const wg__head_origin *origin, wg__head_kind kind,
                             const wg__labels *labels, wg_model *model, wg_tokenizer **tokenizer);

#endif
