/* The kinds of tokenizer that are learnt from text: `tokenizer train --kind', and --tokenizer of
 * `pretrain'. */
#ifndef WG_CLI_LEARNERS_H
#define WG_CLI_LEARNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/tokenizer/tokenizer.h"

/* The names of all kinds, for help and messages. */
#define WG__LEARNER_NAMES "wordpiece, bpe, sentencepiece-bpe, sentencepiece-unigram, char or byte"

/* What a vocabulary is learnt from, and how; 0 and false are the usual. */
typedef struct wg__learning {
    int count; /* of text files */
    const char *const *paths;
    int64_t vocab_size, min_frequency, alphabet;
    bool cased, unknown, byte_fallback;
    wg_wordpiece_report report; /* out: of WordPiece; else zeroes */
} wg__learning;

typedef struct wg__learner {
    const char *name;   /* in options */
    const char *stored; /* what wg_tokenizer_kind calls it */
    bool bytes_usual;   /* pretraining's models want byte_fallback */
    /* The members of wg__learning that it heeds. */
    bool corpus, vocab_size, min_frequency, alphabet, cased, unknown, byte_fallback;
    wg_tokenizer *(*learn)(wg__learning *learning); /* NULL with an error */
} wg__learner;

/* The kind of a name; NULL if there is none. */
const wg__learner *wg__learner_of(const char *name);

/* The name of each kind, from 0 on; NULL behind the last. */
const char *wg__learner_name(int index);

/* Learns a vocabulary. Of WordPiece a note on stderr says the share of [UNK] in the text, and the
 * size that would hold the text's characters if this one does not. NULL with an error. */
wg_tokenizer *wg__learn(const wg__learner *learner, wg__learning *learning);

/* The share of a text's tokens that are [UNK], from 0 to 1. */
double wg__unknown_share(const wg_wordpiece_report *report);

#endif
