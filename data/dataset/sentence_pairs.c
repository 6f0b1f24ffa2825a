/* Sentences and their translations: see sentence_pairs.h; pairs_text.c has the rules by which two
 * texts become pairs. */
#include "data/dataset/sentence_pairs.h"

#include <string.h>

#include "data/dataset/pairs_text.h"
#include "base/string_table.h"
#include "data/dataset/token_view.h"
#include "tensor/internal.h"

#define WHERE "sentence_pairs"

/* Where one side's text was read last, so that the next line is found at once. */
typedef struct place {
    const wg__text_map *text; /* NULL: nowhere yet */
    int64_t line, at;         /* the next line, and where it begins */
} place;

/* Reading moves what is remembered of the disk, and nothing that a caller sees. */
struct wg_sentence_pairs {
    wg__token_view *view;
    place *places; /* of each side */
};

/* ---- Making ---- */

void wg_sentence_pairs_free(wg_sentence_pairs *pairs) {
    if (!pairs)
        return;
    if (pairs->view)
        wg__token_view_clear(pairs->view);
    wg__free(pairs->view);
    wg__free(pairs->places);
    wg__free(pairs);
}

static wg_sentence_pairs *new_pairs(void) {
    wg_sentence_pairs *pairs = wg__calloc(1, sizeof *pairs);
    if (!pairs)
        return NULL;
    pairs->view = wg__calloc(1, sizeof *pairs->view);
    pairs->places = wg__calloc(WG__TOKEN_SIDES, sizeof *pairs->places);
    if (pairs->view && pairs->places)
        return pairs;
    wg_sentence_pairs_free(pairs);
    return NULL;
}

static wg__token_request request_of(const wg_tokenizer *tokenizer,
                                    const wg_sentence_pairs_options *options) {
    return (wg__token_request){
        .rules = {.sentences = true, .pairs = true, .cut = 1, .end = 1},
        .tokenizer = tokenizer,
        .storage = options ? options->storage : NULL,
        .where = WHERE,
        .read = wg__pairs_text_read,
    };
}

/* The pairs of the first view, unless making the views failed; the second one is empty. */
static wg_sentence_pairs *take(wg__token_view views[WG__TOKEN_PARTS], int status) {
    if (status == 0 && views[0].documents == 0) /* only of a token file */
        status = wg_fail(WG_ERROR_FORMAT, WHERE, "there is no pair in it");
    wg_sentence_pairs *pairs = status == 0 ? new_pairs() : NULL;
    if (pairs)
        *pairs->view = views[0];
    else
        wg__token_view_clear(&views[0]);
    wg__token_view_clear(&views[1]);
    return pairs;
}

wg_sentence_pairs *wg_sentence_pairs_load(int count, const char *const *paths,
                                          const wg_tokenizer *tokenizer,
                                          const wg_sentence_pairs_options *options) {
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    if (!tokenizer)
        return NULL;
    const wg__token_request request = request_of(tokenizer, options);
    return take(views, wg__token_sources_load(&request, count, paths, views));
}

wg_sentence_pairs *wg_sentence_pairs_from_texts(const char *source, const char *target,
                                                const wg_tokenizer *tokenizer,
                                                const wg_sentence_pairs_options *options) {
    wg__token_view views[WG__TOKEN_PARTS] = {{0}};
    if (!tokenizer || !source || !target)
        return NULL;
    const wg__token_request request = request_of(tokenizer, options);
    wg__text_map texts[] = {wg__text_map_of(source, -1), wg__text_map_of(target, -1)};
    return take(views, wg__token_sources_of_texts(&request, texts, views));
}

int wg_sentence_pairs_weigh(wg_sentence_pairs *pairs, int count, const double *weights) {
    return pairs ? wg__token_view_weigh(pairs->view, count, weights, WHERE) : -1;
}

/* ---- Holding out ---- */

/* Each run of the view is what two texts, or a part of them, gave; it does not go beyond a source.
 */
