/* Labelled examples for fine-tuning, read from a file: one text or two, in tokens. Labels are
 * texts, numbered 0, 1, 2... */
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

/* A file with more labels than this most likely has texts in the label column. */
enum { WG_LABELS_MOST = 4096 };

/* The number of a label, added if it is new. [MEMORY; FORMAT beyond WG_LABELS_MOST] */
int64_t wg__labels_add(wg__labels *labels, const char *name);

/* The number of a label, or -1. */
int64_t wg__labels_find(const wg__labels *labels, const char *name);

/* Sorts labels: by value if all are whole numbers, else by their bytes. */
void wg__labels_sort(wg__labels *labels);

/* Sorts labels, too. Returns the new number of each old one, which the caller frees. [MEMORY] */
int64_t *wg__labels_renumber(wg__labels *labels);

/* Makes `copy` the same labels; {0} after an error. [MEMORY] */
int wg__labels_copy(wg__labels *copy, const wg__labels *labels);

/* True if both have the same labels in the same order. */
bool wg__labels_equal(const wg__labels *a, const wg__labels *b);

/* Frees the names and makes it {0}. */
void wg__labels_free(wg__labels *labels);

/* ---- Examples ---- */

/* B examples. Owned by the scope that was open. */
typedef struct wg__example_batch {
    wg_pair_batch inputs;
    wg_tensor *targets[2]; /* what is to be predicted: as the reader of the file says */
    int64_t words;         /* of texts with tagged words */
} wg__example_batch;

typedef struct wg__examples wg__examples;

/* The functions of a kind of file. */
typedef struct wg__examples_kind {
    wg_token_pair (*pair)(const wg__examples *examples, int64_t number); /* borrowed */

    /* Fills the targets of a batch whose inputs are there. [scope; MEMORY] */
    int (*fill_targets)(const wg__examples *examples, int64_t count, const int64_t *chosen,
                        wg__example_batch *batch);

    /* Identifies the examples: a resumed run must have the same. */
    uint64_t (*fingerprint)(const wg__examples *examples);

    void (*free)(wg__examples *examples);
} wg__examples_kind;

/* The first member of a file that was read. */
struct wg__examples {
    const wg__examples_kind *kind;
    int64_t count;
    int64_t predictions; /* as many, or the words of texts with tagged words */
};

/* Frees them; NULL is allowed. */
void wg__examples_free(wg__examples *examples);

/* Fills `batch` with these examples. [scope; MEMORY] */
int wg__example_batch_read(const wg__examples *examples, const wg_pair_frame *frame, int64_t count,
                           const int64_t *chosen, wg__example_batch *batch);

/* ---- For readers of files ---- */

/* The line of a file that is read, for messages. */
typedef struct wg__file_line {
    const char *where, *path;
    int64_t number; /* from 1 on */
} wg__file_line;

/* [FORMAT, with the file and the line] */
int wg__fail_line(const wg__file_line *line, const char *format, ...) WG_PRINTF(2, 3);

/* Calls `read` with each line of a file, without its end (LF or CR LF); line->number counts them.
 * -1 when it gives -1, or with [FORMAT for a NUL] */
int wg__each_line(wg__file_line *line, char *bytes, int64_t length,
                  int (*read)(void *context, char *text), void *context);

/* The number of a label or a tag (`what`); a new one is added if `adds`. [MEMORY; FORMAT for an
 * unknown one otherwise] */
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
 * skipped, and a line may end in CR LF. A file holds JSON if its first line is an object. */

/* The names of columns, or keys; NULL or "": columns with well-known names are looked for
 * ("sentence", "sentence1" and "sentence2", "label", "score"...), and where there are none, they
 * are in order. A text that is named is the only one unless `text_pair` is named, too. */
typedef struct wg__table_columns {
    const char *text, *text_pair, *label;
    bool lists; /* a label may be a JSON list of texts, which are given with commas between them */
} wg__table_columns;

/* The most fields of a row: two texts and the label, which is the last. */
enum { WG_TABLE_FIELDS = 3 };

/* Calls `row` with the two or three fields of each line, which it may change; lines count from 1.
 * -1 when `row` gives -1, or with [NOT_FOUND, IO, MEMORY; ARGUMENT for a second text without a
 * first; FORMAT, with the line: not UTF-8, a missing column, listing the present ones, another
 * number of columns than before, or bad JSON] */
