/* Text as tokens: documents of sentences of token ids, tokenized once.
 *
 *     documents   |0           |1      |2            the first sentence of each
 *     sentences   |0 |5   |9   |14 |20 |31 ...       the first token of each
 *     tokens      the ids in order
 *
 * Three kinds of text are read:
 *
 * Sentences (WG_TEXT_SENTENCES), for masked language models. In plain text, lines are wrapped as in
 * a book, a blank line ends a paragraph, and three or more blank lines end a document; punctuation
 * ends sentences, and a paragraph without letters or digits (a row of stars) is skipped. The second
 * format, BERT's, has one sentence a line and a blank line between documents. In both formats, a
 * line "<|endoftext|>" ends a document, too. A file without any end of a document is cut: plain
 * text at the first end of a paragraph after 64 sentences, or at 128 sentences; the second format
 * at 64.
 *
 * A stream (WG_TEXT_STREAM), for models that predict the next token. The text is kept exactly: line
 * breaks and spaces are tokens. The dataset has no sentences, and its documents count tokens.
 *
 *     file     It was a dark night.
 *              <|endoftext|>
 *              The end.
 *     stream   [begin] It was a dark night. [begin] The end.
 *
 * Lines "<|endoftext|>" separate documents. Every document begins with the tokenizer's begin token
 * (GPT-2's <|endoftext|>, which is begin and end; llama2.c), or, if the tokenizer has only an end
 * token, ends with the end token; then white space around documents is removed. For a tokenizer
 * with neither token only the lines are removed.
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
    WG_SENTENCES_DETECT, /* of each file: by line if nearly all of its lines end like sentences */
    WG_SENTENCES_PLAIN,
    WG_SENTENCES_BY_LINE
} wg_sentence_format;

/* Where the tokens of texts are kept. */
typedef struct wg_token_storage {
    /* The token file. An existing file is used if it was made of the same texts, by their sizes and
     * times, with the same tokenizer; otherwise it is made anew. NULL: an unnamed file in $TMPDIR,
     * else /tmp, which is deleted with the last dataset that uses it. */
    const char *path;

    /* Called with the reason, a line, when an existing file is made anew; may be NULL. */
    void (*note)(void *context, const char *line);
    void *context;
} wg_token_storage;

typedef struct wg_dataset_options {
    wg_dataset_kind kind;
    wg_sentence_format format; /* of sentences */
    /* Of a stream: the part of each text that is read, as shares of its bytes. A cut moves on to
     * the end of a character, and in a text with lines "<|endoftext|>" to the next of these lines.
     * So the parts [0, x) and [x, 1) do not overlap. */
    double begin, end;               /* end 0: 1 */
    const wg_token_storage *storage; /* NULL: a temporary file */
} wg_dataset_options;

/* Reads and tokenizes text files. For pairs each source is followed by its target; a token file
 * replaces both. `options` may be NULL: sentences. The tokenizer may be freed afterwards. Freed
 * with wg_dataset_free. NULL with [NOT_FOUND, IO; FORMAT for text that is not UTF-8, with file and
 * line, a file without words or with an empty part, pairs of different line counts or with an empty
 * line, and a damaged token file; ARGUMENT for shares out of order, a file without its other side,
 * and for a token file of another tokenizer or kind; MEMORY] */
WG_API wg_dataset *wg_dataset_load(int count, const char *const *paths,
                                   const wg_tokenizer *tokenizer,
                                   const wg_dataset_options *options);

/* wg_dataset_load for a text in memory; length -1: up to the first NUL. For pairs `text` is the
 * source and `target` its translation, each ended by a NUL; both must outlive the dataset if BLEU
 * scores translations of it, since BLEU reads the texts again. For other kinds `target` is NULL. */
WG_API wg_dataset *wg_dataset_from_text(const char *text, int64_t length, const char *target,
                                        const wg_tokenizer *tokenizer,
                                        const wg_dataset_options *options);

/* Two datasets of the same files, tokenized once: one for training, and a held-out share. Of a
 * stream the last `share` of each text's bytes is held out; sentences and pairs are split by
 * wg_dataset_split. A token file of a stream must have been made with a share held out. Both are
 * NULL after an error. [as wg_dataset_load and wg_dataset_split] */
WG_API int wg_dataset_load_split(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                                 double share, const wg_dataset_options *options,
                                 wg_dataset **training, wg_dataset **held_out);

/* Splits off documents to hold out of training, without copying tokens: of sentences every n-th
 * document, n = 1 / share, or less for two documents in both parts; of pairs the last `share` of
 * each source, from number (1 - share) N on, rounded down. `dataset` does not change, and both
 * parts have the weights of its sources. [ARGUMENT for a stream; for a share outside (0, 1/2], of
 * pairs (0, 1); for fewer than four documents, or too few pairs] */
WG_API int wg_dataset_split(const wg_dataset *dataset, double share, wg_dataset **training,
                            wg_dataset **held_out);

/* Frees a dataset; NULL is allowed. */
WG_API void wg_dataset_free(wg_dataset *dataset);

/* ---- Contents ---- */

/* The number of tokens, and the size of the vocabulary of the tokenizer. Given NULL: 0. */
WG_API int64_t wg_dataset_tokens(const wg_dataset *dataset);
WG_API int64_t wg_dataset_vocabulary(const wg_dataset *dataset);

typedef enum wg_side { WG_SOURCE, WG_TARGET } wg_side;

/* ---- Sources: the files of a dataset; in pairs each source is two files ---- */

/* Sets the weights of the sources, above 0: the proportions of examples from each source in
 * batches, whatever the sizes of the sources. [ARGUMENT unless each source has one] */
WG_API int wg_dataset_weigh(wg_dataset *dataset, int count, const double *weights);

/* ---- The loss of predicting by word frequency, a baseline for language models ---- */

/* The mean of -log p over `labels` (N; i64 or i32) or, if `labels` is NULL, over the tokens of
 * `text` except the first: p = (c + 1) / (n + V), c being the token's count among the n tokens of
 * `dataset`, V its vocabulary (add-one smoothing). NaN without a token, for NULL, or with [INDEX
 * for tokens outside the vocabulary, DTYPE, MEMORY] */
WG_API double wg_dataset_unigram_loss(const wg_dataset *dataset, const wg_tensor *labels,
                                      const wg_dataset *text);

WG_END_DECLS

#endif
