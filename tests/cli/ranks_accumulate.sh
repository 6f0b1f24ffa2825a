#!/bin/sh
# The batches of a step, however its examples are cut into them and shared by ranks: one batch of eight,
# eight of one, and these on two ranks make the same steps, of every objective. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-accumulate.XXXXXX") || exit 1
mkdir "$work/.mpi" # of this mpirun: runs beside each other would share /tmp
export TMPDIR="$work/.mpi"
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

. "$source/tests/cli/mpirun.sh"

# ---- Texts of unequal lengths, and models without dropout ----

words() {
    awk -v first="$1" -v count="$2" 'BEGIN {
        split("one two three four five six seven eight nine ten eleven twelve", word)
        for (i = 0; i < count; i++) printf "%s%s", i ? " " : "", word[(first + 5 * i) % 12 + 1] }'
}
i=0
while test $i -lt 96; do
    echo "$(words $i $((1 + i * 5 % 9))) ."
    test $((i % 4)) = 3 && echo
    i=$((i + 1))
done >text.txt
i=0
while test $i -lt 8; do
    length=$((1 + i * 3 % 8))
    printf '%s\t%s\n' "$(words $i $length)" "$(test $((i % 2)) = 0 && echo even || echo odd)" >>labels.tsv
    printf '%s\t%s\n' "$(words $i $length)" "$(test $((i % 3)) = 0 && echo 'a,b' || echo b)" >>sets.tsv
    printf '%s\t%s\n' "$(words $i $length)" "$((i - 3)).5" >>numbers.tsv
    words $i $length | tr ' ' '\n' | awk '{ print $0 "\t" (/e$/ ? "B-e" : "O") }' >>tags.conll
    echo >>tags.conll
    printf '%s{"context": "%s", "qas": [{"id": "%s", "question": "two", "answers": [{"text": "%s", "answer_start": 0}]}]}' \
        "$(test $i = 0 || echo ', ')" "$(words $i $length)" $i "$(words $i 1)" >>paragraphs
    i=$((i + 1))
done
echo "{\"data\": [{\"paragraphs\": [$(cat paragraphs)]}]}" >questions.json
# Each pair fills a batch of nine tokens, and four of them fit into 36.
for i in 0 1 2 3; do
    words $i $((5 + i)) >>source.txt && echo >>source.txt
    words $i $((1 + i)) >>target.txt && echo >>target.txt
done
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . one two three four five six seven eight nine \
    ten eleven twelve >vocab.txt

encoder='"vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 96'
echo "{$encoder, \"hidden_dropout_prob\": 0, \"attention_probs_dropout_prob\": 0}" >bert.json
echo "{$encoder}" >modernbert.json
echo '{"vocab_size": 32, "hidden_size": 16, "num_layers": 1, "num_attention_heads": 2, "max_sequence_length": 24,
    "embedding_dropout_prob": 0, "attention_dropout_prob": 0, "output_dropout_prob": 0}' >glm.json
echo '{"vocab_size": 24, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 24, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0, "tie_word_embeddings": false}' >llama.json
echo '{"vocab_size": 160, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2,
    "dropout_rate": 0}' >t5.json
echo '{"vocab_size": 24, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "dropout": 0,
    "max_position_embeddings": 24}' >transformer.json

# ---- Runs ----

steps=4
how='--optimizer sgd --lr 0.05 --schedule constant --warmup 0 --seed 3 --timeout 120 --overwrite'

