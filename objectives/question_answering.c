/* Answering questions as a task: see question_answering.h. */
#include "objectives/question_answering.h"

#include "data/batches/builder.h"
#include "data/score/score.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "objectives/bert_task.h"
#include "objectives/task_checkpoint.h"

#define WHERE "question_answering"

enum { BEST = 20, LONGEST_ANSWER = 30 };

struct wg_question_answering {
    wg_bert_for_question_answering *model;
    const wg_tokenizer *tokenizer;
    const wg_squad *training, *held_out;
    wg_question_answering_options options;
    wg_pair_frame frame;
    wg_batches *batches; /* of the training file's windows; NULL without */
    int64_t *chosen;     /* (batch) the windows of a batch */
};

/* ---- Making one ---- */

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    const wg_question_answering *a = context;
    for (int64_t i = 0; i < count; i++)
        a->chosen[i] = examples[i].index;
    return wg_squad_batch_read(a->training, &a->frame, count, a->chosen, batch);
}

static int prepare(wg_question_answering *a) {
    const wg_squad *any = a->training ? a->training : a->held_out;
    int64_t sequence = wg_squad_sequence(any);
    if (a->held_out && wg_squad_sequence(a->held_out) != sequence)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "windows of %lld and of %lld tokens",
                       (long long)sequence, (long long)wg_squad_sequence(a->held_out));
    if (wg__batch_sizes(WHERE, &a->options.batch, &sequence) < 0 ||
        wg__bert_task_frame(WHERE, &a->model->bert->config, a->tokenizer, sequence, &a->frame) < 0)
        return -1;
    a->chosen = wg__alloc((size_t)a->options.batch * sizeof *a->chosen);
    if (!a->chosen || !a->training)
        return a->chosen ? 0 : -1;
    a->batches = wg_batches_new(&(wg_batch_source){.context = a, .build = build},
                                &(wg_batches_options){.batch = a->options.batch,
                                                      .examples = wg_squad_windows(a->training),
                                                      .seed = a->options.seed});
    return a->batches ? 0 : -1;
}

wg_question_answering *wg_question_answering_new(wg_bert_for_question_answering *model,
                                                 const wg_tokenizer *tokenizer,
                                                 const wg_squad *training, const wg_squad *held_out,
                                                 const wg_question_answering_options *options) {
    wg_question_answering *a = wg__calloc(1, sizeof *a);
    if (!a)
        return NULL;
    *a = (wg_question_answering){
        .model = model, .tokenizer = tokenizer, .training = training, .held_out = held_out};
    if (options)
        a->options = *options;
    if (prepare(a) == 0)
        return a;
    wg_question_answering_free(a);
    return NULL;
}

void wg_question_answering_free(wg_question_answering *a) {
    if (!a)
        return;
    wg_batches_free(a->batches);
    wg__free(a->chosen);
    wg__free(a);
}

/* ---- Losses ---- */

static wg_tensor *both_right(const wg_squad_batch *batch, wg_tensor *start, wg_tensor *end) {
    return wg_logical_and(wg_eq(wg_argmax(start, 1, false), batch->starts),
                          wg_eq(wg_argmax(end, 1, false), batch->ends));
}

