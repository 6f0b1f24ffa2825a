/* Clozes: see cloze.h. */
#include "objectives/cloze.h"

#include <jansson.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "data/tokenizer/text_file.h"
#include "io/checkpoint/checkpoint.h"
#include "objectives/blank_infilling.h"
#include "objectives/head.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "io/internal.h"

#define WHERE "cloze"

struct wg__cloze {
    wg_blank_tokens tokens;
    char *pattern;
    bool pairs;                 /* it has places for two texts */
    bool second_first;          /* {text_b} comes before {text_a} */
    wg_token_list stretches[3]; /* the pattern: [CLS] and the tokens before, between, after texts */
    wg__labelled_text_options reading;
    wg__labels labels;
    char **verbalizers;  /* one for each label */
    wg_token_list spans; /* the tokens of all verbalizers */
    int64_t *starts;     /* (labels + 1) the first token of each verbalizer, and the end */
};

/* The number of tokens of a verbalizer, without start and end. */
static int64_t verbalizer_count(const wg__cloze *cloze, int64_t label) {
    return cloze->starts[label + 1] - cloze->starts[label];
}

/* The places for texts: for the only text of a line; for its first and its second text. */
static const char *const places[] = {"{text}", "{text_a}", "{text_b}"};
enum { ONLY, FIRST, SECOND, PLACES };

static int check_pattern(wg__cloze *cloze) {
    const char *pattern = cloze->pattern;
    if (wg__utf8_check(pattern, (int64_t)strlen(pattern), "the pattern", WHERE) < 0)
        return -1;
    int count[PLACES];
    for (int i = 0; i < PLACES; i++) {
        count[i] = 0;
        for (const char *c = pattern; (c = strstr(c, places[i])) != NULL; c += strlen(places[i]))
            count[i]++;
    }
    cloze->pairs = count[ONLY] == 0;
    const bool good = cloze->pairs ? count[FIRST] == 1 && count[SECOND] == 1
                                   : count[ONLY] == 1 && count[FIRST] + count[SECOND] == 0;
    if (!good)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the pattern \"%.200s\" must have one place for the text, {text}, or one "
                       "for each of two, {text_a} and {text_b}",
                       pattern);
    const char *mask = wg__blank_find_mask(pattern);
    if (!mask || wg__blank_find_mask(mask + 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the pattern \"%.200s\" has %s; it must have one [MASK]", pattern,
                       mask ? "more than one blank" : "no blank");
    return 0;
}

/* True if the place or blank at `c` of the pattern includes the space before it. */
static bool takes_space(const wg__cloze *cloze, const wg_tokenizer *tokenizer, const char *c) {
    return c > cloze->pattern && c[-1] == ' ' && wg__spaces_begin_words(tokenizer);
}

/* Appends the tokens of the pattern from `begin` to `end`. */
static int encode_stretch(const wg__cloze *cloze, const wg_tokenizer *tokenizer, const char *begin,
                          const char *end, wg_token_list *list) {
    wg__text text = {0};
    const bool encoded =
        wg__text_append(&text, begin, end - begin) == 0 &&
        wg__blank_encode_stretch(&cloze->tokens, tokenizer, text.bytes, list) == 0;
    wg__free(text.bytes);
    return encoded ? 0 : -1;
}