# train OBJECTIVE RANKS BATCH ACCUMULATE OUT OPTION...
train() {
    objective=$1 ranks_of=$2 batch=$3 accumulate=$4 name=$5
    shift 5
    case $objective in
    masked-lm) set -- pretrain bert "$@" ;;
    mlm | hybrid) set -- pretrain modernbert --objective "$objective" "$@" ;;
    causal-lm) set -- pretrain llama "$@" ;;
    blank-infilling) set -- pretrain glm "$@" ;;
    span-corruption) set -- pretrain t5 "$@" ;;
    translation) set -- pretrain transformer "$@" ;;
    classify | cloze) file=labels.tsv ;;
    multi-label) file=sets.tsv ;;
    regression) file=numbers.tsv ;;
    tokens) file=tags.conll ;;
    squad) file=questions.json ;;
    esac
    case $objective in
    squad) length=80 ;;
    span-corruption) length=48 ;; # several spans a sequence
    *) length=24 ;;
    esac
    case $objective in
    translation) set -- "$@" --config "$2.json" --tokenizer vocab.txt --corpus source.txt target.txt --eval source.txt \
        target.txt --seq 9 ;;
    cloze) set -- finetune blank-infilling.h5 --task cloze --train $file --eval $file --seq 24 \
        --pattern '{text} . [MASK]' --verbalizer even=two --verbalizer 'odd=one three' "$@" ;;
    classify | multi-label | regression | tokens | squad)
        set -- finetune masked-lm.h5 --task "$objective" --train $file --eval $file --seq $length "$@" ;;
    *) set -- "$@" --config "$2.json" --tokenizer vocab.txt --corpus text.txt --eval text.txt --seq $length ;;
    esac
    # shellcheck disable=SC2086
    ranks "$ranks_of" "$@" $how --steps "$steps" --batch "$batch" --accumulate "$accumulate" --out "$name.h5" --log "$name.log"
}

# same LOG LOG: whether all numbers of the steps agree but those of a clock.
same() {
    for log in "$1" "$2"; do
        sed 's/, "tokens_per_s": [^,}]*//; s/, "eval_[^,}]*//g' "$log.log" | tr ',{}:' '\n\n\n\n' >"$log.numbers"
    done
    awk 'NR == FNR { was[FNR] = $1; lines = FNR; next }
        { d = $1 - was[FNR]; d = d < 0 ? -d : d; size = $1 < 0 ? -$1 : $1
          if (!(d <= 2e-5 * (size > 1 ? size : 1))) { print "line " FNR ": " was[FNR] ", " $1; bad = 1; exit } }
        END { exit bad || FNR != lines || lines < 20 }' "$1.numbers" "$2.numbers"
}

if ! command -v mpirun >/dev/null; then
    skip 'several ranks' 'there is no mpirun; Debian has it in openmpi-bin'
    finish
fi
train masked-lm 2 1 8 probe
if grep -qE 'was built without MPI|MPI sees one' err; then
    skip 'several ranks' "$(grep -oE 'built without MPI|MPI sees one' err | head -n 1)"
    finish
fi

# ---- Every objective but contrastive, whose texts are compared with those of their batch ----

for objective in masked-lm mlm hybrid causal-lm blank-infilling span-corruption translation classify multi-label \
    regression tokens squad cloze; do
    case $objective in
    translation) whole=36 part=9 parts=4 ;;
    *) whole=8 part=1 parts=8 ;;
    esac
    train $objective 1 $whole 1 $objective
    check "$objective: a run in one batch a step" test $code = 0
    train $objective 1 $part $parts parts
    check "$objective: in $parts batches" same $objective parts
    rm -f parts.log
    train $objective 2 $part $parts ranks
    check "$objective: in $parts batches on two ranks" same $objective ranks
    rm -f ranks.log
done

for objective in masked-lm hybrid; do
    for stage in 1 2; do
        train $objective 2 1 8 sharded --zero $stage
        check "$objective: on two ranks with --zero $stage" same $objective sharded
        rm -f sharded.log
        train $objective 3 2 4 sharded --zero $stage
        check "$objective: in batches of two on three ranks with --zero $stage" same $objective sharded
        rm -f sharded.log
    done
done

# ---- Resuming ----

steps=6
train tokens 1 1 8 straight
steps=3
train tokens 1 1 8 stopped
run finetune --task tokens --resume --out stopped.h5 --steps 6 --log stopped.log
check 'a resumed run of several batches a step has the same bits' eval 'sed "s/, \"tokens_per_s\": [^,}]*//" straight.log >a &&
    sed "s/, \"tokens_per_s\": [^,}]*//" stopped.log >b; tail -n 1 a >c; tail -n 1 b >d; cmp c d'

# ---- What cannot be cut ----

words 3 4 >texts.txt && echo >>texts.txt && words 5 2 >>texts.txt
refuses 'a batch of one text that is compared with others' 'compared with the others of its batch' finetune \
    masked-lm.h5 --task contrastive --train texts.txt --eval texts.txt --batch 1 --accumulate 2 --seq 24 --out bad.h5

finish
