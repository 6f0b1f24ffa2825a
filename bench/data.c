/* wengert bench data: how fast text becomes tokens, and tokens batches. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cli/output.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/characters.h"
#include "data/batches/pair_batch.h"
#include "data/tokenizer/wordpiece.h"
#include "objectives/objective.h"

enum { MAX_RUNS = 1001, MIN_RUNS = 3, MAX_SIZE = 1 << 20 };

#define BOOKS "corpus/books/*.txt"

typedef struct arguments {
    wg_setting_list corpus, tokenizers;
    int64_t batch, sequence;
    double seconds;
} arguments;

static const wg_setting options[] = {
    {"corpus", WG_SETTING_TEXTS, offsetof(arguments, corpus), .argument = "FILE",
     .help = "A text, which may be given again for more (default: " BOOKS ")"},
    {"tokenizer", WG_SETTING_TEXTS, offsetof(arguments, tokenizers), .argument = "FILE",
     .help = "Time this tokenizer, too; may be given again"},
    {"batch", WG_SETTING_INTEGER, offsetof(arguments, batch), .low = 1, .high = MAX_SIZE,
     .standard = "32", .argument = "N", .help = "Sequences in a batch"},
    {"seq", WG_SETTING_INTEGER, offsetof(arguments, sequence), .low = 8, .high = MAX_SIZE,
     .standard = "128", .argument = "N", .help = "Tokens in a sequence"},
    {"seconds", WG_SETTING_NUMBER, offsetof(arguments, seconds), .high = 3600, .standard = "0.5",
     .argument = "X", .help = "How long each is timed"},
};

/* ---- Timing ---- */

/* Does a part of the work, and tells how much it was. -1 with an error. */
typedef int (*work)(void *context, double *amount);

/* The median of what is done in a second, over runs of which the first warms up. */
static int time_work(work run, void *context, double seconds, double *per_second) {
    static double rates[MAX_RUNS];
    double total = 0;
    int count = -1;
    while (count < MAX_RUNS && (count < MIN_RUNS || total < seconds)) {
        wg_scope scope;
        wg_scope_begin(&scope);
        double amount = 0;
        const double start = wg__now();
        const int status = run(context, &amount);
        const double took = wg__now() - start;
        wg_scope_end(&scope, NULL);
        if (status < 0)
            return -1;
        if (count >= 0) {
            rates[count] = amount / took;
            total += took;
        }
        count++;
    }
    *per_second = wg__median(count, rates);
    return 0;
}

/* ---- Tokenizers ---- */

typedef struct encoding {
    const wg_tokenizer *tokenizer;
    const char *text;
    int64_t length;
    wg_token_list list;
} encoding;

static int encode_whole(void *context, double *bytes) {
    encoding *e = context;
    e->list.count = 0;
    *bytes = (double)e->length;
    return wg_tokenizer_encode(e->tokenizer, e->text, e->length, NULL, &e->list);
}

static int encode_lines(void *context, double *bytes) {
    encoding *e = context;
    e->list.count = 0;
    *bytes = (double)e->length;
    const char *end = e->text + e->length;
    for (const char *line = e->text, *stop; line < end; line = stop) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        stop = newline ? newline + 1 : end;
        if (wg_tokenizer_encode(e->tokenizer, line, stop - line, NULL, &e->list) < 0)
            return -1;
    }
    return 0;
}

static int time_tokenizer(const wg_tokenizer *tokenizer, const char *from, const char *text,
                          double seconds) {
    encoding e = {.tokenizer = tokenizer, .text = text, .length = (int64_t)strlen(text)};
    double whole, lines, bytes_a_token = 0;
    int status = time_work(encode_whole, &e, seconds, &whole);
    if (status == 0 && e.list.count > 0)
        bytes_a_token = (double)e.length / (double)e.list.count;
    if (status == 0)
        status = time_work(encode_lines, &e, seconds, &lines);
    wg_token_list_free(&e.list);
    if (status == 0)
        wg__print_json_line(json_pack(
            "{s:s, s:s, s:I, s:f, s:f, s:f}", "tokenizer", wg_tokenizer_kind(tokenizer), "from",
            from, "vocabulary", (json_int_t)wg_tokenizer_size(tokenizer), "mb_per_s", 1e-6 * whole,
            "mb_per_s_by_line", 1e-6 * lines, "bytes_per_token", bytes_a_token));
    fflush(stdout);
    return status;
}

static wg_tokenizer *learn_wordpiece(const char *text) {
    return wg_wordpiece_train(text, -1, &(wg_wordpiece_training){.vocabulary_size = 8192});
}

static wg_tokenizer *learn_bpe(const char *text) {
    return wg_bpe_train(text, -1, &(wg_bpe_training){.vocabulary_size = 8192});
}

