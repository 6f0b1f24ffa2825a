/* Parts of the page of `wengert report`: see report_page.h. */
#include "cli/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/units.h"

/* ---- The page ---- */

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2127;--soft:#5b6570;--line:#d8dde3;--paper:#fff;"
    "--card:#f6f8fa;--c0:#0b6bb8;--c1:#c8500a;--c2:#0a7f5a;--c3:#a8497f;--c4:#6a51a3;--c5:#666}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#98a2ad;--line:#323a43;"
    "--paper:#14181c;--card:#1c2228;--c0:#5db2f2;--c1:#f0905a;--c2:#45c79a;--c3:#e089bb;"
    "--c4:#a995e0;--c5:#9aa3ad}.map img{filter:invert(1) hue-rotate(180deg)}}"
    "body{margin:0 auto;max-width:1040px;padding:24px;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:26px;margin:0 0 4px}"
    "h2{font-size:19px;margin:36px 0 4px;border-bottom:1px solid var(--line);padding-bottom:4px}"
    "p.note{color:var(--soft);margin:4px 0 12px}"
    ".cards{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:10px 16px;min-width:96px}.card b{display:block;font-size:20px}"
    ".card span{color:var(--soft);font-size:13px}"
    ".tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:24px;"
    "align-items:start}table{border-collapse:collapse;width:100%;font-size:14px}"
    "caption{text-align:left;font-weight:600;padding:4px 0}"
    "td{border-bottom:1px solid var(--line);padding:3px 8px 3px 0;vertical-align:top;"
    "overflow-wrap:anywhere}td+td{text-align:right}"
    "svg{max-width:100%;height:auto;display:block}svg text{fill:var(--soft);font-size:12px}"
    ".grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:14px}"
    ".cell{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px;"
    "font-size:12px;overflow-wrap:anywhere}.cell em{color:var(--soft);font-style:normal}"
    ".tree{font:13px/1.6 ui-monospace,monospace}.tree details{margin-left:18px}"
    ".tree .leaf{margin-left:33px}.row{display:inline-grid;width:calc(100% - 20px);"
    "grid-template-columns:minmax(0,1fr) 76px 84px 110px;gap:10px}.leaf .row{width:calc(100% - "
    "5px)}.row i{font-style:normal;text-align:right;color:var(--soft)}"
    ".bar{background:var(--line);height:7px;margin-top:8px;border-radius:4px}"
    ".bar u{display:block;height:7px;background:var(--c0);border-radius:4px}"
    ".heads{display:flex;flex-wrap:wrap;gap:10px;margin:6px 0 16px}.map{text-align:center;"
    "font-size:12px;color:var(--soft)}.map img{width:132px;height:132px;image-rendering:pixelated;"
    "border:1px solid var(--line);display:block;object-fit:fill}"
    ".sample{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--c0);"
    "border-radius:6px;padding:10px 14px;margin:10px 0;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".tokens{color:var(--soft);font-size:13px;overflow-wrap:anywhere}.tokens b{font-weight:500;"
    "color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:4px;"
    "padding:0 4px;margin:0 2px 4px 0;display:inline-block}";

void wg__page_text(FILE *page, const char *text) {
    for (const char *c = text; *c; c++)
        switch (*c) {
        case '<':
            fputs("&lt;", page);
            break;
        case '>':
            fputs("&gt;", page);
            break;
        case '&':
            fputs("&amp;", page);
            break;
        case '"':
            fputs("&quot;", page);
            break;
        case '\n':
        case '\t':
            fputc(*c, page);
            break;
        default: /* XML has no other control characters */
            fputc(wg__is_control(*c) ? '?' : *c, page);
        }
}

void wg__page_begin(FILE *page, const char *title) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          page);
    wg__page_text(page, title);
    fprintf(page, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    wg__page_text(page, title);
    fputs("</h1>\n", page);
}

void wg__page_end(FILE *page) {
    fputs("</body>\n</html>\n", page);
}

