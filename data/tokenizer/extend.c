/* Extends a vocabulary by merges of new texts: see tokenizer.h. */
#include <assert.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/sentencepiece.h"

#define WHERE "extend"
enum { LEAST_FREQUENCY = 2 };

typedef struct extender {
    wg__merge_training words; /* the first member: split_word casts it to the extender */
    const wg_tokenizer *tokenizer;
    wg__token_sink sink; /* scratch: the tokens of a word */
} extender;

static int add_text(void *context, const char *text, int64_t length) {
    extender *e = context;
    return e->tokenizer->kind->count_words(e->tokenizer, text, length, &e->words);
}

/* Encodes a word: the initial pieces are the vocabulary, so their numbers are ids. After a failure
 * the pending error ends the training. */
static int32_t split_word(const wg__merge_training *words, const char *word, int64_t length,
                          int32_t *symbols) {
    extender *e = (extender *)words;
    wg_token_list *list = &e->sink.list;
    const wg__tokenizer_kind *kind = e->tokenizer->kind;
    list->count = 0;
    if ((kind->encode_word ? kind->encode_word(e->tokenizer, word, length, &e->sink)
                           : kind->encode(e->tokenizer, word, length, false, &e->sink)) < 0 ||
        list->count > length)
        return 0;
    for (int64_t i = 0; i < list->count; i++) {
        if (wg__tokenizer_is_special(e->tokenizer, list->ids[i]))
            return 0;
        symbols[i] = list->ids[i];
    }
    return (int32_t)list->count;
}

static int learn(extender *e, const wg__texts *texts, int64_t most) {
    const wg__strings *vocabulary = &e->tokenizer->vocabulary;
    if (wg__each_text(texts, WHERE, add_text, e) < 0)
        return -1;
    for (int64_t i = 0; i < vocabulary->count; i++)
        if (wg__strings_add(&e->words.pieces, wg__strings_text(vocabulary, i),
                            wg__strings_length(vocabulary, i)) < 0)
            return -1;
    e->words.most_pieces = vocabulary->count + most;
    e->words.min_frequency = LEAST_FREQUENCY;
    e->words.most_characters =
        e->tokenizer->kind == &wg__sentencepiece_kind ? WG__PIECE_LONGEST : 0;
    e->words.prefix = e->tokenizer->kind == &wg__wordpiece_kind ? 2 : 0; /* ## */
    if (wg__learn_merges(&e->words, split_word) < 0 || wg_error_pending())
        return -1;
    if (e->words.pieces.count == vocabulary->count)
        return wg_fail(
            WG_ERROR_FORMAT, WHERE,
            "no two neighbouring tokens of the text occur twice in its words, so there is "
            "nothing to add to the vocabulary");
    return 0;
}

/* Appends the old tokens that make a token. The list may move as it grows, so this reads the pieces
 * of new tokens from the list by index. */
static int append_pieces(const wg_vocabulary_extension *x, int64_t old_size, int32_t id,
                         wg_token_list *pieces) {
    if (id < old_size)
        return wg_token_list_append(pieces, id);
    assert(pieces->ids); /* the list has the pieces of earlier new tokens */
    for (int64_t i = x->starts[id - old_size]; i < x->starts[id - old_size + 1]; i++)
        if (wg_token_list_append(pieces, pieces->ids[i]) < 0)
            return -1;
    return 0;
}

/* Lists the pieces of the new tokens, in the order of training. Skips merges that made an existing
 * token. */
static int list_pieces(const extender *e, wg_vocabulary_extension *x) {
    const wg__merge_training *t = &e->words;
    const int64_t old_size = e->tokenizer->vocabulary.count;
    wg_token_list pieces = {0};
    x->starts = wg__calloc((size_t)(t->pieces.count - old_size) + 1, sizeof *x->starts);
    int status = x->starts ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < t->merge_count; i++) {
        const int32_t left = t->merges[i][0], right = t->merges[i][1];
        const int64_t next = old_size + x->count;
        if (next == t->pieces.count)
            break;
        const char *token = wg__strings_text(&t->pieces, next);
        const char *head = wg__strings_text(&t->pieces, left);
        const char *tail = wg__strings_text(&t->pieces, right) + t->prefix;
        const size_t length = strlen(head);
        if (strncmp(token, head, length) != 0 || strcmp(token + length, tail) != 0)
            continue;
        status = append_pieces(x, old_size, left, &pieces) < 0 ||
                         append_pieces(x, old_size, right, &pieces) < 0
                     ? -1
                     : 0;
        x->starts[++x->count] = pieces.count;
    }
    x->pieces = pieces.ids;
    return status;
}

/* Adds the new tokens, and the merges if the kind has a list of merges, to the tokenizer's JSON. */
static int extend_json(const extender *e, json_t *root) {
    const wg__merge_training *t = &e->words;
    const wg__tokenizer_kind *kind = e->tokenizer->kind;
    json_t *vocabulary = json_object_get(root, "vocabulary");
    json_t *options = json_object_get(root, "options");
    json_t *merges = json_object_get(options, "merges");
    int status = kind->extend_options ? kind->extend_options(e->tokenizer, t, options) : 0;
    if (json_is_false(json_object_get(options, "by_merges")))
        merges = NULL;
    for (int64_t i = e->tokenizer->vocabulary.count; i < t->pieces.count; i++)
        status |= json_array_append_new(vocabulary, json_string(wg__strings_text(&t->pieces, i)));
    for (int64_t i = 0; merges && i < t->merge_count; i++)
        for (int side = 0; side < 2; side++)
            status |= json_array_append_new(merges, json_integer(t->merges[i][side]));
    return status == 0 ? 0 : wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for the new tokens");
}

int wg_tokenizer_extend(const wg_tokenizer *tokenizer, int count, const char *const *paths,
                        int64_t most, wg_vocabulary_extension *extension) {
    *extension = (wg_vocabulary_extension){0};
    if (!tokenizer)
        return -1;
    if (!tokenizer->kind->count_words)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the vocabulary of a %s tokenizer cannot be extended; wordpiece, bpe and "
                       "sentencepiece can",
                       tokenizer->kind->name);
    if (most < 1 || most > INT32_MAX - tokenizer->vocabulary.count)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%lld new tokens; wanted 1 or more, and at most 2^31 - 1 tokens in all",
                       (long long)most);
    extender e = {.tokenizer = tokenizer};
    if (learn(&e, &(wg__texts){.count = count, .paths = paths}, most) == 0 &&
        list_pieces(&e, extension) == 0) {
        char *text = wg_tokenizer_to_json(tokenizer);
        json_t *root = text ? wg__json_parse(text, (int64_t)strlen(text), WHERE) : NULL;
        wg_text_free(text);
        if (root && extend_json(&e, root) == 0)
            extension->tokenizer = wg__tokenizer_of_json(root);
        json_decref(root);
    }
    wg__merge_training_clear(&e.words);
    wg_token_list_free(&e.sink.list);
    if (extension->tokenizer)
        return 0;
    wg_vocabulary_extension_clear(extension);
    return -1;
}

void wg_vocabulary_extension_clear(wg_vocabulary_extension *extension) {
    wg_tokenizer_free(extension->tokenizer);
    wg__free(extension->starts);
    wg__free(extension->pieces);
    *extension = (wg_vocabulary_extension){0};
}
