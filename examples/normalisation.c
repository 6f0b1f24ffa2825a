/* Norms and activations as pictures: the histogram of a batch before and after BatchNorm,
 * LayerNorm and RMSNorm, and the curve of every activation with its derivative.
 *
 *     cc normalisation.c $(pkg-config --cflags --libs wengert) -lm -o normalisation
 *     ./normalisation        (writes norms.svg and activations.svg) */
#include <math.h>
#include <stdio.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

#include "svg.h"

enum { ROWS = 512, CHANNELS = 64, BINS = 60, POINTS = 201, COLUMNS = 4 };

/* ---- Norms ---- */

/* (512, 64): each channel has a different mean and variance, each row a different scale. */
static wg_tensor *make_batch(void) {
    wg_generator generator = {.seed = 3};
    wg_tensor *mean = wg_mul_scalar(wg_randn(&generator, WG_F32, WG_DIMS(1, CHANNELS)), 2);
    wg_tensor *spread = wg_exp(wg_randn(&generator, WG_F32, WG_DIMS(1, CHANNELS)));
    wg_tensor *size = wg_exp(wg_mul_scalar(wg_randn(&generator, WG_F32, WG_DIMS(ROWS, 1)), 0.5));
    wg_tensor *noise = wg_randn(&generator, WG_F32, WG_DIMS(ROWS, CHANNELS));
    return wg_mul(wg_add(wg_mul(noise, spread), mean), size);
}

/* The widest spread of means over the rows (axis 0: of channels; axis 1: of rows). */
static double spread_of_means(wg_tensor *x, int axis) {
    wg_tensor *means = wg_mean(x, WG_DIMS(axis), false);
    return wg_item(wg_sub(wg_max(means, WG_ALL, false), wg_min(means, WG_ALL, false)));
}

static void draw_histogram(FILE *file, int column, const char *name, wg_tensor *x) {
    static float values[ROWS * CHANNELS];
    double shares[BINS] = {0}, highest = 0;
    const svg_range range = {-6, 6};
    if (wg_to_array(x, values) < 0)
        return;
    for (int i = 0; i < ROWS * CHANNELS; i++) {
        const int bin = (int)floor((values[i] - range.low) / (range.high - range.low) * BINS);
        if (bin >= 0 && bin < BINS) /* the few values beyond are left out */
            shares[bin] += 100.0 / (ROWS * CHANNELS);
    }
    for (int i = 0; i < BINS; i++)
        highest = fmax(highest, shares[i]);
    char below[96];
    snprintf(below, sizeof below, "means of channels lie within %.2f, of rows within %.2f",
             spread_of_means(x, 0), spread_of_means(x, 1));
    const svg_panel panel = svg_panel_begin(file, column % 2, column / 2, range,
                                            (svg_range){0, highest * 1.08}, name, below);
    svg_bars(&panel, BINS, shares, column);
    printf("%-9s %s\n", name, below);
}

static int draw_norms(const char *path) {
    wg_batch_norm *batch = wg_batch_norm_new(NULL, "", CHANNELS, NULL);
    wg_layer_norm *layer = wg_layer_norm_new(NULL, "", CHANNELS, NULL);
    wg_rms_norm *rms = wg_rms_norm_new(NULL, "", CHANNELS, NULL);
    FILE *file = svg_begin(path, 2, 2, "One batch, 512 rows of 64 channels: % of its values");
    if (!file || wg_error_pending())
        return -1;
    wg_tensor *x = make_batch();
    draw_histogram(file, 0, "as it is", x);
    draw_histogram(file, 1, "BatchNorm", wg_batch_norm_forward(batch, x));
    draw_histogram(file, 2, "LayerNorm", wg_layer_norm_forward(layer, x));
    draw_histogram(file, 3, "RMSNorm", wg_rms_norm_forward(rms, x));
    wg_module_free(&batch->module);
    wg_module_free(&layer->module);
    wg_module_free(&rms->module);
    return svg_end(file);
}

/* ---- Activations ---- */

static void draw_activation(FILE *file, int index, wg_activation activation) {
    double x[POINTS], y[POINTS], slope[POINTS];
    for (int i = 0; i < POINTS; i++)
        x[i] = -4 + 8.0 * i / (POINTS - 1);
    wg_tensor *points = wg_from_array(WG_F64, WG_DIMS(POINTS), x);
    wg_set_requires_grad(points, true);
    wg_tensor *values = wg_activate(activation, points);
    if (wg_backward(wg_sum(values, WG_ALL, false), NULL) < 0 ||
        wg_to_array(wg_detach(values), y) < 0 || wg_to_array(wg_gradient(points), slope) < 0)
        return;
    svg_panel panel = svg_panel_begin(file, index % COLUMNS, index / COLUMNS, (svg_range){-4, 4},
                                      (svg_range){-2, 4}, wg_activation_name(activation), "");
    panel.legend_left = true;
    svg_curve(&panel, POINTS, x, slope, 1, "derivative");
    svg_curve(&panel, POINTS, x, y, 0, "value");
}

static int draw_activations(const char *path) {
    int count = 0;
    while (wg_activation_name((wg_activation)count))
        count++;
    FILE *file = svg_begin(path, COLUMNS, (count + COLUMNS - 1) / COLUMNS, "Activations");
    if (!file)
        return -1;
    for (int i = 0; i < count; i++)
        draw_activation(file, i, (wg_activation)i);
    printf("activations: %d\n", count);
    return svg_end(file);
}

int main(void) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int result = draw_norms("norms.svg") < 0 ? -1 : draw_activations("activations.svg");
    wg_scope_end(&scope, NULL);
    if (result < 0 || wg_error_pending()) {
        fprintf(stderr, "%s\n",
                wg_error_pending() ? wg_error_pending()->message : "a picture cannot be written");
        return 1;
    }
    return 0;
}
