/* Sampling: probabilities against their formulas, draws against probabilities, edge cases. */
#include <math.h>

#include "models/generate/decode.h"
#include "tests/support/testing.h"
#include "models/internal.h"

enum { V = 6 };

/* Softmax: 0.4, 0.3, 0.15, 0.1, 0.04, 0.01, in another order. */
static const float logits[V] = {-2.302585093f, -0.916290732f, -4.605170186f,
                                -1.203972804f, -3.218875825f, -1.897119985f};
static const double plain[V] = {0.1, 0.4, 0.01, 0.3, 0.04, 0.15};

/* Shares of the probabilities that stay. 0.4 / 0.7 of what top_k leaves is more than half. */
START_TEST(probabilities_are_those_of_the_formulas) {
    static const struct {
        wg_sampling sampling;
        double power;
        double least; /* probabilities below it become 0 */
    } cases[] = {
        {{.temperature = 1}, 1, 0},
        {{.temperature = 2}, 0.5, 0},
        {{.temperature = 0.5}, 2, 0},
        {{.temperature = 1, .top_k = 3}, 1, 0.15},
        {{.temperature = 1, .top_k = 1}, 1, 0.4},
        {{.temperature = 1, .top_k = V + 1}, 1, 0},
        {{.temperature = 1, .top_p = 0.71}, 1, 0.15},
        {{.temperature = 1, .top_p = 0.84}, 1, 0.15},
        {{.temperature = 1, .top_p = 1e-9}, 1, 0.4},
        {{.temperature = 1, .top_p = WG_ZERO}, 1, 0.4},
        {{.temperature = 1, .top_p = 1}, 1, 0},
        {{.temperature = 1, .top_p = 0}, 1, 0},
        {{.temperature = 1, .top_k = 2, .top_p = 0.5}, 1, 0.4},
        {{.temperature = 1, .min_p = 0.3}, 1, 0.15},
        {{.temperature = 1, .min_p = 1}, 1, 0.4},
    };
    for (size_t c = 0; c < WG_COUNT(cases); c++) {
        double found[V], wanted[V], total = 0;
        for (int i = 0; i < V; i++) {
            wanted[i] = plain[i] >= cases[c].least ? pow(plain[i], cases[c].power) : 0;
            total += wanted[i];
        }
        ck_assert_int_eq(wg__sampling_probabilities(&cases[c].sampling, V, logits, 0, NULL, found),
                         0);
        for (int i = 0; i < V; i++)
            ck_assert_msg(fabs(found[i] - wanted[i] / total) <= 1e-7, "row %d: %g for token %d",
                          (int)c, found[i], i);
    }
}
END_TEST