static wg_tensor *next_loss(void *context, wg_metrics *metrics) {
    wg_question_answering *a = context;
    wg_squad_batch batch;
    wg_tensor *start, *end;
    if (wg_batches_next(a->batches, &batch) < 0 ||
        wg_bert_answer(a->model, &batch.inputs, &start, &end) < 0)
        return NULL;
    wg_tensor *right = wg_cast(both_right(&batch, start, end), WG_F64);
    const double share = wg_item(wg_mean(right, WG_ALL, false));
    metrics->tokens += batch.inputs.tokens;
    if (wg_metrics_add(metrics, "right", share, (double)a->options.batch) < 0)
        return NULL;
    return wg_bert_answer_loss(start, end, batch.starts, batch.ends);
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

/* Takes the best answer of a window into that of its question. */
static void search_window(const wg_question_answering *a, int64_t index, const float *start,
                          const float *end, int64_t length, wg_answer_span *answers) {
    const wg_squad_window w = wg_squad_window_at(a->held_out, index);
    wg_answer_span *answer = &answers[w.question];
    int64_t starts[BEST], ends[BEST];
    const int64_t start_count = find_best(start, length, starts),
                  end_count = find_best(end, length, ends);
    for (int64_t i = 0; i < start_count; i++) {
        const int64_t first = starts[i] - w.offset;
        if (first < 0 || first >= w.count ||
            !wg_squad_is_best_window(a->held_out, index, w.first + first))
            continue;
        for (int64_t j = 0; j < end_count; j++) {
            const int64_t last = ends[j] - w.offset;
            const double score = (double)start[starts[i]] + (double)end[ends[j]];
            if (last < first || last >= w.count || last - first + 1 > LONGEST_ANSWER ||
                (answer->first >= 0 && score <= answer->score))
                continue;
            *answer = (wg_answer_span){w.first + first, w.first + last, score};
        }
    }
}

static int evaluate_batch(const wg_question_answering *a, int64_t first, int64_t count,
                          wg_answer_span *answers, wg_metrics *metrics) {
    wg_squad_batch batch;
    wg_tensor *start, *end;
    for (int64_t i = 0; i < count; i++)
        a->chosen[i] = first + i;
    if (wg_squad_batch_read(a->held_out, &a->frame, count, a->chosen, &batch) < 0 ||
        wg_bert_answer(a->model, &batch.inputs, &start, &end) < 0)
        return -1;
    const double loss = wg_item(wg_bert_answer_loss(start, end, batch.starts, batch.ends));
    start = wg_contiguous(wg_cast(start, WG_F32));
    end = wg_contiguous(wg_cast(end, WG_F32));
    if (!start || !end || wg_error_pending())
        return -1;
    const int64_t length = wg_tensor_size(start, 1);
    const float *starts = wg_tensor_data(start), *ends = wg_tensor_data(end);
    for (int64_t i = 0; i < count; i++)
        search_window(a, first + i, starts + i * length, ends + i * length, length, answers);
    metrics->tokens += batch.inputs.tokens;
    return wg_metrics_add(metrics, "loss", loss, (double)count);
}

/* ---- Scores ---- */

/* The best scores of an answer over all that were wanted. */
static int score_question(const wg_squad *squad, int64_t question, const wg_answer_span *answer,
                          double *exact, double *f1) {
    *exact = *f1 = 0;
    if (answer->first < 0)
        return 0;
    char *text = wg_squad_text(squad, question, answer->first, answer->last);
    int status = text ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < wg_squad_answers(squad, question); i++) {
        double is_exact, overlap;
        status = wg__squad_score(text, wg_squad_answer(squad, question, i), &is_exact, &overlap);
        if (status == 0) {
            *exact = is_exact > *exact ? is_exact : *exact;
            *f1 = overlap > *f1 ? overlap : *f1;
        }
    }
    wg_text_free(text);
    return status;
}

static int score(const wg_squad *squad, const wg_answer_span *answers, wg_metrics *metrics) {
    for (int64_t q = 0; q < wg_squad_questions(squad); q++) {
        double exact, f1;
        if (score_question(squad, q, &answers[q], &exact, &f1) < 0 ||
            wg_metrics_add(metrics, "exact_match", 100 * exact, 1) < 0 ||
            wg_metrics_add(metrics, "f1", 100 * f1, 1) < 0)
            return -1;
    }
    return 0;
}

static int find_answers(const wg_question_answering *a, wg_answer_span *answers,
                        wg_metrics *metrics) {
    const int64_t windows = wg_squad_windows(a->held_out), batch = a->options.batch;
    for (int64_t q = 0; q < wg_squad_questions(a->held_out); q++)
        answers[q] = (wg_answer_span){.first = -1, .last = -1};
    for (int64_t first = 0; first < windows; first += batch) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t left = windows - first;
        const int status = evaluate_batch(a, first, left < batch ? left : batch, answers, metrics);
        wg_scope_end(&scope, NULL);
        if (status < 0)
            return -1;
    }
    return score(a->held_out, answers, metrics);
}

static int evaluate(void *context, wg_metrics *metrics) {
    const wg_question_answering *a = context;
    wg_answer_span *answers = wg__alloc((size_t)wg_squad_questions(a->held_out) * sizeof *answers);
    const int status = answers ? find_answers(a, answers, metrics) : -1;
    wg__free(answers);
    return status;
}

/* What wg_task_evaluate hands through. */
typedef struct evaluation {
    const wg_question_answering *answering;
    wg_answer_span *answers;
} evaluation;

static int evaluate_into(void *context, wg_metrics *metrics) {
    const evaluation *e = context;
    return find_answers(e->answering, e->answers, metrics);
}

int wg_question_answering_evaluate(wg_question_answering *a, wg_metrics *metrics,
                                   wg_answer_span *answers) {
    if (!a->held_out)
        return wg_fail(WG_ERROR_STATE, WHERE, "there is no file to measure the model on");
    evaluation e = {a, answers};
    const wg_task task = {.context = answers ? (void *)&e : (void *)a,
                          .module = &a->model->module,
                          .evaluate = answers ? evaluate_into : evaluate};
    return wg_task_evaluate(&task, metrics);
}

/* ---- Checkpoints ---- */

static int save(void *context, wg_checkpoint *file) {
    const wg_question_answering *a = context;
    return wg__task_save(file, wg_bert_for_question_answering_config(a->model), a->tokenizer,
                         a->batches, (int64_t)wg_squad_fingerprint(a->training));
}

static int restore(void *context, wg_checkpoint *file) {
    wg_question_answering *a = context;
    return wg_batches_restore(a->batches, file, (int64_t)wg_squad_fingerprint(a->training));
}

wg_task wg_question_answering_task(wg_question_answering *a) {
    return (wg_task){
        .context = a,
        .module = &a->model->module,
        .loss = next_loss,
        .evaluate = a->held_out ? evaluate : NULL,
        .save = save,
        .restore = restore,
    };
}
