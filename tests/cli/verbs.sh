#!/bin/sh
# Every verb with every model and every bad input: a checkpoint of another model, files that are no
# checkpoints, another tokenizer, texts that are empty, too long or not UTF-8. Each gives exit 1, one line
# on stderr, nothing on stdout, and leaves no file. Prints TAP.
. "$(dirname "$0")/setup.sh"
. "$source/tests/cli/models.sh"
sed -i 's/"vocab_size": [0-9]*/"vocab_size": 400/' gpt.json llama.json t5.json # for 256 bytes and more

# ---- A checkpoint of each model, of one step ----

pretrained='bert glm gpt llama t5' # those of `wengert pretrain' that learn from plain text
# Their numbers of positions.
positions() {
    test "$1" = bert && echo 96 || echo 24
}
for row in masked-lm/bert blank-infilling/glm gpt/gpt causal-lm/llama span-corruption/t5 translation/transformer \
    classify/classify squad/squad cloze/cloze; do
    train ${row%/*} --steps 1 --batch 9 --out ${row%/*}.h5
    check "${row#*/} is there" test "$code" = 0
    cp ${row%/*}.h5 .model.h5 && mv .model.h5 ${row#*/}.h5
done
refuses 'a usual length that the model does not have names --seq' \
    'a sequence of 384 tokens is too long; the model has 96 positions: give --seq 96, or less' \
    finetune bert.h5 --task squad --train questions.json --eval questions.json --out bad.h5
tasks='classify squad cloze'
book 200 >book.txt
run tokenizer train --corpus book.txt --kind bpe --vocab-size 500 --out other.json
succeeds 'a file of tokens is there' tokenizer pack other.json book.txt --out tokens.h5

: >empty.txt
: >empty.h5
mkdir folder
printf 'Alice was\377 beginning to get very tired of it.\n' >latin.txt
printf 'a good\377 day\teven\na bad day\todd\n' >latin.tsv
sed 's/"question": "two"/"question": "t\xffo"/' questions.json >latin.json
not_utf8=$(printf 'Alice\377')
too_long=$(yes Alice | head -n 200 | tr '\n' ' ')

# ---- Mistakes ----

# wrong NAME TEXT ARGUMENT...: runs the command, with standard input from $input. It has to exit with 1,
# to print one line besides notes, which contains the text, and to leave all files as they were.
input=/dev/null
wrong() {
    name=$1 text=$2
    shift 2
    find . ! -name out ! -name err ! -name '.*' | sort >.before
    "$wengert" "$@" >out 2>err <$input
    code=$?
    find . ! -name out ! -name err ! -name '.*' | sort >.after
    grep -av '^wengert: note: ' err >.lines
    if left_with 1 "$text" && test "$(wc -l <.lines)" = 1 && grep -q '^wengert: ' .lines && ! test -s out &&
        cmp -s .before .after; then
        ok "$name"
    else
        not_ok "$name (exit $code)"
    fi
    rm -rf bad*
}

# The verb on files that are not its checkpoints. $verb: its name; "$@": the arguments after the file.
no_checkpoint() {
    wrong "$verb: a file that is not there" none.h5 $verb none.h5 "$@"
    wrong "$verb: a text" text.txt $verb text.txt "$@"
    wrong "$verb: an empty file" empty.h5 $verb empty.h5 "$@"
    wrong "$verb: a folder" folder $verb folder "$@"
    test "$verb" = info || wrong "$verb: a file of tokens" tokens.h5 $verb tokens.h5 "$@"
}

# The verb on the models that it does not take, all but those of $takes.
other_models() {
    for model in $pretrained transformer $tasks; do
        case " $takes " in
        *" $model "*) ;;
        *) wrong "$verb: a $model checkpoint" "$model" $verb "$model.h5" "$@" ;;
        esac
    done
}

verb=fill takes='bert glm t5'
no_checkpoint '[MASK]'
other_models '[MASK]'
for model in $takes; do
    wrong "fill: no text, by $model" '[MASK]' fill $model.h5 ''
    wrong "fill: a text without a blank, by $model" '[MASK]' fill $model.h5 'Alice was beginning.'
    wrong "fill: a text that is not UTF-8, by $model" 'UTF-8' fill $model.h5 "$not_utf8 [MASK]"
    test $model = t5 ||
        wrong "fill: a text that is too long, by $model" "$(positions $model)" fill $model.h5 "$too_long [MASK]"
    wrong "fill: nothing on standard input, by $model" 'standard input' fill $model.h5
    input=latin.txt
    wrong "fill: a line that is not UTF-8, by $model" 'UTF-8' fill $model.h5
    input=text.txt
    wrong "fill: a line without a blank, by $model" '[MASK]' fill $model.h5
    input=/dev/null
done

