/* wengert bench data: how fast text becomes tokens, and tokens batches. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cli/decoding.h"
#include "cli/output.h"
#include "data/internal.h"

enum { MAX_RUNS = 1001, MIN_RUNS = 3, MAX_SIZE = 1 << 20 };

#define BOOKS "corpus/books/*.txt"

typedef struct arguments {
    wg_setting_list corpus, tokenizers;
    int64_t batch, sequence;
    double seconds;
} arguments;

static const wg_setting options[] = {
    {"corpus", WG_SETTING_TEXTS, WG__AT(corpus), .argument = "FILE",
     .help = "A text, which may be given again for more (default: " BOOKS ")"},
    {"tokenizer", WG_SETTING_TEXTS, WG__AT(tokenizers), .argument = "FILE",
     .help = "Time this tokenizer, too; may be given again"},
    {"batch", WG_SETTING_INTEGER, WG__AT(batch), .low = 1, .high = MAX_SIZE, .standard = "32",
     .argument = "N", .help = "Sequences in a batch"},
    {"seq", WG_SETTING_INTEGER, WG__AT(sequence), .low = 8, .high = MAX_SIZE, .standard = "128",
     .argument = "N", .help = "Tokens in a sequence"},
    {"seconds", WG_SETTING_NUMBER, WG__AT(seconds), .high = 3600, .standard = "0.5",
     .argument = "X", .help = "How long each is timed"},
};

/* Does a part of the work and sets *amount. -1 with an error. */
typedef int (*work)(void *context, double *amount);

/* The median amount a second over several runs. The first run warms up. */
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

typedef struct encoding {
    const wg_tokenizer *tokenizer;
    const char *text;
    int64_t length;
    bool by_line;
    wg_token_list list;
} encoding;

static int encode(void *context, double *bytes) {
    encoding *e = context;
    e->list.count = 0;
    *bytes = (double)e->length;
    const char *end = e->text + e->length;
    for (const char *line = e->text, *stop; line < end; line = stop) {
        const char *newline = e->by_line ? memchr(line, '\n', (size_t)(end - line)) : NULL;
        stop = newline ? newline + 1 : end;
        if (wg_tokenizer_encode(e->tokenizer, line, stop - line, NULL, &e->list) < 0)
            return -1;
    }
    return 0;
}

/* The tokenizer of a kind that is learnt from the corpus. */
static wg_tokenizer *learn(const arguments *a, const char *kind) {
    wg__learning learning = {
        .count = (int)a->corpus.count, .paths = a->corpus.items, .vocab_size = 8192};
    return wg__learn_quietly(wg__learner_of(kind), &learning);
}

