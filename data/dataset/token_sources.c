/* From texts, or token files of them, to rows of tokens: see token_sources.h. */
#include "data/dataset/token_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "data/dataset/token_about.h"
#include "tensor/internal.h"

/* ---- Making a token file ---- */

/* Adds a text, or the sides of pairs. `names` are for messages, `paths` are what the file tells. */
static int add_texts(const wg__token_request *r, wg__token_file *file, wg__text_map *texts,
                     const char *const *names, const char *const *paths) {
    const int sides = wg__token_rules_sides(&r->rules);
    for (int i = 0; i < sides; i++)
        if (wg__text_map_check(&texts[i], names[i], r->where) < 0 ||
            wg__token_file_begin_source(file, paths[i], &texts[i]) < 0)
            return -1;
    return r->read(r, texts, names, file);
}

/* The texts of pairs stay with the file, mapped: a pipe, say, cannot be read again. */
static void keep_texts(wg__token_file *file, wg__text_map *texts) {
    wg__token_source *sources = &file->sources[file->source_count - WG__TOKEN_SIDES];
    for (int i = 0; i < WG__TOKEN_SIDES; i++) {
        sources[i].text = texts[i];
        wg__text_map_rest(&sources[i].text);
        texts[i] = (wg__text_map){0};
    }
}

static int add_files(const wg__token_request *r, wg__token_file *file, const char *const *paths) {
    const int sides = wg__token_rules_sides(&r->rules);
    wg__text_map texts[WG__TOKEN_SIDES] = {{0}};
    char *absolute[WG__TOKEN_SIDES] = {NULL};
    const char *told[WG__TOKEN_SIDES] = {NULL};
    int status = 0;
    for (int i = 0; status == 0 && i < sides; i++) {
        status = wg__text_map_open(&texts[i], paths[i], r->where);
        absolute[i] = realpath(paths[i], NULL);
        told[i] = absolute[i] ? absolute[i] : paths[i];
    }
    if (status == 0)
        status = add_texts(r, file, texts, paths, told);
    if (status == 0 && r->rules.pairs)
        keep_texts(file, texts);
    for (int i = 0; i < sides; i++) {
        free(absolute[i]);
        wg__text_map_close(&texts[i]);
    }
    return status;
}

static wg__token_file *make(const wg__token_request *r, const char *kept, int count,
                            const char *const *paths) {
    wg__token_file *file = wg__token_file_create(kept, &r->rules, r->tokenizer);
    int status = file ? 0 : -1;
    for (int i = 0; status == 0 && i < count; i += wg__token_rules_sides(&r->rules))
        status = add_files(r, file, paths + i);
    if (status == 0)
        status = wg__token_file_finish(file);
    if (status == 0)
        return file;
    wg__token_file_release(file);
    return NULL;
}

static void tell(const wg_token_storage *storage, const char *reason) {
    char line[512];
    snprintf(line, sizeof line, "%.300s is made anew: %s", storage->path, reason);
    if (storage->note)
        storage->note(storage->context, line);
}

/* A file that is used again finds its texts where they are now. */
static int move_sources(wg__token_file *file, const char *const *paths) {
    for (int64_t i = 0; i < file->source_count; i++) {
        char *path = wg__strdup(paths[i]);
        if (!path)
            return -1;
        wg__free(file->sources[i].path);
        file->sources[i].path = path;
    }
    return 0;
}

/* The tokens of texts: as they are kept, or made. */
static wg__token_file *tokens_of(const wg__token_request *r, int count, const char *const *paths) {
    const char *kept = r->storage ? r->storage->path : NULL;
    if (!kept || access(kept, F_OK) < 0)
        return make(r, kept, count, paths);
    if (!wg_tokens_found(kept)) {
        wg_fail(WG_ERROR_FORMAT, r->where, "%s is there and is no token file; it stays as it is",
                kept);
        return NULL;
    }
    wg__token_file *file = wg__token_file_open(kept);
    if (!file)
        return NULL;
    const char *reason = wg__token_about_differs(file, &r->rules, r->tokenizer, count, paths);
    if (!reason && !wg_error_pending() && move_sources(file, paths) == 0)
        return file;
    wg__token_file_release(file);
    if (wg_error_pending())
        return NULL;
    tell(r->storage, reason);
    return make(r, kept, count, paths);
}

/* ---- Token files that are given for texts ---- */

static const char *kind_of(const wg__token_rules *rules) {
    return rules->pairs       ? "of pairs of sentences"
           : rules->sentences ? "of sentences"
                              : "as one stream";
}

static int check_given(const wg__token_request *r, const wg__token_file *file, const char *path) {
    const wg__token_rules *rules = &r->rules;
    if (file->rules.sentences != rules->sentences || file->rules.pairs != rules->pairs)
        return wg_fail(WG_ERROR_ARGUMENT, r->where, "%s has tokens %s; tokens %s are wanted", path,
                       kind_of(&file->rules), kind_of(rules));
    const uint64_t wanted = wg__tokenizer_fingerprint(r->tokenizer);
    if (!wanted)
        return -1;
    if (file->fingerprint != wanted)
        return wg_fail(WG_ERROR_ARGUMENT, r->where, "%s was made with another tokenizer", path);
    if (rules->begin > 0 || rules->end < 1)
        return wg_fail(WG_ERROR_ARGUMENT, r->where, "%s is a token file, which is read whole",
                       path);
    if (rules->cut < rules->end && file->rules.cut >= file->rules.end)
        return wg_fail(WG_ERROR_ARGUMENT, r->where,
                       "%s has no part that is held out; give a text to measure on", path);
    return 0;
}

