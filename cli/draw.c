/* Pictures: see draw.h. */
#include "base/internal.h"
#include "cli/draw.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

void wg__draw_text(FILE *file, const char *text) {
    static const char special[] = "<>&\"";
    static const char *const escapes[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    for (const char *c = text; *c; c++) {
        const char *place = strchr(special, *c);
        if (place)
            fputs(escapes[place - special], file);
        else /* XML has no control characters but these two */
            fputc(iscntrl((unsigned char)*c) && *c != '\n' && *c != '\t' ? '?' : *c, file);
    }
}

void wg__draw_rectangle(FILE *file, double x, double y, double width, double height,
                        const char *fill, double opacity) {
    fprintf(file, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"%s\"", x, y, width,
            height, fill);
    if (opacity < 1)
        fprintf(file, " fill-opacity=\"%.3f\"", opacity);
    fputs("/>\n", file);
}

enum { WIDTH = 960, HEIGHT = 320, LEFT = 56, RIGHT = 16, TOP = 12, BOTTOM = 34, COLORS = 6 };

typedef struct axes {
    double x_low, x_high, y_low, y_high;
} axes;

/* A step of 1, 2 or 5 times a power of ten with about `count` of them in a range. */
static double round_step(double range, int count) {
    const double raw = range / count, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static double x_of(const axes *a, double x) {
    return LEFT + (x - a->x_low) / (a->x_high - a->x_low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const axes *a, double y) {
    return HEIGHT - BOTTOM - (y - a->y_low) / (a->y_high - a->y_low) * (HEIGHT - TOP - BOTTOM);
}

static void draw_axes(FILE *file, const axes *a) {
    const double dx = round_step(a->x_high - a->x_low, 8), dy = round_step(a->y_high - a->y_low, 5);
    for (double y = ceil(a->y_low / dy) * dy; y <= a->y_high + 1e-9 * dy; y += dy)
        fprintf(file,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>",
                LEFT, WIDTH - RIGHT, y_of(a, y), y_of(a, y), LEFT - 8, y_of(a, y) + 4,
                fabs(y) < 1e-9 * dy ? 0 : y);
    for (double x = ceil(a->x_low / dx) * dx; x <= a->x_high + 1e-9 * dx; x += dx)
        fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>", x_of(a, x),
                HEIGHT - BOTTOM + 18, x);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step</text>", WIDTH - RIGHT,
            HEIGHT - 2);
}

typedef struct drawn {
    wg__curve curve;
    const char *metric;
    bool is_evaluation, is_baseline;
    int color;
} drawn;

static void draw_curve(FILE *file, const axes *a, const drawn *d) {
    const wg__curve *curve = &d->curve;
    fprintf(file, "<polyline fill=\"none\" stroke=\"var(--c%d)\" %s points=\"", d->color % COLORS,
            d->is_baseline     ? "stroke-width=\"2\" stroke-dasharray=\"5 4\""
            : d->is_evaluation ? "stroke-width=\"2.5\""
                               : "stroke-width=\"1\" opacity=\"0.75\"");
    for (int64_t i = 0; i < curve->count; i++)
        fprintf(file, "%.1f,%.1f ", x_of(a, curve->steps[i]), y_of(a, curve->values[i]));
    fputs("\"/>", file);
    if (curve->count == 1) /* which is no line */
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"var(--c%d)\"/>",
                x_of(a, curve->steps[0]), y_of(a, curve->values[0]), d->color % COLORS);
}

static void draw_legend(FILE *file, const drawn *curves, int count) {
    char title[64];
    fputs("<p class=\"note\">", file);
    for (int i = 0; i < count; i++) {
        fprintf(file,
                "<svg style=\"display:inline-block;margin:0 4px 0 12px\" width=\"26\" "
                "height=\"10\"><line x2=\"26\" y1=\"5\" y2=\"5\" stroke=\"var(--c%d)\" "
                "stroke-width=\"%d\" %s/></svg>",
                curves[i].color % COLORS, curves[i].is_evaluation ? 3 : 1,
                curves[i].is_baseline ? "stroke-dasharray=\"5 4\"" : "");
        wg__draw_text(file, wg__metric_title(curves[i].metric, title, sizeof title));
        fputs(curves[i].is_evaluation ? ", held out" : ", training", file);
    }
    fputs("</p>\n", file);
}

