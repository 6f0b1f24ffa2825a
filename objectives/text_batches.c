/* Texts in batches: their tokens, sorted so that texts of one length make a batch.
 *
 *     texts    b d   a   c e f   b d   a c        encoded
 *     sorted   c e f | a c   b d   b d | a        the longest first, equal ones beside each other
 *     batches  c e f   a c   b d         a        of one length, so without padding
 *
 * Equal texts are one row of a batch, so their results have the same bits. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/text_file.h"
#include "objectives/internal.h"
#include "tensor/internal.h"

#include "base/array.h"
#include "base/internal.h"

enum { USUAL_BATCH_TOKENS = 4096 };

int64_t wg__texts_in_batch(int64_t batch_tokens, int64_t length) {
    const int64_t tokens = batch_tokens ? batch_tokens : USUAL_BATCH_TOKENS;
    return tokens > length ? tokens / length : 1;
}

/* ---- Texts ---- */

typedef struct placed_text {
    const int32_t *ids;
    int64_t count;
    int64_t number; /* among the texts that were given */
    int64_t row;    /* of its batch */
} placed_text;

typedef struct batching {
    const wg__text_job *job;
    wg_token_list tokens; /* of all texts */
    placed_text *texts;
    int64_t count;
    int *owners;  /* (count) the ranks that run the texts, in the order in which they were given */
    int32_t *ids; /* of a batch */
    char *rows;   /* the results of a batch */
} batching;

/* "words.txt, line 3", or "text 3". */
static const char *name_text(const wg_text_source *source, int64_t number, char *name,
                             size_t size) {
    if (source->file)
        snprintf(name, size, "%s, line %lld", source->file, (long long)source->line);
    else
        snprintf(name, size, "text %lld", (long long)number + 1);
    return name;
}

static int check_utf8(const wg__text_job *job, const wg_text_source *source, int64_t number) {
    char name[512];
    const int64_t invalid = wg__utf8_invalid(source->text, (int64_t)strlen(source->text));
    if (invalid >= 0)
        return wg_fail(WG_ERROR_FORMAT, job->where, "%s: the text is not UTF-8 at byte %lld",
                       name_text(source, number, name, sizeof name), (long long)invalid);
    return 0;
}

static int check_length(const wg__text_job *job, const wg_text_source *source, int64_t number,
                        int64_t length) {
    char name[512];
    const int64_t most = wg_model_sizes_of(job->model).positions - job->frame;
    if (length == 0)
        return wg_fail(WG_ERROR_ARGUMENT, job->where, "%s: the text is empty",
                       name_text(source, number, name, sizeof name));
    if (length > most)
        return wg_fail(WG_ERROR_ARGUMENT, job->where,
                       "%s: the text has %lld tokens; the model takes %lld at most",
                       name_text(source, number, name, sizeof name), (long long)length,
                       (long long)most);
    return 0;
}

static int encode(batching *b, const wg_text_source *sources) {
    const wg__text_job *job = b->job;
    int status = 0;
    for (int64_t i = 0; status == 0 && i < b->count; i++) {
        const int64_t before = b->tokens.count;
        status = check_utf8(job, &sources[i], i);
        if (status == 0)
            status = wg_tokenizer_encode(job->tokenizer, sources[i].text, -1, NULL, &b->tokens);
        b->texts[i] = (placed_text){.count = b->tokens.count - before, .number = i};
        if (status == 0)
            status = check_length(job, &sources[i], i, b->texts[i].count);
    }
    const int32_t *ids = b->tokens.ids;
    for (int64_t i = 0; status == 0 && i < b->count; ids += b->texts[i++].count)
        b->texts[i].ids = ids;
    return status;
}

/* The longest first, equal ones beside each other. */
static int compare(const void *left, const void *right) {
    const placed_text *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    const int order = memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
    return order ? order : a->number < b->number ? -1 : 1;
}

static bool are_equal(const placed_text *a, const placed_text *b) {
    return a->count == b->count && memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids) == 0;
}

/* ---- Batches ---- */

/* Runs texts from number `first` on that have its length, as many different ones as a batch takes,
 * if `owner` is this rank. Gives the first that is not among them, or -1. */
