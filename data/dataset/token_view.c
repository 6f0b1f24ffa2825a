/* A row of tokens made of parts of token files: see token_view.h. */
#include "data/dataset/token_view.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/string_table.h"
#include "tensor/internal.h"

/* ---- Making ---- */

void wg__token_view_clear(wg__token_view *view) {
    for (int64_t i = 0; i < view->run_count; i++)
        wg__token_file_release(view->runs[i].file);
    wg__free(view->runs);
    wg__free(view->source_ends);
    wg__free(view->weights);
    wg__free(view->counts);
    *view = (wg__token_view){0};
}

/* What a document of a file begins with, as sentence and token. */
static wg__token_run place_in_file(wg__token_file *file, int64_t document) {
    const int64_t start = wg__token_file_document(file, document);
    if (!file->rules.sentences)
        return (wg__token_run){.file_document = document, .file_token = start};
    return (wg__token_run){.file_document = document,
                           .file_sentence = start,
                           .file_token = wg__token_file_sentence(file, start)};
}

int wg__token_view_add(wg__token_view *view, wg__token_file *file, int64_t first, int64_t end) {
    if (first >= end)
        return 0;
    wg__token_run *runs = wg__grow(view->runs, view->run_count, &view->run_capacity,
                                   view->run_count + 2, sizeof *runs);
    if (!runs)
        return -1;
    view->runs = runs;
    wg__token_run run = place_in_file(file, first), behind = place_in_file(file, end);
    if (wg_error_pending())
        return -1;
    wg__token_file_hold(file);
    run.file = file;
    run.document = view->documents;
    run.sentence = view->sentences;
    run.token = view->tokens;
    runs[view->run_count++] = run;
    view->documents += end - first;
    view->sentences += behind.file_sentence - run.file_sentence;
    view->tokens += behind.file_token - run.file_token;
    view->vocabulary = file->vocabulary;
    runs[view->run_count] = (wg__token_run){
        .document = view->documents, .sentence = view->sentences, .token = view->tokens};
    return 0;
}

int wg__token_view_end_source(wg__token_view *view) {
    int64_t *ends = wg__grow(view->source_ends, view->source_count, &view->source_capacity,
                             view->source_count + 1, sizeof *ends);
    if (!ends)
        return -1;
    view->source_ends = ends;
    ends[view->source_count++] = view->documents;
    return 0;
}

static bool is_of_pairs(const wg__token_view *view) {
    return view->run_count > 0 && view->runs[0].file->rules.pairs;
}

int wg__token_view_weigh(wg__token_view *view, int count, const double *weights,
                         const char *where) {
    if (count != view->source_count)
        return wg_fail(WG_ERROR_ARGUMENT, where, "%d weights for %lld %s", count,
                       (long long)view->source_count,
                       is_of_pairs(view) ? "pairs of files" : "files of text");
    for (int i = 0; i < count; i++)
        if (!(weights[i] > 0 && weights[i] <= 1e9))
            return wg_fail(WG_ERROR_ARGUMENT, where, "a weight of %g; it must be above 0",
                           weights[i]);
    double *copy = wg__alloc((size_t)count * sizeof *copy);
    if (!copy)
        return -1;
    memcpy(copy, weights, (size_t)count * sizeof *copy);
    wg__free(view->weights);
    view->weights = copy;
    return 0;
}

int64_t wg__token_view_source_end(const wg__token_view *view, int64_t source) {
    return source < 0 || source >= view->source_count ? -1 : view->source_ends[source];
}

double wg__token_view_source_weight(const wg__token_view *view, int64_t source) {
    return source < 0 || source >= view->source_count || !view->weights ? 0 : view->weights[source];
}

/* ---- Finding ---- */

static int64_t begin_of(const wg__token_run *run, int level) {
    return level == 0 ? run->document : level == 1 ? run->sentence : run->token;
}

/* The last run that begins at or before the document (level 0), sentence (1) or token (2) of that
 * number. */
static const wg__token_run *find(wg__token_view *view, int level, int64_t number) {
    const wg__token_run *last = &view->runs[view->run];
    if (begin_of(last, level) <= number && number < begin_of(last + 1, level))
        return last;
    int64_t low = 0, high = view->run_count - 1;
    while (low < high) {
        const int64_t middle = high - (high - low) / 2;
        if (begin_of(&view->runs[middle], level) <= number)
            low = middle;
        else
            high = middle - 1;
    }
    view->run = low;
    return &view->runs[low];
}

