/* Learning-rate schedules, each against its formula. */
#include "optim/optimizer.h"

#include <math.h>

#include "tests/support/testing.h"
#include "optim/internal.h"

START_TEST(schedules_of_straight_lines_have_their_rates) {
    static const struct {
        wg_schedule schedule;
        int count;
        double rates[11];
    } cases[] = {
        {{.kind = WG_SCHEDULE_LINEAR,
          .peak = 2,
          .final = 0.25,
          .warmup_steps = 4,
          .total_steps = 10},
         11,
         {0.5, 1, 1.5, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.5}},
        {{.kind = WG_SCHEDULE_CONSTANT, .peak = 3, .warmup_steps = 3}, 5, {1, 2, 3, 3, 3}},
        {{.kind = WG_SCHEDULE_NOAM, .peak = 2, .warmup_steps = 4}, 4, {0.5, 1, 1.5, 2}},
        {{.kind = WG_SCHEDULE_WSD,
          .peak = 2,
          .final = 0.5,
          .warmup_steps = 2,
          .total_steps = 10,
          .decay_steps = 4},
         11,
         {1, 2, 2, 2, 2, 2, 1.75, 1.5, 1.25, 1, 1}},
        {{.kind = WG_SCHEDULE_LINEAR, .peak = 1}, 1, {0}},
        {{.kind = WG_SCHEDULE_LINEAR, .peak = 1, .warmup_steps = 5, .total_steps = 5},
         6,
         {0.2, 0.4, 0.6, 0.8, 1, 0}},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        for (int step = 0; step < cases[i].count; step++) {
            const double rate = wg_schedule_rate(&cases[i].schedule, step);
            ck_assert_msg(fabs(rate - cases[i].rates[step]) <= 1e-15, "row %d, step %d: %g", (int)i,
                          step, rate);
        }
}
END_TEST

/* The formula of torch.optim.lr_scheduler.CosineAnnealingLR: eta_min + (base - eta_min) (1 + cos(pi
 * t / T_max)) / 2. */
START_TEST(the_cosine_schedule_falls_by_half_a_wave_to_its_end) {
    const wg_schedule schedule = {.kind = WG_SCHEDULE_COSINE,
                                  .peak = 1e-3,
                                  .final = 0.1,
                                  .warmup_steps = 100,
                                  .total_steps = 2000};
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 49), 5e-4, 1e-18);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 99), 1e-3, 1e-18);
    for (int64_t step = 100; step < 2000; step++) {
        double done = (double)(step - 99) / 1900;
        double expected = 1e-4 + (1e-3 - 1e-4) * (1 + cos(acos(-1.0) * done)) / 2;
        ck_assert_double_eq_tol(wg_schedule_rate(&schedule, step), expected, 1e-18);
    }
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 1049), 5.5e-4, 1e-18);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 1999), 1e-4, 1e-18);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 5000), 1e-4, 1e-18);
}
END_TEST

/* Equation 3 of Vaswani et al. 2017 with d_model = 512 and warmup_steps = 4000. */
START_TEST(the_noam_schedule_is_that_of_the_paper) {
    wg_schedule schedule = {
        .kind = WG_SCHEDULE_NOAM, .peak = 1, .width = 512, .warmup_steps = 4000};
    for (int64_t step = 0; step < 20000; step += 37) {
        double t = (double)(step + 1);
        double expected = pow(512, -0.5) * fmin(pow(t, -0.5), t * pow(4000, -1.5));
        ck_assert_double_eq_tol(wg_schedule_rate(&schedule, step) / expected, 1, 1e-14);
    }
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 3999), 6.987712429686843e-4, 1e-17);
    schedule = (wg_schedule){.kind = WG_SCHEDULE_NOAM, .peak = 2, .warmup_steps = 4};
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 15), 1, 1e-15);
    schedule.warmup_steps = 0;
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 0), 2, 1e-15);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 3), 1, 1e-15);
}
END_TEST

/* 1 / sqrt(max(t, 10^4)) of Raffel et al. 2020, section 3.1.2. */
START_TEST(the_inverse_square_root_schedule_is_that_of_t5) {
    const wg_schedule schedule = {
        .kind = WG_SCHEDULE_INVERSE_SQRT, .peak = 0.01, .warmup_steps = 10000};
    for (int64_t step = 0; step < 100000; step += 1111)
        ck_assert_double_eq_tol(wg_schedule_rate(&schedule, step),
                                1 / sqrt(fmax((double)step + 1, 1e4)), 1e-17);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 0), 0.01, 1e-17);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 39999), 0.005, 1e-17);
}
END_TEST

START_TEST(wsd_falls_in_the_last_tenth_of_its_steps) {
    wg_schedule schedule = {.kind = WG_SCHEDULE_WSD, .peak = 1, .total_steps = 100};
    ck_assert(wg_schedule_rate(&schedule, 89) == 1);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 90), 0.9, 1e-15);
    ck_assert_double_eq_tol(wg_schedule_rate(&schedule, 99), 0, 1e-15);
    schedule.final = 0.25;
    for (schedule.total_steps = 2; schedule.total_steps < 10; schedule.total_steps++) {
        ck_assert(wg_schedule_rate(&schedule, schedule.total_steps - 2) == 1);
        ck_assert(wg_schedule_rate(&schedule, schedule.total_steps - 1) == 0.25);
    }
}
END_TEST

/* Its first step is its last: at the peak, not at the end. */
START_TEST(a_run_of_one_step_takes_it_at_the_peak) {
    for (int kind = 0; kind <= WG_SCHEDULE_INVERSE_SQRT; kind++)
        for (int64_t warmup = 0; warmup < 2; warmup++) {
            const wg_schedule schedule = {.kind = (wg_schedule_kind)kind,
                                          .peak = 0.5,
                                          .warmup_steps = warmup,
                                          .total_steps = 1};
            ck_assert_msg(wg_schedule_rate(&schedule, 0) == 0.5, "%s: %g",
                          wg__schedule_name(schedule.kind), wg_schedule_rate(&schedule, 0));
        }
}
END_TEST

START_TEST(schedules_are_found_by_name) {
    ck_assert_int_eq(wg_schedule_find("linear"), WG_SCHEDULE_LINEAR);
    ck_assert_int_eq(wg_schedule_find("constant"), WG_SCHEDULE_CONSTANT);
    ck_assert_int_eq(wg_schedule_find("cosign"), -1);
    ck_assert_int_eq(wg_schedule_find(NULL), -1);
    for (int kind = 0; kind <= WG_SCHEDULE_INVERSE_SQRT; kind++)
        ck_assert_int_eq(wg_schedule_find(wg__schedule_name((wg_schedule_kind)kind)), kind);
    ck_assert_str_eq(wg__schedule_name(WG_SCHEDULE_LINEAR), "linear");
    ck_assert_str_eq(wg__schedule_name((wg_schedule_kind)99), "?");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        schedules_of_straight_lines_have_their_rates,
        the_cosine_schedule_falls_by_half_a_wave_to_its_end,
        the_noam_schedule_is_that_of_the_paper,
        the_inverse_square_root_schedule_is_that_of_t5,
        wsd_falls_in_the_last_tenth_of_its_steps,
        a_run_of_one_step_takes_it_at_the_peak,
        schedules_are_found_by_name,
    };
    add_suite("schedule", tests);
}
