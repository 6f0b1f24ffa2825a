/* Question answering: the first and the last token of an answer in a text, by an encoder with a
 * head (Rajpurkar et al. 2016; Devlin et al. 2019, section 4.2; run_squad.py).
 *
 *     SQuAD file --> windows, shuffled --> encoder, qa_outputs --> cross-entropy of both ends
 *
 * Metric of a step, beside its loss: `right`, the share of windows whose two ends are both right.
 * Of an evaluation: `exact_match` and `f1`, in percent, the best over the answers of each question,
 * as the official script counts them, and the `loss` of windows. */
#include <jansson.h>
#include <math.h>

#include "base/json.h"
#include "data/dataset/examples.h"
#include "data/score/score.h"
#include "objectives/head.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

enum { BEST = 20, LONGEST_ANSWER = 30 };

/* Tokens of a context, as wg__squad_text takes them; first -1: there is no answer. An answer begins
 * with one of the BEST likeliest first tokens of a window and ends with one of the BEST likeliest
 * last tokens. It has at most LONGEST_ANSWER tokens. A first token counts only in the window that
 * has most context around it. */
typedef struct answer_span {
    int64_t first, last;
    double score; /* logit of the first and of the last */
} answer_span;

static wg__examples *read_questions(wg__head_kind kind, const wg_training_setup *setup,
                                    const void *own, const char *path,
                                    const wg_tokenizer *tokenizer, wg__labels *labels) {
    (void)kind, (void)own, (void)labels;
    return (wg__examples *)wg__squad_load(path, tokenizer,
                                          &(wg__squad_options){.sequence = setup->sequence});
}

/* Logits of the answers' first and last tokens. Padding gets -1e9, so that it adds nothing to the
 * softmax: the same window has the same loss in any batch. */
static int outputs(const wg_training *t, const wg__example_batch *batch, wg_tensor *ends[2]) {
    const double never = -1e9;
    if (wg__head_outputs(t, batch, ends) < 0)
        return -1;
    wg_tensor *padding = wg_logical_not(batch->inputs.attention_mask);
    for (int i = 0; i < 2; i++)
        ends[i] = wg_masked_fill(ends[i], padding, never);
    return wg_error_pending() ? -1 : 0;
}

static wg_tensor *loss(wg_tensor *const ends[2], const wg__example_batch *batch) {
    return wg__answer_loss(ends[0], ends[1], batch->targets[0], batch->targets[1]);
}

static int measure_step(wg_tensor *const ends[2], const wg__example_batch *batch,
                        wg_metrics *metrics) {
    wg_tensor *right = wg_logical_and(wg_eq(wg_argmax(ends[0], 1, false), batch->targets[0]),
                                      wg_eq(wg_argmax(ends[1], 1, false), batch->targets[1]));
    return wg_metrics_add(metrics, "right", wg_item(wg_mean(wg_cast(right, WG_F64), WG_ALL, false)),
                          (double)wg_tensor_count(batch->targets[0]));
}

/* The indices of the BEST largest of `count` numbers, largest first, the first of equal ones first.
 * Returns their number. */
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

static int predict(const wg_training *t, int64_t first, int64_t count, wg_tensor *const ends[2],
                   const wg__example_batch *batch, wg_metrics *metrics) {
    const wg__head_run *run = t->context;
    const wg__squad *held_out = (const wg__squad *)run->held_out;
    answer_span *answers = run->predictions;
    const double mean = wg_item(loss(ends, batch));
    wg_tensor *start = wg_contiguous(wg_cast(ends[0], WG_F32));
    wg_tensor *end = wg_contiguous(wg_cast(ends[1], WG_F32));
    if (!start || !end || wg_error_pending())
        return -1;
    const int64_t length = wg_tensor_size(start, 1);
    const float *starts = wg_tensor_data(start), *lasts = wg_tensor_data(end);
    for (int64_t i = 0; i < count; i++)
        search_window(held_out, first + i, starts + i * length, lasts + i * length, length,
                      &answers[first + i]);
    metrics->tokens += batch->inputs.tokens;
    return wg_metrics_add(metrics, "loss", mean, (double)count);
}

