/* Positions in two dimensions. */
#include "nn/block_position.h"

#include "tensor/ops.h"

wg_block_position *wg_block_position_new(wg_module *parent, const char *name, int64_t count,
                                         int64_t width, const wg_block_position_options *options) {
    static const wg_block_position_options defaults;
    if (!options)
        options = &defaults;
    wg_block_position *positions = wg_module_new(parent, name, sizeof *positions);
    if (!positions)
        return NULL;
    wg_module *module = &positions->module;
    const wg_embedding_options table = {.init = options->init};
    positions->positions = wg_embedding_new(module, "position_embeddings", count, width, &table);
    positions->block_positions =
        wg_embedding_new(module, "block_position_embeddings", count, width, &table);
    return wg_module_finish(module);
}

wg_tensor *wg_block_position_forward(wg_block_position *positions, wg_tensor *x,
                                     wg_tensor *position_ids, wg_tensor *block_position_ids) {
    wg_scope scope;
    wg_scope_begin(&scope);
    x = wg_add(x, wg_embedding_forward(positions->positions, position_ids));
    x = wg_add(x, wg_embedding_forward(positions->block_positions, block_position_ids));
    return wg_scope_end(&scope, x);
}
