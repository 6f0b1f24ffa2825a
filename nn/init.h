/* Initial values of parameters.
 *
 *     wg_initializer how = {WG_INIT_TRUNCATED_NORMAL, 0.02};
 *     wg_initialize(linear->weight, &how, wg_module_generator(&linear->module));
 *
 * fan_in and fan_out are those of a weight (O, I, ...): I and O times the product of the axes that
 * follow (1 for a matrix). */
#ifndef WG_NN_INIT_H
#define WG_NN_INIT_H

#include "../tensor/tensor.h"

WG_BEGIN_DECLS

typedef enum wg_init_kind {
    WG_INIT_DEFAULT,          /* the layer's own default */
    WG_INIT_ZEROS,            /* 0 */
    WG_INIT_ONES,             /* 1 */
    WG_INIT_UNIFORM,          /* uniform in [-scale, scale) */
    WG_INIT_NORMAL,           /* normal with mean 0 and standard deviation scale */
    WG_INIT_TRUNCATED_NORMAL, /* the same, drawn again while beyond 2 scale, as TensorFlow does */
    WG_INIT_XAVIER_UNIFORM,  /* uniform with variance scale^2 2/(fan_in + fan_out)  (Glorot 2010) */
    WG_INIT_XAVIER_NORMAL,   /* normal with that variance */
    WG_INIT_KAIMING_UNIFORM, /* uniform with variance scale^2 / fan_in   (He et al. 2015); scale
                                sqrt(2) is the gain of ReLU */
    WG_INIT_KAIMING_NORMAL   /* normal with that variance */
} wg_init_kind;

/* All zero, in a layer's options, is the layer's default. */
typedef struct wg_initializer {
    wg_init_kind kind;
    double scale; /* see the kinds; 0 is 1 */
} wg_initializer;

/* Fills a floating tensor, which may be a leaf that requires a gradient. NULL is the default
 * generator. Every random kind consumes one draw. -1 with [DTYPE; ARGUMENT for WG_INIT_DEFAULT, no
 * kind, a scale that is negative or not finite, or an expanded view; SHAPE below rank 2 for Xavier
 * and Kaiming] */
WG_API int wg_initialize(wg_tensor *x, const wg_initializer *how, wg_generator *generator);

WG_END_DECLS

#endif
