/* Parameter groups, layer-wise decay of the rate, and optimizers by a rule of one's own. */
#include "tests/optim/leaves.h"

#include <math.h>
#include <string.h>

#include "io/checkpoint/checkpoint.h"
#include "optim/internal.h"
#include "tensor/ops.h"

#define RATE 0.05

/* ---- PyTorch's param_groups ---- */

enum { LEAVES = 4 };
static const struct leaf {
    const char *name;
    int ndim;
    int64_t shape[2];
} leaves[LEAVES] = {{"body.0.weight", 2, {3, 4}},
                    {"body.1.weight", 2, {4, 2}},
                    {"head.weight", 2, {2, 3}},
                    {"head.bias", 1, {3}}};

static wg_tensor *values_of(const json_t *object, const struct leaf *leaf) {
    return tensor_of_list(json_object_get(object, leaf->name), WG_F64, leaf->ndim, leaf->shape);
}

static void add_groups(wg_optimizer *optimizer) {
    static const wg_parameter_group groups[] = {
        {.names = "body.*", .rate = 0.5, .weight_decay = 0.1},
        {.names = "head.*", .weight_decay = 0.3},
        {.names = "body.0.*", .rate = 0.25, .weight_decay = 0.1},
        {.names = "*.bias", .no_decay = true},
    };
    for (size_t i = 0; i < WG_COUNT(groups); i++)
        ck_assert_int_eq(wg_optimizer_add_group(optimizer, &groups[i]), 0);
}

/* Six steps with the gradient sin(p + t), and the result against the fixture. */
static void compare_run(wg_optimizer *optimizer, const json_t *run) {
    wg_tensor *parameters[LEAVES];
    for (int i = 0; i < LEAVES; i++) {
        parameters[i] =
            added(optimizer, leaves[i].name, values_of(json_object_get(run, "first"), &leaves[i]));
    }
    for (int step = 1; step <= 6; step++) {
        for (int i = 0; i < LEAVES; i++)
            set_gradient(parameters[i],
                         wg_sin(wg_add_scalar(wg_detach(parameters[i]), (double)step)));
        ck_assert_int_eq(wg_optimizer_step(optimizer, RATE), 0);
    }
    for (int i = 0; i < LEAVES; i++)
        assert_close(parameters[i], values_of(json_object_get(run, "last"), &leaves[i]), 1e-12,
                     1e-14);
    wg_optimizer_free(optimizer);
}

START_TEST(groups_step_as_pytorchs_param_groups) {
    json_t *runs = json_load_file(fixture("param_groups.json"), 0, NULL);
    ck_assert_uint_eq(json_array_size(runs), 3);
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const char *kind = json_string_value(json_object_get(run, "kind"));
        wg_optimizer *optimizer = wg_optimizer_new(&(wg_optimizer_choice){.name = kind});
        add_groups(optimizer);
        compare_run(optimizer, run);
    }
    json_decref(runs);
}
END_TEST

/* A parameter of a group is stepped as by an optimizer of its own with that rate and decay. */
static void step_alone(const char *kind, bool grouped, wg_tensor *out) {
    wg_generator generator = {.seed = 3};
    const wg_optimizer_choice choice = {.name = kind, .weight_decay = grouped ? 0.01 : 0.2};
    wg_optimizer *optimizer = wg_optimizer_new(&choice);
    if (grouped)
        wg_optimizer_add_group(optimizer, &(wg_parameter_group){"in*", 0.5, 0.2, false});
    wg_tensor *x = added(optimizer, "inner", wg_randn(&generator, WG_F64, WG_DIMS(5, 4)));
    for (int step = 0; step < 5; step++) {
        set_gradient(x, wg_randn(&generator, WG_F64, WG_DIMS(5, 4)));
        ck_assert_int_eq(wg_optimizer_step(optimizer, grouped ? 0.1 : 0.05), 0);
    }
    wg_copy_(out, wg_detach(x));
    wg_optimizer_free(optimizer);
}

START_TEST(every_optimizer_keeps_to_the_rate_and_decay_of_a_group) {
    const char *kind;
    for (int i = 0; (kind = wg__optimizer_name(i)); i++) {
        wg_tensor *a = wg_zeros(WG_F64, WG_DIMS(5, 4)), *b = wg_zeros_like(a);
        step_alone(kind, true, a);
        step_alone(kind, false, b);
        assert_close(a, b, 1e-13, 1e-15);
    }
}
END_TEST

