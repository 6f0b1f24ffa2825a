#!/bin/sh
# `wengert embed' as a user runs it: vectors in files, lines by similarity, bad input. Prints TAP.
. "$(dirname "$0")/setup.sh"

# ---- Models of two kinds of sentences ----

numbers_in_order >text.txt
write_vocabulary
cat >gpt.json <<END
{"vocab_size": 18, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 24, "bos_token_id": 0,
 "eos_token_id": 0, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
END
cat >bert.json <<END
{"vocab_size": 18, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 64, "max_position_embeddings": 24, "hidden_dropout_prob": 0,
 "attention_probs_dropout_prob": 0}
END
for model in gpt bert; do
    succeeds "$model is trained" pretrain $model --corpus text.txt --eval text.txt \
        --tokenizer vocab.txt --config $model.json --batch 8 --seq 24 --seed 3 --lr 0.01 \
        --steps 100 --out $model.h5
done

# ---- Files of vectors ----

printf 'one two three .\n\nnine ten\r\none two three .\nseven eight nine .\n' >lines.txt

# The numbers of an .npy of (4, 32) in f32, a line each; its header takes 128 bytes.
numbers() {
    tail -c +129 "$1" | od -An -v -t f4 -w128 | tr -s ' ' | sed 's/^ //'
}

for model in bert gpt; do
    for pooling in mean cls; do
        run embed $model.h5 --text lines.txt --pooling $pooling --out $model-$pooling.npy
        check "$model writes $pooling vectors of length 1" eval 'test $code = 0 && ! test -s out &&
            grep -q "^wengert: note: 4 vectors of 32 numbers are in $model-$pooling.npy" err &&
            test $(wc -c <$model-$pooling.npy) = 640 &&
            head -c 128 $model-$pooling.npy | grep -aq "<f4.*(4, 32)" &&
            numbers $model-$pooling.npy | awk "{ for (i = 1; i <= NF; i++) sum += \$i * \$i }
                NF != 32 || (sum - NR) ^ 2 > 1e-8 { exit 1 } END { exit NR != 4 }"'
        check "equal lines have one $pooling vector by $model" eval \
            'numbers $model-$pooling.npy >a && test "$(sed -n 1p a)" = "$(sed -n 3p a)" &&
                test "$(sed -n 1p a)" != "$(sed -n 2p a)"'
    done
    check "the poolings of $model differ" eval '! cmp -s $model-mean.npy $model-cls.npy'
done
run embed bert.h5 --text lines.txt --not-normalized --limit 2 --out long.npy
check 'lengths are kept where asked, and a limit takes the first lines' eval 'test $code = 0 &&
    test $(wc -c <long.npy) = 384 && numbers long.npy | awk "{ sum = 0
        for (i = 1; i <= NF; i++) sum += \$i * \$i
        if ((sum - 1) ^ 2 < 1e-3) exit 1 }"'
run embed bert.h5 --text lines.txt --out vectors.h5
check 'an HDF5 file is written' eval 'test $code = 0 && head -c 4 vectors.h5 | grep -q HDF'
if command -v h5dump >/dev/null; then
    check 'it has the vectors as a dataset' eval 'h5dump -H -d /embeddings vectors.h5 | grep -q "( 4, 32 )"'
else
    skip 'it has the vectors as a dataset' 'no h5dump'
fi

# ---- Similar lines ----

for model in bert gpt; do
    run embed $model.h5 --text lines.txt --similar 'one two three .'
    check "$model ranks lines by their similarity to a text" eval 'test $code = 0 &&
        test "$(wc -l <out)" = 4 && head -n 2 out | cut -f 2 >a &&
        printf "one two three .\none two three .\n" | cmp -s - a && grep -q "^1.0000	one" out &&
        cut -f 1 out | sort -c -g -r'
done
run embed bert.h5 --text lines.txt --similar 'seven eight' --top 1
check 'as many lines as are asked for' test "$(wc -l <out)" = 1
run embed bert.h5 --text lines.txt --similar 'one two three .' --top 3 --json
check 'similar lines are JSON' eval 'test $code = 0 && grep -q "\"text\": \"one two three .\"" out &&
    grep -q "\"line\": 4" out && test $(grep -c "\"similarity\"" out) = 3'

# ---- Mistakes ----

misused 'RUN.h5 is missing' embed
misused '--text FILE is missing' embed bert.h5 --out bad.npy
misused '--out FILE or --similar TEXT is missing' embed bert.h5 --text lines.txt
misused 'must end in .npy or .h5' embed bert.h5 --text lines.txt --out bad.txt
misused "there is no 'max'" embed bert.h5 --text lines.txt --out bad.npy --pooling max
misused 'whole number' embed bert.h5 --text lines.txt --similar one --top 0
printf 'one\0two\n' >binary.txt
refuses_each embed bert.h5 <<'END'
a file that is no text | binary.txt, line 1 | --text binary.txt --out bad.npy
an empty text to compare with | the text is empty | --text lines.txt --similar ''
a folder that is not there | none/bad.npy | --text lines.txt --out none/bad.npy
END
if test -c /dev/full; then
    "$wengert" embed bert.h5 --text lines.txt --similar one 2>err >/dev/full
    code=$?
    check 'a full disk is told of' eval 'test $code = 1 && grep -q "No space" err'
else
    skip 'a full disk is told of' 'no /dev/full'
fi

finish
