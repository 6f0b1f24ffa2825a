/* Examples for fine-tuning, read from a file and tokenized: one or two texts with a label, a
 * number, tags or answers. Labels are strings, numbered 0, 1, 2... */
#ifndef WG_DATA_DATASET_EXAMPLES_H
#define WG_DATA_DATASET_EXAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "data/internal.h"
#include "base/array.h"

/* ---- Labels ---- */

/* {0} is empty; freed with wg__labels_free. */
typedef struct wg__labels {
    char **names; /* UTF-8, all different */
    int64_t count, capacity;
} wg__labels;

/* A file with more labels most likely has texts in the label column. */
enum { WG_LABELS_MOST = 4096 };

/* The number of a label, added if it is new. [MEMORY; FORMAT beyond WG_LABELS_MOST] */
int64_t wg__labels_add(wg__labels *labels, const char *name);

/* The number of a label, or -1. */
int64_t wg__labels_find(const wg__labels *labels, const char *name);

/* Sorts labels: by value if all are whole numbers, else by their bytes. */
void wg__labels_sort(wg__labels *labels);

/* Sorts labels. Returns the new number of each old number, freed with wg__free. [MEMORY] */
int64_t *wg__labels_renumber(wg__labels *labels);

/* Copies labels; `copy` is {0} after an error. [MEMORY] */
int wg__labels_copy(wg__labels *copy, const wg__labels *labels);

/* True if both have the same labels in the same order. */
bool wg__labels_equal(const wg__labels *a, const wg__labels *b);

/* Frees the names and empties the labels. */
void wg__labels_free(wg__labels *labels);

/* ---- Examples ---- */

/* B examples. Owned by the scope that was open. */
typedef struct wg__example_batch {
    wg_pair_batch inputs;
    wg_tensor *targets[2]; /* the kind of file documents them */
    int64_t words;         /* of tagged words */
} wg__example_batch;

typedef struct wg__examples wg__examples;

/* The functions for a kind of file. */
typedef struct wg__examples_kind {
    wg_token_pair (*pair)(const wg__examples *examples, int64_t number); /* borrowed */

    /* Fills the targets of a batch with complete inputs. [scope; MEMORY] */
    int (*fill_targets)(const wg__examples *examples, int64_t count, const int64_t *chosen,
                        wg__example_batch *batch);

    /* A hash of the examples; a run resumes only with the same examples. */
    uint64_t (*fingerprint)(const wg__examples *examples);

    void (*free)(wg__examples *examples);
} wg__examples_kind;

/* The first member of the struct of each kind of file. */
struct wg__examples {
    const wg__examples_kind *kind;
    int64_t count;
    int64_t predictions; /* `count`, or the number of tagged words */
};

/* Frees examples of any kind; NULL is allowed. */
void wg__examples_free(wg__examples *examples);

/* Fills `batch` with these examples. [scope; MEMORY] */
int wg__example_batch_read(const wg__examples *examples, const wg_pair_frame *frame, int64_t count,
                           const int64_t *chosen, wg__example_batch *batch);

/* ---- For readers of files ---- */

/* The current line of a file, for messages. */
typedef struct wg__file_line {
    const char *where, *path;
    int64_t number; /* from 1 on */
} wg__file_line;

/* [FORMAT, with the file and the line] */
int wg__fail_line(const wg__file_line *line, const char *format, ...) WG_PRINTF(2, 3);

/* Calls `read` with each line of a file, without its line break (LF or CR LF), and counts the lines
 * in line->number. -1 if `read` returns -1, or with [FORMAT for a NUL] */
int wg__each_line(wg__file_line *line, char *bytes, int64_t length,
                  int (*read)(void *context, char *text), void *context);

/* The number of a label. An unknown label is added if `adds`. `what`, "label" or "tag", is for the
 * message. [MEMORY; FORMAT for an unknown label unless `adds`] */
int64_t wg__label_of_line(const wg__file_line *line, const char *what, wg__labels *labels,
                          bool adds, const char *name);

/* Columns of a file of examples: one text or two, and their label or number.
 *
 *     named columns      index  sentence1  sentence2  label      the first line names the columns
 *                        0      A plane.   A bird.    1.250
 *     JSON lines         {"sentence1": "A plane.", "sentence2": "A bird.", "label": 1.25}
 *     columns in order   A plane.  A bird.  1.250                texts first, the label last
 *
 * Columns are separated by tabs, and nothing is quoted, as in GLUE's files. Empty lines are
 * skipped, and a line may end in CR LF. A file is JSON if its first line is an object. */

/* The names of columns, or keys. NULL or "": the column with a well-known name ("sentence",
 * "sentence1" and "sentence2", "label", "score"...), or the columns in order if no name is known.
 * With `text` and without `text_pair` the examples have a single text. */
typedef struct wg__table_columns {
    const char *text, *text_pair, *label;
    bool lists; /* a label may be a JSON list of texts, which the reader joins with commas */
} wg__table_columns;

