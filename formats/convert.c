/* Conversion: see convert.h. The configuration of IN describes a module tree, which is made without
 * memory. The tensors of IN are matched with the names in the tree, and then copied one by one. */
#include "formats/convert.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/tokenizer/kind.h"
#include "io/internal.h"
#include "io/weights/file.h"
#include "formats/internal.h"
#include "formats/weights_files.h"
#include "io/weights/binary_file.h"
#include "models/internal.h"
#include "nn/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "base/array.h"

#define WHERE "convert"

enum { MOST_CONFIG = 1 << 24, MOST_TOKENIZER = 1 << 28, MOST_LAYERS = 4096 };

typedef struct conversion {
    const wg_convert_options *options;
    wg_weights *in;
    const wg_model_type *type;
    const char *architecture; /* written into the config.json of OUT; NULL: none */
    char *config;             /* as wengert keeps it */
    int64_t vocabulary;
    char prefix[1024];    /* of the model's names in `in` */
    wg_module *module;    /* the tree without memory */
    wg_state_dict *state; /* all its names, tied ones included */
    int64_t count;        /* of its tensors, tied ones once */
    int64_t *entries;     /* (count) of the state */
    int64_t *source;      /* (state->count) the tensor's index in `in`, or -1: it is initialized */
    wg_weights_info *infos; /* (count) */
    wg_weights *adapter;    /* NULL: none is added */
    double scale;           /* of its products */
    int64_t rank;           /* of each of them */
    bool transposed;        /* the weights are (I, O) */
    int64_t *parts[3]; /* (state->count) each: indices in `adapter` of an entry's A and B, and of
                        * the tensor that replaces it; -1: none */
    wg_tokenizer *tokenizer;
    char *tokenizer_json; /* NULL: there is none */
    char *generation;     /* the generation_config.json of IN; NULL: there is none */
    int head;             /* a wg__head_kind; -1: none */
    int64_t bigrams;      /* rows of the model's table of bigrams */
    wg_model_sizes sizes;
} conversion;

static void note(const conversion *c, const char *message) {
    if (c->options->note)
        c->options->note(message, c->options->context);
}

static const char *list_types(char *text, size_t size) {
    const wg_model_type *type;
    text[0] = '\0';
    for (int i = 0; (type = wg_model_type_at(i)); i++)
        snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? ", " : "", type->model_type);
    return text;
}

/* The type that config.json names, or else the first whose marker is in the name of a tensor. */
static const wg_model_type *find_type(const conversion *c, wg_config *config) {
    char types[128];
    const char *name = NULL;
    if (wg__config_text(config, "model_type", &name) < 0)
        return NULL;
    const wg_model_type *type = NULL, *each;
    for (int t = 0; name && !type && (each = wg_model_type_at(t)); t++)
        type = wg__model_type_reads(each, name) ? each : NULL;
    for (int64_t i = 0; !name && !type && i < wg_weights_count(c->in); i++)
        for (int t = 0; !type && (each = wg_model_type_at(t)); t++)
            if (each->names.marker && strstr(wg_weights_name(c->in, i), each->names.marker))
                type = each;
    if (!type && name)
        wg_fail(WG_ERROR_FORMAT, WHERE, "model_type \"%.64s\" is not converted; these are: %s",
                name, list_types(types, sizeof types));
    else if (!type)
        wg_fail(WG_ERROR_FORMAT, WHERE,
                "config.json has no model_type, and the names of the tensors are not those of any "
                "of these: %s",
                list_types(types, sizeof types));
    return type;
}

