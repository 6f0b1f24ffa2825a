#!/bin/sh
# Checks docs/numpy-and-pytorch.md, which is made of docs/names.txt: every name of NumPy and PyTorch in
# tests/fixtures/names.txt has a row or is the same here, every function that a row names is exported, and
# every op of the registry is in the page. Prints TAP.
#
#   tests/names.sh           checks
#   tests/names.sh --write   rewrites the page
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
page=$source/docs/numpy-and-pytorch.md
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-names.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2016
"$wengert" gradcheck --list | sed -n 's/^| `\([^`]*\)`.*/\1/p' >"$work/ops" || exit 1

awk -f "$source/tests/declared.awk" "$source"/*/*.h "$source"/*/*/*.h >"$work/declared"
sed -n 's/^static inline wg_tensor \*\(wg_[a-z0-9_]*\)(.*/function \1/p' "$source/tensor/ops.h" >>"$work/declared"

LC_ALL=C awk -v faults="$work/faults" -v ops="$work/ops" '
    function matches(name, pattern,    parts, count, i, at) { # of * alone
        count = split(pattern, parts, "*")
        if (count == 1)
            return name == pattern
        if (index(name, parts[1]) != 1 || length(name) < length(pattern) - (count - 1))
            return 0
        name = substr(name, length(parts[1]) + 1)
        for (i = 2; i < count; i++) {
            at = index(name, parts[i])
            if (!at)
                return 0
            name = substr(name, at + length(parts[i]))
        }
        return parts[count] == "" || substr(name, length(name) - length(parts[count]) + 1) == parts[count]
    }
    function exported(name) {
        return ("wg_" name) in symbols ? "wg_" name : ("wg_" name "_op") in symbols ? "wg_" name "_op" : ""
    }
    function put(space, row, name) {
        used[row] = 1
        if (!((space, row) in listed))
            order[space] = order[space] " " row
        listed[space, row] = listed[space, row] (listed[space, row] == "" ? "" : ", ") "`" name "`"
    }
    FILENAME ~ /\/declared$/ { symbols[$2] = 1; next }
    FILENAME == ops { op[$1] = 1; next }
    FILENAME ~ /docs\/names.txt$/ {
        if (/^#/ || /^$/)
            next
        split($0, column, / *\| */)
        rows++
        here[rows] = column[1]
        note[rows] = column[3]
        count = split(column[2], names, / +/)
        for (i = 1; i <= count; i++) {
            if (names[i] == "")
                continue
            if (index(names[i], "*"))
                pattern[++patterns] = names[i] " " rows
            else
                row_of[names[i]] = rows
        }
        if (column[1] != "-" && !(column[1] in symbols))
            print column[1] " is not exported" >faults
        if (column[1] != "-")
            shown[substr(column[1], 4)] = 1
        count = split(column[3], words, /[^A-Za-z0-9_]+/)
        for (i = 1; i <= count; i++)
            if (words[i] ~ /^wg_./ && !(words[i] in symbols))
                print words[i] " in a note is not exported" >faults
        next
    }
    {
        name = $1
        base = name
        sub(/.*\./, "", base)
        space = substr(name, 1, length(name) - length(base) - 1)
        if (!(space in seen_space)) {
            seen_space[space] = 1
            spaces[++space_count] = space
        }
        if (name in row_of)
            put(space, row_of[name], base)
        else if (exported(base) != "") {
            same[space] = same[space] (same[space] == "" ? "" : ", ") "`" base "`"
            if (exported(base) != "wg_" base)
                same[space] = same[space] " (`" exported(base) "`)"
            shown[base] = shown[substr(exported(base), 4)] = 1
        } else if (base in row_of)
            put(space, row_of[base], base)
        else {
            found = 0
            for (i = 1; i <= patterns && !found; i++) {
                split(pattern[i], p, " ")
                if (matches(base, p[1])) {
                    put(space, p[2], base)
                    found = 1
                }
            }
            if (!found)
                print name " has no row in docs/names.txt" >faults
        }
    }
    END {
        print "# What NumPy and PyTorch names are called here\n"
        print "The functions of `torch`, `torch.Tensor`, `torch.nn.functional`, `torch.linalg`, `numpy` and"
        print "`numpy.linalg`, as PyTorch 1.13 and NumPy 1.24 have them. `make update-docs` prints this page from"
        print "[names.txt](names.txt) and the names that the library exports. [ops.md](ops.md) has all ops.\n"
        print "A name with \"the same\" is here with `wg_` before it, and with `_op` behind it where that is said: a"
        print "layer has the plain name. A dash says that there is none, and why."
        for (s = 1; s <= space_count; s++) {
            space = spaces[s]
            print "\n## " space "\n\n| there | here | |\n| --- | --- | --- |"
            print "| " same[space] " | the same | |"
            count = split(order[space], list, " ")
            for (i = 1; i <= count; i++) {
                row = list[i]
                print "| " listed[space, row] " | " (here[row] == "-" ? "-" : "`" here[row] "`") " | " note[row] " |"
            }
        }
        print "\n## Ops that NumPy and PyTorch have under no function of their own\n"
        line = ""
        for (name in op)
            if (!(name in shown))
                own[++owns] = name
        for (i = 2; i <= owns; i++) # in order
            for (j = i; j > 1 && own[j] < own[j - 1]; j--) {
                swapped = own[j]; own[j] = own[j - 1]; own[j - 1] = swapped
            }
        for (i = 1; i <= owns; i++) {
            function_of = exported(own[i])
            line = line (i > 1 ? ", " : "") "`" (function_of == "" ? own[i] : function_of) "`"
        }
        print line
    }
' "$work/declared" "$work/ops" "$source/docs/names.txt" "$source/tests/fixtures/names.txt" \
    >"$work/page" || exit 1

if test "$1" = --write; then
    cp "$work/page" "$page"
    test ! -s "$work/faults" || cat "$work/faults"
    exit 0
fi
echo 1..3
failed=0
result() {
    test "$1" = 'not ok' && failed=1
    echo "$1 $2"
}
if test -s "$work/faults"; then
    sed 's/^/# /' "$work/faults"
    result 'not ok' '1 - every name has a row, and the functions that rows name are exported'
else
    result ok '1 - every name has a row, and the functions that rows name are exported'
fi
if diff "$page" "$work/page" >"$work/difference"; then
    result ok '2 - docs/numpy-and-pytorch.md is made of docs/names.txt'
else
    sed 's/^/# /' "$work/difference" | head -20
    echo '# make update-docs writes it anew'
    result 'not ok' '2 - docs/numpy-and-pytorch.md is made of docs/names.txt'
fi
missing=$(while read -r op; do
    grep -q "[\`_]${op}[\`_]" "$page" || echo "# $op"
done <"$work/ops")
if test -s "$work/ops" && test -z "$missing"; then
    result ok '3 - every op of the registry is in the page'
else
    echo "$missing"
    result 'not ok' '3 - every op of the registry is in the page'
fi
exit $failed