/* A row has at most two texts and, as the last field, the label. */
enum { WG_TABLE_FIELDS = 3 };

/* Calls `row` with the two or three fields of each line, which `row` may change; lines count
 * from 1. -1 if `row` returns -1, or with [NOT_FOUND, IO, MEMORY; ARGUMENT for a second text
 * without a first; FORMAT, with the line: not UTF-8, a missing column, listing the present ones,
 * another number of columns than before, or bad JSON] */
int wg__table_read(const char *path, const wg__table_columns *columns,
                   int (*row)(void *context, int64_t line, int count, char *const *fields),
                   void *context);

/* Texts, or pairs of texts, one example a line, tokenized once:
 *
 *     A plane is taking off.                       A man plays.	A man is playing a flute.
 *     A man is playing a large flute.              It rains.	The sky is grey.
 *
 * Two texts have a tab between them. Blank lines are skipped, and a line may end in CR LF. */

/* {0} is empty. */
typedef struct wg__text_lines {
    wg_token_list tokens;
    int64_t *ends; /* (count (1 + pairs)) the end of each text in `tokens` */
    int64_t count, capacity;
    bool pairs;
} wg__text_lines;

/* Reads a file; freed with wg__text_lines_free, also after an error. -1 with [NOT_FOUND, IO,
 * MEMORY; FORMAT, with the line: not UTF-8, a NUL, an empty text, another number of texts than in
 * the lines before, or no example at all] */
int wg__text_lines_load(const char *path, const wg_tokenizer *tokenizer, wg__text_lines *lines);
void wg__text_lines_free(wg__text_lines *lines);

/* True if the first line has two or more tabs, or is a JSON object: two texts and a number, for
 * wg__labelled_text_load. */
bool wg__text_lines_are_scored(const char *path);

/* One side, 0 or 1, of an example as a single text; borrowed. Without pairs both sides are the same
 * text. */
wg_token_pair wg__text_lines_get(const wg__text_lines *lines, int64_t example, int side);

/* A hash of the examples; a run resumes only with the same examples. */
uint64_t wg__text_lines_fingerprint(const wg__text_lines *lines);

/* Texts with labels or numbers, tokenized once, from a file for wg__table_read:
 *
 *     sentence	label                          sentence1	sentence2	label
 *     it 's a charming journey .	1         Where is it?	It is here.	entailment */

/* {0}: no prefixes, one label. */
typedef struct wg__labelled_text_options {
    const char *before[2]; /* a prefix of the first and of the second text of a line; NULL: none */
    wg__table_columns columns;
    bool several; /* a label field has any number of labels, with commas between them */
} wg__labelled_text_options;

/* The tokens of an example; the second text of a pair begins at `middle`. */
typedef struct wg__labelled_example {
    int64_t first, middle, end;
    int64_t label;       /* its number; with several labels the first index in `labels` */
    int64_t label_count; /* with several labels */
    double value;        /* with numbers */
} wg__labelled_example;

/* Targets of a batch: labels (B) i64; numbers (B) f32; several labels (B, K) f32, 0 or 1. */
typedef struct wg__labelled_text {
    wg__examples base;
    wg_token_list tokens;
    wg__labelled_example *examples;
    int64_t capacity;
    int64_t *labels; /* with several labels: of all examples */
    int64_t label_count, label_capacity;
    int64_t kinds; /* K, the number of different labels */
    bool pairs, numbers, several;
} wg__labelled_text;

/* Reads a file; `options` may be NULL. Empty `labels` become the sorted labels of the file;
 * otherwise unknown labels are refused. Without `labels` the label column has numbers. Freed with
 * wg__examples_free. NULL with [as wg__table_read; FORMAT, with the line: an empty text, a label
 * that is unknown or no number, no example at all, or a single label] */
wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options);

/* The tokens of an example, borrowed. */
wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t example);

/* True if the labels of an example include `label`. */
bool wg__labelled_text_has(const wg__labelled_text *text, int64_t example, int64_t label);

/* Sentences of tagged words, in CoNLL's columns: one word a line, an empty line after a sentence.
 *
 *     Empire    B-location                  1     Al      Al      PROPN  NNP  ...
 *     State     I-location                  2-3   don't   _       _      _    ...    skipped
 *     Building  I-location                  8.1   was     be      VERB   VBD  ...    skipped
 *
 * Columns are separated by tabs, or by spaces in a line without tabs. By default the word is in the
 * first column and its tag in the last one; in CoNLL-U (ten columns, the first one numbers) the
 * columns are FORM and UPOS. Comments ("# ..."), lines with the word "-DOCSTART-", and ranges of
 * words and empty nodes of CoNLL-U are skipped.
 *
 * Each word is tokenized separately. Its first piece has its tag. A sentence that is longer than a
 * sequence is divided into windows, which do not overlap:
 *
 *     words     Al-Ani     visited   Paris           (sentence)
 *     pieces    al ##-ani  visited   par ##is
 *     tags      3  .       7         3   .           . is WG_IGNORE_INDEX
 *     windows   0 ................   1 ......        of at most `room` pieces */

