/* Reads the tensors of a zip that torch.save wrote:
 *
 *     NAME/data.pkl    a pickle that makes a dict of tensors, each of a storage
 *     NAME/data/0...   the storages' bytes, stored as they are
 *
 * A pickle is a program for a stack machine. This reader knows only the instructions that a dict of
 * tensors needs, and makes nothing but the values below: no code is ever looked up or run. Every
 * instruction makes at most one value, and values live until the end, so the pickle's length bounds
 * the memory. */
#include "base/array.h"
#include "io/weights/file.h"
#include "tensor/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_SIZE = 22,     /* of the record that ends a zip, without its comment */
    LOCATOR_SIZE = 20, /* of zip64's, before it */
    END_64_SIZE = 56,  /* of zip64's own end record */
    CENTRAL_SIZE = 46, /* of an entry in the directory, without its texts */
    LOCAL_SIZE = 30,   /* of the header before its bytes */
    MOST_ENTRIES = 1000000,
    MOST_DEPTH = 8,        /* of dicts in dicts */
    MOST_VISITS = 4000000, /* of values in dicts: a dict may hold one dict many times */
    MOST_PICKLE = 1 << 25
};

#define SIGNATURE_END 0x06054b50u
#define SIGNATURE_LOCATOR 0x07064b50u
#define SIGNATURE_END_64 0x06064b50u
#define SIGNATURE_CENTRAL 0x02014b50u
#define SIGNATURE_LOCAL 0x04034b50u

/* ---- The zip's directory ---- */

typedef struct zip_entry {
    char *name;
    int64_t offset, size; /* of its bytes */
} zip_entry;

typedef struct archive {
    int64_t count;
    zip_entry *entries; /* sorted by name */
} archive;

typedef struct directory {
    uint64_t entries, size, offset;
} directory;

static int bad(const wg_weights *file, const char *what) {
    return wg__weights_fail(file, "is no zip of torch.save, or damaged or cut short: %s", what);
}

/* Finds the end record. torch.save writes no comment, so the record ends the file. */
static int find_directory(const wg_weights *file, const wg__input *input, directory *found) {
    uint8_t end[END_SIZE], locator[LOCATOR_SIZE], end_64[END_64_SIZE];
    const int64_t at = input->size - END_SIZE;
    if (at < 0)
        return bad(file, "it is too short");
    if (wg__input_read(input, at, end, END_SIZE) < 0)
        return -1;
    if (wg__le32(end) != SIGNATURE_END || wg__le16(end + 20) != 0)
        return bad(file, "there is no directory at its end");
    if (wg__le16(end + 4) != 0 && wg__le16(end + 4) != UINT16_MAX)
        return bad(file, "it is one of several parts");
    *found = (directory){wg__le16(end + 10), wg__le32(end + 12), wg__le32(end + 16)};
    if (found->entries != UINT16_MAX && found->size != UINT32_MAX && found->offset != UINT32_MAX)
        return 0;
    if (at < LOCATOR_SIZE || wg__input_read(input, at - LOCATOR_SIZE, locator, LOCATOR_SIZE) < 0)
        return -1;
    if (wg__le32(locator) != SIGNATURE_LOCATOR)
        return 0; /* no zip64: the numbers happen to be the largest */
    const uint64_t where = wg__le64(locator + 8);
    if (where > (uint64_t)input->size)
        return bad(file, "the directory is beyond the end");
    if (wg__input_read(input, (int64_t)where, end_64, END_64_SIZE) < 0)
        return -1;
    if (wg__le32(end_64) != SIGNATURE_END_64)
        return bad(file, "there is no zip64 directory at its offset");
    *found = (directory){wg__le64(end_64 + 32), wg__le64(end_64 + 40), wg__le64(end_64 + 48)};
    return 0;
}

/* Reads the numbers beyond 32 bits from the extra field, in the order of the parameters. */
static int read_extra(const uint8_t *extra, int64_t count, uint64_t *size, uint64_t *packed,
                      uint64_t *offset) {
    uint64_t *const places[] = {size, packed, offset};
    for (int64_t at = 0; at + 4 <= count;) {
        const int id = wg__le16(extra + at), length = wg__le16(extra + at + 2);
        at += 4;
        if (length > count - at)
            return -1;
        int64_t used = 0;
        for (int i = 0; id == 1 && i < 3; i++)
            if (*places[i] == UINT32_MAX) {
                if (used + 8 > length)
                    return -1;
                *places[i] = wg__le64(extra + at + used);
                used += 8;
            }
        at += length;
    }
    return 0;
}

