/* The tensors in the dict that a pickle makes. See pickle.h. */
#include "io/weights/pickle.h"

#include <string.h>

enum { MOST_DEPTH = 8, MOST_VISITS = 4000000 };

typedef struct walk {
    const wg__pickle_machine *m;
    wg__pickle_visitor visit;
    void *context;
    int64_t visits;
    char name[WG__MAX_TENSOR_NAME + 1];
} walk;

/* Appends a key to the name; returns the length that the name had, or -1. */
static int64_t enter(walk *w, const wg__pickle_value *key) {
    const size_t used = strlen(w->name), dot = used > 0;
    if (key->kind != WG__PICKLE_TEXT || memchr(key->text, '\0', (size_t)key->integer) ||
        used + dot + (size_t)key->integer > WG__MAX_TENSOR_NAME)
        return wg__weights_fail(w->m->file, "data.pkl: a tensor has no name of fair length");
    if (dot)
        w->name[used] = '.';
    memcpy(w->name + used + dot, key->text, (size_t)key->integer);
    w->name[used + dot + (size_t)key->integer] = '\0';
    return (int64_t)used;
}

/* A dict may hold itself, or one dict many times: depth and visits end that. */
static int visit_dict(walk *w, const wg__pickle_value *dict, int depth) {
    for (int64_t i = 0; i + 1 < dict->count; i += 2) {
        const wg__pickle_value *key = &w->m->values[dict->items[i]],
                               *held = &w->m->values[dict->items[i + 1]];
        if (++w->visits > MOST_VISITS)
            return wg__weights_fail(w->m->file, "data.pkl: more than %d values", MOST_VISITS);
        if (held->kind != WG__PICKLE_TENSOR && held->kind != WG__PICKLE_DICT)
            continue;
        if (depth == MOST_DEPTH)
            return wg__weights_fail(w->m->file, "data.pkl: dicts are nested more than %d deep",
                                    MOST_DEPTH);
        const int64_t used = enter(w, key);
        if (used < 0)
            return -1;
        int status = 0;
        if (held->kind == WG__PICKLE_TENSOR) {
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

int wg__pickle_read(const wg_weights *file, const uint8_t *bytes, int64_t count,
                    wg__pickle_visitor visit, void *context) {
    wg__pickle_machine m = {.file = file, .bytes = bytes, .count = count};
    walk w = {.m = &m, .visit = visit, .context = context};
    int status = wg__pickle_run(&m);
    if (status == 0) {
        const wg__pickle_value *top = wg__pickle_peek(&m, 0);
        status = top->kind == WG__PICKLE_DICT
                     ? visit_dict(&w, top, 0)
                     : wg__pickle_fail(&m, "what it makes is no dict of tensors");
    }
    wg__pickle_clear(&m);
    return status;
}
