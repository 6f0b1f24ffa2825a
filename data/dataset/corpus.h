/* A corpus: documents of sentences of token ids, tokenised once.
 *
 *     documents   |0           |1      |2            sentence where each begins
 *     sentences   |0 |5   |9   |14 |20 |31 ...       token where each begins
 *     tokens      the ids, one after the other (16 bits each if the vocabulary allows)
 *
 * Two formats of text are read. Plain text: lines are wrapped as in a book, a blank line ends a
 * paragraph, three or more blank lines end a document; sentences are found by their punctuation,
 * and a paragraph without letters or digits (a row of stars) is left out. One sentence a line, a
 * blank line between documents: what BERT was trained from. In both, a line "<|endoftext|>" ends a
 * document, too. A file without any such mark is cut: at the first paragraph's end after 64
 * sentences, or at 128; of a sentence a line, at 64.
 *
 * The tokens stand in a token file (tokens.h), whatever the size of the text, and corpora are to be
 * used from one thread at a time. What reads them fails with FORMAT if that file is damaged, and
 * with IO if the disk is. */
#ifndef WG_DATA_DATASET_CORPUS_H
#define WG_DATA_DATASET_CORPUS_H

#include "tokens.h"

WG_BEGIN_DECLS

typedef struct wg_corpus wg_corpus;

typedef enum wg_corpus_format {
    WG_CORPUS_DETECT, /* each file by itself: see wg_corpus_detect */
    WG_CORPUS_PLAIN,
    WG_CORPUS_SENTENCES
} wg_corpus_format;

typedef struct wg_corpus_options {
    wg_corpus_format format;
    const wg_token_storage *storage; /* where the tokens are kept; NULL: in a temporary file */
} wg_corpus_options;

/* Reads, splits and tokenises text files. A document ends at a file's end at the latest. The
 * tokenizer is not kept. Freed with wg_corpus_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, with file and line, a file with no words, or a
 * damaged token file; ARGUMENT for a token file of another tokenizer or of a stream; MEMORY] */
WG_API wg_corpus *wg_corpus_load(int count, const char *const *paths, const wg_tokenizer *tokenizer,
                                 const wg_corpus_options *options);

/* The same from a text in memory; length -1: up to the first NUL. [FORMAT] */
WG_API wg_corpus *wg_corpus_from_text(const char *text, int64_t length,
                                      const wg_tokenizer *tokenizer,
                                      const wg_corpus_options *options);

/* Frees a corpus; NULL is allowed. */
WG_API void wg_corpus_free(wg_corpus *corpus);

/* Splits off every n-th document, n = 1 / fraction, to be held out of training: two new corpora of
 * the remaining and of the held-out documents, each with at least two. `corpus` is as it was. Both
 * are freed with wg_corpus_free. [ARGUMENT for a fraction outside (0, 1/2], or fewer than four
 * documents] */
WG_API int wg_corpus_split(const wg_corpus *corpus, double fraction, wg_corpus **training,
                           wg_corpus **held_out);

/* The sources of a corpus are the files that it was loaded from: how many they are, and with which
 * document each ends (-1 out of range). */
WG_API int64_t wg_corpus_sources(const wg_corpus *corpus);
WG_API int64_t wg_corpus_source_end(const wg_corpus *corpus, int64_t source);

/* Weights, above 0, of the sources: in which proportions batches take from them, whatever their
 * sizes; parts that are split off later have them, too. And that of one, 0 if there are none.
 * [ARGUMENT unless there are as many as sources] */
WG_API int wg_corpus_weigh(wg_corpus *corpus, int count, const double *weights);
WG_API double wg_corpus_source_weight(const wg_corpus *corpus, int64_t source);

/* How many there are. Given NULL: 0. */
WG_API int64_t wg_corpus_documents(const wg_corpus *corpus);
WG_API int64_t wg_corpus_sentences(const wg_corpus *corpus);
WG_API int64_t wg_corpus_tokens(const wg_corpus *corpus);

/* The size of the vocabulary that it was tokenised with. */
WG_API int64_t wg_corpus_vocabulary(const wg_corpus *corpus);

/* The sentence with which a document begins; document = wg_corpus_documents gives the end of the
 * last. No document and no sentence is empty. -1 out of range. */
WG_API int64_t wg_corpus_document_start(const wg_corpus *corpus, int64_t document);

/* The token with which a sentence begins; sentence = wg_corpus_sentences gives the end of the last.
 * -1 out of range. */
WG_API int64_t wg_corpus_sentence_start(const wg_corpus *corpus, int64_t sentence);

/* Two corpora with the same fingerprint are the same to a run (FNV-1a over the ids). 0 with an
 * error. */
WG_API int64_t wg_corpus_fingerprint(const wg_corpus *corpus);

/* Copies `count` ids from token `first` on into `ids`. [INDEX] */
WG_API int wg_corpus_read(const wg_corpus *corpus, int64_t first, int64_t count, int32_t *ids);

/* The format that a text looks to be in: one sentence a line if nearly all of its lines end as
 * sentences do, plain otherwise. Never WG_CORPUS_DETECT. */
WG_API wg_corpus_format wg_corpus_detect(const char *text, int64_t length);

/* ---- Predicting by word frequency: what a language model has to beat ---- */

/* The mean over `labels` (N) of -log p(label), p = (c + 1) / (n + V): c the label's count among the
 * n tokens of the corpus, V its vocabulary (add-one smoothing). NaN for no labels.
 * [NaN with INDEX, DTYPE] */
WG_API double wg_corpus_unigram_loss(const wg_corpus *corpus, const wg_tensor *labels);

WG_END_DECLS

#endif
