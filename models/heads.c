/* Encoders with the heads of fine-tuning: see heads.h.
 *
 * Letters: B sequences, T positions, C the width, K labels. */
#include "models/heads.h"
#include "base/json.h"

#include <string.h>

#include "io/internal.h"
#include "io/weights/weights.h"
#include "models/internal.h"
#include "io/weights/file.h"

#define WHERE "heads"
#define CONFIG "config.json"

/* Each kind of head: whether it has labels, whether it reads the pooled output, and its
 * problem_type in config.json if it classifies sequences. */
static const struct {
    bool has_labels, is_pooled;
    const char *problem;
} kinds[] = {
    [WG_HEAD_LABELS] = {true, true, "single_label_classification"},
    [WG_HEAD_ANSWERS] = {false, false, NULL},
    [WG_HEAD_SCORE] = {false, true, "regression"},
    [WG_HEAD_WORDS] = {true, false, NULL},
    [WG_HEAD_SEVERAL_LABELS] = {true, true, "multi_label_classification"},
};

static const char *head_name(const wg_model_type *type, wg__head_kind kind) {
    if (kinds[kind].is_pooled && type->names.pooled_head)
        return type->names.pooled_head;
    if (kind != WG_HEAD_ANSWERS)
        return "classifier";
    return type->names.answers ? type->names.answers : "qa_outputs";
}

static void headed_encoder_destroy(wg_module *module) {
    wg__headed_encoder *model = (wg__headed_encoder *)module;
    wg__labels_free(&model->labels);
    wg__free(model->config);
    for (int i = 0; i < model->fresh_count; i++)
        wg__free(model->fresh[i]);
}

wg__headed_encoder *wg__headed_encoder_new(const wg_model_type *type, wg__head_kind kind,
                                           const void *config, const wg__labels *labels,
                                           uint64_t seed) {
    if (!type->encoder.make)
        return wg__fail_null(WG_ERROR_STATE, WHERE, "%s is no encoder to hang a head on",
                             type->name);
    if (kinds[kind].has_labels && (!labels || labels->count < 2))
        return wg__fail_null(WG_ERROR_ARGUMENT, WHERE,
                             "%lld labels; a classification has two or more",
                             labels ? (long long)labels->count : 0);
    wg__headed_encoder *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    wg_module *module = &model->module;
    module->destroy = headed_encoder_destroy;
    module->generator = (wg_generator){.seed = seed};
    model->type = type;
    model->kind = kind;
    if ((model->config = wg__alloc(type->settings.size)))
        memcpy(model->config, config, type->settings.size);
    const wg_model_sizes sizes = wg__model_config_sizes(type, config);
    model->dropout = sizes.head_dropout;
    model->encoder = type->encoder.make(module, type->encoder.name, config, kinds[kind].is_pooled);
    const int64_t outputs = kind == WG_HEAD_ANSWERS ? 2 : kind == WG_HEAD_SCORE ? 1 : labels->count;
    model->head = wg_linear_new(module, head_name(type, kind), sizes.width, outputs,
                                &(wg_linear_options){.init = sizes.head_init});
    if (kinds[kind].has_labels)
        wg__labels_copy(&model->labels, labels);
    return wg_module_finish(module);
}

wg_model wg__headed_encoder_model(wg__headed_encoder *model) {
    return (wg_model){.type = model->type, .module = &model->module, .config = model->config};
}

int wg__headed_encoder_forward(wg__headed_encoder *model, const wg_model_inputs *inputs,
                               wg_tensor *outputs[2]) {
    const wg_model_type *type = model->type;
    wg_tensor *x;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (kinds[model->kind].is_pooled) {
        /* The pooled output reads (B, T, C), or (B, 1, C) of the first positions. */
        const bool pools_first = wg__model_config_sizes(type, model->config).pools_first;
        const wg_tensor *words = inputs->ids ? inputs->ids : inputs->embeddings;
        const int64_t sequences = wg_tensor_size(words, 0), length = wg_tensor_size(words, 1);
        wg_model_inputs read = *inputs;
        if (pools_first)
            read.output_positions =
                wg_arange(WG_I64, 0, (double)(sequences * length), (double)length);
        x = type->encoder.forward(model->encoder, &read);
        x = type->encoder.pool(model->encoder, pools_first ? wg_unsqueeze(x, 1) : x, inputs->keep);
    } else {
        x = type->encoder.forward(model->encoder, inputs);
        if (type->encoder.states)
            x = type->encoder.states(model->encoder, x);
    }
    if (model->kind != WG_HEAD_ANSWERS || type->encoder.states)
        x = wg_dropout(&model->module, x, model->dropout);
    x = wg_linear_forward(model->head, x);
    const bool answers = model->kind == WG_HEAD_ANSWERS; /* (B, T, 2) */
    outputs[0] = answers ? wg_select(x, 2, 0) : x;
    outputs[1] = answers ? wg_select(x, 2, 1) : NULL;
    const bool failed = !outputs[0] || wg_error_pending();
    for (int i = 0; i < 2; i++)
        outputs[i] = failed || !outputs[i] ? NULL : wg_scope_escape(outputs[i]);
    wg_scope_end(&scope, NULL);
    return failed ? -1 : 0;
}

