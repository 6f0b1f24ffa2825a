/* Tables of rotary positions. */
#include "nn/rotary.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/internal.h"

static int check(int64_t width, int64_t first, int64_t positions,
                 const wg_rotary_options *options) {
    if (wg__check_size("rotary", "positions", positions) < 0)
        return -1;
    if (width < 2 || width % 2 != 0)
        return wg_fail(WG_ERROR_ARGUMENT, "rotary", "width %lld; wanted an even one, of pairs",
                       (long long)width);
    if (first < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "rotary", "position %lld is negative", (long long)first);
    if (options->base < 0 || options->factor < 0 || !isfinite(options->base) ||
        !isfinite(options->factor))
        return wg_fail(WG_ERROR_ARGUMENT, "rotary", "base %g, factor %g; wanted positive numbers",
                       options->base, options->factor);
    if (options->original_positions < 0 ||
        (options->original_positions > 0 &&
         !(options->high_frequency_factor > options->low_frequency_factor)))
        return wg_fail(WG_ERROR_ARGUMENT, "rotary",
                       "wanted original_positions from 0 on, and high_frequency_factor above "
                       "low_frequency_factor");
    return 0;
}

/* The angle of one position step. */
static double step_of(double frequency, const wg_rotary_options *options) {
    const double factor = options->factor == 0 ? 1 : options->factor;
    if (options->original_positions == 0)
        return frequency / factor;
    const double turns = (double)options->original_positions * frequency / (2 * M_PI);
    const double low = options->low_frequency_factor, high = options->high_frequency_factor;
    const double fast = fmin(fmax((turns - low) / (high - low), 0), 1);
    return fast * frequency + (1 - fast) * frequency / factor;
}

/* c, s: (positions, D/2). */
static void fill_tables(float *c, float *s, int64_t first, int64_t positions, int64_t pairs,
                        const wg_rotary_options *options) {
    const double base = options->base == 0 ? 10000 : options->base;
    for (int64_t i = 0; i < pairs; i++) {
        const double step = step_of(pow(base, -(double)i / (double)pairs), options);
        for (int64_t t = 0; t < positions; t++) {
            c[t * pairs + i] = (float)cos((double)(first + t) * step);
            s[t * pairs + i] = (float)sin((double)(first + t) * step);
        }
    }
}

int wg_rotary_tables(int64_t width, int64_t first, int64_t positions,
                     const wg_rotary_options *options, wg_tensor **cosines, wg_tensor **sines) {
    static const wg_rotary_options defaults;
    *cosines = *sines = NULL;
    if (!options)
        options = &defaults;
    if (check(width, first, positions, options) < 0)
        return -1;
    const int64_t pairs = width / 2;
    const wg_spec spec = {WG_F32, 2, {positions, pairs}};
    wg_tensor *tables[2];
    for (int i = 0; i < 2; i++)
        if (!(tables[i] = wg__meta_init() ? wg__meta_tensor_new(&spec) : wg__tensor_new(&spec)))
            return -1;
    if (!wg__meta_init())
        fill_tables(wg_tensor_data(tables[0]), wg_tensor_data(tables[1]), first, positions, pairs,
                    options);
    *cosines = tables[0];
    *sines = tables[1];
    return 0;
}
