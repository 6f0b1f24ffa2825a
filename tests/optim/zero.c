/* A momentum, beta or other option of 0: WG_ZERO is used as 0 or refused, never taken for the
 * default. The steps are compared with their formulas, bit for bit where 0 leaves nothing to round.
 */
#include "tests/optim/leaves.h"

#include <math.h>

#include "tensor/ops.h"
#include "optim/internal.h"

enum { N = 6 };

static const double begin[N] = {1, -2, 0.5, 3, -0.25, 0.75};
static const double gradients[3][N] = {
    {0.5, -1, 0.25, 2, 0, -0.125}, {-0.25, 3, 0.5, -1, 0.5, 0}, {1, -0.5, -4, 0.125, 0, 2}};
#define RATE 0.125

/* The steps from `first` on of a leaf of N elements of f64 by an optimizer, which is freed; w
 * becomes its elements. Steps before the last have a rate of 0 if `last_alone`. */
static void take_steps(wg_optimizer *optimizer, int ndim, const int64_t *shape, int first,
                       bool last_alone, double *w) {
    ck_assert_ptr_nonnull(optimizer);
    wg_tensor *leaf = added(optimizer, "w", wg_from_array(WG_F64, ndim, shape, begin));
    for (int step = first; step < 3; step++) {
        set_gradient(leaf, wg_from_array(WG_F64, ndim, shape, gradients[step]));
        ck_assert_int_eq(wg_optimizer_step(optimizer, last_alone && step < 2 ? 0 : RATE), 0);
    }
    ck_assert_int_eq(wg_to_array(wg_detach(leaf), w), 0);
    wg_optimizer_free(optimizer);
}

/* Compares them with w -= RATE move(g). */
static void check_moves(wg_optimizer *optimizer, double (*move)(double g), double tolerance) {
    double found[N];
    take_steps(optimizer, WG_DIMS(N), 0, false, found);
    for (int i = 0; i < N; i++) {
        double wanted = begin[i];
        for (int step = 0; step < 3; step++)
            wanted -= RATE * move(gradients[step][i]);
        ck_assert_msg(fabs(found[i] - wanted) <= tolerance, "element %d is %.17g, wanted %.17g", i,
                      found[i], wanted);
    }
}

static double itself(double g) {
    return g;
}

static double sign(double g) {
    return g > 0 ? 1 : g < 0 ? -1 : 0;
}

/* With both betas 0 m is g and v is g^2, so that each element moves by g / (|g| + eps). */
static double unit(double g) {
    return g / (fabs(g) + 1e-8);
}

START_TEST(sgd_without_momentum_moves_by_the_rate_times_the_gradient) {
    check_moves(wg_optimizer_new(&(wg_optimizer_choice){.name = "sgd", .momentum = WG_ZERO}),
                itself, 0);
    check_moves(wg_sgd_new(&(wg_sgd_options){.momentum = WG_ZERO}), itself, 0);
}
END_TEST

START_TEST(sgd_without_momentum_keeps_no_state) {
    wg_optimizer *sgd =
        wg_optimizer_new(&(wg_optimizer_choice){.name = "sgd", .momentum = WG_ZERO});
    added(sgd, "w", wg_from_array(WG_F64, WG_DIMS(N), begin));
    ck_assert_int_eq(wg__optimizer_state_bytes(sgd), 0);
    wg_optimizer_free(sgd);
}
END_TEST

START_TEST(adam_with_betas_of_zero_moves_by_the_gradients_signs) {
    static const char *const names[] = {"adam", "adamw", "muon"};
    for (size_t i = 0; i < WG_COUNT(names); i++)
        check_moves(wg_optimizer_new(&(wg_optimizer_choice){
                        .name = names[i], .beta1 = WG_ZERO, .beta2 = WG_ZERO}),
                    unit, 1e-15);
}
END_TEST

START_TEST(lion_with_betas_of_zero_moves_by_the_gradients_signs) {
    check_moves(wg_optimizer_new(
                    &(wg_optimizer_choice){.name = "lion", .beta1 = WG_ZERO, .beta2 = WG_ZERO}),
                sign, 0);
    check_moves(wg_lion_new(&(wg_lion_options){.beta1 = WG_ZERO}), sign, 0);
}
END_TEST

/* Muon's direction of a matrix is then that of its newest gradient alone, as after one step. */
static void step_matrix(double momentum, int steps, double *w) {
    take_steps(wg_muon_new(&(wg_muon_options){.momentum = momentum}), WG_DIMS(2, 3), 3 - steps,
               true, w);
}

START_TEST(muon_without_momentum_forgets_the_gradients_before) {
    double after_three[N], after_one[N], usual[N];
    step_matrix(WG_ZERO, 3, after_three);
    step_matrix(WG_ZERO, 1, after_one);
    step_matrix(0, 3, usual);
    ck_assert_mem_eq(after_three, after_one, sizeof after_one);
    ck_assert_mem_ne(usual, after_one, sizeof after_one);
}
END_TEST

START_TEST(zero_is_refused_where_it_cannot_be_used) {
    assert_none(wg_adamw_new(&(wg_adamw_options){.eps = WG_ZERO}), "eps is 0");
    assert_none(wg_muon_new(&(wg_muon_options){.adamw_rate = WG_ZERO}), "adamw_rate is 0");
    static const struct {
        wg_adafactor_options options;
        const char *message;
    } adafactor[] = {{{.eps1 = WG_ZERO}, "eps1 is 0"},
                     {{.eps2 = WG_ZERO}, "eps2 is 0"},
                     {{.clip_threshold = WG_ZERO}, "clip_threshold is 0"},
                     {{.decay_rate = WG_ZERO}, "decay_rate is 0"}};
    for (size_t i = 0; i < WG_COUNT(adafactor); i++)
        assert_none(wg_adafactor_new(&adafactor[i].options), adafactor[i].message);
    assert_none(wg_adamw_new(&(wg_adamw_options){.beta1 = -1}), "beta1 is -1");
    assert_none(wg_sgd_new(&(wg_sgd_options){.momentum = WG_ZERO, .nesterov = true}), "momentum");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        sgd_without_momentum_moves_by_the_rate_times_the_gradient,
        sgd_without_momentum_keeps_no_state,
        adam_with_betas_of_zero_moves_by_the_gradients_signs,
        lion_with_betas_of_zero_moves_by_the_gradients_signs,
        muon_without_momentum_forgets_the_gradients_before,
        zero_is_refused_where_it_cannot_be_used,
    };
    add_suite("zero", tests);
}
