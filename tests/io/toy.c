/* The models and files that tests of checkpoints save: see toy.h. */
#include "tests/io/toy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/ops.h"
#include "optim/internal.h"
#include "io/internal.h"

/* ---- A model and an optimizer to save ---- */

static void toy_destroy(wg_module *module) {
    wg_optimizer_free(((toy *)module)->optimizer);
}

toy *toy_new(int64_t width, uint64_t seed) {
    toy *model = wg_module_new(NULL, "", sizeof *model);
    model->module.destroy = toy_destroy;
    own(&model->module, OWN_MODULE);
    wg_module *bert = wg_module_new(&model->module, "bert", sizeof(wg_module));
    wg_module *layer = wg_module_new(bert, "layer.0", sizeof(wg_module));
    model->table = wg_module_parameter(bert, "table", WG_DIMS(7, 4));
    model->weight = wg_module_parameter(layer, "weight", WG_DIMS(width, 4));
    model->bias = wg_module_parameter(layer, "bias", WG_DIMS(4));
    wg_module *decoder = wg_module_new(&model->module, "decoder", sizeof(wg_module));
    wg_module_tie(decoder, "weight", model->table);
    wg_module_buffer(bert, "ids", wg_arange(WG_I64, 0, 5, 1));
    model->optimizer = wg_adamw_new(NULL);
    wg_optimizer_add(model->optimizer, "bert.table", model->table, false);
    wg_optimizer_add(model->optimizer, "bert.layer.0.bias", model->bias, true);
    bool recording = wg_set_grad_enabled(false);
    wg_generator generator = {.seed = seed};
    wg_copy_(model->table, wg_randn(&generator, WG_F32, WG_DIMS(7, 4)));
    wg_copy_(model->weight, wg_randn(&generator, WG_F32, WG_DIMS(width, 4)));
    wg_copy_(model->bias, wg_randn(&generator, WG_F32, WG_DIMS(4)));
    const char *slot, *name;
    wg_tensor *state;
    for (int64_t i = 0; wg__optimizer_state(model->optimizer, i, &slot, &name, &state); i++)
        wg_copy_(state, wg_rand(&generator, WG_F32, wg_tensor_ndim(state), wg_tensor_shape(state)));
    wg_set_grad_enabled(recording);
    model->optimizer->steps = (int64_t)seed;
    assert_no_error();
    return model;
}

void save_toy(const char *path, toy *model) {
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_text(file, "/config", "{\"hidden_size\": 4}");
    wg_checkpoint_put_integer(file, "/train/step", wg_optimizer_steps(model->optimizer));
    wg_checkpoint_put_module(file, "/model", &model->module);
    wg_checkpoint_put_optimizer(file, model->optimizer);
    wg_checkpoint_commit(file);
}

toy *saved_toy(const char *path) {
    toy *model = toy_new(4, 1);
    save_toy(path, model);
    assert_no_error();
    return model;
}

wg_checkpoint *reopened(wg_checkpoint *file, const char *path) {
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    return owned(wg_checkpoint_open(path));
}

/* All numbers of a toy, concatenated. */
static int64_t toy_numbers(const toy *model, float *out) {
    float *end = out;
    const wg_tensor *const tensors[] = {model->table, model->weight, model->bias};
    for (size_t i = 0; i < WG_COUNT(tensors); end += wg_tensor_count(tensors[i++]))
        wg_to_array(tensors[i], end);
    const char *slot, *name;
    wg_tensor *state;
    for (int64_t i = 0; wg__optimizer_state(model->optimizer, i, &slot, &name, &state); i++) {
        wg_to_array(state, end);
        end += wg_tensor_count(state);
    }
    *end++ = (float)wg_optimizer_steps(model->optimizer);
    return end - out;
}

void assert_same_toys(const toy *a, const toy *b) {
    float ours[512], theirs[512];
    int64_t count = toy_numbers(a, ours);
    ck_assert_int_eq(toy_numbers(b, theirs), count);
    ck_assert_mem_eq(ours, theirs, (size_t)count * sizeof *ours);
}

int load_toy(const char *path, toy *model) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    int status = wg_checkpoint_get_module(file, "/model", &model->module);
    if (status == 0)
        status = wg_checkpoint_get_optimizer(file, model->optimizer);
    wg_checkpoint_close(file);
    return status;
}

/* ---- A small file ---- */

void save_sampler(const char *path) {
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_text(file, "/config", "{\"hidden_size\": 128, \"vocab_size\": 8192}");
    wg_checkpoint_put_integer(file, "/train/step", 1234567);
    wg__checkpoint_put_number(file, "/train/rate", 1e-4);
    wg_checkpoint_put_tensor(file, "/train/loss",
                             wg_from_array(WG_F64, WG_DIMS(3), (double[]){9.5, 8.25, 7.125}));
    wg_checkpoint_put_tensor(file, "/model/a/weight",
                             wg_reshape(wg_arange(WG_F32, 0, 12, 1), WG_DIMS(3, 4)));
    wg_checkpoint_put_tensor(file, "/model/a/half", wg_full(WG_BF16, WG_DIMS(5), 1.5));
    wg_checkpoint_put_tensor(file, "/model/a/mask", wg_ones(WG_BOOL, WG_DIMS(4)));
    wg_checkpoint_put_tensor(file, "/model/a/none", wg_ones(WG_U8, WG_DIMS(0)));
    char name[32]; /* more than HDF5 stores in a group's header by default */
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "/model/many/%d", i);
        wg_checkpoint_put_integer(file, name, i);
    }
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
}
