/* wengert translate: sentences in, their translations out, in order. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/decoding.h"
#include "cli/output.h"
#include "base/internal.h"

typedef struct arguments {
    const char *run;
    wg_setting_list texts; /* none: lines of standard input */
    int64_t batch;
    wg_beam_options beam;
    bool json;
} arguments;

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true,
     .missing = "RUN.h5 is missing: which model?", .argument = "RUN.h5"},
    {"texts", WG_SETTING_TEXTS, WG__AT(texts), .word = true},
    {"batch", WG_SETTING_INTEGER, WG__AT(batch), .low = 1, .high = 65536, .standard = "32",
     .argument = "N", .help = "Translate N sentences at a time"},
    WG__ROW_JSON(arguments),
};

typedef struct job {
    const arguments *asked;
    wg__trained trained;
    json_t *results; /* with --json; NULL: lines are printed */
} job;

static int no_memory(void) {
    return wg_fail(WG_ERROR_MEMORY, "translate", "no memory for the text");
}

/* Translates sentences, which all ranks have; rank 0 prints them. `number` is the number of the
 * first sentence in messages. */
static int translate(const job *j, int64_t count, char *const *texts, int64_t number) {
    wg_group *group = wg__cli_group;
    char **translations = calloc((size_t)count + 1, sizeof *translations);
    int *owners = calloc((size_t)count + 1, sizeof *owners);
    const int64_t batch = j->asked->batch;
    int result = translations && owners ? 0 : no_memory();
    /* Rank i mod N translates batch i. */
    for (int64_t first = 0; result == 0 && first < count; first += batch) {
        const int64_t rows = wg__smaller(count - first, batch);
        const wg_translation_use how = {
            .batch = batch, .beam = j->asked->beam, .first_number = number + first};
        const int owner = (int)(first / batch % wg_group_size(group));
        for (int64_t i = first; i < first + rows; i++)
            owners[i] = owner;
        if (owner == wg_group_rank(group))
            result = wg_translate_texts(&j->trained.model, j->trained.tokenizer, &how, rows,
                                        (const char *const *)texts + first, translations + first);
    }
    result = wg_group_check(group, result);
    if (result == 0)
        result = wg__group_collect_texts(group, count, owners, translations);
    for (int64_t i = 0; translations && i < count; i++) {
        if (result == 0 && wg__cli_leads() && j->results)
            json_array_append_new(j->results, json_pack("{s:s, s:s}", "source", texts[i],
                                                        "translation", translations[i]));
        else if (result == 0 && wg__cli_leads())
            puts(translations[i]);
        wg_text_free(translations[i]);
    }
    free(owners);
    free(translations);
    fflush(stdout);
    return result;
}

/* Lines that were read and are not translated yet: at most one batch for each rank. */
typedef struct input {
    char *bytes;
    size_t length, capacity;
    bool ended;
    int64_t line;        /* of the first in the batches, from 1 on */
    char **lines;        /* (most) */
    int64_t count, most; /* of them */
    bool had_text;       /* a line that is not blank */
} input;

/* Reads the available bytes, and waits if there are none. */
static int read_more(input *in) {
    enum { LEAST = 65536 };
    if (in->capacity - in->length < LEAST) {
        char *grown = reallocarray(in->bytes, (size_t)in->capacity + LEAST, 2);
        if (!grown)
            return no_memory();
        in->bytes = grown;
        in->capacity = 2 * (in->capacity + LEAST);
    }
    ssize_t got;
    do
        got = read(STDIN_FILENO, in->bytes + in->length, in->capacity - in->length);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return wg_fail(WG_ERROR_IO, "translate", "cannot read standard input: %s", strerror(errno));
    in->ended = got == 0;
    in->length += (size_t)got;
    return 0;
}

/* Moves the first `length` bytes, and the line break behind them, into the batches. */
static int append_line(input *in, size_t length) {
    const int64_t number = in->line + in->count;
    if (memchr(in->bytes, '\0', length))
        return wg_fail(WG_ERROR_FORMAT, "translate", "line %lld holds a NUL; it is no text",
                       (long long)number);
    char *line = malloc(length + 1);
    if (!line)
        return no_memory();
    memcpy(line, in->bytes, length);
    line[length] = '\0';
    in->had_text |= line[strspn(line, " \t\r")] != '\0';
    in->lines[in->count++] = line;
    const size_t used = length < in->length ? length + 1 : length;
    in->length -= used;
    memmove(in->bytes, in->bytes + used, in->length);
    return 0;
}

