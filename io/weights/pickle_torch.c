/* What a pickle of torch.save may name, and what those functions make: see pickle.h. */
#include "io/weights/pickle.h"

#include <string.h>

#include "tensor/internal.h"

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

/* For a message, in 64 bytes. */
static void printable(char *out, const char *text, size_t length) {
    size_t i = 0;
    for (; i < length && i < 63; i++)
        out[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
    out[i] = '\0';
}

int wg__pickle_push_global(wg__pickle_machine *m) {
    const char *module = (const char *)m->bytes + m->at;
    const char *first = memchr(module, '\n', (size_t)(m->count - m->at));
    const char *name = first ? first + 1 : NULL;
    const char *second =
        name ? memchr(name, '\n', (size_t)((const char *)m->bytes + m->count - name)) : NULL;
    if (!second)
        return wg__pickle_fail(m, "it ends in the middle of a name");
    const size_t module_length = (size_t)(first - module), length = (size_t)(second - name);
    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++)
        if (strlen(globals[i].module) == module_length && strlen(globals[i].name) == length &&
            memcmp(globals[i].module, module, module_length) == 0 &&
            memcmp(globals[i].name, name, length) == 0) {
            m->at += (int64_t)(module_length + length + 2);
            wg__pickle_value *global = wg__pickle_push_new(m, WG__PICKLE_GLOBAL);
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

/* A value of a sequence, if it is there and of that kind; else NULL. */
static const wg__pickle_value *item(const wg__pickle_machine *m, const wg__pickle_value *sequence,
                                    int64_t index, wg__pickle_kind kind) {
    if (sequence->kind != WG__PICKLE_SEQUENCE || index >= sequence->count)
        return NULL;
    const wg__pickle_value *found = &m->values[sequence->items[index]];
    return found->kind == kind ? found : NULL;
}

static int take_sizes(const wg__pickle_machine *m, const wg__pickle_value *tuple, int64_t *sizes) {
    for (int64_t i = 0; i < tuple->count; i++) {
        const wg__pickle_value *size = item(m, tuple, i, WG__PICKLE_INTEGER);
        if (!size || size->integer < 0)
            return wg__pickle_fail(m, "a shape or stride is no list of sizes");
        sizes[i] = size->integer;
    }
    return 0;
}

/* (storage, offset, shape, strides, requires_grad, hooks) */
static int rebuild_tensor(wg__pickle_machine *m, const wg__pickle_value *arguments,
                          wg__pickle_value *result) {
    const wg__pickle_value *storage = item(m, arguments, 0, WG__PICKLE_STORAGE),
                           *offset = item(m, arguments, 1, WG__PICKLE_INTEGER),
                           *shape = item(m, arguments, 2, WG__PICKLE_SEQUENCE),
                           *strides = item(m, arguments, 3, WG__PICKLE_SEQUENCE);
    if (!storage || !offset || !shape || !strides || shape->count != strides->count)
        return wg__pickle_fail(m, "a tensor is not made of storage, offset, shape and strides");
    if (shape->count > WG_MAX_DIMS)
        return wg__pickle_fail(m, "a tensor has more than 8 dimensions");
    wg__pickled_tensor *tensor = wg__calloc(1, sizeof *tensor);
    if (!tensor)
        return -1;
    tensor->storage = *storage->storage;
    tensor->offset = offset->integer;
    tensor->ndim = (int)shape->count;
    *result = (wg__pickle_value){.kind = WG__PICKLE_TENSOR, .tensor = tensor};
    return take_sizes(m, shape, tensor->shape) < 0 ? -1 : take_sizes(m, strides, tensor->strides);
}

int wg__pickle_reduce(wg__pickle_machine *m) {
    const wg__pickle_value *arguments = wg__pickle_peek(m, 0), *function = wg__pickle_peek(m, 1);
    if (!arguments || !function)
        return -1;
    if (function->kind != WG__PICKLE_GLOBAL || arguments->kind != WG__PICKLE_SEQUENCE)
        return wg__pickle_fail(m, "what is called is no function");
    const global_id id = globals[function->integer].id;
    if (id == REBUILD_PARAMETER) {
        if (!item(m, arguments, 0, WG__PICKLE_TENSOR))
            return wg__pickle_fail(m, "a parameter is not made of a tensor");
        const int32_t tensor = arguments->items[0];
        m->depth -= 2;
        return wg__pickle_push(m, tensor);
    }
    wg__pickle_value result = {.kind = WG__PICKLE_DICT};
    int status = 0;
    if (id == REBUILD_TENSOR)
        status = rebuild_tensor(m, arguments, &result);
    else if (id != ORDERED_DICT || arguments->count != 0)
        status = wg__pickle_fail(m, "a storage is called, or a dict that is not empty made");
    m->depth -= 2;
    wg__pickle_value *made = status == 0 ? wg__pickle_push_new(m, result.kind) : NULL;
    if (made)
        *made = result;
    else
        wg__free(result.tensor);
    return made ? 0 : -1;
}

int wg__pickle_push_storage(wg__pickle_machine *m) {
    const wg__pickle_value *tuple = wg__pickle_peek(m, 0);
    if (!tuple)
        return -1;
    const wg__pickle_value *what = item(m, tuple, 0, WG__PICKLE_TEXT),
                           *type = item(m, tuple, 1, WG__PICKLE_GLOBAL),
                           *key = item(m, tuple, 2, WG__PICKLE_TEXT),
                           *elements = item(m, tuple, 4, WG__PICKLE_INTEGER);
    if (!what || what->integer != 7 || memcmp(what->text, "storage", 7) != 0 || !type ||
        globals[type->integer].id != A_STORAGE || !key || !elements)
        return wg__pickle_fail(m, "a reference is to no storage");
    wg__pickled_storage *storage = wg__calloc(1, sizeof *storage);
    if (!storage)
        return -1;
    storage->stored = globals[type->integer].stored;
    storage->elements = elements->integer;
    const bool is_fair = key->integer < (int64_t)sizeof storage->key;
    if (is_fair)
        memcpy(storage->key, key->text, (size_t)key->integer);
    m->depth--;
    wg__pickle_value *made = is_fair ? wg__pickle_push_new(m, WG__PICKLE_STORAGE) : NULL;
    if (made)
        made->storage = storage;
    else
        wg__free(storage);
    return made ? 0 : is_fair ? -1 : wg__pickle_fail(m, "a storage has too long a name");
}