typedef struct wg__tagged_word {
    int64_t text;       /* its offset in texts.bytes */
    int64_t first, end; /* its pieces */
    int64_t tag;
} wg__tagged_word;

/* The examples are the windows; words are numbered through all sentences. Targets of a batch: (B,
 * T) i64, a tag at the first piece of each word, else WG_IGNORE_INDEX. */
typedef struct wg__tagged_words {
    wg__examples base;
    wg__text texts; /* the words, each NUL-terminated */
    wg_token_list pieces;
    wg__tagged_word *words;
    int64_t count, capacity;      /* of words */
    int64_t *sentences, *windows; /* the first word of each, then `count` */
    int64_t sentence_count, sentence_capacity, window_capacity;
} wg__tagged_words;

typedef struct wg__tagged_words_options {
    const char *token_column, *tag_column; /* a number from 1 on, or in CoNLL-U a name ("UPOS");
                                            * NULL or "": the default */
    int64_t room; /* pieces in a window; 0: no limit. A longer word is truncated */
} wg__tagged_words_options;

/* Reads a file; `options` may be NULL. Empty `labels` become the sorted tags of the file; otherwise
 * unknown tags are refused. Freed with wg__examples_free. NULL with [NOT_FOUND, IO, MEMORY;
 * ARGUMENT for a column that is neither a number nor a name; FORMAT, with the line: not UTF-8,
 * another number of columns than before, a missing column, an empty word or tag, an unknown tag, no
 * word at all, or a single tag] */
wg__tagged_words *wg__tagged_words_load(const char *path, const wg_tokenizer *tokenizer,
                                        wg__labels *labels,
                                        const wg__tagged_words_options *options);

/* Questions about paragraphs, with answers quoted from the paragraph: SQuAD 1.1   (Rajpurkar et al.
 * 2016).
 *
 *     {"data": [{"paragraphs": [{"context": "...", "qas": [
 *         {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 17}, ...]},
 *         ...]}, ...]}, ...]}
 *
 * A context that is longer than a sequence is divided into overlapping windows, which begin every
 * `stride` tokens   (Devlin et al. 2019; run_squad.py):
 *
 *     context    t0 t1 t2 t3 t4 t5 t6 t7 t8 t9
 *     windows    [CLS] question [SEP] t0 t1 t2 t3 t4 t5 [SEP]
 *                [CLS] question [SEP]       t2 t3 t4 t5 t6 t7 [SEP]
 *                [CLS] question [SEP]             t4 t5 t6 t7 t8 t9 [SEP]
 *
 * Each token has the position of its word (up to white space or punctuation) in the context. An
 * answer is a piece of the context that begins and ends with whole words. */

typedef struct wg__squad wg__squad; /* begins with a wg__examples; the examples are windows */

typedef struct wg__squad_options {
    int64_t sequence; /* tokens of a window with its question; 0: 384 */
    int64_t stride;   /* 0: 128 */
    int64_t query;    /* a limit on the tokens of a question; 0: 64 */
} wg__squad_options;

/* Reads a file. `answer_start` counts code points. Freed with wg__examples_free. Targets of a
 * batch: the first and the last token of the answers, (B) i64 each. NULL with [NOT_FOUND, IO,
 * MEMORY; FORMAT for bad UTF-8 or JSON, with the line, a missing field, with its place
 * ("data[0].paragraphs[2].qas[1].answers[0].answer_start"), an answer that is not where
 * `answer_start` says, or no question; ARGUMENT for windows without room] */
wg__squad *wg__squad_load(const char *path, const wg_tokenizer *tokenizer,
                          const wg__squad_options *options);

/* 0 for NULL. */
int64_t wg__squad_questions(const wg__squad *squad);

/* Texts are borrowed; a question has at least one answer. */
const char *wg__squad_id(const wg__squad *squad, int64_t question);
int64_t wg__squad_answers(const wg__squad *squad, int64_t question);
const char *wg__squad_answer(const wg__squad *squad, int64_t question, int64_t answer);

/* Tokens first .. first + count - 1 of a context, with a question. Windows are in the order of
 * their questions in the file, then of their tokens. */
typedef struct wg__squad_window {
    int64_t question;
    int64_t first, count;
    int64_t offset;     /* the position of token `first` in the sequence */
    int64_t start, end; /* of the question's first answer, in the sequence; 0, the [CLS], unless the
                         * window has the whole answer */
} wg__squad_window;

wg__squad_window wg__squad_window_at(const wg__squad *squad, int64_t window);

/* True if no other window of the question has more context around the token, counted on the shorter
 * side. An answer that begins with the token counts only in this window. */
bool wg__squad_is_best_window(const wg__squad *squad, int64_t window, int64_t token);

/* The text from the word of token `first` to the word of token `last`; freed with wg_text_free.
 * [MEMORY] */
char *wg__squad_text(const wg__squad *squad, int64_t question, int64_t first, int64_t last);

#endif
