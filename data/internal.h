/* Internal functions of data/ for other parts of the library and for the command. */
#ifndef WG_DATA_INTERNAL_H
#define WG_DATA_INTERNAL_H

#include "base/internal.h"
#include "data/batches/batches.h"
#include "data/dataset/dataset.h"
#include "data/tokenizer/tokenizer.h"

/* ---- Of data/batches/batches.h ---- */

/* wg_batches_next with two options. `ends_with_epoch`: the last batch of an epoch ends with the
 * epoch and may have fewer examples, so that evaluation measures each example once. `batch` NULL:
 * skips a batch that belongs to another rank, without building it. */
int wg__batches_advance(wg_batches *batches, bool ends_with_epoch, void *batch);

/* The number of examples in the current epoch; 0 for NULL. */
int64_t wg__batches_examples(const wg_batches *batches);

/* The position of the next batch, with the seed; and moving there. A seek that fails changes
 * nothing. [ARGUMENT for a position that no run of these examples has] */
wg_data_position wg__batches_position(const wg_batches *batches);
int wg__batches_seek(wg_batches *batches, const wg_data_position *position);

/* ---- Helpers of the functions that build batches of text. batches.c ---- */

/* Replaces zeros by the defaults, batches of 32 and sequences of 128 tokens, and checks both;
 * `sequence` may be NULL. [ARGUMENT for empty batches, or sequences of fewer than 8 tokens] */
int wg__batch_sizes(const char *where, int64_t *batch, int64_t *sequence);

/* [ARGUMENT unless the text was tokenized with a vocabulary of this size] */
int wg__batch_vocabulary(const char *where, const wg_dataset *text, int64_t size);

/* An integer from low to high, both included. */
int64_t wg__random_between(wg_generator *generator, int64_t low, int64_t high);

/* Writes ends[s] = examples for each source s that ends at or before `documents`. To be called with
 * ascending numbers of documents, and *source 0 at first. `ends` may be NULL. */
void wg__note_source_ends(const wg_dataset *text, int64_t documents, int64_t examples,
                          int64_t *source, int64_t *ends);

/* Fills order[0 .. count - 1] with an epoch of weighted sources, in ascending order. */
void wg__weigh_examples(const wg_batches_options *options, const int64_t *ends, int64_t count,
                        wg_generator *generator, int64_t *order);

/* Windows of a text. Each epoch draws an offset below `length`; windows of `length` tokens follow
 * each other from there. */
typedef struct wg__windows {
    const wg_dataset *text;
    int64_t length;
    int64_t offset;  /* of the last planned epoch */
    int64_t *starts; /* (batch) the first token of each */
} wg__windows;

/* [ARGUMENT for a text of fewer than length + 1 tokens; MEMORY] */
int wg__windows_begin(wg__windows *windows, const char *where, const wg_dataset *text,
                      int64_t length, int64_t batch);

/* Batches of windows, weighted as the text. `source` has `build` and `free`; its context is the
 * struct that begins with `windows`. */
wg_batches *wg__window_batches_new(wg__windows *windows, wg_batch_source source, int64_t batch,
                                   uint64_t seed);

/* The first token of a document of a text of any kind. */
int64_t wg__document_token(const wg_dataset *text, int64_t document);

/* Sets the options' sources and weights, borrowed from the text. */
void wg__use_weights(const wg_dataset *text, wg_batches_options *options);

/* The number of batches in this epoch, if the last one ends with the epoch. */
int64_t wg__batches_in_epoch(const wg_batches *batches);

/* wg_batches_restore; `what` names the data in the message for another fingerprint. */
int wg__batches_restore(wg_batches *batches, wg_checkpoint *file, int64_t fingerprint,
                        const char *where, const char *what);

/* The context of the source. */
void *wg__batches_context(const wg_batches *batches);

/* ---- One or two texts as a sequence for BERT   (Devlin et al. 2019, figure 2). pair_batch.c ----
 *
 *     input_ids        [CLS] it 's a charm [SEP]  and  often moving [SEP] [PAD] [PAD]
 *     token_type_ids     0   0  0 0   0      0     1    1     1      1     0     0
 *     attention_mask     1   1  1 1   1      1     1    1     1      1     0     0
 *
 * A pair that is too long loses tokens at the end of its longer text, or of the second if both are
 * equal, one by one, as in BERT's published code. A batch is as long as its longest sequence. */

/* The tokens of a single text or a pair; borrowed. */
typedef struct wg_token_pair {
    const int32_t *first, *second; /* second NULL: a single text */
    int64_t first_count, second_count;
} wg_token_pair;

