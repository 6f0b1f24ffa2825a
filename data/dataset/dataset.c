/* Datasets: see dataset.h. A dataset is a list of runs of documents in token files (token_file.h),
 * so that splitting and mixing texts copies no tokens. The dataset numbers documents, sentences and
 * tokens consecutively over its runs:
 *
 *     file     |doc 0     |doc 1  |doc 2    |doc 3   |doc 4     |
 *     runs     |----- run 0 ------|         |----- run 1 -------|
 *     dataset  |0         |1      |         |2       |3         |
 */
#include "data/dataset/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "data/dataset/token_file.h"
#include "tensor/internal.h"
#include "data/internal.h"

#define WHERE "dataset"

/* The units that a run has numbers of. */
typedef enum unit { DOCUMENT, SENTENCE, TOKEN, UNITS } unit;

/* A run begins with these numbers, in its file and in the dataset; it ends where the next one
 * begins. */
typedef struct document_run {
    wg__token_file *file; /* NULL: the end of the last run */
    int64_t in_file[UNITS];
    int64_t begin[UNITS];
} document_run;

/* The next line to read in a text of pairs. */
typedef struct line_place {
    const wg__text_map *text; /* NULL: nothing was read yet */
    int64_t line, at;         /* its number and its first byte */
} line_place;

/* Reading a const dataset updates these. */
typedef struct cache {
    int64_t run;     /* the last result of find_run */
    int64_t *counts; /* of each token of the vocabulary; NULL: not counted yet */
    line_place places[WG__TOKEN_SIDES];
} cache;

struct wg_dataset {
    wg_dataset_kind kind;
    document_run *runs; /* (run_count + 1): the last one is the end */
    int64_t run_count, run_capacity;
    int64_t documents, sentences, tokens, bytes;
    int64_t vocabulary;
    int64_t source_count, source_capacity;
    int64_t *source_ends; /* in documents */
    double *weights;      /* of the sources; NULL: none */
    cache *cache;
};

void wg_dataset_free(wg_dataset *dataset) {
    if (!dataset)
        return;
    for (int64_t i = 0; i < dataset->run_count; i++)
        wg__token_file_release(dataset->runs[i].file);
    wg__free(dataset->runs);
    wg__free(dataset->source_ends);
    wg__free(dataset->weights);
    wg__free(dataset->cache->counts);
    wg__free(dataset->cache);
    wg__free(dataset);
}

/* `parts` are NULL before. After an error free_parts frees the parts that were made. */
static int new_parts(wg_dataset_kind kind, wg_dataset *parts[WG__TOKEN_PARTS]) {
    for (int i = 0; i < WG__TOKEN_PARTS; i++) {
        wg_dataset *part = wg__calloc(1, sizeof *part);
        cache *cache = part ? wg__calloc(1, sizeof *cache) : NULL;
        if (!cache) {
            wg__free(part);
            return -1;
        }
        part->kind = kind;
        part->cache = cache;
        parts[i] = part;
    }
    return 0;
}

static void free_parts(wg_dataset *parts[WG__TOKEN_PARTS]) {
    for (int i = 0; i < WG__TOKEN_PARTS; parts[i++] = NULL)
        wg_dataset_free(parts[i]);
}

/* ---- Runs of documents ---- */

/* A run that begins with a document of a file. */
static document_run run_from(wg__token_file *file, int64_t document) {
    const int64_t start = wg__token_file_document(file, document);
    if (file->rules.kind == WG_TEXT_STREAM)
        return (document_run){.in_file = {document, 0, start}};
    return (document_run){.in_file = {document, start, wg__token_file_sentence(file, start)}};
}

/* Appends documents of a file. */
static int add_documents(wg_dataset *dataset, wg__token_file *file, int64_t first, int64_t end) {
    if (first >= end)
        return 0;
    if (wg__reserve(&dataset->runs, dataset->run_count, &dataset->run_capacity,
                    dataset->run_count + 2, sizeof *dataset->runs) < 0)
        return -1;
    document_run run = run_from(file, first), end_run = run_from(file, end);
    if (wg_error_pending())
        return -1;
    file->refcount++;
    run.file = file;
    run.begin[DOCUMENT] = dataset->documents;
    run.begin[SENTENCE] = dataset->sentences;
    run.begin[TOKEN] = dataset->tokens;
    dataset->runs[dataset->run_count++] = run;
    dataset->documents += end - first;
    dataset->sentences += end_run.in_file[SENTENCE] - run.in_file[SENTENCE];
    dataset->tokens += end_run.in_file[TOKEN] - run.in_file[TOKEN];
    dataset->vocabulary = file->vocabulary;
    dataset->runs[dataset->run_count] =
        (document_run){.begin = {dataset->documents, dataset->sentences, dataset->tokens}};
    return 0;
}