const wg__token_run *wg__token_view_run(wg__token_view *view, int64_t document) {
    return document < 0 || document >= view->documents ? NULL : find(view, 0, document);
}

static bool is_of_sentences(const wg__token_view *view) {
    return view->run_count > 0 && view->runs[0].file->rules.sentences;
}

int64_t wg__token_view_document(wg__token_view *view, int64_t document) {
    if (document < 0 || document > view->documents)
        return -1;
    const bool sentences = is_of_sentences(view);
    if (document == view->documents)
        return sentences ? view->sentences : view->tokens;
    const wg__token_run *run = find(view, 0, document);
    const int64_t start =
        wg__token_file_document(run->file, run->file_document + document - run->document);
    return sentences ? start - run->file_sentence + run->sentence
                     : start - run->file_token + run->token;
}

int64_t wg__token_view_sentence(wg__token_view *view, int64_t sentence) {
    if (sentence < 0 || sentence > view->sentences)
        return -1;
    if (sentence == view->sentences)
        return view->tokens;
    const wg__token_run *run = find(view, 1, sentence);
    return wg__token_file_sentence(run->file, run->file_sentence + sentence - run->sentence) -
           run->file_token + run->token;
}

int wg__token_view_add_view(wg__token_view *view, const wg__token_view *from, int64_t first,
                            int64_t end) {
    while (first < end) {
        const wg__token_run *run = find((wg__token_view *)from, 0, first);
        const int64_t stop = end < run[1].document ? end : run[1].document;
        const int64_t shift = run->file_document - run->document;
        if (wg__token_view_add(view, run->file, first + shift, stop + shift) < 0)
            return -1;
        first = stop;
    }
    return 0;
}

/* ---- Reading ---- */

static int read_runs(wg__token_view *view, int64_t first, int64_t count, int32_t *ids) {
    while (count > 0) {
        const wg__token_run *run = find(view, 2, first);
        const int64_t left = run[1].token - first, part = count < left ? count : left;
        if (wg__column_read(run->file->tokens, first - run->token + run->file_token, part, ids) < 0)
            return -1;
        first += part;
        ids += part;
        count -= part;
    }
    return 0;
}

int wg__token_view_read(wg__token_view *view, int64_t first, int64_t count, int32_t *ids,
                        const char *where) {
    if (first < 0 || count < 0 || count > view->tokens - first)
        return wg_fail(WG_ERROR_INDEX, where, "tokens %lld to %lld of a %s of %lld",
                       (long long)first, (long long)(first + count),
                       is_of_sentences(view) ? "corpus" : "stream", (long long)view->tokens);
    return read_runs(view, first, count, ids);
}

int wg__token_view_each(wg__token_view *view, wg__token_visitor visit, void *context) {
    enum { BLOCK = 4096 };
    int32_t ids[BLOCK];
    for (int64_t first = 0; first < view->tokens; first += BLOCK) {
        const int64_t left = view->tokens - first, count = left < BLOCK ? left : BLOCK;
        if (read_runs(view, first, count, ids) < 0)
            return -1;
        visit(context, count, ids);
    }
    return 0;
}

static void hash_ids(void *context, int64_t count, const int32_t *ids) {
    uint64_t hash = *(uint64_t *)context;
    for (int64_t i = 0; i < count; i++)
        hash = (hash ^ (uint32_t)ids[i]) * UINT64_C(1099511628211);
    *(uint64_t *)context = hash;
}

int64_t wg__token_view_fingerprint(wg__token_view *view) {
    uint64_t hash = WG__HASH_EMPTY;
    return wg__token_view_each(view, hash_ids, &hash) < 0 ? 0 : (int64_t)hash;
}

static void count_ids(void *context, int64_t count, const int32_t *ids) {
    int64_t *counts = context;
    for (int64_t i = 0; i < count; i++)
        counts[ids[i]]++;
}

static int count_tokens(wg__token_view *view) {
    if (view->counts)
        return 0;
    int64_t *counts = wg__calloc((size_t)view->vocabulary, sizeof *counts);
    if (!counts)
        return -1;
    if (wg__token_view_each(view, count_ids, counts) < 0) {
        wg__free(counts);
        return -1;
    }
    view->counts = counts;
    return 0;
}

double wg__token_view_surprise(wg__token_view *view, int64_t id) {
    if (count_tokens(view) < 0)
        return NAN;
    return -log((double)(view->counts[id] + 1) / (double)(view->tokens + view->vocabulary));
}
