/* Reading GGUF's header, metadata and list of tensors, and writing its values. See internal.h.
 *
 * The header is read through a window, and a count is only accepted if the file has bytes for its
 * items. */
#include "formats/internal.h"

#include <math.h>
#include <string.h>

#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

enum { WINDOW = 65536, MOST_TEXT = 1 << 24, MOST_KEYS = 65536, MOST_VALUES = 1 << 24 };

static const struct {
    uint32_t type;
    wg__storage_dtype storage;
} types[] = {
    {0, WG__STORAGE_F32},  {1, WG__STORAGE_F16},  {2, WG__STORAGE_Q4_0}, {8, WG__STORAGE_Q8_0},
    {26, WG__STORAGE_I32}, {27, WG__STORAGE_I64}, {28, WG__STORAGE_F64}, {30, WG__STORAGE_BF16},
};

uint32_t wg__gguf_type_of(wg__storage_dtype storage) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].storage == storage)
            return types[i].type;
    return 0;
}

/* ---- Reading ---- */

typedef struct cursor {
    wg_weights *file;
    const wg__input *input;
    int64_t at;           /* offset in the file */
    int64_t begin, count; /* of the bytes in the window */
    uint8_t *window;
} cursor;

/* The next `count` bytes, no more than the window, or NULL. */
static const uint8_t *read_bytes(cursor *c, int64_t count) {
    if (c->at + count > c->begin + c->count || c->at < c->begin) {
        const int64_t rest = c->input->size - c->at, room = rest < WINDOW ? rest : WINDOW;
        if (count > rest) {
            wg__weights_fail(c->file, "ends in the middle of its header, at byte %lld",
                             (long long)c->at);
            return NULL;
        }
        if (wg__input_read(c->input, c->at, c->window, room) < 0)
            return NULL;
        c->begin = c->at;
        c->count = room;
    }
    const uint8_t *bytes = c->window + (c->at - c->begin);
    c->at += count;
    return bytes;
}

/* Reads an unsigned number of 4 or 8 bytes. */
static int read_number(cursor *c, int size, uint64_t *value) {
    const uint8_t *bytes = read_bytes(c, size);
    *value = !bytes ? 0 : size == 4 ? wg__le32(bytes) : wg__le64(bytes);
    return bytes ? 0 : -1;
}

/* Reads a count of items that take at least `size` bytes each. */
static int read_count(cursor *c, const char *what, int64_t size, int64_t most, int64_t *count) {
    uint64_t value;
    if (read_number(c, 8, &value) < 0)
        return -1;
    if (value > (uint64_t)most || (int64_t)value > (c->input->size - c->at) / size)
        return wg__weights_fail(c->file, "%llu %s at byte %lld; the file has no room for them",
                                (unsigned long long)value, what, (long long)c->at);
    *count = (int64_t)value;
    return 0;
}

/* The caller frees *text with wg__free; its length is less than 2^24. */
static int read_string(cursor *c, char **text, int64_t *length) {
    if (read_count(c, "bytes of a text", 1, MOST_TEXT, length) < 0)
        return -1;
    *text = wg__alloc((size_t)*length + 1);
    if (!*text)
        return -1;
    for (int64_t done = 0; done < *length;) {
        const int64_t part = *length - done < WINDOW ? *length - done : WINDOW;
        const uint8_t *bytes = read_bytes(c, part);
        if (!bytes) {
            wg__free(*text);
            return -1;
        }
        memcpy(*text + done, bytes, (size_t)part);
        done += part;
    }
    (*text)[*length] = '\0';
    return 0;
}

