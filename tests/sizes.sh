#!/bin/sh
# Checks that sizes are multiplied in one checked place: no call that takes memory has a product among its
# arguments. wg__alloc_array, wg__calloc, calloc and reallocarray multiply themselves and check; wg__times
# is the checked product of two numbers (base/internal.h). Prints TAP.
. "$(dirname "$0")/cli/setup.sh"

folders='base tensor autograd nn optim gradcheck io data train models objectives formats cli bench'

# Products that a constant bounds, as FILE ARGUMENTS: at most 256 threads of 512 bytes each.
allowed='base/threads.c TEAM_BYTES + (size_t)wanted * MEMBER_BYTES'

# Prints `FILE:LINE: CALL' for each call in which an asterisk multiplies: one with a blank on both sides,
# as .clang-format writes it, while `sizeof *x' and casts have none on the right.
products() {
    awk -v allowed="$allowed" '
        function calls(text,    name, rest, depth, i, c, arguments) {
            while (match(text, /(wg__alloc|wg__try_alloc|wg__alloc_array|wg__try_alloc_array|wg__calloc|malloc|calloc|realloc|reallocarray|aligned_alloc|alloca)\(/)) {
                name = substr(text, RSTART, RLENGTH - 1)
                rest = substr(text, RSTART + RLENGTH)
                depth = 1
                for (i = 1; depth > 0 && i <= length(rest); i++) {
                    c = substr(rest, i, 1)
                    depth += c == "(" ? 1 : c == ")" ? -1 : 0
                }
                arguments = substr(rest, 1, i - 2)
                gsub(/[ \n]+/, " ", arguments)
                if (arguments ~ / \* / && FILENAME " " arguments != allowed)
                    print FILENAME ": " name "(" arguments ")"
                text = rest
            }
        }
        { sub(/\/\/.*/, ""); whole = whole $0 "\n" }
        END { calls(whole) }' "$@"
}

# The name of a file is known only while it is read, so each has a run of its own.
# shellcheck disable=SC2086
(cd "$source" && find $folders -name '*.[ch]' | LC_ALL=C sort | while read -r file; do products "$file"; done) >out
check 'calls that take memory multiply by wg__alloc_array or wg__times' test ! -s out

# The search has to find products, also over several lines, and to leave pointers and checked calls alone.
cat >products.c <<'C'
void *a = wg__alloc((size_t)n * sizeof *a);
void *b = wg__calloc(rows * columns,
                     sizeof(char *));
void *c = malloc(f(x) +
    2 * n);
void *d = wg__alloc_array(wg__times(rows, columns), sizeof *d);
char **e = calloc(n, sizeof(char *)), *f = realloc((char *)f, n + 1), *g = wg__alloc(sizeof **g);
C
products products.c >out
check 'products are found' test "$(wc -l <out)" = 3
finish