/* The pair cut to `room` tokens. */
wg_token_pair wg__token_pair_cut(const wg_token_pair *pair, int64_t room);

/* B sequences of T tokens. Owned by the scope that was open. */
typedef struct wg_pair_batch {
    wg_tensor *input_ids;      /* (B, T) i64 */
    wg_tensor *token_type_ids; /* (B, T) i64: 1 for the second text and its [SEP]; NULL: all 0 */
    wg_tensor *attention_mask; /* (B, T) bool: false for padding; NULL: no padding */
    int64_t tokens;            /* without the padding */
} wg_pair_batch;

/* The special tokens around texts, and the longest sequence. */
typedef struct wg_pair_frame {
    int32_t pad_id, class_id, separator_id;
    int doubled; /* separators between two texts: 1: two, as in RoBERTa (<s> a </s></s> b </s>);
                  * 0: one */
    int64_t sequence;
} wg_pair_frame;

/* 1 for RoBERTa's tokenizers, whose class token is <s>; 0 for others. */
int wg__doubles_separators(const wg_tokenizer *tokenizer);

/* The frame for a tokenizer. [ARGUMENT without [CLS], [SEP] or [PAD], or for a sequence of
 * fewer than 8 tokens] */
WG__COMMAND int wg__pair_frame_of(const wg_tokenizer *tokenizer, int64_t sequence,
                                  wg_pair_frame *frame);

/* Fills `batch` with at least one pair. [scope; MEMORY] */
WG__COMMAND int wg__pair_batch_make(const wg_pair_frame *frame, int64_t count,
                                    const wg_token_pair *pairs, wg_pair_batch *batch);

/* Continues the FNV-1a hash `hash` with the tokens of a pair. */
uint64_t wg__pair_fingerprint(uint64_t hash, const wg_token_pair *pair);

/* ---- Of data/dataset/dataset.h ---- */

/* True for an HDF5 file, and so for token files, but not for text. False with [IO] if a read
 * failed. */
WG__COMMAND bool wg__dataset_is_token_file(const char *path);

/* 0 for NULL. Bytes count the text before it was tokenized (0 for a part that was split off). */
WG__COMMAND int64_t wg__dataset_documents(const wg_dataset *dataset);
WG__COMMAND int64_t wg__dataset_sentences(const wg_dataset *dataset);
int64_t wg__dataset_bytes(const wg_dataset *dataset);

/* The first sentence of a document, or its first token in a stream; document =
 * wg__dataset_documents gives the end of the last. No document or sentence is empty. -1 out of
 * range. */
int64_t wg__dataset_document_start(const wg_dataset *dataset, int64_t document);

/* The first token of a sentence; sentence = wg__dataset_sentences gives the end of the last. -1 out
 * of range. */
WG__COMMAND int64_t wg__dataset_sentence_start(const wg_dataset *dataset, int64_t sentence);

/* How often a token occurs; 0 for one outside the vocabulary. -1 with [MEMORY] */
WG__COMMAND int64_t wg__dataset_count(const wg_dataset *dataset, int64_t token);

/* Copies the ids of tokens first .. first + count - 1. [INDEX] */
WG__COMMAND int wg__dataset_read(const wg_dataset *dataset, int64_t first, int64_t count,
                                 int32_t *ids);

/* The text of a sentence of a pair, read again from the text file; a token file has its path.
 * Reading pairs in order takes one pass. Freed with wg_text_free. NULL with [INDEX; STATE if the
 * file is gone or has changed; IO, MEMORY] */
char *wg__dataset_pair_text(const wg_dataset *dataset, wg_side side, int64_t pair);

/* Identifies the tokens of a dataset: FNV-1a over the ids, and over the lengths of pairs. 0 with an
 * error. */
int64_t wg__dataset_fingerprint(const wg_dataset *dataset);

/* The number of sources; 0 for NULL. */
int64_t wg__dataset_sources(const wg_dataset *dataset);

/* The number of documents up to the end of a source; -1 out of range. */
int64_t wg__dataset_source_end(const wg_dataset *dataset, int64_t source);

/* The weight of each source, borrowed; NULL: no weights. */
const double *wg__dataset_weights(const wg_dataset *dataset);

/* ---- Checking a training text: repetitions, overlap with the held-out text, encoding, and the
 * lengths of its lines and documents. corpus_check.c ----
 *
 * Lines are compared without the blanks at their ends; blank lines are skipped. Documents end at
 * lines "<|endoftext|>", or, in a file without these lines, at three blank lines, or, in a file
 * without three blank lines, at each blank line. Files are read as streams; a hash of 64 bits for
 * each distinct line and document takes 16 to 32 bytes of memory. */