static int encode_verbalizers(wg__cloze *cloze, const wg_tokenizer *tokenizer) {
    for (int64_t label = 0; label < cloze->labels.count; label++) {
        /* Appends the tokens that the verbalizer has in the blank of the pattern. */
        const char *text = cloze->verbalizers[label];
        wg__text whole = {0};
        const bool spaced =
            *text && takes_space(cloze, tokenizer, wg__blank_find_mask(cloze->pattern));
        const bool encoded =
            wg__utf8_check(text, (int64_t)strlen(text), "a verbalizer", WHERE) == 0 &&
            wg__text_append(&whole, " ", spaced) == 0 &&
            wg__text_append(&whole, text, (int64_t)strlen(text)) == 0 &&
            wg_tokenizer_encode(tokenizer, whole.bytes, whole.length, NULL, &cloze->spans) == 0;
        wg__free(whole.bytes);
        cloze->starts[label + 1] = cloze->spans.count;
        if (!encoded)
            return -1;
        char *const *names = cloze->labels.names, *const *texts = cloze->verbalizers;
        const int32_t unknown = wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN);
        const int32_t *ids = cloze->spans.ids + cloze->starts[label];
        const int64_t count = verbalizer_count(cloze, label);
        if (count == 0)
            return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the verbalizer of \"%.80s\" is empty",
                           names[label]);
        for (int64_t i = 0; i < count; i++)
            if (ids[i] == unknown)
                return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                               "the verbalizer \"%.80s\" of \"%.80s\" is not wholly known to the "
                               "tokenizer",
                               texts[label], names[label]);
        for (int64_t other = 0; other < label; other++)
            if (verbalizer_count(cloze, other) == count &&
                memcmp(cloze->spans.ids + cloze->starts[other], ids, (size_t)count * sizeof *ids) ==
                    0)
                return wg_fail(
                    WG_ERROR_ARGUMENT, WHERE,
                    "the verbalizers \"%.80s\" of \"%.80s\" and \"%.80s\" of \"%.80s\" are "
                    "the same tokens",
                    texts[other], names[other], texts[label], names[label]);
    }
    return 0;
}

static int make(wg__cloze *cloze, const wg_tokenizer *tokenizer, const char *pattern,
                const wg__labels *labels, const char *const *verbalizers) {
    cloze->pattern = wg__strdup(pattern);
    if (!cloze->pattern || wg__blank_tokens_of(tokenizer, &cloze->tokens) < 0 ||
        check_pattern(cloze) < 0)
        return -1;
    if (labels->count < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "verbalizers of %lld labels; a classification has two or more",
                       (long long)labels->count);
    if (wg__labels_copy(&cloze->labels, labels) < 0)
        return -1;
    wg__labels_sort(&cloze->labels);
    cloze->verbalizers = wg__calloc((size_t)labels->count, sizeof *cloze->verbalizers);
    cloze->starts = wg__calloc((size_t)labels->count + 1, sizeof *cloze->starts);
    if (!cloze->verbalizers || !cloze->starts)
        return -1;
    for (int64_t i = 0; i < labels->count; i++) {
        const int64_t place = wg__labels_find(&cloze->labels, labels->names[i]);
        if (!(cloze->verbalizers[place] = wg__strdup(verbalizers[i])))
            return -1;
    }
    const int texts = cloze->pairs ? 2 : 1;
    const char *found[2] = {strstr(cloze->pattern, places[cloze->pairs ? FIRST : ONLY]),
                            cloze->pairs ? strstr(cloze->pattern, places[SECOND]) : NULL};
    cloze->second_first = cloze->pairs && found[1] < found[0];
    if (wg_token_list_append(&cloze->stretches[0], cloze->tokens.beginning) < 0)
        return -1;
    const char *begin = cloze->pattern;
    for (int i = 0; i < texts; i++) {
        const int which = cloze->second_first ? 1 - i : i;
        const bool spaced = takes_space(cloze, tokenizer, found[which]);
        cloze->reading.before[which] = spaced ? " " : NULL;
        if (encode_stretch(cloze, tokenizer, begin, found[which] - spaced, &cloze->stretches[i]) <
            0)
            return -1;
        begin = strchr(found[which], '}') + 1;
    }
    if (encode_stretch(cloze, tokenizer, begin, begin + strlen(begin), &cloze->stretches[texts]) <
        0)
        return -1;
    return encode_verbalizers(cloze, tokenizer);
}

wg__cloze *wg__cloze_new(const wg_tokenizer *tokenizer, const char *pattern,
                         const wg__labels *labels, const char *const *verbalizers) {
    wg__cloze *cloze = wg__calloc(1, sizeof *cloze);
    if (cloze && make(cloze, tokenizer, pattern, labels, verbalizers) == 0)
        return cloze;
    wg__cloze_free(cloze);
    return NULL;
}

void wg__cloze_free(wg__cloze *cloze) {
    if (!cloze)
        return;
    for (int i = 0; i < 3; i++)
        wg_token_list_free(&cloze->stretches[i]);
    for (int64_t i = 0; cloze->verbalizers && i < cloze->labels.count; i++)
        wg__free(cloze->verbalizers[i]);
    wg__free(cloze->verbalizers);
    wg__free(cloze->starts);
    wg__free(cloze->pattern);
    wg_token_list_free(&cloze->spans);
    wg__labels_free(&cloze->labels);
    wg__free(cloze);
}