static int make_module(conversion *c, const char *json, wg_config *object, const void *config) {
    const int head = c->head = wg__head_of_config(c->type, object);
    const bool meta = wg_set_meta_init(true);
    wg__headed_encoder *headed =
        head < 0 ? NULL : wg__headed_encoder_of(c->type, (wg__head_kind)head, json);
    c->module = head < 0 ? c->type->create(config, 0) : headed ? &headed->module : NULL;
    wg_set_meta_init(meta);
    if (!c->module)
        return -1;
    c->architecture = headed ? NULL : c->type->names.architecture; /* a head's is in the text */
    char *plain =
        headed ? wg__headed_encoder_config(headed) : wg_model_config_to_json(c->type, config);
    wg_config *own = plain ? wg__config_parse(plain, "config.json") : NULL;
    for (int i = 0; own && c->type->names.kept[i]; i++) {
        wg_config *part = wg__config_part(object, c->type->names.kept[i]);
        if (part)
            wg__config_set_part(own, c->type->names.kept[i], part);
        wg__config_free(part);
    }
    c->config = wg_error_pending() ? NULL : wg__config_to_json(own);
    wg__config_free(own);
    wg_text_free(plain);
    c->state = wg_module_state(c->module);
    return c->config && c->state ? 0 : -1;
}

static int read_model(conversion *c, const char *in) {
    char *json = c->options->config ? wg__read_whole(c->options->config, MOST_CONFIG, NULL)
                                    : wg__weights_find_config(c->in, in);
    if (!json && !wg_error_pending())
        wg_fail(WG_ERROR_NOT_FOUND, WHERE,
                "%s does not say its sizes, and there is no config.json %s it; name its "
                "configuration by --config",
                in, wg__is_folder(in) ? "in" : "beside");
    wg_config *object = json ? wg__config_parse(json, "config.json") : NULL;
    c->type = object ? find_type(c, object) : NULL;
    void *config = c->type ? wg__alloc(c->type->settings.size) : NULL;
    int status = config ? wg_model_config_from_json(c->type, json, config) : -1;
    if (status >= 0) {
        c->sizes = wg__model_config_sizes(c->type, config);
        c->vocabulary = wg__larger(c->sizes.vocabulary, c->sizes.source_vocabulary);
        const int64_t layers = wg__larger(c->sizes.layers, c->sizes.encoder_layers);
        status = layers > MOST_LAYERS
                     ? wg_fail(WG_ERROR_FORMAT, WHERE, "%lld layers; at most %d are converted",
                               (long long)layers, MOST_LAYERS)
                     : make_module(c, json, object, config);
        wg__config_integer(object, "bigram_vocab_size", &c->bigrams);
    }
    /* A setting may list several values, for example end tokens; its first value is kept. */
    for (int i = 0; status == 0 && i < c->type->settings.count; i++) {
        const wg_setting *row = &c->type->settings.rows[i];
        char text[160];
        snprintf(text, sizeof text,
                 "the configuration has several %s; the first one is kept, and the others do not "
                 "end a text",
                 row->name);
        if (row->list && json_array_size(wg__config_value(object, row->name)) > 1)
            note(c, text);
    }
    wg__free(config);
    wg__config_free(object);
    wg__free(json);
    return status;
}

enum { NO_TENSOR = -1, IGNORED = -2, COPY = -3 };

static int64_t entry_of_path(const conversion *c, const char *path) {
    for (int64_t i = 0; i < c->state->count; i++)
        if (strcmp(path, c->state->entries[i].path) == 0)
            return i;
    return NO_TENSOR;
}

/* The entry of the state that a file calls `name`, which may lack a prefix ("wte.weight",
 * "embeddings..."), or have an old name (LayerNorm.gamma). NO_TENSOR: not one of this model;
 * IGNORED: nothing is computed with it (masks); COPY: the model ties it to the entry *original. */
