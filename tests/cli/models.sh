# shellcheck shell=sh
# A small model of each objective, its data and its command, for scripts that do the same with all
# of them. Scripts source this file after setup.sh; before it they may set $dropout (0.1) and
# $examples, the number of labelled texts (8).
dropout=${dropout:-0.1}
examples=${examples:-8}

# ---- Texts of unequal lengths ----

# words FIRST COUNT: so many words of twelve.
words() {
    awk -v first="$1" -v count="$2" 'BEGIN {
        split("one two three four five six seven eight nine ten eleven twelve", word)
        for (i = 0; i < count; i++) printf "%s%s", i ? " " : "", word[(first + 5 * i) % 12 + 1] }'
}
write_vocabulary
i=0
while test $i -lt 96; do
    echo "$(words $i $((1 + i * 5 % 9))) ."
    test $((i % 4)) = 3 && echo
    i=$((i + 1))
done >text.txt
i=0
while test $i -lt "$examples"; do
    length=$((1 + i * 3 % 8))
    text=$(words $i $length)
    echo "$text" >>lines.txt
    printf '%s\t%s\n' "$text" "$(test $((i % 2)) = 0 && echo even || echo odd)" >>labels.tsv
    printf '%s\t%s\n' "$text" "$(test $((i % 3)) = 0 && echo 'a,b' || echo b)" >>sets.tsv
    printf '%s\t%s\n' "$text" "$((i % 8 - 3)).5" >>numbers.tsv
    echo "$text" | tr ' ' '\n' | awk '{ print $0 "\t" (/e$/ ? "B-e" : "O") }' >>tags.conll
    echo >>tags.conll
    printf '%s{"context": "%s", "qas": [{"id": "%s", "question": "two", "answers": [{"text": "%s", "answer_start": 0}]}]}' \
        "$(test $i = 0 || echo ', ')" "$text" $i "$(words $i 1)" >>paragraphs
    i=$((i + 1))
done
echo "{\"data\": [{\"paragraphs\": [$(cat paragraphs)]}]}" >questions.json
# Each pair fills a batch of nine tokens, and four of them fit into 36.
i=0
while test $i -lt $((examples / 2)); do
    words $((i % 12)) $((5 + i % 4)) >>source.txt && echo >>source.txt
    words $((i % 12)) $((1 + i % 4)) >>target.txt && echo >>target.txt
    i=$((i + 1))
done

# ---- Configurations ----

encoder='"vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 24, "max_position_embeddings": 96'
echo "{$encoder, \"hidden_dropout_prob\": $dropout, \"attention_probs_dropout_prob\": $dropout}" >bert.json
echo "{$encoder}" >modernbert.json
tiny gpt 24 24 >gpt.json
echo "{\"vocab_size\": 32, \"hidden_size\": 16, \"num_layers\": 1, \"num_attention_heads\": 2,
    \"max_sequence_length\": 24, \"embedding_dropout_prob\": $dropout,
    \"attention_dropout_prob\": $dropout, \"output_dropout_prob\": $dropout}" >glm.json
echo '{"vocab_size": 24, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 24,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false}' >llama.json
t5='"vocab_size": 160, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2'
echo "{$t5, \"dropout_rate\": $dropout}" >t5.json
echo "{$t5, \"feed_forward_proj\": \"gated-gelu\", \"tie_word_embeddings\": false}" >gated.json
echo "{\"vocab_size\": 24, \"d_model\": 16, \"encoder_layers\": 1, \"decoder_layers\": 1,
    \"encoder_attention_heads\": 2, \"decoder_attention_heads\": 2, \"encoder_ffn_dim\": 24,
    \"decoder_ffn_dim\": 24, \"dropout\": $dropout, \"max_position_embeddings\": 24}" >transformer.json

# ---- Objectives ----

# Name, model to pretrain or to begin with, file, length of sequences.
table='masked-lm|bert|text.txt|24
mlm|modernbert|text.txt|24
hybrid|modernbert|text.txt|24
gpt|gpt|text.txt|24
causal-lm|llama|text.txt|24
blank-infilling|glm|text.txt|24
span-corruption|t5|text.txt|48
gated|t5|text.txt|48
translation|transformer|source.txt target.txt|9
classify|masked-lm.h5|labels.tsv|24
multi-label|masked-lm.h5|sets.tsv|24
regression|masked-lm.h5|numbers.tsv|24
tokens|masked-lm.h5|tags.conll|24
squad|masked-lm.h5|questions.json|80
contrastive|masked-lm.h5|lines.txt|24
cloze|blank-infilling.h5|labels.tsv|24'
objectives=$(echo "$table" | cut -d '|' -f 1)

# field OBJECTIVE NUMBER
field() {
    echo "$table" | sed -n "s/^$1|/&/p" | cut -d '|' -f "$2"
}

# train OBJECTIVE ARGUMENT...: `$with ARGUMENTS', by default `run', with the arguments of the
# objective before those given.
train() {
    objective=$1
    shift
    model=$(field "$objective" 2) files=$(field "$objective" 3) length=$(field "$objective" 4)
    case $objective in
    mlm | hybrid) set -- --objective "$objective" "$@" ;;
    cloze) set -- --pattern '{text} . [MASK]' --verbalizer even=two --verbalizer 'odd=one three' "$@" ;;
    esac
    config=$model
    test "$objective" = gated && config=gated
    # shellcheck disable=SC2086 # pairs of files
    case $model in
    *.h5) set -- finetune "$model" --task "$objective" --train $files --eval $files --seq "$length" "$@" ;;
    *) set -- pretrain "$model" --config "$config.json" --tokenizer vocab.txt --corpus $files --eval $files \
        --seq "$length" "$@" ;;
    esac
    ${with:-run} "$@"
}

# resume OBJECTIVE ARGUMENT...
resume() {
    objective=$1 model=$(field "$1" 2)
    shift
    case $model in
    *.h5) ${with:-run} finetune --task "$objective" --resume "$@" ;;
    *) ${with:-run} pretrain "$model" --resume "$@" ;;
    esac
}
