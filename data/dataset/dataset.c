/* Datasets: see dataset.h. Tokens stay in token files (token_file.h); a dataset is a list of runs
 * of their documents, so that parts and mixtures of texts are made without copying:
 *
 *     file     |doc 0     |doc 1  |doc 2    |doc 3   |doc 4     |
 *     runs     |----- run 0 ------|         |----- run 1 -------|      documents one after the
 *     dataset  |0         |1      |2        |3          |              other; their sentences and
 *                                                                      tokens are numbered anew
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

/* Where a run begins, in its file and in the dataset. */
typedef struct document_run {
    wg__token_file *file; /* NULL: the end of the last one */
    int64_t file_document, file_sentence, file_token;
    int64_t document, sentence, token;
} document_run;

/* Where one side of pairs was read last, so that the next line is found at once. */
typedef struct line_place {
    const wg__text_map *text; /* NULL: nowhere yet */
    int64_t line, at;         /* the next line, and where it begins */
} line_place;

/* What reading remembers; a caller sees nothing of it. */
typedef struct cache {
    int64_t run;     /* that was found last */
    int64_t *counts; /* of each token of the vocabulary; NULL: not counted yet */
    line_place places[WG__TOKEN_SIDES];
} cache;

struct wg_dataset {
    wg_dataset_kind kind;
    document_run *runs; /* and the end */
    int64_t run_count, run_capacity;
    int64_t documents, sentences, tokens, bytes;
    int64_t vocabulary;
    int64_t source_count, source_capacity;
    int64_t *source_ends; /* in documents */
    double *weights;      /* of the sources; NULL: none */
    cache *cache;
};

static wg_dataset *new_dataset(wg_dataset_kind kind) {
    wg_dataset *dataset = wg__calloc(1, sizeof *dataset);
    if (!dataset)
        return NULL;
    dataset->kind = kind;
    dataset->cache = wg__calloc(1, sizeof *dataset->cache);
    if (dataset->cache)
        return dataset;
    wg__free(dataset);
    return NULL;
}

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

static int new_parts(wg_dataset_kind kind, wg_dataset *parts[WG__TOKEN_PARTS]) {
    parts[0] = new_dataset(kind);
    parts[1] = parts[0] ? new_dataset(kind) : NULL;
    return parts[1] ? 0 : -1;
}

static void free_parts(wg_dataset *parts[WG__TOKEN_PARTS]) {
    for (int i = 0; i < WG__TOKEN_PARTS; i++) {
        wg_dataset_free(parts[i]);
        parts[i] = NULL;
    }
}

/* ---- Runs of documents ---- */

/* Where a document of a file begins. */
static document_run place_in_file(wg__token_file *file, int64_t document) {
    const int64_t start = wg__token_file_document(file, document);
    if (file->rules.kind == WG_TEXT_STREAM)
        return (document_run){.file_document = document, .file_token = start};
    return (document_run){.file_document = document,
                          .file_sentence = start,
                          .file_token = wg__token_file_sentence(file, start)};
}

/* Appends documents of a file. */
static int add_documents(wg_dataset *dataset, wg__token_file *file, int64_t first, int64_t end) {
    if (first >= end)
        return 0;
    if (wg__reserve(&dataset->runs, dataset->run_count, &dataset->run_capacity,
                    dataset->run_count + 2, sizeof *dataset->runs) < 0)
        return -1;
    document_run run = place_in_file(file, first), behind = place_in_file(file, end);
    if (wg_error_pending())
        return -1;
    file->refcount++;
    run.file = file;
    run.document = dataset->documents;
    run.sentence = dataset->sentences;
    run.token = dataset->tokens;
    dataset->runs[dataset->run_count++] = run;
    dataset->documents += end - first;
    dataset->sentences += behind.file_sentence - run.file_sentence;
    dataset->tokens += behind.file_token - run.file_token;
    dataset->vocabulary = file->vocabulary;
    dataset->runs[dataset->run_count] = (document_run){
        .document = dataset->documents, .sentence = dataset->sentences, .token = dataset->tokens};
    return 0;
}

/* Makes the documents appended since the last call a source. */
static int end_source(wg_dataset *dataset) {
    return wg__append(&dataset->source_ends, &dataset->source_count, &dataset->source_capacity,
                      &dataset->documents, sizeof dataset->documents);
}

static int end_sources(wg_dataset *parts[WG__TOKEN_PARTS]) {
    return end_source(parts[0]) < 0 ? -1 : end_source(parts[1]);
}