static int deal(const wg__token_view *from, double share, wg__token_view *training,
                wg__token_view *held_out) {
    for (int64_t i = 0, source = 0; i < from->run_count; i++) {
        const int64_t first = from->runs[i].document, end = from->runs[i + 1].document;
        const int64_t cut = first + (int64_t)((1 - share) * (double)(end - first));
        if (wg__token_view_add_view(training, from, first, cut) < 0 ||
            wg__token_view_add_view(held_out, from, cut, end) < 0)
            return -1;
        for (; source < from->source_count && from->source_ends[source] <= end; source++)
            if (wg__token_view_end_source(training) < 0 || wg__token_view_end_source(held_out) < 0)
                return -1;
    }
    const int count = (int)from->source_count;
    if (!from->weights)
        return 0;
    return wg__token_view_weigh(training, count, from->weights, WHERE) < 0
               ? -1
               : wg__token_view_weigh(held_out, count, from->weights, WHERE);
}

static int split(const wg__token_view *from, double share, wg__token_view *training,
                 wg__token_view *held_out) {
    if (deal(from, share, training, held_out) < 0)
        return -1;
    if (training->documents > 0 && held_out->documents > 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "%lld pairs are too few to hold some out; give more pairs, or a text to measure "
                   "on",
                   (long long)from->documents);
}

