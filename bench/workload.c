/* A training on random tokens: see bench.h. The shapes are the same as in the peers' programs that
 * bench/README.md names. */
#include "bench/bench.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tensor/easy.h"
#include "models/internal.h"
#include "optim/internal.h"

#define WHERE "bench"

/* NULL if the type has no preset of that name. */
static const wg_model_preset *find_preset(const wg_model_type *type, const char *name) {
    const wg_model_preset *preset = wg__model_preset_find(type, name);
    wg_error_clear();
    return preset;
}

/* The models, then their presets. */
static const char *name_at(const void *context, int index) {
    (void)context;
    int types = 0;
    for (; wg_model_type_at(types); types++)
        if (types == index)
            return wg_model_type_at(types)->name;
    return wg__model_preset_name(index - types);
}

/* Finds the model, its preset and the usual sizes. The mlp is so small that its time is overhead,
 * not arithmetic. */
static int find(wg__workload *w) {
    static const wg_model_preset usual = {.bench = {8, 128, 30522}}, mlp = {.bench = {32, 1, 10}};
    const wg_model_type *type;
    char names[128] = "", suggestion[96];
    for (int i = 0; (type = wg_model_type_at(i)); i++) {
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s,", type->name);
        const wg_model_preset *own = find_preset(type, w->model);
        if (w->type || (!own && strcmp(type->name, w->model) != 0))
            continue;
        w->type = type;
        if (!w->preset)
            w->preset = own ? w->model : type->bench_preset;
    }
    if (!w->type && strcmp(w->model, "mlp") != 0 && strcmp(w->model, "mlp-32") != 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "there is no model '%s'; there are%s mlp, and the presets of each%s",
                       w->model, names,
                       wg__suggestion(suggestion, sizeof suggestion, w->model, name_at, NULL));
    if (!w->type)
        w->preset = "mlp-32";
    const wg_model_preset *preset = w->type ? find_preset(w->type, w->preset) : &mlp;
    if (!preset || preset->bench.batch == 0)
        preset = &usual;
    w->batch = w->batch ? w->batch : preset->bench.batch;
    w->sequence = w->sequence ? w->sequence : preset->bench.sequence;
    w->vocabulary = w->vocabulary ? w->vocabulary : preset->bench.vocabulary;
    return 0;
}

/* (B, T) i64, none of them 0, which is padding in some vocabularies. */
static wg_tensor *random_ids(const wg__workload *w, wg_generator *generator) {
    return wg_randint(generator, 1, w->vocabulary, WG_DIMS(w->batch, w->sequence));
}

static int check_sequence(const wg__workload *w, int64_t least) {
    return w->sequence >= least ? 0
                                : wg_fail(WG_ERROR_ARGUMENT, WHERE,
                                          "sequences of %lld tokens; of fewer than %lld none is "
                                          "masked",
                                          (long long)w->sequence, (long long)least);
}

/* 15 % of the positions are masked, and the head runs at these alone; a head for pairs reads the
 * first position of each sequence. The second half of a sequence is its second segment; nothing is
 * padding. */
static int encoder_batch(wg__workload *w, wg_generator *generator) {
    const int64_t t = w->sequence, masked = (15 * t + 50) / 100, middle = t / 2;
    if (check_sequence(w, 4) < 0)
        return -1;
    wg_tensor *half = wg_full(WG_I64, WG_DIMS(1), (double)middle);
    wg_tensor *second = wg_cast(wg_ge(wg_arange(WG_I64, 0, (double)t, 1), half), WG_I64);
    w->inputs = (wg_model_inputs){
        .ids = random_ids(w, generator),
        .token_type_ids = wg_contiguous(wg_expand(second, WG_DIMS(w->batch, t))),
        .keep = wg_ones(WG_BOOL, WG_DIMS(w->batch, t)),
    };
    wg_tensor *positions = wg_empty(WG_I64, WG_DIMS(w->batch * masked)); /* flat: b T + t */
    int64_t *place = wg_tensor_data(positions);
    for (int64_t b = 0; place && b < w->batch; b++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t *order = wg_tensor_data(wg_randperm(generator, t));
        for (int64_t i = 0; order && i < masked; i++)
            *place++ = b * t + order[i];
        wg_scope_end(&scope, NULL);
    }
    w->inputs.output_positions = positions;
    w->labels = wg_randint(generator, 1, w->vocabulary, WG_DIMS(w->batch * masked));
    if (w->type->encoder.next_sentence) {
        w->pair_labels = wg_randint(generator, 0, 2, WG_DIMS(w->batch));
        wg_tensor *first = wg_arange(WG_I64, 0, (double)(w->batch * t), (double)t);
        w->inputs.output_positions =
            wg_cat(2, (wg_tensor *[]){w->inputs.output_positions, first}, 0);
    }
    return 0;
}

