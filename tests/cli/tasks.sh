#!/bin/sh
# Fine-tuning for the small tasks of GLUE and for labels of words, as a user runs it: files with named
# columns and of JSON lines, regression, tags; bad input. Prints TAP.
#
# WENGERT: the command (default ./wengert).
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
wengert=${WENGERT:-$PWD/wengert}
work=$(mktemp -d "${TMPDIR:-/tmp}/wengert-tasks.XXXXXX") || exit 1
cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

. "$source/tests/cli/tap.sh"

# ---- A model to begin with ----

head -n 900 "$source/corpus/books/alice-in-wonderland.txt" >text.txt
cat >tiny.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 80}
END
run pretrain bert --corpus text.txt --config tiny.json --batch 4 --seq 32 --steps 2 --out bert.h5
check 'a model is pretrained' test $code = 0
cat >modern.json <<END
{"vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
 "intermediate_size": 24, "max_position_embeddings": 80, "local_attention": 8}
END
run pretrain modernbert --corpus text.txt --config modern.json --batch 4 --seq 32 --steps 2 --out modern.h5

# ---- Named columns ----

# The label of a pair is the animal that its second text names; the columns as in GLUE's RTE, with
# other names, without names, and as JSON lines.
for thing in table door garden river fire tree house road; do
    printf 'it was late\tthe rabbit was near the %s .\tlong ears\n' $thing
    printf 'it was late\tthe queen saw a %s !\tno\n' $thing
done >plain.tsv
{
    printf 'index\tsentence1\tsentence2\tlabel\n'
    awk '{ print NR "\t" $0 }' plain.tsv
} >glue.tsv
{
    printf 'what\tid\tpremise_text\tclaim\n'
    awk -F '\t' '{ print $3 "\t" NR "\t" $1 "\t" $2 }' plain.tsv
} >named.tsv
awk -F '\t' '{ printf "{\"label\": \"%s\", \"id\": %d, \"premise\": \"%s\", \"hypothesis\": \"%s\"}\n",
    $3, NR, $1, $2 }' plain.tsv >lines.jsonl

classify() {
    file=$1
    shift
    run finetune bert.h5 --task classify --train "$file" --eval "$file" --batch 4 --seq 32 --lr 0.01 \
        --epochs 6 "$@"
}
classify plain.tsv --out plain.h5
check 'columns in order are learnt' eval 'test $code = 0 && grep -q "accuracy 100.00 % of 16" out'
mv out wanted
classify glue.tsv --out glue.h5
check 'well-known columns are found' cmp out wanted
classify named.tsv --text-column premise_text --text-pair-column claim --label-column what --out named.h5
check 'columns are named' cmp out wanted
classify lines.jsonl --out lines.h5
check 'JSON lines are read' cmp out wanted
run eval glue.h5 --corpus named.tsv --text-column premise_text --text-pair-column claim \
    --label-column what --seq 32 --batch 4
check 'a file with other names is measured' cmp out wanted
echo '{"text-column": "premise_text", "text-pair-column": "claim", "label-column": "what"}' >columns.json
classify named.tsv --settings columns.json --out settled.h5
check 'a file of settings names columns' cmp out wanted
run finetune --task classify --resume --out named.h5 --epochs 7
check 'a resumed run knows its columns' test $code = 0
run finetune --task classify --resume --out named.h5 --epochs 8 --label-column id
check 'and keeps them' left_with 1 '--label-column cannot change'

bad_columns() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" finetune bert.h5 --task classify --eval glue.tsv --seq 32 --out bad.h5 "$@"
}
bad_columns 'a column that is not there' 'no column "lable"; it has index, sentence1, sentence2, label' \
    --train glue.tsv --label-column lable
bad_columns 'names that are not known' \
    'which column holds the text? --text-column names it; the columns are what, id, premise_text, claim' \
    --train named.tsv --label-column what
bad_columns 'a second text without a first' '--text-column must name the first' --train glue.tsv \
    --text-pair-column sentence2
refuses 'a column of JSON that is not there' 'no column "what"; it has label, id, premise, hypothesis' \
    eval lines.h5 --corpus lines.jsonl --label-column what
