#!/bin/sh
# Fine-tuning for the small tasks of GLUE and for labels of words, as a user runs it: files with named
# columns and of JSON lines, regression, tags; bad input. Prints TAP.
. "$(dirname "$0")/setup.sh"

# ---- A model to begin with ----

pretrain_tiny bert 80
pretrain_tiny modernbert 80

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
check 'columns in order are learnt' has 'accuracy 100.00 % of 16'
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
succeeds 'a resumed run knows its columns' finetune --task classify --resume --out named.h5 \
    --epochs 7
run finetune --task classify --resume --out named.h5 --epochs 8 --label-column id
check 'and keeps them' left_with 1 '--label-column cannot change'

refuses 'a column that is not there' \
    'no column "lable"; it has index, sentence1, sentence2, label' finetune bert.h5 \
    --task classify --train glue.tsv --eval glue.tsv --label-column lable --out bad.h5
refuses_each eval <<'END'
a column of JSON that is not there | no column "what"; it has label, id, premise, hypothesis | \
    lines.h5 --corpus lines.jsonl --label-column what
columns of what is not fine-tuned | --label-column is not for masked-lm | \
    bert.h5 --corpus text.txt --label-column label
END

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
check 'numbers are learnt' has '"pearson": 0.9'
shows 'a file of numbers is measured' 'mean squared error 0.* of 20' eval scores.h5 \
    --corpus scores.tsv --predictions numbers.txt --seq 32
check 'predictions are a number a line' eval 'test "$(grep -cE "^-?[0-9.]+(e-[0-9]+)?$" numbers.txt)" = 20'
shows 'info tells the kind of problem' 'problem_type .*regression' info scores.h5
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
tokens --out names.h5
check 'tags are learnt' has 'accuracy 100.00 % of 80'
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
shows 'and read again' 'F1 100.00 % of 32' eval names-back.h5 --corpus names.conll --seq 32
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
shows 'a column of CoNLL-U is named' '"PRP"' info xpos.h5
shows 'a ModernBERT learns them, too' 'F1 100.00 % of 32' finetune modernbert.h5 --task tokens \
    --train names.conll --eval names.conll --batch 4 --seq 32 --lr 0.02 --epochs 20 \
    --out modern-names.h5
shows 'and is measured' 'F1 100.00 % of 32' eval modern-names.h5 --corpus names.conll --seq 32

refuses 'a column beyond the line' 'names.conll, line 1: --tag-column 3: the line has 2 columns' \
    finetune bert.h5 --task tokens --train names.conll --eval names.conll --tag-column 3 \
    --out bad.h5
refuses 'columns of another task' '--text-column is not for tokens' eval names.h5 \
    --corpus names.conll --text-column x

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
several modernbert.h5 several.tsv several.h5
check 'several labels are learnt' has \
    'F1 100.00 % (micro), 100.00 % (macro), all labels right 100.00 % of 16' \
    '^commonest label  *F1 40.00 % (micro)'
several bert.h5 several.tsv bert-several.h5
check 'a BERT learns them, too' grep -Eq 'F1 ([89].|100)\.' out
run eval several.h5 --corpus several.tsv --text-column text --label-column labels --seq 32 \
    --predictions predicted.txt --json
check 'predictions are labels with commas' eval 'test $code = 0 && grep -q "\"macro_f1\": 1.0" out &&
    test "$(sed -n "1,5p;11p" predicted.txt | tr "\n" ";")" = "a;a;b;b;a,b;;"'
awk -F '\t' 'NR > 1 { n = split($2, labels, ","); printf "{\"text\": \"%s\", \"labels\": [", $1
    for (i = 1; i <= n; i++) { gsub(/ /, "", labels[i]); printf "%s\"%s\"", (i > 1 ? ", " : ""), labels[i] }
    print "]}" }' several.tsv >several.jsonl
several modernbert.h5 several.jsonl lists.h5
check 'labels may be JSON lists' grep -q 'all labels right 100.00 % of 16' out
run convert several.h5 several-folder
check 'the head is named as others name it' eval 'grep -q multi_label_classification several-folder/config.json &&
    grep -q ModernBertForSequenceClassification several-folder/config.json'
run convert several-folder several-back.h5
run eval several-back.h5 --corpus several.tsv --text-column text --label-column labels --seq 32
check 'and read again' grep -q 'all labels right 100.00 % of 16' out
printf 'text\tlabels\none\t\ntwo\t\n' >bare.tsv
printf '{"text": "one", "labels": ["a,b"]}\n' >comma.jsonl
for row in 'no label in the whole file|bare.tsv: no line has a label' \
    'a label with a comma|comma.jsonl, line 1: a list of labels'; do
    file=${row#*|}
    file=${file%%[:,]*}
    refuses "${row%|*}" "${row#*|}" finetune bert.h5 --task multi-label --train "$file" \
        --eval "$file" --text-column text --label-column labels --seq 32 --out bad.h5
done

finish
