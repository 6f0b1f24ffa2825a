#!/bin/sh
# Misspelt names get a suggestion: verbs, options, models, presets, objectives, tasks, ops, kinds, choices
# and settings of a file. Prints TAP.
. "$(dirname "$0")/setup.sh"
echo 'Once upon a time.' >text.txt
cat >config.json <<'JSON'
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "hidden_dropuot_prob": 0.1}
JSON
echo '{"stpes": 3}' >wrong.json
echo '{"optimizer": "adamv"}' >choice.json

# suggests NAME EXIT-CODE ARGUMENT...
suggests() {
    text="; did you mean '$1'?" wanted=$2
    shift 2
    leaves "wengert $*" "$wanted" "$text" "$@"
}

suggests pretrain 2 pretrian bert
suggests finetune 2 fine-tune run.h5
suggests ops 2 bench op
suggests train 2 tokenizer trian
suggests --version 2 --verison
suggests --steps 2 pretrain bert --stpes 3 --corpus text.txt --out x.h5
suggests --steps 2 pretrain bert --corpus text.txt --stpes=3
suggests --lr 2 pretrain bert -lr 3
suggests --max-tokens 2 generate run.h5 --max-token5 3
suggests --temperature 2 generate run.h5 --temprature 3
suggests --shard-size 2 convert a b --shards-size 3
suggests bert 2 pretrain bret --corpus text.txt
suggests bert-tiny 1 pretrain bert --preset bert-tini --corpus text.txt --out x.h5
suggests masked-lm 2 pretrain bert --objective maskedlm --corpus text.txt --out x.h5
suggests squad 2 finetune run.h5 --task sqaud
suggests cosine 2 pretrain bert --corpus text.txt --schedule cosien --out x.h5
suggests softmax 2 gradcheck sofmax
suggests matmul 2 bench ops matmull
suggests gpt2-124m 1 bench train gpt2-124
suggests llama 1 plan lama
suggests sentencepiece-bpe 2 tokenizer train --kind sentencpiece-bpe --corpus text.txt --out x.json
suggests hidden_dropout_prob 1 pretrain bert --config config.json --corpus text.txt --out x.h5
suggests steps 1 pretrain bert --settings wrong.json --corpus text.txt --out x.h5
suggests adam 1 pretrain bert --settings choice.json --corpus text.txt --out x.h5

run pretrain bert --xyzzy 3
check "what is like no option has no suggestion" eval 'left_with 2 "--xyzzy" && ! grep -q mean err'
check "and a hint at --help" left_with 2 "Try \`wengert pretrain --help'"
leaves "the argument of an option is no option" 1 "nothing.h5" generate --prompt --stpes nothing.h5
run generate nothing.h5 --prompt=x -- --stpes
check "nor is what follows --" eval '! grep -q "did you mean" err'
run pretrain bert --corp text.txt
check "an option may be cut short" eval '! grep -q unrecognized err'

# ---- Messages name the cause, and what to do ----

run pretrain bert --corpus text.txt --out no/x.h5
check "a folder that is not there is named" left_with 1 "there is no folder no"
mkdir -p folder
run pretrain bert --corpus folder --out x.h5
check "a folder is no corpus" left_with 1 "folder: Is a directory; name the files in it"
run pretrain bert --corpus text.txt --objective classify --out x.h5
check "a task is no objective of pretraining" left_with 2 "\`wengert finetune RUN.h5 --task classify'"
cp text.txt text.h5
run info text.h5
check "a text is no checkpoint, whatever its name" left_with 1 "is no file of HDF5, though its name says so; it is plain text"
check "and was not cut short" eval '! grep -q "cut short\|damaged" err'
: >empty.txt
for kind in bpe unigram; do
    run tokenizer train --kind sentencepiece-$kind --corpus empty.txt --out x.json
    check "an empty corpus is named, $kind" left_with 1 "empty.txt has no words to learn from"
done
finish
