/* wengert corpus check: reports the faults of a training text, and how to mend each. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/options.h"
#include "cli/output.h"
#include "data/internal.h"
#include "data/dataset/dataset.h"

typedef struct arguments {
    const char *job;
    wg_setting_list texts;
    const char *held_out, *tokenizer; /* NULL: not given */
    bool json;
} arguments;

static const char *job_name(int index) {
    return index == 0 ? "check" : NULL;
}

static const wg_setting options[] = {
    {"job", WG_SETTING_TEXT, WG__AT(job), .word = true, .choice = job_name,
     .missing = "missing job: check", .argument = "FILE"},
    {"texts", WG_SETTING_TEXTS, WG__AT(texts), .word = true, .argument = "FILE",
     .missing = "missing FILE"},
    {"held-out", WG_SETTING_TEXT, WG__AT(held_out), .argument = "FILE",
     .help = "The text to measure on: tell how many of its lines are in the training text, too"},
    {"tokenizer", WG_SETTING_TEXT, WG__AT(tokenizer), .argument = "FILE",
     .help = "Tell tokens a word and the share of [UNK] with this tokenizer: what `wengert "
             "tokenizer train' wrote, a checkpoint, or a published file"},
    WG__ROW_JSON(arguments),
};

static void check_job(const void *values) {
    const char *job = ((const arguments *)values)->job;
    char suggestion[96];
    if (strcmp(job, "check") != 0)
        wg__cli_misuse("the job is '%s'; it must be check%s", job,
                       wg__cli_suggestion(suggestion, sizeof suggestion, job, job_name));
}

static const struct fault {
    const char *key, *name, *advice;
} faults[WG_CORPUS_FAULT_COUNT] = {
    [WG_CORPUS_INVALID] = {"invalid_utf8", "bytes that are not UTF-8",
                           "convert the file, for example with iconv -f gb18030 -t utf-8"},
    [WG_CORPUS_BOM] = {"bom", "byte order marks",
                       "remove them: sed -i 's/\\xef\\xbb\\xbf//g' FILE"},
    [WG_CORPUS_CRLF] = {"crlf", "lines that end in CR LF", "remove the CR: sed -i 's/\\r$//' FILE"},
    [WG_CORPUS_NUL] = {"nul", "NUL characters", "remove them: tr -d '\\000'"},
    [WG_CORPUS_REPLACEMENT] =
        {"replacement", "characters U+FFFD",
         "text was lost there: decode the source anew, or remove these lines"},
    [WG_CORPUS_CONTROL] = {"control", "control characters", "remove them: readers do not see them"},
};

static double share(int64_t count, int64_t of) {
    return of > 0 ? (double)count / (double)of : 0;
}

static json_t *finding_json(const arguments *a, const wg_corpus_finding *found, int64_t of) {
    json_t *object = json_pack("{s:I}", "count", (json_int_t)found->count);
    if (of > 0)
        json_object_set_new(object, "share", wg__json_number(share(found->count, of)));
    if (found->count > 0)
        json_object_update_new(object, json_pack("{s:s, s:I}", "file", a->texts.items[found->file],
                                                 "line", (json_int_t)found->line));
    return object;
}

static json_t *lengths_json(const arguments *a, const wg_corpus_lengths *l) {
    return json_pack("{s:I, s:I, s:I, s:I, s:s, s:I}", "count", (json_int_t)l->count, "median",
                     (json_int_t)l->median, "percentile_95", (json_int_t)l->most, "longest",
                     (json_int_t)l->longest, "file", a->texts.items[l->file], "line",
                     (json_int_t)l->line);
}