static int64_t run_batch(batching *b, int64_t first, int owner, char *results) {
    const wg__text_job *job = b->job;
    const int64_t length = b->texts[first].count,
                  most = wg__texts_in_batch(job->batch_tokens, length);
    const size_t size = job->result_size;
    int64_t rows = 0, end = first;
    for (; end < b->count && b->texts[end].count == length; end++) {
        placed_text *text = &b->texts[end];
        if (end == first || !are_equal(text, text - 1)) {
            if (rows == most)
                break;
            memcpy(b->ids + rows++ * length, text->ids, (size_t)length * sizeof *b->ids);
        }
        text->row = rows - 1;
        b->owners[text->number] = owner;
    }
    if (owner != wg_group_rank(job->group))
        return end;
    memset(b->rows, 0, (size_t)rows * size);
    const wg_text_batch batch = {.count = rows, .length = length, .ids = b->ids};
    wg_scope scope;
    wg_scope_begin(&scope);
    const int status = job->run(job->context, &batch, b->rows);
    wg_scope_end(&scope, NULL);
    for (int64_t i = first; status == 0 && i < end; i++)
        memcpy(results + (size_t)b->texts[i].number * size,
               b->rows + (size_t)b->texts[i].row * size, size);
    return status == 0 ? end : -1;
}

static int run_all(batching *b, char *results) {
    const wg__text_job *job = b->job;
    qsort(b->texts, (size_t)b->count, sizeof *b->texts, compare);
    const int64_t longest = b->count ? b->texts[0].count : 1;
    const int64_t most = wg__texts_in_batch(job->batch_tokens, 1);
    b->ids = wg__alloc_array(most > longest ? most : longest, sizeof *b->ids);
    b->rows = wg__alloc_array(most, job->result_size);
    b->owners = wg__alloc_array(b->count + 1, sizeof *b->owners);
    if (!b->ids || !b->rows || !b->owners)
        return -1;
    int64_t next = 0;
    for (int owner = 0; next < b->count; owner = (owner + 1) % wg_group_size(job->group)) {
        if (job->stop && *job->stop)
            return 1;
        next = run_batch(b, next, owner, results);
        if (next < 0)
            return job->stop && *job->stop && !wg_error_pending() ? 1 : -1;
        if (job->listener)
            job->listener(next, b->count, job->listener_context);
    }
    return 0;
}

/* Gives all ranks the results of each. 1 if any of them was stopped. */
static int share_results(const batching *b, int status, char *results) {
    wg_group *group = b->job->group;
    double stopped = status > 0;
    if (wg_group_check(group, status < 0 ? -1 : 0) < 0 ||
        wg__group_max(group, WG_GROUP_F64, 1, &stopped) < 0)
        return -1;
    return stopped > 0
               ? 1
               : wg__group_collect(group, b->count, b->job->result_size, b->owners, results);
}

int wg__run_texts(const wg__text_job *job, int64_t count, const wg_text_source *texts,
                  void *results) {
    batching b = {.job = job, .count = count};
    const int64_t tokens = wg_tokenizer_size(job->tokenizer);
    const int64_t vocabulary = wg_model_sizes_of(job->model).vocabulary;
    if (tokens > vocabulary)
        return wg_fail(WG_ERROR_ARGUMENT, job->where,
                       "the tokenizer has %lld tokens; the model's vocabulary holds %lld",
                       (long long)tokens, (long long)vocabulary);
    const bool recorded = wg_set_grad_enabled(false);
    wg_module *module = job->model->module;
    const bool training = wg_module_is_training(module);
    wg_module_train(module, false);
    b.texts = wg__alloc_array(count + 1, sizeof *b.texts);
    int status = b.texts && encode(&b, texts) == 0 ? run_all(&b, results) : -1;
    status = share_results(&b, status, results);
    wg_module_train(module, training);
    wg_set_grad_enabled(recorded);
    wg_token_list_free(&b.tokens);
    wg__free(b.texts);
    wg__free(b.ids);
    wg__free(b.rows);
    wg__free(b.owners);
    return status;
}
