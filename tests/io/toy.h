/* The models and files that tests of checkpoints save: a small model with its optimizer, and a
 * small file with every kind of value. */
#ifndef WG_TESTS_TOY_H
#define WG_TESTS_TOY_H

#include "io/checkpoint/checkpoint.h"
#include "tests/support/testing.h"

/* bert.table (7, 4), bert.layer.0.weight (width, 4), bert.layer.0.bias (4), decoder.weight (tied to
 * the table), the buffer bert.ids (5), and an optimizer of the table and the bias at step `seed`.
 * Values depend on `seed`. It is freed when the test ends. */
typedef struct toy {
    wg_module module;
    wg_tensor *table, *weight, *bias;
    wg_optimizer *optimizer;
} toy;

toy *toy_new(int64_t width, uint64_t seed);

/* Writes /config, /train/step, the model and the optimizer; an error stays pending. */
void save_toy(const char *path, toy *model);

/* A new toy of width 4 and seed 1, after it was saved. */
toy *saved_toy(const char *path);

/* Commits a file and opens it; it is closed when the test ends. */
wg_checkpoint *reopened(wg_checkpoint *file, const char *path);

/* Reads the model and the optimizer; -1 with an error. */
int load_toy(const char *path, toy *model);

void assert_same_toys(const toy *a, const toy *b);

/* Writes a small file with every kind of value. */
void save_sampler(const char *path);

#endif