static wg_tokenizer *learn_characters(const char *text) {
    return wg_char_train(text, -1, &(wg_char_training){.unknown = false});
}

static wg_tokenizer *make_bytes(const char *text) {
    (void)text;
    return wg_byte_new();
}

static int time_tokenizers(const arguments *a, const char *text) {
    static wg_tokenizer *(*const learnt[])(const char *) = {learn_wordpiece, learn_bpe,
                                                            learn_characters, make_bytes};
    const int64_t learnt_count = (int64_t)(sizeof learnt / sizeof *learnt);
    int status = 0;
    for (int64_t i = 0; status == 0 && i < learnt_count + a->tokenizers.count; i++) {
        const char *path = i < learnt_count ? NULL : a->tokenizers.items[i - learnt_count];
        wg_tokenizer *tokenizer = path ? wg_tokenizer_load(path) : learnt[i](text);
        status =
            tokenizer ? time_tokenizer(tokenizer, path ? path : "the text", text, a->seconds) : -1;
        wg_tokenizer_free(tokenizer);
    }
    return status;
}

/* ---- Batches ---- */

typedef struct material {
    const arguments *arguments;
    const char *text;
    wg_tokenizer *tokenizer;
    wg_dataset *sentences;
} material;

static int time_batches(const material *m, const char *name, work next, void *context) {
    double per_second;
    if (time_work(next, context, m->arguments->seconds, &per_second) < 0)
        return -1;
    wg__print_json_line(json_pack("{s:s, s:I, s:I, s:f}", "batches", name, "batch",
                                  (json_int_t)m->arguments->batch, "seq",
                                  (json_int_t)m->arguments->sequence, "tokens_per_s", per_second));
    fflush(stdout);
    return 0;
}

/* Batches of an objective, and room for one of them. */
typedef struct drawing {
    const wg_objective *objective;
    wg_batches *batches;
    char *batch;
} drawing;

static int next_batch(void *context, double *tokens) {
    const drawing *d = context;
    int64_t count = 0;
    const int status = wg_batches_next(d->batches, d->batch);
    if (status == 0)
        memcpy(&count, d->batch + d->objective->data.batch_tokens, sizeof count);
    *tokens = (double)count;
    return status;
}

/* Lines with a letter, for translation: each is its own translation. */
static char *lines_of(const char *text) {
    char *lines = malloc(strlen(text) + 1), *end = lines;
    for (const char *line = text; lines && *line;) {
        const size_t length = strcspn(line, "\n") + (strchr(line, '\n') ? 1 : 0);
        if (strcspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") < length) {
            memcpy(end, line, length);
            end += length;
        }
        line += length;
    }
    if (lines)
        *end = '\0';
    else
        wg_fail(WG_ERROR_MEMORY, "bench", "no memory for the text");
    return lines;
}

static wg_dataset *dataset_of(const material *m, wg_dataset_kind kind) {
    const wg_dataset_options options = {.kind = kind};
    if (kind != WG_TEXT_PAIRS)
        return wg_dataset_load((int)m->arguments->corpus.count, m->arguments->corpus.items,
                               m->tokenizer, &options);
    char *lines = lines_of(m->text);
    wg_dataset *pairs =
        lines ? wg_dataset_from_text(lines, -1, lines, m->tokenizer, &options) : NULL;
    free(lines);
    return pairs;
}

static int time_objective(const material *m, const wg_objective *objective) {
    wg_dataset *text = dataset_of(m, objective->data.text);
    wg_training_setup setup = {.tokenizer = m->tokenizer,
                               .batch = m->arguments->batch,
                               .sequence = m->arguments->sequence};
    if (objective->data.text == WG_TEXT_PAIRS) /* whose batches are counted in tokens */
        setup.batch *= setup.sequence;
    drawing d = {.objective = objective, .batch = wg__cli_calloc(1, objective->data.batch_size)};
    if (text && d.batch)
        d.batches = objective->data.batches(&setup, text, false);
    const int status = d.batches ? time_batches(m, objective->name, next_batch, &d) : -1;
    wg_batches_free(d.batches);
    wg_dataset_free(text);
    free(d.batch);
    return status;
}

/* Sentences of the corpus, two by two. */
typedef struct sentence_pairs {
    wg_pair_frame frame;
    int32_t *ids;
    wg_token_pair *pairs;
    int64_t count, batch, next;
} sentence_pairs;

static int next_pairs(void *context, double *tokens) {
    sentence_pairs *p = context;
    wg_pair_batch batch;
    const int64_t left = p->count - p->next, count = left < p->batch ? left : p->batch;
    const int status = wg_pair_batch_make(&p->frame, count, p->pairs + p->next, &batch);
    p->next = count == left ? 0 : p->next + count;
    *tokens = status < 0 ? 0 : (double)batch.tokens;
    return status;
}

