/* Where a run stands in its data. */
#ifndef WG_DATA_BATCHES_POSITION_H
#define WG_DATA_BATCHES_POSITION_H

#include <stdint.h>

/* Where in the endless row of batches one stands: all that a checkpoint keeps. */
typedef struct wg_data_position {
    uint64_t seed;
    int64_t epoch; /* how many times the corpus was gone through */
    int64_t next;  /* the example of this epoch that comes next */
} wg_data_position;

#endif
