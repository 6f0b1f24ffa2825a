/* The benches of `wengert bench'. */
#ifndef WG_BENCH_BENCH_H
#define WG_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/workload.h"
#include "cli/machine.h"
#include "cli/options.h"
#include "tensor/op.h"

/* The options that say what is trained, of `bench train' and `plan' (train.c). */
extern const wg_setting_table wg__workload_options;

/* ---- The benches: see `wengert bench --help`. argv[0] is "wengert bench NAME". ---- */

int wg__bench_attention(int argc, char **argv);
int wg__bench_checkpoint(int argc, char **argv);
int wg__bench_data(int argc, char **argv);
int wg__bench_gemm(int argc, char **argv);
int wg__bench_generate(int argc, char **argv);
int wg__bench_ops(int argc, char **argv);
int wg__bench_train(int argc, char **argv);

#endif
