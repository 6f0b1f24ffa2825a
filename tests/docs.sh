#!/bin/sh
# Checks that each ```c block of a documentation page is part of an example, which make check compiles
# and runs: the same lines, whatever their indentation. Prints TAP.
. "$(dirname "$0")/cli/setup.sh"
pages="docs/autodiff.md docs/training-loops.md"

# Whether all blocks of a page are in examples; the first lines of others go to the file out.
in_examples() {
    awk -v page="$1" '
        function bare(line) { sub(/^[ \t]+/, "", line); return line }
        FNR == 1 { file++ }
        file < ARGC - 1 { text[file] = text[file] bare($0) "\n"; next }
        /^```c$/ { inside = 1; block = ""; start = FNR + 1; next }
        /^```$/ && inside {
            inside = 0; count++
            found = 0
            for (f = 1; f < ARGC - 1; f++)
                found = found || index("\n" text[f], "\n" block)
            if (!found || block == "")
                print page ":" start ": " substr(block, 1, index(block, "\n") - 1)
            next
        }
        inside { block = block bare($0) "\n" }
        END { if (!count) print page ": there are no blocks" }
    ' "$source"/examples/*.c "$source/$1" >out
    ! test -s out
}

for page in $pages; do
    check "the code of $page is that of examples" in_examples "$page"
done
finish