void wg__draw_curves(FILE *file, const wg__run_history *run, wg__panel_kind kind) {
    enum { POINTS = 400, MOST = 2 * WG_HISTORY_COLUMNS };
    static drawn curves[MOST];
    const wg_history *training = &run->training, *evaluation = &run->evaluation;
    int count = 0, color = 0;
    for (int i = 0; i < training->column_count; i++) {
        const char *metric = training->names[i];
        if (!wg__belongs(run, metric, kind))
            continue;
        curves[count++] =
            (drawn){wg__curve_of(training, metric, 1, POINTS), metric, false, false, color};
        if (wg_history_column(evaluation, metric))
            curves[count++] =
                (drawn){wg__curve_of(evaluation, metric, 1, POINTS), metric, true, false, color};
        color++;
    }
    for (int i = 0; i < evaluation->column_count; i++) {
        const char *metric = evaluation->names[i];
        if (wg__belongs(run, metric, kind) && !wg_history_column(training, metric))
            curves[count++] = (drawn){wg__curve_of(evaluation, metric, 1, POINTS), metric, true,
                                      true, COLORS - 1};
    }
    axes a = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int c = 0; c < count; c++)
        for (int64_t i = 0; i < curves[c].curve.count; i++) {
            const double x = curves[c].curve.steps[i], y = curves[c].curve.values[i];
            a = (axes){fmin(a.x_low, x), fmax(a.x_high, x), fmin(a.y_low, y), fmax(a.y_high, y)};
        }
    if (isfinite(a.x_low) && isfinite(a.y_low)) {
        a.x_low = fmin(a.x_low, 0);
        a.x_high = fmax(a.x_high, a.x_low + 1);
        const double margin = fmax(0.04 * (a.y_high - a.y_low), 1e-6 * fabs(a.y_high) + 1e-12);
        a.y_low = kind == WG__PANEL_ACCURACIES ? 0 : a.y_low - margin;
        a.y_high += margin;
        draw_legend(file, curves, count);
        fprintf(file, "<svg viewBox=\"0 0 %d %d\">", WIDTH, HEIGHT);
        draw_axes(file, &a);
        for (int i = 0; i < count; i++)
            draw_curve(file, &a, &curves[i]);
        fputs("</svg>\n", file);
    }
    for (int i = 0; i < count; i++) {
        free(curves[i].curve.steps);
        free(curves[i].curve.values);
    }
}

void wg__draw_histogram(FILE *file, const char *name, int64_t count, const float *values,
                        bool is_gradient) {
    enum { BINS = 40, W = 160, H = 60 };
    int64_t bins[BINS] = {0}, most = 1, finite = 0;
    double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        finite++;
        sum += values[i];
        squares += (double)values[i] * values[i];
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (finite == 0)
        return;
    const double mean = sum / (double)finite,
                 deviation = sqrt(fmax(squares / (double)finite - mean * mean, 0));
    double from = fmax(low, mean - 4 * deviation), to = fmin(high, mean + 4 * deviation);
    if (!(to > from)) {
        from = mean - 0.5;
        to = mean + 0.5;
    }
    for (int64_t i = 0; i < count; i++) {
        const double place = (values[i] - from) / (to - from) * BINS;
        if (isfinite(values[i]) && place > -1e-9 && place <= BINS + 1e-9)
            bins[place < 0 ? 0 : place >= BINS ? BINS - 1 : (int)place]++;
    }
    for (int i = 0; i < BINS; i++)
        most = bins[i] > most ? bins[i] : most;
    fputs("<div class=\"cell\">", file);
    wg__draw_text(file, name);
    fprintf(file, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">", W, H + 14);
    for (int i = 0; i < BINS; i++) {
        const double height = fmax(1, round(10.0 * H * (double)bins[i] / (double)most) / 10);
        if (bins[i])
            wg__draw_rectangle(file, W / BINS * i, H - height, 3.5, height,
                               is_gradient ? "var(--c1)" : "var(--c0)", 1);
    }
    fprintf(file,
            "<text x=\"0\" y=\"%d\" style=\"font-size:9px\">%.3g</text><text x=\"%d\" y=\"%d\" "
            "text-anchor=\"end\" style=\"font-size:9px\">%.3g</text></svg>"
            "<em>mean %.2g, deviation %.2g</em></div>\n",
            H + 12, from, W, H + 12, to, mean, deviation);
}

/* Base64 of the bytes so far, three at a time. */
typedef struct encoder {
    FILE *file;
    unsigned held, count;
} encoder;

static void put_byte(encoder *e, unsigned byte) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    e->held = e->held << 8 | (byte & 255);
    if (++e->count == 3) {
        for (int shift = 18; shift >= 0; shift -= 6)
            fputc(digits[e->held >> shift & 63], e->file);
        e->held = e->count = 0;
    }
}

