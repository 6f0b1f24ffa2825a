/* The live view of a training: see live.h.
 *
 *     pretrain gpt: run.h5                                  step 120 of 1000, 12 %
 *       8.33 |*
 *            | **
 *       4.01 |   ***o**o**
 *            step 1 to 120: * loss, o on held-out text
 *     loss 4.0123  held out 4.1000  12.3 k tokens/s  3 min 20 s left  rate 0.00093
 *
 * A cell of the picture has one point, or in Braille 2 x 4. */
#include "cli/live.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "cli/units.h"

#define PAUSE 0.1 /* seconds between two pictures */

enum { MOST_COLUMNS = 200, MOST_ROWS = 16, LEAST_ROWS = 3, LABEL = 10, AROUND = 4 };

/* ---- The terminal ---- */

/* Columns and rows; 80 x 24 where it does not say. */
static void size_of(int *columns, int *rows) {
    struct winsize size = {0};
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

/* By the variables that name the character set, the strongest first. */
static bool shows_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8");
    }
    return false;
}

wg__live wg__live_begin(const char *title, const wg_trainer *trainer) {
    const char *term = getenv("TERM");
    const bool is_terminal = isatty(STDERR_FILENO);
    int columns, rows;
    size_of(&columns, &rows);
    const char *why = !is_terminal                         ? "stderr is no terminal"
                      : !term || strcmp(term, "dumb") == 0 ? "TERM names none that can be drawn on"
                      : columns < 40 || rows < LEAST_ROWS + AROUND
                          ? "the terminal is smaller than 40 x 7"
                          : NULL;
    if (why) {
        wg__cli_note("--ui draws nothing: %s; the progress is told in lines", why);
        return (wg__live){0};
    }
    return (wg__live){.title = title,
                      .trainer = trainer,
                      .braille = shows_utf8(),
                      .colors = wg__takes_colors(stderr)};
}

/* ---- The curves ---- */

/* A picture of columns x rows cells, each of 2 x 4 points or one. */
typedef struct canvas {
    int columns, rows;                      /* of cells */
    int across, down;                       /* points of a cell */
    uint8_t dots[MOST_ROWS][MOST_COLUMNS];  /* bits of points, that of Braille: */
    bool held_out[MOST_ROWS][MOST_COLUMNS]; /* some of them are of the held-out curve */
    double first, last;                     /* steps */
    double low, high;                       /* losses */
} canvas;

/* The bit of a point within a cell of Braille, by row and column. */
static const uint8_t braille_bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};

static void set_point(canvas *c, int x, int y, bool held_out) {
    const int column = x / c->across, row = y / c->down;
    if (x < 0 || y < 0 || column >= c->columns || row >= c->rows)
        return;
    c->dots[row][column] |= c->across == 1 ? 1 : braille_bits[y % 4][x % 2];
    c->held_out[row][column] |= held_out;
}

static int point_of_step(const canvas *c, double step) {
    if (!(step >= c->first && step <= c->last))
        return -1;
    const double share = c->last > c->first ? (step - c->first) / (c->last - c->first) : 0;
    return (int)(share * (c->columns * c->across - 1) + 0.5);
}

static int point_of_loss(const canvas *c, double loss) {
    const double share = c->high > c->low ? (c->high - loss) / (c->high - c->low) : 0.5;
    return (int)(share * (c->rows * c->down - 1) + 0.5);
}

/* The mean of a curve in each column of points; NaN where it has none. */
static void bin(const canvas *c, const wg_history *history, double *means) {
    const double *steps = wg_history_column(history, "step"),
                 *losses = wg_history_column(history, "loss");
    int counts[2 * MOST_COLUMNS] = {0};
    const int width = c->columns * c->across;
    for (int x = 0; x < width; x++)
        means[x] = 0;
    for (int64_t i = 0; steps && losses && i < history->row_count; i++) {
        const int x = point_of_step(c, steps[i]);
        if (isfinite(losses[i]) && x >= 0 && x < width) {
            means[x] += losses[i];
            counts[x]++;
        }
    }
    for (int x = 0; x < width; x++)
        means[x] = counts[x] ? means[x] / counts[x] : NAN;
}

static void widen(canvas *c, const double *means) {
    for (int x = 0; x < c->columns * c->across; x++)
        if (isfinite(means[x])) {
            c->low = fmin(c->low, means[x]);
            c->high = fmax(c->high, means[x]);
        }
}

/* Joins the points of a curve by straight lines. */
static void draw_curve(canvas *c, const double *means, bool held_out) {
    int before = -1;
    for (int x = 0; x < c->columns * c->across; x++) {
        if (!isfinite(means[x]))
            continue;
        const double y = point_of_loss(c, means[x]);
        const double from = before < 0 ? y : point_of_loss(c, means[before]);
        const int steps = before < 0 ? 1 : (int)fmax(x - before, fabs(y - from));
        for (int i = 1; i <= steps; i++) {
            const double share = (double)i / steps;
            set_point(c, before < 0 ? x : before + (int)(share * (x - before) + 0.5),
                      (int)(from + share * (y - from) + 0.5), held_out);
        }
        before = x;
    }
}

static void draw(canvas *c, const wg_trainer *trainer) {
    const wg_history *training = wg_trainer_history(trainer),
                     *evaluations = wg_trainer_evaluations(trainer);
    const double *steps = wg_history_column(training, "step");
    double losses[2 * MOST_COLUMNS], held_out[2 * MOST_COLUMNS];
    if (!steps || training->row_count == 0)
        return;
    c->first = steps[0];
    c->last = steps[training->row_count - 1];
    bin(c, training, losses);
    bin(c, evaluations, held_out);
    c->low = INFINITY;
    c->high = -INFINITY;
    widen(c, losses);
    widen(c, held_out);
    if (c->low > c->high)
        c->low = c->high = 0;
    draw_curve(c, losses, false);
    draw_curve(c, held_out, true);
}

