/* The configurations of BERT's heads, without a model of them. */
#ifndef WG_MODELS_BERT_HEADS_CONFIG_H
#define WG_MODELS_BERT_HEADS_CONFIG_H

#include "models/bert_heads.h"

typedef enum wg__bert_head {
    WG__BERT_PRETRAINING, /* any class that is not told apart */
    WG__BERT_LABELS,      /* BertForSequenceClassification */
    WG__BERT_ANSWERS      /* BertForQuestionAnswering */
} wg__bert_head;

/* The head of the class that "architectures" names first. */
wg__bert_head wg__bert_config_head(const char *json);

/* Reads classifier_dropout; *dropout is left as it is if it is null or not there. [FORMAT] */
int wg__bert_config_classifier_dropout(const char *json, double *dropout);

/* The configurations as JSON text; the caller frees it with wg_text_free. NULL with MEMORY. */
char *wg__bert_labels_config(const wg_bert_config *encoder, const wg_labels *labels,
                             double dropout);
char *wg__bert_answers_config(const wg_bert_config *encoder);

#endif
