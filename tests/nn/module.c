/* The module tree: names, paths, ownership, tied weights, and the state after a failure. */
#include "nn/module.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "models/llama.h"
#include "optim/optimizer.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* A small model with BERT's paths; the decoder is tied to the embedding. */
typedef struct toy {
    wg_module module;
    wg_module *embeddings, *layer, *query, *decoder;
    wg_tensor *table, *weight, *bias, *position;
} toy;

static toy *toy_new(void) {
    toy *model = wg_module_new(NULL, "", sizeof *model);
    if (!model)
        return NULL;
    model->embeddings = wg_module_new(&model->module, "embeddings", sizeof(wg_module));
    model->table = wg_module_parameter(model->embeddings, "weight", WG_DIMS(10, 4));
    model->layer = wg_module_new(&model->module, "layer", sizeof(wg_module));
    model->query = wg_module_new(model->layer, "0", sizeof(wg_module));
    model->weight = wg_module_parameter(model->query, "weight", WG_DIMS(4, 4));
    model->bias = wg_module_parameter(model->query, "bias", WG_DIMS(4));
    wg_module_no_decay(model->query, "bias");
    model->decoder = wg_module_new(&model->module, "decoder", sizeof(wg_module));
    wg_module_tie(model->decoder, "weight", model->table);
    model->position = wg_module_buffer(&model->module, "position_ids", wg_arange(WG_I64, 0, 3, 1));
    return wg_module_finish(&model->module);
}

START_TEST(paths_follow_the_tree_and_slots_say_what_they_are) {
    static const struct {
        const char *path;
        bool buffer, no_decay, tied;
    } slots[] = {{"position_ids", .buffer = true},
                 {"embeddings.weight", .buffer = false},
                 {"layer.0.weight", .buffer = false},
                 {"layer.0.bias", .no_decay = true},
                 {"decoder.weight", .tied = true}};
    toy *model = toy_new();
    wg_state_dict *state = wg_module_state(&model->module);
    ck_assert_int_eq(state->count, (int64_t)WG_COUNT(slots));
    for (size_t i = 0; i < WG_COUNT(slots); i++) {
        const wg_slot *slot = state->entries[i].slot;
        ck_assert_str_eq(state->entries[i].path, slots[i].path);
        ck_assert_ptr_eq(wg_module_find(&model->module, slots[i].path), slot);
        ck_assert_int_eq(slot->kind, slots[i].buffer ? WG_SLOT_BUFFER : WG_SLOT_PARAMETER);
        ck_assert_int_eq(wg_requires_grad(slot->tensor), !slots[i].buffer);
        ck_assert_int_eq(slot->no_decay, slots[i].no_decay);
        ck_assert_int_eq(slot->tied, slots[i].tied);
    }
    ck_assert_ptr_eq(state->entries[4].slot->tensor, model->table);
    ck_assert_int_eq(wg_module_parameter_count(&model->module), 10 * 4 + 4 * 4 + 4);
    wg_module_no_decay(model->query, "gain");
    assert_error(WG_ERROR_NOT_FOUND, "\"gain\"");
    wg_state_dict_free(state);
    state = wg_module_state(model->layer);
    ck_assert_int_eq(state->count, 2);
    ck_assert_str_eq(state->entries[0].path, "0.weight");
    wg_state_dict_free(state);
    ck_assert_ptr_null(wg_module_find(&model->module, "layer.0"));
    ck_assert_ptr_null(wg_module_find(&model->module, "layer.0.weigh"));
    ck_assert_ptr_null(wg_module_find(&model->module, "layer.1.weight"));
    wg_module_free(&model->module);
}
END_TEST

