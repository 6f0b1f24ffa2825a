#!/bin/sh
# tools/questions.py: questions out of plain text, and a model that learns from them. Prints TAP.
# Without Python 3.7 every case is skipped.
. "$(dirname "$0")/cli/setup.sh"

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null; then
    echo '1..0 # SKIP Python 3.7 is not installed'
    exit 0
fi
questions() {
    python3 "$source/tools/questions.py" "$@" >out 2>err </dev/null
    code=$?
}
# not_made NAME TEXT ARGUMENT...: exit 1, one line that holds the text, and no file.
not_made() {
    name=$1 text=$2
    shift 2
    questions "$@"
    check "$name" eval 'left_with 1 "$text" && test "$(wc -l <err)" = 1 && ! test -s out && test -z "$(ls bad* 2>&-)"'
}

# Paragraphs are lines.
paragraphs() {
    i=0
    while test $i -lt "$1"; do
        printf '%s ' "Captain Marlow$i sailed the brown ship from Bristol to New Harbour in 18$((i % 90 + 10))." \
            "The old crew carried $((i + 3)) heavy barrels of wine past the quiet lighthouse of Penmarch." \
            "Many merchants of the Bank of Cornwall$i had paid for the goods before the great storm came." \
            "Later the mayor of Élstow built a small museum beside the river for curious visitors."
        echo
        i=$((i + 1))
    done
}
paragraphs 40 >text.txt
head -n 20 text.txt >one.txt
tail -n 20 text.txt >two.txt

questions text.txt --out all.json --count 20
check 'questions are made' eval 'test "$code" = 0 && test ! -s err &&
    grep -q "^all.json: 20 questions about [0-9]* contexts$" out'
check 'the file is JSON of SQuAD 1.1, a context a line' eval '
    head -n 1 all.json | grep -q "\"version\": \"1.1\"" && grep -q "\"answer_start\": [0-9]" all.json &&
    test "$(grep -o "\"question\": " all.json | wc -l)" = 20'
cat >look.py <<'END'
import json, re, sys
number = 0
for paragraph in json.load(open("all.json", encoding="utf-8"))["data"][0]["paragraphs"]:
    context = paragraph["context"]
    assert 250 <= len(context) <= 950 and 1 <= len(paragraph["qas"]) <= 2
    for asked in paragraph["qas"]:
        question, (answer,) = asked["question"], asked["answers"]
        text, begin = answer["text"], answer["answer_start"]
        assert context[begin : begin + len(text)] == text and context.count(text) <= 2, text
        assert re.match("[A-Z0-9É]", text) and len(text.split()) <= 7, text
        assert re.fullmatch(r"[A-Z0-9É][^?]*\?", question) and len(question.split()) >= 4, question
        wanted = (
            "when|what year" if re.fullmatch("1[0-9]{3}", text)
            else "how many|how much|what number of" if text[0].isdigit() else "who|where|what|which"
        )
        assert re.search(wanted, question, re.I), (question, text)
        assert int(asked["id"]) == number
        number += 1
END
check 'answers are where the file says, in code points, and within their limits' python3 look.py

questions one.txt two.txt --out two.json --count 20 --seed 1
check 'of two files' eval 'test "$code" = 0 && grep -q "^two.json: 20 questions" out'
questions text.txt --out same.json --count 20
check 'a seed gives the same file, of whatever name' cmp all.json same.json
questions text.txt --out other.json --count 20 --seed 2
check 'another seed gives another file' eval '! cmp -s all.json other.json'
questions one.txt --out few.json
check 'a text that is not enough for 25000 questions' eval 'test "$code" = 0 &&
    grep -q "note: the text is enough for [0-9]* questions, not for 25000$" err'

cat >bert.json <<END
{"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
 "intermediate_size": 32, "max_position_embeddings": 128}
END
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
run pretrain bert --objective mlm --config bert.json --corpus text.txt --eval text.txt --vocab-size 300 \
    --batch 2 --seq 32 --steps 1 --out run.h5
run finetune run.h5 --task squad --train all.json --eval other.json --seq 128 --batch 2 --steps 2 --out squad.h5
check 'a model learns from them' test "$code" = 0

cp all.json kept.json
not_made 'a file that exists' 'all.json exists; --overwrite replaces it' text.txt --out all.json
questions text.txt --out all.json --count 10 --overwrite
check '--overwrite replaces it' eval 'test "$code" = 0 && ! cmp -s all.json kept.json'
printf 'one\nbad \377\n' >latin.txt
not_made 'a text that is not UTF-8' 'latin.txt is not UTF-8: line 2' text.txt latin.txt --out bad.json
printf 'A line.\nAnother.\n' >short.txt
not_made 'a text without paragraphs' \
    'short.txt has no paragraphs to ask about, lines of 300 to 2500 characters' short.txt --out bad.json
not_made 'a text that is not there' 'none.txt: No such file' none.txt --out bad.json
not_made 'a folder that is not there' 'none/bad.json' text.txt --out none/bad.json
for wrong in '--out bad.json' text.txt 'text.txt --out bad.json --count 0'; do
    questions $wrong
    check "wrong usage: $wrong" left_with 2 'usage: '
done

finish