wg_tensor *wg__answer_loss(wg_tensor *start, wg_tensor *end, wg_tensor *starts, wg_tensor *ends) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *sum = wg_add(wg_cross_entropy(start, starts, WG_IGNORE_INDEX, NULL),
                            wg_cross_entropy(end, ends, WG_IGNORE_INDEX, NULL));
    return wg_scope_end(&scope, wg_mul_scalar(sum, 0.5));
}

static int add_label(wg__labels *labels, const char *name) {
    const int64_t before = labels->count, number = wg__labels_add(labels, name);
    if (number < 0 || number == before)
        return number < 0 ? -1 : 0;
    return wg_fail(WG_ERROR_FORMAT, CONFIG, "id2label has \"%s\" twice", name);
}

/* A limit: each label takes memory for its name. */
enum { MOST_LABELS = 1 << 20 };

static int number_names(int64_t count, wg__labels *labels) {
    int status = 0;
    for (int64_t i = 0; status == 0 && i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        status = add_label(labels, name);
    }
    return status;
}

static int read_labels(wg_config *config, wg__labels *labels) {
    const char *classification = kinds[WG_HEAD_LABELS].problem;
    const char *several = kinds[WG_HEAD_SEVERAL_LABELS].problem, *type = classification;
    if (wg__config_text(config, "problem_type", &type) < 0)
        return -1;
    if (strcmp(type, classification) != 0 && strcmp(type, several) != 0)
        return wg_fail(WG_ERROR_FORMAT, CONFIG,
                       "problem_type is \"%s\"; only \"%s\" and \"%s\" have labels", type,
                       classification, several);
    const json_t *names = wg__config_value(config, "id2label"); /* {"0": "a", "1": "b"} */
    const int64_t named = (int64_t)json_object_size(names);
    for (int64_t i = 0; i < named; i++) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)i);
        const char *name = json_string_value(json_object_get(names, key));
        if (!name)
            return wg_fail(WG_ERROR_FORMAT, CONFIG, "id2label has %lld labels, and none for \"%s\"",
                           (long long)named, key);
        if (add_label(labels, name) < 0)
            return -1;
    }
    if (json_is_object(names))
        return 0;
    int64_t count = 2;
    if (wg__config_integer(config, "num_labels", &count) < 0)
        return -1;
    return count >= 1 && count <= MOST_LABELS
               ? number_names(count, labels)
               : wg__settings_refuse(CONFIG, "num_labels", (double)count, "from 1 to 2^20");
}

int wg__labels_of_config(const char *json, wg__labels *labels) {
    *labels = (wg__labels){0};
    wg_config *config = wg__config_parse(json, CONFIG);
    const int status = config ? read_labels(config, labels) : -1;
    wg__config_free(config);
    if (status < 0)
        wg__labels_free(labels);
    return status;
}

static const char *architecture_of(const wg_model_type *type, wg__head_kind kind) {
    const wg_model_names *names = &type->names;
    return kind == WG_HEAD_ANSWERS ? names->answerer
           : kind == WG_HEAD_WORDS ? names->word_classifier
                                   : names->classifier;
}

char *wg__headed_encoder_config(const wg__headed_encoder *model) {
    const char *architecture = architecture_of(model->type, model->kind);
    const char *problem = kinds[model->kind].problem;
    char *encoder = wg_model_config_to_json(model->type, model->config);
    wg_config *config = encoder ? wg__config_parse(encoder, CONFIG) : NULL;
    if (config && architecture)
        wg__config_set(config, "architectures", json_pack("[s]", architecture));
    if (config && model->kind != WG_HEAD_ANSWERS) {
        if (model->dropout != wg__model_config_sizes(model->type, model->config).head_dropout)
            wg__config_set_number(config, "classifier_dropout", model->dropout);
        if (problem)
            wg__config_set_text(config, "problem_type", problem);
        /* Other programs give a score one label, LABEL_0. */
        wg__labels one = {0};
        const bool is_score = model->kind == WG_HEAD_SCORE;
        const wg__labels *labels = is_score ? &one : &model->labels;
        if (!is_score || number_names(1, &one) == 0) {
            json_t *names = json_object(), *numbers = json_object();
            for (int64_t i = 0; i < labels->count; i++) {
                char key[24];
                snprintf(key, sizeof key, "%lld", (long long)i);
                wg__json_put(&names, key, json_string(labels->names[i]));
                wg__json_put(&numbers, labels->names[i], json_integer(i));
            }
            wg__config_set(config, "id2label", names);
            wg__config_set(config, "label2id", numbers);
        }
        if (is_score)
            wg__config_set(config, "num_labels", json_integer(1));
        wg__labels_free(&one);
    }
    char *text = config && !wg_error_pending() ? wg__config_to_json(config) : NULL;
    wg__config_free(config);
    wg_text_free(encoder);
    return text;
}

