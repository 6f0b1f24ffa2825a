/* Token files: see token_file.h. */
#include "data/dataset/token_file.h"
#include "base/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/system.h"
#include "io/checkpoint/file.h"
#include "io/internal.h"
#include "data/internal.h"

#define WHERE "token_file"
#define FORMAT_NAME "wengert tokens"
enum { VERSION = 1 };

/* Limits on the memory for the tokens of a file, and for its starts of sentences and documents. */
enum { TOKEN_BYTES = 8 << 20, START_BYTES = 4 << 20 };

void wg__token_file_release(wg__token_file *file) {
    if (!file || --file->refcount > 0)
        return;
    wg__column_free(file->tokens);
    wg__column_free(file->sentences);
    wg__column_free(file->documents);
    wg_checkpoint_abort(file->file);
    for (int64_t i = 0; i < file->source_count; i++) {
        wg__free(file->sources[i].path);
        wg__text_map_close(&file->sources[i].text);
    }
    wg__free(file->sources);
    wg__free(file);
}

static wg__token_file *new_file(void) {
    wg__token_file *file = wg__calloc(1, sizeof *file);
    if (file)
        file->refcount = 1;
    return file;
}

uint64_t wg__tokenizer_fingerprint(const wg_tokenizer *tokenizer) {
    char *json = wg_tokenizer_to_json(tokenizer);
    const uint64_t hash = json ? wg__hash(WG__HASH_BEGIN, json, strlen(json)) : 0;
    wg_text_free(json);
    return hash;
}

wg__token_file *wg__token_file_create(const char *path, const wg__token_rules *rules,
                                      const wg_tokenizer *tokenizer) {
    wg__token_file *file = new_file();
    char *json = file ? wg_tokenizer_to_json(tokenizer) : NULL;
    if (json) {
        file->rules = *rules;
        file->vocabulary = wg_tokenizer_size(tokenizer);
        file->fingerprint = wg__hash(WG__HASH_BEGIN, json, strlen(json));
        file->file = path ? wg_checkpoint_create(path) : wg__checkpoint_create_unnamed();
    }
    const int width = file && file->vocabulary <= 1 << 16 ? 2 : 4;
    const bool made = file && file->file &&
                      wg_checkpoint_put_text(file->file, "/tokenizer", json) == 0 &&
                      (file->tokens = wg__column_create(file->file, "/tokens", width)) &&
                      (file->documents = wg__column_create(file->file, "/documents", 8)) &&
                      wg__column_push(file->documents, 0) == 0 &&
                      (rules->kind == WG_TEXT_STREAM ||
                       ((file->sentences = wg__column_create(file->file, "/sentences", 8)) &&
                        wg__column_push(file->sentences, 0) == 0));
    wg_text_free(json);
    if (made)
        return file;
    wg__token_file_release(file);
    return NULL;
}

int wg__token_file_begin_source(wg__token_file *file, const char *path, const wg__text_map *text) {
    if (wg__reserve(&file->sources, file->source_count, &file->source_capacity,
                    file->source_count + 1, sizeof *file->sources) < 0)
        return -1;
    char *copy = wg__strdup(path);
    if (!copy)
        return -1;
    file->sources[file->source_count++] =
        (wg__token_source){.path = copy, .bytes = text->length, .modified = text->modified};
    file->part = 0;
    return 0;
}

int wg__token_file_add(wg__token_file *file, int64_t count, const int32_t *ids) {
    file->token_count += count;
    return wg__column_append(file->tokens, count, ids);
}

int wg__token_file_end_sentence(wg__token_file *file) {
    if (file->token_count == file->sentence)
        return 0;
    file->sentence = file->token_count;
    file->sentence_count++;
    return wg__column_push(file->sentences, file->token_count);
}

int wg__token_file_end_document(wg__token_file *file, int64_t bytes) {
    const bool sentences = file->rules.kind != WG_TEXT_STREAM;
    if (sentences && file->sentence_count == file->document)
        return 0;
    wg__token_source *source = &file->sources[file->source_count - 1];
    source->documents[file->part]++;
    source->text_bytes[file->part] += bytes;
    file->document_count++;
    file->document = sentences ? file->sentence_count : file->token_count;
    return wg__column_push(file->documents, file->document);
}

/* A limit on documents and bytes of a text, so that sums do not overflow. */
#define MOST (INT64_C(1) << 44)