int64_t wg__cloze_longest(const wg__cloze *cloze) {
    int64_t longest = 0;
    for (int64_t label = 0; label < cloze->labels.count; label++)
        longest = wg__larger(longest, verbalizer_count(cloze, label) + 1);
    return longest;
}

char *wg__cloze_to_json(const wg__cloze *cloze) {
    json_t *verbalizers = json_object();
    for (int64_t i = 0; i < cloze->labels.count; i++)
        wg__json_put(&verbalizers, cloze->labels.names[i], json_string(cloze->verbalizers[i]));
    json_t *object = json_pack("{s:s, s:o}", "pattern", cloze->pattern, "verbalizers", verbalizers);
    char *text = object ? wg__json_text(object, "{\n  ", ",\n  ", "\n}\n") : NULL;
    if (!object)
        wg_fail(WG_ERROR_MEMORY, WHERE, "no memory to write it");
    json_decref(object);
    return text;
}

wg__cloze *wg__cloze_from_json(const char *json, const wg_tokenizer *tokenizer) {
    json_error_t error;
    json_t *object = json_loads(json, JSON_REJECT_DUPLICATES, &error), *text;
    const char *pattern = json_string_value(json_object_get(object, "pattern")), *label;
    json_t *texts = json_object_get(object, "verbalizers");
    if (!object)
        wg_fail(WG_ERROR_FORMAT, WHERE, "line %d: %s", error.line, error.text);
    else if (!pattern || !json_is_object(texts))
        wg_fail(WG_ERROR_FORMAT, WHERE, "wanted {\"pattern\": TEXT, \"verbalizers\": {...}}");
    wg__labels labels = {0};
    const char **verbalizers = wg__calloc(json_object_size(texts) + 1, sizeof *verbalizers);
    json_object_foreach(texts, label, text) {
        const int64_t place = verbalizers ? wg__labels_add(&labels, label) : -1;
        if (!json_is_string(text))
            wg_fail(WG_ERROR_FORMAT, WHERE, "the verbalizer of \"%.80s\" is no text", label);
        if (wg_error_pending())
            break;
        verbalizers[place] = json_string_value(text);
    }
    wg__cloze *cloze =
        wg_error_pending() ? NULL : wg__cloze_new(tokenizer, pattern, &labels, verbalizers);
    wg__free(verbalizers);
    wg__labels_free(&labels);
    json_decref(object);
    return cloze;
}

enum { MULTIPLE = 8 };

wg__labelled_text *wg__cloze_text_load(const wg__cloze *cloze, const char *path,
                                       const wg_tokenizer *tokenizer) {
    wg__labels labels;
    if (wg__labels_copy(&labels, &cloze->labels) < 0)
        return NULL;
    wg__labelled_text *text = wg__labelled_text_load(path, tokenizer, &labels, &cloze->reading);
    wg__labels_free(&labels);
    if (!text || (wg__labelled_text_pair(text, 0).second != NULL) == cloze->pairs)
        return text;
    wg__examples_free(&text->base);
    return wg__fail_null(
        WG_ERROR_ARGUMENT, WHERE, "%s has %s a line; the pattern \"%.200s\" takes %s", path,
        cloze->pairs ? "one text" : "two texts", cloze->pattern, cloze->pairs ? "two" : "one");
}

static int64_t pattern_tokens(const wg__cloze *cloze) {
    return cloze->stretches[0].count + cloze->stretches[1].count + cloze->stretches[2].count;
}

int wg__cloze_check_sequence(const wg__cloze *cloze, int64_t sequence) {
    const int64_t taken = pattern_tokens(cloze);
    if (taken + (cloze->pairs ? 2 : 1) <= sequence)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "the pattern takes %lld of the %lld tokens of a sequence: there is no room for "
                   "a text",
                   (long long)taken, (long long)sequence);
}

