#!/bin/sh
# `wengert score' as a user runs it: pairs of sentences and lines of a text by a model of each objective
# that scores; bad input. Prints TAP.
#
# WENGERT: the command (default ./wengert). WENGERT_DATA: real data (default ../shared/data beside the
# source), without which a test is skipped.
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
data=${WENGERT_DATA:-$source/../shared/data}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-score.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- Models of numbers in their order ----

numbers_in_order >text.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . one two three four five six seven eight nine \
    ten eleven twel '##ve' >vocab.txt
cat >gpt.json <<END
{"vocab_size": 19, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 24, "bos_token_id": 0,
 "eos_token_id": 0, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
END
cat >bert.json <<END
{"vocab_size": 19, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 64, "max_position_embeddings": 24, "hidden_dropout_prob": 0,
 "attention_probs_dropout_prob": 0}
END
cat >glm.json <<END
{"vocab_size": 24, "hidden_size": 32, "num_layers": 1, "num_attention_heads": 2,
 "max_sequence_length": 24, "embedding_dropout_prob": 0, "attention_dropout_prob": 0,
 "output_dropout_prob": 0}
END
models='gpt bert glm'
for model in $models; do
    run pretrain $model --corpus text.txt --eval text.txt --tokenizer vocab.txt --config $model.json \
        --batch 8 --seq 24 --seed 3 --lr 0.01 --steps 300 --out $model.h5
    check "$model is trained" test "$code" = 0
done

# ---- Pairs ----

pair() {
    printf '{"sentence_good": "%s", "sentence_bad": "%s", "linguistics_term": "%s", "UID": "%s", "field": "numbers"}\n' "$@"
}
{
    pair 'one two three four five six .' 'one two four three five six .' order swapped
    pair 'seven eight nine ten eleven twelve .' 'seven eight nine ten eleven two .' order swapped
    echo
    pair 'one two three four five six .' 'one two three four five six .' same swapped
} >order.jsonl
printf '{"sentence_bad": "seven nine eight .", "sentence_good": "seven eight nine ."}\r\n' >plain.jsonl
for model in $models; do
    run score $model.h5 --pairs order.jsonl plain.jsonl
    check "$model prefers numbers in their order, and ties are wrong" eval 'test $code = 0 &&
        grep -q "^swapped  *66.7 % of 3 pairs, 1 tie$" out && grep -q "^plain  *100.0 % of 1 pairs$" out &&
        grep -q "^order  *100.0 % of 2 pairs$" out && grep -q "^same  *0.0 % of 1 pairs, 1 tie$" out &&
        grep -q "^mean over 2 files: 83.33 %; 4 pairs, 1 ties" out'
done
run score gpt.h5 --pairs order.jsonl --pairs plain.jsonl --json
check 'results are JSON' eval 'test $code = 0 && grep -q "\"accuracy\": 0.83333333" out &&
    grep -q "\"pairs\": 4" out && grep -q "\"ties\": 1" out && grep -q "\"file\": \"order.jsonl\"" out &&
    grep -q "\"name\": \"swapped\"" out && grep -q "\"field\": \"numbers\"" out &&
    grep -q "\"name\": \"same\"" out'
run score bert.h5 --pairs order.jsonl plain.jsonl --limit 2
check 'a limit takes the first pairs of each file' eval 'test $code = 0 && ! grep -q same out &&
    grep -q "^mean over 2 files: 100.00 %; 3 pairs, 0 ties" out'
sed 's/"UID": "swapped"/"UID": "other"/;q' order.jsonl | cat - order.jsonl >mixed.jsonl
run score gpt.h5 --pairs mixed.jsonl
check 'a file of several UIDs has its own name' grep -q '^mixed  *75.0 % of 4 pairs' out

# ---- Lines of a text ----

printf 'one two three four five six .\n\ntwelve one twelve\n' >lines.txt
for model in $models; do
    run score $model.h5 --text lines.txt
    check "$model scores each line" eval 'test $code = 0 && test "$(wc -l <out)" = 2 &&
        awk -F "\t" "NF != 3 || \$1 >= 0 || \$2 < 3 { exit 1 }
            { mean[NR] = \$1 / \$2 } END { exit !(mean[1] > mean[2]) }" out &&
        grep -q "	twelve one twelve$" out && grep -q "^wengert: note: 2 lines, .* perplexity" err'
    cp out whole
    run score $model.h5 --text lines.txt --batch-tokens 1
    check "$model in batches of one sequence" eval 'test $code = 0 && cut -f 2,3 out >a &&
        cut -f 2,3 whole | cmp -s - a && paste out whole |
        awk -F "\t" "(\$1 - \$4) ^ 2 > 1e-6 { exit 1 }"'
done
run score gpt.h5 --text lines.txt --json
check 'lines are JSON' eval 'test $code = 0 && grep -q "\"line\": 3" out &&
    grep -q "\"perplexity\": [0-9]" out && grep -q "\"tokens\": 4" out'
run score gpt.h5 --text lines.txt --limit 1
check 'a limit takes the first lines' test "$(wc -l <out)" = 1
run score bert.h5 --text lines.txt
cut -f 1 out >a
run score bert.h5 --text lines.txt --within-words
check 'within words, later tokens of a word are masked with it' eval 'test $code = 0 && cut -f 1 out >b &&
    test "$(head -n 1 a)" = "$(head -n 1 b)" && test "$(tail -n 1 a)" != "$(tail -n 1 b)"'

# ---- Real pairs ----

if test -f "$data/blimp/adjunct_island.jsonl"; then
    run score bert.h5 --pairs "$data"/blimp/a*.jsonl --limit 3
    check 'files of BLiMP are read as they are' eval 'test $code = 0 &&
        grep -q "^adjunct_island  *[0-9.]* % of 3 pairs" out && grep -q "^by phenomenon" out'
else
    skip 'files of BLiMP are read as they are' "no $data/blimp"
fi

# llama2.c's own logits of these tokens, ref_greedy_logits_f32.bin, summed.
if test -f "$data/stories260K/stories260K.bin"; then
    run convert "$data/stories260K/stories260K.bin" stories.h5 --tokenizer "$data/stories260K/tok512.bin"
    echo 'Once upon a time, there was a little girl named Lily.' >once.txt
    echo "$(cat once.txt) She loved to play outside in the park." >>once.txt
    run score stories.h5 --text once.txt
    check 'scores are those of the logits of llama2.c' \
        eval 'test "$(cut -f 1,2 out | tr "\t\n" "  ")" = "-1.5021 15 -5.5910 31 "'
else
    skip 'scores are those of the logits of llama2.c' "no $data/stories260K"
fi

# ---- Mistakes ----

misused 'RUN.h5 is missing' score
misused '--pairs FILE or --text FILE is missing' score gpt.h5
misused 'exclude each other' score gpt.h5 --pairs order.jsonl --text lines.txt
misused '--text and --pairs exclude each other' score gpt.h5 --text lines.txt text.txt
misused 'whole number' score gpt.h5 --pairs order.jsonl --limit 0

# The last line of a file of pairs is wrong.
wrong_pair() {
    name=$1 text=$2
    { cat plain.jsonl && printf "$3\n"; } >wrong.jsonl
    refuses "$name" "wrong.jsonl, line 2: $text" score gpt.h5 --pairs wrong.jsonl
}
wrong_pair 'a line that is no JSON' 'it is no JSON object' 'one two three'
wrong_pair 'a line that is a list' 'it is no JSON object' '["one", "two"]'
wrong_pair 'a pair without a good sentence' 'it has no text "sentence_good"' '{"sentence_bad": "one"}'
wrong_pair 'a pair without a bad sentence' 'it has no text "sentence_bad"' '{"sentence_good": "one"}'
wrong_pair 'a sentence that is a number' 'it has no text "sentence_bad"' \
    '{"sentence_good": "one", "sentence_bad": 2}'
wrong_pair 'an empty sentence' 'the text is empty' '{"sentence_good": "one", "sentence_bad": ""}'
wrong_pair 'a line that is not UTF-8' 'it is no JSON object' '{"sentence_good": "\377"}'
wrong_pair 'a sentence that is too long' 'the text has 32 tokens; the model takes 24' \
    '{"sentence_good": "one", "sentence_bad": "'"$(yes one | head -n 32 | tr '\n' ' ')"'"}'
: >empty.txt
printf 'one\0two\n' >binary.txt
printf 'one\ntw\377o\n' >latin.txt
refuses 'an empty file' 'empty.txt: the file is empty' score gpt.h5 --text empty.txt
refuses 'a file that is not there' 'none.txt' score gpt.h5 --text none.txt
refuses 'a folder' 'cannot read .' score gpt.h5 --pairs .
refuses 'a file that is no text' 'binary.txt, line 1' score gpt.h5 --text binary.txt
refuses 'a text that is not UTF-8' 'latin.txt, line 2' score gpt.h5 --text latin.txt
refuses 'a checkpoint that is not there' 'none.h5' score none.h5 --text lines.txt
refuses 'within words by a model that masks none' '--within-words' \
    score gpt.h5 --text lines.txt --within-words
printf 'one two\tyes\ntwo one\tno\n' >labels.tsv
run finetune bert.h5 --task classify --train labels.tsv --eval labels.tsv --seq 16 --steps 1 \
    --out classify.h5
refuses 'scoring by a fine-tuned model' "finetune --task classify'; \`wengert score' takes bert, glm" \
    score classify.h5 --text lines.txt

# ---- Ctrl-C ----

awk 'BEGIN {
    split("one two three four five six seven eight nine ten", digits, " ")
    for (i = 0; i < 9999; i++) {
        for (n = i * 100003; n >= 1; n = int(n / 10))
            printf "%s ", digits[n % 10 + 1]
        print ""
    }
}' >many.txt
"$wengert" score bert.h5 --text many.txt --batch-tokens 8 >many.out 2>err &
process=$!
sleep 1
kill -TERM $process
wait $process
code=$?
check 'a signal ends it, without results' eval 'test $code = 143 && ! test -s many.out && ! test -s err'

finish
