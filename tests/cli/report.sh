#!/bin/sh
# `wengert report': a page that needs no network, of a decoder and of an encoder. Prints TAP.
. "$(dirname "$0")/setup.sh"
book 900 >text.txt
tiny gpt 300 32 2 >gpt.json
echo '{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
 "intermediate_size": 32, "max_position_embeddings": 32}' >bert.json
for model in gpt bert; do
    run pretrain $model --corpus text.txt --config $model.json --batch 4 --seq 32 --steps 12 --eval-every 4 \
        --out $model.h5
done

run report gpt.h5 -o gpt.html --text 'Alice & <the> rabbit' --corpus text.txt
check 'a page of a decoder' eval 'test $code = 0 && ! test -s err && tail -n 1 gpt.html | grep -q "</html>"'
check 'it needs no network and no scripts' eval '! grep -qiE "https?://|<script|<link|@import|url\(" gpt.html'
check 'light and dark' grep -q 'prefers-color-scheme:dark' gpt.html
check 'curves of training and held-out text' test "$(grep -o '<polyline' gpt.html | wc -l)" = 2
check 'a map for each head of each layer' test "$(grep -o 'data:image/bmp' gpt.html | wc -l)" = 4
check 'text is quoted' eval 'grep -q "Alice &amp; &lt;the&gt; rabbit" gpt.html && ! grep -q "<the>" gpt.html'
check 'histograms of 10 matrices and of their gradients' test \
    "$(grep -o 'class="cell"' gpt.html | wc -l)" = 20
check 'the configuration of model and run' eval 'grep -q "<td>n_embd</td><td>16</td>" gpt.html &&
    grep -q "<td>batch</td><td>4</td>" gpt.html'
check 'samples' test "$(grep -o 'class="sample"' gpt.html | wc -l)" = 3

# The first map: a causal one of 20 x 20 or so. The first row sees itself alone, with all its weight.
grep -o 'base64,[A-Za-z0-9+/]*' gpt.html | head -n 1 | cut -c8- | base64 -d >map.bmp
number() {
    od -An -tu4 -j "$1" -N 4 map.bmp | tr -d ' '
}
columns=$(number 18) rows=$(number 22) data=$(number 10)
stride=$(((columns + 3) / 4 * 4))
od -An -v -tu1 -j $((data + stride * (rows - 1))) -N "$columns" map.bmp | tr -s ' \n' '\n\n' | grep . >row
check 'a causal map is one of shares' eval 'test "$rows" = "$columns" &&
    test "$(head -n 1 row)" = 255 && test "$(tail -n +2 row | sort -u)" = 0'

run report bert.h5 -o bert.html --text 'Alice was very tired'
check 'a page of an encoder' eval 'test $code = 0 && grep -q "Filled blanks" bert.html &&
    grep -q "Alice was very \[MASK\]" bert.html && grep -q "\[CLS\]" bert.html'
check 'its maps' test "$(grep -o 'data:image/bmp' bert.html | wc -l)" = 8
run report bert.h5 -o bert.html
check 'without a text there are none' eval 'test $code = 0 && ! grep -q "data:image" bert.html'

# A model with a head is no model of pretraining: its attention is not shown.
printf 'one rabbit\tgood\nno hatter\tbad\n%.0s' 1 2 3 4 5 6 >labels.tsv
run finetune bert.h5 --task classify --train labels.tsv --eval labels.tsv --steps 2 --batch 4 --seq 32 --out head.h5
run report head.h5 -o head.html --text 'Alice was very tired'
check 'a page of an encoder with a head' eval 'test $code = 0 && grep -q "without a head" head.html &&
    ! grep -q "data:image" head.html'

misused 'missing -o FILE' report gpt.h5
misused 'missing RUN.h5' report -o bad.html
refuses 'a file that is not there' 'none.h5' report none.h5 -o bad.html
refuses 'a text' 'plain text' report text.txt -o bad.html
refuses 'a folder that is not there' 'none/bad.html' report gpt.h5 -o none/bad.html
refuses 'a text beyond the positions' 'takes 31 at most' report gpt.h5 -o bad.html --text "$(yes Alice | head -n 99 | tr '\n' ' ')"
refuses 'a corpus that is not there' 'none.txt' report gpt.h5 -o bad.html --corpus none.txt
finish