/* Loading weights writes to buffers. */
START_TEST(a_buffer_with_two_elements_at_one_address_is_refused) {
    toy *model = toy_new();
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(4));
    wg_tensor *const views[] = {wg_expand(x, WG_DIMS(3, 4)), wg_unfold(x, 0, 2, 1)};
    for (size_t i = 0; i < WG_COUNT(views); i++) {
        assert_fails(wg_module_buffer(&model->module, "mask", views[i]), WG_ERROR_ARGUMENT,
                     "share an address");
        ck_assert_ptr_null(wg_module_find(&model->module, "mask"));
    }
    ck_assert_ptr_nonnull(wg_module_buffer(&model->module, "mask", wg_slice(x, 0, 0, 4, 2)));
    wg_module_free(&model->module);
}
END_TEST

START_TEST(only_a_tensor_of_the_same_tree_can_be_tied) {
    toy *model = toy_new(), *other = toy_new();
    assert_fails(wg_module_tie(model->decoder, "bias", other->bias), WG_ERROR_ARGUMENT, "\"bias\"");
    wg_module_free(&model->module);
    wg_module_free(&other->module);
}
END_TEST

START_TEST(names_that_are_taken_or_none_are_refused) {
    toy *model = toy_new();
    assert_fails(wg_module_new(&model->module, "layer", sizeof(wg_module)), WG_ERROR_ARGUMENT,
                 "\"layer\" already");
    assert_fails(wg_module_parameter(model->query, "bias", WG_DIMS(4)), WG_ERROR_ARGUMENT,
                 "\"bias\" already");
    assert_fails(wg_module_parameter(&model->module, "layer", WG_DIMS(4)), WG_ERROR_ARGUMENT,
                 "\"layer\" already");
    const char *const names[] = {".", ".a", "a.", "a..b", "a/b"};
    for (size_t i = 0; i < WG_COUNT(names); i++) {
        assert_fails(wg_module_new(&model->module, names[i], sizeof(wg_module)), WG_ERROR_ARGUMENT,
                     "is no name");
        assert_fails(wg_module_parameter(&model->module, names[i], WG_DIMS(1)), WG_ERROR_ARGUMENT,
                     "is no name");
    }
    assert_fails(wg_module_parameter(&model->module, "", WG_DIMS(1)), WG_ERROR_ARGUMENT,
                 "is no name");
    wg_module_free(&model->module);
}
END_TEST

START_TEST(a_name_with_dots_leads_to_a_path_that_is_still_unique) {
    toy *model = toy_new();
    wg_module *key = wg_module_new(model->layer, "0.key", sizeof(wg_module));
    wg_tensor *weight = wg_module_parameter(key, "weight", WG_DIMS(2));
    ck_assert_ptr_nonnull(weight);
    ck_assert_ptr_eq(wg_module_find(&model->module, "layer.0.key.weight")->tensor, weight);
    wg_module *same = wg_module_new(model->query, "key", sizeof(wg_module));
    assert_fails(wg_module_parameter(same, "weight", WG_DIMS(2)), WG_ERROR_ARGUMENT,
                 "\"layer.0.key.weight\" already");
    wg_module_free(&model->module);
}
END_TEST

START_TEST(a_child_without_a_name_shows_in_no_path) {
    toy *model = toy_new();
    wg_module *hidden = wg_module_new(model->query, "", sizeof(wg_module));
    wg_module *up = wg_module_new(hidden, "up", sizeof(wg_module));
    wg_tensor *weight = wg_module_parameter(up, "weight", WG_DIMS(2));
    ck_assert_ptr_nonnull(weight);
    ck_assert_ptr_eq(wg_module_find(&model->module, "layer.0.up.weight")->tensor, weight);
    wg_state_dict *state = wg_module_state(model->query);
    ck_assert_str_eq(state->entries[2].path, "up.weight");
    wg_state_dict_free(state);
    assert_fails(wg_module_parameter(hidden, "bias", WG_DIMS(2)), WG_ERROR_ARGUMENT,
                 "\"layer.0.bias\" already");
    wg_module_free(&model->module);
}
END_TEST

