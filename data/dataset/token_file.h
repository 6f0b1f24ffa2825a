/* Token files: texts that were tokenised once, in an HDF5 file of which only what is looked at is
 * in memory. A checkpoint (io/checkpoint/checkpoint.h) by its making: put in place whole or not at all, and
 * under checksums. h5ls, h5dump and h5py read it.
 *
 *     /tokens      u16, or i32 for a vocabulary above 65536   the ids, one after the other
 *     /sentences   i64   the token where each begins, and their number; of sentences only
 *     /documents   i64   the sentence, or of streams the token, where each begins, and their number
 *     /tokenizer   text  the tokenizer as JSON: any file that has one can be given as --tokenizer
 *     /about       text  JSON:
 *         {"format": "wengert tokens", "version": 1,
 *          "sentences": false,                what /documents counts, and by which rules texts were
 *          "pairs": false,                    read: those of token_stream.h; of corpus.h; or of
 *          "text_format": 0,                  sentence_pairs.h, whose documents have two sentences
 *          "begin": 0, "cut": 0.9, "end": 1,  the parts of each text, as shares of its bytes
 *          "vocabulary": 4096, "fingerprint": of /tokenizer
 *          "sources": [{"path": "/home/a/books.txt", "bytes": 1000, "modified": ns since 1970,
 *                       "documents": [9, 1], "text_bytes": [890, 100]}]}   of either part
 *
 * The first part of a text is what is trained on, the second what is held out. Of pairs the sources
 * are two by two, and the documents stand with the target. */
#ifndef WG_DATA_DATASET_TOKEN_FILE_H
#define WG_DATA_DATASET_TOKEN_FILE_H

#include "data/dataset/mmap.h"
#include "data/dataset/tokens.h"
#include "io/checkpoint/column.h"

/* By which rules texts become tokens. */
typedef struct wg__token_rules {
    bool sentences;         /* corpus.h's, else token_stream.h's */
    bool pairs;             /* of sentences: sentence_pairs.h's, two to a document */
    int format;             /* of a corpus: a wg_corpus_format */
    double begin, cut, end; /* of a stream: its parts are [begin, cut) and [cut, end) */
} wg__token_rules;

enum { WG__TOKEN_PARTS = 2, WG__TOKEN_SIDES = 2 };

typedef struct wg__token_source {
    char *path;
    int64_t bytes, modified;             /* of the text; modified 0: it was in memory */
    int64_t documents[WG__TOKEN_PARTS];  /* how many each part has */
    int64_t text_bytes[WG__TOKEN_PARTS]; /* what their tokens stand for */
    wg__text_map text;                   /* of pairs, once it is asked for; no bytes before */
} wg__token_source;

/* Being written, up to wg__token_file_finish, or being read. */
typedef struct wg__token_file {
    int64_t references;
    wg_checkpoint *file;
    wg__column *tokens, *sentences, *documents; /* sentences: NULL of a stream */
    wg__token_rules rules;
    int64_t vocabulary;
    uint64_t fingerprint; /* of the tokenizer */
    int64_t token_count, sentence_count, document_count;
    int64_t source_count, source_capacity;
    wg__token_source *sources;
    int part;                   /* that is being written */
    int64_t sentence, document; /* of a file that is written: where the open ones begin */
} wg__token_file;

/* The texts that are read together: the sides of a pair, or one. */
static inline int wg__token_rules_sides(const wg__token_rules *rules) {
    return rules->pairs ? WG__TOKEN_SIDES : 1;
}

void wg__token_file_hold(wg__token_file *file);

/* Gives one reference back; the last one closes the file, or gives up writing. NULL is allowed. */
void wg__token_file_release(wg__token_file *file);

/* ---- Writing ---- */

/* A file that will become `path`; NULL: one without a name, which goes when it is closed.
 * [NOT_FOUND, IO, MEMORY] */
wg__token_file *wg__token_file_create(const char *path, const wg__token_rules *rules,
                                      const wg_tokenizer *tokenizer);

/* What follows is of this text, and of its first part. [MEMORY] */
int wg__token_file_begin_source(wg__token_file *file, const char *path, const wg__text_map *text);

/* Adds tokens to the open sentence and document; ends them. None is kept that is empty, but for
 * documents of a stream. `bytes` of text are those that the document's tokens stand for. [IO] */
int wg__token_file_add(wg__token_file *file, int64_t count, const int32_t *ids);
int wg__token_file_end_sentence(wg__token_file *file);
int wg__token_file_end_document(wg__token_file *file, int64_t bytes);

/* Sentences of the document that is open. */
int64_t wg__token_file_open_sentences(const wg__token_file *file);

/* Puts the file in its place, and makes it one to read. [IO, MEMORY] */
int wg__token_file_finish(wg__token_file *file);

/* ---- Reading ---- */

/* Opens a file, and looks through all but the tokens, so that starts are in order. NULL with
 * [NOT_FOUND, IO, MEMORY; FORMAT for what is no token file, or is damaged] */
wg__token_file *wg__token_file_open(const char *path);

/* What identifies a tokenizer; 0 with [MEMORY]. */
uint64_t wg__tokenizer_fingerprint(const wg_tokenizer *tokenizer);

/* Where a document, a sentence or a token's document begins: the index in the next finer row; the
 * number of them gives the end of the last. Should the disk fail, which was looked through before,
 * the end of all, with an error pending: loops come to an end. */
int64_t wg__token_file_document(wg__token_file *file, int64_t document);
int64_t wg__token_file_sentence(wg__token_file *file, int64_t sentence);

/* The text of a source, as long as the file is held; `where` names the caller. NULL with [STATE for
 * one that is gone, or has changed since; IO] */
wg__text_map *wg__token_file_text(wg__token_file *file, int64_t source, const char *where);

#endif
