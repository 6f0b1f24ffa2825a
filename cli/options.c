/* The command line: see options.h. A line is split into items, which fill the rows.
 *
 *     wengert --complete pretrain bert --pre        prints --preset, a tab and its line of --help
 *     wengert --complete pretrain bert --preset ''  prints bert-tiny, bert-mini...
 *
 * With `--complete', the words are parsed as usual up to the verb that reads the last word. The
 * verb then prints the candidates for this word, one a line, and the process ends. The line
 * ":files" means file names, which the shell completes itself. The scripts in completion/ call
 * this. */
#include "cli/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/array.h"
#include "config.h"
#include "models/internal.h"

static const char *program; /* "wengert fill" */

void wg__cli_misuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry `%s --help' or `%s --usage' for more information.\n", program, program);
    va_end(arguments);
    exit(WG__EXIT_USAGE);
}

void wg__cli_leave_reading(void) {
    const wg_error *error = wg_error_pending();
    if (strcmp(error->where, "options") != 0)
        exit(wg__cli_fail_pending());
    wg__cli_misuse("%s", error->message + strlen("options: "));
}

/* ---- Rows that verbs share ---- */

int64_t wg__threads_given;

static const wg_setting threads_rows[] = {
    {"threads", WG_SETTING_INTEGER, .low = 1, .high = 4096, .argument = "N",
     .help = "Use N threads (all processors; of several ranks on a machine each its share)"}};

const wg_setting_table wg__threads_options = WG__OPTIONS(threads_rows, wg__threads_given);

const char *wg__product_dtype_name(int index) {
    static const char *const names[] = {"f32", "bf16", NULL};
    return names[index];
}

const char *wg__weights_dtype_name(int index) {
    return index == 0                          ? "f32"
           : index <= WG_QUANTIZATION_Q4_0 + 1 ? wg_quantization_name((wg_quantization)(index - 1))
                                               : NULL;
}

static const wg_setting usual_rows[] = {
    {.name = "help", .kind = WG_SETTING_FLAG, .letter = '?', .help = "Give this help list"},
    {.name = "usage", .kind = WG_SETTING_FLAG, .help = "Give a short usage message"},
    {.name = "version", .kind = WG_SETTING_FLAG, .letter = 'V', .help = "Print program version"}};

/* The index-th option of a line, the usual ones last, or NULL. */
static const wg_setting *option_at(const wg_settings *settings, int index) {
    for (int i = 0; i < settings->count; i++)
        for (int r = 0; r < settings->parts[i].table->count; r++)
            if (settings->parts[i].table->rows[r].help && index-- == 0)
                return &settings->parts[i].table->rows[r];
    return index < 3 ? &usual_rows[index] : NULL;
}

/* ---- Help ---- */

/* Prints a text from a column on, with line breaks before words that would pass the margin. */
static void print_wrapped(const char *text, int column, int indent) {
    enum { MARGIN = 80 };
    while (*text) {
        const int blanks = (int)strspn(text, " "),
                  all = blanks + (int)strcspn(text + blanks, " \n");
        if (*text == '\n') {
            putchar('\n');
            column = 0;
            text++;
        } else if (column + all >= MARGIN && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
            text += blanks;
        } else {
            column += printf("%.*s", all, text);
            text += all;
        }
    }
    putchar('\n');
}

/* "  -o, --out=FILE             Help (its default; defaults of models)". */
static void print_option(const wg__usage *usage, const wg_settings *settings,
                         const wg_setting *row) {
    enum { HELP = 29 };
    char *text = NULL;
    size_t size;
    const char *standard = row->standard ? row->standard + (*row->standard == '"') : "";
    const int length = (int)strcspn(standard, "\""); /* 0 of an empty text */
    bool any = length > 0, kept = false;
    for (int i = 0; i < settings->count; i++)
        kept |= settings->parts[i].table->where &&
                wg__settings_find(settings->parts[i].table, row->name) == row;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        exit(wg__cli_fail("no memory for --help"));
    fputs(row->help, stream);
    if (any)
        fprintf(stream, " (%.*s", length, standard);
    if (kept && usage->print_more)
        usage->print_more(row, stream, &any);
    fputs(any ? ")" : "", stream);
    if (fclose(stream) != 0)
        exit(wg__cli_fail("no memory for --help"));
    int column = row->letter ? printf("  -%c, --%s", row->letter, row->name)
                             : printf("      --%s", row->name);
    if (row->kind != WG_SETTING_FLAG)
        column += printf("%s%s", row->argument && row->argument[0] == '[' ? "" : "=",
                         row->argument ? row->argument : "VALUE");
    if (column >= HELP - 1)
        column = printf("\n%*s", HELP, "") - 1;
    else
        column += printf("%*s", HELP - column, "");
    print_wrapped(text, column, HELP);
    free(text);
}