START_TEST(a_child_is_not_freed_by_itself) {
    toy *model = toy_new();
    wg_module_free(model->layer);
    assert_error(WG_ERROR_ARGUMENT, "\"layer\" belongs to its parent");
    wg_module_free(&model->module);
    wg_module_free(NULL);
}
END_TEST

START_TEST(training_is_a_matter_of_the_whole_tree) {
    toy *model = toy_new();
    ck_assert(wg_module_is_training(model->query));
    wg_module_train(model->query, false);
    ck_assert(!wg_module_is_training(&model->module));
    ck_assert(!wg_module_is_training(model->decoder));
    wg_module_train(&model->module, true);
    ck_assert(wg_module_is_training(model->query));
    wg_module_free(&model->module);
}
END_TEST

START_TEST(the_tree_draws_from_its_roots_generator) {
    wg_manual_seed(11);
    toy *a = toy_new(), *b = toy_new();
    ck_assert_ptr_eq(wg_module_generator(a->query), &a->module.generator);
    ck_assert_uint_ne(a->module.generator.seed, b->module.generator.seed);
    wg_manual_seed(11);
    toy *again = toy_new();
    ck_assert_uint_eq(a->module.generator.seed, again->module.generator.seed);
    wg_module_free(&a->module);
    wg_module_free(&b->module);
    wg_module_free(&again->module);
}
END_TEST

static int destroyed;
static bool child_was_there;

static void count_destroyed(wg_module *module) {
    destroyed++;
    if (module->first_child)
        child_was_there = module->first_child->name != NULL;
}

START_TEST(each_type_destroys_what_it_owns_before_its_children_go) {
    destroyed = 0;
    child_was_there = false;
    wg_module *root = wg_module_new(NULL, "", sizeof(wg_module));
    wg_module *child = wg_module_new(root, "child", sizeof(wg_module));
    root->destroy = count_destroyed;
    child->destroy = count_destroyed;
    wg_module_free(root);
    ck_assert_int_eq(destroyed, 2);
    ck_assert(child_was_there);
}
END_TEST

START_TEST(a_constructor_that_fails_anywhere_leaves_nothing) {
    int64_t blocks = wg_alloc_get_stats().live_blocks;
    for (int64_t n = 0; n < 200; n++) {
        wg__alloc_fail_after(n);
        toy *model = toy_new();
        wg__alloc_fail_after(-1);
        wg_scope_clear_root(); /* the buffer's source */
        if (model) {
            ck_assert_int_gt(n, 20);
            wg_module_free(&model->module);
            ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
            return;
        }
        assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
    }
    ck_abort_msg("it never succeeded");
}
END_TEST

START_TEST(nothing_is_constructed_while_an_error_is_pending) {
    wg_fail(WG_ERROR_STATE, "test", "before");
    assert_fails(toy_new(), WG_ERROR_STATE, "before");
}
END_TEST

START_TEST(changing_the_dtype_keeps_handles_values_and_ties) {
    toy *model = toy_new();
    wg_set_grad_enabled(false);
    wg_fill_(model->table, 0.1);
    wg_fill_(model->weight, 2);
    wg_fill_(model->bias, 3);
    wg_set_grad_enabled(true);
    ck_assert_int_eq(wg_module_to(&model->module, WG_F64), 0);
    ck_assert_int_eq(wg_tensor_dtype(model->table), WG_F64);
    ck_assert_int_eq(wg_tensor_dtype(model->position), WG_I64);
    ck_assert(wg_requires_grad(model->table));
    ck_assert(wg_at(model->table, (int64_t[]){9, 3}) == (double)0.1f);
    ck_assert(wg_at(model->bias, (int64_t[]){3}) == 3);
    ck_assert_ptr_eq(wg_module_find(&model->module, "decoder.weight")->tensor, model->table);
    ck_assert_int_eq(wg_module_to(&model->module, WG_F32), 0);
    ck_assert_int_eq(wg_tensor_dtype(model->table), WG_F32);
    assert_fails(wg_module_to(&model->module, WG_I64), WG_ERROR_DTYPE, "i64");
    wg_module_free(&model->module);
}
END_TEST