/* Makes the documents appended since the last call a source, in both parts. */
static int end_sources(wg_dataset *parts[WG__TOKEN_PARTS]) {
    for (int i = 0; i < WG__TOKEN_PARTS; i++)
        if (wg__append(&parts[i]->source_ends, &parts[i]->source_count, &parts[i]->source_capacity,
                       &parts[i]->documents, sizeof parts[i]->documents) < 0)
            return -1;
    return 0;
}

/* The run with a document, sentence or token of the dataset. */
static const document_run *find_run(const wg_dataset *dataset, unit unit, int64_t number) {
    const document_run *last = &dataset->runs[dataset->cache->run];
    if (last->begin[unit] <= number && number < last[1].begin[unit])
        return last;
    int64_t low = 0, high = dataset->run_count - 1;
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (dataset->runs[middle].begin[unit] <= number)
            low = middle;
        else
            high = middle - 1;
    }
    dataset->cache->run = low;
    return &dataset->runs[low];
}

/* Appends documents of another dataset. */
static int add_part(wg_dataset *dataset, const wg_dataset *from, int64_t first, int64_t end) {
    while (first < end) {
        const document_run *run = find_run(from, DOCUMENT, first);
        const int64_t stop = wg__smaller(end, run[1].begin[DOCUMENT]);
        const int64_t shift = run->in_file[DOCUMENT] - run->begin[DOCUMENT];
        if (add_documents(dataset, run->file, first + shift, stop + shift) < 0)
            return -1;
        first = stop;
    }
    return 0;
}

/* ---- Contents ---- */

int64_t wg__dataset_documents(const wg_dataset *dataset) {
    return dataset ? dataset->documents : 0;
}

int64_t wg__dataset_sentences(const wg_dataset *dataset) {
    return dataset ? dataset->sentences : 0;
}

int64_t wg_dataset_tokens(const wg_dataset *dataset) {
    return dataset ? dataset->tokens : 0;
}

int64_t wg__dataset_bytes(const wg_dataset *dataset) {
    return dataset ? dataset->bytes : 0;
}

int64_t wg_dataset_vocabulary(const wg_dataset *dataset) {
    return dataset ? dataset->vocabulary : 0;
}

/* After a failed read the result is the end of all documents, so that loops end. */
int64_t wg__dataset_document_start(const wg_dataset *dataset, int64_t document) {
    if (!dataset || document < 0 || document > dataset->documents)
        return -1;
    const bool stream = dataset->kind == WG_TEXT_STREAM;
    if (document == dataset->documents)
        return stream ? dataset->tokens : dataset->sentences;
    const document_run *run = find_run(dataset, DOCUMENT, document);
    const unit unit = stream ? TOKEN : SENTENCE;
    const int64_t in_file = run->in_file[DOCUMENT] + document - run->begin[DOCUMENT];
    return wg__token_file_document(run->file, in_file) - run->in_file[unit] + run->begin[unit];
}

int64_t wg__dataset_sentence_start(const wg_dataset *dataset, int64_t sentence) {
    if (!dataset || sentence < 0 || sentence > dataset->sentences)
        return -1;
    if (sentence == dataset->sentences)
        return dataset->tokens;
    const document_run *run = find_run(dataset, SENTENCE, sentence);
    const int64_t in_file = run->in_file[SENTENCE] + sentence - run->begin[SENTENCE];
    return wg__token_file_sentence(run->file, in_file) - run->in_file[TOKEN] + run->begin[TOKEN];
}

static int read_runs(const wg_dataset *dataset, int64_t first, int64_t count, int32_t *ids) {
    while (count > 0) {
        const document_run *run = find_run(dataset, TOKEN, first);
        const int64_t in_file = first - run->begin[TOKEN] + run->in_file[TOKEN];
        const int64_t part = wg__smaller(count, run[1].begin[TOKEN] - first);
        if (wg__column_read(run->file->tokens, in_file, part, ids) < 0)
            return -1;
        first += part;
        ids += part;
        count -= part;
    }
    return 0;
}

