/* The benches of `wengert bench'. */
#ifndef WG_BENCH_BENCH_H
#define WG_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/workload.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "tensor/op.h"

/* Times those ops (count 0: all) on a handful of elements, recorded, for so long each, and prints a
 * table or (rows not NULL) appends to that. -1 with an error. */
int wg__bench_small_ops(int count, const wg_op *const *ops, double seconds, json_t *rows);

/* ---- The options that say what is trained, of `bench train' and `plan' (train.c) ---- */

enum {
    WG__KEY_PRESET = WG__KEY_OWN,
    WG__KEY_BATCH,
    WG__KEY_SEQ,
    WG__KEY_VOCAB,
    WG__KEY_RECOMPUTE,
    WG__KEY_DTYPE,
    WG__KEY_BENCH /* the first of a bench's own */
};

#define WG__OPTIONS_WORKLOAD                                                                       \
    {"preset", WG__KEY_PRESET, "NAME", 0, "The size of the model (default: one of MODEL's)", 0},   \
        {"batch", WG__KEY_BATCH, "N", 0, "Sequences in a batch (default: the preset's)", 0},       \
        {"seq",                                                                                    \
         WG__KEY_SEQ,                                                                              \
         "N",                                                                                      \
         0,                                                                                        \
         "Tokens in a sequence; of encoder-decoders in source and target each (default: the "      \
         "preset's)",                                                                              \
         0},                                                                                       \
        {"vocab", WG__KEY_VOCAB, "N", 0, "Tokens in the vocabulary (default: the preset's)", 0},   \
        {"dtype",                                                                                  \
         WG__KEY_DTYPE,                                                                            \
         "TYPE",                                                                                   \
         0,                                                                                        \
         "f32, or bf16: mixed precision, as of `wengert pretrain' (default: f32)",                 \
         0},                                                                                       \
    {                                                                                              \
        "recompute", WG__KEY_RECOMPUTE, NULL, 0,                                                   \
            "Keep of each layer what goes into it alone, and run it once more in backward", 0      \
    }

/* Parses them, and MODEL. ARGP_ERR_UNKNOWN for other keys. */
error_t wg__parse_workload(int key, char *text, struct argp_state *state, wg__workload *workload);

/* f32 or bf16; leaves with a message for another name. */
wg_dtype wg__parse_product_dtype(const struct argp_state *state, const char *text);

/* ---- The benches: see `wengert bench --help`. argv[0] is "wengert bench NAME". ---- */

int wg__bench_attention(int argc, char **argv);
int wg__bench_checkpoint(int argc, char **argv);
int wg__bench_data(int argc, char **argv);
int wg__bench_gemm(int argc, char **argv);
int wg__bench_generate(int argc, char **argv);
int wg__bench_ops(int argc, char **argv);
int wg__bench_train(int argc, char **argv);

#endif
