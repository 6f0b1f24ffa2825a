/* Copies between tensors whose memory runs along different axes.
 *
 *                 columns: one after the other in dst
 *               +------+------+---
 *        rows:  | tile | tile |        Element by element in the order of dst, every read would
 * touch one after   +------+------+---     a cache line of its own, gone again when its neighbours'
 * turn the other   | tile |      |        comes. A tile is so narrow that the lines of all its
 * columns in src   +------+------+---     stay in the cache. */
#include "tensor/convert.h"
#include "tensor/iter.h"

enum { TILE_COLUMNS = 16, TILE_ROWS = 64 };

/* Shorter axes are left to the loops of iter.h, as is little work. */
enum { SHORTEST = 4, FEWEST = 1024 };

typedef struct transposition {
    int64_t rows, columns;
    int64_t row_step, column_step; /* of a row in dst, of a column in src; in elements */
    int64_t tile_rows, tile_columns;
    int64_t tiles_down, tiles_across;
    int outer_count; /* the other axes */
    int64_t shape[WG_MAX_DIMS], dst_strides[WG_MAX_DIMS], src_strides[WG_MAX_DIMS];
    char *dst;
    const char *src;
    int64_t size; /* bytes of an element */
} transposition;

/* The number of columns of most tiles is known when this is compiled, which unrolls their loop. */
#define TURN(NAME, TYPE)                                                                           \
    static inline void NAME##_at(TYPE *restrict dst, int64_t row_step, const TYPE *restrict src,   \
                                 int64_t column_step, int64_t rows, int64_t columns) {             \
        for (int64_t i = 0; i < rows; i++)                                                         \
            for (int64_t j = 0; j < columns; j++)                                                  \
                dst[i * row_step + j] = src[j * column_step + i];                                  \
    }                                                                                              \
    static void NAME(const transposition *job, char *dst, const char *src, int64_t rows,           \
                     int64_t columns) {                                                            \
        if (columns == TILE_COLUMNS)                                                               \
            NAME##_at((TYPE *)dst, job->row_step, (const TYPE *)src, job->column_step, rows,       \
                      TILE_COLUMNS);                                                               \
        else                                                                                       \
            NAME##_at((TYPE *)dst, job->row_step, (const TYPE *)src, job->column_step, rows,       \
                      columns);                                                                    \
    }

TURN(turn_1, uint8_t)
TURN(turn_2, uint16_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)

static void turn_tiles(int64_t begin, int64_t end, void *context) {
    const transposition *job = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % job->tiles_down * job->tile_rows;
        const int64_t column = i / job->tiles_down % job->tiles_across * job->tile_columns;
        int64_t rest = i / job->tiles_down / job->tiles_across;
        int64_t dst = row * job->row_step + column, src = column * job->column_step + row;
        for (int axis = job->outer_count - 1; axis >= 0; axis--) {
            const int64_t at = rest % job->shape[axis];
            rest /= job->shape[axis];
            dst += at * job->dst_strides[axis];
            src += at * job->src_strides[axis];
        }
        const int64_t rows = job->rows - row < job->tile_rows ? job->rows - row : job->tile_rows;
        const int64_t columns =
            job->columns - column < job->tile_columns ? job->columns - column : job->tile_columns;
        (job->size == 1   ? turn_1
         : job->size == 2 ? turn_2
         : job->size == 4
             ? turn_4
             : turn_8)(job, job->dst + dst * job->size, job->src + src * job->size, rows, columns);
    }
}

/* The longest axis of those with stride 1, or -1. */
static int unit_axis(const wg_spec *spec, const int64_t *strides) {
    int found = -1;
    for (int i = 0; i < spec->ndim; i++)
        if (strides[i] == 1 && spec->shape[i] > 1 &&
            (found < 0 || spec->shape[i] > spec->shape[found]))
            found = i;
    return found;
}

/* Where an axis is shorter than a tile, the tile is longer along the other. */
static void cut_into_tiles(transposition *job) {
    const int64_t area = TILE_ROWS * TILE_COLUMNS;
    job->tile_rows = job->rows < TILE_ROWS ? job->rows : TILE_ROWS;
    job->tile_columns = area / job->tile_rows;
    if (job->columns < job->tile_columns) {
        job->tile_columns = job->columns;
        job->tile_rows = area / job->tile_columns;
    }
    job->tiles_down = (job->rows + job->tile_rows - 1) / job->tile_rows;
    job->tiles_across = (job->columns + job->tile_columns - 1) / job->tile_columns;
}

bool wg__copy_transposed(wg_tensor *dst, const wg_tensor *src) {
    const wg_spec *spec = &dst->spec;
    int64_t strides[WG_MAX_DIMS];
    if (spec->dtype != src->spec.dtype || wg__spec_count(spec) < FEWEST)
        return false;
    wg__broadcast_strides(src, spec, strides);
    const int across = unit_axis(spec, dst->strides), down = unit_axis(spec, strides);
    if (across < 0 || down < 0 || strides[across] == 1 || spec->shape[across] < SHORTEST ||
        spec->shape[down] < SHORTEST)
        return false;
    transposition job = {.rows = spec->shape[down],
                         .columns = spec->shape[across],
                         .row_step = dst->strides[down],
                         .column_step = strides[across],
                         .dst = wg__tensor_address(dst),
                         .src = wg__tensor_address(src),
                         .size = (int64_t)wg_dtype_size(spec->dtype)};
    cut_into_tiles(&job);
    int64_t tiles = job.tiles_down * job.tiles_across;
    for (int i = 0; i < spec->ndim; i++) {
        if (i == across || i == down)
            continue;
        job.shape[job.outer_count] = spec->shape[i];
        job.dst_strides[job.outer_count] = dst->strides[i];
        job.src_strides[job.outer_count++] = strides[i];
        tiles *= spec->shape[i];
    }
    wg__parallel_for(tiles, WG__GRAIN / (job.tile_rows * job.tile_columns), turn_tiles, &job);
    return true;
}
