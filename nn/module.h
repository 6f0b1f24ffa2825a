/* The module tree: creating is naming is owning.
 *
 *     bert (root)
 *     +- embeddings
 *     |  `- word_embeddings           weight [vocab, width]
 *     `- encoder
 *        `- layer
 *           +- 0
 *           |  `- attention.self.query   weight [width, width], bias [width]
 *           ...
 *
 * A `wg_module` is the first member of every layer and model. A parent owns its children; freeing
 * the root frees all. Paths ("encoder.layer.0.attention.self.query.weight") are composed on demand.
 * Each model has the paths of its published checkpoints. */
#ifndef WG_NN_MODULE_H
#define WG_NN_MODULE_H

#include "../autograd/autograd.h"
#include "../tensor/quantize.h"

WG_BEGIN_DECLS

/* ---- Initial values of parameters ----
 *
 *     wg_initializer how = {WG_INIT_TRUNCATED_NORMAL, 0.02};
 *     wg_initialize(linear->weight, &how, wg_module_generator(&linear->module));
 *
 * A weight (O, I, ...) has fan_in I and fan_out O, each times the product of the later axes. */

typedef enum wg_init_kind {
    WG_INIT_DEFAULT,          /* the layer's own default */
    WG_INIT_ZEROS,            /* 0 */
    WG_INIT_ONES,             /* 1 */
    WG_INIT_UNIFORM,          /* uniform in [-scale, scale) */
    WG_INIT_NORMAL,           /* normal with mean 0 and standard deviation scale */
    WG_INIT_TRUNCATED_NORMAL, /* the same, drawn again while beyond 2 scale, as TensorFlow does */
    WG_INIT_XAVIER_UNIFORM,  /* uniform with variance scale^2 2/(fan_in + fan_out)  (Glorot 2010) */
    WG_INIT_XAVIER_NORMAL,   /* normal with that variance */
    WG_INIT_KAIMING_UNIFORM, /* uniform with variance scale^2 / fan_in   (He et al. 2015); scale
                                sqrt(2) is the gain of ReLU */
    WG_INIT_KAIMING_NORMAL   /* normal with that variance */
} wg_init_kind;

/* All zero, in a layer's options, is the layer's default. */
typedef struct wg_initializer {
    wg_init_kind kind;
    double scale; /* see the kinds; 0 is 1 */
} wg_initializer;

/* Fills a floating tensor, which may be a leaf that requires a gradient. NULL is the default
 * generator. Every random kind consumes one draw. -1 with [DTYPE; ARGUMENT for WG_INIT_DEFAULT, no
 * kind, a scale that is negative or not finite, or an expanded view; SHAPE below rank 2 for Xavier
 * and Kaiming] */
WG_API int wg_initialize(wg_tensor *x, const wg_initializer *how, wg_generator *generator);

/* ---- The tree ---- */

typedef struct wg_module wg_module;

typedef enum wg_slot_kind {
    WG_SLOT_PARAMETER, /* trained: requires a gradient */
    WG_SLOT_BUFFER     /* saved, not trained */
} wg_slot_kind;

typedef struct wg_slot {
    char *name;
    wg_tensor *tensor; /* kept; shared with another slot when tied */
    wg_slot_kind kind;
    bool tied;           /* the tensor belongs to another slot: not saved or counted again */
    bool no_decay;       /* weight decay leaves it alone: biases and norms */
    wg_initializer init; /* how its layer filled it; WG_INIT_DEFAULT: otherwise than by this */
    struct wg_slot *next;
} wg_slot;

struct wg_module {
    char *name;        /* its place in the parent; "" for a root, or to show in no path */
    wg_module *parent; /* NULL for a root */
    wg_module *first_child, *last_child, *next_sibling;
    wg_slot *first_slot, *last_slot;
    void (*destroy)(wg_module *); /* frees the type's own memory, not the slots; may be NULL */
    void *owned;                  /* memory freed with the module: arrays of layers */
    bool evaluating; /* of the root: no dropout, running statistics are used and left as they are */
    bool checkpoints_activations; /* of the root: activation checkpointing of its layers */
    wg_generator generator;       /* of the root: dropout and initialization draw from it */
};

/* Allocates a zeroed struct of `size` bytes, whose first member is the module, and adds it to
 * `parent` under `name`. With parent NULL it is a root: the caller frees it, its name is "", and
 * its generator is seeded from the thread's default generator. A name may join parts by dots
 * ("attention.self"), without slashes. A child named "" adds no part to paths. While an error is
 * pending the function does nothing, so a constructor can add all its layers, and check for failure
 * once by wg_module_finish. [MEMORY; ARGUMENT for a name
 * taken] */
WG_API void *wg_module_new(wg_module *parent, const char *name, size_t size);

/* Makes a root with everything below it a child of `parent`, under that name: PyTorch's add_module.
 * The mode, the generator and the checkpointing of the parent's root now apply to the child, and
 * replace the child's own. Returns the child, or NULL with nothing done. [ARGUMENT for a
 * name or a path that is taken, for a child that is no root, and for the root of `parent`; MEMORY]
 */
WG_API wg_module *wg_module_add(wg_module *parent, const char *name, wg_module *child);

/* Frees a root with everything below it; NULL is allowed. `destroy` of a parent runs before its
 * children go. [ARGUMENT, with nothing done, for a child] */