static int64_t find_entry(const conversion *c, const char *name, int64_t *original) {
    const wg_model_names *names = &c->type->names;
    char full[160];
    if (strlen(name) > 140)
        return NO_TENSOR;
    if (names->outer && wg__starts_with(name, names->outer))
        name += strlen(names->outer);
    /* A file of the bare model leaves a prefix out. */
    bool is_bare = names->prefix && !wg__starts_with(name, names->prefix);
    for (int i = 0; names->heads[i]; i++)
        is_bare = is_bare && !wg__starts_with(name, names->heads[i]);
    snprintf(full, sizeof full, "%s%s", is_bare ? names->prefix : "", name);
    if (wg__ends_with(full, "LayerNorm.gamma"))
        strcpy(full + strlen(full) - strlen("gamma"), "weight");
    else if (wg__ends_with(full, "LayerNorm.beta"))
        strcpy(full + strlen(full) - strlen("beta"), "bias");
    const int64_t entry = entry_of_path(c, full);
    if (entry >= 0 && !c->state->entries[entry].slot->tied)
        return entry;
    *original = entry >= 0 ? 0 : NO_TENSOR;
    while (entry >= 0 &&
           (c->state->entries[*original].slot->tied ||
            c->state->entries[*original].slot->tensor != c->state->entries[entry].slot->tensor))
        ++*original;
    for (int i = 0; entry < 0 && names->copies[i].end; i++)
        if (wg__ends_with(full, names->copies[i].end))
            *original = entry_of_path(c, names->copies[i].of);
    if (*original >= 0)
        return COPY;
    for (int i = 0; names->ignored[i]; i++)
        if (wg__ends_with(full, names->ignored[i]))
            return IGNORED;
    return NO_TENSOR;
}

/* Trainers save {"model": ..., "optimizer": ...}, and wrappers add a prefix to the names of the
 * model's tensors. If no tensor has a name of the model, the prefix is searched: "a.b." is a
 * candidate if the file has "a.b.NAME" and the model has a tensor NAME. */

enum { MOST_PREFIXES = 16, MOST_NAMES = 4096, MOST_DOTS = 8 };

typedef struct prefixes {
    int count;
    struct {
        char text[256];
        int64_t tensors; /* of the model below it */
    } items[MOST_PREFIXES];
} prefixes;

static void count_prefix(prefixes *found, const char *name, size_t length) {
    int i = 0;
    while (i < found->count && (strlen(found->items[i].text) != length ||
                                strncmp(found->items[i].text, name, length) != 0))
        i++;
    if (i == MOST_PREFIXES || length >= sizeof found->items[0].text)
        return;
    if (i == found->count) {
        found->items[i].tensors = 0;
        snprintf(found->items[i].text, sizeof found->items[i].text, "%.*s", (int)length, name);
        found->count++;
    }
    found->items[i].tensors++;
}

/* True for a prefix that trainers and wrappers use: "model._orig_mod.". */
static bool is_usual(const char *prefix) {
    static const char *const words[] = {"model",     "state_dict", "model_state_dict", "module",
                                        "_orig_mod", "net",        "network"};
    for (const char *end; (end = strchr(prefix, '.')); prefix = end + 1) {
        bool known = false;
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            known = known || (strlen(words[i]) == (size_t)(end - prefix) &&
                              strncmp(words[i], prefix, strlen(words[i])) == 0);
        if (!known)
            return false;
    }
    return true;
}

static const char *list_prefixes(const prefixes *found, const char *last, char *text, size_t size) {
    text[0] = '\0';
    for (int i = 0; i < found->count; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s\"%s\"",
                 i == 0                  ? ""
                 : i == found->count - 1 ? last
                                         : ", ",
                 found->items[i].text);
    return text;
}

static int check_prefix(const conversion *c) {
    prefixes found = {0};
    char text[512];
    for (int64_t i = 0; i < wg_weights_count(c->in); i++) {
        const char *name = wg_weights_name(c->in, i), *dot = strchr(name, '.');
        if (wg__starts_with(name, c->prefix))
            return 0;
        count_prefix(&found, name, dot ? (size_t)(dot - name + 1) : strlen(name));
    }
    return wg_fail(WG_ERROR_NOT_FOUND, WHERE, "no tensor begins with \"%s\"; they begin with %s",
                   c->prefix, list_prefixes(&found, ", ", text, sizeof text));
}

/* Finds the prefix of the model's names in the file; leaves "" if a tensor has a name of the model,
 * or no prefix is found. */