/* A round: rank 0 reads until the batches are full or no more input is available, and all ranks
 * translate. *last: these are the last lines. */
static int translate_lines(const job *j, input *in, bool *last) {
    wg_group *group = wg__cli_group;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int result = 0;
    while (wg__cli_leads() && result == 0 && in->count < in->most) {
        const char *end = in->length > 0 ? memchr(in->bytes, '\n', in->length) : NULL;
        if (end)
            result = append_line(in, (size_t)(end - in->bytes));
        else if (in->ended && in->length > 0)
            result = append_line(in, in->length);
        else if (in->ended || (in->count > 0 && poll(&input, 1, 0) == 0))
            break;
        else
            result = read_more(in);
    }
    result = wg_group_check(group, result);
    int64_t sizes[] = {in->count, in->ended && in->length == 0};
    if (result == 0)
        result = wg_group_broadcast(group, 0, sizeof sizes, sizes);
    in->count = result == 0 ? sizes[0] : in->count;
    *last = sizes[1];
    int *owners = calloc((size_t)in->count + 1, sizeof *owners); /* rank 0 */
    if (result == 0)
        result = wg_group_check(group, owners ? 0 : no_memory());
    if (result == 0)
        result = wg__group_collect_texts(group, in->count, owners, in->lines);
    free(owners);
    if (result == 0)
        result = translate(j, in->count, in->lines, in->line);
    for (int64_t i = 0; i < in->count; i++) {
        if (wg__cli_leads())
            free(in->lines[i]);
        else
            wg_text_free(in->lines[i]);
        in->lines[i] = NULL;
    }
    in->line += in->count;
    in->count = 0;
    return result;
}

static int run(const arguments *a) {
    job j = {.asked = a};
    const wg_objective *objective = wg__trained_objective(a->run, WG__USE_TRANSLATE);
    const int loaded = objective ? wg__trained_load(&j.trained, objective, a->run) : -1;
    if (wg_group_check(wg__cli_group, loaded) < 0 || wg__cli_agree_on_file(a->run) < 0)
        return -1;
    j.results = a->json ? json_array() : NULL;
    int result = 0;
    for (int64_t i = 0; result == 0 && i < a->texts.count; i++)
        if (a->texts.items[i][strspn(a->texts.items[i], " \t\r\n")] == '\0')
            result =
                wg_fail(WG_ERROR_ARGUMENT, "translate", "text %lld is empty", (long long)i + 1);
    if (result == 0 && a->texts.count > 0) {
        result = translate(&j, a->texts.count, (char *const *)a->texts.items, 1);
    } else if (result == 0) {
        input in = {.line = 1, .most = a->batch * wg_group_size(wg__cli_group)};
        bool last = false;
        in.lines = calloc((size_t)in.most, sizeof *in.lines);
        result = wg_group_check(wg__cli_group, in.lines ? 0 : no_memory());
        while (result == 0 && !last)
            result = translate_lines(&j, &in, &last);
        free(in.lines);
        free(in.bytes);
        if (result == 0 && wg__cli_leads() && !in.had_text)
            result = wg_fail(WG_ERROR_ARGUMENT, "translate", "there is no text on standard input");
    }
    if (result == 0 && j.results && wg__cli_leads())
        wg__print_json(JSON_INDENT(2), json_pack("{s:O}", "translations", j.results));
    json_decref(j.results);
    wg__trained_clear(&j.trained);
    return result;
}

int wg__verb_translate(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 TEXT...\nRUN.h5 < SOURCE > TARGET",
        .doc = "Translates sentences: each TEXT, or else each line of standard "
               "input, into a line.\v"
               "Lines come out in their order, as soon as a batch of them is full or nothing more "
               "waits to be read; an empty one stays empty.",
        .parts = {WG__PART(options, a), {&wg__beam_options, &a.beam}, WG__PART_THREADS},
    };
    wg__cli_read(&usage, argc, argv);
    wg__group_set_timeout(wg__cli_group, 0); /* rank 0 waits for input from a terminal */
    return wg__cli_agree(argc, argv) < 0 || run(&a) < 0 ? wg__cli_fail_pending() : 0;
}