int wg_sentence_pairs_split(const wg_sentence_pairs *pairs, double share,
                            wg_sentence_pairs **training, wg_sentence_pairs **held_out) {
    *training = *held_out = NULL;
    if (!pairs)
        return -1;
    if (!(share > 0 && share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a share of %g cannot be held out", share);
    *training = new_pairs();
    *held_out = *training ? new_pairs() : NULL;
    if (*held_out && split(pairs->view, share, (*training)->view, (*held_out)->view) == 0)
        return 0;
    wg_sentence_pairs_free(*training);
    wg_sentence_pairs_free(*held_out);
    *training = *held_out = NULL;
    return -1;
}

/* ---- What they hold ---- */

wg__token_view *wg__sentence_pairs_view(const wg_sentence_pairs *pairs) {
    return pairs->view;
}

int64_t wg_sentence_pairs_count(const wg_sentence_pairs *pairs) {
    return pairs ? pairs->view->documents : 0;
}

int64_t wg_sentence_pairs_vocabulary(const wg_sentence_pairs *pairs) {
    return pairs ? pairs->view->vocabulary : 0;
}

int64_t wg_sentence_pairs_sources(const wg_sentence_pairs *pairs) {
    return pairs ? pairs->view->source_count : 0;
}

int64_t wg_sentence_pairs_source_end(const wg_sentence_pairs *pairs, int64_t source) {
    return pairs ? wg__token_view_source_end(pairs->view, source) : -1;
}

double wg_sentence_pairs_source_weight(const wg_sentence_pairs *pairs, int64_t source) {
    return pairs ? wg__token_view_source_weight(pairs->view, source) : 0;
}

/* The tokens first .. first + length - 1 are a side of a pair; its length, or -1. */
static int64_t find_tokens(const wg_sentence_pairs *pairs, wg_side side, int64_t index,
                           int64_t *first) {
    const int64_t sentence = WG__TOKEN_SIDES * index + side;
    if (index < 0 || index >= wg_sentence_pairs_count(pairs))
        return -1;
    *first = wg__token_view_sentence(pairs->view, sentence);
    const int64_t end = wg__token_view_sentence(pairs->view, sentence + 1);
    return wg_error_pending() ? -1 : end - *first;
}

int64_t wg_sentence_pairs_length(const wg_sentence_pairs *pairs, wg_side side, int64_t index) {
    int64_t first;
    return find_tokens(pairs, side, index, &first);
}

static int refuse_index(const wg_sentence_pairs *pairs, int64_t index) {
    return wg_fail(WG_ERROR_INDEX, WHERE, "pair %lld of %lld", (long long)index,
                   (long long)wg_sentence_pairs_count(pairs));
}

int wg_sentence_pairs_read(const wg_sentence_pairs *pairs, wg_side side, int64_t index,
                           int32_t *ids) {
    int64_t first;
    const int64_t length = find_tokens(pairs, side, index, &first);
    if (length < 0) /* an error that is pending stays */
        return pairs ? refuse_index(pairs, index) : -1;
    return wg__token_view_read(pairs->view, first, length, ids, WHERE);
}

int64_t wg_sentence_pairs_total(const wg_sentence_pairs *pairs, wg_side side) {
    int64_t total = 0;
    for (int64_t i = 0; i < wg_sentence_pairs_count(pairs); i++) {
        const int64_t length = wg_sentence_pairs_length(pairs, side, i);
        if (length < 0)
            return -1;
        total += length;
    }
    return total;
}

/* ---- Texts ---- */

/* The text that one side of a document of a file came from; *line is its line there. */
static wg__text_map *find_text(wg__token_file *file, wg_side side, int64_t document,
                               int64_t *line) {
    int64_t before = 0, source = 0;
    for (; source + WG__TOKEN_SIDES < file->source_count; source += WG__TOKEN_SIDES) {
        const int64_t count = file->sources[source + WG_TARGET].documents[0];
        if (document < before + count)
            break;
        before += count;
    }
    *line = document - before;
    return wg__token_file_text(file, source + side, WHERE);
}

/* Goes on to the line, or back to the begin and there; the line's length, or -1 without such. */
static int64_t find_line(place *p, wg__text_map *text, int64_t line, const char **begin) {
    if (p->text != text || p->line > line)
        *p = (place){.text = text};
    while (p->at < text->length) {
        wg__text_map_pass(text, p->at);
        *begin = text->bytes + p->at;
        const int64_t length = wg__pairs_text_line(text, p->at, &p->at);
        if (p->line++ == line)
            return length;
    }
    return -1;
}

char *wg_sentence_pairs_text(const wg_sentence_pairs *pairs, wg_side side, int64_t index) {
    int64_t line;
    const char *begin;
    if (!pairs)
        return NULL;
    const wg__token_run *run = wg__token_view_run(pairs->view, index);
    if (!run) {
        refuse_index(pairs, index);
        return NULL;
    }
    const int64_t document = index - run->document + run->file_document;
    wg__text_map *text = find_text(run->file, side, document, &line);
    if (!text)
        return NULL;
    const int64_t length = find_line(&pairs->places[side], text, line, &begin);
    if (length < 0) {
        wg_fail(WG_ERROR_STATE, WHERE, "pair %lld is beyond the end of its text", (long long)index);
        return NULL;
    }
    char *copy = wg__alloc((size_t)length + 1);
    if (copy) {
        memcpy(copy, begin, (size_t)length);
        copy[length] = '\0';
    }
    return copy;
}

/* ---- The fingerprint ---- */

static uint64_t mix(uint64_t hash, int64_t value) {
    for (int byte = 0; byte < 8; byte++)
        hash = wg__hash_step(hash, (char)(value >> 8 * byte & 0xFF));
    return hash;
}

/* Where each sentence of a side would begin, if that side stood alone. */
static int mix_starts(const wg_sentence_pairs *pairs, wg_side side, uint64_t *hash,
                      int64_t *longest) {
    int64_t start = 0;
    *hash = mix(*hash, 0);
    for (int64_t i = 0; i < wg_sentence_pairs_count(pairs); i++) {
        const int64_t length = wg_sentence_pairs_length(pairs, side, i);
        if (length < 0)
            return -1;
        *longest = length > *longest ? length : *longest;
        *hash = mix(*hash, start += length);
    }
    return 0;
}

static int mix_ids(const wg_sentence_pairs *pairs, wg_side side, uint64_t *hash, int32_t *ids) {
    for (int64_t i = 0; i < wg_sentence_pairs_count(pairs); i++) {
        const int64_t length = wg_sentence_pairs_length(pairs, side, i);
        if (length < 0 || wg_sentence_pairs_read(pairs, side, i, ids) < 0)
            return -1;
        for (int64_t k = 0; k < length; k++)
            *hash = mix(*hash, ids[k]);
    }
    return 0;
}

int64_t wg_sentence_pairs_fingerprint(const wg_sentence_pairs *pairs) {
    uint64_t hash = WG__HASH_EMPTY;
    for (int side = 0; pairs && side < WG__TOKEN_SIDES; side++) {
        int64_t longest = 0;
        if (mix_starts(pairs, (wg_side)side, &hash, &longest) < 0)
            return 0;
        int32_t *ids = wg__alloc((size_t)(longest + 1) * sizeof *ids);
        const int status = ids ? mix_ids(pairs, (wg_side)side, &hash, ids) : -1;
        wg__free(ids);
        if (status < 0)
            return 0;
    }
    return (int64_t)hash;
}
