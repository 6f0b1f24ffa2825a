/* Corpora. See corpus.h; corpus_text.c has the rules by which texts become sentences. */
#include "data/dataset/corpus.h"

#include <math.h>

#include "data/dataset/corpus_text.h"
#include "data/dataset/token_view.h"
#include "tensor/internal.h"

#define WHERE "corpus"

/* Reading moves what is remembered of the disk, and nothing that a caller sees. */
struct wg_corpus {
    wg__token_view *view;
};

/* ---- Making ---- */

static wg_corpus *new_corpus(void) {
    wg_corpus *corpus = wg__calloc(1, sizeof *corpus);
    if (!corpus)
        return NULL;
    corpus->view = wg__calloc(1, sizeof *corpus->view);
    if (corpus->view)
        return corpus;
    wg__free(corpus);
    return NULL;
}

void wg_corpus_free(wg_corpus *corpus) {
    if (!corpus)
        return;
    wg__token_view_clear(corpus->view);
    wg__free(corpus->view);
    wg__free(corpus);
}

static wg__token_request request_of(const wg_tokenizer *tokenizer,
                                    const wg_corpus_options *options) {
    return (wg__token_request){
        .rules = {.sentences = true, .cut = 1, .end = 1, .format = options ? options->format : 0},
        .tokenizer = tokenizer,
        .storage = options ? options->storage : NULL,
        .where = WHERE,
        .read = wg__corpus_text_read,
    };
}

/* The corpus of the first view, unless making the views failed; the second one is empty. */
static wg_corpus *take(wg__token_view views[WG__TOKEN_PARTS], int status) {
    wg_corpus *corpus = status == 0 ? new_corpus() : NULL;
    if (corpus)
        *corpus->view = views[0];
    else if (status == 0)
        wg__token_view_clear(&views[0]);
    wg__token_view_clear(&views[1]);
    return corpus;
}

wg_corpus *wg_corpus_load(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                          const wg_corpus_options *options) {
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    if (!tokenizer)
        return NULL;
    const wg__token_request request = request_of(tokenizer, options);
    return take(views, wg__token_sources_load(&request, count, paths, views));
}

wg_corpus *wg_corpus_from_text(const char *text, int64_t length, const wg_tokenizer *tokenizer,
                               const wg_corpus_options *options) {
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    if (!text || !tokenizer)
        return NULL;
    const wg__token_request request = request_of(tokenizer, options);
    wg__text_map map = wg__text_map_of(text, length);
    return take(views, wg__token_sources_of_texts(&request, &map, views));
}

wg_corpus_format wg_corpus_detect(const char *text, int64_t length) {
    wg__text_map map = wg__text_map_of(text, length);
    return wg__corpus_text_detect(&map);
}

int wg_corpus_weigh(wg_corpus *corpus, int count, const double *weights) {
    return corpus ? wg__token_view_weigh(corpus->view, count, weights, WHERE) : -1;
}

/* ---- Holding out ---- */

/* Deals the documents of a source, first .. end - 1. */
static int deal(const wg__token_view *from, int64_t first, int64_t end, int64_t every,
                wg__token_view *training, wg__token_view *held_out) {
    while (first < end) {
        const int64_t next = first / every * every + every - 1; /* is held out */
        const int64_t stop = next < end ? next : end;
        if (wg__token_view_add_view(training, from, first, stop) < 0)
            return -1;
        if (next < end && wg__token_view_add_view(held_out, from, next, next + 1) < 0)
            return -1;
        first = next + 1;
    }
    return wg__token_view_end_source(training) < 0 ? -1 : wg__token_view_end_source(held_out);
}

static int split(const wg__token_view *from, int64_t every, wg__token_view *training,
                 wg__token_view *held_out) {
    int64_t first = 0;
    for (int64_t i = 0; i < from->source_count; i++) {
        if (deal(from, first, from->source_ends[i], every, training, held_out) < 0)
            return -1;
        first = from->source_ends[i];
    }
    if (!from->weights)
        return 0;
    const int count = (int)from->source_count;
    return wg__token_view_weigh(training, count, from->weights, WHERE) < 0
               ? -1
               : wg__token_view_weigh(held_out, count, from->weights, WHERE);
}