static void print_usage(const wg__usage *usage) {
    const char *line = usage->lines ? usage->lines : "";
    do {
        const int length = (int)strcspn(line, "\n");
        printf("%s %s [OPTION...]%s%.*s\n",
               line == usage->lines || !*line ? "Usage:" : "  or: ", program, length ? " " : "",
               length, line);
        line += length + (line[length] == '\n');
    } while (*line);
}

static void print_help(const wg__usage *usage, const wg_settings *settings) {
    const char *notes = strchr(usage->doc, '\v');
    const wg_setting *row;
    bool waiting = false;
    print_usage(usage);
    char *doc = strndup(usage->doc, strcspn(usage->doc, "\v"));
    print_wrapped(doc ? doc : "", 0, 0);
    free(doc);
    putchar('\n');
    for (int i = 0; i < settings->count; i++) {
        const wg_setting_part *part = &settings->parts[i];
        for (int r = 0; r < part->table->count; r++) {
            row = &part->table->rows[r];
            const wg_setting *first = NULL;
            for (int k = 0; k < i && !first; k++)
                first = wg__settings_find(settings->parts[k].table, row->name);
            if (!row->help || first) /* of several objectives */
                continue;
            if (row->heading || (!part->values && !waiting))
                printf("\n %s\n", row->heading ? row->heading : "Objective:");
            waiting |= !part->values;
            print_option(usage, settings, row);
        }
    }
    putchar('\n');
    for (int i = 0; i < 3; i++)
        print_option(usage, settings, &usual_rows[i]);
    if (notes) {
        putchar('\n');
        print_wrapped(notes + 1, 0, 0);
    }
    if (usage->list) {
        putchar('\n');
        usage->list();
    }
}

/* ---- Splitting a line ---- */

static bool completes;

void wg__cli_begin_completion(int *argc, char ***argv) {
    if (*argc < 3 || strcmp((*argv)[1], "--complete") != 0)
        return;
    completes = true;
    (*argv)[1] = (*argv)[0];
    ++*argv;
    --*argc;
}

static const char *option_name(const void *settings, int index) {
    static char names[512][48]; /* all are compared with each other */
    const wg_setting *row = index < 512 ? option_at(settings, index) : NULL;
    if (row)
        snprintf(names[index], sizeof names[0], "--%s", row->name);
    return row ? names[index] : NULL;
}

/* The option that a word -L..., --NAME or --NAME=VALUE names or begins. */
static const wg_setting *find_option(const wg_settings *settings, const char *word) {
    const bool is_long = word[1] == '-';
    const size_t length = is_long ? strcspn(word + 2, "=") : 0;
    const wg_setting *row, *begun = NULL;
    bool ambiguous = false;
    char suggestion[96], typed[128];
    for (int i = 0; (row = option_at(settings, i)); i++) {
        if (is_long ? strlen(row->name) == length && strncmp(row->name, word + 2, length) == 0
                    : row->letter == word[1])
            return row;
        if (!is_long || strncmp(row->name, word + 2, length) != 0)
            continue;
        ambiguous |= begun && strcmp(begun->name, row->name) != 0;
        begun = row;
    }
    if (ambiguous)
        wg__cli_misuse("option '%s' is ambiguous", word);
    if (begun)
        return begun;
    snprintf(typed, sizeof typed, "%s%.*s", is_long ? "" : "-", (int)strcspn(word, "="), word);
    wg__cli_misuse("unrecognized option '%s'%s", word,
                   wg__suggestion(suggestion, sizeof suggestion, typed, option_name, settings));
}

/* A line that is being split. With --complete its last word is left. */
typedef struct splitting {
    wg__line line;
    int next;                 /* in argv */
    bool only_words;          /* "--" was there */
    const wg_setting *awaits; /* the option whose argument the last word is, or NULL */
} splitting;