int wg__table_read(const char *path, const wg__table_columns *columns,
                   int (*row)(void *context, int64_t line, int count, char *const *fields),
                   void *context);

/* Texts, or pairs of texts, one example a line, tokenised once:
 *
 *     A plane is taking off.                       A man plays.	A man is playing a flute.
 *     A man is playing a large flute.              It rains.	The sky is grey.
 *
 * Two texts have a tab between them. Blank lines are skipped, and a line may end in CR LF. */

/* {0} is none. */
typedef struct wg__text_lines {
    wg_token_list tokens;
    int64_t *ends; /* (count (1 + pairs)) behind each text */
    int64_t count, capacity;
    bool pairs;
} wg__text_lines;

/* Reads a file; freed with wg__text_lines_free, also after an error. -1 with [NOT_FOUND, IO,
 * MEMORY; FORMAT, with the line: not UTF-8, a NUL, an empty text, another number of texts than in
 * the lines before, or no example at all] */
int wg__text_lines_load(const char *path, const wg_tokenizer *tokenizer, wg__text_lines *lines);
void wg__text_lines_free(wg__text_lines *lines);

/* True if the first line has two tabs or more, or is a JSON object: two texts and a number, as
 * wg__labelled_text_load reads them. */
bool wg__text_lines_are_scored(const char *path);

/* One side, 0 or 1, of an example as the first text of a pair; borrowed. Both sides are the same
 * text where there are no pairs. */
wg_token_pair wg__text_lines_get(const wg__text_lines *lines, int64_t example, int side);

/* Identifies the examples: a resumed run must have the same. */
uint64_t wg__text_lines_fingerprint(const wg__text_lines *lines);

/* Texts with labels or numbers, tokenised once, of a file that wg__table_read reads:
 *
 *     sentence	label                          sentence1	sentence2	label
 *     it 's a charming journey .	1         Where is it?	It is here.	entailment */

/* How a file is read; {0}: without changes. */
typedef struct wg__labelled_text_options {
    const char *before[2]; /* a prefix of the first and of the second text of a line; NULL: none */
    wg__table_columns columns;
    bool several; /* a label field holds any number of labels, with commas between them */
} wg__labelled_text_options;

/* The tokens of an example; the second text of a pair begins at `middle`. */
typedef struct wg__labelled_example {
    int64_t first, middle, end;
    int64_t label;       /* its number; of several: where they begin in `labels` */
    int64_t label_count; /* of several */
    double value;        /* instead, of a text with numbers */
} wg__labelled_example;

/* Targets of a batch: labels (B) i64; numbers (B) f32; several labels (B, K) f32, 0 or 1. */
typedef struct wg__labelled_text {
    wg__examples base;
    wg_token_list tokens;
    wg__labelled_example *examples;
    int64_t capacity;
    int64_t *labels; /* of examples with several */
    int64_t label_count, label_capacity;
    int64_t kinds; /* of labels: K */
    bool pairs, numbers, several;
} wg__labelled_text;

/* Reads a file; `options` may be NULL. Empty labels become the sorted labels of the file; otherwise
 * unknown ones are refused. Without `labels` the label column holds numbers. Freed with
 * wg__examples_free. NULL with [as wg__table_read; FORMAT, with the line: an empty text, a label
 * that is unknown or no number, no example at all, or a single label] */
wg__labelled_text *wg__labelled_text_load(const char *path, const wg_tokenizer *tokenizer,
                                          wg__labels *labels,
                                          const wg__labelled_text_options *options);

/* The tokens of an example, borrowed. */
wg_token_pair wg__labelled_text_pair(const wg__labelled_text *text, int64_t example);

/* Whether an example has this one of several labels. */
bool wg__labelled_text_has(const wg__labelled_text *text, int64_t example, int64_t label);

/* Sentences whose words have tags, in CoNLL's columns: one word a line, an empty line behind a
 * sentence.
 *
 *     Empire    B-location                  1     Al      Al      PROPN  NNP  ...
 *     State     I-location                  2-3   don't   _       _      _    ...    skipped
 *     Building  I-location                  8.1   was     be      VERB   VBD  ...    skipped
 *
 * Columns are separated by tabs, or by spaces where a line has no tab. The word is in the first
 * column and its tag in the last, or, if the file is CoNLL-U (ten columns, the first one numbers),
 * in FORM and UPOS, unless options say others. Of CoNLL-U, ranges of words and empty nodes are
 * skipped; so are comments ("# ..."), and lines whose word is "-DOCSTART-".
 *
 * Each word is tokenised by itself. Its tag stands at its first piece, and a sentence that is
 * longer than a sequence is read in windows, which do not overlap:
 *
 *     words     Al-Ani     visited   Paris           (sentence)
 *     pieces    al ##-ani  visited   par ##is
 *     tags      3  .       7         3   .           . is WG_IGNORE_INDEX
 *     windows   0 ................   1 ......        of at most `room` pieces */

