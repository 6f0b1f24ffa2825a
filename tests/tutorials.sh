#!/bin/sh
# Runs the tutorials: the pages below. The library is installed into a temporary folder; a ```c block
# after a line "`NAME`:" becomes the file NAME (and a text of any other language, too); the commands of
# each ```console block, the lines that begin with "$ ", are run in the order of the page, and their
# output is compared with what the page shows. Numbers may differ by 5 %, because sums are rounded
# differently on other processors; a line "..." stands for any lines. Prints TAP.
#
#   tests/tutorials.sh             checks all pages
#   tests/tutorials.sh PAGE...     checks docs/PAGE.md
#   tests/tutorials.sh --write     writes the commands' output into the pages (blocks with a line "..." stay)
source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
pages='tensors write-a-model pretrain fill-in-blanks check-a-gradient published-models errors'
write=
if test "$1" = --write; then
    write=yes
    shift
fi
test $# = 0 || pages=$*
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-tutorials.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
if ! test -e .libs/libwengert.so; then
    echo '1..0 # SKIP this build has no shared library'
    exit 0
fi
if ! ${MAKE:-make} install DESTDIR="$work/root" >"$work/install.log" 2>&1; then
    sed 's/^/# /' "$work/install.log"
    echo 'Bail out! the library cannot be installed'
    exit 1
fi
PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name wengert.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
PATH=$(dirname "$(find "$work/root" -path '*/bin/wengert')"):$PATH
# In a sanitized build the sanitizer's library would have to be loaded first, and cc does not do that.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export PKG_CONFIG_PATH LD_LIBRARY_PATH PATH ASAN_OPTIONS

# Writes the files and commands of a page into the current folder: N.console for its N-th block.
unpack() {
    awk '/^`[A-Za-z0-9_.\/-]+`:$/ { name = substr($0, 2, length($0) - 3) }
         /^```./ { n++; file = $0 == "```console" ? n ".console" : name; name = ""; next }
         /^```$/ { file = "" }
         file { print > file }' "$1"
}

# Runs the commands of a block, and prints them with their output. A command goes on in the next line
# after a backslash.
replay() {
    awk '/^\$ / || more { sub(/^\$ /, ""); print; more = /\\$/ }' "$1" >commands
    while IFS= read -r line; do
        printf '$ %s\n' "$line" | sed 's/^\$     /    /'
        command=${command:+$command$new_line}$line
        case $line in
        *\\) continue ;;
        esac
        eval "$command" 2>&1 </dev/null
        command=
    done <commands
}
new_line='
'

# Compares two outputs word by word.
same() {
    awk -v q=1 '
        function close_to(a, b,    d) {
            d = a - b; if (d < 0) d = -d
            a = a < 0 ? -a : a
            return d <= 0.05 * a + 0.02
        }
        function words(line,    text) {
            text = line
            gsub(/[0-9]+:[0-9][0-9]/, "TIME", text)
            gsub(/[0-9.]+ tokens\/s/, "RATE", text)
            gsub(/[^ ]*[0-9]e-[0-9][0-9]/, "0", text)
            gsub(/[(),:;]/, " & ", text)
            return text
        }
        function equal(a, b,    x, y, n, i) {
            n = split(words(a), x, " ")
            if (split(words(b), y, " ") != n)
                return 0
            for (i = 1; i <= n; i++)
                if (x[i] != y[i] && !(x[i] ~ /^-?[0-9.]+%?$/ && y[i] ~ /^-?[0-9.]+%?$/ && close_to(x[i] + 0, y[i] + 0)))
                    return 0
            return 1
        }
        FILENAME == ARGV[1] { wanted[++n] = $0; next }
        { found[++m] = $0 }
        END {
            for (i = j = 1; i <= n; i++) {
                if (wanted[i] == "...") {
                    while (j <= m && !(i < n && equal(wanted[i + 1], found[j])))
                        j++
                    continue
                }
                if (j > m || !equal(wanted[i], found[j])) {
                    print "the page: " wanted[i]
                    print "now:      " (j > m ? "(the end)" : found[j])
                    exit 1
                }
                j++
            }
            if (j <= m) { print "not in the page: " found[j]; exit 1 }
        }' "$1" "$2"
}

number=0
failed=0
for page in $pages; do
    mkdir "$work/$page" && cd "$work/$page" || exit 1
    ln -s "$source/corpus" corpus
    ln -s "$source/examples" examples
    unpack "$source/docs/$page.md"
    # The files are this script's, numbered.
    # shellcheck disable=SC2010
    for block in $(ls | grep -E '^[0-9]+\.console$' | sort -n); do
        replay "$block" >"$block.out"
        test -z "$write" || continue
        number=$((number + 1))
        if same "$block" "$block.out" >difference; then
            echo "ok $number - docs/$page.md, block ${block%.console}, prints what the page shows"
        else
            sed 's/^/# /' difference
            echo "not ok $number - docs/$page.md, block ${block%.console}, prints what the page shows"
            failed=1
        fi
    done
    if test -n "$write"; then
        awk '/^```./ { n++; block = n ".console"; print
                       if ($0 == "```console" && system("grep -qx \"[.][.][.]\" " block)) { while ((getline line < (block ".out")) > 0) print line
                                                 skip = 1 }
                       next }
             /^```$/ { skip = 0 }
             !skip' "$source/docs/$page.md" >page.md && cp page.md "$source/docs/$page.md"
    fi
    cd "$work" || exit 1
done
test -n "$write" || echo "1..$number"
exit "$failed"
