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

# succeeds NAME ARGUMENT...: runs the command, which has to exit with 0.
succeeds() {
    name=$1
    shift
    run "$@"
    check "$name" test $code = 0
}

# shows NAME PATTERN ARGUMENT...: runs the command, which has to exit with 0 and to print a line of
# the pattern (grep).
shows() {
    name=$1 pattern=$2
    shift 2
    run "$@"
    check "$name" eval 'test $code = 0 && grep -q -e "$pattern" out'
}

# prints NAME TEXT ARGUMENT...: runs the command, which has to exit with 0 and to print the text
# alone.
prints() {
    name=$1 wanted=$2
    shift 2
    run "$@"
    check "$name" eval 'test $code = 0 && test "$(cat out)" = "$wanted"'
}

# prints_again NAME ARGUMENT...: runs the command twice, which has to print the same; leaves it in
# the file first.
prints_again() {
    name=$1
    shift
    run "$@"
    cp out first
    run "$@"
    check "$name" eval 'test $code = 0 && test -s out && cmp -s out first'
}

# has TEXT...: whether the output of the last run, which left with 0, contains each of the patterns
# (grep).
has() {
    test "$code" = 0 || return 1
    for pattern; do
        grep -q -e "$pattern" out || return 1
    done
}

# Succeeds if the last run had that exit code and its stderr contains that text.
left_with() {
    test "$code" = "$1" && grep -qF -- "$2" err
}

# expect NAME CODE ARGUMENTS PATTERN...: `wengert $verb ARGUMENTS', words, leaves with that code,
# and each of the patterns (grep) matches a line of stdout or stderr.
expect() {
    name=$1 wanted=$2 arguments=$3
    shift 3
    # shellcheck disable=SC2086
    run $verb $arguments
    cat err >>out
    : >err
    passed=$((code == wanted))
    for pattern; do
        grep -q -e "$pattern" out || passed=0
    done
    check "$name" test $passed = 1
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

# leaves NAME CODE TEXT ARGUMENT...: runs the command, which has to exit with that code and to say
# the text.
leaves() {
    name=$1 wanted=$2 text=$3
    shift 3
    run "$@"
    check "$name" left_with "$wanted" "$text"
}

# refuses_each ARGUMENT...: `refuses' for each line `NAME | TEXT | MORE' of standard input, with
# these arguments and then MORE, words of the shell. A line goes on after a backslash.
refuses_each() {
    while read -r line; do
        while test "${line%\\}" != "$line" && read -r next; do
            line=${line%\\}$next
        done
        row_name=${line%% | *} row_text=${line#* | }
        row_more=${row_text#* | } row_text=${row_text%% | *}
        eval "refuses \"\$row_name\" \"\$row_text\" \"\$@\" $row_more"
    done
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

# A vocabulary of these numbers, of 18 tokens, in vocab.txt.
write_vocabulary() {
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . one two three four five six seven eight nine \
        ten eleven twelve >vocab.txt
}

# book LINES: the beginning of a text.
book() {
    head -n "$1" "$source/corpus/books/alice-in-wonderland.txt"
}

# tiny MODEL VOCABULARY POSITIONS [LAYERS]: its configuration.
tiny() {
    case $1 in
    bert) echo "{\"vocab_size\": $2, \"hidden_size\": 16, \"num_hidden_layers\": ${4:-1},
        \"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": $3}" ;;
    modernbert) echo "{\"vocab_size\": $2, \"hidden_size\": 16, \"num_hidden_layers\": ${4:-3},
        \"num_attention_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": $3,
        \"local_attention\": 8}" ;;
    gpt) echo "{\"vocab_size\": $2, \"n_embd\": 16, \"n_layer\": ${4:-1}, \"n_head\": 2,
        \"n_positions\": $3}" ;;
    glm) echo "{\"vocab_size\": $2, \"hidden_size\": 16, \"num_layers\": ${4:-1},
        \"num_attention_heads\": 2, \"max_sequence_length\": $3}" ;;
    esac
}

# pretrain_tiny MODEL POSITIONS [LAYERS]: MODEL.h5, of two steps on text.txt, which is written.
pretrain_tiny() {
    book 900 >text.txt
    tiny "$1" 300 "$2" "$3" >"$1.json"
    succeeds "$1 is pretrained" pretrain "$1" --corpus text.txt --config "$1.json" --batch 4 \
        --seq 32 --steps 2 --out "$1.h5"
}

# The numbers that a run has logged for each step, apart from speeds. Steps that a run which was
# killed has done again are there once.
losses() {
    sed 's/, "tokens_per_s": [^,}]*//' "$@" | sort -u | sort -t: -k2n
}

# The losses of a log, in which a resumed run repeats evaluations.
losses_alone() {
    grep -o '"loss": [^,]*' "$1"
}

# begin ARGUMENT...: runs the command in the background, as process $process. Signals reach the
# command itself.
begin() {
    "$wengert" "$@" >out 2>err </dev/null &
    process=$!
}

# wait_for_steps COUNT LOG: until the log has so many lines, or the process has ended, or for half a
# minute.
wait_for_steps() {
    tries=0
    until test -f "$2" && test "$(wc -l <"$2")" -ge "$1" || test $tries -ge 600 || ! kill -0 "$process" 2>/dev/null; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

# stop SIGNAL: sends it to the process; leaves its exit code in $code.
stop() {
    kill "-$1" "$process" 2>/dev/null
    wait "$process" 2>/dev/null
    code=$?
}

# Prints the plan and exits.
finish() {
    echo "1..$number"
    exit "$failed"
}
