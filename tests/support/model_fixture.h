/* Comparing a model with PyTorch's. A folder that a script in tests/fixtures made has the weights,
 * the gradients and the names of all parameters in the order of the module tree (tied ones once),
 * and the results of a run. */
#ifndef WG_TESTS_MODEL_FIXTURE_H
#define WG_TESTS_MODEL_FIXTURE_H

#include "models/bert.h"
#include "nn/module.h"
#include "optim/optimizer.h"

/* The encoder of the folders bert and bert_heads, without dropout. */
wg_bert_config bert_fixture_config(void);

/* Copies the folder's weights into the module, then casts it to the dtype. */
void load_model_fixture(const char *folder, wg_module *module, wg_dtype dtype);

/* Fails the test unless |x - expected| <= tolerance * max |expected| everywhere. */
void assert_relative(wg_tensor *x, wg_tensor *expected, double tolerance);

/* Fails unless every parameter has its gradient of the folder's array `gradients`, by
 * assert_relative. The gradient of a bias in front of a softmax is 0 up to rounding: its tolerance
 * is relative to another parameter's gradient. */
void assert_model_gradients(const char *folder, wg_module *module, double tolerance);

/* Fails unless paths and shapes are those of the folder's parameters.txt. */
void assert_model_paths(const char *folder, wg_module *module);

/* Fails unless ten steps of the optimizer at a learning rate of 2e-3 have the losses of
 * the array `adamw_losses`, by that relative tolerance. Frees the optimizer. */
typedef wg_tensor *(*model_loss)(void *context);
void assert_model_training(const char *folder, wg_module *module, wg_optimizer *optimizer,
                           model_loss loss, void *context, double tolerance);

/* What a model makes of ids alone: hidden states, logits everywhere; the loss of labels (B, T). */
wg_tensor *hidden_of_ids(const wg_model *model, wg_tensor *ids);
wg_tensor *logits_of_ids(const wg_model *model, wg_tensor *ids);
wg_tensor *loss_of_ids(const wg_model *model, wg_tensor *ids, wg_tensor *labels);

/* The loss of an encoder-decoder, given sources (B, S) with their `keep`, or NULL, for labels (B,
 * T) that it predicts one after the other. */
wg_tensor *pair_loss_of(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                        wg_tensor *labels);

#endif
