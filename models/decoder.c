/* What the forward passes of decoders share. */
#include "models/decoder.h"

int wg__decoder_begin(const char *where, const wg_tensor *ids, const wg_decoder_inputs *inputs,
                      int64_t longest, wg__decoder_positions *positions) {
    if (!ids)
        return -1;
    if (wg_tensor_ndim(ids) != 2)
        return wg_fail(WG_ERROR_SHAPE, where, "ids have rank %d; wanted (B, T)",
                       wg_tensor_ndim(ids));
    *positions = (wg__decoder_positions){
        .first = inputs && inputs->caches ? inputs->caches[0].length : 0,
        .count = wg_tensor_size(ids, 1),
        .ids = inputs ? inputs->position_ids : NULL,
    };
    const int64_t last = positions->first + positions->count;
    if (!positions->ids && last > longest)
        return wg_fail(WG_ERROR_SHAPE, where,
                       "%lld positions are more than max_position_embeddings, %lld; cut the text "
                       "or use a model with more",
                       (long long)last, (long long)longest);
    return 0;
}