/* 3/16 of a sequence is Part B, in spans of four tokens. The head runs on all of Part B. */
static int prefix_batch(wg__workload *w, wg_generator *generator) {
    enum { SPAN = 4 };
    const int64_t t = w->sequence, part_b = 3 * t / 16, part_a = t - part_b;
    if (check_sequence(w, 6) < 0)
        return -1;
    wg_tensor *positions = wg_empty(WG_I64, WG_DIMS(w->batch, t));
    wg_tensor *blocks = wg_zeros(WG_I64, WG_DIMS(w->batch, t));
    wg_tensor *targets = wg_empty(WG_I64, WG_DIMS(w->batch * part_b));
    int64_t *position = wg_tensor_data(positions), *block = wg_tensor_data(blocks),
            *target = wg_tensor_data(targets);
    for (int64_t b = 0; target && b < w->batch; b++, position += t, block += t, target += part_b) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t *masks = wg_tensor_data(wg_randperm(generator, part_a));
        for (int64_t i = 0; i < part_a; i++)
            position[i] = i;
        for (int64_t i = 0; masks && i < part_b; i++) {
            position[part_a + i] = masks[i / SPAN];
            block[part_a + i] = i % SPAN + 1;
            target[i] = b * t + part_a + i;
        }
        wg_scope_end(&scope, NULL);
    }
    w->inputs = (wg_model_inputs){
        .ids = random_ids(w, generator),
        .position_ids = positions,
        .block_position_ids = blocks,
        .part_a = wg_full(WG_I64, WG_DIMS(w->batch), (double)part_a),
        .output_positions = targets,
    };
    w->labels = wg_randint(generator, 1, w->vocabulary, WG_DIMS(w->batch * part_b));
    return 0;
}

static int make_batch(wg__workload *w) {
    wg_generator generator = {.seed = 1};
    w->tokens = w->batch * w->sequence;
    switch (w->type->shape) {
    case WG_ENCODER:
        return encoder_batch(w, &generator);
    case WG_PREFIX_DECODER:
        return prefix_batch(w, &generator);
    case WG_DECODER:
        w->inputs = (wg_model_inputs){.ids = random_ids(w, &generator)};
        w->labels = random_ids(w, &generator);
        return 0;
    case WG_ENCODER_DECODER: /* a source and a target of T tokens each */
        w->source = random_ids(w, &generator);
        w->labels = random_ids(w, &generator);
        w->inputs = (wg_model_inputs){
            .ids = wg_model_shift_right(&w->net, w->labels),
            .memory_keep = wg_ones(WG_BOOL, WG_DIMS(w->batch, w->sequence)),
        };
        return 0;
    }
    return -1;
}

/* Without dropout, with the given vocabulary and number of positions. */
static int make_model(wg__workload *w) {
    const wg_setting_table *table = &w->type->settings;
    char *config = malloc(table->size);
    int result = config ? wg_model_preset_config(w->type, w->preset, config) : -1;
    if (result == 0) {
        wg_model_config_resize(w->type, config, w->vocabulary, w->sequence);
        for (int i = 0; i < table->count; i++)
            if (table->rows[i].kind == WG_SETTING_NUMBER && strstr(table->rows[i].name, "drop"))
                *(double *)(void *)(config + table->rows[i].offset) = 0;
        result = wg_model_from_config(w->type, config, 1, &w->net);
        w->module = w->net.module;
    }
    free(config);
    return result < 0 ? -1 : make_batch(w);
}

/* Random features; the classes are the words of the vocabulary. */
static int make_mlp(wg__workload *w) {
    enum { WIDTH = 32 };
    wg_generator generator = {.seed = 1};
    if (w->recompute)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "mlp is no stack of layers to be recomputed");
    w->module = wg_module_new(NULL, NULL, sizeof *w->module);
    if (!w->module)
        return -1;
    w->module->generator = generator;
    w->hidden = wg_linear_new(w->module, "hidden", WIDTH, WIDTH, NULL);
    w->output = wg_linear_new(w->module, "output", WIDTH, w->vocabulary, NULL);
    w->tokens = w->batch * w->sequence;
    w->features = wg_rand(&generator, WG_F32, WG_DIMS(w->tokens, WIDTH));
    w->labels = wg_randint(&generator, 0, w->vocabulary, WG_DIMS(w->tokens));
    return 0;
}

