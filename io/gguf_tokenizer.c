/* LLaMA's tokenizer in GGUF ("llama": pieces with scores and types, spaces as U+2581), out of and
 * into the JSON that data/tokenizer/tokenizer.h describes; gguf_bpe.c has the other kind. */
#include <string.h>

#include "io/gguf.h"
#include "base/json.h"
#include "tensor/internal.h"

/* Types of pieces, the same in tokenizer.model. */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

enum { FIRST_BYTE = 3, AFTER_BYTES = FIRST_BYTE + 256 };

static const char space_mark[] = "\xe2\x96\x81"; /* U+2581 */

/* Appends `text` with every `from` as `to`. */
static int replace(wg__buffer *out, const char *text, const char *from, const char *to) {
    const char *found;
    int status = 0;
    while (status == 0 && (found = strstr(text, from))) {
        status = wg__buffer_add(out, text, found - text);
        if (status == 0)
            status = wg__buffer_add(out, to, (int64_t)strlen(to));
        text = found + strlen(from);
    }
    return status < 0 ? -1 : wg__buffer_add(out, text, (int64_t)strlen(text));
}

/* ---- Writing ---- */

typedef struct pieces {
    const json_t *tokens, *scores, *types; /* types NULL: as llama2.c has them */
    int64_t count;
    bool plain_spaces;
} pieces;

static bool find_pieces(const json_t *root, pieces *p) {
    const char *kind = json_string_value(json_object_get(root, "kind"));
    const json_t *options = json_object_get(root, "options");
    const bool is_llama2c = kind && strcmp(kind, "llama2c") == 0;
    const bool is_bpe = kind && strcmp(kind, "sentencepiece") == 0 &&
                        !json_is_true(json_object_get(options, "unigram")) &&
                        !json_is_true(json_object_get(options, "by_merges"));
    if (!is_llama2c && !is_bpe)
        return false;
    p->tokens = json_object_get(root, "vocabulary");
    p->scores = json_object_get(options, "scores");
    p->types = is_bpe ? json_object_get(options, "types") : NULL;
    p->count = (int64_t)json_array_size(p->tokens);
    p->plain_spaces = is_llama2c || json_is_true(json_object_get(options, "plain_spaces"));
    return p->count > 0 && (int64_t)json_array_size(p->scores) == p->count &&
           (!is_bpe || (int64_t)json_array_size(p->types) == p->count);
}

static uint32_t type_of(const pieces *p, int64_t id) {
    if (id >= p->count)
        return UNUSED;
    if (p->types)
        return (uint32_t)json_integer_value(json_array_get(p->types, (size_t)id));
    if (id < FIRST_BYTE)
        return id == 0 ? UNKNOWN : CONTROL;
    return id < AFTER_BYTES ? BYTE : NORMAL;
}

/* llama2.c writes the control pieces with lines around them. */
static int add_token(wg__buffer *header, const pieces *p, int64_t id) {
    static const char *const controls[] = {"<unk>", "<s>", "</s>"};
    char padding[32];
    const char *text = padding;
    if (id >= p->count)
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)id);
    else if (!p->types && id < FIRST_BYTE)
        text = controls[id];
    else
        text = json_string_value(json_array_get(p->tokens, (size_t)id));
    if (!text)
        return wg_fail(WG_ERROR_FORMAT, "gguf", "token %lld of the tokenizer is no text",
                       (long long)id);
    wg__buffer marked = {0};
    int status = p->plain_spaces && type_of(p, id) == NORMAL
                     ? replace(&marked, text, " ", space_mark)
                     : wg__buffer_add(&marked, text, (int64_t)strlen(text));
    if (status == 0)
        status = wg__gguf_add_string(header, marked.bytes, (size_t)marked.count);
    wg__buffer_free(&marked);
    return status;
}

static int put_pieces(wg__buffer *header, const pieces *p, int64_t vocabulary) {
    const uint64_t count = (uint64_t)vocabulary;
    wg__gguf_put_text(header, "tokenizer.ggml.model", "llama");
    wg__gguf_put_array(header, "tokenizer.ggml.tokens", WG__GGUF_STRING, count);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++)
        add_token(header, p, i);
    wg__gguf_put_array(header, "tokenizer.ggml.scores", WG__GGUF_F32, count);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++)
        wg__gguf_add_f32(
            header, i < p->count ? json_number_value(json_array_get(p->scores, (size_t)i)) : -1e6);
    wg__gguf_put_array(header, "tokenizer.ggml.token_type", WG__GGUF_I32, count);
    for (int64_t i = 0; i < vocabulary && !wg_error_pending(); i++)
        wg__gguf_add_u32(header, type_of(p, i));
    wg__gguf_put_u32(header, "tokenizer.ggml.unknown_token_id", 0);
    wg__gguf_put_bool(header, "tokenizer.ggml.add_bos_token", true);
    wg__gguf_put_bool(header, "tokenizer.ggml.add_space_prefix", true);
    return wg_error_pending() ? -1 : 0;
}

