/* GPT-2's vocab.json and merges.txt. See bpe.h. */
#include <string.h>

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

/* ---- Reading ---- */

static int place_tokens(const json_t *object, const char **tokens, int64_t count,
                        const char *name) {
    const char *token;
    json_t *id;
    json_object_foreach((json_t *)object, token, id) {
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= count)
            return wg_fail(WG_ERROR_FORMAT, "bpe", "%s: the id of \"%.100s\" is not 0 to %lld",
                           name, token, (long long)count - 1);
        if (tokens[value])
            return wg_fail(WG_ERROR_FORMAT, "bpe", "%s: \"%.100s\" and \"%.100s\" are both %lld",
                           name, tokens[value], token, (long long)value);
        tokens[value] = token;
    }
    return 0;
}

const char **wg__tokens_by_id(const json_t *object, int64_t *count, const char *name) {
    *count = (int64_t)json_object_size(object);
    if (*count > INT32_MAX || *count == 0) {
        wg_fail(WG_ERROR_FORMAT, "bpe", "%s is no object of tokens and their ids", name);
        return NULL;
    }
    const char **tokens = wg__calloc((size_t)*count, sizeof *tokens);
    if (tokens && place_tokens(object, tokens, *count, name) < 0) {
        wg__free(tokens);
        return NULL;
    }
    return tokens;
}

/* The two ids of a line "left right". */
static int read_merge(char *line, const wg__strings *vocabulary, const char *name, int64_t number,
                      int32_t merge[2]) {
    char *blank = strchr(line, ' ');
    if (!blank || blank == line || blank[1] == '\0' || strchr(blank + 1, ' '))
        return wg_fail(WG_ERROR_FORMAT, "bpe",
                       "%s: line %lld is not two tokens with a space between", name,
                       (long long)number);
    const char *parts[] = {line, blank + 1};
    int64_t lengths[] = {blank - line, (int64_t)strlen(blank + 1)};
    for (int i = 0; i < 2; i++) {
        merge[i] = (int32_t)wg__strings_find(vocabulary, parts[i], lengths[i]);
        if (merge[i] < 0)
            return wg_fail(WG_ERROR_FORMAT, "bpe",
                           "%s: line %lld: the vocabulary has no token \"%.*s\"", name,
                           (long long)number, (int)(lengths[i] < 100 ? lengths[i] : 100), parts[i]);
    }
    return 0;
}

/* Reads all lines but the first, if that is "#version...", as pairs of ids. Returns how many. */
static int64_t read_merges(char *text, int64_t length, const wg__strings *vocabulary,
                           const char *name, int32_t (**merges)[2]) {
    int64_t count = 0, capacity = 0, number = 1;
    char *end = text + length;
    for (char *line = text; line < end; number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        char *next = stop + 1;
        if (stop > line && stop[-1] == '\r')
            stop--;
        *stop = '\0';
        if (!(number == 1 && strncmp(line, "#version", 8) == 0) && (stop > line || next < end)) {
            int32_t(*grown)[2] = wg__grow(*merges, count, &capacity, count + 1, sizeof *grown);
            if (!grown)
                return -1;
            *merges = grown;
            if (read_merge(line, vocabulary, name, number, grown[count]) < 0)
                return -1;
            count++;
        }
        line = next;
    }
    return count;
}

static int fill_vocabulary(wg__strings *vocabulary, int64_t count, const char *const *tokens) {
    for (int64_t i = 0; i < count; i++)
        if (wg__strings_add(vocabulary, tokens[i], (int64_t)strlen(tokens[i])) < 0)
            return -1;
    return 0;
}

