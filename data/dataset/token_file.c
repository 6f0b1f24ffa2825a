/* Token files: see token_file.h. token_about.c has what they say about themselves. */
#include "data/dataset/token_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/string_table.h"
#include "data/dataset/token_about.h"
#include "io/checkpoint/file.h"
#include "tensor/internal.h"

#define WHERE "token_file"

/* What of a file is in memory at most. */
enum { TOKEN_BYTES = 8 << 20, START_BYTES = 4 << 20 };

void wg__token_file_hold(wg__token_file *file) {
    file->references++;
}

void wg__token_file_release(wg__token_file *file) {
    if (!file || --file->references > 0)
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
        file->references = 1;
    return file;
}

uint64_t wg__tokenizer_fingerprint(const wg_tokenizer *tokenizer) {
    char *json = wg_tokenizer_to_json(tokenizer);
    if (!json)
        return 0;
    uint64_t hash = WG__HASH_EMPTY;
    for (const char *at = json; *at; at++)
        hash = wg__hash_step(hash, *at);
    wg_text_free(json);
    return hash;
}

/* ---- Writing ---- */

static int create_columns(wg__token_file *file) {
    const int width = file->vocabulary <= 1 << 16 ? 2 : 4;
    if (!(file->tokens = wg__column_create(file->file, "/tokens", width)) ||
        !(file->documents = wg__column_create(file->file, "/documents", 8)) ||
        wg__column_push(file->documents, 0) < 0)
        return -1;
    if (!file->rules.sentences)
        return 0;
    file->sentences = wg__column_create(file->file, "/sentences", 8);
    return file->sentences ? wg__column_push(file->sentences, 0) : -1;
}

static int put_tokenizer(wg__token_file *file, const wg_tokenizer *tokenizer) {
    char *json = wg_tokenizer_to_json(tokenizer);
    const int status = json ? wg_checkpoint_put_text(file->file, "/tokenizer", json) : -1;
    wg_text_free(json);
    return status;
}

wg__token_file *wg__token_file_create(const char *path, const wg__token_rules *rules,
                                      const wg_tokenizer *tokenizer) {
    wg__token_file *file = new_file();
    if (!file)
        return NULL;
    file->rules = *rules;
    file->vocabulary = wg_tokenizer_size(tokenizer);
    file->fingerprint = wg__tokenizer_fingerprint(tokenizer);
    if (file->fingerprint)
        file->file = path ? wg_checkpoint_create(path) : wg__checkpoint_create_unnamed();
    if (file->file && put_tokenizer(file, tokenizer) == 0 && create_columns(file) == 0)
        return file;
    wg__token_file_release(file);
    return NULL;
}

int wg__token_file_begin_source(wg__token_file *file, const char *path, const wg__text_map *text) {
    wg__token_source *sources = wg__grow(file->sources, file->source_count, &file->source_capacity,
                                         file->source_count + 1, sizeof *sources);
    if (!sources)
        return -1;
    file->sources = sources;
    char *copy = wg__strdup(path);
    if (!copy)
        return -1;
    sources[file->source_count++] =
        (wg__token_source){.path = copy, .bytes = text->length, .modified = text->modified};
    file->part = 0;
    return 0;
}

int wg__token_file_add(wg__token_file *file, int64_t count, const int32_t *ids) {
    file->token_count += count;
    return wg__column_append(file->tokens, count, ids);
}

int64_t wg__token_file_open_sentences(const wg__token_file *file) {
    return file->sentence_count - file->document;
}

int wg__token_file_end_sentence(wg__token_file *file) {
    if (file->token_count == file->sentence)
        return 0;
    file->sentence = file->token_count;
    file->sentence_count++;
    return wg__column_push(file->sentences, file->token_count);
}

int wg__token_file_end_document(wg__token_file *file, int64_t bytes) {
    const bool sentences = file->rules.sentences;
    if (sentences && wg__token_file_open_sentences(file) == 0)
        return 0;
    wg__token_source *source = &file->sources[file->source_count - 1];
    source->documents[file->part]++;
    source->text_bytes[file->part] += bytes;
    file->document_count++;
    file->document = sentences ? file->sentence_count : file->token_count;
    return wg__column_push(file->documents, file->document);
}

/* ---- Reading ---- */

static int open_columns(wg__token_file *file) {
    const bool sentences = file->rules.sentences;
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

static int end_columns(wg__token_file *file) {
    wg__column *columns[] = {file->tokens, file->sentences, file->documents};
    int status = 0;
    file->tokens = file->sentences = file->documents = NULL;
    for (int i = 0; i < 3; i++)
        if (status < 0)
            wg__column_free(columns[i]);
        else
            status = wg__column_end(columns[i]);
    return status;
}

int wg__token_file_finish(wg__token_file *file) {
    if (end_columns(file) < 0 || wg__token_about_put(file) < 0 ||
        wg__checkpoint_turn(file->file) < 0)
        return -1;
    return open_columns(file);
}

bool wg_tokens_found(const char *path) {
    static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char begin[sizeof signature];
    struct stat status;
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode)) /* a pipe can be read once only */
        return false;
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    const bool is = fread(begin, 1, sizeof begin, file) == sizeof begin &&
                    memcmp(begin, signature, sizeof begin) == 0;
    fclose(file);
    return is;
}

/* Starts go up from 0 to `end`: of sentences in every step, since none is empty. */
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
    const bool sentences = file->rules.sentences, pairs = file->rules.pairs;
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
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: %lld sentences are no %lld pairs",
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
    if (file->file && wg__token_about_get(file) == 0 && open_columns(file) == 0 && check(file) == 0)
        return file;
    wg__token_file_release(file);
    return NULL;
}

int64_t wg__token_file_document(wg__token_file *file, int64_t document) {
    const int64_t start = wg__column_at(file->documents, document);
    if (start >= 0)
        return start;
    return file->rules.sentences ? file->sentence_count : file->token_count;
}

int64_t wg__token_file_sentence(wg__token_file *file, int64_t sentence) {
    const int64_t start = wg__column_at(file->sentences, sentence);
    return start >= 0 ? start : file->token_count;
}

wg__text_map *wg__token_file_text(wg__token_file *file, int64_t index, const char *where) {
    wg__token_source *source = &file->sources[index];
    if (source->text.bytes)
        return &source->text;
    if (!wg__token_source_found(source, source->path)) {
        wg_fail(WG_ERROR_STATE, where,
                "%s is gone or has changed since it was tokenised; its text is in no token file",
                source->path);
        return NULL;
    }
    return wg__text_map_open(&source->text, source->path, where) < 0 ? NULL : &source->text;
}
