/* Functions of the verbs that use a trained model: the checkpoint, its model and its objective, and
 * how tokens are drawn and searched for. */
#ifndef WG_CLI_DECODING_H
#define WG_CLI_DECODING_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "models/generate/beam.h"
#include "models/generate/decode.h"
#include "objectives/objective.h"
#include "data/tokenizer/tokenizer.h"

typedef struct wg__drawing {
    wg_sampling sampling;
    wg_generator generator; /* at the seed */
    int64_t max_tokens;     /* 0: not given */
    int64_t usual_tokens;   /* the publisher's default of max_tokens; 0: the verb's default */
    bool published;         /* the publisher's generation_config.json has an option of drawing */
} wg__drawing;

/* The options of drawing; their struct is a wg__drawing. */
extern const wg_setting_table wg__sampling_options;

/* Whether any of them but the length was given. */
bool wg__drawing_given(const wg__drawing *drawing);

/* Sets the options that the command line left out from the generation_config.json that `convert`
 * stored in the checkpoint. -1 with [FORMAT for a value that is none, IO] */
int wg__drawing_read_published(wg__drawing *drawing, const char *path);

/* "stop", "length", "positions" and "cancelled": why a text ended, by wg_generation_end. */
extern const char *const wg__generation_ends[];

/* The options of a beam search; their struct is a wg_beam_options. */
extern const wg_setting_table wg__beam_options;

/* ---- A checkpoint, its model and its objective ---- */

/* A checkpoint with its model, as verbs that do not train use it. */
typedef struct wg__trained {
    const wg_objective *objective;
    wg_model model;
    wg_tokenizer *tokenizer;
} wg__trained;

/* A verb that uses a trained model. */
typedef enum wg__trained_use {
    WG__USE_EMBED, /* objectives without a head: their models give hidden states */
    WG__USE_FILL,
    WG__USE_GENERATE,
    WG__USE_SCORE,
    WG__USE_TRANSLATE
} wg__trained_use;

/* Finds the objective of a checkpoint. If the verb cannot use it, the error lists the models and
 * tasks that the verb takes. NULL with an error. */
const wg_objective *wg__trained_objective(const char *path, wg__trained_use use);

/* Reads model and tokenizer. 0, or -1 with an error; cleared in every case. */
int wg__trained_load(wg__trained *trained, const wg_objective *objective, const char *path);
void wg__trained_clear(wg__trained *trained);

/* Rounds the weights to the index-th type of wg__weights_dtype_name (options.h). -1 with an error
 */
int wg__trained_quantize(const wg_model *model, int dtype);

/* -1 with the error that the checkpoint holds something else than `verb' takes. */
int wg__trained_refuse(const char *path, const char *verb, const char *takes);

/* The command that trains a model of this type: "pretrain gpt", "finetune --task squad". */
void wg__training_command(const wg_objective *objective, const wg_model_type *type, char *text,
                          size_t size);

/* ---- Texts with the places that they are from ---- */

typedef struct wg__text_list {
    wg_text_source *items;
    int64_t count, capacity;
} wg__text_list;

/* Appends a text, which the caller owns. -1 with MEMORY. */
int wg__text_list_append(wg__text_list *list, const char *text, const char *file, int64_t line);

/* ---- The kinds of tokenizer that are learnt from text: `tokenizer train --kind', and --tokenizer
 * of `pretrain' ---- */

/* The names of all kinds, for help and messages. */
#define WG__LEARNER_NAMES "wordpiece, bpe, sentencepiece-bpe, sentencepiece-unigram, char or byte"

/* The texts and options of a vocabulary; 0 and false are the defaults. */
typedef struct wg__learning {
    int count; /* of text files */
    const char *const *paths;
    int64_t vocab_size, min_frequency, alphabet;
    bool cased, unknown, byte_fallback;
    wg_wordpiece_report report; /* out: of WordPiece; else zeroes */
} wg__learning;

typedef enum wg__learner_kind {
    WG__LEARN_WORDPIECE,
    WG__LEARN_BPE,
    WG__LEARN_SENTENCEPIECE_BPE,
    WG__LEARN_SENTENCEPIECE_UNIGRAM,
    WG__LEARN_CHARACTERS,
    WG__LEARN_BYTES
} wg__learner_kind;

typedef struct wg__learner {
    const char *name;   /* in options */
    const char *stored; /* as wg_tokenizer_kind returns it */
    wg__learner_kind kind;
    bool bytes_usual; /* pretraining's models want byte_fallback */
    /* The members of wg__learning that apply to this kind. */
    bool corpus, vocab_size, min_frequency, alphabet, cased, unknown, byte_fallback;
} wg__learner;

/* The kind of a name; NULL if there is none. */
const wg__learner *wg__learner_of(const char *name);

/* The name of each kind, from 0 on; NULL behind the last. */
const char *wg__learner_name(int index);

/* Learns a vocabulary. For WordPiece, wg__learn notes on stderr the share of [UNK] in the text and,
 * if the vocabulary is too small for the text's characters, the size that would hold them. NULL
 * with an error. */
wg_tokenizer *wg__learn(const wg__learner *learner, wg__learning *learning);
wg_tokenizer *wg__learn_quietly(const wg__learner *learner, wg__learning *learning);

#endif