static wg_tensor *model_loss(wg__workload *w) {
    const wg_model_type *type = w->type;
    wg_model_inputs inputs = w->inputs;
    if (w->source)
        inputs.memory = wg_model_encode(&w->net, w->source, inputs.memory_keep);
    wg_tensor *hidden = wg_model_forward(&w->net, &inputs);
    if (!w->pair_labels)
        return wg_model_loss(&w->net, hidden, NULL, w->labels, NULL);
    const int64_t masked = wg_tensor_count(w->labels);
    wg_tensor *loss =
        wg_model_loss(&w->net, wg_slice(hidden, 0, 0, masked, 1), NULL, w->labels, NULL);
    wg_tensor *first = wg_unsqueeze(wg_slice(hidden, 0, masked, WG_END, 1), 1); /* (B, 1, C) */
    wg_tensor *pooled = type->encoder.pool(type->encoder.of(w->module), first, inputs.keep);
    return wg_add(loss, wg_linear_loss(type->encoder.next_sentence(w->module), pooled,
                                       w->pair_labels, WG_IGNORE_INDEX, NULL));
}

/* The optimizer that settings of a training, as JSON, name; NULL if they name none. */
static const char *named_optimizer(const char *settings) {
    json_t *object = settings ? json_loads(settings, 0, NULL) : NULL;
    const char *name = json_string_value(json_object_get(object, "optimizer")), *found = NULL;
    for (int i = 0; name && wg__optimizer_name(i); i++)
        if (strcmp(wg__optimizer_name(i), name) == 0)
            found = wg__optimizer_name(i);
    json_decref(object);
    return found;
}

wg_optimizer *wg__workload_optimizer(const wg__workload *w) {
    return wg_optimizer_new(&(wg_optimizer_choice){.name = w->rule, .weight_decay = 0.01});
}

int wg__workload_begin(wg__workload *w) {
    if (find(w) < 0)
        return -1;
    w->dtype = w->bf16 ? WG_BF16 : WG_F32;
    const wg_model_preset *preset = w->type ? find_preset(w->type, w->preset) : NULL;
    if (!w->rule && w->usual_rule && preset)
        w->rule = named_optimizer(preset->training);
    if (!w->rule && w->usual_rule && w->type)
        w->rule = named_optimizer(w->type->training);
    if (!w->rule)
        w->rule = "adamw";
    wg_scope_begin(&w->scope);
    if ((w->type ? make_model(w) : make_mlp(w)) == 0 && !wg_error_pending()) {
        w->optimizer = wg__workload_optimizer(w);
        if (wg_optimizer_add_module(w->optimizer, w->module) == 0) {
            wg_module_checkpoint_activations(w->module, w->recompute);
            return 0;
        }
    }
    wg__workload_end(w);
    return -1;
}

void wg__workload_end(wg__workload *w) {
    wg_optimizer_free(w->optimizer);
    wg_module_free(w->module);
    wg_scope_end(&w->scope, NULL);
}

wg_tensor *wg__workload_loss(wg__workload *w) {
    const wg_dtype before = wg_set_matmul_dtype(w->dtype);
    wg_tensor *loss =
        w->type
            ? model_loss(w)
            : wg_cross_entropy(
                  wg_linear_forward(w->output, wg_relu(wg_linear_forward(w->hidden, w->features))),
                  w->labels, WG_IGNORE_INDEX, NULL);
    wg_set_matmul_dtype(before);
    return loss;
}

double wg__workload_step(wg__workload *w) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loss = wg__workload_loss(w);
    wg_optimizer_step_begin(w->optimizer, WG__WORKLOAD_RATE, NULL);
    const wg_dtype before = wg_set_matmul_dtype(w->dtype); /* of layers that run again */
    wg_backward(loss, NULL);
    wg_set_matmul_dtype(before);
    wg_optimizer_step_end(w->optimizer);
    const double value = wg_item(loss);
    wg_scope_end(&scope, NULL);
    return wg_error_pending() ? NAN : value;
}
