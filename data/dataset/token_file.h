/* Token files: HDF5 files with the tokens of texts, which are read piece by piece. They are written
 * like checkpoints (io/checkpoint/checkpoint.h): atomically and with checksums. h5ls, h5dump and
 * h5py read them.
 *
 *     /tokens      u16, or i32 for a vocabulary above 65536   the ids in order
 *     /sentences   i64   the first token of each, then the number of tokens; not in streams
 *     /documents   i64   the same for documents, in sentences; in streams in tokens
 *     /tokenizer   text  the tokenizer as JSON; --tokenizer reads it from any file that has one
 *     /about       text  JSON:
 *         {"format": "wengert tokens", "version": 1,
 *          "sentences": false,                false: a stream
 *          "pairs": false,                    true: the sentences are pairs
 *          "text_format": 0,                  a wg_sentence_format
 *          "begin": 0, "cut": 0.9, "end": 1,  the parts of each text, as shares of its bytes
 *          "vocabulary": 4096, "fingerprint": of /tokenizer
 *          "sources": [{"path": "/home/a/books.txt", "bytes": 1000, "modified": ns since 1970,
 *                       "documents": [9, 1], "text_bytes": [890, 100]}]}   of each part
 *
 * The first part of a text is for training, the second is held out. A pair has two sources, the
 * source text and the target; the target has the number of documents. */
#ifndef WG_DATA_DATASET_TOKEN_FILE_H
#define WG_DATA_DATASET_TOKEN_FILE_H

#include "data/dataset/dataset.h"
#include "data/tokenizer/text_file.h"
#include "io/checkpoint/file.h"

/* How texts are tokenized. */
typedef struct wg__token_rules {
    wg_dataset_kind kind;
    wg_sentence_format format; /* of sentences */
    double begin, cut, end;    /* of a stream: its parts are [begin, cut) and [cut, end) */
} wg__token_rules;

enum { WG__TOKEN_PARTS = 2, WG__TOKEN_SIDES = 2 };

typedef struct wg__token_source {
    char *path;
    int64_t bytes, modified;             /* of the text; modified 0: it was in memory */
    int64_t documents[WG__TOKEN_PARTS];  /* the number of documents of each part */
    int64_t text_bytes[WG__TOKEN_PARTS]; /* the length of the text of each part */
    wg__text_map text;                   /* of pairs: mapped when it is first read */
} wg__token_source;

/* A file is written up to wg__token_file_finish, and read afterwards. */
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
    int part;         /* being written */
    int64_t sentence; /* writing: the first token of the open sentence */
    int64_t document; /* writing: the first sentence (in a stream token) of the open document */
} wg__token_file;

/* The number of texts that are read together: 2 for pairs, else 1. */
static inline int wg__token_rules_sides(const wg__token_rules *rules) {
    return rules->kind == WG_TEXT_PAIRS ? WG__TOKEN_SIDES : 1;
}

/* Drops a reference; the last one closes the file, and discards an unfinished one. `file` may be
 * NULL. */
void wg__token_file_release(wg__token_file *file);

/* ---- Writing ---- */

/* Creates a file, which wg__token_file_finish renames to `path`; NULL: an unnamed temporary file.
 * [NOT_FOUND, IO, MEMORY] */
wg__token_file *wg__token_file_create(const char *path, const wg__token_rules *rules,
                                      const wg_tokenizer *tokenizer);

/* Begins a text and its first part. [MEMORY] */
int wg__token_file_begin_source(wg__token_file *file, const char *path, const wg__text_map *text);

/* Adds tokens to the open sentence and document; ends a sentence; ends a document. Empty sentences,
 * and documents without sentences, are dropped. `bytes` is the length of its text. [IO] */
int wg__token_file_add(wg__token_file *file, int64_t count, const int32_t *ids);
int wg__token_file_end_sentence(wg__token_file *file);
int wg__token_file_end_document(wg__token_file *file, int64_t bytes);

/* Renames the file to its path, and opens it for reading. [IO, MEMORY] */
int wg__token_file_finish(wg__token_file *file);

/* ---- Reading ---- */

/* Opens a file, and checks everything but the tokens: starts must ascend. NULL with [NOT_FOUND, IO,
 * MEMORY; FORMAT for another or a damaged file] */
wg__token_file *wg__token_file_open(const char *path);

/* Identifies a tokenizer; 0 with [MEMORY]. */
uint64_t wg__tokenizer_fingerprint(const wg_tokenizer *tokenizer);

/* NULL if the file was made of these texts by these rules, else the reason for a message ("the
 * texts are others"). */
const char *wg__token_file_differs(const wg__token_file *file, const wg__token_rules *rules,
                                   const wg_tokenizer *tokenizer, int count,
                                   const char *const *paths);

/* The first sentence of a document (in a stream the first token), and the first token of a
 * sentence; index = count gives the end of the last one. After a failed read, with an error
 * pending: the end of all, so that loops end. */
int64_t wg__token_file_document(wg__token_file *file, int64_t document);
int64_t wg__token_file_sentence(wg__token_file *file, int64_t sentence);

/* The text of a source, borrowed; `where` names the caller. [STATE if the text file is gone or has
 * changed; IO] */
wg__text_map *wg__token_file_text(wg__token_file *file, int64_t source, const char *where);

/* Adds the documents of a text, or of the two sides of pairs, by the file's rules (see dataset.h).
 * `names` are the names of the texts in messages. [FORMAT for a text without words, for an empty
 * part of a text, or for texts that are no pairs; as encoding] */
int wg__read_text(wg__token_file *file, const wg_tokenizer *tokenizer, wg__text_map *texts,
                  const char *const *names);

/* The length of the line that begins at `at`, before the end of the text, without its line break
 * (LF or CR LF); *next is the beginning of the next line. */
int64_t wg__text_line(const wg__text_map *text, int64_t at, int64_t *next);

/* Guesses the format of sentences: by line if nearly all lines end like sentences. */
wg_sentence_format wg__detect_sentence_format(wg__text_map *text);

/* The end of the sentence that begins at byte `start` of a paragraph of UTF-8 text. A sentence ends
 * after a full stop, question mark, exclamation mark or ellipsis, with the closing quotes and
 * brackets after it, if white space and then no small letter follow. A full stop of an abbreviation
 * (Mr. Bennet, J. Smith, Fig. 3, e.g.) ends no sentence. Ideographic full stops, question and
 * exclamation marks need no space; they end no sentence if a comma follows the closing quotes.
 * Without an end: `length`. */
int64_t wg__sentence_end(const char *text, int64_t start, int64_t length);

#endif