int wg_corpus_split(const wg_corpus *corpus, double fraction, wg_corpus **training,
                    wg_corpus **held_out) {
    *training = *held_out = NULL;
    if (!corpus)
        return -1;
    if (!(fraction > 0 && fraction <= 0.5))
        return wg_fail(WG_ERROR_ARGUMENT, "wg_corpus_split",
                       "a fraction of %g; it must be above 0 and at most 0.5", fraction);
    const int64_t documents = corpus->view->documents;
    if (documents < 4)
        return wg_fail(WG_ERROR_ARGUMENT, "wg_corpus_split",
                       "the corpus has %lld documents; four are needed to hold two out",
                       (long long)documents);
    /* The held-out half needs two documents, so every one in D / 2 at the least. */
    const int64_t every = (int64_t)fmin(round(1 / fraction), (double)(documents / 2));
    *training = new_corpus();
    *held_out = *training ? new_corpus() : NULL;
    if (*held_out && split(corpus->view, every, (*training)->view, (*held_out)->view) == 0)
        return 0;
    wg_corpus_free(*training);
    wg_corpus_free(*held_out);
    *training = *held_out = NULL;
    return -1;
}

/* ---- What it holds ---- */

int64_t wg_corpus_documents(const wg_corpus *corpus) {
    return corpus ? corpus->view->documents : 0;
}

int64_t wg_corpus_sentences(const wg_corpus *corpus) {
    return corpus ? corpus->view->sentences : 0;
}

int64_t wg_corpus_tokens(const wg_corpus *corpus) {
    return corpus ? corpus->view->tokens : 0;
}

int64_t wg_corpus_vocabulary(const wg_corpus *corpus) {
    return corpus ? corpus->view->vocabulary : 0;
}

int64_t wg_corpus_document_start(const wg_corpus *corpus, int64_t document) {
    return corpus ? wg__token_view_document(corpus->view, document) : -1;
}

int64_t wg_corpus_sentence_start(const wg_corpus *corpus, int64_t sentence) {
    return corpus ? wg__token_view_sentence(corpus->view, sentence) : -1;
}

int wg_corpus_read(const wg_corpus *corpus, int64_t first, int64_t count, int32_t *ids) {
    return corpus ? wg__token_view_read(corpus->view, first, count, ids, "wg_corpus_read") : -1;
}

int64_t wg_corpus_fingerprint(const wg_corpus *corpus) {
    return corpus ? wg__token_view_fingerprint(corpus->view) : 0;
}

int64_t wg_corpus_sources(const wg_corpus *corpus) {
    return corpus ? corpus->view->source_count : 0;
}

int64_t wg_corpus_source_end(const wg_corpus *corpus, int64_t source) {
    return corpus ? wg__token_view_source_end(corpus->view, source) : -1;
}

double wg_corpus_source_weight(const wg_corpus *corpus, int64_t source) {
    return corpus ? wg__token_view_source_weight(corpus->view, source) : 0;
}

wg__token_view *wg__corpus_view(const wg_corpus *corpus) {
    return corpus->view;
}

/* ---- Word frequency ---- */

static int64_t label_at(const void *labels, wg_dtype dtype, int64_t i) {
    return dtype == WG_I32 ? ((const int32_t *)labels)[i] : ((const int64_t *)labels)[i];
}

static int check_labels(const void *labels, wg_dtype dtype, int64_t count, int64_t vocabulary) {
    for (int64_t i = 0; i < count; i++) {
        int64_t label = label_at(labels, dtype, i);
        if (label < 0 || label >= vocabulary)
            return wg_fail(WG_ERROR_INDEX, "wg_corpus_unigram_loss",
                           "label %lld is outside the vocabulary of %lld tokens", (long long)label,
                           (long long)vocabulary);
    }
    return 0;
}

double wg_corpus_unigram_loss(const wg_corpus *corpus, const wg_tensor *labels) {
    if (!corpus || !labels)
        return NAN;
    wg_dtype dtype = wg_tensor_dtype(labels);
    int64_t count = wg_tensor_count(labels), vocabulary = corpus->view->vocabulary;
    if (dtype != WG_I64 && dtype != WG_I32) {
        wg_fail(WG_ERROR_DTYPE, "wg_corpus_unigram_loss", "labels are %s; they must be i64 or i32",
                wg_dtype_name(dtype));
        return NAN;
    }
    void *values = wg__alloc((size_t)(count + 1) * wg_dtype_size(dtype));
    double sum = NAN;
    if (values && wg_to_array(labels, values) == 0 &&
        check_labels(values, dtype, count, vocabulary) == 0) {
        sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += wg__token_view_surprise(corpus->view, label_at(values, dtype, i));
    }
    wg__free(values);
    return sum / (double)count;
}