START_TEST(a_dtype_that_cannot_be_changed_everywhere_is_changed_nowhere) {
    toy *model = toy_new();
    wg_scope_clear_root();
    int64_t blocks = wg_alloc_get_stats().live_blocks;
    int status = -1;
    for (int64_t n = 0; status < 0; n++) {
        wg__alloc_fail_after(n);
        status = wg_module_to(&model->module, WG_F64);
        wg__alloc_fail_after(-1);
        if (status == 0)
            continue;
        assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_tensor_dtype(model->table), WG_F32);
        ck_assert_int_eq(wg_tensor_dtype(model->bias), WG_F32);
        ck_assert(wg_requires_grad(model->bias));
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
        ck_assert_int_lt(n, 200);
    }
    ck_assert_int_eq(wg_tensor_dtype(model->bias), WG_F64);
    wg_module_free(&model->module);
}
END_TEST

/* ---- Without memory ---- */

START_TEST(a_model_of_seventy_billion_weights_is_made_without_memory) {
    wg_llama_config config;
    ck_assert_int_eq(wg_model_preset_config(&wg_llama_type, "llama-7b", &config), 0);
    config.vocab_size = 128256;
    config.hidden_size = 8192;
    config.intermediate_size = 28672;
    config.num_hidden_layers = 80;
    config.num_attention_heads = 64;
    config.num_key_value_heads = 8;
    config.max_position_embeddings = 131072;
    const int64_t before = wg_alloc_get_stats().live_bytes;
    const bool was = wg_set_meta_init(true);
    ck_assert(!was);
    wg_llama *model = wg__llama_new(&config, 1);
    ck_assert(wg_set_meta_init(was));
    assert_no_error();
    ck_assert_int_lt(wg_alloc_get_stats().live_bytes - before, 4 << 20);
    ck_assert_int_eq(wg_module_parameter_count(&model->module), 70553706496);
    wg_slot *slot = wg_module_find(&model->module, "model.layers.79.mlp.down_proj.weight");
    ck_assert_int_eq(slot->kind, WG_SLOT_PARAMETER);
    ck_assert_int_eq(wg_tensor_dtype(slot->tensor), WG_F32);
    ck_assert_int_eq(wg_tensor_size(slot->tensor, 0), 8192);
    ck_assert_int_eq(wg_tensor_size(slot->tensor, 1), 28672);
    ck_assert(wg_requires_grad(slot->tensor));
    wg_module_free(&model->module);
}
END_TEST

START_TEST(without_memory_a_tree_has_the_same_names_shapes_and_ties) {
    wg_set_meta_init(true);
    toy *meta = toy_new();
    wg_set_meta_init(false);
    toy *model = toy_new();
    wg_state_dict *a = wg_module_state(&meta->module), *b = wg_module_state(&model->module);
    ck_assert_int_eq(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        const wg_slot *x = a->entries[i].slot, *y = b->entries[i].slot;
        char text[2][64];
        ck_assert_str_eq(a->entries[i].path, b->entries[i].path);
        ck_assert_str_eq(wg_spec_text(text[0], 64, &x->tensor->spec),
                         wg_spec_text(text[1], 64, &y->tensor->spec));
        ck_assert(x->kind == y->kind && x->tied == y->tied && x->no_decay == y->no_decay);
    }
    ck_assert_ptr_eq(wg_module_find(&meta->module, "decoder.weight")->tensor, meta->table);
    wg_state_dict_free(a);
    wg_state_dict_free(b);
    wg_module_free(&meta->module);
    wg_module_free(&model->module);
}
END_TEST