static int put_root(wg__buffer *header, const json_t *root, int64_t vocabulary, int *keys) {
    pieces p;
    if (wg__gguf_is_bpe(root) &&
        (int64_t)json_array_size(json_object_get(root, "vocabulary")) <= vocabulary)
        return wg__gguf_put_bpe(header, root, vocabulary, keys);
    if (find_pieces(root, &p) && p.count <= vocabulary) {
        *keys += 7;
        return put_pieces(header, &p, vocabulary);
    }
    ++*keys;
    return wg__gguf_put_text(header, "tokenizer.ggml.model", "none");
}

int wg__gguf_put_tokenizer(wg__buffer *header, const char *json, int64_t vocabulary, int *keys) {
    json_error_t error;
    json_t *root = json ? json_loads(json, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (json && !root)
        return wg_fail(WG_ERROR_FORMAT, "gguf", "the tokenizer is no JSON: %s", error.text);
    const int status = put_root(header, root, vocabulary, keys);
    json_decref(root);
    return status;
}

bool wg__gguf_keeps_tokenizer(const char *json) {
    pieces p;
    json_t *root = json ? json_loads(json, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const bool keeps = root && (wg__gguf_is_bpe(root) || find_pieces(root, &p));
    json_decref(root);
    return keeps;
}

/* ---- Reading ---- */

/* The lists of a tokenizer that is laid out as LLaMA's: <unk>, <s>, </s>, the bytes, the pieces. */
static bool is_as_llama(const json_t *metadata) {
    const char *model = json_string_value(json_object_get(metadata, "tokenizer.ggml.model"));
    const json_t *tokens = json_object_get(metadata, "tokenizer.ggml.tokens"),
                 *scores = json_object_get(metadata, "tokenizer.ggml.scores"),
                 *types = json_object_get(metadata, "tokenizer.ggml.token_type");
    const size_t count = json_array_size(tokens);
    if (!model || strcmp(model, "llama") != 0 || count < AFTER_BYTES ||
        json_array_size(scores) != count || json_array_size(types) != count)
        return false;
    const pieces p = {.count = (int64_t)count};
    for (size_t i = 0; i < count; i++) {
        const json_int_t type = json_integer_value(json_array_get(types, i));
        const bool padded = i >= AFTER_BYTES && type == UNUSED;
        if (!json_is_string(json_array_get(tokens, i)) ||
            !json_is_number(json_array_get(scores, i)) ||
            (type != type_of(&p, (int64_t)i) && !padded))
            return false;
    }
    return true;
}

static json_t *token_of(const json_t *metadata, size_t id) {
    static const char *const controls[] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    if (id < FIRST_BYTE)
        return json_string(controls[id]);
    wg__buffer plain = {0};
    const json_t *token = json_array_get(json_object_get(metadata, "tokenizer.ggml.tokens"), id);
    json_t *text = NULL;
    if (replace(&plain, json_string_value(token), space_mark, " ") == 0)
        text = json_stringn(plain.bytes, (size_t)plain.count);
    wg__buffer_free(&plain);
    return text;
}

/* What pads the table up to the model's vocabulary is no token of the tokenizer. */
static size_t count_tokens(const json_t *metadata) {
    const json_t *types = json_object_get(metadata, "tokenizer.ggml.token_type");
    size_t count = json_array_size(types);
    while (json_integer_value(json_array_get(types, count - 1)) == UNUSED)
        count--;
    return count;
}

static json_t *tokenizer_of(const json_t *metadata) {
    const size_t count = count_tokens(metadata);
    json_t *tokens = json_array(), *scores = json_array(), *added = json_array();
    static const char *const specials[] = {"<unk>", "<s>", "</s>"};
    for (size_t i = 0; i < count; i++) {
        const json_t *score = json_array_get(json_object_get(metadata, "tokenizer.ggml.scores"), i);
        json_array_append_new(tokens, token_of(metadata, i));
        json_array_append_new(scores, json_real(json_number_value(score)));
    }
    for (int i = 0; i < FIRST_BYTE; i++)
        json_array_append_new(added,
                              json_pack("{s:i, s:s, s:b, s:b, s:b}", "id", i, "text", specials[i],
                                        "special", 1, "strip_left", 0, "strip_right", 0));
    return json_pack("{s:s, s:s, s:{s:o}, s:{s:i, s:i, s:i}, s:o, s:o}", "format",
                     "wengert-tokenizer", "kind", "llama2c", "options", "scores", scores, "special",
                     "unknown", 0, "begin", 1, "end", 2, "added", added, "vocabulary", tokens);
}

int wg__gguf_take_tokenizer(const json_t *metadata, char **json) {
    *json = NULL;
    const char *model = json_string_value(json_object_get(metadata, "tokenizer.ggml.model"));
    json_t *root = model && strcmp(model, "gpt2") == 0 ? wg__gguf_bpe_of(metadata)
                   : is_as_llama(metadata)             ? tokenizer_of(metadata)
                                                       : NULL;
    if (!root)
        return wg_error_pending() ? -1 : 0;
    *json = wg__json_text(root, "{", ", ", "}\n");
    json_decref(root);
    return *json ? 0 : -1;
}
