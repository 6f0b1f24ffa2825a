# What scripts that try the command share; they read this file. $wengert is the command; each test
# runs in the script's own empty folder. A script ends with `finish'.

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
    sed 's/^/# stdout: /' out 2>/dev/null
    sed 's/^/# stderr: /' err 2>/dev/null
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

# Runs the command; leaves its exit code in $code, what it printed in the files out and err.
run() {
    "$wengert" "$@" >out 2>err </dev/null
    code=$?
}

# Succeeds if the last run left with that code and its stderr holds that text.
left_with() {
    test "$code" = "$1" && grep -qF -- "$2" err
}

# Bad input, of the last run: exit 1, one clear line that holds the text, after whatever progress there
# was; nothing on stdout, no file half-written: those that it was to write are named bad*.
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

# Wrong usage: exit 2, the text, and a hint where help is.
misused() {
    text=$1
    shift
    run "$@"
    check "wrong usage: wengert $*" eval 'left_with 2 "$text" && left_with 2 "--help"'
}

# The plan, and the exit code of the script.
finish() {
    echo "1..$number"
    exit "$failed"
}
