/* The configurations of BERT's heads: the published keys architectures, problem_type, id2label and
 * label2id beside those of the encoder. Jansson's lists and objects have no place in wg_config. */
#include "models/bert_heads_config.h"

#include <stdio.h>
#include <string.h>

#include "io/config.h"
#include "base/json.h"
#include "tensor/internal.h"

#define WHERE "config.json"

static const char problem[] = "single_label_classification";
static const char classifier[] = "BertForSequenceClassification";
static const char answerer[] = "BertForQuestionAnswering";

/* ---- Reading ---- */

/* The name that id2label has for a number; NULL if there is none. */
static const char *name_of(const json_t *names, int64_t number) {
    char key[24];
    snprintf(key, sizeof key, "%lld", (long long)number);
    return json_string_value(json_object_get(names, key));
}

static int add_label(wg_labels *labels, const char *name) {
    const int64_t before = labels->count;
    const int64_t number = wg_labels_add(labels, name);
    if (number < 0 || number == before)
        return number < 0 ? -1 : 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE, "id2label has \"%s\" twice", name);
}

static int read_names(const json_t *names, wg_labels *labels) {
    const int64_t count = (int64_t)json_object_size(names);
    for (int64_t i = 0; i < count; i++) {
        const char *name = name_of(names, i);
        if (!name)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "id2label has %lld labels, and none for \"%lld\"", (long long)count,
                           (long long)i);
        if (add_label(labels, name) < 0)
            return -1;
    }
    return 0;
}

static int number_names(const json_t *count, wg_labels *labels) {
    const int64_t names = json_is_integer(count) ? json_integer_value(count) : 2;
    for (int64_t i = 0; i < names; i++) {
        char name[32];
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        if (add_label(labels, name) < 0)
            return -1;
    }
    return 0;
}

static int read_labels(const json_t *config, wg_labels *labels) {
    const char *type = json_string_value(json_object_get(config, "problem_type"));
    if (type && strcmp(type, problem) != 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "problem_type is \"%s\"; only \"%s\" is known", type,
                       problem);
    const json_t *names = json_object_get(config, "id2label");
    return json_is_object(names) ? read_names(names, labels)
                                 : number_names(json_object_get(config, "num_labels"), labels);
}

int wg_bert_config_labels(const char *json, wg_labels *labels) {
    *labels = (wg_labels){0};
    json_t *config = json_loads(json, 0, NULL);
    int status = config ? read_labels(config, labels)
                        : wg_fail(WG_ERROR_FORMAT, WHERE, "it is not a JSON object");
    json_decref(config);
    if (status < 0)
        wg_labels_free(labels);
    return status;
}

wg__bert_head wg__bert_config_head(const char *json) {
    json_t *config = json_loads(json, 0, NULL);
    const json_t *names = json_object_get(config, "architectures");
    const char *name = json_string_value(json_array_get(names, 0));
    const wg__bert_head head = name && strcmp(name, classifier) == 0 ? WG__BERT_LABELS
                               : name && strcmp(name, answerer) == 0 ? WG__BERT_ANSWERS
                                                                     : WG__BERT_PRETRAINING;
    json_decref(config);
    return head;
}

/* Null, as published files have it, counts as left out. */
int wg__bert_config_classifier_dropout(const char *json, double *dropout) {
    wg_config *config = wg_config_parse(json, WHERE);
    const int status = config ? wg_config_number(config, "classifier_dropout", dropout) : -1;
    wg_config_free(config);
    return status;
}

/* ---- Writing ---- */

/* The encoder's configuration as an object that names its architecture. */
static json_t *begin(const wg_bert_config *encoder, const char *architecture) {
    char *text = wg_bert_config_to_json(encoder);
    json_t *config = text ? json_loads(text, 0, NULL) : NULL;
    wg_text_free(text);
    if (!config ||
        wg__json_set(config, "architectures", json_pack("[s]", architecture), WHERE) < 0) {
        json_decref(config);
        return NULL;
    }
    return config;
}

static char *finish(json_t *config) {
    char *text =
        config && !wg_error_pending() ? wg__json_text(config, "{\n  ", ",\n  ", "\n}\n") : NULL;
    if (!config && !wg_error_pending())
        wg_fail(WG_ERROR_MEMORY, WHERE, "no memory to write it");
    json_decref(config);
    return text;
}

static int set_labels(json_t *config, const wg_labels *labels) {
    json_t *names = json_object(), *numbers = json_object();
    for (int64_t i = 0; i < labels->count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)i);
        json_object_set_new(names, key, json_string(labels->names[i]));
        json_object_set_new(numbers, labels->names[i], json_integer(i));
    }
    const int status = wg__json_set(config, "id2label", names, WHERE);
    return wg__json_set(config, "label2id", numbers, WHERE) < 0 ? -1 : status;
}

char *wg__bert_labels_config(const wg_bert_config *encoder, const wg_labels *labels,
                             double dropout) {
    json_t *config = begin(encoder, classifier);
    if (config && dropout != encoder->hidden_dropout_prob)
        wg__json_set(config, "classifier_dropout", json_real(dropout), WHERE);
    if (config && wg__json_set(config, "problem_type", json_string(problem), WHERE) == 0)
        set_labels(config, labels);
    return finish(config);
}

char *wg__bert_answers_config(const wg_bert_config *encoder) {
    return finish(begin(encoder, answerer));
}

char *wg_bert_for_sequence_classification_config(const wg_bert_for_sequence_classification *model) {
    return wg__bert_labels_config(&model->bert->config, &model->labels, model->dropout);
}

char *wg_bert_for_question_answering_config(const wg_bert_for_question_answering *model) {
    return wg__bert_answers_config(&model->bert->config);
}
