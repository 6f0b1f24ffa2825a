/* What the verbs print, and the signal that ends them: see output.h. */
#include "cli/output.h"

#include <math.h>
#include <unistd.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "cli/units.h"

/* ---- Progress ---- */

/* Seconds between two showings. */
#define TERMINAL_PAUSE 0.1
#define PLAIN_PAUSE 10.0

wg__progress wg__progress_begin(void) {
    return (wg__progress){.is_terminal = isatty(STDERR_FILENO)};
}

static void close_line(wg__progress *progress) {
    if (progress->line_open)
        fputs("\r\033[K", stderr);
    progress->line_open = false;
}

void wg__progress_report(const wg_train_report *report, void *context) {
    wg__progress *progress = context;
    const wg_metrics *evaluation = report->evaluation;
    const long long step = report->step, total = report->total;
    double *rate = &progress->tokens_rate;
    *rate += (*rate == 0 ? 1 : 0.1) * (report->tokens_per_second - *rate);
    const double time = wg__now(), pause = progress->is_terminal ? TERMINAL_PAUSE : PLAIN_PAUSE;
    const bool due = time - progress->last_shown >= pause || step == total;
    if (due || evaluation)
        close_line(progress);
    if (evaluation)
        fprintf(stderr, "step %lld/%lld  held out:", step, total);
    for (int i = 0; evaluation && i < evaluation->count; i++)
        fprintf(stderr, "  %s %.4f", evaluation->metrics[i].name,
                wg_metric_value(&evaluation->metrics[i]));
    if (evaluation)
        fputc('\n', stderr);
    if (due || (evaluation && progress->is_terminal)) {
        progress->last_shown = time;
        fprintf(stderr, "step %lld/%lld  loss %.4f  %s tokens/s  %s left%s", step, total,
                report->loss, wg__count(*rate).text, wg__seconds(report->seconds_left).text,
                progress->is_terminal ? "" : "\n");
        progress->line_open = progress->is_terminal;
    }
    fflush(stderr);
}

void wg__progress_end(wg__progress *progress) {
    if (progress->line_open)
        fputc('\n', stderr);
    progress->line_open = false;
}

void wg__note_tokens(void *context, const char *line) {
    (void)context;
    wg__cli_note("%s", line);
}

/* ---- Results ---- */

json_t *wg__json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *wg__json_metrics(const wg_metric_row *rows, const wg_metrics *metrics) {
    json_t *object = json_object();
    for (const wg_metric_row *row = rows; row->name; row++)
        if (!row->optional || wg_metrics_weight(metrics, row->of ? row->of : row->name) > 0)
            json_object_set_new(object, row->name,
                                row->text    ? json_string(row->text(metrics))
                                : row->value ? wg__json_number(row->value(metrics))
                                             : wg__json_number(wg_metrics_get(metrics, row->name)));
    for (const wg_metric_row *row = rows; row->name; row++)
        if (row->weight && (!row->optional || wg_metrics_weight(metrics, row->name) > 0))
            json_object_set_new(object, row->weight,
                                json_integer((json_int_t)wg_metrics_weight(metrics, row->name)));
    return object;
}

static void print_layout(json_t *object, size_t layout) {
    json_dumpf(object, stdout, layout | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

void wg__print_json(json_t *object) {
    print_layout(object, JSON_INDENT(2));
}

void wg__print_json_line(json_t *object) {
    print_layout(object, 0);
}

/* ---- Signals ---- */

static volatile sig_atomic_t stop_signal;

static void handle_stop(int signal) {
    stop_signal = signal;
}

void wg__listen_for_stop(void) {
    struct sigaction action = {.sa_handler = handle_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

const volatile sig_atomic_t *wg__stop_signal(void) {
    return &stop_signal;
}
