/* The benches of `wengert bench'. */
#ifndef WG_BENCH_BENCH_H
#define WG_BENCH_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/machine.h"
#include "tensor/op.h"

/* Times those ops (count 0: all) on a handful of elements, recorded, for so long each, and prints a
 * table or (rows not NULL) appends to that. -1 with an error. */
int wg__bench_small_ops(int count, const wg_op *const *ops, double seconds, json_t *rows);

/* ---- The benches: see `wengert bench --help`. argv[0] is "wengert bench NAME". ---- */

int wg__bench_attention(int argc, char **argv);
int wg__bench_checkpoint(int argc, char **argv);
int wg__bench_data(int argc, char **argv);
int wg__bench_gemm(int argc, char **argv);
int wg__bench_generate(int argc, char **argv);
int wg__bench_ops(int argc, char **argv);
int wg__bench_train(int argc, char **argv);

#endif
