/* The benches of `wengert bench'. */
#ifndef WG_BENCH_BENCH_H
#define WG_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/machine.h"
#include "cli/options.h"
#include "tensor/op.h"
#include "optim/optimizer.h"
#include "models/model.h"

/* The options of the workload, of `bench train' and `plan' (train.c). */
extern const wg_setting_table wg__workload_options;

/* ---- The benches: see `wengert bench --help`. argv[0] is "wengert bench NAME". ---- */

int wg__bench_attention(int argc, char **argv);
int wg__bench_checkpoint(int argc, char **argv);
int wg__bench_data(int argc, char **argv);
int wg__bench_gemm(int argc, char **argv);
int wg__bench_generate(int argc, char **argv);
int wg__bench_ops(int argc, char **argv);
int wg__bench_train(int argc, char **argv);

/* ---- A training of random tokens: what `wengert bench train' times ----
 *
 * One batch is drawn and trained on again and again, without dropout, usually by AdamW, and without
 * clipping: forward, backward and with it the step, as a trainer does without clipping. */

#define WG__WORKLOAD_RATE 1e-4 /* of learning */

/* A model and its batch. The caller fills in the first part. */
typedef struct wg__workload {
    const char *model;       /* a model type ("bert"), "mlp", or one of the presets of any */
    const char *preset;      /* of the type; NULL: its usual one */
    int64_t batch, sequence; /* B, T; 0: the preset's usual. Encoder-decoders have a source and a
                              * target of T tokens each */
    int64_t vocabulary;      /* 0: the preset's usual */
    bool recompute;          /* layers run again in backward, to keep less */
    int bf16;                /* products in mixed precision; of wg__product_dtype_name */
    const char *rule;        /* the name of the optimizer; NULL: "adamw" */
    bool usual_rule;         /* if `rule` is NULL: choose the optimizer of `pretrain', and store its
                              * name in `rule` */

    wg_dtype dtype;            /* of products */
    const wg_model_type *type; /* NULL: mlp */
    wg_model net;              /* of a type */
    wg_module *module;
    wg_optimizer *optimizer;
    int64_t tokens; /* a step: all positions; with an encoder-decoder, all target positions */
    wg_scope scope; /* of the batch */

    /* The batch and its labels. */
    wg_model_inputs inputs;
    wg_tensor *source, *labels, *pair_labels; /* NULL where there are none */
    struct wg_linear *hidden, *output;        /* of mlp, whose input is `features` */
    wg_tensor *features;
} wg__workload;

/* Makes the model, the batch and the optimizer. A scope that is opened later must be closed before
 * wg__workload_end. After an error do not call wg__workload_end. -1 with [ARGUMENT for an unknown
 * model or preset, with a list of the known ones; any error of making the model] */
int wg__workload_begin(wg__workload *workload);
void wg__workload_end(wg__workload *workload);

/* A second optimizer like the workload's, without parameters, for use with a trainer. Freed with
 * wg_optimizer_free. [as wg_optimizer_new] */
wg_optimizer *wg__workload_optimizer(const wg__workload *workload);

/* The loss of the batch. [scope] */
wg_tensor *wg__workload_loss(wg__workload *workload);

/* One step; its loss, NaN with an error. */
double wg__workload_step(wg__workload *workload);

#endif
