/* Question answering: the first and the last token of an answer in a text, by an encoder with a
 * head (Rajpurkar et al. 2016; Devlin et al. 2019, section 4.2; run_squad.py).
 *
 *     SQuAD file --> windows, shuffled --> encoder, qa_outputs --> cross-entropy of both ends
 *
 * Metric of a step, beside its loss: `right`, the share of windows whose two ends are both right.
 * Of an evaluation: `exact_match` and `f1`, in percent, the best over the answers of each question,
 * as the official script counts them, and the `loss` of windows. */
#include <jansson.h>

#include "base/json.h"
#include "data/dataset/squad.h"
#include "data/score/score.h"
#include "models/heads.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "squad"

enum { BEST = 20, LONGEST_ANSWER = 30 };

/* Tokens of a context, as wg__squad_text takes them; first -1: there is no answer. An answer has at
 * most LONGEST_ANSWER tokens, begins with one of the BEST likeliest first tokens of a window, in
 * the window that has most context around it, and ends with one of the BEST likeliest last ones. */
typedef struct answer_span {
    int64_t first, last;
    double score; /* logit of the first and of the last */
} answer_span;

typedef struct answering {
    wg__squad *training, *held_out;
    wg_pair_frame frame;
    int64_t *chosen; /* (B) the windows of a batch */
} answering;

/* ---- The model ---- */

static wg__headed_encoder *answerer_of(const wg_model *model) {
    return (wg__headed_encoder *)model->module;
}

static int adapt(const wg_training_setup *setup, void (*note)(const char *message, void *context),
                 void *note_context, wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    return wg__headed_encoder_adapt(&origin, WG_HEAD_ANSWERS, NULL, model, tokenizer);
}

static int load(const char *path, wg_model *model, wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, WG_HEAD_ANSWERS, model, tokenizer);
}

static char *config(const wg_training *t) {
    return wg__headed_encoder_config(answerer_of(t->setup.model));
}

/* Logits of the answers' first and last tokens. Padding gets -1e9, so that it adds nothing to the
 * softmax: the same window has the same loss in any batch. */
static int answer(const wg_training *t, const wg__squad_batch *batch, wg_tensor **start,
                  wg_tensor **end) {
    const double never = -1e9;
    const wg_model_inputs inputs = wg__pair_inputs(&batch->inputs);
    if (wg__headed_encoder_answer(answerer_of(t->setup.model), &inputs, start, end) < 0)
        return -1;
    wg_tensor *padding = wg_logical_not(inputs.keep);
    *start = wg_masked_fill(*start, padding, never);
    *end = wg_masked_fill(*end, padding, never);
    return wg_error_pending() ? -1 : 0;
}

/* ---- Training ---- */

static int begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    const wg__squad_options reading = {.sequence = setup->sequence};
    answering *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine || wg_pair_frame_of(setup->tokenizer, setup->sequence, &mine->frame) < 0)
        return -1;
    mine->chosen = wg__alloc_array(setup->batch, sizeof *mine->chosen);
    if (setup->training_path)
        mine->training = wg__squad_load(setup->training_path, setup->tokenizer, &reading);
    if (setup->held_out_path && (mine->training || !setup->training_path))
        mine->held_out = wg__squad_load(setup->held_out_path, setup->tokenizer, &reading);
    if (wg_error_pending())
        return -1;
    if (!mine->training)
        return 0;
    t->fingerprint = (int64_t)wg__squad_fingerprint(mine->training);
    t->examples = wg__squad_windows(mine->training);
    return wg__begin_numbered_batches(t);
}

static void end(wg_training *t) {
    answering *mine = t->context;
    if (!mine)
        return;
    wg__squad_free(mine->training);
    wg__squad_free(mine->held_out);
    wg__free(mine->chosen);
    wg__free(mine);
}

static wg_tensor *both_right(const wg__squad_batch *batch, wg_tensor *start, wg_tensor *end) {
    return wg_logical_and(wg_eq(wg_argmax(start, 1, false), batch->starts),
                          wg_eq(wg_argmax(end, 1, false), batch->ends));
}

static wg_tensor *next_loss(void *training, wg_metrics *metrics) {
    wg_training *t = training;
    const answering *mine = t->context;
    const int64_t count = t->setup.batch;
    wg__squad_batch batch;
    wg_tensor *start, *end;
    if (wg_batches_next(t->batches, mine->chosen) < 0 ||
        wg__squad_batch_read(mine->training, &mine->frame, count, mine->chosen, &batch) < 0 ||
        answer(t, &batch, &start, &end) < 0)
        return NULL;
    wg_tensor *right = wg_cast(both_right(&batch, start, end), WG_F64);
    const double share = wg_item(wg_mean(right, WG_ALL, false));
    metrics->tokens += batch.inputs.tokens;
    if (wg_metrics_add(metrics, "right", share, (double)count) < 0)
        return NULL;
    return wg__answer_loss(start, end, batch.starts, batch.ends);
}

