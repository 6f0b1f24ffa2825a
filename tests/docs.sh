#!/bin/sh
# Checks that each ```c block of a documentation page is part of an example, which make check compiles
# and runs: the same lines, whatever their indentation. Prints TAP.
source=$(cd "$(dirname "$0")/.." && pwd)
cd "$source" || exit 1
pages="docs/autodiff.md docs/training-loops.md"

# Prints the first line of each block of a page that is in no example, as page:line: code.
blocks_missing() {
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
    ' examples/*.c "$1"
}

# shellcheck disable=SC2086
set -- $pages
echo "1..$#"
number=0
failed=0
for page in "$@"; do
    number=$((number + 1))
    wrong=$(blocks_missing "$page")
    if test -z "$wrong"; then
        echo "ok $number - the code of $page is that of examples"
    else
        echo "$wrong" | sed 's/^/# in no example: /'
        echo "not ok $number - the code of $page is that of examples"
        failed=1
    fi
done
exit $failed
