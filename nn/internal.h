/* What the layers share. */
#ifndef WG_NN_INTERNAL_H
#define WG_NN_INTERNAL_H

#include "nn/init.h"
#include "nn/module.h"

/* A parameter of that shape, filled from the root's generator as `how` says, or as `otherwise` says
 * where `how` is NULL or leaves it to the layer. NULL with an error. */
wg_tensor *wg__parameter(wg_module *module, const char *name, int ndim, const int64_t *shape,
                         const wg_initializer *how, const wg_initializer *otherwise);

/* The same for what begins at one value and is left alone by weight decay: biases (n) and norms. */
wg_tensor *wg__vector_parameter(wg_module *module, const char *name, int64_t n, double value);

/* -1 with ARGUMENT unless size >= 1: "where: what is size; it must be at least 1". */
int wg__check_size(const char *where, const char *what, int64_t size);

/* -1 with ARGUMENT unless 0 <= p < 1. */
int wg__check_probability(const char *where, const char *what, double p);

/* How products want a matrix (O, I) that is to be quantized so: its rows side by side, and in bf16
 * where they are no whole blocks. */
wg_quantization wg__quantization_for(const wg_tensor *weight, wg_quantization quantization);

/* Puts `tensor`, which is kept, as a buffer into the place that `parameter` has in this module, and
 * returns it. Where other slots are tied to this one, nothing is done and `parameter` returned.
 * NULL for NULL. */
wg_tensor *wg__module_replace(wg_module *module, wg_tensor *parameter, wg_tensor *tensor);

#endif
