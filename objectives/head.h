/* Fine-tuning of an encoder with a head: the code that all tasks share. A wg__head_task holds the
 * functions that differ from task to task.
 *
 *     file --read--> examples, shuffled --> encoder, head --outputs--> loss
 *                                                         '--> predictions --> metrics, a file
 */
#ifndef WG_OBJECTIVES_HEAD_H
#define WG_OBJECTIVES_HEAD_H

#include "models/heads.h"
#include "objectives/internal.h"

/* The context of a training. */
typedef struct wg__head_run {
    const wg__labels *labels; /* K of them; none for answers and numbers */
    wg_pair_frame frame;
    wg__examples *training, *held_out; /* NULL: the setup names no file */
    int64_t *chosen;                   /* (B) the examples of a batch */
    void *own;                         /* the task's, if it has no head: see begin_as */
    /* An evaluation. */
    void *predictions; /* of each example, or word */
    double loss;       /* summed over the examples, where `predict` adds to it */
} wg__head_run;

typedef struct wg__head_task {
    wg__head_kind kind;
    bool learns_labels; /* a new head has the labels of the training file */
    size_t prediction;  /* bytes that are kept of an example or word; 0: one for each label */

    /* Reads a file for the task `kind`; `own` is the member of the run. Empty `labels` become the
     * labels of the file. */
    wg__examples *(*read)(wg__head_kind kind, const wg_training_setup *setup, const void *own,
                          const char *path, const wg_tokenizer *tokenizer, wg__labels *labels);

    /* Fill a batch (NULL: wg__example_batch_read), and compute its outputs (NULL:
     * wg__head_outputs). [scope] */
    int (*batch)(const wg_training *t, const wg__examples *examples, int64_t count,
                 wg__example_batch *batch);
    int (*outputs)(const wg_training *t, const wg__example_batch *batch, wg_tensor *outputs[2]);

    /* Of a step: the loss; and its other metrics, or NULL. */
    wg_tensor *(*loss)(wg_tensor *const outputs[2], const wg__example_batch *batch);
    int (*measure_step)(wg_tensor *const outputs[2], const wg__example_batch *batch,
                        wg_metrics *metrics);

    /* Of an evaluation: stores the predictions for `count` examples from number `first` on; then
     * measures all predictions, and writes them to a file. */
    int (*predict)(const wg_training *t, int64_t first, int64_t count, wg_tensor *const outputs[2],
                   const wg__example_batch *batch, wg_metrics *metrics);
    int (*measure)(const wg__head_run *run, wg_metrics *metrics);
    int (*write)(const wg__head_run *run, const char *path);
} wg__head_task;

/* The logits of a model, whose module is a wg__headed_encoder. */
int wg__head_outputs(const wg_training *t, const wg__example_batch *batch, wg_tensor *outputs[2]);

/* The functions of wg__head_training; a task may use some of them in another record.
 * wg__head_begin_as begins a run whose model has no head: with these labels, and with `own`, which
 * the caller frees. */
int wg__head_adapt(const wg_objective *objective, const wg_training_setup *setup,
                   void (*note)(const char *message, void *context), void *note_context,
                   wg_model *model, wg_tokenizer **tokenizer);
int wg__head_load(const wg_objective *objective, const char *path, wg_model *model,
                  wg_tokenizer **tokenizer);
char *wg__head_config(const wg_training *t);
int wg__head_begin(wg_training *t);
int wg__head_begin_as(wg_training *t, void *own, wg__labels *labels);
void wg__head_end(wg_training *t);
wg_tensor *wg__head_loss(wg_training *t, const void *batch, wg_metrics *metrics);
int wg__head_evaluate(wg_training *t, int64_t batches, wg_metrics *metrics);
extern const wg_objective_training wg__head_training;

/* Functions of the tasks that predict one label for each text; wg__label_describe also of tasks
 * with several labels or a number. */
wg_tensor *wg__label_loss(wg_tensor *const outputs[2], const wg__example_batch *batch);
int wg__label_measure_step(wg_tensor *const outputs[2], const wg__example_batch *batch,
                           wg_metrics *metrics);
int wg__label_predict(const wg_training *t, int64_t first, int64_t count,
                      wg_tensor *const outputs[2], const wg__example_batch *batch,
                      wg_metrics *metrics);
int wg__label_measure(const wg__head_run *run, wg_metrics *metrics);
int wg__label_write(const wg__head_run *run, const char *path);
void wg__label_describe(const wg_training *t, FILE *stream);
void wg__label_print(const wg_metrics *metrics, FILE *stream);
extern const wg_metric_row wg__label_metrics[];

/* Members of the record of a task that predicts one label for each text. */
#define WG__LABEL_TASK                                                                             \
    .prediction = sizeof(int64_t), .loss = wg__label_loss, .measure_step = wg__label_measure_step, \
    .predict = wg__label_predict, .measure = wg__label_measure, .write = wg__label_write

#endif