/* Reads one entry of the directory, which has `room` bytes left. The entry's length, or -1. */
static int64_t read_entry(const wg_weights *file, const wg__input *input, const uint8_t *bytes,
                          int64_t room, zip_entry *entry) {
    if (room < CENTRAL_SIZE || wg__le32(bytes) != SIGNATURE_CENTRAL)
        return bad(file, "the directory has another form");
    const int64_t name = wg__le16(bytes + 28), extra = wg__le16(bytes + 30),
                  length = CENTRAL_SIZE + name + extra + wg__le16(bytes + 32);
    if (length > room)
        return bad(file, "the directory ends in the middle of an entry");
    if (wg__le16(bytes + 8) & 1 || wg__le16(bytes + 10) != 0)
        return bad(file, "an entry is compressed or encrypted; torch.save stores them as they are");
    uint64_t packed = wg__le32(bytes + 20), size = wg__le32(bytes + 24),
             local = wg__le32(bytes + 42);
    const char *text = (const char *)bytes + CENTRAL_SIZE;
    if (read_extra(bytes + CENTRAL_SIZE + name, extra, &size, &packed, &local) < 0 ||
        packed != size || size > INT64_MAX || memchr(text, '\0', (size_t)name))
        return bad(file, "an entry's sizes or name make no sense");
    entry->name = wg__calloc((size_t)name + 1, 1);
    if (!entry->name)
        return -1;
    memcpy(entry->name, text, (size_t)name);
    entry->size = (int64_t)size;
    /* The entry's bytes follow a second header, whose texts may have other lengths. */
    uint8_t header[LOCAL_SIZE];
    if (local > (uint64_t)input->size)
        return bad(file, "an entry is beyond the end");
    if (wg__input_read(input, (int64_t)local, header, LOCAL_SIZE) < 0)
        return -1;
    if (wg__le32(header) != SIGNATURE_LOCAL)
        return bad(file, "an entry is not where the directory says");
    entry->offset = (int64_t)local + LOCAL_SIZE + wg__le16(header + 26) + wg__le16(header + 28);
    if (entry->offset > input->size || entry->size > input->size - entry->offset)
        return bad(file, "an entry's bytes are beyond the end");
    return length;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const zip_entry *)a)->name, ((const zip_entry *)b)->name);
}

static int compare_offsets(const void *a, const void *b) {
    const int64_t x = ((const zip_entry *)a)->offset, y = ((const zip_entry *)b)->offset;
    return (x > y) - (x < y);
}

static int read_entries(const wg_weights *file, const wg__input *input, const uint8_t *bytes,
                        int64_t size, uint64_t count, archive *zip) {
    zip->entries = wg__calloc((size_t)count + 1, sizeof *zip->entries);
    if (!zip->entries)
        return -1;
    for (int64_t at = 0; zip->count < (int64_t)count;) {
        const int64_t length =
            read_entry(file, input, bytes + at, size - at, &zip->entries[zip->count]);
        zip->count += zip->entries[zip->count].name != NULL;
        if (length < 0)
            return -1;
        at += length;
    }
    const size_t entries = (size_t)zip->count;
    qsort(zip->entries, entries, sizeof *zip->entries, compare_offsets);
    for (size_t i = 1; i < entries; i++)
        if (zip->entries[i].offset < zip->entries[i - 1].offset + zip->entries[i - 1].size)
            return bad(file, "two entries share bytes");
    qsort(zip->entries, entries, sizeof *zip->entries, compare_names);
    for (size_t i = 1; i < entries; i++)
        if (compare_names(&zip->entries[i - 1], &zip->entries[i]) == 0)
            return bad(file, "two entries have one name");
    return 0;
}

/* Lists a zip, zip64 too. Refuses entries that are compressed or encrypted, names that occur twice
 * and bytes that belong to two entries. The caller frees the entries in every case. */
