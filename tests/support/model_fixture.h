/* A model beside PyTorch's: folders that scripts in tests/fixtures made, with the weights, the
 * gradients and the names of all parameters, in the order of the module tree (tied ones once), and
 * what a run gave. */
#ifndef WG_TESTS_MODEL_FIXTURE_H
#define WG_TESTS_MODEL_FIXTURE_H

#include "models/bert.h"
#include "nn/module.h"
#include "optim/optimizer.h"

/* NAME.npy of a folder in tests/fixtures. */
wg_tensor *model_fixture(const char *folder, const char *name);

/* The encoder of the folders bert and bert_heads, without dropout. */
wg_bert_config bert_fixture_config(void);

/* Gives the module the folder's weights, then that dtype. */
void load_model_fixture(const char *folder, wg_module *module, wg_dtype dtype);

/* Fails the test unless |x - expected| <= tolerance * max |expected| everywhere. */
void assert_relative(wg_tensor *x, wg_tensor *expected, double tolerance);

/* Every parameter has its gradient, of the folder's gradients.npy, by assert_relative; that of a
 * bias which a softmax does not see, and which is 0 but for rounding, by the size of another one.
 */
void assert_model_gradients(const char *folder, wg_module *module, double tolerance);

/* Paths and shapes are those of the folder's parameters.txt. */
void assert_model_paths(const char *folder, wg_module *module);

/* Ten steps of the optimizer, which is freed, at a rate of 2e-3 lose what adamw_losses.npy says, by
 * that relative tolerance. */
typedef wg_tensor *(*model_loss)(void *context);
void assert_model_training(const char *folder, wg_module *module, wg_optimizer *optimizer,
                           model_loss loss, void *context, double tolerance);

#endif