static int time_tokenizers(const arguments *a, const char *text) {
    static const char *const kinds[] = {"wordpiece", "bpe", "char", "byte"};
    const int64_t learnt = (int64_t)(sizeof kinds / sizeof *kinds);
    encoding e = {.text = text, .length = (int64_t)strlen(text)};
    int status = 0;
    for (int64_t i = 0; status == 0 && i < learnt + a->tokenizers.count; i++) {
        const char *path = i < learnt ? NULL : a->tokenizers.items[i - learnt];
        wg_tokenizer *tokenizer = path ? wg_tokenizer_load(path) : learn(a, kinds[i]);
        double whole, lines, bytes_a_token = 0;
        e.tokenizer = tokenizer;
        e.by_line = false;
        status = tokenizer ? time_work(encode, &e, a->seconds, &whole) : -1;
        if (status == 0 && e.list.count > 0)
            bytes_a_token = (double)e.length / (double)e.list.count;
        e.by_line = true;
        if (status == 0)
            status = time_work(encode, &e, a->seconds, &lines);
        if (status == 0)
            wg__print_json(0,
                           json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "tokenizer",
                                     wg_tokenizer_kind(tokenizer), "from", path ? path : "the text",
                                     "vocabulary", (json_int_t)wg_tokenizer_size(tokenizer),
                                     "mb_per_s", 1e-6 * whole, "mb_per_s_by_line", 1e-6 * lines,
                                     "bytes_per_token", bytes_a_token));
        fflush(stdout);
        wg_tokenizer_free(tokenizer);
    }
    wg_token_list_free(&e.list);
    return status;
}

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
    wg__print_json(0, json_pack("{s:s, s:I, s:I, s:f}", "batches", name, "batch",
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

static wg_dataset *dataset_of(const material *m, wg_dataset_kind kind) {
    const wg_dataset_options options = {.kind = kind};
    if (kind != WG_TEXT_PAIRS)
        return wg_dataset_load((int)m->arguments->corpus.count, m->arguments->corpus.items,
                               m->tokenizer, &options);
    /* Lines with a letter, each its own translation. */
    char *lines = wg__cli_calloc(strlen(m->text) + 1, 1), *end = lines;
    for (const char *line = m->text; *line;) {
        const size_t length = strcspn(line, "\n") + (strchr(line, '\n') ? 1 : 0);
        if (strcspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") < length)
            end = mempcpy(end, line, length);
        line += length;
    }
    wg_dataset *pairs = wg_dataset_from_text(lines, -1, lines, m->tokenizer, &options);
    free(lines);
    return pairs;
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
    const int status = wg__pair_batch_make(&p->frame, count, p->pairs + p->next, &batch);
    p->next = count == left ? 0 : p->next + count;
    *tokens = status < 0 ? 0 : (double)batch.tokens;
    return status;
}

static int time_builders(const arguments *a, const char *text) {
    material m = {.arguments = a, .text = text, .tokenizer = learn(a, "wordpiece")};
    if (m.tokenizer)
        m.sentences = dataset_of(&m, WG_TEXT_SENTENCES);
    sentence_pairs pairs = {.batch = a->batch};
    int status = m.sentences ? 0 : -1;
    if (status == 0) {
        const int64_t tokens = wg_dataset_tokens(m.sentences);
        pairs.count = wg__dataset_sentences(m.sentences) / 2;
        pairs.ids = wg__cli_calloc((size_t)tokens, sizeof *pairs.ids);
        pairs.pairs = wg__cli_calloc((size_t)pairs.count, sizeof *pairs.pairs);
        status = pairs.count == 0
                     ? wg_fail(WG_ERROR_ARGUMENT, "bench", "the text has one sentence alone")
                     : wg__dataset_read(m.sentences, 0, tokens, pairs.ids);
    }
    for (int64_t i = 0; status == 0 && i < pairs.count; i++) {
        const int64_t first = wg__dataset_sentence_start(m.sentences, 2 * i),
                      second = wg__dataset_sentence_start(m.sentences, 2 * i + 1),
                      end = wg__dataset_sentence_start(m.sentences, 2 * i + 2);
        pairs.pairs[i] =
            (wg_token_pair){pairs.ids + first, pairs.ids + second, second - first, end - second};
    }
    if (status == 0)
        status = wg__pair_frame_of(m.tokenizer, a->sequence, &pairs.frame);
    if (status == 0)
        status = time_batches(&m, "pairs", next_pairs, &pairs);
    free(pairs.ids);
    free(pairs.pairs);
    const wg_objective *objective;
    for (int i = 0; status == 0 && (objective = wg_objective_at(i)); i++) {
        if (!objective->data.batches)
            continue;
        wg_dataset *own = dataset_of(&m, objective->data.text);
        wg_training_setup setup = {
            .tokenizer = m.tokenizer, .batch = a->batch, .sequence = a->sequence};
        if (objective->data.text == WG_TEXT_PAIRS) /* whose batches are counted in tokens */
            setup.batch *= setup.sequence;
        drawing d = {.objective = objective,
                     .batch = wg__cli_calloc(1, objective->data.batch_size)};
        if (own)
            d.batches = objective->data.batches(&setup, own, false);
        status = d.batches ? time_batches(&m, objective->name, next_batch, &d) : -1;
        wg_batches_free(d.batches);
        wg_dataset_free(own);
        free(d.batch);
    }
    wg_dataset_free(m.sentences);
    wg_tokenizer_free(m.tokenizer);
    return status;
}

static int bench(const arguments *a) {
    static char block[1 << 16];
    char *text = NULL;
    size_t length = 0;
    int status = 0;
    FILE *all = open_memstream(&text, &length);
    for (int64_t i = 0; all && status == 0 && i < a->corpus.count; i++) {
        FILE *file = fopen(a->corpus.items[i], "rb");
        for (size_t got = 1; file && got > 0;)
            fwrite(block, 1, got = fread(block, 1, sizeof block, file), all);
        if (!file || ferror(file))
            status = wg_fail(WG_ERROR_IO, "bench", "%s: %s", a->corpus.items[i], strerror(errno));
        if (file)
            fclose(file);
    }
    if (!all || fclose(all) != 0)
        status = wg_fail(WG_ERROR_MEMORY, "bench", "no memory for the text");
    if (status == 0)
        status = time_tokenizers(a, text);
    if (status == 0)
        status = time_builders(a, text);
    free(text);
    return status < 0 ? wg__cli_fail_pending() : 0;
}

int wg__bench_data(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a)},
        .doc =
            "Times tokenizers, learnt from a text (WordPiece and BPE of 8192 tokens, characters, "
            "bytes) or named, and then the builders of batches. Prints a line of JSON for each.\v"
            "All figures are medians. mb_per_s is of the whole text at once, mb_per_s_by_line line "
            "by line, MB being 10^6 bytes. Batches are of WordPiece tokens; tokens_per_s leaves "
            "padding out. pairs are sentences two by two, as for classification; translation takes "
            "each line as its own translation, so many lines as batch times seq tokens hold, and "
            "counts the target.",
    };
    wg__cli_read(&usage, argc, argv);
    if (a.corpus.count > 0)
        return bench(&a);
    glob_t books; /* of the source tree */
    if (glob(BOOKS, 0, NULL, &books) != 0)
        return wg__cli_fail("bench: there is no " BOOKS " here; --corpus FILE names a text");
    a.corpus = (wg_setting_list){(int64_t)books.gl_pathc, (const char **)books.gl_pathv};
    const int status = bench(&a);
    globfree(&books);
    return status;
}
