/* The training loop.
 *
 *     task: next batch -> loss --> backward --> clip --> optimizer step --> log, evaluate, save
 *      ^                                                                       |
 *      `-----------------------------------------------------------------------'
 *
 * With `step_in_backward` the optimizer steps while backward goes on (wg_optimizer_step_begin).
 *
 * A model and its data are a wg_task, a record of a few functions. The loop prints nothing, and
 * reports each step to a listener.
 *
 * A run that was stopped at step k and resumed gives the same bits at step n as a run that was
 * never stopped: a checkpoint holds the weights, the optimizer's state, the step, the random
 * counters and the task's state (its place in the data). Evaluations and saves leave all of these
 * alone.
 *
 * If the loss is a mean over examples or tokens, a step of several batches equals a step with a
 * single large batch, to rounding: the task counts the examples or tokens of each batch (`weigh`),
 * and the trainer weighs the losses by these numbers before backward.
 *
 *     step, accumulate 2      batch 0: 1 token  '
 *                             batch 1: 9 tokens '- 1/10 of the first loss, 9/10 of the second
 *
 * With a group, its ranks train one model (data parallelism): each rank takes some of a step's
 * batches, and the gradients are summed, so that all ranks make the same step. The batches of a
 * step, and the random numbers that each batch draws from the module's generator, do not depend on
 * the number of ranks. So the weights are the same for any number of ranks, to the rounding of
 * sums:
 *
 *     step, accumulate 4      rank 0: batches 0 2  '
 *                             rank 1: batches 1 3  '- sum of gradients, clip, optimizer step
 *
 * Rank 0 alone calls the listener and writes files; any number of ranks can resume a run. After a
 * step, buffers that the batches wrote (running statistics) become their means over the ranks that
 * wrote them; a buffer of integers becomes rank 0's.
 *
 * With ZeRO (Rajbhandari et al. 2020) each rank stores, sums and steps a share of the optimizer's
 * state and of the gradients, and all ranks get the new weights.
 *
 * With an average of the weights, evaluations measure the average. Checkpoints hold the average in
 * /model and the trained weights in /train/weights. */
#ifndef WG_TRAIN_TRAINER_H
#define WG_TRAIN_TRAINER_H

#include <signal.h>

#include "../base/group.h"
#include "../data/batches/batches.h"
#include "../optim/optimizer.h"
#include "history.h"

WG_BEGIN_DECLS

/* The most parts that the loss of a batch can have. BERT's has two: masked words, and next
 * sentences. */
enum { WG_LOSS_PARTS = 2 };

/* A part of a batch's loss: `share` times the mean of `count` losses, for instance the losses of
 * the predicted tokens.
 *
 * For a whole step the part is the mean over the losses of all batches of all ranks, times the mean
 * of the shares: the same as if the step were one batch. */
typedef struct wg_loss_part {
    double count; /* 0: the batch has no losses of this part */
    double share;
} wg_loss_part;

/* A model and its data. Functions return 0, or -1 (NULL) with an error. */
typedef struct wg_task {
    void *context;     /* passed to every function */
    wg_module *module; /* to be trained; borrowed */

    /* Reads the next batch of the training data and returns its loss in the open scope: a number
     * that requires a gradient, or up to WG_LOSS_PARTS numbers whose sum is the loss. Adds further
     * measurements and the number of tokens to `metrics`. */
    wg_tensor *(*loss)(void *context, wg_metrics *metrics);

    /* Reads the next batch and fills in the parts of its loss without computing the loss; each part
     * is {0, 1} before. In a step of several batches the trainer calls it for all batches first,
     * then goes back to the first batch by `batches`, which must be set. NULL: all batches of a
     * step weigh the same. */
    int (*weigh)(void *context, wg_loss_part *parts);

    /* Called before the batches of each step, to change the task in the course of a run. NULL:
     * nothing. */
    void (*begin_step)(void *context);

    /* Measures the model on the held-out data. It is called with recording off and the module in
     * evaluation mode, and must neither move the training data nor draw from the module's
     * generator. NULL: no evaluations. */
    int (*evaluate)(void *context, wg_metrics *metrics);

    /* All ranks of a group call `evaluate`, which divides the work and combines the results.
     * Otherwise only rank 0 calls it. */
    bool shares_evaluation;

    /* Writes all of the model and its data except the weights: /config, /tokenizer,
     * /train/data/...; NULL: nothing. */
    int (*save)(void *context, wg_checkpoint *file);

    /* Goes back to the place in the training data that `save` wrote. NULL: nothing to do. */
    int (*restore)(void *context, wg_checkpoint *file);

    /* Each call of `loss` reads one of these batches. The trainer uses them to go back to the first
     * batch of a step after `weigh`, and to skip the batches of other ranks. Borrowed. NULL: the
     * task has no `weigh`, and there is one rank. */
    wg_batches *batches;

    /* Collective: checks that all ranks have the same data, vocabulary and configuration; -1 with
     * STATE if they differ. The trainer compares modules and options itself. NULL: no check. */
    int (*agree)(void *context, wg_group *group);
} wg_task;