START_TEST(layer_wise_decay_lowers_the_rate_layer_by_layer) {
    static const char *const names[] = {"embeddings.word", "layer.0.weight", "layer.1.weight",
                                        "layer.10.weight", "head.weight"};
    const double rates[] = {pow(0.5, 12), pow(0.5, 11), pow(0.5, 10), 0.5, 1};
    wg_optimizer *optimizer = wg_sgd_new(NULL);
    ck_assert_int_eq(wg_optimizer_layer_decay(optimizer, "layer", 11, "embeddings.*", 0.5), 0);
    for (int i = 0; i < 5; i++) {
        added(optimizer, names[i], wg_zeros(WG_F64, WG_DIMS(1)));
        ck_assert_double_eq_tol(optimizer->entries[i].rate, rates[i], 1e-15);
    }
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(a_rate_of_zero_keeps_a_group_as_it_is) {
    wg_optimizer *optimizer = wg_sgd_new(NULL);
    const wg_parameter_group frozen = {.names = "head.*", .rate = WG_ZERO};
    ck_assert_int_eq(wg_optimizer_add_group(optimizer, &frozen), 0);
    wg_tensor *x = added(optimizer, "head.weight", wg_ones(WG_F64, WG_DIMS(2)));
    set_full_gradient(x, 1);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 0.5), 0);
    assert_close(x, wg_ones(WG_F64, WG_DIMS(2)), 0, 0);
    wg_optimizer_free(optimizer);
}
END_TEST

START_TEST(groups_that_cannot_be_are_refused) {
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    const wg_parameter_group bad[] = {
        {.names = NULL}, {.names = "a", .rate = -1}, {.names = "a", .weight_decay = NAN}};
    for (size_t i = 0; i < WG_COUNT(bad); i++) {
        assert_fails(wg_optimizer_add_group(optimizer, &bad[i]), WG_ERROR_ARGUMENT, "");
    }
    assert_fails(wg_optimizer_layer_decay(optimizer, "layer", 0, NULL, 0.9), WG_ERROR_ARGUMENT,
                 "0 layers");
    assert_fails(wg_optimizer_layer_decay(optimizer, "layer", 2, NULL, 1.5), WG_ERROR_ARGUMENT,
                 "decay is 1.5");

    ck_assert_int_eq(wg_optimizer_add_group(optimizer, &(wg_parameter_group){.names = "haed.*"}),
                     0);
    wg_tensor *x = added(optimizer, "head.weight", wg_ones(WG_F64, WG_DIMS(2)));
    set_full_gradient(x, 1);
    assert_fails(wg_optimizer_step(optimizer, 0.1), WG_ERROR_ARGUMENT,
                 "\"haed.*\" matches none of the 1 parameters");
    assert_fails(wg_optimizer_add_group(optimizer, &(wg_parameter_group){.names = "*"}),
                 WG_ERROR_ARGUMENT, "add groups before parameters");
    wg_optimizer_free(optimizer);
}
END_TEST

/* ---- A rule of one's own: AdamW, written in ops ---- */

static int adamw_step(void *context, const wg_parameter_step *s) {
    const wg_adamw_options *o = context;
    wg_tensor *m = s->states[0], *v = s->states[1];
    wg_scale_(m, o->beta1);
    wg_add_(m, s->gradient, 1 - o->beta1);
    wg_scale_(v, o->beta2);
    wg_add_(v, wg_mul(s->gradient, s->gradient), 1 - o->beta2);
    const double t = (double)s->step;
    wg_tensor *root = wg_sqrt(wg_mul_scalar(v, 1 / (1 - pow(o->beta2, t))));
    wg_tensor *move = wg_div(m, wg_add_scalar(root, o->eps));
    wg_scale_(s->parameter, 1 - s->learning_rate * s->weight_decay);
    return wg_add_(s->parameter, move, -s->learning_rate / (1 - pow(o->beta1, t)));
}

static wg_adamw_options adamw = {0.9, 0.999, 1e-8, 0.1};
static const wg_update_rule rule = {
    .states = {"mean", "square"}, .step = adamw_step, .weight_decay = 0.1};

static wg_optimizer *make(bool own) {
    wg_optimizer *optimizer = own ? wg_optimizer_from_rule(&rule, &adamw) : wg_adamw_new(&adamw);
    wg_optimizer_add_group(optimizer, &(wg_parameter_group){.names = "a", .rate = 0.5});
    return optimizer;
}

/* Five steps of a small regression, clipped or in backward. */
static void train(wg_optimizer *optimizer, wg_tensor *a, wg_tensor *b, int64_t first, int64_t last,
                  bool in_backward) {
    for (int64_t step = first; step < last; step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_generator generator = {.seed = 9, .offset = (uint64_t)step};
        wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(6, 3)),
                  *y = wg_sum(x, WG_DIMS(1), true);
        wg_tensor *error = wg_sub(wg_add(wg_matmul(x, a), b), y);
        wg_tensor *loss = wg_mean(wg_mul(error, error), WG_ALL, false);
        double norm;
        if (in_backward) {
            wg_optimizer_step_begin(optimizer, 0.05, &norm);
            wg_backward(loss, NULL);
            ck_assert_int_eq(wg_optimizer_step_end(optimizer), 0);
        } else {
            wg_backward(loss, NULL);
            wg_optimizer_clip(optimizer, 0.5, &norm);
            ck_assert_double_gt(norm, 0.5);
            ck_assert_int_eq(wg_optimizer_step(optimizer, 0.05), 0);
        }
        wg_scope_end(&scope, NULL);
    }
}

