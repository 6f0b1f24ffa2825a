#!/bin/sh
# Options that are given as 0: each number of --help is refused as 0, or has a meaning that this script
# knows and tests. An option that is new in --help fails until it stands in the table. Prints TAP.
. "$(dirname "$0")/setup.sh"

# ---- Every option with a number ----

# Verb or `*', option, and what --help says of 0; `used': 0 is a number like others, and is tested below;
# `refused': when more is known, likewise.
cat >table <<'END'
pretrain|masked-share|refused
pretrain|span-mean|refused
pretrain|causal-share|refused
pretrain|final-masked-share|0: it does not change
pretrain|sentence-share|used
pretrain|document-share|used
finetune|temperature|refused
finetune|dropout|used
finetune|token-column|refused
finetune|tag-column|refused
eval|token-column|refused
eval|tag-column|refused
*|accumulate-ramp|(0)
*|seq-ramp|(0)
*|lr|used
*|warmup|used
*|final|used
*|momentum|0: plain SGD
*|beta1|used
*|beta2|used
*|weight-decay|used
*|clip|0 does not clip
*|seed|0)
*|ema|0 keeps the weights
*|zero|0)
*|lora-dropout|(0)
*|patience|(0: never)
*|timeout|0: wait for ever
*|temperature|0 always takes the likeliest
*|top-k|0: all
*|top-p|0: the likeliest alone
*|min-p|0: all
*|length-penalty|0: by nothing
tokenizer pack|hold-out|0: nothing
bench ops|seconds|used
bench data|seconds|used
plan|latency|0: none
END

# The options of a verb whose argument is a number, a line each with its help.
numbers() {
    "$wengert" $1 --help |
        awk '/^                             / { sub(/^ +/, " "); line = line $0; next } { print line; line = $0 } END { print line }' |
        sed -n 's/^ .*--\([a-z0-9-]*\)=\(N\|X\|X,X\.\.\.\|R\|T\|US\|GB\|SECONDS\|STAGE\|STEPS\|SIZE\) /\1 /p'
}

# One test a verb, which names each option that is neither refused nor in the table.
check_verb() {
    verb=$1
    : >err
    numbers "$verb" >options
    while read -r option help; do
        "$wengert" $verb "--$option" 0 "--$option" x >out 2>usage </dev/null # which ends in either case
        grep -q -- "--$option" usage && ! grep -q "'x'" usage && continue
        says=$(awk -F'|' -v verb="$verb" -v option="$option" \
            '$2 == option && ($1 == verb || $1 == "*") { print $3; exit }' table)
        case $says in
        '') echo "$verb --$option 0 is taken" >>err ;;
        used | refused) ;;
        *) echo "$help" | grep -qF -- "$says" || echo "--help of $verb --$option lacks: $says" >>err ;;
        esac
    done <options
    check "each number of wengert $verb is refused as 0 or has a meaning" test ! -s err
}
for verb in pretrain finetune eval generate score embed fill translate 'tokenizer train' \
    'tokenizer pack' gradcheck plan plot convert 'bench ops' 'bench train' 'bench generate' \
    'bench gemm' 'bench attention' 'bench data' 'bench checkpoint'; do
    check_verb "$verb"
done
numbers pretrain >options
check 'the numbers of --help are found' eval 'grep -q "^beta1 " options && test "$(wc -l <options)" -gt 25'

# ---- Options that are used: the loss is another than without them ----

numbers_in_order >text.txt
write_vocabulary
tiny gpt 18 32 >gpt.json
tiny glm 24 32 >glm.json

# Prints the loss at the end, with nine digits.
loss_of() {
    model=$1
    shift
    "$wengert" pretrain "$model" --corpus text.txt --config "$model.json" --tokenizer vocab.txt --batch 4 --seq 32 \
        --steps 3 --lr 0.001 --seed 1 --json --overwrite --out loss.h5 "$@" 2>err | sed -n 's/^ *"loss": //p'
}
differ() {
    name=$1
    test -n "$2" && test -n "$3" && test "$2" != "$3"
    check "$name" test $? = 0
}

base=$(loss_of gpt)
for option in lr final beta1 beta2 weight-decay; do
    differ "--$option 0 is used" "$base" "$(loss_of gpt "--$option" 0)"
done
differ '--warmup 0 is used' "$(loss_of gpt --steps 10)" "$(loss_of gpt --steps 10 --warmup 0)"
for case in sgd/momentum muon/momentum muon/beta1 adam/beta1 lion/beta1; do
    optimizer=${case%/*} option=${case#*/}
    usual=$(loss_of gpt --optimizer "$optimizer")
    zero=$(loss_of gpt --optimizer "$optimizer" "--$option" 0)
    nearly=$(loss_of gpt --optimizer "$optimizer" "--$option" 1e-12)
    differ "--optimizer $optimizer --$option 0 is used" "$usual" "$zero"
    check 'it is what 1e-12 is' awk -v a="$zero" -v b="$nearly" 'BEGIN { exit !(a && (a - b) ^ 2 < 1e-10) }'
