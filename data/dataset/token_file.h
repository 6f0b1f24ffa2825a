/* Token files: texts that were tokenised once, in an HDF5 file that is read piece by piece. It is
 * written as a checkpoint is (io/checkpoint/checkpoint.h): put in place whole or not at all, and
 * under checksums. h5ls, h5dump and h5py read it.
 *
 *     /tokens      u16, or i32 for a vocabulary above 65536   the ids in order
 *     /sentences   i64   the first token of each, and their number; not of streams
 *     /documents   i64   the first sentence of each (of streams the first token), and their number
 *     /tokenizer   text  the tokenizer as JSON: any file that has one can be given as --tokenizer
 *     /about       text  JSON:
 *         {"format": "wengert tokens", "version": 1,
 *          "sentences": false,                false: a stream
 *          "pairs": false,                    true: the sentences are pairs
 *          "text_format": 0,                  of sentences: a wg_sentence_format
 *          "begin": 0, "cut": 0.9, "end": 1,  the parts of each text, as shares of its bytes
 *          "vocabulary": 4096, "fingerprint": of /tokenizer
 *          "sources": [{"path": "/home/a/books.txt", "bytes": 1000, "modified": ns since 1970,
 *                       "documents": [9, 1], "text_bytes": [890, 100]}]}   of either part
 *
 * The first part of a text is trained on, the second held out. Of pairs the sources are two by two,
 * and the documents are counted at the target. */
#ifndef WG_DATA_DATASET_TOKEN_FILE_H
#define WG_DATA_DATASET_TOKEN_FILE_H

#include "data/dataset/dataset.h"
#include "data/tokenizer/text_file.h"
#include "io/checkpoint/file.h"

/* The rules of tokenising texts. */
typedef struct wg__token_rules {
    wg_dataset_kind kind;
    wg_sentence_format format; /* of sentences */
    double begin, cut, end;    /* of a stream: its parts are [begin, cut) and [cut, end) */
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
    int64_t refcount;
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
    return rules->kind == WG_TEXT_PAIRS ? WG__TOKEN_SIDES : 1;
}

/* Drops a reference; the last one closes the file, or gives up writing. NULL is allowed. */
void wg__token_file_release(wg__token_file *file);

/* ---- Writing ---- */

/* A file that will become `path`; NULL: unnamed, gone when closed. [NOT_FOUND, IO, MEMORY] */
wg__token_file *wg__token_file_create(const char *path, const wg__token_rules *rules,
                                      const wg_tokenizer *tokenizer);

/* Begins a text and its first part. [MEMORY] */
int wg__token_file_begin_source(wg__token_file *file, const char *path, const wg__text_map *text);

/* Adds tokens to the open sentence and document; ends them. Empty ones are not kept, except
 * documents of a stream. `bytes` is the length of the document's text. [IO] */
int wg__token_file_add(wg__token_file *file, int64_t count, const int32_t *ids);
int wg__token_file_end_sentence(wg__token_file *file);
int wg__token_file_end_document(wg__token_file *file, int64_t bytes);

/* Sentences of the document that is open. */
int64_t wg__token_file_open_sentences(const wg__token_file *file);

/* Puts the file in its place, and opens it for reading. [IO, MEMORY] */
int wg__token_file_finish(wg__token_file *file);

/* ---- Reading ---- */

/* Opens a file, and checks everything but the tokens: starts must ascend. NULL with [NOT_FOUND, IO,
 * MEMORY; FORMAT for another or a damaged file] */
wg__token_file *wg__token_file_open(const char *path);

/* Identifies a tokenizer; 0 with [MEMORY]. */
uint64_t wg__tokenizer_fingerprint(const wg_tokenizer *tokenizer);

/* NULL if the file holds the tokens that tokenising these texts now would give, else the reason why
 * it does not, for a message ("the texts are others"). */
const char *wg__token_file_differs(const wg__token_file *file, const wg__token_rules *rules,
                                   const wg_tokenizer *tokenizer, int count,
                                   const char *const *paths);

/* The first sentence of a document (of a stream the first token), and the first token of a
 * sentence; their number gives the end of the last. If the disk fails: the end of all, with an
 * error pending, so that loops end. */
int64_t wg__token_file_document(wg__token_file *file, int64_t document);
int64_t wg__token_file_sentence(wg__token_file *file, int64_t sentence);

/* The text of a source, borrowed; `where` names the caller. [STATE for a text that is gone or has
 * changed; IO] */
wg__text_map *wg__token_file_text(wg__token_file *file, int64_t source, const char *where);

/* Adds the documents of a text, or of the two sides of pairs, by the file's rules, which dataset.h
 * describes. Messages name the texts by `names`. [FORMAT for a text without words, for an empty
 * part of a text, or for texts that are no pairs; as encoding] */
int wg__read_text(wg__token_file *file, const wg_tokenizer *tokenizer, wg__text_map *texts,
                  const char *const *names);

/* The length of the line at `at`, below the text's length, without its end (LF or CR LF); *next is
 * the beginning of the next line. */
int64_t wg__text_line(const wg__text_map *text, int64_t at, int64_t *next);

/* The likely format of sentences: by line if nearly all lines end as sentences do. */
wg_sentence_format wg__detect_sentence_format(wg__text_map *text);

/* The offset just behind the sentence that begins at `start` of a paragraph of UTF-8 text: behind a
 * full stop, question mark, exclamation mark or ellipsis and the quotes and brackets that close
 * after it, if a space follows and then no small letter, and unless the full stop marks an
 * abbreviation (Mr. Bennet, J. Smith, Fig. 3, e.g.). Otherwise `length`. Ideographic full stops,
 * question and exclamation marks need no space, and end no sentence where a comma follows the
 * quotes that close after them. */
int64_t wg__sentence_end(const char *text, int64_t start, int64_t length);

#endif