int wg__dataset_read(const wg_dataset *dataset, int64_t first, int64_t count, int32_t *ids) {
    if (!dataset)
        return -1;
    if (first < 0 || count < 0 || count > dataset->tokens - first) {
        int64_t end;
        if (__builtin_add_overflow(first, count, &end))
            end = count < 0 ? INT64_MIN : INT64_MAX;
        return wg_fail(WG_ERROR_INDEX, WHERE, "tokens %lld to %lld of a text of %lld",
                       (long long)first, (long long)end, (long long)dataset->tokens);
    }
    return read_runs(dataset, first, count, ids);
}

/* visit_tokens calls it with all tokens in order, some thousands at a time. */
typedef void (*token_visitor)(void *context, int64_t count, const int32_t *ids);

static int visit_tokens(const wg_dataset *dataset, token_visitor visit, void *context) {
    enum { BLOCK = 4096 };
    int32_t ids[BLOCK];
    for (int64_t first = 0; first < dataset->tokens; first += BLOCK) {
        const int64_t count = wg__smaller(dataset->tokens - first, BLOCK);
        if (read_runs(dataset, first, count, ids) < 0)
            return -1;
        visit(context, count, ids);
    }
    return 0;
}

int64_t wg__dataset_sources(const wg_dataset *dataset) {
    return dataset ? dataset->source_count : 0;
}

int64_t wg__dataset_source_end(const wg_dataset *dataset, int64_t source) {
    return !dataset || source < 0 || source >= dataset->source_count ? -1
                                                                     : dataset->source_ends[source];
}

const double *wg__dataset_weights(const wg_dataset *dataset) {
    return dataset ? dataset->weights : NULL;
}

int wg_dataset_weigh(wg_dataset *dataset, int count, const double *weights) {
    if (!dataset)
        return -1;
    if (count != dataset->source_count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%d weights for %lld %s", count,
                       (long long)dataset->source_count,
                       dataset->kind == WG_TEXT_PAIRS ? "pairs of files" : "files of text");
    for (int i = 0; i < count; i++)
        if (!(weights[i] > 0 && weights[i] <= 1e9))
            return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a weight of %g; it must be above 0",
                           weights[i]);
    double *copy = wg__alloc_array(count, sizeof *copy);
    if (!copy)
        return -1;
    memcpy(copy, weights, (size_t)count * sizeof *copy);
    wg__free(dataset->weights);
    dataset->weights = copy;
    return 0;
}

/* ---- Loading: from texts to a token file ---- */

/* The options of a load. */
typedef struct request {
    wg__token_rules rules;
    const wg_tokenizer *tokenizer;
    const wg_token_storage *storage; /* NULL: a temporary file */
} request;

static int make_request(request *r, const wg_tokenizer *tokenizer,
                        const wg_dataset_options *options) {
    static const wg_dataset_options defaults = {0};
    const wg_dataset_options *o = options ? options : &defaults;
    *r = (request){.rules = {.kind = o->kind, .cut = 1, .end = 1},
                   .tokenizer = tokenizer,
                   .storage = o->storage};
    if (!tokenizer)
        return -1;
    if (o->kind == WG_TEXT_SENTENCES)
        r->rules.format = o->format;
    if (o->kind != WG_TEXT_STREAM)
        return 0;
    r->rules.begin = o->begin;
    r->rules.cut = r->rules.end = o->end ? o->end : 1;
    if (o->begin >= 0 && o->begin < r->rules.end && r->rules.end <= 1)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "the part from %g to %g of a text is empty, or outside of 0 to 1", o->begin,
                   r->rules.end);
}

/* Adds a text, or the two texts of pairs. `names` are for messages; the token file gets `paths`. */
static int add_texts(const request *r, wg__token_file *file, wg__text_map *texts,
                     const char *const *names, const char *const *paths) {
    for (int i = 0; i < wg__token_rules_sides(&r->rules); i++)
        if (wg__text_map_check(&texts[i], names[i], WHERE) < 0 ||
            wg__token_file_begin_source(file, paths[i], &texts[i]) < 0)
            return -1;
    return wg__read_text(file, r->tokenizer, texts, names);
}

