/* Conversion. What IN holds is matched with what its configuration says, by published names; then
 * each tensor goes from one file to the other. See convert.h. */
#include "formats/convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/tokenizer/kind.h"
#include "io/weights/binary_file.h"
#include "io/differences.h"
#include "formats/convert_folder.h"
#include "formats/published.h"
#include "formats/weights_files.h"
#include "tensor/internal.h"

#define WHERE "convert"

enum { MOST_CONFIG = 1 << 24 };

typedef struct conversion {
    const wg_convert_options *options;
    wg_weights *in;
    wg__published_model *model;
    int64_t *source; /* by tensor of the model: its index in `in`, or -1: it is initialised */
    wg_weights_info *infos;
    wg_tokenizer *tokenizer;
    char *tokenizer_json; /* NULL: there is none */
} conversion;

static void note(const conversion *c, const char *message) {
    if (c->options->note)
        c->options->note(message, c->options->context);
}

static bool exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- Which model ---- */

/* The JSON of the configuration; freed with wg__free. */
static char *find_config(const conversion *c, const char *in) {
    if (c->options->config)
        return wg__read_whole(c->options->config, MOST_CONFIG, NULL);
    if (wg_weights_config(c->in))
        return wg__strdup(wg_weights_config(c->in));
    char *path =
        is_folder(in) ? wg__path_in(in, "config.json") : wg__path_beside(in, "config.json");
    char *text = NULL;
    if (path && exists(path))
        text = wg__read_whole(path, MOST_CONFIG, NULL);
    else if (path)
        wg_fail(WG_ERROR_NOT_FOUND, WHERE,
                "%s does not say its sizes, and there is no %s; name its configuration by --config",
                in, path);
    wg__free(path);
    return text;
}

static int read_model(conversion *c, const char *in) {
    char *json = find_config(c, in);
    const char *type = NULL;
    for (int64_t i = 0; i < wg_weights_count(c->in) && !type; i++)
        type = wg__published_type_of(wg_weights_name(c->in, i));
    c->model = json ? wg__published_read(json, type) : NULL;
    wg__free(json);
    if (c->model && c->model->ends > 1)
        note(c,
             "config.json has several eos_token_id; the first one is kept, and the others do not "
             "end a text");
    return c->model ? 0 : -1;
}

/* ---- Which tensors ---- */

/* Fills `source`; notes what IN has too much. */
static void match_found(conversion *c, wg__differences *differences) {
    char text[1200];
    for (int64_t i = 0; i < wg_weights_count(c->in); i++) {
        const char *name = wg_weights_name(c->in, i);
        const int64_t index = wg__published_find(c->model, name);
        if (index == -1)
            wg__note_difference(&differences->unexpected, name);
        if (index < 0)
            continue;
        if (c->source[index] >= 0) {
            snprintf(text, sizeof text, "%s, there already as %s", name,
                     wg_weights_name(c->in, c->source[index]));
            wg__note_difference(&differences->unexpected, text);
            continue;
        }
        c->source[index] = i;
    }
}

/* Notes what IN lacks or has in another shape, and fills `infos`. Returns how many are to be
 * initialised. */
static int64_t match_wanted(conversion *c, wg__differences *differences) {
    int64_t initialised = 0;
    for (int64_t i = 0; i < c->model->count; i++) {
        const wg__published_tensor *tensor = &c->model->tensors[i];
        wg_spec wanted = {.dtype = WG_F32, .ndim = tensor->ndim};
        memcpy(wanted.shape, tensor->shape, sizeof tensor->shape);
        c->infos[i] = (wg_weights_info){tensor->name, wanted};
        if (c->source[i] >= 0) {
            const wg_spec *found = wg_weights_spec(c->in, c->source[i]);
            wg__note_spec(differences, wg_weights_name(c->in, c->source[i]), found, &wanted);
            c->infos[i].spec.dtype = found->dtype;
        } else if (tensor->may_miss)
            initialised++;
        else
            wg__note_difference(&differences->missing, tensor->name);
    }
    return initialised;
}

static void tell_initialised(const conversion *c) {
    char text[1024];
    wg__difference names = {0};
    for (int64_t i = 0; i < c->model->count; i++)
        if (c->source[i] < 0)
            wg__note_difference(&names, c->model->tensors[i].name);
    snprintf(text, sizeof text, "not in the file, begun anew: %s", names.names);
    note(c, text);
}

static int match(conversion *c, const char *in) {
    const size_t count = (size_t)c->model->count;
    c->source = wg__alloc((count + 1) * sizeof *c->source);
    c->infos = wg__alloc((count + 1) * sizeof *c->infos);
    if (!c->source || !c->infos)
        return -1;
    for (size_t i = 0; i < count; i++)
        c->source[i] = -1;
    wg__differences differences = {0};
    match_found(c, &differences);
    const int64_t initialised = match_wanted(c, &differences);
    if (wg__check_differences(&differences, in, WHERE) < 0)
        return -1;
    if (initialised)
        tell_initialised(c);
    return 0;
}

/* ---- Which tokenizer ---- */

/* A folder without one is no failure. */
static wg_tokenizer *find_tokenizer(const conversion *c, const char *in) {
    if (c->options->tokenizer)
        return wg_tokenizer_load(c->options->tokenizer);
    if (wg_weights_tokenizer(c->in))
        return wg_tokenizer_from_json(wg_weights_tokenizer(c->in));
    return is_folder(in) && wg__tokenizer_is_in(in) ? wg_tokenizer_load(in) : NULL;
}