static int read_directory(const wg_weights *file, int index, archive *zip) {
    const wg__input *input = &file->files[index];
    directory found = {0};
    *zip = (archive){0};
    if (find_directory(file, input, &found) < 0)
        return wg_error_pending() ? -1 : bad(file, "it is too short");
    const uint64_t size = (uint64_t)input->size;
    if (found.offset > size || found.size > size - found.offset || found.entries > MOST_ENTRIES ||
        found.entries > found.size / CENTRAL_SIZE)
        return bad(file, "the directory does not fit the file");
    uint8_t *bytes = wg__alloc((size_t)found.size + 1);
    int status =
        bytes ? wg__input_read(input, (int64_t)found.offset, bytes, (int64_t)found.size) : -1;
    if (status == 0)
        status = read_entries(file, input, bytes, (int64_t)found.size, found.entries, zip);
    wg__free(bytes);
    return status;
}

static const zip_entry *find_entry(const archive *zip, const char *name) {
    const zip_entry key = {.name = (char *)name};
    return zip->count ? bsearch(&key, zip->entries, (size_t)zip->count, sizeof key, compare_names)
                      : NULL;
}

/* ---- The pickle's values ---- */

typedef struct pickled_storage {
    wg__storage_dtype dtype;
    char key[64]; /* its file is NAME/data/KEY */
    int64_t elements;
} pickled_storage;

typedef struct pickled_tensor {
    pickled_storage storage;
    int64_t offset; /* in elements */
    int ndim;
    int64_t shape[WG_MAX_DIMS], strides[WG_MAX_DIMS];
} pickled_tensor;

typedef enum value_kind {
    NOTHING, /* None or a float: not used here */
    TRUTH,
    INTEGER,
    TEXT,
    SEQUENCE, /* tuple or list: `items` */
    DICT,     /* `items`: key, value, key, value... */
    GLOBAL,
    STORAGE,
    TENSOR,
    MARK
} value_kind;

typedef struct value {
    value_kind kind;
    int64_t integer;  /* INTEGER, TRUTH; of a GLOBAL its row in `globals`; of a TEXT its length */
    const char *text; /* in the pickle, not terminated */
    int32_t *items;   /* values by number */
    int64_t count, capacity;
    pickled_storage *storage;
    pickled_tensor *tensor;
} value;

typedef struct machine {
    const wg_weights *file;
    const uint8_t *bytes;
    int64_t count, at;
    value *values;
    int64_t value_count, value_capacity;
    int32_t *stack; /* values by number */
    int64_t depth, stack_capacity;
    int32_t *memo; /* values by number; -1: none */
    int64_t memo_capacity;
} machine;

/* -1 after recording FORMAT, with the place in the pickle. */
static int pickle_fail(const machine *m, const char *what) {
    return wg__weights_fail(m->file, "data.pkl, byte %lld: %s", (long long)m->at, what);
}

/* ---- The stack ---- */

static int push(machine *m, int32_t number) {
    return wg__append(&m->stack, &m->depth, &m->stack_capacity, &number, sizeof number);
}

static value *push_new(machine *m, value_kind kind) {
    const value made = {.kind = kind};
    if (push(m, (int32_t)m->value_count) < 0 ||
        wg__append(&m->values, &m->value_count, &m->value_capacity, &made, sizeof made) < 0)
        return NULL;
    return &m->values[m->value_count - 1];
}

/* The value `below` places from the stack's top; NULL with an error at a mark or the bottom. */
static value *peek(const machine *m, int64_t below) {
    if (below >= m->depth || m->values[m->stack[m->depth - 1 - below]].kind == MARK) {
        pickle_fail(m, "an instruction wants a value that is not on the stack");
        return NULL;
    }
    return &m->values[m->stack[m->depth - 1 - below]];
}

/* ---- The names of Python's and torch's functions and types ---- */

typedef enum global_id { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, A_STORAGE } global_id;