static wg__token_file *open_given(const wg__token_request *r, const char *path) {
    wg__token_file *file = wg__token_file_open(path);
    if (file && check_given(r, file, path) == 0)
        return file;
    wg__token_file_release(file);
    return NULL;
}

/* ---- Views ---- */

/* Adds sources first .. end - 1 of a file, of which `document` is the first. A part that nobody
 * asked to be held out belongs to the one before it. */
static int add_sources(const wg__token_request *r, wg__token_file *file, int64_t first, int64_t end,
                       int64_t document, wg__token_view *views) {
    const bool apart = r->rules.cut < r->rules.end;
    for (int64_t i = first; i < end; i++)
        for (int part = 0; part < WG__TOKEN_PARTS; part++) {
            const wg__token_source *source = &file->sources[i];
            wg__token_view *view = &views[apart ? part : 0];
            if (wg__token_view_add(view, file, document, document + source->documents[part]) < 0)
                return -1;
            document += source->documents[part];
            view->bytes += source->text_bytes[part];
        }
    return 0;
}

static int end_sources(wg__token_view *views) {
    for (int part = 0; part < WG__TOKEN_PARTS; part++)
        if (wg__token_view_end_source(&views[part]) < 0)
            return -1;
    return 0;
}

static int add_given(const wg__token_request *r, const char *path, wg__token_view *views) {
    wg__token_file *file = open_given(r, path);
    const int status = file ? add_sources(r, file, 0, file->source_count, 0, views) : -1;
    wg__token_file_release(file);
    return status;
}

/* All paths in order; `made` has the texts among them, in the same order. */
static int add_all(const wg__token_request *r, wg__token_file *made, int count,
                   const char *const *paths, const bool *given, wg__token_view *views) {
    const int sides = wg__token_rules_sides(&r->rules);
    int64_t source = 0, document = 0;
    for (int i = 0; i < count; i += given[i] ? 1 : sides) {
        if (given[i] ? add_given(r, paths[i], views) < 0
                     : add_sources(r, made, source, source + sides, document, views) < 0)
            return -1;
        for (int side = 0; !given[i] && side < sides; side++, source++)
            for (int part = 0; part < WG__TOKEN_PARTS; part++)
                document += made->sources[source].documents[part];
        if (end_sources(views) < 0)
            return -1;
    }
    return 0;
}

/* The sides of a pair come one behind the other. */
static int check_sides(const wg__token_request *r, int count, const char *const *paths,
                       const bool *given) {
    for (int i = 0; r->rules.pairs && i < count; i += given[i] ? 1 : WG__TOKEN_SIDES)
        if (!given[i] && (i + 1 == count || given[i + 1]))
            return wg_fail(WG_ERROR_ARGUMENT, r->where,
                           "%s has no other side; wanted a source and its target, line by line (or "
                           "several such pairs, one after the other)",
                           paths[i]);
    return 0;
}

static int load(const wg__token_request *r, int count, const char *const *paths, bool *given,
                const char **texts, wg__token_view *views) {
    int text_count = 0;
    for (int i = 0; i < count; i++) {
        given[i] = wg_tokens_found(paths[i]);
        if (!given[i])
            texts[text_count++] = paths[i];
    }
    if (check_sides(r, count, paths, given) < 0)
        return -1;
    if (text_count == 0 && r->storage && r->storage->path)
        return wg_fail(WG_ERROR_ARGUMENT, r->where,
                       "%s is not made: what is read is token files already", r->storage->path);
    wg__token_file *made = text_count > 0 ? tokens_of(r, text_count, texts) : NULL;
    int status = -1;
    if (made || text_count == 0)
        status = add_all(r, made, count, paths, given, views);
    wg__token_file_release(made);
    return status;
}

static void clear_views(wg__token_view *views) {
    for (int part = 0; part < WG__TOKEN_PARTS; part++)
        wg__token_view_clear(&views[part]);
}

int wg__token_sources_load(const wg__token_request *request, int count, const char *const *paths,
                           wg__token_view views[WG__TOKEN_PARTS]) {
    if (count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, request->where, "no file is given");
    bool *given = wg__alloc((size_t)count * sizeof *given);
    const char **texts = wg__alloc((size_t)count * sizeof *texts);
    int status = given && texts ? load(request, count, paths, given, texts, views) : -1;
    wg__free(given);
    wg__free(texts);
    if (status < 0)
        clear_views(views);
    return status;
}

int wg__token_sources_of_texts(const wg__token_request *request, wg__text_map *texts,
                               wg__token_view views[WG__TOKEN_PARTS]) {
    static const char *const paths[] = {"", ""}, *const text[] = {"the text"},
                             *const sides[] = {"the source", "the target"};
    const bool pairs = request->rules.pairs;
    wg__token_file *file = wg__token_file_create(NULL, &request->rules, request->tokenizer);
    int status = file ? add_texts(request, file, texts, pairs ? sides : text, paths) : -1;
    if (status == 0)
        status = wg__token_file_finish(file);
    if (status == 0 && pairs)
        keep_texts(file, texts);
    if (status == 0)
        status = add_sources(request, file, 0, file->source_count, 0, views);
    if (status == 0)
        status = end_sources(views);
    wg__token_file_release(file);
    if (status < 0)
        clear_views(views);
    return status;
}