static void print_json(const arguments *a, const wg_corpus_report *r) {
    json_t *object =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "bytes", (json_int_t)r->bytes, "characters",
                  (json_int_t)r->characters, "lines", lengths_json(a, &r->lines), "documents",
                  lengths_json(a, &r->documents), "repeated_lines",
                  finding_json(a, &r->repeated_lines, r->lines.count), "repeated_documents",
                  finding_json(a, &r->repeated_documents, r->documents.count));
    json_object_set_new(object, "repeated_of_characters",
                        wg__json_number(share(r->repeated_characters, r->characters)));
    for (int i = 0; i < WG_CORPUS_FAULT_COUNT; i++)
        json_object_set_new(object, faults[i].key, finding_json(a, &r->faults[i], 0));
    if (a->held_out) {
        arguments held_out = {.texts.items = (const char *[]){a->held_out}};
        json_object_set_new(object, "overlap",
                            finding_json(&held_out, &r->overlap, r->held_out_lines));
        json_object_set_new(object, "held_out_lines", json_integer(r->held_out_lines));
        json_object_set_new(object, "overlap_of_characters",
                            wg__json_number(share(r->overlap_characters, r->held_out_characters)));
    }
    if (a->tokenizer)
        json_object_update_new(
            object, json_pack("{s:I, s:I, s:o, s:o}", "words", (json_int_t)r->words, "tokens",
                              (json_int_t)r->tokens, "tokens_per_word",
                              wg__json_number(share(r->tokens, r->words)), "unknown_share",
                              wg__json_number(share(r->unknown, r->tokens))));
    wg__print_json(JSON_INDENT(2), object);
}

static void print_repeated(const arguments *a, const char *name, const wg_corpus_finding *found,
                           int64_t of, const char *of_characters, const char *advice) {
    printf("%-12s %lld of %lld are repeated (%.2f %%%s)", name, (long long)found->count,
           (long long)of, 100 * share(found->count, of), of_characters);
    if (found->count > 0)
        printf(", first %s:%lld\n  -> %s", a->texts.items[found->file], (long long)found->line,
               advice);
    putchar('\n');
}

static void print_lengths(const arguments *a, const char *name, const wg_corpus_lengths *l) {
    printf("%-12s median %lld characters, 95 %% up to %lld, longest %lld at %s:%lld\n", name,
           (long long)l->median, (long long)l->most, (long long)l->longest, a->texts.items[l->file],
           (long long)l->line);
}

static void print_text(const arguments *a, const wg_corpus_report *r) {
    printf("text         %lld characters, %lld bytes; %lld lines in %lld documents\n",
           (long long)r->characters, (long long)r->bytes, (long long)r->lines.count,
           (long long)r->documents.count);
    char of_characters[64];
    snprintf(of_characters, sizeof of_characters, ", %.2f %% of the characters",
             100 * share(r->repeated_characters, r->characters));
    print_repeated(a, "lines", &r->repeated_lines, r->lines.count, of_characters,
                   "drop those that are no headings: a model learns repeated lines by heart");
    print_repeated(a, "documents", &r->repeated_documents, r->documents.count, "",
                   "drop all but one of each");
    if (a->held_out)
        printf("held out     %lld of %lld lines are in the text, too (%.2f %%, %.2f %% of the "
               "characters)",
               (long long)r->overlap.count, (long long)r->held_out_lines,
               100 * share(r->overlap.count, r->held_out_lines),
               100 * share(r->overlap_characters, r->held_out_characters));
    if (a->held_out && r->overlap.count > 0)
        printf(", first %s:%lld\n  -> remove them from one of the texts: do not measure a model on "
               "its training text",
               a->held_out, (long long)r->overlap.line);
    if (a->held_out)
        putchar('\n');
    const double a_word = share(r->tokens, r->words), unknown = share(r->unknown, r->tokens);
    if (a->tokenizer)
        printf("tokens       %lld, %.2f a word; %.3f %% are [UNK]\n", (long long)r->tokens, a_word,
               100 * unknown);
    if (a->tokenizer && a_word > 2)
        printf("  -> learn a larger vocabulary, or one from this text\n");
    if (a->tokenizer && unknown > 0.005)
        printf("  -> learn a vocabulary from this text, with more characters (--alphabet) or of a "
               "kind without [UNK] (bpe, byte)\n");
    int64_t found = 0;
    for (int i = 0; i < WG_CORPUS_FAULT_COUNT; i++) {
        const wg_corpus_finding *fault = &r->faults[i];
        found += fault->count;
        if (fault->count > 0)
            printf("encoding     %lld %s, first %s:%lld\n  -> %s\n", (long long)fault->count,
                   faults[i].name, a->texts.items[fault->file], (long long)fault->line,
                   faults[i].advice);
    }
    if (found == 0)
        printf("encoding     UTF-8 without byte order marks, CR, NUL, U+FFFD and control "
               "characters\n");
    print_lengths(a, "line length", &r->lines);
    print_lengths(a, "doc. length", &r->documents);
    if (r->documents.count == 1)
        printf("  -> end documents by blank lines or lines <|endoftext|>, for example so that some "
               "can be held out\n");
}