head -c 300 lines.jsonl >broken.jsonl
bad_columns 'JSON that breaks off' 'broken.jsonl, line 3: ' --train broken.jsonl
refuses 'columns of what is not fine-tuned' '--label-column is not for masked-lm' \
    eval bert.h5 --corpus text.txt --label-column label

# ---- Regression ----

# A text is the more worth the later its animal stands in the list, from 0.5 on.
{
    printf 'index\tsentence1\tsentence2\tscore\n'
    for thing in table door garden river; do
        n=-3
        for animal in rabbit queen cat king duck; do
            printf '%s\tit was late\tthe %s near the %s\t%s.5\n' $n $animal $thing $((n + 3))
            n=$((n + 1))
        done
    done
} >scores.tsv
regression() {
    run finetune bert.h5 --task regression --train scores.tsv --eval scores.tsv --batch 4 --seq 32 \
        --lr 0.01 --epochs 40 "$@"
}
regression --out scores.h5 --json
check 'numbers are learnt' eval 'test $code = 0 && grep -q "\"pearson\": 0.9" out'
run eval scores.h5 --corpus scores.tsv --predictions numbers.txt --seq 32
check 'a file of numbers is measured' grep -q 'mean squared error 0.* of 20' out
check 'predictions are a number a line' eval 'test "$(grep -cE "^-?[0-9.]+(e-[0-9]+)?$" numbers.txt)" = 20'
run info scores.h5
check 'info tells the kind of problem' grep -q 'problem_type .*regression' out
mv numbers.txt wanted.txt
run convert scores.h5 scores-folder
check 'its head is written as others name it' eval 'grep -q "\"problem_type\": \"regression\"" scores-folder/config.json &&
    grep -q "{\"0\": \"LABEL_0\"}" scores-folder/config.json && grep -q BertForSequenceClassification scores-folder/config.json'
sed '/problem_type/d' scores-folder/config.json >config.json && mv config.json scores-folder
run convert scores-folder scores-back.h5
run eval scores-back.h5 --corpus scores.tsv --predictions numbers.txt --seq 32
check 'and read again, also where one label alone tells the kind' cmp numbers.txt wanted.txt
run finetune scores.h5 --task regression --train scores.tsv --eval scores.tsv --batch 4 --seq 32 --steps 1 \
    --out scores-again.h5
check 'a model that has the head keeps it' eval 'test $code = 0 && ! grep -q anew err'
run finetune glue.h5 --task regression --train scores.tsv --eval scores.tsv --batch 4 --seq 32 --steps 1 \
    --out scores-new.h5
check 'a head for labels is not taken for one of numbers' \
    eval 'test $code = 0 && grep -q "anew: classifier.weight" err'
refuses 'labels that are no numbers' 'glue.tsv, line 2: "long ears" is no number' \
    finetune bert.h5 --task regression --train glue.tsv --eval glue.tsv --seq 32 --out bad.h5
refuses 'numbers by what tells labels' 'scores.tsv, line 2: the label "0.5" is unknown' \
    eval glue.h5 --corpus scores.tsv

# ---- Labels of words ----

# Animals are named by two words, a title and a name.
for thing in table door garden river fire tree house road; do
    printf 'the\tO\nWhite\tB-animal\nRabbit\tI-animal\nwas\tO\nnear\tO\n%s\tB-place\n\n' $thing
    printf '# a comment\nAlice\tB-person\nsaw\tO\nthe\tO\n%s\tB-place\n\n' $thing
