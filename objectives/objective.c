/* The table of objectives, and the code that all trainings share: see objective.h. */
#include "objectives/objective.h"

#include <errno.h>
#include <string.h>

#include "base/internal.h"
#include "base/array.h"
#include "base/system.h"
#include "data/internal.h"
#include "io/checkpoint/checkpoint.h"
#include "io/internal.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

static const wg_objective *const objectives[] = {
    &wg_masked_lm,
    &wg_mlm,
    &wg_hybrid,
    &wg_blank_infilling,
    &wg_causal_lm,
    &wg_span_corruption,
    &wg_translation,
    &wg_classification,
    &wg_multi_label,
    &wg_regression,
    &wg_token_labels,
    &wg_contrastive,
    &wg_question_answering,
    &wg_cloze_objective,
};

/* The name of the objective in a checkpoint that a training wrote. */
#define OBJECTIVE "/objective"

enum { OBJECTIVES = sizeof objectives / sizeof objectives[0] };

const wg_objective *wg_objective_at(int index) {
    return index >= 0 && index < OBJECTIVES ? objectives[index] : NULL;
}

static const char *objective_name(const void *context, int index) {
    (void)context;
    return index < OBJECTIVES ? objectives[index]->name : NULL;
}

const wg_objective *wg_objective_find(const char *name) {
    char names[256], suggestion[96];
    size_t length = 0;
    for (int i = 0; i < OBJECTIVES; i++) {
        if (strcmp(objectives[i]->name, name) == 0)
            return objectives[i];
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                   objectives[i]->name);
    }
    return wg__fail_null(WG_ERROR_NOT_FOUND, "objective", "there is no '%.64s'; %s are there%s",
                         name, names,
                         wg__suggestion(suggestion, sizeof suggestion, name, objective_name, NULL));
}

/* Whether a configuration matches a mark: "KEY", or "KEY=END", END being the end of its text. */
static bool config_has(wg_config *config, const char *mark) {
    char key[64];
    const char *equals = strchr(mark, '=');
    if (!equals)
        return wg__config_has(config, mark);
    snprintf(key, sizeof key, "%.*s", (int)(equals - mark), mark);
    const json_t *value = wg__config_value(config, key);
    const char *text = json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);
    const size_t length = text ? strlen(text) : 0, wanted = strlen(equals + 1);
    return length >= wanted && strcmp(text + length - wanted, equals + 1) == 0;
}

const wg_objective *wg_objective_of(const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    const wg_objective *objective = NULL;
    if (file && wg_checkpoint_has(file, OBJECTIVE)) {
        char *name = wg_checkpoint_get_text(file, OBJECTIVE);
        objective = name ? wg_objective_find(name) : NULL;
        wg_text_free(name);
        wg_checkpoint_close(file);
        return objective;
    }
    if (file && !wg_checkpoint_has(file, "/config") && !wg_error_pending()) {
        if (wg_checkpoint_has(file, "/model"))
            wg_fail(WG_ERROR_STATE, path,
                    "it holds a program's own model, which has no /config and is known to that "
                    "program alone: measure and use it there (docs/training-loops.md); `wengert "
                    "info' and `wengert average' take it");
        else
            wg_fail(WG_ERROR_STATE, path, "it holds no model: it has neither /config nor /model");
    }
    char *json = file && !wg_error_pending() ? wg_checkpoint_get_text(file, "/config") : NULL;
    wg_config *config = json ? wg__config_parse(json, "/config") : NULL;
    for (int i = 0; config && !objective && i < OBJECTIVES; i++)
        for (int m = 0; m < 2 && objectives[i]->marks[m]; m++) {
            const char *mark = objectives[i]->marks[m];
            if (*mark == '/' ? wg_checkpoint_has(file, mark) : config_has(config, mark))
                objective = objective ? objective : objectives[i];
        }
    wg__config_free(config);
    wg_text_free(json);
    wg_checkpoint_close(file);
    if (objective || wg_error_pending())
        return objective;
    const wg_model_type *type = wg_model_type_of(path);
    return type ? wg_objective_find(type->objectives) : NULL;
}

/* ---- Trainings ---- */

int wg__check_vocabulary(const char *where, int64_t tokens, const char *with, int64_t vocabulary) {
    if (tokens <= vocabulary)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where,
                   "the tokenizer has %lld tokens%s; the model's vocabulary holds %lld",
                   (long long)tokens, with, (long long)vocabulary);
}

