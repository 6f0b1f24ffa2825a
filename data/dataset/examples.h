/* Examples of fine-tuning: texts with what is said of them, of one file. Each is one text or two,
 * in tokens; labels are texts, numbered 0, 1, 2... */
#ifndef WG_DATA_DATASET_EXAMPLES_H
#define WG_DATA_DATASET_EXAMPLES_H

#include "../batches/pair_batch.h"

/* ---- Labels ---- */

/* {0} is empty; freed with wg__labels_free. */
typedef struct wg__labels {
    char **names; /* UTF-8, all different */
    int64_t count, capacity;
} wg__labels;

/* The most labels of a classification. A file with more most likely has texts in the label column.
 */
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

/* What reading a kind of file gives. */
typedef struct wg__examples_kind {
    wg_token_pair (*pair)(const wg__examples *examples, int64_t number); /* borrowed */

    /* Fills what is to be predicted of a batch whose inputs are there. [scope; MEMORY] */
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

/* The line of a file that is read, and the labels that it may have. */
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

/* The number of a label, or a tag (`what`), which is new if `adds`. [MEMORY; FORMAT for one that is
 * unknown otherwise] */
int64_t wg__label_of_line(const wg__file_line *line, const char *what, wg__labels *labels,
                          bool adds, const char *name);

#endif
