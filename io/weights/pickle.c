/* The machine: its stack, its instructions and the loop over them. See pickle.h. */
#include "io/weights/pickle.h"

#include <string.h>

#include "base/array.h"
#include "tensor/internal.h"

int wg__pickle_fail(const wg__pickle_machine *m, const char *what) {
    return wg__weights_fail(m->file, "data.pkl, byte %lld: %s", (long long)m->at, what);
}

/* Makes room for one more; the block may move. */
static int grow(void **block, int64_t count, int64_t *capacity, size_t size) {
    void *grown = wg__grow(*block, count, capacity, count + 1, size);
    if (!grown)
        return -1;
    *block = grown;
    return 0;
}

/* ---- The stack ---- */

int wg__pickle_push(wg__pickle_machine *m, int32_t number) {
    if (grow((void **)&m->stack, m->depth, &m->stack_capacity, sizeof *m->stack) < 0)
        return -1;
    m->stack[m->depth++] = number;
    return 0;
}

wg__pickle_value *wg__pickle_push_new(wg__pickle_machine *m, wg__pickle_kind kind) {
    if (grow((void **)&m->values, m->value_count, &m->value_capacity, sizeof *m->values) < 0 ||
        wg__pickle_push(m, (int32_t)m->value_count) < 0)
        return NULL;
    wg__pickle_value *made = &m->values[m->value_count++];
    *made = (wg__pickle_value){.kind = kind};
    return made;
}

wg__pickle_value *wg__pickle_peek(const wg__pickle_machine *m, int64_t below) {
    if (below >= m->depth || m->values[m->stack[m->depth - 1 - below]].kind == WG__PICKLE_MARK) {
        wg__pickle_fail(m, "an instruction wants a value that is not on the stack");
        return NULL;
    }
    return &m->values[m->stack[m->depth - 1 - below]];
}

/* How many values stand above the topmost mark, or -1. */
static int64_t above_mark(const wg__pickle_machine *m) {
    for (int64_t i = m->depth - 1; i >= 0; i--)
        if (m->values[m->stack[i]].kind == WG__PICKLE_MARK)
            return m->depth - 1 - i;
    return wg__pickle_fail(m, "an instruction wants a mark that is not on the stack");
}

static int append(wg__pickle_value *list, int32_t number) {
    if (grow((void **)&list->items, list->count, &list->capacity, sizeof *list->items) < 0)
        return -1;
    list->items[list->count++] = number;
    return 0;
}

/* Appends the topmost `count` values, from the deepest on, and takes them off. */
static int append_top(wg__pickle_machine *m, wg__pickle_value *list, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (append(list, m->stack[m->depth - count + i]) < 0)
            return -1;
    m->depth -= count;
    return 0;
}

/* ---- Instructions ---- */

static const uint8_t *take(wg__pickle_machine *m, int64_t count) {
    if (count > m->count - m->at) {
        wg__pickle_fail(m, "it ends in the middle of an instruction");
        return NULL;
    }
    m->at += count;
    return m->bytes + m->at - count;
}

static int make_tuple(wg__pickle_machine *m, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    for (int64_t i = 0; i < count; i++)
        if (!wg__pickle_peek(m, i))
            return -1;
    wg__pickle_value made = {.kind = WG__PICKLE_SEQUENCE};
    int status = append_top(m, &made, count);
    m->depth -= has_mark;
    wg__pickle_value *tuple = status == 0 ? wg__pickle_push_new(m, WG__PICKLE_SEQUENCE) : NULL;
    if (tuple)
        *tuple = made;
    else
        wg__free(made.items);
    return tuple ? 0 : -1;
}

static int set_items(wg__pickle_machine *m, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    if (count % 2 != 0)
        return wg__pickle_fail(m, "a key has no value");
    wg__pickle_value *dict = wg__pickle_peek(m, count + has_mark);
    if (!dict)
        return -1;
    if (dict->kind != WG__PICKLE_DICT)
        return wg__pickle_fail(m, "items are set in what is no dict");
    if (append_top(m, dict, count) < 0)
        return -1;
    m->depth -= has_mark;
    return 0;
}

static int append_items(wg__pickle_machine *m, int64_t count, bool has_mark) {
    if (count < 0)
        return -1;
    wg__pickle_value *list = wg__pickle_peek(m, count + has_mark);
    if (!list)
        return -1;
    if (list->kind != WG__PICKLE_SEQUENCE)
        return wg__pickle_fail(m, "values are appended to what is no list");
    if (append_top(m, list, count) < 0)
        return -1;
    m->depth -= has_mark;
    return 0;
}

static int push_text(wg__pickle_machine *m) {
    const uint8_t *size = take(m, 4);
    const int64_t length = size ? wg__le32(size) : 0;
    const uint8_t *bytes = size ? take(m, length) : NULL;
    wg__pickle_value *text = bytes ? wg__pickle_push_new(m, WG__PICKLE_TEXT) : NULL;
    if (!text)
        return -1;
    text->text = (const char *)bytes;
    text->integer = length;
    return 0;
}

