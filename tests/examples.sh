#!/bin/sh
# Runs the examples, which make lists in $EXAMPLES, in an empty folder and checks their results. The
# program in README.md has to be an example, word for word. Prints TAP.
source=$(cd "$(dirname "$0")/.." && pwd)
build=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# shellcheck disable=SC2086
set -- $EXAMPLES
echo "1..$(($# + 1))"
number=0
failed=0
result() {
    number=$((number + 1))
    echo "$1 $number - $2"
    test "$1" = ok || failed=1
}

# Prints the faults of an example's output (the file `out`), or nothing.
fault() {
    case $1 in
    examples/char_lstm)
        awk '/^by frequency: / { chance = $3 }
             /^trained: / { learnt = $2 < chance - 0.8 }
             /^text 2: The Queen said to the ./ { written = 1 }
             /^text 1 alone: the same$/ { same = 1 }
             END { if (!learnt || !written || !same) print "nothing is learnt or written, or not alone" }' out
        ;;
    examples/custom_op)
        grep -q '^snake: .* coordinates agree' out || echo 'its op is not checked'
        error=$(sed -n 's/^mean squared error: //p' out)
        awk "BEGIN { exit !(${error:-1} < 0.01) }" || echo "the error is ${error:-missing}"
        ;;
    examples/einsum_attention)
        share=$(sed -n 's/^right answers: \([0-9]*\).*/\1/p' out)
        test "${share:-0}" -ge 97 || echo "only ${share:-no} % of the answers are right"
        difference=$(sed -n 's/^largest difference from wg_attention: //p' out)
        awk "BEGIN { exit !(${difference:-1} < 5e-6) }" ||
            echo "wg_attention is off by ${difference:-nobody knows what}"
        ;;
    examples/autodiff)
        diff "$source/tests/fixtures/autodiff.out" out
        ;;
    examples/images)
        grep -q '^resumed: the same bits$' out || echo 'a resumed run has other bits'
        share=$(sed -n 's/^right: \([0-9]*\).*/\1/p' out)
        test "${share:-0}" -ge 90 || echo "only ${share:-no} % of the pictures are told"
        ;;
    examples/line)
        diff "$source/tests/fixtures/line.out" out
        ;;
    examples/new_model)
        awk '/^by frequency: / { chance = $3 }
             /^trained: / { learnt = $2 < chance - 0.5 }
             /^difference of the model read back: 0$/ { same = 1 }
             END { if (!learnt || !same) print "nothing is learnt, or it does not come back" }' out
        ;;
    examples/newton_polynomial)
        sed -n 's/^gradient at the end: //p; s/^largest error of the polynomial: //p' out | paste - - |
            awk 'NF == 2 && $1 < 1e-9 && $2 < 0.05 { right = 1 }
                 END { if (!right) print "no minimum, or not the polynomial: " $0 }'
        ;;
    examples/normalisation)
        test "$(grep -c '<rect .*fill="#' norms.svg)" -ge 200 || echo 'norms.svg lacks bars'
        count=$(sed -n 's/^activations: //p' out)
        test "$(grep -c '<polyline' activations.svg)" = $((2 * ${count:-9})) ||
            echo 'activations.svg lacks curves'
        ;;
    examples/own_training)
        grep -q '^resumed: the same bits$' out || echo 'a resumed run has other bits'
        error=$(sed -n 's/^held-out error: //p' out)
        awk "BEGIN { exit !(${error:-1} < 0.03) }" || echo "the error is ${error:-missing}"
        ;;
    examples/physics_informed)
        awk '/^largest error: / && $3 < 0.01 { right = 1 }
             END { if (!right) print "not the solution: " $0 }' out
        ;;
    examples/digits)
        share=$(sed -n 's/^right on new images: \([0-9]*\).*/\1/p' out)
        test "${share:-0}" -ge 92 || echo "only ${share:-no} % of new images are right"
        ;;
    examples/fashion)
        grep -q '^right on new pictures: 100.0 %$' out || echo 'black and white pictures are not told apart'
        ;;
    examples/spiral)
        share=$(sed -n 's/^right on new points: \([0-9]*\).*/\1/p' out)
        test "${share:-0}" -ge 97 || echo "only ${share:-no} % of new points are right"
        ;;
    examples/warmup)
        awk '/^post-norm / { post = $(NF - 5) }
             /^pre-norm / { pre = $(NF - 5) }
             END { if (!(post > 2 && pre < 1.2)) print "the gradients do not differ: " post ", " pre }' out
        test "$(grep -c '<polyline' warmup.svg)" = 10 || echo 'warmup.svg lacks curves'
        ;;
    *)
        echo "nobody says what it is to show"
        ;;
    esac
}

# Files of 64 pictures of 28 x 28 points, black ones of class 0 and white ones of class 1 in turn.
black_and_white() {
    {
        printf '\0\0\10\3\0\0\0\100\0\0\0\34\0\0\0\34'
        for _ in $(seq 32); do
            head -c 784 /dev/zero
            head -c 784 /dev/zero | tr '\0' '\377'
        done
    } >"$1-images-idx3-ubyte"
    {
        printf '\0\0\10\1\0\0\0\100'
        for _ in $(seq 32); do printf '\0\1'; done
    } >"$1-labels-idx1-ubyte"
}

# The arguments of an example.
arguments() {
    book=$source/corpus/books/alice-in-wonderland.txt
    case $1 in
    examples/new_model | examples/char_lstm) echo "$book" ;;
    examples/fashion)
        black_and_white train && black_and_white t10k
        echo "cnn . 8"
        ;;
    examples/warmup) echo "$book 3" ;; # steps: the gradients of the first are shown
    esac
}

for example in "$@"; do
    # shellcheck disable=SC2046
    if ! "$build/$example" $(arguments "$example") >out 2>err; then
        wrong=$(cat err)
    else
        wrong=$(fault "$example")
    fi
    if test -z "$wrong"; then
        result ok "$example shows what it should"
    else
        echo "$wrong" | sed 's/^/# /'
        result 'not ok' "$example shows what it should"
    fi
done

# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/{/^```/d;p;}' "$source/README.md" >shown
if diff "$source/examples/line.c" shown >difference; then
    result ok "README.md shows examples/line.c"
else
    sed 's/^/# /' difference
    result 'not ok' "README.md shows examples/line.c"
fi
exit $failed