START_TEST(a_repeated_token_is_penalised_once) {
    static const float signs[3] = {2, -1, 1};
    const int32_t seen[] = {0, 1, 1, 0, 1};
    const wg_sampling sampling = {.temperature = 1, .repetition_penalty = 2};
    const double weights[3] = {exp(1), exp(-2), exp(1)};
    double found[3];
    ck_assert_int_eq(wg__sampling_probabilities(&sampling, 3, signs, 5, seen, found), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(found[i], weights[i] / (2 * exp(1) + exp(-2)), 1e-12);
    assert_fails(wg__sampling_probabilities(&sampling, 3, signs, 1, (int32_t[]){3}, found),
                 WG_ERROR_INDEX, "token 3");
}
END_TEST

START_TEST(temperature_zero_takes_the_likeliest_without_a_draw) {
    wg_generator generator = {.seed = 1};
    const wg_sampling greedy = {0}, penalised = {.repetition_penalty = 10};
    ck_assert_int_eq(wg__sample_token(&greedy, V, logits, 0, NULL, &generator), 1);
    ck_assert_int_eq(wg__sample_token(&penalised, V, logits, 1, (int32_t[]){1}, &generator), 3);
    ck_assert_int_eq(generator.offset, 0);
}
END_TEST

START_TEST(of_equal_logits_the_first_is_the_likeliest) {
    static const float equal[4] = {3, 3, 3, 3};
    double found[4];
    wg_generator generator = {0};
    ck_assert_int_eq(wg__sample_token(&(wg_sampling){0}, 4, equal, 0, NULL, &generator), 0);
    wg_sampling sampling = {.temperature = 1, .top_k = 2};
    ck_assert_int_eq(wg__sampling_probabilities(&sampling, 4, equal, 0, NULL, found), 0);
    ck_assert(found[0] == 0.5 && found[1] == 0.5 && found[2] == 0 && found[3] == 0);
    sampling = (wg_sampling){.temperature = 1};
    ck_assert_int_eq(wg__sampling_probabilities(&sampling, 4, equal, 0, NULL, found), 0);
    for (int i = 0; i < 4; i++)
        ck_assert(found[i] == 0.25);
}
END_TEST

START_TEST(extreme_logits_and_temperatures_do_not_overflow) {
    static const float extreme[3] = {3e38f, -3e38f, -INFINITY};
    double found[3];
    const double temperatures[] = {1e-300, 1, 1e300};
    for (int i = 0; i < 3; i++) {
        const wg_sampling sampling = {.temperature = temperatures[i], .top_p = 0.9999};
        ck_assert_int_eq(wg__sampling_probabilities(&sampling, 3, extreme, 0, NULL, found), 0);
        ck_assert_double_eq_tol(found[0] + found[1], 1, 1e-12);
        ck_assert(found[2] == 0);
    }
    ck_assert_double_eq_tol(found[0], 0.5, 1e-12);
}
END_TEST

/* Chi-square of N draws with 5 degrees of freedom: 20.5 is exceeded for one of a thousand seeds. */
START_TEST(draws_have_their_probabilities) {
    enum { N = 20000 };
    int counts[V] = {0};
    double chi_square = 0;
    wg_generator generator = {.seed = (uint64_t)_i + 11};
    for (int i = 0; i < N; i++) {
        int32_t id =
            wg__sample_token(&(wg_sampling){.temperature = 1}, V, logits, 0, NULL, &generator);
        ck_assert(id >= 0 && id < V);
        counts[id]++;
    }
    for (int i = 0; i < V; i++) {
        const double wanted = N * plain[i];
        chi_square += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
    }
    ck_assert_double_lt(chi_square, 20.5);
    ck_assert_double_gt(chi_square, 0.2); /* nor are they too even to be random */
    ck_assert_int_eq(generator.offset, N);
}
END_TEST

START_TEST(what_is_left_out_is_never_drawn) {
    const wg_sampling samplings[] = {{.temperature = 5, .top_k = 3},
                                     {.temperature = 1, .top_p = 0.8},
                                     {.temperature = 1, .min_p = 0.3}};
    wg_generator generator = {.seed = 4};
    for (size_t s = 0; s < WG_COUNT(samplings); s++)
        for (int i = 0; i < 2000; i++) {
            int32_t id = wg__sample_token(&samplings[s], V, logits, 0, NULL, &generator);
            ck_assert(id == 1 || id == 3 || id == 5);
        }
}
END_TEST

START_TEST(logits_that_are_no_numbers_are_refused) {
    static const float with_nan[2] = {1, NAN}, infinite[2] = {1, INFINITY},
                       none[2] = {-INFINITY, -INFINITY};
    wg_generator generator = {0};
    assert_fails(wg__sample_token(&(wg_sampling){0}, 2, with_nan, 0, NULL, &generator),
                 WG_ERROR_ARGUMENT, "token 1 is nan");
    assert_fails(wg__sample_token(&(wg_sampling){0}, 2, infinite, 0, NULL, &generator),
                 WG_ERROR_ARGUMENT, "token 1 is inf");
    assert_fails(wg__sample_token(&(wg_sampling){0}, 2, none, 0, NULL, &generator),
                 WG_ERROR_ARGUMENT, "-inf");
}
END_TEST

START_TEST(options_out_of_range_are_refused) {
    static const struct {
        wg_sampling sampling;
        const char *name;
    } bad[] = {
        {{.temperature = -1}, "temperature"},
        {{.temperature = INFINITY}, "temperature"},
        {{.temperature = NAN}, "temperature"},
        {{.top_k = -1}, "top_k"},
        {{.top_p = -0.1}, "top_p"},
        {{.top_p = 1.1}, "top_p"},
        {{.top_p = NAN}, "top_p"},
        {{.min_p = 1.1}, "min_p"},
        {{.min_p = -1}, "min_p"},
        {{.repetition_penalty = -1}, "repetition_penalty"},
    };
    for (size_t i = 0; i < WG_COUNT(bad); i++) {
        assert_fails(wg__sampling_validate(&bad[i].sampling), WG_ERROR_ARGUMENT, bad[i].name);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        probabilities_are_those_of_the_formulas,
        a_repeated_token_is_penalised_once,
        temperature_zero_takes_the_likeliest_without_a_draw,
        of_equal_logits_the_first_is_the_likeliest,
        extreme_logits_and_temperatures_do_not_overflow,
        draws_have_their_probabilities,
        what_is_left_out_is_never_drawn,
        logits_that_are_no_numbers_are_refused,
        options_out_of_range_are_refused,
    };
    add_suite("sampling", tests);
}
