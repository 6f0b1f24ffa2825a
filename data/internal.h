/* What data/ declares for the library and the command, and does not install. */
#ifndef WG_DATA_INTERNAL_H
#define WG_DATA_INTERNAL_H

#include "base/internal.h"
#include "data/batches/batches.h"
#include "data/dataset/dataset.h"
#include "data/tokenizer/tokenizer.h"

/* ---- Of data/batches/batches.h ---- */

/* The same, but the last batch of an epoch ends with it, and may have fewer examples: for measuring
 * on each example once. */
int wg__batches_next_of_epoch(wg_batches *batches, void *batch);

/* Goes past the next batch of wg_batches_next without building it: that is another rank's. */
int wg__batches_skip(wg_batches *batches);

/* How many examples the epoch has in which the next batch begins. Given NULL: 0. */
int64_t wg__batches_examples(const wg_batches *batches);

/* Where the next batch begins, and going there; the seed is part of it. A seek that fails changes
 * nothing. [ARGUMENT for a position that no run of these examples has] */
wg_data_position wg__batches_position(const wg_batches *batches);
int wg__batches_seek(wg_batches *batches, const wg_data_position *position);

/* ---- Of data/dataset/dataset.h ---- */

/* True if there is an HDF5 file of that name, as token files are, and no text. False with [IO] if a
 * read of it failed. */
WG__COMMAND bool wg__dataset_is_token_file(const char *path);

/* Given NULL: 0. Bytes are those of the text that the tokens stand for (not known of a part that
 * was split off: 0); vocabulary is the size of the tokenizer's. */
WG__COMMAND int64_t wg__dataset_documents(const wg_dataset *dataset);
WG__COMMAND int64_t wg__dataset_sentences(const wg_dataset *dataset);
int64_t wg__dataset_bytes(const wg_dataset *dataset);

/* The sentence with which a document begins, of a stream the token; document = wg__dataset_documents
 * gives the end of the last. No document and no sentence is empty. -1 out of range. */
int64_t wg__dataset_document_start(const wg_dataset *dataset, int64_t document);

/* The token with which a sentence begins; sentence = wg__dataset_sentences gives the end of the
 * last. -1 out of range. */
WG__COMMAND int64_t wg__dataset_sentence_start(const wg_dataset *dataset, int64_t sentence);

/* How often a token occurs; 0 for one outside the vocabulary. -1 with [MEMORY] */
WG__COMMAND int64_t wg__dataset_count(const wg_dataset *dataset, int64_t token);

/* Copies `count` ids from token `first` on into `ids`. [INDEX] */
WG__COMMAND int wg__dataset_read(const wg_dataset *dataset, int64_t first, int64_t count, int32_t *ids);

/* One side of a pair as text, read again from its file; pairs that are asked for in order need one
 * pass. The caller frees it with wg_text_free. Of a token file the text is that of the file whose
 * path was written there. NULL with [INDEX; STATE if that file is gone or has changed; IO, MEMORY]
 */
char *wg__dataset_pair_text(const wg_dataset *dataset, wg_side side, int64_t pair);

/* Two datasets with the same fingerprint are the same to a run (FNV-1a over the ids, of pairs over
 * their lengths, too). 0 with an error. */
int64_t wg__dataset_fingerprint(const wg_dataset *dataset);

/* How many there are; 0 for NULL. */
int64_t wg__dataset_sources(const wg_dataset *dataset);

/* The number of documents up to the end of a source; -1 out of range. */
int64_t wg__dataset_source_end(const wg_dataset *dataset, int64_t source);
const double *wg__dataset_weights(const wg_dataset *dataset);

/* ---- Of data/tokenizer/tokenizer.h ---- */

/* The tokenizer of the characters of a text, in order of code points. U+0000, which a token cannot
 * hold, is written <0x00>. Freed with wg_tokenizer_free.
 * [FORMAT for text that is not UTF-8, or empty] */
WG__COMMAND wg_tokenizer *wg__char_train(const char *text, int64_t length,
                                   const wg_char_training *training);

/* Learns a vocabulary: the 256 bytes, in the order of their characters as in GPT-2's, then merges,
 * then "<|endoftext|>", which vocabulary_size counts. Each merge joins the most frequent pair of
 * neighbours in the parts of the text; of equals the first in order of their tokens. The same text
 * gives the same vocabulary everywhere. Freed with wg_tokenizer_free. [FORMAT for text that is not
 * UTF-8, or empty; ARGUMENT for a vocabulary below 257] */
WG__COMMAND wg_tokenizer *wg__bpe_train(const char *text, int64_t length,
                                  const wg_bpe_training *training);

/* A tokenizer of these tokens in this order; they are copied. Freed with wg_tokenizer_free.
 * [FORMAT for an empty, repeated or non-UTF-8 token, or if [UNK] is missing] */
wg_tokenizer *wg__wordpiece_new(int64_t count, const char *const *tokens,
                                      const wg_wordpiece_options *options);

/* Reads a vocab.txt, one token a line. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT with the line, or if [UNK] is missing] */
WG__COMMAND wg_tokenizer *wg__wordpiece_load(const char *path, const wg_wordpiece_options *options);

/* Writes the vocabulary as a vocab.txt, beside it first and then renamed.
 * [IO; ARGUMENT if it is not a WordPiece tokenizer] */
WG__COMMAND int wg__wordpiece_save(const wg_tokenizer *tokenizer, const char *path);

/* Learns a vocabulary: [PAD] [UNK] [CLS] [SEP] [MASK], then the characters of the text (each as the
 * beginning of a word, and with ## if it occurs within longer words), then merges. Each merge joins
 * the most frequent pair of neighbouring pieces in the words of the text (as byte-pair encoding
 * does, Sennrich et al. 2016); of equals the first in byte order. The same text gives the same
 * vocabulary everywhere. Freed with wg_tokenizer_free. [FORMAT for text that is not UTF-8 or has no
 * words; ARGUMENT for a vocabulary that cannot hold the specials and the characters (of the default
 * alphabet: 1000 of them), saying what size can] */
WG__COMMAND wg_tokenizer *wg__wordpiece_train(const char *text, int64_t length,
                                        const wg_wordpiece_training *training);

/* Learns a vocabulary. <unk>, <s> and </s> have the ids 0, 1 and 2. Of equally frequent pairs the
 * first in byte order is joined; the unigram model is learnt as by Kudo 2018. Freed with
 * wg_tokenizer_free. [FORMAT for text that is not UTF-8, or has no words; ARGUMENT for a vocabulary
 * that cannot hold the characters; MEMORY] */
wg_tokenizer *wg__sentencepiece_train(const char *text, int64_t length,
                                            const wg_sentencepiece_training *training);

/* Writes SentencePiece's tokenizer.model, beside it first and then renamed. [ARGUMENT for a
 * tokenizer that such a file cannot express; IO, MEMORY] */
WG__COMMAND int wg__sentencepiece_save(const wg_tokenizer *tokenizer, const char *path);

#endif
