/* The trainer's record, and functions that the files of train/ and the command share. */
#ifndef WG_TRAIN_INTERNAL_H
#define WG_TRAIN_INTERNAL_H

#include "base/group_internal.h"
#include "io/internal.h"
#include "optim/internal.h"
#include "train/metrics.h"
#include "train/trainer.h"

/* ---- For the command ---- */

/* The weighted mean of a metric; NaN at weight 0. */
WG__COMMAND double wg__metric_value(const wg_metric *metric);

/* The number of batches in step number `step`, from 0. */
WG__COMMAND int64_t wg__trainer_batches(int64_t accumulate, int64_t accumulate_ramp, int64_t step);

/* Bytes of optimizer state, and of gradients with their exchange buffers, that this process holds
 * during a run. The temporary gradients of a backward pass are not counted. */
WG__COMMAND void wg__trainer_memory(const wg_trainer *trainer, int64_t *state, int64_t *gradients);

/* Bytes of trained weights that this process holds. */
WG__COMMAND int64_t wg__trainer_weight_bytes(const wg_trainer *trainer);

/* Exchanges the weights and their average, if there is an average, to measure or use the model.
 * Must be called a second time before the run goes on or is saved. */
WG__COMMAND void wg__trainer_swap_average(wg_trainer *trainer);

/* ---- Buckets of gradients (exchange.c) ---- */

/* The most bytes of a bucket of gradients, and the number of buckets in flight with ZeRO. */
enum { WG__BUCKET_BYTES = 4 << 20, WG__BUCKETS_UNDER_WAY = 3 };

/* The approximate bytes of a bucket. */
WG__COMMAND int64_t wg__bucket_bytes(int64_t gradient_bytes, int64_t ranks);

/* ---- The state of a trainer ---- */

typedef struct wg__exchange_plan wg__exchange_plan;   /* exchange.c */
typedef struct wg__shared_buffers wg__shared_buffers; /* trainer_group.c */

/* The position in the random numbers and in the data. */
typedef struct wg__trainer_place {
    wg_generator module, own; /* the module's generator and the thread's */
    wg_data_position data;
} wg__trainer_place;

struct wg_trainer {
    wg_task task;
    wg_trainer_options options;
    wg_optimizer *optimizer;
    wg_average *average;              /* NULL: none */
    wg__metric_log *log;              /* NULL: none */
    int64_t step;                     /* steps done */
    bool half_stepped;                /* the next step failed after it had stepped some weights */
    wg__trainer_place begun_step;     /* the place before the present step */
    double (*weights)[WG_LOSS_PARTS]; /* of the parts of each loss of the step */
    int64_t weight_capacity;
    wg_history training, evaluations;
    double begun;     /* the time when this part of the run began */
    int64_t begun_at; /* the step at that time */
    double last_save;
    int64_t draws; /* random numbers that a batch draws from the module; -1: not known yet */
    wg__exchange_plan *exchange; /* of the gradients; NULL: a single rank */
    bool shares_state;           /* optimizer state is sharded, so all ranks take part in saving */
    wg__shared_buffers *buffers; /* of several ranks; made when the run begins */
    bool error_is_shared;        /* all ranks have the pending error */
};

/* ---- Groups (trainer_group.c). All are collective but leads, holds and check_group. ---- */

/* Whether this rank writes and prints. */
static inline bool wg__trainer_leads(const wg_trainer *trainer) {
    return wg_group_rank(trainer->options.group) == 0;
}

/* Whether batch number `batch` of a step belongs to this rank. */
static inline bool wg__trainer_holds(const wg_trainer *trainer, int64_t batch) {
    return batch % wg_group_size(trainer->options.group) == wg_group_rank(trainer->options.group);
}

/* Checks that the task and the options work with the group. */
int wg__trainer_check_group(const wg_trainer *trainer);

/* Before the first step: checks that all ranks have the same model, options and data, and copies
 * the state of rank 0 to all ranks. */
int wg__trainer_begin_group(wg_trainer *trainer);

/* wg_group_check, which sets error_is_shared after an error. */
int wg__trainer_share(wg_trainer *trainer, int status);

/* After a step: a buffer that the step wrote, a running statistic, becomes its mean over the ranks
 * that wrote it; a buffer of integers becomes rank 0's. */
int wg__trainer_share_buffers(wg_trainer *trainer);
void wg__shared_buffers_free(wg__shared_buffers *shared);

/* ---- The exchange of gradients (exchange.c). All are collective but wg__exchange_in_backward. A
 * step has rounds. With stage 2 of ZeRO each rank runs at most one batch in a round. Otherwise a
 * step is a single round, and each rank runs all of its batches in it. ---- */

/* Made when the trainer is made, of an optimizer that has all parameters. [DTYPE, MEMORY] */
wg__exchange_plan *wg__exchange_plan_new(wg_optimizer *optimizer, wg_group *group, int stage,
                                         wg__transit transit);
void wg__exchange_plan_free(wg__exchange_plan *plan);

/* Begin and end a round. The first round of a step clears the sums, and the last one waits for all
 * buckets. A round must be ended, also after an error. Before the last backward pass of this rank
 * in the round, wg__exchange_in_backward makes backward send each bucket once it is complete. */
void wg__exchange_begin(wg__exchange_plan *plan, bool is_first);
int wg__exchange_in_backward(wg__exchange_plan *plan);
int wg__exchange_end(wg__exchange_plan *plan, bool is_last);

/* If no rank has failed: marks the parameters that have a gradient on any rank, so that all ranks
 * step them. */
int wg__exchange_mark_used(wg__exchange_plan *plan);

/* After the optimizer's step of stages 1 and 2: an all-gather of the stepped weights. */
int wg__exchange_gather_weights(wg__exchange_plan *plan);

/* Bytes of the sums, the buckets in flight and the received parts. NULL: 0. */
int64_t wg__exchange_bytes(const wg__exchange_plan *plan);

/* ---- Places, and the diagnosis of a failed step (trainer_diagnosis.c) ---- */

/* The trainer's present place, and going back to a place. */
wg__trainer_place wg__trainer_here(const wg_trainer *trainer);
int wg__trainer_go_to(const wg_trainer *trainer, const wg__trainer_place *place);

/* Writes a clause to `hint`: the probable reason for a loss or gradient that is not finite. Runs
 * the batches of the failed step again in anomaly mode, so that the clause names the first op with
 * a result that is not finite, and its layer. Drops the gradients. */
void wg__trainer_diagnose(wg_trainer *trainer, char *hint, size_t size);

/* Refuses a trainer whose weights are half stepped. */
int wg__trainer_check_whole(const wg_trainer *trainer);

/* Writes the path of the first tensor of a module that is not finite; "" if all are. [MEMORY] */
void wg__find_not_finite(wg_module *module, char *path, size_t size);

#endif
