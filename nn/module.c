/* The module tree.
 *
 * Invariants: a module is in exactly one list of children (or is a root); a name is unique among
 * the slots and children of a module, and a path is unique in its tree. A tied slot has the handle
 * of the owning slot, so a change of the tensor in place changes both. */
#include "nn/internal.h"

#include "tensor/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int wg__check_size(const char *where, const char *what, int64_t size) {
    if (size >= 1)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %lld; it must be at least 1", what,
                   (long long)size);
}

int wg__check_probability(const char *where, const char *what, double p) {
    if (p >= 0 && p < 1)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %g; it must be at least 0 and below 1", what,
                   p);
}

/* ---- Walking ---- */

wg_module *wg__module_next(const wg_module *top, wg_module *module) {
    if (module->first_child)
        return module->first_child;
    while (module != top && !module->next_sibling)
        module = module->parent;
    return module == top ? NULL : module->next_sibling;
}

wg_module *wg__module_root(wg_module *module) {
    while (module && module->parent)
        module = module->parent;
    return module;
}

wg_slot *wg_module_find(wg_module *module, const char *path) {
    if (!module || !path)
        return NULL;
    for (wg_slot *slot = module->first_slot; slot; slot = slot->next)
        if (strcmp(slot->name, path) == 0)
            return slot;
    /* A name may hold dots itself, so more than one child can fit the path's beginning. */
    for (wg_module *child = module->first_child; child; child = child->next_sibling) {
        const size_t length = strlen(child->name); /* 0: the child adds no part to the path */
        if (length > 0 && (strncmp(path, child->name, length) != 0 || path[length] != '.'))
            continue;
        wg_slot *found = wg_module_find(child, length > 0 ? path + length + 1 : path);
        if (found)
            return found;
    }
    return NULL;
}

/* "a.b.name" from below `top` down to a name in `module`; NULL with MEMORY. */
static char *compose_path(const wg_module *top, const wg_module *module, const char *name) {
    size_t length = strlen(name) + 1;
    for (const wg_module *m = module; m != top; m = m->parent)
        if (m->name[0])
            length += strlen(m->name) + 1;
    char *path = wg__alloc(length);
    if (!path)
        return NULL;
    char *end = path + length - strlen(name) - 1;
    strcpy(end, name);
    for (const wg_module *m = module; m != top; m = m->parent) {
        if (!m->name[0])
            continue;
        *--end = '.';
        end -= strlen(m->name);
        memcpy(end, m->name, strlen(m->name));
    }
    return path;
}

void wg__module_path(const void *of, char *text, size_t size) {
    char *end = text + size - 1, *at = end;
    *end = '\0';
    for (const wg_module *m = of; m; m = m->parent) {
        const size_t length = strlen(m->name), dot = at < end && length > 0;
        if (length + dot > (size_t)(at - text))
            break;
        if (dot)
            *--at = '.';
        at -= length;
        memcpy(at, m->name, length);
    }
    memmove(text, at, (size_t)(end - at) + 1);
}

int wg_module_requires_grad(wg_module *module, bool wanted) {
    for (wg_module *m = module; m; m = wg__module_next(module, m))
        for (wg_slot *slot = m->first_slot; slot; slot = slot->next)
            if (slot->kind == WG_SLOT_PARAMETER && wg_set_requires_grad(slot->tensor, wanted) < 0)
                return -1;
    return 0;
}

void wg_module_enter(const wg_module *module, wg_error_place *place) {
    *place = (wg_error_place){.write = wg__module_path, .of = module};
    wg__error_enter(place);
}

wg_tensor *wg_module_leave(const wg_error_place *place, wg_tensor *result) {
    wg__error_leave(place);
    return result;
}

/* ---- Modules ---- */

/* -1 with ARGUMENT unless a child or slot of that name may be added. */
static int check_name(wg_module *module, const char *name, const char *where) {
    const size_t length = name ? strlen(name) : 0;
    if (length == 0 || name[0] == '.' || name[length - 1] == '.' || strchr(name, '/') ||
        strstr(name, ".."))
        return wg_fail(WG_ERROR_ARGUMENT, where, "\"%s\" is no name; dots may join parts, no slash",
                       name ? name : "");
    bool taken = false;
    for (wg_module *child = module->first_child; child; child = child->next_sibling)
        taken |= strcmp(child->name, name) == 0;
    for (wg_slot *slot = module->first_slot; slot; slot = slot->next)
        taken |= strcmp(slot->name, name) == 0;
    if (taken)
        return wg_fail(WG_ERROR_ARGUMENT, where, "module \"%s\" has a \"%s\" already", module->name,
                       name);
    return 0;
}