static int guess_prefix(conversion *c) {
    prefixes found = {0};
    char text[512];
    int64_t original;
    for (int64_t i = 0; i < wg_weights_count(c->in); i++)
        if (find_entry(c, wg_weights_name(c->in, i), &original) >= 0)
            return 0;
    /* Count the names of the model below each prefix. */
    const int64_t names = wg_weights_count(c->in);
    for (int64_t i = 0; i < names && i < MOST_NAMES; i++) {
        const char *name = wg_weights_name(c->in, i), *dot = name;
        for (int dots = 0; dots < MOST_DOTS && (dot = strchr(dot, '.')); dots++) {
            dot++;
            if (find_entry(c, dot, &original) >= 0)
                count_prefix(&found, name, (size_t)(dot - name));
        }
    }

    /* Keep the prefixes with the most names, the shortest of nested ones. */
    prefixes kept = {0};
    int64_t most = 0;
    for (int i = 0; i < found.count; i++)
        most = wg__larger(most, found.items[i].tensors);
    for (int i = 0; i < found.count; i++) {
        bool is_best = found.items[i].tensors == most;
        for (int j = 0; j < found.count; j++)
            if (j != i && found.items[j].tensors == most &&
                wg__starts_with(found.items[i].text, found.items[j].text))
                is_best = false;
        if (is_best)
            kept.items[kept.count++] = found.items[i];
    }
    found = kept;
    int usual = 0, choice = 0;
    for (int i = 0; i < found.count; i++)
        if (is_usual(found.items[i].text)) {
            choice = i;
            usual++;
        }
    if (found.count > 1 && usual != 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s hold this model; name one by --prefix",
                       list_prefixes(&found, " and ", text, sizeof text));
    if (found.count)
        snprintf(c->prefix, sizeof c->prefix, "%s", found.items[choice].text);
    return 0;
}

/* The file may have a tensor that the model ties to another tensor. The two must be equal: else the
 * file holds another model than its configuration describes. */
static int check_copies(const conversion *c) {
    for (int64_t i = 0; i < wg_weights_count(c->in); i++) {
        const char *name = wg_weights_name(c->in, i);
        int64_t original;
        if (!wg__starts_with(name, c->prefix) ||
            find_entry(c, name + strlen(c->prefix), &original) != COPY || c->source[original] < 0)
            continue;
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *x = wg_weights_read(c->in, i), *y = wg_weights_read(c->in, c->source[original]);
        if (x && y && wg_tensor_dtype(x) != wg_tensor_dtype(y)) {
            x = wg_cast(x, WG_F64);
            y = wg_cast(y, WG_F64);
        }
        int same = x && y ? wg__same_shape(&x->spec, &y->spec) : -1;
        if (same == 1)
            same = memcmp(wg__tensor_address(x), wg__tensor_address(y),
                          (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x))) == 0;
        wg_scope_end(&scope, NULL);
        if (same != 1) {
            if (same < 0)
                return -1;
            const char *kept = wg_weights_name(c->in, c->source[original]);
            const wg_setting *row = wg__settings_find(&c->type->settings, "tie_word_embeddings");
            /* not for T5: an untied head there means version 1.1 */
            if (row && row->kind == WG_SETTING_FLAG && !c->type->names.copies[0].end)
                return wg_fail(
                    WG_ERROR_FORMAT, WHERE,
                    "%s differs from %s, though the configuration ties them: set "
                    "\"tie_word_embeddings\": false in config.json to keep both, or take %s out "
                    "of the file",
                    name, kept, name);
            return wg_fail(
                WG_ERROR_FORMAT, WHERE,
                "%s differs from %s, and a %s has one tensor for both: keep the one that is meant "
                "in the file, as %s",
                name, kept, c->type->model_type, kept);
        }
    }
    return 0;
}