/* Moves the mapped texts of pairs to the token file: a pipe cannot be read again. */
static void keep_texts(wg__token_file *file, wg__text_map *texts) {
    wg__token_source *sources = &file->sources[file->source_count - WG__TOKEN_SIDES];
    for (int i = 0; i < WG__TOKEN_SIDES; i++) {
        sources[i].text = texts[i];
        wg__text_map_release(&sources[i].text);
        texts[i] = (wg__text_map){0};
    }
}

static int add_files(const request *r, wg__token_file *file, const char *const *paths) {
    const int sides = wg__token_rules_sides(&r->rules);
    wg__text_map texts[WG__TOKEN_SIDES] = {{0}};
    char *absolute[WG__TOKEN_SIDES] = {NULL};
    const char *written[WG__TOKEN_SIDES] = {NULL};
    int status = 0;
    for (int i = 0; status == 0 && i < sides; i++) {
        status = wg__text_map_open(&texts[i], paths[i], WHERE);
        absolute[i] = realpath(paths[i], NULL);
        written[i] = absolute[i] ? absolute[i] : paths[i];
    }
    if (status == 0)
        status = add_texts(r, file, texts, paths, written);
    if (status == 0 && r->rules.kind == WG_TEXT_PAIRS)
        keep_texts(file, texts);
    for (int i = 0; i < sides; i++) {
        free(absolute[i]);
        wg__text_map_close(&texts[i]);
    }
    return status;
}

static wg__token_file *tokenize_files(const request *r, const char *kept, int count,
                                      const char *const *paths) {
    wg__token_file *file = wg__token_file_create(kept, &r->rules, r->tokenizer);
    int status = file ? 0 : -1;
    for (int i = 0; status == 0 && i < count; i += wg__token_rules_sides(&r->rules))
        status = add_files(r, file, paths + i);
    if (status == 0)
        status = wg__token_file_finish(file);
    if (status == 0)
        return file;
    wg__token_file_release(file);
    return NULL;
}

/* Opens the token file of the storage if it is up to date, else tokenizes the texts. */
static wg__token_file *open_or_tokenize(const request *r, int count, const char *const *paths) {
    const char *kept = r->storage ? r->storage->path : NULL;
    if (!kept || access(kept, F_OK) < 0)
        return tokenize_files(r, kept, count, paths);
    if (!wg__dataset_is_token_file(kept))
        return wg__fail_null(WG_ERROR_FORMAT, WHERE,
                             "%s exists and is no token file; it is left as it is", kept);
    wg__token_file *file = wg__token_file_open(kept);
    if (!file)
        return NULL;
    const char *reason = wg__token_file_differs(file, &r->rules, r->tokenizer, count, paths);
    /* The texts may have moved: the file gets their current paths. */
    for (int64_t i = 0; !reason && !wg_error_pending() && i < file->source_count; i++) {
        char *path = wg__strdup(paths[i]);
        if (!path)
            break;
        wg__free(file->sources[i].path);
        file->sources[i].path = path;
    }
    if (!reason && !wg_error_pending())
        return file;
    wg__token_file_release(file);
    if (wg_error_pending())
        return NULL;
    char line[512];
    snprintf(line, sizeof line, "%.300s is made anew: %s", r->storage->path, reason);
    if (r->storage->note)
        r->storage->note(r->storage->context, line);
    return tokenize_files(r, kept, count, paths);
}

/* ---- Loading: token files among the paths ---- */

/* Adds sources first .. end - 1 of a file, beginning with `document`. Without a request to hold a
 * part out, both parts of a source go to the first dataset. */
static int add_sources(const request *r, wg__token_file *file, int64_t first, int64_t end,
                       int64_t document, wg_dataset *parts[WG__TOKEN_PARTS]) {
    const bool holds_out = r->rules.cut < r->rules.end;
    for (int64_t i = first; i < end; i++)
        for (int part = 0; part < WG__TOKEN_PARTS; part++) {
            const wg__token_source *source = &file->sources[i];
            wg_dataset *dataset = parts[holds_out ? part : 0];
            if (add_documents(dataset, file, document, document + source->documents[part]) < 0)
                return -1;
            document += source->documents[part];
            dataset->bytes += source->text_bytes[part];
        }
    return 0;
}

