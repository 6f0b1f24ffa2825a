/* Answering questions by a fine-tuned BERT, as `wengert finetune' and `eval' know it. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/finetuning.h"
#include "cli/results.h"
#include "cli/settings.h"
#include "objectives/question_answering.h"

/* ---- Fine-tuning ---- */

typedef struct parts {
    wg_squad *training, *held_out;
    wg_bert_for_question_answering *model;
    wg_question_answering *answering;
} parts;

static int create(wg__training *t) {
    wg_bert_origin origin;
    return wg__finetuning_origin(t, &origin) < 0
               ? -1
               : wg_bert_for_question_answering_begin(&origin, &((parts *)t->parts)->model,
                                                      &t->tokenizer);
}

static int load(wg__training *t, const char *path) {
    return wg_bert_for_question_answering_load(path, &((parts *)t->parts)->model, &t->tokenizer);
}

static int pose(wg__training *t) {
    parts *mine = t->parts;
    const wg_squad_options reading = {.sequence = wg__setting_integer(t->settings, "seq")};
    const wg_question_answering_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
    };
    mine->training = wg_squad_load(wg__setting_text(t->settings, "train"), t->tokenizer, &reading);
    if (mine->training)
        mine->held_out =
            wg_squad_load(wg__setting_text(t->settings, "eval"), t->tokenizer, &reading);
    if (mine->held_out)
        mine->answering = wg_question_answering_new(mine->model, t->tokenizer, mine->training,
                                                    mine->held_out, &options);
    if (!mine->answering)
        return -1;
    t->task = wg_question_answering_task(mine->answering);
    t->vocabulary = mine->model->bert->config.vocab_size;
    t->examples = wg_squad_windows(mine->training);
    return 0;
}

static int pose_measuring(wg__training *t, const wg__measuring *m) {
    parts *mine = t->parts;
    const wg_squad_options reading = {
        .sequence =
            wg__sequence_of(m->sequence, 384, mine->model->bert->config.max_position_embeddings)};
    const wg_question_answering_options options = {.batch = m->batch};
    const char *path = wg__finetuning_file(m);
    mine->held_out = path ? wg_squad_load(path, t->tokenizer, &reading) : NULL;
    if (mine->held_out)
        mine->answering =
            wg_question_answering_new(mine->model, t->tokenizer, NULL, mine->held_out, &options);
    return mine->answering ? 0 : -1;
}

static wg_module *module_of(void *all) {
    return &((parts *)all)->model->module;
}

static void clear(void *all) {
    parts *mine = all;
    wg_question_answering_free(mine->answering);
    if (mine->model)
        wg_module_free(&mine->model->module);
    wg_squad_free(mine->training);
    wg_squad_free(mine->held_out);
}

static void describe(const wg__training *t) {
    const parts *mine = t->parts;
    fprintf(stderr, "text   %lld questions in %lld windows; %lld questions to measure on\n",
            (long long)wg_squad_questions(mine->training),
            (long long)wg_squad_windows(mine->training),
            (long long)wg_squad_questions(mine->held_out));
}

static int evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_question_answering_evaluate(((parts *)t->parts)->answering, metrics, NULL);
}

/* ---- Measuring ---- */

/* {"ID": "TEXT", ...}, as the official script reads it. */
static int write_predictions(const char *path, const wg_squad *squad,
                             const wg_answer_span *answers) {
    json_t *object = json_object();
    for (int64_t q = 0; q < wg_squad_questions(squad); q++) {
        char *text = answers[q].first < 0
                         ? NULL
                         : wg_squad_text(squad, q, answers[q].first, answers[q].last);
        json_object_set_new(object, wg_squad_id(squad, q), json_string(text ? text : ""));
        wg_text_free(text);
    }
    FILE *file = wg_error_pending() ? NULL : wg__results_open(path);
    if (file)
        json_dumpf(object, file, JSON_INDENT(2));
    json_decref(object);
    return file ? wg__results_close(file, path) : -1;
}

static int measure(const wg__training *t, const wg__measuring *m, wg_metrics *metrics) {
    const parts *mine = t->parts;
    wg_answer_span *answers = calloc((size_t)wg_squad_questions(mine->held_out), sizeof *answers);
    int status = answers ? wg_question_answering_evaluate(mine->answering, metrics, answers)
                         : wg_fail(WG_ERROR_MEMORY, "eval", "no memory for answers");
    if (status == 0 && m->predictions)
        status = write_predictions(m->predictions, mine->held_out, answers);
    free(answers);
    return status;
}

/* ---- Results ---- */

static void print(const wg_metrics *metrics) {
    printf("answers          exact match %.2f %%, F1 %.2f %% of %.0f questions\n",
           wg_metrics_get(metrics, "exact_match"), wg_metrics_get(metrics, "f1"),
           wg_metrics_weight(metrics, "f1"));
    printf("windows          loss %.4f of %.0f\n", wg_metrics_get(metrics, "loss"),
           wg_metrics_weight(metrics, "loss"));
}

static json_t *results(const wg_metrics *metrics) {
    static const char *const means[] = {"exact_match", "f1", "loss", NULL};
    return wg__json_metrics(metrics, means, "f1", "questions");
}

const wg__model_kind wg__squad_task = {
    .name = "squad",
    .type = "bert",
    .mark = "/model/qa_outputs/weight",
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"seq\": 384, \"schedule\": \"linear\", "
                "\"weight-decay\": 0.01, \"eval-every\": 500}",
    .parts_size = sizeof(parts),
    .create = create,
    .load = load,
    .pose = pose,
    .pose_measuring = pose_measuring,
    .module = module_of,
    .clear = clear,
    .describe = describe,
    .evaluate = evaluate,
    .measure = measure,
    .print = print,
    .results = results,
};