static wg__headed_encoder *make(const wg_model_type *type, wg__head_kind kind, const char *json,
                                const wg__labels *labels, uint64_t seed) {
    void *config = wg__alloc(type->settings.size);
    wg__headed_encoder *model = NULL;
    if (config && wg_model_config_from_json(type, json, config) == 0 &&
        wg__model_check_memory(type, config) == 0)
        model = wg__headed_encoder_new(type, kind, config, labels, seed);
    wg__free(config);
    if (!model)
        return NULL;
    /* classifier_dropout; the null of published files means the default */
    wg_config *object = wg__config_parse(json, CONFIG);
    if (object && wg__config_number(object, "classifier_dropout", &model->dropout) == 0 &&
        !(model->dropout >= 0 && model->dropout < 1))
        wg__settings_refuse(CONFIG, "classifier_dropout", model->dropout, "at least 0 and below 1");
    wg__config_free(object);
    if (!wg_error_pending())
        return model;
    wg_module_free(&model->module);
    return NULL;
}

wg__headed_encoder *wg__headed_encoder_of(const wg_model_type *type, wg__head_kind kind,
                                          const char *json) {
    wg__labels labels = {0};
    if (kinds[kind].has_labels && wg__labels_of_config(json, &labels) < 0)
        return NULL;
    wg__headed_encoder *model = make(type, kind, json, &labels, 0);
    wg__labels_free(&labels);
    return model;
}

/* The kind of a sequence classification: problem_type, or else a regression if it has one label. */
static wg__head_kind kind_of_problem(wg_config *config) {
    const json_t *problem = wg__config_value(config, "problem_type"),
                 *names = wg__config_value(config, "id2label"),
                 *count = wg__config_value(config, "num_labels");
    const char *type = json_string_value(problem);
    for (int kind = 0; type && kind < WG_HEAD_KINDS; kind++)
        if (kinds[kind].problem && strcmp(type, kinds[kind].problem) == 0)
            return (wg__head_kind)kind;
    if (type)
        return WG_HEAD_LABELS;
    const bool one =
        json_is_object(names) ? json_object_size(names) == 1 : json_integer_value(count) == 1;
    return one ? WG_HEAD_SCORE : WG_HEAD_LABELS;
}

int wg__head_of_config(const wg_model_type *type, wg_config *config) {
    const char *name =
        json_string_value(json_array_get(wg__config_value(config, "architectures"), 0));
    /* Compare "ForTokenClassification" of BertForTokenClassification: files of a type's aliases
     * have another name before it. */
    const char *task = name ? strstr(name, "For") : NULL;
    for (int kind = 0; task && kind < WG_HEAD_KINDS; kind++) {
        const char *known = architecture_of(type, (wg__head_kind)kind);
        known = known ? strstr(known, "For") : NULL;
        if (known && strcmp(task, known) == 0)
            return kind == WG_HEAD_LABELS ? (int)kind_of_problem(config) : kind;
    }
    return -1;
}

typedef struct head_loading {
    const char *path;
    wg__head_kind kind;
} head_loading;

static wg_module *make_saved(const char *json, void *context) {
    const head_loading *l = context;
    const wg_model_type *type = wg__model_type_of_config(l->path, json);
    wg__headed_encoder *model = type ? wg__headed_encoder_of(type, l->kind, json) : NULL;
    return model ? &model->module : NULL;
}

int wg__headed_encoder_load(const char *path, wg__head_kind kind, wg_model *model,
                            wg_tokenizer **tokenizer) {
    head_loading l = {path, kind};
    wg_module *module = wg__model_load(path, make_saved, &l, tokenizer);
    *model = module ? wg__headed_encoder_model((wg__headed_encoder *)module) : (wg_model){0};
    return module ? 0 : -1;
}

typedef struct adapting {
    const wg__head_origin *origin;
    wg_weights *file;
    wg__headed_encoder *model;
    wg__differences differences;
    wg__difference fresh; /* names of parameters that are initialized anew */
} adapting;