done >names.conll
tokens() {
    run finetune bert.h5 --task tokens --train names.conll --eval names.conll --batch 4 --seq 32 \
        --lr 0.01 --epochs 20 "$@"
}
tokens --out names.h5 --log names.log
check 'tags are learnt' eval 'test $code = 0 && grep -q "accuracy 100.00 % of 80" out'
check 'spans are measured' grep -q 'precision 100.00 %, recall 100.00 %, F1 100.00 % of 32' out
check 'the text is told' grep -q '16 sentences of 80 words with 5 tags' err
run eval names.h5 --corpus names.conll --seq 32 --predictions predicted.conll --json
check 'a file of words is measured' eval 'grep -q "\"f1\": 1.0" out && grep -q "\"spans\": 32" out'
awk -F '\t' '/^#/ { next } NF { print $0 "\t" $2; next } { print "" }' names.conll >wanted.txt
check 'predictions are columns of CoNLL' cmp predicted.conll wanted.txt
run eval names.h5 --corpus names.conll --seq 8 --predictions predicted.conll
check 'sentences longer than a sequence are read in windows' eval 'test $code = 0 &&
    test "$(cut -f 1,2 predicted.conll)" = "$(cut -f 1,2 wanted.txt)"'
run convert names.h5 names-folder
check 'its head is written as others name it' eval 'grep -q BertForTokenClassification names-folder/config.json &&
    grep -q "\"0\": \"B-animal\"" names-folder/config.json && ! grep -q problem_type names-folder/config.json'
run convert names-folder names-back.h5
run eval names-back.h5 --corpus names.conll --seq 32
check 'and read again' grep -q 'F1 100.00 % of 32' out
# A resumed run may differ from an uninterrupted one in its times alone.
losses() {
    sed 's/, "tokens_per_s": [^,}]*//' "$@" | sort -u | sort -t: -k2n
}
"$wengert" finetune bert.h5 --task tokens --train names.conll --eval names.conll --batch 4 --seq 32 --lr 0.01 \
    --epochs 20 --out parts.h5 --log parts.log --save-every 1 >out 2>err &
while test ! -s parts.log && kill -0 $! 2>/dev/null; do sleep 0.05; done
kill -9 $! 2>/dev/null
wait 2>/dev/null
run finetune --task tokens --resume --out parts.h5 --log parts.log
losses names.log >a
losses parts.log >b
check 'a run that was killed goes on bit for bit' cmp a b
# CoNLL-U, of which UPOS is read: "don't" is a range of words, and an empty node is none.
{
    printf '# text = I don'"'"'t\n1\tI\tI\tPRON\tPRP\t_\t_\t_\t_\t_\n2-3\tdon'"'"'t\t_\t_\t_\t_\t_\t_\t_\t_\n'
    printf '2\tdo\tdo\tAUX\tVBP\t_\t_\t_\t_\t_\n3\tn'"'"'t\tnot\tPART\tRB\t_\t_\t_\t_\t_\n'
    printf '3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_\n\n'
} >speech.conllu
run finetune bert.h5 --task tokens --train speech.conllu --eval speech.conllu --batch 1 --seq 32 --lr 0.01 \
    --steps 30 --out speech.h5
check 'CoNLL-U is learnt, and no spans are measured' \
    eval 'grep -q "accuracy 100.00 % of 3" out && ! grep -q spans out'
run finetune bert.h5 --task tokens --train speech.conllu --eval speech.conllu --tag-column XPOS --batch 1 \
    --seq 32 --steps 1 --out xpos.h5
run info xpos.h5
check 'a column of CoNLL-U is named' grep -q '"PRP"' out
run finetune modern.h5 --task tokens --train names.conll --eval names.conll --batch 4 --seq 32 --lr 0.02 \
    --epochs 20 --out modern-names.h5
check 'a ModernBERT learns them, too' grep -q 'F1 100.00 % of 32' out
run eval modern-names.h5 --corpus names.conll --seq 32
check 'and is measured' grep -q 'F1 100.00 % of 32' out

bad_tokens() {
    name=$1 text=$2
    shift 2
    refuses "$name" "$text" finetune bert.h5 --task tokens --eval names.conll --seq 32 --out bad.h5 "$@"
}
bad_tokens 'a column beyond the line' 'names.conll, line 1: --tag-column 3: the line has 2 columns' \
    --train names.conll --tag-column 3
bad_tokens 'a column without a number' '--tag-column UPOS: wanted the number of a column' \
    --train names.conll --tag-column UPOS
