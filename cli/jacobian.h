/* Pictures of Jacobians, on the terminal or in an SVG file: see jacobian.c. */
#ifndef WG_CLI_JACOBIAN_H
#define WG_CLI_JACOBIAN_H

#include <stdio.h>

#include "autograd/functional.h"

typedef struct wg__jacobian_picture {
    const char *path; /* of an SVG file; NULL: the terminal */
    FILE *file;       /* what stands in it so far, without its head */
    double height;
} wg__jacobian_picture;

/* -1 with [IO]. `end` writes the file, also after an error between. */
int wg__jacobian_picture_begin(wg__jacobian_picture *picture, const char *path);
int wg__jacobian_picture_end(wg__jacobian_picture *picture);

/* Draws d output / d input of each pair that has a derivative. Returns how many there are, or -1
 * with [as wg_jacobian]. */
int wg__show_jacobians(wg__jacobian_picture *picture, const char *name, wg_function function,
                       void *context, int input_count, wg_tensor *const *inputs, int output_count);

#endif