static int match(conversion *c, const char *in) {
    const size_t count = (size_t)c->state->count + 1;
    c->source = wg__alloc_array(count, sizeof *c->source);
    c->entries = wg__alloc_array(count, sizeof *c->entries);
    c->infos = wg__alloc_array(count, sizeof *c->infos);
    if (!c->source || !c->entries || !c->infos)
        return -1;
    for (size_t i = 0; i < count; i++)
        c->source[i] = -1;
    wg__differences differences = {0};
    wg__difference fresh = {0};
    char twice[1200];
    int64_t original;
    for (int64_t i = 0; i < wg_weights_count(c->in); i++) {
        const char *name = wg_weights_name(c->in, i);
        if (!wg__starts_with(name, c->prefix))
            continue;
        const int64_t found = find_entry(c, name + strlen(c->prefix), &original);
        if (found == NO_TENSOR)
            wg__note_difference(&differences.unexpected, name);
        if (found < 0)
            continue;
        if (c->source[found] >= 0) {
            snprintf(twice, sizeof twice, "%s, there already as %s", name,
                     wg_weights_name(c->in, c->source[found]));
            wg__note_difference(&differences.unexpected, twice);
            continue;
        }
        c->source[found] = i;
    }
    /* Fill `entries` and `infos`. Note tensors that IN lacks, tensors of another shape, and tensors
     * that are initialized anew. */
    for (int64_t i = 0; i < c->state->count; i++) {
        const wg_state_entry *entry = &c->state->entries[i];
        if (entry->slot->tied)
            continue;
        wg_weights_info *info = &c->infos[c->count];
        *info = (wg_weights_info){entry->path, entry->slot->tensor->spec};
        c->entries[c->count++] = i;
        if (c->source[i] >= 0) {
            const wg_spec *found = wg__weights_spec(c->in, c->source[i]);
            wg__note_spec(&differences, wg_weights_name(c->in, c->source[i]), found, &info->spec);
            info->spec.dtype = found->dtype;
        } else
            wg__note_difference(wg__model_may_lack(c->type, entry->path) ? &fresh
                                                                         : &differences.missing,
                                entry->path);
    }
    if (wg__check_differences(&differences, in, WHERE) < 0 || check_copies(c) < 0)
        return -1;
    if (fresh.count > 0) {
        char text[1024];
        snprintf(text, sizeof text, "not in the file, begun anew: %s", fresh.names);
        note(c, text);
    }
    return 0;
}

enum { PART_A, PART_B, PART_WHOLE };

/* The entry that a tensor of the adapter changes, and which part of the change it is. */
static int64_t find_part_of(const conversion *c, const char *name, int *part) {
    static const char *const ends[] = {".lora_A.weight", ".lora_B.weight"};
    char path[256];
    const size_t begin = strlen(WG__LORA_BEGINNING);
    if (!wg__starts_with(name, WG__LORA_BEGINNING) || strlen(name) >= sizeof path)
        return NO_TENSOR;
    snprintf(path, sizeof path, "%s", name + begin);
    *part = PART_WHOLE;
    for (int i = PART_A; i <= PART_B; i++)
        if (wg__ends_with(path, ends[i])) {
            *part = i;
            strcpy(path + strlen(path) - strlen(ends[i]), ".weight");
        }
    int64_t original;
    return find_entry(c, path, &original);
}

/* Opens the adapter and fills `parts`. Refuses an adapter whose tensors do not fit this model. */
static int read_adapter(conversion *c) {
    const char *folder = c->options->adapter;
    if (!folder)
        return 0;
    char *json = wg__lora_read_config(folder);
    wg__lora_config parsed = {0};
    const int status = json ? wg__lora_parse(json, folder, &parsed) : -1;
    c->scale = parsed.scale;
    c->rank = parsed.options.rank;
    c->transposed = parsed.transposed;
    wg__lora_parsed_clear(&parsed);
    wg__free(json);
    c->adapter = status == 0 ? wg__lora_open(folder) : NULL;
    for (int i = PART_A; c->adapter && i <= PART_WHOLE; i++) {
        c->parts[i] = wg__alloc_array(c->state->count + 1, sizeof *c->parts[i]);
        if (!c->parts[i])
            return -1;
        for (int64_t j = 0; j < c->state->count; j++)
            c->parts[i][j] = -1;
    }
    if (!c->adapter)
        return -1;
    wg__differences differences = {0};
    int64_t adapted = 0;
    for (int64_t i = 0; i < wg_weights_count(c->adapter); i++) {
        int part = PART_WHOLE;
        const char *name = wg_weights_name(c->adapter, i);
        const int64_t entry = find_part_of(c, name, &part);
        if (entry < 0) {
            wg__note_difference(&differences.unexpected, name);
            continue;
        }
        c->parts[part][entry] = i;
        adapted += part == PART_A;
        const wg_spec *found = wg__weights_spec(c->adapter, i),
                      *wanted = &c->state->entries[entry].slot->tensor->spec;
        if (part == PART_WHOLE)
            wg__note_spec(&differences, name, found, wanted);
        else if (found->ndim != 2 || found->shape[part] != c->rank) /* A is (r, I), B (O, r) */
            wg__note_difference(&differences.misshapen, name);
    }
    for (int64_t i = 0; i < c->state->count; i++)
        if ((c->parts[PART_A][i] < 0) != (c->parts[PART_B][i] < 0))
            wg__note_difference(&differences.missing, c->state->entries[i].path);
    if (wg__check_differences(&differences, folder, WHERE) < 0)
        return -1;
    char text[128];
    snprintf(text, sizeof text, "the adapter is added to %lld weights", (long long)adapted);
    note(c, text);
    return 0;
}

