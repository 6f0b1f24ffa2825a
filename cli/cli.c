/* What the verbs of the command share: see cli.h. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "base/error.h"
#include "tensor/quantize.h"

void wg__cli_parse(const struct argp *parser, int argc, char **argv, void *input) {
    argp_err_exit_status = WG__EXIT_USAGE;
    argp_parse(parser, argc, argv, 0, NULL, input);
}

void wg__cli_parse_in_order(const struct argp *parser, int argc, char **argv, void *input) {
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

int wg__cli_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
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
    va_start(arguments, format);
    say("note: ", format, arguments);
    va_end(arguments);
}
