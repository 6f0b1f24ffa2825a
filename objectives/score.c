/* Scoring texts: their tokens, sorted so that texts of one length make a batch.
 *
 *     texts    b d   a   c e f   b d   a c        encoded
 *     sorted   c e f | a c   b d   b d | a        the longest first, equal ones beside each other
 *     batches  c e f   a c   b d         a        of one length, so without padding
 *
 * An objective scores a batch. Equal texts are one row of it, so their scores have the same bits.
 */
#include <stdlib.h>
#include <string.h>

#include "objectives/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "score"

enum { USUAL_BATCH_TOKENS = 4096 };

/* ---- What objectives call ---- */

int64_t wg__score_rows(const wg_score_options *options, int64_t length) {
    const int64_t tokens = options->batch_tokens ? options->batch_tokens : USUAL_BATCH_TOKENS;
    return tokens > length ? tokens / length : 1;
}

static bool is_stopped(const wg_score_options *options) {
    return options->stop && *options->stop;
}

int wg__score_losses(const wg_model *model, const wg_score_options *options,
                     const wg_model_inputs *inputs, wg_tensor *positions, wg_tensor *labels,
                     double *losses) {
    static const wg_cross_entropy_options each = {.reduction = WG_REDUCTION_NONE};
    if (is_stopped(options))
        return -1;
    wg_tensor *hidden = wg_model_forward(model, inputs);
    wg_tensor *loss = wg_model_loss(model, hidden, positions, labels, &each);
    return loss ? wg_to_array(wg_cast(loss, WG_F64), losses) : -1;
}

/* ---- Texts ---- */

typedef struct scored_text {
    const int32_t *ids;
    int64_t count;
    int64_t number; /* among the texts that were given */
    int64_t row;    /* of its batch */
} scored_text;

typedef struct scoring {
    const wg_objective *objective;
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    wg_score_options options;
    wg_token_list tokens; /* of all texts */
    scored_text *texts;
    int64_t count;
    int32_t *ids;   /* of a batch */
    wg_score *rows; /* of a batch */
} scoring;

/* "words.txt, line 3", or "text 3". */
static const char *name_text(const wg_score_source *source, int64_t number, char *name,
                             size_t size) {
    if (source->file)
        snprintf(name, size, "%s, line %lld", source->file, (long long)source->line);
    else
        snprintf(name, size, "text %lld", (long long)number + 1);
    return name;
}

static int check_length(const scoring *s, const wg_score_source *source, int64_t number,
                        int64_t length) {
    char name[512];
    const int64_t positions = wg_model_sizes_of(s->model).positions;
    if (length == 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s: the text is empty",
                       name_text(source, number, name, sizeof name));
    if (length > positions - s->objective->score_frame)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s: the text has %lld tokens; the model takes %lld at most",
                       name_text(source, number, name, sizeof name), (long long)length,
                       (long long)(positions - s->objective->score_frame));
    return 0;
}

static int encode(scoring *s, const wg_score_source *sources) {
    int status = 0;
    for (int64_t i = 0; status == 0 && i < s->count; i++) {
        const int64_t before = s->tokens.count;
        status = wg_tokenizer_encode(s->tokenizer, sources[i].text, -1, NULL, &s->tokens);
        s->texts[i] = (scored_text){.count = s->tokens.count - before, .number = i};
        if (status == 0)
            status = check_length(s, &sources[i], i, s->texts[i].count);
    }
    const int32_t *ids = s->tokens.ids;
    for (int64_t i = 0; status == 0 && i < s->count; ids += s->texts[i++].count)
        s->texts[i].ids = ids;
    return status;
}

/* The longest first, equal ones beside each other. */
static int compare(const void *left, const void *right) {
    const scored_text *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    const int order = memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
    return order ? order : a->number < b->number ? -1 : 1;
}

static bool are_equal(const scored_text *a, const scored_text *b) {
    return a->count == b->count && memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids) == 0;
}

/* ---- Batches ---- */

/* Scores texts from number `first` on that have its length, as many different ones as a batch
 * takes. Gives the first that is not among them, or -1. */
static int64_t score_batch(scoring *s, int64_t first, wg_score *scores) {
    const int64_t length = s->texts[first].count;
    const int64_t most = wg__score_rows(&s->options, length);
    int64_t rows = 0, end = first;
    for (; end < s->count && s->texts[end].count == length; end++) {
        scored_text *text = &s->texts[end];
        if (end == first || !are_equal(text, text - 1)) {
            if (rows == most)
                break;
            memcpy(s->ids + rows * length, text->ids, (size_t)length * sizeof *s->ids);
            s->rows[rows++] = (wg_score){0};
        }
        text->row = rows - 1;
    }
    const wg_score_batch batch = {.count = rows, .length = length, .ids = s->ids};
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status = s->objective->score(s->model, s->tokenizer, &s->options, &batch, s->rows);
    wg_scope_end(&scope, NULL);
    for (int64_t i = first; status == 0 && i < end; i++)
        scores[s->texts[i].number] = s->rows[s->texts[i].row];
    return status == 0 ? end : -1;
}

static int score_all(scoring *s, wg_score *scores) {
    qsort(s->texts, (size_t)s->count, sizeof *s->texts, compare);
    const int64_t longest = s->count ? s->texts[0].count : 1;
    const int64_t most = wg__score_rows(&s->options, 1);
    s->ids = wg__alloc((size_t)(most > longest ? most : longest) * sizeof *s->ids);
    s->rows = wg__alloc((size_t)most * sizeof *s->rows);
    if (!s->ids || !s->rows)
        return -1;
    for (int64_t next = 0; next < s->count;) {
        next = score_batch(s, next, scores);
        if (next < 0)
            return is_stopped(&s->options) && !wg_error_pending() ? 1 : -1;
        if (s->options.listener)
            s->options.listener(next, s->count, s->options.context);
    }
    return 0;
}

/* ---- All of it ---- */

static int check(const scoring *s) {
    const int64_t tokens = wg_tokenizer_size(s->tokenizer);
    const int64_t vocabulary = wg_model_sizes_of(s->model).vocabulary;
    if (!s->objective->score)
        return wg_fail(WG_ERROR_STATE, WHERE, "%s does not score texts", s->objective->name);
    if (s->options.within_words && !s->objective->scores_within_words)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s masks no tokens: scoring within words is for models that do",
                       s->objective->name);
    if (s->options.batch_tokens < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld tokens; wanted 0 or more",
                       (long long)s->options.batch_tokens);
    if (tokens > vocabulary)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the tokenizer has %lld tokens; the model's vocabulary holds %lld",
                       (long long)tokens, (long long)vocabulary);
    return 0;
}

int wg_score_texts(const wg_objective *objective, const wg_model *model,
                   const wg_tokenizer *tokenizer, const wg_score_options *options, int64_t count,
                   const wg_score_source *texts, wg_score *scores) {
    scoring s = {.objective = objective, .model = model, .tokenizer = tokenizer, .count = count};
    if (options)
        s.options = *options;
    if (check(&s) < 0)
        return -1;
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(model->module);
    wg_module_train(model->module, false);
    s.texts = wg__alloc((size_t)(count + 1) * sizeof *s.texts);
    const int status = s.texts && encode(&s, texts) == 0 ? score_all(&s, scores) : -1;
    wg_module_train(model->module, training);
    wg_set_grad_enabled(recorded);
    wg_token_list_free(&s.tokens);
    wg__free(s.texts);
    wg__free(s.ids);
    wg__free(s.rows);
    return status;
}