/* ---- The picture as text ---- */

/* Bytes of the first characters of a text in UTF-8 that fit into so many columns, and the columns
 * that they take: a character of three or four bytes may be two columns wide, and is taken to be.
 */
static int fit(const char *text, int columns, int *taken) {
    int bytes = 0;
    for (*taken = 0; text[bytes];) {
        const unsigned char lead = (unsigned char)text[bytes];
        const int length = lead >= 0xf0   ? 4
                           : lead >= 0xe0 ? 3
                           : lead >= 0xc0 ? 2
                                          : 1,
                  wide = length > 2 ? 2 : 1;
        if (*taken + wide > columns || strnlen(text + bytes, (size_t)length) < (size_t)length)
            break;
        bytes += length;
        *taken += wide;
    }
    return bytes;
}

/* One line: what does not fit is cut off, and what stood there is wiped out. */
static void put_line(FILE *out, int width, const char *text) {
    int taken;
    fprintf(out, "%.*s\033[K\r\n", fit(text, width, &taken), text);
}

static void put_cell(FILE *out, const wg__live *live, uint8_t dots, bool held_out) {
    if (!live->braille)
        fputc(!dots ? ' ' : held_out ? 'o' : '*', out);
    else /* U+2800 and the bits */
        fprintf(out, "\xe2%c%c", (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)));
}

/* A row of cells; colour changes where the curve does. */
static void put_row(FILE *out, const wg__live *live, const canvas *c, int row) {
    char label[16] = "";
    if (row == 0 || row == c->rows - 1)
        snprintf(label, sizeof label, "%.4g", row == 0 ? c->high : c->low);
    fprintf(out, "%*s |", LABEL - 2, label);
    bool accent = false;
    for (int column = 0; column < c->columns; column++) {
        const bool wanted = live->colors && c->held_out[row][column];
        if (wanted != accent)
            fputs(wanted ? "\033[36m" : "\033[0m", out);
        accent = wanted;
        put_cell(out, live, c->dots[row][column], c->held_out[row][column]);
    }
    fputs(accent ? "\033[0m\033[K\r\n" : "\033[K\r\n", out);
}

/* The last loss on held-out text, "held out 4.1000  "; "" before the first. */
static void write_held_out(char *text, size_t size, const wg_trainer *trainer) {
    const wg_history *evaluations = wg_trainer_evaluations(trainer);
    const double *losses = wg_history_column(evaluations, "loss");
    *text = '\0';
    if (losses && evaluations->row_count > 0)
        snprintf(text, size, "held out %.4f  ", losses[evaluations->row_count - 1]);
}

static void put_picture(FILE *out, const wg__live *live, const canvas *c,
                        const wg_train_report *report, int width) {
    char line[512], held_out[64], step[64];
    snprintf(step, sizeof step, "step %lld of %lld, %.0f %%", (long long)report->step,
             (long long)report->total, 100 * (double)report->step / (double)report->total);
    const int room = width - (int)strlen(step) - 1;
    int taken;
    const int bytes = fit(live->title, room, &taken);
    snprintf(line, sizeof line, "%.*s%*s %s", bytes, live->title, room - taken, "", step);
    put_line(out, width, line);
    for (int row = 0; row < c->rows; row++)
        put_row(out, live, c, row);
    const char *legend = live->braille && live->colors ? "loss, in colour on held-out text"
                         : live->braille               ? "loss, and on held-out text"
                                                       : "* loss, o on held-out text";
    snprintf(line, sizeof line, "%*sstep %.0f to %.0f: %s", LABEL, "", c->first, c->last, legend);
    put_line(out, width, line);
    write_held_out(held_out, sizeof held_out, live->trainer);
    snprintf(line, sizeof line, "loss %.4f  %s%s tokens/s  %s left  rate %.3g", report->loss,
             held_out, wg__count(live->tokens_rate).text, wg__seconds(report->seconds_left).text,
             report->learning_rate);
    put_line(out, width, line);
}

/* ---- Drawing ---- */

void wg__live_clear(wg__live *live) {
    if (live->lines > 0)
        fprintf(stderr, "\033[%dA\r\033[J", live->lines);
    live->lines = 0;
}

void wg__live_report(wg__live *live, const wg_train_report *report) {
    const double time = wg__now();
    double *rate = &live->tokens_rate;
    *rate += (*rate == 0 ? 1 : 0.1) * (report->tokens_per_second - *rate);
    if (time - live->last_drawn < PAUSE && report->step < report->total)
        return;
    live->last_drawn = time;
    int columns, rows;
    size_of(&columns, &rows);
    canvas c = {.across = live->braille ? 2 : 1, .down = live->braille ? 4 : 1};
    const int width = columns - 1, across = width - LABEL, down = rows - AROUND - 1;
    c.columns = across < MOST_COLUMNS ? across : MOST_COLUMNS;
    c.rows = down < MOST_ROWS ? down : MOST_ROWS;
    if (c.columns < 1 || c.rows < 1)
        return;
    draw(&c, live->trainer);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    put_picture(out, live, &c, report, width);
    fclose(out);
    /* Of a terminal that was made narrower the old lines are broken: the picture begins anew. */
    if (live->lines > 0 && width >= live->width)
        fprintf(stderr, "\033[%dA\r%s", live->lines, live->lines == c.rows + 3 ? "" : "\033[J");
    live->lines = c.rows + 3;
    live->width = width;
    if (text)
        fwrite(text, 1, size, stderr);
    fflush(stderr);
    free(text);
}
