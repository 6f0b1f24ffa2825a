/* Differences between the tensors that a module wants and those that a file has, listed in one
 * error. */
#ifndef WG_IO_DIFFERENCES_H
#define WG_IO_DIFFERENCES_H

#include "tensor/tensor.h"

/* The names of one kind of difference, as many as fit: "3 missing (a, b, ...)". */
typedef struct wg__difference {
    int64_t count;
    int64_t biases; /* how many of them end in "bias" */
    char names[288];
    bool is_full;
} wg__difference;

typedef struct wg__differences {
    wg__difference missing, unexpected, misshapen, transposed;
} wg__differences;

void wg__note_difference(wg__difference *difference, const char *name);

/* Notes the tensor as misshapen if its shape differs, or its dtype does and one is not floating; a
 * matrix whose sizes are exchanged as transposed. True if it was noted. */
bool wg__note_spec(wg__differences *differences, const char *name, const wg_spec *found,
                   const wg_spec *wanted);

/* 0 if there are none; else -1 with NOT_FOUND if any is missing, else FORMAT. */
int wg__check_differences(const wg__differences *differences, const char *path, const char *where);

#endif