static void make_leaves(wg_optimizer *optimizer, wg_tensor **a, wg_tensor **b) {
    *a = added(optimizer, "a", wg_full(WG_F64, WG_DIMS(3, 1), -0.5));
    *b = leaf_of(wg_full(WG_F64, WG_DIMS(1), 2));
    wg_optimizer_add(optimizer, "b", *b, true);
}

START_TEST(a_rule_of_ones_own_steps_as_the_built_in_one) {
    for (int in_backward = 0; in_backward < 2; in_backward++) {
        wg_tensor *a[2], *b[2];
        for (int own = 0; own < 2; own++) {
            wg_optimizer *optimizer = make(own);
            make_leaves(optimizer, &a[own], &b[own]);
            train(optimizer, a[own], b[own], 0, 5, in_backward);
            wg_optimizer_free(optimizer);
        }
        assert_close(a[1], a[0], 1e-13, 1e-15);
        assert_close(b[1], b[0], 1e-13, 1e-15);
    }
}
END_TEST

START_TEST(the_states_of_a_rule_come_back_from_a_checkpoint) {
    wg_tensor *a[3], *b[3];
    wg_optimizer *whole = make(true), *first = make(true), *second = make(true);
    make_leaves(whole, &a[0], &b[0]);
    train(whole, a[0], b[0], 0, 6, false);
    make_leaves(first, &a[1], &b[1]);
    train(first, a[1], b[1], 0, 3, false);
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("optimizer.h5"));
    ck_assert_int_eq(wg_checkpoint_put_optimizer(file, first), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    make_leaves(second, &a[2], &b[2]);
    const bool recorded = wg_set_grad_enabled(false);
    wg_copy_(a[2], a[1]);
    wg_copy_(b[2], b[1]);
    wg_set_grad_enabled(recorded);
    file = wg_checkpoint_open(in_scratch("optimizer.h5"));
    ck_assert_int_eq(wg_checkpoint_get_optimizer(file, second), 0);
    wg_checkpoint_close(file);
    train(second, a[2], b[2], 3, 6, false);
    assert_close(a[2], a[0], 0, 0);
    assert_close(b[2], b[0], 0, 0);
    wg_optimizer_free(whole);
    wg_optimizer_free(first);
    wg_optimizer_free(second);
}
END_TEST

static int fail_at_b(void *context, const wg_parameter_step *s) {
    (void)context;
    return strcmp(s->name, "b") == 0 ? -1 : 0;
}

START_TEST(a_rule_that_fails_stops_the_step_and_names_the_parameter) {
    wg_tensor *a, *b;
    wg_optimizer *optimizer = wg_optimizer_from_rule(&(wg_update_rule){.step = fail_at_b}, NULL);
    make_leaves(optimizer, &a, &b);
    set_full_gradient(a, 1);
    set_full_gradient(b, 1);
    assert_fails(wg_optimizer_step(optimizer, 0.1), WG_ERROR_STATE, "failed at \"b\"");
    wg_optimizer_free(optimizer);

    assert_none(wg_optimizer_from_rule(&(wg_update_rule){.step = NULL}, NULL), "`step'");
    const wg_update_rule twice = {.states = {"m", "m"}, .step = fail_at_b};
    assert_none(wg_optimizer_from_rule(&twice, NULL), "\"m\"");
}
END_TEST

/* ---- A schedule of one's own ---- */

static double halve(const wg_schedule *schedule, int64_t step) {
    return schedule->peak * pow(0.5, (double)(step / *(const int64_t *)schedule->context));
}

START_TEST(a_schedule_of_ones_own_gives_its_rates) {
    int64_t every = 10;
    const wg_schedule schedule = {
        .kind = WG_SCHEDULE_OWN, .peak = 0.8, .rate = halve, .context = &every};
    ck_assert_double_eq(wg_schedule_rate(&schedule, 9), 0.8);
    ck_assert_double_eq(wg_schedule_rate(&schedule, 25), 0.2);
    ck_assert(isnan(wg_schedule_rate(&(wg_schedule){.kind = WG_SCHEDULE_OWN}, 0)));
    ck_assert_str_eq(wg__schedule_name(WG_SCHEDULE_OWN), "own");
    ck_assert_int_eq(wg_schedule_find("own"), -1);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        groups_step_as_pytorchs_param_groups,
        every_optimizer_keeps_to_the_rate_and_decay_of_a_group,
        layer_wise_decay_lowers_the_rate_layer_by_layer,
        a_rate_of_zero_keeps_a_group_as_it_is,
        groups_that_cannot_be_are_refused,
        a_rule_of_ones_own_steps_as_the_built_in_one,
        the_states_of_a_rule_come_back_from_a_checkpoint,
        a_rule_that_fails_stops_the_step_and_names_the_parameter,
        a_schedule_of_ones_own_gives_its_rates,
    };
    add_suite("groups", tests);
}