/* Completes and checks the setup, then makes room for a batch, and the batches of the texts. */
static int begin(wg_training *t) {
    const wg_setting_table *table = &t->objective->settings;
    const wg_objective_data *data = &t->objective->data;
    wg_training_setup *setup = &t->setup;
    if (data->sizes)
        data->sizes(t);
    if (setup->batch == 0)
        setup->batch = data->usual_batch; /* or 0: wg__batch_sizes has the usual number */
    const wg_model_sizes sizes = wg_model_sizes_of(setup->model);
    if (setup->sequence == 0)
        setup->sequence =
            wg__smaller(sizes.positions, data->usual_sequence ? data->usual_sequence : 128);
    if (!(setup->model->type->shape & t->objective->shapes))
        return wg_fail(WG_ERROR_ARGUMENT, t->objective->name,
                       "a %s model is not trained by this objective; --help lists which objective "
                       "trains which models",
                       setup->model->type->name);
    if (wg__batch_sizes(t->objective->name, &setup->batch, NULL) < 0 ||
        wg__check_vocabulary(t->objective->name, wg_tokenizer_size(setup->tokenizer), "",
                             sizes.vocabulary) < 0)
        return -1;
    if (setup->sequence > sizes.positions)
        return wg_fail(WG_ERROR_ARGUMENT, t->objective->name,
                       "a sequence of %lld tokens is too long; the model has %lld positions: give "
                       "--seq %lld, or less",
                       (long long)setup->sequence, (long long)sizes.positions,
                       (long long)sizes.positions);
    if (!setup->options && table->count > 0) {
        t->standard_options = wg__calloc(1, table->size);
        if (!t->standard_options)
            return -1;
        wg__settings_standard(table, t->standard_options);
        setup->options = t->standard_options;
    }
    if (t->objective->training->begin && t->objective->training->begin(t) < 0)
        return -1;
    t->batch = wg__calloc(1, data->batch_size);
    if (!t->batch || !data->batches)
        return t->batch ? 0 : -1;
    if (setup->training) {
        t->fingerprint = wg__dataset_fingerprint(setup->training);
        t->batches = data->batches(setup, setup->training, false);
        if (!t->batches)
            return -1;
    }
    if (setup->held_out)
        t->held_out = data->batches(setup, setup->held_out, true);
    return wg_error_pending() ? -1 : 0;
}

wg_training *wg_training_new(const wg_objective *objective, const wg_training_setup *setup) {
    wg_training *training = wg__calloc(1, sizeof *training);
    if (!training)
        return NULL;
    *training = (wg_training){.objective = objective, .setup = *setup, .model = *setup->model};
    training->setup.model = &training->model;
    if (begin(training) == 0)
        return training;
    wg_training_free(training);
    return NULL;
}

void wg_training_free(wg_training *training) {
    if (!training)
        return;
    wg_batches_free(training->batches);
    wg_batches_free(training->held_out);
    if (training->objective->training->end)
        training->objective->training->end(training);
    else
        wg__free(training->context);
    wg__free(training->batch);
    if (training->standard_options)
        wg__settings_clear(&training->objective->settings, training->standard_options);
    wg__free(training->standard_options);
    wg__free(training);
}

/* ---- The task ---- */

/* Settings that change in the course of a run change between steps, not between the batches of a
 * step. */
static void task_begin_step(void *context) {
    wg_training *t = context;
    const wg_data_position at = wg__batches_position(t->batches);
    t->step_examples = at.epoch * wg__batches_examples(t->batches) + at.next;
    if (t->objective->training->begin_step)
        t->objective->training->begin_step(t);
}

static wg_tensor *task_loss(void *context, wg_metrics *metrics) {
    wg_training *t = context;
    if (wg_batches_next(t->batches, t->batch) < 0)
        return NULL;
    metrics->tokens += *(const int64_t *)((char *)t->batch + t->objective->data.batch_tokens);
    return t->objective->training->loss(t, t->batch, metrics);
}

static int task_weigh(void *context, wg_loss_part *parts) {
    wg_training *t = context;
    if (wg_batches_next(t->batches, t->batch) < 0)
        return -1;
    t->objective->training->weigh(t, t->batch, parts);
    return 0;
}

static int task_evaluate(void *context, wg_metrics *metrics) {
    wg_training *t = context;
    return t->objective->training->evaluate(t, t->setup.evaluation_batches, metrics);
}

static int evaluate_all(void *context, wg_metrics *metrics) {
    return ((wg_training *)context)->objective->training->evaluate(context, 0, metrics);
}

char *wg__training_config(const wg_training *training) {
    return training->objective->training->config ? training->objective->training->config(training)
                                                 : wg_model_config_json(training->setup.model);
}

static int task_save(void *context, wg_checkpoint *file) {
    const wg_training *training = context;
    char *config = wg__training_config(training);
    char *tokenizer = config ? wg_tokenizer_to_json(training->setup.tokenizer) : NULL;
    const bool saved = tokenizer && wg_checkpoint_put_text(file, "/config", config) == 0 &&
                       wg_checkpoint_put_text(file, OBJECTIVE, training->objective->name) == 0 &&
                       wg_checkpoint_put_text(file, "/tokenizer", tokenizer) == 0;
    wg_text_free(config);
    wg_text_free(tokenizer);
    return saved ? wg_batches_save(training->batches, file, training->fingerprint) : -1;
}

