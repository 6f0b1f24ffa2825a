/* Comparing a model with PyTorch's. A folder that a script in tests/fixtures made has the weights,
 * the gradients and the names of all parameters in the order of the module tree (tied ones once),
 * and the results of a run. */
#ifndef WG_TESTS_MODEL_FIXTURE_H
#define WG_TESTS_MODEL_FIXTURE_H

#include "models/bert.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "tests/support/testing.h"

/* The encoder of the folders bert and bert_heads, without dropout. */
wg_bert_config bert_fixture_config(void);

/* An object of these members, written with ' for ", such as "'vocab_size': 40, 'hidden_size': 16".
 */
json_t *settings_object(const char *settings);

/* The model of a preset with other settings, as of settings_object. */
wg_model preset_model(const char *preset, const char *settings, uint64_t seed);

/* The folders of models whose forward and loss need no special head, up to NULL; the model of one,
 * new or with the folder's weights, freed with free_model. */
const char *fixture_folder(int index);
wg_model new_fixture_model(const char *folder);
wg_model load_fixture_model(const char *folder, wg_dtype dtype);

/* Frees a model and the tensors of the root scope. */
void free_model(wg_model *model);

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
