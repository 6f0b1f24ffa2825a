/* Relative positions in buckets   (Raffel et al. 2020, arXiv:1910.10683, section 2.1): near
 * distances have a bucket each, farther ones share logarithmically wider ones, and all beyond
 * `max_distance` the last. A learned number a head and bucket is added to the scores of attention.
 */
#ifndef WG_NN_RELATIVE_POSITION_H
#define WG_NN_RELATIVE_POSITION_H

#include "init.h"
#include "module.h"

WG_BEGIN_DECLS

typedef struct wg_relative_position {
    wg_module module;
    wg_tensor *weight; /* (buckets, H) */
    int64_t max_distance;
    bool bidirectional;
} wg_relative_position;

typedef struct wg_relative_position_options {
    int64_t buckets;      /* 0: 32 */
    int64_t max_distance; /* 0: 128 */
    bool bidirectional;   /* half of the buckets are for keys behind the query; else those count as
                             distance 0 */
    wg_initializer init;  /* default: standard normal */
} wg_relative_position_options;

/* `parent` owns it; NULL makes it a root. NULL with [ARGUMENT, MEMORY] */
WG_API wg_relative_position *wg_relative_position_new(wg_module *parent, const char *name,
                                                      int64_t heads,
                                                      const wg_relative_position_options *options);

/* The bias of queries at positions first .. first + queries - 1 and keys at 0 .. keys - 1: (1, H,
 * queries, keys). [scope] */
WG_API wg_tensor *wg_relative_position_forward(wg_relative_position *positions, int64_t first,
                                               int64_t queries, int64_t keys);

WG_END_DECLS

#endif