static int put_about(wg__token_file *file) {
    const wg__token_rules *rules = &file->rules;
    json_t *sources = json_array();
    for (int64_t i = 0; i < file->source_count; i++) {
        const wg__token_source *s = &file->sources[i];
        wg__json_append(&sources,
                        json_pack("{s:s, s:I, s:I, s:[I, I], s:[I, I]}", "path", s->path, "bytes",
                                  (json_int_t)s->bytes, "modified", (json_int_t)s->modified,
                                  "documents", (json_int_t)s->documents[0],
                                  (json_int_t)s->documents[1], "text_bytes",
                                  (json_int_t)s->text_bytes[0], (json_int_t)s->text_bytes[1]));
    }
    json_t *about = json_pack(
        "{s:s, s:i, s:b, s:b, s:i, s:f, s:f, s:f, s:I, s:I, s:o}", "format", FORMAT_NAME, "version",
        VERSION, "sentences", rules->kind != WG_TEXT_STREAM, "pairs", rules->kind == WG_TEXT_PAIRS,
        "text_format", (int)rules->format, "begin", rules->begin, "cut", rules->cut, "end",
        rules->end, "vocabulary", (json_int_t)file->vocabulary, "fingerprint",
        (json_int_t)file->fingerprint, "sources", sources);
    char *text = about ? json_dumps(about, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(about);
    if (!text) /* jansson refuses only a path that is not UTF-8 */
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the path of a text is not UTF-8");
    const int status = wg_checkpoint_put_text(file->file, "/about", text);
    free(text);
    return status;
}

static int refuse(const wg__token_file *file, const char *reason) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: %s", file->file->path, reason);
}

static bool is_number(json_int_t number) {
    return number >= 0 && number <= MOST;
}

static int read_about(wg__token_file *file, json_t *about) {
    wg__token_rules *rules = &file->rules;
    const char *format;
    int version, text_format, sentences, pairs = false; /* older files do not have "pairs" */
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
                    "pairs", &pairs, "text_format", &text_format, "begin", &rules->begin, "cut",
                    &rules->cut, "end", &rules->end, "vocabulary", &vocabulary, "fingerprint",
                    &fingerprint, "sources", &sources) < 0 ||
        !json_is_array(sources) || (pairs && (!sentences || json_array_size(sources) % 2 != 0)) ||
        vocabulary < 1 || vocabulary > INT32_MAX)
        return refuse(file, "/about lacks a field of a token file, or has an invalid value");
    rules->kind = pairs ? WG_TEXT_PAIRS : sentences ? WG_TEXT_SENTENCES : WG_TEXT_STREAM;
    rules->format = (wg_sentence_format)text_format;
    file->vocabulary = vocabulary;
    file->fingerprint = (uint64_t)fingerprint;
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const char *path;
        json_int_t bytes, modified, documents[2], text_bytes[2];
        if (json_unpack(json_array_get(sources, i), "{s:s, s:I, s:I, s:[I, I], s:[I, I]}", "path",
                        &path, "bytes", &bytes, "modified", &modified, "documents", &documents[0],
                        &documents[1], "text_bytes", &text_bytes[0], &text_bytes[1]) < 0 ||
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
    }
    return 0;
}

static bool source_found(const wg__token_source *source, const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_size == source->bytes &&
           wg__modified(&status) == source->modified;
}

const char *wg__token_file_differs(const wg__token_file *file, const wg__token_rules *rules,
                                   const wg_tokenizer *tokenizer, int count,
                                   const char *const *paths) {
    const wg__token_rules *old = &file->rules;
    if (old->kind != rules->kind || old->format != rules->format || old->begin != rules->begin ||
        old->cut != rules->cut || old->end != rules->end)
        return "it is for another kind of model, or another part was held out";
    if (file->fingerprint != wg__tokenizer_fingerprint(tokenizer))
        return "the tokenizer is another one";
    if (file->source_count != count)
        return "the texts are others";
    for (int i = 0; i < count; i++)
        if (!source_found(&file->sources[i], paths[i]))
            return "the texts are others, or have changed";
    return NULL;
}

/* ---- Reading ---- */

static int open_columns(wg__token_file *file) {
    const bool sentences = file->rules.kind != WG_TEXT_STREAM;
    file->tokens = wg__column_open(file->file, "/tokens", file->vocabulary, TOKEN_BYTES);
    if (!file->tokens)
        return -1;
    file->token_count = wg__column_count(file->tokens);
    if (sentences && !(file->sentences = wg__column_open(file->file, "/sentences",
                                                         file->token_count + 1, START_BYTES)))
        return -1;
    file->sentence_count = wg__column_count(file->sentences) - 1;
    file->documents =
        wg__column_open(file->file, "/documents",
                        (sentences ? file->sentence_count : file->token_count) + 1, START_BYTES);
    file->document_count = wg__column_count(file->documents) - 1;
    return file->documents ? 0 : -1;
}