static void fill_row(const wg__cloze *cloze, const wg_token_pair *pair, int64_t b,
                     wg__blank_row *row, wg__cloze_batch *batch) {
    const int64_t length = wg_tensor_size(batch->mask, 3);
    const int32_t *texts[] = {pair->first, pair->second};
    const int64_t counts[] = {pair->first_count, pair->second_count};
    const int text_count = cloze->pairs ? 2 : 1;
    int64_t place = 0; /* of the pattern's mask; masks in texts do not count */
    for (int i = 0; i <= text_count; i++) {
        const wg_token_list *stretch = &cloze->stretches[i];
        for (int64_t k = 0; k < stretch->count; k++) {
            if (wg__blank_is_mask(&cloze->tokens, stretch->ids[k]))
                place = row->length;
            wg__blank_row_append(row, stretch->ids[k], row->length, 0);
        }
        const int which = cloze->second_first ? 1 - i : i;
        for (int64_t k = 0; i < text_count && k < counts[which]; k++)
            wg__blank_row_append(row, texts[which][k], row->length, 0);
    }
    ((int64_t *)wg_tensor_data(batch->blanks.part_a))[b] = row->length;
    /* Each token, padding too, sees Part A; a token of Part B also its span up to itself. */
    bool *mask = (bool *)wg_tensor_data(batch->mask) + b * length * length;
    for (int64_t i = 0; i < length; i++)
        for (int64_t j = 0; j < row->length; j++)
            mask[i * length + j] = true;
    int64_t first = row->length;
    for (int64_t label = 0; label < cloze->labels.count; label++) {
        const int64_t end = first + verbalizer_count(cloze, label) + 1;
        for (int64_t i = first; i < end; i++)
            for (int64_t j = first; j <= i; j++)
                mask[i * length + j] = true;
        first = end;
    }
    int64_t *verbalized =
        (int64_t *)wg_tensor_data(batch->verbalized) + b * wg_tensor_size(batch->verbalized, 1);
    for (int64_t label = 0; label < cloze->labels.count; label++)
        for (int64_t i = 0; i <= verbalizer_count(cloze, label); i++)
            *verbalized++ = label;
    for (int64_t label = 0; label < cloze->labels.count; label++)
        wg__blank_row_append_span(row, &cloze->tokens, place,
                                  cloze->spans.ids + cloze->starts[label],
                                  verbalizer_count(cloze, label), true);
    batch->blanks.tokens += row->length;
}

