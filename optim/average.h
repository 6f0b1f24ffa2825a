/* Averages of weights over the steps of a run, or over checkpoints.
 *
 *     wg_average *average = wg_average_new(0.999);
 *     wg_average_add(average, w);
 *     ... wg_optimizer_step(...); wg_average_update(average); ...
 *     wg_average_swap(average);     w holds the average, and the average what w held
 *     ... evaluate ...
 *     wg_average_swap(average);     and back, bit for bit
 */
#ifndef WG_OPTIM_AVERAGE_H
#define WG_OPTIM_AVERAGE_H

#include "../autograd/autograd.h"

WG_BEGIN_DECLS

typedef struct wg_average wg_average;

/* An average without tensors. decay d in (0, 1): exponential, a = d a + (1 - d) w; 0: the mean of
 * all updates. Either way the first update is a = w   (as PyTorch's AveragedModel). NULL with
 * ARGUMENT, MEMORY. */
WG_API wg_average *wg_average_new(double decay);

/* Frees the average, not the tensors; NULL is allowed. */
WG_API void wg_average_free(wg_average *average);

/* Takes a tensor in, f32 or f64 and contiguous, which is borrowed and must outlive the average. Its
 * average is zeros until the first update. Before the first update only.
 * [ARGUMENT, DTYPE, MEMORY; STATE after an update] */
WG_API int wg_average_add(wg_average *average, wg_tensor *tensor);

/* Takes the tensors as they are now into their averages: one pass over memory, in parallel. */
WG_API void wg_average_update(wg_average *average);

/* Exchanges the tensors' contents and their averages. */
WG_API void wg_average_swap(wg_average *average);

/* Updates so far, and setting it when a run is resumed. */
WG_API int64_t wg_average_updates(const wg_average *average);
WG_API void wg_average_set_updates(wg_average *average, int64_t updates);

WG_END_DECLS

#endif