wg_tokenizer *wg__bpe_read(const json_t *vocabulary, const char *vocabulary_name, char *merges,
                           int64_t length, const char *merges_name, const wg_bpe_options *options) {
    if (wg__utf8_check(merges, length, merges_name, "bpe") < 0)
        return NULL;
    if (memchr(merges, '\0', (size_t)length)) {
        wg_fail(WG_ERROR_FORMAT, "bpe", "%s has a NUL byte: no list of merges", merges_name);
        return NULL;
    }
    int64_t count, merge_count = -1;
    const char **tokens = wg__tokens_by_id(vocabulary, &count, vocabulary_name);
    wg__strings known = {0};
    int32_t(*list)[2] = NULL;
    if (tokens && fill_vocabulary(&known, count, tokens) == 0)
        merge_count = read_merges(merges, length, &known, merges_name, &list);
    wg__strings_clear(&known);
    wg_tokenizer *tokenizer = merge_count < 0 ? NULL
                                              : wg_bpe_new(count, tokens, merge_count,
                                                           (const int32_t(*)[2])list, options);
    wg__free(list);
    wg__free(tokens);
    return tokenizer;
}

wg_tokenizer *wg_bpe_load(const char *vocabulary_path, const char *merges_path,
                          const wg_bpe_options *options) {
    int64_t length, merges_length;
    char *bytes = wg__text_file_read(vocabulary_path, &length, "wg_bpe_load");
    json_t *vocabulary = bytes ? wg__tokenizer_parse_json(bytes, length, vocabulary_path) : NULL;
    wg__free(bytes);
    char *merges =
        vocabulary ? wg__text_file_read(merges_path, &merges_length, "wg_bpe_load") : NULL;
    wg_tokenizer *tokenizer = merges ? wg__bpe_read(vocabulary, vocabulary_path, merges,
                                                    merges_length, merges_path, options)
                                     : NULL;
    wg__free(merges);
    json_decref(vocabulary);
    return tokenizer;
}

/* ---- Writing ---- */

static int append_dump(const char *bytes, size_t size, void *context) {
    return wg__text_append(context, bytes, (int64_t)size);
}

static int dump_vocabulary(const wg_tokenizer *tokenizer, wg__text *text) {
    json_t *object = json_object();
    int status = object ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < tokenizer->vocabulary.count; i++)
        status = json_object_set_new(object, wg__strings_text(&tokenizer->vocabulary, i),
                                     json_integer(i));
    if (status == 0)
        status = json_dump_callback(object, append_dump, text, JSON_ENSURE_ASCII);
    json_decref(object);
    return status < 0 ? wg_fail(WG_ERROR_MEMORY, "wg_bpe_save", "no memory for JSON") : 0;
}

static int dump_merges(const wg__bpe *bpe, wg__text *text) {
    const wg__strings *vocabulary = &bpe->base.vocabulary;
    int status = wg__text_append(text, "#version: 0.2\n", 14);
    for (int64_t i = 0; status == 0 && i < 2 * bpe->merge_count; i++) {
        int32_t id = bpe->merge_list[i / 2][i % 2];
        status = wg__text_append(text, wg__strings_text(vocabulary, id),
                                 wg__strings_length(vocabulary, id));
        if (status == 0)
            status = wg__text_append(text, i % 2 ? "\n" : " ", 1);
    }
    return status;
}

int wg_bpe_save(const wg_tokenizer *tokenizer, const char *vocabulary_path,
                const char *merges_path) {
    if (!tokenizer)
        return -1;
    if (tokenizer->kind != &wg__bpe_kind)
        return wg_fail(WG_ERROR_ARGUMENT, "wg_bpe_save",
                       "a %s tokenizer has no vocab.json and merges.txt; wg_tokenizer_save writes "
                       "any kind",
                       tokenizer->kind->name);
    wg__text vocabulary = {0}, merges = {0};
    int status = dump_vocabulary(tokenizer, &vocabulary);
    if (status == 0)
        status = dump_merges((const wg__bpe *)tokenizer, &merges);
    if (status == 0)
        status = wg__text_file_write(vocabulary_path, vocabulary.bytes, vocabulary.length,
                                     "wg_bpe_save");
    if (status == 0)
        status = wg__text_file_write(merges_path, merges.bytes, merges.length, "wg_bpe_save");
    wg__free(vocabulary.bytes);
    wg__free(merges.bytes);
    return status;
}