typedef struct wg__tagged_word {
    int64_t text;       /* where it begins in the texts */
    int64_t first, end; /* its pieces */
    int64_t tag;
} wg__tagged_word;

/* Its examples are the windows; words are numbered through all sentences. Targets of a batch: (B,
 * T) i64, a tag at the first piece of each word, else WG_IGNORE_INDEX. */
typedef struct wg__tagged_words {
    wg__examples base;
    wg__text texts; /* of the words, a NUL behind each */
    wg_token_list pieces;
    wg__tagged_word *words;
    int64_t count, capacity;      /* of words */
    int64_t *sentences, *windows; /* their first words, and `count` */
    int64_t sentence_count, sentence_capacity, window_capacity;
} wg__tagged_words;

typedef struct wg__tagged_words_options {
    const char *token_column, *tag_column; /* a number from 1 on, or of CoNLL-U a name ("UPOS");
                                            * NULL or "": as above */
    int64_t room; /* pieces of a window; 0: any number. A longer word loses its end */
} wg__tagged_words_options;

/* Reads a file; `options` may be NULL. Empty labels become the sorted tags of the file; otherwise
 * unknown ones are refused. Freed with wg__examples_free. NULL with [NOT_FOUND, IO, MEMORY;
 * ARGUMENT for a column that is neither a number nor a name; FORMAT, with the line: not UTF-8,
 * another number of columns than before, a missing column, an empty word or tag, an unknown tag, no
 * word at all, or a single tag] */
wg__tagged_words *wg__tagged_words_load(const char *path, const wg_tokenizer *tokenizer,
                                        wg__labels *labels,
                                        const wg__tagged_words_options *options);

/* A word, borrowed. */
const char *wg__tagged_words_text(const wg__tagged_words *words, int64_t word);

/* Questions about paragraphs, whose answers are quotations: SQuAD 1.1   (Rajpurkar et al. 2016).
 *
 *     {"data": [{"paragraphs": [{"context": "...", "qas": [
 *         {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 17}, ...]},
 *         ...]}, ...]}, ...]}
 *
 * A context that is longer than a sequence is read through windows, each a stride behind the one
 * before   (Devlin et al. 2019; run_squad.py):
 *
 *     context    t0 t1 t2 t3 t4 t5 t6 t7 t8 t9
 *     windows    [CLS] question [SEP] t0 t1 t2 t3 t4 t5 [SEP]
 *                [CLS] question [SEP]       t2 t3 t4 t5 t6 t7 [SEP]
 *                [CLS] question [SEP]             t4 t5 t6 t7 t8 t9 [SEP]
 *
 * Each token knows where in the context its word (up to white space or punctuation) is, so that an
 * answer is a piece of the context, from the begin of a word to the end of one. */

typedef struct wg__squad wg__squad; /* begins with a wg__examples, of its windows */

typedef struct wg__squad_options {
    int64_t sequence; /* of a window with its question; 0: 384 */
    int64_t stride;   /* 0: 128 */
    int64_t query;    /* tokens of a question at most; 0: 64 */
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

/* Tokens first .. first + count - 1 of a context, beside its question. Windows of a question follow
 * each other, and questions in the file's order. */
typedef struct wg__squad_window {
    int64_t question;
    int64_t first, count;
    int64_t offset;     /* where the first of them stands in the sequence */
    int64_t start, end; /* of the question's first answer, in the sequence; 0, the [CLS], if it is
                         * not all within */
} wg__squad_window;

wg__squad_window wg__squad_window_at(const wg__squad *squad, int64_t window);

/* True if no window of its question has more context around the token, counted on the shorter side:
 * an answer that begins with the token is taken from this window alone. */
bool wg__squad_is_best_window(const wg__squad *squad, int64_t window, int64_t token);

/* The text from the first token's word to the last one's; freed with wg_text_free. [MEMORY] */
char *wg__squad_text(const wg__squad *squad, int64_t question, int64_t first, int64_t last);

#endif
