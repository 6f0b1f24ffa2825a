/* Models that continue texts, as `wengert generate' knows them. A new one is a file
 * cli/generate_KIND.c with a wg__continuer, and a line in the table of generate.c. */
#ifndef WG_CLI_GENERATING_H
#define WG_CLI_GENERATING_H

#include "cli/model_kind.h"
#include "cli/sampling.h"
#include "models/generate/decode.h"

/* A text that is continued. */
typedef struct wg__continuing {
    void *model;       /* the kind's own */
    wg_module *module; /* its root */
    wg_tokenizer *tokenizer;
    int64_t max_positions; /* of the model */
    int64_t most_read;     /* tokens that a prompt may have */
    int64_t most_written;  /* tokens for which there are positions behind what is read */
    wg_generation text;    /* what the model reads, and at last what follows, too */

    /* Hears of each token. */
    void (*listener)(const wg_generated_token *token, void *context);
    void *listener_context;
} wg__continuing;

typedef struct wg__continuer {
    const wg__model_kind *kind;

    /* Reads model and tokenizer of a checkpoint; `end' is called even after a failure, and frees
     * them and the text. */
    int (*begin)(wg__continuing *c, const char *run);
    void (*end)(wg__continuing *c);

    /* Fills in what the model reads, and how much it may write; prompt is NULL for none, and has at
     * least one token. */
    int (*read_prompt)(wg__continuing *c, const char *prompt);

    /* Continues the text. */
    int (*write_text)(wg__continuing *c, const wg__drawing *how);
} wg__continuer;

extern const wg__continuer wg__gpt_continuer, wg__llama_continuer, wg__glm_continuer;

#endif