START_TEST(elements_that_are_not_there_are_refused) {
    wg_set_meta_init(true);
    toy *model = toy_new();
    const wg_initializer normal = {WG_INIT_NORMAL, 1};
    ck_assert_int_eq(wg_initialize(model->weight, &normal, NULL), 0);
    wg_set_meta_init(false);
    assert_fails(wg_relu(model->weight), WG_ERROR_STATE,
                 "relu: (4, 4) f32 was made under wg_set_meta_init(true)");
    assert_fails(wg_transpose(model->weight, 0, 1), WG_ERROR_STATE, "no elements");
    assert_fails(wg_tensor_data(model->weight), WG_ERROR_STATE, "tensor_data");
    ck_assert(isnan(wg_at(model->weight, (int64_t[]){0, 0})));
    assert_error(WG_ERROR_STATE, "at: ");
    assert_fails(wg_initialize(model->weight, &normal, NULL), WG_ERROR_STATE, "copy_");
    assert_fails(wg_copy_(wg_zeros(WG_I64, WG_DIMS(3)), model->position), WG_ERROR_STATE, "copy_");
    assert_fails(wg_print(stdout, model->weight), WG_ERROR_STATE, "print");
    assert_fails(wg_module_to(&model->module, WG_F64), WG_ERROR_STATE, "no elements");
    wg_optimizer *sgd = wg_sgd_new(NULL);
    assert_fails(wg_optimizer_add(sgd, "weight", model->weight, false), WG_ERROR_STATE,
                 "optimizer_add");
    wg_optimizer_free(sgd);
    wg_module_free(&model->module);
}
END_TEST

/* ---- Where an error happens ---- */

static char heard[1024];

static void hear(const wg_error *error, void *context) {
    (void)context;
    snprintf(heard, sizeof heard, "%s", error->message);
}

static void assert_message_begins(const char *text) {
    ck_assert_msg(wg_error_pending() && strncmp(heard, text, strlen(text)) == 0,
                  "\"%s\" does not begin with \"%s\"", heard, text);
    ck_assert_str_eq(wg_error_pending()->message, heard);
    wg_error_clear();
}

START_TEST(an_error_begins_with_the_path_of_its_layer) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_module *layer = wg_module_new(root, "layers.3", sizeof *layer);
    wg_feed_forward *net = wg_feed_forward_new(layer, "mlp", 8, 9, NULL);
    wg_layer_norm *norm = wg_layer_norm_new(layer, "norm", 8, NULL);
    wg_linear *alone = wg_linear_new(NULL, "", 8, 8, NULL);
    wg_tensor *good = wg_ones(WG_F32, WG_DIMS(3, 8)), *bad = wg_ones(WG_F32, WG_DIMS(3, 7));
    assert_no_error();
    wg_error_set_handler(hear, NULL);
    ck_assert_ptr_null(wg_linear_forward(net->down, wg_feed_forward_forward(net, bad)));
    assert_message_begins("layers.3.mlp.up: linear: ");
    ck_assert_ptr_null(wg_layer_norm_forward(norm, wg_add(good, bad)));
    assert_message_begins("add: ");
    ck_assert_ptr_null(wg_layer_norm_forward(norm, bad));
    assert_message_begins("layers.3.norm: layer_norm: ");
    ck_assert_ptr_null(wg_linear_forward(alone, bad));
    assert_message_begins("linear: ");
    wg_error_place place;
    wg_module_enter(layer, &place);
    ck_assert_ptr_null(wg_feed_forward_forward(net, bad));
    assert_message_begins("layers.3.mlp.up: linear: ");
    ck_assert_ptr_null(wg_module_leave(&place, wg_add(good, bad)));
    assert_message_begins("layers.3: add: ");
    wg_error_set_handler(NULL, NULL);
    wg_module_free(root);
    wg_module_free(&alone->module);
}
END_TEST

START_TEST(the_path_of_a_deep_module_keeps_its_end) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root), *deep = root;
    for (int i = 0; i < 60; i++)
        deep = wg_module_new(deep, "modules", sizeof *deep);
    wg_linear *last = wg_linear_new(deep, "last", 8, 8, NULL);
    wg_error_set_handler(hear, NULL);
    ck_assert_ptr_null(wg_linear_forward(last, wg_ones(WG_F32, WG_DIMS(3, 7))));
    wg_error_set_handler(NULL, NULL);
    ck_assert_ptr_nonnull(strstr(heard, "modules.modules.last: linear: (3, 7)"));
    assert_message_begins("modules.modules.");
    wg_module_free(root);
}
END_TEST

