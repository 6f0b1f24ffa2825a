/* Progress, JSON, signals and units: see output.h. */
#include "cli/output.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "train/internal.h"

/* Seconds between two showings. */
#define TERMINAL_PAUSE 0.1
#define PLAIN_PAUSE 10.0

void wg__progress_report(const wg_train_report *report, void *context) {
    wg__progress *progress = context;
    const wg_metrics *evaluation = report->evaluation;
    const long long step = report->step, total = report->total;
    double *rate = &progress->tokens_rate;
    *rate += (*rate == 0 ? 1 : 0.1) * (report->tokens_per_second - *rate);
    const double time = wg__now(), pause = progress->is_terminal ? TERMINAL_PAUSE : PLAIN_PAUSE;
    const bool due = time - progress->last_shown >= pause || step == total;
    if ((due || evaluation) && progress->line_open) {
        fputs("\r\033[K", stderr);
        progress->line_open = false;
    }
    if (evaluation)
        fprintf(stderr, "step %lld/%lld  held out:", step, total);
    for (int i = 0; evaluation && i < evaluation->count; i++)
        fprintf(stderr, "  %s %.4f", evaluation->metrics[i].name,
                wg__metric_value(&evaluation->metrics[i]));
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

void wg__note_model(const char *message, void *context) {
    (void)context;
    wg__cli_note("%s", message);
}

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

void wg__print_json(size_t layout, json_t *object) {
    json_dumpf(object, stdout, layout | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}

volatile sig_atomic_t wg__stop_signal;

static void handle_stop(int signal) {
    wg__stop_signal = signal;
}

void wg__listen_for_stop(void) {
    struct sigaction action = {.sa_handler = handle_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int wg__cli_end(int status) {
    return status < 0 ? wg__cli_fail_pending() : wg__stop_signal ? 128 + (int)wg__stop_signal : 0;
}

/* Three digits of a number from 1 to 1024: "1.23", "12.3", "123". */
static void print_digits(char *text, size_t size, double value, const char *unit) {
    const int decimals = value >= 99.95 || value == floor(value) ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, size, "%.*f%s%s", decimals, value, *unit ? " " : "", unit);
}

static wg__unit_text scaled(double value, double base, int count, const char *const *units) {
    wg__unit_text out = {{0}};
    int unit = 0;
    /* 999.6 k would be printed as 1000 k */
    while (unit < count - 1 && value >= (base == 1000 ? 999.5 : 1023.5)) {
        value /= base;
        unit++;
    }
    print_digits(out.text, sizeof out.text, value, units[unit]);
    return out;
}

wg__unit_text wg__count(double count) {
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    return scaled(count, 1000, sizeof units / sizeof *units, units);
}

wg__unit_text wg__bytes(double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return scaled(bytes, 1024, sizeof units / sizeof *units, units);
}

wg__unit_text wg__seconds(double seconds) {
    wg__unit_text out = {{0}};
    const int64_t whole = (int64_t)(seconds + 0.5);
    if (seconds < 0.9995e-3)
        print_digits(out.text, sizeof out.text, 1e6 * seconds, "us");
    else if (seconds < 0.9995)
        print_digits(out.text, sizeof out.text, 1e3 * seconds, "ms");
    else if (seconds < 99.95)
        print_digits(out.text, sizeof out.text, seconds, "s");
    else if (whole < 3600)
        snprintf(out.text, sizeof out.text, "%d min %d s", (int)(whole / 60), (int)(whole % 60));
    else if (whole < 86400)
        snprintf(out.text, sizeof out.text, "%d h %d min", (int)(whole / 3600),
                 (int)(whole / 60 % 60));
    else
        snprintf(out.text, sizeof out.text, "%lld days %d h", (long long)(whole / 86400),
                 (int)(whole / 3600 % 24));
    return out;
}

wg__style wg__style_of(FILE *stream) {
    static const wg__style none = {"", "", "", ""},
                           colors = {"\033[1m", "\033[2m", "\033[36m", "\033[0m"};
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    const bool plain = !isatty(fileno(stream)) || (no_color && *no_color) || !term;
    return plain || strcmp(term, "dumb") == 0 ? none : colors;
}