/* The report of a step to the listener. Lives during the call. */
typedef struct wg_train_report {
    int64_t step;  /* steps done, over all resumed parts of the run */
    int64_t total; /* steps when the run is done */
    double loss;
    double learning_rate;
    double gradient_norm;
    double tokens_per_second; /* of this step alone */
    double seconds_left;      /* at the pace of this part of the run, evaluations included */
    const wg_metrics *metrics;
    const wg_metrics *evaluation; /* NULL if the step was not followed by one */
    bool saved;
} wg_train_report;

typedef void (*wg_train_listener)(const wg_train_report *report, void *context);

typedef struct wg_trainer_options {
    int64_t steps;           /* at least 1 */
    wg_schedule schedule;    /* of the learning rate */
    double clip;             /* greatest global gradient norm; 0: 1.0; negative: no clipping */
    int64_t accumulate;      /* batches of a step; 0: 1. Together they have the gradient of a single
                              * large batch, if the task weighs them */
    int64_t accumulate_ramp; /* the number of batches rises from 1 to `accumulate` over so many
                              * steps, linearly, rounded down; 0: it is `accumulate` at once */
    double average_decay;    /* of an exponential average of the weights; 0: none is kept */
    int64_t evaluate_every;  /* steps; 0: after the last step only */
    int64_t patience; /* stop after so many evaluations without a new lowest "loss"; 0: never */
    const char *path; /* of the checkpoint; NULL: the run is not saved */
    const char *best_path; /* of the checkpoint with the lowest evaluated "loss"; NULL: not kept */
    int64_t keep_every;    /* steps between checkpoints that are never overwritten; 0: none */
    const char *keep_stem; /* these checkpoints are KEEP_STEM.STEP.h5 */
    int64_t save_every;    /* steps; 0: only by save_seconds and after the last step */
    double save_seconds;   /* 0: 60; negative: no saves by the clock */
    const char *note;      /* a text to store as /train/note; NULL: none */
    const char *log_path;  /* a file to append a JSON object to for each step; NULL: none */
    wg_train_listener listener;
    void *listener_context;
    const volatile sig_atomic_t *stop; /* not 0: finish the step, save and return; may be NULL */
    wg_group *group;     /* the processes that train together; borrowed. NULL: this one alone */
    int zero;            /* stage of ZeRO: 1: each rank of the group has a share of the optimizer's
                          * state; 2: and of the gradients; 0: each rank has all */
    bool bf16_gradients; /* ranks send gradients as bf16, half the bytes; sums are in f32 */
    bool step_in_backward; /* step each weight as soon as its gradient is complete, which takes less
                            * memory; without clipping only. Ignored with several ranks, which must
                            * sum their gradients first */
    wg_dtype matmul_dtype; /* WG_BF16: forward and backward run under wg_set_matmul_dtype, mixed
                            * precision; evaluations do not. WG_F32, 0: full precision */
} wg_trainer_options;

typedef struct wg_trainer wg_trainer;

