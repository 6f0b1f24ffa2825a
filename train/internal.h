/* What the files of train/ share with each other and with the command: the trainer's state. */
#ifndef WG_TRAIN_INTERNAL_H
#define WG_TRAIN_INTERNAL_H

#include "base/group_internal.h"
#include "io/internal.h"
#include "optim/internal.h"
#include "train/metrics.h"
#include "train/trainer.h"

/* ---- For the command ---- */

/* The mean of one metric; NaN at weight 0. */
WG__COMMAND double wg__metric_value(const wg_metric *metric);

/* How many batches a step takes that follows `step` others. */
WG__COMMAND int64_t wg__trainer_batches(int64_t accumulate, int64_t accumulate_ramp, int64_t step);

/* Bytes of optimizer state and of gradients that this process holds during a run, with the buffers
 * in which gradients travel; the gradients that are in the midst of a backward pass come on top. */
WG__COMMAND void wg__trainer_memory(const wg_trainer *trainer, int64_t *state, int64_t *gradients);

/* Bytes of trained weights that this process holds. */
WG__COMMAND int64_t wg__trainer_weight_bytes(const wg_trainer *trainer);

/* Puts the average of the weights, if the trainer keeps one, in their place, for measuring or using
 * the model; and back, which is due before the run goes on or is saved. */
WG__COMMAND void wg__trainer_swap_average(wg_trainer *trainer);

/* ---- Of train/exchange.c ---- */

/* The most bytes of a bucket of gradients, and how many buckets are under way with ZeRO. */
enum { WG__BUCKET_BYTES = 4 << 20, WG__BUCKETS_UNDER_WAY = 3 };

/* The bytes of a bucket, about. */
WG__COMMAND int64_t wg__bucket_bytes(int64_t gradient_bytes, int64_t ranks);

/* ---- The state of a trainer ---- */

typedef struct wg__exchange_plan wg__exchange_plan;   /* exchange.c */
typedef struct wg__shared_buffers wg__shared_buffers; /* trainer_group.c */

/* Where the random numbers and the data stand. */
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
    bool half_stepped;                /* the next one failed when some weights had been stepped */
    wg__trainer_place begun_step;     /* the place before the step that is under way */
    double (*weights)[WG_LOSS_PARTS]; /* of the parts of each loss of the step */
    int64_t weight_capacity;
    wg_history training, evaluations;
    double begun; /* when this part of the run began, and at which step */
    int64_t begun_at;
    double last_save;
    int64_t draws; /* that a batch takes from the module's generator; -1: not known yet */
    wg__exchange_plan *exchange; /* of a group, whose gradients are summed; NULL: of one process */
    bool shares_state;           /* each rank has a share of the optimizer's state: all save */
    wg__shared_buffers *buffers; /* of a group; made when the run begins */
    bool error_is_shared;        /* the pending error is that of all ranks */
};

/* ---- The part of a group (trainer_group.c). All are collective but wg__trainer_holds. ---- */

/* Whether this rank writes and prints. */
static inline bool wg__trainer_leads(const wg_trainer *trainer) {
    return wg_group_rank(trainer->options.group) == 0;
}

/* Whether batch number `batch` of a step is this rank's. */
static inline bool wg__trainer_holds(const wg_trainer *trainer, int64_t batch) {
    return batch % wg_group_size(trainer->options.group) == wg_group_rank(trainer->options.group);
}

/* Refuses a group that the task or the options cannot have. */
int wg__trainer_check_group(const wg_trainer *trainer);

/* Compares what the ranks have before the first step, and gives all the weights of rank 0. */
int wg__trainer_begin_group(wg_trainer *trainer);

/* Shares an outcome, as wg_group_check, and remembers that it is known. */
int wg__trainer_share(wg_trainer *trainer, int status);

/* After a step: a buffer that the step wrote, a running statistic, becomes its mean over the ranks
 * that wrote it; a buffer of integers becomes rank 0's. */
int wg__trainer_share_buffers(wg_trainer *trainer);
void wg__shared_buffers_free(wg__shared_buffers *shared);

/* ---- The exchange of gradients (exchange.c). All are collective but wg__exchange_in_backward. A
 * step has rounds. With stage 2 of ZeRO each rank runs one batch a round, or none; else a step is
 * one round, in which each rank runs all of its batches. ---- */

/* Made when the trainer is made, of an optimizer that has all parameters. [DTYPE, MEMORY] */
wg__exchange_plan *wg__exchange_plan_new(wg_optimizer *optimizer, wg_group *group, int stage,
                                         wg__transit transit);
void wg__exchange_plan_free(wg__exchange_plan *plan);

/* The rounds of a step of so many batches. NULL: one. */
int64_t wg__exchange_rounds(const wg__exchange_plan *plan, int64_t batches);

/* A round: the first round of a step clears the sums, and the last one waits for all buckets. A
 * round is ended in every case, also after an error. In between, the last backward pass of this
 * rank in the round may send the gradients as it goes. */
void wg__exchange_begin(wg__exchange_plan *plan, bool is_first);
int wg__exchange_in_backward(wg__exchange_plan *plan);
int wg__exchange_end(wg__exchange_plan *plan, bool is_last);

/* When no rank has failed: a parameter with a gradient on any rank is stepped on all. */
int wg__exchange_mark_used(wg__exchange_plan *plan);

/* After the optimizer's step of stages 1 and 2: all ranks get the weights that each has stepped. */
int wg__exchange_give_weights(wg__exchange_plan *plan);

/* Bytes of the sums, of the buckets under way, and of the parts that are received. NULL: 0. */
int64_t wg__exchange_bytes(const wg__exchange_plan *plan);

/* ---- Places, and what goes wrong ---- */

/* The place where the trainer stands, and going back to one. */
wg__trainer_place wg__trainer_here(const wg_trainer *trainer);
int wg__trainer_go_to(const wg_trainer *trainer, const wg__trainer_place *place);

/* Writes a clause into `hint`: why a loss or a gradient of the step that failed may not be finite.
 * Runs the batches of this step again in anomaly mode, so that the clause names the first op that
 * made a number which is not finite, with its layer. Drops the gradients. */
void wg__trainer_diagnose(wg_trainer *trainer, char *hint, size_t size);

/* Refuses a trainer of which a step failed half way. */
int wg__trainer_check_whole(const wg_trainer *trainer);

/* Writes the path of the first tensor of a module that is not finite; "" if all are. [MEMORY] */
void wg__find_not_finite(wg_module *module, char *path, size_t size);

#endif