static int task_restore(void *context, wg_checkpoint *file) {
    const wg_training *training = context;
    if (training->objective->training->config) {
        char *mine = wg__training_config(training);
        char *saved = wg_checkpoint_get_text(file, "/config");
        const bool read = mine && saved, same = read && strcmp(mine, saved) == 0;
        wg_text_free(mine);
        wg_text_free(saved);
        if (!same)
            return read ? wg_fail(WG_ERROR_STATE, training->objective->name,
                                  "the model, the labels, the pattern or the verbalizers are not "
                                  "those that the run was begun with")
                        : -1;
    }
    return wg__batches_restore(training->batches, file, training->fingerprint,
                               training->objective->name, "the corpus or its tokens");
}

/* Frees the text. */
static int agree_on_text(wg_group *group, const char *what, char *text) {
    char fingerprint[32];
    if (!text)
        return -1;
    snprintf(fingerprint, sizeof fingerprint, "fingerprint %016llx",
             (unsigned long long)wg__hash(WG__HASH_BEGIN, text, strlen(text)));
    wg_text_free(text);
    return wg__group_agree(group, what, fingerprint);
}

static int agree_on_data(wg_group *group, const char *what, const wg_dataset *text,
                         int64_t fingerprint) {
    char described[96];
    snprintf(described, sizeof described, "%lld tokens, fingerprint %016llx",
             (long long)wg_dataset_tokens(text), (unsigned long long)fingerprint);
    return wg__group_agree(group, what, described);
}

/* Checks that the objective, the vocabulary, the texts and the configuration are the same on all
 * ranks. */
static int task_agree(void *context, wg_group *group) {
    const wg_training *training = context;
    const wg_training_setup *setup = &training->setup;
    const int64_t held_out = wg__dataset_fingerprint(setup->held_out); /* 0 for NULL */
    char sizes[128];
    snprintf(sizes, sizeof sizes, "%s, batches of %lld sequences of %lld tokens, seed %llu",
             training->objective->name, (long long)setup->batch, (long long)setup->sequence,
             (unsigned long long)setup->seed);
    return wg__group_agree(group, "the objective", sizes) < 0 ||
                   agree_on_text(group, "the vocabulary", wg_tokenizer_to_json(setup->tokenizer)) <
                       0 ||
                   agree_on_data(group, "the corpus", setup->training, training->fingerprint) < 0 ||
                   agree_on_data(group, "the held-out text", setup->held_out, held_out) < 0
               ? -1
               : agree_on_text(group, "the configuration", wg__training_config(training));
}

wg_task wg_training_task(wg_training *training) {
    const wg_training_setup *setup = &training->setup;
    return (wg_task){
        .context = training,
        .module = training->setup.model->module,
        .loss = task_loss,
        .weigh = training->objective->training->weigh ? task_weigh : NULL,
        .begin_step = task_begin_step,
        .evaluate = setup->held_out || setup->held_out_path ? task_evaluate : NULL,
        .shares_evaluation = training->setup.group != NULL,
        .save = task_save,
        .restore = task_restore,
        .batches = training->batches,
        .agree = task_agree,
    };
}

int wg_training_evaluate(wg_training *training, wg_metrics *metrics) {
    if (!training->setup.held_out && !training->setup.held_out_path)
        return wg_fail(WG_ERROR_STATE, training->objective->name,
                       "there is no held-out text to measure the model on");
    const wg_task task = {
        .context = training, .module = training->setup.model->module, .evaluate = evaluate_all};
    return wg__task_evaluate(&task, metrics);
}

void wg_filled_clear(wg_filled *filled) {
    for (int64_t i = 0; i < filled->blank_count; i++) {
        wg_filled_blank *blank = &filled->blanks[i];
        for (int64_t c = 0; c < blank->candidate_count; c++)
            wg__free(blank->candidates[c].text);
        wg__free(blank->candidates);
        wg__free(blank->name);
        wg__free(blank->text);
    }
    wg__free(filled->blanks);
    wg__free(filled->text);
    *filled = (wg_filled){0};
}

/* ---- Sequences, evaluations and files of predictions of all objectives ---- */

int64_t wg__sequence_parts(const wg_training *t) {
    if (t->ramp_examples == 0 || !t->objective->data.cuts_sequences)
        return 1;
    const double done = (double)t->step_examples / (double)t->ramp_examples;
    return done < 0.5 ? 4 : done < 1 ? 2 : 1;
}