int wg__token_file_finish(wg__token_file *file) {
    wg__column *columns[] = {file->tokens, file->sentences, file->documents};
    int status = 0;
    file->tokens = file->sentences = file->documents = NULL;
    for (int i = 0; i < 3; i++)
        if (status < 0)
            wg__column_free(columns[i]);
        else
            status = wg__column_end(columns[i]);
    if (status < 0 || put_about(file) < 0 || wg__checkpoint_reopen(file->file) < 0)
        return -1;
    return open_columns(file);
}

bool wg__dataset_is_token_file(const char *path) {
    return wg__is_hdf5_file(path);
}

/* Checks that the starts ascend from 0 to `end`, by at least `least` each: no sentence is empty. */
static int check_starts(wg__token_file *file, const char *name, wg__column *starts, int64_t end,
                        int64_t least) {
    const int64_t count = wg__column_count(starts);
    int64_t before = -least;
    bool good = count > 0;
    for (int64_t i = 0; good && i < count; i++) {
        const int64_t start = wg__column_at(starts, i);
        if (start < 0)
            return -1;
        good = i == 0 ? start == 0 : start - before >= least;
        before = start;
    }
    if (good && before == end)
        return 0;
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: %s does not go up from 0 to %lld", file->file->path,
                   name, (long long)end);
}

static int check(wg__token_file *file) {
    const wg_dataset_kind kind = file->rules.kind;
    const bool sentences = kind != WG_TEXT_STREAM, pairs = kind == WG_TEXT_PAIRS;
    int64_t documents = 0;
    for (int64_t i = 0; i < file->source_count; i++)
        for (int part = 0; part < WG__TOKEN_PARTS; part++)
            documents += file->sources[i].documents[part];
    if (documents != file->document_count)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: /about has %lld documents, /documents %lld",
                       file->file->path, (long long)documents, (long long)file->document_count);
    if (sentences && check_starts(file, "/sentences", file->sentences, file->token_count, 1) < 0)
        return -1;
    if (pairs && file->sentence_count != WG__TOKEN_SIDES * file->document_count)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: %lld sentences cannot be %lld pairs",
                       file->file->path, (long long)file->sentence_count,
                       (long long)file->document_count);
    return check_starts(file, "/documents", file->documents,
                        sentences ? file->sentence_count : file->token_count,
                        pairs ? WG__TOKEN_SIDES : sentences);
}

wg__token_file *wg__token_file_open(const char *path) {
    wg__token_file *file = new_file();
    if (!file)
        return NULL;
    file->file = wg_checkpoint_open(path);
    const bool is_one = file->file && wg_checkpoint_has(file->file, "/about");
    if (file->file && !is_one)
        refuse(file, "it is an HDF5 file, but no token file; a corpus is text, or a token file of "
                     "`wengert tokenizer pack'");
    char *text = is_one ? wg_checkpoint_get_text(file->file, "/about") : NULL;
    json_t *about = text ? json_loads(text, 0, NULL) : NULL;
    if (text && !about)
        refuse(file, "/about is no JSON");
    const int status = about ? read_about(file, about) : -1;
    json_decref(about);
    wg_text_free(text);
    if (status == 0 && open_columns(file) == 0 && check(file) == 0)
        return file;
    wg__token_file_release(file);
    return NULL;
}

int64_t wg__token_file_document(wg__token_file *file, int64_t document) {
    const int64_t start = wg__column_at(file->documents, document);
    if (start >= 0)
        return start;
    return file->rules.kind == WG_TEXT_STREAM ? file->token_count : file->sentence_count;
}

int64_t wg__token_file_sentence(wg__token_file *file, int64_t sentence) {
    const int64_t start = wg__column_at(file->sentences, sentence);
    return start >= 0 ? start : file->token_count;
}

wg__text_map *wg__token_file_text(wg__token_file *file, int64_t index, const char *where) {
    wg__token_source *source = &file->sources[index];
    if (source->text.bytes)
        return &source->text;
    if (!source_found(source, source->path))
        return wg__fail_null(
            WG_ERROR_STATE, where,
            "%s is gone or has changed since it was tokenised; its text is in no token file",
            source->path);
    return wg__text_map_open(&source->text, source->path, where) < 0 ? NULL : &source->text;
}