/* ---- Answers ---- */

/* The indices of the BEST largest of `count` numbers, largest first, the first of equal ones first.
 * Returns how many there are. */
static int64_t find_best(const float *values, int64_t count, int64_t *best) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = found < BEST ? found++ : BEST;
        for (; at > 0 && values[best[at - 1]] < values[i]; at--)
            if (at < BEST)
                best[at] = best[at - 1];
        if (at < BEST)
            best[at] = i;
    }
    return found;
}

/* Finds the best answer of a window; first -1 if there is none. */
static void search_window(const wg__squad *held_out, int64_t index, const float *start,
                          const float *end, int64_t length, answer_span *answer) {
    const wg__squad_window w = wg__squad_window_at(held_out, index);
    *answer = (answer_span){.first = -1, .last = -1};
    int64_t starts[BEST] = {0}, ends[BEST] = {0};
    const int64_t start_count = find_best(start, length, starts),
                  end_count = find_best(end, length, ends);
    for (int64_t i = 0; i < start_count; i++) {
        const int64_t first = starts[i] - w.offset;
        if (first < 0 || first >= w.count ||
            !wg__squad_is_best_window(held_out, index, w.first + first))
            continue;
        for (int64_t j = 0; j < end_count; j++) {
            const int64_t last = ends[j] - w.offset;
            const double score = (double)start[starts[i]] + (double)end[ends[j]];
            if (last < first || last >= w.count || last - first + 1 > LONGEST_ANSWER ||
                (answer->first >= 0 && score <= answer->score))
                continue;
            *answer = (answer_span){w.first + first, w.first + last, score};
        }
    }
}

/* Finds the answers of the windows from number `first` on. */
static int evaluate_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                          wg_metrics *metrics) {
    answer_span *answers = context;
    const answering *mine = t->context;
    wg__squad_batch batch;
    wg_tensor *start, *end;
    for (int64_t i = 0; i < count; i++)
        mine->chosen[i] = first + i;
    if (wg__squad_batch_read(mine->held_out, &mine->frame, count, mine->chosen, &batch) < 0 ||
        answer(t, &batch, &start, &end) < 0)
        return -1;
    const double loss = wg_item(wg__answer_loss(start, end, batch.starts, batch.ends));
    start = wg_contiguous(wg_cast(start, WG_F32));
    end = wg_contiguous(wg_cast(end, WG_F32));
    if (!start || !end || wg_error_pending())
        return -1;
    const int64_t length = wg_tensor_size(start, 1);
    const float *starts = wg_tensor_data(start), *ends = wg_tensor_data(end);
    for (int64_t i = 0; i < count; i++)
        search_window(mine->held_out, first + i, starts + i * length, ends + i * length, length,
                      &answers[first + i]);
    metrics->tokens += batch.inputs.tokens;
    return wg_metrics_add(metrics, "loss", loss, (double)count);
}

/* ---- Scores ---- */

/* The best scores of an answer over all that were wanted. */
static int score_question(const wg__squad *squad, int64_t question, const answer_span *answer,
                          bool chinese, double *exact, double *f1) {
    *exact = *f1 = 0;
    if (answer->first < 0)
        return 0;
    char *text = wg__squad_text(squad, question, answer->first, answer->last);
    int status = text ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < wg__squad_answers(squad, question); i++) {
        double is_exact, overlap;
        const char *wanted = wg__squad_answer(squad, question, i);
        status = chinese ? wg__squad_score_mixed(text, wanted, &is_exact, &overlap)
                         : wg__squad_score(text, wanted, &is_exact, &overlap);
        if (status == 0) {
            *exact = is_exact > *exact ? is_exact : *exact;
            *f1 = overlap > *f1 ? overlap : *f1;
        }
    }
    wg_text_free(text);
    return status;
}

/* Whether the wanted answers of a file are Chinese. */
static bool is_chinese(const wg__squad *squad) {
    bool chinese = false;
    int64_t ideographs = 0, letters = 0;
    for (int64_t q = 0; q < wg__squad_questions(squad); q++)
        for (int64_t i = 0; i < wg__squad_answers(squad, q); i++)
            chinese = wg__squad_is_chinese(wg__squad_answer(squad, q, i), &ideographs, &letters);
    return chinese;
}