int wg__cloze_batch_read(const wg__cloze *cloze, const wg__labelled_text *text, int64_t sequence,
                         int64_t count, const int64_t *examples, wg__cloze_batch *batch) {
    *batch = (wg__cloze_batch){0};
    if (wg__cloze_check_sequence(cloze, sequence) < 0)
        return -1;
    const int64_t pattern = pattern_tokens(cloze);
    const int64_t targets = cloze->spans.count + cloze->labels.count; /* S; also tokens of Part B */
    int64_t longest = 0;
    for (int64_t b = 0; b < count; b++) {
        const wg_token_pair pair = wg__labelled_text_pair(text, examples[b]);
        const int64_t tokens = pair.first_count + (pair.second ? pair.second_count : 0);
        longest = wg__larger(longest, wg__smaller(pattern + tokens, sequence) + targets);
    }
    const int64_t length = (longest + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    batch->label_count = cloze->labels.count;
    batch->mask = wg_zeros(WG_BOOL, WG_DIMS(count, 1, length, length));
    batch->verbalized = wg_zeros(WG_I64, WG_DIMS(count, targets));
    batch->labels = wg_zeros(WG_I64, WG_DIMS(count));
    if (!batch->mask || !batch->verbalized || !batch->labels)
        return -1;
    if (wg__blank_batch_allocate(&cloze->tokens, count, length, count * targets, &batch->blanks) <
        0)
        return -1;
    wg__blank_row row = wg__blank_row_first(&batch->blanks);
    for (int64_t b = 0; b < count; b++, wg__blank_row_next(&row, &batch->blanks)) {
        const wg_token_pair whole = wg__labelled_text_pair(text, examples[b]);
        const wg_token_pair pair = wg__token_pair_cut(&whole, sequence - pattern);
        fill_row(cloze, &pair, b, &row, batch);
        ((int64_t *)wg_tensor_data(batch->labels))[b] = text->examples[examples[b]].label;
    }
    return 0;
}

static const wg_setting setting_rows[] = {
    {"pattern", WG_SETTING_TEXT, offsetof(wg_cloze_options, pattern), .fixed = true,
     .argument = "TEXT",
     .help = "cloze: what a text is put into, \"{text} It was [MASK] .\"; of two texts "
             "\"{text_a}\" and \"{text_b}\""},
    {"verbalizer", WG_SETTING_PAIRS, offsetof(wg_cloze_options, verbalizer), .fixed = true,
     .argument = "LABEL=TEXT",
     .help = "cloze: this word, or these, in the blank mean that label; once for each label"},
};

/* S: the targets of an example, over all labels. */
wg_tensor *wg__cloze_scores(const wg_model *model, const wg__cloze_batch *batch) {
    static const wg_cross_entropy_options each = {.reduction = WG_REDUCTION_NONE};
    const wg__blank_batch *blanks = &batch->blanks;
    const wg_model_inputs inputs = {.ids = blanks->input_ids,
                                    .position_ids = blanks->position_ids,
                                    .block_position_ids = blanks->block_position_ids,
                                    .mask = batch->mask,
                                    .output_positions = blanks->target_positions};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *hidden = wg_model_forward(model, &inputs);
    wg_tensor *logits = wg_model_logits(model, hidden, NULL); /* (B S, V) */
    wg_tensor *losses = wg_cross_entropy(logits, blanks->labels, WG_IGNORE_INDEX, &each);
    const int64_t examples = wg_tensor_size(batch->verbalized, 0);
    wg_tensor *none =
        wg_zeros(losses ? wg_tensor_dtype(losses) : WG_F32, WG_DIMS(examples, batch->label_count));
    wg_tensor *summed =
        wg_scatter_add(none, 1, batch->verbalized, wg_reshape(losses, WG_DIMS(examples, -1)));
    return wg_scope_end(&scope, wg_neg(summed));
}

static char *config(const wg_training *t) {
    char *sizes = wg_model_config_json(t->setup.model),
         *json = wg__cloze_to_json(((const wg__head_run *)t->context)->own);
    wg_config *object = sizes ? wg__config_parse(sizes, "config") : NULL;
    wg_config *part = json ? wg__config_parse(json, "cloze") : NULL;
    char *text = object && part && wg__config_set_part(object, "cloze", part) == 0
                     ? wg__config_to_json(object)
                     : NULL;
    wg__config_free(part);
    wg__config_free(object);
    wg_text_free(json);
    wg_text_free(sizes);
    return text;
}

static wg__cloze *read_cloze(const char *path, const wg_tokenizer *tokenizer) {
    static const char *const key[] = {"cloze"};
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *saved = file ? wg_checkpoint_get_text(file, "/config") : NULL;
    wg_config *object = saved ? wg__config_parse(saved, "/config") : NULL;
    wg_config *part =
        object && wg__config_require(object, 1, key) == 0 ? wg__config_part(object, key[0]) : NULL;
    char *json = part ? wg__config_to_json(part) : NULL;
    wg__cloze *cloze = json ? wg__cloze_from_json(json, tokenizer) : NULL;
    wg_text_free(json);
    wg__config_free(part);
    wg__config_free(object);
    wg_text_free(saved);
    wg_checkpoint_close(file);
    return cloze;
}

/* The cloze of the options' pattern and verbalizers. */
static wg__cloze *new_cloze(const wg_cloze_options *options, const wg_tokenizer *tokenizer) {
    const wg_setting_list *pairs = &options->verbalizer;
    wg__labels labels = {0};
    const char **texts = wg__calloc((size_t)pairs->count + 1, sizeof *texts);
    int64_t place = texts ? 0 : -1;
    for (int64_t i = 0; place >= 0 && i < pairs->count; i++) {
        const char *middle = strchr(pairs->items[i], '=');
        char label[1024];
        snprintf(label, sizeof label, "%.*s", (int)(middle - pairs->items[i]), pairs->items[i]);
        place = wg__labels_add(&labels, label);
        if (place >= 0)
            texts[place] = middle + 1;
    }
    wg__cloze *cloze =
        place < 0 ? NULL : wg__cloze_new(tokenizer, options->pattern, &labels, texts);
    wg__free(texts);
    wg__labels_free(&labels);
    return cloze;
}

/* Dropout starts from the seed of this run; it does not continue the pretraining run's numbers. */
static int adapt(const wg_objective *objective, const wg_training_setup *setup,
                 void (*note)(const char *message, void *context), void *note_context,
                 wg_model *model, wg_tokenizer **tokenizer) {
    (void)objective, (void)note, (void)note_context;
    if (wg_model_load(setup->checkpoint, model, tokenizer) < 0)
        return -1;
    model->module->generator = (wg_generator){.seed = setup->seed};
    return 0;
}

static wg__examples *read_text(wg__head_kind kind, const wg_training_setup *setup, const void *own,
                               const char *path, const wg_tokenizer *tokenizer,
                               wg__labels *labels) {
    (void)kind, (void)setup, (void)labels;
    return (wg__examples *)wg__cloze_text_load(own, path, tokenizer);
}

typedef struct cloze_batch {
    wg__example_batch base; /* its labels and tokens alone */
    wg__cloze_batch cloze;
} cloze_batch;

static int read_batch(const wg_training *t, const wg__examples *examples, int64_t count,
                      wg__example_batch *base) {
    cloze_batch *batch = (cloze_batch *)base;
    const wg__head_run *run = t->context;
    if (wg__cloze_batch_read(run->own, (const wg__labelled_text *)examples, t->setup.sequence,
                             count, run->chosen, &batch->cloze) < 0)
        return -1;
    *base = (wg__example_batch){.inputs.tokens = batch->cloze.blanks.tokens,
                                .targets = {batch->cloze.labels}};
    return 0;
}

static int score(const wg_training *t, const wg__example_batch *batch, wg_tensor *outputs[2]) {
    outputs[0] = wg__cloze_scores(t->setup.model, &((const cloze_batch *)batch)->cloze);
    return outputs[0] ? 0 : -1;
}

static int begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    wg__cloze *cloze = setup->checkpoint ? read_cloze(setup->checkpoint, setup->tokenizer)
                                         : new_cloze(setup->options, setup->tokenizer);
    const int64_t positions = wg_model_sizes_of(setup->model).positions;
    wg_blank_tokens tokens;
    if (cloze && wg__cloze_longest(cloze) > positions)
        wg_fail(WG_ERROR_ARGUMENT, WHERE,
                "a verbalizer of %lld tokens, its start among them, is too long; the model has "
                "%lld positions",
                (long long)wg__cloze_longest(cloze), (long long)positions);
    const bool begun = cloze && !wg_error_pending() &&
                       wg__blank_tokens_of(setup->tokenizer, &tokens) == 0 &&
                       wg__blank_check_model(WHERE, setup->model, &tokens) == 0 &&
                       wg__cloze_check_sequence(cloze, setup->sequence) == 0 &&
                       wg__head_begin_as(t, cloze, &cloze->labels) == 0;
    if (!t->context)
        wg__cloze_free(cloze);
    return begun ? 0 : -1;
}

static void end(wg_training *t) {
    if (t->context)
        wg__cloze_free(((const wg__head_run *)t->context)->own);
    wg__head_end(t);
}

const wg_objective wg_cloze_objective = {
    .name = "cloze",
    .title = "labels texts by what fits the blank of a pattern (Schick & Schuetze 2021)",
    .shapes = WG_PREFIX_DECODER,
    .finetunes = true,
    .marks = {"cloze"},
    .settings = WG__SETTING_TABLE(wg_cloze_options, setting_rows),
    .defaults = WG__HEAD_DEFAULTS,
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {WG__BATCH_OF(cloze_batch, base.inputs.tokens), .describe = wg__label_describe},
    .training = &(const wg_objective_training){.adapt = adapt,
                                               .config = config,
                                               .begin = begin,
                                               .end = end,
                                               .loss = wg__head_loss,
                                               .evaluate = wg__head_evaluate},
    .head =
        &(const wg__head_task){
            .read = read_text, .batch = read_batch, .outputs = score, WG__LABEL_TASK},
    .metrics = wg__label_metrics,
    .headline = "accuracy",
    .print = wg__label_print,
};
