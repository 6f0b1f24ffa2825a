/* Finds the name nearest to a misspelt one: see suggest.h. */
#include "base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 }; /* longer names are not compared */

static char folded(char letter) {
    return letter == '_' ? '-' : (char)tolower((unsigned char)letter);
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* How many letters are inserted, deleted, replaced or exchanged with their neighbour:
 *
 *     d(i, j) = min( d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j],
 *                    d(i-2, j-2) + 1 if a_i a_i-1 = b_j-1 b_j ) */
static int edit_distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][LONGEST + 1]; /* d(i, .), in turns */
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3];
        const int *before = rows[(i - 1) % 3], *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const char x = folded(a[i - 1]), y = folded(b[j - 1]);
            now[j] = smaller(smaller(before[j], now[j - 1]) + 1, before[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2]))
                now[j] = smaller(now[j], two_before[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

static int begins(const char *name, const char *with) {
    while (*with && folded(*name) == folded(*with)) {
        name++;
        with++;
    }
    return *with == '\0';
}

const char *wg__suggestion(char *text, size_t size, const char *typed,
                           const char *(*name)(const void *context, int index),
                           const void *context) {
    const size_t length = strlen(typed);
    int least = (int)(length < 7 ? 1 : (length + 1) / 4) + 1; /* a quarter may be wrong */
    const char *nearest = NULL, *candidate;
    for (int i = 0; length > 0 && length <= LONGEST && (candidate = name(context, i)); i++) {
        if (strlen(candidate) > LONGEST)
            continue;
        int distance = edit_distance(typed, candidate);
        if (length >= 3 && begins(candidate, typed))
            distance = smaller(distance, 1);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    if (nearest)
        snprintf(text, size, "; did you mean '%s'?", nearest);
    else
        text[0] = '\0';
    return text;
}