/* The best answer of each question over its windows; the first window wins a tie. */
static answer_span *choose_answers(const wg__head_run *run) {
    const wg__squad *squad = (const wg__squad *)run->held_out;
    const answer_span *found = run->predictions;
    answer_span *answers = wg__alloc_array(wg__squad_questions(squad), sizeof *answers);
    for (int64_t q = 0; answers && q < wg__squad_questions(squad); q++)
        answers[q] = (answer_span){.first = -1, .last = -1};
    for (int64_t i = 0; answers && i < run->held_out->count; i++) {
        answer_span *best = &answers[wg__squad_window_at(squad, i).question];
        if (found[i].first >= 0 && (best->first < 0 || found[i].score > best->score))
            *best = found[i];
    }
    return answers;
}

static int measure(const wg__head_run *run, wg_metrics *metrics) {
    const wg__squad *squad = (const wg__squad *)run->held_out;
    bool chinese = false; /* most characters of the wanted answers are Chinese */
    int64_t ideographs = 0, letters = 0;
    for (int64_t q = 0; q < wg__squad_questions(squad); q++)
        for (int64_t i = 0; i < wg__squad_answers(squad, q); i++)
            chinese = wg__squad_is_chinese(wg__squad_answer(squad, q, i), &ideographs, &letters);
    answer_span *answers = choose_answers(run);
    int status = answers ? 0 : -1;
    if (status == 0 && chinese)
        status = wg_metrics_add(metrics, "by_character", 1, 1);
    for (int64_t q = 0; status == 0 && q < wg__squad_questions(squad); q++) {
        /* The best scores of the answer over all reference answers. */
        double exact = 0, f1 = 0;
        char *text = answers[q].first < 0
                         ? NULL
                         : wg__squad_text(squad, q, answers[q].first, answers[q].last);
        for (int64_t i = 0; text && status == 0 && i < wg__squad_answers(squad, q); i++) {
            double is_exact = 0, overlap = 0;
            status = (chinese ? wg__squad_score_mixed : wg__squad_score)(
                text, wg__squad_answer(squad, q, i), &is_exact, &overlap);
            exact = fmax(exact, is_exact);
            f1 = fmax(f1, overlap);
        }
        wg_text_free(text);
        if (status < 0 || wg_error_pending() ||
            wg_metrics_add(metrics, "exact_match", 100 * exact, 1) < 0 ||
            wg_metrics_add(metrics, "f1", 100 * f1, 1) < 0)
            status = -1;
    }
    wg__free(answers);
    return status;
}

/* {"ID": "TEXT", ...}, as the official script reads it. */
static int write_answers(const wg__head_run *run, const char *path) {
    const wg__squad *squad = (const wg__squad *)run->held_out;
    answer_span *answers = choose_answers(run);
    json_t *object = json_object();
    for (int64_t q = 0; answers && q < wg__squad_questions(squad); q++) {
        char *text = answers[q].first < 0
                         ? NULL
                         : wg__squad_text(squad, q, answers[q].first, answers[q].last);
        wg__json_put(&object, wg__squad_id(squad, q), json_string(text ? text : ""));
        wg_text_free(text);
    }
    wg__free(answers);
    FILE *file = wg_error_pending() ? NULL : wg__predictions_open(path);
    if (file)
        json_dumpf(object, file, JSON_INDENT(2));
    json_decref(object);
    return file ? wg__predictions_close(file, path) : -1;
}

static void describe(const wg_training *t, FILE *stream) {
    const wg__head_run *run = t->context;
    fprintf(stream, "text   %lld questions in %lld windows; %lld questions to measure on\n",
            (long long)wg__squad_questions((const wg__squad *)run->training),
            (long long)run->training->count,
            (long long)wg__squad_questions((const wg__squad *)run->held_out));
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
    .defaults = "{\"lr\": 5e-5, \"epochs\": 3, \"seq\": 384, \"schedule\": \"linear\", "
                "\"weight-decay\": 0.01, \"eval-every\": 500}",
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {.usual_sequence = 384,
             WG__BATCH_OF(wg__example_batch, inputs.tokens),
             .describe = describe},
    .training = &wg__head_training,
    .head = &(const wg__head_task){.kind = WG_HEAD_ANSWERS,
                                   .prediction = sizeof(answer_span),
                                   .read = read_questions,
                                   .outputs = outputs,
                                   .loss = loss,
                                   .measure_step = measure_step,
                                   .predict = predict,
                                   .measure = measure,
                                   .write = write_answers},
    .metrics = rows,
    .headline = "f1",
    .print = print,
};