/* All names that a pickle may use. */
static const struct {
    const char *module, *name;
    global_id id;
    wg__storage_dtype storage;
} globals[] = {
    {"collections", "OrderedDict", ORDERED_DICT, 0},
    {"torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, 0},
    {"torch._utils", "_rebuild_parameter", REBUILD_PARAMETER, 0},
    {"torch", "DoubleStorage", A_STORAGE, WG__STORAGE_F64},
    {"torch", "FloatStorage", A_STORAGE, WG__STORAGE_F32},
    {"torch", "HalfStorage", A_STORAGE, WG__STORAGE_F16},
    {"torch", "BFloat16Storage", A_STORAGE, WG__STORAGE_BF16},
    {"torch", "LongStorage", A_STORAGE, WG__STORAGE_I64},
    {"torch", "IntStorage", A_STORAGE, WG__STORAGE_I32},
    {"torch", "ByteStorage", A_STORAGE, WG__STORAGE_U8},
    {"torch", "BoolStorage", A_STORAGE, WG__STORAGE_BOOL},
};

static void printable(char *out, const char *text, size_t length) {
    size_t i = 0;
    for (; i < length && i < 63; i++)
        out[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
    out[i] = '\0';
}

/* "module\nname\n", the bytes that follow, name a global. */
static int push_global(machine *m) {
    const char *module = (const char *)m->bytes + m->at;
    const char *first = memchr(module, '\n', (size_t)(m->count - m->at));
    const char *name = first ? first + 1 : NULL;
    const char *second =
        name ? memchr(name, '\n', (size_t)((const char *)m->bytes + m->count - name)) : NULL;
    if (!second)
        return pickle_fail(m, "it ends in the middle of a name");
    const size_t module_length = (size_t)(first - module), length = (size_t)(second - name);
    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++)
        if (strlen(globals[i].module) == module_length && strlen(globals[i].name) == length &&
            memcmp(globals[i].module, module, module_length) == 0 &&
            memcmp(globals[i].name, name, length) == 0) {
            m->at += (int64_t)(module_length + length + 2);
            value *global = push_new(m, GLOBAL);
            if (global)
                global->integer = (int64_t)i;
            return global ? 0 : -1;
        }
    char text[2][64];
    printable(text[0], module, module_length);
    printable(text[1], name, length);
    return wg__weights_fail(
        m->file,
        "data.pkl, byte %lld: it wants %s.%s; only tensors in dicts are read, as "
        "torch.save(model.state_dict()) writes them",
        (long long)m->at, text[0], text[1]);
}

/* The value at that index of a sequence; NULL if it is missing or of another kind. */
static const value *item(const machine *m, const value *sequence, int64_t index, value_kind kind) {
    if (sequence->kind != SEQUENCE || index >= sequence->count)
        return NULL;
    const value *found = &m->values[sequence->items[index]];
    return found->kind == kind ? found : NULL;
}

static int read_sizes(const machine *m, const value *tuple, int64_t *sizes) {
    for (int64_t i = 0; i < tuple->count; i++) {
        const value *size = item(m, tuple, i, INTEGER);
        if (!size || size->integer < 0)
            return pickle_fail(m, "a shape or stride is no list of sizes");
        sizes[i] = size->integer;
    }
    return 0;
}

/* (storage, offset, shape, strides, requires_grad, hooks) */
static int rebuild_tensor(machine *m, const value *arguments, value *result) {
    const value *storage = item(m, arguments, 0, STORAGE), *offset = item(m, arguments, 1, INTEGER),
                *shape = item(m, arguments, 2, SEQUENCE),
                *strides = item(m, arguments, 3, SEQUENCE);
    if (!storage || !offset || !shape || !strides || shape->count != strides->count)
        return pickle_fail(m, "a tensor is not made of storage, offset, shape and strides");
    if (shape->count > WG_MAX_DIMS)
        return pickle_fail(m, "a tensor has more than 8 dimensions");
    pickled_tensor *tensor = wg__calloc(1, sizeof *tensor);
    if (!tensor)
        return -1;
    tensor->storage = *storage->storage;
    tensor->offset = offset->integer;
    tensor->ndim = (int)shape->count;
    *result = (value){.kind = TENSOR, .tensor = tensor};
    return read_sizes(m, shape, tensor->shape) < 0 ? -1 : read_sizes(m, strides, tensor->strides);
}

/* Replaces a function and its arguments, the topmost two values, by the result. */
static int reduce(machine *m) {
    const value *arguments = peek(m, 0), *function = peek(m, 1);
    if (!arguments || !function)
        return -1;
    if (function->kind != GLOBAL || arguments->kind != SEQUENCE)
        return pickle_fail(m, "a value that is called is no function");
    const global_id id = globals[function->integer].id;
    if (id == REBUILD_PARAMETER) {
        if (!item(m, arguments, 0, TENSOR))
            return pickle_fail(m, "a parameter is not made of a tensor");
        const int32_t tensor = arguments->items[0];
        m->depth -= 2;
        return push(m, tensor);
    }
    value result = {.kind = DICT};
    int status = 0;
    if (id == REBUILD_TENSOR)
        status = rebuild_tensor(m, arguments, &result);
    else if (id != ORDERED_DICT || arguments->count != 0)
        status = pickle_fail(m, "a storage is called, or a dict that is not empty made");
    m->depth -= 2;
    value *made = status == 0 ? push_new(m, result.kind) : NULL;
    if (made)
        *made = result;
    else
        wg__free(result.tensor);
    return made ? 0 : -1;
}

/* Replaces ("storage", type, key, device, elements) on the top by a storage. */
static int push_storage(machine *m) {
    const value *tuple = peek(m, 0);
    if (!tuple)
        return -1;
    const value *what = item(m, tuple, 0, TEXT), *type = item(m, tuple, 1, GLOBAL),
                *key = item(m, tuple, 2, TEXT), *elements = item(m, tuple, 4, INTEGER);
    if (!what || what->integer != 7 || memcmp(what->text, "storage", 7) != 0 || !type ||
        globals[type->integer].id != A_STORAGE || !key || !elements)
        return pickle_fail(m, "a persistent id is no storage");
    pickled_storage *storage = wg__calloc(1, sizeof *storage);
    if (!storage)
        return -1;
    storage->dtype = globals[type->integer].storage;
    storage->elements = elements->integer;
    const bool is_fair = key->integer < (int64_t)sizeof storage->key;
    if (is_fair)
        memcpy(storage->key, key->text, (size_t)key->integer);
    m->depth--;
    value *made = is_fair ? push_new(m, STORAGE) : NULL;
    if (made)
        made->storage = storage;
    else
        wg__free(storage);
    return made ? 0 : is_fair ? -1 : pickle_fail(m, "a storage has too long a name");
}

/* ---- Instructions ---- */

static int64_t above_mark(const machine *m) {
    for (int64_t i = m->depth - 1; i >= 0; i--)
        if (m->values[m->stack[i]].kind == MARK)
            return m->depth - 1 - i;
    return pickle_fail(m, "an instruction wants a mark that is not on the stack");
}

/* Appends the topmost `count` values, from the deepest on, and takes them off. */
static int append_top(machine *m, value *list, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (wg__append(&list->items, &list->count, &list->capacity, &m->stack[m->depth - count + i],
                       sizeof *list->items) < 0)
            return -1;
    m->depth -= count;
    return 0;
}

/* The next `count` bytes of the pickle; NULL with an error at its end. */
static const uint8_t *next_bytes(machine *m, int64_t count) {
    if (count > m->count - m->at) {
        pickle_fail(m, "it ends in the middle of an instruction");
        return NULL;
    }
    m->at += count;
    return m->bytes + m->at - count;
}

static int make_tuple(machine *m, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (!peek(m, i))
            return -1;
    value made = {.kind = SEQUENCE};
    int status = append_top(m, &made, count);
    m->depth -= has_mark;
    value *tuple = status == 0 ? push_new(m, SEQUENCE) : NULL;
    if (tuple)
        *tuple = made;
    else
        wg__free(made.items);
    return tuple ? 0 : -1;
}

/* Moves the topmost values into the list or dict below them. */
static int add_items(machine *m, value_kind kind, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    if (kind == DICT && count % 2 != 0)
        return pickle_fail(m, "a key has no value");
    value *holder = peek(m, count + has_mark);
    if (!holder)
        return -1;
    if (holder->kind != kind)
        return pickle_fail(m, kind == DICT ? "items are set in a value that is no dict"
                                           : "values are appended to a value that is no list");
    if (append_top(m, holder, count) < 0)
        return -1;
    m->depth -= has_mark;
    return 0;
}

/* Little-endian, two's complement, `size` bytes. */
static int push_bytes_integer(machine *m, int64_t size, bool is_signed) {
    const uint8_t *bytes = size <= 8 ? next_bytes(m, size) : NULL;
    if (!bytes)
        return size <= 8 ? -1 : pickle_fail(m, "a number has more than 64 bits");
    uint64_t number = 0;
    for (int64_t i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    if (is_signed && size > 0 && size < 8 && bytes[size - 1] & 0x80)
        number |= UINT64_MAX << 8 * size;
    value *integer = push_new(m, INTEGER);
    if (integer)
        integer->integer = (int64_t)number;
    return integer ? 0 : -1;
}

/* An instruction with a value: a number or a text. */
static int step_value(machine *m, uint8_t code) {
    const uint8_t *size;
    switch (code) {
    case 'K':
        return push_bytes_integer(m, 1, false);
    case 'M':
        return push_bytes_integer(m, 2, false);
    case 'J':
        return push_bytes_integer(m, 4, true);
    case 0x8a:
        size = next_bytes(m, 1);
        return size ? push_bytes_integer(m, *size, true) : -1;
    case 'G':
        return next_bytes(m, 8) && push_new(m, NOTHING) ? 0 : -1;
    case 'X': {
        size = next_bytes(m, 4);
        const int64_t length = size ? wg__le32(size) : 0;
        const uint8_t *bytes = size ? next_bytes(m, length) : NULL;
        value *text = bytes ? push_new(m, TEXT) : NULL;
        if (!text)
            return -1;
        text->text = (const char *)bytes;
        text->integer = length;
        return 0;
    }
    default:
        return wg__weights_fail(m->file,
                                "data.pkl, byte %lld: instruction 0x%02x, which no dict of tensors "
                                "takes",
                                (long long)m->at - 1, code);
    }
}

static int step_memo(machine *m, uint8_t code) {
    const bool is_long = code == 'r' || code == 'j', is_put = code == 'q' || code == 'r';
    const uint8_t *bytes = next_bytes(m, is_long ? 4 : 1);
    if (!bytes)
        return -1;
    const int64_t number = is_long ? wg__le32(bytes) : *bytes;
    if (is_put) {
        if (number >= m->count)
            return pickle_fail(m, "a memo has a number beyond the pickle's length");
        if (!peek(m, 0))
            return -1;
        const int64_t before = m->memo_capacity;
        if (wg__reserve(&m->memo, before, &m->memo_capacity, number + 1, sizeof *m->memo) < 0)
            return -1;
        for (int64_t i = before; i < m->memo_capacity; i++)
            m->memo[i] = -1;
        m->memo[number] = m->stack[m->depth - 1];
        return 0;
    }
    if (number >= m->memo_capacity || m->memo[number] < 0)
        return pickle_fail(m, "a memo is read that was not written");
    return push(m, m->memo[number]);
}

static int step(machine *m, uint8_t code) {
    switch (code) {
    case 0x80:
        return next_bytes(m, 1) ? 0 : -1;
    case 'c':
        return push_global(m);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
        return step_memo(m, code);
    case '(':
        return push_new(m, MARK) ? 0 : -1;
    case ')':
    case ']':
        return push_new(m, SEQUENCE) ? 0 : -1;
    case '}':
        return push_new(m, DICT) ? 0 : -1;
    case 'N':
        return push_new(m, NOTHING) ? 0 : -1;
    case 0x88:
    case 0x89:
        return push_new(m, TRUTH) ? 0 : -1;
    case 't':
        return make_tuple(m, above_mark(m), true);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(m, code - 0x84, false);
    case 'R':
        return reduce(m);
    case 'Q':
        return push_storage(m);
    case 's':
        return add_items(m, DICT, 2, false);
    case 'u':
        return add_items(m, DICT, above_mark(m), true);
    case 'a':
        return add_items(m, SEQUENCE, 1, false);
    case 'e':
        return add_items(m, SEQUENCE, above_mark(m), true);
    case 'b': {
        /* Drops the state that torch sets on a dict, "_metadata": it does not concern tensors. */
        const value *object = peek(m, 1);
        if (!object || !peek(m, 0))
            return -1;
        if (object->kind != DICT)
            return pickle_fail(m, "the state of a value that is no dict is set");
        m->depth--;
        return 0;
    }
    default:
        return step_value(m, code);
    }
}

/* ---- The tensors of the file ---- */

typedef struct reading {
    wg_weights *file;
    int index; /* of the file among file->files */
    const archive *zip;
    int folder; /* the length of NAME, with its slash */
    const char *pickle_name;
    int64_t visits;                     /* of values in dicts */
    char name[WG__MAX_TENSOR_NAME + 1]; /* of the dict or tensor that is visited: keys and dots */
} reading;

/* The elements from the first to the last one, both included; -1 if there are too many. */
static int64_t extent_of(const pickled_tensor *tensor) {
    int64_t last = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t reach;
        if (tensor->shape[i] == 0)
            return 0;
        if (tensor->strides[i] < 0 ||
            __builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return -1;
    }
    return last < INT64_MAX / 16 ? last + 1 : -1;
}

static int add_tensor(const reading *r, const pickled_tensor *tensor) {
    char path[512];
    snprintf(path, sizeof path, "%.*sdata/%s", r->folder, r->pickle_name, tensor->storage.key);
    const zip_entry *data = find_entry(r->zip, path);
    const int64_t size = wg__storage_kinds[tensor->storage.dtype].block_bytes;
    if (!data)
        return wg__weights_fail(r->file, "%.200s: its storage %.64s is not there", r->name,
                                tensor->storage.key);
    if (tensor->storage.elements < 0 || tensor->storage.elements != data->size / size ||
        data->size % size != 0)
        return wg__weights_fail(r->file, "%.200s: its storage has %lld bytes, not %lld numbers",
                                r->name, (long long)data->size,
                                (long long)tensor->storage.elements);
    const int64_t extent = extent_of(tensor),
                  dense = wg__storage_bytes(tensor->storage.dtype, tensor->ndim, tensor->shape);
    if (dense < 0 || extent < 0 || tensor->offset < 0 ||
        tensor->offset > tensor->storage.elements ||
        extent > tensor->storage.elements - tensor->offset)
        return wg__weights_fail(r->file, "%.200s reaches beyond its storage", r->name);
    if (dense / size > tensor->storage.elements)
        return wg__weights_fail(r->file, "%.200s is an expanded view; save it contiguous", r->name);
    wg__weights_entry entry = {
        .file = r->index,
        .storage = tensor->storage.dtype,
        .spec = {.dtype = wg__storage_kinds[tensor->storage.dtype].read_as, .ndim = tensor->ndim},
        .offset = data->offset + tensor->offset * size,
        .bytes = extent * size,
    };
    int64_t step = 1; /* of a tensor in row-major order */
    for (int i = tensor->ndim - 1; extent > 0 && i >= 0; i--) {
        entry.is_strided |= tensor->shape[i] != 1 && tensor->strides[i] != step;
        step *= tensor->shape[i];
    }
    memcpy(entry.spec.shape, tensor->shape, sizeof entry.spec.shape);
    memcpy(entry.strides, tensor->strides, sizeof entry.strides);
    return wg__weights_add(r->file, r->name, &entry);
}

/* Appends a key to the name; returns the length that the name had, or -1. Optimizers number their
 * parameters, so a key may be an integer. */
static int64_t enter(reading *r, const value *key) {
    char number[24];
    const size_t used = strlen(r->name), dot = used > 0;
    const char *text = key->kind == TEXT ? key->text : number;
    const size_t length = key->kind == TEXT ? (size_t)key->integer
                                            : (size_t)snprintf(number, sizeof number, "%lld",
                                                               (long long)key->integer);
    if ((key->kind != TEXT && key->kind != INTEGER) || memchr(text, '\0', length) ||
        used + dot + length > WG__MAX_TENSOR_NAME)
        return wg__weights_fail(r->file, "data.pkl: a tensor has no name of fair length");
    if (dot)
        r->name[used] = '.';
    memcpy(r->name + used + dot, text, length);
    r->name[used + dot + length] = '\0';
    return (int64_t)used;
}

/* Adds the tensors of a dict. A dict may hold itself, or another many times: depth and visits are
 * limited. */
/* NOLINTNEXTLINE(misc-no-recursion): at most MOST_DEPTH deep */
static int visit_dict(reading *r, const machine *m, const value *dict, int depth) {
    for (int64_t i = 0; i + 1 < dict->count; i += 2) {
        const value *key = &m->values[dict->items[i]], *held = &m->values[dict->items[i + 1]];
        if (++r->visits > MOST_VISITS)
            return wg__weights_fail(r->file, "data.pkl: more than %d values", MOST_VISITS);
        if (held->kind != TENSOR && held->kind != DICT)
            continue;
        if (depth == MOST_DEPTH)
            return wg__weights_fail(r->file, "data.pkl: dicts are nested more than %d deep",
                                    MOST_DEPTH);
        const int64_t used = enter(r, key);
        if (used < 0)
            return -1;
        if ((held->kind == TENSOR ? add_tensor(r, held->tensor)
                                  : visit_dict(r, m, held, depth + 1)) < 0)
            return -1;
        r->name[used] = '\0';
    }
    return 0;
}

static int read_zip(wg_weights *file, int index, const archive *zip) {
    const zip_entry *pickle = NULL; /* NAME/data.pkl, NAME being the name at torch.save */
    for (int64_t i = 0; !pickle && i < zip->count; i++)
        if (wg__ends_with(zip->entries[i].name, "/data.pkl") && strlen(zip->entries[i].name) < 256)
            pickle = &zip->entries[i];
    if (!pickle || pickle->size > MOST_PICKLE)
        return bad(file, "it has no data.pkl, or too large a one");
    reading r = {.file = file,
                 .index = index,
                 .zip = zip,
                 .folder = (int)(strlen(pickle->name) - strlen("data.pkl")),
                 .pickle_name = pickle->name};
    /* torch.save writes the byte order into the entry NAME/byteorder. */
    char name[300], order[8] = {0};
    snprintf(name, sizeof name, "%.*sbyteorder", r.folder, r.pickle_name);
    const zip_entry *entry = find_entry(zip, name);
    if (entry && (entry->size > 6 ||
                  wg__input_read(&file->files[index], entry->offset, order, entry->size) < 0 ||
                  strcmp(order, "little") != 0))
        return wg_error_pending() ? -1 : wg__weights_fail(file, "is not little-endian");
    uint8_t *bytes = wg__alloc((size_t)pickle->size + 1);
    int status =
        bytes ? wg__input_read(&file->files[index], pickle->offset, bytes, pickle->size) : -1;
    if (status == 0) {
        machine m = {.file = r.file, .bytes = bytes, .count = pickle->size};
        bool ended = false; /* then the value of the pickle is on the top of the stack */
        while (status == 0 && !ended) {
            const uint8_t *code = next_bytes(&m, 1);
            ended = code && *code == '.';
            status = ended ? (peek(&m, 0) ? 0 : -1) : code ? step(&m, *code) : -1;
        }
        if (status == 0) {
            const value *top = peek(&m, 0);
            status = top->kind == DICT ? visit_dict(&r, &m, top, 0)
                                       : pickle_fail(&m, "its value is no dict of tensors");
        }
        for (int64_t i = 0; i < m.value_count; i++) {
            wg__free(m.values[i].items);
            wg__free(m.values[i].storage);
            wg__free(m.values[i].tensor);
        }
        wg__free(m.values);
        wg__free(m.stack);
        wg__free(m.memo);
    }
    wg__free(bytes);
    return status;
}

static int list_pytorch(wg_weights *file, int index) {
    archive zip;
    int status = read_directory(file, index, &zip);
    if (status == 0)
        status = read_zip(file, index, &zip);
    for (int64_t i = 0; zip.entries && i < zip.count; i++)
        wg__free(zip.entries[i].name);
    wg__free(zip.entries);
    return status;
}

const wg__weights_reader wg__weights_pytorch = {.name = "pytorch", .list = list_pytorch};