/* The bytes of a value of each type; of texts and lists the fewest. */
static const int8_t sizes[WG__GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

static json_t *read_scalar(cursor *c, uint64_t type) {
    if (type == WG__GGUF_STRING) {
        /* A text that is not UTF-8 becomes null: a token may be any bytes. */
        char *text;
        int64_t length;
        if (read_string(c, &text, &length) < 0)
            return NULL;
        json_t *value =
            wg__utf8_invalid(text, length) < 0 ? json_stringn(text, (size_t)length) : json_null();
        wg__free(text);
        return value;
    }
    const uint8_t *bytes = read_bytes(c, sizes[type]);
    float single;
    double real;
    uint64_t bits = 0;
    if (!bytes)
        return NULL;
    for (int i = 0; i < sizes[type]; i++)
        bits |= (uint64_t)bytes[i] << 8 * i;
    const uint32_t low = (uint32_t)bits;
    switch (type) {
    case WG__GGUF_I8:
        return json_integer((int8_t)bits);
    case WG__GGUF_I16:
        return json_integer((int16_t)bits);
    case WG__GGUF_I32:
        return json_integer((int32_t)bits);
    case WG__GGUF_F32:
        memcpy(&single, &low, sizeof single);
        return isfinite(single) ? json_real((double)single) : json_null();
    case WG__GGUF_F64:
        memcpy(&real, &bits, sizeof real);
        return isfinite(real) ? json_real(real) : json_null();
    case WG__GGUF_BOOL:
        return json_boolean(bits);
    case WG__GGUF_U64: /* nothing that is counted exceeds 2^63 - 1 */
        return bits > INT64_MAX ? json_null() : json_integer((json_int_t)bits);
    default:
        return json_integer((json_int_t)bits);
    }
}

/* Refuses lists of lists: no key that is read has them. */
static json_t *read_list(cursor *c, const char *key) {
    uint64_t type;
    int64_t count;
    if (read_number(c, 4, &type) < 0)
        return NULL;
    if (type >= WG__GGUF_TYPES || type == WG__GGUF_ARRAY) {
        wg__weights_fail(c->file, "%.100s is a list of values of type %u, which are not read", key,
                         (unsigned)type);
        return NULL;
    }
    if (read_count(c, "values of a list", sizes[type], MOST_VALUES, &count) < 0)
        return NULL;
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(list, read_scalar(c, type)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* Offsets count from the end of the header, which is not known yet. */
static int read_info(cursor *c, wg__weights_entry *entry, const char *name) {
    uint64_t offset, ndim, type;
    if (read_number(c, 4, &ndim) < 0)
        return -1;
    if (ndim > WG_MAX_DIMS)
        return wg__weights_fail(c->file, "%.200s has %u dimensions; at most %d are read", name,
                                (unsigned)ndim, WG_MAX_DIMS);
    entry->spec.ndim = (int)ndim;
    for (int i = (int)ndim - 1; i >= 0; i--) {
        uint64_t size;
        if (read_number(c, 8, &size) < 0)
            return -1;
        if (size > INT64_MAX)
            return wg__weights_fail(c->file, "%.200s has a size of %llu", name,
                                    (unsigned long long)size);
        entry->spec.shape[i] = (int64_t)size;
    }
    if (read_number(c, 4, &type) < 0 || read_number(c, 8, &offset) < 0)
        return -1;
    const size_t known = sizeof types / sizeof types[0];
    size_t at = 0;
    while (at < known && types[at].type != type)
        at++;
    if (at == known)
        return wg__weights_fail(c->file,
                                "%.200s is of ggml's type %u; F32, F16, BF16, Q8_0 and Q4_0 are "
                                "read",
                                name, (unsigned)type);
    entry->storage = types[at].storage;
    entry->spec.dtype = wg__storage_kinds[entry->storage].read_as;
    entry->bytes = wg__storage_bytes(entry->storage, entry->spec.ndim, entry->spec.shape);
    if (entry->bytes < 0)
        return wg__weights_fail(c->file, "%.200s has too large a shape, or rows of no whole blocks",
                                name);
    if (offset > (uint64_t)c->input->size)
        return wg__weights_fail(c->file, "%.200s begins beyond the end, at %llu", name,
                                (unsigned long long)offset);
    entry->offset = (int64_t)offset;
    return 0;
}

static int read_tensor(cursor *c) {
    char *name;
    int64_t length;
    wg__weights_entry entry = {0};
    if (read_string(c, &name, &length) < 0)
        return -1;
    int status = strlen(name) == (size_t)length
                     ? read_info(c, &entry, name)
                     : wg__weights_fail(c->file, "a tensor's name holds a NUL");
    const int64_t offset = entry.offset;
    entry.offset = 0; /* place_tensors checks the bytes */
    if (status == 0)
        status = wg__weights_add(c->file, name, &entry);
    if (status == 0)
        c->file->entries[c->file->count - 1].offset = offset;
    wg__free(name);
    return status;
}

static int read_header(cursor *c, json_t *metadata) {
    const uint8_t *magic = read_bytes(c, 4);
    uint64_t version;
    int64_t tensors, keys, alignment;
    if (!magic)
        return -1;
    if (memcmp(magic, "GGUF", 4) != 0)
        return wg__weights_fail(c->file, "does not begin with GGUF");
    if (read_number(c, 4, &version) < 0)
        return -1;
    if (version != 2 && version != 3)
        return wg__weights_fail(c->file, "is version %u of GGUF, or big-endian; 2 and 3 are read",
                                (unsigned)version);
    if (read_count(c, "tensors", 25, WG__MAX_TENSORS, &tensors) < 0 ||
        read_count(c, "keys", 13, MOST_KEYS, &keys) < 0)
        return -1;
    for (int64_t i = 0; i < keys; i++) {
        char *key;
        int64_t length;
        uint64_t type;
        if (read_string(c, &key, &length) < 0)
            return -1;
        int status = read_number(c, 4, &type);
        if (status == 0 && (length == 0 || strlen(key) != (size_t)length || length > 1024))
            status = wg__weights_fail(c->file, "has a key without a length of 1 to 1024 bytes");
        if (status == 0 && type >= WG__GGUF_TYPES)
            status =
                wg__weights_fail(c->file, "%.100s is of the unknown type %u", key, (unsigned)type);
        if (status == 0 && json_object_get(metadata, key))
            status = wg__weights_fail(c->file, "%.100s stands twice in it", key);
        json_t *value = NULL;
        if (status == 0)
            value = type == WG__GGUF_ARRAY ? read_list(c, key) : read_scalar(c, type);
        if (status == 0 && (!value || json_object_set_new(metadata, key, value) < 0))
            status =
                wg__weights_fail(c->file, "a key or value cannot be taken: no UTF-8 or no memory");
        wg__free(key);
        if (status < 0)
            return -1;
    }
    for (int64_t i = 0; i < tensors; i++)
        if (read_tensor(c) < 0)
            return -1;
    const json_t *given = json_object_get(metadata, "general.alignment");
    alignment = given ? json_integer_value(given) : 32;
    if (alignment < 1 || alignment > 65536 || (alignment & (alignment - 1)) != 0)
        return wg__weights_fail(c->file, "general.alignment is no power of two up to 65536");
    const int64_t data = (c->at + alignment - 1) / alignment * alignment, size = c->input->size;
    for (int64_t i = 0; i < c->file->count; i++) {
        wg__weights_entry *entry = &c->file->entries[i];
        if (entry->offset % alignment != 0)
            return wg__weights_fail(c->file, "%.200s begins at %lld, no multiple of %lld",
                                    entry->name, (long long)entry->offset, (long long)alignment);
        entry->offset += data;
        if (entry->offset > size || entry->bytes > size - entry->offset)
            return wg__weights_fail(c->file, "%.200s: %lld bytes at %lld are beyond the end, %lld",
                                    entry->name, (long long)entry->bytes, (long long)entry->offset,
                                    (long long)size);
    }
    return wg__weights_check_overlap(c->file);
}

int wg__gguf_read(wg_weights *file, json_t **metadata) {
    cursor c = {.file = file, .input = &file->files[0], .window = wg__alloc(WINDOW)};
    *metadata = c.window ? json_object() : NULL;
    const int status = *metadata ? read_header(&c, *metadata) : -1;
    if (status < 0) {
        json_decref(*metadata);
        *metadata = NULL;
    }
    wg__free(c.window);
    return status;
}

/* ---- Writing ---- */

void wg__gguf_append(wg__text *header, uint32_t type, uint64_t bits) {
    uint8_t bytes[8];
    wg__put_le(bytes, bits, 8);
    wg__text_append(header, bytes, sizes[type]);
}

uint32_t wg__gguf_f32(double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

void wg__gguf_append_string(wg__text *header, const char *text, size_t length) {
    wg__gguf_append(header, WG__GGUF_U64, length);
    wg__text_append(header, text, (int64_t)length);
}

static void add_key(wg__text *header, const char *key, uint32_t type) {
    wg__gguf_append_string(header, key, strlen(key));
    wg__gguf_append(header, WG__GGUF_U32, type);
}

void wg__gguf_write_text(wg__text *header, const char *key, const char *value) {
    add_key(header, key, WG__GGUF_STRING);
    wg__gguf_append_string(header, value, strlen(value));
}

void wg__gguf_write(wg__text *header, const char *key, uint32_t type, uint64_t bits) {
    add_key(header, key, type);
    wg__gguf_append(header, type, bits);
}

void wg__gguf_write_array(wg__text *header, const char *key, uint32_t type, uint64_t count) {
    add_key(header, key, WG__GGUF_ARRAY);
    wg__gguf_append(header, WG__GGUF_U32, type);
    wg__gguf_append(header, WG__GGUF_U64, count);
}