static int score(const wg__squad *squad, const answer_span *answers, wg_metrics *metrics) {
    const bool chinese = is_chinese(squad);
    if (chinese && wg_metrics_add(metrics, "by_character", 1, 1) < 0)
        return -1;
    for (int64_t q = 0; q < wg__squad_questions(squad); q++) {
        double exact, f1;
        if (score_question(squad, q, &answers[q], chinese, &exact, &f1) < 0 ||
            wg_metrics_add(metrics, "exact_match", 100 * exact, 1) < 0 ||
            wg_metrics_add(metrics, "f1", 100 * f1, 1) < 0)
            return -1;
    }
    return 0;
}

/* The best answer of each question, of the windows that have it the first of equal ones. */
static void choose_answers(const wg__squad *held_out, const answer_span *found,
                           answer_span *answers) {
    for (int64_t q = 0; q < wg__squad_questions(held_out); q++)
        answers[q] = (answer_span){.first = -1, .last = -1};
    for (int64_t i = 0; i < wg__squad_windows(held_out); i++) {
        answer_span *best = &answers[wg__squad_window_at(held_out, i).question];
        if (found[i].first >= 0 && (best->first < 0 || found[i].score > best->score))
            *best = found[i];
    }
}

static int find_answers(const wg_training *t, answer_span *answers, wg_metrics *metrics) {
    const answering *mine = t->context;
    const int64_t windows = wg__squad_windows(mine->held_out);
    answer_span *found = wg__alloc_array(windows, sizeof *found);
    int status = answers && found ? 0 : -1;
    status = wg__evaluate_examples(t, status, windows, evaluate_batch, found, metrics);
    if (status == 0)
        status = wg__share_results(t, windows, t->setup.batch, sizeof *found, found);
    if (status == 0) {
        choose_answers(mine->held_out, found, answers);
        status = score(mine->held_out, answers, metrics);
    }
    wg__free(found);
    return status;
}

/* {"ID": "TEXT", ...}, as the official script reads it. */
static int write_predictions(const char *path, const wg__squad *squad, const answer_span *answers) {
    json_t *object = json_object();
    for (int64_t q = 0; q < wg__squad_questions(squad); q++) {
        char *text = answers[q].first < 0
                         ? NULL
                         : wg__squad_text(squad, q, answers[q].first, answers[q].last);
        wg__json_put(&object, wg__squad_id(squad, q), json_string(text ? text : ""));
        wg_text_free(text);
    }
    FILE *file = wg_error_pending() ? NULL : wg__predictions_open(path);
    if (file)
        json_dumpf(object, file, JSON_INDENT(2));
    json_decref(object);
    return file ? wg__predictions_close(file, path) : -1;
}

/* All of the held-out questions, also during training. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const answering *mine = t->context;
    answer_span *answers = wg__alloc_array(wg__squad_questions(mine->held_out), sizeof *answers);
    int status = find_answers(t, answers, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status = write_predictions(t->setup.evaluation->predictions, mine->held_out, answers);
    wg__free(answers);
    return status;
}

/* ---- Results ---- */

static void describe(const wg_training *t, FILE *stream) {
    const answering *mine = t->context;
    fprintf(stream, "text   %lld questions in %lld windows; %lld questions to measure on\n",
            (long long)wg__squad_questions(mine->training),
            (long long)wg__squad_windows(mine->training),
            (long long)wg__squad_questions(mine->held_out));
}

static const wg_metric_row rows[] = {
    {.name = "exact_match"},
    {.name = "f1", .weight = "questions"},
    {.name = "loss"},
    {.name = "by_character", .optional = true},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    const bool chinese = wg_metrics_weight(metrics, "by_character") > 0;
    fprintf(stream, "answers          exact match %.2f %%, F1 %.2f %% of %.0f questions%s\n",
            wg_metrics_get(metrics, "exact_match"), wg_metrics_get(metrics, "f1"),
            wg_metrics_weight(metrics, "f1"), chinese ? ", by character as CMRC 2018" : "");
    fprintf(stream, "windows          loss %.4f of %.0f\n", wg_metrics_get(metrics, "loss"),
            wg_metrics_weight(metrics, "loss"));
}

const wg_objective wg_question_answering = {
    .name = "squad",
    .title = "finds answers to questions in texts (Rajpurkar et al. 2016)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"/model/qa_outputs/weight", "/model/classifier/weight"},
    .training = "{\"lr\": 5e-5, \"epochs\": 3, \"seq\": 384, \"schedule\": \"linear\", "
                "\"weight-decay\": 0.01, \"eval-every\": 500}",
    .usual_sequence = 384,
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .adapt = adapt,
    .load = load,
    .config = config,
    .begin = begin,
    .end = end,
    .loss = next_loss,
    .evaluate = evaluate,
    .describe = describe,
    .metrics = rows,
    .headline = "f1",
    .print = print,
};
