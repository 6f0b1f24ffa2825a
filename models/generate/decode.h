/* Continuing texts token by token: by a decoder with key-value caches, or by a program's own model
 * with a state of any kind.
 *
 *     texts of a batch     . . t h e       shorter texts begin with padding, which no token sees;
 *                          o n c e         positions count from a text's first token
 *
 *     prompts --> forward --> logits of the last --> sample --> one more token a text --,
 *                    ^                                                                  |
 *                    `--------------- only the new tokens, after the cached ones <------'
 *
 * A text that has ended leaves the batch. A text's continuation depends only on its prompt and
 * generator, except for the rounding of logits, which depends on the batch. The next token is
 * sampled so:
 *
 *     logits --> repetition penalty --> / temperature --> softmax --> top k --> top p --> min p
 *                                                                                           |
 *                                              one token, by one draw <-- shares of 1 <-----' */
#ifndef WG_MODELS_GENERATE_DECODE_H
#define WG_MODELS_GENERATE_DECODE_H

#include <signal.h>

#include "../model.h"

WG_BEGIN_DECLS

/* ---- Sampling ---- */

/* {0}: always the likeliest token. */
typedef struct wg_sampling {
    double temperature; /* logits are divided by it; 0: the likeliest token, without a draw */
    int64_t top_k;      /* only the k likeliest (Fan et al. 2018); 0: all */
    double top_p;       /* only the likeliest that together have this probability, the one that
                         * reaches it included (Holtzman et al. 2020); 0 or 1: all; WG_ZERO: the
                         * likeliest alone */
    double min_p;       /* only those with this share of the likeliest one's probability or more
                         * (Nguyen et al. 2024); 0: all */
    double repetition_penalty; /* logits of tokens that were seen are divided by it if above 0,
                                * multiplied if below (Keskar et al. 2019, section 4.1); 0 or 1:
                                * none */
} wg_sampling;

/* ---- Texts ---- */

/* Why a text ended. */
typedef enum wg_generation_end {
    WG_END_STOP,      /* the model gave a token of `stop_ids`, which is not part of the text */
    WG_END_LENGTH,    /* max_tokens were made */
    WG_END_POSITIONS, /* the text is as long as the model has positions */
    WG_END_CANCELLED
} wg_generation_end;

/* One text: its prompt, then also its continuation. */
typedef struct wg_generation {
    wg_token_list tokens;   /* the caller's; generated tokens are appended */
    wg_generator generator; /* of its draws; moves on with each */
    int64_t generated;      /* how many tokens were appended */
    wg_generation_end end;
} wg_generation;

/* A token as the listener gets it. Valid during the call. */
typedef struct wg_generated_token {
    int64_t text; /* its number in the batch */
    int32_t id;
    const float *logits; /* (vocabulary), from which it was chosen */
} wg_generated_token;

typedef struct wg_generation_options {
    wg_sampling sampling;
    int64_t max_tokens; /* generated for each text; 0: up to the model's positions */
    int64_t vocabulary; /* ids are below it, as a tokenizer may have fewer than the model; 0: all */
    const int32_t *stop_ids; /* tokens that end a text */
    int stop_count;
    void (*listener)(const wg_generated_token *token, void *context); /* NULL: none */
    void *listener_context;
    const volatile sig_atomic_t *stop; /* not 0: end all texts; a listener may set it. NULL: none */
} wg_generation_options;

/* Continues `count` texts by a decoder. The module is in evaluation mode meanwhile, and nothing is
 * recorded. On failure the texts may have grown. Returns 0 or -1. [ARGUMENT for bad options, logits
 * that are no numbers, an empty prompt or one that leaves the model no position; INDEX for ids
 * outside its vocabulary; STATE for a model that is no decoder; MEMORY] */
WG_API int wg_generate(const wg_model *model, int64_t count, wg_generation *texts,
                       const wg_generation_options *options);

/* ---- Models of a program's own ---- */

/* Tokens that a model has not read yet. */
typedef struct wg_new_tokens {
    wg_tensor *ids; /* (R, T) i64, of R texts */
    /* NULL unless the model takes padding and a text begins with padding. position_ids: (R, T) i64,
     * the positions of the ids in their texts. keep: (R, S) bool, of all S positions read so far,
     * these ids included: false for padding. */
    wg_tensor *position_ids, *keep;
} wg_new_tokens;

/* A model that predicts the next token, with any kind of state: keys and values, the h and c of an
 * LSTM, the n last letters. Functions return 0, or -1 or NULL with an error.
 *
 *     begin (R texts) --> read prompts --> read one token a text --> ... --> end
 *                                             |   ^
 *                                      reorder: texts that have ended go                    */
typedef struct wg_language_model {
    void *context;     /* handed to every function */
    wg_module *module; /* in evaluation mode during generation; NULL: none */
    int64_t vocabulary;
    int64_t positions;  /* the longest text; 0: any */
    bool takes_padding; /* `read` passes over padding before shorter prompts. If not, no padding is
                         * read: prompts begin together, and the longer ones are read on while the
                         * shorter ones are continued. */

    /* A state of `texts` texts that have no tokens yet, and of at most `length` each in the end. */
    void *(*begin)(void *context, int64_t texts, int64_t length);

    /* Reads the new tokens, which follow the tokens read before, and returns the logits after the
     * last token, (R, vocabulary). Tensors that go into the state need wg_keep. [scope] */
    wg_tensor *(*read)(void *context, void *state, const wg_new_tokens *tokens);

    /* Text i of the new state continues text index[i] of the old state; index: (R') i64. */
    int (*reorder)(void *context, void *state, wg_tensor *index);

    /* Frees the state. */
    void (*end)(void *context, void *state);
} wg_language_model;

/* wg_generate by a wg_language_model. [as wg_generate; ARGUMENT also without max_tokens where the
 * model has any number of positions, and for a model without its functions; SHAPE for logits of
 * another shape] */
WG_API int wg_language_model_generate(const wg_language_model *model, int64_t count,
                                      wg_generation *texts, const wg_generation_options *options);

WG_END_DECLS

#endif