typedef enum wg_corpus_fault {
    WG_CORPUS_INVALID,     /* bytes that are not UTF-8 */
    WG_CORPUS_BOM,         /* U+FEFF */
    WG_CORPUS_CRLF,        /* lines that end in CR LF */
    WG_CORPUS_NUL,         /* U+0000 */
    WG_CORPUS_REPLACEMENT, /* U+FFFD, the mark of a failed decoding */
    WG_CORPUS_CONTROL,     /* other control characters, except tab and line breaks */
    WG_CORPUS_FAULT_COUNT
} wg_corpus_fault;

/* The number of occurrences, and the first one. */
typedef struct wg_corpus_finding {
    int64_t count;
    int file;     /* index of the path; 0 for the held-out text */
    int64_t line; /* from 1 on; 0: nowhere */
} wg_corpus_finding;

/* Lengths in characters; median and 95 % to within 0.1 % where they are above 2047. */
typedef struct wg_corpus_lengths {
    int64_t count, median, most; /* `most`: 95 % are as long or shorter */
    int64_t longest;
    int file;     /* of the longest */
    int64_t line; /* where the longest begins */
} wg_corpus_lengths;

typedef struct wg_corpus_report {
    int64_t bytes, characters;
    wg_corpus_lengths lines, documents; /* that are not blank */
    wg_corpus_finding repeated_lines, repeated_documents;
    int64_t repeated_characters; /* of the repeated lines */
    wg_corpus_finding faults[WG_CORPUS_FAULT_COUNT];
    int64_t held_out_lines, held_out_characters; /* 0: no held-out text */

    wg_corpus_finding overlap;  /* held-out lines that are in the text, too */
    int64_t overlap_characters; /* of these lines */
    int64_t words;              /* between white space; each ideograph is one */
    int64_t tokens, unknown;    /* 0 without a tokenizer */
} wg_corpus_report;

typedef struct wg_corpus_check_options {
    const char *held_out;          /* path of the held-out text; NULL: none */
    const wg_tokenizer *tokenizer; /* NULL: tokens are not counted */
} wg_corpus_check_options;

/* Reads text files and fills in `report`. [NOT_FOUND, IO; FORMAT for files without text; MEMORY] */
WG__COMMAND int wg__corpus_check(int count, const char *const *paths,
                                 const wg_corpus_check_options *options, wg_corpus_report *report);

/* ---- Of data/tokenizer/tokenizer.h ---- */

/* wg_char_train_files, wg_bpe_train_files, wg_wordpiece_train_files and
 * wg_sentencepiece_train_files for a text in memory; length -1: up to the first NUL. */
WG__COMMAND wg_tokenizer *wg__char_train(const char *text, int64_t length,
                                         const wg_char_training *training);
WG__COMMAND wg_tokenizer *wg__bpe_train(const char *text, int64_t length,
                                        const wg_bpe_training *training);
WG__COMMAND wg_tokenizer *wg__wordpiece_train(const char *text, int64_t length,
                                              const wg_wordpiece_training *training);
wg_tokenizer *wg__sentencepiece_train(const char *text, int64_t length,
                                      const wg_sentencepiece_training *training);

/* A WordPiece tokenizer of these tokens, which are copied. Freed with wg_tokenizer_free.
 * [FORMAT for an empty, repeated or non-UTF-8 token, or if [UNK] is missing] */
wg_tokenizer *wg__wordpiece_new(int64_t count, const char *const *tokens,
                                const wg_wordpiece_options *options);

/* Reads a vocab.txt, one token a line. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT with the line, or if [UNK] is missing] */
WG__COMMAND wg_tokenizer *wg__wordpiece_load(const char *path, const wg_wordpiece_options *options);

/* Writes the vocabulary as a vocab.txt: a temporary file, which is then renamed. [IO; ARGUMENT if
 * it is not a WordPiece tokenizer] */
WG__COMMAND int wg__wordpiece_save(const wg_tokenizer *tokenizer, const char *path);

/* Writes SentencePiece's tokenizer.model: a temporary file, which is then renamed. [ARGUMENT for
 * another kind of tokenizer, or for settings that a tokenizer.model does not have; IO, MEMORY] */
WG__COMMAND int wg__sentencepiece_save(const wg_tokenizer *tokenizer, const char *path);

#endif