verb=score takes='bert glm gpt llama'
printf '%s\n' "$too_long" >long.txt
no_checkpoint --text lines.txt
other_models --text lines.txt
for model in $takes; do
    wrong "score: a text that is not there, by $model" none.txt score $model.h5 --text none.txt
    wrong "score: an empty text, by $model" empty.txt score $model.h5 --text empty.txt
    wrong "score: a text that is not UTF-8, by $model" latin.txt score $model.h5 --text latin.txt
    wrong "score: a text that is too long, by $model" 'long.txt, line 1' score $model.h5 --text long.txt
    wrong "score: a text for pairs, by $model" 'lines.txt, line 1' score $model.h5 --pairs lines.txt
done

verb=embed takes='bert gpt llama'
no_checkpoint --text lines.txt --similar Alice
other_models --text lines.txt --similar Alice
for model in $takes; do
    wrong "embed: a text that is not there, by $model" none.txt embed $model.h5 --text none.txt --out bad.npy
    wrong "embed: an empty text, by $model" empty.txt embed $model.h5 --text empty.txt --out bad.npy
    wrong "embed: a text that is not UTF-8, by $model" latin.txt embed $model.h5 --text latin.txt \
        --out bad.npy
    wrong "embed: a text that is too long, by $model" 'long.txt, line 1' embed $model.h5 --text long.txt \
        --out bad.npy
done

verb=generate takes='glm gpt llama'
no_checkpoint --prompt Alice
other_models --prompt Alice
for model in $takes; do
    wrong "generate: an empty prompt, by $model" 'empty' generate $model.h5 --prompt ''
    wrong "generate: a prompt that is not UTF-8, by $model" 'UTF-8' generate $model.h5 \
        --prompt "$not_utf8"
    wrong "generate: a prompt that is too long, by $model" '24 positions' generate $model.h5 \
        --prompt "$too_long"
    wrong "generate: more tokens than positions, by $model" '24 positions' generate $model.h5 \
        --prompt one --max-tokens 25
done

verb=translate takes=transformer
no_checkpoint Alice
other_models Alice
wrong 'translate: no text' 'empty' translate transformer.h5 ''
wrong 'translate: a text that is not UTF-8' 'UTF-8' translate transformer.h5 "$not_utf8"
wrong 'translate: a text that is too long' 'tokens' translate transformer.h5 "$too_long"
wrong 'translate: nothing on standard input' 'standard input' translate transformer.h5
input=latin.txt
wrong 'translate: a line that is not UTF-8' 'UTF-8' translate transformer.h5
input=/dev/null

verb='eval'
no_checkpoint --corpus text.txt
for model in $pretrained; do
    wrong "eval: a text that is not there, of $model" none.txt eval $model.h5 --corpus none.txt
    wrong "eval: an empty text, of $model" empty.txt eval $model.h5 --corpus empty.txt
    wrong "eval: a text that is not UTF-8, of $model" latin.txt eval $model.h5 --corpus latin.txt
    wrong "eval: tokens of another tokenizer, of $model" tokens.h5 eval $model.h5 --corpus tokens.h5
    wrong "eval: a checkpoint for a text, of $model" bert.h5 eval $model.h5 --corpus bert.h5
    wrong "eval: predictions of $model" "$model" eval $model.h5 --corpus text.txt --predictions bad
    test $model = t5 || wrong "eval: a sequence that is too long, of $model" "$(positions $model)" eval \
        $model.h5 --corpus text.txt --seq 128
done
for file in none.txt empty.txt latin.tsv questions.json; do
    for task in classify cloze; do
        wrong "eval: $file for labels, of $task" "$file" eval $task.h5 --corpus "$file"
    done
done
for file in none.txt empty.txt latin.json labels.tsv; do
    wrong "eval: $file for questions" "$file" eval squad.h5 --corpus "$file"
done

# Weights of width 16 are no whole blocks and become bf16, which changes every loss. The changes of
# an even and an odd one would nearly cancel.
grep even labels.tsv >yes.tsv
for model in $pretrained $tasks transformer; do
    case $model in
    classify | cloze) set -- yes.tsv ;;
    squad) set -- questions.json ;;
    transformer) set -- source.txt target.txt --beam 1 --max-length 2 ;;
    *) set -- text.txt --seq 16 ;;
    esac
    run eval $model.h5 --json --corpus "$@"
    mv out plain.json
    run eval $model.h5 --json --dtype q8_0 --corpus "$@"
    check "eval: $model, its weights packed" eval 'test $code = 0 && ! cmp -s out plain.json'
done
run eval bert.h5 --corpus text.txt --dtype q5_1
check 'eval: a type that is not there' eval 'test $code = 2 && grep -q q5_1 err'

