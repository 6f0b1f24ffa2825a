/* A corpus whose k-th token is the word "wk", so that each token of a batch shows its position in
 * the corpus; and helpers of tests of batches and tokenizers. */
#ifndef WG_TESTS_WORD_CORPUS_H
#define WG_TESTS_WORD_CORPUS_H

#include "data/dataset/dataset.h"
#include "data/tokenizer/tokenizer.h"

/* The ids of the special tokens; those of the words follow. */
enum { PAD, UNK, CLS, SEP, MASK, SPECIALS };

typedef struct word_corpus {
    wg_tokenizer *tokenizer;
    wg_dataset *corpus;
    int64_t words;
} word_corpus;

/* `documents` documents of `sentences` sentences, of 1 to `longest` words in turn. */
word_corpus word_corpus_of(int documents, int sentences, int longest);
void word_corpus_free(word_corpus w);

/* A WordPiece tokenizer of the special tokens and the words `letter` first, first + 1, ... */
wg_tokenizer *words_tokenizer(const char *letter, int64_t first, int64_t count);

/* Copies the tokens of one side of a pair into `ids`, unless it is NULL; returns their number. */
int64_t side_of_pair(const wg_dataset *pairs, wg_side side, int64_t pair, int32_t *ids);

/* Fails unless `count` of `total` is plausible for events of probability `share`. */
void assert_share(int64_t count, int64_t total, double share);

/* Datasets of files, which are freed when the test ends; NULL with an error. Those of load_kept
 * have their tokens in the file `kept`; the last note that loading gives is in `noted`. */
wg_dataset *load_as(wg_dataset_kind kind, int count, const char *const *paths,
                    const wg_tokenizer *tokenizer);
wg_dataset *load_kept(wg_dataset_kind kind, int count, const char *const *paths, const char *kept,
                      const wg_tokenizer *tokenizer);
extern char noted[600];

/* Fails the test if a dataset cannot be split; both parts are freed when the test ends. */
void split_dataset(const wg_dataset *all, double share, wg_dataset **training,
                   wg_dataset **held_out);

/* The number of a file, which another one that takes its place has not. */
uint64_t file_number(const char *path);

/* FNV-1a over the elements of i64 and bool tensors, one after the other. */
uint64_t hash_of_tensors(int count, wg_tensor *const *tensors);

/* ---- Tokenizers ---- */

/* The tokens of a text, joined by blanks, in a static buffer. Fails the test if there is an error.
 */
const char *tokens_of(const wg_tokenizer *tokenizer, const char *text,
                      const wg_encode_options *options);

/* The tokenizer as JSON, and the text of tokens: freed when the test ends. */
char *json_of(const wg_tokenizer *tokenizer);
char *text_of_ids(const wg_tokenizer *tokenizer, int64_t count, const int32_t *ids,
                  const wg_decode_options *options);

/* Fails unless a text comes back from its tokens. */
void assert_comes_back(const wg_tokenizer *tokenizer, const char *text,
                       const wg_encode_options *options);

/* Fails the test unless both have the same tokens, the special ones for the same purposes. */
void assert_same_tokenizer(const wg_tokenizer *a, const wg_tokenizer *b);

#endif
