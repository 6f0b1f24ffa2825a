/* What the verbs of the command share: see cli.h. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "base/error.h"
#include "base/suggest.h"
#include "tensor/op.h"
#include "tensor/quantize.h"

/* ---- Suggestions ---- */

static const char *name_by_index(const void *name, int index) {
    return (*(const char *(*const *)(int))name)(index);
}

const char *wg__cli_suggestion(char *text, size_t size, const char *typed,
                               const char *(*name)(int index)) {
    return wg_suggestion(text, size, typed, name_by_index, &name);
}

const char *wg__cli_op_name(int index) {
    return index < wg_op_count() ? wg_op_at(index)->name : NULL;
}

/* ---- Arguments ---- */

void wg__cli_parse(const struct argp *parser, int argc, char **argv, void *input) {
    wg__cli_look_at_options(parser, argc, argv, NULL, NULL);
    argp_err_exit_status = WG__EXIT_USAGE;
    argp_parse(parser, argc, argv, 0, NULL, input);
}

void wg__cli_parse_in_order(const struct argp *parser, int argc, char **argv, void *input) {
    wg__cli_look_at_options(parser, argc, argv, NULL, NULL);
    argp_err_exit_status = WG__EXIT_USAGE;
    argp_parse(parser, argc, argv, ARGP_IN_ORDER, NULL, input);
}

int64_t wg__cli_integer(const struct argp_state *state, const char *option, const char *text,
                        int64_t low, int64_t high) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno == ERANGE || value < low || value > high) {
        if (high == INT64_MAX)
            argp_error(state, "--%s: '%s' is not a whole number of at least %lld", option, text,
                       (long long)low);
        else
            argp_error(state, "--%s: '%s' is not a whole number from %lld to %lld", option, text,
                       (long long)low, (long long)high);
    }
    return value;
}

double wg__cli_number(const struct argp_state *state, const char *option, const char *text,
                      double low, double high) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= low && value <= high))
        argp_error(state, "--%s: '%s' is not a number from %g to %g", option, text, low, high);
    return value;
}

int wg__cli_quantization(const struct argp_state *state, const char *text) {
    static const wg_quantization quantizations[] = {WG_QUANTIZATION_BF16, WG_QUANTIZATION_Q8_0,
                                                    WG_QUANTIZATION_Q4_0};
    for (size_t i = 0; i < sizeof quantizations / sizeof *quantizations; i++)
        if (strcmp(text, wg_quantization_name(quantizations[i])) == 0)
            return quantizations[i];
    if (strcmp(text, "f32") != 0)
        argp_error(state, "--dtype: '%s' is none of f32, bf16, q8_0 and q4_0", text);
    return -1;
}

static void say(const char *kind, const char *format, va_list arguments) {
    fflush(stdout);
    fprintf(stderr, "wengert: %s", kind);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

/* ---- Several processes ---- */

static wg_group *group;
static char held_failure[900]; /* of this rank */

int wg__cli_join(void) {
    group = wg_group_join();
    return group ? 0 : wg__cli_fail_pending();
}

wg_group *wg__cli_group(void) {
    return group;
}

bool wg__cli_leads(void) {
    return wg_group_rank(group) == 0;
}

/* The message is "wengert: MESSAGE", or "rank 1 on HOST: wengert: MESSAGE". */
static void tell_shared_failure(const char *message) {
    static const char from[] = "wengert: ";
    const char *own = strstr(message, from);
    const int rank = own ? (int)(own - message) : 0;
    fflush(stdout);
    fprintf(stderr, "%s%.*s%s\n", from, rank, message, own ? own + strlen(from) : message);
}

int wg__cli_check(int code) {
    if (wg_group_size(group) == 1)
        return code;
    const bool failed = code == EXIT_FAILURE;
    if (failed)
        wg_fail(WG_ERROR_STATE, "wengert", "%s", held_failure);
    if (wg_group_check(group, failed ? -1 : 0) == 0)
        return code;
    if (wg__cli_leads())
        tell_shared_failure(wg_error_pending()->message);
    wg_error_clear();
    return code != 0 ? code : EXIT_FAILURE;
}

void wg__cli_leave(void) {
    wg_group_leave(group);
    group = NULL;
}

/* ---- Messages ---- */

int wg__cli_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (wg_group_size(group) > 1)
        vsnprintf(held_failure, sizeof held_failure, format, arguments);
    else
        say("", format, arguments);
    va_end(arguments);
    return EXIT_FAILURE;
}

int wg__cli_fail_pending(void) {
    const wg_error *error = wg_error_pending();
    wg__cli_fail("%s", error ? error->message : "it failed without saying why");
    wg_error_clear();
    return EXIT_FAILURE;
}

void wg__cli_note(const char *format, ...) {
    va_list arguments;
    if (!wg__cli_leads())
        return;
    va_start(arguments, format);
    say("note: ", format, arguments);
    va_end(arguments);
}

/* ---- Text files ---- */

static bool is_blank(const char *text) {
    return text[strspn(text, " \t")] == '\0';
}

int wg__cli_read_lines(const char *verb, const char *path, int64_t limit,
                       int (*take)(void *context, const char *path, int64_t line, const char *text),
                       void *context) {
    FILE *file = fopen(path, "r");
    if (!file)
        return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, verb,
                       "cannot read %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    ssize_t length;
    int64_t taken = 0;
    int status = 0;
    for (int64_t line = 1; status == 0 && (limit == 0 || taken < limit) &&
                           (length = getline(&text, &size, file)) >= 0;
         line++) {
        if ((ssize_t)strlen(text) < length) {
            status = wg_fail(WG_ERROR_FORMAT, verb, "%s, line %lld: it has a NUL, and is no text",
                             path, (long long)line);
            break;
        }
        text[strcspn(text, "\r\n")] = '\0';
        if (is_blank(text))
            continue;
        status = take(context, path, line, text);
        taken++;
    }
    if (status == 0 && ferror(file))
        status = wg_fail(WG_ERROR_IO, verb, "cannot read %s: %s", path, strerror(errno));
    else if (status == 0 && taken == 0)
        status = wg_fail(WG_ERROR_FORMAT, verb, "%s: the file is empty", path);
    free(text);
    fclose(file);
    return status;
}
