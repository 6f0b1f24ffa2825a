#!/bin/sh
# The Transformer's sentence pairs in token files: written, trained on, reused, weighted, evaluated; bad
# input. Prints TAP.
. "$(dirname "$0")/setup.sh"
. "$source/tests/cli/reversed_pairs.sh"

write_pairs 200 1 a
write_pairs 100 77 b
write_pairs 20 5 held
cat >tiny.json <<END
{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
 "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "dropout": 0.1,
 "max_position_embeddings": 32}
END

# A run with this log and these options.
transformer() {
    log=$1
    shift
    run pretrain transformer --config tiny.json --batch 256 --seq 32 --steps 6 --seed 1 \
        --log "$log" "$@"
}

# ---- Token files ----

run tokenizer train --corpus a.from a.to b.from b.to --kind bpe --vocab-size 300 --out t.json
transformer text.log --corpus a.from a.to b.from b.to --tokenizer t.json --out text.h5
check 'pairs of texts are trained on' eval \
    'test $code = 0 && grep -q "^text   285 pairs, .* 15 pairs held out" err'
run tokenizer pack t.json a.from a.to b.from b.to --pairs --out pairs.h5
check 'pairs are packed' has '^pairs.h5: 300 documents, [0-9]* tokens'
transformer packed.log --corpus pairs.h5 --out packed.h5
losses_alone text.log >wanted && losses_alone packed.log >found
check 'a token file is trained on as its texts are' cmp wanted found
transformer mixed.log --corpus pairs.h5 held.from held.to --out mixed.h5
check 'token files stand beside texts' eval \
    'test $code = 0 && grep -q "^text   304 pairs, .* 16 pairs held out" err'
run tokenizer pack t.json held.from held.to --pairs --out held.h5
transformer eval.log --eval held.h5 --corpus pairs.h5 --out eval.h5
check 'a token file is measured on' eval \
    'test $code = 0 && grep -q "^text   300 pairs, .* 20 pairs held out" err'
printf '{"corpus": ["pairs.h5"], "eval": "b.from", "eval-target": "b.to"}' >run.json
transformer settings.log --settings run.json --out settings.h5
check 'a file of settings names the texts to measure on' grep -q '100 pairs held out' err
transformer settings.log --settings run.json --eval held.h5 --out settings.h5 --overwrite
check 'which the command line overrules' grep -q ' 20 pairs held out' err

transformer kept.log --corpus a.from a.to --tokenizer t.json --tokens kept.h5 --out kept-run.h5
check 'tokens are kept' eval 'test $code = 0 && test -s kept.h5'
made=$(ls -i kept.h5)
transformer kept.log --corpus a.from a.to --tokenizer t.json --tokens kept.h5 --out kept-run.h5 \
    --eval held.from held.to --overwrite
check 'and used again, whatever is held out' eval 'test $code = 0 && test "$made" = "$(ls -i kept.h5)"'
echo 'one more' >>a.from
refuses 'texts of which one has grown' 'and line 201 has none' pretrain transformer \
    --config tiny.json --corpus a.from a.to --tokenizer t.json --tokens kept.h5 --out bad.h5
echo 'more one' >>a.to
transformer kept.log --corpus a.from a.to --tokenizer t.json --tokens kept.h5 --out kept-run.h5 \
    --overwrite
check 'texts that changed are tokenised anew' eval \
    'test $code = 0 && grep -q "kept.h5 is made anew: the texts are others, or have changed" err'

# ---- Weights, and going on in the middle of an epoch ----

set -- --corpus a.from a.to b.from b.to --tokenizer t.json --schedule constant --warmup 1
transformer whole.log "$@" --corpus-weights 1,3 --steps 40 --out whole.h5
check 'files with weights are trained on' test $code = 0
sed 's/.*; //' out >measured
transformer parts.log "$@" --corpus-weights 1,3 --steps 23 --out parts.h5
run pretrain transformer --resume --steps 40 --log parts.log --out parts.h5
check 'a run goes on with them' test $code = 0
losses_alone whole.log >wanted && losses_alone parts.log >found
check 'and with the same bits' cmp wanted found
transformer even.log "$@" --steps 40 --out even.h5
losses_alone even.log >found
check 'without weights it sees others' eval '! cmp -s wanted found'
sed 's/.*; //' out >found
check 'but what is measured is the same' eval 'cmp found measured && grep -q tokens found'

# ---- Measuring ----

run eval text.h5 --corpus held.from held.to
cp out wanted
run eval text.h5 --corpus held.h5
check 'eval takes a token file, and reads its texts again' cmp out wanted
mkfifo from to
cat held.from >from &
cat held.to >to &
run eval text.h5 --corpus from to
check 'texts may come from pipes' cmp out wanted

# ---- Bad input ----

run tokenizer pack t.json a.from --out stream.h5
run tokenizer pack t.json a.from --sentences --out sentences.h5
head -n 7 held.to >short.to
size=$(wc -c <pairs.h5)
head -c $((size / 2)) pairs.h5 >cut.h5
refuses_each pretrain transformer --config tiny.json --out bad.h5 <<'END'
a stream is no pairs | tokens of pairs of sentences are wanted | --corpus stream.h5
nor are sentences | sentences.h5 has tokens of sentences | --corpus sentences.h5
a side alone | a.from has no other side | --corpus a.from pairs.h5 --tokenizer t.json
a token file that was cut short | cut.h5 | --corpus cut.h5 --tokenizer t.json
END
refuses_each <<'END'
a stream to measure on | tokens of pairs of sentences are wanted | eval text.h5 --corpus stream.h5
a GPT takes no pairs | pairs.h5 has tokens of pairs | pretrain gpt --corpus pairs.h5 --out bad.h5
nor does a BERT | tokens of sentences are wanted | pretrain bert --corpus pairs.h5 --out bad.h5
files of different lengths | and line 8 has none | tokenizer pack t.json held.from short.to --pairs \
    --out bad.h5
a token file for a checkpoint | pairs.h5 | translate pairs.h5 'one cat'
END
"$wengert" translate text.h5 <pairs.h5 >out 2>err
code=$?
check 'a token file is no text to translate' eval \
    'left_with 1 "it is no text" && test "$(grep -c "^wengert: " err)" = 1 && ! test -s out'
misused '--sentences and --pairs' tokenizer pack t.json a.from a.to --sentences --pairs --out bad.h5
misused '--hold-out does not apply to --pairs' tokenizer pack t.json a.from a.to --pairs --out bad.h5 \
    --hold-out 0.1
misused '--eval takes SOURCE and TARGET, or a token file' pretrain transformer --corpus pairs.h5 \
    --eval held.from --out bad.h5

finish