static int push_integer(wg__pickle_machine *m, int64_t number) {
    wg__pickle_value *integer = wg__pickle_push_new(m, WG__PICKLE_INTEGER);
    if (integer)
        integer->integer = number;
    return integer ? 0 : -1;
}

/* Little-endian, two's complement, `size` bytes. */
static int push_bytes_integer(wg__pickle_machine *m, int64_t size, bool is_signed) {
    const uint8_t *bytes = size <= 8 ? take(m, size) : NULL;
    if (!bytes)
        return size <= 8 ? -1 : wg__pickle_fail(m, "a number has more than 64 bits");
    uint64_t number = 0;
    for (int64_t i = 0; i < size; i++)
        number |= (uint64_t)bytes[i] << 8 * i;
    if (is_signed && size > 0 && size < 8 && bytes[size - 1] & 0x80)
        number |= UINT64_MAX << 8 * size;
    return push_integer(m, (int64_t)number);
}

static int put_memo(wg__pickle_machine *m, int64_t number) {
    if (number >= m->count)
        return wg__pickle_fail(m, "a memo has a number beyond the pickle's length");
    if (!wg__pickle_peek(m, 0))
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

static int get_memo(wg__pickle_machine *m, int64_t number) {
    if (number >= m->memo_capacity || m->memo[number] < 0)
        return wg__pickle_fail(m, "a memo that was not made is wanted");
    return wg__pickle_push(m, m->memo[number]);
}

/* What torch sets on a dict, "_metadata", says nothing about tensors. */
static int build(wg__pickle_machine *m) {
    const wg__pickle_value *object = wg__pickle_peek(m, 1);
    if (!object || !wg__pickle_peek(m, 0))
        return -1;
    if (object->kind != WG__PICKLE_DICT)
        return wg__pickle_fail(m, "the state of what is no dict is set");
    m->depth--;
    return 0;
}

/* ---- The loop ---- */

static int step_number(wg__pickle_machine *m, uint8_t code) {
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
        return take(m, 8) && wg__pickle_push_new(m, WG__PICKLE_NOTHING) ? 0 : -1;
    default:
        return wg__weights_fail(m->file,
                                "data.pkl, byte %lld: instruction 0x%02x, which no dict of tensors "
                                "takes",
                                (long long)m->at - 1, code);
    }
}

static int step_memo(wg__pickle_machine *m, uint8_t code) {
    const bool is_long = code == 'r' || code == 'j', is_put = code == 'q' || code == 'r';
    const uint8_t *bytes = take(m, is_long ? 4 : 1);
    if (!bytes)
        return -1;
    const int64_t number = is_long ? wg__le32(bytes) : *bytes;
    return is_put ? put_memo(m, number) : get_memo(m, number);
}

static int step(wg__pickle_machine *m, uint8_t code) {
    switch (code) {
    case 0x80:
        return take(m, 1) ? 0 : -1;
    case 'c':
        return wg__pickle_push_global(m);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
        return step_memo(m, code);
    case '(':
        return wg__pickle_push_new(m, WG__PICKLE_MARK) ? 0 : -1;
    case ')':
    case ']':
        return wg__pickle_push_new(m, WG__PICKLE_SEQUENCE) ? 0 : -1;
    case '}':
        return wg__pickle_push_new(m, WG__PICKLE_DICT) ? 0 : -1;
    case 'N':
        return wg__pickle_push_new(m, WG__PICKLE_NOTHING) ? 0 : -1;
    case 0x88:
    case 0x89:
        return wg__pickle_push_new(m, WG__PICKLE_TRUTH) ? 0 : -1;
    case 'X':
        return push_text(m);
    case 't':
        return make_tuple(m, above_mark(m), true);
    case 0x85:
    case 0x86:
    case 0x87:
        return make_tuple(m, code - 0x84, false);
    case 'R':
        return wg__pickle_reduce(m);
    case 'Q':
        return wg__pickle_push_storage(m);
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

int wg__pickle_run(wg__pickle_machine *m) {
    for (;;) {
        const uint8_t *code = take(m, 1);
        if (!code)
            return -1;
        if (*code == '.')
            return wg__pickle_peek(m, 0) ? 0 : -1;
        if (step(m, *code) < 0)
            return -1;
    }
}

void wg__pickle_clear(wg__pickle_machine *m) {
    for (int64_t i = 0; i < m->value_count; i++) {
        wg__free(m->values[i].items);
        wg__free(m->values[i].storage);
        wg__free(m->values[i].tensor);
    }
    wg__free(m->values);
    wg__free(m->stack);
    wg__free(m->memo);
}