/* Splits up to the end, or to behind the first word. */
static splitting split(const wg__usage *usage, const wg_settings *settings, int argc, char **argv,
                       bool to_word) {
    splitting s = {.line.items = wg__cli_calloc((size_t)argc, sizeof *s.line.items), .next = 1};
    program = argv[0];
    while (s.next < argc - completes) {
        const char *word = argv[s.next++], *text = word;
        const wg_setting *row = NULL;
        if (!s.only_words && strcmp(word, "--") == 0) {
            s.only_words = true;
            continue;
        }
        if (!s.only_words && word[0] == '-' && word[1]) {
            row = find_option(settings, word);
            const char *value = word[1] == '-' ? strchr(word, '=') : word + 1;
            text = value && (value[1] || word[1] == '-') ? value + 1 : NULL;
            if (row->kind == WG_SETTING_FLAG && value && word[1] == '-')
                wg__cli_misuse("option '--%s' doesn't allow an argument", row->name);
            if (row->argument && row->argument[0] == '[' && !text)
                text = ""; /* of "[=FILE]", whose argument may be left out */
            if (row->kind != WG_SETTING_FLAG && !text) {
                if (s.next == argc - completes && completes)
                    s.awaits = row;
                else if (s.next == argc)
                    wg__cli_misuse("option '%s' requires an argument", word);
                text = argv[s.next++];
            }
        }
        if (!completes && (row == &usual_rows[0] || row == &usual_rows[1])) {
            if (row == &usual_rows[0])
                print_help(usage, settings);
            else
                print_usage(usage);
            exit(0);
        }
        if (!completes && row == &usual_rows[2]) {
            puts(PACKAGE_STRING);
            exit(0);
        }
        s.line.items[s.line.count].row = row;
        s.line.items[s.line.count++].text = text;
        if (!row && to_word)
            break;
    }
    return s;
}

/* ---- How a line may go on ---- */

/* Prints a candidate for the word `typed` if it begins with it. */
static void offer(const char *candidate, const char *doc, const char *typed) {
    if (strncmp(candidate, typed, strlen(typed)) != 0)
        return;
    const int length = doc ? (int)strcspn(doc, ".;:(\n") : 0;
    printf(length ? "%s\t%.*s\n" : "%s\n", candidate, length, doc);
}

/* Offers the values of a row; `model` is the first word of the line. */
static void offer_values(const wg_setting *row, const char *typed, const char *model) {
    static const char *const files[] = {"FILE",  "FOLDER", "DIR", ".h5",
                                        ".json", ".so",    "OUT", "PATH"};
    const wg_model_type *type = model ? wg_model_type_find(model) : NULL;
    const char *name;
    wg_error_clear();
    if (row->choice == wg__model_preset_name && type)
        for (const wg_model_preset *preset = type->presets; preset->name; preset++)
            offer(preset->name, NULL, typed);
    else
        for (int i = 0; row->choice && (name = row->choice(i)); i++)
            offer(name, NULL, typed);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (row->argument && strstr(row->argument, files[i])) {
            puts(":files");
            return;
        }
}

/* The row that the next word fills after `words` others, or NULL. */
static const wg_setting *word_row(const wg_settings *settings, int words) {
    for (int i = 0; i < settings->count; i++)
        for (int r = 0; r < settings->parts[i].table->count; r++) {
            const wg_setting *row = &settings->parts[i].table->rows[r];
            const bool is_list = row->kind == WG_SETTING_TEXTS || row->kind == WG_SETTING_FILES;
            if (row->word && settings->parts[i].values && (is_list || words-- == 0))
                return row;
        }
    return NULL;
}

static void complete(const splitting *s, const wg_settings *settings, const char *typed) {
    const char *model = NULL;
    const wg_setting *row;
    int words = 0;
    for (int i = 0; i < s->line.count; i++)
        if (!s->line.items[i].row)
            model = words++ ? model : s->line.items[i].text;
    if (s->awaits)
        offer_values(s->awaits, typed, model);
    else if (typed[0] == '-' && !s->only_words)
        for (int i = 0; (row = option_at(settings, i)); i++)
            offer(option_name(settings, i), row->help, typed);
    else if ((row = word_row(settings, words)))
        offer_values(row, typed, NULL);
    exit(fflush(stdout) == 0 ? 0 : 1);
}