static void append_child(wg_module *parent, wg_module *child) {
    child->parent = parent;
    if (parent->last_child)
        parent->last_child->next_sibling = child;
    else
        parent->first_child = child;
    parent->last_child = child;
}

void *wg_module_new(wg_module *parent, const char *name, size_t size) {
    if (wg_error_pending())
        return NULL;
    if (size < sizeof(wg_module))
        return wg__fail_null(WG_ERROR_ARGUMENT, "module_new",
                             "%zu bytes hold no wg_module as first member", size);
    bool named = !name || name[0];
    if (parent && named && check_name(parent, name, "module_new") < 0)
        return NULL;
    wg_module *module = wg__calloc(1, size);
    char *copy = wg__strdup(parent ? name : "");
    if (!module || !copy) {
        wg__free(module);
        wg__free(copy);
        return NULL;
    }
    module->name = copy;
    if (parent)
        append_child(parent, module);
    else
        module->generator.seed = wg_random_below(wg_default_generator(), UINT64_MAX);
    return module;
}

/* Freed modules get this parent if lifetimes are checked, so that freeing one twice is an error. */
static wg_module freed;

/* `destroy` runs first, while the children that the type may point into are still there. */
static void free_tree(wg_module *module) {
    if (module->destroy)
        module->destroy(module);
    for (wg_module *child = module->first_child, *next; child; child = next) {
        next = child->next_sibling;
        free_tree(child);
    }
    for (wg_slot *slot = module->first_slot, *next; slot; slot = next) {
        next = slot->next;
        if (!slot->tied)
            wg_release(slot->tensor);
        wg__free(slot->name);
        wg__free(slot);
    }
    for (void **block = module->owned, **next; block; block = next) {
        next = *block;
        wg__free(block);
    }
    wg__free(module->name);
    if (wg__checks_lifetimes) {
        *module = (wg_module){.parent = &freed};
        wg__free_later(module);
    } else {
        wg__free(module);
    }
}

void wg_module_free(wg_module *root) {
    if (!root)
        return;
    if (root->parent == &freed)
        wg_fail(WG_ERROR_STATE, "module_free", "this module was freed already");
    else if (root->parent)
        wg_fail(WG_ERROR_ARGUMENT, "module_free", "\"%s\" belongs to its parent; free the root",
                root->name);
    else
        free_tree(root);
}

/* A block of `module->owned` begins with the address of the next block; the array follows after 16
 * bytes. */
void *wg__layers_new(wg_module *module, const char *name, int64_t count, wg__layer_maker make,
                     const void *config) {
    enum { BEHIND = 16 };
    char *block = wg__calloc(1, BEHIND + (size_t)wg__times(count, sizeof(void *)));
    if (!block)
        return NULL;
    *(void **)block = module->owned;
    module->owned = block;
    void **layers = (void **)(block + BEHIND);
    for (int64_t i = 0; i < count; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s.%" PRId64, name, i);
        layers[i] = make(module, path, i, config);
    }
    return layers;
}

void wg__module_drop(wg_module *child) {
    wg_module *parent = child->parent, *before = NULL;
    for (wg_module *m = parent->first_child; m != child; m = m->next_sibling)
        before = m;
    *(before ? &before->next_sibling : &parent->first_child) = child->next_sibling;
    if (parent->last_child == child)
        parent->last_child = before;
    free_tree(child);
}

void *wg_module_finish(wg_module *module) {
    if (module && !wg_error_pending())
        return module;
    if (module && !module->parent)
        wg_module_free(module);
    return NULL;
}

wg_generator *wg_module_generator(wg_module *module) {
    return module ? &wg__module_root(module)->generator : NULL;
}

void wg_module_train(wg_module *module, bool training) {
    if (module)
        wg__module_root(module)->evaluating = !training;
}

bool wg_module_is_training(wg_module *module) {
    return module && !wg__module_root(module)->evaluating;
}

void wg_module_checkpoint_activations(wg_module *module, bool on) {
    if (module)
        wg__module_root(module)->checkpoints_activations = on;
}

wg_tensor *wg_dropout(wg_module *module, wg_tensor *x, double p) {
    if (wg__check_probability("dropout", "p", p) < 0)
        return NULL;
    if (!x || p == 0 || !wg_module_is_training(module))
        return x;
    wg_generator *generator = wg_module_generator(module);
    return wg_dropout_op(x, p, generator->seed, generator->offset++);
}