void wg__page_section(FILE *page, const char *title, const char *note) {
    fputs("<h2>", page);
    wg__page_text(page, title);
    fputs("</h2>\n", page);
    if (note) {
        fputs("<p class=\"note\">", page);
        wg__page_text(page, note);
        fputs("</p>\n", page);
    }
}

/* ---- Curves ---- */

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

static void draw_axes(FILE *page, const axes *a) {
    const double dx = round_step(a->x_high - a->x_low, 8), dy = round_step(a->y_high - a->y_low, 5);
    for (double y = ceil(a->y_low / dy) * dy; y <= a->y_high + 1e-9 * dy; y += dy)
        fprintf(page,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--line)\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>",
                LEFT, WIDTH - RIGHT, y_of(a, y), y_of(a, y), LEFT - 8, y_of(a, y) + 4,
                fabs(y) < 1e-9 * dy ? 0 : y);
    for (double x = ceil(a->x_low / dx) * dx; x <= a->x_high + 1e-9 * dx; x += dx)
        fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>", x_of(a, x),
                HEIGHT - BOTTOM + 18, x);
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step</text>", WIDTH - RIGHT,
            HEIGHT - 2);
}

static void draw_curve(FILE *page, const axes *a, const wg__curve *curve, int color,
                       const char *kind) {
    fprintf(page, "<polyline fill=\"none\" stroke=\"var(--c%d)\" %s points=\"", color % COLORS,
            kind);
    for (int64_t i = 0; i < curve->count; i++)
        fprintf(page, "%.1f,%.1f ", x_of(a, curve->steps[i]), y_of(a, curve->values[i]));
    fputs("\"/>", page);
    if (curve->count == 1) /* which is no line */
        fprintf(page, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"var(--c%d)\"/>",
                x_of(a, curve->steps[0]), y_of(a, curve->values[0]), color % COLORS);
}

static void extend(axes *a, const wg__curve *curve) {
    for (int64_t i = 0; i < curve->count; i++) {
        a->x_low = fmin(a->x_low, curve->steps[i]);
        a->x_high = fmax(a->x_high, curve->steps[i]);
        a->y_low = fmin(a->y_low, curve->values[i]);
        a->y_high = fmax(a->y_high, curve->values[i]);
    }
}

typedef struct drawn {
    wg__curve curve;
    const char *metric;
    bool is_evaluation, is_baseline;
    int color;
} drawn;

static void draw_legend(FILE *page, const drawn *curves, int count) {
    char title[64];
    fputs("<p class=\"note\">", page);
    for (int i = 0; i < count; i++)
        fprintf(page,
                "<svg style=\"display:inline-block;margin:0 4px 0 12px\" width=\"26\" "
                "height=\"10\"><line x2=\"26\" y1=\"5\" y2=\"5\" stroke=\"var(--c%d)\" "
                "stroke-width=\"%d\" %s/></svg>%s, %s",
                curves[i].color % COLORS, curves[i].is_evaluation ? 3 : 1,
                curves[i].is_baseline ? "stroke-dasharray=\"5 4\"" : "",
                wg__metric_title(curves[i].metric, title, sizeof title),
                curves[i].is_evaluation ? "held out" : "training");
    fputs("</p>\n", page);
}