yes word | head -n 3 >bare.txt
bad_tokens 'words without tags' 'bare.txt, line 1: 1 columns; wanted a word and its tag' --train bare.txt
printf 'a\tO\nb\tB-a\nc\n' >ragged.conll
bad_tokens 'a line without a tag' 'ragged.conll, line 3: 1 columns' --train ragged.conll
refuses 'tags that are unknown' 'speech.conllu, line 2: the tag "PRON" is unknown' \
    eval names.h5 --corpus speech.conllu
refuses 'columns of another task' '--text-column is not for tokens' \
    eval names.h5 --corpus names.conll --text-column x

# ---- Several labels ----

# A text has the label of each thing that it names.
{
    printf 'text\tlabels\n'
    for words in 'the rabbit=a' 'the queen=b' 'the rabbit and the queen=a,b' 'a door= c ' 'a door by the queen=b, c' \
        'nothing at all=' 'the queen by the rabbit and a door=c,a,b' 'a rabbit by a door=a,c'; do
        printf 'so %s .\t%s\n' "${words%=*}" "${words#*=}"
        printf '%s !\t%s\n' "${words%=*}" "${words#*=}"
    done
} >several.tsv
several() {
    run finetune "$1" --task multi-label --train "$2" --eval "$2" --label-column labels --text-column text \
        --batch 4 --seq 32 --lr 0.01 --epochs 150 --out "$3" --log "$3.log"
}
several modern.h5 several.tsv several.h5
check 'several labels are learnt' eval 'test $code = 0 &&
    grep -q "F1 100.00 % (micro), 100.00 % (macro), all labels right 100.00 % of 16" out &&
    grep -q "^commonest label  *F1 40.00 % (micro)" out'
several bert.h5 several.tsv bert-several.h5
check 'a BERT learns them, too' grep -Eq 'F1 ([89].|100)\.' out
run eval several.h5 --corpus several.tsv --text-column text --label-column labels --seq 32 \
    --predictions predicted.txt --json
check 'predictions are labels with commas' eval 'test $code = 0 && grep -q "\"macro_f1\": 1.0" out &&
    test "$(sed -n "1,5p;11p" predicted.txt | tr "\n" ";")" = "a;a;b;b;a,b;;"'
awk -F '\t' 'NR > 1 { n = split($2, labels, ","); printf "{\"text\": \"%s\", \"labels\": [", $1
    for (i = 1; i <= n; i++) { gsub(/ /, "", labels[i]); printf "%s\"%s\"", (i > 1 ? ", " : ""), labels[i] }
    print "]}" }' several.tsv >several.jsonl
several modern.h5 several.jsonl lists.h5
check 'labels may be JSON lists' grep -q 'all labels right 100.00 % of 16' out
run convert several.h5 several-folder
check 'the head is named as others name it' eval 'grep -q multi_label_classification several-folder/config.json &&
    grep -q ModernBertForSequenceClassification several-folder/config.json'
run convert several-folder several-back.h5
run eval several-back.h5 --corpus several.tsv --text-column text --label-column labels --seq 32
check 'and read again' grep -q 'all labels right 100.00 % of 16' out
run finetune --task multi-label --resume --out several.h5 --steps 601
check 'a run of several labels goes on' test $code = 0
printf 'text\tlabels\none\t\ntwo\t\n' >bare.tsv
refuses 'no label in the whole file' 'bare.tsv: no line has a label' finetune bert.h5 --task multi-label \
    --train bare.tsv --eval bare.tsv --text-column text --label-column labels --seq 32 --out bad.h5
printf '{"text": "one", "labels": ["a,b"]}\n' >comma.jsonl
refuses 'a label with a comma' 'comma.jsonl, line 1: a list of labels' finetune bert.h5 --task multi-label \
    --train comma.jsonl --eval comma.jsonl --text-column text --label-column labels --seq 32 --out bad.h5
printf 'text\tlabels\nso\ta,d\n' >unknown.tsv
refuses 'a label that is unknown' 'the label "d" is unknown' eval several.h5 --corpus unknown.tsv \
    --text-column text --label-column labels

# ---- The end ----

finish