/* ---- Adding a tree to another ---- */

START_TEST(a_root_becomes_a_child_with_all_below_it) {
    wg_module *net = wg_module_new(NULL, "", sizeof *net);
    toy *model = toy_new();
    wg_module_train(net, false);
    ck_assert_ptr_eq(wg_module_add(net, "encoder", &model->module), &model->module);
    ck_assert_ptr_eq(wg_module_find(net, "encoder.layer.0.weight")->tensor, model->weight);
    ck_assert_ptr_eq(wg_module_find(net, "encoder.decoder.weight")->tensor, model->table);
    ck_assert(!wg_module_is_training(&model->module));
    ck_assert_ptr_eq(wg_module_generator(&model->module), &net->generator);
    wg_module_free(&model->module); /* it is a child now */
    assert_error(WG_ERROR_ARGUMENT, "free the root");
    wg_module_free(net);
}
END_TEST

START_TEST(what_cannot_be_added_is_refused_and_stays_a_root) {
    wg_module *net = wg_module_new(NULL, "", sizeof *net);
    wg_module *inner = wg_module_new(net, "inner", sizeof *inner);
    assert_fails(wg_module_add(net, "again", inner), WG_ERROR_ARGUMENT, "a parent already");
    assert_fails(wg_module_add(inner, "cycle", net), WG_ERROR_ARGUMENT, "the root of the tree");
    toy *model = toy_new();
    assert_fails(wg_module_add(net, "inner", &model->module), WG_ERROR_ARGUMENT,
                 "has a \"inner\" already");
    assert_fails(wg_module_add(net, "no/name", &model->module), WG_ERROR_ARGUMENT, "is no name");
    wg_module_parameter(inner, "layer.0.weight", WG_DIMS(1)); /* the path that would be taken */
    wg_module *other = wg_module_new(net, "outer", sizeof *other);
    wg_module_parameter(other, "a.layer.0.bias", WG_DIMS(1));
    assert_fails(wg_module_add(net, "outer.a", &model->module), WG_ERROR_ARGUMENT,
                 "has a \"outer.a.layer.0.bias\" already");
    ck_assert_ptr_null(model->module.parent);
    ck_assert_ptr_nonnull(wg_module_add(net, "free", &model->module));
    wg_module_free(net);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        paths_follow_the_tree_and_slots_say_what_they_are,
        a_buffer_with_two_elements_at_one_address_is_refused,
        only_a_tensor_of_the_same_tree_can_be_tied,
        names_that_are_taken_or_none_are_refused,
        a_name_with_dots_leads_to_a_path_that_is_still_unique,
        a_child_without_a_name_shows_in_no_path,
        a_child_is_not_freed_by_itself,
        training_is_a_matter_of_the_whole_tree,
        the_tree_draws_from_its_roots_generator,
        each_type_destroys_what_it_owns_before_its_children_go,
        a_constructor_that_fails_anywhere_leaves_nothing,
        nothing_is_constructed_while_an_error_is_pending,
        changing_the_dtype_keeps_handles_values_and_ties,
        a_dtype_that_cannot_be_changed_everywhere_is_changed_nowhere,
        a_model_of_seventy_billion_weights_is_made_without_memory,
        without_memory_a_tree_has_the_same_names_shapes_and_ties,
        elements_that_are_not_there_are_refused,
        an_error_begins_with_the_path_of_its_layer,
        the_path_of_a_deep_module_keeps_its_end,
        a_root_becomes_a_child_with_all_below_it,
        what_cannot_be_added_is_refused_and_stays_a_root,
    };
    add_suite("module", tests);
}