done
echo '{"optimizer": "sgd", "momentum": 0}' >settings.json
check 'a 0 of --settings is that of the option' test "$(loss_of gpt --settings settings.json)" = \
    "$(loss_of gpt --optimizer sgd --momentum 0)"
base=$(loss_of glm)
differ '--sentence-share 0 is used' "$base" "$(loss_of glm --sentence-share 0)"
differ '--document-share 0 is used' "$base" "$(loss_of glm --document-share 0)"

# ---- A run of so few steps that a share of them is none ----

rates_of() {
    rm -f log
    loss_of gpt --log log "$@" >/dev/null
    sed -n 's/.*"lr": *\([0-9.e+-]*\).*/\1/p' log | tr '\n' ' '
}
for schedule in linear cosine wsd; do
    check "one step by $schedule is at the peak" test "$(rates_of --steps 1 --schedule $schedule)" = '0.001 '
done
check 'wsd of three steps falls in the last one' test "$(rates_of --schedule wsd --final 0.5)" = '0.001 0.001 0.0005 '

# ---- Refusals ----

misused "--epochs: '0' is not a number above 0" finetune run.h5 --task classify --epochs 0
misused '--decay-steps' pretrain gpt --decay-steps 0
misused '--price' plan llama-15m --price 0
misused '--masked-share' pretrain roberta --objective mlm --masked-share 0 --corpus text.txt --out bad.h5
misused '--span-mean' pretrain roberta --objective mlm --span-mean 0 --corpus text.txt --out bad.h5
misused '--causal-share' pretrain roberta --objective hybrid --causal-share 0 --corpus text.txt --out bad.h5
misused '--masked-share' pretrain glm --masked-share 0 --corpus text.txt --out bad.h5
misused '--span-mean' pretrain glm --span-mean 0 --corpus text.txt --out bad.h5
misused '--temperature' finetune run.h5 --task contrastive --temperature 0 --out bad.h5
echo '{"epochs": 0}' >epochs.json
refuses '"epochs": 0 of --settings' 'epochs.json: epochs is 0; it must be above 0' finetune run.h5 --task classify --settings epochs.json

# ---- Dropout that a model without dropout is given ----

printf 'one two three\nfour five six\nseven eight nine\nten eleven twelve\n' >lines.txt
echo '{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}' >modern.json
"$wengert" pretrain modernbert --corpus text.txt --config modern.json --tokenizer vocab.txt --batch 2 --seq 16 --steps 1 \
    --out modern.h5 >/dev/null 2>&1
contrast() {
    "$wengert" finetune modern.h5 --task contrastive --train lines.txt --eval lines.txt --steps 2 --batch 4 --temperature 1 --seq 16 \
        --json --overwrite --out tuned.h5 "$@" 2>err | sed -n 's/^ *"loss": //p'
}
differ '--dropout 0 is used' "$(contrast)" "$(contrast --dropout 0)"

# ---- Words with labels: columns are counted from 1 ----

printf 'a\tX\nb\tY\n\n' >words.conll
refuses '--token-column 0' 'the number of a column, from 1 on' finetune modern.h5 --task tokens --train words.conll \
    --eval words.conll --token-column 0 --out bad.h5

# ---- Writing ----

tiny gpt 280 32 >bytes.json
loss_of gpt --tokenizer bpe --config bytes.json >/dev/null
write() {
    "$wengert" generate loss.h5 --prompt one --max-tokens 20 --seed 3 "$@" 2>err
}
greedy=$(write --temperature 0)
check '--top-p 0 takes the likeliest token' test "$(write --temperature 1 --top-p 0)" = "$greedy"
check '--top-p 1e-9 does so, too' test "$(write --temperature 1 --top-p 1e-9)" = "$greedy"
check '--top-p 1 does not' test "$(write --temperature 1 --top-p 1)" != "$greedy"

# A generation_config.json of another program, as `convert' keeps it.
"$wengert" convert loss.h5 folder >/dev/null 2>&1
published() {
    rm -f published.h5
    echo "$1" >folder/generation_config.json
    "$wengert" convert folder published.h5 >/dev/null 2>&1
}
say() {
    "$wengert" generate published.h5 --prompt one --max-tokens 20 --seed 3 "$@" 2>err
}
published '{"do_sample": true, "top_p": 0.0}'
check '"top_p": 0.0 takes the likeliest token' test "$(say)" = "$greedy"
check '--top-p rules over it' test "$(say --top-p 1)" != "$greedy"
published '{"do_sample": true, "top_p": 1.0, "top_k": 0, "min_p": 0.0}'
check '"top_k" and "min_p" of 0 keep all tokens' test "$(say)" = "$(write --temperature 1)"
for value in '"repetition_penalty": 0' '"max_new_tokens": 0' '"top_p": -1'; do
    published "{\"do_sample\": true, $value}"
    key=${value#\"}
    refuses "$value" "${key%%\"*} is" generate published.h5 --prompt one
done
finish