static int64_t begin_of(const document_run *run, int level) {
    return level == 0 ? run->document : level == 1 ? run->sentence : run->token;
}

/* The last run that begins at or before document (level 0), sentence (1) or token (2) `number`. */
static const document_run *find_run(const wg_dataset *dataset, int level, int64_t number) {
    const document_run *last = &dataset->runs[dataset->cache->run];
    if (begin_of(last, level) <= number && number < begin_of(last + 1, level))
        return last;
    int64_t low = 0, high = dataset->run_count - 1;
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (begin_of(&dataset->runs[middle], level) <= number)
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
        const document_run *run = find_run(from, 0, first);
        const int64_t stop = end < run[1].document ? end : run[1].document;
        const int64_t shift = run->file_document - run->document;
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

/* If the disk fails, this is the end of all documents, so that loops end. */
int64_t wg__dataset_document_start(const wg_dataset *dataset, int64_t document) {
    if (!dataset || document < 0 || document > dataset->documents)
        return -1;
    const bool stream = dataset->kind == WG_TEXT_STREAM;
    if (document == dataset->documents)
        return stream ? dataset->tokens : dataset->sentences;
    const document_run *run = find_run(dataset, 0, document);
    const int64_t start =
        wg__token_file_document(run->file, run->file_document + document - run->document);
    return stream ? start - run->file_token + run->token
                  : start - run->file_sentence + run->sentence;
}

int64_t wg__dataset_sentence_start(const wg_dataset *dataset, int64_t sentence) {
    if (!dataset || sentence < 0 || sentence > dataset->sentences)
        return -1;
    if (sentence == dataset->sentences)
        return dataset->tokens;
    const document_run *run = find_run(dataset, 1, sentence);
    return wg__token_file_sentence(run->file, run->file_sentence + sentence - run->sentence) -
           run->file_token + run->token;
}

static int read_runs(const wg_dataset *dataset, int64_t first, int64_t count, int32_t *ids) {
    while (count > 0) {
        const document_run *run = find_run(dataset, 2, first);
        const int64_t left = run[1].token - first, part = count < left ? count : left;
        if (wg__column_read(run->file->tokens, first - run->token + run->file_token, part, ids) < 0)
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

/* Calls `visit` with all tokens in order, some thousands at a time. */
typedef void (*token_visitor)(void *context, int64_t count, const int32_t *ids);

static int visit_tokens(const wg_dataset *dataset, token_visitor visit, void *context) {
    enum { BLOCK = 4096 };
    int32_t ids[BLOCK];
    for (int64_t first = 0; first < dataset->tokens; first += BLOCK) {
        const int64_t left = dataset->tokens - first, count = left < BLOCK ? left : BLOCK;
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
    const wg_token_storage *storage; /* NULL: nothing is kept */
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
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the part from %g to %g of a text is none", o->begin,
                   r->rules.end);
}

/* Adds a text, or the sides of pairs. `names` are for messages, `paths` are written to the file. */
static int add_texts(const request *r, wg__token_file *file, wg__text_map *texts,
                     const char *const *names, const char *const *paths) {
    for (int i = 0; i < wg__token_rules_sides(&r->rules); i++)
        if (wg__text_map_check(&texts[i], names[i], WHERE) < 0 ||
            wg__token_file_begin_source(file, paths[i], &texts[i]) < 0)
            return -1;
    return wg__read_text(file, r->tokenizer, texts, names);
}

/* The texts of pairs stay with the file, mapped: a pipe, for one, cannot be read again. */
static void keep_texts(wg__token_file *file, wg__text_map *texts) {
    wg__token_source *sources = &file->sources[file->source_count - WG__TOKEN_SIDES];
    for (int i = 0; i < WG__TOKEN_SIDES; i++) {
        sources[i].text = texts[i];
        wg__text_map_rest(&sources[i].text);
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

/* The tokens of texts: from the storage, if they are there and up to date, or made. */
static wg__token_file *tokens_of(const request *r, int count, const char *const *paths) {
    const char *kept = r->storage ? r->storage->path : NULL;
    if (!kept || access(kept, F_OK) < 0)
        return tokenize_files(r, kept, count, paths);
    if (!wg__dataset_is_token_file(kept)) {
        wg_fail(WG_ERROR_FORMAT, WHERE, "%s exists and is no token file; it is left as it is",
                kept);
        return NULL;
    }
    wg__token_file *file = wg__token_file_open(kept);
    if (!file)
        return NULL;
    const char *reason = wg__token_file_differs(file, &r->rules, r->tokenizer, count, paths);
    /* A file that is used again gets the present paths of its texts. */
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

static const char *kind_name(wg_dataset_kind kind) {
    return kind == WG_TEXT_PAIRS       ? "of pairs of sentences"
           : kind == WG_TEXT_SENTENCES ? "of sentences"
                                       : "as one stream";
}

/* Adds sources first .. end - 1 of a file, beginning with `document`. A held out part that is not
 * wanted belongs to the part before it. */
static int add_sources(const request *r, wg__token_file *file, int64_t first, int64_t end,
                       int64_t document, wg_dataset *parts[WG__TOKEN_PARTS]) {
    const bool apart = r->rules.cut < r->rules.end;
    for (int64_t i = first; i < end; i++)
        for (int part = 0; part < WG__TOKEN_PARTS; part++) {
            const wg__token_source *source = &file->sources[i];
            wg_dataset *dataset = parts[apart ? part : 0];
            if (add_documents(dataset, file, document, document + source->documents[part]) < 0)
                return -1;
            document += source->documents[part];
            dataset->bytes += source->text_bytes[part];
        }
    return 0;
}

/* Adds a token file. */
static int add_given(const request *r, const char *path, wg_dataset *parts[WG__TOKEN_PARTS]) {
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
                kind_name(file->rules.kind), kind_name(rules->kind));
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

/* `given` and `texts` are scratch: which of the paths are token files, and the others. */
static int load_paths(const request *r, int count, const char *const *paths, bool *given,
                      const char **texts, wg_dataset *parts[WG__TOKEN_PARTS]) {
    int text_count = 0;
    for (int i = 0; i < count; i++) {
        given[i] = wg__dataset_is_token_file(paths[i]);
        if (!given[i])
            texts[text_count++] = paths[i];
    }
    /* The sides of a pair must follow each other. */
    const bool pairs = r->rules.kind == WG_TEXT_PAIRS;
    for (int i = 0; pairs && i < count; i += given[i] ? 1 : WG__TOKEN_SIDES)
        if (!given[i] && (i + 1 == count || given[i + 1]))
            return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                           "%s has no other side; wanted a source and its target, line by line (or "
                           "several such pairs, one after the other)",
                           paths[i]);
    if (text_count == 0 && r->storage && r->storage->path)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s is not made: all files that are read are token files already",
                       r->storage->path);
    /* Adds all paths in order; `made` has the texts among them, in the same order. */
    wg__token_file *made = text_count > 0 ? tokens_of(r, text_count, texts) : NULL;
    const int sides = wg__token_rules_sides(&r->rules);
    int64_t source = 0, document = 0;
    int status = made || text_count == 0 ? 0 : -1;
    for (int i = 0; status == 0 && i < count; i += given[i] ? 1 : sides) {
        status = given[i] ? add_given(r, paths[i], parts)
                          : add_sources(r, made, source, source + sides, document, parts);
        for (int side = 0; !given[i] && side < sides; side++, source++)
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
    bool *given = wg__alloc_array(count, sizeof *given);
    const char **texts = wg__alloc_array(count, sizeof *texts);
    int status = given && texts && new_parts(r->rules.kind, parts) == 0
                     ? load_paths(r, count, paths, given, texts, parts)
                     : -1;
    wg__free(given);
    wg__free(texts);
    if (status == 0 && parts[0]->documents == 0) /* pairs of a token file that has none */
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "there is no document in it");
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
    if (pairs != (target != NULL)) {
        wg_fail(WG_ERROR_ARGUMENT, WHERE, pairs ? "pairs have no target" : "a target of no pairs");
        return NULL;
    }
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
            status = end_source(parts[0]);
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
    /* Two documents at least are held out: one in D / 2. */
    const int64_t rarest = from->documents / 2;
    const int64_t every = (int64_t)fmin(round(1 / share), (double)rarest);
    for (int64_t i = 0, first = 0; i < from->source_count; first = from->source_ends[i++]) {
        const int64_t end = from->source_ends[i];
        while (first < end) {
            const int64_t next = first / every * every + every - 1; /* that is held out */
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

/* Each run of a dataset as it was loaded is what two texts, or a part of them, gave; it does not go
 * beyond a source. */
static int split_pairs(const wg_dataset *from, double share, wg_dataset *parts[WG__TOKEN_PARTS]) {
    if (!(share > 0 && share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a share of %g cannot be held out", share);
    for (int64_t i = 0, source = 0; i < from->run_count; i++) {
        const int64_t first = from->runs[i].document, end = from->runs[i + 1].document;
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

/* ---- The texts of pairs ---- */

/* Goes on to the line, or back to the begin and there; the line's length, or -1 beyond the end. */
static int64_t find_line(line_place *p, wg__text_map *text, int64_t line, const char **begin) {
    if (p->text != text || p->line > line)
        *p = (line_place){.text = text};
    while (p->at < text->length) {
        wg__text_map_pass(text, p->at);
        *begin = text->bytes + p->at;
        const int64_t length = wg__text_line(text, p->at, &p->at);
        if (p->line++ == line)
            return length;
    }
    return -1;
}

char *wg__dataset_pair_text(const wg_dataset *dataset, wg_side side, int64_t pair) {
    int64_t line;
    const char *begin;
    if (!dataset)
        return NULL;
    if (dataset->kind != WG_TEXT_PAIRS || pair < 0 || pair >= dataset->documents) {
        wg_fail(WG_ERROR_INDEX, WHERE, "pair %lld of %lld", (long long)pair,
                (long long)(dataset->kind == WG_TEXT_PAIRS ? dataset->documents : 0));
        return NULL;
    }
    const document_run *run = find_run(dataset, 0, pair);
    const int64_t document = pair - run->document + run->file_document;
    int64_t before = 0, source = 0;
    for (; source + WG__TOKEN_SIDES < run->file->source_count; source += WG__TOKEN_SIDES) {
        const int64_t count = run->file->sources[source + WG_TARGET].documents[0];
        if (document < before + count)
            break;
        before += count;
    }
    line = document - before;
    wg__text_map *text = wg__token_file_text(run->file, source + side, WHERE);
    if (!text)
        return NULL;
    const int64_t length = find_line(&dataset->cache->places[side], text, line, &begin);
    if (length < 0) {
        wg_fail(WG_ERROR_STATE, WHERE, "pair %lld is beyond the end of its text", (long long)pair);
        return NULL;
    }
    char *copy = wg__alloc((size_t)length + 1);
    if (copy) {
        memcpy(copy, begin, (size_t)length);
        copy[length] = '\0';
    }
    return copy;
}

/* ---- Fingerprints ---- */

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
        /* Where the sentences of a side would begin if that side stood alone, then their ids. */
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
    if (counts && visit_tokens(dataset, count_ids, counts) == 0) {
        dataset->cache->counts = counts;
        return 0;
    }
    wg__free(counts);
    return -1;
}

int64_t wg__dataset_count(const wg_dataset *dataset, int64_t token) {
    if (!dataset || token < 0 || token >= dataset->vocabulary)
        return 0;
    return count_tokens(dataset) < 0 ? -1 : dataset->cache->counts[token];
}

/* -log p of tokens, summed up. */
typedef struct surprise {
    const wg_dataset *dataset; /* whose frequencies count */
    double sum;
    bool begun; /* the first token of a text is not predicted */
} surprise;

static void add_surprise(surprise *s, int64_t id) {
    const wg_dataset *d = s->dataset;
    s->sum -= log((double)(d->cache->counts[id] + 1) / (double)(d->tokens + d->vocabulary));
}

static void add_text_surprise(void *context, int64_t count, const int32_t *ids) {
    surprise *s = context;
    for (int64_t i = s->begun ? 0 : 1; i < count; i++)
        add_surprise(s, ids[i]);
    s->begun = true;
}

double wg_dataset_unigram_loss(const wg_dataset *dataset, const wg_tensor *labels,
                               const wg_dataset *text) {
    if (!dataset || (!labels && !text) || count_tokens(dataset) < 0)
        return NAN;
    surprise s = {.dataset = dataset};
    if (!labels) {
        if (text->vocabulary > dataset->vocabulary)
            wg_fail(WG_ERROR_INDEX, WHERE,
                    "the text has a vocabulary of %lld tokens, the text it is compared with one of "
                    "%lld",
                    (long long)text->vocabulary, (long long)dataset->vocabulary);
        else if (visit_tokens(text, add_text_surprise, &s) == 0)
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
            add_surprise(&s, label);
        else
            status = wg_fail(WG_ERROR_INDEX, WHERE,
                             "label %lld is outside the vocabulary of %lld tokens",
                             (long long)label, (long long)dataset->vocabulary);
    }
    wg__free(values);
    return status == 0 ? s.sum / (double)count : NAN;
}