wg_tensor *wg__cut_sequences(wg_tensor *x, int64_t parts) {
    return !x || parts == 1
               ? x
               : wg_reshape(x, WG_DIMS(wg_tensor_size(x, 0) * parts, wg_tensor_size(x, 1) / parts));
}

int wg__evaluate_examples(const wg_training *t, int status, int64_t count,
                          wg__evaluate_part *evaluate, void *context, wg_metrics *metrics) {
    wg_group *group = t->setup.group;
    const int64_t batch = t->setup.batch;
    for (int64_t first = 0; status == 0 && first < count; first += batch) {
        if (first / batch % wg_group_size(group) != wg_group_rank(group))
            continue;
        wg_scope scope;
        wg_scope_begin(&scope);
        status = evaluate(t, first, wg__smaller(batch, count - first), context, metrics);
        wg_scope_end(&scope, NULL);
        if (wg_error_pending())
            status = -1;
    }
    return wg_group_check(group, status) < 0 ? -1 : wg__metrics_sum(group, metrics);
}

int wg__share_results(const wg_training *t, int64_t count, int64_t batch, size_t size, void *data) {
    wg_group *group = t->setup.group;
    if (wg_group_size(group) == 1)
        return 0;
    int *owners = wg__alloc_array(count + 1, sizeof *owners);
    for (int64_t i = 0; owners && i < count; i++)
        owners[i] = (int)(i / batch % wg_group_size(group));
    int status = wg_group_check(group, owners ? 0 : -1);
    if (status == 0)
        status = wg__group_collect(group, count, size, owners, data);
    wg__free(owners);
    return status;
}

bool wg__writes_predictions(const wg_training *t, int64_t batches) {
    const wg_evaluation_options *how = t->setup.evaluation;
    return batches == 0 && how && how->predictions && wg_group_rank(t->setup.group) == 0;
}

int wg__evaluate_batches(wg_training *t, int64_t batches, bool ends_with_text,
                         int (*measure)(wg_training *t, const void *batch, wg_metrics *metrics),
                         wg_metrics *metrics) {
    wg_group *group = t->setup.group;
    int status = wg__batches_seek(t->held_out, &(wg_data_position){.seed = t->setup.seed});
    const int64_t all = wg__batches_in_epoch(t->held_out);
    const int64_t count = batches > 0 && batches < all ? batches : all;
    for (int64_t i = 0; status == 0 && i < count; i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        if (i % wg_group_size(group) != wg_group_rank(group))
            status = wg__batches_advance(t->held_out, true, NULL);
        else if (wg__batches_advance(t->held_out, ends_with_text, t->batch) < 0)
            status = -1;
        else {
            metrics->tokens +=
                *(const int64_t *)((char *)t->batch + t->objective->data.batch_tokens);
            status = measure(t, t->batch, metrics);
        }
        wg_scope_end(&scope, NULL);
        if (wg_error_pending())
            status = -1;
    }
    return wg_group_check(group, status) < 0 ? -1 : wg__metrics_sum(group, metrics);
}

void wg__describe_text(const wg_training *training, FILE *stream) {
    const wg_dataset *text = training->setup.training, *held_out = training->setup.held_out;
    const long long documents = wg__dataset_documents(text), tokens = wg_dataset_tokens(text);
    if (training->objective->data.text == WG_TEXT_SENTENCES)
        fprintf(stream,
                "text   %lld documents, %lld sentences, %lld tokens; %lld documents held out\n",
                documents, (long long)wg__dataset_sentences(text), tokens,
                (long long)wg__dataset_documents(held_out));
    else
        fprintf(stream, "text   %lld documents, %lld bytes, %lld tokens; %lld tokens held out\n",
                documents, (long long)wg__dataset_bytes(text), tokens,
                (long long)wg_dataset_tokens(held_out));
}

FILE *wg__predictions_open(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        wg_fail(WG_ERROR_IO, "results", "cannot write %s: %s", path, strerror(errno));
    return file;
}

int wg__predictions_close(FILE *file, const char *path) {
    const bool written = fflush(file) == 0 && !ferror(file);
    const int reason = errno;
    const bool closed = fclose(file) == 0;
    if (written && closed)
        return 0;
    return wg_fail(WG_ERROR_IO, "results", "cannot write %s: %s", path,
                   strerror(written ? errno : reason));
}

int wg__write_numbers(const char *path, const char *format, int64_t count, const double *numbers) {
    FILE *file = wg__predictions_open(path);
    void *before = wg__begin_plain_numbers();
    for (int64_t i = 0; file && i < count; i++)
        fprintf(file, format, numbers[i]);
    wg__end_plain_numbers(before);
    return file ? wg__predictions_close(file, path) : -1;
}
