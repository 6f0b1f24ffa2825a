/* Choosing the next token by the logits of a language model.
 *
 *     logits --> repetition penalty --> / temperature --> softmax --> top k --> top p --> min p
 *                                                                                           |
 *                                              one token, by one draw <-- shares of 1 <-----'
 */
#ifndef WG_MODELS_GENERATE_SAMPLING_H
#define WG_MODELS_GENERATE_SAMPLING_H

#include "../../tensor/random.h"

WG_BEGIN_DECLS

/* {0}: always the likeliest token. */
typedef struct wg_sampling {
    double temperature; /* logits are divided by it; 0: the likeliest token, without a draw */
    int64_t top_k;      /* only the k likeliest (Fan et al. 2018); 0: all */
    double top_p;       /* only the likeliest that together have this probability, the one that
                         * reaches it included (Holtzman et al. 2020); 0 or 1: all */
    double min_p;       /* only those with this share of the likeliest one's probability or more
                         * (Nguyen et al. 2024); 0: all */
    double
        repetition_penalty; /* logits of tokens that were seen are divided by it if above 0,
                             * multiplied if below (Keskar et al. 2019, section 4.1); 0 or 1: none
                             */
} wg_sampling;

/* 0 if it can be used; -1 with [ARGUMENT, naming the member, its value and the rule] */
WG_API int wg_sampling_validate(const wg_sampling *sampling);

/* The probabilities (count) by which a token is drawn after the tokens `seen`, given the logits
 * (count) of all. Of equal logits the first counts as likelier. -inf is probability 0.
 * [ARGUMENT as above, also for logits with NaN or inf, or all of them -inf; INDEX for a token seen
 * that has no logit] */
WG_API int wg_sampling_probabilities(const wg_sampling *sampling, int64_t count,
                                     const float *logits, int64_t seen_count, const int32_t *seen,
                                     double *probabilities);

/* Draws a token by these probabilities, with one draw of the generator; with temperature 0 without
 * any. -1 with the errors above or MEMORY. */
WG_API int32_t wg_sample_token(const wg_sampling *sampling, int64_t count, const float *logits,
                               int64_t seen_count, const int32_t *seen, wg_generator *generator);

WG_END_DECLS

#endif