void wg__draw_bitmap(FILE *file, int64_t rows, int64_t columns, const float *shares) {
    enum { HEADER = 54, PALETTE = 256 };
    encoder e = {.file = file};
    const unsigned stride = (unsigned)(columns + 3) / 4 * 4, data = HEADER + 4 * PALETTE;
    const unsigned header[] = {data + stride * (unsigned)rows,
                               0,
                               data,
                               40,
                               (unsigned)columns,
                               (unsigned)rows,
                               1 | 8 << 16, /* one plane of 8 bits */
                               0,
                               0,
                               0,
                               0,
                               PALETTE,
                               0};
    put_byte(&e, 'B');
    put_byte(&e, 'M');
    for (size_t i = 0; i < sizeof header; i++)
        put_byte(&e, header[i / 4] >> 8 * (i % 4));
    for (unsigned i = 0; i < PALETTE; i++) { /* from white to #0b4f8a */
        put_byte(&e, 255 - i * (255 - 0x8a) / 255);
        put_byte(&e, 255 - i * (255 - 0x4f) / 255);
        put_byte(&e, 255 - i * (255 - 0x0b) / 255);
        put_byte(&e, 0);
    }
    for (int64_t r = rows - 1; r >= 0; r--) /* from the last row to the first */
        for (unsigned c = 0; c < stride; c++)
            put_byte(&e, c < columns
                             ? (unsigned)(255 * sqrt(fmin(fmax(shares[r * columns + c], 0), 1)))
                             : 0);
    while (e.count) /* a reader of a bitmap passes over zeros behind it */
        put_byte(&e, 0);
}

int wg__run_history_read(wg__run_history *run, const char *path) {
    *run = (wg__run_history){.path = path};
    wg_checkpoint *file = wg_checkpoint_open(path);
    if (!file)
        return -1;
    int result = wg_history_get(&run->training, file, WG_HISTORY_TRAINING);
    if (result == 0)
        result = wg_history_get(&run->evaluation, file, WG_HISTORY_EVALUATION);
    wg_checkpoint_close(file);
    return result;
}

bool wg__belongs(const wg__run_history *run, const char *metric, wg__panel_kind which) {
    bool has_parts = false;
    if (which == WG__PANEL_ACCURACIES)
        return wg__ends_with(metric, "accuracy");
    for (int i = 0; i < run->training.column_count; i++)
        has_parts |= wg__ends_with(run->training.names[i], "_loss");
    return has_parts ? wg__ends_with(metric, "_loss") : strcmp(metric, "loss") == 0;
}

bool wg__has_panel(const wg__run_history *run, wg__panel_kind which) {
    for (int i = 0; i < run->training.column_count; i++)
        if (wg__belongs(run, run->training.names[i], which))
            return true;
    return false;
}

/* The finite points of a column. A point may be the mean of several steps; its count is their
 * number. */
wg__curve wg__curve_of(const wg_history *history, const char *metric, double smooth, int64_t most) {
    const double *values = wg_history_column(history, metric),
                 *steps = wg_history_column(history, "step"),
                 *counts = wg_history_column(history, "count");
    const size_t rows = (size_t)history->row_count;
    wg__curve curve = {0};
    if (!values)
        return curve;
    double *weights = wg__cli_calloc(rows, sizeof *weights);
    curve.steps = wg__cli_calloc(rows, sizeof *curve.steps);
    curve.values = wg__cli_calloc(rows, sizeof *curve.values);
    for (int64_t i = 0; i < history->row_count; i++)
        if (isfinite(values[i])) {
            weights[curve.count] = counts && isfinite(counts[i]) ? counts[i] : 1;
            curve.steps[curve.count] = steps[i];
            curve.values[curve.count++] = values[i];
        }

    /* Smooth: the weighted mean of the points in (step - smooth, step]. */
    double *means = wg__cli_calloc(rows, sizeof *means), sum = 0, weight = 0;
    for (int64_t i = 0, first = 0; smooth > 1 && i < curve.count; i++) {
        sum += weights[i] * curve.values[i];
        weight += weights[i];
        for (; first < i && curve.steps[first] <= curve.steps[i] - smooth; first++) {
            sum -= weights[first] * curve.values[first];
            weight -= weights[first];
        }
        means[i] = first == i ? curve.values[i] : sum / weight;
    }
    if (smooth > 1)
        memcpy(curve.values, means, (size_t)curve.count * sizeof *means);
    free(means);

    /* Thin: stretches of `width` points become their mean. */
    const int64_t width = (curve.count + most - 1) / most;
    int64_t kept = 0;
    for (int64_t row = 0; width > 1 && row < curve.count; row += width) {
        double value = 0, step = 0;
        weight = 0;
        for (int64_t i = row; i < row + width && i < curve.count; i++) {
            value += weights[i] * curve.values[i];
            step += weights[i] * curve.steps[i];
            weight += weights[i];
        }
        curve.steps[kept] = step / weight;
        curve.values[kept++] = value / weight;
    }
    if (width > 1)
        curve.count = kept;
    free(weights);
    return curve;
}

const char *wg__metric_title(const char *metric, char *text, size_t size) {
    snprintf(text, size, "%s", metric);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return text;
}

const char *wg__run_title(const char *path, char *text, size_t size) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(text, size, "%.*s", (int)strlen(name) - (wg__ends_with(name, ".h5") ? 3 : 0), name);
    return text;
}
