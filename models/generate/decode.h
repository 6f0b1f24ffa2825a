/* Continuing texts by a causal language model, token by token, with key-value caches.
 *
 *     texts of a batch     . . t h e       the shorter begin with padding, which nobody sees;
 *                          o n c e         each has the positions that it has alone
 *
 *     prompts --> forward --> logits of the last --> sample --> one more token a text --,
 *                    ^                                                                  |
 *                    `------------- the new tokens alone, after what the caches hold <--'
 *
 * A text that has ended leaves the batch. What a text becomes depends on its prompt and generator
 * alone, never on its neighbours, but for the rounding of logits. */
#ifndef WG_MODELS_GENERATE_DECODE_H
#define WG_MODELS_GENERATE_DECODE_H

#include <signal.h>

#include "../../data/tokenizer/tokenizer.h"
#include "../language_model.h"
#include "sampling.h"

WG_BEGIN_DECLS

/* Why a text ended. */
typedef enum wg_generation_end {
    WG_END_STOP,      /* the model gave a token of `stop_ids`, which is not part of the text */
    WG_END_LENGTH,    /* max_tokens were made */
    WG_END_POSITIONS, /* the text is as long as the model has positions */
    WG_END_CANCELLED
} wg_generation_end;

/* One text: at first its prompt, at last also what follows it. */
typedef struct wg_generation {
    wg_token_list tokens;   /* the caller's; what is generated is appended */
    wg_generator generator; /* of its draws; moves on with each */
    int64_t generated;      /* how many tokens were appended */
    wg_generation_end end;
} wg_generation;

/* What a listener hears of each token. Lives during the call. */
typedef struct wg_generated_token {
    int64_t text; /* its number in the batch */
    int32_t id;
    const float *logits; /* (vocabulary), by which it was chosen */
} wg_generated_token;

typedef struct wg_generation_options {
    wg_sampling sampling;
    int64_t max_tokens; /* generated for each text; 0: as many as the model has positions for */
    int64_t vocabulary; /* ids are below it, as a tokenizer may have fewer than the model; 0: all */
    const int32_t *stop_ids; /* tokens that end a text */
    int stop_count;
    void (*listener)(const wg_generated_token *token, void *context); /* NULL: none */
    void *listener_context;
    const volatile sig_atomic_t *stop; /* not 0: end all texts; a listener may set it. NULL: none */
} wg_generation_options;

/* Continues `count` texts. The module is in evaluation mode meanwhile, and nothing is recorded. On
 * failure the texts may have grown. Returns 0 or -1.
 * [ARGUMENT for bad options, logits that are no numbers, an empty prompt or one that leaves the
 * model no position; INDEX for ids outside its vocabulary; MEMORY] */
WG_API int wg_generate(const wg_language_model *model, int64_t count, wg_generation *texts,
                       const wg_generation_options *options);

WG_END_DECLS

#endif
