#!/bin/sh
# `wengert score' as a user runs it: pairs of sentences and lines of a text by a model of each objective
# that scores; bad input. Prints TAP.
#
# WENGERT_DATA: real data (default ../shared/data beside the
# source), without which a test is skipped.
. "$(dirname "$0")/setup.sh"

# ---- Models of numbers in their order ----

numbers_in_order >text.txt
write_vocabulary
sed -i 's/^twelve$/twel\n##ve/' vocab.txt
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
    succeeds "$model is trained" pretrain $model --corpus text.txt --eval text.txt \
        --tokenizer vocab.txt --config $model.json --batch 8 --seq 24 --seed 3 --lr 0.01 \
        --steps 300 --out $model.h5
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
    check "$model prefers numbers in their order, and ties are wrong" has \
        '^swapped  *66.7 % of 3 pairs, 1 tie$' '^plain  *100.0 % of 1 pairs$' \
        '^order  *100.0 % of 2 pairs$' '^same  *0.0 % of 1 pairs, 1 tie$' \
        '^mean over 2 files: 83.33 %; 4 pairs, 1 ties'
done
run score gpt.h5 --pairs order.jsonl --pairs plain.jsonl --json
check 'results are JSON' has '"accuracy": 0.83333333' '"pairs": 4' '"ties": 1' \
    '"file": "order.jsonl"' '"name": "swapped"' '"field": "numbers"' '"name": "same"'
run score bert.h5 --pairs order.jsonl plain.jsonl --limit 2
check 'a limit takes the first pairs of each file' eval 'test $code = 0 && ! grep -q same out &&
    grep -q "^mean over 2 files: 100.00 %; 3 pairs, 0 ties" out'
sed 's/"UID": "swapped"/"UID": "other"/;q' order.jsonl | cat - order.jsonl >mixed.jsonl
shows 'a file of several UIDs has its own name' '^mixed  *75.0 % of 4 pairs' score gpt.h5 \
    --pairs mixed.jsonl

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
check 'lines are JSON' has '"line": 3' '"perplexity": [0-9]' '"tokens": 4'
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
    check 'files of BLiMP are read as they are' has '^adjunct_island  *[0-9.]* % of 3 pairs' \
        '^by phenomenon'
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
printf 'one\0two\n' >binary.txt
refuses_each score gpt.h5 <<'END'
a folder | cannot read . | --pairs .
a file that is no text | binary.txt, line 1 | --text binary.txt
within words by a model that masks none | --within-words | --text lines.txt --within-words
END

# ---- Ctrl-C ----

awk 'BEGIN {
    split("one two three four five six seven eight nine ten", digits, " ")
    for (i = 0; i < 9999; i++) {
        for (n = i * 100003; n >= 1; n = int(n / 10))
            printf "%s ", digits[n % 10 + 1]
        print ""
    }
}' >many.txt
begin score bert.h5 --text many.txt --batch-tokens 8
sleep 1
stop TERM
check 'a signal ends it, without results' eval 'test $code = 143 && ! test -s out && ! test -s err'

finish
