/* What published.c asks of each kind of model: its list of tensors, and how files name them. A new
 * kind is one list and one such record in published_lists.c. */
#ifndef WG_FORMATS_PUBLISHED_KIND_H
#define WG_FORMATS_PUBLISHED_KIND_H

#include "formats/published.h"

typedef struct wg__published_kind {
    const char *type;         /* model_type */
    const char *architecture; /* of config.json, where others have a class for it; or NULL */
    const char *marker;       /* a part of a name that only files of this kind have */
    const char *prefix;       /* what files of the bare model leave out of names; "": nothing */
    const char *heads[3];     /* how names begin that never have the prefix; NULL: no more */
    const char *outer;        /* what names may have before those of the list; "": nothing */
    const char *repeated[4];  /* ends of names that stand beside the model and say nothing new */
    int (*list)(wg__published_model *model, const char *json);
} wg__published_kind;

/* All kinds, closed by one without a type. */
extern const wg__published_kind wg__published_kinds[];

#endif