static int read_tokenizer(conversion *c, const char *in) {
    c->tokenizer = find_tokenizer(c, in);
    if (wg_error_pending())
        return -1;
    if (!c->tokenizer) {
        note(c, "no tokenizer was found; name one by --tokenizer if it is to read and write text");
        return 0;
    }
    if (wg_tokenizer_size(c->tokenizer) > c->model->vocabulary)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "the tokenizer has %lld tokens; the model has only %lld",
                       (long long)wg_tokenizer_size(c->tokenizer), (long long)c->model->vocabulary);
    c->tokenizer_json = wg_tokenizer_to_json(c->tokenizer);
    return c->tokenizer_json ? 0 : -1;
}

/* ---- Tensors ---- */

static int copy_tensor(conversion *c, wg_weights_writer *writer, wg_generator *generator,
                       int64_t index) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x;
    if (c->source[index] >= 0)
        x = wg_weights_read(c->in, c->source[index]);
    else {
        const wg__published_tensor *tensor = &c->model->tensors[index];
        x = wg_empty(WG_F32, tensor->ndim, tensor->shape);
        if (x && wg_initialize(x, &tensor->init, generator) < 0)
            x = NULL;
    }
    const int status = wg_weights_put(writer, index, x);
    wg_scope_end(&scope, NULL);
    return status;
}

static int write_tensors(conversion *c, const char *path, const char *format) {
    const wg_weights_options options = {
        .type = c->options->type,
        .config = c->model->config,
        .tokenizer = c->tokenizer_json,
        .version = c->options->version,
        .shard_bytes = c->options->shard_bytes,
    };
    wg_weights_writer *writer =
        wg_weights_create(path, format, &options, c->model->count, c->infos);
    wg_generator generator = {0};
    int status = writer ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < c->model->count; i++)
        status = copy_tensor(c, writer, &generator, i);
    if (status == 0)
        return wg_weights_commit(writer);
    wg_weights_abort(writer);
    return -1;
}

/* ---- The whole ---- */

/* The format that a name asks for; NULL for a folder's. */
static int choose_format(const char *out, const char **format) {
    *format = NULL;
    const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out;
    if (is_folder(out) || !*name)
        return 0;
    *format = wg__weights_format_by_suffix(name);
    if (*format || !strchr(name, '.'))
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "%s has none of the suffixes .h5, .safetensors, .gguf and .bin (llama2.c's); a "
                   "name without a dot is a folder",
                   out);
}

static bool keeps_tokenizer(const conversion *c, const char *format) {
    return format ? wg__weights_keeps_tokenizer(format, c->tokenizer_json) : c->tokenizer != NULL;
}

static int write_out(conversion *c, const char *in, const char *out, const char *format) {
    if (format) {
        if (write_tensors(c, out, format) < 0)
            return -1;
        if (strcmp(format, "safetensors") == 0)
            note(c, "a safetensors file keeps neither configuration nor tokenizer; a folder does");
        else if (c->tokenizer && !keeps_tokenizer(c, format))
            note(c,
                 strcmp(format, "gguf") == 0
                     ? "GGUF has no tokenizer of this kind: it is dropped, and the file can only "
                       "be given ids"
                     : "this format keeps no tokenizer");
        return 0;
    }
    char *path = wg__folder_begin(out);
    int status = path ? write_tensors(c, path, "safetensors") : -1;
    wg__free(path);
    if (status == 0)
        status = wg__folder_config(out, c->model->architecture, c->model->config);
    if (status == 0 && c->tokenizer) {
        const char *from = c->options->tokenizer ? c->options->tokenizer : in;
        bool kept = false;
        status = wg__folder_tokenizer(out, from, c->tokenizer, &kept);
        if (status == 0 && !kept)
            note(c, "this kind of tokenizer is written in wengert's own format: wengert.json");
    }
    return status;
}

static void summarise(const conversion *c, const char *format, wg_convert_summary *summary) {
    *summary = (wg_convert_summary){
        .type = c->model->type,
        .from = wg_weights_format(c->in),
        .to = format ? format : "folder",
        .tensors = c->model->count,
        .tokenizer = keeps_tokenizer(c, format),
    };
    for (int64_t i = 0; i < c->model->count; i++) {
        const wg__published_tensor *tensor = &c->model->tensors[i];
        summary->numbers += tensor->shape[0] * (tensor->ndim == 2 ? tensor->shape[1] : 1);
    }
}

static int convert(conversion *c, const char *in, const char *out, wg_convert_summary *summary) {
    const char *format;
    if (choose_format(out, &format) < 0)
        return -1;
    c->in = wg_weights_open(in);
    if (!c->in || read_model(c, in) < 0 || match(c, in) < 0 || read_tokenizer(c, in) < 0 ||
        write_out(c, in, out, format) < 0)
        return -1;
    if (summary)
        summarise(c, format, summary);
    return 0;
}

int wg_convert(const char *in, const char *out, const wg_convert_options *options,
               wg_convert_summary *summary) {
    if (!in || !out || wg_error_pending())
        return -1;
    const wg_convert_options defaults = {0};
    conversion c = {.options = options ? options : &defaults};
    const int status = convert(&c, in, out, summary);
    wg_tokenizer_free(c.tokenizer);
    wg_text_free(c.tokenizer_json);
    wg__published_free(c.model);
    wg_weights_close(c.in);
    wg__free(c.source);
    wg__free(c.infos);
    return status;
}