WG_API void wg_module_free(wg_module *root);

/* Finishes a constructor: returns `module`, or, if an error is pending, frees it when it is a root
 * and returns NULL (a child is left to its parent's failure). */
WG_API void *wg_module_finish(wg_module *module);

/* The generator of the root. */
WG_API wg_generator *wg_module_generator(wg_module *module);

/* Switches the whole tree of `module`'s root between training (true, as it begins) and evaluation.
 */
WG_API void wg_module_train(wg_module *module, bool training);
WG_API bool wg_module_is_training(wg_module *module);

/* Dropout as layers use it: in training each element of x is zeroed with probability p, otherwise
 * scaled by 1 / (1 - p) (Srivastava et al. 2014); in evaluation, or with p = 0, x itself comes back
 * and nothing is drawn from the root's generator. [scope; ARGUMENT outside 0 <= p < 1, DTYPE] */
WG_API wg_tensor *wg_dropout(wg_module *module, wg_tensor *x, double p);

/* Activation checkpointing of the tree's stacks (stack.h): backward recomputes each layer
 * (autograd/functional.h). The gradients are the same, bit for bit, for less memory and a second
 * forward. Off at first. */
WG_API void wg_module_checkpoint_activations(wg_module *module, bool on);

/* Adds a parameter of that shape, f32, uninitialized (see wg_initialize), requiring a gradient.
 * Borrowed from the module. NULL with an error. [SHAPE, MEMORY; ARGUMENT for a name taken] */
WG_API wg_tensor *wg_module_parameter(wg_module *module, const char *name, int ndim,
                                      const int64_t *shape);

/* Adds a buffer, a tensor that is saved but not trained: a kept handle on `tensor`'s storage, which
 * is returned and belongs to the module. [MEMORY; ARGUMENT for a name taken, and for a view
 * whose elements share an address, since loading writes to buffers] */
WG_API wg_tensor *wg_module_buffer(wg_module *module, const char *name, wg_tensor *tensor);

/* Gives another module's parameter, or buffer, a second name here: tied weights are one tensor in
 * two slots. Returns it. [ARGUMENT if no slot of this tree owns it; MEMORY] */
WG_API wg_tensor *wg_module_tie(wg_module *module, const char *name, wg_tensor *parameter);

/* Excludes a parameter of this module from weight decay. [NOT_FOUND] */
WG_API void wg_module_no_decay(wg_module *module, const char *name);

/* One entry of a state dict. */
typedef struct wg_state_entry {
    char *path; /* from the root of the walk, dots between */
    wg_slot *slot;
} wg_state_entry;

/* All slots below a module, tied ones included: the module's own slots, then the slots of its
 * children, each in the order of creation. */
typedef struct wg_state_dict {
    int64_t count;
    wg_state_entry *entries;
} wg_state_dict;

/* Lists the slots of the tree below `module`. Free it with wg_state_dict_free. NULL with MEMORY. */
WG_API wg_state_dict *wg_module_state(wg_module *module);
WG_API void wg_state_dict_free(wg_state_dict *state);

/* The slot of that path below `module`, or NULL (no error is recorded). */
WG_API wg_slot *wg_module_find(wg_module *module, const char *path);

/* The number of trained numbers below `module`, tied ones once. */
WG_API int64_t wg_module_parameter_count(wg_module *module);

/* PyTorch's requires_grad_ for all parameters below `module`. false freezes them: backward computes
 * no gradients for them, and optimizers and trainers made afterwards skip them. true undoes it. */
WG_API int wg_module_requires_grad(wg_module *module, bool wanted);

/* Changes the dtype of all floating parameters and buffers (f32 or f64, for gradient checks) in
 * their handles, or of none if that fails. Gradients are dropped. [DTYPE, MEMORY] */
WG_API int wg_module_to(wg_module *module, wg_dtype dtype);

/* Quantizes the matrices of all linear layers below `module`, for inference: a buffer of quantized
 * rows replaces the slot's parameter, whose memory is freed. Blocks are interleaved (quantize.h:
 * q8_0 becomes q8_0x16), and are multiplied as in wg_quantized_linear. A matrix becomes bf16 if its
 * rows are not whole blocks. A layer with a tied weight (a head tied to the embedding) gets a
 * quantized copy, and the owner's slot keeps the parameter. A weight shared by a tied slot is not
 * quantized. After an error some layers are quantized and others not. [MEMORY; ARGUMENT outside the
 * enum] */
WG_API int wg_module_quantize(wg_module *module, wg_quantization quantization);

/* ---- Where an error happens ----
 * Between these two calls an error of this thread begins with the path of the module in its tree.
 * The layers of the library call them; user-defined layers may, around their ops:
 *
 *     wg_error_place place;
 *     wg_module_enter(&block->module, &place);
 *     wg_tensor *y = wg_mul(x, block->scale);
 *     return wg_module_leave(&place, y);      "layers.3.block: mul: (2, 8) and (9): ..."
 *
 * A root has no path. wg_module_leave returns its second argument. */
WG_API void wg_module_enter(const wg_module *module, wg_error_place *place);
WG_API wg_tensor *wg_module_leave(const wg_error_place *place, wg_tensor *result);

WG_END_DECLS

#endif
