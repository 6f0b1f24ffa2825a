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

enum { MOST_OPTIONS = 512 };

/* All options of a parser: "--steps" and whether an argument must follow; letters alone. */
typedef struct option_list {
    int count;
    struct {
        char name[48];
        int key;
        bool takes;
    } items[MOST_OPTIONS];
} option_list;

static void list_options(option_list *list, const struct argp *parser) {
    bool takes = false;
    for (const struct argp_option *o = parser->options;
         o && (o->name || o->key || o->doc || o->group); o++) {
        if (!(o->flags & OPTION_ALIAS))
            takes = o->arg && !(o->flags & OPTION_ARG_OPTIONAL);
        if ((!o->name && !o->key) || (o->flags & OPTION_DOC) || list->count == MOST_OPTIONS)
            continue;
        list->items[list->count].key = o->key;
        list->items[list->count].takes = takes;
        snprintf(list->items[list->count++].name, sizeof list->items[0].name, "--%s",
                 o->name ? o->name : "");
    }
    for (const struct argp_child *child = parser->children; child && child->argp; child++)
        list_options(list, child->argp);
}

static const char *option_name(const void *context, int index) {
    const option_list *list = context;
    return index < list->count ? list->items[index].name : NULL;
}

/* The index of the option that a word --NAME or --NAME=VALUE names or begins; -1: there is none. */
static int find_long(const option_list *list, const char *word) {
    const size_t length = strcspn(word, "=");
    int begun = -1;
    for (int i = 0; i < list->count; i++)
        if (strncmp(list->items[i].name, word, length) == 0) {
            if (strlen(list->items[i].name) == length)
                return i;
            begun = i;
        }
    return begun;
}

/* The index of the option of that letter, or -1. */
static int find_letter(const option_list *list, char letter) {
    for (int i = 0; i < list->count; i++)
        if (list->items[i].key == letter)
            return i;
    return -1;
}

static void refuse_option(const struct argp *parser, const char *program, const option_list *list,
                          const char *word) {
    char typed[128], suggestion[96];
    snprintf(typed, sizeof typed, "%s%.*s", word[1] == '-' ? "" : "-", (int)strcspn(word, "="),
             word);
    wg_suggestion(suggestion, sizeof suggestion, typed, option_name, list);
    fprintf(stderr, "%s: unrecognized option '%s'%s\n", program, word, suggestion);
    argp_help(parser, stderr, ARGP_HELP_SEE, (char *)program);
    exit(WG__EXIT_USAGE);
}

/* "-abFILE" is a, b and an option with the argument FILE. True if the next word is an argument. */
static bool pass_letters(const struct argp *parser, const char *program, const option_list *list,
                         const char *word) {
    for (const char *letter = word + 1; *letter; letter++) {
        const int option = find_letter(list, *letter);
        if (option < 0 && word[2])
            refuse_option(parser, program, list, word);
        if (option < 0 || list->items[option].takes)
            return option >= 0 && !letter[1];
    }
    return false;
}

void wg__cli_check_options(const struct argp *parser, int argc, char **argv, bool to_verb) {
    static const struct argp_option usual[] = {{"help", '?', NULL, 0, NULL, 0},
                                               {"usage", 1, NULL, 0, NULL, 0},
                                               {"version", 'V', NULL, 0, NULL, 0},
                                               {0}};
    static option_list list;
    list.count = 0;
    list_options(&list, parser);
    list_options(&list, &(struct argp){.options = usual});
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];
        if (word[0] != '-' || !word[1]) {
            if (to_verb)
                return;
        } else if (word[1] != '-') {
            i += pass_letters(parser, argv[0], &list, word);
        } else {
            const int option = find_long(&list, word);
            if (option < 0)
                refuse_option(parser, argv[0], &list, word);
            i += list.items[option].takes && !strchr(word, '=');
        }
    }
}

/* ---- Arguments ---- */

void wg__cli_parse(const struct argp *parser, int argc, char **argv, void *input) {
    wg__cli_check_options(parser, argc, argv, false);
    argp_err_exit_status = WG__EXIT_USAGE;
    argp_parse(parser, argc, argv, 0, NULL, input);
}

void wg__cli_parse_in_order(const struct argp *parser, int argc, char **argv, void *input) {
    wg__cli_check_options(parser, argc, argv, false);
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