static int read_pairs(const material *m, sentence_pairs *p) {
    const int64_t tokens = wg_dataset_tokens(m->sentences);
    p->count = wg_dataset_sentences(m->sentences) / 2;
    p->batch = m->arguments->batch;
    if (p->count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, "bench", "the text has one sentence alone");
    p->ids = calloc((size_t)tokens, sizeof *p->ids);
    p->pairs = calloc((size_t)p->count, sizeof *p->pairs);
    if (!p->ids || !p->pairs)
        return wg_fail(WG_ERROR_MEMORY, "bench", "no memory for %lld tokens", (long long)tokens);
    if (wg_dataset_read(m->sentences, 0, tokens, p->ids) < 0)
        return -1;
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t first = wg_dataset_sentence_start(m->sentences, 2 * i),
                      second = wg_dataset_sentence_start(m->sentences, 2 * i + 1),
                      end = wg_dataset_sentence_start(m->sentences, 2 * i + 2);
        p->pairs[i] =
            (wg_token_pair){p->ids + first, p->ids + second, second - first, end - second};
    }
    return wg_pair_frame_of(m->tokenizer, m->arguments->sequence, &p->frame);
}

static int time_pairs(const material *m) {
    sentence_pairs pairs = {.count = 0};
    int status = read_pairs(m, &pairs);
    if (status == 0)
        status = time_batches(m, "pairs", next_pairs, &pairs);
    free(pairs.ids);
    free(pairs.pairs);
    return status;
}

static int time_builders(const arguments *a, const char *text) {
    material m = {.arguments = a, .text = text, .tokenizer = learn_wordpiece(text)};
    if (m.tokenizer)
        m.sentences = dataset_of(&m, WG_TEXT_SENTENCES);
    int status = m.sentences ? time_pairs(&m) : -1;
    const wg_objective *objective;
    for (int i = 0; status == 0 && (objective = wg_objective_at(i)); i++)
        if (objective->data.batches)
            status = time_objective(&m, objective);
    wg_dataset_free(m.sentences);
    wg_tokenizer_free(m.tokenizer);
    return status;
}

/* ---- The text ---- */

/* Appends a file to the text, which ends in a NUL. -1 with an error. */
static int append_file(const char *path, char **text, size_t *length) {
    FILE *file = fopen(path, "rb");
    int status = file ? 0 : -1;
    size_t got = 1;
    while (status == 0 && got > 0) {
        const size_t block = 1 << 20;
        char *more = realloc(*text, *length + block + 1);
        if (!more) {
            fclose(file);
            return wg_fail(WG_ERROR_MEMORY, "bench", "no memory for %s", path);
        }
        *text = more;
        got = fread(*text + *length, 1, block, file);
        *length += got;
        (*text)[*length] = '\0';
        if (ferror(file))
            status = -1;
    }
    const int reason = errno;
    if (file)
        fclose(file);
    return status < 0 ? wg_fail(WG_ERROR_IO, "bench", "%s: %s", path, strerror(reason)) : 0;
}

static int bench(const arguments *a) {
    char *text = NULL;
    size_t length = 0;
    int status = 0;
    for (int64_t i = 0; status == 0 && i < a->corpus.count; i++)
        status = append_file(a->corpus.items[i], &text, &length);
    if (status == 0)
        status = time_tokenizers(a, text);
    if (status == 0)
        status = time_builders(a, text);
    free(text);
    return status < 0 ? wg__cli_fail_pending() : 0;
}

/* The same on the books of the source tree. */
static int bench_books(arguments *a) {
    glob_t books;
    if (glob(BOOKS, 0, NULL, &books) != 0)
        return wg__cli_fail("bench: there is no " BOOKS " here; --corpus FILE names a text");
    a->corpus = (wg_setting_list){(int64_t)books.gl_pathc, (const char **)books.gl_pathv};
    const int status = bench(a);
    globfree(&books);
    return status;
}

int wg__bench_data(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a)},
        .doc = "Times the tokenizers, those that are learnt from a text (WordPiece and BPE of 8192 "
               "tokens, characters, bytes) and those that are named, and then what builds batches "
               "of it. Prints a line of JSON for each.\v"
               "All figures are medians. mb_per_s is of the whole text at once, mb_per_s_by_line "
               "line by line, MB being 10^6 bytes. Batches are of WordPiece tokens; tokens_per_s "
               "leaves padding out. pairs are sentences two by two, as for classification; "
               "translation takes each line as its own translation, so many lines as batch times "
               "seq tokens hold, and counts the target.",
    };
    wg__cli_read(&usage, argc, argv);
    return a.corpus.count > 0 ? bench(&a) : bench_books(&a);
}