/* Adds a token file. */
static int add_token_file(const request *r, const char *path, wg_dataset *parts[WG__TOKEN_PARTS]) {
    static const char *const kind_names[] = {
        [WG_TEXT_SENTENCES] = "of sentences",
        [WG_TEXT_STREAM] = "as one stream",
        [WG_TEXT_PAIRS] = "of pairs of sentences",
    };
    const wg__token_rules *rules = &r->rules;
    wg__token_file *file = wg__token_file_open(path);
    const uint64_t wanted = file ? wg__tokenizer_fingerprint(r->tokenizer) : 0;
    int status = -1;
    if (!wanted) {
        wg__token_file_release(file);
        return -1;
    }
    if (file->rules.kind != rules->kind)
        wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s has tokens %s; tokens %s are wanted", path,
                kind_names[file->rules.kind], kind_names[rules->kind]);
    else if (file->fingerprint != wanted)
        wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s was made with another tokenizer", path);
    else if (rules->begin > 0 || rules->end < 1)
        wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s is a token file, which is read whole", path);
    else if (rules->cut < rules->end && file->rules.cut >= file->rules.end)
        wg_fail(WG_ERROR_ARGUMENT, WHERE,
                "%s has no part that is held out; give a text to measure on", path);
    else
        status = add_sources(r, file, 0, file->source_count, 0, parts);
    wg__token_file_release(file);
    return status;
}

/* `is_token_file`, one per path, and `texts`, the paths of text files, are scratch. */
static int load_paths(const request *r, int count, const char *const *paths, bool *is_token_file,
                      const char **texts, wg_dataset *parts[WG__TOKEN_PARTS]) {
    int text_count = 0;
    for (int i = 0; i < count; i++) {
        is_token_file[i] = wg__dataset_is_token_file(paths[i]);
        if (!is_token_file[i])
            texts[text_count++] = paths[i];
    }
    /* The sides of a pair must follow each other. */
    const bool pairs = r->rules.kind == WG_TEXT_PAIRS;
    for (int i = 0; pairs && i < count; i += is_token_file[i] ? 1 : WG__TOKEN_SIDES)
        if (!is_token_file[i] && (i + 1 == count || is_token_file[i + 1]))
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "%s has no other side; wanted a source and its target, line by line (or "
                           "several of these pairs)",
                           paths[i]);
    if (text_count == 0 && r->storage && r->storage->path)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s is not made: all input files are token files already", r->storage->path);
    /* Adds all paths in order. `made` has the tokens of the text files, in the same order. */
    wg__token_file *made = text_count > 0 ? open_or_tokenize(r, text_count, texts) : NULL;
    const int sides = wg__token_rules_sides(&r->rules);
    int64_t source = 0, document = 0;
    int status = made || text_count == 0 ? 0 : -1;
    for (int i = 0; status == 0 && i < count; i += is_token_file[i] ? 1 : sides) {
        status = is_token_file[i] ? add_token_file(r, paths[i], parts)
                                  : add_sources(r, made, source, source + sides, document, parts);
        for (int side = 0; !is_token_file[i] && side < sides; side++, source++)
            for (int part = 0; part < WG__TOKEN_PARTS; part++)
                document += made->sources[source].documents[part];
        if (status == 0)
            status = end_sources(parts);
    }
    wg__token_file_release(made);
    return status;
}

/* Both parts are NULL after a failure. */
static int load(const request *r, int count, const char *const *paths,
                wg_dataset *parts[WG__TOKEN_PARTS]) {
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "no file is given");
    bool *is_token_file = wg__alloc_array(count, sizeof *is_token_file);
    const char **texts = wg__alloc_array(count, sizeof *texts);
    int status = is_token_file && texts && new_parts(r->rules.kind, parts) == 0
                     ? load_paths(r, count, paths, is_token_file, texts, parts)
                     : -1;
    wg__free(is_token_file);
    wg__free(texts);
    if (status == 0 && parts[0]->documents == 0) /* a token file without pairs */
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "the files have no documents");
    if (status < 0)
        free_parts(parts);
    return status;
}

wg_dataset *wg_dataset_load(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                            const wg_dataset_options *options) {
    request r;
    wg_dataset *parts[WG__TOKEN_PARTS] = {NULL};
    if (make_request(&r, tokenizer, options) == 0 && load(&r, count, paths, parts) == 0)
        wg_dataset_free(parts[1]);
    return parts[0];
}

