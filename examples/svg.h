/* A little SVG, for examples that draw: panels with axes, curves, bars and a legend.
 *
 *     FILE *file = svg_begin("picture.svg", 2, 1, "A title");
 *     svg_panel panel = svg_panel_begin(file, 0, 0, (svg_range){0, 1}, (svg_range){0, 9}, "x",
 * "y"); svg_curve(&panel, count, xs, ys, 0, "named in the legend"); svg_end(file); */
#ifndef EXAMPLES_SVG_H
#define EXAMPLES_SVG_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    SVG_WIDTH = 380,
    SVG_HEIGHT = 260,
    SVG_LEFT = 58,
    SVG_TOP = 34,
    SVG_GAP = 46,
    SVG_HEAD = 40
};

typedef struct svg_range {
    double low, high;
} svg_range;

typedef struct svg_panel {
    FILE *file;
    double left, top, width, height;
    svg_range x, y;
    bool legend_left; /* instead of at the right */
    int named;        /* curves in the legend */
} svg_panel;

/* Colours that people with any kind of sight tell apart (Okabe & Ito 2008). */
static inline const char *svg_colour(int index) {
    static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                          "#e69f00", "#56b4e9", "#000000", "#8a7a00"};
    return colours[index % 8];
}

/* A picture of so many panels side by side and below each other; NULL if the file is not to be
 * written. */
static inline FILE *svg_begin(const char *path, int columns, int rows, const char *title) {
    FILE *file = fopen(path, "w");
    const int width = columns * SVG_WIDTH + 20, height = rows * SVG_HEIGHT + SVG_HEAD;
    if (!file)
        return NULL;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"26\" font-size=\"17\" text-anchor=\"middle\">%s</text>\n",
            width, height, width, height, width / 2, title);
    return file;
}

/* Ends the picture; -1 if it could not be written. */
static inline int svg_end(FILE *file) {
    fprintf(file, "</svg>\n");
    int bad = ferror(file);
    return fclose(file) != 0 || bad ? -1 : 0;
}

static inline double svg_x(const svg_panel *p, double x) {
    return p->left + (x - p->x.low) / (p->x.high - p->x.low) * p->width;
}

static inline double svg_y(const svg_panel *p, double y) {
    const double share = (y - p->y.low) / (p->y.high - p->y.low);
    return p->top + (1 - fmin(fmax(share, -0.02), 1.02)) * p->height;
}

/* A round distance between ticks, for about four ticks. */
static inline double svg_step(svg_range range) {
    const double raw = (range.high - range.low) / 4, power = pow(10, floor(log10(raw)));
    return power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
}

static inline void svg_ticks(const svg_panel *p) {
    const double dx = svg_step(p->x), dy = svg_step(p->y), bottom = p->top + p->height;
    for (double x = ceil(p->x.low / dx) * dx; x <= p->x.high + dx * 1e-6; x += dx)
        fprintf(p->file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"11\">%g</text>\n",
                svg_x(p, x), p->top, svg_x(p, x), bottom, svg_x(p, x), bottom + 14,
                fabs(x) < dx * 1e-6 ? 0 : x);
    for (double y = ceil(p->y.low / dy) * dy; y <= p->y.high + dy * 1e-6; y += dy)
        fprintf(p->file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" font-size=\"11\">%g</text>\n",
                p->left, svg_y(p, y), p->left + p->width, svg_y(p, y), p->left - 5, svg_y(p, y) + 4,
                fabs(y) < dy * 1e-6 ? 0 : y);
}

/* A panel at that place, with its axes; `title` stands above it, `below` under its x axis. */
static inline svg_panel svg_panel_begin(FILE *file, int column, int row, svg_range x, svg_range y,
                                        const char *title, const char *below) {
    svg_panel p = {.file = file,
                   .left = column * SVG_WIDTH + SVG_LEFT,
                   .top = row * SVG_HEIGHT + SVG_HEAD + SVG_TOP - 12,
                   .width = SVG_WIDTH - SVG_LEFT - 14,
                   .height = SVG_HEIGHT - SVG_TOP - SVG_GAP + 12,
                   .x = x,
                   .y = y};
    svg_ticks(&p);
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
            "stroke=\"#444\"/>\n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
            "font-size=\"13\">%s</text>\n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
            "</text>\n",
            p.left, p.top, p.width, p.height, p.left + p.width / 2, p.top - 6, title,
            p.left + p.width / 2, p.top + p.height + 31, below);
    return p;
}

/* A curve through the points within the panel. `name` is its entry in the legend; NULL: none. */
static inline void svg_curve(svg_panel *p, int count, const double *x, const double *y, int colour,
                             const char *name) {
    fprintf(p->file, "<polyline fill=\"none\" stroke-width=\"1.8\" stroke=\"%s\" points=\"",
            svg_colour(colour));
    for (int i = 0; i < count; i++)
        if (y[i] >= p->y.low && y[i] <= p->y.high)
            fprintf(p->file, "%.1f,%.1f ", svg_x(p, x[i]), svg_y(p, y[i]));
    fprintf(p->file, "\"/>\n");
    if (!name)
        return;
    const double top = p->top + 16 + 15 * p->named++,
                 left = p->legend_left ? p->left + 4 : p->left + p->width - 150;
    fprintf(p->file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"146\" height=\"15\" fill=\"white\" "
            "fill-opacity=\"0.8\"/><line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
            "stroke-width=\"2.5\" stroke=\"%s\"/><text x=\"%.1f\" y=\"%.1f\" "
            "font-size=\"11\">%s</text>\n",
            left, top - 12, left + 4, top - 4, left + 22, top - 4, svg_colour(colour), left + 27,
            top, name);
}

/* Bars of equal width from x.low to x.high. */
static inline void svg_bars(const svg_panel *p, int count, const double *heights, int colour) {
    const double width = p->width / count, bottom = svg_y(p, 0);
    for (int i = 0; i < count; i++)
        fprintf(p->file,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                p->left + i * width, svg_y(p, heights[i]), width * 0.92,
                bottom - svg_y(p, heights[i]), svg_colour(colour));
}

#endif