/* Records a tensor of the encoder that is initialized anew, and its module. */
static void note_fresh(adapting *a, const char *name) {
    wg__headed_encoder *model = a->model;
    wg__note_difference(&a->fresh, name);
    char *path = wg__strdup(name), *dot = path ? strrchr(path, '.') : NULL;
    if (dot)
        *dot = '\0';
    bool known = !dot || model->fresh_count == (int)(sizeof model->fresh / sizeof *model->fresh);
    for (int i = 0; !known && i < model->fresh_count; i++)
        known = strcmp(model->fresh[i], path) == 0;
    if (known)
        wg__free(path);
    else
        model->fresh[model->fresh_count++] = path;
}

/* Fills a part of the model. Its names in the file begin with "PART_NAME.", or have no prefix for
 * "". */
static int fill_part(adapting *a, wg_module *part, const char *part_name) {
    char prefix[64], name[256];
    wg_left_out left_out;
    snprintf(prefix, sizeof prefix, "%s%s", part_name, part_name[0] ? "." : "");
    if (wg__weights_get_module_partial(a->file, prefix, part, &left_out) < 0)
        return -1;
    for (int64_t i = 0; i < left_out.missing_count; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, left_out.missing[i]);
        if (wg__model_may_lack(a->model->type, name))
            note_fresh(a, name);
        else
            wg__note_difference(&a->differences.missing, name);
    }
    for (int64_t i = 0; i < left_out.misshapen_count; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, left_out.misshapen[i]);
        wg__note_difference(&a->differences.misshapen, name);
    }
    wg__left_out_free(&left_out);
    return 0;
}

static bool keeps_head(const adapting *a, const char *head_weight) {
    const wg__headed_encoder *model = a->model;
    const char *json = wg__weights_config(a->file);
    if (wg_weights_find(a->file, head_weight) < 0)
        return false;
    /* Heads of other kinds may have the same name. */
    const bool has_own_name = model->kind == WG_HEAD_ANSWERS && !model->type->names.answers;
    wg_config *config = has_own_name ? NULL : wg__config_parse(json, CONFIG);
    const bool same =
        has_own_name || (config && wg__head_of_config(model->type, config) == (int)model->kind);
    wg__config_free(config);
    wg__labels saved;
    if (!same || !kinds[model->kind].has_labels)
        return same;
    if (wg__labels_of_config(json, &saved) < 0)
        return false;
    const bool equal = wg__labels_equal(&saved, &model->labels);
    wg__labels_free(&saved);
    return equal;
}

static int fill(adapting *a) {
    const char *head = head_name(a->model->type, a->model->kind);
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", head);
    snprintf(bias, sizeof bias, "%s.bias", head);
    if (fill_part(a, a->model->encoder, a->model->type->encoder.name) < 0)
        return -1;
    if (!keeps_head(a, weight)) {
        wg__note_difference(&a->fresh, weight);
        wg__note_difference(&a->fresh, bias);
    } else if (fill_part(a, &a->model->head->module, head) < 0)
        return -1;
    if (wg_error_pending() || wg__check_differences(&a->differences, a->origin->path, WHERE) < 0)
        return -1;
    if (a->fresh.count > 0 && a->origin->note) {
        char text[1024];
        snprintf(text, sizeof text, "not in %s, begun anew: %s", a->origin->path, a->fresh.names);
        a->origin->note(text, a->origin->context);
    }
    return 0;
}

int wg__headed_encoder_adapt(const wg__head_origin *origin, wg__head_kind kind,
                             const wg__labels *labels, wg_model *model, wg_tokenizer **tokenizer) {
    const char *path = origin->path;
    adapting a = {.origin = origin, .file = wg__weights_open_as(path, &wg__weights_hdf5)};
    const char *config = a.file ? wg__weights_config(a.file) : NULL;
    const char *json = a.file ? wg__weights_tokenizer(a.file) : NULL;
    if (!config || !json)
        wg_fail(WG_ERROR_NOT_FOUND, WHERE, "%s has no configuration or no tokenizer", path);
    const wg_model_type *type = config && json ? wg__model_type_of_config(path, config) : NULL;
    *tokenizer = type ? wg_tokenizer_from_json(json) : NULL;
    a.model = *tokenizer ? make(type, kind, config, labels, origin->seed) : NULL;
    const int status = a.model ? fill(&a) : -1;
    if (status < 0) {
        if (a.model)
            wg_module_free(&a.model->module);
        wg_tokenizer_free(*tokenizer);
        a.model = NULL;
        *tokenizer = NULL;
    }
    wg_weights_close(a.file);
    *model = a.model ? wg__headed_encoder_model(a.model) : (wg_model){0};
    return status;
}