/* A corpus of more bytes is not read once more before it is trained on. */
static const int64_t MOST_BYTES = INT64_C(1) << 30;

/* True if the files are texts that can be read more than once, and not too many bytes. */
static bool is_worth_reading(int count, const char *const *paths) {
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        struct stat file;
        if (stat(paths[i], &file) != 0 || !S_ISREG(file.st_mode) ||
            wg__dataset_is_token_file(paths[i]))
            return false;
        bytes += file.st_size;
    }
    return bytes <= MOST_BYTES;
}

void wg__corpus_warn(int count, const char *const *paths, const char *held_out) {
    wg_corpus_report r;
    wg_corpus_check_options how = {.held_out = held_out};
    if (held_out && !is_worth_reading(1, &held_out))
        how.held_out = NULL;
    if (!is_worth_reading(count, paths) || wg__corpus_check(count, paths, &how, &r) < 0) {
        wg_error_clear();
        return;
    }
    const wg_corpus_finding *lost = &r.faults[WG_CORPUS_REPLACEMENT];
    const wg_corpus_finding *control = &r.faults[WG_CORPUS_CONTROL];
    const struct {
        double share, most;
        const char *text, *path;
        int64_t line;
    } warnings[] = {
        {share(r.overlap_characters, r.held_out_characters), 0.02,
         "the held-out text is in the training text, too, so that the measured loss is too low",
         held_out, r.overlap.line},
        {share(r.repeated_characters, r.characters), 0.1,
         "the text are repeated lines, which a model learns by heart", paths[r.repeated_lines.file],
         r.repeated_lines.line},
        {share(lost->count, r.characters), 1e-3, "the characters are U+FFFD, the mark of lost text",
         paths[lost->file], lost->line},
        {share(control->count, r.characters), 1e-3, "the characters are control characters",
         paths[control->file], control->line},
    };
    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++)
        if (warnings[i].share > warnings[i].most)
            wg__cli_note("%.1f %% of %s, first %s:%lld; `wengert corpus check' says more",
                         100 * warnings[i].share, warnings[i].text, warnings[i].path,
                         (long long)warnings[i].line);
}

int wg__verb_corpus(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a)},
        .check = check_job,
        .lines = "check FILE...",
        .doc = "Checks a training text: repeated lines and documents, overlap with the text to "
               "measure on, tokens, encoding and lengths, with what to do about each finding.\v"
               "Lines are compared without the blanks at their ends. Documents end at lines "
               "\"<|endoftext|>\"; in a file without these, at three blank lines; in one without "
               "these, too, at each blank line. A word is a text between spaces, or an ideograph. "
               "Files of any size are read as streams.",
    };
    wg__cli_read(&usage, argc, argv);
    wg_tokenizer *tokenizer = a.tokenizer ? wg_tokenizer_load(a.tokenizer) : NULL;
    if (a.tokenizer && !tokenizer)
        return wg__cli_fail_pending();
    const wg_corpus_check_options how = {.held_out = a.held_out, .tokenizer = tokenizer};
    wg_corpus_report report;
    const int status = wg__corpus_check((int)a.texts.count, a.texts.items, &how, &report);
    wg_tokenizer_free(tokenizer);
    if (status < 0)
        return wg__cli_fail_pending();
    (a.json ? print_json : print_text)(&a, &report);
    return 0;
}
