/* SentencePiece   (Kudo & Richardson 2018): text to pieces without splitting it into words first.
 *
 *     "Hello world."
 *       normalise: rules for characters, spaces written as U+2581, one more before all
 *     ▁Hello▁world.
 *       BPE: neighbours joined, those first that make the piece of the best score
 *       unigram: the pieces whose scores add up to the most
 *     ▁He llo ▁world .
 *       a character that is no piece is its bytes (<0xE2> <0x82> <0xAC>), or unknown
 *
 * The ids equal those of google/sentencepiece, or, for a model from a tokenizer.json, those of
 * huggingface/tokenizers. Control pieces (<s>, </s>) never come of text unless special tokens are
 * asked for; user-defined pieces always do. */
#ifndef WG_DATA_TOKENIZER_SENTENCEPIECE_H
#define WG_DATA_TOKENIZER_SENTENCEPIECE_H

#include "tokenizer.h"

WG_BEGIN_DECLS

/* Reads a tokenizer.model: BPE and unigram models, with any character rules. Freed with
 * wg_tokenizer_free. [NOT_FOUND, IO; FORMAT for a damaged file, or what is not supported, by name:
 * models of words or characters, unused pieces of BPE, rules for decoding] */
WG_API wg_tokenizer *wg_sentencepiece_load(const char *path);

WG_END_DECLS

#endif
