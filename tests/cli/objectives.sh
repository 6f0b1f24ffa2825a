#!/bin/sh
# Each objective as a user runs it: trained, killed, resumed, compared with a run that was not
# killed, evaluated, and refused where a resumed run would become another one. Prints TAP.
. "$(dirname "$0")/setup.sh"
examples=12
. "$source/tests/cli/models.sh"

# What eval prints for people, and a key of the JSON.
told='masked-lm|^masked words .*loss|nsp_pairs
mlm|^masked words .*loss|mlm_loss
hybrid|^masked words .*loss|causal_loss
gpt|bits per byte|perplexity
causal-lm|bits per byte|bits_per_byte
blank-infilling|^words in blanks|word_loss
span-corruption|^tokens of spans|word_loss
gated|^tokens of spans|unigram_loss
translation|^BLEU|perplexity
classify|accuracy .* of 12|accuracy
multi-label|all labels right .* of 12|macro_f1
regression|mean squared error .* of 12|pearson
tokens|precision .* F1|f1
squad|exact match .* of 12 questions|exact_match
contrastive|own partner nearest|accuracy
cloze|accuracy .* of 12|accuracy'

# evaluate OBJECTIVE FILE
evaluate() {
    # shellcheck disable=SC2046 # pairs of files
    run eval "$2" --corpus $(field "$1" 3) --seq "$(field "$1" 4)"
}

for objective in $objectives; do
    row=$(echo "$told" | grep "^$objective|")
    words=$(echo "$row" | cut -d '|' -f 2) key=$(echo "$row" | cut -d '|' -f 3)
    set -- "$objective" --batch 4 --lr 0.01 --schedule constant --warmup 0 --seed 3 --eval-every 4
    case $objective in
    translation) set -- "$@" --batch 18 ;;
    mlm | hybrid) set -- "$@" --final-masked-share 0 ;; # which would fall with the length of the run
    esac
    with=begin
    train "$@" --steps 100000 --out killed.h5 --log killed.log --save-every 3
    with=run
    wait_for_steps 5 killed.log
    stop KILL
    steps=$(($(wc -l <killed.log) + 2))
    resume "$objective" --steps $steps --out killed.h5 --log killed.log
    check "$objective: a run that was killed goes on" test $code = 0

    train "$@" --steps $steps --out "$objective.h5" --log whole.log --json
    check "$objective: a run, with its results as JSON" has "\"steps\": $steps" "\"$key\": -*[0-9]"
    losses whole.log >wanted
    losses killed.log >found
    check "$objective: the bits of both are the same" eval 'test "$(wc -l <wanted)" = $steps && cmp wanted found'

    evaluate "$objective" "$objective.h5"
    mv out wanted
    evaluate "$objective" killed.h5
    check "$objective: eval tells of both the same" eval 'has "$words" && cmp wanted out'

    case $objective in
    masked-lm) set -- --corpus vocab.txt ;;
    classify) set -- --train vocab.txt ;;
    *) set -- ;;
    esac
    if test $# != 0; then
        resume "$objective" --out killed.h5
        check "$objective: a finished run tells its results again" has "$words"
        resume "$objective" --out killed.h5 --lr 0.5
        check "$objective: a resumed run keeps its learning rate" left_with 1 '--lr'
        resume "$objective" --out killed.h5 "$@"
        check "$objective: a resumed run keeps its text" test $code = 1
    fi
    rm -f killed.* whole.log
done
finish