static wg_tensor *add_adapter(const conversion *c, int64_t entry, wg_tensor *x) {
    if (!c->adapter || !x)
        return x;
    const wg_dtype dtype = wg_tensor_dtype(x);
    if (c->parts[PART_WHOLE][entry] >= 0)
        return wg_cast(wg_weights_read(c->adapter, c->parts[PART_WHOLE][entry]), dtype);
    if (c->parts[PART_A][entry] < 0)
        return x;
    wg_tensor *a = wg_weights_read(c->adapter, c->parts[PART_A][entry]),
              *b = wg_weights_read(c->adapter, c->parts[PART_B][entry]);
    return wg_cast(wg__lora_merged(wg_cast(x, WG_F32), wg_cast(a, WG_F32), wg_cast(b, WG_F32),
                                   c->scale, c->transposed),
                   dtype);
}

static int read_tokenizer(conversion *c, const char *in) {
    c->tokenizer = c->options->tokenizer ? wg_tokenizer_load(c->options->tokenizer)
                                         : wg__weights_find_tokenizer(c->in, in);
    if (wg_error_pending())
        return -1;
    if (!c->tokenizer) {
        char text[320] = "no tokenizer was found";
        if (c->in->tokenizer_refused)
            snprintf(text, sizeof text, "the tokenizer of the file is left out: %.200s",
                     c->in->tokenizer_refused);
        strcat(text, "; name one by --tokenizer if it is to read and write text");
        note(c, text);
        return 0;
    }
    if (wg_tokenizer_size(c->tokenizer) > c->vocabulary)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "the tokenizer has %lld tokens; the model has only %lld",
                       (long long)wg_tokenizer_size(c->tokenizer), (long long)c->vocabulary);
    c->tokenizer_json = wg_tokenizer_to_json(c->tokenizer);
    return c->tokenizer_json ? 0 : -1;
}

static int write_tensors(conversion *c, const char *path, const char *format) {
    const wg_weights_options options = {
        .type = c->options->type,
        .config = c->config,
        .tokenizer = c->tokenizer_json,
        .generation = c->generation,
        .version = c->options->version,
        .shard_bytes = c->options->shard_bytes,
    };
    wg_weights_writer *writer = wg_weights_create(path, format, &options, c->count, c->infos);
    wg_generator generator = {0};
    int status = writer ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < c->count; i++) {
        const int64_t entry = c->entries[i], source = c->source[entry];
        const wg_spec *spec = &c->infos[i].spec;
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *x = source >= 0 ? wg_weights_read(c->in, source)
                                   : wg_empty(spec->dtype, spec->ndim, spec->shape);
        if (source < 0 && wg_initialize(x, &c->state->entries[entry].slot->init, &generator) < 0)
            x = NULL;
        status = wg_weights_put(writer, i, add_adapter(c, entry, x));
        wg_scope_end(&scope, NULL);
    }
    if (status == 0)
        return wg_weights_commit(writer);
    wg_weights_abort(writer);
    return -1;
}