wg_dataset *wg_dataset_from_text(const char *text, int64_t length, const char *target,
                                 const wg_tokenizer *tokenizer, const wg_dataset_options *options) {
    static const char *const paths[] = {"", ""}, *const name[] = {"the text"},
                             *const sides[] = {"the source", "the target"};
    request r;
    wg_dataset *parts[WG__TOKEN_PARTS] = {NULL};
    if (!text || make_request(&r, tokenizer, options) < 0)
        return NULL;
    const bool pairs = r.rules.kind == WG_TEXT_PAIRS;
    if (pairs != (target != NULL))
        return wg__fail_null(WG_ERROR_ARGUMENT, WHERE,
                             pairs ? "pairs need a target text" : "only pairs have a target text");
    wg__text_map texts[] = {wg__text_map_of(text, length),
                            wg__text_map_of(target ? target : "", -1)};
    wg__token_file *file = wg__token_file_create(NULL, &r.rules, tokenizer);
    int status = -1;
    if (file && add_texts(&r, file, texts, pairs ? sides : name, paths) == 0 &&
        wg__token_file_finish(file) == 0) {
        if (pairs)
            keep_texts(file, texts);
        if (new_parts(r.rules.kind, parts) == 0 &&
            add_sources(&r, file, 0, file->source_count, 0, parts) == 0)
            status = end_sources(parts);
    }
    wg__token_file_release(file);
    if (status < 0)
        free_parts(parts);
    wg_dataset_free(parts[1]);
    return parts[0];
}

/* ---- Splitting ---- */

static int split_sentences(const wg_dataset *from, double share,
                           wg_dataset *parts[WG__TOKEN_PARTS]) {
    if (!(share > 0 && share <= 0.5))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "a share of %g; it must be above 0 and at most 0.5", share);
    if (from->documents < 4)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the text has %lld documents; four are needed to hold two out",
                       (long long)from->documents);
    /* Holds out at least two documents: every n-th, n at most D / 2. */
    const int64_t rarest = from->documents / 2;
    const int64_t every = (int64_t)fmin(round(1 / share), (double)rarest);
    for (int64_t i = 0, first = 0; i < from->source_count; first = from->source_ends[i++]) {
        const int64_t end = from->source_ends[i];
        while (first < end) {
            const int64_t next = first / every * every + every - 1; /* to hold out */
            if (add_part(parts[0], from, first, wg__smaller(next, end)) < 0 ||
                (next < end && add_part(parts[1], from, next, next + 1) < 0))
                return -1;
            first = next + 1;
        }
        if (end_sources(parts) < 0)
            return -1;
    }
    return 0;
}