void wg__page_curves(FILE *page, const wg__run_history *run, wg__panel_kind kind) {
    enum { POINTS = 400, MOST = 2 * WG_HISTORY_COLUMNS };
    static drawn curves[MOST];
    int count = 0, color = 0;
    for (int i = 0; i < run->training.column_count; i++) {
        const char *metric = run->training.names[i];
        if (!wg__belongs(run, metric, kind))
            continue;
        curves[count++] =
            (drawn){wg__curve_of(&run->training, metric, 1, POINTS), metric, false, false, color};
        if (wg_history_column(&run->evaluation, metric))
            curves[count++] = (drawn){wg__curve_of(&run->evaluation, metric, 1, POINTS), metric,
                                      true, false, color};
        color++;
    }
    for (int i = 0; i < run->evaluation.column_count; i++) {
        const char *metric = run->evaluation.names[i];
        if (wg__belongs(run, metric, kind) && !wg_history_column(&run->training, metric))
            curves[count++] = (drawn){wg__curve_of(&run->evaluation, metric, 1, POINTS), metric,
                                      true, true, COLORS - 1};
    }
    axes a = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int i = 0; i < count; i++)
        extend(&a, &curves[i].curve);
    if (isfinite(a.x_low) && isfinite(a.y_low)) {
        a.x_low = fmin(a.x_low, 0);
        a.x_high = fmax(a.x_high, a.x_low + 1);
        const double margin = fmax(0.04 * (a.y_high - a.y_low), 1e-6 * fabs(a.y_high) + 1e-12);
        a.y_low = kind == WG__PANEL_ACCURACIES ? 0 : a.y_low - margin;
        a.y_high += margin;
        draw_legend(page, curves, count);
        fprintf(page, "<svg viewBox=\"0 0 %d %d\">", WIDTH, HEIGHT);
        draw_axes(page, &a);
        for (int i = 0; i < count; i++)
            draw_curve(page, &a, &curves[i].curve, curves[i].color,
                       curves[i].is_baseline     ? "stroke-width=\"2\" stroke-dasharray=\"5 4\""
                       : curves[i].is_evaluation ? "stroke-width=\"2.5\""
                                                 : "stroke-width=\"1\" opacity=\"0.75\"");
        fputs("</svg>\n", page);
    }
    for (int i = 0; i < count; i++)
        wg__curve_clear(&curves[i].curve);
}

/* ---- Tables and the tree ---- */

void wg__page_table(FILE *page, const char *caption, const json_t *object) {
    const char *key;
    json_t *value;
    if (json_object_size(object) == 0)
        return;
    fputs("<table><caption>", page);
    wg__page_text(page, caption);
    fputs("</caption>\n", page);
    json_object_foreach((json_t *)object, key, value) {
        char *text = json_is_string(value)
                         ? NULL
                         : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        fputs("<tr><td>", page);
        wg__page_text(page, key);
        fputs("</td><td>", page);
        wg__page_text(page, text ? text : json_is_string(value) ? json_string_value(value) : "");
        fputs("</td></tr>\n", page);
        free(text);
    }
    fputs("</table>\n", page);
}

static double number_at(const json_t *node, const char *key) {
    return (double)json_integer_value(json_object_get(node, key));
}

static void write_row(FILE *page, const json_t *node, double whole) {
    const json_t *shape = json_object_get(node, "shape");
    const json_t *last = json_object_get(node, "last");
    const double bytes = number_at(node, "bytes"), times = last ? number_at(node, "alike") : 1;
    fputs("<span class=\"row\"><span>", page);
    wg__page_text(page, json_string_value(json_object_get(node, "name")));
    if (last)
        fprintf(page, " to %s, each", json_string_value(last));
    if (shape) {
        fprintf(page, " <span style=\"color:var(--soft)\">%s ",
                json_string_value(json_object_get(node, "dtype")));
        wg__shape_write(page, shape);
        fputs("</span>", page);
    }
    fprintf(page,
            "</span><i>%s</i><i>%s</i><span class=\"bar\"><u style=\"width:%.2f%%\"></u></span>"
            "</span>",
            wg__count(number_at(node, "numbers")).text, wg__bytes(bytes).text,
            whole > 0 ? 100 * bytes * times / whole : 0);
}

static void write_node(FILE *page, const json_t *node, double whole, int depth) {
    const json_t *children = json_object_get(node, "children");
    if (json_array_size(children) == 0) {
        fputs("<div class=\"leaf\">", page);
        write_row(page, node, whole);
        fputs("</div>\n", page);
        return;
    }
    fprintf(page, "<details%s><summary>", depth < 2 ? " open" : "");
    write_row(page, node, whole);
    fputs("</summary>\n", page);
    for (size_t i = 0; i < json_array_size(children); i++)
        write_node(page, json_array_get(children, i), whole, depth + 1);
    fputs("</details>\n", page);
}