for task in $tasks; do
    file=labels.tsv latin=latin.tsv model=bert
    set -- --task $task --out bad.h5
    case $task in
    squad) file=questions.json latin=latin.json ;;
    cloze)
        model=glm
        set -- "$@" --pattern '{text} [MASK]' --verbalizer even=two --verbalizer odd=one
        ;;
    esac
    verb=finetune takes="bert classify squad"
    test $model = bert || takes="glm cloze"
    set -- "$@" --eval $file
    longest=$(positions $model) from=$model.h5
    no_checkpoint "$@" --train $file --seq "$longest"
    other_models "$@" --train $file --seq "$longest"
    for bad in none.txt empty.txt $latin $from; do
        wrong "finetune: $bad to learn to $task" $bad finetune $from "$@" --train $bad --seq "$longest"
    done
    wrong "finetune: a sequence that is too long to $task" "$longest positions" finetune $from "$@" \
        --train $file --seq 128
    for setting in '"corpus": "text.txt"' '"tokenizer": "char"' '"preset": "bert-tiny"'; do
        echo "{$setting}" >settings.json
        wrong "finetune: the setting $setting" \
            "settings.json: ${setting%%:*} is a setting of \`wengert pretrain'" finetune $from "$@" \
            --train $file --settings settings.json
    done
done
wrong 'finetune: a gpt checkpoint to contrast' gpt finetune gpt.h5 --task contrastive \
    --train lines.txt --eval lines.txt --out bad.h5
echo '{"epochs": 3}' >settings.json
wrong 'pretrain: a setting of finetune' '"epochs" is a setting' pretrain bert --corpus text.txt \
    --settings settings.json --out bad.h5

for model in $pretrained; do
    for file in none.h5 text.txt empty.h5 folder tokens.h5; do
        wrong "pretrain $model: beginning with $file" "$file" pretrain "$model" --init "$file" \
            --corpus text.txt --out bad.h5
    done
    for other in $pretrained; do
        test $model = $other ||
            wrong "pretrain $model: beginning with $other" "$other model" pretrain $model \
                --init $other.h5 --corpus text.txt --out bad.h5
        test $model = $other ||
            wrong "pretrain $model: going on with $other" "$other model" pretrain $model --resume \
                --steps 2 --out $other.h5
    done
    set -- pretrain $model --config $model.json --batch 2 --seq 16 --steps 1 --out bad.h5
    wrong "pretrain $model: on an empty text" ' no ' "$@" --corpus empty.txt --eval text.txt
    for file in none.txt latin.txt folder bert.h5; do
        wrong "pretrain $model: on $file" "$file" "$@" --corpus "$file" --eval text.txt
    done
    wrong "pretrain $model: a larger vocabulary" 'vocabulary' "$@" --corpus text.txt \
        --tokenizer other.json --eval text.txt
done

verb=convert
no_checkpoint bad.safetensors
for model in $pretrained; do
    for file in none.json empty.txt latin.txt folder; do
        wrong "convert: $model with $file for a tokenizer" "$file" convert $model.h5 bad.h5 \
            --tokenizer $file
    done
    wrong "convert: $model with a larger tokenizer" 'has 500 tokens' convert $model.h5 bad.h5 \
        --tokenizer other.json
    wrong "convert: $model with what is no configuration" 'vocab_size' convert $model.h5 bad.h5 \
        --config other.json
    test $model = llama || wrong "convert: $model to llama2.c's format" 'a llama only' convert $model.h5 \
        bad.bin
done

verb=info
no_checkpoint
verb=plot
no_checkpoint -o bad.svg

# ---- An output that is also an input ----

# kept NAME FILE ARGUMENT...: the command refuses to replace FILE, which it reads.
kept() {
    name=$1 file=$2
    shift 2
    cp "$file" before
    run "$@"
    check "$name" eval 'left_with 1 "$file is read and would be replaced" && cmp -s "$file" before'
}
cp gpt.h5 read.h5
cp text.txt read.txt
ln -s read.txt linked.txt
kept 'report: its checkpoint' read.h5 report read.h5 -o read.h5
kept 'report: its corpus' read.txt report read.h5 --corpus text.txt --corpus read.txt -o read.txt
kept 'convert: IN' read.h5 convert read.h5 read.h5
kept 'convert: its tokenizer' other.json convert read.h5 other.json --tokenizer other.json
kept 'tokenizer train: a text' read.txt tokenizer train --corpus text.txt read.txt --out read.txt
kept 'tokenizer train: a link to a text' linked.txt tokenizer train --corpus read.txt --out linked.txt
kept 'embed: its checkpoint' read.h5 embed read.h5 --text read.txt --out read.h5
kept 'eval: its corpus' labels.tsv eval classify.h5 --corpus labels.tsv --predictions labels.tsv
for option in --log --trace; do
    kept "pretrain $option: its corpus" read.txt pretrain gpt --config gpt.json --corpus text.txt read.txt \
        --eval text.txt --out bad.h5 $option read.txt
    kept "pretrain $option: its held-out text" read.txt pretrain gpt --config gpt.json --corpus text.txt \
        --eval read.txt --out bad.h5 $option read.txt
done
kept 'pretrain --overwrite: its corpus' read.txt pretrain gpt --config gpt.json --corpus read.txt \
    --out read.txt --overwrite

finish