typedef enum wg_train_outcome {
    WG_TRAIN_FINISHED,       /* all steps are done, measured and saved */
    WG_TRAIN_INTERRUPTED,    /* `stop` was set; the step was finished and saved */
    WG_TRAIN_OUT_OF_PATIENCE /* evaluations became no better; the last step is saved */
} wg_train_outcome;

/* A trainer at step 0. Takes ownership of the optimizer, which must be empty, in every case, and
 * adds all the parameters of the task's module to it. Options and task are copied; their texts and
 * pointers are borrowed and must outlive the trainer. Freed with wg_trainer_free.
 * [ARGUMENT, also for a group with more ranks than a step has batches, or a task that does not name
 * its batches; MEMORY; IO for a log that cannot be opened] */
WG_API wg_trainer *wg_trainer_new(const wg_task *task, wg_optimizer *optimizer,
                                  const wg_trainer_options *options);

/* Frees a trainer and its optimizer; NULL is allowed. */
WG_API void wg_trainer_free(wg_trainer *trainer);

/* Resumes the run in the checkpoint `path`, at its step. Before the first step only; after an error
 * the trainer must be freed. [NOT_FOUND, IO, FORMAT; STATE for a file that holds no run] */
WG_API int wg_trainer_resume(wg_trainer *trainer, const char *path);

/* Runs to the last step. Returns a wg_train_outcome, or -1: then the checkpoint on disk is the last
 * good one. A loss or gradient that is not finite stops the run before anything is saved; the error
 * has the step and a hint at the reason. If the task has `batches` and there is a single rank, the
 * trainer runs the step again, and the hint names the first op with a result that is not finite,
 * and its layer.
 *
 * After an error the weights in memory are from the last finished step. With `step_in_backward` an
 * error may leave some weights stepped and others not: the trainer then refuses to save and to go
 * on. All ranks of a group have the same outcome, and an error names its rank. [GRADIENT for a run
 * that diverged; STATE for ranks that differ in version, processor, options, module, data or step;
 * STATE for a patience or best_path if evaluations have no "loss", and for half-stepped weights;
 * the errors of the task, the optimizer and saving] */
WG_API int wg_trainer_run(wg_trainer *trainer);

/* Writes a checkpoint of the present state: the same file with and without ZeRO. With ZeRO all
 * ranks must call it, and rank 0 writes. [GRADIENT for weights that are not finite; STATE for
 * half-stepped weights; as wg_checkpoint_commit] */
WG_API int wg_trainer_save(wg_trainer *trainer, const char *path);

/* Steps done. */
WG_API int64_t wg_trainer_steps(const wg_trainer *trainer);

/* A row for each step ("step", "loss", "lr", "grad_norm" and the task's metrics), and a row for
 * each evaluation ("step" and the metrics). In long runs old rows are joined, to at most
 * WG_HISTORY_ROWS: see history.h. Borrowed. In a checkpoint the tables are in WG_HISTORY_TRAINING
 * and WG_HISTORY_EVALUATION. */
WG_API const wg_history *wg_trainer_history(const wg_trainer *trainer);
WG_API const wg_history *wg_trainer_evaluations(const wg_trainer *trainer);

/* The evaluation with the lowest "loss" so far, true, or false if there was none. */
WG_API bool wg_trainer_best(const wg_trainer *trainer, int64_t *step, double *loss);

#define WG_HISTORY_TRAINING "/train/history/training"
#define WG_HISTORY_EVALUATION "/train/history/evaluation"

/* In a checkpoint: texts about the process that saved it. "version" and "commit" of the library;
 * "processor"; "kernels", "kernels_bf16", "kernels_blocks", "blis" and "blis_kernels", as
 * wg__kernels_in_use says; "deterministic", "yes" or "no"; "hdf5", its version. */
#define WG_ENVIRONMENT "/train/environment"

/* Measures a task's model as an evaluation during training does: recording off, the module in
 * evaluation mode, both restored afterwards. */
int wg__task_evaluate(const wg_task *task, wg_metrics *metrics);

WG_END_DECLS

#endif
