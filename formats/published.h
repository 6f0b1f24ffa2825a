/* The tensors that a published checkpoint of a model has, known from its configuration alone: a
 * model of any size is converted tensor by tensor, without being built. */
#ifndef WG_FORMATS_PUBLISHED_H
#define WG_FORMATS_PUBLISHED_H

#include "nn/init.h"
#include "tensor/tensor.h"

typedef struct wg__published_tensor {
    char name[160];
    int ndim;
    int64_t shape[2];
    bool may_miss; /* a head that not every checkpoint has: it begins as `init` says */
    wg_initializer init;
} wg__published_tensor;

typedef struct wg__published_model {
    const struct wg__published_kind *kind;
    const char *type;         /* "bert", "gpt2", "llama", "t5", "glm" or "transformer" */
    const char *architecture; /* the class that others load it by, or NULL */
    char *config;             /* its JSON, as wengert keeps it */
    int64_t vocabulary;
    int64_t ends;   /* tokens that a list said end a text: the first is kept; 0: no list */
    bool tied_head; /* lm_head is the table of tokens */
    int64_t count, capacity;
    wg__published_tensor *tensors;
} wg__published_model;

/* The model of a configuration's JSON. `type` is what stands for a model_type that the JSON does
 * not have; NULL: it must have one. Freed with wg__published_free. NULL with [FORMAT, ARGUMENT,
 * MEMORY]
 */
wg__published_model *wg__published_read(const char *json, const char *type);
void wg__published_free(wg__published_model *model);

/* The index of a tensor that files call `name`, which may lack a prefix ("wte.weight",
 * "embeddings..."), or have an old name (LayerNorm.gamma); -1: not one of this model; -2: one that
 * files have beside the model and that says nothing new (masks, tied weights). */
int64_t wg__published_find(const wg__published_model *model, const char *name);

/* The type of model whose published names have such a part, or NULL. */
const char *wg__published_type_of(const char *name);

#endif
