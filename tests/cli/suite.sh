#!/bin/sh
# `wengert eval --suite' as a user runs it: pairs and fine-tuned tasks of a folder; bad input. Prints TAP.
#
. "$(dirname "$0")/setup.sh"

# ---- A model and a suite ----

pretrain_tiny bert 80
mkdir -p suite/animals suite/grammar suite/numbers suite/tags scratch
for thing in table door garden river fire tree house road; do
    printf 'it was late\tthe rabbit was near the %s .\tlong ears\n' $thing
    printf 'it was late\tthe queen saw a %s !\tno\n' $thing
done >suite/animals/train.tsv
settings='"epochs": 6, "batch": 4, "seq": 32, "lr": 0.01'
cat >suite/animals/task.json <<END
{"task": "classify", "train": "train.tsv", "eval": "train.tsv", $settings}
END
awk -F '\t' '{ print $1 "\t" $2 "\t" ($3 == "no" ? 1.5 : 4) }' suite/animals/train.tsv >suite/numbers/n.tsv
cat >suite/numbers/task.json <<END
{"task": "regression", "metric": "pearson", "train": "$work/suite/numbers/n.tsv", "eval": "n.tsv",
 "epochs": 20, "batch": 4, "seq": 32, "lr": 0.01}
END
for thing in table door garden river fire tree house road; do
    printf 'the\tO\nrabbit\tB-animal\nsaw\tO\na\tO\n%s\tO\n\n' $thing
done >suite/tags/t.conll
cat >suite/tags/task.json <<END
{"task": "tokens", "train": "t.conll", "eval": "t.conll", "epochs": 20, "batch": 4, "seq": 32, "lr": 0.01}
END
pair() {
    printf '{"sentence_good": "%s", "sentence_bad": "%s"}\n' "$@"
}
pair 'the queen .' 'queen . the' >suite/grammar/one.jsonl
pair 'the queen .' 'the queen .' >suite/grammar/two.jsonl
echo 'no folder is no task' >suite/README

TMPDIR=$work/scratch
export TMPDIR
run eval bert.h5 --suite suite
check 'tasks run in the order of their names' eval 'test $code = 0 &&
    test "$(cut -d " " -f 1 out | tr "\n" " ")" = "task animals grammar numbers tags mean "'
check 'labels are learnt, and the commonest label is told beside them' \
    grep -q '^animals  accuracy     100.00    50.00$' out
check 'pairs are scored' grep -Eq '^grammar  accuracy    +(0|50).00$' out
check 'the metric that a task names is taken' grep -Eq '^numbers  pearson  +[0-9.]+$' out
check 'named entities are measured by F1' grep -Eq '^tags     f1  +100.00$' out
check 'the mean is that of the tasks' eval 'awk "/^mean/ { mean = \$2; next } NR > 1 { sum += \$3 }
    END { exit (sum / 4 - mean) ^ 2 > 1e-4 }" out'
check 'nothing is left behind' test -z "$(ls scratch)"
cp out table
run eval bert.h5 --suite suite --json
check 'results are JSON, and the same again' eval 'test $code = 0 && grep -q "\"majority\": 0.5" out &&
    grep -q "\"metric\": \"pearson\"" out && grep -q "\"kind\": \"pairs\"" out &&
    test "$(sed -n "s/.*\"mean\": //p" out | awk "{ printf \"%.2f\", 100 * \$1 }")" = \
        "$(awk "/^mean/ { print \$2 }" table)"'

# ---- Mistakes ----

misused '--suite and --corpus exclude each other' eval bert.h5 --suite suite --corpus text.txt
mkdir -p other/task
refuses_each eval bert.h5 --suite <<'END'
a suite that is not there | cannot read none: No such file | none
a file for a suite | cannot read text.txt: Not a directory | text.txt
a folder without tasks | scratch holds no tasks | scratch
a folder that is no task | other/task holds no task | other
END
wrong_settings() {
    name=$1 text=$2
    printf '%s\n' "$3" >other/task/task.json
    run eval bert.h5 --suite other
    sed -i /^task/d out # the heading of the table
    refused "$name" "$text"
}
wrong_settings 'settings that are no JSON' 'other/task/task.json, line 1' '{"task": classify}'
wrong_settings 'settings without a task' '"task" is missing' '{"train": "t.tsv"}'
wrong_settings 'a task that there is not' "lists the tasks; did you mean 'classify'?" '{"task": "clasify"}'
wrong_settings 'pretraining as a task' "\"task\" is 'masked-lm'" '{"task": "masked-lm"}'
wrong_settings 'a metric that is a number' '"metric" must be a text' '{"task": "classify", "metric": 3}'
wrong_settings 'a task without files' 'task: wengert finetune: --train FILE and --eval FILE' '{"task": "classify"}'
wrong_settings 'a file that is not there' 'task: wengert: ' \
    '{"task": "classify", "train": "none.tsv", "eval": "none.tsv"}'
cp suite/animals/train.tsv other/task
wrong_settings 'a metric that there is not' 'task: its results have no bleu' \
    '{"task": "classify", "metric": "bleu", "train": "train.tsv", "eval": "train.tsv", "epochs": 1, "batch": 4, "seq": 32}'
wrong_settings 'a setting that there is not' 'task: wengert' \
    '{"task": "classify", "train": "train.tsv", "eval": "train.tsv", "epoch": 1}'
run finetune bert.h5 --task classify --train suite/animals/train.tsv --eval suite/animals/train.tsv \
    --epochs 1 --batch 4 --seq 32 --out tuned.h5
refuses 'a model that is fine-tuned already' 'fine-tuned for --task classify' eval tuned.h5 --suite suite
check 'failures leave nothing behind' test -z "$(ls scratch)"

# ---- A signal ----

cat >other/task/task.json <<END
{"task": "classify", "train": "train.tsv", "eval": "train.tsv", "epochs": 100000, "batch": 4, "seq": 32}
END
begin eval bert.h5 --suite other
waited=0
while test -z "$(cat scratch/wengert-suite.*/err 2>/dev/null)" && test $waited -lt 600; do
    sleep 0.1
    waited=$((waited + 1))
done
stop TERM
check 'a signal ends the suite, and nothing is left behind' eval 'test $code = 143 && ! test -s err &&
    test -z "$(ls scratch)"'

finish
