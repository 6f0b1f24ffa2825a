/* Text as tokens: documents of sentences of token ids, tokenised once.
 *
 *     documents   |0           |1      |2            the first sentence of each
 *     sentences   |0 |5   |9   |14 |20 |31 ...       the first token of each
 *     tokens      the ids in order
 *
 * Three kinds of text are read:
 *
 * Sentences (WG_TEXT_SENTENCES), for models that mask. In plain text lines are wrapped as in a
 * book, a blank line ends a paragraph, three or more blank lines end a document; sentences are
 * found by their punctuation, and a paragraph without letters or digits (a row of stars) is left
 * out. The second format, which BERT was trained from, has one sentence a line and a blank line
 * between documents. In both, a line "<|endoftext|>" ends a document, too. A file without any mark
 * is cut: at the first paragraph's end after 64 sentences, or at 128; of a sentence a line, at 64.
 *
 * A stream (WG_TEXT_STREAM), for models that predict the next token. The text is kept exactly: line
 * breaks and spaces are tokens. The dataset has no sentences, and its documents count tokens.
 *
 *     file     It was a dark night.
 *              <|endoftext|>
 *              The end.
 *     stream   [begin] It was a dark night. [begin] The end.
 *
 * Lines "<|endoftext|>" separate documents. Every document begins with the tokenizer's token for
 * the begin of a text (GPT-2's <|endoftext|>, which is begin and end; llama2.c), or ends with its
 * token for the end alone; then white space around documents is removed. For a tokenizer with
 * neither token only the lines are removed.
 *
 * Pairs (WG_TEXT_PAIRS), for translation: two files, line by line. Each line is a sentence; a last
 * one without line break counts. A document is a pair, of two sentences.
 *
 *     train.de                     train.en
 *     Ein Hund läuft.              A dog runs.             document 0, sentences 0 and 1
 *     Zwei Katzen schlafen.        Two cats are asleep.    document 1, sentences 2 and 3
 *
 * The tokens are in a token file (an HDF5 file, described in docs/training.md), which is read piece
 * by piece. A token file can be given wherever a text can; its tokenizer must be the given one. A
 * dataset is used from one thread at a time. Its functions fail with FORMAT if the token file is
 * damaged, and with IO if the disk fails. */
#ifndef WG_DATA_DATASET_DATASET_H
#define WG_DATA_DATASET_DATASET_H

#include "../tokenizer/tokenizer.h"

WG_BEGIN_DECLS

typedef struct wg_dataset wg_dataset;

typedef enum wg_dataset_kind { WG_TEXT_SENTENCES, WG_TEXT_STREAM, WG_TEXT_PAIRS } wg_dataset_kind;

/* Formats of WG_TEXT_SENTENCES. */
typedef enum wg_sentence_format {
    WG_SENTENCES_DETECT, /* of each file: one a line if nearly all of its lines end as sentences do
                          */
    WG_SENTENCES_PLAIN,
    WG_SENTENCES_BY_LINE
} wg_sentence_format;

/* Where the tokens of texts are kept. */
typedef struct wg_token_storage {
    /* The token file. One that exists is used if it was made of the same texts, by their sizes and
     * times, with the same tokenizer, and is made anew if not. NULL: a file without a name in
     * $TMPDIR, else /tmp, which disappears with the last dataset that uses it. */
    const char *path;

    /* Called with the reason, a line, when an existing file is made anew; may be NULL. */
    void (*note)(void *context, const char *line);
    void *context;
} wg_token_storage;

typedef struct wg_dataset_options {
    wg_dataset_kind kind;
    wg_sentence_format format; /* of sentences */
    /* Of a stream: the part of each text that is read, as shares of its bytes. A cut is moved on to
     * the end of a character, and in a text with lines "<|endoftext|>" to the next of these, so
     * that the parts [0, x) and [x, 1) have nothing in common. */
    double begin, end;               /* end 0: 1 */
    const wg_token_storage *storage; /* NULL: a temporary file */
} wg_dataset_options;

/* Reads and tokenises text files; of pairs each source with its target behind it, or one token file
 * in place of the two. `options` may be NULL: sentences. The tokenizer is not kept. Freed with
 * wg_dataset_free. NULL with [NOT_FOUND, IO; FORMAT for text that is not UTF-8, with file and line,
 * a file without words or with an empty part, pairs of different line counts or with an empty
 * line, and a damaged token file; ARGUMENT for shares out of order, a file without its other side,
 * and for a token file of another tokenizer or kind; MEMORY] */
WG_API wg_dataset *wg_dataset_load(int count, const char *const *paths,
                                   const wg_tokenizer *tokenizer,
                                   const wg_dataset_options *options);

/* The same from a text in memory; length -1: up to the first NUL. Of pairs `text` is the source and
 * `target` its translation, each ended by a NUL; both must outlive the dataset if it is used to
 * score translations by BLEU, which reads them again. Of other kinds `target` is NULL. */
WG_API wg_dataset *wg_dataset_from_text(const char *text, int64_t length, const char *target,
                                        const wg_tokenizer *tokenizer,
                                        const wg_dataset_options *options);

/* Two datasets of the same files, tokenised once: the one to train on, and a share that is held out
 * of it: of a stream the last `share` of each text's bytes, of sentences and pairs as
 * wg_dataset_split has it. A token file of a stream that is among the paths must have been made
 * with a share held out. Both are NULL after an error. [as wg_dataset_load and wg_dataset_split] */
WG_API int wg_dataset_load_split(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                                 double share, const wg_dataset_options *options,
                                 wg_dataset **training, wg_dataset **held_out);

/* Splits documents off, to be held out of training, without copying tokens: of sentences every n-th
 * document, n = 1 / share, so that both parts have at least two; of pairs the last `share` of each
 * source, from number (1 - share) N on, rounded down. `dataset` does not change, and both parts
 * have its sources' weights. [ARGUMENT for a stream; for a share outside (0, 1/2], of pairs (0, 1);
 * for fewer than four documents, or too few pairs] */
WG_API int wg_dataset_split(const wg_dataset *dataset, double share, wg_dataset **training,
                            wg_dataset **held_out);

/* Frees a dataset; NULL is allowed. */
WG_API void wg_dataset_free(wg_dataset *dataset);

/* ---- Contents ---- */

/* The number of tokens, and the size of the vocabulary of the tokenizer. Given NULL: 0. */
WG_API int64_t wg_dataset_tokens(const wg_dataset *dataset);
WG_API int64_t wg_dataset_vocabulary(const wg_dataset *dataset);

typedef enum wg_side { WG_SOURCE, WG_TARGET } wg_side;

/* ---- Sources: the files, or two files, that a dataset was loaded from ---- */

/* Weights, above 0, of the sources: the proportions in which batches take from them, whatever their
 * sizes. [ARGUMENT unless each source has one] */
WG_API int wg_dataset_weigh(wg_dataset *dataset, int count, const double *weights);

/* ---- The loss of predicting by word frequency, which a language model has to beat ---- */

/* The mean of -log p over `labels` (N; i64 or i32) or, where `labels` is NULL, over the tokens of
 * `text` but the first: p = (c + 1) / (n + V), c being the token's count among the n tokens of
 * `dataset`, V its vocabulary (add-one smoothing). NaN without a token, for NULL, or with [INDEX
 * for tokens outside the vocabulary, DTYPE, MEMORY] */
WG_API double wg_dataset_unigram_loss(const wg_dataset *dataset, const wg_tensor *labels,
                                      const wg_dataset *text);

WG_END_DECLS

#endif
