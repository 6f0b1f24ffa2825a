/* What a token file says about itself: see token_about.h. */
#include "data/dataset/token_about.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "io/checkpoint/file.h"
#include "tensor/internal.h"

#define WHERE "token_file"
#define FORMAT_NAME "wengert tokens"
enum { VERSION = 1 };

/* Of documents or bytes in a text, so that sums do not overflow. */
#define MOST (INT64_C(1) << 44)

/* ---- Writing ---- */

static json_t *source_to_json(const wg__token_source *s) {
    return json_pack("{s:s, s:I, s:I, s:[I, I], s:[I, I]}", "path", s->path, "bytes",
                     (json_int_t)s->bytes, "modified", (json_int_t)s->modified, "documents",
                     (json_int_t)s->documents[0], (json_int_t)s->documents[1], "text_bytes",
                     (json_int_t)s->text_bytes[0], (json_int_t)s->text_bytes[1]);
}

static json_t *to_json(const wg__token_file *file) {
    const wg__token_rules *rules = &file->rules;
    json_t *sources = json_array();
    for (int64_t i = 0; i < file->source_count; i++)
        json_array_append_new(sources, source_to_json(&file->sources[i]));
    return json_pack("{s:s, s:i, s:b, s:b, s:i, s:f, s:f, s:f, s:I, s:I, s:o}", "format",
                     FORMAT_NAME, "version", VERSION, "sentences", rules->sentences, "pairs",
                     rules->pairs, "text_format", rules->format, "begin", rules->begin, "cut",
                     rules->cut, "end", rules->end, "vocabulary", (json_int_t)file->vocabulary,
                     "fingerprint", (json_int_t)file->fingerprint, "sources", sources);
}

int wg__token_about_put(wg__token_file *file) {
    json_t *about = to_json(file);
    char *text = about ? json_dumps(about, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(about);
    if (!text) /* only a path that is not UTF-8 has no JSON */
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the path of a text is not UTF-8");
    const int status = wg_checkpoint_put_text(file->file, "/about", text);
    free(text);
    return status;
}

/* ---- Reading ---- */

static int refuse(const wg__token_file *file, const char *reason) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: %s", file->file->path, reason);
}

static bool is_number(json_int_t number) {
    return number >= 0 && number <= MOST;
}

static int read_source(wg__token_file *file, json_t *json) {
    const char *path;
    json_int_t bytes, modified, documents[2], text_bytes[2];
    if (json_unpack(json, "{s:s, s:I, s:I, s:[I, I], s:[I, I]}", "path", &path, "bytes", &bytes,
                    "modified", &modified, "documents", &documents[0], &documents[1], "text_bytes",
                    &text_bytes[0], &text_bytes[1]) < 0 ||
        !is_number(documents[0]) || !is_number(documents[1]) || !is_number(text_bytes[0]) ||
        !is_number(text_bytes[1]))
        return refuse(file, "/about has a source without its numbers");
    const wg__text_map text = {.length = bytes, .modified = modified};
    if (wg__token_file_begin_source(file, path, &text) < 0)
        return -1;
    wg__token_source *source = &file->sources[file->source_count - 1];
    for (int part = 0; part < WG__TOKEN_PARTS; part++) {
        source->documents[part] = documents[part];
        source->text_bytes[part] = text_bytes[part];
    }
    return 0;
}

static int read_about(wg__token_file *file, json_t *about) {
    wg__token_rules *rules = &file->rules;
    const char *format;
    int version, sentences, pairs = false; /* older files have none and do not say so */
    json_int_t vocabulary, fingerprint;
    json_t *sources;
    if (json_unpack(about, "{s:s, s:i}", "format", &format, "version", &version) < 0 ||
        strcmp(format, FORMAT_NAME) != 0)
        return refuse(file, "it is no token file");
    if (version != VERSION)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s is a token file of version %d; this program knows version %d",
                       file->file->path, version, VERSION);
    if (json_unpack(about, "{s:b, s?b, s:i, s:F, s:F, s:F, s:I, s:I, s:o}", "sentences", &sentences,
                    "pairs", &pairs, "text_format", &rules->format, "begin", &rules->begin, "cut",
                    &rules->cut, "end", &rules->end, "vocabulary", &vocabulary, "fingerprint",
                    &fingerprint, "sources", &sources) < 0 ||
        !json_is_array(sources) || (pairs && (!sentences || json_array_size(sources) % 2 != 0)) ||
        vocabulary < 1 || vocabulary > INT32_MAX)
        return refuse(file, "/about has not all that a token file tells");
    rules->sentences = sentences;
    rules->pairs = pairs;
    file->vocabulary = vocabulary;
    file->fingerprint = (uint64_t)fingerprint;
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (read_source(file, json_array_get(sources, i)) < 0)
            return -1;
    return 0;
}

int wg__token_about_get(wg__token_file *file) {
    if (!wg_checkpoint_has(file->file, "/about"))
        return refuse(file, "it is an HDF5 file, but no token file");
    char *text = wg_checkpoint_get_text(file->file, "/about");
    json_t *about = text ? json_loads(text, 0, NULL) : NULL;
    int status = -1;
    if (text)
        status = about ? read_about(file, about) : refuse(file, "/about is no JSON");
    json_decref(about);
    wg_text_free(text);
    return status;
}

/* ---- Comparing ---- */

static bool same_rules(const wg__token_rules *a, const wg__token_rules *b) {
    return a->sentences == b->sentences && a->pairs == b->pairs && a->format == b->format &&
           a->begin == b->begin && a->cut == b->cut && a->end == b->end;
}

bool wg__token_source_found(const wg__token_source *source, const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_size == source->bytes &&
           status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec == source->modified;
}

const char *wg__token_about_differs(const wg__token_file *file, const wg__token_rules *rules,
                                    const wg_tokenizer *tokenizer, int count,
                                    const char *const *paths) {
    if (!same_rules(&file->rules, rules))
        return "it is for another kind of model, or another part was held out";
    if (file->fingerprint != wg__tokenizer_fingerprint(tokenizer))
        return "the tokenizer is another one";
    if (file->source_count != count)
        return "the texts are others";
    for (int i = 0; i < count; i++)
        if (!wg__token_source_found(&file->sources[i], paths[i]))
            return "the texts are others, or have changed";
    return NULL;
}
