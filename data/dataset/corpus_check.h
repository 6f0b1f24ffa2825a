/* What is wrong with a training text: repetitions, overlap with the text to measure on, encoding,
 * and how long its lines and documents are.
 *
 * A line is compared without the blanks at its ends; blank lines are passed over. Documents end at
 * lines "<|endoftext|>"; in a file without these, at three blank lines; in one without these, too,
 * at each blank line. Files are read as streams; beside them there are 16 to 32 bytes of memory for
 * each distinct line and document, since equal ones are found by hashes of 64 bits. */
#ifndef WG_DATA_DATASET_CORPUS_CHECK_H
#define WG_DATA_DATASET_CORPUS_CHECK_H

#include "base/internal.h"
#include "data/tokenizer/tokenizer.h"

typedef enum wg_corpus_fault {
    WG_CORPUS_INVALID,     /* bytes that are not UTF-8 */
    WG_CORPUS_BOM,         /* U+FEFF */
    WG_CORPUS_CRLF,        /* lines that end in CR LF */
    WG_CORPUS_NUL,         /* U+0000 */
    WG_CORPUS_REPLACEMENT, /* U+FFFD, which stands for what another program could not decode */
    WG_CORPUS_CONTROL,     /* other control characters, but tab and line breaks */
    WG_CORPUS_FAULT_COUNT
} wg_corpus_fault;

/* How often something occurs, and where first. */
typedef struct wg_corpus_finding {
    int64_t count;
    int file;     /* index of the path; of the held-out text 0 */
    int64_t line; /* from 1 on; 0: nowhere */
} wg_corpus_finding;

/* Lengths in characters; median and 95 % to within 0.1 % where they are above 2047. */
typedef struct wg_corpus_lengths {
    int64_t count, median, most; /* `most`: 95 % are as long or shorter */
    int64_t longest;
    int file;     /* of the longest, */
    int64_t line; /* and where it begins */
} wg_corpus_lengths;

typedef struct wg_corpus_report {
    int64_t bytes, characters;
    wg_corpus_lengths lines, documents; /* that are not blank */
    wg_corpus_finding repeated_lines, repeated_documents;
    int64_t repeated_characters; /* of the repeated lines */
    wg_corpus_finding faults[WG_CORPUS_FAULT_COUNT];
    int64_t held_out_lines, held_out_characters; /* 0: no held-out text */
    wg_corpus_finding overlap;  /* lines of the held-out text that are in the text, too, */
    int64_t overlap_characters; /* and their characters */
    int64_t words;              /* between white space; each ideograph is one */
    int64_t tokens, unknown;    /* 0 without a tokenizer */
} wg_corpus_report;

typedef struct wg_corpus_check_options {
    const char *held_out;          /* a text to measure on; NULL: none */
    const wg_tokenizer *tokenizer; /* NULL: tokens are not counted */
} wg_corpus_check_options;

/* Reads text files and fills in `report`. [NOT_FOUND, IO; FORMAT for files without text; MEMORY] */
WG__COMMAND int wg__corpus_check(int count, const char *const *paths,
                                 const wg_corpus_check_options *options, wg_corpus_report *report);

#endif