/* ---- Slots ---- */

/* -1 with ARGUMENT if the tree has the path already, composed of other names. */
static int check_path(wg_module *module, const char *name, const char *where) {
    wg_module *root = wg__module_root(module);
    char *path = compose_path(root, module, name);
    if (!path)
        return -1;
    int status = 0;
    if (wg_module_find(root, path))
        status = wg_fail(WG_ERROR_ARGUMENT, where, "the tree has a \"%s\" already", path);
    wg__free(path);
    return status;
}

wg_module *wg_module_add(wg_module *parent, const char *name, wg_module *child) {
    if (!parent || !child || wg_error_pending())
        return NULL;
    if (child->parent || child == wg__module_root(parent))
        return wg__fail_null(WG_ERROR_ARGUMENT, "module_add", "\"%s\" %s", name ? name : "",
                             child->parent ? "belongs to a parent already; only a root can be added"
                                           : "is the root of the tree to which it would be added");
    if (check_name(parent, name, "module_add") < 0)
        return NULL;
    /* The paths of the slots below `child` must be free, too. */
    wg_state_dict *state = wg_module_state(child);
    int status = state ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < state->count; i++) {
        const char *path = state->entries[i].path;
        char *whole = wg__alloc(strlen(name) + strlen(path) + 2);
        if (whole)
            sprintf(whole, "%s.%s", name, path);
        status = whole ? check_path(parent, whole, "module_add") : -1;
        wg__free(whole);
    }
    wg_state_dict_free(state);
    char *copy = status == 0 ? wg__strdup(name) : NULL;
    if (!copy)
        return NULL;
    wg__free(child->name);
    child->name = copy;
    append_child(parent, child);
    return child;
}

/* Appends a new, empty slot to the module; NULL with an error. */
static wg_slot *append_slot(wg_module *module, const char *name, wg_slot_kind kind,
                            const char *where) {
    if (check_name(module, name, where) < 0 || check_path(module, name, where) < 0)
        return NULL;
    wg_slot *slot = wg__calloc(1, sizeof *slot);
    char *copy = wg__strdup(name);
    if (!slot || !copy) {
        wg__free(slot);
        wg__free(copy);
        return NULL;
    }
    slot->name = copy;
    slot->kind = kind;
    if (module->last_slot)
        module->last_slot->next = slot;
    else
        module->first_slot = slot;
    module->last_slot = slot;
    return slot;
}

/* Adds a slot that owns the kept handle `tensor`. NULL for a NULL tensor, or with an error. */
static wg_tensor *add_owned_slot(wg_module *module, const char *name, wg_slot_kind kind,
                                 wg_tensor *tensor, const char *where) {
    wg_slot *slot = tensor ? append_slot(module, name, kind, where) : NULL;
    if (!slot) {
        wg_release(tensor);
        return NULL;
    }
    return slot->tensor = tensor;
}

wg_tensor *wg_module_parameter(wg_module *module, const char *name, int ndim,
                               const int64_t *shape) {
    if (!module || wg_error_pending())
        return NULL;
    wg_spec spec;
    if (wg__spec_make(&spec, WG_F32, ndim, shape, "module_parameter") < 0)
        return NULL;
    wg_tensor *tensor = wg_keep(wg__tensor_make(&spec, wg__meta_init));
    if (wg_set_requires_grad(tensor, true) < 0) {
        wg_release(tensor);
        return NULL;
    }
    return add_owned_slot(module, name, WG_SLOT_PARAMETER, tensor, "module_parameter");
}

wg_tensor *wg_module_buffer(wg_module *module, const char *name, wg_tensor *tensor) {
    if (!module || !tensor || wg_error_pending() || wg__check_apart(tensor, "module_buffer") < 0)
        return NULL;
    wg_tensor *kept = wg__meta_init ? wg_keep(wg__tensor_make(&tensor->spec, true))
                                    : wg__tensor_reference(tensor, true);
    return add_owned_slot(module, name, WG_SLOT_BUFFER, kept, "module_buffer");
}