int wg__write_in(const char *folder, const char *name, const char *bytes, int64_t count) {
    char *path = wg__path_in(folder, name);
    count = count < 0 ? (int64_t)strlen(bytes) : count;
    const int status = path ? wg__write_whole(path, bytes, count, false) : -1;
    wg__free(path);
    return status;
}

/* Writes the tokenizer: copies of the published files that `from`, a folder or a file, has; else
 * the files of its kind. *published is false if its kind has none: then it is wengert.json. */
static int write_tokenizer(const char *folder, const char *from, const wg_tokenizer *tokenizer,
                           bool *published) {
    const char *const *name =
        WG__KEYS("wengert.json", "tokenizer.json", "tokenizer_config.json",
                 "special_tokens_map.json", "tokenizer.model", "vocab.json", "merges.txt",
                 "vocab.txt", "tokenizer.bin", "added_tokens.json");
    int status = 0, copied = 0;
    for (; status == 0 && *name; name++) {
        const char *slash = strrchr(from, '/'), *base = slash ? slash + 1 : from;
        char *path = wg__is_folder(from) ? wg__path_in(from, *name) : NULL;
        if (!path && strcmp(base, *name) == 0 && /* these are a tokenizer by themselves */
            (strcmp(base, "tokenizer.json") == 0 || strcmp(base, "tokenizer.model") == 0))
            path = wg__strdup(from);
        if (wg__is_file(path)) {
            int64_t count;
            char *bytes = wg__read_whole(path, MOST_TOKENIZER, &count);
            status = bytes ? wg__write_in(folder, *name, bytes, count) : -1;
            wg__free(bytes);
            copied++;
        }
        wg__free(path);
    }
    *published = true;
    if (status < 0 || wg_error_pending())
        return -1;
    return copied ? 0 : wg_tokenizer_export(tokenizer, folder, published);
}

static int write_folder(conversion *c, const char *in, const char *out) {
    char *path = wg__path_in(out, "model.safetensors");
    int status = path ? write_tensors(c, path, "safetensors") : -1;
    wg__free(path);
    if (status == 0) {
        const char *rest = strchr(c->config, '{');
        char text[128] = "{";
        if (c->architecture)
            snprintf(text, sizeof text, "{\n  \"architectures\": [\"%s\"],", c->architecture);
        wg__text buffer = {0};
        status = -1;
        if (rest && wg__text_append(&buffer, text, (int64_t)strlen(text)) == 0 &&
            wg__text_append(&buffer, rest + 1, (int64_t)strlen(rest + 1)) == 0)
            status = wg__write_in(out, "config.json", buffer.bytes, buffer.length);
        wg__free(buffer.bytes);
    }
    if (status == 0 && c->tokenizer) {
        const char *from = c->options->tokenizer ? c->options->tokenizer : in;
        bool kept = false;
        status = write_tokenizer(out, from, c->tokenizer, &kept);
        if (status == 0 && !kept)
            note(c, "this kind of tokenizer is written in wengert's own format: wengert.json");
    }
    const wg__card card = {.in = in,
                           .folder = out,
                           .type = c->type,
                           .head = c->head,
                           .sizes = c->sizes,
                           .numbers = wg_module_parameter_count(c->module),
                           .generation = c->generation};
    if (status == 0)
        status = wg__write_generation_config(&card);
    if (status == 0)
        status = wg__write_model_card(&card);
    return status;
}

static int write_out(conversion *c, const char *in, const char *out, const char *format) {
    if (format) {
        if (write_tensors(c, out, format) < 0)
            return -1;
        if (strcmp(format, "safetensors") == 0)
            note(c, "a safetensors file keeps neither configuration nor tokenizer; a folder does");
        else if (c->tokenizer && !wg__weights_keeps_tokenizer(format, c->tokenizer_json))
            note(c,
                 strcmp(format, "gguf") == 0
                     ? "GGUF has no tokenizer of this kind: it is dropped, and the file can only "
                       "be given ids"
                     : "this format keeps no tokenizer");
        return 0;
    }
    const bool made = mkdir(out, 0777) == 0;
    int status = made || errno == EEXIST ? 0 : wg__fail_with_errno(out, WHERE);
    if (status == 0)
        status = write_folder(c, in, out);
    if (status < 0 && made) {
        /* Remove a folder that was made here, with the files that were written into it. */
        DIR *folder = opendir(out);
        for (const struct dirent *entry; folder && (entry = readdir(folder));)
            unlinkat(dirfd(folder), entry->d_name, 0);
        if (folder)
            closedir(folder);
        rmdir(out);
    }
    return status;
}

