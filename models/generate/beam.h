/* Beam search over any model that gives the probability of the next token.
 *
 *     rows of a sentence    start --> a --,--> a b --> ...      the `beam` likeliest go on;
 *     (up to `beam`)                  c    `-> a d --> ...      ended hypotheses are kept apart
 *
 * The result is the ended hypothesis with the highest score: with the length penalty of Wu et al.
 * 2016 (arXiv:1609.08144, eq. 14), log P(Y) / ((5 + |Y|)^alpha / 6^alpha), where |Y| counts the end
 * token, too. A sentence is done when `beam` of its hypotheses have ended, or no open hypothesis
 * can reach the best score. A beam of 1 is greedy search. */
#ifndef WG_MODELS_GENERATE_BEAM_H
#define WG_MODELS_GENERATE_BEAM_H

#include "../model.h"

WG_BEGIN_DECLS

/* The model as the search sees it. A row is a hypothesis; at first there is one a sentence, which
 * holds the start token. Functions return 0, or -1 with an error, which ends the search. */
typedef struct wg_beam_model {
    void *context;      /* handed to the functions */
    int64_t vocabulary; /* V */

    /* Appends to each row its newest token, last (R), and fills in the logarithms of the next
     * token's probabilities: (R, V), -inf for tokens that cannot follow. */
    int (*step)(void *context, int64_t rows, const int32_t *last, float *log_probabilities);

    /* Each of the `rows` new rows r continues old row from[r]. The number of rows may change. */
    int (*reorder)(void *context, int64_t rows, const int64_t *from);
} wg_beam_model;

/* Rules for the tokens of a search. `restrict_rows` receives each row's newest token, and sets
 * tokens that must not follow to -inf. `reorder` is as in wg_beam_model. */
typedef struct wg_beam_rules {
    void *context; /* handed to the functions */
    void (*restrict_rows)(void *context, int64_t rows, const int32_t *last,
                          float *log_probabilities);
    void (*reorder)(void *context, int64_t rows, const int64_t *from);
} wg_beam_rules;

typedef struct wg_beam_options {
    int64_t beam;       /* 0: 4, as in Vaswani et al. 2017 */
    double alpha;       /* of the length penalty; 0: 0.6, as there; WG_ZERO: none */
    int64_t max_length; /* tokens of a hypothesis at most, the end included, where max_lengths allow
                           more; 0: as they say */
    int32_t start_id, end_id;
    const wg_beam_rules *rules; /* of wg__model_search; NULL: any token may follow */
} wg_beam_options;

typedef struct wg_beam_result {
    wg_token_list tokens;   /* without start and end; the caller's to free */
    double log_probability; /* of the tokens and the end */
    double score;           /* that, divided by the length penalty */
    bool ended;             /* false: cut at its longest, as no hypothesis ended */
} wg_beam_result;

WG_END_DECLS

#endif