/* ---- Reading a line ---- */

wg__line wg__cli_split(const wg__usage *usage, wg_settings *settings, int argc, char **argv) {
    const splitting s = split(usage, settings, argc, argv, false);
    if (completes)
        complete(&s, settings, argc > 1 ? argv[argc - 1] : "");
    return s.line;
}

void wg__cli_assign(wg__line *line, wg_settings *settings) {
    int words = 0;
    for (int i = 0; i < line->count; i++) {
        const wg_setting *row = line->items[i].row;
        if (!row && !(row = word_row(settings, words++)))
            wg__cli_misuse("'%s' is one too many", line->items[i].text);
        if (wg__settings_set_text(settings, row->name, line->items[i].text) < 0)
            wg__cli_leave_reading();
    }
    free(line->items);
    for (int i = 0; i < settings->count; i++) {
        const wg_setting_part *part = &settings->parts[i];
        for (int r = 0; part->values && r < part->table->count; r++)
            if (part->table->rows[r].missing && part->origins[r] == WG_SETTING_UNSET)
                wg__cli_misuse("%s", part->table->rows[r].missing);
    }
}

static wg_settings given; /* filled by wg__cli_read */

void wg__cli_read(const wg__usage *usage, int argc, char **argv) {
    wg__cli_begin_reading();
    for (int i = 0; i < 6 && usage->parts[i].table; i++)
        if (wg__settings_add(&given, usage->parts[i].table, usage->parts[i].values) < 0)
            wg__cli_leave_reading();
    wg__line line = wg__cli_split(usage, &given, argc, argv);
    wg__cli_assign(&line, &given);
    if (usage->check)
        usage->check(usage->parts[0].values);
    wg__cli_end_reading();
    wg__cli_use_threads((int)wg__threads_given);
    wg__cli_work_begun = true;
}

bool wg__cli_given(const void *member) {
    return wg__settings_given(&given, member);
}

/* ---- Verbs ---- */

static const wg__verb_table *listed; /* by list_verbs */

static void list_verbs(void) {
    printf("%s:\n", listed->title);
    for (const wg__verb *verb = listed->verbs; verb->name; verb++)
        printf("  %-11s %s\n", verb->name, verb->purpose);
    printf("\n`%s %.*s --help' tells more about each.\n", listed->prefix,
           (int)strcspn(listed->args_doc, " "), listed->args_doc);
}

static const char *verb_name(const void *verbs, int index) {
    return ((const wg__verb *)verbs)[index].name;
}

const wg__verb *wg__cli_verb(int *argc, char ***argv, const wg__verb_table *table) {
    static char name[64];
    static const wg_settings none;
    const wg__usage usage = {.lines = table->args_doc, .doc = table->doc, .list = list_verbs};
    listed = table;
    wg__cli_begin_reading();
    const splitting s = split(&usage, &none, *argc, *argv, true);
    const int count = s.line.count;
    const char *typed = count > 0 ? s.line.items[count - 1].text : NULL;
    free(s.line.items);
    if (completes && !typed) {
        const char *last = *argc > 1 ? (*argv)[*argc - 1] : "";
        for (int i = 0; last[0] != '-' && table->verbs[i].name; i++)
            offer(table->verbs[i].name, NULL, last);
        complete(&s, &none, last);
    }
    if (!typed) {
        char names[256] = "";
        for (const wg__verb *verb = table->verbs; verb->name; verb++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     verb == table->verbs ? "" : ", ", verb->name);
        wg__cli_misuse("missing %s: %s", table->noun, names);
    }
    const wg__verb *verb = table->verbs;
    while (verb->name && strcmp(verb->name, typed) != 0)
        verb++;
    if (!verb->name) {
        char suggestion[96];
        wg__cli_misuse(
            "there is no %s '%s'%s", table->noun, typed,
            wg__suggestion(suggestion, sizeof suggestion, typed, verb_name, table->verbs));
    }
    wg__cli_end_reading();
    snprintf(name, sizeof name, "%s %s", table->prefix, verb->name);
    *argc -= s.next - 1;
    *argv += s.next - 1;
    (*argv)[0] = name;
    return verb;
}
