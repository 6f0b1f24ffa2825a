/* The stack machine of pickles, as far as torch.save's state dicts need it. See pytorch_zip.h.
 *
 * Every instruction makes at most one value, and values live until the end, so memory is bounded by
 * the pickle's length; what it can name stands in one short table. */
#include "io/pytorch_zip.h"

#include <string.h>

#include "tensor/internal.h"

enum { MOST_DEPTH = 8, MOST_VISITS = 4000000 };

typedef enum value_kind {
    NOTHING, /* None, a float: of no use here */
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

typedef enum global_id { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, A_STORAGE } global_id;

/* All that a pickle may name. */
static const struct {
    const char *module, *name;
    global_id id;
    wg__stored stored;
} globals[] = {
    {"collections", "OrderedDict", ORDERED_DICT, 0},
    {"torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, 0},
    {"torch._utils", "_rebuild_parameter", REBUILD_PARAMETER, 0},
    {"torch", "DoubleStorage", A_STORAGE, WG__STORED_F64},
    {"torch", "FloatStorage", A_STORAGE, WG__STORED_F32},
    {"torch", "HalfStorage", A_STORAGE, WG__STORED_F16},
    {"torch", "BFloat16Storage", A_STORAGE, WG__STORED_BF16},
    {"torch", "LongStorage", A_STORAGE, WG__STORED_I64},
    {"torch", "IntStorage", A_STORAGE, WG__STORED_I32},
    {"torch", "ByteStorage", A_STORAGE, WG__STORED_U8},
    {"torch", "BoolStorage", A_STORAGE, WG__STORED_BOOL},
};

typedef struct value {
    value_kind kind;
    int64_t integer;  /* INTEGER, TRUTH; of a GLOBAL its row; of a TEXT its length */
    const char *text; /* in the pickle, not terminated */
    int32_t *items;   /* values by number */
    int64_t count, capacity;
    wg__pickled_storage *storage;
    wg__pickled_tensor *tensor;
} value;

typedef struct machine {
    const wg_weights *file;
    const uint8_t *bytes;
    int64_t count, at;
    value *values;
    int64_t value_count, value_capacity;
    int32_t *stack;
    int64_t depth, stack_capacity;
    int32_t *memo; /* by number; -1: nothing */
    int64_t memo_capacity;
} machine;

static int fail(const machine *m, const char *what) {
    return wg__weights_fail(m->file, "data.pkl, byte %lld: %s", (long long)m->at, what);
}

/* Makes room for one more; the block may move. */
static int grow(void **block, int64_t count, int64_t *capacity, size_t size) {
    if (count < *capacity)
        return 0;
    const int64_t larger = 2 * *capacity + 16;
    char *copy = wg__alloc((size_t)larger * size);
    if (!copy)
        return -1;
    if (count)
        memcpy(copy, *block, (size_t)count * size);
    wg__free(*block);
    *block = copy;
    *capacity = larger;
    return 0;
}

/* ---- The stack ---- */

static int push(machine *m, int32_t number) {
    if (grow((void **)&m->stack, m->depth, &m->stack_capacity, sizeof *m->stack) < 0)
        return -1;
    m->stack[m->depth++] = number;
    return 0;
}

/* A new value on the stack; NULL without memory. */
static value *push_new(machine *m, value_kind kind) {
    if (grow((void **)&m->values, m->value_count, &m->value_capacity, sizeof *m->values) < 0 ||
        push(m, (int32_t)m->value_count) < 0)
        return NULL;
    value *made = &m->values[m->value_count++];
    *made = (value){.kind = kind};
    return made;
}

/* The value so far from the top, 0 the topmost; NULL with an error if there is none, or a mark. */
static value *peek(const machine *m, int64_t below) {
    if (below >= m->depth || m->values[m->stack[m->depth - 1 - below]].kind == MARK) {
        fail(m, "an instruction wants a value that is not on the stack");
        return NULL;
    }
    return &m->values[m->stack[m->depth - 1 - below]];
}

/* How many values stand above the topmost mark, or -1. */
static int64_t above_mark(const machine *m) {
    for (int64_t i = m->depth - 1; i >= 0; i--)
        if (m->values[m->stack[i]].kind == MARK)
            return m->depth - 1 - i;
    return fail(m, "an instruction wants a mark that is not on the stack");
}

static int append(value *list, int32_t number) {
    if (grow((void **)&list->items, list->count, &list->capacity, sizeof *list->items) < 0)
        return -1;
    list->items[list->count++] = number;
    return 0;
}

/* Appends the topmost `count` values, from the deepest on, and takes them off. */
static int append_top(machine *m, value *list, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (append(list, m->stack[m->depth - count + i]) < 0)
            return -1;
    m->depth -= count;
    return 0;
}

/* ---- Instructions ---- */

static const uint8_t *take(machine *m, int64_t count) {
    if (count > m->count - m->at) {
        fail(m, "it ends in the middle of an instruction");
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

static int set_items(machine *m, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    if (count % 2 != 0)
        return fail(m, "a key has no value");
    value *dict = peek(m, count + has_mark);
    if (!dict)
        return -1;
    if (dict->kind != DICT)
        return fail(m, "items are set in what is no dict");
    if (append_top(m, dict, count) < 0)
        return -1;
    m->depth -= has_mark;
    return 0;
}

static int append_items(machine *m, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    value *list = peek(m, count + has_mark);
    if (!list)
        return -1;
    if (list->kind != SEQUENCE)
        return fail(m, "values are appended to what is no list");
    if (append_top(m, list, count) < 0)
        return -1;
    m->depth -= has_mark;
    return 0;
}

/* For a message, in 64 bytes. */
static void printable(char *out, const char *text, size_t length) {
    size_t i = 0;
    for (; i < length && i < 63; i++)
        out[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
    out[i] = '\0';
}

/* "module\nname\n" */
static int push_global(machine *m) {
    const char *module = (const char *)m->bytes + m->at;
    const char *first = memchr(module, '\n', (size_t)(m->count - m->at));
    const char *name = first ? first + 1 : NULL;
    const char *second =
        name ? memchr(name, '\n', (size_t)((const char *)m->bytes + m->count - name)) : NULL;
    if (!second)
        return fail(m, "it ends in the middle of a name");
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

static int push_text(machine *m) {
    const uint8_t *size = take(m, 4);
    const int64_t length = size ? wg__le32(size) : 0;
    const uint8_t *bytes = size ? take(m, length) : NULL;
    value *text = bytes ? push_new(m, TEXT) : NULL;
    if (!text)
        return -1;
    text->text = (const char *)bytes;
    text->integer = length;
    return 0;
}

static int push_integer(machine *m, int64_t number) {
    value *integer = push_new(m, INTEGER);
    if (integer)
        integer->integer = number;
    return integer ? 0 : -1;
}

/* Little-endian, two's complement, `size` bytes. */
static int push_bytes_integer(machine *m, int64_t size, bool is_signed) {
    const uint8_t *bytes = size <= 8 ? take(m, size) : NULL;
    if (!bytes)
        return size <= 8 ? -1 : fail(m, "a number has more than 64 bits");
    uint64_t number = 0;
    for (int64_t i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    if (is_signed && size > 0 && size < 8 && bytes[size - 1] & 0x80)
        number |= UINT64_MAX << 8 * size;
    return push_integer(m, (int64_t)number);
}

static int put_memo(machine *m, int64_t number) {
    if (number >= m->count)
        return fail(m, "a memo has a number beyond the pickle's length");
    if (!peek(m, 0))
        return -1;
    while (number >= m->memo_capacity) {
        const int64_t before = m->memo_capacity;
        if (grow((void **)&m->memo, before, &m->memo_capacity, sizeof *m->memo) < 0)
            return -1;
        for (int64_t i = before; i < m->memo_capacity; i++)
            m->memo[i] = -1;
    }
    m->memo[number] = m->stack[m->depth - 1];
    return 0;
}

static int get_memo(machine *m, int64_t number) {
    if (number >= m->memo_capacity || m->memo[number] < 0)
        return fail(m, "a memo that was not made is wanted");
    return push(m, m->memo[number]);
}

/* ---- What torch's functions would make ---- */

static const value *item(const machine *m, const value *sequence, int64_t index, value_kind kind) {
    if (sequence->kind != SEQUENCE || index >= sequence->count)
        return NULL;
    const value *found = &m->values[sequence->items[index]];
    return found->kind == kind ? found : NULL;
}

static int take_sizes(const machine *m, const value *tuple, int64_t *sizes) {
    for (int64_t i = 0; i < tuple->count; i++) {
        const value *size = item(m, tuple, i, INTEGER);
        if (!size || size->integer < 0)
            return fail(m, "a shape or stride is no list of sizes");
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
        return fail(m, "a tensor is not made of storage, offset, shape and strides");
    if (shape->count > WG_MAX_DIMS)
        return fail(m, "a tensor has more than 8 dimensions");
    wg__pickled_tensor *tensor = wg__calloc(1, sizeof *tensor);
    if (!tensor)
        return -1;
    tensor->storage = *storage->storage;
    tensor->offset = offset->integer;
    tensor->ndim = (int)shape->count;
    *result = (value){.kind = TENSOR, .tensor = tensor};
    return take_sizes(m, shape, tensor->shape) < 0 ? -1 : take_sizes(m, strides, tensor->strides);
}

/* The function and its arguments, the topmost two, become the result. */
static int reduce(machine *m) {
    const value *arguments = peek(m, 0), *function = peek(m, 1);
    if (!arguments || !function)
        return -1;
    if (function->kind != GLOBAL || arguments->kind != SEQUENCE)
        return fail(m, "what is called is no function");
    const global_id id = globals[function->integer].id;
    if (id == REBUILD_PARAMETER) {
        if (!item(m, arguments, 0, TENSOR))
            return fail(m, "a parameter is not made of a tensor");
        const int32_t tensor = arguments->items[0];
        m->depth -= 2;
        return push(m, tensor);
    }
    value result = {.kind = DICT};
    int status = 0;
    if (id == REBUILD_TENSOR)
        status = rebuild_tensor(m, arguments, &result);
    else if (id != ORDERED_DICT || arguments->count != 0)
        status = fail(m, "a storage is called, or a dict that is not empty made");
    m->depth -= 2;
    value *made = status == 0 ? push_new(m, result.kind) : NULL;
    if (made)
        *made = result;
    else
        wg__free(result.tensor);
    return made ? 0 : -1;
}

/* ("storage", type, key, device, elements), on the top, becomes a storage. */
static int push_storage(machine *m) {
    const value *tuple = peek(m, 0);
    if (!tuple)
        return -1;
    const value *what = item(m, tuple, 0, TEXT), *type = item(m, tuple, 1, GLOBAL),
                *key = item(m, tuple, 2, TEXT), *elements = item(m, tuple, 4, INTEGER);
    if (!what || what->integer != 7 || memcmp(what->text, "storage", 7) != 0 || !type ||
        globals[type->integer].id != A_STORAGE || !key || !elements)
        return fail(m, "a reference is to no storage");
    wg__pickled_storage *storage = wg__calloc(1, sizeof *storage);
    if (!storage)
        return -1;
    storage->stored = globals[type->integer].stored;
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
    return made ? 0 : is_fair ? -1 : fail(m, "a storage has too long a name");
}

/* What torch sets on a dict, "_metadata", says nothing about tensors. */
static int build(machine *m) {
    const value *object = peek(m, 1);
    if (!object || !peek(m, 0))
        return -1;
    if (object->kind != DICT)
        return fail(m, "the state of what is no dict is set");
    m->depth--;
    return 0;
}

/* ---- The loop ---- */

static int step_number(machine *m, uint8_t code) {
    const uint8_t *size;
    switch (code) {
    case 'K':
        return push_bytes_integer(m, 1, false);
    case 'M':
        return push_bytes_integer(m, 2, false);
    case 'J':
        return push_bytes_integer(m, 4, true);
    case 0x8a:
        size = take(m, 1);
        return size ? push_bytes_integer(m, *size, true) : -1;
    case 'G':
        return take(m, 8) && push_new(m, NOTHING) ? 0 : -1;
    default:
        return wg__weights_fail(m->file,
                                "data.pkl, byte %lld: instruction 0x%02x, which no dict of tensors "
                                "takes",
                                (long long)m->at - 1, code);
    }
}

static int step_memo(machine *m, uint8_t code) {
    const bool is_long = code == 'r' || code == 'j', is_put = code == 'q' || code == 'r';
    const uint8_t *bytes = take(m, is_long ? 4 : 1);
    if (!bytes)
        return -1;
    const int64_t number = is_long ? wg__le32(bytes) : *bytes;
    return is_put ? put_memo(m, number) : get_memo(m, number);
}

static int step(machine *m, uint8_t code) {
    switch (code) {
    case 0x80:
        return take(m, 1) ? 0 : -1;
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
    case 'X':
        return push_text(m);
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
        return set_items(m, 2, false);
    case 'u':
        return set_items(m, above_mark(m), true);
    case 'a':
        return append_items(m, 1, false);
    case 'e':
        return append_items(m, above_mark(m), true);
    case 'b':
        return build(m);
    default:
        return step_number(m, code);
    }
}

static int run(machine *m) {
    for (;;) {
        const uint8_t *code = take(m, 1);
        if (!code)
            return -1;
        if (*code == '.')
            return peek(m, 0) ? 0 : -1;
        if (step(m, *code) < 0)
            return -1;
    }
}

/* ---- What was made ---- */

typedef struct walk {
    const machine *m;
    wg__pickle_visitor visit;
    void *context;
    int64_t visits;
    char name[WG__MAX_TENSOR_NAME + 1];
} walk;

/* Appends a key to the name; returns the length that the name had, or -1. */
static int64_t enter(walk *w, const value *key) {
    const size_t used = strlen(w->name), dot = used > 0;
    if (key->kind != TEXT || memchr(key->text, '\0', (size_t)key->integer) ||
        used + dot + (size_t)key->integer > WG__MAX_TENSOR_NAME)
        return wg__weights_fail(w->m->file, "data.pkl: a tensor has no name of fair length");
    if (dot)
        w->name[used] = '.';
    memcpy(w->name + used + dot, key->text, (size_t)key->integer);
    w->name[used + dot + (size_t)key->integer] = '\0';
    return (int64_t)used;
}

/* A dict may hold itself, or one dict many times: depth and visits end that. */
static int visit_dict(walk *w, const value *dict, int depth) {
    for (int64_t i = 0; i + 1 < dict->count; i += 2) {
        const value *key = &w->m->values[dict->items[i]], *held = &w->m->values[dict->items[i + 1]];
        if (++w->visits > MOST_VISITS)
            return wg__weights_fail(w->m->file, "data.pkl: more than %d values", MOST_VISITS);
        if (held->kind != TENSOR && held->kind != DICT)
            continue;
        if (depth == MOST_DEPTH)
            return wg__weights_fail(w->m->file, "data.pkl: dicts are nested more than %d deep",
                                    MOST_DEPTH);
        const int64_t used = enter(w, key);
        if (used < 0)
            return -1;
        int status = 0;
        if (held->kind == TENSOR) {
            wg__pickled_tensor tensor = *held->tensor;
            tensor.name = w->name;
            status = w->visit(&tensor, w->context);
        } else
            status = visit_dict(w, held, depth + 1);
        if (status < 0)
            return -1;
        w->name[used] = '\0';
    }
    return 0;
}

static void clear(machine *m) {
    for (int64_t i = 0; i < m->value_count; i++) {
        wg__free(m->values[i].items);
        wg__free(m->values[i].storage);
        wg__free(m->values[i].tensor);
    }
    wg__free(m->values);
    wg__free(m->stack);
    wg__free(m->memo);
}

int wg__pickle_read(const wg_weights *file, const uint8_t *bytes, int64_t count,
                    wg__pickle_visitor visit, void *context) {
    machine m = {.file = file, .bytes = bytes, .count = count};
    walk w = {.m = &m, .visit = visit, .context = context};
    int status = run(&m);
    if (status == 0) {
        const value *top = peek(&m, 0);
        status = top->kind == DICT ? visit_dict(&w, top, 0)
                                   : fail(&m, "what it makes is no dict of tensors");
    }
    clear(&m);
    return status;
}
