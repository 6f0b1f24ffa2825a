/* What the files of the trainer share: its state, and what may be said of it. */
#ifndef WG_TRAIN_TRAINER_STATE_H
#define WG_TRAIN_TRAINER_STATE_H

#include "base/group_internal.h"
#include "io/log.h"
#include "optim/optimizer.h"
#include "train/trainer.h"

typedef struct wg__gradient_sums wg__gradient_sums;   /* trainer_group.c */
typedef struct wg__zero wg__zero;                     /* trainer_zero.c */
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
    bool is_torn;                     /* the next one failed when some weights had been stepped */
    wg__trainer_place begun_step;     /* the place before the step that is under way */
    double (*weights)[WG_LOSS_PARTS]; /* of the parts of each loss of the step */
    int64_t weight_capacity;
    wg_history training, evaluations;
    double begun; /* when this part of the run began, and at which step */
    int64_t begun_at;
    double last_save;
    int64_t draws;           /* that a batch takes from the module's generator; -1: not known yet */
    wg__gradient_sums *sums; /* of a group; made when the run begins */
    wg__zero *zero;          /* instead, where the optimizer is sharded; made with the trainer */
    wg__shared_buffers *buffers; /* of a group; made when the run begins */
    bool is_told;                /* the pending error is that of all ranks */
};

/* ---- The part of a group (trainer_group.c). All are collective but wg__trainer_holds. ---- */

/* Whether several ranks train together. */
static inline bool wg__trainer_is_shared(const wg_trainer *trainer) {
    return wg_group_size(trainer->options.group) > 1;
}

/* Whether this rank writes and prints. */
static inline bool wg__trainer_leads(const wg_trainer *trainer) {
    return wg_group_rank(trainer->options.group) == 0;
}

/* Whether batch number `batch` of a step is this rank's. */
static inline bool wg__trainer_holds(const wg_trainer *trainer, int64_t batch) {
    return batch % wg_group_size(trainer->options.group) == wg_group_rank(trainer->options.group);
}

/* Whether each rank has a share of the optimizer's state. */
static inline bool wg__trainer_is_sharded(const wg_trainer *trainer) {
    return trainer->zero != NULL;
}

/* Whether each rank has a share of the weights, too: stage 3. */
static inline bool wg__trainer_shards_weights(const wg_trainer *trainer) {
    return trainer->options.zero == 3 && wg__trainer_is_shared(trainer);
}

static inline wg__transit wg__trainer_transit(const wg_trainer *trainer) {
    return trainer->options.bf16_gradients ? WG__TRANSIT_BF16 : WG__TRANSIT_AS_IS;
}

/* Refuses a group that the task or the options cannot have. */
int wg__trainer_check_group(const wg_trainer *trainer);

/* Compares what the ranks have before the first step, and gives all the weights of rank 0. */
int wg__trainer_begin_group(wg_trainer *trainer);

/* Shares an outcome, as wg_group_check, and remembers that it is known. */
int wg__trainer_share(wg_trainer *trainer, int status);

/* The sums of a step's gradients: begun before its batches; from here on along with the backward
 * pass of this rank's last batch (not collective); ended after the batches, whether they failed or
 * not; and taken in place of the gradients when no rank has failed. A parameter with a gradient on
 * any rank then has one on all. */
void wg__trainer_begin_sums(wg_trainer *trainer);
int wg__trainer_sum_in_backward(wg_trainer *trainer);
int wg__trainer_end_sums(wg_trainer *trainer);
int wg__trainer_take_sums(wg_trainer *trainer);

/* Rank 0: the batch that follows, its last one of the step or not, finds out which parameters are
 * looked up as a table and used as a whole, too. All ranks get to know, and place the gradients by
 * it. The sums of the step are then those of one in which they were known. */
void wg__trainer_begin_finding_tables(wg_trainer *trainer, bool is_last);
int wg__trainer_share_tables(wg_trainer *trainer);

void wg__gradient_sums_free(wg__gradient_sums *sums);

/* After a step: buffers that it wrote, such as running statistics, become their mean over the ranks
 * that wrote them; those of integers become rank 0's. */
int wg__trainer_share_buffers(wg_trainer *trainer);
void wg__shared_buffers_free(wg__shared_buffers *shared);

/* ---- The same with a sharded optimizer (trainer_zero.c). A step has rounds, in each of which each
 * rank runs a batch, or none: of stage 2 one for each, of stage 1 only the last one. ---- */

int wg__zero_make(wg_trainer *trainer);
void wg__zero_free(wg__zero *zero);
void wg__zero_begin_step(wg_trainer *trainer);
void wg__zero_begin_round(wg_trainer *trainer);
int wg__zero_sum_in_backward(wg_trainer *trainer);
int wg__zero_end_round(wg_trainer *trainer);
int wg__zero_end_step(wg_trainer *trainer);
int wg__zero_take_sums(wg_trainer *trainer);

/* After the optimizer's step of stages 1 and 2: all ranks get the weights that each has stepped. */
int wg__zero_gather_weights(wg_trainer *trainer);

/* ---- Stage 3, whose weights are in shares while a run goes on. Where they are apart, a parameter
 * can be read in a round, and by rank 0 while the others wait in wg__optimizer_send_states. ---- */

/* Takes this rank's share of weights that are whole. */
void wg__zero_take_weights(wg_trainer *trainer);

/* The same, and drops the parameters' elements; brings those of all parameters back; and whether
 * they are back, as before the first run. Joining is collective. */
int wg__zero_part_weights(wg_trainer *trainer);
int wg__zero_join_weights(wg_trainer *trainer);
bool wg__zero_is_whole(const wg_trainer *trainer);

/* Rank 0: between these parameters can be read, and the others are served by
 * wg__optimizer_send_states. */
void wg__zero_begin_served(wg_trainer *trainer);
void wg__zero_end_served(wg_trainer *trainer);

/* wg_average_swap of the shares. Collective, unless the others serve rank 0. */
void wg__zero_swap_average(wg_trainer *trainer);

/* Rank 0, in the same way: runs a batch between these, which drops its gradients, for the order in
 * which layers are read; then all take that order. */
int wg__zero_begin_learning(wg_trainer *trainer);
void wg__zero_end_learning(wg_trainer *trainer);
int wg__zero_share_order(wg_trainer *trainer);

/* Bytes of the buckets that are under way, and of what comes in for them from other ranks. */
int64_t wg__zero_buffer_bytes(const wg__zero *zero);

/* Adds up what the ranks measured in a step, in the order of rank 0's metrics. */
int wg__trainer_sum_metrics(wg_trainer *trainer, double *loss, wg_metrics *metrics);

/* The place where the trainer stands, and going back to one. */
wg__trainer_place wg__trainer_here(const wg_trainer *trainer);
int wg__trainer_go_to(const wg_trainer *trainer, const wg__trainer_place *place);

/* What may be behind a loss or a gradient that is not finite in the step after the last that is
 * done: one clause into `hint`. Runs the step's batches again in anomaly mode, so that the first op
 * that made such a number is named with its layer. Drops the gradients. */
void wg__trainer_diagnose(wg_trainer *trainer, char *hint, size_t size);

/* Refuses a trainer of which a step failed half way. */
int wg__trainer_check_whole(const wg_trainer *trainer);

/* Whether all elements are finite. To be called with recording off. */
bool wg__is_finite(wg_tensor *x);

#endif