/* In a dataset as it was loaded, each run belongs to one pair of texts, and so to one source. */
static int split_pairs(const wg_dataset *from, double share, wg_dataset *parts[WG__TOKEN_PARTS]) {
    if (!(share > 0 && share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a share of %g cannot be held out", share);
    for (int64_t i = 0, source = 0; i < from->run_count; i++) {
        const int64_t first = from->runs[i].begin[DOCUMENT];
        const int64_t end = from->runs[i + 1].begin[DOCUMENT];
        const int64_t cut = first + (int64_t)((1 - share) * (double)(end - first));
        if (add_part(parts[0], from, first, cut) < 0 || add_part(parts[1], from, cut, end) < 0)
            return -1;
        for (; source < from->source_count && from->source_ends[source] <= end; source++)
            if (end_sources(parts) < 0)
                return -1;
    }
    if (parts[0]->documents > 0 && parts[1]->documents > 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "%lld pairs are too few to hold some out; give more pairs, or a text to measure "
                   "on",
                   (long long)from->documents);
}

int wg_dataset_split(const wg_dataset *dataset, double share, wg_dataset **training,
                     wg_dataset **held_out) {
    wg_dataset *parts[WG__TOKEN_PARTS] = {NULL};
    int status = dataset ? new_parts(dataset->kind, parts) : -1;
    if (status == 0)
        status = dataset->kind == WG_TEXT_SENTENCES ? split_sentences(dataset, share, parts)
                 : dataset->kind == WG_TEXT_PAIRS
                     ? split_pairs(dataset, share, parts)
                     : wg_fail(WG_ERROR_ARGUMENT, WHERE,
                               "a stream is cut when its text is read; load it by "
                               "wg_dataset_load_split");
    for (int i = 0; status == 0 && dataset->weights && i < WG__TOKEN_PARTS; i++)
        status = wg_dataset_weigh(parts[i], (int)dataset->source_count, dataset->weights);
    if (status < 0)
        free_parts(parts);
    *training = parts[0];
    *held_out = parts[1];
    return status;
}

int wg_dataset_load_split(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                          double share, const wg_dataset_options *options, wg_dataset **training,
                          wg_dataset **held_out) {
    request r;
    wg_dataset *parts[WG__TOKEN_PARTS] = {NULL};
    *training = *held_out = NULL;
    if (make_request(&r, tokenizer, options) < 0)
        return -1;
    if (r.rules.kind != WG_TEXT_STREAM) {
        wg_dataset *all = wg_dataset_load(count, paths, tokenizer, options);
        const int status = all ? wg_dataset_split(all, share, training, held_out) : -1;
        wg_dataset_free(all);
        return status;
    }
    if (!(share > 0 && share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a share of %g cannot be held out", share);
    r.rules.cut = r.rules.end - share * (r.rules.end - r.rules.begin);
    const int status = load(&r, count, paths, parts);
    *training = parts[0];
    *held_out = parts[1];
    return status;
}

char *wg__dataset_pair_text(const wg_dataset *dataset, wg_side side, int64_t pair) {
    if (!dataset)
        return NULL;
    if (dataset->kind != WG_TEXT_PAIRS || pair < 0 || pair >= dataset->documents)
        return wg__fail_null(WG_ERROR_INDEX, WHERE, "pair %lld of %lld", (long long)pair,
                             (long long)(dataset->kind == WG_TEXT_PAIRS ? dataset->documents : 0));
    const document_run *run = find_run(dataset, DOCUMENT, pair);
    int64_t line = pair - run->begin[DOCUMENT] + run->in_file[DOCUMENT], source = 0;
    for (; source + WG__TOKEN_SIDES < run->file->source_count; source += WG__TOKEN_SIDES) {
        const int64_t count = run->file->sources[source + WG_TARGET].documents[0];
        if (line < count)
            break;
        line -= count;
    }
    wg__text_map *text = wg__token_file_text(run->file, source + side, WHERE);
    if (!text)
        return NULL;

    /* Reads on to the line, from the begin of the text if the last line read is behind it. */
    line_place *p = &dataset->cache->places[side];
    const char *begin = text->bytes;
    int64_t length = 0;
    bool found = false;
    if (p->text != text || p->line > line)
        *p = (line_place){.text = text};
    while (!found && p->at < text->length) {
        wg__text_map_pass(text, p->at);
        begin = text->bytes + p->at;
        length = wg__text_line(text, p->at, &p->at);
        found = p->line++ == line;
    }
    if (!found)
        return wg__fail_null(WG_ERROR_STATE, WHERE, "pair %lld is beyond the end of its text",
                             (long long)pair);
    char *copy = wg__calloc((size_t)length + 1, 1);
    if (copy)
        memcpy(copy, begin, (size_t)length);
    return copy;
}

static void hash_ids(void *context, int64_t count, const int32_t *ids) {
    uint64_t hash = *(uint64_t *)context;
    for (int64_t i = 0; i < count; i++)
        hash = (hash ^ (uint32_t)ids[i]) * UINT64_C(1099511628211);
    *(uint64_t *)context = hash;
}

static uint64_t hash_number(uint64_t hash, int64_t value) {
    for (int byte = 0; byte < 8; byte++)
        hash = wg__hash_step(hash, (char)(value >> 8 * byte & 0xFF));
    return hash;
}

int64_t wg__dataset_fingerprint(const wg_dataset *dataset) {
    uint64_t hash = WG__HASH_BEGIN;
    if (!dataset)
        return 0;
    if (dataset->kind != WG_TEXT_PAIRS)
        return visit_tokens(dataset, hash_ids, &hash) < 0 ? 0 : (int64_t)hash;
    int32_t *ids = NULL;
    int64_t capacity = 0;
    bool read = true;
    for (int side = 0; side < WG__TOKEN_SIDES; side++) {
        /* The starts of the sentences, counted in the tokens of this side, then their ids. */
        int64_t start = 0;
        hash = hash_number(hash, 0);
        for (int64_t i = side; i < dataset->sentences; i += WG__TOKEN_SIDES)
            hash = hash_number(hash, start += wg__dataset_sentence_start(dataset, i + 1) -
                                              wg__dataset_sentence_start(dataset, i));
        for (int64_t i = side; read && i < dataset->sentences; i += WG__TOKEN_SIDES) {
            const int64_t first = wg__dataset_sentence_start(dataset, i);
            const int64_t length = wg__dataset_sentence_start(dataset, i + 1) - first;
            read = !wg_error_pending() &&
                   wg__reserve(&ids, 0, &capacity, length, sizeof *ids) == 0 &&
                   wg__dataset_read(dataset, first, length, ids) == 0;
            for (int64_t k = 0; read && k < length; k++)
                hash = hash_number(hash, ids[k]);
        }
    }
    wg__free(ids);
    return read && !wg_error_pending() ? (int64_t)hash : 0;
}

/* ---- Word frequency ---- */

static void count_ids(void *context, int64_t count, const int32_t *ids) {
    int64_t *counts = context;
    for (int64_t i = 0; i < count; i++)
        counts[ids[i]]++;
}

static int count_tokens(const wg_dataset *dataset) {
    if (dataset->cache->counts)
        return 0;
    int64_t *counts = wg__calloc((size_t)dataset->vocabulary, sizeof *counts);
    if (counts && visit_tokens(dataset, count_ids, counts) == 0)
        dataset->cache->counts = counts;
    else
        wg__free(counts);
    return dataset->cache->counts ? 0 : -1;
}

int64_t wg__dataset_count(const wg_dataset *dataset, int64_t token) {
    if (!dataset || token < 0 || token >= dataset->vocabulary)
        return 0;
    return count_tokens(dataset) < 0 ? -1 : dataset->cache->counts[token];
}

/* A sum of -log p over tokens. */
typedef struct surprise {
    const wg_dataset *dataset; /* p are the frequencies of its tokens */
    double sum;
    bool begun; /* false: the next token is the first of a text, which is not predicted */
} surprise;

static void add_surprise(void *context, int64_t count, const int32_t *ids) {
    surprise *s = context;
    const wg_dataset *d = s->dataset;
    const double total = (double)(d->tokens + d->vocabulary);
    for (int64_t i = s->begun ? 0 : 1; i < count; i++)
        s->sum -= log((double)(d->cache->counts[ids[i]] + 1) / total);
    s->begun = true;
}

double wg_dataset_unigram_loss(const wg_dataset *dataset, const wg_tensor *labels,
                               const wg_dataset *text) {
    if (!dataset || (!labels && !text) || count_tokens(dataset) < 0)
        return NAN;
    surprise s = {.dataset = dataset, .begun = labels != NULL};
    if (!labels) {
        if (text->vocabulary > dataset->vocabulary)
            wg_fail(WG_ERROR_INDEX, WHERE,
                    "the text has a vocabulary of %lld tokens, the dataset has %lld",
                    (long long)text->vocabulary, (long long)dataset->vocabulary);
        else if (visit_tokens(text, add_surprise, &s) == 0)
            return s.sum / (double)(text->tokens - 1);
        return NAN;
    }
    const wg_dtype dtype = wg_tensor_dtype(labels);
    const int64_t count = wg_tensor_count(labels);
    if (dtype != WG_I64 && dtype != WG_I32) {
        wg_fail(WG_ERROR_DTYPE, WHERE, "labels are %s; they must be i64 or i32",
                wg_dtype_name(dtype));
        return NAN;
    }
    void *values = wg__alloc_array(count + 1, wg_dtype_size(dtype));
    int status = values ? wg_to_array(labels, values) : -1;
    for (int64_t i = 0; status == 0 && i < count; i++) {
        const int64_t label = dtype == WG_I32 ? ((int32_t *)values)[i] : ((int64_t *)values)[i];
        if (label >= 0 && label < dataset->vocabulary)
            add_surprise(&s, 1, &(int32_t){(int32_t)label});
        else
            status = wg_fail(WG_ERROR_INDEX, WHERE,
                             "label %lld is outside the vocabulary of %lld tokens",
                             (long long)label, (long long)dataset->vocabulary);
    }
    wg__free(values);
    return status == 0 ? s.sum / (double)count : NAN;
}