void wg__page_tree(FILE *page, const json_t *root) {
    const json_t *children = json_object_get(root, "children");
    fputs("<div class=\"tree\">\n", page);
    for (size_t i = 0; i < json_array_size(children); i++)
        write_node(page, json_array_get(children, i), number_at(root, "bytes"), 0);
    fputs("</div>\n", page);
}

/* ---- Histograms ---- */

void wg__page_grid_begin(FILE *page) {
    fputs("<div class=\"grid\">\n", page);
}

void wg__page_grid_end(FILE *page) {
    fputs("</div>\n", page);
}

void wg__page_histogram(FILE *page, const char *name, int64_t count, const float *values,
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
    fputs("<div class=\"cell\">", page);
    wg__page_text(page, name);
    fprintf(page, "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">", W, H + 14);
    for (int i = 0; i < BINS; i++)
        if (bins[i])
            fprintf(page,
                    "<rect x=\"%d\" y=\"%.1f\" width=\"3.5\" height=\"%.1f\" "
                    "fill=\"var(--c%d)\"/>",
                    W / BINS * i, H - fmax(1, (double)bins[i] / (double)most * H),
                    fmax(1, (double)bins[i] / (double)most * H), is_gradient);
    fprintf(page,
            "<text x=\"0\" y=\"%d\" style=\"font-size:9px\">%.3g</text><text x=\"%d\" y=\"%d\" "
            "text-anchor=\"end\" style=\"font-size:9px\">%.3g</text></svg>"
            "<em>mean %.2g, deviation %.2g</em></div>\n",
            H + 12, from, W, H + 12, to, mean, deviation);
}

/* ---- Attention ---- */

/* Base64 as the bytes come, three at a time. */
typedef struct encoder {
    FILE *page;
    unsigned held, count;
} encoder;

static void put_byte(encoder *e, unsigned byte) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    e->held = e->held << 8 | (byte & 255);
    if (++e->count == 3) {
        for (int shift = 18; shift >= 0; shift -= 6)
            fputc(digits[e->held >> shift & 63], e->page);
        e->held = e->count = 0;
    }
}

static void put_number(encoder *e, unsigned number, int bytes) {
    for (int i = 0; i < bytes; i++)
        put_byte(e, number >> 8 * i);
}

/* Pads with zero bytes, which a reader of a bitmap passes over. */
static void end_bytes(encoder *e) {
    while (e->count)
        put_byte(e, 0);
}

/* An image of (rows, columns) shares from 0, white, to 1, blue: a bitmap of 8 bits. Small shares
 * are made visible by the square root. */
static void write_bitmap(FILE *page, int64_t rows, int64_t columns, const float *shares) {
    enum { HEADER = 54, PALETTE = 256 };
    encoder e = {.page = page};
    const unsigned stride = (unsigned)(columns + 3) / 4 * 4, data = HEADER + 4 * PALETTE;
    put_number(&e, 'B' | 'M' << 8, 2);
    put_number(&e, data + stride * (unsigned)rows, 4);
    put_number(&e, 0, 4);
    put_number(&e, data, 4);
    put_number(&e, 40, 4);
    put_number(&e, (unsigned)columns, 4);
    put_number(&e, (unsigned)rows, 4);
    put_number(&e, 1 | 8 << 16, 4); /* one plane of 8 bits */
    for (int i = 0; i < 6; i++)
        put_number(&e, i == 4 ? PALETTE : 0, 4);
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
    end_bytes(&e);
}

void wg__page_attention(FILE *page, const char *name, int64_t heads, int64_t queries, int64_t keys,
                        const float *weights) {
    fputs("<div><code>", page);
    wg__page_text(page, name);
    fputs("</code><div class=\"heads\">\n", page);
    for (int64_t h = 0; h < heads; h++) {
        fputs("<div class=\"map\"><img alt=\"\" src=\"data:image/bmp;base64,", page);
        write_bitmap(page, queries, keys, weights + h * queries * keys);
        fprintf(page, "\">head %lld</div>\n", (long long)h);
    }
    fputs("</div></div>\n", page);
}