wg_tensor *wg_module_tie(wg_module *module, const char *name, wg_tensor *parameter) {
    if (!module || !parameter || wg_error_pending())
        return NULL;
    wg_module *root = wg__module_root(module);
    const wg_slot *owner = NULL;
    for (wg_module *m = root; m && !owner; m = wg__module_next(root, m))
        for (const wg_slot *slot = m->first_slot; slot; slot = slot->next)
            owner = slot->tensor == parameter && !slot->tied ? slot : owner;
    if (!owner)
        return wg__fail_null(WG_ERROR_ARGUMENT, "module_tie",
                             "\"%s\": no slot of this tree owns the tensor", name);
    wg_slot *slot = append_slot(module, name, owner->kind, "module_tie");
    if (!slot)
        return NULL;
    slot->tied = true;
    return slot->tensor = parameter;
}

void wg_module_no_decay(wg_module *module, const char *name) {
    if (!module || wg_error_pending())
        return;
    wg_slot *slot = module->first_slot;
    while (slot && strcmp(slot->name, name) != 0)
        slot = slot->next;
    if (slot)
        slot->no_decay = true;
    else
        wg_fail(WG_ERROR_NOT_FOUND, "module_no_decay", "module \"%s\" has no \"%s\"", module->name,
                name);
}

/* ---- The tree as a whole ---- */

wg_state_dict *wg_module_state(wg_module *module) {
    if (!module)
        return NULL;
    int64_t count = 0;
    for (wg_module *m = module; m; m = wg__module_next(module, m))
        for (wg_slot *slot = m->first_slot; slot; slot = slot->next)
            count++;
    wg_state_dict *state = wg__calloc(1, sizeof *state);
    if (state)
        state->entries = wg__calloc((size_t)count + 1, sizeof *state->entries);
    bool made = state && state->entries;
    for (wg_module *m = module; m && made; m = wg__module_next(module, m))
        for (wg_slot *slot = m->first_slot; slot && made; slot = slot->next) {
            char *path = compose_path(module, m, slot->name);
            state->entries[state->count++] = (wg_state_entry){path, slot};
            made = path != NULL;
        }
    if (made)
        return state;
    wg_state_dict_free(state);
    return NULL;
}

void wg_state_dict_free(wg_state_dict *state) {
    if (!state)
        return;
    for (int64_t i = 0; i < state->count; i++)
        wg__free(state->entries[i].path);
    wg__free(state->entries);
    wg__free(state);
}

int64_t wg_module_parameter_count(wg_module *module) {
    int64_t count = 0;
    for (wg_module *m = module; m; m = wg__module_next(module, m))
        for (wg_slot *slot = m->first_slot; slot; slot = slot->next)
            if (slot->kind == WG_SLOT_PARAMETER && !slot->tied)
                count += wg_tensor_count(slot->tensor);
    return count;
}

/* ---- Changing the dtype. Layers keep the handles, so handles stay and their contents change. ----
 */

int wg_module_to(wg_module *module, wg_dtype dtype) {
    if (!module || wg_error_pending())
        return -1;
    if (dtype != WG_F32 && dtype != WG_F64)
        return wg_fail(WG_ERROR_DTYPE, "module_to", "%s is neither f32 nor f64",
                       wg_dtype_name(dtype));
    wg_state_dict *state = wg_module_state(module);
    if (!state)
        return -1;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor **casts = wg__calloc((size_t)state->count + 1, sizeof *casts);
    int status = casts ? 0 : -1;
    /* Convert all before exchanging the first, so that a failure changes nothing. */
    for (int64_t i = 0; i < state->count && status == 0; i++) {
        const wg_slot *slot = state->entries[i].slot;
        const wg_dtype now = wg_tensor_dtype(slot->tensor);
        if (slot->tied || !wg_dtype_is_float(now) || now == dtype)
            continue;
        casts[i] = wg_cast(wg_detach(slot->tensor), dtype);
        if (!casts[i] ||
            (wg_requires_grad(slot->tensor) && wg_set_requires_grad(casts[i], true) < 0))
            status = -1;
    }
    for (int64_t i = 0; i < state->count && status == 0; i++) {
        if (!casts[i])
            continue;
        wg_tensor *a = state->entries[i].slot->tensor, *b = casts[i], old = *a;
        a->storage = b->storage, b->storage = old.storage;
        a->offset = b->offset, b->offset = old.offset;
        a->spec = b->spec, b->spec = old.spec;
        memcpy(a->strides, b->strides, sizeof a->strides);
        memcpy(b->strides, old.strides, sizeof b->strides);
        a->node = b->node, b->node = old.node;
        a->output_index = b->output_index, b->output_index = old.output_index;
    }
    wg__free(casts);
    wg_scope_end(&scope, NULL);
    wg_state_dict_free(state);
    return status;
}
