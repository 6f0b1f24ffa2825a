/* Pictures that need no network, no fonts and no scripts: SVG for a page or a file of its own, and
 * bitmaps. Colours named var(--c0) follow the style of the page. */
#ifndef WG_CLI_DRAW_H
#define WG_CLI_DRAW_H

#include "cli/curves.h"

/* Writes text with <, >, & and " as HTML and SVG have them. */
void wg__draw_text(FILE *file, const char *text);

/* A filled rectangle in an SVG that is open. */
void wg__draw_rectangle(FILE *file, double x, double y, double width, double height,
                        const char *fill, double opacity);

/* A curve of each metric of that kind, of training and of evaluations, with legend and axes. */
void wg__draw_curves(FILE *file, const wg__run_history *run, wg__panel_kind kind);

/* A small histogram below its name; nothing if no value is finite. */
void wg__draw_histogram(FILE *file, const char *name, int64_t count, const float *values,
                        bool is_gradient);

/* An image of (rows, columns) shares from 0, white, to 1, blue: a bitmap of 8 bits in base64. Small
 * shares are made visible by the square root. */
void wg__draw_bitmap(FILE *file, int64_t rows, int64_t columns, const float *shares);

#endif
