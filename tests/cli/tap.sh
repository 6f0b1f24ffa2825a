# shellcheck shell=sh
# Functions of the scripts that test the command, which source this file. $wengert is the command; the
# tests run in an empty folder of the script. A script ends with `finish'.

number=0
failed=0

ok() {
    number=$((number + 1))
    echo "ok $number - $*"
}

not_ok() {
    number=$((number + 1))
    failed=1
    echo "not ok $number - $*"
    # A last line without an end gets one: the next result begins a line.
    sed -e 's/^/# stdout: /' -e '$a\' out 2>/dev/null
    sed -e 's/^/# stderr: /' -e '$a\' err 2>/dev/null
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

# Reports the test of that name by the exit code of the command that follows it.
check() {
    name=$1
    shift
    if "$@"; then ok "$name"; else not_ok "$name"; fi
}

# Runs the command; leaves its exit code in $code, its output in the files out and err.
run() {
    "$wengert" "$@" >out 2>err </dev/null
    code=$?
}

# Succeeds if the last run had that exit code and its stderr contains that text.
left_with() {
    test "$code" = "$1" && grep -qF -- "$2" err
}

# Bad input of the last run: exit 1, one line on stderr that contains the text, possibly after progress;
# nothing on stdout, and no file, which the test has named bad*.
refused() {
    lines=$(grep '^wengert: ' err | grep -vc '^wengert: note: ')
    leftovers=$(find . -name 'bad*' | wc -l)
    if left_with 1 "$2" && test "$lines" = 1 && tail -n 1 err | grep -q '^wengert: ' &&
        ! test -s out && test "$leftovers" = 0; then
        ok "$1"
    else
        not_ok "$1 (exit $code, $lines lines, $leftovers leftovers)"
    fi
    rm -rf bad*
}

refuses() {
    name=$1 text=$2
    shift 2
    run "$@"
    refused "$name" "$text"
}

# Wrong usage: exit 2, the text, and a hint at --help.
misused() {
    text=$1
    shift
    run "$@"
    check "wrong usage: wengert $*" eval 'left_with 2 "$text" && left_with 2 "--help"'
}

# A text for tests of training, of ten documents: numbers in their order, so that a word follows from its
# neighbours.
numbers_in_order() {
    i=0
    while test $i -lt 60; do
        echo 'one two three four five six .'
        echo 'seven eight nine ten eleven twelve .'
        test $((i % 6)) = 5 && echo
        i=$((i + 1))
    done
}

# Prints the plan and exits.
finish() {
    echo "1..$number"
    exit "$failed"
}
