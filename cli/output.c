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

static void print_line(const wg_train_report *report, double tokens_rate) {
    fprintf(stderr, "step %lld/%lld  loss %.4f  %s tokens/s  %s left", (long long)report->step,
            (long long)report->total, report->loss, wg__count(tokens_rate).text,
            wg__seconds(report->seconds_left).text);
}

static void print_evaluation(const wg_train_report *report) {
    fprintf(stderr, "step %lld/%lld  held out:", (long long)report->step, (long long)report->total);
    for (int i = 0; i < report->evaluation->count; i++) {
        const wg_metric *metric = &report->evaluation->metrics[i];
        fprintf(stderr, "  %s %.4f", metric->name, wg_metric_value(metric));
    }
    fputc('\n', stderr);
}

static void close_line(wg__progress *progress) {
    if (progress->line_open)
        fputs("\r\033[K", stderr);
    progress->line_open = false;
}

void wg__progress_report(const wg_train_report *report, void *context) {
    wg__progress *progress = context;
    double *rate = &progress->tokens_rate;
    *rate += (*rate == 0 ? 1 : 0.1) * (report->tokens_per_second - *rate);

    double time = wg__now();
    double pause = progress->is_terminal ? TERMINAL_PAUSE : PLAIN_PAUSE;
    bool due = time - progress->last_shown >= pause || report->step == report->total;
    if (due || report->evaluation)
        close_line(progress);
    if (report->evaluation)
        print_evaluation(report);
    if (due || (report->evaluation && progress->is_terminal)) {
        progress->last_shown = time;
        print_line(report, *rate);
        if (progress->is_terminal)
            progress->line_open = true;
        else
            fputc('\n', stderr);
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

static json_t *row_value(const wg_metric_row *row, const wg_metrics *metrics) {
    if (row->text)
        return json_string(row->text(metrics));
    return wg__json_number(row->value ? row->value(metrics) : wg_metrics_get(metrics, row->name));
}

json_t *wg__json_metrics(const wg_metric_row *rows, const wg_metrics *metrics) {
    json_t *object = json_object();
    for (const wg_metric_row *row = rows; row->name; row++)
        if (!row->optional || wg_metrics_weight(metrics, row->of ? row->of : row->name) > 0)
            json_object_set_new(object, row->name, row_value(row, metrics));
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