static int export_adapter(conversion *c, const char *in, const char *out,
                          wg_convert_summary *summary) {
    const wg_model_type *type = wg_model_type_of(in);
    if (!type || wg_lora_export(in, type->names.outer, out) < 0)
        return -1;
    c->adapter = wg__lora_open(out);
    if (!c->adapter)
        return -1;
    *summary = (wg_convert_summary){.type = type->model_type,
                                    .from = "hdf5",
                                    .to = "adapter",
                                    .tensors = wg_weights_count(c->adapter)};
    for (int64_t i = 0; i < summary->tensors; i++)
        summary->numbers += wg__spec_count(wg__weights_spec(c->adapter, i));
    return 0;
}

static int convert(conversion *c, const char *in, const char *out, wg_convert_summary *summary) {
    wg_convert_summary unread;
    if (c->options->adapter_only)
        return export_adapter(c, in, out, summary ? summary : &unread);
    const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out;
    const bool is_folder = wg__is_folder(out) || !*name;
    const char *format = is_folder ? NULL : wg__weights_format_by_suffix(name);
    if (!is_folder && !format && strchr(name, '.'))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "%s has none of the suffixes .h5, .safetensors, .gguf and .bin "
                       "(llama2.c's); a name without a dot is a folder",
                       out);
    c->in = wg_weights_open(in);
    if (!c->in || read_model(c, in) < 0)
        return -1;
    if (c->bigrams > 0 && !(format && strcmp(format, "hdf5") == 0))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the model has a table of bigrams (bigram_vocab_size), which no other "
                       "program reads; write it to a name that ends in .h5");
    if (c->options->prefix)
        snprintf(c->prefix, sizeof c->prefix, "%s", c->options->prefix);
    if ((c->options->prefix ? check_prefix(c) : guess_prefix(c)) < 0)
        return -1;
    int64_t below = 0;
    for (int64_t i = 0; i < wg_weights_count(c->in); i++)
        below += wg__starts_with(wg_weights_name(c->in, i), c->prefix);
    char text[1200], others[64] = "";
    if (below < wg_weights_count(c->in))
        snprintf(others, sizeof others, "; the other %lld are left out",
                 (long long)(wg_weights_count(c->in) - below));
    snprintf(text, sizeof text, "the model is the %lld tensors below \"%s\"%s", (long long)below,
             c->prefix, others);
    if (*c->prefix)
        note(c, text);
    if (match(c, in) < 0 || read_adapter(c) < 0)
        return -1;
    c->generation = wg__find_generation_config(in);
    if (wg_error_pending() || read_tokenizer(c, in) < 0 || write_out(c, in, out, format) < 0)
        return -1;
    if (summary)
        *summary = (wg_convert_summary){
            .type = c->type->model_type,
            .from = wg__weights_format_name(c->in),
            .to = format ? format : "folder",
            .tensors = c->count,
            .numbers = wg_module_parameter_count(c->module),
            .tokenizer = format ? wg__weights_keeps_tokenizer(format, c->tokenizer_json)
                                : c->tokenizer != NULL,
        };
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
    wg__free(c.generation);
    wg_text_free(c.config);
    wg_state_dict_free(c.state);
    wg_module_free(c.module);
    wg_weights_close(c.in);
    wg_weights_close(c.adapter);
    for (int i = 0; i < 3; i++)
        wg__free(c.parts[i]);
    wg__free(c.source);
    wg__free(c.entries);
    wg__free(c.infos);
    return status;
}
